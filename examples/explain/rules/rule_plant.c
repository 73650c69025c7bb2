/* rule_plant.c - finds the line and the names of a rule, and plants its formula: see rule_plant.h.
 *
 * A hook on a line of the tape is called after the backward of the line, and puts the value of the
 * formula in place of the right dx. So neither the library nor the lesson changes. The check of the
 * line compares its backward with its forward, and fails if the formula is wrong. */
#include "rule_judge.h"

#include "../../common/put_text.h"
#include "../page/json.h"
#include "../page/recording.h"

#include <stdlib.h>
#include <string.h>

/* ---- the hook -------------------------------------------------------------------------------- */

/* A formula that reads other gradients is for the one that arrives: of the derivatives of the line
 * it says nothing. */
static bool is_for(const PlantedRule *rule, const AgCall *call, const Tensor *dy) {
    const Tensor *arrives = call->out->grad_buffer ? call->out->grad_buffer : call->out->grad;
    return !planted_reads_others(&rule->formula) || (arrives && arrives->data == dy->data);
}

/* The gradients that other lines have added are lost, so only the line that backward reaches last
 * counts. */
static void forget_gradients(const AgCall *call, unsigned inputs) {
    for (int k = 0; k < call->n; k++) {
        if (!(inputs >> k & 1)) continue;
        tensor_release(call->in[k]->grad_buffer);
        call->in[k]->grad_buffer = NULL;
    }
}

static void run_rules(const AgCall *call, Tensor *dy, Tensor **dx) {
    const PlantedLine *line = call->data;
    const RuleValues values = {.dy = dy, .out = call->out, .in = call->in};
    for (int k = 0; k < PLANTED_INPUTS && k < call->n; k++) {
        PlantedRule *rule = line->rules[k];
        if (!rule || !call->in[k] || !is_for(rule, call, dy)) continue;
        RuleFormula *f = &rule->formula;
        Tensor *value = rule_fit(f, rule_evaluate(f, &values), call->in[k], line->moves);
        if (!value && *f->complaint) tensor_fail("rule of %s: %s", rule->name, f->complaint);
        if (!value) return;
        tensor_release(dx[k]);
        dx[k] = tensor_retain(value);
    }
    forget_gradients(call, line->assigned);
}

bool planted_hook_on(PlantedLine *line) {
    return tape_register_hook(line->number, run_rules, line);
}

bool planted_hook_all(const Planting *p, bool on) {
    bool done = true;
    for (PlantedLine *line = p->first; line; line = line->next)
        done = (on ? planted_hook_on(line) : tape_register_hook(line->number, NULL, NULL)) && done;
    return done;
}

/* ---- tensors and lines by name --------------------------------------------------------------- */

Tensor *tensor_on_tape(const char *name) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        if (strcmp(line.out->name, name) == 0) return line.out;
        for (int k = 0; k < line.n_in; k++)
            if (line.in[k] && strcmp(line.in[k]->name, name) == 0) return line.in[k];
    }
    return NULL;
}

/* By a name of the tape, or by another name of it. */
static Tensor *find_tensor(const Planting *p, const char *name) {
    Tensor *x = *name ? tensor_on_tape(name) : NULL;
    for (int i = 0; i < p->num_aliases && !x && *name; i++)
        if (p->aliases[i].tensor && strcmp(p->aliases[i].alias, name) == 0)
            x = tensor_on_tape(p->aliases[i].tensor);
    return x;
}

Tensor *planted_tensor_of(const Planting *p, const char *name) {
    char inside[RULE_NAME];
    const size_t n = strlen(name);
    if (n < 2 || *name != 'd' || n >= sizeof inside) return NULL;
    Tensor *x = find_tensor(p, name + 1);
    if (x || name[1] != '(' || name[n - 1] != ')') return x;
    snprintf(inside, sizeof inside, "%.*s", (int)n - 3, name + 2);
    return find_tensor(p, inside);
}

bool planted_has_gradient(const TapeLine *line, int k) {
    return line->out->grad_fn && k < PLANTED_INPUTS && line->n_in <= PLANTED_INPUTS &&
           line->in[k] && line->in[k]->requires_grad;
}

/* The line that makes x, with a gradient; -1 if there is none. */
static int maker_of(const Tensor *x) {
    TapeLine line;
    for (int i = 0; x && tape_line(i, &line); i++)
        if (line.out == x && line.out->grad_fn && line.n_in > 0) return i;
    return -1;
}

/* Which gradient a rule computes. */
typedef struct {
    int line, k;
} Place;

