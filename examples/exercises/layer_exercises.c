/* layer_exercises.c - 8 layer norm and 10 additive scores: their inputs, their right results and
 * their mistakes. */
#include "calls.h"
#include "truth.h"

#include "08_layer_norm.h"
#include "10_additive.h"

#include <math.h>

/* ---- 8 layer norm: y = (x - mean) / sqrt(var + eps) w + b ---------------------------------------
 */

#define LAYER_NORM                                                                                 \
    int rows, int n, double eps, double dx[rows][n], double dw[n], double db[n],                   \
        const double x[rows][n], const double w[n], const double dy[rows][n]

/* The terms of dx that a mistake leaves out or changes, and the divisor of the variance. */
typedef struct {
    bool no_mean_term, no_variance_term, no_w;
    int divisor;
    double eps;
} Norm;

/* dx = r (g - mean(g) - xhat mean(g xhat)), dw = sum of dy xhat, db = sum of dy, with g = dy w. */
static void norm_backward(Norm norm, LAYER_NORM) {
    for (int i = 0; i < rows; i++) {
        double mean = 0, var = 0, mean_g = 0, mean_g_xhat = 0, g[n], xhat[n];
        for (int j = 0; j < n; j++) mean += x[i][j] / n;
        for (int j = 0; j < n; j++) var += (x[i][j] - mean) * (x[i][j] - mean) / norm.divisor;
        const double r = 1 / sqrt(var + norm.eps);
        for (int j = 0; j < n; j++) {
            g[j] = norm.no_w ? dy[i][j] : dy[i][j] * w[j];
            xhat[j] = (x[i][j] - mean) * r;
            mean_g += g[j] / n;
            mean_g_xhat += g[j] * xhat[j] / n;
            dw[j] += dy[i][j] * xhat[j];
            db[j] += dy[i][j];
        }
        if (norm.no_mean_term) mean_g = 0;
        if (norm.no_variance_term) mean_g_xhat = 0;
        for (int j = 0; j < n; j++) dx[i][j] = r * (g[j] - mean_g - xhat[j] * mean_g_xhat);
    }
}

static void norm_mean_as_constant(LAYER_NORM) {
    const Norm norm = {.divisor = n, .eps = eps, .no_mean_term = true};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
}
static void norm_variance_as_constant(LAYER_NORM) {
    const Norm norm = {.divisor = n, .eps = eps, .no_variance_term = true};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
}
static void norm_both_constant(LAYER_NORM) {
    const Norm norm = {.divisor = n, .eps = eps, .no_mean_term = true, .no_variance_term = true};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
}
static void norm_no_w(LAYER_NORM) {
    const Norm norm = {.divisor = n, .eps = eps, .no_w = true};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
}
static void norm_n_minus_1(LAYER_NORM) {
    const Norm norm = {.divisor = n - 1, .eps = eps};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
}
static void norm_eps_missing(LAYER_NORM) {
    const Norm norm = {.divisor = n};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
}
static void norm_dw_not_normalized(LAYER_NORM) {
    const Norm norm = {.divisor = n, .eps = eps};
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
    for (int j = 0; j < n; j++) {
        dw[j] = 0;
        for (int i = 0; i < rows; i++) dw[j] += dy[i][j] * x[i][j];
    }
}
/* The whole backward of the last row alone: what `=` leaves in dw. */
static void norm_dw_overwritten(LAYER_NORM) {
    const Norm norm = {.divisor = n, .eps = eps};
    const int last = rows - 1;
    double last_dw[n], last_db[n];
    norm_backward(norm, rows, n, eps, dx, dw, db, x, w, dy);
    for (int j = 0; j < n; j++) {
        last_dw[j] = 0;
        last_db[j] = 0;
    }
    norm_backward(norm, 1, n, eps, &dx[last], last_dw, last_db, &x[last], w, &dy[last]);
    for (int j = 0; j < n; j++) dw[j] = last_dw[j];
}

static bool norm_has_two(const Call *c) { return c->size[1] > 1; }
static bool norm_varies(const Call *c) {
    const double *x = c->array[3];
    for (int i = 0; i < c->size[0]; i++) {
        bool varies = false;
        for (int j = 1; j < c->size[1]; j++)
            if (x[i * c->size[1] + j] != x[i * c->size[1]]) varies = true;
        if (!varies) return false;
    }
    return true;
}

static const KnownMistake norm_mistakes[] = {
    {"mean_as_constant", .backward = (Function *)norm_mean_as_constant},
    {"variance_as_constant", .backward = (Function *)norm_variance_as_constant},
    {"both_constant", .backward = (Function *)norm_both_constant},
    {"no_w", .backward = (Function *)norm_no_w},
    {"biased_n_minus_1", .backward = (Function *)norm_n_minus_1, .counts = norm_has_two},
    {"eps_missing", .backward = (Function *)norm_eps_missing, .counts = norm_varies},
    {"dw_not_normalized", .backward = (Function *)norm_dw_not_normalized},
    {"dw_overwritten", (Function *)norm_dw_overwritten, "dw[j] has the term of the last row alone.",
     "w[j] is used in every row. What does = do to the terms of the rows before?", NULL},
    {0}};

