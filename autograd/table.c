/* table.c - the list of all ops, for tests and documentation. */
#include "op.h"

#define OP(name)                &op_##name,
#define UNARY(name, ...)        OP(name)
#define UNARY_SCALAR(name, ...) OP(name)
#define BINARY(name, ...)       OP(name)
#define COMPARE(name, ...)      OP(name)
#define LOGICAL(name, ...)      OP(name)

const Op *const ag_ops[] = {
#include "../tensor/kernels/elementwise.def"
#include "ops.def"
    NULL,
};
