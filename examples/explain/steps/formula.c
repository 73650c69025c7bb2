/* formula.c - a step as its formula, with its tables: see formula.h.
 *
 * The sections: names, is a line linear?, items, a tree, forward, groups, backward, the others. */
#include "formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

/* The tensor that this one is the transpose of, or the other way round; -1: none. */
static int twin_of(const Plan *plan, int tensor) {
    const Json *pair = json_first(plan->lesson, "transposed");
    int twin = -1;
    for (; pair; pair = pair->next) {
        const int64_t t = json_integer(pair, "tensor", -1), of = json_integer(pair, "of", -1);
        if (t == tensor) return (int)of;
        if (of == tensor && twin < 0) twin = (int)t;
    }
    return twin;
}

void name_of_op(const RuledLine *line, char name[NAME_TEXT]) {
    snprintf(name, NAME_TEXT, "%s", json_text(line->json, "op", ""));
    for (char *c = name; *c; c++)
        if (*c == '_') *c = ' ';
}

/* A backquote would end the name in a text. */
static void copy_name(const char *own, char name[NAME_TEXT]) {
    snprintf(name, NAME_TEXT, "%.*s", NAME_TEXT - 8, own);
    for (char *c = name; *c; c++)
        if (*c == '`') *c = '\'';
}

void full_name(const Plan *plan, int tensor, char name[NAME_TEXT]) {
    const TapeTensor *x = &plan->tape.tensors[tensor];
    const int twin = twin_of(plan, tensor);
    const RuledLine *line = x->maker < 0 ? NULL : &plan->tape.lines[x->maker];
    const char *of = twin < 0 ? "" : plan->tape.tensors[twin].name;
    copy_name(x->name, name);
    if (*name) return;
    if (!line && strcmp(json_text(x->json, "type", ""), "bool") == 0) strcpy(name, "mask");
    else if (!line) snprintf(name, NAME_TEXT, "x%d", tensor);
    else if (strcmp(json_text(line->json, "op", ""), "transpose") == 0 && *of) {
        copy_name(of, name);
        strcat(name, "'");
    } else {
        name_of_op(line, name);
        put_text(name, NAME_TEXT, " %d", line->number);
    }
}

/* The lesson's short name of a tensor, or its name. */
static void short_name(const Plan *plan, int tensor, char name[NAME_TEXT]) {
    const Json *pair = json_first(plan->lesson, "short");
    while (pair && json_integer(pair, "tensor", -1) != tensor) pair = pair->next;
    copy_name(json_text(pair, "name", ""), name);
    if (!*name) full_name(plan, tensor, name);
}

/* Of letters, digits, _ and points? A last ' is left out. */
static bool is_simple(const char *name) {
    size_t n = 0;
    while (isalnum((unsigned char)name[n]) || name[n] == '_' || name[n] == '.') n++;
    return n > 0 && (!name[n] || (name[n] == '\'' && !name[n + 1]));
}

/* V' for V, and V for V'. */
static void flip(char name[NAME_TEXT]) {
    char own[NAME_TEXT];
    const size_t n = strlen(name);
    memcpy(own, name, n + 1);
    if (n > 0 && name[n - 1] == '\'') name[n - 1] = '\0';
    else snprintf(name, NAME_TEXT, is_simple(own) ? "%.120s'" : "(%.120s)'", own);
}

void name_of_tensor(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]) {
    const int twin = transposed ? twin_of(plan, tensor) : -1;
    short_name(plan, twin >= 0 ? twin : tensor, name);
    if (transposed && twin < 0) flip(name);
}

void name_of_gradient(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]) {
    char own[NAME_TEXT];
    name_of_tensor(plan, tensor, transposed, own);
    snprintf(name, NAME_TEXT, is_simple(own) ? "d%.120s" : "d(%.120s)", own);
}

void plain_text(const char *text, char *plain, size_t size) {
    for (; *text && size > 1; text++) {
        if (*text == '`') continue;
        *plain++ = *text;
        size--;
    }
    *plain = '\0';
}

void constant_text(double x, char text[NUMBER_TEXT]) {
    format_cell(x, format_of_constant(x), text);
}

/* ---- is a line linear? ----------------------------------------------------------------------- */

