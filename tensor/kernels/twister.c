/* twister.c - the random numbers of PyTorch on a CPU: the Mersenne Twister MT19937 makes words, and
 * uniforms, normals, bools, integers and permutations are made from the words.
 *
 * On every CPU the digits are PyTorch's on a CPU with AVX2 or AVX-512. Compile with
 * -ffp-contract=off: a product and a sum are fused where fmaf or fma stands in the code, and
 * nowhere else.
 *
 * Sources: Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
 * uniform pseudorandom number generator", ACM TOMACS 8 (1998); Box and Muller, "A note on
 * the generation of random normal deviates", Ann. Math. Statist. 29 (1958); Fisher and Yates
 * (1938) for the shuffle.
 */
#include "kernels.h"

#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* ---- the generator ------------------------------------------------------------------------- */

/* Fills the state by Knuth's linear congruential generator. As in PyTorch, only the low 32 bits of
 * a seed count. */
void tensor_generator_seed(Generator *g, uint32_t seed) {
    *g = (Generator){.state = {seed}, .next = GENERATOR_WORDS, .seeded = true};
    for (uint32_t j = 1; j < GENERATOR_WORDS; j++) {
        uint32_t before = g->state[j - 1];
        g->state[j] = 1812433253u * (before ^ (before >> 30)) + j;
    }
}

enum { SPENT = GENERATOR_WORDS, WAITING, BITS };

void tensor_generator_to_numbers(const Generator *g, int64_t *numbers) {
    for (int i = 0; i < GENERATOR_WORDS; i++) numbers[i] = g->state[i];
    numbers[SPENT] = g->next;
    numbers[WAITING] = g->has_cached;
    memcpy(&numbers[BITS], &g->cached, sizeof g->cached);
}

/* The numbers are the state of a generator if a generator made from the numbers gives the same
 * numbers back. */
bool tensor_generator_from_numbers(Generator *g, const int64_t *numbers) {
    Generator found = {.next = (int)numbers[SPENT], .seeded = true, .has_cached = numbers[WAITING]};
    int64_t back[GENERATOR_NUMBERS];
    for (int i = 0; i < GENERATOR_WORDS; i++) found.state[i] = (uint32_t)numbers[i];
    memcpy(&found.cached, &numbers[BITS], sizeof found.cached);
    tensor_generator_to_numbers(&found, back);
    const bool good =
        found.next >= 0 && found.next <= GENERATOR_WORDS && memcmp(back, numbers, sizeof back) == 0;
    if (good) *g = found;
    return good;
}

/* The top bit of one word and the 31 low bits of the next, times the paper's matrix A. */
static inline uint32_t mix(uint32_t word, uint32_t next) {
    const uint32_t y = (word & 0x80000000u) | (next & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (y & 1u)) & 0x9908b0dfu);
}

/* The recurrence x[k + n] = x[k + m] xor mix(x[k], x[k + 1]) for all n words at once. Two loops and
 * a last word, so that no index needs a remainder. A word that a loop writes is read again 227
 * steps later at the earliest, so the compiler makes loops of vectors. */
static void twist(Generator *g) {
    enum { N = GENERATOR_WORDS, M = 397 };
    uint32_t *x = g->state;
    for (int k = 0; k < N - M; k++) x[k] = x[k + M] ^ mix(x[k], x[k + 1]);
    for (int k = N - M; k < N - 1; k++) x[k] = x[k + M - N] ^ mix(x[k], x[k + 1]);
    x[N - 1] = x[M - 1] ^ mix(x[N - 1], x[0]);
    g->next = 0;
}

static void temper(int64_t n, const uint32_t *x, uint32_t *word) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t y = x[i] ^ x[i] >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        word[i] = y ^ (y >> 18);
    }
}

