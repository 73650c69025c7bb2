/* win32.h - what tensor/files/, tensor/fast/ and the programs use of POSIX, and Windows with
 * MinGW-w64 does not have. On Windows the Makefile includes this header before every source. The
 * core needs none of it. */
#ifndef TAPEHEAD_TENSOR_WIN32_H
#define TAPEHEAD_TENSOR_WIN32_H

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- numbers -------------------------------------------------------------------------------- */

/* MinGW-w64's fma and fmaf may round twice. */
double tensor_fma(double a, double b, double c);
float tensor_fmaf(float a, float b, float c);
#define fma(a, b, c)  tensor_fma(a, b, c)
#define fmaf(a, b, c) tensor_fmaf(a, b, c)

/* ---- files ---------------------------------------------------------------------------------- */

#define O_CLOEXEC  (_O_NOINHERIT | _O_BINARY) /* Windows would also change the ends of lines */
#define O_NONBLOCK 0

/* Do two paths name the same file? stat knows no number of the file. */
int win32_same_file(const char *a, const char *b);

#define realpath(path, to) _fullpath(to, path, 0)

/* The bytes that are written to this stream are in memory after win32_read_back, and not before. */
FILE *fmemopen(void *memory, size_t size, const char *mode);
void win32_read_back(FILE *file, void *memory, size_t size);

/* ---- processes and signals ------------------------------------------------------------------ */

#undef pthread_atfork /* there is no fork */
#define pthread_atfork(before, parent, child) ((void)(child))
#undef pthread_sigmask
#define pthread_sigmask sigprocmask
#define sysconf(name)   pthread_num_processors_np()

#define SIGHUP  SIGBREAK /* Ctrl-Break, or the window of the console was closed */
#define SIGPIPE 13       /* signal refuses these two, and so they are never sent */
#define SIGXFSZ 25

/* Signals are not blocked: Ctrl-C while a file is written leaves the old file, and a temporary file
 * that the next writer removes. */
typedef int win32_signals;
#define sigset_t win32_signals
#undef SIG_BLOCK
#undef SIG_SETMASK
enum { SIG_BLOCK, SIG_SETMASK };
#define sigemptyset(set)              ((void)(set))
#define sigfillset(set)               ((void)(set))
#define sigaddset(set, number)        ((void)(set))
#define sigprocmask(how, set, before) ((void)(set), (void)(before))

enum { SA_RESTART = 1 };
struct sigaction {
    void (*sa_handler)(int);
    int sa_flags, sa_mask;
};
int sigaction(int number, const struct sigaction *after, struct sigaction *before);

#endif
