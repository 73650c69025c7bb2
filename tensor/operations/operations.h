/* operations.h - operations on whole tensors of any strides, without gradients. These functions
 * join storage and views (internal.h) with the kernels, and check nothing unless they say so. Every
 * function that returns a Tensor * returns a new reference, or NULL with a pending error. If memory
 * runs out during the computation, an error is pending and the result is not computed. */
#ifndef TAPEHEAD_TENSOR_OPERATIONS_H
#define TAPEHEAD_TENSOR_OPERATIONS_H

#include "../internal.h"
#include "../kernels/kernels.h"
#include "loop.h"

/* ---- elements: elements.c ------------------------------------------------------------------- */

/* y = kernel(x[0], ..., x[n-1]), a new contiguous tensor; the x broadcast to its shape. */
Tensor *tensor_map_elements(Kernel *kernel, Shape shape, DType dtype, int n, const Tensor *const *x,
                            double s);
Tensor *tensor_make_zeros(Shape shape, DType dtype);
void tensor_copy_elements(const Tensor *to, const Tensor *from); /* converted, broadcast */
void tensor_fill_elements(const Tensor *x, double value);
/* A scalar operand of this type for kernels: the value, converted, in memory of the caller. */
typedef union {
    float f32;
    double f64;
    int64_t i64;
    bool truth;
} Number;
Tensor tensor_scalar(DType dtype, double value, Number *memory);
void tensor_add_elements(const Tensor *to, const Tensor *x); /* to += x, broadcast */
double tensor_read_element(const Tensor *x, int64_t offset); /* in elements, from the first */
Tensor *tensor_convert(const Tensor *x, DType dtype);        /* always a copy */
Tensor *tensor_contiguous(const Tensor *x);                  /* a view of x itself, or a copy */
/* reshape: a view if possible, else a copy. The element counts must be equal. */
Tensor *tensor_reshape(const Tensor *x, Shape shape);
/* y[..., i, ...] = x[..., index[i], ...] along dim of x. y has the dimensions of x after dim as its
 * last dimensions; index, I64, broadcasts to y. */
void tensor_gather_elements(const Tensor *y, const Tensor *x, int dim, const Tensor *index);
/* x[..., index[i], ...] += y[..., i, ...]: with up to SCATTER_TERMS indices one after the other,
 * with PyTorch's bits; the sums of more are computed in double and rounded once. */
enum { SCATTER_TERMS = 128 };
void tensor_scatter_add_elements(const Tensor *x, const Tensor *y, int dim, const Tensor *index);

/* ---- checks that set an error message -------------------------------------------------------- */

bool tensor_check_writable_floats(const char *op, const Tensor *x); /* in place */
bool tensor_check_value(const char *op, DType dtype, double value); /* does value fit? */
bool tensor_check_not_negative(const char *op, const char *what, double number);
/* Checks that x of this type can be multiplied by the number. int64 needs a whole number that it
 * can hold. */
bool tensor_check_number(const char *op, DType dtype, double number);
/* The offset of x[i, j, ...]. */
bool tensor_find_element(const char *op, const Tensor *x, Shape index, int64_t *offset);

/* ---- reductions: reduce.c -------------------------------------------------------------------- */

/* Applies a kernel that makes one number of each row along dim. In the result dim has size 1. */
Tensor *tensor_reduce(const Tensor *x, Kernel *kernel, int dim, DType out);
/* The number in float64 that the kernel makes of all elements of x, a float; NaN on error. */
double tensor_measure(const char *op, const Tensor *x, Kernel *const *kernel);
void tensor_divide(Tensor *y, double number); /* y /= number: a mean is a sum and one division */
/* Summed dimensions get size 1; sums of integers and bools are I64. */
Tensor *tensor_sum_dims(const Tensor *x, const bool *dims);
/* Undoes a broadcast from this shape to the shape of x: sums x over the repeated dimensions. */
Tensor *tensor_sum_to(const Tensor *x, Shape shape);
/* dw (N) of layer norm: sum over the rows of dy z. x and dy (..., N) are contiguous; mean and scale
 * have a number for each row. */
void tensor_layer_norm_dw(Tensor *dw, const Tensor *x, const Tensor *dy, const Tensor *mean,
                          const Tensor *scale);

/* ---- products: product.c --------------------------------------------------------------------- */

/* (..., M, K) (..., K, N) -> (..., M, N); batch dimensions broadcast. */
Tensor *tensor_matmul(const Tensor *a, const Tensor *b);
/* start + a b, one matrix each, as a new contiguous tensor of this shape, which has m n elements. s
 * has the sizes and the strides of a, b and start; its c_stride is set here. */
Tensor *tensor_multiply_matrices(Shape shape, DType dtype, MatmulShape *s, const void *a,
                                 const void *b);
/* The last two dimensions swapped: a view without a reference, only for kernels. */
Tensor tensor_transposed(const Tensor *x);

/* ---- masks: masks.c ---------------------------------------------------------------------- */

/* x broadcast to the shape: a view without a reference, only for kernels. */
Tensor tensor_expanded(const Tensor *x, Shape shape);

/* A mask over scores (B, H, Q, K), for the kernels. keep, window and bias may be NULL. */
typedef struct {
    Shape scores;
    const Tensor *lengths; /* of tensor_mask_lengths */
    const Tensor *keep;    /* broadcasts to the scores */
    const Tensor *window;  /* (windows, Q, K) */
    const Tensor *bias;    /* broadcasts to the scores */
} Mask;

/* How many keys each query may attend to, for valid_lens (B), (B, Q) or NULL, and causal: I64,
 * (B, 1, Q, 1), or (1, 1, Q, 1) if valid_lens is NULL. */
Tensor *tensor_mask_lengths(const Tensor *valid_lens, bool causal, Shape scores);
/* y = softmax(scale x + window + bias) where the mask allows, 0 elsewhere; both (B, H, Q, K) or (B
 * H, Q, K) */
void tensor_masked_softmax(const Mask *mask, const Tensor *y, const Tensor *x, double scale);

/* ---- the generator: random.c ----------------------------------------------------------------- */

/* The generator of this thread. A copy of the Generator saves the state; assign the copy back to
 * restore the state. */
Generator *tensor_generator_current(void);

#endif
