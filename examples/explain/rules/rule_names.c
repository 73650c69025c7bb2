/* rule_names.c - what the names in a formula stand for on a line: see rule_plant.h. */
#include "rule_planted.h"

#include "../page/recording.h"

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
    *argument = '\0';
    for (int i = 0; i <= k; i++) {
        rule_argument(call, i, argument);
        if (!line->argument || strcmp(argument, line->argument) != 0) continue;
        *argument = '\0'; /* a number comes after all inputs */
        return;
    }
}

void planted_inputs(const TapeLine *line, Tensor *in[PLANTED_INPUTS]) {
    for (int k = 0; k < PLANTED_INPUTS; k++) in[k] = k < line->n_in ? line->in[k] : NULL;
}

/* ---- a list of names ------------------------------------------------------------------------- */

/* dA and d(A) for a gradient. */
static void add_gradient(RuleScope *scope, const char *name, RuleName means) {
    char text[RULE_NAME];
    if (!*name) return;
    snprintf(text, sizeof text, "d%.36s", name);
    rule_add_name(scope, text, means);
    snprintf(text, sizeof text, "d(%.36s)", name);
    rule_add_name(scope, text, means);
}

/* The other names of a tensor; NULL: none is wanted of it, or of its gradient. */
static void add_aliases(const Planting *p, RuleScope *scope, const Tensor *x, const RuleName *means,
                        const RuleName *gradient) {
    for (int i = 0; i < p->num_aliases; i++) {
        const RuleAlias *alias = &p->aliases[i];
        if (!alias->tensor || strcmp(alias->tensor, x->name) != 0) continue;
        if (gradient) add_gradient(scope, alias->alias, *gradient);
        if (means) rule_add_name(scope, alias->alias, *means);
    }
}

/* The lesson's names of the line's tensors. */
static void add_line(const Planting *p, RuleScope *scope, const TapeLine *line) {
    const RuleName result = {.meaning = NAMES_OUT}, arrives = {.meaning = NAMES_DY};
    add_gradient(scope, line->out->name, arrives);
    rule_add_name(scope, line->out->name, result);
    add_aliases(p, scope, line->out, &result, &arrives);
    for (int k = 0; k < line->n_in && k < PLANTED_INPUTS; k++) {
        const RuleName input = {.meaning = NAMES_INPUT, .input = k};
        if (!line->in[k]) continue;
        rule_add_name(scope, line->in[k]->name, input);
        add_aliases(p, scope, line->in[k], &input, NULL);
    }
}

static void add_gradient_of(const Planting *p, RuleScope *scope, const Tensor *t, RuleName means) {
    if (!t->requires_grad) return;
    add_gradient(scope, t->name, means);
    add_aliases(p, scope, t, NULL, &means);
}

/* The first line that reads x. */
static int first_reader(const Tensor *x) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in; k++)
            if (line.in[k] == x) return i;
    return 0;
}

/* The gradients of all other tensors: where line i goes backward, those of the results from there
 * on are known. x: whose gradient is to be written, all of it; or NULL. */
static void add_gradients(const Planting *p, RuleScope *scope, int i, const Tensor *x) {
    const RuleName mine = {.meaning = NAMES_REFUSED, .why = "is what this line is to say"};
    const RuleName other = {.meaning = NAMES_REFUSED,
                            .why = "is not known here: backward has not reached it yet"};
    TapeLine line;
    const int first = x ? first_reader(x) : i;
    if (x) add_gradient_of(p, scope, x, mine);
    for (int j = 0; tape_line(j, &line); j++) {
        const RuleName known = {.meaning = NAMES_GRADIENT, .tensor = line.out};
        add_gradient_of(p, scope, line.out, j >= first ? known : other);
        for (int k = 0; k < line.n_in; k++)
            if (line.in[k] && !line.in[k]->grad_fn) add_gradient_of(p, scope, line.in[k], other);
    }
}

