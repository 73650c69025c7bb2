/* test_attention.c - tests of masks and of the fused attention. (test_golden.c and test_seeds.c
 * compare them with PyTorch.) The fused op equals the composed ops, also the draws of dropout. Its
 * memory grows with the lengths, not with their product. A masked key changes no result. An error
 * names the role of the tensor that does not fit.
 *
 * The linker replaces the system's allocation functions by the functions below. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __FreeBSD__
#include <malloc_np.h>
#else
#include <malloc.h>
#endif

#include "../../../nn/nn.h"
#include "../common.h"

#define NO_MASK ((AttentionMask){0})

static int64_t bytes, peak; /* bytes in use since both were set to 0, and their maximum */
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    void *block = __real_aligned_alloc(alignment, size);
    bytes += (int64_t)malloc_usable_size(block);
    if (bytes > peak) peak = bytes;
    return block;
}
void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block) {
    bytes -= (int64_t)malloc_usable_size(block);
    __real_free(block);
}

/* ---- a mask of any parts ------------------------------------------------------------------- */

enum { LENS = 1, KEEP = 2, WINDOW = 4, CAUSAL = 8, BIAS = 16, MASKS = 32 };

/* All masks. The first 8, a sample, are none, each part alone, lengths with causal, and all. */
static const int nth_mask[MASKS] = {0,  1,  2,  4,  8,  16, 9,  31, 3,  5,  6,  7,  10, 11, 12, 13,
                                    14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};

typedef struct {
    Tensor *part[4];
    AttentionMask mask;
} Drawn;

/* Draws the parts of a mask: lengths from 0 to K + 1; two windows; a bias that requires a gradient.
 */
static Drawn draw_mask(int parts, int64_t B, int64_t H, int64_t Q, int64_t K) {
    Drawn d = {.mask = {.causal = (parts & CAUSAL) != 0}};
    const bool several = parts & CAUSAL;
    if (parts & LENS) d.part[0] = tensor_randint(0, K + 2, several ? SHAPE(B) : SHAPE(B, Q));
    if (parts & KEEP)
        d.part[1] = tensor_bernoulli(0.6, several ? SHAPE(H, Q, K) : SHAPE(B, 1, 1, K));
    if (parts & WINDOW) d.part[2] = tensor_uniform(-2, 2, SHAPE(2, Q, K));
    if (parts & BIAS)
        d.part[3] =
            ag_requires_grad(tensor_uniform(-2, 2, several ? SHAPE(H, Q, K) : SHAPE(B, 1, 1, K)));
    ck_assert_msg(!tensor_error(), "%s", tensor_error());
    d.mask.valid_lens = d.part[0];
    d.mask.keep = d.part[1];
    d.mask.window = d.part[2];
    d.mask.bias = d.part[3];
    return d;
}

/* ---- the fused op and its composed twin ---------------------------------------------------- */

typedef Tensor *Attend(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout);

static Tensor *composed(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    double scale = 1 / sqrt((double)q->shape.dim[q->shape.ndim - 1]);
    Tensor *scores = ag_matmul(q, ag_transpose(k, -2, -1));
    Tensor *weights = ag_dropout(ag_attention_weights(scores, scale, mask, 1), dropout);
    return ag_matmul(weights, v);
}

typedef struct {
    Tensor *tensor[5]; /* the result, dq, dk, dv; dbias or NULL */
    Generator after;   /* the generator after forward; backward must not change it */
} Outcome;

/* Runs forward and backward, always from the same state of the generator. x: three leaves; if
 * permuted is true, the inputs are permuted views of them. */
static Outcome outcome_of(Attend *attend, Tensor *const *x, bool permuted, AttentionMask mask,
                          double dropout, const Tensor *dy) {
    Outcome o;
    Tensor *in[3];
    tensor_manual_seed(9);
    tape_begin();
    for (int i = 0; i < 3; i++) in[i] = permuted ? ag_permute(x[i], AXES(0, 2, 1, 3)) : x[i];
    o.tensor[0] = attend(in[0], in[1], in[2], mask, dropout);
    o.after = *tensor_generator_current();
    ck_assert_msg(ag_backward_from(o.tensor[0], dy), "%s", tensor_error());
    ck_assert_mem_eq(tensor_generator_current(), &o.after, sizeof o.after);
    tape_end_keeping(o.tensor[0]);
    for (int i = 0; i < 3; i++) {
        o.tensor[1 + i] = x[i]->grad;
        x[i]->grad = NULL;
    }
    o.tensor[4] = mask.bias ? mask.bias->grad : NULL;
    if (mask.bias) mask.bias->grad = NULL;
    return o;
}

static void expect_twins(Tensor *const *x, bool permuted, AttentionMask mask, double dropout,
                         const Tensor *dy, double tolerance) {
    static const char *const what[] = {"the result", "dq", "dk", "dv", "dbias"};
    Outcome fused = outcome_of(ag_attention, x, permuted, mask, dropout, dy);
    Outcome twin = outcome_of(composed, x, permuted, mask, dropout, dy);
    for (int i = 0; i < (mask.bias ? 5 : 4); i++)
        expect_close(what[i], fused.tensor[i], twin.tensor[i], tolerance);
    ck_assert_mem_eq(&fused.after, &twin.after, sizeof twin.after);
    release_all(fused.tensor, 5);
    release_all(twin.tensor, 5);
}

/* The sizes need one block of queries and a part of a second, one tile of keys and a part of a
 * second, and vectors that are not full.
 */
enum { B = 4, H = 2, Q = 101, K = 259, D = 3, DV = 2 };

CASE("many queries and keys", .is_long = true)
LOOP_TEST(fused_attention_is_its_composed_twin, sampled(MASKS, 4)) {
    const int parts = nth_mask[_i];
    for (int dtype = F32; dtype <= F64; dtype++) {
        tensor_set_default_dtype((DType)dtype);
        tensor_manual_seed((uint64_t)parts);
        Tensor *x[] = {tensor_randn(SHAPE(B, H, Q, D)), tensor_randn(SHAPE(B, H, K, D)),
                       tensor_randn(SHAPE(B, H, K, DV)), tensor_randn(SHAPE(B, H, Q, DV))};
        Drawn d = draw_mask(parts, B, H, Q, K);
        for (int i = 0; i < 3; i++) ag_requires_grad(x[i]);
        for (int p = 0; p < 3; p++)
            expect_twins(x, false, d.mask, p * 0.3, x[3], dtype == F64 ? 1e-12 : 1e-5);
        release_all(x, 4);
        release_all(d.part, 4);
    }
}

CASE("fused")
/* Scores so far apart that most weights are denormal or 0. */
LOOP_TEST(sharp_attention_is_its_composed_twin, 2) {
    const DType dtype = _i ? F64 : F32;
    tensor_set_default_dtype(dtype);
    tensor_manual_seed(5);
    Tensor *x[] = {tensor_normal(0, 40, SHAPE(B, H, Q, D)), tensor_randn(SHAPE(B, H, K, D)),
                   tensor_randn(SHAPE(B, H, K, DV)), tensor_randn(SHAPE(B, H, Q, DV))};
    for (int i = 0; i < 3; i++) ag_requires_grad(x[i]);
    for (int p = 0; p < 2; p++)
        expect_twins(x, false, NO_MASK, p * 0.3, x[3], dtype == F64 ? 1e-11 : 2e-4);
    release_all(x, 4);
}

/* For q = 1 the scores are the numbers in k, and with the identity matrix as v the result is the
 * weights. The largest weight is about 1; it lies in the first tile of 256 keys or in the second. A
 * float weight below 2^-100 must be 0. */
