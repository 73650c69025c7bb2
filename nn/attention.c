/* attention.c - dot-product, additive and multi-head attention.
 *
 * weights = softmax of the scores over the keys that the mask allows; output = weights times
 * values. There are two ways to score the keys, the inner product of dot-product attention and the
 * small network of additive attention, and one way to pool the values. Multi-head attention is
 * dot-product attention on several projections at once; without .fused the heads become a part of
 * the batch. Everything here calls ops, so there is no backward here.
 *
 * B batch, Q queries, K keys and values, N either of them (or, of what the heads share, B H), D
 * size of a head, H heads (of additive attention: hidden units). */
#include "module.h"

#include <math.h>

/* ---- checks of inputs, for all three ------------------------------------------------------- */

enum { QUERIES, KEYS, VALUES };
static const char *const role[] = {"queries", "keys", "values"};

/* Keys are compared with queries, values with keys. what: "batch sizes" */
static void check_sizes(const char *who, Tensor *const x[], int i, int dim, const char *what) {
    int64_t m = x[i]->shape.dim[dim], n = x[i - 1]->shape.dim[dim];
    if (m != n)
        tensor_fail("%s: %s are %s and %s %s: the %s %lld and %lld must be equal", who, role[i],
                    tensor_shape_text(x[i]->shape), role[i - 1], tensor_shape_text(x[i - 1]->shape),
                    what, (long long)m, (long long)n);
}

static void check_input(const char *who, Tensor *const x[], int i) {
    const DType dtype = x[i]->dtype, wanted = x[QUERIES]->dtype;
    if (x[i]->shape.ndim != 3)
        tensor_fail("%s: %s are %s: they need three dimensions (batch, number, size)", who, role[i],
                    tensor_shape_text(x[i]->shape));
    else if (wanted != F32 && wanted != F64)
        tensor_fail("%s: %s are %s: they must be float32 or float64; convert them with ag_to", who,
                    role[QUERIES], tensor_dtype_name(wanted));
    else if (dtype != wanted)
        tensor_fail("%s: %s are %s and %s %s: the types must be equal; convert one with ag_to", who,
                    role[i], tensor_dtype_name(dtype), role[QUERIES], tensor_dtype_name(wanted));
}

/* x: q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv). All checks come before any computation, so that a
 * lazy layer draws no weights for a wrong input. */
static bool check_all(const char *who, Tensor *const x[]) {
    for (int i = 0; i < 3; i++)
        if (!x[i]) tensor_fail("%s: %s are NULL", who, role[i]);
    for (int i = 0; i < 3 && !tensor_error(); i++) check_input(who, x, i);
    if (tensor_error()) return false;
    check_sizes(who, x, KEYS, 0, "batch sizes");
    check_sizes(who, x, VALUES, 0, "batch sizes");
    check_sizes(who, x, VALUES, 1, "numbers");
    return !tensor_error();
}

/* Does the mask fit scores (B, H, Q, K)? */
static bool check_mask(const char *who, AttentionMask mask, int64_t B, int64_t H,
                       Tensor *const x[]) {
    Shape scores = SHAPE(B, H, x[QUERIES]->shape.dim[1], x[KEYS]->shape.dim[1]);
    return ag_mask_fits(who, mask, scores, x[QUERIES]->dtype);
}

/* Is the last size of input i the in_features of its projection? The error names the field. */
static bool check_last_size(const char *who, Tensor *const x[], int i, const Linear *projection) {
    int64_t size = x[i]->shape.dim[2], in = projection->in_features;
    if (in != NN_LAZY && size != in)
        tensor_fail(
            "%s: %s are %s: their last size %lld and the in_features %lld of %s must be equal", who,
            role[i], tensor_shape_text(x[i]->shape), (long long)size, (long long)in,
            projection->module.name);
    return !tensor_error();
}

/* ---- scaled dot-product attention ---------------------------------------------------------- */

static const ModuleClass dot_product_class = {"DotProductAttention", sizeof(DotProductAttention),
                                              NULL, NULL};

DotProductAttention *nn_dot_product_attention_new(double dropout) {
    DotProductAttention *attention = nn_module_new(&dot_product_class);
    if (!attention) return NULL;
    attention->num_heads = 1;
    attention->dropout = nn_add_child(attention, "dropout", nn_dropout_new(dropout));
    nn_add_result(attention, &attention->attention_weights);
    return nn_module_done(attention);
}

