/* kernels.c - arithmetic on buffers, compiled once per instruction set into one table.
 *
 * The code is plain C that the compiler turns into vectors of whatever width the instruction set
 * has. It is built with -ffp-contract=off: a * b + c is rounded twice, except where math.inc fuses
 * it on every machine that can; and sums have a fixed order (real.inc). So AVX2, AVX-512 and the
 * baseline of AArch64 give the same digits, and x86's baseline, which has no such instruction,
 * gives functions of floats that are a last bit apart. */
#include "kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* a kernel has those of every kernel */

#ifndef __clang__
#pragma GCC optimize("no-unswitch-loops") /* a loop has one copy, not one for each case in it */
#endif

#define TEXT2(a) #a
#define TEXT(a)  TEXT2(a)

/* IVDEP: "iterations do not depend on each other", since an output is at most the very same buffer
 * as an input. SMALL: a function that gains nothing from vectors, and from speed little. */
#ifdef __clang__
#define IVDEP  _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#define SMALL  __attribute__((noinline, minsize))
#define SHARED __attribute__((noinline)) /* by many kernels: one copy serves them all */
#else
#define IVDEP  _Pragma("GCC ivdep")
#define SMALL  __attribute__((noinline, optimize("Os", "no-tree-vectorize")))
#define SHARED __attribute__((noinline, noclone))
#endif

#define UNROLL _Pragma("GCC unroll 4")
#define MASKED IVDEP _Pragma("GCC unroll 1") /* or it will not be instructions under one mask */

/* ---- elements that do not lie side by side ----------------------------------------------------
 */

/* A loop over i < n. Where there are masks, whole groups of 16 elements are vectors of any width,
 * and the rest is one group under a mask: a row of ten costs what one of sixteen does. (gcc forgets
 * the mask where it divides: up to 60 bytes behind a divisor are read, which cache_alloc allows.)
 */
#ifdef __AVX2__
#define UNROLL_ALL _Pragma("GCC unroll 32") /* where there are registers for it */
#define VECTOR_LOOP(...)                                                                           \
    do {                                                                                           \
        const int64_t whole = n & -16;                                                             \
        IVDEP for (int64_t i = 0; i < whole; i++) { __VA_ARGS__; }                                 \
        const int rest = (int)(n - whole);                                                         \
        if (rest == 0) break;                                                                      \
        IVDEP for (int l = 0; l < 16; l++) {                                                       \
            const int64_t i = whole + l;                                                           \
            if (l < rest) {                                                                        \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
        }                                                                                          \
    } while (0)
#else
#define UNROLL_ALL
#define VECTOR_LOOP PLAIN_LOOP
#endif
#define PLAIN_LOOP(...)                                                                            \
    do {                                                                                           \
        IVDEP for (int64_t i = 0; i < n; i++) { __VA_ARGS__; }                                     \
    } while (0)

static inline bool is_dense(int64_t n, const int64_t *t, int operands) {
    bool dense = true;
    for (int o = 0; o < operands; o++) dense &= t[o] == 1;
    return dense || n <= 1;
}

typedef uint32_t Word __attribute__((may_alias));
typedef uint64_t Long __attribute__((may_alias));

/* y[i sy] = x[i sx], of elements of so many bytes. */
SMALL static void copy_strided(int size, int64_t n, void *y, int64_t sy, const void *x,
                               int64_t sx) {
    for (int64_t i = 0; size == 4 && i < n; i++) ((Word *)y)[i * sy] = ((const Word *)x)[i * sx];
    for (int64_t i = 0; size == 8 && i < n; i++) ((Long *)y)[i * sy] = ((const Long *)x)[i * sx];
    for (int64_t i = 0; size == 1 && i < n; i++) ((char *)y)[i * sy] = ((const char *)x)[i * sx];
}

/* A kernel is written for dense operands alone. Any others are brought to it in pieces that are
 * copied into room on the stack: so there is one loop per kernel and not one per pattern of
 * strides, and its vectors are full whatever the strides. size: of an element of each operand, in
 * bytes; 0: this one is no row, but numbers that the kernel reads as it likes. */
SHARED static void in_pieces(LoopKernel kernel, int operands, const char *size, int64_t n,
                             void *const *data, const int64_t *t, double s) {
    enum { PIECE = 128, OPERANDS = 6 };
    static const int64_t dense[OPERANDS] = {1, 1, 1, 1, 1, 1};
    _Alignas(64) char room[OPERANDS][PIECE * 8];
    void *place[OPERANDS] = {NULL};
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t m = MIN(n - i, PIECE);
        for (int o = 0; o < operands; o++) {
            /* numbers have no t */
            char *x = size[o] ? (char *)data[o] + i * t[o] * size[o] : data[o];
            place[o] = size[o] == 0 || t[o] == 1 ? x : room[o];
            const bool is_there = place[o] == x || o == 0 || (t[o] == 0 && i > 0);
            if (!is_there) copy_strided(size[o], m, room[o], 1, x, t[o]);
        }
        kernel(m, place, dense, s);
        char *y = (char *)data[0] + i * t[0] * size[0];
        if (t[0] != 1) copy_strided(size[0], m, y, t[0], place[0], 1);
    }
}

