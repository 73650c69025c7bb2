/* kernels.h - the interface of all arithmetic on buffers. kernels.c is compiled once per
 * instruction set and fills one table each; dispatch.c picks one when it is first needed. */
#ifndef TAPEHEAD_KERNELS_H
#define TAPEHEAD_KERNELS_H

#include "../tensor.h"

#define MIN(x, y) ((x) < (y) ? (x) : (y))

/* Works along one dimension of n elements. data[0] is written, the others are read (data[0] may be
 * the very same buffer as another); stride[i], in elements, belongs to data[i]. s: a number of the
 * op. */
typedef void Loop(int64_t n, void *const *data, const int64_t *stride, double s);
typedef Loop *LoopKernel;

/* c (m, n) = start (m, n) + a (m, k) b (k, n), every matrix with any two strides, in elements.
 * Behind b, and behind a start whose rows are one, lies what cache_alloc leaves there: they are
 * read in whole vectors. */
typedef struct {
    int64_t m, n, k; /* m and n are not 0 */
    int64_t a_stride[2], b_stride[2], c_stride[2];
    const void *start;       /* may be c itself, or NULL: zeros */
    int64_t start_stride[2]; /* 0 repeats, say, a bias; both are 0 for NULL */
    bool in_place;   /* a and b are small and read where they are, without a workspace; b_stride[1]
                      * is 1 */
    void *workspace; /* matmul_workspace() bytes */
} MatmulShape;
typedef void Matmul(const MatmulShape *shape, const void *a, const void *b, void *c);

/* The rows of elementwise.def, by number: ELEMENTWISE_add, ... */
enum {
#define EACH(name) ELEMENTWISE_##name,
#include "elementwise.def"
#undef EACH
    ELEMENTWISE_COUNT
};

enum { TILE_QUERIES = 64 }; /* in a tile of attention's weights, at most */
enum { SHORT = 64 };        /* elements of a short row, at most */

/* Indexed by DType where an operand's type decides; NULL where a type makes no sense. */
enum { OF_FLOAT = 2, OF_NUMBER = 3, OF_SAME = 4 }; /* so many types */
typedef struct {
    const char *name; /* "baseline", "avx2", "avx512" */

    LoopKernel value[ELEMENTWISE_COUNT][4];  /* y, x  or  y, a, b */
    LoopKernel vjp[ELEMENTWISE_COUNT][2][2]; /* by input, type: dx, x, y, dy  or  da, a, b, y, dy */
    LoopKernel convert[4][4];                /* [to][from]: y, x */
#define KERNEL(name, types) LoopKernel name[OF_##types];
#include "kernels.def"
    LoopKernel copy_rows[2], turn_rows[2], attended_rows[2]; /* of attention: see matmul.inc */

    Matmul *matmul[3];
    int64_t (*matmul_workspace)(const MatmulShape *shape, size_t element); /* in bytes */

    /* random numbers, dense. Each of n pairs of words (32 bits each) is a number of 53 bits, the
     * first word on top: is it below the limit (64 bits)? */
    LoopKernel twist, temper, pairs_below; /* x; word, x; y (BOOL), words, limit */
} Kernels;

/* Compiled once for each ISA that the Makefile names: kernels.c, and matmul.c, which lets products
 * and sums be fused. */
#ifdef ISA
/* A function that would keep a loop from being one of vectors where it is called. */
#define INLINE       static inline __attribute__((always_inline))
#define JOIN2(a, b)  a##_##b
#define JOIN(a, b)   JOIN2(a, b)
#define GLOBAL(name) JOIN(name, ISA)
Matmul GLOBAL(matmul_f32), GLOBAL(matmul_f64);
Loop GLOBAL(copy_rows_f32), GLOBAL(turn_rows_f32), GLOBAL(attended_rows_f32);
Loop GLOBAL(copy_rows_f64), GLOBAL(turn_rows_f64), GLOBAL(attended_rows_f64);
int64_t GLOBAL(matmul_workspace)(const MatmulShape *shape, size_t element);
#endif

/* Of doubles and integers the last two have the products alone, until kernels() was called. */
extern Kernels kernels_baseline, kernels_avx2, kernels_avx512;

/* The table for this machine, or the one that TAPEHEAD_ISA names. */
const Kernels *kernels(void);

/* ---- threads: pool.c ------------------------------------------------------------------------- */

/* Does what is numbered from .. to of a whole: elements, rows, matrices. worker says whose call
 * this is, from 0, the calling thread: it does one part at a time, so that it can have a room of
 * its own, made by the caller. No digit may depend on where the whole is cut, or on worker. It
 * makes no tensor, takes no memory of cache_alloc and leaves no error: those belong to the calling
 * thread. */
typedef void (*PartOfWork)(int worker, int64_t from, int64_t to, void *context);

