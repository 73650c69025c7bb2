/* rule_names.c - what the names in a formula stand for on a line: see rule_plant.h. */
#include "rule_planted.h"

#include <stdlib.h>
#include <string.h>

bool planted_moves(const char *op) {
    static const char *const ops[] = {"reshape",   "view",    "contiguous", "flatten", "squeeze",
                                      "unsqueeze", "permute", "transpose",  "to"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}

void planted_argument(const TapeLine *line, int k, char argument[RULE_NAME]) {
    const char *call = line->text && line->text->call ? line->text->call : "";
    const char *at = strchr(call, '(');
    *argument = '\0';
    for (int i = 0; at && i <= k; i++) {
        at += strspn(at, "(, ");
        snprintf(argument, RULE_NAME, "%.*s", (int)strcspn(at, ",)"), at);
        if (line->argument && strcmp(argument, line->argument) == 0) *argument = '\0';
        at = *argument ? strchr(at, ',') : NULL; /* a number comes after all inputs */
        if (!at && i < k) *argument = '\0';
    }
}

void planted_inputs(const TapeLine *line, Tensor *in[PLANTED_INPUTS]) {
    for (int k = 0; k < PLANTED_INPUTS; k++) in[k] = k < line->n_in ? line->in[k] : NULL;
}

/* ---- a list of names ------------------------------------------------------------------------- */

static void add(RuleScope *scope, const char *name, RuleName means) {
    snprintf(means.name, sizeof means.name, "%.36s", name);
    bool is_there = !*name || scope->n == RULE_NAMES;
    for (int i = 0; i < scope->n && !is_there; i++)
        is_there = strcmp(scope->names[i].name, means.name) == 0;
    if (is_there) return;
    scope->names[scope->n++] = means;
}

static void add_number(RuleScope *scope, const char *name, double number) {
    add(scope, name, (RuleName){.meaning = NAMES_NUMBER, .number = number});
}

/* dA and d(A) for the gradient that arrives. */
static void add_gradient(RuleScope *scope, const char *name) {
    char text[RULE_NAME];
    if (!*name) return;
    snprintf(text, sizeof text, "d%.36s", name);
    add(scope, text, (RuleName){.meaning = NAMES_DY});
    snprintf(text, sizeof text, "d(%.36s)", name);
    add(scope, text, (RuleName){.meaning = NAMES_DY});
}

/* The other names of a tensor. */
static void add_aliases(const Planting *p, RuleScope *scope, const Tensor *x, RuleName means,
                        bool is_result) {
    for (int i = 0; i < p->num_aliases; i++) {
        const RuleAlias *alias = &p->aliases[i];
        if (!alias->tensor || strcmp(alias->tensor, x->name) != 0) continue;
        if (is_result) add_gradient(scope, alias->alias);
        add(scope, alias->alias, means);
    }
}

/* The lesson's names of the line's tensors. */
static void add_line(const Planting *p, RuleScope *scope, const TapeLine *line) {
    const RuleName result = {.meaning = NAMES_OUT};
    add_gradient(scope, line->out->name);
    add(scope, line->out->name, result);
    add_aliases(p, scope, line->out, result, true);
    for (int k = 0; k < line->n_in && k < PLANTED_INPUTS; k++) {
        const RuleName input = {.meaning = NAMES_INPUT, .input = k};
        if (!line->in[k]) continue;
        add(scope, line->in[k]->name, input);
        add_aliases(p, scope, line->in[k], input, false);
    }
}

/* All other tensors of the tape. */
static void add_tape(const Planting *p, RuleScope *scope) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        for (int k = 0; k < line.n_in; k++) {
            const RuleName input = {.meaning = NAMES_TENSOR, .tensor = line.in[k]};
            if (!line.in[k] || line.in[k]->grad_fn) continue; /* a line before made it */
            add(scope, line.in[k]->name, input);
            add_aliases(p, scope, line.in[k], input, false);
        }
        const RuleName result = {.meaning = NAMES_TENSOR, .tensor = line.out};
        add(scope, line.out->name, result);
        add_aliases(p, scope, line.out, result, false);
    }
}

/* ---- the names of an op ---------------------------------------------------------------------- */

/* 1 where dropout kept the number, else 0: the derivative of the line is 1 / (1 - p) or 0. */
static Tensor *find_kept(int i, const TapeLine *line) {
    Tensor *dx[1] = {NULL};
    Tensor *kept = NULL;
    if (!tape_begin_no_grad()) return NULL;
    Tensor *ones = tape_own(tensor_ones_like(line->out));
    if (ones && tape_vjp(i, ones, dx) && dx[0])
        kept = tensor_retain(ag_to(ag_ne_scalar(dx[0], 0), line->out->dtype));
    tensor_release(dx[0]);
    tape_end();
    return kept;
}

