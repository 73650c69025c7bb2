/* foreseen.h - numbers that a reader may take for the answer to a question, and why each is none: a
 * term of the sum left out, the minus signs lost, what arrives, the number beside it. All are
 * computed from the tape, so they are those of any seed. Left out is what is as good as the answer,
 * or as another one. */
#ifndef TAPEHEAD_EXAMPLES_FORESEEN_H
#define TAPEHEAD_EXAMPLES_FORESEEN_H

#include "tell.h"

enum { MOST_FORESEEN = 3 };

/* Write ,"wrong":[{"value":0.31,"why":"..."}], or nothing. The answer is element `index` of x or of
 * its gradient; or how many numbers of its line's result that element of the step's input reaches.
 */
void foreseen_write_number(Lesson *l, Step at, const Tensor *x, bool is_grad, int64_t index);
void foreseen_write_count(Lesson *l, Step at, int64_t index);

#endif
