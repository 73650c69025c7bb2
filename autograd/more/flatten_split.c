/* flatten_split.c - dimensions joined to one, and a dimension cut into slices: composed of reshape
 * and of slice. */
#include "../op.h"

OP_TEXT(flatten) = {
    .call = "ag_flatten(x, start, end)",
    .shapes = "(A, B, C, D) -> (A, B C, D) for start 1, end 2",
    .value = "dimensions start to end as one dimension; a view if possible, else a copy",
    .gradient = "dy in x's shape",
};

Tensor *ag_flatten(Tensor *x, int start, int end) {
    if (!ag_check_present("flatten", x)) return NULL;
    const int first = tensor_shape_dim_or_scalar("flatten", x->shape, start);
    const int last = tensor_shape_dim_or_scalar("flatten", x->shape, end), ndim = x->shape.ndim;
    if (first < 0 || last < 0) return NULL;
    if (first > last)
        return tensor_fail("flatten: x is %s: dimension %d does not come before dimension %d",
                           tensor_shape_text(x->shape), start, end);
    if (first == last && ndim > 0) return x;
    if (!ag_check_ready("flatten", x)) return NULL;
    Shape shape = x->shape;
    shape.ndim = ndim - (last - first);
    if (ndim == 0) shape = SHAPE(1);
    for (int d = first + 1; d <= last; d++) shape.dim[first] *= x->shape.dim[d];
    for (int d = last + 1; d < ndim; d++) shape.dim[d - (last - first)] = x->shape.dim[d];
    return ag_reshape(x, shape);
}

/* ---- split ---------------------------------------------------------------------------------- */

/* list[i] = x[i size : (i + 1) size] along dim. If one slice fails, all slices become NULL. */
static bool fill_list(Tensor *x, int64_t size, int dim, Tensor **list, int n) {
    const int64_t whole = x->shape.dim[dim];
    for (int i = 0; i < n; i++) {
        const int64_t start = i * size;
        list[i] = ag_slice(x, dim, start, start + MIN(size, whole - start));
        made_by("SplitBackward0", list[i]);
    }
    if (!tensor_pending()) return true;
    for (int i = 0; i < n; i++) list[i] = NULL;
    return false;
}

OP_TEXT(split) = {
    .call = "ag_split(x, size, dim, list, n)",
    .shapes = "(..., N, ...) -> n of (..., size, ...)",
    .value = "x cut along dim; the last slice is smaller if size does not divide N",
    .gradient = "dy of each slice in that slice of x, 0 elsewhere",
};

bool ag_split(Tensor *x, int64_t size, int dim, Tensor **list, int n) {
    if (!tensor_check_given("split", "list", list)) return false;
    for (int i = 0; i < n; i++) list[i] = NULL;
    const int d = ag_check_ready("split", x) ? tensor_shape_dim("split", x->shape, dim) : -1;
    if (d < 0) return false;
    const int64_t whole = x->shape.dim[d];
    if (size < 0 || (size == 0 && whole > 0))
        return tensor_fail("split: the size is %lld: it must be at least 1", (long long)size);
    const int64_t slices = whole > 0 ? (whole - 1) / size + 1 : 1;
    if (slices == n) return fill_list(x, size, d, list, n);
    return tensor_fail(
        "split: x is %s: dimension %d has %lld slice%s of %lld: n is %d and must be %lld",
        tensor_shape_text(x->shape), dim, (long long)slices, slices == 1 ? "" : "s",
        (long long)size, n, (long long)slices);
}
