/* product.c - matrix products of whole tensors, cut into slices for several threads. */
#include "operations.h"

#include "../parts.h"

#include <string.h>

Tensor tensor_transposed(const Tensor *x) {
    Tensor view = *x;
    const int row = x->shape.ndim - 2;
    const int column = x->shape.ndim - 1;
    swap(&view.shape.dim[row], &view.shape.dim[column]);
    swap(&view.stride[row], &view.stride[column]);
    return view;
}

/* A batch of products. Each product is cut into slices of rows, or of columns, of c. */
typedef struct {
    MatmulShape shape;
    Matmul *kernel;
    bool rows;
    int64_t slices;
    int64_t workspace; /* bytes, for each worker */
    Walk walk;         /* over the batch: c, a, b */
} Products;

/* Moves a walk from its start to a position. */
static void walk_seek(Walk *walk, int64_t position, int64_t *index) {
    for (int d = walk->ndim - 1; d >= 0; position /= walk->size[d--]) {
        index[d] = position % walk->size[d];
        tensor_walk_along(walk, d, index[d]);
    }
}

/* The start of a slice: a multiple of 64, the width of the widest tile of fast/matmul.inc. */
static int64_t slice_begin(int64_t size, int64_t slices, int64_t slice) {
    return slice == slices ? size : (size * slice / slices + 32) / 64 * 64;
}

static void multiply_slice(const Products *whole, MatmulShape s, void *const *data, int64_t slice) {
    const int along = whole->rows ? 0 : 1;
    int64_t *size = whole->rows ? &s.m : &s.n;
    const int64_t from = slice_begin(*size, whole->slices, slice);
    const int64_t bytes = from * whole->walk.element[0]; /* all operands are of one type */
    char *c = data[0];
    char *a = data[1];
    char *b = data[2];
    *size = slice_begin(*size, whole->slices, slice + 1) - from;
    if (whole->rows) a += bytes * s.a_stride[0];
    else b += bytes * s.b_stride[1];
    if (s.start) s.start = (const char *)s.start + bytes * s.start_stride[along];
    whole->kernel(&s, a, b, c + bytes * s.c_stride[along]);
}

static void multiply_part(int worker, int64_t from, int64_t to, void *context) {
    const Products *whole = context;
    Walk walk = whole->walk;
    MatmulShape s = whole->shape;
    int64_t index[TENSOR_MAX_DIMS] = {0};
    s.workspace = (char *)s.workspace + worker * whole->workspace;
    walk_seek(&walk, from / whole->slices, index);
    for (int64_t i = from; i < to; i++) {
        const bool sliced = whole->slices > 1;
        if (sliced) multiply_slice(whole, s, walk.data, i % whole->slices);
        else whole->kernel(&s, walk.data[1], walk.data[2], walk.data[0]);
        if (!sliced || (i + 1) % whole->slices == 0) tensor_walk_next(&walk, walk.ndim, index);
    }
}

/* Cuts so that the fast kernels, which pack (fast/matmul.inc), pack little twice. Each slice of
 * columns packs its own part of b, and all of a unless a can be read in place (its rows are
 * contiguous, or its columns are close in memory). Each slice of rows packs all of b. The last
 * slice has at least 32 rows or columns. A large batch is not cut: it has enough products for every
 * worker. */
static void cut(Products *whole, int64_t batch, int workers) {
    const MatmulShape *s = &whole->shape;
    const int64_t far = s->a_stride[1] > 512 ? 2 : 1;
    whole->rows = s->n < 64 * workers || (far * s->m >= s->n && s->a_stride[1] != 1);
    const int64_t size = whole->rows ? s->m : s->n;
    const int64_t each = whole->rows ? 1 : size / workers / 256;
    whole->slices = MIN(workers * (each < 1 ? 1 : MIN(each, 4)), (size + 32) / 64);
    if (workers == 1 || batch >= 4 * workers || whole->slices < 1) whole->slices = 1;
}

static void multiply(Products *whole, DType dtype, int64_t batch) {
    MatmulShape *s = &whole->shape;
    void *const *data = whole->walk.data;
    /* one operation multiplies a vector of 8 numbers */
    const int workers = tensor_workers_for((double)(batch * s->m * s->n) * (double)s->k / 8);
    whole->kernel = tensor_kernels()->matmul[dtype];
    whole->workspace = tensor_kernels()->matmul_workspace[dtype](s);
    s->workspace = tensor_cache_alloc(workers * whole->workspace);
    if (!s->workspace) return;
    cut(whole, batch, workers);
    if (batch * whole->slices == 1) whole->kernel(s, data[1], data[2], data[0]);
    else tensor_work_in_parts(workers, batch * whole->slices, multiply_part, whole);
    tensor_cache_free(s->workspace, workers * whole->workspace);
}

Tensor *tensor_multiply_matrices(Shape shape, DType dtype, MatmulShape *s, const void *a,
                                 const void *b) {
    Tensor *c = tensor_make(shape, dtype);
    if (!c || tensor_numel(c) == 0) return c;
    /* The batch has one product. A walk over scalars, the first elements, has one position. */
    const Tensor first_a = {.dtype = dtype, .data = (void *)(uintptr_t)a};
    const Tensor first_b = {.dtype = dtype, .data = (void *)(uintptr_t)b};
    const Tensor first_c = {.dtype = dtype, .data = c->data};
    Products whole;
    s->c_stride[0] = s->n;
    s->c_stride[1] = 1;
    whole.shape = *s;
    tensor_walk_start(&whole.walk, 3, (const Tensor *[]){&first_c, &first_a, &first_b}, 0);
    multiply(&whole, dtype, 1);
    return c;
}

Tensor *tensor_matmul(const Tensor *a, const Tensor *b) {
    const int na = a->shape.ndim;
    const int nb = b->shape.ndim;
    Products whole;
    MatmulShape *s = &whole.shape;
    *s = (MatmulShape){.m = a->shape.dim[na - 2], .n = b->shape.dim[nb - 1]};
    s->k = a->shape.dim[na - 1];
    memcpy(s->a_stride, a->stride + na - 2, sizeof s->a_stride);
    memcpy(s->b_stride, b->stride + nb - 2, sizeof s->b_stride);
    if (na == 2 && nb == 2)
        return tensor_multiply_matrices(SHAPE(s->m, s->n), a->dtype, s, a->data, b->data);
    Shape shape;
    Shape batch_a = a->shape;
    Shape batch_b = b->shape;
    batch_a.ndim -= 2;
    batch_b.ndim -= 2;
    tensor_shape_broadcast(batch_a, batch_b, &shape);
    const int64_t batch = tensor_shape_numel(shape);
    shape.dim[shape.ndim++] = s->m;
    shape.dim[shape.ndim++] = s->n;
    Tensor *c = tensor_make(shape, a->dtype);
    if (!c || tensor_numel(c) == 0) return c;
    memcpy(s->c_stride, c->stride + shape.ndim - 2, sizeof s->c_stride);
    tensor_walk_start(&whole.walk, 3, (const Tensor *[]){c, a, b}, 2);
    multiply(&whole, a->dtype, batch);
    return c;
}
