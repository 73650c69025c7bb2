/* pad.c - a border along one dimension, and sequences of different lengths as one tensor: composed
 * of cat and of stack. */
#include "../op.h"

OP_TEXT(pad) = {
    .call = "ag_pad(x, dim, before, after, value)",
    .shapes = "(..., N, ...) -> (..., before + N + after, ...)",
    .value = "x along dim, with the value before and after it",
    .gradient = "the part of dy at x's place",
};

Tensor *ag_pad(Tensor *x, int dim, int64_t before, int64_t after, double value) {
    const int d = ag_check_ready("pad", x) ? tensor_shape_dim("pad", x->shape, dim) : -1;
    if (d < 0) return NULL;
    if (before < 0 || after < 0)
        return tensor_fail("pad: %lld before and %lld after: they must be at least 0",
                           (long long)before, (long long)after);
    if (!tensor_check_value("pad", x->dtype, value)) return NULL;
    if (before == 0 && after == 0) return x;
    Shape first = x->shape, last = x->shape;
    first.dim[d] = before;
    last.dim[d] = after;
    Tensor *list[] = {tape_own(tensor_full_of(first, value, x->dtype)), x,
                      tape_own(tensor_full_of(last, value, x->dtype))};
    return made_by("ConstantPadNdBackward0", ag_cat(list, 3, d));
}

/* ---- pad_sequence --------------------------------------------------------------------------- */

OP_TEXT(pad_sequence) = {
    .call = "ag_pad_sequence(list, n, value)",
    .shapes = "n of (L_i, ...) -> (n, max L_i, ...)",
    .value = "sequence i at index i, with the value after its end",
    .gradient = "each sequence gets its part of dy",
};

/* The first dimension is the length, and may differ; y has one dimension more. */
static bool check_sequence(Tensor **list, int i) {
    char name[32];
    tensor_snprintf(name, sizeof name, "sequence %d", i);
    if (!tensor_check_argument("pad_sequence", name, list[i])) return false;
    if (list[i]->dtype != list[0]->dtype)
        return tensor_fail("pad_sequence: sequence 0 is %s and sequence %d is %s: the types must "
                           "be equal; convert one with ag_to",
                           tensor_dtype_name(list[0]->dtype), i, tensor_dtype_name(list[i]->dtype));
    const Shape shape = list[i]->shape;
    Shape same = list[0]->shape;
    if (shape.ndim == 0 || shape.ndim == TENSOR_MAX_DIMS)
        return tensor_fail("pad_sequence: sequence %d is %s: it must have from 1 to %d dimensions",
                           i, tensor_shape_text(shape), TENSOR_MAX_DIMS - 1);
    same.dim[0] = shape.dim[0];
    if (!shape_equal(shape, same))
        return tensor_fail("pad_sequence: sequence 0 is %s and sequence %d is %s: all sizes but "
                           "the first must be equal",
                           tensor_shape_text(list[0]->shape), i, tensor_shape_text(shape));
    return true;
}

/* The longest length; -1 on error. */
static int64_t longest(Tensor **list, int n) {
    int64_t length = 0;
    for (int i = 0; i < n; i++) {
        if (!check_sequence(list, i)) return -1;
        if (list[i]->shape.dim[0] > length) length = list[i]->shape.dim[0];
    }
    return length;
}

Tensor *ag_pad_sequence(Tensor **list, int n, double value) {
    if (tensor_pending()) return NULL;
    if (n < 1 || !list)
        return tensor_fail("pad_sequence: the list is empty: there must be at least one sequence");
    const int64_t length = longest(list, n), bytes = n * (int64_t)sizeof(Tensor *);
    if (length < 0 || !tensor_check_value("pad_sequence", list[0]->dtype, value) ||
        !ag_check_ready("pad_sequence", list[0]))
        return NULL;
    Tensor **rows = tensor_cache_alloc(bytes);
    if (!rows) return NULL;
    for (int i = 0; i < n; i++)
        rows[i] = ag_pad(list[i], 0, 0, length - list[i]->shape.dim[0], value);
    Tensor *y = ag_stack(rows, n, 0);
    tensor_cache_free(rows, bytes);
    return y;
}
