/* test_seeds.c - do the documents, and every attention module with every mask, compute the same
 * here as in PyTorch?
 *
 * A test that is named after a document is the program of this document, with its names, modules
 * and formulas. Its results are compared with golden/seeds.safetensors, for which PyTorch ran the
 * document's own code (golden/generate_seeds.py). Both programs set a seed and draw all numbers
 * from there: initial weights, inputs, dropout, cotangents. No number is copied. The tests after
 * the documents run every module with every mask in golden/attention.safetensors. All tests run in
 * float32 and in float64.
 *
 * Run from the root of the repository, where the golden files are found. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../../nn/nn.h"
#include "../common.h"

#define NO_MASK ((AttentionMask){0})

/* ---- the golden numbers ------------------------------------------------------------------ */

static TensorDict *golden;
static char group[64]; /* the name of the current test: "002.2022.float32" */

static void open_golden(const char *path) {
    golden = tensor_load_safetensors(path);
    ck_assert_msg(golden != NULL, "run me from the root of the repository: %s", tensor_error());
}
static void open_documents(void) { open_golden("tests/golden/seeds.safetensors"); }
static void open_cases(void) { open_golden("tests/golden/attention.safetensors"); }
static void close_golden(void) { tensor_dict_free(golden); }

/* The same as these two lines of Python: torch.set_default_dtype(dtype); torch.manual_seed(seed) */
static void begin(int dtype, uint64_t seed, const char *name, ...) {
    va_list arguments;
    va_start(arguments, name);
    int n = vsnprintf(group, sizeof group, name, arguments);
    va_end(arguments);
    snprintf(group + n, sizeof group - (size_t)n, ".%s", tensor_dtype_name((DType)dtype));
    tensor_set_default_dtype((DType)dtype);
    tensor_manual_seed(seed);
}

/* float32: a relative error of 2e-6 plus 1e-6; float64: a relative error of 1e-12 plus a small
 * number, because sums may cancel. The weight of a masked key must be exactly zero. */
static bool close_to(double a, double b, DType dtype, bool is_weight) {
    const double rtol = dtype == F32 ? 2e-6 : 1e-12, atol = dtype == F32 ? 1e-6 : 1e-14;
    if (isnan(b)) return isnan(a);
    if (b == 0 && is_weight) return a == 0;
    return fabs(a - b) <= atol + rtol * fabs(b);
}

/* Compares elements 0, step, 2 step ... of x, row-major, with the n elements of expected. */
static void expect_every(int64_t step, const char *what, const Tensor *x, const double *expected,
                         int64_t n) {
    ck_assert_msg(x != NULL, "%s %s is NULL: %s", group, what, tensor_error());
    int64_t count = tensor_numel(x);
    ck_assert_msg((count + step - 1) / step == n, "%s %s is %s, which PyTorch's is not", group,
                  what, tensor_shape_text(x->shape));
    double *element = malloc((size_t)(count + 1) * sizeof *element);
    ck_assert(tensor_to_doubles(x, element));
    const bool weights = strstr(what, "weights") != NULL;
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(close_to(element[i * step], expected[i], x->dtype, weights),
                      "%s %s: element %" PRId64 " is %.17g, PyTorch's is %.17g", group, what,
                      i * step, element[i * step], expected[i]);
    free(element);
}

/* x must equal the golden tensor with this name. For a large tensor the file has only a sample. */
static void expect(const char *what, const Tensor *x) {
    char name[128];
    snprintf(name, sizeof name, "%s.%s", group, what);
    Tensor *sample = tensor_dict_get(golden, name);
    ck_assert_msg(sample && x, "%s: %s", name, tensor_error());
    ck_assert_int_eq(sample->dtype, x->dtype);
    int64_t count = tensor_numel(x), n = tensor_numel(sample);
    double *expected = malloc((size_t)(n + 1) * sizeof *expected);
    ck_assert(tensor_to_doubles(sample, expected));
    expect_every(count <= 128 ? 1 : (count / 64) | 1, what, x, expected, n);
    free(expected);
}

static void expect_shape(const Tensor *x, Shape shape) {
    ck_assert_msg(x != NULL, "%s: %s", group, tensor_error());
    ck_assert_str_eq(tensor_shape_text(x->shape), tensor_shape_text(shape));
}

/* Compares the gradients of all parameters: dW_q.weight ... */
static void expect_gradients(void *module) {
    Tensor **slots[16];
    int n = parameter_slots(module, slots, 16);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) expect(format("d%s", (*slots[i])->name), (*slots[i])->grad);
}

static void expect_same(const Tensor *a, const Tensor *b) {
    ck_assert_msg(a && b, "%s: %s", group, tensor_error());
    ck_assert_msg(tensor_allclose(a, b, 0, 0), "%s: these must be equal", group);
}

/* ---- what Python has and C has not -------------------------------------------------------- */

/* Python frees an object without a name. Here all named tensors of a test live until its end. */
static Tensor *names[64];
static int num_names;

static Tensor *own(Tensor *x) {
    ck_assert_msg(x != NULL, "%s: %s", group, tensor_error());
    ck_assert_int_lt(num_names, COUNT(names));
    names[num_names++] = x;
    return x;
}
static Tensor *keep(Tensor *x) { return own(tensor_retain(x)); }
static Tensor *input(Tensor *x) { return own(ag_requires_grad(x)); }

