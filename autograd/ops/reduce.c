/* reduce.c - sums, means, variances and maxima over dimensions, and sums up to each element. */
#include "../op.h"

#include <math.h>
#include <string.h>

/* The reduced dimensions of x, listed, as flags: all of them where none is, as in PyTorch. False
 * and an error for a wrong list. */
static bool flag_dims(const char *op, const Tensor *x, Axes dims, bool *flags) {
    if (dims.n < 0 || dims.n > TENSOR_MAX_DIMS)
        return tensor_fail("%s: %d dimensions are named: there may be 0 to %d", op, dims.n,
                           TENSOR_MAX_DIMS);
    for (int d = 0; d < TENSOR_MAX_DIMS; d++) flags[d] = dims.n == 0;
    for (int i = 0; i < dims.n; i++) {
        int d = tensor_shape_dim_or_scalar(op, x->shape, dims.axis[i]);
        if (d < 0) return false;
        if (flags[d]) return tensor_fail("%s: dimension %d is named twice", op, dims.axis[i]);
        flags[d] = true;
    }
    return true;
}

/* y without the reduced dimensions, unless they are to be kept. Takes over y. */
static Tensor *drop_dims(const Node *n, Tensor *y) {
    if (!y || n->at.keepdim) return y;
    Shape shape = {0, {0}};
    for (int d = 0; d < y->shape.ndim; d++)
        if (!n->at.dims[d]) shape.dim[shape.ndim++] = y->shape.dim[d];
    return tensor_reshape_own(y, shape);
}

/* dy looked at in x's shape: every element of a group sees the gradient of its result. */
static Tensor *spread(const Node *n, const Tensor *dy) {
    Shape shape = n->in[0]->shape; /* with reduced dimensions of size 1 */
    for (int d = 0; d < shape.ndim; d++)
        if (n->at.dims[d]) shape.dim[d] = 1;
    Tensor *kept = tensor_reshape(dy, shape);
    Tensor *wide = kept ? tensor_view_expand(kept, n->in[0]->shape) : NULL;
    tensor_release(kept);
    return wide;
}

/* ---- sum and mean -------------------------------------------------------------------------- */

Tensor *ag_sum_forward(Node *n) { return drop_dims(n, tensor_sum_dims(n->in[0], n->at.dims)); }

/* dx = dy for every element that was summed */
void ag_sum_backward(const Node *n, const Tensor *dy, Tensor **dx) { dx[0] = spread(n, dy); }

/* y or dy, if there is one, divided by the number of elements of x behind each of its own. */
static Tensor *averaged(const Node *n, Tensor *y) {
    if (y) tensor_divide(y, (double)tensor_numel(n->in[0]) / (double)tensor_numel(y));
    return y;
}

Tensor *ag_mean_forward(Node *n) {
    return drop_dims(n, averaged(n, tensor_sum_dims(n->in[0], n->at.dims)));
}

/* dx = dy / count */
void ag_mean_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    Tensor *share = averaged(n, tensor_clone(dy));
    dx[0] = share ? spread(n, share) : NULL;
    tensor_release(share);
}

static Tensor *reduce_dims(const Op *op, Tensor *x, Axes dims, bool keepdim) {
    Attributes at = {.keepdim = keepdim};
    if (!ag_present(op->name, x) || !flag_dims(op->name, x, dims, at.dims)) return NULL;
    return apply1(op, x, at);
}

Tensor *ag_sum(Tensor *x) { return reduce_dims(&ag_op_sum, x, (Axes){0}, false); }
Tensor *ag_mean(Tensor *x) { return reduce_dims(&ag_op_mean, x, (Axes){0}, false); }
Tensor *ag_sum_dims(Tensor *x, Axes dims, bool keepdim) {
    return reduce_dims(&ag_op_sum_dims, x, dims, keepdim);
}
Tensor *ag_mean_dims(Tensor *x, Axes dims, bool keepdim) {
    return reduce_dims(&ag_op_mean_dims, x, dims, keepdim);
}

/* ---- along one dimension: variance, deviation, logsumexp ------------------------------------- */

/* A scalar counts as one row of one element. */
static Tensor *along(const Op *op, Tensor *x, int dim, bool keepdim) {
    const int d = ag_ready(op->name, x) ? tensor_shape_dim_or_scalar(op->name, x->shape, dim) : -1;
    if (d < 0) return NULL;
    if (x->shape.ndim == 0) return along(op, ag_reshape(x, SHAPE(1)), 0, false);
    Attributes at = {.dim = d, .keepdim = keepdim};
    at.dims[d] = true;
    return apply1(op, x, at);
}

