/* elements.c - whole tensors, element by element: copies, conversions, gather and scatter_add. */
#include "operations.h"

#include <string.h>

Tensor *tensor_map_elements(Kernel *kernel, Shape shape, DType dtype, int n, const Tensor *const *x,
                            double s) {
    Tensor *y = tensor_make(shape, dtype);
    const Tensor *operand[LOOP_OPERANDS] = {y};
    memcpy(operand + 1, x, (size_t)n * sizeof *x);
    if (y) tensor_loop_elements(kernel, n + 1, operand, s);
    return y;
}

Tensor *tensor_make_zeros(Shape shape, DType dtype) {
    Tensor *x = tensor_make(shape, dtype);
    if (x) memset(x->data, 0, (size_t)(tensor_numel(x) * dtype_size(dtype))); /* 0 in each type */
    return x;
}

void tensor_copy_elements(const Tensor *to, const Tensor *from) {
    Kernel *const convert = tensor_kernels()->convert[to->dtype][from->dtype];
    if (to->dtype == from->dtype) tensor_loop_copy(to, from);
    else tensor_loop_elements(convert, 2, (const Tensor *[]){to, from}, 0);
}

Tensor tensor_scalar(DType dtype, double value, Number *memory) {
    tensor_kernels()->convert[dtype][F64](1, (void *[]){memory, &value}, 0);
    return (Tensor){.dtype = dtype, .data = memory};
}

void tensor_fill_elements(const Tensor *x, double value) {
    Number memory;
    const Tensor number = tensor_scalar(x->dtype, value, &memory);
    tensor_loop_copy(x, &number);
}

void tensor_add_elements(const Tensor *to, const Tensor *x) {
    Kernel *const add = tensor_kernels()->value[ELEMENTWISE_add][to->dtype];
    tensor_loop_elements(add, 3, (const Tensor *[]){to, to, x}, 0);
}

double tensor_read_element(const Tensor *x, int64_t offset) {
    double value;
    char *place = (char *)x->data + offset * dtype_size(x->dtype);
    tensor_kernels()->convert[F64][x->dtype](1, (void *[]){&value, place}, 0);
    return value;
}

Tensor *tensor_convert(const Tensor *x, DType dtype) {
    Tensor *y = tensor_make(x->shape, dtype);
    if (y) tensor_copy_elements(y, x);
    return y;
}

/* Backward also calls tensor_contiguous and tensor_reshape, even for a tensor that was let go but
 * still has its bytes. These two copy with tensor_convert; tensor_clone, which is public,
 * refuses such a tensor. */
Tensor *tensor_contiguous(const Tensor *x) {
    if (tensor_is_contiguous(x)) return tensor_view_make(x, x->shape, x->stride, x->data);
    return tensor_convert(x, x->dtype);
}

Tensor *tensor_reshape(const Tensor *x, Shape shape) {
    Tensor *y = tensor_view_reshape(x, shape);
    return y || tensor_pending() ? y : tensor_reshape_own(tensor_convert(x, x->dtype), shape);
}

/* ---- gather and scatter_add ------------------------------------------------------------------ */

/* A view of x at index 0 of dim, in y's shape: the kernels add index times the stride of dim. */
static Tensor at_start(const Tensor *x, int dim, Shape y) {
    const int lead = y.ndim - x->shape.ndim;
    Tensor start = {.shape = y, .dtype = x->dtype, .data = x->data};
    for (int d = 0; d < x->shape.ndim; d++)
        if (d != dim) start.stride[lead + d] = x->stride[d];
    return start;
}

void tensor_gather_elements(const Tensor *y, const Tensor *x, int dim, const Tensor *index) {
    const Tensor start = at_start(x, dim, y->shape);
    tensor_loop_strided(tensor_kernels()->gather[x->dtype], 3, (const Tensor *[]){y, &start, index},
                        x->stride[dim]);
}

static void scatter_add(StridedKernel *kernel, const Tensor *x, const Tensor *y, int dim,
                        const Tensor *index) {
    const Tensor start = at_start(x, dim, y->shape);
    tensor_loop_strided(kernel, 3, (const Tensor *[]){&start, y, index}, x->stride[dim]);
}

/* How many elements of y may be added to one element of x. */
static int64_t most_terms(const Tensor *x, const Tensor *y, int dim) {
    int64_t terms = tensor_numel(y);
    if (terms == 0) return 0;
    for (int d = 0; d < x->shape.ndim; d++)
        if (d != dim) terms /= y->shape.dim[y->shape.ndim - x->shape.ndim + d];
    return terms;
}

/* Float32 additions one after the other lose digits: after 10^6 additions of 0.1 the sum is 1 %
 * wrong. Where there are so many, terms are added in double, and the sums are rounded once. */
void tensor_scatter_add_elements(const Tensor *x, const Tensor *y, int dim, const Tensor *index) {
    if (x->dtype == F64 || most_terms(x, y, dim) <= SCATTER_TERMS) {
        scatter_add(tensor_kernels()->scatter_add[x->dtype], x, y, dim, index);
        return;
    }
    Tensor *sums = tensor_make_zeros(x->shape, F64);
    if (sums) scatter_add(tensor_kernels()->scatter_add_double[x->dtype], sums, y, dim, index);
    Tensor *rounded = sums ? tensor_convert(sums, x->dtype) : NULL;
    if (rounded) tensor_add_elements(x, rounded);
    tensor_release(rounded);
    tensor_release(sums);
}
