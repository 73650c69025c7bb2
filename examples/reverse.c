/* reverse.c - self-attention over positions: a sequence read backwards.
 *
 * The input is n random tokens, the output the same tokens in reverse order, all at once: the
 * answer at place i is the token at place n-1-i. The tokens are independent of each other. The
 * attention weights must depend only on the places, and the values only on the tokens. If the model
 * has learned that, its attention map is the anti-diagonal.
 *
 * There is no residual connection around the attention, unlike in a transformer: every answer
 * has come through the weights that the maps show.
 *
 * The sections: the model, the loss, training, evaluation, one example step by step, main.
 */
#include "../nn/nn.h"
#include "common/attention_map.h"
#include "common/flags.h"
#include "common/plural.h"
#include "common/training.h"
#include "explain/page/recording.h"

#include <inttypes.h>
#include <math.h>

static Training run = {
    .program = "reverse",
    .summary = "learns to read a sequence backwards",
    .caption = {{"A row is a place of the answer, a column a place of the "
                 "input.",
                 "The other diagonal should be strong: answer i looks at input n-1-i."}},
    .seed = 1,
    .steps = 1500,
    .batch = 64,
    .lr = 0.1};

static struct {
    int64_t length, tokens, hidden, heads;
    double dropout, momentum;
    bool no_scale, fused;
} options = {16, 10, 64, 2, 0.2, 0.9, false, false};

enum { MAX_HEADS = 16 };

/* ---- the model ----------------------------------------------------------------------------- */

/* B sequences, n = --length, V = --tokens, h = --hidden, H = --heads. */
typedef struct {
    Module module;
    Embedding *embedding;          /* (V, h): a vector for each token */
    PositionalEncoding *positions; /* (n, h): a vector for each place */
    MultiHeadAttention *attention;
    Linear *output; /* h -> V */
} Reverse;

static Reverse *reverse_new(void) {
    static const ModuleClass class = {"Reverse", sizeof(Reverse), NULL, NULL};
    const int64_t n = options.length, V = options.tokens, h = options.hidden;
    const MultiHeadAttentionConfig config = {.num_hiddens = h,
                                             .num_heads = options.heads,
                                             .dropout = options.dropout,
                                             .query_size = h,
                                             .key_size = h,
                                             .value_size = h,
                                             .fused = options.fused};
    Reverse *net = nn_module_new(&class);
    if (!net) return NULL;
    net->embedding = nn_add_child(net, "embedding", nn_embedding_new(V, h));
    net->positions = nn_add_child(net, "positions", nn_positional_encoding_new(h, 0, n));
    net->attention = nn_add_child(net, "attention", nn_multi_head_attention_new(config));
    net->output = nn_add_child(net, "output", nn_linear_new(h, V, true));
    return nn_module_done(net);
}

/* x_i  = e(t_i) + p_i, with p_i = (sin(i w), cos(i w), ...) for h/2 frequencies w
 * q_i  = W_q x_i, k_j = W_k x_j, v_j = W_v x_j, for each head, d = h/H numbers each
 * a_ij = softmax_j(q_i . k_j / sqrt(d)), the attention map of the head
 * y_i  = W_o (sum_j a_ij v_j of all heads), and the logits at place i are W y_i + b
 *
 * Why a matrix can find place n-1-i, whatever i is: with m = n-1, for every frequency,
 *     sin((m-i) w) = sin(mw) cos(iw) - cos(mw) sin(iw)
 *     cos((m-i) w) = cos(mw) cos(iw) + sin(mw) sin(iw),
 * so p_(m-i) = M p_i, where M depends only on n. If W_q maps x_i to M p_i and W_k maps x_j to p_j,
 * the score is p_(m-i) . p_j, which is largest at j = m-i.
 *
 * The module divides scores by sqrt(d). --no-scale multiplies the queries by sqrt(d) first.
 * tokens (B, n) -> (B, n, V) */
static Tensor *reverse_forward(Reverse *net, Tensor *tokens) {
    const double d = (double)options.hidden / (double)options.heads;
    Tensor *e = nn_embedding_forward(net->embedding, tokens);
    Tensor *x = nn_positional_encoding_forward(net->positions, e); /* (B, n, h) */
    Tensor *q = options.no_scale ? ag_scale(x, sqrt(d)) : x;
    Tensor *y = nn_multi_head_attention_forward(net->attention, q, x, x, (AttentionMask){0});
    return nn_linear_forward(net->output, y);
}

/* ---- the loss ------------------------------------------------------------------------------ */

/* (n): n-1-i at place i, the place of the answer. */
static Tensor *mirror(void) {
    return tape_own(tensor_arange_of((double)options.length - 1, -1, -1, I64));
}

/* The mean of -log softmax(logits)[t_(n-1-i)] over all places i of B sequences.
 *
 * Dropout of the weights a_ij makes every head learn. Without dropout one good head is enough, and
 * the others get almost no gradient. With dropout each head loses its weight with probability p,
 * and all heads lose it with probability p^H; then the answer is a guess. A loss of about p^H
 * log V remains in training, even if every answer is right without dropout. */
