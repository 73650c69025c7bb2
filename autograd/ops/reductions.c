/* reductions.c - sums, means, variances and maxima over dimensions, and cumulative sums. */
#include "../op.h"

#include <math.h>
#include <string.h>

/* flags[d]: is dimension d of x in the list? As in PyTorch, an empty list means all dimensions.
 * False with an error for a wrong list. */
static bool flag_dims(const char *op, const Tensor *x, Axes dims, bool *flags) {
    if (dims.n < 0 || dims.n > TENSOR_MAX_DIMS)
        return tensor_fail("%s: %d dimensions are named: there may be 0 to %d", op, dims.n,
                           TENSOR_MAX_DIMS);
    for (int d = 0; d < TENSOR_MAX_DIMS; d++) flags[d] = dims.n == 0;
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

/* y without the reduced dimensions, or y itself with keepdim. Takes over y. */
static Tensor *drop_dims(const Node *n, Tensor *y) {
    if (!y || n->at.keepdim) return y;
    Shape shape = {0, {0}};
    for (int d = 0; d < y->shape.ndim; d++)
        if (!n->at.dims[d]) shape.dim[shape.ndim++] = y->shape.dim[d];
    return tensor_reshape_own(y, shape);
}

/* dy (or another tensor of the result's shape) expanded to x's shape: every element of x gets the
 * number of the result to which it was reduced. */
static Tensor *expand_to_x(const Node *n, const Tensor *dy) {
    Shape shape = n->in[0]->shape; /* with size 1 for each reduced dimension */
    for (int d = 0; d < shape.ndim; d++)
        if (n->at.dims[d]) shape.dim[d] = 1;
    Tensor *kept = tensor_reshape(dy, shape);
    Tensor *wide = kept ? tensor_view_expand(kept, n->in[0]->shape) : NULL;
    tensor_release(kept);
    return wide;
}

static Tensor *reduce_dims(const Op *op, Tensor *x, Axes dims, bool keepdim) {
    Attributes at = {.keepdim = keepdim};
    if (!ag_check_present(op->name, x) || !flag_dims(op->name, x, dims, at.dims)) return NULL;
    return apply1(op, x, at);
}

/* ---- sum ----------------------------------------------------------------------------------- */

OP_TEXT(sum) = {
    .call = "ag_sum(x)",
    .shapes = "(...) -> ()",
    .value = "the sum of all elements; int64 for int64 and bool",
    .gradient = "dy for each element",
};

static Tensor *sum_forward(Node *n) { return drop_dims(n, tensor_sum_dims(n->in[0], n->at.dims)); }

static void sum_backward(const Node *n, Tensor *dy, Tensor **dx) { dx[0] = expand_to_x(n, dy); }

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
    return drop_dims(n, divide_by_count(n, tensor_sum_dims(n->in[0], n->at.dims)));
}

static void mean_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Tensor *share = divide_by_count(n, tensor_clone(dy));
    dx[0] = share ? expand_to_x(n, share) : NULL;
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

/* ---- along one dimension: variance, deviation, logsumexp ----------------------------------- */

/* Applies an op that reduces one dimension. A scalar counts as a row of one element. */
static Tensor *reduce_dim(const Op *op, Tensor *x, int dim, bool keepdim) {
    const int d =
        ag_check_ready(op->name, x) ? tensor_shape_dim_or_scalar(op->name, x->shape, dim) : -1;
    if (d < 0) return NULL;
    if (x->shape.ndim == 0) return reduce_dim(op, ag_reshape(x, SHAPE(1)), 0, false);
    Attributes at = {.dim = d, .keepdim = keepdim};
    at.dims[d] = true;
    return apply1(op, x, at);
}

static Tensor *reduced(const Node *n, Kernel *const *kernel) {
    const DType type = n->in[0]->dtype;
    return drop_dims(n, tensor_reduce(n->in[0], kernel[type], n->at.dim, type));
}