/* For a kernel to begin with: the sizes of its operands, of which the first ones are rows. */
#define PIECES_UNLESS_DENSE(kernel, rows, s, ...)                                                  \
    if (!is_dense(n, t, rows)) {                                                                   \
        const char sizes[] = {__VA_ARGS__};                                                        \
        in_pieces(kernel, (int)sizeof sizes, sizes, n, data, t, s);                                \
        return;                                                                                    \
    }                                                                                              \
    (void)0

/* Bytes of a vector, and as many numbers from x on as it has doubles. */
#define AT(x, i) (double)(x)[i]
#ifdef __AVX512F__
#define WIDTH 64
#define NUMBERS(x)                                                                                 \
    ((Doubles){AT(x, 0), AT(x, 1), AT(x, 2), AT(x, 3), AT(x, 4), AT(x, 5), AT(x, 6), AT(x, 7)})
#elif defined(__AVX__)
#define WIDTH      32
#define NUMBERS(x) ((Doubles){AT(x, 0), AT(x, 1), AT(x, 2), AT(x, 3)})
#else
#define WIDTH      16
#define NUMBERS(x) ((Doubles){AT(x, 0), AT(x, 1)})
#endif
typedef double Doubles __attribute__((vector_size(WIDTH)));
enum { SOME = sizeof(Doubles) / sizeof(double) };

/* A float beyond the integers becomes the smallest one, as the x86 conversion does: in C it would
 * be undefined. */
static inline int64_t to_i64(double x) {
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#include "math.inc"

#define REAL       float
#define NAME(name) name##_f32
#define KIND
#define LOOP VECTOR_LOOP
#include "real.inc"
#undef KIND
#undef LOOP

#define DEFINE_COPY(name, TYPE)                                                                    \
    static void name(int64_t n, void *const *data, const int64_t *t, double s) {                   \
        TYPE *y = data[0];                                                                         \
        const TYPE *x = data[1];                                                                   \
        const TYPE first = n > 0 ? *x : 0;                                                         \
        if (is_dense(n, t, 2)) VECTOR_LOOP(y[i] = x[i]);                                           \
        else if (t[0] == 1 && t[1] == 0) VECTOR_LOOP(y[i] = first); /* a fill, an expanded row */  \
        else copy_strided(sizeof *x, n, y, t[0], x, t[1]);                                         \
    }
DEFINE_COPY(copy_4, Word)
DEFINE_COPY(copy_8, Long)
DEFINE_COPY(copy_1, char)

/* ---- words of the Mersenne Twister: see twister.c ----------------------------------------------
 */

/* The top bit of one word and the 31 low bits of the next, times the paper's matrix A. */
static inline uint32_t mix(uint32_t word, uint32_t next) {
    uint32_t y = (word & 0x80000000u) | (next & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (y & 1u)) & 0x9908b0dfu);
}

/* The recurrence x[k + n] = x[k + m] xor mix(x[k], x[k + 1]) for all n words at once. Two loops
 * and a last word spare it a remainder per index; in both the words that are read are so far from
 * the one that is written that they become loops of vectors. */
static void twist(int64_t n, void *const *data, const int64_t *t, double s) {
    enum { N = GENERATOR_WORDS, M = 397 };
    uint32_t *x = data[0];
    for (int k = 0; k < N - M; k++) x[k] = x[k + M] ^ mix(x[k], x[k + 1]);
    for (int k = N - M; k < N - 1; k++) x[k] = x[k + M - N] ^ mix(x[k], x[k + 1]);
    x[N - 1] = x[M - 1] ^ mix(x[N - 1], x[0]);
}

static void temper(int64_t n, void *const *data, const int64_t *t, double s) {
    uint32_t *word = data[0];
    const uint32_t *x = data[1];
    IVDEP for (int64_t i = 0; i < n; i++) {
        uint32_t y = x[i] ^ x[i] >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        word[i] = y ^ (y >> 18);
    }
}

