/* fast_math.h - functions of float32 for the fast kernels: polynomials without a branch, so that
 * the compiler turns loops over them into vectors. For every x, also denormal or infinite, the
 * error is at most 1 ulp for exp, log, tanh and sigmoid, at most 2 for silu and both forms of gelu,
 * and at most 3 for gelu without FMA. (An ulp is one unit in the last place of the result.) The
 * coefficients make the largest relative error as small as possible (Lawson's iteration); each was
 * rounded to float before the next one was computed. */
#ifndef TAPEHEAD_TENSOR_FAST_MATH_H
#define TAPEHEAD_TENSOR_FAST_MATH_H

#include "isa.h"

#include <math.h>
#include <stdint.h>

/* WIDE elements of a row. LARGER(a, b): in each lane b if b > a, else a, also if one is NaN. */
typedef float Vector __attribute__((vector_size(WIDTH), aligned(sizeof(float)), may_alias));
enum { WIDE = WIDTH / sizeof(float) };
#define CHOICE(a, b) __typeof__((a) > (b))
#define LARGER(a, b)                                                                               \
    ((__typeof__(a))(((CHOICE(a, b))(b) & ((b) > (a))) | ((CHOICE(a, b))(a) & ~((b) > (a)))))

/* 1 - a b, where a b is about 1: a rounding error. The result is rounded only once, on every
 * machine. */
INLINE float left_of_one(float a, float b) {
    return FUSES ? FMA(-a, b, 1) : (float)(1 - (double)a * (double)b);
}

/* The polynomial in x with these coefficients; the first belongs to the highest power. */
#define HORNER2(x, a, b)       FMA(a, x, b)
#define HORNER3(x, a, b, ...)  HORNER2(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER4(x, a, b, ...)  HORNER3(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER5(x, a, b, ...)  HORNER4(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER6(x, a, b, ...)  HORNER5(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER7(x, a, b, ...)  HORNER6(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER8(x, a, b, ...)  HORNER7(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER9(x, a, b, ...)  HORNER8(x, HORNER2(x, a, b), __VA_ARGS__)
#define HORNER10(x, a, b, ...) HORNER9(x, HORNER2(x, a, b), __VA_ARGS__)

typedef float Float __attribute__((may_alias));
typedef uint32_t Word __attribute__((may_alias));
INLINE float float_of_bits(uint32_t bits) { return *(Float *)&bits; }
INLINE uint32_t bits_of_float(float x) { return *(Word *)&x; }

/* e^(x + more) = (1 + hi + lo) 2^k, for a tiny `more` and x from -110 to 89. Callers do not use the
 * parts for any other x. */
typedef struct {
    float hi, lo, shifted; /* the low bits of shifted are k */
} ExpParts;

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2 */
INLINE float exp_rest(float r) {
    return HORNER5(r, 0x1.6a58cep-10f, 0x1.123b0ep-7f, 0x1.5558a8p-5f, 0x1.55549p-3f,
                   0x1.fffffcp-2f);
}

/* e^x = 2^k e^r with k = round(x / ln 2) and |r| <= ln(2) / 2, after Cody & Waite 1980. Adding the
 * bias 1.5 * 2^23 rounds x / ln 2 to an integer: the low bits of the sum are k, or k + n with the
 * bias 1.5 * 2^23 + n. k ln 2 is subtracted in two parts. The first part of ln 2 has 16 bits, so
 * that k times this part is exact. */
INLINE ExpParts exp_parts(float x, float more, float bias) {
    const float shifted = FMA(x, 1.44269504f, bias), k = shifted - bias;
    const float hi = FMA(k, -0x1.62e4p-1f, x), lo = FMA(k, -0x1.7f7d1cp-20f, more), r = hi + lo;
    return (ExpParts){hi, FMA(exp_rest(r) * r, r, lo), shifted};
}

/* 1 + hi is rounded, and its rounding error is added to lo: the sum is nearly always the nearest
 * float. k is added to the exponent of the sum. If the result y is denormal, its bits are the
 * number y / 2^-149. The low bits of 2^64 y + 2^-62 are the same number, because the last bit of
 * this sum counts 2^-85. (A denormal product takes Intel's CPUs a hundred cycles.) x + infinity is
 * NaN for NaN. */
INLINE float exp_float(float x) {
    const ExpParts e = exp_parts(x, 0, 0x1.8p23f);
    const float whole = 1 + e.hi, lost = e.hi - (whole - 1);
    const uint32_t bits = bits_of_float(whole + (lost + e.lo)) + (bits_of_float(e.shifted) << 23);
    const float raised = float_of_bits(bits + (64u << 23)) + 0x1p-62f;
    const uint32_t denormal = bits_of_float(raised) - bits_of_float(0x1p-62f);
    const float y = float_of_bits((int32_t)bits < 0x800000 ? denormal : bits);
    const float low = x < -110 ? 0 : y;
    return x < 88.72284f ? low : x + INFINITY;
}