bool is_linear(const Plan *plan, const RuledLine *line) {
    const TapeTensor *y = &plan->tape.tensors[line->out];
    const double most = is_float32(y) ? 1e-5 : 1e-12;
    if (line->num_parts != num_inputs(line) || line->num_parts == 0) return false;
    for (int64_t j = 0; j < y->size; j++) {
        double sum = 0, size = 0;
        for (int n = 0; n < line->num_parts; n++) {
            const Jacobian *rows = &line->parts[n].rows;
            const double *x = plan->tape.tensors[line->parts[n].x].value;
            for (int64_t e = rows->begin[j]; e < rows->begin[j + 1]; e++) {
                sum += rows->of[e].J * x[rows->of[e].j];
                size += fabs(rows->of[e].J * x[rows->of[e].j]);
            }
        }
        if (y->value[j] != sum && !(fabs(y->value[j] - sum) <= most * size)) return false;
    }
    return true;
}

/* ---- items ----------------------------------------------------------------------------------- */

static void title(Formula *f, const char *text) { put_text(f->title, FORMULA_TEXT, "%s", text); }

static Item *add(Formula *f, ItemKind of, const char *text, const char *note) {
    Item *item = &f->items[f->count];
    f->count += !f->is_title && f->count < FORMULA_ITEMS - 1;
    *item = (Item){.of = of};
    snprintf(item->text, NAME_TEXT, "%s", text);
    snprintf(item->note, NOTE_TEXT, "%s", note);
    return item;
}

/* shown: how the title has it. */
static void sign(Formula *f, const char *text, const char *note, const char *shown) {
    add(f, ITEM_SIGN, text, note);
    title(f, shown);
}

/* A number whose text is at least so long has "1 / sqrt(3)" under it, if it is that. */
static void sign_number(Formula *f, double x, size_t least) {
    char text[NUMBER_TEXT], root[40] = "";
    const double square = round(1 / (x * x));
    constant_text(x, text);
    if (square > 1 && square < 1e5 && is_near(x * x * square, 1) && strlen(text) >= least)
        snprintf(root, sizeof root, "1 / sqrt(%g)", square);
    sign(f, text, root, text);
}

/* The title gets the name, too; a factor or a summand can need brackets: "(Y + Z)". */
static Item *add_table(Formula *f, ItemKind of, const TapeTensor *like, const double *numbers,
                       const char *name, const char *note) {
    const bool is_sum = strstr(name, " + ") || strstr(name, " - ") || strstr(name, " / ");
    const bool brackets = is_sum && of == ITEM_VALUE && *name != '(' && f->count > 0 && !f->is_list;
    Item *item = add(f, of, name, note);
    item->like = like;
    item->numbers = numbers;
    item->size = like->size;
    item->format = format_of(numbers, like->size);
    put_text(f->title, FORMULA_TEXT, brackets ? "(`%s`)" : "`%s`", name);
    return item;
}

static Item *add_value(const Plan *plan, Formula *f, int tensor, bool transposed,
                       const char *note) {
    char name[NAME_TEXT];
    const TapeTensor *x = &plan->tape.tensors[tensor];
    name_of_tensor(plan, tensor, transposed, name);
    Item *item = add_table(f, ITEM_VALUE, x, x->value, name, note);
    item->transposed = transposed;
    return item;
}

static Item *add_gradient(const Plan *plan, Formula *f, int tensor, bool transposed,
                          const double *numbers, const char *note) {
    char name[NAME_TEXT];
    name_of_gradient(plan, tensor, transposed, name);
    Item *item = add_table(f, ITEM_GRADIENT, &plan->tape.tensors[tensor], numbers, name, note);
    item->transposed = transposed;
    return item;
}

int formula_hide_value(const Plan *plan, Formula *f, int tensor) {
    const size_t used = strlen(f->title);
    add_value(plan, f, tensor, false, "")->is_hidden = true;
    f->title[used] = '\0';
    return f->count - 1;
}

int formula_hide_constants(Formula *f, const double *numbers, int64_t size) {
    Item *item = add(f, ITEM_CONSTANT, "", "");
    item->numbers = numbers;
    item->size = size;
    item->is_hidden = true;
    return f->count - 1;
}

/* ---- a tree ---------------------------------------------------------------------------------- */

/* What is shown of a tree: its tables and signs; of a fold the lines inside it, too. */
typedef struct {
    const Plan *plan;
    Tree *tree;
    const Unit *unit; /* names of results inside it become their formulas; NULL */
    Formula *f;
} Layout;

