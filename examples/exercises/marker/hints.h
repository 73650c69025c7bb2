/* hints.h - what can be said about a wrong output that no listed mistake explains. */
#ifndef TAPEHEAD_EXERCISES_HINTS_H
#define TAPEHEAD_EXERCISES_HINTS_H

#include "trial.h"

/* Appends what holds on all inputs in which this output has no NaN: that it is right to so many
 * digits, up to its sign or a factor, but for tiny numbers or large arrays, the last of its terms
 * alone, transposed, shifted by one, or that it does not double when dy doubles; where it is NaN,
 * and by what; or that the function gives two results for one input, or a number near 0 where it
 * must be exactly 0. `here` is the call that is shown. */
void hints_output(const Exercise *e, const Trial *trial, const Calls *right, int array, int here,
                  char *text, size_t size);

/* Appends the terms of element i of an output: each dy times the element of the Jacobian. Of a step
 * of SGD, the numbers of its formula. */
void hints_terms(const Exercise *e, const Calls *given, const Calls *right, int call, int array,
                 int64_t i, char *text, size_t size);

#endif
