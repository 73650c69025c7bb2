/* lesson4.c - one x, three uses: self-attention with dropout, where x.grad has three parts. */
#include "experiments.h"
#include "tell.h"

#include <math.h>

/* The softmax of the scores, with the causal mask or without a mask. */
static Tensor *weights(const Lesson *l, Tensor *scores) {
    if (l->options.causal)
        return ag_attention_weights(scores, 1, (AttentionMask){.causal = true}, 1);
    return ag_softmax(scores, -1);
}

/* x (1, T, d) -> Y (1, T, d) */
static Tensor *build(Lesson *l) {
    const int64_t T = l->options.tokens, d = l->options.size;
    Tensor *x = lesson_draw(l, "x", 1, SHAPE(1, T, d));
    Tensor *w_q = lesson_draw(l, "W_q", 0.5, SHAPE(d, d));
    Tensor *w_k = lesson_draw(l, "W_k", 0.5, SHAPE(d, d));
    Tensor *w_v = lesson_draw(l, "W_v", 0.5, SHAPE(d, d));
    Tensor *t = lesson_data(l, "T", 1, SHAPE(1, T, d));
    Tensor *q = ag_name(ag_linear(x, w_q, NULL), "Q");
    Tensor *k = ag_name(ag_linear(x, w_k, NULL), "K");
    Tensor *v = ag_name(ag_linear(x, w_v, NULL), "V");
    Tensor *s = ag_name(ag_bmm(q, ag_name(ag_transpose(k, 1, 2), "K'")), "S");
    if (!l->options.no_scale) s = ag_name(ag_scale(s, lesson_scale(l)), "S / sqrt(d)");
    Tensor *a = ag_name(weights(l, s), "A");
    if (l->options.dropout > 0) a = ag_name(ag_dropout(a, l->options.dropout), "dropout(A)");
    return lesson_loss(ag_name(ag_bmm(a, v), "Y"), t, NULL);
}

/* ---- the texts ------------------------------------------------------------------------------- */

/* The sum of the sizes of a part of the gradient of x. */
static double size_of_part(const char *made) {
    double sum = 0;
    for (int64_t i = 0; i < size_of("x"); i++) sum += fabs(lesson_part(made, "x", i));
    return sum;
}

static const char *const uses[] = {"V", "K", "Q", NULL}; /* in the order of backward */

static int largest_part(void) {
    int most = 0;
    for (int i = 1; i < 3; i++)
        if (size_of_part(uses[i]) > size_of_part(uses[most])) most = i;
    return most;
}

static void begin(Lesson *l) {
    cover(l, "A", 0,
          "The words ask, answer and are the answer: the same `x` goes into `Q`, into `K` and into "
          "`V`. So it changes the loss in three ways. On the way back, watch what comes to "
          "`x`, three times.");
    if (size_of_part("V") > 0 && largest_part() == 0)
        bet(l, step_addition("Q", "x"), uses, 0,
            "On the way to `Q` and to `K` stands softmax, which lets at most a quarter of a gradient "
            "through. `V` is behind no softmax. Through which of the three does most of the gradient "
            "of `x` come?");
}

static void tell_projections(Lesson *l) {
    say(l, step_forward("Q"), LARGEST,
        "Each row of `x` is a word. The matrix `W_q` makes of it what the word is looking for: "
        "one number for \"{row}\" is {}. Remember this arrow: it is the first of three that "
        "leave `x`.");
    say(l, step_forward("K"), LARGEST,
        "The same `x`, another matrix: what each word has to offer. For \"{row}\" one number is "
        "{}.");
    say(l, step_forward("V"), LARGEST,
        "And a third time: what each word will say if it is looked at, such as the {} of "
        "\"{row}\". Three lines of the tape have now read `x`.");
}

