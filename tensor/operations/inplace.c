/* inplace.c - writes in place: copies, sums and products. Each function checks its arguments before
 * it writes, and increases the version of each tensor that it has written. */
#include "operations.h"

#include <string.h>

static bool check_writable(const char *op, const Tensor *x) {
    if (tensor_pending() || !tensor_check_readable(op, x)) return false;
    return !tensor_has_repeats(x) ||
           tensor_fail("%s: x is %s and expanded: several elements share one place", op,
                       tensor_shape_text(x->shape));
}

/* y, to be read while x is written: a copy if a write to x could change an element of y before that
 * element is read. name: y's. Otherwise nothing is allocated, so the second half of an optimizer
 * step, which only writes in place, cannot fail. */
static Tensor *without_overlap(const char *op, const Tensor *x, const char *name, const Tensor *y) {
    if (!tensor_check_argument(op, name, y)) return NULL;
    if (x->dtype != y->dtype)
        return tensor_fail("%s: the types %s and %s must be equal; convert one with tensor_to", op,
                           tensor_dtype_name(x->dtype), tensor_dtype_name(y->dtype));
    Shape both;
    if (!tensor_shape_broadcast(x->shape, y->shape, &both) || !shape_equal(both, x->shape))
        return tensor_fail("%s: %s cannot be broadcast to %s", op, tensor_shape_text(y->shape),
                           tensor_shape_text(x->shape));
    bool same_view = x->data == y->data && shape_equal(x->shape, y->shape) &&
                     memcmp(x->stride, y->stride, sizeof x->stride) == 0;
    bool may_change = x->storage == y->storage && !same_view;
    return may_change ? tensor_clone(y) : tensor_retain((Tensor *)(uintptr_t)y);
}

/* The tape does not record that x, a constant, got elements of source. This is noted, and an op on
 * this tape refuses x. If x requires a gradient itself, it is a leaf, whose gradient begins with
 * the new elements, or a result, whose version the tape knows. */
static void note_source(Tensor *x, const Tensor *source) {
    if (source->requires_grad && !x->requires_grad && tensor_recording())
        x->storage->unrecorded = tensor_recording();
}

/* All bytes will be new: forgets where the old ones came from. */
static void forget_sources(Tensor *x) {
    if (tensor_numel(x) * dtype_size(x->dtype) == x->storage->size) x->storage->unrecorded = 0;
}

bool tensor_copy_from(Tensor *dst, const Tensor *src) {
    Tensor *source =
        check_writable("copy_from", dst) ? without_overlap("copy_from", dst, "src", src) : NULL;
    if (!source) return false;
    tensor_copy_elements(dst, source);
    tensor_release(source);
    forget_sources(dst);
    note_source(dst, src);
    tensor_written(dst, "copy_from");
    return true;
}

bool tensor_fill(Tensor *x, double value) {
    if (!check_writable("fill", x) || !tensor_check_value("fill", x->dtype, value)) return false;
    tensor_fill_elements(x, value);
    forget_sources(x);
    tensor_written(x, "fill");
    return true;
}

bool tensor_set_at(Tensor *x, double value, Shape index) {
    int64_t offset;
    if (!check_writable("set", x) || !tensor_find_element("set", x, index, &offset) ||
        !tensor_check_value("set", x->dtype, value))
        return false;
    Tensor element = {.dtype = x->dtype}; /* a scalar view of x's element */
    element.data = (char *)x->data + offset * dtype_size(x->dtype);
    tensor_fill_elements(&element, value);
    tensor_written(x, "set");
    return true;
}

bool tensor_check_writable_floats(const char *op, const Tensor *x) {
    if (!check_writable(op, x)) return false;
    return dtype_is_float(x->dtype) ||
           tensor_fail("%s: x is %s: it must be a float", op, tensor_dtype_name(x->dtype));
}

/* Checks that x has a type that can be multiplied by this number. */
static bool check_factor(const char *op, const Tensor *x, double number) {
    if (!check_writable(op, x)) return false;
    if (x->dtype != BOOL) return tensor_check_number(op, x->dtype, number);
    return tensor_fail("%s: x is bool: it must be float32, float64 or int64", op);
}

bool tensor_add_(Tensor *x, const Tensor *y, double alpha) {
    Tensor *term = check_factor("add_", x, alpha) ? without_overlap("add_", x, "y", y) : NULL;
    if (!term) return false;
    tensor_loop_elements(tensor_kernels()->add_scaled[x->dtype], 3, (const Tensor *[]){x, x, term},
                         alpha);
    tensor_release(term);
    note_source(x, y);
    tensor_written(x, "add_");
    return true;
}

bool tensor_mul_(Tensor *x, double factor) {
    if (!check_factor("mul_", x, factor)) return false;
    Kernel *const scale = tensor_kernels()->value[ELEMENTWISE_scale][x->dtype];
    tensor_loop_elements(scale, 2, (const Tensor *[]){x, x}, factor);
    tensor_written(x, "mul_");
    return true;
}
