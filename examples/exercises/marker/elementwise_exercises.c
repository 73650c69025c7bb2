/* elementwise_exercises.c - 1 scale, 2 bias, 6 dropout, 13 sgd: their inputs, their right results
 * and their mistakes. */
#include "calls.h"
#include "stages.h"
#include "truth.h"

#include "prototypes.h"

#include "06_dropout.inc"

/* ---- 1 scale: y = s x ------------------------------------------------------------------------ */

#define SCALE int n, double s, double dx[n], const double dy[n]

static void scale_no_scale(SCALE) {
    for (int i = 0; i < n; i++) dx[i] = dy[i];
}
static void scale_divided(SCALE) {
    for (int i = 0; i < n; i++) dx[i] = dy[i] / s;
}
static void scale_squared(SCALE) {
    for (int i = 0; i < n; i++) dx[i] = s * s * dy[i];
}
static bool scale_divides(const Call *c) { return c->number[0] != 0; }

static const KnownMistake scale_mistakes[] = {
    {"no_scale", .backward = (Function *)scale_no_scale},
    {"divided", .backward = (Function *)scale_divided, .counts = scale_divides},
    {"squared", .backward = (Function *)scale_squared},
    {0}};

static void scale_call(Function *f, const Call *c) {
    ((__typeof__(scale_backward) *)f)(c->size[0], c->number[0], c->array[0], c->array[1]);
}

static void scale_right(const Call *c) {
    truth_begin();
    Tensor *x = truth_leaf(c->array[1], SHAPE(c->size[0])); /* any numbers will do */
    truth_backward(ag_scale(x, c->number[0]), c->array[1]);
    truth_store(c->array[0], x);
    truth_end();
}

static void scale_prepare(Call *c, const Sizes *sizes, Random *random) {
    const double s[] = {1.7, -0.3, 0, 1, 30, TINY};
    c->number[0] = s[sizes->variant];
}

static const Sizes scale_inputs[] = {{{4}, 1, 0}, {{1}, 1, 1}, {{3}, 1, 2}, {{2}, 30, 3},
                                     {{7}, 0, 4}, {{3}, 1, 5}, {{0}, 0, 0}};
static const Sizes scale_large[] = {{{LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_scale = {.number = 1,
                                 .name = "scale",
                                 .function = "scale_backward",
                                 .parameter = {{"n", SIZE, 0, 0},
                                               {"s", DOUBLE, 0, 0},
                                               {"dx", OUTPUT, 0, "n"},
                                               {"dy", INPUT, 0, "n"}},
                                 .dy = "dy",
                                 .inputs = scale_inputs,
                                 .large = scale_large,
                                 .prepare = scale_prepare,
                                 .call = scale_call,
                                 .right = scale_right,
                                 .mistakes = scale_mistakes,
                                 .where = "tensor/kernels/elementwise.def, the row of scale",
                                 .lesson = 2,
                                 .step = "b2.0"};

/* ---- 2 bias: y[i][j] = x[i][j] + b[j] ---------------------------------------------------------
 */

#define BIAS int rows, int n, double dx[rows][n], double db[n], const double dy[rows][n]

static void bias_right_dx(BIAS) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) dx[i][j] = dy[i][j];
}
static void bias_right_db(BIAS) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) db[j] += dy[i][j];
}
static void bias_db_first_row(BIAS) {
    bias_right_dx(rows, n, dx, db, dy);
    for (int j = 0; j < n; j++) db[j] = dy[0][j];
}
static void bias_db_mean(BIAS) {
    bias_right_dx(rows, n, dx, db, dy);
    bias_right_db(rows, n, dx, db, dy);
    for (int j = 0; j < n; j++) db[j] /= rows;
}
static void bias_dx_summed(BIAS) {
    bias_right_db(rows, n, dx, db, dy);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) dx[i][j] = db[j];
}

