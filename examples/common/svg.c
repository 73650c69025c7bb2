/* svg.c - pictures: see svg.h.
 *
 * SVG's y grows downwards; px() and py() are the only places that know.
 */
#include "svg.h"

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

/* The length of the UTF-8 character at s, or 0 if that is not one (RFC 3629). */
static int utf8_length(const unsigned char *s) {
    int length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (s[0] > 0xF4) return 0;
    for (int i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    bool too_long = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] > 0x9F;
    bool beyond = s[0] == 0xF4 && s[1] > 0x8F;
    return too_long || surrogate || beyond ? 0 : length;
}

/* At most 40 characters. Control characters and stray bytes become question marks. */
static void print_escaped(FILE *file, const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    for (int n = 0; *s && n < 40; n++) {
        int length = utf8_length(s);
        if (*s == '&') fputs("&amp;", file);
        else if (*s == '<') fputs("&lt;", file);
        else if (*s == '>') fputs("&gt;", file);
        else if (length == 0 || *s < 32) putc('?', file);
        else fwrite(s, 1, (size_t)length, file);
        s += length ? length : 1;
    }
    if (*s) fputs("...", file);
}

void svg_text(FILE *file, double x, double y, const char *anchor, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    print_escaped(file, text);
    fputs("</text>\n", file);
}

void svg_begin(FILE *file, int height, const char *title) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\""
            " font-family=\"sans-serif\" font-size=\"20\" fill=\"#222222\">\n<title>",
            SVG_WIDTH, height);
    print_escaped(file, title);
    fprintf(file, "</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", SVG_WIDTH,
            height);
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

/* As many decimals as the step has; powers of ten where that would be long. */
static void format_tick(char text[32], double value, double step) {
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (fabs(value) < step / 2) value = 0; /* not -0 and not 1e-17 */
    if (decimals > 5 || fabs(value) >= 1e7) snprintf(text, 32, "%.10g", value);
    else snprintf(text, 32, "%.*f", decimals, value);
}

static void tick_x(FILE *file, const Panel *p, double value, double step) {
    char text[32];
    double x = px(p, value), bottom = p->top + p->height;
    format_tick(text, value, step);
    fprintf(file, "<path d=\"M%.1f %.1fv6\" stroke=\"#222222\"/>\n", x, bottom);
    svg_text(file, x, bottom + 27, "middle", text);
}

static void tick_y(FILE *file, const Panel *p, double value, double step) {
    char text[32];
    double y = py(p, value);
    format_tick(text, value, step);
    fprintf(file, "<path d=\"M%.1f %.1fh-6\" stroke=\"#222222\"/>\n", p->left, y);
    svg_text(file, p->left - 11, y + 7, "end", text);
}

/* Calls tick for every multiple of the step from min to max. */
static void ticks(FILE *file, const Panel *p, double min, double max, int most,
                  void (*tick)(FILE *, const Panel *, double, double)) {
    double step = tick_step(min, max, most);
    double first = ceil(min / step - 1e-9), last = floor(max / step + 1e-9);
    for (int i = 0; i <= most && first + i <= last; i++) tick(file, p, (first + i) * step, step);
}

static void frame(FILE *file, const Panel *p) {
    fprintf(file,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\""
            " stroke=\"#222222\"/>\n",
            p->left, p->top, p->width, p->height);
}

void svg_axes(FILE *file, const Panel *p, const char *x_label, const char *y_label) {
    frame(file, p);
    ticks(file, p, p->x_min, p->x_max, 6, tick_x);
    ticks(file, p, p->y_min, p->y_max, 6, tick_y);
    svg_text(file, p->left + p->width / 2, p->top + p->height + 56, "middle", x_label);
    svg_text(file, p->left, p->top - 12, "start", y_label);
}

/* ---- points and lines ---------------------------------------------------------------------- */

void svg_points(FILE *file, const Panel *p, const double *x, const double *y, int64_t n) {
    fputs("<g fill=\"#0072b2\" fill-opacity=\"0.55\">\n", file);
    for (int64_t i = 0; i < n; i++)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", px(p, x[i]), py(p, y[i]));
    fputs("</g>\n", file);
}

void svg_line(FILE *file, const Panel *p, const double *x, const double *y, int64_t n) {
    fputs(
        "<path fill=\"none\" stroke=\"#d55e00\" stroke-width=\"3\" stroke-linejoin=\"round\" d=\"",
        file);
    for (int64_t i = 0; i < n; i++)
        fprintf(file, "%c%.1f %.1f", i ? 'L' : 'M', px(p, x[i]), py(p, y[i]));
    fputs("\"/>\n", file);
}

/* ---- heat -------------------------------------------------------------------------------- */

/* One of 256 blues, 0 white. Straight lines between four colours of falling lightness. */
static unsigned colour(int level) {
    static const int stop[4][3] = {{255, 255, 255}, {158, 202, 225}, {49, 130, 189}, {8, 29, 88}};
    int segment = level * 3 / 256, along = level - segment * 85;
    unsigned rgb = 0;
    for (int c = 0; c < 3; c++) {
        int from = stop[segment][c], to = stop[segment + 1][c];
        rgb = rgb << 8 | (unsigned)(from + (to - from) * along / 85);
    }
    return rgb;
}

static int heat_level(double cell, double most) {
    double level = most > 0 ? cell / most * 255 + 0.5 : 0;
    return level > 255 ? 255 : level >= 1 ? (int)level : 0; /* a NaN is white */
}

/* Neighbours of one colour in a row are one rectangle; white ones are the paper. Edges are crisp,
 * so that no seams shine through where rectangles meet. */
void svg_heat_map(FILE *file, const Panel *p, const double *cells, int rows, int columns,
                  double most) {
    double height = p->height / rows, width = p->width / columns;
    fputs("<g shape-rendering=\"crispEdges\">\n", file);
    for (int row = 0; row < rows; row++) {
        const double *cell = cells + (ptrdiff_t)row * columns;
        for (int begin = 0, end; begin < columns; begin = end) {
            int level = heat_level(cell[begin], most);
            for (end = begin + 1; end < columns && heat_level(cell[end], most) == level;) end++;
            if (level == 0) continue;
            fprintf(file,
                    "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n",
                    p->left + begin * width, p->top + (rows - 1 - row) * height,
                    (end - begin) * width, height, colour(level));
        }
    }
    fputs("</g>\n", file);
}

void svg_colour_bar(FILE *file, const Panel *panel, double most, const char *label) {
    enum { BLUES = 48 };
    Panel bar = {panel->left + panel->width + 72, panel->top, 18, panel->height, 0, 1, 0, most};
    double cells[BLUES];
    if (!(most > 0)) return;
    for (int i = 0; i < BLUES; i++) cells[i] = most * (i + 0.5) / BLUES;
    svg_heat_map(file, &bar, cells, BLUES, 1, most);
    frame(file, &bar);
    ticks(file, &bar, 0, most, 6, tick_y);
    svg_text(file, bar.left + bar.width, bar.top - 12, "end", label);
}
