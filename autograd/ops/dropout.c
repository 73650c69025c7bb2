/* dropout.c - dropout: random elements become 0. An element is chosen, never multiplied by 0, since
 * 0 times NaN is NaN. */
#include "../op.h"

/* y = keep ? x / (1 - p) : 0, the same for a gradient. y NULL stays NULL. */
static Tensor *dropped(const Node *n, const Tensor *x, Tensor *y) {
    const Tensor *const operand[] = {y, x, n->saved[0]};
    if (y) tensor_loop_elements(tensor_kernels()->dropout[x->dtype], 3, operand, 1 - n->at.p);
    return y;
}

/* Bools in x's shape, true with probability p. As in PyTorch, they have x's order in memory, and
 * are drawn in it. */
static Tensor *draw_keep(const Tensor *x, double p) {
    int axes[TENSOR_MAX_DIMS], back[TENSOR_MAX_DIMS];
    Shape shape = x->shape;
    tensor_sort_by_stride(x, axes);
    for (int d = 0; d < shape.ndim; d++) {
        shape.dim[d] = x->shape.dim[axes[d]];
        back[axes[d]] = d;
    }
    Tensor *drawn = tensor_bernoulli(p, shape);
    Tensor *keep = drawn ? tensor_view_permute(drawn, back) : NULL;
    tensor_release(drawn);
    return keep;
}

OP_TEXT(dropout) = {
    .call = "ag_dropout(x, p)",
    .shapes = "(...) -> same",
    .value = "x / (1 - p) with probability 1 - p, else 0",
    .gradient = "dy / (1 - p) where kept, else 0",
    .source = "Srivastava et al. 2014",
};

/* p = 1 keeps nothing, and like PyTorch draws nothing. */
static Tensor *dropout_forward(Node *n) {
    const Tensor *x = n->in[0];
    if (!n->saved[0]) /* else tape_forward repeats an old draw */
        n->saved[0] = n->at.p < 1 ? draw_keep(x, 1 - n->at.p) : tensor_make_zeros(x->shape, BOOL);
    return dropped(n, x, tensor_make(x->shape, x->dtype));
}

static void dropout_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = dropped(n, dy, ag_buffer_like(dy));
}

DEFINE_OP(dropout, .in = {{"x", FLOAT}}, .forward = dropout_forward, .backward = dropout_backward,
          .draws = 1, .zero = "dropped", .shown = SHOWN(p), .grad_fn = "MulBackward0");

Tensor *ag_dropout(Tensor *x, double p) {
    if (!ag_check_present("dropout", x)) return NULL;
    if (!(p >= 0 && p <= 1))
        return tensor_fail("dropout: p is %g: it must be a probability, from 0 to 1", p);
    if (p == 0 && dtype_is_float(x->dtype)) return x;
    return apply1(&ag_op_dropout, x, (Attributes){.p = p});
}
