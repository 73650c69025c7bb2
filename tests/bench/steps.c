/* steps.c - whole training steps: zero_grad, forward, loss, backward, optimizer.
 *
 * steps.py trains each case with PyTorch: with the same sizes, seeds, losses and optimizers. Each
 * case runs in a process of its own, so that its memory can be measured. There are two paths:
 * "composed" holds the weights of attention in memory, "fused" (ag_attention) does not.
 *
 * B batch, Q queries, K keys, C the width, H heads, D = C / H. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Case Case;
typedef struct Training Training;

struct Case {
    const char *name;
    const char *paths; /* "composed fused" */
    void (*make)(Training *t);
    Tensor *(*loss)(Training *t); /* on the open tape; NULL: the case writes, and trains nothing */
    int64_t B, Q, K, C, H;
    double dropout;
    enum { NO_LENGTHS, LENGTHS_3_2, RANDOM_LENGTHS, CAUSAL } mask;
    double clip; /* the largest norm of the gradients; 0: no clipping */
    int layers;  /* of a transformer, and how many tokens it knows */
    int64_t vocabulary;
};

/* What a case trains, made once. */
struct Training {
    const Case *c;
    bool fused;
    void *net;
    Optimizer *optimizer; /* NULL: no parameter moves */
    Tensor *q, *k, *v;    /* inputs */
    Tensor *target;       /* or, for attention alone, the gradient of the result */
    Tensor *lengths;      /* NULL: no mask, or a causal one */
    double operations;    /* of a step: multiplications and additions of its products */
};

static void step(void *training) {
    Training *t = training;
    tape_begin();
    if (t->optimizer) nn_optimizer_zero_grad(t->optimizer);
    else nn_zero_grad(t->net);
    Tensor *loss = t->c->loss(t);
    if (t->optimizer) ag_backward(loss);
    else ag_backward_from(loss, t->target);
    if (t->c->clip > 0) nn_clip_grad_norm(t->net, t->c->clip);
    if (t->optimizer) nn_optimizer_step(t->optimizer);
    tape_end();
}

/* Counts each operation that the result needs once: a masked pair of query and key counts 0, and a
 * repetition that saves memory counts 0. A product of (m, k) and (k, n) has 2 m k n operations, and
 * each of its two gradients has as many, if it is needed. */
static double product(double m, double k, double n, int gradients) {
    return 2 * m * k * n * (1 + gradients);
}

/* The number of pairs of a query and a key that the query may attend to, in all batches. */
static double pairs(const Training *t) {
    const Case *c = t->c;
    if (c->mask == CAUSAL) return (double)c->B * (double)c->Q * (double)(c->Q + 1) / 2;
    double keys = (double)(c->B * c->K);
    for (int64_t i = 0; t->lengths && i < c->B; i++)
        keys -= (double)c->K - tensor_get(t->lengths, i);
    return keys * (double)c->Q;
}

static AttentionMask mask(const Training *t) {
    return (AttentionMask){.valid_lens = t->lengths, .causal = t->c->mask == CAUSAL};
}

/* ---- nw: the notebook's parametric pooling, cell 16 ------------------------------------------ */

typedef struct {
    Module module;
    Tensor *w, *attention_weights;
} NWKernelRegression;
static const ModuleClass nw_class = {"NWKernelRegression", sizeof(NWKernelRegression), NULL, NULL};

/* softmax(-((queries - keys) w)^2 / 2) values */
static Tensor *nw_forward(NWKernelRegression *net, Tensor *queries, Tensor *keys, Tensor *values) {
    int64_t K = keys->shape.dim[1];
    queries = ag_reshape(ag_repeat_interleave(queries, K, 0), SHAPE(-1, K));
    Tensor *scores = ag_scale(ag_square(ag_mul(ag_sub(queries, keys), net->w)), -0.5);
    Tensor *weights = ag_softmax(scores, 1);
    nn_keep_result(net, &net->attention_weights, weights);
    return ag_reshape(ag_bmm(ag_unsqueeze(weights, 1), ag_unsqueeze(values, -1)), SHAPE(-1));
}

