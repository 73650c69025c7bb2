/* self_attention_exercise.c - 12 self-attention: its inputs, its right results and its mistakes. */
#include "attention_mistakes.h"
#include "calls.h"
#include "truth.h"

#include "prototypes.h"

#include <math.h>
#include <stdlib.h>

/* ---- y = Concat(heads) wo', with q = x wq', k = x wk', v = x wv' --------------------------------
 */

/* What a mistake changes. */
typedef struct {
    int attention;         /* in each head: see attention_mistakes.h */
    bool no_q, no_k, no_v; /* the term is missing in dx */
    bool heads_mixed, one_head, o_overwritten;
    bool wo_untransposed, dx_transposed, dw_transposed, dwo_transposed;
    int dwo_uses;   /* 0: o, 1: x, 2: v */
    int transposed; /* bits: wq, wk and wv in forward */
} Change;

/* y += x w', and its backward: dx += dy w, dw += dy' x. Row-major, E columns each. */
static void project(int n, int E, double *y, const double *x, const double *w) {
    for (int i = 0; i < n; i++)
        for (int o = 0; o < E; o++)
            for (int c = 0; c < E; c++) y[i * E + o] += x[i * E + c] * w[o * E + c];
}
static void project_dx(int n, int E, double *dx, const double *dy, const double *w) {
    for (int i = 0; i < n; i++)
        for (int o = 0; o < E; o++)
            for (int c = 0; c < E; c++) dx[i * E + c] += dy[i * E + o] * w[o * E + c];
}
static void project_dw(int n, int E, double *dw, const double *dy, const double *x) {
    for (int i = 0; i < n; i++)
        for (int o = 0; o < E; o++)
            for (int c = 0; c < E; c++) dw[o * E + c] += dy[i * E + o] * x[i * E + c];
}

/* The tables of the whole backward, n x E each. */
enum { Q, K, V, O, DO, DQ, DK, DV, TABLES };

/* Column c of head h. */
static int column(const Change *change, int heads, int d, int h, int c) {
    return change->heads_mixed ? c * heads + h : h * d + c;
}

/* The columns of one head, and back. */
static void gather(const Change *change, int n, int heads, int d, int h, double part[n][d],
                   double table[n][heads * d]) {
    for (int i = 0; i < n; i++)
        for (int c = 0; c < d; c++) part[i][c] = table[i][column(change, heads, d, h, c)];
}
static void scatter(const Change *change, int n, int heads, int d, int h, double part[n][d],
                    double table[n][heads * d]) {
    for (int i = 0; i < n; i++)
        for (int c = 0; c < d; c++) table[i][column(change, heads, d, h, c)] = part[i][c];
}

/* o of the last key alone. */
static void overwrite_o(int n, int d, double o[n][d], double q[n][d], double k[n][d],
                        double v[n][d]) {
    for (int i = 0; i < n; i++) {
        double sum = 0, last = 0;
        for (int j = 0; j < n; j++) {
            double score = 0;
            for (int c = 0; c < d; c++) score += q[i][c] * k[j][c];
            last = exp(score / sqrt(d));
            sum += last;
        }
        for (int c = 0; c < d; c++) o[i][c] = last / sum * v[n - 1][c];
    }
}

static void head_backward(const Change *change, int n, int heads, int d, int h,
                          double table[TABLES][n][heads * d]) {
    double(*part)[n][d] = calloc(TABLES, sizeof *part);
    if (!part) return;
    for (int t = Q; t <= V; t++) gather(change, n, heads, d, h, part[t], table[t]);
    gather(change, n, heads, d, h, part[DO], table[DO]);
    attention_changed(change->attention, n, n, d, part[DQ], part[DK], part[DV], part[O][0],
                      (const double(*)[d])part[Q], (const double(*)[d])part[K],
                      (const double(*)[d])part[V], (const double(*)[d])part[DO]);
    if (change->o_overwritten) overwrite_o(n, d, part[O], part[Q], part[K], part[V]);
    scatter(change, n, heads, d, h, part[O], table[O]);
    for (int t = DQ; t <= DV; t++) scatter(change, n, heads, d, h, part[t], table[t]);
    free(part);
}

