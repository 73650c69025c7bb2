/* test_training.c - does training give PyTorch's numbers: freezing, initial values, steps,
 * schedules?
 *
 * golden/training.txt holds the results of PyTorch 2.15 (generate_training.py writes it). Other
 * tests compare error messages word for word, and every test ends with as many tensors as it began
 * with.
 *
 * Run from the root of the repository, where the golden files are found. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../nn/nn.h"
#include "../../../tensor/internal.h"
#include "../common.h"

/* ---- golden tensors ------------------------------------------------------------------------ */

static Tensor *golden(const char *name) { return golden_tensor("training.txt", name); }

static Tensor *golden_in_type(const char *name) {
    return golden(format("%s_%s", tensor_dtype_name(tensor_default_dtype()), name));
}

/* ---- initial values ------------------------------------------------------------------------ */

static bool uniform(Tensor *w) { return nn_init_uniform(w, -1.5, 0.25); }
static bool normal(Tensor *w) { return nn_init_normal(w, 1, 0.1); }
static bool xavier_uniform(Tensor *w) { return nn_init_xavier_uniform(w, 2); }
static bool xavier_normal(Tensor *w) { return nn_init_xavier_normal(w, 1); }
static bool kaiming_uniform(Tensor *w) { return nn_init_kaiming_uniform(w, sqrt(5)); }
static bool kaiming_normal(Tensor *w) { return nn_init_kaiming_normal(w, 0); }

static const struct {
    const char *name;
    bool (*init)(Tensor *w);
    bool is_normal;
} inits[] = {{"uniform", uniform, false},
             {"normal", normal, true},
             {"xavier_uniform", xavier_uniform, false},
             {"xavier_normal", xavier_normal, true},
             {"kaiming_uniform", kaiming_uniform, false},
             {"kaiming_normal", kaiming_normal, true}};
enum { INITS = COUNT(inits) };

/* base, and a view of it */
static const struct {
    const char *name;
    Shape base, shape;
    int64_t stride[4], offset;
} tensors[] = {
    {"small", {2, {2, 3}}, {2, {2, 3}}, {3, 1}, 0},
    {"large", {2, {5, 7}}, {2, {5, 7}}, {7, 1}, 0},
    {"kernel", {4, {3, 2, 2, 3}}, {4, {3, 2, 2, 3}}, {12, 6, 3, 1}, 0},
    {"transposed", {2, {6, 4}}, {2, {4, 6}}, {1, 4}, 0},
    {"permuted", {3, {3, 4, 5}}, {3, {5, 3, 4}}, {1, 20, 5}, 0},
    {"sliced", {2, {6, 8}}, {2, {6, 4}}, {8, 1}, 1},
    {"nothing", {2, {0, 3}}, {2, {0, 3}}, {3, 1}, 0},
};
enum { TENSORS = COUNT(tensors) };

/* Compares uniforms to the bit, and normals as far as the C library's log, cos and sin agree. Also
 * compares the next draw, which shows that as many numbers were drawn as in PyTorch. */
static void expect_draws(int i, int t, DType dtype) {
    char name[64];
    tensor_set_default_dtype(dtype);
    snprintf(name, sizeof name, "%s_%s", inits[i].name, tensors[t].name);
    Tensor *base = tensor_full(tensors[t].base, 77);
    Tensor *expected = golden_in_type(name);
    Tensor *w = tensor_as_strided(base, tensors[t].shape, tensors[t].stride, tensors[t].offset);
    ag_requires_grad(w);
    tensor_manual_seed(5);
    ck_assert_msg(inits[i].init(w), "%s: %s", name, tensor_error());
    ck_assert(w->requires_grad && !w->grad);

    const int64_t n = tensor_numel(w);
    const double rounding = dtype == F64 ? 1e-14 : 1e-6;
    const double tolerance = inits[i].is_normal ? rounding : 0;
    double drawn[64];
    Tensor *next = tensor_randn(SHAPE(1));
    ck_assert(tensor_to_doubles(w, drawn));
    drawn[n] = tensor_item(next);
    for (int64_t k = 0; k <= n; k++)
        ck_assert_msg(same_number(drawn[k], tensor_get(expected, k), k < n ? tolerance : 1e-6),
                      "%s: element %d is %.17g, not %.17g", name, (int)k, drawn[k],
                      tensor_get(expected, k));
    if (!strcmp(tensors[t].name, "sliced")) ck_assert_double_eq(tensor_get(base, 2, 5), 77);
    RELEASE(next, expected, w, base);
}

CASE("initial values")
LOOP_TEST(initial_values_are_pytorchs_draws, INITS) {
    for (int t = 0; t < TENSORS; t++)
        for (int dtype = F32; dtype <= F64; dtype++) expect_draws(_i, t, (DType)dtype);
}

/* A weight that is drawn again after an op has read it was overwritten, so the backward of the op
 * fails. */
LOOP_TEST(drawing_anew_is_a_write_in_place, INITS) {
    Tensor *w = ag_requires_grad(tensor_ones(SHAPE(2, 2)));
    tape_begin();
    Tensor *y = ag_sum(ag_square(w));
    ck_assert(inits[_i].init(w));
    FAILS(ag_backward(y),
          inits[_i].is_normal
              ? "backward: square needs its input x (2, 2) as it was, but normal_ has written"
                " over it since"
              : "backward: square needs its input x (2, 2) as it was, but uniform_ has"
                " written over it since");
    tape_end();
    tensor_release(w);
}

/* If both fans are 0, the formulas would divide by 0. There is nothing to draw, so this is no
 * error. */
TEST(initial_values_of_nothing) {
    Tensor *w = tensor_zeros(SHAPE(0, 0));
    for (int i = 0; i < INITS; i++) ck_assert_msg(inits[i].init(w), "%s", tensor_error());
    tensor_release(w);
}

/* PyTorch has no negative strides. A view with a negative stride is drawn in its row-major order.
 */
TEST(initial_values_of_a_scalar_and_backwards) {
    Tensor *scalar = tensor_zeros(SCALAR);
    Tensor *base = tensor_zeros(SHAPE(3));
    Tensor *backwards = tensor_as_strided(base, SHAPE(3), (int64_t[]){-1}, 2);
    tensor_manual_seed(3);
    Tensor *expected = tensor_uniform(-1, 1, SHAPE(4));
    tensor_manual_seed(3);
    ck_assert(nn_init_uniform(scalar, -1, 1) && nn_init_uniform(backwards, -1, 1));
    ck_assert_double_eq(tensor_item(scalar), tensor_get(expected, 0));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(tensor_get(base, 2 - i), tensor_get(expected, i + 1));
    RELEASE(scalar, base, backwards, expected);
}

TEST(initial_value_mistakes) {
    const double nan = (double)NAN;
    Tensor *vector = tensor_ones(SHAPE(3));
    Tensor *w = tensor_ones(SHAPE(2, 3));
    Tensor *integers = tensor_from_int64s(SHAPE(1, 1), (int64_t[]){1});
    Tensor *repeated = tensor_as_strided(vector, SHAPE(2, 3), (int64_t[]){0, 1}, 0);
    tensor_manual_seed(1);
    FAILS(nn_init_xavier_uniform(vector, 1),
          "xavier_uniform: w is (3,): it needs two dimensions or more");
    FAILS(nn_init_kaiming_normal(vector, 1),
          "kaiming_normal: w is (3,): it needs two dimensions or more");
    FAILS(nn_init_xavier_normal(NULL, 1), "xavier_normal: w is NULL");
    FAILS(nn_init_kaiming_uniform(NULL, 1), "kaiming_uniform: w is NULL");
    FAILS(nn_init_uniform(NULL, 0, 1), "uniform_: the tensor is NULL");
    FAILS(nn_init_xavier_uniform(w, -1), "xavier_uniform: gain is -1: it must not be negative");
    FAILS(nn_init_xavier_normal(w, nan), "xavier_normal: gain is nan: it must be a number");
    FAILS(nn_init_kaiming_uniform(w, nan), "kaiming_uniform: a is nan: it must be a number");
    FAILS(nn_init_uniform(w, 1, 0), "uniform_: low is 1 and high is 0: low must not be above high");
    FAILS(nn_init_uniform(w, nan, 0), "uniform_: low is nan: it must be a number");
    FAILS(nn_init_uniform(w, 0, (double)INFINITY),
          "uniform_: low is 0 and high is inf: both, and high - low, must be finite in float64");
    FAILS(nn_init_normal(w, 0, -1), "normal_: std is -1: it must not be negative");
    FAILS(nn_init_normal(w, 0, nan), "normal_: std is nan: it must be a number");
    FAILS(nn_init_kaiming_normal(integers, 0), "normal_: x is int64: it must be a float");
    FAILS(nn_init_uniform(repeated, 0, 1),
          "uniform_: x is (2, 3) and expanded: several elements share one place");
    EXPECT_ELEMENTS(w, 1, 1, 1, 1, 1, 1); /* nothing was written, and nothing drawn */
    Tensor *first = tensor_rand(SHAPE(1));
    tensor_manual_seed(1);
    Tensor *again = tensor_rand(SHAPE(1));
    Tensor *all[] = {vector, w, integers, repeated, first, again};
    ck_assert(tensor_allclose(first, again, 0, 0));
    for (int i = 0; i < 6; i++) tensor_release(all[i]);
}

