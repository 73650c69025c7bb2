/* attention_stages.c - the stages of 11 attention and 14 flash: see stages.h.
 *
 * Where D >= Q and D >= K each product has one solution:
 *
 *     dv = p' dy              shows p
 *     dq = ds k / sqrt(D)     shows ds
 *     dk = ds' q / sqrt(D)    shows ds once more */
#include "stages.h"

#include <math.h>
#include <stdlib.h>

enum { DQ, DK, DV, Q_, K_, V_, DY }; /* the arrays of a call */
enum { S, P, DP, DS, STAGES_BEFORE_OUTPUTS };

static void values(const Exercise *e, const Call *call, Matrix *value) {
    const Matrix q = matrix_of(e, call, Q_), k = matrix_of(e, call, K_), v = matrix_of(e, call, V_);
    const Matrix dy = matrix_of(e, call, DY);
    const Matrix kt = matrix_transposed(&k), vt = matrix_transposed(&v);
    const Matrix score = matrix_times(&q, &kt);
    value[S] = matrix_scaled(&score, 1 / sqrt(q.columns));
    value[P] = matrix_softmax(&value[S]);
    value[DP] = matrix_times(&dy, &vt);
    value[DS] = matrix_softmax_dx(&value[P], &value[DP]);
}

/* What one input shows. */
typedef struct {
    int call;
    Matrix q, k, dy;
    Matrix right[STAGES_BEFORE_OUTPUTS];
    Matrix p, ds, ds_of_dk;            /* the student's, of dv, dq and dk */
    bool dq_right, dk_right, dv_right; /* the outputs */
    bool one_ds;                       /* are dq and dk both made of the same ds? */
} Seen;

typedef struct {
    Seen *input;
    int n;
} SeenList;

/* ds of dq = ds k / sqrt(D); of dk with q, the transposed one. */
static Matrix scores_of(const Matrix *gradient, const Matrix *other) {
    const Matrix scaled = matrix_scaled(gradient, sqrt(other->columns));
    return matrix_over(&scaled, other);
}
static Matrix transposed_over(const Matrix *a, const Matrix *b) {
    const Matrix x = matrix_over(a, b);
    return matrix_transposed(&x);
}

static bool is_made_of(const Matrix *gradient, const Matrix *ds, const Matrix *other) {
    const Matrix product = matrix_times(ds, other);
    const Matrix scaled = matrix_scaled(&product, 1 / sqrt(other->columns));
    return matrix_same(gradient, &scaled, 1e-7);
}

/* Do the products show the right p and ds of right outputs? Not if an input is almost singular. */
static bool can_be_solved(const Evidence *evidence, const Seen *s) {
    const Matrix dq = stages_right(evidence, s->call, DQ), dv = stages_right(evidence, s->call, DV);
    const Matrix dk = stages_right(evidence, s->call, DK);
    const Matrix ds = scores_of(&dq, &s->k), p = transposed_over(&dv, &s->dy);
    const Matrix dst = scores_of(&dk, &s->q), again = matrix_transposed(&dst);
    return matrix_same(&ds, &s->right[DS], 1e-9) && matrix_same(&p, &s->right[P], 1e-9) &&
           matrix_same(&again, &s->right[DS], 1e-9);
}

static bool look(const Evidence *evidence, int call, Seen *s) {
    const Exercise *e = evidence->e;
    const Call *c = &evidence->right->call[call];
    if (c->size[0] < 2 || c->size[1] < 2 || c->size[2] < c->size[0] || c->size[2] < c->size[1])
        return false;
    s->call = call;
    s->q = matrix_of(e, c, Q_);
    s->k = matrix_of(e, c, K_);
    s->dy = matrix_of(e, c, DY);
    values(e, c, s->right);
    if (!can_be_solved(evidence, s)) return false;
    const Matrix dq = stages_mine(evidence, call, DQ), dk = stages_mine(evidence, call, DK);
    const Matrix dv = stages_mine(evidence, call, DV);
    s->dq_right = stages_is_right(evidence, call, DQ);
    s->dk_right = stages_is_right(evidence, call, DK);
    s->dv_right = stages_is_right(evidence, call, DV);
    s->p = transposed_over(&dv, &s->dy);
    s->ds = scores_of(&dq, &s->k);
    const Matrix dst = scores_of(&dk, &s->q);
    s->ds_of_dk = matrix_transposed(&dst);
    s->one_ds = is_made_of(&dq, &s->ds, &s->k) && is_made_of(&dk, &dst, &s->q) &&
                matrix_same(&s->ds, &s->ds_of_dk, 1e-7);
    return true;
}

