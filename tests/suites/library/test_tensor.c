/* test_tensor.c - does every function of tensor.h do what the header says?
 *
 * Creation, conversion, views, sorting, access, writes in place, errors and lifetime; printing and
 * random numbers have suites of their own. PyTorch computed the expected numbers; its expression is
 * in a comment. The suite reads elements with code of its own, so that a fault in the library's
 * access functions cannot hide another fault. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "../../../tensor/internal.h"
#include "../common.h"

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

/* ---- every test ends with the tensors that it began with, and no error ----------------------- */

static int64_t live_before;

static void setup(void) {
    frame_setup_float();
    live_before = tensor_live();
}

/* ---- reading and expecting ------------------------------------------------------------------- */

/* The offset of x's i-th element in row-major order, in elements from x->data. */
static int64_t place(const Tensor *x, int64_t i) {
    int64_t offset = 0;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        offset += i % x->shape.dim[d] * x->stride[d];
        i /= x->shape.dim[d];
    }
    return offset;
}

static double number(const Tensor *x, int64_t i) {
    int64_t at = place(x, i);
    switch (x->dtype) {
    case F32: return (double)((const float *)x->data)[at];
    case F64: return ((const double *)x->data)[at];
    case I64: return (double)((const int64_t *)x->data)[at];
    default: return ((const unsigned char *)x->data)[at]; /* a bool must be 0 or 1 */
    }
}

static int64_t integer(const Tensor *x, int64_t i) {
    ck_assert_int_eq(x->dtype, I64);
    return ((const int64_t *)x->data)[place(x, i)];
}

/* Are the numbers equal? Zeros must have the same sign; all NaNs are equal. */
static bool same(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b && !signbit(a) == !signbit(b);
}

static void expect_form(const Tensor *x, DType dtype, Shape shape) {
    ck_assert_msg(x != NULL, "%s", tensor_error());
    ck_assert_int_eq(x->dtype, dtype);
    ck_assert_str_eq(tensor_shape_text(x->shape), tensor_shape_text(shape));
}

static void expect_numbers(const Tensor *x, const double *want, int n) {
    ck_assert_int_eq(tensor_numel(x), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(same(number(x, i), want[i]), "element %d is %.17g, not %.17g", i,
                      number(x, i), want[i]);
}

static void expect_integers(const Tensor *x, const int64_t *want, int n) {
    ck_assert_int_eq(tensor_numel(x), n);
    for (int i = 0; i < n; i++) ck_assert_int_eq(integer(x, i), want[i]);
}

/* EXPECT(x, 1, 2, 3): the elements of x, row-major, must be these. */
#define EXPECT(x, ...)                                                                             \
    expect_numbers(x, (const double[]){__VA_ARGS__}, COUNT(((double[]){__VA_ARGS__})))

/* The same for a new tensor, which is then released. */
static void expect_made(Tensor *x, DType dtype, Shape shape, const double *want, int n) {
    expect_form(x, dtype, shape);
    ck_assert(tensor_is_contiguous(x));
    ck_assert_ptr_null(x->grad);
    ck_assert(!x->requires_grad);
    ck_assert_int_eq(x->refs, 1);
    ck_assert_uint_eq(x->storage->version, 0);
#ifndef CORE_ONLY /* whose memory is malloc's */
    ck_assert_uint_eq((uintptr_t)x->data % 64, 0);
#endif
    expect_numbers(x, want, n);
    tensor_release(x);
}

#define EXPECT_MADE(x, dtype, shape, ...)                                                          \
    expect_made(x, dtype, shape, (const double[]){__VA_ARGS__}, COUNT(((double[]){__VA_ARGS__})))

#define IS_NAN(call, sentence)                                                                     \
    do {                                                                                           \
        ck_assert_double_nan(call);                                                                \
        expect_error(sentence);                                                                    \
    } while (0)

/* 0, 1, 2, ... in the default type. */
static Tensor *counting(Shape shape) {
    Tensor *x = tensor_empty(shape);
    ck_assert_ptr_nonnull(x);
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        if (x->dtype == F32) ((float *)x->data)[i] = (float)i;
        else ((double *)x->data)[i] = (double)i;
    }
    return x;
}

#define STRIDED(x, shape, offset, ...)                                                             \
    tensor_as_strided(x, shape, (const int64_t[]){__VA_ARGS__}, offset)

/* ---- creation -------------------------------------------------------------------------------- */

CASE("creation", .setup = setup, .teardown = frame_teardown)
TEST(constants_are_made_in_the_default_type) {
    static const DType types[] = {F32, F64};
    for (int i = 0; i < COUNT(types); i++) {
        ck_assert(tensor_set_default_dtype(types[i]));
        ck_assert_int_eq(tensor_default_dtype(), types[i]);
        double tenth = types[i] == F32 ? (double)0.1f : 0.1;
        EXPECT_MADE(tensor_zeros(SHAPE(2, 2)), types[i], SHAPE(2, 2), 0, 0, 0, 0);
        EXPECT_MADE(tensor_ones(SHAPE(3)), types[i], SHAPE(3), 1, 1, 1);
        EXPECT_MADE(tensor_full(SHAPE(1, 2), 0.1), types[i], SHAPE(1, 2), tenth, tenth);
        EXPECT_MADE(tensor_full(SCALAR, -0.0), types[i], SCALAR, -0.0);
        EXPECT_MADE(tensor_full(SHAPE(2), NOT), types[i], SHAPE(2), NOT, NOT);
        EXPECT_MADE(tensor_full(SHAPE(1), -INF), types[i], SHAPE(1), -INF);
        EXPECT_MADE(tensor_eye(3), types[i], SHAPE(3, 3), 1, 0, 0, 0, 1, 0, 0, 0, 1);
        Tensor *x = tensor_empty(SHAPE(5, 7));
        expect_form(x, types[i], SHAPE(5, 7));
        tensor_release(x);
    }
}

TEST(constants_are_made_in_any_type) {
    static const DType types[] = {F32, F64, I64, BOOL};
    for (int i = 0; i < COUNT(types); i++) {
        const DType type = types[i];
        EXPECT_MADE(tensor_zeros_of(SHAPE(2, 2), type), type, SHAPE(2, 2), 0, 0, 0, 0);
        EXPECT_MADE(tensor_ones_of(SHAPE(3), type), type, SHAPE(3), 1, 1, 1);
        Tensor *x = tensor_empty_of(SHAPE(5, 0), type);
        expect_form(x, type, SHAPE(5, 0));
        tensor_release(x);
    }
    EXPECT_MADE(tensor_full_of(SHAPE(2), 0.1, F64), F64, SHAPE(2), 0.1, 0.1);
    EXPECT_MADE(tensor_full_of(SCALAR, -2.7, I64), I64, SCALAR, -2);
    EXPECT_MADE(tensor_full_of(SHAPE(1, 2), 0.5, BOOL), BOOL, SHAPE(1, 2), 1, 1);
    EXPECT_MADE(tensor_arange_of(3, -2, -2, I64), I64, SHAPE(3), 3, 1, -1);
    EXPECT_MADE(tensor_arange_of(0, 2.5, 1, I64), I64, SHAPE(3), 0, 1, 2);
    EXPECT_MADE(tensor_arange_of(0, 0.3, 0.1, F64), F64, SHAPE(3), 0, 0.1, 0.2);
}

/* As torch's zeros_like: x's shape and type. x may have been let go. But the strides are always
 * contiguous. */
TEST(zeros_like_have_the_shape_and_type) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *view = STRIDED(x, SHAPE(3, 2), 0, 1, 3);
    Tensor *whole = tensor_to(view, I64);
    Tensor *empty = tensor_zeros_of(SHAPE(0, 4), BOOL);
    ag_let_go(whole);
    EXPECT_MADE(tensor_zeros_like(view), F32, SHAPE(3, 2), 0, 0, 0, 0, 0, 0);
    EXPECT_MADE(tensor_ones_like(whole), I64, SHAPE(3, 2), 1, 1, 1, 1, 1, 1);
    Tensor *y = tensor_ones_like(empty);
    expect_form(y, BOOL, SHAPE(0, 4));
    RELEASE(x, view, whole, empty, y);
}

TEST(from_copies_the_array) {
    double doubles[] = {0.1, -0.0, INF, 1e300};
    float floats[] = {0.1f, NAN};
    int64_t ints[] = {INT64_MIN, -1, (INT64_C(1) << 53) + 1, INT64_MAX};
    bool bools[] = {true, false, true};
    EXPECT_MADE(tensor_from_doubles(SHAPE(4), doubles), F32, SHAPE(4), (double)0.1f, -0.0, INF,
                INF);
    EXPECT_MADE(tensor_from_floats(SHAPE(2, 1), floats), F32, SHAPE(2, 1), (double)0.1f, NOT);
    EXPECT_MADE(tensor_from_bools(SHAPE(3, 1), bools), BOOL, SHAPE(3, 1), 1, 0, 1);
    tensor_set_default_dtype(F64);
    EXPECT_MADE(tensor_from_doubles(SHAPE(2, 2), doubles), F64, SHAPE(2, 2), 0.1, -0.0, INF, 1e300);
    EXPECT_MADE(tensor_from_floats(SHAPE(2), floats), F64, SHAPE(2), (double)0.1f, NOT);
    Tensor *x = tensor_from_int64s(SHAPE(2, 2), ints);
    expect_form(x, I64, SHAPE(2, 2));
    expect_integers(x, ints, 4);
    int64_t before = ints[3];
    ints[3] = 7; /* the tensor has a copy */
    ck_assert_int_eq(integer(x, 3), before);
    tensor_release(x);
}

TEST(from_an_array_of_nothing_needs_no_array) {
    Tensor *x[] = {tensor_from_doubles(SHAPE(0), NULL), tensor_from_floats(SHAPE(2, 0), NULL),
                   tensor_from_int64s(SHAPE(0, 3), NULL), tensor_from_bools(SHAPE(0), NULL)};
    static const DType types[] = {F32, F32, I64, BOOL};
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_nonnull(x[i]);
        ck_assert_int_eq(x[i]->dtype, types[i]);
        ck_assert_int_eq(tensor_numel(x[i]), 0);
        tensor_release(x[i]);
    }
}

