/* view.c - views: tensors that share the bytes of another tensor. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

bool tensor_has_repeats(const Tensor *x) {
    for (int d = 0; d < x->shape.ndim; d++)
        if (x->stride[d] == 0 && x->shape.dim[d] > 1) return tensor_numel(x) > 0;
    return false;
}

const char *tensor_stride_text(const Tensor *x) {
    Shape strides = x->shape;
    for (int d = 0; d < strides.ndim; d++) strides.dim[d] = x->stride[d];
    return tensor_shape_text(strides);
}

/* Sizes of 1 may have any stride, and a tensor without elements is contiguous. */
bool tensor_is_contiguous(const Tensor *x) {
    if (!x) return false;
    int64_t step = 1;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        if (x->shape.dim[d] == 0) return true;
        if (x->shape.dim[d] != 1 && x->stride[d] != step) step = -1; /* step stays negative */
        step *= x->shape.dim[d];
    }
    return step > 0;
}

/* The strides of x in a new shape; false if the new shape needs a copy. A run is a group of
 * neighbouring dimensions of x that could be one dimension. New dimensions can divide a run, but
 * none can reach from one run into the next. The loop goes through both shapes from the right, run
 * by run. */
static bool reshape_strides(const Tensor *x, Shape shape, int64_t *stride) {
    int d_new = shape.ndim - 1;
    int64_t run = 1, filled = 1;
    int64_t base = x->shape.ndim ? x->stride[x->shape.ndim - 1] : 1;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        run *= x->shape.dim[d];
        bool ends = d == 0 || (x->shape.dim[d - 1] != 1 && x->stride[d - 1] != run * base);
        if (!ends) continue;
        for (; d_new >= 0 && (filled < run || shape.dim[d_new] == 1); d_new--) {
            stride[d_new] = filled * base;
            filled *= shape.dim[d_new];
        }
        if (filled != run) return false;
        if (d > 0) base = x->stride[d - 1];
        run = 1;
        filled = 1;
    }
    for (; d_new >= 0; d_new--) stride[d_new] = base; /* a scalar becomes (1, 1, ...) */
    return true;
}

Tensor *tensor_view_reshape(const Tensor *x, Shape shape) {
    int64_t stride[TENSOR_MAX_DIMS] = {0};
    if (tensor_shape_numel(shape) == 0 || tensor_is_contiguous(x))
        tensor_shape_strides(shape, stride);
    else if (!reshape_strides(x, shape, stride)) return NULL;
    return tensor_view_make(x, shape, stride, x->data);
}

Tensor *tensor_reshape_own(Tensor *y, Shape shape) {
    if (!y) return NULL;
    y->shape = shape;
    memset(y->stride, 0, sizeof y->stride);
    tensor_shape_strides(shape, y->stride);
    return y;
}

Tensor *tensor_view_permute(const Tensor *x, const int *axes) {
    Shape shape = x->shape;
    int64_t stride[TENSOR_MAX_DIMS] = {0};
    for (int d = 0; d < shape.ndim; d++) {
        shape.dim[d] = x->shape.dim[axes[d]];
        stride[d] = x->stride[axes[d]];
    }
    return tensor_view_make(x, shape, stride, x->data);
}

/* The order of dimensions a and b in memory: 1 if a comes first, -1 if b does, 0 if either may. The
 * larger stride comes first; a stride of 0 may stand anywhere. For equal strides a comes first if
 * it has the larger size. (PyTorch has no such rule for b.) */
static int comes_before(const Tensor *x, int a, int b) {
    const int64_t of_a = llabs(x->stride[a]), of_b = llabs(x->stride[b]);
    if (of_a == 0 || of_b == 0) return 0;
    if (of_a != of_b) return of_a > of_b ? 1 : -1;
    return x->shape.dim[a] > x->shape.dim[b] ? 1 : 0;
}

/* An insertion sort from the last dimension to the first, which skips pairs without an order. */
void tensor_sort_by_stride(const Tensor *x, int *axes) {
    const int n = x->shape.ndim;
    for (int d = 0; d < n; d++) axes[d] = d;
    for (int i = n - 2; i >= 0; i--) {
        for (int at = i, next = i + 1; next < n; next++) {
            const int order = comes_before(x, axes[next], axes[at]);
            if (order < 0) break;
            if (order == 0) continue;
            const int moved = axes[at];
            axes[at] = axes[next];
            axes[next] = moved;
            at = next;
        }
    }
}

Tensor *tensor_view_transpose(const Tensor *x, int dim0, int dim1) {
    int axes[TENSOR_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    axes[dim0] = dim1;
    axes[dim1] = dim0;
    return tensor_view_permute(x, axes);
}

void tensor_expanded_strides(const Tensor *x, Shape shape, int64_t *stride) {
    int lead = shape.ndim - x->shape.ndim;
    memset(stride, 0, TENSOR_MAX_DIMS * sizeof *stride);
    for (int d = lead; d < shape.ndim; d++)
        stride[d] = x->shape.dim[d - lead] == 1 && shape.dim[d] != 1 ? 0 : x->stride[d - lead];
}

Tensor *tensor_view_expand(const Tensor *x, Shape shape) {
    int64_t stride[TENSOR_MAX_DIMS];
    tensor_expanded_strides(x, shape, stride);
    return tensor_view_make(x, shape, stride, x->data);
}

Tensor *tensor_view_narrow(const Tensor *x, int dim, int64_t start, int64_t size) {
    Shape shape = x->shape;
    shape.dim[dim] = size;
    /* data of a tensor without elements must stay inside the storage */
    const int64_t offset = tensor_shape_numel(shape) > 0 ? start * x->stride[dim] : 0;
    return tensor_view_make(x, shape, x->stride, (char *)x->data + offset * dtype_size(x->dtype));
}
