/* The function of 10_additive.c. */
#ifndef EXERCISE_10_H
#define EXERCISE_10_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void additive_backward(int Q, int K, int H, double dq[Q][H], double dk[K][H], double dw[H],
                       const double q[Q][H], const double k[K][H], const double w[H],
                       const double ds[Q][K]);

#endif
