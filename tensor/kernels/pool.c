/* pool.c - a few threads that share the work of one call.
 *
 * The whole is cut into more parts than there are threads, and whoever is free takes the next one.
 * The caller begins at once; a worker joins when it gets there, if there is something left, and the
 * caller waits for those alone who joined. So a worker that still sleeps, or whose core another
 * program has, holds nobody up. No digit hangs on who does which part: parts write to different
 * places, and compute nothing that depends on the cut.
 *
 * One caller at a time has the workers. Another thread that comes meanwhile, and work inside of
 * work, stay on the thread that they are on. */
#ifdef __linux__
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): sched_getaffinity wants it */
#endif
#include "threads.h"

#include "../tensor.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS_MAX = 64,
    STACK = 1 << 20, /* bytes of a worker's: no kernel takes 64 KB of it, the rest is for a program
                      * with large variables of each thread; systems give between 128 KB and 8 MB */
    PARTS_EACH = 8,  /* parts for each thread: a late one then costs a sixteenth of two */
    AWAKE = 100000,  /* nanoseconds for which a thread that waits stays awake */
    ONE_SEAT = 1 << 16, /* see door */
    ONE_INSIDE = 1
};

/* Where threads sleep until something has happened. */
typedef struct {
    pthread_cond_t rings;
    int sleepers;
} Bell;

static struct {
    pthread_mutex_t owner; /* held by the caller whose job it is; guards what follows */
    int asked;             /* the most workers that were asked for, */
    int workers;           /* and those that there are */
    pthread_t worker[THREADS_MAX];

    /* The job: whoever is inside reads it. */
    int64_t n;
    int parts;
    PartOfWork work;
    void *context;
    int next; /* the part that is taken next; no int64_t, which is no atomic number everywhere */

    int door; /* ONE_SEAT times the workers who may still join, and ONE_INSIDE times those inside */
    bool leaving;
    pthread_mutex_t mutex; /* for the bells */
    Bell came, left;       /* a job came; the last worker left it */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .mutex = PTHREAD_MUTEX_INITIALIZER,
          .came.rings = PTHREAD_COND_INITIALIZER,
          .left.rings = PTHREAD_COND_INITIALIZER};

/* ---- how many ------------------------------------------------------------------------------ */

/* worth_a_thread: operations on an element, or on a vector in a product, that are worth one more
 * thread. threads_take_turns: a thread lets the others run after each part. */
#ifdef TEST_HOOKS
double worth_a_thread = 32768;
bool threads_take_turns;
#else
static const double worth_a_thread = 32768;
static const bool threads_take_turns = false;
#endif

static int threads; /* what was asked for; 0: nothing yet */

