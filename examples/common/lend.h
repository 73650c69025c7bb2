/* lend.h - data for a step: made by a tensor_ function, looked at by ops, gone with the tape. */
#ifndef TAPEHEAD_EXAMPLES_LEND_H
#define TAPEHEAD_EXAMPLES_LEND_H

#include "../../autograd/autograd.h"

/* What is yours becomes the open tape's. */
static inline Tensor *lend(Tensor *x) {
    Tensor *loan = ag_detach(x);
    tensor_release(x);
    return loan;
}

#endif