static void tell_scores(Lesson *l) {
    const int64_t s = largest_value("S");
    say(l, step_forward("K'"), 0,
        "The keys stand as columns, for the product. The first number is {}, as before.");
    say(l, step_forward("S"), LARGEST,
        "Every word meets every word, itself among them: that is why it is called "
        "self-attention. The score farthest from 0 is {}, of \"{row}\" with \"{column}\".");
    say(l, step_forward("S / sqrt(d)"), s, "Divided by sqrt(d), here %s.",
        show_divided(number(sqrt((double)l->options.size)), value_of("S", s),
                     value_of("S / sqrt(d)", s)));
}

static int64_t count_dropped(void) {
    int64_t count = 0;
    for (int64_t i = 0; i < size_of("dropout(A)"); i++)
        count += lesson_value("dropout(A)", i) == 0 && lesson_value("A", i) != 0;
    return count;
}

static void tell_weights(Lesson *l) {
    const int64_t a = largest_in_row("A", 0);
    const double p = l->options.dropout;
    say(l, step_forward("A"), a,
        "Softmax makes weights of each row of scores, with the sum 1.%s \"%s\" gives most to "
        "\"{column}\": {}.",
        l->options.causal ? " No word may look at a later one: there the weight is 0." : "",
        word_of(l, 0));
    say(l, step_forward("dropout(A)"), LARGEST,
        "In training, dropout makes each weight 0 with probability %s, here %d of %d: so the "
        "model learns not to rely on one word alone. The others are divided by %s, which is "
        "times %s, so that the mean stays%s.",
        show(p), (int)count_dropped(), (int)size_of("A"), show(1 - p), show(1 / (1 - p)),
        show_kept(l));
    say(l, step_forward("Y"), LARGEST,
        "The output of a word is the sum of the values, each times its weight. For \"{row}\" one "
        "number is {}.");
}

static void tell_softmax(Lesson *l) {
    const int64_t a = largest_visible_grad(lesson_weights(l));
    const double p = l->options.dropout;
    say(l, step_backward("Y", lesson_weights(l)), a,
        "How does the loss change with a weight? The row \"{row}\" of `dY` meets the row "
        "\"{column}\" of `V`, and gives {}.");
    say(l, step_backward("Y", "V"), LARGEST,
        "And with a value? It gets the gradients of the words that looked at it, times their "
        "weights. \"{row}\" gets {}.");
    say(l, step_backward("dropout(A)", "A"), LARGEST,
        "A weight that was dropped had no effect: whatever arrives, its gradient is exactly 0. "
        "The others were divided by %s, and so are their gradients%s.",
        show(1 - p), show_kept_grad(l));
    say(l, step_backward("A", lesson_scores(l)), LARGEST,
        "The weight, times how far its `dA` is above the weighted mean of the row, the sum of "
        "`A` x `dA`: {slope}. Each row sums to 0: attention can only be moved, not made.");
}

static void tell_factors(Lesson *l) {
    say_scale_backward(l);
    say(l, step_backward("S", "Q"), LARGEST,
        "To the queries: each gets a term from every key. \"{row}\" gets {}.");
    say(l, step_backward("S", "K'"), LARGEST,
        "To the keys, which still stand as columns: the number farthest from 0 is {}.");
    say(l, step_backward("K'", "K"), LARGEST, "Turned back into rows: \"{row}\" has {}.");
}

