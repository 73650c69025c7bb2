/* self_attention_stages.c - the stages of 12 self-attention: see stages.h.
 *
 * x and dy have more columns than rows, so each product has one solution:
 *
 *     dwq = dQ' x, dwk = dK' x, dwv = dV' x      show dQ, dK and dV
 *     dwo = dy' o                                shows o
 *
 * and where d >= n each head has the solutions of attention_stages.c. */
#include "stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DX, DWQ, DWK, DWV, DWO, X, WQ, WK, WV, WO, DY };
enum { Q, K, V, S, P, O, DO, DP, DS, DQ, DK, DV, STAGES_BEFORE_OUTPUTS };

/* Columns of head h; a matrix of all heads' scores has the rows of head 0 first. */
static Matrix head(const Matrix *a, int d, int h) { return matrix_columns(a, h * d, d); }
static Matrix scores(const Matrix *a, int h) { return matrix_rows(a, h * a->columns, a->columns); }
static void set_scores(Matrix *a, int h, const Matrix *part) {
    memcpy(a->x[h * part->rows], part->x[0], (size_t)part->rows * sizeof part->x[0]);
}

static Matrix product(const Matrix *a, const Matrix *b, double factor) {
    const Matrix y = matrix_times(a, b);
    return matrix_scaled(&y, factor);
}
static Matrix transposed_product(const Matrix *a, const Matrix *b, double factor) {
    const Matrix at = matrix_transposed(a);
    return product(&at, b, factor);
}
static Matrix product_transposed(const Matrix *a, const Matrix *b, double factor) {
    const Matrix bt = matrix_transposed(b);
    return product(a, &bt, factor);
}

static void head_values(int d, int h, Matrix *value) {
    const Matrix q = head(&value[Q], d, h), k = head(&value[K], d, h), v = head(&value[V], d, h);
    const Matrix dout = head(&value[DO], d, h);
    const Matrix s = product_transposed(&q, &k, 1 / sqrt(d)), p = matrix_softmax(&s);
    const Matrix dp = product_transposed(&dout, &v, 1), ds = matrix_softmax_dx(&p, &dp);
    const Matrix o = matrix_times(&p, &v), dq = product(&ds, &k, 1 / sqrt(d));
    const Matrix dk = transposed_product(&ds, &q, 1 / sqrt(d));
    const Matrix dv = transposed_product(&p, &dout, 1);
    set_scores(&value[S], h, &s);
    set_scores(&value[P], h, &p);
    set_scores(&value[DP], h, &dp);
    set_scores(&value[DS], h, &ds);
    matrix_set_columns(&value[O], h * d, &o);
    matrix_set_columns(&value[DQ], h * d, &dq);
    matrix_set_columns(&value[DK], h * d, &dk);
    matrix_set_columns(&value[DV], h * d, &dv);
}

static void values(const Exercise *e, const Call *call, Matrix *value) {
    const int n = call->size[0], heads = call->size[1], d = call->size[2];
    const Matrix x = matrix_of(e, call, X), wo = matrix_of(e, call, WO);
    const Matrix dy = matrix_of(e, call, DY);
    for (int k = 0; k < STAGES_BEFORE_OUTPUTS; k++) value[k] = matrix_zeros(n, heads * d);
    for (int k = 0; k < 3; k++) {
        const Matrix w = matrix_of(e, call, WQ + k);
        value[Q + k] = product_transposed(&x, &w, 1);
    }
    value[DO] = matrix_times(&dy, &wo);
    value[S] = matrix_zeros(heads * n, n);
    value[P] = value[S];
    value[DP] = value[S];
    value[DS] = value[S];
    for (int h = 0; h < heads; h++) head_values(d, h, value);
}

/* What one input shows. */
typedef struct {
    int call, heads, d;
    Matrix x, dy;
    Matrix right[STAGES_BEFORE_OUTPUTS];
    Matrix mine[STAGES_BEFORE_OUTPUTS]; /* the student's o, dQ, dK and dV */
    bool stage_right[STAGES_BEFORE_OUTPUTS];
    bool right_output[DWO + 1];
    bool dx_follows; /* is dx the sum of dQ wq, dK wk and dV wv? */
    bool has_o;      /* is dwo made of dy and an o? */
} Seen;

typedef struct {
    Seen *input;
    int n;
} SeenList;

/* dQ of dwq = dQ' x, and o of dwo = dy' o. */
static void solve(const Seen *s, const Matrix *output, Matrix *to) {
    for (int k = 0; k < 3; k++) {
        const Matrix t = matrix_over(&output[DWQ + k], &s->x);
        to[DQ + k] = matrix_transposed(&t);
    }
    const Matrix dwo = matrix_transposed(&output[DWO]), t = matrix_over(&dwo, &s->dy);
    to[O] = matrix_transposed(&t);
}