static bool holds(const SeenList *list, bool (*rule)(const Seen *s)) {
    for (int i = 0; i < list->n; i++)
        if (!rule(&list->input[i])) return false;
    return list->n > 0;
}
static bool dq_is_right(const Seen *s) { return s->dq_right; }
static bool dk_is_right(const Seen *s) { return s->dk_right; }
static bool dv_is_right(const Seen *s) { return s->dv_right; }
static bool has_one_ds(const Seen *s) { return s->one_ds; }
static bool has_no_nan(const Seen *s) {
    return matrix_is_finite(&s->ds) && matrix_is_finite(&s->ds_of_dk) && matrix_is_finite(&s->p);
}

/* ---- p is right ---------------------------------------------------------------------------------
 */

static bool has_factor(const Seen *s) { return !isnan(matrix_factor(&s->ds, &s->right[DS], 1e-7)); }

/* Whatever dp is, y (dp - sum of y dp) has the sum 0 in each row. */
static bool rows_are_zero(const Seen *s) {
    for (int i = 0; i < s->ds.rows; i++)
        if (!(fabs(matrix_row_sum(&s->ds, i)) < 1e-7)) return false;
    return true;
}
/* ds is p times one number in each row: no dp gives this. */
static bool is_flat(const Seen *s) {
    for (int i = 0; i < s->ds.rows; i++)
        for (int j = 1; j < s->ds.columns; j++)
            if (!(fabs(s->ds.x[i][j] / s->right[P].x[i][j] - s->ds.x[i][0] / s->right[P].x[i][0]) <
                  1e-7))
                return false;
    return true;
}

/* What stands in dp's place, if the sum is the right one: ds / p + sum of p dp. */
static Matrix dp_of(const Seen *s) {
    Matrix dp = s->ds;
    for (int i = 0; i < dp.rows; i++) {
        double sum = 0;
        for (int j = 0; j < dp.columns; j++) sum += s->right[P].x[i][j] * s->right[DP].x[i][j];
        for (int j = 0; j < dp.columns; j++) dp.x[i][j] = dp.x[i][j] / s->right[P].x[i][j] + sum;
    }
    return dp;
}

/* The two inputs that differ in q alone: the second has twice the first one's. */
static bool doubled_q(const SeenList *list, const Seen **one, const Seen **two) {
    for (int i = 1; i < list->n; i++) {
        const Matrix twice = matrix_scaled(&list->input[i - 1].q, 2);
        *one = &list->input[i - 1];
        *two = &list->input[i];
        if (twice.rows == (*two)->q.rows && twice.columns == (*two)->q.columns &&
            matrix_same(&(*two)->q, &twice, 0) && matrix_same(&(*two)->k, &(*one)->k, 0))
            return true;
    }
    return false;
}

/* dp is no function of q. */
static bool dp_stays(const SeenList *list) {
    const Seen *one;
    const Seen *two;
    if (!doubled_q(list, &one, &two)) return false;
    const Matrix a = dp_of(one), b = dp_of(two);
    return matrix_same(&a, &b, 1e-7);
}

static void find_scale(const SeenList *list, const Seen *s, Finding *f) {
    bool everywhere = true;
    const double factor = matrix_factor(&s->ds, &s->right[DS], 1e-7);
    for (int i = 0; i < list->n; i++)
        if (fabs(matrix_factor(&list->input[i].ds, &list->input[i].right[DS], 1e-7) - factor) >
            1e-6)
            everywhere = false;
    if (factor < 0) {
        stages_show(f, s->call, "ds", "s and p", &s->ds);
        stages_prove(f, "dq and dk are made of a ds that is %.6g times the right one%s.", factor,
                     everywhere ? "" : " here");
        f->asks = "If one score grows, does its own weight grow or shrink?";
        return;
    }
    stages_show(f, s->call, "dq", "s, p, and up to a factor dp and ds", NULL);
    stages_prove(f,
                 everywhere ? "dq and dk are made of a ds that is %.6g times the right one."
                            : "dq and dk are made of a ds that is here %.6g times the right one; "
                              "for other sizes the factor differs.",
                 factor);
    f->asks = "What stands between q k' and the softmax, and how often?";
}

static void find_dp_or_ds(const SeenList *list, const Seen *s, Finding *f) {
    if (!holds(list, is_flat) && holds(list, rows_are_zero)) {
        stages_show(f, s->call, "dp", "s and p", NULL);
        stages_prove(f, "dq and dk are made of the same ds, and each of its rows has the sum 0: it "
                        "is what the softmax makes of another dp.");
        f->asks = "With which vector does the weight p[i][j] meet in y[i]?";
    } else if (!holds(list, is_flat) && dp_stays(list)) {
        stages_show(f, s->call, "dp", "s and p", NULL);
        stages_prove(f, "dq and dk are made of the same ds, of a dp that is another one.");
        f->asks = "With which vector does the weight p[i][j] meet in y[i]?";
    } else {
        int row = 0;
        for (int i = 1; i < s->ds.rows; i++)
            if (fabs(matrix_row_sum(&s->ds, i)) > fabs(matrix_row_sum(&s->ds, row))) row = i;
        const double sum = matrix_row_sum(&s->ds, row);
        stages_show(f, s->call, "ds", "s and p", &s->ds);
        if (fabs(sum) > 1e-7)
            stages_prove(f, "dq and dk are made of the same ds, and its row %d has the sum %+.6g.",
                         row, sum);
        else stages_prove(f, "dq and dk are made of the same ds.");
        f->asks = "If one score grows a little, what do the changes of the weights of its row add "
                  "up to?";
    }
}

