/* test_llama.c - a block of Llama, written with the public functions, beside PyTorch's; and the
 * cache of keys and values beside attention without it. Run from the root of the repository. */
#include "../../../nn/nn.h"
#include "../../../tensor/shape.h"
#include "../common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- blocks of today's models, with the weights and names of Hugging Face's files -------------
 */

enum { C = 16, H = 4, G = 2, D = 8, HIDDEN = 16, WINDOW = 4, VOCABULARY = 32, LAYERS = 2 };
enum { LLAMA, QWEN3, GEMMA2, MODELS };
static const char *const model_name[] = {"llama", "qwen3", "gemma2"};

typedef struct {
    Module module;
    RMSNorm *norm1, *norm2, *norm3, *norm4; /* Gemma 2 has four */
    MultiHeadAttention *attention;
    Linear *gate, *up, *down;
} Block;

static RMSNorm *norm(void *parent, const char *name, int64_t size) {
    RMSNorm *child = nn_add_child(parent, name, nn_rms_norm_new(SHAPE(size)));
    child->eps = 1e-6;
    return child;
}

static Linear *linear(void *parent, const char *name, int64_t in, int64_t out) {
    return nn_add_child(parent, name, nn_linear_new(in, out, false));
}

static void add_attention(Block *b, int model) {
    const MultiHeadAttentionConfig config = {C, H, 0, false, C, C, C, true, G, D};
    MultiHeadAttention *a = nn_multi_head_attention_new(config);
    b->attention = nn_add_child(b, "self_attn", a);
    if (model == GEMMA2) ck_assert(nn_multi_head_attention_rope(a, 10000, ROPE_HALVES));
    else {
        Tensor *speeds = tensor_rope_llama3(D, 100, 8, 1, 4, 64);
        ck_assert(nn_multi_head_attention_rope_speeds(a, speeds, ROPE_HALVES));
        tensor_release(speeds);
    }
    if (model != QWEN3) return;
    a->q_norm = norm(a, "q_norm", D);
    a->k_norm = norm(a, "k_norm", D);
}

static Block *block_new(int model) {
    static const ModuleClass kind = {"Block", sizeof(Block), NULL, NULL};
    Block *b = nn_module_new(&kind);
    b->norm1 = norm(b, "input_layernorm", C);
    add_attention(b, model);
    b->norm2 = norm(b, "post_attention_layernorm", C);
    if (model == GEMMA2) {
        b->norm3 = norm(b, "pre_feedforward_layernorm", C);
        b->norm4 = norm(b, "post_feedforward_layernorm", C);
    }
    b->gate = linear(b, "gate_proj", C, HIDDEN);
    b->up = linear(b, "up_proj", C, HIDDEN);
    b->down = linear(b, "down_proj", HIDDEN, C);
    return b;
}

/* The names of the entries of a block in a file become those of Block. */
static void rename_block(TensorDict *file, const char *block) {
    static const char *const name[][2] = {{"mlp.", ""},
                                          {"self_attn.q_proj.", "self_attn.W_q."},
                                          {"self_attn.k_proj.", "self_attn.W_k."},
                                          {"self_attn.v_proj.", "self_attn.W_v."},
                                          {"self_attn.o_proj.", "self_attn.W_o."}};
    for (int i = 0; i < COUNT(name); i++) {
        ck_assert_msg(tensor_dict_rename(file, format("%s%s", block, name[i][0]),
                                         format("%s%s", block, name[i][1])),
                      "%s", tensor_error());
    }
}

/* cache: NULL, or x follows what it holds. */
static Tensor *attend(Block *b, Tensor *x, KVCache *cache, AttentionMask mask) {
    if (!cache) return nn_multi_head_attention_forward(b->attention, x, x, x, mask);
    return nn_multi_head_attention_forward_cached(b->attention, x, cache, mask);
}

static Tensor *block_forward(Block *b, Tensor *x, KVCache *cache, AttentionMask mask) {
    x = ag_add(x, attend(b, nn_rms_norm_forward(b->norm1, x), cache, mask));
    Tensor *z = nn_rms_norm_forward(b->norm2, x);
    z = ag_mul(ag_silu(nn_linear_forward(b->gate, z)), nn_linear_forward(b->up, z));
    return ag_add(x, nn_linear_forward(b->down, z));
}