LOOP_TEST(a_weight_that_would_be_lost_is_0, 4) {
    enum { KEYS = 300 };
    double score[KEYS], weight[KEYS];
    const int largest = _i / 2 ? 280 : 150;
    const bool doubles =
        _i % 2 || !strcmp(tensor_kernels()->name, "plain"); /* the plain kernel computes in
                                                             * double */
    tensor_set_default_dtype(_i % 2 ? F64 : F32);
    for (int j = 0; j < KEYS; j++) score[j] = j == largest ? 0 : -65 - abs(j - largest);
    Tensor *q = tensor_ones(SHAPE(1, 1, 1));
    Tensor *v = tensor_eye(KEYS);
    Tensor *k = tensor_from_doubles(SHAPE(1, KEYS, 1), score);
    Tensor *values = tensor_reshape(v, SHAPE(1, KEYS, KEYS));
    tape_begin_no_grad();
    ck_assert(tensor_to_doubles(ag_attention(q, k, values, NO_MASK, 0), weight));
    tape_end();
    for (int j = 0; j < KEYS; j++) {
        const double want = !doubles && score[j] < log(0x1p-100) ? 0 : exp(score[j]);
        const double off = fabs(weight[j] - want);
        ck_assert_msg(off <= (_i % 2 ? 1e-15 : 1e-5) * want + (_i % 2 ? 0 : 1e-44), "%d: %g", j,
                      weight[j]);
    }
    RELEASE(q, k, v, values);
}

CASE("many queries and keys", .is_long = true)
/* More blocks of queries than the kernel processes at once; only some of them need the last tile of
 * keys. The rows of keys are contiguous, or rows of several heads, or the columns of a matrix. */
LOOP_TEST(fused_attention_of_many_blocks, sampled(MASKS, 4)) {
    tensor_set_default_dtype(F64);
    tensor_manual_seed(3);
    Tensor *x[] = {tensor_randn(SHAPE(2, 1, 333, 3)), tensor_randn(SHAPE(2, 1, 600, 3)),
                   tensor_randn(SHAPE(2, 1, 600, 2)), tensor_randn(SHAPE(2, 1, 333, 2))};
    Tensor *z[] = {tensor_randn(SHAPE(2, 333, 2, 3)), tensor_randn(SHAPE(2, 600, 2, 3)),
                   tensor_randn(SHAPE(2, 600, 2, 2)), tensor_randn(SHAPE(2, 2, 333, 2))};
    Tensor *turned[] = {tensor_randn(SHAPE(2, 1, 3, 600)), tensor_randn(SHAPE(2, 1, 2, 600))};
    Tensor *c[] = {x[0], tensor_view_transpose(turned[0], 2, 3),
                   tensor_view_transpose(turned[1], 2, 3), x[3]};
    Drawn d = draw_mask(nth_mask[_i], 2, 1, 333, 600);
    for (int i = 0; i < 3; i++) {
        ag_requires_grad(x[i]);
        ag_requires_grad(z[i]);
    }
    for (int i = 1; i < 3; i++) ag_requires_grad(c[i]);
    for (int p = 0; p < 2; p++) {
        expect_twins(x, false, d.mask, p * 0.5, x[3], 1e-12);
        expect_twins(c, false, d.mask, p * 0.5, c[3], 1e-12);
        expect_twins(z, true, d.mask, p * 0.5, z[3], 1e-12);
    }
    release_all(x, 4);
    release_all(z, 4);
    release_all(d.part, 4);
    release_all(turned, 2);
    release_all(c + 1, 2);
}

CASE("fused")
/* Without heads, and with heads as multi-head attention has them: views of (B, N, H, D). */
TEST(fused_attention_takes_what_its_twin_takes) {
    Tensor *x[] = {tensor_randn(SHAPE(B, Q, D)), tensor_randn(SHAPE(B, K, D)),
                   tensor_randn(SHAPE(B, K, DV)), tensor_randn(SHAPE(B, Q, DV))};
    Tensor *z[] = {tensor_randn(SHAPE(B, Q, H, D)), tensor_randn(SHAPE(B, K, H, D)),
                   tensor_randn(SHAPE(B, K, H, DV)), tensor_randn(SHAPE(1, 1, Q, 1))};
    Drawn d = draw_mask(LENS | KEEP | WINDOW, B, 1, Q, K);
    Tensor *wide = tensor_view_expand(z[3], SHAPE(B, H, Q, DV)); /* a cotangent of stride 0 */
    for (int i = 0; i < 3; i++) {
        ag_requires_grad(x[i]);
        ag_requires_grad(z[i]);
    }
    expect_twins(x, false, d.mask, 0.25, x[3], 1e-12);
    expect_twins(z, true, d.mask, 0.25, wide, 1e-12);
    release_all(x, 4);
    release_all(z, 4);
    release_all(d.part, 4);
    tensor_release(wide);
}

/* So many keys that backward uses smaller blocks of queries. The sizes are multiples of a vector,
 * so rows are read in place. */
TEST(fused_attention_of_many_keys) {
    Tensor *x[] = {tensor_randn(SHAPE(1, 3, 100, 16)), tensor_randn(SHAPE(1, 3, 3001, 16)),
                   tensor_randn(SHAPE(1, 3, 3001, 32)), tensor_randn(SHAPE(1, 3, 100, 32))};
    for (int i = 0; i < 3; i++) ag_requires_grad(x[i]);
    expect_twins(x, false, NO_MASK, 0, x[3], 1e-11);
    expect_twins(x, false, (AttentionMask){.causal = true}, 0.5, x[3], 1e-11);
    release_all(x, 4);
}

/* Composed attention of k and v whose heads are copied for each query head of their group. */
static Tensor *repeated(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    const int64_t group = q->shape.dim[1] / k->shape.dim[1];
    return composed(q, ag_repeat_interleave(k, group, 1), ag_repeat_interleave(v, group, 1), mask,
                    dropout);
}

CASE("many queries and keys", .is_long = true)
/* Heads that share keys and values, also where the kernel copies their rows (permuted, and more
 * than two blocks of queries). The sums over a group do not depend on the number of threads. */
LOOP_TEST(fused_attention_of_grouped_heads, sampled(MASKS, 4)) {
    const int parts = nth_mask[_i];
    for (int run = 0; run < 4; run++) {
        const DType dtype = run % 2 ? F64 : F32;
        const bool permuted = run / 2;
        const int64_t q = permuted ? 140 : Q, G = parts & LENS ? 1 : 2;
        tensor_set_default_dtype(dtype);
        tensor_manual_seed((uint64_t)parts);
        Tensor *x[] = {tensor_randn(permuted ? SHAPE(2, q, 6, D) : SHAPE(2, 6, q, D)),
                       tensor_randn(permuted ? SHAPE(2, K, G, D) : SHAPE(2, G, K, D)),
                       tensor_randn(permuted ? SHAPE(2, K, G, DV) : SHAPE(2, G, K, DV)),
                       tensor_randn(SHAPE(2, 6, q, DV))};
        Drawn d = draw_mask(parts, 2, 6, q, K);
        Outcome o[2];
        for (int i = 0; i < 3; i++) ag_requires_grad(x[i]);
        for (int p = 0; p < 2; p++) {
            Outcome fused = outcome_of(ag_attention, x, permuted, d.mask, p * 0.3, x[3]);
            Outcome twin = outcome_of(repeated, x, permuted, d.mask, p * 0.3, x[3]);
            for (int i = 0; i < (d.mask.bias ? 5 : 4); i++)
                expect_close("grouped", fused.tensor[i], twin.tensor[i],
                             dtype == F64 ? 1e-12 : 2e-5);
            release_all(fused.tensor, 5);
            release_all(twin.tensor, 5);
        }
        for (int t = 0; t < 2; t++) {
            tensor_set_num_threads(1 + 2 * t);
            o[t] = outcome_of(ag_attention, x, permuted, d.mask, 0.3, x[3]);
        }
        tensor_set_num_threads(1);
        for (int i = 0; i < 4; i++)
            ck_assert(tensor_allclose(o[0].tensor[i], o[1].tensor[i], 0, 0));
        release_all(o[0].tensor, 5);
        release_all(o[1].tensor, 5);
        release_all(x, 4);
        release_all(d.part, 4);
    }
}

CASE("fused")
/* Keys and values of one head take no more memory for eight heads of queries. */
LOOP_TEST(grouped_heads_are_not_copied, WITH_CACHE) {
    int64_t most[2];
    tensor_set_num_threads(1); /* each has a workspace */
    for (int i = 0; i < 2; i++) {
        const int64_t heads = i ? 8 : 1;
        Tensor *q = tensor_randn(SHAPE(1, heads, 1, 16));
        Tensor *k = tensor_randn(SHAPE(1, 1, 20000, 16));
        bytes = 0;
        peak = 0;
        tape_begin_no_grad();
        ck_assert_ptr_nonnull(ag_attention(q, k, k, NO_MASK, 0));
        tape_end();
        most[i] = peak;
        RELEASE(q, k);
    }
    ck_assert_int_le(most[1], most[0] + 100000);
}

