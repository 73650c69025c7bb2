/* rows.h - the trees of a tape's lines: each is a row of mistakes.def, or a reader's rule, if its
 * numbers are those of the tape. So an op of one's own that has a name of the library, but not its
 * backward, has none. */
#ifndef TAPEHEAD_EXAMPLES_ROWS_H
#define TAPEHEAD_EXAMPLES_ROWS_H

#include "rules.h"

/* Sets line->tree and the tree of each part; NULL where no row fits. */
void rows_of_line(RuledTape *tape, RuledLine *line);
/* The rule of p, followed by that of the part `next`, which reads p's result; NULL if they are none
 * together. */
Tree *rows_compose(RuledTape *tape, const Part *p, const Part *next);

#endif
