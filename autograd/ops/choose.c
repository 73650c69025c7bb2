/* choose.c - ops that select elements by a mask: where, masked_fill, masked_select. Elements are
 * selected, never multiplied by 0 or 1, since 0 times NaN is NaN. An element that is not selected
 * gets a gradient of exactly 0. */
#include "../op.h"

/* The shape that n's inputs broadcast to; false with an error if they do not. */
static bool broadcast_inputs(const Node *n, Shape *shape) {
    *shape = n->in[0]->shape;
    for (int i = 1; i < n->n_in; i++) {
        Shape other = n->in[i]->shape, before = *shape;
        if (tensor_shape_broadcast(before, other, shape)) continue;
        const char *rule = "sizes, aligned at the right, must be equal or 1";
        const Input *in = n->op->in;
        if (i == 1)
            return tensor_fail("%s: %s is %s and %s is %s: %s", n->op->name, in[0].name,
                               tensor_shape_text(before), in[1].name, tensor_shape_text(other),
                               rule);
        return tensor_fail("%s: %s and %s broadcast to %s and %s is %s: %s", n->op->name,
                           in[0].name, in[1].name, tensor_shape_text(before), in[i].name,
                           tensor_shape_text(other), rule);
    }
    return true;
}

/* ---- where --------------------------------------------------------------------------------- */

OP_TEXT(where) = {
    .call = "ag_where(condition, a, b)",
    .shapes = "all broadcast together",
    .value = "a where the condition holds, b elsewhere",
    .gradient = "dy where chosen, exactly 0 elsewhere",
};

static Tensor *where_forward(Node *n) {
    Shape shape;
    const DType dtype = n->in[1]->dtype;
    const Tensor *const operand[] = {n->in[0], n->in[1], n->in[2]};
    if (!broadcast_inputs(n, &shape)) return NULL;
    return tensor_map_elements(tensor_kernels()->where[dtype], shape, dtype, 3, operand, 0);
}

/* da = condition ? dy : 0,  db = condition ? 0 : dy */
static void where_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Number memory;
    const Tensor nothing = tensor_scalar(dy->dtype, 0, &memory);
    const Tensor *const a[] = {n->in[0], dy, &nothing};
    const Tensor *const b[] = {n->in[0], &nothing, dy};
    Kernel *const kernel = tensor_kernels()->where[dy->dtype];
    if (ag_needs(n, 1)) dx[1] = tensor_map_elements(kernel, dy->shape, dy->dtype, 3, a, 0);
    if (ag_needs(n, 2)) dx[2] = tensor_map_elements(kernel, dy->shape, dy->dtype, 3, b, 0);
}

DEFINE_OP(where, .in = {{"condition", BOOLEAN}, {"a", SAME}, {"b", SAME}}, .forward = where_forward,
          .backward = where_backward, .reads = READS_IN0, .grad_fn = "WhereBackward0");

Tensor *ag_where(Tensor *condition, Tensor *a, Tensor *b) {
    return apply3(&ag_op_where, condition, a, b, (Attributes){0});
}

/* ---- masked_fill --------------------------------------------------------------------------- */

static Tensor *filled(const Tensor *x, const Tensor *mask, Shape shape, double value) {
    Number memory;
    const Tensor number = tensor_scalar(x->dtype, value, &memory);
    const Tensor *const operand[] = {mask, &number, x};
    return tensor_map_elements(tensor_kernels()->where[x->dtype], shape, x->dtype, 3, operand, 0);
}

OP_TEXT(masked_fill) = {
    .call = "ag_masked_fill(x, mask, value)",
    .shapes = "both broadcast together",
    .value = "value where the mask holds, x elsewhere",
    .gradient = "dy where not masked, exactly 0 elsewhere",
};

static Tensor *masked_fill_forward(Node *n) {
    Shape shape;
    return broadcast_inputs(n, &shape) ? filled(n->in[0], n->in[1], shape, n->at.value) : NULL;
}

static void masked_fill_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = filled(dy, n->in[1], dy->shape, 0);
}

DEFINE_OP(masked_fill, .in = {{"x", SAME}, {"mask", BOOLEAN}}, .forward = masked_fill_forward,
          .backward = masked_fill_backward, .reads = READS_IN1, .zero = "masked",
          .grad_fn = "MaskedFillBackward0");

Tensor *ag_masked_fill(Tensor *x, Tensor *mask, double value) {
    if (x && !tensor_check_value("masked_fill", x->dtype, value)) return NULL;
    return apply2(&ag_op_masked_fill, x, mask, (Attributes){.value = value});
}

/* ---- masked_select ------------------------------------------------------------------------- */

/* x broadcast to the shape, contiguous. */
static Tensor *broadcast(const Tensor *x, Shape shape) {
    Tensor *wide = tensor_view_expand(x, shape);
    Tensor *dense = wide ? tensor_contiguous(wide) : NULL;
    tensor_release(wide);
    return dense;
}

/* Runs the kernel over contiguous tensors as one row. */
static void along_mask(Kernel *kernel, const Tensor *y, const Tensor *x, const Tensor *mask) {
    kernel(tensor_numel(mask), (void *[]){y->data, x->data, mask->data}, 0);
}

OP_TEXT(masked_select) = {
    .call = "ag_masked_select(x, mask)",
    .shapes = "both broadcast together -> (count of true)",
    .value = "the elements where the mask holds, in one row",
    .gradient = "dy where the mask holds, 0 elsewhere",
};

static Tensor *masked_select_forward(Node *n) {
    Shape shape;
    if (!broadcast_inputs(n, &shape)) return NULL;
    Tensor *x = broadcast(n->in[0], shape);
    Tensor *mask = broadcast(n->in[1], shape);
    Tensor *y = NULL;
    Kernel *const count_true = tensor_kernels()->sum[BOOL];
    int64_t count = 0;
    if (mask) count_true(tensor_numel(mask), (void *[]){&count, mask->data}, 0);
    if (x && mask) y = tensor_make(SHAPE(count), x->dtype);
    if (y) along_mask(tensor_kernels()->compress[x->dtype], y, x, mask);
    tensor_release(x);
    tensor_release(mask);
    return y;
}

static void masked_select_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Shape shape;
    if (!broadcast_inputs(n, &shape)) return;
    Tensor *mask = broadcast(n->in[1], shape);
    Tensor *row = tensor_contiguous(dy);
    if (mask && row) dx[0] = tensor_make(shape, dy->dtype);
    if (dx[0]) along_mask(tensor_kernels()->decompress[dy->dtype], dx[0], row, mask);
    tensor_release(mask);
    tensor_release(row);
}

DEFINE_OP(masked_select, .in = {{"x", SAME}, {"mask", BOOLEAN}}, .forward = masked_select_forward,
          .backward = masked_select_backward, .reads = READS_IN1,
          .grad_fn = "MaskedSelectBackward0");

Tensor *ag_masked_select(Tensor *x, Tensor *mask) {
    return apply2(&ag_op_masked_select, x, mask, (Attributes){0});
}