static void transpose(int E, double *w) {
    for (int i = 0; i < E; i++)
        for (int j = 0; j < i; j++) {
            const double t = w[i * E + j];
            w[i * E + j] = w[j * E + i];
            w[j * E + i] = t;
        }
}

/* From dQ, dK, dV and o to dx and the gradients of w. */
static void find_outputs(const Change *change, const Call *c, int n, int E,
                         double table[TABLES][n][E]) {
    double *x = c->array[5];
    double *dy = c->array[10];
    double *const of_dwo[] = {table[O][0], x, table[V][0]};
    const bool left_out[] = {change->no_q, change->no_k, change->no_v};
    for (int k = 0; k < 3; k++) {
        if (left_out[k]) continue;
        if (change->dx_transposed) project(n, E, c->array[0], table[DQ + k][0], c->array[6 + k]);
        else project_dx(n, E, c->array[0], table[DQ + k][0], c->array[6 + k]);
    }
    for (int k = 0; k < 3; k++) {
        project_dw(n, E, c->array[1 + k], table[DQ + k][0], x);
        if (change->dw_transposed) transpose(E, c->array[1 + k]);
    }
    project_dw(n, E, c->array[4], dy, of_dwo[change->dwo_uses]);
    if (change->dwo_transposed) transpose(E, c->array[4]);
}

