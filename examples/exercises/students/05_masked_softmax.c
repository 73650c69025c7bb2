/* 5 masked softmax: the weights of one query of attention. s scales the scores x, and a key j with
 * keep[j] = false has the weight 0.
 *
 *     y[i] = exp(s x[i]) / sum over the kept j of exp(s x[j])    where keep[i]
 *     y[i] = 0                                                   elsewhere
 *
 * A masked x[i] changes nothing, so its dx[i] must be exactly 0. What stands in dy[i] there has no
 * meaning, and it may be NaN ("not a number"). Remember that 0 times NaN is NaN. dx arrives filled
 * with zeros.
 *
 * A number to check: s = 2, keep = {true, true, false}, y = {0.25, 0.75, 0} and dy = {1, 0, NaN}
 * give dx = {0.375, -0.375, 0}. */
#include "exercises.h"

void masked_softmax(int n, double s, const bool keep[n], double y[n], const double x[n]) {
    double max = -HUGE_VAL, sum = 0;
    for (int i = 0; i < n; i++)
        if (keep[i]) max = fmax(max, s * x[i]);
    for (int i = 0; i < n; i++) {
        y[i] = keep[i] ? exp(s * x[i] - max) : 0;
        sum += y[i];
    }
    for (int i = 0; i < n; i++) y[i] /= sum;
}

void masked_softmax_backward(int n, double s, const bool keep[n], double dx[n], const double y[n],
                             const double dy[n]) {
    double sum = 0;

    /* sum: over the row, of what is kept: your code */
    SHOW("sum", sum, 0);

    for (int i = 0; i < n; i++) {
        double dz = 0;

        /* dz: how L changes with z[i] = s x[i]; 0 where it is masked */
        SHOW("dz", dz, i);

        /* dx[i] */
    }
}
