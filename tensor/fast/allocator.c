/* allocator.c - a caching allocator. A training step asks for the same sizes again and again, so a
 * freed block waits in a list of its size for the next request. From the third of equal steps on, a
 * step asks the system for nothing: the limit below is known after two.
 *
 * Classes. A size is rounded up to a class: a multiple of 64 bytes up to 1 KiB, then one of eight
 * classes per power of two: less than an eighth of a block above 1 KiB is wasted. SLACK bytes
 * come after each block, because kernels read whole vectors.
 *
 * The limit. A step of a thread ends when its outermost tape ends. The need of a step is the sum
 * of all blocks that the step uses; a block that it uses several times counts once. A thread holds
 * blocks in use and waiting blocks. The limit for the sum of both is 1.5 times the second largest
 * need of the thread's last 32 steps, or 1.5 times the peak of the current step if the peak is
 * larger. (With the largest need, a single large step would raise the limit. If only the blocks
 * that nobody took for 32 steps went back, steps of forty sizes would hold 6.5 times what the
 * largest of them needs.) Above the limit, the thread returns waiting blocks to the system: first
 * the blocks that the current step has not used, then all waiting blocks. TAPEHEAD_CACHE=512M
 * limits the waiting bytes. TAPEHEAD_CACHE=0 turns the lists off, and so does make debug:
 * valgrind and the sanitizers then see each block that is allocated and freed.
 *
 * Structs. The struct of a tensor that was freed waits in a list of its own, with its fields:
 * whoever still points to it finds let_go. When a tape ends, its last result, the loss, is freed
 * first. So it waits, however long the tape is, and a new tensor takes it last.
 *
 * Threads. Each thread has a cache of its own. A block belongs to the thread that allocated it,
 * whose number comes after the block. A thread that frees another thread's block returns the block
 * to the system and adds the size to the owner's count `gone`, which the owner subtracts later. */
#include "../internal.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded false
#endif

#ifdef _WIN32 /* its free takes no aligned block; nothing else is freed here */
#define aligned_alloc(alignment, size) _aligned_malloc(size, alignment)
#define free(block)                    _aligned_free(block)
#endif

enum { ALIGNMENT = 64, SLACK = 128, SMALL_CLASSES = 16, CLASSES = SMALL_CLASSES + 8 * 52 };
enum { RECENT = 32, THREADS = 1024, MUCH = 64 << 20, STRUCTS = 1024 };

typedef struct FreeBlock {
    struct FreeBlock *next;
    uint32_t step; /* the step that freed the block */
} FreeBlock;

/* Counts are in bytes; held - waiting bytes are in use. */
typedef struct {
    uint32_t number; /* of the thread */
    uint32_t step;   /* how many steps have ended */
    int64_t held;    /* blocks in use, and waiting blocks */
    int64_t waiting; /* blocks in the lists */
    int64_t need;    /* blocks that this step has used, or that were in use when the step began */
    int64_t peak;    /* the most bytes in use at an allocation from the system in this step */
    int64_t needed[RECENT];   /* the needs of the last steps */
    int64_t usual;            /* the second largest number in needed */
    FreeBlock *list[CLASSES]; /* last freed, first used */
    Tensor *structs;          /* the same of structs, at most STRUCTS; they count as in use */
    int num_structs;
} Cache;

static struct {
    atomic_bool taken;    /* does a thread have this number? */
    atomic_intptr_t gone; /* bytes of this thread's blocks that tensor_cache_free, in any thread,
                             returned to the system, and that this thread has not subtracted yet */
    Cache *cache;         /* stays for the next thread with this number; NULL if there was none */
} threads[1 + THREADS];   /* numbers begin at 1 */

/* The cache of this thread, NULL if it has none. A thread-local variable holds only this pointer:
 * where the compiler emulates thread-local variables, as for MinGW, they may be gone when
 * at_thread_exit runs. exit_key has the same pointer. */
static _Thread_local Cache *cache;
static _Thread_local bool asked; /* the thread has asked for a cache, which it does once */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static int64_t may_wait = -1; /* the most bytes in a thread's lists: TAPEHEAD_CACHE; -1: not read */

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

/* The owner's number comes after the block. */
static uint32_t *owner_of(void *block, int64_t size) { return (uint32_t *)((char *)block + size); }

/* ---- returning blocks to the system -------------------------------------------------------- */

__attribute__((noinline)) static void give_back(void *block, uint32_t owner, int64_t size) {
    if (owner) atomic_fetch_add(&threads[owner].gone, (intptr_t)size);
    free(block);
}

