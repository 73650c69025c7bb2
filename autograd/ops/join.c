/* join.c - tensors joined along a dimension: several (cat, stack), or one with itself (repeat,
 * repeat_interleave). dy is cut into the same parts, and the parts of one tensor are added. */
#include "../op.h"

extern const Op ag_op_contiguous; /* reshape.c: x repeated once is a copy */

/* ---- cat and stack ------------------------------------------------------------------------- */

/* As in PyTorch, a tensor of shape (0,) may be in any list and is skipped. */
static bool is_skipped(const Tensor *x) { return x->shape.ndim == 1 && x->shape.dim[0] == 0; }

/* The index of the first tensor that is not skipped, or 0. */
static int first_of(Tensor *const *list, int n) {
    for (int i = 0; i < n; i++)
        if (!is_skipped(list[i])) return i;
    return 0;
}

static bool cat_shape(const Node *n, Shape *shape) {
    const int first = first_of(n->in, n->n_in);
    *shape = n->in[first]->shape;
    int64_t size = 0;
    for (int i = 0; i < n->n_in; i++) {
        Shape s = n->in[i]->shape;
        if (is_skipped(n->in[i])) continue;
        if (s.ndim == shape->ndim) shape->dim[n->at.dim] = s.dim[n->at.dim];
        if (!shape_equal(s, *shape))
            return tensor_fail(
                "%s: tensor %d is %s and tensor %d is %s: all sizes except the size of dimension "
                "%d must be equal",
                n->op->name, first, tensor_shape_text(n->in[first]->shape), i, tensor_shape_text(s),
                n->at.dim);
        if (s.dim[n->at.dim] > INT64_MAX - size)
            return tensor_fail("%s: dimension %d has more than 2^63 - 1 elements", n->op->name,
                               n->at.dim);
        size += s.dim[n->at.dim];
    }
    shape->dim[n->at.dim] = size;
    return true;
}

OP_TEXT(cat) = {
    .call = "ag_cat(list, n, dim)",
    .shapes = "(..., N, ...), (..., M, ...) -> (..., N + M, ...)",
    .value = "the tensors joined along dim",
    .gradient = "each tensor gets its part of dy",
};

static Tensor *cat_forward(Node *n) {
    Shape shape;
    Tensor *y = cat_shape(n, &shape) ? tensor_make(shape, n->in[0]->dtype) : NULL;
    int64_t start = 0;
    if (!y) return NULL;
    for (int i = 0; i < n->n_in; i++) {
        const Tensor *x = n->in[i];
        if (is_skipped(x)) continue;
        Tensor *part = tensor_view_narrow(y, n->at.dim, start, x->shape.dim[n->at.dim]);
        if (part) tensor_copy_elements(part, x);
        tensor_release(part);
        start += x->shape.dim[n->at.dim];
    }
    return y;
}

/* dx[i] = the part of dy at x[i]'s place */
static void cat_backward(const Node *n, Tensor *dy, Tensor **dx) {
    int64_t start = 0;
    for (int i = 0; i < n->n_in; i++) {
        const bool skipped = is_skipped(n->in[i]);
        const int64_t size = skipped ? 0 : n->in[i]->shape.dim[n->at.dim];
        if (ag_needs(n, i))
            dx[i] = skipped ? tensor_make(SHAPE(0), dy->dtype)
                            : tensor_view_narrow(dy, n->at.dim, start, size);
        start += size;
    }
}

static bool check_list(const char *op, Tensor **list, int n) {
    if (n < 1 || !list)
        return tensor_fail("%s: the list is empty: there must be at least one tensor", op);
    for (int i = 0; i < n; i++)
        if (!ag_check_named(op, "a tensor of the list", list[i])) return false;
    return true;
}

DEFINE_OP(cat, .in = {{"a tensor of the list", SAME | MANY}}, .forward = cat_forward,
          .backward = cat_backward, .grad_fn = "CatBackward0");

Tensor *ag_cat(Tensor **list, int n, int dim) {
    if (!check_list("cat", list, n)) return NULL;
    const int d = tensor_shape_dim("cat", list[first_of(list, n)]->shape, dim);
    return d < 0 ? NULL : ag_apply(&ag_op_cat, n, list, &(Attributes){.dim = d});
}

/* cat along a new dimension of size 1. */
OP_TEXT(stack) = {
    .call = "ag_stack(list, n, dim)",
    .shapes = "n of (..., ...) -> (..., n, ...)",
    .value = "the tensors joined along a new dim",
    .gradient = "each tensor gets its slice of dy",
};

Tensor *ag_stack(Tensor **list, int n, int dim) {
    if (!check_list("stack", list, n)) return NULL;
    const Shape first = list[0]->shape;
    const int d = tensor_shape_new_dim("stack", "the tensors are", first, dim);
    if (d < 0) return NULL;
    Tensor **rows = tensor_cache_alloc(n * (int64_t)sizeof *rows);
    if (!rows) return NULL;
    for (int i = 0; i < n; i++) {
        if (list[i]->dtype != list[0]->dtype)
            tensor_fail(
                "stack: tensor 0 is %s and tensor %d is %s: the types must be equal; convert one "
                "with ag_to",
                tensor_dtype_name(list[0]->dtype), i, tensor_dtype_name(list[i]->dtype));
        else if (!shape_equal(list[i]->shape, first))
            tensor_fail("stack: tensor 0 is %s and tensor %d is %s: the shapes must be equal",
                        tensor_shape_text(first), i, tensor_shape_text(list[i]->shape));
        rows[i] = ag_unsqueeze(list[i], d);
    }
    Tensor *y = ag_cat(rows, n, d);
    tensor_cache_free(rows, n * (int64_t)sizeof *rows);
    return made_by("StackBackward0", y);
}

