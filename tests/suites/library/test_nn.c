/* test_nn.c - do modules draw, compute, train and print as PyTorch's do, and free all that they
 * own?
 *
 * golden/nn.txt and golden/nn_print.txt hold the results of PyTorch 2.15 (generate_nn.py writes
 * them). Here the same modules are built; initial weights are compared to the bit, results and
 * gradients in float64 to 1e-12. Other tests compare error messages word for word, and every test
 * ends with as many tensors as it began with.
 *
 * Run from the root of the repository, where the golden files are found. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../nn/nn.h"
#include "../common.h"

#define NO_MASK ((AttentionMask){0})

/* ---- golden tensors ---------------------------------------------------------------------- */

static Tensor *golden(const char *name) { return golden_tensor("nn.txt", name); }

static Tensor *golden_of(const char *group, const char *name) {
    return golden(format("%s_%s", group, name));
}

static void expect_near(const char *group, const char *name, const Tensor *x, double tolerance) {
    Tensor *expected = golden_of(group, name);
    expect_close(format("%s_%s", group, name), x, expected, tolerance);
    tensor_release(expected);
}

static Tensor *ones(Shape shape) {
    Tensor *x = tensor_ones(shape);
    ck_assert_ptr_nonnull(x);
    return x;
}

/* ---- modules ----------------------------------------------------------------------------- */

typedef struct {
    Module module;
    Tensor *a, *b, *kept;
    Linear *first, *second;
} Net;

static int destroyed;
static void destroy_net(void *module) {
    (void)module;
    destroyed++;
}
static const ModuleClass net_class = {"Net", sizeof(Net), NULL, destroy_net};
static const ModuleClass empty_class = {"Empty", sizeof(Module), NULL, NULL};
static const ModuleClass outer_class = {"Outer", sizeof(Module), NULL, NULL};

/* a (2), then first.weight (3, 2), first.bias (3), second.weight (4, 3); b is registered last */
static Net *net_new(void) {
    Net *net = nn_module_new(&net_class);
    ck_assert_ptr_nonnull(net);
    nn_add_parameter(net, "a", &net->a, tensor_ones(SHAPE(2)));
    net->first = nn_linear_new(2, 3, true);
    nn_add_child(net, "first", net->first);
    net->second = nn_linear_new(3, 4, false);
    nn_add_child(net, "second", net->second);
    nn_add_parameter(net, "b", &net->b, tensor_zeros(SHAPE(5)));
    nn_add_result(net, &net->kept);
    return nn_module_done(net);
}

enum { ADAPTERS = 9 };

CASE("module", .setup = frame_setup_float, .teardown = frame_teardown)
/* A walk also visits parameters that are added during the walk. */
TEST(parameters_may_be_added_on_the_way) {
    static Tensor *adapters[ADAPTERS];
    Net *net = net_new();
    int n = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p); n++) {
        const char *name = format("adapter%d", n);
        if (n == ADAPTERS) break;
        ck_assert(nn_add_parameter(p->module, name, &adapters[n], tensor_ones(SHAPE(1))));
    }
    ck_assert_int_eq(n, ADAPTERS);
    ck_assert_ptr_eq(nn_parameter(net, "adapter8"), adapters[8]);
    ck_assert_int_eq(parameter_slots(net, NULL, 0), 5 + ADAPTERS);
    nn_free(net);
}

TEST(parameters_come_in_state_dict_order) {
    Net *net = net_new();
    /* A module's own parameters come before its children's, as in PyTorch. */
    Tensor *order[] = {net->a, net->b, net->first->weight, net->first->bias, net->second->weight};
    ModuleSlot *p = NULL;
    for (int i = 0; i < 5; i++) {
        ck_assert(nn_next_parameter(net, "", &p));
        ck_assert_ptr_eq(*p->slot, order[i]);
    }
    ck_assert(!nn_next_parameter(net, "", &p));
    ck_assert_ptr_null(p);

    ck_assert_ptr_eq(nn_parameter(net, "b"), net->b);
    ck_assert_ptr_eq(nn_parameter(net, "first.weight"), net->first->weight);
    ck_assert_ptr_eq(nn_parameter(net, "second.weight"), net->second->weight);
    ck_assert_ptr_eq(nn_parameter(net->first, "bias"), net->first->bias);
    ck_assert_int_eq(nn_num_parameters(net), 2 + 5 + 6 + 3 + 12);
    ck_assert(net->a->requires_grad && net->a->is_parameter);
    ck_assert_str_eq(net->first->weight->name, "first.weight");
    nn_free(net);
}

TEST(a_path_that_leads_nowhere) {
    Net *net = net_new();
    const char *paths[] = {"c",        "third.weight", "first.weight.weight",
                           "first.",   ".first.bias",  "first.c",
                           "firs.bias"};
    for (int i = 0; i < COUNT(paths); i++)
        FAILS(nn_parameter(net, paths[i]), format("parameter: Net has no \"%s\"", paths[i]));
    FAILS(nn_parameter(net, "first"),
          "parameter: \"first\" is the path of a module: a parameter's ends with its name, "
          "as in \"weight\"");
    FAILS(nn_parameter(net, ""),
          "parameter: \"\" is the path of a module: a parameter's ends with its name, as in \"a\"");
    FAILS(nn_parameter(net, NULL), "parameter: the path is NULL");
    nn_free(net);
}

TEST(training_goes_all_the_way_down) {
    MultiHeadAttention *heads = nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .dropout = 0.5});
    ck_assert(heads->module.training && heads->attention->dropout->module.training);
    nn_train(heads, false);
    ck_assert(!heads->module.training && !heads->W_q->module.training);
    ck_assert(!heads->attention->dropout->module.training);
    nn_train(heads->attention, true);
    ck_assert(heads->attention->dropout->module.training && !heads->module.training);
    nn_free(heads);
}

TEST(zeroed_gradients_are_absent) {
    Net *net = net_new();
    tape_begin();
    ck_assert(ag_backward(ag_add(ag_sum(net->a), ag_sum(net->first->weight))));
    tape_end();
    ck_assert_ptr_nonnull(net->a->grad);
    ck_assert_ptr_nonnull(net->first->weight->grad);
    ck_assert_ptr_null(net->b->grad);
    ck_assert(nn_zero_grad(net));
    ck_assert_ptr_null(net->a->grad);
    ck_assert_ptr_null(net->first->weight->grad);
    nn_free(net);
}

TEST(a_tensor_held_twice_counts_once) {
    Net *net = net_new();
    int64_t n = nn_num_parameters(net);
    ck_assert(nn_set_parameter(net, &net->b, tensor_retain(net->a)));
    ck_assert_int_eq(nn_num_parameters(net), n - 5);
    nn_free(net);
}

TEST(results_are_kept_past_the_tape) {
    Net *net = net_new();
    tape_begin();
    Tensor *first = ag_scale(net->a, 2);
    ck_assert(nn_keep_result(net, &net->kept, first));
    ck_assert(nn_keep_result(net, &net->kept, net->kept)); /* the same tensor again */
    tape_end();
    ck_assert_double_eq(tensor_get(net->kept, 1), 2);
    tape_begin();
    ck_assert(nn_keep_result(net, &net->kept, ag_scale(net->a, 3)));
    tape_end();
    ck_assert_double_eq(tensor_get(net->kept, 1), 3);

    FAILS(nn_keep_result(net, &net->kept, NULL), "keep_result: the value is NULL");
    ck_assert_double_eq(tensor_get(net->kept, 1), 3);
    FAILS(nn_keep_result(net, &net->a, net->a), "keep_result: the field is no kept result of Net");
    nn_free(net);
}

TEST(names_are_checked) {
    Net *net = net_new();
    Tensor *slot;
    FAILS(nn_add_parameter(net, "a", &slot, tensor_ones(SHAPE(1))),
          "add_parameter: Net has a \"a\" already");
    FAILS(nn_add_parameter(net, "first", &slot, tensor_ones(SHAPE(1))),
          "add_parameter: Net has a \"first\" already");
    FAILS(nn_add_child(net, "b", nn_linear_new(1, 1, false)), "add_child: Net has a \"b\" already");
    FAILS(nn_add_child(net, "", nn_linear_new(1, 1, false)),
          "add_child: \"\" is no name: it needs 1 to 31 bytes, no dot among them");
    FAILS(nn_add_child(net, "x.y", nn_linear_new(1, 1, false)),
          "add_child: \"x.y\" is no name: it needs 1 to 31 bytes, no dot among them");
    FAILS(nn_add_parameter(net, "of_thirty_two_characters_exactly", &slot, tensor_ones(SHAPE(1))),
          "add_parameter: \"of_thirty_two_characters_exactly\" is no name: it needs 1 to 31"
          " bytes, no dot among them");
    FAILS(nn_add_parameter(net, NULL, &slot, tensor_ones(SHAPE(1))),
          "add_parameter: \"\" is no name: it needs 1 to 31 bytes, no dot among them");
    nn_free(net);
}

/* After a failed call its name and its field can be used again. */
TEST(a_refused_parameter_leaves_no_trace) {
    Net *net = net_new();
    Tensor *slot = NULL;
    int before = parameter_slots(net, NULL, 0);
    FAILS(nn_add_parameter(net, "c", &slot, tensor_from_int64s(SHAPE(1), (int64_t[]){3})),
          "requires_grad: x is int64: only floats can have a gradient");
    ck_assert_int_eq(parameter_slots(net, NULL, 0), before);
    ck_assert(nn_add_parameter(net, "c", &slot, tensor_ones(SHAPE(1))));
    ck_assert_ptr_eq(nn_parameter(net, "c"), slot);
    nn_free(net);
}

