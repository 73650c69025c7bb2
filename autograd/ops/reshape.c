/* reshape.c - the same elements in another shape or order, and a part of them: views, which copy
 * only where they must. The gradient of a view is the inverse view of dy; that of a part is dy
 * in its place, and 0 elsewhere. */
#include "../op.h"

/* ---- reshape, view, contiguous ------------------------------------------------------------- */

/* Applies reshape or view. One size may be -1: then it is the number of elements divided by the
 * product of the others. (The product counts a size of 0 as 1: strides must fit an int64_t.) */
static Tensor *apply_reshape(const Op *op, Tensor *x, Shape shape) {
    if (!ag_check_present(op->name, x) || !tensor_shape_check_ndim(op->name, x->shape, shape))
        return NULL;
    const int64_t numel = tensor_numel(x);
    Attributes at = {.shape = shape};
    int64_t product = 1;
    int unknown = -1;
    bool fits = true, empty = false;
    for (int d = 0; fits && d < shape.ndim; d++) {
        const int64_t size = shape.dim[d];
        if (size == -1 && unknown < 0) unknown = d;
        else fits = size >= 0 && multiply_sizes(product, size ? size : 1, &product);
        empty = empty || size == 0;
    }
    if (fits && unknown >= 0) {
        fits = !empty && numel % product == 0; /* if another size is 0, every size would fit, or
                                                * none */
        at.shape.dim[unknown] = numel / product;
    } else fits = fits && numel == (empty ? 0 : product);
    if (fits) return apply1(op, x, at);
    return tensor_fail("%s: x is %s and the shape is %s: the number of elements must stay the "
                       "same, and one size may be -1",
                       op->name, tensor_shape_text(x->shape), tensor_shape_text(shape));
}

OP_TEXT(reshape) = {
    .call = "ag_reshape(x, shape)",
    .shapes = "(...) -> shape",
    .value = "the same elements, row-major, in another shape; a view if possible, else a copy",
    .gradient = "dy in x's shape",
};

static Tensor *reshape_forward(Node *n) {
    Tensor *y = tensor_reshape(n->in[0], n->at.shape);
    /* PyTorch's names for a view of a new copy and for a view of a strided tensor. */
    if (y && y->storage != n->in[0]->storage) y->grad_fn = "UnsafeViewBackward0";
    else if (y && !tensor_is_contiguous(n->in[0])) y->grad_fn = "ReshapeAliasBackward0";
    return y;
}

/* The backward of view, contiguous, unsqueeze and squeeze too. */
static void reshape_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_reshape(dy, n->in[0]->shape);
}

DEFINE_OP(reshape, .in = {{"x", SAME}}, .forward = reshape_forward, .backward = reshape_backward,
          .grad_fn = "ViewBackward0");

Tensor *ag_reshape(Tensor *x, Shape shape) { return apply_reshape(&ag_op_reshape, x, shape); }

OP_TEXT(view) = {
    .call = "ag_view(x, shape)",
    .shapes = "(...) -> shape",
    .value = "reshape that never copies",
    .gradient = "dy in x's shape",
};

static Tensor *view_forward(Node *n) {
    Tensor *y = tensor_view_reshape(n->in[0], n->at.shape);
    if (y || tensor_pending()) return y;
    return tensor_fail(
        "view: x is %s with strides %s: %s cannot be a view of the same bytes; use ag_reshape",
        tensor_shape_text(n->in[0]->shape), tensor_stride_text(n->in[0]),
        tensor_shape_text(n->at.shape));
}

DEFINE_OP(view, .in = {{"x", SAME}}, .forward = view_forward, .backward = reshape_backward,
          .grad_fn = "ViewBackward0");

Tensor *ag_view(Tensor *x, Shape shape) { return apply_reshape(&ag_op_view, x, shape); }

OP_TEXT(contiguous) = {
    .call = "ag_contiguous(x)",
    .shapes = "(...) -> same",
    .value = "the same elements, row-major in memory",
    .gradient = "dy",
};

static Tensor *contiguous_forward(Node *n) { return tensor_clone(n->in[0]); }

DEFINE_OP(contiguous, .in = {{"x", SAME}}, .forward = contiguous_forward,
          .backward = reshape_backward, .grad_fn = "CloneBackward0");

Tensor *ag_contiguous(Tensor *x) {
    if (!ag_check_present("contiguous", x)) return NULL;
    return tensor_is_contiguous(x) ? x : apply1(&ag_op_contiguous, x, (Attributes){0});
}

OP_TEXT(detach) = {
    .call = "ag_detach(x)",
    .shapes = "(...) -> same",
    .value = "x without its history",
    .gradient = "none",
};

static Tensor *detach_forward(Node *n) { return tensor_view_expand(n->in[0], n->in[0]->shape); }

DEFINE_OP(detach, .in = {{"x", SAME}}, .forward = detach_forward);