static Tensor *nw_loss(Training *t) {
    return ag_sum(ag_mse_loss(nw_forward(t->net, t->q, t->k, t->v), t->target, REDUCE_NONE));
}

/* Each query attends to all points except its own. */
static Tensor *without_diagonal(const Tensor *x, int64_t n) {
    Tensor *y = tensor_empty(SHAPE(n, n - 1));
    for (int64_t i = 0; y && i < n; i++)
        for (int64_t j = 0; j < n - 1; j++)
            ((float *)y->data)[i * (n - 1) + j] = (float)tensor_get(x, j + (j >= i));
    return y;
}

static void nw_make(Training *t) {
    const int64_t n = t->c->Q;
    double y[64];
    Tensor *x = tensor_uniform(0, 5, SHAPE(n));
    Tensor *noise = tensor_normal(0, 0.5, SHAPE(n));
    t->q = tensor_sort(x, NULL);
    for (int64_t i = 0; i < n; i++)
        y[i] = 2 * sin(tensor_get(t->q, i)) + pow(tensor_get(t->q, i), 0.8) + tensor_get(noise, i);
    t->target = tensor_from_doubles(SHAPE(n), y);
    t->k = without_diagonal(t->q, n);
    t->v = without_diagonal(t->target, n);
    tensor_release(x);
    tensor_release(noise);

    NWKernelRegression *net = nn_module_new(&nw_class);
    t->net = net;
    nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
    nn_add_result(net, &net->attention_weights);
    t->optimizer = nn_sgd_new(net, (SGDConfig){.lr = 0.5});
    t->operations = product((double)n, (double)n - 1, 1, 1);
}

/* ---- mha: multi-head attention --------------------------------------------------------------- */

static Tensor *mean_square(Tensor *y) { return ag_mean(ag_square(y)); }

static Tensor *mha_loss(Training *t) {
    return mean_square(nn_multi_head_attention_forward(t->net, t->q, t->k, t->v, mask(t)));
}

static void make_lengths(Training *t) {
    const Case *c = t->c;
    if (c->mask == LENGTHS_3_2) t->lengths = tensor_from_int64s(SHAPE(2), (int64_t[]){3, 2});
    if (c->mask == RANDOM_LENGTHS) t->lengths = tensor_randint(1, c->K + 1, SHAPE(c->B));
}

static void mha_make(Training *t) {
    const Case *c = t->c;
    const int64_t B = c->B, C = c->C;
    make_lengths(t);
    t->net = nn_multi_head_attention_new((MultiHeadAttentionConfig){.num_hiddens = C,
                                                                    .num_heads = c->H,
                                                                    .dropout = c->dropout,
                                                                    .query_size = C,
                                                                    .key_size = C,
                                                                    .value_size = C,
                                                                    .fused = t->fused});
    t->q = tensor_randn(SHAPE(B, c->Q, C));
    t->k =
        c->K == c->Q ? tensor_retain(t->q) : tensor_randn(SHAPE(B, c->K, C)); /* self-attention */
    t->v = tensor_retain(t->k);
    t->optimizer = nn_sgd_new(t->net, (SGDConfig){.lr = 0.01});
    /* W_q, W_k and W_v (their inputs need no gradient), W_o, and two products per pair */
    const double width = (double)C, queries = (double)(B * c->Q), keys = (double)(B * c->K);
    t->operations = product(queries, width, width, 1) + 2 * product(keys, width, width, 1) +
                    product(queries, width, width, 2) + 2 * product(pairs(t), width, 1, 2);
}

/* ---- additive attention ---------------------------------------------------------------------- */

static Tensor *additive_loss(Training *t) {
    return mean_square(nn_additive_attention_forward(t->net, t->q, t->k, t->v, mask(t)));
}