/* ---- a small model ------------------------------------------------------------------------ */

typedef struct {
    Module module;
    Linear *W_o, *W_other; /* W_o is lazy */
    Tensor *scale;
} Net;

static const ModuleClass net_class = {"Net", sizeof(Net), NULL, NULL};

/* scale (1), W_o.weight (3, in), W_o.bias (3), W_other.weight (2, 3) */
static Net *net_new(void) {
    Net *net = nn_module_new(&net_class);
    ck_assert_ptr_nonnull(net);
    net->W_o = nn_linear_new(NN_LAZY, 3, true);
    nn_add_child(net, "W_o", net->W_o);
    net->W_other = nn_linear_new(3, 2, false);
    nn_add_child(net, "W_other", net->W_other);
    nn_add_parameter(net, "scale", &net->scale, tensor_ones(SHAPE(1)));
    return nn_module_done(net);
}

/* Computes the gradients of all parameters for an x of ones (2, 2). */
static void backward(Net *net) {
    Tensor *x = tensor_ones(SHAPE(2, 2));
    tape_begin();
    Tensor *h = ag_mul(nn_linear_forward(net->W_o, x), net->scale);
    ck_assert_msg(ag_backward(ag_sum(nn_linear_forward(net->W_other, h))), "%s", tensor_error());
    tape_end();
    tensor_release(x);
}

/* ---- freezing ------------------------------------------------------------------------------ */

CASE("freezing")
TEST(a_frozen_parameter_gets_no_gradient) {
    Net *net = net_new();
    backward(net);
    ck_assert_ptr_nonnull(net->W_o->weight->grad);
    ck_assert(nn_freeze(net, "W_o", true));
    ck_assert(!net->W_o->weight->requires_grad && !net->W_o->bias->requires_grad);
    ck_assert(net->W_other->weight->requires_grad && net->scale->requires_grad);
    ck_assert_ptr_null(net->W_o->weight->grad); /* freezing drops the gradient */
    ck_assert_ptr_null(net->W_o->bias->grad);
    ck_assert_ptr_nonnull(net->W_other->weight->grad);
    backward(net);
    ck_assert_ptr_null(net->W_o->weight->grad);
    ck_assert_ptr_nonnull(net->W_other->weight->grad);

    ck_assert(nn_freeze(net, "W_o.weight", false)); /* the bias stays frozen */
    backward(net);
    ck_assert_ptr_nonnull(net->W_o->weight->grad);
    ck_assert_ptr_null(net->W_o->bias->grad);
    ck_assert(nn_freeze(net, "", false));
    ck_assert_ptr_nonnull(net->W_o->weight->grad); /* freeze(false) of a parameter that is not
                                                    * frozen keeps its gradient */
    backward(net);
    ck_assert_ptr_nonnull(net->W_o->bias->grad);
    nn_free(net);
}

/* Frozen for its first use on a tape and thawed for its second: only the second counts. */
TEST(a_parameter_is_thawed_between_two_uses) {
    Linear *linear = nn_linear_new(1, 1, false);
    Tensor *x = LEAF(SHAPE(1, 1), 1);
    ck_assert(tape_begin());
    ck_assert(nn_freeze(linear, "", true));
    Tensor *y = nn_linear_forward(linear, x);
    ck_assert(nn_freeze(linear, "", false));
    Tensor *z = nn_linear_forward(linear, ag_scale(x, 10));
    ck_assert(ag_backward(ag_sum(ag_add(y, z))));
    EXPECT_GRAD(linear->weight, 10);
    tape_end();
    tensor_release(x);
    nn_free(linear);
}

TEST(a_lazy_parameter_is_frozen_before_it_is_made) {
    Net *net = net_new();
    ck_assert(nn_freeze(net, "W_o", true) && nn_freeze(net, "W_o.bias", false));
    backward(net);
    ck_assert(!net->W_o->weight->requires_grad && net->W_o->bias->requires_grad);
    ck_assert_ptr_null(net->W_o->weight->grad);
    ck_assert_ptr_nonnull(net->W_o->bias->grad);
    ck_assert(nn_set_parameter(net->W_o, &net->W_o->weight, tensor_zeros(SHAPE(3, 2))));
    ck_assert(!net->W_o->weight->requires_grad); /* the field was frozen before it got a value */
    nn_free(net);
}

TEST(a_prefix_ends_where_a_name_does) {
    static const struct {
        const char *prefix;
        int parameters;
    } cases[] = {{"", 4},       {"W_o", 2},    {"W_o.weight", 1},   {"W_other", 1}, {"scale", 1},
                 {"W", 0},      {"W_o.", 0},   {"W_o.weight.x", 0}, {".W_o", 0},    {"scale.x", 0},
                 {"weight", 0}, {"W_o.we", 0}, {"W_other.bias", 0}};
    Net *net = net_new();
    for (int i = 0; i < COUNT(cases); i++) {
        int n = 0;
        for (ModuleSlot *p = NULL; nn_next_parameter(net, cases[i].prefix, &p);) n++;
        ck_assert_msg(n == cases[i].parameters, "\"%s\": %d", cases[i].prefix, n);
    }
    nn_free(net);
}

TEST(freezing_nothing) {
    Net *net = net_new();
    FAILS(nn_freeze(net, "W_q", true), "freeze: Net has no parameter at \"W_q\"");
    FAILS(nn_freeze(net, NULL, true), "freeze: the prefix is NULL");
    FAILS(nn_freeze(NULL, "", true), "freeze: the module is NULL");
    ModuleSlot *p = NULL;
    FAILS(nn_next_parameter(NULL, "", &p), "next_parameter: the module is NULL");
    FAILS(nn_next_parameter(net, NULL, &p), "next_parameter: the prefix is NULL");
    FAILS(nn_next_parameter(net, "", NULL), "next_parameter: p is NULL");
    ck_assert_ptr_null(p);
    nn_free(net);
    Dropout *empty = nn_dropout_new(0);
    ck_assert(nn_freeze(empty, "", true)); /* "" is no error without parameters */
    nn_free(empty);
}

/* ---- optimizers ---------------------------------------------------------------------------- */

enum { STEPS = 8 };

/* a (3) and b (2, 2), from the golden start, in the default type */
typedef struct {
    Module module;
    Tensor *a, *b;
} Pair;

static const ModuleClass pair_class = {"Pair", sizeof(Pair), NULL, NULL};

/* n elements of a flat or two-dimensional x, from the first-th on, in another shape */
static Tensor *cut(const Tensor *x, int64_t first, Shape shape) {
    double element[256];
    ck_assert_int_le(tensor_numel(x), 256);
    ck_assert(tensor_to_doubles(x, element));
    return tensor_from_doubles(shape, element + first);
}

static Pair *pair_new(void) {
    Pair *pair = nn_module_new(&pair_class);
    Tensor *start = golden_in_type("start");
    nn_add_parameter(pair, "a", &pair->a, cut(start, 0, SHAPE(3)));
    nn_add_parameter(pair, "b", &pair->b, cut(start, 3, SHAPE(2, 2)));
    tensor_release(start);
    return nn_module_done(pair);
}

static const bool has_a[STEPS] = {1, 1, 0, 0, 1, 1, 1, 1}, has_b[STEPS] = {0, 1, 1, 0, 1, 1, 0, 1};

static void set_gradients(Pair *pair, const Tensor *gradients, int step) {
    set_gradient(pair->a, has_a[step] ? cut(gradients, 7 * step, SHAPE(3)) : NULL);
    set_gradient(pair->b, has_b[step] ? cut(gradients, 7 * step + 3, SHAPE(2, 2)) : NULL);
}

static void expect_row(const char *name, const Pair *pair, const Tensor *path, int step) {
    const double tolerance = pair->a->dtype == F64 ? 1e-13 : 1e-6;
    for (int i = 0; i < 7; i++) {
        double theta =
            i < 3 ? tensor_get(pair->a, i) : tensor_get(pair->b, (i - 3) / 2, (i - 3) % 2);
        ck_assert_msg(same_number(theta, tensor_get(path, step, i), tolerance),
                      "%s: element %d is %.17g after step %d and should be %.17g", name, i, theta,
                      step, tensor_get(path, step, i));
    }
}

/* Compares the parameters after each step with PyTorch's, in the default type. Frees the pair and
 * the optimizer. From step 4 on, factor multiplies the learning rate. */
static void expect_path(const char *name, Pair *pair, Optimizer *optimizer, double factor) {
    Tensor *gradients = golden_in_type("gradients");
    Tensor *path = golden_in_type(name);
    for (int step = 0; step < STEPS; step++) {
        set_gradients(pair, gradients, step);
        if (step >= 4) ck_assert(nn_optimizer_scale_lr(optimizer, factor));
        ck_assert_msg(nn_optimizer_step(optimizer), "%s: %s", name, tensor_error());
        expect_row(name, pair, path, step);
    }
    RELEASE(gradients, path);
    nn_free(optimizer);
    nn_free(pair);
}

