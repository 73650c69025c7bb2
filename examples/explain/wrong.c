/* wrong.c - wrong rules: see wrong.h.
 *
 * A hook on a line of the tape is called after the backward of the line, and puts the wrong dx in
 * place of the right one. So neither the library nor the lesson changes. The check of a line
 * compares its backward with its forward, and finds the mistake; only the rule "assign" is wrong
 * outside of every op. */
#include "wrong.h"

#include "../../autograd/autograd.h"
#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct WrongRule {
    const char *key, *title, *wrong, *right;
    bool (*concerns)(const TapeLine *line); /* would the rule change its dx? It has a gradient */
    void (*hook)(const AgCall *call, Tensor *dy, Tensor **dx);
};

/* What a hook knows about its line. */
typedef struct {
    double number;   /* the argument of the op */
    unsigned shared; /* bit k: other lines with a gradient read in[k], too */
} Fact;

/* Takes a loan. */
static void replace(Tensor **dx, Tensor *wrong) {
    if (!wrong) return;
    tensor_release(*dx);
    *dx = tensor_retain(wrong);
}

/* ---- softmax without its sum ----------------------------------------------------------------- */

static bool is_op(const TapeLine *line, const char *name) { return strcmp(line->op, name) == 0; }

static bool is_zero(const Tensor *x) { return tensor_sum_of_squares(x) == 0; }

/* Weights that are all 0 have the right gradient, 0, by both rules. */
static bool is_softmax(const TapeLine *line) {
    return (is_op(line, "softmax") || is_op(line, "masked_softmax")) && !is_zero(line->out);
}

/* dx = y dy, times the scale of masked_softmax. */
static void softmax_hook(const AgCall *call, Tensor *dy, Tensor **dx) {
    const Fact *fact = call->data;
    replace(&dx[0], ag_scale(ag_mul(call->out, dy), fact->number));
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

/* dx = the numbers of dy, row by row, in the shape of x. */
static void transpose_hook(const AgCall *call, Tensor *dy, Tensor **dx) {
    replace(&dx[0], ag_reshape(dy, call->in[0]->shape));
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

/* The right dx. But the gradients that other lines have added for these inputs are lost, so only
 * the line that backward reaches last counts. */
static void assign_hook(const AgCall *call, Tensor *dy, Tensor **dx) {
    const Fact *fact = call->data;
    (void)dy;
    (void)dx;
    for (int k = 0; k < call->n; k++) {
        if (!(fact->shared >> k & 1)) continue;
        tensor_release(call->in[k]->grad_buffer);
        call->in[k]->grad_buffer = NULL;
    }
}

/* ---- dropout without 1 / (1 - p) ------------------------------------------------------------- */

static bool is_dropout(const TapeLine *line) {
    return is_op(line, "dropout") && line->number > 0 && !is_zero(line->out);
}

/* dx = dy where kept, else 0. */
static void dropout_hook(const AgCall *call, Tensor *dy, Tensor **dx) {
    const Fact *fact = call->data;
    (void)dy;
    replace(&dx[0], ag_scale(dx[0], 1 - fact->number));
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
 * one w is 0 / 0, NaN, and so is dx = w (dy - sum(w dy)). */
static void mask_hook(const AgCall *call, Tensor *dy, Tensor **dx) {
    Tensor *sums = ag_sum_dims(call->out, AXES(-1), true); /* (..., Q, K) -> (..., Q, 1) */
    (void)dy;
    replace(&dx[0], ag_masked_fill(dx[0], ag_eq_scalar(sums, 0), (double)NAN));
}

/* ---- the rules ------------------------------------------------------------------------------- */

static const WrongRule rules[] = {
    {"softmax", "softmax without its sum", "dx = y dy", "dx = y (dy - sum(y dy))", is_softmax,
     softmax_hook},
    {"transpose", "a transpose that is not undone", "dx = dy, row by row in the shape of x",
     "dx = dy'", is_transpose, transpose_hook},
    {"assign", "= in place of +=", "x.grad = dx, from each line that reads x",
     "x.grad += dx, from each line that reads x", reads_shared_input, assign_hook},
    {"dropout", "dropout without 1 / (1 - p)", "dx = dy where kept, else 0",
     "dx = dy / (1 - p) where kept, else 0", is_dropout, dropout_hook},
    {"mask", "a mask that multiplies", "w = p m / sum(p m), dx = w (dy - sum(w dy))",
     "dx = y (dy - sum(y dy)), 0 where masked", has_empty_row, mask_hook},
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

/* The facts are those of the tape that is open now. */
int wrong_apply(const WrongRule *rule) {
    static Fact facts[32];
    TapeLine line;
    int lines = 0;
    for (int i = 0; tape_line(i, &line); i++) {
        if (!changes(rule, &line)) continue;
        if (lines == sizeof facts / sizeof *facts) abort(); /* make facts longer */
        facts[lines] = (Fact){line.argument ? line.number : 1, shared_inputs(&line)};
        if (tape_register_hook(i, rule->hook, &facts[lines])) lines++;
    }
    return lines;
}

static bool changes_any(const WrongRule *rule) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        if (changes(rule, &line)) return true;
    return false;
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
        putc('}', file);
        before = ",\n {\"key\":";
    }
    putc(']', file);
}