/* x: (B, N, C) -> (B, heads, N, D) */
static Tensor *heads_of(Linear *W, Tensor *x) {
    Tensor *y = nn_linear_forward(W, x);
    return ag_permute(ag_reshape(y, SHAPE(x->shape.dim[0], x->shape.dim[1], -1, D)),
                      AXES(0, 2, 1, 3));
}

/* Gemma 2's scores are cap tanh(scores / cap), a formula of ops: so its attention is one, too. */
static Tensor *capped_attention(MultiHeadAttention *a, Tensor *x, AttentionMask mask) {
    const double cap = 2, scale = 1 / sqrt(10.0); /* query_pre_attn_scalar */
    Tensor *positions = tape_own(tensor_arange_of(0, (double)x->shape.dim[1], 1, I64));
    Tensor *q = ag_rope(heads_of(a->W_q, x), positions, 10000, ROPE_HALVES);
    Tensor *k = ag_rope(heads_of(a->W_k, x), positions, 10000, ROPE_HALVES);
    Tensor *v = ag_repeat_interleave(heads_of(a->W_v, x), H / G, 1);
    k = ag_repeat_interleave(k, H / G, 1);
    Tensor *scores = ag_scale(ag_matmul(q, ag_transpose(k, 2, 3)), scale / cap);
    Tensor *w = ag_attention_weights(ag_scale(ag_tanh(scores), cap), 1, mask, H);
    Tensor *y = ag_permute(ag_matmul(w, v), AXES(0, 2, 1, 3));
    return nn_linear_forward(a->W_o, ag_reshape(y, SHAPE(x->shape.dim[0], x->shape.dim[1], H * D)));
}

static Tensor *gemma2_forward(Block *b, Tensor *x) {
    const int64_t N = x->shape.dim[1];
    Tensor *keep = ag_triu(tape_own(tensor_ones_of(SHAPE(N, N), BOOL)), 1 - WINDOW);
    const AttentionMask mask = {.keep = keep, .causal = true};
    Tensor *y = capped_attention(b->attention, nn_rms_norm_forward(b->norm1, x), mask);
    x = ag_add(x, nn_rms_norm_forward(b->norm2, y));
    Tensor *z = nn_rms_norm_forward(b->norm3, x);
    z = ag_mul(ag_gelu_tanh(nn_linear_forward(b->gate, z)), nn_linear_forward(b->up, z));
    return ag_add(x, nn_rms_norm_forward(b->norm4, nn_linear_forward(b->down, z)));
}

static TensorDict *golden(DType dtype) {
    tensor_set_default_dtype(dtype);
    TensorDict *file =
        tensor_load_safetensors(dtype == F64 ? "tests/golden/llama_float64.safetensors"
                                             : "tests/golden/llama_float32.safetensors");
    ck_assert_msg(file != NULL, "%s", tensor_error());
    return file;
}

/* A name of a few parts, valid until the next call. */
static const char *path_of(const char *first, const char *second, const char *third) {
    static char path[128];
    snprintf(path, sizeof path, "%s%s%s", first, second, third);
    return path;
}

/* Gemma's norms multiply by 1 + weight. */
static void load_block(Block *b, int model, TensorDict *file) {
    rename_block(file, path_of(model_name[model], ".", ""));
    rename_block(file, path_of("gradient.", model_name[model], "."));
    ck_assert_msg(nn_load_state_dict(b, path_of(model_name[model], ".", ""), file), "%s",
                  tensor_error());
    Tensor *one = tensor_ones(SCALAR);
    RMSNorm *const norms[] = {b->norm1, b->norm2, b->norm3, b->norm4};
    for (int i = 0; i < 4 && model == GEMMA2; i++) tensor_add_(norms[i]->weight, one, 1);
    tensor_release(one);
}

