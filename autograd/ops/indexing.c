/* indexing.c - ops that gather by index: index_select, gather, embedding.
 *
 * All three are y[..., i, ...] = x[..., index[i], ...]; only the shapes differ. Backward is
 * scatter_add: an element that was gathered twice gets the sum of both gradients, added in y's
 * row-major order. */
#include "../op.h"

extern const Op ag_op_gather; /* defined below */

static bool check_indices(const Node *n) {
    const Shape x = n->in[0]->shape;
    const int64_t size = x.ndim ? x.dim[n->at.dim] : 1, numel = tensor_numel(n->in[1]);
    Tensor *row = tensor_contiguous(n->in[1]);
    const int64_t *index = row ? row->data : NULL;
    for (int64_t i = 0; i < numel && !tensor_pending(); i++)
        if (index[i] < 0 || index[i] >= size)
            tensor_fail("%s: index %lld is out of range for dimension %d of %s %s", n->op->name,
                        (long long)index[i], n->at.dim, n->op->in[0].name, tensor_shape_text(x));
    tensor_release(row);
    return !tensor_pending();
}

/* index in y's shape, for the kernel. gather has an index for each element of y; the other ops have
 * one for all elements in the dimensions after dim, which get size 1 in index. */
static Tensor index_along(const Node *n) {
    Tensor index = *n->in[1];
    if (n->op == &ag_op_gather) return index;
    for (int d = n->at.dim + 1; d < n->in[0]->shape.ndim; d++)
        index.shape.dim[index.shape.ndim++] = 1;
    return index;
}

/* y[..., i, ...] = x[..., index[i], ...] */
static Tensor *gathered(const Node *n, Shape shape) {
    const Tensor *x = n->in[0];
    const Tensor index = index_along(n);
    Tensor *y = check_indices(n) ? tensor_make(shape, x->dtype) : NULL;
    if (y) tensor_gather_elements(y, x, n->at.dim, &index);
    return y;
}

/* dx[..., index[i], ...] += dy[..., i, ...] */
static void scatter_add_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const Tensor index = index_along(n);
    dx[0] = ag_gradient_buffer(n, 0);
    if (dx[0]) tensor_scatter_add_elements(dx[0], dy, n->at.dim, &index);
}

static Tensor *indexed(const Op *op, Tensor *x, int dim, Tensor *index) {
    if (!ag_check_named(op->name, "x", x)) return NULL;
    const int d = tensor_shape_dim_or_scalar(op->name, x->shape, dim);
    return d < 0 ? NULL : apply2(op, x, index, (Attributes){.dim = d});
}

/* ---- index_select -------------------------------------------------------------------------- */

OP_TEXT(index_select) = {
    .call = "ag_index_select(x, dim, index)",
    .shapes = "(..., N, ...), (n) or () -> (..., n, ...)",
    .value = "the slices of x along dim that index names",
    .gradient = "dy added to the slices that were gathered",
};

/* A scalar has one slice, itself, and index must have one element. */
static Tensor *index_select_forward(Node *n) {
    const Shape index = n->in[1]->shape;
    Shape shape = n->in[0]->shape;
    if (index.ndim > 1 || (shape.ndim == 0 && tensor_shape_numel(index) != 1))
        return tensor_fail("index_select: x is %s and index is %s: index must be %s",
                           tensor_shape_text(shape), tensor_shape_text(index),
                           shape.ndim ? "a row or a scalar" : "(1,) or a scalar");
    if (shape.ndim) shape.dim[n->at.dim] = tensor_shape_numel(index);
    return gathered(n, shape);
}

DEFINE_OP(index_select, .in = {{"x", SAME}, {"index", INT64}}, .forward = index_select_forward,
          .backward = scatter_add_backward, .reads = READS_IN1, .grad_fn = "IndexSelectBackward0");

Tensor *ag_index_select(Tensor *x, int dim, Tensor *index) {
    return indexed(&ag_op_index_select, x, dim, index);
}

/* ---- gather -------------------------------------------------------------------------------- */

OP_TEXT(gather) = {
    .call = "ag_gather(x, dim, index)",
    .shapes = "(N, M), (n, m) -> (n, m), where m <= M for dim 0",
    .value = "x[index[i, j], j] for dim 0, x[i, index[i, j]] for dim 1",
    .gradient = "dy added to the elements that were gathered",
};

static Tensor *gather_forward(Node *n) {
    const Shape x = n->in[0]->shape, index = n->in[1]->shape;
    /* as in PyTorch, a scalar counts as a row of one element */
    bool fits = (x.ndim ? x.ndim : 1) == (index.ndim ? index.ndim : 1);
    for (int d = 0; fits && d < x.ndim && d < index.ndim; d++)
        fits = d == n->at.dim || index.dim[d] <= x.dim[d];
    if (fits) return gathered(n, index);
    return tensor_fail("gather: x is %s and index is %s: index must have as many dimensions as "
                       "x, and only the size of dimension %d may be larger",
                       tensor_shape_text(x), tensor_shape_text(index), n->at.dim);
}

DEFINE_OP(gather, .in = {{"x", SAME}, {"index", INT64}}, .forward = gather_forward,
          .backward = scatter_add_backward, .reads = READS_IN1, .grad_fn = "GatherBackward0");

Tensor *ag_gather(Tensor *x, int dim, Tensor *index) {
    return indexed(&ag_op_gather, x, dim, index);
}

/* ---- embedding ----------------------------------------------------------------------------- */

OP_TEXT(embedding) = {
    .call = "ag_embedding(w, index)",
    .shapes = "(N, D), (...) -> (..., D)",
    .value = "the row of w at each index",
    .gradient = "dy added to the rows that were gathered",
};

static Tensor *embedding_forward(Node *n) {
    const Shape w = n->in[0]->shape;
    Shape shape = n->in[1]->shape;
    if (w.ndim != 2 || shape.ndim == TENSOR_MAX_DIMS)
        return tensor_fail(
            "embedding: w is %s and index is %s: w must have 2 dimensions, and index at most %d",
            tensor_shape_text(w), tensor_shape_text(shape), TENSOR_MAX_DIMS - 1);
    shape.dim[shape.ndim++] = w.dim[1];
    return gathered(n, shape);
}

DEFINE_OP(embedding, .in = {{"w", SAME}, {"index", INT64}}, .forward = embedding_forward,
          .backward = scatter_add_backward, .reads = READS_IN1, .grad_fn = "EmbeddingBackward0");

Tensor *ag_embedding(Tensor *w, Tensor *index) {
    return apply2(&ag_op_embedding, w, index, (Attributes){.dim = 0});
}
