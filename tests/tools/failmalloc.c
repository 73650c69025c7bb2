/* failmalloc.c - LD_PRELOAD=build/failmalloc.so FAIL_AT=n PROGRAM: the nth allocation of the
 * program or of the C library fails. With FAIL_ALL=1 all later allocations fail, too, as when
 * memory has run out. With ALLOCATIONS=FILE the number of allocations is written to FILE. Needs
 * glibc. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The functions of glibc; this file replaces their usual names. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_long asked;
static long fail_at; /* 0: none fails */
static bool fail_all;

/* Allocations of the loader before this call do not count. */
__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAIL_AT");
    fail_at = at ? atol(at) : 0;
    const char *all = getenv("FAIL_ALL");
    fail_all = all && *all;
    asked = 0;
}

static bool refuses(void) {
    const long n = ++asked;
    const bool refused = fail_at > 0 && (n == fail_at || (fail_all && n > fail_at));
    if (refused) errno = ENOMEM;
    return refused;
}

void *malloc(size_t size) { return refuses() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refuses() ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return refuses() ? NULL : __libc_realloc(block, size); }
void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size) {
    return refuses() ? NULL : __libc_memalign(alignment, size);
}
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

__attribute__((destructor)) static void write_count(void) {
    const char *path = getenv("ALLOCATIONS");
    char text[32];
    if (!path) return;
    const int length = snprintf(text, sizeof text, "%ld\n", (long)asked);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, text, (size_t)length) != length) abort();
    close(file);
}