static const struct {
    const char *name;
    SGDConfig config;
} sgd_runs[] = {
    {"sgd", {.lr = 0.1}},
    {"sgd_momentum", {.lr = 0.1, .momentum = 0.9}},
    {"sgd_dampening", {.lr = 0.1, .momentum = 0.9, .dampening = 0.5}},
    {"sgd_nesterov", {.lr = 0.1, .momentum = 0.9, .nesterov = true}},
    {"sgd_decay", {.lr = 0.1, .weight_decay = 0.01}},
    {"sgd_all", {.lr = 0.2, .momentum = 0.5, .dampening = 0.25, .weight_decay = 0.1}},
    {"sgd_nesterov_decay", {.lr = 0.1, .momentum = 0.5, .weight_decay = 0.1, .nesterov = true}},
};

static const struct {
    const char *name;
    AdamWConfig config;
} adamw_runs[] = {
    {"adamw", {.lr = 0.1, .weight_decay = 0.01}},
    {"adamw", {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01}},
    {"adam", {.lr = 0.1}},
    {"adamw_betas", {.lr = 0.02, .beta1 = 0.5, .beta2 = 0.75, .eps = 0.125, .weight_decay = 0.5}},
};

CASE("optimizers")
LOOP_TEST(sgd_takes_pytorchs_steps, 2) {
    tensor_set_default_dtype(_i ? F64 : F32);
    for (int i = 0; i < COUNT(sgd_runs); i++) {
        Pair *pair = pair_new();
        expect_path(sgd_runs[i].name, pair, nn_sgd_new(pair, sgd_runs[i].config), 1);
    }
}

LOOP_TEST(adamw_takes_pytorchs_steps, 2) {
    tensor_set_default_dtype(_i ? F64 : F32);
    for (int i = 0; i < COUNT(adamw_runs); i++) {
        Pair *pair = pair_new();
        expect_path(adamw_runs[i].name, pair, nn_adamw_new(pair, adamw_runs[i].config), 1);
    }
}

/* AdamW calls pow. MinGW-w64's multiplies, for a whole exponent, and rounds each time. */
static bool pow_rounds_once(void) {
    volatile double base = 0.9;
    return pow(base, 12) == 0x1.2135355a70fb8p-2;
}

/* Compares theta after steps 1, 10 and 50, all bits. Without fused multiply-add, or with another
 * pow, the last bits differ. */
static void expect_fifty(const char *run, Linear *linear, Optimizer *optimizer) {
    const bool fused =
        (!strcmp(tensor_kernels()->name, "avx2") || !strcmp(tensor_kernels()->name, "avx512")) &&
        (strncmp(run, "adam", 4) != 0 || pow_rounds_once());
    char name[64];
    snprintf(name, sizeof name, "fifty_%s", run);
    Tensor *expected = golden_in_type(name);
    Tensor *theta = linear->weight; /* (1, 37) */
    tensor_manual_seed(50);
    ck_assert(tensor_uniform_(theta, -1, 1));
    Tensor *gradients = tensor_uniform(-1, 1, SHAPE(50, 37));
    for (int step = 1, row = 0; step <= 50; step++) {
        const int64_t row_of_step = 37 * (step - 1), dense[] = {37, 1};
        set_gradient(theta, tensor_as_strided(gradients, SHAPE(1, 37), dense, row_of_step));
        ck_assert(nn_optimizer_step(optimizer));
        if (step != 1 && step != 10 && step != 50) continue;
        for (int i = 0; i < 37; i++)
            ck_assert_msg(same_number(tensor_get(theta, 0, i), tensor_get(expected, row, i),
                                      fused ? 0 : 1e-5),
                          "%s: element %d is %a after step %d and should be %a", name, i,
                          tensor_get(theta, 0, i), step, tensor_get(expected, row, i));
        row++;
    }
    RELEASE(gradients, expected);
    nn_free(optimizer);
    nn_free(linear);
}

LOOP_TEST(fifty_steps_have_pytorchs_bits, 2) {
    tensor_set_default_dtype(_i ? F64 : F32);
    for (int i = 0; i < COUNT(sgd_runs); i++) {
        Linear *linear = nn_linear_new(37, 1, false);
        expect_fifty(sgd_runs[i].name, linear, nn_sgd_new(linear, sgd_runs[i].config));
    }
    for (int i = 0; i < COUNT(adamw_runs); i++) {
        Linear *linear = nn_linear_new(37, 1, false);
        expect_fifty(adamw_runs[i].name, linear, nn_adamw_new(linear, adamw_runs[i].config));
    }
}

/* If gradients are not zeroed, backward adds to them in place. This must not change the momentum
 * buffer: b = g, then b = mu b + g, with g at the time of the step. */
TEST(momentum_has_bytes_of_its_own) {
    Linear *linear = nn_linear_new(1, 1, false);
    ck_assert(tensor_fill(linear->weight, 0));
    Optimizer *sgd = nn_sgd_new(linear, (SGDConfig){.lr = 1, .momentum = 0.5});
    set_gradient(linear->weight, tensor_full(SHAPE(1, 1), 1));
    ck_assert(nn_optimizer_step(sgd)); /* theta = -1 */
    ck_assert(tensor_fill(linear->weight->grad, 3));
    ck_assert(nn_optimizer_step(sgd)); /* b = .5 + 3 */
    ck_assert_double_eq(tensor_item(linear->weight), -4.5);
    nn_free(sgd);
    nn_free(linear);
}

/* b cannot be updated, so a is not updated either, and its moments and its count of steps do not
 * change. The following steps are the same as PyTorch's. */
TEST(adamw_is_all_or_nothing) {
    Pair *pair = pair_new();
    Optimizer *adamw = nn_adamw_new(pair, (AdamWConfig){.lr = 0.1, .weight_decay = 0.01});
    Tensor *gradients = golden_in_type("gradients");
    Tensor *path = golden_in_type("adamw");
    for (int step = 0; step < STEPS; step++) {
        set_gradient(pair->a, tensor_ones(SHAPE(3)));
        set_gradient(pair->b, tensor_ones(SHAPE(2)));
        FAILS(nn_optimizer_step(adamw),
              "adamw: b is float64 (2, 2) and its gradient float64 (2,): they must be equal");
        set_gradients(pair, gradients, step);
        ck_assert(nn_optimizer_step(adamw));
        expect_row("adamw", pair, path, step);
    }
    RELEASE(gradients, path);
    nn_free(adamw);
    nn_free(pair);
}

/* If a parameter is replaced by one of another shape, its state does not fit any more. */
TEST(a_parameter_must_fit_its_state) {
    Pair *pair = pair_new();
    Optimizer *optimizers[] = {nn_adamw_new(pair, (AdamWConfig){.lr = 0.1}),
                               nn_sgd_new(pair, (SGDConfig){.lr = 0.1, .momentum = 0.5})};
    set_gradient(pair->a, tensor_ones(SHAPE(3)));
    ck_assert(nn_optimizer_step(optimizers[0]) && nn_optimizer_step(optimizers[1]));
    ck_assert(nn_set_parameter(pair, &pair->a, tensor_zeros(SHAPE(1))));
    set_gradient(pair->a, tensor_ones(SHAPE(1)));
    FAILS(nn_optimizer_step(optimizers[0]),
          "adamw: a is float64 (1,) and its exp_avg float64 (3,): they must be equal");
    FAILS(nn_optimizer_step(optimizers[1]),
          "sgd: a is float64 (1,) and its momentum_buffer float64 (3,): they must be equal");
    ck_assert_double_eq(tensor_item(pair->a), 0);
    nn_free(optimizers[0]);
    nn_free(optimizers[1]);
    nn_free(pair);
}

/* One parameter is a transposed view, the other one has no elements. A parameter may have any
 * strides. */
TEST(adamw_moves_views_and_nothing) {
    Tensor *base = tensor_zeros(SHAPE(3, 2));
    const int64_t transposed[] = {1, 2};
    Pair *pair = nn_module_new(&pair_class);
    nn_add_parameter(pair, "a", &pair->a, tensor_as_strided(base, SHAPE(2, 3), transposed, 0));
    nn_add_parameter(pair, "b", &pair->b, tensor_zeros(SHAPE(0, 2)));
    Optimizer *adamw = nn_adamw_new(pair, (AdamWConfig){.lr = 0.5});
    set_gradient(pair->a, tensor_from_doubles(SHAPE(2, 3), (double[]){1, -1, 1, 1, 1, -1}));
    set_gradient(pair->b, tensor_zeros(SHAPE(0, 2)));
    ck_assert_msg(nn_optimizer_step(adamw), "%s", tensor_error());
    expect_elements("base", base, (double[]){-0.5, -0.5, 0.5, -0.5, -0.5, 0.5}, 1e-7);
    nn_free(adamw);
    nn_free(pair);
    tensor_release(base);
}

