/* layer_stages.c - the stages of 8 layer norm and 10 additive: see stages.h. Their calls with
 * one-hot dy's show most stages as they are. */
#include "stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers by which a gradient is divided here. */
static bool is_moderate(const Matrix *w) {
    for (int j = 0; j < w->columns; j++)
        if (fabs(w->x[0][j]) < 1e-2) return false;
    return true;
}

/* ---- 8 layer norm -------------------------------------------------------------------------------
 *
 * With dy 1 in row i and column l, and 0 elsewhere: dw[l] is xhat[i][l], and dx[i] is column l of
 * the Jacobian of row i, which should be
 *
 *     r (1 - 1 1' / n - xhat xhat' / n) w[l],    r = 1 / sqrt(var + eps) */

enum { DX, DW, DB, X, W, NORM_DY };
enum { MEAN, VAR, SD, XHAT, DXHAT, SUMS, NORM_STAGES };
enum { MOST_ROWS = 4, MOST_LENGTH = 4 }; /* of an input that is looked at */

static void norm_values(const Exercise *e, const Call *call, Matrix *value) {
    const Matrix x = matrix_of(e, call, X), w = matrix_of(e, call, W);
    const Matrix dy = matrix_of(e, call, NORM_DY);
    const int n = x.columns;
    for (int k = MEAN; k <= SD; k++) value[k] = matrix_zeros(x.rows, 1);
    value[SUMS] = matrix_zeros(x.rows, 2);
    value[XHAT] = x;
    value[DXHAT] = dy;
    for (int i = 0; i < x.rows; i++) {
        const double mean = matrix_row_sum(&x, i) / n;
        double var = 0;
        for (int j = 0; j < n; j++) var += (x.x[i][j] - mean) * (x.x[i][j] - mean) / n;
        value[MEAN].x[i][0] = mean;
        value[VAR].x[i][0] = var;
        value[SD].x[i][0] = sqrt(var + call->number[0]);
        for (int j = 0; j < n; j++) {
            value[XHAT].x[i][j] = (x.x[i][j] - mean) / value[SD].x[i][0];
            value[DXHAT].x[i][j] *= w.x[0][j];
            value[SUMS].x[i][0] += value[DXHAT].x[i][j] / n;
            value[SUMS].x[i][1] += value[DXHAT].x[i][j] * value[XHAT].x[i][j] / n;
        }
    }
}

typedef struct {
    int call, n, rows;
    double eps;
    Matrix x, w;
    Matrix right[NORM_STAGES];
    Matrix xhat;                /* the student's, of dw */
    Matrix jacobian[MOST_ROWS]; /* the student's, of dx */
    bool dx_right, dw_right, db_right;
    bool crosses; /* does a row of dx change with dy of another row? */
    bool doubles; /* does dx double when dy does? */
} Norm;

typedef struct {
    Norm *input;
    int n;
} Norms;

static void read_one_hot(const Evidence *evidence, int first, Norm *s) {
    s->xhat = matrix_zeros(s->rows, s->n);
    for (int i = 0; i < s->rows; i++) s->jacobian[i] = matrix_zeros(s->n, s->n);
    for (int i = 0; i < s->rows; i++)
        for (int l = 0; l < s->n; l++) {
            const int call = first + i * s->n + l;
            const Matrix dx = stages_mine(evidence, call, DX), dw = stages_mine(evidence, call, DW);
            s->xhat.x[i][l] = dw.x[0][l];
            for (int k = 0; k < s->rows; k++)
                for (int j = 0; j < s->n; j++)
                    if (k == i) s->jacobian[i].x[j][l] = dx.x[k][j];
                    else if (fabs(dx.x[k][j]) > 1e-9) s->crosses = true;
        }
}

