/* test_products.c - matrix products: tests products of every shape, stride and start, for every
 * instruction set that this CPU can run. Each element is compared bit for bit with chains of
 * products and sums, fused or not, that are computed here; and up to rounding with the plain
 * kernel. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "common_kernels.h"

enum { GAP = 0x5a }; /* the bytes where nothing may be written */

static const Kernels *const *isa_tables; /* all but the plain one */
static int isa_count;

static void setup(void) {
    tensor_set_default_dtype(F32);
    draws_begin();
}

/* ---- matrix products ------------------------------------------------------------------------- */

typedef struct {
    DType dtype;
    int64_t rows, columns, stride[2];
    size_t bytes;
    void *data;
} Matrix;

/* The bytes after a block of tensor_cache_alloc; a product may read them after b. */
enum { SLACK = 128 };

/* layout bit 0: transposed; bit 1: every second element. */
static Matrix matrix_new(DType dtype, int64_t rows, int64_t columns, int layout) {
    int64_t step = layout & 2 ? 2 : 1;
    Matrix x = {dtype, rows, columns, {columns * step, step}, 0, NULL};
    if (layout & 1) {
        x.stride[0] = step;
        x.stride[1] = rows * step;
    }
    x.bytes = (size_t)(rows * columns * step + 1) * dtype_size(dtype);
    x.data = malloc(x.bytes + SLACK);
    ck_assert_ptr_nonnull(x.data);
    memset(x.data, GAP, x.bytes + SLACK);
    return x;
}

static int64_t matrix_at(const Matrix *x, int64_t i, int64_t j) {
    return i * x->stride[0] + j * x->stride[1];
}

static void matrix_draw(Matrix *x) {
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->columns; j++)
            element_store(x->dtype, x->data, matrix_at(x, i, j), draw_in(-2, 2));
}

/* The start of a product: zeros, a matrix, one row for all rows, or c itself. */
enum { AT_ZERO, AT_MATRIX, AT_ROW, AT_ITSELF, STARTS };

static void multiply(const Kernels *table, const Matrix *a, const Matrix *b, const Matrix *start,
                     Matrix *c) {
    MatmulShape shape = {.m = a->rows, .n = b->columns, .k = a->columns};
    memcpy(shape.a_stride, a->stride, sizeof a->stride);
    memcpy(shape.b_stride, b->stride, sizeof b->stride);
    memcpy(shape.c_stride, c->stride, sizeof c->stride);
    if (start) {
        shape.start = start->data;
        memcpy(shape.start_stride, start->stride, sizeof start->stride);
    }
    const int64_t bytes = table->matmul_workspace[a->dtype](&shape);
    char *workspace = malloc((size_t)bytes + 8);
    ck_assert_ptr_nonnull(workspace);
    memset(workspace + bytes, GAP, 8);
    shape.workspace = workspace;
    table->matmul[a->dtype](&shape, a->data, b->data, c->data);
    for (int i = 0; i < 8; i++) CHECK((unsigned char)workspace[bytes + i] == GAP);
    free(workspace);
}

/* Is a b + c rounded once? */
static bool fuses(const Kernels *table, DType dtype) {
    const double eps = dtype == F32 ? 0x1p-20 : 0x1p-45;
    Matrix a = matrix_new(dtype, 1, 2, 2), b = matrix_new(dtype, 2, 1, 2);
    Matrix c = matrix_new(dtype, 1, 1, 0);
    element_store(dtype, a.data, matrix_at(&a, 0, 0), -1);
    element_store(dtype, b.data, matrix_at(&b, 0, 0), 1);
    element_store(dtype, a.data, matrix_at(&a, 0, 1), 1 + eps);
    element_store(dtype, b.data, matrix_at(&b, 1, 0), 1 - eps);
    multiply(table, &a, &b, NULL, &c);
    const bool once = element_load(dtype, c.data, 0) != 0; /* -eps^2 */
    free(a.data);
    free(b.data);
    free(c.data);
    return once;
}

/* Element (i, j) of a product, in the order of the fast kernels: chains over p, fused or not, are
 * added to start. There are as few chains as CHAIN allows, and their lengths are nearly equal. */
