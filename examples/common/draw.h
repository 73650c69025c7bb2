/* draw.h - from scores to a choice. */
#ifndef TAPEHEAD_EXAMPLES_DRAW_H
#define TAPEHEAD_EXAMPLES_DRAW_H

#include "../../autograd/autograd.h"

/* Draws i with probability p_i, p = softmax(scores / temperature) over the top_k largest scores, or
 * over all if top_k is 0; scores as large as the last of these take part as well. scores: (V), on
 * the open tape. One number is drawn from the generator. -1 with an error pending. */
int64_t draw_from(Tensor *scores, double temperature, int64_t top_k);

#endif
