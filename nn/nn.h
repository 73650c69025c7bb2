/* nn.h - modules, losses, optimizers. Built on the public headers below alone, so everything
 * here you could have written yourself.
 *
 * nn_*_new is yours: nn_free it. nn_*_forward lends its result, like the ops that it calls: the
 * open tape owns it. Errors are those of tensor.h.
 */
#ifndef TAPEHEAD_NN_H
#define TAPEHEAD_NN_H

#include "../autograd/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- modules ------------------------------------------------------------------------------ */

/* A module is a struct that begins with a Module. The functions here take any of them as a
 * void *; all of them accept NULL where a pending error explains it. */
typedef struct Module Module;

/* What all modules of one kind share. */
typedef struct {
    const char *name; /* "Linear", as nn_print shows it */
    size_t size;      /* of the whole struct */
    void (*print_settings)(const void *module, FILE *file); /* "in_features=2, ..." or NULL */
    void (*destroy)(void *module); /* frees what is neither parameter, result nor child; or NULL */
} ModuleClass;

typedef struct {
    char name[24];
    Tensor **slot; /* the field of the module that holds the tensor, NULL inside until it is made */
} ModuleSlot;

struct Module {
    const ModuleClass *kind;
    bool training; /* true at birth */
    int num_parameters, num_results, num_children;
    ModuleSlot *parameters; /* in the order of registration, as PyTorch's state_dict */
    Tensor ***results;      /* fields that hold kept results: attention weights */
    struct ModuleChild {
        char name[24];
        Module *module;
    } *children;
};

/* Your own module, in five lines:
 *
 *     typedef struct { Module module; Tensor *w; } Net;
 *     static const ModuleClass net_class = {"Net", sizeof(Net), NULL, NULL};
 *     Net *net = nn_module_new(&net_class);
 *     nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
 */
void *nn_module_new(const ModuleClass *kind); /* zeroed; NULL on error */
/* slot, a field of the module, will hold value, whose reference the module takes over; value NULL
 * with no error pending means that it comes later (a lazy parameter): nn_set_parameter. */
bool nn_add_parameter(void *module, const char *name, Tensor **slot, Tensor *value);
bool nn_set_parameter(void *module, Tensor **slot, Tensor *value); /* takes over the reference */
bool nn_add_child(void *module, const char *name, void *child);    /* takes over the child */
bool nn_add_result(void *module, Tensor **slot);    /* a field for a result that the module keeps */
bool nn_keep_result(void *module, Tensor **slot, Tensor *value); /* lets the old one go, retains value */

void nn_free(void *module); /* and its children and parameters; NULL is fine */
void nn_train(void *module, bool on); /* training mode (dropout drops) or evaluation, all the way down */
bool nn_print(void *module, FILE *file); /* the tree, as Python's print(module), and a newline */
bool nn_zero_grad(void *module);         /* every ->grad becomes NULL */
int64_t nn_num_parameters(void *module); /* elements of all parameters that exist already */
/* "W_q.weight", as in PyTorch's state_dict. A borrowed reference. NULL and an error if there is none. */
Tensor *nn_parameter(void *module, const char *path);
/* All parameters, depth first, in state_dict order, as the fields that hold them (which may hold NULL
 * while lazy). Writes at most capacity of them and returns how many there are. */
int nn_parameter_slots(void *module, Tensor ***slots, int capacity);

/* ---- layers --------------------------------------------------------------------------------- */

#define NN_LAZY (-1) /* a size that the first input sets */

typedef struct {
    Module module;
    Tensor *weight; /* (out, in), U(-1/sqrt(in), 1/sqrt(in)); NULL while lazy */
    Tensor *bias;   /* (out), the same distribution; NULL without */
    int64_t in_features, out_features;
    bool has_bias;
} Linear;
Linear *nn_linear_new(int64_t in, int64_t out, bool bias);
Tensor *nn_linear_forward(Linear *linear, Tensor *x); /* (..., in) -> (..., out): x W' + b */

typedef struct {
    Module module;
    double p; /* probability of zeroing an element, in [0, 1] */
} Dropout;
Dropout *nn_dropout_new(double p);
Tensor *nn_dropout_forward(Dropout *dropout, Tensor *x); /* x itself in evaluation mode */

/* ---- attention -------------------------------------------------------------------------------- */

/* softmax(Q K' / sqrt(d)) V, Vaswani et al. 2017, section 3.2.1. */
typedef struct {
    Module module;
    Dropout *dropout;          /* on the weights */
    Tensor *attention_weights; /* (B, Q, K) of the last forward, before dropout */
} DotProductAttention;
DotProductAttention *nn_dot_product_attention_new(double dropout);
/* q (B, Q, D), k (B, K, D), v (B, K, Dv) -> (B, Q, Dv) */
Tensor *nn_dot_product_attention_forward(DotProductAttention *attention, Tensor *q, Tensor *k, Tensor *v,
                                         AttentionMask mask);

/* Scores w_v' tanh(W_q q + W_k k), Bahdanau et al. 2015. The sizes of queries and keys are lazy. */
typedef struct {
    Module module;
    Linear *W_k, *W_q, *w_v; /* to num_hiddens, num_hiddens, 1; no biases */
    Dropout *dropout;
    Tensor *attention_weights;
} AdditiveAttention;
AdditiveAttention *nn_additive_attention_new(int64_t num_hiddens, double dropout);
/* q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv) -> (B, Q, Dv) */
Tensor *nn_additive_attention_forward(AdditiveAttention *attention, Tensor *q, Tensor *k, Tensor *v,
                                      AttentionMask mask);

typedef struct {
    int64_t num_hiddens, num_heads; /* num_heads must divide num_hiddens */
    double dropout;
    bool bias;
    int64_t query_size, key_size, value_size; /* 0: set by the first input */
} MultiHeadAttentionConfig;

/* Concat(head_1 .. head_h) W_o', head_i = attention(q W_q,i', k W_k,i', v W_v,i'), section 3.2.2. */
typedef struct {
    Module module;
    DotProductAttention *attention; /* all heads at once, as a batch of B * heads */
    Linear *W_q, *W_k, *W_v, *W_o;
    int64_t num_heads;
    Tensor *attention_weights; /* (B * heads, Q, K), the same as attention->attention_weights */
} MultiHeadAttention;
MultiHeadAttention *nn_multi_head_attention_new(MultiHeadAttentionConfig config);
/* q (B, Q, Dq), k (B, K, Dk), v (B, K, Dv) -> (B, Q, num_hiddens) */
Tensor *nn_multi_head_attention_forward(MultiHeadAttention *attention, Tensor *q, Tensor *k, Tensor *v,
                                        AttentionMask mask);

/* ---- optimizers ---------------------------------------------------------------------------------- */

typedef struct Optimizer Optimizer;

/* torch.optim.SGD. With momentum mu: b = g at the first step, then b = mu b + (1 - dampening) g;
 * Nesterov steps along g + mu b, else along b; g includes weight_decay * theta. */
typedef struct {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
} SGDConfig;

/* Yours: nn_free it. It borrows the module, which must live while you step. */
Optimizer *nn_sgd_new(void *module, SGDConfig config);
/* One step for every parameter that has a gradient; the others are skipped. */
bool nn_optimizer_step(Optimizer *optimizer);
void nn_optimizer_zero_grad(Optimizer *optimizer); /* every ->grad becomes NULL */

#ifdef __cplusplus
}
#endif
#endif
