/* lesson2.c - from scores to output: one head of attention, and the three rules of its backward. */
#include "experiments.h"
#include "tell.h"

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
    return lesson_loss(ag_name(ag_matmul(a, v), "Y"), t, NULL);
}

/* The lesson follows the last query, and the key that it gives the largest weight. */
static int64_t last_query(const Lesson *l) { return l->options.queries - 1; }
static int64_t best_key(const Lesson *l) {
    return largest_in_row("A", last_query(l)) % l->options.keys;
}

/* "the cat sat", or "20 words". */
static const char *sentence(const Lesson *l) {
    enum { FEW = 6 };
    const int64_t K = l->options.keys;
    const char *text = word_of(l, 0);
    for (int64_t i = 1; i < K && K <= FEW; i++) text = text_of("%s %s", text, word_of(l, i));
    return K <= FEW ? text_of("\"%s\"", text) : text_of("%d words", (int)K);
}

/* "(0.4, 1)": a row of values. */
static const char *row_of(const char *name, int64_t row) {
    return text_of("(%s, %s)", show_value(name, row * VALUES), show_value(name, row * VALUES + 1));
}

static void begin(Lesson *l) {
    static const char *const options[] = {"more", "less", NULL};
    const int64_t q = last_query(l), k = best_key(l), cell = q * l->options.keys + k;
    const double slope = lesson_grad(lesson_scores(l), cell);
    cover(
        l, "A", q,
        text_of(
            "A network reads %s. Its attention says how much \"%s\" looks at each word, and the loss "
            "how wrong its answer was.",
            sentence(l), word_of(l, q)));
    if (slope != 0 && !l->is_wrong) {
        pull(l, lesson_scores(l), cell);
        bet(l, step_backward("A", lesson_scores(l)), options, slope > 0,
            text_of(
                "\"%s\" gives %s of its attention to \"%s\". Its output is a mean of the values: %s. It "
                "should be %s, and \"%s\" has the value %s. For a smaller loss, should it give more, or "
                "less?",
                word_of(l, q), show_value("A", cell), word_of(l, k), row_of("Y", q), row_of("T", q),
                word_of(l, k), row_of("V", k)));
    }
}

/* "0.508 to "the", 0.151 to "cat" and 0.341 to "sat"" for few keys, else only the largest. */
static const char *shares(const Lesson *l, int64_t q) {
    enum { FEW = 4 };
    const int64_t K = l->options.keys, k = best_key(l);
    const char *text = "";
    if (K > FEW)
        return text_of("%s to \"%s\", more than to any other", show_value("A", q * K + k),
                       word_of(l, k));
    for (int64_t i = 0; i < K; i++) {
        const char *before = i < K - 1 ? ", " : " and ";
        text = text_of("%s%s%s to \"%s\"", text, i > 0 ? before : "", show_value("A", q * K + i),
                       word_of(l, i));
    }
    return text;
}

/* Why `Q` has fewer rows than there are words. */
static const char *asking(const Lesson *l) {
    if (l->options.queries >= l->options.keys) return "";
    return l->options.queries == 1 ? "; here only the first word asks"
                                   : "; here only the first words ask";
}

static void tell_scores(Lesson *l) {
    const int64_t d = l->options.size, K = l->options.keys, q = last_query(l), k = best_key(l);
    const int64_t cell = q * K + k;
    say(l, step_forward("K'"), k,
        "A row of `Q` is a query: what a word is looking for%s. A row of `K` is a key: what a "
        "word has to offer. To multiply each query with each key, the keys must stand as "
        "columns; nothing is computed here, each number only moves.",
        asking(l));
    say(l, step_forward("S"), cell,
        "A query times a key, number by number and added up, is a score: large where the two "
        "agree%s. The best score of \"{row}\" is {}, with \"{column}\".",
        l->options.no_scale ? ", and not divided by sqrt(d) here" : "");
    if (d > 1)
        say(l, step_forward("S / sqrt(d)"), cell,
            "A score is a sum of d = %d products, some positive and some negative, which partly "
            "cancel: so its usual size grows with sqrt(d), and not with d. Divided by sqrt(%d) = %s "
            "the scores stay small: {becomes}. On the way back you can try what that is good for.",
            (int)d, (int)d, show(sqrt((double)d)));
    else
        say(l, step_forward("S / sqrt(d)"), cell,
            "Scores are divided by sqrt(d), because a score is a sum of d products. Here d is 1, so "
            "{} stays as it is.");
}

