/* matmul.c - matrix products, compiled once per instruction set, with a b + c fused into one
 * rounding where the processor can.
 *
 * An element of c = a b is one chain, c = fma(a[p], b[p], c) for p = 0, 1, ..., whatever path it is
 * computed on and however wide the vectors are: AVX2 and AVX-512, blocks and edges give the same
 * bits. (Products with a vector are the exception: those run along p, see real.inc.)
 *
 * The plan is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication",
 * 2008. A tile of c, ROWS x VECTORS vectors, stays in registers while p runs; each step takes
 * VECTORS vectors of b and ROWS numbers of a, each of which is used VECTORS or ROWS times. For that
 * a and b are packed: cut into slivers as wide as a tile, stored in the order in which the tile
 * reads them, from whatever strides they have. A block of b (DEPTH x COLUMNS) is made for the last
 * cache and one of a (HEIGHT x DEPTH) for the second, so that the sliver of b (DEPTH x a tile's
 * width) stays in the first. */
#ifndef ISA
#define ISA baseline
#endif
#include "kernels.h"

#include <string.h>

/* A tile needs ROWS * VECTORS registers for c, VECTORS for b and one for a; there are 32 of 64
 * bytes or 16 of the others. Two multiplications can begin in a cycle, and each takes four, so at
 * least eight must be under way. */
#if defined __AVX512F__
#define VECTOR  64 /* bytes */
#define ROWS    8
#define VECTORS 2
#elif defined __AVX2__
#define VECTOR  32
#define ROWS    4
#define VECTORS 3
#else
#define VECTOR  16
#define ROWS    4
#define VECTORS 2
#endif
enum { DEPTH = 256, HEIGHT = 192, COLUMNS = 960, FEW = 2 };

/* For all numbers of rows, and all numbers of vectors, that a tile of c may have at an edge. */
#if ROWS == 8
#define EACH_ROWS(DO, v) DO(1, v) DO(2, v) DO(3, v) DO(4, v) DO(5, v) DO(6, v) DO(7, v) DO(8, v)
#else
#define EACH_ROWS(DO, v) DO(1, v) DO(2, v) DO(3, v) DO(4, v)
#endif
#if VECTORS == 3
#define EACH_TILE(DO) EACH_ROWS(DO, 1) EACH_ROWS(DO, 2) EACH_ROWS(DO, 3)
#else
#define EACH_TILE(DO) EACH_ROWS(DO, 1) EACH_ROWS(DO, 2)
#endif

#define UNROLL            _Pragma("GCC unroll 16")
#define INLINE            static inline __attribute__((always_inline))
#define ROUND_UP(x, step) (((x) + (step)-1) / (step) * (step))
#define MIN(x, y)         ((x) < (y) ? (x) : (y))

int64_t GLOBAL(matmul_workspace)(const MatmulShape *s, size_t element) {
    const int64_t lanes = VECTOR / (int64_t)element, size = (int64_t)element;
    return size * MIN(DEPTH, s->k) *
           (ROUND_UP(MIN(COLUMNS, s->n), lanes) + ROUND_UP(MIN(HEIGHT, s->m), ROWS));
}

#define REAL       float
#define NAME(name) name##_f32
#include "matmul.inc"
#undef REAL
#undef NAME
#define REAL       double
#define NAME(name) name##_f64
#include "matmul.inc"
