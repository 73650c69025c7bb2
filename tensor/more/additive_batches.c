/* additive_batches.c - additive attention of whole tensors: a kernel for each row of the scores,
 * and one for the gradients of a batch, which gets large batches in blocks.
 *
 * B batch, Q queries, K keys, H hidden units. */
#include "additive_batches.h"

#include "../parts.h"

#include <string.h>

/* The stride from the lengths of one batch to the lengths of the next. */
static int64_t lengths_step(const Tensor *lengths) {
    return lengths->shape.dim[0] == 1 ? 0 : lengths->stride[0];
}

/* A number, or the start of an array, for each row (B, Q, 1): a view of x without a reference. */
static Tensor start_of_rows(const Tensor *x, Shape rows, int64_t batch, int64_t query) {
    Tensor view = {.shape = rows, .dtype = x->dtype, .data = x->data};
    view.stride[0] = batch;
    view.stride[1] = query;
    return view;
}

void tensor_additive_forward(const Tensor *y, const Tensor *q, const Tensor *k, const Tensor *w,
                             const Tensor *lengths) {
    const int64_t Q = q->shape.dim[1], K = k->shape.dim[1], H = k->shape.dim[2];
    const Shape rows = SHAPE(q->shape.dim[0], Q, 1);
    const Tensor q0 = start_of_rows(q, rows, Q * H, H), k0 = start_of_rows(k, rows, K * H, 0);
    const Tensor w0 = start_of_rows(w, rows, 0, 0);
    const Tensor lengths0 = start_of_rows(lengths, rows, lengths_step(lengths), 1);
    const Tensor *const operand[] = {y, &q0, &k0, &w0, &lengths0};
    tensor_loop_costly_rows(tensor_more_kernels()->additive[y->dtype], 2, 5, operand, (double)H,
                            8 * (double)H);
}

typedef struct {
    AdditiveDx *kernel;
    AdditiveBatch first; /* batch 0; the others follow it */
    int64_t size;        /* bytes of an element */
    int64_t lengths;     /* the stride from the lengths of one batch to the lengths of the next */
    double *workspace;   /* each doubles for each worker; NULL: the kernel gets whole batches */
    int64_t each;
} AdditiveBatches;

/* The kernel adds in float32: to dw once for each query with each key. Of a larger batch it gets
 * SIDE queries and SIDE keys at a time, and the sums of the blocks are added in double. */
enum { SIDE = 22 };
_Static_assert(SIDE *SIDE <= CHAIN, "a longer chain of additions loses digits");

/* total += part, and part = 0 */
static void collect(int64_t n, double *total, float *part) {
    const int64_t index = 0, stride[] = {1, 1, 0};
    void *const data[] = {total, part, (void *)(uintptr_t)&index};
    tensor_kernels()->scatter_add_double[F32](n, data, stride, 0);
    memset(part, 0, (size_t)n * sizeof *part);
}

/* Writes the sums and clears them. */
static void store_sums(int64_t n, void *to, double *total) {
    tensor_kernels()->convert[F32][F64](n, (void *[]){to, total}, 0);
    memset(total, 0, (size_t)n * sizeof *total);
}

/* The doubles of a workspace: the sums dk (K, H), dq (SIDE, H), dw (H), and, as floats, those of a
 * block and its dy. */
static int64_t additive_workspace(int64_t K, int64_t H) {
    return (K + SIDE + 1) * H + (2 * SIDE + 1) * H + SIDE * SIDE;
}

static void additive_blocks(AdditiveDx *kernel, const AdditiveBatch *a, double *workspace) {
    const int64_t H = a->H;
    double *dk = workspace;
    double *dq = dk + a->K * H;
    double *dw = dq + SIDE * H;
    float *part_q = (float *)(dw + H);
    float *part_k = part_q + SIDE * H;
    float *part_w = part_k + SIDE * H;
    float *dy = part_w + H;
    int64_t length[SIDE];
    memset(workspace, 0, (size_t)additive_workspace(a->K, H) * sizeof *workspace);
    for (int64_t i = 0; i < a->Q; i += SIDE) {
        const int64_t queries = MIN(SIDE, a->Q - i);
        for (int64_t j = 0; j < a->K; j += SIDE) {
            const int64_t keys = MIN(SIDE, a->K - j);
            for (int64_t q = 0; q < queries; q++) {
                length[q] = a->length[i + q] - j;
                memcpy(dy + q * keys, (const float *)a->dy + (i + q) * a->K + j,
                       (size_t)keys * sizeof *dy);
            }
            kernel(&(AdditiveBatch){queries, keys, H, (const float *)a->q + i * H,
                                    (const float *)a->k + j * H, a->w, length, dy, part_q, part_k,
                                    part_w});
            collect(queries * H, dq, part_q);
            collect(keys * H, dk + j * H, part_k);
            collect(H, dw, part_w);
        }
        store_sums(queries * H, (float *)a->dq + i * H, dq);
    }
    store_sums(a->K * H, a->dk, dk);
    store_sums(H, a->dw, dw);
}

static void additive_part(int worker, int64_t from, int64_t to, void *context) {
    const AdditiveBatches *all = context;
    const AdditiveBatch *a = &all->first;
    for (int64_t b = from; b < to; b++) {
        const int64_t q = b * a->Q * a->H * all->size, k = b * a->K * a->H * all->size;
        AdditiveBatch batch = *a;
        batch.q = (const char *)a->q + q;
        batch.k = (const char *)a->k + k;
        batch.length = a->length + b * all->lengths;
        batch.dy = (const char *)a->dy + b * a->Q * a->K * all->size;
        batch.dq = (char *)a->dq + q;
        batch.dk = (char *)a->dk + k;
        batch.dw = (char *)a->dw + b * a->H * all->size;
        if (!all->workspace) all->kernel(&batch);
        else additive_blocks(all->kernel, &batch, all->workspace + worker * all->each);
    }
}

void tensor_additive_backward(Tensor *const dx[3], const Tensor *dy, const Tensor *q,
                              const Tensor *k, const Tensor *w, const Tensor *lengths) {
    const int64_t B = q->shape.dim[0], Q = q->shape.dim[1], K = k->shape.dim[1];
    const int64_t H = k->shape.dim[2];
    AdditiveBatches all = {.kernel = tensor_more_kernels()->additive_dx[q->dtype],
                           .first = {Q, K, H, q->data, k->data, w->data, lengths->data, dy->data,
                                     dx[0]->data, dx[1]->data, dx[2]->data},
                           .size = dtype_size(q->dtype),
                           .lengths = lengths_step(lengths),
                           .each = additive_workspace(K, H)};
    if (tensor_numel(dy) == 0) return;
    const int workers = tensor_workers_for(16 * (double)tensor_numel(dy) * (double)H);
    const int64_t bytes = workers * all.each * (int64_t)sizeof(double);
    const bool in_blocks = q->dtype == F32 && Q * K > CHAIN;
    if (in_blocks) all.workspace = tensor_cache_alloc(bytes);
    if (!in_blocks || all.workspace) tensor_work_in_parts(workers, B, additive_part, &all);
    if (in_blocks) tensor_cache_free(all.workspace, bytes);
}
