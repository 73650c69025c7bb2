/* rows.h - the trees of a tape's lines: each is a row of mistakes.def, or a reader's rule, if its
 * numbers are those of the tape. So an op of one's own that has a name of the library, but not its
 * backward, has none. */
#ifndef TAPEHEAD_EXAMPLES_ROWS_H
#define TAPEHEAD_EXAMPLES_ROWS_H

#include "rules.h"

/* Sets line->tree and the tree of each part; where no row fits they stay NULL. False and an error
 * without memory: a page with fewer rules would be another page. */
bool rows_of_line(RuledTape *tape, RuledLine *line);
/* p->tree becomes p's rule followed by that of the part `next`, which reads p's result; NULL if
 * they are none together. False and an error without memory. */
bool rows_compose(RuledTape *tape, Part *p, const Part *next);

#endif