/* weights: (N, Q, K), kept in *field; the output: dropout(weights) V, (N, Q, Dv) */
static Tensor *pool(void *module, Tensor **field, Dropout *dropout, Tensor *weights, Tensor *v) {
    ag_name(weights, "attention_weights");
    Tensor *output = ag_bmm(nn_dropout_forward(dropout, weights), v);
    if (!output || !nn_keep_result(module, field, weights)) return NULL;
    return ag_name(output, "output");
}

/* scores: (N, Q, D) (N, D, K) -> (N, Q, K); the weights: softmax(scores / sqrt(D)) */
static Tensor *dot_product_weights(Tensor *q, Tensor *k, AttentionMask mask, int64_t H) {
    const double scale = 1 / sqrt((double)q->shape.dim[2]);
    Tensor *scores = ag_name(ag_bmm(q, ag_transpose(k, 1, 2)), "scores");
    return ag_attention_weights(scores, scale, mask, H);
}

static Tensor *dot_product(DotProductAttention *attention, Tensor *const x[], AttentionMask mask) {
    const char *who = "dot_product_attention";
    if (!check_all(who, x)) return NULL;
    check_sizes(who, x, KEYS, 2, "last sizes");
    int64_t N = x[QUERIES]->shape.dim[0], H = attention->num_heads;
    if (H < 1 || N % H)
        return tensor_fail("%s: queries are %s: num_heads %lld must divide their batch size", who,
                           tensor_shape_text(x[QUERIES]->shape), (long long)H);
    if (tensor_error() || !check_mask(who, mask, N / H, H, x)) return NULL;
    Tensor *weights = dot_product_weights(x[QUERIES], x[KEYS], mask, H);
    return pool(attention, &attention->attention_weights, attention->dropout, weights, x[VALUES]);
}

/* Lets go of all that was computed since the mark (scores, for example), except the output, kept
 * weights and what backward reads; so do the other two forward functions. */
Tensor *nn_dot_product_attention_forward(DotProductAttention *attention, Tensor *q, Tensor *k,
                                         Tensor *v, AttentionMask mask) {
    if (!nn_forward_begins("dot_product_attention", attention)) return NULL;
    const int mark = tape_mark();
    Tensor *output = dot_product(attention, (Tensor *[]){q, k, v}, mask);
    return nn_forward_done(attention, ag_let_go_since(mark, output));
}

/* ---- additive attention -------------------------------------------------------------------- */

static const ModuleClass additive_class = {"AdditiveAttention", sizeof(AdditiveAttention), NULL,
                                           NULL};

AdditiveAttention *nn_additive_attention_new(int64_t num_hiddens, double dropout) {
    if (num_hiddens <= 0)
        return tensor_fail("additive_attention: num_hiddens is %lld: it must be positive",
                           (long long)num_hiddens);
    AdditiveAttention *attention = nn_module_new(&additive_class);
    if (!attention) return NULL;
    attention->W_k = nn_add_child(attention, "W_k", nn_linear_new(NN_LAZY, num_hiddens, false));
    attention->W_q = nn_add_child(attention, "W_q", nn_linear_new(NN_LAZY, num_hiddens, false));
    attention->w_v = nn_add_child(attention, "w_v", nn_linear_new(NN_LAZY, 1, false));
    attention->dropout = nn_add_child(attention, "dropout", nn_dropout_new(dropout));
    nn_add_result(attention, &attention->attention_weights);
    return nn_module_done(attention);
}

/* q (B, Q, Dq), k (B, K, Dk) -> (B, Q, K), H hidden units */
static Tensor *additive_weights(AdditiveAttention *attention, Tensor *q, Tensor *k,
                                AttentionMask mask) {
    /* queries: (B, Q, H)  keys: (B, K, H); W_q draws its weights before W_k */
    Tensor *queries = ag_name(nn_linear_forward(attention->W_q, q), "queries");
    Tensor *keys = ag_name(nn_linear_forward(attention->W_k, k), "keys");
    if (!queries) return NULL;
    if (!nn_linear_prepare(attention->w_v, queries)) return nn_forward_done(attention->w_v, NULL);
    /* scores: (B, Q, H), (B, K, H) -> (B, Q, K): w_v tanh(query + key), 0 at or past valid_lens */
    Tensor *w = attention->w_v->weight;
    Tensor *scores = ag_name(ag_additive_scores(queries, keys, w, mask.valid_lens), "scores");
    return ag_attention_weights(scores, 1, mask, 1);
}

