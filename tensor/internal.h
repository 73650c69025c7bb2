/* internal.h - storage and views, for tensor/ and autograd/. What computes with them is in
 * operations/operations.h. Every function that returns a Tensor * returns a new reference. */
#ifndef TAPEHEAD_TENSOR_INTERNAL_H
#define TAPEHEAD_TENSOR_INTERNAL_H

#include "shape.h"

#include <stdarg.h>

/* The bytes of a tensor, shared with its views. They are freed when every tensor was let go and no
 * backward will read them, or with the last tensor. */
typedef struct Storage {
    void *bytes;            /* NULL when they were freed before the last tensor */
    int64_t size;           /* in bytes */
    int refs;               /* how many tensors share the storage */
    int let_go;             /* how many of these tensors were let go */
    int readers;            /* how many nodes on the tape will read the bytes in backward */
    uint32_t version;       /* how many times the bytes were written in place */
    const char *written_by; /* the function that wrote last */
    uint32_t unrecorded;    /* the recording tape that was open when a tensor that requires a
                             * gradient was written to the bytes; 0: none */
} Storage;

/* ---- making tensors ------------------------------------------------------------------------ */

bool tensor_pending(void);                                 /* is an error pending? */
void *tensor_vfail(const char *format, va_list arguments); /* tensor_fail */
void *tensor_out_of_memory(int64_t bytes);                 /* NULL, with the error */
int tensor_vsnprintf(char *text, size_t size, const char *format, va_list arguments);
/* How many of the n bytes that a longer text was cut to are whole characters of UTF-8: n, or less
 * if the last character was cut. */
size_t tensor_whole_characters(const char *text, size_t n);
/* False and an error if the argument is NULL; what: its name, "path". */
bool tensor_check_given(const char *function, const char *what, const void *argument);
/* False and an error if x is NULL or was let go. what: "bias"; tensor_check_readable: the only
 * tensor of the function. */
bool tensor_check_argument(const char *function, const char *what, const Tensor *x);
bool tensor_check_readable(const char *function, const Tensor *x);
/* Says that nobody will read x's elements again, so that the bytes can be freed. */
void tensor_let_go(Tensor *x);
void tensor_storage_read(Storage *storage, int readers); /* adds readers, +1 or -1 */
Tensor *tensor_make(Shape shape, DType dtype);           /* contiguous, not initialised */
/* The number of the tape that records what this thread does, 0 if none does. autograd/ sets it. */
void tensor_set_recording(uint32_t tape);
uint32_t tensor_recording(void);
void tensor_written(Tensor *x, const char *by); /* increases the version; by: a string literal */

/* ---- views: new tensors on the same bytes -------------------------------------------------- */

/* data: the first element, inside x's storage. Does not check its arguments. */
Tensor *tensor_view_make(const Tensor *x, Shape shape, const int64_t *stride, void *data);
bool tensor_has_repeats(const Tensor *x);        /* does a stride of 0 repeat elements? */
const char *tensor_stride_text(const Tensor *x); /* the strides, written as a shape */
/* NULL, without an error, if the new shape needs a copy. */
Tensor *tensor_view_reshape(const Tensor *x, Shape shape);
Tensor *tensor_view_permute(const Tensor *x,
                            const int *axes); /* axes: a permutation, not checked */
/* axes: the dimensions of x, the largest stride first, as PyTorch's TensorIterator sorts them.
 * PyTorch writes to x in this order, and gives this layout to tensors that it makes like x. */
void tensor_sort_by_stride(const Tensor *x, int *axes);
Tensor *tensor_view_transpose(const Tensor *x, int dim0, int dim1); /* 0 <= dims < ndim */
Tensor *tensor_view_expand(const Tensor *x, Shape shape); /* x broadcasts to shape, not checked */
void tensor_expanded_strides(const Tensor *x, Shape shape,
                             int64_t *stride); /* all 8 of that view */
Tensor *tensor_view_narrow(const Tensor *x, int dim, int64_t start, int64_t size);
/* Changes the shape of y and returns y, which must be contiguous and new. NULL stays NULL. */
Tensor *tensor_reshape_own(Tensor *y, Shape shape);

/* ---- memory -------------------------------------------------------------------------------- */
/* The core declares memory (here), work in parts (parts.h) and the table of kernels (kernels.h);
 * simple/ defines them for the core by itself, fast/ for the whole library. */

/* A block of memory, not initialised. With tensor/fast/ it is 64-byte aligned, and the 128 bytes
 * after it may be read, which fast kernels need; simple/ has malloc's blocks. NULL and an error on
 * failure. size is an int64_t, so that a size that is too large for the machine is an error, and
 * not cut off by a cast. */
void *tensor_cache_alloc(int64_t size);
void tensor_cache_free(void *block, int64_t size); /* size: as in tensor_cache_alloc */
void tensor_cache_end_step(void);                  /* called when the outermost tape ends */
/* A struct that was freed keeps its fields until a new tensor takes it. So whoever still points to
 * it finds let_go, and no freed memory. x->grad leads to the next struct that waits. */
Tensor *tensor_struct_new(void); /* NULL and an error on failure */
void tensor_struct_free(Tensor *x);
void tensor_count_live(int change); /* adds to the number that tensor_live returns */

#endif
