/* op.h - what an op is: read it before you write one (see "How to add an op" in README.md).
 *
 * An op is one section of a file in ops/: the text for the reader, a forward function, a backward
 * function directly under it, the Op that names both, and the public function.
 * ag_apply is the one place where ops are applied: it checks the inputs, runs the forward and
 * records the node. tape.c is the one place where they are differentiated. */
#ifndef TAPEHEAD_OP_H
#define TAPEHEAD_OP_H

#include "autograd.h"
#include "../tensor/math/operations.h"

enum { OP_INPUTS = 6, SAVED = 3 };

typedef struct Op Op;

/* What an op is told besides its inputs. Each op reads the fields that are its own; nobody writes
 * them once ag_apply has them. */
typedef struct {
    int dim;              /* the dimension that the op works along, counted from the start */
    bool keepdim;         /* reductions: keep the reduced dimensions with size 1 */
    bool causal;          /* masked_softmax, attention */
    union {               /* no op reads two of these */
        double s;         /* elementwise: the number beside x */
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
            bool each_slice; /* or x as a whole */
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

/* One line of the tape: out = op(in...). */
typedef struct {
    const Op *op;
    Tensor *out;
    Tensor *const *in; /* n_in of them; NULL where an optional one is absent */
    int n_in;
    unsigned reads;                  /* which tensors backward reads, bit OP_INPUTS for out */
    uint32_t version[OP_INPUTS + 1]; /* of the storage of each input and of out, when recorded */
    Tensor *saved[SAVED];            /* computed by forward for backward; released with the node */
    Tensor *few[OP_INPUTS];          /* in points here, */
    Tensor **many;                   /* or here when there are more; NULL when not */
    Attributes at;
} Node;

/* The types that an input may have: bit 1 << DType for each. All inputs of an op with the same set
 * of types must have one type. */
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

/* Which tensors a backward reads. A write in place to one of these is an error; the elements of all
 * others can be freed before the backward pass. */
enum {
    READS_IN0 = 1,
    READS_IN1 = 2,
    READS_IN2 = 4,
    READS_INPUTS = (1 << OP_INPUTS) - 1, /* all of them */
    READS_OUT = 1 << OP_INPUTS,
    /* in[0] is read only for the gradient of in[1], in[1] only for the gradient of in[0] */
    READS_OTHER = 2 << OP_INPUTS,
    /* elementwise: the gradient of in[0], of in[1] is dy itself */
    DX0_IS_DY = 4 << OP_INPUTS,
    DX1_IS_DY = 8 << OP_INPUTS
};

struct Op {
    const char *name;    /* "softmax": the public function is ag_softmax */
    const char *grad_fn; /* PyTorch's name of the node, "SoftmaxBackward0" */
    Input in[OP_INPUTS]; /* the name is NULL behind the last */
    unsigned reads;      /* READS_IN0 and so on, added */
    /* Returns the result (a new reference), or leaves an error: then its result is released.
     * It checks the shapes; types and NULLs are checked already. It may fill n->saved, and writes
     * nothing else of the node. */
    Tensor *(*forward)(Node *n);
    /* Fills dx[i], a new reference, for each input that requires a gradient (ag_needs). Its shape
     * is the shape of in[i], or a shape that in[i] was broadcast to: then the engine sums it. dy
     * may have any strides, and has at least one element. Or leaves an error: then each dx[i] is
     * released. Results of an op without a backward have no gradient, nor have integers and bools.
     */
    void (*backward)(const Node *n, Tensor *dy, Tensor **dx);
    int row;          /* elementwise: its number in elementwise.def */
    double low, high; /* elementwise: where the gradient check draws its inputs */
};

/* The Input of input i; with MANY the first stands for all. */
static inline const Input *input_of(const Op *op, int i) {
    return &op->in[op->in[0].type & MANY ? 0 : i];
}

static inline bool ag_needs(const Node *n, int i) { return n->in[i] && n->in[i]->requires_grad; }

/* Buffers for a dx, new references. (A gradient that is dy itself is tensor_retain(dy).)
 *
 * ag_buffer_like: contiguous, of dy's shape and type, not filled: dy's own memory if nobody else
 * holds it, else new memory. Use it for the last dx that is computed from dy.
 * ag_gradient_buffer: of in[i]'s shape, for an op that adds to a part of it (slice, gather): the
 * gradient accumulated for in[i] so far if nobody else holds it, else zeros. */
Tensor *ag_buffer_like(Tensor *dy);
Tensor *ag_gradient_buffer(const Node *n, int i);

/* Applies an op on the open tape: a loan. */
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

/* False if an error is pending or x is NULL, which is an error. For public functions that read x
 * before ag_apply does. ag_check_ready: also false, with an error, if no tape is open. */
bool ag_check_present(const char *op, const Tensor *x);
bool ag_check_ready(const char *op, const Tensor *x);

/* y, which several ops computed, with PyTorch's name for all of them. */
static inline Tensor *made_by(const char *grad_fn, Tensor *y) {
    if (y && y->grad_fn) y->grad_fn = grad_fn;
    return y;
}

/* Every op, in the order of the documentation, NULL at the end. */
extern const Op *const ag_ops[];

#define EACH(name) extern const Op ag_op_##name;
#define OP(name)   EACH(name)
#include "../tensor/kernels/elementwise.def"
#include "ops.def"
#undef EACH

/* Defines ag_op_NAME in the op's section of a file in ops/:
 *
 *     DEFINE_OP(softmax, .in = {{"x", FLOAT}}, .forward = softmax_forward, ...); */
#define DEFINE_OP(op, ...) const Op ag_op_##op = {.name = #op, __VA_ARGS__}

/* ---- shared by the attention ops (mask.c) --------------------------------------------------- */

/* The parts of a mask as three inputs of a node. */
void ag_mask_inputs(AttentionMask mask, Tensor **in);
/* For forward: checks the mask of a node, whose parts are its inputs from the first one on (a node
 * with fewer inputs has fewer parts), and computes how many keys each query may attend to. A new
 * reference, or NULL with an error. */
Tensor *ag_mask_lengths(const Node *n, int first, bool causal, Shape scores);
/* The mask for the kernels, in forward, and in backward with the lengths that forward saved. */
Mask ag_mask_of(const Node *n, int first, const Tensor *lengths, Shape scores);

/* ---- shared by the elementwise ops (elementwise.c) ------------------------------------------ */

Tensor *ag_elementwise_forward(Node *n);
void ag_elementwise_backward(const Node *n, Tensor *dy, Tensor **dx);

#endif
