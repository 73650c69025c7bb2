/* test_random.c - does the generator draw PyTorch's numbers?
 *
 * tests/golden/random_<seed>.bin holds the numbers of PyTorch 2.15 (generate_random.py in the same
 * folder draws them and describes the format). The suite draws the same numbers and compares
 * integers, uniforms and masks to the bit, normals to 1e-6. Other tests have a few values that
 * PyTorch users know well, the check value of the C++ standard for MT19937, seeds, threads,
 * saving and restoring the state, empty tensors, and wrong arguments.
 *
 * Run from the root of the repository, where the golden files are found. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../../autograd/autograd.h"
#include "../../../tensor/internal.h"
#include "../common.h"

/* ---- reading tensors ------------------------------------------------------------------------- */

static double at(DType dtype, const void *elements, int64_t i) {
    switch (dtype) {
    case F32: return (double)((const float *)elements)[i];
    case F64: return ((const double *)elements)[i];
    case I64: return (double)((const int64_t *)elements)[i];
    default: return ((const bool *)elements)[i] ? 1 : 0;
    }
}

static double element(const Tensor *x, int64_t i) { return at(x->dtype, x->data, i); }

/* Checks x, which it releases, against values that were printed with a few decimals. */
static void expect(Tensor *x, int n, const double *values, double tolerance) {
    ck_assert_ptr_nonnull(x);
    ck_assert_int_ge(tensor_numel(x), n);
    for (int i = 0; i < n; i++) ck_assert_double_le(fabs(element(x, i) - values[i]), tolerance);
    tensor_release(x);
}

#define EXPECT(x, tolerance, ...)                                                                  \
    expect(x, sizeof((double[]){__VA_ARGS__}) / sizeof(double), (double[]){__VA_ARGS__}, tolerance)

/* The next rand(1): it shows how many numbers have been drawn. */
static double next_rand(void) {
    Tensor *x = tensor_rand(SHAPE(1));
    ck_assert_ptr_nonnull(x);
    double value = element(x, 0);
    tensor_release(x);
    return value;
}

static const double FIRST_OF_SEED_0 = 0.49625658988952637;

/* ---- golden files ---------------------------------------------------------------------------- */

typedef struct {
    DType dtype;
    int64_t count;
    void *elements;
} Golden;

typedef struct {
    char name[16], type[8];
    int64_t count;
} RecordHeader;

static DType golden_dtype(const char *type) {
    static const char *const types[] = {[F32] = "f4", [F64] = "f8", [I64] = "i8", [BOOL] = "b1"};
    for (int i = F32; i <= BOOL; i++)
        if (strcmp(type, types[i]) == 0) return (DType)i;
    ck_abort_msg("a golden record has type %s", type);
    return F32;
}

/* The files are little-endian, as the machine is that made them. */
static void from_little_endian(void *elements, size_t count, size_t size) {
    const uint16_t one = 1;
    char *bytes = elements;
    if (*(const char *)&one == 1) return;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < size / 2; k++) {
            const char byte = bytes[i * size + k];
            bytes[i * size + k] = bytes[i * size + size - 1 - k];
            bytes[i * size + size - 1 - k] = byte;
        }
}

/* The record with this name; the caller frees its elements. */
static Golden golden(int64_t seed, const char *name) {
    const char *path = format("tests/golden/random_%lld.bin", (long long)seed);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is missing: run the tests from the repository's root", path);
    RecordHeader header;
    while (fread(&header, sizeof header, 1, file) == 1) {
        from_little_endian(&header.count, 1, sizeof header.count);
        DType dtype = golden_dtype(header.type);
        size_t size = (size_t)header.count * dtype_size(dtype);
        void *elements = malloc(size);
        ck_assert_ptr_nonnull(elements);
        ck_assert_uint_eq(fread(elements, 1, size, file), size);
        from_little_endian(elements, (size_t)header.count, dtype_size(dtype));
        if (strcmp(header.name, name) == 0) {
            fclose(file);
            return (Golden){dtype, header.count, elements};
        }
        free(elements);
    }
    fclose(file);
    ck_abort_msg("%s has no record %s", path, name);
    return (Golden){0};
}

