/* plan.h - the steps of a lesson or of any tape: a step is one arrow of the page's picture.
 *
 * The cover, a step for each line forward, the start (dloss = 1), and then backward: a step for
 * each part that a line adds to the gradient of an input, and, where it is not the first part of
 * that gradient, a step that adds it. At the end of a lesson, which can be trained, the numbers
 * that learn take a step. Steps are named by line and input:
 *
 *     0       the cover                    b3.0    backward of line 3 to its input 0
 *     f3      line 3 forward               a3.0    the addition after b3.0
 *     s       the start                    twice   backward again, and zeroing (loop.h)
 *                                          sgd     the step that the gradients are for (sgd.h)
 *                                          card    what is written from memory (card.h)
 *
 * Lines that follow each other and only move numbers are a group, and so are the lines that the
 * lesson folds ("loss"). A group is shown as one step, or, if a reader has opened it, as the steps
 * of its lines; the plan has both. A folded step has the name of its last line forward, of its
 * first line backward, and the derivatives of all its lines, multiplied.
 *
 * Key steps are those with a bet or a question, both ends, and those that are new (known.h). */
#ifndef TAPEHEAD_EXAMPLES_PLAN_H
#define TAPEHEAD_EXAMPLES_PLAN_H

#include "../rules/rules.h"

enum { MANY_STEPS = 20 };

typedef enum {
    STEP_COVER,
    STEP_FORWARD,
    STEP_START,
    STEP_BACKWARD,
    STEP_ADD,
    STEP_TWICE,
    STEP_SGD,
    STEP_CARD
} StepPhase;

/* Lines that are one arrow: a line, or a folded group. */
typedef struct {
    int first, last;
    int group;        /* its number; -1: none */
    const char *name; /* of a folded group, "" of moves; NULL for a line */
    Source *moves;    /* from the inputs of the first line; NULL if backward is no move */
    int num_parts;
    Part *parts;
} Unit;

typedef struct {
    StepPhase phase;
    char name[32];
    bool moves;            /* forward or backward, it only moves numbers */
    int unit;              /* -1: no arrow, but the cover, or what follows backward */
    int tensor;            /* whose value or gradient it makes; -1: no arrow */
    Part *part;            /* backward, addition; NULL elsewhere */
    Tree *product;         /* of a move that turns a product over: both in one; else NULL */
    const double *numbers; /* that it makes, as many as the tensor has; NULL: no arrow */
    const char *text;      /* of the lesson; NULL: none */
    int64_t look;          /* the element that is worked out: the lesson's, or the largest */
    bool is_said;          /* it is the lesson's */
    bool has_own_text;     /* text is what the lesson says at this name */
    bool is_key;           /* it is shown where only the key steps are */
    const char *as; /* "2/b4.1": that of an earlier lesson has the same rule; NULL: none has */
} Step;

typedef struct {
    RuledTape tape;
    const Json *lesson;
    int num_units, num_steps, num_groups;
    bool is_long; /* more than MANY_STEPS are shown, folded: a reader begins with the key steps */
    Unit *units;
    Step *steps;
} Plan;

/* lesson: its "tape" was checked by check_tape. False and an error without memory; the caller calls
 * plan_free also then. The strings stay in the JSON. */
bool plan_make(Plan *plan, const Json *lesson);
void plan_free(Plan *plan);

/* Is the step shown where all groups are folded, or all are open? */
bool plan_shows(const Plan *plan, const Step *step, bool open);
/* The step with this name; else a step that its line is part of, in the same direction. -1 if there
 * is none. */
int plan_find(const Plan *plan, const char *name, bool open);

/* The line of a unit that makes this tensor; -1: none does. */
int plan_line_in(const Plan *plan, const Unit *unit, int tensor);

/* The sum of the first n parts of a gradient, in its type, as backward adds them. NULL and an error
 * without memory. */
const double *sum_of_parts(Plan *plan, int tensor, int n);

#endif
