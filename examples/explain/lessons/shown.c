/* shown.c - the numbers of a lesson as text, and equations: see shown.h. The sections: numbers,
 * tables, equations. */
#include "../steps/format.h"
#include "tell.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *text_of(const char *format, ...) {
    static char texts[16][1024];
    static int next;
    char *text = texts[next++ % 16];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof *texts, format, arguments);
    va_end(arguments);
    return text;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static char *next_string(void) {
    static char strings[32][32];
    static int next;
    return strings[next++ % 32];
}

static bool is_short(double x, int decimals) {
    const double power = pow(10, decimals);
    return fabs(x - round(x * power) / power) < 1e-9;
}

/* Writes a number with `more` digits than it has, but no zeros after its last digit. Returns 1 in
 * the last place. */
static double write_number(Number n, int more, char text[32]) {
    const double x = n.number;
    int decimals = n.decimals + more;
    while (decimals > n.decimals && is_short(x, decimals - 1)) decimals--;
    if (isnan(x)) strcpy(text, "NaN");
    else if (isinf(x)) strcpy(text, x < 0 ? "-infinity" : "infinity");
    else if (x == 0) strcpy(text, "0");
    else if (n.digits) snprintf(text, 32, "%.*g", n.digits + more, x);
    else snprintf(text, 32, "%.*f", decimals, x);
    for (char *end = text + strlen(text) - 1; !n.digits && decimals > n.decimals && *end == '0';
         end--) {
        *end = '\0';
        decimals--;
    }
    if (x == 0 || !n.digits) return pow(10, -decimals);
    return pow(10, floor(log10(fabs(x))) + 1 - n.digits - more);
}

const char *show_number(Number n) {
    char *text = next_string();
    write_number(n, 0, text);
    return text;
}

Number number_with(double x, int decimals) { return (Number){x, decimals, fabs(x) >= 1e5 ? 3 : 0}; }

Number number(double x) {
    if (x != 0 && fabs(x) < 0.01) return (Number){x, 0, 2};
    return number_with(x, format_of(&x, 1).decimals);
}

const char *show(double x) { return show_number(number(x)); }

/* ---- tables ---------------------------------------------------------------------------------- */

/* Element i as the table of x shows it. */
static Number number_in(const Tensor *x, int64_t i) {
    const int64_t size = x ? tensor_numel(x) : 0;
    if (i < 0 || i >= size) return number((double)NAN);
    double *numbers = malloc((size_t)size * sizeof *numbers);
    if (!numbers) tensor_fail("out of memory for the numbers of a text");
    if (!numbers || !tensor_to_doubles(x, numbers)) {
        free(numbers);
        return number((double)NAN);
    }
    const Format format = format_of(numbers, size);
    const double element = numbers[i];
    free(numbers);
    if (format.exponent || fabs(element) < 0.5 * pow(10, -format.decimals)) return number(element);
    return number_with(element, format.decimals);
}

Number value_of(const char *name, int64_t i) { return number_in(tensor_on_tape(name), i); }

Number grad_of(const char *name, int64_t i) {
    const Tensor *x = tensor_on_tape(name);
    return number_in(x ? x->grad : NULL, i);
}

Number part_of(const char *made, const char *input, int64_t i) {
    Tensor *dx = step_part(step_backward(made, input));
    const Number part = number_in(dx, i);
    tensor_release(dx);
    return part;
}

const char *show_value(const char *name, int64_t i) { return show_number(value_of(name, i)); }
const char *show_grad(const char *name, int64_t i) { return show_number(grad_of(name, i)); }
const char *show_part(const char *made, const char *input, int64_t i) {
    return show_number(part_of(made, input, i));
}

/* ---- equations ------------------------------------------------------------------------------- */

enum { EQUATION = 256, MOST_MORE = 6 };

/* What the numbers before the last one must make. */
typedef double (*Rule)(const double *x);

static double product(const double *x) { return x[0] * x[1]; }
static double product_of_3(const double *x) { return x[0] * x[1] * x[2]; }
static double difference(const double *x) { return x[0] - x[1]; }
static double slope(const double *x) { return x[0] * (x[1] - x[2]); }
static double square(const double *x) { return x[0] * x[0]; }
static double quotient(const double *x) { return x[1] / x[0]; }
static double sum(const double *x) { return x[0] + x[1]; }
static double sum_of_3(const double *x) { return x[0] + x[1] + x[2]; }
static double subtraction(const double *x) { return x[0] - x[1] * x[2]; }
static double step(const double *x) { return subtraction(x + 1); }

/* Writes the numbers with `more` digits, the last one with last_more. Returns whether the printed
 * numbers obey the rule. before: what stands before each number, NULL if it is not printed; " - "
 * becomes " + " before a negative one. */
