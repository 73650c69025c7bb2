/* heads.c - which heads does a model need?
 *
 * The task: at every place i of random tokens, name the tokens at i - 1, i - 4, i - 7 and i - 10. A
 * head returns one weighted mean, so every offset needs its own head. The model has twice as many
 * heads, so half of them are not needed. Fewer places have a token at a large offset, so some heads
 * are more important than others. One backward pass measures the importance of all heads (Michel,
 * Levy & Neubig 2019): a gate of 1 multiplies the output of a head, and the gradient of the gate
 * says how the loss changes if the gate gets smaller. The program prints the importance of each
 * head beside the loss without that head.
 *
 * B sequences, T = --length, H = --heads, E = --hidden, d = E / H, O = --offsets, V = --tokens. The
 * sections: the model, the sequences, training, importance, one example step by step, main.
 */
#include "common/plural.h"
#include "heads/rank.h"
#include "common/training.h"
#include "explain/page/recording.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_HEADS = 16, MAX_OFFSETS = 8, IGNORED = -100, UNSEEN = 256 };

static Training run = {
    .program = "heads",
    .summary = "learns where its heads must look",
    .caption = {{"A row is a place i in a sequence, a column a place that it "
                 "looks at.",
                 "i-7: it looks 7 places back. Importance: how the gate changes the loss."}},
    .seed = 1,
    .steps = 1500,
    .batch = 32,
    .lr = 0.3};
static struct {
    int64_t heads, hidden, length, tokens, offsets;
    double dropout, decay;
    bool no_scale;
} options = {8, 128, 16, 10, 4, 0, 1e-3, false};

static int64_t offset(int64_t o) { return 1 + 3 * o; } /* 1, 4, 7, 10 */

/* ---- the model --------------------------------------------------------------------------- */

typedef struct {
    Module module;
    Embedding *tokens;                      /* (V, E) */
    PositionalEncoding *places;             /* (1, T, E) */
    Linear *W_q, *W_k, *W_v, *W_o, *answer; /* (E, E), and the answer (O V, E) */
    Tensor *attention_weights;              /* (B H, T, T) of the last forward */
} Heads;

static Heads *heads_new(int64_t E, int64_t answers) {
    static const ModuleClass class = {"Heads", sizeof(Heads), NULL, NULL};
    Heads *net = nn_module_new(&class);
    if (!net) return NULL;
    net->tokens = nn_add_child(net, "tokens", nn_embedding_new(options.tokens, E));
    net->places = nn_add_child(net, "places", nn_positional_encoding_new(E, 0, options.length));
    net->W_q = nn_add_child(net, "W_q", nn_linear_new(E, E, false));
    net->W_k = nn_add_child(net, "W_k", nn_linear_new(E, E, false));
    net->W_v = nn_add_child(net, "W_v", nn_linear_new(E, E, false));
    net->W_o = nn_add_child(net, "W_o", nn_linear_new(E, E, false));
    net->answer = nn_add_child(net, "answer", nn_linear_new(E, answers, true));
    nn_add_result(net, &net->attention_weights);
    return nn_module_done(net);
}

/* (B, T, E) -> (B, T, H, d) -> (B, H, T, d): head h gets numbers h d to (h + 1) d - 1. */
static Tensor *split(Tensor *x) {
    const int64_t H = options.heads, d = options.hidden / H;
    return ag_transpose(ag_reshape(x, SHAPE(-1, options.length, H, d)), 1, 2);
}

/* tokens: (B, T), gates: (B, H, 1, 1) -> (B, V, T, O): scores of the tokens as answers
 *
 *     q = x W_q',  k = x W_k',  v = x W_v'        d columns of each for every head
 *     y_h = softmax(q_h k_h' / sqrt(d)) v_h       the output of head h
 *     y = (g_1 y_1, ..., g_H y_H) W_o'            g_h = 0: without head h
 *
 * If all gates are 1, y is nn_multi_head_attention_forward(attention, x, x, x, mask). */