int tree_strength(char sign) {
    if (sign == '>') return 0;
    if (strchr("+-", sign)) return 1;
    return strchr("*/@~", sign) ? 2 : 3;
}

static void lay(const Layout *l, int n, int least, bool turned);
static void title_nested(const Plan *plan, const Unit *unit, int line, int least, Formula *f);

/* The tensor of the step with as many numbers, or rows, as a table has that is no tensor. */
static const TapeTensor *like_of(const Layout *l, const Dims *dims, bool is_row) {
    const Part *part = l->f->part;
    int tensors[TREE_TABLES + 2], n = 0;
    if (part) tensors[n++] = is_row ? part->x : part->y;
    if (part) tensors[n++] = is_row ? part->y : part->x;
    for (int t = 0; t < l->tree->num_tables; t++)
        if (l->tree->tables[t].tensor >= 0) tensors[n++] = l->tree->tables[t].tensor;
    for (int i = 0; i < n; i++) {
        const TapeTensor *x = &l->plan->tape.tensors[tensors[i]];
        if (x->size == dims_size(dims) * (is_row ? x->columns : 1)) return x;
    }
    return NULL;
}

static bool is_0_or_1(const double *numbers, int64_t size) {
    for (int64_t i = 0; i < size; i++)
        if (numbers[i] != 0 && numbers[i] != 1) return false;
    return true;
}

/* A table that is no tensor, by a word or a formula: of one number for each row, or of as many
 * numbers as a tensor. Any other is only named. The title has its name already. */
static Item *lay_own_table(const Layout *l, const char *name, const Dims *dims,
                           const double *numbers, bool is_sum) {
    const bool is_row = dims->rank > 0 && dims->size[dims->rank - 1] == 1 && is_sum;
    const TapeTensor *like = like_of(l, dims, is_row);
    if (!like) {
        char text[NAME_TEXT];
        plain_text(name, text, sizeof text);
        add(l->f, ITEM_SIGN, text, "");
        return NULL;
    }
    Item *item = add(l->f, is_row ? ITEM_SUM : ITEM_DERIVATIVE, name, "");
    item->like = like;
    item->numbers = numbers;
    item->size = dims_size(dims);
    item->format = format_of(numbers, item->size);
    item->is_word = true;
    item->is_small = !is_row && is_0_or_1(numbers, item->size) && strcmp(name, "derivative") != 0;
    if (item->is_small) strcpy(item->note, "1 or 0");
    if (!is_row) item->part = l->f->part;
    return item;
}

static void lay_table(const Layout *l, const TreeTable *table, int least, bool turned) {
    const bool is_list = l->f->is_list, is_value = table->tensor >= 0 && !table->is_gradient;
    const int inside = l->unit && is_value ? plan_line_in(l->plan, l->unit, table->tensor) : -1;
    l->f->is_list = least == 0; /* then a name needs no brackets */
    if (inside >= 0) title_nested(l->plan, l->unit, inside, least, l->f);
    else if (is_value) add_value(l->plan, l->f, table->tensor, turned, "");
    else if (table->is_gradient)
        add_gradient(l->plan, l->f, table->tensor, turned, table->numbers, "arrives");
    else {
        put_text(l->f->title, FORMULA_TEXT, "`%s`", table->name);
        lay_own_table(l, table->name, &table->dims, table->numbers, false);
    }
    l->f->is_list = is_list;
}

/* Is each row of a table weights, positive with the sum 1, or all 0? */
static bool is_weights(const TreeTable *table) {
    const int64_t size = dims_size(&table->dims);
    const int64_t columns = table->dims.rank > 0 ? table->dims.size[table->dims.rank - 1] : 1;
    bool any = false;
    for (int64_t first = 0; first < size; first += columns) {
        double sum = 0;
        for (int64_t i = first; i < first + columns; i++) {
            if (!(table->numbers[i] >= 0)) return false;
            sum += table->numbers[i];
        }
        if (sum != 0 && !(fabs(sum - 1) < 1e-5)) return false;
        any = any || sum != 0;
    }
    return any;
}

/* What the column of a sum is: that of weights times other numbers is their weighted mean. */
static const char *note_of_sum(const Tree *tree, const TreeNode *node) {
    const TreeNode *inside = &tree->nodes[node->a];
    const TreeNode *by = inside->sign == '*' ? &tree->nodes[inside->a] : NULL;
    const bool is_mean = strcmp(node->function, "sum") == 0 && by && by->sign == 't' &&
                         is_weights(&tree->tables[by->table]);
    return is_mean ? "weighted mean" : "";
}

