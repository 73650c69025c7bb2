/* product_exercises.c - 3 product and 7 linear: their inputs, their right results and their
 * mistakes. */
#include "calls.h"
#include "truth.h"

#include "prototypes.h"

/* ---- 3 product: y = a b -----------------------------------------------------------------------
 */

#define PRODUCT                                                                                    \
    int n, int k, int m, double da[n][k], double db[k][m], const double a[n][k],                   \
        const double b[k][m], const double dy[n][m]

static void product_right_da(PRODUCT) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < m; j++) da[i][p] += dy[i][j] * b[p][j];
}
static void product_right_db(PRODUCT) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < m; j++) db[p][j] += a[i][p] * dy[i][j];
}
static void product_da_untransposed(PRODUCT) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < m; j++) da[i][p] += dy[i][j] * b[j][p];
    product_right_db(n, k, m, da, db, a, b, dy);
}
static void product_db_untransposed(PRODUCT) {
    product_right_da(n, k, m, da, db, a, b, dy);
    for (int p = 0; p < k; p++)
        for (int j = 0; j < m; j++)
            for (int i = 0; i < n; i++) db[p][j] += a[p][i] * dy[i][j];
}
static void product_swapped(PRODUCT) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++)
            for (int j = 0; j < m; j++) da[i][p] += dy[i][j] * a[p][j];
    for (int p = 0; p < k; p++)
        for (int j = 0; j < m; j++)
            for (int i = 0; i < n; i++) db[p][j] += b[i][p] * dy[i][j];
}
static void product_da_elementwise(PRODUCT) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++) da[i][p] = dy[i][p] * b[i][p];
    product_right_db(n, k, m, da, db, a, b, dy);
}
static void product_only_diagonal(PRODUCT) {
    for (int i = 0; i < n; i++)
        for (int p = 0; p < k; p++) da[i][p] = dy[i][p] * b[p][p];
    for (int p = 0; p < k; p++)
        for (int j = 0; j < m; j++) db[p][j] = a[p][p] * dy[p][j];
}

static bool m_is_k(const Call *c) { return c->size[2] == c->size[1]; }
static bool n_is_k(const Call *c) { return c->size[0] == c->size[1]; }
static bool all_equal(const Call *c) { return m_is_k(c) && n_is_k(c); }

static const KnownMistake product_mistakes[] = {
    {"da_untransposed", .backward = (Function *)product_da_untransposed, .counts = m_is_k},
    {"db_untransposed", .backward = (Function *)product_db_untransposed, .counts = n_is_k},
    {"swapped", (Function *)product_swapped,
     "da = dy a' and db = b' dy: each gradient is made of its own operand.",
     "If a[i][p] grows by 1, by how much does y[i][j] grow: by an element of a or of b?",
     all_equal},
    {"da_elementwise", .backward = (Function *)product_da_elementwise, .counts = all_equal},
    {"only_diagonal", (Function *)product_only_diagonal,
     "da[i][p] = dy[i][p] b[p][p] and db[p][j] = a[p][p] dy[p][j]: one term of each sum.",
     "Over which index does forward not sum? Over which index must backward sum?", all_equal},
    {0}};

static void product_call(Function *f, const Call *c) {
    ((__typeof__(product_backward) *)f)(c->size[0], c->size[1], c->size[2], c->array[0],
                                        c->array[1], c->array[2], c->array[3], c->array[4]);
}

static void product_right(const Call *c) {
    truth_begin();
    Tensor *a = truth_leaf(c->array[2], SHAPE(c->size[0], c->size[1]));
    Tensor *b = truth_leaf(c->array[3], SHAPE(c->size[1], c->size[2]));
    truth_backward(ag_matmul(a, b), c->array[4]);
    truth_store(c->array[0], a);
    truth_store(c->array[1], b);
    truth_end();
}

static const Sizes product_inputs[] = {{{3, 3, 3}, 1, 0},  {{2, 2, 2}, 1, 0},    {{4, 4, 4}, 0, 0},
                                       {{2, 3, 2}, 1, 0},  {{2, 3, 3}, 1, 0},    {{3, 3, 2}, 1, 0},
                                       {{4, 1, 3}, 1, 0},  {{1, 4, 1}, 1, 0},    {{1, 1, 1}, 1, 0},
                                       {{3, 2, 5}, 30, 0}, {{4, 5, 3}, TINY, 0}, {{0}, 0, 0}};
