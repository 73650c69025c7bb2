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

int64_t draw_from(Tensor *scores, double temperature, int64_t top_k) {
    Tensor *p = ag_softmax(ag_scale(only_top(scores, top_k), 1 / temperature), 0); /* (V) */
    Tensor *chosen = p ? tape_own(tensor_multinomial(p, 1, false)) : NULL;         /* (1) */
    return chosen ? (int64_t)tensor_item(chosen) : -1;
}
