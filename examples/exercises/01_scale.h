/* The function of 01_scale.c. */
#ifndef EXERCISE_01_H
#define EXERCISE_01_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scale_backward(int n, double s, double dx[n], const double dy[n]);

#endif
