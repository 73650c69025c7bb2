/* svg.h - pictures: panels with axes, points, lines and heat maps, as SVG.
 *
 * A picture has a size and scales to its viewer. Each picture has colours for light and for dark
 * screens (colours.h); the viewer chooses (prefers-color-scheme), and a viewer without style sheets
 * shows the light colours. A heat map is blue, as all its numbers are 0 or positive; points and all
 * words and lines around the data are neutral. Numbers have a fixed number of digits, so the same
 * data give the same bytes.
 */
#ifndef TAPEHEAD_EXAMPLES_SVG_H
#define TAPEHEAD_EXAMPLES_SVG_H

#include <stdint.h>
#include <stdio.h>

/* A rectangle of the picture, and the values at its left, right, bottom and top edges. If y_min is
 * larger than y_max, y grows downwards. */
typedef struct {
    double left, top, width, height;
    double x_min, x_max, y_min, y_max;
} Panel;

/* Two lines below the title that say what the picture shows. */
typedef struct {
    const char *line[2];
} Caption;
enum { SVG_HEADER = 112 }; /* the height of the title and the caption */

void svg_begin(FILE *file, int width, int height, const char *title, Caption caption);
void svg_end(FILE *file);

/* text: any bytes. Bytes that XML does not allow are replaced; at most 40 characters are shown.
 * anchor: "start", "middle", "end". */
void svg_text(FILE *file, double x, double y, const char *anchor, const char *text);

/* A frame with ticks and numbers, around a heat map; draw it after the contents. */
void svg_axes(FILE *file, const Panel *panel, const char *x_label, const char *y_label);

/* Lines through the panel with numbers, for points and lines; draw it before the contents. */
void svg_chart(FILE *file, const Panel *panel, const char *x_label, const char *y_label);

/* The same for a logarithmic axis: y, in the panel and in its contents, is the decimal logarithm of
 * the value, and the numbers show the value. */
void svg_log_chart(FILE *file, const Panel *panel, const char *x_label, const char *y_label);

/* Words instead of numbers, one for each of n equal parts of an edge, from the top or left. Words
 * that are too wide stand in several rows or are turned. */
typedef struct {
    const char *const *word;
    int n;
} Words;

void svg_word_axes(FILE *file, const Panel *panel, Words columns, Words rows, const char *x_label,
                   const char *y_label);
/* The space that the words need below and left of a panel whose cells are squares of this size. */
double svg_space_below(Words columns, double cell), svg_space_left(Words rows, double cell);

void svg_points(FILE *file, const Panel *panel, const double *x, const double *y, int64_t n);
void svg_line(FILE *file, const Panel *panel, const double *x, const double *y, int64_t n);

/* cells (rows, columns), row-major, fill the panel; the first row has the smallest y. 0 is the
 * background, most is full blue, NaN is hatched. A colour bar shows which blue is which number. The
 * bar stands right of a panel with its label above, or is a panel itself (x from 0 to most) with
 * its label at the left. */
void svg_heat_map(FILE *file, const Panel *panel, const double *cells, int rows, int columns,
                  double most);
void svg_colour_bar(FILE *file, const Panel *panel, double most, const char *label);
void svg_flat_colour_bar(FILE *file, const Panel *bar, const char *label);

#endif
