/* wrong.c - known mistakes in the lines of a tape: see wrong.h. */
#include "wrong.h"

#include "../../../autograd/autograd.h"
#include "../page/json.h"
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
const char *wrong_title(const MistakeRow *m) { return m->title ? m->title : m->id; }

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

typedef struct {
    int line, k;
    const char *formula;
} Place;

/* The next gradient of the open tape that the mistake changes; false after the last one. */
static bool next_place(const MistakeRow *m, const Planting *planting, Place *at) {
    TapeLine line;
    for (at->k++; tape_line(at->line, &line); at->line++, at->k = 0)
        for (; at->k < 3 && tape_line(at->line, &line); at->k++) {
            const MistakeRow *row = mistake_find(line.op, m->id);
            at->formula = row && at->k < line.n_in ? row->formula[at->k] : NULL;
            if (at->formula && planted_has_gradient(&line, at->k) &&
                planted_is_wrong(planting, at->line, at->k, at->formula))
                return true;
        }
    return false;
}

int wrong_apply(const MistakeRow *m, Planting *planting) {
    char name[3 * RULE_NAME];
    int planted = is_assign(m) ? plant_assign(planting) : 0;
    for (Place at = {0, -1, NULL}; next_place(m, planting, &at);) {
        planted_name(planting, at.line, at.k, name);
        planted += rule_plant_at(planting, at.line, at.k, name, at.formula);
    }
    return planted;
}

bool wrong_assigns(const Planting *planting, int i) {
    const PlantedLine *line = planted_line(planting, i);
    return line && line->assigned;
}

/* ---- the menu -------------------------------------------------------------------------------- */

static bool changes_any(const MistakeRow *m, const Planting *planting) {
    TapeLine line;
    bool any = next_place(m, planting, &(Place){0, -1, NULL});
    for (int i = 0; !any && is_assign(m) && tape_line(i, &line); i++) any = shared_inputs(&line);
    return any;
}

void wrong_write(FILE *file, const MistakeRow *used, const Planting *planting) {
    const char *before = "{\"key\":";
    fprintf(file, ",\n\"rules\":[");
    for (const MistakeRow *m = mistake_rows; m < mistake_rows + num_mistake_rows; m++) {
        if ((!m->key && m != used) || !changes_any(m, planting)) continue;
        fputs(before, file);
        json_write_string(file, wrong_key(m));
        json_write_member(file, "title", wrong_title(m));
        putc('}', file);
        before = ",\n {\"key\":";
    }
    putc(']', file);
}
