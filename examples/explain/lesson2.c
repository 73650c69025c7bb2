/* lesson2.c - from scores to output: one head of attention, and the three rules of its backward. */
#include "lesson.h"

#include <math.h>

enum { VALUES = 2 }; /* the size of a value */

/* Q (Q, d), K (K, d), V (K, 2) -> Y (Q, 2) */
static Tensor *build(Lesson *l) {
    const int64_t d = l->options.size, K = l->options.keys;
    Tensor *q = lesson_draw(l, "Q", 1, SHAPE(l->options.queries, d));
    Tensor *k = lesson_draw(l, "K", 1, SHAPE(K, d));
    Tensor *v = lesson_draw(l, "V", 1, SHAPE(K, VALUES));
    Tensor *t = lesson_data(l, "T", 1, SHAPE(l->options.queries, VALUES));
    Tensor *s = ag_name(ag_matmul(q, ag_name(ag_transpose(k, 0, 1), "K'")), "S");
    if (!l->options.no_scale) s = ag_name(ag_scale(s, lesson_scale(l)), "S / sqrt(d)");
    Tensor *a = ag_name(ag_softmax(s, 1), "A");
    return lesson_loss(ag_name(ag_matmul(a, v), "Y"), t);
}

/* The rule of softmax for the first number of the last row, in the numbers of this example. */
static const char *in_numbers(const Lesson *l) {
    enum { TEXT = 400, FEW = 4 }; /* the mean of more numbers would be a long line */
    static char text[TEXT];
    const char *scores = l->options.no_scale ? "S" : "S / sqrt(d)";
    const int64_t K = l->options.keys, first = (l->options.queries - 1) * K;
    double mean = 0;
    for (int64_t i = first; i < first + K; i++) mean += lesson_value("A", i) * lesson_grad("A", i);
    int n = snprintf(text, TEXT, "At [%d, 0] this is %.3g x (%.3g %c %.3g) = %.3g",
                     (int)l->options.queries - 1, lesson_value("A", first), lesson_grad("A", first),
                     mean < 0 ? '+' : '-', fabs(mean), lesson_grad(scores, first));
    if (K <= FEW) n += snprintf(text + n, TEXT - (size_t)n, "; the mean, %.3g, is", mean);
    for (int64_t i = first; i < first + K && K <= FEW; i++)
        n += snprintf(text + n, TEXT - (size_t)n, "%s %.3g x %.3g", i > first ? " +" : "",
                      lesson_value("A", i), lesson_grad("A", i));
    snprintf(text + n, TEXT - (size_t)n, ".");
    return text;
}

static void tell(Lesson *l) {
    const int d = (int)l->options.size;
    say(l,
        "Attention looks up values, and returns a weighted mean of them. The product of a query, a "
        "row of `Q`, with a key, a row of `K`, is a score, and `S` holds all scores. Softmax "
        "computes weights from each row of scores, positive weights with the sum 1, and the output "
        "`Y` is the mean of the values, the rows of `V`, with these weights.");
    say(l,
        "A product `Y` = `A` `V` has a gradient for each factor, dA = dY V' and dV = A' dY: dY "
        "times the other factor, transposed (' means transposed). The gradient of the input of "
        "softmax, `%s`, is A (dA - sum(A dA)): the gradient of a score is its weight times the "
        "difference of its dA and the mean of dA in the row, weighted by A. %s",
        l->options.no_scale ? "S" : "S / sqrt(d)", in_numbers(l));
    if (l->options.no_scale)
        say(l,
            "Here the scores are not divided by sqrt(d). A score is a sum of d = %d products; "
            "the more products, the larger the scores, and the nearer the weights are to 0 and "
            "1. Then the scores get almost no gradient, as the rule of softmax says. For "
            "programmers: compare with `build/explain --lesson 2`.",
            d);
    else
        say(l,
            "Why 1 / sqrt(d)? A score is a sum of d = %d products, so a score grows with d. If the "
            "scores are large, the weights are near 0 and 1, and then the scores get almost no "
            "gradient, as the rule of softmax says. For programmers: `build/explain --lesson 2 "
            "--no-scale` shows the same example without the scale.",
            d);
}

static void ask(Lesson *l) {
    static const char *const options[] = {"0", "1", "the loss", "it depends on the row", NULL};
    ask_number(l, "A", "grad", 0,
               "dA = dY V'. What is the gradient of the first number of `A`? Compute it from the "
               "first row of the gradient of `Y` and the first row of `V`.");
    ask_choice(l, options, 0,
               "If the same number is added to all scores of a row, its weights do not change, "
               "and the loss does not change.",
               "Go to the backward step of softmax. What is the sum of a row of the gradient of "
               "the scores?");
    ask_count(l, "S", "Q", 0,
              "`S` = `Q` `K'`. How many terms does the gradient of the first number of `Q` have?");
}

const LessonKind lesson_2 = {
    .title = "Scores to output",
    .idea = "Attention is two products with a softmax between them, and backward needs one rule "
            "for each kind.",
    .source = "Scaled dot-product attention: Vaswani et al. 2017, section 3.2.1",
    .columns = "",
    .formula = {"Y = softmax(Q K' / sqrt(d)) V", "S = Q K'", "A = softmax(S / sqrt(d))", "Y = A V",
                "loss = sum((Y - T)^2)"},
    .own = {.queries = 2, .keys = 3, .size = 4, .seed = 2},
    .rate = 0.02,
    .build = build,
    .tell = tell,
    .ask = ask,
};