/* Strides as torch.empty(shape).stride() has them: a size of 0 counts as 1. */
TEST(strides_are_row_major) {
    static const struct {
        Shape shape;
        int64_t stride[8], numel;
    } cases[] = {
        {{0, {0}}, {0}, 1},
        {{1, {5}}, {1}, 5},
        {{3, {2, 3, 4}}, {12, 4, 1}, 24},
        {{3, {2, 0, 3}}, {3, 3, 1}, 0},
        {{2, {0, 3}}, {3, 1}, 0},
        {{2, {3, 0}}, {1, 1}, 0},
        {{3, {1, 1, 1}}, {1, 1, 1}, 1},
        {{8, {2, 1, 3, 1, 2, 2, 1, 2}}, {24, 24, 8, 8, 4, 2, 2, 1}, 48},
        {{8, {1, 1, 1, 1, 1, 1, 1, 0}}, {1, 1, 1, 1, 1, 1, 1, 1}, 0},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Tensor *x = tensor_zeros(cases[i].shape);
        expect_form(x, F32, cases[i].shape);
        for (int d = 0; d < x->shape.ndim; d++) ck_assert_int_eq(x->stride[d], cases[i].stride[d]);
        ck_assert_int_eq(tensor_numel(x), cases[i].numel);
        ck_assert(tensor_is_contiguous(x));
        for (int64_t e = 0; e < tensor_numel(x); e++) ck_assert(same(number(x, e), 0));
        tensor_release(x);
    }
    ck_assert_int_eq(tensor_numel(NULL), 0);
}

/* len(torch.arange(0., 20000., .1)) is 200000. Compares the elements at [19999, 123457, 199999],
 * for one thread. */
TEST(a_long_arange_does_not_drift) {
    Tensor *x = tensor_arange(0, 20000, 0.1);
    expect_form(x, F32, SHAPE(200000));
    ck_assert_double_eq(number(x, 19999), 0x1.f3f998p+10);
    ck_assert_double_eq(number(x, 123457), 0x1.81cd98p+13);
    ck_assert_double_eq(number(x, 199999), 0x1.387f98p+14);
    tensor_release(x);
}

/* Beyond 2^53 not every whole number is a double. */
TEST(an_arange_of_int64_is_exact) {
    static const int64_t expected[] = {(1LL << 53) - 2, (1LL << 53) + 1, (1LL << 53) + 4};
    Tensor *x = tensor_arange_of(0x1p53 - 2, 0x1p53 + 6, 3, I64);
    expect_form(x, I64, SHAPE(3));
    ck_assert_mem_eq(x->data, expected, sizeof expected);
    tensor_release(x);
}

TEST(arange_needs_a_way) {
    FAILS(tensor_arange(0, 1, -1),
          "arange: from 0 to 1 in steps of -1: the step must lead from start to end");
    FAILS(tensor_arange(1, 0, 1),
          "arange: from 1 to 0 in steps of 1: the step must lead from start to end");
    FAILS(tensor_arange(0, 1, 0),
          "arange: from 0 to 1 in steps of 0: the step must lead from start to end");
    FAILS(tensor_arange(0, 0, 0),
          "arange: from 0 to 0 in steps of 0: the step must lead from start to end");
    FAILS(
        tensor_arange(0, INF, 1),
        "arange: from 0 to inf in steps of 1: start and end must be finite, and the step a number");
    FAILS(
        tensor_arange(NOT, 1, 1),
        "arange: from nan to 1 in steps of 1: start and end must be finite, and the step a number");
    FAILS(
        tensor_arange(0, 1, NOT),
        "arange: from 0 to 1 in steps of nan: start and end must be finite, and the step a number");
    FAILS(
        tensor_arange(-INF, INF, 1),
        "arange: from -inf to inf in steps of 1: start and end must be finite, and the step a number");
    FAILS(tensor_arange(0, 1e300, 1),
          "arange: from 0 to 1e+300 in steps of 1: there may be at most 2^62 elements");
}

static const bool ONE_BOOL;

TEST(what_cannot_be_made_is_said) {
    const Shape negative = SHAPE(2, -1), huge = SHAPE(INT64_C(1) << 40, INT64_C(1) << 40);
    FAILS(tensor_empty(negative), "shape (2, -1): a size must not be negative");
    /* an error even without elements */
    FAILS(tensor_zeros(SHAPE(-1, 0)), "shape (-1, 0): a size must not be negative");
    FAILS(tensor_ones(SHAPE(0, -3)), "shape (0, -3): a size must not be negative");
    FAILS(tensor_full(SHAPE(INT64_MIN), 1),
          "shape (-9223372036854775808,): a size must not be negative");
    FAILS(tensor_eye(-1), "shape (-1, -1): a size must not be negative");
    FAILS(tensor_from_bools(SHAPE(-1), &ONE_BOOL), "shape (-1,): a size must not be negative");
    FAILS(tensor_empty((Shape){9, {1}}), "shape: 9 dimensions: there may be 0 to 8");
    FAILS(tensor_empty((Shape){-1, {1}}), "shape: -1 dimensions: there may be 0 to 8");
    FAILS(tensor_empty(huge),
          "shape (1099511627776, 1099511627776): its bytes do not fit in memory");
    FAILS(tensor_zeros(SHAPE(INT64_MAX)),
          "shape (9223372036854775807,): its bytes do not fit in memory");
    /* 2^63 bytes */
    FAILS(tensor_full(SHAPE(INT64_C(1) << 61), 0),
          "shape (2305843009213693952,): its bytes do not fit in memory");
    FAILS(tensor_eye(INT64_C(1) << 31),
          "shape (2147483648, 2147483648): its bytes do not fit in memory");
    /* 2^62 bytes: too many for any machine */
    FAILS(tensor_empty(SHAPE(INT64_C(1) << 60)), "out of memory: 4611686018427387904 bytes");
    FAILS(tensor_from_bools(SHAPE(INT64_MAX), &ONE_BOOL),
          "out of memory: 9223372036854775807 bytes");
    FAILS(tensor_from_doubles(SHAPE(2), NULL), "from_doubles: the array is NULL");
    FAILS(tensor_from_floats(SCALAR, NULL), "from_floats: the array is NULL");
    FAILS(tensor_from_int64s(SHAPE(1, 1), NULL), "from_int64s: the array is NULL");
    FAILS(tensor_from_bools(SHAPE(2), NULL), "from_bools: the array is NULL");
    /* an error in torch, too: the strides do not fit an int64_t, although the tensor has no bytes
     */
    FAILS(tensor_empty(SHAPE(INT64_C(1) << 40, INT64_C(1) << 40, 0)),
          "shape (1099511627776, 1099511627776, 0): its bytes do not fit in memory");
    FAILS(tensor_empty_of(SHAPE(2), (DType)4), "empty: 4 is not a type");
    FAILS(tensor_full_of(SHAPE(2), 1, (DType)-1), "full: -1 is not a type");
    FAILS(tensor_full_of(SHAPE(2), 1e300, F32), "full: float32 cannot hold 1e+300");
    FAILS(tensor_full_of(SHAPE(2), NOT, I64), "full: int64 cannot hold nan");
    FAILS(tensor_arange_of(0, 2, 1, BOOL),
          "arange: the type is bool: it must be float32, float64 or int64");
    FAILS(tensor_arange_of(0.5, 2, 1, I64),
          "arange: from 0.5 in steps of 1: for int64, start and step must be whole");
    FAILS(tensor_arange_of(0, 2, 0.5, I64),
          "arange: from 0 in steps of 0.5: for int64, start and step must be whole");
    FAILS(tensor_arange_of(NOT, 2, 1, I64),
          "arange: from nan in steps of 1: for int64, start and step must be whole");
    FAILS(tensor_arange_of(1e300, 1e301, 1e300, I64), "arange: int64 cannot hold 1e+300");
    FAILS(tensor_arange_of(0, 1e300, 1e299, I64), "arange: int64 cannot hold 1e+300");
    FAILS(tensor_arange_of(0, 2, 1, (DType)9), "arange: 9 is not a type");
    FAILS(tensor_zeros_like(NULL), "zeros_like: the tensor is NULL");
    FAILS(tensor_ones_like(NULL), "ones_like: the tensor is NULL");
    FAILS(tensor_empty(SHAPE(0, INT64_C(1) << 40, INT64_C(1) << 40)),
          "shape (0, 1099511627776, 1099511627776): its bytes do not fit in memory");
}

TEST(the_default_type_is_a_float) {
    FAILS(tensor_set_default_dtype(I64),
          "set_default_dtype: the type is int64: it must be float32 or float64");
    FAILS(tensor_set_default_dtype(BOOL),
          "set_default_dtype: the type is bool: it must be float32 or float64");
    FAILS(tensor_set_default_dtype((DType)7),
          "set_default_dtype: the type is unknown: it must be float32 or float64");
    ck_assert_int_eq(tensor_default_dtype(), F32);
    ck_assert(tensor_set_default_dtype(F64));
    ck_assert_int_eq(tensor_default_dtype(), F64);
}

/* ---- lifetime -------------------------------------------------------------------------------- */

CASE("lifetime", .setup = setup, .teardown = frame_teardown)
TEST(references_are_counted) {
    Tensor *x = tensor_ones(SHAPE(2));
    ck_assert_int_eq(tensor_live(), live_before + 1);
    ck_assert_ptr_eq(tensor_retain(x), x);
    ck_assert_int_eq(x->refs, 2);
    tensor_release(x);
    ck_assert_int_eq(tensor_live(), live_before + 1);
    EXPECT(x, 1, 1);
    tensor_release(x);
    ck_assert_int_eq(tensor_live(), live_before);
    ck_assert_ptr_null(tensor_retain(NULL));
    tensor_release(NULL);
}

