/* lesson6.c - a training step: a module with parameters, a loss, SGD. The tape shows one of 200
 * steps, the first unless --step gives another. With --additive a small network computes the
 * scores, and its tanh is saturated. */
#include "tell.h"

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
    Tensor *P = ag_name(nn_linear_forward(net->W_1, output), "P");
    return ag_name(nn_linear_forward(net->W_2, ag_name(ag_relu(P), "relu(P)")), "Y");
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

/* ---- the texts ------------------------------------------------------------------------------- */

static int64_t count_negative(const char *name) {
    int64_t count = 0;
    for (int64_t i = 0; i < size_of(name); i++) count += lesson_value(name, i) < 0;
    return count;
}

static void begin(Lesson *l) {
    static const char *const options[] = {"0", "what arrives, unchanged",
                                          "what arrives, with the other sign", NULL};
    const double *losses = lesson_losses(l);
    const int64_t step = l->options.step + 1;
    cover(
        l, NULL, 0,
        "A model learns in small steps, and each is the same: forward to the loss, backward to the "
        "gradients, then subtract a little of each gradient. %d steps take this loss from %s to "
        "%s. Here is step %d%s, number by number.",
        LESSON_STEPS, show(losses[0]), show(losses[LESSON_STEPS - 1]), (int)step,
        step > LESSON_STEPS ? "" : " of them");
    if (count_negative("P") > 0)
        bet(l, step_backward("relu(P)", "P"), options, 0,
            "`relu(P)` makes each negative number of `P` 0. What gradient does a negative number "
            "get back?");
}

static void tell_dot_product(Lesson *l) {
    const int64_t T = l->options.tokens, q = largest_value("queries"), s = largest_value("scores");
    const int64_t a = largest_value("attention_weights");
    say(l, step_forward("queries"), q,
        "For each word of `x` the model should return the next one, and for the last word the first. "
        "So it must learn to look one place on. `W_q` is a parameter, a table of numbers that "
        "learns, and makes a query of each word: one number for \"%s\" is %s.",
        word_of(l, q / E), show_value("queries", q));
    say(l, step_forward("keys'"), 0,
        "The words themselves are the keys, without a matrix. They stand as columns: %s is the "
        "first number.",
        show_value("keys'", 0));
    say(l, step_forward("scores"), s,
        "Each query times each key: farthest from 0 is %s, of \"%s\" with \"%s\".",
        show_value("scores", s), word_of(l, s / T), word_of(l, s % T));
    say(l, step_forward("attention_weights"), a,
        "This line first divides the scores by sqrt(d), then takes the softmax of each row; no key "
        "is masked. \"%s\" gives \"%s\" %s; "
        "right would be all of it to the next word.",
        word_of(l, a / T), word_of(l, a % T), show_value("attention_weights", a));
}

static void tell_additive(Lesson *l) {
    const int64_t T = l->options.tokens, q = largest_value("queries"), k = largest_value("keys");
    const int64_t sum = largest_value("q + k"), s = largest_value("scores");
    const int64_t w = largest_value("w_v features"), a = largest_value("attention_weights");
    const char *pairs = "A small network computes the scores.";
    say(l, step_forward("queries"), q,
        "For each word of `x` the model should return the next one, and for the last word the first. "
        "So it must learn to look one place on. `W_q` is a parameter, a table of numbers that "
        "learns, and makes a query of each word: one number for \"%s\" is %s.",
        word_of(l, q / E), show_value("queries", q));
    say(l, step_forward("keys"), k,
        "And `W_k` makes the keys. It began %d times too large: one number "
        "for \"%s\" is %s.",
        STEEP, word_of(l, k / E), show_value("keys", k));
    say(l, step_forward("queries (1, T, 1, E)"), 0,
        "%s For that every query must meet every key: the queries get a dimension more, %s stays.",
        pairs, show_value("queries (1, T, 1, E)", 0));
    say(l, step_forward("keys (1, 1, T, E)"), 0, "So do the keys: %s stays.",
        show_value("keys (1, 1, T, E)", 0));
    say(l, step_forward("q + k"), sum,
        "Each query plus each key, number by number: farthest from 0 is %s, of \"%s\" with \"%s\".",
        show_value("q + k", sum), word_of(l, sum / (T * E)), word_of(l, sum / E % T));
    say(l, step_forward("features"), sum,
        "The tanh of it, between -1 and 1: %s becomes %s. Far from 0, tanh is flat.",
        show_value("q + k", sum), show_value("features", sum));
    say(l, step_forward("w_v features"), w,
        "`w_v` makes one score of each %d numbers: farthest from 0 is %s.", E,
        show_value("w_v features", w));
    say(l, step_forward("scores"), s,
        "As a table, a row for each query and a column for each key: \"%s\" with \"%s\" has %s.",
        word_of(l, s / T), word_of(l, s % T), show_value("scores", s));
    say(l, step_forward("attention_weights"), a,
        "Softmax makes weights of each row: \"%s\" gives \"%s\" %s; right would be all of it to the "
        "next word.",
        word_of(l, a / T), word_of(l, a % T), show_value("attention_weights", a));
}

