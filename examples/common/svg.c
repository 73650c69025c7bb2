/* svg.c - pictures: see svg.h.
 *
 * SVG's y grows downwards, and a panel's y upwards: py() converts.
 */
#include "svg.h"

#include "colours.h"
#include "utf8.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static double px(const Panel *p, double x) {
    return p->left + p->width * ((x - p->x_min) / (p->x_max - p->x_min));
}

static double py(const Panel *p, double y) {
    return p->top + p->height * (1 - (y - p->y_min) / (p->y_max - p->y_min));
}

/* ---- text -------------------------------------------------------------------------------- */

enum { TEXT_MOST = 40, CAPTION_MOST = 90, MARGIN = 16 };

/* Writes at most `most` characters. A character that XML does not allow becomes a question mark. */
static void print_escaped(FILE *file, const char *text, int most) {
    for (int n = 0; *text && n < most; n++) {
        const char *begin = text;
        switch (utf8_next(&text)) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '?': putc('?', file); break;
        default: fwrite(begin, 1, (size_t)(text - begin), file);
        }
    }
    if (*text) fputs("...", file);
}

void svg_text(FILE *file, double x, double y, const char *anchor, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    print_escaped(file, text, TEXT_MOST);
    fputs("</text>\n", file);
}

static void turned_text(FILE *file, double x, double y, const char *anchor, const char *text) {
    fprintf(file, "<g transform=\"translate(%.1f %.1f) rotate(-90)\">\n", x, y);
    svg_text(file, 0, 0, anchor, text);
    fputs("</g>\n", file);
}

/* The colours for dark screens. The colours for light screens are attributes. */
static const char dark[] =
    "<style>@media(prefers-color-scheme:dark){svg{color:" INK_DARK "}.paper{fill:" PAPER_DARK
    "}.soft{fill:" SOFT_DARK "}.cell{fill:" CELL_DARK "}.pos{fill:" POS_DARK
    "}.points{fill:" FAINT_DARK "}.curve{stroke:" POS_DARK "}.line{stroke:" LINE_DARK
    "}.gap{stroke:" PAPER_DARK "}.hatch{stroke:" HATCH_DARK ";stroke-opacity:" HATCH_OPACITY_DARK
    "}}</style>\n";

static void write_hatch(FILE *file) {
    fprintf(file,
            "<pattern id=\"hatch\" width=\"%d\" height=\"%d\" patternUnits=\"userSpaceOnUse\""
            " patternTransform=\"rotate(-45)\"><path class=\"hatch\" d=\"M1 0v%d\" stroke=\"" HATCH
            "\" stroke-opacity=\"" HATCH_OPACITY "\" stroke-width=\"%d\"/></pattern>\n",
            HATCH_PERIOD, HATCH_PERIOD, HATCH_PERIOD, HATCH_WIDTH);
}

#define THIN_LINE "class=\"line\" fill=\"none\" stroke=\"" LINE "\""

static void begin_soft(FILE *file, const char *attributes) {
    fprintf(file, "<g class=\"soft\" fill=\"" SOFT "\" %s>\n", attributes);
}

static void end_group(FILE *file) { fputs("</g>\n", file); }

static void caption_line(FILE *file, int y, const char *line) {
    fprintf(file, "<text x=\"%d\" y=\"%d\">", MARGIN, y);
    print_escaped(file, line, CAPTION_MOST);
    fputs("</text>\n", file);
}

void svg_begin(FILE *file, int width, int height, const char *title, Caption caption) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
            " viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"" SANS "\" font-size=\"16\""
            " color=\"" INK "\" fill=\"currentColor\">\n<title>",
            width, height, width, height);
    print_escaped(file, title, CAPTION_MOST);
    fprintf(file, "</title>\n%s", dark);
    write_hatch(file);
    fprintf(file, "<rect class=\"paper\" width=\"%d\" height=\"%d\" fill=\"" PAPER "\"/>\n", width,
            height);
    fputs("<g font-family=\"" SERIF "\" font-size=\"28\">\n", file);
    svg_text(file, MARGIN, 40, "start", title);
    end_group(file);
    begin_soft(file, "font-family=\"" SERIF "\" font-size=\"15\"");
    for (int i = 0; i < 2; i++) caption_line(file, 68 + 23 * i, caption.line[i]);
    end_group(file);
}

void svg_end(FILE *file) { fputs("</svg>\n", file); }

/* ---- axes -------------------------------------------------------------------------------- */

