/* process.h - runs the compiler and the students' programs, each with a time limit, and makes the
 * folders in which they lie. */
#ifndef TAPEHEAD_EXERCISES_PROCESS_H
#define TAPEHEAD_EXERCISES_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    PROCESS_ENDED,     /* with an exit status */
    PROCESS_KILLED,    /* by a signal */
    PROCESS_TIMED_OUT, /* it computed or slept for too long, and was stopped */
    PROCESS_STARVED,   /* it was stopped, and had not computed for too long: the machine was busy */
    PROCESS_NOT_STARTED, /* there is no such program, or the system has no room for it */
} ProcessEnd;

typedef struct {
    ProcessEnd end;
    int status; /* the exit status or the signal */
} ProcessResult;

static inline bool process_succeeded(ProcessResult result) {
    return result.end == PROCESS_ENDED && result.status == 0;
}

/* Compilers speak English, and Ctrl-C sets process_interrupted; then every program is stopped.
 * Where the marker is root, the programs run as this user; NULL: as nobody. False with a sentence
 * if there is no such user. */
bool process_prepare(const char *user, char *sentence, size_t size);
bool process_interrupted(void);
/* The user as whom the programs run; NULL: as the marker itself. */
const char *process_user(void);

/* A busy machine does not make a program slow: its time is that of a processor. A student's program
 * that sleeps gets twice as much. By the clock every program has 30 times as much: then the machine
 * is to blame, or nothing says that the program sleeps (that is known on Linux alone). */
enum { PROCESS_SLEEP = 2, PROCESS_PATIENCE = 30 };

typedef struct {
    char *const *argv;  /* the program, which is found as a shell finds it, and its arguments */
    const char *folder; /* where it runs; the paths of argv may be relative to it */
    const char *output; /* the file for all that it prints, at most some megabytes */
    double seconds;     /* of a processor */
    bool own;           /* it runs as the marker's user */
    /* A student's program is argv[0] in `folder`, and has two files: 3 for the calls, 4 for the
     * results, at most so many bytes. It cannot
     * start a program or write another file, where the system can forbid it: see filter.h. Of the
     * compiler calls is NULL. */
    const char *calls, *results;
    bool closed; /* it is linked statically, and may open no file */
    /* A compiler may open files of the system and of these folders alone, of which the first is its
     * own (filter_confine); NULL: all that its user may. */
    const char *const *confined;
    int64_t most;
} Program;

/* Runs a program, which reads nothing from standard input, until it ends. Then all processes that
 * it has left are ended. */
ProcessResult process_run(const Program *program);

/* What a signal says about the program: "it reads or writes memory that is not there". */
const char *process_signal_text(int signal);

/* Makes a new folder for temporary files; false if there can be none. */
bool process_make_folder(char *path, size_t size);
/* Makes a folder in it that others can read, or one in which the programs' user may write. */
bool process_make_folder_in(const char *parent, const char *name, bool theirs, char *path,
                            size_t size);
/* The programs' user may no longer write to this folder and its program. */
void process_keep(const char *folder, const char *program);

int process_cores(void);

#endif
