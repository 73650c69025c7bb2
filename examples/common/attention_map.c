/* attention_map.c - pictures of attention weights: see attention_map.h. */
#include "attention_map.h"

#include "output.h"
#include "utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- making maps ---------------------------------------------------------------------------- */

/* False and an error if a map cannot show these weights. */
static bool fitting(const Tensor *weights, int64_t index) {
    if (!weights)
        return tensor_fail("map_take: the attention weights are NULL: a fused module keeps none");
    const char *shape = tensor_shape_text(weights->shape);
    const int64_t *dim = weights->shape.dim;
    if (weights->shape.ndim != 3)
        tensor_fail("map_take: the attention weights are %s: they need three dimensions "
                    "(batch, queries, keys)",
                    shape);
    else if (weights->dtype != F32 && weights->dtype != F64)
        tensor_fail("map_take: the attention weights are %s: they must be float32 or float64",
                    tensor_dtype_name(weights->dtype));
    else if (index < 0 || index >= dim[0])
        tensor_fail("map_take: the attention weights are %s: there is no map %" PRId64, shape,
                    index);
    else if (dim[1] < 1 || dim[1] > MAP_MAX || dim[2] < 1 || dim[2] > MAP_MAX)
        tensor_fail("map_take: the attention weights are %s: a map shows 1 to %d queries and 1 to "
                    "%d keys",
                    shape, MAP_MAX, MAP_MAX);
    return !tensor_error();
}

bool map_take(AttentionMap *map, const Tensor *attention_weights, int64_t index, int64_t num_keys) {
    if (!fitting(attention_weights, index)) return false;
    map->queries = (int)attention_weights->shape.dim[1];
    map->keys = (int)attention_weights->shape.dim[2];
    for (int q = 0; q < map->queries; q++)
        for (int k = 0; k < map->keys; k++) {
            bool masked = num_keys >= 0 && k >= num_keys;
            map->weights[q * map->keys + k] =
                masked ? (double)NAN : tensor_get(attention_weights, index, q, k);
        }
    return true;
}

void map_label(char label[MAP_LABEL_SIZE], const char *token) {
    const char *next = token;
    const char *end = token; /* of the characters that fit before a point */
    while (utf8_next(&next) && next - token <= MAP_LABEL_SIZE - 2) end = next;
    size_t whole = strlen(token), length = whole < MAP_LABEL_SIZE ? whole : (size_t)(end - token);
    snprintf(label, MAP_LABEL_SIZE, "%.*s%s", (int)length, token, length < whole ? "." : "");
}

/* ---- for both pictures ----------------------------------------------------------------------- */

/* A blank is shown as U+2423, a line end as U+21B5. */
#define BLANK    "\xE2\x90\xA3"
#define LINE_END "\xE2\x86\xB5"

static int num_weights(const AttentionMap *map) { return map->queries * map->keys; }

static double largest_weight(const AttentionMap *maps, int num_maps) {
    double most = 0;
    for (int m = 0; m < num_maps; m++)
        for (int i = 0; i < num_weights(&maps[m]); i++) most = fmax(most, maps[m].weights[i]);
    return most;
}

static bool any_masked(const AttentionMap *maps, int num_maps) {
    for (int m = 0; m < num_maps; m++)
        for (int i = 0; i < num_weights(&maps[m]); i++)
            if (isnan(maps[m].weights[i])) return true;
    return false;
}

static int most_of(int a, int b) { return a > b ? a : b; }

/* ---- in the terminal ------------------------------------------------------------------------- */

enum { TERMINAL_COLUMNS = 80, SHADES = 10, MASKED = -1 };

static const char ascii[] = " .:-=+*#%@";
static const int blue[SHADES] = {231, 195, 153, 75, 33, 26, 20, 19, 18, 17}; /* of xterm's 256 */

