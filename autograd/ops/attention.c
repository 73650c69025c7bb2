/* attention.c - softmax(Q K' / sqrt(D)) V without the matrix of Q x K weights in memory.
 *
 * A row of weights belongs to one query and needs no other, so the rows are made in blocks: scores,
 * mask and softmax, dropout, the product with the values, and the block is forgotten. The backward
 * pass makes each block again from q and k, and draws dropout's numbers again. So memory grows with
 * the lengths and not with their product. (Dao et al. 2022, FlashAttention, who split the keys
 * too.)
 *
 * B batch, H heads, Q queries, K keys; R <= BLOCK rows in a block. */
#include "../op.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 };

/* What both passes go through the blocks with. */
typedef struct {
    const Node *n;
    MaskView mask;
    Tensor q, k, v;         /* seen as the parts of the mask are: (B / W, W, H, Q or K, D or Dv) */
    Generator *generator;   /* of dropout's draws */
    Tensor *weights, *kept; /* of the block: (R, K), and what dropout keeps of them */
} Pass;

/* ---- matrices: views that live on the stack, for kernels alone ----------------------------- */

/* x: (B, H, N, L) or (B, N, L) */
static Tensor seen(const Tensor *x, const MaskView *mask) {
    const Tensor heads = ag_split_heads(x, 1);
    return ag_split_windows(&heads, mask);
}

/* Rows from .. from + rows of x's head number i of B H: (rows, L). */
static Tensor matrix(const Tensor *x, int64_t i, int64_t from, int64_t rows) {
    const int64_t H = x->shape.dim[2], W = x->shape.dim[1];
    const int64_t offset = i / H / W * x->stride[0] + i / H % W * x->stride[1] +
                           i % H * x->stride[2] + from * x->stride[3];
    Tensor view = *x;
    view.shape = SHAPE(rows, x->shape.dim[4]);
    view.stride[0] = x->stride[3];
    view.stride[1] = x->stride[4];
    view.data = (char *)x->data + offset * (int64_t)dtype_size(x->dtype);
    return view;
}

static Tensor first_rows(const Tensor *x, int64_t rows) {
    Tensor view = *x;
    view.shape.dim[0] = rows;
    return view;
}

static Tensor turned(const Tensor *x) {
    Tensor view = *x;
    view.shape = SHAPE(x->shape.dim[1], x->shape.dim[0]);
    view.stride[0] = x->stride[1];
    view.stride[1] = x->stride[0];
    return view;
}

/* sum += a' b, by way of part */
static void add_product_tn(const Tensor *sum, const Tensor *part, const Tensor *a,
                           const Tensor *b) {
    const Tensor at = turned(a);
    matmul_into(part, &at, b);
    loop_elements(kernels()->value[ELEMENTWISE_add][sum->dtype], 3,
                  (const Tensor *[]){sum, sum, part}, 0);
}

/* ---- a pass -------------------------------------------------------------------------------- */

static double dropout_of(const Pass *pass) { return pass->n->at.number; }
static double scale_of(const Pass *pass) { return 1 / sqrt((double)pass->q.shape.dim[4]); }
static int64_t rows_at(const Pass *pass, int64_t from) {
    const int64_t rows = pass->mask.scores.dim[2] - from;
    return rows < BLOCK ? rows : BLOCK;
}

/* False with an error; pass_close it in any case. */
static bool pass_open(Pass *pass, const Node *n) {
    const Tensor q = ag_split_heads(n->in[0], 1), k = ag_split_heads(n->in[1], 1);
    const Shape scores = SHAPE(q.shape.dim[0], q.shape.dim[1], q.shape.dim[2], k.shape.dim[2]);
    *pass = (Pass){.n = n, .generator = generator_current()};
    if (!ag_mask_open(&pass->mask, n, 3, scores)) return false;
    pass->q = seen(n->in[0], &pass->mask);
    pass->k = seen(n->in[1], &pass->mask);
    pass->v = seen(n->in[2], &pass->mask);
    const Shape block = SHAPE(rows_at(pass, 0), scores.dim[3]);
    pass->weights = tensor_make(block, q.dtype);
    pass->kept = n->at.number > 0 ? tensor_make(block, BOOL) : NULL;
    if (pass->kept) tensor_fill(pass->kept, 0); /* p = 1 keeps nothing and draws nothing */
    return !tensor_pending();
}

