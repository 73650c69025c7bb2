/* gradcheck.c - compares backpropagation of <c, f(x)> with central differences
 *
 *     <c, f(x + h e) - f(x - h e)> / (2 h)
 *
 * for every element e of every input, with a fixed random cotangent c. With c = 1 for all elements
 * <c, softmax(x)> is constant and its gradient is 0, so a wrong gradient could pass.
 *
 * No step h suits all functions. If h is small, the difference of two numbers near f(x) loses its
 * digits: a number near 10^6 has a rounding error of 10^-10, a millionth of the difference for h =
 * 10^-4. If h is large, the slope changes between the two points. A derivative that the usual
 * step does not confirm is compared with other steps, and where no two of them agree, differences
 * cannot check it. */
#include "gradcheck.h"

#include "engine.h"

#include <float.h>

/* ---- steps ----------------------------------------------------------------------------------- */

double ag_difference_step(double x, double first, int k) {
    const double size = fabs(x);
    const double least = first * fmin(1, fmax(size, 1e-6)) / 32;
    const double step = ldexp(least, 5 * (k - 1));
    if (isinf(x)) return 0; /* an infinity has no neighbours */
    if (k == 0) return first * fmax(1, cbrt(size));
    return step <= 32 * first * fmax(1, size) ? step : 0;
}

/* The quotients of two neighbouring steps, one 32 times the other, differ by rounding errors, which
 * become smaller as the step grows, and by the curvature of f, which then becomes larger. The
 * first steps that differ by much more than rounding errors are the last ones that count: far away
 * f may be flat, and the quotients 0. Two quotients of which not even the first digit agrees say
 * only that the derivative is not much larger than all quotients. */
void ag_quotient_add(Quotients *q, double quotient, double noise) {
    const double difference = fabs(quotient - q->last);
    double doubt = difference + noise + q->noise;
    q->largest = fmax(q->largest, fabs(quotient));
    if (2 * difference > fmax(fabs(quotient), fabs(q->last))) doubt = fmax(doubt, q->largest);
    if (!q->full && doubt < q->doubt) { /* not if the quotient or the last one is NaN */
        q->doubt = doubt;
        q->best = q->last;
    }
    q->full = q->full || difference > 32 * (noise + q->noise);
    q->last = quotient;
    q->noise = noise;
}

bool ag_quotients_cannot_tell(const Quotients *q, double derivative) {
    return isinf(q->doubt) || fabs(derivative - q->best) <= q->doubt;
}

bool ag_is_kink(Slopes smaller, Slopes larger) {
    const double near = fabs(smaller.right - smaller.left), far = fabs(larger.right - larger.left);
    return near > 16 * smaller.noise && near > far / 2 && near < 2 * far;
}

/* ---- the function ---------------------------------------------------------------------------- */

typedef struct {
    ScalarOrTensorFn fn;
    Tensor **inputs;
    int n;
    void *ctx;
    Generator generator; /* the state at the start: fn draws the same numbers at every call */
    Tensor *cotangent;   /* made at the first call, which tells the shape of the result */
    GradcheckOptions options;
    double size; /* the largest |c f|, of the terms whose sum is <c, f> */
} Check;

/* printf writes -nan for a NaN with a sign, which depends on the compiler. */
static double printable(double x) { return isnan(x) ? fabs(x) : x; }

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

