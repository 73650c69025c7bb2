/* memory.c - the core by itself: memory from malloc. The files of this folder do the simplest thing
 * that is right; a library with tensor/fast/ has fast/allocator.c in place of this one. */
#include "../internal.h"

#include <stdlib.h>

/* Several threads may use what is static here. tcc has no atomic types, and no variables for each
 * thread, either. */
#ifdef __TINYC__
#define SHARED
#else
#define SHARED _Atomic
#endif

void *tensor_cache_alloc(int64_t size) {
    if (tensor_pending()) return NULL;
    const bool possible = size >= 0 && size < PTRDIFF_MAX;
    void *block = possible ? malloc((size_t)size + 1) : NULL; /* malloc(0) may return NULL */
    return block ? block : tensor_out_of_memory(size);
}

void tensor_cache_free(void *block, int64_t size) {
    (void)size;
    free(block);
}

void tensor_cache_end_step(void) {}

/* The structs that wait are as many as tensors were alive at once. */
static Tensor *waiting;
static SHARED int wanted; /* how many threads want the list; the first may have it */

Tensor *tensor_struct_new(void) {
    while (wanted++ > 0) wanted--;
    Tensor *x = tensor_pending() ? NULL : waiting;
    if (x) waiting = x->grad;
    wanted--;
    return x ? x : tensor_cache_alloc(sizeof *x);
}

void tensor_struct_free(Tensor *x) {
    while (wanted++ > 0) wanted--;
    x->grad = waiting;
    waiting = x;
    wanted--;
}

static SHARED long live;
void tensor_count_live(int change) { live += change; }
int64_t tensor_live(void) { return live; }
