/* kernels.c - arithmetic on buffers, compiled once per instruction set into one table.
 *
 * The code is plain C that the compiler turns into vectors of whatever width the instruction set
 * has. It is built with -ffp-contract=off, so a * b + c is rounded twice everywhere, and sums have
 * a fixed order (real.inc): the digits do not depend on the table that is in use. */
#ifndef ISA
#define ISA baseline
#endif
#include "kernels.h"

#include <math.h>
#include <string.h>

#define TEXT2(a) #a
#define TEXT(a)  TEXT2(a)

/* "Iterations do not depend on each other": an output is at most the very same buffer as an input.
 * Clang has no such hint that stays quiet where a loop cannot be a vector loop; it checks instead.
 */
#ifdef __clang__
#define IVDEP
#else
#define IVDEP _Pragma("GCC ivdep")
#endif

/* A float beyond the integers becomes the smallest one, as the x86 conversion does: in C it would
 * be undefined. */
static inline int64_t to_i64(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#define TYPE       float
#define NAME(name) name##_f32
#include "any.inc"
#define TYPE       double
#define NAME(name) name##_f64
#include "any.inc"
#define TYPE       int64_t
#define NAME(name) name##_i64
#include "any.inc"
#define TYPE       bool
#define NAME(name) name##_bool
#include "any.inc"

#define REAL           float
#define REAL_IS_DOUBLE 0
#define NAME(name)     name##_f32
#include "real.inc"
#define REAL           double
#define REAL_IS_DOUBLE 1
#define NAME(name)     name##_f64
#include "real.inc"

#define REAL                   uint64_t
#define NAME(name)             name##_i64
#define FOR_NUMBER(definition) definition
#include "integer.inc"
#pragma GCC diagnostic ignored "-Wint-in-bool-context" /* a * b of bools is meant */
#define REAL       bool
#define NAME(name) name##_bool
#define FOR_NUMBER(definition)
#include "integer.inc"

/* ---- conversions ---------------------------------------------------------------------------- */

#define DEFINE_CONVERT(name, TO, FROM, value)                                                      \
    static void name(int64_t n, void *const *data, const int64_t *t, double s) {                   \
        (void)s;                                                                                   \
        TO *out = data[0];                                                                         \
        const FROM *px = data[1];                                                                  \
        if (t[0] == 1 && t[1] == 1) {                                                              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const FROM x = px[i];                                                              \
                out[i] = value;                                                                    \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const FROM x = px[i * t[1]];                                                           \
            out[i * t[0]] = value;                                                                 \
        }                                                                                          \
    }
DEFINE_CONVERT(f32_from_f32, float, float, x)
DEFINE_CONVERT(f32_from_f64, float, double, (float)x)
DEFINE_CONVERT(f32_from_i64, float, int64_t, (float)x)
DEFINE_CONVERT(f32_from_bool, float, bool, x)
DEFINE_CONVERT(f64_from_f32, double, float, (double)x)
DEFINE_CONVERT(f64_from_f64, double, double, x)
DEFINE_CONVERT(f64_from_i64, double, int64_t, (double)x)
DEFINE_CONVERT(f64_from_bool, double, bool, x)
DEFINE_CONVERT(i64_from_f32, int64_t, float, to_i64((double)x))
DEFINE_CONVERT(i64_from_f64, int64_t, double, to_i64(x))
DEFINE_CONVERT(i64_from_i64, int64_t, int64_t, x)
DEFINE_CONVERT(i64_from_bool, int64_t, bool, x)
DEFINE_CONVERT(bool_from_f32, bool, float, x != 0)
DEFINE_CONVERT(bool_from_f64, bool, double, x != 0)
DEFINE_CONVERT(bool_from_i64, bool, int64_t, x != 0)
DEFINE_CONVERT(bool_from_bool, bool, bool, x)

/* ---- products of integers -------------------------------------------------------------------- */

static void matmul_i64(const MatmulShape *m, const void *a_data, const void *b_data, void *c_data) {
    const uint64_t *a = a_data, *b = b_data;
    uint64_t *c = c_data;
    for (int64_t i = 0; i < m->m; i++)
        for (int64_t j = 0; j < m->n; j++) {
            uint64_t sum = 0;
            for (int64_t p = 0; p < m->k; p++)
                sum += a[i * m->a_stride[0] + p * m->a_stride[1]] *
                       b[p * m->b_stride[0] + j * m->b_stride[1]];
            c[i * m->c_stride[0] + j * m->c_stride[1]] = sum;
        }
}

/* ---- the table ----------------------------------------------------------------------------- */

extern const Kernels JOIN(kernels, ISA);

#define BOTH(name)                                                                                 \
    { name##_f32, name##_f64 }
#define THREE(name)                                                                                \
    { name##_f32, name##_f64, name##_i64 }
#define FOUR(name)                                                                                 \
    { name##_f32, name##_f64, name##_i64, name##_bool }
/* the types of elementwise.def */
#define FLOAT  BOTH
#define NUMBER THREE
#define SAME   FOUR

const Kernels JOIN(kernels, ISA) = {
    .name = TEXT(ISA),
    .value =
        {
#define UNARY(name, formula, gradient, source, types, ...) [ELEMENTWISE_##name] = types(name),
#define UNARY_SCALAR                                       UNARY
#define BINARY                                             UNARY
#define COMPARE(name, ...)                                 [ELEMENTWISE_##name] = FOUR(name),
#include "elementwise.def"
        },
    .vjp =
        {
#define UNARY(name, ...)        [ELEMENTWISE_##name] = {BOTH(name##_vjp)},
#define UNARY_SCALAR(name, ...) [ELEMENTWISE_##name] = {BOTH(name##_vjp)},
#define BINARY(name, ...)       [ELEMENTWISE_##name] = {BOTH(name##_vjp_a), BOTH(name##_vjp_b)},
#define COMPARE(name, ...)
#include "elementwise.def"
        },
    .convert =
        {
            [F32] = {f32_from_f32, f32_from_f64, f32_from_i64, f32_from_bool},
            [F64] = {f64_from_f32, f64_from_f64, f64_from_i64, f64_from_bool},
            [I64] = {i64_from_f32, i64_from_f64, i64_from_i64, i64_from_bool},
            [BOOL] = {bool_from_f32, bool_from_f64, bool_from_i64, bool_from_bool},
        },
    .where = FOUR(where),
    .masked_fill = FOUR(masked_fill),
    .dropout = BOTH(dropout),
    .pick = FOUR(pick),
    .put = BOTH(put),
    .logical_not = FOUR(logical_not),
    .add_scaled = THREE(add_scaled),
    .cut = FOUR(cut),
    .arange = FOUR(arange),
    .sum = FOUR(sum),
    .variance = BOTH(variance),
    .argmax = FOUR(argmax),
    .logsumexp = BOTH(logsumexp),
    .softmax = BOTH(softmax),
    .softmax_dx = BOTH(softmax_dx),
    .log_softmax = BOTH(log_softmax),
    .log_softmax_dx = BOTH(log_softmax_dx),
    .masked_softmax = BOTH(masked_softmax),
    .masked_softmax_dx = BOTH(masked_softmax_dx),
    .cross_entropy = BOTH(cross_entropy),
    .cross_entropy_dx = BOTH(cross_entropy_dx),
    .layer_norm = BOTH(layer_norm),
    .layer_norm_dx = BOTH(layer_norm_dx),
    .matmul = THREE(matmul),
    .matmul_workspace = GLOBAL(matmul_workspace),
    .box_muller = BOTH(box_muller),
    .tile_cut = BOTH(tile_cut),
    .query_mask = BOTH(query_mask),
    .tile_softmax = BOTH(tile_softmax),
    .tile_weights = BOTH(tile_weights),
    .tile_dot = BOTH(tile_dot),
    .tile_dx = BOTH(tile_dx),
    .scale_rows = BOTH(scale_rows),
    .attended = BOTH(attended),
    .invert = BOTH(invert),
    .sort = FOUR(sort),
    .compress = FOUR(compress),
    .decompress = FOUR(decompress),
    .count_far = FOUR(count_far),
};
