/* kernels.h - arithmetic on raw pointers: the types of kernels, and the table of the core's.
 *
 * Every kernel exists first as a plain loop (plain.inc, plain_any.inc), for every type that makes
 * sense. Fast kernels override some of them, each for one instruction set (fast/isa.h) and for
 * float32; only the matrix product also has a fast kernel for float64. fast/dispatch.c chooses when
 * the first kernel is needed. No kernel takes a Tensor: operations/ calls them for tensors. */
#ifndef TAPEHEAD_TENSOR_KERNELS_H
#define TAPEHEAD_TENSOR_KERNELS_H

#include "generator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined __FAST_MATH__ || __FINITE_MATH_ONLY__ > 0 || defined __NO_SIGNED_ZEROS__ ||            \
    defined __ASSOCIATIVE_MATH__ || defined __RECIPROCAL_MATH__
#error "-Ofast and -ffast-math change digits, NaN and -0: compile this without them, with -O3"
#endif
_Static_assert(sizeof 0.1 == sizeof(double), "-fsingle-precision-constant changes digits");

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* data[0] is the result, data[1] and so on are the operands that kernels.def lists. An operand is a
 * row of n contiguous elements, or one number for the row. The result of an elementwise kernel may
 * be the buffer of an operand; a dx may be the buffer of dy. s is a scalar operand. Fast kernels
 * may read the 128 bytes after the elements of every operand. */
typedef void Kernel(int64_t n, void *const *data, double s);

/* A kernel of operands with strides: element i of data[o] is at i stride[o]. */
typedef void StridedKernel(int64_t n, void *const *data, const int64_t *stride, int64_t step);

/* to[c] = the sum over r of from[r, c], from (rows, columns); step is the stride of from's rows */
typedef void SumRows(int64_t rows, int64_t columns, int64_t step, const void *from, void *to);
/* data: dw (columns), x and dy (rows, columns), mean and scale (rows) */
typedef void LayerNormDw(int64_t rows, int64_t columns, int64_t step, void *const *data);

/* ---- products -------------------------------------------------------------------------------- */

/* The most terms that a fast product adds one after the other. A longer sum is a sum of such
 * chains, so that its error grows with k / CHAIN, not with k. (A plain product adds in double.) */
enum { CHAIN = 512 };

/* c (m, n) = start (m, n) + a (m, k) b (k, n), every matrix with any two strides, in elements. */
typedef struct {
    int64_t m, n, k; /* m and n are not 0 */
    int64_t a_stride[2], b_stride[2], c_stride[2];
    const void *start;       /* may be c itself, or NULL: zeros */
    int64_t start_stride[2]; /* a stride of 0 repeats a bias; both are 0 if start is NULL */
    bool in_place;   /* a and b are small and read where they are, without a workspace; b_stride[1]
                      * is 1 */
    void *workspace; /* matmul_workspace() bytes */
} MatmulShape;
typedef void Matmul(const MatmulShape *shape, const void *a, const void *b, void *c);
typedef int64_t MatmulWorkspace(const MatmulShape *shape); /* in bytes */

/* ---- the table ------------------------------------------------------------------------------- */

/* The rows of elementwise.def, by number: ELEMENTWISE_add, ... */
enum {
#define EACH(name) ELEMENTWISE_##name,
#include "elementwise.def"
#undef EACH
    ELEMENTWISE_COUNT
};

/* The length of an array of kernels that is indexed by DType; NULL where a type makes no sense. */
enum { OF_FLOAT = 2, OF_NUMBER = 3, OF_SAME = 4 };

typedef struct {
    const char *name; /* "plain", "baseline", "neon", "avx2", "avx512" */

    Kernel *value[ELEMENTWISE_COUNT][4];  /* y, x  or  y, a, b */
    Kernel *vjp[ELEMENTWISE_COUNT][2][2]; /* by input, type: dx, x, y, dy  or  da, a, b, y, dy */
    Kernel *convert[4][4];                /* [to][from]: y, x */
#define KERNEL(form, name, types) form *name[OF_##types];
#include "kernels.def"
} Kernels;

/* All plain kernels; and the kernels of each instruction set, NULL where it has none. */
extern const Kernels tensor_kernels_plain;
extern const Kernels tensor_kernels_baseline;                    /* not on AArch64 */
extern const Kernels tensor_kernels_neon;                        /* on AArch64 */
extern const Kernels tensor_kernels_avx2, tensor_kernels_avx512; /* on x86-64 */

/* simple/table.c returns the plain kernels; fast/dispatch.c the table for this machine, or the one
 * that TAPEHEAD_ISA names. */
const Kernels *tensor_kernels(void);

#endif