CASE("llama")
/* The numbers of generate_llama.py. */
LOOP_TEST(a_block_is_transformers, 2 * MODELS) {
    const int model = _i / 2;
    TensorDict *file = golden(_i % 2 ? F64 : F32);
    const double most = _i % 2 ? 1e-12 : 1e-5;
    Block *b = block_new(model);
    load_block(b, model, file);
    const char *data = format("data.%s.", model_name[model]);
    Tensor *x = ag_requires_grad(tensor_clone(tensor_dict_get(file, path_of(data, "x", ""))));
    tape_begin();
    Tensor *y = model == GEMMA2 ? gemma2_forward(b, x)
                                : block_forward(b, x, NULL, (AttentionMask){.causal = true});
    expect_close("y", y, tensor_dict_get(file, path_of(data, "y", "")), most);
    ck_assert(ag_backward_from(y, tensor_dict_get(file, path_of(data, "dy", ""))));
    tape_end();
    expect_close("dx", x->grad, tensor_dict_get(file, path_of(data, "dx", "")), most);
    int parameters = 0;
    for (ModuleSlot *p = NULL; nn_next_parameter(b, "", &p); parameters++) {
        char name[64];
        nn_parameter_path(b, p, name, sizeof name);
        const Tensor *want =
            tensor_dict_get(file, format("gradient.%s.%s", model_name[model], name));
        expect_close(name, (*p->slot)->grad, want, most);
    }
    ck_assert_int_eq(parameters, model == LLAMA ? 9 : 11);
    tensor_release(x);
    nn_free(b);
    tensor_dict_free(file);
}

/* ---- a model that writes ----------------------------------------------------------------------
 */

typedef struct {
    Module module;
    Embedding *embedding;
    Block *layer[LAYERS];
    RMSNorm *norm;
    Linear *head;
} Model;

/* Qwen3, of which the second layer has a sliding window. */
static Model *model_new(TensorDict *file) {
    static const ModuleClass kind = {"Model", sizeof(Model), NULL, NULL};
    Model *m = nn_module_new(&kind);
    m->embedding = nn_add_child(m, "embed_tokens", nn_embedding_new(VOCABULARY, C));
    m->layer[0] = nn_add_child(m, "layers0", block_new(QWEN3));
    m->layer[1] = nn_add_child(m, "layers1", block_new(QWEN3));
    m->norm = norm(m, "norm", C);
    m->head = linear(m, "lm_head", C, VOCABULARY);
    ck_assert(tensor_dict_rename(file, "lm.model.layers.", "lm.model.layers"));
    ck_assert(tensor_dict_rename(file, "lm.model.", "lm."));
    rename_block(file, "lm.layers0.");
    rename_block(file, "lm.layers1.");
    ck_assert_msg(nn_load_state_dict(m, "lm.", file), "%s", tensor_error());
    return m;
}

/* tokens: (B, N), which follow what the caches hold -> the scores of the last one (B, V) */
static Tensor *model_forward(Model *m, Tensor *tokens, KVCache **cache, AttentionMask mask) {
    Tensor *x = nn_embedding_forward(m->embedding, tokens);
    for (int i = 0; i < LAYERS; i++) x = block_forward(m->layer[i], x, cache[i], mask);
    return nn_linear_forward(m->head, ag_select(nn_rms_norm_forward(m->norm, x), 1, -1));
}

/* Two prompts, of which the second is padded with 0 on the left, at once or token by token; with
 * positions that are counted from the first token of a text, or in which the padding counts. */
LOOP_TEST(a_padded_batch_writes_what_transformers_writes, 8) {
    const bool double_ = _i & 1, at_once = _i & 2, positions = _i & 4;
    TensorDict *file = golden(double_ ? F64 : F32);
    Model *m = model_new(file);
    KVCache *cache[LAYERS] = {nn_kv_cache_new(14), nn_kv_cache_window_new(WINDOW)};
    Tensor *text = tensor_dict_get(file, "data.lm.text");     /* (2, 6 + 8) */
    Tensor *logits = tensor_dict_get(file, "data.lm.logits"); /* (2, 8, V) */
    int64_t live = 0;
    for (int64_t n = at_once ? 6 : 1, from = 0; n < 14; n++) {
        tape_begin_no_grad();
        Tensor *keep = ag_logical_not(ag_eq_scalar(ag_slice(text, 1, 0, n), 0));
        Tensor *count = ag_clamp_min(ag_add_scalar(ag_cumsum(ag_to(keep, I64), 1), -1), 0);
        const AttentionMask mask = {.keep = ag_reshape(keep, SHAPE(2, 1, 1, n))};
        for (int i = 0; i < LAYERS; i++)
            cache[i]->positions = positions ? ag_slice(count, 1, from, n) : NULL;
        Tensor *scores = model_forward(m, ag_slice(text, 1, from, n), cache, mask);
        ck_assert_msg(scores != NULL, "%s", tensor_error());
        if (n >= 6) {
            expect_close("the scores", scores, ag_select(logits, 1, n - 6), double_ ? 1e-12 : 2e-5);
            Tensor *next = ag_argmax(scores, 1);
            ck_assert(tensor_allclose(next, ag_select(text, 1, n), 0, 0));
        }
        tape_end();
        from = n;
        ck_assert_int_le(cache[1]->keys->shape.dim[2], at_once && n == 6 ? 6 : WINDOW);
        if (n == 7) live = tensor_live();
        if (n > 7) ck_assert_int_eq(tensor_live(), live);
    }
    nn_kv_cache_free(cache[0]);
    nn_kv_cache_free(cache[1]);
    nn_free(m);
    tensor_dict_free(file);
}

