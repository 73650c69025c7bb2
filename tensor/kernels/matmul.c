/* matmul.c - matrix products, compiled once per instruction set, with a b + c fused into one
 * rounding where the processor can.
 *
 * An element of c = a b + start is a chain, sum = fma(a[p], b[p], sum) for p = 0, 1, ..., to which
 * start is added. A k beyond CHAIN is cut into chains of one length, or nearly, which are added one
 * after the other. That order is the same on every path and for every width of a vector: AVX2 and
 * AVX-512, blocks and edges give the same bits.
 *
 * The idea is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
 * 2008, for caches of today. A tile of c, ROWS x VECTORS vectors, stays in registers while p runs;
 * each step takes VECTORS vectors of b and ROWS numbers of a, and uses each of them ROWS or VECTORS
 * times. Tiles follow one another down a block of a, beside a sliver of b as wide as a tile; then
 * comes the next sliver, until a part of b is through; then the next block. Block and part stay in
 * the second cache, from which a and b come at a rate that the multiplications hide, and the
 * slower memory behind it sees each number of a once for each part, c once for CHAIN steps, b
 * once.
 *
 * That wants b packed, its slivers one after the other, each in the order in which a tile reads it;
 * a sliver of a transposed b is transposed on the way, in registers. a's rows are read where they
 * are: a tile takes their numbers one at a time. Where its columns are the runs of neighbours, the
 * product is cut into some of fewer steps, so that the lines that a takes stay near. Only if these
 * are too far apart, or nothing of a is a run, blocks of it are packed: their columns, one after
 * the other, each block just before it is used. And what is small, or read by few tiles, costs more
 * to pack than it saves: it stays where it is. */
#include "isa.h"

#include <string.h>

/* One copy of a tile, whatever its steps are, and of what is ALONE. */
#ifdef __clang__
#define ALONE static __attribute__((noinline))
#else
#define ALONE static __attribute__((noinline, noclone))
#pragma GCC optimize("no-version-loops-for-strides")
#endif

/* Are the first lanes of a vector written as fast as all of them? */
#define MASKED_STORES (WIDTH == 64)

enum {
    FEW = 2,           /* tiles one below the other, for which packing b does not pay */
    SMALL = 16 << 10,  /* bytes from the first to the last row of a b that may stay, */
    SEVERAL = 128,     /* or three times as many where a has no more rows than these */
    BLOCK = 256 << 10, /* bytes of a block of a, */
    BLOCK_ROWS = 48,   /* whose rows are a multiple of these: whole tiles, whole lines */
    PANEL = 64,        /* blocks that stay packed for all parts of b, if there are several */
    PART = 640 << 10,  /* bytes of a part of b */
    TALL = 256,        /* steps of a transposed a that stays: each reads a line */
    LONG = WIDTH < 64 ? 320 : 128, /* steps of a tile that has what comes next fetched */
    CHUNK = 32,                    /* rows that are packed sliver by sliver before the next ones */
    AHEAD = 16,                    /* rows from the one that is packed to the one that is fetched */
    SOON = 8 /* steps of a transposed a, from the one that a tile takes to the one fetched */
};
_Static_assert(BLOCK / sizeof(double) / CHAIN >= BLOCK_ROWS, "a block of whole chains has rows");

#define STEPS             _Pragma("GCC unroll 4") /* of p, in a whole tile */
#define ROUND_UP(x, step) (((x) + (step)-1) / (step) * (step))

/* The numbers from one packed sliver to the next. What lies between them keeps slivers of 4 KiB
 * times something out of each other's way. */
#define SLIVER(k, width)  ((k) * (width) + LANES)
#define ROOM(n, k, width) (((n) + (width)-1) / (width)*SLIVER(k, width))

/* The lanes of x and y that have these numbers; y's follow x's. gcc 11 has only a builtin of
 * another name for it, whose result must be as wide as x. */
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
#define INTEGER    int32_t /* as wide */
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

int64_t GLOBAL(matmul_workspace_f32)(const MatmulShape *s) { return 4 * plan_f32(s).room; }
int64_t GLOBAL(matmul_workspace_f64)(const MatmulShape *s) { return 8 * plan_f64(s).room; }

void GLOBAL(transpose_f32)(int64_t rows, int64_t columns, const float *from, int64_t from_row,
                           float *to, int64_t to_row) {
    for (int64_t r = 0; r < to_row; r += LANES_F32)
        turn_f32(rows - r, columns, from + r * from_row, from_row, to + r, to_row);
}
