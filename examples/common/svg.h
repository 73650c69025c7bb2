/* svg.h - pictures: panels with axes, points, lines and heat maps, as SVG.
 *
 * A picture has a size of its own and scales to whatever shows it. It has two sets of colours, for
 * light and for dark screens; the viewer's setting chooses (prefers-color-scheme), and a viewer
 * without style sheets shows the light one. Colour-blind readers can tell the colours apart: points
 * are blue, lines vermillion (Okabe and Ito 2008), and a heat map mixes one blue with the paper.
 * Numbers are written with a fixed number of digits: the same data give the same bytes.
 */
#ifndef TAPEHEAD_EXAMPLES_SVG_H
#define TAPEHEAD_EXAMPLES_SVG_H

#include <stdint.h>
#include <stdio.h>

/* A rectangle of the picture, and the data that its left, right, bottom and top edges stand for:
 * y_min may be larger than y_max, and then y grows downwards. */
typedef struct {
    double left, top, width, height;
    double x_min, x_max, y_min, y_max;
} Panel;

/* Two lines below the title that say what the picture shows. */
typedef struct {
    const char *line[2];
} Caption;
enum { SVG_HEADER = 112 }; /* the height that the title and the caption take */

void svg_begin(FILE *file, int width, int height, const char *title, Caption caption);
void svg_end(FILE *file);

/* Text is any bytes; what XML could not hold is replaced, and 40 characters are shown at most.
 * anchor: "start", "middle", "end". */
void svg_text(FILE *file, double x, double y, const char *anchor, const char *text);

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
double svg_space_below(Words columns, double cell), svg_space_left(Words rows, double cell);

void svg_points(FILE *file, const Panel *panel, const double *x, const double *y, int64_t n);
void svg_line(FILE *file, const Panel *panel, const double *x, const double *y, int64_t n);

/* cells (rows, columns), row-major, fill the panel, the first row where y is least; 0 is the paper
 * and most is full blue, NaN is hatched. The bar says which number is which blue: to the right of a
 * panel, labelled above, or a panel itself (x from 0 to most), labelled at its left. */
void svg_heat_map(FILE *file, const Panel *panel, const double *cells, int rows, int columns,
                  double most);
void svg_colour_bar(FILE *file, const Panel *panel, double most, const char *label);
void svg_flat_colour_bar(FILE *file, const Panel *bar, const char *label);

#endif
