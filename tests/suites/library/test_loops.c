/* test_loops.c - do the loops give the kernels every element, for any strides? The expected results
 * come from code that computes the place of each element from its index. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "common_kernels.h"

static void setup(void) {
    frame_setup_float();
    draws_begin();
}

static void expect_near(DType dtype, double got, double want, const char *what) {
    EXPECT(fabs(got - want) <= (dtype == F32 ? 2e-6 : 1e-13) * (1 + fabs(want)),
           "%s: %.9g, not %.9g", what, got, want);
}

/* ---- loops: tensors of any strides ----------------------------------------------------------- */

static Shape draw_shape(int most_dims) {
    Shape shape = {(int)draw((uint32_t)most_dims + 1), {0}};
    for (int d = 0; d < shape.ndim; d++) shape.dim[d] = draw(12) == 0 ? 0 : 1 + draw(5);
    return shape;
}

/* A view of this shape in a larger storage: its axes have any order in memory, with gaps between
 * elements and some negative strides. With `repeats` some strides are 0, or elements overlap. */
static Tensor *draw_view(Shape shape, DType dtype, bool repeats) {
    int order[TENSOR_MAX_DIMS];
    int64_t stride[TENSOR_MAX_DIMS] = {0}, step = 1 + draw(4) / 3, low = 0, high = 0;
    for (int d = 0; d < shape.ndim; d++) order[d] = d;
    for (int d = shape.ndim - 1; d > 0 && draw(3); d--) {
        int other = (int)draw((uint32_t)d + 1), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    for (int i = shape.ndim - 1; i >= 0; i--) {
        const int d = order[i];
        if (repeats && draw(6) == 0) stride[d] = (int64_t)draw(2);
        else stride[d] = draw(6) == 0 ? -step : step;
        step *= (shape.dim[d] > 1 ? shape.dim[d] : 1) + (draw(5) == 0);
        if (shape.dim[d] == 0) continue;
        int64_t reach = (shape.dim[d] - 1) * stride[d];
        *(reach < 0 ? &low : &high) += reach;
    }
    Tensor *whole = tensor_make(SHAPE(high - low + 1 + draw(3)), dtype);
    for (int64_t i = 0; i < tensor_numel(whole); i++)
        element_store(dtype, whole->data, i, dtype == I64 ? draw(100) : draw_in(-2, 2));
    Tensor *view = tensor_as_strided(whole, shape, stride, -low);
    EXPECT(view != NULL, "%s", tensor_error());
    tensor_release(whole);
    return view;
}

/* A shape that broadcasts to this one: fewer dimensions, or some of size 1. */
static Shape draw_narrower(Shape shape) {
    int drop = shape.ndim && draw(3) == 0 ? (int)draw((uint32_t)shape.ndim + 1) : 0;
    Shape narrower = {shape.ndim - drop, {0}};
    for (int d = 0; d < narrower.ndim; d++)
        narrower.dim[d] = draw(3) == 0 ? 1 : shape.dim[d + drop];
    return narrower;
}

/* The index of the i-th element in row-major order. */
static void index_of(Shape shape, int64_t i, int64_t *index) {
    for (int d = shape.ndim - 1; d >= 0; d--) {
        index[d] = i % shape.dim[d];
        i /= shape.dim[d];
    }
}

/* x at an index of a shape that x is broadcast to: aligned at the right, sizes of 1 repeat. */
static int64_t broadcast_at(const Tensor *x, int ndim, const int64_t *index) {
    int64_t offset = 0;
    for (int d = 0; d < x->shape.ndim; d++)
        if (x->shape.dim[d] != 1) offset += index[d + ndim - x->shape.ndim] * x->stride[d];
    return offset;
}

static double value_at(const Tensor *x, Shape shape, int64_t i) {
    int64_t index[TENSOR_MAX_DIMS];
    index_of(shape, i, index);
    return element_load(x->dtype, x->data, broadcast_at(x, shape.ndim, index));
}

static double value_of(const Tensor *x, int64_t i) { return value_at(x, x->shape, i); }

/* Every loop test draws this many cases. */
enum { CASES = 300 };

CASE("loops", .setup = setup, .teardown = frame_teardown)
/* y = a + 2 b, where y is a view without repeats. The whole storage is compared, so that a write
 * between the elements of y is found. */
TEST(elements_find_their_partners) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        Shape shape = draw_shape(6);
        Tensor *y = draw_view(shape, dtype, false);
        Tensor *a = draw_view(draw_narrower(shape), dtype, true);
        Tensor *b = draw_view(draw_narrower(shape), dtype, true);
        const size_t size = (size_t)y->storage->size;
        char *want = malloc(size + 1);
        memcpy(want, y->storage->bytes, size);
        const int64_t start =
            ((char *)y->data - (char *)y->storage->bytes) / (int64_t)dtype_size(dtype);
        for (int64_t i = 0; i < tensor_numel(y); i++) {
            int64_t index[TENSOR_MAX_DIMS];
            index_of(shape, i, index);
            int64_t place = start + broadcast_at(y, shape.ndim, index);
            double sum = value_at(a, shape, i) + 2 * value_at(b, shape, i);
            element_store(dtype, want, place, dtype == F32 ? (double)(float)sum : sum);
        }
        tensor_loop_elements(tensor_kernels()->add_scaled[dtype], 3, (const Tensor *[]){y, a, b},
                             2);
        EXPECT(memcmp(want, y->storage->bytes, size) == 0, "case %d: %s", c,
               tensor_shape_text(shape));
        free(want);
        RELEASE(y, a, b);
    }
}