/* What came to the number of x that the lesson follows. */
static void tell_x(Lesson *l) {
    const int64_t x = largest_grad("x"), most = largest_part();
    const char *word = word_of(l, x / l->options.size);
    say(l, step_backward("V", "x"), LARGEST,
        "The first arrival. `V` was `x` times a matrix, and through this matrix the gradient "
        "returns: {part} for \"%s\". It is not yet the gradient of `x`: two more parts are to "
        "come.",
        word);
    say(l, step_backward("V", "W_v"), LARGEST,
        "The matrix gets its gradient from every word, added up: {} is the number farthest from "
        "0.");
    say(l, step_backward("K", "x"), LARGEST, "The second arrival, from `K`: {part}.");
    say(l, step_addition("K", "x"), LARGEST,
        "It is added to the first: %s. A program that wrote = in place of += would now have lost "
        "what came from `V`.",
        show_sum(part_of("V", "x", x), part_of("K", "x", x),
                 number(lesson_part("V", "x", x) + lesson_part("K", "x", x))));
    say(l, step_backward("K", "W_k"), LARGEST,
        "The matrix of the keys gets its own gradient: farthest from 0 is {}.");
    say(l, step_backward("Q", "x"), LARGEST, "The third arrival, from `Q`: {part}.");
    say(l, step_addition("Q", "x"), LARGEST,
        "Now it is complete: %s. `x` changed the loss in three ways, so its gradient is a sum of "
        "three parts.%s%s%s",
        show_sum_of_uses(part_of("V", "x", x), part_of("K", "x", x), part_of("Q", "x", x),
                         grad_of("x", x)),
        size_of_part(uses[most]) > 0 ? " Over the whole of `x`, most of it came through `" : "",
        size_of_part(uses[most]) > 0 ? uses[most] : "", size_of_part(uses[most]) > 0 ? "`." : "");
    say(l, step_backward("Q", "W_q"), LARGEST,
        "And last the matrix of the queries: farthest from 0 is {}. Now everything that learns "
        "has its gradient.");
}

static void tell(Lesson *l) {
    tell_projections(l);
    tell_scores(l);
    tell_weights(l);
    say_loss(l, "what the output should be");
    say_loss_backward(l, "Y");
    tell_softmax(l);
    tell_factors(l);
    tell_x(l);
}

/* What does dropout make of a weight that it keeps? */
static void ask_kept(Lesson *l) {
    const double p = l->options.dropout, weight = 0.3, others[] = {1, 1 - p, 1 / (1 - p)};
    const char *options[4] = {NULL};
    if (p < 0.01) return;
    for (int i = 0; i < 3; i++) options[i] = text_of("%.3g", weight * others[i]);
    ask_choice(l, step_forward("dropout(A)"), options, 2,
               text_of("It is divided by %g: %g becomes %s. Of many weights the mean stays.", 1 - p,
                       weight, options[2]),
               "Some weights become 0. What must become of the others, so that the mean stays?",
               text_of("Dropout keeps a weight of %g. What does it become?", weight));
}

static void ask(Lesson *l) {
    static const char *const options[] = {"three", "four", "five", "one for each word", NULL};
    if (l->options.dropout > 0)
        ask_zeros(l, step_backward("dropout(A)", "A"), "A",
                  "A weight that did not reach `Y` cannot change the loss.",
                  "Which cells of the gradient of `A` must be 0?");
    else
        ask_count(l, step_backward("Q", "W_q"), 0,
                  "`W_q` multiplies every word. Which numbers of `x` does this number of `W_q` "
                  "multiply?",
                  "How many terms does the gradient of the first number of `W_q` have?");
    const int64_t i = other_than(largest_grad("x"));
    ask_number(l, step_addition("Q", "x"), "x", "grad", i,
               "Find the part of this number in each of the steps that came to `x`, and add them.",
               text_of("What is the gradient of the %s number of `x`?", place_of(i)));
    ask_choice(l, step_addition("Q", "x"), options, 1,
               "The sum would read x, as the lines of Q, K and V do.",
               "A gradient gets a part from each line that reads the tensor. Count the lines.",
               "Many models add `x` to the output, `Y` + `x`. With such a line on the tape, how "
               "many parts would the gradient of `x` have?");
    ask_kept(l);
}

/* ---- an experiment --------------------------------------------------------------------------- */

/* Attention with all matrices times `times`, and with + x if a fourth use is given: each use of x
 * is a leaf of its own, so its gradient is a part of dx. uses: V, K, Q, and + x or NULL. */
static void run_uses(const Experiment *x, Tensor *const use[4], double times) {
    Tensor *w[3];
    for (int i = 0; i < 3; i++) w[i] = ag_scale(x->taken[i + 1], times);
    Tensor *v = ag_linear(use[0], w[0], NULL);
    Tensor *k = ag_linear(use[1], w[1], NULL);
    Tensor *s = ag_bmm(ag_linear(use[2], w[2], NULL), ag_transpose(k, 1, 2));
    Tensor *y = ag_bmm(weights(x->lesson, ag_scale(s, lesson_scale(x->lesson))), v);
    ag_backward(lesson_loss(use[3] ? ag_add(y, use[3]) : y, x->taken[4], NULL));
}

