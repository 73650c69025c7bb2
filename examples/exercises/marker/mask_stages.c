/* mask_stages.c - the stages of 5 masked softmax and 6 dropout: see stages.h. Where all elements
 * are kept the mask changes nothing: there dx is a y dy - b y, and a and b show which stage it is.
 */
#include "stages.h"

#include <math.h>

/* ---- 5 masked softmax ---------------------------------------------------------------------------
 */

enum { KEEP, MASKED_DX, Y, MASKED_DY };

static double sum_over_kept(const Call *call) {
    const bool *keep = call->array[KEEP];
    const double *y = call->array[Y];
    const double *dy = call->array[MASKED_DY];
    double sum = 0;
    for (int i = 0; i < call->size[0]; i++)
        if (keep[i]) sum += y[i] * dy[i];
    return sum;
}

static void masked_values(const Exercise *e, const Call *call, Matrix *value) {
    value[0] = matrix_zeros(1, 1);
    value[0].x[0][0] = sum_over_kept(call);
}

static bool keeps_all(const Call *call) {
    const bool *keep = call->array[0];
    for (int i = 0; i < call->size[0]; i++)
        if (!keep[i]) return false;
    return true;
}

/* dx = a y dy - b y? */
static bool fit_sum(const Call *call, const Matrix *dx, double *a, double *b) {
    const double *y = call->array[Y];
    const double *dy = call->array[MASKED_DY];
    Matrix basis = matrix_zeros(2, dx->columns);
    for (int i = 0; i < dx->columns; i++) {
        basis.x[0][i] = y[i] * dy[i];
        basis.x[1][i] = -y[i];
    }
    const Matrix solution = matrix_over(dx, &basis), again = matrix_times(&solution, &basis);
    *a = solution.x[0][0];
    *b = solution.x[0][1];
    return dx->columns > 2 && matrix_same(dx, &again, 1e-7);
}

static bool is_zero(const Matrix *a) {
    const Matrix zero = matrix_zeros(a->rows, a->columns);
    return matrix_same(a, &zero, 0);
}

static void find_of_kept(const Evidence *evidence, int call, Finding *f) {
    const Call *c = &evidence->right->call[call];
    const double s = c->number[0];
    const Matrix mine = stages_mine(evidence, call, MASKED_DX);
    const Matrix right = stages_right(evidence, call, MASKED_DX);
    const double factor = matrix_factor(&mine, &right, 1e-7);
    double a, b;
    if (is_zero(&mine)) {
        stages_show(f, call, "mask", NULL, NULL);
        stages_prove(f, "dx is 0 everywhere, where keep is true everywhere.");
        f->asks = "Which elements of y are 0: those with keep true or false?";
    } else if (!isnan(factor)) {
        stages_show(f, call, "scale", "sum", NULL);
        stages_prove(f,
                     "Where keep is true everywhere, dx is %.6g times what it should be, with s "
                     "= %.6g.",
                     factor, s);
        f->asks = "If x[i] grows by 1, by how much does the score s x[i] grow?";
    } else if (fit_sum(c, &mine, &a, &b) && fabs(a - s) < 1e-7) {
        stages_show(f, call, "sum", NULL, NULL);
        f->seen = true;
        f->mine = matrix_zeros(1, 1);
        f->mine.x[0][0] = b / s;
        stages_prove(f, "dx is s y (dy - S) of another number S.");
        f->asks = "If x[i] grows, by how much does each of the kept y[j] shrink?";
    } else {
        stages_show(f, call, "dx", NULL, NULL);
        stages_prove(f, "dx is not made of s y dy and y.");
        f->asks = "By which numbers is dy[i] multiplied, and by which the sum?";
    }
}

static bool is_right(const Evidence *evidence, int call, int array) {
    const Matrix mine = stages_mine(evidence, call, array);
    for (int j = 0; evidence->e->is_zero && j < mine.columns; j++)
        if (evidence->e->is_zero(&evidence->right->call[call], j) && mine.x[0][j] != 0)
            return false;
    return stages_is_right(evidence, call, array);
}

/* A smaller input, but one of 2 says little: with one kept element its dx is 0. */
static bool shows_more(const Evidence *evidence, int call, int than) {
    const int n = evidence->right->call[call].size[0];
    if (than < 0) return true;
    const int other = evidence->right->call[than].size[0];
    return n > 2 && (other <= 2 || n < other);
}

/* A wrong dx where all is kept says more than one where something is masked. */
static void find_masked(const Evidence *evidence, Finding *f) {
    int masked = -1;
    for (int call = stages_dense(evidence, -1); call >= 0; call = stages_dense(evidence, call)) {
        const Call *c = &evidence->right->call[call];
        if (is_right(evidence, call, MASKED_DX)) continue;
        if (keeps_all(c) && c->size[0] > 2) {
            find_of_kept(evidence, call, f);
            return;
        }
        if (!keeps_all(c) && shows_more(evidence, call, masked)) masked = call;
    }
    if (masked < 0) return;
    stages_show(f, masked, "mask", "sum and scale, where nothing is masked", NULL);
    stages_prove(f, "dx is right where keep is true everywhere.");
    f->asks = "What should dx be where keep is false, and which elements are in the sum?";
}

const StageRules stages_masked_softmax = {
    .stage = {{"sum", {"1"}}, {"scale", {0}}, {"mask", {0}}, {"dx", {0}}},
    .values = masked_values,
    .find = find_masked};

/* ---- 6 dropout ----------------------------------------------------------------------------------
 */

enum { KEPT, DROPOUT_DX };

static void dropout_values(const Exercise *e, const Call *call, Matrix *value) {
    value[0] = matrix_zeros(1, 1);
    value[0].x[0][0] = 1 / (1 - call->number[0]);
}

static void find_dropout(const Evidence *evidence, Finding *f) {
    int scale = -1;
    for (int call = stages_dense(evidence, -1); call >= 0; call = stages_dense(evidence, call)) {
        const bool *kept = evidence->right->call[call].array[KEPT];
        const Matrix mine = stages_mine(evidence, call, DROPOUT_DX);
        const Matrix right = stages_right(evidence, call, DROPOUT_DX);
        if (matrix_same(&mine, &right, 1e-7)) continue;
        if (scale < 0) scale = call;
        for (int i = 0; i < mine.columns; i++)
            if ((mine.x[0][i] != 0) != (right.x[0][i] != 0)) {
                stages_show(f, call, "mask", NULL, NULL);
                stages_prove(f, "kept[%d] is %s, and your dx[%d] is %s.", i,
                             kept[i] ? "true" : "false", i, kept[i] ? "0" : "not 0");
                f->asks = "Which x[i] are in y, those with kept true or false?";
                return;
            }
    }
    if (scale < 0) return;
    stages_show(f, scale, "scale", "mask", NULL);
    stages_prove(f, "Your dx is 0 where it should be, and only there.");
    f->asks = "What does forward do to an element that it keeps?";
}

const StageRules stages_dropout = {.stage = {{"scale", {"1"}}, {"mask", {0}}, {"dx", {0}}},
                                   .values = dropout_values,
                                   .find = find_dropout};
