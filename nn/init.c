/* init.c - initial values, the same numbers as torch.nn.init draws.
 *
 * A weight (out, in, ...) maps fan_in numbers to fan_out numbers. A variance of 1 / fan_in keeps
 * the variance of values in the forward pass; a variance of 1 / fan_out keeps the variance of
 * gradients in the backward pass. 2 / (fan_in + fan_out) is a compromise. */
#include "module.h"

#include <math.h>

static bool check_fans(const char *who, const Tensor *w) {
    if (!w) return tensor_fail("%s: w is NULL", who);
    return w->shape.ndim >= 2 || tensor_fail("%s: w is %s: it needs two dimensions or more", who,
                                             tensor_shape_text(w->shape));
}

/* dim 0: fan_out, dim 1: fan_in. The later sizes, the kernel of a convolution, multiply both. */
static double fan(const Tensor *w, int dim) {
    double n = (double)w->shape.dim[dim];
    for (int d = 2; d < w->shape.ndim; d++) n *= (double)w->shape.dim[d];
    return n;
}

/* The standard deviation; 0 after an error, and for a w without elements, which draws nothing. */
static double xavier_std(const char *who, const Tensor *w, double gain) {
    const bool draws = check_fans(who, w) && tensor_numel(w) > 0;
    nn_check_not_negative(who, "gain", gain);
    return draws ? gain * sqrt(2 / (fan(w, 1) + fan(w, 0))) : 0;
}

static double kaiming_std(const char *who, const Tensor *w, double a) {
    const bool draws = check_fans(who, w) && tensor_numel(w) > 0;
    if (isnan(a)) tensor_fail("%s: a is nan: it must be a number", who);
    return draws ? sqrt(2 / (1 + a * a)) / sqrt(fan(w, 1)) : 0;
}

/* U(-a, a) has the standard deviation a / sqrt(3). */
static bool uniform(Tensor *w, double std) {
    return tensor_uniform_(w, -sqrt(3) * std, sqrt(3) * std);
}

bool nn_init_uniform(Tensor *w, double low, double high) { return tensor_uniform_(w, low, high); }

bool nn_init_normal(Tensor *w, double mean, double std) { return tensor_normal_(w, mean, std); }

bool nn_init_xavier_uniform(Tensor *w, double gain) {
    return uniform(w, xavier_std("xavier_uniform", w, gain));
}

bool nn_init_xavier_normal(Tensor *w, double gain) {
    return tensor_normal_(w, 0, xavier_std("xavier_normal", w, gain));
}

bool nn_init_kaiming_uniform(Tensor *w, double a) {
    return uniform(w, kaiming_std("kaiming_uniform", w, a));
}

bool nn_init_kaiming_normal(Tensor *w, double a) {
    return tensor_normal_(w, 0, kaiming_std("kaiming_normal", w, a));
}
