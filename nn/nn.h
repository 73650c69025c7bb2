/* nn.h - modules, attention, optimizers. nn/ uses only the public headers of autograd/ and tensor/,
 * so you could have written everything here yourself.
 *
 * You own the result of nn_*_new: nn_free it. nn_*_forward lends its result, like the ops that it
 * calls: the open tape owns it. Errors work as in tensor.h. An error inside a forward function
 * begins with the path of the innermost module: "encoder.layers.0.W_q: linear: x is (1, 3, 5):
 * ...". */
#ifndef TAPEHEAD_NN_H
#define TAPEHEAD_NN_H

#include "../autograd/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules ----------------------------------------------------------------------------- */

/* A module is a struct that begins with a Module. The functions here take a module as a void *,
 * and accept NULL while an error is pending. An Optimizer also begins with a Module, for nn_print
 * and nn_free only. */
typedef struct Module Module;

/* The class of a module. */
typedef struct {
    const char *name; /* "Linear", as nn_print shows it */
    size_t size;      /* of the whole struct */
    /* Writes "in_features=2, out_features=3"; NULL if there are no settings. */
    void (*print_settings)(const void *module, FILE *file);
    /* Frees memory other than parameters, kept results and children; NULL if there is none. */
    void (*destroy)(void *module);
} ModuleClass;

#define NN_NAME_SIZE 32

typedef struct ModuleSlot {
    char name[NN_NAME_SIZE]; /* of a parameter; "" for a kept result */
    Tensor **slot; /* the field of the module that holds the tensor; *slot is NULL without one */
    bool frozen;   /* by nn_freeze */
    /* The shape of a lazy parameter, NN_LAZY for a size that is not known yet; ndim -1: any
     * shape. */
    Shape lazy;
    Module *module;          /* the module that has the field */
    struct ModuleSlot *next; /* of the same module */
} ModuleSlot;

struct Module {
    const ModuleClass *kind;
    bool training;           /* true for a new module */
    bool is_optimizer;       /* no model: for nn_print and nn_free only */
    char name[NN_NAME_SIZE]; /* among the children of its parent; "" at the root */
    Module *parent;          /* frees this module; NULL at the root */
    Module *children, *next; /* the first child; the next child of the parent */
    ModuleSlot *slots; /* a list in the order of registration, as in PyTorch: parameters, and fields
                          that hold kept results, attention weights for example */
};

/* Your own module, in six lines:
 *
 *     typedef struct { Module module; Tensor *w; } Net;
 *     static const ModuleClass net_class = {"Net", sizeof(Net), NULL, NULL};
 *     Net *net = nn_module_new(&net_class);
 *     if (!net) return NULL;
 *     nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
 *     return nn_module_done(net);
 */
void *nn_module_new(const ModuleClass *kind); /* zeroed; NULL on error */
/* Ends a constructor: returns the module or, if an error is pending, frees it with everything that
 * it has taken over, and returns NULL. The lines before need no checks. */
void *nn_module_done(void *module);

/* These functions take over the reference or the child, also when they fail. A name has 1 to 31
 * bytes, no dot among them, and is unique in its module. */

/* slot: a field of the module, which then holds value. value becomes a parameter: it requires a
 * gradient, and an optimizer writes it in place, so it must not be expanded. value may be NULL if
 * no error is pending: the parameter is lazy, and nn_set_parameter sets it later. */
bool nn_add_parameter(void *module, const char *name, Tensor **slot, Tensor *value);
bool nn_set_parameter(void *module, Tensor **slot, Tensor *value);
/* A lazy parameter with this shape, where NN_LAZY stands for a size that is not known yet. nn_load
 * accepts only this shape. */
bool nn_add_lazy_parameter(void *module, const char *name, Tensor **slot, Shape shape);
/* Returns the child; NULL on error. A child has one parent. */
void *nn_add_child(void *module, const char *name, void *child);

/* A field for a result that outlives the tape. nn_keep_result retains value and releases the old
 * one. If value is NULL, after an error, nothing changes. */
bool nn_add_result(void *module, Tensor **slot);
bool nn_keep_result(void *module, Tensor **slot, Tensor *value);

/* Frees a module with its children, parameters and kept results. NULL is fine. A child is freed
 * with its parent; nn_free of a child is an error that changes nothing. */