static bool says(const TapeLine *line, const char *word) {
    return line->text && line->text->gradient && strstr(line->text->gradient, word);
}

static bool add_op(int i, const TapeLine *line, Tensor **kept, RuleScope *scope) {
    char argument[RULE_NAME];
    for (int k = 0; k < line->n_in && k < PLANTED_INPUTS; k++) {
        planted_argument(line, k, argument);
        if (line->in[k]) add(scope, argument, (RuleName){.meaning = NAMES_INPUT, .input = k});
    }
    add(scope, "y", (RuleName){.meaning = NAMES_OUT});
    add(scope, "dy", (RuleName){.meaning = NAMES_DY});
    if (line->n_in > 0 && line->in[0]) add(scope, "x", (RuleName){.meaning = NAMES_INPUT});
    if (line->argument) add_number(scope, line->argument, line->number);
    if (line->argument && *line->argument == 's')
        add_number(scope, line->argument[1] ? "s" : "scale", line->number);
    if (says(line, "count") && line->n_in > 0)
        add_number(scope, "count",
                   (double)tensor_numel(line->in[0]) / (double)tensor_numel(line->out));
    if (strcmp(line->op, "dropout") != 0) return true;
    if (!*kept) *kept = find_kept(i, line);
    if (*kept) add(scope, "kept", (RuleName){.meaning = NAMES_TENSOR, .tensor = *kept});
    return *kept != NULL;
}

bool planted_scope_of_op(int i, Tensor **kept, RuleScope *scope) {
    TapeLine line;
    scope->n = 0;
    return tape_line(i, &line) && add_op(i, &line, kept, scope);
}

bool planted_scope(const Planting *p, int i, Tensor **kept, RuleScope *scope) {
    TapeLine line;
    scope->n = 0;
    if (!tape_line(i, &line)) return false;
    add_line(p, scope, &line);
    if (!add_op(i, &line, kept, scope)) return false;
    for (int k = 0; k < p->num_aliases; k++)
        if (!p->aliases[k].tensor) add_number(scope, p->aliases[k].alias, p->aliases[k].number);
    scope->own = scope->n;
    add_tape(p, scope);
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The lesson's name of what a name of the op stands for, "A" for "y"; rather a short one than "q +
 * k". The name itself, if the lesson has none. */
static const char *lesson_name(const RuleScope *scope, const RuleName *of) {
    const char *found = NULL;
    for (int i = 0; i < scope->own; i++) {
        const RuleName *name = &scope->names[i];
        if (name->meaning != of->meaning || name->input != of->input) continue;
        if (strcmp(name->name, of->name) == 0) break; /* the names of the op begin */
        if (rule_can_stand(name->name) && !strchr(name->name, '(')) return name->name;
        if (!found || rule_can_stand(name->name)) found = name->name;
    }
    return found ? found : of->name;
}

/* Writes what {word} stands for. */
static void write_word(const char *word, const TapeLine *line, int k, const RuleScope *op,
                       const RuleScope *scope, FILE *file) {
    const bool own = strcmp(word, "own") == 0;
    if (strcmp(word, "s") == 0) fprintf(file, "%.4g", line->number);
    else if (strcmp(word, "1/s") == 0) fprintf(file, "%.4g", 1 / line->number);
    for (int i = 0; i < op->n; i++) {
        const RuleName *name = &op->names[i];
        const bool is_own = own && name->meaning == NAMES_INPUT && name->input == k;
        if (name->meaning >= NAMES_TENSOR || (!is_own && strcmp(name->name, word) != 0)) continue;
        fputs(lesson_name(scope, name), file);
        return;
    }
}

static void write_text(const char *text, const TapeLine *line, int k, const RuleScope *op,
                       const RuleScope *scope, FILE *file) {
    for (const char *at = text; *at; at++) {
        char word[RULE_NAME];
        if (*at != '{') {
            putc(*at, file);
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        at += strcspn(at, "}");
        write_word(word, line, k, op, scope, file);
    }
}

void planted_say(const Planting *p, int i, int k, Tensor **kept, const char *text, char said[320]) {
    TapeLine line;
    RuleScope *scopes = malloc(2 * sizeof *scopes);
    FILE *file = scopes ? fmemopen(said, 319, "w") : NULL;
    memset(said, 0, 320);
    if (!file) tensor_fail("out of memory for a rule");
    if (file && planted_scope_of_op(i, kept, &scopes[0]) && planted_scope(p, i, kept, &scopes[1])) {
        tape_line(i, &line);
        write_text(text, &line, k, &scopes[0], &scopes[1], file);
    }
    if (file) fclose(file);
    free(scopes);
}
