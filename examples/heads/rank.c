/* rank.c - see rank.h. Quadratic in n, which is small. */
#include "rank.h"

#include <math.h>

/* The rank of x[i]: 1 for the smallest, the mean rank for equal numbers. */
static double rank(const double *x, int64_t n, int64_t i, double unit) {
    double below = 0, equal = 0;
    for (int64_t j = 0; j < n; j++) {
        double difference = round(x[j] / unit) - round(x[i] / unit);
        if (isnan(difference)) return difference;
        below += difference < 0;
        equal += difference == 0;
    }
    return below + (equal + 1) / 2;
}

double rank_correlation(const double *x, const double *y, int64_t n, double unit) {
    double xx = 0, xy = 0, yy = 0, mean = ((double)n + 1) / 2;
    for (int64_t i = 0; i < n; i++) {
        double a = rank(x, n, i, unit) - mean, b = rank(y, n, i, unit) - mean;
        xx += a * a;
        xy += a * b;
        yy += b * b;
    }
    return xy / sqrt(xx * yy);
}