TEST(what_a_module_refuses) {
    Net *net = net_new();
    Tensor *slot;
    FAILS(nn_add_parameter(net, "c", NULL, tensor_ones(SHAPE(1))),
          "add_parameter: the field is NULL");
    FAILS(nn_add_result(net, NULL), "add_result: the field is NULL");
    FAILS(nn_set_parameter(net, &slot, tensor_ones(SHAPE(1))),
          "set_parameter: the field is no parameter of Net");
    FAILS(nn_add_parameter(net, "again", &net->a, tensor_ones(SHAPE(1))),
          "add_parameter: Net holds something in this field already");
    FAILS(nn_add_result(net, &net->a), "add_result: Net holds something in this field already");
    FAILS(nn_add_parameter(net, "kept", &net->kept, tensor_ones(SHAPE(1))),
          "add_parameter: Net holds something in this field already");
    FAILS(nn_set_parameter(net, &net->a, NULL), "set_parameter: the value is NULL");
    FAILS(nn_set_parameter(net, &net->a, tensor_from_int64s(SHAPE(1), (int64_t[]){3})),
          "requires_grad: x is int64: only floats can have a gradient");
    Tensor *one = tensor_ones(SHAPE(1));
    FAILS(nn_set_parameter(net, &net->a, tensor_as_strided(one, SHAPE(3), (int64_t[]){0}, 0)),
          "set_parameter: the value is (3,) and expanded: several elements share one place");
    tensor_release(one);
    ck_assert_double_eq(tensor_get(net->a, 0), 1);
    FAILS(nn_print(net, NULL), "print: the file is NULL");
    nn_free(net);

    FAILS(nn_module_new(NULL),
          "module_new: a class needs the size of a struct that begins with Module");
    FAILS(nn_module_new(&(ModuleClass){"Small", 1, NULL, NULL}),
          "module_new: a class needs the size of a struct that begins with Module");
}

TEST(a_child_has_one_parent) {
    Net *net = net_new();
    Module *outer = nn_module_new(&outer_class);
    FAILS(nn_add_child(outer, "stolen", net->first), "add_child: Linear is in a tree already");
    FAILS(nn_add_child(net, "self", net), "add_child: Net is in a tree already");
    ck_assert(nn_add_child(outer, "net", net));
    ck_assert_str_eq(net->first->bias->name, "net.first.bias");
    FAILS(nn_add_child(net, "ancestor", outer), "add_child: Outer is in a tree already");
    nn_free(net->first);
    expect_error("free: first belongs to Net, which frees it");
    ck_assert_ptr_eq(nn_parameter(outer, "net.first.bias"), net->first->bias);
    destroyed = 0;
    nn_free(outer);
    ck_assert_int_eq(destroyed, 1);
    nn_free(NULL);
}

/* A name on a printed tape has at most 31 characters; a longer path is cut at the beginning. */
TEST(a_deep_path_keeps_its_end) {
    void *root = nn_linear_new(NN_LAZY, 2, false);
    Linear *leaf = root;
    const char *links[] = {"the_innermost_of_all", "middle", "outermost"};
    for (int i = 0; i < 3; i++) {
        void *parent = nn_module_new(&outer_class);
        ck_assert(nn_add_child(parent, links[i], root));
        root = parent;
    }
    Tensor *x = ones(SHAPE(1, 3));
    tape_begin();
    ck_assert_ptr_nonnull(nn_linear_forward(leaf, x));
    tape_end();
    ck_assert_str_eq(leaf->weight->name, "the_innermost_of_all.weight");
    ck_assert_ptr_eq(nn_parameter(root, "outermost.middle.the_innermost_of_all.weight"),
                     leaf->weight);
    tensor_release(x);
    nn_free(root);
}

/* While an error is pending, every function fails, keeps the error, and frees what it took over. */
TEST(a_pending_error_stays) {
    Net *net = net_new();
    Linear *orphan = nn_linear_new(1, 1, false);
    Tensor *late = tensor_ones(SHAPE(1));
    Tensor *slot = NULL;
    AttentionMask mask = NO_MASK;
    tensor_fail("the first error");
    ck_assert_ptr_null(nn_module_new(&net_class));
    ck_assert_ptr_null(nn_linear_new(2, 2, true));
    ck_assert_ptr_null(nn_dropout_new(0.5));
    ck_assert_ptr_null(nn_additive_attention_new(2, 0.5));
    ck_assert_ptr_null(nn_sgd_new(net, (SGDConfig){.lr = 1}));
    ck_assert(!nn_add_child(net, "orphan", orphan));
    ck_assert(!nn_add_parameter(net, "late", &slot, late));
    ck_assert(!nn_add_result(net, &slot));
    ck_assert_ptr_null(nn_linear_forward(net->first, net->a));
    ck_assert_ptr_null(nn_linear_forward(NULL, NULL));
    ck_assert_ptr_null(nn_dropout_forward(NULL, NULL));
    ck_assert_ptr_null(nn_embedding_new(2, 2));
    ck_assert_ptr_null(nn_layer_norm_new(SHAPE(2)));
    ck_assert_ptr_null(nn_positional_encoding_new(2, 0.5, 2));
    ck_assert_ptr_null(nn_rms_norm_new(SHAPE(2)));
    ck_assert_ptr_null(nn_rms_norm_forward(NULL, NULL));
    ck_assert_ptr_null(nn_embedding_forward(NULL, NULL));
    ck_assert_ptr_null(nn_layer_norm_forward(NULL, NULL));
    ck_assert_ptr_null(nn_positional_encoding_forward(NULL, NULL));
    ck_assert_ptr_null(nn_dot_product_attention_forward(NULL, NULL, NULL, NULL, mask));
    ck_assert_ptr_null(nn_additive_attention_forward(NULL, NULL, NULL, NULL, mask));
    ck_assert_ptr_null(nn_multi_head_attention_forward(NULL, NULL, NULL, NULL, mask));
    ck_assert(!nn_optimizer_step(NULL));
    nn_optimizer_zero_grad(NULL);
    nn_train(NULL, true);
    ck_assert(!nn_zero_grad(NULL));
    ck_assert(!nn_print(NULL, stdout));
    ck_assert_int_eq(nn_num_parameters(NULL), -1);
    ck_assert(!nn_next_parameter(NULL, "", &(ModuleSlot *){NULL}));
    ck_assert_ptr_null(nn_parameter(NULL, "a"));
    ck_assert_ptr_null(nn_module_done(NULL));
    nn_free(NULL);
    ck_assert(nn_zero_grad(net));            /* cleaning up works */
    ck_assert_ptr_null(nn_module_done(net)); /* and this frees net */
    expect_error("the first error");
}

TEST(a_null_module_is_named) {
    AttentionMask mask = NO_MASK;
    FAILS(nn_linear_forward(NULL, NULL), "linear: the module is NULL");
    FAILS(nn_dropout_forward(NULL, NULL), "dropout: the module is NULL");
    FAILS(nn_embedding_forward(NULL, NULL), "embedding: the module is NULL");
    FAILS(nn_layer_norm_forward(NULL, NULL), "layer_norm: the module is NULL");
    FAILS(nn_rms_norm_forward(NULL, NULL), "rms_norm: the module is NULL");
    FAILS(nn_positional_encoding_forward(NULL, NULL), "positional_encoding: the module is NULL");
    FAILS(nn_dot_product_attention_forward(NULL, NULL, NULL, NULL, mask),
          "dot_product_attention: the module is NULL");
    FAILS(nn_additive_attention_forward(NULL, NULL, NULL, NULL, mask),
          "additive_attention: the module is NULL");
    FAILS(nn_multi_head_attention_forward(NULL, NULL, NULL, NULL, mask),
          "multi_head_attention: the module is NULL");
    FAILS(nn_sgd_new(NULL, (SGDConfig){.lr = 1}), "sgd: the module is NULL");
    FAILS(nn_optimizer_step(NULL), "optimizer_step: the optimizer is NULL");
    nn_optimizer_zero_grad(NULL);
    expect_error("optimizer_zero_grad: the optimizer is NULL");
    nn_train(NULL, true);
    expect_error("train: the module is NULL");
    FAILS(nn_zero_grad(NULL), "zero_grad: the module is NULL");
    FAILS(nn_print(NULL, stdout), "print: the module is NULL");
    FAILS(nn_num_parameters(NULL) + 1, "num_parameters: the module is NULL");
    FAILS(nn_next_parameter(NULL, "", &(ModuleSlot *){NULL}), "next_parameter: the module is NULL");
    FAILS(nn_parameter(NULL, "w"), "parameter: the module is NULL");
    FAILS(nn_module_done(NULL), "module_done: the module is NULL");
    FAILS(nn_add_result(NULL, NULL), "add_result: the module is NULL");
    FAILS(nn_keep_result(NULL, NULL, NULL), "keep_result: the module is NULL");
    FAILS(nn_add_child(NULL, "c", nn_dropout_new(0)), "add_child: the module is NULL");
    FAILS(nn_set_parameter(NULL, NULL, tensor_ones(SHAPE(1))), "set_parameter: the module is NULL");
    FAILS(nn_add_parameter(NULL, "w", NULL, tensor_ones(SHAPE(1))),
          "add_parameter: the module is NULL");
    Module *outer = nn_module_new(&outer_class);
    FAILS(nn_add_child(outer, "c", NULL), "add_child: the module is NULL");
    nn_free(outer);
}

/* ---- does the loss reach every parameter? ------------------------------------------------- */

