/* norm.c - the norm of a tensor, right at the ends of the range, too. */
#include "more_kernels.h"

#include "../math/operations.h"

double tensor_norm(const Tensor *x) {
    return tensor_measure("norm", x, tensor_more_kernels()->norm);
}
