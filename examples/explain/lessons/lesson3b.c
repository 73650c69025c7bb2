/* lesson3b.c - selecting against filling: two ways to hide keys. A selects the keys that may be
 * seen; B writes -1e6 in place of the scores of the others. They differ where a query sees no key.
 */
#include "masks.h"
#include "tell.h"

enum { MOST = 64 * 64, VALUES = 2 }; /* cells of a mask; the size of a value */

/* (1, Q, K): true where a key is hidden. */
static Tensor *make_ignored(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    static bool cells[MOST];
    for (int64_t i = 0; i < Q * K; i++) cells[i] = masks_hide(l, i / K, i % K);
    return lesson_own(l, "ignored", tensor_from_bools(SHAPE(1, Q, K), cells));
}

/* A: the weights if the mask selects, B: the weights if the scores are filled, both (1, Q, K). */
static Tensor *build(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys, d = l->options.size;
    Tensor *q = lesson_draw(l, "Q", 1, SHAPE(1, Q, d));
    Tensor *k = lesson_draw(l, "K", 1, SHAPE(1, K, d));
    Tensor *v = lesson_draw(l, "V", 1, SHAPE(1, K, VALUES));
    Tensor *t = lesson_data(l, "T", 1, SHAPE(1, Q, VALUES));
    Tensor *s = ag_name(ag_bmm(q, ag_name(ag_transpose(k, 1, 2), "K'")), "S");
    if (!l->options.no_scale) s = ag_name(ag_scale(s, lesson_scale(l)), "S / sqrt(d)");
    Tensor *a = ag_name(ag_attention_weights(s, 1, masks_make(l), 1), "A");
    Tensor *y_a = ag_name(ag_bmm(a, v), "Y_A");
    Tensor *f = ag_name(ag_masked_fill(s, make_ignored(l), -1e6), "F");
    Tensor *b = ag_name(ag_softmax(f, -1), "B");
    Tensor *y_b = ag_name(ag_bmm(b, v), "Y_B");
    return lesson_loss(ag_name(ag_add(y_a, y_b), "Y_A + Y_B"), t, NULL);
}

/* ---- the texts ------------------------------------------------------------------------------- */

/* Are all scores of the row filled? A reader can change the masks. */
static bool is_filled(const Lesson *l, int64_t q) {
    const int64_t K = l->options.keys;
    for (int64_t k = 0; k < K; k++)
        if (lesson_value("ignored", q * K + k) == 0) return false;
    return true;
}

/* The first query all of whose scores are filled; -1 if there is none. */
static int64_t blind_query(const Lesson *l) {
    for (int64_t q = 0; q < l->options.queries; q++)
        if (is_filled(l, q)) return q;
    return -1;
}

/* The first cell that is hidden, in a row with a key if there is one; -1 if none is. */
static int64_t hidden_cell(const Lesson *l) {
    const int64_t K = l->options.keys;
    int64_t cell = -1;
    for (int64_t i = size_of("ignored") - 1; i >= 0; i--)
        if (lesson_value("ignored", i) != 0 && (cell < 0 || !is_filled(l, i / K))) cell = i;
    return cell;
}

static void begin(Lesson *l) {
    const int64_t blind = blind_query(l);
    const int K = (int)l->options.keys;
    const char *const options[] = {"all 0", text_of("each 1/%d", K), "NaN", NULL};
    const char *nothing = ".";
    if (blind < 0) nothing = "; here each word sees a key, so both ways agree.";
    else if (blind == l->pad && l->options.causal)
        nothing = ", as [pad]: what comes after it is hidden, and so is padding itself.";
    cover(
        l, "B", blind < 0 ? 0 : blind,
        text_of(
            "`A` selects keys: softmax never sees a hidden score. `B` fills, as many programs do: it "
            "writes -1e6 in place of the score. The weights look the same, until a row may see "
            "nothing%s",
            nothing));
    if (blind >= 0 && K > 1)
        bet(l, step_forward("B"), options, 1,
            text_of(
                "\"%s\" may see no key: all its scores become -1e6. If the same number is added to all "
                "scores of a row, softmax gives the same weights. Which weights does it give here? NaN "
                "means not a number: it is what 0 / 0 gives.",
                word_of(l, blind)));
}

static void tell_scores(Lesson *l) {
    const int64_t cell = largest_value("S");
    say(l, step_forward("K'"), 0,
        "The keys stand as columns for the product. Nothing is computed: the first number is "
        "still {}.");
    say(l, step_forward("S"), LARGEST,
        "Each query times each key: the scores. Farthest from 0 is {}, of \"{row}\" with "
        "\"{column}\".");
    say(l, step_forward("S / sqrt(d)"), cell,
        "Divided by sqrt(d): {becomes}. Two lines will read these scores, one for each way to "
        "hide keys.");
}