/* All other tensors of the tape. */
static void add_tape(const Planting *p, RuleScope *scope) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        for (int k = 0; k < line.n_in; k++) {
            const RuleName input = {.meaning = NAMES_TENSOR, .tensor = line.in[k]};
            if (!line.in[k] || line.in[k]->grad_fn) continue; /* a line before made it */
            rule_add_name(scope, line.in[k]->name, input);
            add_aliases(p, scope, line.in[k], &input, NULL);
        }
        const RuleName result = {.meaning = NAMES_TENSOR, .tensor = line.out};
        rule_add_name(scope, line.out->name, result);
        add_aliases(p, scope, line.out, &result, NULL);
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
        if (line->in[k])
            rule_add_name(scope, argument, (RuleName){.meaning = NAMES_INPUT, .input = k});
    }
    rule_add_name(scope, "y", (RuleName){.meaning = NAMES_OUT});
    rule_add_name(scope, "dy", (RuleName){.meaning = NAMES_DY});
    if (line->n_in > 0 && line->in[0])
        rule_add_name(scope, "x", (RuleName){.meaning = NAMES_INPUT});
    if (line->argument) rule_add_number(scope, line->argument, line->number);
    if (line->argument && *line->argument == 's')
        rule_add_number(scope, line->argument[1] ? "s" : "scale", line->number);
    if (says(line, "count") && line->n_in > 0)
        rule_add_number(scope, "count",
                        (double)tensor_numel(line->in[0]) / (double)tensor_numel(line->out));
    if (strcmp(line->op, "dropout") != 0) return true;
    if (!*kept) *kept = find_kept(i, line);
    if (*kept) rule_add_name(scope, "kept", (RuleName){.meaning = NAMES_TENSOR, .tensor = *kept});
    return *kept != NULL;
}

const char *planted_op(const PlantedUse *use) {
    TapeLine line;
    if (use->turned) return "linear";
    return tape_line(use->line, &line) ? line.op : "";
}

bool planted_scope_of_op(const PlantedUse *use, Tensor **kept, RuleScope *scope) {
    TapeLine line;
    scope->n = 0;
    scope->may_define = false;
    if (!tape_line(use->line, &line)) return false;
    if (!use->turned) return add_op(use->line, &line, kept, scope);
    rule_add_name(scope, "x", (RuleName){.meaning = NAMES_INPUT, .input = 0});
    rule_add_name(scope, "w", (RuleName){.meaning = NAMES_TENSOR, .tensor = use->turned});
    rule_add_name(scope, "y", (RuleName){.meaning = NAMES_OUT});
    rule_add_name(scope, "dy", (RuleName){.meaning = NAMES_DY});
    return true;
}