/* All maps get the sizes of the largest map. */
typedef struct {
    FILE *file;
    bool plain;
    double most;
    int row_label, column_label; /* columns of the widest row label; length of a column label */
    int cell, width;             /* columns of a cell, and of a map */
} Screen;

static int shade(double weight, double most) {
    if (isnan(weight)) return MASKED;
    return most > 0 ? (int)fmax(0, weight / most * (SHADES - 1) + 0.5) : 0;
}

/* Prints the first character of *text and moves *text past it. Returns its columns. */
static int print_character(const Screen *s, const char **text) {
    const char *begin = *text;
    uint32_t c = utf8_next(text);
    if (c == 0) return 0;
    if (*begin == ' ') fputs(s->plain ? "_" : BLANK, s->file);
    else if (*begin == '\n') fputs(s->plain ? "$" : LINE_END, s->file);
    else if (c == '?' || (s->plain && c > 127)) putc('?', s->file);
    else fwrite(begin, 1, (size_t)(*text - begin), s->file);
    return s->plain ? 1 : utf8_columns(c);
}

/* Prints a label, right-aligned in s->row_label columns. */
static void print_row_label(const Screen *s, const char *label) {
    int characters = utf8_length(label);
    int n = s->plain ? characters : utf8_text_columns(label);
    fprintf(s->file, "%*s", s->row_label - n, "");
    while (*label) print_character(s, &label);
}

/* Writes the title of a map, with its note. Returns its length. */
enum { TITLE_SIZE = 64 + 64 + 2 };
static int title_of(const AttentionMap *map, char title[TITLE_SIZE]) {
    snprintf(title, TITLE_SIZE, "%s%s%s", map->title, map->note[0] ? ", " : "", map->note);
    return utf8_text_columns(title);
}

/* In a title, blanks stay blanks. */
static void print_title(const Screen *s, const AttentionMap *map) {
    char title[TITLE_SIZE];
    int n = fprintf(s->file, "%*s", s->row_label + 1, "");
    title_of(map, title);
    for (const char *text = title; *text && n < s->width - 1;)
        if (*text == ' ') n += fprintf(s->file, "%c", *text++);
        else n += print_character(s, &text);
    fprintf(s->file, "%*s", s->width > n ? s->width - n : 0, "");
}

/* Prints line i of the column labels, which are vertical and end at the map. */
static void print_column_labels(const Screen *s, const AttentionMap *map, int i) {
    int n = fprintf(s->file, "%*s", s->row_label + 1, "");
    for (int k = 0; k < map->keys; k++) {
        const char *text = map->key[k];
        int skip = i - (s->column_label - utf8_length(text)), printed = 0;
        for (int j = 0; j < skip; j++) utf8_next(&text);
        if (skip >= 0) printed = print_character(s, &text);
        fprintf(s->file, "%*s", s->cell > printed ? s->cell - printed : 0, "");
        n += s->cell;
    }
    fprintf(s->file, "%*s", s->width - n, "");
}

/* Colours are written only where they change. */
static void print_cells(const Screen *s, const double *weights, int n) {
    int before = SHADES;
    for (int i = 0; i < n; i++) {
        int level = shade(weights[i], s->most);
        int c = '/';
        if (level != MASKED) c = s->plain ? ascii[level] : ' ';
        if (!s->plain && level == MASKED && level != before) fputs("\033[0;90m", s->file);
        if (!s->plain && level != MASKED && level != before)
            fprintf(s->file, "\033[48;5;%dm", blue[level]);
        for (int j = 0; j < s->cell; j++) putc(c, s->file);
        before = level;
    }
    if (!s->plain) fputs("\033[0m", s->file);
}

static void print_row(const Screen *s, const AttentionMap *map, int q) {
    char edge = s->plain ? '|' : ' ';
    if (q >= map->queries) {
        fprintf(s->file, "%*s", s->width, "");
        return;
    }
    print_row_label(s, map->query[q]);
    putc(edge, s->file);
    print_cells(s, &map->weights[q * map->keys], map->keys);
    fprintf(s->file, "%c%*s", edge, s->width - s->row_label - 2 - map->keys * s->cell, "");
}

