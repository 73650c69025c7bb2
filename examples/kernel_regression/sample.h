/* sample.h - standardised pairs (x, y) for a curve: from a file, or the pairs of the notebook. */
#ifndef TAPEHEAD_EXAMPLES_SAMPLE_H
#define TAPEHEAD_EXAMPLES_SAMPLE_H

#include "csv.h"
#include "scale.h"

#define SAMPLE_MAX_POINTS                                                                          \
    4000 /* attention makes n^2 numbers: 128 MB for each intermediate result */

typedef struct {
    CsvTable data; /* column 0 is x, column 1 is y, in their own units and order */
    Scale x_scale, y_scale;
    Tensor *x, *y;  /* (n), F64, standardised */
    double x_range; /* of the standardised x */
    double x_gap;   /* the smallest sqrt(d2^2 - d1^2), d1 < d2 of the distances from an x to itself,
                       which is 0, and to its neighbours before and after it. Differences below
                       1e-9 of the range are rounding errors and do not count */
    Tensor *self;   /* (n, n), BOOL, true on the diagonal: query and key are the same point */
} Sample;

/* False and an error if there are fewer than 3 points, more than SAMPLE_MAX_POINTS, or if all x are
 * equal. The caller calls sample_free, also after a failure. */
bool sample_read(Sample *s, const char *path, const char *x_column, const char *y_column);

/* The notebook's 50 points: x uniform in [0, 5), sorted; y = 2 sin x + x^0.8 + normal noise of
 * standard deviation 0.5, drawn in the notebook's order. False and an error on failure. */
bool sample_notebook(Sample *s, uint64_t seed);

void sample_free(Sample *s);

#endif
