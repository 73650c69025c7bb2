/* lesson3.c - which keys may be seen: the causal mask and padding, and the kinds of zero that they
 * make. Other masks are settings: see masks.h. lesson3b.c is the second half. */
#include "experiments.h"
#include "masks.h"
#include "tell.h"

#include <math.h>

enum { VALUES = 2 }; /* the size of a value */

/* Is padding a query, and left out of the loss? */
static bool leaves_out(const Lesson *l) {
    return l->pad >= 0 && l->pad < l->options.queries && !l->options.pad_in_loss;
}

/* (1, Q, 1): 0 for padding, which is a query, too. */
static Tensor *make_counts(Lesson *l) {
    double counts[MOST_WORDS];
    for (int64_t q = 0; q < l->options.queries; q++) counts[q] = q != l->pad;
    return lesson_own(l, "counts", tensor_from_doubles(SHAPE(1, l->options.queries, 1), counts));
}

/* Q (1, Q, d), K (1, K, d), V (1, K, 2) -> Y (1, Q, 2) */
static Tensor *build(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys, d = l->options.size;
    Tensor *q = lesson_draw(l, "Q", 1, SHAPE(1, Q, d));
    Tensor *k = lesson_draw(l, "K", 1, SHAPE(1, K, d));
    Tensor *v = lesson_draw(l, "V", 1, SHAPE(1, K, VALUES));
    Tensor *t = lesson_data(l, "T", 1, SHAPE(1, Q, VALUES));
    Tensor *s = ag_name(ag_bmm(q, ag_name(ag_transpose(k, 1, 2), "K'")), "S");
    if (!l->options.no_scale) s = ag_name(ag_scale(s, lesson_scale(l)), "S / sqrt(d)");
    Tensor *a =
        l->options.no_mask ? ag_softmax(s, -1) : ag_attention_weights(s, 1, masks_make(l), 1);
    Tensor *y = ag_name(ag_bmm(ag_name(a, "A"), v), "Y");
    return lesson_loss(y, t, leaves_out(l) ? make_counts(l) : NULL);
}

/* ---- the texts ------------------------------------------------------------------------------- */

/* What a query sees: how many of its keys are not masked. */
static int64_t seen_by(const Lesson *l, int64_t q) {
    int64_t seen = 0;
    for (int64_t k = 0; k < l->options.keys; k++) seen += !masks_hide_on_tape(l, q, k);
    return q < l->options.queries ? seen : 0;
}

/* The first query that sees so many keys; -1 if there is none. */
static int64_t query_that_sees(const Lesson *l, int64_t keys) {
    for (int64_t q = 0; q < l->options.queries; q++)
        if (seen_by(l, q) == keys) return q;
    return -1;
}

static int64_t hidden(const Lesson *l) {
    int64_t cells = size_of("A");
    for (int64_t q = 0; q < l->options.queries; q++) cells -= seen_by(l, q);
    return cells;
}

/* The lesson follows the query that gives one key the steepest gradient. */
static int64_t shown_cell(const Lesson *l) { return largest_grad(lesson_scores(l)); }

static void begin(Lesson *l) {
    static const char *const options[] = {"exactly 0", "small, but not 0", "it depends on the loss",
                                          NULL};
    const int64_t last = l->options.queries - 1;
    if (l->options.no_mask) {
        cover(l, "A", last,
              "Here nothing is hidden: every word looks at every word. Switch the mask on again, "
              "and compare the zeros.");
        return;
    }
    cover(
        l, "A", last,
        text_of(
            "A model that writes must not see the next word: %s Padding, which makes the texts of a "
            "batch equally long, must not be read: here [pad] stands %s. On the way back, every exact "
            "0 has a reason: look for it.",
            l->options.causal ? "the causal mask hides from each word the words after it."
                              : "a causal mask would hide the words after each word.",
            l->options.lengths ? "at the end" : "in front"));
    if (hidden(l) > 0)
        bet(l, step_backward("A", lesson_scores(l)), options, 0,
            "A key that is hidden gets the weight 0, whatever its score is. How fast does the loss "
            "change with this score: what is its gradient?");
}