static Optimizer *sgd_or_adamw(void *module, bool adamw, double weight_decay) {
    AdamWConfig config = {.lr = 0.1, .weight_decay = weight_decay};
    return adamw
               ? nn_adamw_new(module, config)
               : nn_sgd_new(module,
                            (SGDConfig){.lr = 0.1, .momentum = 0.5, .weight_decay = weight_decay});
}

LOOP_TEST(groups_take_pytorchs_steps, 2) {
    for (int adamw = 0; adamw < 2; adamw++) {
        const char *name = adamw ? "adamw_groups" : "sgd_groups";
        tensor_set_default_dtype(_i ? F64 : F32);
        Pair *pair = pair_new();
        Optimizer *optimizer = sgd_or_adamw(pair, adamw, 0.01);
        ck_assert(nn_optimizer_set_group(optimizer, "b", 0.25, 0.5));
        expect_path(name, pair, optimizer, 0.5);

        /* The last set_group and the last factor count. An earlier factor also applies to later
         * groups. */
        pair = pair_new();
        optimizer = sgd_or_adamw(pair, adamw, 0);
        ck_assert(nn_optimizer_scale_lr(optimizer, 3) && nn_optimizer_scale_lr(optimizer, 1));
        ck_assert(nn_optimizer_set_group(optimizer, "", 0.25, 0.5));
        ck_assert(nn_optimizer_set_group(optimizer, "a", 0.1, 0.01));
        expect_path(name, pair, optimizer, 0.5);
    }
}

/* W_o is lazy and is in the group "W_o". W_other is not in it, although its name begins with the
 * same letters. */
TEST(a_group_is_a_prefix_of_names) {
    Net *net = net_new();
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1});
    ck_assert(nn_optimizer_set_group(sgd, "", 0, 0) && nn_optimizer_set_group(sgd, "W_o", 1, 0));
    backward(net);
    double bias = tensor_get(net->W_o->bias, 1), other = tensor_get(net->W_other->weight, 0, 0);
    double weight = tensor_get(net->W_o->weight, 0, 0);
    ck_assert(nn_optimizer_step(sgd));
    ck_assert_double_ne(tensor_get(net->W_o->bias, 1), bias);
    ck_assert_double_ne(tensor_get(net->W_o->weight, 0, 0), weight);
    ck_assert_double_eq(tensor_get(net->W_other->weight, 0, 0), other);
    nn_free(sgd);
    nn_free(net);
}

TEST(group_mistakes) {
    Net *net = net_new();
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1});
    FAILS(nn_optimizer_set_group(sgd, "W", 1, 0),
          "optimizer_set_group: the optimizer has no parameter at \"W\"");
    nn_add_child(net, "late", nn_linear_new(1, 1, true)); /* added after sgd was made */
    FAILS(nn_optimizer_set_group(sgd, "late", 1, 0),
          "optimizer_set_group: the optimizer has no parameter at \"late\"");
    FAILS(nn_optimizer_set_group(sgd, NULL, 1, 0), "optimizer_set_group: the prefix is NULL");
    FAILS(nn_optimizer_set_group(NULL, "", 1, 0), "optimizer_set_group: the optimizer is NULL");
    FAILS(nn_optimizer_set_group(sgd, "W_o", -1, 0),
          "optimizer_set_group: lr is -1: it must not be negative");
    FAILS(nn_optimizer_set_group(sgd, "W_o", 1, (double)NAN),
          "optimizer_set_group: weight_decay is nan: it must be a number");
    FAILS(nn_optimizer_scale_lr(NULL, 1), "optimizer_scale_lr: the optimizer is NULL");
    FAILS(nn_optimizer_scale_lr(sgd, -0.5),
          "optimizer_scale_lr: factor is -0.5: it must not be negative");
    nn_free(sgd);
    nn_free(net);
}

/* A frozen parameter takes no step, and its state does not change. */
TEST(state_survives_freezing) {
    Linear *linear = nn_linear_new(1, 1, false);
    Optimizer *sgd = nn_sgd_new(linear, (SGDConfig){.lr = 1, .momentum = 0.5});
    ck_assert(tensor_fill(linear->weight, 0));
    set_gradient(linear->weight, tensor_ones(SHAPE(1, 1)));
    ck_assert(nn_optimizer_step(sgd));
    ck_assert(nn_freeze(linear, "weight", true));
    ck_assert(nn_optimizer_step(sgd));
    ck_assert_double_eq(tensor_item(linear->weight), -1);
    ck_assert(nn_freeze(linear, "weight", false));
    set_gradient(linear->weight, tensor_ones(SHAPE(1, 1)));
    ck_assert(nn_optimizer_step(sgd)); /* b = .5 + 1 */
    ck_assert_double_eq(tensor_item(linear->weight), -2.5);
    nn_free(sgd);
    nn_free(linear);
}

TEST(adamw_settings_must_make_sense) {
    Linear *linear = nn_linear_new(1, 1, false);
    const struct {
        AdamWConfig config;
        const char *sentence;
    } mistakes[] = {
        {{.lr = -1}, "adamw: lr is -1: it must not be negative"},
        {{.beta1 = 0.5},
         "adamw: lr is 0: set a learning rate, as in .lr = 0.1 (a group may have 0)"},
        {{.lr = (double)NAN}, "adamw: lr is nan: it must be a number"},
        {{.lr = 1, .weight_decay = -2}, "adamw: weight_decay is -2: it must not be negative"},
        {{.lr = 1, .beta1 = 1}, "adamw: beta1 is 1: it must be in [0, 1)"},
        {{.lr = 1, .beta1 = -0.5}, "adamw: beta1 is -0.5: it must be in [0, 1)"},
        {{.lr = 1, .beta2 = 1.5}, "adamw: beta2 is 1.5: it must be in [0, 1)"},
        {{.lr = 1, .beta2 = (double)NAN}, "adamw: beta2 is nan: it must be in [0, 1)"},
        {{.lr = 1, .eps = -1}, "adamw: eps is -1: it must not be negative"},
    };
    for (int i = 0; i < COUNT(mistakes); i++)
        FAILS(nn_adamw_new(linear, mistakes[i].config), mistakes[i].sentence);
    FAILS(nn_adamw_new(NULL, (AdamWConfig){.lr = 1}), "adamw: the module is NULL");
    nn_free(linear);
}

TEST(adamw_prints_its_settings) {
    Linear *linear = nn_linear_new(1, 1, false);
    Optimizer *adamw = nn_adamw_new(linear, (AdamWConfig){.lr = 0.5, .weight_decay = 0.25});
    expect_printed_module(adamw,
                          "AdamW(lr=0.5, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.25)\n");
    nn_free(adamw);
    nn_free(linear);
}

/* ---- clipping ------------------------------------------------------------------------------ */

static void expect_clipped(Pair *pair, double max_norm, const Tensor *golden_rows, int row) {
    const double tolerance = pair->a->dtype == F64 ? 1e-13 : 1e-6;
    double expected[8], norm = nn_clip_grad_norm(pair, max_norm);
    for (int i = 0; i < 8; i++) expected[i] = tensor_get(golden_rows, row, i);
    ck_assert_msg(same_number(norm, expected[0], tolerance), "norm %g", norm);
    expect_elements("a's gradient", pair->a->grad, expected + 1, tolerance);
    expect_elements("b's gradient", pair->b->grad, expected + 4, tolerance);
}

CASE("clipping")
LOOP_TEST(clipping_as_pytorch, 2) {
    const double bounds[] = {0.5, 1, 100, 0, (double)INFINITY};
    tensor_set_default_dtype(_i ? F64 : F32);
    Pair *pair = pair_new();
    Tensor *g = golden_in_type("clip_gradients");
    Tensor *rows = golden_in_type("clip");
    for (int row = 0; row < 5; row++) {
        set_gradient(pair->a, cut(g, 0, SHAPE(3)));
        set_gradient(pair->b, cut(g, 3, SHAPE(2, 2)));
        expect_clipped(pair, bounds[row], rows, row);
    }
    RELEASE(g, rows);
    nn_free(pair);
}

/* The sum of squares is too large for float32, but the norm, 1e30 sqrt(2), is not infinite. */
TEST(the_norm_is_summed_in_float64) {
    tensor_set_default_dtype(F32);
    Pair *pair = pair_new();
    set_gradient(pair->a, tensor_from_doubles(SHAPE(3), (double[]){1e30, 0, 0}));
    set_gradient(pair->b, tensor_from_doubles(SHAPE(2, 2), (double[]){0, 0, 0, 1e30}));
    ck_assert_double_eq_tol(nn_clip_grad_norm(pair, 5) / 1e30, sqrt(2), 1e-7);
    ck_assert_double_eq_tol(tensor_get(pair->b->grad, 1, 1), 5 / sqrt(2), 1e-6);
    nn_free(pair);
}

/* The factor, 1e-3 / 3e41, has one digit in float32. (PyTorch sums squares in float32: its norm is
 * infinite, and its gradients are 0.) In float64 the squares do not fit, but the norm does. */
