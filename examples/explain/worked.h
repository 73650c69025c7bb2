/* worked.h - what each number of a step is made of: the line of terms.
 *
 * A step has a form, "[@2 x @4] + @6": @2 is a number of the formula's item 2, and what stands in
 * square brackets is repeated for each term, with " + " between the terms. A number of the step has
 * the elements that the form reads, one after the other: for two terms 0, 3, 1, 7, 5. @* reads the
 * number of an item first, then the element. {0.5} is a constant. So one function draws every line:
 * worked_line here, termsOf (pictures.js) in the page. */
#ifndef TAPEHEAD_EXAMPLES_WORKED_H
#define TAPEHEAD_EXAMPLES_WORKED_H

#include "formula.h"

enum { MOST_TERMS = 12 /* of a sum; of one with more than 14, the first 12 */ };
enum { WORKED_ELEMENTS = 80, FORM_TEXT = 400 };

typedef enum {
    WORKED_NONE,
    WORKED_MOVE,
    WORKED_PRODUCT,
    WORKED_BY_NUMBER,
    WORKED_SUM,     /* of derivative times input */
    WORKED_WEIGHTS, /* exp(a) / (exp(a) + exp(b)) */
    WORKED_TURN,    /* cos(t) x a + sin(t) x b */
    WORKED_CALL,    /* op of a, b and c */
    WORKED_BACKWARD,
    WORKED_ADDITION
} WorkedKind;

/* What the numbers of a step have in common. */
typedef struct {
    WorkedKind kind;
    char form[FORM_TEXT];
    char mean_form[40]; /* of the weighted means of a softmax; else "" */
    char op[NAME_TEXT]; /* of a call */
    const char *after;  /* ", moved": stands behind the terms; or "" */
    const RuledLine *line;
    int items[FORMULA_ITEMS]; /* forward: of the line's inputs */
} Recipe;

/* What one number of a step is made of. */
typedef struct {
    int64_t elements[WORKED_ELEMENTS];
    int count;
    int64_t terms;  /* of the sum; elements has fewer of a long one */
    const char *op; /* of a call: elements are pairs of an item and an element; -1 for "..." */
    char note[NOTE_TEXT]; /* instead of terms: "no input changes it" */
} Worked;

/* Adds hidden items to the formula, if the form needs them. */
void recipe_of(Plan *plan, const Step *step, Formula *formula, Recipe *recipe);
void worked_of(const Plan *plan, const Step *step, const Formula *formula, const Recipe *recipe,
               int64_t i, Worked *worked);
/* Row `row` of the weighted means. */
void worked_of_mean(const Plan *plan, const Step *step, int64_t row, Worked *worked);

enum { LINE_TEXT = 1600 };
/* "0.508 x (6.42 - 4.01)", the numbers that are rounded with so many decimals more than in their
 * tables. Returns the value of the printed arithmetic, NaN if it is none. text: or NULL. */
double worked_line(const Formula *formula, const char *form, const Worked *worked, int more,
                   char text[LINE_TEXT]);
/* With how many decimals more does the line give x, as it is printed? 0 if it is no arithmetic. */
int worked_more(const Formula *formula, const char *form, const Worked *worked, double x,
                Format format);

#endif
