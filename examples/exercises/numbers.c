/* numbers.c - numbers that a student types or reads, and softmax: see numbers.h. */
#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number at text, and where it ends; end is text if there is none. */
static double read_number(const char *text, const char **end) {
    char *after;
    *end = text + 4;
    if (strncmp(text, "true", 4) == 0) return 1;
    *end = text + 5;
    if (strncmp(text, "false", 5) == 0) return 0;
    const double x = strtod(text, &after);
    *end = after;
    return x;
}

bool numbers_read(const char *line, double *number, int n) {
    const char *space = " \t\r,";
    const char *at = line + strspn(line, space);
    for (int i = 0; i < n; i++) {
        const char *end;
        number[i] = read_number(at, &end);
        if (end == at || (*end && !strchr(space, *end))) return false;
        at = end + strspn(end, space);
    }
    return !*at;
}

void number_signed(char text[32], double number, int digits) {
    if (isnan(number)) snprintf(text, 32, "NaN");
    else if (number == 0) snprintf(text, 32, "0");
    else snprintf(text, 32, "%+.*g", digits, number);
}

void softmax_of(int n, double *y, double s, const bool *keep) {
    double max = -HUGE_VAL, sum = 0;
    for (int i = 0; i < n; i++)
        if (!keep || keep[i]) max = fmax(max, s * y[i]);
    for (int i = 0; i < n; i++) {
        y[i] = keep && !keep[i] ? 0 : exp(s * y[i] - max);
        sum += y[i];
    }
    for (int i = 0; i < n && sum > 0; i++) y[i] /= sum;
}