static Tensor *reverse_loss(Reverse *net, Tensor *tokens) {
    Tensor *logits = ag_reshape(reverse_forward(net, tokens), SHAPE(-1, options.tokens));
    Tensor *answers = ag_reshape(ag_index_select(tokens, 1, mirror()), SHAPE(-1));
    return ag_cross_entropy(logits, answers, AG_IGNORE_NONE, REDUCE_MEAN);
}

/* ---- training ------------------------------------------------------------------------------ */

/* (B, n) */
static Tensor *draw(int64_t B) {
    return tape_own(tensor_randint(0, options.tokens, SHAPE(B, options.length)));
}

/* SGD with momentum. Gradients g are clipped to norm 1, so that one bad batch cannot move the
 * parameters far: g <- g min(1, 1 / |g|)    b <- mu b + g    theta <- theta - lr b */
static void train(Reverse *net, Optimizer *sgd) {
    while (training_next(&run)) {
        tape_begin();
        Tensor *loss = reverse_loss(net, draw(run.batch));
        nn_optimizer_zero_grad(sgd);
        ag_backward(loss);
        nn_clip_grad_norm(net, 1);
        nn_optimizer_step(sgd);
        training_report(&run, loss);
        tape_end();
    }
}

/* ---- evaluation ---------------------------------------------------------------------------- */

enum { BATCHES = 20, AT_ONCE = 50 };

typedef struct {
    double right;              /* sequences with every token right */
    double largest[MAX_HEADS]; /* queries i of the head whose largest weight is on key n-1-i */
    double weight[MAX_HEADS];  /* the sum of the weights there */
} Counts;

static double count(Tensor *x) { return tensor_item(ag_sum(x)); }

/* tokens, answers: (B, n), B = AT_ONCE */
static void add(Counts *sum, const Reverse *net, Tensor *tokens, Tensor *answers) {
    const int64_t H = options.heads, n = options.length;
    Tensor *j = mirror();
    Tensor *column = ag_expand(ag_reshape(j, SHAPE(n, 1)), SHAPE(AT_ONCE, n, 1));
    Tensor *wrong = ag_sum_dims(ag_ne(answers, ag_index_select(tokens, 1, j)), AXES(1), false);
    Tensor *weights = ag_reshape(net->attention->attention_weights, SHAPE(AT_ONCE, H, n, n));
    sum->right += count(ag_logical_not(wrong)); /* true where none is wrong */
    for (int64_t h = 0; h < H; h++) {
        Tensor *a = ag_select(weights, 1, h); /* (B, n, n) */
        sum->largest[h] += count(ag_eq(ag_argmax(a, 2), j));
        sum->weight[h] += count(ag_gather(a, 2, column));
    }
}

/* The map of head h for the first sequence: a row for each query, a column for each key. */
static void take_map(AttentionMap *map, const Reverse *net, Tensor *tokens, int h) {
    char token[24];
    if (!map_take(map, net->attention->attention_weights, h, -1)) return;
    snprintf(map->title, sizeof map->title, "head %d", h + 1);
    for (int64_t i = 0; i < options.length; i++) {
        snprintf(token, sizeof token, "%.0f", tensor_get(tokens, INT64_C(0), i));
        map_label(map->query[i], token);
        map_label(map->key[i], token);
    }
}

static void report(const Counts *sum, const AttentionMap *maps) {
    const int64_t heads = options.heads;
    const double sequences = BATCHES * AT_ONCE, queries = sequences * (double)options.length;
    double largest = 0;
    training_show(&run, maps, (int)heads);
    if (!run.quiet && !tensor_error())
        printf("what dropout leaves of the loss, dropout^heads log(tokens): %.4f\n",
               pow(options.dropout, (double)heads) * log((double)options.tokens));
    for (int h = 0; h < heads; h++) {
        largest += sum->largest[h] / (queries * (double)heads);
        if (!run.quiet && !tensor_error())
            printf("head %d: %.4f of the queries look most at key n-1-i, mean weight there %.4f\n",
                   h + 1, sum->largest[h] / queries, sum->weight[h] / queries);
    }
    training_expect(&run, "every token right", sum->right / sequences, ">=", 0.99);
    training_expect(&run, "largest weight on the anti-diagonal", largest, ">=", 0.99);
}

/* Evaluates 1000 new sequences from another seed. The fused path keeps no weights, so this function
 * uses the composed path with the same parameters. */
static void evaluate(Reverse *net) {
    static AttentionMap maps[MAX_HEADS];
    Counts sum = {0};
    tensor_manual_seed(~run.seed);
    nn_train(net, false);
    net->attention->fused = false;
    for (int batch = 0; batch < BATCHES; batch++) {
        tape_begin_no_grad();
        Tensor *tokens = draw(AT_ONCE);
        Tensor *answers = ag_argmax(reverse_forward(net, tokens), 2);
        add(&sum, net, tokens, answers);
        for (int h = 0; h < options.heads && batch == 0; h++) take_map(&maps[h], net, tokens, h);
        tape_end();
    }
    report(&sum, maps);
}