static double product_at(const Matrix *a, const Matrix *b, double start, int64_t i, int64_t j,
                         bool fused) {
    const int64_t k = a->columns, chains = (k + CHAIN - 1) / CHAIN;
    const int64_t length = chains > 0 ? (k + chains - 1) / chains : 1;
    double sum = start, chain = 0;
    for (int64_t p = 0; p < k; p++) {
        const int64_t at_a = matrix_at(a, i, p), at_b = matrix_at(b, p, j);
        if (a->dtype == F32) {
            const float x = ((float *)a->data)[at_a], y = ((float *)b->data)[at_b];
            chain = (double)(fused ? fmaf(x, y, (float)chain) : x * y + (float)chain);
        } else {
            const double x = ((double *)a->data)[at_a], y = ((double *)b->data)[at_b];
            chain = fused ? fma(x, y, chain) : x * y + chain;
        }
        if (p + 1 < k && (p + 1) % length) continue;
        sum = a->dtype == F32 ? (double)((float)sum + (float)chain) : sum + chain;
        chain = 0;
    }
    return sum;
}

/* If m or n is 1 and the operands are contiguous, the elements are dot products, with another order
 * of the sum: the error is at most about k eps sum |a b|. All other products must have the bits of
 * product_at. */
static void expect_product(const Matrix *a, const Matrix *b, const Matrix *start, const Matrix *c,
                           bool fused) {
    const double eps = c->dtype == F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    const bool dots = (c->rows == 1 || c->columns == 1) && a->columns != 1 && a->stride[1] == 1 &&
                      b->stride[0] == 1;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const double first =
                start ? element_load(c->dtype, start->data, matrix_at(start, i, j)) : 0;
            const double want = product_at(a, b, first, i, j, fused);
            const double got = element_load(c->dtype, c->data, matrix_at(c, i, j));
            const double bound = 6 * eps * (double)(a->columns * a->columns + 1);
            EXPECT(got == want || (isnan(got) && isnan(want)) ||
                       (dots && fabs(got - want) <= bound),
                   "(%lld, %lld) (%lld, %lld): c[%lld, %lld] is %.17g, not %.17g",
                   (long long)c->rows, (long long)a->columns, (long long)a->columns,
                   (long long)c->columns, (long long)i, (long long)j, got, want);
        }
}

/* The plain kernel adds in double and rounds once; the results must agree up to rounding. */
static void expect_plain(const Matrix *a, const Matrix *b, const Matrix *start, const Matrix *c) {
    const double eps = c->dtype == F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    Matrix plain = matrix_new(c->dtype, c->rows, c->columns, 0);
    multiply(tables[0], a, b, start, &plain);
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const double got = element_load(c->dtype, c->data, matrix_at(c, i, j));
            const double want = element_load(c->dtype, plain.data, matrix_at(&plain, i, j));
            EXPECT(fabs(got - want) <= 8 * eps * (double)(a->columns + 2), "%.9g, not %.9g", got,
                   want);
        }
    free(plain.data);
}

/* Checks that only the elements of c were written. */
static void expect_matrix_gaps(const Matrix *c) {
    const size_t size = dtype_size(c->dtype);
    const int64_t step = c->stride[0] < c->stride[1] ? c->stride[0] : c->stride[1];
    for (size_t b = 0; b < c->bytes; b++) {
        int64_t e = (int64_t)(b / size);
        if (e >= c->rows * c->columns * step || e % step)
            CHECK(((unsigned char *)c->data)[b] == GAP);
    }
}

/* layouts: two bits for each of a, b, c and start. */
static void try_product(DType dtype, int64_t m, int64_t n, int64_t k, int layouts, int begins) {
    Matrix a = matrix_new(dtype, m, k, layouts & 3), b = matrix_new(dtype, k, n, layouts >> 2 & 3);
    Matrix start = matrix_new(dtype, m, n, layouts >> 6 & 3), row = start, first = start;
    row.stride[0] = 0;
    const Matrix *from = begins == AT_ROW ? &row : &start;
    if (begins == AT_ZERO) from = NULL;
    matrix_draw(&a);
    matrix_draw(&b);
    matrix_draw(&start);
    for (int t = 0; t < isa_count; t++) {
        Matrix c = matrix_new(dtype, m, n, layouts >> 4 & 3);
        for (int64_t i = 0; i < m && begins == AT_ITSELF; i++)
            for (int64_t j = 0; j < n; j++)
                element_store(dtype, c.data, matrix_at(&c, i, j),
                              element_load(dtype, start.data, matrix_at(&start, i, j)));
        multiply(isa_tables[t], &a, &b, begins == AT_ITSELF ? &c : from, &c);
        if (t < 2) expect_product(&a, &b, from, &c, fuses(isa_tables[t], dtype));
        if (t == 0) expect_plain(&a, &b, from, &c);
        expect_matrix_gaps(&c);
        EXPECT(t < 2 || memcmp(c.data, first.data, c.bytes) == 0, "%s: (%d, %d) (%d, %d)",
               isa_tables[t]->name, (int)m, (int)k, (int)k, (int)n);
        if (t > 0) free(first.data);
        first = c;
    }
    free(a.data);
    free(b.data);
    free(start.data);
    free(first.data);
}

