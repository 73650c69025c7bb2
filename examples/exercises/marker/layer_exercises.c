/* layer_exercises.c - 8 layer norm and 10 additive scores: their inputs, their right results and
 * their mistakes. */
#include "calls.h"
#include "stages.h"
#include "truth.h"

#include "../students/08_layer_norm.h"
#include "../students/10_additive.h"

#include <math.h>

/* ---- 8 layer norm: y = (x - mean) / sqrt(var + eps) w + b ---------------------------------------
 */

/* What a mistake changes. */
enum {
    MEAN_CONSTANT,
    VARIANCE_CONSTANT,
    BOTH_CONSTANT,
    NO_W,
    N_MINUS_1,
    NO_EPS,
    DW_OF_X,
    DW_OVERWRITTEN,
    MEAN_NOT_DIVIDED,
    MEAN_LEFT_OVER,
    VAR_NOT_DIVIDED,
    VAR_LEFT_OVER,
    VAR_NOT_CENTRED,
    NO_ROOT,
    EPS_OUTSIDE,
    XHAT_NOT_DIVIDED,
    XHAT_NOT_CENTRED,
    W_SQUARED,
    W_OUTSIDE,
    SUMS_WITHOUT_W,
    SUMS_NOT_DIVIDED,
    G_NOT_DIVIDED,
    GX_NOT_DIVIDED,
    SUMS_OVERWRITTEN,
    SUMS_LEFT_OVER,
    SUMS_GROW,
    SUM_USES_X,
    SIGN_OF_MEAN,
    SIGN_OF_VARIANCE,
    BOTH_SIGNS,
    DX_NOT_DIVIDED,
    XHAT_MISSING,
    X_FOR_XHAT,
    CENTRED_FOR_XHAT,
    DW_CENTRED,
    DW_WITHOUT_XHAT,
    DW_WITH_W,
    DB_WITH_W,
    DB_OVERWRITTEN
};

/* The numbers of a row. */
typedef struct {
    double mean, var, r;
    double mean_g, mean_g_xhat;
} RowSums;

/* Sets to 0 what a row needs; but what a mistake leaves over. */
static void begin_row(int change, RowSums *s) {
    if (change != MEAN_LEFT_OVER) s->mean = 0;
    if (change != VAR_LEFT_OVER) s->var = 0;
    if (change == SUMS_LEFT_OVER) return;
    s->mean_g = 0;
    s->mean_g_xhat = 0;
}

static void normalize(int change, int n, double eps, double xhat[n], RowSums *s,
                      const double x[n]) {
    for (int j = 0; j < n; j++) s->mean += change == MEAN_NOT_DIVIDED ? x[j] : x[j] / n;
    double divisor = change == N_MINUS_1 ? n - 1 : n;
    if (change == VAR_NOT_DIVIDED) divisor = 1;
    for (int j = 0; j < n; j++) {
        const double part = change == VAR_NOT_CENTRED ? x[j] : x[j] - s->mean;
        s->var += part * part / divisor;
    }
    s->r = 1 / sqrt(s->var + (change == NO_EPS ? 0 : eps));
    if (change == NO_ROOT) s->r = 1 / (s->var + eps);
    if (change == EPS_OUTSIDE) s->r = 1 / (sqrt(s->var) + eps);
    for (int j = 0; j < n; j++) {
        xhat[j] = x[j] - (change == XHAT_NOT_CENTRED ? 0 : s->mean);
        if (change != XHAT_NOT_DIVIDED) xhat[j] *= s->r;
    }
}

/* The terms of the two sums. */
static double term_of_g(int change, double g, double dy) {
    return change == SUMS_WITHOUT_W ? dy : g;
}
static double xhat_of_sum(int change, double x, double xhat) {
    return change == SUM_USES_X ? x : xhat;
}

static void add_sums(int change, int n, RowSums *s, double term, double xhat) {
    const bool whole = change == SUMS_NOT_DIVIDED;
    if (change == SUMS_OVERWRITTEN) {
        s->mean_g = 0;
        s->mean_g_xhat = 0;
    }
    s->mean_g += whole || change == G_NOT_DIVIDED ? term : term / n;
    s->mean_g_xhat += whole || change == GX_NOT_DIVIDED ? term * xhat : term * xhat / n;
}