/* So few weights that the draws of dropout are stored, but two blocks of queries. */
TEST(fused_attention_of_few_keys) {
    Tensor *x[] = {tensor_randn(SHAPE(B, H, Q, D)), tensor_randn(SHAPE(B, H, 23, D)),
                   tensor_randn(SHAPE(B, H, 23, DV)), tensor_randn(SHAPE(B, H, Q, DV))};
    for (int i = 0; i < 3; i++) ag_requires_grad(x[i]);
    expect_twins(x, false, NO_MASK, 0.5, x[3], 1e-12);
    release_all(x, 4);
}

/* If the inputs are views of (B, N, H, D), the result and the gradients are such views, too:
 * joining the heads copies nothing. */
TEST(heads_stay_where_they_are) {
    Tensor *x = ag_requires_grad(tensor_randn(SHAPE(2, 5, 3, 16)));
    tape_begin();
    Tensor *heads = ag_permute(x, AXES(0, 2, 1, 3));
    Tensor *y = ag_permute(ag_attention(heads, heads, heads, NO_MASK, 0), AXES(0, 2, 1, 3));
    ck_assert(tensor_is_contiguous(y));
    ck_assert(ag_backward(ag_sum(y)));
    tape_end();
    tensor_release(x);
}

/* The largest error of x, divided by the largest number in want. */
static double error_of(const Tensor *x, const Tensor *want) {
    double largest = 0, error = 0;
    for (int64_t r = 0; r < want->shape.dim[1]; r++)
        for (int64_t e = 0; e < want->shape.dim[2]; e++) {
            const double w = tensor_get(want, 0, r, e);
            largest = fmax(largest, fabs(w));
            error = fmax(error, fabs(tensor_get(x, 0, r, e) - w));
        }
    return error / largest;
}

CASE("many queries and keys", .is_long = true)
/* A sum over the values of 20,000 keys, and a sum over the gradients of 20,000 queries: the error
 * of float32, compared with float64, is as small as for few. Numbers from 0 to 1 are the worst
 * case, because their sums grow. */
LOOP_TEST(long_attention_is_accurate, 2) {
    enum { LONG = 20000, FEW = 16, SIZE = 4 };
    const int64_t queries = _i ? LONG : FEW, keys = _i ? FEW : LONG;
    Tensor *x[2][4]; /* q, k, v, dy */
    Outcome o[2];
    for (int t = F32; t <= F64; t++) {
        tensor_set_default_dtype((DType)t);
        for (int i = 0; i < 4; i++) {
            const Shape shape = SHAPE(1, i == 1 || i == 2 ? keys : queries, SIZE);
            if (t == F32) x[t][i] = i < 2 ? tensor_randn(shape) : tensor_rand(shape);
            else x[t][i] = tensor_to(x[F32][i], F64);
            if (i < 3) ag_requires_grad(x[t][i]);
        }
        o[t] = outcome_of(ag_attention, x[t], false, NO_MASK, 0, x[t][3]);
    }
    for (int i = _i ? 2 : 0; i < (_i ? 4 : 1); i++) /* dk and dv, or y */
        ck_assert_double_lt(error_of(o[F32].tensor[i], o[F64].tensor[i]), 1e-6);
    for (int t = F32; t <= F64; t++) {
        release_all(o[t].tensor, 4);
        release_all(x[t], 4);
    }
}

CASE("fused")
/* Each backward uses the same draws of dropout; gradients add up. */
TEST(walking_twice_adds_twice) {
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(2, 3, 2)));
    tape_begin();
    Tensor *y = ag_attention(q, q, q, (AttentionMask){.causal = true}, 0.4);
    ck_assert(ag_backward(ag_sum(y)));
    Tensor *once = tensor_clone(q->grad);
    tensor_manual_seed(77); /* the generator may go anywhere */
    ck_assert(ag_backward(ag_sum(y)));
    expect_close("the second walk", q->grad, ag_scale(once, 2), 1e-12);
    tape_end();
    RELEASE(once, q);
}

/* Backward can read a result that was let go, twice, with the same draws. If the result was
 * overwritten, backward fails. */
LOOP_TEST(a_result_that_is_gone, 2) {
    const int64_t n = _i % 2 ? 60 : 3;
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(2, n, 2)));
    Tensor *dy = tensor_randn(q->shape);
    Tensor *grad[2];
    for (int gone = 0; gone < 2; gone++) {
        tensor_manual_seed(77);
        tape_begin();
        Tensor *y = ag_attention(q, q, q, (AttentionMask){.causal = true}, 0.4);
        if (gone) ag_let_go(y);
        for (int walk = 0; walk < 2; walk++)
            ck_assert_msg(ag_backward_from(y, dy), "%s", tensor_error());
        tape_end();
        grad[gone] = q->grad;
        q->grad = NULL;
    }
    ck_assert(tensor_allclose(grad[0], grad[1], 0, 0));
    tape_begin();
    Tensor *y = ag_attention(q, q, q, (AttentionMask){0}, 0);
    ck_assert(tensor_fill(y, 7) && !ag_backward_from(y, dy));
    expect_error_like("backward: attention needs its result ", " fill has written over it since");
    tape_end();
    release_all(grad, 2);
    RELEASE(q, dy);
}

/* Backward computes the weights again, so the mask must not change before. */
TEST(a_mask_must_stay_as_it_was) {
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(2, 3, 2)));
    Drawn d = draw_mask(LENS | KEEP | WINDOW, 2, 1, 3, 3);
    static const char *const sentence[] = {
        "backward: attention needs its input valid_lens (2, 3) as it was, but fill has written over "
        "it since",
        "backward: attention needs its input keep (2, 1, 1, 3) as it was, but fill has written over "
        "it since",
        "backward: attention needs its input window (2, 3, 3) as it was, but fill has written over "
        "it since"};
    for (int i = 0; i < 3; i++) {
        tape_begin();
        Tensor *loss = ag_sum(ag_attention(q, q, q, d.mask, 0));
        ck_assert(tensor_fill(d.part[i], 1));
        FAILS(ag_backward(loss), sentence[i]);
        tape_end();
    }
    release_all(d.part, 4);
    tensor_release(q);
}

/* Backward of ag_attention_weights reads only the weights, so its mask may be overwritten. */
TEST(the_weights_need_no_mask_to_go_back) {
    Tensor *x = ag_requires_grad(tensor_randn(SHAPE(2, 3, 3)));
    Tensor *c = tensor_randn(SHAPE(2, 3, 3));
    Drawn d = draw_mask(LENS | KEEP | WINDOW, 2, 1, 3, 3);
    tape_begin();
    Tensor *y = ag_attention_weights(x, 0.5, d.mask, 1);
    ck_assert(ag_backward_from(y, c));
    Tensor *before = x->grad;
    x->grad = NULL;
    for (int i = 0; i < 3; i++) ck_assert(tensor_fill(d.part[i], 1));
    ck_assert(ag_backward_from(y, c));
    expect_close("dx", x->grad, before, 0);
    tape_end();
    RELEASE(before, x, c);
    release_all(d.part, 4);
}

/* ---- memory -------------------------------------------------------------------------------- */

/* The most bytes that forward and backward of one head use at any time, with a constant bias for
 * each key. */
static int64_t bytes_for_length(int64_t n) {
    Tensor *q = ag_requires_grad(tensor_rand(SHAPE(1, n, 4)));
    Tensor *bias = tensor_rand(SHAPE(n));
    const AttentionMask mask = {.bias = bias, .causal = true};
    tensor_empty_cache();
    bytes = 0;
    peak = 0;
    tape_begin();
    ck_assert(ag_backward(ag_sum(ag_attention(q, q, q, mask, 0.1))));
    tape_end();
    RELEASE(q, bias);
    return peak;
}

