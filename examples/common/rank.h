/* rank.h - do two measures put things in the same order? */
#ifndef TAPEHEAD_EXAMPLES_RANK_H
#define TAPEHEAD_EXAMPLES_RANK_H

#include <stdint.h>

/* Spearman's correlation of n pairs, from -1 to 1: Pearson's, of the ranks. Numbers are taken to
 * the nearest multiple of unit, and equal ones share the mean of their ranks: a difference of less
 * is noise, which has no order. NaN where all of x or all of y are equal, or one is NaN. */
double rank_correlation(const double *x, const double *y, int64_t n, double unit);

#endif
