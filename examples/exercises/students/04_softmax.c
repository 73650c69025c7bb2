/* 4 softmax: numbers become weights that are positive and have the sum 1.
 *
 *     y[i] = exp(x[i]) / sum over j of exp(x[j])
 *
 * Every x[j] is in the denominator of every y[i]. So x[j] changes all elements of y, and dx[j] has
 * a term for each of them: dy[i] times the derivative of y[i] by x[j]. Find this derivative first,
 * for i = j and for i different from j: both can be written with y alone, so backward gets y and
 * not x.
 *
 * A number to check: y = {0.25, 0.75} and dy = {1, 0} give dx = {0.1875, -0.1875}. */
#include "exercises.h"

void softmax(int n, double y[n], const double x[n]) {
    double max = x[0], sum = 0;
    for (int i = 1; i < n; i++) max = fmax(max, x[i]); /* exp of a large number would overflow */
    for (int i = 0; i < n; i++) {
        y[i] = exp(x[i] - max);
        sum += y[i];
    }
    for (int i = 0; i < n; i++) y[i] /= sum;
}

void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) {
    /* your code */
}
