/* between_exercises.c - 7b mean and variance, 10b weighted mean, each a step to the exercise after
 * it: their inputs. */
#include "calls.h"
#include "stages.h"

#include <math.h>

#include "07b_mean_variance.inc"
#include "10b_weighted_mean.inc"

/* ---- 7b mean and variance: y[i][0] = mean, y[i][1] = sum of (x - mean)^2 / n --------------------
 */

/* Variant 1: rows from 30 to 1e-3. */
static void moments_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *x = c->array[1];
    const int n = c->size[1];
    for (int i = 0; sizes->variant == 1 && i < c->size[0]; i++)
        for (int j = 0; j < n; j++) x[i * n + j] *= 30 * pow(10, -1.5 * i);
}

static const Sizes moments_inputs[] = {{{3, 4}, 1, 0}, {{2, 3}, 1, 0},    {{3, 3}, 1, 0},
                                       {{1, 5}, 1, 0}, {{2, 1}, 1, 0},    {{2, 2}, 1, 0},
                                       {{2, 5}, 0, 0}, {{1, 1}, 1, 0},    {{4, 5}, 1, 1},
                                       {{3, 2}, 9, 0}, {{3, 4}, TINY, 0}, {{0}, 0, 0}};
static const Sizes moments_large[] = {{{LARGE, 5}, 1, 0}, {{3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_mean_variance = {
    .number = 7,
    .letter = "b",
    .name = "mean_variance",
    EDITED(mean_variance_backward),
    .dy = "dy",
    .inputs = moments_inputs,
    .large = moments_large,
    .prepare = moments_prepare,
    .where = "tensor/more/more_plain.inc, variance_dx, with n - 1",
    .lesson = 2,
    .step = "b3.0",
    .lesson_note = "a softmax: there, too, each number of a row changes what all share"};

/* ---- 10b weighted mean: p = softmax(x), y = p v -------------------------------------------------
 */

/* Variant 1: geometric weights. */
static void weighted_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *x = c->array[2];
    if (sizes->variant != 1) return;
    c->tiny = true;
    for (int j = 0; j < c->size[0]; j++) x[j] = log(geometric_weight(j));
}

static const Sizes weighted_inputs[] = {{{3, 3}, 1, 0},    {{3, 2}, 1, 0}, {{2, 4}, 2, 0},
                                        {{4, 2}, 3, 0},    {{1, 3}, 1, 0}, {{5, 1}, 1, 0},
                                        {{1, 1}, 1, 0},    {{2, 3}, 0, 0}, {{9, 2}, 1, 1},
                                        {{4, 3}, TINY, 0}, {{6, 1}, 1, 0}, {{0}, 0, 0}};
static const Sizes weighted_large[] = {{{LARGE, 17}, 1, 0}, {{3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_weighted_mean = {
    .number = 10,
    .letter = "b",
    .name = "weighted_mean",
    EDITED(weighted_mean_backward),
    .dy = "dy",
    .inputs = weighted_inputs,
    .large = weighted_large,
    .prepare = weighted_prepare,
    .where = "autograd/ops/linear.c, product_backward, and tensor/kernels/plain.inc, softmax_dx",
    .lesson = 2,
    .step = "b3.0",
    .lesson_note = "the softmax; the product is step b4.0"};
