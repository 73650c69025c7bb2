/* training.h - shared by all training programs, so that a program has only its lesson: common
 * flags, progress, the log, checkpoints, Ctrl-C, and the expectations at the end.
 *
 *     static Training run = {.program = "reverse", .seed = 1, .steps = 1000, .lr = 0.2};
 *
 *     int main(int argc, char **argv) {
 *         training_flags(&run, argc, argv, flags, sizeof flags / sizeof *flags);
 *         Reverse *net = reverse_new();
 *         Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = run.lr, .momentum = 0.9});
 *         training_begin(&run, net, sgd);
 *         while (training_next(&run)) {
 *             tape_begin();
 *             Tensor *loss = reverse_loss(net, ...);
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
 * The program needs no checks for errors: while an error is pending, training_next and
 * training_finish return false, and training_status prints the error.
 */
#ifndef TAPEHEAD_EXAMPLES_TRAINING_H
#define TAPEHEAD_EXAMPLES_TRAINING_H

#include "../../nn/nn.h"
#include "attention_map.h"
#include "flags.h"

#include <time.h>

/* The values that a program sets here are the defaults of the flags with the same names. */
typedef struct {
    const char *program, *summary;
    Caption caption; /* of the maps */
    uint64_t seed;
    int64_t steps; /* in all, with the steps of a loaded run */
    int64_t batch; /* examples in a step */
    double lr;
    int64_t threads; /* 0: one for each core */
    int64_t every;   /* steps between reports; 0: a twentieth of all */
    const char *log, *save, *load, *plot, *explain;
    bool quiet;

    int64_t step;   /* steps taken so far */
    double *losses; /* (step), the loss of each */

    /* Private to training.c. */
    Module *model;
    Optimizer *optimizer;
    TensorDict *settings; /* of training_must_match */
    FILE *log_file;
    struct timespec started, shown; /* the first step of this process, the last line of progress */
    int64_t first;                  /* the number of steps in the loaded run */
    bool failed;                    /* an expectation failed */
} Training;

/* Reads the common flags and the flags of the program, seeds the generator and sets the number of
 * threads. --help exits with status 0; a mistake prints one error message and exits with status 2.
 */
void training_flags(Training *run, int argc, char **argv, const Flag *flags, int num_flags);

/* Call this before training_begin, for a value that must be equal in this run and in the loaded run
 * (--load) but is not visible in the shapes of parameters: the number of heads, or a vocabulary.
 * The file holds the value under this name. Takes over the reference. */
void training_must_match(Training *run, const char *name, Tensor *value);

/* Checks that --save, --plot, --explain and --log can be written. training_begin does the same; a
 * program that prints before it trains calls this first. */
void training_check_files(const Training *run);

/* Checks all files. Loads parameters, the state of the optimizer, the generator and the losses from
 * --load, and writes the first rows of --log. From here on Ctrl-C ends the training, not the
 * program.
 */
void training_begin(Training *run, void *model, Optimizer *optimizer);

/* True if there is another step: not after the last one, not after Ctrl-C, not after an error. */
bool training_next(Training *run);

/* Ends a step: stores the loss. Every `every` steps and after the last step, prints (unless
 * --quiet) and logs the mean loss since the report before; every `every` steps, also saves. A
 * terminal shows the progress more often. A loss that is not finite is an error. */
void training_report(Training *run, const Tensor *loss);

/* Call this after the last step: it saves, and after Ctrl-C it prints the name of the file. True if
 * the model is to be evaluated: after the whole training, and after Ctrl-C if there is --plot. */
bool training_finish(Training *run);

/* Prints the caption and the maps, unless --quiet, and writes --plot: a sheet with losses and maps.
 */
void training_show(Training *run, const AttentionMap *maps, int num_maps);

/* Prints "expect  accuracy  0.9984 >= 0.99  PASS", or FAIL; nothing after Ctrl-C. relation is ">="
 * or "<". */
void training_expect(Training *run, const char *what, double value, const char *relation,
                     double bound);

/* tensor_can_write_file and output_write, unless path is NULL. */
void training_check_file(const char *path);
void training_write_file(const char *path, void (*write)(FILE *file, const void *context),
                         const void *context);

/* Prints the pending error, if there is one, and frees the memory of the run. Returns the exit
 * status: 0 if every expectation passed; 1 after an error or if an expectation failed; 128 + the
 * signal if a signal ended the training, 130 after Ctrl-C; 141, without a message, if the reader of
 * standard output has ended. */
int training_status(Training *run);

#endif