/* factor e^x for x up to 0: a weight of attention; the largest weight has x = 0. The code is
 * exp_float's without the correction of 1 + hi: the error is at most 1 ulp, without FMA 1.5. The
 * result is 0 if e^x is below 2^-100, or if x is -inf, for any factor: such a weight is too small,
 * compared with the largest weight, to change a sum, and its products can be denormal, which takes
 * Intel's CPUs a hundred cycles for the whole vector. The bias is larger by 127, as in tanh, so
 * that the low bits are k + 127, the exponent field of 2^k. */
INLINE float weight_float(float x, float factor) {
    const float bias = 0x1.8p23f + 127, shifted = FMA(x, 1.44269504f, bias), k = shifted - bias;
    const float r = FMA(k, -0x1.7f7d1cp-20f, FMA(k, -0x1.62e4p-1f, x));
    const float y = HORNER3(r, exp_rest(r), 1.0f, 1.0f);
    return x < -69.31472f ? 0 : y * float_of_bits(bits_of_float(shifted) << 23) * factor;
}

/* log(2^k (1 + f)) = k ln 2 + f - f^2 / 2 + f^3 p(f), with 1 + f from sqrt(1/2) to sqrt(2). To get
 * k in the exponent field, subtract the bits of sqrt(1/2). */
INLINE float log_float(float x) {
    const bool denormal = x < 0x1p-126f;
    const uint32_t root = 0x3f3504f3u, bits = bits_of_float(denormal ? x * 0x1p23f : x) - root;
    const float k = (float)((int32_t)bits >> 23) - (denormal ? 23.0f : 0.0f);
    const float f = float_of_bits((bits & 0x7fffffu) + root) - 1, square = f * f;
    const float p = HORNER8(f, -0x1.38cedp-4f, 0x1.057502p-3f, -0x1.0d8baep-3f, 0x1.22d6dcp-3f,
                            -0x1.547166p-3f, 0x1.99a02ap-3f, -0x1.00022ap-2f, 0x1.555554p-2f);
    const float small = FMA(k, 0x1.7f7d1cp-20f, p * f * square) - 0.5f * square;
    const float y = FMA(k, 0x1.62e4p-1f, small + f);
    const float no_log = x == 0 ? -INFINITY : NAN;
    const float end = x > 0 ? x : no_log; /* the value for inf, 0, negative numbers and NaN */
    return x > 0 && x < INFINITY ? y : end;
}

/* For |x| < 0.65 tanh(x) = x + x^3 p(x^2), else (d - 2) / d with d = e^(2|x|) + 1: the relative
 * error of d hardly changes this quotient. d is at most 2^25, because a larger d - 2 is rounded. */
INLINE float tanh_float(float x) {
    const float t = fabsf(x), square = t * t, bias = 0x1.8p23f + 127;
    const float p = HORNER5(square, -0x1.696b1p-8f, 0x1.4f5d88p-6f, -0x1.b7cfb8p-5f, 0x1.1103fp-3f,
                            -0x1.555524p-2f);
    const float shifted = FMA(t, 2.88539008f, bias), r = FMA(shifted - bias, -0.693147181f, 2 * t);
    const float power = float_of_bits(bits_of_float(shifted) << 23);
    const float sum = FMA(power, FMA(exp_rest(r) * r, r, r), power + 1);
    const float d = 0x1p25f < sum ? 0x1p25f : sum, y = (d - 2) / d;
    const float large = t > 9.01f ? 1 : y;
    return copysignf(t < 0.65f ? FMA(t * square, p, t) : large, x);
}

/* 2^k for k from -254 to 254, as the product of two powers, because 2^k may not be a normal float.
 * The low 9 bits of `fields` are k + 254, the sum of the exponent fields of both powers. */
typedef struct {
    float first, second;
} Power;

INLINE Power power_of_2(uint32_t fields) {
    const uint32_t first = fields << 22 & 0x7f800000u;
    return (Power){float_of_bits(first), float_of_bits((fields << 23) - first)};
}

/* factor / (1 + e^-t), where t has the sign of x, and |t| = |x| + more for a tiny `more`. With
 * e^|t| = 2^k (1 + hi + lo) and d = 2^-k + 1 + hi + lo the result is factor (1 - 2^-k / d) for
 * positive x, and factor 2^-k / d for others: nothing overflows, and small results keep their
 * digits. d_lo is the rounding error of d; the quotient is corrected by it. */