static bool refuse(const char *name, const char *why) {
    return tensor_fail("rule of %s: %s", tensor_name_text(name), why);
}

/* "d(S / sqrt(d))" */
static void name_gradient(const Tensor *x, char text[RULE_NAME]) {
    snprintf(text, RULE_NAME, strpbrk(x->name, " +-*/@'") ? "d(%.31s)" : "d%.31s", x->name);
}

void planted_gradient(const TapeLine *line, int k, char text[RULE_NAME]) {
    char argument[RULE_NAME];
    name_gradient(line->in[k], text);
    planted_argument(line, k, argument);
    if (strchr(text, ' ') && *argument) snprintf(text, RULE_NAME, "d%.31s", argument);
}

/* The one gradient that the name can mean: of the line that makes x, or, if none does (-1), of x in
 * the line that reads it. */
static bool only_place(const char *name, const Tensor *x, int maker, Place *place) {
    TapeLine line;
    char gradient[RULE_NAME], pair[2 * RULE_NAME], first[2 * RULE_NAME], sentence[320];
    const bool is_made = maker >= 0;
    int found = 0;
    for (int i = is_made ? maker : 0; tape_line(i, &line) && (!is_made || i == maker); i++)
        for (int k = 0; k < line.n_in; k++) {
            if (!planted_has_gradient(&line, k) || (!is_made && line.in[k] != x)) continue;
            if (is_made) planted_gradient(&line, k, gradient);
            else name_gradient(x, gradient);
            snprintf(pair, sizeof pair, "%.31s.%.39s", is_made ? name : line.out->name, gradient);
            if (found++ == 0) {
                *place = (Place){i, k};
                memcpy(first, pair, sizeof first);
                continue;
            }
            snprintf(sentence, sizeof sentence, "%s%.31s: say which, %s or %s",
                     is_made ? "its line has several gradients" : "several lines read ",
                     is_made ? "" : x->name, first, pair);
            return refuse(name, sentence);
        }
    return found == 1 ||
           refuse(name, is_made ? "its line has no gradient that a formula can replace"
                                : "it gets no gradient");
}

/* The input with this name on line i, or this name in the op's call; -1 if there is none. */
static int input_named(const Planting *p, int i, const char *name) {
    TapeLine line;
    char argument[RULE_NAME];
    const Tensor *x = find_tensor(p, name);
    const Tensor *of = planted_tensor_of(p, name);
    tape_line(i, &line);
    for (int k = 0; k < line.n_in; k++)
        if (planted_has_gradient(&line, k) && (line.in[k] == x || line.in[k] == of)) return k;
    for (int k = 0; k < line.n_in; k++) {
        planted_argument(&line, k, argument);
        const bool same = strcmp(argument, name) == 0;
        const bool is_gradient = *name == 'd' && strcmp(argument, name + 1) == 0;
        if (*argument && planted_has_gradient(&line, k) && (same || is_gradient)) return k;
    }
    return -1;
}

/* "Q.dx": the line that makes Q, and its input x. Names may have points of their own. */
static bool find_pair(const Planting *p, const char *name, Place *place) {
    char left[RULE_NAME];
    bool any_line = false;
    for (const char *point = strchr(name, '.'); point; point = strchr(point + 1, '.')) {
        snprintf(left, sizeof left, "%.*s", (int)(point - name), name);
        place->line = maker_of(find_tensor(p, left));
        place->k = place->line < 0 ? -1 : input_named(p, place->line, point + 1);
        if (place->k >= 0) return true;
        any_line = any_line || place->line >= 0;
    }
    return refuse(name, any_line ? "the line has no such gradient"
                                 : "no line of the tape makes or reads a tensor of this name");
}

static bool find_place(const Planting *p, const char *name, Place *place) {
    const Tensor *x = find_tensor(p, name);
    const int maker = maker_of(x);
    if (!x) x = planted_tensor_of(p, name);
    return x ? only_place(name, x, maker, place) : find_pair(p, name, place);
}

bool planted_leads_to(const Planting *p, const char *name, int i, int k) {
    Place place = {0};
    if (tensor_error()) return false; /* an error that was there stays */
    const bool found = find_place(p, name, &place);
    if (!found) tensor_clear_error();
    return found && place.line == i && place.k == k;
}

/* ---- planting -------------------------------------------------------------------------------- */

PlantedLine *planted_line(const Planting *p, int i) {
    PlantedLine *line = p->first;
    while (line && line->number != i) line = line->next;
    return line;
}