LOOP_TEST(memory_grows_with_the_length_alone, WITH_CACHE) {
    tensor_set_default_dtype(F32);
    const int64_t once = bytes_for_length(500), fourfold = bytes_for_length(2000);
    ck_assert_int_gt(once, 500 * 4 * 4);
    ck_assert_double_lt((double)fourfold, 4.5 * (double)once);
    ck_assert_int_lt(fourfold, 2000 * 2000 * (int64_t)sizeof(float) / 4);
}

/* Of the matrices of Q x K numbers, at most two exist at any time: the scores are freed when the
 * weights are computed, and the gradient of the scores overwrites the gradient of the weights. */
LOOP_TEST(scores_are_let_go, WITH_CACHE) {
    const int64_t n = 512, matrices = 4, matrix = matrices * n * n * (int64_t)sizeof(double);
    MultiHeadAttention *attention = nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = matrices});
    Tensor *x = tensor_rand(SHAPE(1, n, 4));
    tensor_empty_cache();
    bytes = 0;
    peak = 0;
    tape_begin();
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    ck_assert_msg(ag_backward(ag_sum(y)), "%s", tensor_error());
    tape_end();
    ck_assert_int_gt(peak, 2 * matrix);
    ck_assert_int_lt(peak, 2 * matrix + matrix / 2);
    nn_free(attention);
    tensor_release(x);
}

/* Of the two matrices, the weights are kept as attention_weights. The weights after dropout are
 * freed after the product with the values. */
LOOP_TEST(dropped_weights_are_let_go, WITH_CACHE) {
    const int64_t n = 128, matrix = n * n * (int64_t)sizeof(double);
    DotProductAttention *attention = nn_dot_product_attention_new(0.5);
    Tensor *x = tensor_rand(SHAPE(1, n, 4));
    tensor_empty_cache();
    const int64_t before = bytes;
    tape_begin_no_grad();
    ck_assert_ptr_nonnull(nn_dot_product_attention_forward(attention, x, x, x, (AttentionMask){0}));
    tensor_empty_cache(); /* otherwise freed blocks wait in the cache */
    ck_assert_int_ge(bytes - before, matrix);
    ck_assert_int_lt(bytes - before, matrix + matrix / 2);
    tape_end();
    nn_free(attention);
    tensor_release(x);
}

/* ---- ignored keys -------------------------------------------------------------------------- */

CASE("ignored")
/* The scores and values of masked keys are NaN and infinite. They change neither the weights nor
 * the gradients of the weights and the scores. */
TEST(nothing_ignored_leaks) {
    for (int parts = 1; parts < MASKS; parts++) {
        tensor_manual_seed((uint64_t)parts);
        Drawn d = draw_mask(parts, B, 1, 5, 5);
        Tensor *all = tensor_ones(SHAPE(B, 5, 5));
        Tensor *c = tensor_randn(SHAPE(B, 5, 5));
        Tensor *x = ag_requires_grad(tensor_randn(SHAPE(B, 5, 5)));
        Tensor *y = ag_requires_grad(tensor_clone(x));
        Tensor *bad = tensor_clone(c);
        tape_begin();
        Tensor *weights = ag_attention_weights(x, 1, d.mask, 1);
        Tensor *zero = tensor_zeros(SCALAR);
        Tensor *ignored = ag_eq(weights, zero);
        ag_backward_from(weights, c);
        tensor_copy_from(y,
                         ag_where(ignored, ag_scale(all, parts % 2 ? (double)NAN : HUGE_VAL), x));
        tensor_copy_from(bad, ag_masked_fill(c, ignored, (double)NAN));
        Tensor *same = ag_attention_weights(y, 1, d.mask, 1);
        ag_backward_from(same, bad);
        ck_assert_msg(!tensor_error(), "%s", tensor_error());
        expect_close("weights", same, weights, 0);
        expect_close("dx", y->grad, x->grad, 0);
        expect_close("dx, ignored", ag_masked_fill(y->grad, ag_logical_not(ignored), 0),
                     ag_scale(all, 0), 0);
        tape_end();
        RELEASE(all, c, x, y, bad, zero);
        release_all(d.part, 4);
    }
}

/* In a module: keys past the length whose rows are NaN do not change the output and the weights. */
TEST(padding_may_be_anything) {
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){2, 3});
    Tensor *q = tensor_randn(SHAPE(2, 3, 4));
    Tensor *k = tensor_randn(SHAPE(2, 4, 4));
    Tensor *padded = tensor_clone(k);
    Tensor *behind[] = {tensor_view_narrow(padded, 1, 3, 1), NULL};
    ck_assert(tensor_fill(behind[0], (double)NAN));
    for (int fused = 0; fused < 2; fused++) {
        MultiHeadAttention *attention = nn_multi_head_attention_new(
            (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .fused = fused});
        tape_begin();
        AttentionMask mask = {.valid_lens = lens};
        Tensor *y = nn_multi_head_attention_forward(attention, q, k, k, mask);
        Tensor *weights = tensor_retain(attention->attention_weights);
        Tensor *same = nn_multi_head_attention_forward(attention, q, padded, k, mask);
        expect_close("the output", same, y, 0);
        if (!fused) expect_close("weights", attention->attention_weights, weights, 0);
        tape_end();
        tensor_release(weights);
        nn_free(attention);
    }
    RELEASE(lens, q, k, padded, behind[0]);
}

/* A key past the length has score 0 even if it is infinite. Its dy has no effect, even if it is
 * NaN. Backward uses the lengths that forward saw. */
TEST(additive_scores_past_the_lengths) {
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){1, 2});
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(2, 2, 4)));
    Tensor *k = tensor_randn(SHAPE(2, 3, 4));
    Tensor *w = ag_requires_grad(tensor_randn(SHAPE(1, 4)));
    Tensor *last = tensor_view_narrow(k, 1, 2, 1);
    Tensor *c = tensor_randn(SHAPE(2, 2, 3));
    Tensor *zero = tensor_zeros(SCALAR);
    Tensor *before[2];
    ck_assert(tensor_fill(last, HUGE_VAL));
    ag_requires_grad(k);
    tape_begin();
    Tensor *y = ag_additive_scores(q, k, w, lens);
    Tensor *ignored = ag_eq(y, zero);
    ck_assert(tensor_item(ag_sum(ignored)) == 6);
    ck_assert(ag_backward_from(y, c));
    before[0] = q->grad;
    before[1] = w->grad;
    q->grad = NULL;
    w->grad = NULL;
    ck_assert(tensor_fill(lens, 0));
    ck_assert(ag_backward_from(y, ag_masked_fill(c, ignored, (double)NAN)));
    expect_close("dq", q->grad, before[0], 0);
    expect_close("dw", w->grad, before[1], 0);
    tape_end();
    RELEASE(lens, q, k, w, last, c, zero, before[0], before[1]);
}

/* Each part of a mask can mask all keys of a query: then its result is zeros, and its gradients are
 * zeros. */
TEST(a_query_that_sees_nothing) {
    Tensor *lens = tensor_from_int64s(SHAPE(1, 2), (int64_t[]){0, 2});
    Tensor *keep = tensor_from_bools(SHAPE(2, 1), (bool[]){false, true});
    double none = -(double)INFINITY;
    Tensor *window = tensor_from_doubles(SHAPE(1, 2, 2), (double[]){none, none, 0, none});
    Tensor *bias = tensor_to(window, F64);
    const AttentionMask masks[] = {
        {.valid_lens = lens}, {.keep = keep}, {.window = window}, {.bias = bias}};
    for (int i = 0; i < 8; i++) {
        Tensor *q = LEAF(SHAPE(1, 2, 2), 1, 2, 3, 4);
        Tensor *v = LEAF(SHAPE(1, 2, 2), 5, 6, 7, 8);
        tape_begin();
        Tensor *y = (i < 4 ? ag_attention : composed)(q, v, v, masks[i % 4], 0);
        ck_assert(ag_backward(ag_sum(y)));
        for (int e = 0; e < 2; e++) {
            ck_assert_double_eq(tensor_get(y, 0, 0, e), 0);
            ck_assert_double_gt(tensor_get(y, 0, 1, e), 4);
            ck_assert_double_eq(tensor_get(q->grad, 0, 0, e), 0);
        }
        tape_end();
        RELEASE(q, v);
    }
    RELEASE(lens, keep, window, bias);
}

