/* model.h - the model of recall: its sequences, its loss, a step of training, its score and maps.
 * The program build/recall trains this model, and the playground in the page of build/explain
 * (explain/page/play.c) also trains the model.
 *
 *     Recall *net = recall_new(&options);
 *     tape_begin();
 *     Tensor *loss = recall_step(net, sgd, RECALL_BATCH);
 *     tape_end(); */
#ifndef TAPEHEAD_EXAMPLES_RECALL_MODEL_H
#define TAPEHEAD_EXAMPLES_RECALL_MODEL_H

#include "../../nn/nn.h"
#include "../common/attention_map.h"

typedef struct {
    const char *attention; /* "dot", "additive", or "mean": the mean of all values */
    int64_t pairs, keys, values, hidden;
    double dropout;
    bool no_scale, no_mask;
} RecallOptions;

/* The defaults. */
#define RECALL_OPTIONS                                                                             \
    { .attention = "dot", .pairs = 10, .keys = 26, .values = 100, .hidden = 32 }
#define RECALL_RATE     0.2
#define RECALL_MOMENTUM 0.9
enum { RECALL_STEPS = 1000, RECALL_BATCH = 64, RECALL_SEED = 1 };
enum { RECALL_MOST_KEYS = 52 }; /* each is a letter in the maps */

/* B sequences, P = pairs in each, as many questions, d = hidden. */
typedef struct {
    Tensor *num_pairs;     /* (B): n; the first n of P pairs are the sequence, the others are old */
    Tensor *valid;         /* (B, P): true for the first n */
    Tensor *keys, *values; /* (B, P): numbers of tokens, as below */
    Tensor *place;         /* (B, P): question i < n is about pair place[i]: a permutation */
    Tensor *asked, *answers; /* (B, P): the key and the value of question i; IGNORED from n on */
} Sequences;
enum { IGNORED = -100 };

typedef struct {
    Module module;
    RecallOptions options;
    Embedding *asked, *keys, *values; /* a vector of d numbers for each token */
    DotProductAttention *dot;         /* at most one of these two is not NULL */
    AdditiveAttention *additive;
    Tensor *equal_weights; /* (B, P, P) of the last forward of "mean" */
    Linear *answer;
} Recall;

/* The caller frees the model with nn_free. Additive attention draws its matrices at its first
 * input, which recall_show_input gives. A program calls recall_show_input before it makes the
 * optimizer. */
Recall *recall_new(const RecallOptions *options);
void recall_show_input(Recall *net);

/* Draws B sequences; the open tape owns them. */
Sequences recall_draw(const Recall *net, int64_t B);
/* (B, P) -> (B, P, values), the logits of the answers. */
Tensor *recall_forward(Recall *net, const Sequences *s);
/* (B, P, P): a row for each question, a column for each pair. */
Tensor *recall_weights(const Recall *net);

/* A step of training with B new sequences. Returns the loss, which the open tape owns. */
Tensor *recall_step(Recall *net, Optimizer *sgd, int64_t B);

/* Answers the questions of s, and adds to the score: questions, right answers, and questions whose
 * largest weight is on the right pair. */
typedef struct {
    double questions, right, found;
} RecallScore;
void recall_score(Recall *net, const Sequences *s, RecallScore *score);

/* The map of sequence b after recall_score or recall_forward: a row for each of its n questions, a
 * column for each pair, the old pairs included. */
void recall_take_map(AttentionMap *map, const Recall *net, const Sequences *s, int64_t b);

/* The data of a page (explain/page/recording.h) that steps through the first sequence that is drawn
 * after the seed ~seed, with the dropout of training: a string that the caller frees. NULL and an
 * error on failure. step: the number of training steps made; command: the command that makes this
 * page. */
char *recall_record(Recall *net, uint64_t seed, int64_t step, const char *command);

#endif
