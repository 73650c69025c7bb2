/* more_plain.c - the kernels that the core does not call, as simple loops, and their table.
 * kernels/plain.c has those of the core, in the same way. */
#include "more_kernels.h"

#include "../kernels/plain_math.h"

#include <string.h>

#pragma GCC diagnostic ignored "-Wdouble-promotion" /* float32 is computed in double */
#pragma GCC diagnostic ignored "-Wunused-parameter" /* every kernel has the same parameters */

/* For each key: does dropout keep its weight for query i? */
static void draw_kept(const AttentionHead *a, int64_t i, bool *kept) {
    if (a->dropout == 0 || a->dropout == 1) memset(kept, a->dropout == 0, (size_t)a->K);
    else if (a->drawn) memcpy(kept, a->drawn + i * a->K, (size_t)a->K);
    else tensor_draw_bools(a->generator, a->K, kept, 1 - a->dropout);
}

#define REAL       float
#define NAME(name) name##_f32
#include "../kernels/plain_row.inc"
#include "more_plain.inc"
#define REAL       double
#define NAME(name) name##_f64
#include "../kernels/plain_row.inc"
#include "more_plain.inc"

#define TYPE       float
#define SUM        double
#define TOTAL      float
#define NAME(name) name##_f32
#include "more_plain_any.inc"
#define TYPE       double
#define SUM        double
#define TOTAL      double
#define NAME(name) name##_f64
#include "more_plain_any.inc"
/* Sums of whole numbers are int64, modulo 2^64. */
#define TYPE       int64_t
#define SUM        uint64_t
#define TOTAL      uint64_t
#define NAME(name) name##_i64
#include "more_plain_any.inc"
#define TYPE       bool
#define SUM        uint64_t
#define TOTAL      uint64_t
#define NAME(name) name##_bool
#include "more_plain_any.inc"

/* clang-format off */
#define FLOAT(name) {name##_f32, name##_f64}
#define SAME(name)  {name##_f32, name##_f64, name##_i64, name##_bool}

const MoreKernels tensor_more_kernels_plain = {
#define KERNEL(form, name, types) .name = types(name),
#include "more_kernels.def"
};
/* clang-format on */
