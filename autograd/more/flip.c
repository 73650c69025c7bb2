/* flip.c - the elements in reverse order along some dimensions. */
#include "../reductions.h"

/* A copy of x. What is copied begins at x's last element in the flipped dimensions, and its strides
 * lead backwards. */
static Tensor *flipped(const Node *n, const Tensor *x) {
    Tensor from = *x;
    int64_t last = 0;
    if (tensor_numel(x) == 0) return tensor_make(x->shape, x->dtype);
    for (int d = 0; d < x->shape.ndim; d++) {
        if (!n->at.dims[d]) continue;
        last += (x->shape.dim[d] - 1) * x->stride[d];
        from.stride[d] = -x->stride[d];
    }
    from.data = (char *)x->data + last * dtype_size(x->dtype);
    return tensor_convert(&from, x->dtype);
}

OP_TEXT(flip) = {
    .call = "ag_flip(x, dims)",
    .shapes = "(...) -> same",
    .value = "x in reverse order along each of these dimensions",
    .gradient = "dy in reverse order along them",
};

static Tensor *flip_forward(Node *n) { return flipped(n, n->in[0]); }

static void flip_backward(const Node *n, Tensor *dy, Tensor **dx) { dx[0] = flipped(n, dy); }

DEFINE_OP(flip, .in = {{"x", SAME}}, .forward = flip_forward, .backward = flip_backward,
          .grad_fn = "FlipBackward0");

Tensor *ag_flip(Tensor *x, Axes dims) {
    Attributes at = {0};
    if (!ag_check_present("flip", x) || !ag_flag_dims("flip", x, dims, at.dims)) return NULL;
    return apply1(&ag_op_flip, x, at);
}
