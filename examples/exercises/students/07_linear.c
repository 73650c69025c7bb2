/* 7 linear: y = x w' + b, a layer. w' is w transposed: w has a row for each output.
 *
 *     y[r][o] = b[o] + sum over i of x[r][i] w[o][i]
 *
 * It is a product and a bias: the rules of exercises 2 and 3 are all that is needed. The loops are
 * different, because w is transposed. dx, dw and db arrive filled with zeros.
 *
 * A number to check: x = {{1, 2}}, w = {{3, 4}} and dy = {{10}} give dx = {{30, 40}}, dw = {{10,
 * 20}} and db = {10}. */
#include "exercises.h"

void linear(int rows, int in, int out, double y[rows][out], const double x[rows][in],
            const double w[out][in], const double b[out]) {
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++) {
            y[r][o] = b[o];
            for (int i = 0; i < in; i++) y[r][o] += x[r][i] * w[o][i];
        }
}

void linear_backward(int rows, int in, int out, double dx[rows][in], double dw[out][in],
                     double db[out], const double x[rows][in], const double w[out][in],
                     const double dy[rows][out]) {
    /* your code */
}
