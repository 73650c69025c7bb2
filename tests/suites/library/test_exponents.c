/* test_exponents.c - is every kernel right at every exponent?
 *
 * Operands are drawn by their exponents, from the smallest denormal number to the largest number:
 * rows of one exponent, of two, and of any. For every elementwise op and every row kernel, values
 * and gradients of every table are compared with a judge: the plain kernel, compiled once more with
 * long double in place of its types. A result that fits its type must be right, and so is neither
 * 0, nor infinite, nor NaN instead. Products and attention have no long rows of one formula: their
 * judge is the plain kernel of float64, for float32.
 *
 * What is not asked for, because it is a number of the type itself that does not fit:
 *   - the slope of an elementwise op; PyTorch computes slope times dy in the type, too
 *   - in float64 a product of w and dy in layer norm's gradient, a difference of two dy in
 * softmax's
 *   - a sum of terms whose sizes add up to more than the largest number, in float64, and in a
 *     product of matrices; a score of attention
 * In such places a result may also lose what a denormal number loses. Where a gradient is wanted,
 * PyTorch 2.15 differs for gelu_tanh (NaN for |x| > 1e19), std (inf and 0 in float64 at 1e200),
 * layer_norm (0 at 1e20), the norm of clip_grad_norm_ (inf for float32 above 1e19). */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "common_kernels.h"

/* ---- the judge ------------------------------------------------------------------------------- */

/* The functions that kernels call, of a long double. (In musl's <tgmath.h> stands double, too.) */
#define cos(x)       cosl(x)
#define erf(x)       erfl(x)
#define erfc(x)      erfcl(x)
#define exp(x)       expl(x)
#define expm1(x)     expm1l(x)
#define fabs(x)      fabsl(x)
#define fma(x, y, z) fmal(x, y, z)
#define fmax(x, y)   fmaxl(x, y)
#define fmin(x, y)   fminl(x, y)
#define hypot(x, y)  hypotl(x, y)
#define ldexp(x, n)  ldexpl(x, n)
#define log(x)       logl(x)
#define log1p(x)     log1pl(x)
#define pow(x, y)    powl(x, y)
#define sin(x)       sinl(x)
#define sqrt(x)      sqrtl(x)
#define tanh(x)      tanhl(x)

#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wkeyword-macro"
#endif

typedef long double Wide;
typedef double Narrow;
static void draw_kept(const AttentionHead *a, int64_t i, bool *kept) {
    memset(kept, true, (size_t)a->K);
}

/* Some systems' macros name the type double. */
#undef isfinite
#define isfinite(x) __builtin_isfinite(x)
#undef isinf
#define isinf(x) __builtin_isinf(x)
#undef isnan
#define isnan(x) __builtin_isnan(x)
#define double long double
#undef C /* of common.h */
#include "../../../tensor/kernels/plain_math.h"
#undef ABS
#define ABS(x)                 ((x) < 0 ? -(x) : (x))
#define ELEMENT(type, operand) (((const type *)data[operand])[i])
#define SUM                    Wide
#define REAL                   Wide
#define NAME(name)             name##_wide
#include "../../../tensor/kernels/plain.inc"
#define REAL       Wide
#define NAME(name) name##_wide
#include "../../../tensor/more/more_plain.inc"
#define TYPE       Wide
#define TOTAL      Wide
#define NAME(name) name##_wide
#include "../../../tensor/more/more_plain_any.inc"
#undef double

typedef void WideKernel(int64_t n, void *const *data, Wide s);

/* ---- what is walked: a kernel and its gradients ---------------------------------------------- */

/* operands: a letter for each. The value, call[0], writes the letters y, Y, p and q; a gradient
 * writes g. Capital letters, p and q are one number for the row. p, q: float64. m: bools, L: a
 * length, T: a position; m, n, v, w may be NULL. size: of the terms that may cancel. */
typedef struct {
    const char *name;
    Narrow s, size;
    struct {
        size_t field;
        WideKernel *judge;
        const char *operands;
    } call[3];
} Row;

#define KERNEL_OF(name)    CORE_FIELD(name), name##_wide
#define MORE_OF(name)      MORE_FIELD(name), name##_wide
#define VALUE(name)        CORE_FIELD(value[ELEMENTWISE_##name]), name##_wide
#define VJP(name, of, end) CORE_FIELD(vjp[ELEMENTWISE_##name][of]), name##_vjp##end##_wide