#ifdef TEST_HOOKS
/* The tests are linked with a pool.c of their own that has these variables; the library has none.
 * The tests make worth_a_thread small, so that small tensors are cut as large ones are, and have
 * the threads take turns, so that each of them does some of the work, however small it is. */
extern double worth_a_thread;
extern bool threads_take_turns;
#endif
int workers_for(double operations); /* how many threads such a work is worth, from 1 */

/* All of 0 .. n, by at most so many workers, in any order; it is done when this returns. One worker
 * alone gets it in one part, on the calling thread. */
void work_in_parts(int workers, int64_t n, PartOfWork work, void *context);

/* Two numbers trade places. */
static inline void swap(int64_t *x, int64_t *y) {
    const int64_t moved = *x;
    *x = *y;
    *y = moved;
}

/* ---- random numbers: twister.c, compiled once ------------------------------------------------ */

enum { GENERATOR_WORDS = 624 };

typedef struct {
    uint32_t state[GENERATOR_WORDS];
    int next;        /* index of the next word of state to temper; at the end: twist first */
    bool seeded;     /* false: behave as if seeded with 0 */
    bool has_cached; /* the second value of a Box-Muller pair is waiting */
    double cached;
} Generator;

void generator_seed(Generator *g, uint32_t seed);
void generator_skip(Generator *g, int64_t words); /* as if so many of 32 bits had been drawn */

/* A generator as whole numbers: the words, how many of them are spent, whether a normal is waiting,
 * and the bits of that one. False, and g is as it was, for numbers that no generator gives. */
enum { GENERATOR_NUMBERS = GENERATOR_WORDS + 3 };
void generator_to_numbers(const Generator *g, int64_t *numbers);
bool generator_from_numbers(Generator *g, const int64_t *numbers);

/* Each fills n places in the order, and with as many draws, as PyTorch does. dtype: F32 or F64.
 * Integers stay below high. */
void draw_units(Generator *g, DType dtype, int64_t n, void *x); /* in [0, 1) */
void draw_uniforms(Generator *g, DType dtype, int64_t n, void *x, double low, double high);
void draw_normals(Generator *g, DType dtype, int64_t n, void *x, double mean, double std);
void draw_bools(Generator *g, int64_t n, bool *x, double p); /* true with p */
void draw_integers(Generator *g, int64_t n, int64_t *x, int64_t low, int64_t high);
void draw_permutation(Generator *g, int64_t n, int64_t *x); /* of 0 .. n-1 */

/* ---- attention: attention.c, compiled once --------------------------------------------------- */

/* A mask over scores (B, H, Q, K), ready for the kernel. */
typedef struct {
    Shape scores;
    Tensor *lengths, *keep; /* views of the scores' shape; lengths of causal too; keep or NULL */
    const Tensor *window;   /* (windows, Q, K) or NULL */
} Mask;

/* part: valid_lens (B) or (B, Q), keep, which broadcasts to the scores, and window; NULL where
 * absent. False with an error; mask_close it in any case. */
bool mask_open(Mask *mask, const Tensor *const part[3], bool causal, Shape scores);
void mask_close(Mask *mask);
/* y = softmax(scale x + window) where the mask allows, 0 elsewhere; both (B, H, Q, K) or (B H, Q,
 * K) */
void masked_softmax(const Mask *mask, const Tensor *y, const Tensor *x, double scale);

/* dropout(softmax(scale q k' + window)) v where the mask allows: q (B, H, Q, D), k (B, H, K, D), v
 * (B, H, K, Dv), or all without H where that is 1. */
typedef struct {
    const Tensor *q, *k, *v;
    Mask mask;
    double scale, dropout;
    /* What the backward pass reads: (B H, 3, Q), of q's type, the largest score of each query and
     * 1 / the sum of its exp(score - largest), 0 where it attends to nothing, of the forward pass,
     * and the dots; and attention_memory() bytes: what dropout drew, (B H, Q, K), or if that is
     * smaller, the generator before it drew for each of the heads. */
    const Tensor *stats;
    union {
        bool *drawn;
        Generator *states;
    };
} AttentionOperands;

Shape attention_scores(const Tensor *q, const Tensor *k); /* (B, H, Q, K) */
int64_t attention_memory(Shape scores);
/* A new tensor of x's shape, but for the last size, which is that of `last`; laid out as x is:
 * heads that are views of (B, N, H, D) give such a view again, which is joined without a copy. */
Tensor *attention_result(const Tensor *x, const Tensor *last);
void attention_draw(const AttentionOperands *a, Generator *generator); /* once, and first */
/* sum(y dy), into stats. Where there is no y, it is made again. */
void attention_dots(const AttentionOperands *a, Tensor **y, const Tensor *dy);
/* Forward, dy is NULL, and dx[0] becomes y: (B, H, Q, Dv). Backward, dy has dense rows, and dx
 * become the gradients of q, k and v. Leaves an error where there is no room. */
void attention_pass(const AttentionOperands *a, const Tensor *dy, Tensor *const *dx);

#endif
