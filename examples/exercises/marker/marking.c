/* marking.c - marks several exercises, some at the same time: see marking.h. Threads compile the
 * files and wait for the programs; right results and diagnosis come from the thread that called. */
#include "marking.h"

#include "../../common/put_text.h"
#include "process.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    Marking *list;
    int n, compiled;
    int next_compiled, next_computed; /* the next exercise for compile_all and compute_all */
    const Place *place;
    pthread_mutex_t lock;
    pthread_cond_t over; /* something is compiled, or some trial is over */
} Queue;

/* The next exercise, or NULL. */
static Marking *take(Queue *queue, int *next) {
    pthread_mutex_lock(&queue->lock);
    Marking *marking = *next < queue->n ? &queue->list[(*next)++] : NULL;
    pthread_mutex_unlock(&queue->lock);
    return process_interrupted() ? NULL : marking;
}

/* Until something is over; at most a tenth of a second, since Ctrl-C ends no wait. */
static void wait_a_moment(Queue *queue) {
    enum { MOMENT = 100000000, SECOND = 1000000000 };
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += MOMENT;
    end.tv_sec += end.tv_nsec / SECOND;
    end.tv_nsec %= SECOND;
    pthread_cond_timedwait(&queue->over, &queue->lock, &end);
}

/* No student's code runs before all of it is compiled: so none can reach what the compiler writes.
 */
static void compile_all(Queue *queue) {
    int *next = &queue->next_compiled;
    for (Marking *m = take(queue, next); m; m = take(queue, next)) {
        trial_compile(&m->trial, m->exercise, queue->place);
        pthread_mutex_lock(&queue->lock);
        queue->compiled++;
        pthread_cond_broadcast(&queue->over);
        pthread_mutex_unlock(&queue->lock);
    }
    pthread_mutex_lock(&queue->lock);
    while (queue->compiled < queue->n && !process_interrupted()) wait_a_moment(queue);
    pthread_mutex_unlock(&queue->lock);
}

static void compute_all(Queue *queue) {
    int *next = &queue->next_computed;
    for (Marking *m = take(queue, next); m; m = take(queue, next)) {
        if (m->trial.end == TRIAL_DONE) trial_compute(&m->trial, m->exercise, &m->given, 0);
        pthread_mutex_lock(&queue->lock);
        m->tried = true;
        pthread_cond_broadcast(&queue->over);
        pthread_mutex_unlock(&queue->lock);
    }
}

static void *work(void *data) {
    compile_all(data);
    compute_all(data);
    return NULL;
}

/* At least four at a time: an endless loop must not stop the others. */
enum { LEAST_WORKERS = 4, MOST_WORKERS = 16 };
static int workers_for(int n) {
    int workers = process_cores() > LEAST_WORKERS ? process_cores() : LEAST_WORKERS;
    if (workers > n) workers = n;
    return workers < MOST_WORKERS ? workers : MOST_WORKERS;
}

/* The same program's trial, before it computes. */
static Trial fresh(const Trial *trial) {
    Trial other = *trial;
    other.end = TRIAL_DONE;
    other.stopped = -1;
    other.timeouts = 0;
    return other;
}

/* Does nothing that the function did before change what it computes? It has returned from every
 * call, written nothing outside of its arrays, gives the same when it is called again, and the same
 * in a process that begins with the second input, and draws other numbers. */
static bool forgets(const Marking *marking) {
    const Exercise *e = marking->exercise;
    const Trial *trial = &marking->trial;
    int second = 0;
    if (trial->stopped >= 0 || trial->unsteady) return false;
    for (int i = 0; i < trial->calls.n; i++)
        if (trial->result[i].outside) return false;
    while (second + 1 < marking->given.n && marking->given.call[second].input == 0) second++;
    Trial other = fresh(trial);
    trial_compute(&other, e, &marking->given, second);
    const bool same = other.stopped < 0 && !trial_differing(&other, trial, e);
    trial_free(&other);
    return same;
}

/* Something is wrong, and has no name: perhaps it has one if each input gets a process of its own;
 * or the function draws numbers, and gives others then. */
