/* training.c - shared by all training programs: see training.h.
 *
 * A step of training depends only on the parameters, the state of the optimizer, and the generator.
 * A file with these three is enough to continue with the same digits. The losses are also saved:
 * they are the curve, and their number is the number of steps. Files depend on the steps and not on
 * the time; only the progress on the terminal shows the time.
 */
#include "training.h"

#include "output.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Ctrl-C -------------------------------------------------------------------------------- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t stopped_by; /* the signal, or 0 */

static void stop(int number) { stopped_by = number; }

/* A signal that is ignored, under nohup for example, stays ignored. */
static void replace_handlers(void (*from)(int), void (*to)(int)) {
    struct sigaction before, after = {.sa_handler = to, .sa_flags = SA_RESTART};
    sigemptyset(&after.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], NULL, &before);
        if (before.sa_handler == from) sigaction(signals[i], &after, NULL);
    }
}

/* ---- flags --------------------------------------------------------------------------------- */

enum { FLAGS_MAX = 40 };

void training_flags(Training *run, int argc, char **argv, const Flag *own, int num_own) {
    const Flag common[] = {
        INTEGER_FLAG("--steps", run->steps, 0, 1e7, "from 0 to 10^7",
                     "Steps of training in all, with the steps of a loaded run."),
        INTEGER_FLAG("--batch", run->batch, 1, 1e5, "from 1 to 10^5", "Examples in a step."),
        NUMBER_FLAG("--lr", run->lr, 1e-300, 1e300, "above 0", "Learning rate."),
        SEED_FLAG("--seed", run->seed, "Seed of parameters, examples and dropout."),
        {"--threads", FLAG_INTEGER, &run->threads, "N", "Threads that share the work.", 1, 64,
         "from 1 to 64", "one for each core"},
        {"--every", FLAG_INTEGER, &run->every, "N",
         "Steps between reports, rows of --log and saves.", 1, 1e7, "from 1 to 10^7",
         "a twentieth of --steps"},
        OUTPUT_FLAG("--log", run->log, "FILE.csv", "Write the loss as it falls."),
        OUTPUT_FLAG("--save", run->save, "FILE.safetensors",
                    "Save the state of training at every report, at the end and after Ctrl-C."),
        TEXT_FLAG("--load", run->load, "FILE.safetensors", "none",
                  "Continue from this file: with the same flags, to the same digits."),
        OUTPUT_FLAG("--plot", run->plot, "FILE.svg", "Draw the losses and the attention weights."),
        OUTPUT_FLAG("--explain", run->explain, "FILE.html",
                    "Write a page that steps through the attention of one example after training,\n"
                    "forward and backward."),
        SWITCH_FLAG("--quiet", run->quiet,
                    "Print no progress and no maps, only the expectations and the results."),
    };
    enum { NUM_COMMON = sizeof common / sizeof *common };
    Flag all[FLAGS_MAX];
    if (num_own > FLAGS_MAX - NUM_COMMON) abort(); /* raise FLAGS_MAX */
    memcpy(all, own, (size_t)num_own * sizeof *own);
    memcpy(all + num_own, common, sizeof common);
    flags_parse(argc, argv, run->program, run->summary, all, num_own + NUM_COMMON);
    if (run->every == 0) run->every = run->steps >= 20 ? run->steps / 20 : 1;
    if (run->threads > 0) tensor_set_num_threads((int)run->threads);
    tensor_manual_seed(run->seed);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

void training_must_match(Training *run, const char *name, Tensor *value) {
    if (!run->settings) run->settings = tensor_dict_new();
    tensor_dict_set(run->settings, name, value);
    tensor_release(value);
}

static void save(const Training *run) {
    TensorDict *dict = tensor_dict_new();
    Tensor *losses = tensor_from_doubles(SHAPE(run->step), run->losses);
    Tensor *generator = tensor_generator_state();
    nn_state_dict(run->model, "model.", dict);
    nn_optimizer_state_dict(run->optimizer, "optimizer.", dict);
    tensor_dict_set(dict, "generator", generator);
    tensor_dict_set(dict, "losses", losses);
    for (int i = 0; run->settings && i < run->settings->n; i++)
        tensor_dict_set(dict, run->settings->entry[i].name, run->settings->entry[i].tensor);
    tensor_dict_set_metadata(dict, "program", run->program);
    tensor_save_safetensors(dict, run->save);
    tensor_release(generator);
    tensor_release(losses);
    tensor_dict_free(dict);
}

static bool same(const Tensor *a, const Tensor *b) {
    bool comparable = a->dtype == b->dtype && a->shape.ndim == b->shape.ndim;
    for (int d = 0; comparable && d < a->shape.ndim; d++)
        comparable = a->shape.dim[d] == b->shape.dim[d];
    return comparable && tensor_allclose(a, b, 0, 0);
}

static void check_settings(const Training *run, const TensorDict *dict) {
    for (int i = 0; run->settings && i < run->settings->n && !tensor_error(); i++) {
        const char *name = run->settings->entry[i].name;
        const Tensor *here = run->settings->entry[i].tensor;
        const Tensor *there = tensor_dict_get(dict, name);
        if (!there || same(here, there)) continue;
        if (tensor_numel(here) == 1 && tensor_numel(there) == 1)
            tensor_fail("it was saved with %s = %g, and this run has %s = %g", name,
                        tensor_item(there), name, tensor_item(here));
        else tensor_fail("its %s is different in this run", name);
    }
}

/* Allocates memory for the losses of this run and of the loaded run. */
static void begin_losses(Training *run, const Tensor *before) {
    if (before && before->shape.ndim != 1) tensor_fail("its losses are no list");
    if (tensor_error()) return;
    run->first = before ? tensor_numel(before) : 0;
    size_t count = (size_t)(run->first > run->steps ? run->first : run->steps) + 1;
    run->losses = malloc(count * sizeof *run->losses);
    if (!run->losses) tensor_fail("out of memory for %zu losses", count);
    else if (!before || tensor_to_doubles(before, run->losses)) run->step = run->first;
    for (int64_t i = 0; i < run->step; i++)
        if (!isfinite(run->losses[i])) tensor_fail("its losses are not all finite numbers");
}

/* Puts the name of the file before a pending error: errors about a dict do not name the file. */
static void name_the_file(const char *path) {
    const char *message = tensor_error();
    if (!message) return;
    tensor_clear_error();
    tensor_fail("%s: %s", path, message);
}

static void load(Training *run) {
    TensorDict *dict = tensor_load_safetensors(run->load);
    const char *program = dict ? tensor_dict_metadata(dict, "program") : NULL;
    if (dict && (!program || strcmp(program, run->program) != 0))
        tensor_fail("not a file that %s saved", run->program);
    if (dict && !tensor_error()) {
        check_settings(run, dict);
        nn_load_state_dict(run->model, "model.", dict);
        nn_optimizer_load_state_dict(run->optimizer, "optimizer.", dict);
        tensor_set_generator_state(tensor_dict_get(dict, "generator"));
        begin_losses(run, tensor_dict_get(dict, "losses"));
    }
    if (dict) name_the_file(run->load); /* else the error names the file already */
    tensor_dict_free(dict);
}

/* ---- reports ------------------------------------------------------------------------------- */

static bool is_due(const Training *run, int64_t step) {
    return step % run->every == 0 || step == run->steps;
}

/* The mean loss since the last report, because the loss of one batch is noisy. */
static double recent_loss(const Training *run, int64_t step) {
    int64_t begin = (step - 1) / run->every * run->every;
    double sum = 0;
    for (int64_t i = begin; i < step; i++) sum += run->losses[i];
    return sum / (double)(step - begin);
}

static void log_row(Training *run, int64_t step) {
    fprintf(run->log_file, "%" PRId64 ",%.9g\n", step, recent_loss(run, step));
    if (fflush(run->log_file)) tensor_fail("cannot write %s: %s", run->log, strerror(errno));
}

/* Writes the header of the log and the rows of the loaded run. */
static void begin_log(Training *run) {
    run->log_file = fopen(run->log, "w");
    if (!run->log_file || fputs("step,loss\n", run->log_file) < 0 || fflush(run->log_file)) {
        tensor_fail("cannot write %s: %s", run->log, strerror(errno));
        return;
    }
    for (int64_t step = 1; step <= run->step; step++)
        if (is_due(run, step)) log_row(run, step);
}

static double seconds_since(const struct timespec *then) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - then->tv_sec) + (double)(now.tv_nsec - then->tv_nsec) * 1e-9;
}

