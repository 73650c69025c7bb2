/* op.h - the definition of an op: read it before you write one (see "How to add an op" in
 * README.md).
 *
 * An op is one section of a file in ops/: the text for the reader, which is its row in README.md, a
 * forward function, a backward function directly under it, the Op that names both, and the public
 * function. Only ag_apply applies ops: it checks the inputs, runs the forward and records the node.
 * Only tape.c differentiates ops. */
#ifndef TAPEHEAD_OP_H
#define TAPEHEAD_OP_H

#include "autograd.h"
#include "../tensor/math/operations.h"

#include <math.h>

enum { OP_INPUTS = 6, SAVED = 3 };

typedef struct Op Op;

/* The arguments of an op that are not tensors. Each op reads only its own fields. The arguments do
 * not change after ag_apply. */
typedef struct {
    int dim;              /* the dimension that the op works along, counted from the start */
    bool keepdim;         /* reductions: keep the reduced dimensions with size 1 */
    bool causal;          /* masked_softmax, attention */
    union {               /* no op reads two of these fields */
        double s;         /* elementwise: the scalar operand */
        double value;     /* masked_fill */
        double p;         /* dropout */
        double eps;       /* layer_norm */
        DType dtype;      /* to */
        int64_t diagonal; /* tril, triu */
        Shape shape;      /* of the result: reshape, view, unsqueeze, squeeze, expand */
        Axes axes;        /* permute */
        bool dims[TENSOR_MAX_DIMS]; /* reductions: is dimension d reduced? */
        struct {                    /* transpose */
            int dim0, dim1;
        };
        struct { /* slice */
            int64_t start, size;
        };
        struct { /* repeat, repeat_interleave */
            int64_t times;
            bool each_slice; /* true: repeat each slice; false: the whole x */
        };
        struct { /* masked_softmax, attention */
            double scale, dropout;
            int64_t num_heads; /* of scores (B H, Q, K) */
        };
        struct { /* cross_entropy */
            int64_t ignore_index;
            Reduction reduction;
        };
    };
} Attributes;

/* One node of the tape: out = op(in...). */
typedef struct {
    const Op *op;
    Tensor *out;
    Tensor *const *in; /* n_in inputs; NULL for an optional one that is absent */
    int n_in;
    unsigned reads;                  /* which tensors backward reads, bit OP_INPUTS for out */
    uint32_t version[OP_INPUTS + 1]; /* of the storages of in and out when the node was recorded */
    Tensor *saved[SAVED];            /* computed by forward for backward; released with the node */
    Tensor *few[OP_INPUTS];          /* the inputs, if n_in <= OP_INPUTS */
    Tensor **many;                   /* the inputs, if there are more; else NULL */
    Attributes at;
} Node;

/* The types that an input may have: bit 1 << DType for each. Inputs of an op with the same set of
 * types must have equal types. */
typedef enum {
    FLOAT = 1 << F32 | 1 << F64,
    NUMBER = FLOAT | 1 << I64,
    SAME = NUMBER | 1 << BOOL, /* any type */
    INT64 = 1 << I64,
    BOOLEAN = 1 << BOOL,
    OPTIONAL = 1 << 4, /* may be NULL */
    MANY = 1 << 5      /* one or more tensors */
} InputType;

typedef struct {
    const char *name;
    InputType type;
} Input;

/* Which tensors a backward reads. Backward fails if one of these tensors was overwritten. The
 * elements of all other tensors can be freed before the backward pass. */
enum {
    READS_IN0 = 1,
    READS_IN1 = 2,
    READS_IN2 = 4,
    READS_INPUTS = (1 << OP_INPUTS) - 1, /* all of them */
    READS_OUT = 1 << OP_INPUTS,
    /* in[0] is read only for the gradient of in[1], in[1] only for the gradient of in[0] */
    READS_OTHER = 2 << OP_INPUTS,
    /* elementwise: da, the gradient of in[0] (dx, if there is one input), is dy itself; db, the
     * gradient of in[1], is dy itself */
    DA_IS_DY = 4 << OP_INPUTS,
    DB_IS_DY = 8 << OP_INPUTS
};

