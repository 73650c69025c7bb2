/* attention_exercises.c - 11 attention and 14 flash: their inputs, their right results and their
 * mistakes. Both are the same function; 14 limits its memory. */
#include "attention_mistakes.h"
#include "calls.h"
#include "numbers.h"
#include "stages.h"
#include "truth.h"

#include "../students/11_attention.h"
#include "../students/14_flash.h"

#include <math.h>

/* ---- y = softmax(q k' / sqrt(D)) v ------------------------------------------------------------
 */

#define ATTENTION                                                                                  \
    int Q, int K, int D, double dq[Q][D], double dk[K][D], double dv[K][D], const double q[Q][D],  \
        const double k[K][D], const double v[K][D], const double dy[Q][D]

/* p[j] = softmax over the keys of q[i] . k[j] / sqrt(D), the weights of one query. */
static void weights_of(int K, int D, double p[K], const double q[D], const double k[K][D]) {
    for (int j = 0; j < K; j++) {
        p[j] = 0;
        for (int d = 0; d < D; d++) p[j] += q[d] * k[j][d];
    }
    softmax_of(K, p, 1 / sqrt(D), NULL);
}

/* ds = p (dp - sum of p dp), dp = v dy: the gradient of the scaled scores of one query. */
static void scores_backward(int K, int D, double ds[K], const double p[K], const double v[K][D],
                            const double dy[D]) {
    double sum = 0;
    for (int j = 0; j < K; j++) {
        ds[j] = 0;
        for (int d = 0; d < D; d++) ds[j] += dy[d] * v[j][d];
        sum += p[j] * ds[j];
    }
    for (int j = 0; j < K; j++) ds[j] = p[j] * (ds[j] - sum);
}

/* These three index an array of queries by a key, so Q must be K. */
static void right_but_for(int n, int columns, double cleared[n][columns], ATTENTION) {
    attention_changed(0, Q, K, D, dq, dk, dv, NULL, q, k, v, dy);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < columns; d++) cleared[i][d] = 0;
}
static void attention_dv_untransposed(ATTENTION) {
    double p[K];
    right_but_for(K, D, dv, Q, K, D, dq, dk, dv, q, k, v, dy);
    for (int j = 0; j < K; j++) {
        weights_of(K, D, p, q[j], k);
        for (int i = 0; i < K; i++)
            for (int d = 0; d < D; d++) dv[j][d] += p[i] * dy[i][d];
    }
}
static void attention_dq_uses_q(ATTENTION) {
    double p[K], ds[K];
    right_but_for(Q, D, dq, Q, K, D, dq, dk, dv, q, k, v, dy);
    for (int i = 0; i < Q; i++) {
        weights_of(K, D, p, q[i], k);
        scores_backward(K, D, ds, p, v, dy[i]);
        for (int j = 0; j < K; j++)
            for (int d = 0; d < D; d++) dq[i][d] += ds[j] * q[j][d] / sqrt(D);
    }
}
static void attention_dk_untransposed(ATTENTION) {
    double p[K], ds[K];
    right_but_for(K, D, dk, Q, K, D, dq, dk, dv, q, k, v, dy);
    for (int j = 0; j < K; j++) {
        weights_of(K, D, p, q[j], k);
        scores_backward(K, D, ds, p, v, dy[j]);
        for (int i = 0; i < K; i++)
            for (int d = 0; d < D; d++) dk[j][d] += ds[i] * q[i][d] / sqrt(D);
    }
}

static bool q_is_k(const Call *c) { return c->size[0] == c->size[1]; }

static const KnownMistake attention_mistakes[] = {
    {"dv_untransposed", .backward = (Function *)attention_dv_untransposed, .counts = q_is_k},
    {"dq_uses_q", .backward = (Function *)attention_dq_uses_q, .counts = q_is_k},
    {"dk_untransposed", .backward = (Function *)attention_dk_untransposed, .counts = q_is_k},
    {0}};

static void attention_call(Function *f, const Call *c) {
    ((__typeof__(attention_backward) *)f)(c->size[0], c->size[1], c->size[2], c->array[0],
                                          c->array[1], c->array[2], c->array[3], c->array[4],
                                          c->array[5], c->array[6]);
}

static void attention_change(const Call *c, int change) {
    const int D = c->size[2];
    double(*dq)[D] = c->array[0];
    double(*dk)[D] = c->array[1];
    double(*dv)[D] = c->array[2];
    const double(*q)[D] = c->array[3];
    const double(*k)[D] = c->array[4];
    const double(*v)[D] = c->array[5];
    const double(*dy)[D] = c->array[6];
    attention_changed(change, c->size[0], c->size[1], D, dq, dk, dv, NULL, q, k, v, dy);
}

static void attention_right(const Call *c) {
    const int64_t Q = c->size[0], K = c->size[1], D = c->size[2];
    truth_begin();
    Tensor *q = truth_leaf(c->array[3], SHAPE(1, Q, D));
    Tensor *k = truth_leaf(c->array[4], SHAPE(1, K, D));
    Tensor *v = truth_leaf(c->array[5], SHAPE(1, K, D));
    Tensor *score = ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), 1 / sqrt((double)D));
    truth_backward(ag_bmm(ag_softmax(score, 2), v), c->array[6]);
    truth_store(c->array[0], q);
    truth_store(c->array[1], k);
    truth_store(c->array[2], v);
    truth_end();
}

