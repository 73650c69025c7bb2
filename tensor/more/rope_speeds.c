/* rope_speeds.c - how fast the pairs of rotary positions turn, for ag_rope_speeds.
 *
 * A model that was trained on short texts has never seen the angles of far positions. It reads
 * longer texts if the pairs turn more slowly: all of them (linear), or those alone that turn less
 * than once or so in the texts of the training (Llama 3.1). */
#include "../internal.h"

#include <math.h>

Tensor *tensor_rope_linear(int64_t D, double base, double factor) {
    const double most = (double)INFINITY;
    if (D < 0 || D % 2 || !(base > 0 && base < most) || !(factor > 0 && factor < most))
        return tensor_fail("rope_linear: D is %lld, base %g and factor %g: D must be even, because "
                           "pairs turn, and the others positive and finite",
                           (long long)D, base, factor);
    Tensor *speeds = tensor_make(SHAPE(D / 2), F64);
    double *speed = speeds ? speeds->data : NULL;
    for (int64_t i = 0; speed && i < D / 2; i++)
        speed[i] = pow(base, -2 * (double)i / (double)D) / factor;
    return speeds;
}

Tensor *tensor_rope_llama3(int64_t D, double base, double factor, double low, double high,
                           double context) {
    const double two_pi = 6.283185307179586;
    if (!(factor > 0 && factor < (double)INFINITY && context > 0 && low < high))
        return tensor_fail("rope_llama3: factor is %g, low %g, high %g and context %g: factor and "
                           "context must be positive, and low below high",
                           factor, low, high, context);
    Tensor *speeds = tensor_rope_linear(D, base, 1);
    double *speed = speeds ? speeds->data : NULL;
    for (int64_t i = 0; speed && i < D / 2; i++) {
        const double turns = context * speed[i] / two_pi;
        const double m = fmin(fmax((turns - low) / (high - low), 0), 1);
        speed[i] *= m + (1 - m) / factor;
    }
    return speeds;
}
