/* dots.c - a curve made of characters: see dots.h.
 *
 * Points are set in a fine grid of bits. 2 x 4 bits make one character: a braille pattern, or in
 * ASCII '*' or '.'.
 */
#include "dots.h"

#include "../common/output.h"

#include <math.h>

#define COLUMNS 64
#define LINES   16

typedef struct {
    double x_min, x_max, y_min, y_max;
    unsigned char dots[2][LINES][COLUMNS]; /* 0: points, 1: curve; eight bits per character */
} Canvas;

static void widen(double *min, double *max, const double *v, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        *min = fmin(*min, v[i]);
        *max = fmax(*max, v[i]);
    }
}

/* The braille patterns U+2800 .. U+28FF number their dots in columns, the lowest row last. */
static void paint(Canvas *canvas, int layer, double x, double y) {
    static const unsigned char bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    double range = canvas->y_max > canvas->y_min ? canvas->y_max - canvas->y_min : 1;
    int column =
        (int)((x - canvas->x_min) / (canvas->x_max - canvas->x_min) * (2 * COLUMNS - 1) + 0.5);
    int row = (int)((canvas->y_max - y) / range * (4 * LINES - 1) + 0.5);
    canvas->dots[layer][row / 4][column / 2] |= bit[row % 4][column % 2];
}

/* A character shows the curve if it has a part of the curve, else the points. */
static void print_cell(FILE *file, int points, int curve, bool plain) {
    if (!curve && !points) {
        putc(' ', file);
    } else if (plain) {
        putc(curve ? '*' : '.', file);
    } else {
        int pattern = curve ? curve : points; /* U+2800 + pattern in UTF-8; blue or orange */
        fprintf(file, "\033[%sm\xE2%c%c\033[0m", curve ? "38;5;208" : "38;5;75",
                0xA0 | pattern >> 6, 0x80 | (pattern & 0x3F));
    }
}

void dots_curve(FILE *file, const double *x, const double *y, int64_t n, const double *curve_x,
                const double *curve_y, int64_t num_curve) {
    Canvas canvas = {x[0], x[0], y[0], y[0], {{{0}}}};
    bool plain = terminal_is_plain(file);
    widen(&canvas.x_min, &canvas.x_max, x, n);
    widen(&canvas.x_min, &canvas.x_max, curve_x, num_curve);
    widen(&canvas.y_min, &canvas.y_max, y, n);
    widen(&canvas.y_min, &canvas.y_max, curve_y, num_curve);
    for (int64_t i = 0; i < n; i++) paint(&canvas, 0, x[i], y[i]);
    for (int64_t i = 0; i < 16 * (num_curve - 1);
         i++) { /* also between the points, because the curve may be steep */
        const double *a = &curve_x[i / 16];
        const double *b = &curve_y[i / 16];
        const double t = (double)(i % 16) / 16;
        paint(&canvas, 1, a[0] + t * (a[1] - a[0]), b[0] + t * (b[1] - b[0]));
    }
    for (int row = 0; row < LINES; row++) {
        if (row == 0 || row == LINES - 1)
            fprintf(file, "%11.5g ", row == 0 ? canvas.y_max : canvas.y_min);
        else fprintf(file, "%11s ", "");
        for (int column = 0; column < COLUMNS; column++)
            print_cell(file, canvas.dots[0][row][column], canvas.dots[1][row][column], plain);
        putc('\n', file);
    }
    fprintf(file, "%11s %-*.5g%*.5g\n", "", COLUMNS / 2, canvas.x_min, COLUMNS / 2, canvas.x_max);
}
