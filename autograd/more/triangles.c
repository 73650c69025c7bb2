/* triangles.c - tril and triu: the elements below or above a diagonal. The others become 0, also
 * where they are NaN. */
#include "../../tensor/more/more_kernels.h"
#include "../op.h"

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
        tensor_loop_rows(tensor_more_kernels()->cut[x->dtype], x->shape.ndim - 1, 3,
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