/* Compares x with the elements from `first` on. With tolerance 0 the bytes must be equal. */
static void compare(const char *name, const Tensor *x, const Golden *want, int64_t first,
                    double tolerance) {
    ck_assert_int_eq(x->dtype, want->dtype);
    ck_assert_int_le(first + tensor_numel(x), want->count);
    size_t size = dtype_size(x->dtype);
    const char *ours = x->data;
    const char *torchs = (const char *)want->elements + (size_t)first * size;
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        if (memcmp(ours + (size_t)i * size, torchs + (size_t)i * size, size) == 0) continue;
        double a = element(x, i), b = at(want->dtype, torchs, i);
        ck_assert_msg(tolerance > 0 && fabs(a - b) <= tolerance,
                      "%s: draw %lld is %.17g, torch's is %.17g", name, (long long)(first + i), a,
                      b);
    }
}

/* ---- 1000 draws of each kind from three seeds ------------------------------------------------ */

static const int64_t SEEDS[] = {0, 42, 517109245};
enum { SEED_COUNT = 3, DRAWS = 1000 };

static Tensor *draw_rand(int64_t n) { return tensor_rand(SHAPE(n)); }
static Tensor *draw_uniform(int64_t n) { return tensor_uniform(-0.7, 0.4, SHAPE(n)); }
static Tensor *draw_randn(int64_t n) { return tensor_randn(SHAPE(n)); }
static Tensor *draw_normal(int64_t n) { return tensor_normal(3.5, 0.25, SHAPE(n)); }
static Tensor *draw_randint(int64_t n) { return tensor_randint(-7, 1000, SHAPE(n)); }
static Tensor *draw_below_28(int64_t n) { return tensor_randint(-7, (1 << 28) - 8, SHAPE(n)); }
static Tensor *draw_28(int64_t n) { return tensor_randint(-7, (1 << 28) - 7, SHAPE(n)); }
static Tensor *draw_32(int64_t n) { return tensor_randint(0, INT64_C(1) << 32, SHAPE(n)); }
static Tensor *draw_wide(int64_t n) { return tensor_randint(INT64_MIN, INT64_MAX, SHAPE(n)); }

/* The mask that dropout drew: dropout of ones is not 0 where the mask is true. */
static Tensor *draw_dropout(int64_t n, double p) {
    Tensor *ones = tensor_ones(SHAPE(n));
    Tensor *zeros = tensor_zeros(SHAPE(n));
    tape_begin_no_grad();
    Tensor *kept = tape_end_keeping(ag_ne(ag_dropout(ones, p), zeros));
    RELEASE(ones, zeros);
    return kept;
}
static Tensor *draw_dropout_1(int64_t n) { return draw_dropout(n, 0.1); }
static Tensor *draw_dropout_5(int64_t n) { return draw_dropout(n, 0.5); }

/* The same for views, row-major, one after the other. Dropout draws in the order of memory. */
static Tensor *draw_dropout_views(int64_t n) {
    static const struct {
        Shape shape;
        int64_t stride[4];
    } views[] = {{{3, {2, 3, 4}}, {1, 2, 6}},
                 {{2, {3, 4}}, {1, 8}},
                 {{3, {4, 3, 5}}, {0, 1, 3}},
                 {{4, {2, 1, 3, 2}}, {3, 7, 1, 6}},
                 {{3, {2, 4, 2}}, {2, 2, 1}}};
    enum { VIEWS = COUNT(views) };
    Tensor *ones = tensor_ones(SHAPE(100));
    Tensor *zero = tensor_zeros(SCALAR);
    Tensor *view[VIEWS];
    Tensor *kept[VIEWS];
    tape_begin_no_grad();
    for (int i = 0; i < VIEWS; i++) {
        view[i] = tensor_as_strided(ones, views[i].shape, views[i].stride, 0);
        kept[i] = ag_reshape(ag_ne(ag_dropout(view[i], 0.5), zero), SHAPE(-1));
    }
    Tensor *all = tape_end_keeping(ag_cat(kept, VIEWS, 0));
    for (int i = 0; i < VIEWS; i++) tensor_release(view[i]);
    RELEASE(zero, ones);
    ck_assert_int_eq(tensor_numel(all), n);
    return all;
}

