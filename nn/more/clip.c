/* clip.c - scales all gradients of a model so that their common norm is at most a bound. */
#include "../module.h"

#include <math.h>

/* The gradient of a parameter, or NULL. If several fields hold one parameter, only the first
 * counts.
 */
static Tensor *gradient_of(Module *module, const ModuleSlot *p) {
    const Tensor *theta = *p->slot;
    const bool counts = theta && theta->grad && nn_first_holder(module, theta) == p->slot;
    return counts ? theta->grad : NULL;
}

double nn_clip_grad_norm(void *module, double max_norm) {
    nn_check_model(module, "clip_grad_norm");
    nn_check_not_negative("clip_grad_norm", "max_norm", max_norm);
    if (tensor_error()) return (double)NAN;
    double sum = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(module, "", &p);) {
        const Tensor *g = gradient_of(module, p);
        if (g) sum += tensor_sum_of_squares(g);
    }
    const double norm = sqrt(sum), scale = max_norm / (norm + 1e-6);
    if (scale >= 1) return norm; /* false for NaN, which then makes all gradients NaN */
    for (ModuleSlot *p = NULL; !tensor_error() && nn_next_parameter(module, "", &p);) {
        Tensor *g = gradient_of(module, p);
        if (g) tensor_mul_(g, scale);
    }
    return tensor_error() ? (double)NAN : norm;
}