/* Prints the progress: on a terminal one line, rewritten ten times a second; else a line per
 * report. */
static void show_progress(Training *run) {
    bool terminal = terminal_is(stderr), last = run->step == run->steps;
    if (run->quiet ||
        (terminal ? !last && seconds_since(&run->shown) < 0.1 : !is_due(run, run->step)))
        return;
    char line[128];
    double rate = (double)(run->step - run->first) / fmax(seconds_since(&run->started), 1e-9);
    snprintf(line, sizeof line,
             "step %" PRId64 " of %" PRId64 "  loss %.4g  %.*f steps/s  %.0f s left", run->step,
             run->steps, recent_loss(run, run->step), rate < 10, rate,
             ceil((double)(run->steps - run->step) / rate));
    fprintf(stderr, terminal ? "\r%-78s" : "%s\n", line);
    clock_gettime(CLOCK_MONOTONIC, &run->shown);
}

/* ---- a run, from the beginning to the end ---------------------------------------------------- */

void training_check_file(const char *path) {
    if (path) tensor_can_write_file(path);
}

void training_write_file(const char *path, void (*write)(FILE *file, const void *context),
                         const void *context) {
    if (path && !tensor_error()) output_write(path, write, context);
}

/* --save into a pipe is an error: --load cannot read it, and opening it could wait for ever. */
static void check_no_pipe(const char *path) {
    struct stat status;
    if (path && stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        tensor_fail("cannot write %s: it is a pipe, and --save needs a file", path);
}

void training_check_files(const Training *run) {
    check_no_pipe(run->save);
    training_check_file(run->save);
    training_check_file(run->plot);
    training_check_file(run->explain);
    if (run->log && access(run->log, W_OK) != 0) /* an existing file is written to, not replaced */
        training_check_file(run->log);
}

void training_begin(Training *run, void *model, Optimizer *optimizer) {
    run->model = model;
    run->optimizer = optimizer;
    training_check_files(run);
    if (tensor_error()) return;
    if (run->load) load(run);
    else begin_losses(run, NULL);
    if (run->log && !tensor_error()) begin_log(run);
    replace_handlers(SIG_DFL, stop);
    clock_gettime(CLOCK_MONOTONIC, &run->started);
    run->shown = run->started;
}

bool training_next(Training *run) {
    return !tensor_error() && !stopped_by && run->step < run->steps;
}

void training_report(Training *run, const Tensor *loss) {
    double value = tensor_item(loss);
    if (tensor_error()) return;
    if (!isfinite(value)) {
        tensor_fail("step %" PRId64 ": the loss is not a finite number: try a smaller --lr",
                    run->step + 1);
        return;
    }
    run->losses[run->step++] = value;
    show_progress(run);
    if (!is_due(run, run->step)) return;
    if (run->log_file) log_row(run, run->step);
    if (run->save && run->step < run->steps) save(run);
}

bool training_finish(Training *run) {
    if (!run->quiet && run->step > run->first && terminal_is(stderr)) fputc('\n', stderr);
    if (!tensor_error() && run->save) save(run);
    replace_handlers(stop, SIG_DFL);
    if (tensor_error()) return false;
    if (stopped_by)
        fprintf(stderr, "%s: stopped after step %" PRId64 "; %s%s\n", run->program, run->step,
                run->save ? "to continue, --load " : "nothing was saved",
                run->save ? run->save : "");
    return !stopped_by || run->plot;
}

void training_show(Training *run, const AttentionMap *maps, int num_maps) {
    char title[64];
    snprintf(title, sizeof title, "%s", run->summary);
    *title = (char)toupper((unsigned char)*title);
    const Sheet sheet = {title, run->caption, run->losses, run->step, maps, num_maps};
    if (tensor_error()) return;
    if (!run->quiet) {
        printf("%s\n%s\n\n", run->caption.line[0], run->caption.line[1]);
        maps_print(stdout, maps, num_maps);
    }
    training_write_file(run->plot, sheet_write_svg, &sheet);
}

void training_expect(Training *run, const char *what, double value, const char *relation,
                     double bound) {
    if (tensor_error() || stopped_by) return; /* the training is not complete */
    bool pass = *relation == '<' ? value < bound : value >= bound;
    printf("expect  %s  %.4f %s %g  %s\n", what, value, relation, bound, pass ? "PASS" : "FAIL");
    if (!pass) run->failed = true;
}

int training_status(Training *run) {
    const bool gone = output_reader_is_gone();
    if (run->log_file && fclose(run->log_file)) tensor_fail("cannot write %s", run->log);
    if (!output_stdout_ok()) tensor_fail("cannot write to standard output");
    if (tensor_error() && !gone) fprintf(stderr, "%s: %s\n", run->program, tensor_error());
    free(run->losses);
    tensor_dict_free(run->settings);
    if (gone) return OUTPUT_READER_GONE;
    if (tensor_error()) return 1;
    return stopped_by ? 128 + stopped_by : run->failed;
}
