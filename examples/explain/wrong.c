/* wrong.c - wrong rules: see wrong.h.
 *
 * A node of the tape points to its op. A copy of the op with another backward takes the place of
 * the op, so neither the library nor the lesson changes. This file is the only file of the examples
 * that reads op.h. The check of a line compares the backward of its op with its forward, and finds
 * the mistake; only the rule "assign" is wrong outside of every op. */
#include "wrong.h"

#include "../../autograd/op.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

struct WrongRule {
    const char *key, *title, *wrong, *right;
    bool (*concerns)(const Node *n); /* would the rule change n's backward? n has a gradient */
    void (*backward)(const Node *n, Tensor *dy, Tensor **dx);
};

/* ---- copies of ops --------------------------------------------------------------------------- */

typedef struct {
    Op op; /* stands first, so a pointer to it is a pointer to the copy */
    const Op *right;
} Copy;

/* The copy of an op with this backward. Nodes share it, and it is never freed. */
static const Op *copy_of(const Op *op, const WrongRule *rule) {
    static Copy copies[32];
    static int count;
    for (int i = 0; i < count; i++)
        if (copies[i].right == op && copies[i].op.backward == rule->backward) return &copies[i].op;
    if (count == sizeof copies / sizeof *copies) abort(); /* make copies longer */
    copies[count] = (Copy){*op, op};
    copies[count].op.backward = rule->backward;
    return &copies[count++].op;
}

/* The backward that the copy replaced. */
static void right_backward(const Node *n, Tensor *dy, Tensor **dx) {
    ((const Copy *)n->op)->right->backward(n, dy, dx);
}

/* ---- softmax without its sum ----------------------------------------------------------------- */

static bool is_op(const Node *n, const char *name) { return strcmp(n->op->name, name) == 0; }

static bool is_zero(const Tensor *x) { return tensor_sum_of_squares(x) == 0; }

/* Weights that are all 0 have the right gradient, 0, by both rules. */
static bool is_softmax(const Node *n) {
    return (is_op(n, "softmax") || is_op(n, "masked_softmax")) && !is_zero(n->out);
}

/* dx = y dy, times the scale of masked_softmax. */
static void softmax_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Kernel *const multiply = tensor_kernels()->value[ELEMENTWISE_mul][dy->dtype];
    dx[0] =
        tensor_map_elements(multiply, dy->shape, dy->dtype, 2, (const Tensor *[]){n->out, dy}, 0);
    if (dx[0] && is_op(n, "masked_softmax")) tensor_mul_(dx[0], n->at.scale);
}

/* ---- a transpose that is not undone ---------------------------------------------------------- */

/* If one of two neighbouring dimensions has size 1, the numbers stand in the same order before and
 * after. */
static bool is_transpose(const Node *n) {
    return is_op(n, "transpose") && n->at.dim0 != n->at.dim1 && n->out->shape.dim[n->at.dim0] > 1 &&
           n->out->shape.dim[n->at.dim1] > 1;
}

/* dx = the numbers of dy, row by row, in the shape of x. */
static void transpose_backward(const Node *n, Tensor *dy, Tensor **dx) {
    dx[0] = tensor_reshape(dy, n->in[0]->shape);
}

/* ---- = in place of += ------------------------------------------------------------------------ */

/* Counts the inputs that are x, of all lines with a gradient. */
static int uses_of(const Tensor *x) {
    int uses = 0, i = 0;
    for (const Node *n = ag_node(0); n; n = ag_node(++i))
        for (int k = 0; k < n->n_in && n->out->grad_fn; k++) uses += n->in[k] == x;
    return uses;
}

static bool reads_shared_input(const Node *n) {
    for (int k = 0; k < n->n_in; k++)
        if (ag_needs(n, k) && uses_of(n->in[k]) > 1) return true;
    return false;
}

/* The right dx. But the gradients that other lines have added for these inputs are lost, so only
 * the line that backward reaches last counts. */
static void assign_backward(const Node *n, Tensor *dy, Tensor **dx) {
    for (int k = 0; k < n->n_in; k++) {
        if (!ag_needs(n, k) || uses_of(n->in[k]) < 2) continue;
        tensor_release(n->in[k]->grad_buffer);
        n->in[k]->grad_buffer = NULL;
    }
    right_backward(n, dy, dx);
}