/* ---- one example step by step ---------------------------------------------------------------- */

enum { QUERIES = 4 }; /* on the page: each looks at all keys */

/* The leaves of the page, and its constants. The product W W_o replaces two matrices. */
typedef struct {
    Tensor *q, *k, *v; /* (H, QUERIES, d), (H, n, d) */
    Tensor *W;         /* (V, h) */
    Tensor *answers;   /* (QUERIES) */
} Seen;

static Seen see(Reverse *net) {
    MultiHeadAttention *attention = net->attention;
    const int64_t H = options.heads;
    const double d = (double)options.hidden / (double)H;
    Tensor *tokens = ag_slice(draw(AT_ONCE), 0, 0, 1); /* (1, n) */
    Tensor *answers = ag_select(ag_index_select(tokens, 1, mirror()), 0, 0);
    Tensor *e = nn_embedding_forward(net->embedding, tokens);
    Tensor *x = nn_positional_encoding_forward(net->positions, e);
    Tensor *first = ag_slice(x, 1, 0, QUERIES);
    if (options.no_scale) first = ag_scale(first, sqrt(d));
    Tensor *W = ag_matmul(net->output->weight, attention->W_o->weight);
    return (Seen){.q = recording_heads(attention->W_q, first, H, "queries"),
                  .k = recording_heads(attention->W_k, x, H, "keys"),
                  .v = recording_heads(attention->W_v, x, H, "values"),
                  .W = recording_constant(W, "W W_o"),
                  .answers = recording_constant(ag_slice(answers, 0, 0, QUERIES), "answers")};
}

/* Writes the page of the first sequence that evaluate draws, with the dropout of training. */
static void explain(Reverse *net) {
    char words[512];
    tensor_manual_seed(~run.seed);
    nn_train(net, true);
    recording_prepare(net);
    const Seen s = see(net);
    recording_begin();
    DotProductAttention *attention = net->attention->attention;
    Tensor *y = nn_dot_product_attention_forward(attention, s.q, s.k, s.v, (AttentionMask){0});
    Tensor *logits = ag_linear(recording_join(y), s.W, net->output->bias);
    logits = ag_reshape(logits, SHAPE(-1, options.tokens));
    Tensor *loss = ag_cross_entropy(logits, s.answers, AG_IGNORE_NONE, REDUCE_MEAN);
    const int64_t places = options.length < QUERIES ? options.length : QUERIES;
    snprintf(words, sizeof words,
             "The first %" PRId64 " place%s of a sequence of %" PRId64 " token%s, after %" PRId64
             " step%s of "
             "training. Row i of `attention_weights` should be large in column %" PRId64 " - i.",
             places, plural(places), options.length, plural(options.length), run.step,
             plural(run.step), options.length - 1);
    const Recording recording = {
        .title = "reverse",
        .idea = "The loss knows the tokens; its gradient tells each query at which place to look.",
        .command = "build/reverse --explain FILE.html",
        .columns = "head",
        .text = {words, "Dropout is as in training: where it removes the right weight of a head, "
                        "another head must know the answer. Parameters are constants here; the two "
                        "matrices after the attention, W_o and W, are replaced by their product."},
        .formula = {"attention_weights = softmax(queries keys' / sqrt(d)), for each head",
                    "loss = mean of -log softmax(joined (W W_o)' + b)[token n - 1 - i]"}};
    recording_end(net, loss, &recording, run.explain);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    INTEGER_FLAG("--length", options.length, 1, MAP_MAX, "from 1 to 64",
                 "The number of tokens in a sequence."),
    INTEGER_FLAG("--tokens", options.tokens, 2, 1000, "from 2 to 1000",
                 "The number of different tokens."),
    INTEGER_FLAG("--heads", options.heads, 1, MAX_HEADS, "from 1 to 16",
                 "Heads of the attention, each of --hidden / --heads numbers."),
    INTEGER_FLAG("--hidden", options.hidden, 2, 1024, "from 2 to 1024",
                 "The size of the vectors, even."),
    NUMBER_FLAG("--dropout", options.dropout, 0, 1 - 1e-16, "of at least 0 and below 1",
                "The probability with which a weight is lost in training."),
    SWITCH_FLAG("--no-scale", options.no_scale, "Scores are not divided by sqrt(d)."),
    SWITCH_FLAG("--fused", options.fused,
                "Train without ever holding the weights in memory: the same up to rounding."),
    NUMBER_FLAG("--momentum", options.momentum, 0, 1 - 1e-16, "of at least 0 and below 1",
                "How much of the last step goes into the next."),
};

int main(int argc, char **argv) {
    training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
    if (options.hidden % 2 || options.hidden % options.heads)
        flags_misuse("reverse",
                     "--hidden %" PRId64 " must be even, and --heads %" PRId64 " divide it",
                     options.hidden, options.heads);
    Reverse *net = reverse_new();
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = run.lr, .momentum = options.momentum});
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