/* Draws the next n words, many at a time, so that the loops over them are loops of vectors. */
enum { BATCH = 512, HALF_BATCH = BATCH / 2 };
static void draw_words(Generator *g, int64_t n, uint32_t *word) {
    for (int64_t i = 0, m; i < n; i += m) {
        if (g->next == GENERATOR_WORDS) twist(g);
        m = MIN(n - i, GENERATOR_WORDS - g->next);
        temper(m, g->state + g->next, word + i);
        g->next += (int)m;
    }
}

static uint32_t draw32(Generator *g) {
    uint32_t word = 0;
    draw_words(g, 1, &word);
    return word;
}

/* ---- uniform ------------------------------------------------------------------------------- */

/* Uniforms in [0, 1), with as many random bits as the significand of the type has. */
void tensor_draw_units(Generator *g, DType dtype, int64_t n, void *x) {
    float *f32 = x;
    double *f64 = x;
    uint32_t word[BATCH];
    for (int64_t begin = 0; begin < n; begin += HALF_BATCH) {
        const int64_t m = MIN(n - begin, HALF_BATCH);
        draw_words(g, dtype == F32 ? m : 2 * m, word);
        if (dtype == F32) {
            for (int64_t i = 0; i < m; i++)
                f32[begin + i] = (float)(int32_t)(word[i] & 0xffffffu) * 0x1p-24f;
            continue;
        }
        for (int64_t i = 0; i < m; i++) {
            /* all 2 m are drawn, which clang's analyzer does not see */
            /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
            const int64_t pair = (int64_t)(word[2 * i] & 0x1fffffu) << 32 | word[2 * i + 1];
            f64[begin + i] = (double)pair * 0x1p-53;
        }
    }
}

/* u (high - low) + low in the type of x, with one rounding. As in PyTorch, a number may be rounded
 * up to high. If the CPU has no fused multiply-add, the C library computes the same bits. */
void tensor_draw_uniforms(Generator *g, DType dtype, int64_t n, void *x, double low, double high) {
    const float low_f32 = (float)low, range_f32 = (float)high - low_f32;
    const double range = high - low;
    float *f32 = x;
    double *f64 = x;
    tensor_draw_units(g, dtype, n, x);
    if (dtype == F32)
        for (int64_t i = 0; i < n; i++) f32[i] = fmaf(f32[i], range_f32, low_f32);
    else
        for (int64_t i = 0; i < n; i++) f64[i] = fma(f64[i], range, low);
}

/* ---- normal ---------------------------------------------------------------------------------- */

/* Box and Muller: if u1 and u2 are uniform, then r = sqrt(-2 ln u2) is the length and
 * theta = 2 pi u1 the angle of a point whose two coordinates are independent standard normals.
 * PyTorch does this in two ways: one for fewer than 16 elements, one for 16 or more. */

enum { BLOCK = 16 };

/* Fewer than 16 elements: one at a time, in double for both types. The second coordinate of a
 * point waits in the generator for the next draw, whichever call makes it. */
static double draw_normal(Generator *g) {
    g->has_cached = !g->has_cached;
    if (!g->has_cached) return g->cached;
    double u[2]; /* 1 - u[1] lies in (0, 1]: its logarithm is finite */
    tensor_draw_units(g, F64, 2, u);
    double r = sqrt(-2 * log1p(-u[1])), theta = 2 * PI * u[0];
    g->cached = r * sin(theta);
    return r * cos(theta);
}

/* A block of 16 uniforms becomes 8 points, first all x, then all y: r = sqrt(-2 ln(1 - u1)) is the
 * length, theta = 2 pi u2 the angle. In float32 each function is rounded to float, and so is 2 pi
 * before the multiplication, as in PyTorch with AVX2. PyTorch without AVX2 rounds the product
 * instead: then a number differs by up to 2.4e-6. */