static void tell_forward(Lesson *l) {
    const int64_t o = largest_value("output"), z = largest_value("P"), y = largest_value("Y");
    const int64_t h = largest_value("relu(P)"), negative = count_negative("P");
    if (l->options.additive) tell_additive(l);
    else tell_dot_product(l);
    say(l, step_forward("output"), o,
        "The mean of the words, each counted with its weight: for \"%s\" one number is %s.",
        word_of(l, o / E), show_value("output", o));
    say(l, step_forward("P"), z,
        "A first layer: times `W_1`, plus the bias `b_1`. Farthest from 0 is %s.",
        show_value("P", z));
    say(l, step_forward("relu(P)"), h,
        "`relu(P)`, the rectified linear unit, keeps what is positive and makes the "
        "rest 0: %d of %d numbers %s negative here. The largest number that stays is %s.",
        (int)negative, (int)size_of("P"), negative == 1 ? "is" : "are", show_value("relu(P)", h));
    say(l, step_forward("Y"), y,
        "A second layer makes the answer, as large as a word again: farthest from 0 is %s.",
        show_value("Y", y));
    say_loss(l, "the next word, for each word of `x`");
}

static void tell_layers_backward(Lesson *l) {
    const int64_t h = largest_grad("relu(P)"), w = largest_grad("W_2.weight");
    const int64_t b = largest_grad("W_2.bias"), z = largest_grad("P"), o = largest_grad("output");
    const int64_t w_1 = largest_grad("W_1.weight"), b_1 = largest_grad("W_1.bias");
    const int still = rows_without_gradient();
    say_loss_backward(l, "Y");
    say(l, step_backward("Y", "relu(P)"), h,
        "Back through the second layer: farthest from 0 is %s, for \"%s\".",
        show_grad("relu(P)", h), word_of(l, h / HIDDEN));
    say(l, step_backward("Y", "W_2.weight"), w,
        "The first parameter that gets its gradient: each of its numbers was used for every word, "
        "and gets a term from each. Farthest from 0 is %s.",
        show_grad("W_2.weight", w));
    say(l, step_backward("Y", "W_2.bias"), b,
        "The bias was added to every word, so its gradient is the sum of a column of `dY`: %s.",
        show_grad("W_2.bias", b));
    say(l, step_backward("relu(P)", "P"), z,
        "Where `P` is negative, relu is flat: a small change of `P` changes nothing, and the gradient "
        "is exactly 0. Elsewhere it passes unchanged: %s is the one farthest from 0.",
        show_grad("P", z));
    say(l, step_backward("P", "output"), o,
        "Back through the first layer, to the attention: farthest from 0 is %s.",
        show_grad("output", o));
    if (still > 0)
        say(l, step_backward("P", "W_1.weight"), w_1,
            "A term from each word. But %d of %d rows get%s exactly 0: in the column of `dP` all "
            "numbers are 0, so nothing is learned there in this step. Farthest from 0 is %s.",
            still, HIDDEN, still == 1 ? "s" : "", show_grad("W_1.weight", w_1));
    else
        say(l, step_backward("P", "W_1.weight"), w_1,
            "A term from each word, as before. Every row gets a gradient; farthest from 0 is %s.",
            show_grad("W_1.weight", w_1));
    say(l, step_backward("P", "W_1.bias"), b_1, "The sum of a column of `dP`: %s.",
        show_grad("W_1.bias", b_1));
}

