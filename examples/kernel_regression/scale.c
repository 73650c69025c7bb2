/* scale.c - standardises numbers: see scale.h.
 *
 * All arithmetic uses (v - min) / range, which lies in [0, 1], so that no square overflows or
 * underflows.
 */
#include "scale.h"

#include <math.h>
#include <stdlib.h>

Scale scale_measure(const double *v, int64_t n) {
    Scale scale = {v[0], v[0], v[0], 0};
    for (int64_t i = 1; i < n; i++) {
        scale.min = fmin(scale.min, v[i]);
        scale.max = fmax(scale.max, v[i]);
    }
    double range = scale.max - scale.min, mean = 0, square = 0;
    if (!(range > 0)) return scale;
    for (int64_t i = 0; i < n; i++) mean += (v[i] - scale.min) / range;
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = (v[i] - scale.min) / range - mean;
        square += d * d;
    }
    scale.mean = scale.min + mean * range;
    scale.deviation = sqrt(square / (double)n) * range;
    return scale;
}

Tensor *scale_standardise(const double *v, int64_t n, Scale scale) {
    double *z = malloc((size_t)n * sizeof *z);
    if (!z) return tensor_fail("standardise: out of memory");
    double unit = scale.deviation > 0 ? scale.deviation : 1;
    for (int64_t i = 0; i < n; i++) z[i] = (v[i] - scale.mean) / unit;
    Tensor *tensor = tensor_from_doubles(SHAPE(n), z);
    free(z);
    return tensor;
}

void scale_restore(double *z, int64_t n, Scale scale) {
    for (int64_t i = 0; i < n; i++) z[i] = scale.mean + scale.deviation * z[i];
}
