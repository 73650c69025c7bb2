/* The function of 02_bias.c. */
#ifndef EXERCISE_02_H
#define EXERCISE_02_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bias_backward(int rows, int n, double dx[rows][n], double db[n], const double dy[rows][n]);

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
