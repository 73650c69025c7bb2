/* elements.c - whole tensors, element by element: copies and conversions. */
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

void tensor_fill_elements(const Tensor *x, double value) {
    const Tensor number = {.dtype = F64, .data = &value};
    tensor_copy_elements(x, &number);
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

/* Backward, too, calls tensor_contiguous and tensor_reshape, also for a tensor that was let go but
 * still has its bytes. So these two functions copy with tensor_convert: tensor_clone, a public
 * function, refuses such a tensor. */
Tensor *tensor_contiguous(const Tensor *x) {
    if (tensor_is_contiguous(x)) return tensor_view_make(x, x->shape, x->stride, x->data);
    return tensor_convert(x, x->dtype);
}

Tensor *tensor_reshape(const Tensor *x, Shape shape) {
    Tensor *y = tensor_view_reshape(x, shape);
    return y || tensor_pending() ? y : tensor_reshape_own(tensor_convert(x, x->dtype), shape);
}

/* ---- bytes of files -------------------------------------------------------------------------- */

void tensor_swap_bytes(Tensor *x) {
    const int64_t size = dtype_size(x->dtype);
    char *element = x->data;
    for (int64_t n = tensor_numel(x); n > 0; n--, element += size)
        for (int64_t i = 0; i < size / 2; i++) {
            const char moved = element[i];
            element[i] = element[size - 1 - i];
            element[size - 1 - i] = moved;
        }
}

void tensor_bytes_to_bools(Tensor *x) {
    unsigned char *byte = x->data;
    for (int64_t i = 0; i < tensor_numel(x); i++) byte[i] = byte[i] != 0;
}

/* ---- compared -------------------------------------------------------------------------------- */

bool tensor_allclose(const Tensor *a, const Tensor *b, double rtol, double atol) {
    if (!a || !b || a->dtype != b->dtype || !shape_equal(a->shape, b->shape)) return false;
    if (!tensor_check_readable("allclose", a) || !tensor_check_readable("allclose", b))
        return false;
    const int last = a->shape.ndim > 0 ? a->shape.ndim - 1 : 0;
    const Tensor bounds = {.dtype = F64, .data = (double[]){rtol, atol}};
    int64_t far = 0;
    const Tensor count = {.dtype = I64, .data = &far}; /* one number for all rows */
    const Tensor *const operand[] = {&count, a, b, &bounds};
    if (tensor_numel(a) > 0)
        tensor_loop_rows(tensor_kernels()->count_far[a->dtype], last, 4, operand, 0);
    return far == 0;
}