/* n indices from weights (rows, categories), some of them 0; by columns in memory for n = 20. */
static Tensor *draw_multinomial(int64_t rows, int64_t categories, int64_t n, bool replacement) {
    Tensor *w = tensor_zeros(SHAPE(categories, rows));
    for (int64_t i = 0; i < rows * categories; i++)
        tensor_set(w, (double)(i * 7 % 11) / (double)(i * 7 % 11 + 3), i / rows, i % rows);
    tape_begin_no_grad();
    Tensor *by_columns = ag_transpose(w, 0, 1);
    Tensor *index =
        tensor_multinomial(n == 20 ? by_columns : ag_contiguous(by_columns), n / rows, replacement);
    Tensor *flat = tape_end_keeping(ag_reshape(tape_own(index), SHAPE(n)));
    tensor_release(w);
    return flat;
}
static Tensor *draw_multinomial_1(int64_t n) { return draw_multinomial(2, 30, n, false); }
static Tensor *draw_multinomial_4(int64_t n) { return draw_multinomial(4, 9, n, false); }
static Tensor *draw_multinomial_70(int64_t n) { return draw_multinomial(1, 70, n, false); }
static Tensor *draw_multinomial_5000(int64_t n) { return draw_multinomial(2, 5000, n, true); }
static Tensor *draw_multinomial_9(int64_t n) { return draw_multinomial(2, 9, n, true); }

typedef struct {
    const char *name;
    DType default_dtype;
    int64_t per_call;
    Tensor *(*draw)(int64_t n);
    double tolerance;
} Record;

static const Record RECORDS[] = {
    {"rand", F32, DRAWS, draw_rand, 0},
    {"uniform", F32, DRAWS, draw_uniform, 0},
    {"randn 15", F32, 15, draw_randn, 1e-6},
    {"randn 16", F32, 16, draw_randn, 1e-6},
    {"randn 37", F32, 37, draw_randn, 1e-6},
    {"normal 15", F32, 15, draw_normal, 1e-6},
    {"normal 37", F32, 37, draw_normal, 1e-6},
    {"randint", F32, DRAWS, draw_randint, 0},
    {"randint 2^28-1", F32, DRAWS, draw_below_28, 0},
    {"randint 2^28", F32, DRAWS, draw_28, 0},
    {"randint 2^32", F32, DRAWS, draw_32, 0},
    {"randint wide", F32, DRAWS, draw_wide, 0},
    {"randperm", F32, DRAWS, tensor_randperm, 0},
    {"dropout .1", F32, DRAWS, draw_dropout_1, 0},
    {"dropout .5", F32, 10, draw_dropout_5, 0},
    {"dropout views", F32, 124, draw_dropout_views, 0},
    {"multinomial 1", F32, 2, draw_multinomial_1, 0},
    {"multinomial", F32, 20, draw_multinomial_4, 0},
    {"multinomial f64", F64, 50, draw_multinomial_70, 0},
    {"multinomial +", F32, 40, draw_multinomial_5000, 0},
    {"multinomial+ f8", F64, 40, draw_multinomial_9, 0},
    {"rand f64", F64, DRAWS, draw_rand, 0},
    {"uniform f64", F64, DRAWS, draw_uniform, 0},
    {"randn 15 f64", F64, 15, draw_randn, 1e-14},
    {"randn 37 f64", F64, 37, draw_randn, 1e-14},
    {"normal 16 f64", F64, 16, draw_normal, 1e-14},
};
enum { RECORD_COUNT = COUNT(RECORDS) };

CASE("goldens", .setup = frame_setup_float, .teardown = frame_teardown)
LOOP_TEST(thousand_draws_match_torch, RECORD_COUNT *SEED_COUNT) {
    const Record *record = &RECORDS[_i / SEED_COUNT];
    int64_t seed = SEEDS[_i % SEED_COUNT];
    Golden want = golden(seed, record->name);
    ck_assert_int_ge(want.count, DRAWS);
    tensor_set_default_dtype(record->default_dtype);
    tensor_manual_seed((uint64_t)seed);
    for (int64_t first = 0; first < want.count; first += record->per_call) {
        Tensor *x = record->draw(record->per_call);
        ck_assert_ptr_nonnull(x);
        compare(record->name, x, &want, first, record->tolerance);
        tensor_release(x);
    }
    free(want.elements);
}

