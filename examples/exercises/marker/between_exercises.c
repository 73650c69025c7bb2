/* between_exercises.c - 7b mean and variance, 10b weighted mean, each a step to the exercise after
 * it: their inputs, their right results and their mistakes. */
#include "calls.h"
#include "numbers.h"
#include "truth.h"

#include "prototypes.h"

#include <math.h>

/* ---- 7b mean and variance: y[i][0] = mean, y[i][1] = sum of (x - mean)^2 / n --------------------
 */

#define MEAN_VARIANCE                                                                              \
    int rows, int n, double dx[rows][n], const double x[rows][n], const double dy[rows][2]

/* dx = dy[0] a + dy[1] b (x - mean), in which a mistake changes a, b or the mean. */
static void moments_with(double a, double b, bool centered, MEAN_VARIANCE) {
    for (int i = 0; i < rows; i++) {
        double mean = 0;
        for (int j = 0; j < n; j++) mean += x[i][j] / n;
        for (int j = 0; j < n; j++)
            dx[i][j] = dy[i][0] * a + dy[i][1] * b * (x[i][j] - (centered ? mean : 0));
    }
}
#define MOMENTS(name, a, b, centered)                                                              \
    static void moments_##name(MEAN_VARIANCE) { moments_with(a, b, centered, rows, n, dx, x, dy); }
MOMENTS(mean_without_n, 1, 2. / n, true)
MOMENTS(variance_without_n, 1. / n, 2, true)
MOMENTS(no_two, 1. / n, 1. / n, true)
MOMENTS(not_centered, 1. / n, 2. / n, false)
MOMENTS(mean_only, 1. / n, 0, true)
MOMENTS(variance_only, 0, 2. / n, true)
MOMENTS(n_minus_1, 1. / n, 2. / (n - 1), true)
MOMENTS(own_square, 1. / n, 2. / n * (1 - 1. / n), true)
static bool moments_has_two(const Call *c) { return c->size[1] > 1; }

static const KnownMistake moments_mistakes[] = {
    {"mean_without_n", (Function *)moments_mean_without_n,
     "dx[i][j] has the term dy[i][0], without 1 / n.",
     "If x[i][j] grows by 1, by how much does the mean of n numbers grow?", NULL},
    {"variance_without_n", (Function *)moments_variance_without_n,
     "dx[i][j] has the term 2 dy[i][1] (x[i][j] - mean), without 1 / n.",
     "By what does forward divide the sum of squares?", NULL},
    {"no_two", (Function *)moments_no_two,
     "dx[i][j] has the term dy[i][1] (x[i][j] - mean) / n, without a 2.",
     "What is the derivative of a square?", NULL},
    {"not_centered", (Function *)moments_not_centered,
     "dx[i][j] has the term 2 dy[i][1] x[i][j] / n, without the mean.",
     "Of which number is the square in the variance?", NULL},
    {"mean_only", (Function *)moments_mean_only, "dx = dy[i][0] / n. dy[i][1] is not used.",
     "If the largest x of a row grows, does the variance stay?", NULL},
    {"variance_only", (Function *)moments_variance_only,
     "dx = 2 dy[i][1] (x[i][j] - mean) / n. dy[i][0] is not used.",
     "If x[i][j] grows, does the mean stay?", NULL},
    {"biased_n_minus_1", (Function *)moments_n_minus_1,
     "dx[i][j] has the term 2 dy[i][1] (x[i][j] - mean) / (n - 1).",
     "By what does forward divide the sum of squares?", moments_has_two},
    {"own_square_only", (Function *)moments_own_square,
     "dx[i][j] has the derivative of the square of x[i][j] alone: 2 (x[i][j] - mean) (1 - 1 / n) / "
     "n times dy[i][1].",
     "x[i][j] changes the mean, and the mean is in every square. What is the sum of these terms?",
     NULL},
    {0}};

static void moments_call(Function *f, const Call *c) {
    ((__typeof__(mean_variance_backward) *)f)(c->size[0], c->size[1], c->array[0], c->array[1],
                                              c->array[2]);
}

static void moments_right(const Call *c) {
    truth_begin();
    Tensor *x = truth_leaf(c->array[1], SHAPE(c->size[0], c->size[1]));
    Tensor *mean = ag_mean_dims(x, AXES(1), true);
    Tensor *var = ag_mean_dims(ag_square(ag_sub(x, mean)), AXES(1), true);
    truth_backward(ag_cat((Tensor *[]){mean, var}, 2, 1), c->array[2]);
    truth_store(c->array[0], x);
    truth_end();
}