/* The forward leaves out the second layer and detaches a parameter. */
TEST(parameters_that_the_loss_does_not_reach) {
    Net *net = net_new();
    Tensor *x = ones(SHAPE(4, 2));
    tape_begin();
    Tensor *hidden = nn_linear_forward(net->first, ag_mul(x, net->a));
    Tensor *loss = ag_add(ag_sum(hidden), ag_sum(ag_detach(net->b)));
    FAILS(nn_check_connected(loss, net),
          "check_connected: the loss does not reach b, second.weight");
    ck_assert(nn_check_connected(loss, net->first));
    ck_assert(nn_freeze(net, "second", true)); /* the loss need not reach a frozen parameter */
    FAILS(nn_check_connected(loss, net), "check_connected: the loss does not reach b");
    ck_assert(nn_check_connected(ag_add(loss, ag_sum(net->b)), net));
    ck_assert(ag_backward(loss));
    tape_end();
    FAILS(nn_check_connected(x, net->first),
          "reaches: no recording tape is open: call tape_begin first");
    FAILS(nn_check_connected(NULL, net), "check_connected: the loss is NULL");
    FAILS(nn_check_connected(x, NULL), "check_connected: the module is NULL");
    tensor_release(x);
    nn_free(net);
}

/* Attention with lazy layers; its output projection W_o is never called. */
TEST(layers_that_nobody_called) {
    MultiHeadAttention *attention = nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .bias = true});
    Tensor *x = ones(SHAPE(1, 2, 3));
    tape_begin();
    Tensor *q = nn_linear_forward(attention->W_q, x);
    Tensor *k = nn_linear_forward(attention->W_k, x);
    Tensor *v = nn_linear_forward(attention->W_v, x);
    FAILS(nn_check_connected(ag_sum(ag_attention(q, k, v, NO_MASK, 0)), attention),
          "check_connected: the loss does not reach W_o.weight, W_o.bias");
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, NO_MASK);
    ck_assert(nn_check_connected(ag_sum(ag_square(y)), attention));
    tape_end();
    tensor_release(x);
    nn_free(attention);
}

/* A list of very many names is cut in the error message. */
TEST(very_many_parameters_that_are_not_reached) {
    Module *outer = nn_module_new(&outer_class);
    char expected[1024] = "check_connected: the loss does not reach ";
    for (int i = 0; i < 50; i++) {
        const char *name = format("layer_%02d", i);
        ck_assert(nn_add_child(outer, name, nn_linear_new(1, 1, true)));
        for (int bias = 0; bias < 2 && i < 25; bias++)
            sprintf(expected + strlen(expected), "%s%s.%s", i || bias ? ", " : "", name,
                    bias ? "bias" : "weight");
    }
    strcat(expected, " and 50 more");
    Tensor *x = ones(SCALAR);
    tape_begin();
    FAILS(nn_check_connected(x, outer), expected);
    tape_end();
    tensor_release(x);
    nn_free(outer);
}

/* ---- print ------------------------------------------------------------------------------- */

static void print_and_free(void *module, FILE *file) {
    ck_assert(nn_print(module, file));
    nn_free(module);
}

static MultiHeadAttentionConfig ten_in_five(void) {
    return (MultiHeadAttentionConfig){.num_hiddens = 10,
                                      .num_heads = 5,
                                      .dropout = 0.5,
                                      .query_size = 10,
                                      .key_size = 10,
                                      .value_size = 10};
}

/* The modules of generate_nn.py's prints(), in its order. */
static void print_modules(FILE *file) {
    print_and_free(nn_linear_new(10, 10, false), file);
    print_and_free(nn_linear_new(2, 3, true), file);
    Linear *lazy = nn_linear_new(NN_LAZY, 8, false);
    ck_assert(nn_print(lazy, file));
    Tensor *x = ones(SHAPE(2, 3));
    tape_begin_no_grad();
    ck_assert_ptr_nonnull(nn_linear_forward(lazy, x));
    tape_end();
    tensor_release(x);
    print_and_free(lazy, file);
    print_and_free(nn_linear_new(NN_LAZY, 3, true), file);
    print_and_free(nn_module_new(&empty_class), file);
    print_and_free(nn_dot_product_attention_new(0.1), file);
    print_and_free(nn_additive_attention_new(8, 0.25), file);
    print_and_free(nn_multi_head_attention_new(ten_in_five()), file);
    print_and_free(nn_multi_head_attention_new(
                       (MultiHeadAttentionConfig){.num_hiddens = 8, .num_heads = 2, .bias = true}),
                   file);
    Module *outer = nn_module_new(&outer_class);
    nn_add_child(outer, "encoder", nn_multi_head_attention_new(ten_in_five()));
    nn_add_child(outer, "head", nn_linear_new(10, 3, true));
    print_and_free(outer, file);
    print_and_free(nn_embedding_new(10, 3), file);
    print_and_free(nn_layer_norm_new(SHAPE(4)), file);
    LayerNorm *norm = nn_layer_norm_new(SHAPE(2, 3));
    norm->eps = 0.1;
    print_and_free(norm, file);
    print_and_free(nn_rms_norm_new(SHAPE(4)), file);
    RMSNorm *rms = nn_rms_norm_new(SHAPE(2, 3));
    rms->eps = 1e-6;
    print_and_free(rms, file);
    print_and_free(nn_positional_encoding_new(4, 0.1, 9), file);
    double eps[] = {1e-4, 0.00001234,       10,         123456, 1e15, 123456789012345678.0,
                    1e16, (double)INFINITY, (double)NAN};
    for (int i = 0; i < 9; i++) {
        norm = nn_layer_norm_new(SHAPE(5));
        norm->eps = eps[i];
        print_and_free(norm, file);
    }
    double p[] = {0.0, 1.0, 0.1, 1.0 / 3, 1e-5, 0.0001};
    for (int i = 0; i < 6; i++) print_and_free(nn_dropout_new(p[i]), file);
}

TEST(modules_print_as_python_prints_them) {
    FILE *printed = tmpfile();
    FILE *expected = fopen("tests/golden/nn_print.txt", "r");
    ck_assert(printed && expected);
    print_modules(printed);
    rewind(printed);
    char line[256], expected_line[256];
    int count = 0;
    while (fgets(expected_line, sizeof expected_line, expected)) {
        ck_assert_ptr_nonnull(fgets(line, sizeof line, printed));
        ck_assert_str_eq(line, expected_line);
        count++;
    }
    ck_assert_ptr_null(fgets(line, sizeof line, printed));
    ck_assert_int_gt(count, 40);
    fclose(printed);
    fclose(expected);
}

static void print_with_settings(const void *module, FILE *file) {
    (void)module;
    fprintf(file, "heads=2");
}

/* If a module has children, its settings are printed on a line of their own. */
TEST(settings_and_children) {
    const ModuleClass kind = {"Both", sizeof(Module), print_with_settings, NULL};
    Module *both = nn_module_new(&kind);
    nn_add_child(both, "drop", nn_dropout_new(0.5));
    expect_printed_module(both, "Both(\n  heads=2\n  (drop): Dropout(p=0.5, inplace=False)\n)\n");
    nn_free(both);
}

TEST(floats_print_as_python_writes_them) {
    static const double x[] = {
        0.1,        1e-05, 1, -0.0, 1e15, 1e16, 0.25, 1e-4, -2.5e-7, 1. / 3.0, (double)INFINITY,
        (double)NAN};
    char text[256] = {0};
    FILE *file = tmpfile();
    for (int i = 0; i < COUNT(x); i++) {
        nn_print_float(x[i], file);
        fputc(' ', file);
    }
    rewind(file);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 0);
    ck_assert_str_eq(text, "0.1 1e-05 1.0 -0.0 1000000000000000.0 1e+16 0.25 0.0001 -2.5e-07 "
                           "0.3333333333333333 inf nan ");
    fclose(file);
}

TEST(printing_to_a_full_disk) {
    FILE *full = fopen("/dev/full", "w");
    if (!full) return;
    setvbuf(full, NULL, _IONBF, 0);
    Linear *linear = nn_linear_new(1, 1, false);
    FAILS(nn_print(linear, full), "print: the file could not be written");
    fclose(full);
    nn_free(linear);
}

/* ---- linear ------------------------------------------------------------------------------ */

CASE("layers", .setup = frame_setup_float, .teardown = frame_teardown)
LOOP_TEST(linear_draws_pytorchs_weights_to_the_bit, 2) {
    const int sizes[] = {1, 2, 3, 5, 6, 7, 10, 11, 20, 48, 100, 300};
    DType dtype = _i ? F64 : F32;
    tensor_set_default_dtype(dtype);
    for (int i = 0; i < COUNT(sizes); i++) {
        const char *group = format("draw_%s_%d", tensor_dtype_name(dtype), sizes[i]);
        tensor_manual_seed((uint64_t)sizes[i]);
        Linear *linear = nn_linear_new(sizes[i], 2, true);
        expect_near(group, "weight", linear->weight, 0);
        expect_near(group, "bias", linear->bias, 0);
        nn_free(linear);
    }
}

/* The bits of all elements, as generate_nn.py sums them up. */
static int64_t checksum(const Tensor *x) {
    const uint32_t *words = x->data;
    const uint64_t *pairs = x->data;
    uint64_t sum = 0;
    for (int64_t i = 0; i < tensor_numel(x); i++)
        sum += (x->dtype == F32 ? words[i] : pairs[i]) * (uint64_t)(2 * i + 1);
    return (int64_t)(sum % (UINT64_C(1) << 53));
}

