/* module.h - shared by the files of nn/: checks, and what a forward begins and ends with. */
#ifndef TAPEHEAD_NN_MODULE_H
#define TAPEHEAD_NN_MODULE_H

#include "nn.h"

/* Returns the module. If it is NULL: an error, unless an earlier one explains it. */
Module *nn_check_given(void *module, const char *function);
/* Returns the module; NULL and an error if it is NULL or an optimizer. An optimizer is a Module for
 * nn_print and nn_free only. */
Module *nn_check_model(void *module, const char *function);
/* False and an error unless value >= 0; NaN fails. */
bool nn_check_not_negative(const char *who, const char *what, double value);
/* A forward function begins with nn_forward_begins, which is false if an error is pending or module
 * is NULL, and ends with nn_forward_done, which returns y, or NULL if an error was set in between.
 * The error then begins with the innermost module's path: "encoder.layers.0.W_q: linear: ...". */
bool nn_forward_begins(const char *who, const void *module);
Tensor *nn_forward_done(const void *module, Tensor *y);
/* Writes "W_q.weight", the path from root to a parameter or child of m, cut off at size - 1.
 * Returns the length, size or more if it was cut off; 0 if m is not in the tree of root. */
size_t nn_write_path(const Module *root, const Module *m, const char *name, char *path,
                     size_t size);
/* Does shape match a pattern, in which NN_LAZY stands for any size and ndim -1 for any shape? */
bool nn_shape_matches(Shape pattern, Shape shape);
/* Several fields may hold one parameter x. Returns the first such field in state_dict order. */
Tensor **nn_first_holder(Module *module, const Tensor *x);

/* Checks x (..., in), and draws the parameters of a lazy layer when the layer gets its first x.
 * False and an error if x does not fit. */
bool nn_linear_prepare(Linear *linear, const Tensor *x);

#endif
