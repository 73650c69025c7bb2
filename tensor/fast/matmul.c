/* matmul.c - matrix products, compiled once per instruction set. a b + c is rounded once if the CPU
 * has FMA.
 *
 * An element of c = a b + start is a chain, sum = fma(a[p], b[p], sum) for p = 0, 1, ..., and
 * then start + sum. A k beyond CHAIN is cut into chains of nearly equal length: the start of a
 * later chain is the result of the chains before it. This order depends neither on the code path
 * nor on the width of a vector: AVX2 and AVX-512, whole tiles and tiles at an edge give the same
 * bits.
 *
 * The algorithm is from Goto and van de Geijn, "Anatomy of high-performance matrix
 * multiplication", 2008, with sizes for today's caches. A register tile of c, ROWS x VECTORS
 * vectors, stays in registers during the loop over p. Each step of p loads VECTORS vectors of b and
 * ROWS numbers of a; it uses each vector ROWS times and each number VECTORS times. The loops:
 *
 *     for each panel of PANEL blocks of a, if a is packed and b has several parts
 *         for each chain of k
 *             for each part of b
 *                 for each block of a, some of its rows
 *                     for each sliver of b, as wide as a tile
 *                         for each tile
 *
 * A block and a part fit in the L2 cache, which is fast enough for the multiplications. Memory
 * traffic: b is read once per panel, a once per part of b, c once per chain.
 *
 * b is packed: its slivers stand one after the other, each in the order in which a tile reads it.
 * A sliver of a transposed b is transposed in registers. a is read in place if its rows are
 * contiguous, because a tile reads the numbers of a one at a time, or if its columns are contiguous
 * and close in memory. Otherwise blocks of a are packed, each just before its first use, one column
 * after the other. A small matrix, or one that few tiles read, is also read in place: packing it
 * would take more time than it saves. */
#include "isa.h"

#include <math.h>
#include <string.h>

/* A loop gets one copy for all strides. */
#ifndef __clang__
#pragma GCC optimize("no-version-loops-for-strides")
#endif

/* Is a store of the first lanes of a vector as fast as a store of all lanes? */
#define MASKED_STORES (WIDTH == 64)

enum {
    FEW = 2,           /* b is read in place if c has at most this many rows of tiles, */
    SMALL = 16 << 10,  /* or if the rows of b are within this many bytes, */
    SEVERAL = 128,     /* or within 3 SMALL bytes if a has at most this many rows */
    BLOCK = 256 << 10, /* bytes of a block of a */
    BLOCK_ROWS = 48,   /* a block has a multiple of this many rows: whole tiles and cache lines */
    PANEL = 64,        /* blocks of a that stay packed for all parts of b, if b has several */
    PART = 640 << 10,  /* bytes of a part of b */
    TALL = 256,        /* a transposed a is read in place if this many columns fit in two blocks */
    LONG = WIDTH < 64 ? 320 : 128, /* a tile with this many steps prefetches for the next tile */
    CHUNK = 32,                    /* rows that are packed for all slivers before the next rows */
    AHEAD = 16,                    /* packing prefetches this many rows ahead */
    SOON = 8                       /* a tile of a transposed a prefetches this many steps ahead */
};
_Static_assert(BLOCK / sizeof(double) / CHAIN >= BLOCK_ROWS, "a block of whole chains has rows");

/* For the loop of load: gcc uses one mask for it if it may not unroll it. clang needs no advice; if
 * it cannot follow one, it warns when it links with -flto. */
#ifdef __clang__
#define ONE_MASK
#else
#define ONE_MASK _Pragma("GCC unroll 1")
#endif

#define STEPS             _Pragma("GCC unroll 4") /* for the loop over p of a whole tile */
#define ROUND_UP(x, step) (((x) + (step)-1) / (step) * (step))

/* SLIVER: how many numbers from one packed sliver to the next; the gap of LANES numbers keeps
 * slivers of a multiple of 4 KiB out of the same cache sets. SLIVERS: how many for all slivers. */
#define SLIVER(k, width)     ((k) * (width) + LANES)
#define SLIVERS(n, k, width) (((n) + (width)-1) / (width)*SLIVER(k, width))

/* A vector of the lanes of x and y at these indices. The lanes of y are counted after the lanes of
 * x. gcc 11 has another builtin for this, whose result must be as wide as x. */
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (NAME(Lanes)){__VA_ARGS__})
#endif

/* LANES indices for a shuffle of two vectors, each a function of the lane and of s. */
#define EACH_LANE_2(DO, s) DO(0, s), DO(1, s)
#define EACH_LANE_4(DO, s) EACH_LANE_2(DO, s), DO(2, s), DO(3, s)
#define EACH_LANE_8(DO, s) EACH_LANE_4(DO, s), DO(4, s), DO(5, s), DO(6, s), DO(7, s)
#define EACH_LANE_16(DO, s)                                                                        \
    EACH_LANE_8(DO, s), DO(8, s), DO(9, s), DO(10, s), DO(11, s), DO(12, s), DO(13, s), DO(14, s), \
        DO(15, s)
#define EACH_LANE(lanes)    EACH_LANE_OF(lanes)
#define EACH_LANE_OF(lanes) EACH_LANE_##lanes

#define REAL       float
#define INTEGER    int32_t /* as wide as REAL */
#define LANES      LANES_F32
#define NAME(name) name##_f32
#include "matmul.inc"
#undef REAL
#undef INTEGER
#undef LANES
#undef NAME
#define REAL       double
#define INTEGER    int64_t
#define LANES      LANES_F64
#define NAME(name) name##_f64
#include "matmul.inc"

int64_t GLOBAL(matmul_workspace_f32)(const MatmulShape *s) { return 4 * plan_f32(s).workspace; }
int64_t GLOBAL(matmul_workspace_f64)(const MatmulShape *s) { return 8 * plan_f64(s).workspace; }

void GLOBAL(transpose_f32)(int64_t rows, int64_t columns, const float *from, int64_t from_row,
                           float *to, int64_t to_row) {
    for (int64_t r = 0; r < to_row; r += LANES_F32)
        transpose_any_f32(rows - r, columns, from + r * from_row, from_row, to + r, to_row);
}
