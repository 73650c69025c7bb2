/* worked.c - what each number of a step is made of: see worked.h.
 *
 * The sections: forms forward, forms backward, elements forward, elements backward, lines. */
#include "worked.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AFTER_EQUALS = 2 }; /* items: "dA" and "=" stand before */

/* ---- forms forward --------------------------------------------------------------------------- */

/* The item with these numbers; -1 if there is none. What the step makes is not looked at. */
static int find_item(const Plan *plan, const Formula *f, ItemKind of, int tensor) {
    for (int i = 0; i < f->count; i++)
        if (f->items[i].of == of && i != f->main &&
            (of == ITEM_MEAN || of == ITEM_DERIVATIVE ||
             f->items[i].like == &plan->tape.tensors[tensor]))
            return i;
    return -1;
}

static int value_item(const Plan *plan, Formula *f, int tensor) {
    const int found = find_item(plan, f, ITEM_VALUE, tensor);
    return found >= 0 ? found : formula_hide_value(plan, f, tensor);
}

/* The items of a line's inputs. */
static void find_inputs(const Plan *plan, Formula *f, Recipe *r) {
    for (int k = 0; k < r->line->num_in && k < FORMULA_ITEMS; k++)
        r->items[k] = r->line->in[k] < 0 ? -1 : value_item(plan, f, r->line->in[k]);
}

/* The form of the items from `first` on: the formula, with @2 for a table and {2} for a number.
 * places: the numbers of the items in the formula of the step; NULL: it is this one. */
static void form_of_items(const Formula *f, int first, const int *places, char form[FORM_TEXT]) {
    for (int i = first; i < f->count; i++) {
        const Item *item = &f->items[i];
        const char *text = item->text;
        const bool begins_terms = i + 1 < f->count && strcmp(item[1].text, ".") == 0;
        const bool ends_terms = strcmp(item[-1].text, ".") == 0;
        if (item->numbers)
            put_text(form, FORM_TEXT, "%s@%d%s", begins_terms ? "[" : "", places ? places[i] : i,
                     ends_terms ? "]" : "");
        else if (item->is_number) put_text(form, FORM_TEXT, "{%.17g}", item->number);
        else if (strcmp(text, ".") == 0) put_text(form, FORM_TEXT, " x ");
        else if (strcmp(text, ",") == 0) put_text(form, FORM_TEXT, ", ");
        else if (strchr("-+x/", *text) && !text[1] && *form)
            put_text(form, FORM_TEXT, " %s ", text);
        else put_text(form, FORM_TEXT, "%s", text);
    }
}

/* Of a line that is a formula. A fold may lack its tables. */
static void form_of_line(const Plan *plan, Formula *f, Recipe *r) {
    Formula own = {.count = 0};
    int places[FORMULA_ITEMS] = {0};
    formula_of_line(plan, r->line, &own);
    for (int i = AFTER_EQUALS; i < own.count; i++)
        if (own.items[i].numbers)
            places[i] = value_item(plan, f, (int)(own.items[i].like - plan->tape.tensors));
    form_of_items(&own, AFTER_EQUALS, places, r->form);
}

/* All derivatives of a line, as numbers that stand in no table: row by row, or column by column.
 * Returns the item. */
static int hide_derivatives(Plan *plan, Formula *f, const Part *parts, int num_parts,
                            bool by_rows) {
    const TapeTensor *tensors = plan->tape.tensors;
    int64_t total = 0;
    for (int n = 0; n < num_parts; n++)
        total += by_rows ? parts[n].rows.begin[tensors[parts[n].y].size]
                         : parts[n].by.begin[tensors[parts[n].x].size];
    double *all = memory_take(&plan->tape.memory, total, sizeof *all);
    total = 0;
    for (int n = 0; all && n < num_parts; n++) {
        const Jacobian *J = by_rows ? &parts[n].rows : &parts[n].by;
        const int64_t count = J->begin[tensors[by_rows ? parts[n].y : parts[n].x].size];
        for (int64_t e = 0; e < count; e++) all[total++] = J->of[e].J;
    }
    return formula_hide_constants(f, all, total);
}