static void tell_forward(Lesson *l) {
    const int64_t K = l->options.keys, q = last_query(l), cell = q * K + best_key(l);
    const int64_t most = largest_value("E"), y = q * VALUES;
    tell_scores(l);
    say(l, step_forward("A"), cell,
        "Softmax turns the scores of a row into weights: e to the power of each score, divided "
        "by the sum of these powers. No weight is negative, and a row sums to 1; equal scores "
        "would give each key 1 / %d. \"{row}\" gives %s.",
        (int)K, shares(l, q));
    say(l, step_forward("Y"), y,
        "A row of `V` is a value: what a word says if it is looked at. The output of a word is "
        "the mean of the values, each counted with its weight; for \"{row}\" it begins with {}. "
        "That is all that attention is: a weighted mean, and the words themselves made the "
        "weights.");
    say(l, step_forward("E"), LARGEST,
        "`T` is what the machine should have said, and `E` is how far it was off. The largest "
        "error is {}, in the row of \"{row}\".");
    say(l, step_forward("E^2"), most,
        "Squared, so that too much and too little both count, and a large error counts most: {} "
        "of all that is wrong here comes from one number.");
    say(l, step_forward("loss"), 0,
        "Added up, the machine was wrong by {}. Which of the %d numbers in `Q`, `K` and `V` are "
        "to blame, and by how much? To try out each one would take %d more runs; going backward "
        "takes one.",
        (int)(size_of("Q") + size_of("K") + size_of("V")),
        (int)(size_of("Q") + size_of("K") + size_of("V")));
}

/* What the gradient of the score means, in words. */
static const char *verdict(const Lesson *l, int64_t cell) {
    const double slope = lesson_grad(lesson_scores(l), cell);
    if (slope == 0) return "A small change of this score does not change the loss.";
    return text_of("For a smaller loss \"%s\" should give \"%s\" %s attention.",
                   word_of(l, last_query(l)), word_of(l, best_key(l)), slope > 0 ? "less" : "more");
}

static void tell_products(Lesson *l) {
    const int64_t K = l->options.keys, q = last_query(l), k = best_key(l), cell = q * K + k;
    say(l, step_backward("Y", "A"), cell,
        "The weight of \"{row}\" for \"{column}\" met the row \"{column}\" of `V`, and moves the "
        "row \"{row}\" of `Y`: that row of `dY` with that row of `V` is its gradient, {}. A product "
        "takes rows with columns; to take rows with rows, `V` is turned over.");
    say(l, step_backward("Y", "V"), k * VALUES,
        "A number of `V` met a column of `A`, and moves a column of `Y`: for the first one of "
        "\"{row}\" the two columns give {}. To take columns with columns, `A` is turned over. `V` "
        "was given, not computed: this gradient has arrived.");
}