static bool look_at_norm(const Evidence *evidence, int call, Norm *s) {
    const Call *c = &evidence->right->call[call];
    const int first = stages_one_hot(evidence, call);
    s->call = call;
    s->rows = c->size[0];
    s->n = c->size[1];
    s->eps = c->number[0];
    if (first < 0 || s->rows < 2 || s->rows > MOST_ROWS || s->n < 3 || s->n > MOST_LENGTH)
        return false;
    s->x = matrix_of(evidence->e, c, X);
    s->w = matrix_of(evidence->e, c, W);
    norm_values(evidence->e, c, s->right);
    if (!is_moderate(&s->w)) return false;
    for (int i = 0; i < s->rows; i++)
        if (!(s->right[VAR].x[i][0] > 1e-3 * s->eps)) return false;
    s->dx_right = stages_is_right(evidence, call, DX);
    s->dw_right = stages_is_right(evidence, call, DW);
    s->db_right = stages_is_right(evidence, call, DB);
    const Matrix dx = stages_mine(evidence, call, DX), twice = matrix_scaled(&dx, 2);
    const Matrix doubled = stages_mine(evidence, call + 1, DX);
    s->doubles = matrix_same(&doubled, &twice, 1e-7);
    read_one_hot(evidence, first, s);
    return true;
}

static bool norms_hold(const Norms *list, bool (*rule)(const Norm *s)) {
    for (int i = 0; i < list->n; i++)
        if (!rule(&list->input[i])) return false;
    return list->n > 0;
}
static bool dx_is_right(const Norm *s) { return s->dx_right; }
static bool dw_is_right(const Norm *s) { return s->dw_right; }
static bool db_is_right(const Norm *s) { return s->db_right; }
static bool dx_doubles(const Norm *s) { return s->doubles; }
static bool has_own_rows(const Norm *s) { return !s->crosses; }
static bool dx_is_finite(const Norm *s) {
    for (int i = 0; i < s->rows; i++)
        if (!matrix_is_finite(&s->jacobian[i])) return false;
    return true;
}
/* A row of 0 is one that dw has not summed. */
static bool xhat_is_right(const Norm *s) {
    for (int i = 0; i < s->rows; i++) {
        const Matrix mine = matrix_rows(&s->xhat, i, 1), zero = matrix_zeros(1, s->n);
        const Matrix right = matrix_rows(&s->right[XHAT], i, 1);
        if (!matrix_same(&mine, &right, 1e-7) && !matrix_same(&mine, &zero, 0)) return false;
    }
    return true;
}

/* ---- dx, with the right xhat -------------------------------------------------------------------
 */

/* m = c[0] + c[1] 1 1' + c[2] h h'? */
static bool fit_jacobian(const Matrix *m, const double *h, double c[3]) {
    const int n = m->rows;
    Matrix basis = matrix_zeros(3, n * n), flat = matrix_zeros(1, n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            flat.x[0][i * n + j] = m->x[i][j];
            basis.x[0][i * n + j] = i == j;
            basis.x[1][i * n + j] = 1;
            basis.x[2][i * n + j] = h[i] * h[j];
        }
    const Matrix solution = matrix_over(&flat, &basis), again = matrix_times(&solution, &basis);
    for (int k = 0; k < 3; k++) c[k] = solution.x[0][k];
    return matrix_same(&flat, &again, 1e-7);
}

/* What the Jacobian of row i should be, without w: its columns get w. */
static Matrix right_jacobian(const Norm *s, int row) {
    Matrix m = matrix_zeros(s->n, s->n);
    const double *h = s->right[XHAT].x[row];
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n; j++)
            m.x[i][j] = ((i == j) - (1 + h[i] * h[j]) / s->n) / s->right[SD].x[row][0];
    return m;
}

static Matrix divided_by_w(const Norm *s, int row) {
    Matrix m = s->jacobian[row];
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->n; j++) m.x[i][j] /= s->w.x[0][j];
    return m;
}

/* The shares of g, mean(g) and xhat mean(g xhat) in row i of dx, 1 where they are right. */
static bool shares_of(const Norm *s, int row, double share[3]) {
    const Matrix m = divided_by_w(s, row);
    const double sd = s->right[SD].x[row][0];
    if (!fit_jacobian(&m, s->right[XHAT].x[row], share)) return false;
    share[0] *= sd;
    share[1] *= -sd * s->n;
    share[2] *= -sd * s->n;
    return true;
}

