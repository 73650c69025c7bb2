/* model.c - the model of recall: see model.h. The sections: the model, sequences, training and its
 * score, one example step by step. */
#include "model.h"

#include "../common/plural.h"
#include "../explain/page/recording.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The letters of keys in maps; values are numbers. */
static const char letter[RECALL_MOST_KEYS + 1] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* ---- the model --------------------------------------------------------------------------- */

Recall *recall_new(const RecallOptions *options) {
    static const ModuleClass class = {"Recall", sizeof(Recall), NULL, NULL};
    const int64_t d = options->hidden;
    Recall *net = nn_module_new(&class);
    if (!net) return NULL;
    net->options = *options;
    net->asked = nn_add_child(net, "asked", nn_embedding_new(options->keys, d));
    net->keys = nn_add_child(net, "keys", nn_embedding_new(options->keys, d));
    net->values = nn_add_child(net, "values", nn_embedding_new(options->values, d));
    if (strcmp(options->attention, "dot") == 0)
        net->dot = nn_add_child(net, "attention", nn_dot_product_attention_new(options->dropout));
    if (strcmp(options->attention, "additive") == 0)
        net->additive =
            nn_add_child(net, "attention", nn_additive_attention_new(d, options->dropout));
    nn_add_result(net, &net->equal_weights);
    net->answer = nn_add_child(net, "answer", nn_linear_new(d, options->values, true));
    return nn_module_done(net);
}

/* The mean of the values of each sequence: no attention, since no weight depends on the question.
 */
static Tensor *mean(Recall *net, Tensor *q, Tensor *v, AttentionMask mask) {
    const Shape scores = SHAPE(tensor_size(q, 0), tensor_size(q, 1), tensor_size(v, 1));
    Tensor *weights = ag_masked_softmax(tape_own(tensor_zeros(scores)), mask.valid_lens);
    nn_keep_result(net, &net->equal_weights, weights);
    return ag_bmm(weights, v);
}

/*      q_i = asked[question i]    k_j = keys[key j]    v_j = values[value j]
 *      score_ij  = q_i . k_j / sqrt(d)   or   w . tanh(W_q q_i + W_k k_j)   or   0
 *      weight_ij = exp(score_ij) / sum of exp(score_il) over the pairs l < n
 *      y_i = sum_j weight_ij v_j, and the logits of the answer are W y_i + b.
 * q: (B, Q, d), a vector for each question, k, v: (B, P, d) -> (B, Q, values) */
static Tensor *attend(Recall *net, Tensor *q, Tensor *k, Tensor *v, const Sequences *s) {
    if (net->options.no_scale)
        q = ag_scale(q, sqrt((double)net->options.hidden)); /* undoes / sqrt(d) */
    AttentionMask mask = {.valid_lens = net->options.no_mask ? NULL : s->num_pairs};
    Tensor *y;
    if (net->dot) y = nn_dot_product_attention_forward(net->dot, q, k, v, mask);
    else if (net->additive) y = nn_additive_attention_forward(net->additive, q, k, v, mask);
    else y = mean(net, q, v, mask);
    return ag_name(nn_linear_forward(net->answer, y), "logits");
}

Tensor *recall_forward(Recall *net, const Sequences *s) {
    Tensor *q = nn_embedding_forward(net->asked, s->asked); /* (B, P, d) */
    Tensor *k = nn_embedding_forward(net->keys, s->keys);
    Tensor *v = nn_embedding_forward(net->values, s->values);
    return attend(net, q, k, v, s);
}

/* -log of the probability of the right value, the mean over all questions. */
static Tensor *loss_of(const Recall *net, Tensor *answered, const Sequences *s) {
    Tensor *logits = ag_name(ag_reshape(answered, SHAPE(-1, net->options.values)), "all logits");
    Tensor *answers = ag_name(ag_reshape(s->answers, SHAPE(-1)), "all answers");
    return ag_cross_entropy(logits, answers, IGNORED, REDUCE_MEAN);
}

Tensor *recall_weights(const Recall *net) {
    if (net->dot) return net->dot->attention_weights;
    return net->additive ? net->additive->attention_weights : net->equal_weights;
}

/* ---- the sequences ------------------------------------------------------------------------- */

/* The order that sorts each row of x. If x is random, this order is a random permutation. */
static Tensor *order(Tensor *x) {
    Tensor *places = NULL;
    tensor_release(tensor_sort(x, &places));
    return tape_own(places);
}

/* n is from P / 2 to P; keys are different, values may be equal. There is one question for each
 * key, in random order. */
Sequences recall_draw(const Recall *net, int64_t B) {
    const int64_t P = net->options.pairs;
    Sequences s = {.num_pairs = tape_own(tensor_randint((P + 1) / 2, P + 1, SHAPE(B)))};
    Tensor *n = ag_unsqueeze(s.num_pairs, 1);                     /* (B, 1) */
    Tensor *j = tape_own(tensor_arange_of(0, (double)P, 1, I64)); /* 0 .. P - 1 */
    s.valid = ag_lt(j, n);

    Tensor *keys = order(tape_own(tensor_rand(SHAPE(B, net->options.keys)))); /* all, shuffled */
    s.keys = ag_gather(keys, 1, ag_where(s.valid, j, ag_sub(j, n))); /* n new ones, then old */
    s.values = tape_own(tensor_randint(0, net->options.values, SHAPE(B, P)));

    Tensor *invalid = ag_logical_not(s.valid);
    Tensor *random = tape_own(tensor_rand(SHAPE(B, P)));
    s.place = order(ag_masked_fill(random, invalid, 2)); /* 2 is larger than all others */
    s.asked = ag_gather(s.keys, 1, s.place);
    s.answers = ag_masked_fill(ag_gather(s.values, 1, s.place), invalid, IGNORED);
    return s;
}

