/* formula.c - a step as a formula, with its tables: see formula.h.
 *
 * The sections: names, items, forward, backward, text. */
#include "formula.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

/* The lesson's short name of a tensor, or its name. */
static const char *short_name(const Plan *plan, int tensor) {
    const Json *list = json_get(plan->lesson, "short");
    const Json *pair = list ? list->first : NULL;
    while (pair && json_integer(pair, "tensor", -1) != tensor) pair = pair->next;
    const char *name = json_text(pair, "name", "");
    return *name ? name : plan->tape.tensors[tensor].name;
}

/* The tensor that is this one's transpose, or -1. */
static int transpose_of(const Plan *plan, int tensor) {
    const Json *list = json_get(plan->lesson, "transposed");
    for (const Json *pair = list ? list->first : NULL; pair; pair = pair->next) {
        const int64_t t = json_integer(pair, "tensor", -1), of = json_integer(pair, "of", -1);
        const int64_t other = t == tensor ? of : t;
        if ((t == tensor || of == tensor) && other >= 0 && other < plan->tape.num_tensors)
            return (int)other;
    }
    return -1;
}

void name_of_tensor(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]) {
    const int twin = transposed ? transpose_of(plan, tensor) : -1;
    const char *own = short_name(plan, twin >= 0 ? twin : tensor);
    const size_t n = strlen(own);
    if (twin >= 0 || !transposed) snprintf(name, NAME_TEXT, "%s", own);
    else if (own[n - 1] == '\'') snprintf(name, NAME_TEXT, "%.*s", (int)n - 1, own);
    else snprintf(name, NAME_TEXT, strchr(own, ' ') ? "(%s)'" : "%s'", own);
}

void name_of_gradient(const Plan *plan, int tensor, bool transposed, char name[NAME_TEXT]) {
    const char *own = short_name(plan, tensor);
    const char *mark = transposed ? "'" : "";
    bool simple = true;
    for (const char *c = own; *c; c++)
        simple = simple && (isalnum((unsigned char)*c) || *c == '_' || *c == '.');
    snprintf(name, NAME_TEXT, simple ? "d%s%s" : "d(%s)%s", own, mark);
}

/* ---- items ----------------------------------------------------------------------------------- */

static Item *add(Formula *f, const char *text) {
    Item *item = &f->items[f->count];
    f->count += f->count < FORMULA_ITEMS - 1;
    *item = (Item){.numbers = NULL};
    snprintf(item->text, NAME_TEXT, "%s", text);
    return item;
}

static Item *add_table(Formula *f, const char *name, const TapeTensor *like,
                       const double *numbers) {
    Item *item = add(f, name);
    item->numbers = numbers;
    item->like = like;
    return item;
}

static Item *add_value(const Plan *plan, Formula *f, int tensor, bool transposed) {
    char name[NAME_TEXT];
    const TapeTensor *x = &plan->tape.tensors[tensor];
    name_of_tensor(plan, tensor, transposed, name);
    Item *item = add_table(f, name, x, x->value);
    item->transposed = transposed;
    item->is_operand = f->count > 1;
    return item;
}

/* A factor or a summand: "(Y + Z)" */
static void add_operand(const Plan *plan, Formula *f, int tensor, bool transposed) {
    char name[NAME_TEXT];
    Item *item = add_value(plan, f, tensor, transposed);
    snprintf(name, sizeof name, "%.60s", item->text);
    const bool is_sum = strstr(name, " + ") || strstr(name, " - ") || strstr(name, " / ");
    if (is_sum && *name != '(') snprintf(item->text, NAME_TEXT, "(%.60s)", name);
}

static Item *add_gradient(const Plan *plan, Formula *f, int tensor, bool transposed,
                          const double *numbers) {
    char name[NAME_TEXT];
    name_of_gradient(plan, tensor, transposed, name);
    Item *item = add_table(f, name, &plan->tape.tensors[tensor], numbers);
    item->transposed = transposed;
    return item;
}