/* What a query without a key gets; "" if there is none. */
static const char *selected(const Lesson *l) {
    const int64_t q = blind_query(l);
    if (q < 0 || lesson_value("A", largest_in_row("A", q)) != 0) return "";
    return text_of(" \"%s\" may see no key, and its weights are all 0.", word_of(l, q));
}

static void tell_selecting(Lesson *l) {
    say(l, step_forward("A"), LARGEST,
        "The first way selects: %s. Softmax shares the weights among the keys that are left: "
        "\"{row}\" gives \"{column}\" {}.%s",
        l->options.no_mask ? "no key is hidden here" : masks_say(l), selected(l));
    say(l, step_forward("Y_A"), LARGEST,
        "The means of the values with the weights `A`. The number farthest from 0 is {}, for "
        "\"{row}\".");
}

static void tell_filling(Lesson *l) {
    const int64_t K = l->options.keys, hidden = hidden_cell(l), blind = blind_query(l);
    const int64_t cell = blind < 0 ? largest_value("B") : blind * K;
    const int64_t y = blind < 0 ? largest_value("Y_B") / VALUES * VALUES : blind * VALUES;
    if (hidden < 0)
        say(l, step_forward("F"), 0,
            "The second way fills: where `ignored` has a 1, -1e6 would take the place of the score. "
            "Here it has none, and {} stays.");
    else
        say(l, step_forward("F"), hidden,
            "The second way fills: where `ignored` has a 1, -1e6 takes the place of the score: the "
            "%s of \"{row}\" with \"{column}\" is gone.",
            show_value(lesson_scores(l), hidden));
    if (blind < 0)
        say(l, step_forward("B"), cell,
            "An ordinary softmax: next to other scores, e to the power of -1e6 is 0 on a computer, "
            "so a filled score gets the weight 0, by rounding. \"{row}\" gives \"{column}\" {}.");
    else
        say(l, step_forward("B"), cell,
            "An ordinary softmax: next to other scores, e to the power of -1e6 is 0 on a computer. "
            "But in the row of \"%s\" all scores are -1e6, and equal scores get equal weights, {} "
            "each. It looks at everything that it should not see.",
            word_of(l, blind));
    say(l, step_forward("Y_B"), y,
        "The means of the values with the weights `B`: the row of \"{row}\" begins with {}, in "
        "`Y_A` with %s.",
        show_value("Y_A", y));
    say(l, step_forward("Y_A + Y_B"), y,
        "Both outputs are added, so that one loss judges both ways: {} for \"{row}\".");
}

/* Backward through the filled weights: they come first, being later on the tape. */
static void tell_filled_backward(Lesson *l) {
    const int64_t K = l->options.keys, blind = blind_query(l);
    const int64_t b = largest_visible_grad("B");
    const int64_t hidden = hidden_cell(l);
    say(l, step_backward("Y_B", "B"), b,
        "On the way back the later line comes first. A row of `dY_B` meets a row of `V`: the "
        "weight of \"{row}\" for \"{column}\" gets {}.");
    if (blind < 0)
        say(l, step_backward("Y_B", "V"), 0,
            "A value gets the gradients of the words that looked at it, times their weights: {part} "
            "is the first number of this part.");
    else
        say(l, step_backward("Y_B", "V"), 0,
            "A value gets the gradients of the words that looked at it, times their weights: {part} "
            "is the first number of this part. \"%s\" gives its share with the weight %s: a word "
            "that should see nothing changes `V`.",
            word_of(l, blind), show_value("B", blind * K));
    say(l, step_backward("B", "F"), LARGEST,
        "The weight times how far its `dB` is above the weighted mean of the row, the sum of `B` "
        "x `dB`: {slope}. Where the weight is 0 by rounding, the gradient is 0.");
    if (hidden < 0)
        say(l, step_backward("F", lesson_scores(l)), 0,
            "No score was filled, so every gradient passes: {part}.");
    else
        say(l, step_backward("F", lesson_scores(l)), hidden,
            "A score that was filled is gone, so its gradient is exactly {part}, whatever arrives. "
            "The others pass unchanged. This is the first part of the gradient of `%s`.",
            lesson_scores(l));
}