static void tell_scores(Lesson *l) {
    const int64_t cell = largest_value("S");
    say(l, step_forward("K'"), 0,
        "The keys, the rows of `K`, stand as columns for the product. Nothing is computed: {}, "
        "the first number of the first key, stays as it is.");
    say(l, step_forward("S"), LARGEST,
        "Each query times each key gives a score; bmm is a matmul for each sentence of a batch, "
        "here of one. The one farthest from 0 is {}, of \"{row}\" with \"{column}\".%s",
        hidden(l) > 0 ? " All scores are computed, also those that a mask will hide." : "");
    say(l, step_forward("S / sqrt(d)"), cell, "Divided by sqrt(d), here %s.",
        show_divided(number(sqrt((double)l->options.size)), value_of("S", cell),
                     value_of("S / sqrt(d)", cell)));
}

static void tell_weights(Lesson *l) {
    const int64_t K = l->options.keys, cell = shown_cell(l), q = cell / K;
    if (l->options.no_mask)
        say(l, step_forward("A"), cell,
            "Softmax makes weights of each row of scores, and no key is left out: \"%s\" gives "
            "\"{column}\" {}.",
            word_of(l, q));
    else
        say(l, step_forward("A"), cell,
            "Some keys are hidden: %s. Before softmax a hidden score becomes -infinity, and e to "
            "that is 0: no part of the sum, and a weight of exactly 0%s. \"%s\" sees %d of %d keys, "
            "and gives \"{column}\" {}.",
            masks_say(l),
            l->options.window ? ""
                              : "; after softmax it would be in that sum already, and the others "
                                "would not sum to 1",
            word_of(l, q), (int)seen_by(l, q), (int)K);
}

/* Why the row of padding may see nothing; "" for another row. */
static const char *why_blind(const Lesson *l, int64_t q) {
    return q == l->pad && l->options.causal && q == 0
               ? " (what comes after it is hidden, and so is padding itself)"
               : "";
}

/* The loss has one table more than in other lessons, so its words are few. */
static void tell_loss(Lesson *l) {
    const int64_t most = largest_value("E");
    if (!leaves_out(l)) {
        say_loss(l, "what the output should be");
        return;
    }
    say(l, step_forward("E"), LARGEST,
        "`E` is how far the output is off from `T`: {} is the largest error.");
    say(l, step_forward("E^2"), most, "Squared, {becomes}.");
    say(l, step_forward("counted"), l->pad * VALUES,
        "`counts` leaves out [pad]: it is a query, too, but no word, and must teach nothing.");
    say(l, step_forward("loss"), 0, "The sum of all others is the loss: {}.");
}

static void tell_forward(Lesson *l) {
    const int64_t blind = query_that_sees(l, 0);
    tell_scores(l);
    tell_weights(l);
    if (blind >= 0)
        say(l, step_forward("Y"), blind * VALUES,
            "Each output is the mean of the values that the word may see. \"%s\" may see none%s: all "
            "its weights are 0, and so is its output, {}.",
            word_of(l, blind), why_blind(l, blind));
    else
        say(l, step_forward("Y"), LARGEST,
            "Each output is the mean of the values, each counted with its weight. The number "
            "farthest from 0 is {}, in the row of \"{row}\".");
    tell_loss(l);
}

/* Why a row with a single key has the gradient 0; "" if there is no such row. */
static const char *row_of_one(const Lesson *l) {
    const int64_t one = query_that_sees(l, 1);
    const int64_t cell = one < 0 ? 0 : largest_in_row("A", one);
    if (one < 0 || lesson_value("A", cell) != 1) return "";
    return text_of(
        " \"%s\" sees one key only, and the weight of this key is 1 whatever its score is: %s.",
        word_of(l, one), show_slope("A", lesson_scores(l), cell));
}