static bool all_are_one(const Plan *plan, const RuledLine *line) {
    for (int n = 0; n < line->num_parts; n++) {
        const Part *p = &line->parts[n];
        for (int64_t e = 0; e < p->rows.begin[plan->tape.tensors[p->y].size]; e++)
            if (p->rows.of[e].J != 1) return false;
    }
    return true;
}

/* exp(a) / (exp(a) + exp(b)) */
static void form_weights(const Plan *plan, Formula *f, Recipe *r, const Part *weights) {
    char power[80], scale[40] = "";
    if (fabs(weights->right_factor - 1) > 1e-6)
        snprintf(scale, sizeof scale, "{%.17g} x ", weights->right_factor);
    snprintf(power, sizeof power, "exp(%s@%d)", scale, value_item(plan, f, weights->x));
    put_text(r->form, FORM_TEXT, "%s / ([%s])", power, power);
}

static void form_call(Plan *plan, Formula *f, Recipe *r) {
    const Part *weights = weights_of(r->line);
    int inputs = 0;
    for (int k = 0; k < r->line->num_in; k++) inputs += r->line->in[k] >= 0;
    name_of_op(r->line, r->op);
    if (weights && inputs < 2) strcpy(r->op, "softmax");
    if (is_linear(plan, r->line)) {
        r->kind = WORKED_SUM;
        const bool plain = all_are_one(plan, r->line);
        if (plain) put_text(r->form, FORM_TEXT, "[@*]");
        else
            put_text(r->form, FORM_TEXT, "[@%d x @*]",
                     hide_derivatives(plan, f, r->line->parts, r->line->num_parts, true));
    } else if (weights) {
        r->kind = WORKED_WEIGHTS;
        form_weights(plan, f, r, weights);
    } else r->kind = WORKED_CALL;
}

/* cos(t) x a + sin(t) x b: item `from` turns. t has the sign of each number: back, (a, b) becomes
 * (a cos t + b sin t, b cos t - a sin t). */
static void form_turn(Plan *plan, const Part *part, bool back, int from, Formula *f,
                      char form[FORM_TEXT]) {
    const TapeTensor *x = &plan->tape.tensors[part->x];
    const int angles = find_item(plan, f, ITEM_DERIVATIVE, part->x);
    double *turned = memory_take(&plan->tape.memory, x->size, sizeof *turned);
    for (int64_t i = 0; turned && i < x->size; i++) {
        const bool is_first = i < partner_of(part, x->columns, i);
        turned[i] = is_first == back ? part->angles[i] : -part->angles[i];
    }
    put_text(form, FORM_TEXT, "cos(@%d) x @%d + sin(@%d) x @%d", angles, from,
             formula_hide_like(f, angles, turned), from);
}

static void form_forward(Plan *plan, const Step *step, Formula *f, Recipe *r) {
    Token tokens[FORMULA_ITEMS];
    const Unit *unit = &plan->units[step->unit];
    const bool moves = step->kind == RULE_MOVE;
    r->line = &plan->tape.lines[moves ? unit->first : unit->last];
    find_inputs(plan, f, r);
    const int count = formula_tokens(plan, r->line, tokens);
    if (moves) {
        r->kind = WORKED_MOVE;
        if (r->line->num_in == 1) put_text(r->form, FORM_TEXT, "@%d", r->items[0]);
        else put_text(r->form, FORM_TEXT, "@*");
        r->after = ", moved";
    } else if (step->kind == RULE_TURN) {
        const Part *part = &r->line->parts[0];
        r->kind = WORKED_TURN;
        form_turn(plan, part, false, r->items[part->k], f, r->form);
    } else if (r->line->product.P > 0 || count > 0) {
        r->kind = r->line->product.P > 0 ? WORKED_PRODUCT : WORKED_BY_NUMBER;
        form_of_line(plan, f, r);
    } else form_call(plan, f, r);
}

/* ---- forms backward -------------------------------------------------------------------------- */

