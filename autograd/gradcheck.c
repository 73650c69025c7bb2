/* gradcheck.c - is the gradient right? Backpropagation of <c, f(x)> against central differences
 *
 *     (<c, f(x + eps e)> - <c, f(x - eps e)>) / (2 eps)
 *
 * for every element e of every input, with a fixed random cotangent c: summing f instead would not
 * notice a wrong gradient that sums to zero, as that of softmax does. */
#include "op.h"

#include <math.h>

typedef struct {
    ScalarOrTensorFn fn;
    Tensor **inputs;
    int n;
    void *ctx;
    Generator generator; /* as it was: fn draws the same numbers at every call */
    Tensor *cotangent;   /* made at the first call, when the shape of the result is known */
    GradcheckOptions options;
} Check;

/* f(inputs) on the open tape, checked for what can be checked. */
static Tensor *call(Check *check) {
    *tensor_generator_current() = check->generator;
    Tensor *y = check->fn(check->inputs, check->ctx);
    if (!y) return tensor_fail("gradcheck: the function returned NULL without an error");
    if (y->dtype != F64)
        return tensor_fail("gradcheck: the function returned %s: it must be float64",
                           tensor_dtype_name(y->dtype));
    if (!check->cotangent) { /* normal numbers from a generator of its own */
        check->cotangent = tensor_make(y->shape, F64);
        tensor_manual_seed(check->options.seed);
        if (!tensor_normal_(check->cotangent, 0, 1)) return NULL;
    }
    if (shape_equal(check->cotangent->shape, y->shape)) return y;
    return tensor_fail("gradcheck: the function returned %s and then %s: its shape must not change",
                       tensor_shape_text(check->cotangent->shape), tensor_shape_text(y->shape));
}

/* <c, f(inputs)>, or NaN with an error. */
static double contracted(Check *check) {
    if (!tape_begin_no_grad()) return (double)NAN;
    Tensor *y = call(check);
    double value = tensor_item(ag_sum(ag_mul(check->cotangent, y)));
    tape_end();
    return value;
}

/* Backpropagates c from f(inputs); the gradients gather in ->grad. */
static bool backpropagate(Check *check) {
    if (!tape_begin()) return false;
    Tensor *y = call(check);
    bool done = y && ag_backward_from(y, check->cotangent);
    tape_end();
    return done;
}

static double *element_at(const Tensor *x, int64_t i, Shape *index) {
    int64_t offset = 0;
    *index = x->shape;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        index->dim[d] = i % x->shape.dim[d];
        offset += index->dim[d] * x->stride[d];
        i /= x->shape.dim[d];
    }
    return (double *)x->data + offset;
}

/* One element: is its gradient what the difference quotient says? NaN is never right. */
static bool check_element(Check *check, int which, int64_t i) {
    const Tensor *x = check->inputs[which];
    const double eps = check->options.eps;
    Shape index;
    double *element = element_at(x, i, &index), before = *element;
    *element = before + eps;
    double above = contracted(check);
    *element = before - eps;
    double below = contracted(check);
    *element = before;
    if (tensor_pending()) return false;
    double numeric = (above - below) / (2 * eps);
    double analytic = x->grad ? tensor_get_at(x->grad, index) : 0; /* not reached: no influence */
    if (fabs(analytic - numeric) <= check->options.atol + check->options.rtol * fabs(numeric))
        return true;
    return tensor_fail(
        "gradcheck: input %d, element %s: backpropagation gives %.12g, the difference "
        "quotient %.12g",
        which, tensor_shape_text(index), analytic, numeric);
}

/* Two elements in one place could not be moved one at a time. */
static bool can_check(const Check *check) {
    for (int i = 0; i < check->n; i++) {
        const Tensor *x = check->inputs[i];
        if (!ag_present("gradcheck", x)) return false;
        if (!x->requires_grad) continue;
        if (x->dtype != F64)
            return tensor_fail("gradcheck: input %d is %s: it must be float64", i,
                               tensor_dtype_name(x->dtype));
        if (tensor_has_repeats(x))
            return tensor_fail("gradcheck: input %d is expanded: its elements share places", i);
    }
    return true;
}

bool ag_gradcheck(ScalarOrTensorFn fn, Tensor **inputs, int n, void *ctx,
                  GradcheckOptions options) {
    if (tensor_pending()) return false;
    if (!fn || n < 0 || (n > 0 && !inputs))
        return tensor_fail("gradcheck: it needs a function and its inputs");
    if (options.eps == 0) options.eps = 1e-6;
    if (options.rtol == 0) options.rtol = 1e-6;
    if (options.atol == 0) options.atol = 1e-7;
    Check check = {fn, inputs, n, ctx, *tensor_generator_current(), NULL, options};
    const int64_t size = n * (int64_t)sizeof(Tensor *);
    Tensor **grads = can_check(&check) ? tensor_cache_alloc(size) : NULL;
    if (!grads) return false;
    for (int i = 0; i < n; i++) { /* the inputs' gradients are put aside */
        grads[i] = inputs[i]->grad;
        inputs[i]->grad = NULL;
    }
    bool right = backpropagate(&check);
    for (int i = 0; i < n && right; i++) {
        const int64_t numel = inputs[i]->requires_grad ? tensor_numel(inputs[i]) : 0;
        for (int64_t e = 0; e < numel && right; e++) right = check_element(&check, i, e);
    }
    for (int i = n - 1; i >= 0; i--) { /* one that is there twice had its own the first time */
        tensor_release(inputs[i]->grad);
        inputs[i]->grad = grads[i];
    }
    tensor_cache_free(grads, size);
    tensor_release(check.cotangent);
    *tensor_generator_current() = check.generator;
    return right;
}
