/* product_exercises.c - 3 product and 7 linear: their inputs and their right results. */
#include "calls.h"
#include "stages.h"
#include "truth.h"

#include "03_product.inc"
#include "07_linear.inc"

/* ---- 3 product: y = a b -----------------------------------------------------------------------
 */

static void product_right(const Call *c) {
    truth_begin();
    Tensor *a = truth_leaf(c->array[2], SHAPE(c->size[0], c->size[1]));
    Tensor *b = truth_leaf(c->array[3], SHAPE(c->size[1], c->size[2]));
    truth_backward(ag_matmul(a, b), c->array[4]);
    truth_store(c->array[0], a);
    truth_store(c->array[1], b);
    truth_end();
}

static const Sizes product_inputs[] = {{{3, 3, 3}, 1, 0},  {{2, 2, 2}, 1, 0},    {{4, 4, 4}, 0, 0},
                                       {{2, 3, 2}, 1, 0},  {{2, 3, 3}, 1, 0},    {{3, 3, 2}, 1, 0},
                                       {{4, 1, 3}, 1, 0},  {{1, 4, 1}, 1, 0},    {{1, 1, 1}, 1, 0},
                                       {{3, 2, 5}, 30, 0}, {{4, 5, 3}, TINY, 0}, {{0}, 0, 0}};
static const Sizes product_large[] = {
    {{LARGE, 2, 3}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_product = {.number = 3,
                                   .name = "product",
                                   EDITED(product_backward),
                                   .dy = "dy",
                                   .inputs = product_inputs,
                                   .large = product_large,
                                   .right = product_right,
                                   .where = "autograd/ops/linear.c, product_backward",
                                   .lesson = 2,
                                   .step = "b4.0"};

/* ---- 7 linear: y = x w' + b -------------------------------------------------------------------
 */

static void linear_right(const Call *c) {
    truth_begin();
    Tensor *x = truth_leaf(c->array[3], SHAPE(c->size[0], c->size[1]));
    Tensor *w = truth_leaf(c->array[4], SHAPE(c->size[2], c->size[1]));
    Tensor *b = truth_leaf(c->array[2], SHAPE(c->size[2]));
    truth_backward(ag_linear(x, w, b), c->array[5]);
    truth_store(c->array[0], x);
    truth_store(c->array[1], w);
    truth_store(c->array[2], b);
    truth_end();
}

static const Sizes linear_inputs[] = {{{3, 3, 3}, 1, 0},  {{2, 2, 2}, 1, 0},    {{2, 4, 4}, 0, 0},
                                      {{2, 3, 2}, 1, 0},  {{4, 2, 3}, 1, 0},    {{1, 3, 3}, 1, 0},
                                      {{3, 1, 4}, 1, 0},  {{5, 2, 1}, 1, 0},    {{1, 1, 1}, 1, 0},
                                      {{3, 4, 2}, 30, 0}, {{4, 5, 3}, TINY, 0}, {{0}, 0, 0}};
static const Sizes linear_large[] = {
    {{LARGE, 2, 3}, 1, 0}, {{3, LARGE, 2}, 1, 0}, {{2, 3, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_linear = {.number = 7,
                                  .name = "linear",
                                  EDITED(linear_backward),
                                  .dy = "dy",
                                  .inputs = linear_inputs,
                                  .large = linear_large,
                                  .right = linear_right,
                                  .where = "autograd/ops/linear.c, linear_backward",
                                  .lesson = 6,
                                  .step = "b7.1"};