/* The sum of dy times derivatives; a constant derivative of -1 is a factor, not a sign. */
static void form_each(const Part *part, const Formula *f, int dy, char form[FORM_TEXT]) {
    put_text(form, FORM_TEXT, "[");
    if (part->is_constant && part->constant == -1) put_text(form, FORM_TEXT, "-1 x @%d", dy);
    else form_of_items(f, AFTER_EQUALS + part->copies, NULL, form);
    put_text(form, FORM_TEXT, "]");
}

static void form_backward(Plan *plan, const Step *step, Formula *f, Recipe *r) {
    const Part *part = step->part;
    const int dy = find_item(plan, f, ITEM_GRADIENT, part->y);
    if (part->is_odd) return;
    r->line = &plan->tape.lines[part->line];
    r->kind = WORKED_BACKWARD;
    if (part->kind == RULE_MOVE) {
        put_text(r->form, FORM_TEXT, "[@%d]", dy);
        r->after = ", moved back";
    } else if (part->kind == RULE_GENERAL)
        put_text(r->form, FORM_TEXT, "[@%d x @%d]", dy, hide_derivatives(plan, f, part, 1, false));
    else if (part->kind == RULE_SPREAD && part->is_constant)
        put_text(r->form, FORM_TEXT, "@%d x {%.17g}", dy, part->constant);
    else if (part->kind == RULE_TURN) form_turn(plan, part, true, dy, f, r->form);
    else if (part->kind == RULE_EACH) form_each(part, f, dy, r->form);
    else form_of_items(f, AFTER_EQUALS, NULL, r->form);
    if (part->kind == RULE_SOFTMAX)
        snprintf(r->mean_form, sizeof r->mean_form, "[@%d x @%d]",
                 find_item(plan, f, ITEM_VALUE, part->y), dy);
}

void recipe_of(Plan *plan, const Step *step, Formula *f, Recipe *r) {
    *r = (Recipe){.after = ""};
    if (step->phase == STEP_FORWARD) form_forward(plan, step, f, r);
    else if (step->phase == STEP_BACKWARD) form_backward(plan, step, f, r);
    else if (step->phase == STEP_ADD) {
        r->kind = WORKED_ADDITION;
        form_of_items(f, AFTER_EQUALS, NULL, r->form);
    }
}

/* ---- elements forward ------------------------------------------------------------------------ */

static void read(Worked *w, int64_t element) {
    if (w->count < WORKED_ELEMENTS) w->elements[w->count++] = element;
}

/* Is there room for one more term of a sum of so many? */
static bool takes_term(const Worked *w, int64_t t) {
    return t < (w->terms > MOST_TERMS + 2 ? MOST_TERMS : w->terms);
}

static void read_product(const Plan *plan, const RuledLine *line, int64_t j, Worked *w) {
    const Product *p = &line->product;
    const TapeTensor *b = &plan->tape.tensors[line->in[p->b]];
    const TapeTensor *y = &plan->tape.tensors[line->out];
    const int64_t m = j % p->M, row = j / p->M, q = b->panels == 1 ? 0 : row / p->N;
    w->terms = p->K;
    for (int64_t k = 0; takes_term(w, k); k++) {
        read(w, row * p->K + k);
        read(w, p->flipped ? (q * p->M + m) * p->K + k : (q * p->K + k) * p->M + m);
    }
    for (int k = 0; k < line->num_in; k++)
        if (line->in[k] >= 0 && k != p->a && k != p->b)
            read(w, broadcast_index(&plan->tape.tensors[line->in[k]], y, j));
}

static void read_by_number(const Plan *plan, const Formula *f, const Recipe *r, int64_t j,
                           Worked *w) {
    const TapeTensor *y = &plan->tape.tensors[r->line->out];
    for (const char *at = strchr(r->form, '@'); at; at = strchr(at + 1, '@'))
        read(w, broadcast_index(f->items[strtol(at + 1, NULL, 10)].like, y, j));
}

