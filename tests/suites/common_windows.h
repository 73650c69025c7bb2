/* common_windows.h - for the suites on Windows: what MinGW-w64 does not have; included before each
 * suite. */
#ifndef TESTS_COMMON_WINDOWS_H
#define TESTS_COMMON_WINDOWS_H

#include <check.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The text is there after fclose. */
FILE *open_memstream(char **text, size_t *size);
int close_stream(FILE *file);
#define fclose close_stream

/* Tests that need a shell, or a linker that replaces functions of the C library, are left out. */
bool runs_on_windows(const char *test);
#define _tcase_add_test(tcase, test, ...)                                                          \
    (runs_on_windows((test)->name) ? _tcase_add_test(tcase, test, __VA_ARGS__) : (void)0)

void *aligned_alloc(size_t alignment, size_t size);
#define malloc_usable_size(block) ((void)(block), 0)

static inline unsigned alarm(unsigned seconds) { return seconds; } /* a suite that hangs, hangs */
static inline int setenv(const char *name, const char *value, int replace) {
    return replace || !getenv(name) ? _putenv_s(name, value) : 0;
}
static inline int unsetenv(const char *name) { return _putenv_s(name, ""); }

#endif
