/* softmax_exercises.c - 4 softmax, 5 masked softmax, 9 cross entropy: their inputs. */
#include "calls.h"
#include "numbers.h"
#include "stages.h"

#include <math.h>

#include "04_softmax.inc"
#include "05_masked_softmax.inc"
#include "09_cross_entropy.inc"

/* ---- 4 softmax --------------------------------------------------------------------------------
 */

enum { EQUAL_SCORES = 1, GEOMETRIC = 8 };

/* Scores whose softmax has geometric weights. */
static void geometric_scores(int n, double x[n]) {
    for (int i = 0; i < n; i++) x[i] = log(geometric_weight(i));
}

static void softmax_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *y = c->array[1];
    for (int i = 0; sizes->variant == EQUAL_SCORES && i < c->size[0]; i++) y[i] = 1;
    c->tiny = sizes->variant == GEOMETRIC || sizes->scale == 0;
    if (sizes->variant == GEOMETRIC) geometric_scores(c->size[0], y);
    softmax_of(c->size[0], y, 1, NULL);
}

static const Sizes softmax_inputs[] = {{{3}, 1, 0}, {{4}, 2, 0},         {{2}, 1, 0},
                                       {{5}, 1, 1}, {{1}, 1, 0},         {{6}, 0, 0},
                                       {{7}, 5, 0}, {{9}, 1, GEOMETRIC}, {{0}, 0, 0}};
static const Sizes softmax_large[] = {{{LARGE}, 3, 0}, {{0}, 0, 0}};

const Exercise exercise_softmax = {.number = 4,
                                   .name = "softmax",
                                   EDITED(softmax_backward),
                                   .dy = "dy",
                                   .inputs = softmax_inputs,
                                   .large = softmax_large,
                                   .prepare = softmax_prepare,
                                   .where = "tensor/kernels/plain.inc, softmax_dx",
                                   .lesson = 2,
                                   .step = "b3.0",
                                   .lesson_note = "it shows the result",
                                   .lesson_has_answer = true};

/* ---- 5 masked softmax: y = softmax(s x) over the kept, 0 elsewhere -----------------------------
 */

static bool masked_is_zero(const Call *c, int64_t i) { return !((const bool *)c->array[0])[i]; }

enum { ALL_KEPT = 1, MASKED_DY_IS_NAN = 2, FIRST_MASKED = 4 };

static void masked_prepare(Call *c, const Sizes *sizes, Random *random) {
    const double s[] = {0.5, 1.3, -0.7, 2};
    const int n = c->size[0];
    bool *keep = c->array[0];
    double *dy = c->array[3];
    c->number[0] = s[n % 4];
    for (int i = 0; i < n; i++)
        if (i < 2 || sizes->variant & ALL_KEPT) keep[i] = true;
    if (n > 2 && !(sizes->variant & ALL_KEPT)) keep[n - 1] = false;
    if (sizes->variant & FIRST_MASKED) { /* a sum may begin with the first element */
        keep[0] = false;
        keep[n - 1] = true;
    }
    c->tiny = sizes->variant & GEOMETRIC || sizes->scale == 0;
    if (sizes->variant & GEOMETRIC) geometric_scores(n, c->array[2]);
    softmax_of(n, c->array[2], 1, keep);
    for (int i = 0; i < n; i++)
        if (sizes->variant & MASKED_DY_IS_NAN && !keep[i]) dy[i] = nan_given();
}

static const Sizes masked_inputs[] = {{{4}, 1, MASKED_DY_IS_NAN},
                                      {{5}, 1, 0},
                                      {{3}, 1, MASKED_DY_IS_NAN},
                                      {{3}, 1, ALL_KEPT},
                                      {{1}, 1, ALL_KEPT},
                                      {{2}, 1, ALL_KEPT},
                                      {{6}, 4, MASKED_DY_IS_NAN},
                                      {{6}, 0, 0},
                                      {{5}, 1, MASKED_DY_IS_NAN | FIRST_MASKED},
                                      {{2}, 1, MASKED_DY_IS_NAN | FIRST_MASKED},
                                      {{10}, 1, MASKED_DY_IS_NAN | GEOMETRIC},
                                      {{0}, 0, 0}};
static const Sizes masked_large[] = {
    {{LARGE}, 3, MASKED_DY_IS_NAN}, {{LARGE}, 3, ALL_KEPT}, {{0}, 0, 0}};

const Exercise exercise_masked_softmax = {.number = 5,
                                          .name = "masked_softmax",
                                          EDITED(masked_softmax_backward),
                                          .dy = "dy",
                                          .inputs = masked_inputs,
                                          .large = masked_large,
                                          .prepare = masked_prepare,
                                          .is_zero = masked_is_zero,
                                          .where = "tensor/kernels/plain.inc, masked_softmax_dx",
                                          .lesson = 3,
                                          .step = "b3.0"};

/* ---- 9 cross entropy: loss = -log softmax(x)[target] -------------------------------------------
 */

enum { TWO_LARGEST = 1 };

static void cross_entropy_prepare(Call *c, const Sizes *sizes, Random *random) {
    double *x = c->array[1];
    if (sizes->variant == TWO_LARGEST) {
        x[0] = 1.5;
        x[c->size[1]] = 1.5;
    }
    c->tiny = sizes->variant == GEOMETRIC || sizes->scale == 0;
    if (sizes->variant == GEOMETRIC) geometric_scores(c->size[0], x);
}

static const Sizes cross_entropy_inputs[] = {
    {{4, 2}, 1, 0},    {{3, 0}, 1, 0},         {{3, -1}, 1, 0},          {{5, 4}, 3, 0},
    {{1, 0}, 1, 0},    {{2, 1}, 30, 0},        {{6, 3}, 0, 0},           {{4, 1}, 1, 0},
    {{2, -100}, 1, 0}, {{9, 3}, 1, GEOMETRIC}, {{4, 2}, 1, TWO_LARGEST}, {{0}, 0, 0}};
static const Sizes cross_entropy_large[] = {{{LARGE, 200}, 3, 0}, {{0}, 0, 0}};

const Exercise exercise_cross_entropy = {.number = 9,
                                         .name = "cross_entropy",
                                         EDITED(cross_entropy_backward),
                                         .dy = "dloss",
                                         .inputs = cross_entropy_inputs,
                                         .large = cross_entropy_large,
                                         .prepare = cross_entropy_prepare,
                                         .where = "tensor/kernels/plain.inc, cross_entropy_dx",
                                         .lesson = 2,
                                         .step = "b3.0",
                                         .lesson_note = "the softmax alone, without the logarithm"};