LOOP_TEST(fifty_linear_layers_have_pytorchs_bits, 2) {
    tensor_set_default_dtype(_i ? F64 : F32);
    Tensor *expected = golden(_i ? "fifty_float64_checksums" : "fifty_float32_checksums");
    tensor_manual_seed(50);
    for (int64_t i = 0; i < 50; i++) {
        Linear *linear = nn_linear_new(1 + 37 * i % 211, 1 + 53 * i % 97, true);
        const int64_t *sum = (const int64_t *)expected->data + 2 * i;
        ck_assert_msg(checksum(linear->weight) == sum[0], "layer %d: weight", (int)i);
        ck_assert_msg(checksum(linear->bias) == sum[1], "layer %d: bias", (int)i);
        nn_free(linear);
    }
    tensor_release(expected);
}

/* The output and all gradients, for PyTorch's parameters, input and cotangent. */
static void expect_layer(const char *group, void *module, Tensor *(*forward)(void *, Tensor *)) {
    Tensor *x = ag_requires_grad(golden_of(group, "x"));
    Tensor *dy = golden_of(group, "cotangent");
    Tensor **slots[2];
    const int n = parameter_slots(module, slots, 2);
    for (int i = 0; i < n; i++)
        ck_assert(nn_set_parameter(module, slots[i], golden_of(group, (*slots[i])->name)));
    tape_begin();
    Tensor *y = forward(module, x);
    expect_near(group, "output", y, 1e-12);
    ck_assert(ag_backward_from(y, dy));
    tape_end();
    expect_near(group, "dx", x->grad, 1e-12);
    for (int i = 0; i < n; i++)
        expect_near(group, format("d%s", (*slots[i])->name), (*slots[i])->grad, 1e-12);
    RELEASE(x, dy);
}

static Tensor *through_linear(void *layer, Tensor *x) { return nn_linear_forward(layer, x); }
static Tensor *through_norm(void *norm, Tensor *x) { return nn_layer_norm_forward(norm, x); }
static Tensor *through_rms_norm(void *norm, Tensor *x) { return nn_rms_norm_forward(norm, x); }
static Tensor *through_encoding(void *encoding, Tensor *x) {
    return nn_positional_encoding_forward(encoding, x);
}

TEST(linear_forward_and_backward) {
    Linear *linear = nn_linear_new(4, 5, true);
    expect_layer("linear", linear, through_linear); /* (2, 3, 4) -> (2, 3, 5) */
    nn_free(linear);
}

/* The first input sets the size; then the layer draws the same numbers as an eager layer. */
TEST(a_lazy_linear_draws_at_its_first_forward) {
    Linear *lazy = nn_linear_new(NN_LAZY, 2, true);
    ck_assert_ptr_null(lazy->weight);
    ck_assert_int_eq(nn_num_parameters(lazy), 0);
    ck_assert_int_eq(parameter_slots(lazy, NULL, 0), 2);
    FAILS(nn_parameter(lazy, "bias"), "parameter: \"bias\" is lazy, the first input makes it");
    ck_assert(nn_zero_grad(lazy));

    Tensor *x = ones(SHAPE(4, 7));
    tensor_manual_seed(7);
    tape_begin();
    ck_assert_ptr_nonnull(nn_linear_forward(lazy, x));
    Tensor *weight = lazy->weight;
    ck_assert_ptr_nonnull(nn_linear_forward(lazy, x));
    ck_assert_ptr_eq(lazy->weight, weight); /* drawn once */
    tape_end();
    expect_near("draw_float32_7", "weight", lazy->weight, 0);
    expect_near("draw_float32_7", "bias", lazy->bias, 0);
    ck_assert_int_eq(lazy->in_features, 7);
    ck_assert_int_eq(nn_num_parameters(lazy), 16);
    ck_assert(lazy->weight->requires_grad && lazy->bias->is_parameter);
    tensor_release(x);
    nn_free(lazy);
}

TEST(linear_mistakes) {
    FAILS(nn_linear_new(-2, 3, false),
          "linear: in_features is -2 and out_features 3: a size must not be negative");
    FAILS(nn_linear_new(NN_LAZY, -1, false),
          "linear: in_features is -1 and out_features -1: a size must not be negative");

    Linear *linear = nn_linear_new(10, 2, false);
    Linear *lazy = nn_linear_new(NN_LAZY, 2, false);
    Tensor *x = ones(SHAPE(2, 5));
    Tensor *scalar = ones(SCALAR);
    Tensor *integers = tensor_from_int64s(SHAPE(2), (int64_t[]){1, 2});
    tape_begin();
    FAILS(nn_linear_forward(linear, x),
          "linear: x is (2, 5): its last size 5 and in_features 10 must be equal");
    FAILS(nn_linear_forward(lazy, scalar),
          "linear: x is (): it needs a last size, the number of features");
    FAILS(nn_linear_forward(lazy, integers),
          "linear: x is int64 and the weights would be made as float32:"
          " the types must be equal; convert x with ag_to");
    ck_assert_ptr_null(lazy->weight); /* after a wrong input the layer is still lazy */
    FAILS(nn_linear_forward(lazy, NULL), "linear: x is NULL");
    tape_end();
    RELEASE(x, scalar, integers);
    nn_free(linear);
    nn_free(lazy);
}

/* A lazy layer must get both its weight and its bias. With only a weight its bias would be missing;
 * a bias alone would be overwritten by the draw. */
TEST(a_lazy_linear_is_given_both_or_neither) {
    Tensor *x = ones(SHAPE(2, 3));
    for (int given = 0; given < 2; given++) {
        Linear *lazy = nn_linear_new(NN_LAZY, 2, true);
        Tensor **first = given ? &lazy->bias : &lazy->weight;
        Tensor **second = given ? &lazy->weight : &lazy->bias;
        Shape bias = SHAPE(2), weight = SHAPE(2, 3);
        ck_assert(nn_set_parameter(lazy, first, tensor_ones(given ? bias : weight)));
        tape_begin();
        FAILS(nn_linear_forward(lazy, x),
              "linear: one of weight and bias was set: a lazy layer needs both, or neither");
        ck_assert_ptr_null(*second);
        ck_assert(nn_set_parameter(lazy, second, tensor_ones(given ? weight : bias)));
        ck_assert_double_eq(tensor_get(nn_linear_forward(lazy, x), 1, 1), 4);
        tape_end();
        nn_free(lazy);
    }
    tensor_release(x);
}

/* With in = 0 the output is the bias, which is 0. Without rows or with out = 0 the output has no
 * elements. */
TEST(linear_of_nothing) {
    Linear *no_inputs = nn_linear_new(0, 3, true);
    Linear *no_outputs = nn_linear_new(3, 0, true);
    Tensor *narrow = ones(SHAPE(2, 0));
    Tensor *empty = ones(SHAPE(0, 3));
    tape_begin();
    Tensor *y = nn_linear_forward(no_inputs, narrow);
    ck_assert_msg(y != NULL, "%s", tensor_error());
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tensor_get(y, 1, i), 0);
    y = nn_linear_forward(no_outputs, empty);
    ck_assert_msg(y != NULL, "%s", tensor_error());
    ck_assert_int_eq(y->shape.dim[0], 0);
    ck_assert_int_eq(y->shape.dim[1], 0);
    tape_end();
    RELEASE(narrow, empty);
    nn_free(no_inputs);
    nn_free(no_outputs);
}

/* ---- embedding, layer norm, positional encoding --------------------------------------------- */

LOOP_TEST(embedding_draws_pytorchs_numbers, 2) {
    const int sizes[] = {2, 5, 50};
    DType dtype = _i ? F64 : F32;
    tensor_set_default_dtype(dtype);
    for (int i = 0; i < 3; i++) {
        const char *group = format("embedding_%s_%d", tensor_dtype_name(dtype), sizes[i]);
        tensor_manual_seed((uint64_t)sizes[i]);
        Embedding *embedding = nn_embedding_new(sizes[i], 3);
        expect_near(group, "weight", embedding->weight, dtype == F64 ? 1e-14 : 3e-6);
        ck_assert(embedding->weight->is_parameter);
        nn_free(embedding);
    }
}

TEST(embedding_forward_and_backward) {
    tensor_set_default_dtype(F64);
    tensor_manual_seed(11);
    Embedding *embedding = nn_embedding_new(4, 3);
    Tensor *index = golden("embedding_index");
    Tensor *dy = golden("embedding_dy");
    tape_begin();
    Tensor *y = nn_embedding_forward(embedding, index); /* (2, 2) -> (2, 2, 3) */
    expect_near("embedding", "y", y, 1e-12);
    ck_assert(ag_backward_from(y, dy));
    FAILS(nn_embedding_forward(embedding, NULL), "embedding: index is NULL");
    FAILS(nn_embedding_forward(embedding, dy),
          "embedding: index is float64: it must be int64; convert it with ag_to");
    tape_end();
    expect_near("embedding", "dweight", nn_parameter(embedding, "weight")->grad, 1e-12);
    FAILS(nn_embedding_new(3, -1),
          "embedding: num_embeddings is 3 and embedding_dim -1: a size must not be negative");
    RELEASE(index, dy);
    nn_free(embedding);
}

