/* hints.h - what can be said about a wrong output that no listed mistake explains. */
#ifndef TAPEHEAD_EXERCISES_HINTS_H
#define TAPEHEAD_EXERCISES_HINTS_H

#include "trial.h"

/* Appends a sentence if this output has NaN in it, if the function gives two results for one input,
 * if the output is right but where it must be exactly 0, almost right, right up to its sign or a
 * factor, the last of its terms alone, transposed, shifted by one, or if it does not double when dy
 * doubles. `here` is the call that is shown. */
void hints_output(const Exercise *e, const Trial *trial, const Calls *right, int array, int here,
                  char *text, size_t size);

/* Appends the terms of element i of an output: each dy times the element of the Jacobian. Of a step
 * of SGD, the numbers of its formula. */
void hints_terms(const Exercise *e, const Calls *given, const Calls *right, int call, int array,
                 int64_t i, char *text, size_t size);

#endif