void nn_free(void *module);
/* Sets training mode (dropout is on) or evaluation mode, for the module and all modules below. */
void nn_train(void *module, bool on);
bool nn_print(void *module, FILE *file);   /* the text of Python's print(module), and a newline */
void nn_print_float(double x, FILE *file); /* for print_settings: as Python writes it, 0.1, 1e-05 */
bool nn_zero_grad(void *module);           /* every ->grad becomes NULL */
/* The number of elements of all parameters. A lazy parameter counts 0; a parameter in several
 * fields counts once. -1 on error. */
int64_t nn_num_parameters(void *module);
/* path: "W_q.weight", as in PyTorch's state_dict. A borrowed reference. NULL and an error if there
 * is no such parameter, or if it is lazy. */
Tensor *nn_parameter(void *module, const char *path);
/* Walks over the parameters whose path begins with prefix, in state_dict order, depth first. *p
 * must be NULL at first and becomes the next parameter; at the end the function returns false and
 * *p is NULL. "W_o" leads to "W_o" and "W_o.weight" but not to "W_other.weight"; "" leads to all.
 * Lazy parameters are included; their *p->slot is NULL. You may add parameters during the walk.
 *
 *     for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p);)
 *         if (*p->slot) nn_init_normal(*p->slot, 0, 0.02);
 */
bool nn_next_parameter(void *module, const char *prefix, ModuleSlot **p);
/* Writes "W_q.weight", the path of a parameter from root, into path. False and an error if it is
 * longer than size - 1, or if the parameter is not in the tree of root. */
bool nn_parameter_path(const void *root, const ModuleSlot *parameter, char *path, size_t size);

/* ---- initial values ------------------------------------------------------------------------ */

/* torch.nn.init, the same numbers from the same seed. w is drawn in place. For w (out, in, ...),
 * fan_in is `in` times the product of the later sizes, and fan_out is `out` times this product. A
 * function that needs fan_in accepts no w with fewer than two dimensions. A w without elements
 * draws nothing. torch's defaults are gain 1 and a 0. */
bool nn_init_uniform(Tensor *w, double low, double high);
bool nn_init_normal(Tensor *w, double mean, double std);
/* standard deviation: gain sqrt(2 / (fan_in + fan_out)). Glorot & Bengio 2010 */
bool nn_init_xavier_uniform(Tensor *w, double gain), nn_init_xavier_normal(Tensor *w, double gain);
/* standard deviation: sqrt(2 / (1 + a^2)) / sqrt(fan_in); a: the slope of a leaky ReLU. He et al.
 * 2015 */
bool nn_init_kaiming_uniform(Tensor *w, double a), nn_init_kaiming_normal(Tensor *w, double a);

/* ---- layers -------------------------------------------------------------------------------- */

#define NN_LAZY (-1) /* a size that the first input sets */

typedef struct {
    Module module;
    Tensor *weight, *bias; /* (out, in), (out): U(-1/sqrt(in), 1/sqrt(in)); NULL while lazy; bias is
                              NULL without has_bias */
    int64_t in_features, out_features; /* in_features is NN_LAZY until the first input */
    bool has_bias;
} Linear;
/* in = NN_LAZY: the first forward draws the weight, then the bias, for the last size of its x. */
Linear *nn_linear_new(int64_t in, int64_t out, bool bias);
Tensor *nn_linear_forward(Linear *linear, Tensor *x); /* (..., in) -> (..., out): x W' + b */

typedef struct {
    Module module;
    double p; /* the probability that an element becomes 0, in [0, 1] */
} Dropout;
Dropout *nn_dropout_new(double p);
Tensor *nn_dropout_forward(Dropout *dropout,
                           Tensor *x); /* x itself in evaluation mode or if p = 0 */

typedef struct {
    Module module;
    Tensor *weight; /* (num_embeddings, embedding_dim), N(0, 1) */
} Embedding;
Embedding *nn_embedding_new(int64_t num_embeddings, int64_t embedding_dim);
/* index I64 (...), from 0 to num_embeddings - 1 -> (..., embedding_dim), rows of weight */
Tensor *nn_embedding_forward(Embedding *embedding, Tensor *index);

/* (x - mean) / sqrt(variance + eps) weight + bias over the last dimensions, Ba, Kiros & Hinton
 * 2016. */
