/* fast.c - the kernels of float32 that a training step gains from, compiled once per instruction
 * set into a table that overrides the plain one.
 *
 * Each kernel computes the formula of its plain kernel, which stands in kernels/plain.inc or
 * more/more_plain.inc. The code is plain C that the compiler turns into vectors of any width. This
 * file is built with -ffp-contract=off: a b + c is rounded twice; FMA(a, b, c), of isa.h, is
 * rounded once if the instruction set has a fused multiply-add. Sums have a fixed order that no
 * instruction set changes: blocks of 4096 elements; in a block, element i goes to lane i mod 32,
 * and the lanes are added as a tree; the blocks are added in double. An error grows with 128
 * additions at most, however long the row is, and AVX2, AVX-512 and NEON give the same bits. (The
 * last digits of a notebook depend on the last bit of one such sum:
 * tests/suites/programs/test_notebook.c fails with another order.)
 */
#include "isa.h"

#include "fast_math.h"

#include <math.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* every kernel has the same parameters */
#pragma GCC diagnostic ignored "-Wunused-variable"  /* a formula may not need all operands */
#ifndef __clang__
#pragma GCC optimize("no-unswitch-loops") /* a loop has one copy, not one for each case in it */
#endif

enum { LANES = 32, BLOCK = 4096, PARTS = LANES / WIDE }; /* PARTS vectors have 32 lanes */

/* ---- elementwise ---------------------------------------------------------------------------- */

#define UNARY(name, formula, gradient, source, types, torch, value, vjp, reads, low, high)         \
    static void name##_f32(int64_t n, void *const *data, double number) {                          \
        float *out = data[0];                                                                      \
        const float *in = data[1];                                                                 \
        const float s = (float)number;                                                             \
        VECTOR_LOOP(const float x = in[i]; out[i] = value);                                        \
    }                                                                                              \
    static void name##_vjp_f32(int64_t n, void *const *data, double number) {                      \
        float *dx = data[0];                                                                       \
        const float *px = data[1];                                                                 \
        const float *py = data[2];                                                                 \
        const float *pdy = data[3];                                                                \
        const float s = (float)number;                                                             \
        VECTOR_LOOP(const float x = px[i], y = py[i], dy = pdy[i]; dx[i] = vjp);                   \
    }
#define BINARY_VJP(name, vjp)                                                                      \
    static void name##_f32(int64_t n, void *const *data, double number) {                          \
        float *dx = data[0];                                                                       \
        const float *pa = data[1];                                                                 \
        const float *pb = data[2];                                                                 \
        const float *py = data[3];                                                                 \
        const float *pdy = data[4];                                                                \
        VECTOR_LOOP(const float a = pa[i], b = pb[i], y = py[i], dy = pdy[i]; dx[i] = vjp);        \
    }
