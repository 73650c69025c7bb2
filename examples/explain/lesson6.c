/* lesson6.c - a training step: a module with parameters, a loss, SGD. The tape shows one of 200
 * steps, the first unless --step gives another. With --additive a small network computes the
 * scores, and its tanh is saturated. */
#include "lesson.h"

#include <math.h>
#include <string.h>

#define RATE 0.02
enum { E = 3, HIDDEN = 4, STEEP = 60 }; /* sizes; W_k is STEEP times too large if --additive */

/* At every place the model learns to attend to the next token and to return this token. */
typedef struct {
    Module module;
    Linear *W_q;                    /* (E, E) */
    Linear *W_k, *w_v;              /* additive attention: (E, E), (1, E); else NULL */
    DotProductAttention *attention; /* else NULL */
    Linear *W_1, *W_2;              /* (HIDDEN, E), (E, HIDDEN), with biases */
} Net;

static Net *net_new(bool additive) {
    static const ModuleClass class = {"Net", sizeof(Net), NULL, NULL};
    Net *net = nn_module_new(&class);
    if (!net) return NULL;
    net->W_q = nn_add_child(net, "W_q", nn_linear_new(E, E, false));
    if (additive) {
        net->W_k = nn_add_child(net, "W_k", nn_linear_new(E, E, false));
        net->w_v = nn_add_child(net, "w_v", nn_linear_new(E, 1, false));
        if (!tensor_error()) tensor_mul_(net->W_k->weight, STEEP);
    } else {
        net->attention = nn_add_child(net, "attention", nn_dot_product_attention_new(0));
    }
    net->W_1 = nn_add_child(net, "W_1", nn_linear_new(E, HIDDEN, true));
    net->W_2 = nn_add_child(net, "W_2", nn_linear_new(HIDDEN, E, true));
    return nn_module_done(net);
}

/* x (1, T, E) -> (1, T, E), w_v tanh(q + k) with every query and key, by single ops: q + k is (1,
 * T, T, E). */
static Tensor *additive(Net *net, Tensor *x) {
    Tensor *q = ag_name(nn_linear_forward(net->W_q, x), "queries");
    Tensor *k = ag_name(nn_linear_forward(net->W_k, x), "keys");
    q = ag_name(ag_unsqueeze(q, 2), "queries (1, T, 1, E)");
    k = ag_name(ag_unsqueeze(k, 1), "keys (1, 1, T, E)");
    Tensor *features = ag_name(ag_tanh(ag_name(ag_add(q, k), "q + k")), "features");
    Tensor *scores = ag_name(nn_linear_forward(net->w_v, features), "w_v features");
    scores = ag_name(ag_squeeze(scores, -1), "scores");
    Tensor *weights = ag_name(ag_softmax(scores, -1), "attention_weights");
    return ag_name(ag_bmm(weights, x), "output");
}

/* The module gives its results names, but the transposed keys get no name. */
static void name_transpose(void) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        if (strcmp(line.op, "transpose") == 0) ag_name(line.out, "keys'");
}

/* x (1, T, E) -> Y (1, T, E) */
static Tensor *net_forward(Net *net, Tensor *x) {
    if (!net) return NULL;
    Tensor *output;
    if (net->attention) {
        Tensor *q = ag_name(nn_linear_forward(net->W_q, x), "queries");
        output = nn_dot_product_attention_forward(net->attention, q, x, x, (AttentionMask){0});
        name_transpose();
    } else {
        output = additive(net, x);
    }
    Tensor *Z = ag_name(nn_linear_forward(net->W_1, output), "Z");
    return ag_name(nn_linear_forward(net->W_2, ag_name(ag_relu(Z), "relu(Z)")), "Y");
}

/* x and T, in which token i + 1 of x stands at place i; the parameters are drawn last. */
static Tensor *build(Lesson *l) {
    const int64_t n = l->options.tokens;
    Tensor *x = lesson_data(l, "x", 1, SHAPE(1, n, E));
    Tensor *T = tensor_zeros(SHAPE(1, n, E));
    for (int64_t i = 0; i < n && !tensor_error(); i++)
        for (int64_t j = 0; j < E; j++) tensor_set(T, tensor_get(x, 0, (i + 1) % n, j), 0, i, j);
    T = lesson_own(l, "T", T);
    if (!l->model) lesson_own_model(l, net_new(l->options.additive));
    return lesson_loss(net_forward(l->model, x), T);
}

/* The rows of W_1.weight: a row gets no gradient if its bias gets none. */
static int rows_without_gradient(void) {
    int count = 0;
    for (int c = 0; c < HIDDEN; c++) count += lesson_grad("W_1.bias", c) == 0;
    return count;
}