struct Op {
    /* "softmax": the function that applies the op is ag_softmax. Some functions apply an op of
     * another name: ag_attention_weights applies masked_softmax, ag_attention_scaled attention,
     * ag_logsumexp_dim logsumexp, ag_argmax_dim argmax. */
    const char *name;
    const OpText *text;
    const char *grad_fn; /* PyTorch's name of the node, "SoftmaxBackward0" */
    Input in[OP_INPUTS]; /* the entry after the last input has no name */
    unsigned reads;      /* READS_IN0 | ... */
    /* Returns the result, a new reference. If forward sets an error, ag_apply releases the result.
     * Checks the shapes; ag_apply has checked types and NULLs. May set n->saved, and no other field
     * of the node. */
    Tensor *(*forward)(Node *n);
    /* Sets dx[i], a new reference, for each input that requires a gradient (ag_needs), or sets the
     * pending error; ag_node_vjp then releases each dx[i]. May set dx[i] for another input, too:
     * ag_node_vjp releases such a dx[i]. dx[i] has the shape of in[i], or a shape to which in[i]
     * was broadcast: ag_node_vjp then sums dx[i]. dy may have any strides, and has at least one
     * element. The result of an op without a backward has no gradient. Integers and bools have no
     * gradient either. */
    void (*backward)(const Node *n, Tensor *dy, Tensor **dx);
    int draws;        /* 1 + the index in saved of the tensor that forward draws; if saved has this
                       * tensor already, forward draws nothing. 0: the op draws nothing */
    const char *zero; /* the reason why no element of the result changes with an element of in[0],
                       * if the reason depends on the op alone: "dropped" */
    int row;          /* elementwise: its number in elementwise.def */
    double low, high; /* elementwise: where the gradient check draws its inputs */
};

/* The Input of input i; with MANY in[0] describes all inputs. */
static inline const Input *input_of(const Op *op, int i) {
    return &op->in[op->in[0].type & MANY ? 0 : i];
}

static inline bool ag_needs(const Node *n, int i) { return n->in[i] && n->in[i]->requires_grad; }

/* Buffers for a dx, new references. (If dx equals dy, return tensor_retain(dy).)
 *
 * ag_buffer_like: contiguous, of dy's shape and type, uninitialised. The buffer may be dy itself,
 * if there is no other reference to dy: so use it only for the last dx that is computed from dy.
 *
 * ag_gradient_buffer: of in[i]'s shape, for an op that adds to some elements (slice, gather). If
 * the gradient buffer of in[i] has no other reference, the result is that buffer; else the result
 * is a tensor of zeros, and accumulate adds it to the gradient buffer. */
Tensor *ag_buffer_like(Tensor *dy);
Tensor *ag_gradient_buffer(const Node *n, int i);

/* Checks that dy can be read, and has y's shape and type. */
bool ag_check_cotangent(const char *function, const Tensor *y, const Tensor *dy);
/* Line i of the open recording tape; NULL if there is none. */
const Node *ag_node(int i);
/* Sets dx[i] to the gradient of in[i], in in[i]'s shape, a new reference, where in[i] requires a
 * gradient, else to NULL. On failure no reference is left in dx. */
bool ag_node_vjp(const Node *n, Tensor *dy, Tensor **dx);

/* What difference quotients of several steps say about a derivative. Begin with NO_QUOTIENTS, and
 * add the steps in increasing order. */
typedef struct {
    double best, doubt; /* the derivative lies between best - doubt and best + doubt */
    double last, noise; /* the quotient of the step before, and its rounding error */
    double largest;     /* of the quotients so far, without signs */
    bool full;          /* larger steps tell no more */
} Quotients;
#define NO_QUOTIENTS ((Quotients){.doubt = HUGE_VAL, .best = (double)NAN, .last = (double)NAN})