CASE("products", .setup = setup)
LOOP_TEST(products_of_every_shape_and_stride, 2) {
    static const int64_t sizes[][3] = {
        {0, 3, 4},  {3, 0, 4},    {3, 4, 0},   {0, 0, 0},   {1, 1, 1},   {1, 5, 1},   {5, 1, 1},
        {1, 1, 9},  {1, 7, 3},    {7, 1, 3},   {2, 3, 4},   {5, 7, 3},   {8, 8, 8},   {17, 9, 33},
        {4, 16, 5}, {31, 33, 32}, {13, 65, 7}, {3, 70, 40}, {1, 40, 50}, {50, 1, 40}, {20, 200, 0}};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int layouts = 0; layouts < 256; layouts += layouts < 15 ? 1 : 7)
            try_product(_i ? F64 : F32, sizes[i][0], sizes[i][1], sizes[i][2], layouts,
                        layouts % STARTS);
}

/* Every size up to a few tiles, in each dimension. */
LOOP_TEST(products_of_every_size, 2) {
    for (int64_t size = 1; size <= 70; size++)
        for (int i = 0; i < 8; i++) {
            const int64_t a = 1 + draw(40), b = 1 + draw(40);
            const int layouts = (int)draw(256), begins = (int)draw(STARTS);
            try_product(_i ? F64 : F32, size, a, b, layouts, begins);
            try_product(_i ? F64 : F32, a, size, b, layouts, begins);
            try_product(_i ? F64 : F32, a, b, size, layouts, begins);
        }
}

/* A kernel may store a whole vector beyond the end of a row only if the next row of c follows
 * there. Here other bytes follow. */
LOOP_TEST(products_leave_what_lies_between_rows, 2) {
    const DType dtype = _i ? F64 : F32;
    for (int64_t columns = 1; columns <= 40; columns++)
        for (int64_t rows = 1; rows <= 26; rows += 5) {
            const int64_t wide = columns + 1 + draw(9);
            Matrix a = matrix_new(dtype, rows, 3, 0), b = matrix_new(dtype, 3, columns, 0);
            matrix_draw(&a);
            matrix_draw(&b);
            for (int t = 0; t < isa_count; t++) {
                Matrix whole = matrix_new(dtype, rows, wide, 0), c = whole;
                c.columns = columns;
                multiply(isa_tables[t], &a, &b, NULL, &c);
                expect_product(&a, &b, NULL, &c, fuses(isa_tables[t], dtype));
                const int64_t size = dtype_size(dtype);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t x = (i * wide + columns) * size; x < (i + 1) * wide * size; x++)
                        CHECK(((unsigned char *)c.data)[x] == GAP);
                free(whole.data);
            }
            free(a.data);
            free(b.data);
        }
}

/* At each -O level, and under sanitizers. (The baseline of some machines fuses, too.) */
TEST(vectors_with_fma_fuse) {
    for (int t = 0; t < isa_count; t++)
        for (int type = F32; type <= F64; type++)
            EXPECT(!table_fuses(t + 1) || fuses(isa_tables[t], (DType)type),
                   "%s: products do not fuse", isa_tables[t]->name);
}

CASE("large", .inner_setup = setup, .is_long = true)
static int third = 1; /* 3: each size has every third layout */

/* In each dimension a size larger than the packed blocks; the sizes are odd on purpose. */
LOOP_TEST(larger_products, 2) {
    static const int64_t sizes[][3] = {{67, 131, 259}, {5, 3, 5003},   {3, 1031, 5},
                                       {1031, 3, 5},   {19, 40, 1030}, {5, 1070, 1100},
                                       {270, 70, 520}, {40, 2100, 30}, {800, 70, 700}};
    static const int layouts[] = {0, 5, 9, 14};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int k = i % third; k < COUNT(layouts); k += third)
            try_product(_i ? F64 : F32, sizes[i][0], sizes[i][1], sizes[i][2], layouts[k],
                        i % STARTS);
}

