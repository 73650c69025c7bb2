/* training.h - what all training programs share, so that each is only its lesson: the common flags,
 * the progress, the log, checkpoints to go on from, Ctrl-C, and the verdict at the end.
 *
 *     static Training run = {.program = "recall", .seed = 1, .steps = 1000, .batch = 64, .lr =
 * 0.2};
 *
 *     int main(int argc, char **argv) {
 *         training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
 *         Recall *net = recall_new();
 *         Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = run.lr, .momentum = 0.9});
 *         training_begin(&run, net, sgd);
 *         while (training_next(&run)) {
 *             tape_begin();
 *             Tensor *loss = recall_loss(net, ...);
 *             nn_optimizer_zero_grad(sgd);
 *             ag_backward(loss);
 *             nn_optimizer_step(sgd);
 *             training_report(&run, loss);
 *             tape_end();
 *         }
 *         if (training_finish(&run)) evaluate(net);
 *         nn_free(sgd);
 *         nn_free(net);
 *         return training_status(&run);
 *     }
 *
 * No line of it checks for an error: one that is pending makes training_next and training_finish
 * false, and training_status prints it.
 */
#ifndef TAPEHEAD_EXAMPLES_TRAINING_H
#define TAPEHEAD_EXAMPLES_TRAINING_H

#include "../../nn/nn.h"
#include "attention_map.h"
#include "flags.h"

#include <time.h>

/* What a program sets in it are the defaults of the flags of the same names. */
typedef struct {
    const char *program, *summary;
    Caption caption; /* what its maps show */
    uint64_t seed;
    int64_t steps; /* in all, those of the run that was loaded among them */
    int64_t batch; /* examples in a step */
    double lr;
    int64_t threads; /* 0: one for each core */
    int64_t every;   /* steps between reports; 0: a twentieth of all */
    const char *log, *save, *load, *plot;
    bool quiet;

    int64_t step;   /* steps taken so far */
    double *losses; /* (step), the loss of each */

    /* training.c's own. */
    Module *model;
    Optimizer *optimizer;
    TensorDict *settings; /* what must match */
    FILE *log_file;
    struct timespec started, shown; /* the first step of this process, the last line of progress */
    int64_t first;                  /* the steps that were taken before this process */
    bool failed;                    /* an expectation */
} Training;

/* Reads the common flags and the program's own, seeds the generator and sets the threads. After
 * --help it exits with 0; what it does not understand it answers in one sentence, and exits with 2.
 */
void training_flags(Training *run, int argc, char **argv, const Flag *flags, int num_flags);

/* Before training_begin: what must be the same in this run and in the one that it goes on from
 * (--load), but would not show in the shape of a parameter: a number of heads, a vocabulary. It
 * stands in the file under this name. Takes over the reference. */
void training_must_match(Training *run, const char *name, Tensor *value);

/* For a program that prints before it trains; training_begin does the same: could --save, --plot
 * and --log be written? From here on a reader that has gone is an error, no signal. */
void training_check_files(const Training *run);

/* Whatever can be wrong with the files is found here. From --load come the parameters, what the
 * optimizer remembers, the generator and the losses so far; --log gets its first rows, and --save
 * and --plot must be writable. From here on Ctrl-C ends the training, not the program. */
void training_begin(Training *run, void *model, Optimizer *optimizer);

/* Is there another step to take? Not with all of them taken, after Ctrl-C or with an error pending.
 */
bool training_next(Training *run);

/* Ends a step: notes its loss and, every so often, shows it, logs it and saves. A loss that is not
 * a finite number is an error. */
void training_report(Training *run, const Tensor *loss);

/* After the last step: saves. After Ctrl-C it says what was saved where. True if the model should
 * be looked at: after the whole training, and after Ctrl-C where --plot asks for a picture. */
bool training_finish(Training *run);

/* Prints the caption and the maps on standard output, unless --quiet, and draws --plot: losses and
 * maps on a sheet. */
void training_show(Training *run, const AttentionMap *maps, int num_maps);

/* Prints "expect  accuracy  0.9984 >= 0.99  PASS", or FAIL; nothing after Ctrl-C. relation is ">="
 * or "<". */
void training_expect(Training *run, const char *what, double value, const char *relation,
                     double bound);

/* tensor_can_write_file and output_write; nothing for a path that is NULL. */
void training_check_file(const char *path);
void training_write_file(const char *path, void (*write)(FILE *file, const void *context),
                         const void *context);

/* Prints the pending error, if there is one, and frees what the run holds. The exit status of the
 * program: 0 if every expectation passed; 1 if one failed, or anything else did; 128 and the
 * number of the signal if one ended the training: 130 after Ctrl-C, 141 without a word where nobody
 * reads standard output any more. */
int training_status(Training *run);

#endif