/* Variant 1: rows from 30 to 1e-3. */
static void moments_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *x = c->array[1];
    const int n = c->size[1];
    for (int i = 0; sizes->variant == 1 && i < c->size[0]; i++)
        for (int j = 0; j < n; j++) x[i * n + j] *= 30 * pow(10, -1.5 * i);
}

static const Sizes moments_inputs[] = {{{3, 4}, 1, 0}, {{2, 3}, 1, 0},    {{3, 3}, 1, 0},
                                       {{1, 5}, 1, 0}, {{2, 1}, 1, 0},    {{2, 2}, 1, 0},
                                       {{2, 5}, 0, 0}, {{1, 1}, 1, 0},    {{4, 5}, 1, 1},
                                       {{3, 2}, 9, 0}, {{3, 4}, TINY, 0}, {{0}, 0, 0}};
static const Sizes moments_large[] = {{{LARGE, 5}, 1, 0}, {{3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_mean_variance = {
    .number = 7,
    .letter = "b",
    .name = "mean_variance",
    .function = "mean_variance_backward",
    .parameter = {{"rows", SIZE, 0, 0},
                  {"n", SIZE, 0, 0},
                  {"dx", OUTPUT, "rows", "n"},
                  {"x", INPUT, "rows", "n"},
                  {"dy", INPUT, "rows", "2"}},
    .dy = "dy",
    .inputs = moments_inputs,
    .large = moments_large,
    .prepare = moments_prepare,
    .call = moments_call,
    .right = moments_right,
    .mistakes = moments_mistakes,
    .where = "tensor/more/more_plain.inc, variance_dx, with n - 1",
    .lesson = 2,
    .step = "b3.0",
    .lesson_note = "a softmax: there, too, each number of a row changes what all share"};

/* ---- 10b weighted mean: p = softmax(x), y = p v -------------------------------------------------
 */

#define WEIGHTED_MEAN                                                                              \
    int K, int D, double dx[K], double dv[K][D], const double x[K], const double v[K][D],          \
        const double dy[D]

/* dv = p dy' and dx = p (v dy - share), where share is subtracted from every dp. */
typedef enum { SUM_OF_P_DP, NOTHING, SUM_OF_DP, MEAN_OF_DP } Share;
static void weighted_with(Share share, const double *weights, WEIGHTED_MEAN) {
    double p[K], dp[K], sum = 0;
    for (int j = 0; j < K; j++) p[j] = weights ? weights[j] : x[j];
    if (!weights) softmax_of(K, p, 1, NULL);
    for (int j = 0; j < K; j++) {
        dp[j] = 0;
        for (int d = 0; d < D; d++) {
            dp[j] += dy[d] * v[j][d];
            dv[j][d] = p[j] * dy[d];
        }
        if (share == SUM_OF_P_DP) sum += p[j] * dp[j];
        else if (share != NOTHING) sum += dp[j];
    }
    for (int j = 0; j < K; j++) dx[j] = p[j] * (dp[j] - (share == MEAN_OF_DP ? sum / K : sum));
}
#define WEIGHTED(name, share, weights)                                                             \
    static void weighted_##name(WEIGHTED_MEAN) {                                                   \
        weighted_with(share, weights, K, D, dx, dv, x, v, dy);                                     \
    }
WEIGHTED(no_sum, NOTHING, NULL)
WEIGHTED(plain_sum, SUM_OF_DP, NULL)
WEIGHTED(mean_of_dp, MEAN_OF_DP, NULL)
WEIGHTED(x_for_p, SUM_OF_P_DP, x)
static void weighted_no_softmax(WEIGHTED_MEAN) {
    weighted_with(SUM_OF_P_DP, NULL, K, D, dx, dv, x, v, dy);
    for (int j = 0; j < K; j++) {
        dx[j] = 0;
        for (int d = 0; d < D; d++) dx[j] += dy[d] * v[j][d];
    }
}
static void weighted_not_divided(WEIGHTED_MEAN) {
    double weight[K], max = x[0];
    for (int j = 1; j < K; j++) max = fmax(max, x[j]);
    for (int j = 0; j < K; j++) weight[j] = exp(x[j] - max);
    weighted_with(SUM_OF_P_DP, weight, K, D, dx, dv, x, v, dy);
}
static void weighted_dv_unweighted(WEIGHTED_MEAN) {
    weighted_with(SUM_OF_P_DP, NULL, K, D, dx, dv, x, v, dy);
    for (int j = 0; j < K; j++)
        for (int d = 0; d < D; d++) dv[j][d] = dy[d];
}

static const KnownMistake weighted_mistakes[] = {
    {"no_sum", (Function *)weighted_no_sum, "dx[j] = p[j] dp[j].",
     "If one score grows, what happens to the other weights?", NULL},
    {"plain_sum", (Function *)weighted_plain_sum,
     "dx[j] = p[j] (dp[j] - S), where S is the sum of dp alone.",
     "By how much does p[i] change with x[j]: does it depend on how large p[i] is?", NULL},
    {"mean_of_dp", (Function *)weighted_mean_of_dp,
     "dx[j] = p[j] (dp[j] - M), where M is the mean of dp.",
     "In a mean every element has the weight 1 / K. Which weights have the elements here?", NULL},
    {"softmax_missing", (Function *)weighted_no_softmax,
     "dx = dp, the gradient of the weights in place of that of the scores.",
     "Which op stands between x and p, and what is its backward?", NULL},
    {"x_for_p", (Function *)weighted_x_for_p, "x is used where the weights p = softmax(x) belong.",
     "Backward gets x. By what does forward multiply v[j]?", NULL},
    {"not_divided", (Function *)weighted_not_divided,
     "The weights are exp(x - max), without the division by their sum.",
     "What is the sum of all weights, in forward and in your code?", NULL},
    {"dv_unweighted", (Function *)weighted_dv_unweighted, "dv[j] = dy for every j.",
     "Which part of v[j] is in y?", NULL},
    {0}};

static void weighted_call(Function *f, const Call *c) {
    ((__typeof__(weighted_mean_backward) *)f)(c->size[0], c->size[1], c->array[0], c->array[1],
                                              c->array[2], c->array[3], c->array[4]);
}

static void weighted_right(const Call *c) {
    const int64_t K = c->size[0], D = c->size[1];
    truth_begin();
    Tensor *x = truth_leaf(c->array[2], SHAPE(1, K));
    Tensor *v = truth_leaf(c->array[3], SHAPE(K, D));
    truth_backward(ag_matmul(ag_softmax(x, 1), v), c->array[4]);
    truth_store(c->array[0], x);
    truth_store(c->array[1], v);
    truth_end();
}

/* Variant 1: geometric weights. */
static void weighted_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *x = c->array[2];
    if (sizes->variant != 1) return;
    c->tiny = true;
    for (int j = 0; j < c->size[0]; j++) x[j] = log(geometric_weight(j));
}

static const Sizes weighted_inputs[] = {{{3, 3}, 1, 0},    {{3, 2}, 1, 0}, {{2, 4}, 2, 0},
                                        {{4, 2}, 3, 0},    {{1, 3}, 1, 0}, {{5, 1}, 1, 0},
                                        {{1, 1}, 1, 0},    {{2, 3}, 0, 0}, {{9, 2}, 1, 1},
                                        {{4, 3}, TINY, 0}, {{0}, 0, 0}};
static const Sizes weighted_large[] = {{{LARGE, 17}, 1, 0}, {{3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_weighted_mean = {
    .number = 10,
    .letter = "b",
    .name = "weighted_mean",
    .function = "weighted_mean_backward",
    .parameter = {{"K", SIZE, 0, 0},
                  {"D", SIZE, 0, 0},
                  {"dx", OUTPUT, 0, "K"},
                  {"dv", OUTPUT, "K", "D"},
                  {"x", INPUT, 0, "K"},
                  {"v", INPUT, "K", "D"},
                  {"dy", INPUT, 0, "D"}},
    .dy = "dy",
    .inputs = weighted_inputs,
    .large = weighted_large,
    .prepare = weighted_prepare,
    .call = weighted_call,
    .right = weighted_right,
    .mistakes = weighted_mistakes,
    .where = "autograd/ops/linear.c, product_backward, and tensor/kernels/plain.inc, softmax_dx",
    .lesson = 2,
    .step = "b3.0",
    .lesson_note = "the softmax; the product is step b4.0"};