/* Is each column of the Jacobian a multiple of the right one, as where g is dy times something? */
static bool has_another_g(const Norm *s) {
    for (int i = 0; i < s->rows; i++) {
        const Matrix right = right_jacobian(s, i);
        for (int j = 0; j < s->n; j++) {
            const Matrix a = matrix_columns(&s->jacobian[i], j, 1),
                         b = matrix_columns(&right, j, 1);
            if (isnan(matrix_factor(&a, &b, 1e-7))) return false;
        }
    }
    return true;
}
/* Is each row of it w times the right one without w? */
static bool has_w_outside(const Norm *s) {
    for (int i = 0; i < s->rows; i++) {
        Matrix right = right_jacobian(s, i);
        for (int j = 0; j < s->n; j++)
            for (int l = 0; l < s->n; l++) right.x[j][l] *= s->w.x[0][j];
        if (isnan(matrix_factor(&s->jacobian[i], &right, 1e-7))) return false;
    }
    return true;
}
static bool has_shares(const Norm *s) {
    double share[3];
    for (int i = 0; i < s->rows; i++)
        if (!shares_of(s, i, share)) return false;
    return true;
}

/* Another sign, no term, or a factor n that belongs to a mean: the sums themselves may be right. */
static bool is_plain(double share, int n) {
    const double plain[] = {1, -1, 0, n, 1.0 / n, -n, 2, 0.5, n / (n - 1.0)};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (fabs(share - plain[i]) < 1e-6) return true;
    return false;
}
static bool sums_may_be_right(const Norm *s) {
    double share[3];
    for (int i = 0; i < s->rows; i++) {
        if (!shares_of(s, i, share)) return false;
        const bool equal = fabs(share[1] - share[2]) < 1e-6;
        if (fabs(share[0] - 1) < 1e-6 && !equal &&
            (!is_plain(share[1], s->n) || !is_plain(share[2], s->n)))
            return false;
    }
    return true;
}
/* Has every element of dx some shares of its g, of mean(g) and of mean(g xhat), as x in place of
 * xhat gives? Only mean(g xhat) has a factor that changes as xhat does: a mean(g x) in its place is
 * no right sum. Needs n = 4. */
static bool dx_is_made_of_sums(const Norm *s) {
    for (int i = 0; i < s->rows && s->n > 3; i++) {
        const Matrix m = divided_by_w(s, i);
        Matrix share = matrix_zeros(1, s->n), basis = matrix_zeros(3, s->n);
        for (int j = 0; j < s->n; j++) {
            basis.x[1][j] = 1;
            basis.x[2][j] = s->right[XHAT].x[i][j];
        }
        for (int j = 0; j < s->n; j++) {
            const Matrix row = matrix_rows(&m, j, 1);
            for (int l = 0; l < s->n; l++) basis.x[0][l] = l == j;
            const Matrix shares = matrix_over(&row, &basis), again = matrix_times(&shares, &basis);
            if (!matrix_same(&row, &again, 1e-7)) return false;
            share.x[0][j] = shares.x[0][1] + 1 / s->right[SD].x[i][0] / s->n;
        }
        const Matrix xhat = matrix_rows(&s->right[XHAT], i, 1);
        if (!isnan(matrix_factor(&share, &xhat, 1e-6))) return false;
    }
    return true;
}

/* dx has g made of w[j] of its own column, or of something else in place of w. */
static void find_dxhat(const Norm *s, bool outside, Finding *f) {
    const Matrix right = right_jacobian(s, 0), a = matrix_columns(&s->jacobian[0], 0, 1);
    const Matrix b = matrix_columns(&right, 0, 1);
    stages_show(f, s->call, "dxhat", "mean, var, sd and xhat", NULL);
    if (outside)
        stages_prove(f, "Each dx[i][j] is w[j] times what it should be for a w of 1 everywhere.");
    else
        stages_prove(f,
                     "dx is what it should be for another g than dy w: in row 0 its dy[0][0] has "
                     "the factor %.6g, and w[0] is %.6g.",
                     matrix_factor(&a, &b, 1e-7), s->w.x[0][0]);
    f->asks =
        "Which number of w does xhat[i][j] meet in y[i][j], and do the sums of a row have it, "
        "too?";
}

static void find_shares(const Norms *list, const Norm *s, Finding *f) {
    double share[3];
    int row = 0;
    for (int i = s->rows - 1; i >= 0; i--)
        if (shares_of(s, i, share) &&
            fabs(share[0] - 1) + fabs(share[1] - 1) + fabs(share[2] - 1) > 1e-6)
            row = i;
    const bool sums = norms_hold(list, sums_may_be_right);
    shares_of(s, row, share);
    stages_show(f, s->call, sums ? "dx" : "sums", "mean, var, sd and xhat", NULL);
    stages_prove(f,
                 "dx = (g - mean(g) - xhat mean(g xhat)) / sd with g = dy w; of these three row %d "
                 "has %.6g, %.6g and %.6g times the right share.",
                 row, share[0], share[1], share[2]);
    f->asks = "What does the 1/n of forward belong to, and does a larger mean make y larger or "
              "smaller?";
}

