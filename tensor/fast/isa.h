/* isa.h - the properties of each instruction set, for the kernels that are compiled once for each:
 * fast.c, matmul.c and attention_tiles.c. These files are plain C with the vector extensions of gcc
 * and clang. All that depends on the instruction set stands here. (Exceptions: rows_in_lanes in
 * matmul.inc has a load of its own for AVX-512; matmul.c and matmul.inc choose masked stores and
 * prefetches by WIDTH.)
 *
 * How to add an instruction set, as NEON was added:
 *   1. Makefile: put its name into ISAS, and write a rule for %.name.o with its compiler flags.
 *   2. Here: the width of its vectors and the shape of a register tile.
 *   3. kernels.h and more/more_kernels.h: declare its two tables. dispatch.c: add them to
 *      list_tables, with the test that tells whether the CPU can run them. TAPEHEAD_ISA=name then
 *      forces them.
 *   4. tests/suites/library/common_kernels.c: add the table to find_tables. test_kernels compares
 * each kernel with the plain one. test_products compares the tables that have FMA: the bits must be
 * equal. For a CPU that you do not have, tests/checks/ports builds all and runs the suites under
 * qemu.
 */
#ifndef TAPEHEAD_TENSOR_ISA_H
#define TAPEHEAD_TENSOR_ISA_H

/* WIDTH: bytes of a vector. LANES_*: the numbers in a vector.
 *
 * A register tile of a product is ROWS x VECTORS vectors. The tile needs ROWS VECTORS registers
 * for c, VECTORS for b and one for a: 6 x 4 needs 29 of the 32 that AVX-512 and NEON have, 6 x 2
 * needs 15 of the 16 that AVX2 has. Few loads for each multiplication are best: 6 x 4 has 10 loads
 * for 24 multiplications, 8 x 2 would have 10 for 16. A CPU begins two multiplications in a cycle
 * and each takes four cycles, so at least eight multiplications must run at the same time: a tile
 * that is one vector wide has up to NARROW_ROWS rows. EACH_TILE(DO) lists the tiles: DO(rows,
 * vectors) ... */
#if defined __AVX512F__ /* intrinsics: VECTOR_FMA, masked stores, 16 bytes into one lane */
#include <immintrin.h>
#define WIDTH     64
#define LANES_F32 16
#define LANES_F64 8
#define ROWS      6
#define VECTORS   4
#define EACH_TILE(DO)                                                                              \
    ROW_COUNTS_12(DO, 1) ROW_COUNTS_6(DO, 2) ROW_COUNTS_6(DO, 3) ROW_COUNTS_6(DO, 4)
#define STORE_MASKED(x)                                                                            \
    _Generic(*(x), float : _mm512_mask_storeu_ps, double : _mm512_mask_storeu_pd)
#elif defined __AVX2__
#include <immintrin.h>
#define WIDTH         32
#define LANES_F32     8
#define LANES_F64     4
#define ROWS          6
#define VECTORS       2
#define EACH_TILE(DO) ROW_COUNTS_12(DO, 1) ROW_COUNTS_6(DO, 2)
#elif defined __aarch64__ /* NEON */
#include <arm_neon.h>
#define WIDTH     16
#define LANES_F32 4
#define LANES_F64 2
#define ROWS      6
#define VECTORS   4
#define EACH_TILE(DO)                                                                              \
    ROW_COUNTS_12(DO, 1) ROW_COUNTS_6(DO, 2) ROW_COUNTS_6(DO, 3) ROW_COUNTS_6(DO, 4)
