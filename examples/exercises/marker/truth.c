/* truth.c - the right results, by the library in float64: see truth.h. */
#include "truth.h"

#include "calls.h"

#include <string.h>

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

static Tensor *leaf_of(const Exercise *e, const Call *c, int output) {
    const Parameter *p = exercise_array(e, output);
    const int64_t columns = call_columns(e, c, output), n = call_length(e, c, output);
    const Shape shape = p->rows ? SHAPE(n / columns, columns) : SHAPE(columns);
    for (int i = 0; exercise_array(e, i); i++)
        if (strcmp(exercise_array(e, i)->name, p->name + 1) == 0)
            return truth_leaf(c->array[i], shape);
    return ag_requires_grad(tape_own(tensor_zeros(shape)));
}

void truth_compute(const Exercise *e, const Call *c) {
    Tensor *leaf[MOST_ARRAYS];
    const int dy = dy_array(e);
    int n = 0;
    truth_begin();
    for (int i = 0; exercise_array(e, i); i++)
        if (is_output(exercise_array(e, i))) leaf[n++] = leaf_of(e, c, i);
    truth_backward(e->forward(c, leaf), dy < 0 ? c->number : c->array[dy]);
    n = 0;
    for (int i = 0; exercise_array(e, i); i++)
        if (is_output(exercise_array(e, i))) truth_store(c->array[i], leaf[n++]);
    truth_end();
}
