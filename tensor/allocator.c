/* allocator.c - a caching allocator. A training step asks for the same sizes again and again, so
 * a freed block waits in a list of its size for the next request, and a steady step asks the
 * system for nothing.
 *
 * Sizes are rounded up to a class: multiples of 64 bytes up to 1 KiB, then eight classes per
 * doubling, so that at most an eighth of a block is wasted. Each thread has its own lists; a
 * block freed by another thread joins that thread's lists. TAPEHEAD_CACHE=0 turns the lists
 * off, so that valgrind and the sanitizers see every block come and go. Behind a block is SLACK,
 * for the kernels that read whole vectors. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, SLACK = 128, SMALL_CLASSES = 16, CLASSES = SMALL_CLASSES + 8 * 52 };

typedef struct FreeBlock {
    struct FreeBlock *next;
} FreeBlock;

static _Thread_local FreeBlock *free_lists[CLASSES];
static _Thread_local bool registered; /* will this thread's lists be emptied when it exits? */
static _Thread_local bool exiting;    /* they have been: nothing may be put there any more */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool caching;

static void *take_first(FreeBlock **list) {
    FreeBlock *block = *list;
    if (block) *list = block->next;
    return block;
}

/* Gives what waits in the lists back to the system. Was there anything? */
static bool empty_lists(void) {
    bool any = false;
    for (int i = 0; i < CLASSES; i++)
        for (void *block; (block = take_first(&free_lists[i])) != NULL; any = true) free(block);
    return any;
}

void tensor_empty_cache(void) { empty_lists(); }

static void empty_at_exit(void *unused) {
    (void)unused;
    empty_lists();
    registered = false;
    exiting = true;
}

static void start(void) {
    const char *setting = getenv("TAPEHEAD_CACHE");
    caching = !(setting && strcmp(setting, "0") == 0);
    if (pthread_key_create(&exit_key, empty_at_exit) != 0) caching = false;
}

/* The class of a size, and the size of that class's blocks.
 * Above 1 KiB a class is (power of two) * (8 + step) / 8 with step 1 .. 8. */
static int class_of(size_t size, size_t *block_size) {
    if (size <= 1024) {
        int small = size == 0 ? 0 : (int)((size - 1) / 64);
        *block_size = (size_t)(small + 1) * 64;
        return small;
    }
    int power = 63 - __builtin_clzll((unsigned long long)(size - 1)); /* 2^power < size */
    size_t step_size = (size_t)1 << (power - 3);
    size_t steps = (size - ((size_t)1 << power) + step_size - 1) / step_size;
    *block_size = ((size_t)1 << power) + steps * step_size;
    return SMALL_CLASSES + (power - 10) * 8 + (int)steps - 1;
}

/* Can a block be so large? A class has a few bytes more than what was asked for, and there is none
 * above 2^62 bytes. A machine of 32 bits has size_ts that do not hold every int64_t. */
static bool is_possible(int64_t size) {
    return size >= 0 && size <= INT64_MAX / 2 && (uint64_t)size <= SIZE_MAX / 2;
}

void *cache_alloc(int64_t size) {
    void *block = NULL;
    if (tensor_pending()) return NULL;
    if (is_possible(size)) {
        size_t block_size;
        block = take_first(&free_lists[class_of((size_t)size, &block_size)]);
        if (!block) block = aligned_alloc(ALIGNMENT, block_size + SLACK);
        if (!block && empty_lists()) block = aligned_alloc(ALIGNMENT, block_size + SLACK);
    }
    return block ? block : tensor_fail("out of memory: %lld bytes", (long long)size);
}

void cache_free(void *block, int64_t size) {
    if (!block) return;
    if (!registered && !exiting) {
        pthread_once(&once, start);
        registered = caching && pthread_setspecific(exit_key, free_lists) == 0;
    }
    if (!registered) {
        free(block);
        return;
    }
    size_t block_size;
    FreeBlock **list = &free_lists[class_of((size_t)size, &block_size)], *freed = block;
    freed->next = *list;
    *list = freed;
}
