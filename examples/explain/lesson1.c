/* lesson1.c - one weight: the attention of Nadaraya and Watson, with one number to learn. */
#include "lesson.h"

#include <math.h>

#define RATE 0.1 /* the learning rate in the text */

/* The notebook's curve: a measured value is a point of this curve plus noise. */
static double curve(double x) { return 2 * sin(x) + pow(x, 0.8); }

static double tenths(double x) { return round(x * 10) / 10; }

/* queries (Q, 1), keys (1, K), values (K, 1), w (1) -> (Q, 1) */
static Tensor *pool(Tensor *queries, Tensor *keys, Tensor *values, Tensor *w) {
    Tensor *D = ag_name(ag_sub(queries, keys), "D"); /* (Q, K), like U, S and A */
    Tensor *U = ag_name(ag_mul(D, w), "U");
    Tensor *S = ag_name(ag_scale(ag_name(ag_square(U), "U^2"), -0.5), "S");
    Tensor *A = ag_name(ag_softmax(S, 1), "A");
    return ag_name(ag_matmul(A, values), "Y");
}

/* The keys are 0, 1, ..., K - 1, the queries are spread from 0 to K, and the values have noise. All
 * numbers have one decimal. */
static Tensor *build(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    Tensor *queries = tensor_zeros(SHAPE(Q, 1));
    Tensor *T = tensor_zeros(SHAPE(Q, 1));
    Tensor *keys = tensor_zeros(SHAPE(1, K));
    Tensor *values = tensor_normal(0, 0.3, SHAPE(K, 1));
    for (int64_t q = 0; q < Q && !tensor_error(); q++) {
        const double at = tenths(((double)q + 0.3) * (double)K / (double)Q);
        tensor_set(queries, at, q, 0);
        tensor_set(T, tenths(curve(at)), q, 0);
    }
    for (int64_t k = 0; k < K && !tensor_error(); k++) {
        tensor_set(keys, (double)k, 0, k);
        tensor_set(values, tenths(curve((double)k) + tensor_get(values, k, 0)), k, 0);
    }
    queries = lesson_own(l, "queries", queries);
    T = lesson_own(l, "T", T);
    keys = lesson_own(l, "keys", keys);
    values = lesson_own(l, "values", values);
    Tensor *w = lesson_leaf(l, "w", tensor_full(SHAPE(1), 0.8));
    return lesson_loss(pool(queries, keys, values, w), T);
}

/* The loss with another w. */
static double loss_at(double number) {
    tape_begin_no_grad();
    Tensor *w = ag_to(tape_own(tensor_full(SHAPE(1), number)), lesson_tensor("w")->dtype);
    Tensor *y = pool(lesson_tensor("queries"), lesson_tensor("keys"), lesson_tensor("values"), w);
    const double loss = tensor_item(lesson_loss(y, lesson_tensor("T")));
    tape_end();
    return loss;
}

static void tell(Lesson *l) {
    say(l,
        "Each of the `queries` asks: how large is the value here? Measured pairs help to "
        "answer: the `keys` are the places, the `values` the numbers that were measured there. A "
        "key near the query gets a large weight in `A`, and the answer `Y` is the mean of the "
        "values, weighted by `A`. One number is learned, `w`: the larger `w` is, the more weight "
        "the nearest keys get.");
    say(l,
        "Step forward first: each line of the tape makes one table from tables above it. A table "
        "that no line makes is a leaf; the page lists the leaves that are learned, here only `w`, "
        "and no other leaf gets a gradient. Then step backward: each line reads the gradient of "
        "its result and computes the gradients of its inputs, at last the gradient of `w`.");
    say(l,
        "`w` is one number, but it multiplies every number of `D`. So its gradient is a sum, with "
        "a term from every use. A step of SGD subtracts the gradient, times a learning rate of "
        "%g, from `w`.",
        RATE);
}

/* What would the gradient of Y be with another target? */
static void ask_target(Lesson *l) {
    const double y = lesson_value("Y", 0), t = lesson_value("T", 0), dy = lesson_grad("Y", 0);
    const double others[] = {dy - 1, dy - 2, dy, dy + 2};
    char numbers[4][32], why[256];
    const char *options[5] = {NULL};
    for (int i = 0; i < 4; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%.2f", others[i]);
        options[i] = numbers[i];
    }
    snprintf(
        why, sizeof why,
        "E would be %.2f - %.2f = %.2f, and the rule of the square is 2 x dy: 2 x %.2f = %.2f.", y,
        t + 1, y - t - 1, y - t - 1, dy - 2);
    ask_choice(
        l, options, 1, why,
        "The loss is the sum of `E^2`, and `E` = `Y` - `T`. Suppose that the first number of "
        "`T` were %.2f in place of %.2f: what would the gradient of the first number of `Y` "
        "be?",
        t + 1, t);
}

static void ask(Lesson *l) {
    static const char *const options[] = {"It becomes larger.", "It becomes smaller.",
                                          "It stays the same.", NULL};
    const double w = lesson_value("w", 0), dw = lesson_grad("w", 0);
    const double stepped = w - RATE * dw;
    const int away = dw > 0 ? 1 : 0;
    char why[256];
    ask_target(l);
    ask_count(l, "U", "w", 0, "How many terms, other than 0, does the gradient of `w` have?");
    snprintf(why, sizeof why,
             "w becomes %.2f - %g x %.2f = %.2f. With this w the loss is %.2f; it was %.2f.", w,
             RATE, dw, stepped, loss_at(stepped), lesson_value("loss", 0));
    ask_choice(l, options, dw == 0 ? 2 : away, why,
               "Look at the gradient of `w`. What does a step of SGD do to `w`?");
}

const LessonKind lesson_1 = {
    .title = "One weight",
    .idea =
        "A number that is used many times gets a gradient from every use; the gradients are added.",
    .source = "d2l.ai: Parametric Attention Pooling; Nadaraya 1964, Watson 1964",
    .columns = "",
    .formula = {"D = queries - keys,  U = D w", "S = -U^2 / 2,  A = softmax(S)", "Y = A values",
                "loss = sum((Y - T)^2)"},
    .own = {.queries = 3, .keys = 4, .seed = 4},
    .rate = RATE,
    .build = build,
    .tell = tell,
    .ask = ask,
};
