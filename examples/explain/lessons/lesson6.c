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
    return lesson_loss(net_forward(l->model, x), T, NULL);
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
        text_of(
            "A model learns in small steps, and each is the same: forward to the loss, backward to the "
            "gradients, then subtract a little of each gradient. %d steps take this loss from %s to "
            "%s. Here is step %d%s, number by number.",
            LESSON_STEPS, show(losses[0]), show(losses[LESSON_STEPS - 1]), (int)step,
            step > LESSON_STEPS ? "" : " of them"));
    if (count_negative("P") > 0)
        bet(l, step_backward("relu(P)", "P"), options, 0,
            "`relu(P)` makes each negative number of `P` 0. What gradient does a negative number "
            "get back?");
}

static void tell_dot_product(Lesson *l) {
    say(l, step_forward("keys'"), 0,
        "The words themselves are the keys, without a matrix. They stand as columns: {} is the "
        "first number.");
    say(l, step_forward("scores"), LARGEST,
        "Each query times each key: farthest from 0 is {}, of \"{row}\" with \"{column}\".");
    say(l, step_forward("attention_weights"), LARGEST,
        "This line first divides the scores by sqrt(d), then takes the softmax of each row; no "
        "key is masked. \"{row}\" gives \"{column}\" {}; right would be all of it to the next "
        "word.");
}

static void tell_additive(Lesson *l) {
    const int64_t T = l->options.tokens;
    const int64_t sum = largest_value("q + k");
    const char *pairs = "A small network computes the scores.";
    say(l, step_forward("keys"), LARGEST,
        "And `W_k` makes the keys. It began %d times too large: one number for \"{row}\" is {}.",
        STEEP);
    say(l, step_forward("queries (1, T, 1, E)"), 0,
        "%s For that every query must meet every key: the queries get a dimension more, {} stays.",
        pairs);
    say(l, step_forward("keys (1, 1, T, E)"), 0, "So do the keys: {} stays.");
    say(l, step_forward("q + k"), LARGEST,
        "Each query plus each key, number by number: farthest from 0 is {}, of \"%s\" with "
        "\"{row}\".",
        word_of(l, sum / (T * E)));
    say(l, step_forward("features"), sum,
        "The tanh of it, between -1 and 1: %s becomes {}. Far from 0, tanh is flat.",
        show_value("q + k", sum));
    say(l, step_forward("w_v features"), LARGEST,
        "`w_v` makes one score of each %d numbers: farthest from 0 is {}.", E);
    say(l, step_forward("scores"), LARGEST,
        "As a table, a row for each query and a column for each key: \"{row}\" with \"{column}\" "
        "has {}.");
    say(l, step_forward("attention_weights"), LARGEST,
        "Softmax makes weights of each row: \"{row}\" gives \"{column}\" {}; right would be all "
        "of it to the next word.");
}

static void tell_forward(Lesson *l) {
    const int64_t negative = count_negative("P");
    say(l, step_forward("queries"), LARGEST,
        "For each word of `x` the model should return the next one, and for the last word the "
        "first. So it must learn to look one place on. `W_q` is a parameter, a table of numbers "
        "that learns, and makes a query of each word: one number for \"{row}\" is {}.");
    if (l->options.additive) tell_additive(l);
    else tell_dot_product(l);
    say(l, step_forward("output"), LARGEST,
        "The mean of the words, each counted with its weight: for \"{row}\" one number is {}.");
    say(l, step_forward("P"), LARGEST,
        "A first layer: times `W_1`, plus the bias `b_1`. Farthest from 0 is {}.");
    say(l, step_forward("relu(P)"), LARGEST,
        "`relu(P)`, the rectified linear unit, keeps what is positive and makes the rest 0: %d "
        "of %d numbers %s negative here. The largest number that stays is {}.",
        (int)negative, (int)size_of("P"), negative == 1 ? "is" : "are");
    say(l, step_forward("Y"), LARGEST,
        "A second layer makes the answer, as large as a word again: farthest from 0 is {}.");
    say_loss(l, "the next word, for each word of `x`");
}

static void tell_layers_backward(Lesson *l) {
    const int still = rows_without_gradient();
    say_loss_backward(l, "Y");
    say(l, step_backward("Y", "relu(P)"), LARGEST,
        "Back through the second layer: farthest from 0 is {}, for \"{row}\".");
    say(l, step_backward("Y", "W_2.weight"), LARGEST,
        "The first parameter that gets its gradient: each of its numbers was used for every "
        "word, and gets a term from each. Farthest from 0 is {}.");
    say(l, step_backward("Y", "W_2.bias"), LARGEST,
        "The bias was added to every word, so its gradient is the sum of a column of `dY`: {}.");
    say(l, step_backward("relu(P)", "P"), LARGEST,
        "Where `P` is negative, relu is flat: a small change of `P` changes nothing, and the "
        "gradient is exactly 0. Elsewhere it passes unchanged: {} is the one farthest from 0.");
    say(l, step_backward("P", "output"), LARGEST,
        "Back through the first layer, to the attention: farthest from 0 is {}.");
    if (still > 0)
        say(l, step_backward("P", "W_1.weight"), LARGEST,
            "A term from each word. But %d of %d rows get%s exactly 0: in the column of `dP` all "
            "numbers are 0, so nothing is learned there in this step. Farthest from 0 is {}.",
            still, HIDDEN, still == 1 ? "s" : "");
    else
        say(l, step_backward("P", "W_1.weight"), LARGEST,
            "A term from each word, as before. Every row gets a gradient; farthest from 0 is {}.");
    say(l, step_backward("P", "W_1.bias"), LARGEST, "The sum of a column of `dP`: {}.");
}