/* The queries, keys and values of two heads, (2, 1, D), (2, 2, D) and (2, 2, D), in this order. */
typedef Tensor *Pool(void *module, Tensor *const *x, AttentionMask mask);
static Tensor *pool_fused(void *none, Tensor *const *x, AttentionMask mask) {
    (void)none;
    return ag_attention(x[0], x[1], x[2], mask, 0);
}
static Tensor *pool_composed(void *none, Tensor *const *x, AttentionMask mask) {
    (void)none;
    return composed(x[0], x[1], x[2], mask, 0);
}
static Tensor *pool_dot_product(void *module, Tensor *const *x, AttentionMask mask) {
    return nn_dot_product_attention_forward(module, x[0], x[1], x[2], mask);
}
static Tensor *pool_additive(void *module, Tensor *const *x, AttentionMask mask) {
    return nn_additive_attention_forward(module, x[0], x[1], x[2], mask);
}
static Tensor *pool_multi_head(void *module, Tensor *const *x, AttentionMask mask) {
    return nn_multi_head_attention_forward(module, x[0], x[1], x[2], mask);
}
static Pool *const pools[] = {pool_fused,    pool_composed,   pool_dot_product,
                              pool_additive, pool_multi_head, pool_multi_head};

static void *module_of_pool(int i) {
    if (i == 2) return nn_dot_product_attention_new(0);
    if (i == 3) return nn_additive_attention_new(3, 0);
    if (i < 4) return NULL;
    return nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){.num_hiddens = 4, .num_heads = 2, .fused = i == 5});
}

/* The output, and the gradients of the inputs and of the bias. */
static void run_pool(Pool *pool, void *module, Tensor *const *x, AttentionMask mask,
                     Tensor **result) {
    tape_begin();
    Tensor *y = pool(module, x, mask);
    ck_assert_msg(ag_backward(ag_sum(ag_square(y))), "%s", tensor_error());
    result[0] = tensor_to(y, y->dtype);
    for (int i = 0; i < 3; i++) {
        result[1 + i] = x[i]->grad;
        x[i]->grad = NULL;
    }
    result[4] = mask.bias ? mask.bias->grad : NULL;
    if (mask.bias) mask.bias->grad = NULL;
    if (module) ck_assert(nn_zero_grad(module));
    tape_end();
}

static void expect_masked(Pool *pool, void *module, Tensor *const *x, AttentionMask mask,
                          Tensor *const *expected) {
    static const char *const what[] = {"the result", "dq", "dk", "dv"};
    Tensor *got[5];
    run_pool(pool, module, x, mask, got);
    for (int i = 0; i < 4; i++) expect_close(what[i], got[i], expected[i], 1e-6);
    EXPECT_ELEMENTS(got[4], 0, 0);
    release_all(got, 5);
}

/* A part masks key 1; the window and the bias add anything to its score. The result is that of keep
 * alone. _i: which pool, and the type. */
LOOP_TEST(a_key_that_one_part_masks_is_masked, 2 * COUNT(pools)) {
    enum { CAUSES, LENGTHS, KEEPS, WINDOWS, BIASES, ALL, ADDS = 5 };
    static const double none = -HUGE_VAL, adds[ADDS] = {0, 1, (double)NAN, HUGE_VAL, -HUGE_VAL};
    tensor_set_default_dtype(_i % 2 ? F64 : F32);
    void *module = module_of_pool(_i / 2);
    Tensor *x[3];
    Tensor *expected[5];
    for (int i = 0; i < 3; i++) x[i] = ag_requires_grad(tensor_randn(SHAPE(2, i ? 2 : 1, 4)));
    Tensor *keep = tensor_from_bools(SHAPE(2), (bool[]){true, false});
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){1, 1});
    run_pool(pools[_i / 2], module, x, (AttentionMask){.keep = keep}, expected);
    for (int run = 0; run < ALL * ADDS * ADDS; run++) {
        const int part = run % ALL;
        const double w = part == WINDOWS ? none : adds[run / ALL % ADDS];
        const double b = part == BIASES ? none : adds[run / ALL / ADDS];
        Tensor *window = tensor_from_doubles(SHAPE(1, 1, 2), (double[]){0, w});
        Tensor *bias = ag_requires_grad(tensor_from_doubles(SHAPE(1, 2), (double[]){0, b}));
        const AttentionMask mask = {part == LENGTHS ? lens : NULL, part == KEEPS ? keep : NULL,
                                    window, bias, part == CAUSES};
        expect_masked(pools[_i / 2], module, x, mask, expected);
        RELEASE(window, bias);
    }
    RELEASE(keep, lens);
    release_all(x, 3);
    release_all(expected, 5);
    if (module) nn_free(module);
    tensor_set_default_dtype(F64);
}

/* The error and the tape name what was called, not what a part of the mask would be made of. */
TEST(a_mask_of_two_parts_is_one_line) {
    Tensor *x = tensor_randn(SHAPE(2, 2, 3));
    Tensor *turned = tensor_view_transpose(x, 1, 2);
    Tensor *window = tensor_randn(SHAPE(2, 2, 2));
    const AttentionMask mask = {.window = window, .bias = LEAF(SHAPE(2), 0, 1)};
    FAILS(ag_attention(x, x, x, mask, 0),
          "attention: no tape is open: call tape_begin or tape_begin_no_grad first");
    FAILS(ag_attention(turned, turned, turned, NO_MASK, 0),
          "attention: no tape is open: call tape_begin or tape_begin_no_grad first");
    FAILS(ag_attention_weights(window, 1, mask, 1),
          "masked_softmax: no tape is open: call tape_begin or tape_begin_no_grad first");
    tape_begin();
    ag_attention_weights(window, 1, mask, 1);
    ck_assert_int_eq(tape_mark(), 1);
    tape_end();
    RELEASE(x, turned, window, mask.bias);
}

/* In a window only -inf masks a key. A NaN masks nothing: the result of its query is NaN. */
TEST(a_window_of_nan_is_no_mask) {
    const double nan_ = (double)NAN, none = -(double)INFINITY;
    Tensor *window = tensor_from_doubles(SHAPE(1, 2, 3), (double[]){0, nan_, none, 0, 1, none});
    for (int i = 0; i < 4; i++) {
        tensor_set_default_dtype(i % 2 ? F64 : F32);
        Tensor *q = tensor_rand(SHAPE(1, 2, 2));
        Tensor *k = tensor_rand(SHAPE(1, 3, 2));
        Tensor *typed = tensor_to(window, q->dtype);
        tape_begin_no_grad();
        Tensor *y = (i < 2 ? ag_attention : composed)(q, k, k, (AttentionMask){.window = typed}, 0);
        for (int e = 0; e < 2; e++) {
            ck_assert_double_nan(tensor_get(y, 0, 0, e));
            ck_assert_double_ge(tensor_get(y, 0, 1, e), 0);
        }
        tape_end();
        RELEASE(q, k, typed);
    }
    tensor_set_default_dtype(F32);
    tensor_release(window);
}

/* -FLT_MAX in a window does not mask a key, although many programs use it for this: if all scores
 * of a query are that low, all keys get the same weight. A key with FLT_MAX gets the weight 1. */
TEST(a_window_of_the_largest_floats) {
    const double least = -(double)FLT_MAX;
    Tensor *window = tensor_from_doubles(
        SHAPE(1, 3, 3), (double[]){least, least, least, least, 0, least, 0, -least, least});
    Tensor *floats = tensor_to(window, F32);
    const AttentionMask mask = {.window = floats};
    tensor_set_default_dtype(F32);
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(1, 3, 4)));
    Tensor *y[2];
    Tensor *k = ag_requires_grad(tensor_randn(SHAPE(1, 3, 4)));
    Tensor *dk[2];
    for (int i = 0; i < 2; i++) {
        tape_begin();
        y[i] = (i ? ag_attention : composed)(q, k, k, mask, 0);
        ck_assert_msg(ag_backward(ag_sum(y[i])), "%s", tensor_error());
        dk[i] = k->grad;
        k->grad = NULL;
        tape_end_keeping(y[i]);
    }
    for (int e = 0; e < 4; e++) {
        const double mean =
            (tensor_get(k, 0, 0, e) + tensor_get(k, 0, 1, e) + tensor_get(k, 0, 2, e)) / 3;
        ck_assert_double_eq_tol(tensor_get(y[1], 0, 0, e), mean, 1e-6);
        for (int r = 1; r < 3; r++) ck_assert(tensor_get(y[1], 0, r, e) == tensor_get(k, 0, 1, e));
    }
    expect_close("y", y[1], y[0], 1e-6);
    expect_close("dk", dk[1], dk[0], 1e-6);
    tensor_set_default_dtype(F64);
    RELEASE(window, floats, q, k, y[0], y[1], dk[0], dk[1]);
}

