/* output.h - what is written to files and printed. */
#ifndef TAPEHEAD_EXAMPLES_OUTPUT_H
#define TAPEHEAD_EXAMPLES_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* tensor_write_file, which no interrupt can stop in the middle: Ctrl-C waits until the file is
 * whole, and in its place. */
bool output_write(const char *path, void (*write)(FILE *file, const void *context),
                  const void *context);

/* True if all that was printed so far has arrived. */
bool output_stdout_ok(void);

/* Has nobody read what was printed to a pipe, since the reader ended first, as `head -1` does once
 * it has its line? Then a program ends without a word, with the status that SIGPIPE would give it.
 */
bool output_reader_is_gone(void);
enum { OUTPUT_READER_GONE = 128 + 13 };

#endif
