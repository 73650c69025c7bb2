/* known.h - which rule a step has, whatever its tables are called, and where it was shown first. A
 * step of a lesson is known if an earlier lesson has a step of the same rule and role.
 *
 *     b $ = $' $            backward: a product, its first factor turned over
 *     b $ = $' $ each       the same in several tables at once, one for each head
 *     f $ = $ $' weight     forward: a product with a weight, for each word
 *
 * A $ stands for a name, a # for a number. */
#ifndef TAPEHEAD_EXAMPLES_KNOWN_H
#define TAPEHEAD_EXAMPLES_KNOWN_H

#include "formula.h"

enum { KNOWN_TEXT = 160 };

/* The rule of a step with this title. */
void known_rule(const Plan *plan, const Step *step, const char *title, char rule[KNOWN_TEXT]);
/* Sets where each step is known from, and makes those key steps that are new: the first of a rule
 * that no earlier lesson has, unless it only moves numbers. False and an error without memory. */
bool known_mark(Plan *plan);

#endif