static double element_of_dx(int change, double g, double x, double xhat, const RowSums *s) {
    const bool no_mean = change == MEAN_CONSTANT || change == BOTH_CONSTANT;
    const bool no_variance = change == VARIANCE_CONSTANT || change == BOTH_CONSTANT;
    double of_mean = no_mean ? 0 : s->mean_g, of_variance = no_variance ? 0 : s->mean_g_xhat;
    if (change == SIGN_OF_MEAN || change == BOTH_SIGNS) of_mean = -of_mean;
    if (change == SIGN_OF_VARIANCE || change == BOTH_SIGNS) of_variance = -of_variance;
    if (change == XHAT_MISSING) xhat = 1;
    if (change == X_FOR_XHAT) xhat = x;
    if (change == CENTRED_FOR_XHAT) xhat = x - s->mean;
    return (change == DX_NOT_DIVIDED ? 1 : s->r) * (g - of_mean - xhat * of_variance);
}

static double factor_of_dw(int change, double x, double xhat, double w, const RowSums *s) {
    switch (change) {
    case DW_OF_X: return x;
    case DW_CENTRED: return x - s->mean;
    case DW_WITHOUT_XHAT: return 1;
    case DW_WITH_W: return w * xhat;
    default: return xhat;
    }
}

/* g = dy w */
static double gradient_of_xhat(int change, double dy, double w) {
    if (change == NO_W || change == W_OUTSIDE) return dy;
    return change == W_SQUARED ? dy * w * w : dy * w;
}