static void tell_backward(Lesson *l) {
    const int64_t d = l->options.size, K = l->options.keys, q = last_query(l), k = best_key(l);
    const int64_t cell = q * K + k, key = k * d;
    tell_products(l);
    say(l, step_backward("A", lesson_scores(l)), cell,
        "A score that grows lets its weight grow and the others sink, each times its `dA`: "
        "together its weight times how far its `dA` is above the weighted mean, the sum of `A` x "
        "`dA`: {slope}. %s",
        verdict(l, cell));
    say(l, step_backward("S / sqrt(d)", "S"), cell,
        "Divided on the way forward, divided on the way back: {becomes}.%s",
        d > 1
            ? " All of `dS` is smaller by the same factor; but large scores would make softmax choose "
              "one key, whose weight, near 1, hardly moves: almost no gradient would come through. "
              "Divided by d, not its root, all weights would be alike."
            : "");
    say(l, step_backward("S", "Q"), q * d,
        "A query has met every key, so all scores of its row answer for it. The gradient of the "
        "first number of \"{row}\" in `Q` is a sum with a term for each of them: {}. To take rows "
        "with rows, `K'` is turned over, and that is `K` again.");
    say(l, step_backward("S", "K'"), k,
        "A key has met %d quer%s: its gradient has a term for each, and begins with {} for "
        "\"{column}\".",
        (int)l->options.queries, l->options.queries == 1 ? "y" : "ies");
    say(l, step_backward("K'", "K"), key,
        "On paper `dK` is one product: a key's column of `dS`, times the queries, gives {} and "
        "the other numbers of \"{row}\". `V` is what can be said, `Q` and `K` decide who is heard: "
        "so all three are trained. Now every number of them has its gradient.");
}

static void tell(Lesson *l) {
    tell_forward(l);
    say_first_backward(l);
    tell_backward(l);
}

static void ask(Lesson *l) {
    static const char *const options[] = {"0", "1", "the loss", "it depends on the row", NULL};
    if (last_query(l) + best_key(l) > 0) /* the text looks at another cell */
        ask_number(
            l, step_backward("Y", "A"), "A", "grad", 0,
            "Multiply the first row of `dY` with the first row of `V`, number by number, and "
            "add.",
            "What is the gradient of the first number of `A`?");
    ask_choice(l, step_backward("A", lesson_scores(l)), options, 0,
               "If the same number is added to all scores of a row, its weights do not change, "
               "and the loss does not change. So not only the best key gets a gradient: where one "
               "score should grow, the others should sink.",
               "Suppose that the same small number is added to all scores of a row. What happens "
               "to the weights, and to the loss?",
               "What is the sum of a row of the gradient of the scores?");
    ask_count(l, step_backward("S", "Q"), 0,
              "In which numbers of `S` does this number of `Q` stand?",
              "How many terms does the gradient of the first number of `Q` have?");
    if (last_query(l) > 0) /* the text is about the last row */
        ask_number(l, step_forward("Y"), "Y", "value", 0,
                   "Multiply the first row of `A` with the first column of `V`, number by number, "
                   "and add.",
                   "What is the first number of `Y`?");
}

/* ---- experiments ----------------------------------------------------------------------------- */

/* The length of each row of x, (rows, 1, n), in the order of size: the one in the middle. */
static double middle_length(Tensor *x) {
    Tensor *lengths = ag_sqrt(ag_sum_dims(ag_square(ag_detach(x)), AXES(-1), false));
    Tensor *sorted = tape_own(tensor_sort(ag_reshape(lengths, SHAPE(-1)), NULL));
    return sorted ? lesson_element(sorted, tensor_numel(sorted) / 2) : (double)NAN;
}

/* Two digits that count: 0.15, 0.0026. */
static void write_length(Experiment *x, double length) {
    const bool is_small = length > 0 && length < 0.1;
    experiment_number(x, length, is_small ? 1 - (int)floor(log10(length)) : 2);
}

/* A row of the table: the usual size of scores, the largest weight of a row, and the length of the
 * gradient, of the scores and of a query; dy arrives, with the length 1.
 * q (R, 1, d), k (R, K, d), dy (R, 1, K) */
