/* common.c - what the targets of libFuzzer share: see common.h. */
#define _GNU_SOURCE /* memfd_create */
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A setting of the address sanitizer: like malloc, it refuses sizes that are far too large, and
 * does not stop the program.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=32";
}

/* libFuzzer closes the standard error of a target that prints much, so faults are written to a copy
 * of it. */
static FILE *report;
__attribute__((constructor)) static void keep_stderr(void) { report = fdopen(dup(2), "w"); }

void fault(const char *what) {
    const char *error = tensor_error();
    fprintf(report, "FAULT: %s (%s)\n", what, error ? error : "no error is pending");
    fflush(report);
    abort();
}

bool said(bool ok) {
    const char *error = tensor_error();
    if (ok && error) fault("a call succeeded and left an error");
    if (!ok && !error) fault("a call failed without a sentence");
    if (error && strlen(error) < 8) fault("the sentence is too short");
    for (const char *c = error ? error : ""; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) fault("the sentence is not printable");
    tensor_clear_error();
    return ok;
}

void make_file(MemoryFile *file) {
    file->fd = memfd_create("fuzz", 0);
    if (file->fd < 0) fault("there is no file in memory");
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

void write_file(const MemoryFile *file, const void *bytes, size_t size) {
    if (ftruncate(file->fd, 0) != 0 || pwrite(file->fd, bytes, size, 0) != (ssize_t)size)
        fault("a file in memory cannot be written");
}

FILE *nowhere(void) {
    static FILE *file;
    if (!file) file = fopen("/dev/null", "w");
    if (!file) fault("/dev/null cannot be opened");
    return file;
}

bool same_bytes(const Tensor *a, const Tensor *b) {
    static const size_t size[] = {4, 8, 8, 1}; /* by DType */
    if (a->dtype != b->dtype || a->shape.ndim != b->shape.ndim) return false;
    for (int d = 0; d < a->shape.ndim; d++)
        if (a->shape.dim[d] != b->shape.dim[d]) return false;
    Tensor *x = tensor_clone(a);
    Tensor *y = tensor_clone(b); /* in row-major order */
    if (!x || !y) fault("a tensor cannot be copied");
    const bool same = !memcmp(x->data, y->data, (size_t)tensor_numel(x) * size[x->dtype]);
    tensor_release(x);
    tensor_release(y);
    return same;
}