Tensor *ag_detach(Tensor *x) { return apply1(&ag_op_detach, x, (Attributes){0}); }

/* ---- permute and transpose ----------------------------------------------------------------- */

OP_TEXT(permute) = {
    .call = "ag_permute(x, axes)",
    .shapes = "(A, B, C) -> (B, C, A) for axes 1, 2, 0",
    .value = "dimension i of the result is dimension axes[i] of x",
    .gradient = "dy with the axes permuted back",
};

static Tensor *permute_forward(Node *n) { return tensor_view_permute(n->in[0], n->at.axes.axis); }

static void permute_backward(const Node *n, Tensor *dy, Tensor **dx) {
    int back[TENSOR_MAX_DIMS] = {0};
    for (int d = 0; d < n->at.axes.n; d++) back[n->at.axes.axis[d]] = d;
    dx[0] = tensor_view_permute(dy, back);
}

DEFINE_OP(permute, .in = {{"x", SAME}}, .forward = permute_forward, .backward = permute_backward,
          .grad_fn = "PermuteBackward0");

Tensor *ag_permute(Tensor *x, Axes axes) {
    if (!ag_check_present("permute", x)) return NULL;
    bool seen[TENSOR_MAX_DIMS] = {false}, fits = axes.n == x->shape.ndim;
    Shape asked = {axes.n, {0}};
    for (int d = 0; d < axes.n && d < TENSOR_MAX_DIMS; d++) asked.dim[d] = axes.axis[d];
    for (int d = 0; d < axes.n && fits; d++) {
        if (axes.axis[d] < 0) axes.axis[d] += axes.n;
        fits = axes.axis[d] >= 0 && axes.axis[d] < axes.n && !seen[axes.axis[d]];
        if (fits) seen[axes.axis[d]] = true;
    }
    if (fits) return apply1(&ag_op_permute, x, (Attributes){.axes = axes});
    return tensor_fail(
        "permute: x is %s and the axes are %s: each of its dimensions must be named once",
        tensor_shape_text(x->shape), tensor_shape_text(asked));
}

OP_TEXT(transpose) = {
    .call = "ag_transpose(x, dim0, dim1)",
    .shapes = "(..., N, ..., M, ...) -> (..., M, ..., N, ...)",
    .value = "two dimensions swapped",
    .gradient = "dy with the two dimensions swapped back",
};

static Tensor *transpose_forward(Node *n) {
    return tensor_view_transpose(n->in[0], n->at.dim0, n->at.dim1);
}

static void transpose_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_view_transpose(dy, n->at.dim0, n->at.dim1);
}

DEFINE_OP(transpose, .in = {{"x", SAME}}, .forward = transpose_forward,
          .backward = transpose_backward, .grad_fn = "TransposeBackward0");

Tensor *ag_transpose(Tensor *x, int dim0, int dim1) {
    if (!ag_check_present("transpose", x)) return NULL;
    const int d0 = tensor_shape_dim_or_scalar("transpose", x->shape, dim0);
    const int d1 = tensor_shape_dim_or_scalar("transpose", x->shape, dim1);
    if (d0 < 0 || d1 < 0) return NULL;
    return apply1(&ag_op_transpose, x, (Attributes){.dim0 = d0, .dim1 = d1});
}

/* ---- unsqueeze, squeeze, expand ------------------------------------------------------------ */

OP_TEXT(unsqueeze) = {
    .call = "ag_unsqueeze(x, dim)",
    .shapes = "(A, B) -> (A, 1, B) for dim 1",
    .value = "a new dimension of size 1",
    .gradient = "dy without the new dimension",
};

DEFINE_OP(unsqueeze, .in = {{"x", SAME}}, .forward = view_forward, .backward = reshape_backward,
          .grad_fn = "UnsqueezeBackward0");

Tensor *ag_unsqueeze(Tensor *x, int dim) {
    const int d = ag_check_present("unsqueeze", x)
                      ? tensor_shape_new_dim("unsqueeze", "x is", x->shape, dim)
                      : -1;
    if (d < 0) return NULL;
    Shape shape = x->shape;
    shape.ndim++;
    for (int e = shape.ndim - 1; e > d; e--) shape.dim[e] = shape.dim[e - 1];
    shape.dim[d] = 1;
    return apply1(&ag_op_unsqueeze, x, (Attributes){.shape = shape});
}

OP_TEXT(squeeze) = {
    .call = "ag_squeeze(x, dim)",
    .shapes = "(A, 1, B) -> (A, B) for dim 1",
    .value = "x without dim if dim has size 1, else x",
    .gradient = "dy with the dropped dimension",
};

DEFINE_OP(squeeze, .in = {{"x", SAME}}, .forward = view_forward, .backward = reshape_backward,
          .grad_fn = "SqueezeBackward1");