static void tell_attention_backward(Lesson *l) {
    const int64_t T = l->options.tokens, a = largest_grad("attention_weights");
    const int64_t s = largest_grad("scores");
    const char *word = word_of(l, s / T);
    const char *other = word_of(l, s % T);
    const double slope = lesson_grad("scores", s);
    say(l, step_backward("output", "attention_weights"), a,
        "To the weights: the gradient of an output meets a word. \"%s\" with \"%s\" gets %s. The "
        "words `x` are data, and get no gradient.",
        word_of(l, a / T), word_of(l, a % T), show_grad("attention_weights", a));
    if (slope == 0)
        say(l, step_backward("attention_weights", "scores"), s,
            "Through softmax no gradient arrives in this step: all are %s.",
            show_grad("scores", s));
    else
        say(l, step_backward("attention_weights", "scores"), s,
            "Through softmax%s: %s for the score of \"%s\" with \"%s\", so \"%s\" should give it %s "
            "attention.",
            l->options.additive ? "" : ", which divided by sqrt(d), too", show_grad("scores", s),
            word, other, word, slope > 0 ? "less" : "more");
}

/* How many numbers of tanh are so flat that the derivative is less than a hundredth. */
static int64_t count_flat(void) {
    int64_t count = 0;
    for (int64_t i = 0; i < size_of("features"); i++)
        count += 1 - pow(lesson_value("features", i), 2) < 0.01;
    return count;
}

static void tell_additive_backward(Lesson *l) {
    const int64_t w = largest_grad("w_v features"), f = largest_grad("features");
    const int64_t v = largest_grad("w_v.weight"), s = largest_grad("q + k");
    const int64_t k = largest_grad("keys"), q = largest_grad("queries");
    const int64_t w_k = largest_grad("W_k.weight");
    say(l, step_backward("scores", "w_v features"), w,
        "The scores were only moved, and so are their gradients: %s stays.",
        show_grad("w_v features", w));
    say(l, step_backward("w_v features", "features"), f,
        "Each score was a sum over %d numbers, times `w_v`; with these factors the gradient "
        "comes back: %s.",
        E, show_grad("features", f));
    say(l, step_backward("w_v features", "w_v.weight"), v,
        "The parameter gets a term from each pair of words: farthest from 0 is %s.",
        show_grad("w_v.weight", v));
    say(l, step_backward("features", "q + k"), s,
        "The derivative of tanh is 1 minus its square. In %d of %d places this is less than a "
        "hundredth: there tanh is flat, and almost nothing gets through. The largest gradient "
        "that is left is %s.",
        (int)count_flat(), (int)size_of("features"), show_grad("q + k", s));
    say(l, step_backward("q + k", "queries (1, T, 1, E)"), largest_grad("queries (1, T, 1, E)"),
        "A query was added to every key, so it gets a sum over the keys: farthest from 0 is %s.",
        show_grad("queries (1, T, 1, E)", largest_grad("queries (1, T, 1, E)")));
    say(l, step_backward("q + k", "keys (1, 1, T, E)"), largest_grad("keys (1, 1, T, E)"),
        "And a key gets a sum over the queries: farthest from 0 is %s.",
        show_grad("keys (1, 1, T, E)", largest_grad("keys (1, 1, T, E)")));
    say(l, step_backward("keys (1, 1, T, E)", "keys"), k,
        "Without the dimension more, the same numbers: %s is one.", show_grad("keys", k));
    say(l, step_backward("queries (1, T, 1, E)", "queries"), q,
        "The same for the queries: %s is one.", show_grad("queries", q));
    say(l, step_backward("keys", "W_k.weight"), w_k,
        "The matrix of the keys, which is too large, gets its gradient through what tanh has let "
        "pass: farthest from 0 is %s.",
        show_grad("W_k.weight", w_k));
}

static void tell(Lesson *l) {
    const int64_t w = largest_grad("W_q.weight"), q = largest_grad("queries");
    tell_forward(l);
    tell_layers_backward(l);
    tell_attention_backward(l);
    if (l->options.additive) tell_additive_backward(l);
    else
        say(l, step_backward("scores", "queries"), q,
            "To the queries: \"%s\" gets %s. The keys are data here, and get nothing.",
            word_of(l, q / E), show_grad("queries", q));
    say(l, step_backward("queries", "W_q.weight"), w,
        "The last parameter: farthest from 0 is %s. Now every parameter has its gradient. All of it, with an engine of your own: examples/exercises/students/attention.c.",
        show_grad("W_q.weight", w));
    say(l, step_twice(), 0,
        "In lesson 1 a number that is used 12 times got 12 terms, added. Backward adds, since it "
        "cannot know where one use ends and another run begins: two batches, backward each and then "
        "one step, are one batch of both. A loop that wants the gradient of this run alone has to "
        "zero before it.");
}

static void ask_twice(Lesson *l) {
    static const char *const options[] = {"the same", "twice as large", "0", NULL};
    ask_choice(l, step_twice(), options, 1,
               "Backward adds to the gradients that are there, so the same loss counts twice.",
               "What does a line with += do when it runs twice?",
               "Press ag_backward a second time. What is each number of the gradients then?");
}

