/* nn.h - modules, attention, optimizers. Built on the public headers below alone, so everything
 * here you could have written yourself.
 *
 * nn_*_new is yours: nn_free it. nn_*_forward lends its result, like the ops that it calls: the
 * open tape owns it. Errors are those of tensor.h; one that a forward function meets begins with
 * the path of the innermost module: "encoder.layers.0.W_q: linear: x is (1, 3, 5): ...".
 */
#ifndef TAPEHEAD_NN_H
#define TAPEHEAD_NN_H

#include "../autograd/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules ----------------------------------------------------------------------------- */

/* A module is a struct that begins with a Module. The functions here take any of them as a
 * void *; all of them accept NULL where a pending error explains it. An Optimizer begins with a
 * Module, too, but for nn_print and nn_free alone. */
typedef struct Module Module;

/* What all modules of one kind share. */
typedef struct {
    const char *name; /* "Linear", as nn_print shows it */
    size_t size;      /* of the whole struct */
    /* Writes "in_features=2, out_features=3"; NULL when there is nothing to say. */
    void (*print_settings)(const void *module, FILE *file);
    /* Frees what is neither parameter, kept result nor child; NULL when nothing is. */
    void (*destroy)(void *module);
} ModuleClass;

#define NN_NAME_SIZE 24

typedef struct ModuleSlot {
    char name[NN_NAME_SIZE]; /* "" for a kept result, which is no parameter */
    Tensor **slot; /* the field of the module that holds the tensor; NULL there until it is made */
    bool frozen;   /* by nn_freeze */
    /* Its shape while lazy, NN_LAZY for a size that is not known yet; ndim -1: any shape. */
    Shape lazy;
    Module *module;          /* whose it is */
    struct ModuleSlot *next; /* the next one of the same module */
} ModuleSlot;

