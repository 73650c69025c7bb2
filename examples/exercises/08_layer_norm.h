/* The function of 08_layer_norm.c. */
#ifndef EXERCISE_08_H
#define EXERCISE_08_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void layer_norm_backward(int rows, int n, double eps, double dx[rows][n], double dw[n],
                         double db[n], const double x[rows][n], const double w[n],
                         const double dy[rows][n]);

#endif
