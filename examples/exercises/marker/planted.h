/* planted.h - the student's functions as ops: forward is the library's, backward the student's,
 * through ag_call. An op whose function the student has not written is the library's. */
#ifndef TAPEHEAD_EXERCISES_PLANTED_H
#define TAPEHEAD_EXERCISES_PLANTED_H

#include "../../../nn/nn.h"
#include "trial.h"

/* Compiles the functions that planted ops use, and says which there are. */
void planted_begin(const Place *place);
bool planted_is_yours(int number); /* of an exercise */
void planted_end(void);

/* The ops; each returns a loan of the tape, as those of autograd.h do. */
Tensor *planted_product(Tensor *a, Tensor *b);             /* 3: (B, n, k), (B, k, m) */
Tensor *planted_linear(Tensor *x, Tensor *w, Tensor *b);   /* 7: (rows, in); b may be NULL */
Tensor *planted_additive(Tensor *q, Tensor *k, Tensor *w); /* 10: (B, Q, H), (B, K, H), (1, H) */
/* 5: scores (B, Q, K); a key at or past valid_lens (B) is masked */
Tensor *planted_weights(Tensor *scores, double scale, Tensor *valid_lens);
/* 9: (N, C), targets (N); the mean over the targets that are not negative; all others are equal to
 * `ignored` */
Tensor *planted_cross_entropy(Tensor *logits, Tensor *targets, int64_t ignored);

/* 13: a step for one parameter. False and an error if the function does not return. */
bool planted_sgd(Tensor *theta, double lr, double momentum, double *velocity);

#endif