/* What the title says of a node: "(x - m) / sqrt(v + 1e-05)". */
static void lay_inside(const Layout *l, int n, int least, char text[NAME_TEXT]) {
    const size_t used = strlen(l->f->title);
    const bool is_title = l->f->is_title;
    l->f->is_title = true;
    lay(l, n, least, false);
    l->f->is_title = is_title;
    snprintf(text, NAME_TEXT, "%.*s", NAME_TEXT - 1, l->f->title + used);
    l->f->title[used] = '\0';
}

/* A part, a sum, or a table of 0 and 1, that stands in a table of its own. */
static void lay_own(const Layout *l, int n) {
    TreeNode *node = &l->tree->nodes[n];
    char name[NAME_TEXT];
    double *numbers = node->own;
    node->own = NULL;
    if (node->sign == '=') snprintf(name, NAME_TEXT, "`%s`", node->name);
    else lay_inside(l, n, 0, name); /* its names stand in backquotes */
    node->own = numbers;
    title(l->f, name);
    if (l->f->is_title) return;
    Item *item = lay_own_table(l, name, &node->dims, numbers, node->sign != '>');
    if (!item) return;
    if (node->sign == '=') lay_inside(l, node->a, 0, item->note);
    else if (item->of == ITEM_SUM)
        snprintf(item->note, NOTE_TEXT, "%s", note_of_sum(l->tree, node));
    item->node = n;
    if (node->sign == '=') item->part = NULL; /* no derivatives, whose zeros have reasons */
    const bool is_sum = item->of == ITEM_SUM && node->sign == 'f';
    for (int i = 0; is_sum && i < l->f->count; i++) /* as the gradient beside it */
        if (l->f->items[i].of == ITEM_GRADIENT && i != l->f->main)
            item->format = l->f->items[i].format;
}

/* A sign between two operands; after a number, and between factors of a product of tables, it is a
 * blank in the title. */
static void lay_between(const Layout *l, const TreeNode *node) {
    const char text[2] = {node->sign}, spaced[4] = {' ', node->sign, ' '};
    const bool by_number = l->tree->nodes[node->a].sign == '#';
    if (node->sign == '@') sign(l->f, ".", "row . column", " ");
    else if (node->sign == 'M') sign(l->f, ",", "", ", ");
    else if (node->sign != '*') sign(l->f, text, "", spaced);
    else if (by_number) sign(l->f, "x", "", " ");
    else sign(l->f, "x", "number by number", " x ");
}

static void lay_two(const Layout *l, const TreeNode *node, bool turned) {
    const bool is_max = node->sign == 'M';
    const int own = is_max ? 0 : tree_strength(node->sign);
    if (is_max) sign(l->f, "max(", "", "max(");
    lay(l, node->a, own, turned);
    lay_between(l, node);
    lay(l, node->b, is_max ? 0 : own + !strchr("+*", node->sign), turned);
    if (is_max) sign(l->f, ")", "", ")");
}

static void lay_function(const Layout *l, const TreeNode *node, bool turned) {
    char open[16];
    const bool is_sum0 = strcmp(node->function, "sum0") == 0;
    snprintf(open, sizeof open, "%s(", node->function);
    if (is_sum0) sign(l->f, "sum of", "all rows", "sum of ");
    else sign(l->f, open, "", open);
    lay(l, node->a, is_sum0 ? 2 : 0, turned);
    if (!is_sum0) sign(l->f, ")", "", ")");
}

static bool reads_tables(const Tree *tree, int n) {
    const TreeNode *node = &tree->nodes[n];
    if (node->sign == 't') return true;
    return (node->a >= 0 && reads_tables(tree, node->a)) ||
           (node->b >= 0 && reads_tables(tree, node->b));
}

