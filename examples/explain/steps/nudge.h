/* nudge.h - a number that a line reads is moved a little: what moves with it.
 *
 * Backward says how fast each result changes with the number; the nudge shows the change itself. In
 * a lesson the whole forward pass is run again for it (probe, see live.h). A tape of another
 * program cannot be run again, but the op of one step can. */
#ifndef TAPEHEAD_EXAMPLES_NUDGE_H
#define TAPEHEAD_EXAMPLES_NUDGE_H

#include "algebra.h"
#include "plan.h"

typedef enum { NUDGE_NONE, NUDGE_SOFTMAX, NUDGE_PRODUCT, NUDGE_EACH } NudgeKind;

/* What a step of backward lets a reader nudge, by the line's own rule: a planted one predicts. */
NudgeKind nudge_of(const Plan *plan, const Step *step);

enum { NUDGE_NUMBERS = 4096 }; /* at most, of all nudges */

/* The changes that a page without the library shows: of the element that its step looks at, after
 * a nudge of NUDGE_RECORDED. op: the op that computes them, NULL if none does, as of a product,
 * whose derivatives are the numbers of the other factor. changes: NUDGE_NUMBERS; returns how many
 * there are. */
#define NUDGE_RECORDED 0.3
int64_t nudge_recorded(const Plan *plan, const Step *step, const char **op, double *changes);

/* The request "softmax 1 1 -1 1 41 0.5 0.3 0.2": the op, the factor, which number, the first nudge
 * and the last, how many, the numbers. The answer, {"nudge":[[changes], ...]}, is the caller's;
 * NULL and an error if there is none.
 *
 * Behind a row of softmax can stand three lines: the names of dx and of dy, and the numbers of dy.
 * Then the answer has "weights", "rates", how fast each follows the nudge, and "algebra". With the
 * op "equal_scores" or "one_takes_all" the row gets other weights, and "says" what they show. */
char *nudge_answer(char *request);

#endif
