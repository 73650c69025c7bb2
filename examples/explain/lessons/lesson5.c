/* lesson5.c - heads: split, attend, merge, and a gate for each head whose gradient says how
 * important the head is. */
#include "experiments.h"
#include "tell.h"

#include <math.h>

enum { INPUT = 2 }; /* the size of a token */

/* (1, T, h d) -> (h, T, d), as transpose_qkv does: head c gets columns c d to (c + 1) d - 1. */
static Tensor *split(const Lesson *l, const char *name, Tensor *x) {
    const int64_t T = l->options.tokens, H = l->options.heads, d = l->options.size;
    x = ag_name(ag_reshape(x, SHAPE(1, T, H, d)), text_of("%s split", name));
    x = ag_name(ag_transpose(x, 1, 2), text_of("%s transposed", name));
    return ag_name(ag_reshape(x, SHAPE(H, T, d)), text_of("%s_h", name));
}

/* (h, T, d) -> (1, T, h d), as transpose_output does. */
static Tensor *merge(const Lesson *l, Tensor *x) {
    const int64_t T = l->options.tokens, H = l->options.heads, d = l->options.size;
    x = ag_name(ag_reshape(x, SHAPE(1, H, T, d)), "heads");
    x = ag_name(ag_transpose(x, 1, 2), "transposed");
    return ag_name(ag_reshape(x, SHAPE(1, T, H * d)), "Concat(heads)");
}

static Tensor *attend(const Lesson *l, Tensor *q, Tensor *k, Tensor *v) {
    const AttentionMask causal = {.causal = true};
    Tensor *s = ag_name(ag_bmm(q, ag_name(ag_transpose(k, 1, 2), "K_h'")), "S");
    if (!l->options.no_scale) s = ag_name(ag_scale(s, lesson_scale(l)), "S / sqrt(d)");
    Tensor *a = l->options.causal ? ag_attention_weights(s, 1, causal, l->options.heads)
                                  : ag_softmax(s, -1);
    a = ag_name(a, "A");
    if (l->options.dropout > 0) a = ag_name(ag_dropout(a, l->options.dropout), "dropout(A)");
    return ag_name(ag_bmm(a, v), "Y_h");
}

/* x (1, T, 2) -> Y (1, T, h d) */
static Tensor *build(Lesson *l) {
    const int64_t T = l->options.tokens, H = l->options.heads, E = H * l->options.size;
    Tensor *x = lesson_draw(l, "x", 1, SHAPE(1, T, INPUT));
    Tensor *w_q = lesson_draw(l, "W_q", 0.5, SHAPE(E, INPUT));
    Tensor *w_k = lesson_draw(l, "W_k", 0.5, SHAPE(E, INPUT));
    Tensor *w_v = lesson_draw(l, "W_v", 0.5, SHAPE(E, INPUT));
    Tensor *w_o = lesson_draw(l, "W_o", 0.5, SHAPE(E, E));
    Tensor *gate = lesson_leaf(l, "gate", tensor_ones(SHAPE(H, 1, 1)));
    Tensor *t = lesson_data(l, "T", 1, SHAPE(1, T, E));
    Tensor *q = split(l, "Q", ag_name(ag_linear(x, w_q, NULL), "Q"));
    Tensor *k = split(l, "K", ag_name(ag_linear(x, w_k, NULL), "K"));
    Tensor *v = split(l, "V", ag_name(ag_linear(x, w_v, NULL), "V"));
    Tensor *y = ag_name(ag_mul(attend(l, q, k, v), gate), "gated");
    return lesson_loss(ag_name(ag_linear(merge(l, y), w_o, NULL), "Y"), t, NULL);
}

static int most_important(const Lesson *l) {
    int most = 0;
    for (int h = 1; h < l->options.heads; h++)
        if (fabs(lesson_grad("gate", h)) > fabs(lesson_grad("gate", most))) most = h;
    return most;
}

/* ---- the texts ------------------------------------------------------------------------------- */

