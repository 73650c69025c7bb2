/* shown.h - the numbers of a lesson as text, and equations that hold as they are printed.
 *
 *     say(l, at, i, "The largest weight is %s.", show_value("A", i));
 *     say(l, at, i, "Twice what was squared: %s.",
 *         show_product(number(2), value_of("E", i), grad_of("E", i)));
 *
 * A number has as many decimals as its table on the page. Rounded so, 2 x 1.48 = 2.95 would be
 * wrong; in an equation the numbers get more digits until it is right: 2 x 1.476 = 2.952.
 *
 * The string of a number is valid for the next 31 calls, that of an equation for the next 7. */
#ifndef TAPEHEAD_EXAMPLES_SHOWN_H
#define TAPEHEAD_EXAMPLES_SHOWN_H

#include <stdint.h>

#define TELLS(text, first) __attribute__((format(printf, text, first)))

/* A text as printf makes it, of at most 1000 characters, valid for the next 15 calls. */
TELLS(1, 2) const char *text_of(const char *format, ...);

/* A number, and how it is printed: with so many decimals, or, if digits is not 0, so many digits.
 */
typedef struct {
    double number;
    int decimals, digits;
} Number;

/* An element of a tensor, of its gradient, or of the part of input's gradient that comes from the
 * line that made `made`, as its table has it. */
Number value_of(const char *name, int64_t i), grad_of(const char *name, int64_t i);
Number part_of(const char *made, const char *input, int64_t i);
/* A number that is in no table, with up to three digits; one with so many decimals. */
Number number(double number), number_with(double number, int decimals);

const char *show_value(const char *name, int64_t i), *show_grad(const char *name, int64_t i);
const char *show_part(const char *made, const char *input, int64_t i);
const char *show(double number), *show_number(Number number);

/* "2 x 1.476 = 2.952", "2 x 0.4 x 0.5 = 0.4", "1.5 - 2 = -0.5" */
const char *show_product(Number a, Number b, Number y);
const char *show_product_of_3(Number a, Number b, Number c, Number y);
const char *show_difference(Number a, Number b, Number y);
/* "0.15 x (1.27 + 0.17) = 0.216": the gradient of score i, its weight times how far the gradient of
 * the weight is above the weighted mean of the row. */
const char *show_slope(const char *weights, const char *scores, int64_t i);
/* "1.5 becomes 2.25", the square; "1.5 becomes 3", x times a factor that is not printed; "2: 1.5
 * becomes 3" and "2: 3 becomes 1.5", the factor or the divisor before it. */
const char *show_square(Number x, Number y), *show_scaled(double factor, Number x, Number y);
const char *show_times(Number factor, Number x, Number y);
const char *show_divided(Number divisor, Number x, Number y);
/* "1 and 2 make 3"; "1 from `V`, 2 from `K` and 3 from `Q` make 6" */
const char *show_sum(Number a, Number b, Number y);
const char *show_sum_of_uses(Number v, Number k, Number q, Number y);
/* "from 0.5 to 0.5 - 0.02 x 0.1 = 0.498": a step of SGD; "0.5 - 0.02 x 0.1 = 0.498" */
const char *show_step(Number w, Number rate, Number dw, Number y);
const char *show_subtraction(Number w, Number rate, Number dw, Number y);

#endif