TEST(a_view_keeps_the_bytes_alive) {
    Tensor *x = counting(SHAPE(4));
    Tensor *view = STRIDED(x, SHAPE(2), 1, 2);
    ck_assert_int_eq(tensor_live(), live_before + 2);
    ck_assert_ptr_eq(view->storage, x->storage);
    ck_assert_int_eq(x->storage->refs, 2);
    ck_assert_int_eq(x->refs, 1);
    tensor_release(x);
    ck_assert_int_eq(tensor_live(), live_before + 1);
    ck_assert_int_eq(view->storage->refs, 1);
    EXPECT(view, 1, 3);
    tensor_release(view);
}

TEST(a_gradient_goes_with_its_tensor) {
    Tensor *x = tensor_ones(SHAPE(2));
    Tensor *kept = tensor_ones(SHAPE(2));
    x->grad = tensor_zeros(SHAPE(2));
    kept->grad = tensor_full(SHAPE(2), 3);
    Tensor *grad = tensor_retain(kept->grad);
    RELEASE(x, kept);
    ck_assert_int_eq(tensor_live(), live_before + 1);
    EXPECT(grad, 3, 3);
    tensor_release(grad);
}

/* A freed block waits for the next tensor of its size, unless TAPEHEAD_CACHE=0. */
TEST(freed_memory_is_used_again) {
    const char *setting = getenv("TAPEHEAD_CACHE");
    if (setting && strcmp(setting, "0") == 0) return;
#ifdef CORE_ONLY /* it has no cache */
    return;
#endif
    for (int64_t n = 1; n < 1 << 20; n *= 3) {
        Tensor *x = tensor_empty(SHAPE(n));
        const void *data = x->data;
        tensor_release(x);
        x = tensor_empty(SHAPE(n));
        ck_assert_ptr_eq(x->data, data);
        tensor_release(x);
    }
}

/* The bytes that malloc has allocated; 0 if it has no function for this. */
static size_t in_use(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

TEST(an_emptied_cache_gives_memory_back) {
    tensor_empty_cache();
    size_t before = in_use();
    Tensor *large = tensor_empty(SHAPE(1 << 22));
    Tensor *small[100];
    for (int i = 0; i < COUNT(small); i++) small[i] = tensor_empty(SHAPE(i * 10));
    for (int i = 0; i < COUNT(small); i++) tensor_release(small[i]);
    tensor_release(large);
    tensor_empty_cache();
    ck_assert_uint_le(in_use(), before + (1 << 20)); /* malloc has a small cache of its own */
    tensor_empty_cache();                            /* nothing to do */
    EXPECT_MADE(tensor_ones(SHAPE(2)), F32, SHAPE(2), 1, 1);
}

/* A size that is too large for the machine is an error and not cut off by a cast: in a 32-bit
 * size_t, the fourth size would be 64. */
TEST(an_impossible_size_is_refused) {
    const int64_t sizes[] = {-1, INT64_MIN, INT64_MAX, (INT64_C(1) << 62) + 64};
    for (int i = 0; i < COUNT(sizes); i++)
        FAILS(tensor_cache_alloc(sizes[i]),
              format("out of memory: %lld bytes", (long long)sizes[i]));
    if (sizeof(size_t) > 4) return; /* else 2^32 + 16 bytes of floats, of which 16 would be there */
    FAILS(tensor_zeros(SHAPE((INT64_C(1) << 30) + 4)), "out of memory: 4294967312 bytes");
    FAILS(tensor_zeros(SHAPE(INT64_C(1) << 29)), "out of memory: 2147483648 bytes");
}

/* Sizes around every class of the allocator: no two blocks may overlap. */
TEST(blocks_of_all_sizes_are_apart) {
    enum { SIZES = 300 };
    Tensor *x[SIZES];
    for (int i = 0; i < SIZES; i++) {
        x[i] = tensor_empty(SHAPE(i < 200 ? i * 7 : (i - 199) * 377));
        ck_assert_ptr_nonnull(x[i]);
        ck_assert(tensor_fill(x[i], i));
    }
    for (int i = 0; i < SIZES; i++) {
        int64_t n = tensor_numel(x[i]), right = 0;
        for (int64_t e = 0; e < n; e++) right += ((const float *)x[i]->data)[e] == (float)i;
        ck_assert_int_eq(right, n);
        tensor_release(x[i]);
    }
}

/* ---- conversion: x.to(dtype) ----------------------------------------------------------------- */

CASE("copies", .setup = setup, .teardown = frame_teardown)
/* test_golden has the numbers. */
TEST(a_conversion_is_a_copy) {
    Tensor *x = counting(SHAPE(2));
    for (int type = F32; type <= BOOL; type++) {
        Tensor *y = tensor_to(x, (DType)type);
        Tensor *same = tensor_to(y, (DType)type);
        ck_assert(tensor_fill(y, 7));
        EXPECT(same, 0, 1);
        RELEASE(y, same);
    }
    EXPECT(x, 0, 1);
    tensor_release(x);
}

/* torch.tensor([2**60 + 2**36 + 1]).float(): rounding this integer to a double and then to a float
 * gives another float than rounding it once. valgrind's own conversion rounds twice, so the test
 * does not run under valgrind. */
TEST(an_integer_is_rounded_to_a_float_once) {
    volatile int64_t i = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
    if ((float)i != 0x1.000002p+60f) return;
    int64_t many[20];
    for (int k = 0; k < 20; k++) many[k] = i;
    Tensor *x = tensor_from_int64s(SHAPE(20), many);
    Tensor *y = tensor_to(x, F32);
    for (int k = 0; k < 20; k++) ck_assert_double_eq(number(y, k), 0x1.000002p+60);
    RELEASE(x, y);
}

TEST(to_needs_a_tensor_and_a_type) {
    Tensor *x = tensor_ones(SHAPE(2));
    FAILS(tensor_to(NULL, F32), "to: the tensor is NULL");
    FAILS(tensor_to(x, (DType)4), "to: 4 is not a type");
    FAILS(tensor_to(x, (DType)-1), "to: -1 is not a type");
    FAILS(tensor_clone(NULL), "clone: the tensor is NULL");
    tensor_release(x);
}

/* ---- clone ----------------------------------------------------------------------------------- */

TEST(a_clone_is_contiguous_and_apart) {
    Tensor *x = counting(SHAPE(2, 3));
    x->requires_grad = true;
    strcpy(x->name, "x");
    Tensor *turned = STRIDED(x, SHAPE(3, 2), 0, 1, 3);
    EXPECT_MADE(tensor_clone(turned), F32, SHAPE(3, 2), 0, 3, 1, 4, 2, 5);
    Tensor *clone = tensor_clone(x);
    ck_assert(!clone->requires_grad);
    ck_assert(tensor_fill(x, 9));
    ck_assert_uint_eq(clone->storage->version, 0);
    EXPECT(clone, 0, 1, 2, 3, 4, 5);
    RELEASE(clone, turned, x);
}

TEST(clones_of_odd_views) {
    Tensor *x = counting(SHAPE(6));
    Tensor *view[] = {STRIDED(x, SHAPE(2, 3), 1, 0, 1), STRIDED(x, SHAPE(6), 5, -1),
                      STRIDED(x, SHAPE(2, 2, 2), 0, 1, 1, 1), STRIDED(x, SCALAR, 4, 0),
                      STRIDED(x, SHAPE(2, 0), 0, 3, 1)};
    EXPECT_MADE(tensor_clone(view[0]), F32, SHAPE(2, 3), 1, 2, 3, 1, 2, 3);
    EXPECT_MADE(tensor_clone(view[1]), F32, SHAPE(6), 5, 4, 3, 2, 1, 0);
    EXPECT_MADE(tensor_clone(view[2]), F32, SHAPE(2, 2, 2), 0, 1, 1, 2, 1, 2, 2, 3);
    EXPECT_MADE(tensor_clone(view[3]), F32, SCALAR, 4);
    expect_made(tensor_clone(view[4]), F32, SHAPE(2, 0), NULL, 0);
    for (int i = 0; i < COUNT(view); i++) tensor_release(view[i]);
    tensor_release(x);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* torch.ones(1).as_strided((2**40, 2**40), (0, 0)).numel() is an error too. */
TEST(views_do_not_outgrow_int64) {
    Tensor *x = tensor_ones(SHAPE(1));
    FAILS(STRIDED(x, SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), 0, 0, 0),
          "shape (1099511627776, 1099511627776): its elements cannot be counted");
    Tensor *wide = STRIDED(x, SHAPE(INT64_C(1) << 62), 0, 0);
    FAILS(tensor_clone(wide), "shape (4611686018427387904,): its bytes do not fit in memory");
    RELEASE(wide, x);
}

/* ---- sort ------------------------------------------------------------------------------------ */

CASE("sort", .setup = setup, .teardown = frame_teardown)
/* test_golden has the numbers. */
TEST(sort_needs_no_indices) {
    Tensor *x = tensor_from_doubles(SHAPE(4), (const double[]){3, NOT, 1, 3});
    Tensor *y = tensor_sort(x, NULL);
    EXPECT_MADE(y, F32, SHAPE(4), 1, 3, 3, NOT);
    EXPECT(x, 3, NOT, 1, 3);
    tensor_release(x);
}

TEST(sort_fails_with_no_indices) {
    Tensor *x = tensor_ones(SHAPE(2));
    Tensor *indices = x;
    FAILS(tensor_sort(NULL, &indices), "sort: the tensor is NULL");
    ck_assert_ptr_null(indices);
    FAILS(tensor_sort(NULL, NULL), "sort: the tensor is NULL");
    indices = x;
    tensor_fail("before");
    ck_assert_ptr_null(tensor_sort(x, &indices));
    FAILS(indices, "before");
    tensor_release(x);
}

/* ---- access ---------------------------------------------------------------------------------- */

CASE("access", .setup = setup, .teardown = frame_teardown)
/* torch.zeros(100).as_strided(size, stride).is_contiguous() */
TEST(contiguous_is_what_torch_says) {
    static const struct {
        Shape shape;
        int64_t stride[8];
        bool contiguous;
    } cases[] = {
        {{3, {4, 1, 3}}, {3, 77, 1}, true},
        {{2, {1, 1}}, {5, 9}, true},
        {{2, {2, 3}}, {3, 1}, true},
        {{2, {2, 3}}, {1, 2}, false},
        {{2, {0, 3}}, {7, 9}, true},
        {{2, {2, 0}}, {9, 9}, true},
        {{1, {3}}, {2}, false},
        {{1, {1}}, {2}, true},
        {{0, {0}}, {0}, true},
        {{2, {2, 3}}, {0, 1}, false},
        {{2, {1, 3}}, {0, 1}, true},
        {{3, {2, 1, 3}}, {3, 0, 1}, true},
        {{3, {2, 2, 2}}, {4, 2, 1}, true},
        {{3, {2, 2, 2}}, {4, 1, 2}, false},
        {{2, {3, 2}}, {2, 1}, true},
        {{2, {3, 2}}, {3, 1}, false},
    };
    Tensor *x = tensor_zeros(SHAPE(100));
    for (int i = 0; i < COUNT(cases); i++) {
        Tensor *view = tensor_as_strided(x, cases[i].shape, cases[i].stride, 0);
        ck_assert_msg(tensor_is_contiguous(view) == cases[i].contiguous, "case %d", i);
        tensor_release(view);
    }
    Tensor *back = STRIDED(x, SHAPE(3), 2, -1);
    Tensor *odd = STRIDED(x, SHAPE(2, 3), 3, -3, 2);
    ck_assert(!tensor_is_contiguous(back));
    ck_assert(!tensor_is_contiguous(odd));
    ck_assert(!tensor_is_contiguous(NULL));
    RELEASE(back, odd, x);
}

TEST(item_is_the_only_element) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *i = tensor_from_int64s(SHAPE(1), (const int64_t[]){-7});
    Tensor *b = tensor_from_bools(SCALAR, (const bool[]){true});
    Tensor *none = tensor_ones(SHAPE(0));
    Tensor *one = STRIDED(x, SHAPE(1, 1, 1), 4, 9, 9, 9);
    Tensor *odd = tensor_full(SCALAR, -0.0);
    ck_assert_double_eq(tensor_item(one), 4);
    ck_assert_double_eq(tensor_item(i), -7);
    ck_assert_double_eq(tensor_item(b), 1);
    ck_assert(same(tensor_item(odd), -0.0));
    IS_NAN(tensor_item(x), "item: x is (2, 3): it must have one element");
    IS_NAN(tensor_item(none), "item: x is (0,): it must have one element");
    IS_NAN(tensor_item(NULL), "item: the tensor is NULL");
    RELEASE(x, i, b, none, one, odd);
}

