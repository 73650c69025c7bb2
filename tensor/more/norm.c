/* norm.c - the norm of a tensor, right even at the ends of the range. */
#include "more_kernels.h"

#include "../operations/operations.h"

double tensor_norm(const Tensor *x) {
    return tensor_measure("norm", x, tensor_more_kernels()->norm);
}
