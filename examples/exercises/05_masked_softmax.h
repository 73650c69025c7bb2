/* The function of 05_masked_softmax.c. */
#ifndef EXERCISE_05_H
#define EXERCISE_05_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void masked_softmax_backward(int n, double s, const bool keep[n], double dx[n], const double y[n],
                             const double dy[n]);

#endif
