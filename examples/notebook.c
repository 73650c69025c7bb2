/* notebook.c - a notebook on attention, cell by cell, in C.
 *
 * The notebook draws data, fits them by attention pooling without and with a parameter, and then
 * builds scaled dot-product, additive, multi-head and self-attention. The notebook ran under
 * PyTorch. This program draws the same numbers in the same order and prints the same cells. Read
 * the two side by side: the names are the notebook's, and In [11] there is cell(11) here.
 */
#include "../nn/nn.h"
#include "notebook/cell.h"
#include "common/training.h"

#include <math.h>

static Training run = {.program = "notebook",
                       .summary = "a notebook on attention, retraced in C",
                       .caption = {{"A row is a query x from 0 to 5, a column a key x, in order.",
                                    "In [10]: before a width was trained. In [21]: after, each row "
                                    "is narrow."}},
                       .seed = 517109245, /* the seed of the notebook, which a search found */
                       .steps = 5,
                       .lr = 0.5,
                       .every = 1,
                       .quiet = true}; /* the program prints only the notebook's output */

/* ---- 1 intuition: the data ----------------------------------------------------------------- */

enum { n_train = 50, n_test = 10 };
static Tensor *x_train;
static Tensor *y_train; /* (n_train) */
static Tensor *x_test;
static Tensor *y_truth; /* (n_test) */

static Tensor *f(Tensor *x) { /* 2 sin x + x^0.8 */
    return ag_add(ag_scale(ag_sin(x), 2), ag_pow_scalar(x, 0.8));
}

static void generate_mock_dataset(void) {
    cell(1);
    cell_printf("Tapehead, retracing a notebook that ran under PyTorch 1.12.0+cu113\n");
    cell(2);
    Tensor *x = cell_own(tensor_rand(SHAPE(n_train)));     /* in [0, 1) */
    x_train = cell_own(tensor_sort(ag_scale(x, 5), NULL)); /* sorted train samples */
    Tensor *noise = cell_own(tensor_normal(0.0, 0.5, SHAPE(n_train)));
    y_train = ag_add(f(x_train), noise);         /* output of train samples */
    x_test = cell_own(tensor_arange(0, 5, 0.5)); /* test samples */
    y_truth = f(x_test);                         /* true label of test samples */
    cell_printf("%d\n", (int)tensor_numel(x_test));
    cell(3);
    cell_print(x_train);
    cell(4);
    cell_print(y_truth);
    cell(5);
    cell_print(y_train);
    cell(6);
    cell_print(x_test);
}

/* ---- 1.1 average pooling, 1.2 nonparametric attention pooling -------------------------------- */

/* queries: (Q)  keys: (K)  ->  -(q - k)^2 / 2, (Q, K) */
static Tensor *score_function(Tensor *queries, Tensor *keys) {
    Tensor *diff = ag_sub(ag_reshape(queries, SHAPE(-1, 1)), ag_reshape(keys, SHAPE(1, -1)));
    return ag_scale(ag_neg(ag_square(diff)), 0.5);
}

static void pooling_without_a_parameter(void) {
    cell(7);
    cell_print(ag_repeat(ag_mean(y_train), SHAPE(n_test)));
    cell(8);
    Tensor *attention_weights = ag_softmax(score_function(x_test, x_train), 1); /* (Q, K) */
    cell(49);
    cell_print_shape(ag_reshape(x_test, SHAPE(-1, 1))); /* this cell stands here, but ran last */
    cell_print_shape(ag_reshape(x_train, SHAPE(1, -1)));
    cell_print_shape(score_function(x_test, x_train)); /* the shape of the difference */
    cell(9);
    cell_print(ag_matmul(attention_weights, y_train)); /* (Q) */
    cell(10);
    cell_show(attention_weights);
    cell_plot(10, attention_weights);
}

/* ---- 1.3 parametric attention pooling ---------------------------------------------------- */

typedef struct {
    Module module;
    Tensor *w, *attention_weights;
} NWKernelRegression;

static NWKernelRegression *nw_kernel_regression_new(void) {
    static const ModuleClass class = {"NWKernelRegression", sizeof(NWKernelRegression), NULL, NULL};
    NWKernelRegression *net = nn_module_new(&class);
    if (!net) return NULL;
    nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
    nn_add_result(net, &net->attention_weights);
    return nn_module_done(net);
}

/* f(q) = sum_k softmax_k(-((q - x_k) w)^2 / 2) y_k
 * queries: (Q)  keys, values: (Q, K), each query has its own  ->  (Q) */
