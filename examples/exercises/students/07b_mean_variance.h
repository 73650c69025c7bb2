/* The function of 07b_mean_variance.c. */
#ifndef EXERCISE_07B_H
#define EXERCISE_07B_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mean_variance_backward(int rows, int n, double dx[rows][n], const double x[rows][n],
                            const double dy[rows][2]);

/* SHOW("p", p[i][j], i, j); gives a number of yours to the marker: README.md says when. */
#ifdef TAPEHEAD_SHOW
void tapehead_show(const char *name, double value, const int *at, int n);
#define SHOW(name, value, ...)                                                                     \
    tapehead_show(name, value, (const int[]){__VA_ARGS__},                                         \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#else
#define SHOW(name, value, ...) ((void)(value))
#endif

#endif