/* Two shapes that broadcast to a third: one of every pair of sizes may be 1. */
TEST(map_elements_broadcasts) {
    for (int c = 0; c < CASES; c++) {
        Shape shape = draw_shape(6);
        Tensor *a = draw_view(draw_narrower(shape), F64, true);
        Tensor *b = draw_view(draw_narrower(shape), F64, true);
        Shape both;
        ck_assert(tensor_shape_broadcast(a->shape, b->shape, &both));
        Tensor *y = tensor_map_elements(tensor_kernels()->value[ELEMENTWISE_sub][F64], both, F64, 2,
                                        (const Tensor *[]){a, b}, 0);
        ck_assert(y && shape_equal(y->shape, both) && tensor_is_contiguous(y));
        for (int64_t i = 0; i < tensor_numel(y); i++)
            CHECK(value_of(y, i) == value_at(a, both, i) - value_at(b, both, i));
        Tensor *minus = tensor_map_elements(tensor_kernels()->value[ELEMENTWISE_neg][F64], a->shape,
                                            F64, 1, (const Tensor *[]){a}, 0);
        for (int64_t i = 0; i < tensor_numel(a); i++) CHECK(value_of(minus, i) == -value_of(a, i));
        RELEASE(minus, y, a, b);
    }
}

TEST(broadcasting_is_numpys) {
    static const struct {
        Shape a, b;
        bool fits;
        Shape both;
    } cases[] = {
        {{0, {0}}, {0, {0}}, true, {0, {0}}},
        {{0, {0}}, {2, {2, 3}}, true, {2, {2, 3}}},
        {{1, {3}}, {2, {2, 3}}, true, {2, {2, 3}}},
        {{2, {2, 1}}, {1, {3}}, true, {2, {2, 3}}},
        {{3, {4, 1, 3}}, {2, {5, 1}}, true, {3, {4, 5, 3}}},
        {{1, {1}}, {1, {0}}, true, {1, {0}}},
        {{2, {0, 1}}, {2, {1, 3}}, true, {2, {0, 3}}},
        {{1, {2}}, {1, {3}}, false, {0, {0}}},
        {{1, {2}}, {2, {2, 3}}, false, {0, {0}}},
        {{1, {0}}, {1, {3}}, false, {0, {0}}},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Shape both;
        ck_assert_int_eq(tensor_shape_broadcast(cases[i].a, cases[i].b, &both), cases[i].fits);
        if (cases[i].fits) CHECK(shape_equal(both, cases[i].both));
        ck_assert_int_eq(tensor_shape_broadcast(cases[i].b, cases[i].a, &both), cases[i].fits);
        if (cases[i].fits) CHECK(shape_equal(both, cases[i].both));
    }
}

/* A row kernel gets rows of the last dimension. A strided row must give the same bits as a
 * contiguous one. */
