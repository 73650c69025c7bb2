/* formula.h - a step as its formula in the lesson's names, dA = dY V', with the table that each
 * name stands for. The formula is the tree of the step's rule (tree.h), so no op is known here. */
#ifndef TAPEHEAD_EXAMPLES_FORMULA_H
#define TAPEHEAD_EXAMPLES_FORMULA_H

#include "../../common/put_text.h"

#include "format.h"
#include "plan.h"

enum { FORMULA_ITEMS = 40, FORMULA_TEXT = 640, NAME_TEXT = 128, NOTE_TEXT = 300 };

/* What the numbers of a table are. */
typedef enum {
    ITEM_SIGN = 0,
    ITEM_VALUE = 'v',
    ITEM_GRADIENT = 'g',   /* a gradient, or a part of one that a step of backward makes */
    ITEM_PART = 'p',       /* a part of a gradient, in an addition */
    ITEM_BEFORE = 'q',     /* the sum of the parts before it */
    ITEM_SUM = 'm',        /* a number of each row: sum(A x dA) */
    ITEM_DERIVATIVE = 'j', /* dy/dx, number by number */
    ITEM_CONSTANT = 'c'    /* derivatives that stand in no table */
} ItemKind;

/* A table, or a sign between tables. */
typedef struct {
    ItemKind of;
    char text[NAME_TEXT];   /* the name; the sign */
    char note[NOTE_TEXT];   /* beside it */
    const TapeTensor *like; /* has as many numbers */
    const double *numbers;  /* NULL: a sign */
    int64_t size;           /* how many there are */
    const Part *part;       /* whose numbers these are; NULL: no part's */
    int parts;              /* a sum of so many parts, but not of all; else 0 */
    Format format;
    bool transposed;
    bool is_word;   /* its name is a word: "derivative" */
    bool is_small;  /* short numbers that are only read beside the others, a mask */
    int node;       /* of a sum that stands in a table of its own: where in the tree */
    bool is_hidden; /* not drawn: a table whose numbers stand only in the line of terms */
} Item;

typedef struct {
    int count, main; /* main: the item that the step makes */
    Item items[FORMULA_ITEMS];
    char title[FORMULA_TEXT]; /* names between backquotes */
    bool is_list;             /* while items are added: names need no brackets; */
    bool is_title;            /* only the title gets them */
    const Part *part;         /* of backward: what the step finds */
    bool by_rows; /* each row of the result is made from the same rows of the others alone */
} Formula;

void formula_of(Plan *plan, const Step *step, Formula *formula);
/* Adds a value, or derivatives, that are not drawn; returns the number of the item. */
int formula_hide_value(const Plan *plan, Formula *formula, int tensor);
int formula_hide_constants(Formula *formula, const double *numbers, int64_t size);

/* How a sign binds: a number, the larger the tighter. */
int tree_strength(char sign);
/* Has the line a tree that stands in its title? Else its op is named: softmax(S). */
bool is_in_line(const RuledLine *line);
/* Is the result the sum of derivative times input, as a sum is, and a mean? */
bool is_linear(const Plan *plan, const RuledLine *line);

/* ---- names ----------------------------------------------------------------------------------- */

/* "scores"; "softmax 5" of a result without a name, "x3" of what was given. */
void full_name(const Plan *plan, int tensor, char name[NAME_TEXT]);
/* "V", the short name that the lesson gives it, or its name; transposed: "V'", or the name of the
 * tensor that V is the transpose of. */
void name_of_tensor(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]);
/* "dV", "d(S / sqrt(d))" */
void name_of_gradient(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]);
/* "masked softmax" */
void name_of_op(const RuledLine *line, char name[NAME_TEXT]);
/* A text without its backquotes. */
void plain_text(const char *text, char *plain, size_t size);
/* A number of a formula: in full if it is short, else four digits. */
void constant_text(double x, char text[NUMBER_TEXT]);

#endif