/* The distance between ticks: 1, 2 or 5 times a power of ten, so that at most `most` fit. */
static double tick_step(double min, double max, int most) {
    static const double digit[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10((max - min) / most)));
    int i = 0;
    while (i < 3 && (max - min) / (digit[i] * power) > most) i++;
    return digit[i] * power;
}

/* Writes a value with the decimals of the step; with at most 10 significant digits if the step has
 * more than 5 decimals or |value| is 1e7 or more. */
static void format_tick(char text[32], double value, double step) {
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (fabs(value) < step / 2) value = 0; /* not -0 and not 1e-17 */
    if (decimals > 5 || fabs(value) >= 1e7) snprintf(text, 32, "%.10g", value);
    else snprintf(text, 32, "%.*f", decimals, value);
}

static void number_x(FILE *file, const Panel *p, double value, double step) {
    char text[32];
    format_tick(text, value, step);
    svg_text(file, px(p, value), p->top + p->height + 22, "middle", text);
}

static void number_y(FILE *file, const Panel *p, double value, const char *text) {
    svg_text(file, p->left - 9, py(p, value) + 5.5, "end", text);
}

static void tick_x(FILE *file, const Panel *p, double value, double step) {
    fprintf(file, "<path " THIN_LINE " d=\"M%.1f %.1fv5\"/>\n", px(p, value), p->top + p->height);
    number_x(file, p, value, step);
}

static void tick_y(FILE *file, const Panel *p, double value, double step) {
    char text[32];
    fprintf(file, "<path " THIN_LINE " d=\"M%.1f %.1fh-5\"/>\n", p->left, py(p, value));
    format_tick(text, value, step);
    number_y(file, p, value, text);
}

/* A number beside a line through the whole panel. */
static void lined_y(FILE *file, const Panel *p, double value, const char *text) {
    fprintf(file, "<path " THIN_LINE " d=\"M%.1f %.1fh%.1f\"/>\n", p->left, py(p, value), p->width);
    number_y(file, p, value, text);
}

static void line_y(FILE *file, const Panel *p, double value, double step) {
    char text[32];
    format_tick(text, value, step);
    lined_y(file, p, value, text);
}

/* Calls tick for every multiple of the step from min to max. */
static void ticks(FILE *file, const Panel *p, double min, double max, int most,
                  void (*tick)(FILE *, const Panel *, double, double)) {
    double step = tick_step(min, max, most);
    double first = ceil(min / step - 1e-9), last = floor(max / step + 1e-9);
    for (int i = 0; i <= most && first + i <= last; i++) tick(file, p, (first + i) * step, step);
}

static void frame(FILE *file, const Panel *p) {
    fprintf(file, "<rect " THIN_LINE " x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            p->left, p->top, p->width, p->height);
}

static void labels(FILE *file, const Panel *p, const char *x_label, const char *y_label) {
    svg_text(file, p->left + p->width / 2, p->top + p->height + 48, "middle", x_label);
    svg_text(file, p->left, p->top - 12, "start", y_label);
}

void svg_axes(FILE *file, const Panel *p, const char *x_label, const char *y_label) {
    frame(file, p);
    begin_soft(file, "");
    ticks(file, p, p->x_min, p->x_max, 6, tick_x);
    ticks(file, p, p->y_min, p->y_max, 6, tick_y);
    labels(file, p, x_label, y_label);
    end_group(file);
}

void svg_chart(FILE *file, const Panel *p, const char *x_label, const char *y_label) {
    begin_soft(file, "");
    ticks(file, p, p->x_min, p->x_max, 6, number_x);
    ticks(file, p, p->y_min, p->y_max, 6, line_y);
    labels(file, p, x_label, y_label);
    end_group(file);
}

/* A line at y, with the number 10^y. */
static void line_log(FILE *file, const Panel *p, double y) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", pow(10, y));
    lined_y(file, p, y, text);
}

/* Lines at powers of ten: at each, or at every second, fifth, ...; if they are few, also at 2 and 5
 * times each power. */
void svg_log_chart(FILE *file, const Panel *p, const char *x_label, const char *y_label) {
    static const double digit[] = {1, 2, 5};
    double step = fmax(1, tick_step(p->y_min, p->y_max, 6));
    int digits = p->y_max - p->y_min < 2.5 ? 3 : 1;
    begin_soft(file, "");
    ticks(file, p, p->x_min, p->x_max, 6, number_x);
    labels(file, p, x_label, y_label);
    double first = floor(p->y_min / step), last = floor(p->y_max / step);
    for (int i = 0; i <= (int)(last - first); i++)
        for (int d = 0; d < digits; d++) {
            double y = (first + i) * step + log10(digit[d]);
            if (y >= p->y_min && y <= p->y_max) line_log(file, p, y);
        }
    end_group(file);
}