CASE("products", .setup = setup)
/* A few rows of a transposed a. Its columns are so far apart that blocks of a are packed: for one
 * part of b, or for several. */
LOOP_TEST(products_of_distant_columns, 4) {
    const DType dtype = _i & 1 ? F64 : F32;
    const int64_t m = 100, k = 700, n = _i & 2 ? 200 : 30;
    Matrix a = matrix_new(dtype, 701, k, 1), b = matrix_new(dtype, k, n, 0), first = b;
    matrix_draw(&a);
    matrix_draw(&b);
    a.rows = m;
    for (int t = 0; t < isa_count; t++) {
        Matrix c = matrix_new(dtype, m, n, 0);
        multiply(isa_tables[t], &a, &b, NULL, &c);
        if (t < 2) expect_product(&a, &b, NULL, &c, fuses(isa_tables[t], dtype));
        CHECK(t < 2 || memcmp(c.data, first.data, c.bytes) == 0);
        if (t > 0) free(first.data);
        first = c;
    }
    free(a.data);
    free(b.data);
    free(first.data);
}

CASE("large", .inner_setup = setup, .is_long = true)
/* a as above, but with more rows than stay packed at once. The first rows and the last rows must
 * have the same bits as in products of their own. */
LOOP_TEST(products_of_more_than_a_panel, 4) {
    const DType dtype = _i & 1 ? F64 : F32;
    const int64_t m = 3100, k = 700, n = 300, few = 100, from = _i & 2 ? m - few : 0;
    const size_t size = dtype_size(dtype);
    Matrix a = matrix_new(dtype, m, k, 1), b = matrix_new(dtype, k, n, 0), part = a;
    matrix_draw(&a);
    matrix_draw(&b);
    part.rows = few;
    part.data = (char *)a.data + (size_t)from * size;
    for (int t = 0; t < isa_count; t++) {
        Matrix c = matrix_new(dtype, m, n, 0), alone = matrix_new(dtype, few, n, 0);
        multiply(isa_tables[t], &a, &b, NULL, &c);
        multiply(isa_tables[t], &part, &b, NULL, &alone);
        const char *rows = (char *)c.data + (size_t)(from * n) * size;
        CHECK(memcmp(rows, alone.data, (size_t)(few * n) * size) == 0);
        free(c.data);
        free(alone.data);
    }
    free(a.data);
    free(b.data);
}

CASE("products", .setup = setup)
/* Threads multiply slices of a product. A slice begins at a multiple of 64, and its workspace has
 * the size for the whole product. */
TEST(a_slice_needs_no_more_room) {
    static const int64_t depths[] = {0, 1, 20, 300, 333, 700, 1000, 1024, 1500};
    for (int t = 0; t < isa_count; t++)
        for (int i = 0; i < COUNT(depths) * 8; i++)
            for (int64_t size = 1; size <= 1100; size += 33) {
                const DType type = i & 4 ? F64 : F32;
                const int64_t k = depths[i / 8], other = 1200;
                MatmulShape whole = {.m = other, .n = size, .k = k};
                whole.a_stride[i & 1 ? 0 : 1] = 1;
                whole.b_stride[i & 2 ? 0 : 1] = 1;
                whole.a_stride[i & 1 ? 1 : 0] = i & 1 ? other : k;
                whole.b_stride[i & 2 ? 1 : 0] = i & 2 ? k : size;
                const int64_t bytes = isa_tables[t]->matmul_workspace[type](&whole);
                for (int64_t from = 0; from < size; from += 64)
                    for (int64_t to = from + 64; to < size + 64; to += 64) {
                        MatmulShape slice = whole;
                        slice.n = (to < size ? to : size) - from;
                        EXPECT(isa_tables[t]->matmul_workspace[type](&slice) <= bytes,
                               "(%d, %d) (%d, %d): columns %d to %d", (int)other, (int)k, (int)k,
                               (int)size, (int)from, (int)to);
                        slice.n = size;
                        slice.m = to - from;
                        EXPECT(isa_tables[t]->matmul_workspace[type](&slice) <= bytes,
                               "(%d, %d) (%d, %d): rows %d to %d", (int)other, (int)k, (int)k,
                               (int)size, (int)from, (int)to);
                    }
            }
}