static const KnownMistake bias_mistakes[] = {
    {"db_first_row", (Function *)bias_db_first_row, "db[j] = dy[0][j]. Only one row is in it.",
     "In how many rows of y is b[j] used?", NULL},
    {"db_mean", .backward = (Function *)bias_db_mean},
    {"dx_summed", .backward = (Function *)bias_dx_summed},
    {0},
};

static void bias_call(Function *f, const Call *c) {
    ((__typeof__(bias_backward) *)f)(c->size[0], c->size[1], c->array[0], c->array[1], c->array[2]);
}

static void bias_right(const Call *c) {
    truth_begin();
    Tensor *x = truth_leaf(c->array[2], SHAPE(c->size[0], c->size[1]));
    Tensor *b = truth_leaf(c->array[2], SHAPE(c->size[1]));
    truth_backward(ag_add(x, b), c->array[2]);
    truth_store(c->array[0], x);
    truth_store(c->array[1], b);
    truth_end();
}

static const Sizes bias_inputs[] = {{{3, 3}, 1, 0}, {{2, 3}, 1, 0}, {{4, 2}, 1, 0}, {{1, 3}, 1, 0},
                                    {{3, 1}, 1, 0}, {{1, 1}, 1, 0}, {{5, 4}, 0, 0}, {{0}, 0, 0}};
static const Sizes bias_large[] = {{{LARGE, 3}, 1, 0}, {{2, LARGE}, 1, 0}, {{0}, 0, 0}};

const Exercise exercise_bias = {.number = 2,
                                .name = "bias",
                                .function = "bias_backward",
                                .parameter = {{"rows", SIZE, 0, 0},
                                              {"n", SIZE, 0, 0},
                                              {"dx", OUTPUT, "rows", "n"},
                                              {"db", OUTPUT, 0, "n"},
                                              {"dy", INPUT, "rows", "n"}},
                                .dy = "dy",
                                .inputs = bias_inputs,
                                .large = bias_large,
                                .call = bias_call,
                                .right = bias_right,
                                .mistakes = bias_mistakes,
                                .where = "autograd/backward.c, unbroadcast",
                                .lesson = 6,
                                .step = "b7.2"};

/* ---- 6 dropout: y = x / (1 - p) where kept, else 0 --------------------------------------------
 */

/* The mask and the scale, as ops: ag_dropout draws a mask of its own. */
static void dropout_right(const Call *c) {
    const Shape n = SHAPE(c->size[0]);
    truth_begin();
    Tensor *x = truth_leaf(c->array[2], n);
    Tensor *dropped = ag_logical_not(tape_own(tensor_from_bools(n, c->array[0])));
    truth_backward(ag_scale(ag_masked_fill(x, dropped, 0), 1 / (1 - c->number[0])), c->array[2]);
    truth_store(c->array[1], x);
    truth_end();
}

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
                                   .function = "dropout_backward",
                                   .parameter = parameters_dropout_backward,
                                   .dy = "dy",
                                   .inputs = dropout_inputs,
                                   .large = dropout_large,
                                   .prepare = dropout_prepare,
                                   .call = call_dropout_backward,
                                   .right = dropout_right,
                                   .source = (Function *)dropout_backward,
                                   .mistakes = mistakes_dropout_backward,
                                   .where = "autograd/ops/dropout.c, dropout_backward",
                                   .lesson = 4,
                                   .step = "b7.0"};

/* ---- 13 sgd: v = momentum v + g, theta = theta - lr v -----------------------------------------
 */

#define SGD                                                                                        \
    int n, double lr, double momentum, double theta[n], double velocity[n], const double g[n]