static void additive_make(Training *t) {
    const Case *c = t->c;
    const int64_t B = c->B, query_size = 20, key_size = 24;
    t->net = nn_additive_attention_new(c->C, c->dropout);
    t->q = tensor_randn(SHAPE(B, c->Q, query_size));
    t->k = tensor_randn(SHAPE(B, c->K, key_size));
    t->v = tensor_randn(SHAPE(B, c->K, key_size));
    make_lengths(t);
    tape_begin(); /* a first forward draws the lazy layers */
    additive_loss(t);
    tape_end();
    t->optimizer = nn_sgd_new(t->net, (SGDConfig){.lr = 0.01});
    const double width = (double)c->C, queries = (double)(B * c->Q), keys = (double)(B * c->K);
    t->operations = product(queries, (double)query_size, width, 1) +
                    product(keys, (double)key_size, width, 1) + product(pairs(t), width, 1, 2) +
                    product(pairs(t), (double)key_size, 1, 1);
}

/* ---- sdpa: attention alone ------------------------------------------------------------------- */

/* q, k, v: (B, H, N, D) -> same, softmax(q k' / sqrt(D) + mask) v */
static Tensor *attend(const Training *t, Tensor *q, Tensor *k, Tensor *v, AttentionMask m) {
    if (t->fused) return ag_attention(q, k, v, m, 0);
    Tensor *scores = ag_matmul(q, ag_transpose(k, -2, -1));
    double scale = 1 / sqrt((double)(t->c->C / t->c->H));
    return ag_matmul(ag_attention_weights(scores, scale, m, t->c->H), v);
}

/* The result is not read, so it is let go: PyTorch frees it with its last reference. */
static Tensor *sdpa_result(Training *t) {
    Leaves *leaves = t->net;
    return ag_let_go(attend(t, leaves->x[0], leaves->x[1], leaves->x[2], mask(t)));
}

/* spread: the standard deviation of the queries, and so of the scores */
static void sdpa_spread(Training *t, double spread) {
    const Case *c = t->c;
    const Shape shape = SHAPE(1, c->H, c->Q, c->C / c->H);
    Tensor *q = tensor_normal(0, spread, shape);
    Tensor *k = tensor_randn(shape);
    Tensor *v = tensor_randn(shape);
    t->net = leaves_new(3, (Tensor *[]){q, k, v});
    t->target = tensor_randn(shape);
    t->operations = 2 * product(pairs(t), (double)c->C, 1, 2);
}

static void sdpa_make(Training *t) { sdpa_spread(t, 1); }

/* Most weights are denormal, or 0. */
static void sharp_make(Training *t) { sdpa_spread(t, 32); }

/* ---- gpt: a transformer that predicts the next token, after nanoGPT -------------------------- */

enum { MOST_LAYERS = 4 };

typedef struct {
    Module module;
    LayerNorm *ln1, *ln2;
    Linear *qkv, *proj, *fc, *out;
} Block;
typedef struct {
    Module module;
    Embedding *wte, *wpe; /* for tokens (its weight is also the weight of head) and for places */
    Block *block[MOST_LAYERS];
    LayerNorm *lnf;
    Linear *head;
    Tensor *places; /* 0, 1, 2, ... */
} GPT;
static void gpt_destroy(void *net) { tensor_release(((GPT *)net)->places); }
static const ModuleClass block_class = {"Block", sizeof(Block), NULL, NULL};
static const ModuleClass gpt_class = {"GPT", sizeof(GPT), NULL, gpt_destroy};

static Block *block_new(int64_t C) {
    Block *b = nn_module_new(&block_class);
    b->ln1 = nn_add_child(b, "ln1", nn_layer_norm_new(SHAPE(C)));
    b->ln2 = nn_add_child(b, "ln2", nn_layer_norm_new(SHAPE(C)));
    b->qkv = nn_add_child(b, "qkv", nn_linear_new(C, 3 * C, false));
    b->proj = nn_add_child(b, "proj", nn_linear_new(C, C, false));
    b->fc = nn_add_child(b, "fc", nn_linear_new(C, 4 * C, false));
    b->out = nn_add_child(b, "out", nn_linear_new(4 * C, C, false));
    return nn_module_done(b);
}

