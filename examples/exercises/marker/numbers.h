/* numbers.h - NaNs that say where they come from, numbers in a sentence, softmax. */
#ifndef TAPEHEAD_EXERCISES_NUMBERS_H
#define TAPEHEAD_EXERCISES_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* Where a NaN comes from is in its bits, and arithmetic keeps them. harness.c fills what lies
 * beside an array, and what nobody has set, with such NaN's. */
typedef enum {
    NAN_MADE,  /* 0 / 0, the root of a number below 0, ... */
    NAN_UNSET, /* of memory that nobody has set */
    NAN_BEFORE,
    NAN_BEHIND, /* read before or behind an array, */
    NAN_BLOCK,  /* or behind a block of malloc */
    NAN_GIVEN,  /* of a masked dy */
    NAN_UNKNOWN /* a processor that does not keep the bits */
} NanSource;
NanSource nan_source(double nan, int *array); /* array: its number, if it is beside one */
double nan_given(void);
/* The first of n elements that is NaN, and right is not; -1 if there is none. */
int64_t first_nan(int64_t n, const double *x, const double *right);

/* "+0.5", with so many digits. A zero, also -0, is "0": its sign says nothing. */
void number_signed(char text[32], double number, int digits);

/* y = softmax(y) over the kept, 0 elsewhere; keep NULL: all are kept. */
void softmax_of(int n, double *y, const bool *keep);

#endif
