/* calls.h - the calls on which an exercise is marked.
 *
 * For each input of the exercise there is a call for every one-hot dy, whose results are the
 * Jacobian, one row each; then calls with a dense dy, since a backward that squares dy is right on
 * one-hot dy's; then one with twice that dy. Inputs whose sizes are all equal come first, since
 * some mistakes show only there.
 *
 * The last inputs are for an array of a fixed size and for small numbers that are taken as 0. One
 * size after the other is a prime that is larger than arrays usually are; weights go from 0.9 to
 * 9e-9, each a tenth of the one before; and a dy is tiny. Where a size is large, or dy tiny, there
 * is a lone call with a dense dy. */
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

/* A size that is larger than arrays usually are; and one for a square matrix of weights. */
enum { LARGE = 263, LARGE_SQUARE = 131 };
/* 1e-7: a number that is small, but not 0. */
#define TINY 1e-7
/* 0.9, 0.09, 0.009, ...: the weights whose sum is almost 1. */
double geometric_weight(int i);

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
