/* finite.c - finds the parameter whose gradient is not finite. One NaN in one gradient makes the
 * norm of all gradients NaN, and after a step all parameters. */
#include "../module.h"

#include <math.h>

/* The index after this one, in row-major order. */
static void advance(Shape *index, Shape shape) {
    int d = shape.ndim - 1;
    while (d >= 0 && ++index->dim[d] == shape.dim[d]) index->dim[d--] = 0;
}

/* Fails if an element of g, the gradient of p, is not finite. */
static bool check_elements(const void *module, const ModuleSlot *p, const Tensor *g) {
    Shape index = {.ndim = g->shape.ndim}, first = index;
    double value = 0; /* of the first element that is not finite */
    int64_t bad = 0;
    for (int64_t i = tensor_numel(g); i > 0; i--) {
        const double x = tensor_get_at(g, index);
        if (!isfinite(x) && bad++ == 0) {
            first = index;
            value = x;
        }
        advance(&index, g->shape);
    }
    char path[512];
    if (bad == 0 || !nn_parameter_path(module, p, path, sizeof path)) return bad == 0;
    const int64_t numel = tensor_numel(g);
    const char *infinite = value > 0 ? "inf" : "-inf";
    return tensor_fail(
        "check_finite: the gradient of %s, %s, is %s at %s: %lld of its %lld element%s %s not "
        "finite",
        path, tensor_shape_text(g->shape), isnan(value) ? "nan" : infinite,
        tensor_shape_text(first), (long long)bad, (long long)numel, numel == 1 ? "" : "s",
        bad == 1 ? "is" : "are");
}

bool nn_check_finite(void *module) {
    nn_check_model(module, "check_finite");
    if (tensor_error()) return false;
    for (ModuleSlot *p = NULL; nn_next_parameter(module, "", &p);) {
        const Tensor *g = *p->slot ? (*p->slot)->grad : NULL;
        const bool finite = !g || isfinite(tensor_sum_of_squares(g));
        if (tensor_error()) return false;
        /* A square may overflow where the element is finite. */
        if (!finite && !check_elements(module, p, g)) return false;
    }
    return !tensor_error();
}