static void lay_node(const Layout *l, int n, int least, bool turned) {
    char text[20];
    Formula *f = l->f;
    const TreeNode *node = &l->tree->nodes[n];
    switch (node->sign) {
    case 't': lay_table(l, &l->tree->tables[node->table], least, turned); break;
    case '#': sign_number(f, node->number, 5); break;
    case 'E':
        lay(l, node->a, least, turned);
        if (n == l->tree->n - 1) sign(f, "", "for each number", ", for each number");
        break;
    case 'R':
        lay(l, node->a, least, turned);
        sign(f, ", row by row", "", ", row by row");
        break;
    case 'S':
        sign(f, "sum of", "all copies", "sum of ");
        lay(l, node->a, 2, turned);
        break;
    case '\'': lay(l, node->a, 3, !turned); break;
    case '~':
        sign(f, "-", "", "-");
        lay(l, node->a, 3, turned);
        break;
    case '^':
        snprintf(text, sizeof text, "^%g", l->tree->nodes[node->b].number);
        lay(l, node->a, 3, turned);
        sign(f, text, "", text);
        break;
    case 'f': lay_function(l, node, turned); break;
    default: lay_two(l, node, turned);
    }
}

static void lay(const Layout *l, int n, int least, bool turned) {
    char text[NAME_TEXT];
    const TreeNode *node = &l->tree->nodes[n];
    const bool brackets = tree_strength(node->sign) < least;
    if (node->own) lay_own(l, n);
    else if (!l->f->is_title && node->sign != '#' && !reads_tables(l->tree, n)) {
        lay_inside(l, n, least, text); /* numbers alone, "(1 - 0.25)", are one sign */
        sign(l->f, text, "", text);
    } else {
        if (brackets) sign(l->f, "(", "", "(");
        lay_node(l, n, least, turned);
        if (brackets) sign(l->f, ")", "", ")");
    }
}

static bool has_numbers(const Formula *f, const double *numbers) {
    bool has = false;
    for (int i = 0; i < f->count; i++) has = has || f->items[i].numbers == numbers;
    return has;
}

/* Behind the formula stand the parts of its parts, and what arrives, if only a part reads it. */
static void lay_tree(const Plan *plan, Tree *tree, Formula *f) {
    const Layout l = {plan, tree, NULL, f};
    lay(&l, tree->n - 1, 0, false);
    const size_t used = strlen(f->title);
    for (int n = tree->n - 1; n >= 0; n--) {
        bool is_there = tree->nodes[n].sign != '=';
        for (int i = 0; i < f->count; i++) is_there = is_there || f->items[i].node == n;
        if (is_there) continue;
        sign(f, "with", "", "");
        lay_own(&l, n);
    }
    for (int t = 0; t < tree->num_tables; t++) {
        if (!tree->tables[t].is_gradient || has_numbers(f, tree->tables[t].numbers)) continue;
        sign(f, "with", "", "");
        lay_table(&l, &tree->tables[t], 0, false);
    }
    f->title[used] = '\0';
}

/* ---- forward --------------------------------------------------------------------------------- */

static void add_main(const Plan *plan, Formula *f, int tensor) {
    const TapeTensor *y = &plan->tape.tensors[tensor];
    f->main = f->count;
    add_value(plan, f, tensor, false, y->rank > 0 ? "this step makes it" : "");
}

static bool is_read_before(const RuledLine *line, int k) {
    for (int n = 0; n < k; n++)
        if (line->in[n] == line->in[k]) return true;
    return line->in[k] < 0;
}

/* The tables that a line reads, each once. */
static void add_inputs(const Plan *plan, const RuledLine *line, Formula *f) {
    const char *comma = "";
    f->is_list = true;
    for (int k = 0; k < line->num_in; k++) {
        if (is_read_before(line, k)) continue;
        title(f, comma);
        add_value(plan, f, line->in[k], false, "");
        comma = ", ";
    }
}

static void make_moved(const Plan *plan, const Step *step, Formula *f) {
    const RuledLine *line = &plan->tape.lines[plan->units[step->unit].first];
    add_inputs(plan, line, f);
    sign(f, "->", "moves", " -> ");
    add_main(plan, f, step->tensor);
}

/* What only the parts of a line read, or no more than its derivatives: the positions of rope. */
static void add_unread(const Plan *plan, const RuledLine *line, Formula *f) {
    const size_t used = strlen(f->title);
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0 || has_numbers(f, plan->tape.tensors[line->in[k]].value)) continue;
        sign(f, "with", "", "");
        add_value(plan, f, line->in[k], false, "");
    }
    f->title[used] = '\0';
}

