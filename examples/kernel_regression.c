/* kernel_regression.c - the Nadaraya-Watson estimator as a tool for real data.
 *
 * This estimator is the simplest attention: the query is x, the keys are all measured x_i, nearer
 * keys get more weight, and the prediction is the weighted mean of the y_i. One number is learned,
 * the bandwidth. For the loss, each point is predicted from all other points, never from itself.
 *
 * Inside, x and y are standardised (mean 0, standard deviation 1), so that one learning rate works
 * for all units. The program prints all numbers in the units of the data, but the loss in units of
 * the variance of y. The sections: the model, the loss, the start, training, the result, main.
 */
#include "../nn/nn.h"
#include "kernel_regression/fit.h"
#include "common/output.h"
#include "common/training.h"
#include "kernel_regression/valley.h"

#include <math.h>

/* ---- the model --------------------------------------------------------------------------- */

/* The parameter is log w, because the inverse width w must be positive, and because a step then
 * changes w by a factor. */
typedef struct {
    Module module;
    Tensor *log_w;             /* (1) */
    Tensor *attention_weights; /* (Q, K) of the last forward */
} KernelRegression;

static KernelRegression *kernel_regression_new(void) {
    static const ModuleClass class = {"KernelRegression", sizeof(KernelRegression), NULL, NULL};
    KernelRegression *net = nn_module_new(&class);
    if (!net) return NULL;
    nn_add_parameter(net, "log_w", &net->log_w, tensor_zeros(SHAPE(1)));
    nn_add_result(net, &net->attention_weights);
    return nn_module_done(net);
}

/* f(q) = sum_i softmax_i(-((q - x_i) w)^2 / 2) y_i
 * queries (Q), keys x_i (K), values y_i (K) -> (Q). Where self (Q, K) is true, the score is
 * minus infinity and the weight 0. The softmax subtracts the largest score first, so that also a
 * point far from all others gives its weight to its nearest neighbours, in equal parts if they are
 * equally near. */
static Tensor *kernel_regression_forward(KernelRegression *net, Tensor *queries, Tensor *keys,
                                         Tensor *values, Tensor *self) {
    Tensor *w = ag_exp(net->log_w);
    Tensor *differences = ag_sub(ag_unsqueeze(queries, 1), ag_unsqueeze(keys, 0)); /* (Q, K) */
    Tensor *scores = ag_scale(ag_square(ag_mul(differences, w)), -0.5);
    if (self) scores = ag_masked_fill(scores, self, -HUGE_VAL);
    Tensor *weights = ag_softmax(scores, 1);
    nn_keep_result(net, &net->attention_weights, weights);
    return ag_matmul(weights, values);
}

/* L(w) = 1/n sum_i (f_{-i}(x_i) - y_i)^2, where f_{-i} does not use point i. */
static Tensor *leave_one_out_loss(KernelRegression *net, const Sample *s) {
    Tensor *y_hat = kernel_regression_forward(net, s->x, s->x, s->y, s->self);
    return ag_mse_loss(y_hat, s->y, REDUCE_MEAN);
}

/* ---- the start --------------------------------------------------------------------------- */

#define FLAT 1e-9              /* a slope below FLAT * loss counts as 0 */
enum { ENOUGH_EPOCHS = 1000 }; /* enough for all data that were tried */

static Training run = {.program = "kernel_regression",
                       .summary = "fits a curve to measurements by attention (Nadaraya-Watson)",
                       .seed = 517109245,
                       .steps = ENOUGH_EPOCHS,
                       .lr = 0.2,
                       .every = 1,
                       .quiet = true}; /* its progress is the epochs that are printed */
static struct {
    const char *data, *x, *y, *predict;
    double momentum, w0;
} options = {.x = "1", .y = "2", .momentum = 0.5};

static Sample points;

/* w in 1 / (units of x). */
static double in_units(double log_w) { return exp(log_w) / points.x_scale.deviation; }

static double loss_at(void *net, double log_w) {
    if (!tensor_fill(((KernelRegression *)net)->log_w, log_w) || !tape_begin_no_grad())
        return (double)NAN;
    double loss = tensor_item(leave_one_out_loss(net, &points));
    tape_end();
    return loss;
}

