/* linear.c - matrix products. The kernels take operands of any strides: a transposed operand is a
 * view, not a copy. */
#include "../op.h"

#include <string.h>

/* c = a b:  da = dc b',  db = a' dc. ag_node_vjp (backward.c) sums over broadcast batches.
 * b_transposed and a_transposed hold no reference: they are not released. */
static void product_backward(const Node *n, Tensor *dc, Tensor **dx) {
    if (ag_needs(n, 0)) {
        const Tensor b_transposed = tensor_transposed(n->in[1]);
        dx[0] = tensor_matmul(dc, &b_transposed);
    }
    if (ag_needs(n, 1)) {
        const Tensor a_transposed = tensor_transposed(n->in[0]);
        dx[1] = tensor_matmul(&a_transposed, dc);
    }
}

/* ---- bmm ----------------------------------------------------------------------------------- */

OP_TEXT(bmm) = {
    .call = "ag_bmm(a, b)",
    .shapes = "(B, N, K), (B, K, M) -> (B, N, M)",
    .value = "a b",
    .gradient = "dy b'; a' dy",
};

static Tensor *bmm_forward(Node *n) {
    const Shape a = n->in[0]->shape, b = n->in[1]->shape;
    if (a.ndim == 3 && b.ndim == 3 && a.dim[0] == b.dim[0] && a.dim[2] == b.dim[1])
        return tensor_matmul(n->in[0], n->in[1]);
    const char *ta = tensor_shape_text(a);
    const char *tb = tensor_shape_text(b);
    if (a.ndim != 3 || b.ndim != 3)
        return tensor_fail("bmm: a is %s and b is %s: both must have 3 dimensions", ta, tb);
    if (a.dim[0] != b.dim[0])
        return tensor_fail("bmm: a is %s and b is %s: the batch sizes %lld and %lld must be equal",
                           ta, tb, (long long)a.dim[0], (long long)b.dim[0]);
    return tensor_fail("bmm: a is %s and b is %s: a's last size %lld and b's middle size %lld must "
                       "be equal",
                       ta, tb, (long long)a.dim[2], (long long)b.dim[1]);
}

DEFINE_OP(bmm, .in = {{"a", NUMBER}, {"b", NUMBER}}, .forward = bmm_forward,
          .backward = product_backward, .reads = READS_IN0 | READS_IN1 | READS_OTHER,
          .grad_fn = "BmmBackward0");

Tensor *ag_bmm(Tensor *a, Tensor *b) { return apply2(&ag_op_bmm, a, b, (Attributes){0}); }

/* ---- matmul -------------------------------------------------------------------------------- */

OP_TEXT(matmul) = {
    .call = "ag_matmul(a, b)",
    .shapes = "(..., N, K), (..., K, M) -> (..., N, M)",
    .value = "a b, batches broadcast; a 1-d a counts as one row, a 1-d b as one column",
    .gradient = "dy b'; a' dy; summed over broadcast batches",
};

static Tensor *matmul_forward(Node *n) {
    const Tensor *a = n->in[0];
    const Tensor *b = n->in[1];
    const int na = a->shape.ndim, nb = b->shape.ndim;
    Shape batch_a = a->shape, batch_b = b->shape, batch;
    batch_a.ndim -= 2;
    batch_b.ndim -= 2;
    if (na > 2 && nb > 2 && !tensor_shape_broadcast(batch_a, batch_b, &batch))
        return tensor_fail("matmul: a is %s and b is %s: the batch sizes %s and %s must broadcast",
                           tensor_shape_text(a->shape), tensor_shape_text(b->shape),
                           tensor_shape_text(batch_a), tensor_shape_text(batch_b));
    Tensor *c = tensor_matmul(a, b);
    if (c && c->shape.ndim == 2) c->grad_fn = "MmBackward0";
    return c;
}

