/* gradcheck.h - what difference quotients say about a derivative, for ag_gradcheck and for the
 * check of a line (more/inspect.c). */
#ifndef TAPEHEAD_GRADCHECK_H
#define TAPEHEAD_GRADCHECK_H

#include <math.h>
#include <stdbool.h>

/* What difference quotients of several steps say about a derivative. Begin with NO_QUOTIENTS, and
 * add the steps in increasing order. */
typedef struct {
    double best, doubt; /* the derivative lies between best - doubt and best + doubt */
    double last, noise; /* the quotient of the step before, and its rounding error */
    double largest;     /* of the quotients so far, without signs */
    bool full;          /* larger steps tell no more */
} Quotients;
#define NO_QUOTIENTS ((Quotients){.doubt = HUGE_VAL, .best = (double)NAN, .last = (double)NAN})

/* Half the distance of the two points of difference k, for a number x: 0 after the last one. The
 * usual step is number 0; it grows slowly with x, because softmax is as curved at -1e6, a score
 * that programs use to mask a key, as at 0. The others grow from a fraction of `first` to a
 * fraction of x. */
double ag_difference_step(double x, double first, int k);
void ag_quotient_add(Quotients *q, double quotient, double noise);
/* Can the quotients not tell whether this derivative is right? */
bool ag_quotients_cannot_tell(const Quotients *q, double derivative);

/* The slopes of f on both sides of a point: left from x - h to x, right from x to x + h. */
typedef struct {
    double left, right, noise; /* the rounding error of their difference */
} Slopes;
enum { AG_KINK_STEPS = 32 }; /* how much larger the second of two steps is */
/* Is the point a kink: do the slopes differ, and as much for the smaller step as for the larger
 * one? Where f is smooth, their difference is h f'', so it shrinks with the step. */
bool ag_is_kink(Slopes smaller, Slopes larger);

#endif