/* ---- repeat and repeat_interleave ---------------------------------------------------------- */

/* The shape of x as (outer, 1, size, 1, inner), where `times` replaces the first 1 (to repeat
 * x) or the second 1 (to repeat each slice). */
static Shape in_parts(const Node *n, int64_t times) {
    const Shape shape = n->in[0]->shape;
    const int dim = n->at.dim;
    Shape parts = SHAPE(1, 1, shape.dim[dim], 1, 1);
    for (int d = 0; d < shape.ndim; d++)
        if (d != dim) parts.dim[d < dim ? 0 : 4] *= shape.dim[d];
    parts.dim[n->at.each_slice ? 3 : 1] = times;
    return parts;
}

static Tensor *repeated_forward(Node *n) {
    Tensor *x = tensor_reshape(n->in[0], in_parts(n, 1));
    Tensor *y = x ? tensor_make(in_parts(n, n->at.times), x->dtype) : NULL;
    Shape shape = n->in[0]->shape;
    shape.dim[n->at.dim] *= n->at.times;
    if (y) tensor_copy_elements(y, x);
    tensor_release(x);
    return tensor_reshape_own(y, shape);
}

static void repeated_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Tensor *parts = tensor_reshape(dy, in_parts(n, n->at.times));
    if (parts) dx[0] = tensor_reshape_own(tensor_sum_to(parts, in_parts(n, 1)), n->in[0]->shape);
    tensor_release(parts);
}

static Tensor *repeated(const Op *op, Tensor *x, int dim, int64_t repeats, bool each_slice) {
    Shape shape = x ? x->shape : SCALAR;
    if (x && (!multiply_sizes(shape.dim[dim], repeats, &shape.dim[dim]) ||
              !tensor_shape_fits(shape, 8))) /* also without elements: the strides must fit */
        return tensor_fail("%s: %lld repeats of %s are too many", op->name, (long long)repeats,
                           tensor_shape_text(x->shape));
    return apply1(op, x, (Attributes){.dim = dim, .times = repeats, .each_slice = each_slice});
}

OP_TEXT(repeat) = {
    .call = "ag_repeat(x, repeats)",
    .shapes = "(N, M) -> (repeats[0] N, repeats[1] M)",
    .value = "x, then x again, along each dimension",
    .gradient = "dy summed over the repeats",
};

DEFINE_OP(repeat, .in = {{"x", SAME}}, .forward = repeated_forward, .backward = repeated_backward,
          .grad_fn = "RepeatBackward0");

Tensor *ag_repeat(Tensor *x, Shape repeats) {
    if (!ag_check_ready("repeat", x) || !tensor_shape_check_ndim("repeat", x->shape, repeats))
        return NULL;
    bool fits = repeats.ndim >= x->shape.ndim;
    const int lead = fits ? repeats.ndim - x->shape.ndim : 0;
    for (int d = 0; d < repeats.ndim && fits; d++) fits = repeats.dim[d] >= 0;
    if (!fits)
        return tensor_fail(
            "repeat: x is %s and the repeats are %s: there must be one, at least 0, for each "
            "dimension",
            tensor_shape_text(x->shape), tensor_shape_text(repeats));
    for (int d = 0; d < lead; d++) x = ag_unsqueeze(x, 0);
    if (tensor_shape_numel(repeats) == 1) x = apply1(&ag_op_contiguous, x, (Attributes){0});
    for (int d = 0; d < repeats.ndim; d++)
        if (repeats.dim[d] != 1) x = repeated(&ag_op_repeat, x, d, repeats.dim[d], false);
    return made_by("RepeatBackward0", x);
}

OP_TEXT(repeat_interleave) = {
    .call = "ag_repeat_interleave(x, repeats, dim)",
    .shapes = "(..., N, ...) -> (..., repeats N, ...)",
    .value = "each slice along dim, repeats times",
    .gradient = "dy summed over the repeats",
};

DEFINE_OP(repeat_interleave, .in = {{"x", SAME}}, .forward = repeated_forward,
          .backward = repeated_backward, .grad_fn = "ViewBackward0");

Tensor *ag_repeat_interleave(Tensor *x, int64_t repeats, int dim) {
    int d = ag_check_present("repeat_interleave", x)
                ? tensor_shape_dim("repeat_interleave", x->shape, dim)
                : -1;
    if (d < 0) return NULL;
    if (repeats < 0)
        return tensor_fail("repeat_interleave: %lld repeats: there must be at least 0",
                           (long long)repeats);
    return repeated(&ag_op_repeat_interleave, x, d, repeats, true);
}