TEST(rows_are_whole) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        Shape shape = draw_shape(5);
        Tensor *x = draw_view(shape, dtype, true);
        Tensor *y = draw_view(shape, dtype, false);
        Tensor *dense = tensor_clone(x);
        Tensor *want = tensor_clone(x);
        const int last = shape.ndim > 0 ? shape.ndim - 1 : 0;
        tensor_loop_rows(tensor_kernels()->softmax[dtype], last, 2, (const Tensor *[]){y, x}, 0);
        tensor_loop_rows(tensor_kernels()->softmax[dtype], last, 2, (const Tensor *[]){want, dense},
                         0);
        const int64_t n = shape.ndim ? shape.dim[shape.ndim - 1] : 1;
        for (int64_t i = 0; i < tensor_numel(y); i++) {
            double sum = 0;
            for (int64_t j = i / n * n; j < i / n * n + n; j++) sum += exp(value_of(x, j));
            expect_near(dtype, value_of(y, i), exp(value_of(x, i)) / sum, "a row's softmax");
            CHECK(value_of(y, i) == value_of(want, i));
        }
        RELEASE(x, y, dense, want);
    }
}

/* Sums of x over some dimensions. A contiguous copy must give the same bits. */
static void expect_sums(const Tensor *x, const bool *dims) {
    Tensor *dense = tensor_clone(x);
    Tensor *y = tensor_sum_dims(x, dims);
    Tensor *again = tensor_sum_dims(dense, dims);
    ck_assert(y && again && y->shape.ndim == x->shape.ndim);
    double *sums = calloc((size_t)tensor_numel(y) + 1, sizeof *sums);
    for (int64_t i = 0; i < tensor_numel(x); i++) {
        int64_t index[TENSOR_MAX_DIMS], to = 0;
        index_of(x->shape, i, index);
        for (int d = 0; d < x->shape.ndim; d++)
            to = to * y->shape.dim[d] + (dims[d] ? 0 : index[d]);
        sums[to] += value_of(x, i);
    }
    for (int d = 0; d < x->shape.ndim; d++)
        ck_assert_int_eq(y->shape.dim[d], dims[d] ? 1 : x->shape.dim[d]);
    for (int64_t i = 0; i < tensor_numel(y); i++) {
        CHECK(fabs(value_of(y, i) - sums[i]) <= (x->dtype == F32 ? 1e-3 : 1e-12));
        CHECK(value_of(y, i) == value_of(again, i));
    }
    free(sums);
    RELEASE(dense, y, again);
}

/* The columns that stay together are neighbours, but not the last ones: a step back lies between.
 */
TEST(sums_of_columns_that_run_backwards) {
    Tensor *x = tensor_arange(0, 60, 1);
    const int64_t stride[TENSOR_MAX_DIMS] = {1, -6, 2};
    Tensor *view = tensor_view_make(x, SHAPE(3, 5, 3), stride, (float *)x->data + 24);
    expect_sums(view, (const bool[TENSOR_MAX_DIMS]){false, false, true});
    expect_sums(view, (const bool[TENSOR_MAX_DIMS]){false, true, false});
    expect_sums(view, (const bool[TENSOR_MAX_DIMS]){true, false, false});
    RELEASE(x, view);
}

TEST(sums_along_any_dimensions) {
    for (int c = 0; c < CASES; c++) {
        Tensor *x = draw_view(draw_shape(6), draw(2) ? F32 : F64, true);
        bool dims[TENSOR_MAX_DIMS];
        for (int d = 0; d < TENSOR_MAX_DIMS; d++) dims[d] = draw(2);
        expect_sums(x, dims);
        tensor_release(x);
    }
}

TEST(sums_undo_broadcasting) {
    for (int c = 0; c < CASES; c++) {
        Tensor *x = draw_view(draw_shape(6), F64, true);
        Shape shape = draw_narrower(x->shape);
        Tensor *y = tensor_sum_to(x, shape);
        ck_assert(y && shape_equal(y->shape, shape) && tensor_is_contiguous(y));
        double *sums = calloc((size_t)tensor_numel(y) + 1, sizeof *sums);
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            int64_t index[TENSOR_MAX_DIMS];
            index_of(x->shape, i, index);
            sums[broadcast_at(y, x->shape.ndim, index)] += value_of(x, i);
        }
        for (int64_t i = 0; i < tensor_numel(y); i++)
            CHECK(fabs(value_of(y, i) - sums[i]) <= 1e-11);
        free(sums);
        RELEASE(y, x);
    }
}

