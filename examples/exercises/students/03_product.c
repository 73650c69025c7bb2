/* 3 product: y = a b, a product of matrices.
 *
 *     y[i][j] = sum over p of a[i][p] b[p][j]
 *
 * Choose one element, a[i][p]. In which elements of y is it used, and what is it multiplied by
 * there? Each use is one term of da[i][p]. Then do the same for b[p][j]. da and db arrive filled
 * with zeros.
 *
 * A number to check: a = {{1, 2}}, b = {{3}, {4}} and dy = {{10}} give da = {{30, 40}} and
 * db = {{10}, {20}}. */
#include "exercises.h"

void product(int n, int k, int m, double y[n][m], const double a[n][k], const double b[k][m]) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            y[i][j] = 0;
            for (int p = 0; p < k; p++) y[i][j] += a[i][p] * b[p][j];
        }
}

void product_backward(int n, int k, int m, double da[n][k], double db[k][m], const double a[n][k],
                      const double b[k][m], const double dy[n][m]) {
    /* your code */
}
