/* wrong.c - known mistakes in the lines of a tape: see wrong.h. */
#include "wrong.h"

#include "../../../autograd/autograd.h"
#include "rule_judge.h"

#include <stdio.h>
#include <string.h>

/* ---- the list -------------------------------------------------------------------------------- */

const MistakeRow *wrong_find(const char *key) {
    for (const MistakeRow *m = mistake_rows; m < mistake_rows + num_mistake_rows; m++)
        if (m->id && *m->id && (strcmp(m->id, key) == 0 || strcmp(wrong_key(m), key) == 0))
            return m;
    return NULL;
}

const char *wrong_key(const MistakeRow *m) { return m->key ? m->key : m->id; }

/* ---- = in place of += ------------------------------------------------------------------------ */

static bool is_assign(const MistakeRow *m) { return mistake_is_of(m, "+="); }

/* Counts the inputs that are x, of all lines with a gradient. */
static int uses_of(const Tensor *x) {
    TapeLine line;
    int uses = 0;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in && line.out->grad_fn; k++) uses += line.in[k] == x;
    return uses;
}

static unsigned shared_inputs(const TapeLine *line) {
    unsigned shared = 0;
    for (int k = 0; k < line->n_in && line->out->grad_fn; k++)
        if (line->in[k] && line->in[k]->requires_grad && uses_of(line->in[k]) > 1)
            shared |= 1u << k;
    return shared;
}

static int plant_assign(Planting *planting) {
    TapeLine line;
    int lines = 0;
    for (int i = 0; tape_line(i, &line); i++)
        if (shared_inputs(&line)) lines += rule_plant_assign(planting, i, shared_inputs(&line));
    return lines;
}

/* ---- what a mistake changes ------------------------------------------------------------------ */

/* In each gradient of the line the mistake's formula, where it is wrong. */
static int plant_in_line(const MistakeRow *m, Planting *planting, int i) {
    char name[3 * RULE_NAME];
    int planted = 0;
    TapeLine line;
    JudgePlace place;
    for (int k = 0; k < 3 && tape_line(i, &line); k++) {
        const MistakeRow *row = mistake_find(line.op, m->id);
        if (!row || !row->formula[k] || !planted_has_gradient(&line, k)) continue;
        if (!judge_place(planting, i, k, false, &place) || !place.is_wrong[row - mistake_rows])
            continue;
        planted_name(planting, i, k, name);
        planted += rule_plant_at(planting, i, k, name, row->formula[k]);
    }
    return planted;
}

int wrong_apply(const MistakeRow *m, Planting *planting) {
    TapeLine line;
    int planted = is_assign(m) ? plant_assign(planting) : 0;
    for (int i = 0; tape_line(i, &line); i++) planted += plant_in_line(m, planting, i);
    return planted;
}

bool wrong_assigns(const Planting *planting, int i) {
    const PlantedLine *line = planted_line(planting, i);
    return line && line->assigned;
}
