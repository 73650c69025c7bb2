/* The function of 07_linear.c. */
#ifndef EXERCISE_07_H
#define EXERCISE_07_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void linear_backward(int rows, int in, int out, double dx[rows][in], double dw[out][in],
                     double db[out], const double x[rows][in], const double w[out][in],
                     const double dy[rows][out]);

#endif