TEST(get_takes_plain_ints_and_counts_from_the_end) {
    Tensor *x = counting(SHAPE(2, 3, 4));
    Tensor *v = STRIDED(x, SHAPE(4, 3), 23, -1, -4);
    ck_assert_double_eq(tensor_get(x, 1, 2, 3), 23);
    ck_assert_double_eq(tensor_get(x, 0, 1, 2), 6);
    ck_assert_double_eq(tensor_get(x, -1, -3, -4), 12);
    ck_assert_double_eq(tensor_get(x, -2, 0, -1), 3);
    ck_assert_double_eq(tensor_get(v, 1, 2), 14);
    ck_assert_double_eq(tensor_get_at(x, SHAPE(1, 0, 1)), 13);
    ck_assert_double_eq(tensor_get(x, INT64_C(1), INT64_C(2), INT64_C(-1)), 23);
    short small = 1;
    ck_assert_double_eq(tensor_get(x, small, (unsigned char)1, 0), 16);
    for (int i = 0; i < 24; i++) ck_assert_double_eq(tensor_get(x, i / 12, i / 4 % 3, i % 4), i);
    RELEASE(v, x);
}

TEST(get_of_a_scalar_takes_no_index) {
    Tensor *x = tensor_full(SCALAR, 2.5);
    ck_assert_double_eq(tensor_get_at(x, SCALAR), 2.5);
    IS_NAN(tensor_get(x, 0), "get: there is no element (0,) in x, which is ()");
    tensor_release(x);
}

TEST(get_outside_is_said) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *none = tensor_ones(SHAPE(0));
    IS_NAN(tensor_get(x, 2, 0), "get: there is no element (2, 0) in x, which is (2, 3)");
    IS_NAN(tensor_get(x, 0, 3), "get: there is no element (0, 3) in x, which is (2, 3)");
    IS_NAN(tensor_get(x, -3, 0), "get: there is no element (-3, 0) in x, which is (2, 3)");
    IS_NAN(tensor_get(x, 0, -4), "get: there is no element (0, -4) in x, which is (2, 3)");
    IS_NAN(tensor_get(x, 1), "get: there is no element (1,) in x, which is (2, 3)");
    IS_NAN(tensor_get(x, 1, 1, 1), "get: there is no element (1, 1, 1) in x, which is (2, 3)");
    IS_NAN(tensor_get_at(x, SCALAR), "get: there is no element () in x, which is (2, 3)");
    IS_NAN(tensor_get(none, 0), "get: there is no element (0,) in x, which is (0,)");
    IS_NAN(tensor_get(none, -1), "get: there is no element (-1,) in x, which is (0,)");
    IS_NAN(tensor_get(NULL, 0), "get: the tensor is NULL");
    IS_NAN(tensor_get(NULL, INT64_C(0)), "get: the tensor is NULL");
    IS_NAN(tensor_get(x, INT64_MAX, 0),
           "get: there is no element (9223372036854775807, 0) in x, which is (2, 3)");
    IS_NAN(tensor_get(x, INT64_MIN, 0),
           "get: there is no element (-9223372036854775808, 0) in x, which is (2, 3)");
    RELEASE(none, x);
}

static void expect_doubles(const Tensor *x, const double *want, int n) {
    double out[33];
    for (int i = 0; i < 33; i++) out[i] = 77;
    ck_assert(tensor_to_doubles(x, out));
    for (int i = 0; i < n; i++) ck_assert(same(out[i], want[i]));
    ck_assert_double_eq(out[n], 77); /* no element after the last is written */
}

TEST(to_doubles_reads_everything) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *turned = STRIDED(x, SHAPE(3, 2), 0, 1, 3);
    Tensor *i = tensor_from_int64s(SHAPE(2), (const int64_t[]){INT64_MIN, 3});
    Tensor *b = tensor_from_bools(SHAPE(2, 1), (const bool[]){true, false});
    Tensor *s = tensor_full(SCALAR, -0.0);
    Tensor *none = tensor_ones(SHAPE(2, 0));
    Tensor *wide = STRIDED(x, SHAPE(2, 2), 3, 0, -2);
    expect_doubles(x, (const double[]){0, 1, 2, 3, 4, 5}, 6);
    expect_doubles(turned, (const double[]){0, 3, 1, 4, 2, 5}, 6);
    expect_doubles(i, (const double[]){-0x1p63, 3}, 2);
    expect_doubles(b, (const double[]){1, 0}, 2);
    expect_doubles(s, (const double[]){-0.0}, 1);
    expect_doubles(none, NULL, 0);
    expect_doubles(wide, (const double[]){3, 1, 3, 1}, 4);
    ck_assert(tensor_to_doubles(none, NULL));
    double out;
    FAILS(tensor_to_doubles(NULL, &out), "to_doubles: the tensor is NULL");
    FAILS(tensor_to_doubles(x, NULL), "to_doubles: out is NULL");
    RELEASE(x, turned, i, b, s, none, wide);
}

/* Beyond 2^53 a double would round. A shape can be read while an error is pending. */
TEST(to_int64s_reads_everything) {
    Tensor *x = tensor_from_int64s(SHAPE(2, 2), (const int64_t[]){INT64_MIN, INT64_MAX, -3, 4});
    Tensor *turned = STRIDED(x, SHAPE(2, 2), 0, 1, 2);
    Tensor *f = tensor_from_doubles(SHAPE(2), (const double[]){-1.75, 3});
    Tensor *b = tensor_from_bools(SHAPE(2), (const bool[]){true, false});
    Tensor *none = tensor_ones(SHAPE(2, 0));
    int64_t out[5] = {0, 0, 0, 0, 77};
    ck_assert(tensor_to_int64s(turned, out));
    ck_assert(out[0] == INT64_MIN && out[1] == -3 && out[2] == INT64_MAX && out[3] == 4);
    ck_assert(tensor_to_int64s(f, out) && out[0] == -1 && out[1] == 3 && out[2] == INT64_MAX);
    ck_assert(tensor_to_int64s(b, out) && out[0] == 1 && out[1] == 0 && out[4] == 77);
    ck_assert(tensor_to_int64s(none, NULL));
    FAILS(tensor_to_int64s(NULL, out), "to_int64s: the tensor is NULL");
    FAILS(tensor_to_int64s(x, NULL), "to_int64s: out is NULL");
    RELEASE(x, turned, f, b, none);
}

TEST(a_size_can_be_read_while_an_error_is_pending) {
    Tensor *x = counting(SHAPE(2, 3));
    ck_assert_int_eq(tensor_size(x, 0), 2);
    ck_assert_int_eq(tensor_size(x, 1), 3);
    ck_assert_int_eq(tensor_size(x, -1), 3);
    ck_assert_int_eq(tensor_size(x, -2), 2);
    FAILS(tensor_size(x, 2), "size: there is no dimension 2 in (2, 3)");
    FAILS(tensor_size(x, -3), "size: there is no dimension -3 in (2, 3)");
    FAILS(tensor_size(NULL, 0), "size: the tensor is NULL");
    tensor_fail("the first error");
    ck_assert_int_eq(tensor_size(x, 1), 3);
    ck_assert_int_eq(tensor_size(NULL, 1), 0);
    ck_assert_str_eq(tensor_error(), "the first error");
    tensor_clear_error();
    tensor_release(x);
}

/* ---- allclose -------------------------------------------------------------------------------- */

