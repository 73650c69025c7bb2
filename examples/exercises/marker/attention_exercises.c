/* attention_exercises.c - 11 attention and 14 flash: their inputs. Both are
 * the same function; 14 limits its memory. mistakes/11_attention.txt is of both. */
#include "calls.h"
#include "stages.h"

#include <math.h>

#include "11_attention.inc"

/* ---- y = softmax(q k' / sqrt(D)) v ------------------------------------------------------------
 */

enum { UNLIKE_VALUES = 1, GEOMETRIC };

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
    double *v = c->array[5];
    const int64_t n = (int64_t)c->size[1] * c->size[2];
    for (int64_t i = 0; sizes->variant == UNLIKE_VALUES && i < n; i++)
        v[i] = random_number(random, 0);
    c->tiny = sizes->variant == GEOMETRIC;
    if (c->tiny) make_geometric(c);
}

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
                                         {{3, 9, 2}, 1, GEOMETRIC},
                                         {{2, 4, 3}, TINY, 0},
                                         {{4, 4, 2}, 1, 0},
                                         {{0}, 0, 0}};
static const Sizes attention_large[] = {
    {{LARGE, 17, 2}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_attention = {
    .number = 11,
    .name = "attention",
    EDITED(attention_backward),
    .dy = "dy",
    .inputs = attention_inputs,
    .large = attention_large,
    .prepare = attention_prepare,
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
                                    {{LARGE, 17, 2}, 1, 0}, {{3, LARGE_TABLE, 2}, 1, 0},
                                    {{2, 3, LARGE}, 1, 0},  {{0}, 0, 0}};

const Exercise exercise_flash = {.number = 14,
                                 .name = "flash",
                                 .function = "flash_backward",
                                 .parameter = parameters_attention_backward,
                                 .dy = "dy",
                                 .inputs = attention_inputs,
                                 .large = flash_large,
                                 .prepare = attention_prepare,
                                 .call = call_attention_backward,
                                 .source = (Function *)attention_backward,
                                 .mistakes = mistakes_attention_backward,
                                 .where = "tensor/more/more_plain.inc, attention_dx",
                                 .lesson = 2,
                                 .step = "s",
                                 .limited = true};
