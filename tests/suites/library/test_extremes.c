/* test_extremes.c - calls every public function that takes a shape, a dimension, a stride or a
 * count with the largest and smallest numbers, and with small ones. Each call must set an error or
 * give a valid result. `make sanitize` checks that no computation overflows. */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "../../../nn/nn.h"
#include "../common.h"

/* ---- numbers, from a generator of our own ---------------------------------------------------- */

static uint64_t state; /* xorshift64, Marsaglia 2003 */
static uint64_t draw(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static int draw_int(void) {
    static const int extremes[] = {INT_MIN,     INT_MIN + 1, INT_MIN + 8,
                                   INT_MAX - 8, INT_MAX - 1, INT_MAX};
    return draw(2) ? (int)draw(20) - 10 : extremes[draw(COUNT(extremes))];
}

/* A size that can be allocated, or a size that no machine has. */
static int64_t draw_size(void) {
    static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, INT_MIN,       -2,
                                       -1,        INT64_MAX,     INT64_MAX - 1, INT64_C(1) << 62};
    return draw(4) ? (int64_t)draw(4) : extremes[draw(COUNT(extremes))];
}

static Shape draw_shape(void) {
    Shape shape = {draw(4) ? (int)draw(5) : draw_int(), {0}};
    for (int d = 0; d < TENSOR_MAX_DIMS; d++) shape.dim[d] = draw_size();
    return shape;
}

static Axes draw_axes(void) {
    Axes axes = {draw(4) ? (int)draw(4) : draw_int(), {0}};
    for (int d = 0; d < TENSOR_MAX_DIMS; d++) axes.axis[d] = draw(2) ? (int)draw(3) : draw_int();
    return axes;
}

/* ---- what comes of them ---------------------------------------------------------------------- */

static bool within(int64_t n, int64_t most) { return n >= -most && n <= most; }

/* A tensor is valid if its elements can be counted and its strides can be added to pointers. */
static void expect_order(const Tensor *y) {
    ck_assert(y->shape.ndim >= 0 && y->shape.ndim <= TENSOR_MAX_DIMS);
    ck_assert(tensor_shape_fits(y->shape, 1));
    for (int d = 0; d < y->shape.ndim; d++) {
        ck_assert_int_ge(y->shape.dim[d], 0);
        if (tensor_numel(y) > 0) ck_assert(within(y->stride[d], INT64_C(1) << 32));
    }
}

/* y is a valid loan, or NULL with an error. */
static void borrowed(const Tensor *y) {
    ck_assert((y == NULL) == (tensor_error() != NULL));
    if (y) expect_order(y);
    tensor_clear_error();
}

static void owned(Tensor *y) {
    borrowed(y);
    tensor_release(y);
}

/* The call succeeded, or failed with an error. */
static void answered(bool done) {
    ck_assert(done == !tensor_error());
    tensor_clear_error();
}

static void module(void *made) {
    ck_assert((made == NULL) == (tensor_error() != NULL));
    nn_free(made);
    tensor_clear_error();
}

/* Applies every kind of loop to y, which may have any strides that as_strided accepts. */
static void use(Tensor *y) {
    expect_order(y);
    if (!dtype_is_float(y->dtype) || tensor_numel(y) > 1000) return;
    for (int d = 0; d < y->shape.ndim; d++) {
        borrowed(ag_softmax(y, d));
        borrowed(ag_log_softmax(y, d));
        borrowed(ag_var_dim(y, d, false));
        borrowed(ag_argmax(y, d));
        borrowed(ag_slice(y, d, 1, 3));
        borrowed(ag_sum_dims(y, (Axes){1, {d}}, true));
        borrowed(ag_flip(y, (Axes){1, {d}}));
        borrowed(ag_unsqueeze(y, d));
    }
    borrowed(ag_tanh(y));
    borrowed(ag_mul(y, y));
    borrowed(ag_contiguous(y));
    borrowed(ag_reshape(y, SHAPE(-1)));
    if (y->shape.ndim >= 2) borrowed(ag_matmul(y, ag_transpose(y, -1, -2)));
    if (y->shape.ndim >= 2) borrowed(ag_matmul(ag_transpose(y, -1, -2), y));
    if (y->shape.ndim == 3) borrowed(ag_attention(y, y, y, (AttentionMask){0}, 0.5));
    if (y->shape.ndim == 3) borrowed(ag_masked_softmax(y, NULL));
    owned(tensor_sort(y, NULL));
    owned(tensor_clone(y));
    answered(tensor_fill(y, 0.5));
    answered(tensor_uniform_(y, 0, 1));
    answered(tensor_add_(y, y, 1));
}

