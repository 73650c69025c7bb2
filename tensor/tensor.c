/* tensor.c - the life of a tensor: how it is made, shared, read, written and let go.
 *
 * A Tensor and its bytes are two allocations: the small struct that says how to look, and the
 * Storage that is looked at. Views have their own struct and share the storage. */
#include "internal.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded false
#endif

/* Tensors alive in all threads. A machine word: an ARMv6 has no atomic numbers of 8 bytes. */
static atomic_long live;
static _Thread_local DType default_dtype = F32;

bool tensor_set_default_dtype(DType dtype) {
    if (!dtype_is_float(dtype))
        return tensor_fail("set_default_dtype: the type is %s: it must be float32 or float64",
                           tensor_dtype_name(dtype));
    default_dtype = dtype;
    return true;
}

DType tensor_default_dtype(void) { return default_dtype; }

/* ---- lifetime ------------------------------------------------------------------------------ */

/* A few bytes stand behind their Storage, which takes one alignment unit: that is a block less to
 * ask for, and they stay as long as it does. More are a block of their own, which can be let go
 * before the tensors that looked at it. */
enum { STORAGE_HEADER = 64, FEW = 16384 - STORAGE_HEADER };
_Static_assert(sizeof(Storage) <= STORAGE_HEADER, "the elements must stay aligned");

static int64_t storage_block(int64_t size) { return STORAGE_HEADER + (size <= FEW ? size : 0); }

static Storage *storage_new(int64_t size) {
    Storage *storage = cache_alloc(storage_block(size));
    void *bytes = storage ? (char *)storage + STORAGE_HEADER : NULL;
    if (storage && size > FEW) bytes = cache_alloc(size);
    if (bytes) *storage = (Storage){.bytes = bytes, .size = size, .refs = 1};
    else cache_free(storage, storage_block(size));
    return bytes ? storage : NULL;
}

/* Gives bytes back that nobody will look at again. */
static void storage_forget(Storage *storage) {
    if (storage->let_go < storage->refs || storage->readers > 0 || !storage->bytes) return;
    if (storage->size > FEW) cache_free(storage->bytes, storage->size);
    storage->bytes = NULL;
}

static void storage_release(Storage *storage) {
    storage->refs--;
    storage_forget(storage);
    if (storage->refs == 0) cache_free(storage, storage_block(storage->size));
}

void storage_read(Storage *storage, int readers) {
    storage->readers += readers;
    storage_forget(storage);
}

void tensor_let_go(Tensor *x) {
    if (!x->let_go) x->storage->let_go++;
    x->let_go = true;
    storage_forget(x->storage);
}

/* An atomic addition takes a good part of the time that a small tensor does, and nobody adds
 * between a read and a write of the only thread. */
static void count_live(int change) {
    if (__libc_single_threaded)
        atomic_store_explicit(&live, tensor_live() + change, memory_order_relaxed);
    else atomic_fetch_add_explicit(&live, change, memory_order_relaxed);
}

/* The tensor takes the caller's reference to the storage, also when it cannot be made. */
static Tensor *look_at(Storage *storage, Shape shape, const int64_t *stride, DType dtype) {
    Tensor *x = storage ? cache_alloc(sizeof *x) : NULL;
    if (!x && storage) storage_release(storage);
    if (!x) return NULL;
    *x = (Tensor){shape, .dtype = dtype, .data = storage->bytes, .storage = storage, .refs = 1};
    memcpy(x->stride, stride, sizeof x->stride);
    count_live(1);
    return x;
}

static void *cannot_be_made(Shape shape) {
    if (shape.ndim < 0 || shape.ndim > TENSOR_MAX_DIMS)
        return tensor_fail("shape: %d dimensions: there may be 0 to %d", shape.ndim,
                           TENSOR_MAX_DIMS);
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] < 0)
            return tensor_fail("shape %s: a size must not be negative", tensor_shape_text(shape));
    return tensor_fail("shape %s: its bytes do not fit in memory", tensor_shape_text(shape));
}

