/* sgd.h - the step that the gradients are for: each number that learns, minus a rate times its
 * gradient, as nn_sgd_new's step does it. It is the last thing that a lesson shows of its tape.
 *
 * A lesson with options.step shows the tape after so many steps, all taken from the lesson's first
 * numbers, and keeps their losses. */
#ifndef TAPEHEAD_EXAMPLES_SGD_H
#define TAPEHEAD_EXAMPLES_SGD_H

#include "../page/recording.h"
#include "lesson.h"

/* The leaves of the open tape that have a gradient, each once; returns how many. */
int sgd_leaves(Tensor *leaf[MOST_TENSORS]);
/* x -= rate dx for each of them; zeroes: their gradients are let go then. */
void sgd_step(double rate, bool zeroes);
/* Says what the steps did, as the losses tell it, at the step "sgd" (plan.h). */
void sgd_say(Lesson *lesson);
/* Writes ,"sgd":{"rate":0.02,"rates":[0.02,0.2,2],"losses":[4.62,...]}: those of the tapes
 * after 0 to options.step steps; "next":4.34 after one more, if options.step is 0. */
void sgd_write(const Lesson *lesson, FILE *file);

#endif