/* ---- the functions --------------------------------------------------------------------------- */

/* x: (2, 3, 4), a leaf. Each probe is called many times. */
typedef void Probe(Tensor *x);

static double numbers[6561]; /* 3^8: 8 dimensions of at most 3 */

static void probe_creation(Tensor *x) {
    static const bool bools[COUNT(numbers)];
    const DType dtype = (DType)draw(4);
    owned(tensor_zeros(draw_shape()));
    owned(tensor_full(draw_shape(), 2));
    owned(tensor_zeros_of(draw_shape(), dtype));
    owned(tensor_full_of(draw_shape(), 1, dtype));
    owned(tensor_from_doubles(draw_shape(), numbers));
    owned(tensor_from_floats(draw_shape(), (const float *)numbers));
    owned(tensor_from_int64s(draw_shape(), (const int64_t *)numbers));
    owned(tensor_from_bools(draw_shape(), bools));
    owned(tensor_eye(draw_size()));
    owned(tensor_randperm(draw_size()));
    (void)x;
}

static void probe_random(Tensor *x) {
    owned(tensor_rand(draw_shape()));
    owned(tensor_randn(draw_shape()));
    owned(tensor_uniform(-1, 1, draw_shape()));
    owned(tensor_normal(0, 1, draw_shape()));
    owned(tensor_bernoulli(0.5, draw_shape()));
    owned(tensor_randint(draw_size(), draw_size(), draw_shape()));
    (void)x;
}

static void probe_access(Tensor *x) {
    ck_assert_ptr_nonnull(tensor_shape_text(draw_shape()));
    const double value = tensor_get_at(x, draw_shape());
    ck_assert(value == value || tensor_error());
    tensor_clear_error();
    answered(tensor_set_at(x, 0.5, draw_shape()));
}

static void probe_as_strided(Tensor *x) {
    int64_t stride[TENSOR_MAX_DIMS];
    for (int d = 0; d < TENSOR_MAX_DIMS; d++)
        stride[d] = draw(3) ? (int64_t)draw(7) - 3 : draw_size();
    const int64_t offset = draw(4) ? (int64_t)draw(24) : draw_size();
    Tensor *y = tensor_as_strided(x, draw_shape(), stride, offset);
    ck_assert((y == NULL) == (tensor_error() != NULL));
    tensor_clear_error();
    if (y) use(y);
    tensor_release(y);
}

/* The stride of a dimension of size 1 is never used, so it may have any value up to 2^32. */
static void probe_stride_of_one(Tensor *x) {
    int64_t stride[] = {4, 1, 4};
    Shape shape = SHAPE(3, 4, 3);
    const int d = (int)draw(3);
    shape.dim[d] = 1;
    stride[d] = draw(2) ? draw_size() : ((int64_t)draw(2) * 2 - 1) * (INT64_C(1) << draw(63));
    const bool fits = within(stride[d], INT64_C(1) << 32);
    Tensor *y = tensor_as_strided(x, shape, stride, 0);
    ck_assert_msg((y != NULL) == fits, "stride %lld", (long long)stride[d]);
    tensor_clear_error();
    if (y) use(y);
    tensor_release(y);
}