static PlantedLine *line_at(Planting *p, int number) {
    PlantedLine **place = &p->first;
    TapeLine line;
    if (planted_line(p, number)) return planted_line(p, number);
    while (*place) place = &(*place)->next;
    *place = calloc(1, sizeof **place);
    if (!*place) return tensor_fail("out of memory for a rule");
    (*place)->number = number;
    (*place)->moves = tape_line(number, &line) && planted_moves(line.op);
    return *place;
}

static void free_rule(PlantedRule *rule) {
    if (rule) tensor_release(rule->kept);
    free(rule);
}

/* Is a gradient computed by the formula? It is tried with a dy of ones. */
static bool try_formula(PlantedRule *rule, int number, bool moves) {
    TapeLine line;
    RuleFormula *f = &rule->formula;
    Tensor *in[PLANTED_INPUTS];
    if (!tape_line(number, &line)) return false;
    planted_inputs(&line, in);
    if (!tape_begin_no_grad()) return false;
    const RuleValues values = {
        .dy = tape_own(tensor_ones_like(line.out)), .out = line.out, .in = in};
    rule_fit(f, rule_evaluate(f, &values), in[rule->input], moves);
    tape_end();
    return !tensor_error() && !*f->complaint;
}

/* Adds to a complaint about sizes which known mistake it is. */
static void name_mistake(const Planting *p, PlantedRule *rule, int number, const RuleScope *scope) {
    RuleFormula *f = &rule->formula;
    PlantedUse use = {.line = number, .k = rule->input};
    if (planted_reads_others(f)) judge_turned_use(number, rule->input, &use);
    judge_name_mistake(p, &use, judge_squares(&use, f->text, scope), f->complaint,
                       sizeof f->complaint);
}

/* Reads the formula, and tries it; false with a complaint or an error. */
static bool read_formula(const Planting *p, PlantedRule *rule, int number, const char *formula) {
    static RuleScope scope;
    TapeLine line;
    const bool reads = planted_scope(p, number, NULL, &rule->kept, &scope) &&
                       rule_parse(&rule->formula, formula, &scope);
    const bool fits =
        reads && try_formula(rule, number, tape_line(number, &line) && planted_moves(line.op));
    if (reads && !fits && !tensor_error()) name_mistake(p, rule, number, &scope);
    return fits;
}

static bool plant(Planting *p, Place place, const char *name, const char *formula, bool typed) {
    const int number = place.line;
    const int k = place.k;
    PlantedLine *line = line_at(p, number);
    PlantedRule *rule = line ? calloc(1, sizeof *rule) : NULL;
    if (line && !rule) tensor_fail("out of memory for a rule");
    if (!rule) return false;
    rule->input = k;
    rule->is_typed = typed;
    snprintf(rule->name, sizeof rule->name, "%s", name);
    const RuleFormula *f = &rule->formula;
    const bool fits = read_formula(p, rule, number, formula);
    if (*f->complaint && !tensor_error())
        tensor_fail("rule of %s, column %d: %s", rule->name, f->column, f->complaint);
    if (!fits || !planted_hook_on(line)) {
        free_rule(rule);
        return false;
    }
    free_rule(line->rules[k]);
    line->rules[k] = rule;
    return true;
}

bool rule_plant_at(Planting *p, int line, int k, const char *name, const char *formula) {
    return plant(p, (Place){line, k}, name, formula, false);
}

bool rule_plant_assign(Planting *p, int number, unsigned inputs) {
    PlantedLine *line = line_at(p, number);
    if (line) line->assigned = inputs;
    return line && planted_hook_on(line);
}

const char *planted_split(const char *rule, char name[RULE_NAME]) {
    const char *colon = strchr(rule, ':');
    const char *begin = rule + strspn(rule, " \t");
    size_t n = colon > begin ? (size_t)(colon - begin) : 0;
    while (n > 0 && strchr(" \t", begin[n - 1])) n--;
    if (n == 0)
        return tensor_fail("rule \"%s\": it begins with a name and a colon, as in A: y * dy",
                           tensor_name_text(rule));
    if (n >= RULE_NAME)
        return tensor_fail("rule of %s: no tensor has so long a name", tensor_name_text(begin));
    snprintf(name, RULE_NAME, "%.*s", (int)n, begin);
    return colon + 1 + strspn(colon + 1, " \t");
}

bool rule_plant(Planting *p, const char *rule) {
    char name[RULE_NAME] = "";
    Place place = {0};
    const char *formula = tensor_error() ? NULL : planted_split(rule, name);
    return formula && find_place(p, name, &place) && plant(p, place, name, formula, true);
}

