/* common_line.h - reads the lines that a lesson prints: "2 x (-1.5) + exp(0.5) / 3". */
#ifndef TESTS_COMMON_LINE_H
#define TESTS_COMMON_LINE_H

#include <stdbool.h>

/* Reads a name that may stand for a number, and moves behind it; false if none begins here. */
typedef bool ReadLetter(const char **at, double *value);

/* The value of the sum that begins at *at, which moves behind it; false if it is no arithmetic.
 * With letters, factors may stand beside each other, "p (1 - p) dA_1". letter may be NULL. */
bool read_sum(const char **at, double *value, ReadLetter *letter);

/* 1 in the last place of the number that begins here: 0.01 for "-1.48", 1e-7 for "2.5e-6". */
double last_place(const char *number);

#endif
