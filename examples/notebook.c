/* notebook.c - a notebook on attention, cell by cell, in C.
 *
 * The notebook draws its own data, fits them by attention pooling with and without a parameter,
 * and then builds scaled dot-product, additive, multi-head and self-attention. It ran under
 * PyTorch; this program draws the same numbers in the same order and prints what its cells printed.
 * Lay the two side by side: the names are the notebook's, and In [11] here is In [11] there. Cells
 * that only define something keep their heading; what they define is in a function here, or
 * in nn/ where it is an attention mechanism.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "../nn/nn.h"
#include "common/flags.h"
#include "common/output.h"

/* ---- what a notebook does without being asked ---------------------------------------------- */

static void die(void) {
    fprintf(stderr, "notebook: %s\n", tensor_error() ? tensor_error() : "cannot write the output");
    exit(1);
}

static Tensor *names[64];
static int num_names;

/* What a cell names lives until the kernel stops: takes over a reference and hands x back. */
static Tensor *own(Tensor *x) {
    if (!x || num_names == (int)(sizeof names / sizeof *names)) die();
    return names[num_names++] = x;
}

/* The same for a loan, so that it outlives its tape. */
static Tensor *keep(Tensor *x) { return own(tensor_retain(x)); }

static void stop_kernel(void) {
    while (num_names > 0) tensor_release(names[--num_names]);
}

static void in(int cell) { printf("%sIn [%d]:\n", cell == 1 ? "" : "\n", cell); }

static void print(const Tensor *x) {
    if (!x || !tensor_print(x, stdout)) die();
}

static void print_shape(const Tensor *x) {
    if (!x) die();
    printf("torch.Size([");
    for (int d = 0; d < x->shape.ndim; d++) printf("%s%" PRId64, d ? ", " : "", x->shape.dim[d]);
    printf("])\n");
}

static Tensor *lengths(Shape shape, const int64_t *elements) {
    return own(tensor_from_int64s(shape, elements));
}
#define LENGTHS(shape, ...) lengths(shape, (int64_t[]){__VA_ARGS__})

/* ---- 1 intuition: the data ----------------------------------------------------------------- */

enum { n_train = 50 }; /* train sample size */
static int64_t n_test;
static Tensor *x_train, *y_train; /* (n_train) */
static Tensor *x_test, *y_truth;  /* (n_test) */

static Tensor *f(Tensor *x) { /* 2 sin x + x^0.8 */
    return ag_add(ag_scale(ag_sin(x), 2), ag_pow_scalar(x, 0.8));
}

static void generate_mock_dataset(void) {
    tape_begin_no_grad();
    in(1);
    printf("Tapehead, retracing a notebook that ran under PyTorch 1.12.0+cu113\n");

    in(2);
    Tensor *x = own(tensor_rand(SHAPE(n_train)));
    x_train = own(tensor_sort(ag_scale(x, 5), NULL)); /* sorted train samples */

    Tensor *noise = own(tensor_normal(0.0, 0.5, SHAPE(n_train)));
    y_train = keep(ag_add(f(x_train), noise)); /* output of train samples */
    x_test = own(tensor_arange(0, 5, 0.5));    /* test samples */
    y_truth = keep(f(x_test));                 /* true label of test samples */
    n_test = x_test->shape.dim[0];
    printf("%" PRId64 "\n", n_test);

    in(3), print(x_train);
    in(4), print(y_truth);
    in(5), print(y_train);
    in(6), print(x_test);
    tape_end();
}

/* ---- 1.1 average pooling ------------------------------------------------------------------- */

static void average_pooling(void) {
    tape_begin_no_grad();
    in(7);
    Tensor *y_hat = ag_repeat(ag_mean(y_train), SHAPE(n_test));
    print(y_hat);
    tape_end();
}

/* ---- 1.2 nonparametric attention pooling ------------------------------------------------- */

/* queries: (Q)  keys: (K)  ->  (Q, 1) - (1, K) = (Q, K) */
static Tensor *diff(Tensor *queries, Tensor *keys) {
    return ag_sub(ag_reshape(queries, SHAPE(-1, 1)), ag_reshape(keys, SHAPE(1, -1)));
}

