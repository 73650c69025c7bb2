/* reasons.h - why a number is 0. The tape gives the reason of each column of a Jacobian that is 0;
 * a sum can be 0 because nothing arrives, or because its terms cancel; a planted rule can give 0.
 */
#ifndef TAPEHEAD_EXAMPLES_REASONS_H
#define TAPEHEAD_EXAMPLES_REASONS_H

#include "plan.h"

/* The tape's name of a reason, what a cell of a terminal shows, and words. */
typedef struct {
    const char *name, *mark, *words;
} Reason;
enum { MASKED, NOTHING_ARRIVES = 7, TERMS_CANCEL, RULE_GIVES_0, REASONS };
extern const Reason reasons[REASONS];
/* Why dx[i] is 0: the number of its reason. */
int reason_number(const Plan *plan, const Part *part, int64_t i);

enum { REASON_TEXT = 400 };
/* Each is only asked where the number is 0; "" if nothing is known. */
void reason_of_part(const Plan *plan, const Part *part, int64_t i, char text[REASON_TEXT]);
void reason_of_value(const Plan *plan, int tensor, int64_t j, char text[REASON_TEXT]);
/* Of the sum of the first n parts; complete: these are all, and the sum is the gradient. */
void reason_of_sum(const Plan *plan, int tensor, int n, bool complete, int64_t i,
                   char text[REASON_TEXT]);
/* Of the derivative in the place of x[i]. */
void reason_of_derivative(const Plan *plan, const Part *part, int64_t i, char text[REASON_TEXT]);

#endif