static Tensor *heads_forward(Heads *net, Tensor *tokens, Tensor *gates) {
    const int64_t T = options.length, E = options.hidden, O = options.offsets;
    const double d = (double)E / (double)options.heads, scale = options.no_scale ? 1 : 1 / sqrt(d);
    Tensor *x = nn_embedding_forward(net->tokens, tokens);
    x = nn_positional_encoding_forward(net->places, x);
    Tensor *q = split(nn_linear_forward(net->W_q, x));
    Tensor *k = split(nn_linear_forward(net->W_k, x));
    Tensor *v = split(nn_linear_forward(net->W_v, x));
    Tensor *scores = ag_scale(ag_matmul(q, ag_transpose(k, 2, 3)), scale); /* (B, H, T, T) */
    Tensor *weights = ag_softmax(scores, 3);                               /* over the keys */
    nn_keep_result(net, &net->attention_weights, ag_reshape(weights, SHAPE(-1, T, T)));
    Tensor *heads = ag_mul(gates, ag_matmul(weights, v)); /* (B, H, T, d) */
    Tensor *joined = ag_reshape(ag_transpose(heads, 1, 2), SHAPE(-1, T, E));
    Tensor *y = nn_linear_forward(net->answer, nn_linear_forward(net->W_o, joined));
    return ag_permute(ag_reshape(y, SHAPE(-1, T, O, options.tokens)), AXES(0, 3, 1, 2));
}

/* ---- the sequences ------------------------------------------------------------------------- */

static Tensor *draw(int64_t B) {
    return tape_own(tensor_randint(0, options.tokens, SHAPE(B, options.length)));
}

static Tensor *draw_unseen(void) {
    tensor_manual_seed(~run.seed); /* always the same sequences, which training did not see */
    return draw(UNSEEN);
}

/* tokens: (B, T) -> (B, T, O): at place i the token at i - offset, IGNORED if there is none. */
static Tensor *answers(Tensor *tokens) {
    const int64_t T = options.length;
    Tensor *list[MAX_OFFSETS];
    Tensor *none = ag_masked_fill(tokens, ag_eq(tokens, tokens), IGNORED);
    Tensor *both = ag_cat((Tensor *[]){none, tokens}, 2, 1); /* (B, 2 T) */
    for (int64_t o = 0; o < options.offsets; o++)
        list[o] = ag_slice(both, 1, T - offset(o), 2 * T - offset(o));
    return ag_stack(list, (int)options.offsets, 2);
}

/* ---- training ------------------------------------------------------------------------------ */

static void train(Heads *net, Optimizer *sgd) {
    while (training_next(&run)) {
        tape_begin();
        Tensor *tokens = draw(run.batch);
        Tensor *open = tape_own(tensor_ones(SHAPE(run.batch, options.heads, 1, 1)));
        Tensor *y = heads_forward(net, tokens, ag_dropout(open, options.dropout));
        Tensor *loss = ag_cross_entropy(y, answers(tokens), IGNORED, REDUCE_MEAN);
        nn_optimizer_zero_grad(sgd);
        ag_backward(loss);
        nn_optimizer_step(sgd);
        training_report(&run, loss);
        tape_end();
    }
}

/* ---- importance ---------------------------------------------------------------------------- */

typedef struct {
    double loss, accuracy, importance[MAX_HEADS];
} Measured;

/* importance_h = 1/B sum_b |dL_b / dg_bh|. L_b, the mean loss of the questions of sequence b,
 * depends only on the gates of sequence b: one backward pass of sum_b L_b computes all B H
 * gradients. kept: the values of the gates, 1, or 0 for a pruned head. */
static Measured measure(Heads *net, const double *kept) {
    const int64_t B = UNSEEN, H = options.heads, T = options.length, O = options.offsets;
    tape_begin();
    Tensor *tokens = draw_unseen();
    Tensor *right = answers(tokens);
    Tensor *gate = tape_own(tensor_from_doubles(SHAPE(H, 1, 1), kept));
    Tensor *gates = ag_requires_grad(ag_expand(gate, SHAPE(B, H, 1, 1)));
    Tensor *y = heads_forward(net, tokens, gates);
    Tensor *loss = ag_cross_entropy(y, right, IGNORED, REDUCE_MEAN); /* 1/B sum_b L_b */
    Tensor *hits = ag_sum(ag_eq(ag_argmax(y, 1), right));
    double questions = (double)(B * O * (2 * T - offset(0) - offset(O - 1))) / 2;
    Measured m = {.loss = tensor_item(loss), .accuracy = tensor_item(hits) / questions};
    if (ag_backward(ag_scale(loss, (double)B)))
        tensor_to_doubles(ag_mean_dims(ag_abs(gates->grad), AXES(0, 2, 3), false), m.importance);
    tape_end();
    return m;
}

/* Prunes the least important head, measures importance again, and so on: of two heads for the same
 * offset, the second becomes important when the first is pruned. Returns the accuracy with half of
 * the heads. */