static Tensor *score_function(Tensor *queries, Tensor *keys) { /* -(q - k)^2 / 2 */
    return ag_scale(ag_neg(ag_square(diff(queries, keys))), 0.5);
}

/* scores: (Q, K)  values: (K)  ->  (Q) */
static Tensor *attention_pool(Tensor *scores, Tensor *values, Tensor **attention_weights) {
    *attention_weights = ag_softmax(scores, 1);
    return ag_matmul(*attention_weights, values);
}

static void nonparametric_attention_pooling(void) {
    tape_begin_no_grad();
    in(8);
    Tensor *attention_weights;
    Tensor *y_hat = attention_pool(score_function(x_test, x_train), y_train, &attention_weights);

    in(49); /* run last, but it stands here */
    print_shape(ag_reshape(x_test, SHAPE(-1, 1)));
    print_shape(ag_reshape(x_train, SHAPE(1, -1)));
    Tensor *a = ag_sub(ag_reshape(x_test, SHAPE(-1, 1)), ag_reshape(x_train, SHAPE(1, -1)));
    print_shape(a);

    in(9);
    print(y_hat);

    in(10);
    print(attention_weights);
    print_shape(attention_weights);
    tape_end();
}

/* ---- 1.3 parametric attention pooling ---------------------------------------------------- */

/* Every row of X_tile but its element on the diagonal: a sample is no key of its own. */
static Tensor *all_but_self(Tensor *tile) {
    Tensor *eye = own(tensor_eye(n_train));
    Tensor *others = own(tensor_to(ag_add_scalar(ag_neg(eye), 1), BOOL));
    return keep(ag_reshape(ag_masked_select(tile, others), SHAPE(n_train, -1)));
}

static void tile_the_samples(Tensor **keys, Tensor **values) {
    tape_begin_no_grad();
    in(11); /* (n_train, n_train) */
    Tensor *X_tile = ag_repeat(x_train, SHAPE(n_train, 1));
    print(X_tile);
    print_shape(X_tile);

    in(12); /* (n_train, n_train) */
    Tensor *Y_tile = ag_repeat(y_train, SHAPE(n_train, 1));
    print(Y_tile);
    print_shape(Y_tile);

    in(13); /* keys: (n_train, n_train - 1) */
    *keys = all_but_self(X_tile);
    print(*keys);
    print_shape(*keys);

    in(14); /* values: (n_train, n_train - 1) */
    *values = all_but_self(Y_tile);
    print(*values);
    print_shape(*values);
    tape_end();
}

typedef struct {
    Module module;
    Tensor *w;
    Tensor *attention_weights;
} NWKernelRegression;

static const ModuleClass nw_kernel_regression_class = {"NWKernelRegression",
                                                       sizeof(NWKernelRegression), NULL, NULL};

static NWKernelRegression *nw_kernel_regression_new(void) {
    NWKernelRegression *net = nn_module_new(&nw_kernel_regression_class);
    if (!net) return NULL;
    nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
    nn_add_result(net, &net->attention_weights);
    return nn_module_done(net);
}

static Tensor *score_function_with_parameter(Tensor *queries, Tensor *keys, Tensor *w) {
    return ag_scale(ag_neg(ag_square(ag_mul(ag_sub(queries, keys), w))), 0.5);
}

/* queries: (Q)  keys, values: (Q, K), each query has its own  ->  (Q) */
static Tensor *nw_kernel_regression_forward(NWKernelRegression *net, Tensor *queries, Tensor *keys,
                                            Tensor *values) {
    int64_t K = keys->shape.dim[1];
    queries = ag_reshape(ag_repeat_interleave(queries, K, 0), SHAPE(-1, K));
    Tensor *scores = score_function_with_parameter(queries, keys, net->w);
    Tensor *attention_weights = ag_softmax(scores, 1);
    nn_keep_result(net, &net->attention_weights, attention_weights);
    /* (Q, 1, K) (Q, K, 1) -> (Q, 1, 1) -> (Q) */
    return ag_reshape(ag_bmm(ag_unsqueeze(attention_weights, 1), ag_unsqueeze(values, -1)),
                      SHAPE(-1));
}

