/* picture_terms.c - what stands below the tables of a picture: one number worked out, with curves
 * from the cells that it is made of, the reasons for zeros, and the text of the lesson. See
 * picture_parts.h. The sections: the number that is worked out, the weighted mean, words. */
#include "picture_parts.h"

#include "../common/svg.h"
#include "../common/utf8.h"

#include <math.h>
#include <string.h>

static const TapeTensor *weights_of(const Picture *p) {
    return &p->plan.tape.tensors[p->step->part->y];
}

enum { PROSE = 16, PROSE_LEFT = 684, PROSE_COLUMNS = 51, PROSE_WIDE = 110, MOST_BESIDE = 4 };

/* The text stands beside a short line of terms, below a long one. */
static bool is_beside(const Picture *p) {
    const bool scaled = fabs(p->step->part->factor - 1) > 1e-6;
    return p->formula.items[0].like->columns <= MOST_BESIDE && !scaled;
}

/* ---- the number that is worked out ----------------------------------------------------------- */

enum { TERM_SIZE = 22, MEAN_SIZE = 16, MEAN_LINE = 25, TERMS_BELOW = 62 };

static double rounded(double x, int decimals) {
    const double power = pow(10, decimals);
    return round(x * power) / power;
}

/* The numbers of y (dy - mean) = dx with so many decimals more than their tables have that the
 * line is right as it is printed. */
typedef struct {
    double scale, y, dy, mean, dx;
    int of_y, of_dy, of_mean, of_dx; /* decimals */
} Worked;

static Worked work_out(const Picture *p) {
    const Part *part = p->step->part;
    const TapeTensor *y = weights_of(p);
    const int64_t row = p->chosen / y->columns;
    Worked w = {part->factor,
                y->value[p->chosen],
                y->grad[p->chosen],
                part->means[row],
                part->dx[p->chosen],
                decimals_in(y->value, y->size),
                decimals_in(y->grad, y->size),
                decimals_in(part->means, y->size / y->columns),
                decimals_in(part->dx, y->size)};
    if (fabs(w.scale - 1) < 1e-6) w.scale = 1;
    for (int more = 0; more < 4; more++) {
        const double product =
            w.scale * rounded(w.y, w.of_y) * (rounded(w.dy, w.of_dy) - rounded(w.mean, w.of_mean));
        if (fabs(product - rounded(w.dx, w.of_dx)) <= 0.5 * pow(10, -w.of_dx)) break;
        w.of_y++;
        w.of_dy++;
        w.of_mean++;
    }
    return w;
}

typedef struct {
    FILE *file;
    double x, y;
} Pen;

/* Words or a sign; the next one stands right of it. */
static void put_words(Pen *pen, const char *words, double width) {
    svg_text(pen->file, pen->x + width / 2, pen->y, "middle", words);
    pen->x += width;
}

/* A number on a thin line, and a curve to it from the cell in column c of item i. */
static void put_factor(Pen *pen, const Picture *p, const Layout *l, const char *number, int i,
                       int64_t c) {
    const double width = 0.6 * TERM_SIZE * utf8_length(number) + 4, bottom = l->bottom;
    const int64_t r =
        p->chosen / p->formula.items[0].like->columns % p->formula.items[0].like->rows;
    const double x0 = left_of(p, l, i) + ((double)c + 0.5) * l->cell - 1, x1 = pen->x + width / 2;
    const double y0 = l->top + (double)(r + 1) * l->height, y1 = pen->y - 21, y = bottom + 2;
    const double bend = fmax(14, 0.55 * (y1 - y));
    fprintf(
        pen->file,
        "<path fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.1\" stroke-opacity=\"0.5\""
        " d=\"M%.1f %.1fL%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>\n",
        x0, y0, x0, y, x0, y + bend, x1, y1 - bend, x1, y1);
    fprintf(pen->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill-opacity=\"0.6\"/>\n", x0, y);
    fprintf(pen->file,
            "<path class=\"bar\" stroke=\"" FAINT
            "\" stroke-width=\"1.5\" d=\"M%.1f %.1fh%.1f\"/>\n",
            pen->x + 2, pen->y + 6, width - 4);
    put_words(pen, number, width);
}

