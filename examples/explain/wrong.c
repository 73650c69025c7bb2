/* wrong.c - wrong rules: see wrong.h.
 *
 * A rule is a formula that is planted on its lines (rule_plant.h), as a reader can plant others;
 * only "assign" is wrong outside of every op, and no formula. */
#include "wrong.h"

#include "../../autograd/autograd.h"
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct WrongRule {
    const char *key, *title, *wrong, *right;
    bool (*concerns)(const TapeLine *line); /* would the rule change its dx? It has a gradient */
    const char *formula;                    /* the rule; NULL: = in place of += */
    const char *scaled;                     /* the same for masked_softmax, or NULL */
};

/* ---- softmax without its sum ----------------------------------------------------------------- */

static bool is_op(const TapeLine *line, const char *name) { return strcmp(line->op, name) == 0; }

static bool is_zero(const Tensor *x) { return tensor_sum_of_squares(x) == 0; }

/* Weights that are all 0 have the right gradient, 0, by both rules. */
static bool is_softmax(const TapeLine *line) {
    return (is_op(line, "softmax") || is_op(line, "masked_softmax")) && !is_zero(line->out);
}

/* ---- a transpose that is not undone ---------------------------------------------------------- */

/* Do the numbers of a tensor and of a view of all of it stand in the same order? Dimensions of size
 * 1 do not count. */
static bool same_order(const Tensor *x, const Tensor *view) {
    int i = 0, j = 0;
    for (;; i++, j++) {
        while (i < x->shape.ndim && x->shape.dim[i] == 1) i++;
        while (j < view->shape.ndim && view->shape.dim[j] == 1) j++;
        if (i == x->shape.ndim || j == view->shape.ndim) return true;
        if (x->shape.dim[i] != view->shape.dim[j] || x->stride[i] != view->stride[j]) return false;
    }
}

static bool is_transpose(const TapeLine *line) {
    return is_op(line, "transpose") && !same_order(line->in[0], line->out);
}

/* ---- = in place of += ------------------------------------------------------------------------ */

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
    for (int k = 0; k < line->n_in; k++)
        if (line->in[k] && line->in[k]->requires_grad && uses_of(line->in[k]) > 1)
            shared |= 1u << k;
    return shared;
}

static bool reads_shared_input(const TapeLine *line) { return shared_inputs(line) != 0; }

/* ---- dropout without 1 / (1 - p) ------------------------------------------------------------- */

static bool is_dropout(const TapeLine *line) {
    return is_op(line, "dropout") && line->number > 0 && !is_zero(line->out);
}

/* ---- a mask that multiplies ------------------------------------------------------------------ */

/* Does a row have no allowed key? Rows of weights sum to 1 or to 0. */
static bool has_empty_row(const TapeLine *line) {
    const Tensor *const weights = line->out;
    if (!is_op(line, "masked_softmax")) return false;
    const int64_t n = tensor_numel(weights);
    const int64_t keys = weights->shape.dim[weights->shape.ndim - 1];
    double *y = malloc((size_t)n * sizeof *y);
    bool found = false;
    if (!y) return tensor_fail("out of memory");
    if (tensor_to_doubles(weights, y))
        for (int64_t row = 0; row < n; row += keys) {
            double sum = 0;
            for (int64_t k = 0; k < keys; k++) sum += y[row + k];
            found = found || sum == 0;
        }
    free(y);
    return found;
}

/* The weights are w = p m / sum(p m), where p is softmax without a mask, and m is 0 for the masked
 * keys and 1 for the others. In a row with an allowed key w is y, and dx is right; in a row without
 * one w is 0 / 0, NaN, and so is dx = w (dy - sum(w dy)). Rows of y sum to 1 or to 0, so w is
 * y / sum(y). */
#define MASK "scale * (y / sum(y)) * (dy - sum(y / sum(y) * dy))"

/* ---- the rules ------------------------------------------------------------------------------- */

static const WrongRule rules[] = {
    {"softmax", "softmax without its sum", "dx = y dy", "dx = y (dy - sum(y dy))", is_softmax,
     "y * dy", "scale * y * dy"},
    {"transpose", "a transpose that is not undone", "dx = dy, row by row in the shape of x",
     "dx = dy'", is_transpose, "dy", NULL},
    {"assign", "= in place of +=", "x.grad = dx, from each line that reads x",
     "x.grad += dx, from each line that reads x", reads_shared_input, NULL, NULL},
    {"dropout", "dropout without 1 / (1 - p)", "dx = dy where kept, else 0",
     "dx = dy / (1 - p) where kept, else 0", is_dropout, "dy * kept", NULL},
    {"mask", "a mask that multiplies", "w = p m / sum(p m), dx = w (dy - sum(w dy))",
     "dx = y (dy - sum(y dy)), 0 where masked", has_empty_row, MASK, MASK},
};
enum { RULES = sizeof rules / sizeof *rules };

const WrongRule *wrong_find(const char *key) {
    for (int i = 0; i < RULES; i++)
        if (strcmp(rules[i].key, key) == 0) return &rules[i];
    return NULL;
}

const char *wrong_key(const WrongRule *rule) { return rule->key; }
const char *wrong_title(const WrongRule *rule) { return rule->title; }
const char *wrong_formula(const WrongRule *rule) { return rule->wrong; }
const char *wrong_right_formula(const WrongRule *rule) { return rule->right; }

/* Does the line have a gradient that the rule changes? */
static bool changes(const WrongRule *rule, const TapeLine *line) {
    return line->out->grad_fn && line->n_in > 0 && rule->concerns(line);
}

bool wrong_concerns(const WrongRule *rule, int i) {
    TapeLine line;
    return tape_line(i, &line) && changes(rule, &line);
}

/* The formula of the rule on this line. */
static const char *formula_on(const WrongRule *rule, const TapeLine *line) {
    return rule->scaled && is_op(line, "masked_softmax") ? rule->scaled : rule->formula;
}

int wrong_apply(const WrongRule *rule, Planting *planting) {
    TapeLine line;
    int lines = 0;
    for (int i = 0; tape_line(i, &line); i++) {
        if (!changes(rule, &line)) continue;
        lines += rule->formula
                     ? rule_plant_at(planting, i, 0, line.out->name, formula_on(rule, &line))
                     : rule_plant_assign(planting, i, shared_inputs(&line));
    }
    return lines;
}

static bool changes_any(const WrongRule *rule) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        if (changes(rule, &line)) return true;
    return false;
}

/* ["A: y * dy", "B: y * dy"]: the rule as rules of rule_plant.h, none if it is no formula. */
static void write_formulas(FILE *file, const WrongRule *rule) {
    TapeLine line;
    const char *before = "";
    char text[160];
    fprintf(file, ",\n\"formulas\":[");
    for (int i = 0; tape_line(i, &line) && rule->formula; i++) {
        if (!changes(rule, &line)) continue;
        snprintf(text, sizeof text, "%s: %s", line.out->name, formula_on(rule, &line));
        fputs(before, file);
        json_write_string(file, text);
        before = ",";
    }
    putc(']', file);
}

void wrong_write(FILE *file) {
    const char *before = "{\"key\":";
    fprintf(file, ",\n\"rules\":[");
    for (int i = 0; i < RULES; i++) {
        if (!changes_any(&rules[i])) continue;
        fputs(before, file);
        json_write_string(file, rules[i].key);
        json_write_member(file, "title", rules[i].title);
        json_write_member(file, "wrong", rules[i].wrong);
        json_write_member(file, "right", rules[i].right);
        write_formulas(file, &rules[i]);
        putc('}', file);
        before = ",\n {\"key\":";
    }
    putc(']', file);
}
