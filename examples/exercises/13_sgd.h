/* The function of 13_sgd.c. */
#ifndef EXERCISE_13_H
#define EXERCISE_13_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sgd_step(int n, double lr, double momentum, double theta[n], double velocity[n],
              const double g[n]);

#endif