/* Prints maps side by side: titles, then column labels, then rows. */
static void print_band(const Screen *s, const AttentionMap *maps, int num_maps) {
    int rows = 0;
    for (int m = 0; m < num_maps; m++) rows = most_of(rows, maps[m].queries);
    for (int line = -1 - s->column_label; line < rows; line++)
        for (int m = 0; m < num_maps; m++) {
            if (line < -s->column_label) print_title(s, &maps[m]);
            else if (line < 0) print_column_labels(s, &maps[m], line + s->column_label);
            else print_row(s, &maps[m], line);
            fputs(m == num_maps - 1 ? "\n" : "  ", s->file);
        }
    putc('\n', s->file);
}

static void print_legend(const Screen *s, bool masked) {
    double levels[SHADES];
    for (int i = 0; i < SHADES; i++) levels[i] = s->most * i / (SHADES - 1);
    fputs("weight 0 ", s->file);
    if (s->most > 0) {
        putc(s->plain ? '|' : ' ', s->file);
        print_cells(s, levels, SHADES);
        fprintf(s->file, "%c %.3g", s->plain ? '|' : ' ', s->most);
    }
    if (masked) {
        fputs(",  masked ", s->file);
        print_cells(s, &(double){(double)NAN}, 1);
    }
    putc('\n', s->file);
}

/* Cells are two columns wide, nearly square, unless the widest map then exceeds the line. A map
 * gets the width of its title: only a title that is longer than a line is cut. */
static Screen screen_for(FILE *file, const AttentionMap *maps, int num_maps) {
    Screen s = {file, terminal_is_plain(file), largest_weight(maps, num_maps), 0, 0, 0, 0};
    char text[TITLE_SIZE];
    int keys = 0, title = 0;
    for (int m = 0; m < num_maps; m++) {
        keys = most_of(keys, maps[m].keys);
        title = most_of(title, title_of(&maps[m], text));
        for (int q = 0; q < maps[m].queries; q++)
            s.row_label = most_of(s.row_label, utf8_text_columns(maps[m].query[q]));
        for (int k = 0; k < maps[m].keys; k++)
            s.column_label = most_of(s.column_label, utf8_length(maps[m].key[k]));
    }
    s.cell = s.row_label + 2 + 2 * keys <= TERMINAL_COLUMNS ? 2 : 1;
    s.width = s.row_label + 2 + most_of(s.cell * keys, title);
    if (s.width > TERMINAL_COLUMNS) s.width = TERMINAL_COLUMNS;
    return s;
}

void maps_print(FILE *file, const AttentionMap *maps, int num_maps) {
    if (num_maps < 1) return;
    Screen s = screen_for(file, maps, num_maps);
    int at_once = most_of(1, (TERMINAL_COLUMNS + 2) / (s.width + 2));
    for (int m = 0; m < num_maps; m += at_once)
        print_band(&s, &maps[m], num_maps - m < at_once ? num_maps - m : at_once);
    print_legend(&s, any_masked(maps, num_maps));
}

/* ---- the loss curve -------------------------------------------------------------------------- */

enum { POINTS = 200 };

typedef struct {
    double x[POINTS], y[POINTS]; /* y: the mean of the losses around step x */
    int n;
} Curve;

static Curve curve_of(const Sheet *sheet) {
    Curve curve = {.n = 0};
    int64_t n = sheet->num_losses, at_once = (n + POINTS - 1) / POINTS;
    for (int64_t begin = 0; begin < n; begin += at_once) {
        int64_t end = begin + at_once < n ? begin + at_once : n;
        double sum = 0;
        for (int64_t i = begin; i < end; i++) sum += sheet->losses[i];
        curve.x[curve.n] = (double)(begin + 1 + end) / 2;
        curve.y[curve.n++] = sum / (double)(end - begin);
    }
    return curve;
}