static const Sizes product_large[] = {
    {{LARGE, 2, 3}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_product = {.number = 3,
                                   .name = "product",
                                   .function = "product_backward",
                                   .parameter = {{"n", SIZE, 0, 0},
                                                 {"k", SIZE, 0, 0},
                                                 {"m", SIZE, 0, 0},
                                                 {"da", OUTPUT, "n", "k"},
                                                 {"db", OUTPUT, "k", "m"},
                                                 {"a", INPUT, "n", "k"},
                                                 {"b", INPUT, "k", "m"},
                                                 {"dy", INPUT, "n", "m"}},
                                   .dy = "dy",
                                   .inputs = product_inputs,
                                   .large = product_large,
                                   .call = product_call,
                                   .right = product_right,
                                   .mistakes = product_mistakes,
                                   .where = "autograd/ops/linear.c, product_backward",
                                   .lesson = 2,
                                   .step = "b4.0"};

/* ---- 7 linear: y = x w' + b -------------------------------------------------------------------
 */

#define LINEAR                                                                                     \
    int rows, int in, int out, double dx[rows][in], double dw[out][in], double db[out],            \
        const double x[rows][in], const double w[out][in], const double dy[rows][out]

static void linear_right_dx(LINEAR) {
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++)
            for (int i = 0; i < in; i++) dx[r][i] += dy[r][o] * w[o][i];
}
static void linear_right_dw(LINEAR) {
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++)
            for (int i = 0; i < in; i++) dw[o][i] += dy[r][o] * x[r][i];
}
static void linear_right_db(LINEAR) {
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) db[o] += dy[r][o];
}
static void linear_all_right(LINEAR) {
    linear_right_dx(rows, in, out, dx, dw, db, x, w, dy);
    linear_right_dw(rows, in, out, dx, dw, db, x, w, dy);
    linear_right_db(rows, in, out, dx, dw, db, x, w, dy);
}
static void linear_dw_transposed_indices(LINEAR) {
    linear_right_dx(rows, in, out, dx, dw, db, x, w, dy);
    linear_right_db(rows, in, out, dx, dw, db, x, w, dy);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++)
            for (int i = 0; i < in; i++) dw[o][i] += dy[r][i] * x[r][o];
}
static void linear_dx_w_transposed(LINEAR) {
    linear_right_dw(rows, in, out, dx, dw, db, x, w, dy);
    linear_right_db(rows, in, out, dx, dw, db, x, w, dy);
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++)
            for (int i = 0; i < in; i++) dx[r][i] += dy[r][o] * w[i][o];
}
static void linear_db_missing(LINEAR) {
    linear_right_dx(rows, in, out, dx, dw, db, x, w, dy);
    linear_right_dw(rows, in, out, dx, dw, db, x, w, dy);
}
static void linear_db_mean(LINEAR) {
    linear_all_right(rows, in, out, dx, dw, db, x, w, dy);
    for (int o = 0; o < out; o++) db[o] /= rows;
}
static void linear_dw_mean(LINEAR) {
    linear_all_right(rows, in, out, dx, dw, db, x, w, dy);
    for (int o = 0; o < out; o++)
        for (int i = 0; i < in; i++) dw[o][i] /= rows;
}

static const KnownMistake linear_mistakes[] = {
    {"dw_transposed_indices", .backward = (Function *)linear_dw_transposed_indices,
     .counts = m_is_k},
    {"dx_w_transposed", .backward = (Function *)linear_dx_w_transposed, .counts = m_is_k},
    {"db_missing", .backward = (Function *)linear_db_missing},
    {"db_mean", .backward = (Function *)linear_db_mean},
    {"dw_mean", .backward = (Function *)linear_dw_mean},
    {0}};

static void linear_call(Function *f, const Call *c) {
    ((__typeof__(linear_backward) *)f)(c->size[0], c->size[1], c->size[2], c->array[0], c->array[1],
                                       c->array[2], c->array[3], c->array[4], c->array[5]);
}

static void linear_right(const Call *c) {
    truth_begin();
    Tensor *x = truth_leaf(c->array[3], SHAPE(c->size[0], c->size[1]));
    Tensor *w = truth_leaf(c->array[4], SHAPE(c->size[2], c->size[1]));
    Tensor *b = truth_leaf(c->array[2], SHAPE(c->size[2]));
    truth_backward(ag_linear(x, w, b), c->array[5]);
    truth_store(c->array[0], x);
    truth_store(c->array[1], w);
    truth_store(c->array[2], b);
    truth_end();
}

static const Sizes linear_inputs[] = {{{3, 3, 3}, 1, 0},  {{2, 2, 2}, 1, 0},    {{2, 4, 4}, 0, 0},
                                      {{2, 3, 2}, 1, 0},  {{4, 2, 3}, 1, 0},    {{1, 3, 3}, 1, 0},
                                      {{3, 1, 4}, 1, 0},  {{5, 2, 1}, 1, 0},    {{1, 1, 1}, 1, 0},
                                      {{3, 4, 2}, 30, 0}, {{4, 5, 3}, TINY, 0}, {{0}, 0, 0}};
static const Sizes linear_large[] = {
    {{LARGE, 2, 3}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_linear = {.number = 7,
                                  .name = "linear",
                                  .function = "linear_backward",
                                  .parameter = {{"rows", SIZE, 0, 0},
                                                {"in", SIZE, 0, 0},
                                                {"out", SIZE, 0, 0},
                                                {"dx", OUTPUT, "rows", "in"},
                                                {"dw", OUTPUT, "out", "in"},
                                                {"db", OUTPUT, 0, "out"},
                                                {"x", INPUT, "rows", "in"},
                                                {"w", INPUT, "out", "in"},
                                                {"dy", INPUT, "rows", "out"}},
                                  .dy = "dy",
                                  .inputs = linear_inputs,
                                  .large = linear_large,
                                  .call = linear_call,
                                  .right = linear_right,
                                  .mistakes = linear_mistakes,
                                  .where = "autograd/ops/linear.c, linear_backward",
                                  .lesson = 6,
                                  .step = "b7.1"};