TEST(reductions_along_one_dimension) {
    for (int c = 0; c < CASES; c++) {
        Shape shape = draw_shape(5);
        if (shape.ndim == 0) continue;
        Tensor *x = draw_view(shape, F64, true);
        int dim = (int)draw((uint32_t)shape.ndim);
        if (shape.dim[dim] == 0)
            shape.dim[dim] = 1; /* ag_max_dim refuses an empty dimension,
                                 * the kernel does not */
        Tensor *y =
            x->shape.dim[dim] ? tensor_reduce(x, tensor_kernels()->argmax[F64], dim, I64) : NULL;
        for (int64_t i = 0; y && i < tensor_numel(y); i++) {
            int64_t index[TENSOR_MAX_DIMS], best = ((int64_t *)y->data)[i];
            index_of(y->shape, i, index);
            index[dim] = best;
            double largest = element_load(F64, x->data, broadcast_at(x, shape.ndim, index));
            for (index[dim] = 0; index[dim] < shape.dim[dim]; index[dim]++) {
                double other = element_load(F64, x->data, broadcast_at(x, shape.ndim, index));
                CHECK(index[dim] < best ? other < largest : other <= largest);
            }
        }
        RELEASE(y, x);
    }
}

/* c = (..., M, K) (..., K, N): batches broadcast; matrices of any strides. */
static void expect_matmul(const Tensor *c, const Tensor *start, const Tensor *a, const Tensor *b) {
    ck_assert_ptr_nonnull(c);
    const int na = a->shape.ndim, nb = b->shape.ndim, nc = c->shape.ndim;
    const int64_t k = a->shape.dim[na - 1];
    for (int64_t i = 0; i < tensor_numel(c); i++) {
        int64_t index[TENSOR_MAX_DIMS];
        index_of(c->shape, i, index);
        const int64_t row = index[nc - 2], column = index[nc - 1];
        Tensor batch_a = *a, batch_b = *b;
        batch_a.shape.ndim = na - 2;
        batch_b.shape.ndim = nb - 2;
        int64_t at_a = broadcast_at(&batch_a, nc - 2, index) + row * a->stride[na - 2];
        int64_t at_b = broadcast_at(&batch_b, nc - 2, index) + column * b->stride[nb - 1];
        double sum =
            start ? element_load(a->dtype, start->data, broadcast_at(start, nc, index)) : 0;
        for (int64_t p = 0; p < k; p++)
            sum += element_load(a->dtype, a->data, at_a + p * a->stride[na - 1]) *
                   element_load(b->dtype, b->data, at_b + p * b->stride[nb - 2]);
        expect_near(a->dtype, value_of(c, i), sum, "matmul");
    }
}

TEST(matmul_of_batches) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        Shape batch = draw_shape(3), sa = draw_narrower(batch), sb = draw_narrower(batch);
        const int64_t m = draw(6), n = draw(6), k = draw(6);
        sa.dim[sa.ndim++] = m;
        sa.dim[sa.ndim++] = k;
        sb.dim[sb.ndim++] = k;
        sb.dim[sb.ndim++] = n;
        Tensor *a = draw_view(sa, dtype, true);
        Tensor *b = draw_view(sb, dtype, true);
        Tensor *c0 = tensor_matmul(a, b);
        expect_matmul(c0, NULL, a, b);
        RELEASE(c0, a, b);
    }
}

/* One matrix each, with a start of any strides, in a result of another shape. */
TEST(products_of_matrices) {
    for (int c = 0; c < CASES; c++) {
        const DType dtype = draw(2) ? F32 : F64;
        const int64_t m = draw(6), n = draw(6), k = draw(6);
        Tensor *a = draw_view(SHAPE(m, k), dtype, true);
        Tensor *b = draw_view(SHAPE(k, n), dtype, true);
        Tensor *start = draw(2) ? draw_view(SHAPE(m, n), dtype, true) : NULL;
        MatmulShape s = {.m = m, .n = n, .k = k, .start = start ? start->data : NULL};
        memcpy(s.a_stride, a->stride, sizeof s.a_stride);
        memcpy(s.b_stride, b->stride, sizeof s.b_stride);
        if (start) memcpy(s.start_stride, start->stride, sizeof s.start_stride);
        Tensor *c0 = tensor_multiply_matrices(SHAPE(1, m * n), dtype, &s, a->data, b->data);
        ck_assert_ptr_nonnull(c0);
        ck_assert(c0->shape.ndim == 2 && c0->shape.dim[1] == m * n);
        Tensor *matrix = tensor_view_reshape(c0, SHAPE(m, n));
        expect_matmul(matrix, start, a, b);
        RELEASE(c0, matrix, start, a, b);
    }
}

/* ---- views ----------------------------------------------------------------------------------- */

/* A new shape with the same number of elements: its prime factors are distributed over new
 * dimensions. */