LOOP_TEST(a_small_factor_keeps_its_digits, 2) {
    tensor_set_default_dtype(_i ? F64 : F32);
    const double size = _i ? 1e300 : 3e38, bound = _i ? 1 : 1e-3;
    Linear *layer = nn_linear_new(1000, 1000, false);
    set_gradient(layer->weight, tensor_full(SHAPE(1000, 1000), size));
    ck_assert_double_eq_tol(nn_clip_grad_norm(layer, bound) / (1e3 * size), 1, 1e-6);
    ck_assert_double_eq_tol(tensor_get(layer->weight->grad, 999, 7) / (bound / 1e3), 1, 1e-6);
    nn_free(layer);
}

TEST(norms_that_are_not_finite) {
    const double inf = (double)INFINITY, nan = (double)NAN;
    Pair *pair = pair_new();
    set_gradient(pair->a, tensor_from_doubles(SHAPE(3), (double[]){1, inf, 2}));
    ck_assert(isinf(nn_clip_grad_norm(pair, 1)));
    EXPECT_GRAD(pair->a, 0, nan, 0);
    set_gradient(pair->a, tensor_from_doubles(SHAPE(3), (double[]){1, nan, 2}));
    set_gradient(pair->b, tensor_ones(SHAPE(2, 2)));
    ck_assert(isnan(nn_clip_grad_norm(pair, 1)));
    EXPECT_GRAD(pair->a, nan, nan, nan);
    EXPECT_GRAD(pair->b, nan, nan, nan, nan);
    set_gradient(pair->b, tensor_full(SHAPE(2, 2), inf)); /* NaN in one, infinity in the other */
    ck_assert(isnan(nn_clip_grad_norm(pair, 1)));
    nn_free(pair);
}

/* The parameter is named by its path; a parameter without a gradient, a lazy one, and gradients
 * whose squares overflow are no error. */
TEST(the_first_gradient_that_is_not_finite) {
    const double inf = (double)INFINITY, nan = (double)NAN;
    tensor_set_default_dtype(F64);
    Net *net = net_new();
    ck_assert(nn_check_finite(net));
    set_gradient(net->scale, tensor_full(SHAPE(1), 1e300));
    ck_assert(nn_check_finite(net));
    set_gradient(net->scale, tensor_full(SHAPE(1), 2));
    set_gradient(net->W_other->weight,
                 tensor_from_doubles(SHAPE(2, 3), (double[]){0, 1, 2, 3, -inf, nan}));
    FAILS(nn_check_finite(net),
          "check_finite: the gradient of W_other.weight, (2, 3), is -inf at (1, 1): 2 of its "
          "6 elements are not finite");
    EXPECT_GRAD(net->W_other->weight, 0, 1, 2, 3, -inf, nan); /* nothing is changed */
    set_gradient(net->scale, tensor_full(SHAPE(1), -nan));    /* now the first of two */
    FAILS(nn_check_finite(net),
          "check_finite: the gradient of scale, (1,), is nan at (0,): 1 of its 1 element is "
          "not finite");
    FAILS(nn_check_finite(NULL), "check_finite: the module is NULL");
    nn_free(net);
}

/* The norm ignores lazy parameters and parameters without a gradient; a parameter in two fields
 * counts once. */
TEST(what_counts_in_the_norm) {
    Net *net = net_new();
    ck_assert_double_eq(nn_clip_grad_norm(net, 1), 0);
    set_gradient(net->scale, tensor_full(SHAPE(1), 3));
    set_gradient(net->W_other->weight, tensor_zeros(SHAPE(2, 3)));
    ck_assert(nn_set_parameter(net->W_o, &net->W_o->bias, tensor_retain(net->scale)));
    ck_assert_double_eq(nn_clip_grad_norm(net, 1.5), 3);
    ck_assert_double_eq_tol(tensor_item(net->scale->grad), 1.5, 1e-6);
    ck_assert(nn_freeze(net, "scale", true));
    ck_assert_double_eq(nn_clip_grad_norm(net, 1), 0);
    nn_free(net);
}

TEST(clipping_mistakes) {
    Pair *pair = pair_new();
    set_gradient(pair->a, tensor_ones(SHAPE(3)));
    ck_assert(isnan(nn_clip_grad_norm(NULL, 1)));
    expect_error("clip_grad_norm: the module is NULL");
    ck_assert(isnan(nn_clip_grad_norm(pair, -1)));
    expect_error("clip_grad_norm: max_norm is -1: it must not be negative");
    ck_assert(isnan(nn_clip_grad_norm(pair, (double)NAN)));
    expect_error("clip_grad_norm: max_norm is nan: it must be a number");
    tensor_fail("pending");
    ck_assert(isnan(nn_clip_grad_norm(pair, 0)));
    expect_error("pending");
    EXPECT_GRAD(pair->a, 1, 1, 1);
    nn_free(pair);
}

/* ---- schedules ----------------------------------------------------------------------------- */

static double step_30(int64_t step) { return nn_step_decay(step, 30, 0.1); }
static double step_7(int64_t step) { return nn_step_decay(step, 7, 0.9); }
static double cosine_100(int64_t step) { return nn_cosine_decay(step, 100, 0); }
static double cosine_40(int64_t step) { return nn_cosine_decay(step, 40, 0.1); }
static double warmup_12(int64_t step) { return nn_warmup(step, 12); }

CASE("schedules")
LOOP_TEST(schedules_as_pytorch, 5) {
    static const struct {
        const char *name;
        double (*factor)(int64_t step);
    } schedules[] = {{"schedule_step_30", step_30},
                     {"schedule_step_7", step_7},
                     {"schedule_cosine_100", cosine_100},
                     {"schedule_cosine_40", cosine_40},
                     {"schedule_warmup_12", warmup_12}};
    Tensor *rates = golden(schedules[_i].name);
    for (int64_t step = 0; step < 100; step++) {
        double factor = schedules[_i].factor(step), expected = tensor_get(rates, step);
        ck_assert_msg(same_number(factor, expected, 1e-13), "%s: %.17g at step %d, not %.17g",
                      schedules[_i].name, factor, (int)step, expected);
    }
    tensor_release(rates);
}

TEST(schedules_at_their_ends) {
    ck_assert_double_eq(nn_warmup(0, 0), 1);
    ck_assert_double_eq(nn_warmup(0, 1), 1);
    ck_assert_double_eq(nn_warmup(0, 4), 0.25);
    ck_assert_double_eq(nn_warmup(3, 4), 1);
    ck_assert_double_eq(nn_warmup(INT64_MAX, INT64_MAX - 1), 1);
    ck_assert_double_eq(nn_cosine_decay(0, 1, 0.25), 1);
    ck_assert_double_eq(nn_cosine_decay(1, 1, 0.25), 0.25);
    ck_assert_double_eq(nn_step_decay(9, 10, 0), 1); /* 0^0 */
    ck_assert_double_eq(nn_step_decay(10, 10, 0), 0);
}

static void expect_no_factor(double factor, const char *sentence) {
    ck_assert(isnan(factor));
    expect_error(sentence);
}

TEST(schedule_mistakes) {
    const double nan = (double)NAN;
    expect_no_factor(
        nn_step_decay(-1, 3, 1),
        "step_decay: step is -1 and step_size 3: step must be at least 0 and step_size at least 1");
    expect_no_factor(
        nn_step_decay(0, 0, 1),
        "step_decay: step is 0 and step_size 0: step must be at least 0 and step_size at least 1");
    expect_no_factor(nn_step_decay(0, 3, -2), "step_decay: gamma is -2: it must not be negative");
    expect_no_factor(nn_step_decay(0, 3, nan), "step_decay: gamma is nan: it must be a number");
    expect_no_factor(
        nn_cosine_decay(-1, 3, 0),
        "cosine_decay: step is -1 and total_steps 3: step must be at least 0 and total_steps at least 1");
    expect_no_factor(
        nn_cosine_decay(0, 0, 0),
        "cosine_decay: step is 0 and total_steps 0: step must be at least 0 and total_steps at least 1");
    expect_no_factor(nn_cosine_decay(0, 3, -0.5),
                     "cosine_decay: min_factor is -0.5: it must not be negative");
    expect_no_factor(
        nn_warmup(-7, 3),
        "warmup: step is -7 and warmup_steps 3: step must be at least 0 and warmup_steps at least 0");
    expect_no_factor(
        nn_warmup(7, -3),
        "warmup: step is 7 and warmup_steps -3: step must be at least 0 and warmup_steps at least 0");
    Linear *linear = nn_linear_new(1, 1, false);
    Optimizer *sgd = nn_sgd_new(linear, (SGDConfig){.lr = 1});
    ck_assert(!nn_optimizer_scale_lr(sgd, nn_warmup(-1, 3))); /* the first error stays */
    expect_error(
        "warmup: step is -1 and warmup_steps 3: step must be at least 0 and warmup_steps at least 0");
    nn_free(sgd);
    nn_free(linear);
}

/* ---- a training program --------------------------------------------------------------------- */

typedef struct {
    Module module;
    MultiHeadAttention *attention;
    Linear *hidden, *output;
} Model;

static const ModuleClass model_class = {"Model", sizeof(Model), NULL, NULL};