/* ---- words ------------------------------------------------------------------------------- */

/* A character of a monospaced font is 0.6 of the font's size wide; words in a column need 15 units.
 */
#define WORD_SIZE 16.0
#define WORD_GAP  6.0

static double widest(Words words) {
    int columns = 0;
    for (int i = 0; i < words.n; i++) {
        int n = utf8_text_columns(words.word[i]);
        if (n > columns) columns = n;
    }
    return 0.61 * WORD_SIZE * columns;
}

/* How many lines do words need, if each needs this much of an edge? */
static int lines(double need, double cell) { return (int)fmax(1, ceil(need / cell)); }

static bool is_turned(Words columns, double cell) { return lines(widest(columns), cell) > 2; }

double svg_space_left(Words rows, double cell) {
    return lines(WORD_SIZE - 1, cell) * (widest(rows) + WORD_GAP) + WORD_SIZE + WORD_GAP;
}

double svg_space_below(Words columns, double cell) {
    bool turned = is_turned(columns, cell);
    double need = turned ? WORD_SIZE - 1 : widest(columns);
    double height = turned ? widest(columns) : WORD_SIZE;
    return lines(need, cell) * (height + WORD_GAP) + WORD_SIZE + WORD_GAP;
}

/* A thin line from the edge of the panel to a word that is not in the first line. */
static void leader(FILE *file, double x, double y, char direction, double length) {
    fprintf(file, "<path " THIN_LINE " d=\"M%.1f %.1f%c%.1f\"/>\n", x, y, direction, length);
}

static void row_words(FILE *file, const Panel *p, Words rows) {
    double cell = p->height / rows.n, step = widest(rows) + WORD_GAP;
    int num_lines = lines(WORD_SIZE - 1, cell);
    for (int i = 0; i < rows.n; i++) {
        double y = p->top + (i + 0.5) * cell, away = i % num_lines * step + WORD_GAP;
        if (i % num_lines) leader(file, p->left, y, 'h', WORD_GAP / 2 - away);
        svg_text(file, p->left - away, y + 0.34 * WORD_SIZE, "end", rows.word[i]);
    }
}

static void column_words(FILE *file, const Panel *p, Words columns) {
    double cell = p->width / columns.n, width = widest(columns);
    bool turned = is_turned(columns, cell);
    double step = (turned ? width : WORD_SIZE) + WORD_GAP;
    int num_lines = lines(turned ? WORD_SIZE - 1 : width, cell);
    for (int i = 0; i < columns.n; i++) {
        double x = p->left + (i + 0.5) * cell, away = i % num_lines * step + WORD_GAP;
        double y = p->top + p->height;
        if (i % num_lines) leader(file, x, y, 'v', away - WORD_GAP / 2);
        if (turned) turned_text(file, x + 0.34 * WORD_SIZE, y + away, "end", columns.word[i]);
        else svg_text(file, x, y + away + 0.75 * WORD_SIZE, "middle", columns.word[i]);
    }
}

/* Gaps between cells that are large enough for them. */
enum { LEAST_WITH_GAPS = 12 };
static void grid(FILE *file, const Panel *p, int columns, int rows) {
    double width = p->width / columns, height = p->height / rows;
    if (fmin(width, height) < LEAST_WITH_GAPS) return;
    fputs("<path class=\"gap\" stroke=\"" PAPER "\" stroke-width=\"2\" d=\"M0 0", file);
    for (int i = 1; i < columns; i++)
        fprintf(file, "M%.1f %.1fv%.1f", p->left + i * width, p->top, p->height);
    for (int i = 1; i < rows; i++)
        fprintf(file, "M%.1f %.1fh%.1f", p->left, p->top + i * height, p->width);
    fputs("\"/>\n", file);
}

void svg_word_axes(FILE *file, const Panel *p, Words columns, Words rows, const char *x_label,
                   const char *y_label) {
    double left = svg_space_left(rows, p->height / rows.n);
    double below = svg_space_below(columns, p->width / columns.n);
    grid(file, p, columns.n, rows.n);
    fprintf(file, "<g font-family=\"" MONO "\" font-size=\"%.0f\">\n", WORD_SIZE);
    row_words(file, p, rows);
    column_words(file, p, columns);
    end_group(file);
    begin_soft(file, "font-size=\"14\"");
    svg_text(file, p->left + p->width / 2, p->top + p->height + below - 3, "middle", x_label);
    turned_text(file, p->left - left + 0.8 * WORD_SIZE, p->top + p->height / 2, "middle", y_label);
    end_group(file);
}

