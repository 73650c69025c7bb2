/* product_exercises.c - 3 product and 7 linear: their inputs. */
#include "calls.h"
#include "stages.h"

#include "03_product.inc"
#include "07_linear.inc"

/* ---- 3 product: y = a b -----------------------------------------------------------------------
 */

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
                                   .where = "autograd/ops/linear.c, product_backward",
                                   .lesson = 2,
                                   .step = "b4.0"};

/* ---- 7 linear: y = x w' + b -------------------------------------------------------------------
 */

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
                                  .where = "autograd/ops/linear.c, linear_backward",
                                  .lesson = 6,
                                  .step = "b7.1"};