static Item *add_dy(const Plan *plan, Formula *f, const Part *part, bool transposed) {
    return add_gradient(plan, f, part->y, transposed, plan->tape.tensors[part->y].grad);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The input that a formula of the data calls by this letter: the name of an argument in the call,
 * "ag_sub(a, b)". -1 if none has it. */
static int input_called(const RuledLine *line, const char *letters, int length) {
    const char *at = strchr(json_text(line->json, "call", ""), '(');
    for (int k = 0; at && k < line->num_in; k++) {
        at += strspn(at, "(, ");
        if ((int)strcspn(at, ",)") == length && strncmp(at, letters, (size_t)length) == 0)
            return line->in[k] >= 0 ? k : -1;
        at = strchr(at, ',');
    }
    return -1;
}

/* Adds the item of a letter in a formula: an input or a number; false if it is neither. */
static bool add_letter(const Plan *plan, const RuledLine *line, Formula *f, const char *letters,
                       int length) {
    char word[8], text[24];
    const int k = input_called(line, letters, length);
    const Item *before = &f->items[f->count - 1];
    snprintf(word, sizeof word, "%.*s", length, letters);
    const Json *argument = json_get(line->json, word);
    const bool is_factor = before->is_operand || isdigit((unsigned char)before->text[0]) ||
                           (before->text[0] == '-' && before->text[1]);
    if (strcmp(word, "max") == 0) add(f, word);
    else if (k >= 0 && is_factor) add(f, "x");
    if (k >= 0) add_operand(plan, f, line->in[k], false);
    else if (length == 1 && argument && argument->kind == JSON_NUMBER) {
        snprintf(text, sizeof text, "%.4g", argument->number);
        add(f, text)->constant = argument->number;
    }
    return k >= 0 || strcmp(word, "max") == 0 || (length == 1 && argument);
}

/* y = a - b, x^2, max(x, 0): the formula of the data, if it has only inputs, numbers and signs. The
 * result is already there. Else false, and f is as before. */
static bool add_formula(const Plan *plan, const RuledLine *line, Formula *f) {
    const char *at = json_text(line->json, "formula", "");
    const int before = f->count;
    add(f, "=");
    while (*at && *at != ';') {
        const int length = (int)strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        char sign[3];
        snprintf(sign, sizeof sign, "%.*s", *at == '^' ? 2 : 1, at);
        const bool is_sign = strchr("+-*/^(),0123456789", *at) != NULL;
        if (length > 0 ? !add_letter(plan, line, f, at, length) : *at != ' ' && !is_sign) {
            f->count = before;
            return false;
        }
        if (length == 0 && *at != ' ') add(f, sign);
        at += length > 0 ? length : (int)strlen(sign);
    }
    bool fits = false;
    for (int i = before; i < f->count; i++) {
        if (!f->items[i].is_operand) continue;
        fits = can_broadcast(f->items[i].like, &plan->tape.tensors[line->out]);
        if (!fits) break;
    }
    if (!fits) f->count = before;
    return fits;
}

/* Of a softmax with its scores alone, masked_softmax without a mask too: the number that it
 * multiplies them by. 0 of other lines. */
static double factor_of_softmax(const RuledLine *line) {
    int inputs = 0;
    for (int k = 0; k < line->num_in; k++) inputs += line->in[k] >= 0;
    return inputs == 1 && line->num_parts == 1 ? line->parts->factor : 0;
}

/* y = op(x, z, 0.25) */
static void add_call(const Plan *plan, const RuledLine *line, Formula *f) {
    char text[NAME_TEXT];
    const double scale = factor_of_softmax(line);
    const char *op = scale != 0 ? "softmax" : json_text(line->json, "op", "");
    const char *comma = "";
    const Json *argument = json_get(line->json, "s");
    if (!argument) argument = json_get(line->json, "p");
    add(f, "=");
    snprintf(text, sizeof text, "%.40s(", op);
    add(f, text);
    if (scale != 0 && fabs(scale - 1) > 1e-6) {
        snprintf(text, sizeof text, "%.4g", scale);
        add(f, text);
        add(f, "x");
    }
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0) continue;
        if (*comma) add(f, comma);
        add_value(plan, f, line->in[k], false);
        comma = ",";
    }
    if (argument && argument->kind == JSON_NUMBER) {
        add(f, ",");
        snprintf(text, sizeof text, "%.4g", argument->number);
        add(f, text);
    }
    add(f, ")");
}

