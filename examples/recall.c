/* recall.c - associative recall: attention as a memory.
 *
 * A sequence is a list of pairs of a key and a value, "c:37 x:4 f:81". A question names a key,
 * "f?", and the answer is its value, 81. All pairs are random, so the model cannot memorise them;
 * it must learn to find the pair. Keys in questions and keys in pairs have different
 * vectors, so only training can teach the model that the f of a question is the f of a pair. The
 * loss knows the right value, but not the right pair.
 *
 * Sequences have different lengths. After the last pair of a sequence there are old pairs: its
 * first keys again, with other values, as in a buffer that was used before. Only valid_lens says
 * where the sequence ends.
 *
 * The model and its sequences are in recall/model.c: the page of build/explain trains the model,
 * too.
 */
#include "common/training.h"
#include "explain/page/recording.h"
#include "recall/model.h"

#include <inttypes.h>
#include <string.h>

static Training run = {
    .program = "recall",
    .summary = "learns to look up the value of a key",
    .caption = {{"A row is a question, a column a stored pair, the colour the weight.",
                 "Each row should have one strong cell: the pair with its key."}},
    .seed = RECALL_SEED,
    .steps = RECALL_STEPS,
    .batch = RECALL_BATCH,
    .lr = RECALL_RATE};

static RecallOptions options = RECALL_OPTIONS;
static double momentum = RECALL_MOMENTUM;

static void train(Recall *net, Optimizer *sgd) {
    while (training_next(&run)) {
        tape_begin();
        training_report(&run, recall_step(net, sgd, run.batch));
        tape_end();
    }
}

/* Evaluates 1024 new sequences from another seed. There are 10^17 sequences of 5 pairs, and
 * training saw only 10^4, so it saw none of the new ones. */
static void evaluate(Recall *net) {
    static AttentionMap maps[4];
    RecallScore score = {0};
    tensor_manual_seed(~run.seed);
    nn_train(net, false);
    for (int batch = 0; batch < 16; batch++) {
        tape_begin_no_grad();
        Sequences s = recall_draw(net, 64);
        recall_score(net, &s, &score);
        for (int b = 0; b < 4 && batch == 0; b++) recall_take_map(&maps[b], net, &s, b);
        tape_end();
    }
    training_show(&run, maps, 4);
    training_expect(&run, "accuracy", score.right / score.questions, ">=", 0.99);
    training_expect(&run, "largest weight on the right pair", score.found / score.questions,
                    ">=", 0.99);
}

/* Writes the page of the first sequence that evaluate draws. */
static void explain(Recall *net) {
    recording_write(recall_record(net, run.seed, run.step, "build/recall --explain FILE.html"),
                    run.explain);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    CHOICE_FLAG("--attention", options.attention, "dot|additive|mean",
                "The score of a question and a key: q . k / sqrt(d), or w . tanh(W_q q + W_k k).\n"
                "mean is no attention: all pairs have the same weight."),
    INTEGER_FLAG("--pairs", options.pairs, 1, RECALL_MOST_KEYS, "from 1 to 52",
                 "The largest number of pairs in a sequence; the smallest is half of it."),
    INTEGER_FLAG("--keys", options.keys, 1, RECALL_MOST_KEYS, "from 1 to 52",
                 "The number of different keys, at least --pairs."),
    INTEGER_FLAG("--values", options.values, 2, 1000, "from 2 to 1000",
                 "The number of different values."),
    INTEGER_FLAG("--hidden", options.hidden, 1, 1024, "from 1 to 1024",
                 "The size d of the vectors."),
    NUMBER_FLAG("--dropout", options.dropout, 0, 1 - 1e-16, "of at least 0 and below 1",
                "The probability with which a weight is lost in training."),
    SWITCH_FLAG("--no-scale", options.no_scale, "Dot products are not divided by sqrt(d)."),
    SWITCH_FLAG("--no-mask", options.no_mask,
                "No valid_lens: questions look at the old pairs after the sequence, too."),
    NUMBER_FLAG("--momentum", momentum, 0, 1 - 1e-16, "of at least 0 and below 1",
                "How much of the last step goes into the next."),
};

int main(int argc, char **argv) {
    training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
    if (options.pairs > options.keys)
        flags_misuse("recall", "--pairs %" PRId64 " needs at least as many --keys, not %" PRId64,
                     options.pairs, options.keys);
    if (options.no_scale && strcmp(options.attention, "dot") != 0)
        flags_misuse("recall", "--no-scale is for --attention dot: the others have no scale");
    if (options.dropout > 0 && strcmp(options.attention, "mean") == 0)
        flags_misuse("recall", "--dropout is for --attention dot and additive: mean has no weights "
                               "to lose");
    Recall *net = recall_new(&options);
    recall_show_input(net);
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = run.lr, .momentum = momentum});
    const bool is_mean = strcmp(options.attention, "mean") == 0;
    training_must_match(&run, "no_scale", tensor_from_bools(SCALAR, &options.no_scale));
    training_must_match(&run, "mean", tensor_from_bools(SCALAR, &is_mean));
    training_begin(&run, net, sgd);
    train(net, sgd);
    if (training_finish(&run)) evaluate(net);
    if (run.explain && !tensor_error()) explain(net);
    nn_free(sgd);
    nn_free(net);
    return training_status(&run);
}