/* dx = r (g - mean(g) - xhat mean(g xhat)), dw = sum of dy xhat, db = sum of dy, with a change. */
static void norm_change(const Call *c, int change) {
    const int rows = c->size[0], n = c->size[1];
    double *dw = c->array[1];
    double *db = c->array[2];
    const double *w = c->array[4];
    double xhat[n];
    RowSums s = {0};
    for (int i = 0; i < rows; i++) {
        double *dx = (double *)c->array[0] + i * n;
        const double *x = (double *)c->array[3] + i * n;
        const double *dy = (double *)c->array[5] + i * n;
        begin_row(change, &s);
        normalize(change, n, c->number[0], xhat, &s, x);
        for (int j = 0; j < n; j++) {
            const double g = gradient_of_xhat(change, dy[j], w[j]);
            add_sums(change, n, &s, term_of_g(change, g, dy[j]),
                     xhat_of_sum(change, x[j], xhat[j]));
            if (change == SUMS_GROW) dx[j] = element_of_dx(change, g, x[j], xhat[j], &s);
            if (change == DW_OVERWRITTEN) dw[j] = 0;
            if (change == DB_OVERWRITTEN) db[j] = 0;
            dw[j] += dy[j] * factor_of_dw(change, x[j], xhat[j], w[j], &s);
            db[j] += change == DB_WITH_W ? dy[j] * w[j] : dy[j];
        }
        for (int j = 0; j < n && change != SUMS_GROW; j++) {
            dx[j] = element_of_dx(change, gradient_of_xhat(change, dy[j], w[j]), x[j], xhat[j], &s);
            if (change == W_OUTSIDE) dx[j] *= w[j];
        }
    }
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
    {.id = "mean_as_constant", .change = MEAN_CONSTANT},
    {.id = "variance_as_constant", .change = VARIANCE_CONSTANT},
    {.id = "both_constant", .change = BOTH_CONSTANT},
    {.id = "no_w", .change = NO_W},
    {.id = "biased_n_minus_1", .change = N_MINUS_1, .counts = norm_has_two},
    {.id = "eps_missing", .change = NO_EPS, .counts = norm_varies},
    {.id = "dw_not_normalized", .change = DW_OF_X},
    {.id = "dw_overwritten",
     .change = DW_OVERWRITTEN,
     .says = "dw[j] has the term of the last row alone.",
     .asks = "w[j] is used in every row. What does = do to the terms of the rows before?"},
    {.id = "mean_not_divided",
     .change = MEAN_NOT_DIVIDED,
     .says = "mean is the sum of the x of a row, not divided by n; var and xhat are made of it.",
     .asks = "By what does forward divide the sum?"},
    {.id = "mean_left_over",
     .change = MEAN_LEFT_OVER,
     .says = "The mean of a row also has the means of the rows before.",
     .asks = "What is in mean when the next row begins?"},
    {.id = "var_not_divided",
     .change = VAR_NOT_DIVIDED,
     .says = "var is the sum of (x - mean)^2, not divided by n.",
     .asks = "By what does forward divide the sum of squares?"},
    {.id = "var_left_over",
     .change = VAR_LEFT_OVER,
     .says = "The variance of a row also has the variances of the rows before.",
     .asks = "What is in var when the next row begins?"},
    {.id = "var_not_centred",
     .change = VAR_NOT_CENTRED,
     .says = "var is the mean of x^2: the mean of x is not subtracted before the square.",
     .asks = "Of which number is the square taken in forward?"},
    {.id = "sd_without_root",
     .change = NO_ROOT,
     .says =
         "xhat = (x - mean) / (var + eps), and dx has the same divisor: the square root is missing.",
     .asks = "If all x are twice as large, how much larger is xhat?"},
    {.id = "eps_outside",
     .change = EPS_OUTSIDE,
     .says = "sd = sqrt(var) + eps, in place of sqrt(var + eps).",
     .asks = "What does forward add eps to: to the variance or to its root?"},
    {.id = "xhat_not_divided",
     .change = XHAT_NOT_DIVIDED,
     .says = "xhat = x - mean, not divided by sqrt(var + eps).",
     .asks = "What is the variance of xhat, if eps is 0?"},
    {.id = "xhat_not_centred",
     .change = XHAT_NOT_CENTRED,
     .says = "xhat = x / sqrt(var + eps): the mean is not subtracted.",
     .asks = "What is the mean of xhat over a row?"},
    {.id = "w_squared",
     .change = W_SQUARED,
     .says = "g = dy w w, with w as a factor twice.",
     .asks = "How often is xhat[i][j] multiplied by w[j] in y[i][j]?"},
    {.id = "w_outside",
     .change = W_OUTSIDE,
     .says =
         "dx[j] = w[j] r (dy - mean(dy) - xhat mean(dy xhat)): the sums have no w, and all of it is multiplied by w[j].",
     .asks = "The sum of a row goes over all j. Which w does each of its terms need?"},
    {.id = "w_missing_in_sums",
     .change = SUMS_WITHOUT_W,
     .says = "dx = r (dy w - mean(dy) - xhat mean(dy xhat)): w is in the first term alone.",
     .asks = "The two means are of the gradient of xhat. What is that gradient?"},
    {.id = "sums_not_divided",
     .change = SUMS_NOT_DIVIDED,
     .says = "dx = r (g - sum(g) - xhat sum(g xhat)) with g = dy w: 1/n is missing.",
     .asks = "If x[i][j] grows by 1, by how much does the mean of its row grow?"},
    {.id = "sum_of_g_not_divided",
     .change = G_NOT_DIVIDED,
     .says =
         "dx = r (g - sum(g) - xhat mean(g xhat)) with g = dy w: 1/n is missing in the first sum.",
     .asks = "If x[i][j] grows by 1, by how much does the mean of its row grow?"},
    {.id = "sum_of_g_xhat_not_divided",
     .change = GX_NOT_DIVIDED,
     .says =
         "dx = r (g - mean(g) - xhat sum(g xhat)) with g = dy w: 1/n is missing in the second sum.",
     .asks = "var is a mean of squares. What is its derivative by one x[i][j]?"},
    {.id = "sums_overwritten",
     .change = SUMS_OVERWRITTEN,
     .says = "Each of the two sums of dx has its last term alone, divided by n.",
     .asks = "What does = do to the terms of the elements before?"},
    {.id = "sums_left_over",
     .change = SUMS_LEFT_OVER,
     .says = "The two sums of a row also have the terms of the rows before.",
     .asks = "What is in the sums when the next row begins?"},
    {.id = "sums_grow",
     .change = SUMS_GROW,
     .says = "dx[i][j] is made of sums that go up to j.",
     .asks = "When is the sum of a row complete, and when is it used?"},
    {.id = "sum_uses_x",
     .change = SUM_USES_X,
     .says = "dx = r (g - mean(g) - xhat mean(g x)) with g = dy w: x in place of xhat in the sum.",
     .asks =
         "Through which number of a row does x reach the variance: through x, or through x - mean?"},
    {.id = "sign_of_mean",
     .change = SIGN_OF_MEAN,
     .says = "dx = r (g + mean(g) - xhat mean(g xhat)) with g = dy w.",
     .asks = "If the mean grows, does xhat grow or shrink?"},
    {.id = "sign_of_variance",
     .change = SIGN_OF_VARIANCE,
     .says = "dx = r (g - mean(g) + xhat mean(g xhat)) with g = dy w.",
     .asks = "If the variance grows, is |xhat| larger or smaller?"},
    {.id = "both_signs",
     .change = BOTH_SIGNS,
     .says = "dx = r (g + mean(g) + xhat mean(g xhat)) with g = dy w.",
     .asks = "If the mean or the variance grows, does xhat grow or shrink?"},
    {.id = "dx_not_divided",
     .change = DX_NOT_DIVIDED,
     .says = "dx = g - mean(g) - xhat mean(g xhat) with g = dy w, not divided by sqrt(var + eps).",
     .asks = "If x[i][j] grows by 1 and mean and var stay, by how much does xhat[i][j] grow?"},
    {.id = "xhat_missing",
     .change = XHAT_MISSING,
     .says =
         "dx = r (g - mean(g) - mean(g xhat)) with g = dy w: the last term has no xhat of its own.",
     .asks = "Does every x[i][j] change the variance by the same amount?"},
    {.id = "x_for_xhat",
     .change = X_FOR_XHAT,
     .says = "dx = r (g - mean(g) - x mean(g xhat)) with g = dy w: x in place of xhat.",
     .asks = "By how much does the variance change with an x[i][j] that is equal to the mean?"},
    {.id = "centred_for_xhat",
     .change = CENTRED_FOR_XHAT,
     .says =
         "dx = r (g - mean(g) - (x - mean) mean(g xhat)) with g = dy w: the last term lacks 1 / sqrt(var + eps).",
     .asks = "How often does sqrt(var + eps) divide in the term of the variance?"},
    {.id = "dw_not_divided",
     .change = DW_CENTRED,
     .says = "dw[j] is the sum of dy[i][j] (x[i][j] - mean): sqrt(var + eps) does not divide it.",
     .asks = "By what is w[j] multiplied in forward?"},
    {.id = "dw_without_xhat",
     .change = DW_WITHOUT_XHAT,
     .says = "dw[j] is the sum of dy[i][j] over the rows, as db[j] is.",
     .asks = "By what is w[j] multiplied in forward?"},
    {.id = "dw_with_w",
     .change = DW_WITH_W,
     .says = "dw[j] is the sum of dy[i][j] w[j] xhat[i][j].",
     .asks = "If w[j] grows by 1, by how much does y[i][j] grow?"},
    {.id = "db_with_w",
     .change = DB_WITH_W,
     .says = "db[j] is the sum of dy[i][j] w[j].",
     .asks = "If b[j] grows by 1, by how much does y[i][j] grow?"},
    {.id = "db_overwritten",
     .change = DB_OVERWRITTEN,
     .says = "db[j] is dy[i][j] of the last row alone.",
     .asks = "In how many rows is b[j]? What does = do to the terms of the rows before?"},
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
    .changed = norm_change,
    .stages = &stages_layer_norm,
    .where = "tensor/kernels/plain.inc, layer_norm_dx and layer_norm_dw",
    .lesson = 2,
    .step = "b3.0",
    .lesson_note = "a softmax: there, too, each number of a row changes all others"};

