/* reductions.c - sums and means over dimensions, and the position of a maximum. */
#include "../reductions.h"

#include <string.h>

bool ag_flag_dims(const char *op, const Tensor *x, Axes dims, bool *flags) {
    if (dims.n < 0 || dims.n > TENSOR_MAX_DIMS)
        return tensor_fail("%s: %d dimensions are named: there may be 0 to %d", op, dims.n,
                           TENSOR_MAX_DIMS);
    for (int d = 0; d < TENSOR_MAX_DIMS; d++) flags[d] = false;
    for (int i = 0; i < dims.n; i++) {
        int d = tensor_shape_dim_or_scalar(op, x->shape, dims.axis[i]);
        if (d < 0) return false;
        if (flags[d])
            return tensor_fail("%s: x is %s: dimension %d is named twice", op,
                               tensor_shape_text(x->shape), d);
        flags[d] = true;
    }
    return true;
}

Tensor *ag_drop_dims(const Node *n, Tensor *y) {
    if (!y || n->at.keepdim) return y;
    Shape shape = {0, {0}};
    for (int d = 0; d < y->shape.ndim; d++)
        if (!n->at.dims[d]) shape.dim[shape.ndim++] = y->shape.dim[d];
    return tensor_reshape_own(y, shape);
}

Tensor *ag_expand_to_x(const Node *n, const Tensor *dy) {
    Shape shape = n->in[0]->shape; /* with size 1 for each reduced dimension */
    for (int d = 0; d < shape.ndim; d++)
        if (n->at.dims[d]) shape.dim[d] = 1;
    Tensor *kept = tensor_reshape(dy, shape);
    Tensor *wide = kept ? tensor_view_expand(kept, n->in[0]->shape) : NULL;
    tensor_release(kept);
    return wide;
}

/* As in PyTorch, an empty list means all dimensions. */
static Tensor *reduce_dims(const Op *op, Tensor *x, Axes dims, bool keepdim) {
    Attributes at = {.keepdim = keepdim};
    if (!ag_check_present(op->name, x) || !ag_flag_dims(op->name, x, dims, at.dims)) return NULL;
    if (dims.n == 0) memset(at.dims, true, sizeof at.dims);
    return apply1(op, x, at);
}

/* ---- sum ----------------------------------------------------------------------------------- */

OP_TEXT(sum) = {
    .call = "ag_sum(x)",
    .shapes = "(...) -> ()",
    .value = "the sum of all elements; int64 for int64 and bool",
    .gradient = "dy for each element",
};

static Tensor *sum_forward(Node *n) {
    return ag_drop_dims(n, tensor_sum_dims(n->in[0], n->at.dims));
}

static void sum_backward(const Node *n, Tensor *dy, Tensor **dx) { dx[0] = ag_expand_to_x(n, dy); }

DEFINE_OP(sum, .in = {{"x", SAME}}, .forward = sum_forward, .backward = sum_backward,
          .grad_fn = "SumBackward0");

Tensor *ag_sum(Tensor *x) { return reduce_dims(&ag_op_sum, x, (Axes){0}, false); }

OP_TEXT(sum_dims) = {
    .call = "ag_sum_dims(x, dims, keepdim)",
    .shapes = "(N, M, K) -> (M), or (1, M, 1) with keepdim, for dims 0, 2",
    .value = "sums over dimensions; int64 for int64 and bool",
    .gradient = "dy for each element summed",
};

DEFINE_OP(sum_dims, .in = {{"x", SAME}}, .forward = sum_forward, .backward = sum_backward,
          .grad_fn = "SumBackward1");

Tensor *ag_sum_dims(Tensor *x, Axes dims, bool keepdim) {
    return reduce_dims(&ag_op_sum_dims, x, dims, keepdim);
}

/* ---- mean ---------------------------------------------------------------------------------- */

/* y (or dy) divided by the number of elements of x for each element of y. NULL stays NULL. */
static Tensor *divide_by_count(const Node *n, Tensor *y) {
    if (y) tensor_divide(y, (double)tensor_numel(n->in[0]) / (double)tensor_numel(y));
    return y;
}

OP_TEXT(mean) = {
    .call = "ag_mean(x)",
    .shapes = "(...) -> ()",
    .value = "the mean of all elements",
    .gradient = "dy / count",
};

static Tensor *mean_forward(Node *n) {
    return ag_drop_dims(n, divide_by_count(n, tensor_sum_dims(n->in[0], n->at.dims)));
}

static void mean_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Tensor *share = divide_by_count(n, tensor_clone(dy));
    dx[0] = share ? ag_expand_to_x(n, share) : NULL;
    tensor_release(share);
}

DEFINE_OP(mean, .in = {{"x", FLOAT}}, .forward = mean_forward, .backward = mean_backward,
          .grad_fn = "MeanBackward0");

Tensor *ag_mean(Tensor *x) { return reduce_dims(&ag_op_mean, x, (Axes){0}, false); }

OP_TEXT(mean_dims) = {
    .call = "ag_mean_dims(x, dims, keepdim)",
    .shapes = "(N, M, K) -> (M), or (1, M, 1) with keepdim, for dims 0, 2",
    .value = "means over dimensions",
    .gradient = "dy / count",
};

DEFINE_OP(mean_dims, .in = {{"x", FLOAT}}, .forward = mean_forward, .backward = mean_backward,
          .grad_fn = "MeanBackward1");

Tensor *ag_mean_dims(Tensor *x, Axes dims, bool keepdim) {
    return reduce_dims(&ag_op_mean_dims, x, dims, keepdim);
}

/* ---- along one dimension --------------------------------------------------------------------- */

Tensor *ag_reduce_dim(const Op *op, Tensor *x, int dim, bool keepdim) {
    const int d =
        ag_check_ready(op->name, x) ? tensor_shape_dim_or_scalar(op->name, x->shape, dim) : -1;
    if (d < 0) return NULL;
    if (x->shape.ndim == 0) return ag_reduce_dim(op, ag_reshape(x, SHAPE(1)), 0, false);
    Attributes at = {.dim = d, .keepdim = keepdim};
    at.dims[d] = true;
    return apply1(op, x, at);
}

/* ---- argmax ---------------------------------------------------------------------------------- */

Tensor *ag_positions(const Node *n, Kernel *const *kernel, const char *what) {
    const Tensor *x = n->in[0];
    if (x->shape.dim[n->at.dim] == 0)
        return tensor_fail("%s: x is %s: dimension %d is empty and has no %s", n->op->name,
                           tensor_shape_text(x->shape), n->at.dim, what);
    return tensor_reduce(x, kernel[x->dtype], n->at.dim, I64);
}

OP_TEXT(argmax) = {
    .call = "ag_argmax(x, dim)",
    .shapes = "(..., N, ...) -> (..., ...)",
    .value = "the position of the first maximum",
    .gradient = "none: the result is int64",
};

static Tensor *argmax_forward(Node *n) {
    return ag_drop_dims(n, ag_positions(n, tensor_kernels()->argmax, "maximum"));
}

DEFINE_OP(argmax, .in = {{"x", NUMBER}}, .forward = argmax_forward);

Tensor *ag_argmax(Tensor *x, int dim) { return ag_reduce_dim(&ag_op_argmax, x, dim, false); }