/* The whole backward, with a change. */
static void backward_with(const Change *change, const Call *c) {
    const int n = c->size[0], E = c->size[1] * c->size[2];
    const int heads = change->one_head ? 1 : c->size[1], d = E / heads;
    double(*table)[n][E] = calloc(TABLES, sizeof *table);
    if (!table) return;
    for (int k = 0; k < 3; k++)
        if (change->transposed >> k & 1)
            project_dx(n, E, table[Q + k][0], c->array[5], c->array[6 + k]);
        else project(n, E, table[Q + k][0], c->array[5], c->array[6 + k]);
    if (change->wo_untransposed) project(n, E, table[DO][0], c->array[10], c->array[9]);
    else project_dx(n, E, table[DO][0], c->array[10], c->array[9]);
    for (int h = 0; h < heads; h++) head_backward(change, n, heads, d, h, table);
    find_outputs(change, c, n, E, table);
    free(table);
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

enum { OWN = 1000 }; /* below are the changes of attention_mistakes.h */

static const Change own[] = {
    {.no_k = true, .no_v = true},
    {.no_q = true, .no_k = true},
    {.no_q = true, .no_v = true},
    {.heads_mixed = true},
    {.wo_untransposed = true},
    {.dwo_uses = 1},
    {.dwo_uses = 2},
    {.no_q = true},
    {.no_k = true},
    {.no_v = true},
    {.dx_transposed = true},
    {.dw_transposed = true},
    {.dwo_transposed = true},
    {.transposed = 1},
    {.transposed = 2},
    {.transposed = 4},
    {.transposed = 7},
    {.one_head = true},
    {.o_overwritten = true},
};

static void changed(const Call *c, int change) {
    const Change of_head = {.attention = change};
    backward_with(change >= OWN ? &own[change - OWN] : &of_head, c);
}

static const KnownMistake mistakes[] = {
    {.id = "dx_from_q_only",
     .change = OWN + 0,
     .says = "dx = dQ wq. The gradients through K and V are missing.",
     .asks = "In which three products is x used?"},
    {.id = "dx_overwritten",
     .change = OWN + 1,
     .says = "dx = dV wv, one of three terms.",
     .asks = "x is used three times. What does = do to the terms before?"},
    {.id = "dx_overwritten",
     .change = OWN + 2,
     .says = "dx = dK wk, one of three terms.",
     .asks = "x is used three times. What does = do to the terms before?"},
    {.id = "heads_mixed",
     .change = OWN + 3,
     .says = "Head h has the columns h, h + heads, h + 2 heads, ...",
     .asks = "Which columns has head 0 in the text above the function, and which in your loops?"},
    {.id = "wo_untransposed",
     .change = OWN + 4,
     .says = "dO = dy wo': dO[i][c] is the sum of dy[i][e] wo[c][e] over e.",
     .asks = "Which element of wo does O[i][c] meet in y[i][e]?"},
    {.id = "dwo_uses_x",
     .change = OWN + 5,
     .says = "dwo = dy' x.",
     .asks = "By what is wo multiplied in forward?"},
    {.id = "dwo_uses_v",
     .change = OWN + 6,
     .says = "dwo = dy' v, with the projection v in place of the heads' o.",
     .asks = "By what is wo multiplied in forward?"},
    {.id = "dx_without_q",
     .change = OWN + 7,
     .says = "dx = dK wk + dV wv, without dQ wq.",
     .asks = "In which three products is x used?"},
    {.id = "dx_without_k",
     .change = OWN + 8,
     .says = "dx = dQ wq + dV wv, without dK wk.",
     .asks = "In which three products is x used?"},
    {.id = "dx_without_v",
     .change = OWN + 9,
     .says = "dx = dQ wq + dK wk, without dV wv.",
     .asks = "In which three products is x used?"},
    {.id = "dx_w_transposed",
     .change = OWN + 10,
     .says = "dx = dQ wq' + dK wk' + dV wv': each w is transposed.",
     .asks = "Which element of wq does x[i][c] meet in q[i][o]?"},
    {.id = "dw_transposed",
     .change = OWN + 11,
     .says = "dwq = x' dQ, dwk = x' dK and dwv = x' dV: the transposes of what they should be.",
     .asks = "Which of the two indices of wq belongs to x, and which to q?"},
    {.id = "dwo_transposed",
     .change = OWN + 12,
     .says = "dwo = o' dy, the transpose of what it should be.",
     .asks = "Which of the two indices of wo belongs to o, and which to y?"},
    {.id = "wq_transposed",
     .change = OWN + 13,
     .says = "q = x wq, in place of x wq'; all that follows is made of it.",
     .asks = "Over which index of wq does forward sum?"},
    {.id = "wk_transposed",
     .change = OWN + 14,
     .says = "k = x wk, in place of x wk'; all that follows is made of it.",
     .asks = "Over which index of wk does forward sum?"},
    {.id = "wv_transposed",
     .change = OWN + 15,
     .says = "v = x wv, in place of x wv'; all that follows is made of it.",
     .asks = "Over which index of wv does forward sum?"},
    {.id = "w_transposed",
     .change = OWN + 16,
     .says = "q = x wq, k = x wk and v = x wv: no w is transposed.",
     .asks = "Over which index of w does forward sum?"},
    {.id = "one_head",
     .change = OWN + 17,
     .says = "One head has all columns, and its scale is 1 / sqrt(heads d).",
     .asks = "Which columns of q and k does a score of head 0 multiply?"},
    {.id = "o_overwritten",
     .change = OWN + 18,
     .says = "o[i] is p[i][j] v[j] of the last key j alone, in dwo.",
     .asks = "Of how many v[j] is o[i] the sum? What does = do to the terms before?"},
    {0}};

/* ---- the right results -------------------------------------------------------------------------
 */

static void call(Function *f, const Call *c) {
    ((__typeof__(self_attention_backward) *)f)(
        c->size[0], c->size[1], c->size[2], c->array[0], c->array[1], c->array[2], c->array[3],
        c->array[4], c->array[5], c->array[6], c->array[7], c->array[8], c->array[9], c->array[10]);
}

/* (n, heads d) -> (heads, n, d) */
static Tensor *split(Tensor *x, int64_t n, int64_t heads, int64_t d) {
    return ag_permute(ag_reshape(x, SHAPE(n, heads, d)), AXES(1, 0, 2));
}

static void right(const Call *c) {
    const int64_t n = c->size[0], heads = c->size[1], d = c->size[2], E = heads * d;
    Tensor *w[4];
    truth_begin();
    Tensor *x = truth_leaf(c->array[5], SHAPE(n, E));
    for (int i = 0; i < 4; i++) w[i] = truth_leaf(c->array[6 + i], SHAPE(E, E));
    Tensor *q = split(ag_linear(x, w[0], NULL), n, heads, d);
    Tensor *k = split(ag_linear(x, w[1], NULL), n, heads, d);
    Tensor *v = split(ag_linear(x, w[2], NULL), n, heads, d);
    Tensor *score = ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), 1 / sqrt((double)d));
    Tensor *out = ag_permute(ag_bmm(ag_softmax(score, 2), v), AXES(1, 0, 2));
    truth_backward(ag_linear(ag_reshape(out, SHAPE(n, E)), w[3], NULL), c->array[10]);
    truth_store(c->array[0], x);
    for (int i = 0; i < 4; i++) truth_store(c->array[1 + i], w[i]);
    truth_end();
}