/* qkv (B, Q, 3 C) -> (B, H, Q, D): q, k or v for i = 0, 1, 2 */
static Tensor *heads(const Case *c, Tensor *qkv, int i) {
    Tensor *part = ag_slice(qkv, 2, i * c->C, (i + 1) * c->C);
    return ag_transpose(ag_reshape(part, SHAPE(c->B, c->Q, c->H, c->C / c->H)), 1, 2);
}

static Tensor *block_forward(const Training *t, Block *b, Tensor *x) {
    const Case *c = t->c;
    Tensor *qkv = nn_linear_forward(b->qkv, nn_layer_norm_forward(b->ln1, x));
    Tensor *y = attend(t, heads(c, qkv, 0), heads(c, qkv, 1), heads(c, qkv, 2), mask(t));
    y = ag_reshape(ag_transpose(y, 1, 2), SHAPE(c->B, c->Q, c->C));
    x = ag_add(x, nn_linear_forward(b->proj, y));
    y = ag_gelu(nn_linear_forward(b->fc, nn_layer_norm_forward(b->ln2, x)));
    return ag_add(x, nn_linear_forward(b->out, y));
}

static Tensor *gpt_loss(Training *t) {
    const Case *c = t->c;
    GPT *net = t->net;
    Tensor *places = nn_embedding_forward(net->wpe, net->places);
    Tensor *x = ag_add(nn_embedding_forward(net->wte, t->q), places);
    for (int i = 0; i < c->layers; i++) x = block_forward(t, net->block[i], x);
    Tensor *logits = nn_linear_forward(net->head, nn_layer_norm_forward(net->lnf, x));
    logits = ag_reshape(logits, SHAPE(c->B * c->Q, c->vocabulary));
    return ag_cross_entropy(logits, t->target, -100, REDUCE_MEAN);
}

static GPT *gpt_new(const Case *c) {
    GPT *net = nn_module_new(&gpt_class);
    net->wte = nn_add_child(net, "wte", nn_embedding_new(c->vocabulary, c->C));
    net->wpe = nn_add_child(net, "wpe", nn_embedding_new(c->Q, c->C));
    for (int i = 0; i < c->layers; i++)
        net->block[i] = nn_add_child(net, (char[]){'h', (char)('0' + i), '\0'}, block_new(c->C));
    net->lnf = nn_add_child(net, "lnf", nn_layer_norm_new(SHAPE(c->C)));
    net->head = nn_add_child(net, "head", nn_linear_new(c->C, c->vocabulary, false));
    nn_set_parameter(net->wte, &net->wte->weight, tensor_retain(net->head->weight));
    for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p);)
        if ((*p->slot)->shape.ndim > 1) nn_init_normal(*p->slot, 0, 0.02);
    net->places = tensor_arange_of(0, (double)c->Q, 1, I64);
    return nn_module_done(net);
}

static void gpt_make(Training *t) {
    const Case *c = t->c;
    t->net = gpt_new(c);
    t->q = tensor_randint(0, c->vocabulary, SHAPE(c->B, c->Q));
    t->target = tensor_randint(0, c->vocabulary, SHAPE(c->B * c->Q));
    AdamWConfig config = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
    t->optimizer = nn_adamw_new(t->net, config);
    const double width = (double)c->C, tokens = (double)(c->B * c->Q);
    t->operations =
        c->layers * (product(tokens, width, 12 * width, 2) + 2 * product(pairs(t), width, 1, 2)) +
        product(tokens, width, (double)c->vocabulary, 2);
}

/* ---- write: a text of Q tokens, each the most probable one after those before it ---------------
 */

