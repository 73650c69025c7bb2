/* clip.c - all gradients of a model, seen as one long vector, made no longer than a bound. */
#include "nn.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    Tensor **gradient;
    int n;
} Gradients;

/* A tensor held twice has one gradient. */
static void list_gradient(ModuleSlot *parameter, void *context) {
    Gradients *list = context;
    const Tensor *theta = *parameter->slot;
    int i = 0;
    if (!theta || !theta->grad) return;
    list->gradient[list->n] = theta->grad;
    while (list->gradient[i] != theta->grad) i++;
    if (i == list->n) list->n++;
}

/* In float64, whatever the gradient's type. */
static double sum_of_squares(const Tensor *g) {
    if (!tape_begin_no_grad()) return (double)NAN;
    Tensor *wide = tensor_to(g, F64);
    double sum = tensor_item(ag_sum(ag_square(wide)));
    tape_end();
    tensor_release(wide);
    return sum;
}

double nn_clip_grad_norm(void *module, double max_norm) {
    if (!module) tensor_fail("clip_grad_norm: the module is NULL");
    else if (!(max_norm >= 0)) /* NaN fails too */
        tensor_fail("clip_grad_norm: max_norm is %g: it must not be negative", max_norm);
    if (tensor_error()) return (double)NAN;
    const int capacity = nn_parameter_slots(module, NULL, 0);
    Gradients list = {malloc((size_t)(capacity + 1) * sizeof *list.gradient), 0};
    if (!list.gradient) tensor_fail("clip_grad_norm: out of memory for %d parameters", capacity);
    else nn_visit_parameters(module, "", list_gradient, &list);
    double sum = 0;
    for (int i = 0; i < list.n; i++) sum += sum_of_squares(list.gradient[i]);
    const double norm = sqrt(sum), scale = max_norm / (norm + 1e-6);
    for (int i = 0; i < list.n && !tensor_error(); i++)
        tensor_mul_(list.gradient[i], scale > 1 ? 1 : scale); /* a NaN stays one */
    free(list.gradient);
    return tensor_error() ? (double)NAN : norm;
}
