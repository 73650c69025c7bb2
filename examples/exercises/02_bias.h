/* The function of 02_bias.c. */
#ifndef EXERCISE_02_H
#define EXERCISE_02_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bias_backward(int rows, int n, double dx[rows][n], double db[n], const double dy[rows][n]);

#endif