/* Compares x, which it releases, and returns where the next part begins. */
static int64_t compare_part(Tensor *x, const Golden *want, int64_t first) {
    ck_assert_ptr_nonnull(x);
    int64_t n = tensor_numel(x);
    ck_assert_int_le(first + n, want->count);
    for (int64_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(element(x, i), at(F64, want->elements, first + i), 1e-6);
    tensor_release(x);
    return first + n;
}

/* One stream through every kind of draw: each kind begins where the previous one ended. */
LOOP_TEST(mixed_draws_match_torch, SEED_COUNT) {
    static const DType dtypes[] = {F32, F64, F32};
    Golden want = golden(SEEDS[_i], "mixed");
    ck_assert_int_eq(want.dtype, F64);
    int64_t next = 0;
    tensor_manual_seed((uint64_t)SEEDS[_i]);
    for (int round = 0; round < 3; round++) {
        tensor_set_default_dtype(dtypes[round]);
        next = compare_part(tensor_rand(SHAPE(3)), &want, next);
        next = compare_part(tensor_randn(SHAPE(5)), &want, next);
        next = compare_part(tensor_randn(SHAPE(2, 4, 2)), &want, next);
        next = compare_part(tensor_randint(0, 10, SHAPE(3)), &want, next);
        next = compare_part(tensor_randn(SHAPE(2)), &want, next);
        next = compare_part(tensor_bernoulli(1 - 0.3, SHAPE(2, 2)), &want, next);
        next = compare_part(tensor_randperm(7), &want, next);
        next = compare_part(tensor_normal(1, 2, SHAPE(4, 5)), &want, next);
        next = compare_part(tensor_randn(SCALAR), &want, next);
        next = compare_part(tensor_rand(SHAPE(0)), &want, next);
        next = compare_part(tensor_uniform(2, 5, SHAPE(2)), &want, next);
    }
    ck_assert_int_eq(next, want.count);
    free(want.elements);
}

/* ---- well-known values ----------------------------------------------------------------------- */

TEST(seed_0_prints_what_torch_prints) {
    EXPECT(tensor_rand(SHAPE(5)), 5e-5, .4963, .7682, .0885, .1320, .3074);
    tensor_manual_seed(0);
    EXPECT(tensor_randn(SHAPE(5)), 5e-5, 1.5410, -.2934, -2.1788, .5684, -1.0845);
    tensor_manual_seed(0);
    EXPECT(tensor_randn(SHAPE(16)), 5e-5, -1.1258, -1.1524, -.2506, -.4339);
    tensor_manual_seed(0);
    EXPECT(tensor_randperm(10), 0, 4, 1, 7, 5, 3, 9, 0, 8, 6, 2);
}

TEST(seed_42_prints_what_torch_prints) {
    tensor_manual_seed(42);
    EXPECT(tensor_rand(SHAPE(5)), 5e-5, .8823, .9150, .3829, .9593, .3904);
    tensor_manual_seed(42);
    EXPECT(tensor_randn(SHAPE(5)), 5e-5, .3367, .1288, .2345, .2303, -1.1229);
}

TEST(seed_123_drops_what_torch_drops) {
    static const char *const rows[] = {"220220", "000202", "222202", "022002", "020202", "022220"};
    tensor_manual_seed(123);
    Tensor *keep = tensor_bernoulli(1 - 0.5, SHAPE(6, 6));
    ck_assert_ptr_nonnull(keep);
    for (int i = 0; i < 36; i++)
        ck_assert_int_eq(((const bool *)keep->data)[i], rows[i / 6][i % 6] == '2');
    tensor_release(keep);
}

/* nn.Linear(2, 3) draws its weight and then its bias from U(-1/sqrt(2), 1/sqrt(2)). */
TEST(uniform_starts_a_linear_layer_as_torch_does) {
    double bound = 1 / sqrt(2);
    EXPECT(tensor_uniform(-bound, bound, SHAPE(3, 2)), 5e-5, -.0053, .3793, -.5820, -.5204, -.2723,
           .1896);
    EXPECT(tensor_uniform(-bound, bound, SHAPE(3)), 5e-5, -.0140, .5607, -.0628);
}

/* ISO C++, [rand.predef]: the 10000th number of mt19937 with its default seed 5489. A number of 64
 * bits has two words; the second is the low one. */
TEST(engine_passes_the_standards_check) {
    tensor_manual_seed(5489);
    Tensor *x = tensor_randint(0, INT64_C(1) << 32, SHAPE(5000));
    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(((const int64_t *)x->data)[4999], 4123659995);
    tensor_release(x);
}

/* ---- seeds, state, threads ------------------------------------------------------------------- */

CASE("state", .setup = frame_setup_float, .teardown = frame_teardown)
TEST(only_the_low_32_bits_of_a_seed_count) {
    tensor_manual_seed((uint64_t)7 << 32);
    ck_assert_double_eq(next_rand(), FIRST_OF_SEED_0);
    tensor_manual_seed(UINT64_MAX); /* torch.manual_seed(-1) */
    ck_assert_double_eq(next_rand(), 0.9937993884086609);
}

/* The second normal of a pair waits for the next draw of a normal. Other draws do not use it; a new
 * seed drops it. */
TEST(second_normal_of_a_pair_waits) {
    EXPECT(tensor_randn(SHAPE(1)), 5e-5, 1.5410);
    next_rand();
    tensor_release(tensor_randn(SHAPE(16)));
    EXPECT(tensor_normal(10, 2, SHAPE(1)), 1e-4, 10 + 2 * -.2934);
    ck_assert(!tensor_generator_current()->has_cached);
}

TEST(seeding_drops_the_waiting_normal) {
    tensor_release(tensor_randn(SHAPE(1)));
    ck_assert(tensor_generator_current()->has_cached);
    tensor_manual_seed(0);
    ck_assert(!tensor_generator_current()->has_cached);
    EXPECT(tensor_randn(SHAPE(1)), 5e-5, 1.5410);
}

TEST(a_saved_generator_repeats_itself) {
    tensor_release(tensor_randn(SHAPE(7)));
    Generator saved = *tensor_generator_current();
    Tensor *first = tensor_randn(SHAPE(3, 5));
    tensor_release(tensor_rand(SHAPE(2000)));
    *tensor_generator_current() = saved;
    Tensor *again = tensor_randn(SHAPE(3, 5));
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(again);
    ck_assert_mem_eq(first->data, again->data, 15 * sizeof(float));
    RELEASE(first, again);
}

TEST(a_zeroed_generator_starts_from_seed_0) {
    tensor_manual_seed(42);
    *tensor_generator_current() = (Generator){0};
    ck_assert_double_eq(next_rand(), FIRST_OF_SEED_0);
}

static void *draw_in_thread(void *value) {
    *(double *)value = next_rand();
    tensor_manual_seed(99);
    next_rand();
    return NULL;
}

LOOP_TEST(each_thread_has_its_own_generator, WITH_THREADS) {
    tensor_manual_seed(42);
    double value = 0;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, draw_in_thread, &value), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_double_eq(value, FIRST_OF_SEED_0); /* the thread never called tensor_manual_seed */
    EXPECT(tensor_rand(SHAPE(1)), 5e-5, .8823);  /* and did not change our generator */
}

