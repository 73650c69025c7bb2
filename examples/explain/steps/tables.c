/* tables.c - tables side by side in a terminal: see tables.h.
 *
 * A tensor becomes blocks, one for each matrix, and more if a matrix is wide. Blocks wait until
 * they are printed as a row. The sections: colours, reasons for zeros, numbers, blocks, tables. */
#include "tables.h"

#include "../../common/utf8.h"
#include "reasons.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 24, TITLE = PLACE_TEXT, WORD = 12 };

static const Plan *plan;
static bool plain;

/* ---- colours --------------------------------------------------------------------------------- */

void paint_plainly(bool is_plain) { plain = is_plain; }

void paint(const char *color) {
    if (!plain) printf("\033[%sm", color);
}

void unpaint(void) {
    if (!plain) printf("\033[0m");
}

/* ---- reasons for zeros ----------------------------------------------------------------------- */

static bool is_a_reason(const Part *part, int r) {
    for (int64_t i = 0; i < plan->tape.tensors[part->x].size; i++)
        if (part->dx[i] == 0 && reason_number(plan, part, i) == r) return true;
    return false;
}

void print_reasons(const Plan *of, const Part *part) {
    const char *before = "zeros: ";
    plan = of;
    for (int r = 0; r <= NOTHING_ARRIVES; r++) {
        if (!is_a_reason(part, r)) continue;
        if (*before == 'z') printf("%*s", TERMINAL_MARGIN, "");
        printf("%s%s %s", before, reasons[r].mark, reasons[r].name);
        before = ", ";
    }
    if (*before == ',') printf("\n\n");
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Columns of a matrix; or a sign, which has no rows. */
typedef struct {
    const Item *item;
    const Json *row_words, *column_words;
    int64_t offset, rows, columns; /* of the matrix */
    int64_t first, shown;          /* of the columns */
    int width;                     /* of a cell */
    int words;                     /* the width of the words before the rows */
    char title[TITLE];
} Block;

static int64_t element(const Block *b, int64_t row, int64_t column) {
    return b->offset + (b->item->transposed ? column * b->rows + row : row * b->columns + column);
}

/* An exact 0 is "0", or the mark of its reason. */
static void cell_text(const Block *b, int64_t row, int64_t column, char text[NUMBER_TEXT]) {
    const int64_t i = element(b, row, column);
    const double x = b->item->numbers[i];
    const Part *part = x == 0 && b->item->of != ITEM_DERIVATIVE ? b->item->part : NULL;
    if (part) strcpy(text, reasons[reason_number(plan, part, i)].mark);
    else format_cell(x, b->item->format, text);
}

/* Sets the width of the cells, the same for all panels. */
static void measure(Block *b, int64_t panels) {
    char text[NUMBER_TEXT];
    const int64_t size = b->rows * b->columns;
    for (b->offset = 0; b->offset < panels * size; b->offset += size)
        for (int64_t r = 0; r < b->rows; r++)
            for (int64_t c = 0; c < b->columns; c++) {
                cell_text(b, r, c, text);
                if ((int)strlen(text) > b->width) b->width = (int)strlen(text);
            }
    for (int64_t c = 0; b->column_words && c < b->columns; c++) {
        const int n = utf8_text_columns(json_at(b->column_words, c)->text);
        if (n > b->width) b->width = n < WORD ? n : WORD;
    }
    for (int64_t r = 0; b->row_words && r < b->rows; r++) {
        const int n = utf8_text_columns(json_at(b->row_words, r)->text);
        if (n + 1 > b->words) b->words = n < WORD ? n + 1 : WORD + 1;
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static Block blocks[MOST_BLOCKS]; /* that wait to be printed side by side */
static int num_blocks;

/* "the [ 0.5  0.2 ]" */
static int block_width(const Block *b) {
    const int cells = b->rows > 0 ? b->words + 2 + (int)b->shown * (b->width + 2) : 0;
    const int title = utf8_text_columns(b->title);
    return cells > title ? cells : title;
}

/* A word in so many columns, and what of it has no room is left out. */
static void print_word(const char *word, int columns, bool right) {
    const char *end = word;
    int used = 0;
    while (*end) {
        const char *next = end;
        const int n = utf8_columns(utf8_next(&next));
        if (used + n > columns) break;
        used += n;
        end = next;
    }
    printf("%*s%.*s%*s", right ? columns - used : 0, "", (int)(end - word), word,
           right ? 0 : columns - used, "");
}

static void print_cell(const Block *b, int64_t row, int64_t column) {
    char text[NUMBER_TEXT];
    const double x = b->item->numbers[element(b, row, column)];
    const char *color = x < 0 ? ORANGE : BLUE;
    cell_text(b, row, column, text);
    paint(x == 0 ? FAINT : color);
    printf("%*s", b->width, text);
    unpaint();
}

/* Row r of a block, -1 for the words of its columns, or nothing where it has none. Returns how many
 * columns it took. */
static int print_row(const Block *b, int r) {
    if (r >= b->rows || (r < 0 && !b->column_words)) return 0;
    if (r < 0) printf("%*s", b->words + 1, "");
    else {
        if (b->row_words) print_word(json_at(b->row_words, r)->text, b->words - 1, false);
        printf(b->words ? " [" : "[");
    }
    for (int64_t c = 0; c < b->shown; c++) {
        printf("%s", c ? "  " : " ");
        if (r < 0) print_word(json_at(b->column_words, b->first + c)->text, b->width, true);
        else print_cell(b, r, b->first + c);
    }
    if (r < 0) return b->words + (int)b->shown * (b->width + 2);
    printf(" ]");
    return b->words + 2 + (int)b->shown * (b->width + 2);
}

/* Does the block print anything in row r? -2: its title, -1: the words of its columns. */
static bool has_row(const Block *b, int r) {
    return r == -2 || (r == -1 ? b->column_words != NULL : r < b->rows);
}

/* Row r of all blocks, without blanks at the end. */
static void print_line(int r) {
    int last = num_blocks - 1;
    while (last >= 0 && !has_row(&blocks[last], r)) last--;
    if (last < 0) return;
    printf("%*s", TERMINAL_MARGIN, "");
    for (int i = 0; i <= last; i++) {
        int used;
        if (r == -2) {
            paint(BOLD);
            printf("%s", blocks[i].title);
            unpaint();
            used = utf8_text_columns(blocks[i].title);
        } else {
            used = print_row(&blocks[i], r);
        }
        if (i < last) printf("%*s", block_width(&blocks[i]) + 3 - used, "");
    }
    putchar('\n');
}

/* Prints them, and a line without letters. */
static void print_blocks(void) {
    int rows = 0;
    if (num_blocks == 0) return;
    for (int i = 0; i < num_blocks; i++)
        if (blocks[i].rows > rows) rows = (int)blocks[i].rows;
    for (int r = -2; r < rows; r++) print_line(r);
    putchar('\n');
    num_blocks = 0;
}

/* Of signs that move to the next line, what touches the table before them stays: ")", "^2)". */
static void leave_touching(Block *sign) {
    const char *rest = strchr(sign->title, ' ');
    if (!rest || !strchr(")^,", *sign->title)) return;
    Block touching = *sign;
    touching.title[rest - sign->title] = '\0';
    blocks[num_blocks++] = touching;
    memmove(sign->title, rest + 1, strlen(rest));
}

static void add_block(Block b) {
    int width = TERMINAL_MARGIN;
    for (int i = 0; i < num_blocks; i++) width += block_width(&blocks[i]) + 3;
    const bool is_full = num_blocks == MOST_BLOCKS || width + block_width(&b) > TERMINAL_WIDTH;
    if (is_full && strcmp(b.title, ")") == 0) return; /* it would stand alone */
    if (num_blocks > 0 && is_full) {
        Block signs[MOST_BLOCKS]; /* they move to the next line, before b */
        int n = num_blocks;
        while (b.rows > 0 && n > 0 && blocks[n - 1].rows == 0) n--;
        const int moved = n > 0 ? num_blocks - n : 0;
        memcpy(signs, blocks + n, (size_t)moved * sizeof *signs);
        num_blocks -= moved;
        if (moved > 0) leave_touching(&signs[0]);
        print_blocks();
        memcpy(blocks, signs, (size_t)moved * sizeof *signs);
        num_blocks = moved;
        width = TERMINAL_MARGIN + block_width(&b);
        for (int i = 0; i < moved; i++) width += block_width(&blocks[i]) + 3;
        if (width > TERMINAL_WIDTH) print_blocks(); /* b is too wide for a sign before it */
    }
    if (num_blocks < MOST_BLOCKS) blocks[num_blocks++] = b;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void put_place(const Plan *of, const TapeTensor *x, int64_t i, int64_t dims,
               char text[PLACE_TEXT]) {
    int64_t place[TENSOR_MAX_DIMS] = {0};
    const char *panel = json_text(of->lesson, "columns", "");
    const char *before = "[";
    const bool is_named = x->rank == 3 && *panel;
    if (x->size < 2) return;
    for (int64_t d = dims - 1; d >= 0; d--) {
        place[d] = i % x->shape[d];
        i /= x->shape[d];
    }
    if (is_named && x->panels > 1)
        put_text(text, PLACE_TEXT, " %.20s %d", panel, (int)place[0] + 1);
    if (is_named && x->panels > 1 && dims > 1) put_text(text, PLACE_TEXT, " ");
    for (int64_t d = is_named; d < dims; d++) {
        if (d < x->rank - 2 && x->shape[d] == 1) continue;
        put_text(text, PLACE_TEXT, "%s%d", before, (int)place[d]);
        before = ", ";
    }
    if (dims > is_named) put_text(text, PLACE_TEXT, "]");
}

/* The words of a tensor's rows or columns, if there is one for each. */
static const Json *words_of(const Item *item, const char *side, int64_t count) {
    const Json *label = json_first(plan->lesson, "labels");
    const int64_t tensor = item->like - plan->tape.tensors;
    while (label && json_integer(label, "tensor", -1) != tensor) label = label->next;
    const Json *words = json_get(label, side);
    return words && words->count == count ? words : NULL;
}

/* A matrix, in pieces of as many columns as fit beside a sign. */
static void add_matrix(Block b) {
    const int room = TERMINAL_WIDTH - TERMINAL_MARGIN - 5 - 2 - b.words;
    const int64_t fits = room / (b.width + 2);
    const size_t n = strlen(b.title);
    for (b.first = 0; b.first < b.columns; b.first += fits) {
        b.shown = b.columns - b.first < fits ? b.columns - b.first : fits;
        const int last = (int)(b.first + b.shown - 1);
        if (b.columns > fits)
            snprintf(b.title + n, sizeof b.title - n, ", columns %d to %d", (int)b.first, last);
        add_block(b);
    }
}

/* The table of an item: one panel of it, or all for -1. */
static void add_table(const Item *item, int64_t panel) {
    const TapeTensor *x = item->like;
    Block b = {.item = item};
    b.rows = item->transposed ? x->columns : x->rows;
    b.columns = item->transposed ? x->rows : x->columns;
    b.row_words = words_of(item, item->transposed ? "columns" : "rows", b.rows);
    b.column_words = words_of(item, item->transposed ? "rows" : "columns", b.columns);
    if (item->of == ITEM_SUM) b.column_words = NULL;
    if (item->of == ITEM_SUM) b.columns = 1;
    const int64_t size = b.rows * b.columns;
    char name[NAME_TEXT];
    plain_text(item->text, name, sizeof name);
    measure(&b, x->panels);
    for (int64_t i = 0; size > 0 && i < x->panels; i++) {
        if (panel >= 0 && i != panel) continue;
        b.offset = i * size;
        snprintf(b.title, sizeof b.title, "%s", name);
        if (item->format.exponent)
            put_text(b.title, sizeof b.title, ", in 1e%d", item->format.exponent);
        if (x->panels > 1) put_place(plan, x, i, x->rank - 2, b.title);
        add_matrix(b);
    }
}

/* Is an item a table? A table that stands there already is only named. */
static bool is_table(const Formula *f, int i) {
    const Item *item = &f->items[i];
    for (int k = 0; k < i; k++)
        if (f->items[k].numbers == item->numbers && f->items[k].transposed == item->transposed)
            return false;
    return item->numbers != NULL;
}

/* The factors of a product stand beside each other, as in its title. */
static bool is_drawn(const Item *item) { return !item->is_hidden && strcmp(item->text, ".") != 0; }

/* Does a blank stand between these signs? */
static bool stand_apart(const Item *before, const Item *item) {
    const size_t n = strlen(before->text);
    if (n > 0 && before->text[n - 1] == '(') return false;
    if (strcmp(before->text, "max") == 0) return false;
    return item->numbers || !*item->text || !strchr("),^", item->text[0]);
}

/* Signs that follow each other are one. Returns the last item that it added. */
static int add_signs(const Formula *f, int first) {
    Block sign = {.item = &f->items[first]};
    size_t n = 0;
    int i = first;
    for (; i < f->count && !is_table(f, i); i++) {
        const bool apart = i > first && stand_apart(&f->items[i - 1], &f->items[i]);
        if (n < TITLE && is_drawn(&f->items[i]))
            n += (size_t)snprintf(sign.title + n, TITLE - n, "%s%s", apart ? " " : "",
                                  f->items[i].text);
    }
    if (n > 0) add_block(sign);
    return i - 1;
}

static void add_items(const Formula *f, int64_t panel) {
    for (int i = 0; i < f->count; i++)
        if (!is_table(f, i)) i = add_signs(f, i);
        else if (is_drawn(&f->items[i])) add_table(&f->items[i], panel);
}

void tables_print(const Plan *of, const Formula *f) {
    int64_t panels = f->items[f->main].like->panels;
    plan = of;
    for (int i = 0; i < f->count; i++)
        if (f->items[i].numbers && is_drawn(&f->items[i]) && f->items[i].like->panels != panels)
            panels = 1;
    for (int64_t p = 0; p < panels; p++) {
        add_items(f, panels > 1 ? p : -1);
        print_blocks();
    }
}
