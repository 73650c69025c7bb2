/* attention_heads.c - fused attention of whole tensors: passes the pointers and strides of each
 * head and its mask to a kernel, which never holds the Q x K weights of a head in memory.
 *
 * B batch, H heads, Q queries, K keys, G heads of k and v: each serves H / G heads of q that follow
 * one another, as PyTorch's enable_gqa has them. Ainslie et al. 2023 */
#include "attention_heads.h"

#include "../parts.h"

Shape tensor_attention_scores(const Tensor *q, const Tensor *k) {
    const int n = q->shape.ndim;
    return SHAPE(q->shape.dim[0], n == 4 ? q->shape.dim[1] : 1, q->shape.dim[n - 2],
                 k->shape.dim[n - 2]);
}

Tensor *tensor_attention_result(const Tensor *x, const Tensor *last) {
    const int n = x->shape.ndim;
    Shape s = x->shape;
    s.dim[n - 1] = last->shape.dim[last->shape.ndim - 1];
    if (n < 4 || x->stride[1] >= x->stride[2]) return tensor_make(s, x->dtype);
    Tensor *y = tensor_make(SHAPE(s.dim[0], s.dim[2], s.dim[1], s.dim[3]), x->dtype);
    Tensor *heads = y ? tensor_view_transpose(y, 1, 2) : NULL;
    tensor_release(y);
    return heads;
}

int64_t tensor_attention_draw_bytes(Shape scores) {
    return MIN(scores.dim[2] * scores.dim[3], (int64_t)sizeof(Generator));
}

/* A draw at the end of the state makes the next state, and takes its first word. */
void tensor_generator_skip(Generator *g, int64_t words) {
    float drawn;
    while (words > GENERATOR_WORDS - g->next) {
        words -= GENERATOR_WORDS - g->next + 1;
        g->next = GENERATOR_WORDS;
        tensor_draw_units(g, F32, 1, &drawn);
    }
    g->next += (int)words;
}

void tensor_attention_draw(const AttentionOperands *a, Generator *generator) {
    const Shape s = a->mask.scores;
    const int64_t heads = s.dim[0] * s.dim[1], each = s.dim[2] * s.dim[3];
    if (a->dropout == 1) return; /* keeps nothing and draws nothing */
    if (a->drawn) tensor_draw_bools(generator, heads * each, a->drawn, 1 - a->dropout);
    if (!a->states) return;
    for (int64_t i = 0; i < heads; i++) {
        a->states[i] = *generator;
        tensor_generator_skip(generator, 2 * each);
    }
}

/* Matrix i of x, (B, H, N, L) or (B, N, L), and the stride of its rows. */
static void *matrix_of(const Tensor *x, int64_t i, int64_t *row) {
    const int n = x->shape.ndim - 2;
    const int64_t H = n == 2 ? x->shape.dim[1] : 1;
    const int64_t offset = i / H * x->stride[0] + (n == 2 ? i % H * x->stride[1] : 0);
    *row = x->stride[n];
    return (char *)x->data + offset * dtype_size(x->dtype);
}

/* How many heads of q share a head of k and v. */
static int64_t group_of(const AttentionOperands *a) {
    const bool is_4d = a->k->shape.ndim == 4 && a->k->shape.dim[1] > 0;
    return is_4d ? a->q->shape.dim[1] / a->k->shape.dim[1] : 1;
}

typedef struct {
    const AttentionOperands *of;
    int64_t
        together; /* heads that one worker takes: backward a group, whose sums it adds in order */
    const Tensor *dy; /* NULL forward */
    Tensor *const *dx;
    Tensor *dbias; /* or NULL */
    AttentionKernel *kernel;
    char *workspace;
    int64_t workspace_bytes; /* for each worker */
} Heads;