static void find_dx(const Norms *list, const Norm *s, Finding *f) {
    static const char *const proved = "mean, var, sd and xhat";
    if (!norms_hold(list, dx_is_finite)) {
        stages_show(f, s->call, "sums", proved, NULL);
    } else if (norms_hold(list, has_own_rows) && norms_hold(list, has_shares)) {
        find_shares(list, s, f);
    } else if (norms_hold(list, has_own_rows) &&
               (norms_hold(list, has_another_g) || norms_hold(list, has_w_outside))) {
        find_dxhat(s, !norms_hold(list, has_another_g), f);
    } else if (!norms_hold(list, dx_doubles)) {
        stages_show(f, s->call, "dxhat", proved, NULL);
        stages_prove(f, "dx does not double when dy doubles.");
        f->asks = "How often is dy a factor of each term?";
    } else if (!norms_hold(list, has_own_rows)) {
        stages_show(f, s->call, "sums", proved, NULL);
        stages_prove(f, "A row of your dx changes with dy of another row.");
        f->asks = "What is in the sums of a row when it begins?";
    } else if (norms_hold(list, dx_is_made_of_sums)) {
        stages_show(f, s->call, "dx", proved, NULL);
        stages_prove(
            f,
            "Each row of dx is what the right mean(g) and mean(g xhat) give with other factors.");
        f->asks = "Which number of its own does each element of dx have beside each of the two "
                  "means?";
    } else {
        stages_show(f, s->call, "sums", proved, NULL);
        stages_prove(f, "dx is not made of mean(g) and mean(g xhat), whatever their factors.");
        f->asks = "Over which terms does each of the two sums go, and are they complete when they "
                  "are used?";
    }
}

/* ---- xhat is wrong ------------------------------------------------------------------------------
 */

/* x = m + s xhat: the mean and the divisor that a row of the student's xhat has. */
static bool fit_row(const Norm *s, int row, double *m, double *divisor) {
    Matrix basis = matrix_zeros(2, s->n);
    const Matrix x = matrix_rows(&s->x, row, 1);
    for (int j = 0; j < s->n; j++) {
        basis.x[0][j] = 1;
        basis.x[1][j] = s->xhat.x[row][j];
    }
    const Matrix solution = matrix_over(&x, &basis), again = matrix_times(&solution, &basis);
    *m = solution.x[0][0];
    *divisor = solution.x[0][1];
    return matrix_same(&x, &again, 1e-6);
}

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-6 * (fabs(b) + 1e-3); }

/* Has dx the same divisor? */
static bool dx_has_divisor(const Norm *s, int row, double divisor) {
    double share[3];
    const Matrix m = divided_by_w(s, row);
    return !fit_jacobian(&m, s->xhat.x[row], share) || is_near(share[0] * divisor, 1);
}

/* Is the divisor made of the right variance? */
static bool is_of_variance(const Norm *s, int row, double divisor) {
    const double var = s->right[VAR].x[row][0], eps = s->eps;
    const double other[] = {sqrt(var),
                            var,
                            var + eps,
                            sqrt(var) + eps,
                            sqrt(var) + sqrt(eps),
                            1 / sqrt(var + eps),
                            1 / (var + eps),
                            var + sqrt(eps)};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (is_near(divisor, other[i])) return true;
    return false;
}

static int wrong_stage_of_row(const Norm *s, int row) {
    double m, divisor;
    if (!matrix_is_finite(&s->xhat)) return VAR;
    if (!fit_row(s, row, &m, &divisor)) return XHAT;
    if (!is_near(m, s->right[MEAN].x[row][0]))
        return fabs(m) < 1e-9 || is_near(divisor, 1) ? XHAT : MEAN;
    if (is_near(divisor, s->right[SD].x[row][0])) return NORM_STAGES;
    if (!dx_has_divisor(s, row, divisor)) return XHAT;
    return is_of_variance(s, row, divisor) ? SD : VAR;
}