/* ---- 10 additive: s[i][j] = sum of w[h] tanh(q[i][h] + k[j][h]) ---------------------------------
 */

enum {
    SLOPE_ONE,
    SLOPE_AT_T,
    DW_OF_U,
    SWAPPED,
    ALL_OVERWRITTEN,
    NO_W_IN_DU,
    W_TWICE,
    ONE_MINUS_T,
    ONE_PLUS_T2,
    T_SQUARED,
    ONE_MINUS_U2,
    ONE_OVER_COSH,
    SLOPE_OF_SIGMOID,
    DQ_OVERWRITTEN,
    DK_OVERWRITTEN,
    DW_OVERWRITTEN_10,
    DW_WITHOUT_T,
    DW_TIMES_W,
    U_PRODUCT,
    U_DIFFERENCE,
    T_IS_U
};

static double tanh_of(int change, double q, double k) {
    if (change == U_PRODUCT) return tanh(q * k);
    if (change == U_DIFFERENCE) return tanh(q - k);
    return change == T_IS_U ? q + k : tanh(q + k);
}

static double slope_of(int change, double u, double t) {
    switch (change) {
    case SLOPE_ONE: return 1;
    case SLOPE_AT_T: return 1 - tanh(t) * tanh(t);
    case ONE_MINUS_T: return 1 - t;
    case ONE_PLUS_T2: return 1 + t * t;
    case T_SQUARED: return t * t;
    case ONE_MINUS_U2: return 1 - u * u;
    case ONE_OVER_COSH: return 1 / cosh(u);
    case SLOPE_OF_SIGMOID: return t * (1 - t);
    default: return 1 - t * t;
    }
}

