/* composed_attention.c - two ops of attention, composed of others, for the core alone. A library
 * with autograd/more/ has additive_scores.c and fused_attention.c in this file's place, which
 * compute the same in less memory. */
#include "../op.h"

#include <math.h>

/* q: (B, Q, 1, H)  k: (B, 1, K, H)  features: (B, Q, K, H)  scores: (B, Q, K). Every score is
 * computed: the weights of keys at or past valid_lens will be 0. */
Tensor *ag_additive_scores(Tensor *q, Tensor *k, Tensor *w, const Tensor *valid_lens) {
    (void)valid_lens;
    Tensor *features = ag_tanh(ag_add(ag_unsqueeze(q, 2), ag_unsqueeze(k, 1)));
    return ag_squeeze(ag_linear(features, w, NULL), 3);
}

/* k or v: (B, G, K, D) -> (B, H, K, D), a copy for each of the H / G heads of q that share it */
static Tensor *for_heads_of(const Tensor *q, Tensor *k) {
    const bool have_heads = q->shape.ndim == 4 && k && k->shape.ndim == 4 && k->shape.dim[1] > 0;
    const int64_t group = have_heads ? q->shape.dim[1] / k->shape.dim[1] : 1;
    return group > 1 ? ag_repeat_interleave(k, group, 1) : k;
}

/* weights: (B, H, Q, K), or without H */
Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    if (!ag_check_named("attention", "q", q)) return NULL;
    const int last = q->shape.ndim - 1;
    const double scale = last < 0 ? 1 : 1 / sqrt((double)q->shape.dim[last]);
    Tensor *scores = ag_matmul(q, ag_transpose(for_heads_of(q, k), -2, -1));
    Tensor *weights = ag_dropout(ag_attention_weights(scores, scale, mask, 1), dropout);
    return ag_matmul(weights, for_heads_of(q, v));
}
