/* plan.c - the steps of a lesson: see plan.h.
 *
 * The sections: groups, steps, what the lesson says of a step, key steps, the whole. */
#include "plan.h"

#include "../../common/put_text.h"
#include "../rules/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---------------------------------------------------------------------------------- */

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
    return tape->lines[l].moves && num_inputs(&tape->lines[l]) == 1;
}

static int index_of_line(const RuledTape *tape, double number) {
    int l = 0;
    while (l < tape->num_lines && tape->lines[l].number != number) l++;
    return l;
}

/* Of a folded group that only moves numbers: from where. False without memory. */
static bool fold_moves(RuledTape *tape, Unit *unit) {
    const TapeTensor *y = &tape->tensors[tape->lines[unit->last].out];
    for (int l = unit->first; l <= unit->last; l++)
        if (!tape->lines[l].moves) return true;
    unit->moves = memory_take(&tape->memory, y->size, sizeof *unit->moves);
    for (int64_t j = 0; unit->moves && j < y->size; j++) {
        Source from = {0, j};
        for (int l = unit->last; l >= unit->first; l--) from = tape->lines[l].moves[from.i];
        unit->moves[j] = from;
    }
    return unit->moves != NULL;
}

/* The derivatives of all lines of a group. */
static bool fold_parts(RuledTape *tape, Unit *unit) {
    const RuledLine *first = &tape->lines[unit->first];
    unit->num_parts = first->num_parts;
    unit->parts = memory_take(&tape->memory, first->num_parts, sizeof *unit->parts);
    for (int i = 0; unit->parts && i < first->num_parts; i++) {
        unit->parts[i] = first->parts[i];
        for (int l = unit->first + 1; l <= unit->last; l++)
            if (!rules_compose(tape, &unit->parts[i], &tape->lines[l].parts[0])) return false;
        if (unit->moves) unit->parts[i].moves = true;
    }
    return unit->parts != NULL;
}

static void add_line(Plan *plan, int l, int group) {
    const RuledLine *line = &plan->tape.lines[l];
    plan->units[plan->num_units++] =
        (Unit){l, l, group, NULL, line->moves, line->num_parts, line->parts};
}

/* A group: folded, and its lines. */
static bool add_group(Plan *plan, int first, int last, const char *name) {
    const int group = plan->num_groups++;
    Unit *unit = &plan->units[plan->num_units++];
    *unit = (Unit){.first = first, .last = last, .group = group, .name = name};
    if (!fold_moves(&plan->tape, unit) || !fold_parts(&plan->tape, unit)) return false;
    for (int l = first; l <= last; l++) add_line(plan, l, group);
    return true;
}

/* The last line of the group that begins with this line, and its name; the line itself if none
 * does. */
static int end_of_group(const Plan *plan, int first, const char **name) {
    const RuledTape *tape = &plan->tape;
    for (const Json *fold = json_first(plan->lesson, "fold"); fold; fold = fold->next) {
        const Json *lines = json_get(fold, "lines");
        if (index_of_line(tape, lines->first->number) != first) continue;
        *name = json_text(fold, "name", "");
        return first + (int)lines->count - 1;
    }
    int last = first;
    while (only_moves(tape, first) && last + 1 < tape->num_lines && only_moves(tape, last + 1) &&
           goes_on(tape, last + 1))
        last++;
    *name = "";
    return last;
}

