/* internal.h - storage and views: what tensor/ and autograd/ know of a tensor besides tensor.h.
 * Arithmetic is in math/operations.h. Every function that returns a Tensor * gives you a
 * reference. */
#ifndef TAPEHEAD_TENSOR_INTERNAL_H
#define TAPEHEAD_TENSOR_INTERNAL_H

#include "tensor.h"

/* Bytes shared by views. The elements begin at bytes, 64-byte aligned. */
typedef struct Storage {
    void *bytes;            /* NULL once nobody will look at them again */
    int64_t size;           /* in bytes */
    int refs;               /* tensors that look at it */
    int let_go;             /* those among them whose elements nobody will ask for */
    int readers;            /* backward passes that will ask for the bytes all the same */
    uint32_t version;       /* how often it has been written in place */
    const char *written_by; /* the function that wrote last */
} Storage;

/* ---- making tensors ------------------------------------------------------------------------ */

bool tensor_pending(void); /* is an error pending? */
/* The function's own word on a NULL argument, what: "path"; and on a tensor whose elements it
 * wants. */
bool tensor_check_given(const char *function, const char *what, const void *argument);
bool tensor_check_readable(const char *function, const Tensor *x);
/* Nobody will ask for x's elements: the bytes go as soon as they can. */
void tensor_let_go(Tensor *x);
void tensor_storage_read(Storage *storage, int readers); /* so many readers more, or less */
Tensor *tensor_make(Shape shape, DType dtype);           /* contiguous, not initialised */
void tensor_written(Tensor *x, const char *by); /* bumps the version; by: a string literal */
static inline int64_t dtype_size(DType dtype) { /* of an element, in bytes */
    if (dtype == BOOL) return 1;
    return dtype == F32 ? 4 : 8;
}
static inline bool dtype_is_float(DType dtype) { return dtype <= F64; }

/* ---- shapes -------------------------------------------------------------------------------- */

int64_t tensor_shape_numel(Shape shape); /* INT64_MAX if there are more */
/* Do the bytes of so many elements fit an int64_t? A size of 0 counts as 1: strides must fit. */
bool tensor_shape_fits(Shape shape, int64_t bytes_per_element);
static inline bool shape_equal(Shape a, Shape b) {
    bool equal = a.ndim == b.ndim;
    for (int d = 0; equal && d < a.ndim; d++) equal = a.dim[d] == b.dim[d];
    return equal;
}
/* NumPy's rule: aligned at the right, sizes equal or 1. False, without an error, if they do not
 * fit. */
bool tensor_shape_broadcast(Shape a, Shape b, Shape *out);
/* dim in 0 .. ndim-1, negative ones counted from the end; -1 and an error if there is none. */
int tensor_shape_dim(const char *op, Shape shape, int dim);
/* The same where, as in PyTorch, dimension 0 or -1 of a scalar passes: it is 0. */
int tensor_shape_dim_or_scalar(const char *op, Shape shape, int dim);
Shape tensor_shape_without(Shape shape, int dim);
void tensor_shape_strides(Shape shape, int64_t *stride); /* row-major */
bool tensor_has_repeats(const Tensor *x);                /* do several elements share one place? */
const char *tensor_stride_text(const Tensor *x);         /* the strides, written as a shape */

/* ---- views: new tensors on the same bytes -------------------------------------------------- */

/* data: where the first element is, inside x's storage. Checks nothing. */
Tensor *tensor_view_make(const Tensor *x, Shape shape, const int64_t *stride, void *data);
/* NULL without an error where no view will do. */
Tensor *tensor_view_reshape(const Tensor *x, Shape shape);
Tensor *tensor_view_permute(const Tensor *x,
                            const int *axes); /* axes: a permutation, not checked */
/* The dimensions of x, that with the largest stride first, as PyTorch's TensorIterator sorts them:
 * in this order it writes to x, and lays out what is made like x. */
void tensor_sort_by_stride(const Tensor *x, int *axes);
Tensor *tensor_view_transpose(const Tensor *x, int dim0, int dim1); /* 0 <= dims < ndim */
Tensor *tensor_view_expand(const Tensor *x, Shape shape); /* x broadcasts to shape, not checked */
Tensor *tensor_view_narrow(const Tensor *x, int dim, int64_t start, int64_t size);
/* y itself, contiguous and seen by nobody else yet, in another shape; NULL stays NULL. */
Tensor *tensor_reshape_own(Tensor *y, Shape shape);

/* ---- memory: the caching allocator --------------------------------------------------------- */

/* 64-byte aligned, not initialised, and 128 bytes behind it can be read; NULL with an error
 * pending. Any size may be asked for, as an int64_t, so that a cast hides none from the question
 * whether the machine can have it. */
void *tensor_cache_alloc(int64_t size);
void tensor_cache_free(void *block, int64_t size); /* the size that it was asked for with */
void tensor_cache_end_step(void);                  /* an outermost tape of this thread has ended */

#endif
