/* access.c - reads elements of a tensor as C's numbers, and compares tensors. */
#include "operations.h"

#include <math.h>

int64_t tensor_size(const Tensor *x, int dim) {
    if (!tensor_check_given("size", "tensor", x)) return 0;
    const int d = tensor_shape_dim("size", x->shape, dim);
    return d < 0 ? 0 : x->shape.dim[d];
}

double tensor_item(const Tensor *x) {
    if (tensor_check_readable("item", x) && tensor_numel(x) == 1) return tensor_read_element(x, 0);
    if (x) tensor_fail("item: x is %s: it must have one element", tensor_shape_text(x->shape));
    return (double)NAN;
}

bool tensor_find_element(const char *op, const Tensor *x, Shape index, int64_t *offset) {
    bool inside = index.ndim == x->shape.ndim;
    *offset = 0;
    for (int d = 0; d < index.ndim && inside; d++) {
        int64_t i = index.dim[d] < 0 ? index.dim[d] + x->shape.dim[d] : index.dim[d];
        inside = i >= 0 && i < x->shape.dim[d];
        if (inside) *offset += i * x->stride[d];
    }
    return inside || tensor_fail("%s: there is no element %s in x, which is %s", op,
                                 tensor_shape_text(index), tensor_shape_text(x->shape));
}

double tensor_get_at(const Tensor *x, Shape index) {
    int64_t offset;
    if (!tensor_check_readable("get", x) || !tensor_find_element("get", x, index, &offset))
        return (double)NAN;
    return tensor_read_element(x, offset);
}

static bool copy_out(const char *op, const Tensor *x, DType dtype, void *out) {
    if (!tensor_check_readable(op, x)) return false;
    if (!out && tensor_numel(x) > 0) return tensor_fail("%s: out is NULL", op);
    Tensor target = {.shape = x->shape, .dtype = dtype, .data = out};
    tensor_shape_strides(x->shape, target.stride);
    tensor_copy_elements(&target, x);
    return true;
}

bool tensor_to_doubles(const Tensor *x, double *out) { return copy_out("to_doubles", x, F64, out); }

bool tensor_to_int64s(const Tensor *x, int64_t *out) { return copy_out("to_int64s", x, I64, out); }

bool tensor_allclose(const Tensor *a, const Tensor *b, double rtol, double atol) {
    if (!a || !b || a->dtype != b->dtype || !shape_equal(a->shape, b->shape)) return false;
    if (!tensor_check_argument("allclose", "a", a) || !tensor_check_argument("allclose", "b", b))
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
