/* rule_eval.c - the value of a formula: see rule.h.
 *
 * Sizes are compared before an op is called, so a complaint is in the words of the formula. */
#include "rule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ------------------------------------------------------------------------------- */

/* Over the last dimension; a number has none. */
static Tensor *sum_last(Tensor *x) {
    return x && x->shape.ndim ? ag_sum_dims(x, AXES(-1), true) : x;
}
static Tensor *mean_last(Tensor *x) {
    return x && x->shape.ndim ? ag_mean_dims(x, AXES(-1), true) : x;
}
static Tensor *max_last(Tensor *x) { return x && x->shape.ndim ? ag_max_dim(x, -1, true) : x; }

static Tensor *sum_others(Tensor *x) {
    Axes others = {0};
    if (!x || x->shape.ndim < 2) return x;
    for (int d = 0; d < x->shape.ndim - 1; d++) others.axis[others.n++] = d;
    return ag_sum_dims(x, others, true);
}

static Tensor *sign_of(Tensor *x) {
    Tensor *zero = tape_own(tensor_full_of(SCALAR, 0, x->dtype));
    return ag_sub(ag_to(ag_gt(x, zero), x->dtype), ag_to(ag_lt(x, zero), x->dtype));
}

#define EACH "goes number by number"
static const struct {
    const char *name, *does;
    Tensor *(*apply)(Tensor *x);
} functions[] = {
    {"sum", "adds up each row", sum_last},
    {"mean", "is the mean of each row", mean_last},
    {"max", "is the largest number of each row", max_last},
    {"sum0", "adds up all rows", sum_others},
    {"exp", EACH, ag_exp},
    {"log", EACH, ag_log},
    {"tanh", EACH, ag_tanh},
    {"sqrt", EACH, ag_sqrt},
    {"sign", "is 1, 0 or -1, number by number", sign_of},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

const char *rule_function(int i) { return i < FUNCTIONS ? functions[i].name : NULL; }
const char *rule_function_does(int i) { return functions[i].does; }

const RuleHelp rule_help[] = {
    {"a + b  a - b  a * b  a / b", "number by number, with broadcasting"},
    {"x^2", "a power, number by number; the exponent is a number"},
    {"a > b", "1 where a number of a is larger, else 0"},
    {"max(a, b)", "the larger one, number by number"},
    {"a @ b", "the product of tables"},
    {"x'", "x transposed: its last two dimensions swapped; also x^T and xT"},
    {"sum(x)  mean(x)  max(x)", "over each row, which becomes one number"},
    {"sum0(x)", "the sum of all rows, which is one row"},
    {"exp(x)  log(x)  tanh(x)  sqrt(x)  \xe2\x88\x9ax", "number by number"},
    {"sign(x)", "1, 0 or -1: the sign of each number"},
};
const int rule_num_help = sizeof rule_help / sizeof *rule_help;

/* ---- complaints ------------------------------------------------------------------------------ */

/* "2 x 3", also of 1 x 2 x 3, a list of one table. */
static const char *sizes(Shape shape, char text[80]) {
    int used = 0, first = 0;
    if (shape.ndim == 0) return "one number";
    while (shape.ndim - first > 2 && shape.dim[first] == 1) first++;
    for (int d = first; d < shape.ndim; d++)
        used += snprintf(text + used, (size_t)(80 - used), "%s%" PRId64, d > first ? " x " : "",
                         shape.dim[d] % 100000000);
    return text;
}

/* "V' is 2 x 3" */
static const char *describe(const RuleFormula *f, int node, const Tensor *x, char text[160]) {
    enum { MOST = 48 };
    char shape[80], begin[MOST + 1];
    const RuleNode *n = &f->nodes[node];
    const int length = n->end - n->begin;
    tensor_snprintf(begin, sizeof begin, "%.*s", length, f->text + n->begin);
    snprintf(text, 160, "%s%s is %s", begin, length > MOST ? "..." : "", sizes(x->shape, shape));
    return text;
}

static Tensor *complain(RuleFormula *f, const RuleNode *n, const Tensor *a, const Tensor *b,
                        const char *needs) {
    char left[160], right[160];
    return rule_complain(f, n->column, "%s and %s: %s", describe(f, n->a, a, left),
                         describe(f, n->b, b, right), needs);
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* Size d from the right; 1 if there are fewer dimensions. */
static int64_t size_from_right(Shape shape, int d) {
    return d < shape.ndim ? shape.dim[shape.ndim - 1 - d] : 1;
}

/* Do the dimensions broadcast, but the last few? */
static bool broadcast(Shape a, Shape b, int last) {
    for (int d = last; d < a.ndim && d < b.ndim; d++) {
        const int64_t x = size_from_right(a, d), y = size_from_right(b, d);
        if (x != y && x != 1 && y != 1) return false;
    }
    return true;
}

static Tensor *transpose(RuleFormula *f, const RuleNode *n, Tensor *x) {
    char text[160];
    if (x->shape.ndim == 1) return ag_unsqueeze(x, 1);
    if (x->shape.ndim > 1) return ag_transpose(x, -2, -1);
    return rule_complain(f, n->column, "%s: ' needs a matrix", describe(f, n->a, x, text));
}

/* Are they equal but for sizes of 1 in front? */
static bool equal_behind_ones(Shape a, Shape b) {
    for (int d = 0; d < a.ndim || d < b.ndim; d++)
        if (size_from_right(a, d) != size_from_right(b, d)) return false;
    return true;
}

static bool same_shape(Shape a, Shape b) { return a.ndim == b.ndim && equal_behind_ones(a, b); }

/* A column times a vector takes the vector as a row. */
static Tensor *product(RuleFormula *f, const RuleNode *n, Tensor *a, Tensor *b) {
    if (a->shape.ndim == 0 || b->shape.ndim == 0)
        return complain(f, n, a, b, "@ needs matrices; * multiplies by a number");
    const int64_t inner = size_from_right(a->shape, 0);
    if (a->shape.ndim > 1 && b->shape.ndim == 1 && inner == 1) b = ag_unsqueeze(b, 0);
    if (!b) return NULL;
    const int64_t other = size_from_right(b->shape, b->shape.ndim > 1);
    if (inner != other && same_shape(a->shape, b->shape))
        return complain(f, n, a, b, "@ needs equal inner sizes, and * goes number by number");
    if (inner != other) return complain(f, n, a, b, "@ needs equal inner sizes");
    if (a->shape.ndim > 1 && b->shape.ndim > 1 && !broadcast(a->shape, b->shape, 2))
        return complain(f, n, a, b, "@ needs equal sizes, or 1, before the last two");
    return ag_matmul(a, b);
}

static Tensor *element_by_element(RuleFormula *f, const RuleNode *n, Tensor *a, Tensor *b) {
    if (!broadcast(a->shape, b->shape, 0)) {
        char needs[40];
        snprintf(needs, sizeof needs, "%c needs equal sizes, or 1", n->sign);
        return complain(f, n, a, b, needs);
    }
    switch (n->sign) {
    case '+': return ag_add(a, b);
    case '-': return ag_sub(a, b);
    case '*': return ag_mul(a, b);
    case 'M': return ag_maximum(a, b);
    case '>': return ag_to(ag_gt(a, b), a->dtype);
    case '^': return ag_pow(a, b);
    default: return ag_div(a, b);
    }
}

/* 0 where backward has not been. */
static Tensor *gradient_of(const Tensor *x, const RuleValues *v) {
    for (int i = 0; i < v->num_given; i++)
        if (v->given[i].of == x) return v->given[i].gradient;
    if (x->grad_buffer) return x->grad_buffer; /* it is on its way */
    return x->grad ? x->grad : tape_own(tensor_zeros_like(x));
}

/* Bools and integers become numbers of the gradient's type. */
static Tensor *value_of(const RuleName *name, const RuleValues *v) {
    switch (name->meaning) {
    case NAMES_DY: return v->dy;
    case NAMES_OUT: return ag_to(v->out, v->dy->dtype);
    case NAMES_INPUT: return ag_to(v->in[name->input], v->dy->dtype);
    case NAMES_TENSOR: return ag_to(name->tensor, v->dy->dtype);
    case NAMES_GRADIENT: return ag_to(gradient_of(name->tensor, v), v->dy->dtype);
    default: return tape_own(tensor_full_of(SCALAR, name->number, v->dy->dtype));
    }
}

static Tensor *evaluate(RuleFormula *f, int node, const RuleValues *v) {
    const RuleNode *n = &f->nodes[node];
    if (n->sign == 'n') return value_of(&n->value, v);
    if (n->sign == '#') return tape_own(tensor_full_of(SCALAR, n->number, v->dy->dtype));
    Tensor *a = evaluate(f, n->a, v);
    if (!a) return NULL;
    if (n->sign == '~') return ag_neg(a);
    if (n->sign == 'f') return functions[n->function].apply(a);
    if (n->sign == '\'') return transpose(f, n, a);
    Tensor *b = evaluate(f, n->b, v);
    if (!b) return NULL;
    return n->sign == '@' ? product(f, n, a, b) : element_by_element(f, n, a, b);
}

Tensor *rule_evaluate(RuleFormula *f, const RuleValues *values) {
    return values->dy ? evaluate(f, f->n - 1, values) : NULL;
}

/* ---- the shape of a gradient ----------------------------------------------------------------- */

/* Does a tensor of this shape broadcast to the other shape? */
static bool broadcasts_to(Shape shape, Shape to) {
    for (int d = 0; d < shape.ndim; d++) {
        const int64_t size = size_from_right(shape, d);
        if (size != 1 && (d >= to.ndim || size != size_from_right(to, d))) return false;
    }
    return true;
}

Tensor *rule_fit(RuleFormula *f, Tensor *value, const Tensor *x, bool moves) {
    char have[80], want[80];
    if (value) value = ag_to(value, x->dtype);
    if (!value) return NULL;
    if (same_shape(value->shape, x->shape)) return value;
    if (equal_behind_ones(value->shape, x->shape) ||
        (moves && tensor_numel(value) == tensor_numel(x)))
        return ag_reshape(value, x->shape);
    if (broadcasts_to(value->shape, x->shape) && value->shape.ndim <= x->shape.ndim)
        return ag_expand(value, x->shape);
    if (broadcasts_to(x->shape, value->shape) && x->shape.ndim <= value->shape.ndim) return value;
    return rule_complain(f, 1, "the formula is %s and the gradient must be %s",
                         sizes(value->shape, have), sizes(x->shape, want));
}

Tensor *rule_fit_whole(RuleFormula *f, Tensor *value, const Tensor *x) {
    char have[80], want[80];
    if (!value || equal_behind_ones(value->shape, x->shape)) return rule_fit(f, value, x, false);
    const bool is_one = tensor_numel(x) == 1;
    return rule_complain(f, 0, "the formula is %s and the gradient must be %s%s",
                         sizes(value->shape, have), is_one ? "one number" : sizes(x->shape, want),
                         broadcasts_to(x->shape, value->shape)
                             ? ": each use of a number adds a term to its gradient"
                             : "");
}
