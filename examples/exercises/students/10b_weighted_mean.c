/* 10b weighted mean: two ops, one after the other. The scores x become weights, and y is the mean
 * of the vectors v with these weights: attention, for one query whose scores are there.
 *
 *     p = softmax(x)                          K weights
 *     y[d] = sum over j of p[j] v[j][d]       the product p v
 *
 * Backward gets x and not p: it computes p again, and then goes back, one op at a time.
 *
 *     p            as in forward
 *     dv, dp       the gradients of the product: exercise 3
 *     dx           the gradient of the softmax, where dp is what arrives: exercise 4
 *
 * dx and dv arrive filled with zeros. dp is an array of your own, double dp[K]; its elements are not
 * 0 at the start.
 *
 * A number to check: K = 2, D = 1, x = {0, log 3}, v = {{0}, {8}} and dy = {1}. Then p = {0.25,
 * 0.75}, dv = {{0.25}, {0.75}}, dp = {0, 8}, and dx = {-1.5, 1.5}. */
#include "exercises.h"

void weighted_mean(int K, int D, double y[D], const double x[K], const double v[K][D]) {
    double p[K], max = x[0], sum = 0;
    for (int j = 1; j < K; j++) max = fmax(max, x[j]);
    for (int j = 0; j < K; j++) {
        p[j] = exp(x[j] - max);
        sum += p[j];
    }
    for (int j = 0; j < K; j++) p[j] /= sum;
    for (int d = 0; d < D; d++) {
        y[d] = 0;
        for (int j = 0; j < K; j++) y[d] += p[j] * v[j][d];
    }
}

void weighted_mean_backward(int K, int D, double dx[K], double dv[K][D], const double x[K],
                            const double v[K][D], const double dy[D]) {
    /* your code */
}