static void begin(Lesson *l) {
    static const char *const options[] = {"no, it is 0", "yes", NULL};
    const int H = (int)l->options.heads;
    cover(
        l, "A", 0,
        text_of(
            "A word may look at several others, for several reasons. So it gets several heads, here "
            "%s, and each attends alone, on its own columns of `Q`, `K` and `V`. Behind each head "
            "stands a gate, and the gradient of the gate says how important the head is.",
            H == 1 ? "only one" : show(H)));
    bet(l, step_backward("gated", "gate"), options, lesson_grad("gate", most_important(l)) != 0,
        "A gate of 1 multiplies a head and changes nothing; a gate of 1.1 would change it. Does "
        "such a `gate` get a gradient other than 0?");
}

/* ---- forward ---- */

/* The three moves of Q, K or V. */
static void tell_split(Lesson *l, const char *name) {
    const int H = (int)l->options.heads, T = (int)l->options.tokens, d = (int)l->options.size;
    const char *split_name = text_of("%s split", name);
    const char *moved = text_of("%s transposed", name);
    const char *heads = text_of("%s_h", name);
    const int64_t last = (int64_t)(H - 1) * T * d;
    say(l, step_forward(split_name), 0,
        "Each row of `%s` is cut into %d piece%s of %d number%s, a piece for each head. Nothing "
        "is computed: the first piece still begins with {}.",
        name, H, plural(H), d, plural(d));
    say(l, step_forward(moved), 0,
        "The pieces are sorted by heads in place of words. The first number is still {}.");
    say(l, step_forward(heads), last,
        "`%s` is a table for each head: head %d has the last %d column%s of `%s`, so its first "
        "number is {}. Nothing was computed on the way.",
        heads, H, d, plural(d), name);
}

static void tell_projections(Lesson *l) {
    const int H = (int)l->options.heads, d = (int)l->options.size;
    say(l, step_forward("Q"), LARGEST,
        "`x` has a row of numbers for each word, and `W_q` makes its query of them, one matrix "
        "for all heads at once: a row of `Q` has %d number%s, %d for each head. The one farthest "
        "from 0 is {}, of \"{row}\". linear is a product with the turned matrix, whose rows "
        "belong to the results.",
        H * d, plural(H * d), d);
    tell_split(l, "Q");
    say(l, step_forward("K"), LARGEST, "The same for the keys: \"{row}\" has {}.");
    tell_split(l, "K");
    say(l, step_forward("V"), LARGEST, "And for the values: \"{row}\" has {}.");
    tell_split(l, "V");
}

static void tell_heads(Lesson *l) {
    const int H = (int)l->options.heads, d = (int)l->options.size;
    const int64_t s = largest_value("S");
    say(l, step_forward("K_h'"), 0, "In each head the keys stand as columns: {} stays the first.");
    say(l, step_forward("S"), LARGEST,
        "Now each head compares its own queries with its own keys%s. The score farthest from 0 "
        "is {}, in head {head}, of \"{row}\" with \"{column}\".",
        H > 1 ? ", and sees nothing of the other heads" : "");
    say(l, step_forward("S / sqrt(d)"), s,
        "Divided by sqrt(d), where d = %d is the size of one head: {becomes}.", d);
    say(l, step_forward("A"), LARGEST,
        "A softmax for each row of each head.%s Head {head} is the most decided: \"{row}\" gives "
        "\"{column}\" {}.",
        l->options.causal ? " No word may look at a later one." : "");
    say(l, step_forward("dropout(A)"), LARGEST,
        "Each weight becomes 0 with probability %s, and the others are divided by %s%s.",
        show(l->options.dropout), show(1 - l->options.dropout), show_kept(l));
    say(l, step_forward("Y_h"), LARGEST,
        "Each head returns a mean of its own values: head {head} gives {} for \"{row}\".");
}

