/* alone.c - the core by itself. Behind each of its three doors stands the simplest thing that is
 * right: memory from malloc, the plain kernels, all parts of a work on the calling thread. A
 * library with tensor/fast/ has other answers in this file's place: allocator.c, dispatch.c and
 * pool.c. */
#include "kernels/kernels.h"
#include "parts.h"

#include "internal.h"

#include <stdlib.h>

/* ---- memory -------------------------------------------------------------------------------- */

void *tensor_cache_alloc(int64_t size) {
    if (tensor_pending()) return NULL;
    const bool possible = size >= 0 && (uint64_t)size < SIZE_MAX;
    void *block = possible ? malloc((size_t)size + 1) : NULL; /* malloc(0) may return NULL */
    return block ? block : tensor_fail("out of memory: %lld bytes", (long long)size);
}

void tensor_cache_free(void *block, int64_t size) {
    (void)size;
    free(block);
}

void tensor_cache_end_step(void) {}

static int64_t live;
void tensor_count_live(int change) { live += change; }
int64_t tensor_live(void) { return live; }

/* ---- kernels ------------------------------------------------------------------------------- */

const Kernels *tensor_kernels(void) { return &tensor_kernels_plain; }

/* ---- parts --------------------------------------------------------------------------------- */

int tensor_workers_for(double operations) {
    (void)operations;
    return 1;
}

void tensor_work_in_parts(int workers, int64_t n, PartOfWork work, void *context) {
    (void)workers;
    if (n > 0) work(0, 0, n, context);
}