TEST(integers_are_compared_exactly) {
    static const int64_t big = INT64_C(1) << 53;
    const struct {
        int64_t a, b;
        double rtol, atol;
        bool close;
    } cases[] = {
        {big + 1, big + 1, 0, 0, true},
        {big, big + 1, 0, 0, false},
        {big, big + 1, 0, 1, true},
        {INT64_MAX, INT64_MIN, 0, 1, false},
        {3, 4, 0.25, 0, true},
        {3, 4, 0.2, 0, false},
        {INT64_MIN, INT64_MIN, 0, 0, true},
        {INT64_MAX, INT64_MAX - 1, 0, 0, false},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Tensor *a = tensor_from_int64s(SHAPE(1), &cases[i].a);
        Tensor *b = tensor_from_int64s(SHAPE(1), &cases[i].b);
        ck_assert_msg(tensor_allclose(a, b, cases[i].rtol, cases[i].atol) == cases[i].close,
                      "case %d", i);
        RELEASE(a, b);
    }
}

TEST(allclose_looks_at_every_element) {
    Tensor *x = counting(SHAPE(3, 4));
    Tensor *y = tensor_clone(x);
    ck_assert(tensor_allclose(x, y, 0, 0));
    for (int i = 0; i < 12; i++) {
        float *at = (float *)y->data + i;
        *at += 0.25f;
        ck_assert(!tensor_allclose(x, y, 0, 0.125));
        ck_assert(tensor_allclose(x, y, 0, 0.25));
        *at -= 0.25f;
    }
    RELEASE(x, y);
}

TEST(allclose_takes_strides_but_no_other_shape_or_type) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *turned = STRIDED(x, SHAPE(3, 2), 0, 1, 3);
    Tensor *copy = tensor_clone(turned);
    Tensor *flat = counting(SHAPE(6));
    Tensor *none = tensor_ones(SHAPE(0));
    Tensor *wide = tensor_to(x, F64);
    Tensor *row = tensor_ones(SHAPE(1));
    Tensor *three = tensor_ones(SHAPE(3));
    ck_assert(tensor_allclose(turned, copy, 0, 0));
    ck_assert(tensor_allclose(copy, turned, 0, 0));
    ck_assert(!tensor_allclose(turned, x, 1e9, 1e9));
    ck_assert(!tensor_allclose(x, flat, 1e9, 1e9));
    ck_assert(!tensor_allclose(x, wide, 1e9, 1e9));
    ck_assert(!tensor_allclose(row, three, 1e9, 1e9)); /* nothing is broadcast */
    ck_assert(!tensor_allclose(x, NULL, 1e9, 1e9));
    ck_assert(!tensor_allclose(NULL, NULL, 1e9, 1e9));
    ck_assert(tensor_allclose(none, none, 0, 0));
    RELEASE(x, turned, copy, flat, none, wide, row, three);
}

/* ---- writes in place ------------------------------------------------------------------------- */

/* Was the tensor written once since the last check, by this function? */
static void expect_written(const Tensor *x, uint32_t *version, const char *by) {
    ck_assert_uint_eq(x->storage->version, *version + 1);
    ck_assert_str_eq(x->storage->written_by, by);
    *version = x->storage->version;
}

CASE("writes", .setup = setup, .teardown = frame_teardown)
TEST(a_write_bumps_the_version_of_the_bytes) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *view = STRIDED(x, SHAPE(2), 1, 3);
    Tensor *y = tensor_ones(SHAPE(3));
    uint32_t version = 0;
    ck_assert_ptr_null(x->storage->written_by);
    ck_assert(tensor_fill(x, 2));
    expect_written(x, &version, "fill");
    ck_assert(tensor_copy_from(x, y));
    expect_written(x, &version, "copy_from");
    ck_assert(tensor_add_(x, y, 1));
    expect_written(x, &version, "add_");
    ck_assert(tensor_mul_(x, 2));
    expect_written(x, &version, "mul_");
    ck_assert(tensor_mul_(view, 2)); /* a write through a view counts for the storage */
    expect_written(x, &version, "mul_");
    ck_assert(tensor_add_(x, x, 1));
    expect_written(x, &version, "add_");
    ck_assert_uint_eq(y->storage->version, 0);
    EXPECT(x, 8, 16, 8, 8, 16, 8);
    RELEASE(view, x, y);
}

TEST(set_writes_one_element) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *turned = STRIDED(x, SHAPE(3, 2), 0, 1, 3);
    Tensor *i = tensor_zeros_of(SHAPE(2), I64);
    Tensor *b = tensor_zeros_of(SHAPE(2), BOOL);
    Tensor *scalar = tensor_zeros_of(SCALAR, F64);
    uint32_t version = 0;
    ck_assert(tensor_set(x, 0.1, 1, 2));
    expect_written(x, &version, "set");
    ck_assert(tensor_set(turned, -4, -1, 0)); /* x[0, 2] */
    expect_written(x, &version, "set");
    EXPECT(x, 0, 1, -4, 3, 4, (double)0.1f);
    ck_assert(tensor_set(i, -2.7, 1) && tensor_set(b, 0.5, 0));
    ck_assert(tensor_set_at(scalar, 0.1, SCALAR));
    EXPECT(i, 0, -2);
    EXPECT(b, 1, 0);
    EXPECT(scalar, 0.1);
    RELEASE(x, turned, i, b, scalar);
}

TEST(writes_through_views_touch_nothing_else) {
    Tensor *x = counting(SHAPE(3, 4));
    Tensor *view = STRIDED(x, SHAPE(2, 2), 1, 8, 2);
    ck_assert(tensor_fill(view, -1));
    EXPECT(x, 0, -1, 2, -1, 4, 5, 6, 7, 8, -1, 10, -1);
    Tensor *source = tensor_from_doubles(SHAPE(2), (const double[]){20, 30});
    ck_assert(tensor_copy_from(view, source));
    EXPECT(x, 0, 20, 2, 30, 4, 5, 6, 7, 8, 20, 10, 30);
    ck_assert(tensor_add_(view, source, 0.5));
    EXPECT(x, 0, 30, 2, 45, 4, 5, 6, 7, 8, 30, 10, 45);
    ck_assert(tensor_mul_(view, -1));
    EXPECT(x, 0, -30, 2, -45, 4, 5, 6, 7, 8, -30, 10, -45);
    RELEASE(source, view, x);
}

TEST(every_type_can_be_copied) {
    Tensor *i = tensor_from_int64s(SHAPE(3), (const int64_t[]){INT64_MAX, INT64_MIN, 9});
    Tensor *b = tensor_from_bools(SHAPE(3), (const bool[]){true, false, true});
    Tensor *to_i = tensor_to(b, I64);
    Tensor *to_b = tensor_to(i, BOOL);
    ck_assert(tensor_copy_from(to_i, i) && tensor_copy_from(to_b, b));
    expect_integers(to_i, (const int64_t[]){INT64_MAX, INT64_MIN, 9}, 3);
    EXPECT(to_b, 1, 0, 1);
    RELEASE(i, b, to_i, to_b);
}

/* x[1:] = x[:-1], x[:-1] = x[1:], and x = x in reverse order. The result must be as if the right
 * side was read completely before the write. The rows are so long that vector loops would read
 * elements that they have just written. */
TEST(overlapping_copies_read_before_they_write) {
    enum { N = 100 };
    static const struct {
        int64_t to, from, step;
    } cases[] = {{1, 0, 1}, {0, 1, 1}, {3, 0, 1}, {0, N - 1, -1}};
    static const DType types[] = {F32, F64, I64};
    for (int k = 0; k < COUNT(cases) * COUNT(types); k++) {
        Tensor *floats = counting(SHAPE(N));
        Tensor *x = tensor_to(floats, types[k % 3]);
        int64_t to = cases[k / 3].to, from = cases[k / 3].from, step = cases[k / 3].step;
        const int64_t later = to > from ? to : from;
        int64_t n = step < 0 ? N : N - later;
        Tensor *dst = STRIDED(x, SHAPE(n), to, 1);
        Tensor *src = STRIDED(x, SHAPE(n), from, step);
        ck_assert(tensor_copy_from(dst, src));
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(number(dst, i), (double)(from + i * step));
        RELEASE(dst, src, x, floats);
    }
}

/* Each row is overwritten with one of its elements: x.copy_(x[:, 1:2].clone()). */
TEST(a_view_of_x_may_be_broadcast_into_x) {
    Tensor *x = counting(SHAPE(3, 3));
    Tensor *column = STRIDED(x, SHAPE(3, 1), 1, 3, 1);
    ck_assert(tensor_copy_from(x, column));
    EXPECT(x, 1, 1, 1, 4, 4, 4, 7, 7, 7);
    Tensor *last = STRIDED(x, SCALAR, 8, 0);
    ck_assert(tensor_add_(x, last, -1));
    EXPECT(x, -6, -6, -6, -3, -3, -3, 0, 0, 0);
    RELEASE(last, column, x);
}

/* x = torch.arange(6.).view(2, 3); x.add_(y, alpha=alpha), printed with float.hex */
TEST(add_broadcasts_and_scales) {
    Tensor *x = counting(SHAPE(2, 3));
    Tensor *y = tensor_from_doubles(SHAPE(3), (const double[]){1, 2, 3});
    ck_assert(tensor_add_(x, y, -0.5));
    EXPECT(x, -0.5, 0, 0.5, 2.5, 3, 3.5);
    tensor_release(x);
    x = counting(SHAPE(6));
    ck_assert(tensor_add_(x, x, 0.1));
    EXPECT(x, 0, 0x1.19999ap+0, 0x1.19999ap+1, 0x1.a66666p+1, 0x1.19999ap+2, 0x1.6p+2);
    RELEASE(x, y);
}

/* x.add_(x.t().clone(), alpha=2) on torch.arange(9.).view(3, 3), and the same on a larger x. */
TEST(add_of_a_transposed_self) {
    Tensor *x = counting(SHAPE(3, 3));
    Tensor *turned = STRIDED(x, SHAPE(3, 3), 0, 1, 3);
    ck_assert(tensor_add_(x, turned, 2));
    EXPECT(x, 0, 7, 14, 5, 12, 19, 10, 17, 24);
    RELEASE(turned, x);
    enum { N = 37 };
    x = counting(SHAPE(N, N));
    turned = STRIDED(x, SHAPE(N, N), 0, 1, N);
    ck_assert(tensor_add_(turned, x, 1));
    for (int i = 0; i < N * N; i++) ck_assert_double_eq(number(x, i), i + i % N * N + i / N);
    RELEASE(turned, x);
}