/* "dZ[cat, the] =" */
static void write_left_side(Pen *pen, const Picture *p) {
    char row[32], column[32], place[96];
    const Item *main = p->formula.items;
    const int64_t columns = main->like->columns;
    word_at(p, main, "rows", p->chosen / columns % main->like->rows, row);
    word_at(p, main, "columns", p->chosen % columns, column);
    snprintf(place, sizeof place, "[%s, %s]", row, column);
    begin_text(pen->file, pen->x, pen->y, "start");
    put_name(pen->file, main->text, TERM_SIZE);
    fputs("<tspan " SOFT_WORDS "font-family=\"" SANS "\" font-size=\"15\">", pen->file);
    for (const char *c = place; *c; c++) put_escaped(pen->file, *c);
    fputs("</tspan>", pen->file);
    end_text(pen->file);
    pen->x += 0.66 * TERM_SIZE * utf8_length(main->text) + 7.8 * utf8_length(place);
    put_words(pen, "=", 34);
}

static int item_with(const Picture *p, const double *numbers) {
    int i = 0;
    while (p->formula.items[i].numbers != numbers) i++;
    return i;
}

static void write_equation(FILE *file, const Picture *p, const Layout *l, double y) {
    char text[32];
    const Worked w = work_out(p);
    const TapeTensor *x = weights_of(p);
    const int64_t c = p->chosen % x->columns;
    Pen pen = {file, MARGIN, y};
    fprintf(file, "<g " SERIF_TYPE "font-size=\"%d\">\n", TERM_SIZE);
    write_left_side(&pen, p);
    if (w.scale != 1) {
        snprintf(text, sizeof text, "%.4g", w.scale);
        put_words(&pen, text, 0.6 * TERM_SIZE * utf8_length(text));
        put_words(&pen, "\u00d7", 30);
    }
    number_as(text, w.y, w.of_y);
    put_factor(&pen, p, l, text, item_with(p, x->value), c);
    put_words(&pen, "\u00d7", 30);
    put_words(&pen, "(", 12);
    number_as(text, w.dy, w.of_dy);
    put_factor(&pen, p, l, text, item_with(p, x->grad), c);
    put_words(&pen, "\u2212", 30);
    number_as(text, w.mean, w.of_mean);
    if (w.mean < 0) put_words(&pen, "(", 12);
    put_factor(&pen, p, l, text, item_with(p, p->step->part->means), 0);
    put_words(&pen, w.mean < 0 ? "))" : ")", 14);
    put_words(&pen, "=", 34);
    number_as(text, w.dx, w.of_dx);
    fputs("<g font-weight=\"bold\">\n", file);
    svg_text(file, pen.x, pen.y, "start", text);
    fputs("</g>\n</g>\n", file);
}

/* ---- the weighted mean ----------------------------------------------------------------------- */

/* The sum over the row with rounded numbers. */
static double rounded_mean(const TapeTensor *y, int64_t row, int of_y, int of_dy) {
    double sum = 0;
    for (int64_t c = 0; c < y->columns; c++)
        sum += rounded(y->value[row * y->columns + c], of_y) *
               rounded(y->grad[row * y->columns + c], of_dy);
    return sum;
}

/* "+ 0.151 x 5.47 ", term c of the mean. */
static void term_text(char text[96], const TapeTensor *x, int64_t i, bool is_first, int of_y,
                      int of_dy) {
    char y[32], dy[32];
    const bool negative = x->grad[i] < 0;
    number_as(y, x->value[i], of_y);
    number_as(dy, x->grad[i], of_dy);
    snprintf(text, 96, "%s%s \u00d7 %s%s%s ", is_first ? "" : "+ ", y, negative ? "(" : "", dy,
             negative ? ")" : "");
}

/* "weighted mean = 0.508 x 6.42 + ... = 4.01", without the keys whose weight is 0, in lines that
 * fit. Returns how many there are; writes none without a file. */
