/* kernel_regression.c - the Nadaraya-Watson estimator as a tool for real data.
 *
 * Attention in its smallest form: a query x looks at all measured x_i, near ones get more weight,
 * and the answer is the weighted mean of their y_i. One number is learned, the bandwidth,
 * and it is learned honestly: every point is predicted from all the others, never from itself.
 *
 * Inside, x and y are standardised (mean 0, deviation 1), so that one learning rate fits data in
 * any units; all that is printed is in the units of the data, but for the loss, where 1 is the
 * variance of y. Read on in the order model, loss, where to start, training, pictures, main.
 */
#include "../nn/nn.h"
#include "common/fit.h"
#include "common/flags.h"
#include "common/output.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>

static struct {
    const char *data, *x, *y, *predict, *plot;
    double lr, momentum, w0;
    int64_t epochs;
    uint64_t seed;
} options = {.x = "1", .y = "2", .lr = 0.2, .momentum = 0.5, .epochs = 1000, .seed = 517109245};

__attribute__((format(printf, 1, 2))) static bool fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "kernel_regression: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

/* ---- the model --------------------------------------------------------------------------- */

/* The inverse width w must stay positive and means the same ratio everywhere, so its logarithm is
 * what is learned. */
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
 * queries (Q), keys x_i (K), values y_i (K) -> (Q). Where self (Q, K) is true the weight is 0: a
 * score of minus infinity. The softmax subtracts the largest score first, so that even the
 * loneliest point has a nearest neighbour; neighbours equally near share. */
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

/* L(w) = 1/n sum_i (f_{-i}(x_i) - y_i)^2, where f_{-i} has not seen point i. */
static Tensor *leave_one_out_loss(KernelRegression *net, const Sample *s) {
    Tensor *y_hat = kernel_regression_forward(net, s->x, s->x, s->y, s->self);
    return ag_mse_loss(y_hat, s->y, REDUCE_MEAN);
}

static double loss_at(KernelRegression *net, const Sample *s, double log_w) {
    if (!tensor_fill(net->log_w, log_w) || !tape_begin_no_grad()) return tensor_item(NULL);
    double loss = tensor_item(leave_one_out_loss(net, s));
    tape_end();
    return loss;
}

/* w in 1 / (units of x). */
static double inverse_width(const KernelRegression *net, const Sample *s) {
    return exp(tensor_item(net->log_w)) / s->x_scale.deviation;
}

/* ---- where to start ---------------------------------------------------------------------- */

/* L(w) is no bowl. Far to the left it is flat, every prediction is the mean; far to the right it is
 * flat again, every prediction is the nearest neighbour; between them may lie several valleys, and
 * SGD finds the floor only of the one that it starts in, and nothing at all on a flat. (The Old
 * Faithful data have two valleys whose floors differ by 0.2 %.) So look before you walk: evaluate L
 * on a grid of log w from flat to flat, in steps of at most log 1.2. With R the range of x, at
 * w = 1e-5 / R all weights are equal; where w^2 (d2^2 - d1^2) / 2 = 50 for any two distances, each
 * point sees its nearest neighbours alone. Each low point of the grid lies in a valley: sound how
 * deep that is, and start in the deepest. How strongly its floor is bent, L'', sets the size of the
 * steps. */
typedef struct {
    double log_w; /* the low point of the grid: where SGD starts */
    double floor, curvature;
} Valley;

/* A smaller curvature is none, compared with the loss: that of data without noise is tiny. */
static double flat(double loss) { return 1e-6 * fmax(loss, 1e-12); }

/* Halves the spacing of three points around a minimum, five times, and puts a parabola through what
 * it ends with. L: the losses at log_w - step, log_w, log_w + step. */
static Valley sound(KernelRegression *net, const Sample *s, const double *L, double log_w,
                    double step) {
    double left = L[0], here = L[1], right = L[2], w = log_w;
    for (int i = 0; i < 5; i++) {
        step /= 2;
        double a = loss_at(net, s, w - step), b = loss_at(net, s, w + step);
        if (a < here && a <= b) right = here, here = a, w -= step;
        else if (b < here) left = here, here = b, w += step;
        else left = a, right = b;
    }
    double slope = (right - left) / (2 * step), bend = (left - 2 * here + right) / (step * step);
    return (Valley){log_w, bend > 0 ? here - slope * slope / (2 * bend) : here, bend};
}

