/* inplace.c - writes in place: copies, sums and products, and the steps of an optimizer. Each looks
 * at its arguments before it writes anything, and bumps the version of what it has written. */
#include "../internal.h"

#include <string.h>

static bool can_write(const char *op, const Tensor *x) {
    if (tensor_pending() || !readable(op, x)) return false;
    return !has_repeats(x) ||
           tensor_fail("%s: x is %s and expanded: several elements share one place", op,
                       tensor_shape_text(x->shape));
}

/* y to be read while x is written: a copy when a write to x could change it before. Without a copy
 * nothing is allocated, so that an optimizer's last half, which only adds, cannot fail. */
static Tensor *apart(const char *op, const Tensor *x, const Tensor *y) {
    if (!readable(op, y)) return NULL;
    if (x->dtype != y->dtype)
        return tensor_fail("%s: the types %s and %s must be equal", op, tensor_dtype_name(x->dtype),
                           tensor_dtype_name(y->dtype));
    Shape both;
    if (!shape_broadcast(x->shape, y->shape, &both) || !shape_equal(both, x->shape))
        return tensor_fail("%s: %s cannot be broadcast to %s", op, tensor_shape_text(y->shape),
                           tensor_shape_text(x->shape));
    bool same_view = x->data == y->data && shape_equal(x->shape, y->shape) &&
                     memcmp(x->stride, y->stride, sizeof x->stride) == 0;
    bool may_change = x->storage == y->storage && !same_view;
    return may_change ? tensor_clone(y) : tensor_retain((Tensor *)(uintptr_t)y);
}

bool tensor_copy_from(Tensor *dst, const Tensor *src) {
    Tensor *source = can_write("copy_from", dst) ? apart("copy_from", dst, src) : NULL;
    if (!source) return false;
    copy_elements(dst, source);
    tensor_release(source);
    tensor_written(dst, "copy_from");
    return true;
}

bool tensor_fill(Tensor *x, double value) {
    if (!can_write("fill", x) || !value_fits("fill", x->dtype, value)) return false;
    fill_elements(x, value);
    tensor_written(x, "fill");
    return true;
}

bool tensor_set_at(Tensor *x, double value, Shape index) {
    int64_t offset;
    if (!can_write("set", x) || !find_element("set", x, index, &offset) ||
        !value_fits("set", x->dtype, value))
        return false;
    Tensor element = {.dtype = x->dtype}; /* a scalar that looks at x's element */
    element.data = (char *)x->data + offset * dtype_size(x->dtype);
    fill_elements(&element, value);
    tensor_written(x, "set");
    return true;
}

bool can_write_floats(const char *op, const Tensor *x) {
    if (!can_write(op, x)) return false;
    return dtype_is_float(x->dtype) ||
           tensor_fail("%s: x is %s: it must be a float", op, tensor_dtype_name(x->dtype));
}

/* Has x a type that can be multiplied, and by this number? */
static bool can_write_times(const char *op, const Tensor *x, double number) {
    if (!can_write(op, x)) return false;
    if (x->dtype != BOOL) return number_fits(op, x->dtype, number);
    return tensor_fail("%s: x is bool: it must be float32, float64 or int64", op);
}

bool tensor_add_(Tensor *x, const Tensor *y, double alpha) {
    Tensor *term = can_write_times("add_", x, alpha) ? apart("add_", x, y) : NULL;
    if (!term) return false;
    loop_elements(kernels()->add_scaled[x->dtype], 3, (const Tensor *[]){x, x, term}, alpha);
    tensor_release(term);
    tensor_written(x, "add_");
    return true;
}

/* x[0], ..., x[n - 1] are written, but for the last, the gradient. numbers: doubles. */
static bool step(const char *op, const LoopKernel *kernel, int n, Tensor *const *x, void *numbers) {
    const Tensor list = {.dtype = F64, .data = numbers};
    const Tensor *operand[LOOP_OPERANDS] = {NULL};
    for (int i = 0; i < n; i++) {
        if (!(i == n - 1 ? readable(op, x[i]) : can_write_floats(op, x[i]))) return false;
        if (x[i]->dtype != x[0]->dtype || !shape_equal(x[i]->shape, x[0]->shape))
            return tensor_fail("%s: %s %s and %s %s: shapes and types must be equal", op,
                               tensor_dtype_name(x[0]->dtype), tensor_shape_text(x[0]->shape),
                               tensor_dtype_name(x[i]->dtype), tensor_shape_text(x[i]->shape));
        operand[i] = x[i];
    }
    operand[n] = &list;
    loop_operations(kernel[x[0]->dtype], n + 1, operand, 0, 2);
    for (int i = 0; i < n - 1; i++) tensor_written(x[i], op);
    return true;
}

bool tensor_sgd_(Tensor *x, Tensor *b, const Tensor *g, SGDStep s) {
    double numbers[] = {s.lr, s.weight_decay, s.momentum, s.fresh, s.nesterov};
    Tensor *const all[] = {x, s.momentum == 0 ? x : b, (Tensor *)(uintptr_t)g};
    return step("sgd_", kernels()->sgd, 3, all, numbers);
}

bool tensor_adamw_(Tensor *x, Tensor *m, Tensor *v, const Tensor *g, AdamWStep s) {
    Tensor *const all[] = {x, m, v, (Tensor *)(uintptr_t)g};
    return step("adamw_", kernels()->adamw, 4, all, &s);
}

bool tensor_mul_(Tensor *x, double factor) {
    if (!can_write_times("mul_", x, factor)) return false;
    LoopKernel scale = kernels()->value[ELEMENTWISE_scale][x->dtype];
    loop_elements(scale, 2, (const Tensor *[]){x, x}, factor);
    tensor_written(x, "mul_");
    return true;
}
