/* allocator.c - a caching allocator. A training step asks for the same sizes again and again, so a
 * freed block waits in a list of its size for the next request, and a steady step asks the system
 * for nothing.
 *
 * Sizes are rounded up to a class: multiples of 64 bytes up to 1 KiB, then eight classes per
 * doubling, so that at most an eighth of a block is wasted. Behind a block is SLACK, for the
 * kernels that read whole vectors.
 *
 * How much may wait. A step of a thread ends when its outermost tape ends. A step needs all blocks
 * that it uses at one time or another; a block that it uses again and again counts once. A thread
 * holds blocks in use and blocks that wait: at most half again as many bytes as two of its last 32
 * steps needed, or as the step under way has in use at its peak, whichever is more. Two steps,
 * because a large step that happens once must leave nothing behind. When a thread would hold more,
 * waiting blocks go back to the system: those that the step under way has not used, and if that is
 * not enough, all of them. TAPEHEAD_CACHE=512M also limits the bytes that wait; 0 turns the lists
 * off, so that valgrind and the sanitizers see every block come and go, as does make debug.
 *
 * Threads. Each thread has lists of its own. A block belongs to the thread that got it from the
 * system, whose number stands behind the block. Another thread that frees the block gives it back
 * to the system, and notes its size for the owner, who counts it off later. */
#include "internal.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { ALIGNMENT = 64, SLACK = 128, SMALL_CLASSES = 16, CLASSES = SMALL_CLASSES + 8 * 52 };
enum { RECENT = 32, THREADS = 1024, MUCH = 64 << 20 };

typedef struct FreeBlock {
    struct FreeBlock *next;
    uint32_t step; /* that freed it */
} FreeBlock;

/* Of this thread; counts are in bytes. held - waiting are in use */
static _Thread_local struct {
    uint32_t number; /* 0: it has no lists */
    bool asked;      /* for a number, which it does once: it may have given the number up again */
    uint32_t step;   /* steps ended so far */
    int64_t held;    /* its blocks, in use or waiting */
    int64_t waiting; /* those in the lists */
    int64_t need;    /* those that this step has used, or that were in use when it began */
    int64_t peak;    /* the most in use in this step, when the system was asked */
    int64_t needed[RECENT];   /* the largest need of a step */
    int64_t usual;            /* the second largest number of needed */
    FreeBlock *list[CLASSES]; /* the block that was freed last stands first */
} cache;

static struct {
    atomic_bool taken;    /* has a thread this number? */
    atomic_intptr_t gone; /* bytes of its blocks that were given back and are not counted off yet */
} threads[1 + THREADS];   /* from 1 */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static int64_t may_wait; /* bytes in a thread's lists, as TAPEHEAD_CACHE says */

/* ---- classes ------------------------------------------------------------------------------- */

/* Above 1 KiB a class is (power of two) * (8 + step) / 8 with step 1 .. 8. */
static int class_of(size_t size) {
    if (size <= 1024) return size == 0 ? 0 : (int)((size - 1) / 64);
    const int power = 63 - __builtin_clzll((unsigned long long)(size - 1)); /* 2^power < size */
    const int step = (int)((size - 1 - ((size_t)1 << power)) >> (power - 3)) + 1;
    return SMALL_CLASSES + (power - 10) * 8 + step - 1;
}

static int64_t class_size(int class) {
    if (class < SMALL_CLASSES) return (int64_t)(class + 1) * 64;
    const int power = 10 + (class - SMALL_CLASSES) / 8, step = (class - SMALL_CLASSES) % 8 + 1;
    return (int64_t)(8 + step) << (power - 3);
}

/* Where the number of a block's owner stands, behind the block. */
static uint32_t *owner_of(void *block, int64_t size) { return (uint32_t *)((char *)block + size); }

/* ---- what goes back to the system ---------------------------------------------------------- */

__attribute__((noinline)) static void give_back(void *block, uint32_t owner, int64_t size) {
    if (owner) atomic_fetch_add(&threads[owner].gone, (intptr_t)size);
    free(block);
}

/* Counts off what was given back. */
static void settle(void) {
    if (!cache.number) return;
    const int64_t gone = atomic_exchange(&threads[cache.number].gone, 0);
    cache.held -= gone;
    cache.need -= gone;
}

/* The need of the step under way may be at its largest now. */
static void note_need(void) {
    int64_t *needed = &cache.needed[cache.step % RECENT];
    if (*needed < cache.need) *needed = cache.need;
}