/* L(w) is not convex. For small w it is flat: every prediction is the mean of all points. For large
 * w it is flat again: every prediction is the nearest neighbour. Between them there may be several
 * minima, and SGD finds only the minimum of the valley in which it starts, and none on a flat part.
 * (The Old Faithful data have two minima that differ by 0.2 %.) So this function evaluates L on a
 * grid of log w, in steps of at most log 1.2, and starts in the deepest valley. The grid begins at
 * w = 1e-5 / R, R the range of x, where all weights are equal. The grid ends where w^2 (d2^2 -
 * d1^2) / 2 >= 50, d1 the distance from a point to its nearest neighbour, d2 any larger distance,
 * so that only nearest neighbours have weight. Returns the curvature that sets the size of the
 * steps: L'' at the minimum, or with --w0 the largest |L''| on the grid. */
static double find_start(KernelRegression *net) {
    double low = log(1e-5 / points.x_range), high = log(10 / points.x_gap);
    int n = (int)ceil((high - low) / log(1.2)) + 1; /* at most 191: x_range / x_gap < 1e9 */
    printf("scan %d values of w: ", n);
    fflush(stdout); /* with thousands of points the scan takes some time */
    Valley start = valley_deepest(loss_at, net, low, high, n);
    if (tensor_error()) return (double)NAN;
    const char *where = "the mean of all predicts best, below";
    if (start.curvature > 0) where = "the lowest minimum is near";
    else if (start.u > low) where = "the nearest neighbour predicts best, above";
    printf("%s w %.4g\n", where, in_units(start.u));
    if (options.w0 > 0) { /* w0 may be anywhere: the largest curvature makes steps safe */
        start.u = log(options.w0 * points.x_scale.deviation);
        start.floor = loss_at(net, low);
        start.curvature = start.largest_curvature;
    }
    tensor_fill(net->log_w, start.u);
    return fmax(start.curvature, valley_flat(start.floor));
}

/* ---- training ---------------------------------------------------------------------------- */

/* Prints the epoch if it is the last, or 1, 2, 5, 10, 20, 50, ... */
static void print_epoch(const KernelRegression *net, double loss, bool at_the_floor) {
    int64_t epoch = run.step + 1, digit = epoch;
    while (digit % 10 == 0) digit /= 10;
    if (tensor_error()) return;
    if (at_the_floor || epoch == run.steps || digit == 1 || digit == 2 || digit == 5)
        printf("epoch %4lld  loss %.6g  w %.6g%s\n", (long long)epoch, loss,
               in_units(tensor_item(net->log_w)), at_the_floor ? "  the slope is 0" : "");
    if (!output_stdout_ok()) tensor_fail("cannot write to standard output");
}

/* SGD on log w, until the slope dL / d(log w) is 0 to nine digits of L. A step is lr / L'' times
 * the slope: --lr 1 without momentum is Newton's step, to the vertex of the parabola. Smaller steps
 * are safer if L is no parabola. Returns |slope| / L. */
static double train(KernelRegression *net, Optimizer *sgd) {
    double steepness = 0;
    bool at_the_floor = false;
    while (!at_the_floor && training_next(&run)) {
        tape_begin();
        Tensor *loss = leave_one_out_loss(net, &points);
        nn_optimizer_zero_grad(sgd);
        ag_backward(loss);
        steepness = fabs(tensor_item(net->log_w->grad)) / (tensor_item(loss) + 1e-12);
        if (!isfinite(steepness))
            tensor_fail("epoch %lld: the slope is not a number: try a smaller --lr or another --w0",
                        (long long)run.step + 1);
        at_the_floor = steepness < FLAT;
        print_epoch(net, tensor_item(loss), at_the_floor);
        if (!at_the_floor) nn_optimizer_step(sgd);
        training_report(&run, loss);
        tape_end();
    }
    return steepness;
}

/* ---- the result ---------------------------------------------------------------------------- */

/* The predictions of the trained model from all points; for fit_make. */
static Tensor *attend(void *model, const Sample *s, Tensor *queries, Tensor **weights) {
    KernelRegression *net = model;
    Tensor *y_hat = kernel_regression_forward(net, queries, s->x, s->y, NULL);
    *weights = net->attention_weights;
    return y_hat;
}

