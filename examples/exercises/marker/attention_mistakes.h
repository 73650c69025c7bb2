/* attention_mistakes.h - the wrong backwards of attention that 11 attention, 14 flash and each head
 * of 12 self-attention have in common. */
#ifndef TAPEHEAD_EXERCISES_ATTENTION_MISTAKES_H
#define TAPEHEAD_EXERCISES_ATTENTION_MISTAKES_H

#include "exercise.h"

extern const KnownMistake attention_mistakes_shared[];

/* The whole backward with one of these changes; 0 changes nothing. y is the result of forward with
 * it, or NULL. */
void attention_changed(int change, int Q, int K, int D, double dq[Q][D], double dk[K][D],
                       double dv[K][D], double *y, const double q[Q][D], const double k[K][D],
                       const double v[K][D], const double dy[Q][D]);

#endif