static Model *model_new(void) {
    Model *model = nn_module_new(&model_class);
    ck_assert_ptr_nonnull(model);
    model->attention = nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 8,
                                                                              .num_heads = 2,
                                                                              .bias = true,
                                                                              .query_size = 8,
                                                                              .key_size = 8,
                                                                              .value_size = 8});
    nn_add_child(model, "attention", model->attention);
    model->hidden = nn_linear_new(8, 16, true);
    nn_add_child(model, "hidden", model->hidden);
    model->output = nn_linear_new(16, 1, true);
    nn_add_child(model, "output", model->output);
    return nn_module_done(model);
}

/* x: (B, N, 8) -> (B, N, 1) */
static Tensor *model_forward(Model *model, Tensor *x, const Tensor *lens) {
    AttentionMask mask = {.valid_lens = lens};
    Tensor *y = nn_multi_head_attention_forward(model->attention, x, x, x, mask);
    return nn_linear_forward(model->output,
                             ag_tanh(nn_linear_forward(model->hidden, ag_add(x, y))));
}

static Optimizer *adamw_with_decay_of_weights(Model *model) {
    const char *biases[] = {"attention.W_q.bias", "attention.W_k.bias", "attention.W_v.bias",
                            "attention.W_o.bias", "hidden.bias",        "output.bias"};
    Optimizer *adamw = nn_adamw_new(model, (AdamWConfig){.lr = 0.05, .weight_decay = 0.1});
    for (int i = 0; i < 6; i++) ck_assert(nn_optimizer_set_group(adamw, biases[i], 0.05, 0));
    return adamw;
}

CASE("program")
/* A whole program from one seed: each loss and each norm must be PyTorch's. */
TEST(a_training_program_as_pytorch) {
    tensor_manual_seed(8);
    Model *model = model_new();
    Tensor *x = tensor_randn(SHAPE(4, 5, 8));
    Tensor *target = tensor_randn(SHAPE(4, 5, 1));
    Tensor *lens = tensor_from_int64s(SHAPE(4), (int64_t[]){5, 3, 1, 4});
    Tensor *expected = golden("training_program");
    Optimizer *adamw = adamw_with_decay_of_weights(model);
    for (int64_t step = 0; step < 20; step++) {
        ck_assert(nn_freeze(model, "attention", step >= 6 && step < 10));
        tape_begin();
        Tensor *loss = ag_mse_loss(model_forward(model, x, lens), target, REDUCE_MEAN);
        nn_optimizer_zero_grad(adamw);
        ck_assert_msg(ag_backward(loss), "%s", tensor_error());
        double norm = nn_clip_grad_norm(model, 0.25);
        nn_optimizer_scale_lr(adamw, nn_warmup(step, 5) * nn_cosine_decay(step, 20, 0));
        ck_assert_msg(nn_optimizer_step(adamw), "%s", tensor_error());
        ck_assert_msg(same_number(tensor_item(loss), tensor_get(expected, step, 0), 1e-12) &&
                          same_number(norm, tensor_get(expected, step, 1), 1e-12),
                      "step %d: loss %.17g, norm %.17g, not %.17g and %.17g", (int)step,
                      tensor_item(loss), norm, tensor_get(expected, step, 0),
                      tensor_get(expected, step, 1));
        tape_end();
    }
    RELEASE(x, target, lens, expected);
    nn_free(adamw);
    nn_free(model);
}

/* ---- what an optimizer remembers ------------------------------------------------------------- */

static Optimizer *make_optimizer(void *module, int kind) {
    const SGDConfig sgd[] = {
        {.lr = 0.1},
        {.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01},
        {.lr = 0.1, .momentum = 0.9, .nesterov = true},
    };
    return kind < 3 ? nn_sgd_new(module, sgd[kind])
                    : nn_adamw_new(module, (AdamWConfig){.lr = 0.1, .weight_decay = 0.01});
}

static double train(Model *model, Optimizer *optimizer, int steps) {
    double last = 0;
    for (int step = 0; step < steps; step++) {
        Tensor *x = tensor_randn(SHAPE(2, 3, 8));
        Tensor *target = tensor_randn(SHAPE(2, 3, 1));
        tape_begin();
        Tensor *y = ag_dropout(model_forward(model, x, NULL), 0.2);
        Tensor *loss = ag_mse_loss(y, target, REDUCE_MEAN);
        nn_optimizer_zero_grad(optimizer);
        ck_assert_msg(ag_backward(loss) && nn_optimizer_step(optimizer), "%s", tensor_error());
        last = tensor_item(loss);
        tape_end();
        RELEASE(x, target);
    }
    return last;
}

static void expect_same_bits(const TensorDict *a, const TensorDict *b) {
    ck_assert_int_eq(a->n, b->n);
    for (int i = 0; i < a->n; i++) {
        Tensor *x = a->entry[i].tensor;
        Tensor *y = tensor_dict_get(b, a->entry[i].name);
        ck_assert_msg(y && tensor_allclose(x, y, 0, 0), "%s", a->entry[i].name);
    }
}

/* All that is needed to continue the training. The parameters are copied, because later steps
 * change them. */
static TensorDict *snapshot(Model *model, Optimizer *optimizer) {
    TensorDict *dict = tensor_dict_new();
    ck_assert(nn_state_dict(model, "model.", dict));
    for (int i = 0; i < dict->n; i++) {
        Tensor *copy = tensor_clone(dict->entry[i].tensor);
        ck_assert(tensor_dict_set(dict, dict->entry[i].name, copy));
        tensor_release(copy);
    }
    ck_assert_msg(nn_optimizer_state_dict(optimizer, "optimizer.", dict), "%s", tensor_error());
    Tensor *state = tensor_generator_state();
    ck_assert(tensor_dict_set(dict, "generator", state));
    tensor_release(state);
    return dict;
}

CASE("memory")
/* Saves to a file and loads into another model, and into an optimizer that has taken other steps.
 */
LOOP_TEST(training_goes_on_with_the_same_bits, 4) {
    static const int states[] = {1, 2, 2, 3};
    char path[] = "/tmp/tapehead-training-XXXXXX";
    ck_assert_int_eq(close(mkstemp(path)), 0);
    tensor_manual_seed(3);
    Model *model = model_new();
    Model *other = model_new();
    Optimizer *optimizer = make_optimizer(model, _i);
    Optimizer *fresh = make_optimizer(other, _i);
    train(other, fresh, 2);
    train(model, optimizer, 3);
    TensorDict *saved = snapshot(model, optimizer);
    ck_assert_int_eq(saved->n, 12 + 12 * states[_i] + 1);
    ck_assert_msg(tensor_save_safetensors(saved, path), "%s", tensor_error());
    const double loss = train(model, optimizer, 4);
    TensorDict *after = snapshot(model, optimizer);
    TensorDict *loaded = tensor_load_safetensors(path);
    expect_same_bits(saved, loaded); /* later steps have not changed the saved dict */

    ck_assert_msg(nn_load_state_dict(other, "model.", loaded), "%s", tensor_error());
    ck_assert_msg(nn_optimizer_load_state_dict(fresh, "optimizer.", loaded), "%s", tensor_error());
    ck_assert(tensor_set_generator_state(tensor_dict_get(loaded, "generator")));
    ck_assert_double_eq(train(other, fresh, 4), loss);
    TensorDict *again = snapshot(other, fresh);
    TensorDict *read = tensor_load_safetensors(path);
    expect_same_bits(after, again);
    expect_same_bits(read, loaded); /* later steps have not changed the loaded dict, either */

    TensorDict *dicts[] = {saved, after, loaded, again, read};
    for (int i = 0; i < 5; i++) tensor_dict_free(dicts[i]);
    nn_free(optimizer);
    nn_free(fresh);
    nn_free(model);
    nn_free(other);
    unlink(path);
}

static void expect_names(const TensorDict *dict, const char *names) {
    char found[1024] = "";
    for (int i = 0; i < dict->n; i++) strcat(strcat(found, i ? " " : ""), dict->entry[i].name);
    ck_assert_str_eq(found, names);
}

static TensorDict *memory_of(Optimizer *optimizer, const char *prefix) {
    TensorDict *dict = tensor_dict_new();
    ck_assert_msg(nn_optimizer_state_dict(optimizer, prefix, dict), "%s", tensor_error());
    return dict;
}

static void put(TensorDict *dict, const char *name, Tensor *x) {
    ck_assert_msg(tensor_dict_set(dict, name, x), "%s", tensor_error());
    tensor_release(x);
}

static Tensor *count_of(int64_t steps) { return tensor_from_int64s(SCALAR, &steps); }

/* a takes two steps; b has no gradient and takes none. Loading this state removes the later state
 * of b. */