static Tensor *reduced(const Node *n, Kernel *const *kernel) {
    const DType type = n->in[0]->dtype;
    return drop_dims(n, tensor_reduce(n->in[0], kernel[type], n->at.dim, type));
}

Tensor *ag_var_dim_forward(Node *n) { return reduced(n, tensor_kernels()->variance); }

/* f(x - c) dy, c, which is let go, and dy being one number for each group; f NULL is none. */
static Tensor *chained(const Node *n, Tensor *c, Kernel *const *f, const Tensor *dy) {
    const DType type = dy->dtype;
    Kernel *const *sub = tensor_kernels()->value[ELEMENTWISE_sub];
    Kernel *const *mul = tensor_kernels()->value[ELEMENTWISE_mul];
    Tensor *wide = c ? spread(n, dy) : NULL, *d = NULL;
    if (wide)
        d = tensor_map_elements(sub[type], wide->shape, type, 2, (const Tensor *[]){n->in[0], c},
                                0);
    if (d && f) tensor_loop_elements(f[type], 2, (const Tensor *[]){d, d}, 0);
    if (d) tensor_loop_elements(mul[type], 3, (const Tensor *[]){d, d, wide}, 0);
    tensor_release(c);
    tensor_release(wide);
    return d;
}

/* dx = dy 2 (x - mean) / (n - 1) */
void ag_var_dim_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    dx[0] = chained(n, averaged(n, tensor_sum_dims(n->in[0], n->at.dims)), NULL, dy);
    if (dx[0]) tensor_mul_(dx[0], 2 / (double)(n->in[0]->shape.dim[n->at.dim] - 1));
}

Tensor *ag_var_dim(Tensor *x, int dim, bool keepdim) {
    return along(&ag_op_var_dim, x, dim, keepdim);
}

Tensor *ag_std_dim_forward(Node *n) {
    Tensor *y = reduced(n, tensor_kernels()->variance);
    Kernel *const root = tensor_kernels()->value[ELEMENTWISE_sqrt][n->in[0]->dtype];
    if (y) tensor_loop_elements(root, 2, (const Tensor *[]){y, y}, 0);
    return y;
}

/* The variance is y^2, so it gets dy / (2 y); but 0 where y is 0, as in PyTorch. */
void ag_std_dim_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    const DType type = dy->dtype;
    const Tensor *y = n->out;
    Kernel *const root_dx = tensor_kernels()->vjp[ELEMENTWISE_sqrt][0][type];
    Tensor *flat =
        tensor_map_elements(tensor_kernels()->logical_not[type], y->shape, BOOL, 1, &y, 0);
    Tensor *d = tensor_map_elements(root_dx, y->shape, type, 3, (const Tensor *[]){y, y, dy}, 0);
    Kernel *const fill = tensor_kernels()->masked_fill[type];
    if (d) tensor_loop_elements(fill, 3, (const Tensor *[]){d, d, flat}, 0);
    if (d) ag_var_dim_backward(n, d, dx);
    tensor_release(flat);
    tensor_release(d);
}

Tensor *ag_std_dim(Tensor *x, int dim, bool keepdim) {
    return along(&ag_op_std_dim, x, dim, keepdim);
}

Tensor *ag_logsumexp_forward(Node *n) { return reduced(n, tensor_kernels()->logsumexp); }

/* dx = dy exp(x - y) */
void ag_logsumexp_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    dx[0] = chained(n, spread(n, n->out), tensor_kernels()->value[ELEMENTWISE_exp], dy);
}

Tensor *ag_logsumexp(Tensor *x, int dim) { return along(&ag_op_logsumexp, x, dim, false); }

Tensor *ag_logsumexp_dim(Tensor *x, int dim, bool keepdim) {
    return along(&ag_op_logsumexp, x, dim, keepdim);
}

/* ---- cumsum: y[i] = x[0] + ... + x[i] -------------------------------------------------------- */

/* The sums along dim of the node, from its end on if backwards. */
static Tensor *cumulated(const Node *n, const Tensor *x, bool backwards) {
    const int d = n->at.dim;
    Tensor *y = tensor_make(x->shape, dtype_is_float(x->dtype) ? x->dtype : I64);
    if (!y) return NULL;
    Tensor ends[] = {*y, *x}; /* views for the kernel alone */
    for (int i = 0; i < 2 && backwards && x->shape.ndim > 0; i++) {
        const int64_t last = (x->shape.dim[d] - 1) * ends[i].stride[d];
        ends[i].data = (char *)ends[i].data + last * dtype_size(ends[i].dtype);
        ends[i].stride[d] = -ends[i].stride[d];
    }
    tensor_loop_rows(tensor_kernels()->cumsum[x->dtype], d, 2,
                     (const Tensor *[]){&ends[0], &ends[1]}, 0);
    return y;
}

