/* reasons.h - why a number is 0. The tape gives the reason of each column of a Jacobian that is 0;
 * a sum can be 0 because nothing arrives, or because its terms cancel. */
#ifndef TAPEHEAD_EXAMPLES_REASONS_H
#define TAPEHEAD_EXAMPLES_REASONS_H

#include "plan.h"

/* The reasons of the tape: its name there, what a cell of a terminal shows, and words. */
typedef struct {
    const char *name, *mark, *words;
} Reason;
enum { REASONS = 7 };
extern const Reason reasons[REASONS];
/* The number of a reason of the tape, Part.reasons[i]; REASONS: it is none. */
int number_of_reason(const char *name);

enum { REASON_TEXT = 400 };
/* Each is only asked where the number is 0; "" if nothing is known. */
void reason_of_part(const Plan *plan, const Part *part, int64_t i, char text[REASON_TEXT]);
void reason_of_value(const Plan *plan, int tensor, int64_t j, char text[REASON_TEXT]);
/* Of the sum of the first n parts; complete: these are all, and the sum is the gradient. */
void reason_of_sum(const Plan *plan, const Part *const *parts, int n, bool complete, int64_t i,
                   char text[REASON_TEXT]);

#endif
