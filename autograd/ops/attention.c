/* attention.c - softmax(scale Q K') V without the matrix of Q x K weights in memory: what is
 * demanded, and what the backward pass needs. The passes are in tensor/kernels/attention.c. */
#include "../op.h"

#include <math.h>

/* Equal sizes before the last two, one D of q and k, one K of k and v. */
static bool inputs_fit(const Tensor *q, const Tensor *k, const Tensor *v) {
    const int last = q->shape.ndim - 1;
    bool fit = (last == 2 || last == 3) && k->shape.ndim == last + 1 && v->shape.ndim == last + 1;
    for (int d = 0; fit && d < last - 1; d++)
        fit = q->shape.dim[d] == k->shape.dim[d] && k->shape.dim[d] == v->shape.dim[d];
    if (fit && q->shape.dim[last] == k->shape.dim[last] &&
        k->shape.dim[last - 1] == v->shape.dim[last - 1])
        return true;
    return tensor_fail("attention: q is %s, k is %s and v is %s: they must be (B, H, Q, D), (B, H, "
                       "K, D) and (B, H, K, Dv), or all without H",
                       tensor_shape_text(q->shape), tensor_shape_text(k->shape),
                       tensor_shape_text(v->shape));
}

/* Expanded inputs may have more keys than any memory has room for. The passes take less than so
 * many bytes for a score, or for a number of a key or a value: can these be counted? */
static bool room_fits(const Tensor *q, const Tensor *k, const Tensor *v) {
    const int64_t amply = 4096, keys = k->shape.dim[k->shape.ndim - 2];
    if (shape_fits(attention_scores(q, k), amply) &&
        shape_fits(SHAPE(keys, k->shape.dim[k->shape.ndim - 1]), amply) &&
        shape_fits(SHAPE(keys, v->shape.dim[v->shape.ndim - 1]), amply))
        return true;
    return tensor_fail("attention: q is %s, k is %s and v is %s: they are too large",
                       tensor_shape_text(q->shape), tensor_shape_text(k->shape),
                       tensor_shape_text(v->shape));
}

/* What the node computes, for the passes. False with an error; mask_close it in any case. */
static bool attention_open(AttentionOperands *a, const Node *n) {
    const Tensor *q = n->in[0], *k = n->in[1];
    *a = (AttentionOperands){.q = q, .k = k, .v = n->in[2], .stats = n->saved[0]};
    a->scale = n->at.scale;
    a->dropout = n->at.number;
    a->drawn = n->saved[1] ? n->saved[1]->data : NULL;
    return ag_mask_open(&a->mask, n, 3, attention_scores(q, k));
}

/* y = dropout(weights) v; saved: stats, what dropout drew, and a look at y */
Tensor *ag_attention_forward(Node *n) {
    AttentionOperands a;
    const Tensor *q = n->in[0], *k = n->in[1], *v = n->in[2];
    if (!inputs_fit(q, k, v) || !room_fits(q, k, v)) return NULL;
    const Shape s = attention_scores(q, k);
    n->saved[0] = tensor_make(SHAPE(s.dim[0], s.dim[1], 3, s.dim[2]), q->dtype);
    if (n->at.number > 0) n->saved[1] = tensor_make(SHAPE(attention_memory(s)), BOOL);
    Tensor *y = attention_open(&a, n) ? attention_result(q, v) : NULL;
    if (y) attention_draw(&a, generator_current()), attention_pass(&a, NULL, &y);
    if (y) n->saved[2] = view_make(y, y->shape, y->stride, y->data);
    mask_close(&a.mask);
    return y;
}

/* dv = P' dy,  dq = dS k,  dk = dS' q,  P and dS made again. Of y it wants sum(y dy) alone; where
 * nobody else will look at y, it is gone before there are gradients, and made again for the next
 * walk, as it is where it was written over. */
void ag_attention_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    AttentionOperands a;
    Tensor **y = (Tensor **)(uintptr_t)&n->saved[2];
    Tensor *rows = dy->stride[dy->shape.ndim - 1] == 1 ? ag_hand_on(dy) : tensor_contiguous(dy);
    if (n->out->storage->version != n->version[OP_INPUTS]) tensor_release(*y), *y = NULL;
    if (attention_open(&a, n) && rows) attention_dots(&a, y, rows);
    if (n->out->let_go) tensor_release(*y), *y = NULL;
    for (int i = 0; i < 3; i++) dx[i] = attention_result(n->in[i], n->in[i]);
    if (!tensor_pending()) attention_pass(&a, rows, dx);
    mask_close(&a.mask);
    tensor_release(rows);
}

Tensor *ag_attention_scaled(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout,
                            double scale) {
    if (!(dropout >= 0 && dropout <= 1))
        return tensor_fail("attention: dropout is %g: it must be a probability, from 0 to 1",
                           dropout);
    Tensor *in[6] = {q, k, v};
    ag_mask_inputs(mask, in + 3);
    const Attributes at = {.number = dropout, .scale = scale, .causal = mask.causal};
    return ag_apply(&op_attention, 6, in, &at);
}

Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    const int last = q ? q->shape.ndim - 1 : -1; /* what is no (..., Q, D) is refused soon */
    const double scale = last < 0 ? 1 : 1 / sqrt((double)q->shape.dim[last]);
    return ag_attention_scaled(q, k, v, mask, dropout, scale);
}
