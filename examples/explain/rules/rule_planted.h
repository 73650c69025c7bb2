/* rule_planted.h - what rule_plant.c, rule_names.c and rule_judge.c share. */
#ifndef TAPEHEAD_EXAMPLES_RULE_PLANTED_H
#define TAPEHEAD_EXAMPLES_RULE_PLANTED_H

#include "rule_plant.h"

#include "../../common/mistakes.h"

enum { PLANTED_INPUTS = 7 }; /* as many as ag_call takes */

typedef struct {
    int input;
    char name[RULE_NAME];
    RuleFormula formula;
    Tensor *kept;  /* a name of the formula, or NULL */
    bool is_typed; /* by a reader: rule_plant */
    bool is_right;
    const MistakeRow *mistake;                   /* NULL: none that is known */
    char computes[320], why[400], question[320]; /* or "" */
} PlantedRule;

/* The rules of a line, by input. */
struct PlantedLine {
    int number;
    bool moves;                         /* it only moves numbers */
    unsigned assigned;                  /* rule_plant_assign */
    PlantedRule *rules[PLANTED_INPUTS]; /* or NULL */
    PlantedLine *next;
};

/* Where a gradient comes from: input k of a line; turned: of a product a b', where b' is only this
 * tensor, transposed, and whose op is then the one that linear has, x w'. Else NULL. */
typedef struct {
    int line, k;
    Tensor *turned;
} PlantedUse;

/* Registers the hook of the line's rules; the hooks of all lines, or none: then each line has its
 * own backward. */
bool planted_hook_on(PlantedLine *line);
bool planted_hook_all(const Planting *planting, bool on);

/* rule_judge.c: of numbers, an element of a random kind: from -1.5 to -0.5 and from 0.5 to 1.5, by
 * a generator of its own. The tensor is new. */
Tensor *planted_draw_like(const Tensor *x, uint64_t *state, double factor);
/* The gradient of x by a formula, as doubles; false with a complaint, or an error. */
bool planted_compute(RuleFormula *f, const RuleValues *values, const Tensor *x, bool moves,
                     double *numbers);
/* Is each of n numbers a factor times that of b, but for rounding? NaN is NaN. */
bool planted_same(const double *a, const double *b, double factor, int64_t n, double tolerance);
/* The formula of a row of mistakes.def for a use; NULL if it has none. */
const char *planted_formula_of(const MistakeRow *m, const PlantedUse *use);
/* Does a formula read other gradients than the one that arrives? */
bool planted_reads_others(const RuleFormula *f);
/* rule_plant.c: the formula of "A: y * dy", whose name becomes `name`; NULL and an error. */
const char *planted_split(const char *rule, char name[RULE_NAME]);
/* rule_plant.c: the tensor of "dA" or "d(S / sqrt(d))"; NULL if there is none. */
Tensor *planted_tensor_of(const Planting *planting, const char *gradient);
/* rule_plant.c: the planted line i; NULL if there is none. */
PlantedLine *planted_line(const Planting *planting, int i);
/* Does this name lead to input k of line i? */
bool planted_leads_to(const Planting *planting, const char *name, int i, int k);
/* rule_box.c: a name that leads to input k of line i, "A", "Y.dV", "Y.db"; the last one may lead
 * nowhere. */
void planted_name(const Planting *planting, int i, int k, char name[3 * RULE_NAME]);
/* "dA" or "d(S / sqrt(d))", the gradient of input k; "db", as in the op's call, for a name with
 * blanks. */
void planted_gradient(const TapeLine *line, int k, char text[RULE_NAME]);
/* Does input k of the line get a gradient? */
bool planted_has_gradient(const TapeLine *line, int k);

/* rule_names.c: does an op only move numbers? */
bool planted_moves(const char *op);
/* The first inputs; line->in itself is valid until the next op only. */
void planted_inputs(const TapeLine *line, Tensor *in[PLANTED_INPUTS]);
/* "a" of "ag_matmul(a, b)": the name of input k in the op's call; "" if it has none. */
void planted_argument(const TapeLine *line, int k, char argument[RULE_NAME]);
/* The names of line i. *kept: becomes a tensor that the caller releases, where the line has one. x:
 * whose whole gradient is written, or NULL. False with an error if memory is out. */
bool planted_scope(const Planting *planting, int i, const Tensor *x, Tensor **kept,
                   RuleScope *scope);
/* A text of a mistake with the lesson's names: "This is dZ, ..." x: as above. */
void planted_say(const Planting *planting, const PlantedUse *use, const Tensor *x, const char *text,
                 char said[320]);
/* A formula of mistakes.def with the lesson's names: "A * (dA - sum(A * dA))". */
void planted_say_formula(const Planting *planting, const PlantedUse *use, const Tensor *x,
                         const char *formula, char said[320]);
/* Only the names of the op's call, y, dy, and the op's numbers, for mistakes.def. */
bool planted_scope_of_op(const PlantedUse *use, Tensor **kept, RuleScope *scope);
/* The op of mistakes.def. */
const char *planted_op(const PlantedUse *use);

#endif