/* dO of dV = p' dO, with the right p. */
static Matrix dout_of(const Seen *s, const Matrix *dv, int h) {
    const Matrix p = scores(&s->right[P], h), part = head(dv, s->d, h);
    const Matrix dvt = matrix_transposed(&part), t = matrix_over(&dvt, &p);
    return matrix_transposed(&t);
}

/* Does every product have one solution? Not if the input, or a p, is almost singular. */
static bool can_be_solved(const Evidence *evidence, Seen *s) {
    Matrix output[DWO + 1];
    for (int k = DX; k <= DWO; k++) output[k] = stages_right(evidence, s->call, k);
    solve(s, output, s->mine);
    if (!matrix_same(&s->mine[DQ], &s->right[DQ], 1e-8) ||
        !matrix_same(&s->mine[O], &s->right[O], 1e-8))
        return false;
    for (int h = 0; h < s->heads; h++) {
        const Matrix dout = dout_of(s, &s->right[DV], h), right = head(&s->right[DO], s->d, h);
        if (!matrix_same(&dout, &right, 1e-8)) return false;
    }
    return true;
}

static bool is_sum_of_three(const Evidence *evidence, const Seen *s, const Matrix *dx) {
    Matrix sum = matrix_zeros(dx->rows, dx->columns);
    for (int k = 0; k < 3; k++) {
        const Matrix w = matrix_of(evidence->e, &evidence->right->call[s->call], WQ + k);
        const Matrix term = matrix_times(&s->mine[DQ + k], &w);
        for (int i = 0; i < sum.rows; i++)
            for (int j = 0; j < sum.columns; j++) sum.x[i][j] += term.x[i][j];
    }
    return matrix_same(dx, &sum, 1e-6);
}

static bool look(const Evidence *evidence, int call, Seen *s) {
    const Call *c = &evidence->right->call[call];
    Matrix output[DWO + 1];
    s->call = call;
    s->heads = c->size[1];
    s->d = c->size[2];
    if (c->size[0] < 2 || s->d < c->size[0]) return false;
    s->x = matrix_of(evidence->e, c, X);
    s->dy = matrix_of(evidence->e, c, DY);
    values(evidence->e, c, s->right);
    if (!can_be_solved(evidence, s)) return false;
    for (int k = DX; k <= DWO; k++) {
        output[k] = stages_mine(evidence, call, k);
        s->right_output[k] = stages_is_right(evidence, call, k);
    }
    solve(s, output, s->mine);
    for (int k = O; k < STAGES_BEFORE_OUTPUTS; k++)
        s->stage_right[k] = matrix_same(&s->mine[k], &s->right[k], 1e-7);
    s->dx_follows = is_sum_of_three(evidence, s, &output[DX]);
    const Matrix again = transposed_product(&s->dy, &s->mine[O], 1);
    s->has_o = matrix_same(&output[DWO], &again, 1e-7);
    return true;
}

static bool holds(const SeenList *list, bool (*rule)(const Seen *s)) {
    for (int i = 0; i < list->n; i++)
        if (!rule(&list->input[i])) return false;
    return list->n > 0;
}
static bool is_right(const SeenList *list, int stage) {
    for (int i = 0; i < list->n; i++)
        if (!list->input[i].stage_right[stage]) return false;
    return true;
}
static bool is_right_output(const SeenList *list, int output) {
    for (int i = 0; i < list->n; i++)
        if (!list->input[i].right_output[output]) return false;
    return true;
}

static void show(Finding *f, const Seen *s, const char *stage, const char *proved, int mine) {
    stages_show(f, s->call, stage, proved, mine >= 0 ? &s->mine[mine] : NULL);
}

/* ---- o is wrong ---------------------------------------------------------------------------------
 */

/* The weights of a head, as o = p v has them. */
static Matrix weights_of(const Seen *s, int h) {
    const Matrix o = head(&s->mine[O], s->d, h), v = head(&s->right[V], s->d, h);
    return matrix_over(&o, &v);
}
static bool has_weights(const Seen *s) {
    for (int h = 0; h < s->heads; h++) {
        const Matrix p = weights_of(s, h), v = head(&s->right[V], s->d, h);
        const Matrix o = head(&s->mine[O], s->d, h), again = matrix_times(&p, &v);
        if (!matrix_same(&o, &again, 1e-7)) return false;
    }
    return true;
}
static bool rows_are_weights(const Seen *s) {
    for (int h = 0; h < s->heads; h++) {
        const Matrix p = weights_of(s, h);
        for (int i = 0; i < p.rows; i++) {
            for (int j = 0; j < p.columns; j++)
                if (!(p.x[i][j] >= 0)) return false;
            if (!(fabs(matrix_row_sum(&p, i) - 1) < 1e-7)) return false;
        }
    }
    return true;
}

