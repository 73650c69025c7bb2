/* clip.c - all gradients of a model, seen as one long vector, made no longer than a bound. */
#include "nn.h"

#include <math.h>

typedef struct {
    void *module;
    double sum;               /* of the gradients' squares so far */
    const double *scale;      /* NULL until they are all in the sum */
    const Tensor *theta;      /* the parameter looked at, and */
    const ModuleSlot *holder; /* the first field that holds it */
} Clipping;

static void find_holder(ModuleSlot *parameter, void *clipping) {
    Clipping *c = clipping;
    if (!c->holder && *parameter->slot == c->theta) c->holder = parameter;
}

/* A parameter that several fields hold is looked at once. */
static void look_at(ModuleSlot *parameter, void *clipping) {
    Clipping *c = clipping;
    c->theta = *parameter->slot, c->holder = NULL;
    nn_visit_parameters(c->module, "", find_holder, c);
    Tensor *g = c->theta && c->holder == parameter ? c->theta->grad : NULL;
    if (!g || tensor_error()) return;
    if (c->scale) tensor_mul_(g, *c->scale);
    else c->sum += tensor_sum_of_squares(g);
}

double nn_clip_grad_norm(void *module, double max_norm) {
    if (!module) tensor_fail("clip_grad_norm: the module is NULL");
    else if (!(max_norm >= 0)) /* NaN fails too */
        tensor_fail("clip_grad_norm: max_norm is %g: it must not be negative", max_norm);
    if (tensor_error()) return (double)NAN;
    Clipping c = {.module = module};
    nn_visit_parameters(module, "", look_at, &c);
    const double norm = sqrt(c.sum), scale = max_norm / (norm + 1e-6);
    c.scale = &scale;
    if (!(scale >= 1)) nn_visit_parameters(module, "", look_at, &c); /* a NaN makes them all NaN */
    return tensor_error() ? (double)NAN : norm;
}
