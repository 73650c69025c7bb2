/* 8 layer norm: each row gets the mean 0 and the variance 1, then a scale and a shift.
 *
 *     mean    = sum over j of x[i][j] / n
 *     var     = sum over j of (x[i][j] - mean)^2 / n
 *     xhat[j] = (x[i][j] - mean) / sqrt(var + eps)
 *     y[i][j] = xhat[j] w[j] + b[j]
 *
 * Each row has a mean and a variance of its own. x[i][j] changes xhat in three ways: by itself,
 * through the mean and through the variance. w and b are used in every row. Backward computes mean,
 * var and xhat again. First find how L changes with var and with mean of a row, then with x.
 *
 * A number to check: one row, x = {{0, 4, 0, 4}}, eps = 5, w = {1, 1, 1, 1} and dy = {{9, 0, 0,
 * 0}}. Then mean = 2, var = 4, xhat = {-2/3, 2/3, -2/3, 2/3}, and dx = {{1.91667, -0.41667,
 * -1.08333, -0.41667}}, dw = {-6, 0, 0, 0}, db = {9, 0, 0, 0}. */
#include "08_layer_norm.h"

void layer_norm(int rows, int n, double eps, double y[rows][n], const double x[rows][n],
                const double w[n], const double b[n]) {
    for (int i = 0; i < rows; i++) {
        double mean = 0, var = 0;
        for (int j = 0; j < n; j++) mean += x[i][j] / n;
        for (int j = 0; j < n; j++) var += (x[i][j] - mean) * (x[i][j] - mean) / n;
        for (int j = 0; j < n; j++) y[i][j] = (x[i][j] - mean) / sqrt(var + eps) * w[j] + b[j];
    }
}

void layer_norm_backward(int rows, int n, double eps, double dx[rows][n], double dw[n],
                         double db[n], const double x[rows][n], const double w[n],
                         const double dy[rows][n]) {
    /* your code */
}
