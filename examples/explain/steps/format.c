/* format.c - how a table writes its numbers: see format.h. */
#include "format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As printf("%.*f"), but halves are rounded away from 0, as a browser does it. */
static void print_fixed(double x, int decimals, char text[NUMBER_TEXT]) {
    const double power = pow(10, decimals), half = floor(x * power) + 0.5;
    const bool is_tie = fma(x, power, -half) == 0;
    snprintf(text, NUMBER_TEXT, "%.*f", decimals, is_tie ? nextafter(x, HUGE_VAL) : x);
}

static bool is_short(double x, int decimals) {
    const double power = pow(10, decimals);
    return fabs(x - round(x * power) / power) < 1e-9;
}

static bool are_short(const double *numbers, int64_t size, int decimals, double scale) {
    for (int64_t i = 0; i < size; i++) {
        const double x = fabs(numbers[i]);
        if (x > 0 && x < 1e5 && !is_short(x / scale, decimals)) return false;
    }
    return true;
}

Format format_of(const double *numbers, int64_t size) {
    double most = 0;
    for (int64_t i = 0; i < size; i++) {
        const double x = fabs(numbers[i]);
        if (x > most && x < 1e5) most = x;
    }
    if (most == 0) return (Format){0, 0};
    const int power = (int)floor(log10(most) + 1e-9);
    const int exponent = power < -2 ? power : 0;
    int decimals = power < 0 ? 3 : 2 - power;
    if (decimals < 0) decimals = 0;
    if (exponent) decimals = 2;
    while (decimals > 0 && are_short(numbers, size, decimals - 1, pow(10, exponent))) decimals--;
    return (Format){decimals, exponent};
}

/* "1e6", "2.5e6" */
static void print_large(double x, char text[NUMBER_TEXT]) {
    char mantissa[NUMBER_TEXT] = "1";
    const int power = (int)floor(log10(x) + 1e-12);
    const double m = x / pow(10, power);
    if (fabs(m - 1) >= 1e-9) print_fixed(m, 1, mantissa);
    snprintf(text, NUMBER_TEXT, "%.20se%d", mantissa, power);
}

/* A number that would be written as 0.00 has up to three decimals. */
static void print_small(double x, int decimals, char text[NUMBER_TEXT]) {
    char longer[NUMBER_TEXT];
    print_fixed(x, decimals, text);
    if (strtod(text, NULL) != 0) return;
    print_fixed(x, decimals > 3 ? decimals : 3, longer);
    const double rounded = strtod(longer, NULL);
    if (rounded > 0) snprintf(text, NUMBER_TEXT, "%g", rounded);
}

void format_cell(double x, Format format, char text[NUMBER_TEXT]) {
    char digits[NUMBER_TEXT];
    if (isnan(x)) strcpy(text, "NaN");
    else if (x == 0) strcpy(text, "0");
    else {
        if (isinf(x)) strcpy(digits, "inf");
        else if (fabs(x) >= 1e5) print_large(fabs(x), digits);
        else print_small(fabs(x) / pow(10, format.exponent), format.decimals, digits);
        snprintf(text, NUMBER_TEXT, "%s%.38s", x < 0 ? "-" : "", digits);
    }
}

void format_number(double x, Format format, char text[NUMBER_TEXT]) {
    format_cell(x, format, text);
    const size_t n = strlen(text);
    if (format.exponent && x != 0 && isfinite(x) && fabs(x) < 1e5)
        snprintf(text + n, NUMBER_TEXT - n, "e%d", format.exponent);
}

/* The decimals are those of print_fixed. */
static double rounded(double x, int decimals) {
    const double power = pow(10, decimals), y = x * power, half = floor(y) + 0.5;
    const bool is_close = fabs(y - half) < 1e-6 * fmax(1, y);
    const bool up = is_close ? fma(x, power, -half) >= 0 : y > half;
    return (floor(y) + up) / power;
}

double format_value(double x, Format format) {
    char text[NUMBER_TEXT];
    if (x == 0 || !isfinite(x)) return x;
    if (fabs(x) >= 1e5) {
        format_number(x, format, text);
        return strtod(text, NULL);
    }
    const double scale = format.exponent ? pow(10, format.exponent) : 1;
    double size = rounded(fabs(x) / scale, format.decimals);
    if (size == 0) size = rounded(fabs(x) / scale, format.decimals > 3 ? format.decimals : 3);
    return (x < 0 ? -size : size) * scale;
}

Format format_of_constant(double x) {
    char text[NUMBER_TEXT];
    const double size = fabs(x);
    if (!(size > 0 && size < 1e15)) return (Format){0, 0};
    int most = 3 - (int)floor(log10(size)); /* four digits */
    if (most < 0) most = 0;
    if (most > 8) most = 8;
    for (int decimals = 0; decimals < (most > 3 ? most : 3) + 1; decimals++) {
        snprintf(text, sizeof text, "%.*f", decimals, size);
        if (strtod(text, NULL) == size) return (Format){decimals, 0};
    }
    return (Format){most, 0};
}