static void add_product(const Plan *plan, const RuledLine *line, Formula *f) {
    const Product *p = &line->product;
    add(f, "=");
    add_operand(plan, f, line->in[p->a], false);
    add_operand(plan, f, line->in[p->b], p->flipped);
    for (int k = 0; k < line->num_in; k++)
        if (line->in[k] >= 0 && k != p->a && k != p->b) {
            add(f, "+");
            add_operand(plan, f, line->in[k], false);
        }
}

bool formula_by_number(const Plan *plan, const RuledLine *line, Formula *f) {
    *f = (Formula){.count = 0};
    add_value(plan, f, line->out, false);
    return add_formula(plan, line, f);
}

/* "E^2 = E^2" says nothing. */
static bool says_something(const Plan *plan, const RuledLine *line) {
    Formula f;
    char text[FORMULA_TEXT];
    if (!formula_by_number(plan, line, &f)) return false;
    formula_text(&f, text);
    const size_t n = strlen(f.items[0].text);
    return strcmp(text + n + 3, f.items[0].text) != 0;
}

/* y = what the data say: a product, a formula, or the op. */
static void add_line(const Plan *plan, const RuledLine *line, Formula *f) {
    const char *said = json_text(line->json, "formula", "");
    if (line->product.P > 0) add_product(plan, line, f);
    else if (says_something(plan, line)) add_formula(plan, line, f);
    else {
        add_call(plan, line, f);
        const double scale = factor_of_softmax(line);
        const bool is_scaled = scale != 0 && fabs(scale - 1) > 1e-6;
        if (*said && !is_scaled)
            snprintf(f->note, FORMULA_TEXT, ": %.*s", (int)strcspn(said, ";"), said);
    }
}

void call_of_line(const Plan *plan, const RuledLine *line, Formula *f) {
    *f = (Formula){.count = 0};
    add_value(plan, f, line->out, false);
    add_call(plan, line, f);
    for (int i = 0; i < f->count; i++)
        if (f->items[i].like) snprintf(f->items[i].text, NAME_TEXT, "%s", f->items[i].like->name);
}

/* "reshape, transpose" of a chain; of a line alone its formula. */
static void note_moves(const Plan *plan, const Unit *unit, Formula *f) {
    const RuledTape *tape = &plan->tape;
    int n = snprintf(f->note, FORMULA_TEXT, ", moved: ");
    const char *said = json_text(tape->lines[unit->last].json, "formula", "");
    if (unit->first == unit->last)
        snprintf(f->note + n, (size_t)(FORMULA_TEXT - n), "%.*s", (int)strcspn(said, ";"), said);
    for (int l = unit->first; unit->first < unit->last && l <= unit->last && n < 500; l++)
        n += snprintf(f->note + n, (size_t)(FORMULA_TEXT - n), "%s%.40s",
                      l > unit->first ? ", " : "", json_text(tape->lines[l].json, "op", ""));
}

static void add_moves(const Plan *plan, const Unit *unit, Formula *f) {
    const RuledLine *first = &plan->tape.lines[unit->first];
    const char *sign = "=";
    for (int k = 0; k < first->num_in; k++) {
        if (first->in[k] < 0) continue;
        add(f, sign);
        add_value(plan, f, first->in[k], false);
        sign = ",";
    }
    note_moves(plan, unit, f);
}

