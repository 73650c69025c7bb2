/* plan.c - the steps of a lesson: see plan.h.
 *
 * The sections: folds, steps, what the lesson says of a step, the whole. */
#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- folds ----------------------------------------------------------------------------------- */

static int inputs_of(const RuledLine *line) {
    int n = 0;
    for (int k = 0; k < line->num_in; k++) n += line->in[k] >= 0;
    return n;
}

/* Does line l read the result of the line before it, as the only line? */
static bool goes_on(const RuledTape *tape, int l) {
    if (l == 0) return false;
    const RuledLine *line = &tape->lines[l];
    const RuledLine *before = &tape->lines[l - 1];
    bool reads = false;
    for (int k = 0; k < line->num_in; k++) reads = reads || line->in[k] == before->out;
    return reads && tape->tensors[before->out].readers == 1;
}

static bool only_moves(const RuledTape *tape, int l) {
    return tape->lines[l].moves && inputs_of(&tape->lines[l]) == 1;
}

static int index_of_line(const RuledTape *tape, double number) {
    int l = 0;
    while (l < tape->num_lines && tape->lines[l].number != number) l++;
    return l;
}

/* May these lines be one step? Each must read the result of the one before it, and have no other
 * part of a gradient. */
static bool can_fold(const RuledTape *tape, const Json *lines, int first) {
    int l = first;
    if (lines->count < 2) return false;
    for (const Json *number = lines->first; number; number = number->next, l++) {
        if (l >= tape->num_lines || number->number != tape->lines[l].number) return false;
        if (l == first) continue;
        const RuledLine *line = &tape->lines[l];
        const bool has_gradient = tape->lines[first].num_parts > 0;
        if (!goes_on(tape, l) || line->num_parts != has_gradient) return false;
        if (has_gradient && line->parts[0].x != tape->lines[l - 1].out) return false;
    }
    return true;
}

/* Adds a unit of the lines first to last. Its arrow has the derivatives of all its lines. */
static bool add_unit(Plan *plan, int first, int last, const char *name) {
    RuledTape *tape = &plan->tape;
    Unit *unit = &plan->units[plan->num_units];
    *unit = (Unit){first, last, name, tape->lines[first].moves};
    for (int l = first; l <= last; l++) {
        RuledLine *line = &tape->lines[l];
        plan->unit_of[l] = plan->num_units;
        if (l == first) continue;
        if (!unit->moves || !line->moves) unit->moves = NULL;
        else
            for (int64_t j = 0; j < tape->tensors[line->out].size; j++)
                line->moves[j] = unit->moves[line->moves[j].i];
        if (unit->moves) unit->moves = line->moves;
        for (int i = 0; i < tape->lines[first].num_parts; i++)
            if (!rules_compose(tape, &tape->lines[first].parts[i], &line->parts[0])) return false;
    }
    if (last > first && unit->moves && tape->lines[first].num_parts > 0)
        tape->lines[first].parts[0].kind = RULE_MOVE;
    plan->num_units++;
    return true;
}

/* The last line of the fold that begins with this line, and its name; the line itself if none
 * does. */
static int end_of_fold(const Plan *plan, int first, const char **name) {
    const RuledTape *tape = &plan->tape;
    const Json *folds = json_get(plan->lesson, "fold");
    for (const Json *fold = folds ? folds->first : NULL; fold; fold = fold->next) {
        const Json *lines = json_get(fold, "lines");
        const Json *number = json_at(lines, 0);
        if (!number || index_of_line(tape, number->number) != first) continue;
        if (!can_fold(tape, lines, first)) continue;
        *name = json_text(fold, "name", "");
        return first + (int)lines->count - 1;
    }
    int last = first;
    while (only_moves(tape, first) && last + 1 < tape->num_lines && only_moves(tape, last + 1) &&
           goes_on(tape, last + 1))
        last++;
    if (last > first) *name = "moves";
    return last;
}