static void pass_close(Pass *pass) {
    ag_mask_close(&pass->mask);
    tensor_release(pass->weights);
    tensor_release(pass->kept);
}

/* The weights of a block, before dropout, and dropout's draws for it, in the order of the rows. */
static Tensor block_weights(const Pass *pass, int64_t i, int64_t from) {
    const int64_t rows = rows_at(pass, from), K = pass->mask.scores.dim[3];
    const Tensor q = matrix(&pass->q, i, from, rows), k = matrix(&pass->k, i, 0, K);
    const Tensor kt = turned(&k), weights = first_rows(pass->weights, rows);
    const Tensor lengths = matrix(&pass->mask.lengths, i, from, rows);
    const Tensor keep = matrix(&pass->mask.keep, i, from, rows);
    const Tensor window = matrix(&pass->mask.window, i, from, rows);
    matmul_into(&weights, &q, &kt);
    loop_rows(kernels()->masked_softmax[q.dtype], 5,
              (const Tensor *[]){&weights, &weights, &lengths, &keep, &window}, scale_of(pass));
    const double p = dropout_of(pass);
    if (p > 0 && p < 1) draw_bools(pass->generator, rows * K, pass->kept->data, 1 - p);
    return weights;
}

/* y = what dropout leaves of x, both (R, K) */
static void drop(const Pass *pass, const Tensor *y, const Tensor *x) {
    const Tensor kept = first_rows(pass->kept, x->shape.dim[0]);
    loop_elements(kernels()->dropout[x->dtype], 3, (const Tensor *[]){y, x, &kept},
                  1 - dropout_of(pass));
}

static int64_t heads_of(const Pass *pass) {
    return pass->mask.scores.dim[0] * pass->mask.scores.dim[1];
}

/* ---- forward ------------------------------------------------------------------------------- */

/* The sizes before D, and all of them together; D of q and k; K of k and v. */
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
                       tensor_shape_text(v->shape)) != NULL;
}

/* The generator as it stands, for the backward pass. */
static Tensor *generator_saved(void) {
    Tensor *bytes = tensor_make(SHAPE(sizeof(Generator)), BOOL);
    if (bytes) memcpy(bytes->data, generator_current(), sizeof(Generator));
    return bytes;
}