struct Module {
    const ModuleClass *kind;
    bool training;           /* true at birth */
    char name[NN_NAME_SIZE]; /* its name among its parent's children; "" at the root */
    Module *parent;          /* who frees it; NULL at the root */
    Module *children, *next; /* the first child; the parent's child behind this one */
    ModuleSlot *slots; /* the first: parameters, in PyTorch's order, which is that of registration,
                          and fields that hold kept results: attention weights */
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
/* Ends a constructor: hands the module back or, when an error is pending, frees it with all that
 * it took over, and returns NULL. So the lines before it need no checks. */
void *nn_module_done(void *module);

/* Each of these takes over the reference or the child that it is given, also when it fails.
 * A name has 1 to 23 characters, no dot among them, and is unique in its module. */

/* slot, a field of the module, will hold value, made a parameter: it requires a gradient, and is
 * written in place, so it must not be expanded. value NULL with no error pending means that it
 * comes later (a lazy one), by nn_set_parameter. */
bool nn_add_parameter(void *module, const char *name, Tensor **slot, Tensor *value);
bool nn_set_parameter(void *module, Tensor **slot, Tensor *value);
/* A parameter that comes later and will have this shape, NN_LAZY standing for sizes that are not
 * known yet: what nn_load may put there. */
bool nn_add_lazy_parameter(void *module, const char *name, Tensor **slot, Shape shape);
/* A child has one parent. Handed back; NULL on error. */
void *nn_add_child(void *module, const char *name, void *child);

/* A field for a result that the module keeps past the tape. Keeping retains value and lets the
 * old one go; a value NULL, the sign of an error, changes nothing. */
bool nn_add_result(void *module, Tensor **slot);
bool nn_keep_result(void *module, Tensor **slot, Tensor *value);

/* Frees a module with its children, parameters and kept results. NULL is fine; a child is freed
 * by its parent, so freeing it yourself does nothing but leave an error. */
void nn_free(void *module);
/* Training mode (dropout drops) or evaluation, all the way down. */
void nn_train(void *module, bool on);
bool nn_print(void *module, FILE *file);   /* the tree, as Python's print(module), and a newline */
void nn_print_float(double x, FILE *file); /* as Python writes it, for print_settings: 0.1, 1e-05 */
bool nn_zero_grad(void *module);           /* every ->grad becomes NULL */
/* Elements of all parameters that exist already, one held twice counted once. -1 on error. */
int64_t nn_num_parameters(void *module);
/* "W_q.weight", as in PyTorch's state_dict. A borrowed reference; NULL and an error when there is
 * none, or not yet. */
Tensor *nn_parameter(void *module, const char *path);
/* The one walk over parameters: those that a prefix of their path leads to, depth first, in
 * state_dict order. *p, NULL at first, becomes the next one of them; false, and *p NULL, at the
 * end. "W_o" leads to "W_o" and "W_o.weight", not to "W_other.weight"; "" to all. Lazy ones, whose
 * *p->slot is NULL, are among them, and what you add on the way comes too where it is further on.
 *
 *     for (ModuleSlot *p = NULL; nn_next_parameter(net, "", &p);)
 *         if (*p->slot) nn_init_normal(*p->slot, 0, 0.02);
 */
bool nn_next_parameter(void *module, const char *prefix, ModuleSlot **p);
/* "W_q.weight": the path of a parameter from root, one of the modules that hold it, in a buffer of
 * this size; false and an error if it is longer. */
bool nn_parameter_path(const void *root, const ModuleSlot *parameter, char *path, size_t size);
/* Frozen, a parameter has requires_grad false and no gradient, so neither backward, clipping nor an
 * optimizer touches it; false lets it learn again. prefix as above, leading nowhere is an error. A
 * lazy parameter is frozen before it is made: the field remembers, also when it gets another
 * value. One that two fields share obeys the last call for either. */
bool nn_freeze(void *module, const char *prefix, bool frozen);

/* Does the loss, on the open tape, reach every parameter that is not frozen? If not, false and an
 * error that names those that it does not reach, lazy ones that were never made among them. To be
 * called once, before the first ag_backward, on a model that does not learn. */
bool nn_check_connected(Tensor *loss, void *module);

/* ---- initial values ------------------------------------------------------------------------ */

/* torch.nn.init, number for number from the same seed: w is drawn anew in place, and stays the
 * parameter that it is. fan_in and fan_out of w (out, in, ...) are in and out times the sizes after
 * them; one with fewer than two dimensions has none, which is an error. One without elements draws
 * nothing. gain and a are taken as they are given: torch's own defaults are a gain of 1, an a of 0.
 */
bool nn_init_uniform(Tensor *w, double low, double high);
bool nn_init_normal(Tensor *w, double mean, double std);
/* deviation gain sqrt(2 / (fan_in + fan_out)). Glorot & Bengio 2010 */
bool nn_init_xavier_uniform(Tensor *w, double gain), nn_init_xavier_normal(Tensor *w, double gain);
/* deviation sqrt(2 / (1 + a^2)) / sqrt(fan_in), a the slope of a leaky ReLU. He et al. 2015 */
bool nn_init_kaiming_uniform(Tensor *w, double a), nn_init_kaiming_normal(Tensor *w, double a);

/* ---- checkpoints --------------------------------------------------------------------------- */

/* Saves all parameters in a safetensors file, under the names and with the metadata that PyTorch
 * gives them, so that Python's load_file and load_state_dict take it, and loads such a file. The
 * names must be the module's, each once and no others, and shapes and types equal; a lazy parameter
 * takes what its layer's rule allows. If anything does not fit, one sentence says what, and nothing
 * has changed. A parameter that does not exist yet cannot be saved. */
bool nn_save(void *module, const char *path), nn_load(void *module, const char *path);
/* The same with a dict: the names are those above behind a prefix ("model."), so that one file can
 * hold more than a model. Setting retains the parameters, loading copies into them; entries without
 * the prefix are left alone. */
bool nn_state_dict(void *module, const char *prefix, TensorDict *dict);
bool nn_load_state_dict(void *module, const char *prefix, const TensorDict *dict);

/* ---- layers -------------------------------------------------------------------------------- */

#define NN_LAZY (-1) /* a size that the first input sets */

typedef struct {
    Module module;
    Tensor *weight, *bias; /* (out, in), (out): U(-1/sqrt(in), 1/sqrt(in)); NULL while lazy, and
                              bias without has_bias */
    int64_t in_features, out_features; /* in_features is NN_LAZY until the first input */
    bool has_bias;
} Linear;
/* in = NN_LAZY: the first forward draws the weight, then the bias, for the size that it sees. */
Linear *nn_linear_new(int64_t in, int64_t out, bool bias);
Tensor *nn_linear_forward(Linear *linear, Tensor *x); /* (..., in) -> (..., out): x W' + b */

typedef struct {
    Module module;
    double p; /* probability of zeroing an element, in [0, 1] */
} Dropout;
Dropout *nn_dropout_new(double p);
Tensor *nn_dropout_forward(Dropout *dropout, Tensor *x); /* x itself in evaluation or p = 0 */

typedef struct {
    Module module;
    Tensor *weight; /* (num_embeddings, embedding_dim), N(0, 1) */
} Embedding;
Embedding *nn_embedding_new(int64_t num_embeddings, int64_t embedding_dim);
/* index I64 (...), from 0 to num_embeddings - 1 -> (..., embedding_dim): a row of weight for each
 */
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

/* Adds P[i, 2j] = sin(i / 10000^(2j / d)), P[i, 2j + 1] = cos(i / 10000^(2j / d)) to the vector of
 * size d = num_hiddens at place i, then drops out. Vaswani et al. 2017, section 3.5. */
typedef struct {
    Module module;
    Dropout *dropout; /* on the sum */
    Tensor *P;        /* (1, max_len, num_hiddens), of the default type at birth; no parameter */
} PositionalEncoding;
PositionalEncoding *nn_positional_encoding_new(int64_t num_hiddens, double dropout,
                                               int64_t max_len); /* num_hiddens even */
/* x (B, length, num_hiddens), length <= max_len -> same */
Tensor *nn_positional_encoding_forward(PositionalEncoding *encoding, Tensor *x);

/* ---- attention --------------------------------------------------------------------------- */

/* The weights that a module shows are those of its last forward that succeeded, before dropout.
 * They outlive the tape, until the next forward or nn_free; retain them to have them longer. */

/* softmax(Q K' / sqrt(d)) V, Vaswani et al. 2017, section 3.2.1. */
typedef struct {
    Module module;
    Dropout *dropout;          /* on the weights */
    int64_t num_heads;         /* 1, or yours: the B num_heads inputs are the heads of a batch of B,
                                  one behind the other, and a mask is that of the batch */
    Tensor *attention_weights; /* (B, Q, K) */
} DotProductAttention;
DotProductAttention *nn_dot_product_attention_new(double dropout);
/* q (B, Q, D), k (B, K, D), v (B, K, Dv) -> (B, Q, Dv) */
Tensor *nn_dot_product_attention_forward(DotProductAttention *attention, Tensor *q, Tensor *k,
                                         Tensor *v, AttentionMask mask);

/* Scores w_v' tanh(W_q q + W_k k), Bahdanau et al. 2015. The sizes of queries and keys are lazy;
 * the first forward draws W_q, W_k, w_v. */
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
    int64_t num_hiddens, num_heads; /* num_heads must divide num_hiddens */
    double dropout;
    bool bias;
    /* 0: set by the first input; W_o then is lazy too, so the draws' order stays q, k, v, o. */
    int64_t query_size, key_size, value_size;
    bool fused; /* by ag_attention: the same numbers in less memory, but no weights to look at */
} MultiHeadAttentionConfig;

