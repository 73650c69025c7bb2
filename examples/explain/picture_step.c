/* picture_step.c - the step of a picture: its rule as a formula of tables. See picture_parts.h. The
 * sections: places, tables. */
#include "picture_parts.h"

#include "../common/svg.h"
#include "../common/utf8.h"

#include <math.h>
#include <string.h>

/* ---- places ---------------------------------------------------------------------------------- */

enum {
    CAPTION = 34,
    COLUMN_WORDS = 26,
    WORD = 17,
    LETTER = 9, /* of a word: as wide */
    GAP = 10,
    SIGN = 30,
    BRACKET = 20,
    LEAST_CELL = 48,
    MOST_CELL = 82
};

/* The words of a tensor's rows or columns; NULL if it has none. */
static const Json *words_of(const Picture *p, const Item *item, const char *side) {
    const Json *list = json_get(p->plan.lesson, "labels");
    const Json *label = list ? list->first : NULL;
    const int64_t tensor = item->like - p->plan.tape.tensors;
    while (label && json_integer(label, "tensor", -1) != tensor) label = label->next;
    return json_get(label, side);
}

/* The word of row or column i, or its number. */
void word_at(const Picture *p, const Item *item, const char *side, int64_t i, char text[32]) {
    const Json *word = json_at(words_of(p, item, side), i);
    if (word && word->kind == JSON_STRING) tensor_snprintf(text, 32, "%s", word->text);
    else snprintf(text, 32, "%d", (int)i);
}

static int64_t columns_of(const Item *item) { return item->is_column ? 1 : item->like->columns; }

/* The place beside a table for the words of its rows. */
static double side_of(const Picture *p, const Item *item) {
    int most = 1;
    char word[32];
    if (!item->numbers || item->is_column) return 0;
    for (int64_t r = 0; r < item->like->rows; r++) {
        word_at(p, item, "rows", r, word);
        if (utf8_length(word) > most) most = utf8_length(word);
    }
    return 0.56 * WORD * most + 9;
}

static double width_of_sign(const Item *item) {
    return strchr("()", item->text[0]) ? BRACKET : 13.0 * utf8_length(item->text) + SIGN - 13;
}

/* How wide everything is that is no cell. */
static double width_besides(const Picture *p, int64_t *columns) {
    double width = 0;
    *columns = 0;
    for (int i = 0; i < p->formula.count; i++) {
        const Item *item = &p->formula.items[i];
        width += GAP + (item->numbers ? side_of(p, item) : width_of_sign(item));
        if (item->numbers) *columns += columns_of(item);
    }
    return width;
}

double find_width(const Picture *p) {
    int64_t columns;
    const double besides = width_besides(p, &columns);
    return fmax(PICTURE_WIDTH, 2 * MARGIN + besides + (double)columns * LEAST_CELL);
}

Layout layout_of(const Picture *p) {
    int64_t columns;
    const double besides = width_besides(p, &columns);
    Layout l = {.heading = tape_bottom(p) + 108};
    l.cell = floor(fmin(MOST_CELL, (p->width - 2 * MARGIN - besides) / (double)columns));
    l.height = fmin(40, 0.56 * l.cell);
    l.font = fmin(20, fmin(0.52 * l.height, (l.cell - 10) / (6 * 0.62)));
    l.top = l.heading + 16 + CAPTION + COLUMN_WORDS;
    l.bottom = l.top + (double)p->formula.items[0].like->rows * l.height;
    return l;
}

/* Is there a mask at this element of y and of dx? */
static bool is_masked(const Picture *p, const Item *item, int64_t i) {
    const Json *reason = json_at(p->step->part->reasons, i);
    return item->numbers[i] == 0 && reason && reason->kind == JSON_STRING &&
           !strcmp(reason->text, "masked");
}

/* The element in row r and column c of the panel that is shown. */
static int64_t element_at(const Picture *p, const Item *item, int64_t r, int64_t c) {
    const TapeTensor *x = item->like;
    const int64_t row = p->panel * x->rows + r;
    return item->is_column ? row : row * x->columns + c;
}

