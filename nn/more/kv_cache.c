/* kv_cache.c - what takes the place of the queries, keys and values of multi-head attention: their
 * norms, their rotary positions, and a cache.
 *
 * A model that writes a text asks for one position after another. Causal attention never changes
 * what an earlier position has computed: its key and its value stay, and only the query of the new
 * position is new. With the cache a new position costs one row of each product and one row of
 * scores: it grows with the length of the text, not with its square.
 *
 * B batch, G heads of keys and values, N new positions, which follow `past` older ones. */
#include "../module.h"

#include <math.h>
#include <stdlib.h>

enum { QUERIES, KEYS, VALUES };

KVCache *nn_kv_cache_new(int64_t capacity) {
    if (tensor_error()) return NULL;
    if (capacity < 0)
        return tensor_fail("kv_cache: capacity is %lld: it must not be negative",
                           (long long)capacity);
    KVCache *cache = calloc(1, sizeof *cache);
    if (!cache) return tensor_fail("kv_cache: out of memory");
    cache->capacity = capacity;
    return cache;
}

static Tensor **field_of(KVCache *cache, int which) {
    if (which == QUERIES) return &cache->seen;
    return which == KEYS ? &cache->keys : &cache->values;
}

static void empty(KVCache *cache) {
    for (int i = 0; i < 3; i++) {
        tensor_release(*field_of(cache, i));
        *field_of(cache, i) = NULL;
    }
}

void nn_kv_cache_free(KVCache *cache) {
    if (cache) empty(cache);
    free(cache);
}

KVCache *nn_kv_cache_window_new(int64_t window) {
    if (window < 1)
        return tensor_fail("kv_cache: window is %lld: it must be positive", (long long)window);
    KVCache *cache = nn_kv_cache_new(window);
    if (cache) cache->window = window;
    return cache;
}

/* ---- what is in the cache -------------------------------------------------------------------- */

/* How many older positions does the next one attend to? */
static int64_t past_of(const KVCache *cache) {
    const int64_t window = cache->window, length = cache->length;
    return window && !cache->cross && length > window - 1 ? window - 1 : length;
}

static bool check_cache(const MultiHeadAttention *attention, const Tensor *queries) {
    const char *who = "multi_head_attention";
    const KVCache *cache = attention->cache;
    const int64_t N = cache->cross ? 0 : queries->shape.dim[2], length = cache->length;
    if (cache->of && cache->of != attention)
        tensor_fail("%s: the cache is of another attention: each needs one of its own", who);
    else if (length < 0)
        tensor_fail("%s: the cache's length is %lld: it must not be negative", who,
                    (long long)length);
    else if (!cache->window && N > cache->capacity - length)
        tensor_fail("%s: the cache holds %lld of at most %lld positions: %lld more do not fit", who,
                    (long long)length, (long long)cache->capacity, (long long)N);
    else if (cache->window && length && length != cache->end)
        tensor_fail(
            "%s: the cache has a window and cannot go from position %lld to %lld: only to 0", who,
            (long long)cache->end, (long long)length);
    return !tensor_error();
}

/* Writes heads (B, G, N, D) behind what the cache holds; returns the last `past` of that, and
 * these. With a window both are a new tensor, which the cache keeps if the forward succeeds. */
static Tensor *append(KVCache *cache, int which, Tensor *heads) {
    Tensor **all = field_of(cache, which);
    const int64_t past = past_of(cache), end = cache->length + heads->shape.dim[2];
    Shape shape = heads->shape;
    shape.dim[2] = *all ? (*all)->shape.dim[2] : cache->capacity;
    if (heads->requires_grad)
        return tensor_fail(
            "multi_head_attention: a cache has no gradient: call forward_cached on a tape of "
            "tape_begin_no_grad");
    if (*all && (shape.dim[0] != (*all)->shape.dim[0] || heads->dtype != (*all)->dtype))
        return tensor_fail("multi_head_attention: the cache is %s %s and must be %s %s: it is of "
                           "another batch",
                           tensor_dtype_name((*all)->dtype), tensor_shape_text((*all)->shape),
                           tensor_dtype_name(heads->dtype), tensor_shape_text(shape));
    if (cache->window) {
        Tensor *old = *all && past > 0 ? ag_slice(*all, 2, -past, INT64_MAX) : NULL;
        cache->next[which] = tensor_retain(old ? ag_cat((Tensor *[]){old, heads}, 2, 2) : heads);
        return cache->next[which];
    }
    if (!*all) *all = tensor_zeros_of(shape, heads->dtype);
    Tensor *place = *all ? ag_slice(*all, 2, cache->length, end) : NULL;
    return place && tensor_copy_from(place, heads) ? ag_slice(*all, 2, 0, end) : NULL;
}