static void norm_call(Function *f, const Call *c) {
    ((__typeof__(layer_norm_backward) *)f)(c->size[0], c->size[1], c->number[0], c->array[0],
                                           c->array[1], c->array[2], c->array[3], c->array[4],
                                           c->array[5]);
}

static void norm_right(const Call *c) {
    truth_begin();
    Tensor *x = truth_leaf(c->array[3], SHAPE(c->size[0], c->size[1]));
    Tensor *w = truth_leaf(c->array[4], SHAPE(c->size[1]));
    Tensor *b = truth_leaf(c->array[2], SHAPE(c->size[1]));
    truth_backward(ag_layer_norm(x, w, b, c->number[0]), c->array[5]);
    truth_store(c->array[0], x);
    truth_store(c->array[1], w);
    truth_store(c->array[2], b);
    truth_end();
}

enum { EQUAL_ROWS = 1, EQUAL_ELEMENTS, SMALL_EPS, UNLIKE_ROWS };

/* eps is near the variance, so that leaving it out shows; it is 1e-5 where it is small. Rows that
 * are unlike have sizes from 1e-3 to 30. */
static void norm_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *x = c->array[3];
    const int rows = c->size[0], n = c->size[1];
    const double scale = sizes->scale > 0 ? sizes->scale : 3;
    const bool small = sizes->variant == SMALL_EPS || sizes->variant == UNLIKE_ROWS;
    c->number[0] = small ? 1e-5 : scale * scale / 4;
    for (int i = 0; sizes->variant == UNLIKE_ROWS && i < rows; i++)
        for (int j = 0; j < n; j++) x[i * n + j] *= 30 * pow(10, -1.5 * i);
    for (int j = 0; j < n; j++) {
        if (sizes->variant == EQUAL_ROWS && rows > 1) x[n + j] = x[j];
        if (sizes->variant == EQUAL_ELEMENTS) x[j] = x[0];
    }
}

static const Sizes norm_inputs[] = {{{3, 4}, 1, 0},          {{2, 3}, 1, SMALL_EPS},
                                    {{3, 3}, 1, EQUAL_ROWS}, {{2, 4}, 1, EQUAL_ELEMENTS},
                                    {{1, 5}, 1, 0},          {{2, 1}, 1, 0},
                                    {{2, 2}, 1, 0},          {{2, 5}, 30, 0},
                                    {{2, 4}, 0, 0},          {{4, 3}, 1e-2, 0},
                                    {{1, 1}, 1, 0},          {{4, 5}, 1, UNLIKE_ROWS},
                                    {{3, 5}, TINY, 0},       {{0}, 0, 0}};
static const Sizes norm_large[] = {{{LARGE, 5}, 1, 0}, {{3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_layer_norm = {
    .number = 8,
    .name = "layer_norm",
    .function = "layer_norm_backward",
    .parameter = {{"rows", SIZE, 0, 0},
                  {"n", SIZE, 0, 0},
                  {"eps", DOUBLE, 0, 0},
                  {"dx", OUTPUT, "rows", "n"},
                  {"dw", OUTPUT, 0, "n"},
                  {"db", OUTPUT, 0, "n"},
                  {"x", INPUT, "rows", "n"},
                  {"w", INPUT, 0, "n"},
                  {"dy", INPUT, "rows", "n"}},
    .dy = "dy",
    .inputs = norm_inputs,
    .large = norm_large,
    .prepare = norm_prepare,
    .call = norm_call,
    .right = norm_right,
    .mistakes = norm_mistakes,
    .where = "tensor/kernels/plain.inc, layer_norm_dx and layer_norm_dw",
    .lesson = 2,
    .step = "b3.0",
    .lesson_note = "a softmax: there, too, each number of a row changes all others"};

/* ---- 10 additive: s[i][j] = sum of w[h] tanh(q[i][h] + k[j][h]) ---------------------------------
 */

#define ADDITIVE                                                                                   \
    int Q, int K, int H, double dq[Q][H], double dk[K][H], double dw[H], const double q[Q][H],     \
        const double k[K][H], const double w[H], const double ds[Q][K]

/* The term of one query, key and h in the right sums. */
static double additive_term(double q, double k, double w, double ds) {
    const double t = tanh(q + k);
    return ds * w * (1 - t * t);
}
static void additive_right_dw(ADDITIVE) {
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) dw[h] += ds[i][j] * tanh(q[i][h] + k[j][h]);
}
static void additive_right_dq_dk(ADDITIVE) {
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) {
                dq[i][h] += additive_term(q[i][h], k[j][h], w[h], ds[i][j]);
                dk[j][h] += additive_term(q[i][h], k[j][h], w[h], ds[i][j]);
            }
}
static void additive_no_tanh_derivative(ADDITIVE) {
    additive_right_dw(Q, K, H, dq, dk, dw, q, k, w, ds);
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) {
                dq[i][h] += ds[i][j] * w[h];
                dk[j][h] += ds[i][j] * w[h];
            }
}
static void additive_derivative_of_input(ADDITIVE) {
    additive_right_dw(Q, K, H, dq, dk, dw, q, k, w, ds);
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) {
                const double t = tanh(tanh(q[i][h] + k[j][h]));
                dq[i][h] += ds[i][j] * w[h] * (1 - t * t);
                dk[j][h] += ds[i][j] * w[h] * (1 - t * t);
            }
}
static void additive_dw_without_tanh(ADDITIVE) {
    additive_right_dq_dk(Q, K, H, dq, dk, dw, q, k, w, ds);
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) dw[h] += ds[i][j] * (q[i][h] + k[j][h]);
}
static void additive_swapped(ADDITIVE) {
    additive_right_dw(Q, K, H, dq, dk, dw, q, k, w, ds);
    additive_right_dq_dk(Q, K, H, dk, dq, dw, q, k, w, ds);
}
static void additive_not_summed(ADDITIVE) {
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++) {
                dw[h] = ds[i][j] * tanh(q[i][h] + k[j][h]);
                dq[i][h] = additive_term(q[i][h], k[j][h], w[h], ds[i][j]);
                dk[j][h] = additive_term(q[i][h], k[j][h], w[h], ds[i][j]);
            }
}

