/* process.c - programs with a time limit, on POSIX: see process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static void interrupt(int number) { interrupted = number; }
bool process_interrupted(void) { return interrupted; }

void process_prepare(void) {
    setenv("LC_ALL", "C", 1);
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
}

/* ---- one program ----------------------------------------------------------------------------- */

enum { MOST_OUTPUT = 16 << 20, MOST_MEMORY = 2000000000, NO_PROGRAM = 127, WAITS = 2 };

static void limit(int what, rlim_t most) {
    const struct rlimit both = {most,
                                what == RLIMIT_CPU ? most + 1 : most}; /* a signal, then the end */
    setrlimit(what, &both);
}

/* In the new process: a group of its own, so that its children are stopped with it. SIGXFSZ is
 * ignored (flags_parse), so what it prints beyond the limit is lost, and it goes on. */
static void become(char *const *argv, const char *output, double seconds) {
    const int in = open("/dev/null", O_RDONLY);
    const int out = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    setpgid(0, 0);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(NO_PROGRAM);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, MOST_OUTPUT);
    limit(RLIMIT_AS, MOST_MEMORY);
    limit(RLIMIT_CPU, (rlim_t)seconds); /* even if the marker itself is killed */
    execvp(argv[0], argv);
    _exit(NO_PROGRAM);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits, with longer and longer pauses, up to 5 ms. */
static bool wait_for(pid_t child, int *status, double seconds) {
    const double end = now() + WAITS * seconds;
    long pause = 100000;
    for (;;) {
        const pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child) return true;
        if (ended < 0 && errno != EINTR) return false;
        if (interrupted || now() > end) return false;
        nanosleep(&(struct timespec){0, pause}, NULL);
        if (pause < 5000000) pause += pause / 4;
    }
}

ProcessResult process_run(char *const *argv, const char *output, double seconds) {
    int status = 0;
    const pid_t child = fork();
    if (child < 0) return (ProcessResult){PROCESS_NOT_STARTED, errno};
    if (child == 0) become(argv, output, seconds);
    const bool ended = wait_for(child, &status, seconds);
    kill(-child, SIGKILL); /* what is left of its group */
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return (ProcessResult){PROCESS_TIMED_OUT, 0};
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return (ProcessResult){PROCESS_TIMED_OUT, 0};
    if (WIFSIGNALED(status)) return (ProcessResult){PROCESS_KILLED, WTERMSIG(status)};
    if (WEXITSTATUS(status) == NO_PROGRAM) return (ProcessResult){PROCESS_NOT_STARTED, 0};
    return (ProcessResult){PROCESS_ENDED, WEXITSTATUS(status)};
}

const char *process_signal_text(int number) {
    switch (number) {
    case SIGSEGV:
    case SIGBUS:
        return "it reads or writes memory that is not there: an index that is too large, a pointer "
               "that is not set, or an array too large for the stack";
    case SIGFPE: return "a whole number is divided by 0";
    case SIGABRT: return "it stops itself: abort, a failed assert, or a heap that was overwritten";
    case SIGILL: return "the processor does not know an instruction";
    case SIGKILL: return "the system has stopped it: too much memory, perhaps";
    default: return strsignal(number);
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

bool process_make_folder(char *path, size_t size) {
    const char *parent = getenv("TMPDIR");
    snprintf(path, size, "%s/exercises-XXXXXX", parent && *parent ? parent : "/tmp");
    return mkdtemp(path);
}

bool process_make_folder_in(const char *parent, const char *name, char *path, size_t size) {
    snprintf(path, size, "%s/%s", parent, name);
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

int process_cores(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
