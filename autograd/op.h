/* op.h - the definition of an op: read it before you write one (see "How to add an op" in
 * README.md).
 *
 * An op is one section of a file in ops/: the text for the reader, which is its row in README.md, a
 * forward function, a backward function directly under it, the Op that names both, and the public
 * function. Only ag_apply applies ops: it checks the inputs, runs the forward and records the node.
 * Only backward.c differentiates ops. */
#ifndef TAPEHEAD_OP_H
#define TAPEHEAD_OP_H

#include "engine.h"

#include <math.h>
#include <stddef.h>

/* The types that an input may have: bit 1 << DType for each. Inputs of an op with the same set of
 * types must have equal types. */
typedef enum {
    FLOAT = 1 << F32 | 1 << F64,
    NUMBER = FLOAT | 1 << I64,
    SAME = NUMBER | 1 << BOOL, /* any type */
    INT64 = 1 << I64,
    BOOLEAN = 1 << BOOL,
    OPTIONAL = 1 << 4,  /* may be NULL */
    MANY = 1 << 5,      /* one or more tensors */
    ANY = SAME | 1 << 6 /* any type, whatever the types of the other inputs are */
} InputType;

typedef struct {
    const char *name;
    InputType type;
} Input;

/* Which tensors a backward reads. Backward fails if one of them was overwritten. The elements of
 * all others can be freed before it. */
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
    /* Sets dx[i], a new reference, at least where ag_needs(n, i); or sets the pending error. dx[i]
     * may have any shape that in[i] broadcasts to: the caller sums it back, and releases what
     * nobody needs. dy may have any strides, and has at least one element. NULL: the result has no
     * gradient, as integers and bools have none. */
    void (*backward)(const Node *n, Tensor *dy, Tensor **dx);
    int draws; /* 1 + the index in saved of the tensor that forward draws; if saved has this
                * tensor already, forward draws nothing. 0: the op draws nothing */
    /* For a page that shows a line: why no element of the result changes with an element of in[0],
     * if the reason depends on the op alone ("dropped"); and the argument that it shows. */
    const char *zero;
    struct {
        const char *name; /* "p" */
        size_t offset;    /* of the number, a double, in Attributes */
    } shown;
    bool weighs;   /* the result is weights for the scores in[0]; a weight that is 0 for scores of
                    * 0 is masked */
    bool converts; /* the result has the type at.dtype */
    bool calls;    /* ag_call: name and texts are those of n->at.function */
    int row;       /* elementwise: its number in elementwise.def */
    double low, high; /* elementwise: where the gradient check draws its inputs */
};

/* The Input of input i; with MANY in[0] describes all inputs. */
static inline const Input *input_of(const Op *op, int i) {
    return &op->in[op->in[0].type & MANY ? 0 : i];
}

/* .shown = SHOWN(p) */
#define SHOWN(attribute)                                                                           \
    { #attribute, offsetof(Attributes, attribute) }

static inline const char *op_name(const Op *op, const Attributes *at) {
    return op->calls ? at->function->name : op->name;
}
static inline const char *node_name(const Node *n) { return op_name(n->op, &n->at); }

/* Define ag_text_NAME and ag_op_NAME in the op's section of a file in ops/. A composite function
 * has only a text.
 *
 *     OP_TEXT(softmax) = {.call = "ag_softmax(x, dim)", ...};
 *     DEFINE_OP(softmax, .in = {{"x", FLOAT}}, .forward = softmax_forward, ...); */
#define OP_TEXT(op)        const OpText ag_text_##op
#define DEFINE_OP(op, ...) const Op ag_op_##op = {.name = #op, .text = &ag_text_##op, __VA_ARGS__}

/* ---- shared by the attention ops (mask.c) --------------------------------------------------- */

/* Stores the parts of a mask in in[0] to in[3], as inputs of a node. */
void ag_mask_inputs(AttentionMask mask, Tensor **in);
/* For forward: checks the mask of node n and computes how many keys valid_lens and causal allow for
 * each query. The parts of the mask are the inputs from first to first + 3. Returns a new
 * reference, or NULL with an error. */
Tensor *ag_mask_lengths(const Node *n, int first, bool causal, Shape scores);
/* The mask for the kernels, without references. lengths: the result of ag_mask_lengths. */
Mask ag_mask_of(const Node *n, int first, const Tensor *lengths, Shape scores);

/* ---- shared by the elementwise ops (elementwise.c) ------------------------------------------ */

Tensor *ag_elementwise_forward(Node *n);
void ag_elementwise_backward(const Node *n, Tensor *dy, Tensor **dx);

#endif
