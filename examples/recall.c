/* recall.c - associative recall: attention as a memory.
 *
 * A sequence is a list of pairs of a key and a value, "c:37 x:4 f:81". A question names a key,
 * "f?", and the answer is its value, 81. All pairs are random, so the model cannot learn them by
 * heart; it must learn to find the pair. Keys in questions and keys in pairs have different
 * vectors, so only training can teach the model that the f of a question is the f of a pair. The
 * loss knows the right value, but not the right pair.
 *
 * Sequences have different lengths. After the last pair of a sequence there are old pairs: its
 * first keys again, with other values, as in a buffer that was used before. Only valid_lens says
 * where the sequence ends.
 *
 * The sections: the model, sequences, training, evaluation, one example step by step, main.
 */
#include "../nn/nn.h"
#include "common/training.h"
#include "explain/recording.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static Training run = {
    .program = "recall",
    .summary = "learns to look up the value of a key",
    .caption = {{"A row is a question, a column a stored pair, the colour the weight.",
                 "Right is one strong cell in each row: the pair of the key that is asked for."}},
    .seed = 1,
    .steps = 1000,
    .batch = 64,
    .lr = 0.2};

static struct {
    const char *attention;
    int64_t pairs, keys, values, hidden;
    double dropout, momentum;
    bool no_scale, no_mask;
} options = {
    .attention = "dot", .pairs = 10, .keys = 26, .values = 100, .hidden = 32, .momentum = 0.9};

/* B sequences, P = --pairs pairs in each, as many questions, d = --hidden. */
typedef struct {
    Tensor *num_pairs;     /* (B): n; the first n of P pairs are the sequence, the others are old */
    Tensor *valid;         /* (B, P): true for the first n */
    Tensor *keys, *values; /* (B, P): numbers of tokens, as below */
    Tensor *place;         /* (B, P): question i < n is about pair place[i]: a permutation */
    Tensor *asked, *answers; /* (B, P): the key and the value of question i; IGNORED from n on */
} Sequences;
enum { IGNORED = -100 };

