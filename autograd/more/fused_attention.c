/* fused_attention.c - softmax(scale Q K') V without the matrix of Q x K weights in memory: the
 * checks, and the tensors that the kernels need. tensor/more/attention_heads.c calls the kernel for
 * each head; tensor/more/more_plain.inc shows the arithmetic, fast/attention_tiles.c does it in
 * tiles. */
#include "../../tensor/more/attention_heads.h"
#include "../op.h"

#include <math.h>

/* Are B, D and K equal where they stand, and do the G heads of k and v divide the H heads of q? */
static bool check_shapes(const Tensor *q, const Tensor *k, const Tensor *v) {
    const int last = q->shape.ndim - 1;
    bool fit = (last == 2 || last == 3) && k->shape.ndim == last + 1 && v->shape.ndim == last + 1;
    for (int d = 0; fit && d < last - 1; d++)
        fit = k->shape.dim[d] == v->shape.dim[d] &&
              (q->shape.dim[d] == k->shape.dim[d] ||
               (d == 1 && k->shape.dim[d] > 0 && q->shape.dim[d] % k->shape.dim[d] == 0));
    if (fit && q->shape.dim[last] == k->shape.dim[last] &&
        k->shape.dim[last - 1] == v->shape.dim[last - 1])
        return true;
    return tensor_fail("attention: q is %s, k is %s and v is %s: they must be (B, H, Q, D), (B, G, "
                       "K, D) and (B, G, K, Dv), where G divides H, or all without H and G",
                       tensor_shape_text(q->shape), tensor_shape_text(k->shape),
                       tensor_shape_text(v->shape));
}

/* Expanded inputs may have more keys than memory can hold. The kernels' workspaces take less than
 * 4096 bytes for each score and for each element of a key or a value: their size must fit an
 * int64_t. */
static bool check_sizes(const Tensor *q, const Tensor *k, const Tensor *v) {
    const int64_t bytes = 4096, keys = k->shape.dim[k->shape.ndim - 2];
    if (tensor_shape_fits(tensor_attention_scores(q, k), bytes) &&
        tensor_shape_fits(SHAPE(keys, k->shape.dim[k->shape.ndim - 1]), bytes) &&
        tensor_shape_fits(SHAPE(keys, v->shape.dim[v->shape.ndim - 1]), bytes))
        return true;
    return tensor_fail("attention: q is %s, k is %s and v is %s: they are too large",
                       tensor_shape_text(q->shape), tensor_shape_text(k->shape),
                       tensor_shape_text(v->shape));
}

/* The saved tensors. DRAWS is a tensor of bytes (BOOL): bools, or the bytes of Generators. */
enum { LENGTHS, STATS, DRAWS };
enum { MASK = 3, BIAS = 6 }; /* inputs: the first part of the mask, and the part with a gradient */

/* The operands of the kernels: n's inputs, what forward saved, and y for the result. */
static AttentionOperands operands_of(const Node *n, Tensor *y) {
    const Tensor *q = n->in[0];
    const Tensor *k = n->in[1];
    AttentionOperands a = {.q = q, .k = k, .v = n->in[2], .y = y, .stats = n->saved[STATS]};
    a.mask = ag_mask_of(n, MASK, n->saved[LENGTHS], tensor_attention_scores(q, k));
    a.scale = n->at.scale;
    a.dropout = n->at.dropout;
    if (!n->saved[DRAWS]) return a;
    if (tensor_attention_draw_bytes(a.mask.scores) < (int64_t)sizeof(Generator))
        a.drawn = n->saved[DRAWS]->data;
    else a.states = n->saved[DRAWS]->data;
    return a;
}

OP_TEXT(attention) = {
    .call = "ag_attention(q, k, v, mask, dropout)",
    .shapes =
        "(B, H, Q, D), (B, G, K, D), (B, G, K, Dv) -> (B, H, Q, Dv), where G divides H, or all "
        "without H and G",
    .value = "R v, R = dropout(P), P = softmax(q k' / sqrt(D) + window + bias) over the keys that "
             "the mask allows; P is never in memory",
    .gradient =
        "dv = R' dy, dk and dv summed over the heads that share them; dq = dS k, dk = dS' q, dS = P (dP - sum(P dP)) / sqrt(D), dP = "
        "dropout's gradient at dy v'; of the bias P (dP - sum(P dP)), summed over what was "
        "broadcast",
    .source = "Vaswani et al. 2017; Dao et al. 2022",
};

