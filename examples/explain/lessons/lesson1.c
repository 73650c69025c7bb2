/* lesson1.c - one weight: the attention of Nadaraya and Watson, with one number to learn. */
#include "experiments.h"
#include "tell.h"

#include <math.h>

#define RATE 0.1 /* the learning rate in the texts */

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
    return lesson_loss(pool(queries, keys, values, w), T, NULL);
}

static void begin(Lesson *l) {
    static const char *const options[] = {"larger", "smaller", NULL};
    const double dw = lesson_grad("w", 0);
    const int64_t q = largest_value("E"), k = largest_in_row("A", q) % columns_of("A");
    cover(
        l, NULL, 0,
        "A key is a place, and its value is the number that was measured there. A query is another "
        "place: it asks for the value there, and gets a mean of the values, in which near `keys` "
        "can count more than far ones. How much more is one number, `w`, and it can be learned.");
    cover_points(l);
    if (dw != 0 && !l->is_wrong && lesson_value("w", 0) > 0)
        bet(l, step_backward("U", "w"), options, dw > 0,
            text_of(
                "`w` is %s now: the larger `w`, the more the nearest keys count. The query at %s gets %s, "
                "and should get %s; the nearest key, %s, has the value %s. For better answers, should "
                "`w` be larger or smaller?",
                show_value("w", 0), show_value("queries", q), show_value("Y", q),
                show_value("T", q), show_value("keys", k), show_value("values", k)));
}

static void tell_forward(Lesson *l) {
    const int64_t far = largest_value("D"), near = largest_in_row("S", 0);
    const int64_t most = largest_value("E"), K = columns_of("A");
    say(l, step_forward("D"), near,
        "Each query minus each key: a row of `D` belongs to a query and a column to a key. The "
        "first query is at %s and its nearest key at %s: %s. The tape records each operation of "
        "the program as a line, and this is the first one.",
        show_value("queries", 0), show_value("keys", near),
        show_difference(value_of("queries", 0), value_of("keys", near), value_of("D", near)));
    say(l, step_forward("U"), far, "%d difference%s multiplied by the same `w`, %s.%s",
        (int)size_of("U"), size_of("U") == 1 ? " is" : "s are all",
        show_times(value_of("w", 0), value_of("D", far), value_of("U", far)),
        lesson_value("w", 0) > 0 ? " With a larger `w` every key would be farther away." : "");
    say(l, step_forward("U^2"), far,
        "Squared, so that it does not matter on which side a key is: {becomes}.");
    say(l, step_forward("S"), near,
        "Times -1/2: this is a score, 0 for a key at the very place of the query and negative "
        "for the others. The best score of the first query is {}.");
    say(l, step_forward("A"), near,
        "Softmax turns the scores of a row into weights: e to the power of each score, divided "
        "by the sum of these powers. No weight is negative, and each row sums to 1. The first "
        "query gives the key at %s the weight {}.",
        show_value("keys", near));
    say(l, step_forward("Y"), 0,
        "The answer to a query is the mean of the values, each counted with its weight. The "
        "first answer, made of %d value%s, is {}.",
        (int)K, plural(K));
    say(l, step_forward("E"), LARGEST,
        "`T` is the right answer, and `E` is how far `Y` is off. Farthest off is the answer %s: "
        "%s.",
        show_value("Y", most),
        show_difference(value_of("Y", most), value_of("T", most), value_of("E", most)));
    say(l, step_forward("E^2"), most,
        "Squared, so that too much and too little both count, and a large error counts most: "
        "{becomes}.");
    say(l, step_forward("loss"), 0,
        "The sum of the squares is the loss: one number for how wrong all answers are, {}. Now "
        "the question is: how would the loss change if `w` changed? Backward answers it, line by "
        "line.");
}

