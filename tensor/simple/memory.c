/* memory.c - the core by itself: memory from malloc. The files of this folder do the simplest thing
 * that is right; a library with tensor/fast/ has fast/allocator.c in place of this one. */
#include "../internal.h"

#include <stdlib.h>

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

/* Several threads may count. tcc has no atomic types, and no variables for each thread, either. */
#ifdef __TINYC__
static long live;
#else
static _Atomic long live;
#endif
void tensor_count_live(int change) { live += change; }
int64_t tensor_live(void) { return live; }
