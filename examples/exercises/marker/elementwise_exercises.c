/* elementwise_exercises.c - 1 scale, 2 bias, 6 dropout, 13 sgd: their inputs. */
#include "calls.h"
#include "stages.h"

#include "01_scale.inc"
#include "02_bias.inc"
#include "06_dropout.inc"
#include "13_sgd.inc"

/* ---- 1 scale: y = s x ------------------------------------------------------------------------ */

static void scale_prepare(Call *c, const Sizes *sizes, Random *random) {
    const double s[] = {1.7, -0.3, 0, 1, 30, TINY};
    c->number[0] = s[sizes->variant];
}

static const Sizes scale_inputs[] = {{{4}, 1, 0}, {{1}, 1, 1}, {{3}, 1, 2}, {{2}, 30, 3},
                                     {{7}, 0, 4}, {{3}, 1, 5}, {{0}, 0, 0}};
static const Sizes scale_large[] = {{{LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_scale = {.number = 1,
                                 .name = "scale",
                                 EDITED(scale_backward),
                                 .dy = "dy",
                                 .inputs = scale_inputs,
                                 .large = scale_large,
                                 .prepare = scale_prepare,
                                 .where = "tensor/kernels/elementwise.def, the row of scale",
                                 .lesson = 2,
                                 .step = "b2.0"};

/* ---- 2 bias: y[i][j] = x[i][j] + b[j] ---------------------------------------------------------
 */

static const Sizes bias_inputs[] = {{{3, 3}, 1, 0}, {{2, 3}, 1, 0}, {{4, 2}, 1, 0}, {{1, 3}, 1, 0},
                                    {{3, 1}, 1, 0}, {{1, 1}, 1, 0}, {{5, 4}, 0, 0}, {{0}, 0, 0}};
static const Sizes bias_large[] = {{{LARGE, 3}, 1, 0}, {{2, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_bias = {.number = 2,
                                .name = "bias",
                                EDITED(bias_backward),
                                .dy = "dy",
                                .inputs = bias_inputs,
                                .large = bias_large,
                                .where = "autograd/backward.c, unbroadcast",
                                .lesson = 6,
                                .step = "b7.2"};

/* ---- 6 dropout: y = x / (1 - p) where kept, else 0 --------------------------------------------
 */

static void dropout_prepare(Call *c, const Sizes *sizes, Random *random) {
    const double p[] = {0.3, 0.75, 0, 0.5, 0.9, 0.2, 0.9995};
    bool *kept = c->array[0];
    c->number[0] = p[sizes->variant];
    if (sizes->variant == 2) /* nothing is dropped */
        for (int i = 0; i < c->size[0]; i++) kept[i] = true;
    else
        for (int i = 0; i < c->size[0] && c->size[0] > 1; i++)
            if (i < 2) kept[i] = i; /* there is one of each kind */
}

static const Sizes dropout_inputs[] = {{{5}, 1, 0}, {{4}, 1, 1}, {{3}, 1, 2},
                                       {{6}, 1, 3}, {{1}, 1, 4}, {{1}, 1, 5},
                                       {{9}, 0, 5}, {{8}, 1, 6}, {{0}, 0, 0}};
static const Sizes dropout_large[] = {{{LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_dropout = {.number = 6,
                                   .name = "dropout",
                                   EDITED(dropout_backward),
                                   .dy = "dy",
                                   .inputs = dropout_inputs,
                                   .large = dropout_large,
                                   .prepare = dropout_prepare,
                                   .where = "autograd/ops/dropout.c, dropout_backward",
                                   .lesson = 4,
                                   .step = "b7.0"};

/* ---- 13 sgd: v = momentum v + g, theta = theta - lr v -----------------------------------------
 */

/* Its right results are the text's: nn/sgd.c keeps the velocity to itself. test_backwards compares
 * them with the optimizer of nn.
 *
 * torch keeps no velocity where momentum is 0. */
static bool sgd_compares(const Call *c, int array) { return array != 1 || c->number[1] != 0; }

static void sgd_prepare(Call *c, const Sizes *sizes, Random *random) {
    const double momentum[] = {0.9, 0.8765, 0, 0.9};
    double *velocity = c->array[1];
    c->number[0] = 0.1;
    c->number[1] = momentum[sizes->variant];
    for (int i = 0; i < c->size[0]; i++) velocity[i] = 0;
}

static const Sizes sgd_inputs[] = {{{4}, 1, 0}, {{3}, 1, 1},     {{3}, 1, 2},    {{1}, 1, 3},
                                   {{6}, 0, 1}, {{LARGE}, 1, 0}, {{5}, TINY, 1}, {{0}, 0, 0}};

const Exercise exercise_sgd = {.number = 13,
                               .name = "sgd",
                               EDITED(sgd_step),
                               .inputs = sgd_inputs,
                               .steps = 5,
                               .prepare = sgd_prepare,

                               .compares = sgd_compares,
                               .where = "nn/sgd.c, move_sgd",
                               .lesson = 6,
                               .step = "b0.1",
                               .lesson_note = "its steps have no momentum"};