/* ---- the cache ---------------------------------------------------------------------------------
 */

enum { B = 2, N = 7 };
static const AttentionMask none = {0};

static MultiHeadAttention *attention_new(bool fused, bool rope) {
    MultiHeadAttention *a = nn_multi_head_attention_new(
        (MultiHeadAttentionConfig){C, H, 0, true, C, C, C, fused, G, D});
    if (rope) ck_assert(nn_multi_head_attention_rope(a, 100, ROPE_ADJACENT));
    return a;
}

/* Fed in parts of 3, 1, 2 and 1 positions, attention with a cache computes what it computes for all
 * positions at once: with and without fused, rope and a type of 4 bytes, and in a second text. */
LOOP_TEST(the_cache_changes_no_result, 8) {
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
            Tensor *y = nn_multi_head_attention_forward_cached(attention, ag_slice(x, 1, from, to),
                                                               cache, none);
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

/* Rows from `from` on and the keys before `to` of a part of a mask for N queries and N keys. */
static Tensor *rows_of(Tensor *part, int64_t from, int64_t to) {
    return part ? ag_slice(ag_slice(part, -2, from, to), -1, 0, to) : NULL;
}

enum { KEEP = 1, LENGTHS = 2, ROW_LENGTHS = 4, BIAS = 8, FLOATS = 16, ALL_MASKS = 27 };

/* A mask of these parts for N queries and N keys; it belongs to the open tape. */
static AttentionMask mask_of(int parts) {
    AttentionMask mask = {.causal = true};
    const int64_t lens[B] = {5, 3};
    if (parts & KEEP) mask.keep = tape_own(tensor_bernoulli(0.6, SHAPE(B, 1, N, N)));
    if (parts & LENGTHS) mask.valid_lens = tape_own(tensor_from_int64s(SHAPE(B), lens));
    if (parts & ROW_LENGTHS) mask.valid_lens = tape_own(tensor_randint(0, N, SHAPE(B, N)));
    if (parts & BIAS) mask.bias = tape_own(tensor_randn(SHAPE(H, N, N)));
    if (parts & FLOATS) mask.window = tape_own(tensor_randn(SHAPE(2, N, N)));
    return mask;
}

/* With a mask, and with a sliding window (of 3), the cache changes no result either. */
LOOP_TEST(a_mask_is_for_all_that_the_cache_has_seen, 28) {
    static const int parts[] = {0, KEEP, LENGTHS, ROW_LENGTHS, BIAS, FLOATS, ALL_MASKS};
    const int part_of_mask = parts[_i / 4];
    const bool sliding = _i & 1;
    MultiHeadAttention *attention = attention_new(_i & 2, true);
    KVCache *cache = sliding ? nn_kv_cache_window_new(3) : nn_kv_cache_new(N);
    Tensor *x = tensor_randn(SHAPE(B, N, C));
    tape_begin_no_grad();
    const AttentionMask mask = mask_of(part_of_mask);
    AttentionMask whole = mask;
    Tensor *last = ag_triu(tape_own(tensor_ones_of(SHAPE(N, N), BOOL)), -2);
    if (sliding) whole.keep = mask.keep ? ag_logical_and((Tensor *)mask.keep, last) : last;
    Tensor *all = nn_multi_head_attention_forward(attention, x, x, x, whole);
    for (int64_t from = 0, part = 0; from < N; part++) {
        const int64_t to = from + (int64_t[]){3, 1, 2, 1}[part];
        AttentionMask seen = {.keep = rows_of((Tensor *)mask.keep, from, to),
                              .bias = rows_of(mask.bias, from, to),
                              .window = rows_of((Tensor *)mask.window, from, to),
                              .valid_lens = mask.valid_lens};
        if (part_of_mask & ROW_LENGTHS)
            seen.valid_lens = ag_slice((Tensor *)mask.valid_lens, 1, from, to);
        Tensor *y = nn_multi_head_attention_forward_cached(attention, ag_slice(x, 1, from, to),
                                                           cache, seen);
        expect_close("a part", y, ag_slice(all, 1, from, to), 1e-12);
        from = to;
    }
    tape_end();
    tensor_release(x);
    nn_kv_cache_free(cache);
    nn_free(attention);
}

/* The cache of a window has the size of the window, however long the text is. */
TEST(a_window_forgets) {
    MultiHeadAttention *attention = attention_new(true, true);
    KVCache *cache = nn_kv_cache_window_new(WINDOW);
    Tensor *x = tensor_randn(SHAPE(B, 60, C));
    for (int text = 0; text < 2; text++) {
        int64_t live = 0;
        cache->length = 0;
        for (int64_t n = 9; n <= 60; n++) {
            tape_begin_no_grad();
            Tensor *part = ag_slice(x, 1, cache->length, n);
            ck_assert(nn_multi_head_attention_forward_cached(attention, part, cache, none) != NULL);
            tape_end();
            ck_assert_int_eq(cache->length, n);
            if (n == 10) live = tensor_live();
            if (n < 10) continue;
            ck_assert_int_eq(tensor_live(), live);
            ck_assert(shape_equal(cache->keys->shape, SHAPE(B, G, WINDOW, D)));
            ck_assert(shape_equal(cache->values->shape, SHAPE(B, G, WINDOW, D)));
            ck_assert_int_eq(cache->keys->storage->size, B * G * WINDOW * D * 8);
        }
    }
    cache->length = 20;
    tape_begin_no_grad();
    FAILS(nn_multi_head_attention_forward_cached(attention, ag_slice(x, 1, 0, 1), cache, none),
          "multi_head_attention: the cache has a window and cannot go from position 60 to 20: only "
          "to 0");
    tape_end();
    tensor_release(x);
    nn_kv_cache_free(cache);
    nn_free(attention);
}

/* Prompts of 4 and 2 positions, of which the second is padded on the right, and 3 more positions:
 * each sample has what it has alone. */
LOOP_TEST(positions_jump_over_padding, 2) {
    static const int64_t place[B][N] = {{0, 1, 2, 3, 4, 5, 6}, {0, 1, 1, 1, 2, 3, 4}};
    static const bool padding[B][N] = {{0}, {0, 0, 1, 1}};
    MultiHeadAttention *attention = attention_new(_i, true);
    KVCache *cache = nn_kv_cache_new(N);
    Tensor *x = tensor_randn(SHAPE(B, N, C));
    tape_begin_no_grad();
    Tensor *positions = tape_own(tensor_from_int64s(SHAPE(B, N), place[0]));
    Tensor *keep = ag_logical_not(tape_own(tensor_from_bools(SHAPE(B, 1, 1, N), padding[0])));
    Tensor *first = ag_slice(x, 0, 0, 1);
    Tensor *second = ag_slice(x, 0, 1, 2);
    Tensor *parts[] = {ag_slice(second, 1, 0, 2), ag_slice(second, 1, 4, N)};
    second = ag_cat(parts, 2, 1); /* (1, 5, C) */
    const AttentionMask causal = {.causal = true};
    Tensor *y1 = nn_multi_head_attention_forward(attention, first, first, first, causal);
    Tensor *y2 = nn_multi_head_attention_forward(attention, second, second, second, causal);
    for (int64_t n = 4, from = 0; n <= N; from = n++) {
        cache->positions = ag_slice(positions, 1, from, n);
        Tensor *y = nn_multi_head_attention_forward_cached(
            attention, ag_slice(x, 1, from, n), cache,
            (AttentionMask){.keep = ag_slice(keep, 3, 0, n)});
        expect_close("the first", ag_select(ag_select(y, 0, 0), 0, -1),
                     ag_select(ag_select(y1, 0, 0), 0, n - 1), 1e-12);
        if (n > 4)
            expect_close("the second", ag_select(ag_select(y, 0, 1), 0, -1),
                         ag_select(ag_select(y2, 0, 0), 0, n - 3), 1e-12);
    }
    tape_end();
    tensor_release(x);
    nn_kv_cache_free(cache);
    nn_free(attention);
}

/* Only the first call reads keys and values: later ones get others of that shape. */
LOOP_TEST(cross_attention_projects_its_keys_once, 2) {
    MultiHeadAttention *attention = attention_new(_i, false);
    KVCache *cache = nn_kv_cache_new(N);
    Tensor *x = tensor_randn(SHAPE(B, 4, C));
    for (int text = 0; text < 2; text++) {
        Tensor *k = tensor_randn(SHAPE(B, N, C));
        Tensor *v = tensor_randn(SHAPE(B, N, C));
        Tensor *other = tensor_zeros_like(k);
        cache->length = 0;
        tape_begin_no_grad();
        const AttentionMask mask = {.valid_lens = mask_of(LENGTHS).valid_lens,
                                    .bias = rows_of(mask_of(BIAS).bias, 0, N)};
        for (int64_t i = 0; i < 4; i++) {
            Tensor *q = ag_slice(x, 1, i, i + 1);
            const AttentionMask row = {.valid_lens = mask.valid_lens,
                                       .bias = ag_slice(mask.bias, 1, i, i + 1)};
            Tensor *want = nn_multi_head_attention_forward(attention, q, k, v, row);
            Tensor *y = nn_multi_head_attention_forward_cross(attention, q, i ? other : k,
                                                              i ? other : v, cache, row);
            expect_close("a query", y, want, 1e-12);
            ck_assert_int_eq(cache->length, N);
        }
        tape_end();
        RELEASE(k, v, other);
    }
    tensor_release(x);
    nn_kv_cache_free(cache);
    nn_free(attention);
}

/* base^(-2 i / D) / factor; a block of Llama above has the speeds of Llama 3.1. */
TEST(the_speeds_of_pairs) {
    Tensor *speeds = tensor_rope_linear(6, 1000, 4);
    Tensor *want = tensor_from_doubles(SHAPE(3), (double[]){0.25, 0.025, 0.0025});
    Tensor *none_scaled = tensor_rope_llama3(6, 1000, 4, 1e-9, 2e-9, 64);
    Tensor *all_scaled = tensor_rope_llama3(6, 1000, 4, 1e8, 2e8, 64);
    expect_close("linear", speeds, want, 1e-15);
    expect_close("all of them", all_scaled, want, 1e-15);
    tensor_mul_(want, 4);
    expect_close("none of them", none_scaled, want, 1e-15);
#define MUST_BE "D must be even, because pairs turn, and the others positive and finite"
    FAILS(tensor_rope_linear(-2, 10, 1), "rope_linear: D is -2, base 10 and factor 1: " MUST_BE);
    FAILS(tensor_rope_linear(4, 10, 0), "rope_linear: D is 4, base 10 and factor 0: " MUST_BE);
    FAILS(tensor_rope_linear(4, (double)NAN, 1),
          "rope_linear: D is 4, base nan and factor 1: " MUST_BE);
    FAILS(tensor_rope_llama3(4, 10, 8, 4, 1, 64),
          "rope_llama3: factor is 8, low 4, high 1 and context 64: factor and context must be "
          "positive, and low below high");
    FAILS(tensor_rope_llama3(3, 10, 8, 1, 4, 64),
          "rope_linear: D is 3, base 10 and factor 1: " MUST_BE);
    RELEASE(speeds, want, none_scaled, all_scaled);
}

TEST(a_wrong_mask_or_position_is_named) {
    MultiHeadAttention *attention = attention_new(true, true);
    MultiHeadAttention *plain = attention_new(true, false);
    KVCache *cache = nn_kv_cache_new(5);
    KVCache *cross = nn_kv_cache_new(3);
    Tensor *x = tensor_randn(SHAPE(B, 3, C));
    Tensor *speeds = tensor_ones(SHAPE(3));
    Tensor *keep = tensor_ones_of(SHAPE(B, 1, 1, 3), BOOL);
    Tensor *back = tensor_from_int64s(SHAPE(3), (int64_t[]){4, 5, 3});
    Tensor *three = tensor_from_int64s(SHAPE(1), (int64_t[]){3});
    Tensor *four = tensor_from_int64s(SHAPE(B, 1), (int64_t[]){9, 4});
    Tensor *forward = tensor_from_int64s(SHAPE(3), (int64_t[]){4, 4, 7});
    const AttentionMask mask = {.keep = keep};
    FAILS(nn_kv_cache_window_new(0), "kv_cache: window is 0: it must be positive");
    FAILS(nn_multi_head_attention_rope_speeds(attention, speeds, ROPE_HALVES),
          "multi_head_attention: the speeds are (3,): they must be (head_size / 2), here (4,)");
    FAILS(nn_multi_head_attention_rope_speeds(attention, NULL, ROPE_HALVES),
          "multi_head_attention: the speeds are NULL: they must be (head_size / 2), here (4,)");
    tape_begin_no_grad();
    Tensor *one = ag_slice(x, 1, 0, 1);
#define GO_BACK                                                                                    \
    "multi_head_attention: the positions go back: in a row none may be smaller than the one "      \
    "before, nor than the last that the cache has seen"
    cache->positions = back;
    FAILS(nn_multi_head_attention_forward_cached(attention, x, cache, none), GO_BACK);
    cache->positions = three;
    FAILS(nn_multi_head_attention_forward_cached(attention, x, cache, none),
          "rope: x is (2, 4, 3, 8) and positions is (1,): it must be (N) or (B, N), here (3,) or "
          "(2, 3)");
    cache->positions = forward;
    ck_assert(nn_multi_head_attention_forward_cached(attention, x, cache, mask) != NULL);
    cache->positions = three;
    FAILS(nn_multi_head_attention_forward_cached(attention, one, cache, none), GO_BACK);
    cache->positions = four;
    FAILS(nn_multi_head_attention_forward_cached(attention, one, cache, none), GO_BACK);
    FAILS(nn_multi_head_attention_forward_cached(attention, one, cache, mask),
          "multi_head_attention: keep is (2, 1, 1, 3): it must broadcast to (B, H, Q, K), here (2, "
          "4, 1, 4)");
    FAILS(nn_multi_head_attention_forward_cross(attention, x, x, x, cross, none),
          "multi_head_attention: cross-attention with a cache has no rope");
    FAILS(nn_multi_head_attention_forward_cross(plain, x, x, x, NULL, none),
          "multi_head_attention: the cache is NULL");
    ck_assert(nn_multi_head_attention_forward_cross(plain, x, x, x, cross, mask) != NULL);
    FAILS(nn_multi_head_attention_forward_cross(plain, x, NULL, x, cross, none),
          "multi_head_attention: keys are NULL");
    FAILS(nn_multi_head_attention_forward_cached(plain, one, cross, none),
          "multi_head_attention: the cache is one of cross-attention");
    FAILS(
        nn_multi_head_attention_forward_cross(plain, x, x, x, cross, (AttentionMask){.keep = four}),
        "multi_head_attention: keep is int64: it must be bool; convert it with ag_to");
    ck_assert_int_eq(cache->length, 3);
    ck_assert_int_eq(cross->length, 3);
    tape_end();
    nn_kv_cache_free(cache);
    nn_kv_cache_free(cross);
    RELEASE(x, speeds, keep, back, three, four, forward);
    nn_free(attention);
    nn_free(plain);
}

/* Positions that are turned together change no score: it depends on their distance. */
TEST(rope_in_attention_knows_distances_alone) {
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

TEST(a_wrong_cache_is_named) {
    MultiHeadAttention *attention = attention_new(true, true);
    MultiHeadAttention *other = attention_new(true, true);
    KVCache *cache = nn_kv_cache_new(4);
    KVCache *without_room = nn_kv_cache_new(0);
    Tensor *x = tensor_randn(SHAPE(2, 3, C));
    Tensor *alone = tensor_randn(SHAPE(1, 1, C));
    Tensor *flat = tensor_randn(SHAPE(3, C));
    FAILS(nn_kv_cache_new(-1), "kv_cache: capacity is -1: it must not be negative");
    FAILS(nn_multi_head_attention_rope(NULL, 1, ROPE_HALVES),
          "multi_head_attention: the module is NULL");
    tape_begin();
    FAILS(nn_multi_head_attention_forward_cached(attention, x, cache, none),
          "multi_head_attention: a cache has no gradient: call forward_cached on a tape of "
          "tape_begin_no_grad");
    tape_end();
    tape_begin_no_grad();
    FAILS(nn_multi_head_attention_forward_cached(attention, x, NULL, none),
          "multi_head_attention: the cache is NULL");
    FAILS(nn_multi_head_attention_forward_cached(attention, x, without_room, none),
          "multi_head_attention: the cache holds 0 of at most 0 positions: 3 more do not fit");
    FAILS(nn_multi_head_attention_forward_cached(NULL, x, cache, none),
          "multi_head_attention: the module is NULL");
    FAILS(nn_multi_head_attention_forward_cached(attention, NULL, cache, none),
          "multi_head_attention: queries are NULL");
    FAILS(nn_multi_head_attention_forward_cached(attention, flat, cache, none),
          "multi_head_attention: queries are (3, 16): they need three dimensions (batch, number, "
          "size)");
    ck_assert_int_eq(cache->length, 0);
    ck_assert_ptr_nonnull(nn_multi_head_attention_forward_cached(attention, x, cache, none));
    FAILS(nn_multi_head_attention_forward_cached(attention, x, cache, none),
          "multi_head_attention: the cache holds 3 of at most 4 positions: 3 more do not fit");
    FAILS(nn_multi_head_attention_forward_cached(attention, alone, cache, none),
          "multi_head_attention: the cache is float64 (2, 2, 4, 8) and must be float64 (1, 2, 4, "
          "8): it is of another batch");
    FAILS(nn_multi_head_attention_forward_cached(other, x, cache, none),
          "multi_head_attention: the cache is of another attention: each needs one of its own");
    ck_assert_int_eq(cache->length, 3);
    Tensor *y = nn_multi_head_attention_forward(attention, x, x, x, (AttentionMask){0});
    ck_assert_ptr_nonnull(y); /* without the cache again */
    ck_assert_int_eq(cache->length, 3);
    tape_end();
    tensor_fail("the first error");
    ck_assert_ptr_null(nn_kv_cache_new(1));
    ck_assert_ptr_null(nn_multi_head_attention_forward_cached(attention, x, cache, none));
    expect_error("the first error");
    nn_kv_cache_free(NULL);
    nn_kv_cache_free(cache);
    nn_kv_cache_free(without_room);
    RELEASE(x, alone, flat);
    nn_free(attention);
    nn_free(other);
}

/* What is wrong is refused where it is set, and the positions that were set before stay. */
TEST(a_rope_that_is_refused_changes_nothing) {
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
          "multi_head_attention: the size of a head is 3: it must be even, because pairs turn");
    ck_assert(!odd->place && !odd->rope_speeds);
    tape_end();
    tensor_release(x);
    nn_free(attention);
    nn_free(odd);
}

/* The first forward of an empty cache decides its batch, if it succeeds. */
TEST(a_forward_that_is_refused_leaves_the_cache_empty) {
    MultiHeadAttention *attention = attention_new(true, false);
    KVCache *cache = nn_kv_cache_new(4);
    Tensor *x = tensor_randn(SHAPE(2, 3, C));
    Tensor *alone = tensor_randn(SHAPE(1, 3, C));
    Tensor *weight = tensor_retain(attention->W_v->weight);
    ck_assert(nn_set_parameter(attention->W_v, &attention->W_v->weight, tensor_ones(SHAPE(1, C))));
    ck_assert(!attention->place);
    FAILS(nn_multi_head_attention_forward_cached(attention, x, NULL, none),
          "multi_head_attention: the cache is NULL");
    ck_assert(!attention->place);
    tape_begin_no_grad();
    ck_assert_ptr_null(nn_multi_head_attention_forward_cached(attention, x, cache, none));
    tensor_clear_error();
    ck_assert(!cache->keys && !cache->values && cache->length == 0);
    ck_assert(nn_set_parameter(attention->W_v, &attention->W_v->weight, weight));
    for (int i = -1; i >= -99; i -= 98) {
        cache->length = i;
        FAILS(nn_multi_head_attention_forward_cached(attention, alone, cache, none),
              format("multi_head_attention: the cache's length is %d: it must not be negative", i));
    }
    cache->length = 99;
    FAILS(nn_multi_head_attention_forward_cached(attention, alone, cache, none),
          "multi_head_attention: the cache holds 99 of at most 4 positions: 3 more do not fit");
    cache->length = 0;
    ck_assert_ptr_nonnull(nn_multi_head_attention_forward_cached(attention, alone, cache, none));
    tape_end();
    nn_kv_cache_free(cache);
    RELEASE(x, alone);
    nn_free(attention);
}

int main(void) { return run_tests("llama"); }