void rule_free(Planting *p) {
    while (p->first) {
        PlantedLine *line = p->first;
        p->first = line->next;
        for (int k = 0; k < PLANTED_INPUTS; k++) free_rule(line->rules[k]);
        free(line);
    }
}

/* ---- what became of them --------------------------------------------------------------------- */

bool rule_all_right(const Planting *p) {
    for (const PlantedLine *line = p->first; line; line = line->next)
        for (int k = 0; k < PLANTED_INPUTS; k++)
            if (line->rules[k] && !line->rules[k]->is_right) return false;
    return true;
}

/* The formula in the names of rows.c: x0, y, dy, t7, and g7 for its gradient. */
static void put_tree(const RuleFormula *f, int n, char text[RULE_TEXT]) {
    const RuleNode *node = &f->nodes[n];
    const RuleName *name = &node->value;
    if (node->sign == '#') put_text(text, RULE_TEXT, "%.17g", node->number);
    else if (node->sign != 'n') {
        if (node->sign == 'f') put_text(text, RULE_TEXT, "%s", rule_function(node->function));
        if (node->sign == 'M') put_text(text, RULE_TEXT, "max");
        put_text(text, RULE_TEXT, node->sign == '~' ? "(-" : "(");
        put_tree(f, node->a, text);
        if (node->sign == 'M') put_text(text, RULE_TEXT, ", ");
        else if (strchr("+-*/@>^", node->sign)) put_text(text, RULE_TEXT, " %c ", node->sign);
        if (strchr("+-*/@>^M", node->sign)) put_tree(f, node->b, text);
        put_text(text, RULE_TEXT, node->sign == '\'' ? ")'" : ")");
    } else if (name->meaning == NAMES_DY) put_text(text, RULE_TEXT, "dy");
    else if (name->meaning == NAMES_OUT) put_text(text, RULE_TEXT, "y");
    else if (name->meaning == NAMES_INPUT) put_text(text, RULE_TEXT, "x%d", name->input);
    else if (name->meaning == NAMES_NUMBER) put_text(text, RULE_TEXT, "%.17g", name->number);
    else if (data_number(name->tensor) < 0) put_text(text, RULE_TEXT, "kept");
    else
        put_text(text, RULE_TEXT, "%c%d", name->meaning == NAMES_GRADIENT ? 'g' : 't',
                 data_number(name->tensor));
}

/* A known mistake is written in the lesson's names. */
static void write_rule(FILE *file, const Planting *p, int i, const PlantedRule *rule) {
    char text[RULE_TEXT + RULE_NAME + 8], tree[RULE_TEXT] = "", said[320];
    const PlantedUse use = {.line = i, .k = rule->input};
    const char *formula = rule->formula.text;
    if (!rule->is_typed) planted_say_formula(p, &use, NULL, formula, said);
    if (!rule->is_typed) formula = said;
    snprintf(text, sizeof text, "%s: %s", rule->name, formula);
    fprintf(file, "{\"line\":%d,\"input\":%d,\"typed\":%s", i, rule->input,
            rule->is_typed ? "true" : "false");
    json_write_member(file, "rule", text);
    json_write_member(file, "name", rule->name);
    json_write_member(file, "formula", formula);
    put_tree(&rule->formula, rule->formula.n - 1, tree);
    json_write_member(file, "tree", tree);
    json_write_member(file, "verdict", rule->is_right ? "right" : "wrong");
    json_write_member(file, "mistake", rule->mistake ? rule->mistake->id : "");
    json_write_member(file, "computes", rule->computes);
    json_write_member(file, "why", rule->why);
    json_write_member(file, "question", rule->question);
    putc('}', file);
}

void rule_write(const Planting *p, FILE *file) {
    const char *before = "\n";
    fprintf(file, ",\n\"planted\":[");
    for (const PlantedLine *line = p->first; line; line = line->next)
        for (int k = 0; k < PLANTED_INPUTS; k++) {
            if (!line->rules[k]) continue;
            fputs(before, file);
            write_rule(file, p, line->number, line->rules[k]);
            before = ",\n";
        }
    putc(']', file);
}

bool rule_write_right(Planting *p, FILE *file) {
    if (!p->first) return true;
    bool done = planted_hook_all(p, false);
    fprintf(file, ",\n\"right\":");
    done = done && tape_write_json(file);
    return planted_hook_all(p, true) && done;
}
