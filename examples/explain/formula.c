/* formula.c - a step as its formula, with its tables: see formula.h.
 *
 * The sections: names, formulas of the data, items, forward, groups, backward, the others. */
#include "formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

int twin_of(const Plan *plan, int tensor) {
    const Json *pair = json_first(plan->lesson, "transposed");
    int twin = -1;
    for (; pair; pair = pair->next) {
        const int64_t t = json_integer(pair, "tensor", -1), of = json_integer(pair, "of", -1);
        if (t < 0 || of < 0 || t >= plan->tape.num_tensors || of >= plan->tape.num_tensors)
            continue;
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

void constant_text(double x, char text[NUMBER_TEXT]) {
    format_cell(x, format_of_constant(x), text);
}

/* ---- formulas of the data -------------------------------------------------------------------- */

static bool is_argument_of_op(const char *name, size_t n) {
    static const char arguments[] =
        " s p n list scale dim dim0 dim1 dims keepdim shape axes start end size repeats diagonal "
        "dtype num_heads dropout eps reduction ignore_index ";
    char word[NAME_TEXT];
    snprintf(word, sizeof word, " %.*s ", (int)(n < 100 ? n : 100), name);
    return strstr(arguments, word) != NULL;
}

/* What the op's call names input k: b in ag_linear(x, w, b). The last name stands for all further
 * inputs. False: it has no name. */
static bool role_of(const RuledLine *line, int k, char role[NAME_TEXT]) {
    const char *at = strchr(json_text(line->json, "call", ""), '(');
    int names = 0;
    *role = '\0';
    for (at = at ? at + 1 : ""; *at && names <= k;) {
        const size_t n = strcspn(at, ",)");
        if (n > 0 && !is_argument_of_op(at, n)) {
            snprintf(role, NAME_TEXT, "%.*s", (int)n, at);
            names++;
        }
        at += n + strspn(at + n, ",) ");
    }
    return names > 0;
}

/* The input that a formula calls by this word; -1: none. */
static int input_called(const RuledLine *line, const char *word) {
    char role[NAME_TEXT];
    for (int k = line->num_in - 1; k >= 0; k--)
        if (line->in[k] >= 0 && role_of(line, k, role) && strcmp(role, word) == 0) return k;
    return -1;
}

static Token *add_token(Token *tokens, int *count, int tensor, const char *text) {
    Token *token = &tokens[*count];
    *count += *count < FORMULA_ITEMS - 1;
    *token = (Token){.tensor = tensor};
    snprintf(token->text, sizeof token->text, "%.23s", text);
    return token;
}

/* Adds a word of a formula: an input, an argument of the op, a sign; false if it is none of them.
 */
static bool add_word(const RuledLine *line, const char *word, Token *tokens, int *count) {
    char text[NUMBER_TEXT];
    const int k = input_called(line, word);
    const Token *last = *count > 0 ? &tokens[*count - 1] : NULL;
    const bool raised = last && strcmp(last->text, "^") == 0;
    const bool is_argument = strcmp(word, "s") == 0 || strcmp(word, "p") == 0;
    const Json *argument = is_argument ? json_get(line->json, word) : NULL;
    if (k >= 0) {
        if (last && (last->tensor >= 0 || last->is_number)) add_token(tokens, count, -1, "x");
        add_token(tokens, count, line->in[k], "");
        return !raised;
    }
    if (strlen(word) > 1 && isalpha((unsigned char)*word) && strcmp(word, "max") != 0) return false;
    if (argument) constant_text(json_number(argument), text);
    else snprintf(text, sizeof text, "%.30s", word);
    if (raised) put_text(tokens[*count - 1].text, sizeof tokens->text, "%s", text);
    else {
        Token *token = add_token(tokens, count, -1, text);
        token->is_number = argument != NULL;
        token->number = json_number(argument);
    }
    return true;
}

int formula_tokens(const Plan *plan, const RuledLine *line, Token tokens[FORMULA_ITEMS]) {
    const char *at = json_text(line->json, "formula", "");
    const char *end = at + strcspn(at, ";");
    const TapeTensor *y = &plan->tape.tensors[line->out];
    int count = 0;
    if (strstr(at, "max x") || strstr(at, "exp")) return 0;
    while (at < end) {
        char word[32];
        size_t n = 0;
        while (isalpha((unsigned char)at[n]) && n < sizeof word - 1) n++;
        snprintf(word, sizeof word, "%.*s", (int)(n ? n : 1), at);
        if (*word != ' ' && !add_word(line, word, tokens, &count)) return 0;
        at += n ? n : 1;
    }
    for (int n = 0; n < count; n++)
        if (tokens[n].tensor >= 0 && !can_broadcast(&plan->tape.tensors[tokens[n].tensor], y))
            return 0;
    return count < FORMULA_ITEMS - 1 && (count == 0 || strcmp(tokens[count - 1].text, "^") != 0)
               ? count
               : 0;
}

const Part *weights_of(const RuledLine *line) {
    for (int n = 0; n < line->num_parts; n++)
        if (line->parts[n].right_factor != 0) return &line->parts[n];
    return NULL;
}

bool is_linear(const Plan *plan, const RuledLine *line) {
    const TapeTensor *y = &plan->tape.tensors[line->out];
    const double most = is_float32(y) ? 1e-5 : 1e-12;
    int inputs = 0;
    for (int k = 0; k < line->num_in; k++) inputs += line->in[k] >= 0;
    if (line->num_parts != inputs || inputs == 0) return false;
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
    f->count += f->count < FORMULA_ITEMS - 1;
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

static void sign_number(Formula *f, double number, const char *text, const char *note,
                        const char *shown) {
    Item *item = add(f, ITEM_SIGN, text, note);
    item->is_number = true;
    item->number = number;
    title(f, shown);
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

/* A table whose name is a word. */
static Item *add_word_table(Formula *f, ItemKind of, const TapeTensor *like, const double *numbers,
                            const char *name, const char *note) {
    const size_t used = strlen(f->title);
    Item *item = add_table(f, of, like, numbers, name, note);
    item->is_word = true;
    f->title[used] = '\0';
    title(f, name);
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

static Item *add_dy(const Plan *plan, Formula *f, const Part *part, bool transposed) {
    return add_gradient(plan, f, part->y, transposed, plan->tape.tensors[part->y].grad, "arrives");
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

int formula_hide_like(Formula *f, int item, const double *numbers) {
    Item *hidden = add(f, ITEM_SIGN, "", "");
    *hidden = f->items[item];
    hidden->numbers = numbers;
    hidden->is_hidden = true;
    return f->count - 1;
}

/* "2 x" before a table, and "2 " in the title. */
static void add_factor(Formula *f, double number, const char *note) {
    char text[NUMBER_TEXT], shown[NUMBER_TEXT + 4];
    constant_text(number, text);
    snprintf(shown, sizeof shown, "%s ", text);
    sign_number(f, number, text, note, shown);
    sign(f, "x", "", "");
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

static void make_product(const Plan *plan, const RuledLine *line, Formula *f) {
    const Product *p = &line->product;
    sign(f, "=", "", " = ");
    add_value(plan, f, line->in[p->a], false, "");
    sign(f, ".", "row . column", " ");
    add_value(plan, f, line->in[p->b], p->flipped, "");
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0 || k == p->a || k == p->b) continue;
        sign(f, "+", "", " + ");
        add_value(plan, f, line->in[k], false, "");
    }
}

/* A sign of a formula as a title has it: a product has none. */
static void shown_sign(const char *text, char shown[32]) {
    const bool is_apart = strchr("+-/", *text) && !text[1];
    if (strcmp(text, "x") == 0) strcpy(shown, " ");
    else if (strcmp(text, ",") == 0) strcpy(shown, ", ");
    else snprintf(shown, 32, is_apart ? " %.24s " : "%.24s", text);
}

static void add_tokens(const Plan *plan, const Token *tokens, int count, Formula *f) {
    char shown[32];
    for (int n = 0; n < count; n++) {
        const bool is_factor = strcmp(tokens[n].text, "x") == 0 && tokens[n - 1].tensor >= 0;
        shown_sign(tokens[n].text, shown);
        if (tokens[n].tensor >= 0) add_value(plan, f, tokens[n].tensor, false, "");
        else if (tokens[n].is_number) sign_number(f, tokens[n].number, tokens[n].text, "", shown);
        else sign(f, tokens[n].text, is_factor ? "number by number" : "", shown);
    }
}

/* "E^2 = E^2" says nothing. */
static void make_by_number(const Plan *plan, const Token *tokens, int count, Formula *f) {
    char says[FORMULA_TEXT] = "";
    const int first = f->count + 1;
    sign(f, "=", "", " = ");
    const size_t used = strlen(f->title);
    add_tokens(plan, tokens, count, f);
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

/* "0.5774 x", with 1 / sqrt(3) under it. */
static void add_scale(Formula *f, double s) {
    char root[40] = "";
    const double square = round(1 / (s * s));
    if (fabs(s - 1) <= 1e-6) return;
    if (square > 1 && is_near(s * s * square, 1))
        snprintf(root, sizeof root, "1 / sqrt(%g)", square);
    add_factor(f, s, root);
}

/* Is each row of the result made from the same row of the tables alone? */
static bool is_by_rows(const Plan *plan, const RuledLine *line) {
    const TapeTensor *y = &plan->tape.tensors[line->out];
    for (int n = 0; n < line->num_parts; n++)
        if (!line->parts[n].is_right_rowwise) return false;
    for (int k = 0; k < line->num_in; k++) {
        const TapeTensor *x = line->in[k] < 0 ? y : &plan->tape.tensors[line->in[k]];
        if (x->rows > 1 && (x->rows != y->rows || x->panels != y->panels)) return false;
    }
    return line->num_parts > 0 && y->rows > 1;
}

static void make_call(const Plan *plan, const RuledLine *line, Formula *f) {
    char name[NAME_TEXT], shown[NAME_TEXT + 4];
    int inputs = 0;
    const Part *weights = weights_of(line);
    for (int k = 0; k < line->num_in; k++) inputs += !is_read_before(line, k);
    if (weights && inputs < 2) strcpy(name, "softmax");
    else name_of_op(line, name);
    snprintf(shown, sizeof shown, "%s(", name);
    sign(f, "=", "", " = ");
    sign(f, name, "", shown);
    if (weights) add_scale(f, weights->right_factor);
    const int first = f->count;
    add_inputs(plan, line, f);
    for (int i = first; i < f->count; i++)
        f->items[i].is_small =
            inputs > 1 && !f->items[i].like->grad && is_short_table(f->items[i].like);
    title(f, ")");
    f->by_rows = is_by_rows(plan, line);
}

void formula_of_line(const Plan *plan, const RuledLine *line, Formula *f) {
    Token tokens[FORMULA_ITEMS];
    add_main(plan, f, line->out);
    const int count = formula_tokens(plan, line, tokens);
    if (line->product.P > 0) make_product(plan, line, f);
    else if (count > 0) make_by_number(plan, tokens, count, f);
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

static void title_nested(const Plan *plan, const Unit *unit, int l, Formula *f);

static void title_inner(const Plan *plan, const Unit *unit, int tensor, bool brackets, Formula *f) {
    char name[NAME_TEXT];
    const int l = plan_line_in(plan, unit, tensor);
    name_of_tensor(plan, tensor, false, name);
    if (l < 0) put_text(f->title, FORMULA_TEXT, "`%s`", name);
    if (l >= 0 && brackets) title(f, "(");
    if (l >= 0) title_nested(plan, unit, l, f);
    if (l >= 0 && brackets) title(f, ")");
}

/* A line as a formula of what its group began with: sum((Y - T)^2). */
static void title_nested(const Plan *plan, const Unit *unit, int l, Formula *f) {
    char name[NAME_TEXT], shown[32];
    Token tokens[FORMULA_ITEMS];
    const RuledLine *line = &plan->tape.lines[l];
    const int count = formula_tokens(plan, line, tokens);
    for (int n = 0; n < count; n++) {
        shown_sign(tokens[n].text, shown);
        if (tokens[n].tensor >= 0) title_inner(plan, unit, tokens[n].tensor, count > 1, f);
        else title(f, shown);
    }
    if (count > 0) return;
    name_of_op(line, name);
    put_text(f->title, FORMULA_TEXT, "%s(", name);
    const char *comma = "";
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0) continue;
        title(f, comma);
        title_inner(plan, unit, line->in[k], false, f);
        comma = ", ";
    }
    title(f, ")");
}

/* Folded lines as their formulas, the last one first: loss = sum E^2, E^2 = E^2, E = Y - T. */
static void add_chain(const Plan *plan, const Unit *unit, Formula *f) {
    Token tokens[FORMULA_ITEMS];
    char name[NAME_TEXT], text[NAME_TEXT];
    for (int l = unit->last; l >= unit->first; l--) {
        const RuledLine *line = &plan->tape.lines[l];
        name_of_tensor(plan, line->out, false, name);
        snprintf(text, sizeof text, ", %.120s =", name);
        sign(f, l == unit->last ? "=" : text, "", "");
        const int count = formula_tokens(plan, line, tokens);
        add_tokens(plan, tokens, count, f);
        if (count > 0) continue;
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
        title_nested(plan, unit, unit->last, f);
    } else if (strcmp(unit->name, name) == 0) put_text(f->title, FORMULA_TEXT, ": %s", lines);
    else put_text(f->title, FORMULA_TEXT, ": %s, %s", unit->name, lines);
}

/* The angles of the pairs, as a table. */
static void add_angles(const Plan *plan, const Part *part, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[part->x];
    add_word_table(f, ITEM_DERIVATIVE, x, part->angles, "angle", "of its pair, in radians")->part =
        part;
    f->by_rows = x->rows > 1;
}

/* y = x turned by the angle, which comes from the other inputs. */
static void make_turn(const Plan *plan, const Step *step, Formula *f) {
    const RuledLine *line = &plan->tape.lines[plan->units[step->unit].last];
    const Part *part = &line->parts[0];
    add_main(plan, f, step->tensor);
    sign(f, "=", "", " = ");
    add_value(plan, f, part->x, false, "");
    sign(f, "turned by", "", " turned by each pair's ");
    add_angles(plan, part, f);
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] == part->x || is_read_before(line, k)) continue;
        sign(f, "from", "", " from ");
        add_value(plan, f, line->in[k], false, "")->is_small = true;
    }
}

static void make_forward(const Plan *plan, const Step *step, Formula *f) {
    const Unit *unit = &plan->units[step->unit];
    if (step->kind == RULE_MOVE) make_moved(plan, step, f);
    else if (step->kind == RULE_TURN) make_turn(plan, step, f);
    else if (unit->name) make_group(plan, unit, f);
    else formula_of_line(plan, &plan->tape.lines[unit->last], f);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Are these numbers those of x, times a number that the formula can print? Returns that number, or
 * 0. */
static double ratio_of(const double *numbers, const TapeTensor *x) {
    char text[NUMBER_TEXT];
    int64_t n = 0;
    while (n < x->size && x->value[n] == 0) n++;
    const double times = n < x->size ? numbers[n] / x->value[n] : 0;
    if (times == 0) return 0;
    constant_text(times, text);
    if (!is_near(times, strtod(text, NULL))) return 0;
    for (int64_t i = 0; i < x->size; i++)
        if (!is_near(numbers[i], times * x->value[i])) return 0;
    return times;
}

static bool is_whole(const TapeTensor *x) {
    const char *type = json_text(x->json, "type", "");
    return strcmp(type, "int64") == 0 || strcmp(type, "bool") == 0;
}

int multiple_of(const Plan *plan, const Step *step, double *times) {
    const RuledTape *tape = &plan->tape;
    const Part *part = step->part;
    const Unit *unit = &plan->units[step->unit];
    const int64_t size = tape->tensors[part->kind == RULE_SPREAD ? part->x : part->y].size;
    for (int l = unit->first; part->each && l <= unit->last; l++)
        for (int k = 0; k <= tape->lines[l].num_in; k++) {
            const RuledLine *line = &tape->lines[l];
            const int t = k < line->num_in ? line->in[k] : line->out;
            if (t < 0 || tape->tensors[t].size != size || is_whole(&tape->tensors[t])) continue;
            *times = ratio_of(part->each, &tape->tensors[t]);
            if (*times != 0) return t;
        }
    return -1;
}

/* The derivatives as a table: a tensor of the step's lines if they are that tensor's numbers, or a
 * multiple of them, 2 x E; else one of their own. */
static void add_derivatives(const Plan *plan, const Step *step, Formula *f) {
    char y[NAME_TEXT], x[NAME_TEXT], note[2 * NAME_TEXT + 20];
    double times = 1;
    const Part *part = step->part;
    const int like = part->kind == RULE_SPREAD ? part->x : part->y;
    const int t = multiple_of(plan, step, &times);
    if (t < 0) {
        name_of_tensor(plan, part->y, false, y);
        name_of_tensor(plan, part->x, false, x);
        snprintf(note, sizeof note, "of `%s` by `%s`", y, x);
        add_word_table(f, ITEM_DERIVATIVE, &plan->tape.tensors[like], part->each, "derivative",
                       note)
            ->part = part;
        return;
    }
    if (times != 1) add_factor(f, times, "");
    add_value(plan, f, t, false, "");
}

/* dx = dy times the derivative in its place. A constant derivative is a number. */
static void make_each(const Plan *plan, const Step *step, Formula *f) {
    const Part *part = step->part;
    if (part->copies) sign(f, "sum of", "all copies", "sum of ");
    if (part->is_constant && part->constant == -1) sign(f, "-", "", "-");
    else if (part->is_constant && part->constant != 1) add_factor(f, part->constant, "");
    add_dy(plan, f, part, false);
    if (part->is_constant) return;
    sign(f, "x", "number by number", " x ");
    add_derivatives(plan, step, f);
}

/* One dy for several x: each gets it, times its derivative. */
static void make_spread(const Plan *plan, const Step *step, Formula *f) {
    char text[NUMBER_TEXT], by[NUMBER_TEXT + 4];
    const Part *part = step->part;
    add_dy(plan, f, part, false);
    constant_text(part->constant, text);
    snprintf(by, sizeof by, "x %s", text);
    if (part->is_constant) sign(f, by, "for each", ", for each number");
    if (part->is_constant) return;
    sign(f, "x", "", " x ");
    add_derivatives(plan, step, f);
}

/* da = dy b', and db = a' dy. A factor stands as it has to be read: transposed, unless it was used
 * transposed. */
static void make_factors(const Plan *plan, const Part *part, Formula *f) {
    const RuledLine *line = &plan->tape.lines[part->line];
    const Product *p = &line->product;
    const bool by_a = part->k == p->a, first = by_a || p->flipped;
    const int other = line->in[by_a ? p->b : p->a];
    for (int n = 0; n < 2; n++) {
        if (n) sign(f, ".", "row . column", " ");
        if (first == (n == 0)) add_dy(plan, f, part, !by_a && p->flipped);
        else add_value(plan, f, other, !p->flipped, "as it was");
    }
}

/* dx = s y (dy - mean of the row), the mean weighted by y. */
static void make_softmax(const Plan *plan, const Part *part, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[part->x];
    add_scale(f, part->factor);
    add_value(plan, f, part->y, false, "weights");
    sign(f, "x", "number by number", " x ");
    sign(f, "(", "", "(");
    const Item *dy = add_dy(plan, f, part, false);
    sign(f, "-", "", " - weighted mean");
    Item *mean = add(f, ITEM_MEAN, "weighted mean", "");
    mean->like = x;
    mean->numbers = part->means;
    mean->size = x->size / x->columns;
    mean->format = dy->format;
    mean->is_word = true;
    sign(f, ")", "", ")");
    f->by_rows = x->rows > 1;
}

/* dx = dy turned back by the angle of each pair. */
static void make_turn_back(const Plan *plan, const Part *part, Formula *f) {
    add_dy(plan, f, part, false);
    sign(f, "turned back by", "", " turned back by each pair's ");
    add_angles(plan, part, f);
}

/* Of a move, and where only the terms say what happens. */
static void make_arrow(const Plan *plan, const Step *step, Formula *f) {
    char op[NAME_TEXT];
    const Part *part = step->part;
    const RuledLine *line = &plan->tape.lines[part->line];
    const char *gradient = json_text(line->json, "gradient", "");
    const char *says = part->is_odd ? "your rule" : gradient;
    name_of_op(line, op);
    if (part->is_odd) sign(f, "<-", "your rule", " = ");
    else sign(f, "<-", part->kind == RULE_MOVE ? "moves back" : op, " <- ");
    const size_t used = strlen(f->title);
    add_dy(plan, f, part, false);
    if (!*says || (part->kind == RULE_MOVE && !part->is_odd)) return;
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
    if (part->is_odd || part->kind == RULE_MOVE || part->kind == RULE_GENERAL) {
        make_arrow(plan, step, f);
        return;
    }
    sign(f, "=", "", " = ");
    if (part->kind == RULE_PRODUCT) make_factors(plan, part, f);
    else if (part->kind == RULE_SOFTMAX) make_softmax(plan, part, f);
    else if (part->kind == RULE_EACH) make_each(plan, step, f);
    else if (part->kind == RULE_TURN) make_turn_back(plan, part, f);
    else make_spread(plan, step, f);
}

/* ---- the others ------------------------------------------------------------------------------ */

enum { MOST_SUMMANDS = 4 /* tables side by side: of more, those that came before are their sum */ };

/* The parts of a gradient share a format. */
static void share_format(Plan *plan, const Step *step, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    const Part *parts[MOST_PARTS];
    int n = parts_of(plan, step->tensor, parts, MOST_PARTS);
    if (n > MOST_PARTS) n = MOST_PARTS;
    double *all = memory_take(&plan->tape.memory, (n + 1) * x->size, sizeof *all);
    if (!all) return;
    memcpy(all, x->grad, (size_t)x->size * sizeof *all);
    for (int k = 0; k < n; k++)
        memcpy(all + (k + 1) * x->size, parts[k]->dx, (size_t)x->size * sizeof *all);
    const Format format = format_of(all, (n + 1) * x->size);
    for (int i = 0; i < f->count; i++)
        if (f->items[i].numbers) f->items[i].format = format;
}

/* The parts of a gradient that have arrived, added in the order and the type of backward. */
static void make_addition(Plan *plan, const Step *step, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    const Part *parts[MOST_PARTS];
    char name[NAME_TEXT], note[40] = "complete";
    int n = parts_until(plan, step, parts, MOST_PARTS);
    const bool complete = n == x->parts;
    if (!complete) snprintf(note, sizeof note, "%d of %d so far", n, x->parts);
    Item *main = add_gradient(plan, f, step->tensor, false, step->numbers, note);
    main->parts = complete ? 0 : n;
    sign(f, "=", "", complete ? " = " : " so far = ");
    if (n > MOST_PARTS) n = MOST_PARTS;
    const int before = n > MOST_SUMMANDS ? n - 1 : 0;
    if (before > 0) {
        snprintf(note, sizeof note, "%d parts", before);
        const double *sum = sum_of_parts(plan, parts, before);
        if (!sum) return;
        title(f, "what came ");
        add_word_table(f, ITEM_BEFORE, x, sum, "before", note)->parts = before;
    }
    for (int k = before; k < n; k++) {
        if (k > 0) sign(f, "+", "", " + ");
        title(f, "from ");
        name_of_tensor(plan, parts[k]->y, false, name);
        add_table(f, ITEM_PART, x, parts[k]->dx, name, k == n - 1 ? "added now" : "")->part =
            parts[k];
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
    case STEP_SGD: make_sgd(plan, f); break;
    case STEP_CARD: snprintf(f->title, FORMULA_TEXT, "The way back, from memory");
    }
}
