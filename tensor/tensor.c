/* tensor.c - the life of a tensor: how it is made, shared, read, written and let go.
 *
 * A Tensor and its bytes are two allocations: the small struct that says how to look, and the
 * Storage that is looked at. Views have their own struct and share the storage. */
#include "internal.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

static atomic_llong live; /* tensors alive in all threads */
static _Thread_local DType default_dtype = F32;

size_t dtype_size(DType dtype) {
    static const size_t size[] = {sizeof(float), sizeof(double), sizeof(int64_t), sizeof(bool)};
    return size[dtype];
}

bool tensor_set_default_dtype(DType dtype) {
    if (!dtype_is_float(dtype)) {
        tensor_fail("set_default_dtype: the type is %s: it must be float32 or float64",
                    tensor_dtype_name(dtype));
        return false;
    }
    default_dtype = dtype;
    return true;
}

DType tensor_default_dtype(void) { return default_dtype; }

/* ---- lifetime ------------------------------------------------------------------------------ */

/* A Storage and its bytes are one block: the header takes one alignment unit in front. */
enum { STORAGE_HEADER = 64 };
_Static_assert(sizeof(Storage) <= STORAGE_HEADER, "the elements must stay aligned");

static Storage *storage_new(int64_t size) {
    Storage *storage = cache_alloc((size_t)size + STORAGE_HEADER);
    if (storage) *storage = (Storage){(char *)storage + STORAGE_HEADER, size, 1, 0, NULL};
    return storage;
}

static void storage_release(Storage *storage) {
    if (storage && --storage->refs == 0)
        cache_free(storage, (size_t)storage->size + STORAGE_HEADER);
}

static Tensor *header_new(Shape shape, DType dtype) {
    Tensor *x = cache_alloc(sizeof *x);
    if (!x) return NULL;
    memset(x, 0, sizeof *x);
    x->shape = shape;
    x->dtype = dtype;
    x->refs = 1;
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return x;
}

/* The bytes of a shape, or -1 with an error. */
static int64_t shape_bytes(Shape shape, DType dtype) {
    const int64_t size = (int64_t)dtype_size(dtype);
    for (int d = 0; d < shape.ndim; d++) {
        if (shape.dim[d] >= 0) continue;
        tensor_fail("shape %s: a size must not be negative", tensor_shape_text(shape));
        return -1;
    }
    if (shape_fits(shape, size)) return shape_numel(shape) * size;
    tensor_fail("shape %s: its bytes do not fit in memory", tensor_shape_text(shape));
    return -1;
}

Tensor *tensor_make(Shape shape, DType dtype) {
    if (tensor_pending()) return NULL;
    if (shape.ndim < 0 || shape.ndim > TENSOR_MAX_DIMS)
        return tensor_fail("shape: %d dimensions: there may be 0 to %d", shape.ndim,
                           TENSOR_MAX_DIMS);
    int64_t bytes = shape_bytes(shape, dtype);
    Tensor *x = bytes < 0 ? NULL : header_new(shape, dtype);
    if (!x) return NULL;
    x->storage = storage_new(bytes);
    if (!x->storage) {
        tensor_release(x);
        return NULL;
    }
    x->data = x->storage->bytes;
    shape_strides(shape, x->stride);
    return x;
}

Tensor *view_make(const Tensor *x, Shape shape, const int64_t *stride, void *data) {
    if (!shape_fits(shape, 1)) /* a view can be expanded beyond what its bytes could be */
        return tensor_fail("shape %s: its elements cannot be counted", tensor_shape_text(shape));
    Tensor *view = tensor_pending() ? NULL : header_new(shape, x->dtype);
    if (!view) return NULL;
    memcpy(view->stride, stride, sizeof view->stride);
    view->data = data;
    view->storage = x->storage;
    view->storage->refs++;
    return view;
}

Tensor *tensor_retain(Tensor *x) {
    if (x) x->refs++;
    return x;
}

/* A gradient has no gradient of its own, so this is a loop of at most two or three turns and never
 * recurses. */
void tensor_release(Tensor *x) {
    while (x && --x->refs == 0) {
        Tensor *grad = x->grad;
        storage_release(x->storage);
        cache_free(x, sizeof *x);
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        x = grad;
    }
}

int64_t tensor_live(void) { return atomic_load_explicit(&live, memory_order_relaxed); }

void tensor_written(Tensor *x, const char *by) {
    x->storage->version++;
    x->storage->written_by = by;
}

/* ---- creation ------------------------------------------------------------------------------ */

Tensor *tensor_empty(Shape shape) { return tensor_make(shape, default_dtype); }

bool value_fits(const char *op, DType dtype, double value) {
    const bool fits = dtype == F32   ? !isfinite(value) || fabs(value) <= (double)FLT_MAX
                      : dtype == I64 ? value >= -0x1p63 && value < 0x1p63
                                     : true;
    if (!fits) tensor_fail("%s: %s cannot hold %g", op, tensor_dtype_name(dtype), value);
    return fits;
}