/* ---- transposed operands, small and large ---------------------------------------------------- */

static const int turned_sizes[][2] = {{15, 40},  {16, 16}, {16, 300}, {17, 257}, {40, 272},
                                      {300, 16}, {33, 1},  {64, 513}, {3, 5000}, {5000, 3}};

/* A tensor (2, rows, columns) with strides (rows columns, 1, rows): each matrix is stored
 * transposed. Its elements are 0, 1, 2, ... in row-major order; the first one is the second element
 * of the storage. */
static Tensor *counting_turned(DType dtype, int64_t rows, int64_t columns) {
    tensor_set_default_dtype(F64);
    Tensor *stored = counting(SHAPE(2 * rows * columns + 1));
    tensor_set_default_dtype(F32);
    for (int64_t i = 0; i < 2 * rows * columns; i++) {
        const int64_t matrix = i / (rows * columns), row = i / columns % rows;
        ((double *)stored->data)[1 + matrix * rows * columns + i % columns * rows + row] =
            (double)i;
    }
    Tensor *typed = tensor_to(stored, dtype);
    Tensor *x = STRIDED(typed, SHAPE(2, rows, columns), 1, rows * columns, 1, rows);
    RELEASE(stored, typed);
    return x;
}

LOOP_TEST(turned_operands_are_what_they_were, COUNT(turned_sizes)) {
    const int64_t rows = turned_sizes[_i][0], columns = turned_sizes[_i][1];
    for (DType dtype = F32; dtype <= BOOL; dtype++) {
        int64_t wrong = 0; /* many elements: an assertion for each would take too long */
        Tensor *x = counting_turned(dtype, rows, columns);
        Tensor *clone = tensor_clone(x);
        Tensor *as_f64 = tensor_to(x, F64);
        Tensor *as_f32 = tensor_to(x, F32);
        Tensor *sum = tensor_clone(clone);
        if (dtype != BOOL) ck_assert(tensor_add_(sum, x, 2));
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            const double want = dtype == BOOL ? i > 0 : (double)i, times = dtype == BOOL ? 1 : 3;
            wrong += number(clone, i) != want || number(sum, i) != times * want;
            wrong += number(as_f64, i) != want || number(as_f32, i) != want;
        }
        ck_assert_int_eq(wrong, 0);
        RELEASE(x, clone, as_f64, as_f32, sum);
    }
}

/* Some operands are transposed, others are not, one occurs twice. The result may be transposed,
 * too. */
LOOP_TEST(turned_operands_meet_others, COUNT(turned_sizes)) {
    int64_t wrong = 0;
    const int64_t rows = turned_sizes[_i][0], columns = turned_sizes[_i][1];
    Tensor *x = counting_turned(F32, rows, columns);
    Tensor *dense = tensor_clone(x);
    Tensor *positive = counting_turned(BOOL, rows, columns);
    tape_begin_no_grad();
    Tensor *square = tape_end_keeping(ag_mul(x, x));
    tape_begin_no_grad();
    Tensor *chosen = tape_end_keeping(ag_where(positive, x, ag_add_scalar(dense, -1)));
    ck_assert(tensor_add_(x, dense, 1));
    ck_assert(tensor_add_(x, x, 1));
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        wrong += number(square, i) != (double)((float)i * (float)i);
        wrong += number(chosen, i) != (i > 0 ? (double)i : -1);
        wrong += number(x, i) != 4 * (double)i;
    }
    ck_assert(tensor_copy_from(x, square));
    for (int64_t i = 0; i < tensor_numel(x); i++) wrong += number(x, i) != number(square, i);
    ck_assert_int_eq(wrong, 0);
    RELEASE(x, dense, positive, square, chosen);
}

/* A tensor (2, 18, 20, 33) whose last three dimensions have the order of permutation i in memory.
 */
static Tensor *counting_in_order(int i) {
    static const int orders[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                     {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
    const Shape shape = SHAPE(2, 18, 20, 33);
    Tensor *stored = counting(SHAPE(tensor_numel(&(Tensor){.shape = shape})));
    int64_t stride[4] = {18 * 20 * 33}, step = 1;
    for (int d = 2; d >= 0; d--) {
        stride[orders[i][d]] = step;
        step *= shape.dim[orders[i][d]];
    }
    Tensor *x = tensor_as_strided(stored, shape, stride, 0);
    tensor_release(stored);
    return x;
}

LOOP_TEST(operands_are_turned_in_any_dimensions, 6) {
    int64_t wrong = 0;
    for (int j = 0; j < 6; j++) {
        Tensor *x = counting_in_order(_i);
        Tensor *y = counting_in_order(j);
        Tensor *before = tensor_clone(x);
        tape_begin_no_grad();
        Tensor *sum = tape_end_keeping(ag_add(x, y));
        ck_assert(tensor_add_(x, y, 2));
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            wrong += number(before, i) != (double)place(x, i);
            wrong += number(sum, i) != (double)(place(x, i) + place(y, i));
            wrong += number(x, i) != (double)(place(x, i) + 2 * place(y, i));
        }
        ck_assert(tensor_copy_from(x, y));
        for (int64_t i = 0; i < tensor_numel(x); i++) wrong += number(x, i) != (double)place(y, i);
        ck_assert_int_eq(wrong, 0);
        RELEASE(x, y, before, sum);
    }
}

/* Runs in a thread with a stack of 128 KiB, the size that some systems give. */
static void *clone_turned(void *of) {
    Tensor *clone = tensor_clone(of);
    for (int i = 0; i < 8; i++) tensor_add_(clone, of, 1); /* a failure shows in the numbers */
    return clone;
}

TEST(turning_takes_a_small_stack) {
    int64_t wrong = 0;
    Tensor *x = counting_turned(F32, 300, 300);
    Tensor *clone = NULL;
    pthread_attr_t small;
    pthread_t thread;
    ck_assert_int_eq(pthread_attr_init(&small), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, 128 << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &small, clone_turned, x), 0);
    ck_assert_int_eq(pthread_join(thread, (void **)&clone), 0);
    for (int64_t i = 0; i < tensor_numel(x); i++) wrong += number(clone, i) != 9 * (double)i;
    ck_assert_int_eq(wrong, 0);
    pthread_attr_destroy(&small);
    RELEASE(clone, x);
}

/* Kernels that write a second operand, or that take strides, work with transposed operands, too. */
LOOP_TEST(turned_operands_may_be_written_and_indexed, COUNT(turned_sizes)) {
    int64_t wrong = 0;
    const int64_t rows = turned_sizes[_i][0], columns = turned_sizes[_i][1];
    Tensor *x = counting_turned(F32, rows, columns);
    Tensor *b = counting_turned(F32, rows, columns);
    Tensor *dense = tensor_clone(x);
    Tensor *dense_b = tensor_clone(b);
    Tensor *g = tensor_clone(x);
    ck_assert(tensor_mul_(b, 2) && tensor_mul_(dense_b, 2)); /* m = .5 m + .5 g, x -= .5 m */
    const AdamWStep s = {.beta1 = 0.5, .beta2 = 1, .eps = 1, .keep = 1, .rate = 0.5, .unbias = 1};
    Tensor *v = tensor_zeros_like(x);
    Tensor *dense_v = tensor_zeros_like(x);
    ck_assert(tensor_adamw_(x, dense_b, dense_v, g, s) && tensor_adamw_(dense, b, v, g, s));
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        wrong += number(x, i) != 0.25 * (double)i;
        wrong += number(dense, i) != 0.25 * (double)i;
        wrong += number(b, i) != 1.5 * (double)i;
        wrong += number(dense_b, i) != 1.5 * (double)i;
    }
    Tensor *last = tensor_from_int64s(SHAPE(1, 1, 1), (int64_t[]){1});
    tape_begin_no_grad();
    Tensor *picked = tape_end_keeping(ag_gather(x, 0, ag_expand(last, SHAPE(2, rows, columns))));
    expect_form(picked, F32, SHAPE(2, rows, columns));
    for (int64_t i = 0; i < tensor_numel(picked); i++)
        wrong += number(picked, i) != 0.25 * (double)(i % (rows * columns) + rows * columns);
    ck_assert_int_eq(wrong, 0);
    RELEASE(x, b, dense, dense_b, g, v, dense_v, last, picked);
}

TEST(integers_are_added_and_scaled) {
    Tensor *x = tensor_from_int64s(SHAPE(3), (int64_t[]){1, INT64_MAX, -5});
    Tensor *y = tensor_from_int64s(SCALAR, (int64_t[]){2});
    ck_assert(tensor_add_(x, y, -3));
    const int64_t *element = x->data;
    ck_assert(element[0] == -5 && element[1] == INT64_MAX - 6 && element[2] == -11);
    ck_assert(tensor_mul_(x, 2));
    ck_assert(element[0] == -10 && element[1] == -14 && element[2] == -22);
    ck_assert_uint_eq(x->storage->version, 2);
    RELEASE(x, y);
}

/* m = .5 * 4 + .5 * 2 = 3, v = .75 * 4 + .25 * 4 = 4, x = .5 * 1 - .25 * 3 / (2 / .5 + 2) */
TEST(a_step_of_adamw) {
    for (int64_t step = 1; step <= 2; step++) {
        Tensor *base = tensor_ones(SHAPE(40));
        Tensor *x = STRIDED(base, SHAPE(20), 0, step);
        Tensor *m = tensor_full(SHAPE(20), 4);
        Tensor *v = tensor_full(SHAPE(20), 4);
        Tensor *g = tensor_full(SHAPE(20), 2);
        const AdamWStep s = {0.5, 0.75, .eps = 2, .keep = 0.5, .rate = 0.25, .unbias = 0.5};
        ck_assert(tensor_adamw_(x, m, v, g, s));
        for (int i = 0; i < 20; i++) {
            ck_assert_double_eq(tensor_get(m, i), 3);
            ck_assert_double_eq(tensor_get(v, i), 4);
            ck_assert_double_eq(tensor_get(x, i), 0.375);
        }
        ck_assert_double_eq(tensor_get(base, step == 1 ? 20 : 1), 1);
        ck_assert(x->storage->version && m->storage->version && v->storage->version);
        RELEASE(x, base, m, v, g);
    }
}

