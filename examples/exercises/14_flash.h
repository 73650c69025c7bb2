/* The function of 14_flash.c. */
#ifndef EXERCISE_14_H
#define EXERCISE_14_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void flash_backward(int Q, int K, int D, double dq[Q][D], double dk[K][D], double dv[K][D],
                    const double q[Q][D], const double k[K][D], const double v[K][D],
                    const double dy[Q][D]);

#endif
