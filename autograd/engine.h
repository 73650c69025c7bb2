/* engine.h - the engine, for the files of autograd/: what the tape records of each op, and how one
 * applies and differentiates an op. */
#ifndef TAPEHEAD_ENGINE_H
#define TAPEHEAD_ENGINE_H

#include "autograd.h"
#include "../tensor/operations/operations.h"

enum { OP_INPUTS = 7, SAVED = 3 };

typedef struct Op Op;

/* The arguments of an op that are not tensors. Each op reads only its own fields. They do not
 * change after ag_apply. */
typedef struct {
    int dim;              /* the dimension that the op works along, counted from the start */
    bool keepdim;         /* reductions: keep the reduced dimensions with size 1 */
    bool causal, halves;  /* masked_softmax, attention; rope */
    union {               /* no op reads two of these fields */
        double s;         /* elementwise: the scalar operand */
        double value;     /* masked_fill */
        double p;         /* dropout */
        double eps, base; /* layer_norm, rms_norm; rope */
        DType dtype;      /* to */
        int64_t diagonal; /* tril, triu */
        Shape shape;      /* of the result: reshape, view, unsqueeze, squeeze, expand */
        Axes axes;        /* permute */
        bool dims[TENSOR_MAX_DIMS]; /* is dimension d reduced, or flipped? */
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
        struct { /* ag_call */
            const AgFunction *function;
            void *data;
            OpText text; /* the function's */
        };
    };
} Attributes;

typedef struct Hook Hook;

/* One node of the tape: out = op(in...). */
typedef struct {
    const Op *op;
    Tensor *out;
    Tensor *const *in; /* n_in inputs; NULL for an optional one that is absent */
    const bool *needs; /* did in[i] require a gradient when the op ran? */
    int n_in;
    unsigned reads;                  /* which tensors backward reads, bit OP_INPUTS for out */
    uint32_t version[OP_INPUTS + 1]; /* of the storages of in and out when the node was recorded */
    Tensor *saved[SAVED];            /* computed by forward for backward; released with the node */
    Tensor *few[OP_INPUTS];          /* in, if n_in <= OP_INPUTS, */
    bool few_needs[OP_INPUTS];       /* and needs */
    Tensor **many;                   /* in, if there are more, and behind them needs; else NULL */
    Hook *hook;                      /* of tape_register_hook; NULL: none */
    Attributes at;
} Node;

/* What tape_register_hook has set for a node. */
struct Hook {
    void (*after)(const Node *n, Tensor *dy, Tensor **dx); /* called after n's backward */
    void (*run)(const AgCall *call, Tensor *dy, Tensor **dx);
    void *data;
};

/* Backward computes the gradients that were required when the op ran. A leaf that has begun to
 * require one since was a constant for this op. */
static inline bool ag_needs(const Node *n, int i) { return n->needs[i]; }

/* ---- recording: apply.c -------------------------------------------------------------------- */

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

/* Sets the grad_fn of y, which several ops computed, to PyTorch's name for all of them. */
static inline Tensor *made_by(const char *grad_fn, Tensor *y) {
    if (y && y->grad_fn) y->grad_fn = grad_fn;
    return y;
}

/* ---- the open tape: tape.c ------------------------------------------------------------------- */

/* Line i of the open recording tape; NULL if there is none. */
const Node *ag_node(int i);
/* For public functions that read x before ag_apply does. False if an error is pending, and with an
 * error if x is NULL. ag_check_ready: also if x was let go or no tape is open; a function of other
 * ops calls it, so that the error names this function. ag_check_named: the same for one of several
 * tensors, whose name is what. */
bool ag_check_present(const char *op, const Tensor *x);
bool ag_check_ready(const char *op, const Tensor *x);
bool ag_check_named(const char *op, const char *what, const Tensor *x);

/* ---- backpropagation: backward.c ----------------------------------------------------------- */

/* Buffers for a dx, new references. (If dx equals dy, return tensor_retain(dy).)
 *
 * ag_buffer_like: contiguous, of dy's shape and type, uninitialised. It may be dy itself, if nobody
 * else holds dy: so use it only for the last dx that is computed from dy.
 *
 * ag_gradient_buffer: of in[i]'s shape, for an op that adds to some elements (slice, gather):
 * in[i]'s gradient buffer itself, if nobody else holds it, else zeros, which accumulate adds to
 * it. */
Tensor *ag_buffer_like(Tensor *dy);
Tensor *ag_gradient_buffer(const Node *n, int i);

/* Checks that dy can be read, and has y's shape and type. */
bool ag_check_cotangent(const char *function, const Tensor *y, const Tensor *dy);
/* Sets dx[i] to the gradient of in[i], in in[i]'s shape, a new reference, where in[i] requires a
 * gradient, else to NULL. On failure no reference is left in dx. */
bool ag_node_vjp(const Node *n, Tensor *dy, Tensor **dx);

/* ---- a program's functions: tape.c, function.c ----------------------------------------------- */

/* Calls run(argument), which calls a function of the program, in the middle of an op or of a
 * backward pass. The function sees one open tape, its own, which records nothing and with which its
 * results end; the nodes of the caller's tapes do not move. */
void ag_run_apart(void (*run)(void *), void *argument);
/* Is x a loan of the open tape, which nobody retained? A function that runs apart must not return
 * one. */
bool ag_is_lent(const Tensor *x);
/* Calls the function of n's hook, and checks what it has set. */
void ag_run_hook(const Node *n, Tensor *dy, Tensor **dx);

#endif