/* With k = 0 a product is 0. A factor of 0 does not hide a NaN or an infinity. */
TEST(products_skip_no_zero) {
    float a[] = {0, 1}, b[4 + SLACK] = {INFINITY, NAN, 1, 1}, c[2] = {7, 7}, workspace[512];
    MatmulShape shape = {.m = 1,
                         .n = 2,
                         .k = 2,
                         .a_stride = {2, 1},
                         .b_stride = {2, 1},
                         .c_stride = {2, 1},
                         .workspace = workspace};
    MatmulShape none = shape;
    none.k = 0;
    for (int t = 0; t < isa_count; t++) {
        isa_tables[t]->matmul[F32](&shape, a, b, c);
        CHECK(isnan(c[0]) && isnan(c[1]));
        isa_tables[t]->matmul[F32](&none, a, b, c);
        ck_assert(c[0] == 0 && c[1] == 0);
    }
}

/* c = a b in two steps; the second step adds to c. The result must be the sum of two products, bit
 * for bit. If b is read in place, the lengths of its rows are multiples of a vector. */
LOOP_TEST(products_are_added, 2) {
    const DType dtype = _i ? F64 : F32;
    const int64_t size = dtype_size(dtype), k[] = {17, 20};
    Matrix a = matrix_new(dtype, 21, 37, 0), wide = matrix_new(dtype, 37, 48, 0);
    Matrix c[] = {matrix_new(dtype, 21, 43, 0), matrix_new(dtype, 21, 43, 0)};
    Matrix added = matrix_new(dtype, 21, 43, 1);
    matrix_draw(&a);
    matrix_draw(&wide);
    for (int t = 0; t < isa_count; t++)
        for (int in_place = 0; in_place < 2; in_place++) {
            memset(added.data, GAP, added.bytes);
            for (int step = 0; step < 2; step++) {
                Matrix left = a, right = wide;
                right.rows = k[step];
                left.columns = right.rows;
                right.columns = 43;
                left.data = (char *)a.data + step * k[0] * size;
                right.data = (char *)wide.data + step * k[0] * 48 * size;
                multiply(isa_tables[t], &left, &right, NULL, &c[step]);
                MatmulShape shape = {21, 43, k[step], {37, 1}, {48, 1}, .in_place = in_place};
                memcpy(shape.c_stride, added.stride, sizeof added.stride);
                if (step) shape.start = added.data;
                if (step) memcpy(shape.start_stride, added.stride, sizeof added.stride);
                shape.workspace =
                    malloc((size_t)isa_tables[t]->matmul_workspace[dtype](&shape) + 1);
                isa_tables[t]->matmul[dtype](&shape, left.data, right.data, added.data);
                free(shape.workspace);
            }
            for (int64_t i = 0; i < 21; i++)
                for (int64_t j = 0; j < 43; j++) {
                    const double x = element_load(dtype, c[0].data, matrix_at(&c[0], i, j));
                    const double y = element_load(dtype, c[1].data, matrix_at(&c[1], i, j));
                    const double sum = dtype == F32 ? (double)((float)x + (float)y) : x + y;
                    ck_assert(element_load(dtype, added.data, matrix_at(&added, i, j)) == sum);
                }
            expect_matrix_gaps(&added);
        }
    free(a.data);
    free(wide.data);
    free(c[0].data);
    free(c[1].data);
    free(added.data);
}

CASE("large", .inner_setup = setup, .is_long = true)
/* The error of a long product is not larger than the error of a short one, because a chain has at
 * most CHAIN terms. With one long chain it would be 4e-6 to 9e-6 of the largest result. Factors
 * from 0 to 1 are the worst case, because their sums grow. The products have matrices, rows and
 * columns, in all layouts: 5 _i is the next pair of them, and the first four have each layout of a
 * and of b. */
