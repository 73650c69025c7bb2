/* self_attention_exercise.c - 12 self-attention: its inputs, its right results and its mistakes. */
#include "calls.h"
#include "truth.h"

#include "12_self_attention.h"

#include <math.h>
#include <stdlib.h>

/* ---- y = Concat(heads) wo', with q = x wq', k = x wk', v = x wv' --------------------------------
 */

/* E is heads d. */
#define SELF_ATTENTION                                                                             \
    int n, int heads, int d, double dx[n][heads * d], double dwq[heads * d][heads * d],            \
        double dwk[heads * d][heads * d], double dwv[heads * d][heads * d],                        \
        double dwo[heads * d][heads * d], const double x[n][heads * d],                            \
        const double wq[heads * d][heads * d], const double wk[heads * d][heads * d],              \
        const double wv[heads * d][heads * d], const double wo[heads * d][heads * d],              \
        const double dy[n][heads * d]

/* What a mistake changes. */
typedef struct {
    bool no_scale, heads_mixed, wo_untransposed, dwo_uses_x;
    bool no_q, no_k, no_v; /* the term is missing in dx */
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

/* Column c of head h. */
static int column(const Change *change, int heads, int d, int h, int c) {
    return change->heads_mixed ? c * heads + h : h * d + c;
}

/* p = the weights of query i in head h. */
static void weights_of(const Change *change, int n, int heads, int d, int h, int i, double p[n],
                       double table[8][n][heads * d]) {
    double sum = 0;
    for (int j = 0; j < n; j++) {
        double score = 0;
        for (int c = 0; c < d; c++) {
            const int e = column(change, heads, d, h, c);
            score += table[0][i][e] * table[1][j][e];
        }
        p[j] = exp(score / sqrt(d));
        sum += p[j];
    }
    for (int j = 0; j < n; j++) p[j] /= sum;
}

/* One query of one head: from dout to dq, dk and dv, whose tables lie in one block. */
static void head_backward(const Change *change, int n, int heads, int d, int h, int i,
                          const double p[n], double table[8][n][heads * d]) {
    double ds[n], sum = 0;
    const double scale = change->no_scale ? 1 : 1 / sqrt(d);
    for (int j = 0; j < n; j++) {
        ds[j] = 0;
        for (int c = 0; c < d; c++) {
            const int e = column(change, heads, d, h, c);
            ds[j] += table[4][i][e] * table[2][j][e];
            table[7][j][e] += p[j] * table[4][i][e];
        }
        sum += p[j] * ds[j];
    }
    for (int j = 0; j < n; j++)
        for (int c = 0; c < d; c++) {
            const int e = column(change, heads, d, h, c);
            table[5][i][e] += p[j] * (ds[j] - sum) * scale * table[1][j][e];
            table[6][j][e] += p[j] * (ds[j] - sum) * scale * table[0][i][e];
        }
}

/* The whole backward, with a change. table: q, k, v, out, dout, dq, dk, dv. */
static void backward_with(const Change *change, SELF_ATTENTION) {
    const int E = heads * d;
    double p[n];
    double(*table)[n][E] = calloc(8, sizeof *table);
    if (!table) return;
    project(n, E, table[0][0], x[0], wq[0]);
    project(n, E, table[1][0], x[0], wk[0]);
    project(n, E, table[2][0], x[0], wv[0]);
    if (change->wo_untransposed) project(n, E, table[4][0], dy[0], wo[0]);
    else project_dx(n, E, table[4][0], dy[0], wo[0]);
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < n; i++) {
            weights_of(change, n, heads, d, h, i, p, table);
            for (int j = 0; j < n; j++)
                for (int c = 0; c < d; c++) {
                    const int e = column(change, heads, d, h, c);
                    table[3][i][e] += p[j] * table[2][j][e];
                }
            head_backward(change, n, heads, d, h, i, p, table);
        }
    if (!change->no_q) project_dx(n, E, dx[0], table[5][0], wq[0]);
    if (!change->no_k) project_dx(n, E, dx[0], table[6][0], wk[0]);
    if (!change->no_v) project_dx(n, E, dx[0], table[7][0], wv[0]);
    project_dw(n, E, dwq[0], table[5][0], x[0]);
    project_dw(n, E, dwk[0], table[6][0], x[0]);
    project_dw(n, E, dwv[0], table[7][0], x[0]);
    project_dw(n, E, dwo[0], dy[0], change->dwo_uses_x ? x[0] : table[3][0]);
    free(table);
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

static void dx_from_q_only(SELF_ATTENTION) {
    const Change change = {.no_k = true, .no_v = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}
static void dx_from_v_only(SELF_ATTENTION) {
    const Change change = {.no_q = true, .no_k = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}
static void dx_from_k_only(SELF_ATTENTION) {
    const Change change = {.no_q = true, .no_v = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}
static void no_scale(SELF_ATTENTION) {
    const Change change = {.no_scale = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}
static void heads_mixed(SELF_ATTENTION) {
    const Change change = {.heads_mixed = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}
static void wo_untransposed(SELF_ATTENTION) {
    const Change change = {.wo_untransposed = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}
static void dwo_uses_x(SELF_ATTENTION) {
    const Change change = {.dwo_uses_x = true};
    backward_with(&change, n, heads, d, dx, dwq, dwk, dwv, dwo, x, wq, wk, wv, wo, dy);
}

static const KnownMistake mistakes[] = {
    {"dx_from_q_only", (Function *)dx_from_q_only,
     "dx = dQ wq. The gradients through K and V are missing.", "In which three products is x used?",
     NULL},
    {"dx_overwritten", (Function *)dx_from_v_only, "dx = dV wv, one of three terms.",
     "x is used three times. What does = do to the terms before?", NULL},
    {"dx_overwritten", (Function *)dx_from_k_only, "dx = dK wk, one of three terms.",
     "x is used three times. What does = do to the terms before?", NULL},
    {"no_scale", (Function *)no_scale,
     "dQ and dK are made of the gradient of the scaled scores, without 1 / sqrt(d).",
     "What stands in forward between Q K' and the softmax of a head?", NULL},
    {"heads_mixed", (Function *)heads_mixed,
     "Head h has the columns h, h + heads, h + 2 heads, ...",
     "Which columns has head 0 in the text above the function, and which in your loops?", NULL},
    {"wo_untransposed", (Function *)wo_untransposed,
     "dO = dy wo': dO[i][c] is the sum of dy[i][e] wo[c][e] over e.",
     "Which element of wo does O[i][c] meet in y[i][e]?", NULL},
    {"dwo_uses_x", (Function *)dwo_uses_x, "dwo = dy' x.", "By what is wo multiplied in forward?",
     NULL},
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
static const Sizes inputs[] = {{{3, 2, 2}, 1, 0},   {{2, 2, 3}, 1, 0}, {{3, 3, 2}, 0.7, 0},
                               {{3, 1, 3}, 1, 0},   {{2, 3, 1}, 1, 0}, {{1, 2, 2}, 1, 0},
                               {{4, 1, 1}, 1, 0},   {{1, 1, 1}, 1, 0}, {{2, 2, 2}, 1.5, 0},
                               {{9, 2, 1}, 0.5, 1}, {{0}, 0, 0}};
static const Sizes large[] = {{{LARGE, 1, 2}, 1, 0},
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
    .where = "nn/attention.c, multi_head, and the backward of its ops",
    .lesson = 5,
    .step = "s"};