/* ---- points and lines ---------------------------------------------------------------------- */

void svg_points(FILE *file, const Panel *p, const double *x, const double *y, int64_t n) {
    fputs("<g class=\"points\" fill=\"" FAINT "\" fill-opacity=\"0.6\">\n", file);
    for (int64_t i = 0; i < n; i++)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", px(p, x[i]), py(p, y[i]));
    fputs("</g>\n", file);
}

void svg_line(FILE *file, const Panel *p, const double *x, const double *y, int64_t n) {
    fputs("<path class=\"curve\" fill=\"none\" stroke=\"" POS "\" stroke-width=\"2.5\""
          " stroke-linejoin=\"round\" d=\"",
          file);
    for (int64_t i = 0; i < n; i++)
        fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M', px(p, x[i]), py(p, y[i]));
    fputs("\"/>\n", file);
}

/* ---- heat -------------------------------------------------------------------------------- */

/* The level of a cell, in hundredths of the largest. */
enum { MASKED = -1, FULL = 100 };

/* How opaque is the blue of a level, over the colour of 0? level^(3/4): with the level itself, a
 * twentieth of the largest weight would look like 0. */
static double opacity_of(int level) {
    const double root = sqrt((double)level / FULL);
    return root * sqrt(root);
}

static int heat_level(double cell, double most) {
    const double level = most > 0 ? cell / most * FULL + 0.5 : 0;
    if (isnan(cell)) return MASKED;
    return (int)fmin(fmax(level, 0), FULL);
}

/* Neighbours of one colour in a row are one rectangle; cells of level 0 are not drawn. Edges are
 * crisp, so that there are no gaps between rectangles. */
void svg_heat_map(FILE *file, const Panel *p, const double *cells, int rows, int columns,
                  double most) {
    double height = p->height / rows, width = p->width / columns;
    fprintf(file,
            "<rect class=\"cell\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"" CELL
            "\"/>\n",
            p->left, p->top, p->width, p->height);
    fputs("<g class=\"pos\" fill=\"" POS "\" shape-rendering=\"crispEdges\">\n", file);
    for (int row = 0; row < rows; row++) {
        const double *cell = cells + (ptrdiff_t)row * columns;
        int above = p->y_min > p->y_max ? row : rows - 1 - row;
        for (int begin = 0, end; begin < columns; begin = end) {
            int level = heat_level(cell[begin], most);
            for (end = begin + 1; end < columns && heat_level(cell[end], most) == level;) end++;
            if (level == 0) continue;
            fprintf(file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ",
                    p->left + begin * width, p->top + above * height, (end - begin) * width,
                    height);
            if (level == MASKED) fputs("fill=\"url(#hatch)\"/>\n", file);
            else fprintf(file, "fill-opacity=\"%.2f\"/>\n", opacity_of(level));
        }
    }
    fputs("</g>\n", file);
}

enum { BLUES = 48 };

static void blues(FILE *file, const Panel *bar, int rows, int columns, double most) {
    double cells[BLUES];
    for (int i = 0; i < BLUES; i++) cells[i] = most * (i + 0.5) / BLUES;
    svg_heat_map(file, bar, cells, rows, columns, most);
    frame(file, bar);
}

void svg_colour_bar(FILE *file, const Panel *panel, double most, const char *label) {
    Panel bar = {panel->left + panel->width + 72, panel->top, 18, panel->height, 0, 1, 0, most};
    if (!(most > 0)) return;
    blues(file, &bar, BLUES, 1, most);
    begin_soft(file, "");
    ticks(file, &bar, 0, most, 6, tick_y);
    svg_text(file, bar.left + bar.width, bar.top - 12, "end", label);
    end_group(file);
}

void svg_flat_colour_bar(FILE *file, const Panel *bar, const char *label) {
    blues(file, bar, 1, BLUES, bar->x_max);
    begin_soft(file, "");
    svg_text(file, bar->left - 11, bar->top + bar->height / 2 + 5.5, "end", label);
    ticks(file, bar, 0, bar->x_max, 6, tick_x);
    end_group(file);
}