/* Is the student's dQ (dK) what these weights give with the right k (q), up to a factor? */
static bool follows_in_head(const Seen *s, int h, int stage) {
    const Matrix p = weights_of(s, h), v = head(&s->right[V], s->d, h);
    const Matrix dout = head(&s->right[DO], s->d, h), dp = product_transposed(&dout, &v, 1);
    const Matrix ds = matrix_softmax_dx(&p, &dp), mine = head(&s->mine[stage], s->d, h);
    const Matrix q = head(&s->right[Q], s->d, h), k = head(&s->right[K], s->d, h);
    const Matrix one = matrix_times(&ds, &k), other = transposed_product(&ds, &q, 1);
    const Matrix *expected = stage == DQ ? &one : &other, zero = matrix_zeros(one.rows, s->d);
    const bool tiny = matrix_same(expected, &zero, 1e-5); /* weights of 0 and 1 prove nothing */
    return tiny || !isnan(matrix_factor(&mine, expected, 1e-5));
}
static bool dq_follows(const Seen *s) {
    for (int h = 0; h < s->heads; h++)
        if (!follows_in_head(s, h, DQ)) return false;
    return true;
}
static bool dk_follows(const Seen *s) {
    for (int h = 0; h < s->heads; h++)
        if (!follows_in_head(s, h, DK)) return false;
    return true;
}

/* The rows of p are softmaxes. A dK that they give with the right q says that q is right. */
static void find_scores_of_p(bool q, bool k, const Seen *s, Finding *f) {
    if (q == k) {
        show(f, s, "s", "v", -1);
        stages_prove(f, "The rows of your p are softmaxes, but of other scores.");
        return;
    }
    show(f, s, k ? "q" : "k", k ? "k and v" : "q and v", -1);
    stages_prove(f,
                 "The rows of your p are softmaxes, and your %s fits them with a %s that is not "
                 "x w%s'.",
                 k ? "dwk" : "dwq", k ? "q" : "k", k ? "q" : "k");
}

static void find_before_o(const SeenList *list, const Seen *s, Finding *f) {
    if (is_right(list, DV)) {
        const bool later = is_right(list, DQ) && is_right(list, DK);
        show(f, s, later ? "o" : "v", later ? "q, k, v, s and p" : "q, k, s and p", later ? O : -1);
        stages_prove(f, "dwv is right, so p is; but the o in your dwo is no p v.");
        f->asks = "Which index of wv is summed in v, and of which rows of v is o[i] a mean?";
    } else if (!holds(list, has_weights)) {
        show(f, s, "o", NULL, O);
        stages_prove(f, "In the o of your dwo a head is not made of its own columns of v.");
        f->asks = "Which columns of v belong to a head, and where does its o stand?";
    } else if (!holds(list, rows_are_weights)) {
        show(f, s, "p", "v", -1);
        stages_prove(f, "The o in your dwo is p v of a p whose rows are no weights.");
        f->asks = "By what is each exp divided, and is that number complete at that time?";
    } else {
        find_scores_of_p(holds(list, dk_follows), holds(list, dq_follows), s, f);
        f->asks = "Which numbers does a score multiply, over which index does it add, and what "
                  "happens to it before exp?";
    }
}

/* ---- o is right ---------------------------------------------------------------------------------
 */

/* Is dQ made of the dO that dV = p' dO has, up to a factor? */
static bool dq_follows_dv(const Seen *s) {
    for (int h = 0; h < s->heads; h++) {
        const Matrix p = scores(&s->right[P], h), v = head(&s->right[V], s->d, h);
        const Matrix dout = dout_of(s, &s->mine[DV], h);
        const Matrix dp = product_transposed(&dout, &v, 1), ds = matrix_softmax_dx(&p, &dp);
        const Matrix k = head(&s->right[K], s->d, h), dq = matrix_times(&ds, &k);
        const Matrix mine = head(&s->mine[DQ], s->d, h);
        const double factor = matrix_factor(&mine, &dq, 1e-5);
        if (isnan(factor)) return false;
    }
    return true;
}