static void forget(void) {
    while (num_names > 0) tensor_release(names[--num_names]);
}

#define LENGTHS(shape, ...) own(tensor_from_int64s(shape, (int64_t[]){__VA_ARGS__}))

/* output.backward(torch.empty_like(output).uniform_(-1, 1)) */
static void backward(Tensor *output) {
    Tensor *cotangent = own(tensor_uniform(-1, 1, output->shape));
    ck_assert_msg(ag_backward_from(output, cotangent), "%s", tensor_error());
}

/* The output, the weights and, for a drawn cotangent, the gradients of all parameters. */
static void expect_run(Tensor *output, const Tensor *weights, void *module) {
    expect("output", output);
    expect("weights", weights);
    backward(output);
    expect_gradients(module);
}

/* ---- seed 000: multi-head attention ------------------------------------------------------ */

/* (batch_size, n, num_hiddens) -> (batch_size * num_heads, n, num_hiddens / num_heads) */
static Tensor *transpose_qkv(Tensor *X, int64_t num_heads) {
    X = ag_reshape(X, SHAPE(X->shape.dim[0], X->shape.dim[1], num_heads, -1));
    X = ag_permute(X, AXES(0, 2, 1, 3));
    return ag_reshape(X, SHAPE(-1, X->shape.dim[2], X->shape.dim[3]));
}

/* Reverses it. */
static Tensor *transpose_output(Tensor *X, int64_t num_heads) {
    X = ag_reshape(X, SHAPE(-1, num_heads, X->shape.dim[1], X->shape.dim[2]));
    X = ag_permute(X, AXES(0, 2, 1, 3));
    return ag_reshape(X, SHAPE(X->shape.dim[0], X->shape.dim[1], -1));
}

/* The forward of MultiHeadAttention, line by line as in the document. */
static Tensor *by_the_book(MultiHeadAttention *self, Tensor *queries, Tensor *keys, Tensor *values,
                           Tensor *valid_lens) {
    queries = transpose_qkv(nn_linear_forward(self->W_q, queries), self->num_heads);
    keys = transpose_qkv(nn_linear_forward(self->W_k, keys), self->num_heads);
    values = transpose_qkv(nn_linear_forward(self->W_v, values), self->num_heads);
    valid_lens = ag_repeat_interleave(valid_lens, self->num_heads, 0);
    DotProductAttention *attention = nn_dot_product_attention_new(0);
    Tensor *output = nn_dot_product_attention_forward(attention, queries, keys, values,
                                                      (AttentionMask){.valid_lens = valid_lens});
    nn_free(attention);
    Tensor *output_concat = transpose_output(output, self->num_heads);
    return nn_linear_forward(self->W_o, output_concat);
}

/* The example of 000 and, in three dialects, of 003. In MXNet and PyTorch the first input sets the
 * sizes; in 000 and in TensorFlow the program gives them. Training is off in 000, in MXNet outside
 * autograd.record(), and in TensorFlow. */
static void example(int dtype, const char *document, int seed, MultiHeadAttentionConfig config,
                    bool training) {
    begin(dtype, (uint64_t)seed, "%s.%d", document, seed);
    MultiHeadAttention *attention = nn_multi_head_attention_new(config);
    nn_train(attention, training);

    enum { batch_size = 2, num_queries = 4, num_kvpairs = 6 };
    Tensor *valid_lens = LENGTHS(SHAPE(2), 3, 2);
    Tensor *X = input(tensor_ones(SHAPE(batch_size, num_queries, config.num_hiddens)));
    Tensor *Y = input(tensor_ones(SHAPE(batch_size, num_kvpairs, config.num_hiddens)));
    tape_begin();
    Tensor *output = nn_multi_head_attention_forward(attention, X, Y, Y,
                                                     (AttentionMask){.valid_lens = valid_lens});
    expect_shape(output, SHAPE(batch_size, num_queries, config.num_hiddens)); /* (2, 4, 100) */
    expect_run(output, attention->attention_weights, attention);
    expect("dX", X->grad);
    expect("dY", Y->grad);

    nn_train(attention, false);
    output = nn_multi_head_attention_forward(attention, X, Y, Y,
                                             (AttentionMask){.valid_lens = valid_lens});
    expect_same(by_the_book(attention, X, Y, Y, valid_lens), output);
    Tensor *heads = transpose_qkv(Y, config.num_heads);
    expect_shape(heads, SHAPE(batch_size * config.num_heads, num_kvpairs,
                              config.num_hiddens / config.num_heads));
    expect_same(transpose_output(heads, config.num_heads), Y);
    tape_end();
    nn_free(attention);
    forget();
}

static const MultiHeadAttentionConfig lazy = {.num_hiddens = 100, .num_heads = 5, .dropout = 0.5},
                                      told = {.num_hiddens = 100,
                                              .num_heads = 5,
                                              .dropout = 0.5,
                                              .query_size = 100,
                                              .key_size = 100,
                                              .value_size = 100};

CASE("documents", .setup = open_documents, .teardown = close_golden, .inner_setup = frame_setup,
     .inner_teardown = frame_teardown)
RANGE_TEST(seed_000_fa4835f4a7945ea0, F32, F64 + 1) {
    example(_i, "000", 0, told, false);
    example(_i, "000", 1, told, false);
}

/* ---- seed 001: self-attention with a boolean mask ---------------------------------------- */