static void sgd_right_step(SGD) {
    for (int i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + g[i];
        theta[i] -= lr * velocity[i];
    }
}
static void sgd_dampened(SGD) {
    for (int i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + (1 - momentum) * g[i];
        theta[i] -= lr * velocity[i];
    }
}
static void sgd_lr_in_velocity(SGD) {
    for (int i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + lr * g[i];
        theta[i] -= velocity[i];
    }
}
static void sgd_minus_lr_in_velocity(SGD) {
    for (int i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] - lr * g[i];
        theta[i] += velocity[i];
    }
}
static void sgd_ascent(SGD) {
    for (int i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + g[i];
        theta[i] += lr * velocity[i];
    }
}
static void sgd_nesterov(SGD) {
    for (int i = 0; i < n; i++) {
        velocity[i] = momentum * velocity[i] + g[i];
        theta[i] -= lr * (g[i] + momentum * velocity[i]);
    }
}
static void sgd_velocity_after(SGD) {
    for (int i = 0; i < n; i++) {
        theta[i] -= lr * velocity[i];
        velocity[i] = momentum * velocity[i] + g[i];
    }
}

static const KnownMistake sgd_mistakes[] = {
    {"dampened", (Function *)sgd_dampened,
     "velocity = momentum velocity + (1 - momentum) g, a moving mean of the gradients.",
     "By what is g multiplied in the formula above the function?", NULL},
    {"lr_in_velocity", (Function *)sgd_lr_in_velocity,
     "velocity = momentum velocity + lr g, and theta = theta - velocity.",
     "After lr changes, with which lr do the gradients of earlier steps count in theta?", NULL},
    {"lr_in_velocity", (Function *)sgd_minus_lr_in_velocity,
     "velocity = momentum velocity - lr g, and theta = theta + velocity.",
     "After lr changes, with which lr do the gradients of earlier steps count in theta?", NULL},
    {"ascent", (Function *)sgd_ascent, "theta = theta + lr velocity.",
     "Does a step along the gradient make the loss larger or smaller?", NULL},
    {"nesterov", (Function *)sgd_nesterov,
     "theta = theta - lr (g + momentum velocity): a step with momentum applied once more.",
     "Which number moves theta in the formula above the function?", NULL},
    {"velocity_after", (Function *)sgd_velocity_after,
     "theta = theta - lr velocity with the velocity from before the step.",
     "In the first step velocity is 0. Should theta move?", NULL},
    {0}};

static void sgd_call(Function *f, const Call *c) {
    ((__typeof__(sgd_step) *)f)(c->size[0], c->number[0], c->number[1], c->array[0], c->array[1],
                                c->array[2]);
}

/* No op of the library: nn/sgd.c keeps the velocity to itself. test_exercises compares this loop
 * with the optimizer of nn. */
static void sgd_right(const Call *c) { sgd_call((Function *)sgd_right_step, c); }

/* torch keeps no velocity where momentum is 0. */
static bool sgd_compares(const Call *c, int array) { return array != 1 || c->number[1] != 0; }

static void sgd_prepare(Call *c, const Sizes *sizes, Random *random) {
    const double momentum[] = {0.9, 0.5, 0, 0.9};
    double *velocity = c->array[1];
    c->number[0] = 0.1;
    c->number[1] = momentum[sizes->variant];
    for (int i = 0; i < c->size[0]; i++) velocity[i] = 0;
}

static const Sizes sgd_inputs[] = {{{4}, 1, 0}, {{3}, 1, 1},     {{3}, 1, 2},    {{1}, 1, 3},
                                   {{6}, 0, 1}, {{LARGE}, 1, 0}, {{5}, TINY, 1}, {{0}, 0, 0}};

const Exercise exercise_sgd = {.number = 13,
                               .name = "sgd",
                               .function = "sgd_step",
                               .parameter = {{"n", SIZE, 0, 0},
                                             {"lr", DOUBLE, 0, 0},
                                             {"momentum", DOUBLE, 0, 0},
                                             {"theta", STATE, 0, "n"},
                                             {"velocity", STATE, 0, "n"},
                                             {"g", INPUT, 0, "n"}},
                               .inputs = sgd_inputs,
                               .steps = 5,
                               .prepare = sgd_prepare,
                               .call = sgd_call,
                               .right = sgd_right,
                               .compares = sgd_compares,
                               .mistakes = sgd_mistakes,
                               .where = "nn/sgd.c, move_sgd",
                               .lesson = 6,
                               .step = "b0.1",
                               .lesson_note = "its steps have no momentum"};
