/* scale.h - standardises numbers to mean 0 and standard deviation 1, and converts back. */
#ifndef TAPEHEAD_EXAMPLES_SCALE_H
#define TAPEHEAD_EXAMPLES_SCALE_H

#include "../../tensor/tensor.h"

typedef struct {
    double min, max, mean;
    double deviation; /* sqrt(1/n sum (v - mean)^2); 0 if and only if all are equal */
} Scale;

/* For finite numbers whose range is also finite; n > 0. */
Scale scale_measure(const double *v, int64_t n);

/* (v - mean) / deviation, (n); 0 if the deviation is 0. A new reference. */
Tensor *scale_standardise(const double *v, int64_t n, Scale scale);

/* v = mean + deviation z, in place. */
void scale_restore(double *z, int64_t n, Scale scale);

#endif