TEST(layer_norm_forward_and_backward) {
    LayerNorm *norm = nn_layer_norm_new(SHAPE(3, 4));
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tensor_get(norm->weight, i, 3), 1);
    ck_assert_double_eq(tensor_get(norm->bias, 2, 1), 0);
    ck_assert_double_eq(norm->eps, 1e-5);
    expect_layer("norm", norm, through_norm);
    Tensor *x = tensor_ones_like(norm->weight);
    tape_begin();
    FAILS(nn_layer_norm_forward(norm, NULL), "layer_norm: x is NULL");
    norm->eps = -1;
    FAILS(nn_layer_norm_forward(norm, x), "layer_norm: eps is -1: it must not be negative");
    tape_end();
    tensor_release(x);
    nn_free(norm);
}

/* The op may return x itself. */
TEST(layer_norm_may_get_x_back) {
    Tensor *x = tensor_randn(SHAPE(40, 5));
    Tensor *copy = tensor_clone(x);
    Tensor *dw[2];
    for (int i = 0; i < 2; i++) {
        Tensor *w = ag_requires_grad(tensor_ones(SHAPE(5)));
        tape_begin();
        ck_assert(ag_backward_from(ag_layer_norm(x, w, NULL, 1e-5), i ? copy : x));
        tape_end();
        dw[i] = tensor_retain(w->grad);
        tensor_release(w);
    }
    ck_assert(tensor_allclose(dw[0], dw[1], 0, 0));
    RELEASE(dw[0], dw[1], x, copy);
}

TEST(layer_norm_needs_sizes) {
    Shape nine = SHAPE(1);
    nine.ndim = 9;
    FAILS(nn_layer_norm_new(SCALAR),
          "layer_norm: normalized_shape is (): it needs 1 to 8 sizes, none of them negative");
    FAILS(nn_layer_norm_new(SHAPE(2, -1)),
          "layer_norm: normalized_shape is (2, -1): it needs 1 to 8 sizes, none of them negative");
    ck_assert_ptr_null(nn_layer_norm_new(nine));
    expect_error_like("layer_norm: normalized_shape is (1, ", "it needs 1 to 8 sizes");
}

TEST(rms_norm_forward_and_backward) {
    RMSNorm *norm = nn_rms_norm_new(SHAPE(3, 4));
    for (int i = 0; i < 3; i++) ck_assert_double_eq(tensor_get(norm->weight, i, 3), 1);
    ck_assert_double_eq(norm->eps, AG_EPS_OF_TYPE);
    ck_assert_ptr_eq(nn_parameter(norm, "weight"), norm->weight);
    expect_layer("rms", norm, through_rms_norm);
    Tensor *x = tensor_ones_like(norm->weight);
    tape_begin();
    FAILS(nn_rms_norm_forward(norm, NULL), "rms_norm: x is NULL");
    norm->eps = -0.5;
    FAILS(nn_rms_norm_forward(norm, x), "rms_norm: eps is -0.5: it must not be negative");
    tape_end();
    FAILS(nn_rms_norm_new(SHAPE(2, -1)),
          "rms_norm: normalized_shape is (2, -1): it needs 1 to 8 sizes, none of them negative");
    tensor_release(x);
    nn_free(norm);
}

/* Of a row of zeros only eps is left: PyTorch's None is 2^-23 in float32, 2^-52 in float64. */
TEST(the_eps_of_rms_norm_is_that_of_the_type) {
    for (int type = F32; type <= F64; type++) {
        Tensor *x = ag_requires_grad(tensor_zeros_of(SHAPE(3), (DType)type));
        tape_begin();
        ck_assert(ag_backward(ag_sum(ag_rms_norm(x, NULL, AG_EPS_OF_TYPE))));
        const double want = type == F32 ? 0x1p11 * sqrt(2) : 0x1p26;
        ck_assert_double_eq_tol(tensor_get(x->grad, 1) / want, 1, 1e-6);
        tape_end();
        tensor_release(x);
    }
}

/* Compares every 37th of 1000 places. The last bit of a large angle is 6e-5, so each step must
 * round as in PyTorch. */
LOOP_TEST(positions_are_pytorchs, 2) {
    DType dtype = _i ? F64 : F32;
    tensor_set_default_dtype(dtype);
    PositionalEncoding *encoding = nn_positional_encoding_new(32, 0, 1000);
    const int64_t stride[] = {0, 37 * 32, 1};
    Tensor *some = tensor_as_strided(encoding->P, SHAPE(1, 28, 32), stride, 0);
    expect_near(dtype == F64 ? "position_float64" : "position_float32", "P", some,
                dtype == F64 ? 1e-12 : 2e-7);
    ck_assert_int_eq(encoding->P->dtype, dtype);
    ck_assert_int_eq(nn_num_parameters(encoding), 0);
    ck_assert(!encoding->P->requires_grad);
    tensor_release(some);
    nn_free(encoding);
}

TEST(positional_encoding_forward_and_backward) {
    tensor_set_default_dtype(F64);
    tape_begin(); /* the constructor uses a tape of its own */
    PositionalEncoding *encoding = nn_positional_encoding_new(6, 0.5, 20);
    Tensor *x = tensor_ones(SHAPE(2, 5, 6));
    nn_train(encoding, false);
    Tensor *y = nn_positional_encoding_forward(encoding, x);
    ck_assert_double_eq_tol(tensor_get(y, 1, 2, 1), 1 + cos(2), 1e-15);
    tape_end();
    nn_train(encoding, true);
    tensor_manual_seed(14);
    expect_layer("position", encoding, through_encoding);
    tensor_release(x);
    nn_free(encoding);
}

TEST(positional_encoding_mistakes) {
    const char *rule =
        ": neither may be negative, and num_hiddens must be even, a sine and a cosine "
        "for each wavelength";
    const int64_t wrong[][2] = {{5, 10}, {-2, 10}, {4, -1}};
    for (int i = 0; i < 3; i++)
        FAILS(nn_positional_encoding_new(wrong[i][0], 0, wrong[i][1]),
              format("positional_encoding: num_hiddens is %" PRId64 " and max_len %" PRId64 "%s",
                     wrong[i][0], wrong[i][1], rule));
    FAILS(nn_positional_encoding_new(4, 2, 10), "dropout: p is 2: a probability lies in [0, 1]");

    PositionalEncoding *encoding = nn_positional_encoding_new(4, 0, 10);
    Tensor *flat = ones(SHAPE(10, 4));
    Tensor *wide = ones(SHAPE(1, 3, 6));
    Tensor *whole = ones(SHAPE(0, 10, 4));
    Tensor *longer = ones(SHAPE(1, 11, 4));
    Tensor *wider = tensor_to(whole, F64);
    tape_begin();
    ck_assert_ptr_nonnull(nn_positional_encoding_forward(encoding, whole));
    FAILS(nn_positional_encoding_forward(encoding, flat),
          "positional_encoding: x is (10, 4): it must be (batch, length, num_hiddens), and "
          "num_hiddens is 4");
    FAILS(nn_positional_encoding_forward(encoding, wide),
          "positional_encoding: x is (1, 3, 6): it must be (batch, length, num_hiddens), and "
          "num_hiddens is 4");
    FAILS(nn_positional_encoding_forward(encoding, longer),
          "positional_encoding: x is (1, 11, 4): its length 11 is beyond max_len 10");
    FAILS(nn_positional_encoding_forward(encoding, wider),
          "positional_encoding: x is float64 and the encoding was made as float32: the types "
          "must be equal; convert x with ag_to");
    FAILS(nn_positional_encoding_forward(encoding, NULL), "positional_encoding: x is NULL");
    tape_end();
    RELEASE(flat, wide, whole, longer, wider);
    nn_free(encoding);
}

/* ---- dropout ----------------------------------------------------------------------------- */

TEST(dropout_drops_in_training_only) {
    Dropout *dropout = nn_dropout_new(0.3);
    Dropout *never = nn_dropout_new(0);
    Tensor *x = ones(SHAPE(5, 7));
    Tensor *before = golden("dropout_x");
    tensor_manual_seed(6);
    Tensor *drawn = tensor_randn(SHAPE(5, 7)); /* the generator's place, as in generate_nn.py */
    ck_assert(tensor_allclose(drawn, before, 1e-5, 1e-5));
    tape_begin();
    expect_near("dropout", "y", nn_dropout_forward(dropout, x), 1e-7);
    ck_assert_ptr_eq(nn_dropout_forward(never, x), x);
    nn_train(dropout, false);
    ck_assert_ptr_eq(nn_dropout_forward(dropout, x), x);
    FAILS(nn_dropout_forward(dropout, NULL), "dropout: x is NULL");
    tape_end();
    RELEASE(x, before, drawn);
    nn_free(dropout);
    nn_free(never);
}

TEST(dropout_needs_a_probability) {
    FAILS(nn_dropout_new(-0.5), "dropout: p is -0.5: a probability lies in [0, 1]");
    FAILS(nn_dropout_new(1.5), "dropout: p is 1.5: a probability lies in [0, 1]");
    FAILS(nn_dropout_new((double)INFINITY), "dropout: p is inf: a probability lies in [0, 1]");
    FAILS(nn_dropout_new((double)NAN), "dropout: p is nan: a probability lies in [0, 1]");
    ck_assert_ptr_null(nn_dot_product_attention_new(2)); /* the half-made parents are freed */
    expect_error("dropout: p is 2: a probability lies in [0, 1]");
    FAILS(nn_additive_attention_new(3, 2), "dropout: p is 2: a probability lies in [0, 1]");
    MultiHeadAttentionConfig config = ten_in_five();
    config.dropout = -1;
    FAILS(nn_multi_head_attention_new(config), "dropout: p is -1: a probability lies in [0, 1]");
    Dropout *dropout = nn_dropout_new(0.5);
    Tensor *x = ones(SHAPE(2));
    dropout->p = (double)NAN; /* a field that the program has set drops nothing silently, either */
    tape_begin();
    FAILS(nn_dropout_forward(dropout, x),
          "dropout: p is nan: it must be a probability, from 0 to 1");
    dropout->p = -0.5;
    FAILS(nn_dropout_forward(dropout, x),
          "dropout: p is -0.5: it must be a probability, from 0 to 1");
    tape_end();
    tensor_release(x);
    nn_free(dropout);
}

