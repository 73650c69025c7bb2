/* attention_mistakes.c - see attention_mistakes.h. One backward, a query at a time, and in each of
 * its steps the changes that a mistake makes there. */
#include "attention_mistakes.h"

#include <math.h>
#include <stdlib.h>

enum {
    NOTHING,
    NO_SCALE,
    SCALE_TWICE,
    DV_ONLY,
    S_NO_SCALE,
    S_OVERWRITTEN,
    P_NOT_DIVIDED,
    P_NOT_DIVIDED_MAX,
    P_SUM_OVERWRITTEN,
    P_SUM_GROWS,
    P_SUM_LEFT_OVER,
    P_SUM_LEFT_OVER_MAX,
    DP_OVERWRITTEN,
    DP_USES_K,
    DS_IS_DP,
    DS_NEGATED,
    SUM_OVERWRITTEN,
    SUM_GROWS,
    SUM_LEFT_OVER,
    DQ_OVERWRITTEN,
    DK_OVERWRITTEN,
    DV_OVERWRITTEN,
    DQ_NO_SCALE,
    DK_NO_SCALE,
    DQ_USES_V,
    DV_WITHOUT_P,
    DV_USES_DS,
    SOFTMAX /* and its number in the list of exercise 4 */
};

/* The step from dp to ds is exercise 4's. */
extern const Exercise exercise_softmax;
static Function *softmax_mistake(int change) {
    return change >= SOFTMAX ? exercise_softmax.mistakes[change - SOFTMAX].backward : NULL;
}

/* The numbers of a query; and the sums that a mistake carries to the next one. */
typedef struct {
    double *s, *p, *dp, *ds;
    double left_z, left_sum;
} Row;

static void find_scores(int change, int K, int D, Row *row, const double q[D],
                        const double k[K][D]) {
    for (int j = 0; j < K; j++) {
        row->s[j] = 0;
        for (int c = 0; c < D; c++) {
            if (change == S_OVERWRITTEN) row->s[j] = 0;
            row->s[j] += q[c] * k[j][c];
        }
        if (change != S_NO_SCALE) row->s[j] /= sqrt(D);
    }
}

static void find_weights(int change, int K, Row *row) {
    const bool without_max = change == P_NOT_DIVIDED || change == P_SUM_LEFT_OVER;
    const bool carries = change == P_SUM_LEFT_OVER || change == P_SUM_LEFT_OVER_MAX;
    double max = -HUGE_VAL, z = carries ? row->left_z : 0;
    for (int j = 0; j < K; j++) max = fmax(max, row->s[j]);
    for (int j = 0; j < K; j++) {
        row->p[j] = exp(row->s[j] - (without_max ? 0 : max));
        if (change == P_SUM_OVERWRITTEN) z = 0;
        z += row->p[j];
        if (change == P_SUM_GROWS) row->p[j] /= z;
    }
    row->left_z = z;
    if (change == P_NOT_DIVIDED || change == P_NOT_DIVIDED_MAX || change == P_SUM_GROWS) return;
    for (int j = 0; j < K; j++) row->p[j] /= z;
}

static void find_ds(int change, int K, int D, Row *row, const double k[K][D], const double v[K][D],
                    const double dy[D]) {
    double sum = change == SUM_LEFT_OVER ? row->left_sum : 0;
    for (int j = 0; j < K; j++) {
        row->dp[j] = 0;
        for (int c = 0; c < D; c++) {
            if (change == DP_OVERWRITTEN) row->dp[j] = 0;
            row->dp[j] += dy[c] * (change == DP_USES_K ? k[j][c] : v[j][c]);
        }
        if (change == SUM_OVERWRITTEN) sum = 0;
        sum += row->p[j] * row->dp[j];
        row->ds[j] = row->p[j] * (row->dp[j] - sum);
    }
    row->left_sum = sum;
    for (int j = 0; j < K && change != SUM_GROWS; j++) row->ds[j] = row->p[j] * (row->dp[j] - sum);
    for (int j = 0; j < K; j++) {
        if (change == DS_IS_DP) row->ds[j] = row->dp[j];
        if (change == DS_NEGATED) row->ds[j] = -row->ds[j];
    }
    Function *f = softmax_mistake(change);
    if (f)
        ((void (*)(int, double *, const double *, const double *))f)(K, row->ds, row->p, row->dp);
}