/* From the widest kernel to the narrowest; a floor only as deep as a wider one's does not win.
 * Should one of the flats win, SGD starts, and stays, where it begins. */
static Valley deepest(KernelRegression *net, const Sample *s, const double *L, int n, double low,
                      double step) {
    Valley best = {low, L[0], 0};
    for (int i = 1; i < n - 1; i++) {
        double bend = (L[i - 1] - 2 * L[i] + L[i + 1]) / (step * step);
        if (L[i] > L[i - 1] || L[i] > L[i + 1] || bend < flat(L[i])) continue;
        Valley here = sound(net, s, &L[i - 1], low + i * step, step);
        here.curvature = fmax(here.curvature, bend); /* on the first steps it is the walls' */
        if (here.floor < best.floor * (1 - 1e-7)) best = here;
    }
    if (L[n - 1] >= best.floor * (1 - 1e-7)) return best;
    int i = n - 1;
    while (i > 0 && fabs(L[i - 1] - L[n - 1]) <= 1e-12 * L[n - 1]) i--;
    return (Valley){low + i * step, L[n - 1], 0};
}

static bool find_start(KernelRegression *net, const Sample *s, double *curvature) {
    double L[256] = {0}; /* at most log(10 / 1e-5 x 1e9) / log 1.2 + 2 = 191 points */
    double low = log(1e-5 / s->x_range), high = log(10 / s->x_gap), steepest = 0;
    int n = (int)ceil((high - low) / log(1.2)) + 1;
    double step = (high - low) / (n - 1);
    printf("scan %d values of w: ", n);
    fflush(stdout); /* thousands of points take a while */
    for (int i = 0; i < n; i++)
        if (isnan(L[i] = loss_at(net, s, low + i * step))) return false;
    for (int i = 1; i < n - 1; i++)
        steepest = fmax(steepest, fabs(L[i - 1] - 2 * L[i] + L[i + 1]) / (step * step));
    Valley start = deepest(net, s, L, n, low, step);
    const char *where = start.curvature > 0 ? "the lowest minimum is near"
                        : start.log_w > low ? "the nearest neighbour predicts best, above"
                                            : "the mean of all predicts best, below";
    printf("%s w %.4g\n", where, exp(start.log_w) / s->x_scale.deviation);
    fflush(stdout);
    if (options.w0 > 0) /* anywhere on the curve, then: steps that are safe where it is steepest */
        start = (Valley){log(options.w0 * s->x_scale.deviation), L[0], steepest};
    *curvature = fmax(start.curvature, flat(start.floor));
    return tensor_fill(net->log_w, start.log_w);
}

/* ---- training ---------------------------------------------------------------------------- */

/* One step of SGD on log w; done when the slope is gone: dL / d(log w) = 0 to nine
 * digits of L. */
static bool train_step(KernelRegression *net, Optimizer *sgd, const Sample *s, int64_t epoch,
                       bool *done) {
    Tensor *loss = leave_one_out_loss(net, s);
    nn_optimizer_zero_grad(sgd);
    if (!ag_backward(loss)) return false;
    double slope = tensor_item(net->log_w->grad);
    if (!isfinite(slope))
        return fail("epoch %lld: the slope is not a number: try a smaller --lr or another --w0",
                    (long long)epoch);
    *done = fabs(slope) <= 1e-9 * (tensor_item(loss) + 1e-12);
    int64_t digit = epoch; /* 1, 2, 5, 10, 20, 50, ... are worth a line */
    while (digit % 10 == 0) digit /= 10;
    if (*done || epoch == options.epochs || digit == 1 || digit == 2 || digit == 5)
        printf("epoch %4lld  loss %.6g  w %.6g%s\n", (long long)epoch, tensor_item(loss),
               inverse_width(net, s), *done ? "  the slope is 0" : "");
    if (!output_stdout_ok()) return fail("cannot write to standard output");
    return *done || nn_optimizer_step(sgd);
}

/* The step is lr / L'' times the slope: --lr 1 without momentum would jump to the parabola's
 * vertex, Newton's step, on any data. Smaller ones forgive a parabola that fits badly. */
static bool train(KernelRegression *net, const Sample *s, double curvature) {
    SGDConfig config = {.lr = options.lr / curvature, .momentum = options.momentum};
    Optimizer *sgd = nn_sgd_new(net, config);
    bool ok = sgd != NULL, done = false;
    for (int64_t epoch = 1; ok && !done && epoch <= options.epochs; epoch++) {
        ok = tape_begin() && train_step(net, sgd, s, epoch, &done);
        tape_end();
    }
    nn_free(sgd);
    return ok;
}