typedef struct {
    Module module;
    int64_t hidden_dim, head_dim, head_num;
    Linear *q, *k, *v, *out_proj;
    Dropout *attention_dropout;
    Tensor *weights; /* before dropout, to be compared */
} MultiHeadSelfAtten;

static const ModuleClass self_atten_class = {"MultiHeadSelfAtten", sizeof(MultiHeadSelfAtten), NULL,
                                             NULL};

static Linear *add_linear(void *self, const char *name, int64_t in, int64_t out) {
    Linear *linear = nn_linear_new(in, out, true);
    return nn_add_child(self, name, linear) ? linear : NULL;
}

static MultiHeadSelfAtten *self_atten_new(int64_t hidden_dim, int64_t head_num) {
    MultiHeadSelfAtten *self = nn_module_new(&self_atten_class);
    ck_assert_ptr_nonnull(self);
    self->hidden_dim = hidden_dim;
    self->head_dim = hidden_dim / head_num;
    self->head_num = head_num;
    self->q = add_linear(self, "q", hidden_dim, hidden_dim);
    self->k = add_linear(self, "k", hidden_dim, hidden_dim);
    self->v = add_linear(self, "v", hidden_dim, hidden_dim);
    self->out_proj = add_linear(self, "out_proj", hidden_dim, hidden_dim);
    self->attention_dropout = nn_dropout_new(0.1);
    nn_add_child(self, "attention_dropout", self->attention_dropout);
    nn_add_result(self, &self->weights);
    return nn_module_done(self);
}

/* x: (b, s, h)  attention_mask: int64, broadcast to (b, head_num, s, s), 0 is ignored */
static Tensor *self_atten_forward(MultiHeadSelfAtten *self, Tensor *x, Tensor *attention_mask) {
    const int64_t batch = x->shape.dim[0], seq_len = x->shape.dim[1];
    const Shape by_head = SHAPE(batch, seq_len, self->head_num, self->head_dim);
    Tensor *Q = nn_linear_forward(self->q, x);
    Tensor *K = nn_linear_forward(self->k, x);
    Tensor *V = nn_linear_forward(self->v, x); /* (b, s, h) */

    /* (b, s, h) -> (b, head_num, s, head_dim) */
    Tensor *q_state = ag_transpose(ag_view(Q, by_head), 1, 2);
    Tensor *k_state = ag_transpose(ag_view(K, by_head), 1, 2);
    Tensor *v_state = ag_transpose(ag_view(V, by_head), 1, 2);
    expect_shape(q_state, SHAPE(batch, self->head_num, seq_len, self->head_dim));

    /* (b, head_num, s, s) */
    Tensor *attention_weight = ag_matmul(q_state, ag_transpose(k_state, -1, -2));
    attention_weight = ag_scale(attention_weight, 1 / sqrt((double)self->head_dim));
    expect_shape(attention_weight, SHAPE(batch, self->head_num, seq_len, seq_len));
    Tensor *ignored = ag_eq(attention_mask, LENGTHS(SCALAR, 0));
    attention_weight = ag_masked_fill(attention_weight, ignored, (double)-INFINITY);

    attention_weight = ag_softmax(attention_weight, -1);
    nn_keep_result(self, &self->weights, attention_weight);
    attention_weight = nn_dropout_forward(self->attention_dropout, attention_weight);
    /* (b, head_num, s, s) @ (b, head_num, s, head_dim) -> (b, head_num, s, head_dim) */
    Tensor *output_mid = ag_matmul(attention_weight, v_state);

    /* -> (b, s, head_num, head_dim) -> (b, s, h) */
    output_mid = ag_contiguous(ag_transpose(output_mid, 1, 2));
    output_mid = ag_view(output_mid, SHAPE(batch, seq_len, -1));
    return nn_linear_forward(self->out_proj, output_mid);
}

/* (3, 2) -> (3, 1, 2) -> (3, 1, 1, 2) -> (3, 8, 2, 2) */
static Tensor *mask_001(void) {
    Tensor *mask = LENGTHS(SHAPE(3, 2), 0, 1, 0, 0, 1, 0);
    return ag_expand(ag_unsqueeze(ag_unsqueeze(mask, 1), 2), SHAPE(3, 8, 2, 2));
}

/* The document's definition, with our ops. In batch 1 all keys are masked: all scores are -inf, and
 * their softmax is 0 / 0 = NaN. As in PyTorch, NaN reaches the output and some gradients, but not
 * the gradients of q and k, because masked_fill stops it. */
static void definition_001(int dtype, int seed) {
    begin(dtype, (uint64_t)seed, "001.%d", seed);
    Tensor *X = input(tensor_rand(SHAPE(3, 2, 128)));
    MultiHeadSelfAtten *att_net = self_atten_new(128, 8);
    tape_begin();
    Tensor *out = self_atten_forward(att_net, X, mask_001());
    expect_shape(out, SHAPE(3, 2, 128));
    expect_run(out, att_net->weights, att_net);
    expect("dX", X->grad);
    tape_end();
    nn_free(att_net);
    forget();
}

/* The same network as a MultiHeadAttention. If all keys are masked, it gives zeros where the
 * document's code gives NaN. So for this test PyTorch ran the document's code with
 * softmax(...).nan_to_num(0). */
