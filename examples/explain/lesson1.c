/* lesson1.c - one weight: the attention of Nadaraya and Watson, with one number to learn. */
#include "lesson.h"

#include <math.h>

#define RATE 0.1 /* of the step of SGD in the text */

/* The notebook's curve: a measured value is a point of this curve plus noise. */
static double curve(double x) { return 2 * sin(x) + pow(x, 0.8); }

static double tenths(double x) { return round(x * 10) / 10; }

/* x (Q, 1), keys (1, K), values (K, 1), w (1) -> (Q, 1) */
static Tensor *pool(Tensor *x, Tensor *keys, Tensor *values, Tensor *w) {
    Tensor *D = ag_name(ag_sub(x, keys), "D"); /* (Q, K), like U, S and A */
    Tensor *U = ag_name(ag_mul(D, w), "U");
    Tensor *S = ag_name(ag_scale(ag_name(ag_square(U), "U^2"), -0.5), "S");
    Tensor *A = ag_name(ag_softmax(S, 1), "A");
    return ag_name(ag_matmul(A, values), "Y");
}

/* Keys at 0, 1, 2, ...; queries between them; values with noise. All have one decimal. */
static Tensor *build(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    Tensor *x = lesson_own(l, "x", tensor_zeros(SHAPE(Q, 1)));
    Tensor *T = lesson_own(l, "T", tensor_zeros(SHAPE(Q, 1)));
    Tensor *keys = lesson_own(l, "keys", tensor_zeros(SHAPE(1, K)));
    Tensor *values = lesson_own(l, "values", tensor_normal(0, 0.3, SHAPE(K, 1)));
    Tensor *w = lesson_leaf(l, "w", tensor_full(SHAPE(1), 0.8));
    for (int64_t q = 0; q < Q && !tensor_error(); q++) {
        const double at = tenths(((double)q + 0.3) * (double)K / (double)Q);
        tensor_set(x, at, q, 0);
        tensor_set(T, tenths(curve(at)), q, 0);
    }
    for (int64_t k = 0; k < K && !tensor_error(); k++) {
        tensor_set(keys, (double)k, 0, k);
        tensor_set(values, tenths(curve((double)k) + tensor_get(values, k, 0)), k, 0);
    }
    return lesson_loss(pool(x, keys, values, w), T);
}

/* The loss with another w. */
static double loss_at(double number) {
    tape_begin_no_grad();
    Tensor *w = tape_own(tensor_full(SHAPE(1), number));
    Tensor *y = pool(lesson_tensor("x"), lesson_tensor("keys"), lesson_tensor("values"), w);
    const double loss = tensor_item(lesson_loss(y, lesson_tensor("T")));
    tape_end();
    return loss;
}

static void tell(Lesson *l) {
    const double w = lesson_value("w", 0), dw = lesson_grad("w", 0);
    const int uses = (int)(l->options.queries * l->options.keys);
    say(l, "A query `x` asks: how large is y here? Measured pairs help to answer: the `keys` are "
           "the places, the `values` the numbers that were measured there. A key near `x` gets a "
           "large weight in `A`, and the answer `Y` is the weighted mean of the values. One number "
           "is learned, `w`: the larger `w` is, the more weight the nearest keys get.");
    say(l, "Step forward first: each line of the tape makes one table from tables above it. Then "
           "step backward: each line receives the gradient of its result and hands a gradient to "
           "each of its inputs, until `w` is reached.");
    say(l,
        "`w` is one number, but it multiplies all %d differences in `D`. So its gradient is a sum "
        "of terms, one from each cell of `U`: %.2f. A step of SGD subtracts the gradient times a "
        "learning rate: with a rate of %g, `w` goes from %.2f to %.2f, and the loss from %.2f to "
        "%.2f.",
        uses, dw, RATE, w, w - RATE * dw, lesson_value("loss", 0), loss_at(w - RATE * dw));
}

static void ask(Lesson *l) {
    static const char *const options[] = {"It becomes larger.", "It becomes smaller.",
                                          "It stays the same.", NULL};
    const double dw = lesson_grad("w", 0);
    const char *why = "SGD subtracts the gradient times the learning rate, so w moves against the "
                      "sign of its gradient.";
    const int away = dw > 0 ? 1 : 0;
    ask_number(l, "Y", "grad", 0,
               "The loss is the sum of `E^2`, and `E` = `Y` - `T`. What is the gradient of the "
               "first number of `Y`? Compute it from `Y` and `T`.");
    ask_count(l, "U", "w", 0, "How many terms, other than 0, does the gradient of `w` have?");
    ask_choice(l, options, dw == 0 ? 2 : away, why,
               "Look at the gradient of `w`. What does a step of SGD do to `w`?");
}

const LessonKind lesson_1 = {
    .title = "One weight",
    .idea =
        "A number that is used many times gets a gradient from every use; the gradients add up.",
    .source = "d2l.ai: Parametric Attention Pooling; Nadaraya 1964, Watson 1964",
    .columns = "",
    .formula = {"f(x) = sum_i softmax(-((x - x_i) w)^2 / 2) y_i",
                "D = x - keys,  U = D w,  S = -U^2 / 2", "A = softmax(S),  Y = A values",
                "loss = sum((Y - T)^2)"},
    .own = {.queries = 3, .keys = 4, .seed = 4},
    .build = build,
    .tell = tell,
    .ask = ask,
};