/* Row-major. A size of 0 counts as 1 in what must fit, since the strides must, too. */
Tensor *tensor_make(Shape shape, DType dtype) {
    int64_t stride[TENSOR_MAX_DIMS] = {0}, numel = 1, bytes;
    bool fits = shape.ndim >= 0 && shape.ndim <= TENSOR_MAX_DIMS, empty = false;
    for (int left = shape.ndim; left > 0 && fits; left--) {
        const int d = left - 1;
        const int64_t size = shape.dim[d];
        stride[d] = numel;
        empty = empty || size == 0;
        fits = size >= 0 && !__builtin_mul_overflow(numel, size ? size : 1, &numel);
    }
    if (!fits || __builtin_mul_overflow(numel, dtype_size(dtype), &bytes))
        return cannot_be_made(shape);
    return look_at(storage_new(empty ? 0 : bytes), shape, stride, dtype);
}

Tensor *view_make(const Tensor *x, Shape shape, const int64_t *stride, void *data) {
    if (!shape_fits(shape, 1)) /* a view can be expanded beyond what its bytes could be */
        return tensor_fail("shape %s: its elements cannot be counted", tensor_shape_text(shape));
    x->storage->refs++;
    Tensor *view = look_at(x->storage, shape, stride, x->dtype);
    if (view) view->data = data;
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
        x->storage->let_go -= x->let_go;
        storage_release(x->storage);
        cache_free(x, sizeof *x);
        count_live(-1);
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
    bool fits = dtype != F32 || !isfinite(value) || fabs(value) <= (double)FLT_MAX;
    if (dtype == I64) fits = value >= -0x1p63 && value < 0x1p63;
    return fits || tensor_fail("%s: %s cannot hold %g", op, tensor_dtype_name(dtype), value);
}

bool number_fits(const char *op, DType dtype, double number) {
    if (dtype_is_float(dtype)) return true;
    if (value_fits(op, dtype, number) && number == trunc(number)) return true;
    return tensor_fail(
        "%s: x is %s and the number is %g: it must be whole; convert x with tensor_to", op,
        tensor_dtype_name(dtype), number);
}

/* Is it one of the four? */
static bool is_dtype(const char *op, DType dtype) {
    return (unsigned)dtype <= BOOL || tensor_fail("%s: %d is not a type", op, (int)dtype);
}

Tensor *tensor_empty_of(Shape shape, DType dtype) {
    return is_dtype("empty", dtype) ? tensor_make(shape, dtype) : NULL;
}

Tensor *tensor_full_of(Shape shape, double value, DType dtype) {
    if (!is_dtype("full", dtype) || !value_fits("full", dtype, value)) return NULL;
    Tensor *x = tensor_make(shape, dtype);
    if (x) fill_elements(x, value);
    return x;
}

Tensor *tensor_zeros_of(Shape shape, DType dtype) { return tensor_full_of(shape, 0, dtype); }
Tensor *tensor_ones_of(Shape shape, DType dtype) { return tensor_full_of(shape, 1, dtype); }

Tensor *tensor_full(Shape shape, double value) {
    return tensor_full_of(shape, value, default_dtype);
}
Tensor *tensor_zeros(Shape shape) { return tensor_full(shape, 0); }
Tensor *tensor_ones(Shape shape) { return tensor_full(shape, 1); }

Tensor *tensor_zeros_like(const Tensor *x) {
    return given("zeros_like", "tensor", x) ? tensor_zeros_of(x->shape, x->dtype) : NULL;
}
Tensor *tensor_ones_like(const Tensor *x) {
    return given("ones_like", "tensor", x) ? tensor_ones_of(x->shape, x->dtype) : NULL;
}

static bool arange_fits(double start, double end, double step, DType dtype) {
    const double count = ceil((end - start) / step);
    if (!is_dtype("arange", dtype)) return false;
    if (dtype == BOOL)
        return tensor_fail("arange: the type is bool: it must be float32, float64 or int64");
    if (dtype == I64 && (start != trunc(start) || step != trunc(step)))
        return tensor_fail("arange: from %g in steps of %g: of int64 both must be whole", start,
                           step);
    if (dtype == I64 && !(value_fits("arange", I64, start) && value_fits("arange", I64, end)))
        return false;
    return (step != 0 && count >= 0 && count < 0x1p62) ||
           tensor_fail("arange: from %g to %g in steps of %g: the step must lead from start to end",
                       start, end, step);
}

