/* numbers.c - NaNs that say where they come from, numbers in a sentence, softmax: see numbers.h. */
#include "numbers.h"

#include "protocol.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const uint64_t given_bits = 0x7ff8000000600d00;
double nan_given(void) { return of_bits(given_bits); }

/* Does this processor's arithmetic keep the bits? RISC-V's does not. */
static bool keeps_bits(void) {
    volatile double x = of_bits(given_bits), one = 1;
    return bits_of(one * x + one) == given_bits;
}

/* The bits are without the sign, and without the one that makes a NaN quiet. */
NanSource nan_source(double nan, int *array) {
    const uint64_t bits = bits_of(nan) & 0x7ff7ffffffffffff, word = bits >> 32;
    const int place = (int)(bits & 0xffffffff) >> 4;
    if (!keeps_bits()) return NAN_UNKNOWN;
    if (bits == 0x7ff7ffffffffffff) return NAN_UNSET;
    if (bits == (given_bits & 0x7ff7ffffffffffff)) return NAN_GIVEN;
    if (word == 0x7ff4a5a5) return NAN_BLOCK;
    if (word <= 0x7ff40000 || word > 0x7ff40000 + CALL_ARRAYS) return NAN_MADE;
    *array = (int)(word - 0x7ff40001);
    return place < GUARD ? NAN_BEFORE : NAN_BEHIND;
}

int64_t first_nan(int64_t n, const double *x, const double *right) {
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i]) && !isnan(right[i])) return i;
    return -1;
}

void number_signed(char text[32], double number, int digits) {
    if (isnan(number)) snprintf(text, 32, "NaN");
    else if (number == 0) snprintf(text, 32, "0");
    else snprintf(text, 32, "%+.*g", digits, number);
}

void softmax_of(int n, double *y, const bool *keep) {
    double max = -HUGE_VAL, sum = 0;
    for (int i = 0; i < n; i++)
        if (!keep || keep[i]) max = fmax(max, y[i]);
    for (int i = 0; i < n; i++) {
        y[i] = keep && !keep[i] ? 0 : exp(y[i] - max);
        sum += y[i];
    }
    for (int i = 0; i < n && sum > 0; i++) y[i] /= sum;
}