/* "E^2 = E^2" says nothing. */
static void make_ruled(const Plan *plan, const RuledLine *line, Formula *f) {
    char says[FORMULA_TEXT] = "";
    const int first = f->count + 1;
    sign(f, "=", "", " = ");
    const size_t used = strlen(f->title);
    lay_tree(plan, line->tree, f);
    add_unread(plan, line, f);
    for (int i = first; i < f->count; i++) put_text(says, sizeof says, "%s", f->items[i].text);
    if (strcmp(says, f->items[f->main].text) != 0) return;
    const char *x = f->items[first].text;
    f->title[used] = '\0';
    put_text(f->title, FORMULA_TEXT, "`%s` x `%s`, number by number", x, x);
}

/* Are its numbers so short that a table of them can be small? */
static bool is_short_table(const TapeTensor *x) {
    const Format format = format_of(x->value, x->size);
    char text[NUMBER_TEXT];
    for (int64_t i = 0; i < x->size; i++) {
        format_cell(x->value[i], format, text);
        if (strlen(text) > 3 && !isinf(x->value[i])) return false;
    }
    return true;
}

static void make_call(const Plan *plan, const RuledLine *line, Formula *f) {
    char name[NAME_TEXT], shown[NAME_TEXT + 4];
    int inputs = 0;
    const double factor = line->num_parts > 0 ? line->parts[0].factor : 0;
    for (int k = 0; k < line->num_in; k++) inputs += !is_read_before(line, k);
    if (factor != 0 && inputs < 2) strcpy(name, "softmax");
    else name_of_op(line, name);
    snprintf(shown, sizeof shown, "%s(", name);
    sign(f, "=", "", " = ");
    sign(f, name, "", shown);
    if (factor != 0 && fabs(factor - 1) > 1e-6) { /* "0.5774 x" */
        sign_number(f, factor, 0);
        sign(f, "x", "", " ");
    }
    const int first = f->count;
    add_inputs(plan, line, f);
    for (int i = first; i < f->count; i++)
        f->items[i].is_small =
            inputs > 1 && !f->items[i].like->grad && is_short_table(f->items[i].like);
    title(f, ")");
    f->by_rows = line->tree && line->num_parts > 0 && tree_goes_by_rows(line->tree) &&
                 plan->tape.tensors[line->out].rows > 1;
}

bool is_in_line(const RuledLine *line) {
    const Tree *tree = line->tree;
    bool has_parts = false;
    for (int n = 0; tree && n < tree->n; n++) has_parts = has_parts || tree->nodes[n].sign == '=';
    return tree && (has_parts || !tree_has_sum(tree, tree->n - 1));
}

static void make_line(const Plan *plan, const RuledLine *line, Formula *f) {
    add_main(plan, f, line->out);
    if (is_in_line(line)) make_ruled(plan, line, f);
    else make_call(plan, line, f);
}

/* ---- groups ---------------------------------------------------------------------------------- */

enum {
    MOST_INNER = 14 /* columns of the tables inside a group: more would be too small to read */
};
enum { MOST_NESTED = 4 /* lines of a group in one formula */ };

/* What a group reads from outside, tensor by tensor; the first line's tables come first. */
static void add_outside(const Plan *plan, const Unit *unit, Formula *f) {
    const int first = f->count;
    for (int l = unit->first; l <= unit->last; l++)
        for (int k = 0; k < plan->tape.lines[l].num_in; k++) {
            const int t = plan->tape.lines[l].in[k];
            bool is_there = t < 0 || plan_line_in(plan, unit, t) >= 0;
            for (int i = first; i < f->count; i++)
                is_there = is_there || f->items[i].like == &plan->tape.tensors[t];
            if (!is_there) add_value(plan, f, t, false, "");
        }
}

static int columns_of_group(const Plan *plan, const Unit *unit) {
    Formula inputs = {0};
    int64_t columns = 0;
    add_outside(plan, unit, &inputs);
    for (int i = 0; i < inputs.count; i++)
        columns += inputs.items[i].like->columns * inputs.items[i].like->panels;
    for (int l = unit->first; l <= unit->last; l++) {
        const TapeTensor *y = &plan->tape.tensors[plan->tape.lines[l].out];
        columns += y->columns * y->panels;
    }
    return (int)columns;
}