static void probe_shapes(Tensor *x) {
    borrowed(ag_reshape(x, draw_shape()));
    borrowed(ag_view(x, draw_shape()));
    borrowed(ag_expand(x, draw_shape()));
    borrowed(ag_repeat(x, draw_shape()));
    borrowed(ag_permute(x, draw_axes()));
    borrowed(ag_sum_dims(x, draw_axes(), draw(2)));
    borrowed(ag_mean_dims(x, draw_axes(), draw(2)));
    borrowed(ag_flip(x, draw_axes()));
    answered(ag_mask_fits("mask", (AttentionMask){.causal = true}, draw_shape(), F64));
    answered(ag_mask_fits("mask", (AttentionMask){.window = x}, draw_shape(), F64));
}

static void probe_dims(Tensor *x) {
    typedef Tensor *OfDim(Tensor *, int);
    static OfDim *const of_dim[] = {ag_softmax, ag_log_softmax, ag_unsqueeze,
                                    ag_squeeze, ag_logsumexp,   ag_argmax,
                                    ag_argmin,  ag_tril,        ag_triu};
    for (int i = 0; i < COUNT(of_dim); i++) borrowed(of_dim[i](x, draw_int()));
    borrowed(ag_var_dim(x, draw_int(), draw(2)));
    borrowed(ag_max_dim(x, draw_int(), draw(2)));
    borrowed(ag_transpose(x, draw_int(), draw_int()));
    borrowed(ag_topk(x, draw_size(), draw_int(), NULL));
    borrowed(ag_topk(x, draw_size(), (int)draw(3), NULL));
    borrowed(ag_slice(x, draw_int(), draw_size(), draw_size()));
    borrowed(ag_slice(x, (int)draw(3), draw_size(), draw_size()));
    borrowed(ag_select(x, draw_int(), draw_size()));
    borrowed(ag_select(x, 0, draw_size()));
    borrowed(ag_repeat_interleave(x, draw_size(), draw_int()));
    borrowed(ag_repeat_interleave(x, draw_size(), 0));
}

static void probe_lists(Tensor *x) {
    Tensor *list[] = {x, x, x};
    Tensor *none = tensor_zeros(SHAPE(0));
    int n = INT_MIN;
    if (draw(2)) n = (int)draw(4);
    else if (!draw(2)) n = -1;
    borrowed(ag_cat(list, n, draw_int()));
    borrowed(ag_stack(list, n, draw_int()));
    list[1] = none;
    borrowed(ag_cat(list, n, draw_int()));
    borrowed(ag_stack(list, n, draw_int()));
    tensor_release(none);
}

static void probe_indices(Tensor *x) {
    int64_t index[24];
    for (int i = 0; i < COUNT(index); i++) index[i] = draw(3) ? (int64_t)draw(3) : draw_size();
    Tensor *row = tensor_from_int64s(SHAPE(2), index);
    Tensor *all = tensor_from_int64s(x->shape, index);
    Tensor *pair = tensor_from_int64s(SHAPE(2, 4), index);
    Tensor *w = tensor_zeros(SHAPE(3, 2));
    borrowed(ag_index_select(x, draw_int(), row));
    borrowed(ag_gather(x, draw_int(), all));
    borrowed(ag_embedding(w, row));
    borrowed(ag_cross_entropy(x, pair, draw_size(), REDUCE_MEAN));
    borrowed(ag_masked_softmax(x, row));
    borrowed(ag_attention_weights(x, 1, (AttentionMask){.valid_lens = row}, draw_size()));
    RELEASE(row, all, pair, w);
}

static void probe_modules(Tensor *x) {
    module(nn_layer_norm_new(draw_shape()));
    module(nn_rms_norm_new(draw_shape()));
    module(nn_linear_new(draw_size(), draw_size(), draw(2)));
    module(nn_embedding_new(draw_size(), draw_size()));
    module(nn_positional_encoding_new(draw_size(), 0, draw_size()));
    module(nn_additive_attention_new(draw_size(), 0));
    module(nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = draw_size(),
                                                                  .num_heads = draw_size(),
                                                                  .query_size = draw_size(),
                                                                  .key_size = draw_size(),
                                                                  .value_size = draw_size()}));
    (void)x;
}