/* ---- attention: results and gradients ---------------------------------------------------- */

typedef Tensor *(*AttentionFn)(void *, Tensor *, Tensor *, Tensor *, AttentionMask);

static Tensor *dot(void *m, Tensor *q, Tensor *k, Tensor *v, AttentionMask mask) {
    return nn_dot_product_attention_forward(m, q, k, v, mask);
}
static Tensor *additive(void *m, Tensor *q, Tensor *k, Tensor *v, AttentionMask mask) {
    return nn_additive_attention_forward(m, q, k, v, mask);
}
static Tensor *heads(void *m, Tensor *q, Tensor *k, Tensor *v, AttentionMask mask) {
    return nn_multi_head_attention_forward(m, q, k, v, mask);
}

CASE("attention", .setup = frame_setup_float, .teardown = frame_teardown)
TEST(an_empty_batch) {
    Tensor *q = ones(SHAPE(0, 3, 4));
    Tensor *k = ones(SHAPE(0, 5, 4));
    Tensor *no_keys = ones(SHAPE(2, 0, 4));
    Tensor *queries = ones(SHAPE(2, 3, 4));
    Tensor *lens = tensor_zeros(SHAPE(2));
    Tensor *lengths = tensor_to(lens, I64);
    MultiHeadAttention *attention = nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .bias = true});
    tape_begin();
    Tensor *y = nn_multi_head_attention_forward(attention, q, k, k, NO_MASK);
    ck_assert_msg(y != NULL, "%s", tensor_error());
    ck_assert_int_eq(tensor_numel(y), 0);
    ck_assert_int_eq(y->shape.dim[2], 4);
    ck_assert_msg(ag_backward(ag_sum(y)), "%s", tensor_error());
    /* Without keys the heads are zeros, and the output is W_o's bias. */
    y = nn_multi_head_attention_forward(attention, queries, no_keys, no_keys,
                                        (AttentionMask){.valid_lens = lengths});
    ck_assert_msg(y != NULL, "%s", tensor_error());
    ck_assert_double_eq(tensor_get(y, 1, 2, 3), tensor_get(attention->W_o->bias, 3));
    tape_end();
    RELEASE(q, k, no_keys, queries, lens, lengths);
    nn_free(attention);
}

static Tensor *run_heads(Tensor **inputs, void *context) {
    void **c = context;
    return heads(c[0], inputs[0], inputs[1], inputs[2], (AttentionMask){.valid_lens = c[1]});
}

/* Heads of size 1 join into a strided view. The module lets go of it, and backward still reads it.
 */
LOOP_TEST(gradients_of_multi_head_attention, 4) {
    tensor_set_default_dtype(F64);
    MultiHeadAttention *attention =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 4,
                                                               .num_heads = _i / 2 ? 4 : 2,
                                                               .fused = _i % 2,
                                                               .dropout = 0.25,
                                                               .bias = true,
                                                               .query_size = 3,
                                                               .key_size = 2,
                                                               .value_size = 5});
    Tensor *lens = tensor_from_int64s(SHAPE(2, 2), (int64_t[]){1, 3, 0, 2});
    Tensor *inputs[11] = {tensor_randn(SHAPE(2, 2, 3)), tensor_randn(SHAPE(2, 3, 2)),
                          tensor_randn(SHAPE(2, 3, 5))};
    Tensor **slots[8];
    ck_assert_int_eq(parameter_slots(attention, slots, 8), 8);
    for (int i = 0; i < 3; i++) ag_requires_grad(inputs[i]);
    for (int i = 0; i < 8; i++) inputs[3 + i] = *slots[i];
    void *context[] = {attention, lens};
    ck_assert_msg(ag_gradcheck(run_heads, inputs, 11, context, (GradcheckOptions){0}), "%s",
                  tensor_error());
    for (int i = 0; i < 3; i++) tensor_release(inputs[i]);
    tensor_release(lens);
    nn_free(attention);
}

TEST(weights_live_until_the_next_forward) {
    DotProductAttention *attention = nn_dot_product_attention_new(0.5);
    Tensor *q = ones(SHAPE(1, 2, 3));
    Tensor *k = ones(SHAPE(1, 4, 3));
    Tensor *longer = ones(SHAPE(1, 5, 3));
    tape_begin();
    ck_assert_ptr_nonnull(nn_dot_product_attention_forward(attention, q, k, k, NO_MASK));
    tape_end();
    int64_t live = tensor_live();
    ck_assert_double_eq(tensor_get(attention->attention_weights, 0, 1, 3), 0.25);

    tape_begin_no_grad();
    ck_assert_ptr_null(nn_dot_product_attention_forward(attention, q, k, longer, NO_MASK));
    tensor_clear_error();
    ck_assert_double_eq(tensor_get(attention->attention_weights, 0, 1, 3), 0.25); /* not changed
                                                                                   * by the
                                                                                   * failed call */
    ck_assert_ptr_nonnull(nn_dot_product_attention_forward(attention, q, longer, longer, NO_MASK));
    tape_end();
    ck_assert_double_eq_tol(tensor_get(attention->attention_weights, 0, 1, 4), 0.2, 1e-7);
    ck_assert_int_eq(tensor_live(), live);
    RELEASE(q, k, longer);
    nn_free(attention);
}

/* A printed tape reads like the formula. */
TEST(the_tape_tells_the_story) {
    MultiHeadAttention *attention = nn_multi_head_attention_new(ten_in_five());
    Tensor *x = ones(SHAPE(1, 2, 10));
    Tensor *lens = tensor_from_int64s(SHAPE(1), (int64_t[]){2});
    tape_begin();
    AttentionMask mask = {.valid_lens = lens};
    ck_assert_ptr_nonnull(nn_multi_head_attention_forward(attention, x, x, x, mask));
    FILE *file = tmpfile();
    ck_assert(tape_print(file));
    tape_end();
    static char text[16384];
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *words[] = {"W_q.weight", "queries",    "W_k.weight", "keys",
                           "W_v.weight", "values",     "scores",     "attention_weights",
                           "heads",      "W_o.weight", "output"};
    for (int i = 0; i < COUNT(words); i++)
        ck_assert_msg(strstr(text, words[i]) != NULL, "no %s in\n%s", words[i], text);
    RELEASE(x, lens);
    nn_free(attention);
}

/* ---- attention: mistakes ----------------------------------------------------------------- */

/* Each kind of attention gets the same wrong inputs; its error begins with its own name. */
typedef struct {
    const char *name;
    AttentionFn forward;
    void *module;
} Attention;

static Attention attention_of_kind(int kind) {
    if (kind == 0)
        return (Attention){"dot_product_attention", dot, nn_dot_product_attention_new(0)};
    if (kind == 1)
        return (Attention){"additive_attention", additive, nn_additive_attention_new(4, 0)};
    return (Attention){
        "multi_head_attention", heads,
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2})};
}

static void expect_refusal(Attention a, Tensor *q, Tensor *k, Tensor *v, const char *sentence) {
    tape_begin();
    FAILS(a.forward(a.module, q, k, v, NO_MASK), format("%s: %s", a.name, sentence));
    tape_end();
}

LOOP_TEST(attention_names_what_does_not_fit, 3) {
    Attention a = attention_of_kind(_i);
    Tensor *q = ones(SHAPE(3, 4, 8));
    Tensor *k = ones(SHAPE(2, 6, 8));
    Tensor *fit = ones(SHAPE(3, 6, 8));
    Tensor *fewer = ones(SHAPE(3, 5, 8));
    Tensor *flat = ones(SHAPE(4, 8));
    Tensor *wide = tensor_to(fit, F64);
    Tensor *whole = tensor_to(q, I64);
    expect_refusal(
        a, q, k, k,
        "keys are (2, 6, 8) and queries (3, 4, 8): the batch sizes 2 and 3 must be equal");
    expect_refusal(
        a, q, fit, k,
        "values are (2, 6, 8) and keys (3, 6, 8): the batch sizes 2 and 3 must be equal");
    expect_refusal(a, q, fit, fewer,
                   "values are (3, 5, 8) and keys (3, 6, 8): the numbers 5 and 6 must be equal");
    expect_refusal(a, flat, fit, fit,
                   "queries are (4, 8): they need three dimensions (batch, number, size)");
    expect_refusal(a, q, flat, fit,
                   "keys are (4, 8): they need three dimensions (batch, number, size)");
    expect_refusal(a, q, fit, flat,
                   "values are (4, 8): they need three dimensions (batch, number, size)");
    expect_refusal(
        a, q, wide, fit,
        "keys are float64 and queries float32: the types must be equal; convert one with ag_to");
    expect_refusal(
        a, q, fit, wide,
        "values are float64 and queries float32: the types must be equal; convert one with ag_to");
    expect_refusal(a, whole, fit, fit,
                   "queries are int64: they must be float32 or float64; convert them with ag_to");
    expect_refusal(a, NULL, fit, fit, "queries are NULL");
    expect_refusal(a, q, NULL, fit, "keys are NULL");
    expect_refusal(a, q, fit, NULL, "values are NULL");
    RELEASE(q, k, fit, fewer, flat, wide, whole);
    nn_free(a.module);
}