/* ---- dropout without 1 / (1 - p) ------------------------------------------------------------- */

static bool is_dropout(const Node *n) {
    return is_op(n, "dropout") && n->at.p > 0 && !is_zero(n->out);
}

/* dx = dy where kept, else 0. */
static void dropout_backward(const Node *n, Tensor *dy, Tensor **dx) {
    right_backward(n, dy, dx);
    if (dx[0]) tensor_mul_(dx[0], 1 - n->at.p);
}

/* ---- a mask that multiplies ------------------------------------------------------------------ */

/* (..., Q, K) -> (..., Q, 1) */
static Tensor *sum_of_rows(const Tensor *y) {
    bool dims[TENSOR_MAX_DIMS] = {false};
    dims[y->shape.ndim - 1] = true;
    return tensor_sum_dims(y, dims);
}

/* Does a row have no allowed key? */
static bool has_empty_row(const Node *n) {
    if (!is_op(n, "masked_softmax")) return false;
    Tensor *sums = sum_of_rows(n->out);
    bool found = false;
    for (int64_t i = 0; sums && i < tensor_numel(sums); i++)
        found = found || tensor_read_element(sums, i) == 0;
    tensor_release(sums);
    return found;
}

/* The weights are w = p m / sum(p m), where p is softmax without a mask, and m is 0 for the masked
 * keys and 1 for the others. In a row with an allowed key w is y; in a row without one w is 0 / 0,
 * NaN. So w is y / sum(y). Then the right rule follows, with w for y. */
static void mask_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Kernel *const divide = tensor_kernels()->value[ELEMENTWISE_div][dy->dtype];
    Node other = *n;
    Tensor *sums = sum_of_rows(n->out);
    other.out = NULL;
    if (sums)
        other.out = tensor_map_elements(divide, dy->shape, dy->dtype, 2,
                                        (const Tensor *[]){n->out, sums}, 0);
    if (other.out) right_backward(&other, dy, dx);
    tensor_release(other.out);
    tensor_release(sums);
}

/* ---- the rules ------------------------------------------------------------------------------- */

static const WrongRule rules[] = {
    {"softmax", "softmax without its sum", "dx = y dy", "dx = y (dy - sum(y dy))", is_softmax,
     softmax_backward},
    {"transpose", "a transpose that is not undone", "dx = dy, row by row in the shape of x",
     "dx = dy'", is_transpose, transpose_backward},
    {"assign", "= in place of +=", "x.grad = dx, from each line that reads x",
     "x.grad += dx, from each line that reads x", reads_shared_input, assign_backward},
    {"dropout", "dropout without 1 / (1 - p)", "dx = dy where kept, else 0",
     "dx = dy / (1 - p) where kept, else 0", is_dropout, dropout_backward},
    {"mask", "a mask that multiplies", "w = p m / sum(p m), dx = w (dy - sum(w dy))",
     "dx = y (dy - sum(y dy)), 0 where masked", has_empty_row, mask_backward},
};
enum { RULES = sizeof rules / sizeof *rules };

const WrongRule *wrong_find(const char *key) {
    for (int i = 0; i < RULES; i++)
        if (strcmp(rules[i].key, key) == 0) return &rules[i];
    return NULL;
}

const char *wrong_key(const WrongRule *rule) { return rule->key; }

static bool changes(const WrongRule *rule, const Node *n) {
    return n->out->grad_fn && n->op->backward && rule->concerns(n);
}

int wrong_apply(const WrongRule *rule) {
    int lines = 0, i = 0;
    for (const Node *n = ag_node(0); n; n = ag_node(++i)) {
        if (!changes(rule, n)) continue;
        ((Node *)(uintptr_t)n)->op = copy_of(n->op, rule);
        lines++;
    }
    return lines;
}

static bool changes_any(const WrongRule *rule) {
    int i = 0;
    for (const Node *n = ag_node(0); n; n = ag_node(++i))
        if (changes(rule, n)) return true;
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
