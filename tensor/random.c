/* random.c - PyTorch's CPU generator, number for number.
 *
 * One engine, the Mersenne Twister MT19937, deals out 32-bit words; everything below spends
 * them exactly as PyTorch's CPU does, in the same order and in the same number, so that a
 * program that seeds as a notebook does goes on to see the notebook's digits. Uniforms,
 * integers and masks are equal to the last bit. Normals go through the C library's log, cos
 * and sin and agree to half of 1e-6.
 *
 * Every maker checks its arguments and gets its memory before the first draw: a call that
 * fails leaves the generator where it was.
 *
 * The digits rest on a * b + c being rounded twice: compile with -ffp-contract=off. (PyTorch's
 * own compiler fused uniform's for CPUs with AVX2, and with bounds other than 0 and 1 its last bit
 * depends on the machine. Ours never does, and is that of PyTorch's portable code.)
 *
 * Sources: Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
 * uniform pseudorandom number generator", ACM TOMACS 8 (1998); Box and Muller, "A note on
 * the generation of random normal deviates", Ann. Math. Statist. 29 (1958); Fisher and Yates
 * (1938) for the shuffle.
 */
#include <float.h>
#include <math.h>

#include "internal.h"

/* ---- the engine ---------------------------------------------------------------------------- */

enum { WORDS = 624, MIDDLE = 397 }; /* n and m of the paper */

static _Thread_local Generator thread_generator;

/* Knuth's linear congruential filler; only the low 32 bits of a seed count, as in PyTorch. */
static void seed_generator(Generator *g, uint32_t seed) {
    g->state[0] = seed;
    for (uint32_t j = 1; j < WORDS; j++) {
        uint32_t before = g->state[j - 1];
        g->state[j] = 1812433253u * (before ^ (before >> 30)) + j;
    }
    g->next = WORDS;
    g->seeded = true;
    g->has_cached = false;
    g->cached = 0;
}

Generator *generator_current(void) {
    if (!thread_generator.seeded) seed_generator(&thread_generator, 0);
    return &thread_generator;
}

void tensor_manual_seed(uint64_t seed) { seed_generator(&thread_generator, (uint32_t)seed); }

/* The top bit of one word and the 31 low bits of the next, times the paper's matrix A. */
static inline uint32_t mix(uint32_t word, uint32_t next) {
    uint32_t y = (word & 0x80000000u) | (next & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (y & 1u)) & 0x9908b0dfu);
}

/* The recurrence x[k + n] = x[k + m] xor mix(x[k], x[k + 1]) for all n words at once. Two loops
 * and a last word spare it a remainder per index. */
static void twist(Generator *g) {
    uint32_t *x = g->state;
    for (int k = 0; k < WORDS - MIDDLE; k++) x[k] = x[k + MIDDLE] ^ mix(x[k], x[k + 1]);
    for (int k = WORDS - MIDDLE; k < WORDS - 1; k++)
        x[k] = x[k + MIDDLE - WORDS] ^ mix(x[k], x[k + 1]);
    x[WORDS - 1] = x[MIDDLE - 1] ^ mix(x[WORDS - 1], x[0]);
    g->next = 0;
}