static void multi_head_attention_001(int dtype, int seed) {
    begin(dtype, (uint64_t)seed, "001zeros.%d", seed);
    Tensor *X = input(tensor_rand(SHAPE(3, 2, 128)));
    MultiHeadAttention *att_net =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.query_size = 128,
                                                               .key_size = 128,
                                                               .value_size = 128,
                                                               .num_hiddens = 128,
                                                               .num_heads = 8,
                                                               .dropout = 0.1,
                                                               .bias = true});
    tape_begin();
    Tensor *mask = keep(ag_ne(mask_001(), LENGTHS(SCALAR, 0)));
    Tensor *out = nn_multi_head_attention_forward(att_net, X, X, X, (AttentionMask){.keep = mask});
    expect_shape(out, SHAPE(3, 2, 128));
    expect_run(out, att_net->attention_weights, att_net);
    for (int64_t query = 0; query < 2; query++) /* only the bias of the last layer is left */
        for (int64_t i = 0; i < 128; i++)
            ck_assert_double_eq(tensor_get(out, 1, query, i), tensor_get(att_net->W_o->bias, i));
    expect("dX", X->grad);
    tape_end();
    nn_free(att_net);
    forget();
}

RANGE_TEST(seed_001_0ea6f6b330a5c08a, F32, F64 + 1) {
    definition_001(_i, 0);
    definition_001(_i, 11);
    multi_head_attention_001(_i, 0);
    multi_head_attention_001(_i, 11);
}

/* ---- seed 002: a narrower input ---------------------------------------------------------- */

/* Steps 2 to 8 of the document, with the shapes that it states. */
static Tensor *steps_002(MultiHeadAttention *net, Tensor *x, Tensor **weights) {
    enum { batch = 1, n = 4, d_model = 6, nh = 3, dk = d_model / nh };
    const Shape by_head = SHAPE(batch, n, nh, dk);
    Tensor *q = nn_linear_forward(net->W_q, x);
    expect_shape(q, SHAPE(1, 4, 6));
    q = ag_reshape(q, by_head);
    expect_shape(q, SHAPE(1, 4, 3, 2));
    q = ag_transpose(q, 1, 2);
    expect_shape(q, SHAPE(1, 3, 4, 2));
    Tensor *k = ag_transpose(ag_reshape(nn_linear_forward(net->W_k, x), by_head), 1, 2);
    Tensor *v = ag_transpose(ag_reshape(nn_linear_forward(net->W_v, x), by_head), 1, 2);

    expect_shape(ag_transpose(k, 2, 3), SHAPE(1, 3, 2, 4));
    Tensor *dist = ag_scale(ag_matmul(q, ag_transpose(k, 2, 3)), 1 / sqrt(dk));
    expect_shape(dist, SHAPE(1, 3, 4, 4));
    dist = ag_softmax(dist, -1);
    *weights = dist;

    Tensor *att = ag_matmul(dist, v);
    expect_shape(att, SHAPE(1, 3, 4, 2));
    att = ag_transpose(att, 1, 2);
    expect_shape(att, SHAPE(1, 4, 3, 2));
    att = ag_reshape(att, SHAPE(batch, n, d_model));
    expect_shape(att, SHAPE(1, 4, 6));
    return nn_linear_forward(net->W_o, att);
}

static void self_attention_002(int dtype, int seed) {
    begin(dtype, (uint64_t)seed, "002.%d", seed);
    enum { dim_in = 2, d_model = 6, num_heads = 3 };
    MultiHeadAttention *net = nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.query_size = dim_in,
                                   .key_size = dim_in,
                                   .value_size = dim_in, /* of each token */
                                   .num_hiddens = d_model,
                                   .num_heads = num_heads,
                                   .bias = true});
    Tensor *x = input(tensor_rand(SHAPE(1, 4, 2)));
    Tensor *weights;
    tape_begin();
    expect("output", steps_002(net, x, &weights));
    expect("weights", weights);

    Tensor *output = nn_multi_head_attention_forward(net, x, x, x, NO_MASK);
    expect_shape(output, SHAPE(1, 4, 6));
    expect_run(output, net->attention_weights, net);
    expect_shape(net->attention_weights, SHAPE(3, 4, 4)); /* (batch * num_heads, n, n) */
    expect("dx", x->grad);

    /* assert dim_in == self.dim_in */
    Tensor *wide = own(tensor_rand(SHAPE(1, 4, 3)));
    FAILS(nn_multi_head_attention_forward(net, wide, wide, wide, NO_MASK),
          "multi_head_attention: queries are (1, 4, 3): their last size 3 and the in_features"
          " 2 of W_q must be equal");
    tape_end();
    nn_free(net);
    forget();
}

RANGE_TEST(seed_002_ea84a240723ba19e, F32, F64 + 1) {
    self_attention_002(_i, 0);
    self_attention_002(_i, 2);
    self_attention_002(_i, 2022);
}

/* ---- seed 003: multi-head attention in three dialects ------------------------------------ */

/* Swin's mask: -100 between tokens that are neighbours only because of the shift. Here they are the
 * tokens in different halves of the last of four windows. */
static Tensor *swin_mask(void) {
    double mask[4][4][4] = {{{0}}};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) mask[3][i][j] = (i < 2) == (j < 2) ? 0 : -100;
    return own(tensor_from_doubles(SHAPE(4, 4, 4), &mask[0][0][0]));
}

/* window_mask, which the example does not use: two images of four windows of four tokens; keys and
 * values have other widths than queries; biases, and lengths. In all three dialects the layers draw
 * at the first input. (The Dense layers of TensorFlow ignore the sizes that the program gives.) */
