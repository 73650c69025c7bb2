/* tree.c - a rule as a tree: see tree.h. */
#include "tree.h"

#include <math.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t dims_size(const Dims *dims) {
    int64_t n = 1;
    for (int d = 0; d < dims->rank; d++) n *= dims->size[d];
    return n;
}

int64_t dims_element(const Dims *of, const Dims *at, int64_t i) {
    int64_t element = 0, stride = 1;
    for (int d = at->rank - 1, e = of->rank - 1; d >= 0 && e >= 0; d--, e--) {
        const int64_t size = at->size[d] > 0 ? at->size[d] : 1;
        if (of->size[e] > 1) element += i % size * stride;
        i /= size;
        stride *= of->size[e];
    }
    return element;
}

int64_t dims_turned(const Dims *dims, int64_t i) {
    if (dims->rank < 2) return i; /* a column */
    const int64_t rows = dims->size[dims->rank - 2], columns = dims->size[dims->rank - 1];
    const int64_t panel = i / (rows * columns), r = i % (rows * columns) / rows, c = i % rows;
    return (panel * rows + c) * columns + r;
}

/* ---- sums ------------------------------------------------------------------------------------ */

bool tree_is_sum(const TreeNode *node) {
    return strchr("@SJ", node->sign) ||
           (node->sign == 'f' && strstr("sum0 mean max", node->function));
}

bool tree_has_sum(const Tree *tree, int n) {
    const TreeNode *node = &tree->nodes[n];
    if (node->sign == '=') return false;
    if (node->sign == 'f' && tree_is_sum(node)) return true;
    return (node->a >= 0 && tree_has_sum(tree, node->a)) ||
           (node->b >= 0 && tree_has_sum(tree, node->b));
}

bool tree_goes_by_numbers(const Tree *tree) {
    for (int n = 0; n < tree->n; n++)
        if (tree_is_sum(&tree->nodes[n])) return false;
    return true;
}

bool tree_goes_by_rows(const Tree *tree) {
    bool any = false;
    for (int n = 0; n < tree->n; n++) {
        const TreeNode *node = &tree->nodes[n];
        if (strchr("@SJ'", node->sign)) return false;
        if (node->sign == 'f' && strcmp(node->function, "sum0") == 0) return false;
        any = any || tree_is_sum(node);
    }
    return any;
}

int64_t tree_terms(const Tree *tree, int n) {
    const TreeNode *node = &tree->nodes[n];
    const Dims *a = &tree->nodes[node->a].dims;
    if (node->sign == '@' || node->sign == 'f') {
        if (node->sign == 'f' && strcmp(node->function, "sum0") == 0)
            return dims_size(a) / dims_size(&node->dims);
        return a->rank ? a->size[a->rank - 1] : 1;
    }
    return dims_size(a) / dims_size(&node->dims);
}

/* The t-th element of a larger table that number i is a copy of. */
static int64_t copy_of(const Dims *of, const Dims *in, int64_t i, int64_t t) {
    int64_t element = 0, stride = 1;
    for (int d = in->rank - 1, e = of->rank - 1; d >= 0; d--, e--) {
        const int64_t size = e >= 0 ? of->size[e] : 1;
        const bool same = size == in->size[d];
        element += (same ? i % size : t % in->size[d]) * stride;
        if (same) i /= size;
        else t /= in->size[d];
        stride *= in->size[d];
    }
    return element;
}

void tree_term(const Tree *tree, int n, int64_t i, int64_t t, int64_t *a, int64_t *b) {
    const TreeNode *node = &tree->nodes[n];
    const Dims *of_a = &tree->nodes[node->a].dims;
    *b = -1;
    if (node->sign != '@') {
        *a = copy_of(&node->dims, of_a, i, t);
        return;
    }
    const Dims *of_b = &tree->nodes[node->b].dims;
    const int64_t K = of_a->size[of_a->rank - 1], M = of_b->size[of_b->rank - 1];
    const int64_t N = of_a->size[of_a->rank - 2], panel = i / (N * M);
    const Dims panels = {node->dims.rank - 2, {0}};
    Dims a_panels = {of_a->rank - 2, {0}}, b_panels = {of_b->rank - 2, {0}}, all = panels;
    memcpy(all.size, node->dims.size, sizeof all.size);
    memcpy(a_panels.size, of_a->size, sizeof all.size);
    memcpy(b_panels.size, of_b->size, sizeof all.size);
    *a = (dims_element(&a_panels, &all, panel) * N + i / M % N) * K + t;
    *b = (dims_element(&b_panels, &all, panel) * K + t) * M + i % M;
}

/* ---- values ---------------------------------------------------------------------------------- */

double tree_function(const char *function, double x) {
    if (strcmp(function, "exp") == 0) return exp(x);
    if (strcmp(function, "log") == 0) return log(x);
    if (strcmp(function, "sign") == 0) return (x > 0) - (x < 0);
    return strcmp(function, "tanh") == 0 ? tanh(x) : sqrt(x);
}

double tree_apply(char sign, double a, double b) {
    switch (sign) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case '^': return pow(a, b);
    case '>': return a > b;
    default: return fmax(a, b);
    }
}

static double number_of_sum(const Tree *tree, int n, int64_t i) {
    const TreeNode *node = &tree->nodes[n];
    const bool is_max = node->sign == 'f' && strcmp(node->function, "max") == 0;
    const bool is_mean = node->sign == 'f' && strcmp(node->function, "mean") == 0;
    const int64_t terms = tree_terms(tree, n);
    double sum = is_max ? -HUGE_VAL : 0;
    for (int64_t t = 0; t < terms; t++) {
        int64_t a, b;
        tree_term(tree, n, i, t, &a, &b);
        const double x =
            tree_number(tree, node->a, a) * (b >= 0 ? tree_number(tree, node->b, b) : 1);
        sum = is_max ? fmax(sum, x) : sum + x;
    }
    return is_mean ? sum / (double)terms : sum;
}

double tree_number(const Tree *tree, int n, int64_t i) {
    const TreeNode *node = &tree->nodes[n];
    if (node->sign == 't') return tree->tables[node->table].numbers[i];
    if (node->sign == '#') return node->number;
    if (node->own) return node->own[i];
    if (tree_is_sum(node)) return number_of_sum(tree, n, i);
    const Dims *of_a = &tree->nodes[node->a].dims;
    if (node->sign == '\'') return tree_number(tree, node->a, dims_turned(of_a, i));
    if (strchr("R=", node->sign)) return tree_number(tree, node->a, i);
    const double a = tree_number(tree, node->a, dims_element(of_a, &node->dims, i));
    if (node->sign == '~') return -a;
    if (node->sign == 'E') return a;
    if (node->sign == 'f') return tree_function(node->function, a);
    const double b =
        tree_number(tree, node->b, dims_element(&tree->nodes[node->b].dims, &node->dims, i));
    return tree_apply(node->sign, a, b);
}

void tree_compute_parts(Tree *tree) {
    for (int n = 0; n < tree->n; n++) {
        TreeNode *node = &tree->nodes[n];
        if (node->sign != '=') continue;
        const int64_t size = dims_size(&node->dims);
        for (int64_t i = 0; i < size; i++) node->own[i] = tree_number(tree, node->a, i);
    }
}