/* A lazy parameter with any shape as its pattern: loading succeeds or sets an error. */
static void probe_lazy_parameters(Tensor *x) {
    typedef struct {
        Module module;
        Tensor *w;
    } Bare;
    static const ModuleClass kind = {"Bare", sizeof(Bare), NULL, NULL};
    Bare *bare = nn_module_new(&kind);
    TensorDict *dict = tensor_dict_new();
    answered(nn_add_lazy_parameter(bare, "w", &bare->w, draw_shape()));
    answered(tensor_dict_set(dict, "w", x));
    answered(nn_load_state_dict(bare, "", dict));
    tensor_dict_free(dict);
    nn_free(bare);
}

static Probe *const probes[] = {
    probe_creation,        probe_random, probe_access, probe_as_strided, probe_stride_of_one,
    probe_shapes,          probe_dims,   probe_lists,  probe_indices,    probe_modules,
    probe_lazy_parameters,
};

CASE("extremes")
LOOP_TEST(extremes_are_refused, COUNT(probes)) {
    state = (uint64_t)_i + 1;
    for (int i = 0; i < 500; i++) {
        Tensor *x = tensor_rand(SHAPE(2, 3, 4));
        ck_assert(tape_begin());
        probes[_i](x);
        tape_end();
        tensor_release(x);
    }
}

/* 2^60 expanded keys need no memory, but the workspace of a kernel would need memory for each key.
 */
TEST(keys_without_number) {
    const int64_t n = INT64_C(1) << 60;
    Tensor *one = tensor_ones(SHAPE(1, 1, 1));
    Tensor *none = tensor_ones(SHAPE(1, 0, 1));
    ck_assert(tape_begin());
    Tensor *keys = ag_expand(one, SHAPE(1, n, 1));
    Tensor *wide = ag_expand(one, SHAPE(1, 1, n));
    Tensor *empty = ag_expand(none, SHAPE(1, 0, n));
    const AttentionMask mask = {.causal = true};
    FAILS(ag_attention(one, keys, keys, mask, 0.5),
          "attention: q is (1, 1, 1), k is (1, 1152921504606846976, 1) and v is (1, "
          "1152921504606846976, 1): they are too large");
    ck_assert_ptr_null(ag_attention(keys, keys, keys, mask, 0));
    expect_error_like("attention: ", "they are too large");
    ck_assert_ptr_null(ag_attention(wide, wide, one, mask, 0));
    expect_error_like("attention: ", "they are too large");
    ck_assert_ptr_null(ag_attention(wide, empty, none, mask, 0));
    expect_error_like("attention: ", "they are too large");
    ck_assert_ptr_null(ag_attention(one, one, wide, mask, 0));
    expect_error_like("attention: ", "they are too large");
    tape_end();
    RELEASE(one, none);
}

/* A tensor without elements may have sizes whose product is too large for a stride. */
TEST(repeats_without_number) {
    Tensor *none = tensor_zeros(SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 19));
    ck_assert(tape_begin());
    FAILS(ag_repeat(none, SHAPE(1, 1, 1024)),
          "repeat: 1024 repeats of (0, 1099511627776, 524288) are too many");
    FAILS(ag_repeat_interleave(none, 8, 2),
          "repeat_interleave: 8 repeats of (0, 1099511627776, 524288) are too many");
    tape_end();
    tensor_release(none);
}

/* Rows that are not contiguous are gathered; an expanded row of 2^60 elements or more is too large
 * for that.
 */
TEST(rows_without_end) {
    Tensor *one = tensor_ones(SHAPE(1, 1));
    ck_assert(tape_begin());
    for (int power = 60; power < 63; power++) {
        Tensor *wide = ag_expand(one, SHAPE(1, INT64_C(1) << power));
        ck_assert_ptr_null(ag_sum(wide));
        expect_error_like("out of memory: ", " bytes");
        ck_assert_ptr_null(ag_logsumexp(wide, 1));
        expect_error_like("out of memory: ", " bytes");
        ck_assert(isnan(tensor_sum_of_squares(wide)));
        expect_error_like("", "memory");
    }
    tape_end();
    tensor_release(one);
}

int main(void) { return run_tests("extremes"); }
