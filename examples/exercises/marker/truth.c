/* truth.c - the right results, by the library in float64: see truth.h. */
#include "truth.h"

static DType usual;

void truth_begin(void) {
    usual = tensor_default_dtype();
    tensor_set_default_dtype(F64);
    tape_begin();
}

Tensor *truth_constant(const double *elements, Shape shape) {
    return tape_own(tensor_from_doubles(shape, elements));
}

Tensor *truth_leaf(const double *elements, Shape shape) {
    return ag_requires_grad(truth_constant(elements, shape));
}

void truth_backward(Tensor *y, const double *dy) {
    if (y) ag_backward_from(y, truth_constant(dy, y->shape));
}

void truth_store(double *gradient, const Tensor *leaf) {
    if (leaf && leaf->grad) tensor_to_doubles(leaf->grad, gradient);
}

void truth_end(void) {
    tape_end();
    tensor_set_default_dtype(usual);
}
