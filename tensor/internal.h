/* internal.h - what tensor/ shows to autograd/ besides tensor.h: storage, views, whole-tensor
 * arithmetic without gradients. Every function that returns a Tensor * gives you a reference. */
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
bool given(const char *function, const char *what, const void *argument);
bool readable(const char *function, const Tensor *x);
/* Nobody will ask for x's elements: the bytes go as soon as they can. */
void tensor_let_go(Tensor *x);
void storage_read(Storage *storage, int readers); /* so many readers more, or less */
Tensor *tensor_make(Shape shape, DType dtype);    /* contiguous, not initialised */
Tensor *make_zeros(Shape shape, DType dtype);
void tensor_written(Tensor *x, const char *by); /* bumps the version; by: a string literal */
static inline int64_t dtype_size(DType dtype) { return dtype == BOOL ? 1 : dtype == F32 ? 4 : 8; }
static inline bool dtype_is_float(DType dtype) { return dtype <= F64; }

/* ---- shapes -------------------------------------------------------------------------------- */

int64_t shape_numel(Shape shape); /* INT64_MAX if there are more */
/* Do the bytes of so many elements fit an int64_t? A size of 0 counts as 1: strides must fit. */
bool shape_fits(Shape shape, int64_t bytes_per_element);
static inline bool shape_equal(Shape a, Shape b) {
    bool equal = a.ndim == b.ndim;
    for (int d = 0; equal && d < a.ndim; d++) equal = a.dim[d] == b.dim[d];
    return equal;
}
/* NumPy's rule: aligned at the right, sizes equal or 1. False, without an error, if they do not
 * fit. */
bool shape_broadcast(Shape a, Shape b, Shape *out);
/* dim in 0 .. ndim-1, negative ones counted from the end; -1 and an error if there is none. */
int shape_dim(const char *op, Shape shape, int dim);
/* The same where, as in PyTorch, dimension 0 or -1 of a scalar passes: it is 0. */
int shape_dim_or_scalar(const char *op, Shape shape, int dim);
Shape shape_without(Shape shape, int dim);
void shape_strides(Shape shape, int64_t *stride); /* row-major */
bool has_repeats(const Tensor *x);                /* do several elements share one place? */
const char *stride_text(const Tensor *x);         /* the strides, written as a shape */

/* ---- views: new tensors on the same bytes -------------------------------------------------- */

/* data: where the first element is, inside x's storage. Checks nothing. */
Tensor *view_make(const Tensor *x, Shape shape, const int64_t *stride, void *data);
/* NULL without an error where no view will do. */
Tensor *view_reshape(const Tensor *x, Shape shape);
Tensor *view_permute(const Tensor *x, const int *axes); /* axes: a permutation, not checked */
/* The dimensions of x, that with the largest stride first, as PyTorch's TensorIterator sorts them:
 * in this order it writes to x, and lays out what is made like x. */
void sort_by_stride(const Tensor *x, int *axes);
Tensor *view_transpose(const Tensor *x, int dim0, int dim1); /* 0 <= dims < ndim */
Tensor *view_expand(const Tensor *x, Shape shape); /* x broadcasts to shape, not checked */
Tensor *view_narrow(const Tensor *x, int dim, int64_t start, int64_t size);
Tensor *tensor_contiguous(const Tensor *x); /* a view of x itself, or a copy */
/* reshape with a copy where no view will do. The element counts must be equal. */
Tensor *tensor_reshape(const Tensor *x, Shape shape);
/* y itself, contiguous and seen by nobody else yet, in another shape; NULL stays NULL. */
Tensor *reshape_own(Tensor *y, Shape shape);

/* ---- arithmetic on whole tensors, without gradients ---------------------------------------- */

#include "kernels/kernels.h"

enum { LOOP_OPERANDS = 8 };

/* Runs an elementwise kernel over x[0] .. x[n-1]; x[0] is written, the others broadcast to its
 * shape. */
void loop_elements(LoopKernel kernel, int n, const Tensor *const *x, double s);
/* The same for one that takes so many operations for each, two or more: it may write others as
 * well, or read beyond the elements. */
void loop_operations(LoopKernel kernel, int n, const Tensor *const *x, double s, double operations);
/* The same for a kernel that sees a whole last dimension at a time. Every operand has x[0]'s number
 * of dimensions or broadcasts to it. Calls the kernel for empty rows too, where x[0] has one
 * element for each. */
