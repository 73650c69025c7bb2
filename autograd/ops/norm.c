/* norm.c - layer normalisation: each row of x gets mean 0 and variance 1, then the weights w and
 * the biases b. Ba, Kiros & Hinton 2016. */
#include "../op.h"

/* An absent w is a 1, and an absent b a 0, that is repeated. */
static Tensor repeated(DType dtype, int number) {
    static const float floats[] = {0, 1};
    static const double doubles[] = {0, 1};
    const void *data = dtype == F32 ? (const void *)&floats[number] : &doubles[number];
    return (Tensor){.dtype = dtype, .data = (void *)(uintptr_t)data};
}

/* y = (x - mean) / sqrt(variance + eps) w + b, over the last dimension; saved, for each
 * row: its mean in two parts, and 1 / sqrt(variance + eps) */
Tensor *ag_layer_norm_forward(Node *n) {
    const Tensor *x = n->in[0];
    const Tensor one = repeated(x->dtype, 1), zero = repeated(x->dtype, 0);
    const Tensor *w = n->in[1] ? n->in[1] : &one, *b = n->in[2] ? n->in[2] : &zero;
    Shape three = x->shape;
    if (three.dim[three.ndim - 1] > 0) three.dim[three.ndim - 1] = 3; /* of rows of nothing, none */
    Tensor *y = tensor_make(x->shape, x->dtype), *stats = tensor_make(three, x->dtype);
    Loop *const kernel = kernels()->layer_norm[x->dtype];
    n->saved[0] = stats;
    if (stats) loop_rows(kernel, 5, (const Tensor *[]){y, x, w, b, stats}, n->at.number);
    return y;
}

/* With z = (x - mean) / sqrt(variance + eps) and dz = w dy:
 * dx = (dz - mean(dz) - z mean(dz z)) / sqrt(variance + eps),  dw = dy z,  db = dy, both summed
 * over the rows. */
void ag_layer_norm_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    Loop *const kernel = kernels()->layer_norm_dx[dy->dtype];
    const Tensor one = repeated(dy->dtype, 1), *w = n->in[1] ? n->in[1] : &one;
    const Shape row = SHAPE(dy->shape.dim[dy->shape.ndim - 1]);
    Tensor *x = tensor_contiguous(n->in[0]), *d = tensor_contiguous(dy);
    dx[0] = tensor_make(dy->shape, dy->dtype);
    for (int i = 1; i < 3; i++) dx[i] = tensor_make(row, dy->dtype);
    if (dx[2]) { /* and so the others, which were made before */
        loop_rows(kernel, 5, (const Tensor *[]){dx[0], x, w, d, n->saved[0]}, 0);
        layer_norm_dw(dx + 1, x, d, n->saved[0]);
    }
    tensor_release(x);
    tensor_release(d);
}

/* The sizes of w, or of b if there is no w, must be x's last ones. */
static bool layer_norm_fits(const Tensor *x, const Tensor *w, const Tensor *b) {
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
            "layer_norm: x is %s and %s is %s: %s's sizes must be x's last ones, at least one",
            tensor_shape_text(x->shape), name, tensor_shape_text(by->shape), name);
    if (!b || shape_equal(b->shape, by->shape)) return true;
    return tensor_fail("layer_norm: w is %s and b is %s: the shapes must be equal",
                       tensor_shape_text(w->shape), tensor_shape_text(b->shape));
}

/* Where w or b has several dimensions, they become one. */
Tensor *ag_layer_norm(Tensor *x, Tensor *w, Tensor *b, double eps) {
    if (!ag_ready("layer_norm", x) || !layer_norm_fits(x, w, b)) return NULL;
    const Tensor *by = w ? w : b;
    const int merged = by ? by->shape.ndim - 1 : 0;
    if (merged == 0) return apply3(&op_layer_norm, x, w, b, (Attributes){.number = eps});
    const Shape row = SHAPE(tensor_numel(by));
    Shape rows = x->shape;
    rows.ndim -= merged;
    rows.dim[rows.ndim - 1] = row.dim[0];
    Tensor *flat_w = w ? ag_reshape(w, row) : NULL, *flat_b = b ? ag_reshape(b, row) : NULL;
    Tensor *flat_y =
        apply3(&op_layer_norm, ag_reshape(x, rows), flat_w, flat_b, (Attributes){.number = eps});
    return made_by(op_layer_norm.grad_fn, ag_reshape(flat_y, x->shape));
}