/* One score and one h. */
static void additive_terms(int change, double q, double k, double w, double ds, double *dq,
                           double *dk, double *dw) {
    const double u = q + k, t = tanh_of(change, q, k);
    double du = ds * w * slope_of(change, u, t), of_dw = change == DW_OF_U ? u : t;
    if (change == NO_W_IN_DU) du = ds * slope_of(change, u, t);
    if (change == W_TWICE) du *= w;
    if (change == DW_WITHOUT_T) of_dw = 1;
    const bool all = change == ALL_OVERWRITTEN;
    if (all || change == DQ_OVERWRITTEN) *dq = 0;
    if (all || change == DK_OVERWRITTEN) *dk = 0;
    if (all || change == DW_OVERWRITTEN_10) *dw = 0;
    *dq += du;
    *dk += du;
    *dw += ds * of_dw * (change == DW_TIMES_W ? w : 1);
}

/* The whole backward with a change. */
static void additive_change(const Call *c, int change) {
    const int Q = c->size[0], K = c->size[1], H = c->size[2];
    double *dq = c->array[change == SWAPPED];
    double *dk = c->array[change != SWAPPED];
    double *dw = c->array[2];
    const double *q = c->array[3];
    const double *k = c->array[4];
    const double *w = c->array[5];
    const double *ds = c->array[6];
    for (int i = 0; i < Q; i++)
        for (int j = 0; j < K; j++)
            for (int h = 0; h < H; h++)
                additive_terms(change, q[i * H + h], k[j * H + h], w[h], ds[i * K + j],
                               &dq[i * H + h], &dk[j * H + h], &dw[h]);
}

static bool as_many_keys(const Call *c) { return c->size[0] == c->size[1]; }

