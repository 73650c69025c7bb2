/* The function of 06_dropout.c. */
#ifndef EXERCISE_06_H
#define EXERCISE_06_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dropout_backward(int n, double p, const bool kept[n], double dx[n], const double dy[n]);

#endif