static int write_mean(FILE *file, const Picture *p, double y) {
    char text[96];
    const Worked w = work_out(p);
    const TapeTensor *x = weights_of(p);
    const int64_t row = p->chosen / x->columns;
    const double width = is_beside(p) ? PROSE_LEFT - MARGIN : p->width - 2 * MARGIN;
    const int most = (int)(width / (0.58 * MEAN_SIZE));
    int of_y = decimals_in(x->value, x->size), of_dy = decimals_in(x->grad, x->size);
    int lines = 1, length = 16;
    bool is_first = true;
    for (int more = 0; more < 4; more++, of_y++, of_dy++)
        if (fabs(rounded_mean(x, row, of_y, of_dy) - rounded(w.mean, w.of_mean)) <=
            0.5 * pow(10, -w.of_mean))
            break;
    if (file) fprintf(file, "<g " SERIF_TYPE "font-size=\"%d\">\n", MEAN_SIZE);
    if (file) begin_text(file, MARGIN, y, "start");
    if (file) fputs("weighted mean = ", file);
    for (int64_t i = row * x->columns; i <= (row + 1) * x->columns; i++) {
        const bool is_sum = i == (row + 1) * x->columns;
        if (!is_sum && x->value[i] == 0) continue;
        if (is_sum) number_as(text, w.mean, w.of_mean);
        else term_text(text, x, i, is_first, of_y, of_dy);
        length += utf8_length(text) + 2 * is_sum;
        if (length > most && !is_first) {
            if (file) end_text(file);
            if (file) begin_text(file, MARGIN + 24, y + lines * MEAN_LINE, "start");
            lines++;
            length = utf8_length(text) + 3;
        }
        is_first = false;
        if (file) fprintf(file, is_sum ? "= <tspan font-weight=\"bold\">%s</tspan>" : "%s", text);
    }
    if (file) end_text(file);
    if (file) end_group(file);
    return lines;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The text stands beside the terms, or below them: its first line. */
static double write_text(FILE *file, const Picture *p, double y) {
    const char *text = p->step->text ? p->step->text : "";
    const bool beside = is_beside(p);
    const double room = (p->width - 2 * MARGIN) / (0.57 * PROSE);
    const int most = beside ? PROSE_COLUMNS : (int)fmin(room, PROSE_WIDE);
    if (file) fprintf(file, "<g " SERIF_TYPE "font-size=\"%d\">\n", PROSE);
    const int lines = write_prose(file, beside ? PROSE_LEFT : MARGIN, y, text, most, PROSE);
    if (file) end_group(file);
    return y + (lines - 1) * 1.5 * PROSE;
}

static bool has_reason(const Picture *p, const char *word) {
    const Item *main = p->formula.items;
    const int64_t size = main->like->rows * main->like->columns;
    for (int64_t i = p->panel * size; i < (p->panel + 1) * size; i++) {
        const Json *reason = json_at(p->step->part->reasons, i);
        if (reason && reason->kind == JSON_STRING && !strcmp(reason->text, word)) return true;
    }
    return false;
}

/* The reasons for zeros that occur. */
static void write_zeros(FILE *file, const Picture *p, double y) {
    double x = MARGIN;
    fputs("<g " SOFT_WORDS "font-size=\"14\">\n", file);
    if (has_reason(p, "masked")) {
        write_box(file, x, y - 15, 30, 20, "rx=\"4\" class=\"cell\" fill=\"" CELL "\"");
        write_box(file, x, y - 15, 30, 20, "rx=\"4\" fill=\"url(#hatch)\"");
        svg_text(file, x + 38, y, "start", "masked");
        x += 120;
    }
    if (has_reason(p, "weight is 1")) {
        write_box(file, x, y - 15, 30, 20, "rx=\"4\" class=\"cell\" fill=\"" CELL "\"");
        svg_text(file, x + 15, y, "middle", "0");
        svg_text(file, x + 38, y, "start", "the weight is exactly 1");
    }
    end_group(file);
}

double write_terms(FILE *file, const Picture *p, const Layout *l) {
    const double top = l->bottom + TERMS_BELOW;
    const double mean_end = top + 34 + (write_mean(NULL, p, 0) - 1) * MEAN_LINE;
    const bool zeros = has_reason(p, "masked") || has_reason(p, "weight is 1");
    const double end = mean_end + (zeros ? 36 : 0);
    const double text_top = is_beside(p) ? top : end + 44;
    if (file) {
        write_equation(file, p, l, top);
        write_mean(file, p, top + 34);
        if (zeros) write_zeros(file, p, end);
    }
    return fmax(end, write_text(file, p, text_top)) + 28;
}