/* Half the distance of the two points of difference k, for a number x: 0 after the last one. The
 * usual step is number 0; it grows slowly with x, because softmax is as curved at -1e6, a score
 * that programs use to mask a key, as at 0. The others grow from a fraction of `first` to a
 * fraction of x. */
double ag_difference_step(double x, double first, int k);
void ag_quotient_add(Quotients *q, double quotient, double noise);
/* Can the quotients not tell whether this derivative is right? */
bool ag_quotients_cannot_tell(const Quotients *q, double derivative);

/* Applies an op on the open tape. The result is a loan. */
Tensor *ag_apply(const Op *op, int n_in, Tensor *const *in, const Attributes *at);

static inline Tensor *apply1(const Op *op, Tensor *x, Attributes at) {
    return ag_apply(op, 1, &x, &at);
}
static inline Tensor *apply2(const Op *op, Tensor *a, Tensor *b, Attributes at) {
    return ag_apply(op, 2, (Tensor *[]){a, b}, &at);
}
static inline Tensor *apply3(const Op *op, Tensor *a, Tensor *b, Tensor *c, Attributes at) {
    return ag_apply(op, 3, (Tensor *[]){a, b, c}, &at);
}

/* False if an error is pending. Sets an error if x is NULL. For public functions that read x before
 * ag_apply does. ag_check_ready also sets an error if x was let go or no tape is open: a
 * function of other ops calls it, so that the error names this function. */
bool ag_check_present(const char *op, const Tensor *x);
bool ag_check_ready(const char *op, const Tensor *x);

/* Sets the grad_fn of y, which several ops computed, to PyTorch's name for all of them. */
static inline Tensor *made_by(const char *grad_fn, Tensor *y) {
    if (y && y->grad_fn) y->grad_fn = grad_fn;
    return y;
}

/* Every op, in the order of the documentation, NULL at the end. */
extern const Op *const ag_ops[];

#define COMPOSITE(name) extern const OpText ag_text_##name;
#define OP(name)        COMPOSITE(name) extern const Op ag_op_##name;
#define EACH(name)      OP(name)
#include "../tensor/kernels/elementwise.def"
#include "ops.def"
#undef EACH

/* Define ag_text_NAME and ag_op_NAME in the op's section of a file in ops/. A composite function
 * has only a text.
 *
 *     OP_TEXT(softmax) = {.call = "ag_softmax(x, dim)", ...};
 *     DEFINE_OP(softmax, .in = {{"x", FLOAT}}, .forward = softmax_forward, ...); */
#define OP_TEXT(op)        const OpText ag_text_##op
#define DEFINE_OP(op, ...) const Op ag_op_##op = {.name = #op, .text = &ag_text_##op, __VA_ARGS__}

/* ---- shared by the attention ops (mask.c) --------------------------------------------------- */

/* Stores the parts of a mask in in[0] to in[2], as inputs of a node. */
void ag_mask_inputs(AttentionMask mask, Tensor **in);
/* For forward: checks the mask of node n and computes how many keys valid_lens and causal allow for
 * each query. The parts of the mask are the inputs first, first + 1 and first + 2; an input that
 * the node does not have counts as NULL. Returns a new reference, or NULL with an error. */
Tensor *ag_mask_lengths(const Node *n, int first, bool causal, Shape scores);
/* The mask for the kernels, without references. lengths: the result of ag_mask_lengths. */
Mask ag_mask_of(const Node *n, int first, const Tensor *lengths, Shape scores);

/* ---- shared by the elementwise ops (elementwise.c) ------------------------------------------ */

Tensor *ag_elementwise_forward(Node *n);
void ag_elementwise_backward(const Node *n, Tensor *dy, Tensor **dx);

#endif