static int64_t size_of(const Item *item) {
    return item->is_column ? item->like->panels * item->like->rows : item->like->size;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void write_cell(FILE *file, const Picture *p, const Layout *l, const Item *item, double x,
                       double y, int64_t i) {
    char attributes[128], text[32];
    const double number = item->numbers[i], width = l->cell - 2, height = l->height - 2;
    const double largest = largest_of(item->numbers, size_of(item));
    const bool is_value = item->numbers == item->like->value, is_main = item == p->formula.items;
    write_box(file, x, y, width, height, "rx=\"4\" class=\"cell\" fill=\"" CELL "\"");
    snprintf(attributes, sizeof attributes, "rx=\"4\" class=\"%s\" fill-opacity=\"%.2f\"",
             number > 0 ? "pos\" fill=\"" POS : "neg\" fill=\"" NEG,
             strength_of(number, largest, top_of(p, !is_value)));
    if (number != 0) write_box(file, x, y, width, height, attributes);
    if (is_masked(p, item, i))
        write_box(file, x, y, width, height, "rx=\"4\" fill=\"url(#hatch)\"");
    if (is_main)
        write_box(file, x + 0.5, y + 0.5, width - 1, height - 1,
                  "rx=\"4\" fill=\"none\" class=\"bar\" stroke=\"" FAINT
                  "\" stroke-opacity=\"0.4\"");
    number_as(text, number, decimals_in(item->numbers, size_of(item)));
    if (number == 0) fputs("<g " FAINT_WORDS ">\n", file);
    svg_text(file, x + width / 2, y + height / 2 + 0.35 * l->font, "middle", text);
    if (number == 0) end_group(file);
}

/* The chosen number, and the numbers that it is worked out of. */
static void write_outline(FILE *file, const Picture *p, const Layout *l, const Item *item,
                          double left) {
    const TapeTensor *x = item->like;
    const int64_t r = p->chosen / x->columns % x->rows,
                  c = item->is_column ? 0 : p->chosen % x->columns;
    const bool is_main = item == p->formula.items;
    write_box(file, left + (double)c * l->cell, l->top + (double)r * l->height, l->cell - 2,
              l->height - 2,
              is_main ? "rx=\"4\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"3\""
                      : "rx=\"4\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\"");
}

static const char *note_of(const Picture *p, const Item *item) {
    if (item == p->formula.items) return "this step finds it";
    if (item->is_column) return "";
    return item->numbers == item->like->value ? "weights" : "arrives";
}

static void write_caption(FILE *file, const Picture *p, const Layout *l, const Item *item,
                          double left) {
    const bool is_main = item == p->formula.items;
    const double y = l->top - COLUMN_WORDS - 10;
    if (is_main) fputs("<g font-weight=\"bold\">\n", file);
    if (item->is_column) begin_text(file, left + l->cell - 2, y, "end");
    else begin_text(file, left, y, "start");
    if (item->is_column) fprintf(file, "<tspan font-size=\"16\">%s</tspan>", item->text);
    else put_name(file, item->text, 20);
    fprintf(file,
            "<tspan " FAINT_WORDS "font-family=\"" SANS
            "\" font-weight=\"normal\" font-size=\"13\" dx=\"8\">%s</tspan>",
            note_of(p, item));
    end_text(file);
    if (is_main) end_group(file);
}

/* "a_ver.." */
static void cut_word(char word[32], int most) {
    const char *end = word;
    if (utf8_length(word) <= most) return;
    for (int n = 0; n < most - 2; n++) utf8_next(&end);
    strcpy(word + (end - word), "..");
}

static void write_words(FILE *file, const Picture *p, const Layout *l, const Item *item,
                        double left) {
    char word[32];
    if (item->is_column) return;
    for (int64_t c = 0; c < item->like->columns; c++) {
        word_at(p, item, "columns", c, word);
        cut_word(word, (int)(l->cell / LETTER));
        svg_text(file, left + ((double)c + 0.5) * l->cell - 1, l->top - 9, "middle", word);
    }
    for (int64_t r = 0; r < item->like->rows; r++) {
        word_at(p, item, "rows", r, word);
        svg_text(file, left - 8, l->top + ((double)r + 0.5) * l->height + 5, "end", word);
    }
}

/* left: of the cells */
static void write_table(FILE *file, const Picture *p, const Layout *l, const Item *item,
                        double left) {
    fputs("<g " SERIF_TYPE "font-size=\"20\">\n", file);
    write_caption(file, p, l, item, left - side_of(p, item));
    fprintf(file, "</g>\n<g " SERIF_TYPE "font-style=\"italic\" font-size=\"%d\">\n", WORD);
    write_words(file, p, l, item, left);
    fprintf(file, "</g>\n<g font-size=\"%.1f\">\n", l->font);
    for (int64_t r = 0; r < item->like->rows; r++)
        for (int64_t c = 0; c < columns_of(item); c++)
            write_cell(file, p, l, item, left + (double)c * l->cell, l->top + (double)r * l->height,
                       element_at(p, item, r, c));
    end_group(file);
    write_outline(file, p, l, item, left);
}

static void write_sign(FILE *file, const Picture *p, const Layout *l, int i, double left) {
    static const char *const words[] = {"number", "by", "number"};
    const Item *item = &p->formula.items[i];
    const int64_t rows = p->formula.items[0].like->rows;
    const double y = l->top + (double)rows * l->height / 2, x = left + width_of_sign(item) / 2;
    const bool is_bracket = strchr("()", item->text[0]) != NULL;
    fprintf(file, "<g %sfont-size=\"%d\">\n", is_bracket ? SOFT_WORDS SERIF_TYPE : SERIF_TYPE,
            is_bracket ? 46 : 25);
    svg_text(file, x, y + (is_bracket ? 14 : 8), "middle", sign_of(item->text));
    end_group(file);
    if (strcmp(item->text, "x") != 0 || !p->formula.items[i - 1].numbers) return;
    fputs("<g " FAINT_WORDS "font-size=\"10.5\">\n", file);
    for (int n = 0; n < 3; n++) svg_text(file, x, y + 24 + 12 * n, "middle", words[n]);
    end_group(file);
}

/* Where the cells of item i begin. */
double left_of(const Picture *p, const Layout *l, int i) {
    double x = MARGIN;
    for (int k = 0; k <= i; k++) {
        const Item *item = &p->formula.items[k];
        if (item->numbers) x += side_of(p, item);
        if (k == i) break;
        x += GAP + (item->numbers ? (double)columns_of(item) * l->cell : width_of_sign(item));
    }
    return x;
}

void write_tables(FILE *file, const Picture *p, const Layout *l) {
    for (int i = 0; i < p->formula.count; i++)
        if (p->formula.items[i].numbers)
            write_table(file, p, l, &p->formula.items[i], left_of(p, l, i));
        else write_sign(file, p, l, i, left_of(p, l, i));
}

/* "dZ = A x (dA - weighted mean)", and that it was checked. */
void write_rule(FILE *file, const Picture *p, const Layout *l) {
    char text[48];
    const char *panel = json_text(p->plan.lesson, "columns", "");
    const int64_t panels = p->formula.items[0].like->panels;
    fputs("<g " SERIF_TYPE "font-size=\"28\">\n", file);
    begin_text(file, MARGIN, l->heading, "start");
    for (int i = 0; i < p->formula.count; i++) {
        const Item *item = &p->formula.items[i];
        if (i > 0 && stand_apart(item - 1, item)) putc(' ', file);
        if (item->numbers && !item->is_column) put_name(file, item->text, 28);
        else fputs(sign_of(item->text), file);
    }
    fputs("<tspan class=\"good\" fill=\"" GOOD "\" font-family=\"" SANS
          "\" font-size=\"15\" dx=\"16\">\u2713 checked by differences</tspan>",
          file);
    end_text(file);
    end_group(file);
    if (panels < 2) return;
    snprintf(text, sizeof text, "%.20s %d of %d", *panel ? panel : "panel", (int)p->panel + 1,
             (int)panels);
    fputs("<g " SOFT_WORDS "font-size=\"15\">\n", file);
    svg_text(file, p->width - MARGIN, l->heading, "end", text);
    end_group(file);
}
