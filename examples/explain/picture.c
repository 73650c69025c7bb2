/* picture.c - a step of the page as SVG: see picture.h.
 *
 * Three rows of matrices stand below each other, dy, y and dx, with a column for each head; at the
 * right are the rule and the terms of the chosen number. Colours, outlines and hatches are the
 * page's (page/base.css). The sections: what is drawn, places, words, matrices, the tape, the
 * terms. */
#include "picture.h"

#include "../../tensor/tensor.h"
#include "../common/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 16, MOST_ROWS = 8, SHOWN = 48 };

/* ---- what is drawn --------------------------------------------------------------------------- */

static const Json *tape_of(const Json *lesson, const char *part) {
    return json_get(json_get(lesson, "tape"), part);
}

static const Json *line_at(const Picture *p, int64_t i) {
    return json_at(tape_of(p->lesson, "lines"), i);
}

static const Json *tensor_of(const Json *lesson, const Json *number) {
    return json_at(tape_of(lesson, "tensors"), number ? (int64_t)number->number : 0);
}

static const Json *result_of(const Picture *p, int64_t line) {
    return tensor_of(p->lesson, json_get(line_at(p, line), "out"));
}

static double number_at(const Json *numbers, int64_t i) { return json_number(json_at(numbers, i)); }

/* Is this the backward of a softmax? Masked softmax is one, too. */
static bool is_softmax(const Json *line) {
    const char *op = json_text(line, "op", "");
    return (!strcmp(op, "softmax") || !strcmp(op, "masked_softmax")) &&
           json_get(json_at(json_get(line, "backward"), 0), "dx");
}

static int64_t find_softmax(const Json *lesson) {
    const Json *lines = tape_of(lesson, "lines");
    for (int64_t i = 0; i < lines->count; i++)
        if (is_softmax(json_at(lines, i))) return i;
    return -1;
}

/* Sets the sizes from the shape of y: the last two are the rows and columns of a matrix. */
static void measure(Picture *p, const Json *shape) {
    const int64_t n = shape->count;
    p->columns = n > 0 ? (int64_t)number_at(shape, n - 1) : 1;
    p->rows = n > 1 ? (int64_t)number_at(shape, n - 2) : 1;
    p->matrices = 1;
    for (int64_t d = 0; d < n - 2; d++) p->matrices *= (int64_t)number_at(shape, d);
}

static int64_t farthest_from_0(const Json *numbers) {
    int64_t most = 0;
    for (int64_t i = 1; i < numbers->count; i++)
        if (fabs(number_at(numbers, i)) > fabs(number_at(numbers, most))) most = i;
    return most;
}

/* "attention_we..": names stand in narrow boxes. */
static void shorten(char text[PICTURE_NAME], const char *name) {
    const int most = PICTURE_NAME - 1;
    if ((int)strlen(name) <= most) snprintf(text, PICTURE_NAME, "%s", name);
    else snprintf(text, PICTURE_NAME, "%.*s..", most - 2, name);
}