typedef struct {
    Module module;
    Tensor *weight, *bias; /* normalized_shape: ones, zeros */
    double eps;            /* 1e-5 unless you set it */
} LayerNorm;
LayerNorm *nn_layer_norm_new(Shape normalized_shape);
Tensor *nn_layer_norm_forward(LayerNorm *norm, Tensor *x); /* (..., normalized_shape) -> same */

/* ---- attention --------------------------------------------------------------------------- */

/* attention_weights are the weights of the last forward that succeeded, before dropout. They
 * outlive the tape, until the next forward or nn_free; retain them if you need them longer.
 *
 * Where masks of other libraries differ: keep is true for a key that counts, key_padding_mask of
 * PyTorch's MultiheadAttention is true for one that is masked (ag_logical_not turns one into the
 * other). The output of a query whose length is 0 is 0; in d2l's masked_softmax it is the mean of
 * all values. With fewer queries than keys, causal starts at the upper left: query i attends to
 * keys 0 to i, as PyTorch's is_causal. */

/* softmax(Q K' / sqrt(d)) V, Vaswani et al. 2017, section 3.2.1. */
typedef struct {
    Module module;
    Dropout *dropout;  /* of the weights */
    int64_t num_heads; /* 1 at first. If you set it to H, the first dimension of q, k and v is B H,
                          the heads of each sample one after the other, and the mask has the batch
                          B */
    Tensor *attention_weights; /* (B, Q, K) */
} DotProductAttention;
DotProductAttention *nn_dot_product_attention_new(double dropout);
/* q (B, Q, D), k (B, K, D), v (B, K, Dv) -> (B, Q, Dv) */
Tensor *nn_dot_product_attention_forward(DotProductAttention *attention, Tensor *q, Tensor *k,
                                         Tensor *v, AttentionMask mask);

/* Scores tanh(q W_q' + k W_k') w_v', Bahdanau et al. 2015. The sizes of queries and keys are lazy;
 * the first forward draws W_q, W_k, w_v in this order. */
typedef struct {
    Module module;
    Linear *W_k, *W_q, *w_v; /* to num_hiddens, num_hiddens, 1; no biases */
    Dropout *dropout;
    Tensor *attention_weights; /* (B, Q, K) */
} AdditiveAttention;
AdditiveAttention *nn_additive_attention_new(int64_t num_hiddens, double dropout);
/* q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv) -> (B, Q, Dv) */
Tensor *nn_additive_attention_forward(AdditiveAttention *attention, Tensor *q, Tensor *k, Tensor *v,
                                      AttentionMask mask);

typedef struct {
    int64_t num_hiddens, num_heads; /* without head_size, num_heads must divide num_hiddens */
    double dropout;
    bool bias;
    /* 0: the first input sets the size. W_o is then lazy and draws last: if all three sizes
     * are 0, the order of draws is q, k, v, o. */
    int64_t query_size, key_size, value_size;
    bool fused; /* with ag_attention: the same numbers in less memory, but no attention_weights */
    /* Of keys and values, as for ag_attention, 0: num_heads; 0: num_hiddens / num_heads. */
    int64_t num_kv_heads, head_size;
} MultiHeadAttentionConfig;

/* Concat(head_1 .. head_h) W_o', head_i = attention(q W_q,i', k W_k,i', v W_v,i'), Vaswani et al.
 * 2017, section 3.2.2. The heads of a sample share its mask, where keep and bias have no sizes for
 * heads. */
typedef struct MultiHeadAttention {
    Module module;
    DotProductAttention *attention; /* all heads at once, as a batch of B * heads */
    Linear *W_q, *W_k, *W_v, *W_o;
    int64_t num_heads, num_kv_heads;
    bool fused, rope_halves;
    /* (B * heads, Q, K), the same as attention->attention_weights, NULL if fused; NULL: no rope */
    Tensor *attention_weights, *rope_speeds;
    /* NULL; or what takes the place of the queries (which is 0), keys (1) and values (2), each (B,
     * heads, N, D), and may change the mask: what is below for positions and caches sets it. */
    Tensor *(*place)(struct MultiHeadAttention *, int which, Tensor *heads, AttentionMask *mask);
    /* NULL, or children of yours, which norm the heads of queries and keys before they turn. Only
     * with rope or a cache. */
    struct RMSNorm *q_norm, *k_norm;
    struct KVCache *cache; /* NULL but in nn_multi_head_attention_forward_cached and _cross */
} MultiHeadAttention;
MultiHeadAttention *nn_multi_head_attention_new(MultiHeadAttentionConfig config);
/* q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv) -> (B, Q, num_hiddens) */
Tensor *nn_multi_head_attention_forward(MultiHeadAttention *attention, Tensor *q, Tensor *k,
                                        Tensor *v, AttentionMask mask);