static void try_again(Marking *marking) {
    if (forgets(marking)) return;
    Trial apart = fresh(&marking->trial);
    trial_compute_apart(&apart, marking->exercise, &marking->given);
    apart.unsteady |= trial_differing(&apart, &marking->trial, marking->exercise);
    const Mark mark = diagnose(marking->exercise, &apart, &marking->given, &marking->right);
    if (mark.mistakes[0]) {
        trial_free(&marking->trial);
        marking->trial = apart;
        marking->mark = mark;
        return;
    }
    marking->trial.unsteady = apart.unsteady;
    trial_free(&apart);
    if (marking->trial.unsteady)
        marking->mark =
            diagnose(marking->exercise, &marking->trial, &marking->given, &marking->right);
}

static bool has_numbers(const Trial *trial) {
    return trial->end != TRIAL_EMPTY && trial->end != TRIAL_REFUSED &&
           trial->end != TRIAL_NO_COMPILE && trial->end != TRIAL_IMPOSSIBLE;
}

/* Waits until the trial is over; false after Ctrl-C. Somebody who waits in a terminal for a loop
 * without an end is told so, once. */
static bool await(Queue *queue, const Marking *marking) {
    enum { SILENCE = 3 };
    const time_t begin = time(NULL);
    bool says = isatty(2);
    char label[LABEL_SIZE];
    exercise_label(marking->exercise, label);
    pthread_mutex_lock(&queue->lock);
    while (!marking->tried && !process_interrupted()) {
        wait_a_moment(queue);
        if (!says || marking->tried || time(NULL) <= begin + SILENCE) continue;
        fprintf(stderr, "%s %s is still running; it is stopped after %d seconds of computing ...\n",
                label, marking->exercise->name, TRIAL_SECONDS);
        says = false;
    }
    pthread_mutex_unlock(&queue->lock);
    return !process_interrupted();
}

void marking_finish(Marking *marking) {
    const Exercise *e = marking->exercise;
    if (has_numbers(&marking->trial) && !marking->right.n) {
        marking->right = calls_copy(e, &marking->given);
        calls_right(e, &marking->right);
    }
    marking->mark = diagnose(e, &marking->trial, &marking->given, &marking->right);
    const bool wrong = has_numbers(&marking->trial) && marking->mark.kind != MARK_RIGHT;
    if (wrong && !marking->mark.mistakes[0] && trial_has_results(&marking->trial) &&
        !process_interrupted())
        try_again(marking);
    char *const warning = marking->trial.warning;
    if (marking->mark.kind == MARK_WRONG && !marking->mark.mistakes[0] && !*warning)
        place_warning(marking->trial.place, e, warning, sizeof marking->trial.warning);
    if (marking->mark.kind != MARK_RIGHT && *warning)
        put_text(marking->mark.text, TEXT_SIZE, "The compiler warns: %s\n", warning);
}

/* The file of several functions is missing: that is said of the first one. */
static bool is_said(const Trial *before, const Trial *trial) {
    return before->of_file && trial->of_file && strcmp(before->sentence, trial->sentence) == 0;
}

void marking_run(Marking *list, int n, const Place *place, uint64_t seed,
                 void (*done)(const Marking *marking, void *data), void *data) {
    Queue queue = {.list = list, .n = n, .place = place};
    pthread_t thread[MOST_WORKERS];
    int workers = 0;
    for (int i = 0; i < n; i++) list[i].given = calls_draw(list[i].exercise, seed);
    pthread_mutex_init(&queue.lock, NULL);
    pthread_cond_init(&queue.over, NULL);
    while (workers < workers_for(n) && pthread_create(&thread[workers], NULL, work, &queue) == 0)
        workers++;
    if (workers == 0) work(&queue); /* there are no threads */
    for (int i = 0; i < n && !process_interrupted(); i++) {
        if (await(&queue, &list[i])) marking_finish(&list[i]);
        if (i > 0 && is_said(&list[i - 1].trial, &list[i].trial)) *list[i].mark.text = '\0';
        if (!process_interrupted()) done(&list[i], data);
    }
    for (int i = 0; i < workers; i++) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&queue.lock);
    pthread_cond_destroy(&queue.over);
}

void marking_free(Marking *list, int n) {
    for (int i = 0; i < n; i++) {
        calls_free(&list[i].given);
        calls_free(&list[i].right);
        trial_free(&list[i].trial);
    }
}