/* The panel of the curve. If the smallest mean is positive and below a tenth of the largest, the
 * axis is logarithmic: the logarithms then replace the means. */
static Panel panel_for(Curve *curve, bool *logs) {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int i = 0; i < curve->n; i++) {
        low = fmin(low, curve->y[i]);
        high = fmax(high, curve->y[i]);
    }
    *logs = low > 0 && low < high / 10;
    for (int i = 0; *logs && i < curve->n; i++) curve->y[i] = log10(curve->y[i]);
    if (*logs) {
        low = log10(low);
        high = log10(high);
    }
    double pad = fmax(0.05 * (high - low), 0.01 * fabs(high));
    if (pad == 0) pad = 1;
    return (Panel){.y_min = low - pad, .y_max = high + pad};
}

/* A single loss is drawn as a point. */
static void draw_curve(FILE *file, const Sheet *sheet, double top) {
    bool logs;
    Curve curve = curve_of(sheet);
    Panel panel = panel_for(&curve, &logs);
    panel.left = 100;
    panel.top = top;
    panel.width = 500;
    panel.height = 220;
    panel.x_max = fmax((double)sheet->num_losses, 6); /* ticks at whole steps */
    (logs ? svg_log_chart : svg_chart)(file, &panel, "step", "loss");
    svg_line(file, &panel, curve.x, curve.y, curve.n);
    if (curve.n == 1) svg_points(file, &panel, curve.x, curve.y, 1);
}

/* ---- the maps on the sheet ------------------------------------------------------------------- */

enum { MARGIN = 16, GAP = 24, TITLE = 34, NOTE = 26 };
enum { LARGEST_CELL = 40, GOOD_CELL = 20, SMALL_CELL = 14 };
enum { NARROW = 640, WIDE = 1280 };

static int sheet_width(const Sheet *sheet) { return sheet->num_maps > 4 ? WIDE : NARROW; }

/* The height of the title and the note above a map. */
static double title_height(const AttentionMap *map) { return TITLE + (map->note[0] ? NOTE : 0); }

/* Labels as the picture shows them. */
typedef struct {
    char text[MAP_MAX][3 * MAP_LABEL_SIZE];
    const char *word[MAP_MAX];
} Labels;

static Words words_of(Labels *labels, const char (*label)[MAP_LABEL_SIZE], int n) {
    for (int i = 0; i < n; i++) {
        char *out = labels->text[i];
        *out = '\0';
        for (const char *c = label[i]; *c; c++)
            if (*c == ' ') strcat(out, BLANK);
            else if (*c == '\n') strcat(out, LINE_END);
            else strncat(out, c, 1);
        labels->word[i] = out;
    }
    return (Words){labels->word, n};
}

/* The layout of the maps: per_row maps side by side, each with the space of the largest. */
typedef struct {
    int per_row;
    double cell, left, width, height; /* left of a map; of a map with its labels and title */
} Grid;

/* The layout with cells of this size. */
static Grid grid_with(const Sheet *sheet, int per_row, double cell) {
    Grid grid = {per_row, cell, 0, 0, 0};
    for (int m = 0; m < sheet->num_maps; m++) {
        const AttentionMap *map = &sheet->maps[m];
        Labels labels;
        grid.left =
            fmax(grid.left, svg_space_left(words_of(&labels, map->query, map->queries), cell));
        double below = svg_space_below(words_of(&labels, map->key, map->keys), cell);
        double map_height = title_height(map) + cell * map->queries;
        grid.height = fmax(grid.height, map_height + below + GAP);
    }
    for (int m = 0; m < sheet->num_maps; m++) {
        double title = 12.0 * utf8_length(sheet->maps[m].title);
        double map = fmax(cell * sheet->maps[m].keys, per_row > 1 ? title : 0);
        grid.width = fmax(grid.width, grid.left + map);
    }
    return grid;
}