/* A difference is negative, its top bit set, where the first number is smaller. */
static void pairs_below(int64_t n, void *const *data, const int64_t *t, double s) {
    unsigned char *y = data[0];
    const uint32_t *word = data[1];
    const uint64_t limit = *(const uint64_t *)data[2];
    IVDEP for (int64_t i = 0; i < n; i++) {
        const uint64_t pair = (uint64_t)(word[2 * i] & 0x1fffffu) << 32 | word[2 * i + 1];
        y[i] = (pair - limit) >> 63;
    }
}

/* Doubles, which are there for gradient checks, and integers stay small. Of these the tables of
 * AVX2 and AVX-512 have only the products of doubles: dispatch.c lends them the baseline's others,
 * and here they are dropped. */
#ifdef __AVX2__
#pragma GCC diagnostic ignored "-Wunused-function"
#define OTHERS(...)
#else
#define OTHERS(...) __VA_ARGS__
#endif
#ifndef __clang__
#pragma GCC optimize("Os", "no-tree-vectorize")
#endif
#define KIND       SMALL
#define LOOP       PLAIN_LOOP
#define REAL       double
#define NAME(name) name##_f64
#include "real.inc"

#define TYPE                   int64_t
#define REAL                   uint64_t
#define NAME(name)             name##_i64
#define FOR_NUMBER(definition) definition
#include "integer.inc"
#pragma GCC diagnostic ignored "-Wint-in-bool-context" /* a * b of bools is meant */
#define TYPE       bool
#define REAL       bool
#define NAME(name) name##_bool
#define FOR_NUMBER(definition)
#include "integer.inc"

/* ---- products of integers -------------------------------------------------------------------- */

SMALL static void matmul_i64(const MatmulShape *m, const void *a_data, const void *b_data,
                             void *c_data) {
    const uint64_t *a = a_data, *b = b_data, *start = m->start;
    uint64_t *c = c_data;
    for (int64_t i = 0; i < m->m; i++)
        for (int64_t j = 0; j < m->n; j++) {
            uint64_t sum = start ? start[i * m->start_stride[0] + j * m->start_stride[1]] : 0;
            for (int64_t p = 0; p < m->k; p++)
                sum += a[i * m->a_stride[0] + p * m->a_stride[1]] *
                       b[p * m->b_stride[0] + j * m->b_stride[1]];
            c[i * m->c_stride[0] + j * m->c_stride[1]] = sum;
        }
}

/* ---- the table ----------------------------------------------------------------------------- */

/* The kernels of the types that elementwise.def calls so. */
#define FLOAT(name)                                                                                \
    { name##_f32, OTHERS(name##_f64) }
#define NUMBER(name)                                                                               \
    { name##_f32, OTHERS(name##_f64, name##_i64) }
#define SAME(name)                                                                                 \
    { name##_f32, OTHERS(name##_f64, name##_i64, name##_bool) }

Kernels JOIN(kernels, ISA) = {
    .name = TEXT(ISA),
    .value =
        {
#define UNARY(name, formula, gradient, source, types, ...) [ELEMENTWISE_##name] = types(name),
#define BINARY                                             UNARY
#define COMPARE(name, ...)                                 [ELEMENTWISE_##name] = SAME(name),
#include "elementwise.def"
        },
    .vjp =
        {
#define UNARY(name, ...)  [ELEMENTWISE_##name] = {FLOAT(name##_vjp)},
#define BINARY(name, ...) [ELEMENTWISE_##name] = {FLOAT(name##_vjp_a), FLOAT(name##_vjp_b)},
#define COMPARE(name, ...)
#include "elementwise.def"
        },
    .convert =
        {
            [F32] = {copy_4, OTHERS(from_f64_f32, from_i64_f32, from_bool_f32)},
            [F64] = {OTHERS(from_f32_f64, )[F64] = copy_8, OTHERS(from_i64_f64, from_bool_f64)},
            [I64] = {OTHERS(from_f32_i64, from_f64_i64, )[I64] = copy_8, OTHERS(from_bool_i64)},
            [BOOL] = {OTHERS(from_f32_bool, from_f64_bool, from_i64_bool, )[BOOL] = copy_1},
        },
#define KERNEL(name, types) .name = types(name),
#include "kernels.def"
    .copy_rows = {GLOBAL(copy_rows_f32), GLOBAL(copy_rows_f64)},
    .turn_rows = {GLOBAL(turn_rows_f32), GLOBAL(turn_rows_f64)},
    .attended_rows = {GLOBAL(attended_rows_f32), GLOBAL(attended_rows_f64)},
    .matmul = {matmul_f32, matmul_f64, matmul_i64},
    .matmul_workspace = GLOBAL(matmul_workspace),
    .twist = twist,
    .temper = temper,
    .pairs_below = pairs_below,
};