/* In head 0 query 1 has geometric weights, query 0 equal ones, and the others steeper ones. */
static void prepare(Call *c, const Sizes *sizes, Random *random) {
    const int n = c->size[0], E = c->size[1] * c->size[2];
    double *x = c->array[5];
    double *wq = c->array[6];
    double *wk = c->array[7];
    c->tiny = sizes->variant == 1;
    if (!c->tiny) return;
    for (int i = 0; i < n; i++) x[i * E] = i;
    for (int e = 0; e < E; e++) {
        wq[e] = e == 0;
        wk[e] = e == 0 ? -log(10) : 0;
    }
}

/* Heads of one column, one head, and both larger than 1. Scores stay where exp is finite. */
/* The last but one is for the stages: d >= n, more heads than one, more keys than two. */
static const Sizes inputs[] = {{{3, 2, 2}, 1, 0},   {{2, 2, 3}, 1, 0},   {{3, 3, 2}, 0.7, 0},
                               {{3, 1, 3}, 1, 0},   {{2, 3, 1}, 1, 0},   {{1, 2, 2}, 1, 0},
                               {{4, 1, 1}, 1, 0},   {{1, 1, 1}, 1, 0},   {{2, 2, 2}, 1.5, 0},
                               {{3, 2, 4}, 0.7, 0}, {{9, 2, 1}, 0.5, 1}, {{0}, 0, 0}};
static const Sizes large[] = {{{LARGE_TABLE, 1, 2}, 1, 0},
                              {{2, LARGE_SQUARE, 1}, 0.5, 0},
                              {{2, 1, LARGE_SQUARE}, 0.5, 0},
                              {{0}, 0, 0}};

#define E "heads * d"
const Exercise exercise_self_attention = {
    .number = 12,
    .name = "self_attention",
    .function = "self_attention_backward",
    .parameter = {{"n", SIZE, 0, 0},
                  {"heads", SIZE, 0, 0},
                  {"d", SIZE, 0, 0},
                  {"dx", OUTPUT, "n", E},
                  {"dwq", OUTPUT, E, E},
                  {"dwk", OUTPUT, E, E},
                  {"dwv", OUTPUT, E, E},
                  {"dwo", OUTPUT, E, E},
                  {"x", INPUT, "n", E},
                  {"wq", INPUT, E, E},
                  {"wk", INPUT, E, E},
                  {"wv", INPUT, E, E},
                  {"wo", INPUT, E, E},
                  {"dy", INPUT, "n", E}},
    .dy = "dy",
    .inputs = inputs,
    .large = large,
    .prepare = prepare,
    .call = call,
    .right = right,
    .mistakes = mistakes,
    .shared = attention_mistakes_shared,
    .changed = changed,
    .where = "nn/attention.c, multi_head, and the backward of its ops",
    .lesson = 5,
    .step = "s"};