bool picture_choose(Picture *p, const Json *lesson) {
    *p = (Picture){.lesson = lesson, .line = find_softmax(lesson)};
    if (p->line < 0) {
        tensor_fail("this lesson has no softmax to draw");
        return false;
    }
    const Json *line = line_at(p, p->line);
    const Json *derivative = json_at(json_get(line, "backward"), 0);
    const Json *y = result_of(p, p->line);
    const Json *x = tensor_of(lesson, json_at(json_get(line, "in"), 0));
    measure(p, json_get(y, "shape"));
    if (p->matrices * p->columns > MOST_COLUMNS || p->rows > MOST_ROWS) {
        tensor_fail("the picture can show %d columns and %d rows: choose a smaller example",
                    MOST_COLUMNS, MOST_ROWS);
        return false;
    }
    if (!(json_number(json_get(derivative, "worst")) < 1e-6)) {
        tensor_fail("the gradient of softmax differs from its check, so there is no picture");
        return false;
    }
    if (json_integer(derivative, "unchecked", 0) > 0) {
        tensor_fail("differences cannot check the gradient of softmax, so there is no picture");
        return false;
    }
    p->dy = json_get(y, "grad");
    p->y = json_get(y, "value");
    p->dx = json_get(derivative, "dx");
    p->jacobian = json_get(derivative, "jacobian");
    p->chosen = farthest_from_0(p->dx);
    shorten(p->weights, json_text(y, "name", "y"));
    shorten(p->scores, json_text(x, "name", "x"));
    if (number_at(p->dx, p->chosen) != 0) return true;
    tensor_fail("all gradients after this softmax are 0: choose another example");
    return false;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* In units of the picture. */
enum {
    MARGIN = 16,
    WIDTH_OF_WORDS = 820, /* of the caption, with its margins */
    CELL_WIDTH = 57,
    CELL_HEIGHT = 25,
    NAMES = 124, /* left of the matrices: which row this is, and the numbers of its rows */
    BETWEEN = 16,
    TAPE_TOP = SVG_HEADER,
    TAPE_HEIGHT = 28,
    HEADS_TOP = TAPE_TOP + TAPE_HEIGHT + 30, /* the line below the words "head 1" */
    ROWS_TOP = HEADS_TOP + 26,
    CARD_WIDTH = 262,
    CARD_TOP = TAPE_TOP + TAPE_HEIGHT + 14,
    TERMS_TOP = CARD_TOP + 174,
    TERM_HEIGHT = 23,
    ZERO_HEIGHT = 32,
    LEGEND = 46
};

static double left_of(const Picture *p, int64_t matrix) {
    return MARGIN + NAMES + (double)(matrix * (p->columns * CELL_WIDTH + BETWEEN));
}

/* The height of a row of matrices, with the space above the next one. */
static double step_of(const Picture *p) { return fmax((double)(p->rows * CELL_HEIGHT + 28), 84); }

static double card_left(const Picture *p) {
    return fmax(left_of(p, p->matrices) + 8, WIDTH_OF_WORDS - MARGIN - CARD_WIDTH);
}

static int64_t num_terms(const Picture *p) {
    const Json *column = json_at(p->jacobian, p->chosen);
    return column->kind == JSON_ARRAY ? column->count / 2 : 0;
}

static bool has_reason(const Picture *p, int64_t i, const char *reason) {
    const Json *column = json_at(p->jacobian, i);
    return column->kind == JSON_STRING && !strcmp(column->text, reason);
}

static bool any_has_reason(const Picture *p, const char *reason) {
    for (int64_t i = 0; i < p->dx->count; i++)
        if (has_reason(p, i, reason)) return true;
    return false;
}

/* The reasons for zeros stand below the terms: the top and the bottom of this part. */
static double zeros_top(const Picture *p) {
    return TERMS_TOP + (double)((num_terms(p) + 1) * TERM_HEIGHT) + 38;
}

static double zeros_bottom(const Picture *p) {
    const int reasons = any_has_reason(p, "masked") + any_has_reason(p, "weight is 1");
    return zeros_top(p) + (reasons > 0 ? 22 + reasons * ZERO_HEIGHT : -30);
}

static double card_bottom(const Picture *p) {
    return fmax(zeros_bottom(p), ROWS_TOP + 3 * step_of(p) - 28);
}

/* ---- words ----------------------------------------------------------------------------------- */

/* "+0.231"; an exact 0 is "0". */
static void format_number(char text[16], double x) {
    if (x == 0) snprintf(text, 16, "0");
    else snprintf(text, 16, fabs(x) < 100 ? "%+.3f" : "%+.3g", x);
}

static void begin_group(FILE *file, const char *attributes) {
    fprintf(file, "<g %s>\n", attributes);
}

static void end_group(FILE *file) { fputs("</g>\n", file); }

/* The colours that svg.h does not have; those for light screens are attributes. */
static void write_colours(FILE *file) {
    fputs("<style>@media(prefers-color-scheme:dark){.more{fill:#2882c8}.good{fill:#35c795}"
          ".soft{fill:#a5acb4}}</style>\n",
          file);
}

#define GRID  "fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.2\""
#define HATCH "fill=\"url(#hatch)\" fill-opacity=\"0.6\""
#define SOFT  "class=\"soft\" fill=\"#5a6068\" "
#define MONO  "font-family=\"monospace\" "

static void soft_text(FILE *file, double x, double y, const char *anchor, const char *text) {
    begin_group(file, SOFT "font-size=\"14\"");
    svg_text(file, x, y, anchor, text);
    end_group(file);
}

static void bold_text(FILE *file, double x, double y, int size, const char *text) {
    fprintf(file, "<g " MONO "font-weight=\"bold\" font-size=\"%d\">\n", size);
    svg_text(file, x, y, "start", text);
    end_group(file);
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* Does the chosen number have a term of this element of dy? */
static bool is_source(const Picture *p, int64_t i) {
    const Json *column = json_at(p->jacobian, p->chosen);
    if (column->kind != JSON_ARRAY) return false;
    for (const Json *pair = column->first; pair; pair = pair->next->next)
        if ((int64_t)pair->number == i) return true;
    return false;
}

/* The upper left corner of an element, in the row of matrices that begins at top. */
static void place(const Picture *p, int64_t i, double top, double *x, double *y) {
    const int64_t size = p->rows * p->columns;
    const int64_t row = i % size / p->columns;
    *x = left_of(p, i / size) + (double)(i % p->columns * CELL_WIDTH);
    *y = top + (double)(row * CELL_HEIGHT);
}

static void write_cell_box(FILE *file, double x, double y, const char *attributes) {
    fprintf(file, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" %s/>\n", x, y, CELL_WIDTH,
            CELL_HEIGHT, attributes);
}

/* A number above 0 is blue, a number below 0 vermillion. Numbers farther from 0 have a stronger
 * colour. */
static void write_background(FILE *file, double x, double y, double number, double most) {
    char attributes[80];
    const char *colour = number > 0 ? "class=\"more\" fill=\"#0072b2\"" : "fill=\"#d55e00\"";
    if (number == 0) return;
    snprintf(attributes, sizeof attributes, "%s fill-opacity=\"%.2f\"", colour,
             0.08 + 0.5 * fabs(number) / most);
    write_cell_box(file, x, y, attributes);
}

static void write_number(FILE *file, double x, double y, double number) {
    char text[16];
    format_number(text, number);
    if (number == 0) begin_group(file, SOFT);
    svg_text(file, x + CELL_WIDTH / 2.0, y + 17.5, "middle", text);
    if (number == 0) end_group(file);
}

static void write_cells(FILE *file, const Picture *p, const Json *numbers, double top) {
    const double most = fabs(number_at(numbers, farthest_from_0(numbers)));
    double x;
    double y;
    begin_group(file, MONO "font-size=\"14\"");
    for (int64_t i = 0; i < numbers->count; i++) {
        place(p, i, top, &x, &y);
        write_background(file, x, y, number_at(numbers, i), most);
        if (numbers != p->dy && has_reason(p, i, "masked")) write_cell_box(file, x, y, HATCH);
        write_cell_box(file, x, y, GRID);
        write_number(file, x, y, number_at(numbers, i));
    }
    end_group(file);
}

/* The chosen number, and the numbers of dy that reach it. */
static void write_outlines(FILE *file, const Picture *p, double top_of_dy, double top_of_dx) {
    double x;
    double y;
    begin_group(file, "fill=\"none\" stroke=\"currentColor\" stroke-width=\"2.5\"");
    for (int64_t i = 0; i < p->dy->count; i++) {
        if (!is_source(p, i)) continue;
        place(p, i, top_of_dy, &x, &y);
        write_cell_box(file, x, y, "stroke-dasharray=\"5 4\"");
    }
    place(p, p->chosen, top_of_dx, &x, &y);
    write_cell_box(file, x, y, "stroke-width=\"3.5\"");
    end_group(file);
}

/* The numbers of the columns above the matrices, and of the rows at the left. */
static void write_places(FILE *file, const Picture *p, double top) {
    char text[16];
    begin_group(file, SOFT "font-size=\"13\"");
    for (int64_t m = 0; m < p->matrices; m++)
        for (int64_t c = 0; c < p->columns; c++) {
            snprintf(text, sizeof text, "%d", (int)c);
            svg_text(file, left_of(p, m) + ((double)c + 0.5) * CELL_WIDTH, top - 5, "middle", text);
        }
    for (int64_t r = 0; r < p->rows; r++) {
        snprintf(text, sizeof text, "%d", (int)r);
        svg_text(file, left_of(p, 0) - 7, top + (double)(r * CELL_HEIGHT) + 17, "end", text);
    }
    end_group(file);
}

static void write_row(FILE *file, const Picture *p, const Json *numbers, double top,
                      const char *name, const char *what, const char *role) {
    char text[SHOWN];
    const double middle = top + (double)(p->rows * CELL_HEIGHT) / 2;
    const bool fits = strlen(what) <= 11; /* behind a word, at the left */
    snprintf(text, sizeof text, "%s%s", numbers != p->y && fits ? "of " : "", what);
    bold_text(file, MARGIN, middle - 12, 20, name);
    begin_group(file, "font-size=\"15\"");
    svg_text(file, MARGIN, middle + 8, "start", text);
    end_group(file);
    soft_text(file, MARGIN, middle + 27, "start", role);
    write_places(file, p, top);
    write_cells(file, p, numbers, top);
}

static void write_heads(FILE *file, const Picture *p) {
    const char *word = json_text(p->lesson, "columns", "");
    char text[SHOWN];
    if (!*word) return;
    begin_group(file, "font-size=\"16\" font-weight=\"bold\"");
    for (int64_t m = 0; m < p->matrices; m++) {
        snprintf(text, sizeof text, "%s %d", word, (int)m + 1);
        svg_text(file, left_of(p, m), HEADS_TOP, "start", text);
    }
    end_group(file);
}

static void write_matrices(FILE *file, const Picture *p) {
    const double step = step_of(p);
    write_heads(file, p);
    write_row(file, p, p->dy, ROWS_TOP, "dy", p->weights, "is known");
    write_row(file, p, p->y, ROWS_TOP + step, "y", p->weights, "the weights");
    write_row(file, p, p->dx, ROWS_TOP + 2 * step, "dx", p->scores, "is computed");
    write_outlines(file, p, ROWS_TOP, ROWS_TOP + 2 * step);
}

/* What the colours mean. */
static void write_legend(FILE *file, const Picture *p, double top) {
    const double left = left_of(p, 0);
    const double right = left + CELL_WIDTH + 84;
    write_cell_box(file, left, top, "class=\"more\" fill=\"#0072b2\" fill-opacity=\"0.4\"");
    soft_text(file, left + CELL_WIDTH + 8, top + 17, "start", "above 0");
    write_cell_box(file, right, top, "fill=\"#d55e00\" fill-opacity=\"0.4\"");
    soft_text(file, right + CELL_WIDTH + 8, top + 17, "start", "below 0");
}

/* ---- the tape -------------------------------------------------------------------------------- */

enum { NEIGHBOURS = 3, LINE_WIDTH = 118, APART = 10 };

/* One line of the tape: its result. Backward has not come to the lines at the left of the softmax.
 */
static void write_line(FILE *file, const Picture *p, int64_t line, double x, double width) {
    const double strength = line < p->line ? 0.2 : 0.5;
    const bool here = line == p->line;
    char name[PICTURE_NAME];
    shorten(name, json_text(result_of(p, line), "name", ""));
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"5\" fill=\"none\""
            " stroke=\"currentColor\" stroke-opacity=\"%.1f\" stroke-width=\"%.1f\"/>\n",
            x, TAPE_TOP, width, TAPE_HEIGHT - 2, here ? 1 : strength, here ? 2.5 : 1.0);
    begin_group(file, here ? "font-size=\"14\" font-weight=\"bold\"" : "font-size=\"14\"");
    if (line < p->line) begin_group(file, SOFT);
    svg_text(file, x + width / 2, TAPE_TOP + 18, "middle", name);
    if (line < p->line) end_group(file);
    end_group(file);
}

/* The lines around the softmax; backward goes to the left. */
static void write_tape(FILE *file, const Picture *p) {
    const int64_t lines = tape_of(p->lesson, "lines")->count;
    const double all = card_left(p) + CARD_WIDTH + APART - left_of(p, 0);
    const int64_t fits = (int64_t)all / LINE_WIDTH;
    int64_t first = p->line - (fits > 2 * NEIGHBOURS ? NEIGHBOURS : fits / 2);
    if (first > lines - fits) first = lines - fits;
    if (first < 0) first = 0;
    fprintf(file,
            "<rect x=\"%d\" y=\"%d\" width=\"112\" height=\"%d\" rx=\"13\" fill=\"#d55e00\""
            " fill-opacity=\"0.25\"/>\n",
            MARGIN, TAPE_TOP, TAPE_HEIGHT - 2);
    fprintf(file,
            "<path d=\"M%d %dh-14m5 -5l-5 5l5 5\" fill=\"none\" stroke=\"currentColor\""
            " stroke-width=\"2\"/>\n",
            MARGIN + 24, TAPE_TOP + 13);
    begin_group(file, "font-size=\"14\" font-weight=\"bold\"");
    svg_text(file, MARGIN + 29, TAPE_TOP + 18, "start", "backward");
    end_group(file);
    for (int64_t i = first; i < lines && i < first + fits; i++)
        write_line(file, p, i, left_of(p, 0) + (double)(i - first) * all / (double)fits,
                   all / (double)fits - APART);
}

/* ---- the terms ------------------------------------------------------------------------------- */

typedef struct {
    double dy, derivative;
} Term;

static int by_size(const void *a, const void *b) {
    const Term *first = a;
    const Term *second = b;
    const double x = fabs(first->dy * first->derivative);
    const double y = fabs(second->dy * second->derivative);
    return (x < y) - (x > y);
}

/* The largest first. Returns their number. */
static int list_terms(const Picture *p, Term terms[MOST_COLUMNS]) {
    const Json *column = json_at(p->jacobian, p->chosen);
    int n = 0;
    const Json *pair = column->kind == JSON_ARRAY ? column->first : NULL;
    for (; pair && n < MOST_COLUMNS; pair = pair->next->next)
        terms[n++] = (Term){number_at(p->dy, (int64_t)pair->number), json_number(pair->next)};
    qsort(terms, (size_t)n, sizeof *terms, by_size);
    return n;
}

/* Writes a term in columns: dy, the derivative and their product. */
static void write_term(FILE *file, double left, double y, Term term) {
    char text[16];
    format_number(text, term.dy);
    svg_text(file, left + 62, y, "end", text);
    svg_text(file, left + 76, y, "middle", "*");
    format_number(text, term.derivative);
    svg_text(file, left + 144, y, "end", text);
    svg_text(file, left + 160, y, "middle", "=");
    format_number(text, term.dy * term.derivative);
    svg_text(file, left + 230, y, "end", text);
}

static void write_sum(FILE *file, const Picture *p, double left, double y) {
    char text[16];
    fprintf(file, "<path d=\"M%.0f %.0fh%d\" stroke=\"currentColor\" stroke-width=\"2\"/>\n", left,
            y - 17, CARD_WIDTH - 28);
    begin_group(file, "font-weight=\"bold\"");
    format_number(text, number_at(p->dx, p->chosen));
    svg_text(file, left + 62, y, "end", "sum");
    svg_text(file, left + 160, y, "middle", "=");
    svg_text(file, left + 230, y, "end", text);
    end_group(file);
}

static void write_terms(FILE *file, const Picture *p, double left) {
    Term terms[MOST_COLUMNS];
    const int n = list_terms(p, terms);
    soft_text(file, left + 62, TERMS_TOP - 24, "end", "dy");
    soft_text(file, left + 144, TERMS_TOP - 24, "end", "derivative");
    soft_text(file, left + 230, TERMS_TOP - 24, "end", "term");
    begin_group(file, MONO "font-size=\"16\"");
    for (int i = 0; i < n; i++) write_term(file, left, TERMS_TOP + i * TERM_HEIGHT, terms[i]);
    write_sum(file, p, left, TERMS_TOP + n * TERM_HEIGHT + 4);
    end_group(file);
}

/* "dx = y (dy - sum(y dy))", without a scale of 1 and without what follows a comma. */
static void write_rule(FILE *file, const Picture *p, double x, double y) {
    const Json *line = line_at(p, p->line);
    const char *rule = json_text(line, "gradient", "");
    char text[SHOWN];
    if (!strncmp(rule, "scale ", 6) && json_number(json_get(line, "scale")) == 1) rule += 6;
    snprintf(text, sizeof text, "dx = %.*s", (int)strcspn(rule, ","), rule);
    bold_text(file, x, y, strlen(text) <= 26 ? 15 : 13, text);
}

static void write_badge(FILE *file, double x, double y) {
    begin_group(file, "class=\"good\" fill=\"#006b4f\" font-size=\"15\" font-weight=\"bold\"");
    fprintf(file, "<path d=\"M%.0f %.0fl4 4l9 -10l2.5 2.5l-11.5 12.5l-6.5 -6.5z\"/>\n", x, y - 5);
    svg_text(file, x + 20, y, "start", "checked by differences");
    end_group(file);
}

/* "head 1, row 2, column 0", as the matrices are numbered. */
static void write_where(FILE *file, const Picture *p, double x, double y) {
    const char *word = json_text(p->lesson, "columns", "");
    const int64_t size = p->rows * p->columns;
    char text[SHOWN] = "";
    if (*word) snprintf(text, sizeof text, "%.16s %d, ", word, (int)(p->chosen / size) + 1);
    snprintf(text + strlen(text), sizeof text - strlen(text), "row %d, column %d",
             (int)(p->chosen % size / p->columns), (int)(p->chosen % p->columns));
    soft_text(file, x, y, "start", text);
}

static void write_zero(FILE *file, double left, double top, bool masked, const char *reason) {
    if (masked) write_cell_box(file, left, top, HATCH);
    write_cell_box(file, left, top, GRID);
    begin_group(file, MONO "font-size=\"14\"");
    write_number(file, left, top, 0);
    end_group(file);
    begin_group(file, "font-size=\"14\"");
    svg_text(file, left + CELL_WIDTH + 10, top + 17, "start", reason);
    end_group(file);
}

/* The reasons that occur in dx. */
static void write_zeros(FILE *file, const Picture *p, double left) {
    const bool masked = any_has_reason(p, "masked");
    const bool alone = any_has_reason(p, "weight is 1");
    const double top = zeros_top(p);
    if (masked || alone) bold_text(file, left, top, 20, "Why 0?");
    if (masked) write_zero(file, left, top + 14, true, "masked");
    if (alone)
        write_zero(file, left, top + 14 + masked * ZERO_HEIGHT, false, "its weight is exactly 1");
}

/* At the right: the rule, the badge, the chosen number and its terms. */
static void write_card(FILE *file, const Picture *p) {
    char text[SHOWN];
    char number[16];
    const double left = card_left(p) + 14;
    fprintf(file,
            "<rect x=\"%.0f\" y=\"%d\" width=\"%d\" height=\"%.0f\" rx=\"8\" fill-opacity=\"0.04\""
            " stroke=\"currentColor\" stroke-opacity=\"0.25\"/>\n",
            card_left(p), CARD_TOP, CARD_WIDTH, card_bottom(p) - CARD_TOP);
    write_rule(file, p, left, CARD_TOP + 28);
    write_badge(file, left, CARD_TOP + 54);
    format_number(number, number_at(p->dx, p->chosen));
    snprintf(text, sizeof text, "Why %s?", number);
    bold_text(file, left, CARD_TOP + 98, 20, text);
    write_where(file, p, left, CARD_TOP + 120);
    write_terms(file, p, left);
    write_zeros(file, p, left);
}

void picture_write(FILE *file, const void *context) {
    const Picture *p = context;
    char line[2][128];
    const double width = card_left(p) + CARD_WIDTH + MARGIN;
    snprintf(line[0], sizeof line[0],
             "dy, the gradient of %s, is known; softmax computes dx for %s.", p->weights,
             p->scores);
    snprintf(line[1], sizeof line[1],
             "The outlined number of dx is a sum: a term for each dashed number of dy.");
    svg_begin(file, (int)width, (int)card_bottom(p) + LEGEND + 8,
              "Backprop through attention, step by step", (Caption){{line[0], line[1]}});
    write_colours(file);
    write_tape(file, p);
    write_matrices(file, p);
    write_card(file, p);
    write_legend(file, p, card_bottom(p) + 16);
    svg_end(file);
}
