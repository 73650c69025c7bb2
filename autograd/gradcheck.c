/* gradcheck.c - compares backpropagation of <c, f(x)> with central differences
 *
 *     (<c, f(x + eps e)> - <c, f(x - eps e)>) / (2 eps)
 *
 * for every element e of every input, with a fixed random cotangent c. With c = 1 for all elements
 * <c, softmax(x)> is constant and its gradient is 0, so a wrong gradient could pass. */
#include "op.h"

#include <math.h>

typedef struct {
    ScalarOrTensorFn fn;
    Tensor **inputs;
    int n;
    void *ctx;
    Generator generator; /* the state at the start: fn draws the same numbers at every call */
    Tensor *cotangent;   /* made at the first call, which tells the shape of the result */
    GradcheckOptions options;
} Check;

/* f(inputs) on the open tape: float64, and of the same shape at every call. */
static Tensor *call(Check *check) {
    *tensor_generator_current() = check->generator;
    Tensor *y = check->fn(check->inputs, check->ctx);
    if (!y) return tensor_fail("gradcheck: the function returned NULL without an error");
    if (y->dtype != F64)
        return tensor_fail("gradcheck: the function returned %s: it must be float64",
                           tensor_dtype_name(y->dtype));
    /* c: normal numbers from options.seed. The next call, or the end of ag_gradcheck, restores the
     * state of the generator. */
    if (!check->cotangent) {
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

/* Backpropagates c from f(inputs) into the ->grad of each input. */
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

/* Compares the gradient of one element with its difference quotient. NaN is never right. */
static bool check_element(Check *check, int which, int64_t i) {
    const Tensor *x = check->inputs[which];
    const double eps = check->options.eps;
    Shape index;
    double *element = element_at(x, i, &index);
    const double before = *element;
    *element = before + eps;
    double above = contracted(check);
    *element = before - eps;
    double below = contracted(check);
    *element = before;
    if (tensor_pending()) return false;
    double numeric = (above - below) / (2 * eps);
    double analytic = x->grad ? tensor_get_at(x->grad, index) : 0; /* f does not depend on x */
    if (fabs(analytic - numeric) <= check->options.atol + check->options.rtol * fabs(numeric))
        return true;
    return tensor_fail(
        "gradcheck: input %d, element %s: backpropagation gives %.12g, the difference "
        "quotient %.12g",
        which, tensor_shape_text(index), analytic, numeric);
}

/* Checks that each input that requires a gradient is float64 and that its elements share no memory.
 */
static bool check_arguments(const Check *check) {
    for (int i = 0; i < check->n; i++) {
        const Tensor *x = check->inputs[i];
        if (!ag_check_present("gradcheck", x)) return false;
        if (!x->requires_grad) continue;
        if (x->dtype != F64)
            return tensor_fail("gradcheck: input %d is %s: it must be float64", i,
                               tensor_dtype_name(x->dtype));
        if (tensor_has_repeats(x))
            return tensor_fail("gradcheck: input %d is expanded: several elements share one place",
                               i);
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
    Tensor **grads = check_arguments(&check) ? tensor_cache_alloc(size) : NULL;
    if (!grads) return false;
    for (int i = 0; i < n; i++) { /* the caller's gradients are restored at the end */
        grads[i] = inputs[i]->grad;
        inputs[i]->grad = NULL;
    }
    bool right = backpropagate(&check);
    for (int i = 0; i < n && right; i++) {
        const int64_t numel = inputs[i]->requires_grad ? tensor_numel(inputs[i]) : 0;
        for (int64_t e = 0; e < numel && right; e++) right = check_element(&check, i, e);
    }
    /* Backwards: if an input is listed twice, grads has its gradient at the lower i, and NULL at
     * the higher i. */
    for (int i = n - 1; i >= 0; i--) {
        tensor_release(inputs[i]->grad);
        inputs[i]->grad = grads[i];
    }
    tensor_cache_free(grads, size);
    tensor_release(check.cotangent);
    *tensor_generator_current() = check.generator;
    return right;
}