/* As many maps side by side as fit, at most four. A cell has at least GOOD_CELL; if there are two
 * maps side by side or fewer, on a wide sheet four or fewer, at least SMALL_CELL; if there is one
 * map, any size. Then cells are as large as possible. */
static Grid grid_of(const Sheet *sheet) {
    const int width = sheet_width(sheet), few = width == WIDE ? 4 : 2;
    for (int per_row = most_of(1, sheet->num_maps < 4 ? sheet->num_maps : 4);; per_row--) {
        double space = (width - 2 * MARGIN - GAP * (per_row - 1)) / (double)per_row;
        int smallest = per_row > few ? GOOD_CELL : SMALL_CELL;
        if (per_row == 1) smallest = 1;
        for (int cell = LARGEST_CELL; cell >= smallest; cell--) {
            Grid grid = grid_with(sheet, per_row, cell);
            if (grid.width <= space || (per_row == 1 && cell == 1)) return grid;
        }
    }
}

static void draw_map(FILE *file, const AttentionMap *map, const Grid *grid, double left, double top,
                     double most) {
    Labels keys, queries;
    Panel panel = {left + grid->left,
                   top + title_height(map),
                   grid->cell * map->keys,
                   grid->cell * map->queries,
                   0,
                   map->keys,
                   map->queries,
                   0};
    fputs("<g font-weight=\"bold\">\n", file);
    svg_text(file, panel.left, top + TITLE - 10, "start", map->title);
    fputs("</g>\n", file);
    if (map->note[0]) svg_text(file, panel.left, top + TITLE + NOTE - 12, "start", map->note);
    svg_heat_map(file, &panel, map->weights, map->queries, map->keys, most);
    svg_word_axes(file, &panel, words_of(&keys, map->key, map->keys),
                  words_of(&queries, map->query, map->queries), "key", "query");
}

/* The legend: the scale of colour, and the meaning of the hatching. */
static void draw_legend(FILE *file, const Sheet *sheet, double left, double top, double most) {
    Panel bar = {left + 100, top, 360, 20, 0, most, 0, 1};
    Panel box = {left + 492, top, 20, 20, 0, 1, 0, 1};
    svg_flat_colour_bar(file, &bar, "weight");
    if (!any_masked(sheet->maps, sheet->num_maps)) return;
    svg_heat_map(file, &box, &(double){(double)NAN}, 1, 1, 1);
    svg_text(file, box.left + 30, top + 17, "start", "masked");
}

/* The curve, then the legend (right of the curve if it fits), then the maps. */
void sheet_write_svg(FILE *file, const void *context) {
    const Sheet *sheet = context;
    const double most = largest_weight(sheet->maps, sheet->num_maps);
    const int width = sheet_width(sheet), curve = SVG_HEADER + 32;
    const bool beside = width == WIDE && sheet->num_losses > 0;
    const int below_curve = sheet->num_losses ? curve + 310 : SVG_HEADER;
    const int legend = beside ? SVG_HEADER + 120 : below_curve;
    const double top = beside ? below_curve : legend + 72;
    const Grid grid = grid_of(sheet);
    const int rows = (sheet->num_maps + grid.per_row - 1) / grid.per_row;
    svg_begin(file, width, (int)(top + rows * grid.height), sheet->title, sheet->caption);
    if (sheet->num_losses) draw_curve(file, sheet, curve);
    if (sheet->num_maps) draw_legend(file, sheet, beside ? NARROW : 0, legend, most > 0 ? most : 1);
    for (int m = 0; m < sheet->num_maps; m++) {
        int row = m / grid.per_row, column = m % grid.per_row;
        draw_map(file, &sheet->maps[m], &grid, MARGIN + column * (grid.width + GAP),
                 top + row * grid.height, most);
    }
    svg_end(file);
}
