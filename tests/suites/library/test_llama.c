/* test_llama.c - a block of Llama, written with the public functions, beside PyTorch's; and the
 * cache of keys and values beside attention without it. Run from the root of the repository. */
#include "../../../nn/nn.h"
#include "../../../tensor/shape.h"
#include "../common.h"

#include <stdlib.h>
#include <string.h>

static void expect_close(const char *what, const Tensor *got, const Tensor *want, double most) {
    ck_assert_msg(got && want, "%s: %s", what, tensor_error() ? tensor_error() : "is missing");
    ck_assert_msg(tensor_allclose(got, want, most, most), "%s differs", what);
}

/* ---- the block, with the names of Hugging Face's files --------------------------------------- */

enum { C = 16, H = 4, G = 2, D = C / H, HIDDEN = 24 };

typedef struct {
    Module module;
    RMSNorm *norm1, *norm2;
    Linear *q, *k, *v, *o, *gate, *up, *down;
} Layer;

static Linear *linear(void *parent, const char *name, int64_t in, int64_t out) {
    return nn_add_child(parent, name, nn_linear_new(in, out, false));
}

static RMSNorm *norm(void *parent, const char *name) {
    RMSNorm *child = nn_add_child(parent, name, nn_rms_norm_new(SHAPE(C)));
    child->eps = 1e-6;
    return child;
}

/* The root of "model.layers.0.self_attn.q_proj.weight"; *layer borrows from it. */
static Module *llama_new(Layer **layer) {
    static const ModuleClass part = {"Part", sizeof(Module), NULL, NULL};
    static const ModuleClass kind = {"LlamaDecoderLayer", sizeof(Layer), NULL, NULL};
    Module *root = nn_module_new(&part);
    Module *layers = nn_add_child(nn_add_child(root, "model", nn_module_new(&part)), "layers",
                                  nn_module_new(&part));
    Layer *l = nn_add_child(layers, "0", nn_module_new(&kind));
    Module *attention = nn_add_child(l, "self_attn", nn_module_new(&part));
    Module *mlp = nn_add_child(l, "mlp", nn_module_new(&part));
    l->q = linear(attention, "q_proj", C, C);
    l->k = linear(attention, "k_proj", C, G * D);
    l->v = linear(attention, "v_proj", C, G * D);
    l->o = linear(attention, "o_proj", C, C);
    l->gate = linear(mlp, "gate_proj", C, HIDDEN);
    l->up = linear(mlp, "up_proj", C, HIDDEN);
    l->down = linear(mlp, "down_proj", HIDDEN, C);
    l->norm1 = norm(l, "input_layernorm");
    l->norm2 = norm(l, "post_attention_layernorm");
    *layer = l;
    return root;
}

/* (B, N, heads D) -> (B, heads, N, D), turned by the positions unless they are NULL */
static Tensor *heads_of(Linear *W, Tensor *x, Tensor *positions) {
    const int64_t B = x->shape.dim[0], N = x->shape.dim[1];
    Tensor *y = ag_reshape(nn_linear_forward(W, x), SHAPE(B, N, -1, D));
    Tensor *heads = ag_permute(y, AXES(0, 2, 1, 3));
    return positions ? ag_rope(heads, positions, 10000, ROPE_HALVES) : heads;
}

static Tensor *layer_forward(Layer *l, Tensor *x) {
    Tensor *positions = tape_own(tensor_arange_of(0, (double)x->shape.dim[1], 1, I64));
    Tensor *z = nn_rms_norm_forward(l->norm1, x);
    Tensor *q = heads_of(l->q, z, positions);
    Tensor *k = heads_of(l->k, z, positions);
    Tensor *y = ag_attention(q, k, heads_of(l->v, z, NULL), (AttentionMask){.causal = true}, 0);
    y = ag_reshape(ag_permute(y, AXES(0, 2, 1, 3)), x->shape);
    x = ag_add(x, nn_linear_forward(l->o, y));
    z = nn_rms_norm_forward(l->norm2, x);
    z = ag_mul(ag_silu(nn_linear_forward(l->gate, z)), nn_linear_forward(l->up, z));
    return ag_add(x, nn_linear_forward(l->down, z));
}