/* The cores that this process may use. */
static int cores(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

static int at_most(int most, int64_t n) { return n < most ? (int)n : most; }

/* What TAPEHEAD_NUM_THREADS says, if that is a whole number from 1. */
static int setting(void) {
    const char *text = getenv("TAPEHEAD_NUM_THREADS");
    char *end = NULL;
    const long asked = text ? strtol(text, &end, 10) : 0;
    return asked > 0 && *end == '\0' ? at_most(THREADS_MAX, asked) : at_most(THREADS_MAX, cores());
}

void tensor_set_num_threads(int n) {
    if (n < 1) tensor_fail("set_num_threads: %d: there must be at least 1 thread", n);
    else __atomic_store_n(&threads, at_most(THREADS_MAX, n), __ATOMIC_RELAXED);
}

int tensor_num_threads(void) {
    int unset = 0;
    if (__atomic_load_n(&threads, __ATOMIC_RELAXED) == unset) /* and no other thread is quicker */
        __atomic_compare_exchange_n(&threads, &unset, setting(), false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    return __atomic_load_n(&threads, __ATOMIC_RELAXED);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static int64_t now(void) { /* in nanoseconds */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Until it happened: awake for a while, since the next call is often near, and then asleep. Whoever
 * else wants the core gets it at once: it may be the very thread that is waited for. */
static void await(Bell *bell, bool (*happened)(void)) {
    for (const int64_t start = now(); now() - start < AWAKE; sched_yield())
        for (int i = 0; i < 32; i++) {
            if (happened()) return;
#if defined __x86_64__
            __builtin_ia32_pause();
#endif
        }
    pthread_mutex_lock(&pool.mutex);
    __atomic_add_fetch(&bell->sleepers, 1, __ATOMIC_SEQ_CST);
    while (!happened()) pthread_cond_wait(&bell->rings, &pool.mutex);
    __atomic_sub_fetch(&bell->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.mutex);
}

/* Wakes so many. A sleeper looks once more after it is counted, so nobody misses what happened
 * before this. */
static void ring(Bell *bell, int times) {
    if (__atomic_load_n(&bell->sleepers, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&pool.mutex); /* who is counted does sleep */
    pthread_mutex_unlock(&pool.mutex);
    while (times-- > 0) pthread_cond_signal(&bell->rings);
}

static bool job_came(void) {
    return __atomic_load_n(&pool.door, __ATOMIC_SEQ_CST) >= ONE_SEAT ||
           __atomic_load_n(&pool.leaving, __ATOMIC_RELAXED);
}

static bool all_left(void) { return __atomic_load_n(&pool.door, __ATOMIC_SEQ_CST) == 0; }

/* ---- the workers --------------------------------------------------------------------------- */

/* The number of the seat, from 1; 0: there is none left. */
static int take_seat(void) {
    int door = __atomic_load_n(&pool.door, __ATOMIC_RELAXED);
    while (door >= ONE_SEAT)
        if (__atomic_compare_exchange_n(&pool.door, &door, door - ONE_SEAT + ONE_INSIDE, true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return door / ONE_SEAT;
    return 0;
}

static void take_parts(int worker) {
    int i = __atomic_fetch_add(&pool.next, 1, __ATOMIC_RELAXED);
    while (i < pool.parts) {
        pool.work(worker, pool.n * i / pool.parts, pool.n * (i + 1) / pool.parts, pool.context);
        if (threads_take_turns) sched_yield();
        i = __atomic_fetch_add(&pool.next, 1, __ATOMIC_RELAXED);
    }
}

static void *serve(void *unused) {
    while (!__atomic_load_n(&pool.leaving, __ATOMIC_RELAXED)) {
        const int seat = take_seat();
        if (seat > 0) {
            take_parts(seat);
            if (__atomic_sub_fetch(&pool.door, ONE_INSIDE, __ATOMIC_SEQ_CST) == 0)
                ring(&pool.left, 1);
        }
        await(&pool.came, job_came);
    }
    return unused;
}

/* A child of fork has none of the workers, and locks as they happened to be. */
static void forget_workers(void) {
    pool.asked = 0;
    pool.workers = 0;
    pool.door = 0;
    pool.came.sleepers = 0;
    pool.left.sleepers = 0;
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.came.rings, NULL);
    pthread_cond_init(&pool.left.rings, NULL);
}

/* As many workers as are wanted, or as there can be: the system is asked once for each. They leave
 * signals to the program's threads. */
static void hire(int wanted) {
    static bool watches_forks;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (wanted <= pool.asked || pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, STACK);
    if (!watches_forks) watches_forks = pthread_atfork(NULL, NULL, forget_workers) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; pool.asked < wanted; pool.asked++)
        if (pthread_create(&pool.worker[pool.workers], &attributes, serve, NULL) == 0)
            pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* When the program ends or the library is closed. From then on every caller works alone; a job that
 * another thread has just now, or that this is called from the midst of, is left to itself. */
__attribute__((destructor)) static void dismiss(void) {
    if (pthread_mutex_trylock(&pool.owner) != 0) return;
    __atomic_store_n(&pool.leaving, true, __ATOMIC_SEQ_CST);
    ring(&pool.came, pool.workers);
    while (pool.workers > 0) pthread_join(pool.worker[--pool.workers], NULL);
}

/* ---- the work ------------------------------------------------------------------------------ */

int tensor_workers_for(double operations) {
    if (operations < 2 * worth_a_thread) return 1;
    const double worth = operations / worth_a_thread;
    return at_most(tensor_num_threads(), worth < THREADS_MAX ? (int64_t)worth : THREADS_MAX);
}

void tensor_work_in_parts(int workers, int64_t n, PartOfWork work, void *context) {
    if (workers <= 1 || n <= 1 || pthread_mutex_trylock(&pool.owner) != 0) {
        if (n > 0) work(0, 0, n, context);
        return;
    }
    workers = at_most(workers, n);
    hire(workers - 1);
    pool.n = n;
    pool.parts = at_most(PARTS_EACH * workers, n);
    pool.next = 0;
    pool.work = work;
    pool.context = context;
    __atomic_store_n(&pool.door, at_most(pool.workers, workers - 1) * ONE_SEAT, __ATOMIC_SEQ_CST);
    ring(&pool.came, workers - 1);
    while (threads_take_turns && job_came()) sched_yield();
    take_parts(0);
    __atomic_and_fetch(&pool.door, ONE_SEAT - 1, __ATOMIC_SEQ_CST); /* nobody joins any more */
    await(&pool.left, all_left);
    pthread_mutex_unlock(&pool.owner);
}