/* How many derivatives reach element j. */
static int64_t count_sources(const RuledLine *line, int64_t j) {
    int64_t count = 0;
    for (int n = 0; n < line->num_parts; n++)
        count += line->parts[n].rows.begin[j + 1] - line->parts[n].rows.begin[j];
    return count;
}

static void read_sum(const Plan *plan, const Recipe *r, int64_t j, Worked *w) {
    const bool has_factor = r->form[2] != '*';
    int64_t before = 0, t = 0; /* derivatives of the parts before; terms */
    w->terms = count_sources(r->line, j);
    for (int n = 0; n < r->line->num_parts; n++) {
        const Part *p = &r->line->parts[n];
        for (int64_t e = p->rows.begin[j]; e < p->rows.begin[j + 1] && takes_term(w, t); e++, t++) {
            if (has_factor) read(w, before + e);
            read(w, r->items[p->k]);
            read(w, p->rows.of[e].j);
        }
        before += p->rows.begin[plan->tape.tensors[p->y].size];
    }
}

/* Is the weight exp(s x) over the sum of exp(s x), and is the sum short? */
static bool read_weight(const Plan *plan, const RuledLine *line, int64_t j, Worked *w) {
    enum { MOST_POWERS = 6 };
    const Part *p = weights_of(line);
    const double *x = plan->tape.tensors[p->x].value;
    const int64_t begin = p->rows.begin[j], end = p->rows.begin[j + 1];
    double sum = 0;
    bool is_there = false;
    if (end - begin > MOST_POWERS) return false;
    for (int64_t e = begin; e < end; e++) {
        sum += exp(p->right_factor * x[p->rows.of[e].j]);
        is_there = is_there || p->rows.of[e].j == j;
    }
    const double y = plan->tape.tensors[line->out].value[j];
    if (!is_there || !is_near(exp(p->right_factor * x[j]) / sum, y)) return false;
    w->terms = end - begin;
    read(w, j);
    for (int64_t e = begin; e < end; e++) read(w, p->rows.of[e].j);
    return true;
}

/* Its angle and itself, and again for the other one of its pair. */
static void read_turn(const Plan *plan, const Part *part, int64_t i, Worked *w) {
    const int64_t other = partner_of(part, plan->tape.tensors[part->x].columns, i);
    w->terms = 1;
    for (int n = 0; n < 3; n++) read(w, i);
    read(w, other);
}

/* Does any number of the input move result j? */
static bool moves(const Part *p, int64_t j) { return p->rows.begin[j] < p->rows.begin[j + 1]; }

/* As many numbers of each table, each once. */
static void read_call(const Recipe *r, int64_t j, Worked *w) {
    int tables = 0;
    w->op = r->op;
    for (int n = 0; n < r->line->num_parts; n++) {
        const Part *p = &r->line->parts[n];
        bool is_first = moves(p, j);
        for (int m = 0; m < n; m++) {
            const Part *before = &r->line->parts[m];
            is_first = is_first && !(moves(before, j) && r->items[before->k] == r->items[p->k]);
        }
        tables += is_first;
    }
    for (int n = 0; n < r->line->num_parts; n++) {
        const Part *p = &r->line->parts[n];
        int64_t shown = 0;
        for (int64_t e = p->rows.begin[j]; e < p->rows.begin[j + 1]; e++, shown++) {
            const bool is_more = shown == MOST_TERMS / tables;
            read(w, r->items[p->k]);
            read(w, is_more ? -1 : p->rows.of[e].j);
            if (is_more) break;
        }
    }
}