/* ---- what comes out ---------------------------------------------------------------------- */

/* What the trained model says at the queries, having seen all points; for fit_make. */
static Tensor *attend(void *model, const Sample *s, Tensor *queries, Tensor **weights) {
    KernelRegression *net = model;
    Tensor *y_hat = kernel_regression_forward(net, queries, s->x, s->y, NULL);
    *weights = net->attention_weights;
    return y_hat;
}

static bool load(Sample *s) {
    char error[CSV_ERROR_SIZE];
    if (!options.data) return sample_notebook(s, options.seed);
    if (sample_read(s, options.data, options.x, options.y, error)) return true;
    tensor_clear_error(); /* error already has it */
    return fail("%s", error);
}

/* Asked before the training, which may take a while. */
static bool can_write(void) {
    char error[OUTPUT_ERROR_SIZE];
    const char *const paths[] = {options.predict, options.plot};
    for (int i = 0; i < 2; i++)
        if (paths[i] && !output_check(paths[i], error)) return fail("%s", error);
    return true;
}

static bool report(KernelRegression *net, const Sample *s, Fit *fit) {
    char error[OUTPUT_ERROR_SIZE];
    double w = inverse_width(net, s), loss = loss_at(net, s, tensor_item(net->log_w));
    if (!fit_make(fit, s, 1 / w, attend, net)) return false;
    fit_draw(stdout, fit);
    printf("w                   %.6g\n", w);
    printf("bandwidth           %.6g\n", 1 / w);
    printf("leave-one-out rmse  %.6g\n", sqrt(loss) * s->y_scale.deviation);
    if (!output_stdout_ok()) return fail("cannot write to standard output");
    if (options.predict && !output_write(options.predict, fit_write_csv, fit, error))
        return fail("%s", error);
    if (options.plot && !output_write(options.plot, fit_write_svg, fit, error))
        return fail("%s", error);
    return true;
}

/* ---- main ---------------------------------------------------------------------------------- */

static const Flag flags[] = {
    TEXT_FLAG("--data", options.data, "FILE.csv", "the 50 points of the notebook",
              "The measurements, with or without a header."),
    TEXT_FLAG("--x", options.x, "COLUMN", NULL,
              "The column of x: a name from the header, or a number, counted from 1."),
    TEXT_FLAG("--y", options.y, "COLUMN", NULL, "The column of y."),
    INTEGER_FLAG("--epochs", options.epochs, 0, 1000000000, "from 0 to 10^9",
                 "At most so many steps of SGD; it stops when the slope is 0."),
    NUMBER_FLAG("--lr", options.lr, 1e-300, 1e300, "above 0",
                "Learning rate: 1 would jump to the lowest point of a parabola."),
    NUMBER_FLAG("--momentum", options.momentum, 0, 1 - 1e-16, "of at least 0 and below 1",
                "How much of the last step goes into the next."),
    NUMBER_FLAG("--w0", options.w0, 1e-300, 1e300, "above 0",
                "Start at this w, in 1 / (units of x), and go down to whatever minimum is there;\n"
                "without it, near the lowest minimum of all, which a scan finds."),
    SEED_FLAG("--seed", options.seed, "Of the notebook's data; with --data nothing is random."),
    TEXT_FLAG("--predict", options.predict, "FILE.csv", "none",
              "Write the fitted curve: 201 points from the smallest x to the largest."),
    TEXT_FLAG("--plot", options.plot, "FILE.svg", "none",
              "Draw the points and the curve, and below them the attention: for each query\n"
              "(row) how its weight spreads over x."),
};

int main(int argc, char **argv) {
    Sample s = {0};
    Fit fit = {0};
    double curvature;
    flags_parse(argc, argv, "kernel_regression",
                "fits a curve to measurements by attention (Nadaraya-Watson)", flags,
                sizeof flags / sizeof *flags);
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is reported as any other failure */
    KernelRegression *net = can_write() && load(&s) ? kernel_regression_new() : NULL;
    bool ok = net && find_start(net, &s, &curvature) && train(net, &s, curvature) &&
              report(net, &s, &fit);
    if (!ok && tensor_error()) fail("%s", tensor_error());
    nn_free(net);
    sample_free(&s);
    return ok ? 0 : 1;
}
