/* terminal.h - small drawings made of characters. */
#ifndef TAPEHEAD_EXAMPLES_TERMINAL_H
#define TAPEHEAD_EXAMPLES_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* True if the file is a terminal. */
bool terminal_is(FILE *file);

/* True if the output must be plain ASCII: the file is no terminal, or the environment says so (no
 * UTF-8 locale, NO_COLOR, TERM=dumb). */
bool terminal_is_plain(FILE *file);

/* Draws points and a curve, 64 columns by 16 lines: in braille dots and colours, or in ASCII. */
void terminal_curve(FILE *file, const double *x, const double *y, int64_t n, const double *curve_x,
                    const double *curve_y, int64_t num_curve);

#endif