static Tensor *additive(AdditiveAttention *attention, Tensor *const x[], AttentionMask mask) {
    const char *who = "additive_attention";
    if (!check_all(who, x) || !check_last_size(who, x, QUERIES, attention->W_q) ||
        !check_last_size(who, x, KEYS, attention->W_k) ||
        !check_mask(who, mask, x[QUERIES]->shape.dim[0], 1, x))
        return NULL;
    Tensor *weights = additive_weights(attention, x[QUERIES], x[KEYS], mask);
    return pool(attention, &attention->attention_weights, attention->dropout, weights, x[VALUES]);
}

Tensor *nn_additive_attention_forward(AdditiveAttention *attention, Tensor *q, Tensor *k, Tensor *v,
                                      AttentionMask mask) {
    if (!nn_forward_begins("additive_attention", attention)) return NULL;
    const int mark = tape_mark();
    Tensor *output = additive(attention, (Tensor *[]){q, k, v}, mask);
    return nn_forward_done(attention, ag_let_go_since(mark, output));
}

/* ---- multi-head attention ------------------------------------------------------------------ */

static const ModuleClass multi_head_class = {"MultiHeadAttention", sizeof(MultiHeadAttention), NULL,
                                             NULL};

static void check_config(const MultiHeadAttentionConfig *c) {
    const char *who = "multi_head_attention";
    if (c->num_hiddens <= 0 || c->num_heads <= 0)
        tensor_fail("%s: num_hiddens is %lld and num_heads %lld: both must be positive", who,
                    (long long)c->num_hiddens, (long long)c->num_heads);
    else if (!c->head_size && c->num_hiddens % c->num_heads)
        tensor_fail("%s: num_heads %lld must divide num_hiddens %lld", who, (long long)c->num_heads,
                    (long long)c->num_hiddens);
    else if (c->num_kv_heads < 0 || (c->num_kv_heads && c->num_heads % c->num_kv_heads))
        tensor_fail("%s: num_kv_heads %lld must divide num_heads %lld", who,
                    (long long)c->num_kv_heads, (long long)c->num_heads);
    else if (c->query_size < 0 || c->key_size < 0 || c->value_size < 0 || c->head_size < 0 ||
             c->head_size > INT64_MAX / c->num_heads)
        tensor_fail("%s: query_size is %lld, key_size %lld, value_size %lld and head_size %lld: a "
                    "size must not be negative (0 leaves it to the first input) or too large",
                    who, (long long)c->query_size, (long long)c->key_size, (long long)c->value_size,
                    (long long)c->head_size);
}

/* A size of 0 means that the first input sets the size. */
static int64_t sized(int64_t size) { return size ? size : NN_LAZY; }

MultiHeadAttention *nn_multi_head_attention_new(MultiHeadAttentionConfig c) {
    check_config(&c);
    MultiHeadAttention *attention = nn_module_new(&multi_head_class);
    if (!attention) return NULL;
    const int64_t n = c.num_hiddens, G = c.num_kv_heads ? c.num_kv_heads : c.num_heads;
    /* what W_q computes, and what W_k and W_v compute */
    const int64_t q = c.head_size ? c.head_size * c.num_heads : n, kv = q / c.num_heads * G;
    bool lazy = !c.query_size || !c.key_size || !c.value_size;
    attention->num_heads = c.num_heads;
    attention->num_kv_heads = G;
    attention->fused = c.fused;
    attention->attention =
        nn_add_child(attention, "attention", nn_dot_product_attention_new(c.dropout));
    if (attention->attention) attention->attention->num_heads = c.num_heads;
    attention->W_q = nn_add_child(attention, "W_q", nn_linear_new(sized(c.query_size), q, c.bias));
    attention->W_k = nn_add_child(attention, "W_k", nn_linear_new(sized(c.key_size), kv, c.bias));
    attention->W_v = nn_add_child(attention, "W_v", nn_linear_new(sized(c.value_size), kv, c.bias));
    attention->W_o = nn_add_child(attention, "W_o", nn_linear_new(lazy ? NN_LAZY : q, n, c.bias));
    nn_add_result(attention, &attention->attention_weights);
    return nn_module_done(attention);
}