/* Concat(head_1 .. head_h) W_o', head_i = attention(q W_q,i', k W_k,i', v W_v,i'), the same paper,
 * section 3.2.2. The mask is that of the batch: every head gets its lengths. */
typedef struct {
    Module module;
    DotProductAttention *attention; /* all heads at once, as a batch of B * heads */
    Linear *W_q, *W_k, *W_v, *W_o;
    int64_t num_heads;
    bool fused;
    Tensor *attention_weights; /* (B * heads, Q, K), the same as attention->attention_weights;
                                  NULL if fused */
} MultiHeadAttention;
MultiHeadAttention *nn_multi_head_attention_new(MultiHeadAttentionConfig config);
/* q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv) -> (B, Q, num_hiddens) */
Tensor *nn_multi_head_attention_forward(MultiHeadAttention *attention, Tensor *q, Tensor *k,
                                        Tensor *v, AttentionMask mask);

/* ---- optimizers ---------------------------------------------------------------------------- */

typedef struct Optimizer Optimizer;

/* torch.optim.SGD. With momentum mu: b = g at the first step, then b = mu b + (1 - dampening) g;
 * Nesterov steps along g + mu b, else along b; g includes weight_decay * theta. */
typedef struct {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
} SGDConfig;

/* torch.optim.AdamW: Adam with weight decay apart from the gradient, Loshchilov & Hutter 2019,
 * algorithm 2. At a parameter's t-th step
 *     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,  theta -= lr weight_decay theta,
 *     theta -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * beta1, beta2 and eps of 0 mean 0.9, 0.999 and 1e-8. A weight_decay of 0 means none, which is Adam
 * (Kingma & Ba 2015); torch's own default is 0.01. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
} AdamWConfig;

/* Yours: nn_free it. lr must be there: 0, which a config has where it says nothing, is an error (a
 * group's or a schedule's may be 0). An optimizer borrows the module, whose parameters it lists
 * now, lazy ones included, and which must live while you step; what is added to the module later it
 * does not train. */