/* Subtracts the blocks that tensor_cache_free, in any thread, returned to the system. */
static void subtract_gone(void) {
    const int64_t gone = atomic_exchange(&threads[cache->number].gone, 0);
    cache->held -= gone;
    cache->need -= gone;
}

/* Called before empty_lists makes the need of the current step smaller, and at the end of the step.
 */
static void note_need(void) {
    int64_t *needed = &cache->needed[cache->step % RECENT];
    if (*needed < cache->need) *needed = cache->need;
}

/* glibc does not return freed memory below a block in use to the system until it is asked to. */
static void trim_heap(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* Returns waiting blocks to the system: all of them, or only the blocks that this step has not
 * used, which come after the others in their lists. True if there were any. */
static bool empty_lists(bool all) {
    const int64_t before = cache->waiting;
    note_need();
    for (int i = 0; i < CLASSES; i++) {
        FreeBlock **at = &cache->list[i];
        while (!all && *at && (*at)->step == cache->step) at = &(*at)->next;
        while (*at) {
            FreeBlock *block = *at;
            *at = block->next;
            cache->waiting -= class_size(i);
            free(block);
        }
    }
    const int64_t freed = before - cache->waiting;
    cache->held -= freed;
    if (all) cache->need = cache->held;
    if (freed >= MUCH) trim_heap();
    return freed > 0;
}

/* The structs become ordinary waiting blocks. */
static void empty_structs(void) {
    while (cache->structs) {
        Tensor *x = cache->structs;
        cache->structs = x->grad;
        tensor_cache_free(x, sizeof *x);
    }
    cache->num_structs = 0;
}

void tensor_empty_cache(void) {
    if (!cache) return;
    empty_structs();
    empty_lists(true);
}

/* Called before `more` bytes are allocated: returns waiting blocks to the system if the thread
 * would hold too much. */
static void keep_within_limit(int64_t more) {
    const int64_t used = cache->held - cache->waiting + more;
    if (cache->peak < used) cache->peak = used;
    const int64_t most = cache->peak > cache->usual ? cache->peak : cache->usual;
    if (cache->held + more > most + most / 2) empty_lists(false);
    if (cache->held + more > most + most / 2) empty_lists(true);
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
    if (!cache) return;
    note_need();
    cache->usual = second_largest(cache->needed, RECENT);
    cache->peak = 0;
    keep_within_limit(0);
    cache->step++;
    cache->need = cache->held - cache->waiting;
    cache->needed[cache->step % RECENT] = 0;
}

/* ---- threads ------------------------------------------------------------------------------- */

/* "512M", "1.5G": a number of bytes, or of K, M or G bytes; anything else sets no limit. strtod
 * would expect the decimal point of the program's locale. */
static int64_t size_setting(const char *text) {
    static const char units[] = "KMG";
    if (!text) return INT64_MAX;
    const char *end = text;
    double size = 0, place = 0.1; /* of the digit after the point */
    for (; isdigit((unsigned char)*end); end++) size = 10 * size + (*end - '0');
    if (end > text && *end == '.')
        for (end++; isdigit((unsigned char)*end); place /= 10) size += place * (*end++ - '0');
    const char *unit = *end && end > text ? strchr(units, *end) : NULL;
    if (unit) {
        size = ldexp(size, 10 * (int)(unit - units + 1));
        end++;
    }
    const bool good = end > text && !*end && size < 0x1p62;
    return good ? (int64_t)size : INT64_MAX;
}

/* The end of a thread. Blocks that are still in use stay with the number: the next thread with this
 * number owns them. */
static void at_thread_exit(void *value) {
    cache = value;
    asked = true; /* later destructors of this thread get no lists */
    empty_structs();
    empty_lists(true);
    atomic_store(&threads[cache->number].taken, false);
    cache = NULL;
}

static void start(void) {
    if (may_wait >= 0) return; /* read before a fork */
#ifdef TAPEHEAD_DEBUG
    const char *setting = "0";
#else
    const char *setting = getenv("TAPEHEAD_CACHE");
#endif
    may_wait = pthread_key_create(&exit_key, at_thread_exit) == 0 ? size_setting(setting) : 0;
}

/* In a child of fork nobody else starts: the other thread that did is not there. glibc knows that,
 * other C libraries wait for it. */
static void renew_after_fork(void) { once = (pthread_once_t)PTHREAD_ONCE_INIT; }

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, renew_after_fork);
}

