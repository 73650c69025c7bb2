/* rule.h - the backward of a line, written as a formula: "A * (dA - sum(A * dA))".
 *
 *     RuleFormula formula;
 *     if (rule_parse(&formula, "y * (dy - sum(y * dy))", &scope))
 *         dx = rule_fit(&formula, rule_evaluate(&formula, &values), x, false);
 *     if (*formula.complaint) ...
 *
 * The language is in rule_help. The signs that bind first: ' and ^, then - before a value, then
 * * / @, which may be left out, then + -, then >; those that bind as tightly go from left to right.
 * ' of a vector makes a column of it.
 *
 * It is evaluated by the library's ops. */
#ifndef TAPEHEAD_EXAMPLES_RULE_H
#define TAPEHEAD_EXAMPLES_RULE_H

#include "../../../nn/nn.h"

enum { RULE_NODES = 256, RULE_NAMES = 320, RULE_NAME = 40, RULE_DEPTH = 32, RULE_TEXT = 1000 };

/* What a name stands for. NAMES_REFUSED: for something that this formula must not read. */
typedef enum {
    NAMES_DY,
    NAMES_OUT,
    NAMES_INPUT,
    NAMES_TENSOR,
    NAMES_GRADIENT,
    NAMES_NUMBER,
    NAMES_REFUSED
} RuleMeaning;
typedef struct {
    char name[RULE_NAME];
    RuleMeaning meaning;
    int input;       /* NAMES_INPUT: which */
    double number;   /* NAMES_NUMBER */
    Tensor *tensor;  /* NAMES_TENSOR; NAMES_GRADIENT: whose gradient */
    const char *why; /* NAMES_REFUSED: "dS " and this is the complaint */
} RuleName;
/* The names of a line. */
typedef struct {
    int n;
    int own;         /* the first ones, which a complaint lists */
    int lesson;      /* of these the first ones: the lesson's names of the line's tensors */
    bool may_define; /* a formula may begin with "z = ...;", and read z behind it */
    RuleName names[RULE_NAMES];
} RuleScope;

/* A part of a formula: a sign, its operands, and its text, from begin to end. */
typedef struct {
    char sign;                /* + - * / @ ' > ^; ~ is -x, # a number, f a function, n a name, M max
                               * of two; = a part with a name, whose text begins with the name */
    short a, b;               /* nodes; b: of a sign with two operands */
    short begin, end, column; /* column: of the sign, from 1 */
    int function;             /* of f: which */
    int name;                 /* of n: which of the scope */
    double number;            /* of # */
    RuleName value;           /* of n */
} RuleNode;

typedef struct {
    const char *text; /* the caller's */
    int n;            /* node n - 1 is the whole formula */
    RuleNode nodes[RULE_NODES];
    int column;          /* of the complaint */
    char complaint[320]; /* "" unless something is wrong with the formula */
} RuleFormula;

/* False, with a complaint, if the text is no formula. */
bool rule_parse(RuleFormula *formula, const char *text, const RuleScope *scope);

/* What the names stand for now: the gradient of the result, the result, the inputs. Of the
 * gradients that come before this one those that are given, else those that backward has made. */
typedef struct {
    const Tensor *of;
    Tensor *gradient;
} RuleGiven;
typedef struct {
    Tensor *dy, *out;
    Tensor *const *in;
    const RuleGiven *given;
    int num_given;
} RuleValues;

/* The value of the formula in dy's type, a loan of the open tape. NULL with a complaint if shapes
 * do not fit, with an error if memory is out, and where dy is NULL because of one. */
Tensor *rule_evaluate(RuleFormula *formula, const RuleValues *values);
/* The value as a gradient of x, in x's type, in x's shape or in one that x broadcasts to; a loan.
 * moves: if it has another shape, but as many numbers, they are taken row by row. NULL as above,
 * and for NULL.
 */
Tensor *rule_fit(RuleFormula *formula, Tensor *value, const Tensor *x, bool moves);

/* The same in x's shape alone. NULL as above, and with a complaint about any other shape. */
Tensor *rule_fit_whole(RuleFormula *formula, Tensor *value, const Tensor *x);

/* A row of a short help of the language: "a @ b", "the product of matrices". */
typedef struct {
    const char *text, *says;
} RuleHelp;
extern const RuleHelp rule_help[];
extern const int rule_num_help;

/* For rule_parse.c and rule_eval.c. */
__attribute__((format(printf, 3, 4))) void *rule_complain(RuleFormula *formula, int column,
                                                          const char *format, ...);
/* "sum", ... by number; NULL after the last one. And what it does: "adds up each row". */
const char *rule_function(int i), *rule_function_does(int i);
/* Adds a name, unless it is there already, is "", or has no room. */
void rule_add_name(RuleScope *scope, const char *name, RuleName means);
void rule_add_number(RuleScope *scope, const char *name, double number);
/* The name of exactly these n characters; NULL if there is none. */
const RuleName *rule_find_name(const RuleScope *scope, const char *word, size_t n);
/* "b" of "ag_matmul(a, b)" for k = 1; "" if there is none. */
void rule_argument(const char *call, int k, char argument[RULE_NAME]);
/* Can this name stand in a formula as it is? S / sqrt(d) cannot, since x / S / sqrt(d) would be
 * another formula; d(S / sqrt(d)) can, since its brackets hold it together. */
bool rule_can_stand(const char *name);

#endif