/* The numbers of generate_llama.py, whose weights have the names of Hugging Face's files. */
START_TEST(a_block_of_llama_is_pytorchs) {
    const DType dtype = _i ? F64 : F32;
    const double most = _i ? 1e-12 : 1e-5;
    tensor_set_default_dtype(dtype);
    TensorDict *file = tensor_load_safetensors(_i ? "tests/golden/llama_float64.safetensors"
                                                  : "tests/golden/llama_float32.safetensors");
    ck_assert_msg(file != NULL, "%s", tensor_error());
    Layer *layer;
    Module *root = llama_new(&layer);
    ck_assert_msg(nn_load_state_dict(root->children, "model.", file), "%s", tensor_error());
    Tensor *x = ag_requires_grad(tensor_clone(tensor_dict_get(file, "x")));
    tape_begin();
    Tensor *y = layer_forward(layer, x);
    expect_close("y", y, tensor_dict_get(file, "y"), most);
    ck_assert(ag_backward_from(y, tensor_dict_get(file, "dy")));
    tape_end();
    expect_close("dx", x->grad, tensor_dict_get(file, "dx"), most);
    int parameters = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(root, "", &p); parameters++) {
        char path[96] = "gradient.";
        nn_parameter_path(root, p, path + 9, sizeof path - 9);
        expect_close(path, (*p->slot)->grad, tensor_dict_get(file, path), most);
    }
    ck_assert_int_eq(parameters, 9);
    tensor_release(x);
    nn_free(root);
    tensor_dict_free(file);
}
END_TEST

/* ---- the cache ---------------------------------------------------------------------------------
 */

enum { B = 2, N = 7 };

static MultiHeadAttention *attention_new(bool fused, bool rope) {
    MultiHeadAttention *a =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){C, H, 0, true, C, C, C, fused, G});
    if (rope) ck_assert(nn_multi_head_attention_rope(a, 100, ROPE_ADJACENT));
    return a;
}

/* Fed in parts of 3, 1, 2 and 1 positions, attention with a cache computes what it computes for all
 * positions at once: with and without fused, rope and a type of 4 bytes, and in a second text. */
START_TEST(the_cache_changes_no_result) {
    tensor_set_default_dtype(_i & 4 ? F32 : F64);
    MultiHeadAttention *attention = attention_new(_i & 1, _i & 2);
    KVCache *cache = nn_kv_cache_new(N + 2);
    for (int text = 0; text < 2; text++) {
        Tensor *x = tensor_randn(SHAPE(B, N, C));
        cache->length = 0;
        tape_begin_no_grad();
        Tensor *all =
            nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){.causal = true});
        for (int64_t from = 0, part = 0; from < N; part++) {
            const int64_t to = from + (int64_t[]){3, 1, 2, 1}[part];
            tape_begin_no_grad(); /* a part, as a program that writes has it */
            Tensor *y =
                nn_multi_head_attention_forward_cached(attention, ag_slice(x, 1, from, to), cache);
            expect_close("a part", y, ag_slice(all, 1, from, to), _i & 4 ? 1e-5 : 1e-12);
            tape_end();
            from = to;
            ck_assert_int_eq(cache->length, to);
            if (_i & 1) continue;
            ck_assert(shape_equal(attention->attention_weights->shape,
                                  SHAPE(B * H, (int64_t[]){3, 1, 2, 1}[part], to)));
        }
        tape_end();
        tensor_release(x);
    }
    ck_assert_int_eq(cache->keys->shape.dim[1], G); /* as many as there are, not repeated */
    nn_kv_cache_free(cache);
    nn_free(attention);
}
END_TEST