static Tensor *nw_kernel_regression_forward(NWKernelRegression *net, Tensor *queries, Tensor *keys,
                                            Tensor *values) {
    int64_t K = keys ? keys->shape.dim[1] : 0;
    queries = ag_reshape(ag_repeat_interleave(queries, K, 0), SHAPE(-1, K));
    Tensor *scores = ag_scale(ag_neg(ag_square(ag_mul(ag_sub(queries, keys), net->w))), 0.5);
    Tensor *attention_weights = ag_softmax(scores, 1);
    nn_keep_result(net, &net->attention_weights, attention_weights);
    /* (Q, 1, K) (Q, K, 1) -> (Q, 1, 1) -> (Q) */
    return ag_reshape(ag_bmm(ag_unsqueeze(attention_weights, 1), ag_unsqueeze(values, -1)),
                      SHAPE(-1));
}

/* (n, n) -> (n, n - 1): removes the diagonal of tile, X_tile or Y_tile, because a sample is no key
 * for itself. */
static Tensor *all_but_self(Tensor *tile) {
    Tensor *self = cell_own(tensor_to(cell_own(tensor_eye(n_train)), BOOL));
    return ag_reshape(ag_masked_select(tile, ag_logical_not(self)), SHAPE(n_train, -1));
}

static void train(NWKernelRegression *net, Tensor *keys, Tensor *values) {
    Optimizer *optimizer = nn_sgd_new(net, (SGDConfig){.lr = run.lr});
    training_begin(&run, net, optimizer);
    while (training_next(&run)) {
        tape_begin();
        nn_optimizer_zero_grad(optimizer);
        Tensor *y_hat = nw_kernel_regression_forward(net, x_train, keys, values);
        Tensor *l = ag_sum(ag_mse_loss(y_hat, y_train, REDUCE_NONE));
        ag_backward(l);
        nn_optimizer_step(optimizer);
        training_report(&run, l);
        cell_printf("epoch %d, loss %.6f\n", (int)run.step, tensor_item(l));
        tape_end();
    }
    training_finish(&run);
    nn_free(optimizer);
}

static void pooling_with_a_parameter(void) {
    Tensor *X_tile = ag_repeat(x_train, SHAPE(n_train, 1)); /* (n_train, n_train) */
    Tensor *Y_tile = ag_repeat(y_train, SHAPE(n_train, 1));
    Tensor *keys = all_but_self(X_tile);
    Tensor *values = all_but_self(Y_tile); /* (.., n_train - 1) */
    cell(11);
    cell_show(X_tile);
    cell(12);
    cell_show(Y_tile);
    cell(13);
    cell_show(keys);
    cell(14);
    cell_show(values);
    cell(15);
    cell(16); /* NWKernelRegression, above */
    NWKernelRegression *net = nw_kernel_regression_new();
    if (!net) return;
    train(net, keys, values);
    cell(17);
    cell_print(net->w);
    cell(18);
    cell_show(net->attention_weights);
    cell(19);
    tape_begin();
    keys = ag_repeat(x_train, SHAPE(n_test, 1));   /* (n_test, n_train): in every row */
    values = ag_repeat(y_train, SHAPE(n_test, 1)); /* the same keys, the same values */
    nw_kernel_regression_forward(net, x_test, keys, values);
    cell(20);
    cell_print(net->w);
    cell(21);
    cell_show(net->attention_weights);
    cell_plot(21, net->attention_weights);
    tape_end();
    nn_free(net);
}

/* ---- 2 attention scoring functions: masked softmax ----------------------------------------- */

static void masked_softmax_operation(void) {
    cell(22);
    cell(23); /* ag_masked_softmax, in autograd/ */
    Tensor *scores = cell_own(tensor_rand(SHAPE(2, 2, 4)));
    cell_print(ag_masked_softmax(scores, CELL_INTEGERS(SHAPE(2), 2, 3)));
    cell(24);
    scores = cell_own(tensor_rand(SHAPE(2, 2, 4)));
    cell_print(ag_masked_softmax(scores, CELL_INTEGERS(SHAPE(2, 2), 1, 3, 2, 4)));
}

/* ---- 2.1 scaled dot-product attention, 2.2 additive attention ------------------------------ */