/* Returns which of the first n elements has the gradient farthest from 0. */
static int64_t largest_gradient(const char *name, int64_t n) {
    int64_t most = 0;
    for (int64_t i = 1; i < n; i++)
        if (fabs(lesson_grad(name, i)) > fabs(lesson_grad(name, most))) most = i;
    return most;
}

static void tell(Lesson *l) {
    const int64_t shown = largest_gradient("W_2.weight", E * HIDDEN);
    const double w = lesson_value("W_2.weight", shown), dw = lesson_grad("W_2.weight", shown);
    say(l,
        "A training step is always the same: run the model forward to a loss, run backward, change "
        "the parameters. For every token of `x` the model should return the next token, `T`; the "
        "parameters are the tensors with a dot in their names.%s",
        l->options.additive
            ? ""
            : " The attention is as in lesson 2, but `x` itself is keys and "
              "values, without a W_k, and `masked_softmax`, which has no mask here, "
              "divides by sqrt(d) itself.");
    say(l,
        "After backward SGD changes each parameter: it subtracts %g times the gradient. "
        "`W_2.weight[%d, %d]` is %.4f and its gradient is %.4f, so the next step begins with %.4f "
        "- %g x %.4f = %.4f. All tables show step %d, before this change; the curve of the page "
        "shows the losses of all %d steps, from %.3f to %.3f.",
        RATE, (int)(shown / HIDDEN), (int)(shown % HIDDEN), w, dw, w, RATE, dw, w - RATE * dw,
        (int)l->options.step + 1, LESSON_STEPS, lesson_losses(l)[0],
        lesson_losses(l)[LESSON_STEPS - 1]);
    if (l->options.additive)
        say(l,
            "Here a small network computes the scores, w_v tanh(queries + keys). `W_k` begins %d "
            "times too large, so most results of tanh are 1 or -1, where tanh is flat: its "
            "derivative is 0 or almost 0, and `W_q` and `W_k` get little or no gradient.",
            STEEP);
    else
        say(l,
            "Where the input `Z` is negative, relu is flat: its derivative is 0, and so is the "
            "gradient of `Z`. A column of `Z` that is negative for every token has no effect, so "
            "its row of `W_1.weight` gets no gradient and does not learn. Here the gradient is 0 "
            "in %d of the %d rows of `W_1.weight`.",
            rows_without_gradient(), HIDDEN);
    say(l, "For programmers: your own program makes such a page with `tape_keep_grads(true)` after "
           "`tape_begin()`, `tape_write_json(file)` after `ag_backward(loss)`, and `build/explain "
           "--tape FILE.json --page FILE.html`.");
}

static void ask(Lesson *l) {
    const double w = lesson_value("W_q.weight", 0), dw = lesson_grad("W_q.weight", 0);
    char up[32], down[32], all[32], why[128];
    snprintf(up, sizeof up, "%.4f", w + RATE * dw);
    snprintf(down, sizeof down, "%.4f", w - RATE * dw);
    snprintf(all, sizeof all, "%.4f", w - dw);
    snprintf(why, sizeof why, "SGD subtracts the rate times the gradient: %.4f - %g x %.4f = %s.",
             w, RATE, dw, down);
    const char *const options[] = {up, down, all, NULL};
    if (l->options.additive)
        ask_zeros(l, "q + k", "Which cells of the gradient of `q + k` must be 0?");
    else ask_zeros(l, "Z", "Which cells of the gradient of `Z` must be 0?");
    if (strcmp(up, down) != 0)
        ask_choice(l, options, 1, why,
                   "What is the first number of `W_q.weight` after this step, with a learning rate "
                   "of %g?",
                   RATE);
    ask_number(l, "W_2.bias", "grad", 0,
               "`W_2.bias` is added to every token. What is the gradient of its first "
               "number? Add up the first column of the gradient of `Y`.");
}

/* The formulas that both kinds of attention share. */
#define TRAINED                                                                                    \
    "Z = output W_1' + W_1.bias", "Y = relu(Z) W_2' + W_2.bias", "loss = sum((Y - T)^2)",          \
        "W <- W - 0.02 dW, every parameter W"

const LessonKind lesson_6 = {
    .title = "A training step",
    .idea = "Forward, backward, step: a module learns by 200 small subtractions.",
    .source = "d2l.ai: Attention Scoring Functions; additive attention: Bahdanau et al. 2015",
    .columns = "",
    .formula = {"queries = x W_q',  scores = queries x'", "output = softmax(scores / sqrt(d)) x",
                TRAINED},
    .additive = {"features = tanh(x W_q' + x W_k')", "output = softmax(features w_v') x", TRAINED},
    .own = {.tokens = 4, .seed = 26},
    .rate = RATE,
    .shows_losses = true,
    .build = build,
    .tell = tell,
    .ask = ask,
};