TEST(steps_that_cannot_be) {
    Tensor *x = counting(SHAPE(2));
    Tensor *longer = counting(SHAPE(3));
    Tensor *whole = tensor_arange(0, 2, 1);
    Tensor *wide = STRIDED(x, SHAPE(2, 2), 0, 0, 1);
    Tensor *ints = tensor_to(whole, I64);
    FAILS(tensor_adamw_(NULL, x, x, x, (AdamWStep){0}), "adamw_: the tensor is NULL");
    FAILS(tensor_adamw_(x, x, NULL, x, (AdamWStep){0}), "adamw_: the tensor is NULL");
    FAILS(tensor_adamw_(x, x, x, longer, (AdamWStep){0}),
          "adamw_: float32 (2,) and float32 (3,): shapes and types must be equal");
    FAILS(tensor_adamw_(ints, ints, ints, ints, (AdamWStep){0}),
          "adamw_: x is int64: it must be a float");
    FAILS(tensor_adamw_(wide, x, x, x, (AdamWStep){0}),
          "adamw_: x is (2, 2) and expanded: several elements share one place");
    FAILS(tensor_adamw_(x, x, x, ints, (AdamWStep){0}),
          "adamw_: float32 (2,) and int64 (2,): shapes and types must be equal");
    EXPECT(x, 0, 1);
    RELEASE(x, longer, whole, wide, ints);
}

/* The sum of squares is computed in float64, also for float32. 100 elements are not a multiple of a
 * vector. */
TEST(squares_are_summed_in_float64) {
    Tensor *large = tensor_full(SHAPE(2), 1e30);
    Tensor *x = counting(SHAPE(10, 10));
    Tensor *none = tensor_ones(SHAPE(0));
    Tensor *turned = STRIDED(x, SHAPE(10, 10), 0, 1, 10);
    Tensor *ints = tensor_to(x, I64);
    Tensor *column = STRIDED(x, SHAPE(4), 2, 10);
    Tensor *same = STRIDED(x, SHAPE(3), 5, 0);
    ck_assert_double_eq(tensor_sum_of_squares(column), 4 + 144 + 484 + 1024);
    ck_assert_double_eq(tensor_sum_of_squares(same), 75);
    RELEASE(column, same);
    ck_assert_double_eq_tol(tensor_sum_of_squares(large) / 2e60, 1, 1e-7);
    ck_assert_double_eq(tensor_sum_of_squares(x), 328350);
    ck_assert_double_eq(tensor_sum_of_squares(turned), 328350);
    ck_assert_double_eq(tensor_sum_of_squares(none), 0);
    ck_assert(isnan(tensor_sum_of_squares(NULL)));
    expect_error("sum_of_squares: the tensor is NULL");
    ck_assert(isnan(tensor_sum_of_squares(ints)));
    expect_error("sum_of_squares: x is int64: it must be a float");
    RELEASE(large, x, none, turned, ints);
}

/* The norm is right where its square is too large or too small for float64. */
TEST(norms_fit_where_squares_do_not) {
    static const double sizes[] = {1e-320, 1e-200, 1e-160, 1, 1e154, 1e200, 1e307};
    tensor_set_default_dtype(F64);
    for (int i = 0; i < 7; i++) {
        const double tolerance = sizes[i] < DBL_MIN ? 1e-3 : 1e-15;
        Tensor *x = tensor_from_doubles(SHAPE(2), (double[]){3 * sizes[i], -4 * sizes[i]});
        ck_assert_double_eq_tol(tensor_norm(x) / (5 * sizes[i]), 1, tolerance);
        tensor_release(x);
    }
    tensor_set_default_dtype(F32);
    Tensor *x = tensor_full(SHAPE(1000), 3e38);
    Tensor *row = STRIDED(x, SHAPE(500), 0, 2);
    ck_assert_double_eq_tol(tensor_norm(row) / 3e38, sqrt(500), 1e-5);
    Tensor *odd = tensor_from_doubles(SHAPE(2), (double[]){(double)INFINITY, 1});
    ck_assert(isinf(tensor_norm(odd)));
    ck_assert(tensor_set(odd, (double)NAN, 1) && isnan(tensor_norm(odd)));
    Tensor *ints = tensor_to(odd, I64);
    ck_assert(isnan(tensor_norm(ints)));
    expect_error("norm: x is int64: it must be a float");
    ck_assert(isnan(tensor_norm(NULL)));
    expect_error("norm: the tensor is NULL");
    RELEASE(x, row, odd, ints);
}

/* torch.empty(0, 1).expand(0, 3) can be written, because it has no elements that share memory. */
TEST(nothing_can_be_written) {
    Tensor *none = tensor_ones(SHAPE(0, 3));
    Tensor *source = tensor_ones(SHAPE(3));
    Tensor *expanded = STRIDED(none, SHAPE(0, 3), 0, 1, 0);
    Tensor *all[] = {none, expanded};
    for (int i = 0; i < 2; i++) {
        ck_assert(tensor_fill(all[i], 1) && tensor_mul_(all[i], 2));
        ck_assert(tensor_copy_from(all[i], source) && tensor_add_(all[i], source, 1));
    }
    RELEASE(expanded, none, source);
}

/* A dimension of size 1 may have stride 0: no elements share memory. */
TEST(a_single_place_is_not_shared) {
    Tensor *x = counting(SHAPE(4));
    Tensor *view = STRIDED(x, SHAPE(1, 2), 1, 0, 1);
    ck_assert(tensor_fill(view, 9));
    EXPECT(x, 0, 9, 9, 3);
    RELEASE(view, x);
}

TEST(a_refused_write_writes_nothing) {
    Tensor *x = counting(SHAPE(3));
    Tensor *ints = tensor_to(x, I64);
    Tensor *wide = STRIDED(x, SHAPE(2, 3), 0, 0, 1);
    Tensor *two = tensor_ones(SHAPE(2));
    Tensor *bools = tensor_to(x, BOOL);
    FAILS(tensor_copy_from(NULL, x), "copy_from: the tensor is NULL");
    FAILS(tensor_copy_from(x, NULL), "copy_from: src is NULL");
    FAILS(tensor_copy_from(x, ints),
          "copy_from: the types float32 and int64 must be equal; convert one with tensor_to");
    FAILS(tensor_copy_from(x, two), "copy_from: (2,) cannot be broadcast to (3,)");
    FAILS(tensor_copy_from(wide, x),
          "copy_from: x is (2, 3) and expanded: several elements share one place");
    FAILS(tensor_fill(NULL, 1), "fill: the tensor is NULL");
    FAILS(tensor_fill(wide, 1), "fill: x is (2, 3) and expanded: several elements share one place");
    FAILS(tensor_add_(NULL, x, 1), "add_: the tensor is NULL");
    FAILS(tensor_add_(x, NULL, 1), "add_: y is NULL");
    FAILS(tensor_add_(x, ints, 1),
          "add_: the types float32 and int64 must be equal; convert one with tensor_to");
    FAILS(tensor_add_(x, two, 1), "add_: (2,) cannot be broadcast to (3,)");
    FAILS(tensor_add_(wide, x, 1),
          "add_: x is (2, 3) and expanded: several elements share one place");
    FAILS(tensor_add_(ints, ints, 0.5),
          "add_: x is int64 and the number is 0.5: it must be whole; convert x with tensor_to");
    FAILS(tensor_mul_(NULL, 1), "mul_: the tensor is NULL");
    FAILS(tensor_mul_(wide, 1), "mul_: x is (2, 3) and expanded: several elements share one place");
    FAILS(tensor_mul_(ints, 2.5),
          "mul_: x is int64 and the number is 2.5: it must be whole; convert x with tensor_to");
    /* (2, 3) into (3): an error in torch, too */
    FAILS(tensor_copy_from(x, wide), "copy_from: (2, 3) cannot be broadcast to (3,)");
    FAILS(tensor_mul_(ints, 1e19), "mul_: int64 cannot hold 1e+19");
    FAILS(tensor_mul_(bools, 1), "mul_: x is bool: it must be float32, float64 or int64");
    FAILS(tensor_add_(bools, bools, 1), "add_: x is bool: it must be float32, float64 or int64");
    FAILS(tensor_set(NULL, 1, 0), "set: the tensor is NULL");
    FAILS(tensor_set(x, 1, 3), "set: there is no element (3,) in x, which is (3,)");
    FAILS(tensor_set(x, 1, 0, 0), "set: there is no element (0, 0) in x, which is (3,)");
    FAILS(tensor_set(wide, 1, 0, 0),
          "set: x is (2, 3) and expanded: several elements share one place");
    FAILS(tensor_set(x, 1e300, 0), "set: float32 cannot hold 1e+300");
    FAILS(tensor_set(ints, NOT, 0), "set: int64 cannot hold nan");
    tensor_release(bools);
    EXPECT(x, 0, 1, 2);
    EXPECT(ints, 0, 1, 2);
    ck_assert_uint_eq(x->storage->version, 0);
    ck_assert_uint_eq(ints->storage->version, 0);
    RELEASE(x, ints, wide, two);
}

/* ---- errors ---------------------------------------------------------------------------------- */

CASE("errors", .setup = setup, .teardown = frame_teardown)
TEST(the_first_error_stays) {
    ck_assert_ptr_null(tensor_error());
    tensor_clear_error(); /* no error is pending */
    ck_assert_ptr_null(tensor_fail("%s is %d: %s", "a", 7, "no"));
    ck_assert_ptr_null(tensor_fail("the second"));
    ck_assert_ptr_null(tensor_arange(0, 1, 0));
    ck_assert_str_eq(tensor_error(), "a is 7: no");
    ck_assert_str_eq(tensor_error(), "a is 7: no"); /* reading the error does not clear it */
    tensor_clear_error();
    ck_assert_ptr_null(tensor_error());
    FAILS(tensor_fail("%s", ""), "");
}

