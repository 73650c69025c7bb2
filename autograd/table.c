/* table.c - the table of all ops: the rows of elementwise.def and ops.def become Ops, and the list
 * of these that tests and documentation walk. */
#include "op.h"

/* What an elementwise row may read, in its own letters. */
enum { NOTHING, X = READS_IN0, A = READS_IN0, B = READS_IN1, Y = READS_OUT, OTHER = READS_OTHER };
enum { DY_IS_DX = HANDS_ON0, DY_IS_DA = HANDS_ON0, DY_IS_DB = HANDS_ON1 };

#define DEFINE(op, ...) const Op ag_op_##op = {.name = #op, __VA_ARGS__};
#define ELEMENTWISE(op, torch, mask, lo, hi, ...)                                                  \
    DEFINE(op, .grad_fn = torch, .reads = mask, .row = ELEMENTWISE_##op, .low = lo, .high = hi,    \
           .forward = ag_elementwise_forward, .backward = ag_elementwise_backward, __VA_ARGS__)

/* What the README says stays out of the library: tests/docs.c reads the same rows. */
#define UNARY(op, formula, gradient, source, types, torch, value, vjp, mask, lo, hi)               \
    ELEMENTWISE(op, torch, mask, lo, hi, .in = {{"x", types}})
#define BINARY(op, formula, gradient, source, types, torch, value, da, db, mask, lo, hi)           \
    ELEMENTWISE(op, torch, mask, lo, hi, .in = {{"a", types}, {"b", types}})
#define COMPARE(op, formula, value)                                                                \
    DEFINE(op, .row = ELEMENTWISE_##op, .low = -2, .high = 2, .forward = ag_elementwise_forward,   \
           .in = {{"a", SAME}, {"b", SAME}})
#define OP_NO_GRAD(op, arguments, shapes, formula, gradient, source, fw, ...)                      \
    DEFINE(op, .forward = ag_##fw, .in = {__VA_ARGS__})
#define OP(op, arguments, shapes, formula, gradient, source, torch, fw, bw, mask, ...)             \
    DEFINE(op, .grad_fn = torch, .forward = ag_##fw, .backward = ag_##bw, .reads = mask,           \
           .in = {__VA_ARGS__})
#include "../tensor/kernels/elementwise.def"
#include "ops.def"

const Op *const ag_ops[] = {
#define EACH(op)            &ag_op_##op,
#define OP_NO_GRAD(op, ...) EACH(op)
#define OP(op, ...)         EACH(op)
#include "../tensor/kernels/elementwise.def"
#include "ops.def"
    NULL,
};
