/* text.c - a lesson in the terminal: see text.h.
 *
 * The page and this text show the same data, the lesson as JSON. A tensor is drawn as blocks, one
 * for each matrix; blocks are printed side by side as long as they fit into 80 columns. The
 * sections: words, numbers, blocks, tensors, steps. */
#include "text.h"

#include "../common/terminal.h"
#include "check.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 80, MARGIN = 4, MOST_BLOCKS = 16, TITLE = 72 };

static bool plain;          /* no colours */
static bool waits;          /* for Enter */
static const Json *lines;   /* of the tape */
static const Json *tensors; /* of the tape */
static const char *columns; /* of the lesson */

/* ---- words ----------------------------------------------------------------------------------- */

#define BOLD   "1"
#define FAINT  "2"
#define BLUE   "38;5;75"
#define ORANGE "38;5;208"

static void paint(const char *color) {
    if (!plain) printf("\033[%sm", color);
}

static void unpaint(void) {
    if (!plain) printf("\033[0m");
}

/* A paragraph in lines of at most 80 characters, after a margin; code in backquotes is bold. */
static void print_paragraph(const char *text, int margin) {
    int column = 0;
    bool code = false;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        int letters = 0;
        for (int i = 0; i < length; i++) letters += text[i] != '`';
        if (column > margin && column + 1 + letters > WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column > 0) putchar(' ');
        else printf("%*s", margin, "");
        column += letters + (column > 0 ? 1 : margin);
        for (int i = 0; i < length; i++) {
            if (text[i] != '`') {
                putchar(text[i]);
                continue;
            }
            code = !code;
            if (code) paint(BOLD);
            else unpaint();
        }
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

/* Does the word stand in the text, alone: "y" in "y (dy - sum(y dy))", but not "x" in "dy in x's
 * shape"? */
static bool has_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; n > 0; at++) {
        at = strstr(at, word);
        if (!at) return false;
        const bool begins = at == text || !isalnum((unsigned char)at[-1]);
        const bool ends = !isalnum((unsigned char)at[n]) && strncmp(at + n, "'s ", 3) != 0;
        if (begins && ends) return true;
    }
    return false;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reasons for a zero: as the tape names them, as a cell shows them, and what they mean. */
static const struct {
    const char *name, *mark, *meaning;
} reasons[] = {{"masked", "//", "masked"},
               {"weight is 0", "w0", "the weight is 0"},
               {"weight is 1", "w1", "the weight is 1"},
               {"dropped", "::", "dropped"},
               {"flat", "__", "the function is flat"},
               {"times 0", "*0", "it is multiplied by 0"},
               {"unused", "--", "not used"}};
enum { REASONS = sizeof reasons / sizeof *reasons };

/* If a column of a Jacobian is a reason: the number of the reason, else REASONS. */
static int reason_in(const Json *column) {
    int r = 0;
    while (r < REASONS &&
           !(column && column->kind == JSON_STRING && strcmp(column->text, reasons[r].name) == 0))
        r++;
    return r;
}

/* Part of a tensor: columns of one of its matrices, with the Jacobian if the tensor is a gradient.
 */
typedef struct {
    const Json *numbers, *jacobian;
    int64_t offset, rows, columns; /* of the matrix */
    int64_t first, shown;          /* of the columns */
    int decimals, width;           /* of a cell */
    char title[TITLE];
} Block;

static double cell(const Block *b, int64_t row, int64_t column) {
    return json_number(json_at(b->numbers, b->offset + row * b->columns + column));
}

/* An exact 0 is "0", or the mark of its reason; a number that rounds to 0 is "0.000". */
static void cell_text(const Block *b, int64_t row, int64_t column, char text[16]) {
    const double x = cell(b, row, column);
    const int reason =
        x == 0 ? reason_in(json_at(b->jacobian, b->offset + row * b->columns + column)) : REASONS;
    if (reason < REASONS) snprintf(text, 16, "%s", reasons[reason].mark);
    else if (x == 0) snprintf(text, 16, "0");
    else if (isinf(x)) snprintf(text, 16, x > 0 ? "inf" : "-inf");
    else if (fabs(x) >= 1e5) snprintf(text, 16, "%.0e", x);
    else if (fabs(x) < 0.0005) snprintf(text, 16, "0.000");
    else snprintf(text, 16, "%.*f", b->decimals, x);
}