TEST(a_sentence_may_quote_the_one_before) {
    tensor_fail("the list is %s", "empty");
    const char *cause = tensor_error();
    tensor_clear_error();
    FAILS(tensor_fail("loading: %s", cause), "loading: the list is empty");
}

TEST(a_sentence_may_be_long) {
    char word[2000];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = 0;
    tensor_fail("%s", word);
    size_t length = strlen(tensor_error());
    ck_assert_uint_ge(length, 255);
    ck_assert_mem_eq(tensor_error(), word, length);
    tensor_clear_error();
}

/* A long sentence is cut between characters, as all texts of tensor_snprintf are. */
TEST(a_sentence_is_cut_between_characters) {
    char text[10], long_text[2001] = "";
    for (int i = 0; i < 1000; i++) strcat(long_text, "\xc3\xa9");
    tensor_fail("%s", long_text);
    const size_t length = strlen(tensor_error());
    ck_assert(length % 2 == 0 && length >= 255);
    ck_assert_mem_eq(tensor_error(), long_text, length);
    tensor_clear_error();
    ck_assert_int_eq(tensor_snprintf(text, sizeof text, "%s", long_text), 2000);
    ck_assert_str_eq(text, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9");
    ck_assert_int_eq(tensor_snprintf(text, 3, "\xf0\x9f\x98\x80"), 4);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(tensor_snprintf(text, 5, "\xf0\x9f\x98\x80"), 4);
    ck_assert_str_eq(text, "\xf0\x9f\x98\x80");
    ck_assert_int_eq(tensor_snprintf(text, 6, "\x80\x80\x80\x80\x80\x80\x80"), 7);
    ck_assert_uint_eq(strlen(text), 5);
    ck_assert_int_eq(tensor_snprintf(text, 1, "\xc3\xa9"), 2);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(tensor_snprintf(NULL, 0, "\xc3\xa9"), 2);
}

/* What makes a tensor of another, and then all makers of common.h. */
enum { COPIES = 7 };
static Tensor *made(int i, const Tensor *x, Tensor **indices) {
    switch (i) {
    case 0: return tensor_clone(x);
    case 1: return tensor_to(x, I64);
    case 2: return STRIDED(x, SHAPE(2), 0, 1);
    case 3: return tensor_sort(x, NULL);
    case 4: return tensor_sort(x, indices);
    case 5: return tensor_zeros_like(x);
    case 6: return STRIDED(x, SHAPE(0), 0, 1);
    default: return makers[i - COPIES].make();
    }
}

LOOP_TEST(nothing_is_made_or_drawn_while_an_error_is_pending, COPIES + number_of_makers()) {
    Tensor *x = tensor_ones(SHAPE(2));
    Tensor *indices = NULL;
    const Generator before = *tensor_generator_current();
    tensor_fail("the first mistake");
    ck_assert_ptr_null(made(_i, x, &indices));
    ck_assert_mem_eq(tensor_generator_current(), &before, sizeof before);
    ck_assert_int_eq(tensor_live(), live_before + 1);
    expect_error("the first mistake");
    Tensor *y = made(_i, x, &indices); /* after the error was cleared, the call succeeds */
    ck_assert_ptr_nonnull(y);
    RELEASE(indices, y, x);
}

TEST(nothing_is_written_while_an_error_is_pending) {
    Tensor *x = counting(SHAPE(3));
    Tensor *y = tensor_ones(SHAPE(3));
    tensor_fail("the first mistake");
    ck_assert(!tensor_fill(x, 9));
    ck_assert(!tensor_set(x, 9, 0));
    ck_assert(!tensor_copy_from(x, y));
    ck_assert(!tensor_add_(x, y, 1));
    FAILS(tensor_mul_(x, 2), "the first mistake");
    EXPECT(x, 0, 1, 2);
    ck_assert_uint_eq(x->storage->version, 0);
    RELEASE(x, y);
}

TEST(null_is_never_a_reason_that_hides_the_first) {
    tensor_fail("the first mistake");
    Tensor *none = tensor_ones(SHAPE(2));
    ck_assert_ptr_null(tensor_clone(none));
    ck_assert_ptr_null(tensor_sort(none, NULL));
    ck_assert_double_nan(tensor_item(none));
    ck_assert_double_nan(tensor_get(none, 0));
    ck_assert(!tensor_to_doubles(none, NULL));
    ck_assert(!tensor_allclose(none, none, 1, 1));
    ck_assert_int_eq(tensor_numel(none), 0);
    expect_error("the first mistake");
}

TEST(text_for_sentences) {
    ck_assert_str_eq(tensor_shape_text(SCALAR), "()");
    ck_assert_str_eq(tensor_shape_text(SHAPE(3)), "(3,)");
    ck_assert_str_eq(tensor_shape_text(SHAPE(2, 4, 6)), "(2, 4, 6)");
    ck_assert_str_eq(tensor_shape_text(SHAPE(0, -1)), "(0, -1)");
    const int64_t m = INT64_MIN;
    ck_assert_str_eq(tensor_shape_text(SHAPE(m, m, m, m, m, m, m, m)),
                     "(-9223372036854775808, -9223372036854775808, -9223372036854775808, "
                     "-9223372036854775808, -9223372036854775808, -9223372036854775808, "
                     "-9223372036854775808, -9223372036854775808)");
    ck_assert_str_eq(tensor_dtype_name(F32), "float32");
    ck_assert_str_eq(tensor_dtype_name(F64), "float64");
    ck_assert_str_eq(tensor_dtype_name(I64), "int64");
    ck_assert_str_eq(tensor_dtype_name(BOOL), "bool");
    ck_assert_str_eq(tensor_name_text("W_q.weight"), "W_q.weight");
    ck_assert_str_eq(tensor_name_text("a\tb\n\x7f"), "a?b??");
    ck_assert_str_eq(tensor_name_text("\xc3\xa9\x80\xc3"), "\xc3\xa9??");
    const char *sixty = "123456789 123456789 123456789 123456789 123456789 123456789 ";
    ck_assert_str_eq(tensor_name_text(sixty), sixty);
    ck_assert_str_eq(tensor_name_text(format("%sx", sixty)), format("%s...", sixty));
    /* a letter of two bytes is not cut in two */
    ck_assert_str_eq(tensor_name_text(format("%.59s\xc3\xa9", sixty)), format("%.59s...", sixty));
}

/* ---- threads: what one does is nothing to the other ------------------------------------------ */

/* The assertions of Check work only in the main thread, so a thread only stores what it saw. */
typedef struct {
    bool began_clean, began_f32, made, failed, still_f32;
    char sentence[100];
    Tensor *given;
} Notes;

static void *other_thread(void *argument) {
    Notes *notes = argument;
    notes->began_clean = tensor_error() == NULL;
    notes->began_f32 = tensor_default_dtype() == F32;
    Tensor *x = tensor_arange(0, 3, 1);
    notes->made = x && x->dtype == F32 && number(x, 2) > 1;
    tensor_release(x);
    notes->failed = tensor_clone(NULL) == NULL;
    snprintf(notes->sentence, sizeof notes->sentence, "%s", tensor_error());
    notes->still_f32 = tensor_set_default_dtype(F32) && tensor_set_default_dtype(F64);
    tensor_release(notes->given);
    return NULL;
}

static void run_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, body, argument), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

CASE("threads", .setup = setup, .teardown = frame_teardown)
LOOP_TEST(each_thread_has_its_own_error_and_default_type, WITH_THREADS) {
    Notes notes = {.given = NULL};
    tensor_set_default_dtype(F64);
    tensor_fail("mine");
    run_thread(other_thread, &notes);
    ck_assert(notes.began_clean && notes.began_f32 && notes.made && notes.failed);
    ck_assert_str_eq(notes.sentence, "clone: the tensor is NULL");
    ck_assert_int_eq(tensor_default_dtype(), F64);
    expect_error("mine");
}

LOOP_TEST(a_default_type_set_elsewhere_stays_there, WITH_THREADS) {
    Notes notes = {.given = NULL};
    run_thread(other_thread, &notes);
    ck_assert(notes.still_f32);
    ck_assert_int_eq(tensor_default_dtype(), F32);
    ck_assert_ptr_null(tensor_error());
}

LOOP_TEST(a_tensor_may_be_released_in_another_thread, WITH_THREADS) {
    Notes notes = {.given = counting(SHAPE(1000))};
    ck_assert_int_eq(tensor_live(), live_before + 1);
    run_thread(other_thread, &notes);
    ck_assert_int_eq(tensor_live(), live_before);
}

static void *makes_a_tensor(void *argument) {
    Tensor **x = argument;
    for (int i = 0; i < 100; i++)
        tensor_release(tensor_ones(SHAPE(i))); /* fill the cache of the
                                                * thread */
    *x = tensor_full(SHAPE(1000), 3);
    return NULL;
}

LOOP_TEST(a_tensor_outlives_the_thread_that_made_it, WITH_THREADS) {
    Tensor *x = NULL;
    run_thread(makes_a_tensor, &x);
    expect_form(x, F32, SHAPE(1000));
    for (int i = 0; i < 1000; i++) ck_assert_double_eq(number(x, i), 3);
    ck_assert_int_eq(tensor_live(), live_before + 1);
    tensor_release(x);
}

static void *counts_many(void *argument) {
    Tensor *x[8] = {NULL};
    for (int i = 0; i < 4000; i++) {
        tensor_release(x[i % 8]);
        x[i % 8] = tensor_empty(SHAPE(i % 50));
    }
    for (int i = 0; i < 8; i++) tensor_release(x[i]);
    return argument;
}

LOOP_TEST(live_counts_right_from_many_threads, WITH_THREADS) {
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, counts_many, NULL), 0);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_int_eq(tensor_live(), live_before);
}

/* ---- the suite ------------------------------------------------------------------------------- */

int main(void) { return run_tests("tensor"); }