static bool is_zero(const Matrix *a) {
    const Matrix zero = matrix_zeros(a->rows, a->columns);
    return matrix_same(a, &zero, 1e-12);
}

static bool gradients_are_zero(const Seen *s) { return is_zero(&s->ds) && is_zero(&s->ds_of_dk); }

/* dv is right, so s and p are. */
static void find_behind_p(const SeenList *list, const Seen *s, Finding *f) {
    const bool dq = holds(list, dq_is_right), dk = holds(list, dk_is_right);
    if (dk || dq) {
        stages_show(f, s->call, dk ? "dq" : "dk", "s, p, dp and ds", NULL);
        stages_prove(f, "dv and %s are right, so p and ds are, if %s uses the same.",
                     dk ? "dk" : "dq", dk ? "dq" : "dk");
        f->asks = dk ? "What is dq[i] the sum of, and over which index?"
                     : "What is dk[j] the sum of, and over which index?";
    } else if (holds(list, gradients_are_zero)) {
        stages_show(f, s->call, "dq", "s and p", NULL);
        stages_prove(f, "dq and dk are 0 everywhere.");
        f->asks = "Do the weights p change with q and k?";
    } else if (!holds(list, has_one_ds)) {
        stages_show(f, s->call, "dq", "s and p", NULL);
        stages_prove(f, "No one ds gives both your dq and your dk.");
        f->asks =
            "In s[i][j] = q[i] k[j] / sqrt(D), what is the factor of q[i], what that of k[j], "
            "and over which index is each summed?";
    } else if (holds(list, has_factor)) {
        find_scale(list, s, f);
    } else {
        find_dp_or_ds(list, s, f);
    }
}

/* ---- p is wrong ---------------------------------------------------------------------------------
 */

static bool rows_are_weights(const Seen *s) {
    for (int i = 0; i < s->p.rows; i++) {
        for (int j = 0; j < s->p.columns; j++)
            if (!(s->p.x[i][j] >= 0)) return false;
        if (!(fabs(matrix_row_sum(&s->p, i) - 1) < 1e-7)) return false;
    }
    return true;
}

/* log p, minus its mean over the row. */
static Matrix centred_log(const Matrix *p) {
    Matrix y = *p;
    for (int i = 0; i < y.rows; i++) {
        for (int j = 0; j < y.columns; j++) y.x[i][j] = log(fmax(y.x[i][j], 1e-300));
        const double mean = matrix_row_sum(&y, i) / y.columns;
        for (int j = 0; j < y.columns; j++) y.x[i][j] -= mean;
    }
    return y;
}

static Matrix difference(const Matrix *a, const Matrix *b) {
    Matrix y = *a;
    for (int i = 0; i < y.rows; i++)
        for (int j = 0; j < y.columns; j++) y.x[i][j] -= b->x[i][j];
    return y;
}

/* If q doubles, scores double, as the right ones, or get another factor, or they have a number of
 * their own beside q. */
static bool are_of_scores(const SeenList *list) {
    const Seen *one;
    const Seen *two;
    if (!doubled_q(list, &one, &two)) return false;
    const Matrix a = centred_log(&one->p), b = centred_log(&two->p);
    const Matrix right_a = centred_log(&one->right[P]), right_b = centred_log(&two->right[P]);
    const Matrix more_a = difference(&a, &right_a), more_b = difference(&b, &right_b);
    return !isnan(matrix_factor(&b, &a, 1e-6)) || matrix_same(&a, &b, 1e-6) ||
           matrix_same(&more_a, &more_b, 1e-6);
}

static void find_weights(const SeenList *list, const Seen *s, Finding *f) {
    if (holds(list, rows_are_weights)) {
        if (are_of_scores(list)) {
            stages_show(f, s->call, "s", NULL, NULL);
            stages_prove(f, "Each row of your weights, as dv has them, is a softmax, but of other "
                            "scores.");
            f->asks = "Which numbers does forward multiply, over which index does it add, and what "
                      "does it do before exp?";
            return;
        }
        stages_show(f, s->call, "p", NULL, &s->p);
        stages_prove(f, "dv has other weights than forward.");
        f->asks = "What does forward do to a score before exp, and after it?";
        return;
    }
    int row = 0;
    for (int i = 1; i < s->p.rows; i++)
        if (fabs(matrix_row_sum(&s->p, i) - 1) > fabs(matrix_row_sum(&s->p, row) - 1)) row = i;
    stages_show(f, s->call, "p", NULL, &s->p);
    stages_prove(f, "The weights of query %d, as dv has them, have the sum %.6g.", row,
                 matrix_row_sum(&s->p, row));
    f->asks = "By what is each exp divided, and is that number complete at that time?";
}

