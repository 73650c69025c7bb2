/* softmax.c - softmax, log_softmax, and softmax over the valid keys alone. */
#include "../op.h"

/* A new tensor like x, filled by a row kernel along dim; NULL if anything failed. */
static Tensor *new_rows(LoopKernel kernel, int dim, const Tensor *x, const Tensor *other) {
    Tensor *y = tensor_make(x->shape, x->dtype);
    if (y) loop_rows_along(kernel, dim, other ? 3 : 2, (const Tensor *[]){y, x, other}, 0);
    return y;
}

static Tensor *apply_along(const Op *op, Tensor *x, int dim) {
    int d = ag_present(op->name, x) ? shape_dim_or_scalar(op->name, x->shape, dim) : -1;
    return d < 0 ? NULL : apply1(op, x, (Attributes){.dim = d});
}

/* ---- softmax: y = exp(x - max x) / sum exp(x - max x) -------------------------------------- */

Tensor *ag_softmax_forward(Node *n) {
    return new_rows(kernels()->softmax[n->in[0]->dtype], n->at.dim, n->in[0], NULL);
}

/* dx = y (dy - sum(y dy)) */
void ag_softmax_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    dx[0] = new_rows(kernels()->softmax_dx[dy->dtype], n->at.dim, n->out, dy);
}

Tensor *ag_softmax(Tensor *x, int dim) { return apply_along(&op_softmax, x, dim); }

/* ---- log_softmax: y = x - log sum exp(x) --------------------------------------------------- */

Tensor *ag_log_softmax_forward(Node *n) {
    return new_rows(kernels()->log_softmax[n->in[0]->dtype], n->at.dim, n->in[0], NULL);
}

/* dx = dy - exp(y) sum(dy) */
void ag_log_softmax_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    dx[0] = new_rows(kernels()->log_softmax_dx[dy->dtype], n->at.dim, n->out, dy);
}

Tensor *ag_log_softmax(Tensor *x, int dim) { return apply_along(&op_log_softmax, x, dim); }

/* ---- masked_softmax: softmax of a row's first valid_lens keys, 0 behind -------------------- */

/* The lengths as (N, 1, 1) or (N, Q, 1), to go along with the rows of scores (N, Q, K). */
static Tensor *lengths_by_row(const Tensor *lengths) {
    Shape shape = lengths->shape;
    int64_t stride[TENSOR_MAX_DIMS] = {lengths->stride[0], lengths->stride[1]};
    while (shape.ndim < 3) shape.dim[shape.ndim++] = 1;
    return view_make(lengths, shape, stride, lengths->data);
}

static bool lengths_fit(const Tensor *scores, const Tensor *lengths) {
    const Shape s = scores->shape, l = lengths->shape;
    if (l.ndim < 1 || l.ndim > 2 || l.dim[0] != s.dim[0] || (l.ndim == 2 && l.dim[1] != s.dim[1]))
        return tensor_fail(
                   "masked_softmax: scores is %s and valid_lens is %s: it must be (%lld,) or "
                   "(%lld, %lld)",
                   tensor_shape_text(s), tensor_shape_text(l), (long long)s.dim[0],
                   (long long)s.dim[0], (long long)s.dim[1]) != NULL;
    for (int64_t i = 0; i < l.dim[0]; i++)
        for (int64_t j = 0; j < (l.ndim == 2 ? l.dim[1] : 1); j++) {
            int64_t length =
                ((const int64_t *)lengths->data)[i * lengths->stride[0] + j * lengths->stride[1]];
            if (length < 0)
                return tensor_fail(
                           "masked_softmax: valid_lens has %lld: a length must not be negative",
                           (long long)length) != NULL;
        }
    return true;
}

Tensor *ag_masked_softmax_forward(Node *n) {
    const Tensor *scores = n->in[0];
    if (scores->shape.ndim != 3)
        return tensor_fail("masked_softmax: scores is %s: it must have 3 dimensions, (N, Q, K)",
                           tensor_shape_text(scores->shape));
    if (n->n_in == 1) return new_rows(kernels()->softmax[scores->dtype], 2, scores, NULL);
    Tensor *lengths = lengths_fit(scores, n->in[1]) ? lengths_by_row(n->in[1]) : NULL;
    Tensor *y = lengths ? tensor_make(scores->shape, scores->dtype) : NULL;
    const LoopKernel kernel = kernels()->masked_softmax[scores->dtype];
    if (y) loop_rows(kernel, 3, (const Tensor *[]){y, scores, lengths}, 0);
    tensor_release(lengths);
    return y;
}

/* dx = y (dy - sum(y dy)) over the valid keys, exactly 0 behind them whatever dy holds there. */
void ag_masked_softmax_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    if (n->n_in == 1) {
        dx[0] = new_rows(kernels()->softmax_dx[dy->dtype], 2, n->out, dy);
        return;
    }
    Tensor *lengths = lengths_by_row(n->in[1]);
    dx[0] = lengths ? tensor_make(dy->shape, dy->dtype) : NULL;
    const LoopKernel kernel = kernels()->masked_softmax_dx[dy->dtype];
    if (dx[0]) loop_rows(kernel, 4, (const Tensor *[]){dx[0], n->out, dy, lengths}, 0);
    tensor_release(lengths);
}

Tensor *ag_masked_softmax(Tensor *scores, const Tensor *valid_lens) {
    Tensor *lengths = (Tensor *)(uintptr_t)valid_lens; /* the tape counts a reference, no more */
    if (!lengths) return apply1(&op_masked_softmax, scores, (Attributes){0});
    return apply2(&op_masked_softmax, scores, lengths, (Attributes){0});
}
