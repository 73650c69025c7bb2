/* common.h - what the targets of libFuzzer share: files in memory, and what must hold after every
 * call of the library. */
#ifndef TESTS_FUZZ_COMMON_H
#define TESTS_FUZZ_COMMON_H

#include "../../nn/nn.h"

/* libFuzzer calls this with one input after the other. */
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* Says what is wrong and aborts, for libFuzzer to keep the input. */
void fault(const char *what);

/* A call succeeded, and left no error, or failed, and left one printable sentence, which is
 * cleared. Hands ok back. */
bool said(bool ok);

/* A file in memory, under a path that can be opened by its name. What is written to it by a program
 * is appended; it is emptied by write_file. */
typedef struct {
    int fd;
    char path[32];
} MemoryFile;
void make_file(MemoryFile *file); /* empty */
void write_file(const MemoryFile *file, const void *bytes, size_t size);

FILE *nowhere(void); /* /dev/null, open for writing */

bool same_bytes(const Tensor *a, const Tensor *b); /* and type and shape */

#endif