/* ds of dQ = ds k / sqrt(d), and of dK = ds' q / sqrt(d). */
static Matrix ds_of_dq(const Seen *s, int h) {
    const Matrix mine = head(&s->mine[DQ], s->d, h), k = head(&s->right[K], s->d, h);
    const Matrix scaled = matrix_scaled(&mine, sqrt(s->d));
    return matrix_over(&scaled, &k);
}
static Matrix ds_of_dk(const Seen *s, int h) {
    const Matrix mine = head(&s->mine[DK], s->d, h), q = head(&s->right[Q], s->d, h);
    const Matrix scaled = matrix_scaled(&mine, sqrt(s->d)), t = matrix_over(&scaled, &q);
    return matrix_transposed(&t);
}
static bool has_one_ds(const Seen *s) {
    for (int h = 0; h < s->heads; h++) {
        const Matrix a = ds_of_dq(s, h), b = ds_of_dk(s, h), k = head(&s->right[K], s->d, h);
        const Matrix again = product(&a, &k, 1 / sqrt(s->d)), mine = head(&s->mine[DQ], s->d, h);
        if (!matrix_same(&a, &b, 1e-6) || !matrix_same(&again, &mine, 1e-6)) return false;
    }
    return true;
}
static Matrix all_ds(const Seen *s) {
    Matrix ds = s->right[DS];
    for (int h = 0; h < s->heads; h++) {
        const Matrix part = ds_of_dq(s, h);
        set_scores(&ds, h, &part);
    }
    return ds;
}
static double factor_of(const Seen *s) {
    const Matrix ds = all_ds(s);
    return matrix_factor(&ds, &s->right[DS], 1e-6);
}
static bool has_factor(const Seen *s) { return !isnan(factor_of(s)); }
static bool rows_are_zero(const Seen *s) {
    const Matrix ds = all_ds(s);
    for (int i = 0; i < ds.rows; i++)
        if (!(fabs(matrix_row_sum(&ds, i)) < 1e-7)) return false;
    return true;
}

static void find_scores(const SeenList *list, const Seen *s, Finding *f) {
    static const char *const proved = "q, k, v, s, p, o, dO and dV";
    const bool one = holds(list, has_one_ds);
    if (one && holds(list, has_factor) && factor_of(s) > 0) {
        show(f, s, "dQ", "q, k, v, s, p, o, dO, dV, and up to a factor dp and ds", DQ);
        stages_prove(f, "dQ and dK are made of a ds that is here %.6g times the right one.",
                     factor_of(s));
        f->asks = "What stands between q k' and the softmax of a head, and how often?";
    } else if (!one) {
        show(f, s, "dQ", proved, DQ);
        stages_prove(f, "No one ds gives both your dwq and your dwk.");
        f->asks = "In a score of a head, what is the factor of q[i], what that of k[j], and over "
                  "which index is each summed?";
    } else {
        const bool zero = holds(list, rows_are_zero) && !holds(list, has_factor);
        show(f, s, zero ? "dp" : "ds", proved, -1);
        f->mine = all_ds(s);
        f->seen = !zero;
        stages_prove(f, zero
                            ? "dQ and dK are made of the same ds, and each of its rows has the sum "
                              "0: it is what the softmax makes of another dp."
                            : "dQ and dK are made of the same ds, and it is another one.");
        f->asks = zero ? "With which vector does the weight p[i][j] of a head meet in o[i]?"
                       : "If one score grows a little, what do the changes of the weights of its "
                         "row add up to?";
    }
}

static void find_behind_o(const SeenList *list, const Seen *s, Finding *f) {
    const bool dq = is_right(list, DQ), dk = is_right(list, DK);
    if (!is_right(list, DV) && !(dq && dk) && holds(list, dq_follows_dv)) {
        show(f, s, "dO", "q, k, v, s, p and o", -1);
        stages_prove(f, "dwo is right, and dwv and dwq are made of the same dO, another one.");
        f->asks = "Which index of wo does y add over, and which does dO?";
    } else if (!is_right(list, DV)) {
        show(f, s, "dV", "q, k, v, s, p and o", DV);
        stages_prove(f, "dwo is right, so p is.");
        f->asks = "Which part of v[j] does query i of a head take?";
    } else if (dq || dk) {
        show(f, s, dq ? "dK" : "dQ", "q, k, v, s, p, o, dO, dp, ds and dV", dq ? DK : DQ);
        stages_prove(f, "%s and dwv are right.", dq ? "dwq" : "dwk");
        f->asks = "What does a score multiply this by, and over which index is it summed?";
    } else {
        find_scores(list, s, f);
    }
}

/* ---- the outputs --------------------------------------------------------------------------------
 */

