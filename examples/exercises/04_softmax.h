/* The function of 04_softmax.c. */
#ifndef EXERCISE_04_H
#define EXERCISE_04_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]);

#endif