typedef struct {
    Module module;
    LayerNorm *ln1, *ln2;
    MultiHeadAttention *attention;
    Linear *fc, *out;
    KVCache *cache; /* NULL: every step reads the whole text */
} Writer;
typedef struct {
    Module module;
    Embedding *wte, *wpe;
    Writer *block[MOST_LAYERS];
    LayerNorm *lnf;
    Linear *head;
    int64_t *token, *place; /* (Q) */
} Text;
static void writer_destroy(void *block) { nn_kv_cache_free(((Writer *)block)->cache); }
static void text_destroy(void *text) {
    free(((Text *)text)->token);
    free(((Text *)text)->place);
}
static const ModuleClass writer_class = {"Writer", sizeof(Writer), NULL, writer_destroy};
static const ModuleClass text_class = {"Text", sizeof(Text), NULL, text_destroy};

static Writer *writer_new(const Case *c, bool cached) {
    Writer *b = nn_module_new(&writer_class);
    const MultiHeadAttentionConfig config = {c->C, c->H, 0, false, c->C, c->C, c->C, true, 0, 0};
    b->ln1 = nn_add_child(b, "ln1", nn_layer_norm_new(SHAPE(c->C)));
    b->ln2 = nn_add_child(b, "ln2", nn_layer_norm_new(SHAPE(c->C)));
    b->attention = nn_add_child(b, "attention", nn_multi_head_attention_new(config));
    b->fc = nn_add_child(b, "fc", nn_linear_new(c->C, 4 * c->C, false));
    b->out = nn_add_child(b, "out", nn_linear_new(4 * c->C, c->C, false));
    if (cached) b->cache = nn_kv_cache_new(c->Q);
    return nn_module_done(b);
}

static Tensor *writer_forward(Writer *b, Tensor *x) {
    const AttentionMask causal = {.causal = true};
    Tensor *y = nn_layer_norm_forward(b->ln1, x);
    if (b->cache) y = nn_multi_head_attention_forward_cached(b->attention, y, b->cache, causal);
    else y = nn_multi_head_attention_forward(b->attention, y, y, y, causal);
    x = ag_add(x, y);
    y = ag_gelu(nn_linear_forward(b->fc, nn_layer_norm_forward(b->ln2, x)));
    return ag_add(x, nn_linear_forward(b->out, y));
}

/* tokens from to n - 1 -> the most probable next one */
static int64_t next_token(const Case *c, Text *net, int64_t from, int64_t n) {
    tape_begin_no_grad();
    Tensor *tokens = tape_own(tensor_from_int64s(SHAPE(1, n - from), net->token + from));
    Tensor *places = tape_own(tensor_from_int64s(SHAPE(n - from), net->place + from));
    Tensor *x =
        ag_add(nn_embedding_forward(net->wte, tokens), nn_embedding_forward(net->wpe, places));
    for (int i = 0; i < c->layers; i++) x = writer_forward(net->block[i], x);
    x = nn_layer_norm_forward(net->lnf, ag_select(x, 1, -1)); /* (1, C) */
    const int64_t next = (int64_t)tensor_item(ag_argmax(nn_linear_forward(net->head, x), 1));
    tape_end();
    return next;
}

static void write_text(void *training) {
    const Training *t = training;
    Text *net = t->net;
    const bool cached = net->block[0]->cache != NULL;
    for (int i = 0; i < t->c->layers && cached; i++) net->block[i]->cache->length = 0;
    for (int64_t n = 1; n < t->c->Q; n++)
        net->token[n] = next_token(t->c, net, cached ? n - 1 : 0, n);
}

static void text_make(Training *t, bool cached) {
    const Case *c = t->c;
    Text *net = nn_module_new(&text_class);
    t->net = net;
    net->wte = nn_add_child(net, "wte", nn_embedding_new(c->vocabulary, c->C));
    net->wpe = nn_add_child(net, "wpe", nn_embedding_new(c->Q, c->C));
    for (int i = 0; i < c->layers; i++)
        net->block[i] = nn_add_child(net, (char[]){'h', (char)('0' + i), 0}, writer_new(c, cached));
    net->lnf = nn_add_child(net, "lnf", nn_layer_norm_new(SHAPE(c->C)));
    net->head = nn_add_child(net, "head", nn_linear_new(c->C, c->vocabulary, false));
    net->token = calloc((size_t)c->Q, sizeof *net->token);
    net->place = calloc((size_t)c->Q, sizeof *net->place);
    for (int64_t i = 0; i < c->Q; i++) net->place[i] = i;
    const double width = (double)c->C, tokens = (double)(c->Q - 1);
    t->operations = c->layers * (product(tokens, width, 12 * width, 0) +
                                 2 * product(tokens * (tokens + 1) / 2, width, 1, 0)) +
                    product(tokens, width, (double)c->vocabulary, 0);
}