DEFINE_OP(matmul, .in = {{"a", NUMBER}, {"b", NUMBER}}, .forward = matmul_forward,
          .backward = product_backward, .reads = READS_IN0 | READS_IN1 | READS_OTHER,
          .grad_fn = "UnsafeViewBackward0");

/* a's last size, and the size of b that it is multiplied with, which is b's only one if b is a
 * vector, must be equal. */
static bool check_inner(Shape a, Shape b) {
    const int64_t k = a.dim[a.ndim - 1], rows = b.dim[b.ndim > 1 ? b.ndim - 2 : 0];
    return k == rows || tensor_fail("matmul: a is %s and b is %s: a's last size %lld and b's %s "
                                    "size %lld must be equal",
                                    tensor_shape_text(a), tensor_shape_text(b), (long long)k,
                                    b.ndim > 1 ? "second-to-last" : "only", (long long)rows);
}

/* A vector a becomes a matrix of one row, a vector b a matrix of one column; the result loses the
 * new dimension again. */
Tensor *ag_matmul(Tensor *a, Tensor *b) {
    if (!ag_check_named("matmul", "a", a) || !ag_check_named("matmul", "b", b)) return NULL;
    if (a->shape.ndim == 0 || b->shape.ndim == 0)
        return tensor_fail("matmul: a is %s and b is %s: both must have at least 1 dimension",
                           tensor_shape_text(a->shape), tensor_shape_text(b->shape));
    if (!check_inner(a->shape, b->shape)) return NULL;
    const bool row = a->shape.ndim == 1, column = b->shape.ndim == 1;
    Tensor *c = apply2(&ag_op_matmul, row ? ag_unsqueeze(a, 0) : a, column ? ag_unsqueeze(b, 1) : b,
                       (Attributes){0});
    const bool matrices = a->shape.ndim <= 2 && b->shape.ndim <= 2;
    if (column) c = ag_squeeze(c, -1);
    if (row) c = ag_squeeze(c, column ? -1 : -2);
    if (!row && !column) return c;
    const char *name = "SqueezeBackward4";
    if (column) name = row ? "DotBackward0" : "MvBackward0";
    if (!matrices) name = "UnsafeViewBackward0";
    return made_by(name, c);
}

/* ---- linear -------------------------------------------------------------------------------- */

/* x as a matrix, (..., in) -> (rows, in), and the strides of its rows and columns. A new reference:
 * to x if it is contiguous, else to a view or a copy. */
static Tensor *as_matrix(Tensor *x, int64_t rows, int64_t *stride) {
    const int64_t in = x->shape.dim[x->shape.ndim - 1];
    stride[0] = in;
    stride[1] = 1;
    if (tensor_is_contiguous(x)) return tensor_retain(x);
    Tensor *matrix = tensor_reshape(x, SHAPE(rows, in));
    if (matrix) memcpy(stride, matrix->stride, 2 * sizeof *stride);
    return matrix;
}

static int64_t rows_of(const Tensor *x) {
    int64_t rows = 1;
    for (int d = 0; d < x->shape.ndim - 1; d++) rows *= x->shape.dim[d];
    return rows;
}

static bool check_linear(const Node *n) {
    const Shape x = n->in[0]->shape, w = n->in[1]->shape;
    const Tensor *b = n->in[2];
    if (w.ndim != 2)
        tensor_fail("linear: w is %s: it must have 2 dimensions, (out, in)", tensor_shape_text(w));
    else if (x.ndim < 1 || x.dim[x.ndim - 1] != w.dim[1])
        tensor_fail("linear: x is %s and w is %s: x's last size must be w's last size %lld",
                    tensor_shape_text(x), tensor_shape_text(w), (long long)w.dim[1]);
    else if (b && !shape_equal(b->shape, SHAPE(w.dim[0])))
        tensor_fail("linear: w is %s and b is %s: b must be (%lld,)", tensor_shape_text(w),
                    tensor_shape_text(b->shape), (long long)w.dim[0]);
    return !tensor_pending();
}