/* How many decimals, up to 3, show this number as it is. */
static int decimals_of(double x) {
    int decimals = 0;
    if (isinf(x) || x != x || fabs(x) >= 1e5) return 0;
    for (double scaled = x; decimals < 3; decimals++) {
        if (fabs(scaled - round(scaled)) < 1e-9 * fmax(1, fabs(scaled))) break;
        scaled *= 10;
    }
    return decimals;
}

/* Sets decimals and width for a whole matrix. */
static void measure(Block *b) {
    char text[16];
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t c = 0; c < b->columns; c++) {
            const int decimals = decimals_of(cell(b, r, c));
            if (decimals > b->decimals) b->decimals = decimals;
        }
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t c = 0; c < b->columns; c++) {
            cell_text(b, r, c, text);
            if ((int)strlen(text) > b->width) b->width = (int)strlen(text);
        }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static Block blocks[MOST_BLOCKS]; /* that wait to be printed side by side */
static int num_blocks;

/* "[ 0.5  0.2 ]" */
static int block_width(const Block *b) {
    const int cells = b->rows > 0 ? 2 + (int)b->shown * (b->width + 2) : 0;
    const int title = (int)strlen(b->title);
    return cells > title ? cells : title;
}

static void print_cell(const Block *b, int64_t row, int64_t column) {
    char text[16];
    const double x = cell(b, row, column);
    const char *color = x < 0 ? ORANGE : BLUE;
    cell_text(b, row, column, text);
    paint(x == 0 ? FAINT : color);
    printf("%*s", b->width, text);
    unpaint();
}

/* Row r of a block, or nothing below its last one. Returns how many characters it printed. */
static int print_row(const Block *b, int r) {
    if (r >= b->rows) return 0;
    printf("[");
    for (int64_t c = 0; c < b->shown; c++) {
        printf("%s", c ? "  " : " ");
        print_cell(b, r, b->first + c);
    }
    printf(" ]");
    return 2 + (int)b->shown * (b->width + 2);
}

/* Row r of all blocks, -1 for the titles, without blanks at the end. */
static void print_line(int r) {
    int last = num_blocks - 1;
    while (r >= blocks[last].rows) last--;
    printf("%*s", MARGIN, "");
    for (int i = 0; i <= last; i++) {
        int used;
        if (r < 0) {
            paint(BOLD);
            used = printf("%s", blocks[i].title);
            unpaint();
        } else {
            used = print_row(&blocks[i], r);
        }
        if (i < last) printf("%*s", block_width(&blocks[i]) + 3 - used, "");
    }
    putchar('\n');
}

static void print_blocks(void) {
    int rows = 0;
    if (num_blocks == 0) return;
    for (int i = 0; i < num_blocks; i++)
        if (blocks[i].rows > rows) rows = (int)blocks[i].rows;
    for (int r = -1; r < rows; r++) print_line(r);
    putchar('\n');
    num_blocks = 0;
}

/* Adds an arrow, between the tensors that a line reads and the tensors that it makes. */
static void add_arrow(void) {
    if (num_blocks < MOST_BLOCKS) blocks[num_blocks++] = (Block){.title = "->"};
}