static void add(bool overwrites, double *sum, double term) {
    *sum = overwrites ? term : *sum + term;
}

static double scale_of(int change, int D) {
    if (change == DV_ONLY) return 0;
    if (change == NO_SCALE) return 1;
    return change == SCALE_TWICE ? 1.0 / D : 1 / sqrt(D);
}

static double weight_of(int change, double p, double ds) {
    if (change == DV_WITHOUT_P) return 1;
    return change == DV_USES_DS ? ds : p;
}

static void add_to_gradients(int change, int K, int D, const Row *row, double dq[D],
                             double dk[K][D], double dv[K][D], const double q[D],
                             const double k[K][D], const double v[K][D], const double dy[D]) {
    const double scale = scale_of(change, D);
    const double of_dq = change == DQ_NO_SCALE ? 1 : scale;
    const double of_dk = change == DK_NO_SCALE ? 1 : scale;
    for (int j = 0; j < K; j++) {
        const double weight = weight_of(change, row->p[j], row->ds[j]);
        for (int c = 0; c < D; c++) {
            const double other = change == DQ_USES_V ? v[j][c] : k[j][c];
            add(change == DQ_OVERWRITTEN, &dq[c], row->ds[j] * other * of_dq);
            add(change == DK_OVERWRITTEN, &dk[j][c], row->ds[j] * q[c] * of_dk);
            add(change == DV_OVERWRITTEN, &dv[j][c], weight * dy[c]);
        }
    }
}

void attention_changed(int change, int Q, int K, int D, double dq[Q][D], double dk[K][D],
                       double dv[K][D], double *y, const double q[Q][D], const double k[K][D],
                       const double v[K][D], const double dy[Q][D]) {
    double *room = calloc((size_t)K * 4, sizeof *room);
    Row row = {room, room + K, room + 2 * K, room + 3 * K, 0, 0};
    for (int i = 0; i < Q && room; i++) {
        find_scores(change, K, D, &row, q[i], k);
        find_weights(change, K, &row);
        find_ds(change, K, D, &row, k, v, dy[i]);
        add_to_gradients(change, K, D, &row, dq[i], dk, dv, q[i], k, v, dy[i]);
        for (int j = 0; y && j < K; j++)
            for (int c = 0; c < D; c++) y[i * D + c] += row.p[j] * v[j][c];
    }
    free(room);
}

/* Those without words have them in ../common/mistakes.def, the steps of a softmax as exercise 4's.
 */