/* PyTorch's names of the node. Rows: without b; with b; with b and an x that is not contiguous.
 * Columns: x with one dimension, with two, with three or more. */
static const char *const linear_grad_fn[3][3] = {
    {"SqueezeBackward4", "MmBackward0", "UnsafeViewBackward0"},
    {"UnsafeViewBackward0", "AddmmBackward0", "UnsafeViewBackward0"},
    {"AddBackward0", "AddmmBackward0", "AddBackward0"},
};

OP_TEXT(linear) = {
    .call = "ag_linear(x, w, b)",
    .shapes = "(..., in), (out, in), (out) or NULL -> (..., out)",
    .value = "x w' + b",
    .gradient = "dx = dy w, dw = dy' x, db = dy summed over the rows",
};

static Tensor *linear_forward(Node *n) {
    if (!check_linear(n)) return NULL;
    Tensor *x = n->in[0];
    const Tensor *w = n->in[1];
    const Tensor *b = n->in[2];
    MatmulShape s = {.m = rows_of(x), .n = w->shape.dim[0], .k = w->shape.dim[1]};
    s.b_stride[0] = w->stride[1]; /* w' */
    s.b_stride[1] = w->stride[0];
    if (b) {
        s.start = b->data;
        s.start_stride[1] = b->stride[0];
    }
    Shape shape = x->shape;
    shape.dim[shape.ndim - 1] = s.n;
    Tensor *rows = as_matrix(x, s.m, s.a_stride);
    Tensor *y = rows ? tensor_multiply_matrices(shape, x->dtype, &s, rows->data, w->data) : NULL;
    tensor_release(rows);
    const int with = b ? 1 + !tensor_is_contiguous(x) : 0;
    if (y) y->grad_fn = linear_grad_fn[with][MIN(shape.ndim, 3) - 1];
    return y;
}

/* y = x w' + b, with x as a matrix xs (rows, in), and dy as a matrix dys (rows, out):
 *     dx = dys w:    (rows, out) (out, in) -> (rows, in)
 *     dw = dys' xs:  (out, rows) (rows, in) -> (out, in); dys' is dys with its two strides swapped
 * ag_node_vjp sums db over the rows. */
static void linear_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Tensor *x = n->in[0];
    const Tensor *w = n->in[1];
    const int64_t rows = rows_of(x), out = w->shape.dim[0], in = w->shape.dim[1];
    MatmulShape dys_w = {.m = rows, .n = in, .k = out};
    MatmulShape dyst_xs = {.m = out, .n = in, .k = rows};
    Tensor *dys = as_matrix(dy, rows, dys_w.a_stride);
    memcpy(dys_w.b_stride, w->stride, sizeof dys_w.b_stride);
    dyst_xs.a_stride[0] = dys_w.a_stride[1]; /* dys' */
    dyst_xs.a_stride[1] = dys_w.a_stride[0];
    /* without a dw, x's memory may be freed */
    Tensor *xs = ag_needs(n, 1) ? as_matrix(x, rows, dyst_xs.b_stride) : NULL;
    if (dys && ag_needs(n, 0))
        dx[0] = tensor_multiply_matrices(x->shape, x->dtype, &dys_w, dys->data, w->data);
    if (dys && xs)
        dx[1] = tensor_multiply_matrices(w->shape, x->dtype, &dyst_xs, dys->data, xs->data);
    if (ag_needs(n, 2)) dx[2] = tensor_retain(dy);
    tensor_release(dys);
    tensor_release(xs);
}

DEFINE_OP(linear, .in = {{"x", NUMBER}, {"w", NUMBER}, {"b", NUMBER | OPTIONAL}},
          .forward = linear_forward, .backward = linear_backward,
          .reads = READS_IN0 | READS_IN1 | READS_OTHER, .grad_fn = "UnsafeViewBackward0");

Tensor *ag_linear(Tensor *x, Tensor *w, Tensor *b) {
    return apply3(&ag_op_linear, x, w, b, (Attributes){0});
}
