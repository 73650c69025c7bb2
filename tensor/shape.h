/* shape.h - shapes and types, under storage and views: pure functions; some set an error. */
#ifndef TAPEHEAD_TENSOR_SHAPE_H
#define TAPEHEAD_TENSOR_SHAPE_H

#include "tensor.h"

static inline int64_t dtype_size(DType dtype) { /* of an element, in bytes */
    if (dtype == BOOL) return 1;
    return dtype == F32 ? 4 : 8;
}
static inline bool dtype_is_float(DType dtype) { return dtype <= F64; }

/* *product = a b, for sizes of 0 or more; false, without an error, if that is no int64_t. */
static inline bool multiply_sizes(int64_t a, int64_t b, int64_t *product) {
    const bool small = (a | b) <= INT32_MAX; /* a division takes longer than all else here */
    if (!small && b != 0 && a > INT64_MAX / b) return false;
    *product = a * b;
    return true;
}

int64_t tensor_shape_numel(Shape shape); /* INT64_MAX if there are more */
/* Does the number of bytes fit an int64_t? A size of 0 counts as 1, so the strides fit as well. */
bool tensor_shape_fits(Shape shape, int64_t bytes_per_element);
static inline bool shape_equal(Shape a, Shape b) {
    bool equal = a.ndim == b.ndim;
    for (int d = 0; equal && d < a.ndim; d++) equal = a.dim[d] == b.dim[d];
    return equal;
}
/* NumPy's rule: shapes are aligned at the right, sizes must be equal or 1. False, without an error,
 * if the shapes cannot be broadcast. */
bool tensor_shape_broadcast(Shape a, Shape b, Shape *out);
/* Maps a negative dim to ndim + dim. -1 and an error if there is no such dimension. */
int tensor_shape_dim(const char *op, Shape shape, int dim);
/* The same, but a scalar has a dimension 0 or -1, as in PyTorch. */
int tensor_shape_dim_or_scalar(const char *op, Shape shape, int dim);
/* The place of a new dimension dim in x; -1 and an error, in which x_is stands before x, if there
 * is none. */
int tensor_shape_new_dim(const char *op, const char *x_is, Shape x, int dim);
/* Checks what is asked of x: a Shape that a program fills in may have any ndim. */
bool tensor_shape_check_ndim(const char *op, Shape x, Shape asked);
Shape tensor_shape_without(Shape shape, int dim);
void tensor_shape_strides(Shape shape, int64_t *stride); /* row-major */

#endif