/* ---- training and its score ----------------------------------------------------------------- */

void recall_show_input(Recall *net) {
    if (!net) return;
    tape_begin_no_grad();
    Sequences s = recall_draw(net, 1);
    recall_forward(net, &s);
    tape_end();
}

Tensor *recall_step(Recall *net, Optimizer *sgd, int64_t B) {
    Sequences s = recall_draw(net, B);
    Tensor *loss = loss_of(net, recall_forward(net, &s), &s);
    nn_optimizer_zero_grad(sgd);
    ag_backward(loss);
    nn_optimizer_step(sgd);
    return loss;
}

static double count(Tensor *x) { return tensor_item(ag_sum(x)); }

void recall_score(Recall *net, const Sequences *s, RecallScore *score) {
    Tensor *answers = ag_argmax(recall_forward(net, s), 2);
    Tensor *places = ag_argmax(recall_weights(net), 2);
    score->questions += count(s->valid);
    score->right += count(ag_logical_and(s->valid, ag_eq(answers, s->answers)));
    score->found += count(ag_logical_and(s->valid, ag_eq(places, s->place)));
}

void recall_take_map(AttentionMap *map, const Recall *net, const Sequences *s, int64_t b) {
    if (tensor_error()) return;
    int n = (int)tensor_get(s->num_pairs, b);
    if (!map_take(map, recall_weights(net), b, net->options.no_mask ? -1 : n)) return;
    map->queries = n;
    snprintf(map->title, sizeof map->title, "%d pair%s", n, plural(n));
    for (int i = 0; i < map->queries; i++)
        snprintf(map->query[i], MAP_LABEL_SIZE, "%c?", letter[(int)tensor_get(s->asked, b, i)]);
    for (int j = 0; j < map->keys; j++)
        snprintf(map->key[j], MAP_LABEL_SIZE, "%c:%d", letter[(int)tensor_get(s->keys, b, j)],
                 (int)tensor_get(s->values, b, j));
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

enum { MOST_LABELS = 64 };

/* "c?", "x?" for the questions, "c:37", "x:4" for the pairs, and NULLs. */
typedef struct {
    char text[2 * MOST_LABELS][MAP_LABEL_SIZE];
    const char *queries[MOST_LABELS + 1], *keys[MOST_LABELS + 1];
} Labels;

static void take_labels(Labels *labels, const Sequences *s) {
    char(*text)[MAP_LABEL_SIZE] = labels->text;
    *labels = (Labels){0};
    const int64_t Q = tensor_error() ? 0 : s->asked->shape.dim[1];
    const int64_t K = tensor_error() ? 0 : s->keys->shape.dim[1];
    for (int64_t i = 0; i < Q; i++, text++) {
        snprintf(*text, MAP_LABEL_SIZE, "%c?", letter[(int)tensor_get(s->asked, 0, i)]);
        labels->queries[i] = *text;
    }
    for (int64_t j = 0; j < K && j < MOST_LABELS; j++, text++) {
        snprintf(*text, MAP_LABEL_SIZE, "%c:%d", letter[(int)tensor_get(s->keys, 0, j)],
                 (int)tensor_get(s->values, 0, j));
        labels->keys[j] = *text;
    }
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

char *recall_record(Recall *net, uint64_t seed, int64_t step, const char *command) {
    static Labels labels;
    char example[512], seen[sizeof example + 192]; /* the example and the words around it */
    tensor_manual_seed(~seed);
    nn_train(net, true);
    recording_prepare(net);
    Sequences s = first_of(recall_draw(net, 64));
    Tensor *q = recording_leaf(nn_embedding_forward(net->asked, s.asked), "queries");
    Tensor *k = recording_leaf(nn_embedding_forward(net->keys, s.keys), "keys");
    Tensor *v = recording_leaf(nn_embedding_forward(net->values, s.values), "values");
    print_example(&s, example, sizeof example);
    take_labels(&labels, &s);
    s.num_pairs = recording_constant(s.num_pairs, "valid_lens");
    s.answers = recording_constant(s.answers, "answers");
    recording_begin();
    Tensor *loss = loss_of(net, attend(net, q, k, v, &s), &s);
    snprintf(seen, sizeof seen,
             "The first questions of a sequence after %" PRId64
             " step%s of training: %s. A query is "
             "the vector of a question; row j of `keys` and of `values` is pair j.",
             step, plural(step), example);
    const Recording recording = {
        .title = "recall",
        .idea = "The loss asks for the right value; the gradient of the scores asks for the pair.",
        .command = command,
        .columns = "",
        .queries = labels.queries,
        .keys = labels.keys,
        .text = {seen, "Pairs after the end of the sequence are masked, so their weights and the "
                       "gradients of their keys and values are 0. Parameters are constants here: "
                       "the page shows the gradients of the vectors."},
        .formula = {"weights = softmax(score(queries, keys)), over the pairs of the sequence",
                    "loss = mean of -log softmax(weights values W' + b)[right value]"}};
    return recording_json(net, loss, &recording);
}