static void tell_softmax(Lesson *l) {
    const int64_t cell = shown_cell(l), cells = hidden(l);
    if (cells == 0)
        say(l, step_backward("A", lesson_scores(l)), cell,
            "A score gets its weight times how far its `dA` is above the weighted mean of the row, "
            "the sum of `A` x `dA`: {slope}.%s",
            row_of_one(l));
    else
        say(l, step_backward("A", lesson_scores(l)), cell,
            "A score gets its weight times how far its `dA` is above the weighted mean of the row, "
            "the sum of `A` x `dA`: {slope}. %d of %d scores %s hidden: the weight there is 0, and "
            "so is the gradient.%s",
            (int)cells, (int)size_of("A"), cells == 1 ? "is" : "are", row_of_one(l));
}

static void tell_backward(Lesson *l) {
    const int64_t a = largest_visible_grad("A");
    say_loss_backward(l, "Y");
    say(l, step_backward("Y", "A"), a,
        "A row of `dY` meets a row of `V`: for \"{row}\" and \"{column}\" this gives {}.%s",
        hidden(l) > 0 ? " The product knows nothing of a mask, so the weights of hidden keys get a "
                        "gradient here, too."
                      : "");
    say(l, step_backward("Y", "V"), LARGEST,
        "A value gets the gradients of the words that looked at it, each times its weight. The "
        "gradient farthest from 0 is {}, for \"{row}\".");
    tell_softmax(l);
    say_scale_backward(l);
    say(l, step_backward("S", "Q"), LARGEST,
        "A query gets a term from each key that it met; where the gradient of the score is 0, "
        "the term is 0. \"{row}\" gets {}.");
    say(l, step_backward("S", "K'"), LARGEST,
        "A key gets a term from each query%s. The number farthest from 0 is {}.",
        hidden(l) > 0 ? ", and those that may not see it give 0" : "");
    say(l, step_backward("K'", "K"), LARGEST,
        "Turned back into rows: {} stands in the row of \"{row}\".");
}

static void tell(Lesson *l) {
    tell_forward(l);
    tell_backward(l);
}

static void ask_one_key(Lesson *l) {
    static const char *const options[] = {"1", "more than 1", "it depends on the other scores",
                                          NULL};
    const int64_t one = query_that_sees(l, 1);
    if (one < 0) return;
    ask_choice(
        l, step_forward("A"), options, 0,
        "The weights of the keys that may be seen sum to 1, and there is only one.",
        "Weights of a row are powers of e, divided by their sum. Write it down for a row "
        "with a single key.",
        text_of("\"%s\" may see one key only. Suppose that the score of this key were 100: what "
                "would its weight be?",
                word_of(l, one)));
}

static void ask(Lesson *l) {
    ask_one_key(l);
    const int64_t word = l->pad == 0; /* the first that is no padding */
    ask_count(
        l, step_backward("Y", "V"), word * VALUES,
        "A query whose weight for this key is exactly 0 gives no term.",
        text_of(
            "How many terms, other than 0, does the gradient of the first number of `V` have in "
            "the row of \"%s\"?",
            word_of(l, word)));
    ask_zeros(
        l, step_backward("A", lesson_scores(l)), lesson_scores(l),
        "The gradient is the weight times (`dA` minus the weighted mean of the row). When is one of "
        "the two factors exactly 0?",
        text_of("Which cells of the gradient of `%s` must be 0?", lesson_scores(l)));
    if (l->options.no_mask && largest_grad("A") != 0)
        ask_number(l, step_backward("Y", "A"), "A", "grad", 0,
                   "Multiply the first row of `dY` with the first row of `V`, number by number, "
                   "and add.",
                   "What is the gradient of the first number of `A`?");
}

/* ---- experiments ----------------------------------------------------------------------------- */

/* The first query that sees two keys or more, but not all: -1 if there is none. */
static int64_t half_blind_query(const Lesson *l) {
    for (int64_t q = 0; q < l->options.queries; q++) {
        int64_t seen = 0;
        for (int64_t k = 0; k < l->options.keys; k++) seen += !masks_hide(l, q, k);
        if (seen > 1 && seen < l->options.keys) return q;
    }
    return -1;
}

