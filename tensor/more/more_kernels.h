/* more_kernels.h - the kernels that the core does not call: their types where the core has none,
 * and their table. As in kernels/, each exists first as a plain loop (more_plain.inc), and
 * fast.c overrides some; fast/dispatch.c chooses both tables at once, for one instruction set. */
#ifndef TAPEHEAD_TENSOR_MORE_KERNELS_H
#define TAPEHEAD_TENSOR_MORE_KERNELS_H

#include "../kernels/kernels.h"

/* ---- attention ------------------------------------------------------------------------------- */

/* One head: q (Q, D), k (K, D), v (K, Dv), y (Q, Dv). Each row is contiguous; x_row is the stride
 * of the rows of x, in elements. */
typedef struct {
    int64_t Q, K, D, Dv;
    const void *q, *k, *v;
    int64_t q_row, k_row, v_row;
    double scale;                  /* of the scores */
    const int64_t *length;         /* (Q): keys at or past it are masked */
    const bool *keep;              /* (Q, K), false: masked; or NULL */
    int64_t keep_row, keep_column; /* strides */
    const void *bias, *window;     /* (Q, K), added to the scores; -inf: masked; or NULL */
    int64_t bias_row, bias_column; /* strides */
    int64_t window_row, window_column;
    double dropout;       /* the probability that a weight is dropped */
    const bool *drawn;    /* (Q, K): what dropout keeps; NULL: the kernel draws it */
    Generator *generator; /* before the head's first draw; the kernel moves it past
                           * the last. Without dropout, drawn and generator are NULL */
    void *y;              /* forward writes it; backward reads it */
    int64_t y_row;
    double *max, *inverse; /* (Q): the largest score, and 1 / sum exp(score - max), 0 if all keys
                            * are masked. Forward writes them, backward reads them */
    const void *dy;        /* backward */
    void *dq, *dk, *dv;    /* backward writes them, */
    bool adds;             /* or adds to dk and dv, which another head has written */
    void *dbias;           /* (Q, K), contiguous: backward writes it where it is not 0; or NULL */
    int64_t dy_row, dq_row, dk_row, dv_row;
} AttentionHead;
typedef void AttentionKernel(const AttentionHead *head, void *workspace);
typedef int64_t AttentionWorkspace(const AttentionHead *head); /* in bytes, for either pass */

/* ---- additive attention ---------------------------------------------------------------------- */

/* One batch of additive attention: q (Q, H), k (K, H), w (H), dy (Q, K), all contiguous. Backward
 * adds to dq, dk and dw. */
typedef struct {
    int64_t Q, K, H;
    const void *q, *k, *w;
    const int64_t *length; /* (Q) */
    const void *dy;
    void *dq, *dk, *dw;
} AdditiveBatch;
typedef void AdditiveDx(const AdditiveBatch *batch);

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct {
#define KERNEL(form, name, types) form *name[OF_##types];
#include "more_kernels.def"
} MoreKernels;

/* All plain kernels; and those of each instruction set, NULL where it has none. */
extern const MoreKernels tensor_more_kernels_plain;
extern const MoreKernels tensor_more_kernels_baseline, tensor_more_kernels_neon;
extern const MoreKernels tensor_more_kernels_avx2, tensor_more_kernels_avx512;

/* The kernels that go with those of tensor_kernels. */
const MoreKernels *tensor_more_kernels(void);

#endif