/* f(x - c) dy, where c and dy have one number for each reduced group. Takes over c. */
static Tensor *times_dy(const Node *n, Tensor *c, Kernel *const *f, const Tensor *dy) {
    const DType type = dy->dtype;
    Kernel *const *sub = tensor_kernels()->value[ELEMENTWISE_sub];
    Kernel *const *mul = tensor_kernels()->value[ELEMENTWISE_mul];
    Tensor *wide = c ? expand_to_x(n, dy) : NULL;
    Tensor *d = NULL;
    if (wide)
        d = tensor_map_elements(sub[type], wide->shape, type, 2, (const Tensor *[]){n->in[0], c},
                                0);
    if (d) tensor_loop_elements(f[type], 2, (const Tensor *[]){d, d}, 0);
    if (d) tensor_loop_elements(mul[type], 3, (const Tensor *[]){d, d, wide}, 0);
    tensor_release(c);
    tensor_release(wide);
    return d;
}

OP_TEXT(var_dim) = {
    .call = "ag_var_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "sum (x - mean)^2 / (N - 1)",
    .gradient = "2 (x - mean) / (N - 1) dy",
};

static Tensor *var_dim_forward(Node *n) { return reduced(n, tensor_kernels()->variance); }

/* dx = kernel(x, dy), where dy has one number for each row along the reduced dimension. */
static Tensor *rows_dx(const Node *n, Kernel *const *kernel, const Tensor *dy) {
    const Tensor *x = n->in[0];
    Shape shape = x->shape;
    shape.dim[n->at.dim] = 1;
    Tensor *kept = tensor_reshape(dy, shape);
    Tensor *dx = kept ? tensor_make(x->shape, x->dtype) : NULL;
    if (dx)
        tensor_loop_rows(kernel[x->dtype], n->at.dim, 3, (const Tensor *[]){dx, x, kept}, 0);
    tensor_release(kept);
    return dx;
}

static void var_dim_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = rows_dx(n, tensor_kernels()->variance_dx, dy);
}

DEFINE_OP(var_dim, .in = {{"x", FLOAT}}, .forward = var_dim_forward, .backward = var_dim_backward,
          .reads = READS_IN0, .grad_fn = "VarBackward0");

Tensor *ag_var_dim(Tensor *x, int dim, bool keepdim) {
    return reduce_dim(&ag_op_var_dim, x, dim, keepdim);
}

OP_TEXT(std_dim) = {
    .call = "ag_std_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "sqrt(sum (x - mean)^2 / (N - 1))",
    .gradient = "(x - mean) / ((N - 1) y) dy, 0 where y is 0",
};

static Tensor *std_dim_forward(Node *n) {
    return reduced(n, tensor_kernels()->standard_deviation);
}

static void std_dim_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = rows_dx(n, tensor_kernels()->standard_deviation_dx, dy);
}

DEFINE_OP(std_dim, .in = {{"x", FLOAT}}, .forward = std_dim_forward, .backward = std_dim_backward,
          .reads = READS_IN0, .grad_fn = "StdBackward0");

Tensor *ag_std_dim(Tensor *x, int dim, bool keepdim) {
    return reduce_dim(&ag_op_std_dim, x, dim, keepdim);
}

OP_TEXT(logsumexp) = {
    .call = "ag_logsumexp(x, dim)",
    .shapes = "(..., N, ...) -> (..., ...)",
    .value = "log sum exp(x)",
    .gradient = "exp(x - y) dy",
};

static Tensor *logsumexp_forward(Node *n) { return reduced(n, tensor_kernels()->logsumexp); }

static void logsumexp_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = times_dy(n, expand_to_x(n, n->out), tensor_kernels()->value[ELEMENTWISE_exp], dy);
}

DEFINE_OP(logsumexp, .in = {{"x", FLOAT}}, .forward = logsumexp_forward,
          .backward = logsumexp_backward, .reads = READS_IN0 | READS_OUT,
          .grad_fn = "LogsumexpBackward0");