static double prune(Heads *net, Measured m, double *kept) {
    double half = m.accuracy;
    for (int n = (int)options.heads; n > 0 && !tensor_error(); n--) {
        if (n == (options.heads + 1) / 2) half = m.accuracy;
        int h = 0;
        for (int i = 1; i < options.heads; i++)
            if (kept[i] > kept[h] || (kept[i] > 0 && m.importance[i] < m.importance[h])) h = i;
        printf("%2d head%s  loss %.4f  accuracy %.4f  weakest %d\n", n, n == 1 ? " " : "s", m.loss,
               m.accuracy, h + 1);
        kept[h] = 0;
        m = measure(net, kept);
    }
    return half;
}

/* The mean weight on the token at an offset, over the places that have one. */
static double look(const AttentionMap *map, int64_t offset) {
    double sum = 0;
    for (int64_t i = offset; i < map->queries; i++) sum += map->weights[i * map->keys + i - offset];
    return sum / (double)(map->queries - offset);
}

/* For each head, prints a line and makes a map of the first sequence. At a minimum of loss and
 * decay, dL/dW = -decay W, and dL/dg_h = W_h . dL/dW_h = -decay |W_h|^2 for W_h, the d columns of
 * W_o for head h: the importance follows from the weights alone. */
static void show(const Heads *net, const Measured *m, const double *without) {
    static AttentionMap maps[MAX_HEADS];
    const int64_t d = options.hidden / options.heads;
    tape_begin_no_grad();
    Tensor *tokens = draw_unseen();
    for (int h = 0; h < options.heads && map_take(&maps[h], net->attention_weights, h, -1); h++) {
        AttentionMap *map = &maps[h];
        int64_t back = offset(0);
        for (int i = 0; i < map->keys; i++) {
            *map->key[i] = (char)('a' + (int)tensor_get(tokens, 0, i));
            *map->query[i] = *map->key[i];
        }
        for (int64_t o = 1; o < options.offsets; o++)
            if (look(map, offset(o)) > look(map, back)) back = offset(o);
        const double here = m->importance[h];
        Tensor *W = ag_slice(net->W_o->weight, 1, h * d, h * d + d);
        snprintf(map->title, sizeof map->title, "head %d: i-%d", h + 1, (int)back);
        snprintf(map->note, sizeof map->note, "importance %.4f", here);
        printf("head %d: i-%-2d  importance %.4f  ", h + 1, (int)back, here);
        printf("decay |W|^2 %.4f  loss without %.4f  weight %.2f\n",
               options.decay * tensor_sum_of_squares(W), without[h], look(map, back));
    }
    tape_end();
    training_show(&run, maps, (int)options.heads);
}

static void evaluate(Heads *net) {
    double kept[MAX_HEADS], without[MAX_HEADS];
    for (int h = 0; h < options.heads; h++) kept[h] = 1;
    for (int h = 0; h < options.heads; h++) {
        kept[h] = 0;
        without[h] = measure(net, kept).loss;
        kept[h] = 1;
    }
    Measured m = measure(net, kept);
    show(net, &m, without);
    double half = prune(net, m, kept);
    double order = rank_correlation(m.importance, without, options.heads, 1e-4); /* as printed */
    training_expect(&run, "accuracy", m.accuracy, ">=", 0.99);
    training_expect(&run, "rank correlation", order, ">=", 0.8);
    training_expect(&run, "accuracy lost with half", m.accuracy - half, "<", 0.01);
}

/* ---- one example step by step ---------------------------------------------------------------- */

enum { LAST = 1 }; /* queries on the page, the last places: there all offsets have a token */

/* The leaves of the page, and its constants. The product answer W_o replaces two matrices. */
typedef struct {
    Tensor *q, *k, *v; /* (H, LAST, d), (H, T, d) */
    Tensor *gates;     /* (H, 1, 1) */
    Tensor *W, *right; /* (O V, E), (1, LAST, O) */
} Seen;

static Seen see(Heads *net) {
    const int64_t H = options.heads, from = options.length - LAST;
    Tensor *tokens = ag_slice(draw_unseen(), 0, 0, 1);
    Tensor *x = nn_embedding_forward(net->tokens, tokens);
    x = nn_positional_encoding_forward(net->places, x); /* (1, T, E) */
    Tensor *right = ag_slice(answers(tokens), 1, from, INT64_MAX);
    Tensor *W = ag_matmul(net->answer->weight, net->W_o->weight);
    Tensor *gates = tape_own(tensor_ones(SHAPE(H, 1, 1)));
    return (Seen){.q = recording_heads(net->W_q, ag_slice(x, 1, from, INT64_MAX), H, "queries"),
                  .k = recording_heads(net->W_k, x, H, "keys"),
                  .v = recording_heads(net->W_v, x, H, "values"),
                  .gates = recording_leaf(gates, "gates"),
                  .W = recording_constant(W, "answer W_o"),
                  .right = recording_constant(right, "right")};
}