Tensor *ag_squeeze(Tensor *x, int dim) {
    int d =
        ag_check_present("squeeze", x) ? tensor_shape_dim_or_scalar("squeeze", x->shape, dim) : -1;
    if (d < 0) return NULL;
    bool drops = x->shape.ndim > 0 && x->shape.dim[d] == 1;
    Shape shape = drops ? tensor_shape_without(x->shape, d) : x->shape;
    return apply1(&ag_op_squeeze, x, (Attributes){.shape = shape});
}

OP_TEXT(expand) = {
    .call = "ag_expand(x, shape)",
    .shapes = "(N, 1) -> (A, N, B)",
    .value = "sizes of 1 repeated, without a copy",
    .gradient = "dy summed over the repeats",
};

static Tensor *expand_forward(Node *n) { return tensor_view_expand(n->in[0], n->at.shape); }

/* ag_node_vjp (backward.c) sums dy over the repeats. */
static void expand_backward(const Node *n, Tensor *dy, Tensor **dx) {
    (void)n;
    dx[0] = tensor_retain(dy);
}

DEFINE_OP(expand, .in = {{"x", SAME}}, .forward = expand_forward, .backward = expand_backward,
          .grad_fn = "ExpandBackward0");

Tensor *ag_expand(Tensor *x, Shape shape) {
    if (!ag_check_present("expand", x) || !tensor_shape_check_ndim("expand", x->shape, shape))
        return NULL;
    const Shape asked = shape;
    const int lead = shape.ndim - x->shape.ndim;
    const char *rule = lead < 0 ? "no dimension can be left out" : NULL;
    for (int d = 0; d < shape.ndim && !rule; d++) {
        const int64_t old = d < lead ? 1 : x->shape.dim[d - lead];
        if (shape.dim[d] == -1 && d >= lead) shape.dim[d] = old;
        if (shape.dim[d] == -1) rule = "-1 keeps a size of x, and a new dimension has none";
        else if (shape.dim[d] < 0 || (old != 1 && old != shape.dim[d]))
            rule = "only sizes of 1 can change, and new dimensions come first";
    }
    if (!rule) return apply1(&ag_op_expand, x, (Attributes){.shape = shape});
    return tensor_fail("expand: x is %s and the shape is %s: %s", tensor_shape_text(x->shape),
                       tensor_shape_text(asked), rule);
}

/* ---- slice and select ---------------------------------------------------------------------- */

/* Python's rule: a negative index counts from the end; an index beyond an end is clipped to it. */
static int64_t clip_index(int64_t i, int64_t size) {
    if (i < 0) i += size;
    if (i < 0) return 0;
    return MIN(i, size);
}

OP_TEXT(slice) = {
    .call = "ag_slice(x, dim, start, end)",
    .shapes = "(..., N, ...) -> (..., end - start, ...)",
    .value = "x[start:end] along dim",
    .gradient = "dy in the slice, 0 elsewhere",
};

static Tensor *slice_forward(Node *n) {
    return tensor_view_narrow(n->in[0], n->at.dim, n->at.start, n->at.size);
}

static void slice_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = ag_gradient_buffer(n, 0);
    Tensor *part = dx[0] ? tensor_view_narrow(dx[0], n->at.dim, n->at.start, n->at.size) : NULL;
    if (part) tensor_add_elements(part, dy);
    tensor_release(part);
}

DEFINE_OP(slice, .in = {{"x", SAME}}, .forward = slice_forward, .backward = slice_backward,
          .grad_fn = "SliceBackward0");

Tensor *ag_slice(Tensor *x, int dim, int64_t start, int64_t end) {
    int d = ag_check_present("slice", x) ? tensor_shape_dim("slice", x->shape, dim) : -1;
    if (d < 0) return NULL;
    const int64_t first = clip_index(start, x->shape.dim[d]);
    const int64_t size = clip_index(end, x->shape.dim[d]) - first;
    const Attributes at = {.dim = d, .start = first, .size = size > 0 ? size : 0};
    return apply1(&ag_op_slice, x, at);
}

OP_TEXT(select) = {
    .call = "ag_select(x, dim, index)",
    .shapes = "(..., N, ...) -> (..., ...)",
    .value = "x[index] along dim, which is dropped",
    .gradient = "dy at index, 0 elsewhere",
};

Tensor *ag_select(Tensor *x, int dim, int64_t index) {
    int d = ag_check_ready("select", x) ? tensor_shape_dim("select", x->shape, dim) : -1;
    if (d < 0) return NULL;
    int64_t i = index < 0 ? index + x->shape.dim[d] : index;
    if (i < 0 || i >= x->shape.dim[d])
        return tensor_fail("select: x is %s: there is no index %lld in dimension %d",
                           tensor_shape_text(x->shape), (long long)index, dim);
    return made_by("SelectBackward0", ag_squeeze(ag_slice(x, d, i, i + 1), d));
}