/* ---- optimizers ---------------------------------------------------------------------------- */

typedef struct Optimizer Optimizer;

/* torch.optim.SGD. With momentum mu: b = g at the first step, then b = mu b + (1 - dampening) g. A
 * step is -lr b, or -lr (g + mu b) with nesterov; without momentum -lr g. g includes weight_decay *
 * theta. */
typedef struct {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
} SGDConfig;

/* You own the optimizer: nn_free it. lr must not be 0, the value of a config without .lr (the lr of
 * a group and the factor of a schedule may be 0). An optimizer borrows the module, which must not
 * be freed before the last step, and trains the parameters that the module has now, lazy ones
 * included, but none that are added later. */
Optimizer *nn_sgd_new(void *module, SGDConfig c);
/* Takes one step for every parameter that has a gradient, in place. All or nothing: on failure no
 * parameter and no state has changed. */
bool nn_optimizer_step(Optimizer *optimizer);
void nn_optimizer_zero_grad(Optimizer *optimizer); /* every ->grad becomes NULL */

/* ==== the rest of the library: not there in a build of the core alone ========================= */
#ifndef TAPEHEAD_CORE

/* ---- AdamW, groups of parameters, frozen parameters ----------------------------------------- */

/* torch.optim.AdamW: Adam with weight decay apart from the gradient, Loshchilov & Hutter 2019,
 * algorithm 2. At a parameter's t-th step
 *     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,  theta -= lr weight_decay theta,
 *     theta -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * beta1, beta2 and eps of 0 mean 0.9, 0.999 and 1e-8. With a weight_decay of 0 AdamW is Adam
 * (Kingma & Ba 2015); torch's default is 0.01. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
} AdamWConfig;
Optimizer *nn_adamw_new(void *module, AdamWConfig c); /* as nn_sgd_new */

/* Gives the parameters at a prefix (see nn_next_parameter) their own learning rate and weight
 * decay. The last call for a parameter counts. It is an error if no parameter has the prefix. A
 * parameter in two fields is in the group of the first field. */
bool nn_optimizer_set_group(Optimizer *optimizer, const char *prefix, double lr, double decay);
/* From the next step on, the learning rate of every group is its lr * factor. A new factor replaces
 * the old one. */
bool nn_optimizer_scale_lr(Optimizer *optimizer, double factor);

/* Freezes the parameters at a prefix (see nn_next_parameter), or ends the freeze. A frozen
 * parameter has requires_grad false and no gradient, so backward, clipping and optimizers ignore
 * it. It is an error if no parameter has the prefix. A lazy parameter can be frozen; its field
 * stays frozen when it gets a value. For a parameter in two fields the last call counts. */
bool nn_freeze(void *module, const char *prefix, bool frozen);

/* ---- rms norm ------------------------------------------------------------------------------- */

/* x / sqrt(mean(x^2) + eps) weight over the last dimensions, Zhang & Sennrich 2019. */
typedef struct RMSNorm {
    Module module;
    Tensor *weight; /* normalized_shape: ones */
    double eps;     /* AG_EPS_OF_TYPE, PyTorch's None, unless you set it */
} RMSNorm;
RMSNorm *nn_rms_norm_new(Shape normalized_shape);
Tensor *nn_rms_norm_forward(RMSNorm *norm, Tensor *x); /* (..., normalized_shape) -> same */

/* ---- positions ------------------------------------------------------------------------------ */

/* Adds P[i, 2j] = sin(i / 10000^(2j / d)), P[i, 2j + 1] = cos(i / 10000^(2j / d)) to the vector of
 * size d = num_hiddens at position i, then applies dropout. Vaswani et al. 2017, section 3.5. */
typedef struct {
    Module module;
    Dropout *dropout; /* of the sum */
    Tensor *P;        /* (1, max_len, num_hiddens), in the default type; no parameter */
} PositionalEncoding;
PositionalEncoding *nn_positional_encoding_new(int64_t num_hiddens, double dropout,
                                               int64_t max_len); /* num_hiddens even */