/* A score of -2.5e38 is a score like any other: it gets the weight 1 if the other score is lower.
 */
TEST(the_lowest_scores_are_finite) {
    tensor_set_default_dtype(F32);
    for (int i = 0; i < 2; i++) {
        Tensor *q = ag_requires_grad(tensor_full(SHAPE(1, 1, 1), 1e19));
        Tensor *k = tensor_from_doubles(SHAPE(1, 2, 1), (double[]){-2.5e19, -3e19});
        Tensor *v = ag_requires_grad(tensor_from_doubles(SHAPE(1, 2, 1), (double[]){5, 7}));
        tape_begin();
        Tensor *y = (i ? ag_attention : composed)(q, k, v, NO_MASK, 0);
        ck_assert_msg(ag_backward(ag_sum(y)), "%s", tensor_error());
        ck_assert_double_eq(tensor_get(y, 0, 0, 0), 5);
        ck_assert_double_eq(tensor_get(v->grad, 0, 0, 0), 1);
        ck_assert_double_eq(tensor_get(v->grad, 0, 1, 0), 0);
        tape_end();
        RELEASE(q, k, v);
    }
}

enum {
    LOST = 70,
    LOST_Q = 75,
    LOST_K = 300
}; /* the query is in the second block; the keys fill
    * two tiles */

/* Checks x element by element. If of_keys is true, the rows are keys: x must be NaN in rows of keys
 * that query LOST sees. Otherwise the rows are queries: x must be NaN in row LOST, if this query
 * sees any key. All other elements must equal `before`. */
static void expect_lost(const char *what, const Tensor *x, const Tensor *before,
                        const Tensor *ignored, bool of_keys) {
    for (int64_t b = 0; b < 2; b++) {
        bool sees = false;
        for (int64_t j = 0; j < LOST_K; j++) sees = sees || !tensor_get(ignored, b, LOST, j);
        for (int64_t r = 0; r < x->shape.dim[1]; r++)
            for (int64_t e = 0; e < D; e++) {
                const bool lost = of_keys ? !tensor_get(ignored, b, LOST, r) : r == LOST && sees;
                const double want = lost ? (double)NAN : tensor_get(before, b, r, e);
                const double got = tensor_get(x, b, r, e);
                ck_assert_msg(isnan(want) ? isnan(got) : got == want, "%s[%d, %d, %d]: %g, not %g",
                              what, (int)b, (int)r, (int)e, got, want);
            }
    }
}

/* One query contains NaN or infinity, or all its scores overflow to -inf. Its result and its
 * gradient are NaN, and so are the gradients of the keys that it sees and of their values. The
 * gradients of masked keys have the same bits as without this query. (If all keys are masked, the
 * result is zeros.) For ag_attention this holds even if dy of the query is NaN; the composed ops
 * multiply 0 by NaN in dS' q and P' dy. */
LOOP_TEST(a_lost_query_leaves_alone_what_it_ignores, 4 * sampled(MASKS, 4)) {
    const int parts = nth_mask[_i / 4];
    const DType dtype = _i & 1 ? F64 : F32;
    const bool fused = _i & 2;
    tensor_set_default_dtype(dtype);
    const double large = dtype == F32 ? 1e20 : 1e160, lost[] = {(double)NAN, HUGE_VAL, large};
    Drawn d = draw_mask(parts, 2, 1, LOST_Q, LOST_K);
    Tensor *q = ag_requires_grad(tensor_normal(0, 1 / large, SHAPE(2, LOST_Q, D)));
    Tensor *k = ag_requires_grad(tensor_uniform(-large, -large / 2, SHAPE(2, LOST_K, D)));
    Tensor *v = ag_requires_grad(tensor_randn(SHAPE(2, LOST_K, D)));
    Tensor *dy = tensor_randn(SHAPE(2, LOST_Q, D));
    Tensor *of_lost = tensor_view_narrow(q, 1, LOST, 1);
    Tensor *ones = tensor_ones(SHAPE(2, LOST_Q, LOST_K));
    Tensor *dy_of_lost = tensor_view_narrow(dy, 1, LOST, 1);
    tape_begin_no_grad();
    Tensor *weights = ag_attention_weights(ones, 1, d.mask, 1);
    Tensor *ignored = tape_end_keeping(ag_eq(weights, ag_scale(weights, 0)));
    Tensor *const x[] = {q, k, v};
    Attend *attend = fused ? ag_attention : composed;
    Outcome before = outcome_of(attend, x, false, d.mask, 0, dy);
    for (int i = 0; i < 3; i++) {
        ck_assert(tensor_fill(of_lost, lost[i]) && tensor_fill(dy_of_lost, fused ? lost[i] : 1));
        Outcome o = outcome_of(attend, x, false, d.mask, 0, dy);
        expect_lost("the result", o.tensor[0], before.tensor[0], ignored, false);
        expect_lost("dq", o.tensor[1], before.tensor[1], ignored, false);
        if (fused || i == 2) expect_lost("dk", o.tensor[2], before.tensor[2], ignored, true);
        expect_lost("dv", o.tensor[3], before.tensor[3], ignored, true);
        release_all(o.tensor, 5);
    }
    release_all(before.tensor, 5);
    RELEASE(q, k, v, dy, of_lost, dy_of_lost, ones, ignored);
    release_all(d.part, 4);
}

/* If a query sees only one key, the weight is 1 whatever the score is. So the gradient of the
 * query, and its part of the gradient of the key, are exactly 0; they are NaN if dy is infinite.
 * The composed ops do the same. */
LOOP_TEST(one_key_alone_has_no_gradient, 4) {
    const DType dtype = _i & 1 ? F64 : F32;
    Attend *attend = _i & 2 ? ag_attention : composed;
    tensor_set_default_dtype(dtype);
    Tensor *x[] = {ag_requires_grad(tensor_randn(SHAPE(2, 70, 37))),
                   ag_requires_grad(tensor_randn(SHAPE(2, 300, 37))),
                   ag_requires_grad(tensor_randn(SHAPE(2, 300, 53)))};
    Tensor *dy = tensor_randn(SHAPE(2, 70, 53));
    Tensor *keep = tensor_eye(300);
    Tensor *bools = tensor_to(keep, BOOL);
    Tensor *rows = tensor_view_narrow(bools, 0, 220, 70);
    Tensor *last = tensor_view_narrow(dy, 1, 69, 1);
    const AttentionMask mask = {.keep = rows}; /* query i sees key 220 + i */
    for (int p = 0; p < 2; p++) {
        Outcome o = outcome_of(attend, x, false, mask, 0.5 * p, dy);
        for (int i = 1; i < 3; i++) {
            Tensor *zeros = tensor_full(o.tensor[i]->shape, 0);
            expect_close(i == 1 ? "dq" : "dk", o.tensor[i], zeros, 0);
            tensor_release(zeros);
        }
        release_all(o.tensor, 4);
    }
    ck_assert(tensor_fill(last, HUGE_VAL));
    Outcome o = outcome_of(attend, x, false, mask, 0, dy);
    ck_assert(isnan(tensor_get(o.tensor[1], 0, 69, 0)) &&
              isnan(tensor_get(o.tensor[2], 0, 289, 0)));
    ck_assert_double_eq(tensor_get(o.tensor[1], 0, 68, 0), 0);
    release_all(o.tensor, 4);
    RELEASE(x[0], x[1], x[2], dy, keep, bools, rows, last);
}

/* Keys and values past the lengths are not read. A query without keys gets zeros, even if other
 * queries attend to a NaN. */