static void tell_merge(Lesson *l) {
    const int H = (int)l->options.heads, T = (int)l->options.tokens, d = (int)l->options.size;
    const int64_t g = largest_value("gated"), last = (int64_t)(H - 1) * d;
    say(l, step_forward("gated"), LARGEST,
        "Each head is multiplied by its gate. The gate of head {head} is %s. A gate of 1 changes "
        "nothing, but backward will tell what would happen if it changed.",
        lesson_value("gate", g / (T * d)) == 1
            ? text_of("1: %s stays", show_value("gated", g))
            : show_times(value_of("gate", g / (T * d)), value_of("Y_h", g), value_of("gated", g)));
    say(l, step_forward("heads"), 0, "The heads are sorted back into rows: {} is still the first.");
    say(l, step_forward("transposed"), 0, "By words again, in place of heads: first stands {}.");
    say(l, step_forward("Concat(heads)"), last,
        "The outputs of all heads stand side by side, a row for each word: head %d begins with "
        "{}. Nothing was computed on the way.",
        H);
    say(l, step_forward("Y"), LARGEST,
        "`W_o` mixes the heads: only here numbers of different heads meet. The output farthest "
        "from 0 is {}, for \"{row}\".");
}

/* ---- backward ---- */

static void tell_split_backward(Lesson *l, const char *name) {
    const char *split_name = text_of("%s split", name);
    const char *moved = text_of("%s transposed", name);
    const char *heads = text_of("%s_h", name);
    say(l, step_backward(heads, moved), 0, "The way back of `%s`, in three moves.", name);
    say(l, step_backward(moved, split_name), 0, "Sorted by words again, in place of heads.");
    say(l, step_backward(split_name, name), 0,
        "The gradients of all heads stand side by side again, as the columns of `%s` do.", name);
}

static void tell_gate(Lesson *l) {
    const int H = (int)l->options.heads, T = (int)l->options.tokens, d = (int)l->options.size;
    const int64_t c = largest_grad("Concat(heads)");
    const int64_t y = largest_grad("Y_h");
    say(l, step_backward("Y", "Concat(heads)"), LARGEST,
        "`W_o` has mixed the heads, so each number of a head gets a term from every number of "
        "the output. Farthest from 0 is {}, for head %d and \"{row}\".",
        (int)c % (H * d) / d + 1);
    say(l, step_backward("Y", "W_o"), LARGEST,
        "`W_o` was used for every word, so its gradient is a sum with a term from each.");
    say(l, step_backward("Concat(heads)", "transposed"), 0,
        "Backward through a move is the move back: each number returns to its head.");
    say(l, step_backward("transposed", "heads"), 0, "Sorted by heads again, in place of words.");
    say(l, step_backward("heads", "gated"), 0,
        "Each head has the gradients of its own output again. Nothing was computed on the way.");
    say(l, step_backward("gated", "Y_h"), LARGEST,
        "The gate multiplied on the way, and multiplies on the way back: %s.",
        show_product(grad_of("gated", y), value_of("gate", y / (T * d)), grad_of("Y_h", y)));
    say(l, step_backward("gated", "gate"), 0,
        "A gate multiplied every number of its head. So its gradient is a sum: each number of "
        "`Y_h` times the gradient that arrives at its place, {} for head 1. Without the sign, "
        "this is the importance of the head (Michel, Levy & Neubig 2019): how much the loss "
        "changes if the gate changes a little.");
}

static void tell_heads_backward(Lesson *l) {
    const int64_t a = largest_visible_grad(lesson_weights(l));
    say(l, step_backward("Y_h", lesson_weights(l)), a,
        "In each head a row of the gradient meets a row of `V_h`: in head {head}, \"{row}\" with "
        "\"{column}\", this gives {}.");
    say(l, step_backward("Y_h", "V_h"), LARGEST,
        "And the values get the gradients of the words that looked at them, times their weights; "
        "no other head takes part.");
    say(l, step_backward("dropout(A)", "A"), LARGEST,
        "A weight that was dropped gets exactly 0; the others are divided by %s%s.",
        show(1 - l->options.dropout), show_kept_grad(l));
    say(l, step_backward("A", lesson_scores(l)), LARGEST,
        "The weight, times how far its `dA` is above the weighted mean of its row, the sum of "
        "`A` x `dA`: {slope}, in head {head}.");
    say_scale_backward(l);
    say(l, step_backward("S", "Q_h"), LARGEST,
        "A query gets a term from each key that it may see, all of them in its own head.");
    say(l, step_backward("S", "K_h'"), LARGEST,
        "A key gets a term from each query that may see it. The keys still stand as columns.");
    say(l, step_backward("K_h'", "K_h"), LARGEST, "Turned back into rows.");
}