/* ---- shapes, types, corners ------------------------------------------------------------------ */

static void expect_form(Tensor *x, DType dtype, int ndim, int64_t numel) {
    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(x->dtype, dtype);
    ck_assert_int_eq(x->shape.ndim, ndim);
    ck_assert_int_eq(tensor_numel(x), numel);
    tensor_release(x);
}

CASE("corners", .setup = frame_setup_float, .teardown = frame_teardown)
TEST(results_have_the_shape_and_type_asked_for) {
    for (DType dtype = F32; dtype <= F64; dtype++) {
        tensor_set_default_dtype(dtype);
        expect_form(tensor_rand(SHAPE(2, 3)), dtype, 2, 6);
        expect_form(tensor_uniform(1, 2, SHAPE(2, 3)), dtype, 2, 6);
        expect_form(tensor_randn(SCALAR), dtype, 0, 1);
        expect_form(tensor_normal(1, 2, SHAPE(2, 1, 20)), dtype, 3, 40);
        expect_form(tensor_bernoulli(0.5, SHAPE(1, 1, 1, 1, 1, 1, 1, 2)), BOOL, 8, 2);
        expect_form(tensor_randint(0, 9, SHAPE(4)), I64, 1, 4);
        expect_form(tensor_randperm(5), I64, 1, 5);
    }
}