static void train(NWKernelRegression *net, Tensor *keys, Tensor *values) {
    Optimizer *optimizer = nn_sgd_new(net, (SGDConfig){.lr = 0.5});
    for (int epoch = 0; epoch < 5; epoch++) {
        tape_begin();
        nn_optimizer_zero_grad(optimizer);
        Tensor *y_hat = nw_kernel_regression_forward(net, x_train, keys, values);
        Tensor *l = ag_sum(ag_mse_loss(y_hat, y_train, REDUCE_NONE));
        if (!ag_backward(l) || !nn_optimizer_step(optimizer)) die();
        printf("epoch %d, loss %.6f\n", epoch + 1, tensor_item(l));
        tape_end();
    }
    nn_free(optimizer);
}

static void evaluate(NWKernelRegression *net) {
    tape_begin();
    in(19);
    Tensor *keys = ag_repeat(x_train, SHAPE(n_test, 1));   /* (n_test, n_train): in every row */
    Tensor *values = ag_repeat(y_train, SHAPE(n_test, 1)); /* the same keys, the same values */
    Tensor *y_hat = nw_kernel_regression_forward(net, x_test, keys, values);
    y_hat = ag_detach(ag_unsqueeze(y_hat, 1)); /* (n_test, 1), for a plot */
    if (!y_hat) die();

    in(20);
    print(net->w);

    in(21);
    print(net->attention_weights);
    print_shape(net->attention_weights);
    tape_end();
}

static void parametric_attention_pooling(void) {
    Tensor *keys, *values;
    tile_the_samples(&keys, &values);

    in(15); /* NWKernelRegression, above */
    in(16);
    NWKernelRegression *net = nw_kernel_regression_new();
    if (!net) die();
    train(net, keys, values);

    in(17);
    print(net->w);

    in(18);
    print(net->attention_weights);
    print_shape(net->attention_weights);

    evaluate(net);
    nn_free(net);
}

/* ---- 2 attention scoring functions: masked softmax ----------------------------------------- */

static void masked_softmax_operation(void) {
    tape_begin_no_grad();
    in(22); /* ag_masked_softmax, in autograd/ */
    in(23);
    Tensor *scores = own(tensor_rand(SHAPE(2, 2, 4)));
    print(ag_masked_softmax(scores, LENGTHS(SHAPE(2), 2, 3)));

    in(24);
    scores = own(tensor_rand(SHAPE(2, 2, 4)));
    print(ag_masked_softmax(scores, LENGTHS(SHAPE(2, 2), 1, 3, 2, 4)));
    tape_end();
}

/* ---- 2.1 scaled dot-product attention ---------------------------------------------------- */

/* arange(40) as two equal matrices (10, 4) of values: (2, 10, 4) */
static Tensor *two_value_matrices(void) {
    Tensor *values = own(tensor_arange(0, 40, 1));
    return ag_repeat(ag_reshape(values, SHAPE(1, 10, 4)), SHAPE(2, 1, 1));
}

static void scaled_dot_product_attention(void) {
    tape_begin();
    in(25); /* nn_dot_product_attention_new and _forward, in nn/attention.c */
    in(26);
    Tensor *queries = own(tensor_normal(0, 1, SHAPE(2, 1, 2)));
    Tensor *keys = own(tensor_ones(SHAPE(2, 10, 2)));
    print(queries);
    print(keys);
    Tensor *values = two_value_matrices();
    print(values);
    Tensor *valid_lens = LENGTHS(SHAPE(2), 2, 6);

    in(27);
    DotProductAttention *attention = nn_dot_product_attention_new(0.5);
    nn_train(attention, false);
    Tensor *output = nn_dot_product_attention_forward(attention, queries, keys, values,
                                                      (AttentionMask){.valid_lens = valid_lens});
    print(output);
    print_shape(output);
    print(attention->attention_weights);
    print_shape(attention->attention_weights);
    nn_free(attention);
    tape_end();
}

