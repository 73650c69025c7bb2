/* attention.c - softmax(Q K' / sqrt(D)) V without the matrix of Q x K weights in memory: what is
 * demanded, and what the backward pass needs. The passes are in tensor/kernels/attention.c. */
#include "../op.h"

#include <math.h>

/* Equal sizes before the last two, one D of q and k, one K of k and v. */
static bool inputs_fit(const Tensor *q, const Tensor *k, const Tensor *v) {
    const int last = q->shape.ndim - 1;
    bool fit = (last == 2 || last == 3) && k->shape.ndim == last + 1 && v->shape.ndim == last + 1;
    for (int d = 0; fit && d < last - 1; d++)
        fit = q->shape.dim[d] == k->shape.dim[d] && k->shape.dim[d] == v->shape.dim[d];
    if (fit && q->shape.dim[last] == k->shape.dim[last] &&
        k->shape.dim[last - 1] == v->shape.dim[last - 1])
        return true;
    return tensor_fail("attention: q is %s, k is %s and v is %s: they must be (B, H, Q, D), (B, H, "
                       "K, D) and (B, H, K, Dv), or all without H",
                       tensor_shape_text(q->shape), tensor_shape_text(k->shape),
                       tensor_shape_text(v->shape));
}

/* What the node computes, for the passes. False with an error; mask_close it in any case. */
static bool attention_open(AttentionOperands *a, const Node *n) {
    const Tensor *q = n->in[0], *k = n->in[1];
    *a = (AttentionOperands){.q = q, .k = k, .v = n->in[2], .stats = n->saved[0]};
    a->scale = 1 / sqrt((double)q->shape.dim[q->shape.ndim - 1]);
    a->dropout = n->at.number;
    a->drawn = n->saved[1] ? n->saved[1]->data : NULL;
    return ag_mask_open(&a->mask, n, 3, attention_scores(q, k));
}

/* y = dropout(weights) v; saved: stats, and what dropout drew */
Tensor *ag_attention_forward(Node *n) {
    AttentionOperands a;
    const Tensor *q = n->in[0], *k = n->in[1], *v = n->in[2];
    if (!inputs_fit(q, k, v)) return NULL;
    const Shape s = attention_scores(q, k);
    n->saved[0] = tensor_make(SHAPE(s.dim[0], s.dim[1], 2, s.dim[2]), q->dtype);
    if (n->at.number > 0) n->saved[1] = tensor_make(SHAPE(attention_memory(s)), BOOL);
    Tensor *y = attention_open(&a, n) ? attention_result(q, v) : NULL;
    if (y) attention_forward(&a, generator_current(), y);
    mask_close(&a.mask);
    return y;
}

/* dv = P' dy,  dq = dS k,  dk = dS' q,  P and dS made again */
void ag_attention_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    AttentionOperands a;
    for (int i = 0; i < 3; i++) dx[i] = attention_result(n->in[i], n->in[i]);
    if (attention_open(&a, n)) a.y = n->out, attention_backward(&a, dy, dx);
    mask_close(&a.mask);
}

Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    if (!(dropout >= 0 && dropout <= 1))
        return tensor_fail("attention: dropout is %g: it must be a probability, from 0 to 1",
                           dropout);
    Tensor *in[6] = {q, k, v};
    ag_mask_inputs(mask, in + 3);
    return ag_apply(&op_attention, 6, in, (Attributes){.number = dropout, .causal = mask.causal});
}
