/* wrong.h - wrong rules: common mistakes in a backward, for the lines of a tape.
 *
 *     Tensor *loss = ...;                       the forward pass on an open tape
 *     wrong_apply(wrong_find("softmax"), &planting);   its softmax has a wrong backward now
 *     ag_backward(loss);
 *
 * The values stay right, and the gradients that pass through the changed lines are wrong. */
#ifndef TAPEHEAD_EXAMPLES_WRONG_H
#define TAPEHEAD_EXAMPLES_WRONG_H

#include "rule_plant.h"

typedef struct WrongRule WrongRule;

/* The rule with this key; NULL if there is none. */
const WrongRule *wrong_find(const char *key);
const char *wrong_key(const WrongRule *rule);
/* "softmax without its sum", "dx = y dy", "dx = y (dy - sum(y dy))" */
const char *wrong_title(const WrongRule *rule), *wrong_formula(const WrongRule *rule);
const char *wrong_right_formula(const WrongRule *rule);

/* Does the rule change this line of the open tape? */
bool wrong_concerns(const WrongRule *rule, int line);

/* Gives a wrong backward to the lines of the open tape that the rule concerns, until the tape ends.
 * Returns the number of these lines. */
int wrong_apply(const WrongRule *rule, Planting *planting);

/* Writes ,"rules":[{"key":...,"title":...,"wrong":...,"right":...,
 * "formulas":["A: y * dy"]}, ...]: the rules that change a line of the open tape. The formulas are
 * the same as rules for rule_plant; assign has none. */
void wrong_write(FILE *file);

#endif