/* The sizes of the features must be equal, or equal the sizes of the projections. A lazy projection
 * gets its size from its first input. */
TEST(attention_checks_its_features) {
    Tensor *q = ones(SHAPE(2, 4, 8));
    Tensor *k = ones(SHAPE(2, 6, 7));
    Tensor *v = ones(SHAPE(2, 6, 5));
    Attention a = attention_of_kind(0);
    expect_refusal(
        a, q, k, v,
        "keys are (2, 6, 7) and queries (2, 4, 8): the last sizes 7 and 8 must be equal");
    nn_free(a.module);
    for (int kind = 1; kind <= 2; kind++) {
        a = attention_of_kind(kind);
        tape_begin_no_grad();
        ck_assert_ptr_nonnull(a.forward(a.module, q, k, v, NO_MASK));
        tape_end();
        Tensor *other = ones(SHAPE(2, 4, 9));
        Tensor *others = ones(SHAPE(2, 6, 9));
        expect_refusal(a, other, k, v,
                       "queries are (2, 4, 9): their last size 9 and the in_features 8 of W_q must"
                       " be equal");
        expect_refusal(a, q, others, v,
                       "keys are (2, 6, 9): their last size 9 and the in_features 7 of W_k must be"
                       " equal");
        if (kind == 2)
            expect_refusal(a, q, k, others,
                           "values are (2, 6, 9): their last size 9 and the in_features 5 of W_v"
                           " must be equal");
        RELEASE(other, others);
        nn_free(a.module);
    }
    RELEASE(q, k, v);
}

TEST(attention_sizes_must_make_sense) {
    MultiHeadAttentionConfig config = {.num_hiddens = 10, .num_heads = 3};
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: num_heads 3 must divide num_hiddens 10");
    config.num_heads = 0;
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: num_hiddens is 10 and num_heads 0: both must be positive");
    config = (MultiHeadAttentionConfig){.num_hiddens = -4, .num_heads = 2};
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: num_hiddens is -4 and num_heads 2: both must be positive");
    config = (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .key_size = -3};
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: query_size is 0, key_size -3, value_size 0 and head_size 0: a "
          "size must not be negative (0 leaves it to the first input) or too large");
    config = (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .head_size = INT64_MAX};
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: query_size is 0, key_size 0, value_size 0 and head_size "
          "9223372036854775807: a size must not be negative (0 leaves it to the first input) or "
          "too large");
    config = (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .head_size = -1};
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: query_size is 0, key_size 0, value_size 0 and head_size -1: a "
          "size must not be negative (0 leaves it to the first input) or too large");
    FAILS(nn_additive_attention_new(0, 0.1),
          "additive_attention: num_hiddens is 0: it must be positive");
}

/* ---- where an error was born ---------------------------------------------------------------- */

/* Makes a tree with the path "encoder.layers.0", and adds a child there. */
static Module *encoder_new(void *child) {
    Module *model = nn_module_new(&outer_class);
    Module *encoder = nn_module_new(&outer_class);
    Module *layers = nn_module_new(&outer_class);
    nn_add_child(model, "encoder", encoder);
    nn_add_child(encoder, "layers", layers);
    ck_assert_ptr_nonnull(nn_add_child(layers, "0", child));
    return model;
}

/* An error names the path of the innermost module, once. */
TEST(an_error_says_the_path_of_its_module) {
    MultiHeadAttention *attention = nn_multi_head_attention_new((MultiHeadAttentionConfig){
        .num_hiddens = 4, .num_heads = 2, .query_size = 4, .key_size = 4, .value_size = 4});
    Module *model = encoder_new(attention);
    Tensor *x = tensor_ones(SHAPE(1, 3, 5));
    Tensor *y = tensor_ones(SHAPE(1, 3, 4));
    ck_assert(tape_begin_no_grad());
    for (int i = 0; i < 2; i++) { /* the same error again */
        FAILS(nn_linear_forward(attention->W_q, x),
              "encoder.layers.0.W_q: linear: x is (1, 3, 5): its last size 5 and "
              "in_features 4 must be equal");
    }
    FAILS(nn_multi_head_attention_forward(attention, y, x, y, (AttentionMask){0}),
          "encoder.layers.0: multi_head_attention: keys are (1, 3, 5): their last size 5 "
          "and the in_features 4 of W_k must be equal");
    attention->W_q->in_features = 5; /* a wrong size, which only the inner forward detects */
    FAILS(nn_multi_head_attention_forward(attention, x, y, y, (AttentionMask){0}),
          "encoder.layers.0.W_q: linear: x is (1, 3, 5) and w is (4, 4): x's last size must "
          "be w's last size 4");
    FAILS(nn_linear_forward(attention->W_o, NULL), "encoder.layers.0.W_o: linear: x is NULL");
    tape_end();
    RELEASE(x, y);
    nn_free(model);
}

/* An error from elsewhere gets no path, and the root has no path. */
TEST(an_earlier_error_keeps_its_sentence) {
    Linear *linear = nn_linear_new(2, 2, true);
    Linear *root = nn_linear_new(2, 2, true);
    Module *model = encoder_new(linear);
    Tensor *x = tensor_ones(SHAPE(3));
    ck_assert(tape_begin_no_grad());
    tensor_fail("the first mistake");
    FAILS(nn_linear_forward(linear, x), "the first mistake");
    FAILS(nn_linear_forward(linear, nn_linear_forward(root, x)),
          "linear: x is (3,): its last size 3 and in_features 2 must be equal");
    tape_end();
    tensor_release(x);
    nn_free(root);
    nn_free(model);
}

/* An error in the forward of any module begins with its path. */
TEST(every_module_says_its_path) {
    Dropout *dropout = nn_dropout_new(0.5);
    Embedding *embedding = nn_embedding_new(3, 2);
    LayerNorm *norm = nn_layer_norm_new(SHAPE(2));
    PositionalEncoding *encoding = nn_positional_encoding_new(2, 0, 4);
    DotProductAttention *dot = nn_dot_product_attention_new(0);
    AdditiveAttention *additive = nn_additive_attention_new(2, 0);
    void *modules[] = {dropout, embedding, norm, encoding, dot, additive};
    Module *root = nn_module_new(&outer_class);
    const AttentionMask mask = {0};
    for (int i = 0; i < 6; i++) nn_add_child(root, (char[]){(char)('a' + i), '\0'}, modules[i]);
    ck_assert(tape_begin_no_grad());
    FAILS(nn_dropout_forward(dropout, NULL), "a: dropout: x is NULL");
    FAILS(nn_embedding_forward(embedding, NULL), "b: embedding: index is NULL");
    FAILS(nn_layer_norm_forward(norm, NULL), "c: layer_norm: x is NULL");
    FAILS(nn_positional_encoding_forward(encoding, NULL), "d: positional_encoding: x is NULL");
    FAILS(nn_dot_product_attention_forward(dot, NULL, NULL, NULL, mask),
          "e: dot_product_attention: queries are NULL");
    FAILS(nn_additive_attention_forward(additive, NULL, NULL, NULL, mask),
          "f: additive_attention: queries are NULL");
    tape_end();
    nn_free(root);
}

/* ---- optimizers -------------------------------------------------------------------------- */

CASE("optimizer", .setup = frame_setup_float, .teardown = frame_teardown)
/* The numbers of the reference page: theta = 1, gradients .5 .25 -.1, lr .1, in float32. */
LOOP_TEST(sgd_numbers_known_by_heart, 4) {
    static const struct {
        SGDConfig config;
        double theta[3];
    } runs[] = {
        {{.lr = 0.1}, {.95, .925, .935}},
        {{.lr = 0.1, .momentum = 0.9}, {.95, .88, .827}},
        {{.lr = 0.1, .momentum = 0.9, .nesterov = true}, {.905, .817, .7793}},
        {{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}, {.949, .877151, .821609749}},
    };
    const double gradients[] = {.5, .25, -.1};
    Net *net = nn_module_new(&net_class);
    nn_add_parameter(net, "a", &net->a, tensor_ones(SHAPE(1)));
    Optimizer *sgd = nn_sgd_new(net, runs[_i].config);
    for (int step = 0; step < 3; step++) {
        set_gradient(net->a, tensor_full(SHAPE(1), gradients[step]));
        ck_assert(nn_optimizer_step(sgd));
        ck_assert_double_eq_tol(tensor_item(net->a), runs[_i].theta[step], 1e-6);
    }
    nn_free(sgd);
    nn_free(net);
}

/* A parameter without a gradient takes no step, has no decay, and its momentum does not change. */
TEST(sgd_skips_what_has_no_gradient) {
    Net *net = net_new();
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1, .momentum = 0.5, .weight_decay = 0.5});
    set_gradient(net->a, tensor_ones(SHAPE(2)));
    ck_assert(nn_optimizer_step(sgd)); /* a: g = 1 + .5 = 1.5 */
    ck_assert_double_eq(tensor_get(net->a, 0), -0.5);
    ck_assert_double_eq(tensor_get(net->b, 0), 0);
    nn_optimizer_zero_grad(sgd);
    ck_assert_ptr_null(net->a->grad);
    ck_assert(nn_optimizer_step(sgd));
    ck_assert_double_eq(tensor_get(net->a, 0), -0.5);
    set_gradient(net->b, tensor_ones(SHAPE(5)));
    ck_assert(nn_optimizer_step(sgd)); /* the third step of the optimizer is the first step of b */
    ck_assert_double_eq(tensor_get(net->b, 0), -1);
    nn_free(sgd);
    nn_free(net);
}

