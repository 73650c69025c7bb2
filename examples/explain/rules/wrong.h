/* wrong.h - known mistakes (../common/mistakes.h) in the backward of the lines of a tape.
 *
 *     Tensor *loss = ...;                       the forward pass on an open tape
 *     wrong_apply(wrong_find("softmax"), &planting);   its softmax has a wrong backward now
 *     ag_backward(loss);
 *
 * The values stay right, and the gradients that pass through the changed lines are wrong. A mistake
 * is planted as a formula (rule_plant.h), as a reader can plant others; only "assign" is wrong
 * outside of every op, and no formula. */
#ifndef TAPEHEAD_EXAMPLES_WRONG_H
#define TAPEHEAD_EXAMPLES_WRONG_H

#include "rule_plant.h"

#include "../../common/mistakes.h"

enum { WRONG_TEXT = 320 };

/* The mistake with this key or id, "softmax" or "no_sum"; NULL if there is none. */
const MistakeRow *wrong_find(const char *key);
const char *wrong_key(const MistakeRow *m);
/* "softmax without its sum", or the id */
const char *wrong_title(const MistakeRow *m);
/* "y * dy, without the sum over the row", and "y * (dy - sum(y * dy))" */
void wrong_says(const MistakeRow *m, char text[WRONG_TEXT]);
const char *wrong_right(const MistakeRow *m);

/* Plants the mistake in the lines of the open tape whose gradients it changes, until the tape ends.
 * A mistake is all rows with its id. Returns the number of gradients. */
int wrong_apply(const MistakeRow *m, Planting *planting);
/* Is a mistake planted in this line, and not only rules that a reader wrote? */
bool wrong_is_planted(const Planting *planting, int line);

/* Writes ,"rules":[{"key":...,"title":...,"wrong":...,"right":...,
 * "formulas":["A: y * dy"]}, ...]: what of the menu changes a gradient of the open tape, and the
 * mistake in use, or NULL. The formulas are the same as rules for rule_plant; assign has none. */
void wrong_write(FILE *file, const MistakeRow *used, const Planting *planting);

#endif
