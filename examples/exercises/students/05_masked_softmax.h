/* The function of 05_masked_softmax.c. */
#ifndef EXERCISE_05_H
#define EXERCISE_05_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void masked_softmax_backward(int n, double s, const bool keep[n], double dx[n], const double y[n],
                             const double dy[n]);

/* SHOW("p", p[i][j], i, j); gives a number of yours to the marker: README.md says when.
 * The stages, with their indices: sum (0), scale, mask, dx. */
#ifdef TAPEHEAD_SHOW
void tapehead_show(const char *name, double value, const int *at, int n);
#define SHOW(name, value, ...)                                                                     \
    tapehead_show(name, value, (const int[]){__VA_ARGS__},                                         \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#else
#define SHOW(name, value, ...) ((void)(value))
#endif

#endif
