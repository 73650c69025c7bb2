/* test_training.c - does training go PyTorch's way: freezing, initial values, steps, schedules?
 *
 * golden/training.txt holds what python3-torch said (generate_training.py beside it tells how). The
 * rest is ours to define: what a mistake is answered with, word for word, and that nothing is lost:
 * every test ends with as many tensors alive as it began with.
 *
 * Run from the root of the repository, where the golden files are found. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../nn/nn.h"
#include "common.h"

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

/* Gradients of everything that can have one, for ones (2, 2). */
static void backward(Net *net) {
    Tensor *x = tensor_ones(SHAPE(2, 2));
    tape_begin();
    Tensor *h = ag_mul(nn_linear_forward(net->W_o, x), net->scale);
    ck_assert_msg(ag_backward(ag_sum(nn_linear_forward(net->W_other, h))), "%s", tensor_error());
    tape_end();
    tensor_release(x);
}

/* ---- freezing ------------------------------------------------------------------------------ */

START_TEST(a_frozen_parameter_gets_no_gradient) {
    Net *net = net_new();
    backward(net);
    ck_assert_ptr_nonnull(net->W_o->weight->grad);
    ck_assert(nn_freeze(net, "W_o", true));
    ck_assert(!net->W_o->weight->requires_grad && !net->W_o->bias->requires_grad);
    ck_assert(net->W_other->weight->requires_grad && net->scale->requires_grad);
    ck_assert_ptr_null(net->W_o->weight->grad); /* dropped */
    ck_assert_ptr_null(net->W_o->bias->grad);
    ck_assert_ptr_nonnull(net->W_other->weight->grad);
    backward(net);
    ck_assert_ptr_null(net->W_o->weight->grad);
    ck_assert_ptr_nonnull(net->W_other->weight->grad);

    ck_assert(nn_freeze(net, "W_o.weight", false)); /* its bias stays as it is */
    backward(net);
    ck_assert_ptr_nonnull(net->W_o->weight->grad);
    ck_assert_ptr_null(net->W_o->bias->grad);
    ck_assert(nn_freeze(net, "", false));
    ck_assert_ptr_nonnull(net->W_o->weight->grad); /* thawing what is not frozen drops nothing */
    backward(net);
    ck_assert_ptr_nonnull(net->W_o->bias->grad);
    nn_free(net);
}
END_TEST

START_TEST(a_lazy_parameter_is_frozen_before_it_is_made) {
    Net *net = net_new();
    ck_assert(nn_freeze(net, "W_o", true) && nn_freeze(net, "W_o.bias", false));
    backward(net);
    ck_assert(!net->W_o->weight->requires_grad && net->W_o->bias->requires_grad);
    ck_assert_ptr_null(net->W_o->weight->grad);
    ck_assert_ptr_nonnull(net->W_o->bias->grad);
    ck_assert(nn_set_parameter(net->W_o, &net->W_o->weight, tensor_zeros(SHAPE(3, 2))));
    ck_assert(!net->W_o->weight->requires_grad); /* the field remembers */
    nn_free(net);
}
END_TEST

static void count(ModuleSlot *parameter, void *context) {
    (void)parameter;
    ++*(int *)context;
}

START_TEST(a_prefix_ends_where_a_name_does) {
    static const struct {
        const char *prefix;
        int parameters;
    } cases[] = {{"", 4},       {"W_o", 2},    {"W_o.weight", 1},   {"W_other", 1}, {"scale", 1},
                 {"W", 0},      {"W_o.", 0},   {"W_o.weight.x", 0}, {".W_o", 0},    {"scale.x", 0},
                 {"weight", 0}, {"W_o.we", 0}, {"W_other.bias", 0}};
    Net *net = net_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int visited = 0;
        int n = nn_visit_parameters(net, cases[i].prefix, count, &visited);
        ck_assert_msg(n == cases[i].parameters && visited == n, "\"%s\": %d", cases[i].prefix, n);
    }
    nn_free(net);
}
END_TEST

START_TEST(freezing_nothing) {
    Net *net = net_new();
    ck_assert(!nn_freeze(net, "W_q", true)),
        expect_error("freeze: Net has no parameter at \"W_q\"");
    ck_assert(!nn_freeze(net, NULL, true)), expect_error("freeze: the prefix is NULL");
    ck_assert(!nn_freeze(NULL, "", true)), expect_error("freeze: the module is NULL");
    int n = 0;
    ck_assert_int_eq(nn_visit_parameters(NULL, "", count, &n), -1);
    expect_error("visit_parameters: the module is NULL");
    ck_assert_int_eq(nn_visit_parameters(net, NULL, count, &n), -1);
    expect_error("visit_parameters: the prefix or visit is NULL");
    ck_assert_int_eq(nn_visit_parameters(net, "", NULL, &n), -1);
    expect_error("visit_parameters: the prefix or visit is NULL");
    ck_assert_int_eq(n, 0);
    nn_free(net);
    Dropout *empty = nn_dropout_new(0);
    ck_assert(nn_freeze(empty, "", true)); /* all of none */
    nn_free(empty);
}
END_TEST

/* ---- the suite --------------------------------------------------------------------------- */

static TCase *add_case(Suite *suite, const char *name) {
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, frame_setup, frame_teardown);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int main(void) {
    Suite *suite = suite_create("training");
    TCase *freezing = add_case(suite, "freezing");
    tcase_add_test(freezing, a_frozen_parameter_gets_no_gradient);
    tcase_add_test(freezing, a_lazy_parameter_is_frozen_before_it_is_made);
    tcase_add_test(freezing, a_prefix_ends_where_a_name_does);
    tcase_add_test(freezing, freezing_nothing);
    return run_suite(suite);
}
