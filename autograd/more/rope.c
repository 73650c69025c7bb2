/* rope.c - rotary positions: each pair of the last dimension turns by an angle that grows with the
 * position. The product of a query and a key that were turned depends on the distance of their
 * positions alone. Su et al. 2021 */
#include "../../tensor/more/more_kernels.h"
#include "../op.h"

OP_TEXT(rope) = {
    .call = "ag_rope(x, positions, base, pairs)",
    .shapes = "(..., N, D), (N) or (B, N) -> (..., N, D), D even",
    .value =
        "a cos t - b sin t, a sin t + b cos t for pair i, (a, b), t = position base^(-2 i / D)",
    .gradient = "dy, turned back: da cos t + db sin t, db cos t - da sin t",
    .source = "Su et al. 2021",
};

/* The cosine and the sine of pair i at [..., 2 i] and [..., 2 i + 1], in double: (N, D), or (B, 1,
 * N, D) for positions (B, N). */
static Tensor *turns(const Tensor *x, const Tensor *positions, const Tensor *speeds) {
    const int last = x->shape.ndim - 1;
    const int64_t D = x->shape.dim[last], n = tensor_numel(positions);
    Shape s = x->shape;
    for (int d = 0; d < last - 1; d++)
        if (d > 0 || positions->shape.ndim == 1) s.dim[d] = 1;
    Tensor *table = tensor_make(s, F64);
    Tensor *dense = table ? tensor_contiguous(positions) : NULL;
    const int64_t *position = dense ? dense->data : NULL;
    for (int64_t i = 0; dense && i < D / 2; i++) {
        const double speed = tensor_get(speeds, i);
        for (int64_t p = 0; p < n; p++) {
            double *turn = (double *)table->data + p * D + 2 * i;
            turn[0] = cos((double)position[p] * speed);
            turn[1] = sin((double)position[p] * speed);
        }
    }
    tensor_release(dense);
    return table;
}

/* way: 1 turns by t, -1 back. y may be x. */
static void turn(const Node *n, const Tensor *y, const Tensor *x, double way) {
    const MoreKernels *kernels = tensor_more_kernels();
    Kernel *const *kernel = n->at.halves ? kernels->rope_halves : kernels->rope_adjacent;
    const Tensor *const operand[] = {y, x, n->saved[0]};
    if (!tensor_pending()) tensor_loop_rows(kernel[x->dtype], x->shape.ndim - 1, 3, operand, way);
}

static Tensor *rope_forward(Node *n) {
    const Tensor *x = n->in[0];
    const int64_t D = x->shape.dim[x->shape.ndim - 1];
    Tensor *y = tensor_make(x->shape, x->dtype);
    Tensor *speeds = n->in[2] ? tensor_retain(n->in[2]) : tensor_rope_linear(D, n->at.base, 1);
    n->saved[0] = speeds ? turns(x, n->in[1], speeds) : NULL;
    tensor_release(speeds);
    turn(n, y, x, 1);
    return y;
}

static void rope_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = ag_buffer_like(dy);
    turn(n, dx[0], dy, -1);
}

DEFINE_OP(rope, .in = {{"x", FLOAT}, {"positions", INT64}, {"speeds", ANY | OPTIONAL}},
          .forward = rope_forward, .backward = rope_backward, .shown = SHOWN(base),
          .grad_fn = "AddBackward0");

static bool check_shapes(const Tensor *x, const Tensor *positions) {
    const int last = x->shape.ndim - 1;
    if (last < 1)
        return tensor_fail("rope: x is %s: it must be (..., N, D)", tensor_shape_text(x->shape));
    if (x->shape.dim[last] % 2)
        return tensor_fail("rope: x is %s: its last size %lld must be even, because pairs turn",
                           tensor_shape_text(x->shape), (long long)x->shape.dim[last]);
    const Shape one = SHAPE(x->shape.dim[last - 1]), each = SHAPE(x->shape.dim[0], one.dim[0]);
    if (shape_equal(positions->shape, one) || (last > 1 && shape_equal(positions->shape, each)))
        return true;
    return tensor_fail("rope: x is %s and positions is %s: it must be (N)%s, here %s%s%s",
                       tensor_shape_text(x->shape), tensor_shape_text(positions->shape),
                       last > 1 ? " or (B, N)" : "", tensor_shape_text(one), last > 1 ? " or " : "",
                       last > 1 ? tensor_shape_text(each) : "");
}

static bool check_speeds(const Tensor *x, const Tensor *speeds) {
    const Shape each = SHAPE(x->shape.dim[x->shape.ndim - 1] / 2);
    if (shape_equal(speeds->shape, each) && dtype_is_float(speeds->dtype) && !speeds->requires_grad)
        return true;
    return tensor_fail("rope: x is %s and speeds is %s %s: it must be float32 or float64 (D / 2), "
                       "here %s, without a gradient",
                       tensor_shape_text(x->shape), tensor_dtype_name(speeds->dtype),
                       tensor_shape_text(speeds->shape), tensor_shape_text(each));
}

/* speeds may be NULL, for those of the base */
static Tensor *apply(Tensor *x, Tensor *positions, Tensor *speeds, double base, RopePairs pairs) {
    if (!ag_check_named("rope", "x", x) || !ag_check_named("rope", "positions", positions) ||
        !check_shapes(x, positions) || (speeds && !check_speeds(x, speeds)))
        return NULL;
    if (!speeds && !(base > 0 && base < (double)INFINITY))
        return tensor_fail("rope: base is %g: it must be positive and finite", base);
    if (pairs != ROPE_ADJACENT && pairs != ROPE_HALVES)
        return tensor_fail("rope: pairs is %d: it must be ROPE_ADJACENT or ROPE_HALVES",
                           (int)pairs);
    const Attributes at = {.base = base, .halves = pairs == ROPE_HALVES};
    return apply3(&ag_op_rope, x, positions, speeds, at);
}

Tensor *ag_rope(Tensor *x, Tensor *positions, double base, RopePairs pairs) {
    return apply(x, positions, NULL, base, pairs);
}

OP_TEXT(rope_speeds) = {
    .call = "ag_rope_speeds(x, positions, speeds, pairs)",
    .shapes = "as ag_rope, and (D / 2)",
    .value = "as ag_rope, with t = position speeds[i]; applies the op rope",
    .gradient = "as ag_rope",
};

Tensor *ag_rope_speeds(Tensor *x, Tensor *positions, Tensor *speeds, RopePairs pairs) {
    return ag_check_named("rope", "speeds", speeds) ? apply(x, positions, speeds, 0, pairs) : NULL;
}
