/* llama.c - writes the tape of one attention as today's models have it, for a page of explain:
 * RMSNorm and rotary positions in both conventions, and two heads of queries that share a head of
 * keys. */
#include "../../autograd/autograd.h"

#include <stdio.h>

static Tensor *leaf(const char *name, Tensor *x) {
    return ag_name(tape_own(ag_requires_grad(x)), name);
}

int main(void) {
    tensor_manual_seed(3);
    tape_begin();
    tape_keep_grads(true);
    Tensor *q = leaf("Q", tensor_randn(SHAPE(2, 3, 4)));
    Tensor *k = leaf("K", tensor_randn(SHAPE(1, 3, 4)));
    Tensor *v = leaf("V", tensor_randn(SHAPE(1, 3, 2)));
    Tensor *w = leaf("w", tensor_randn(SHAPE(4)));
    Tensor *at = ag_name(tape_own(tensor_arange_of(0, 3, 1, I64)), "positions");
    q = ag_name(ag_rms_norm(q, w, 1e-5), "Q normed");
    q = ag_name(ag_rope(q, at, 10000, ROPE_HALVES), "Q turned");
    k = ag_name(ag_rope(k, at, 10000, ROPE_ADJACENT), "K turned");
    Tensor *scores = ag_name(ag_matmul(q, ag_transpose(k, 1, 2)), "S");
    Tensor *weights = ag_name(ag_softmax(ag_scale(scores, 0.5), -1), "A");
    Tensor *y = ag_name(ag_matmul(weights, v), "Y");
    const bool done = ag_backward(ag_name(ag_sum(ag_square(y)), "loss")) && tape_write_json(stdout);
    tape_end();
    if (!done) fprintf(stderr, "llama: %s\n", tensor_error());
    return done ? 0 : 1;
}