static bool as_many_keys(const Call *c) { return c->size[0] == c->size[1]; }

static const KnownMistake additive_mistakes[] = {
    {"no_tanh_derivative", (Function *)additive_no_tanh_derivative,
     "dq and dk are sums of ds[i][j] w[h], with 1 for the derivative of tanh.",
     "Where tanh is almost flat, does s change much with q?", NULL},
    {"derivative_of_input", (Function *)additive_derivative_of_input,
     "The derivative of tanh is taken at t = tanh(u) in place of u: it is 1 - tanh(t)^2.",
     "tanh'(u) = 1 - tanh(u)^2. What is your u, and what is tanh(u)?", NULL},
    {"dw_without_tanh", (Function *)additive_dw_without_tanh,
     "dw[h] is the sum of ds[i][j] (q[i][h] + k[j][h]).", "By what is w[h] multiplied in s[i][j]?",
     NULL},
    {"dq_dk_swapped", (Function *)additive_swapped,
     "dq is what dk should be, and dk what dq should.",
     "Does dq[i] sum over the keys or over the queries?", as_many_keys},
    {"not_summed", (Function *)additive_not_summed,
     "dq[i], dk[j] and dw have one term each, of the last key, the last query, and both.",
     "In how many scores is q[i] used? What does = do to the terms before?", NULL},
    {0}};

static void additive_call(Function *f, const Call *c) {
    ((__typeof__(additive_backward) *)f)(c->size[0], c->size[1], c->size[2], c->array[0],
                                         c->array[1], c->array[2], c->array[3], c->array[4],
                                         c->array[5], c->array[6]);
}

static void additive_right(const Call *c) {
    const int64_t Q = c->size[0], K = c->size[1], H = c->size[2];
    truth_begin();
    Tensor *q = truth_leaf(c->array[3], SHAPE(1, Q, H));
    Tensor *k = truth_leaf(c->array[4], SHAPE(1, K, H));
    Tensor *w = truth_leaf(c->array[5], SHAPE(1, H));
    truth_backward(ag_additive_scores(q, k, w, NULL), c->array[6]);
    truth_store(c->array[0], q);
    truth_store(c->array[1], k);
    truth_store(c->array[2], w);
    truth_end();
}

static const Sizes additive_inputs[] = {{{3, 3, 2}, 1, 0}, {{2, 2, 3}, 1, 0},    {{3, 3, 3}, 0, 0},
                                        {{2, 3, 2}, 1, 0}, {{3, 2, 4}, 1, 0},    {{1, 3, 2}, 1, 0},
                                        {{4, 1, 2}, 1, 0}, {{2, 3, 1}, 3, 0},    {{1, 1, 1}, 1, 0},
                                        {{3, 4, 2}, 5, 0}, {{4, 3, 2}, TINY, 0}, {{0}, 0, 0}};
static const Sizes additive_large[] = {
    {{LARGE, 17, 2}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_additive = {.number = 10,
                                    .name = "additive",
                                    .function = "additive_backward",
                                    .parameter = {{"Q", SIZE, 0, 0},
                                                  {"K", SIZE, 0, 0},
                                                  {"H", SIZE, 0, 0},
                                                  {"dq", OUTPUT, "Q", "H"},
                                                  {"dk", OUTPUT, "K", "H"},
                                                  {"dw", OUTPUT, 0, "H"},
                                                  {"q", INPUT, "Q", "H"},
                                                  {"k", INPUT, "K", "H"},
                                                  {"w", INPUT, 0, "H"},
                                                  {"ds", INPUT, "Q", "K"}},
                                    .dy = "ds",
                                    .inputs = additive_inputs,
                                    .large = additive_large,
                                    .call = additive_call,
                                    .right = additive_right,
                                    .mistakes = additive_mistakes,
                                    .where = "tensor/more/more_plain.inc, additive_dx",
                                    .lesson = 6,
                                    .step = "b5.0",
                                    .lesson_switch = "additive"};
