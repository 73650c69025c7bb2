/* The function of 12_self_attention.c. */
#ifndef EXERCISE_12_H
#define EXERCISE_12_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void self_attention_backward(int n, int heads, int d, double dx[n][heads * d],
                             double dwq[heads * d][heads * d], double dwk[heads * d][heads * d],
                             double dwv[heads * d][heads * d], double dwo[heads * d][heads * d],
                             const double x[n][heads * d], const double wq[heads * d][heads * d],
                             const double wk[heads * d][heads * d],
                             const double wv[heads * d][heads * d],
                             const double wo[heads * d][heads * d], const double dy[n][heads * d]);

/* SHOW("p", p[i][j], i, j); gives a number of yours to the marker: README.md says when.
 * The stages, with their indices: q, k, v (i, c), s, p (head, i, j), o, dO (i, c), dp, ds (head, i,
 * j), dQ, dK, dV (i, c), dwq, dwk, dwv, dwo, dx. */
#ifdef TAPEHEAD_SHOW
void tapehead_show(const char *name, double value, const int *at, int n);
#define SHOW(name, value, ...)                                                                     \
    tapehead_show(name, value, (const int[]){__VA_ARGS__},                                         \
                  (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#else
#define SHOW(name, value, ...) ((void)(value))
#endif

#endif
