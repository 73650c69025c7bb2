/* system.c - the functions that the suites call and wasi-libc does not have. Temporary files are in
 * memory. No file can be replaced and no other program can run, so the tests that do this are left
 * out (see run). */
#include "system.h"

#include "../../tensor/files/file.h"
#include "../suites/common_program.h"

#include <errno.h>

FILE *tmpfile(void) { return fmemopen(NULL, 1 << 20, "w+"); }

unsigned alarm(unsigned seconds) {
    (void)seconds;
    return 0;
}

static int refuse(void) {
    errno = ENOTSUP;
    return -1;
}

FILE *popen(const char *command, const char *mode) {
    (void)command;
    (void)mode;
    refuse();
    return NULL;
}

int pclose(FILE *file) {
    (void)file;
    return refuse();
}

int mkstemp(char *path) {
    (void)path;
    return refuse();
}

/* In place of tensor/files/replace.c. */
bool tensor_can_replace(const char *path) {
    (void)path;
    return refuse() == 0;
}

FILE *tensor_replacement_begin(Replacement *r, const char *path) {
    (void)r;
    (void)path;
    refuse();
    return NULL;
}

const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok) {
    (void)r;
    (void)stream;
    (void)ok;
    return NULL;
}

bool has_full_disk(void) { return false; }
