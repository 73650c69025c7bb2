/* worked.c - one number of a step, worked out: see worked.h.
 *
 * The sections: numbers, terms forward, terms backward, printed arithmetic, text. */
#include "worked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 12 }; /* terms */

static const RuledLine *line_of(const Plan *plan, const Step *step) {
    return &plan->tape.lines[plan->units[step->unit].last];
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int decimals_of_one(double x) {
    int decimals = 0;
    if (!(fabs(x) < 1e5)) return 0;
    for (double scaled = x; decimals < 3; decimals++) {
        if (fabs(scaled - round(scaled)) < 1e-9 * fmax(1, fabs(scaled))) break;
        scaled *= 10;
    }
    return decimals;
}

int decimals_of(const double *numbers, int64_t size) {
    int most = 0;
    for (int64_t i = 0; i < size && most < 3; i++) {
        const int decimals = decimals_of_one(numbers[i]);
        if (decimals > most) most = decimals;
    }
    return most;
}

void number_text(double x, int decimals, char text[24]) {
    const bool is_short = fabs(x) < 0.0995 && decimals == 3;
    if (x == 0) snprintf(text, 24, "0");
    else if (isnan(x)) snprintf(text, 24, "NaN");
    else if (isinf(x)) snprintf(text, 24, x > 0 ? "inf" : "-inf");
    else if (is_short || fabs(x) >= 1e5) snprintf(text, 24, "%.3g", x);
    else snprintf(text, 24, "%.*f", decimals, x);
}

/* ---- terms forward --------------------------------------------------------------------------- */

typedef struct {
    Term *terms;
    int64_t most, count;
} Terms;

static Factor value_at(const TapeTensor *x, int64_t i) {
    return (Factor){x->value[i], 0, false, decimals_of(x->value, x->size), x, false, i};
}

static Factor grad_at(const TapeTensor *x, int64_t i) {
    return (Factor){x->grad[i], 0, false, decimals_of(x->grad, x->size), x, true, i};
}

/* A derivative that stands in no table has up to four digits. */
static Factor constant(double number) { return (Factor){.number = number, .decimals = -1}; }

static void put(Terms *list, int count, Factor a, Factor b) {
    if (list->count++ < list->most) list->terms[list->count - 1] = (Term){count, {a, b}};
}

static void put_product_forward(const Plan *plan, const RuledLine *line, int64_t j, Terms *list) {
    const Product *p = &line->product;
    const TapeTensor *a = &plan->tape.tensors[line->in[p->a]];
    const TapeTensor *b = &plan->tape.tensors[line->in[p->b]];
    const TapeTensor *y = &plan->tape.tensors[line->out];
    const int64_t m = j % p->M, row = j / p->M, q = b->panels == 1 ? 0 : row / p->N;
    for (int64_t k = 0; k < p->K; k++) {
        const int64_t at = p->flipped ? (q * p->M + m) * p->K + k : (q * p->K + k) * p->M + m;
        put(list, 2, value_at(a, row * p->K + k), value_at(b, at));
    }
    for (int k = 0; k < line->num_in; k++) {
        if (line->in[k] < 0 || k == p->a || k == p->b) continue;
        const TapeTensor *c = &plan->tape.tensors[line->in[k]];
        put(list, 1, value_at(c, broadcast_index(c, y, j)), constant(1));
    }
}

/* What x[i] J[j, i] sum to, and how large the terms are. */
typedef struct {
    double sum, size;
} Sum;

/* The inputs that change element j of a line's result, each with its derivative. */
static Sum put_inputs(const Plan *plan, const RuledLine *line, int64_t j, Terms *list) {
    Sum all = {0, 0};
    for (int n = 0; n < line->num_parts; n++) {
        const Part *part = &line->parts[n];
        const TapeTensor *x = &plan->tape.tensors[part->x];
        for (int64_t i = 0; i < x->size; i++)
            for (int64_t e = part->begin[i]; e < part->begin[i + 1]; e++) {
                if (part->of[e].j != j) continue;
                const double J = part->of[e].J;
                put(list, J == 1 ? 1 : 2, value_at(x, i), constant(J));
                all.sum += x->value[i] * J;
                all.size += fabs(x->value[i] * J);
            }
    }
    return all;
}

/* Is the result the sum of x[i] J[j, i], as a sum is, and a mean? */
static bool is_linear(const Plan *plan, const RuledLine *line, int64_t j, Sum all) {
    const TapeTensor *y = &plan->tape.tensors[line->out];
    const double most = strcmp(json_text(y->json, "type", ""), "float32") == 0 ? 1e-5 : 1e-12;
    return all.size > 0 && fabs(all.sum - y->value[j]) <= most * all.size;
}

static int64_t forward_terms(const Plan *plan, const Step *step, int64_t j, Terms *list) {
    const Unit *unit = &plan->units[step->unit];
    const RuledLine *first = &plan->tape.lines[unit->first];
    const RuledLine *line = line_of(plan, step);
    Formula f;
    if (unit->moves) {
        const Source source = unit->moves[j];
        put(list, 1, value_at(&plan->tape.tensors[first->in[source.k]], source.i), constant(1));
        return list->count;
    }
    if (line->product.P > 0) {
        put_product_forward(plan, line, j, list);
        return list->count;
    }
    if (formula_by_number(plan, line, &f)) return -1;
    return is_linear(plan, line, j, put_inputs(plan, line, j, list)) ? list->count : -1;
}

/* ---- terms backward -------------------------------------------------------------------------- */

static void put_softmax(const Plan *plan, const Part *part, int64_t i, Terms *list) {
    const TapeTensor *y = &plan->tape.tensors[part->y];
    Factor minus = grad_at(y, i);
    const bool scaled = fabs(part->factor - 1) > 1e-6;
    minus.less = part->means[i / y->columns];
    minus.differs = true;
    if (list->count++ >= list->most) return;
    const Factor a = value_at(y, i);
    const Term term = {2, {a, minus}}, with_scale = {3, {constant(part->factor), a, minus}};
    list->terms[list->count - 1] = scaled ? with_scale : term;
}

static void put_factors(const Plan *plan, const Part *part, int64_t i, Terms *list) {
    const RuledLine *line = &plan->tape.lines[part->line];
    const Product *p = &line->product;
    const bool by_a = part->k == p->a;
    const TapeTensor *y = &plan->tape.tensors[part->y];
    const TapeTensor *other = &plan->tape.tensors[line->in[by_a ? p->b : p->a]];
    const int64_t panels = plan->tape.tensors[line->in[p->b]].panels;
    for (int64_t t = 0; t < product_terms(p, panels, by_a); t++) {
        const Pair pair = product_term(p, panels, by_a, i, t);
        const Factor dy = grad_at(y, pair.j), v = value_at(other, pair.other);
        const bool first = by_a || p->flipped; /* as the formula has them */
        put(list, 2, first ? dy : v, first ? v : dy);
    }
}

static void put_derivatives(const Plan *plan, const Part *part, int64_t i, Terms *list) {
    const TapeTensor *x = &plan->tape.tensors[part->x];
    const TapeTensor *y = &plan->tape.tensors[part->y];
    const int64_t size = part->kind == RULE_SPREAD ? x->size : y->size;
    const bool has_each = part->kind == RULE_EACH || part->kind == RULE_SPREAD;
    const bool varies = has_each && !part->is_constant;
    double times = 1;
    const int like = varies ? multiple_of(plan, part, &times) : -1;
    for (int64_t e = part->begin[i]; e < part->begin[i + 1]; e++) {
        const Factor dy = grad_at(y, part->of[e].j);
        if (like >= 0) {
            const int64_t at = part->kind == RULE_SPREAD ? i : part->of[e].j;
            const Factor v = value_at(&plan->tape.tensors[like], at);
            if (times == 1) put(list, 2, dy, v);
            else if (list->count++ < list->most)
                list->terms[list->count - 1] = (Term){3, {dy, constant(times), v}};
            continue;
        }
        Factor J = constant(part->of[e].J);
        if (varies) J.decimals = decimals_of(part->each, size);
        if (J.number == 1 && part->is_constant) put(list, 1, dy, J);
        else if (part->is_constant) put(list, 2, J, dy);
        else put(list, 2, dy, J);
    }
}

static void backward_terms(const Plan *plan, const Part *part, int64_t i, Terms *list) {
    if (part->kind == RULE_PRODUCT) put_factors(plan, part, i, list);
    else if (part->begin[i] == part->begin[i + 1]) return; /* a reason says why it is 0 */
    else if (part->kind == RULE_SOFTMAX) put_softmax(plan, part, i, list);
    else put_derivatives(plan, part, i, list);
}

static Factor part_at(const Part *part, const TapeTensor *x, int64_t i) {
    return (Factor){.number = part->dx[i], .decimals = decimals_of(part->dx, x->size)};
}

int64_t worked_terms(const Plan *plan, const Step *step, int64_t i, Term *terms, int64_t most) {
    Terms list = {terms, most, 0};
    const Part *parts[MOST_PARTS];
    const TapeTensor *x = step->tensor < 0 ? NULL : &plan->tape.tensors[step->tensor];
    switch (step->phase) {
    case STEP_COVER: return -1;
    case STEP_FORWARD: return forward_terms(plan, step, i, &list);
    case STEP_START: put(&list, 1, grad_at(x, i), constant(1)); break;
    case STEP_BACKWARD: backward_terms(plan, step->part, i, &list); break;
    case STEP_ADD: {
        const int n = parts_until(plan, step->tensor, step, parts, MOST_PARTS);
        for (int k = 0; k < n && k < MOST_PARTS; k++)
            put(&list, 1, part_at(parts[k], x, i), constant(1));
    }
    }
    return list.count;
}

/* ---- printed arithmetic ---------------------------------------------------------------------- */

/* What is left of a line; the value of what was read is NaN if it is no arithmetic. */
typedef struct {
    const char *at;
} Line;

static bool take(Line *line, const char *word) {
    const size_t n = strlen(word);
    if (strncmp(line->at, word, n) != 0) return false;
    line->at += n;
    return true;
}

static double read_sum(Line *line);

static double read_number(Line *line) {
    char *end;
    const double x = strtod(line->at, &end);
    if (end == line->at) return (double)NAN;
    line->at = end;
    return x;
}

static double read_factor(Line *line) {
    const bool is_max = take(line, "max("), is_exp = !is_max && take(line, "exp(");
    const bool has_brackets = is_max || is_exp || take(line, "(");
    double x = has_brackets ? read_sum(line) : read_number(line);
    if (is_max && take(line, ", ")) x = fmax(x, read_sum(line));
    if (has_brackets && !take(line, ")")) return (double)NAN;
    if (is_exp) x = exp(x);
    return take(line, "^2") ? x * x : x;
}

static double read_product(Line *line) {
    double x = read_factor(line);
    for (;;) {
        if (take(line, " x ")) x *= read_factor(line);
        else if (take(line, " / ")) x /= read_factor(line);
        else return x;
    }
}

static double read_sum(Line *line) {
    double x = read_product(line);
    for (;;) {
        if (take(line, " + ")) x += read_product(line);
        else if (take(line, " - ")) x -= read_product(line);
        else return x;
    }
}

/* Does "name = 0.5 x 1.33 = 0.665" hold as it is printed? What is no arithmetic does. */
static bool holds(const char *text) {
    const char *left = strstr(text, " = ");
    Line line = {left ? left + 3 : ""};
    const double x = read_sum(&line);
    if (isnan(x) || !take(&line, " = ")) return true;
    const char *point = strchr(line.at, '.');
    const char *exponent = strchr(line.at, 'e');
    const size_t digits = point ? strspn(point + 1, "0123456789") : 0;
    const double unit = pow(10, (exponent ? atoi(exponent + 1) : 0) - (double)digits);
    const double y = read_number(&line);
    return !(fabs(x - y) > 0.5 * unit + 1e-6 * fabs(y) + 1e-9); /* float32 has rounded y, too */
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { MOST_MORE = 4 }; /* decimals */

/* more: decimals of numbers that are rounded where they are printed. */
typedef struct {
    char *text;
    size_t used;
    int more;
} Text;

static void append(Text *t, const char *words) {
    t->used += (size_t)snprintf(t->text + t->used, FORMULA_TEXT - t->used, "%.200s", words);
    if (t->used >= FORMULA_TEXT) t->used = FORMULA_TEXT - 1;
}

/* "dA[1, 0]", "(S / sqrt(d))[1, 0]" */
static void append_element(Text *t, const char *name, const char *place) {
    const bool brackets = *place && name[strcspn(name, " (")] == ' ';
    if (brackets) append(t, "(");
    append(t, name);
    if (brackets) append(t, ")");
    append(t, place);
}

static void append_number(Text *t, double x, int decimals, bool brackets) {
    char text[24];
    if (decimals < 0) snprintf(text, sizeof text, "%.*g", 4 + t->more, x);
    else if (decimals == 3 && t->more && fabs(x) < 0.0995)
        snprintf(text, sizeof text, "%.*g", 3 + t->more, x);
    else if (decimals == 3 && t->more && fabs(x) < 1e5)
        snprintf(text, sizeof text, "%.*f", 3 + t->more, x);
    else number_text(x, decimals, text);
    if (brackets && *text == '-') append(t, "(");
    append(t, text);
    if (brackets && *text == '-') append(t, ")");
}

static void append_term(Text *t, const Term *term) {
    for (int n = 0; n < term->count; n++) {
        const Factor *f = &term->factors[n];
        if (n > 0) append(t, " x ");
        if (f->differs) append(t, "(");
        append_number(t, f->number, f->decimals, false);
        if (!f->differs) continue;
        append(t, " - ");
        append_number(t, f->less, 3, true);
        append(t, ")");
    }
}

void place_text(const Plan *plan, const TapeTensor *x, int64_t i, char text[PLACE_TEXT]) {
    int64_t place[TENSOR_MAX_DIMS];
    const char *panel = json_text(plan->lesson, "columns", "");
    const char *before = "[";
    const bool named = x->rank == 3 && *panel;
    int n = 0;
    *text = '\0';
    if (x->size < 2) return;
    for (int64_t d = x->rank - 1; d >= 0; d--) {
        place[d] = i % x->shape[d];
        i /= x->shape[d];
    }
    if (named && x->panels > 1) n = snprintf(text, 40, " %.20s %d ", panel, (int)place[0] + 1);
    for (int64_t d = named ? 1 : 0; d < x->rank; d++) {
        if (d < x->rank - 2 && x->shape[d] == 1) continue;
        n += snprintf(text + n, PLACE_TEXT - (size_t)n, "%s%d", before, (int)place[d]);
        before = ", ";
    }
    snprintf(text + n, PLACE_TEXT - (size_t)n, "]");
}

/* a - b with the numbers of element j. */
static void append_formula(Text *t, const Formula *f, const TapeTensor *y, int64_t j) {
    for (int i = 2; i < f->count; i++) {
        const Item *item = &f->items[i];
        const Item *before = &f->items[i - 1];
        if (i > 2 && stand_apart(before, item)) append(t, " ");
        if (!item->is_operand) {
            if (item->constant != 0) append_number(t, item->constant, -1, false);
            else append(t, item->text);
            continue;
        }
        const bool raised = i + 1 < f->count && item[1].text[0] == '^';
        append_number(t, item->numbers[broadcast_index(item->like, y, j)],
                      decimals_of(item->numbers, item->like->size),
                      raised || strcmp(before->text, "-") == 0);
    }
}

/* exp(a) / (exp(a) + exp(b)), if these are the weights. */
static bool append_weight(Text *t, const TapeTensor *y, const Part *part, const TapeTensor *x,
                          int64_t j, const Terms *list) {
    const double s = part->factor, own = exp(s * x->value[j]);
    double sum = 0;
    for (int64_t n = 0; n < list->count && n < SHOWN; n++)
        sum += exp(s * list->terms[n].factors[0].number);
    if (list->count > SHOWN || !(fabs(own / sum - y->value[j]) <= 1e-5)) return false;
    for (int64_t n = -1; n < list->count; n++) {
        if (n >= 0) append(t, n > 0 ? " + " : " / (");
        append(t, "exp(");
        if (fabs(s - 1) > 1e-6) {
            append_number(t, s, -1, false);
            append(t, " x ");
        }
        append_number(t, n < 0 ? x->value[j] : list->terms[n].factors[0].number,
                      decimals_of(x->value, x->size), false);
        append(t, ")");
    }
    append(t, ")");
    return true;
}

/* "softmax of 0.665, -0.545" */
static void append_call(Text *t, const Plan *plan, const RuledLine *line, int64_t j) {
    Term terms[SHOWN];
    Terms list = {terms, SHOWN, 0};
    const Part *part = line->parts;
    put_inputs(plan, line, j, &list);
    if (part->factor != 0 && append_weight(t, &plan->tape.tensors[part->y], part,
                                           &plan->tape.tensors[part->x], j, &list))
        return;
    append(t, json_text(line->json, "op", ""));
    for (int64_t n = 0; n < list.count && n < SHOWN; n++) {
        append(t, n > 0 ? ", " : " of ");
        append_number(t, terms[n].factors[0].number, terms[n].factors[0].decimals, false);
    }
    if (list.count > SHOWN) append(t, ", ...");
}

/* "dE[1, 1]" */
static void append_source(Text *t, const Plan *plan, const Factor *f) {
    char name[NAME_TEXT], place[PLACE_TEXT];
    const int tensor = (int)(f->from - plan->tape.tensors);
    if (f->is_gradient) name_of_gradient(plan, tensor, false, name);
    else name_of_tensor(plan, tensor, false, name);
    place_text(plan, f->from, f->i, place);
    append_element(t, name, place);
}

/* A number that is only copied says from where. */
static void append_terms(Text *t, const Plan *plan, const Term *terms, int64_t count) {
    char text[40];
    if (count == 1 && terms->count == 1 && terms->factors[0].from) {
        append_source(t, plan, terms->factors);
        return;
    }
    for (int64_t n = 0; n < count && n < SHOWN; n++) {
        if (n > 0) append(t, " + ");
        append_term(t, &terms[n]);
    }
    snprintf(text, sizeof text, " + ... (%lld terms)", (long long)count);
    if (count > SHOWN) append(t, text);
}

/* The result has no more decimals than its table. */
static void append_result(Text *t, double x, int decimals) {
    t->more = 0;
    append_number(t, x, decimals, false);
}

static void write_mean(const Plan *plan, const Step *step, int64_t i, Text t) {
    const Part *part = step->part;
    const TapeTensor *y = &plan->tape.tensors[part->y];
    const int64_t row = i / y->columns, count = y->columns < SHOWN ? y->columns : SHOWN;
    append(&t, "weighted mean = ");
    for (int64_t n = 0; n < count; n++) {
        const int64_t j = row * y->columns + n;
        const Term term = {2, {value_at(y, j), grad_at(y, j)}};
        if (n > 0) append(&t, " + ");
        append_term(&t, &term);
    }
    append(&t, count < y->columns ? " + ... = " : " = ");
    append_result(&t, part->means[row], 3);
}

void worked_mean(const Plan *plan, const Step *step, int64_t i, char text[FORMULA_TEXT]) {
    *text = '\0';
    if (step->phase != STEP_BACKWARD || step->kind != RULE_SOFTMAX) return;
    for (int more = 0; more <= MOST_MORE && (more == 0 || !holds(text)); more++)
        write_mean(plan, step, i, (Text){text, 0, more});
}

/* Does an input change element j of the result? */
static bool changes(const Plan *plan, const RuledLine *line, int64_t j) {
    Formula f;
    Terms none = {NULL, 0, 0};
    put_inputs(plan, line, j, &none);
    return none.count > 0 || formula_by_number(plan, line, &f);
}

static void write_line(const Plan *plan, const Step *step, int64_t i, Text t) {
    char name[NAME_TEXT], place[PLACE_TEXT];
    Term terms[SHOWN];
    Formula f;
    const TapeTensor *made = &plan->tape.tensors[step->tensor];
    const int64_t count = worked_terms(plan, step, i, terms, SHOWN);
    if (step->phase == STEP_FORWARD) name_of_tensor(plan, step->tensor, false, name);
    else name_of_gradient(plan, step->tensor, false, name);
    place_text(plan, made, i, place);
    append_element(&t, name, place);
    const bool forward = count < 0 && changes(plan, line_of(plan, step), i);
    if (count > 0 || forward) append(&t, " = ");
    if (count > 0) append_terms(&t, plan, terms, count);
    if (forward && formula_by_number(plan, line_of(plan, step), &f))
        append_formula(&t, &f, made, i);
    else if (forward) append_call(&t, plan, line_of(plan, step), i);
    const bool wrong = step->phase == STEP_ADD && !parts_sum_up(plan, step);
    append(&t, wrong ? ", but the gradient is " : " = ");
    append_result(&t, step->numbers[i], decimals_of(step->numbers, made->size));
    if (count < 0 && !forward && line_of(plan, step)->num_parts > 0)
        append(&t, ": no input changes it");
}

void worked_text(const Plan *plan, const Step *step, int64_t i, char text[FORMULA_TEXT]) {
    *text = '\0';
    if (!step->numbers || step->phase == STEP_START) return;
    for (int more = 0; more <= MOST_MORE && (more == 0 || !holds(text)); more++)
        write_line(plan, step, i, (Text){text, 0, more});
}