/* glibc keeps memory that was freed below a block in use, unless it is told to give it back. */
static void trim_heap(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Empties the lists: of all blocks, or of those that this step has not used, which stand behind the
 * others. Was there one? */
static bool empty_lists(bool all) {
    const int64_t before = cache.waiting;
    note_need();
    for (int i = 0; i < CLASSES; i++) {
        FreeBlock **at = &cache.list[i];
        while (!all && *at && (*at)->step == cache.step) at = &(*at)->next;
        while (*at) {
            FreeBlock *block = *at;
            *at = block->next;
            cache.waiting -= class_size(i);
            free(block);
        }
    }
    const int64_t freed = before - cache.waiting;
    cache.held -= freed;
    if (all) cache.need = cache.held;
    if (freed >= MUCH) trim_heap();
    return freed > 0;
}

void tensor_empty_cache(void) { empty_lists(true); }

/* Makes room for so many bytes more in use. */
static void make_room(int64_t more) {
    const int64_t used = cache.held - cache.waiting + more;
    if (cache.peak < used) cache.peak = used;
    const int64_t most = cache.peak > cache.usual ? cache.peak : cache.usual;
    if (cache.held + more > most + most / 2) empty_lists(false);
    if (cache.held + more > most + most / 2) empty_lists(true);
}

static int64_t second_largest(const int64_t *x, int n) {
    int64_t first = 0, second = 0;
    for (int i = 0; i < n; i++) {
        const int64_t lower = x[i] < first ? x[i] : first;
        first = x[i] > first ? x[i] : first;
        second = lower > second ? lower : second;
    }
    return second;
}

void tensor_cache_end_step(void) {
    note_need();
    cache.usual = second_largest(cache.needed, RECENT);
    cache.peak = 0;
    make_room(0);
    cache.step++;
    cache.need = cache.held - cache.waiting;
    cache.needed[cache.step % RECENT] = 0;
}

/* ---- threads ------------------------------------------------------------------------------- */

/* "512M": a number of bytes, or of K, M or G bytes; anything else sets no limit. */
static int64_t size_setting(const char *text) {
    static const char units[] = "KMG";
    if (!text) return INT64_MAX;
    char *end;
    double size = strtod(text, &end);
    const char *unit = *end && end > text ? strchr(units, *end) : NULL;
    if (unit) {
        size = ldexp(size, 10 * (int)(unit - units + 1));
        end++;
    }
    const bool good = end > text && !*end && size >= 0 && size < 0x1p62;
    return good ? (int64_t)size : INT64_MAX;
}

/* What is in use stays the number's, for the thread that gets the number next. */
static void leave(void *unused) {
    (void)unused;
    empty_lists(true);
    atomic_fetch_sub(&threads[cache.number].gone, (intptr_t)(cache.held - cache.waiting));
    atomic_store(&threads[cache.number].taken, false);
    cache.number = 0;
}

static void start(void) {
#ifdef TAPEHEAD_DEBUG
    const char *setting = "0";
#else
    const char *setting = getenv("TAPEHEAD_CACHE");
#endif
    may_wait = size_setting(setting);
    if (pthread_key_create(&exit_key, leave) != 0) may_wait = 0;
}

/* Gets this thread a number, and so lists, if there may be some. */
static void join(void) {
    if (cache.asked) return;
    cache.asked = true;
    pthread_once(&once, start);
    for (uint32_t i = 1; i <= THREADS && may_wait > 0 && !cache.number; i++)
        if (!atomic_exchange(&threads[i].taken, true)) cache.number = i;
    if (cache.number && pthread_setspecific(exit_key, &cache) != 0) leave(NULL);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* Kept out of tensor_cache_alloc, which then saves fewer registers. */
__attribute__((noinline)) static void *from_system(int64_t size) {
    join();
    settle();
    make_room(size);
    void *block = aligned_alloc(ALIGNMENT, (size_t)size + SLACK);
    if (!block && empty_lists(true)) block = aligned_alloc(ALIGNMENT, (size_t)size + SLACK);
    if (!block) return NULL;
    *owner_of(block, size) = cache.number;
    cache.held += size;
    cache.need += size;
    return block;
}

static void *from_list(int class) {
    FreeBlock *block = cache.list[class];
    if (!block) return NULL;
    cache.list[class] = block->next;
    cache.waiting -= class_size(class);
    if (block->step != cache.step) cache.need += class_size(class);
    return block;
}

/* Can a block be so large? A class has a few bytes more than what was asked for, and there is none
 * above 2^62 bytes. A machine of 32 bits has size_ts that do not hold every int64_t. */
static bool is_possible(int64_t size) {
    return size >= 0 && size <= INT64_MAX / 2 && (uint64_t)size <= SIZE_MAX / 2;
}

void *tensor_cache_alloc(int64_t size) {
    if (tensor_pending()) return NULL;
    const int class = is_possible(size) ? class_of((size_t)size) : -1;
    void *block = class >= 0 ? from_list(class) : NULL;
    if (!block && class >= 0) block = from_system(class_size(class));
    if (!block) return tensor_fail("out of memory: %lld bytes", (long long)size);
    return block;
}

void tensor_cache_free(void *block, int64_t size) {
    if (!block) return;
    const int class = class_of((size_t)size);
    const uint32_t owner = *owner_of(block, class_size(class));
    const int64_t waiting = cache.waiting + class_size(class);
    if (!owner || owner != cache.number || waiting > may_wait) {
        give_back(block, owner, class_size(class));
        return;
    }
    FreeBlock *freed = block;
    *freed = (FreeBlock){.next = cache.list[class], .step = cache.step};
    cache.list[class] = freed;
    cache.waiting = waiting;
}