static void windows_003(int dtype, const char *dialect) {
    begin(dtype, 3, "003%s.window", dialect);
    MultiHeadAttention *attention = nn_multi_head_attention_new((MultiHeadAttentionConfig){
        .num_hiddens = 12, .num_heads = 3, .dropout = 0.25, .bias = true});
    Tensor *queries = input(tensor_uniform(-1, 1, SHAPE(8, 4, 7)));
    Tensor *keys = input(tensor_uniform(-1, 1, SHAPE(8, 4, 5)));
    Tensor *values = input(tensor_uniform(-1, 1, SHAPE(8, 4, 3)));
    AttentionMask mask = {.valid_lens = LENGTHS(SHAPE(8), 4, 3, 4, 2, 1, 4, 4, 3),
                          .window = swin_mask()};
    tape_begin();
    Tensor *output = nn_multi_head_attention_forward(attention, queries, keys, values, mask);
    expect_shape(output, SHAPE(8, 4, 12));
    expect_run(output, attention->attention_weights, attention);
    expect("dqueries", queries->grad);
    expect("dkeys", keys->grad);
    expect("dvalues", values->grad);
    tape_end();
    nn_free(attention);
    forget();
}

RANGE_TEST(seed_003_50a0c1954a3f737a, F32, F64 + 1) {
    example(_i, "003mxnet", 1, lazy, false);
    example(_i, "003pytorch", 0, lazy, true);
    example(_i, "003pytorch", 3, lazy, true);
    example(_i, "003tensorflow", 2, told, false);

    windows_003(_i, "mxnet");
    windows_003(_i, "pytorch");
    windows_003(_i, "tensorflow");
}

/* ---- seed 004: a whole notebook ---------------------------------------------------------- */

static void cell(int dtype, int number) {
    snprintf(group, sizeof group, "004.%d.%s", number, tensor_dtype_name((DType)dtype));
}

enum { n_train = 50, n_test = 10 };
static Tensor *x_train;
static Tensor *y_train;
static Tensor *x_test;

static Tensor *f(Tensor *x) { return ag_add(ag_scale(ag_sin(x), 2), ag_pow_scalar(x, 0.8)); }

static void mock_dataset(int dtype) {
    cell(dtype, 2);
    Tensor *x = own(tensor_rand(SHAPE(n_train)));
    x_train = own(tensor_sort(ag_scale(x, 5), NULL));
    Tensor *noise = own(tensor_normal(0.0, 0.5, SHAPE(n_train)));
    y_train = keep(ag_add(f(x_train), noise));
    x_test = own(tensor_arange(0, 5, 0.5));
    ck_assert_int_eq(x_test->shape.dim[0], n_test); /* 10 */
    expect("x_train", x_train);
    expect("y_train", y_train);
    expect("x_test", x_test);
    expect("y_truth", f(x_test));

    cell(dtype, 7);
    expect("y_hat", ag_repeat(ag_mean(y_train), SHAPE(n_test)));
}

static void nonparametric_attention_pooling(int dtype) {
    Tensor *queries = ag_reshape(x_test, SHAPE(-1, 1));
    Tensor *keys = ag_reshape(x_train, SHAPE(1, -1));
    expect_shape(queries, SHAPE(10, 1));
    expect_shape(keys, SHAPE(1, 50));
    Tensor *a = ag_sub(queries, keys);
    expect_shape(a, SHAPE(10, 50));
    cell(dtype, 49);
    expect("a", a);

    Tensor *scores = ag_scale(ag_neg(ag_square(a)), 0.5);
    Tensor *attention_weights = ag_softmax(scores, 1);
    cell(dtype, 8);
    expect("attention_weights", attention_weights);
    expect_shape(attention_weights, SHAPE(10, 50));
    expect("y_hat", ag_matmul(attention_weights, y_train));
}

typedef struct {
    Module module;
    Tensor *w, *attention_weights;
} NWKernelRegression;

static const ModuleClass nw_class = {"NWKernelRegression", sizeof(NWKernelRegression), NULL, NULL};

static NWKernelRegression *nw_kernel_regression_new(void) {
    NWKernelRegression *net = nn_module_new(&nw_class);
    ck_assert_ptr_nonnull(net);
    nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
    nn_add_result(net, &net->attention_weights);
    return nn_module_done(net);
}

/* queries: (Q)  keys, values: (Q, K), each query has its own */
static Tensor *nw_kernel_regression_forward(NWKernelRegression *net, Tensor *queries, Tensor *keys,
                                            Tensor *values) {
    const int64_t K = keys->shape.dim[1];
    queries = ag_reshape(ag_repeat_interleave(queries, K, 0), SHAPE(-1, K));
    Tensor *scores = ag_scale(ag_neg(ag_square(ag_mul(ag_sub(queries, keys), net->w))), 0.5);
    Tensor *attention_weights = ag_softmax(scores, 1);
    nn_keep_result(net, &net->attention_weights, attention_weights);
    return ag_reshape(ag_bmm(ag_unsqueeze(attention_weights, 1), ag_unsqueeze(values, -1)),
                      SHAPE(-1));
}

