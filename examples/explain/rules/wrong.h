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

/* The mistake with this key or id, "softmax" or "no_sum"; NULL if there is none. */
const MistakeRow *wrong_find(const char *key);
const char *wrong_key(const MistakeRow *m);

/* Plants the mistake in the lines of the open tape whose gradients it changes, until the tape ends.
 * A mistake is all rows with its id. Returns the number of gradients. */
int wrong_apply(const MistakeRow *m, Planting *planting);
/* Is "assign" planted in this line? */
bool wrong_assigns(const Planting *planting, int line);

#endif
