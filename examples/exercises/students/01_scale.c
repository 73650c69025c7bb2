/* 1 scale: every element times the same number.
 *
 *     y[i] = s x[i]
 *
 * In all exercises the loss L is one number, computed from y by other code. dy[i] is the gradient
 * of y[i]: by how much L grows, per unit, if y[i] grows. From dy, backward computes dx: by how much
 * L grows, per unit, if x[i] grows. The array of results, dx, arrives filled with zeros.
 *
 * A number to check: s = 3 and dy = {1, -2} give dx = {3, -6}. */
#include "exercises.h"

void scale(int n, double s, double y[n], const double x[n]) {
    for (int i = 0; i < n; i++) y[i] = s * x[i];
}

void scale_backward(int n, double s, double dx[n], const double dy[n]) { /* your code */
}
