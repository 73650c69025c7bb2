/* algebra.h - a rule in lines: each line is the one before, after one thing was done to it.
 *
 * "= `p` (`dA_0` - [`p dA_0` + `r dA_1`])": names stand between backquotes; in square brackets, a
 * box in the page, stands a mean; <...> is the term to follow from line to line. In the data
 *
 *     "algebra":[{"line":...,"why":...}, ...] */
#ifndef TAPEHEAD_EXAMPLES_ALGEBRA_H
#define TAPEHEAD_EXAMPLES_ALGEBRA_H

#include "../page/json.h"

enum { ALGEBRA_LINES = 6, ALGEBRA_TEXT = 400 };
typedef struct {
    int count;
    struct {
        char line[ALGEBRA_TEXT], why[ALGEBRA_TEXT];
    } at[ALGEBRA_LINES];
} Algebra;

/* why: what was done, at the right of the line; "" if nothing is to be said. */
void algebra_add(Algebra *a, const char *line, const char *why);
/* Writes ,"algebra":[...]; nothing if there is no line. */
void algebra_write(FILE *file, const Algebra *a);

/* A row of softmax: its weights p, the gradient that arrives at each, and the number i that is
 * moved, by factor times a nudge. dx_name, dy_name: "dZ", "dA". */
typedef struct {
    const char *dx_name, *dy_name;
    double factor;
    int64_t i, size;
    const double *p, *dy;
} SoftmaxRow;

/* The rule for number i from its row of the Jacobian: four lines of letters, two of numbers. */
void algebra_of_softmax(const SoftmaxRow *row, Algebra *a);

#endif
