/* self_attention_exercise.c - 12 self-attention: its inputs. */
#include "calls.h"
#include "stages.h"

#include <math.h>

#include "12_self_attention.inc"

/* ---- y = Concat(heads) wo', with q = x wq', k = x wk', v = x wv' --------------------------------
 */

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
    .where = "nn/attention.c, multi_head, and the backward of its ops",
    .lesson = 5,
    .step = "s"};