/* Gets this thread a number, and with it a cache, unless TAPEHEAD_CACHE is 0. */
static void join(void) {
    pthread_once(&once, start);
    if (may_wait > 0) cache = pthread_getspecific(exit_key);
    if (cache || asked || may_wait == 0) return;
    asked = true;
    uint32_t i = 1;
    while (i <= THREADS && atomic_exchange(&threads[i].taken, true)) i++;
    if (i > THREADS) return;
    Cache *mine = threads[i].cache ? threads[i].cache : calloc(1, sizeof *mine);
    threads[i].cache = mine;
    if (mine && pthread_setspecific(exit_key, mine) == 0) {
        *mine = (Cache){.number = i, .held = mine->held, .need = mine->held};
        cache = mine;
    } else atomic_store(&threads[i].taken, false);
}

/* ---- living tensors ------------------------------------------------------------------------- */

/* Tensors alive now, in all threads. A long, because an ARMv6 has no atomic 8-byte numbers. */
static atomic_long live;

/* An atomic addition takes long, compared with the other work for a small tensor. In a program with
 * one thread, a load and a store do the same. */
void tensor_count_live(int change) {
    if (__libc_single_threaded)
        atomic_store_explicit(&live, tensor_live() + change, memory_order_relaxed);
    else atomic_fetch_add_explicit(&live, change, memory_order_relaxed);
}

int64_t tensor_live(void) { return atomic_load_explicit(&live, memory_order_relaxed); }

/* ---- blocks -------------------------------------------------------------------------------- */

/* Not inlined, so that tensor_cache_alloc saves fewer registers. */
__attribute__((noinline)) static void *from_system(int64_t size) {
    if (!cache) join();
    if (cache) {
        subtract_gone();
        keep_within_limit(size);
    }
    void *block = aligned_alloc(ALIGNMENT, (size_t)size + SLACK);
    if (!block && cache && empty_lists(true))
        block = aligned_alloc(ALIGNMENT, (size_t)size + SLACK);
    if (!block) return NULL;
    *owner_of(block, size) = cache ? cache->number : 0;
    if (cache) cache->held += size;
    if (cache) cache->need += size;
    return block;
}

static void *from_list(int class) {
    FreeBlock *block = cache ? cache->list[class] : NULL;
    if (!block) return NULL;
    cache->list[class] = block->next;
    cache->waiting -= class_size(class);
    if (block->step != cache->step) cache->need += class_size(class);
    return block;
}

/* Can a block have this size? The class of a size may be larger than the size, and the largest
 * class has 2^62 bytes. On a 32-bit machine a size_t does not hold every int64_t. */
static bool is_possible(int64_t size) {
    return size >= 0 && size <= INT64_MAX / 2 && (uint64_t)size <= SIZE_MAX / 2;
}

void *tensor_cache_alloc(int64_t size) {
    if (tensor_pending()) return NULL;
    const int class = is_possible(size) ? class_of((size_t)size) : -1;
    void *block = class >= 0 ? from_list(class) : NULL;
    if (!block && class >= 0) block = from_system(class_size(class));
    return block ? block : tensor_out_of_memory(size);
}

void tensor_cache_free(void *block, int64_t size) {
    if (!block) return;
    const int class = class_of((size_t)size);
    const uint32_t owner = *owner_of(block, class_size(class));
    if (!cache || owner != cache->number || cache->waiting + class_size(class) > may_wait) {
        give_back(block, owner, class_size(class));
        return;
    }
    FreeBlock *freed = block;
    *freed = (FreeBlock){.next = cache->list[class], .step = cache->step};
    cache->list[class] = freed;
    cache->waiting += class_size(class);
}

/* ---- structs of tensors ---------------------------------------------------------------------- */

Tensor *tensor_struct_new(void) {
    Tensor *x = cache ? cache->structs : NULL;
    if (!x || tensor_pending()) return tensor_cache_alloc(sizeof *x);
    cache->structs = x->grad;
    cache->num_structs--;
    return x;
}

void tensor_struct_free(Tensor *x) {
    const int64_t size = class_size(class_of(sizeof *x));
    if (!cache || cache->num_structs == STRUCTS || (cache->num_structs + 1) * size > may_wait ||
        *owner_of(x, size) != cache->number) {
        tensor_cache_free(x, sizeof *x);
        return;
    }
    x->grad = cache->structs;
    cache->structs = x;
    cache->num_structs++;
}