/* The same keys and values for both; both are in nn/attention.c. */
static void attention_scoring_functions(void) {
    cell(25);
    cell(26);
    Tensor *queries = cell_own(tensor_normal(0, 1, SHAPE(2, 1, 2)));
    Tensor *keys = cell_own(tensor_ones(SHAPE(2, 10, 2)));
    Tensor *values = ag_reshape(cell_own(tensor_arange(0, 40, 1)), SHAPE(1, 10, 4));
    values = ag_repeat(values, SHAPE(2, 1, 1)); /* (2, 10, 4): two equal matrices */
    AttentionMask mask = {.valid_lens = CELL_INTEGERS(SHAPE(2), 2, 6)};
    cell_print(queries);
    cell_print(keys);
    cell_print(values);
    cell(27);
    DotProductAttention *dot = nn_dot_product_attention_new(0.5);
    nn_train(dot, false);
    cell_show(nn_dot_product_attention_forward(dot, queries, keys, values, mask));
    if (dot) cell_show(dot->attention_weights);
    nn_free(dot);
    cell(28);
    cell(29);
    queries = cell_own(tensor_normal(0, 1, SHAPE(2, 1, 20)));
    AdditiveAttention *additive = nn_additive_attention_new(8, 0.1);
    nn_train(additive, false);
    cell_show(nn_additive_attention_forward(additive, queries, keys, values, mask));
    if (additive) cell_show(additive->attention_weights);
    nn_free(additive);
}

/* ---- further reading: multi-head attention and self-attention ------------------------------ */

enum { num_hiddens = 10 };

/* Three cells: multi-head attention with five heads and ten hidden units is made, applied and
 * shown. */
static void five_heads(int first, Tensor *X, Tensor *Y) {
    cell(first);
    MultiHeadAttentionConfig config = {.num_hiddens = num_hiddens, .num_heads = 5, .dropout = 0.5};
    config.query_size = config.num_hiddens;
    config.key_size = config.num_hiddens;
    config.value_size = config.num_hiddens;
    MultiHeadAttention *attention = nn_multi_head_attention_new(config);
    nn_train(attention, false);
    nn_print(attention, stdout);
    AttentionMask mask = {.valid_lens = CELL_INTEGERS(SHAPE(2), 3, 2)};
    cell(first + 1);
    cell_show(nn_multi_head_attention_forward(attention, X, Y, Y, mask));
    cell(first + 2);
    if (attention) cell_show(attention->attention->attention_weights);
    nn_free(attention);
}

static void multi_head_attention(void) {
    Tensor *X = cell_own(tensor_ones(SHAPE(2, 4, num_hiddens))); /* (batch, queries, num_hiddens) */
    Tensor *Y = cell_own(tensor_ones(SHAPE(2, 6, num_hiddens))); /* (batch, kvpairs, num_hiddens) */
    cell(30);
    cell(31); /* nn_multi_head_attention_new and _forward, in nn/attention.c */
    five_heads(32, X, Y);
    five_heads(35, X, X); /* queries, keys and values are the same tensor */
}

/* ---- all cells, from the top --------------------------------------------------------------- */

/* The losses that the original printed, with its seed, learning rate and five steps. */
static void compare_losses(void) {
    static const double original[] = {31.119806, 10.461807, 10.461460, 10.461108, 10.460758};
    double furthest = 0;
    for (int i = 0; i < run.step; i++) furthest = fmax(furthest, fabs(run.losses[i] - original[i]));
    training_expect(&run, "furthest from the original's losses", furthest, "<", 1e-5);
}

static const Flag flags[] = {
    SEED_FLAG("--seed", run.seed, "Of the data, the parameters and the dropout."),
    INTEGER_FLAG("--steps", run.steps, 1, 1e6, "from 1 to 10^6", "Of the parametric pooling."),
    NUMBER_FLAG("--lr", run.lr, 1e-300, 1e300, "above 0", "Learning rate of the pooling."),
    OUTPUT_FLAG("--log", run.log, "FILE.csv", "Write the losses."),
    OUTPUT_FLAG("--plot", run.plot, "FILE.svg", "Draw where the attention looks."),
};

int main(int argc, char **argv) {
    const Training before = run;
    flags_parse(argc, argv, run.program, run.summary, flags, sizeof flags / sizeof *flags);
    training_check_files(&run);
    tensor_manual_seed(run.seed);
    tape_begin_no_grad(); /* results live until the kernel stops */
    generate_mock_dataset();
    pooling_without_a_parameter();
    pooling_with_a_parameter();
    tape_begin();
    masked_softmax_operation();
    attention_scoring_functions();
    multi_head_attention();
    tape_end();
    tape_end();
    cell_stop_kernel();
    training_show(&run, cell_maps, cell_num_maps);
    if (run.seed == before.seed && run.steps == before.steps && run.lr == before.lr)
        compare_losses();
    return training_status(&run);
}
