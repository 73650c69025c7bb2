/* norm.c - layer normalisation: each row of x gets mean 0 and variance 1, then the weights w and
 * the biases b. Ba, Kiros & Hinton 2016. */
#include "../op.h"

/* y = (x - mean) / sqrt(variance + eps) w + b, over the last dimension; saved, for each
 * row: its mean in two parts, and 1 / sqrt(variance + eps) */
Tensor *ag_layer_norm_forward(Node *n) {
    const Tensor *x = n->in[0];
    double zero = 0; /* its bits are 0 in both float types */
    const Tensor none = {.dtype = x->dtype, .data = &zero};
    const Tensor *b = n->in[2] ? n->in[2] : &none;
    Shape three = x->shape;
    if (three.dim[three.ndim - 1] > 0) three.dim[three.ndim - 1] = 3; /* of rows of nothing, none */
    Tensor *y = tensor_make(x->shape, x->dtype), *stats = tensor_make(three, x->dtype);
    Loop *const kernel = kernels()->layer_norm[x->dtype];
    n->saved[0] = stats;
    if (stats) loop_rows(kernel, 5, (const Tensor *[]){y, x, n->in[1], b, stats}, n->at.number);
    return y;
}

/* With z = (x - mean) / sqrt(variance + eps) and dz = w dy:
 * dx = (dz - mean(dz) - z mean(dz z)) / sqrt(variance + eps),  dw = dy z,  db = dy, both summed
 * over the rows. */
void ag_layer_norm_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    Loop *const kernel = kernels()->layer_norm_dx[dy->dtype];
    Tensor *x = tensor_contiguous(n->in[0]), *d = tensor_contiguous(dy);
    dx[0] = tensor_make(dy->shape, dy->dtype);
    for (int i = 1; i < 3; i++) dx[i] = tensor_make(n->in[1]->shape, dy->dtype);
    if (dx[2]) { /* and so the others, which were made before */
        loop_rows(kernel, 5, (const Tensor *[]){dx[0], x, n->in[1], d, n->saved[0]}, 0);
        layer_norm_dw(dx + 1, x, d, n->saved[0]);
    }
    tensor_release(x), tensor_release(d);
}

static bool layer_norm_fits(const Tensor *x, const Tensor *w, const Tensor *b) {
    const int lead = x->shape.ndim - w->shape.ndim;
    bool fits = w->shape.ndim > 0 && lead >= 0;
    for (int d = 0; fits && d < w->shape.ndim; d++)
        fits = x->shape.dim[lead + d] == w->shape.dim[d];
    if (!fits)
        tensor_fail(
            "layer_norm: x is %s and w is %s: w's sizes must be x's last ones, at least one",
            tensor_shape_text(x->shape), tensor_shape_text(w->shape));
    else if (b && !shape_equal(b->shape, w->shape))
        tensor_fail("layer_norm: w is %s and b is %s: the shapes must be equal",
                    tensor_shape_text(w->shape), tensor_shape_text(b->shape));
    return !tensor_pending();
}

/* Where w has several dimensions, they become one. */
Tensor *ag_layer_norm(Tensor *x, Tensor *w, Tensor *b, double eps) {
    if (!ag_ready("layer_norm", x) || !ag_ready("layer_norm", w) || !layer_norm_fits(x, w, b))
        return NULL;
    const Shape shape = x->shape, row = SHAPE(tensor_numel(w));
    const int merged = w->shape.ndim - 1;
    Shape rows = shape;
    rows.ndim -= merged;
    rows.dim[rows.ndim - 1] = row.dim[0];
    if (merged) x = ag_reshape(x, rows), w = ag_reshape(w, row), b = b ? ag_reshape(b, row) : b;
    Tensor *y = apply3(&op_layer_norm, x, w, b, (Attributes){.number = eps});
    if (merged) y = ag_reshape(y, shape);
    return made_by(op_layer_norm.grad_fn, y);
}