TEST(what_nobody_attends_to_may_be_anything) {
    Tensor *lens = tensor_from_int64s(SHAPE(1, 3), (int64_t[]){2, 0, 1});
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(1, 3, 4)));
    Tensor *k = ag_requires_grad(tensor_randn(SHAPE(1, 5, 4)));
    Tensor *v = ag_requires_grad(tensor_randn(SHAPE(1, 5, 4)));
    Tensor *behind[] = {tensor_view_narrow(k, 1, 2, 3), tensor_view_narrow(v, 1, 2, 3),
                        tensor_view_narrow(v, 1, 1, 1)};
    for (int i = 0; i < 3; i++) {
        ck_assert(tensor_fill(behind[i], i ? HUGE_VAL : (double)NAN));
        if (i == 0) continue;
        tape_begin();
        Tensor *y = ag_attention(q, k, v, (AttentionMask){.valid_lens = lens}, 0);
        ck_assert_msg(ag_backward(ag_sum(y)), "%s", tensor_error());
        for (int e = 0; e < 4; e++) {
            ck_assert(i == 2 || isfinite(tensor_get(y, 0, 0, e)));
            ck_assert(i == 2 || isfinite(tensor_get(k->grad, 0, 1, e)));
            ck_assert(tensor_get(y, 0, 1, e) == 0 && tensor_get(q->grad, 0, 1, e) == 0);
            ck_assert(tensor_get(k->grad, 0, 4, e) == 0 && tensor_get(v->grad, 0, 4, e) == 0);
        }
        tape_end();
    }
    RELEASE(lens, q, k, v, behind[0], behind[1], behind[2]);
}

/* Without queries the gradients of the keys are zeros, not old bytes of the cache. */
TEST(keys_that_nobody_asks) {
    Tensor *q = ag_requires_grad(tensor_randn(SHAPE(2, 0, 3)));
    Tensor *k = ag_requires_grad(tensor_full(SHAPE(2, 5, 3), 7));
    tensor_release(tensor_full(SHAPE(2, 5, 3), 7)); /* this block is now in the cache */
    tape_begin();
    ck_assert(ag_backward(ag_sum(ag_attention(q, k, k, NO_MASK, 0))));
    Tensor *zero = tensor_zeros(SHAPE(2, 5, 3));
    expect_close("dk + dv", k->grad, zero, 0);
    tape_end();
    RELEASE(q, k, zero);
}

/* ---- modules ------------------------------------------------------------------------------- */

static MultiHeadAttention *heads_new(bool fused) {
    tensor_manual_seed(4);
    return nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 6,
                                                                  .num_heads = 3,
                                                                  .dropout = 0.3,
                                                                  .bias = true,
                                                                  .query_size = 2,
                                                                  .key_size = 5,
                                                                  .value_size = 4,
                                                                  .fused = fused});
}

CASE("modules")
/* In training and in evaluation, output, gradients and draws are equal. Only attention_weights is
 * missing. */
LOOP_TEST(a_fused_module_is_the_other_one, MASKS) {
    MultiHeadAttention *net[] = {heads_new(false), heads_new(true)};
    Tensor *q = tensor_randn(SHAPE(2, 3, 2));
    Tensor *k = tensor_randn(SHAPE(2, 5, 5));
    Tensor *v = tensor_randn(SHAPE(2, 5, 4));
    Tensor *c = tensor_randn(SHAPE(2, 3, 6));
    Tensor *y[2];
    Tensor *dbias[2] = {NULL};
    Drawn d = draw_mask(_i, 2, 3, 3, 5);
    for (int training = 0; training < 2; training++) {
        Generator after[2];
        for (int i = 0; i < 2; i++) {
            nn_train(net[i], training);
            nn_zero_grad(net[i]);
            tensor_manual_seed(8);
            tape_begin();
            y[i] = nn_multi_head_attention_forward(net[i], q, k, v, d.mask);
            ck_assert_msg(ag_backward_from(y[i], c), "%s", tensor_error());
            y[i] = tape_end_keeping(y[i]);
            after[i] = *tensor_generator_current();
            if (!d.mask.bias) continue;
            dbias[i] = d.mask.bias->grad;
            d.mask.bias->grad = NULL;
        }
        expect_close("the output", y[1], y[0], 1e-12);
        if (d.mask.bias) expect_close("dbias", dbias[1], dbias[0], 1e-12);
        release_all(dbias, 2);
        ck_assert_mem_eq(&after[0], &after[1], sizeof after[0]);
        Tensor **slot[2][8];
        for (int i = 0; i < 2; i++) ck_assert_int_eq(parameter_slots(net[i], slot[i], 8), 8);
        for (int i = 0; i < 8; i++)
            expect_close((*slot[0][i])->name, (*slot[1][i])->grad, (*slot[0][i])->grad, 1e-12);
        release_all(y, 2);
    }
    ck_assert_ptr_nonnull(net[0]->attention_weights);
    ck_assert_ptr_null(net[1]->attention_weights);
    ck_assert_ptr_null(net[1]->attention->attention_weights);
    RELEASE(q, k, v, c);
    release_all(d.part, 4);
    nn_free(net[0]);
    nn_free(net[1]);
}

/* (G D, in) -> (H D, in), rows of two numbers: the heads of a group get the same rows. */
static Tensor *for_each_head(const Tensor *x) {
    Tensor *rows = tensor_reshape(x, SHAPE(2, 2, x->shape.ndim > 1 ? 8 : 1));
    tape_begin_no_grad();
    Tensor *all = tensor_retain(ag_repeat_interleave(rows, 2, 0));
    tape_end();
    Tensor *y = tensor_reshape(all, x->shape.ndim > 1 ? SHAPE(8, 8) : SHAPE(8));
    RELEASE(rows, all);
    return y;
}

/* Four heads that share two of keys and values are four heads of which two have the same W_k and
 * W_v each. The gradient of what they share is the sum of both. */
LOOP_TEST(heads_that_share_are_heads_that_are_equal, 2) {
    static const char *const shared[] = {"W_k.weight", "W_k.bias", "W_v.weight", "W_v.bias"};
    MultiHeadAttentionConfig config = {8, 4, 0, true, 8, 8, 8, .fused = _i, .num_kv_heads = 2};
    MultiHeadAttention *grouped = nn_multi_head_attention_new(config);
    config.num_kv_heads = 0;
    MultiHeadAttention *full = nn_multi_head_attention_new(config);
    ck_assert(grouped->num_kv_heads == 2 && full->num_kv_heads == 4);
    ck_assert_int_eq(grouped->W_k->out_features, 4);
    Tensor *x = tensor_randn(SHAPE(2, 5, 8));
    Tensor *dy = tensor_randn(SHAPE(2, 5, 8));
    Tensor *y[2];
    for (ModuleSlot *p = NULL; nn_next_parameter(grouped, "", &p);) {
        char path[64];
        nn_parameter_path(grouped, p, path, sizeof path);
        const bool is_shared = path[2] == 'k' || path[2] == 'v';
        Tensor *value = is_shared ? for_each_head(*p->slot) : tensor_retain(*p->slot);
        tensor_copy_from(nn_parameter(full, path), value);
        tensor_release(value);
    }
    for (int i = 0; i < 2; i++) {
        tape_begin();
        y[i] = nn_multi_head_attention_forward(i ? full : grouped, x, x, x,
                                               (AttentionMask){.causal = true});
        ck_assert_msg(ag_backward_from(y[i], dy), "%s", tensor_error());
        y[i] = tape_end_keeping(y[i]);
    }
    expect_close("the output", y[0], y[1], 1e-12);
    tape_begin_no_grad();
    for (int i = 0; i < 4; i++) {
        Tensor *each = nn_parameter(full, shared[i])->grad;
        Tensor *sum = nn_parameter(grouped, shared[i])->grad;
        Tensor *by_group = ag_reshape(each, SHAPE(2, 2, 2, i % 2 ? 1 : 8));
        expect_close(shared[i], sum, ag_reshape(ag_sum_dims(by_group, AXES(1), false), sum->shape),
                     1e-12);
    }
    tape_end();
    RELEASE(x, dy, y[0], y[1]);
    nn_free(grouped);
    nn_free(full);
    config.num_kv_heads = 3;
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: num_kv_heads 3 must divide num_heads 4");
    config.num_kv_heads = -1;
    FAILS(nn_multi_head_attention_new(config),
          "multi_head_attention: num_kv_heads -1 must divide num_heads 4");
}

