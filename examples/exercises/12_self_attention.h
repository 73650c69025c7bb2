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

#endif
