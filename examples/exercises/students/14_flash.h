/* The function of 14_flash.c. */
#ifndef EXERCISE_14_H
#define EXERCISE_14_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void flash_backward(int Q, int K, int D, double dq[Q][D], double dk[K][D], double dv[K][D],
                    const double q[Q][D], const double k[K][D], const double v[K][D],
                    const double dy[Q][D]);

/* SHOW("p", p[i][j], i, j); gives a number of yours to the marker: README.md says when.
 * The stages, with their indices: s, p, dp, ds (i, j), dq, dk, dv. */
#ifdef TAPEHEAD_SHOW
void tapehead_show(const char *name, double value, const int *at, int n);
#define SHOW(name, value, ...)                                                                     \
    tapehead_show(name, value, (const int[]){__VA_ARGS__},                                         \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#else
#define SHOW(name, value, ...) ((void)(value))
#endif

#endif
