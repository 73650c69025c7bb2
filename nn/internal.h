/* internal.h - what the files of nn/ ask of each other besides nn.h. */
#ifndef TAPEHEAD_NN_INTERNAL_H
#define TAPEHEAD_NN_INTERNAL_H

#include "nn.h"

/* value >= 0, else an error; NaN fails too. */
bool not_negative(const char *who, const char *what, double value);
/* The first field in the tree, in state_dict order, that holds x. */
Tensor **first_holder(const Module *module, const Tensor *x);

#endif
