/* card.h - the last step of a lesson: the gradients that a reader writes from memory, in the
 * language of rules. rule_card.h judges them. */
#ifndef TAPEHEAD_EXAMPLES_CARD_H
#define TAPEHEAD_EXAMPLES_CARD_H

#include "../steps/formula.h"

enum { CARD_WHY = 240 };

/* A gradient, and the lines that it comes back through: "S = Q K'", or several, with commas. why:
 * what its formula says, without the formula. */
typedef struct {
    int tensor;
    char name[NAME_TEXT], forward[FORMULA_TEXT], why[CARD_WHY];
} CardTask;

/* Task n of the lesson's "card", a list of tensors; false after the last one. */
bool card_task(Plan *plan, int n, CardTask *task);

#endif
