/* truth.h - the right results, by the library in float64: the gradients of leaves that are the
 * inputs of a call.
 *
 *     static Tensor *product_of(const Call *c, Tensor *const *x) { return ag_matmul(x[0], x[1]); }
 *
 * is all that an exercise says where output i of a call is the gradient of leaf i. */
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
/* All of it, by the forward of an exercise. The leaf of the output "dx" is the input "x"; if there
 * is none, zeros: then the gradient does not need it. */
void truth_compute(const Exercise *e, const Call *call);

#endif