enum { UNLIKE_VALUES = 1, GEOMETRIC, DOUBLED_Q = AGAIN };

/* Query 0 has geometric weights, query 1 their square roots, and so on: the last ones are almost
 * equal. */
static void make_geometric(const Call *c) {
    const int D = c->size[2];
    double *q = c->array[3];
    double *k = c->array[4];
    for (int i = 0; i < c->size[0]; i++)
        for (int d = 0; d < D; d++) q[i * D + d] = d == 0 ? pow(0.5, i) : 0;
    for (int j = 0; j < c->size[1]; j++) k[j * D] = log(geometric_weight(j)) * sqrt(D);
}

/* Numbers of several sizes in v; the scores stay where exp is finite. */
static void attention_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *q = c->array[3];
    double *v = c->array[5];
    const int64_t n = (int64_t)c->size[1] * c->size[2];
    for (int64_t i = 0; sizes->variant == UNLIKE_VALUES && i < n; i++)
        v[i] = random_number(random, 0);
    for (int64_t i = 0; sizes->variant == DOUBLED_Q && i < (int64_t)c->size[0] * c->size[2]; i++)
        q[i] *= 2;
    c->tiny = sizes->variant == GEOMETRIC;
    if (c->tiny) make_geometric(c);
}

/* Two are for the stages: what changes if q alone does? */
static const Sizes attention_inputs[] = {{{3, 3, 2}, 1, 0},
                                         {{3, 3, 3}, 1, 0},
                                         {{2, 2, 4}, 2, UNLIKE_VALUES},
                                         {{2, 3, 2}, 1, 0},
                                         {{3, 2, 3}, 1, 0},
                                         {{4, 2, 2}, 2, UNLIKE_VALUES},
                                         {{1, 4, 3}, 1, 0},
                                         {{3, 1, 2}, 1, 0},
                                         {{2, 3, 1}, 1, 0},
                                         {{1, 1, 1}, 1, 0},
                                         {{2, 5, 2}, 3, UNLIKE_VALUES},
                                         {{2, 3, 5}, 1, 0},
                                         {{2, 3, 5}, 1, DOUBLED_Q},
                                         {{3, 9, 2}, 1, GEOMETRIC},
                                         {{2, 4, 3}, TINY, 0},
                                         {{0}, 0, 0}};
static const Sizes attention_large[] = {
    {{LARGE, 17, 2}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

#define ATTENTION_PARAMETERS                                                                       \
    {                                                                                              \
        {"Q", SIZE, 0, 0}, {"K", SIZE, 0, 0}, {"D", SIZE, 0, 0}, {"dq", OUTPUT, "Q", "D"},         \
            {"dk", OUTPUT, "K", "D"}, {"dv", OUTPUT, "K", "D"}, {"q", INPUT, "Q", "D"},            \
            {"k", INPUT, "K", "D"}, {"v", INPUT, "K", "D"}, {"dy", INPUT, "Q", "D"},               \
    }

const Exercise exercise_attention = {
    .number = 11,
    .name = "attention",
    .function = "attention_backward",
    .parameter = ATTENTION_PARAMETERS,
    .dy = "dy",
    .inputs = attention_inputs,
    .large = attention_large,
    .prepare = attention_prepare,
    .call = attention_call,
    .right = attention_right,
    .mistakes = attention_mistakes,
    .shared = attention_mistakes_shared,
    .changed = attention_change,
    .stages = &stages_attention,
    .where = "autograd/ops/linear.c, product_backward, and tensor/kernels/plain.inc, "
             "masked_softmax_dx",
    .lesson = 2,
    .step = "s"};

/* ---- the same without the Q x K weights in memory ----------------------------------------------
 */

/* In the first two the function's memory is measured. A Q x K array is three times the limit in the
 * one, a Q x D array four times in the other; and K is small, so that a function that computes a
 * weight anew whenever it needs one still ends. */
static const Sizes flash_large[] = {{{1800, 20, 2}, 1, 0},  {{40, 6, 300}, 0.1, 0},
                                    {{LARGE, 17, 2}, 1, 0}, {{3, LARGE, 2}, 1, 0},
                                    {{2, 3, LARGE}, 1, 0},  {{0}, 0, 0}};

const Exercise exercise_flash = {.number = 14,
                                 .name = "flash",
                                 .function = "flash_backward",
                                 .parameter = ATTENTION_PARAMETERS,
                                 .dy = "dy",
                                 .inputs = attention_inputs,
                                 .large = flash_large,
                                 .prepare = attention_prepare,
                                 .call = attention_call,
                                 .right = attention_right,
                                 .mistakes = attention_mistakes,
                                 .shared = attention_mistakes_shared,
                                 .changed = attention_change,
                                 .stages = &stages_attention,
                                 .where = "tensor/more/more_plain.inc, attention_dx",
                                 .lesson = 2,
                                 .step = "s",
                                 .limited = true};