/* f(inputs) with h added to an element: a copy, contiguous, a new reference. */
static Tensor *result_at(Check *check, double *element, double h) {
    const double before = *element;
    if (!tape_begin_no_grad()) return NULL;
    *element = before + h;
    Tensor *y = call(check);
    Tensor *copy = y ? tensor_convert(y, F64) : NULL;
    *element = before;
    tape_end();
    return copy;
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

/* The difference quotient of <c, f> between two points, given by what is added to the element, and
 * its rounding error. NaN if the points are the same number. Elements of f that do not change with
 * x cancel before the sum. */
static double quotient_of(Check *check, double *element, double from, double to, double *noise) {
    const double high = *element + to, low = *element + from;
    const double *c = check->cotangent->data;
    Tensor *above = result_at(check, element, to);
    Tensor *below = result_at(check, element, from);
    double sum = 0, size = check->size;
    if (above && below)
        for (int64_t j = 0; j < tensor_numel(above); j++) {
            const double y = ((double *)above->data)[j], z = ((double *)below->data)[j];
            sum += c[j] * (y - z);
            size += fabs(c[j]) * fmax(fabs(y), fabs(z));
        }
    tensor_release(above);
    tensor_release(below);
    *noise = DBL_EPSILON * size / (high - low);
    return sum / (high - low); /* the distance as the two numbers are rounded */
}

static Slopes slopes_of(Check *check, double *element, double h) {
    double left_noise = 0, right_noise = 0;
    const double left = quotient_of(check, element, -h, 0, &left_noise);
    const double right = quotient_of(check, element, 0, h, &right_noise);
    return (Slopes){left, right, left_noise + right_noise};
}

/* Sets the error for a gradient that no difference quotient confirms. */
static bool fail_element(Check *check, double *element, const char *where, double analytic,
                         const Quotients *known) {
    const double h = ag_difference_step(*element, check->options.eps, 0);
    const Slopes slopes = slopes_of(check, element, h);
    const bool is_kink = ag_is_kink(slopes, slopes_of(check, element, AG_KINK_STEPS * h));
    if (tensor_pending()) return false;
    if (is_kink)
        return tensor_fail("gradcheck: %s: backpropagation gives %.12g, and the point is a kink: "
                           "the slope is %.12g before it and %.12g after it; check at a point "
                           "further from it than %g",
                           where, printable(analytic), slopes.left, slopes.right, h);
    if (ag_quotients_cannot_tell(known, analytic))
        return tensor_fail("gradcheck: %s: backpropagation gives %.12g, but differences cannot "
                           "check it: they give %.12g, give or take %.2g",
                           where, printable(analytic), printable(known->best), known->doubt);
    return tensor_fail("gradcheck: %s: backpropagation gives %.12g, the difference quotient %.12g",
                       where, printable(analytic), printable(known->best));
}

/* Compares the gradient of one element with difference quotients. NaN is never right. */
static bool check_element(Check *check, int which, int64_t i) {
    const Tensor *x = check->inputs[which];
    const GradcheckOptions *o = &check->options;
    Quotients known = NO_QUOTIENTS;
    Shape index;
    double *element = element_at(x, i, &index);
    double noise;
    char where[128];
    double analytic = x->grad ? tensor_get_at(x->grad, index) : 0; /* f does not depend on x */
    for (int k = 0; ag_difference_step(*element, o->eps, k) > 0; k++) {
        const double h = ag_difference_step(*element, o->eps, k);
        const double numeric = quotient_of(check, element, -h, h, &noise);
        if (tensor_pending()) return false;
        if (h >= o->eps && fabs(analytic - numeric) <= o->atol + o->rtol * fabs(numeric))
            return true;
        if (k > 0) ag_quotient_add(&known, numeric, noise);
    }
    snprintf(where, sizeof where, "input %d, element %s", which, tensor_shape_text(index));
    return fail_element(check, element, where, analytic, &known);
}

/* The largest |x dx|: f was computed from numbers whose rounding changes <c, f> by this, times
 * epsilon, also if the elements of f are smaller. */
static double size_of_terms(const Check *check) {
    double size = 0;
    for (int i = 0; i < check->n; i++) {
        const Tensor *x = check->inputs[i];
        Shape index;
        if (!x->requires_grad || !x->grad) continue;
        for (int64_t e = 0; e < tensor_numel(x); e++) {
            const double term = fabs(*element_at(x, e, &index) * tensor_get_at(x->grad, index));
            if (term > size && isfinite(term)) size = term;
        }
    }
    return size;
}

/* Each input that requires a gradient must be float64, and its elements must share no memory. */
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
    if (!tensor_check_not_negative("gradcheck", "eps", options.eps) ||
        !tensor_check_not_negative("gradcheck", "rtol", options.rtol) ||
        !tensor_check_not_negative("gradcheck", "atol", options.atol))
        return false;
    if (isinf(options.eps)) return tensor_fail("gradcheck: eps is inf: it must be finite");
    if (options.eps == 0) options.eps = 1e-6;
    if (options.rtol == 0) options.rtol = 1e-6;
    if (options.atol == 0) options.atol = 1e-7;
    Check check = {fn, inputs, n, ctx, *tensor_generator_current(), NULL, options, 0};
    const int64_t size = n * (int64_t)sizeof(Tensor *);
    Tensor **grads = check_arguments(&check) ? tensor_cache_alloc(size) : NULL;
    if (!grads) return false;
    for (int i = 0; i < n; i++) { /* the caller's gradients are restored at the end */
        grads[i] = inputs[i]->grad;
        inputs[i]->grad = NULL;
    }
    bool right = backpropagate(&check);
    if (right) check.size = size_of_terms(&check);
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
