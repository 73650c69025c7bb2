/* The function of 09_cross_entropy.c. */
#ifndef EXERCISE_09_H
#define EXERCISE_09_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cross_entropy_backward(int n, int target, double dloss, double dx[n], const double x[n]);

#endif
