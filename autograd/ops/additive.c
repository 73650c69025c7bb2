/* additive.c - the scores of additive attention, w tanh(q + k) for every query with every key, in
 * one pass: the features, tanh(q + k), are as many times the scores as there are hidden units, and
 * are made again on the way back instead of being kept. Keys at or past the valid length are passed
 * over: forward their scores, backward what arrives there, are 0, which costs next to nothing.
 *
 * B batch, Q queries, K keys, H hidden units. */
#include "../op.h"

static bool inputs_fit(Shape q, Shape k, Shape w) {
    if (q.ndim == 3 && k.ndim == 3 && q.dim[0] == k.dim[0] && q.dim[2] == k.dim[2] &&
        shape_equal(w, SHAPE(1, q.dim[2])))
        return true;
    return tensor_fail("additive_scores: q is %s, k is %s and w is %s: they must be (B, Q, H), (B, "
                       "K, H) and (1, H)",
                       tensor_shape_text(q), tensor_shape_text(k), tensor_shape_text(w));
}

/* x, whose elements are dense, in another shape with these strides: a view for kernels alone. */
static Tensor seen(const Tensor *x, Shape shape, int64_t s0, int64_t s1, int64_t s2) {
    return (Tensor){.shape = shape, .stride = {s0, s1, s2}, .dtype = x->dtype, .data = x->data};
}

/* x, of the scores' shape or a number, where the key is before the valid length, else 0: (B, Q, K),
 * dense. */
static Tensor *cut_to_lengths(const Node *n, const Tensor *x) {
    const Shape q = n->in[0]->shape, s = SHAPE(q.dim[0], q.dim[1], n->in[1]->shape.dim[1]);
    Tensor *y = n->saved[0] ? tensor_make(s, x->dtype) : NULL;
    if (!y) return NULL;
    const Tensor lengths = seen(n->saved[0], s, s.dim[1], 1, 0);
    loop_rows(kernels()->cut[x->dtype], 3, (const Tensor *[]){y, x, &lengths}, 1);
    return y;
}

/* y = sum over the hidden units of w tanh(q + k) before the valid lengths, which are saved, else 0:
 * the kernel finds a 1 where it is to score, and a 0 where not. */
Tensor *ag_additive_scores_forward(Node *n) {
    const Tensor *q = n->in[0], *k = n->in[1], *w = n->in[2];
    if (!inputs_fit(q->shape, k->shape, w->shape)) return NULL;
    const int64_t Q = q->shape.dim[1], K = k->shape.dim[1], H = k->shape.dim[2];
    Mask mask; /* in[3], of scores of one head */
    if (ag_mask_open(&mask, n, 3, SHAPE(q->shape.dim[0], 1, Q, K)))
        n->saved[0] = tensor_retain(mask.lengths);
    mask_close(&mask);
    void *const one = q->dtype == F32 ? (void *)&(float){1} : &(double){1};
    Tensor *y = cut_to_lengths(n, &(Tensor){.dtype = q->dtype, .data = one});
    if (!y) return NULL;
    const Tensor queries = seen(q, y->shape, Q * H, H, 0), keys = seen(k, y->shape, K * H, 0, H);
    const Tensor weights = seen(w, y->shape, 0, 0, 0);
    loop_columns(kernels()->additive[y->dtype], 4, (const Tensor *[]){y, &queries, &keys, &weights},
                 (double)H, 8 * (double)H);
    return y;
}

/* With f = tanh(q + k) and g = dy w (1 - f^2):  dq = g summed over the keys,  dk = g summed over
 * the queries,  dw = dy f summed over both, for each batch: the engine adds those up. */
void ag_additive_scores_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    const Tensor *q = n->in[0], *k = n->in[1], *w = n->in[2];
    const int64_t Q = q->shape.dim[1], K = k->shape.dim[1], H = k->shape.dim[2];
    const Shape s = SHAPE(q->shape.dim[0], H);
    Tensor *dense = cut_to_lengths(n, dy);
    for (int i = 0; i < 2; i++) dx[i] = make_zeros(n->in[i]->shape, q->dtype);
    dx[2] = make_zeros(SHAPE(s.dim[0], 1, H), q->dtype);
    if (!tensor_pending()) {
        const Tensor x[] = {
            seen(dx[1], s, K * H, 1, 0), seen(dx[0], s, Q * H, 1, 0),
            seen(dx[2], s, H, 1, 0),     seen(q, s, Q * H, 1, 0),
            seen(k, s, K * H, 1, 0),     seen(w, s, 0, 1, 0),
            seen(dense, s, Q * K, 0, 0), {.dtype = I64, .data = (int64_t[]){Q, K, H}}};
        loop_columns(kernels()->additive_dx[q->dtype], 8,
                     (const Tensor *[]){x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7}, 0,
                     16 * (double)(Q * K));
    }
    tensor_release(dense);
}

/* The passes want q, k and w dense, which they nearly always are. */
Tensor *ag_additive_scores(Tensor *q, Tensor *k, Tensor *w, const Tensor *valid_lens) {
    Tensor *x[] = {q, k, w, (Tensor *)(uintptr_t)valid_lens};
    for (int i = 0; i < 3; i++)
        if (x[i] && !tensor_is_contiguous(x[i])) x[i] = ag_contiguous(x[i]);
    return ag_apply(&op_additive_scores, 4, x, &(Attributes){0});
}
