/* statistics.c - variances, deviations and cumulative sums along a dimension. */
#include "../../tensor/more/more_kernels.h"
#include "../reductions.h"

static Tensor *reduced_rows(const Node *n, Kernel *const *kernel) {
    const DType type = n->in[0]->dtype;
    return ag_drop_dims(n, tensor_reduce(n->in[0], kernel[type], n->at.dim, type));
}

OP_TEXT(var_dim) = {
    .call = "ag_var_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "sum (x - mean)^2 / (N - 1)",
    .gradient = "2 (x - mean) / (N - 1) dy",
};

static Tensor *var_dim_forward(Node *n) { return reduced_rows(n, tensor_more_kernels()->variance); }

/* dx = kernel(x, dy), where dy has one number for each row along the reduced dimension. */
static Tensor *rows_dx(const Node *n, Kernel *const *kernel, const Tensor *dy) {
    const Tensor *x = n->in[0];
    Shape shape = x->shape;
    shape.dim[n->at.dim] = 1;
    Tensor *kept = tensor_reshape(dy, shape);
    Tensor *dx = kept ? tensor_make(x->shape, x->dtype) : NULL;
    if (dx) tensor_loop_rows(kernel[x->dtype], n->at.dim, 3, (const Tensor *[]){dx, x, kept}, 0);
    tensor_release(kept);
    return dx;
}

static void var_dim_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = rows_dx(n, tensor_more_kernels()->variance_dx, dy);
}

DEFINE_OP(var_dim, .in = {{"x", FLOAT}}, .forward = var_dim_forward, .backward = var_dim_backward,
          .reads = READS_IN0, .grad_fn = "VarBackward0");

Tensor *ag_var_dim(Tensor *x, int dim, bool keepdim) {
    return ag_reduce_dim(&ag_op_var_dim, x, dim, keepdim);
}

OP_TEXT(std_dim) = {
    .call = "ag_std_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "sqrt(sum (x - mean)^2 / (N - 1))",
    .gradient = "(x - mean) / ((N - 1) y) dy, 0 where y is 0",
};

static Tensor *std_dim_forward(Node *n) {
    return reduced_rows(n, tensor_more_kernels()->standard_deviation);
}

static void std_dim_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = rows_dx(n, tensor_more_kernels()->standard_deviation_dx, dy);
}

DEFINE_OP(std_dim, .in = {{"x", FLOAT}}, .forward = std_dim_forward, .backward = std_dim_backward,
          .reads = READS_IN0, .grad_fn = "StdBackward0");

Tensor *ag_std_dim(Tensor *x, int dim, bool keepdim) {
    return ag_reduce_dim(&ag_op_std_dim, x, dim, keepdim);
}

/* ---- cumsum -------------------------------------------------------------------------------- */

/* The cumulative sums along dim; from the last element to the first if backwards. */
static Tensor *cumulated(const Node *n, const Tensor *x, bool backwards) {
    const int d = n->at.dim;
    Tensor *y = tensor_make(x->shape, dtype_is_float(x->dtype) ? x->dtype : I64);
    if (!y) return NULL;
    Tensor ends[2]; /* views for the kernel; with backwards, from the last element */
    ends[0] = *y;
    ends[1] = *x;
    if (backwards && x->shape.ndim > 0)
        for (int i = 0; i < 2; i++) {
            const int64_t last = (x->shape.dim[d] - 1) * ends[i].stride[d];
            ends[i].data = (char *)ends[i].data + last * dtype_size(ends[i].dtype);
            ends[i].stride[d] = -ends[i].stride[d];
        }
    tensor_loop_rows(tensor_more_kernels()->cumsum[x->dtype], d, 2,
                     (const Tensor *[]){&ends[0], &ends[1]}, 0);
    return y;
}

OP_TEXT(cumsum) = {
    .call = "ag_cumsum(x, dim)",
    .shapes = "(..., N, ...) -> same",
    .value = "y[i] = x[0] + ... + x[i]; int64 for int64 and bool",
    .gradient = "dy[i] + dy[i + 1] + ...",
};

static Tensor *cumsum_forward(Node *n) { return cumulated(n, n->in[0], false); }

/* x[i] is a term of y[i], y[i + 1] and so on. */
static void cumsum_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = cumulated(n, dy, true);
}

DEFINE_OP(cumsum, .in = {{"x", SAME}}, .forward = cumsum_forward, .backward = cumsum_backward,
          .grad_fn = "CumsumBackward0");

Tensor *ag_cumsum(Tensor *x, int dim) {
    const int d =
        ag_check_present("cumsum", x) ? tensor_shape_dim_or_scalar("cumsum", x->shape, dim) : -1;
    return d < 0 ? NULL : apply1(&ag_op_cumsum, x, (Attributes){.dim = d});
}
