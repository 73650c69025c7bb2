/* output.h - writing files and standard output, and whether it is a terminal. */
#ifndef TAPEHEAD_EXAMPLES_OUTPUT_H
#define TAPEHEAD_EXAMPLES_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* tensor_write_file, but Ctrl-C waits until the file is complete. */
bool output_write(const char *path, void (*write)(FILE *file, const void *context),
                  const void *context);

/* True if everything printed so far was written. */
bool output_stdout_ok(void);

/* Has the reader of our pipe ended, as `head -1` does after its line? Then a program prints nothing
 * more and exits with the status of SIGPIPE. */
bool output_reader_is_gone(void);
enum { OUTPUT_READER_GONE = 128 + 13 };

/* Is the file a terminal? */
bool terminal_is(FILE *file);
/* Must the output be plain ASCII: the file is no terminal, or the environment says so (no UTF-8
 * locale, NO_COLOR, TERM=dumb)? */
bool terminal_is_plain(FILE *file);

#endif
