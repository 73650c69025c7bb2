/* tree.h - a rule as a tree over the tables of a step. The rules are those of mistakes.def, in the
 * language of rule.h, or one that a reader has planted; a folded step has the rules of its lines,
 * one put into the other.
 *
 * All that is said of a step is a walk over its tree: its tables and its title (formula.c), what
 * one number is made of (worked.c), its value (here). A step without a tree only moves numbers, or
 * its op has no rule: then its derivatives say what happens. */
#ifndef TAPEHEAD_EXAMPLES_TREE_H
#define TAPEHEAD_EXAMPLES_TREE_H

#include "../page/json.h"

#include "../../../tensor/tensor.h"

enum { TREE_NODES = 100, TREE_TABLES = 24, TREE_NAME = 40 };

typedef struct {
    int rank;
    int64_t size[TENSOR_MAX_DIMS];
} Dims;

/* What a rule reads: the value or the gradient of a tensor, or numbers that are no tensor. */
typedef struct {
    bool is_gradient;
    int tensor;           /* -1: none */
    char name[TREE_NAME]; /* of numbers that are no tensor */
    const double *numbers;
    Dims dims;
} TreeTable;

/* The terms of each number: elements of tables, times J. */
typedef struct {
    int table;
    int64_t i;
} TreeTerm;
typedef struct TreeTerms {
    int64_t *begin, count;
    TreeTerm *of;
    double *J;
} TreeTerms;

/* A sign as in rule.h, but: t is a table, # a number, S the sum of all copies of a number, E a
 * number that is copied, R numbers row by row in another shape, = a part with a name. */
typedef struct {
    char sign;
    short a, b, table;
    const char *function; /* of f */
    double number;
    Dims dims;
    struct TreeTerms
        *terms; /* of J, a sum of derivatives times numbers; is_plain: all derivatives are 1 */
    bool is_plain;
    double *own; /* the numbers of a part, or of a sum inside a formula: it stands in a table of its
                  * own */
    char name[TREE_NAME]; /* of a part */
} TreeNode;

typedef struct {
    int n, num_tables; /* node n - 1 is the whole */
    TreeNode nodes[TREE_NODES];
    TreeTable tables[TREE_TABLES];
} Tree;

int64_t dims_size(const Dims *dims);
/* The element of a table, which was broadcast, that stands at element i. */
int64_t dims_element(const Dims *of, const Dims *at, int64_t i);
/* Element i of the transposed table. */
int64_t dims_turned(const Dims *dims, int64_t i);

/* The number of terms that a sum has for each of its numbers, and the element of its operand, or of
 * its two operands, in term t of number i. */
int64_t tree_terms(const Tree *tree, int n);
void tree_term(const Tree *tree, int n, int64_t i, int64_t t, int64_t *a, int64_t *b);
double tree_number(const Tree *tree, int n, int64_t i);
double tree_apply(char sign, double a, double b);
double tree_function(const char *function, double x);

/* Computes the numbers of all parts with a name once more. */
void tree_compute_parts(Tree *tree);

/* Does it add up rows: sum, mean, max? What a part adds up stands elsewhere. */
bool tree_is_sum(const TreeNode *node);
bool tree_has_sum(const Tree *tree, int n);
/* Is each number made from those in its own place alone? From the row that it stands in? */
bool tree_goes_by_numbers(const Tree *tree);
bool tree_goes_by_rows(const Tree *tree);

#endif