/* x (B, length, num_hiddens), length <= max_len -> same */
Tensor *nn_positional_encoding_forward(PositionalEncoding *encoding, Tensor *x);

/* From here on the attention's forward functions turn queries and keys by their positions, 0, 1, 2
 * ..., before their product: ag_rope of each head, with this base and these pairs; or
 * ag_rope_speeds with these speeds (head_size / 2), which the attention retains. */
bool nn_multi_head_attention_rope(MultiHeadAttention *attention, double base, RopePairs pairs);
bool nn_multi_head_attention_rope_speeds(MultiHeadAttention *attention, Tensor *speeds,
                                         RopePairs pairs);

/* ---- a cache of keys and values -------------------------------------------------------------- */

/* The keys and values of the positions that one attention has seen, for a model that writes: the
 * next position needs no others. Each attention of a model has a cache of its own. You own it, and
 * it owns its tensors. To begin another text, set length to 0; another batch size, type or module
 * needs another cache. */
typedef struct KVCache {
    int64_t capacity, length; /* how many positions it can hold, and has seen */
    int64_t window, end;      /* 0: no window; length after the last forward */
    const Tensor *positions;  /* of the next x, for rope: NULL, or yours, see below */
    Tensor *seen;             /* I64 (B, 1, capacity, 1): older positions, if they are yours */
    Tensor *keys, *values;    /* (B, num_kv_heads, capacity, D); NULL before the first forward */
    Tensor *next[3];          /* with a window: what these three become */
    const MultiHeadAttention *of; /* that has filled it */
    AttentionMask mask;           /* of the forward that runs, */
    bool cross;                   /* and is it one of cross-attention? */
} KVCache;
KVCache *nn_kv_cache_new(int64_t capacity);
/* For a sliding window, as Mistral and Gemma have it: a position attends to itself and to the
 * window - 1 positions before it. The cache holds no more of them, and a text may have any
 * length. */
KVCache *nn_kv_cache_window_new(int64_t window);
void nn_kv_cache_free(KVCache *cache); /* NULL is fine */

/* x (B, N, Dq), the N positions after those in the cache -> (B, N, num_hiddens). Appends their keys
 * and values, and attends from each of them to all positions up to itself: the same, up to
 * rounding, as the last N rows of nn_multi_head_attention_forward on all positions, causal. A cache
 * has no gradient: on a tape of tape_begin_no_grad. On failure the cache has its old length.
 *
 * mask: for N queries and length + N keys, all positions from the first on, forgotten ones too; it
 * is always causal. Prompts of different lengths share a batch if the shorter ones are padded on
 * the left and .keep, BOOL (B, 1, 1, length + N), is false for the padding.
 *
 * cache->positions: what rope turns by, I64 (N) or (B, N), in each row none smaller than the one
 * before, also of those that the cache has seen. NULL: length, length + 1, ... Scores depend on
 * distances alone, so only padding inside of a text, as on the right of a prompt, needs them. */
Tensor *nn_multi_head_attention_forward_cached(MultiHeadAttention *attention, Tensor *x,
                                               KVCache *cache, AttentionMask mask);
/* nn_multi_head_attention_forward of cross-attention, which computes the keys and values of k and
 * v, an encoder's output, in the first call alone: as long as length is not 0, it takes them from
 * the cache. Not with rope. */
Tensor *nn_multi_head_attention_forward_cross(MultiHeadAttention *attention, Tensor *q, Tensor *k,
                                              Tensor *v, KVCache *cache, AttentionMask mask);

/* ---- what a loss does not reach ------------------------------------------------------------- */

/* Checks that the loss, on the open tape, depends on every parameter that is not frozen. If not:
 * false and an error that names the parameters that the loss does not reach, and lazy parameters
 * that were never made. Call it once, before the first ag_backward, if a model does not learn. */
bool nn_check_connected(Tensor *loss, void *module);

/* ---- checkpoints --------------------------------------------------------------------------- */

/* nn_save writes all parameters to a safetensors file, with PyTorch's names and metadata, so
 * Python's load_file and load_state_dict read it. nn_load reads such a file. The names in the file
 * must be exactly the names of the parameters; shapes and types must be equal; for a lazy parameter
 * the shape must fit its layer. If anything does not fit, the error says what, and nothing has
 * changed. A lazy parameter cannot be saved. */
