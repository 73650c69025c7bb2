/* numbers.h - numbers that a student types, and softmax. */
#ifndef TAPEHEAD_EXERCISES_NUMBERS_H
#define TAPEHEAD_EXERCISES_NUMBERS_H

#include <stdbool.h>

/* Reads exactly n numbers with spaces or commas between; true and false are 1 and 0, and nan is a
 * number. False if the line has anything else. */
bool numbers_read(const char *line, double *number, int n);

/* y = softmax(s y) over the kept, 0 elsewhere; keep NULL: all are kept. */
void softmax_of(int n, double *y, double s, const bool *keep);

#endif