static void say_row_of_xhat(const Norm *s, int row, int stage, Finding *f) {
    double m, divisor;
    Matrix mine = s->xhat;
    const bool fits = fit_row(s, row, &m, &divisor);
    for (int i = 0; stage < XHAT && i < s->rows; i++) {
        if (i == 0) mine = matrix_zeros(s->rows, 1);
        const bool row_fits = fit_row(s, i, &m, &divisor);
        const double stages[] = {[MEAN] = m, [VAR] = divisor * divisor - s->eps, [SD] = divisor};
        mine.x[i][0] = row_fits ? stages[stage] : (double)NAN;
    }
    f->mine = mine;
    f->seen = true;
    if (!fits) {
        stages_prove(f,
                     "What dw multiplies dy by is no (x - mean) / sd, whatever mean and sd are.");
        f->asks = "What does forward subtract from x[i][j], and by what does it divide?";
        return;
    }
    fit_row(s, row, &m, &divisor);
    stages_prove(
        f,
        "Row %d of the xhat in your dw is (x - m) / s with m = %.6g and s = %.6g; the mean "
        "of this row is %.6g, and sqrt(var + eps) is %.6g.",
        row, m + 0, divisor, s->right[MEAN].x[row][0], s->right[SD].x[row][0]);
    f->asks = row > 0 && wrong_stage_of_row(s, 0) == NORM_STAGES
                  ? "Which numbers are in the sums when the second row begins?"
                  : "What does forward subtract, by what does it divide, and which number is "
                    "complete at which time?";
}

static void find_xhat(const Norms *list, Finding *f) {
    static const char *const name[] = {"mean", "var", "sd", "xhat"};
    static const char *const proved[] = {NULL, "mean", "mean and var", NULL};
    static const int order[] = {MEAN, XHAT, VAR, SD};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < list->n; i++)
            for (int row = 0; row < list->input[i].rows; row++) {
                const Norm *s = &list->input[i];
                if (wrong_stage_of_row(s, row) != order[k]) continue;
                stages_show(f, s->call, name[order[k]], proved[order[k]], NULL);
                if (matrix_is_finite(&s->xhat)) say_row_of_xhat(s, row, order[k], f);
                return;
            }
}

static void find_in_norms(const Norms *list, Finding *f) {
    const Norm *s = list->input;
    const bool dx = norms_hold(list, dx_is_right), dw = norms_hold(list, dw_is_right);
    while (s < list->input + list->n && s->dx_right && s->dw_right && s->db_right) s++;
    if (s == list->input + list->n) return;
    if (dx && !dw) {
        stages_show(f, s->call, "dw", "mean, var, sd, xhat, dxhat, sums and dx", NULL);
        stages_prove(f, "dx is right, so xhat is, if dw uses the same.");
        f->asks = "By what is w[j] multiplied in forward, and in how many rows?";
    } else if (dx) {
        stages_show(f, s->call, "db", "mean, var, sd, xhat, dxhat, sums, dx and dw", NULL);
        f->asks = "In which elements of y is b[j], and what is its factor there?";
    } else if (norms_hold(list, xhat_is_right)) {
        find_dx(list, s, f);
    } else {
        find_xhat(list, f);
    }
    if (!dx && !norms_hold(list, dw_is_right) && norms_hold(list, xhat_is_right))
        f->another = "dw is wrong, too, in its own way.";
    else if (!(dx && dw) && !norms_hold(list, db_is_right))
        f->another = "db is wrong, too, which needs none of the other stages.";
}

static void find_norm(const Evidence *evidence, Finding *f) {
    Norms list = {calloc(MOST_SEEN, sizeof *list.input), 0};
    for (int call = stages_dense(evidence, -1); call >= 0 && list.input && list.n < MOST_SEEN;
         call = stages_dense(evidence, call))
        if (look_at_norm(evidence, call, &list.input[list.n])) list.n++;
    if (list.n) find_in_norms(&list, f);
    free(list.input);
}

const StageRules stages_layer_norm = {.stage = {{"mean", {"rows"}},
                                                {"var", {"rows"}},
                                                {"sd", {"rows"}},
                                                {"xhat", {"rows", "n"}},
                                                {"dxhat", {"rows", "n"}},
                                                {"sums", {"rows", "2"}},
                                                {"dx", {0}},
                                                {"dw", {0}},
                                                {"db", {0}}},
                                      .values = norm_values,
                                      .find = find_norm};

