/* The function of 06_dropout.c. */
#ifndef EXERCISE_06_H
#define EXERCISE_06_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dropout_backward(int n, double p, const bool kept[n], double dx[n], const double dy[n]);

/* SHOW("p", p[i][j], i, j); gives a number of yours to the marker: README.md says when.
 * The stages, with their indices: scale (0), mask, dx. */
#ifdef TAPEHEAD_SHOW
void tapehead_show(const char *name, double value, const int *at, int n);
#define SHOW(name, value, ...)                                                                     \
    tapehead_show(name, value, (const int[]){__VA_ARGS__},                                         \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#else
#define SHOW(name, value, ...) ((void)(value))
#endif

#endif