static void tell_selected_backward(Lesson *l) {
    const int64_t a = largest_visible_grad("A"), s = largest_grad(lesson_scores(l));
    say(l, step_backward("Y_A", "A"), a,
        "The same for the other way: the weight of \"{row}\" for \"{column}\" in `A` gets {}.");
    say(l, step_backward("Y_A", "V"), 0,
        "The second part of the gradient of `V`, with the weights `A`: its first number is "
        "{part}. Only words that may see a key give it something.");
    say(l, step_addition("Y_A", "V"), 0, "Both parts are added: %s.",
        show_sum(part_of("Y_B", "V", 0), part_of("Y_A", "V", 0), grad_of("V", 0)));
    say(l, step_backward("A", lesson_scores(l)), LARGEST,
        "Softmax of the keys that are seen: {slope}. A hidden score never took part, so its "
        "gradient is 0.");
    say(l, step_addition("A", lesson_scores(l)), LARGEST,
        "The scores were read twice, once for each way, so two parts are added: %s.",
        show_sum(part_of("F", lesson_scores(l), s), part_of("A", lesson_scores(l), s),
                 grad_of(lesson_scores(l), s)));
}

static void tell_backward(Lesson *l) {
    const int64_t most = largest_grad("E");
    say_loss_backward(l, "Y_A + Y_B");
    say(l, step_backward("Y_A + Y_B", "Y_A"), most,
        "A sum passes its gradient to both of its terms, unchanged: `Y_A` gets {}.");
    say(l, step_backward("Y_A + Y_B", "Y_B"), most, "And `Y_B` gets the same, {}.");
    tell_filled_backward(l);
    tell_selected_backward(l);
    say_scale_backward(l);
    say(l, step_backward("S", "Q"), LARGEST,
        "A query gets a term from each key: \"{row}\" gets {}.");
    say(l, step_backward("S", "K'"), LARGEST,
        "A key gets a term from each query. The number farthest from 0 is {}.");
    say(l, step_backward("K'", "K"), LARGEST,
        "Turned back into rows: {} stands in the row of \"{row}\".");
}

static void tell(Lesson *l) {
    tell_scores(l);
    tell_selecting(l);
    tell_filling(l);
    say_loss(l, "what the output should be");
    tell_backward(l);
}

static void ask_more_keys(Lesson *l) {
    const int64_t blind = blind_query(l);
    const int K = (int)l->options.keys;
    const char *const options[] = {"all 0", K == 1 ? "1" : text_of("each 1/%d", K),
                                   text_of("each 1/%d", K + 1), "NaN", NULL};
    if (blind < 0) return;
    ask_choice(
        l, step_forward("B"), options, 2,
        "All scores of the row are -1e6, and softmax gives equal scores equal weights.",
        "Softmax divides e to the power of each score by the sum of these powers. What comes "
        "out if all scores are equal?",
        text_of("Which weights would \"%s\" get in `B` if there were %d keys in place of %d?",
                word_of(l, blind), K + 1, K));
}

static void ask(Lesson *l) {
    ask_more_keys(l);
    ask_zeros(
        l, step_backward("B", "F"), "F",
        "The gradient is the weight times (`dB` minus the weighted mean of the row). When is one of "
        "the two factors exactly 0?",
        "Which cells of the gradient of `F` are exactly 0?");
    ask_number(l, step_addition("Y_A", "V"), "V", "grad", 1,
               "Two lines read `V`. Find the part that each gave to this number.",
               "What is the gradient of the second number of `V`?");
}

const LessonKind lesson_3b = {
    .number = 3,
    .part = 'b',
    .title = "Selecting against filling",
    .hook = "A word that should see nothing",
    .idea = "Two ways to hide a key agree, until a query may see no key at all.",
    .source = "d2l.ai: Masked Softmax Operation, which fills with -1e6",
    .exercise = "05_masked_softmax",
    .columns = "",
    .formula = {"S = Q K'", "A = softmax(S / sqrt(d), allowed keys)",
                "F = S / sqrt(d), -1e6 where ignored", "B = softmax(F)", "Y_A = A V,  Y_B = B V",
                "loss = sum((Y_A + Y_B - T)^2)"},
    .word_rows = {"Q", "K", "V", "S", "S / sqrt(d)", "window", "A", "Y_A", "ignored", "F", "B",
                  "Y_B", "Y_A + Y_B", "T", "E", "E^2"},
    .word_columns = {"K'", "S", "S / sqrt(d)", "keep", "window", "A", "ignored", "F", "B"},
    .shorts = {{"S / sqrt(d)", "Z"}, {"Y_A + Y_B", "Y"}},
    .is_padded = true,
    .card = {"B", "F", "A", "V", "S / sqrt(d)", "S"},
    .own = {.queries = 3, .keys = 4, .size = 2, .seed = 3, .causal = 1},
    .rates = {0.02, 0.1, 0.3},
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