LOOP_TEST(long_products_are_accurate, sampled(16, 4)) {
    enum { LENGTH = 20000, MOST = 48 };
    const int layouts = 5 * _i % 16;
    static const int64_t sizes[][2] = {{MOST, MOST}, {1, MOST}, {MOST, 1}, {5, 3}};
    for (int i = 0; i < COUNT(sizes); i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1];
        Matrix a = matrix_new(F32, m, LENGTH, layouts & 3),
               b = matrix_new(F32, LENGTH, n, layouts >> 2);
        static double want[MOST * MOST];
        double largest = 0;
        for (int64_t e = 0; e < m * LENGTH; e++)
            ((float *)a.data)[matrix_at(&a, e / LENGTH, e % LENGTH)] = (float)draw_in(0, 1);
        for (int64_t e = 0; e < n * LENGTH; e++)
            ((float *)b.data)[matrix_at(&b, e / n, e % n)] = (float)draw_in(0, 1);
        for (int64_t e = 0; e < m * n; e++) {
            want[e] = 0;
            for (int64_t p = 0; p < LENGTH; p++)
                want[e] += element_load(F32, a.data, matrix_at(&a, e / n, p)) *
                           element_load(F32, b.data, matrix_at(&b, p, e % n));
            largest = fmax(largest, want[e]);
        }
        for (int t = 0; t < isa_count; t++) {
            Matrix c = matrix_new(F32, m, n, 0);
            multiply(isa_tables[t], &a, &b, NULL, &c);
            for (int64_t e = 0; e < m * n; e++) {
                const double error = fabs(element_load(F32, c.data, e) - want[e]) / largest;
                EXPECT(error < 1e-6, "%s (%d, %d): %g", isa_tables[t]->name, (int)m, (int)n, error);
            }
            free(c.data);
        }
        free(a.data);
        free(b.data);
    }
}

CASE("products", .setup = setup)
/* Every row of a product has the same bits as in a product of its own. So no digit can depend on
 * how threads share the rows. */
TEST(rows_of_a_product_stand_alone) {
    Matrix a = matrix_new(F32, 13, 37, 0), b = matrix_new(F32, 37, 29, 0);
    Matrix all = matrix_new(F32, 13, 29, 0), row = matrix_new(F32, 1, 29, 0);
    matrix_draw(&a);
    matrix_draw(&b);
    multiply(tensor_kernels(), &a, &b, NULL, &all);
    for (int64_t i = 0; i < 13; i++) {
        Matrix one = a;
        one.rows = 1;
        one.data = (float *)a.data + i * 37;
        multiply(tensor_kernels(), &one, &b, NULL, &row);
        ck_assert_mem_eq(row.data, (float *)all.data + i * 29, 29 * sizeof(float));
    }
    free(a.data);
    free(b.data);
    free(all.data);
    free(row.data);
}

/* For k = 1: a number times a row has the same bits as this row of the whole product, also 0
 * instead of -0, for any strides of the row.
 */
TEST(a_number_times_a_row_is_a_row_of_the_product) {
    double factors[13], numbers[29], spaced[58] = {0};
    for (int i = 0; i < 13; i++) factors[i] = i % 4 ? draw_in(-2, 2) : 0;
    for (int j = 0; j < 29; j++) {
        numbers[j] = j % 3 ? draw_in(-2, 2) : 0;
        spaced[2 * j] = numbers[j];
    }
    for (int t = F32; t <= F64; t++) {
        ck_assert(tensor_set_default_dtype((DType)t));
        Tensor *column = tensor_from_doubles(SHAPE(13, 1), factors);
        Tensor *batch = tensor_from_doubles(SHAPE(13, 1, 1), factors);
        Tensor *row = tensor_from_doubles(SHAPE(1, 29), numbers);
        Tensor *wide = tensor_from_doubles(SHAPE(29, 2), spaced);
        Tensor *apart = tensor_as_strided(wide, SHAPE(1, 29), (int64_t[]){58, 2}, 0);
        Tensor *all = tensor_matmul(column, row);
        Tensor *rows = tensor_matmul(batch, row);
        Tensor *others = tensor_matmul(batch, apart);
        const size_t bytes = 13 * 29 * (size_t)dtype_size((DType)t);
        ck_assert_mem_eq(rows->data, all->data, bytes);
        ck_assert_mem_eq(others->data, all->data, bytes);
        RELEASE(column, batch, row, wide, apart, all, rows, others);
    }
    ck_assert(tensor_set_default_dtype(F32));
}

/* ---- the suite ------------------------------------------------------------------------------- */

int main(void) {
    find_tables();
    isa_tables = tables + 1;
    isa_count = table_count - 1;
    third = sample_step(3);
    return run_tests("products");
}