/* ---- its mask -------------------------------------------------------------------------------- */

/* Of the part of a mask, whose last size is all K keys or 1, what is about the last n of them. */
static Tensor *last_keys(const Tensor *part, int64_t K, int64_t n) {
    Tensor *x = (Tensor *)part;
    const int last = x ? x->shape.ndim - 1 : -1;
    return n < K && last >= 0 && x->shape.dim[last] == K ? ag_slice(x, last, K - n, K) : x;
}

/* Of the past + N positions, each of the last N attends to those up to itself, and to no more than
 * the window: (N, past + N). */
static Tensor *up_to_itself(const KVCache *cache, int64_t N) {
    const int64_t past = past_of(cache);
    Tensor *all = tape_own(tensor_ones_of(SHAPE(N, past + N), BOOL));
    Tensor *causal = ag_tril(all, (int)past);
    return cache->window ? ag_triu(causal, (int)(past - cache->window + 1)) : causal;
}

/* The mask for length + N keys, checked, becomes one for the last past + N of them. */
static bool fit_mask(const MultiHeadAttention *attention, Tensor *queries, AttentionMask *mask) {
    const KVCache *cache = attention->cache;
    const int64_t N = queries->shape.dim[2], past = past_of(cache);
    const int64_t K = cache->cross ? cache->length : cache->length + N, n = past + N;
    Shape scores = SHAPE(queries->shape.dim[0], attention->num_heads, N, K);
    if (!check_cache(attention, queries)) return false;
    if (cache->cross && cache->length == 0) return true;
    *mask = cache->mask;
    if (!ag_mask_fits("multi_head_attention", *mask, scores, queries->dtype)) return false;
    if (cache->cross) return true;
    Tensor *lens = (Tensor *)mask->valid_lens;
    if (lens) mask->valid_lens = ag_clamp_min(ag_add_scalar(lens, (double)(n - K)), 0);
    mask->keep = last_keys(mask->keep, K, n);
    mask->window = last_keys(mask->window, K, n);
    mask->bias = last_keys(mask->bias, K, n);
    mask->causal = past == 0 && !cache->window;
    Tensor *causal = N > 1 && !mask->causal ? up_to_itself(cache, N) : NULL;
    if (causal && mask->keep) causal = ag_logical_and((Tensor *)mask->keep, causal);
    if (causal) mask->keep = causal;
    return !tensor_error();
}

/* ---- positions ------------------------------------------------------------------------------- */

/* Remembers positions (N) or (B, N), and checks that none goes back. */
static bool check_order(KVCache *cache, Tensor *positions, int64_t B) {
    const int64_t N = positions->shape.dim[positions->shape.ndim - 1];
    Tensor *new = ag_reshape(ag_expand(positions, SHAPE(B, N)), SHAPE(B, 1, N, 1));
    Tensor *seen = append(cache, QUERIES, new); /* (B, 1, past + N, 1) */
    Tensor *back = ag_lt(ag_slice(seen, 2, 1, INT64_MAX), ag_slice(seen, 2, 0, -1));
    if (!back || tensor_item(ag_sum(back)) == 0) return !tensor_error();
    return tensor_fail("multi_head_attention: the positions go back: in a row none may be smaller "
                       "than the one before, nor than the last that the cache has seen");
}

/* Queries or keys, turned by their positions. */
static Tensor *turned(const MultiHeadAttention *attention, int which, Tensor *heads) {
    KVCache *cache = attention->cache;
    const double past = cache ? (double)cache->length : 0;
    Tensor *given = cache ? (Tensor *)cache->positions : NULL;
    Tensor *counted =
        given ? NULL : tensor_arange_of(past, past + (double)heads->shape.dim[2], 1, I64);
    Tensor *y = ag_rope_speeds(heads, given ? given : tape_own(counted), attention->rope_speeds,
                               attention->rope_halves ? ROPE_HALVES : ROPE_ADJACENT);
    const bool checked = !y || !given || which == QUERIES;
    return checked || check_order(cache, given, heads->shape.dim[0]) ? y : NULL;
}

/* ---- the door of multi-head attention -------------------------------------------------------- */

/* What multi-head attention calls for its queries, keys and values, (B, H or G, N, D). */
static Tensor *place(MultiHeadAttention *attention, int which, Tensor *heads, AttentionMask *mask) {
    KVCache *cache = attention->cache;
    RMSNorm *const norms[] = {attention->q_norm, attention->k_norm, NULL};
    if (cache && heads && which == QUERIES && !fit_mask(attention, heads, mask)) return NULL;
    if (heads && norms[which]) heads = nn_rms_norm_forward(norms[which], heads);
    if (heads && attention->rope_speeds && which != VALUES) heads = turned(attention, which, heads);
    if (!heads || !cache || which == QUERIES) return heads;
    return append(cache, which, heads);
}