static inline uint32_t draw32(Generator *g) {
    if (g->next == WORDS) twist(g);
    uint32_t y = g->state[g->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static inline uint64_t draw64(Generator *g) { /* the high word is drawn first */
    uint64_t high = draw32(g);
    return high << 32 | draw32(g);
}

/* Uniform in [0, 1), with as many bits as the type's significand holds. */
static inline float uniform24(Generator *g) { return (float)(draw32(g) & 0xffffffu) * 0x1p-24f; }

static inline double uniform53(Generator *g) {
    return (double)(draw64(g) & 0x1fffffffffffffu) * 0x1p-53;
}

/* ---- making the tensor ----------------------------------------------------------------------- */

/* An uninitialised tensor; op is named should a size be negative. */
static Tensor *make(const char *op, Shape shape, DType dtype) {
    for (int d = 0; d < shape.ndim && d < TENSOR_MAX_DIMS; d++) {
        if (shape.dim[d] < 0)
            return tensor_fail("%s: shape is %s: a size must not be negative", op,
                               tensor_shape_text(shape));
    }
    return tensor_make(shape, dtype);
}

/* ---- uniform --------------------------------------------------------------------------------- */

/* Elements from .. end of x: u (high - low) + low, in x's type. */
static void fill_uniform(Tensor *x, int64_t from, int64_t end, double low, double high) {
    Generator *g = generator_current();
    float *f32 = x->data, low_f32 = (float)low, range_f32 = (float)high - low_f32;
    double *f64 = x->data, range = high - low;
    for (int64_t i = from; i < end && x->dtype == F32; i++)
        f32[i] = uniform24(g) * range_f32 + low_f32;
    for (int64_t i = from; i < end && x->dtype == F64; i++) f64[i] = uniform53(g) * range + low;
}

static Tensor *uniform(const char *op, double low, double high, Shape shape) {
    Tensor *x = make(op, shape, tensor_default_dtype());
    if (x) fill_uniform(x, 0, tensor_numel(x), low, high);
    return x;
}

Tensor *tensor_rand(Shape shape) { return uniform("rand", 0, 1, shape); }

/* u (high - low) + low may round up to high itself; PyTorch's does too. */
Tensor *tensor_uniform(double low, double high, Shape shape) {
    DType dtype = tensor_default_dtype();
    double largest = dtype == F32 ? (double)FLT_MAX : DBL_MAX;
    if (isnan(low) || isnan(high))
        return tensor_fail("uniform: %s is nan: it must be a number", isnan(low) ? "low" : "high");
    if (low > high)
        return tensor_fail("uniform: low is %.15g and high is %.15g: low must not be above high",
                           low, high);
    if (low < -largest || high > largest || high - low > largest)
        return tensor_fail("uniform: low is %.15g and high is %.15g: both, and high - low, must be "
                           "finite in %s",
                           low, high, tensor_dtype_name(dtype));
    return uniform("uniform", low, high, shape);
}

/* ---- normal ---------------------------------------------------------------------------------- */

/* Box and Muller: if u1 and u2 are uniform, then r = sqrt(-2 ln u2) is the length and
 * theta = 2 pi u1 the angle of a point whose two coordinates are independent standard normals.
 * PyTorch does this in two ways, and which one depends on the number of elements. */

static const double TWO_PI = 6.283185307179586;
enum { BLOCK = 16 };

/* Fewer than 16 elements: one at a time, in double for both types. The second coordinate of a
 * point waits in the generator for the next draw, whichever call makes it. */
static double draw_normal(Generator *g) {
    if (g->has_cached) {
        g->has_cached = false;
        return g->cached;
    }
    double u1 = uniform53(g);
    double u2 = uniform53(g);
    double r = sqrt(-2 * log1p(-u2)); /* 1 - u2 lies in (0, 1]: the logarithm is finite */
    double theta = TWO_PI * u1;
    g->cached = r * sin(theta);
    g->has_cached = true;
    return r * cos(theta);
}

/* 16 or more: uniforms, which the kernel turns into points, 16 coordinates at a time. All are drawn
 * before any is transformed. Where 16 does not divide n, the last 16 places, most of them finished
 * already, are drawn and transformed again. */
static void fill_normal_long(Tensor *x, int64_t n, double mean, double std) {
    const NormalKernel kernel = kernels()->box_muller[x->dtype];
    fill_uniform(x, 0, n, 0, 1);
    kernel(n / BLOCK * BLOCK, x->data, mean, std);
    if (n % BLOCK == 0) return;
    fill_uniform(x, n - BLOCK, n, 0, 1);
    kernel(BLOCK, (char *)x->data + (n - BLOCK) * (int64_t)dtype_size(x->dtype), mean, std);
}

static void fill_normal_short(Tensor *x, int64_t n, double mean, double std) {
    Generator *g = generator_current();
    for (int64_t i = 0; i < n; i++) {
        double value = draw_normal(g) * std + mean;
        if (x->dtype == F32) ((float *)x->data)[i] = (float)value;
        else ((double *)x->data)[i] = value;
    }
}

static Tensor *normal(const char *op, double mean, double std, Shape shape) {
    Tensor *x = make(op, shape, tensor_default_dtype());
    int64_t n = tensor_numel(x);
    if (x && n < BLOCK) fill_normal_short(x, n, mean, std);
    if (x && n >= BLOCK) fill_normal_long(x, n, mean, std);
    return x;
}

Tensor *tensor_randn(Shape shape) { return normal("randn", 0, 1, shape); }

/* A mean that is not finite goes through to the elements, as in PyTorch. */
Tensor *tensor_normal(double mean, double std, Shape shape) {
    if (isnan(std)) return tensor_fail("normal: std is nan: it must be a number");
    if (std < 0) return tensor_fail("normal: std is %.15g: it must not be negative", std);
    return normal("normal", mean, std, shape);
}

/* ---- masks, integers, permutations --------------------------------------------------------- */

/* Always compares 53-bit uniforms, whatever the default type, and draws even when p is 0 or 1. */
Tensor *tensor_bernoulli(double p, Shape shape) {
    if (isnan(p)) return tensor_fail("bernoulli: p is nan: it must be in [0, 1]");
    if (p < 0 || p > 1) return tensor_fail("bernoulli: p is %.15g: it must be in [0, 1]", p);
    Tensor *x = make("bernoulli", shape, BOOL);
    if (!x) return NULL;
    Generator *g = generator_current();
    bool *keep = x->data;
    int64_t n = tensor_numel(x);
    for (int64_t i = 0; i < n; i++) keep[i] = uniform53(g) < p;
    return x;
}

/* A range that 32 bits can count takes one word per element, a wider one takes two. The sums are
 * taken modulo 2^64, so that the whole range of int64_t works. The remainder favours small
 * offsets by as much as range / 2^32, a bias that equal digits oblige us to share. */
Tensor *tensor_randint(int64_t low, int64_t high, Shape shape) {
    if (low >= high)
        return tensor_fail("randint: low is %lld and high is %lld: low must be below high",
                           (long long)low, (long long)high);
    Tensor *x = make("randint", shape, I64);
    if (!x) return NULL;
    Generator *g = generator_current();
    int64_t *out = x->data;
    int64_t n = tensor_numel(x);
    uint64_t range = (uint64_t)high - (uint64_t)low;
    for (int64_t i = 0; i < n; i++) {
        uint64_t offset = range <= UINT32_MAX ? draw32(g) % (uint32_t)range : draw64(g) % range;
        out[i] = (int64_t)(offset + (uint64_t)low);
    }
    return x;
}

/* Fisher and Yates: position i trades places with one of those from i on. */
Tensor *tensor_randperm(int64_t n) {
    if (n < 0) return tensor_fail("randperm: n is %lld: it must not be negative", (long long)n);
    Tensor *x = make("randperm", SHAPE(n), I64);
    if (!x) return NULL;
    Generator *g = generator_current();
    int64_t *r = x->data;
    for (int64_t i = 0; i < n; i++) r[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t j = i + (int64_t)(draw32(g) % (uint64_t)(n - i));
        int64_t kept = r[i];
        r[i] = r[j];
        r[j] = kept;
    }
    return x;
}