/* The weight with the steepest gradient of its score stands for all. */
static void tell_backward(Lesson *l) {
    const int64_t K = columns_of("A"), s = largest_grad("S"), q = s / K;
    const double dw = lesson_grad("w", 0);
    const char *step = "";
    say(l, step_backward("Y", "A"), s,
        "On the way to `Y` a weight multiplies a value. So the gradient of the weight is the "
        "gradient of the answer times this value: %s.",
        show_product(grad_of("Y", q), value_of("values", s % K), grad_of("A", s)));
    say(l, step_backward("A", "S"), LARGEST,
        "The weights of a row sum to 1, so none can grow alone. A score gets its weight times "
        "how far its `dA` is above the weighted mean of the row, the sum of `A` x `dA`: {slope}.");
    say(l, step_backward("S", "U^2"), s,
        "A number was multiplied by -1/2 on the way forward, and so is its gradient on the way "
        "back: {becomes}.");
    const int64_t u = largest_grad("U");
    say(l, step_backward("U^2", "U"), LARGEST,
        "A square again: twice what was squared, times what arrives: %s.",
        show_product_of_3(number(2), value_of("U", u), grad_of("U^2", u), grad_of("U", u)));
    if (dw != 0 && !l->is_wrong)
        step = text_of(" It is %s, so a %s `w` makes the loss smaller.",
                       dw > 0 ? "positive" : "negative", dw > 0 ? "smaller" : "larger");
    say(l, step_backward("U", "w"), 0,
        "`w` multiplied every number of `D`, and each use changes the loss. So the gradient of "
        "`w` is a sum with a term for each, `D` times `dU`: {}; a second backward would add them "
        "once more (lesson 6).%s",
        step);
}

static void tell(Lesson *l) {
    tell_forward(l);
    say_first_backward(l);
    tell_backward(l);
}

/* What would the gradient of Y be with another target? */
static void ask_target(Lesson *l) {
    const double y = lesson_value("Y", 0), t = lesson_value("T", 0), dy = lesson_grad("Y", 0);
    const Number off = number_with(y - t - 1, 2);
    const double others[] = {dy - 1, dy - 2, dy, dy + 2};
    const char *options[5] = {NULL};
    for (int i = 0; i < 4; i++) options[i] = text_of("%.2f", others[i]);
    ask_choice(
        l, step_backward("E", "Y"), options, 1,
        text_of("`E` would be %s, and `dY` = 2 x `E`: %s.",
                show_difference(number_with(y, 2), number_with(t + 1, 2), off),
                show_product(number(2), off, number_with(dy - 2, 2))),
        "Compute `E` with the other number, then its square's derivative.",
        text_of("Suppose that the first number of `T` were %.2f in place of %.2f: what would the "
                "gradient of the first number of `Y` be?",
                t + 1, t));
}

/* Where would a step with another gradient lead? */
static void ask_step(Lesson *l) {
    const double w = lesson_value("w", 0), dw = lesson_grad("w", 0) > 0 ? -2 : 2;
    const char *const options[] = {text_of("%.3f", w + RATE * dw), text_of("%.3f", w - RATE * dw),
                                   text_of("%.3f", w - dw), NULL};
    ask_choice(
        l, step_backward("U", "w"), options, 1,
        text_of("SGD subtracts the learning rate times the gradient: %.3f - %g x %g = %s.", w, RATE,
                dw, options[1]),
        "A gradient points to a larger loss. Mind the sign.",
        text_of(
            "A step of SGD, which comes next, subtracts from `w` its gradient times the learning rate. Suppose that "
            "`w` were %.3f, its gradient %g and the rate %g: where would `w` be then?",
            w, dw, RATE));
}

/* What do weights become if the same number is added to all scores? */
static void ask_shift(Lesson *l) {
    static const char *const options[] = {"they stay as they are", "they all grow",
                                          "the largest grows, the others shrink", NULL};
    ask_choice(
        l, step_forward("A"), options, 0,
        "Each e to the power of a score becomes e times as large, and so does their sum. The "
        "weights are their ratios.",
        "By what factor does e to the power of a score grow, and by what factor the sum?",
        "Suppose that 1 is added to every score of a row. What happens to its weights?");
}

static void ask(Lesson *l) {
    ask_target(l);
    ask_count(l, step_backward("U", "w"), 0,
              "Each number of `U` is `w` times a number of `D`, and gives a term with this number "
              "as its factor.",
              "How many terms, other than 0, does the gradient of `w` have?");
    ask_step(l);
    ask_shift(l);
}

/* ---- an experiment --------------------------------------------------------------------------- */

/* The loss, if w is larger by h. */
static double loss_beside(const Experiment *x, double h, DType dtype) {
    Tensor *in[5];
    tape_begin_no_grad();
    for (int i = 0; i < 5; i++) in[i] = ag_to(x->taken[i], dtype);
    Tensor *y = pool(in[0], in[1], in[2], ag_add_scalar(in[3], h));
    const Tensor *loss = lesson_loss(y, in[4], NULL);
    const double number = loss ? tensor_item(loss) : (double)NAN;
    tape_end();
    return number;
}