INLINE float sigmoid_times(float factor, float x, float more) {
    const ExpParts e = exp_parts(fabsf(x) > 110 ? 110 : fabsf(x), more, 0x1.8p23f);
    const Power by = power_of_2(254 - bits_of_float(e.shifted));
    const float power = by.first * by.second, d = 1 + power + (e.hi + e.lo);
    const float d_lo = 1 - d + power + e.hi + e.lo, rough = 1 / d;
    const float inverse = FMA(FMA(-rough, d_lo, left_of_one(rough, d)), rough, rough);
    const float above = FMA(factor * power, -inverse, factor);
    return x > 0 ? above : factor * inverse * by.first * by.second;
}
INLINE float sigmoid_float(float x) { return sigmoid_times(1, x, 0); }

/* x sigmoid(x): x above 110, 0 below -110, NaN at -inf, as in PyTorch. */
INLINE float silu_float(float x) {
    const float end = x < 0 ? 0 * x : x;
    return fabsf(x) > 110 ? end : sigmoid_times(x, x, 0);
}

/* GPT-2's gelu, x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3): (1 + tanh(u)) / 2 is
 * the sigmoid of 2 u, which keeps its digits where u is negative. |2 u| is computed in double,
 * because an error of 1 ulp in |2 u| would be an error of 100 ulps in the result. */
INLINE double size_of_2u(float x) {
    const double square = (double)x * (double)x;
    return 1.5957691216057308 * fabs((double)x) * (1 + 0.044715 * square);
}

INLINE float gelu_tanh_float(float x) {
    const double t = size_of_2u(x);
    const float high = (float)t, low = (float)(t - (double)high), end = x < 0 ? 0 * x : x;
    return high > 110 ? end : sigmoid_times(x, copysignf(high, x), low);
}

/* s + x s (1 - s) 2 du/dx, where s = sigmoid(2 u) and 1 - s = sigmoid(-2 u). For a large |x|, s (1
 * - s) is 0, so it comes first; there any finite slope will do, such as that of |x| = 15.
 * (PyTorch's slope is infinite from |x| = 1e19 on, and 0 times infinity is NaN.) NaN at infinities,
 * as in PyTorch. */
INLINE float gelu_tanh_dx_float(float x) {
    const float t = copysignf((float)size_of_2u(x), x), s = sigmoid_float(t);
    const float square = x * x < 225 ? x * x : 225;
    const float slope = 1.5957691216f * (1 + 3 * 0.044715f * square);
    return FMA(s * sigmoid_float(-t) * x, slope, s);
}

/* Mills' ratio of the normal distribution, R(t) = Phi(-t) exp(t^2 / 2) for t >= 0. hi + lo is R for
 * t < 2, a polynomial in t - 1, and t R for larger t, a polynomial in 1 / t. lo is the rounding
 * error of the polynomial's last step. */
typedef struct {
    float hi, lo, inverse; /* 1 / t from 2 on, else 1 */
} Mills;

INLINE Mills mills_ratio(float t) {
    const float u = t - 1, v = 1 / t;
    const float near = HORNER10(u, 0x1.eaa18ep-18f, -0x1.e8920ap-16f, 0x1.70e266p-14f,
                                -0x1.3d4278p-12f, 0x1.0a07eep-10f, -0x1.9f3cf2p-9f, 0x1.2f489cp-7f,
                                -0x1.9aff5ep-6f, 0x1.fcc81cp-5f, -0x1.19524cp-3f);
    const float far =
        HORNER9(v, 0x1.970364p+1f, -0x1.d996b4p+2f, 0x1.6b997ep+2f, 0x1.9e9758p-3f, -0x1.8f5e04p+1f,
                0x1.ebfb5ep+0f, -0x1.921394p-4f, -0x1.9071ccp-2f, -0x1.6b556cp-12f);
    const float first = t < 2 ? 0x1.0bdb2ep-2f : 0x1.9886p-2f;
    const float rest = t < 2 ? near : far, by = t < 2 ? u : v, hi = FMA(rest, by, first);
    return (Mills){hi, FMA(rest, by, first - hi), t < 2 ? 1 : v};
}

/* (f + f_lo) exp(-t^2 / 2) for t up to 15. The product can be a normal float although the
 * exponential is denormal. t^2 is computed in two parts, because an error of 1 ulp in t^2 would be
 * an error of 100 ulps in the result; the first part, the square of 12 bits, is exact. Below e^-110
 * the result is 0. This 0 is selected, because a product that underflows takes a hundred cycles. */
INLINE float times_normal(float f, float f_lo, float t) {
    const float high = float_of_bits(bits_of_float(t) & 0xfffff000u), x = -0.5f * (high * high);
    const ExpParts e = exp_parts(x, -0.5f * ((t - high) * (t + high)), 0x1.8p23f + 254);
    const Power by = power_of_2(bits_of_float(e.shifted));
    const float whole = 1 + e.hi, tail = e.hi - (whole - 1) + e.lo;
    const float y = f * whole, y_lo = FMA(f, whole, -y) + FMA(f, tail, f_lo * whole);
    return x < -110 ? 0 * f : (y + y_lo) * by.first * by.second;
}

