/* draw.c - draws an index with probabilities from scores: see draw.h. */
#include "draw.h"

#include <math.h>

/* scores: (V) -> same, minus infinity for scores that are not among the top_k */
static Tensor *only_top(Tensor *scores, int64_t top_k) {
    const int64_t V = tensor_numel(scores);
    if (!scores || top_k <= 0 || top_k >= V) return scores;
    Tensor *sorted = tensor_sort(scores, NULL);
    Tensor *least = ag_slice(sorted, 0, V - top_k, V - top_k + 1); /* (1) */
    Tensor *top = ag_masked_fill(scores, ag_lt(scores, least), -HUGE_VAL);
    tensor_release(sorted);
    return top;
}

/* The first i for which p_0 + ... + p_i exceeds u, uniform in [0, 1). Except for rounding, there is
 * always such an i, and its p_i is not 0. */
int64_t draw_from(Tensor *scores, double temperature, int64_t top_k) {
    Tensor *p = ag_softmax(ag_scale(only_top(scores, top_k), 1 / temperature), 0); /* (V) */
    Tensor *uniform = tensor_rand(SCALAR);
    double u = tensor_item(uniform);
    int64_t chosen = -1;
    for (int64_t i = 0; !tensor_error() && i < tensor_numel(p) && u >= 0; i++) {
        double p_i = tensor_get(p, i);
        if (p_i > 0) {
            u -= p_i;
            chosen = i;
        }
    }
    if (chosen < 0) tensor_fail("draw_from: the scores are not numbers, or all minus infinity");
    tensor_release(uniform);
    return chosen;
}