#define BINARY(name, formula, gradient, source, types, torch, value, da, db, reads, low, high)     \
    static void name##_f32(int64_t n, void *const *data, double number) {                          \
        float *y = data[0];                                                                        \
        const float *pa = data[1];                                                                 \
        const float *pb = data[2];                                                                 \
        VECTOR_LOOP(const float a = pa[i], b = pb[i]; y[i] = value);                               \
    }                                                                                              \
    BINARY_VJP(name##_vjp_a, da)                                                                   \
    BINARY_VJP(name##_vjp_b, db)
#define COMPARE(name, formula, value)
#include "../kernels/elementwise.def"

static void add_scaled_f32(int64_t n, void *const *data, double number) {
    float *y = data[0];
    const float *a = data[1];
    const float *b = data[2];
    const float s = (float)number;
    VECTOR_LOOP(y[i] = FMA(s, b[i], a[i]));
}

/* PyTorch divides by the probability in the tensor's own type. */
static void dropout_f32(int64_t n, void *const *data, double number) {
    float *y = data[0];
    const float *px = data[1];
    const float s = 1 / (float)number;
    const unsigned char *keep = data[2]; /* gcc makes no vectors of bools */
    VECTOR_LOOP(const float x = px[i], kept = x * s, none = x < 0 ? -0.0f : 0.0f;
                y[i] = keep[i] ? kept : none);
}

static void where_f32(int64_t n, void *const *data, double number) {
    float *y = data[0];
    const unsigned char *condition = data[1];
    const float *pa = data[2];
    const float *pb = data[3];
    VECTOR_LOOP(const float a = pa[i], b = pb[i]; y[i] = condition[i] ? a : b);
}

static void adamw_f32(int64_t n, void *const *data, double number) {
    float *x = data[0];
    float *m = data[1];
    float *v = data[2];
    const float *g = data[3];
    const AdamWStep *by = data[4];
    const float fresh1 = (float)(1 - by->beta1), fresh2 = (float)(1 - by->beta2);
    const float beta2 = (float)by->beta2, eps = (float)by->eps, unbias = (float)by->unbias;
    const float keep = (float)by->keep, rate = (float)-by->rate;
    const bool from_m = fresh1 < 0.5f;
    const float weight = from_m ? fresh1 : fresh1 - 1;
    IVDEP for (int64_t i = 0; i < n; i++) {
        const float from = from_m ? m[i] : g[i];
        m[i] = FMA(weight, g[i] - m[i], from);
        v[i] = FMA(fresh2 * g[i], g[i], beta2 * v[i]);
        x[i] = keep * x[i] + rate * m[i] / (sqrtf(v[i]) / unbias + eps);
    }
}

/* ---- sums and maxima ------------------------------------------------------------------------- */

/* Vector p of x, of which n elements are left; pad takes the place of missing elements. One load,
 * masked if the vector is not full. store_part is the inverse. */
INLINE Vector part(const float *x, int p, int64_t n, float pad) {
    _Alignas(WIDTH) float v[WIDE];
    n -= p * WIDE;
    if (n >= WIDE) return ((const Vector *)x)[p];
    MASKED for (int l = 0; l < WIDE; l++) v[l] = l < (int)n ? x[p * WIDE + l] : pad;
    return *(Vector *)v;
}

INLINE void store_part(float *y, int p, int64_t n, Vector x) {
    n -= p * WIDE;
    if (n >= WIDE) ((Vector *)y)[p] = x;
    else MASKED for (int l = 0; l < WIDE; l++) if (l < (int)n) y[p * WIDE + l] = ((float *)&x)[l];
}

/* OP of all lanes, as a tree: lane l with lane l + 16, then with l + 8, and so on. */
typedef float Half __attribute__((vector_size(WIDTH > 16 ? WIDTH / 2 : 16)));
typedef float Last __attribute__((vector_size(16)));
#define DEFINE_TREE(name, OP)                                                                      \
    static inline float name(Vector *lane) {                                                       \
        Half half[2];                                                                              \
        Last last[2];                                                                              \
        for (int count = PARTS / 2; count > 0; count /= 2)                                         \
            for (int p = 0; p < count; p++) lane[p] = OP(lane[p], lane[p + count]);                \
        memcpy(half, lane, WIDTH);                                                                 \
        if (WIDTH > 16) half[0] = OP(half[0], half[1]);                                            \
        memcpy(last, half, WIDTH > 32 ? 32 : 16);                                                  \
        if (WIDTH > 32) last[0] = OP(last[0], last[1]);                                            \
        last[1] = (Last){last[0][2], last[0][3]};                                                  \
        last[0] = OP(last[0], last[1]);                                                            \
        last[1] = (Last){last[0][1]};                                                              \
        return OP(last[0], last[1])[0];                                                            \
    }
#define ADD(a, b) ((a) + (b))
DEFINE_TREE(add_lanes, ADD)
DEFINE_TREE(largest_lane, LARGER)

/* Products of a row, of which many can be denormal, as the weights of a softmax are. A short row is
 * multiplied as doubles, for Intel's CPUs (see PRODUCT). A long row is not: the conversions take a
 * third of the time of softmax. AMD's CPUs wait for a product that is denormal, but not for the
 * result of a fused multiply-add. masked_softmax_dx and additive_dx use LONG_PRODUCT for every row:
 * no case of tests/bench has short rows of denormal products there. */
enum { SHORT = 64 };
#define LONG_PRODUCT(a, b) FMA(a, b, -0.0f)
#define PRODUCT_LOOP(y, a, b)                                                                      \
    if (n <= SHORT) VECTOR_LOOP(y = PRODUCT(a, b));                                                \
    else VECTOR_LOOP(y = LONG_PRODUCT(a, b))
INLINE Vector products(bool is_short, Vector x, Vector y) {
    Vector z;
    for (int l = 0; l < WIDE; l++) z[l] = is_short ? PRODUCT(x[l], y[l]) : LONG_PRODUCT(x[l], y[l]);
    return z;
}

/* The sum over two rows of TERM, an expression in x, y and c. If a row does not fill the last
 * lanes, they get PAD, whose TERM is 0. */
#define DEFINE_BLOCK_SUM(name, TERM, PAD)                                                          \
    SHARED float name(int64_t n, const float *px, const float *py, float c) {                      \
        Vector lane[PARTS] = {0};                                                                  \
        for (; n > 0; n -= LANES, px += LANES, py += LANES)                                        \
            UNROLL for (int p = 0; p < PARTS; p++) {                                               \
                const Vector x = part(px, p, n, PAD), y = part(py, p, n, PAD);                     \
                (void)y;                                                                           \
                lane[p] += TERM;                                                                   \
            }                                                                                      \
        return add_lanes(lane);                                                                    \
    }
#define DEFINE_SUM(name, TERM, PAD)                                                                \
    DEFINE_BLOCK_SUM(name##_block, TERM, PAD)                                                      \
    static float name(int64_t n, const float *px, const float *py, float c) {                      \
        double total = 0;                                                                          \
        for (int64_t i = 0; i < n; i += BLOCK)                                                     \
            total += (double)name##_block(MIN(n - i, BLOCK), px + i, py + i, c);                   \
        return (float)total;                                                                       \
    }
DEFINE_SUM(sum_of, x, 0)
DEFINE_SUM(sum_less, x - c, c)
DEFINE_SUM(sum_squares, (x - c) * (x - c), c)
DEFINE_BLOCK_SUM(sum_products_short, products(true, x, y), 0)
DEFINE_SUM(sum_products_long, products(false, x, y), 0)
DEFINE_SUM(sum_centred, (x - c) * y, 0)
/* the sum of x y over the elements with x != 0; y may be NaN where x is 0 */
DEFINE_SUM(sum_known, (Vector)((CHOICE(x, y))products(false, x, y) & (x != 0)), 0)

static float sum_products(int64_t n, const float *x, const float *y) {
    return (n <= SHORT ? sum_products_short : sum_products_long)(n, x, y, 0);
}

/* If a number is too large or too small for the formula in float32, or if a part of a sum overflows
 * (then the sum is an infinity or NaN), the plain kernel computes the row once more, in double:
 * the result is right if it fits a float, and it has the same bits for every instruction set. */
#define PLAIN(name)      tensor_kernels_plain.name[F32]
#define MORE_PLAIN(name) tensor_more_kernels_plain.name[F32]

static void sum_f32(int64_t n, void *const *data, double s) {
    float *y = data[0];
    *y = sum_of(n, data[1], data[1], 0);
    if (!isfinite(*y)) PLAIN(sum)(n, data, s);
}

/* The largest element. NaN is skipped here, but exp(NaN - max) is NaN again. */
SHARED float largest(int64_t n, const float *x) {
    Vector most[PARTS];
    for (int p = 0; p < PARTS; p++) most[p] = (Vector){0} - INFINITY;
    for (; n > 0; n -= LANES, x += LANES)
        UNROLL for (int p = 0; p < PARTS; p++) most[p] = LARGER(most[p], part(x, p, n, -INFINITY));
    return largest_lane(most);
}

/* The largest |x|, or NaN if there is one. The bits of numbers without a sign have their order. */
static float largest_size(int64_t n, const float *x) {
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of_float(x[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return float_of_bits(most);
}

/* ---- layer norm ------------------------------------------------------------------------------ */

/* mean is the float nearest to the mean of the row, rest is its rounding error: the mean of the row
 * is mean + rest. squares is the sum of (x - mean - rest)^2. */
typedef struct {
    float mean, rest, squares;
} Moments;

/* sum x / n is a rough mean: the sum is so large that its rounding changes the last digits of the
 * mean. The mean of x - rough is therefore added. These differences are small, and exact for an x
 * near the rough mean, so the mean of equal numbers is exactly that number. The sum of (x - mean)^2
 * is corrected for the rest in the same way. (sum x^2 - n mean^2, in one pass, would cancel.) Chan,
 * Golub & LeVeque 1983. If the correction overflows or is NaN, it is left out. */
static Moments moments(int64_t n, const float *x) {
    const float rough = sum_of(n, x, x, 0) / (float)n;
    float correction = sum_less(n, x, x, rough) / (float)n;
    if (!isfinite(correction)) correction = 0;
    const float mean = rough + correction;
    const float rest = correction - (mean - rough);
    const float squares = sum_squares(n, x, x, mean);
    const double twice = (double)n * (double)rest * (double)rest;
    return (Moments){mean, rest, (float)((double)squares - twice)};
}

static void layer_norm_f32(int64_t n, void *const *data, double eps) {
    float *y = data[0];
    const float *x = data[1];
    const float *w = data[2];
    const float *b = data[3];
    const Moments m = moments(n, x);
    const float mean = m.mean, low = m.rest, square = m.squares / (float)n + (float)eps;
    const float scale = 1 / sqrtf(square);
    if (!(square >= 0x1p-80f && square < INFINITY)) { /* squares overflow, or lose digits */
        PLAIN(layer_norm)(n, data, eps);
        return;
    }
    *(double *)data[4] = (double)mean + (double)low;
    *(double *)data[5] = (double)scale;
    if (w && b) VECTOR_LOOP(y[i] = (x[i] - mean - low) * scale * w[i] + b[i]);
    else if (w) VECTOR_LOOP(y[i] = (x[i] - mean - low) * scale * w[i] + 0); /* -0 becomes 0 */
    else if (b) VECTOR_LOOP(y[i] = (x[i] - mean - low) * scale + b[i]);
    else VECTOR_LOOP(y[i] = (x[i] - mean - low) * scale + 0);
}

static void layer_norm_dx_f32(int64_t n, void *const *data, double s) {
    float *dx = data[0];
    const float *x = data[1];
    const float *w = data[2];
    const float *dy = data[3];
    const double exact_mean = *(const double *)data[4];
    const float mean = (float)exact_mean, low = (float)(exact_mean - (double)mean);
    const float scale = (float)*(const double *)data[5];
    if (!(scale >= 0x1p-64f && scale <= 0x1p12f)) { /* products with it may lose digits */
        PLAIN(layer_norm_dx)(n, data, s);
        return;
    }
    if (w) VECTOR_LOOP(dx[i] = w[i] * dy[i]); /* dz, until dx is known */
    else memcpy(dx, dy, (size_t)n * sizeof *dx);
    const float sum_dz = sum_of(n, dx, dx, 0);
    const float sum_dz_z = (sum_centred(n, x, dx, mean) - low * sum_dz) * scale;
    const float mean_dz = sum_dz / (float)n;
    const float slope = sum_dz_z / (float)n * scale;
    if (!isfinite(sum_dz) || !isfinite(slope)) {
        PLAIN(layer_norm_dx)(n, data, s);
        return;
    }
    VECTOR_LOOP(dx[i] = (dx[i] - mean_dz - (x[i] - mean - low) * slope) * scale);
}

/* ---- rms norm -------------------------------------------------------------------------------- */

static void rms_norm_f32(int64_t n, void *const *data, double eps) {
    float *y = data[0];
    const float *x = data[1];
    const float *w = data[2];
    const float square = sum_squares(n, x, x, 0) / (float)n + (float)eps;
    const float scale = 1 / sqrtf(square);
    if (!(square >= 0x1p-80f && square < INFINITY)) { /* squares overflow, or lose digits */
        MORE_PLAIN(rms_norm)(n, data, eps);
        return;
    }
    *(double *)data[3] = (double)scale;
    if (w) VECTOR_LOOP(y[i] = x[i] * scale * w[i]);
    else VECTOR_LOOP(y[i] = x[i] * scale);
}

static void rms_norm_dx_f32(int64_t n, void *const *data, double s) {
    float *dx = data[0];
    const float *x = data[1];
    const float *w = data[2];
    const float *dy = data[3];
    const float scale = (float)*(const double *)data[4];
    if (w) VECTOR_LOOP(dx[i] = w[i] * dy[i]); /* dz, until dx is known */
    else memcpy(dx, dy, (size_t)n * sizeof *dx);
    const float slope = sum_centred(n, x, dx, 0) * scale / (float)n * scale;
    if (scale >= 0x1p-64f && scale <= 0x1p12f && isfinite(slope))
        VECTOR_LOOP(dx[i] = (dx[i] - x[i] * slope) * scale);
    else MORE_PLAIN(rms_norm_dx)(n, data, s); /* products with scale may lose digits */
}

/* ---- sums down columns ----------------------------------------------------------------------- */

/* Sums over the rows, for at most STRIP neighbouring columns: of x, or of dy z with z = (x - mean)
 * scale if dy is not NULL. Rows are `step` elements apart. Each sum has the order of the sum of a
 * row: row r goes to lane r mod 32, in blocks. The lanes of a strip fit into the L1 cache. */
enum { STRIP = 64 };
INLINE void sum_strip(int64_t rows, int64_t columns, int64_t step, float *y, const float *x,
                      const float *dy, const double *mean, const double *scale) {
    double total[STRIP] = {0};
    _Alignas(64) float lane[LANES * STRIP]; /* (32, columns) */
    for (int64_t block = 0; block < rows; block += BLOCK) {
        const int64_t m = MIN(rows - block, BLOCK);
        memset(lane, 0, (size_t)(MIN(m, LANES) * columns) * sizeof *lane);
        for (int64_t r = 0; r < m; r++, x += step) {
            float *sums = lane + r % LANES * columns;
            if (!dy) {
                IVDEP for (int64_t i = 0; i < columns; i++) sums[i] += x[i];
                continue;
            }
            const float by = (float)scale[block + r], high = (float)mean[block + r];
            const float low = (float)(mean[block + r] - (double)high);
            MASKED for (int64_t i = 0; i < columns; i++) sums[i] +=
                dy[i] * ((x[i] - high - low) * by);
            dy += step;
        }
        for (int64_t half = LANES / 2; half > 0; half /= 2)
            IVDEP for (int64_t i = 0; i < MIN(half, m - half) * columns; i++) lane[i] +=
                lane[i + half * columns];
        for (int64_t i = 0; i < columns; i++) total[i] += (double)lane[i];
    }
    for (int64_t i = 0; i < columns; i++) y[i] = (float)total[i];
}

/* If STRIP does not divide n, the last strip begins at n - STRIP and repeats some columns. */
static void sum_rows_f32(int64_t rows, int64_t n, int64_t step, const void *from, void *to) {
    const float *x = from;
    float *y = to;
    const int64_t columns = MIN(n, STRIP);
    for (int64_t i = 0; i < n; i += columns) {
        const int64_t at = MIN(i, n - columns);
        sum_strip(rows, columns, step, y + at, x + at, NULL, NULL, NULL);
    }
    if (!isfinite(sum_of(n, y, y, 0))) PLAIN(sum_rows)(rows, n, step, from, to);
}

static void layer_norm_dw_f32(int64_t rows, int64_t n, int64_t step, void *const *data) {
    float *dw = data[0];
    const float *x = data[1];
    const float *dy = data[2];
    const int64_t columns = MIN(n, STRIP);
    for (int64_t i = 0; i < n; i += columns) {
        const int64_t at = MIN(i, n - columns);
        sum_strip(rows, columns, step, dw + at, x + at, dy + at, data[3], data[4]);
    }
    if (!isfinite(sum_of(n, dw, dw, 0))) PLAIN(layer_norm_dw)(rows, n, step, data);
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* e = exp(x - max) for at most a block; a NULL e is not stored. Returns the sum of e. */
SHARED float exps_block(int64_t n, float *e, const float *x, float max) {
    Vector lane[PARTS] = {0};
    for (int64_t i = 0; i < n; i += LANES) UNROLL for (int p = 0; p < PARTS; p++) {
            _Alignas(WIDTH) float v[WIDE];
            *(Vector *)v = part(x + i, p, n - i, -INFINITY);
            MASKED for (int l = 0; l < WIDE; l++) v[l] = exp_float(v[l] - max);
            if (e) store_part(e + i, p, n - i, *(Vector *)v);
            lane[p] += *(Vector *)v;
        }
    return add_lanes(lane);
}

static float exps(int64_t n, float *e, const float *x, float max) {
    double total = 0;
    for (int64_t i = 0; i < n; i += BLOCK)
        total += (double)exps_block(MIN(n - i, BLOCK), e ? e + i : NULL, x + i, max);
    return (float)total;
}

static void softmax_f32(int64_t n, void *const *data, double s) {
    float *y = data[0];
    const float *x = data[1];
    const float by = 1 / exps(n, y, x, largest(n, x));
    PRODUCT_LOOP(y[i], y[i], by);
}

/* If |sum| is below this, a difference of any float and the sum does not overflow. If a factor is
 * below the other bound, what a denormal number has lost, or 0, times this factor is not a normal
 * number. */
#define MOST_FOR_DIFFERENCES 0x1p102f
#define MOST_FOR_DENORMALS   0x1p24f

static void softmax_dx_f32(int64_t n, void *const *data, double s) {
    float *dx = data[0];
    const float *y = data[1];
    const float *dy = data[2];
    const float all = sum_products(n, y, dy);
    if (!(fabsf(all) < MOST_FOR_DIFFERENCES)) {
        PLAIN(softmax_dx)(n, data, s);
        return;
    }
    PRODUCT_LOOP(dx[i], y[i], dy[i] - all);
}

static void logsumexp_f32(int64_t n, void *const *data, double s) {
    float max = largest(n, data[1]);
    if (max - max != 0) max = 0; /* inf - inf would be NaN */
    *(float *)data[0] = max + log_float(exps(n, NULL, data[1], max));
}

static void log_softmax_f32(int64_t n, void *const *data, double s) {
    float *y = data[0];
    const float *x = data[1];
    const float max = largest(n, x);
    const float log_sum = log_float(exps(n, NULL, x, max));
    VECTOR_LOOP(y[i] = x[i] - max - log_sum);
}

static void log_softmax_dx_f32(int64_t n, void *const *data, double s) {
    float *dx = data[0];
    const float *y = data[1];
    const float *dy = data[2];
    const float all = sum_of(n, dy, dy, 0);
    if (!(fabsf(all) < MOST_FOR_DENORMALS)) MORE_PLAIN(log_softmax_dx)(n, data, s);
    else VECTOR_LOOP(dx[i] = dy[i] - exp_float(y[i]) * all);
}

/* y = allowed ? y : other; selected, never multiplied */
static void select_allowed(int64_t n, float *y, const bool *mask, const float *bias,
                           const float *window, float other) {
    const unsigned char *keep = (const unsigned char *)mask;
    if (keep) VECTOR_LOOP(const float x = y[i]; y[i] = keep[i] ? x : other);
    if (bias) VECTOR_LOOP(const float x = y[i], b = bias[i]; y[i] = b != -INFINITY ? x : other);
    if (window) VECTOR_LOOP(const float x = y[i], b = window[i]; y[i] = b != -INFINITY ? x : other);
}

static void masked_softmax_f32(int64_t row, void *const *data, double s) {
    float *y = data[0];
    const float *x = data[1];
    const int64_t length = *(const int64_t *)data[2];
    const int64_t n = MIN(length, row); /* the weights after the first n are 0 */
    const bool *keep = data[3];
    const float *bias = data[4];
    const float *window = data[5];
    const float scale_x = (float)s;
    if (bias) VECTOR_LOOP(y[i] = bias[i] + scale_x * x[i]);
    else VECTOR_LOOP(y[i] = scale_x * x[i]);
    if (window) VECTOR_LOOP(y[i] += window[i]);
    select_allowed(n, y, keep, bias, window, -INFINITY);
    const float by = 1 / exps(n, y, y, largest(n, y));
    PRODUCT_LOOP(y[i], y[i], by);
    select_allowed(n, y, keep, bias, window, 0);
    memset(y + n, 0, (size_t)(row - n) * sizeof *y);
}

static void masked_softmax_dx_f32(int64_t n, void *const *data, double s) {
    float *dx = data[0];
    const float *py = data[1];
    const float *dy = data[2];
    const float all = sum_known(n, py, dy, 0), scale_x = (float)s;
    if (!(fabsf(all) < MOST_FOR_DIFFERENCES)) PLAIN(masked_softmax_dx)(n, data, s);
    else
        VECTOR_LOOP(const float y = py[i], d = LONG_PRODUCT(y, dy[i] - all) * scale_x;
                    dx[i] = y == 0 ? 0 : d);
}

static void cross_entropy_f32(int64_t n, void *const *data, double s) {
    float *loss = data[0];
    const float *x = data[1];
    const int64_t target = *(const int64_t *)data[2];
    const float max = largest(n, x);
    const float log_sum = log_float(exps(n, NULL, x, max));
    *loss = target < 0 ? 0 : -(x[target] - max - log_sum);
    *(double *)data[3] = (double)max;
    *(double *)data[4] = (double)log_sum;
}

static void cross_entropy_dx_f32(int64_t n, void *const *data, double s) {
    float *dx = data[0];
    const float *x = data[1];
    const int64_t target = *(const int64_t *)data[2];
    const float max = (float)*(const double *)data[3], log_sum = (float)*(const double *)data[4];
    const float dy = *(const float *)data[5] / (float)s;
    if (target < 0) {
        memset(dx, 0, (size_t)n * sizeof *dx);
        return;
    }
    if (!(fabsf(dy) < MOST_FOR_DENORMALS)) {
        PLAIN(cross_entropy_dx)(n, data, s);
        return;
    }
    const float at_target = exp_float(x[target] - max - log_sum) - 1;
    VECTOR_LOOP(dx[i] = exp_float(x[i] - max - log_sum) * dy);
    dx[target] = at_target * dy;
}

/* ---- additive attention ---------------------------------------------------------------------- */

static void additive_f32(int64_t n, void *const *data, double s) {
    float *y = data[0];
    const float *q = data[1];
    const float *k = data[2];
    const float *w = data[3];
    const int64_t length = MIN(*(const int64_t *)data[4], n), H = (int64_t)s;
    for (int64_t j = 0; j < length; j++, k += H) {
        Vector lane[PARTS] = {0};
        for (int64_t h = 0, rest = H; rest > 0; h += LANES, rest -= LANES)
            UNROLL for (int p = 0; p < PARTS; p++) {
                _Alignas(WIDTH) float f[WIDE];
                *(Vector *)f = part(q + h, p, rest, 0) + part(k + h, p, rest, 0);
                MASKED for (int l = 0; l < WIDE; l++) f[l] = tanh_float(f[l]);
                lane[p] += part(w + h, p, rest, 0) * *(Vector *)f;
            }
        y[j] = add_lanes(lane);
    }
    memset(y + length, 0, (size_t)(n - length) * sizeof *y);
    if (!isfinite(sum_of(length, y, y, 0))) MORE_PLAIN(additive)(n, data, s);
}

/* If dy is 0, as for every key of weight 0, a pair of query and key adds 0 to the gradients, or
 * possibly NaN if an element of q, k or w is not finite. If the dot products w w and q k are
 * finite, all these elements are finite: then the pair is skipped. If w w is finite, the elements
 * of w are below 2^64: dy w does not overflow for the dy of this loop, and what it loses if it is
 * denormal is not multiplied by a large number. */
static void additive_dx_f32(const AdditiveBatch *a) {
    const int64_t n = a->H;
    const float *q = a->q;
    const float *w = a->w;
    float *dq = a->dq;
    float *dw = a->dw;
    const float ww = sum_products_long(n, w, w, 0);
    if (!(ww < INFINITY && largest_size(a->Q * a->K, a->dy) < MOST_FOR_DENORMALS)) {
        MORE_PLAIN(additive_dx)(a);
        return;
    }
    for (int64_t r = 0; r < a->Q; r++, q += n, dq += n) {
        const float *k = a->k;
        const float *row = (const float *)a->dy + r * a->K;
        float *dk = a->dk;
        for (int64_t j = 0; j < a->K; j++, k += n, dk += n) {
            const float dy = j < a->length[r] ? row[j] : 0;
            if (dy == 0 && isfinite(ww + sum_products_long(n, q, k, 0))) continue;
            VECTOR_LOOP(const float f = tanh_float(q[i] + k[i]), g = dy * w[i] * (1 - f * f);
                        dk[i] += g; dq[i] += g; dw[i] += dy * f);
        }
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Outer products (k is 1) of contiguous rows, and dot products of contiguous vectors (m or n is 1).
 * Without a plan for each outer product a step of nw takes 11.5 us, not 12.3. matmul.c computes all
 * other products.
 */
static void outer_f32(const MatmulShape *m, const float *a, const float *b, float *c) {
    const int64_t n = m->n;
    for (int64_t r = 0; r < m->m; r++, a += m->a_stride[0], c += m->c_stride[0])
        VECTOR_LOOP(c[i] = FMA(*a, b[i], 0.0f));
}
static void matmul_f32(const MatmulShape *m, const void *a_data, const void *b_data, void *c_data) {
    const float *a = a_data;
    const float *b = b_data;
    const float *start = m->start;
    float *c = c_data;
    if (!m->in_place && !start && m->k == 1 && m->b_stride[1] == 1 && m->c_stride[1] == 1) {
        outer_f32(m, a, b, c);
        return;
    }
    if (m->in_place || (m->m > 1 && m->n > 1) || m->k == 1 || m->a_stride[1] != 1 ||
        m->b_stride[0] != 1) {
        GLOBAL(matmul_f32)(m, a, b, c);
        return;
    }
    for (int64_t i = 0; i < m->m; i++)
        for (int64_t j = 0; j < m->n; j++)
            c[i * m->c_stride[0] + j * m->c_stride[1]] =
                (start ? start[i * m->start_stride[0] + j * m->start_stride[1]] : 0) +
                sum_products(m->k, a + i * m->a_stride[0], b + j * m->b_stride[1]);
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define TEXT2(name) #name
#define TEXT(name)  TEXT2(name)

/* clang-format off */
#define FAST(name) .name = {name##_f32}

const Kernels GLOBAL(kernels) = {
    .name = TEXT(ISA),
    .value = {
#define UNARY(name, ...) [ELEMENTWISE_##name] = {name##_f32},
#define BINARY UNARY
#define COMPARE(name, ...)
#include "../kernels/elementwise.def"
    },
    .vjp = {
#define UNARY(name, ...)  [ELEMENTWISE_##name] = {{name##_vjp_f32}},
#define BINARY(name, ...) [ELEMENTWISE_##name] = {{name##_vjp_a_f32}, {name##_vjp_b_f32}},
#define COMPARE(name, ...)
#include "../kernels/elementwise.def"
    },
    FAST(add_scaled), FAST(dropout), FAST(where),
    FAST(sum), FAST(sum_rows), FAST(layer_norm), FAST(layer_norm_dx), FAST(layer_norm_dw),
    FAST(softmax), FAST(softmax_dx), FAST(masked_softmax), FAST(masked_softmax_dx),
    FAST(cross_entropy), FAST(cross_entropy_dx),
    .matmul = {matmul_f32, GLOBAL(matmul_f64)},
    .matmul_workspace = {GLOBAL(matmul_workspace_f32), GLOBAL(matmul_workspace_f64)},
};

const MoreKernels GLOBAL(more_kernels) = {
    FAST(adamw), FAST(rms_norm), FAST(rms_norm_dx), FAST(logsumexp), FAST(log_softmax), FAST(log_softmax_dx),
    FAST(additive), FAST(additive_dx),
    .attention = {GLOBAL(attention_f32)},
    .attention_dx = {GLOBAL(attention_dx_f32)},
    .attention_workspace = {GLOBAL(attention_workspace_f32)},
};
/* clang-format on */