bool number_fits(const char *op, DType dtype, double number) {
    if (dtype_is_float(dtype)) return true;
    if (!value_fits(op, dtype, number)) return false;
    if (number == trunc(number)) return true;
    return tensor_fail(
               "%s: x is %s and the number is %g: it must be whole; convert x with tensor_to", op,
               tensor_dtype_name(dtype), number) != NULL;
}

/* Writes the number to every element, converted to x's type. */
static void fill(Tensor *x, double value) {
    Tensor number = {.dtype = F64, .data = &value};
    copy_elements(x, &number);
}

Tensor *tensor_full(Shape shape, double value) {
    Tensor *x = value_fits("full", default_dtype, value) ? tensor_empty(shape) : NULL;
    if (x) fill(x, value);
    return x;
}

Tensor *tensor_zeros(Shape shape) { return tensor_full(shape, 0); }
Tensor *tensor_ones(Shape shape) { return tensor_full(shape, 1); }

Tensor *tensor_arange(double start, double end, double step) {
    double count = ceil((end - start) / step);
    if (!(step != 0 && count >= 0 && count < 0x1p62))
        return tensor_fail(
            "arange: from %g to %g in steps of %g: the step must lead from start to end", start,
            end, step);
    Tensor *x = tensor_empty(SHAPE((int64_t)count));
    if (x)
        kernels()->arange[x->dtype](x->shape.dim[0], (void *[]){x->data, &start}, (int64_t[]){1, 0},
                                    step);
    return x;
}

Tensor *tensor_eye(int64_t n) {
    Tensor *x = tensor_zeros(SHAPE(n, n));
    if (!x) return NULL;
    Tensor diagonal = *x;
    diagonal.shape = SHAPE(n);
    diagonal.stride[0] = n + 1;
    fill(&diagonal, 1);
    return x;
}

static Tensor *from_elements(Shape shape, DType from, const void *elements, DType to) {
    Tensor *x = tensor_make(shape, to);
    if (!x) return NULL;
    Tensor source = *x; /* looks at the caller's array as x's shape */
    source.dtype = from;
    source.data = (void *)(uintptr_t)elements;
    if (elements || tensor_numel(x) == 0) {
        copy_elements(x, &source);
        return x;
    }
    tensor_release(x);
    static const char *const of[] = {"floats", "doubles", "int64s", "bools"};
    return tensor_fail("from_%s: the array is NULL", of[from]);
}

Tensor *tensor_from_doubles(Shape shape, const double *elements) {
    return from_elements(shape, F64, elements, default_dtype);
}
Tensor *tensor_from_floats(Shape shape, const float *elements) {
    return from_elements(shape, F32, elements, default_dtype);
}
Tensor *tensor_from_int64s(Shape shape, const int64_t *elements) {
    return from_elements(shape, I64, elements, I64);
}
Tensor *tensor_from_bools(Shape shape, const bool *elements) {
    return from_elements(shape, BOOL, elements, BOOL);
}

/* ---- copies -------------------------------------------------------------------------------- */

/* The function's own word on a NULL argument, when no earlier error explains it. */
static bool present(const char *function, const Tensor *x) {
    if (!x) tensor_fail("%s: the tensor is NULL", function);
    return x != NULL;
}

Tensor *tensor_convert(const Tensor *x, DType dtype) {
    Tensor *y = tensor_make(x->shape, dtype);
    if (y) copy_elements(y, x);
    return y;
}

void copy_elements(Tensor *to, const Tensor *from) {
    loop_elements(kernels()->convert[to->dtype][from->dtype], 2, (const Tensor *[]){to, from}, 0);
}

Tensor *tensor_clone(const Tensor *x) {
    return present("clone", x) ? tensor_convert(x, x->dtype) : NULL;
}

Tensor *tensor_to(const Tensor *x, DType dtype) {
    if (!present("to", x)) return NULL;
    if ((unsigned)dtype > BOOL) return tensor_fail("to: %d is not a type", (int)dtype);
    return tensor_convert(x, dtype);
}

/* ---- access -------------------------------------------------------------------------------- */

int64_t tensor_numel(const Tensor *x) { return x ? shape_numel(x->shape) : 0; }

static double element(const Tensor *x, int64_t offset) {
    switch (x->dtype) {
    case F32: return (double)((const float *)x->data)[offset];
    case F64: return ((const double *)x->data)[offset];
    case I64: return (double)((const int64_t *)x->data)[offset];
    default: return ((const bool *)x->data)[offset];
    }
}

double tensor_item(const Tensor *x) {
    if (!present("item", x)) return (double)NAN;
    if (tensor_numel(x) == 1) return element(x, 0);
    tensor_fail("item: x is %s: it must have one element", tensor_shape_text(x->shape));
    return (double)NAN;
}

