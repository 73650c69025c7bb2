/* composed_attention.c - ag_attention composed of other ops, for the core alone. A
 * library with autograd/more/ has fused_attention.c in this file's place, which computes the same
 * without the Q x K weights in memory. */
#include "../op.h"

#include <math.h>

Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    if (!ag_check_ready("attention", q)) return NULL;
    const int last = q->shape.ndim - 1;
    const double scale = last < 0 ? 1 : 1 / sqrt((double)q->shape.dim[last]);
    Tensor *scores = ag_matmul(q, ag_transpose(k, -2, -1));
    Tensor *weights = ag_dropout(ag_attention_weights(scores, scale, mask, 1), dropout);
    return ag_matmul(weights, v);
}