/* The number of x that gets most. */
static void tell_x(Lesson *l) {
    const int64_t x = largest_grad("x");
    const char *word = word_of(l, x / INPUT);
    tell_split_backward(l, "V");
    say(l, step_backward("V", "x"), LARGEST,
        "The first part of the gradient of `x`, from the values of all heads: {part} for \"%s\".",
        word);
    say(l, step_backward("V", "W_v"), LARGEST,
        "`W_v` gets a term from each word. Its rows belong to the heads, as the columns of `V` "
        "do.");
    tell_split_backward(l, "K");
    say(l, step_backward("K", "x"), LARGEST, "The second part, from the keys: {part}.");
    say(l, step_addition("K", "x"), LARGEST, "Added: %s.",
        show_sum(part_of("V", "x", x), part_of("K", "x", x),
                 number(lesson_part("V", "x", x) + lesson_part("K", "x", x))));
    say(l, step_backward("K", "W_k"), LARGEST, "As in `W_v`: a term from each word.");
    tell_split_backward(l, "Q");
    say(l, step_backward("Q", "x"), LARGEST, "The third part, from the queries: {part}.");
    say(l, step_addition("Q", "x"), LARGEST,
        "Complete: %s. All heads read the same `x`, and all of them, in three ways, are in this "
        "sum.",
        show_sum_of_uses(part_of("V", "x", x), part_of("K", "x", x), part_of("Q", "x", x),
                         grad_of("x", x)));
    say(l, step_backward("Q", "W_q"), LARGEST,
        "And last the matrix of the queries. Now everything that learns has its gradient.");
}

static void tell(Lesson *l) {
    tell_projections(l);
    tell_heads(l);
    tell_merge(l);
    say_loss(l, "what the output should be");
    say_loss_backward(l, "Y");
    tell_gate(l);
    tell_heads_backward(l);
    tell_x(l);
}

static void ask(Lesson *l) {
    enum { SHOWN = 8 };
    const int H = (int)l->options.heads, d = (int)l->options.size, T = (int)l->options.tokens;
    const char *options[SHOWN + 1] = {NULL};
    for (int h = 0; h < H && h < SHOWN; h++) options[h] = text_of("head %d", h + 1);
    if (H > 1 && T * d > 1)
        ask_number(l, step_forward("Q_h"), "Q_h", "value", 2 * (int64_t)T * d - 1,
                   "Each head takes as many columns of `Q` as it has numbers, head 1 the first "
                   "ones. The rows stay in their order.",
                   "In `Q_h` each head has a table of its queries. The last number of the table of "
                   "head 2 was moved there from `Q`: what is its value?");
    ask_count(l, step_backward("gated", "gate"), 0, "Which numbers did this gate multiply?",
              "How many terms, other than 0, does the gradient of the gate of head 1 have?");
    if (H > 1 && H <= SHOWN)
        ask_choice(l, step_backward("gated", "gate"), options, most_important(l),
                   "The gradient of its gate is the farthest from 0, so a small change of this "
                   "head changes the loss most.",
                   "The importance is the size of the gradient of the gate, without its sign.",
                   "Which head is the most important?");
}

/* ---- an experiment --------------------------------------------------------------------------- */

/* The heads of a (1, T, h d) table, and what one reshape makes of it. A cell says where in the
 * table its number stood: the numbers that are moved are the places. */