void loop_rows(LoopKernel kernel, int n, const Tensor *const *x, double s);
/* The same along another dimension; dim 0 of a scalar passes. */
void loop_rows_along(LoopKernel kernel, int dim, int n, const Tensor *const *x, double s);
/* The same for one whose rows can be cut, at multiples of 64 elements, each of which takes so many
 * operations. */
void loop_columns(LoopKernel kernel, int n, const Tensor *const *x, double s, double operations);
void add_elements(const Tensor *to, const Tensor *x); /* to += x, broadcast */
/* y[..., i, ...] = x[..., index[i], ...] along dim of x, whose dimensions behind dim end y's shape,
 * too; index, I64, broadcasts to y. And x[..., index[i], ...] += y[..., i, ...]. */
void pick_elements(const Tensor *y, const Tensor *x, int dim, const Tensor *index);
void put_elements(const Tensor *x, const Tensor *y, int dim, const Tensor *index);
Tensor turned(const Tensor *x); /* the last two dimensions swapped: a view for kernels alone */

/* y = kernel(x[0], ..., x[n-1]), a new contiguous tensor; the x broadcast to its shape. */
Tensor *map_elements(LoopKernel kernel, Shape shape, DType dtype, int n, const Tensor *const *x,
                     double s);

bool can_write_floats(const char *op, const Tensor *x);     /* in place; else an error */
bool value_fits(const char *op, DType dtype, double value); /* else an error: too large for it */
/* May x of this type be multiplied by the number? int64 demands one that it can hold, and a whole
 * one. */
bool number_fits(const char *op, DType dtype, double number);
/* Converted to to's type, broadcast; checks nothing. */
void copy_elements(Tensor *to, const Tensor *from);
void fill_elements(Tensor *x, double value);
void swap_bytes(Tensor *x);     /* of each element; these two want x contiguous */
void bytes_to_bools(Tensor *x); /* a bool that is neither 0 nor 1 must not be looked at */
double read_element(const Tensor *x, int64_t offset); /* in elements, from the first */
/* The offset of x[i, j, ...]; false and an error if there is no such element. */
bool find_element(const char *op, const Tensor *x, Shape index, int64_t *offset);
Tensor *tensor_convert(const Tensor *x, DType dtype); /* always a copy */
/* dim is kept, with size 1. */
Tensor *tensor_reduce(const Tensor *x, LoopKernel kernel, int dim, DType out);
void tensor_divide(Tensor *y, double number); /* y /= number: a mean is a sum and one division */
/* Summed dims are kept, with size 1; sums of integers and bools are I64. */
Tensor *tensor_sum_dims(const Tensor *x, const bool *dims);
/* dw and db, (N), of layer norm: sums over the rows of x and dy, (..., N), both contiguous. */
void layer_norm_dw(Tensor *const dwb[2], const Tensor *x, const Tensor *dy, const Tensor *stats);
/* Undoes broadcasting from shape to x's shape. */
Tensor *tensor_sum_to(const Tensor *x, Shape shape);
/* (..., M, K) (..., K, N) -> (..., M, N); batch dimensions broadcast, not checked. What this and
 * the next return beside a pending error is not computed. */
Tensor *tensor_matmul(const Tensor *a, const Tensor *b);
/* start + a b, of one matrix each, whose rows stand one after the other in a new contiguous tensor
 * of that shape, of m n elements. s says how a, b and start lie; its c_stride is set. */
Tensor *multiply_matrices(Shape shape, DType dtype, MatmulShape *s, const void *a, const void *b);

/* ---- memory: the caching allocator --------------------------------------------------------- */

/* 64-byte aligned, not initialised, and 128 bytes behind it can be read; NULL with an error
 * pending. Any size may be asked for, as an int64_t, so that a cast hides none from the question
 * whether the machine can have it. */
void *cache_alloc(int64_t size);
void cache_free(void *block, int64_t size); /* the size that it was asked for with */
void cache_end_step(void);                  /* an outermost tape of this thread has ended */

/* ---- the generator ------------------------------------------------------------------------- */

Generator *generator_current(void); /* this thread's: copy it to save, assign it to restore */

#endif
