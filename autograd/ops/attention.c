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
    Mask mask;
    Generator *generator;   /* of dropout's draws */
    Tensor *weights, *kept; /* of the block: (R, K), and what dropout keeps of them */
} Pass;

/* ---- matrices on the stack, for kernels ---------------------------------------------------- */

static Tensor turned(const Tensor *x) {
    Tensor view = *x;
    view.shape = SHAPE(x->shape.dim[1], x->shape.dim[0]);
    view.stride[0] = x->stride[1];
    view.stride[1] = x->stride[0];
    return view;
}

static void multiply_nt(const Tensor *c, const Tensor *a, const Tensor *b) {
    const Tensor bt = turned(b);
    matmul_into(c, a, &bt);
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

static int64_t heads_of(const Pass *pass) {
    return pass->mask.scores.dim[0] * pass->mask.scores.dim[1];
}
static int64_t queries_of(const Pass *pass) { return pass->mask.scores.dim[2]; }
static int64_t rows_at(const Pass *pass, int64_t from) {
    const int64_t rows = queries_of(pass) - from;
    return rows < BLOCK ? rows : BLOCK;
}

/* Head i of q, k or v, from a row on. */
static Tensor input(const Pass *pass, int which, int64_t i, int64_t from, int64_t rows) {
    return ag_matrix(pass->n->in[which], i, from, rows);
}

static double scale_of(const Pass *pass) {
    const Shape q = pass->n->in[0]->shape;
    return 1 / sqrt((double)q.dim[q.ndim - 1]);
}

/* False with an error; pass_close it in any case. */
static bool pass_open(Pass *pass, const Node *n) {
    const Shape q = n->in[0]->shape, k = n->in[1]->shape;
    const bool heads = q.ndim == 4;
    const int64_t K = k.dim[k.ndim - 2];
    *pass = (Pass){.n = n, .generator = generator_current()};
    if (!ag_mask_open(&pass->mask, n, 3,
                      SHAPE(q.dim[0], heads ? q.dim[1] : 1, q.dim[q.ndim - 2], K)))
        return false;
    pass->weights = tensor_make(SHAPE(rows_at(pass, 0), K), n->in[0]->dtype);
    pass->kept = n->at.number > 0 ? tensor_make(SHAPE(rows_at(pass, 0), K), BOOL) : NULL;
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
    const Tensor q = input(pass, 0, i, from, rows), k = input(pass, 1, i, 0, K);
    const Tensor weights = ag_matrix(pass->weights, 0, 0, rows);
    const double p = pass->n->at.number;
    multiply_nt(&weights, &q, &k);
    ag_masked_rows(&pass->mask, &weights, &weights, i, from, scale_of(pass));
    if (p > 0 && p < 1) draw_bools(pass->generator, rows * K, pass->kept->data, 1 - p);
    return weights;
}

/* What dropout leaves of x, (R, K), in place. */
static void drop(const Pass *pass, const Tensor *x) {
    if (!pass->kept) return;
    const Tensor kept = ag_matrix(pass->kept, 0, 0, x->shape.dim[0]);
    loop_elements(kernels()->dropout[x->dtype], 3, (const Tensor *[]){x, x, &kept},
                  1 - pass->n->at.number);
}

/* ---- forward ------------------------------------------------------------------------------- */

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
    if (n->at.number > 0) n->saved[0] = generator_saved();
    Tensor *y = pass_open(&pass, n) ? tensor_make(shape, q->dtype) : NULL;
    for (int64_t i = 0; y && i < heads_of(&pass); i++)
        for (int64_t from = 0; from < queries_of(&pass); from += BLOCK) {
            const Tensor weights = block_weights(&pass, i, from);
            const Tensor values = input(&pass, 2, i, 0, weights.shape.dim[1]);
            const Tensor rows = ag_matrix(y, i, from, weights.shape.dim[0]);
            drop(&pass, &weights);
            matmul_into(&rows, &weights, &values);
        }
    pass_close(&pass);
    return y;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* dx: the gradients of q, k and v. room: (R, K), and for what a block adds to dk and to dv.
 *
 * P weights, P~ = dropout(P):  dP = dropout's backward of dy v',  dS = scale P (dP - sum(P dP)),
 * dq = dS k,  dk += dS' q,  dv += P~' dy */
static void block_backward(const Pass *pass, const Tensor *dy, Tensor *const *dx,
                           Tensor *const *room, int64_t i, int64_t from) {
    const Tensor P = block_weights(pass, i, from);
    const int64_t rows = P.shape.dim[0], K = P.shape.dim[1];
    const Tensor q = input(pass, 0, i, from, rows), k = input(pass, 1, i, 0, K),
                 v = input(pass, 2, i, 0, K), dy_rows = ag_matrix(dy, i, from, rows),
                 dq = ag_matrix(dx[0], i, from, rows), dk = ag_matrix(dx[1], i, 0, K),
                 dv = ag_matrix(dx[2], i, 0, K), dS = ag_matrix(room[0], 0, 0, rows);
    multiply_nt(&dS, &dy_rows, &v);
    drop(pass, &dS);
    loop_rows(kernels()->masked_softmax_dx[dS.dtype], 3, (const Tensor *[]){&dS, &P, &dS},
              scale_of(pass));
    matmul_into(&dq, &dS, &k);
    add_product_tn(&dk, room[1], &dS, &q);
    drop(pass, &P);
    add_product_tn(&dv, room[2], &P, &dy_rows);
}

void ag_attention_backward(const Node *n, const Tensor *dy, Tensor **dx) {
    Pass pass;
    Generator generator; /* dropout draws what it drew in the forward pass */
    Tensor *room[3] = {NULL};
    const bool open = pass_open(&pass, n);
    if (n->saved[0]) memcpy(&generator, n->saved[0]->data, sizeof generator);
    pass.generator = &generator;
    for (int i = 0; open && i < 3; i++) {
        const Shape s = n->in[i]->shape;
        dx[i] = tensor_make(s, dy->dtype);
        if (dx[i]) tensor_fill(dx[i], 0);
        room[i] = tensor_make(
            i == 0 ? pass.weights->shape : SHAPE(s.dim[s.ndim - 2], s.dim[s.ndim - 1]), dy->dtype);
    }
    for (int64_t i = 0; !tensor_pending() && i < heads_of(&pass); i++)
        for (int64_t from = 0; from < queries_of(&pass); from += BLOCK)
            block_backward(&pass, dy, dx, room, i, from);
    for (int i = 0; i < 3; i++) tensor_release(room[i]);
    pass_close(&pass);
}

Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout) {
    if (!(dropout >= 0 && dropout <= 1))
        return tensor_fail("attention: dropout is %g: it must be a probability, from 0 to 1",
                           dropout);
    Tensor *const lens = ag_constant(mask.valid_lens), *const keep = ag_constant(mask.keep);
    Tensor *const in[] = {q, k, v, lens, keep, ag_constant(mask.window)};
    return ag_apply(&op_attention, 6, in, (Attributes){.number = dropout, .causal = mask.causal});
}