/* ---- 2.2 additive attention ---------------------------------------------------------------- */

static void additive_attention(void) {
    tape_begin();
    in(28); /* nn_additive_attention_new and _forward, in nn/attention.c */
    in(29);
    Tensor *queries = own(tensor_normal(0, 1, SHAPE(2, 1, 20)));
    Tensor *keys = own(tensor_ones(SHAPE(2, 10, 2)));
    Tensor *values = two_value_matrices();
    Tensor *valid_lens = LENGTHS(SHAPE(2), 2, 6);

    AdditiveAttention *attention = nn_additive_attention_new(8, 0.1);
    nn_train(attention, false);
    Tensor *output = nn_additive_attention_forward(attention, queries, keys, values,
                                                   (AttentionMask){.valid_lens = valid_lens});
    print(output);
    print_shape(output);
    print(attention->attention_weights);
    print_shape(attention->attention_weights);
    nn_free(attention);
    tape_end();
}

/* ---- further reading: multi-head attention and self-attention ------------------------------ */

enum { num_hiddens = 10, num_heads = 5, batch_size = 2, num_queries = 4, num_kvpairs = 6 };

/* Five heads on ten hidden units, evaluating; printed, as a cell prints its last expression. */
static MultiHeadAttention *five_heads(void) {
    MultiHeadAttention *multi_head_attention =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.key_size = num_hiddens,
                                                               .query_size = num_hiddens,
                                                               .value_size = num_hiddens,
                                                               .num_hiddens = num_hiddens,
                                                               .num_heads = num_heads,
                                                               .dropout = 0.5});
    nn_train(multi_head_attention, false);
    if (!nn_print(multi_head_attention, stdout)) die();
    return multi_head_attention;
}

static void show_heads(int cell, const MultiHeadAttention *multi_head_attention) {
    in(cell);
    print(multi_head_attention->attention->attention_weights);
    print_shape(multi_head_attention->attention->attention_weights);
}

static void multi_head_attention(void) {
    tape_begin();
    in(30); /* split_heads and join_heads, in nn/attention.c */
    in(31); /* nn_multi_head_attention_new and _forward, there too */
    in(32);
    MultiHeadAttention *attention = five_heads();

    in(33);
    Tensor *X = own(tensor_ones(SHAPE(batch_size, num_queries, num_hiddens)));
    Tensor *Y = own(tensor_ones(SHAPE(batch_size, num_kvpairs, num_hiddens)));
    AttentionMask mask = {.valid_lens = LENGTHS(SHAPE(2), 3, 2)};
    Tensor *output = nn_multi_head_attention_forward(attention, X, Y, Y, mask);
    print(output);
    print_shape(output);

    show_heads(34, attention);
    nn_free(attention);
    tape_end();
}

static void self_attention(void) {
    tape_begin();
    in(35);
    MultiHeadAttention *attention = five_heads();

    in(36); /* queries, keys and values are one */
    Tensor *X = own(tensor_ones(SHAPE(batch_size, num_queries, num_hiddens)));
    AttentionMask mask = {.valid_lens = LENGTHS(SHAPE(2), 3, 2)};
    Tensor *output_after_attention = nn_multi_head_attention_forward(attention, X, X, X, mask);
    print(output_after_attention);
    print_shape(output_after_attention);

    show_heads(37, attention);
    nn_free(attention);
    tape_end();
}

int main(int argc, char **argv) {
    const Flag no_flags[1] = {0};
    flags_parse(argc, argv, "notebook", "a notebook on attention, retraced in C", no_flags, 0);

    tensor_manual_seed(517109245); /* where the notebook's generator stood when it began */
    generate_mock_dataset();
    average_pooling();
    nonparametric_attention_pooling();
    parametric_attention_pooling();
    masked_softmax_operation();
    scaled_dot_product_attention();
    additive_attention();
    multi_head_attention();
    self_attention();

    stop_kernel();
    if (!output_stdout_ok()) die();
    return 0;
}