static void box_muller(DType dtype, int64_t n, void *x, double mean, double std) {
    const float mean_f32 = (float)mean, std_f32 = (float)std, two_pi = (float)(2 * PI);
    for (int64_t block = 0; block < n; block += BLOCK)
        for (int64_t j = block; j < block + BLOCK / 2; j++) {
            float *f32 = x;
            double *f64 = x;
            if (dtype == F32) {
                const float r = sqrtf(-2 * (float)log((double)(1 - f32[j])));
                const double theta = (double)(two_pi * f32[j + BLOCK / 2]);
                f32[j] = r * (float)cos(theta) * std_f32 + mean_f32;
                f32[j + BLOCK / 2] = r * (float)sin(theta) * std_f32 + mean_f32;
            } else {
                const double r = sqrt(-2 * log(1 - f64[j]));
                const double theta = 2 * PI * f64[j + BLOCK / 2];
                f64[j] = r * cos(theta) * std + mean;
                f64[j + BLOCK / 2] = r * sin(theta) * std + mean;
            }
        }
}

/* For n >= 16: draws all uniforms, then transforms them in blocks of 16. If 16 does not divide n,
 * the last 16 elements are drawn and transformed again, although most of them already have their
 * numbers. */
void tensor_draw_normals(Generator *g, DType dtype, int64_t n, void *x, double mean, double std) {
    if (n < BLOCK) {
        for (int64_t i = 0; i < n; i++) {
            double value = draw_normal(g) * std + mean;
            if (dtype == F32) ((float *)x)[i] = (float)value;
            else ((double *)x)[i] = value;
        }
        return;
    }
    void *last = dtype == F32 ? (void *)((float *)x + n - BLOCK) : (double *)x + n - BLOCK;
    tensor_draw_units(g, dtype, n, x);
    box_muller(dtype, n / BLOCK * BLOCK, x, mean, std);
    if (n % BLOCK == 0) return;
    tensor_draw_units(g, dtype, BLOCK, last);
    box_muller(dtype, BLOCK, last, mean, std);
}

/* ---- masks, integers, permutations --------------------------------------------------------- */

/* x is true if a whole number of 53 random bits is below p 2^53, also if the default type is
 * float32. Draws even if p is 0 or 1. */
void tensor_draw_bools(Generator *g, int64_t n, bool *x, double p) {
    uint64_t limit = (uint64_t)ceil(p * 0x1p53);
    uint32_t word[BATCH];
    for (int64_t i = 0; i < n; i += HALF_BATCH) {
        const int64_t m = MIN(n - i, HALF_BATCH);
        draw_words(g, 2 * m, word);
        for (int64_t j = 0; j < m; j++) {
            const uint64_t pair = (uint64_t)(word[2 * j] & 0x1fffffu) << 32 | word[2 * j + 1];
            x[i + j] = pair < limit;
        }
    }
}

/* A range below 2^28 takes one word per element, a wider range takes two. The sums are modulo 2^64,
 * so that the whole range of int64_t works. The remainder makes small offsets more probable, by at
 * most 2^28 / 2^32 = 6 %. PyTorch takes this remainder, so equal digits need it. */
void tensor_draw_integers(Generator *g, int64_t n, int64_t *x, int64_t low, int64_t high) {
    uint64_t range = (uint64_t)high - (uint64_t)low;
    for (int64_t i = 0; i < n; i++) {
        uint64_t word = draw32(g); /* of two words the high one is drawn first */
        if (range >= 1 << 28) word = word << 32 | draw32(g);
        x[i] = (int64_t)(word % range + (uint64_t)low);
    }
}

/* Fisher and Yates: swaps the element at i with a random one of the elements from i on. (From n =
 * 2^32 / 20 on, PyTorch draws numbers of 64 bits instead.) */
void tensor_draw_permutation(Generator *g, int64_t n, int64_t *x) {
    for (int64_t i = 0; i < n; i++) x[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t *other = x + i + draw32(g) % (uint64_t)(n - i);
        const int64_t moved = x[i];
        x[i] = *other;
        *other = moved;
    }
}
