/* dots.h - a curve made of characters. */
#ifndef TAPEHEAD_EXAMPLES_DOTS_H
#define TAPEHEAD_EXAMPLES_DOTS_H

#include <stdint.h>
#include <stdio.h>

/* Draws points and a curve, 64 columns by 16 lines: in braille dots and colours, or in ASCII. */
void dots_curve(FILE *file, const double *x, const double *y, int64_t n, const double *curve_x,
                const double *curve_y, int64_t num_curve);

#endif
