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
enum { WORKED_ELEMENTS = 120, FORM_TEXT = 400, MOST_SUMS = 8 };

/* What the numbers of a step have in common. */
typedef struct {
    Plan *plan;
    const Step *step;
    Formula *formula;      /* hidden items are added to it, if a line needs them */
    Tree *tree;            /* NULL: the op of a line is called */
    const char *after;     /* ", moved": stands behind the terms; or "" */
    const RuledLine *line; /* forward */
    char op[NAME_TEXT];
    int num_sums; /* tables of sums, and of parts, in the formula: their items */
    int sums[MOST_SUMS];
} Recipe;

/* What one number of a step is made of. */
typedef struct {
    int64_t elements[WORKED_ELEMENTS];
    int count;
    int64_t terms;  /* of the sum; elements has fewer of a long one */
    const char *op; /* of a call: elements are pairs of an item and an element; -1 for "..." */
    char note[NOTE_TEXT]; /* instead of terms: "no input changes it" */
} Worked;

/* Makes the formula, too. */
void recipe_of(Plan *plan, const Step *step, Formula *formula, Recipe *recipe);

/* sum: the recipe's table of sums with this number; -1: what the step makes. */
const Item *worked_item(const Recipe *recipe, int sum);
void worked_form(const Recipe *recipe, int sum, char form[FORM_TEXT]);
void worked_of(const Recipe *recipe, int sum, int64_t i, Worked *worked);
enum { LINE_TEXT = 1600 };
/* "0.508 x (6.42 - 4.01)", the numbers that are rounded with so many decimals more than in their
 * tables. Returns the value of the printed arithmetic, NaN if it is none. text: or NULL. */
double worked_line(const Recipe *recipe, int sum, int64_t i, int more, char text[LINE_TEXT]);
/* With how many decimals more does the line give its number, as it is printed? 0 if it is no
 * arithmetic. */
int worked_more(const Recipe *recipe, int sum, int64_t i);

#endif
