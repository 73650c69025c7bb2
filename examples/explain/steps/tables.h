/* tables.h - the tables of a formula in a terminal: side by side, as long as they fit into 80
 * columns, with the signs between them. If all have several panels, heads for example, the formula
 * stands there for each panel. */
#ifndef TAPEHEAD_EXAMPLES_TABLES_H
#define TAPEHEAD_EXAMPLES_TABLES_H

#include "formula.h"

enum { TERMINAL_WIDTH = 80, TERMINAL_MARGIN = 4 };

/* Colours and bold type of the terminal, by the codes of ANSI; nothing after
 * paint_plainly(true). */
#define BOLD   "1"
#define FAINT  "2"
#define BLUE   "38;5;75"
#define ORANGE "38;5;208"
void paint_plainly(bool plain);
void paint(const char *color);
void unpaint(void);

enum { PLACE_TEXT = NAME_TEXT + 40 };
/* Appends the place of element i in the first dimensions of a tensor: "[1, 0]", row and column;
 * " head 2 [1, 0]" where the lesson has a word for the panels; nothing for a number alone. */
void put_place(const Plan *plan, const TapeTensor *x, int64_t i, int64_t dims,
               char text[PLACE_TEXT]);

/* plan: its lesson has the words of rows and columns, and a name for panels ("head"). */
void tables_print(const Plan *plan, const Formula *formula);

/* The reasons for zeros that occur in a part of a gradient: "zeros: // masked, 0 nothing arrives",
 * or nothing. */
void print_reasons(const Plan *plan, const Part *part);

#endif