static void add_block(Block b) {
    int width = MARGIN;
    for (int i = 0; i < num_blocks; i++) width += block_width(&blocks[i]) + 3;
    if (num_blocks > 0 && (num_blocks == MOST_BLOCKS || width + block_width(&b) > WIDTH)) {
        const bool arrow = blocks[num_blocks - 1].rows == 0;
        num_blocks -= arrow; /* the arrow moves to the next line, before b */
        print_blocks();
        if (arrow) add_arrow();
    }
    blocks[num_blocks++] = b;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static const Json *tensor_at(const Json *number) {
    return number && number->number >= 0 ? json_at(tensors, (int64_t)number->number) : NULL;
}

/* A tensor without a name is called by its number. */
static const char *name_of(const Json *tensor, char name[40]) {
    int64_t t = 0;
    for (const Json *x = tensors->first; x != tensor; x = x->next) t++;
    snprintf(name, 40, "%s", json_text(tensor, "name", ""));
    if (!*name) snprintf(name, 40, "t%d", (int)t);
    return name;
}

/* "dS", "d(S / sqrt(d))" */
static void gradient_name(const Json *tensor, char title[TITLE]) {
    char name[40];
    bool simple = true;
    name_of(tensor, name);
    for (const char *c = name; *c; c++)
        simple = simple && (isalnum((unsigned char)*c) || *c == '_');
    snprintf(title, TITLE, simple ? "d%s" : "d(%s)", name);
}

static int64_t dimension(const Json *shape, int64_t d) {
    const Json *size = d >= 0 ? json_at(shape, d) : NULL;
    return size ? (int64_t)size->number : 1;
}

/* "[1, 2]" for matrix i of a tensor, without dimensions of size 1; " head 2" where the lesson has a
 * word for it. */
static void add_place(char title[TITLE], const Json *shape, int64_t i) {
    char place[TITLE] = "";
    for (int64_t d = shape->count - 3; d >= 0; d--) {
        char before[TITLE];
        if (dimension(shape, d) == 1) continue;
        snprintf(before, sizeof before, "%s", place);
        snprintf(place, sizeof place, "%d%s%.40s", (int)(i % dimension(shape, d)),
                 *before ? ", " : "", before);
        i /= dimension(shape, d);
    }
    const size_t n = strlen(title);
    if (shape->count == 3 && *columns)
        snprintf(title + n, TITLE - n, " %.20s %d", columns, atoi(place) + 1);
    else snprintf(title + n, TITLE - n, "[%.40s]", place);
}

/* A matrix, in pieces of as many columns as fit beside an arrow. */
static void add_matrix(Block b) {
    const int64_t fits = (WIDTH - MARGIN - 5 - 2) / (b.width + 2);
    const size_t n = strlen(b.title);
    for (b.first = 0; b.first < b.columns; b.first += fits) {
        b.shown = b.columns - b.first < fits ? b.columns - b.first : fits;
        const int last = (int)(b.first + b.shown - 1);
        if (b.columns > fits)
            snprintf(b.title + n, sizeof b.title - n, ", columns %d to %d", (int)b.first, last);
        add_block(b);
    }
}

/* The matrices of a list of numbers that has the shape of a tensor; nothing for NULL. */
static void add_numbers(const char *title, const Json *tensor, const Json *numbers,
                        const Json *jacobian) {
    const Json *shape = json_get(tensor, "shape");
    Block b = {.numbers = numbers, .jacobian = jacobian};
    b.rows = dimension(shape, shape->count - 2);
    b.columns = dimension(shape, shape->count - 1);
    const int64_t size = b.rows * b.columns;
    const int64_t matrices = size > 0 && numbers ? numbers->count / size : 0;
    for (int64_t i = 0; i < matrices; i++) {
        b.offset = i * size;
        b.decimals = 0;
        b.width = 0;
        measure(&b);
        snprintf(b.title, sizeof b.title, "%s", title);
        if (matrices > 1) add_place(b.title, shape, i);
        add_matrix(b);
    }
}

static void add_value(const Json *tensor) {
    char name[40];
    add_numbers(name_of(tensor, name), tensor, json_get(tensor, "value"), NULL);
}

static void add_gradient(const Json *tensor, const Json *numbers, const Json *jacobian) {
    char title[TITLE];
    gradient_name(tensor, title);
    add_numbers(title, tensor, numbers, jacobian);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* "A = softmax(S) ............ backward 3 of 8, check ok" */
static void print_heading(const Json *line, const char *pass, int step, int steps,
                          const char *check) {
    char name[40], right[64];
    int used = 0;
    snprintf(right, sizeof right, " %s %d of %d%s", pass, step, steps, check);
    paint(BOLD);
    used += printf("%s = %s(", name_of(tensor_at(json_get(line, "out")), name),
                   json_text(line, "op", ""));
    const char *comma = "";
    for (const Json *x = json_get(line, "in")->first; x; x = x->next) {
        if (x->number < 0) continue;
        used += printf("%s%s", comma, name_of(tensor_at(x), name));
        comma = ", ";
    }
    const Json *argument = json_get(line, "s");
    if (!argument) argument = json_get(line, "p");
    if (argument) used += printf(", %.4g", argument->number);
    used += printf(")") + 1;
    unpaint();
    const bool fits = used + (int)strlen(right) <= WIDTH;
    putchar(fits ? ' ' : '\n');
    if (!fits) used = 0;
    for (; used + (int)strlen(right) < WIDTH; used++) putchar('.');
    printf("%s\n", right);
}

/* "dx = y (dy - sum(y dy))". first_part: only the part before a semicolon. */
static void print_rule(const char *what, const char *rule, bool first_part) {
    char text[512];
    const int size = (int)(first_part ? strcspn(rule, ";") : strlen(rule));
    const bool complete = strncmp(rule, what, strlen(what)) == 0;
    snprintf(text, sizeof text, "%s%.*s", complete ? "" : what, size, rule);
    if (*rule) print_paragraph(text, MARGIN);
}

/* Is dx[i] 0 because each dy that could reach it is 0? */
static bool nothing_arrives(const Json *derivative, const Json *dy, int64_t i) {
    const Json *column = json_at(json_get(derivative, "jacobian"), i);
    if (json_number(json_at(json_get(derivative, "dx"), i)) != 0) return false;
    for (const Json *j = column->first; j; j = j->next->next)
        if (json_number(json_at(dy, (int64_t)j->number)) != 0) return false;
    return column->kind == JSON_ARRAY;
}

static bool is_a_reason(const Json *line, int r) {
    const Json *dy = json_get(tensor_at(json_get(line, "out")), "grad");
    for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
        const Json *jacobian = json_get(d, "jacobian");
        const int64_t n = jacobian ? jacobian->count : 0;
        for (int64_t i = 0; i < n; i++)
            if (r < REASONS ? reason_in(json_at(jacobian, i)) == r : nothing_arrives(d, dy, i))
                return true;
    }
    return false;
}

/* Prints the reasons that occur in the gradients that this line makes. */
static void print_reasons(const Json *line) {
    const char *before = "zeros: ";
    for (int r = 0; r <= REASONS; r++) {
        if (!is_a_reason(line, r)) continue;
        if (*before == 'z') printf("%*s", MARGIN, "");
        printf("%s%s %s", before, r < REASONS ? reasons[r].mark : "0",
               r < REASONS ? reasons[r].meaning : "nothing arrives");
        before = ", ";
    }
    if (*before == ',') printf("\n\n");
}

/* Waits for Enter; false after q. */
static bool go_on(void) {
    if (!waits) return true;
    paint(FAINT);
    printf("Enter: on, q and Enter: stop ");
    unpaint();
    fflush(stdout);
    int c = getchar();
    const bool quit = c == 'q';
    while (c != '\n' && c != EOF) c = getchar();
    waits = c != EOF; /* without an input nobody can press Enter */
    putchar('\n');
    return !quit;
}

static void show_forward(const Json *line, int step) {
    print_heading(line, "forward", step, (int)lines->count, "");
    print_rule("y = ", json_text(line, "formula", ""), true);
    putchar('\n');
    for (const Json *x = json_get(line, "in")->first; x; x = x->next)
        if (x->number >= 0) add_value(tensor_at(x));
    add_arrow();
    add_value(tensor_at(json_get(line, "out")));
    print_blocks();
}

static bool is_float(const Json *tensor) {
    return tensor && strncmp(json_text(tensor, "type", ""), "float", 5) == 0;
}

/* Does the rule of the gradient read input k, by its name in the call: "b" in "dy b'"? */
static bool reads_input(const Json *line, int k) {
    char argument[32];
    const char *call = json_text(line, "call", "");
    const char *at = strchr(call, '(');
    for (int i = 0; at && i < k; i++) at = strchr(at + 1, ',');
    if (!at) return false;
    at += strspn(at, "(, ");
    snprintf(argument, sizeof argument, "%.*s", (int)strcspn(at, ",)"), at);
    return has_word(json_text(line, "gradient", ""), argument);
}

/* How many lines add to the gradient of this tensor, from `from` to the last one. */
static int contributions(const Json *tensor, const Json *from) {
    int n = 0;
    for (const Json *line = from; line; line = line->next) {
        const Json *x = json_get(line, "in")->first;
        for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
            n += d->kind == JSON_OBJECT && tensor_at(x) == tensor;
            x = x->next;
        }
    }
    return n;
}

