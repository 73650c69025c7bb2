/* clip.c - all gradients of a model, seen as one long vector, made no longer than a bound. */
#include "nn.h"

#include <math.h>
#include <stdlib.h>

/* The gradient of the i-th parameter; NULL without one, or when an earlier field holds it too. */
static Tensor *gradient(Tensor ***slots, int i) {
    for (int j = 0; j < i; j++)
        if (*slots[j] == *slots[i]) return NULL;
    return *slots[i] ? (*slots[i])->grad : NULL;
}

/* In float64, whatever the gradient's type. */
static double sum_of_squares(const Tensor *g) {
    if (!g) return 0;
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
    const int n = nn_parameter_slots(module, NULL, 0);
    Tensor ***slots = malloc((size_t)(n + 1) * sizeof *slots);
    if (!slots) tensor_fail("clip_grad_norm: out of memory for a list of parameters");
    else nn_parameter_slots(module, slots, n);
    double sum = 0;
    for (int i = 0; i < n && !tensor_error(); i++) sum += sum_of_squares(gradient(slots, i));
    const double norm = sqrt(sum), scale = max_norm / (norm + 1e-6);
    for (int i = 0; i < n && !tensor_error(); i++) {
        Tensor *g = gradient(slots, i);
        if (g) tensor_mul_(g, scale > 1 ? 1 : scale); /* a NaN stays one */
    }
    free(slots);
    return tensor_error() ? (double)NAN : norm;
}
