/* elementwise.c - what the rows of tensor/kernels/elementwise.def become: an op and a public
 * function each. One forward and one backward serve them all, since the kernels hold the
 * arithmetic. */
#include "../op.h"

/* y = value(x) or value(a, b), with NumPy's broadcasting. */
Tensor *ag_elementwise_forward(Node *n) {
    const Tensor *a = n->in[0], *b = n->in[n->n_in - 1];
    const LoopKernel kernel = kernels()->value[n->op->row][a->dtype];
    if (!number_fits(n->op->name, a->dtype, n->at.number)) return NULL;
    if (n->n_in == 1) return map1(kernel, a, n->at.number);
    Tensor *y = map2(kernel, a, b, n->at.number);
    if (y || tensor_pending()) return y;
    return tensor_fail("%s: a is %s and b is %s: sizes, aligned at the right, must be equal or 1",
                       n->op->name, tensor_shape_text(a->shape), tensor_shape_text(b->shape));
}

/* dx = vjp(x, y, dy), da = vjp_a(a, b, y, dy), db = vjp_b(a, b, y, dy); the engine undoes
 * broadcasting. An operand that the row does not read is replaced by dy, which is always there. */
void ag_elementwise_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    const int last = n->n_in + 2;
    const Tensor *operand[LOOP_OPERANDS];
    for (int i = 0; i < n->n_in; i++)
        operand[1 + i] = n->op->reads & (READS_IN0 << i) ? n->in[i] : dy;
    operand[last - 1] = n->op->reads & READS_OUT ? n->out : dy;
    operand[last] = dy;
    for (int i = 0; i < n->n_in; i++) {
        if (!ag_needs(n, i)) continue;
        dx[i] = tensor_make(dy->shape, dy->dtype);
        operand[0] = dx[i];
        const LoopKernel kernel = kernels()->vjp[n->op->row][i][dy->dtype];
        if (dx[i]) loop_elements(kernel, last + 1, operand, n->at.number);
    }
}

/* A bool for each pair of elements. */
Tensor *ag_compare_forward(Node *n) {
    const Tensor *a = n->in[0], *b = n->in[1];
    Shape shape;
    if (!shape_broadcast(a->shape, b->shape, &shape))
        return tensor_fail(
            "%s: a is %s and b is %s: sizes, aligned at the right, must be equal or 1", n->op->name,
            tensor_shape_text(a->shape), tensor_shape_text(b->shape));
    Tensor *y = tensor_make(shape, BOOL);
    const LoopKernel kernel = kernels()->value[n->op->row][a->dtype];
    if (y) loop_elements(kernel, 3, (const Tensor *[]){y, a, b}, 0);
    return y;
}

#define UNARY(name, ...)                                                                           \
    Tensor *ag_##name(Tensor *x) { return apply1(&op_##name, x, (Attributes){0}); }
#define UNARY_SCALAR(name, ...)                                                                    \
    Tensor *ag_##name(Tensor *x, double s) {                                                       \
        return apply1(&op_##name, x, (Attributes){.number = s});                                   \
    }
#define BINARY(name, ...)                                                                          \
    Tensor *ag_##name(Tensor *a, Tensor *b) { return apply2(&op_##name, a, b, (Attributes){0}); }
#define COMPARE BINARY
#include "../../tensor/kernels/elementwise.def"

Tensor *ag_logical_not_forward(Node *n) {
    Tensor *y = tensor_make(n->in[0]->shape, BOOL);
    if (y)
        loop_elements(kernels()->logical_not[n->in[0]->dtype], 2, (const Tensor *[]){y, n->in[0]},
                      0);
    return y;
}

Tensor *ag_logical_not(Tensor *x) { return apply1(&op_logical_not, x, (Attributes){0}); }
