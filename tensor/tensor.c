/* tensor.c - the lifetime of a tensor: how it is made, shared, let go and freed.
 *
 * A Tensor is two allocations: a small struct with the shape and the strides, and a Storage with
 * the bytes. A view has its own struct and shares the storage. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static TENSOR_THREAD_LOCAL DType default_dtype = F32;
static TENSOR_THREAD_LOCAL uint32_t recording;

bool tensor_set_default_dtype(DType dtype) {
    if (!dtype_is_float(dtype))
        return tensor_fail("set_default_dtype: the type is %s: it must be float32 or float64",
                           tensor_dtype_name(dtype));
    default_dtype = dtype;
    return true;
}

DType tensor_default_dtype(void) { return default_dtype; }

/* ---- lifetime ------------------------------------------------------------------------------ */

void *tensor_out_of_memory(int64_t bytes) {
    return tensor_fail("out of memory: %lld byte%s", (long long)bytes, bytes == 1 ? "" : "s");
}

/* Up to FEW bytes are in one block with their Storage, after its header: one allocation instead of
 * two. More bytes have a block of their own, which can be freed before the Storage (tensor_let_go).
 */
enum { STORAGE_HEADER = 64, FEW = 16384 - STORAGE_HEADER };
_Static_assert(sizeof(Storage) <= STORAGE_HEADER, "the elements must stay aligned");

static int64_t storage_block(int64_t size) { return STORAGE_HEADER + (size <= FEW ? size : 0); }

static Storage *storage_new(int64_t size) {
    Storage *storage = tensor_cache_alloc(storage_block(size));
    void *bytes = storage ? (char *)storage + STORAGE_HEADER : NULL;
    if (storage && size > FEW) bytes = tensor_cache_alloc(size);
    if (bytes) *storage = (Storage){.bytes = bytes, .size = size, .refs = 1};
    else tensor_cache_free(storage, storage_block(size));
    return bytes ? storage : NULL;
}

/* Frees the bytes if every tensor of the storage was let go and no backward will read them. */
static void storage_forget(Storage *storage) {
    if (storage->let_go < storage->refs || storage->readers > 0 || !storage->bytes) return;
    if (storage->size > FEW) tensor_cache_free(storage->bytes, storage->size);
    storage->bytes = NULL;
}

static void storage_release(Storage *storage) {
    storage->refs--;
    storage_forget(storage);
    if (storage->refs == 0) tensor_cache_free(storage, storage_block(storage->size));
}

void tensor_storage_read(Storage *storage, int readers) {
    if (!storage) return; /* of a loan that the program has released */
    storage->readers += readers;
    storage_forget(storage);
}

void tensor_let_go(Tensor *x) {
    if (x->let_go) return;
    x->let_go = true;
    x->storage->let_go++;
    storage_forget(x->storage);
}

/* A new tensor, which takes over the caller's reference to the storage, also on failure. */
static Tensor *tensor_of_storage(Storage *storage, Shape shape, const int64_t *stride,
                                 DType dtype) {
    Tensor *x = storage ? tensor_struct_new() : NULL;
    if (!x && storage) storage_release(storage);
    if (!x) return NULL;
    *x = (Tensor){shape, .dtype = dtype, .data = storage->bytes, .storage = storage, .refs = 1};
    memcpy(x->stride, stride, sizeof x->stride);
    tensor_count_live(1);
    return x;
}

/* The number of bytes must fit an int64_t, with a size of 0 counted as 1, so that the strides fit
 * as well. */
static bool check_shape(Shape shape, DType dtype) {
    if (shape.ndim < 0 || shape.ndim > TENSOR_MAX_DIMS)
        return tensor_fail("shape: %d dimensions: there may be 0 to %d", shape.ndim,
                           TENSOR_MAX_DIMS);
    for (int d = 0; d < shape.ndim; d++)
        if (shape.dim[d] < 0)
            return tensor_fail("shape %s: a size must not be negative", tensor_shape_text(shape));
    return tensor_shape_fits(shape, dtype_size(dtype)) ||
           tensor_fail("shape %s: its bytes do not fit in memory", tensor_shape_text(shape));
}

Tensor *tensor_make(Shape shape, DType dtype) {
    int64_t stride[TENSOR_MAX_DIMS] = {0};
    if (!check_shape(shape, dtype)) return NULL;
    tensor_shape_strides(shape, stride);
    Storage *storage = storage_new(tensor_shape_numel(shape) * dtype_size(dtype));
    return tensor_of_storage(storage, shape, stride, dtype);
}

Tensor *tensor_view_make(const Tensor *x, Shape shape, const int64_t *stride, void *data) {
    if (!tensor_shape_fits(shape, 1)) /* an expanded view could have more than 2^63 elements */
        return tensor_fail("shape %s: its elements cannot be counted", tensor_shape_text(shape));
    x->storage->refs++;
    Tensor *view = tensor_of_storage(x->storage, shape, stride, x->dtype);
    if (view) view->data = data;
    return view;
}

Tensor *tensor_retain(Tensor *x) {
    if (x && x->refs == 0) return tensor_fail("retain: the tensor was let go");
    if (x) x->refs++;
    return x;
}

/* A loop, because releasing must not recurse: a freed tensor releases its gradient, which has no
 * gradient of its own. */
void tensor_release(Tensor *x) {
    if (x && x->refs == 0)
        tensor_fail("release: the tensor was let go already: a release too many, or one of a loan, "
                    "which the tape releases");
    while (x && x->refs > 0 && --x->refs == 0) {
        Tensor *grad = x->grad;
        x->storage->let_go -= x->let_go;
        storage_release(x->storage);
        x->let_go = true;
        x->storage = NULL;
        x->data = NULL;
        tensor_struct_free(x);
        tensor_count_live(-1);
        x = grad;
    }
}

void tensor_set_recording(uint32_t tape) { recording = tape; }

uint32_t tensor_recording(void) { return recording; }

void tensor_written(Tensor *x, const char *by) {
    x->storage->version++;
    x->storage->written_by = by;
}

/* ---- checks -------------------------------------------------------------------------------- */

int64_t tensor_numel(const Tensor *x) { return x ? tensor_shape_numel(x->shape) : 0; }

bool tensor_check_argument(const char *function, const char *what, const Tensor *x) {
    if (!x) return tensor_fail("%s: %s is NULL", function, what);
    return !x->let_go || tensor_fail("%s: %s was let go, and its elements with it", function, what);
}

bool tensor_check_readable(const char *function, const Tensor *x) {
    return tensor_check_argument(function, "the tensor", x);
}
