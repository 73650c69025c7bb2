/* init.c - initial values as torch.nn.init draws them, number for number.
 *
 * A weight (out, in, ...) maps fan_in numbers to fan_out. Values of variance 1 / fan_in keep the
 * variance of what passes forward; 2 / (fan_in + fan_out) is a compromise with what passes back. */
#include "nn.h"

#include <math.h>

static bool has_fans(const char *who, const Tensor *w) {
    if (!w) return tensor_fail("%s: w is NULL", who) != NULL;
    if (w->shape.ndim >= 2) return true;
    const char *shape = tensor_shape_text(w->shape);
    return tensor_fail("%s: w is %s: it needs two dimensions or more", who, shape) != NULL;
}

/* dim 0: fan_out, dim 1: fan_in. The sizes after these, a convolution's kernel, belong to both. */
static double fan(const Tensor *w, int dim) {
    double n = (double)w->shape.dim[dim];
    for (int d = 2; d < w->shape.ndim; d++) n *= (double)w->shape.dim[d];
    return n;
}

/* The deviation; 0 for a w without elements, which draws nothing; NaN on error. */
static double xavier_std(const char *who, const Tensor *w, double gain) {
    if (!has_fans(who, w)) return (double)NAN;
    if (gain >= 0) return tensor_numel(w) ? gain * sqrt(2 / (fan(w, 1) + fan(w, 0))) : 0;
    tensor_fail("%s: gain is %g: it must not be negative", who, gain);
    return (double)NAN;
}

static double kaiming_std(const char *who, const Tensor *w, double a) {
    if (!has_fans(who, w)) return (double)NAN;
    if (!isnan(a)) return tensor_numel(w) ? sqrt(2 / (1 + a * a)) / sqrt(fan(w, 1)) : 0;
    tensor_fail("%s: a is nan: it must be a number", who);
    return (double)NAN;
}

/* U(-a, a) has the deviation a / sqrt(3). */
static bool uniform(Tensor *w, double std) {
    return !isnan(std) && tensor_uniform_(w, -sqrt(3) * std, sqrt(3) * std);
}

static bool normal(Tensor *w, double std) { return !isnan(std) && tensor_normal_(w, 0, std); }

bool nn_init_uniform(Tensor *w, double low, double high) { return tensor_uniform_(w, low, high); }

bool nn_init_normal(Tensor *w, double mean, double std) { return tensor_normal_(w, mean, std); }

bool nn_init_xavier_uniform(Tensor *w, double gain) {
    return uniform(w, xavier_std("xavier_uniform", w, gain));
}

bool nn_init_xavier_normal(Tensor *w, double gain) {
    return normal(w, xavier_std("xavier_normal", w, gain));
}

bool nn_init_kaiming_uniform(Tensor *w, double a) {
    return uniform(w, kaiming_std("kaiming_uniform", w, a));
}

bool nn_init_kaiming_normal(Tensor *w, double a) {
    return normal(w, kaiming_std("kaiming_normal", w, a));
}
