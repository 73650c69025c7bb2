/* reductions.h - what ops that reduce dimensions, or that name some, share. */
#ifndef TAPEHEAD_REDUCTIONS_H
#define TAPEHEAD_REDUCTIONS_H

#include "op.h"

/* flags[d]: is dimension d of x in the list? False with an error for a wrong list. */
bool ag_flag_dims(const char *op, const Tensor *x, Axes dims, bool *flags);
/* y without the reduced dimensions, or y itself with keepdim. Takes over y. */
Tensor *ag_drop_dims(const Node *n, Tensor *y);
/* dy (or another tensor of the result's shape) expanded to x's shape: every element of x gets the
 * number of the result to which it was reduced. A new reference. */
Tensor *ag_expand_to_x(const Node *n, const Tensor *dy);
/* Applies an op that reduces one dimension. A scalar counts as a row of one element. */
Tensor *ag_reduce_dim(const Op *op, Tensor *x, int dim, bool keepdim);
/* The positions that the kernel finds, of the "maximum" for example: I64, with the dimension kept.
 * An error if the dimension is empty. */
Tensor *ag_positions(const Node *n, Kernel *const *kernel, const char *what);
extern const Op ag_op_argmax; /* ag_argmax and ag_argmax_dim apply it */

#endif
