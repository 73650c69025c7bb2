/* 7b mean and variance: two numbers of each row.
 *
 *     mean    = sum over j of x[i][j] / n
 *     y[i][0] = mean
 *     y[i][1] = sum over j of (x[i][j] - mean)^2 / n
 *
 * x[i][j] changes both numbers of its row, so dx[i][j] has a term of dy[i][0] and one of dy[i][1].
 * It changes the variance by its own square, and through the mean by every square. Write down the
 * second part for n = 2 and add it up: what is the sum of x[i][j] - mean over a row? Exercise 8 is
 * made of these two numbers. Backward computes the mean again.
 *
 * A number to check: one row, x = {{0, 4, 0, 4}} and dy = {{8, 1}}. Then mean = 2, the variance is
 * 4, and dx = {{1, 3, 1, 3}}. */
#include "exercises.h"

void mean_variance(int rows, int n, double y[rows][2], const double x[rows][n]) {
    for (int i = 0; i < rows; i++) {
        double mean = 0, var = 0;
        for (int j = 0; j < n; j++) mean += x[i][j] / n;
        for (int j = 0; j < n; j++) var += (x[i][j] - mean) * (x[i][j] - mean) / n;
        y[i][0] = mean;
        y[i][1] = var;
    }
}

void mean_variance_backward(int rows, int n, double dx[rows][n], const double x[rows][n],
                            const double dy[rows][2]) {
    /* your code */
}