static void show(KernelRegression *net) {
    static Fit fit;
    double w = in_units(tensor_item(net->log_w)), loss = loss_at(net, tensor_item(net->log_w));
    if (!fit_make(&fit, &points, 1 / w, attend, net)) return;
    fit_draw(stdout, &fit);
    printf("w                   %.6g\n", w);
    printf("bandwidth           %.6g\n", 1 / w);
    printf("leave-one-out rmse  %.6g\n", sqrt(loss) * points.y_scale.deviation);
    if (!output_stdout_ok()) tensor_fail("cannot write to standard output");
    training_write_file(options.predict, fit_write_csv, &fit);
    training_write_file(run.plot, fit_write_svg, &fit);
}

/* Expects that the slope is 0, unless --epochs is below ENOUGH_EPOCHS, and that the loss did not
 * rise. A change that the printed digits do not show, from a start at the minimum, says nothing. */
static void judge(KernelRegression *net, double steepness) {
    if (run.step == 0 || tensor_error()) return;
    double before = run.losses[0], after = loss_at(net, tensor_item(net->log_w));
    double percent = 100 * (before - after) / before;
    if (run.steps >= ENOUGH_EPOCHS) training_expect(&run, "slope / loss", steepness, "<", FLAT);
    if (fabs(percent) >= 1e-4) training_expect(&run, "loss fell by percent", percent, ">=", 0);
}

static void fit(KernelRegression *net) {
    double curvature = find_start(net);
    SGDConfig config = {.lr = run.lr / curvature, .momentum = options.momentum};
    Optimizer *sgd = nn_sgd_new(net, config);
    training_begin(&run, net, sgd);
    double steepness = train(net, sgd);
    if (training_finish(&run)) {
        show(net);
        judge(net, steepness);
    }
    nn_free(sgd);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    TEXT_FLAG("--data", options.data, "FILE.csv", "the 50 points of the notebook",
              "The measurements, with or without a header."),
    TEXT_FLAG("--x", options.x, "COLUMN", NULL,
              "The column of x: a name from the header, or a number, counted from 1."),
    TEXT_FLAG("--y", options.y, "COLUMN", NULL, "The column of y."),
    INTEGER_FLAG("--epochs", run.steps, 0, 1e7, "from 0 to 10^7",
                 "At most so many steps of SGD; it stops when the slope is 0."),
    NUMBER_FLAG("--lr", run.lr, 1e-300, 1e300, "above 0",
                "Learning rate: 1 would jump to the lowest point of a parabola."),
    NUMBER_FLAG("--momentum", options.momentum, 0, 1 - 1e-16, "of at least 0 and below 1",
                "How much of the last step goes into the next."),
    NUMBER_FLAG("--w0", options.w0, 1e-300, 1e300, "above 0",
                "Start at this w, in 1 / (units of x), and go down to the next minimum;\n"
                "without --w0, start near the lowest minimum of all, which a scan finds."),
    SEED_FLAG("--seed", run.seed, "Of the notebook's data; with --data nothing is random."),
    {"--threads", FLAG_INTEGER, &run.threads, "N", "Threads that share the work.", 1, 64,
     "from 1 to 64", "one for each core"},
    OUTPUT_FLAG("--log", run.log, "FILE.csv", "Write the loss of every epoch."),
    OUTPUT_FLAG("--predict", options.predict, "FILE.csv",
                "Write the fitted curve: 201 points from the smallest x to the largest."),
    OUTPUT_FLAG("--plot", run.plot, "FILE.svg",
                "Draw the points and the curve, and below them the attention: for each query\n"
                "(row) how its weight spreads over x."),
};

int main(int argc, char **argv) {
    flags_parse(argc, argv, run.program, run.summary, flags, sizeof flags / sizeof *flags);
    if (run.threads > 0) tensor_set_num_threads((int)run.threads);
    training_check_files(&run); /* before the work */
    training_check_file(options.predict);
    if (options.data) sample_read(&points, options.data, options.x, options.y);
    else sample_notebook(&points, run.seed);
    KernelRegression *net = kernel_regression_new();
    if (net) fit(net);
    nn_free(net);
    sample_free(&points);
    return training_status(&run);
}