double tensor_get_at(const Tensor *x, Shape index) {
    if (!present("get", x)) return (double)NAN;
    bool inside = index.ndim == x->shape.ndim;
    int64_t offset = 0;
    for (int d = 0; d < index.ndim && inside; d++) {
        int64_t i = index.dim[d] < 0 ? index.dim[d] + x->shape.dim[d] : index.dim[d];
        inside = i >= 0 && i < x->shape.dim[d];
        if (inside) offset += i * x->stride[d];
    }
    if (inside) return element(x, offset);
    tensor_fail("get: there is no element %s in x, which is %s", tensor_shape_text(index),
                tensor_shape_text(x->shape));
    return (double)NAN;
}

bool tensor_to_doubles(const Tensor *x, double *out) {
    if (!present("to_doubles", x)) return false;
    if (!out && tensor_numel(x) > 0) return tensor_fail("to_doubles: out is NULL") != NULL;
    Tensor target = {.shape = x->shape, .dtype = F64, .data = out};
    shape_strides(x->shape, target.stride);
    copy_elements(&target, x);
    return true;
}

bool tensor_allclose(const Tensor *a, const Tensor *b, double rtol, double atol) {
    if (!a || !b || a->dtype != b->dtype || !shape_equal(a->shape, b->shape)) return false;
    int64_t far = 0;
    double tolerance[] = {rtol, atol};
    const Tensor count = {.shape = a->shape, .dtype = I64, .data = &far}; /* one place for all */
    const Tensor bounds = {.dtype = F64, .data = tolerance};
    loop_elements(kernels()->count_far[a->dtype], 4, (const Tensor *[]){&count, a, b, &bounds}, 0);
    return far == 0;
}

/* ---- writes in place ----------------------------------------------------------------------- */

static bool can_write(const char *op, const Tensor *x) {
    if (tensor_pending() || !present(op, x)) return false;
    if (has_repeats(x))
        return tensor_fail("%s: x is %s and expanded: several elements share one place", op,
                           tensor_shape_text(x->shape)) != NULL;
    return true;
}

static bool broadcasts_into(const char *op, const Tensor *x, const Tensor *y) {
    if (!present(op, y)) return false;
    Shape both;
    if (x->dtype != y->dtype)
        tensor_fail("%s: the types %s and %s must be equal", op, tensor_dtype_name(x->dtype),
                    tensor_dtype_name(y->dtype));
    else if (!shape_broadcast(x->shape, y->shape, &both) || !shape_equal(both, x->shape))
        tensor_fail("%s: %s cannot be broadcast to %s", op, tensor_shape_text(y->shape),
                    tensor_shape_text(x->shape));
    else return true;
    return false;
}

/* y, or a copy of it when a write to x could change y before it is read. Without a copy nothing is
 * allocated, so that an optimizer's last half, which only adds, cannot fail. */
static Tensor *apart(const Tensor *x, const Tensor *y) {
    bool same_view = x->data == y->data && shape_equal(x->shape, y->shape) &&
                     memcmp(x->stride, y->stride, sizeof x->stride) == 0;
    bool shared = x->storage == y->storage && !same_view;
    return shared ? tensor_clone(y) : tensor_retain((Tensor *)(uintptr_t)y);
}

bool tensor_copy_from(Tensor *dst, const Tensor *src) {
    if (!can_write("copy_from", dst) || !broadcasts_into("copy_from", dst, src)) return false;
    Tensor *source = apart(dst, src);
    if (!source) return false;
    copy_elements(dst, source);
    tensor_release(source);
    tensor_written(dst, "copy_from");
    return true;
}

bool tensor_fill(Tensor *x, double value) {
    if (!can_write("fill", x) || !value_fits("fill", x->dtype, value)) return false;
    fill(x, value);
    tensor_written(x, "fill");
    return true;
}

bool can_write_floats(const char *op, const Tensor *x) {
    if (!can_write(op, x)) return false;
    if (dtype_is_float(x->dtype)) return true;
    return tensor_fail("%s: x is %s: it must be a float", op, tensor_dtype_name(x->dtype)) != NULL;
}

/* Has x a type that can be multiplied, and by this number? */
static bool is_number(const char *op, const Tensor *x, double number) {
    if (x->dtype != BOOL) return number_fits(op, x->dtype, number);
    return tensor_fail("%s: x is bool: it must be float32, float64 or int64", op) != NULL;
}

bool tensor_add_(Tensor *x, const Tensor *y, double alpha) {
    if (!can_write("add_", x) || !is_number("add_", x, alpha) || !broadcasts_into("add_", x, y))
        return false;
    Tensor *term = apart(x, y);
    if (!term) return false;
    loop_elements(kernels()->add_scaled[x->dtype], 3, (const Tensor *[]){x, x, term}, alpha);
    tensor_release(term);
    tensor_written(x, "add_");
    return true;
}

bool tensor_mul_(Tensor *x, double factor) {
    if (!can_write("mul_", x) || !is_number("mul_", x, factor)) return false;
    LoopKernel scale = kernels()->value[ELEMENTWISE_scale][x->dtype];
    loop_elements(scale, 2, (const Tensor *[]){x, x}, factor);
    tensor_written(x, "mul_");
    return true;
}
