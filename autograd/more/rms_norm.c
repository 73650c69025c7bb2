/* rms_norm.c - divides each row by its root mean square, then multiplies by the weights w. Zhang &
 * Sennrich 2019. */
#include "../../tensor/more/more_kernels.h"
#include "../op.h"

#include <float.h>

OP_TEXT(rms_norm) = {
    .call = "ag_rms_norm(x, w, eps)",
    .shapes = "(..., N), (N) or NULL -> (..., N), where N is one or more sizes",
    .value = "z w, z = x / sqrt(mean(x^2) + eps), over N",
    .gradient =
        "dx = (w dy - z mean(w dy z)) / sqrt(mean(x^2) + eps), dw = dy z summed over the rows",
    .source = "Zhang & Sennrich 2019",
};

/* saved: 1 / sqrt(mean(x^2) + eps), a double for each row. The op itself normalises the last
 * dimension; ag_rms_norm merges several into one. */
static Tensor *rms_norm_forward(Node *n) {
    const Tensor *x = n->in[0];
    const int last = x->shape.ndim - 1;
    Shape one = x->shape; /* a number for each row that has elements */
    if (one.dim[last] > 0) one.dim[last] = 1;
    Tensor *y = tensor_make(x->shape, x->dtype);
    n->saved[0] = tensor_make(one, F64);
    const Tensor *const operand[] = {y, x, n->in[1], n->saved[0]};
    Kernel *const kernel = tensor_more_kernels()->rms_norm[x->dtype];
    if (n->saved[0]) tensor_loop_rows(kernel, last, 4, operand, n->at.eps);
    return y;
}

static void rms_norm_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const Tensor *w = n->in[1];
    Tensor *x = tensor_contiguous(n->in[0]);
    Tensor *d = tensor_contiguous(dy);
    Tensor *mean = ag_needs(n, 1) ? tensor_make_zeros(n->saved[0]->shape, F64) : NULL;
    dx[0] = tensor_make(dy->shape, dy->dtype);
    if (ag_needs(n, 1)) dx[1] = tensor_make(w->shape, dy->dtype);
    const Tensor *const operand[] = {dx[0], x, w, d, n->saved[0]};
    Kernel *const kernel = tensor_more_kernels()->rms_norm_dx[dy->dtype];
    if (!tensor_pending()) tensor_loop_rows(kernel, dy->shape.ndim - 1, 5, operand, 0);
    if (dx[1] && !tensor_pending()) tensor_layer_norm_dw(dx[1], x, d, mean, n->saved[0]);
    tensor_release(mean);
    tensor_release(x);
    tensor_release(d);
}

DEFINE_OP(rms_norm, .in = {{"x", FLOAT}, {"w", FLOAT | OPTIONAL}}, .forward = rms_norm_forward,
          .backward = rms_norm_backward, .shown = SHOWN(eps), .reads = READS_IN0 | READS_IN1,
          .grad_fn = "MulBackward0");

static bool check_sizes(const Tensor *x, const Tensor *w) {
    const int lead = x->shape.ndim - (w ? w->shape.ndim : 1);
    bool fits = lead >= 0 && (!w || w->shape.ndim > 0);
    for (int d = 0; w && fits && d < w->shape.ndim; d++)
        fits = x->shape.dim[lead + d] == w->shape.dim[d];
    if (fits) return true;
    if (!w) return tensor_fail("rms_norm: x is (): it needs a last dimension");
    return tensor_fail(
        "rms_norm: x is %s and w is %s: w must have at least 1 dimension, and x's last sizes",
        tensor_shape_text(x->shape), tensor_shape_text(w->shape));
}

Tensor *ag_rms_norm(Tensor *x, Tensor *w, double eps) {
    if (!ag_check_named("rms_norm", "x", x) || (w && !ag_check_named("rms_norm", "w", w)) ||
        !check_sizes(x, w))
        return NULL;
    if (eps == AG_EPS_OF_TYPE) eps = x->dtype == F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    if (!tensor_check_not_negative("rms_norm", "eps", eps)) return NULL;
    const Attributes at = {.eps = eps};
    const int merged = w ? w->shape.ndim - 1 : 0;
    if (merged == 0) return apply2(&ag_op_rms_norm, x, w, at);
    Shape rows = x->shape;
    rows.ndim -= merged;
    rows.dim[rows.ndim - 1] = tensor_numel(w);
    Tensor *flat_w = ag_reshape(w, SHAPE(tensor_numel(w)));
    Tensor *flat_y = apply2(&ag_op_rms_norm, ag_reshape(x, rows), flat_w, at);
    return made_by(ag_op_rms_norm.grad_fn, ag_reshape(flat_y, x->shape));
}