TEST(no_elements_take_no_draws) {
    expect_form(tensor_rand(SHAPE(2, 0)), F32, 2, 0);
    expect_form(tensor_uniform(1, 2, SHAPE(0)), F32, 1, 0);
    expect_form(tensor_randn(SHAPE(0, 3)), F32, 2, 0);
    expect_form(tensor_normal(1, 2, SHAPE(0)), F32, 1, 0);
    expect_form(tensor_bernoulli(0.5, SHAPE(0)), BOOL, 1, 0);
    expect_form(tensor_randint(0, 9, SHAPE(0)), I64, 1, 0);
    expect_form(tensor_randperm(0), I64, 1, 0);
    EXPECT(tensor_randperm(1), 0, 0); /* one permutation: nothing is drawn */
    ck_assert_double_eq(next_rand(), FIRST_OF_SEED_0);
}

TEST(limits_of_the_arguments_are_allowed) {
    EXPECT(tensor_uniform(1.5, 1.5, SHAPE(2)), 0, 1.5, 1.5);
    EXPECT(tensor_normal(-3, 0, SHAPE(2)), 0, -3, -3);
    EXPECT(tensor_randint(INT64_MIN, INT64_MIN + 1, SHAPE(2)), 0, -0x1p63, -0x1p63);
    Tensor *x = tensor_normal((double)INFINITY, 1, SHAPE(20));
    ck_assert_ptr_nonnull(x);
    ck_assert(isinf(element(x, 0)) && isinf(element(x, 19)));
    tensor_release(x);
}

/* p = 0 and p = 1 draw, too: two words per element. */
TEST(certain_masks_draw_too) {
    EXPECT(tensor_bernoulli(1, SHAPE(3)), 0, 1, 1, 1);
    ck_assert_double_eq(next_rand(), 0.4900934100151062); /* the seventh of seed 0 */
    tensor_manual_seed(0);
    EXPECT(tensor_bernoulli(0, SHAPE(3)), 0, 0, 0, 0);
    ck_assert_double_eq(next_rand(), 0.4900934100151062);
}

/* 2^28 - 1 values take one word per element, 2^28 take two. */
TEST(wide_integers_take_two_words) {
    EXPECT(tensor_randint(0, (1 << 28) - 1, SHAPE(2)), 0, 2357136044 % ((1 << 28) - 1),
           2546248239 % ((1 << 28) - 1));
    tensor_manual_seed(0);
    EXPECT(tensor_randint(0, 1 << 28, SHAPE(2)), 0, 2546248239 % (1 << 28), 3626093760 % (1 << 28));
}

/* ---- mistakes -------------------------------------------------------------------------------- */

enum { LARGE = 20 };

#define DRAWS_NOTHING(call, sentence)                                                              \
    do {                                                                                           \
        tensor_manual_seed(0);                                                                     \
        FAILS(call, sentence);                                                                     \
        ck_assert_double_eq(next_rand(), FIRST_OF_SEED_0);                                         \
    } while (0)

#define WEIGHTS_MUST_BE "weights must be (V) or (B, V), float32 or float64, and n positive"

