/* sort.c - sorting along the last dimension. */
#include "internal.h"

Tensor *tensor_sort(const Tensor *x, Tensor **indices) {
    if (indices) *indices = NULL;
    if (!x) return tensor_fail("sort: the tensor is NULL");
    const int64_t n = x->shape.ndim ? x->shape.dim[x->shape.ndim - 1] : 1;
    Tensor *y = tensor_make(x->shape, x->dtype), *order = tensor_make(x->shape, I64);
    Tensor *scratch = tensor_make(SHAPE(n), I64);
    if (scratch)
        loop_rows(kernels()->sort[x->dtype], 4, (const Tensor *[]){y, order, x, scratch}, 0);
    bool sorted = scratch != NULL;
    tensor_release(scratch);
    if (indices && sorted) *indices = tensor_retain(order);
    tensor_release(order);
    if (sorted) return y;
    tensor_release(y);
    return NULL;
}
