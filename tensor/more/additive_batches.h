/* additive_batches.h - additive attention of whole tensors, for autograd/more/additive_scores.c. */
#ifndef TAPEHEAD_TENSOR_ADDITIVE_BATCHES_H
#define TAPEHEAD_TENSOR_ADDITIVE_BATCHES_H

#include "../operations/operations.h"
#include "more_kernels.h"

/* Additive attention of q (B, Q, H), k (B, K, H) and w (1, H), all contiguous: y (B, Q, K) =
 * w tanh(q + k) for a key before the length, else 0. lengths: as in a Mask. dx: zeros, dq, dk and
 * dw (B, 1, H). */
void tensor_additive_forward(const Tensor *y, const Tensor *q, const Tensor *k, const Tensor *w,
                             const Tensor *lengths);
void tensor_additive_backward(Tensor *const dx[3], const Tensor *dy, const Tensor *q,
                              const Tensor *k, const Tensor *w, const Tensor *lengths);

#endif