Tensor *ag_logsumexp(Tensor *x, int dim) { return reduce_dim(&ag_op_logsumexp, x, dim, false); }

OP_TEXT(logsumexp_dim) = {
    .call = "ag_logsumexp_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "log sum exp(x); applies the op logsumexp",
    .gradient = "exp(x - y) dy",
};

Tensor *ag_logsumexp_dim(Tensor *x, int dim, bool keepdim) {
    return reduce_dim(&ag_op_logsumexp, x, dim, keepdim);
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
    for (int i = 0; i < 2 && backwards && x->shape.ndim > 0; i++) {
        const int64_t last = (x->shape.dim[d] - 1) * ends[i].stride[d];
        ends[i].data = (char *)ends[i].data + last * dtype_size(ends[i].dtype);
        ends[i].stride[d] = -ends[i].stride[d];
    }
    tensor_loop_rows(tensor_kernels()->cumsum[x->dtype], d, 2,
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

/* ---- maxima and minima along one dimension --------------------------------------------------- */

/* The positions that the kernel, argmax or argmin, finds: I64, with the dimension kept. An error if
 * the dimension is empty. */
static Tensor *positions(const Node *n, Kernel *const *kernel) {
    const Tensor *x = n->in[0];
    if (x->shape.dim[n->at.dim] == 0)
        return tensor_fail("%s: x is %s: dimension %d is empty and has no %s", n->op->name,
                           tensor_shape_text(x->shape), n->at.dim,
                           n->op == &ag_op_min_dim ? "minimum" : "maximum");
    return tensor_reduce(x, kernel[x->dtype], n->at.dim, I64);
}

static Tensor *extremes(Node *n, Kernel *const *kernel) {
    const Tensor *x = n->in[0];
    n->saved[0] = positions(n, kernel);
    Tensor *y = n->saved[0] ? tensor_make(n->saved[0]->shape, x->dtype) : NULL;
    if (y) tensor_gather_elements(y, x, n->at.dim, n->saved[0]);
    return drop_dims(n, y);
}

static void extremes_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Tensor *kept = tensor_reshape(dy, n->saved[0]->shape);
    dx[0] = kept ? ag_gradient_buffer(n, 0) : NULL;
    if (dx[0]) tensor_scatter_add_elements(dx[0], kept, n->at.dim, n->saved[0]);
    tensor_release(kept);
}

OP_TEXT(max_dim) = {
    .call = "ag_max_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "the maximum",
    .gradient = "dy at the first maximum",
};

static Tensor *max_dim_forward(Node *n) { return extremes(n, tensor_kernels()->argmax); }

DEFINE_OP(max_dim, .in = {{"x", SAME}}, .forward = max_dim_forward, .backward = extremes_backward,
          .grad_fn = "MaxBackward0");

Tensor *ag_max_dim(Tensor *x, int dim, bool keepdim) {
    return reduce_dim(&ag_op_max_dim, x, dim, keepdim);
}

OP_TEXT(min_dim) = {
    .call = "ag_min_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "the minimum",
    .gradient = "dy at the first minimum",
};

static Tensor *min_dim_forward(Node *n) { return extremes(n, tensor_kernels()->argmin); }

DEFINE_OP(min_dim, .in = {{"x", SAME}}, .forward = min_dim_forward, .backward = extremes_backward,
          .grad_fn = "MinBackward0");

Tensor *ag_min_dim(Tensor *x, int dim, bool keepdim) {
    return reduce_dim(&ag_op_min_dim, x, dim, keepdim);
}

OP_TEXT(argmax) = {
    .call = "ag_argmax(x, dim)",
    .shapes = "(..., N, ...) -> (..., ...)",
    .value = "the position of the first maximum",
    .gradient = "none: the result is int64",
};

static Tensor *argmax_forward(Node *n) {
    return drop_dims(n, positions(n, tensor_kernels()->argmax));
}

DEFINE_OP(argmax, .in = {{"x", NUMBER}}, .forward = argmax_forward);

Tensor *ag_argmax(Tensor *x, int dim) { return reduce_dim(&ag_op_argmax, x, dim, false); }

OP_TEXT(argmax_dim) = {
    .call = "ag_argmax_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "the position of the first maximum; applies the op argmax",
    .gradient = "none: the result is int64",
};

Tensor *ag_argmax_dim(Tensor *x, int dim, bool keepdim) {
    return reduce_dim(&ag_op_argmax, x, dim, keepdim);
}

/* ---- the maximum of all elements ------------------------------------------------------------- */

static bool check_has_elements(const char *op, const Tensor *x) {
    return tensor_numel(x) > 0 || tensor_fail("%s: x is %s: it is empty and has no maximum", op,
                                              tensor_shape_text(x->shape));
}

OP_TEXT(max) = {
    .call = "ag_max(x)",
    .shapes = "(...) -> ()",
    .value = "the maximum of all elements",
    .gradient = "dy divided by the number of maxima, at each maximum, 0 elsewhere",
};

static Tensor *max_forward(Node *n) {
    const Tensor *x = n->in[0];
    Tensor *row = check_has_elements("max", x) ? tensor_reshape(x, SHAPE(tensor_numel(x))) : NULL;
    Tensor *index = row ? tensor_reduce(row, tensor_kernels()->argmax[x->dtype], 0, I64) : NULL;
    Tensor *y = index ? tensor_make(SHAPE(1), x->dtype) : NULL;
    if (y) tensor_gather_elements(y, row, 0, index);
    tensor_release(row);
    tensor_release(index);
    return tensor_reshape_own(y, SCALAR);
}

/* All elements equal to y, or all NaNs if y is one, share the gradient: dx = dy / count, 0
 * elsewhere. */
static void max_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const Tensor *x = n->in[0];
    const Tensor *y = n->out;
    const bool is_nan = isnan(tensor_read_element(y, 0));
    Kernel *const compare =
        tensor_kernels()->value[is_nan ? ELEMENTWISE_ne : ELEMENTWISE_eq][x->dtype];
    const Tensor *const operands[] = {x, is_nan ? x : y};
    Tensor *chosen = tensor_map_elements(compare, x->shape, BOOL, 2, operands, 0);
    Tensor *share = NULL;
    bool all[TENSOR_MAX_DIMS];
    memset(all, true, sizeof all);
    Tensor *sum = chosen ? tensor_sum_dims(chosen, all) : NULL;
    if (sum) share = tensor_clone(dy);
    if (share) {
        double zero = 0; /* its bits are 0 in both float types */
        const Tensor nothing = {.dtype = dy->dtype, .data = &zero};
        tensor_divide(share, tensor_read_element(sum, 0));
        dx[0] = tensor_map_elements(tensor_kernels()->where[dy->dtype], x->shape, dy->dtype, 3,
                                    (const Tensor *[]){chosen, share, &nothing}, 0);
    }
    tensor_release(chosen);
    tensor_release(sum);
    tensor_release(share);
}

DEFINE_OP(max, .in = {{"x", SAME}}, .forward = max_forward, .backward = max_backward,
          .reads = READS_IN0 | READS_OUT, .grad_fn = "MaxBackward1");

Tensor *ag_max(Tensor *x) { return apply1(&ag_op_max, x, (Attributes){0}); }

OP_TEXT(argmax_all) = {
    .call = "ag_argmax_all(x)",
    .shapes = "(...) -> ()",
    .value = "the position of the first maximum of all elements, row-major",
    .gradient = "none: the result is int64",
};

Tensor *ag_argmax_all(Tensor *x) {
    if (!ag_check_ready("argmax_all", x) || !check_has_elements("argmax_all", x)) return NULL;
    Tensor *row = ag_flatten(x, 0, -1);
    Tensor *y = ag_argmax(row, 0);
    if (row && row->storage != x->storage) ag_let_go(row);
    return y;
}