/* Why no input changes a number; of a line that gets no gradient nothing is known but its op. */
static void note_unmoved(const Plan *plan, const RuledLine *line, int64_t j, char *note) {
    const TapeTensor *y = &plan->tape.tensors[line->out];
    char name[NAME_TEXT];
    size_t n = 0;
    strcpy(note, "no input changes it");
    for (int i = 0; i < line->num_parts; i++) {
        const Part *p = &line->parts[i];
        if (plan->tape.tensors[p->x].size != y->size) continue;
        if (p->reasons[j] && strcmp(p->reasons[j], "weight is 1") == 0)
            strcpy(note, "the other weights of its row are 0, so it stays 1");
        return;
    }
    if (line->num_parts > 0) return;
    name_of_op(line, name);
    n = (size_t)snprintf(note, NOTE_TEXT, "%.60s of ", name);
    for (int k = 0; k < line->num_in && n < NOTE_TEXT - 4; k++) {
        if (line->in[k] < 0) continue;
        name_of_tensor(plan, line->in[k], false, name);
        n += (size_t)snprintf(note + n, NOTE_TEXT - n, "%s%s", k ? ", " : "", name);
    }
}

static void read_forward(const Plan *plan, const Step *step, const Formula *f, const Recipe *r,
                         int64_t j, Worked *w) {
    const Unit *unit = &plan->units[step->unit];
    switch (r->kind) {
    case WORKED_MOVE: {
        const Source from = unit->name ? unit->moves[j] : r->line->right_moves[j];
        if (r->line->num_in > 1) read(w, r->items[from.k]);
        read(w, from.i);
        return;
    }
    case WORKED_PRODUCT: read_product(plan, r->line, j, w); return;
    case WORKED_BY_NUMBER: read_by_number(plan, f, r, j, w); return;
    case WORKED_TURN: read_turn(plan, &r->line->parts[0], j, w); return;
    default: break;
    }
    bool has_inputs = false;
    for (int k = 0; k < r->line->num_in; k++) has_inputs = has_inputs || r->line->in[k] >= 0;
    if (count_sources(r->line, j) == 0) {
        if (has_inputs) note_unmoved(plan, r->line, j, w->note);
    } else if (r->kind == WORKED_SUM) read_sum(plan, r, j, w);
    else if (r->kind != WORKED_WEIGHTS || !read_weight(plan, r->line, j, w)) read_call(r, j, w);
}

/* ---- elements backward ----------------------------------------------------------------------- */

static void read_factors(const Plan *plan, const Part *part, const RuledLine *line, int64_t i,
                         Worked *w) {
    const Product *p = &line->product;
    const bool by_a = part->k == p->a, first = by_a || p->flipped;
    const int64_t panels = plan->tape.tensors[line->in[p->b]].panels;
    w->terms = product_terms(p, panels, by_a);
    for (int64_t t = 0; takes_term(w, t); t++) {
        const Pair pair = product_term(p, panels, by_a, i, t);
        read(w, first ? pair.j : pair.other);
        read(w, first ? pair.other : pair.j);
    }
}

/* The largest terms first. */
static void read_largest(const Plan *plan, const Part *part, int64_t i, Worked *w) {
    const double *dy = plan->tape.tensors[part->y].grad;
    const int64_t begin = part->by.begin[i];
    double last = HUGE_VAL; /* the size of the last term */
    int64_t at = -1;        /* and its place */
    for (int64_t t = 0; takes_term(w, t); t++) {
        double most = -1;
        int64_t best = -1;
        for (int64_t e = begin; e < part->by.begin[i + 1]; e++) {
            const double product = fabs(dy[part->by.of[e].j] * part->by.of[e].J);
            const double size = isnan(product) ? HUGE_VAL : product;
            const bool is_after = size < last || (size == last && e > at);
            if (is_after && size > most) {
                most = size;
                best = e;
            }
        }
        read(w, part->by.of[best].j);
        read(w, best);
        last = most;
        at = best;
    }
}

static void read_backward(const Plan *plan, const Part *part, const Recipe *r, int64_t i,
                          Worked *w) {
    const int64_t begin = part->by.begin[i], end = part->by.begin[i + 1];
    const bool reads_each = part->kind == RULE_EACH && !part->is_constant;
    w->terms = end - begin;
    switch (part->kind) {
    case RULE_PRODUCT: read_factors(plan, part, r->line, i, w); return;
    case RULE_SOFTMAX:
        read(w, i);
        read(w, i);
        read(w, i / plan->tape.tensors[part->x].columns);
        w->terms = 1;
        return;
    case RULE_TURN: read_turn(plan, part, i, w); return;
    case RULE_GENERAL: read_largest(plan, part, i, w); return;
    case RULE_SPREAD:
        if (begin == end) return;
        read(w, part->by.of[begin].j);
        if (!part->is_constant) read(w, i);
        return;
    default: break;
    }
    for (int64_t t = 0; takes_term(w, t); t++) {
        read(w, part->by.of[begin + t].j);
        if (reads_each) read(w, part->by.of[begin + t].j);
    }
}