static Shape draw_cut(int64_t numel) {
    Shape shape = {1 + (int)draw(5), {1, 1, 1, 1, 1}};
    for (int64_t prime = 2; numel > 1; prime++)
        for (; numel % prime == 0; numel /= prime) shape.dim[draw((uint32_t)shape.ndim)] *= prime;
    if (numel == 0) shape.dim[draw((uint32_t)shape.ndim)] = 0;
    return shape;
}

/* Is there a view of x with this shape? If there is one, the first step along each dimension gives
 * its stride. */
static bool view_exists(const Tensor *x, Shape shape) {
    int64_t offset[4096], stride[TENSOR_MAX_DIMS] = {0}, step = 1;
    const int64_t n = tensor_numel(x);
    ck_assert_int_le(n, 4096);
    for (int64_t i = 0; i < n; i++) {
        int64_t index[TENSOR_MAX_DIMS];
        index_of(x->shape, i, index);
        offset[i] = broadcast_at(x, x->shape.ndim, index);
    }
    for (int d = shape.ndim - 1; d >= 0; step *= shape.dim[d--])
        if (shape.dim[d] > 1) stride[d] = offset[step];
    for (int64_t i = 0; i < n; i++) {
        int64_t index[TENSOR_MAX_DIMS], there = 0;
        index_of(shape, i, index);
        for (int d = 0; d < shape.ndim; d++) there += index[d] * stride[d];
        if (there != offset[i]) return false;
    }
    return true;
}

/* tensor_view_reshape must return a view with the same elements if there is such a view, else NULL.
 */
TEST(reshape_views_wherever_it_can) {
    int views = 0, copies = 0;
    for (int c = 0; c < 4 * CASES; c++) {
        Tensor *x = draw_view(draw_shape(5), I64, true);
        Shape shape = draw_cut(tensor_numel(x));
        Tensor *view = tensor_view_reshape(x, shape);
        Tensor *y = tensor_reshape(x, shape);
        ck_assert_ptr_null(tensor_error());
        EXPECT((view != NULL) == view_exists(x, shape), "%s with strides %s to %s",
               tensor_shape_text(x->shape), tensor_stride_text(x), tensor_shape_text(shape));
        views += view != NULL;
        copies += view == NULL;
        CHECK(shape_equal(y->shape, shape));
        ck_assert_int_eq(y->storage == x->storage, view != NULL);
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            CHECK(value_of(y, i) == value_of(x, i));
            if (view) CHECK(value_of(view, i) == value_of(x, i));
        }
        RELEASE(view, y, x);
    }
    ck_assert_int_gt(views, CASES / 4); /* both happened often */
    ck_assert_int_gt(copies, CASES / 4);
}

/* Compares permute, transpose, narrow and expand with index arithmetic. */
TEST(views_are_index_arithmetic) {
    for (int c = 0; c < CASES; c++) {
        Shape shape = draw_shape(4), wide = shape;
        shape.dim[shape.ndim++] = 1 + draw(4);
        wide = shape;
        Tensor *x = draw_view(shape, I64, true);
        const int n = shape.ndim, d0 = (int)draw((uint32_t)n), d1 = (int)draw((uint32_t)n);
        const int64_t size = shape.dim[d0], start = draw((uint32_t)size + 1);
        const int64_t length = draw((uint32_t)(size - start) + 1);
        Tensor *turned = tensor_view_transpose(x, d0, d1);
        Tensor *part = tensor_view_narrow(x, d0, start, length);
        wide.dim[wide.ndim++] = 3;
        Shape column = shape;
        column.dim[column.ndim++] = 1;
        Tensor *upright = tensor_view_reshape(x, column);
        Tensor *whole = NULL;
        if (upright) whole = tensor_view_expand(upright, wide);
        for (int64_t i = 0; i < tensor_numel(x); i++) {
            int64_t index[TENSOR_MAX_DIMS];
            index_of(shape, i, index);
            double want = value_of(x, i);
            if (index[d0] >= start && index[d0] < start + length) {
                index[d0] -= start;
                CHECK(element_load(I64, part->data, broadcast_at(part, n, index)) == want);
                index[d0] += start;
            }
            for (int64_t j = 0; whole && j < 3; j++) CHECK(value_of(whole, 3 * i + j) == want);
            int64_t kept = index[d0];
            index[d0] = index[d1];
            index[d1] = kept;
            CHECK(element_load(I64, turned->data, broadcast_at(turned, n, index)) == want);
        }
        RELEASE(x, turned, part, upright, whole);
    }
}

/* ---- the suite ------------------------------------------------------------------------------- */

int main(void) { return run_tests("loops"); }
