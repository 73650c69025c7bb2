/* common.h - what the targets of libFuzzer share: files in memory, and what must hold after every
 * call of the library. */
#ifndef TESTS_FUZZ_COMMON_H
#define TESTS_FUZZ_COMMON_H

#include "../../nn/nn.h"

/* libFuzzer calls this with one input after the other. */
int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

/* Prints the problem and aborts, so that libFuzzer keeps the input. */
void fault(const char *what);

/* Checks that a call succeeded and set no error, or failed and set one printable error message.
 * Clears the error. Returns ok. */
bool said(bool ok);

/* A file in memory, with a path. write_file replaces its contents; a program that writes to the
 * path appends. */
typedef struct {
    int fd;
    char path[32];
} MemoryFile;
void make_file(MemoryFile *file); /* empty */
void write_file(const MemoryFile *file, const void *bytes, size_t size);

FILE *nowhere(void); /* /dev/null, open for writing */

bool same_bytes(const Tensor *a, const Tensor *b); /* are the elements, the types and the shapes
                                                    * equal? */

#endif