void worked_of(const Plan *plan, const Step *step, const Formula *f, const Recipe *r, int64_t i,
               Worked *w) {
    w->count = 0;
    w->terms = 1;
    w->op = NULL;
    *w->note = '\0';
    if (r->kind == WORKED_NONE) return;
    if (step->phase == STEP_FORWARD) read_forward(plan, step, f, r, i, w);
    else if (step->phase == STEP_BACKWARD) read_backward(plan, step->part, r, i, w);
    else
        for (int k = 0; k < f->count; k++)
            if (k != f->main && f->items[k].numbers) read(w, i);
}

void worked_of_mean(const Plan *plan, const Step *step, int64_t row, Worked *w) {
    const int64_t columns = plan->tape.tensors[step->part->y].columns;
    *w = (Worked){.terms = columns};
    for (int64_t c = 0; takes_term(w, c); c++) {
        read(w, row * columns + c);
        read(w, row * columns + c);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* A form that is evaluated with the numbers as they are printed, and is printed on the way. */
typedef struct {
    const char *at; /* what is left of the form */
    const Formula *f;
    const Worked *w;
    int more, next; /* decimals; the next element */
    char *text;     /* NULL: it is only evaluated */
    size_t used;
} Line;

static void append(Line *l, const char *words) {
    const size_t n = strlen(words);
    if (!l->text || l->used + n >= LINE_TEXT) return;
    memcpy(l->text + l->used, words, n + 1);
    l->used += n;
}

/* Passes over a word, if it comes next. */
static bool skip(Line *l, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(l->at, word, n) != 0) return false;
    l->at += n;
    return true;
}

static bool take(Line *l, const char *word) {
    const bool found = skip(l, word);
    if (found) append(l, word);
    return found;
}

/* A negative number has brackets behind a sign, and before a power. */
static void append_number(Line *l, double x, Format format) {
    char text[NUMBER_TEXT];
    if (!l->text) return;
    format_number(x, format, text);
    const bool follows =
        l->used > 1 && l->text[l->used - 1] == ' ' && strchr("x+-", l->text[l->used - 2]);
    const bool brackets = *text == '-' && (follows || *l->at == '^');
    if (brackets) append(l, "(");
    append(l, text);
    if (brackets) append(l, ")");
}

static double value_of_sum(Line *l);

/* A number as its table shows it, or with more decimals where it is rounded there. */
static double value_as_printed(Line *l, double x, Format format) {
    double value = format_value(x, format);
    if (l->more > 0 && fabs(value - x) > 1e-9 * fabs(x)) {
        format.decimals += l->more;
        value = format_value(x, format);
    }
    append_number(l, x, format);
    return value;
}

static int64_t next_element(Line *l) {
    return l->next < l->w->count ? l->w->elements[l->next++] : 0;
}

/* @2, @*, {0.5} or 2; NaN if none of them is there. */
static double value_of_operand(Line *l) {
    char *end;
    if (skip(l, "{")) {
        const double x = strtod(l->at, &end);
        l->at = end + 1;
        return value_as_printed(l, x, format_of_constant(x));
    }
    if (skip(l, "@")) {
        const bool any = skip(l, "*");
        const long item = any ? (long)next_element(l) : strtol(l->at, &end, 10);
        if (!any) l->at = end;
        const Item *from = &l->f->items[item];
        const double x = from->numbers[next_element(l)];
        const bool is_constant = from->of == ITEM_CONSTANT;
        return value_as_printed(l, x, is_constant ? format_of_constant(x) : from->format);
    }
    const char digit[2] = {*l->at};
    if (!isdigit((unsigned char)*digit)) return (double)NAN;
    take(l, digit);
    return *digit - '0';
}

/* What stands in square brackets, once for each term. */
static double value_of_terms(Line *l) {
    char rest[48];
    const char *each = l->at;
    const int64_t terms = l->w->terms, shown = terms > MOST_TERMS + 2 ? MOST_TERMS : terms;
    double sum = 0;
    for (int64_t t = 0; t < shown; t++) {
        if (t > 0) append(l, " + ");
        l->at = each;
        sum += value_of_sum(l);
    }
    snprintf(rest, sizeof rest, " + ... (%lld terms)", (long long)terms);
    if (shown < terms) append(l, rest);
    return skip(l, "]") && shown == terms ? sum : (double)NAN;
}

static double value_of_factor(Line *l) {
    static const struct {
        const char *opens;
        double (*of)(double);
    } functions[] = {{"exp(", exp}, {"cos(", cos}, {"sin(", sin}};
    double (*function)(double) = NULL;
    if (take(l, "-")) return -value_of_factor(l);
    if (skip(l, "[")) return value_of_terms(l);
    for (int n = 0; n < 3 && !function; n++)
        if (take(l, functions[n].opens)) function = functions[n].of;
    const bool is_max = !function && take(l, "max(");
    const bool has_brackets = function || is_max || take(l, "(");
    double x = has_brackets ? value_of_sum(l) : value_of_operand(l);
    if (is_max && take(l, ", ")) x = fmax(x, value_of_sum(l));
    if (has_brackets && !take(l, ")")) return (double)NAN;
    if (function) x = function(x);
    return take(l, "^") ? pow(x, value_of_operand(l)) : x;
}

static double value_of_product(Line *l) {
    double x = value_of_factor(l);
    for (;;) {
        if (take(l, " x ")) x *= value_of_factor(l);
        else if (take(l, " / ")) x /= value_of_factor(l);
        else return x;
    }
}

static double value_of_sum(Line *l) {
    double x = value_of_product(l);
    for (;;) {
        if (take(l, " + ")) x += value_of_product(l);
        else if (take(l, " - ")) x -= value_of_product(l);
        else return x;
    }
}

/* "softmax of 1, 2, ... and 0, 1" */
static void append_call(Line *l, const char *op) {
    append(l, op);
    for (int n = 0; n + 1 < l->w->count; n += 2) {
        const Item *from = &l->f->items[l->w->elements[n]];
        const int64_t element = l->w->elements[n + 1];
        const bool is_other = n > 0 && l->w->elements[n - 2] != l->w->elements[n];
        if (n == 0) append(l, " of ");
        else append(l, is_other ? " and " : ", ");
        if (element < 0) append(l, "...");
        else append_number(l, from->numbers[element], from->format);
    }
}

double worked_line(const Formula *f, const char *form, const Worked *w, int more,
                   char text[LINE_TEXT]) {
    Line l = {.at = form, .f = f, .w = w, .more = more, .text = text};
    if (text) *text = '\0';
    append(&l, w->note);
    if (w->op) append_call(&l, w->op);
    if (*w->note || w->op || w->count == 0) return (double)NAN;
    double value = value_of_sum(&l);
    while (*l.at) { /* a sign that is no arithmetic */
        const char sign[2] = {*l.at};
        take(&l, sign);
        value = (double)NAN;
        if (*l.at == '@') value_of_operand(&l);
    }
    return value;
}

int worked_more(const Formula *f, const char *form, const Worked *w, double x, Format format) {
    enum { MOST_MORE = 4 };
    const double wanted = format_value(x, format);
    if (w->terms < 2 && !strpbrk(form, "x+-/^")) return 0; /* a number alone */
    for (int more = 0; more <= MOST_MORE; more++) {
        const double value = worked_line(f, form, w, more, NULL);
        if (!isfinite(value)) return 0;
        if (format_value(value, format) == wanted) return more;
    }
    return 0;
}
