/* common_line.c - reads printed arithmetic: see common_line.h. */
#include "common_line.h"
#include "../common.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *at; /* what is left */
static bool known;     /* it was arithmetic so far */
static ReadLetter *letters;

static double sum(void);

static const char *behind_blanks(void) { return at + strspn(at, letters ? " `<>" : " "); }

static bool take(const char *word) {
    const char *next = behind_blanks();
    const size_t n = strlen(word);
    if (strncmp(next, word, n) != 0) return false;
    at = next + n;
    return true;
}

static double number(void) {
    double x = 0;
    at = behind_blanks();
    if (letters && letters(&at, &x)) return x;
    known = known && isdigit((unsigned char)at[*at == '-']);
    if (known) x = strtod(at, (char **)&at);
    return x;
}

static double apply(const char *function, double x) {
    if (strcmp(function, "exp(") == 0) return exp(x);
    if (strcmp(function, "log(") == 0) return log(x);
    if (strcmp(function, "tanh(") == 0) return tanh(x);
    if (strcmp(function, "sqrt(") == 0) return sqrt(x);
    return strcmp(function, "sign(") == 0 ? (x > 0) - (x < 0) : x;
}

static double factor(void) {
    static const char *const begins[] = {"(",     "[",     "exp(",  "log(",
                                         "tanh(", "sqrt(", "sign(", "max("};
    int n = 0;
    while (n < COUNT(begins) && !take(begins[n])) n++;
    if (n == COUNT(begins)) return number();
    double x = sum();
    if (strcmp(begins[n], "max(") == 0 && take(",")) x = fmax(x, sum());
    known = known && (take(")") || take("]"));
    return apply(begins[n], x);
}

static double power(void) {
    const double x = factor();
    return take("^") ? pow(x, number()) : x;
}

static double product(void) {
    double x = power();
    while (known) {
        const char *next = behind_blanks();
        if (take("/ ")) x /= power();
        else if (take("x ") || (letters && *next && !strchr("+-)]=", *next))) x *= power();
        else break;
    }
    return x;
}

static double sum(void) {
    double x = product();
    while (known) {
        if (take("+ ")) x += product();
        else if (take("- ")) x -= product();
        else break;
    }
    return x;
}

bool read_sum(const char **text, double *value, ReadLetter *letter) {
    at = *text;
    known = true;
    letters = letter;
    *value = sum();
    if (known) *text = at;
    return known;
}

double last_place(const char *number) {
    char *end;
    strtod(number, &end);
    const size_t size = (size_t)(end - number);
    const char *point = memchr(number, '.', size);
    const char *e = memchr(number, 'e', size);
    const char *last = e ? e : end;
    const double unit = point ? pow(10, (double)(point + 1 - last)) : 1;
    return e ? unit * pow(10, strtod(e + 1, NULL)) : unit;
}