/* Positions that are turned together change no score: it depends on their distance. */
START_TEST(rope_in_attention_knows_distances_alone) {
    MultiHeadAttention *attention = attention_new(true, true);
    Tensor *x = tensor_randn(SHAPE(B, 1, C));
    Tensor *same = tensor_view_expand(x, SHAPE(B, N, C));
    tape_begin();
    Tensor *y = nn_multi_head_attention_forward(attention, same, same, same, (AttentionMask){0});
    expect_close("equal values", ag_select(y, 1, 0), ag_select(y, 1, N - 1), 1e-12);
    Tensor *q = ag_unsqueeze(x, 1);
    Tensor *place[4];
    for (int64_t i = 0; i < 4; i++) place[i] = tensor_from_int64s(SHAPE(1), &(int64_t){2 * i});
    for (int i = 0; i < 2; i++) { /* q at 2, k at 0; q at 6, k at 4 */
        Tensor *a = ag_rope(q, place[1 + 2 * i], 10, ROPE_HALVES);
        Tensor *b = ag_rope(q, place[2 * i], 10, ROPE_HALVES);
        Tensor *scores = ag_sum_dims(ag_mul(a, b), AXES(-1), false);
        Tensor *a0 = ag_rope(q, place[1], 10, ROPE_HALVES);
        Tensor *b0 = ag_rope(q, place[0], 10, ROPE_HALVES);
        expect_close("the score", scores, ag_sum_dims(ag_mul(a0, b0), AXES(-1), false), 1e-12);
    }
    tape_end();
    release_all(place, 4);
    RELEASE(x, same);
    nn_free(attention);
}
END_TEST

START_TEST(a_wrong_cache_is_named) {
    MultiHeadAttention *attention = attention_new(true, true);
    MultiHeadAttention *other = attention_new(true, true);
    KVCache *cache = nn_kv_cache_new(4);
    Tensor *x = tensor_randn(SHAPE(2, 3, C));
    Tensor *alone = tensor_randn(SHAPE(1, 1, C));
    Tensor *flat = tensor_randn(SHAPE(3, C));
    FAILS(nn_kv_cache_new(-1), "kv_cache: capacity is -1: it must not be negative");
    FAILS(nn_multi_head_attention_rope(NULL, 1, ROPE_HALVES),
          "multi_head_attention: the module is NULL");
    tape_begin();
    FAILS(nn_multi_head_attention_forward_cached(attention, x, cache),
          "multi_head_attention: a cache has no gradient: call forward_cached on a tape of "
          "tape_begin_no_grad");
    tape_end();
    tape_begin_no_grad();
    FAILS(nn_multi_head_attention_forward_cached(attention, x, NULL),
          "multi_head_attention: the cache is NULL");
    FAILS(nn_multi_head_attention_forward_cached(NULL, x, cache),
          "multi_head_attention: the module is NULL");
    FAILS(nn_multi_head_attention_forward_cached(attention, NULL, cache),
          "multi_head_attention: queries are NULL");
    FAILS(nn_multi_head_attention_forward_cached(attention, flat, cache),
          "multi_head_attention: queries are (3, 16): they need three dimensions (batch, number, "
          "size)");
    ck_assert_int_eq(cache->length, 0);
    ck_assert_ptr_nonnull(nn_multi_head_attention_forward_cached(attention, x, cache));
    FAILS(nn_multi_head_attention_forward_cached(attention, x, cache),
          "multi_head_attention: the cache holds 3 of at most 4 positions: 3 more do not fit");
    FAILS(nn_multi_head_attention_forward_cached(attention, alone, cache),
          "multi_head_attention: the cache is float64 (2, 2, 4, 4) and must be float64 (1, 2, 4, "
          "4): it is of another batch");
    FAILS(nn_multi_head_attention_forward_cached(other, x, cache),
          "multi_head_attention: the cache is of another attention: each needs one of its own");
    ck_assert_int_eq(cache->length, 3);
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    ck_assert_ptr_nonnull(y); /* without the cache again */
    ck_assert_int_eq(cache->length, 3);
    tape_end();
    tensor_fail("the first error");
    ck_assert_ptr_null(nn_kv_cache_new(1));
    ck_assert_ptr_null(nn_multi_head_attention_forward_cached(attention, x, cache));
    expect_error("the first error");
    nn_kv_cache_free(NULL);
    nn_kv_cache_free(cache);
    RELEASE(x, alone, flat);
    nn_free(attention);
    nn_free(other);
}
END_TEST

