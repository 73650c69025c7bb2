/* create.c - makes tensors from numbers, and copies and converts tensors. */
#include "operations.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- creation ------------------------------------------------------------------------------ */

Tensor *tensor_empty(Shape shape) { return tensor_make(shape, tensor_default_dtype()); }

bool tensor_check_value(const char *op, DType dtype, double value) {
    bool fits = dtype != F32 || !isfinite(value) || fabs(value) <= (double)FLT_MAX;
    if (dtype == I64) fits = value >= -0x1p63 && value < 0x1p63;
    return fits || tensor_fail("%s: %s cannot hold %g", op, tensor_dtype_name(dtype), value);
}

bool tensor_check_not_negative(const char *op, const char *what, double number) {
    if (isnan(number)) return tensor_fail("%s: %s is nan: it must be a number", op, what);
    return number >= 0 || tensor_fail("%s: %s is %.15g: it must not be negative", op, what, number);
}

bool tensor_check_number(const char *op, DType dtype, double number) {
    if (dtype_is_float(dtype)) return true;
    if (tensor_check_value(op, dtype, number) && number == trunc(number)) return true;
    return tensor_fail(
        "%s: x is %s and the number is %g: it must be whole; convert x with tensor_to", op,
        tensor_dtype_name(dtype), number);
}

/* Is dtype one of the four types? */
static bool check_dtype(const char *op, DType dtype) {
    return (unsigned)dtype <= BOOL || tensor_fail("%s: %d is not a type", op, (int)dtype);
}

Tensor *tensor_empty_of(Shape shape, DType dtype) {
    return check_dtype("empty", dtype) ? tensor_make(shape, dtype) : NULL;
}

Tensor *tensor_full_of(Shape shape, double value, DType dtype) {
    if (!check_dtype("full", dtype) || !tensor_check_value("full", dtype, value)) return NULL;
    Tensor *x = tensor_make(shape, dtype);
    if (x) tensor_fill_elements(x, value);
    return x;
}

Tensor *tensor_zeros_of(Shape shape, DType dtype) { return tensor_full_of(shape, 0, dtype); }
Tensor *tensor_ones_of(Shape shape, DType dtype) { return tensor_full_of(shape, 1, dtype); }

Tensor *tensor_full(Shape shape, double value) {
    return tensor_full_of(shape, value, tensor_default_dtype());
}
Tensor *tensor_zeros(Shape shape) { return tensor_full(shape, 0); }
Tensor *tensor_ones(Shape shape) { return tensor_full(shape, 1); }

Tensor *tensor_zeros_like(const Tensor *x) {
    return tensor_check_given("zeros_like", "tensor", x) ? tensor_zeros_of(x->shape, x->dtype)
                                                         : NULL;
}
Tensor *tensor_ones_like(const Tensor *x) {
    return tensor_check_given("ones_like", "tensor", x) ? tensor_ones_of(x->shape, x->dtype) : NULL;
}

static bool check_arange(double start, double end, double step, DType dtype) {
    const double count = ceil((end - start) / step);
    if (!check_dtype("arange", dtype)) return false;
    if (dtype == BOOL)
        return tensor_fail("arange: the type is bool: it must be float32, float64 or int64");
    if (dtype == I64 && (start != trunc(start) || step != trunc(step)))
        return tensor_fail("arange: from %g in steps of %g: for int64, start and step "
                           "must be whole",
                           start, step);
    if (dtype == I64 &&
        !(tensor_check_value("arange", I64, start) && tensor_check_value("arange", I64, end)))
        return false;
    const char *rule = "the step must lead from start to end";
    if (step != 0 && count >= 0 && count < 0x1p62) return true;
    if (step != 0 && count > 0) rule = "there may be at most 2^62 elements";
    if (!isfinite(start) || !isfinite(end) || isnan(step))
        rule = "start and end must be finite, and the step a number";
    return tensor_fail("arange: from %g to %g in steps of %g: %s", start, end, step, rule);
}

Tensor *tensor_arange_of(double start, double end, double step, DType dtype) {
    if (!check_arange(start, end, step, dtype)) return NULL;
    Tensor *x = tensor_make(SHAPE((int64_t)ceil((end - start) / step)), dtype);
    Number memory;
    const Tensor first = tensor_scalar(F64, start, &memory);
    if (x)
        tensor_loop_rows(tensor_kernels()->arange[dtype], 0, 2, (const Tensor *[]){x, &first},
                         step);
    return x;
}

Tensor *tensor_arange(double start, double end, double step) {
    return tensor_arange_of(start, end, step, tensor_default_dtype());
}

Tensor *tensor_eye(int64_t n) {
    Tensor *x = tensor_zeros(SHAPE(n, n));
    if (!x) return NULL;
    Tensor diagonal = *x;
    diagonal.shape = SHAPE(n);
    diagonal.stride[0] = n + 1;
    tensor_fill_elements(&diagonal, 1);
    return x;
}

static Tensor *from_elements(Shape shape, DType from, const void *elements) {
    static const char *const op[] = {"from_floats", "from_doubles", "from_int64s", "from_bools"};
    Tensor *x = tensor_make(shape, dtype_is_float(from) ? tensor_default_dtype() : from);
    if (!x || (tensor_numel(x) > 0 && !tensor_check_given(op[from], "array", elements))) {
        tensor_release(x);
        return NULL;
    }
    Tensor source = *x; /* a view of the caller's array in x's shape */
    source.dtype = from;
    source.data = (void *)(uintptr_t)elements;
    tensor_copy_elements(x, &source);
    return x;
}

Tensor *tensor_from_doubles(Shape shape, const double *x) { return from_elements(shape, F64, x); }
Tensor *tensor_from_floats(Shape shape, const float *x) { return from_elements(shape, F32, x); }
Tensor *tensor_from_int64s(Shape shape, const int64_t *x) { return from_elements(shape, I64, x); }
Tensor *tensor_from_bools(Shape shape, const bool *x) { return from_elements(shape, BOOL, x); }

/* ---- copies -------------------------------------------------------------------------------- */

Tensor *tensor_clone(const Tensor *x) {
    return tensor_check_readable("clone", x) ? tensor_convert(x, x->dtype) : NULL;
}

Tensor *tensor_to(const Tensor *x, DType dtype) {
    if (!tensor_check_readable("to", x)) return NULL;
    return check_dtype("to", dtype) ? tensor_convert(x, dtype) : NULL;
}
