/* draw.h - draws an index with probabilities from scores. */
#ifndef TAPEHEAD_EXAMPLES_DRAW_H
#define TAPEHEAD_EXAMPLES_DRAW_H

#include "../../autograd/autograd.h"

/* Draws i with probability p_i, p = softmax(scores / temperature) over the top_k largest scores, or
 * over all scores if top_k is 0. Scores equal to the smallest of these are included. scores:
 * (V), on the open tape. Draws from the generator. -1 and an error on failure. */
int64_t draw_from(Tensor *scores, double temperature, int64_t top_k);

#endif