/* y = dropout(weights) v, block by block */
Tensor *ag_attention_forward(Node *n) {
    Pass pass;
    const Tensor *q = n->in[0], *v = n->in[2];
    if (!inputs_fit(q, n->in[1], v)) return NULL;
    Shape shape = q->shape;
    shape.dim[shape.ndim - 1] = v->shape.dim[shape.ndim - 1];
    Tensor *y = tensor_make(shape, q->dtype);
    if (n->at.number > 0) n->saved[0] = generator_saved();
    if (pass_open(&pass, n)) {
        const Tensor out = seen(y, &pass.mask);
        const int64_t Q = pass.mask.scores.dim[2], K = pass.mask.scores.dim[3];
        for (int64_t i = 0; i < heads_of(&pass); i++)
            for (int64_t from = 0; from < Q; from += BLOCK) {
                const Tensor weights = block_weights(&pass, i, from);
                const Tensor values = matrix(&pass.v, i, 0, K);
                const Tensor rows = matrix(&out, i, from, weights.shape.dim[0]);
                if (pass.kept) drop(&pass, &weights, &weights);
                matmul_into(&rows, &weights, &values);
            }
    }
    pass_close(&pass);
    if (!tensor_pending()) return y;
    tensor_release(y);
    return NULL;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* What a block of the backward pass computes with: the gradients, seen as the inputs are, where
 * they are wanted, and room. */
typedef struct {
    Tensor dy, d[3];            /* (B / W, W, H, ., .) */
    Tensor *dropped, *dweights; /* (R, K) */
    Tensor *part[3];            /* of dk and dv, (K, D) and (K, Dv) */
} Gradients;

/* P weights, P~ = dropout(P):  dv += P~' dy,  dP = dropout's backward of dy v',
 * dS = scale P (dP - sum(P dP)),  dq = dS k,  dk += dS' q */
static void block_backward(const Pass *pass, const Gradients *g, int64_t i, int64_t from) {
    const Tensor P = block_weights(pass, i, from);
    const int64_t rows = P.shape.dim[0], K = P.shape.dim[1];
    const Tensor dy = matrix(&g->dy, i, from, rows), dP = first_rows(g->dweights, rows);
    if (ag_needs(pass->n, 2)) {
        const Tensor dropped = first_rows(g->dropped, rows), dv = matrix(&g->d[2], i, 0, K);
        if (pass->kept) drop(pass, &dropped, &P);
        add_product_tn(&dv, g->part[2], pass->kept ? &dropped : &P, &dy);
    }
    if (!ag_needs(pass->n, 0) && !ag_needs(pass->n, 1)) return;
    const Tensor v = matrix(&pass->v, i, 0, K), vt = turned(&v);
    matmul_into(&dP, &dy, &vt);
    if (pass->kept) drop(pass, &dP, &dP);
    loop_rows(kernels()->masked_softmax_dx[dP.dtype], 3, (const Tensor *[]){&dP, &P, &dP},
              scale_of(pass)); /* now dS */
    if (ag_needs(pass->n, 0)) {
        const Tensor k = matrix(&pass->k, i, 0, K), dq = matrix(&g->d[0], i, from, rows);
        matmul_into(&dq, &dP, &k);
    }
    if (ag_needs(pass->n, 1)) {
        const Tensor q = matrix(&pass->q, i, from, rows), dk = matrix(&g->d[1], i, 0, K);
        add_product_tn(&dk, g->part[1], &dP, &q);
    }
}

/* Makes the gradients that are wanted, zeros, and the room. */
static void gradients_open(Gradients *g, const Pass *pass, const Tensor *dy, Tensor **dx) {
    const Node *n = pass->n;
    g->dy = seen(dy, &pass->mask);
    g->dropped = tensor_make(pass->weights->shape, dy->dtype);
    g->dweights = tensor_make(pass->weights->shape, dy->dtype);
    for (int i = 0; i < 3; i++) {
        const Shape s = n->in[i]->shape;
        if (!ag_needs(n, i) || !(dx[i] = tensor_make(s, dy->dtype))) continue;
        tensor_fill(dx[i], 0);
        g->d[i] = seen(dx[i], &pass->mask);
        g->part[i] = tensor_make(SHAPE(s.dim[s.ndim - 2], s.dim[s.ndim - 1]), dy->dtype);
    }
}

void ag_attention_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    Pass pass;
    Gradients g = {0};
    Generator generator; /* dropout draws what it drew in the forward pass */
    if (n->saved[0]) memcpy(&generator, n->saved[0]->data, sizeof generator);
    if (pass_open(&pass, n)) gradients_open(&g, &pass, dy, dx);
    pass.generator = &generator;
    for (int64_t i = 0; !tensor_pending() && i < heads_of(&pass); i++)
        for (int64_t from = 0; from < pass.mask.scores.dim[2]; from += BLOCK)
            block_backward(&pass, &g, i, from);
    Tensor *room[] = {g.dropped, g.dweights, g.part[0], g.part[1], g.part[2]};
    for (int i = 0; i < 5; i++) tensor_release(room[i]);
    pass_close(&pass);
}

Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    if (!(dropout >= 0 && dropout <= 1))
        return tensor_fail("attention: dropout is %g: it must be a probability, from 0 to 1",
                           dropout);
    Tensor *in[] = {q,
                    k,
                    v,
                    (Tensor *)(uintptr_t)mask.valid_lens,
                    (Tensor *)(uintptr_t)mask.keep,
                    (Tensor *)(uintptr_t)mask.window};
    return ag_apply(&op_attention, 6, in, (Attributes){.number = dropout, .causal = mask.causal});
}
