/* self_attention_exercise.c - 12 self-attention: its inputs and its right results. */
#include "calls.h"
#include "stages.h"
#include "truth.h"

#include <math.h>

#include "12_self_attention.inc"

/* ---- y = Concat(heads) wo', with q = x wq', k = x wk', v = x wv' --------------------------------
 */

/* (n, heads d) -> (heads, n, d) */
static Tensor *split(Tensor *x, int64_t n, int64_t heads, int64_t d) {
    return ag_permute(ag_reshape(x, SHAPE(n, heads, d)), AXES(1, 0, 2));
}

static Tensor *forward(const Call *c, Tensor *const *x) {
    const int64_t n = c->size[0], heads = c->size[1], d = c->size[2];
    Tensor *q = split(ag_linear(x[0], x[1], NULL), n, heads, d);
    Tensor *k = split(ag_linear(x[0], x[2], NULL), n, heads, d);
    Tensor *v = split(ag_linear(x[0], x[3], NULL), n, heads, d);
    Tensor *score = ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), 1 / sqrt((double)d));
    Tensor *out = ag_permute(ag_bmm(ag_softmax(score, 2), v), AXES(1, 0, 2));
    return ag_linear(ag_reshape(out, SHAPE(n, heads * d)), x[4], NULL);
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
static const Sizes large[] = {{{LARGE_TABLE, 1, 2}, 1, 0},
                              {{2, LARGE_SQUARE, 1}, 0.5, 0},
                              {{2, 1, LARGE_SQUARE}, 0.5, 0},
                              {{0}, 0, 0}};

const Exercise exercise_self_attention = {
    .number = 12,
    .name = "self_attention",
    EDITED(self_attention_backward),
    .dy = "dy",
    .inputs = inputs,
    .large = large,
    .prepare = prepare,
    .forward = forward,
    .where = "nn/attention.c, multi_head, and the backward of its ops",
    .lesson = 5,
    .step = "s"};
