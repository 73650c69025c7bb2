/* additive_scores.c - the scores of additive attention, w tanh(q + k) for every query with every
 * key, in one pass. The features tanh(q + k) are H times as large as the scores: backward
 * recomputes them instead of saving them. Keys at or past the valid length are skipped: forward
 * sets their scores to 0, backward takes their dy as 0.
 *
 * B batch, Q queries, K keys, H hidden units. */
#include "../../tensor/more/additive_batches.h"
#include "../op.h"

static bool check_shapes(Shape q, Shape k, Shape w) {
    if (q.ndim == 3 && k.ndim == 3 && q.dim[0] == k.dim[0] && q.dim[2] == k.dim[2] &&
        shape_equal(w, SHAPE(1, q.dim[2])))
        return true;
    return tensor_fail("additive_scores: q is %s, k is %s and w is %s: they must be (B, Q, H), (B, "
                       "K, H) and (1, H)",
                       tensor_shape_text(q), tensor_shape_text(k), tensor_shape_text(w));
}

OP_TEXT(additive_scores) = {
    .call = "ag_additive_scores(q, k, w, valid_lens)",
    .shapes = "(B, Q, H), (B, K, H), (1, H), (B) or (B, Q) or NULL -> (B, Q, K)",
    .value = "w tanh(q + k) for every query with every key, 0 for keys at or past valid_lens",
    .gradient = "g = dy w (1 - tanh^2): dq = g summed over the keys, dk = g summed over the "
                "queries, dw = dy tanh summed over all",
    .source = "Bahdanau et al. 2015",
};

/* saved: how many keys each query may attend to. */
static Tensor *additive_scores_forward(Node *n) {
    const Tensor *q = n->in[0];
    const Tensor *k = n->in[1];
    const Tensor *w = n->in[2];
    if (!check_shapes(q->shape, k->shape, w->shape)) return NULL;
    const Shape scores = SHAPE(q->shape.dim[0], q->shape.dim[1], k->shape.dim[1]);
    const Shape one_head = SHAPE(scores.dim[0], 1, scores.dim[1], scores.dim[2]);
    n->saved[0] = ag_mask_lengths(n, 3, false, one_head);
    Tensor *y = n->saved[0] ? tensor_make(scores, q->dtype) : NULL;
    if (y) tensor_additive_forward(y, q, k, w, n->saved[0]);
    return y;
}

/* dx[2] has a row for each batch: ag_node_vjp (backward.c) sums the rows. */
static void additive_scores_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const Tensor *q = n->in[0];
    const Tensor *k = n->in[1];
    const Tensor *w = n->in[2];
    Tensor *dense = tensor_contiguous(dy);
    for (int i = 0; i < 2; i++) dx[i] = tensor_make_zeros(n->in[i]->shape, q->dtype);
    dx[2] = tensor_make_zeros(SHAPE(q->shape.dim[0], 1, w->shape.dim[1]), q->dtype);
    if (!tensor_pending()) tensor_additive_backward(dx, dense, q, k, w, n->saved[0]);
    tensor_release(dense);
}

DEFINE_OP(additive_scores,
          .in = {{"q", FLOAT}, {"k", FLOAT}, {"w", FLOAT}, {"valid_lens", INT64 | OPTIONAL}},
          .forward = additive_scores_forward, .backward = additive_scores_backward,
          .reads = READS_IN0 | READS_IN1 | READS_IN2, .grad_fn = "SqueezeBackward1");

Tensor *ag_additive_scores(Tensor *q, Tensor *k, Tensor *w, const Tensor *valid_lens) {
    Tensor *x[7] = {q, k, w};
    ag_mask_inputs((AttentionMask){.valid_lens = valid_lens}, x + 3);
    for (int i = 0; i < 3; i++) /* what is NULL or was let go is refused by its name */
        if (x[i] && !x[i]->let_go && !tensor_is_contiguous(x[i]))
            x[i] = ag_check_ready("additive_scores", x[i]) ? ag_contiguous(x[i]) : NULL;
    return ag_apply(&ag_op_additive_scores, 4, x, &(Attributes){0});
}