Tensor *ag_cumsum_forward(Node *n) { return cumulated(n, n->in[0], false); }

/* x[i] is in y[i] and all behind it: dx[i] = dy[i] + dy[i + 1] + ... */
void ag_cumsum_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    dx[0] = cumulated(n, dy, true);
}

Tensor *ag_cumsum(Tensor *x, int dim) {
    const int d =
        ag_present("cumsum", x) ? tensor_shape_dim_or_scalar("cumsum", x->shape, dim) : -1;
    return d < 0 ? NULL : apply1(&ag_op_cumsum, x, (Attributes){.dim = d});
}

/* ---- maxima and minima along one dimension --------------------------------------------------- */

/* Where a kernel, argmax or argmin, finds the extremes, I64, with the dimension kept. There must be
 * something to choose from. */
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

Tensor *ag_max_dim_forward(Node *n) { return extremes(n, tensor_kernels()->argmax); }
Tensor *ag_min_dim_forward(Node *n) { return extremes(n, tensor_kernels()->argmin); }

/* dx: zeros, and dy at the extremes */
void ag_extremes_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    Tensor *kept = tensor_reshape(dy, n->saved[0]->shape);
    dx[0] = kept ? ag_arrived(n, 0) : NULL;
    if (dx[0]) tensor_scatter_add_elements(dx[0], kept, n->at.dim, n->saved[0]);
    tensor_release(kept);
}

Tensor *ag_max_dim(Tensor *x, int dim, bool keepdim) {
    return along(&ag_op_max_dim, x, dim, keepdim);
}
Tensor *ag_min_dim(Tensor *x, int dim, bool keepdim) {
    return along(&ag_op_min_dim, x, dim, keepdim);
}

Tensor *ag_argmax_forward(Node *n) { return drop_dims(n, positions(n, tensor_kernels()->argmax)); }

Tensor *ag_argmax(Tensor *x, int dim) { return along(&ag_op_argmax, x, dim, false); }

Tensor *ag_argmax_dim(Tensor *x, int dim, bool keepdim) {
    return along(&ag_op_argmax, x, dim, keepdim);
}

/* ---- the maximum of all elements ------------------------------------------------------------- */

static bool has_maximum(const char *op, const Tensor *x) {
    return tensor_numel(x) > 0 || tensor_fail("%s: x is %s: it is empty and has no maximum", op,
                                              tensor_shape_text(x->shape));
}

Tensor *ag_max_forward(Node *n) {
    const Tensor *x = n->in[0];
    Tensor *row = has_maximum("max", x) ? tensor_reshape(x, SHAPE(tensor_numel(x))) : NULL;
    Tensor *index = row ? tensor_reduce(row, tensor_kernels()->argmax[x->dtype], 0, I64) : NULL;
    Tensor *y = index ? tensor_make(SHAPE(1), x->dtype) : NULL;
    if (y) tensor_gather_elements(y, row, 0, index);
    tensor_release(row);
    tensor_release(index);
    return tensor_reshape_own(y, SCALAR);
}

/* All elements equal to y, or all NaNs if y is one, share the gradient: dx = dy / count, 0
 * elsewhere. */
void ag_max_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    const Tensor *x = n->in[0], *y = n->out;
    const bool is_nan = isnan(tensor_read_element(y, 0));
    Kernel *const compare =
        tensor_kernels()->value[is_nan ? ELEMENTWISE_ne : ELEMENTWISE_eq][x->dtype];
    const Tensor *const operands[] = {x, is_nan ? x : y};
    Tensor *chosen = tensor_map_elements(compare, x->shape, BOOL, 2, operands, 0), *share = NULL;
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

Tensor *ag_max(Tensor *x) { return apply1(&ag_op_max, x, (Attributes){0}); }

Tensor *ag_argmax_all(Tensor *x) {
    if (!ag_ready("argmax_all", x) || !has_maximum("argmax_all", x)) return NULL;
    Tensor *row = ag_flatten(x, 0, -1), *y = ag_argmax(row, 0);
    if (row && row->storage != x->storage) ag_let_go(row);
    return y;
}
