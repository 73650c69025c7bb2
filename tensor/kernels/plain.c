/* plain.c - every kernel of the core as a simple loop, and the table that any machine can run.
 * TAPEHEAD_ISA=plain runs everything on these kernels, so you can put a printf or a breakpoint into
 * a formula and train attention with it. The fast kernels are tested against the plain ones.
 *
 * tensor_kernels()->softmax[F32] is softmax_f32, which is NAME(softmax) of plain.inc with REAL =
 * float, unless a fast kernel (fast.c, matmul.c) overrides it.
 *
 * plain.inc has the kernels of floats, plain_any.inc kernels of any type, plain_integers.inc
 * kernels of int64 and bool, plain_matmul.inc the product of matrices. */
#include "kernels.h"
#include "plain_math.h"

#include <string.h>

#pragma GCC diagnostic ignored "-Wdouble-promotion"    /* float32 is computed in double */
#pragma GCC diagnostic ignored "-Wunused-parameter"    /* every kernel has the same parameters */
#pragma GCC diagnostic ignored "-Wunused-variable"     /* a formula may not need all operands */
#pragma GCC diagnostic ignored "-Wint-in-bool-context" /* the product of bools is "and" */

/* ---- float32 and float64 --------------------------------------------------------------------- */

/* The operand's element i, in a loop over i. */
#define ELEMENT(type, operand) (((const type *)data[operand])[i])

#define SUM        double
#define REAL       float
#define NAME(name) name##_f32
#include "plain.inc"
#define REAL       double
#define NAME(name) name##_f64
#include "plain.inc"
#undef SUM

/* ---- any type -------------------------------------------------------------------------------- */

/* A float outside the range of int64 becomes INT64_MIN, as on x86: in C the conversion is
 * undefined. */
static int64_t to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static double distance(double a, double b) { return a - b; }
static double distance_i64(int64_t a, int64_t b) { return (double)((uint64_t)a - (uint64_t)b); }
/* a - b for a > b; the difference of two int64 may not fit an int64 */
#define DISTANCE(a, b) _Generic((a), int64_t : distance_i64, default : distance)(a, b)

#define AS_TYPE(x) ((TYPE)(x))
#define TYPE       float
#define NAME(name) name##_f32
#include "plain_any.inc"
#define TYPE       double
#define NAME(name) name##_f64
#include "plain_any.inc"
#define TYPE       bool
#define NAME(name) name##_bool
#include "plain_any.inc"
#undef AS_TYPE
#define TYPE       int64_t
#define NAME(name) name##_i64
#define AS_TYPE(x)                                                                                 \
    _Generic((x), float : to_i64((double)(x)), double : to_i64((double)(x)), default : (TYPE)(x))
#include "plain_any.inc"

/* ---- whole numbers: int64 modulo 2^64, as PyTorch's, and bool, where + is "or", * is "and" --- */

#define SUM             uint64_t
#define REAL            uint64_t
#define NAME(name)      name##_i64
#define NUMBER(s)       ((uint64_t)to_i64(s))
#define FOR_NUMBER(...) __VA_ARGS__
#include "plain_matmul.inc"

#include "plain_integers.inc"
#define REAL       bool
#define NAME(name) name##_bool
#define NUMBER(s)  ((s) != 0)
#define FOR_NUMBER(...)
#include "plain_integers.inc"

/* ---- the table ------------------------------------------------------------------------------- */

/* The kernels for each set of types in elementwise.def and kernels.def. */
/* clang-format off */
#define FLOAT(name)  {name##_f32, name##_f64}
#define NUMBER(name) {name##_f32, name##_f64, name##_i64}
#define SAME(name)   {name##_f32, name##_f64, name##_i64, name##_bool}

const Kernels tensor_kernels_plain = {
    .name = "plain",
    .value = {
#define UNARY(name, formula, gradient, source, types, ...) [ELEMENTWISE_##name] = types(name),
#define BINARY UNARY
#define COMPARE(name, ...) [ELEMENTWISE_##name] = SAME(name),
#include "elementwise.def"
    },
    .vjp = {
#define UNARY(name, ...)  [ELEMENTWISE_##name] = {FLOAT(name##_vjp)},
#define BINARY(name, ...) [ELEMENTWISE_##name] = {FLOAT(name##_vjp_a), FLOAT(name##_vjp_b)},
#define COMPARE(name, ...)
#include "elementwise.def"
    },
    .convert = {
        [F32] = {from_f32_f32, from_f64_f32, from_i64_f32, from_bool_f32},
        [F64] = {from_f32_f64, from_f64_f64, from_i64_f64, from_bool_f64},
        [I64] = {from_f32_i64, from_f64_i64, from_i64_i64, from_bool_i64},
        [BOOL] = {from_f32_bool, from_f64_bool, from_i64_bool, from_bool_bool},
    },
#define KERNEL(form, name, types) .name = types(name),
#include "kernels.def"
};
/* clang-format on */