TEST(what_took_no_step_has_no_entries) {
    Pair *pair = pair_new();
    Optimizer *adamw = nn_adamw_new(pair, (AdamWConfig){.lr = 0.1, .beta1 = 0.5, .beta2 = 0.75});
    TensorDict *none = memory_of(adamw, "");
    expect_names(none, "");
    set_gradient(pair->a, tensor_from_doubles(SHAPE(3), (double[]){0, 2, -4}));
    ck_assert(nn_optimizer_step(adamw) && nn_optimizer_step(adamw));
    TensorDict *two = memory_of(adamw, "opt.");
    expect_names(two, "opt.a.step opt.a.exp_avg opt.a.exp_avg_sq");
    Tensor *step = two->entry[0].tensor;
    ck_assert(step->dtype == I64 && step->shape.ndim == 0 && tensor_item(step) == 2);
    expect_elements("m", two->entry[1].tensor, (double[]){0, 1.5, -3}, 0);
    expect_elements("v", two->entry[2].tensor, (double[]){0, 1.75, 7}, 0);

    set_gradient(pair->b, tensor_ones(SHAPE(2, 2)));
    ck_assert(nn_optimizer_step(adamw));
    put(two, "model.a", tensor_ones(SHAPE(1))); /* no entry of the optimizer */
    ck_assert_msg(nn_optimizer_load_state_dict(adamw, "opt.", two), "%s", tensor_error());
    TensorDict *back = memory_of(adamw, "opt.");
    expect_names(back, "opt.a.step opt.a.exp_avg opt.a.exp_avg_sq");
    ck_assert_double_eq(tensor_item(back->entry[0].tensor), 2);
    ck_assert(nn_optimizer_load_state_dict(adamw, "", none));
    TensorDict *forgotten = memory_of(adamw, "");
    expect_names(forgotten, "");
    put(none, "model.a", tensor_ones(SHAPE(1)));
    put(none, "xa.step", tensor_ones(SHAPE(1))); /* not of a */
    ck_assert(nn_optimizer_load_state_dict(adamw, "opt.", none));

    TensorDict *dicts[] = {none, two, back, forgotten};
    for (int i = 0; i < 4; i++) tensor_dict_free(dicts[i]);
    nn_free(adamw);
    nn_free(pair);
}

/* A prefix that was mistyped must not restart the optimizer. */
TEST(state_under_another_prefix_is_missing_here) {
    Pair *pair = pair_new();
    Optimizer *adamw = nn_adamw_new(pair, (AdamWConfig){.lr = 0.1});
    set_gradient(pair->a, tensor_ones(SHAPE(3)));
    set_gradient(pair->b, tensor_ones(SHAPE(2, 2)));
    ck_assert(nn_optimizer_step(adamw));
    TensorDict *dict = memory_of(adamw, "optimizer.");
    ck_assert(nn_optimizer_step(adamw));
    TensorDict *before = memory_of(adamw, "");
    FAILS(nn_optimizer_load_state_dict(adamw, "optimiser.", dict),
          "optimizer_load_state_dict: the dict does not fit AdamW: \"optimiser.a.step\" is missing "
          "and \"optimizer.a.step\" is there, \"optimiser.b.step\" is missing and "
          "\"optimizer.b.step\" is there");
    FAILS(nn_optimizer_load_state_dict(adamw, "", dict),
          "optimizer_load_state_dict: the dict does not fit AdamW: unexpected: "
          "\"optimizer.a.step\", \"optimizer.a.exp_avg\", \"optimizer.a.exp_avg_sq\" and 3 more");
    TensorDict *after = memory_of(adamw, "");
    expect_same_bits(before, after);
    ck_assert(nn_optimizer_load_state_dict(adamw, "optimizer.", dict));
    TensorDict *dicts[] = {dict, before, after};
    for (int i = 0; i < 3; i++) tensor_dict_free(dicts[i]);
    nn_free(adamw);
    nn_free(pair);
}

/* A step that fails has allocated state, but the optimizer has no state afterwards. */
TEST(a_failed_step_is_not_remembered) {
    Pair *pair = pair_new();
    Optimizer *sgd = nn_sgd_new(pair, (SGDConfig){.lr = 0.1, .momentum = 0.5});
    set_gradient(pair->a, tensor_ones(SHAPE(3)));
    set_gradient(pair->b, tensor_ones(SHAPE(2)));
    FAILS(nn_optimizer_step(sgd),
          "sgd: b is float64 (2, 2) and its gradient float64 (2,): they must be equal");
    TensorDict *dict = memory_of(sgd, "");
    expect_names(dict, "");
    tensor_dict_free(dict);
    nn_free(sgd);
    nn_free(pair);
}

/* If two fields hold one parameter, it takes one step and is saved under the first path. */
TEST(a_shared_parameter_is_remembered_once) {
    Pair *pair = pair_new();
    Pair *apart = pair_new();
    Tensor *square = tensor_retain(apart->b);
    ck_assert(nn_set_parameter(pair, &pair->b, tensor_retain(pair->a)));
    ck_assert(nn_set_parameter(apart, &apart->b, tensor_ones(SHAPE(3))));
    Optimizer *sgd = nn_sgd_new(pair, (SGDConfig){.lr = 1, .momentum = 0.5});
    Optimizer *other = nn_sgd_new(apart, (SGDConfig){.lr = 1, .momentum = 0.5});
    set_gradient(pair->a, tensor_ones(SHAPE(3)));
    set_gradient(apart->b, tensor_ones(SHAPE(3)));
    ck_assert(nn_optimizer_step(sgd) && nn_optimizer_step(other));
    TensorDict *dict = memory_of(sgd, "");
    TensorDict *two = memory_of(other, "");
    expect_names(dict, "a.step a.momentum_buffer");
    expect_names(two, "b.step b.momentum_buffer");
    ck_assert(nn_optimizer_load_state_dict(sgd, "", dict));
    FAILS(nn_optimizer_load_state_dict(sgd, "", two),
          "optimizer_load_state_dict: the dict does not fit SGD: unexpected: \"b.step\", "
          "\"b.momentum_buffer\"");
    tensor_release(square);
    tensor_dict_free(dict);
    tensor_dict_free(two);
    nn_free(sgd);
    nn_free(other);
    nn_free(apart);
    nn_free(pair);
}

/* For a lazy parameter, state is loaded if its shape fits the layer. The parameter has this state
 * when it gets its value. */
TEST(lazy_parameters_are_remembered) {
    Net *net = net_new();
    Net *lazy = net_new();
    Optimizer *sgd = make_optimizer(net, 2);
    Optimizer *other = make_optimizer(lazy, 2);
    TensorDict *model = tensor_dict_new();
    backward(net);
    ck_assert(nn_optimizer_step(sgd));
    TensorDict *dict = memory_of(sgd, "");
    ck_assert_int_eq(dict->n, 8);
    ck_assert_msg(nn_optimizer_load_state_dict(other, "", dict), "%s", tensor_error());
    ck_assert(nn_state_dict(net, "", model) && nn_load_state_dict(lazy, "", model));
    nn_zero_grad(net);
    backward(net);
    backward(lazy);
    ck_assert_msg(nn_optimizer_step(sgd) && nn_optimizer_step(other), "%s", tensor_error());
    TensorDict *loaded = memory_of(other, "");
    tensor_dict_free(dict);
    dict = memory_of(sgd, "");
    expect_same_bits(dict, loaded);
    ck_assert(tensor_allclose(net->W_o->weight, lazy->W_o->weight, 0, 0));

    Net *third = net_new();
    Optimizer *refusing = make_optimizer(third, 2);
    put(dict, "W_o.weight.momentum_buffer", tensor_ones(SHAPE(2, 2)));
    FAILS(nn_optimizer_load_state_dict(refusing, "", dict),
          "optimizer_load_state_dict: the dict does not fit SGD: "
          "\"W_o.weight.momentum_buffer\" is float64 (2, 2) and should be float64 (3, -1)");
    TensorDict *dicts[] = {dict, loaded, model};
    for (int i = 0; i < 3; i++) tensor_dict_free(dicts[i]);
    Optimizer *optimizers[] = {sgd, other, refusing};
    Net *nets[] = {net, lazy, third};
    for (int i = 0; i < 3; i++) {
        nn_free(optimizers[i]);
        nn_free(nets[i]);
    }
}

/* Loading the dict must fail with this error message and change nothing. Frees the dict. */
static void expect_no_fit(Optimizer *optimizer, TensorDict *dict, const char *sentence) {
    TensorDict *before = memory_of(optimizer, "");
    FAILS(nn_optimizer_load_state_dict(optimizer, "o.", dict), sentence);
    TensorDict *after = memory_of(optimizer, "");
    expect_same_bits(before, after);
    tensor_dict_free(before);
    tensor_dict_free(after);
    tensor_dict_free(dict);
}

