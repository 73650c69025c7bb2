/* svg.h - pictures: panels with axes, points, lines and heat maps, as SVG.
 *
 * A picture is WIDTH units wide and as high as you say; it scales to whatever shows it, and letters
 * stay readable on a telephone. It brings its own white paper, so dark viewers do no harm. Colours
 * are told apart by colour-blind eyes, too: points are blue, lines vermillion (Okabe and Ito 2008),
 * and the heat runs from white to dark blue, getting darker all the way. Numbers are written with a
 * fixed number of digits: the same data give the same bytes.
 */
#ifndef TAPEHEAD_EXAMPLES_SVG_H
#define TAPEHEAD_EXAMPLES_SVG_H

#include <stdint.h>
#include <stdio.h>

#define SVG_WIDTH 640

/* A rectangle of the picture, and the data that its left, right, bottom and top edges stand for:
 * y_min may be larger than y_max, and then y grows downwards. */
typedef struct {
    double left, top, width, height;
    double x_min, x_max, y_min, y_max;
} Panel;

void svg_begin(FILE *file, int height, const char *title);
void svg_end(FILE *file);

/* Text is any bytes; what XML could not hold is replaced. anchor: "start", "middle", "end". */
void svg_text(FILE *file, double x, double y, const char *anchor, const char *text);
void svg_heading(FILE *file, double x, double y, const char *text); /* larger and bold */

/* The frame with ticks and numbers; draw it after what it frames. */
void svg_axes(FILE *file, const Panel *panel, const char *x_label, const char *y_label);

/* The same where y, in the panel and in what is drawn there, is the decimal logarithm of what the
 * numbers should say. */
void svg_log_axes(FILE *file, const Panel *panel, const char *x_label, const char *y_label);

/* Words instead of numbers: one for each of the n equal parts of an edge, from the top or left.
 * Where they are wider than their places they stand in several rows or are turned. */
typedef struct {
    const char *const *word;
    int n;
} Words;

void svg_word_axes(FILE *file, const Panel *panel, Words columns, Words rows, const char *x_label,
                   const char *y_label);
/* The room that this needs below and left of a panel whose cells are squares of this size. */
double svg_room_below(Words columns, double cell), svg_room_left(Words rows, double cell);

void svg_points(FILE *file, const Panel *panel, const double *x, const double *y, int64_t n);
void svg_line(FILE *file, const Panel *panel, const double *x, const double *y, int64_t n);

/* cells (rows, columns), row-major, fill the panel, the first row where y is least; 0 is white and
 * most is the darkest blue, NaN is hatched. The bar says which number is which blue: to the right
 * of a panel, labelled above, or a panel itself (x from 0 to most), labelled at its left. */
void svg_heat_map(FILE *file, const Panel *panel, const double *cells, int rows, int columns,
                  double most);
void svg_colour_bar(FILE *file, const Panel *panel, double most, const char *label);
void svg_flat_colour_bar(FILE *file, const Panel *bar, const char *label);

#endif