/* A row of weights, and its sum. */
static void show_way(Experiment *x, const Tensor *a) {
    double sum = 0;
    for (int64_t k = 0; k < x->lesson->options.keys; k++) {
        experiment_number(x, lesson_element(a, k), 2);
        sum += lesson_element(a, k);
    }
    experiment_number(x, sum, 2);
}

/* Four ways to hide keys. z: a row of scores, keep: 1 where a key may be seen, both (1, K). */
static void show_ways(Experiment *x, Tensor *z, Tensor *keep, int64_t moved) {
    Tensor *hidden = ag_logical_not(ag_to(keep, BOOL));
    Tensor *cut = ag_mul(ag_softmax(z, -1), keep);
    Tensor *again = ag_div(cut, ag_sum_dims(cut, AXES(-1), true));
    show_way(x, ag_softmax(ag_masked_fill(z, hidden, -(double)INFINITY), -1));
    show_way(x, ag_softmax(ag_mul(z, keep), -1));
    show_way(x, cut);
    show_way(x, again);
    if (isnan(lesson_element(again, moved)))
        experiment_says(x,
                        "e to the hidden score is so large that all other weights are 0 beside it: "
                        "divided by their sum, 0 / 0, they are NaN. Only -infinity before softmax "
                        "never looks at a hidden score.");
    else
        experiment_says(
            x,
            "0 hides nothing: e to the power of 0 is 1. After softmax, weights set to 0 and divided "
            "by their sum look right. But the hidden score was in exp and in the sum: where it is "
            "large, every visible weight is rounded to 0, and 0 / 0 is NaN. Set to -infinity "
            "before, it never enters.");
}

static void run_mask(Experiment *x) {
    static const double hidden[] = {-4, -2, 0, 1, 2, 4, 8, 100, 1000};
    const Lesson *l = x->lesson;
    const int64_t K = l->options.keys, q = half_blind_query(l);
    double row[MOST_WORDS], keep[MOST_WORDS];
    int64_t moved = 0;
    if (q < 0 || K >= EXPERIMENT_COLUMNS) return;
    for (int64_t k = 0; k < K; k++) {
        row[k] = lesson_element(x->taken[0], q * K + k);
        keep[k] = !masks_hide(l, q, k);
        if (keep[k] == 0) moved = k;
        experiment_column(x, 's', word_of(l, k));
    }
    experiment_column(x, 'n', "sum");
    experiment_lead(
        x, 3, text_of("hidden score of \"%s\"", word_of(l, moved)),
        "\"%s\" must not see \"%s\". Move this score: behind a good mask no weight may move.",
        word_of(l, q), word_of(l, moved));
    for (int i = 0; i < (int)(sizeof hidden / sizeof *hidden) && !tensor_error(); i++) {
        row[moved] = hidden[i];
        tape_begin_no_grad();
        experiment_position(x, "%g", hidden[i]);
        show_ways(x, tape_own(tensor_from_doubles(SHAPE(1, K), row)),
                  tape_own(tensor_from_doubles(SHAPE(1, K), keep)), moved);
        tape_end();
    }
}

/* The gradients of q, k and v, leaves, where the rows of y that count have a 1; returns the loss.
 */
static double loss_of_rows(const Lesson *l, Tensor *const leaf[3], Tensor *t, Tensor *counts) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    bool cells[MOST_WORDS * MOST_WORDS];
    for (int64_t i = 0; i < Q * K; i++) cells[i] = !masks_hide(l, i / K, i % K);
    const AttentionMask mask = {.keep = tape_own(tensor_from_bools(SHAPE(1, 1, Q, K), cells))};
    Tensor *s = ag_scale(ag_bmm(leaf[0], ag_transpose(leaf[1], 1, 2)), lesson_scale(l));
    Tensor *y = ag_bmm(ag_attention_weights(s, 1, mask, 1), leaf[2]);
    Tensor *loss = lesson_loss(ag_mul(y, counts), ag_mul(t, counts), NULL);
    ag_backward(loss);
    return loss ? tensor_item(loss) : (double)NAN;
}

