/* softmax.c - softmax, and softmax over the keys that a mask allows. */
#include "../op.h"

/* ---- softmax ------------------------------------------------------------------------------- */

OP_TEXT(softmax) = {
    .call = "ag_softmax(x, dim)",
    .shapes = "(..., N, ...) -> same",
    .value = "exp(x - max x) / sum exp(x - max x)",
    .gradient = "y (dy - sum(y dy))",
};

static Tensor *softmax_forward(Node *n) {
    const Tensor *x = n->in[0];
    Tensor *y = tensor_make(x->shape, x->dtype);
    Kernel *const kernel = tensor_kernels()->softmax[x->dtype];
    if (y) tensor_loop_rows(kernel, n->at.dim, 2, (const Tensor *[]){y, x}, 0);
    return y;
}

static void softmax_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Kernel *const kernel = tensor_kernels()->softmax_dx[dy->dtype];
    dx[0] = ag_buffer_like(dy);
    if (dx[0]) tensor_loop_rows(kernel, n->at.dim, 3, (const Tensor *[]){dx[0], n->out, dy}, 0);
}

DEFINE_OP(softmax, .in = {{"x", FLOAT}}, .forward = softmax_forward, .backward = softmax_backward,
          .reads = READS_OUT, .zero = "weight is 0", .weighs = true, .grad_fn = "SoftmaxBackward0");

Tensor *ag_softmax(Tensor *x, int dim) {
    if (!ag_check_present("softmax", x)) return NULL;
    const int d = tensor_shape_dim_or_scalar("softmax", x->shape, dim);
    return d < 0 ? NULL : apply1(&ag_op_softmax, x, (Attributes){.dim = d});
}

/* ---- masked_softmax ------------------------------------------------------------------------ */
/* The op of two public functions: ag_attention_weights, and ag_masked_softmax, which calls
 * ag_attention_weights with lengths as the only mask. */

enum { SCORES, BIAS = 4 }; /* the inputs that have a gradient */

/* scores: (B, H, Q, K) or (B H, Q, K) */
static bool check_scores(const Tensor *scores, int64_t heads) {
    const Shape s = scores->shape;
    if (s.ndim != 3 && s.ndim != 4)
        return tensor_fail("masked_softmax: scores is %s: it must be (B, H, Q, K) or (B H, Q, K)",
                           tensor_shape_text(s));
    if (s.ndim == 3 && (heads < 1 || s.dim[0] % heads))
        return tensor_fail("masked_softmax: scores is %s: its first size must be a multiple of the "
                           "number of heads, %lld",
                           tensor_shape_text(s), (long long)heads);
    return true;
}

/* (B, H, Q, K) */
static Shape shape_with_heads(Shape s, int64_t heads) {
    return s.ndim == 4 ? s : SHAPE(s.dim[0] / heads, heads, s.dim[1], s.dim[2]);
}

OP_TEXT(attention_weights) = {
    .call = "ag_attention_weights(scores, scale, mask, num_heads)",
    .shapes = "(B, H, Q, K) or (B H, Q, K) -> same",
    .value = "softmax(scale scores + window + bias) over the keys that the mask allows, 0 "
             "elsewhere; applies the op masked_softmax",
    .gradient = "scale y (dy - sum(y dy)), exactly 0 where y is 0; of the bias the same without "
                "scale, summed over what was broadcast",
    .source = "Vaswani et al. 2017; Liu et al. 2021 for the window",
};

static Tensor *masked_softmax_forward(Node *n) {
    const Tensor *scores = n->in[0];
    if (!check_scores(scores, n->at.num_heads)) return NULL;
    const Shape full = shape_with_heads(scores->shape, n->at.num_heads);
    Tensor *lengths = ag_mask_lengths(n, 1, n->at.causal, full);
    const Mask mask = ag_mask_of(n, 1, lengths, full);
    Tensor *y = lengths ? tensor_make(scores->shape, scores->dtype) : NULL;
    if (y) tensor_masked_softmax(&mask, y, scores, n->at.scale);
    tensor_release(lengths);
    return y;
}

/* dx = s y (dy - sum(y dy)), the gradient of x in softmax(s x + ...) */
static void write_gradient(const Node *n, Tensor *dx, Tensor *dy, double s) {
    Kernel *const kernel = tensor_kernels()->masked_softmax_dx[dy->dtype];
    const int last = dy->shape.ndim - 1;
    if (dx) tensor_loop_rows(kernel, last, 3, (const Tensor *[]){dx, n->out, dy}, s);
}

static void masked_softmax_backward(const Node *n, Tensor *dy, Tensor **dx) {
    if (ag_needs(n, BIAS)) {
        Tensor *dbias = tensor_make(dy->shape, dy->dtype);
        write_gradient(n, dbias, dy, 1);
        dx[BIAS] = tensor_reshape_own(dbias, shape_with_heads(dy->shape, n->at.num_heads));
    }
    if (!ag_needs(n, SCORES)) return;
    dx[SCORES] = ag_buffer_like(dy);
    write_gradient(n, dx[SCORES], dy, n->at.scale);
}

const Op ag_op_masked_softmax = {
    .name = "masked_softmax",
    .text = &ag_text_attention_weights,
    .in = {{"scores", FLOAT},
           {"valid_lens", INT64 | OPTIONAL},
           {"keep", BOOLEAN | OPTIONAL},
           {"window", FLOAT | OPTIONAL},
           {"bias", FLOAT | OPTIONAL}},
    .forward = masked_softmax_forward,
    .backward = masked_softmax_backward,
    .reads = READS_OUT,
    .zero = "weight is 0",
    .weighs = true,
    .shown = SHOWN(scale),
    .grad_fn = "SoftmaxBackward0", /* as PyTorch prints: there a mask changes only the scores */
};

Tensor *ag_attention_weights(Tensor *scores, double scale, AttentionMask mask, int64_t num_heads) {
    Tensor *in[5] = {scores};
    ag_mask_inputs(mask, in + 1);
    const Attributes at = {.scale = scale, .num_heads = num_heads, .causal = mask.causal};
    return ag_apply(&ag_op_masked_softmax, 5, in, &at);
}

OP_TEXT(masked_softmax) = {
    .call = "ag_masked_softmax(scores, valid_lens)",
    .shapes = "(B, H, Q, K) or (N, Q, K), (B) or (B, Q) or NULL -> same as the scores",
    .value = "softmax over the keys before valid_lens, 0 for the others",
    .gradient = "y (dy - sum(y dy)), exactly 0 where y is 0",
};

Tensor *ag_masked_softmax(Tensor *scores, const Tensor *valid_lens) {
    return ag_attention_weights(scores, 1, (AttentionMask){.valid_lens = valid_lens}, 1);
}