#else /* any other instruction set: vectors of 128 bits */
#define WIDTH         16
#define LANES_F32     4
#define LANES_F64     2
#define ROWS          4
#define VECTORS       2
#define EACH_TILE(DO) ROW_COUNTS_8(DO, 1) ROW_COUNTS_4(DO, 2)
#endif
#define NARROW_ROWS               (2 * ROWS)
#define ROW_COUNTS_4(DO, vectors) DO(4, vectors) DO(3, vectors) DO(2, vectors) DO(1, vectors)
#define ROW_COUNTS_6(DO, vectors) DO(6, vectors) DO(5, vectors) ROW_COUNTS_4(DO, vectors)
#define ROW_COUNTS_8(DO, vectors) DO(8, vectors) DO(7, vectors) ROW_COUNTS_6(DO, vectors)
#define ROW_COUNTS_12(DO, vectors)                                                                 \
    DO(12, vectors) DO(11, vectors) DO(10, vectors) DO(9, vectors) ROW_COUNTS_8(DO, vectors)

/* a b + c, rounded once if the instruction set can do that. Each kind of machine has its macro.
 * VECTOR_FMA is for vectors: compilers fuse a product and a sum by themselves only at some -O
 * levels, and the digits of a result depend on no level. */
#if defined __FMA__ || defined __ARM_FEATURE_FMA || defined __FP_FAST_FMAF
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#define FUSES        1
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define FUSES        0
#endif
#if defined __AVX512F__
#define VECTOR_FMA(a, b, c)                                                                        \
    _Generic((c)[0], float : _mm512_fmadd_ps, double : _mm512_fmadd_pd)(a, b, c)
#elif defined __AVX2__
#define VECTOR_FMA(a, b, c)                                                                        \
    _Generic((c)[0], float : _mm256_fmadd_ps, double : _mm256_fmadd_pd)(a, b, c)
#elif defined __aarch64__
#define VECTOR_FMA(a, b, c) _Generic((c)[0], float : vfmaq_f32, double : vfmaq_f64)(c, a, b)
#endif

/* The global names of an instruction set: tensor_matmul_f32_avx2. */
#define JOIN_NAMES(name, isa) tensor_##name##_##isa
#define JOIN_NAME(name, isa)  JOIN_NAMES(name, isa)
#define GLOBAL(name)          JOIN_NAME(name, ISA)

/* For fast.c, matmul.c and attention_tiles.c. transpose: to (columns, to_row) = from (rows,
 * columns) transposed. to_row is a multiple of 16; the places of a row from `rows` on become 0. */
#include "../more/more_kernels.h"
Matmul GLOBAL(matmul_f32), GLOBAL(matmul_f64);
MatmulWorkspace GLOBAL(matmul_workspace_f32), GLOBAL(matmul_workspace_f64);
void GLOBAL(transpose_f32)(int64_t rows, int64_t columns, const float *from, int64_t from_row,
                           float *to, int64_t to_row);
AttentionKernel GLOBAL(attention_f32), GLOBAL(attention_dx_f32);
AttentionWorkspace GLOBAL(attention_workspace_f32);

/* For a function that is called in loops of vectors: a real call would make such a loop scalar. */
#define INLINE static inline __attribute__((always_inline))
/* For a function that is not inlined: one copy serves all callers. */
#ifdef __clang__
#define SHARED static __attribute__((noinline))
#else
#define SHARED static __attribute__((noinline, noclone))
#endif

/* Iterations do not depend on each other: an output is an input's buffer, or overlaps no input. */
#ifdef __clang__
#define IVDEP _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#else
#define IVDEP _Pragma("GCC ivdep")
#endif
#define UNROLL _Pragma("GCC unroll 16")
#define MASKED IVDEP _Pragma("GCC unroll 1") /* else gcc does not use one mask for the loop */

/* A loop over i < n. If the instruction set has masks, the loop computes whole groups of 16
 * elements in vectors, and the rest as one group under a mask: a row of 10 takes as long as a row
 * of 16. (gcc divides without the mask: it reads up to 60 bytes after a divisor; Kernel allows this
 * read.)
 */
#ifdef __AVX2__
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
#define VECTOR_LOOP(...)                                                                           \
    do {                                                                                           \
        IVDEP for (int64_t i = 0; i < n; i++) { __VA_ARGS__; }                                     \
    } while (0)
#endif

#endif