/* ---- 10 additive --------------------------------------------------------------------------------
 *
 * With ds 1 for query i and key j, and 0 elsewhere, dw is t, and dq[i] and dk[j] are w (1 - t^2).
 */

enum { DQ, DK, ADDITIVE_DW, Q_, K_, ADDITIVE_W, DS };
enum { T, DU, ADDITIVE_STAGES };

static void additive_values(const Exercise *e, const Call *call, Matrix *value) {
    const Matrix q = matrix_of(e, call, Q_), k = matrix_of(e, call, K_);
    const Matrix w = matrix_of(e, call, ADDITIVE_W), ds = matrix_of(e, call, DS);
    value[T] = matrix_zeros(q.rows * k.rows, q.columns);
    value[DU] = value[T];
    for (int i = 0; i < q.rows; i++)
        for (int j = 0; j < k.rows; j++)
            for (int h = 0; h < q.columns; h++) {
                const double t = tanh(q.x[i][h] + k.x[j][h]);
                value[T].x[i * k.rows + j][h] = t;
                value[DU].x[i * k.rows + j][h] = ds.x[i][j] * w.x[0][h] * (1 - t * t);
            }
}

typedef struct {
    int call, one_hot; /* the dense one, and the first with a one-hot ds */
    Matrix w;
    Matrix right[ADDITIVE_STAGES];
    Matrix t, of_dq,
        of_dk; /* the student's: t, and the slope of the tanh, a row for each i and j */
    bool dq_right, dk_right, dw_right;
    bool doubles; /* does dq double when ds does? */
} Additive;

typedef struct {
    Additive *input;
    int n;
} Additives;

static bool look_at_additive(const Evidence *evidence, int call, Additive *s) {
    const Call *c = &evidence->right->call[call];
    const int Q = c->size[0], K = c->size[1], H = c->size[2];
    s->call = call;
    s->one_hot = stages_one_hot(evidence, call);
    if (s->one_hot < 0 || Q < 2 || K < 2 || Q * K > MOST_SIDE) return false;
    additive_values(evidence->e, c, s->right);
    s->w = matrix_of(evidence->e, c, ADDITIVE_W);
    if (!is_moderate(&s->w)) return false;
    s->t = matrix_zeros(Q * K, H);
    s->of_dq = s->t;
    s->of_dk = s->t;
    s->dq_right = stages_is_right(evidence, call, DQ);
    s->dk_right = stages_is_right(evidence, call, DK);
    s->dw_right = stages_is_right(evidence, call, ADDITIVE_DW);
    const Matrix once = stages_mine(evidence, call, DQ), twice = matrix_scaled(&once, 2);
    const Matrix doubled = stages_mine(evidence, call + 1, DQ);
    s->doubles = matrix_same(&doubled, &twice, 1e-7);
    for (int pair = 0; pair < Q * K; pair++) {
        const Matrix dq = stages_mine(evidence, s->one_hot + pair, DQ);
        const Matrix dk = stages_mine(evidence, s->one_hot + pair, DK);
        const Matrix dw = stages_mine(evidence, s->one_hot + pair, ADDITIVE_DW);
        for (int h = 0; h < H; h++) {
            s->t.x[pair][h] = dw.x[0][h];
            s->of_dq.x[pair][h] = dq.x[pair / K][h] / s->w.x[0][h];
            s->of_dk.x[pair][h] = dk.x[pair % K][h] / s->w.x[0][h];
        }
    }
    return true;
}

static bool additives_hold(const Additives *list, bool (*rule)(const Additive *s)) {
    for (int i = 0; i < list->n; i++)
        if (!rule(&list->input[i])) return false;
    return list->n > 0;
}
static bool has_right_dq(const Additive *s) { return s->dq_right; }
static bool has_right_dk(const Additive *s) { return s->dk_right; }
static bool has_right_dw(const Additive *s) { return s->dw_right; }
static bool dq_doubles(const Additive *s) { return s->doubles; }
static bool has_one_slope(const Additive *s) { return matrix_same(&s->of_dq, &s->of_dk, 1e-7); }