static bool make_units(Plan *plan, bool open) {
    plan->units = memory_take(&plan->tape.memory, plan->tape.num_lines, sizeof *plan->units);
    plan->unit_of = memory_take(&plan->tape.memory, plan->tape.num_lines, sizeof *plan->unit_of);
    if (!plan->units || !plan->unit_of) return false;
    for (int l = 0; l < plan->tape.num_lines; l++) {
        const char *name = NULL;
        const int last = open ? l : end_of_fold(plan, l, &name);
        if (!add_unit(plan, l, last, name)) return false;
        l = last;
    }
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static Step *add_step(Plan *plan, StepPhase phase, int unit, int tensor, Part *part) {
    static const char letters[] = "0fsba";
    Step *step = &plan->steps[plan->num_steps++];
    *step = (Step){.phase = phase, .unit = unit, .tensor = tensor, .part = part};
    int line = 0;
    if (unit >= 0) line = part ? plan->units[unit].first : plan->units[unit].last;
    line = plan->tape.lines[line].number;
    if (part) snprintf(step->name, sizeof step->name, "%c%d.%d", letters[phase], line, part->k);
    else if (phase == STEP_FORWARD) snprintf(step->name, sizeof step->name, "f%d", line);
    else snprintf(step->name, sizeof step->name, "%c", letters[phase]);
    return step;
}

static RuleKind kind_forward(const Plan *plan, const Unit *unit) {
    const RuledLine *line = &plan->tape.lines[unit->last];
    if (unit->moves) return RULE_MOVE;
    if (unit->first < unit->last) return RULE_GENERAL;
    if (line->product.P > 0) return RULE_PRODUCT;
    return line->num_parts > 0 && line->parts[0].factor != 0 ? RULE_SOFTMAX : RULE_GENERAL;
}

int parts_until(const Plan *plan, int tensor, const Step *step, const Part **parts, int most) {
    const RuledTape *tape = &plan->tape;
    const int end = (int)(step - plan->steps);
    int n = 0;
    for (int l = tape->num_lines - 1; l >= 0; l--)
        for (int i = 0; i < tape->lines[l].num_parts; i++) {
            const Part *part = &tape->lines[l].parts[i];
            if (part->x != tensor || part->step < 0 || part->step > end) continue;
            if (parts && n < most) parts[n] = part;
            n++;
        }
    return n;
}

/* The tensors from which backward begins: results whose gradient no line gives. */
static void add_starts(Plan *plan) {
    int starts = 0;
    for (int t = 0; t < plan->tape.num_tensors; t++) {
        const TapeTensor *x = &plan->tape.tensors[t];
        if (x->maker < 0 || !x->grad || x->parts > 0) continue;
        Step *step = add_step(plan, STEP_START, plan->unit_of[x->maker], t, NULL);
        if (starts > 0) snprintf(step->name, sizeof step->name, "s%d", starts);
        step->numbers = x->grad;
        starts++;
    }
}

static bool is_float32(const TapeTensor *x) {
    return strcmp(json_text(x->json, "type", ""), "float32") == 0;
}

bool parts_sum_up(const Plan *plan, const Step *step) {
    const TapeTensor *x = &plan->tape.tensors[step->tensor];
    const double most = is_float32(x) ? 1e-5 : 1e-12;
    const Part *parts[MOST_PARTS];
    const int n = parts_until(plan, step->tensor, step, parts, MOST_PARTS);
    for (int64_t i = 0; n <= MOST_PARTS && i < x->size; i++) {
        double sum = 0, size = 0;
        for (int k = 0; k < n; k++) {
            sum += parts[k]->dx[i];
            size += fabs(parts[k]->dx[i]);
        }
        if (isfinite(sum) && fabs(sum - step->numbers[i]) > most * size) return false;
    }
    return true;
}

/* The sum of the first n parts of a gradient: the gradient, if these are all. */
static const double *sum_of_parts(Plan *plan, int tensor, const Step *step) {
    const TapeTensor *x = &plan->tape.tensors[tensor];
    const bool rounds = is_float32(x);
    const Part *parts[MOST_PARTS];
    const int n = parts_until(plan, tensor, step, parts, MOST_PARTS);
    if (n == x->parts || n > MOST_PARTS) return x->grad;
    double *sum = memory_take(&plan->tape.memory, x->size, sizeof *sum);
    for (int64_t i = 0; sum && i < x->size; i++)
        for (int k = 0; k < n; k++) {
            sum[i] += parts[k]->dx[i];
            if (rounds) sum[i] = (double)(float)sum[i];
        }
    return sum;
}

/* Backward of a unit: a step for each part, and one that adds it to earlier parts. */
static void add_backward(Plan *plan, int u) {
    RuledLine *line = &plan->tape.lines[plan->units[u].first];
    for (int i = 0; i < line->num_parts; i++) {
        Part *part = &line->parts[i];
        part->step = plan->num_steps;
        Step *step = add_step(plan, STEP_BACKWARD, u, part->x, part);
        step->kind = part->kind;
        step->numbers = part->dx;
        if (parts_until(plan, part->x, step, NULL, 0) < 2) continue;
        step = add_step(plan, STEP_ADD, u, part->x, part);
        step->numbers = sum_of_parts(plan, part->x, step);
    }
}

static bool make_steps(Plan *plan) {
    int64_t most = 1 + plan->tape.num_tensors;
    for (int u = 0; u < plan->num_units; u++)
        most += 1 + 2 * plan->tape.lines[plan->units[u].first].num_parts;
    plan->steps = memory_take(&plan->tape.memory, most, sizeof *plan->steps);
    if (!plan->steps) return false;
    add_step(plan, STEP_COVER, -1, -1, NULL);
    for (int u = 0; u < plan->num_units; u++) {
        const int out = plan->tape.lines[plan->units[u].last].out;
        Step *step = add_step(plan, STEP_FORWARD, u, out, NULL);
        step->kind = kind_forward(plan, &plan->units[u]);
        step->numbers = plan->tape.tensors[out].value;
    }
    plan->num_forward = plan->num_steps - 1;
    add_starts(plan);
    for (int u = plan->num_units - 1; u >= 0; u--) add_backward(plan, u);
    return !tensor_error();
}

/* ---- what the lesson says of a step ---------------------------------------------------------- */

/* Does a derivative of the line that made the result reach its element j? All do in a line of which
 * no derivative is known. */
static bool is_reached(const Plan *plan, const Step *step, int64_t j) {
    if (step->phase != STEP_FORWARD || step->kind == RULE_PRODUCT) return true;
    const RuledLine *line = &plan->tape.lines[plan->units[step->unit].last];
    for (int n = 0; n < line->num_parts; n++) {
        const Part *p = &line->parts[n];
        for (int64_t e = 0; e < p->begin[plan->tape.tensors[p->x].size]; e++)
            if (p->of[e].j == j) return true;
    }
    return line->num_parts == 0;
}

/* The element that is the farthest from 0, below 100,000, and that an input changes, if there is
 * one. */
static int64_t largest_of(const Plan *plan, const Step *step, int64_t size) {
    double most = -1;
    int64_t largest = 0;
    for (int64_t i = 0; i < size; i++) {
        const double x = fabs(step->numbers[i]);
        if (!(x > most && x < 1e5) || !is_reached(plan, step, i)) continue;
        most = x;
        largest = i;
    }
    return largest;
}

/* What the lesson says at this name; NULL if it says nothing. */
static const Json *said_at(const Plan *plan, const char *name) {
    const Json *list = json_get(plan->lesson, "steps");
    const Json *item = list ? list->first : NULL;
    while (item && strcmp(json_text(item, "at", ""), name) != 0) item = item->next;
    return item;
}

/* The text of a line that is folded into a step. */
static const char *text_of_line(const Plan *plan, const Step *step, int l) {
    char name[32];
    const RuledLine *line = &plan->tape.lines[l];
    const int k = line->num_parts > 0 ? line->parts[0].k : 0;
    if (step->phase == STEP_FORWARD) snprintf(name, sizeof name, "f%d", line->number);
    else snprintf(name, sizeof name, "b%d.%d", line->number, k);
    return json_text(said_at(plan, name), "text", NULL);
}

/* A folded step has the texts of its lines, if they are short together, or its own, or the last;
 * a chain of moves has its own, or the first. */
static const char *text_of_fold(Plan *plan, const Step *step, const char *own) {
    enum { MOST_LETTERS = 480 };
    const Unit *unit = &plan->units[step->unit];
    const bool down = step->phase == STEP_FORWARD || unit->moves; /* in the order of the tape */
    const char *one = NULL;
    char *all = memory_take(&plan->tape.memory, MOST_LETTERS + 1, 1);
    size_t n = 0;
    if (unit->moves && own) return own;
    for (int i = 0; all && i <= unit->last - unit->first; i++) {
        const char *text = text_of_line(plan, step, down ? unit->first + i : unit->last - i);
        if (!text || strstr(all, text)) continue;
        if (!one || !unit->moves) one = text;
        n += strlen(text) + (n > 0);
        if (n <= MOST_LETTERS) strcat(strcat(all, *all ? " " : ""), text);
    }
    if (!unit->moves && n > 0 && n <= MOST_LETTERS) return all;
    return own ? own : one;
}

static void find_text(Plan *plan, Step *step) {
    const Json *said = said_at(plan, step->name);
    const int64_t size = step->numbers ? plan->tape.tensors[step->tensor].size : 0;
    const int64_t look = json_integer(said, "look", -1);
    const Unit *unit = step->unit >= 0 ? &plan->units[step->unit] : NULL;
    const bool is_arrow = step->phase == STEP_FORWARD || step->phase == STEP_BACKWARD;
    step->text = json_text(said, "text", NULL);
    if (is_arrow && unit->first < unit->last) step->text = text_of_fold(plan, step, step->text);
    step->look = look >= 0 && look < size ? look : largest_of(plan, step, size);
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool plan_make(Plan *plan, const Json *lesson, bool open) {
    *plan = (Plan){.lesson = lesson};
    if (!rules_read(&plan->tape, json_get(lesson, "tape")) || !make_units(plan, open) ||
        !make_steps(plan))
        return false;
    for (int i = 0; i < plan->num_steps; i++) find_text(plan, &plan->steps[i]);
    return !tensor_error();
}

void plan_free(Plan *plan) { rules_free(&plan->tape); }

int plan_find(const Plan *plan, const char *name) {
    char letter = 0;
    int number = -1, addition = -1;
    for (int i = 0; i < plan->num_steps; i++)
        if (strcmp(plan->steps[i].name, name) == 0) return i;
    if (sscanf(name, "%c%d", &letter, &number) < 2) return -1;
    const int l = index_of_line(&plan->tape, number);
    if (l == plan->tape.num_lines) return -1;
    for (int i = 0; i < plan->num_steps; i++) {
        const Step *step = &plan->steps[i];
        if (step->unit != plan->unit_of[l]) continue;
        if (*step->name == letter && letter != 's') return i;
        if (*step->name == 'b' && letter == 'a' && addition < 0) addition = i;
    }
    return addition;
}