static void run_reshape(Experiment *x) {
    enum { MOST_HEADS = 8, MOST_COLUMNS = EXPERIMENT_COLUMNS / 2 };
    const Lesson *l = x->lesson;
    const int64_t H = l->options.heads, T = l->options.tokens, d = l->options.size;
    if (H < 2 || H > MOST_HEADS || T < 2 || T > EXPERIMENT_ROWS || d > MOST_COLUMNS) return;
    experiment_lead(
        x, 0, "head",
        "Three moves make the heads. One reshape, (%d, %d) to (%d, %d, %d), gives the same "
        "sizes. A cell says from which word and column of `Q` its number is.",
        (int)T, (int)(H * d), (int)H, (int)T, (int)d);
    for (int64_t t = 0; t < T; t++) experiment_row(x, word_of(l, t));
    for (int64_t c = 0; c < d; c++) experiment_column(x, 'w', c == 0 ? "split, transpose" : "");
    for (int64_t c = 0; c < d; c++) experiment_column(x, 'w', c == 0 ? "one reshape" : "");
    tape_begin_no_grad();
    Tensor *places =
        ag_reshape(tape_own(tensor_arange(0, (double)(T * H * d), 1)), SHAPE(1, T, H * d));
    Tensor *const heads[] = {split(l, "Q", places), ag_reshape(places, SHAPE(H, T, d))};
    for (int64_t h = 0; h < H && !tensor_error(); h++) {
        experiment_position(x, "%d", (int)h + 1);
        for (int64_t i = 0; i < T * 2 * d; i++) {
            const int64_t row = i / (2 * d), column = i % (2 * d);
            const double at = lesson_element(heads[column >= d], (h * T + row) * d + column % d);
            const int64_t place = (int64_t)at;
            experiment_cell(x, "%s %d", word_of(l, place / (H * d)), (int)(place % (H * d)));
        }
        experiment_says(
            x, "A head should have some columns of every word. One reshape cuts the table into "
               "pieces as they lie in memory: a head gets all columns of a few words, in rows "
               "that are no words. No error tells you so.");
    }
    tape_end();
}

const ExperimentKind experiment_reshape = {
    .lesson = 5,
    .title = "Why not one reshape?",
    .phase = 'f',
    .made = "Q_h",
    .run = run_reshape,
};

const LessonKind lesson_5 = {
    .number = 5,
    .title = "Heads",
    .hook = "Which head matters?",
    .idea = "Heads are columns: split, attend side by side, merge; a gate measures each head.",
    .source =
        "Multi-head attention: Vaswani et al. 2017, section 3.2.2; dim_in 2, d_model 6, 3 heads",
    .exercise = "12_self_attention",
    .columns = "head",
    .formula = {"Q = x W_q',  K = x W_k',  V = x W_v'", "A = softmax(Q_h K_h' / sqrt(d))",
                "Y_h = A V_h,  gated = Y_h gate", "Y = Concat(heads) W_o'", "loss = sum((Y - T)^2)",
                "dgate = sum(Y_h dgated) in each head"},
    .word_rows = {"x",
                  "Q",
                  "K",
                  "V",
                  "Q transposed",
                  "K transposed",
                  "V transposed",
                  "Q_h",
                  "K_h",
                  "V_h",
                  "S",
                  "S / sqrt(d)",
                  "A",
                  "dropout(A)",
                  "Y_h",
                  "gated",
                  "heads",
                  "Concat(heads)",
                  "Y",
                  "T",
                  "E",
                  "E^2"},
    .word_columns = {"K_h'", "S", "S / sqrt(d)", "A", "dropout(A)"},
    .shorts = {{"S / sqrt(d)", "Z"}, {"dropout(A)", "A_p"}, {"Concat(heads)", "C"}, {"gated", "G"}},
    .card = {"Concat(heads)", "W_o", "Y_h", "gate", "A", "V_h", "S / sqrt(d)"},
    .own = {.heads = 3, .tokens = 4, .size = 2, .dropout = 0, .seed = 11},
    .rates = {0.01, 0.02, 0.3},
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
