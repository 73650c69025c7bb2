/* rank.h - do two measures give the same order? */
#ifndef TAPEHEAD_EXAMPLES_RANK_H
#define TAPEHEAD_EXAMPLES_RANK_H

#include <stdint.h>

/* Spearman's correlation of n pairs, from -1 to 1: Pearson's correlation of the ranks. Numbers are
 * rounded to multiples of unit, because smaller differences are noise; equal numbers share the mean
 * of their ranks. NaN if all x or all y are equal, or if one is NaN. */
double rank_correlation(const double *x, const double *y, int64_t n, double unit);

#endif
