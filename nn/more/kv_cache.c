/* kv_cache.c - rotary positions in multi-head attention, and a cache of its keys and values.
 *
 * A model that writes a text asks for one position after another. Causal attention never changes
 * what an earlier position has computed: its key and its value stay, and only the query of the new
 * position is new. With the cache a new position costs one row of each product and one row of
 * scores: it grows with the length of the text, not with its square. */
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

void nn_kv_cache_free(KVCache *cache) {
    if (!cache) return;
    tensor_release(cache->keys);
    tensor_release(cache->values);
    free(cache);
}

static bool check_cache(const MultiHeadAttention *attention, const Tensor *heads) {
    const char *who = "multi_head_attention";
    const KVCache *cache = attention->cache;
    const int64_t N = heads->shape.dim[2];
    if (cache->of && cache->of != attention)
        tensor_fail("%s: the cache is of another attention: each needs one of its own", who);
    else if (heads->requires_grad)
        tensor_fail("%s: a cache has no gradient: call forward_cached on a tape of "
                    "tape_begin_no_grad",
                    who);
    else if (cache->length < 0)
        tensor_fail("%s: the cache's length is %lld: it must not be negative", who,
                    (long long)cache->length);
    else if (N > cache->capacity - cache->length)
        tensor_fail("%s: the cache holds %lld of at most %lld positions: %lld more do not fit", who,
                    (long long)cache->length, (long long)cache->capacity, (long long)N);
    return !tensor_error();
}

/* Which of the past + N positions may each of the last N attend to? (N, past + N) */
static Tensor *up_to_itself(int64_t N, int64_t past) {
    Tensor *all = tape_own(tensor_ones_of(SHAPE(N, past + N), BOOL));
    return ag_tril(all, (int)past);
}

/* Writes heads (B, G, N, D) behind those in *all; returns those and these. */
static Tensor *append(const KVCache *cache, Tensor **all, Tensor *heads) {
    const int64_t past = cache->length, end = past + heads->shape.dim[2];
    Shape shape = heads->shape;
    shape.dim[2] = cache->capacity;
    if (!*all) *all = tensor_zeros_of(shape, heads->dtype);
    if (!*all) return NULL;
    if (shape.dim[0] != (*all)->shape.dim[0] || heads->dtype != (*all)->dtype)
        return tensor_fail("multi_head_attention: the cache is %s %s and must be %s %s: it is of "
                           "another batch",
                           tensor_dtype_name((*all)->dtype), tensor_shape_text((*all)->shape),
                           tensor_dtype_name(heads->dtype), tensor_shape_text(shape));
    Tensor *place = ag_slice(*all, 2, past, end);
    return place && tensor_copy_from(place, heads) ? ag_slice(*all, 2, 0, end) : NULL;
}

/* What multi-head attention calls for its queries, keys and values, (B, H or G, N, D). */
static Tensor *place(MultiHeadAttention *attention, int which, Tensor *heads, AttentionMask *mask) {
    KVCache *cache = attention->cache;
    if (!heads || (cache && !check_cache(attention, heads))) return NULL;
    const int64_t N = heads->shape.dim[2], past = cache ? cache->length : 0;
    if (cache && which == QUERIES && N > 1) mask->keep = up_to_itself(N, past);
    if (attention->rope_base != 0 && which != VALUES) {
        Tensor *positions = tensor_arange_of((double)past, (double)(past + N), 1, I64);
        heads = ag_rope(heads, tape_own(positions), attention->rope_base,
                        (RopePairs)attention->rope_pairs);
    }
    if (!heads || !cache || which == QUERIES) return heads;
    return append(cache, which == KEYS ? &cache->keys : &cache->values, heads);
}

/* What ag_rope would refuse in the first forward. */
static bool check_rope(int64_t head_size, double base, RopePairs pairs) {
    const char *who = "multi_head_attention";
    if (!(base > 0 && base < (double)INFINITY))
        tensor_fail("%s: base is %g: it must be positive and finite", who, base);
    else if (pairs != ROPE_ADJACENT && pairs != ROPE_HALVES)
        tensor_fail("%s: pairs is %d: it must be ROPE_ADJACENT or ROPE_HALVES", who, (int)pairs);
    else if (head_size % 2)
        tensor_fail("%s: the size of a head, num_hiddens / num_heads, is %lld: it must be even, "
                    "because pairs turn",
                    who, (long long)head_size);
    return !tensor_error();
}

bool nn_multi_head_attention_rope(MultiHeadAttention *attention, double base, RopePairs pairs) {
    if (!nn_forward_begins("multi_head_attention", attention) ||
        !check_rope(attention->W_q->out_features / attention->num_heads, base, pairs))
        return false;
    attention->place = place;
    attention->rope_base = base;
    attention->rope_pairs = (int)pairs;
    return true;
}

/* A first forward that failed may have made keys in the shape of its batch. */
static void empty_again(KVCache *cache) {
    tensor_release(cache->keys);
    tensor_release(cache->values);
    cache->keys = NULL;
    cache->values = NULL;
}

Tensor *nn_multi_head_attention_forward_cached(MultiHeadAttention *attention, Tensor *x,
                                               KVCache *cache) {
    if (!nn_forward_begins("multi_head_attention", attention)) return NULL;
    if (!cache) {
        tensor_fail("multi_head_attention: the cache is NULL");
        return nn_forward_done(attention, NULL);
    }
    attention->place = place;
    attention->cache = cache;
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    attention->cache = NULL;
    if (y) cache->length += x->shape.dim[1];
    if (y) cache->of = attention;
    if (!cache->of) empty_again(cache);
    return nn_forward_done(attention, y);
}