/* y = x W': (B, N, G D) -> (B, N, G, D) -> (B, G, N, D), a view, or a batch of B H: (B H, N, D),
 * where keys and values of G < H heads are repeated. For the queries G is H. */
static Tensor *project_to_heads(MultiHeadAttention *attention, Linear *W, int which, Tensor *x,
                                AttentionMask *mask) {
    Tensor *y = nn_linear_forward(W, x);
    if (!y) return NULL;
    int64_t B = y->shape.dim[0], N = y->shape.dim[1], H = attention->num_heads;
    int64_t D = attention->W_q->out_features / H, G = y->shape.dim[2] / D;
    Tensor *heads = ag_permute(ag_reshape(y, SHAPE(B, N, G, D)), AXES(0, 2, 1, 3));
    if (attention->place) heads = attention->place(attention, which, heads, mask);
    if (!heads || attention->fused) return ag_name(heads, role[which]);
    heads = ag_reshape(heads, SHAPE(B * G, heads->shape.dim[2], D));
    return ag_name(G < H ? ag_repeat_interleave(heads, H / G, 0) : heads, role[which]);
}

/* x: q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv) -> (B, H, Q, D) or, as a batch of B H, (B H, Q, D) */
static Tensor *attend(MultiHeadAttention *attention, Tensor *const x[], AttentionMask mask) {
    Linear *const W[] = {attention->W_q, attention->W_k, attention->W_v};
    Tensor *y[3];
    for (int i = QUERIES; i <= VALUES; i++)
        y[i] = project_to_heads(attention, W[i], i, x[i], &mask);
    DotProductAttention *heads = attention->attention;
    const double dropout = heads->dropout->module.training ? heads->dropout->p : 0;
    if (attention->fused) return ag_attention(y[QUERIES], y[KEYS], y[VALUES], mask, dropout);
    return nn_dot_product_attention_forward(heads, y[QUERIES], y[KEYS], y[VALUES], mask);
}

/* x: (B, H, N, D) or (B H, N, D) -> (B, N, H, D) -> (B, N, H D) */
static Tensor *join_heads(Tensor *x, int64_t B, int64_t H) {
    if (!x) return NULL;
    int64_t N = x->shape.dim[x->shape.ndim - 2], D = x->shape.dim[x->shape.ndim - 1];
    Tensor *parts = ag_permute(ag_reshape(x, SHAPE(B, H, N, D)), AXES(0, 2, 1, 3));
    return ag_name(ag_reshape(parts, SHAPE(B, N, H * D)), "heads");
}

static Tensor *multi_head(MultiHeadAttention *attention, Tensor *const x[], AttentionMask mask) {
    const char *who = "multi_head_attention";
    if (!check_all(who, x) || !check_last_size(who, x, QUERIES, attention->W_q) ||
        !check_last_size(who, x, KEYS, attention->W_k) ||
        !check_last_size(who, x, VALUES, attention->W_v) ||
        !check_mask(who, mask, x[QUERIES]->shape.dim[0], attention->num_heads, x))
        return NULL;

    /* heads: (B, H, Q, D) -> (B, Q, H D), output: (B, Q, num_hiddens) */
    Tensor *heads =
        join_heads(attend(attention, x, mask), x[QUERIES]->shape.dim[0], attention->num_heads);
    Tensor *output = nn_linear_forward(attention->W_o, heads);
    if (output && !attention->fused)
        nn_keep_result(attention, &attention->attention_weights,
                       attention->attention->attention_weights);
    return ag_name(output, "output");
}

Tensor *nn_multi_head_attention_forward(MultiHeadAttention *attention, Tensor *q, Tensor *k,
                                        Tensor *v, AttentionMask mask) {
    if (!nn_forward_begins("multi_head_attention", attention)) return NULL;
    const int mark = tape_mark();
    Tensor *output = multi_head(attention, (Tensor *[]){q, k, v}, mask);
    return nn_forward_done(attention, ag_let_go_since(mark, output));
}