bool planted_scope(const Planting *p, int i, const Tensor *x, Tensor **kept, RuleScope *scope) {
    TapeLine line;
    scope->n = 0;
    scope->may_define = false;
    if (!tape_line(i, &line)) return false;
    add_line(p, scope, &line);
    scope->lesson = scope->n;
    if (x) add_tape(p, scope); /* in a whole gradient x is the lesson's, not that of an op */
    scope->own = scope->n;
    if (!add_op(i, &line, kept, scope)) return false;
    for (int k = 0; k < p->num_aliases; k++)
        if (!p->aliases[k].tensor)
            rule_add_number(scope, p->aliases[k].alias, p->aliases[k].number);
    if (!x) scope->own = scope->n;
    add_gradients(p, scope, i, x);
    add_tape(p, scope);
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Short names that can stand in a formula come first, then those with brackets. */
static size_t rank_of(const char *name) {
    const size_t longest = RULE_NAME;
    if (!rule_can_stand(name)) return longest + 1;
    return strchr(name, '(') ? longest : strlen(name);
}

/* The lesson's name of what a name of the op stands for, "A" for "y". The name itself, if the
 * lesson has none. */
static const char *lesson_name(const RuleScope *scope, const RuleName *of) {
    const char *found = NULL;
    const bool is_tensor = of->meaning == NAMES_TENSOR; /* not one of the line */
    for (int i = 0; i < (is_tensor ? scope->n : scope->lesson); i++) {
        const RuleName *name = &scope->names[i];
        if (name->meaning != of->meaning || name->input != of->input) continue;
        if (name->tensor != of->tensor) continue;
        if (!found || rank_of(name->name) < rank_of(found)) found = name->name;
    }
    return found ? found : of->name;
}

/* The names of the op, and of the lesson, for a text. */
typedef struct {
    const PlantedUse *use;
    RuleScope op, lesson;
} Names;

/* The lesson's name of what {word} stands for; NULL: it is no tensor. */
static const char *find_word(const char *word, const Names *names) {
    const bool own = strcmp(word, "own") == 0;
    for (int i = 0; i < names->op.n; i++) {
        const RuleName *name = &names->op.names[i];
        const bool is_turned = name->meaning == NAMES_TENSOR && names->use->turned;
        const bool is_input =
            !names->use->turned && name->meaning == NAMES_INPUT && name->input == names->use->k;
        if (name->meaning >= NAMES_TENSOR && !is_turned) continue;
        if ((own && (is_turned || is_input)) || strcmp(name->name, word) == 0)
            return lesson_name(&names->lesson, name);
    }
    return NULL;
}

/* The factor K' of S = Q K' is not transposed where it should be: it is K, which a reader sees
 * transposed. */
static void write_turned(const char *name, const TapeLine *line, FILE *file) {
    const int n = (int)strlen(name) - 1;
    fprintf(file, "%.*s is transposed: the other factor of %s = %s %s is %s, and its transpose is ",
            n, name, line->out->name, line->in[0]->name, line->in[1]->name, name);
    fprintf(file, "%.*s", n, name);
}

/* K of K', which a line before has made by a transpose; NULL: it is none, or has no name here. */
static const char *name_turned_back(const RuleName *name, const Names *names) {
    TapeLine line;
    RuleName factor = {.meaning = NAMES_TENSOR};
    tape_line(names->use->line, &line);
    const Tensor *turned = name->meaning == NAMES_INPUT ? line.in[name->input] : NULL;
    for (int i = 0; turned && i < names->use->line && tape_line(i, &line); i++)
        if (line.out == turned && data_turns(&line)) factor.tensor = line.in[0];
    const char *back = factor.tensor ? lesson_name(&names->lesson, &factor) : "";
    return *back ? back : NULL;
}

/* Writes what {word} stands for, and of what follows it what says so; how much that is. */
static size_t write_word(const char *word, const char *rest, const Names *names, FILE *file) {
    static const char not_turned[] = " is not transposed";
    const char *name = find_word(word, names);
    const size_t n = name ? strlen(name) : 0;
    TapeLine line;
    tape_line(names->use->line, &line);
    if (strcmp(word, "s") == 0) fprintf(file, "%.4g", line.number);
    else if (strcmp(word, "1/s") == 0) fprintf(file, "%.4g", 1 / line.number);
    else if (n > 1 && name[n - 1] == '\'' && strncmp(rest, not_turned, strlen(not_turned)) == 0) {
        write_turned(name, &line, file);
        return strlen(not_turned);
    } else if (name) fputs(name, file);
    return 0;
}

static void write_text(const char *text, const Names *names, FILE *file) {
    static const char factor[] = "{s} * "; /* by 1: nothing */
    TapeLine line;
    const bool is_one = tape_line(names->use->line, &line) && line.number == 1;
    for (const char *at = text; *at; at++) {
        char word[RULE_NAME];
        if (is_one && strncmp(at, factor, strlen(factor)) == 0) at += strlen(factor);
        if (*at != '{') {
            putc(*at, file);
            continue;
        }
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        at += strcspn(at, "}");
        at += write_word(word, at + 1, names, file);
    }
}

/* A word of a formula: a name of the op, or a function. What is transposed twice, K'', is K. */
static void write_formula(const char *formula, const Names *names, FILE *file) {
    for (const char *at = formula; *at;) {
        const int n = (int)strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789");
        const RuleName *name = n > 0 ? rule_find_name(&names->op, at, (size_t)n) : NULL;
        const char *word = name ? lesson_name(&names->lesson, name) : NULL;
        const char *back = name && at[n] == '\'' ? name_turned_back(name, names) : NULL;
        if (back) fputs(back, file);
        else if (!word) fprintf(file, "%.*s", n > 0 ? n : 1, at);
        else if (*word == 'd' && strchr(word, '^')) fprintf(file, "d(%s)", word + 1);
        else fputs(word, file);
        at += (n > 0 ? n : 1) + (back != NULL);
    }
}

static void say_with(const Planting *p, const PlantedUse *use, const Tensor *x, const char *text,
                     void (*write)(const char *, const Names *, FILE *), char said[320]) {
    static Names names;
    Tensor *kept = NULL;
    FILE *file = fmemopen(said, 319, "w");
    memset(said, 0, 320);
    if (!file) tensor_fail("out of memory for a rule");
    if (file && planted_scope_of_op(use, &kept, &names.op) &&
        planted_scope(p, use->line, x, &kept, &names.lesson)) {
        names.use = use;
        write(text, &names, file);
    }
    if (file) fclose(file);
    tensor_release(kept);
}

void planted_say(const Planting *p, const PlantedUse *use, const Tensor *x, const char *text,
                 char said[320]) {
    say_with(p, use, x, text, write_text, said);
}

void planted_say_formula(const Planting *p, const PlantedUse *use, const Tensor *x,
                         const char *formula, char said[320]) {
    say_with(p, use, x, formula, write_formula, said);
}
