/* internal.h - what tensor/ shows to autograd/ besides tensor.h: storage, views, whole-tensor
 * arithmetic without gradients. Every function that returns a Tensor * gives you a reference. */
#ifndef TAPEHEAD_TENSOR_INTERNAL_H
#define TAPEHEAD_TENSOR_INTERNAL_H

#include "tensor.h"

/* A block of bytes shared by views. The elements begin at bytes, 64-byte aligned. */
struct Storage {
    void *bytes;
    int64_t size;           /* in bytes */
    int refs;               /* tensors that look at it */
    uint32_t version;       /* how often it has been written in place */
    const char *written_by; /* the function that wrote last */
};

/* ---- making tensors ---- */
bool tensor_pending(void);                      /* is an error pending? */
Tensor *tensor_make(Shape shape, DType dtype);  /* contiguous, not initialised */
void tensor_written(Tensor *x, const char *by); /* bumps the version; by: a string literal */
size_t dtype_size(DType dtype);

/* ---- memory: the caching allocator ---- */
void *cache_alloc(size_t size); /* 64-byte aligned, not initialised; NULL with an error pending */
void cache_free(void *block, size_t size);

/* ---- the generator ---- */
typedef struct {
    uint32_t state[624];
    int next;            /* index of the next word of state to temper; 624: twist first */
    bool seeded;         /* false: behave as if seeded with 0 */
    bool has_cached;     /* the second value of a Box-Muller pair is waiting */
    double cached;
} Generator;
Generator *generator_current(void); /* this thread's: copy it to save, assign it to restore */

#endif