TEST(sgd_steps_once_for_a_shared_tensor) {
    Net *net = net_new();
    nn_set_parameter(net, &net->b, tensor_retain(net->a));
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1});
    set_gradient(net->a, tensor_full(SHAPE(2), 0.25));
    ck_assert(nn_optimizer_step(sgd));
    ck_assert_double_eq(tensor_get(net->a, 1), 0.75);
    nn_free(sgd);
    nn_free(net);
}

/* The optimizer is made before the lazy layer draws its weights, and it trains them. */
TEST(sgd_waits_for_lazy_parameters) {
    Linear *lazy = nn_linear_new(NN_LAZY, 1, false);
    Optimizer *sgd = nn_sgd_new(lazy, (SGDConfig){.lr = 0.5});
    ck_assert(nn_optimizer_step(sgd));
    Tensor *x = ones(SHAPE(1, 3));
    tape_begin();
    ck_assert(ag_backward(ag_sum(nn_linear_forward(lazy, x))));
    tape_end();
    double before = tensor_get(lazy->weight, 0, 2);
    ck_assert(nn_optimizer_step(sgd));
    ck_assert_double_eq_tol(tensor_get(lazy->weight, 0, 2), before - 0.5, 1e-7);
    nn_optimizer_zero_grad(sgd);
    ck_assert_ptr_null(lazy->weight->grad);
    tensor_release(x);
    nn_free(sgd);
    nn_free(lazy);
}

/* The last parameter cannot be updated. So no parameter and no momentum changes. */
TEST(sgd_is_all_or_nothing) {
    Net *net = net_new();
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1, .momentum = 0.5});
    set_gradient(net->a, tensor_ones(SHAPE(2)));
    ck_assert(nn_optimizer_step(sgd));
    set_gradient(net->second->weight, tensor_ones(SHAPE(4, 1)));
    FAILS(nn_optimizer_step(sgd),
          "sgd: second.weight is float32 (4, 3) and its gradient float32 (4, 1):"
          " they must be equal");
    ck_assert_double_eq(tensor_get(net->a, 0), 0);
    set_gradient(net->second->weight, NULL);
    ck_assert(nn_optimizer_step(sgd)); /* b = .5 + 1 */
    ck_assert_double_eq(tensor_get(net->a, 0), -1.5);
    tensor_fail("pending");
    ck_assert(!nn_optimizer_step(sgd));
    ck_assert_double_eq(tensor_get(net->a, 0), -1.5);
    expect_error("pending");
    nn_free(sgd);
    nn_free(net);
}

/* The first parameter does not change if the last parameter, or its gradient, was let go. */
TEST(sgd_moves_nothing_when_something_was_let_go) {
    Net *net = net_new();
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1});
    set_gradient(net->a, tensor_ones(SHAPE(2)));
    set_gradient(net->second->weight, tensor_ones(SHAPE(4, 3)));
    tape_begin();
    ag_let_go(net->second->weight->grad);
    FAILS(nn_optimizer_step(sgd),
          "sgd: the gradient of second.weight was let go, and its elements with it");
    set_gradient(net->second->weight, tensor_ones(SHAPE(4, 3)));
    ag_let_go(net->second->weight);
    FAILS(nn_optimizer_step(sgd),
          "sgd: the value of second.weight was let go, and its elements with it");
    ck_assert_double_eq(tensor_get(net->a, 0), 1);
    tape_end();
    nn_free(sgd);
    nn_free(net);
}

TEST(sgd_settings_must_make_sense) {
    Linear *linear = nn_linear_new(1, 1, false);
    const struct {
        SGDConfig config;
        const char *sentence;
    } mistakes[] = {
        {{.lr = -1}, "sgd: lr is -1: it must not be negative"},
        {{.lr = (double)NAN}, "sgd: lr is nan: it must be a number"},
        {{.momentum = 0.9},
         "sgd: lr is 0: set a learning rate, as in .lr = 0.1 (a group may have 0)"},
        {{.momentum = -0.5}, "sgd: momentum is -0.5: it must not be negative"},
        {{.lr = 1, .weight_decay = -2}, "sgd: weight_decay is -2: it must not be negative"},
        {{.dampening = (double)NAN}, "sgd: dampening is not a number"},
        {{.nesterov = true}, "sgd: nesterov needs a momentum and no dampening; they are 0 and 0"},
        {{.nesterov = true, .momentum = 0.5, .dampening = 0.25},
         "sgd: nesterov needs a momentum and no dampening; they are 0.5 and 0.25"},
    };
    for (int i = 0; i < COUNT(mistakes); i++)
        FAILS(nn_sgd_new(linear, mistakes[i].config), mistakes[i].sentence);
    nn_free(linear);
}

#define REFUSES_OPTIMIZER(call, function)                                                          \
    do {                                                                                           \
        ck_assert(!(call));                                                                        \
        expect_error(function ": SGD is an optimizer: pass the model that it trains, or call an "  \
                              "nn_optimizer function");                                            \
    } while (0)

/* An optimizer begins with a Module, so the compiler accepts it as a module. */
TEST(an_optimizer_is_no_model) {
    Linear *linear = nn_linear_new(1, 1, false);
    Optimizer *sgd = nn_sgd_new(linear, (SGDConfig){.lr = 1});
    TensorDict *dict = tensor_dict_new();
    Tensor *field = NULL;
    Tensor *loss = tensor_ones(SCALAR);
    Net *net = net_new();
    REFUSES_OPTIMIZER(nn_zero_grad(sgd), "zero_grad");
    REFUSES_OPTIMIZER(nn_num_parameters(sgd) + 1, "num_parameters");
    REFUSES_OPTIMIZER(nn_parameter(sgd, "weight"), "parameter");
    REFUSES_OPTIMIZER(nn_next_parameter(sgd, "", &(ModuleSlot *){NULL}), "next_parameter");
    REFUSES_OPTIMIZER(nn_freeze(sgd, "", true), "freeze");
    REFUSES_OPTIMIZER(nn_save(sgd, "nowhere"), "save");
    REFUSES_OPTIMIZER(nn_load(sgd, "nowhere"), "load");
    REFUSES_OPTIMIZER(nn_load_not_strict(sgd, "nowhere"), "load_not_strict");
    REFUSES_OPTIMIZER(nn_load_state_dict_not_strict(sgd, "", dict), "load_state_dict_not_strict");
    REFUSES_OPTIMIZER(nn_check_finite(sgd), "check_finite");
    REFUSES_OPTIMIZER(nn_state_dict(sgd, "", dict), "state_dict");
    REFUSES_OPTIMIZER(nn_load_state_dict(sgd, "", dict), "load_state_dict");
    REFUSES_OPTIMIZER(!isnan(nn_clip_grad_norm(sgd, 1)), "clip_grad_norm");
    REFUSES_OPTIMIZER(nn_check_connected(loss, sgd), "check_connected");
    REFUSES_OPTIMIZER(nn_adamw_new(sgd, (AdamWConfig){.lr = 1}), "adamw");
    REFUSES_OPTIMIZER(nn_add_parameter(sgd, "w", &field, tensor_ones(SHAPE(1))), "add_parameter");
    REFUSES_OPTIMIZER(nn_set_parameter(sgd, &field, tensor_ones(SHAPE(1))), "set_parameter");
    REFUSES_OPTIMIZER(nn_add_result(sgd, &field), "add_result");
    REFUSES_OPTIMIZER(nn_keep_result(sgd, &field, loss), "keep_result");
    REFUSES_OPTIMIZER(nn_add_child(sgd, "child", nn_dropout_new(0)), "add_child");
    nn_train(sgd, true);
    REFUSES_OPTIMIZER(nn_add_child(net, "sgd", sgd), "train"); /* the first error; the call frees
                                                                * sgd */
    sgd = nn_sgd_new(linear, (SGDConfig){.lr = 1});
    REFUSES_OPTIMIZER(nn_add_child(net, "sgd", sgd), "add_child");
    tensor_dict_free(dict);
    tensor_release(loss);
    nn_free(net);
    nn_free(linear);
}

TEST(a_model_is_no_optimizer) {
    Linear *linear = nn_linear_new(1, 1, false);
    Optimizer *optimizer = (Optimizer *)linear;
    TensorDict *dict = tensor_dict_new();
    FAILS(nn_optimizer_step(optimizer), "optimizer_step: Linear is no optimizer");
    nn_optimizer_zero_grad(optimizer);
    expect_error("optimizer_zero_grad: Linear is no optimizer");
    FAILS(nn_optimizer_set_group(optimizer, "", 1, 0),
          "optimizer_set_group: Linear is no optimizer");
    FAILS(nn_optimizer_scale_lr(optimizer, 1), "optimizer_scale_lr: Linear is no optimizer");
    FAILS(nn_optimizer_state_dict(optimizer, "", dict),
          "optimizer_state_dict: Linear is no optimizer");
    FAILS(nn_optimizer_load_state_dict(optimizer, "", dict),
          "optimizer_load_state_dict: Linear is no optimizer");
    tensor_dict_free(dict);
    nn_free(linear);
}

TEST(sgd_prints_its_settings) {
    Linear *linear = nn_linear_new(1, 1, false);
    Optimizer *sgd = nn_sgd_new(linear, (SGDConfig){.lr = 0.5, .momentum = 0.9});
    expect_printed_module(
        sgd, "SGD(lr=0.5, momentum=0.9, dampening=0, weight_decay=0, nesterov=False)\n");
    nn_free(sgd);
    nn_free(linear);
}

/* ---- the suite --------------------------------------------------------------------------- */

int main(void) { return run_tests("nn"); }
