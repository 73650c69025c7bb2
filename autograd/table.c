/* table.c - the list of all ops, which the tests and the documentation walk. */
#include "op.h"

const Op *const ag_ops[] = {
#define EACH(name) &ag_op_##name,
#define OP(name)   EACH(name)
#include "../tensor/kernels/elementwise.def"
#include "ops.def"
    NULL,
};