/* x Phi(x) = max(x, 0) - t Phi(-t) with t = |x|, and t Phi(-t) = t R(t) exp(-t^2 / 2): no
 * cancellation for negative x. From t = 15 on, t Phi(-t) is 0. gelu(-inf) is NaN, as in PyTorch. */
INLINE float gelu_float(float x) {
    const float t = fabsf(x) > 15 ? 15 : fabsf(x), by = t < 2 ? t : 1;
    const Mills r = mills_ratio(t);
    const float f = by * r.hi, f_lo = FMA(by, r.hi, -f) + by * r.lo;
    const float lost = times_normal(f, f_lo, t);
    return x < 0 ? FMA(0.0f, x, -lost) : x - lost;
}

/* With t = |x| and p = exp(-t^2 / 2) (R(t) - t / sqrt(2 pi)), Phi(x) + x phi(x) is p for negative
 * x, else 1 - p. The result is NaN at infinities, as in PyTorch. */
INLINE float gelu_dx_float(float x) {
    const float t = fabsf(x) > 15 ? 15 : fabsf(x);
    const Mills r = mills_ratio(t);
    const float lost = times_normal(FMA(t, -0.39894228f, r.hi * r.inverse), 0, t);
    return FMA(0.0f, x, x < 0 ? lost : 1 - lost);
}

/* ---- functions for the formulas of elementwise.def ------------------------------------------- */

#define EXP          exp_float
#define LOG          log_float
#define LOG1P        log1pf
#define SIN          sinf
#define COS          cosf
#define TANH         tanh_float
#define SQRT         sqrtf
#define POW          powf
#define SIGMOID      sigmoid_float
#define SILU         silu_float
#define GELU         gelu_float
#define GELU_DX      gelu_dx_float
#define GELU_TANH    gelu_tanh_float
#define GELU_TANH_DX gelu_tanh_dx_float
#define C(number)    ((float)(number))
#define SIGNED(x)    (x)
#define ABS          fabsf
/* a b, rounded once: the same bits as a * b. A denormal float in a product takes Intel's CPUs a
 * hundred cycles. Every float is a normal double, and the product of two floats is exact in double.
 * (gcc would turn (float)((double)a * (double)b) into a product of floats.) */
#define PRODUCT(a, b) (FUSES ? (float)__builtin_fma((double)(a), (double)(b), -0.0) : (a) * (b))
/* sigmoid(-x) is 1 - sigmoid(x), but keeps the digits that this difference would lose. */
#define SILU_DX(x) (SIGMOID(x) * (1 + (x)*SIGMOID(-(x))))

/* d(a / b)/db = -y / b, which may not fit a float */
#define DIV_DB(b, y, dy) ((float)(-((double)(y) / (double)(b)) * (double)(dy)))

/* If a and b are equal, each gets half of dy. If one is NaN, each gets dy. */
#define MAXIMUM(a, b)    ((a) != (a) || (a) > (b) ? (a) : (b))
#define MINIMUM(a, b)    ((a) != (a) || (a) < (b) ? (a) : (b))
#define MAX_DA(a, b, dy) ((a) == (b) ? 0.5f * (dy) : (a) < (b) ? 0.0f : (dy))

/* x^s. A power that float32 does not hold, or not with all digits, may be multiplied by a number
 * with which it fits; and s = b - 1 may have more digits than a float. Then pow computes it. */
INLINE double power(float x, double s) {
    const float y = powf(x, (float)s);
    return isnormal(y) && (double)(float)s == s ? (double)y : pow((double)x, s);
}

/* d(a^b)/da = b a^(b-1), and 0 for b = 0 even at a = 0; d(a^b)/db = a^b log a, 0 at a = 0 <= b. */
#define POW_DA(a, b, dy)                                                                           \
    ((b) == 0 ? 0.0f : (float)((double)(dy) * ((double)(b)*power(a, (double)(b)-1))))
#define POW_DB(a, b, y, dy)                                                                        \
    ((a) == 0 && (b) >= 0 ? 0.0f : (float)((double)(dy) * ((double)(y) * (double)log_float(a))))

/* The exponent is a number. For 1/2 and -1/2 the power is a root, as in PyTorch: pow has other
 * values at -0 and -infinity. */
INLINE double pow_scalar_float(float x, double s) {
    if (s == 0.5) return (double)sqrtf(x);
    return s == -0.5 ? (double)(1 / sqrtf(x)) : power(x, s);
}
#define POW_SCALAR(x, s) ((float)pow_scalar_float(x, (double)(s)))
#define POW_SCALAR_DX(x, s, dy)                                                                    \
    ((s) == 0 ? 0.0f : (float)((double)(dy) * ((double)(s)*pow_scalar_float(x, (double)(s)-1))))

#endif
