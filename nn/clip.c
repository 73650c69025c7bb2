/* clip.c - all gradients of a model, seen as one long vector, made no longer than a bound. */
#include "nn.h"

#include <math.h>
#include <stdlib.h>

/* The gradients that exist, each once, in a list to be freed; NULL on error. */
static Tensor **list_gradients(void *module, int *n) {
    const int slots = nn_parameter_slots(module, NULL, 0);
    Tensor **gradient = malloc((size_t)(slots + 1) * sizeof *gradient);
    Tensor ***slot = malloc((size_t)(slots + 1) * sizeof *slot);
    if (!gradient || !slot) tensor_fail("clip_grad_norm: out of memory for %d parameters", slots);
    else nn_parameter_slots(module, slot, slots);
    *n = 0;
    for (int i = 0; !tensor_error() && i < slots; i++) {
        int earlier = 0; /* a tensor held twice has one gradient */
        if (!*slot[i] || !(*slot[i])->grad) continue;
        gradient[*n] = (*slot[i])->grad;
        while (gradient[earlier] != gradient[*n]) earlier++;
        *n += earlier == *n;
    }
    free(slot);
    if (!tensor_error()) return gradient;
    free(gradient);
    return NULL;
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
    int n = 0;
    double sum = 0;
    if (!module) tensor_fail("clip_grad_norm: the module is NULL");
    else if (!(max_norm >= 0)) /* NaN fails too */
        tensor_fail("clip_grad_norm: max_norm is %g: it must not be negative", max_norm);
    Tensor **gradient = tensor_error() ? NULL : list_gradients(module, &n);
    for (int i = 0; i < n; i++) sum += sum_of_squares(gradient[i]);
    const double norm = sqrt(sum), scale = max_norm / (norm + 1e-6);
    for (int i = 0; i < n && !tensor_error(); i++)
        tensor_mul_(gradient[i], scale > 1 ? 1 : scale); /* a NaN stays one */
    free(gradient);
    return tensor_error() ? (double)NAN : norm;
}