static bool make_units(Plan *plan) {
    const int lines = plan->tape.num_lines;
    plan->units = memory_take(&plan->tape.memory, 2 * (int64_t)lines, sizeof *plan->units);
    if (!plan->units) return false;
    for (int l = 0; l < lines; l++) {
        const char *name;
        const int last = end_of_group(plan, l, &name);
        if (last == l) add_line(plan, l, -1);
        else if (!add_group(plan, l, last, name)) return false;
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

/* The tensors from which backward begins: results whose gradient no line gives. */
static void add_starts(Plan *plan) {
    int starts = 0;
    for (int t = 0; t < plan->tape.num_tensors; t++) {
        const TapeTensor *x = &plan->tape.tensors[t];
        int unit = 0;
        if (x->maker < 0 || !x->grad || x->parts > 0) continue;
        while (plan->units[unit].last < x->maker || plan->units[unit].name) unit++;
        Step *step = add_step(plan, STEP_START, unit, t, NULL);
        if (starts > 0) snprintf(step->name, sizeof step->name, "s%d", starts);
        step->numbers = x->grad;
        starts++;
    }
}

const double *sum_of_parts(Plan *plan, int tensor, int n) {
    const TapeTensor *x = &plan->tape.tensors[tensor];
    double *sum = memory_take(&plan->tape.memory, x->size, sizeof *sum);
    for (int64_t i = 0; sum && i < x->size; i++)
        for (int k = 0; k < n; k++) {
            sum[i] += x->part[k]->dx[i];
            if (is_float32(x)) sum[i] = (double)(float)sum[i];
        }
    return sum;
}

/* dK' = Q' dS, moved back: dK = dS' Q; NULL if this is no product that is turned over. */
static Tree *turned_product(Plan *plan, const Part *part) {
    const TapeTensor *y = &plan->tape.tensors[part->y];
    const Part *before = y->parts == 1 ? y->part[0] : NULL;
    if (!part->moves || part->planted || !part->tree) return NULL;
    if (part->tree->nodes[part->tree->n - 1].sign != '\'') return NULL;
    if (!before || before->planted || !before->tree) return NULL;
    if (before->tree->nodes[before->tree->n - 1].sign != '@') return NULL;
    Part both = *part;
    return rows_compose(&plan->tape, &both, before) ? both.tree : NULL;
}

/* Backward of a unit: a step for each part, and one that adds it to earlier parts. */
static void add_backward(Plan *plan, int u) {
    for (int i = 0; i < plan->units[u].num_parts; i++) {
        Part *part = &plan->units[u].parts[i];
        Step *step = add_step(plan, STEP_BACKWARD, u, part->x, part);
        step->moves = part->moves;
        step->numbers = part->dx;
        step->product = turned_product(plan, part);
        const TapeTensor *x = &plan->tape.tensors[part->x];
        const int n = part->number + 1;
        if (n == 1) continue;
        step = add_step(plan, STEP_ADD, u, part->x, part);
        step->numbers = n == x->parts ? x->grad : sum_of_parts(plan, part->x, n);
    }
}

/* What follows backward, and is no arrow. */
static void add_end(Plan *plan, StepPhase phase, const char *name) {
    Step *step = &plan->steps[plan->num_steps++];
    *step = (Step){.phase = phase, .unit = -1, .tensor = -1};
    snprintf(step->name, sizeof step->name, "%s", name);
}

static bool make_steps(Plan *plan) {
    int64_t most = 4 + plan->tape.num_tensors;
    for (int u = 0; u < plan->num_units; u++) most += 1 + 2 * plan->units[u].num_parts;
    plan->steps = memory_take(&plan->tape.memory, most, sizeof *plan->steps);
    if (!plan->steps) return false;
    add_step(plan, STEP_COVER, -1, -1, NULL);
    for (int u = 0; u < plan->num_units; u++) {
        const Unit *unit = &plan->units[u];
        const RuledLine *line = &plan->tape.lines[unit->last];
        Step *step = add_step(plan, STEP_FORWARD, u, line->out, NULL);
        step->moves = unit->name ? unit->moves != NULL : line->right_moves != NULL;
        step->numbers = plan->tape.tensors[line->out].value;
    }
    add_starts(plan);
    for (int u = plan->num_units - 1; u >= 0; u--) add_backward(plan, u);
    if (json_get(plan->lesson, "loop")) add_end(plan, STEP_TWICE, "twice");
    if (json_get(plan->lesson, "sgd")) add_end(plan, STEP_SGD, "sgd");
    if (json_first(plan->lesson, "card")) add_end(plan, STEP_CARD, "card");
    return !tensor_error();
}

/* ---- what the lesson says of a step ---------------------------------------------------------- */

/* Does a derivative of the line that made the result reach its element j? All do in a line of which
 * no derivative is known. */
static bool is_reached(const Plan *plan, const Step *step, int64_t j) {
    if (step->phase != STEP_FORWARD) return true;
    const RuledLine *line = &plan->tape.lines[plan->units[step->unit].last];
    if (line->product.is_one) return true;
    for (int n = 0; n < line->num_parts; n++) {
        const Part *p = &line->parts[n];
        for (int64_t e = 0; e < p->right.begin[plan->tape.tensors[p->x].size]; e++)
            if (p->right.of[e].j == j) return true;
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
    const Json *item = json_first(plan->lesson, "steps");
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

/* A folded step has the texts of its lines, or its own; a chain of moves its own, or the first. */
static const char *text_of_fold(Plan *plan, const Step *step, const char *own) {
    enum { MOST_LETTERS = 2000 };
    const Unit *unit = &plan->units[step->unit];
    const bool down = step->phase == STEP_FORWARD || unit->moves; /* in the order of the tape */
    char *all = memory_take(&plan->tape.memory, MOST_LETTERS, 1);
    if (!all || (unit->moves && own)) return own;
    for (int i = 0; i <= unit->last - unit->first; i++) {
        const char *text = text_of_line(plan, step, down ? unit->first + i : unit->last - i);
        if (!text || strstr(all, text)) continue;
        if (unit->moves) return text;
        put_text(all, MOST_LETTERS, "%s%s", *all ? " " : "", text);
    }
    return *all ? all : own;
}

static void find_text(Plan *plan, Step *step) {
    const Json *said = said_at(plan, step->name);
    const int64_t size = step->numbers ? plan->tape.tensors[step->tensor].size : 0;
    const int64_t look = json_integer(said, "look", -1);
    const bool is_arrow = step->phase == STEP_FORWARD || step->phase == STEP_BACKWARD;
    step->text = json_text(said, "text", NULL);
    if (is_arrow && plan->units[step->unit].name) step->text = text_of_fold(plan, step, step->text);
    step->has_own_text = step->text == json_text(said, "text", NULL);
    step->is_said = look >= 0 && look < size;
    step->look = step->is_said ? look : largest_of(plan, step, size);
}

/* ---- key steps ------------------------------------------------------------------------------- */

/* The step with this name, or that stands for it, folded and open. */
static void mark_named(Plan *plan, const char *name) {
    for (int open = 0; *name && open < 2; open++) {
        const int s = plan_find(plan, name, open);
        if (s >= 0) plan->steps[s].is_key = true;
    }
}

static void mark_said(Plan *plan) {
    const Json *question = json_first(plan->lesson, "questions");
    for (; question; question = question->next) mark_named(plan, json_text(question, "at", ""));
    mark_named(plan, json_text(json_get(plan->lesson, "bet"), "at", ""));
}

static void find_key_steps(Plan *plan) {
    int last[2] = {0, 0}, shown = 0;
    for (int i = 1; i < plan->num_steps; i++) {
        shown += plan_shows(plan, &plan->steps[i], false);
        plan->steps[i].is_key = plan->steps[i].unit < 0;
        for (int open = 0; open < 2; open++)
            if (plan->steps[i].unit >= 0 && plan_shows(plan, &plan->steps[i], open)) last[open] = i;
    }
    plan->is_long = shown > MANY_STEPS;
    plan->steps[0].is_key = true;
    for (int open = 0; open < 2; open++) plan->steps[last[open]].is_key = true;
    mark_said(plan);
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool plan_make(Plan *plan, const Json *lesson) {
    *plan = (Plan){.lesson = lesson};
    if (!rules_read(&plan->tape, lesson) || !make_units(plan) || !make_steps(plan)) return false;
    for (int i = 0; i < plan->num_steps; i++) find_text(plan, &plan->steps[i]);
    find_key_steps(plan);
    return !tensor_error();
}

void plan_free(Plan *plan) { rules_free(&plan->tape); }

bool plan_shows(const Plan *plan, const Step *step, bool open) {
    if (step->unit < 0 || step->phase == STEP_START) return true;
    const Unit *unit = &plan->units[step->unit];
    return unit->group < 0 || !unit->name == open;
}

int plan_line_in(const Plan *plan, const Unit *unit, int tensor) {
    const int maker = plan->tape.tensors[tensor].maker;
    return maker >= unit->first && maker <= unit->last ? maker : -1;
}

int plan_find(const Plan *plan, const char *name, bool open) {
    char letter = 0;
    int number = -1, addition = -1;
    for (int i = 0; i < plan->num_steps; i++)
        if (plan_shows(plan, &plan->steps[i], open) && strcmp(plan->steps[i].name, name) == 0)
            return i;
    if (sscanf(name, "%c%d", &letter, &number) < 2) return -1;
    const int l = index_of_line(&plan->tape, number);
    for (int i = 1; i < plan->num_steps; i++) {
        const Step *step = &plan->steps[i];
        if (step->unit < 0 || !plan_shows(plan, step, open)) continue;
        const Unit *unit = &plan->units[step->unit];
        if (l < unit->first || l > unit->last) continue;
        if (*step->name == letter && letter != 's') return i;
        if (*step->name == 'b' && letter == 'a' && addition < 0) addition = i;
    }
    return addition;
}