Tensor *tensor_arange_of(double start, double end, double step, DType dtype) {
    if (!arange_fits(start, end, step, dtype)) return NULL;
    Tensor *x = tensor_make(SHAPE((int64_t)ceil((end - start) / step)), dtype);
    const Tensor first = {.dtype = F64, .data = &start};
    if (x) loop_rows(kernels()->arange[dtype], 2, (const Tensor *[]){x, &first}, step);
    return x;
}

Tensor *tensor_arange(double start, double end, double step) {
    return tensor_arange_of(start, end, step, default_dtype);
}

Tensor *tensor_eye(int64_t n) {
    Tensor *x = tensor_zeros(SHAPE(n, n));
    if (!x) return NULL;
    Tensor diagonal = *x;
    diagonal.shape = SHAPE(n);
    diagonal.stride[0] = n + 1;
    fill_elements(&diagonal, 1);
    return x;
}

static Tensor *from_elements(Shape shape, DType from, const void *elements) {
    static const char *const op[] = {"from_floats", "from_doubles", "from_int64s", "from_bools"};
    Tensor *x = tensor_make(shape, dtype_is_float(from) ? default_dtype : from);
    if (!x || (tensor_numel(x) > 0 && !given(op[from], "array", elements))) {
        tensor_release(x);
        return NULL;
    }
    Tensor source = *x; /* looks at the caller's array as x's shape */
    source.dtype = from;
    source.data = (void *)(uintptr_t)elements;
    copy_elements(x, &source);
    return x;
}

Tensor *tensor_from_doubles(Shape shape, const double *x) { return from_elements(shape, F64, x); }
Tensor *tensor_from_floats(Shape shape, const float *x) { return from_elements(shape, F32, x); }
Tensor *tensor_from_int64s(Shape shape, const int64_t *x) { return from_elements(shape, I64, x); }
Tensor *tensor_from_bools(Shape shape, const bool *x) { return from_elements(shape, BOOL, x); }

/* ---- copies -------------------------------------------------------------------------------- */

Tensor *tensor_clone(const Tensor *x) {
    return readable("clone", x) ? tensor_convert(x, x->dtype) : NULL;
}

Tensor *tensor_to(const Tensor *x, DType dtype) {
    if (!readable("to", x)) return NULL;
    return is_dtype("to", dtype) ? tensor_convert(x, dtype) : NULL;
}

/* ---- access -------------------------------------------------------------------------------- */

int64_t tensor_numel(const Tensor *x) { return x ? shape_numel(x->shape) : 0; }

bool readable(const char *function, const Tensor *x) {
    if (!given(function, "tensor", x)) return false;
    return !x->let_go ||
           tensor_fail("%s: the tensor was let go, and its elements with it", function);
}

double tensor_item(const Tensor *x) {
    if (readable("item", x) && tensor_numel(x) == 1) return read_element(x, 0);
    if (x) tensor_fail("item: x is %s: it must have one element", tensor_shape_text(x->shape));
    return (double)NAN;
}

bool find_element(const char *op, const Tensor *x, Shape index, int64_t *offset) {
    bool inside = index.ndim == x->shape.ndim;
    *offset = 0;
    for (int d = 0; d < index.ndim && inside; d++) {
        int64_t i = index.dim[d] < 0 ? index.dim[d] + x->shape.dim[d] : index.dim[d];
        inside = i >= 0 && i < x->shape.dim[d];
        if (inside) *offset += i * x->stride[d];
    }
    return inside || tensor_fail("%s: there is no element %s in x, which is %s", op,
                                 tensor_shape_text(index), tensor_shape_text(x->shape));
}

double tensor_get_at(const Tensor *x, Shape index) {
    int64_t offset;
    if (!readable("get", x) || !find_element("get", x, index, &offset)) return (double)NAN;
    return read_element(x, offset);
}

bool tensor_to_doubles(const Tensor *x, double *out) {
    if (!readable("to_doubles", x)) return false;
    if (!out && tensor_numel(x) > 0) return tensor_fail("to_doubles: out is NULL");
    Tensor target = {.shape = x->shape, .dtype = F64, .data = out};
    shape_strides(x->shape, target.stride);
    copy_elements(&target, x);
    return true;
}
