/* picture_parts.h - what the files of a picture share: words and numbers (picture_words.c), the
 * tape (picture_tape.c), the step with its tables (picture_step.c), the number that is worked out
 * (picture_terms.c). */
#ifndef TAPEHEAD_EXAMPLES_PICTURE_PARTS_H
#define TAPEHEAD_EXAMPLES_PICTURE_PARTS_H

#include "../common/colours.h"
#include "picture.h"

enum { PICTURE_WIDTH = 1180, MARGIN = 32 };

/* ---- words and numbers ----------------------------------------------------------------------- */

#define SOFT_WORDS  "class=\"soft\" fill=\"" SOFT "\" "
#define FAINT_WORDS "class=\"faint\" fill=\"" FAINT "\" "
#define SERIF_TYPE  "font-family=\"" SERIF "\" "

/* The colours for dark screens that svg.h does not have. */
void write_colours(FILE *file);

void begin_text(FILE *file, double x, double y, const char *anchor);
void end_text(FILE *file);
void end_group(FILE *file);
void put_escaped(FILE *file, char c);
/* A name of the tape as mathematics: W_q with a subscript, K' with a raised T, sqrt(d) as a root.
 * size: of the type. */
void put_name(FILE *file, const char *name, double size);
/* The sign of a formula: a times sign for "x", a minus for "-". */
const char *sign_of(const char *text);
/* Words of a lesson in lines of at most so many characters. Returns how many lines there are;
 * writes none without a file. */
int write_prose(FILE *file, double x, double y, const char *text, int most, double size);
void write_box(FILE *file, double x, double y, double width, double height, const char *attributes);

double largest_of(const double *numbers, int64_t size);
/* Three digits for the largest number of a table, fewer if all numbers are short. */
int decimals_in(const double *numbers, int64_t size);
/* "0.40"; a number that would round to 0 has two digits. */
void number_as(char text[32], double x, int decimals);
/* How strong a colour is: largest is the largest number of its table, top that of the lesson. A
 * table of small numbers is paler. */
double strength_of(double x, double largest, double top);
/* The largest number of all values, or of all gradients. */
double top_of(const Picture *picture, bool grads);

/* ---- the tape -------------------------------------------------------------------------------- */

double tape_bottom(const Picture *picture);
/* The tables, the arrows, and the steps as dashes. */
void write_tape(FILE *file, const Picture *picture);

/* ---- the step -------------------------------------------------------------------------------- */

typedef struct {
    double cell, height, font; /* of the cells */
    double heading, top;       /* the line of the rule; the first row of cells */
    double bottom;             /* of the cells */
} Layout;

/* Tables with many columns need a wider picture. */
double find_width(const Picture *picture);
Layout layout_of(const Picture *picture);
void write_tables(FILE *file, const Picture *picture, const Layout *layout);
/* The formula, and that it was checked. */
void write_rule(FILE *file, const Picture *picture, const Layout *layout);

/* Where the cells of item i begin. */
double left_of(const Picture *picture, const Layout *layout, int i);
/* The word of row or column i, or its number; side: "rows", "columns". */
void word_at(const Picture *picture, const Item *item, const char *side, int64_t i, char text[32]);

/* What stands below the tables: the number that is worked out, the reasons for zeros, the lesson's
 * text. Returns where it ends; writes nothing without a file. */
double write_terms(FILE *file, const Picture *picture, const Layout *layout);

#endif
