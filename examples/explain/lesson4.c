/* lesson4.c - one x, three uses: self-attention with dropout, where x.grad has three parts. */
#include "lesson.h"

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
    return lesson_loss(ag_name(ag_bmm(a, v), "Y"), t);
}

static void tell(Lesson *l) {
    const double p = l->options.dropout;
    say(l, "In self-attention the tokens look at each other: queries, keys and values are all made "
           "from the same `x`, each by a matrix of its own. So three lines of the tape read `x`.");
    say(l,
        "Backward goes from the last line to the first, and computes a part of the gradient of `x` "
        "three times: from `V`, then from `K`, then from `Q`. `x` changes the loss in these three "
        "ways, so its gradient is the sum of the three parts. The gradient begins at 0, and each "
        "part is added; backward never overwrites a gradient.");
    if (p > 0)
        say(l,
            "Dropout sets each weight to 0 with probability %g and divides the others by %g, so "
            "that the mean stays the same. Backward uses the same mask: a dropped weight had no "
            "effect, so its gradient is exactly 0; a kept weight gets its gradient divided by %g. "
            "For programmers: `build/explain --lesson 4 --seed 1` shows another draw.",
            p, 1 - p, 1 - p);
}

static void ask(Lesson *l) {
    static const char *const options[] = {"three", "four", "five", "one for each token", NULL};
    ask_choice(
        l, options, 1, "The sum would read x, as the lines of Q, K and V do.",
        "Many models add `x` to the result: `Y` + `x`. With such a line on the tape, how many "
        "lines would add to the gradient of `x`?");
    if (l->options.dropout > 0) ask_zeros(l, "A", "Which cells of the gradient of `A` must be 0?");
    else
        ask_count(l, "Q", "W_q", 0,
                  "How many terms does the gradient of the first number of `W_q` have?");
    ask_number(l, "x", "grad", 0,
               "What is the gradient of the first number of `x`? Add the parts that come from `V`, "
               "`K` and `Q`.");
}

const LessonKind lesson_4 = {
    .title = "One x, three uses",
    .idea = "Where a value is used several times, its gradients are added.",
    .source = "Multi-Head Self-Attention, one head, without biases; Vaswani et al. 2017",
    .columns = "",
    .formula = {"Q = x W_q',  K = x W_k',  V = x W_v'", "S = Q K',  A = softmax(S / sqrt(d))",
                "Y = dropout(A) V", "loss = sum((Y - T)^2)", "dx = 0 + from V + from K + from Q"},
    .own = {.tokens = 3, .size = 2, .dropout = 0.25, .seed = 11},
    .rate = 0.02,
    .build = build,
    .tell = tell,
    .ask = ask,
};
