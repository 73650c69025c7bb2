/* output.h - files that appear whole or not at all. */
#ifndef TAPEHEAD_EXAMPLES_OUTPUT_H
#define TAPEHEAD_EXAMPLES_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#define OUTPUT_ERROR_SIZE 512

/* Could path be written, as far as can be told without writing? To ask before long work: false with
 * the sentence in error that output_write would give. */
bool output_check(const char *path, char error[OUTPUT_ERROR_SIZE]);

/* Has write(file, context) fill a temporary file beside path and then gives it path's name, so that
 * nobody ever sees half of it; an interrupt in between removes the temporary file. A path that is
 * a device or a pipe is written directly. False with a sentence in error. */
bool output_write(const char *path, void (*write)(FILE *file, const void *context),
                  const void *context, char error[OUTPUT_ERROR_SIZE]);

/* True if all that was printed so far has arrived. */
bool output_stdout_ok(void);

/* Has nobody read what was printed to a pipe, since the reader ended first, as `head -1` does once
 * it has its line? Then a program ends without a word, with the status that SIGPIPE would give it.
 */
bool output_reader_is_gone(void);
enum { OUTPUT_READER_GONE = 128 + 13 };

#endif
