/* 6 dropout: an element is dropped with the probability p, else it is kept.
 *
 *     y[i] = x[i] / (1 - p)    where kept[i]
 *     y[i] = 0                 elsewhere
 *
 * The division keeps the mean: of n elements about n (1 - p) stay, and each is larger. Forward has
 * drawn kept; backward gets the same array.
 *
 * A number to check: p = 0.75, kept = {true, false} and dy = {1, 1} give dx = {4, 0}. */
#include "exercises.h"

void dropout(int n, double p, const bool kept[n], double y[n], const double x[n]) {
    for (int i = 0; i < n; i++) y[i] = kept[i] ? x[i] / (1 - p) : 0;
}

void dropout_backward(int n, double p, const bool kept[n], double dx[n], const double dy[n]) {
    double scale = 0;

    /* scale: by how much y grows with a kept x: your code */
    SHOW("scale", scale, 0);

    /* dx */
}