CASE("mistakes", .setup = frame_setup_float, .teardown = frame_teardown)
TEST(a_mistake_is_one_sentence_and_draws_nothing) {
    const Shape n = SHAPE(LARGE), negative = SHAPE(2, -1);
    const double nan_ = (double)NAN, infinity = (double)INFINITY;
    DRAWS_NOTHING(tensor_normal(0, -1, n), "normal: std is -1: it must not be negative");
    DRAWS_NOTHING(tensor_normal(0, nan_, n), "normal: std is nan: it must be a number");
    DRAWS_NOTHING(tensor_bernoulli(1.5, n), "bernoulli: p is 1.5: it must be in [0, 1]");
    DRAWS_NOTHING(tensor_bernoulli(-0.1, n), "bernoulli: p is -0.1: it must be in [0, 1]");
    DRAWS_NOTHING(tensor_bernoulli(nan_, n), "bernoulli: p is nan: it must be in [0, 1]");
    DRAWS_NOTHING(tensor_randint(5, 5, n),
                  "randint: low is 5 and high is 5: low must be below high");
    DRAWS_NOTHING(tensor_randint(3, -2, SHAPE(0)),
                  "randint: low is 3 and high is -2: low must be below high");
    const double bad[] = {-1, nan_, infinity, 0};
    Tensor *w = tensor_from_doubles(SHAPE(4), (double[]){0, 1, 0, 2});
    Tensor *rows = tensor_ones(SHAPE(2, 3));
    Tensor *cube = tensor_ones(SHAPE(2, 3, 4));
    Tensor *whole = tensor_randperm(4);
    for (int i = 0; i < COUNT(bad); i++)
        for (int again = 0; again < 2; again++) {
            tensor_fill(rows, i == 3 ? 0 : 1);
            tensor_set(rows, bad[i], 1, 2);
            const char *none = format(
                "multinomial: row 0 has 0 weights above 0: it must have %d or more", 2 - again);
            const char *wrong = format(
                "multinomial: weight 2 of row 1 is %g: it must be finite and not negative", bad[i]);
            DRAWS_NOTHING(tensor_multinomial(rows, 2, again), i == 3 ? none : wrong);
        }
    DRAWS_NOTHING(tensor_multinomial(w, 3, false),
                  "multinomial: row 0 has 2 weights above 0: it must have 3 or more");
    DRAWS_NOTHING(tensor_multinomial(w, 0, true),
                  "multinomial: weights is float32 (4,) and n is 0: " WEIGHTS_MUST_BE);
    DRAWS_NOTHING(tensor_multinomial(cube, 1, true),
                  "multinomial: weights is float32 (2, 3, 4) and n is 1: " WEIGHTS_MUST_BE);
    DRAWS_NOTHING(tensor_multinomial(whole, 1, true),
                  "multinomial: weights is int64 (4,) and n is 1: " WEIGHTS_MUST_BE);
    DRAWS_NOTHING(tensor_multinomial(NULL, 1, true), "multinomial: the tensor is NULL");
    RELEASE(w, rows, cube, whole);
    DRAWS_NOTHING(tensor_randperm(-1), "randperm: n is -1: it must not be negative");
    DRAWS_NOTHING(tensor_uniform(2, 1, n),
                  "uniform: low is 2 and high is 1: low must not be above high");
    DRAWS_NOTHING(tensor_uniform(nan_, 1, n), "uniform: low is nan: it must be a number");
    DRAWS_NOTHING(tensor_uniform(0, nan_, n), "uniform: high is nan: it must be a number");
    DRAWS_NOTHING(
        tensor_uniform(0, infinity, n),
        "uniform: low is 0 and high is inf: both, and high - low, must be finite in float32");
    DRAWS_NOTHING(
        tensor_uniform(-3e38, 3e38, n),
        "uniform: low is -3e+38 and high is 3e+38: both, and high - low, must be finite in float32");
    DRAWS_NOTHING(tensor_rand(negative), "rand: shape is (2, -1): a size must not be negative");
    DRAWS_NOTHING(tensor_uniform(0, 1, negative),
                  "uniform: shape is (2, -1): a size must not be negative");
    DRAWS_NOTHING(tensor_randn(negative), "randn: shape is (2, -1): a size must not be negative");
    DRAWS_NOTHING(tensor_normal(0, 1, negative),
                  "normal: shape is (2, -1): a size must not be negative");
    DRAWS_NOTHING(tensor_bernoulli(0.5, negative),
                  "bernoulli: shape is (2, -1): a size must not be negative");
    DRAWS_NOTHING(tensor_randint(0, 5, negative),
                  "randint: shape is (2, -1): a size must not be negative");
}