static AttentionHead head_of(const AttentionOperands *a, int64_t i) {
    const Mask *mask = &a->mask;
    const Shape s = mask->scores;
    const int64_t H = s.dim[1], shared = i / group_of(a);
    AttentionHead head = {.Q = s.dim[2], .K = s.dim[3], .scale = a->scale, .dropout = a->dropout};
    const Tensor lengths = tensor_expanded(mask->lengths, s);
    int64_t unused;
    head.D = a->q->shape.dim[a->q->shape.ndim - 1];
    head.Dv = a->v->shape.dim[a->v->shape.ndim - 1];
    head.q = matrix_of(a->q, i, &head.q_row);
    head.k = matrix_of(a->k, shared, &head.k_row);
    head.v = matrix_of(a->v, shared, &head.v_row);
    head.y = matrix_of(a->y, i, &head.y_row);
    head.length = matrix_of(&lengths, i, &unused);
    head.drawn = a->drawn ? a->drawn + i * head.Q * head.K : NULL;
    head.max = (double *)a->stats->data + 2 * i * head.Q;
    head.inverse = head.max + head.Q;
    if (mask->keep) {
        const Tensor keep = tensor_expanded(mask->keep, s);
        head.keep = matrix_of(&keep, i, &head.keep_row);
        head.keep_column = keep.stride[3];
    }
    if (mask->window) {
        const Tensor *w = mask->window;
        head.window = matrix_of(w, i / H % w->shape.dim[0], &head.window_row);
        head.window_column = w->stride[2];
    }
    if (mask->bias) {
        const Tensor bias = tensor_expanded(mask->bias, s);
        head.bias = matrix_of(&bias, i, &head.bias_row);
        head.bias_column = bias.stride[3];
    }
    return head;
}

/* The generator draws head after head, so the state before the first head is enough. */
static void attention_part(int worker, int64_t from, int64_t to, void *context) {
    const Heads *heads = context;
    const int64_t together = heads->together, group = group_of(heads->of);
    Generator generator;
    if (heads->of->states) generator = heads->of->states[from * together];
    for (int64_t i = from * together; i < to * together; i++) {
        AttentionHead head = head_of(heads->of, i);
        head.generator = heads->of->states ? &generator : NULL;
        if (heads->dy) {
            head.dy = matrix_of(heads->dy, i, &head.dy_row);
            head.dq = matrix_of(heads->dx[0], i, &head.dq_row);
            head.dk = matrix_of(heads->dx[1], i / group, &head.dk_row);
            head.dv = matrix_of(heads->dx[2], i / group, &head.dv_row);
            head.adds = i % group > 0;
            if (heads->dbias) head.dbias = matrix_of(heads->dbias, i, &(int64_t){0});
        }
        heads->kernel(&head, heads->workspace + worker * heads->workspace_bytes);
    }
}

static void attend_all(Heads *heads) {
    const AttentionOperands *a = heads->of;
    const Shape s = a->mask.scores;
    const int64_t n = s.dim[0] * s.dim[1];
    const AttentionHead first = head_of(a, 0);
    const double each = (double)(first.Q * first.K) * (double)(first.D + first.Dv) / 16;
    const int64_t parts = n / heads->together;
    const int workers = (int)MIN(tensor_workers_for((double)n * each), parts);
    heads->workspace_bytes = tensor_more_kernels()->attention_workspace[a->q->dtype](&first);
    heads->workspace = tensor_cache_alloc(workers * heads->workspace_bytes);
    if (heads->workspace) tensor_work_in_parts(workers, parts, attention_part, heads);
    tensor_cache_free(heads->workspace, workers * heads->workspace_bytes);
}

/* If there are no scores, the results are zeros. */
static bool is_without_scores(const AttentionOperands *a, Tensor *const *results, int n) {
    if (tensor_shape_numel(a->mask.scores) > 0) return false;
    for (int i = 0; i < n; i++) tensor_fill_elements(results[i], 0);
    return true;
}

void tensor_attention_forward(const AttentionOperands *a) {
    if (is_without_scores(a, (Tensor *const *)&a->y, 1)) return;
    attend_all(
        &(Heads){.of = a, .together = 1, .kernel = tensor_more_kernels()->attention[a->q->dtype]});
}

void tensor_attention_backward(const AttentionOperands *a, const Tensor *dy, Tensor *const dx[3],
                               Tensor *dbias) {
    if (is_without_scores(a, dx, 3)) return;
    attend_all(&(Heads){a, group_of(a), dy, dx, dbias,
                        .kernel = tensor_more_kernels()->attention_dx[a->q->dtype]});
}