bool nn_save(void *module, const char *path), nn_load(void *module, const char *path);
/* The same with a dict. All names begin with a prefix ("model."), so that one file can hold more
 * than a model. nn_state_dict shares the parameters with the dict; nn_load_state_dict copies.
 * Entries without the prefix are ignored. */
bool nn_state_dict(void *module, const char *prefix, TensorDict *dict);
bool nn_load_state_dict(void *module, const char *prefix, const TensorDict *dict);

/* torch's load_state_dict(strict=False): loads every parameter whose name is there, and returns the
 * names that do not match. As in torch, a shape that differs is an error all the same, and so is a
 * type: the error says what, and nothing has changed. (If your model has another head than the
 * file, give it another name, or copy the entries that you want into a dict of your own.)
 *
 *     IncompatibleKeys *keys = nn_load_not_strict(net, "pretrained.safetensors");
 *     for (int i = 0; keys && i < keys->num_missing; i++) puts(keys->missing_keys[i]);
 *     nn_incompatible_keys_free(keys);
 */
typedef struct {
    int num_missing, num_unexpected;
    char **missing_keys;    /* parameters without an entry: unchanged, or still lazy */
    char **unexpected_keys; /* entries without a parameter: ignored */
} IncompatibleKeys;
/* NULL on error; else yours, and nn_incompatible_keys_free frees it with its names, which are the
 * names in the file or the dict, prefix included. NULL is fine. */
IncompatibleKeys *nn_load_not_strict(void *module, const char *path);
IncompatibleKeys *nn_load_state_dict_not_strict(void *module, const char *prefix,
                                                const TensorDict *dict);
void nn_incompatible_keys_free(IncompatibleKeys *keys);

/* torch's optimizer.state_dict(): the state of each parameter that has taken a step. A name is
 * prefix, the path of the parameter, and ".step" (I64, a scalar), ".momentum_buffer" (SGD with
 * momentum), ".exp_avg" or ".exp_avg_sq" (AdamW). Learning rates and other settings are not in the
 * dict. A program that saves the model (nn_state_dict), the optimizer and the generator
 * (tensor_generator_state) can continue from the file with the same bits as without a stop.
 *
 * nn_optimizer_state_dict copies, so later steps do not change the dict. Loading copies as well,
 * and replaces all state: a parameter without entries has taken no step. For a lazy parameter the
 * shape must fit its layer. Entries without the prefix are ignored; but if none has it, and the
 * state is there under another, that is an error. If anything does not fit, the error says what,
 * and nothing has changed. */
bool nn_optimizer_state_dict(Optimizer *optimizer, const char *prefix, TensorDict *dict);
bool nn_optimizer_load_state_dict(Optimizer *optimizer, const char *prefix, const TensorDict *dict);

/* torch.nn.utils.clip_grad_norm_: multiplies every gradient by min(1, max_norm / (norm + 1e-6)) and
 * returns norm, the 2-norm of all gradients together, summed in float64. Gradients that are not
 * finite are no error: the norm is then infinite or NaN. If it is NaN, all gradients become NaN.
 * NaN on error. */
double nn_clip_grad_norm(void *module, double max_norm);
/* For a run whose norm or loss is not finite: checks that every gradient is finite. If not: false,
 * and an error that names the first parameter, in state_dict order, whose gradient is not. Call it
 * between ag_backward and nn_clip_grad_norm, which would spread a NaN to all gradients. */
bool nn_check_finite(void *module);

/* Schedules: factors of the learning rate for a step, counted from 0. Factors can be multiplied:
 *     nn_optimizer_scale_lr(optimizer, nn_warmup(step, 10) * nn_cosine_decay(step, 100, 0));
 * A negative argument or NaN is an error, and so is a step_size or total_steps of 0. The result is
 * then NaN, which nn_optimizer_scale_lr does not accept. */
/* torch's StepLR: gamma^floor(step / step_size) */
double nn_step_decay(int64_t step, int64_t step_size, double gamma);
/* torch's CosineAnnealingLR: half a period of a cosine, from 1 at step 0 down to min_factor
 * (torch's eta_min / lr) at total_steps. Later it rises again. Loshchilov & Hutter 2017 */
double nn_cosine_decay(int64_t step, int64_t total_steps, double min_factor);
/* min(1, (step + 1) / warmup_steps); 1 if warmup_steps is 0 */
double nn_warmup(int64_t step, int64_t warmup_steps);

#endif

#ifdef __cplusplus
}
#endif
#endif
