/* lesson5.c - heads: split, attend, merge, and a gate for each head whose gradient says how
 * important the head is. */
#include "lesson.h"

#include <math.h>

enum { INPUT = 2 }; /* the size of a token */

/* (1, T, h d) -> (h, T, d), as transpose_qkv does: head c gets columns c d to (c + 1) d - 1. */
static Tensor *split(const Lesson *l, const char *name, Tensor *x) {
    const int64_t T = l->options.tokens, H = l->options.heads, d = l->options.size;
    char text[32];
    snprintf(text, sizeof text, "%s split", name);
    x = ag_name(ag_reshape(x, SHAPE(1, T, H, d)), text);
    snprintf(text, sizeof text, "%s transposed", name);
    x = ag_name(ag_transpose(x, 1, 2), text);
    snprintf(text, sizeof text, "%s_h", name);
    return ag_name(ag_reshape(x, SHAPE(H, T, d)), text);
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
    return lesson_loss(ag_name(ag_linear(merge(l, y), w_o, NULL), "Y"), t);
}

static int most_important(const Lesson *l) {
    int most = 0;
    for (int h = 1; h < l->options.heads; h++)
        if (fabs(lesson_grad("gate", h)) > fabs(lesson_grad("gate", most))) most = h;
    return most;
}

/* A text that says which columns of Q each head takes. */
static const char *shares(const Lesson *l) {
    static char text[128];
    const int H = (int)l->options.heads, d = (int)l->options.size;
    if (H == 1) return "and the only head takes them all";
    snprintf(text, sizeof text,
             "and %d heads share them: head 1 takes the first %d, head 2 the next %d%s", H, d, d,
             H > 2 ? ", and so on" : "");
    return text;
}

static void tell(Lesson *l) {
    const int H = (int)l->options.heads, d = (int)l->options.size, T = (int)l->options.tokens;
    say(l,
        "Each of %d tokens makes one query of %d numbers, %s. `Q split`, `Q transposed` and `Q_h` "
        "only move numbers, so backward only moves the gradients back. `Q_h` is a batch with a "
        "matrix for each head, so that one `bmm` computes all heads. `K` and `V` have the same "
        "three lines as `Q`.",
        T, H * d, shares(l));
    say(l,
        "Then every head attends alone, as in lesson 2. `Concat(heads)` moves the outputs of all "
        "heads back into one row for each token, and `W_o` mixes them: only `W_o` combines "
        "numbers of different heads.");
    say(l, "Which head is important? Each output is multiplied by a `gate` of 1, which changes "
           "nothing, but the gate has a gradient: how the loss would change if the gate became "
           "larger. This gradient is a sum over the numbers of the head, and its size, without the "
           "sign, is the importance of the head (Michel, Levy & Neubig 2019). For programmers: "
           "`build/heads` prunes a model with this importance.");
}

static void ask(Lesson *l) {
    enum { SHOWN = 8 };
    const int H = (int)l->options.heads, d = (int)l->options.size, T = (int)l->options.tokens;
    char names[SHOWN][24];
    const char *options[SHOWN + 1] = {NULL};
    for (int h = 0; h < H && h < SHOWN; h++) {
        snprintf(names[h], sizeof names[h], "head %d", h + 1);
        options[h] = names[h];
    }
    if (H > 1)
        ask_number(l, "Q_h", "value", (int64_t)T * d,
                   "`Q_h` holds the queries of head 2. The first number of these queries was moved "
                   "there from `Q`: what is its value?");
    if (H > 1 && H <= SHOWN)
        ask_choice(l, options, most_important(l),
                   "The gradient of its gate is the farthest from 0, so a small change of this "
                   "head changes the loss most.",
                   "Look at the gradient of `gate`. Which head is the most important?");
    ask_count(l, "gated", "gate", 0,
              "How many terms does the gradient of the gate of head 1 have?");
}

const LessonKind lesson_5 = {
    .title = "Heads",
    .idea = "Heads are columns: split, attend side by side, merge; a gate measures each head.",
    .source =
        "Multi-head attention: Vaswani et al. 2017, section 3.2.2; dim_in 2, d_model 6, 3 heads",
    .columns = "head",
    .formula = {"Q = x W_q',  K = x W_k',  V = x W_v'", "A = softmax(Q_h K_h' / sqrt(d))",
                "Y_h = A V_h,  gated = Y_h gate", "Y = Concat(heads) W_o'", "loss = sum((Y - T)^2)",
                "dgate = sum(Y_h dgated) in each head"},
    .own = {.heads = 3, .tokens = 4, .size = 2, .dropout = 0, .seed = 11},
    .rate = 0.01,
    .build = build,
    .tell = tell,
    .ask = ask,
};