TEST(float64_reaches_further) {
    tensor_set_default_dtype(F64);
    expect_form(tensor_uniform(-3e38, 3e38, SHAPE(2)), F64, 1, 2);
    FAILS(tensor_uniform(-1e308, 1e308, SHAPE(2)),
          "uniform: low is -1e+308 and high is 1e+308: both, and "
          "high - low, must be finite in float64");
}

TEST(no_memory_draws_nothing) {
    Shape huge = SHAPE(INT64_MAX / 2);
    ck_assert_ptr_null(tensor_rand(huge));
    ck_assert_ptr_nonnull(tensor_error());
    tensor_clear_error();
    ck_assert_ptr_null(tensor_randperm(INT64_MAX / 2));
    ck_assert_ptr_nonnull(tensor_error());
    tensor_clear_error();
    ck_assert_double_eq(next_rand(), FIRST_OF_SEED_0);
}

/* ---- the state as a tensor ------------------------------------------------------------------ */

/* Draws 7 normals, so that one waits, and then 700 uniforms. Returns a number made of the last
 * ones. */
static double some_draws(void) {
    Tensor *normals = tensor_randn(SHAPE(7));
    Tensor *words = tensor_rand(SHAPE(700));
    double sum = tensor_get(normals, 6) + 10 * tensor_get(words, 699);
    RELEASE(normals, words);
    return sum;
}

CASE("state", .setup = frame_setup_float, .teardown = frame_teardown)
TEST(a_state_goes_on_as_it_would_have) {
    for (int i = 0; i < 4;
         i++) { /* states with and without a waiting normal, at any place in the words */
        Tensor *state = tensor_generator_state();
        const double first = some_draws(), second = some_draws();
        ck_assert_double_ne(first, second);
        tensor_manual_seed(9);
        ck_assert(tensor_set_generator_state(state));
        ck_assert_double_eq(some_draws(), first);
        ck_assert_double_eq(some_draws(), second);
        /* The state may be a view with any strides, and may come from a file. */
        Tensor *turned = tensor_as_strided(state, SHAPE(3, 627), (int64_t[]){0, 1}, 0);
        Tensor *wide = tensor_clone(turned);
        Tensor *column = tensor_as_strided(wide, SHAPE(627), (int64_t[]){1}, 627);
        ck_assert(tensor_set_generator_state(column));
        ck_assert_double_eq(some_draws(), first);
        RELEASE(state, turned, wide, column);
    }
}

TEST(a_state_that_is_none_is_refused) {
    static const struct {
        int place;
        int64_t value;
    } wrong[] = {{0, -1},          {623, 1LL << 32}, {624, -1}, {624, 625},
                 {624, 1LL << 32}, {625, 2},         {625, -1}};
    const char *sentence = "set_generator_state: the state is not the state of a generator";
    Tensor *state = tensor_generator_state();
    Tensor *x = tensor_ones(SHAPE(627));
    Tensor *y = tensor_randperm(626);
    const Generator before = *tensor_generator_current();
    for (int i = 0; i < COUNT(wrong); i++) {
        int64_t *place = (int64_t *)state->data + wrong[i].place, kept = *place;
        *place = wrong[i].value;
        FAILS(tensor_set_generator_state(state), sentence);
        *place = kept;
    }
    FAILS(tensor_set_generator_state(x),
          "set_generator_state: the state is float32 (627,): it must be int64 (627,)");
    FAILS(tensor_set_generator_state(y),
          "set_generator_state: the state is int64 (626,): it must be int64 (627,)");
    FAILS(tensor_set_generator_state(NULL), "set_generator_state: the tensor is NULL");
    tensor_fail("an earlier error");
    ck_assert(!tensor_set_generator_state(state));
    FAILS(tensor_generator_state(), "an earlier error");
    ck_assert_mem_eq(&before, tensor_generator_current(), sizeof before);
    RELEASE(state, x, y);
}

int main(void) { return run_tests("random"); }