static void measure(Experiment *x, const Tensor *queries, Tensor *k, double factor, Tensor *dy) {
    Tensor *q = ag_requires_grad(tape_own(tensor_clone(queries)));
    Tensor *z = ag_retain_grad(ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), factor));
    Tensor *a = ag_softmax(z, -1);
    Tensor *length = ag_sqrt(ag_sum_dims(ag_square(dy), AXES(-1), true));
    ag_backward_from(a, ag_div(dy, length));
    const Tensor *largest = ag_mean(ag_max_dim(ag_detach(a), -1, false));
    if (tensor_error()) return;
    experiment_number(x, tensor_norm(z) / sqrt((double)tensor_numel(z)), 2);
    experiment_number(x, tensor_item(largest), 2);
    write_length(x, middle_length(z->grad));
    write_length(x, middle_length(q->grad));
}

static void head_of_root(Experiment *x) {
    experiment_lead(
        x, 8, "`d`",
        "Random queries and keys of `d` numbers, 6 keys for each query; `dA` has the length 1. "
        "Softmax reads the scores `S`, or divides them first. How long is the gradient `dz` of a "
        "row of its scores, and how long is `dq`, that of the query (median row)? `dz` alone does "
        "not tell: there `S` / sqrt(d) and `S` / d look alike.");
    experiment_line(x, "d products add up to a size of sqrt(d)",
                    "Of both signs, they partly cancel: variances add, 1 + 1 + ... is d.");
    experiment_line(x, "`dq` = c (`dz_0` `k_0` + `dz_1` `k_1` + ...)",
                    "The factor of the scores is c, and a key has the length sqrt(d).");
    experiment_line(x, "c = 1 / sqrt(d): `dq` is about as long as `dz`",
                    "With 1 / d it sinks. With c = 1 it is the longest up to d = 32; then one key "
                    "takes all, and both go to 0.");
}

static void run_root(Experiment *x) {
    enum { ROWS = 64, KEYS = 6, MOST = 256 };
    head_of_root(x);
    tensor_manual_seed(1);
    Tensor *queries = tensor_randn(SHAPE(ROWS, 1, MOST));
    Tensor *keys = tensor_randn(SHAPE(ROWS, KEYS, MOST));
    Tensor *dy = tensor_randn(SHAPE(ROWS, 1, KEYS));
    for (int64_t d = 1; d <= MOST && !tensor_error(); d *= 2) {
        tape_begin();
        Tensor *q = ag_slice(queries, 2, 0, d);
        Tensor *k = ag_slice(keys, 2, 0, d);
        experiment_position(x, "%d", (int)d);
        measure(x, q, k, 1, dy);
        measure(x, q, k, 1 / sqrt((double)d), dy);
        measure(x, q, k, 1 / (double)d, dy);
        experiment_says(x, "%s", "");
        tape_end();
    }
    tensor_release(queries);
    tensor_release(keys);
    tensor_release(dy);
}

/* Attention with b added to every number of K: the scores, and their weights. The gradients go to
 * the leaves. */
static void attend(Tensor *const taken[4], Tensor *k, Tensor *b, double scale, Tensor *made[2]) {
    made[0] = ag_scale(ag_matmul(taken[0], ag_transpose(ag_add(k, b), 0, 1)), scale);
    made[1] = ag_softmax(made[0], 1);
    ag_backward(lesson_loss(ag_matmul(made[1], taken[2]), taken[3], NULL));
}

enum { BIAS_KEYS = EXPERIMENT_ROWS - 1, BIAS_COLUMNS = 4 };

/* A row for each key: its score, its weight, and its row of dk, of which the last row has the sum.
 */
