/* rule_box.c - what a box for a rule needs to know of a tape: see rule_write_places in
 * rule_plant.h.
 */
#include "rule_judge.h"

#include "../page/json.h"

#include <string.h>

void planted_name(const Planting *p, int i, int k, char name[3 * RULE_NAME]) {
    TapeLine line;
    char gradient[RULE_NAME], argument[RULE_NAME];
    tape_line(i, &line);
    planted_gradient(&line, k, gradient);
    planted_argument(&line, k, argument);
    snprintf(name, 3 * RULE_NAME, "%s", line.out->name);
    if (planted_leads_to(p, name, i, k)) return;
    snprintf(name, 3 * RULE_NAME, "%s.%s", line.out->name, gradient);
    if (planted_leads_to(p, name, i, k)) return;
    snprintf(name, 3 * RULE_NAME, "%s.d%s", line.out->name, argument);
    if (planted_leads_to(p, name, i, k)) return;
    snprintf(name, 3 * RULE_NAME, "%s", gradient);
}

static void write_name(const RuleName *name, FILE *file) {
    static const char *const meanings[] = {"dy", "y", "input", "table", "table", "number"};
    fprintf(file, "{\"name\":");
    json_write_string(file, name->name);
    json_write_member(file, "is", meanings[name->meaning]);
    if (name->meaning == NAMES_INPUT) fprintf(file, ",\"input\":%d", name->input);
    if (name->meaning == NAMES_NUMBER) fprintf(file, ",\"number\":%.9g", name->number);
    putc('}', file);
}

/* The names of a line that can stand in a formula. */
static bool write_names(const Planting *p, int i, FILE *file) {
    const char *before = "";
    static RuleScope scope;
    Tensor *kept = NULL;
    const bool done = planted_scope(p, i, NULL, &kept, &scope);
    for (int n = 0; n < scope.own && done; n++) {
        if (!rule_can_stand(scope.names[n].name)) continue;
        fputs(before, file);
        write_name(&scope.names[n], file);
        before = ",";
    }
    tensor_release(kept);
    return done;
}

/* The exercise in which a student writes the backward of this op in C; "" if there is none. */
static const char *exercise_of(const char *op) {
    static const char *const exercises[][2] = {
        {"scale", "01_scale"},           {"add", "02_bias"},
        {"matmul", "03_product"},        {"bmm", "03_product"},
        {"softmax", "04_softmax"},       {"masked_softmax", "05_masked_softmax"},
        {"dropout", "06_dropout"},       {"linear", "07_linear"},
        {"layer_norm", "08_layer_norm"}, {"cross_entropy", "09_cross_entropy"},
    };
    for (size_t i = 0; i < sizeof exercises / sizeof *exercises; i++)
        if (strcmp(exercises[i][0], op) == 0) return exercises[i][1];
    return "";
}

/* The known mistakes that fit there and that a reader can read, in the lesson's names. */
static bool write_mistakes(const Planting *p, const JudgePlace *place, const char **before,
                           FILE *file) {
    const PlantedUse *use = &place->use;
    char said[JUDGE_TEXT];
    for (int m = 0; m < num_mistake_rows && !tensor_error(); m++) {
        if (!place->is_written[m]) continue;
        planted_say_formula(p, use, NULL, mistake_rows[m].formula[use->k], said);
        fprintf(file, "%s{\"id\":", *before);
        json_write_string(file, mistake_rows[m].id);
        json_write_member(file, "formula", said);
        putc('}', file);
        *before = ",\n";
    }
    return !tensor_error();
}

static bool write_place(const Planting *p, int i, int k, FILE *file) {
    TapeLine line;
    char name[3 * RULE_NAME];
    const char *before = "";
    JudgePlace place, turned;
    PlantedUse use;
    const bool turns = judge_turned_use(i, k, &use);
    bool done = judge_place(p, i, k, false, &place);
    if (turns) done = judge_place(p, i, k, true, &turned) && done;
    planted_name(p, i, k, name);
    fprintf(file, "{\"line\":%d,\"input\":%d", i, k);
    json_write_member(file, "name", name);
    json_write_member(file, "formula", place.formula ? place.formula : "");
    json_write_member(file, "shown", turns ? turned.shown : place.shown);
    tape_line(i, &line);
    json_write_member(file, "exercise", exercise_of(line.op));
    fprintf(file, ",\"names\":[");
    done = done && write_names(p, i, file);
    fprintf(file, "],\n\"mistakes\":[");
    done = done && write_mistakes(p, &place, &before, file);
    if (turns) done = done && write_mistakes(p, &turned, &before, file);
    fprintf(file, "]}");
    return done && !tensor_error();
}

bool rule_write_places(const Planting *p, FILE *file) {
    TapeLine line;
    const char *before = "\n";
    bool done = true;
    fprintf(file, ",\n\"places\":[");
    for (int i = 0; done && tape_line(i, &line); i++)
        for (int k = 0; done && k < PLANTED_INPUTS && tape_line(i, &line); k++) {
            if (k >= line.n_in || !planted_has_gradient(&line, k)) continue;
            fputs(before, file);
            done = write_place(p, i, k, file);
            before = ",\n";
        }
    putc(']', file);
    return done && !tensor_error();
}