static double slope_of_loss(const Experiment *x) {
    tape_begin();
    Tensor *w = ag_requires_grad(tape_own(tensor_clone(x->taken[3])));
    Tensor *y = pool(x->taken[0], x->taken[1], x->taken[2], w);
    ag_backward(lesson_loss(y, x->taken[4], NULL));
    const double slope = lesson_element(w ? w->grad : NULL, 0);
    tape_end();
    return slope;
}

static double relu_at(double number) {
    tape_begin_no_grad();
    const Tensor *y = ag_relu(tape_own(tensor_full(SCALAR, number)));
    const double height = y ? tensor_item(y) : (double)NAN;
    tape_end();
    return height;
}

/* h is 1 / 10 to the power of `digits`. What rounding does differs from computer to computer, so
 * what is said hangs on h alone. */
static void say_of_check(Experiment *x, int digits) {
    if (digits < 3)
        experiment_says(
            x, "`h` is too large. The curve of the loss bends within it: the error falls "
               "with `h` times `h`. And `h` reaches over the kink of relu at 0, where the slope "
               "jumps from 0 to 1: no check can be right there.");
    else if (digits < 8)
        experiment_says(
            x, "In float64 both agree to 6 digits or more for some of these `h`: that is how "
               "close a check may ask for. Float32 has 7 digits in all, and loses more and more of "
               "them when two losses are subtracted.");
    else
        experiment_says(x, "`h` is too small: the two losses differ only in their last digits, and "
                           "what rounding did to them is divided by 2 `h`.");
}

static void show_errors(Experiment *x, double h, double slope) {
    const double at = 0.001; /* of relu */
    const double errors[] = {
        (loss_beside(x, h, F64) - loss_beside(x, -h, F64)) / (2 * h) / slope - 1,
        (loss_beside(x, h, F32) - loss_beside(x, -h, F32)) / (2 * h) / slope - 1,
        (relu_at(at + h) - relu_at(at - h)) / (2 * h) - 1};
    for (int i = 0; i < 3; i++) {
        const double error = fabs(errors[i]);
        if (error == 0) experiment_cell(x, "0");
        else experiment_cell(x, error < 0.1 ? "%.0e" : "%.1f", error);
    }
}

static void run_check(Experiment *x) {
    const double slope = slope_of_loss(x);
    if (!(fabs(slope) > 0.1)) return;
    experiment_lead(
        x, 1, "`h`",
        "The mark beside a rule is that of a check: it moves a number by `h` to both sides, and divides "
        "the difference of the losses by 2 `h`. How far is that from the gradient, as a share of it? relu(`x`), the "
        "larger of `x` and 0, has a kink at 0; here `x` is 0.001, and the slope is 1.");
    for (int digits = 0; digits <= 12; digits++) {
        const double h = pow(10, -digits);
        experiment_position(x, digits < 4 ? "%g" : "%.0e", h);
        show_errors(x, h, slope);
        say_of_check(x, digits);
    }
}

const ExperimentKind experiment_check = {
    .lesson = 1,
    .title = "How close must a check be?",
    .phase = 'b',
    .made = "U",
    .input = "w",
    .takes = {"queries", "keys", "values", "w", "T"},
    .rows = {"loss, float64", "loss, float32", "relu(0.001)"},
    .columns = {"error"},
    .kinds = "n",
    .run = run_check,
};

const LessonKind lesson_1 = {
    .number = 1,
    .title = "One weight",
    .hook = "One number learns",
    .idea =
        "A number that is used many times gets a gradient from every use; the gradients are added.",
    .source = "d2l.ai: Parametric Attention Pooling; Nadaraya 1964, Watson 1964",
    .exercise = "02_bias",
    .columns = "",
    .formula = {"D = queries - keys,  U = D w", "S = -U^2 / 2,  A = softmax(S)", "Y = A values",
                "loss = sum((Y - T)^2)"},
    .shorts = {{"queries", "Q"}, {"keys", "K"}, {"values", "V"}},
    .card = {"A", "S", "U^2", "U", "w"},
    .own = {.queries = 3, .keys = 4, .seed = 4},
    .rates = {RATE, 0.5, 2},
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
