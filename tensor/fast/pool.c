/* pool.c - a thread pool: a few threads share the work of one call.
 *
 * The work is split into more parts than there are threads, and a thread that is free takes the
 * next part. The caller begins at once. A worker joins the job when it wakes up, if parts are left,
 * and the caller waits only for the workers that joined: a worker that sleeps, or whose core is
 * taken by another program, delays nobody. The result does not depend on which thread computes
 * which part: parts write to different elements, and no part computes anything that depends on how
 * the work was split.
 *
 * One caller at a time has the workers. If another thread calls meanwhile, or a part of a job calls
 * again, that call does all its work on its own thread.
 *
 * A process ends with its last thread, also after pthread_exit in main. So the workers end with the
 * last of their callers: the threads that had them, and the one that loaded the library, so that
 * short-lived threads find workers there. A later call starts new ones. */
#include "threads.h"

#include "../parts.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

enum {
    STACK = 1 << 20, /* bytes of a worker's stack: a kernel takes less than 64 KB, the rest is for
                      * programs with large thread-local variables; systems give 128 KB to 8 MB */
    PARTS_EACH = 8,  /* parts for each thread: with two threads a part is a sixteenth of the work */
    SPIN = 100000,   /* nanoseconds for which a waiting thread polls before it sleeps */
    ONE_FREE = 1 << 16, /* see members */
    ONE_JOINED = 1
};

/* A condition variable, and how many threads sleep on it. */
typedef struct {
    pthread_cond_t condition;
    int sleepers;
} Event;

static struct {
    pthread_mutex_t owner; /* held by the caller that has the workers; guards the fields below */
    int requested;         /* the most workers that a call wanted */
    int workers;           /* the workers that exist: fewer if the system refused some */
    pthread_t worker[THREADS_MAX];

    int callers;       /* the living threads that are counted */
    pthread_key_t key; /* not NULL in such a thread, whose end calls at_thread_exit */
    bool has_key;

    /* The job, for the threads that joined it. */
    int64_t n;
    int parts;
    PartOfWork work;
    void *context;
    int next; /* the part that is taken next; an int64_t is not atomic on every machine */

    int members; /* ONE_FREE * workers that may still join + ONE_JOINED * workers that joined */
    pthread_mutex_t mutex; /* of the events */
    Event posted, done;    /* a job was posted; the last worker left it */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .mutex = PTHREAD_MUTEX_INITIALIZER,
          .posted.condition = PTHREAD_COND_INITIALIZER,
          .done.condition = PTHREAD_COND_INITIALIZER};

/* ---- settings ------------------------------------------------------------------------------ */

/* worth_a_thread: the number of operations (on an element, or on a vector in a product) for which
 * one more thread saves time. threads_take_turns: a thread yields after each part. */
#ifdef TEST_HOOKS
double worth_a_thread = 32768;
bool threads_take_turns;
#else
static const double worth_a_thread = 32768;
static const bool threads_take_turns = false;
#endif

/* ---- waiting ------------------------------------------------------------------------------- */