static const KnownMistake additive_mistakes[] = {
    {.id = "no_tanh_derivative",
     .change = SLOPE_ONE,
     .says = "dq and dk are sums of ds[i][j] w[h], with 1 for the derivative of tanh.",
     .asks = "Where tanh is almost flat, does s change much with q?"},
    {.id = "derivative_of_input",
     .change = SLOPE_AT_T,
     .says = "The derivative of tanh is taken at t = tanh(u) in place of u: it is 1 - tanh(t)^2.",
     .asks = "tanh'(u) = 1 - tanh(u)^2. What is your u, and what is tanh(u)?"},
    {.id = "dw_without_tanh",
     .change = DW_OF_U,
     .says = "dw[h] is the sum of ds[i][j] (q[i][h] + k[j][h]).",
     .asks = "By what is w[h] multiplied in s[i][j]?"},
    {.id = "dq_dk_swapped",
     .change = SWAPPED,
     .says = "dq is what dk should be, and dk what dq should.",
     .asks = "Does dq[i] sum over the keys or over the queries?",
     .counts = as_many_keys},
    {.id = "not_summed",
     .change = ALL_OVERWRITTEN,
     .says = "dq[i], dk[j] and dw have one term each, of the last key, the last query, and both.",
     .asks = "In how many scores is q[i] used? What does = do to the terms before?"},
    {.id = "w_missing",
     .change = NO_W_IN_DU,
     .says = "dq and dk are sums of ds[i][j] (1 - t^2), without w[h].",
     .asks = "By what is the tanh of q[i][h] + k[j][h] multiplied in s[i][j]?"},
    {.id = "w_squared",
     .change = W_TWICE,
     .says = "dq and dk are sums of ds[i][j] w[h] w[h] (1 - t^2).",
     .asks = "How often is the tanh multiplied by w[h] in s[i][j]?"},
    {.id = "one_minus_t",
     .change = ONE_MINUS_T,
     .says = "The derivative of tanh is 1 - t, in place of 1 - t^2.",
     .asks = "What is the slope of tanh where t = -0.5?"},
    {.id = "one_plus_t_squared",
     .change = ONE_PLUS_T2,
     .says = "The derivative of tanh is 1 + t^2, in place of 1 - t^2.",
     .asks = "Where tanh is almost flat t is almost 1. What is the slope there?"},
    {.id = "t_squared",
     .change = T_SQUARED,
     .says = "The derivative of tanh is t^2, in place of 1 - t^2.",
     .asks = "What is the slope of tanh at u = 0?"},
    {.id = "one_minus_u_squared",
     .change = ONE_MINUS_U2,
     .says =
         "The derivative of tanh is 1 - u^2 with u = q[i][h] + k[j][h], in place of 1 - tanh(u)^2.",
     .asks = "Of which number is the square taken in 1 - tanh(u)^2?"},
    {.id = "one_over_cosh",
     .change = ONE_OVER_COSH,
     .says = "The derivative of tanh is 1 / cosh(u), in place of 1 / cosh(u)^2.",
     .asks = "1 - tanh(u)^2 is 1 / cosh(u) to which power?"},
    {.id = "slope_of_sigmoid",
     .change = SLOPE_OF_SIGMOID,
     .says = "The derivative of tanh is t (1 - t), which is that of the sigmoid.",
     .asks = "What is the slope of tanh at u = 0, where t = 0?"},
    {.id = "dq_overwritten",
     .change = DQ_OVERWRITTEN,
     .says = "dq[i] has the term of the last key alone.",
     .asks = "In how many scores is q[i] used? What does = do to the terms before?"},
    {.id = "dk_overwritten",
     .change = DK_OVERWRITTEN,
     .says = "dk[j] has the term of the last query alone.",
     .asks = "In how many scores is k[j] used? What does = do to the terms before?"},
    {.id = "dw_overwritten",
     .change = DW_OVERWRITTEN_10,
     .says = "dw has the term of the last query and the last key alone.",
     .asks = "In how many scores is w[h] used? What does = do to the terms before?"},
    {.id = "dw_without_t",
     .change = DW_WITHOUT_T,
     .says = "dw[h] is the sum of ds[i][j].",
     .asks = "By what is w[h] multiplied in s[i][j]?"},
    {.id = "dw_with_w",
     .change = DW_TIMES_W,
     .says = "dw[h] is the sum of ds[i][j] w[h] tanh(q[i][h] + k[j][h]).",
     .asks = "If w[h] grows by 1, by how much does s[i][j] grow?"},
    {.id = "t_of_product",
     .change = U_PRODUCT,
     .says = "t = tanh(q[i][h] k[j][h]), a product in place of a sum.",
     .asks = "Of which number does forward take the tanh?"},
    {.id = "t_of_difference",
     .change = U_DIFFERENCE,
     .says = "t = tanh(q[i][h] - k[j][h]).",
     .asks = "Of which number does forward take the tanh?"},
    {.id = "t_without_tanh",
     .change = T_IS_U,
     .says = "t = q[i][h] + k[j][h], without the tanh, and 1 - t^2 is made of it.",
     .asks = "What does forward do to q[i][h] + k[j][h] before w[h] multiplies it?"},
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
                                    .changed = additive_change,
                                    .stages = &stages_additive,
                                    .where = "tensor/more/more_plain.inc, additive_dx",
                                    .lesson = 6,
                                    .step = "b5.0",
                                    .lesson_switch = "additive"};