Optimizer *nn_sgd_new(void *module, SGDConfig c), *nn_adamw_new(void *module, AdamWConfig c);
/* The parameters at a prefix of their path (see nn_next_parameter) get a learning rate and a
 * weight decay of their own; the last call that reaches a parameter counts, and a prefix that leads
 * nowhere is an error. A parameter that two fields share is in the group of the first. */
bool nn_optimizer_set_group(Optimizer *optimizer, const char *prefix, double lr, double decay);
/* Every group's learning rate = the one it was given * factor, from the next step until the next
 * call: factors do not pile up. */
bool nn_optimizer_scale_lr(Optimizer *optimizer, double factor);
/* One step for every parameter that has a gradient; the others are skipped. In place, and all or
 * nothing: when it fails, no parameter has moved and nothing that is remembered of them. */
bool nn_optimizer_step(Optimizer *optimizer);
void nn_optimizer_zero_grad(Optimizer *optimizer); /* every ->grad becomes NULL */

/* torch's optimizer.state_dict(): what it remembers of each parameter that has taken a step. The
 * names are prefix, the parameter's path and ".step" (I64, a scalar), ".momentum_buffer" (SGD with
 * momentum) or ".exp_avg" and ".exp_avg_sq" (AdamW). Learning rates and the like are the program's,
 * and not in it. With the model (nn_state_dict) and the generator (tensor_generator_state) beside
 * it, training goes on from a file with the same bits as if it had never stopped.
 *
 * Setting copies, where nn_state_dict shares: later steps change nothing in the dict. Loading
 * copies too, and replaces all that was remembered: a parameter without entries has taken no step.
 * One that is lazy takes what its layer's rule allows. Entries without the prefix are left alone;
 * if anything under it does not fit, one sentence says what, and nothing has changed. */
bool nn_optimizer_state_dict(Optimizer *optimizer, const char *prefix, TensorDict *dict);
bool nn_optimizer_load_state_dict(Optimizer *optimizer, const char *prefix, const TensorDict *dict);

/* torch.nn.utils.clip_grad_norm_: multiplies every gradient by min(1, max_norm / (norm + 1e-6)),
 * norm being the 2-norm of all gradients together, summed in float64, and returns norm. Gradients
 * that are not finite give a norm that is not, and NaN for a norm of NaN; that is no error. NaN on
 * error. */
double nn_clip_grad_norm(void *module, double max_norm);

/* Schedules: factors of the learning rate for a step, counted from 0. They multiply:
 *     nn_optimizer_scale_lr(optimizer, nn_warmup(step, 10) * nn_cosine_decay(step, 100, 0));
 * A negative step, size or factor is an error, and the answer NaN, which nn_optimizer_scale_lr
 * refuses. */
/* torch's StepLR: gamma^floor(step / step_size) */
double nn_step_decay(int64_t step, int64_t step_size, double gamma);
/* torch's CosineAnnealingLR: half a cosine from 1 down to min_factor, its eta_min / lr, at
 * total_steps, after which it rises again. Loshchilov & Hutter 2017 */
double nn_cosine_decay(int64_t step, int64_t total_steps, double min_factor);
/* (step + 1) / warmup_steps, up to 1; warmup_steps of 0 is no warm-up */
double nn_warmup(int64_t step, int64_t warmup_steps);

#ifdef __cplusplus
}
#endif
#endif