/* x in n_train rows, without the diagonal: (n_train, n_train - 1) */
static Tensor *tile_of_others(Tensor *x) {
    Tensor *others = own(tensor_to(ag_add_scalar(ag_neg(own(tensor_eye(n_train))), 1), BOOL));
    Tensor *tile = ag_repeat(x, SHAPE(n_train, 1));
    expect_shape(tile, SHAPE(50, 50));
    return keep(ag_reshape(ag_masked_select(tile, others), SHAPE(n_train, -1)));
}

static void train(int dtype, NWKernelRegression *net, Tensor *keys, Tensor *values) {
    Optimizer *optimizer = nn_sgd_new(net, (SGDConfig){.lr = 0.5});
    double losses[5];
    for (int epoch = 0; epoch < 5; epoch++) {
        tape_begin();
        nn_optimizer_zero_grad(optimizer);
        Tensor *y_hat = nw_kernel_regression_forward(net, x_train, keys, values);
        Tensor *l = ag_sum(ag_mse_loss(y_hat, y_train, REDUCE_NONE));
        ck_assert(ag_backward(l) && nn_optimizer_step(optimizer));
        losses[epoch] = tensor_item(l);
        tape_end();
    }
    cell(dtype, 16);
    expect("losses", own(tensor_from_doubles(SHAPE(5), losses)));
    nn_free(optimizer);
}

static void parametric_attention_pooling(int dtype) {
    tape_begin_no_grad();
    Tensor *keys = tile_of_others(x_train);
    Tensor *values = tile_of_others(y_train);
    tape_end();
    cell(dtype, 13);
    expect("keys", keys);
    cell(dtype, 14);
    expect("values", values);
    expect_shape(keys, SHAPE(50, 49));
    NWKernelRegression *net = nw_kernel_regression_new();
    train(dtype, net, keys, values);
    cell(dtype, 17);
    expect("w", net->w);
    cell(dtype, 18);
    expect("attention_weights", net->attention_weights);
    expect_shape(net->attention_weights, SHAPE(50, 49));

    tape_begin();
    keys = ag_repeat(x_train, SHAPE(n_test, 1));
    values = ag_repeat(y_train, SHAPE(n_test, 1));
    Tensor *y_hat = nw_kernel_regression_forward(net, x_test, keys, values);
    cell(dtype, 19);
    expect("y_hat", ag_detach(ag_unsqueeze(y_hat, 1)));
    cell(dtype, 21);
    expect("attention_weights", net->attention_weights);
    tape_end();
    nn_free(net);
}

static void masked_softmax_operation(int dtype) {
    tape_begin_no_grad();
    cell(dtype, 23);
    Tensor *scores = own(tensor_rand(SHAPE(2, 2, 4)));
    expect("masked_attention_weights", ag_masked_softmax(scores, LENGTHS(SHAPE(2), 2, 3)));
    cell(dtype, 24);
    scores = own(tensor_rand(SHAPE(2, 2, 4)));
    expect("masked_attention_weights", ag_masked_softmax(scores, LENGTHS(SHAPE(2, 2), 1, 3, 2, 4)));
    tape_end();
}

static void scoring_functions(int dtype) {
    tape_begin();
    Tensor *queries = own(tensor_normal(0, 1, SHAPE(2, 1, 2)));
    Tensor *keys = own(tensor_ones(SHAPE(2, 10, 2)));
    Tensor *values = ag_reshape(own(tensor_arange(0, 40, 1)), SHAPE(1, 10, 4));
    values = ag_repeat(values, SHAPE(2, 1, 1));
    AttentionMask mask = {.valid_lens = LENGTHS(SHAPE(2), 2, 6)};
    cell(dtype, 26);
    expect("queries", queries);

    DotProductAttention *dot = nn_dot_product_attention_new(0.5);
    nn_train(dot, false);
    cell(dtype, 27);
    expect("output", nn_dot_product_attention_forward(dot, queries, keys, values, mask));
    expect("attention_weights", dot->attention_weights);
    expect_shape(dot->attention_weights, SHAPE(2, 1, 10));
    nn_free(dot);

    queries = own(tensor_normal(0, 1, SHAPE(2, 1, 20)));
    AdditiveAttention *additive = nn_additive_attention_new(8, 0.1);
    nn_train(additive, false);
    cell(dtype, 29);
    Tensor *output = nn_additive_attention_forward(additive, queries, keys, values, mask);
    expect("output", output);
    expect_shape(output, SHAPE(2, 1, 4));
    expect("attention_weights", additive->attention_weights);
    expect("W_q.weight", additive->W_q->weight);
    expect("w_v.weight", additive->w_v->weight);
    nn_free(additive);
    tape_end();
}

/* Multi-head attention of 4 queries and n keys; then self-attention. */
static void further_reading(int dtype, int first_cell, int64_t n, const char *output_name) {
    enum { num_hiddens = 10, num_heads = 5, batch_size = 2, num_queries = 4 };
    MultiHeadAttention *multi_head_attention =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.key_size = num_hiddens,
                                                               .query_size = num_hiddens,
                                                               .value_size = num_hiddens,
                                                               .num_hiddens = num_hiddens,
                                                               .num_heads = num_heads,
                                                               .dropout = 0.5});
    nn_train(multi_head_attention, false);
    Tensor *X = own(tensor_ones(SHAPE(batch_size, num_queries, num_hiddens)));
    Tensor *Y = own(tensor_ones(SHAPE(batch_size, n, num_hiddens)));
    AttentionMask mask = {.valid_lens = LENGTHS(SHAPE(2), 3, 2)};
    tape_begin();
    Tensor *output = nn_multi_head_attention_forward(multi_head_attention, X, Y, Y, mask);
    cell(dtype, first_cell);
    expect(output_name, output);
    expect_shape(output, SHAPE(2, 4, 10));
    cell(dtype, first_cell + 1);
    expect("attention.attention_weights", multi_head_attention->attention->attention_weights);
    expect_shape(multi_head_attention->attention_weights, SHAPE(10, 4, n));
    tape_end();
    nn_free(multi_head_attention);
}

