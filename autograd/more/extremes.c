/* extremes.c - maxima and minima, and where they are. */
#include "../../tensor/more/more_kernels.h"
#include "../reductions.h"

#include <math.h>
#include <string.h>

/* ---- along one dimension --------------------------------------------------------------------- */

static Tensor *extremes(Node *n, Kernel *const *kernel, const char *what) {
    const Tensor *x = n->in[0];
    n->saved[0] = ag_positions(n, kernel, what);
    Tensor *y = n->saved[0] ? tensor_make(n->saved[0]->shape, x->dtype) : NULL;
    if (y) tensor_gather_elements(y, x, n->at.dim, n->saved[0]);
    return ag_drop_dims(n, y);
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

static Tensor *max_dim_forward(Node *n) { return extremes(n, tensor_kernels()->argmax, "maximum"); }

DEFINE_OP(max_dim, .in = {{"x", SAME}}, .forward = max_dim_forward, .backward = extremes_backward,
          .grad_fn = "MaxBackward0");

Tensor *ag_max_dim(Tensor *x, int dim, bool keepdim) {
    return ag_reduce_dim(&ag_op_max_dim, x, dim, keepdim);
}

OP_TEXT(min_dim) = {
    .call = "ag_min_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "the minimum",
    .gradient = "dy at the first minimum",
};

static Tensor *min_dim_forward(Node *n) {
    return extremes(n, tensor_more_kernels()->argmin, "minimum");
}

DEFINE_OP(min_dim, .in = {{"x", SAME}}, .forward = min_dim_forward, .backward = extremes_backward,
          .grad_fn = "MinBackward0");

Tensor *ag_min_dim(Tensor *x, int dim, bool keepdim) {
    return ag_reduce_dim(&ag_op_min_dim, x, dim, keepdim);
}

OP_TEXT(argmax_dim) = {
    .call = "ag_argmax_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "the position of the first maximum; applies the op argmax",
    .gradient = "none: the result is int64",
};

Tensor *ag_argmax_dim(Tensor *x, int dim, bool keepdim) {
    return ag_reduce_dim(&ag_op_argmax, x, dim, keepdim);
}

OP_TEXT(argmin) = {
    .call = "ag_argmin(x, dim)",
    .shapes = "(..., N, ...) -> (..., ...)",
    .value = "the position of the first minimum",
    .gradient = "none: the result is int64",
};

static Tensor *argmin_forward(Node *n) {
    return ag_drop_dims(n, ag_positions(n, tensor_more_kernels()->argmin, "minimum"));
}

DEFINE_OP(argmin, .in = {{"x", NUMBER}}, .forward = argmin_forward);

Tensor *ag_argmin(Tensor *x, int dim) { return ag_reduce_dim(&ag_op_argmin, x, dim, false); }

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
        Number memory;
        const Tensor nothing = tensor_scalar(dy->dtype, 0, &memory);
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

/* ---- the largest elements -------------------------------------------------------------------- */

OP_TEXT(topk) = {
    .call = "ag_topk(x, k, dim, indices)",
    .shapes = "(..., N, ...) -> (..., k, ...), twice",
    .value = "the k largest elements along dim, the largest first, and their positions",
    .gradient = "dy at the chosen elements, 0 elsewhere",
};

/* The positions of the k largest elements along dim. tensor_sort sorts in ascending order, and
 * equals keep their order: so it gets x backwards, and its result is read backwards. */
static Tensor *largest(Tensor *x, int64_t k, int dim) {
    if (x->shape.ndim == 0) return tape_own(tensor_zeros_of(SCALAR, I64));
    const int64_t size = x->shape.dim[dim];
    if (!tape_begin_no_grad()) return NULL;
    Tensor *order = NULL;
    tensor_release(tensor_sort(ag_flip(ag_transpose(x, dim, -1), AXES(-1)), &order));
    Tensor *last = ag_slice(tape_own(order), -1, size - k, size);
    Tensor *from_end = ag_transpose(ag_flip(last, AXES(-1)), dim, -1);
    return tape_end_keeping(ag_add_scalar(ag_neg(from_end), (double)(size - 1)));
}

Tensor *ag_topk(Tensor *x, int64_t k, int dim, Tensor **indices) {
    if (indices) *indices = NULL;
    const int d =
        ag_check_ready("topk", x) ? tensor_shape_dim_or_scalar("topk", x->shape, dim) : -1;
    if (d < 0) return NULL;
    const bool is_scalar = x->shape.ndim == 0;
    const int64_t least = is_scalar, most = is_scalar ? 1 : x->shape.dim[d];
    if (k < least || k > most)
        return tensor_fail("topk: x is %s: k is %lld and must be from %lld to %lld, the size of "
                           "dimension %d",
                           tensor_shape_text(x->shape), (long long)k, (long long)least,
                           (long long)most, dim);
    Tensor *index = largest(x, k, d);
    Tensor *y = made_by("TopkBackward0", ag_gather(x, d, index));
    if (y && indices) *indices = index;
    return y;
}