TEST(memories_that_do_not_fit) {
    Pair *pair = pair_new();
    Optimizer *adamw = nn_adamw_new(pair, (AdamWConfig){.lr = 0.1});
    set_gradient(pair->a, tensor_ones(SHAPE(3)));
    set_gradient(pair->b, tensor_ones(SHAPE(2, 2)));
    ck_assert(nn_optimizer_step(adamw) && nn_optimizer_step(adamw));

    TensorDict *dict = tensor_dict_new();
    put(dict, "o.a.step", count_of(1));
    put(dict, "o.b.exp_avg", tensor_ones(SHAPE(2, 2))); /* an entry without a .step */
    put(dict, "o.c.step", count_of(1));
    expect_no_fit(adamw, dict,
                  "optimizer_load_state_dict: the dict does not fit AdamW: missing: "
                  "\"o.a.exp_avg\", \"o.a.exp_avg_sq\"; unexpected: \"o.b.exp_avg\", \"o.c.step\"");

    dict = memory_of(adamw, "o.");
    put(dict, "o.a.step", tensor_ones(SCALAR));
    put(dict, "o.a.exp_avg", tensor_zeros(SHAPE(2)));
    expect_no_fit(adamw, dict,
                  "optimizer_load_state_dict: the dict does not fit AdamW: \"o.a.step\" is float64 "
                  "() and should be int64 (), \"o.a.exp_avg\" is float64 (2,) and should be "
                  "float64 (3,)");

    dict = memory_of(adamw, "o.");
    put(dict, "o.b.step", tensor_from_int64s(SHAPE(1), (int64_t[]){1}));
    put(dict, "o.b.exp_avg_sq", tensor_to(tensor_dict_get(dict, "o.b.exp_avg_sq"), F32));
    expect_no_fit(adamw, dict,
                  "optimizer_load_state_dict: the dict does not fit AdamW: \"o.b.step\" is int64 "
                  "(1,) and should be int64 (), \"o.b.exp_avg_sq\" is float32 (2, 2) and should be "
                  "float64 (2, 2)");

    static const struct {
        int64_t steps;
        const char *sentence;
    } counts[] = {
        {0, "optimizer_load_state_dict: the dict does not fit AdamW: \"o.a.step\" is 0 and "
            "should be from 1 to 2^53"},
        {-1, "optimizer_load_state_dict: the dict does not fit AdamW: \"o.a.step\" is -1 and "
             "should be from 1 to 2^53"},
        {INT64_MAX, "optimizer_load_state_dict: the dict does not fit AdamW: \"o.a.step\" is "
                    "9223372036854775808 and should be from 1 to 2^53"}};
    for (int i = 0; i < 3; i++) {
        dict = memory_of(adamw, "o.");
        put(dict, "o.a.step", count_of(counts[i].steps));
        expect_no_fit(adamw, dict, counts[i].sentence);
    }
    nn_free(adamw);
    nn_free(pair);
}

TEST(memory_mistakes) {
    Pair *pair = pair_new();
    Optimizer *sgd = nn_sgd_new(pair, (SGDConfig){.lr = 0.1});
    TensorDict *dict = tensor_dict_new();
    char prefix[129] = "";
    memset(prefix, 'p', 128);
    FAILS(nn_optimizer_state_dict(NULL, "", dict), "optimizer_state_dict: the optimizer is NULL");
    FAILS(nn_optimizer_state_dict(sgd, NULL, dict), "optimizer_state_dict: the prefix is NULL");
    FAILS(nn_optimizer_state_dict(sgd, "", NULL), "optimizer_state_dict: the dict is NULL");
    FAILS(nn_optimizer_state_dict(sgd, prefix, dict),
          "optimizer_state_dict: the prefix is longer than 127 bytes");
    FAILS(nn_optimizer_load_state_dict(NULL, "", dict),
          "optimizer_load_state_dict: the optimizer is NULL");
    FAILS(nn_optimizer_load_state_dict(sgd, NULL, dict),
          "optimizer_load_state_dict: the prefix is NULL");
    FAILS(nn_optimizer_load_state_dict(sgd, "", NULL),
          "optimizer_load_state_dict: the dict is NULL");
    FAILS(nn_optimizer_load_state_dict(sgd, prefix, dict),
          "optimizer_load_state_dict: the prefix is longer than 127 bytes");
    tensor_fail("earlier");
    ck_assert(!nn_optimizer_state_dict(sgd, "", dict));
    FAILS(nn_optimizer_load_state_dict(sgd, "", dict), "earlier");
    tensor_dict_free(dict);
    nn_free(sgd);
    nn_free(pair);
}

/* ---- a bias of the scores ------------------------------------------------------------------- */

enum { BIAS_HEADS = 2, BIAS_LENGTH = 8, BUCKETS = 8, FARTHEST = 16 };

/* Three self-attentions, and what each adds to its scores. */
typedef struct {
    Module module;
    MultiHeadAttention *attention[3];
    Tensor *table;   /* (BUCKETS, H) */
    Tensor *learned; /* (H, N, N) */
    Tensor *slope, *distance, *bucket;
} Biased;

static const ModuleClass biased_class = {"Biased", sizeof(Biased), NULL, NULL};

/* Raffel et al. 2020: half of the buckets for keys behind the query, half for keys before it; far
 * distances share buckets. */
static int64_t t5_bucket(int64_t distance) {
    const int64_t half = BUCKETS / 2, exact = half / 2, past = distance > 0 ? half : 0;
    const double far = fabs((double)distance);
    if (far < (double)exact) return past + (int64_t)far;
    const double share = log(far / (double)exact) / log((double)FARTHEST / (double)exact);
    return past + MIN(exact + (int64_t)(share * (double)(half - exact)), half - 1);
}

static Biased *biased_new(bool fused) {
    Biased *m = nn_module_new(&biased_class);
    const MultiHeadAttentionConfig config = {.num_hiddens = 8,
                                             .num_heads = BIAS_HEADS,
                                             .bias = true,
                                             .query_size = 8,
                                             .key_size = 8,
                                             .value_size = 8,
                                             .fused = fused};
    static const char *const names[] = {"alibi", "t5", "free"};
    for (int i = 0; i < 3; i++)
        m->attention[i] = nn_add_child(m, names[i], nn_multi_head_attention_new(config));
    nn_add_parameter(m, "table", &m->table, tensor_randn(SHAPE(BUCKETS, BIAS_HEADS)));
    nn_add_parameter(m, "learned", &m->learned,
                     tensor_randn(SHAPE(BIAS_HEADS, BIAS_LENGTH, BIAS_LENGTH)));
    m->slope = tensor_empty(SHAPE(BIAS_HEADS, 1, 1));
    m->distance = tensor_empty(SHAPE(BIAS_LENGTH, BIAS_LENGTH));
    m->bucket = tensor_empty_of(SHAPE(BIAS_LENGTH, BIAS_LENGTH), I64);
    for (int h = 0; h < BIAS_HEADS; h++) /* Press et al. 2022: 2^(-8 (h + 1) / H) */
        tensor_set(m->slope, exp2(-8.0 * (h + 1) / BIAS_HEADS), h, 0, 0);
    for (int i = 0; i < BIAS_LENGTH; i++)
        for (int j = 0; j < BIAS_LENGTH; j++) {
            tensor_set(m->distance, j - i, i, j);
            ((int64_t *)m->bucket->data)[i * BIAS_LENGTH + j] = t5_bucket(j - i);
        }
    return nn_module_done(m);
}

/* x: (B, N, 8) -> same */
static Tensor *biased_forward(Biased *m, Tensor *x) {
    const AttentionMask mask[] = {
        {.bias = ag_mul(m->slope, m->distance), .causal = true},
        {.bias = ag_permute(ag_embedding(m->table, m->bucket), AXES(2, 0, 1))},
        {.bias = m->learned},
    };
    Tensor *y[3];
    for (int i = 0; i < 3; i++)
        y[i] = nn_multi_head_attention_forward(m->attention[i], x, x, x, mask[i]);
    return ag_add(ag_add(y[0], y[1]), y[2]);
}

static void expect_bias_gradient(const char *name, int step, const Tensor *x) {
    const char *row = format("%s_bias_%s_%d", tensor_dtype_name(x->dtype), name, step);
    Tensor *expected = golden(row);
    const double tolerance = x->dtype == F64 ? 1e-12 : 1e-6;
    ck_assert_msg(tensor_allclose(x->grad, expected, tolerance, tolerance), "%s differs", row);
    tensor_release(expected);
}

CASE("program")
/* ALiBi, T5's relative positions and a learned bias, composed and fused, in both types. */
LOOP_TEST(a_bias_trains_as_in_pytorch, 4) {
    tensor_set_default_dtype(_i / 2 ? F64 : F32);
    tensor_manual_seed(3);
    Biased *m = biased_new(_i % 2 == 1);
    Tensor *x = tensor_randn(SHAPE(2, BIAS_LENGTH, 8));
    Tensor *target = tensor_randn(SHAPE(2, BIAS_LENGTH, 8));
    Optimizer *sgd = nn_sgd_new(m, (SGDConfig){.lr = 0.5});
    for (int step = 0; step < 5; step++) {
        tape_begin();
        Tensor *loss = ag_mse_loss(biased_forward(m, x), target, REDUCE_MEAN);
        nn_optimizer_zero_grad(sgd);
        ck_assert_msg(ag_backward(loss), "%s", tensor_error());
        tape_end();
        expect_bias_gradient("table", step, m->table);
        expect_bias_gradient("learned", step, m->learned);
        expect_bias_gradient("W_q", step, m->attention[0]->W_q->weight);
        ck_assert(nn_optimizer_step(sgd));
    }
    RELEASE(x, target, m->slope, m->distance, m->bucket);
    nn_free(sgd);
    nn_free(m);
}

/* ---- the suite --------------------------------------------------------------------------- */

int main(void) { return run_tests("training"); }