/* If several lines add to a gradient: prints the sum so far. */
static void show_sum(const Json *line, const Json *x) {
    const Json *tensor = tensor_at(x);
    const int done = contributions(tensor, line), all = contributions(tensor, lines->first);
    char title[TITLE];
    if (all < 2) return;
    gradient_name(tensor, title);
    if (done < all) {
        printf("%*sThis line adds part %d of %d of %s.\n\n", MARGIN, "", done, all, title);
        return;
    }
    printf("%*sThis line adds the last of %d parts of %s. The sum:\n", MARGIN, "", all, title);
    add_gradient(tensor, json_get(tensor, "grad"), NULL);
    print_blocks();
}

/* The largest error of the line's Jacobians, compared with differences of the line's forward. */
static double worst_of(const Json *line) {
    double worst = 0;
    for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
        const double error = d->kind == JSON_OBJECT ? json_number(json_get(d, "worst")) : 0;
        if (error > worst || isnan(error)) worst = error; /* NaN stays */
    }
    return worst;
}

/* Adds what the rule of the gradient reads: dy, and y and the inputs that stand in the rule. */
static void add_what_is_read(const Json *line) {
    const Json *out = tensor_at(json_get(line, "out"));
    int k = 0;
    add_gradient(out, json_get(out, "grad"), NULL);
    if (has_word(json_text(line, "gradient", ""), "y")) add_value(out);
    for (const Json *x = json_get(line, "in")->first; x; x = x->next)
        if (reads_input(line, k++) && is_float(tensor_at(x))) add_value(tensor_at(x));
}

