/* rules.h - a tape, read from its JSON into arrays, and the rule of each of its gradients, a tree.
 * A line that only moves numbers needs none: that is found in its derivatives,
 *
 *     dx[i] = sum over j of dy[j] J[j, i],
 *
 * which also say what happens where no rule is known. */
#ifndef TAPEHEAD_EXAMPLES_RULES_H
#define TAPEHEAD_EXAMPLES_RULES_H

#include "tree.h"

#include "../../../tensor/tensor.h"

/* Memory of a tape, which rules_free frees. */
typedef struct Piece Piece;
/* So many elements, all 0; NULL and an error without memory. */
void *memory_take(Piece **memory, int64_t count, size_t size);

/* The last two dimensions are the rows and columns of a table; the dimensions before them count
 * the panels, tables of the same size. */
typedef struct {
    const Json *json;
    const char *name; /* "" if the tape has none */
    int64_t rank, shape[TENSOR_MAX_DIMS];
    int64_t panels, rows, columns, size;
    double *value, *grad; /* grad: NULL without a gradient */
    int maker;            /* the line that makes it; -1: none */
    int readers, parts;   /* how many lines read it, and how many parts its gradient has */
    struct Part **part;   /* these, in the order of backward: from the last line to the first */
} TapeTensor;

typedef struct {
    int64_t j;
    double J;
} Derivative; /* J[j, i], not 0 */

/* The derivatives of y by x, column by column: those of x[i] are of[begin[i]] to
 * of[begin[i + 1] - 1], by j. */
typedef struct {
    int64_t *begin;
    Derivative *of;
} Jacobian;

/* What the backward of a line adds to the gradient of one input: an arrow. */
typedef struct Part {
    int line, k;          /* the line, and its input */
    int x, y;             /* tensors: the input, the result */
    int number;           /* which part of x's gradient, from 0 */
    const double *dx;     /* of x's size */
    const char **reasons; /* why no y changes with x[i]; NULL where one does */
    double worst;         /* the largest error of a check; NaN stays */
    int64_t unchecked;    /* derivatives that differences cannot check */
    Jacobian by, right;   /* by its backward; the same, unless a reader has planted another rule */
    Jacobian rows;        /* right, row by row: those of y[j], whose j is the element of x */
    const Json *planted;  /* that rule, as the lesson has it; NULL: none */
    Tree *tree;           /* its rule; NULL: none is known */
    bool moves;           /* each number of y is a number of x at another place */
    bool is_odd;          /* a planted rule that is not linear in dy: `by` says nothing about dx */
    bool copies;          /* x was broadcast */
    double factor;        /* of a softmax: what the op multiplies the scores by; else 0 */
    const struct Part *own; /* of its line alone: itself, but in a fold */
} Part;

/* y[p, n, m] = sum over k of a[p, n, k] b[p, k, m], or b[p, m, k] if b is flipped, and inputs that
 * are added. b can have one panel for all p. */
typedef struct {
    bool is_one;
    int a, b;     /* inputs of the line; a < b */
    bool flipped; /* y = a b' */
} Product;

typedef struct {
    int k;
    int64_t i;
} Source; /* element i of input k */

typedef struct {
    const Json *json;
    int number; /* in the program's tape */
    int num_in, out;
    int *in; /* tensors, -1: none */
    int num_parts;
    Part *parts;         /* of the inputs with a gradient */
    Source *moves;       /* of each element of the result, if backward only moves; else NULL */
    Source *right_moves; /* the same, if forward only moves */
    Tree *tree;          /* what the line computes; NULL: it is not known */
    Product product;
} RuledLine;

typedef struct {
    Piece *memory;
    int num_tensors, num_lines;
    TapeTensor *tensors;
    RuledLine *lines;
} RuledTape;

/* Reads the "tape" of a lesson, which check_tape has checked, and its "planted" rules. False and an
 * error without memory; the caller calls rules_free also then. The strings stay in the JSON. */
bool rules_read(RuledTape *tape, const Json *lesson);
void rules_free(RuledTape *tape);

/* In place of p: the derivatives of the last result by p's input, through a line that has only the
 * part `next`, which reads p's result. p->line becomes that line. False and an error without
 * memory. */
bool rules_compose(RuledTape *tape, Part *p, const Part *next);
/* How many of its inputs are tensors. */
int num_inputs(const RuledLine *line);
/* Has a reader planted a rule here that is wrong? */
bool is_wrong_rule(const Json *planted);
/* Is input k a factor of the line's product? */
bool is_factor(const RuledLine *line, int k);
/* Is each number of the gradient made from those in its own place alone, once? */
bool goes_by_numbers(const Part *part);
bool is_near(double a, double b);
bool is_float32(const TapeTensor *x);
Dims dims_of(const TapeTensor *x);

/* The sum of the terms dy[j] J[j, i]; *size: of their absolute values. */
double sum_of_terms(const double *dy, const Jacobian *by, int64_t i, double *size);

#endif