static void write_make(Training *t) { text_make(t, true); }
static void write_whole_make(Training *t) { text_make(t, false); }

/* ---- the table ------------------------------------------------------------------------------- */

#define COMPOSED "composed"
#define BOTH     "composed fused"
static const Case cases[] = {
    /* name paths make loss B Q K C H dropout mask clip layers vocabulary */
    {"nw", COMPOSED, nw_make, nw_loss, 1, 50, 49, 1, 1, 0, NO_LENGTHS, 0, 0, 0},
    {"mha_tiny", BOTH, mha_make, mha_loss, 2, 4, 6, 100, 5, 0.5, LENGTHS_3_2, 0, 0, 0},
    {"mha_small", BOTH, mha_make, mha_loss, 64, 10, 10, 100, 5, 0.1, RANDOM_LENGTHS, 0, 0, 0},
    {"additive", COMPOSED, additive_make, additive_loss, 32, 16, 32, 64, 1, 0.1, RANDOM_LENGTHS, 0,
     0, 0},
    {"mha_medium", BOTH, mha_make, mha_loss, 8, 256, 256, 512, 8, 0, RANDOM_LENGTHS, 0, 0, 0},
    {"mha_large", BOTH, mha_make, mha_loss, 1, 2048, 2048, 768, 12, 0, NO_LENGTHS, 0, 0, 0},
    {"mha_large_causal", BOTH, mha_make, mha_loss, 1, 2048, 2048, 768, 12, 0, CAUSAL, 0, 0, 0},
    {"sharp", BOTH, sharp_make, sdpa_result, 1, 1024, 1024, 512, 8, 0, NO_LENGTHS, 0, 0, 0},
    {"gpt", BOTH, gpt_make, gpt_loss, 12, 64, 64, 128, 4, 0, CAUSAL, 1, 4, 65},
    {"microgpt_16", BOTH, gpt_make, gpt_loss, 16, 16, 16, 16, 4, 0, CAUSAL, 0, 1, 27},
    {"microgpt_64", BOTH, gpt_make, gpt_loss, 16, 16, 16, 64, 4, 0, CAUSAL, 0, 1, 27},
    {"microgpt_128", BOTH, gpt_make, gpt_loss, 16, 16, 16, 128, 4, 0, CAUSAL, 0, 1, 27},
    {"write", "fused", write_make, NULL, 1, 512, 512, 128, 4, 0, CAUSAL, 0, 4, 65},
    {"write_whole", "fused", write_whole_make, NULL, 1, 512, 512, 128, 4, 0, CAUSAL, 0, 4, 65},
};
/* This case runs for each of --lengths; Q and K are the length. */
static const Case sdpa = {"sdpa", BOTH, sdpa_make, sdpa_result, 1, 0, 0,
                          512,    8,    0,         NO_LENGTHS,  0, 0, 0};

static void training_free(Training *t) {
    Tensor *held[] = {t->q, t->k, t->v, t->target, t->lengths};
    for (int i = 0; i < 5; i++) tensor_release(held[i]);
    nn_free(t->optimizer);
    nn_free(t->net);
}

static Training training_new(const Case *c, bool fused) {
    Training t = {.c = c, .fused = fused};
    tensor_manual_seed(0);
    c->make(&t);
    return t;
}

/* Prints the error, if there is one. Returns the exit status. */
static int result_of(const char *name) {
    if (tensor_error()) fprintf(stderr, "%s: %s\n", name, tensor_error());
    return tensor_error() != NULL;
}

