/* calls.h - the calls on which an exercise is marked.
 *
 * For each input of the exercise there is a call for every one-hot dy, whose results are the
 * Jacobian, one row each; then calls with a dense dy, since a backward that squares dy is right on
 * one-hot dy's; then one with twice that dy. Inputs whose sizes are all equal come first, since
 * some mistakes show only there. */
#ifndef TAPEHEAD_EXERCISES_CALLS_H
#define TAPEHEAD_EXERCISES_CALLS_H

#include "exercise.h"

typedef struct {
    Call *call;
    int n;
} Calls;

struct Random {
    uint64_t state;
};
double random_uniform(Random *random, double low, double high);
/* A number of either sign whose size is at most scale; for scale 0 from 1e-3 to 30. */
double random_number(Random *random, double scale);
bool random_bool(Random *random, double probability);

/* Draws the calls of an exercise. n is 0 if there is no memory. */
Calls calls_draw(const Exercise *e, uint64_t seed);
/* The same calls with outputs of zeros, for somebody else to fill in. */
Calls calls_copy(const Exercise *e, const Calls *calls);
void calls_free(Calls *calls);

/* Fills in the outputs of all calls: by the library; by a mistake's backward, but only where the
 * mistake is decided, since elsewhere it may read and write outside of its arrays. */
void calls_right(const Exercise *e, Calls *calls);
void calls_wrong(const Exercise *e, Calls *calls, const KnownMistake *mistake);
bool mistake_counts(const KnownMistake *mistake, const Call *call);

/* The index of dy among the arrays; -1 if dy is a number or there is none. */
int dy_array(const Exercise *e);

#endif
