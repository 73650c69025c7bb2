/* process.h - runs the compiler and the students' programs, each with a time limit, and makes the
 * folder in which they lie. process.c is for POSIX, process_windows.c for Windows, which has no
 * fork. */
#ifndef TAPEHEAD_EXERCISES_PROCESS_H
#define TAPEHEAD_EXERCISES_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    PROCESS_ENDED,       /* with an exit status */
    PROCESS_KILLED,      /* by a signal, or on Windows by an exception */
    PROCESS_TIMED_OUT,   /* it ran for too long, and was stopped */
    PROCESS_NOT_STARTED, /* there is no such program */
} ProcessEnd;

typedef struct {
    ProcessEnd end;
    int status; /* the exit status or the signal */
} ProcessResult;

/* Compilers speak English, and Ctrl-C sets process_interrupted; then every program is stopped. */
void process_prepare(void);
bool process_interrupted(void);

/* Runs a program, which is found as a shell finds it, until it ends, or has computed for so many
 * seconds. (A program that only waits is stopped after twice as many.) It reads nothing; all
 * that it prints goes to the file `output`, at most some megabytes. */
ProcessResult process_run(char *const *argv, const char *output, double seconds);

/* What a signal says about the program: "it reads or writes memory that is not there". */
const char *process_signal_text(int signal);

/* Makes a new folder for temporary files; false if there can be none. */
bool process_make_folder(char *path, size_t size);
bool process_make_folder_in(const char *parent, const char *name, char *path, size_t size);

int process_cores(void);

#endif