RANGE_TEST(seed_004_935a0b883444fe2f, F32, F64 + 1) {
    begin(_i, 517109245, "004");
    tape_begin_no_grad();
    mock_dataset(_i);
    nonparametric_attention_pooling(_i);
    tape_end();
    parametric_attention_pooling(_i);
    masked_softmax_operation(_i);
    scoring_functions(_i);
    further_reading(_i, 33, 6, "output");
    further_reading(_i, 36, 4, "output_after_attention");
    forget();
}

/* ---- every attention module with every mask ---------------------------------------------- A case
 * is a line in the metadata of the file. The metadata "order" gives the order of the cases. */

typedef struct {
    char module[16];
    int seed, training;
    double dropout;
    int hiddens, heads, bias, lazy;
    int B, Q, K, Dq, Dk, Dv; /* q (B, Q, Dq)  k (B, K, Dk)  v (B, K, Dv) */
    char inputs[16]; /* "qkv"; "qkk": v is k; "xxx": all are one tensor; "transposed": views of
                      * (B, D, n) */
    char mask[8];    /* "none", or a letter for each part; the metadata "mask" explains the
                      * letters */
} Case;

static bool read_case(int number, Case *c) {
    const char *text = tensor_dict_metadata(golden, format("%d", number));
    if (!text) return false;
    int n = sscanf(text, "%15s %d %d %lf %d %d %d %d %d %d %d %d %d %d %15s %7s", c->module,
                   &c->seed, &c->training, &c->dropout, &c->hiddens, &c->heads, &c->bias, &c->lazy,
                   &c->B, &c->Q, &c->K, &c->Dq, &c->Dk, &c->Dv, c->inputs, c->mask);
    ck_assert_msg(n == 16, "case %d: %s", number, text);
    return true;
}

static void *module_of(const Case *c, bool fused) {
    void *module;
    if (!strcmp(c->module, "dot_product")) module = nn_dot_product_attention_new(c->dropout);
    else if (!strcmp(c->module, "additive"))
        module = nn_additive_attention_new(c->hiddens, c->dropout);
    else
        module = nn_multi_head_attention_new(
            (MultiHeadAttentionConfig){.num_hiddens = c->hiddens,
                                       .num_heads = c->heads,
                                       .dropout = c->dropout,
                                       .bias = c->bias,
                                       .query_size = c->lazy ? 0 : c->Dq,
                                       .key_size = c->lazy ? 0 : c->Dk,
                                       .value_size = c->lazy ? 0 : c->Dv,
                                       .fused = fused});
    ck_assert_msg(module != NULL, "%s", tensor_error());
    nn_train(module, c->training);
    return module;
}

/* Draws the leaves and returns their number. enters: the inputs, which are the leaves or views of
 * them. */
static int draw_inputs(const Case *c, Tensor *leaf_of[3], Tensor *enters[3]) {
    const int64_t n[] = {c->Q, c->K, c->K}, width[] = {c->Dq, c->Dk, c->Dv};
    const bool transposed = !strcmp(c->inputs, "transposed");
    int count = 3;
    if (!strcmp(c->inputs, "xxx")) count = 1;
    else if (!strcmp(c->inputs, "qkk")) count = 2;
    for (int i = 0; i < 3; i++) {
        Shape shape = transposed ? SHAPE(c->B, width[i], n[i]) : SHAPE(c->B, n[i], width[i]);
        leaf_of[i] = i < count ? input(tensor_uniform(-1, 1, shape)) : leaf_of[count - 1];
        enters[i] = transposed ? ag_transpose(leaf_of[i], 1, 2) : leaf_of[i];
    }
    return count;
}

/* Elements are 0, or -inf with probability 0.4. */
static Tensor *torn_window(Shape shape) {
    Tensor *zeros = own(tensor_zeros(shape));
    return keep(ag_masked_fill(zeros, own(tensor_bernoulli(0.4, shape)), (double)-INFINITY));
}

/* Lengths run from 0 to one more than there are keys. */
static AttentionMask draw_mask(const Case *c) {
    AttentionMask mask = NO_MASK;
    const int64_t B = c->B, Q = c->Q, K = c->K;
    if (!strcmp(c->mask, "none")) return mask;
    for (const char *letter = c->mask; *letter; letter++) {
        if (*letter == 'l') mask.valid_lens = own(tensor_randint(0, K + 2, SHAPE(B)));
        if (*letter == 'q') mask.valid_lens = own(tensor_randint(0, K + 2, SHAPE(B, Q)));
        if (*letter == 'k') mask.keep = own(tensor_bernoulli(0.6, SHAPE(B, c->heads, Q, K)));
        if (*letter == 'b') mask.keep = own(tensor_bernoulli(0.6, SHAPE(B, 1, 1, K)));
        if (*letter == 'p') mask.keep = own(tensor_bernoulli(0.6, SHAPE(Q, K)));
        if (*letter == 'w') mask.window = own(tensor_uniform(-3, 3, SHAPE(2, Q, K)));
        if (*letter == 'i') mask.window = torn_window(SHAPE(2, Q, K));
        if (*letter == 'c') mask.causal = true;
    }
    return mask;
}

