/* marks.c - what a program says about one tensor: it requires a gradient, keeps it, has a name. */
#include "engine.h"

#include <string.h>

Tensor *ag_requires_grad(Tensor *x) {
    if (!ag_check_present("requires_grad", x)) return NULL;
    if (!dtype_is_float(x->dtype))
        return tensor_fail("requires_grad: x is %s: only floats can have a gradient",
                           tensor_dtype_name(x->dtype));
    x->requires_grad = true;
    return x;
}

bool ag_zero_grad(Tensor *x) {
    if (!tensor_check_given("zero_grad", "tensor", x)) return false;
    if (x->refs == 0) return tensor_check_readable("zero_grad", x);
    tensor_release(x->grad);
    x->grad = NULL;
    return true;
}

Tensor *ag_retain_grad(Tensor *x) {
    if (!ag_check_present("retain_grad", x)) return NULL;
    if (!x->requires_grad) return tensor_fail("retain_grad: x does not require a gradient");
    x->retains_grad = true;
    return x;
}

Tensor *ag_name(Tensor *x, const char *name) {
    if (!ag_check_present("name", x)) return NULL;
    size_t length = 0;
    while (name && name[length] && length < sizeof x->name - 1) length++;
    if (name && name[length]) length = tensor_whole_characters(name, length);
    memmove(x->name, name ? name : "", length);
    x->name[length] = '\0';
    return x;
}