/* As heads_forward, for the last places: (1, V, LAST, O). */
static Tensor *attend(const Heads *net, const Seen *s) {
    const double d = (double)options.hidden / (double)options.heads;
    const double scale = options.no_scale ? 1 : 1 / sqrt(d);
    Tensor *products = ag_bmm(s->q, ag_transpose(s->k, 1, 2)); /* (H, LAST, T) */
    Tensor *scores = ag_name(ag_scale(products, scale), "scores");
    Tensor *weights = ag_name(ag_softmax(scores, 2), "attention_weights");
    Tensor *output = ag_name(ag_bmm(weights, s->v), "output");
    Tensor *heads = ag_name(ag_mul(s->gates, output), "heads");
    Tensor *y = ag_linear(recording_join(heads), s->W, net->answer->bias);
    return ag_permute(ag_reshape(y, SHAPE(1, -1, options.offsets, options.tokens)),
                      AXES(0, 3, 1, 2));
}

/* Writes the page of the first sequence that measure draws; all gates are 1. */
static void explain(Heads *net) {
    char words[512];
    recording_prepare(net);
    const Seen s = see(net);
    recording_begin();
    Tensor *loss = ag_cross_entropy(attend(net, &s), s.right, IGNORED, REDUCE_MEAN);
    snprintf(words, sizeof words,
             "The last place of a sequence of %" PRId64 " token%s, after %" PRId64 " step%s of "
             "training, with %" PRId64 " head%s. The model must name %" PRId64
             " token%s before this place, and row 0 "
             "of `attention_weights` says where each head looks.",
             options.length, plural(options.length), run.step, plural(run.step), options.heads,
             plural(options.heads), options.offsets, plural(options.offsets));
    const Recording recording = {
        .title = "heads",
        .idea = "A gate of 1 changes nothing, but its gradient says how much its head is needed.",
        .command = "build/heads --explain FILE.html",
        .columns = "head",
        .text = {words,
                 "The gradient of a gate is one sum over all numbers of its head: the output "
                 "of the head times its gradient. Parameters are constants "
                 "here; the two matrices after the attention, W_o and answer, are replaced "
                 "by their product."},
        .formula = {"attention_weights = softmax(queries keys' / sqrt(d)), for each head",
                    "heads = gates * (attention_weights values)",
                    "loss = mean of -log softmax(joined (answer W_o)' + b)[right token]"}};
    recording_end(net, loss, &recording, run.explain);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    INTEGER_FLAG("--heads", options.heads, 2, MAX_HEADS, "from 2 to 16", "The heads."),
    INTEGER_FLAG("--hidden", options.hidden, 2, 1024, "from 2 to 1024",
                 "The size of the vectors, which the heads share: a multiple of twice --heads."),
    INTEGER_FLAG("--length", options.length, 2, MAP_MAX, "from 2 to 64", "Tokens in a sequence."),
    INTEGER_FLAG("--tokens", options.tokens, 2, 26, "from 2 to 26", "Different tokens."),
    INTEGER_FLAG("--offsets", options.offsets, 1, MAX_OFFSETS, "from 1 to 8",
                 "The number of tokens to name at every place: i - 1, i - 4, i - 7 and so on."),
    NUMBER_FLAG("--dropout", options.dropout, 0, 1 - 1e-16, "of at least 0 and below 1",
                "The probability with which a whole head is lost in training."),
    NUMBER_FLAG("--decay", options.decay, 0, 1, "from 0 to 1", "Shrinks all weights."),
    SWITCH_FLAG("--no-scale", options.no_scale, "Scores are not divided by sqrt(d)."),
};

int main(int argc, char **argv) {
    training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
    if (options.hidden % (2 * options.heads))
        flags_misuse("heads", "--hidden must be a multiple of twice --heads");
    if (offset(options.offsets - 1) >= options.length)
        flags_misuse("heads", "--offsets must be at most (--length + 1) / 3");
    Heads *net = heads_new(options.hidden, options.offsets * options.tokens);
    SGDConfig config = {.lr = run.lr, .momentum = 0.9, .weight_decay = options.decay};
    Optimizer *sgd = nn_sgd_new(net, config);
    training_must_match(&run, "heads", tensor_from_int64s(SCALAR, &options.heads));
    training_must_match(&run, "no_scale", tensor_from_bools(SCALAR, &options.no_scale));
    training_begin(&run, net, sgd);
    train(net, sgd);
    if (training_finish(&run)) evaluate(net);
    if (run.explain && !tensor_error()) explain(net);
    nn_free(sgd);
    nn_free(net);
    return training_status(&run);
}
