/* worked.h - one number of a step, worked out as numbers times numbers. */
#ifndef TAPEHEAD_EXAMPLES_WORKED_H
#define TAPEHEAD_EXAMPLES_WORKED_H

#include "formula.h"

/* number - less, as a table shows it with so many decimals, and the table and the element that it
 * is taken from. */
typedef struct {
    double number, less;
    bool differs; /* by less */
    int decimals;
    const TapeTensor *from; /* NULL: a number of no table */
    bool is_gradient;
    int64_t i;
} Factor;
typedef struct {
    int count;
    Factor factors[3];
} Term;

/* Element i of a step's result as a sum of products. Returns how many there are, and fills the
 * first `most`; -1 if it is no such sum: softmax forward, y = a - b. */
int64_t worked_terms(const Plan *plan, const Step *step, int64_t i, Term *terms, int64_t most);
/* "dA[1, 0] = -1.121 x -0.1 + -3.944 x -1.6 = 6.422", also where the number is no sum, with as many
 * decimals as make it right as it is printed. "" for the start. */
void worked_text(const Plan *plan, const Step *step, int64_t i, char text[FORMULA_TEXT]);
/* The weighted mean in the gradient of a softmax: "weighted mean = 0.508 x 6.422 + ..."; "" in
 * other steps. */
void worked_mean(const Plan *plan, const Step *step, int64_t i, char text[FORMULA_TEXT]);

/* How many decimals, up to 3, show all these numbers as they are. */
int decimals_of(const double *numbers, int64_t size);
/* A number as a table shows it, but a small one has three digits. */
void number_text(double x, int decimals, char text[24]);

enum { PLACE_TEXT = 160 };
/* "[1, 0]", row and column; " head 2 [1, 0]" where the lesson has a word for the panels; "" for a
 * number alone. */
void place_text(const Plan *plan, const TapeTensor *x, int64_t i, char text[PLACE_TEXT]);

#endif