/* What is wrong is refused where it is set, and the positions that were set before stay. */
START_TEST(a_rope_that_is_refused_changes_nothing) {
    MultiHeadAttention *attention = attention_new(true, true);
    MultiHeadAttention *odd =
        nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = 6, .num_heads = 2});
    Tensor *x = tensor_randn(SHAPE(1, 3, C));
    ck_assert(nn_multi_head_attention_rope(attention, 100, ROPE_HALVES));
    tape_begin_no_grad();
    Tensor *before = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    const char *base = "multi_head_attention: base is %g: it must be positive and finite";
    const double wrong[] = {0, -1, (double)INFINITY, (double)NAN};
    for (int i = 0; i < COUNT(wrong); i++)
        FAILS(nn_multi_head_attention_rope(attention, wrong[i], ROPE_HALVES),
              format(base, wrong[i]));
    FAILS(nn_multi_head_attention_rope(attention, 10, (RopePairs)7),
          "multi_head_attention: pairs is 7: it must be ROPE_ADJACENT or ROPE_HALVES");
    Tensor *after = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    ck_assert(tensor_allclose(before, after, 0, 0));
    FAILS(nn_multi_head_attention_rope(odd, 10, ROPE_HALVES),
          "multi_head_attention: the size of a head, num_hiddens / num_heads, is 3: it must be "
          "even, because pairs turn");
    ck_assert(!odd->place && odd->rope_base == 0);
    attention->rope_base = -10; /* the field, without the function */
    FAILS(nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0}),
          "rope: base is -10: it must be positive and finite");
    tape_end();
    tensor_release(x);
    nn_free(attention);
    nn_free(odd);
}
END_TEST

/* The first forward of an empty cache decides its batch, if it succeeds. */
START_TEST(a_forward_that_is_refused_leaves_the_cache_empty) {
    MultiHeadAttention *attention = attention_new(true, false);
    KVCache *cache = nn_kv_cache_new(4);
    Tensor *x = tensor_randn(SHAPE(2, 3, C));
    Tensor *alone = tensor_randn(SHAPE(1, 3, C));
    Tensor *weight = tensor_retain(attention->W_v->weight);
    ck_assert(nn_set_parameter(attention->W_v, &attention->W_v->weight, tensor_ones(SHAPE(1, C))));
    ck_assert(!attention->place);
    FAILS(nn_multi_head_attention_forward_cached(attention, x, NULL),
          "multi_head_attention: the cache is NULL");
    ck_assert(!attention->place);
    tape_begin_no_grad();
    ck_assert_ptr_null(nn_multi_head_attention_forward_cached(attention, x, cache));
    tensor_clear_error();
    ck_assert(!cache->keys && !cache->values && cache->length == 0);
    ck_assert(nn_set_parameter(attention->W_v, &attention->W_v->weight, weight));
    for (int i = -1; i >= -99; i -= 98) {
        cache->length = i;
        FAILS(nn_multi_head_attention_forward_cached(attention, alone, cache),
              format("multi_head_attention: the cache's length is %d: it must not be negative", i));
    }
    cache->length = 99;
    FAILS(nn_multi_head_attention_forward_cached(attention, alone, cache),
          "multi_head_attention: the cache holds 99 of at most 4 positions: 3 more do not fit");
    cache->length = 0;
    ck_assert_ptr_nonnull(nn_multi_head_attention_forward_cached(attention, alone, cache));
    tape_end();
    nn_kv_cache_free(cache);
    RELEASE(x, alone);
    nn_free(attention);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("llama");
    TCase *tcase = add_framed_case(suite, "llama");
    tcase_add_loop_test(tcase, a_block_of_llama_is_pytorchs, 0, 2);
    tcase_add_loop_test(tcase, the_cache_changes_no_result, 0, 8);
    add_tests(tcase, rope_in_attention_knows_distances_alone, a_wrong_cache_is_named,
              a_rope_that_is_refused_changes_nothing,
              a_forward_that_is_refused_leaves_the_cache_empty);
    return run_suite(suite);
}
