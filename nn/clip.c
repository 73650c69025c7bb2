/* clip.c - all gradients of a model, seen as one long vector, made no longer than a bound. */
#include "internal.h"

#include <math.h>

typedef struct {
    void *module;
    double sum;          /* of the gradients' squares so far */
    const double *scale; /* NULL until they are all in the sum */
} Clipping;

/* A parameter that several fields hold is looked at once. */
static void look_at(ModuleSlot *parameter, void *clipping) {
    Clipping *c = clipping;
    Tensor *theta = *parameter->slot, *g = theta ? theta->grad : NULL;
    if (!g || tensor_error() || first_holder(c->module, theta) != parameter->slot) return;
    if (c->scale) tensor_mul_(g, *c->scale);
    else c->sum += tensor_sum_of_squares(g);
}

double nn_clip_grad_norm(void *module, double max_norm) {
    if (!module) tensor_fail("clip_grad_norm: the module is NULL");
    not_negative("clip_grad_norm", "max_norm", max_norm);
    if (tensor_error()) return (double)NAN;
    Clipping c = {.module = module};
    nn_visit_parameters(module, "", look_at, &c);
    const double norm = sqrt(c.sum), scale = max_norm / (norm + 1e-6);
    c.scale = &scale;
    if (!(scale >= 1)) nn_visit_parameters(module, "", look_at, &c); /* a NaN makes them all NaN */
    return tensor_error() ? (double)NAN : norm;
}
