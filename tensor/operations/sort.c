/* sort.c - sorting along the last dimension. The kernel sorts one row. */
#include "operations.h"

Tensor *tensor_sort(const Tensor *x, Tensor **indices) {
    if (indices) *indices = NULL;
    if (!tensor_check_readable("sort", x)) return NULL;
    const int last = x->shape.ndim > 0 ? x->shape.ndim - 1 : 0;
    Tensor *y = tensor_make(x->shape, x->dtype);
    Tensor *order = tensor_make(x->shape, I64);
    Tensor *workspace = tensor_make(x->shape, I64);
    const Tensor *const operand[] = {y, order, x, workspace};
    if (workspace) tensor_loop_rows(tensor_kernels()->sort[x->dtype], last, 4, operand, 0);
    const bool done = !tensor_pending();
    if (done && indices) *indices = tensor_retain(order);
    if (!done) tensor_release(y);
    tensor_release(order);
    tensor_release(workspace);
    return done ? y : NULL;
}