static void make_forward(const Plan *plan, const Step *step, Formula *f) {
    const Unit *unit = &plan->units[step->unit];
    if (unit->moves) {
        add_value(plan, f, step->tensor, false);
        add_moves(plan, unit, f);
        return;
    }
    for (int l = unit->first; l <= unit->last; l++) {
        if (l > unit->first) add(f, ",");
        add_value(plan, f, plan->tape.lines[l].out, false);
        add_line(plan, &plan->tape.lines[l], f);
    }
    if (unit->last > unit->first) *f->note = '\0';
}

/* ---- backward -------------------------------------------------------------------------------- */

/* Are these numbers those of x, times a number? Returns that number, or 0. */
static double ratio_of(const double *numbers, const TapeTensor *x) {
    int64_t n = 0;
    while (n < x->size && x->value[n] == 0) n++;
    const double times = n < x->size ? round(100 * numbers[n] / x->value[n]) / 100 : 0;
    for (int64_t i = 0; i < x->size; i++)
        if (!(fabs(numbers[i] - times * x->value[i]) <= 1e-12 * fmax(1, fabs(numbers[i]))))
            return 0;
    return times;
}

int multiple_of(const Plan *plan, const Part *part, double *times) {
    const RuledTape *tape = &plan->tape;
    const int64_t size = tape->tensors[part->kind == RULE_SPREAD ? part->x : part->y].size;
    const Unit *unit = plan->units;
    while (unit->last < part->line) unit++;
    for (int l = unit->first; part->each && l <= unit->last; l++)
        for (int k = 0; k <= tape->lines[l].num_in; k++) {
            const RuledLine *line = &tape->lines[l];
            const int t = k < line->num_in ? line->in[k] : line->out;
            if (t < 0 || tape->tensors[t].size != size) continue;
            *times = ratio_of(part->each, &tape->tensors[t]);
            if (*times != 0) return t;
        }
    return -1;
}

/* dy times the derivatives, of which all can be the same. */
static void add_scaled(const Plan *plan, const Part *part, Formula *f) {
    char text[24];
    const RuledTape *tape = &plan->tape;
    const TapeTensor *like = &tape->tensors[part->kind == RULE_SPREAD ? part->x : part->y];
    if (part->is_constant) {
        if (part->constant == -1) add(f, "-");
        else if (part->constant != 1) {
            snprintf(text, sizeof text, "%.4g", part->constant);
            add(f, text);
            add(f, "x");
        }
        add_dy(plan, f, part, false);
        return;
    }
    add_dy(plan, f, part, false);
    add(f, "x");
    double times;
    const int t = multiple_of(plan, part, &times);
    if (t < 0) {
        add_table(f, "derivative", like, part->each);
        return;
    }
    if (times != 1) {
        snprintf(text, sizeof text, "%.4g", times);
        add(f, text);
        add(f, "x");
    }
    add_value(plan, f, t, false);
}

static void add_factors(const Plan *plan, const Part *part, Formula *f) {
    const RuledLine *line = &plan->tape.lines[part->line];
    const Product *p = &line->product;
    if (part->k == p->a) {
        add_dy(plan, f, part, false);
        add_operand(plan, f, line->in[p->b], !p->flipped);
    } else if (p->flipped) {
        add_dy(plan, f, part, true);
        add_operand(plan, f, line->in[p->a], false);
    } else {
        add_operand(plan, f, line->in[p->a], true);
        add_dy(plan, f, part, false);
    }
}

static void add_softmax(const Plan *plan, const Part *part, Formula *f) {
    char text[24];
    char name[NAME_TEXT];
    const TapeTensor *y = &plan->tape.tensors[part->y];
    if (fabs(part->factor - 1) > 1e-6) {
        snprintf(text, sizeof text, "%.4g", part->factor);
        add(f, text);
        add(f, "x");
    }
    add_value(plan, f, part->y, false);
    add(f, "x");
    add(f, "(");
    const Item *dy = add_dy(plan, f, part, false);
    name_of_tensor(plan, part->y, false, name);
    snprintf(f->note, FORMULA_TEXT, ", weighted mean: the sum of %s x %s in the row", name,
             dy->text);
    add(f, "-");
    add_table(f, "weighted mean", y, part->means)->is_column = true;
    add(f, ")");
}

