/* terminal.h - what is the output: a terminal, with colours? */
#ifndef TAPEHEAD_EXAMPLES_TERMINAL_H
#define TAPEHEAD_EXAMPLES_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* True if the file is a terminal. */
bool terminal_is(FILE *file);

/* True if the output must be plain ASCII: the file is no terminal, or the environment says so (no
 * UTF-8 locale, NO_COLOR, TERM=dumb). */
bool terminal_is_plain(FILE *file);

#endif
