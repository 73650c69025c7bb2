/* choose.c - ops that select elements by a mask: where, masked_fill, masked_select, tril, triu,
 * dropout. Elements are selected, never multiplied by 0 or 1, since 0 times NaN is NaN. An element
 * that is not selected gets a gradient of exactly 0. */
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

/* ---- tril and triu ------------------------------------------------------------------------- */

extern const Op ag_op_tril; /* defined below */

/* tril keeps the first i + diagonal + 1 elements of row i, triu all but the first i + diagonal. */
static Tensor *triangle(const Node *n, const Tensor *x) {
    const int64_t rows = tensor_numel(x) > 0 ? x->shape.dim[x->shape.ndim - 2] : 0;
    const bool lower = n->op == &ag_op_tril;
    double first = (double)n->at.diagonal + (lower ? 1 : 0);
    Tensor *edges = tensor_make(SHAPE(rows, 1), I64);
    if (edges) tensor_kernels()->arange[I64](rows, (void *[]){edges->data, &first}, 1);
    Tensor *y = edges ? tensor_make(x->shape, x->dtype) : NULL;
    if (y)
        tensor_loop_rows(tensor_kernels()->cut[x->dtype], x->shape.ndim - 1, 3,
                         (const Tensor *[]){y, x, edges}, lower);
    tensor_release(edges);
    return y;
}

static Tensor *triangle_forward(Node *n) { return triangle(n, n->in[0]); }

static void triangle_backward(const Node *n, Tensor *dy, Tensor **dx) { dx[0] = triangle(n, dy); }

static Tensor *apply_triangle(const Op *op, Tensor *x, int diagonal) {
    if (!ag_check_present(op->name, x)) return NULL;
    if (x->shape.ndim < 2)
        return tensor_fail("%s: x is %s: it must have at least 2 dimensions", op->name,
                           tensor_shape_text(x->shape));
    return apply1(op, x, (Attributes){.diagonal = diagonal});
}

OP_TEXT(tril) = {
    .call = "ag_tril(x, diagonal)",
    .shapes = "(..., N, M) -> same",
    .value = "x where j - i <= diagonal, 0 elsewhere",
    .gradient = "dy where j - i <= diagonal, 0 elsewhere",
};

DEFINE_OP(tril, .in = {{"x", SAME}}, .forward = triangle_forward, .backward = triangle_backward,
          .grad_fn = "TrilBackward0");

Tensor *ag_tril(Tensor *x, int diagonal) { return apply_triangle(&ag_op_tril, x, diagonal); }

OP_TEXT(triu) = {
    .call = "ag_triu(x, diagonal)",
    .shapes = "(..., N, M) -> same",
    .value = "x where j - i >= diagonal, 0 elsewhere",
    .gradient = "dy where j - i >= diagonal, 0 elsewhere",
};

DEFINE_OP(triu, .in = {{"x", SAME}}, .forward = triangle_forward, .backward = triangle_backward,
          .grad_fn = "TriuBackward0");

Tensor *ag_triu(Tensor *x, int diagonal) { return apply_triangle(&ag_op_triu, x, diagonal); }

/* ---- dropout ------------------------------------------------------------------------------- */

/* y = keep ? x / (1 - p) : 0, the same for a gradient. y NULL stays NULL. */
static Tensor *dropped(const Node *n, const Tensor *x, Tensor *y) {
    const Tensor *const operand[] = {y, x, n->saved[0]};
    if (y) tensor_loop_elements(tensor_kernels()->dropout[x->dtype], 3, operand, 1 - n->at.p);
    return y;
}

/* Bools in x's shape, true with probability p. As in PyTorch, the bools have x's order in memory,
 * and are drawn in that order. */
static Tensor *draw_keep(const Tensor *x, double p) {
    int axes[TENSOR_MAX_DIMS], back[TENSOR_MAX_DIMS];
    Shape shape = x->shape;
    tensor_sort_by_stride(x, axes);
    for (int d = 0; d < shape.ndim; d++) {
        shape.dim[d] = x->shape.dim[axes[d]];
        back[axes[d]] = d;
    }
    Tensor *drawn = tensor_bernoulli(p, shape);
    Tensor *keep = drawn ? tensor_view_permute(drawn, back) : NULL;
    tensor_release(drawn);
    return keep;
}

OP_TEXT(dropout) = {
    .call = "ag_dropout(x, p)",
    .shapes = "(...) -> same",
    .value = "x / (1 - p) with probability 1 - p, else 0",
    .gradient = "dy / (1 - p) where kept, else 0",
    .source = "Srivastava et al. 2014",
};

/* p = 1 keeps nothing, and like PyTorch draws nothing. */
static Tensor *dropout_forward(Node *n) {
    const Tensor *x = n->in[0];
    if (!n->saved[0])
        n->saved[0] = n->at.p < 1 ? draw_keep(x, 1 - n->at.p) : tensor_make_zeros(x->shape, BOOL);
    return dropped(n, x, tensor_make(x->shape, x->dtype));
}

static void dropout_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = dropped(n, dy, ag_buffer_like(dy));
}

DEFINE_OP(dropout, .in = {{"x", FLOAT}}, .forward = dropout_forward, .backward = dropout_backward,
          .draws = 1, .zero = "dropped", .grad_fn = "MulBackward0");

Tensor *ag_dropout(Tensor *x, double p) {
    if (!ag_check_present("dropout", x)) return NULL;
    if (!(p >= 0 && p <= 1))
        return tensor_fail("dropout: p is %g: it must be a probability, from 0 to 1", p);
    if (p == 0 && dtype_is_float(x->dtype)) return x;
    return apply1(&ag_op_dropout, x, (Attributes){.p = p});
}
