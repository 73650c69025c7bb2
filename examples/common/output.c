/* output.c - files that appear whole or not at all: see output.h.
 *
 * rename() replaces a file in one step, so the only trace that a failure can leave is the temporary
 * file, and both ways out, the error and the signal, remove it.
 */
#include "output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH 4096

static char temporary[MAX_PATH + 32]; /* the file that a signal should remove */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define NUM_SIGNALS ((int)(sizeof signals / sizeof *signals))

/* Then the signal does what it would have done (SA_RESETHAND put that back). */
static void remove_temporary(int number) {
    unlink(temporary);
    raise(number);
}

/* A program that was told to ignore a signal, as nohup does, goes on ignoring it. */
static void catch_signals(struct sigaction *before) {
    struct sigaction action = {.sa_handler = remove_temporary, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < NUM_SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler == SIG_DFL) sigaction(signals[i], &action, NULL);
    }
}

static void restore_signals(const struct sigaction *before) {
    for (int i = 0; i < NUM_SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
}

/* 0, or the error number. */
static int fill(const char *path, const char *mode, void (*write)(FILE *, const void *),
                const void *context) {
    FILE *file = fopen(path, mode);
    if (!file) return errno;
    errno = 0;
    write(file, context);
    int problem = 0;
    if (fflush(file) || ferror(file)) problem = errno ? errno : EIO;
    if (fclose(file) && !problem) problem = errno;
    return problem;
}

/* path is where the file really is, or will be: links have been followed. */
static int replace(const char *path, const struct stat *old, void (*write)(FILE *, const void *),
                   const void *context) {
    struct sigaction before[NUM_SIGNALS];
    if (strlen(path) >= MAX_PATH) return ENAMETOOLONG;
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    catch_signals(before);
    int problem = fill(temporary, "wx", write, context);
    if (!problem && old) chmod(temporary, old->st_mode & 0777);
    if (!problem && rename(temporary, path)) problem = errno;
    if (problem && problem != EEXIST) unlink(temporary);
    restore_signals(before);
    return problem;
}

bool output_check(const char *path, char error[OUTPUT_ERROR_SIZE]) {
    char folder[MAX_PATH] = ".";
    const char *slash = strrchr(path, '/');
    int length = slash == path ? 1 : slash ? (int)(slash - path) : 0;
    if (length) snprintf(folder, sizeof folder, "%.*s", length, path);
    struct stat old;
    bool exists = stat(path, &old) == 0, directory = exists && S_ISDIR(old.st_mode);
    if (directory) errno = EISDIR;
    else if (access(exists ? path : folder, exists ? W_OK : W_OK | X_OK) == 0) return true;
    snprintf(error, OUTPUT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(errno));
    return false;
}

bool output_write(const char *path, void (*write)(FILE *file, const void *context),
                  const void *context, char error[OUTPUT_ERROR_SIZE]) {
    struct stat old;
    bool exists = stat(path, &old) == 0;
    int problem;
    if (exists && access(path, W_OK)) {
        problem = errno;
    } else if (exists && !S_ISREG(old.st_mode)) {
        problem = fill(path, "w", write, context);
    } else {
        char *target = exists ? realpath(path, NULL) : NULL;
        problem = replace(target ? target : path, exists ? &old : NULL, write, context);
        free(target);
    }
    if (problem)
        snprintf(error, OUTPUT_ERROR_SIZE, "cannot write %.300s: %s", path, strerror(problem));
    return problem == 0;
}

bool output_stdout_ok(void) { return fflush(stdout) == 0 && !ferror(stdout); }

bool output_reader_is_gone(void) {
    struct stat status;
    return !output_stdout_ok() && fstat(STDOUT_FILENO, &status) == 0 && S_ISFIFO(status.st_mode);
}