static void show_backward(const Json *line, int step, int steps) {
    const Json *backward = json_get(line, "backward");
    const char *check = worst_of(line) < 1e-6 ? ", check ok" : ", check FAILS";
    print_heading(line, "backward", step, steps, check);
    print_rule("dx = ", json_text(line, "gradient", ""), false);
    putchar('\n');
    add_what_is_read(line);
    add_arrow();
    const Json *x = json_get(line, "in")->first;
    for (const Json *d = backward->first; d; d = d->next) {
        if (d->kind == JSON_OBJECT)
            add_gradient(tensor_at(x), json_get(d, "dx"), json_get(d, "jacobian"));
        x = x->next;
    }
    print_blocks();
    print_reasons(line);
    x = json_get(line, "in")->first;
    for (const Json *d = backward->first; d; d = d->next) {
        if (d->kind == JSON_OBJECT) show_sum(line, x);
        x = x->next;
    }
}

/* Prints the wrong rule that is in use. */
static void show_rule(const Json *lesson) {
    char text[512];
    const char *key = json_text(lesson, "rule", "");
    const Json *rules = json_get(lesson, "rules");
    const Json *rule = rules ? rules->first : NULL;
    while (rule && strcmp(json_text(rule, "key", ""), key) != 0) rule = rule->next;
    if (!rule) return;
    snprintf(text, sizeof text, "Backward is wrong here: %s. Wrong: %s. Right: %s.",
             json_text(rule, "title", ""), json_text(rule, "wrong", ""),
             json_text(rule, "right", ""));
    putchar('\n');
    print_paragraph(text, 0);
}

/* The text of the lesson, before its steps. */
static void show_text(const Json *lesson) {
    const int number = (int)json_integer(lesson, "number", 0);
    paint(BOLD);
    if (number > 0) printf("Lesson %d: ", number);
    printf("%s\n", json_text(lesson, "title", ""));
    unpaint();
    print_paragraph(json_text(lesson, "idea", ""), 0);
    putchar('\n');
    const Json *formula = json_get(lesson, "formula");
    for (const Json *item = formula ? formula->first : NULL; item; item = item->next)
        if (item->text) print_paragraph(item->text, MARGIN);
    const Json *paragraphs = json_get(lesson, "text");
    for (const Json *item = paragraphs ? paragraphs->first : NULL; item; item = item->next) {
        putchar('\n');
        if (item->text) print_paragraph(item->text, 0);
    }
    show_rule(lesson);
    putchar('\n');
}

/* Did backward come to this line? */
static bool has_backward(const Json *line) {
    return json_get(line, "backward")->count > 0 &&
           json_get(tensor_at(json_get(line, "out")), "grad");
}

bool text_show(const Json *lesson) {
    const Json *tape = json_get(lesson, "tape");
    int step = 0, steps = 0;
    plain = terminal_is_plain(stdout);
    waits = terminal_is(stdout);
    lines = json_get(tape, "lines");
    tensors = json_get(tape, "tensors");
    columns = json_text(lesson, "columns", "");
    show_text(lesson);
    if (!go_on()) return false;
    for (const Json *line = lines->first; line; line = line->next) {
        show_forward(line, ++step);
        steps += has_backward(line);
        if (!go_on()) return false;
    }
    step = 0;
    for (int64_t i = lines->count - 1; i >= 0; i--) {
        if (!has_backward(json_at(lines, i))) continue;
        show_backward(json_at(lines, i), ++step, steps);
        if (step < steps && !go_on()) return false;
    }
    return true;
}