static int64_t now(void) { /* in nanoseconds */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits until happened() is true. Polls for a while, since the next call often follows soon, and
 * then sleeps. A polling thread yields its core: the thread that it waits for may need that core.
 */
static void wait_for(Event *event, bool (*happened)(void)) {
    for (const int64_t start = now(); now() - start < SPIN; sched_yield())
        for (int i = 0; i < 32; i++) {
            if (happened()) return;
#if defined __x86_64__
            __builtin_ia32_pause();
#endif
        }
    pthread_mutex_lock(&pool.mutex);
    __atomic_add_fetch(&event->sleepers, 1, __ATOMIC_SEQ_CST);
    while (!happened()) pthread_cond_wait(&event->condition, &pool.mutex);
    __atomic_sub_fetch(&event->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.mutex);
}

/* Wakes up to n sleepers. A sleeper calls happened() again after it was counted, so it cannot miss
 * an event before this call. */
static void wake(Event *event, int n) {
    if (__atomic_load_n(&event->sleepers, __ATOMIC_SEQ_CST) == 0) return;
    pthread_mutex_lock(&pool.mutex); /* now every counted sleeper sleeps */
    pthread_mutex_unlock(&pool.mutex);
    for (int i = 0; i < n; i++) pthread_cond_signal(&event->condition);
}

static bool job_is_posted(void) {
    return __atomic_load_n(&pool.members, __ATOMIC_SEQ_CST) >= ONE_FREE;
}

static bool all_left(void) { return __atomic_load_n(&pool.members, __ATOMIC_SEQ_CST) == 0; }

/* ---- the workers --------------------------------------------------------------------------- */

/* Joins the job. Returns the worker's number, from 1, or 0 if enough workers have joined. */
static int join_job(void) {
    int members = __atomic_load_n(&pool.members, __ATOMIC_RELAXED);
    while (members >= ONE_FREE)
        if (__atomic_compare_exchange_n(&pool.members, &members, members - ONE_FREE + ONE_JOINED,
                                        true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return members / ONE_FREE;
    return 0;
}

static int next_part(void) { return __atomic_fetch_add(&pool.next, 1, __ATOMIC_RELAXED); }

static void work_on_parts(int worker) {
    for (int64_t i = next_part(); i < pool.parts; i = next_part()) {
        pool.work(worker, pool.n * i / pool.parts, pool.n * (i + 1) / pool.parts, pool.context);
        if (threads_take_turns) sched_yield();
    }
}

/* The main function of a worker. */
static void *worker_main(void *unused) {
    bool last = false;
    while (!last) {
        wait_for(&pool.posted, job_is_posted);
        const int worker = join_job();
        if (worker == 0) continue;
        last = !pool.work;
        work_on_parts(worker);
        if (__atomic_sub_fetch(&pool.members, ONE_JOINED, __ATOMIC_SEQ_CST) == 0)
            wake(&pool.done, 1);
    }
    return unused;
}

/* Posts a job for this many workers. */
static void post(int helpers, int64_t n, int parts, PartOfWork work, void *context) {
    pool.n = n;
    pool.parts = parts;
    pool.next = 0;
    pool.work = work;
    pool.context = context;
    __atomic_store_n(&pool.members, helpers * ONE_FREE, __ATOMIC_SEQ_CST);
    wake(&pool.posted, helpers);
}

/* The last job of all workers has no work. */
static void end_workers(void) {
    post(pool.workers, 0, 0, NULL, NULL);
    wait_for(&pool.done, all_left);
    while (pool.workers > 0) pthread_join(pool.worker[--pool.workers], NULL);
    pool.requested = 0;
}

/* Counts the calling thread, once. Returns whether it is counted. */
static bool count_caller(void) {
    if (!pool.has_key || pthread_getspecific(pool.key)) return pool.has_key;
    if (pthread_setspecific(pool.key, &pool) != 0) return false;
    __atomic_add_fetch(&pool.callers, 1, __ATOMIC_SEQ_CST);
    return true;
}

/* The end of a thread that is counted. If another thread has the workers now, then it counts as
 * well, or it is ending them. */
static void at_thread_exit(void *unused) {
    (void)unused;
    const int others = __atomic_sub_fetch(&pool.callers, 1, __ATOMIC_SEQ_CST);
    if (others > 0 || pthread_mutex_trylock(&pool.owner) != 0) return;
    end_workers();
    pthread_mutex_unlock(&pool.owner);
}

/* Windows ends all other threads itself, before it runs the destructors of a DLL. There the end of
 * a thread must not wait for workers: it holds a lock that a worker needs to start. */
#ifdef _WIN32
#define AT_THE_END               unused
#define AT_THREAD_EXIT(function) (false ? (function) : NULL)
#else
#define AT_THE_END               destructor
#define AT_THREAD_EXIT(function) (function)
#endif

/* A child of fork has none of the workers, and the locks may be in any state. */
static void renew_after_fork(void) {
    pool.requested = 0;
    pool.workers = 0;
    pool.members = 0;
    pool.posted.sleepers = 0;
    pool.done.sleepers = 0;
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.mutex, NULL);
    pthread_cond_init(&pool.posted.condition, NULL);
    pthread_cond_init(&pool.done.condition, NULL);
    pool.callers = pool.has_key && pthread_getspecific(pool.key);
}

__attribute__((constructor)) static void watch_forks_and_threads(void) {
    pthread_atfork(NULL, NULL, renew_after_fork);
    pool.has_key = pthread_key_create(&pool.key, AT_THREAD_EXIT(at_thread_exit)) == 0;
    count_caller();
}

/* Starts workers until there are as many as wanted. If the system refuses to start a worker, later
 * calls do not try it again. Workers block all signals, so that the program's own threads handle
 * them: there is one as long as there are workers. */
static void start_workers(int wanted) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (wanted <= pool.requested || pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; pool.requested < wanted; pool.requested++)
        if (pthread_create(&pool.worker[pool.workers], &attributes, worker_main, NULL) == 0)
            pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Runs when the program ends or the library is closed. Afterwards every call does its work on its
 * own thread. If a job is running, on another thread or because a part of the job called exit, its
 * workers stay. */
__attribute__((AT_THE_END)) static void stop_workers(void) {
    if (pthread_mutex_trylock(&pool.owner) == 0) end_workers();
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
    if (count_caller()) start_workers(workers - 1);
    post(at_most(pool.workers, workers - 1), n, at_most(PARTS_EACH * workers, n), work, context);
    while (threads_take_turns && job_is_posted()) sched_yield();
    work_on_parts(0);
    __atomic_and_fetch(&pool.members, ONE_FREE - 1, __ATOMIC_SEQ_CST); /* no worker joins now */
    wait_for(&pool.done, all_left);
    pthread_mutex_unlock(&pool.owner);
}