/* A row of the table: the loss, and the lengths of dQ, dK and dV. */
static void show_loss(Experiment *x, const Lesson *l, bool counts_pad, double shown[4]) {
    Tensor *leaf[3];
    double counts[MOST_WORDS];
    const int64_t Q = l->options.queries;
    tape_begin();
    for (int64_t q = 0; q < Q; q++) counts[q] = counts_pad || q != l->pad;
    for (int i = 0; i < 3; i++) leaf[i] = ag_requires_grad(tape_own(tensor_clone(x->taken[i])));
    shown[0] =
        loss_of_rows(l, leaf, x->taken[3], tape_own(tensor_from_doubles(SHAPE(1, Q, 1), counts)));
    for (int i = 0; i < 3 && !tensor_error(); i++) shown[i + 1] = tensor_norm(leaf[i]->grad);
    tape_end();
    for (int i = 0; i < 4; i++) experiment_number(x, shown[i], 3);
}

static void run_padding(Experiment *x) {
    static const char *const places[] = {"in front", "at the end"};
    Lesson l = *x->lesson;
    if (l.pad < 0 || l.options.no_mask) return;
    experiment_lead(
        x, 0, "[pad] stands",
        "The mask hides the key of [pad]. But [pad] is a query, too: its row of `Y` has an "
        "error. Does it count in the loss, or is it left out?");
    for (int at_end = 0; at_end < 2 && !tensor_error(); at_end++) {
        double with[4] = {0}, without[4] = {0};
        l.pad = at_end ? l.options.keys - 1 : 0;
        if (l.pad >= l.options.queries) break;
        experiment_position(x, "%s", places[at_end]);
        show_loss(x, &l, true, with);
        show_loss(x, &l, false, without);
        if (with[1] == without[1] && with[2] == without[2] && with[3] == without[3])
            experiment_says(
                x, "[pad] sees no key here, so its output is 0 whatever `Q`, `K` and `V` are: "
                   "the loss is larger by a number that nothing can change.");
        else
            experiment_says(
                x, "[pad] sees words here, so its error goes back to them: they would learn "
                   "from a place that is no word. A mask hides keys only; the loss must leave "
                   "out the rows of padding.");
    }
}

const ExperimentKind experiment_mask = {
    .lesson = 3,
    .title = "Mask before or after softmax?",
    .phase = 'f',
    .made = "A",
    .takes = {"S / sqrt(d)"},
    .rows = {"score -infinity", "score 0", "weight 0 after softmax", "the same / its sum"},
    .run = run_mask,
};
const ExperimentKind experiment_padding = {
    .lesson = 3,
    .title = "May padding count in the loss?",
    .phase = 'b',
    .made = "E",
    .input = "Y",
    .takes = {"Q", "K", "V", "T"},
    .rows = {"[pad] counts", "left out"},
    .columns = {"loss", "length of `dQ`", "of `dK`", "of `dV`"},
    .kinds = "nnnn",
    .run = run_padding,
};

const LessonKind lesson_3 = {
    .number = 3,
    .title = "Which keys may be seen",
    .hook = "Zeros have reasons",
    .idea = "A mask hides keys; every exact 0 among the gradients has a reason.",
    .source = "d2l.ai: Masked Softmax Operation; --window: Liu et al. 2021",
    .exercise = "05_masked_softmax",
    .columns = "",
    .formula = {"S = Q K'", "A = softmax(S / sqrt(d), allowed keys)", "Y = A V",
                "loss = sum((Y - T)^2)"},
    .word_rows = {"Q", "K", "V", "S", "S / sqrt(d)", "window", "A", "Y", "T", "E", "E^2", "counts",
                  "counted"},
    .word_columns = {"K'", "S", "S / sqrt(d)", "keep", "window", "A"},
    .shorts = {{"S / sqrt(d)", "Z"}},
    .is_padded = true,
    .card = {"V", "A", "S / sqrt(d)", "S", "Q", "K"},
    .own = {.queries = 4, .keys = 4, .size = 2, .seed = 3, .causal = 1},
    .rates = {0.02, 0.2, 1},
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