/* saved: for each query, how many keys valid_lens and causal allow, and, in double, the largest
 * score and 1 / sum exp(score - largest); with dropout, the draws of each head, or the generator
 * before the draws. */
static Tensor *attention_forward(Node *n) {
    const Tensor *q = n->in[0];
    const Tensor *k = n->in[1];
    const Tensor *v = n->in[2];
    if (!check_shapes(q, k, v) || !check_sizes(q, k, v)) return NULL;
    const Shape s = tensor_attention_scores(q, k);
    const int64_t heads = s.dim[0] * s.dim[1];
    n->saved[LENGTHS] = ag_mask_lengths(n, MASK, n->at.causal, s);
    n->saved[STATS] = tensor_make(SHAPE(heads, 2, s.dim[2]), F64);
    const bool draws = n->at.dropout > 0 && tensor_shape_numel(s) > 0 && !n->saved[DRAWS];
    if (draws) n->saved[DRAWS] = tensor_make(SHAPE(heads, tensor_attention_draw_bytes(s)), BOOL);
    Tensor *y = tensor_pending() ? NULL : tensor_attention_result(q, v);
    if (!y) return NULL;
    const AttentionOperands a = operands_of(n, y);
    if (draws) tensor_attention_draw(&a, tensor_generator_current());
    tensor_attention_forward(&a);
    return y;
}

/* Computes the weights P again. The fast kernel reads y, because sum(P dP) = sum(y dy) for each
 * query: P dP = R dR element by element (both are 0 where dropout drops), dR = dy v' and y = R v,
 * so sum_j P_j dP_j = sum_j R_j (v_j dy) = (sum_j R_j v_j) dy = y dy. */
static void attention_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const AttentionOperands a = operands_of(n, n->out);
    const int last = dy->shape.ndim - 1;
    Tensor *rows = dy->stride[last] == 1 ? tensor_retain(dy) : tensor_contiguous(dy);
    for (int i = 0; i < 3; i++) dx[i] = tensor_attention_result(n->in[i], n->in[i]);
    if (ag_needs(n, BIAS)) dx[BIAS] = tensor_make_zeros(a.mask.scores, dy->dtype);
    if (!tensor_pending()) tensor_attention_backward(&a, rows, dx, dx[BIAS]);
    tensor_release(rows);
}

DEFINE_OP(attention,
          .in = {{"q", FLOAT},
                 {"k", FLOAT},
                 {"v", FLOAT},
                 {"valid_lens", INT64 | OPTIONAL},
                 {"keep", BOOLEAN | OPTIONAL},
                 {"window", FLOAT | OPTIONAL},
                 {"bias", FLOAT | OPTIONAL}},
          .forward = attention_forward, .backward = attention_backward,
          .reads = READS_INPUTS | READS_OUT, .draws = DRAWS + 1,
          .grad_fn = "ScaledDotProductAttentionBackward0");

/* x with a last stride of 1, as the kernels need it. An x that is too large or was let go is not
 * copied: it is refused. */
static Tensor *with_dense_rows(Tensor *x) {
    const int last = x ? x->shape.ndim - 1 : -1;
    if (last < 0 || x->stride[last] == 1 || x->let_go || !tensor_shape_fits(x->shape, 4096))
        return x;
    return ag_check_ready("attention", x) ? ag_contiguous(x) : NULL;
}

OP_TEXT(attention_scaled) = {
    .call = "ag_attention_scaled(q, k, v, mask, dropout, scale)",
    .shapes = "as ag_attention",
    .value = "as ag_attention, with scale in place of 1 / sqrt(D); applies the op attention",
    .gradient = "as ag_attention, with scale in place of 1 / sqrt(D)",
};

Tensor *ag_attention_scaled(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout,
                            double scale) {
    if (!(dropout >= 0 && dropout <= 1))
        return tensor_fail("attention: dropout is %g: it must be a probability, from 0 to 1",
                           dropout);
    Tensor *in[7] = {q, k, v};
    for (int i = 0; i < 3; i++) in[i] = with_dense_rows(in[i]);
    ag_mask_inputs(mask, in + MASK);
    const Attributes at = {.scale = scale, .dropout = dropout, .causal = mask.causal};
    return ag_apply(&ag_op_attention, 7, in, &at);
}

Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    const int last = q ? q->shape.ndim - 1 : -1; /* forward refuses other shapes */
    const double scale = last < 0 ? 1 : 1 / sqrt((double)q->shape.dim[last]);
    return ag_attention_scaled(q, k, v, mask, dropout, scale);
}
