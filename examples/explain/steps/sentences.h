/* sentences.h - what is said of a step: a sentence for one without a text of the lesson, and what
 * its check found. */
#ifndef TAPEHEAD_EXAMPLES_SENTENCES_H
#define TAPEHEAD_EXAMPLES_SENTENCES_H

#include "formula.h"
#include "nudge.h"

enum { SENTENCE_TEXT = 900 };

/* It holds no number. */
void sentence_of(const Plan *plan, const Step *step, char text[SENTENCE_TEXT]);

/* Beside a nudge of the step (nudge.h); a softmax has two looks, from 1 on. "" if it has none. */
enum { MOST_LOOKS = 2 };
void sentence_of_look(const Plan *plan, const Step *step, int look, char text[SENTENCE_TEXT]);

/* How the rule of element i comes about, in lines; none where there is nothing to show. */
void algebra_of(Plan *plan, const Step *step, int64_t i, Algebra *algebra);

typedef enum { CHECK_NONE, CHECK_RIGHT, CHECK_UNCHECKED, CHECK_WRONG } Check;

/* Of a rule of backward, by difference quotients; of the gradient that a step completes, that all
 * its terms sum to it. words: "checked by difference quotients, largest error 2e-11"; passes_on:
 * the step is right, but its numbers come from a wrong rule above. */
Check check_of_step(const Plan *plan, const Step *step, char words[160], bool *passes_on);

#endif