/* The letters of keys in maps; values are numbers. */
static const char letter[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
enum { MAX_KEYS = sizeof letter - 1 };

/* ---- the model --------------------------------------------------------------------------- */

typedef struct {
    Module module;
    Embedding *asked, *keys, *values; /* a vector of d numbers for each token */
    DotProductAttention *dot;         /* dot or additive is used, the other one is NULL */
    AdditiveAttention *additive;
    Linear *answer;
} Recall;

static Recall *recall_new(void) {
    static const ModuleClass class = {"Recall", sizeof(Recall), NULL, NULL};
    const int64_t d = options.hidden;
    Recall *net = nn_module_new(&class);
    if (!net) return NULL;
    net->asked = nn_add_child(net, "asked", nn_embedding_new(options.keys, d));
    net->keys = nn_add_child(net, "keys", nn_embedding_new(options.keys, d));
    net->values = nn_add_child(net, "values", nn_embedding_new(options.values, d));
    if (strcmp(options.attention, "dot") == 0)
        net->dot = nn_add_child(net, "attention", nn_dot_product_attention_new(options.dropout));
    else
        net->additive =
            nn_add_child(net, "attention", nn_additive_attention_new(d, options.dropout));
    net->answer = nn_add_child(net, "answer", nn_linear_new(d, options.values, true));
    return nn_module_done(net);
}

/*      q_i = asked[question i]    k_j = keys[key j]    v_j = values[value j]
 *      score_ij  = q_i . k_j / sqrt(d)   or   w . tanh(W_q q_i + W_k k_j)
 *      weight_ij = exp(score_ij) / sum of exp(score_il) over the pairs l < n
 *      y_i = sum_j weight_ij v_j, and the logits of the answer are W y_i + b.
 * q: (B, Q, d), a vector for each question, k, v: (B, P, d) -> (B, Q, --values) */
static Tensor *attend(Recall *net, Tensor *q, Tensor *k, Tensor *v, const Sequences *s) {
    if (options.no_scale) q = ag_scale(q, sqrt((double)options.hidden)); /* undoes / sqrt(d) */
    AttentionMask mask = {.valid_lens = options.no_mask ? NULL : s->num_pairs};
    Tensor *y = net->dot ? nn_dot_product_attention_forward(net->dot, q, k, v, mask)
                         : nn_additive_attention_forward(net->additive, q, k, v, mask);
    return nn_linear_forward(net->answer, y);
}

/* (B, P) -> (B, P, --values) */
static Tensor *recall_forward(Recall *net, const Sequences *s) {
    Tensor *q = nn_embedding_forward(net->asked, s->asked); /* (B, P, d) */
    Tensor *k = nn_embedding_forward(net->keys, s->keys);
    Tensor *v = nn_embedding_forward(net->values, s->values);
    return attend(net, q, k, v, s);
}

/* -log of the probability of the right value, the mean over all questions. */
static Tensor *loss_of(Tensor *answered, const Sequences *s) {
    Tensor *logits = ag_reshape(answered, SHAPE(-1, options.values));
    Tensor *answers = ag_reshape(s->answers, SHAPE(-1));
    return ag_cross_entropy(logits, answers, IGNORED, REDUCE_MEAN);
}

/* (B, P, P): a row for each question, a column for each pair. */
static Tensor *recall_weights(const Recall *net) {
    return net->dot ? net->dot->attention_weights : net->additive->attention_weights;
}

/* ---- the sequences ------------------------------------------------------------------------- */

/* The order that sorts each row of x. If x is random, it is a random permutation. */
static Tensor *order(Tensor *x) {
    Tensor *places = NULL;
    tensor_release(tensor_sort(x, &places));
    return tape_own(places);
}

/* n is from P / 2 to P; keys are different, values are not always. There is one question for each
 * key, in random order. */
static Sequences sequences_draw(int64_t B) {
    const int64_t P = options.pairs;
    Sequences s = {.num_pairs = tape_own(tensor_randint((P + 1) / 2, P + 1, SHAPE(B)))};
    Tensor *n = ag_unsqueeze(s.num_pairs, 1);                     /* (B, 1) */
    Tensor *j = tape_own(tensor_arange_of(0, (double)P, 1, I64)); /* 0 .. P - 1 */
    s.valid = ag_lt(j, n);

    Tensor *keys = order(tape_own(tensor_rand(SHAPE(B, options.keys)))); /* all, shuffled */
    s.keys = ag_gather(keys, 1, ag_where(s.valid, j, ag_sub(j, n)));     /* n new ones, then old */
    s.values = tape_own(tensor_randint(0, options.values, SHAPE(B, P)));

    Tensor *invalid = ag_logical_not(s.valid);
    Tensor *random = tape_own(tensor_rand(SHAPE(B, P)));
    s.place = order(ag_masked_fill(random, invalid, 2)); /* 2 is larger than all others */
    s.asked = ag_gather(s.keys, 1, s.place);
    s.answers = ag_masked_fill(ag_gather(s.values, 1, s.place), invalid, IGNORED);
    return s;
}

/* ---- training ------------------------------------------------------------------------------ */

/* Additive attention draws its matrices when it gets its first input: here, before loading or
 * saving. */
static void show_input(Recall *net) {
    tape_begin_no_grad();
    Sequences s = sequences_draw(1);
    if (net) recall_forward(net, &s);
    tape_end();
}

static void train(Recall *net, Optimizer *sgd) {
    while (training_next(&run)) {
        tape_begin();
        Sequences s = sequences_draw(run.batch);
        Tensor *loss = loss_of(recall_forward(net, &s), &s);
        nn_optimizer_zero_grad(sgd);
        ag_backward(loss);
        nn_optimizer_step(sgd);
        training_report(&run, loss);
        tape_end();
    }
}

/* ---- evaluation ---------------------------------------------------------------------------- */

/* The map of sequence b: a row for each of n questions, a column for each pair, the old pairs
 * included.
 */
static void take_map(AttentionMap *map, const Recall *net, const Sequences *s, int64_t b) {
    if (tensor_error()) return;
    int n = (int)tensor_get(s->num_pairs, b);
    if (!map_take(map, recall_weights(net), b, options.no_mask ? -1 : n)) return;
    map->queries = n;
    snprintf(map->title, sizeof map->title, "%d pairs", n);
    for (int i = 0; i < map->queries; i++)
        snprintf(map->query[i], MAP_LABEL_SIZE, "%c?", letter[(int)tensor_get(s->asked, b, i)]);
    for (int j = 0; j < map->keys; j++)
        snprintf(map->key[j], MAP_LABEL_SIZE, "%c:%d", letter[(int)tensor_get(s->keys, b, j)],
                 (int)tensor_get(s->values, b, j));
}

static double count(Tensor *x) { return tensor_item(ag_sum(x)); }

/* Evaluates 1024 new sequences from another seed. There are 10^17 sequences of 5 pairs, and
 * training saw only 10^4, so it saw none of the new ones. */
static void evaluate(Recall *net) {
    static AttentionMap maps[4];
    double questions = 0, right = 0, found = 0;
    tensor_manual_seed(~run.seed);
    nn_train(net, false);
    for (int batch = 0; batch < 16; batch++) {
        tape_begin_no_grad();
        Sequences s = sequences_draw(64);
        Tensor *answers = ag_argmax(recall_forward(net, &s), 2);
        Tensor *places = ag_argmax(recall_weights(net), 2);
        questions += count(s.valid);
        right += count(ag_logical_and(s.valid, ag_eq(answers, s.answers)));
        found += count(ag_logical_and(s.valid, ag_eq(places, s.place)));
        for (int b = 0; b < 4 && batch == 0; b++) take_map(&maps[b], net, &s, b);
        tape_end();
    }
    training_show(&run, maps, 4);
    training_expect(&run, "accuracy", right / questions, ">=", 0.99);
    training_expect(&run, "largest weight on the right pair", found / questions, ">=", 0.99);
}

/* ---- one example step by step ---------------------------------------------------------------- */

enum { QUESTIONS = 4 }; /* on the page */

/* The first sequence, with its first questions. */
static Sequences first_of(Sequences s) {
    s.num_pairs = ag_slice(s.num_pairs, 0, 0, 1);
    s.keys = ag_slice(s.keys, 0, 0, 1);
    s.values = ag_slice(s.values, 0, 0, 1);
    s.asked = ag_slice(ag_slice(s.asked, 0, 0, 1), 1, 0, QUESTIONS);
    s.answers = ag_slice(ag_slice(s.answers, 0, 0, 1), 1, 0, QUESTIONS);
    return s;
}

/* "c? x? of c:37 x:4 f:81" */
static void print_example(const Sequences *s, char *text, size_t size) {
    const int n = tensor_error() ? 0 : (int)tensor_get(s->num_pairs, 0);
    size_t at = 0;
    *text = '\0';
    for (int i = 0; i < n && i < QUESTIONS && at < size; i++)
        at +=
            (size_t)snprintf(text + at, size - at, "%c? ", letter[(int)tensor_get(s->asked, 0, i)]);
    if (n && at < size) at += (size_t)snprintf(text + at, size - at, "of");
    for (int j = 0; j < n && at < size; j++)
        at +=
            (size_t)snprintf(text + at, size - at, " %c:%d", letter[(int)tensor_get(s->keys, 0, j)],
                             (int)tensor_get(s->values, 0, j));
}

/* Writes the page of the first sequence that evaluate draws, with the dropout of training. */
static void explain(Recall *net) {
    char example[512], seen[640];
    tensor_manual_seed(~run.seed);
    nn_train(net, true);
    recording_prepare(net);
    Sequences s = first_of(sequences_draw(64));
    Tensor *q = recording_leaf(nn_embedding_forward(net->asked, s.asked), "queries");
    Tensor *k = recording_leaf(nn_embedding_forward(net->keys, s.keys), "keys");
    Tensor *v = recording_leaf(nn_embedding_forward(net->values, s.values), "values");
    print_example(&s, example, sizeof example);
    s.num_pairs = recording_constant(s.num_pairs, "valid_lens");
    s.answers = recording_constant(s.answers, "answers");
    recording_begin();
    Tensor *loss = loss_of(attend(net, q, k, v, &s), &s);
    snprintf(seen, sizeof seen,
             "The first questions of a sequence after %" PRId64
             " steps of training: %s. A query is "
             "the vector of a question; row j of `keys` and of `values` is pair j.",
             run.step, example);
    const Recording recording = {
        .title = "recall",
        .idea = "The loss asks for the right value; the gradient of the scores asks for the pair.",
        .command = "build/recall --explain FILE.html",
        .columns = "",
        .text = {seen, "Pairs after the end of the sequence are masked, so their weights and the "
                       "gradients of their keys and values are 0. Parameters are constants here: "
                       "the page shows the gradients of the vectors."},
        .formula = {"weights = softmax(score(queries, keys)), over the pairs of the sequence",
                    "loss = mean of -log softmax(weights values W' + b)[right value]"}};
    recording_end(net, loss, &recording, run.explain);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    CHOICE_FLAG("--attention", options.attention, "dot|additive",
                "The score of a question and a key: q . k / sqrt(d), or w . tanh(W_q q + W_k k)."),
    INTEGER_FLAG("--pairs", options.pairs, 1, MAX_KEYS, "from 1 to 52",
                 "At most so many pairs are in a sequence, and at least half as many."),
    INTEGER_FLAG("--keys", options.keys, 1, MAX_KEYS, "from 1 to 52",
                 "So many different keys there are, at least --pairs."),
    INTEGER_FLAG("--values", options.values, 2, 1000, "from 2 to 1000",
                 "So many different values there are."),
    INTEGER_FLAG("--hidden", options.hidden, 1, 1024, "from 1 to 1024",
                 "The size d of the vectors."),
    NUMBER_FLAG("--dropout", options.dropout, 0, 1 - 1e-16, "of at least 0 and below 1",
                "The probability with which a weight is lost in training."),
    SWITCH_FLAG("--no-scale", options.no_scale, "Dot products are not divided by sqrt(d)."),
    SWITCH_FLAG("--no-mask", options.no_mask,
                "No valid_lens: what lies behind the sequence is looked at, too."),
    NUMBER_FLAG("--momentum", options.momentum, 0, 1 - 1e-16, "of at least 0 and below 1",
                "How much of the last step goes into the next."),
};

int main(int argc, char **argv) {
    training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
    if (options.pairs > options.keys)
        flags_misuse("recall", "--pairs %" PRId64 " needs at least as many --keys, not %" PRId64,
                     options.pairs, options.keys);
    if (options.no_scale && strcmp(options.attention, "dot") != 0)
        flags_misuse("recall", "--no-scale is for --attention dot: the other has no scale");
    Recall *net = recall_new();
    show_input(net);
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = run.lr, .momentum = options.momentum});
    training_must_match(&run, "no_scale", tensor_from_bools(SCALAR, &options.no_scale));
    training_begin(&run, net, sgd);
    train(net, sgd);
    if (training_finish(&run)) evaluate(net);
    if (run.explain && !tensor_error()) explain(net);
    nn_free(sgd);
    nn_free(net);
    return training_status(&run);
}