/* The heads are a part of the batch, as in d2l's class. The mask has the shape of the batch without
 * heads. */
TEST(dot_product_attention_of_heads) {
    DotProductAttention *attention = nn_dot_product_attention_new(0);
    DotProductAttention *one;
    attention->num_heads = 2;
    one = nn_dot_product_attention_new(0);
    Tensor *q = tensor_randn(SHAPE(4, 3, 2));
    Tensor *k = tensor_randn(SHAPE(4, 5, 2));
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){2, 4});
    tape_begin();
    Tensor *y =
        nn_dot_product_attention_forward(attention, q, k, k, (AttentionMask){.valid_lens = lens});
    AttentionMask repeated = {.valid_lens = ag_repeat_interleave(lens, 2, 0)};
    expect_close("two heads", y, nn_dot_product_attention_forward(one, q, k, k, repeated), 0);
    attention->num_heads = 3;
    FAILS(nn_dot_product_attention_forward(attention, q, k, k, NO_MASK),
          "dot_product_attention: queries are (4, 3, 2): num_heads 3 must divide their batch size");
    attention->num_heads = 0;
    FAILS(nn_dot_product_attention_forward(attention, q, k, k, NO_MASK),
          "dot_product_attention: queries are (4, 3, 2): num_heads 0 must divide their batch size");
    tape_end();
    RELEASE(q, k, lens);
    nn_free(attention);
    nn_free(one);
}

/* ---- mistakes ------------------------------------------------------------------------------ */

/* For the same mistake, the error of each kind of attention begins with its own name. No lazy
 * weights are drawn. */
static Tensor *attend(int kind, Tensor *q, Tensor *k, AttentionMask mask) {
    const MultiHeadAttentionConfig config = {.num_hiddens = 4, .num_heads = 2, .fused = kind == 3};
    void *module = NULL;
    if (kind == 0) module = nn_dot_product_attention_new(0);
    else if (kind == 1) module = nn_additive_attention_new(4, 0);
    else module = nn_multi_head_attention_new(config);
    tape_begin();
    Tensor *y = NULL;
    if (kind == 0) y = nn_dot_product_attention_forward(module, q, k, k, mask);
    else if (kind == 1) y = nn_additive_attention_forward(module, q, k, k, mask);
    else y = nn_multi_head_attention_forward(module, q, k, k, mask);
    tape_end();
    ck_assert_int_eq(nn_num_parameters(module), 0);
    nn_free(module);
    return y;
}

/* rule: the error message after "attention: ", where (2, %d, 3, 5) stands for the shape of the
 * scores */
static void expect_refusal(int kind, AttentionMask mask, const char *rule) {
    static const char *const name[] = {"dot_product", "additive", "multi_head", "multi_head"};
    Tensor *q = tensor_ones(SHAPE(2, 3, 4));
    Tensor *k = tensor_ones(SHAPE(2, 5, 4));
    FAILS(attend(kind, q, k, mask),
          format("%s_attention: %s", name[kind], format(rule, kind < 2 ? 1 : 2)));
    RELEASE(q, k);
}

#define EXPECT_REFUSAL(field, x, rule)                                                             \
    do {                                                                                           \
        Tensor *wrong = x;                                                                         \
        ck_assert_ptr_nonnull(wrong);                                                              \
        expect_refusal(_i, (AttentionMask){.field = wrong}, rule);                                 \
        tensor_release(wrong);                                                                     \
    } while (0)

CASE("mistakes")
LOOP_TEST(a_wrong_mask_is_named, 4) {
    EXPECT_REFUSAL(keep, tensor_ones(SHAPE(5)),
                   "keep is float64: it must be bool; convert it with ag_to");
    EXPECT_REFUSAL(keep, tensor_bernoulli(1, SHAPE(2, 5)),
                   "keep is (2, 5): it must broadcast to (B, H, Q, K), here (2, %d, 3, 5)");
    EXPECT_REFUSAL(keep, tensor_bernoulli(1, SHAPE(2, 3, 3, 5)),
                   "keep is (2, 3, 3, 5): it must broadcast to (B, H, Q, K), here (2, %d, 3, 5)");
    EXPECT_REFUSAL(
        keep, tensor_bernoulli(1, SHAPE(1, 1, 1, 1, 5)),
        "keep is (1, 1, 1, 1, 5): it must broadcast to (B, H, Q, K), here (2, %d, 3, 5)");
    EXPECT_REFUSAL(window, tensor_bernoulli(1, SHAPE(2, 3, 5)),
                   "window is bool and the scores are float64: the types must be equal; "
                   "convert window with ag_to");
    EXPECT_REFUSAL(window, tensor_ones(SHAPE(3, 5)),
                   "window is (3, 5): it must be (windows, Q, K), here (windows, 3, 5)");
    EXPECT_REFUSAL(window, tensor_ones(SHAPE(2, 3, 4)),
                   "window is (2, 3, 4): it must be (windows, Q, K), here (windows, 3, 5)");
    EXPECT_REFUSAL(window, tensor_ones(SHAPE(4, 3, 5)),
                   "window is (4, 3, 5): the number of windows 4 must divide the batch size 2");
    EXPECT_REFUSAL(window, ag_requires_grad(tensor_ones(SHAPE(2, 3, 5))),
                   "window requires a gradient and is a constant: ag_detach it, or make it a bias");
    EXPECT_REFUSAL(bias, tensor_bernoulli(1, SHAPE(3, 5)),
                   "bias is bool and the scores are float64: the types must be equal; convert bias "
                   "with ag_to");
    EXPECT_REFUSAL(bias, tensor_ones(SHAPE(3, 3, 5)),
                   "bias is (3, 3, 5): it must broadcast to (B, H, Q, K), here (2, %d, 3, 5)");
    EXPECT_REFUSAL(valid_lens, tensor_randint(-3, -2, SHAPE(2, 3)),
                   "valid_lens has -3: a length must not be negative");
    EXPECT_REFUSAL(valid_lens, tensor_randint(-1, 0, SHAPE(2)),
                   "valid_lens has -1: a length must not be negative");
    EXPECT_REFUSAL(valid_lens, tensor_randint(0, 2, SHAPE(3)),
                   "valid_lens is (3,): it must be (B) or (B, Q), here (2,) or (2, 3)");
    EXPECT_REFUSAL(valid_lens, tensor_randint(0, 2, SHAPE(2, 4)),
                   "valid_lens is (2, 4): it must be (B) or (B, Q), here (2,) or (2, 3)");
    EXPECT_REFUSAL(valid_lens, tensor_randint(0, 2, SCALAR),
                   "valid_lens is (): it must be (B) or (B, Q), here (2,) or (2, 3)");
    EXPECT_REFUSAL(valid_lens, tensor_ones_of(SHAPE(2), F32),
                   "valid_lens is float32: it must be int64; convert it with ag_to");
}

TEST(a_mask_is_checked_before_anything_is_drawn) {
    Tensor *lens = tensor_from_int64s(SHAPE(2), (int64_t[]){1, 2});
    AttentionMask mask = {.valid_lens = lens, .causal = true};
    ck_assert(ag_mask_fits("me", NO_MASK, SHAPE(2, 1, 3, 4), F32));
    ck_assert(ag_mask_fits("me", mask, SHAPE(2, 1, 3, 4), F32));
    ck_assert(!ag_mask_fits("me", mask, SHAPE(3, 1, 3, 4), F32));
    ck_assert(!ag_mask_fits("me", mask, SHAPE(2, 1, 3, 4), F32)); /* the error is pending */
    expect_error("me: valid_lens is (2,): it must be (B) or (B, Q), here (3,) or (3, 3)");
    FAILS(ag_mask_fits("me", NO_MASK, SHAPE(2, 3, 4), F32),
          "me: the scores are (2, 3, 4): they must be (B, H, Q, K)");
    tensor_release(lens);
}

/* ---- the suite ----------------------------------------------------------------------------- */

int main(void) { return run_tests("attention"); }
