/* truth.h - the right results, by the library in float64: each exercise applies ops to leaves that
 * are the inputs of a call, and stores the leaves' gradients as the outputs.
 *
 *     static void product_right(const Call *c) {
 *         truth_begin();
 *         Tensor *a = truth_leaf(c->array[2], SHAPE(c->size[0], c->size[1]));
 *         ...
 *         truth_backward(ag_matmul(a, b), c->array[4]);
 *         truth_store(c->array[0], a);
 *         truth_end();
 *     } */
#ifndef TAPEHEAD_EXERCISES_TRUTH_H
#define TAPEHEAD_EXERCISES_TRUTH_H

#include "../../../nn/nn.h"
#include "exercise.h"

void truth_begin(void); /* opens a tape */
/* Loans of the tape, in float64: one that gets a gradient, and one without. */
Tensor *truth_leaf(const double *elements, Shape shape);
Tensor *truth_constant(const double *elements, Shape shape);
/* Backpropagation from y; dy has y's shape. */
void truth_backward(Tensor *y, const double *dy);
/* Writes the gradient of a leaf. */
void truth_store(double *gradient, const Tensor *leaf);
void truth_end(void);

#endif
