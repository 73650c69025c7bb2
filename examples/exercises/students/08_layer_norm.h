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

/* SHOW("p", p[i][j], i, j); gives a number of yours to the marker: README.md says when.
 * The stages, with their indices: mean, var, sd (i), xhat, dxhat (i, j), sums, where mean(g) is
 * (i, 0) and mean(g xhat) is (i, 1), dx, dw, db. */
#ifdef TAPEHEAD_SHOW
void tapehead_show(const char *name, double value, const int *at, int n);
#define SHOW(name, value, ...)                                                                     \
    tapehead_show(name, value, (const int[]){__VA_ARGS__},                                         \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#else
#define SHOW(name, value, ...) ((void)(value))
#endif

#endif