/* A row of the table: the lengths of the parts of dx, and of dx. Returns the last. */
static double show_parts(Experiment *x, double times, bool is_residual) {
    Tensor *use[4] = {NULL};
    const int uses_of_x = is_residual ? 4 : 3;
    tape_begin();
    for (int i = 0; i < uses_of_x; i++)
        use[i] = ag_requires_grad(tape_own(tensor_clone(x->taken[0])));
    run_uses(x, use, times);
    Tensor *dx = NULL;
    for (int i = 0; i < 4; i++) {
        if (i == 3 && !is_residual) experiment_cell(x, "%s", "");
        else if (!tensor_error()) experiment_number(x, tensor_norm(use[i]->grad), 3);
        if (use[i] && !tensor_error()) dx = dx ? ag_add(dx, use[i]->grad) : use[i]->grad;
    }
    const double length = dx && !tensor_error() ? tensor_norm(dx) : (double)NAN;
    experiment_number(x, length, 3);
    tape_end();
    return length;
}

static void run_residual(Experiment *x) {
    static const double times[] = {2, 1, 0.5, 0.2, 0.1, 0.01};
    experiment_lead(
        x, 1, "all matrices times",
        "Most models add `x` to the output: `Y` + `x`. Then `dx` has a fourth part. How long is "
        "each, and what is left of `dx` if the matrices are small?%s",
        x->lesson->options.dropout > 0 ? " (Without dropout.)" : "");
    for (int i = 0; i < (int)(sizeof times / sizeof *times) && !tensor_error(); i++) {
        experiment_position(x, "%g", times[i]);
        const double without = show_parts(x, times[i], false), with = show_parts(x, times[i], true);
        if (without < 0.1 * with && times[i] < 1)
            experiment_says(
                x, "Through small matrices almost nothing comes back. The sum passes `dY` to "
                   "`x` unchanged: that is how gradients reach the first of many layers.");
        else
            experiment_says(
                x, "The sum passes `dY` to `x` unchanged, beside what comes through the three "
                   "matrices.");
    }
}

const ExperimentKind experiment_residual = {
    .lesson = 4,
    .title = "What does a residual, `Y` + `x`, add to `dx`?",
    .phase = 'a',
    .made = "Q",
    .input = "x",
    .takes = {"x", "W_v", "W_k", "W_q", "T"},
    .rows = {"`Y`", "`Y` + `x`"},
    .columns = {"from `V`", "from `K`", "from `Q`", "from + `x`", "`dx`"},
    .kinds = "nnnnn",
    .run = run_residual,
};

const LessonKind lesson_4 = {
    .number = 4,
    .title = "One x, three uses",
    .hook = "One x, three uses",
    .idea = "Where a value is used several times, its gradients are added.",
    .source = "Multi-Head Self-Attention, one head, without biases; Vaswani et al. 2017",
    .exercise = "06_dropout",
    .columns = "",
    .formula = {"Q = x W_q',  K = x W_k',  V = x W_v'", "S = Q K',  A = softmax(S / sqrt(d))",
                "Y = dropout(A) V", "loss = sum((Y - T)^2)", "dx = 0 + from V + from K + from Q"},
    .word_rows = {"x", "Q", "K", "V", "S", "S / sqrt(d)", "A", "dropout(A)", "Y", "T", "E", "E^2"},
    .word_columns = {"K'", "S", "S / sqrt(d)", "A", "dropout(A)"},
    .shorts = {{"S / sqrt(d)", "Z"}, {"dropout(A)", "A_p"}},
    .card = {"V", "dropout(A)", "A", "S / sqrt(d)", "K", "W_q", "x"},
    .own = {.tokens = 3, .size = 2, .dropout = 0.25, .seed = 11},
    .rates = {0.02, 0.05, 0.3},
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