/* Returns the module's output and sets *weights to its attention_weights. */
static Tensor *forward(const Case *c, void *module, bool fused, Tensor *x[3], AttentionMask mask,
                       const Tensor **weights) {
    Tensor *output;
    if (fused && !strcmp(c->module, "dot_product")) { /* dot-product attention has no fused
                                                       * module, so the op is called */
        output = ag_attention(x[0], x[1], x[2], mask, c->training ? c->dropout : 0);
        *weights = NULL;
    } else if (!strcmp(c->module, "dot_product")) {
        output = nn_dot_product_attention_forward(module, x[0], x[1], x[2], mask);
        *weights = ((DotProductAttention *)module)->attention_weights;
    } else if (!strcmp(c->module, "additive")) {
        output = nn_additive_attention_forward(module, x[0], x[1], x[2], mask);
        *weights = ((AdditiveAttention *)module)->attention_weights;
    } else {
        output = nn_multi_head_attention_forward(module, x[0], x[1], x[2], mask);
        *weights = ((MultiHeadAttention *)module)->attention_weights;
    }
    return output;
}

/* All numbers of PyTorch for a case, in one row, and how many have been compared. */
typedef struct {
    double *element;
    int64_t n, at;
} Joined;

static void expect_next(Joined *joined, const char *what, const Tensor *x, Shape shape) {
    expect_shape(x, shape);
    int64_t count = tensor_numel(x);
    ck_assert_int_le(joined->at + count, joined->n);
    expect_every(1, what, x, joined->element + joined->at, count);
    joined->at += count;
}

static void run_case(const Case *c, int dtype, int number, bool fused) {
    begin(dtype, (uint64_t)c->seed, "%d", number);
    Tensor *expected = tensor_dict_get(golden, group);
    Tensor *leaves[3];
    Tensor *inputs[3];
    ck_assert_msg(expected != NULL, "%s", tensor_error());
    Joined joined = {.n = tensor_numel(expected)};
    joined.element = malloc((size_t)joined.n * sizeof *joined.element);
    ck_assert(tensor_to_doubles(expected, joined.element));
    snprintf(group, sizeof group, "case %d, %s%s with mask %s, %s", number, fused ? "fused " : "",
             c->module, c->mask, tensor_dtype_name((DType)dtype));

    void *module = module_of(c, fused);
    tape_begin();
    int count = draw_inputs(c, leaves, inputs);
    AttentionMask mask = draw_mask(c);
    const Tensor *weights;
    Tensor *output = forward(c, module, fused, inputs, mask, &weights);
    int64_t width = !strcmp(c->module, "multi_head") ? c->hiddens : c->Dv;
    expect_next(&joined, "output", output, SHAPE(c->B, c->Q, width));
    const Shape by_head = SHAPE(c->B * c->heads, c->Q, c->K);
    if (fused) ck_assert_ptr_null(weights);
    if (fused) joined.at += by_head.dim[0] * by_head.dim[1] * by_head.dim[2];
    else expect_next(&joined, "weights", weights, by_head);
    backward(output);
    for (int i = 0; i < count; i++)
        expect_next(&joined, "the gradient of an input", leaves[i]->grad, leaves[i]->shape);
    Tensor **slots[8];
    int parameters = parameter_slots(module, slots, 8);
    for (int i = 0; i < parameters; i++)
        expect_next(&joined, (*slots[i])->name, (*slots[i])->grad, (*slots[i])->shape);
    ck_assert_int_eq(joined.at, joined.n);
    tape_end();
    nn_free(module);
    forget();
    free(joined.element);
}

/* Runs every case of a module. Returns how many there are. */
static int run_cases(const char *module, int dtype, bool fused) {
    int count = 0;
    Case c;
    for (int number = 0; read_case(number, &c); number++) {
        if (strcmp(c.module, module)) continue;
        run_case(&c, dtype, number, fused);
        count++;
    }
    return count;
}

enum { MASKS = 15, VARIANTS = 4 };

CASE("modules", .setup = open_cases, .teardown = close_golden, .inner_setup = frame_setup,
     .inner_teardown = frame_teardown)
RANGE_TEST(dot_product_attention, F32, F64 + 1) {
    ck_assert_int_eq(run_cases("dot_product", _i, false), MASKS * VARIANTS);
}

RANGE_TEST(additive_attention, F32, F64 + 1) {
    ck_assert_int_eq(run_cases("additive", _i, false), MASKS * VARIANTS);
}

RANGE_TEST(multi_head_attention, F32, F64 + 1) {
    ck_assert_int_eq(run_cases("multi_head", _i, false), MASKS * VARIANTS);
}

/* There are no weights to compare; everything else is the same. */
RANGE_TEST(fused_dot_product_attention, F32, F64 + 1) {
    ck_assert_int_eq(run_cases("dot_product", _i, true), MASKS * VARIANTS);
}

RANGE_TEST(fused_multi_head_attention, F32, F64 + 1) {
    ck_assert_int_eq(run_cases("multi_head", _i, true), MASKS * VARIANTS);
}

int main(void) { return run_tests("seeds"); }