/* Is every number that is not 0 right, as where only some terms are summed? */
static bool has_right_terms(const Additive *s) {
    for (int i = 0; i < s->t.rows; i++)
        for (int h = 0; h < s->t.columns; h++) {
            const double t = s->right[T].x[i][h], slope = 1 - t * t;
            if (s->t.x[i][h] != 0 && !(fabs(s->t.x[i][h] - t) < 1e-9)) return false;
            if (s->of_dq.x[i][h] != 0 && !(fabs(s->of_dq.x[i][h] - slope) < 1e-9)) return false;
            if (s->of_dk.x[i][h] != 0 && !(fabs(s->of_dk.x[i][h] - slope) < 1e-9)) return false;
        }
    return true;
}

static void find_du(const Additive *s, Finding *f) {
    int pair = 0, column = 0;
    for (int i = 0; i < s->t.rows; i++)
        for (int h = 0; h < s->t.columns; h++) {
            const double t = s->right[T].x[i][h], at = s->right[T].x[pair][column];
            if (fabs(s->of_dq.x[i][h] - (1 - t * t)) >
                fabs(s->of_dq.x[pair][column] - (1 - at * at))) {
                pair = i;
                column = h;
            }
        }
    stages_show(f, s->call, "du", "t", NULL);
    stages_prove(
        f,
        "Where one ds[i][j] alone is 1, dq[i][h] is w[h] times a number that should be 1 - "
        "t^2: for t = %.6g yours is %.6g, and 1 - t^2 is %.6g.",
        s->right[T].x[pair][column], s->of_dq.x[pair][column],
        1 - s->right[T].x[pair][column] * s->right[T].x[pair][column]);
    f->asks = "What is the slope of tanh at u, and by what does s multiply a tanh?";
}

static void find_in_additives(const Additives *list, Finding *f) {
    const Additive *s = list->input;
    const bool dq = additives_hold(list, has_right_dq), dk = additives_hold(list, has_right_dk);
    const bool dw = additives_hold(list, has_right_dw);
    while (s < list->input + list->n && s->dq_right && s->dk_right && s->dw_right) s++;
    if (s == list->input + list->n) return;
    if (dq && dk) {
        stages_show(f, s->call, "dw", "t, du, dq and dk", NULL);
        stages_prove(f, "dq and dk are right, so t is, if dw uses the same.");
        f->asks = "By what is w[h] multiplied, and in how many scores?";
    } else if (additives_hold(list, has_right_terms)) {
        stages_show(f, s->call, dq ? "dk" : "dq", "t and du", NULL);
        stages_prove(f, "Each term that is in your sums is right, but some are missing.");
        f->asks = "In how many scores is this number, and what does = do to the terms before?";
    } else if (dw && !dq && !dk && !additives_hold(list, dq_doubles)) {
        stages_show(f, s->call, "du", "t", NULL);
        stages_prove(f, "dq does not double when ds doubles.");
        f->asks = "By what is the slope of a tanh multiplied on its way to q?";
    } else if (dw && (dq || dk || !additives_hold(list, has_one_slope))) {
        stages_show(f, s->call, dq ? "dk" : "dq", dq || dk ? "t and du" : "t", NULL);
        if (dq || dk) stages_prove(f, "dw and %s are right.", dq ? "dq" : "dk");
        else stages_prove(f, "dq and dk are made of other slopes of the tanh.");
        f->asks = dq ? "In which scores is k[j], and what is dk[j] the sum over?"
                     : "In which scores is q[i], and what is dq[i] the sum over?";
    } else if (dw) {
        find_du(s, f);
    } else {
        stages_show(f, s->call, "t", NULL, NULL);
        stages_prove(f, "dw is a sum of ds[i][j] times something that is not tanh(q[i] + k[j]).");
        f->asks = "Of which two numbers does forward take the tanh, and is it in both loops?";
    }
}

static void find_additive(const Evidence *evidence, Finding *f) {
    Additives list = {calloc(MOST_SEEN, sizeof *list.input), 0};
    for (int call = stages_dense(evidence, -1); call >= 0 && list.input && list.n < MOST_SEEN;
         call = stages_dense(evidence, call))
        if (look_at_additive(evidence, call, &list.input[list.n])) list.n++;
    if (list.n) find_in_additives(&list, f);
    free(list.input);
}

const StageRules stages_additive = {.stage = {{"t", {"Q", "K", "H"}},
                                              {"du", {"Q", "K", "H"}},
                                              {"dq", {0}},
                                              {"dk", {0}},
                                              {"dw", {0}}},
                                    .values = additive_values,
                                    .find = find_additive};