static bool has_terms_of_o(const Seen *s) {
    for (int i = 0; i < s->mine[O].rows; i++) {
        const Matrix mine = matrix_rows(&s->mine[O], i, 1), right = matrix_rows(&s->right[O], i, 1);
        const Matrix zero = matrix_zeros(1, mine.columns);
        if (!matrix_same(&mine, &right, 1e-7) && !matrix_same(&mine, &zero, 1e-9)) return false;
    }
    return true;
}
static bool has_another_o(const Seen *s) {
    return s->has_o && !matrix_same(&s->mine[O], &s->right[V], 1e-7) &&
           !matrix_same(&s->mine[O], &s->x, 1e-7);
}

/* dx is right, so all before it is, but what dw uses. */
static void find_output(const SeenList *list, const Seen *s, Finding *f) {
    static const char *const name[] = {"dx", "dwq", "dwk", "dwv", "dwo"};
    static const char *const asks = "By what is this matrix multiplied in forward, and over which "
                                    "index is the product summed?";
    int wrong = DWQ;
    while (is_right_output(list, wrong)) wrong++;
    const bool o = wrong == DWO && !holds(list, has_terms_of_o) && holds(list, has_another_o);
    show(f, s, o ? "o" : name[wrong],
         o ? "q, k, v, s and p" : "all stages before the gradients of w", o ? O : -1);
    stages_prove(f,
                 o ? "dx is right, so p and v are; but the o in your dwo is another one."
                   : "dx is right, so dQ, dK and dV are, if %s uses the same.",
                 name[wrong]);
    f->asks =
        o ? "Of which rows of v is o[i] a mean, and in which columns does a head write it?" : asks;
}

static bool is_finite(const Seen *s) {
    return matrix_is_finite(&s->mine[O]) && matrix_is_finite(&s->mine[DQ]) &&
           matrix_is_finite(&s->mine[DK]) && matrix_is_finite(&s->mine[DV]);
}
static bool has_finite_o(const Seen *s) { return matrix_is_finite(&s->mine[O]); }
static bool has_finite_dv(const Seen *s) { return matrix_is_finite(&s->mine[DV]); }

static bool has_dx_of_three(const Seen *s) { return s->dx_follows; }
static bool is_all_right(const Seen *s) {
    for (int k = DX; k <= DWO; k++)
        if (!s->right_output[k]) return false;
    return true;
}

static void find_in(const SeenList *list, Finding *f) {
    const Seen *s = list->input;
    bool dw = true;
    for (int k = DWQ; k <= DWO; k++) dw = dw && is_right_output(list, k);
    while (s < list->input + list->n && is_all_right(s)) s++;
    if (s == list->input + list->n) return;
    if (is_right_output(list, DX)) {
        find_output(list, s, f);
    } else if (dw) {
        show(f, s, "dx", "all stages before it", -1);
        stages_prove(f, "dwq, dwk, dwv and dwo are right, so dQ, dK and dV are.");
        f->asks = "In which three products is x used, and which index of each w is summed?";
    } else if (!holds(list, is_finite)) {
        const bool o = holds(list, has_finite_o), dv = holds(list, has_finite_dv);
        if (!o) show(f, s, "p", NULL, -1);
        else show(f, s, dv ? "dp" : "dV", NULL, -1);
    } else if (!is_right(list, O)) {
        find_before_o(list, s, f);
    } else {
        find_behind_o(list, s, f);
    }
    if (!is_right_output(list, DX) && !dw && !holds(list, has_dx_of_three))
        f->another = "dx is not the sum of dQ wq, dK wk and dV wv, as dwq, dwk and dwv have them.";
}

/* What is read outside of an array is NaN: an input without it says more, if there is one. */
static void drop_nan(SeenList *list) {
    int kept = 0;
    for (int i = 0; i < list->n; i++)
        if (is_finite(&list->input[i])) list->input[kept++] = list->input[i];
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

#define E "heads * d"
const StageRules stages_self_attention = {.stage = {{"q", {"n", E}},
                                                    {"k", {"n", E}},
                                                    {"v", {"n", E}},
                                                    {"s", {"heads", "n", "n"}},
                                                    {"p", {"heads", "n", "n"}},
                                                    {"o", {"n", E}},
                                                    {"dO", {"n", E}},
                                                    {"dp", {"heads", "n", "n"}},
                                                    {"ds", {"heads", "n", "n"}},
                                                    {"dQ", {"n", E}},
                                                    {"dK", {"n", E}},
                                                    {"dV", {"n", E}},
                                                    {"dwq", {0}},
                                                    {"dwk", {0}},
                                                    {"dwv", {0}},
                                                    {"dwo", {0}},
                                                    {"dx", {0}}},
                                          .values = values,
                                          .find = find};
