/* elementwise.c - an op and a public function for each row of tensor/kernels/elementwise.def. All
 * rows share one forward and one backward: the arithmetic is in the kernels. The elementwise ops
 * that are not rows of that table are at the end. */
#include "../op.h"

/* y = value(x) or value(a, b), with NumPy's broadcasting. A comparison, which has no backward,
 * makes bools. */
Tensor *ag_elementwise_forward(Node *n) {
    const Tensor *a = n->in[0];
    const Tensor *b = n->in[n->n_in - 1]; /* a, if it is the only input */
    Kernel *const kernel = tensor_kernels()->value[n->op->row][a->dtype];
    const DType type = n->op->backward ? a->dtype : BOOL;
    Shape shape;
    if (!tensor_check_number(n->op->name, a->dtype, n->at.s)) return NULL;
    if (!tensor_shape_broadcast(a->shape, b->shape, &shape))
        return tensor_fail(
            "%s: a is %s and b is %s: sizes, aligned at the right, must be equal or 1", n->op->name,
            tensor_shape_text(a->shape), tensor_shape_text(b->shape));
    return tensor_map_elements(kernel, shape, type, n->n_in, (const Tensor *[]){a, b}, n->at.s);
}

/* dx = vjp(x, y, dy), da = vjp_a(a, b, y, dy), db = vjp_b(a, b, y, dy); ag_node_vjp (backward.c)
 * sums over broadcast dimensions. The kernel gets dy in place of each operand that the
 * vector-Jacobian product does not read: that operand's memory may be freed, and a broadcast
 * operand would cost time. */
void ag_elementwise_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const int count = n->n_in + 2;
    const unsigned reads = n->op->reads;
    const Tensor *operand[LOOP_OPERANDS] = {NULL};
    for (int i = 0; i < n->n_in; i++) operand[i + 1] = reads & (READS_IN0 << i) ? n->in[i] : dy;
    operand[count - 1] = reads & READS_OUT ? n->out : dy;
    operand[count] = dy;
    for (int i = 0; i < n->n_in; i++) {
        const bool is_last = i + 1 == n->n_in || !ag_needs(n, i + 1);
        if (!ag_needs(n, i)) continue;
        if (reads & (DA_IS_DY << i)) {
            dx[i] = tensor_retain(dy);
            continue;
        }
        if (reads & READS_OTHER) {
            operand[i + 1] = dy;
            operand[2 - i] = n->in[1 - i];
        }
        dx[i] = is_last ? ag_buffer_like(dy) : tensor_make(dy->shape, dy->dtype);
        operand[0] = dx[i];
        Kernel *const kernel = tensor_kernels()->vjp[n->op->row][i][dy->dtype];
        if (dx[i]) tensor_loop_elements(kernel, count + 1, operand, n->at.s);
    }
}

/* The operands that the gradient of a row reads, in the letters of elementwise.def. */
enum { NOTHING, X = READS_IN0, A = READS_IN0, B = READS_IN1, Y = READS_OUT, OTHER = READS_OTHER };
enum { DX_IS_DY = DA_IS_DY };

#define TEXT(op, arguments, operands, formula, vjp, paper)                                         \
    OP_TEXT(op) = {.call = "ag_" #op "(" arguments ")",                                            \
                   .shapes = operands,                                                             \
                   .value = formula,                                                               \
                   .gradient = vjp,                                                                \
                   .source = paper};
#define ONE "(...) -> same"
#define TWO "both broadcast together"

#define ROW(op, torch, mask, lo, hi, ...)                                                          \
    DEFINE_OP(op, .grad_fn = torch, .reads = mask, .row = ELEMENTWISE_##op, .low = lo, .high = hi, \
              .forward = ag_elementwise_forward, .backward = ag_elementwise_backward,              \
              __VA_ARGS__);

#define UNARY(op, formula, gradient, source, types, torch, value, vjp, mask, lo, hi)               \
    TEXT(op, "x", ONE, formula, gradient, source)                                                  \
    ROW(op, torch, mask, lo, hi, .in = {{"x", types}}, .zero = "flat")                             \
    Tensor *ag_##op(Tensor *x) { return apply1(&ag_op_##op, x, (Attributes){0}); }
#define UNARY_SCALAR(op, formula, gradient, source, types, torch, value, vjp, mask, lo, hi)        \
    TEXT(op, "x, s", ONE, formula, gradient, source)                                               \
    ROW(op, torch, mask, lo, hi, .in = {{"x", types}}, .zero = "flat", .shown = SHOWN(s))          \
    Tensor *ag_##op(Tensor *x, double s) { return apply1(&ag_op_##op, x, (Attributes){.s = s}); }
#define BINARY(op, formula, gradient, source, types, torch, value, da, db, mask, lo, hi)           \
    TEXT(op, "a, b", TWO, formula, gradient, source)                                               \
    ROW(op, torch, mask, lo, hi, .in = {{"a", types}, {"b", types}})                               \
    Tensor *ag_##op(Tensor *a, Tensor *b) { return apply2(&ag_op_##op, a, b, (Attributes){0}); }
#define COMPARE(op, formula, value)                                                                \
    TEXT(op, "a, b", TWO, formula, "none: the result is bool", "")                                 \
    DEFINE_OP(op, .row = ELEMENTWISE_##op, .low = -2, .high = 2,                                   \
              .forward = ag_elementwise_forward, .in = {{"a", SAME}, {"b", SAME}});                \
    Tensor *ag_##op(Tensor *a, Tensor *b) { return apply2(&ag_op_##op, a, b, (Attributes){0}); }
#include "../../tensor/kernels/elementwise.def"

/* ---- to ------------------------------------------------------------------------------------- */

OP_TEXT(to) = {
    .call = "ag_to(x, dtype)",
    .shapes = "(...) -> same",
    .value = "x converted to float32, float64, int64 or bool; x itself if it has the type",
    .gradient = "dy in x's type; none for integers and bools",
};

static Tensor *to_forward(Node *n) { return tensor_convert(n->in[0], n->at.dtype); }

static void to_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_convert(dy, n->in[0]->dtype);
}

DEFINE_OP(to, .in = {{"x", SAME}}, .forward = to_forward, .backward = to_backward, .converts = true,
          .grad_fn = "ToCopyBackward0");

Tensor *ag_to(Tensor *x, DType dtype) {
    if (!ag_check_present("to", x)) return NULL;
    if ((unsigned)dtype > BOOL) return tensor_fail("to: %d is not a type", (int)dtype);
    return x->dtype == dtype ? x : apply1(&ag_op_to, x, (Attributes){.dtype = dtype});
}

/* ---- logical_not ---------------------------------------------------------------------------- */

OP_TEXT(logical_not) = {
    .call = "ag_logical_not(x)",
    .shapes = "(...) -> same",
    .value = "not x",
    .gradient = "none: the result is bool",
};

static Tensor *logical_not_forward(Node *n) {
    const Tensor *x = n->in[0];
    Number memory;
    const Tensor zero = tensor_scalar(x->dtype, 0, &memory);
    const Tensor *const operand[] = {x, &zero};
    Kernel *const eq = tensor_kernels()->value[ELEMENTWISE_eq][x->dtype];
    return tensor_map_elements(eq, x->shape, BOOL, 2, operand, 0);
}

DEFINE_OP(logical_not, .in = {{"x", SAME}}, .forward = logical_not_forward);

Tensor *ag_logical_not(Tensor *x) { return apply1(&ag_op_logical_not, x, (Attributes){0}); }
