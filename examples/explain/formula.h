/* formula.h - a step as a formula in the lesson's names, dA = dY V', with the table that each name
 * stands for. The formula of a gradient follows from its kind (rules.h), so no op is known here,
 * either. */
#ifndef TAPEHEAD_EXAMPLES_FORMULA_H
#define TAPEHEAD_EXAMPLES_FORMULA_H

#include "plan.h"

enum { FORMULA_ITEMS = 40, FORMULA_TEXT = 640, NAME_TEXT = 64 };

/* A table, or a sign between tables. */
typedef struct {
    char text[NAME_TEXT];
    const double *numbers;      /* NULL: a sign */
    const TapeTensor *like;     /* has as many numbers */
    const Part *part;           /* knows the reasons for the zeros of the table; else NULL */
    bool transposed, is_column; /* is_column: a number for each row */
    bool is_operand;            /* it is read: worked_text puts a number in its place */
    double constant;            /* of a sign that is a number, rounded in its text; else 0 */
} Item;

typedef struct {
    int count;
    Item items[FORMULA_ITEMS]; /* the first is the result, of the first line of a fold */
    char note[FORMULA_TEXT];   /* goes on after the formula */
} Formula;

void formula_of(const Plan *plan, const Step *step, Formula *formula);
/* y = a - b: a line forward that the data give a formula of inputs, numbers and signs, so it holds
 * for each number. False if they do not. */
bool formula_by_number(const Plan *plan, const RuledLine *line, Formula *formula);
/* The tensor of the part's lines that its derivatives are, times a number: E, 2. -1: none. */
int multiple_of(const Plan *plan, const Part *part, double *times);
/* A = softmax(S): a line forward with its op, in the names of the tape. */
void call_of_line(const Plan *plan, const RuledLine *line, Formula *formula);
/* "dS = A x (dA - weighted mean), weighted mean: the sum of A x dA in the row" */
void formula_text(const Formula *formula, char text[FORMULA_TEXT]);
/* Does a blank stand between these items? */
bool stand_apart(const Item *before, const Item *item);

/* "V", or the short name that the lesson gives it; transposed: "V'", or the name of the tensor that
 * V is the transpose of. */
void name_of_tensor(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]);
/* "dV", "d(S / sqrt(d))" */
void name_of_gradient(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]);

#endif