static bool write_equation(Rule rule, const char *const *before, const Number *x, int count,
                           int more, int last_more, char *text) {
    double printed[8], unit = 0;
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        char number_text[32];
        printed[i] = x[i].number;
        if (!before[i]) continue;
        const bool last = i == count - 1;
        unit = write_number(x[i], last ? last_more : more, number_text);
        printed[i] = strtod(number_text, NULL);
        const bool adds = strcmp(before[i], " - ") == 0 && *number_text == '-';
        n += (size_t)snprintf(text + n, EQUATION - n, "%s%s", adds ? " + " : before[i],
                              number_text + adds);
    }
    return fabs(rule(printed) - printed[count - 1]) <= 0.5 * unit + 1e-9 * fabs(printed[count - 1]);
}

/* The equation with as few digits as it needs. */
static const char *equation(Rule rule, const char *const *before, const Number *x, int count) {
    static char texts[8][EQUATION];
    static int next;
    char *text = texts[next++ % 8];
    for (int more = 0; more <= MOST_MORE; more++) {
        if (write_equation(rule, before, x, count, more, more, text)) return text;
        if (write_equation(rule, before, x, count, more, 0, text)) return text;
    }
    write_equation(rule, before, x, count, 0, 0, text); /* with NaN, or after a wrong rule */
    return text;
}

#define EQUATION_OF(rule, words, ...)                                                              \
    equation(rule, words, (const Number[]){__VA_ARGS__}, (int)(sizeof(words) / sizeof(words)[0]))

const char *show_product(Number a, Number b, Number y) {
    static const char *const words[] = {"", " x ", " = "};
    return EQUATION_OF(product, words, a, b, y);
}

const char *show_product_of_3(Number a, Number b, Number c, Number y) {
    static const char *const words[] = {"", " x ", " x ", " = "};
    return EQUATION_OF(product_of_3, words, a, b, c, y);
}

const char *show_difference(Number a, Number b, Number y) {
    static const char *const words[] = {"", " - ", " = "};
    return EQUATION_OF(difference, words, a, b, y);
}

/* The mean of the gradients of row r of weights, weighted by them, which softmax subtracts. */
static double mean_grad_in_row(const char *weights, int64_t r) {
    const int64_t first = r * columns_of(weights);
    double mean = 0;
    for (int64_t i = first; i < first + columns_of(weights); i++)
        mean += lesson_value(weights, i) * lesson_grad(weights, i);
    return mean;
}

const char *show_slope(const char *weights, const char *scores, int64_t i) {
    static const char *const words[] = {"", " x (", " - ", ") = "};
    const double mean = mean_grad_in_row(weights, i / columns_of(weights));
    return EQUATION_OF(slope, words, value_of(weights, i), grad_of(weights, i), number(mean),
                       part_of(weights, scores, i));
}

static const char *const becomes[] = {"", " becomes "};
static const char *const by_becomes[] = {"", ": ", " becomes "};

const char *show_square(Number x, Number y) { return EQUATION_OF(square, becomes, x, y); }

const char *show_scaled(double factor, Number x, Number y) {
    static const char *const words[] = {NULL, "", " becomes "};
    return EQUATION_OF(product, words, number(factor), x, y);
}

const char *show_times(Number factor, Number x, Number y) {
    return EQUATION_OF(product, by_becomes, factor, x, y);
}

const char *show_divided(Number divisor, Number x, Number y) {
    return EQUATION_OF(quotient, by_becomes, divisor, x, y);
}

/* A sum has as many decimals as its terms: -0.21 and 0 make -0.21, not -0.2. */
static Number as_fine_as(Number y, Number a, Number b) {
    if (a.decimals > y.decimals && !a.digits) y.decimals = a.decimals;
    if (b.decimals > y.decimals && !b.digits) y.decimals = b.decimals;
    return y;
}

const char *show_sum(Number a, Number b, Number y) {
    static const char *const words[] = {"", " and ", " make "};
    return EQUATION_OF(sum, words, a, b, as_fine_as(y, a, b));
}

const char *show_sum_of_uses(Number v, Number k, Number q, Number y) {
    static const char *const words[] = {"", " from `V`, ", " from `K` and ", " from `Q` make "};
    return EQUATION_OF(sum_of_3, words, v, k, q, as_fine_as(as_fine_as(y, v, k), q, q));
}

const char *show_step(Number w, Number rate, Number dw, Number y) {
    static const char *const words[] = {"from ", " to ", " - ", " x ", " = "};
    return EQUATION_OF(step, words, w, w, rate, dw, y);
}

const char *show_subtraction(Number w, Number rate, Number dw, Number y) {
    static const char *const words[] = {"", " - ", " x ", " = "};
    return EQUATION_OF(subtraction, words, w, rate, dw, y);
}