static void ask_step(Lesson *l) {
    const int64_t i = other_than(largest_grad("W_q.weight"));
    const double w = lesson_value("W_q.weight", i), dw = lesson_grad("W_q.weight", i);
    char up[32], down[32], all[32], why[128];
    snprintf(up, sizeof up, "%.4f", w + RATE * dw);
    snprintf(down, sizeof down, "%.4f", w - RATE * dw);
    snprintf(all, sizeof all, "%.4f", w - dw);
    snprintf(why, sizeof why, "SGD subtracts the rate times the gradient: %s.",
             show_subtraction(number_with(w, 4), number(RATE), number_with(dw, 4),
                              number_with(w - RATE * dw, 4)));
    const char *const options[] = {up, down, all, NULL};
    if (strcmp(up, down) != 0)
        ask_choice(l, step_backward("queries", "W_q.weight"), options, 1, why,
                   "A step subtracts the gradient, but only a small part of it: the learning rate "
                   "says how much.",
                   "The %s number of `W_q` is %.4f now. With a learning rate of %g, what is it "
                   "after this step?",
                   place_of(i), w, RATE);
}

static void ask(Lesson *l) {
    const int64_t i = other_than(largest_grad("W_2.bias"));
    ask_number(l, step_backward("Y", "W_2.bias"), "W_2.bias", "grad", i,
               "Each column of `dY` belongs to one number of the bias. Add it up.",
               "`b_2` is added to every word. What is the gradient of its %s number?", place_of(i));
    if (l->options.additive)
        ask_zeros(l, step_backward("features", "q + k"), "q + k",
                  "The derivative of tanh is 1 minus its square. When is that exactly 0 on a "
                  "computer?",
                  "Which cells of the gradient of `q + k` must be 0?");
    else
        ask_zeros(l, step_backward("relu(P)", "P"), "P",
                  "Where does a small change of `P` not change `relu(P)`?",
                  "Which cells of the gradient of `P` must be 0?");
    ask_step(l);
    ask_twice(l);
}

/* The formulas that both kinds of attention share. */
#define TRAINED                                                                                    \
    "P = output W_1' + b_1", "Y = relu(P) W_2' + b_2", "loss = sum((Y - T)^2)",                    \
        "W <- W - rate dW, every parameter W"

const LessonKind lesson_6 = {
    .number = 6,
    .title = "A training step",
    .hook = "Forward, backward, step",
    .idea = "Forward, backward, step: a module learns by 200 small subtractions.",
    .source = "d2l.ai: Attention Scoring Functions; additive attention: Bahdanau et al. 2015",
    .exercise = "13_sgd",
    .columns = "",
    .formula = {"queries = x W_q',  scores = queries x'", "output = softmax(scores / sqrt(d)) x",
                TRAINED},
    .additive = {"features = tanh(x W_q' + x W_k')", "output = softmax(features w_v') x", TRAINED},
    .word_rows = {"x", "queries", "keys", "keys (1, 1, T, E)", "q + k", "features", "w_v features",
                  "scores", "attention_weights", "output", "P", "relu(P)", "Y", "T", "E", "E^2"},
    .word_columns = {"keys'", "scores", "attention_weights"},
    .shorts = {{"queries", "Q"},
               {"keys", "K"},
               {"keys'", "x'"},
               {"scores", "S"},
               {"features", "F"},
               {"attention_weights", "A"},
               {"output", "O"},
               {"relu(P)", "H"},
               {"W_q.weight", "W_q"},
               {"W_k.weight", "W_k"},
               {"w_v.weight", "w_v"},
               {"W_1.weight", "W_1"},
               {"W_2.weight", "W_2"},
               {"W_1.bias", "b_1"},
               {"W_2.bias", "b_2"}},
    .keys = {{"queries", NULL},
             {"attention_weights", NULL},
             {"relu(P)", NULL},
             {"Y", NULL},
             {"loss", NULL},
             {"E", "Y"},
             {"P", "W_1.weight"}},
    .card = {"W_2.weight", "W_2.bias", "relu(P)", "P", "attention_weights", "scores", "W_q.weight"},
    .own = {.tokens = 4, .seed = 26},
    .rates = {RATE, 0.05, 0.5},
    .shows_losses = true,
    .loop = "W_2.weight",
    .build = build,
    .begin = begin,
    .tell = tell,
    .ask = ask,
};
