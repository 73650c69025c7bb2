/* output.c - writing files and standard output: see output.h. */
#include "output.h"

#include "../../tensor/tensor.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Signals wait only while a regular file is written: writing to a pipe may never end. */
static bool becomes_a_file(const char *path) {
    struct stat status;
    return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

bool output_write(const char *path, void (*write)(FILE *file, const void *context),
                  const void *context) {
    sigset_t held, before;
    sigemptyset(&held);
    if (becomes_a_file(path)) {
        sigaddset(&held, SIGINT);
        sigaddset(&held, SIGTERM);
        sigaddset(&held, SIGHUP);
    }
    sigprocmask(SIG_BLOCK, &held, &before);
    const bool ok = tensor_write_file(path, write, context);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return ok;
}

bool output_stdout_ok(void) { return fflush(stdout) == 0 && !ferror(stdout); }

bool output_reader_is_gone(void) {
    struct stat status;
    return !output_stdout_ok() && fstat(STDOUT_FILENO, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool terminal_is(FILE *file) { return isatty(fileno(file)) == 1; }

bool terminal_is_plain(FILE *file) {
    const char *locale = getenv("LC_ALL");
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (!locale || !*locale) locale = getenv("LC_CTYPE");
    if (!locale || !*locale) locale = getenv("LANG");
    bool utf8 = locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8"));
    bool allowed = utf8 && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    return !allowed || !terminal_is(file);
}
