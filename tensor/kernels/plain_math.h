/* plain_math.h - the functions that the formulas of elementwise.def call: for floats functions of
 * the C library, in double; for int64, whose arithmetic is modulo 2^64, functions of uint64_t. Two
 * others, for plain loops, are at the end. */
#ifndef TAPEHEAD_TENSOR_PLAIN_MATH_H
#define TAPEHEAD_TENSOR_PLAIN_MATH_H

#include <math.h>
#include <stdint.h>

#define EXP   exp
#define LOG   log
#define LOG1P log1p
#define SIN   sin
#define COS   cos
#define TANH  tanh
#define SQRT  sqrt
#define POW   pow
/* PRODUCT and C are more than this in vectors: fast/fast_math.h says why. */
#define PRODUCT(a, b) ((a) * (b))
#define C(number)     (number)
/* SIGNED(x): x as a number with a sign; an int64 is computed as uint64_t. ABS(x): |x| */
#define SIGNED(x) _Generic((x), uint64_t : (int64_t)(x), default : (x))
#define ABS(x)    _Generic((x), uint64_t : magnitude, default : fabs)(x)
static inline uint64_t magnitude(uint64_t x) { return (int64_t)x < 0 ? -x : x; }

/* 1 / (1 + exp(-x)), and for negative x exp(x) / (1 + exp(x)): no exponential overflows. */
static inline double sigmoid(double x) {
    const double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}
#define SIGMOID    sigmoid
#define SILU(x)    ((x)*sigmoid(x))
#define SILU_DX(x) (sigmoid(x) * (1 + (x)*sigmoid(-(x))))

/* GPT-2's form of gelu, x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + tanh(u))
 * / 2 is the sigmoid of 2 u. */
#define TWICE_U(x)   (1.5957691216057308 * ((x) + 0.044715 * (x) * (x) * (x)))
#define GELU_TANH(x) ((x)*sigmoid(TWICE_U(x)))

/* s + x ds/dx, where s = sigmoid(2 u) and ds/dx = s (1 - s) 2 du/dx. For a large |x|, s (1 - s) is
 * 0 and x^3 overflows: each product begins with the 0. */
static inline double gelu_tanh_dx(double x) {
    const double s = sigmoid(TWICE_U(x)), p = 1.5957691216057308 * s * sigmoid(-TWICE_U(x));
    return s + p * x + 3 * 0.044715 * p * x * x * x;
}
#define GELU_TANH_DX gelu_tanh_dx

/* Phi(x) = (1 + erf(x / sqrt 2)) / 2 and its derivative phi(x) = exp(-x^2 / 2) / sqrt(2 pi) */
static inline double normal_cdf(double x) { return 0.5 * erfc(x * -0.70710678118654752440); }
static inline double normal_pdf(double x) { return 0.39894228040143267794 * exp(-0.5 * x * x); }
#define GELU(x)    ((x)*normal_cdf(x))
#define GELU_DX(x) (normal_cdf(x) + (x)*normal_pdf(x))

/* d(a / b)/db = -y / b */
#define DIV_DB(b, y, dy) (-((y) / (b)) * (dy))

/* If a or b is NaN, the result is NaN. If a and b are equal, each gets half the gradient. */
#define MAXIMUM(a, b)    ((a) != (a) || SIGNED(a) > SIGNED(b) ? (a) : (b))
#define MINIMUM(a, b)    ((a) != (a) || SIGNED(a) < SIGNED(b) ? (a) : (b))
#define MAX_DA(a, b, dy) ((a) == (b) ? 0.5 * (dy) : (a) < (b) ? 0 : (dy))

/* d(a^b)/da = b a^(b-1), and 0 for b = 0 even at a = 0; d(a^b)/db = a^b log a, 0 at a = 0 <= b. */
#define POW_DA(a, b, dy)    ((b) == 0 ? 0 : (dy) * ((b)*pow(a, (b)-1)))
#define POW_DB(a, b, y, dy) ((a) == 0 && (b) >= 0 ? 0 : (dy) * ((y)*log(a)))

/* The exponent is a number. For 1/2 and -1/2 the power is a root, as in PyTorch: pow has other
 * values at -0 and -infinity. */
static inline double pow_scalar(double x, double s) {
    if (s == 0.5) return sqrt(x);
    return s == -0.5 ? 1 / sqrt(x) : pow(x, s);
}
#define POW_SCALAR              pow_scalar
#define POW_SCALAR_DX(x, s, dy) ((s) == 0 ? 0 : (dy) * ((s)*pow_scalar(x, (s)-1)))

#define IS_NAN(x) ((x) != (x))

/* A power of 2, nearly always 1. A float64 above 1e154 has no square that fits, and below 1e-154
 * the square loses digits or is 0, but the root of a sum of squares fits. A row whose largest
 * element (or whose root, which is as large) has such a size is multiplied by this power before it
 * is squared, and the root is divided by it. Blue 1978. The square of a float32 always fits a
 * double.
 */
static inline double power_for(double size) {
    if (size > 0x1p500) return 0x1p-600;
    return size < 0x1p-400 ? 0x1p600 : 1;
}

#endif
