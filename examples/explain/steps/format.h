/* format.h - how a table writes its numbers, in the page and in a terminal; texts that grow. */
#ifndef TAPEHEAD_EXAMPLES_FORMAT_H
#define TAPEHEAD_EXAMPLES_FORMAT_H

#include "../../../tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

/* `decimals` decimals, after the numbers are divided by 10^exponent. */
typedef struct {
    int decimals, exponent;
} Format;

/* The format of a table: three digits for the largest number below 100,000, fewer if all numbers
 * are short; a table of small numbers has a power of ten. */
Format format_of(const double *numbers, int64_t size);

enum { NUMBER_TEXT = 40 };
/* A number in its table. An exact 0 is "0", and no other number is. */
void format_cell(double x, Format format, char text[NUMBER_TEXT]);
/* The same number alone, with the power of ten: "1.22e-5". */
void format_number(double x, Format format, char text[NUMBER_TEXT]);
/* The number that is then printed. */
double format_value(double x, Format format);
/* A number of no table: in full if it is short, else four digits. */
Format format_of_constant(double x);

#endif