/* A line as a formula of what its group began with: sum((Y - T)^2). */
static void title_nested(const Plan *plan, const Unit *unit, int l, int least, Formula *f) {
    char name[NAME_TEXT];
    const RuledLine *line = &plan->tape.lines[l];
    const Layout nested = {plan, line->tree, unit, f};
    if (is_in_line(line)) {
        lay(&nested, line->tree->n - 1, least, false);
        return;
    }
    name_of_op(line, name);
    put_text(f->title, FORMULA_TEXT, "%s(", name);
    const char *comma = "";
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0) continue;
        title(f, comma);
        const int inside = plan_line_in(plan, unit, line->in[k]);
        name_of_tensor(plan, line->in[k], false, name);
        if (inside >= 0) title_nested(plan, unit, inside, 0, f);
        else put_text(f->title, FORMULA_TEXT, "`%s`", name);
        comma = ", ";
    }
    title(f, ")");
}

/* Folded lines as their formulas, the last one first: loss = sum E^2, E^2 = E^2, E = Y - T. */
static void add_chain(const Plan *plan, const Unit *unit, Formula *f) {
    char name[NAME_TEXT], text[NAME_TEXT];
    for (int l = unit->last; l >= unit->first; l--) {
        const RuledLine *line = &plan->tape.lines[l];
        name_of_tensor(plan, line->out, false, name);
        snprintf(text, sizeof text, ", %.120s =", name);
        sign(f, l == unit->last ? "=" : text, "", "");
        if (is_in_line(line)) lay_tree(plan, line->tree, f);
        if (is_in_line(line)) continue;
        name_of_op(line, name);
        sign(f, name, "", "");
        add_inputs(plan, line, f);
    }
}

static void make_group(const Plan *plan, const Unit *unit, Formula *f) {
    char lines[24], name[NAME_TEXT];
    const int count = unit->last - unit->first + 1;
    const int out = plan->tape.lines[unit->last].out;
    snprintf(lines, sizeof lines, "%d lines", count);
    add_main(plan, f, out);
    const size_t used = strlen(f->title);
    if (columns_of_group(plan, unit) <= MOST_INNER) add_chain(plan, unit, f);
    else {
        sign(f, "<-", lines, "");
        add_outside(plan, unit, f);
    }
    f->title[used] = '\0'; /* it is not that of the tables */
    full_name(plan, out, name);
    if (count <= MOST_NESTED) {
        title(f, " = ");
        f->is_title = true;
        title_nested(plan, unit, unit->last, 0, f);
        f->is_title = false;
    } else if (strcmp(unit->name, name) == 0) put_text(f->title, FORMULA_TEXT, ": %s", lines);
    else put_text(f->title, FORMULA_TEXT, ": %s, %s", unit->name, lines);
}

