/* attention.c - softmax(scale Q K' + window) V without the matrix of Q x K weights in memory, and
 * masked_softmax, whose masks it shares.
 *
 * A row of weights belongs to one query and needs no other, so the rows are made in blocks: scores,
 * mask and softmax, dropout, the product with the values, and the block is forgotten. The backward
 * pass makes each block again from q and k, and draws dropout's numbers again. So memory grows with
 * the lengths and not with their product. (Dao et al. 2022, FlashAttention, who split the keys
 * too.)
 *
 * B batch, H heads, Q queries, K keys; R <= BLOCK rows in a block. */
#include "../internal.h"

enum { BLOCK = 64 };

/* ---- matrices on the stack, for kernels ---------------------------------------------------- */

/* Rows from .. from + rows of matrix i of x, (..., N, L) of at most 4 dimensions. */
static Tensor matrix(const Tensor *x, int64_t i, int64_t from, int64_t rows) {
    const int n = x->shape.ndim - 2;
    const int64_t H = n == 2 ? x->shape.dim[1] : 1;
    int64_t offset = from * x->stride[n];
    if (n == 2) offset += i / H * x->stride[0] + i % H * x->stride[1];
    else if (n == 1) offset += i * x->stride[0];
    Tensor view = {.shape = SHAPE(rows, x->shape.dim[n + 1]),
                   .stride = {x->stride[n], x->stride[n + 1]},
                   .dtype = x->dtype,
                   .data = (char *)x->data + offset * dtype_size(x->dtype)};
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
    add_elements(sum, part);
}

/* ---- masks --------------------------------------------------------------------------------- */

/* I64, (B, H, Q, K) of one number per row: causal and lens, (B), (B, Q) or NULL, are both a number
 * of keys. */
static Tensor *row_lengths(const Tensor *lens, bool causal, Shape scores) {
    const int64_t B = scores.dim[0], Q = scores.dim[2], K = scores.dim[3];
    const int64_t *given = lens ? lens->data : &K;
    const int64_t step_b = lens ? lens->stride[0] : 0;
    const int64_t step_q = lens && lens->shape.ndim == 2 ? lens->stride[1] : 0;
    Tensor *rows = tensor_make(SHAPE(B, 1, Q, 1), I64);
    int64_t *length = rows ? rows->data : NULL;
    for (int64_t b = 0; length && b < B; b++)
        for (int64_t q = 0; q < Q; q++, length++) {
            *length = given[b * step_b + q * step_q];
            if (causal && *length > q + 1) *length = q + 1;
        }
    Tensor *wide = rows ? view_expand(rows, scores) : NULL;
    tensor_release(rows);
    return wide;
}

bool mask_open(Mask *mask, const Tensor *const part[3], bool causal, Shape scores) {
    *mask = (Mask){.scores = scores, .window = part[2]};
    mask->lengths = row_lengths(part[0], causal, scores);
    mask->keep = part[1] ? view_expand(part[1], scores) : NULL;
    return !tensor_pending();
}

void mask_close(Mask *mask) {
    tensor_release(mask->lengths);
    tensor_release(mask->keep);
}

/* y = softmax(scale x + window) where the mask allows, of rows from .. of head i of B H; (R, K)
 * both, they may be the same. */
static void masked_rows(const Mask *mask, const Tensor *y, const Tensor *x, int64_t i, int64_t from,
                        double scale) {
    bool yes = true;
    double zero = 0; /* its bits are 0 in both float types */
    const int64_t rows = y->shape.dim[0], b = i / mask->scores.dim[1];
    const Tensor lengths = matrix(mask->lengths, i, from, rows), *w = mask->window;
    Tensor keep = {.dtype = BOOL, .data = &yes}, window = {.dtype = y->dtype, .data = &zero};
    if (mask->keep) keep = matrix(mask->keep, i, from, rows);
    if (w) window = matrix(w, b % w->shape.dim[0], from, rows);
    loop_rows(kernels()->masked_softmax[y->dtype], 5,
              (const Tensor *[]){y, x, &lengths, &keep, &window}, scale);
}

void masked_softmax(const Mask *mask, const Tensor *y, const Tensor *x, double scale) {
    const int64_t heads = mask->scores.dim[0] * mask->scores.dim[1], Q = mask->scores.dim[2];
    for (int64_t i = 0; i < heads; i++) {
        const Tensor x_head = matrix(x, i, 0, Q), y_head = matrix(y, i, 0, Q);
        masked_rows(mask, &y_head, &x_head, i, 0, scale);
    }
}

/* ---- a pass -------------------------------------------------------------------------------- */

/* What both passes go through the blocks with. */
typedef struct {
    const AttentionOperands *of;
    int64_t heads, Q, K;    /* heads: B H */
    Tensor *weights, *kept; /* of a block: (R, K), and what dropout keeps of them */
} Pass;

static int64_t rows_at(const Pass *pass, int64_t from) {
    return pass->Q - from < BLOCK ? pass->Q - from : BLOCK;
}