static int run(const Options *o, const Case *c, const char *path) {
    const double base = peak_memory();
    Training t = training_new(c, strcmp(path, "fused") == 0);
    Timing timing = measure(o, F32, c->loss ? step : write_text, &t);
    const double share = t.operations / (timing.possible * o->threads);
    char name[64];
    snprintf(name, sizeof name, c->name == sdpa.name ? "%s_%d" : "%s", c->name, (int)c->Q);
    print_text(o, "case", 16, name);
    print_text(o, "path", 8, path);
    print_text(o, "isa", 8, isa());
    print_number(o, "threads", 7, 0, o->threads);
    print_number(o, "median_us", 11, 2, timing.median);
    print_number(o, "p10_us", 11, 2, timing.p10);
    print_number(o, "min_us", 11, 2, timing.min);
    print_number(o, "mflop", 9, 2, t.operations / 1e6);
    print_number(o, "gflop_s", 7, 1, t.operations / timing.median / 1e3);
    print_number(o, "peak_pct", 8, 1, 100 * share);
    print_number(o, "memory_mb", 9, 1, peak_memory() - base);
    print_number(o, "allocations", 11, 0, (double)timing.allocations);
    print_end(o);
    training_free(&t);
    return result_of(name);
}

/* Runs a case in a process of its own. */
static int run_alone(const Options *o, const Case *c, const char *path) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) exit(run(o, c, path));
    if (child < 0 || waitpid(child, &status, 0) != child) perror("steps");
    print_header(false);
    return status != 0;
}

static int run_paths(const Options *o, const Case *c) {
    int failed = 0;
    for (const char *path = "composed"; path; path = strcmp(path, "fused") ? "fused" : NULL)
        if (strstr(c->paths, path) && (!*o->path || strcmp(o->path, path) == 0))
            failed |= run_alone(o, c, path);
    return failed;
}

/* ---- startup: from exec to the end of the first step of mha_tiny ----------------------------- */

enum { STARTS = 51 };

/* Writes the time at which the first step was done. */
static int first_step(void) {
    Training t = training_new(&cases[1], false);
    step(&t);
    const double done = clock_us(false);
    fwrite(&done, sizeof done, 1, stdout);
    training_free(&t);
    return result_of("startup");
}

static double start_once(const char *program) {
    int ends[2];
    double done = (double)NAN; /* no answer */
    if (pipe(ends)) return done;
    double start = clock_us(false);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", program, "--first-step", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    if (read(ends[0], &done, sizeof done) != sizeof done) done = (double)NAN;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return done - start;
}

static int startup(const Options *o, const char *program) {
    double us[STARTS];
    for (int i = 0; i < STARTS; i++) {
        us[i] = start_once(program);
        if (isnan(us[i])) return fprintf(stderr, "startup: no answer\n");
    }
    qsort(us, STARTS, sizeof *us, ascending);
    print_text(o, "case", 16, "startup");
    print_text(o, "path", 8, "composed");
    print_number(o, "threads", 7, 0, o->threads);
    print_number(o, "median_us", 11, 2, us[STARTS / 2]);
    print_number(o, "p10_us", 11, 2, us[STARTS / 10]);
    print_number(o, "min_us", 11, 2, us[0]);
    print_end(o);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--first-step") == 0) return first_step();
    Options o = options_read(argc, argv,
                             "steps [--json] [--cpu-time] [--threads N] [--seconds S]\n"
                             "       [--path composed|fused] [--lengths 256,512,...] [CASE...]");
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (chosen(&o, cases[i].name)) failed |= run_paths(&o, &cases[i]);
    const char *length = o.lengths;
    while (chosen(&o, sdpa.name) && *length) {
        Case c = sdpa;
        c.K = strtol(length, (char **)&length, 10);
        c.Q = c.K;
        if (*length == ',') length++;
        failed |= run_paths(&o, &c);
    }
    if (chosen(&o, "startup") && startup(&o, argv[0])) failed = 1;
    return failed;
}