static const Row elementwise[] = {
#define UNARY(name, ...) {#name, 1.75, 0, {{VALUE(name), "yx"}, {VJP(name, 0, ), "gxyd"}}},
#define BINARY(name, ...)                                                                          \
    {#name, 0, 0, {{VALUE(name), "yab"}, {VJP(name, 0, _a), "gabyd"}, {VJP(name, 1, _b), "gabyd"}}},
#define COMPARE(name, ...)
#include "../../../tensor/kernels/elementwise.def"
    {"pow_scalar", -3, 0, {{VALUE(pow_scalar), "yx"}, {VJP(pow_scalar, 0, ), "gxyd"}}},
    {"scale", 0x1p-100, 0, {{VALUE(scale), "yx"}, {VJP(scale, 0, ), "gxyd"}}},
    {"add_scaled", 1.75, 0, {{KERNEL_OF(add_scaled), "yab"}}},
};

#define LAYER_NORM                                                                                 \
    {KERNEL_OF(layer_norm), "yxwvpq"}, { KERNEL_OF(layer_norm_dx), "gxwdpq" }
#define RMS_NORM                                                                                   \
    {MORE_OF(rms_norm), "yxwq"}, { MORE_OF(rms_norm_dx), "gxwdq" }
static const Row by_rows[] = {
    {"sum", 0, 0, {{KERNEL_OF(sum), "Yx"}}},
    {"cumsum", 0, 0, {{MORE_OF(cumsum), "yx"}}},
    {"norm", 0, 0, {{MORE_OF(norm), "px"}}},
    {"variance", 0, 0, {{MORE_OF(variance), "Yx"}, {MORE_OF(variance_dx), "gxD"}}},
    {"standard_deviation",
     0,
     0,
     {{MORE_OF(standard_deviation), "Yx"}, {MORE_OF(standard_deviation_dx), "gxD"}}},
    {"softmax", 0, 0, {{KERNEL_OF(softmax), "yx"}, {KERNEL_OF(softmax_dx), "gyd"}}},
    {"logsumexp", 0, 1, {{MORE_OF(logsumexp), "Yx"}}},
    {"log_softmax", 0, 1, {{MORE_OF(log_softmax), "yx"}, {MORE_OF(log_softmax_dx), "gyd"}}},
    {"masked_softmax",
     0.75,
     0,
     {{KERNEL_OF(masked_softmax), "yxLmnv"}, {KERNEL_OF(masked_softmax_dx), "gyd"}}},
    {"cross_entropy",
     3,
     1,
     {{KERNEL_OF(cross_entropy), "YxTpq"}, {KERNEL_OF(cross_entropy_dx), "gxTpqD"}}},
    {"layer_norm", 1e-5, 0, {LAYER_NORM}},
    {"layer_norm without eps", 0, 0, {LAYER_NORM}},
    {"rms_norm", 1e-5, 0, {RMS_NORM}},
    {"rms_norm without eps", 0, 0, {RMS_NORM}},
};

/* ---- operands -------------------------------------------------------------------------------- */

enum { MOST = 37, SLACK = 32, LETTERS = 128, OPERANDS = 6 };
enum { WIDE = -1 }; /* the type of the judge; the others are a DType */

typedef struct {
    const Row *row;
    bool is_elementwise;
    DType type;
    int64_t n, length, target;
    bool absent[LETTERS], mask[MOST + SLACK];
    Wide value[LETTERS][MOST];
} Trial;

static int64_t count_of(const Trial *t, int letter) { return strchr("YDpq", letter) ? 1 : t->n; }
static bool is_result(int call, int letter) { return strchr(call ? "g" : "yYpq", letter) != NULL; }
static Wide epsilon_of(DType type) { return type == F32 ? (Wide)FLT_EPSILON : (Wide)DBL_EPSILON; }
static Wide largest_of(DType type) { return type == F32 ? (Wide)FLT_MAX : (Wide)DBL_MAX; }
static int lowest(DType type) { return type == F32 ? -149 : -1074; }
static int highest(DType type) { return type == F32 ? 127 : 1023; }

static int draw_between(int low, int high) { return low + (int)draw((uint32_t)(high - low + 1)); }
static int draw_exponent(DType type) { return draw_between(lowest(type), highest(type)); }
static Wide rounded(DType type, Wide x) { return type == F32 ? (Wide)(float)x : (Wide)(Narrow)x; }

/* +-m 2^exponent, m from 1 to 2 */
static Wide draw_at(DType type, int exponent) {
    const Wide x = rounded(type, ldexp(1 + (Wide)draw(1 << 30) * 0x1p-30L, exponent));
    return (draw(2) ? 1 : -1) * (x > largest_of(type) ? largest_of(type) : x);
}

/* A row at this exponent; a quarter of the rows has two exponents, and a quarter any. */
static void draw_row(Trial *t, int letter, int exponent) {
    const uint32_t mode = draw(4);
    const int other = draw_exponent(t->type);
    for (int64_t i = 0; i < t->n; i++) {
        int at = exponent;
        if (mode == 1 && draw(2)) at = other;
        if (mode == 2) at = draw_exponent(t->type);
        if (t->type == F64 && strchr("dDvw", letter)) at = at % 250; /* products of two fit */
        t->value[letter][i] = draw_at(t->type, at);
    }
}

/* x and a are at the exponent; half of the others are near 1, so that results do fit. */
static void draw_trial(Trial *t, int exponent) {
    for (const char *l = "xabdDvw"; *l; l++) {
        const int any = draw(2) ? draw_exponent(t->type) : draw_between(-2, 1);
        draw_row(t, *l, *l == 'x' || *l == 'a' ? exponent : any);
    }
    for (int64_t i = 0; i < t->n; i++) t->value['n'][i] = draw_at(t->type, draw_between(-9, 3));
    for (int64_t i = 0; i < t->n; i++) t->mask[i] = draw(4) > 0;
    for (const char *l = "mnvw"; *l; l++) t->absent[(int)*l] = draw(2);
    t->length = draw_between(1, (int)t->n);
    t->target = draw_between(0, (int)t->n - 1);
}

static Wide load(int type, const void *data, int64_t i) {
    return type == WIDE ? ((const Wide *)data)[i] : (Wide)element_load((DType)type, data, i);
}

static void store(int type, void *data, int64_t i, Wide x) {
    if (type == WIDE) ((Wide *)data)[i] = x;
    else if (type == F32) ((float *)data)[i] = (float)x;
    else ((Narrow *)data)[i] = (Narrow)x;
}

/* Calls a kernel, or the judge if it is NULL, with the operands of the trial. */
static void run(const Trial *t, int call, Kernel *kernel, Wide result[][MOST]) {
    static _Alignas(64) char buffer[OPERANDS][(MOST + SLACK) * sizeof(Wide)];
    const char *letters = t->row->call[call].operands;
    void *data[OPERANDS];
    int type[OPERANDS];
    for (int o = 0; letters[o]; o++) {
        const int letter = letters[o];
        type[o] = letter == 'p' || letter == 'q' ? F64 : (int)t->type;
        if (!kernel) type[o] = WIDE;
        data[o] = buffer[o];
        for (int64_t i = 0; i < count_of(t, letter); i++)
            store(type[o], data[o], i, t->value[letter][i]);
        if (letter == 'm') data[o] = (void *)(uintptr_t)t->mask;
        if (letter == 'L') data[o] = (void *)(uintptr_t)&t->length;
        if (letter == 'T') data[o] = (void *)(uintptr_t)&t->target;
        if (t->absent[letter]) data[o] = NULL;
    }
    if (kernel) kernel(t->n, data, t->row->s);
    else t->row->call[call].judge(t->n, data, t->row->s);
    for (int o = 0; letters[o]; o++)
        for (int64_t i = 0; is_result(call, letters[o]) && i < count_of(t, letters[o]); i++)
            result[(int)letters[o]][i] = load(type[o], data[o], i);
}

/* ---- the comparison -------------------------------------------------------------------------- */

static Wide largest_in(const Trial *t, int letter) {
    Wide most = 0;
    for (int64_t i = 0; i < count_of(t, letter); i++)
        if (fabs(t->value[letter][i]) > most) most = fabs(t->value[letter][i]);
    return most;
}

/* How much the judge's results move if every operand moves by an ulp or so: the error that a right
 * kernel may have. A sum rounds like its largest term, so the dy of a row, and the x of a mean,
 * move by an ulp of the largest. */
static void find_spread(const Trial *t, int call, Wide truth[][MOST], Wide spread[][MOST]) {
    static Trial moved;
    static Wide result[LETTERS][MOST];
    const bool has_mean = strncmp(t->row->name, "layer_norm", 10) == 0;
    memset(spread, 0, sizeof(Wide[LETTERS][MOST]));
    for (int round = 0; round < 4; round++) {
        moved = *t;
        for (const char *l = "xabnvwyYpqdD"; *l; l++) {
            const bool together = !t->is_elementwise && (*l == 'd' || (*l == 'x' && has_mean));
            const Wide most = largest_in(t, *l);
            for (int64_t i = 0; i < count_of(t, *l); i++) {
                Wide *x = &moved.value[(int)*l][i];
                *x += (Wide)draw_in(-2, 2) * epsilon_of(t->type) * (together ? most : fabs(*x));
            }
        }
        run(&moved, call, NULL, result);
        for (const char *l = "yYpqg"; *l; l++)
            for (int64_t i = 0; i < t->n; i++) {
                const Wide by = fabs(result[(int)*l][i] - truth[(int)*l][i]);
                if (by > spread[(int)*l][i]) spread[(int)*l][i] = by;
            }
    }
}

/* b a^(b-1) dy in float64 */
static bool is_power(const Trial *t, int call) {
    return t->type == F64 && call == 1 && strcmp(t->row->name, "pow") == 0;
}

/* What a denormal slope, power or z loses is multiplied by less than this. */
static Wide factors_at(const Trial *t, int call, int64_t i) {
    const char *operands = t->row->call[call].operands;
    const bool all = t->type == F64 && !t->is_elementwise; /* the sum of softmax's gradient, too */
    Wide sum = 1 + (is_power(t, call) ? fabs(t->value['b'][i] * t->value['d'][i]) : 0);
    for (const char *l = "dDvw"; *l; l++)
        if (strchr(operands, *l) && !t->absent[(int)*l])
            sum += all || *l == 'D' ? largest_in(t, *l) : fabs(t->value[(int)*l][i]);
    if (t->type == F32 && strchr(operands, 'T')) /* cross entropy: a larger dy counts in double */
        sum = fmin(sum, (Wide)0x1p25);
    if (call > 0 && strchr(operands, 'q')) /* the scale of layer norm */
        sum *= 1 + fmin(fabs(t->value['q'][0]), (Wide)0x1p12);
    return sum;
}

/* Is a number on the way to this result too large for float64? */
static bool is_excused(const Trial *t, int call, Wide truth, int64_t i) {
    if (t->type == F32) return false;
    if (strstr(t->row->name, "sum")) return largest_in(t, 'x') * (Wide)t->n > largest_of(F64);
    if (!t->is_elementwise || call == 0) return false;
    const bool is_denormal = fabs(t->value['a'][i]) < (Wide)DBL_MIN; /* a^-1 is infinite */
    return (is_denormal && is_power(t, call)) || fabs(truth / t->value['d'][i]) > largest_of(F64);
}

static void check_call(const Trial *t, int call, int exponent, Wide truth[][MOST]) {
    static Wide got[LETTERS][MOST], spread[LETTERS][MOST];
    const Wide epsilon = epsilon_of(t->type), least = ldexp((Wide)1, lowest(t->type) + 14);
    run(t, call, NULL, truth);
    find_spread(t, call, truth, spread);
    for (int k = 0; k < table_count; k++) {
        Kernel *const kernel = kernel_at(k, t->row->call[call].field, t->type);
        if (!kernel) continue;
        run(t, call, kernel, got);
        for (const char *l = "yYpqg"; *l; l++)
            for (int64_t i = 0; i < count_of(t, *l); i++) {
                const Wide want = truth[(int)*l][i], x = got[(int)*l][i];
                if (!is_result(call, *l) || !strchr(t->row->call[call].operands, *l)) continue;
                if (!(fabs(want) <= largest_of(t->type)) || is_excused(t, call, want, i)) continue;
                const Wide rounds = is_power(t, call) ? 64 : 1; /* of b - 1, times log a */
                const Wide size = rounds * fabs(want) + (call == 0 ? (Wide)t->row->size : 0);
                const Wide tolerance =
                    16 * spread[(int)*l][i] + 16 * epsilon * size + least * factors_at(t, call, i);
                EXPECT(fabs(x - want) <= tolerance,
                       "%s of %s, call %d, %s, exponent %d: %c[%lld] of %lld is %.9Lg, not %.9Lg",
                       t->row->name, tables[k]->name, call, tensor_dtype_name(t->type), exponent,
                       *l, (long long)i, (long long)t->n, x, want);
            }
    }
}

static void try_row(const Row *row, bool is_elementwise, DType type, int exponent) {
    static const int64_t sizes[] = {1, 5, 16, MOST};
    static Wide truth[LETTERS][MOST];
    static Trial t;
    t.row = row;
    t.is_elementwise = is_elementwise;
    t.type = type;
    t.n = sizes[draw(4)];
    draw_trial(&t, exponent);
    check_call(&t, 0, exponent, truth);
    for (int64_t i = 0; i < t.n; i++) {
        t.value['y'][i] = rounded(type, truth['y'][i]);
        t.value['p'][i] = rounded(F64, truth['p'][i]);
        t.value['q'][i] = rounded(F64, truth['q'][i]);
    }
    for (int call = 1; call < 3 && row->call[call].operands; call++)
        check_call(&t, call, exponent, truth);
}

static int third = 1; /* 3 where every third is enough */

/* At every exponent of float32; a sample has fewer rounds there, and every third exponent of
 * float64. */
static void walk(const Row *row, bool is_elementwise) {
    const int step = LDBL_MANT_DIG > 64 ? 7 : 1; /* a long double of 128 bits is slow */
    draws_begin();
    for (int e = lowest(F32); e <= highest(F32); e += step)
        for (int round = 0; round < (is_elementwise ? 4 : 12); round += third)
            try_row(row, is_elementwise, F32, e);
    if (LDBL_MAX_EXP <= 2 * DBL_MAX_EXP) return; /* long double has no wider range than double */
    for (int e = lowest(F64); e <= highest(F64); e += step * third)
        try_row(row, is_elementwise, F64, e);
}

CASE("walks", .is_long = true)
/* First every second op, so that a sample has ops of each part of the table. */
LOOP_TEST(elementwise_ops, sampled(COUNT(elementwise), 2)) {
    const int even = (COUNT(elementwise) + 1) / 2;
    walk(&elementwise[_i < even ? 2 * _i : 2 * (_i - even) + 1], true);
}

LOOP_TEST(row_kernels, COUNT(by_rows)) { walk(&by_rows[_i], false); }

/* ---- kernels of other forms, in float32: the judge is the plain kernel of float64 ------------ */

enum { SIDE = 37, AREA = SIDE * SIDE };

/* Numbers for each table as floats, and as doubles for the judge. */
typedef struct {
    _Alignas(64) float narrow[AREA + SLACK];
    double wide[AREA + SLACK];
    double most; /* the size of the largest */
} Numbers;

/* n numbers at about this exponent, a quarter of the calls: at any exponent up to it. */
static void draw_numbers(Numbers *x, int64_t n, int exponent) {
    const bool mixed = draw(4) == 0;
    x->most = 0;
    for (int64_t i = 0; i < n; i++) {
        const int at = mixed ? draw_between(-149, exponent) : draw_between(exponent - 2, exponent);
        x->wide[i] = (Narrow)draw_at(F32, at < -149 ? -149 : at);
        x->narrow[i] = (float)x->wide[i];
        if (fabs(x->wide[i]) > x->most) x->most = fabs(x->wide[i]);
    }
}

/* A result that fits must be within the tolerance. */
static void expect_near(const char *what, int table, int64_t n, const float *x, const double *want,
                        double tolerance) {
    for (int64_t i = 0; i < n; i++)
        EXPECT(!(fabs(want[i]) <= (double)FLT_MAX) ||
                   fabs((double)x[i] - want[i]) <= 1e-5 * fabs(want[i]) + tolerance,
               "%s of %s: %lld of %lld is %.9g, not %.9g", what, tables[table]->name, (long long)i,
               (long long)n, (double)x[i], want[i]);
}

static int64_t draw_size(void) { return (int64_t[]){1, 5, 16, SIDE}[draw(4)]; }

CASE("others")
/* Sums down columns, and dw of layer norm, whose rows have the mean and the scale of their x. */
TEST(sums_down_columns) {
    draws_begin();
    static Numbers x, dy;
    float y[SIDE + SLACK];
    double want[SIDE], mean[SIDE], scale[SIDE], z[SIDE];
    for (int e = -149; e <= 127; e++)
        for (int round = 0; round < 8; round++) {
            const int64_t rows = draw_size(), n = draw_size();
            draw_numbers(&x, rows * n, e);
            draw_numbers(&dy, rows * n, draw(2) ? e : draw_between(-149, 127));
            for (int64_t r = 0; r < rows; r++)
                tables[0]->layer_norm[F64](
                    n, (void *[]){z, x.wide + r * n, NULL, NULL, mean + r, scale + r}, 1e-5);
            for (int t = 0; t < table_count; t++) {
                tables[0]->sum_rows[F64](rows, n, n, x.wide, want);
                tables[t]->sum_rows[F32](rows, n, n, x.narrow, y);
                expect_near("sum_rows", t, n, y, want, 1e-6 * (double)rows * x.most);
                tables[0]->layer_norm_dw[F64](rows, n, n,
                                              (void *[]){want, x.wide, dy.wide, mean, scale});
                tables[t]->layer_norm_dw[F32](rows, n, n,
                                              (void *[]){y, x.narrow, dy.narrow, mean, scale});
                const double of_z = 1e-5 * (double)n + 0x1p-135; /* the error of z */
                expect_near("layer_norm_dw", t, n, y, want,
                            of_z * (double)rows * dy.most + (double)rows * 0x1p-148);
            }
        }
}

TEST(additive_scores) {
    draws_begin();
    static Numbers q, k, w, dy;
    static float y[SIDE + SLACK], dq[TABLES][AREA + SLACK], dk[TABLES][AREA + SLACK];
    static float dw[TABLES][AREA + SLACK];
    static double want[SIDE], dq64[AREA], dk64[AREA], dw64[AREA];
    for (int e = -149; e <= 127; e++)
        for (int round = 0; round < 8; round++) {
            const int64_t H = draw_size(), K = draw_size(), length = draw_between(1, (int)K);
            draw_numbers(&q, H, draw(2) ? e : draw_between(-9, 3));
            draw_numbers(&k, K * H, draw(2) ? e : draw_between(-9, 3));
            draw_numbers(&w, H, draw(2) ? e : draw_between(-149, 127));
            draw_numbers(&dy, K, draw_between(-149, 127));
            const double size = w.most * dy.most;
            memset(dq64, 0, sizeof dq64);
            memset(dk64, 0, sizeof dk64);
            memset(dw64, 0, sizeof dw64);
            more_tables[0]->additive[F64](
                K, (void *[]){want, q.wide, k.wide, w.wide, (void *)(uintptr_t)&length}, (double)H);
            more_tables[0]->additive_dx[F64](&(AdditiveBatch){1, K, H, q.wide, k.wide, w.wide,
                                                              &length, dy.wide, dq64, dk64, dw64});
            for (int t = 0; t < table_count; t++) {
                memset(dq[t], 0, sizeof dq[t]);
                memset(dk[t], 0, sizeof dk[t]);
                memset(dw[t], 0, sizeof dw[t]);
                more_tables[t]->additive[F32](
                    K, (void *[]){y, q.narrow, k.narrow, w.narrow, (void *)(uintptr_t)&length},
                    (double)H);
                expect_near("additive", t, K, y, want, 2e-6 * (double)H * w.most + 0x1p-140);
                more_tables[t]->additive_dx[F32](&(AdditiveBatch){1, K, H, q.narrow, k.narrow,
                                                                  w.narrow, &length, dy.narrow,
                                                                  dq[t], dk[t], dw[t]});
                expect_near("additive dk", t, K * H, dk[t], dk64, 2e-6 * size + 0x1p-120);
                if (K > 1 && fmax(size, dy.most) * (double)K > (double)FLT_MAX)
                    continue; /* dq and dw are added in float32 */
                expect_near("additive dq", t, H, dq[t], dq64, 2e-6 * (double)K * size + 0x1p-120);
                expect_near("additive dw", t, H, dw[t], dw64,
                            2e-6 * (double)K * dy.most + 0x1p-140);
            }
        }
}

TEST(products) {
    draws_begin();
    static Numbers a, b;
    static float c[AREA + SLACK], workspace[1 << 16];
    static double want[AREA];
    for (int e = -149; e <= 127; e++)
        for (int round = 0; round < 8; round++) {
            const int64_t m = draw_size(), k = draw_size(), n = draw_size();
            draw_numbers(&a, m * k, e);
            draw_numbers(&b, k * n, draw(2) ? -e : draw_between(-149, 127));
            MatmulShape shape = {m, n, k, {k, 1}, {n, 1}, {n, 1}, .workspace = workspace};
            if (draw(2)) memcpy(shape.b_stride, (int64_t[]){1, k}, sizeof shape.b_stride);
            const double terms = (double)k * a.most * b.most;
            if (terms > (double)FLT_MAX) continue;
            tables[0]->matmul[F64](&shape, a.wide, b.wide, want);
            for (int t = 0; t < table_count; t++) {
                CHECK(tables[t]->matmul_workspace[F32](&shape) <= (int64_t)sizeof workspace);
                tables[t]->matmul[F32](&shape, a.narrow, b.narrow, c);
                expect_near("matmul", t, m * n, c, want, 1e-6 * terms + (double)k * 0x1p-149);
            }
        }
}

typedef struct {
    Numbers q, k, v, dy;
    float narrow[4][AREA + SLACK]; /* y, dq, dk, dv */
    double wide[4][AREA], stats[2][SIDE], workspace[1 << 14];
    int64_t length[SIDE];
} Attention;

/* Forward and backward: of the judge, or of a table in float32. */
static void run_attention(Attention *of, AttentionHead head, const MoreKernels *table) {
    const DType type = table ? F32 : F64;
    void *to[4];
    if (!table) table = more_tables[0];
    for (int i = 0; i < 4; i++) to[i] = type == F32 ? (void *)of->narrow[i] : of->wide[i];
    head.q = type == F32 ? (void *)of->q.narrow : of->q.wide;
    head.k = type == F32 ? (void *)of->k.narrow : of->k.wide;
    head.v = type == F32 ? (void *)of->v.narrow : of->v.wide;
    head.dy = type == F32 ? (void *)of->dy.narrow : of->dy.wide;
    head.y = to[0];
    head.dq = to[1];
    head.dk = to[2];
    head.dv = to[3];
    CHECK(table->attention_workspace[type](&head) <= (int64_t)sizeof of->workspace);
    table->attention[type](&head, of->workspace);
    table->attention_dx[type](&head, of->workspace);
}

static void try_attention(Attention *of, int exponent) {
    const int64_t Q = draw_size(), K = draw_size(), D = draw_size();
    const int of_v = draw_between(-110, 120),
              of_dy = draw_between(-149, of_v > 0 ? 120 - of_v : 120);
    draw_numbers(&of->q, Q * D, exponent);
    draw_numbers(&of->k, K * D, -exponent);
    draw_numbers(&of->v, K * D, of_v);
    draw_numbers(&of->dy, Q * D, of_dy);
    for (int64_t i = 0; i < Q; i++) of->length[i] = draw_between(1, (int)K);
    const AttentionHead head = {.Q = Q,
                                .K = K,
                                .D = D,
                                .Dv = D,
                                .q_row = D,
                                .k_row = D,
                                .v_row = D,
                                .y_row = D,
                                .dy_row = D,
                                .dq_row = D,
                                .dk_row = D,
                                .dv_row = D,
                                .scale = 0.25,
                                .length = of->length,
                                .max = of->stats[0],
                                .inverse = of->stats[1]};
    const double dp = (double)D * of->v.most * of->dy.most + 0x1p-120; /* of a weight's gradient */
    const double size[] = {of->v.most, dp * of->k.most * (double)K, dp * of->q.most * (double)Q,
                           of->dy.most * (double)Q};
    const int64_t count[] = {Q * D, Q * D, K * D, K * D};
    static const char *const names[] = {"attention", "attention dq", "attention dk",
                                        "attention dv"};
    run_attention(of, head, NULL);
    for (int t = 0; t < table_count; t++) {
        run_attention(of, head, more_tables[t]);
        for (int i = 0; i < 4; i++)
            if (size[i] < (double)FLT_MAX && dp < (double)FLT_MAX / 4)
                expect_near(names[i], t, count[i], of->narrow[i], of->wide[i],
                            1e-5 * size[i] + 0x1p-140);
    }
}

/* The scores are near 1, at every exponent of q; dy has any exponent, and v any with which y is not
 * denormal, because backward reads y. A weight below 2^-100 counts as 0: fast_math.h says why. */
TEST(attention_heads) {
    draws_begin();
    static Attention of;
    for (int e = -120; e <= 120; e++)
        for (int round = 0; round < 4; round++) try_attention(&of, e);
}

int main(void) {
    find_tables();
    third = sample_step(3);
    return run_tests("exponents");
}