static int64_t head_size(const MultiHeadAttention *attention) {
    return attention->W_q->out_features / attention->num_heads;
}

bool nn_multi_head_attention_rope_speeds(MultiHeadAttention *attention, Tensor *speeds,
                                         RopePairs pairs) {
    const char *who = "multi_head_attention";
    if (!nn_forward_begins(who, attention)) return false;
    const Shape shape = SHAPE(head_size(attention) / 2);
    if (pairs != ROPE_ADJACENT && pairs != ROPE_HALVES)
        return tensor_fail("%s: pairs is %d: it must be ROPE_ADJACENT or ROPE_HALVES", who,
                           (int)pairs);
    if (!speeds || !nn_shape_matches(shape, speeds->shape))
        return tensor_fail("%s: the speeds are %s: they must be (head_size / 2), here %s", who,
                           speeds ? tensor_shape_text(speeds->shape) : "NULL",
                           tensor_shape_text(shape));
    if (!attention->rope_speeds && !nn_add_result(attention, &attention->rope_speeds)) return false;
    attention->place = place;
    attention->rope_halves = pairs == ROPE_HALVES;
    return nn_keep_result(attention, &attention->rope_speeds, speeds);
}

bool nn_multi_head_attention_rope(MultiHeadAttention *attention, double base, RopePairs pairs) {
    const char *who = "multi_head_attention";
    if (!nn_forward_begins(who, attention)) return false;
    if (!(base > 0 && base < (double)INFINITY))
        return tensor_fail("%s: base is %g: it must be positive and finite", who, base);
    if (head_size(attention) % 2)
        return tensor_fail("%s: the size of a head is %lld: it must be even, because pairs turn",
                           who, (long long)head_size(attention));
    Tensor *speeds = tensor_rope_linear(head_size(attention), base, 1);
    const bool good = nn_multi_head_attention_rope_speeds(attention, speeds, pairs);
    tensor_release(speeds);
    return good;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* x: q, k, v. When the cache knows what becomes of k and v, no rows of them are projected. The mask
 * is for what the cache holds, or, before it holds it, for k. */
static Tensor *forward(MultiHeadAttention *attention, Tensor **x, KVCache *cache,
                       AttentionMask mask, bool cross) {
    const char *who = "multi_head_attention";
    if (!nn_forward_begins(who, attention)) return NULL;
    if (!cache) return nn_forward_done(attention, tensor_fail("%s: the cache is NULL", who));
    const bool known = cross && cache->length > 0;
    if (cache->length == 0) cache->cross = cross;
    if (cache->cross != cross)
        tensor_fail("%s: the cache is one of %s-attention", who, cross ? "self" : "cross");
    if (cross && attention->rope_speeds)
        tensor_fail("%s: cross-attention with a cache has no rope", who);
    for (int i = KEYS; known && i <= VALUES; i++)
        if (x[i] && x[i]->shape.ndim == 3) x[i] = ag_slice(x[i], 1, 0, 0);
    attention->place = place;
    attention->cache = cache;
    cache->mask = mask;
    Tensor *y = nn_multi_head_attention_forward(attention, x[QUERIES], x[KEYS], x[VALUES],
                                                cross && !known ? mask : (AttentionMask){0});
    attention->cache = NULL;
    for (int i = 0; i < 3; i++) {
        Tensor **all = field_of(cache, i);
        Tensor *old = y && cache->next[i] ? *all : cache->next[i];
        if (y && cache->next[i]) *all = cache->next[i];
        tensor_release(old);
        cache->next[i] = NULL;
    }
    if (!y && !cache->of) empty(cache); /* keys were made in the shape of this batch */
    if (!y) return nn_forward_done(attention, NULL);
    cache->length += x[KEYS]->shape.dim[1];
    cache->end = cache->length;
    cache->of = attention;
    return y;
}

Tensor *nn_multi_head_attention_forward_cached(MultiHeadAttention *attention, Tensor *x,
                                               KVCache *cache, AttentionMask mask) {
    return forward(attention, (Tensor *[]){x, x, x}, cache, mask, false);
}

Tensor *nn_multi_head_attention_forward_cross(MultiHeadAttention *attention, Tensor *q, Tensor *k,
                                              Tensor *v, KVCache *cache, AttentionMask mask) {
    return forward(attention, (Tensor *[]){q, k, v}, cache, mask, true);
}