static void show_keys(Experiment *x, Tensor *const made[2], const Tensor *dk, const Tensor *dbias) {
    const LessonOptions *o = &x->lesson->options;
    const int64_t K = o->keys, d = o->size, first = last_query(x->lesson) * K;
    double sum = 0;
    for (int64_t k = 0; k < K; k++) {
        const double weight = lesson_element(made[1], first + k);
        experiment_number(x, lesson_element(made[0], first + k), 3);
        experiment_number(x, weight, 3);
        for (int64_t c = 0; c < d && c < BIAS_COLUMNS; c++)
            experiment_number(x, lesson_element(dk, k * d + c), 3);
        sum += weight;
    }
    experiment_cell(x, "%s", "");
    experiment_number(x, sum, 3);
    for (int64_t c = 0; c < d && c < BIAS_COLUMNS; c++)
        experiment_cell(x, "%.3f", fabs(lesson_element(dbias, c)));
}

static void run_key_bias(Experiment *x) {
    const Lesson *l = x->lesson;
    const int64_t K = l->options.keys, d = l->options.size;
    if (K > BIAS_KEYS) return;
    experiment_lead(
        x, 2, "`b`",
        "Many layers add a bias. Here the number `b` is added to every number of every key: "
        "what happens to the scores and weights of \"%s\", and to `dK`? The gradient of a "
        "bias is the sum of `dK` over the keys.",
        word_of(l, last_query(l)));
    for (int64_t k = 0; k < K; k++) experiment_row(x, word_of(l, k));
    experiment_row(x, "sum");
    experiment_column(x, 'n', "score");
    experiment_column(x, 's', "weight");
    for (int64_t c = 0; c < d && c < BIAS_COLUMNS; c++)
        experiment_column(x, 'n', c == 0 ? "`dK`" : "");
    for (int b = -2; b <= 2 && !tensor_error(); b++) {
        tape_begin();
        Tensor *bias = ag_requires_grad(tape_own(tensor_full(SHAPE(d), b)));
        Tensor *k = ag_requires_grad(tape_own(tensor_clone(x->taken[1])));
        Tensor *made[2];
        attend(x->taken, k, bias, lesson_scale(l), made);
        experiment_position(x, "%d", b);
        if (!tensor_error()) show_keys(x, made, k->grad, bias->grad);
        experiment_says(
            x, "A bias adds the same to all scores of a row, and softmax sees only their "
               "differences: no weight moves. Its gradient is 0 but for rounding, so it never "
               "learns; many models leave it out.");
        tape_end();
    }
}

const ExperimentKind experiment_root = {
    .lesson = 2,
    .title = "Why the root of d?",
    .phase = 'b',
    .made = "S / sqrt(d)",
    .input = "S",
    .rows = {"`S`", "`S` / sqrt(d)", "`S` / d"},
    .columns = {"usual size", "largest weight", "length of `dz`", "length of `dq`"},
    .kinds = "nsss",
    .run = run_root,
};
const ExperimentKind experiment_key_bias = {
    .lesson = 2,
    .title = "Does a bias of the keys learn?",
    .phase = 'b',
    .made = "S",
    .input = "K'",
    .takes = {"Q", "K", "V", "T"},
    .run = run_key_bias,
};

const LessonKind lesson_2 = {
    .number = 2,
    .title = "Scores to output",
    .hook = "Where should \"%s\" look?",
    .idea = "Attention is two products with a softmax between them, and backward needs one rule "
            "for each kind.",
    .source = "Scaled dot-product attention: Vaswani et al. 2017, section 3.2.1",
    .exercise = "04_softmax",
    .columns = "",
    .formula = {"Y = softmax(Q K' / sqrt(d)) V", "S = Q K'", "A = softmax(S / sqrt(d))", "Y = A V",
                "loss = sum((Y - T)^2)"},
    .word_rows = {"Q", "K", "V", "S", "S / sqrt(d)", "A", "Y", "T", "E", "E^2"},
    .word_columns = {"K'", "S", "S / sqrt(d)", "A"},
    .shorts = {{"S / sqrt(d)", "Z"}},
    .card = {"V", "A", "S / sqrt(d)", "S", "Q", "K"},
    .own = {.queries = 2, .keys = 3, .size = 4, .seed = 2},
    .rates = {0.02, 0.2, 2},
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
