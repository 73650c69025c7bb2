/* attention_heads.h - fused attention of whole tensors, for autograd/more/fused_attention.c. */
#ifndef TAPEHEAD_TENSOR_ATTENTION_HEADS_H
#define TAPEHEAD_TENSOR_ATTENTION_HEADS_H

#include "../operations/operations.h"
#include "more_kernels.h"

/* dropout(softmax(scale q k' + window + bias)) v where the mask allows: q (B, H, Q, D), k (B, G,
 * K, D), v (B, G, K, Dv), G divides H, or all without H and G, as if both were 1. */
typedef struct {
    const Tensor *q, *k, *v;
    Tensor *y;
    Mask mask;
    double scale, dropout;
    const Tensor *stats; /* (B H, 2, Q), F64: for each query the largest score, and 1 / the
                          * sum of exp(score - largest), 0 if all keys are masked */
    bool *drawn;         /* (B H, Q, K): what dropout keeps; NULL if states is used */
    Generator *states;   /* (B H): the generator before each head's draws; NULL if drawn is used */
} AttentionOperands;

Shape tensor_attention_scores(const Tensor *q, const Tensor *k); /* (B, H, Q, K) */
/* A new tensor with the shape of x, but with the last size of `last`. The result has the layout of
 * x: if x is a view of (B, N, H, D), the result is such a view, and no copy is needed to join
 * its heads. */
Tensor *tensor_attention_result(const Tensor *x, const Tensor *last);
/* How many bytes are stored for each head so that backward knows what dropout kept: the size of
 * `drawn`, or of `states` if that is smaller. Stored bools are not drawn again, which is faster
 * for short sequences. */
int64_t tensor_attention_draw_bytes(Shape scores);
/* As if this many words of 32 bits had been drawn. */
void tensor_generator_skip(Generator *g, int64_t words);
/* Writes drawn or states, and moves the generator past the draws of all heads. */
void tensor_attention_draw(const AttentionOperands *a, Generator *generator);
/* Forward writes y and stats; backward reads them, and writes the gradients dx of q, k and v, and
 * dbias, (B, H, Q, K), zeros before; or NULL. */
void tensor_attention_forward(const AttentionOperands *a);
void tensor_attention_backward(const AttentionOperands *a, const Tensor *dy, Tensor *const dx[3],
                               Tensor *dbias);

#endif
