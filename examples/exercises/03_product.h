/* The function of 03_product.c. */
#ifndef EXERCISE_03_H
#define EXERCISE_03_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void product_backward(int n, int k, int m, double da[n][k], double db[k][m], const double a[n][k],
                      const double b[k][m], const double dy[n][m]);

#endif