static void make_backward(const Plan *plan, const Part *part, Formula *f) {
    const RuledLine *line = &plan->tape.lines[part->line];
    add_gradient(plan, f, part->x, false, part->dx)->part = part;
    add(f, part->kind == RULE_GENERAL ? "<-" : "=");
    switch (part->kind) {
    case RULE_MOVE:
        add_dy(plan, f, part, false);
        snprintf(f->note, FORMULA_TEXT, ", moved back");
        break;
    case RULE_PRODUCT: add_factors(plan, part, f); break;
    case RULE_SOFTMAX: add_softmax(plan, part, f); break;
    case RULE_EACH:
        if (part->copies) add(f, "sum of");
        add_scaled(plan, part, f);
        break;
    case RULE_SPREAD:
        add_scaled(plan, part, f);
        snprintf(f->note, FORMULA_TEXT, ", for each number");
        break;
    case RULE_GENERAL:
        add_dy(plan, f, part, false);
        snprintf(f->note, FORMULA_TEXT, ": %.500s", json_text(line->json, "gradient", ""));
    }
}

static void make_addition(const Plan *plan, const Step *step, Formula *f) {
    char name[NAME_TEXT];
    const Part *parts[MOST_PARTS];
    int n = parts_until(plan, step->tensor, step, parts, MOST_PARTS);
    const bool complete = n == plan->tape.tensors[step->tensor].parts;
    if (n > MOST_PARTS) n = MOST_PARTS;
    add_gradient(plan, f, step->tensor, false, step->numbers);
    add(f, complete ? "=" : "so far =");
    for (int i = 0; i < n; i++) {
        if (i > 0) add(f, "+");
        snprintf(name, sizeof name, "from %.50s", short_name(plan, parts[i]->y));
        add_table(f, name, &plan->tape.tensors[step->tensor], parts[i]->dx)->part = parts[i];
    }
}

static void make_start(const Plan *plan, const Step *step, Formula *f) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    bool ones = true;
    for (int64_t i = 0; i < x->size; i++) ones = ones && x->grad[i] == 1;
    add_gradient(plan, f, step->tensor, false, x->grad);
    if (!ones) snprintf(f->note, FORMULA_TEXT, " is given");
    else {
        add(f, "=");
        add(f, "1");
    }
}

void formula_of(const Plan *plan, const Step *step, Formula *f) {
    *f = (Formula){.count = 0};
    switch (step->phase) {
    case STEP_COVER: break;
    case STEP_FORWARD: make_forward(plan, step, f); break;
    case STEP_START: make_start(plan, step, f); break;
    case STEP_BACKWARD: make_backward(plan, step->part, f); break;
    case STEP_ADD: make_addition(plan, step, f);
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

bool stand_apart(const Item *before, const Item *item) {
    const size_t n = strlen(before->text);
    if (!before->numbers && n > 0 && before->text[n - 1] == '(') return false;
    if (strcmp(before->text, "max") == 0) return false;
    return item->numbers || !*item->text || !strchr("),^", item->text[0]);
}

void formula_text(const Formula *f, char text[FORMULA_TEXT]) {
    size_t n = 0;
    for (int i = 0; i < f->count && n < FORMULA_TEXT; i++) {
        const char *blank = i > 0 && stand_apart(&f->items[i - 1], &f->items[i]) ? " " : "";
        n += (size_t)snprintf(text + n, FORMULA_TEXT - n, "%s%s", blank, f->items[i].text);
    }
    if (n < FORMULA_TEXT) snprintf(text + n, FORMULA_TEXT - n, "%s", f->note);
}