static void find_nan(const SeenList *list, const Seen *s, Finding *f) {
    if (holds(list, dq_is_right) && holds(list, dk_is_right))
        stages_show(f, s->call, "dv", "s, p, dp, ds, dq and dk", NULL);
    else if (!holds(list, dv_is_right)) stages_show(f, s->call, "p", NULL, NULL);
    else if (holds(list, dk_is_right)) stages_show(f, s->call, "dq", "s, p, dp and ds", NULL);
    else if (holds(list, dq_is_right)) stages_show(f, s->call, "dk", "s, p, dp and ds", NULL);
    else stages_show(f, s->call, "dp", "s and p", NULL);
}

/* A row of 0 is one that dv has not summed; a transposed p is dv's own mistake. */
static bool rows_are_right_or_zero(const Seen *s) {
    bool any = false;
    for (int i = 0; i < s->p.rows; i++) {
        const Matrix mine = matrix_rows(&s->p, i, 1), right = matrix_rows(&s->right[P], i, 1);
        const bool zero = is_zero(&mine);
        if (!zero && !matrix_same(&mine, &right, 1e-7)) return false;
        if (!zero) any = true;
    }
    return any;
}
static bool is_transposed(const Seen *s) {
    const Matrix t = matrix_transposed(&s->p);
    return t.rows != t.columns || matrix_same(&t, &s->right[P], 1e-7);
}

/* Are dq and dk what the softmax's step makes of these weights? With the sum of p dp or with the
 * right one, as dy y has it. */
static bool follows_from_weights(const Seen *s) {
    const Matrix one = matrix_softmax_dx(&s->p, &s->right[DP]);
    Matrix other = s->p;
    for (int i = 0; i < other.rows; i++) {
        double sum = 0;
        for (int j = 0; j < other.columns; j++) sum += s->right[P].x[i][j] * s->right[DP].x[i][j];
        for (int j = 0; j < other.columns; j++) other.x[i][j] *= s->right[DP].x[i][j] - sum;
    }
    return s->one_ds && (matrix_same(&s->ds, &one, 1e-6) || matrix_same(&s->ds, &other, 1e-6));
}

static void find_in(const SeenList *list, Finding *f) {
    const Seen *s = list->input;
    while (s < list->input + list->n && s->dq_right && s->dk_right && s->dv_right) s++;
    if (s == list->input + list->n) return;
    if (!holds(list, has_no_nan)) {
        find_nan(list, s, f);
    } else if (holds(list, dv_is_right)) {
        find_behind_p(list, s, f);
    } else if (holds(list, dq_is_right) && holds(list, dk_is_right)) {
        stages_show(f, s->call, "dv", "s, p, dp, ds, dq and dk", NULL);
        stages_prove(f, "dq and dk are right, so p is, if dv uses the same.");
        f->asks = "Which part of v[j] does query i take?";
    } else if (holds(list, rows_are_right_or_zero) || holds(list, is_transposed)) {
        find_behind_p(list, s, f);
        f->another = "dv is wrong, too, in its own way.";
    } else {
        find_weights(list, s, f);
        if (!holds(list, follows_from_weights))
            f->another = "dq and dk are not what follows from these weights.";
    }
}

/* What is read outside of an array is NaN: an input without it says more, if there is one. */
static void drop_nan(SeenList *list) {
    int kept = 0;
    for (int i = 0; i < list->n; i++)
        if (has_no_nan(&list->input[i])) list->input[kept++] = list->input[i];
    if (kept) list->n = kept;
}

static void find(const Evidence *evidence, Finding *f) {
    SeenList list = {calloc(MOST_SEEN, sizeof *list.input), 0};
    for (int call = stages_dense(evidence, -1); call >= 0 && list.input && list.n < MOST_SEEN;
         call = stages_dense(evidence, call))
        if (look(evidence, call, &list.input[list.n])) list.n++;
    drop_nan(&list);
    if (list.n) find_in(&list, f);
    free(list.input);
}

const StageRules stages_attention = {.stage = {{"s", {"Q", "K"}},
                                               {"p", {"Q", "K"}},
                                               {"dp", {"Q", "K"}},
                                               {"ds", {"Q", "K"}},
                                               {"dq", {0}},
                                               {"dk", {0}},
                                               {"dv", {0}}},
                                     .values = values,
                                     .find = find};
