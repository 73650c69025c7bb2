/* clip.c - scales all gradients of a model so that their common norm is at most a bound. */
#include "../module.h"

#include <float.h>
#include <math.h>

/* The gradient of a parameter, or NULL. If several fields hold one parameter, only the first
 * counts. */
static Tensor *gradient_of(Module *module, const ModuleSlot *p) {
    const Tensor *theta = *p->slot;
    const bool counts = theta && theta->grad && nn_first_holder(module, theta) == p->slot;
    return counts ? theta->grad : NULL;
}

/* sqrt(a^2 + b^2) without squares that may not fit; NaN if one is NaN, also if the other is
 * infinite. */
static double length(double a, double b) {
    return isnan(a) || isnan(b) ? (double)NAN : hypot(a, b);
}

/* Multiplies g. A factor that is too small for a float32 keeps its digits as the product of two. */
static void scale_gradient(Tensor *g, double factor) {
    if (factor >= (double)FLT_MIN) {
        tensor_mul_(g, factor);
        return;
    }
    tensor_mul_(g, sqrt(factor));
    tensor_mul_(g, sqrt(factor));
}

double nn_clip_grad_norm(void *module, double max_norm) {
    nn_check_model(module, "clip_grad_norm");
    nn_check_not_negative("clip_grad_norm", "max_norm", max_norm);
    if (tensor_error()) return (double)NAN;
    double norm = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(module, "", &p);) {
        const Tensor *g = gradient_of(module, p);
        if (g) norm = length(norm, tensor_norm(g));
    }
    const double scale = max_norm / (norm + 1e-6);
    if (scale >= 1) return norm; /* false for NaN, which then makes all gradients NaN */
    for (ModuleSlot *p = NULL; !tensor_error() && nn_next_parameter(module, "", &p);) {
        Tensor *g = gradient_of(module, p);
        if (g) scale_gradient(g, scale);
    }
    return tensor_error() ? (double)NAN : norm;
}