static void make_forward(const Plan *plan, const Step *step, Formula *f) {
    const Unit *unit = &plan->units[step->unit];
    if (step->moves) make_moved(plan, step, f);
    else if (unit->name) make_group(plan, unit, f);
    else make_line(plan, &plan->tape.lines[unit->last], f);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Of a move, and where only the terms say what happens. */
static void make_arrow(const Plan *plan, const Step *step, Formula *f) {
    char op[NAME_TEXT];
    const Part *part = step->part;
    const RuledLine *line = &plan->tape.lines[part->line];
    const char *gradient = json_text(line->json, "gradient", "");
    const char *says = part->is_odd ? "your rule" : gradient;
    name_of_op(line, op);
    if (part->is_odd) sign(f, "<-", "your rule", " = ");
    else sign(f, "<-", part->moves ? "moves back" : op, " <- ");
    const size_t used = strlen(f->title);
    add_gradient(plan, f, part->y, false, plan->tape.tensors[part->y].grad, "arrives");
    if (!*says || (part->moves && !part->is_odd)) return;
    f->title[used] = '\0';
    title(f, says);
}

static void make_backward(const Plan *plan, const Step *step, Formula *f) {
    const Part *part = step->part;
    const TapeTensor *x = &plan->tape.tensors[part->x];
    char note[40];
    if (x->parts > 1) snprintf(note, sizeof note, "one of %d parts", x->parts);
    else strcpy(note, x->maker >= 0 ? "this step finds it" : "here it ends");
    add_gradient(plan, f, part->x, false, part->dx, note)->part = part;
    f->part = part;
    Tree *tree = part->moves ? step->product : part->tree;
    if (!tree) {
        make_arrow(plan, step, f);
        return;
    }
    sign(f, "=", "", " = ");
    lay_tree(plan, tree, f);
    f->by_rows = tree_goes_by_rows(tree) && x->rows > 1;
}

/* ---- the others ------------------------------------------------------------------------------ */

enum { MOST_SUMMANDS = 4 /* tables side by side: of more, those that came before are their sum */ };

/* The parts of a gradient share a format. */
static void share_format(Plan *plan, const Step *step, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    const int n = x->parts;
    double *all = memory_take(&plan->tape.memory, (n + 1) * x->size, sizeof *all);
    if (!all) return;
    memcpy(all, x->grad, (size_t)x->size * sizeof *all);
    for (int k = 0; k < n; k++)
        memcpy(all + (k + 1) * x->size, x->part[k]->dx, (size_t)x->size * sizeof *all);
    const Format format = format_of(all, (n + 1) * x->size);
    for (int i = 0; i < f->count; i++)
        if (f->items[i].numbers) f->items[i].format = format;
}

/* The parts of a gradient that have arrived, added in the order and the type of backward. */
static void make_addition(Plan *plan, const Step *step, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    char name[NAME_TEXT], note[40] = "complete";
    const int n = step->part->number + 1;
    const bool complete = n == x->parts;
    if (!complete) snprintf(note, sizeof note, "%d of %d so far", n, x->parts);
    Item *main = add_gradient(plan, f, step->tensor, false, step->numbers, note);
    main->parts = complete ? 0 : n;
    sign(f, "=", "", complete ? " = " : " so far = ");
    const int before = n > MOST_SUMMANDS ? n - 1 : 0;
    if (before > 0) {
        snprintf(note, sizeof note, "%d parts", before);
        const double *sum = sum_of_parts(plan, step->tensor, before);
        if (!sum) return;
        title(f, "what came ");
        Item *item = add_table(f, ITEM_BEFORE, x, sum, "before", note);
        item->parts = before;
        item->is_word = true;
    }
    for (int k = before; k < n; k++) {
        if (k > 0) sign(f, "+", "", " + ");
        title(f, "from ");
        name_of_tensor(plan, x->part[k]->y, false, name);
        add_table(f, ITEM_PART, x, x->part[k]->dx, name, k == n - 1 ? "added now" : "")->part =
            x->part[k];
    }
    share_format(plan, step, f);
}

static void make_start(const Plan *plan, const Step *step, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    const bool is_one = x->size == 1 && x->grad[0] == 1;
    add_gradient(plan, f, step->tensor, false, x->grad, is_one ? "" : "it was given");
    title(f, is_one ? " = 1" : " was given");
}

/* The tables of the numbers that learn. */
static void make_sgd(const Plan *plan, Formula *f) {
    const Json *rate = json_get(json_get(plan->lesson, "sgd"), "rate");
    char rest[FORMULA_TEXT] = "", first[NAME_TEXT] = "W";
    f->is_list = true;
    for (int t = 0; t < plan->tape.num_tensors; t++) {
        const TapeTensor *x = &plan->tape.tensors[t];
        if (x->maker >= 0 || !x->grad) continue;
        add_value(plan, f, t, false, "");
        char *name = f->items[f->count - 1].text;
        if (f->count == 1) snprintf(first, NAME_TEXT, "%s", name);
        else put_text(rest, FORMULA_TEXT, f->count == 2 ? ", and so `%s`" : " and `%s`", name);
    }
    if (f->count > 3) snprintf(rest, FORMULA_TEXT, ", and so the other %d", f->count - 1);
    snprintf(f->title, FORMULA_TEXT, "`%s` <- `%s` - %g `d%s`", first, first, json_number(rate),
             first);
    title(f, rest);
}

void formula_of(Plan *plan, const Step *step, Formula *f) {
    *f = (Formula){.count = 0};
    switch (step->phase) {
    case STEP_COVER: break;
    case STEP_FORWARD: make_forward(plan, step, f); break;
    case STEP_START: make_start(plan, step, f); break;
    case STEP_BACKWARD: make_backward(plan, step, f); break;
    case STEP_ADD: make_addition(plan, step, f); break;
    case STEP_TWICE:
        snprintf(f->title, FORMULA_TEXT, "`grad` <- `grad` + `dW`, for each leaf");
        break;
    case STEP_SGD: make_sgd(plan, f); break;
    case STEP_CARD: snprintf(f->title, FORMULA_TEXT, "The way back, from memory");
    }
}
