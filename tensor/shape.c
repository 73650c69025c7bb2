/* shape.c - shapes and types: numbers and names, which know no tensor. */
#include "shape.h"

#include <string.h>

int64_t tensor_shape_numel(Shape shape) {
    int64_t numel = 1;
    for (int d = 0; d < shape.ndim; d++) {
        if (shape.dim[d] == 0) return 0;
        if (!multiply_sizes(numel, shape.dim[d], &numel)) numel = INT64_MAX;
    }
    return numel;
}

bool tensor_shape_fits(Shape shape, int64_t bytes) {
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] > 1 && !multiply_sizes(bytes, shape.dim[d], &bytes)) return false;
    return true;
}

bool tensor_shape_broadcast(Shape a, Shape b, Shape *out) {
    *out = a.ndim >= b.ndim ? a : b;
    for (int i = 1; i <= a.ndim && i <= b.ndim; i++) { /* the i-th dimension from the right */
        int64_t m = a.dim[a.ndim - i], n = b.dim[b.ndim - i];
        if (m != n && m != 1 && n != 1) return false;
        if (m != n) out->dim[out->ndim - i] = m == 1 ? n : m;
    }
    return true;
}

int tensor_shape_dim(const char *op, Shape shape, int dim) {
    int from_start = dim < 0 ? dim + shape.ndim : dim;
    if (from_start >= 0 && from_start < shape.ndim) return from_start;
    tensor_fail("%s: there is no dimension %d in %s", op, dim, tensor_shape_text(shape));
    return -1;
}

int tensor_shape_dim_or_scalar(const char *op, Shape shape, int dim) {
    return shape.ndim == 0 && (dim == 0 || dim == -1) ? 0 : tensor_shape_dim(op, shape, dim);
}

int tensor_shape_new_dim(const char *op, const char *x_is, Shape x, int dim) {
    const int ndim = x.ndim + 1, d = dim < 0 ? dim + ndim : dim;
    if (ndim <= TENSOR_MAX_DIMS && d >= 0 && d < ndim) return d;
    if (ndim > TENSOR_MAX_DIMS)
        tensor_fail("%s: %s %s: a tensor has at most %d dimensions", op, x_is, tensor_shape_text(x),
                    TENSOR_MAX_DIMS);
    else
        tensor_fail("%s: %s %s: there is no place for a dimension %d", op, x_is,
                    tensor_shape_text(x), dim);
    return -1;
}

bool tensor_shape_check_ndim(const char *op, Shape x, Shape asked) {
    if (asked.ndim >= 0 && asked.ndim <= TENSOR_MAX_DIMS) return true;
    return tensor_fail("%s: x is %s and %d dimensions are asked for: there may be 0 to %d", op,
                       tensor_shape_text(x), asked.ndim, TENSOR_MAX_DIMS);
}

Shape tensor_shape_without(Shape shape, int dim) {
    for (int d = dim; d + 1 < shape.ndim; d++) shape.dim[d] = shape.dim[d + 1];
    shape.ndim--;
    return shape;
}

void tensor_shape_strides(Shape shape, int64_t *stride) {
    int64_t step = 1;
    for (int d = shape.ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= shape.dim[d] > 1 ? shape.dim[d] : 1;
    }
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *tensor_shape_text(Shape shape) {
    static TENSOR_THREAD_LOCAL char texts[8][192];
    static TENSOR_THREAD_LOCAL unsigned next;
    char *text = texts[next++ % 8];
    char *end = text + sprintf(text, "(");
    for (int d = 0; d < shape.ndim && d < TENSOR_MAX_DIMS; d++) {
        const char *comma = d + 1 < shape.ndim ? ", " : "";
        end += sprintf(end, "%lld%s", (long long)shape.dim[d], comma);
    }
    if (shape.ndim > TENSOR_MAX_DIMS) end += sprintf(end, "...");
    sprintf(end, shape.ndim == 1 ? ",)" : ")");
    return text;
}

const char *tensor_dtype_name(DType dtype) {
    static const char *const names[] = {"float32", "float64", "int64", "bool"};
    return (unsigned)dtype <= BOOL ? names[dtype] : "unknown";
}
