/* trial.h - compiles a student's file, and lets the student's function compute the calls, in a
 * process of its own. */
#ifndef TAPEHEAD_EXERCISES_TRIAL_H
#define TAPEHEAD_EXERCISES_TRIAL_H

#include "calls.h"
#include "place.h"
#include "protocol.h"

enum { TRIAL_SECONDS = 10, MORE_SECONDS = 1, MOST_TIMEOUTS = 3 };

typedef enum {
    TRIAL_DONE,       /* the function has returned from every call */
    TRIAL_EMPTY,      /* there is no file, or its backward is empty; sentence: what may be meant */
    TRIAL_REFUSED,    /* sentence: why the file is not read */
    TRIAL_NO_COMPILE, /* sentence: the first error */
    TRIAL_CRASH,      /* sentence: why */
    TRIAL_EXIT,       /* it has called exit */
    TRIAL_TIMEOUT,    /* it computed longer than TRIAL_SECONDS, or slept */
    TRIAL_IMPOSSIBLE  /* sentence: what the machine could not do */
} TrialEnd;

typedef struct {
    Shown number;
    int call;
} ShownInCall;

typedef struct {
    const Place *place;
    TrialEnd end;
    bool of_file; /* the file is missing or refused: its other functions end so, too */
    char sentence[SENTENCE_SIZE];
    char warning[SENTENCE_SIZE]; /* the first warning of the compiler, "" if there is none */
    char program[PATH_SIZE];
    char printed[PATH_SIZE]; /* the file with all that the function printed */
    Calls calls;             /* with the student's outputs */
    CallResult *result;      /* for each call; its call is -1 if the function has not returned */
    ShownInCall *shown;      /* what it has shown in calls with a dense dy */
    int num_shown;
    int stopped; /* the first call from which it did not return; -1 */
    int timeouts;
    int64_t static_bytes;  /* of the student's file */
    int32_t unwritten;     /* bit i: the function writes nothing to array i */
    int32_t looks_outside; /* bit i: array i depends on what stands beside an array */
    int32_t unsteady;      /* bit i: a call that is made again gives another array i */
} Trial;

/* Compiles the student's file: end is TRIAL_DONE if there is a program. */
void trial_compile(Trial *trial, const Exercise *e, const Place *place);
/* Lets the program compute these calls from `from` on; it takes a copy of all. After a crash, or
 * for a shorter time after an endless loop, the next input is tried: a mistake may be decided
 * there. */
void trial_compute(Trial *trial, const Exercise *e, const Calls *calls, int from);
/* All of them, with a process for each input: a function that overwrites its heap on one input does
 * not spoil the next one. */
void trial_compute_apart(Trial *trial, const Exercise *e, const Calls *calls);
/* Calls the function once more, alone, on call i of `given`: `printed` has then what it printed on
 * this input. An array that is carried begins as the student's function left it. */
void trial_print_again(const Trial *trial, const Exercise *e, const Calls *given, int i);
/* Bit i: some call from which both have returned gives two arrays i. */
int32_t trial_differing(const Trial *a, const Trial *b, const Exercise *e);
/* Has the function returned from any call? */
bool trial_has_results(const Trial *trial);
void trial_free(Trial *trial);

#endif