const KnownMistake attention_mistakes_shared[] = {
    {.id = "no_scale", .change = NO_SCALE},
    {.id = "scale_twice", .change = SCALE_TWICE},
    {.id = "dv_only", .change = DV_ONLY},
    {.id = "softmax_no_sum", .change = SOFTMAX},
    {.id = "softmax_plain_sum", .change = SOFTMAX + 1},
    {.id = "softmax_mean_of_dy", .change = SOFTMAX + 2},
    {.id = "softmax_y_squared", .change = SOFTMAX + 3},
    {.id = "softmax_sum_not_weighted_by_y_outside", .change = SOFTMAX + 4},
    {.id = "softmax_sign", .change = SOFTMAX + 5},
    {.id = "s_no_scale",
     .change = S_NO_SCALE,
     .says = "s = q k', without 1 / sqrt(D); p and all that follows are made of it.",
     .asks = "What does forward do to q k' before exp?"},
    {.id = "s_overwritten",
     .change = S_OVERWRITTEN,
     .says = "s[i][j] is the last product of q[i] and k[j] alone, divided by sqrt(D).",
     .asks = "What does = do to the products before?"},
    {.id = "p_not_divided",
     .change = P_NOT_DIVIDED,
     .says = "p = exp(s), which is not divided by the sum of its row.",
     .asks = "What is the sum of the weights of a query?"},
    {.id = "p_not_divided",
     .change = P_NOT_DIVIDED_MAX,
     .says = "p = exp(s - max), which is not divided by the sum of its row.",
     .asks = "What is the sum of the weights of a query?"},
    {.id = "p_sum_overwritten",
     .change = P_SUM_OVERWRITTEN,
     .says = "p = exp(s) divided by the exp of the last key alone.",
     .asks = "What does = do to the exps of the keys before?"},
    {.id = "p_sum_grows",
     .change = P_SUM_GROWS,
     .says = "p[i][j] = exp(s[i][j]) divided by the sum of the keys up to j.",
     .asks = "When is the sum of the row complete, and when is it used?"},
    {.id = "p_sum_left_over",
     .change = P_SUM_LEFT_OVER,
     .says = "p = exp(s) divided by a sum that also has the exps of the queries before.",
     .asks = "What is in the sum when the next query begins?"},
    {.id = "p_sum_left_over",
     .change = P_SUM_LEFT_OVER_MAX,
     .says = "p = exp(s - max) divided by a sum that also has the exps of the queries before.",
     .asks = "What is in the sum when the next query begins?"},
    {.id = "dp_overwritten",
     .change = DP_OVERWRITTEN,
     .says = "dp[i][j] is the last product of dy[i] and v[j] alone.",
     .asks = "What does = do to the products before?"},
    {.id = "dp_uses_k",
     .change = DP_USES_K,
     .says = "dp = dy k', and ds is made of it.",
     .asks = "With which vector does the weight p[i][j] meet in y[i]?"},
    {.id = "ds_is_dp",
     .change = DS_IS_DP,
     .says = "ds = dp: the softmax between s and p is left out.",
     .asks = "If dL/dp is known, what is still between p and s?"},
    {.id = "ds_negated",
     .change = DS_NEGATED,
     .says = "ds = p (S - dp), where S is the sum of p dp: minus the right one.",
     .asks = "If dp[i][j] is larger than the mean S, should a larger s[i][j] make L larger?"},
    {.id = "sum_overwritten",
     .change = SUM_OVERWRITTEN,
     .says = "ds = p (dp - S), where S is p dp of the last key alone.",
     .asks = "What does = do to the terms of the keys before?"},
    {.id = "sum_grows",
     .change = SUM_GROWS,
     .says = "ds[i][j] = p (dp - S), where S is the sum of p dp of the keys up to j.",
     .asks = "When is the sum of the row complete, and when is it used?"},
    {.id = "sum_left_over",
     .change = SUM_LEFT_OVER,
     .says = "ds = p (dp - S), where S also has p dp of the queries before.",
     .asks = "What is in the sum when the next query begins?"},
    {.id = "dq_overwritten",
     .change = DQ_OVERWRITTEN,
     .says = "dq[i] is ds[i][j] k[j] / sqrt(D) of the last key j alone.",
     .asks = "Query i has a score with every key. What does = do to the terms of the keys before?"},
    {.id = "dk_overwritten",
     .change = DK_OVERWRITTEN,
     .says = "dk[j] is ds[i][j] q[i] / sqrt(D) of the last query i alone.",
     .asks = "Every query has a score with key j. What does = do to the terms of the queries "
             "before?"},
    {.id = "dv_overwritten",
     .change = DV_OVERWRITTEN,
     .says = "dv[j] is p[i][j] dy[i] of the last query i alone.",
     .asks =
         "Every query takes a part of v[j]. What does = do to the terms of the queries before?"},
    {.id = "dq_no_scale",
     .change = DQ_NO_SCALE,
     .says = "dq = ds k, without 1 / sqrt(D); dk has it.",
     .asks = "What stands in forward between q k' and the softmax?"},
    {.id = "dk_no_scale",
     .change = DK_NO_SCALE,
     .says = "dk = ds' q, without 1 / sqrt(D); dq has it.",
     .asks = "What stands in forward between q k' and the softmax?"},
    {.id = "dq_uses_v",
     .change = DQ_USES_V,
     .says = "dq = ds v / sqrt(D).",
     .asks = "By which vector is q[i] multiplied in the score of query i and key j?"},
    {.id = "dv_without_p",
     .change = DV_WITHOUT_P,
     .says = "dv[j] is the sum of dy[i] over all queries i.",
     .asks = "Which part of v[j] does query i take?"},
    {.id = "dv_uses_ds",
     .change = DV_USES_DS,
     .says = "dv = ds' dy.",
     .asks = "By what is v[j] multiplied in y[i]: by the weight, or by a gradient?"},
    {0}};