/* False with an error; pass_close it in any case. */
static bool pass_open(Pass *pass, const AttentionOperands *a) {
    const Shape s = a->mask.scores;
    *pass = (Pass){.of = a, .heads = s.dim[0] * s.dim[1], .Q = s.dim[2], .K = s.dim[3]};
    const Shape block = SHAPE(rows_at(pass, 0), pass->K);
    pass->weights = tensor_make(block, a->q->dtype);
    /* p = 1 keeps nothing and draws nothing */
    pass->kept = a->dropout > 0 ? make_zeros(block, BOOL) : NULL;
    return !tensor_pending();
}

static void pass_close(Pass *pass) {
    tensor_release(pass->weights);
    tensor_release(pass->kept);
}

/* The weights of a block, before dropout, and dropout's draws for it, in the order of the rows. */
static Tensor block_weights(const Pass *pass, int64_t i, int64_t from) {
    const AttentionOperands *a = pass->of;
    const int64_t rows = rows_at(pass, from);
    const Tensor q = matrix(a->q, i, from, rows), k = matrix(a->k, i, 0, pass->K);
    const Tensor weights = matrix(pass->weights, 0, 0, rows);
    multiply_nt(&weights, &q, &k);
    masked_rows(&a->mask, &weights, &weights, i, from, a->scale);
    if (a->dropout > 0 && a->dropout < 1)
        draw_bools(a->generator, rows * pass->K, pass->kept->data, 1 - a->dropout);
    return weights;
}

/* What dropout leaves of x, (R, K), in place. */
static void drop(const Pass *pass, const Tensor *x) {
    if (!pass->kept) return;
    const Tensor kept = matrix(pass->kept, 0, 0, x->shape.dim[0]);
    loop_elements(kernels()->dropout[x->dtype], 3, (const Tensor *[]){x, x, &kept},
                  1 - pass->of->dropout);
}

/* ---- forward: y = dropout(weights) v, block by block ----------------------------------------- */

void attention_forward(const AttentionOperands *a, const Tensor *y) {
    Pass pass;
    const bool open = pass_open(&pass, a);
    for (int64_t i = 0; open && i < pass.heads; i++)
        for (int64_t from = 0; from < pass.Q; from += BLOCK) {
            const Tensor weights = block_weights(&pass, i, from);
            const Tensor values = matrix(a->v, i, 0, pass.K);
            const Tensor rows = matrix(y, i, from, weights.shape.dim[0]);
            drop(&pass, &weights);
            matmul_into(&rows, &weights, &values);
        }
    pass_close(&pass);
}

/* ---- backward ------------------------------------------------------------------------------ */

/* room: (R, K), and for what a block adds to dk and to dv.
 *
 * P weights, P~ = dropout(P):  dP = dropout's backward of dy v',  dS = scale P (dP - sum(P dP)),
 * dq = dS k,  dk += dS' q,  dv += P~' dy */
static void block_backward(const Pass *pass, const Tensor *dy, Tensor *const *dx,
                           Tensor *const *room, int64_t i, int64_t from) {
    const AttentionOperands *a = pass->of;
    const Tensor P = block_weights(pass, i, from);
    const int64_t rows = P.shape.dim[0], K = pass->K;
    const Tensor q = matrix(a->q, i, from, rows), k = matrix(a->k, i, 0, K),
                 v = matrix(a->v, i, 0, K), dy_rows = matrix(dy, i, from, rows),
                 dq = matrix(dx[0], i, from, rows), dk = matrix(dx[1], i, 0, K),
                 dv = matrix(dx[2], i, 0, K), dS = matrix(room[0], 0, 0, rows);
    multiply_nt(&dS, &dy_rows, &v);
    drop(pass, &dS);
    loop_rows(kernels()->masked_softmax_dx[dS.dtype], 3, (const Tensor *[]){&dS, &P, &dS},
              a->scale);
    matmul_into(&dq, &dS, &k);
    add_product_tn(&dk, room[1], &dS, &q);
    drop(pass, &P);
    add_product_tn(&dv, room[2], &P, &dy_rows);
}

void attention_backward(const AttentionOperands *a, const Tensor *dy, Tensor *const dx[3]) {
    Pass pass;
    Tensor *room[3] = {NULL};
    const bool open = pass_open(&pass, a);
    for (int i = 0; open && i < 3; i++) {
        const Shape s = i == 0 ? pass.weights->shape : dx[i]->shape;
        room[i] = tensor_make(SHAPE(s.dim[s.ndim - 2], s.dim[s.ndim - 1]), dy->dtype);
    }
    for (int64_t i = 0; !tensor_pending() && i < pass.heads; i++)
        for (int64_t from = 0; from < pass.Q; from += BLOCK)
            block_backward(&pass, dy, dx, room, i, from);
    for (int i = 0; i < 3; i++) tensor_release(room[i]);
    pass_close(&pass);
}
