/* numbers.c - bounds, and comparisons with a number or with NaN. */
#include "../op.h"

OP_TEXT(clamp) = {
    .call = "ag_clamp(x, low, high)",
    .shapes = "(...) -> same",
    .value = "min(max(x, low), high)",
    .gradient = "dy where low < x < high, exactly 0 elsewhere",
};

Tensor *ag_clamp(Tensor *x, double low, double high) {
    if (!ag_check_ready("clamp", x)) return NULL;
    return made_by("ClampBackward1", ag_clamp_max(ag_clamp_min(x, low), high));
}

/* ---- comparisons with a number -------------------------------------------------------------- */

/* The number as a scalar of x's type, owned by the tape. An error if the type cannot hold it. */
static Tensor *number_like(const char *op, Tensor *x, double number) {
    if (!ag_check_ready(op, x)) return NULL;
    if (x->dtype == BOOL)
        return tensor_fail(
            "%s: x is bool: it must be float32, float64 or int64; convert it with ag_to", op);
    if (!tensor_check_number(op, x->dtype, number) || !tensor_check_value(op, x->dtype, number))
        return NULL;
    Tensor *scalar = tensor_make(SCALAR, x->dtype);
    if (scalar) tensor_fill_elements(scalar, number);
    return tape_own(scalar);
}

#define COMPARE(op, sign)                                                                          \
    OP_TEXT(op##_scalar) = {.call = "ag_" #op "_scalar(x, s)",                                     \
                            .shapes = "(...) -> same",                                             \
                            .value = "x " sign " s",                                               \
                            .gradient = "none: the result is bool"};

COMPARE(eq, "==")
Tensor *ag_eq_scalar(Tensor *x, double s) { return ag_eq(x, number_like("eq_scalar", x, s)); }

COMPARE(ne, "!=")
Tensor *ag_ne_scalar(Tensor *x, double s) { return ag_ne(x, number_like("ne_scalar", x, s)); }

COMPARE(lt, "<")
Tensor *ag_lt_scalar(Tensor *x, double s) { return ag_lt(x, number_like("lt_scalar", x, s)); }

COMPARE(le, "<=")
Tensor *ag_le_scalar(Tensor *x, double s) { return ag_le(x, number_like("le_scalar", x, s)); }

COMPARE(gt, ">")
Tensor *ag_gt_scalar(Tensor *x, double s) { return ag_gt(x, number_like("gt_scalar", x, s)); }

COMPARE(ge, ">=")
Tensor *ag_ge_scalar(Tensor *x, double s) { return ag_ge(x, number_like("ge_scalar", x, s)); }

OP_TEXT(isnan) = {
    .call = "ag_isnan(x)",
    .shapes = "(...) -> same",
    .value = "x != x",
    .gradient = "none: the result is bool",
};

Tensor *ag_isnan(Tensor *x) { return ag_check_ready("isnan", x) ? ag_ne(x, x) : NULL; }
