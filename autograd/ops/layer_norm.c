/* layer_norm.c - layer normalisation: each row of x gets mean 0 and variance 1, then the weights w
 * and the biases b. Ba, Kiros & Hinton 2016. */
#include "../op.h"

/* The sizes of w, or of b if w is NULL, must be the last sizes of x. */
static bool check_layer_norm(const Tensor *x, const Tensor *w, const Tensor *b) {
    const Tensor *by = w ? w : b;
    const char *name = w ? "w" : "b";
    if (!by)
        return x->shape.ndim > 0 || tensor_fail("layer_norm: x is (): it needs a last dimension");
    const int lead = x->shape.ndim - by->shape.ndim;
    bool fits = by->shape.ndim > 0 && lead >= 0;
    for (int d = 0; fits && d < by->shape.ndim; d++)
        fits = x->shape.dim[lead + d] == by->shape.dim[d];
    if (!fits)
        return tensor_fail(
            "layer_norm: x is %s and %s is %s: %s must have at least 1 dimension, and x's last sizes",
            tensor_shape_text(x->shape), name, tensor_shape_text(by->shape), name);
    if (!b || shape_equal(b->shape, by->shape)) return true;
    return tensor_fail("layer_norm: w is %s and b is %s: the shapes must be equal",
                       tensor_shape_text(w->shape), tensor_shape_text(b->shape));
}

OP_TEXT(layer_norm) = {
    .call = "ag_layer_norm(x, w, b, eps)",
    .shapes = "(..., N), (N) or NULL, (N) or NULL -> (..., N), where N is one or more sizes",
    .value = "z w + b, z = (x - mean) / sqrt(variance + eps), over N",
    .gradient = "dx = (w dy - mean(w dy) - z mean(w dy z)) / sqrt(variance + eps), dw = dy z, db "
                "= dy, both summed over the rows",
    .source = "Ba, Kiros & Hinton 2016",
};

/* saved: for each row the mean and 1 / sqrt(variance + eps), in double. The op itself normalises
 * the last dimension; ag_layer_norm merges several into one. */
static Tensor *layer_norm_forward(Node *n) {
    const Tensor *x = n->in[0];
    const int last = x->shape.ndim - 1;
    Shape one = x->shape; /* a number for each row that has elements */
    if (one.dim[last] > 0) one.dim[last] = 1;
    Tensor *y = tensor_make(x->shape, x->dtype);
    n->saved[0] = tensor_make(one, F64);
    n->saved[1] = tensor_make(one, F64);
    const Tensor *const operand[] = {y, x, n->in[1], n->in[2], n->saved[0], n->saved[1]};
    if (n->saved[1])
        tensor_loop_rows(tensor_kernels()->layer_norm[x->dtype], last, 6, operand, n->at.eps);
    return y;
}

static void layer_norm_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const Tensor *w = n->in[1];
    const int last = dy->shape.ndim - 1;
    Tensor *x = tensor_contiguous(n->in[0]);
    Tensor *d = tensor_contiguous(dy);
    dx[0] = tensor_make(dy->shape, dy->dtype);
    const Tensor *const operand[] = {dx[0], x, w, d, n->saved[0], n->saved[1]};
    if (ag_needs(n, 1)) dx[1] = tensor_make(w->shape, dy->dtype);
    if (!tensor_pending())
        tensor_loop_rows(tensor_kernels()->layer_norm_dx[dy->dtype], last, 6, operand, 0);
    if (dx[1]) tensor_layer_norm_dw(dx[1], x, d, n->saved[0], n->saved[1]);
    if (ag_needs(n, 2)) dx[2] = tensor_retain(dy); /* ag_node_vjp sums it over the rows */
    tensor_release(x);
    tensor_release(d);
}

DEFINE_OP(layer_norm, .in = {{"x", FLOAT}, {"w", FLOAT | OPTIONAL}, {"b", FLOAT | OPTIONAL}},
          .forward = layer_norm_forward, .backward = layer_norm_backward, .shown = SHOWN(eps),
          .reads = READS_IN0 | READS_IN1, .grad_fn = "NativeLayerNormBackward0");

Tensor *ag_layer_norm(Tensor *x, Tensor *w, Tensor *b, double eps) {
    if (!ag_check_named("layer_norm", "x", x) || (w && !ag_check_named("layer_norm", "w", w)) ||
        (b && !ag_check_named("layer_norm", "b", b)) || !check_layer_norm(x, w, b) ||
        !tensor_check_not_negative("layer_norm", "eps", eps))
        return NULL;
    const Tensor *by = w ? w : b;
    const int merged = by ? by->shape.ndim - 1 : 0;
    if (merged == 0) return apply3(&ag_op_layer_norm, x, w, b, (Attributes){.eps = eps});
    const Shape row = SHAPE(tensor_numel(by));
    Shape rows = x->shape;
    rows.ndim -= merged;
    rows.dim[rows.ndim - 1] = row.dim[0];
    Tensor *flat_w = w ? ag_reshape(w, row) : NULL;
    Tensor *flat_b = b ? ag_reshape(b, row) : NULL;
    Tensor *flat_y =
        apply3(&ag_op_layer_norm, ag_reshape(x, rows), flat_w, flat_b, (Attributes){.eps = eps});
    return made_by(ag_op_layer_norm.grad_fn, ag_reshape(flat_y, x->shape));
}