static void tell_attention_backward(Lesson *l) {
    const int64_t T = l->options.tokens;
    const int64_t s = largest_grad("scores");
    const char *word = word_of(l, s / T);
    const char *other = word_of(l, s % T);
    const double slope = lesson_grad("scores", s);
    say(l, step_backward("output", "attention_weights"), LARGEST,
        "To the weights: the gradient of an output meets a word. \"{row}\" with \"{column}\" "
        "gets {}. The words `x` are data, and get no gradient.");
    if (slope == 0)
        say(l, step_backward("attention_weights", "scores"), LARGEST,
            "Through softmax no gradient arrives in this step: all are {}.");
    else
        say(l, step_backward("attention_weights", "scores"), LARGEST,
            "Through softmax%s: {} for the score of \"%s\" with \"%s\", so \"%s\" should give it %s "
            "attention.",
            l->options.additive ? "" : ", which divided by sqrt(d), too", word, other, word,
            slope > 0 ? "less" : "more");
}

/* How many numbers of tanh are so flat that the derivative is less than a hundredth. */
static int64_t count_flat(void) {
    int64_t count = 0;
    for (int64_t i = 0; i < size_of("features"); i++)
        count += 1 - pow(lesson_value("features", i), 2) < 0.01;
    return count;
}

static void tell_additive_backward(Lesson *l) {
    say(l, step_backward("scores", "w_v features"), LARGEST,
        "The scores were only moved, and so are their gradients: {} stays.");
    say(l, step_backward("w_v features", "features"), LARGEST,
        "Each score was a sum over %d numbers, times `w_v`; with these factors the gradient "
        "comes back: {}.",
        E);
    say(l, step_backward("w_v features", "w_v.weight"), LARGEST,
        "The parameter gets a term from each pair of words: farthest from 0 is {}.");
    say(l, step_backward("features", "q + k"), LARGEST,
        "The derivative of tanh is 1 minus its square. In %d of %d places this is less than a "
        "hundredth: there tanh is flat, and almost nothing gets through. The largest gradient "
        "that is left is {}.",
        (int)count_flat(), (int)size_of("features"));
    say(l, step_backward("q + k", "queries (1, T, 1, E)"), LARGEST,
        "A query was added to every key, so it gets a sum over the keys: farthest from 0 is {}.");
    say(l, step_backward("q + k", "keys (1, 1, T, E)"), LARGEST,
        "And a key gets a sum over the queries: farthest from 0 is {}.");
    say(l, step_backward("keys (1, 1, T, E)", "keys"), LARGEST,
        "Without the dimension more, the same numbers: {} is one.");
    say(l, step_backward("queries (1, T, 1, E)", "queries"), LARGEST,
        "The same for the queries: {} is one.");
    say(l, step_backward("keys", "W_k.weight"), LARGEST,
        "The matrix of the keys, which is too large, gets its gradient through what tanh has let "
        "pass: farthest from 0 is {}.");
}

static void tell(Lesson *l) {
    tell_forward(l);
    tell_layers_backward(l);
    tell_attention_backward(l);
    if (l->options.additive) tell_additive_backward(l);
    else
        say(l, step_backward("scores", "queries"), LARGEST,
            "To the queries: \"{row}\" gets {}. The keys are data here, and get nothing.");
    say(l, step_backward("queries", "W_q.weight"), LARGEST,
        "The last parameter: farthest from 0 is {}. Now every parameter has its gradient. All of "
        "it, with an engine of your own: examples/exercises/students/attention.c.");
    say(l, step_twice(), 0,
        "In lesson 1 a number that is used 12 times got 12 terms, added. Backward adds, since it "
        "cannot know where one use ends and another run begins: two batches, backward each and "
        "then one step, are one batch of both. A loop that wants the gradient of this run alone "
        "has to zero before it.");
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
    const char *const options[] = {text_of("%.4f", w + RATE * dw), text_of("%.4f", w - RATE * dw),
                                   text_of("%.4f", w - dw), NULL};
    if (strcmp(options[0], options[1]) != 0)
        ask_choice(
            l, step_backward("queries", "W_q.weight"), options, 1,
            text_of("SGD subtracts the rate times the gradient: %s.",
                    show_subtraction(number_with(w, 4), number(RATE), number_with(dw, 4),
                                     number_with(w - RATE * dw, 4))),
            "A step subtracts the gradient, but only a small part of it: the learning rate "
            "says how much.",
            text_of("The %s number of `W_q` is %.4f now. With a learning rate of %g, what is it "
                    "after this step?",
                    place_of(i), w, RATE));
}

static void ask(Lesson *l) {
    const int64_t i = other_than(largest_grad("W_2.bias"));
    ask_number(l, step_backward("Y", "W_2.bias"), "W_2.bias", "grad", i,
               "Each column of `dY` belongs to one number of the bias. Add it up.",
               text_of("`b_2` is added to every word. What is the gradient of its %s number?",
                       place_of(i)));
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
