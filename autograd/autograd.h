/* autograd.h - the tape and the differentiable ops.
 *
 * Ownership, in one sentence: an op lends you its result; the open tape owns it. Between
 * tape_begin() and tape_end() you can nest calls without a release call:
 *
 *     ag_bmm(ag_softmax(ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), s), -1), v)
 *
 * and tape_end() releases all results. tensor_retain a result that must outlive the tape. Inputs
 * are borrowed; the tape has references of its own to the inputs that it needs.
 *
 * C does not define the order in which the arguments of a call are computed: write ops that draw
 * random numbers, such as two dropouts, as statements of their own.
 *
 * The tape does not record writes in place (tensor_copy_from, tensor_add_, ...). An op refuses a
 * result of the tape that was written over since; tensor.h says more.
 *
 * Errors are as in tensor.h: NULL or false, one error message, the first one stays. An op whose
 * input is NULL returns NULL, so a chain needs one check at its end.
 *
 * Types: the tensors of one op and its result have one type, unless said otherwise below; nothing
 * is promoted silently. Every op on numbers takes F32 and F64. An op takes I64 (modulo 2^64, with
 * whole numbers) and BOOL, as said below, if PyTorch's result would have that type; if PyTorch
 * would convert them to floats, call ag_to first. Only floats can have a gradient. Broadcasting is
 * NumPy's. Negative dimensions count from the end. */
#ifndef TAPEHEAD_AUTOGRAD_H
#define TAPEHEAD_AUTOGRAD_H

#include "../tensor/tensor.h"

/* ---- lists of dimensions ------------------------------------------------------------------- */

typedef struct {
    int n;
    int axis[TENSOR_MAX_DIMS];
} Axes;

/* AXES(0, 2, 1, 3) */
#ifdef __cplusplus
extern "C++" {
template <class... N> inline Axes AXES(N... n) {
    return {static_cast<int>(sizeof...(n)), {static_cast<int>(n)...}};
}
}
extern "C" {
#else
#define AXES(...) ((Axes){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})
#endif

/* ---- an op, for the reader ------------------------------------------------------------------- */

/* The row of an op, or of a function of ops, in the tables of autograd/README.md; y is the result,
 * dy its gradient. */
typedef struct {
    const char *call;     /* "ag_softmax(x, dim)" */
    const char *shapes;   /* "(..., N, ...) -> same" */
    const char *value;    /* "exp(x - max x) / sum exp(x - max x)" */
    const char *gradient; /* "y (dy - sum(y dy))"; of several inputs: "dy b'; a' dy" */
    const char *source;   /* the paper, "" or NULL if there is none */
} OpText;

/* ---- the tape ---------------------------------------------------------------------------- */

/* Opens a tape that records. At most one recording tape is open in a thread. */
bool tape_begin(void);
/* Opens a tape that owns results in the same way, but holds no inputs and has no backward pass: for
 * inference. */
bool tape_begin_no_grad(void);
/* Closes the innermost tape and releases its results. A result that you retained stays, without its
 * history: if it requires a gradient, recorded ops refuse it and take ag_detach of it. If no tape
 * is open, nothing happens. */
void tape_end(void);
/* Closes the innermost tape but keeps y, one of its results: then the tape outside owns y, or, if
 * no other is open, you do (tensor_release it). Always closes the tape; y NULL returns NULL. */
Tensor *tape_end_keeping(Tensor *y);
/* Gives a tensor of your own to the open tape, which takes over your reference, also on failure:
 * tape_own(tensor_randn(SHAPE(2, 3))) is a loan like the result of an op. Returns x. */
Tensor *tape_own(Tensor *x);
/* If keep is true, the open recording tape keeps the gradients of intermediate results, and the
 * elements of results that are let go: for teaching. Call it before the ops. */
void tape_keep_grads(bool keep);
/* A line per node of the open tape: number, op, shapes, inputs, names. */
bool tape_print(FILE *file);

/* ---- backpropagation ------------------------------------------------------------------------ */

/* Backpropagation. loss has one element. y may have any shape; dy, of y's shape and type, is the
 * gradient of y. Adds to ->grad of every leaf that requires a gradient; on failure no gradient
 * has changed. May be called again on the same tape. */
bool ag_backward(Tensor *loss);
bool ag_backward_from(Tensor *y, const Tensor *dy);

/* x->grad becomes NULL. Backward adds to x->grad: call ag_zero_grad before the next step. */
bool ag_zero_grad(Tensor *x);

/* The next four functions return x (NULL on error). */
/* Ops record x, a float leaf, from here on, and backpropagation computes its gradient. */
Tensor *ag_requires_grad(Tensor *x);
Tensor *ag_retain_grad(Tensor *x);            /* keep the gradient of this intermediate result */
Tensor *ag_name(Tensor *x, const char *name); /* copied, at most 31 bytes; for tape_print */
/* You are done with x's elements. They go as soon as backward and x's views are done with them;
 * shape, type and history stay. */
Tensor *ag_let_go(Tensor *x);
/* The same for every tensor that the open tape owns since a mark, except y and tensors that you
 * have retained. A function of several ops then keeps only its result:
 *
 *     const int mark = tape_mark();
 *     Tensor *scores = ag_bmm(q, ag_transpose(k, 1, 2));
 *     return ag_let_go_since(mark, ag_softmax(scores, -1));
 *
 * A mark is the number of nodes on all open tapes. ag_let_go_since returns y. */
int tape_mark(void);
Tensor *ag_let_go_since(int mark, Tensor *y);

/* A loan that shares x's memory and requires no gradient. */
Tensor *ag_detach(Tensor *x);

/* ---- an op of your own ----------------------------------------------------------------------- */
/* torch.autograd.Function: a program defines an op by its forward and its backward. The op is
 * checked, recorded, printed, differentiated and shown like those below.
 *
 *     static Tensor *cube_forward(const AgCall *call) {
 *         Tensor *x = call->in[0];
 *         return tensor_retain(ag_mul(x, ag_square(x)));
 *     }
 *     static void cube_backward(const AgCall *call, Tensor *dy, Tensor **dx) {
 *         dx[0] = tensor_retain(ag_mul(ag_scale(ag_square(call->in[0]), 3), dy));
 *     }
 *     static const AgFunction cube = {"cube", "x^3", "3 x^2 dy", cube_forward, cube_backward};
 *
 *     Tensor *y = ag_call(&cube, 1, &x, NULL);
 */

typedef struct AgFunction AgFunction;

typedef struct {
    const AgFunction *function;
    int n;
    Tensor *const *in; /* n inputs */
    Tensor *out;       /* the result, for backward; in forward NULL */
    void *data;        /* what ag_call got */
} AgCall;

/* Both functions may apply ops: these go to a tape of the function's own, which records nothing and
 * ends with it, so tensor_retain what you return. Inputs and dy may have any strides, and are only
 * read. Report a mistake by tensor_fail: then nothing is recorded, and no gradient changes. */
struct AgFunction {
    const char *name;               /* "cube": for tape_print, grad_fn and error messages */
    const char *formula, *gradient; /* for the reader of tape_write_json; may be NULL */
    /* Returns the result, a new reference; NULL with an error. If somebody else holds the tensor,
     * an input for example, the result of the op is a view of it. */
    Tensor *(*forward)(const AgCall *call);
    /* Sets dx[i], a new reference, at least where in[i] required a gradient when the function was
     * applied: in in[i]'s type and shape, or in a shape that in[i] broadcasts to (it is summed
     * back). All dx[i] are NULL before. dy, the gradient of the result, has at least one element.
     * backward NULL: the result has no gradient. */
    void (*backward)(const AgCall *call, Tensor *dy, Tensor **dx);
};

/* Applies a function to n inputs, at most 7, of any types. The function and data outlive the tape.
 * Backward reads the inputs and the result, so ag_let_go keeps their elements until then. */
Tensor *ag_call(const AgFunction *function, int n, Tensor *const *in, void *data);

/* ---- elementwise ---------------------------------------------------------------------------- */
/* Each is made from a row of a table. Their formulas and gradients are in the tables of
 * autograd/README.md. add, mul, maximum and minimum take any type (of bools, + is "or" and * is
 * "and"); sub, neg, abs, square, relu, scale, add_scalar, clamp_min and clamp_max take I64 too; the
 * others, such as pow, take only floats. */

Tensor *ag_add(Tensor *a, Tensor *b), *ag_sub(Tensor *a, Tensor *b), *ag_mul(Tensor *a, Tensor *b);
Tensor *ag_div(Tensor *a, Tensor *b), *ag_pow(Tensor *a, Tensor *b);
/* Equal elements share the gradient, half each. */
Tensor *ag_maximum(Tensor *a, Tensor *b), *ag_minimum(Tensor *a, Tensor *b);

Tensor *ag_neg(Tensor *x), *ag_square(Tensor *x), *ag_sqrt(Tensor *x), *ag_exp(Tensor *x);
Tensor *ag_log(Tensor *x), *ag_sin(Tensor *x), *ag_cos(Tensor *x), *ag_tanh(Tensor *x);
Tensor *ag_sigmoid(Tensor *x), *ag_silu(Tensor *x);
Tensor *ag_log1p(Tensor *x); /* log(1 + x), with all digits where x is small */
/* log(1 + exp(x)). (PyTorch returns x where x > 20: 2e-9 less, which only float64 shows.) */
Tensor *ag_softplus(Tensor *x);
Tensor *ag_abs(Tensor *x);       /* gradient 0 dy at 0: NaN for an infinite dy, as in PyTorch */
Tensor *ag_relu(Tensor *x);      /* gradient 0 at 0, for any dy */
Tensor *ag_gelu(Tensor *x);      /* x Phi(x), the exact form */
Tensor *ag_gelu_tanh(Tensor *x); /* PyTorch's gelu with approximate="tanh"; GPT-2 */

Tensor *ag_scale(Tensor *x, double factor), *ag_add_scalar(Tensor *x, double number);
Tensor *ag_pow_scalar(Tensor *x, double exponent);
Tensor *ag_leaky_relu(Tensor *x, double slope); /* x where x > 0, slope x elsewhere */
/* max(x, low), min(x, high). The gradient at a bound is 0. */
Tensor *ag_clamp_min(Tensor *x, double low), *ag_clamp_max(Tensor *x, double high);

/* x in another type, converted as by a C cast (!= 0 for BOOL); x itself if it has the type. A
 * conversion from float to float has a gradient, in x's type. */
Tensor *ag_to(Tensor *x, DType dtype);

/* Results are BOOL, without a gradient. Inputs: one common type, any of the four; for the logical
 * ops every number but 0 is true. */
Tensor *ag_eq(Tensor *a, Tensor *b), *ag_lt(Tensor *a, Tensor *b), *ag_gt(Tensor *a, Tensor *b);
Tensor *ag_ne(Tensor *a, Tensor *b), *ag_le(Tensor *a, Tensor *b), *ag_ge(Tensor *a, Tensor *b);
Tensor *ag_logical_and(Tensor *a, Tensor *b), *ag_logical_or(Tensor *a, Tensor *b);
Tensor *ag_logical_not(Tensor *x);

/* condition and mask are BOOL; all operands broadcast together. An element that is not selected
 * gets a gradient of exactly 0. But the op before may multiply this 0 by infinity, and get NaN:
 * ag_where(ag_gt_scalar(x, 0), ag_sqrt(x), zero) at x = 0. Select the input instead:
 * ag_sqrt(ag_where(ag_gt_scalar(x, 0), x, one)). */
Tensor *ag_where(Tensor *condition, Tensor *a, Tensor *b);     /* a where true, b where false */
Tensor *ag_masked_fill(Tensor *x, Tensor *mask, double value); /* value where true */

/* ---- shape. Any type; views wherever PyTorch's are ----------------------------------------- */

Tensor *ag_reshape(Tensor *x, Shape shape); /* one size may be -1; a copy if no view is possible */
Tensor *ag_view(Tensor *x, Shape shape);    /* the same, but an error if no view is possible */
Tensor *ag_contiguous(Tensor *x);           /* x itself when it is contiguous already */
Tensor *ag_permute(Tensor *x, Axes axes);   /* dimension i of the result is axes[i] of x */
Tensor *ag_transpose(Tensor *x, int dim0, int dim1);
Tensor *ag_unsqueeze(Tensor *x, int dim);  /* a new dimension of size 1 that will be dim */
Tensor *ag_squeeze(Tensor *x, int dim);    /* unchanged when the size is not 1 */
Tensor *ag_expand(Tensor *x, Shape shape); /* sizes of 1 repeat, by stride 0; -1 keeps a size */
Tensor *ag_slice(Tensor *x, int dim, int64_t start, int64_t end); /* Python's x[start:end] */
Tensor *ag_select(Tensor *x, int dim, int64_t index);             /* drops dim */
Tensor *ag_cat(Tensor **list, int n, int dim); /* a (0,) in the list is skipped */
Tensor *ag_stack(Tensor **list, int n, int dim);
Tensor *ag_repeat(Tensor *x, Shape repeats); /* as PyTorch's x.repeat; repeats.ndim >= x's */
Tensor *ag_repeat_interleave(Tensor *x, int64_t repeats, int dim); /* each slice, repeats times */
Tensor *ag_masked_select(Tensor *x, Tensor *mask); /* (count of true); x and mask broadcast */
/* index: I64, at least 0 and below the size of dim; an element that is gathered twice gets the sum
 * of both gradients. For up to 128 indices (along dim) the sum has PyTorch's bits; for more it is
 * computed in double and rounded once. For dim 0, index_select, with an index (n) or (), gives
 * x[index[i], j], and gather gives x[index[i, j], j]. */
Tensor *ag_index_select(Tensor *x, int dim, Tensor *index);
Tensor *ag_gather(Tensor *x, int dim, Tensor *index);
Tensor *ag_embedding(Tensor *w, Tensor *index); /* w (N, D), index (...) -> (..., D) */

/* ---- reductions ---------------------------------------------------------------------------- */

/* Sums take any type; a sum of I64 or BOOL is I64. argmax takes floats and I64, means floats. (More
 * reductions are below.) */
Tensor *ag_sum(Tensor *x);                               /* a scalar */
Tensor *ag_mean(Tensor *x);                              /* a scalar; NaN without elements */
Tensor *ag_sum_dims(Tensor *x, Axes dims, bool keepdim); /* no dims: all of them */
Tensor *ag_mean_dims(Tensor *x, Axes dims, bool keepdim);
/* I64: the position of the first maximum; NaN counts as the largest. */
Tensor *ag_argmax(Tensor *x, int dim);

/* ---- products. Floats or I64 ---------------------------------------------------------------- */

Tensor *ag_matmul(Tensor *a, Tensor *b); /* torch.matmul: 1-d, 2-d and batched, batches broadcast */
Tensor *ag_bmm(Tensor *a, Tensor *b);    /* (B, N, K), (B, K, M) -> (B, N, M) */
/* x (..., in) w (out, in) b (out) or NULL: x w' + b */
Tensor *ag_linear(Tensor *x, Tensor *w, Tensor *b);

/* ---- softmax ------------------------------------------------------------------------------- */

Tensor *ag_softmax(Tensor *x, int dim);
/* Which keys a query may attend to, and what is added to its scaled scores: B batch, H heads, Q
 * queries, K keys. All parts combine, and a key that one part masks is masked. (AttentionMask){0}
 * masks nothing.
 *
 * The bias of each head of ALiBi (Press et al. 2022): slope (H, 1, 1), distance[i, j] = j - i
 *     .bias = ag_mul(slope, distance), .causal = true
 * of T5 (Raffel et al. 2020): table (buckets, H) is learned, bucket (Q, K) is I64
 *     .bias = ag_permute(ag_embedding(table, bucket), AXES(2, 0, 1))
 */
typedef struct {
    const Tensor *valid_lens; /* I64 (B) or (B, Q), not negative: keys at or past it are masked */
    const Tensor *keep;       /* BOOL, broadcasts to (B, H, Q, K): false is masked */
    const Tensor *window; /* float (windows, Q, K), the same for all heads: the batch b gets window
                           * b mod windows (Swin, Liu et al. 2021). A constant; -inf: masked. A
                           * tensor with a matrix for each head is a bias */
    Tensor *bias;         /* float, broadcasts to (B, H, Q, K), gets its gradient; -inf: masked */
    bool causal;          /* for query i the keys after key i are masked */
} AttentionMask;
/* Does the mask fit scores (B, H, Q, K) of this type? If not, false with an error that begins with
 * who and names the part. A module calls this before it draws its weights. */
bool ag_mask_fits(const char *who, AttentionMask mask, Shape scores, DType dtype);

/* The weights of attention, softmax(scale scores + window + bias) over the keys that the mask
 * allows.
 * scores: (B, H, Q, K), or (B H, Q, K) where the num_heads heads of a batch follow one another. For
 * a masked key the weight and the gradient of the score are exactly 0, even if the score is NaN.
 * The same holds for all keys of a query that has no key to attend to. */
Tensor *ag_attention_weights(Tensor *scores, double scale, AttentionMask mask, int64_t num_heads);
/* The same for scores (N, Q, K) or (B, H, Q, K), with scale 1 and only lengths. A length beyond K
 * means K. valid_lens may be NULL. */
Tensor *ag_masked_softmax(Tensor *scores, const Tensor *valid_lens);

/* The scores of additive attention, Bahdanau et al. 2015: w tanh(q + k) for every query with every
 * key. q (B, Q, H), k (B, K, H), w (1, H), the weight of a linear layer -> (B, Q, K): the same as
 * ag_linear of ag_tanh of the sum (B, Q, K, H), without that sum in memory. A key at or past
 * valid_lens (as for ag_masked_softmax; may be NULL) is skipped: its score is 0, whatever q and k
 * are, and its dy counts as 0: the key adds 0 to the gradients of q, k and w; but NaN, as in
 * PyTorch, if this 0 is multiplied by a NaN or an infinity. (In a build of the core alone such a
 * score is computed, and only the weight that a mask makes of it is 0.) */
Tensor *ag_additive_scores(Tensor *q, Tensor *k, Tensor *w, const Tensor *valid_lens);

/* dropout(softmax(q k' / sqrt(D) + window + bias)) v, over the keys that the mask allows: the same
 * numbers, random ones too, as a product, ag_attention_weights, ag_dropout and a product, but
 * without the Q x K weights in memory, forward or backward. q (B, H, Q, D), k (B, G, K, D), v (B,
 * G, K, Dv) -> (B, H, Q, Dv), or all without H and G. G divides H, mostly G = H: head h of q
 * attends to head h / (H / G) of k and v (PyTorch's enable_gqa; Ainslie et al. 2023). dropout: the
 * probability that a weight is dropped; for evaluation pass 0. (The gradient of a bias is a matrix
 * for each head before it is summed over what was broadcast.) In float32 a weight may be 0 if it is
 * below 2^-100 of the largest weight of its query: then that query adds nothing to the gradients of
 * the key and of the value. */
Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout);

/* ---- others -------------------------------------------------------------------------------- */

/* (x - mean) / sqrt(variance + eps) w + b over the last dimensions of x, as many as w and b have,
 * with equal sizes. w or b may be NULL; if both are, the op normalises the last dimension. The
 * variance is the sum of squares divided by n, not by n - 1. eps must not be negative. Ba, Kiros &
 * Hinton 2016. */
Tensor *ag_layer_norm(Tensor *x, Tensor *w, Tensor *b, double eps);

/* Sets elements to 0 with probability p and divides the others by 1 - p. p = 0 returns x. Always
 * drops: only the modules of nn know whether a model is in training. Draws in the order of x's
 * memory, as PyTorch does. But the result of an elementwise op lies row by row here, and in PyTorch
 * as its input does: of ag_relu(ag_transpose(x, 0, 1)) other elements are dropped than there. */
Tensor *ag_dropout(Tensor *x, double p);

typedef enum { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } Reduction;
Tensor *ag_mse_loss(Tensor *y, Tensor *t, Reduction reduction); /* (y - t)^2; equal shapes */
/* -log softmax(logits)[target], logits (C), (N, C) or (N, C, ...), targets I64 of that shape
 * without C. A target equal to ignore_index has no loss and no gradient; a mean is over the other
 * targets, NaN if there are none. ignore_index may be any number, also a class: 0 ignores the
 * targets that are 0. AG_IGNORE_NONE ignores no target. (PyTorch's default is -100.) Any other
 * target that is no class is an error. */
#define AG_IGNORE_NONE INT64_MIN
Tensor *ag_cross_entropy(Tensor *logits, Tensor *targets, int64_t ignore_index,
                         Reduction reduction);

/* ---- gradient checking --------------------------------------------------------------------- */

/* A differentiable function of the inputs; returns a loan of the open tape. */
typedef Tensor *(*ScalarOrTensorFn)(Tensor **inputs, void *ctx);

typedef struct {
    double eps;     /* half the step of the central difference for |x| up to 1; 0 means 1e-6 */
    double rtol;    /* 0 means 1e-6 */
    double atol;    /* 0 means 1e-7 */
    uint64_t seed;  /* of the random cotangent */
} GradcheckOptions; /* (GradcheckOptions){0} is good */

/* Compares backpropagation of <c, fn(inputs)>, c a fixed random tensor, with central differences,
 * for every element of every input that requires a gradient (F64, not expanded). fn is called many
 * times; the state of the generator is restored before each call and at the end, so dropout draws
 * the same mask every time. False with an error that names the input and the element. The step
 * grows with the number x: where the usual step does not confirm a gradient, others up to 32 eps
 * |x| are tried. If the differences contradict each other more than the gradient, the error says
 * that they cannot check it: at a number beside which f(x) loses its digits, or a NaN, for example.
 * If the point is a kink (relu at 0, a maximum that is reached twice), it says so: no difference
 * checks a gradient there.
 * The inputs, their gradients and the generator do not change. No recording tape may be open. */
bool ag_gradcheck(ScalarOrTensorFn fn, Tensor **inputs, int n, void *ctx, GradcheckOptions options);

/* ==== the rest of the library: not there in a build of the core alone ========================= */
#ifndef TAPEHEAD_CORE

/* ---- the lines of the tape, and the tape as JSON --------------------------------------------- */

/* A line of the open recording tape. Lines are numbered from 0. tape_print prints the same numbers
 * if no other tape is open. */
typedef struct {
    const char *op;     /* "softmax"; "kept" for a tensor of tape_own or tape_end_keeping */
    const OpText *text; /* NULL for "kept"; valid until the next op, as in is */
    Tensor *out;        /* the tape's own, here and below */
    Tensor *const *in;  /* n_in inputs; NULL for an optional one that is absent */
    int n_in;
    const char *argument; /* "s", "p", "scale", "eps", "base": a number that the op got; or NULL */
    double number;
} TapeLine;

/* False, without an error, if there is no line i: for (int i = 0; tape_line(i, &line); i++) */
bool tape_line(int i, TapeLine *line);

/* PyTorch's register_hook of a node: until the tape ends, hook is called after each backward of
 * line i, which must have a gradient. dx[k] is then what backward has computed for in[k], NULL if
 * in[k] needs none. To change it, release it and set another one, as AgFunction's backward does;
 * call->function is NULL, call->data is data. A line has one hook: a second one takes its place,
 * NULL removes it. */
bool tape_register_hook(int i, void (*hook)(const AgCall *call, Tensor *dy, Tensor **dx),
                        void *data);

/* The vector-Jacobian product of line i: dx[k], a new reference, is what backpropagation would add
 * to the gradient of in[k] if dy were the gradient of the result; NULL for an input without a
 * gradient. dx has n_in places. False with an error if the result of line i requires no
 * gradient. */
bool tape_vjp(int i, const Tensor *dy, Tensor **dx);
/* Computes the result of line i once more, a new reference, from the inputs as they are now. An op
 * that draws, such as dropout, uses the numbers that it drew the first time: NULL with an error if
 * its result requires no gradient, since then they were not kept. */
Tensor *tape_forward(int i);
/* Writes the tape after a backward pass as JSON, for a page that shows backpropagation
 * (build/explain --tape). The tape must have kept its gradients (tape_keep_grads). JSON of more
 * than 1 MB is an error. It is one object:
 *
 * lines: for each op in order: line, its number from 0; op, call, shapes, formula, gradient and
 *     source, its texts; an argument (s, p, scale, eps or base); view, does the result share the
 *     memory of the first input; in and out, the numbers of tensors, -1 if absent; and backward.
 * backward: empty if the result has no gradient; else for each input null, or: input, its number;
 *     dx, what backward added to its gradient; jacobian; worst, the largest difference between the
 *     Jacobian and central differences in float64, relative to max(1, abs J); unchecked, how many
 *     derivatives differences cannot check, because their steps contradict each other or the point
 *     is a kink: worst leaves these out.
 * jacobian: for each element i of the input [j, J[j, i], ...], J[j, i] = d y[j] / d x[i], for the J
 *     that are not 0; or, if all are 0, the reason: "masked", "weight is 0", "weight is 1",
 *     "dropped", "flat", "times 0" or "unused".
 * tensors: each once: type, name, shape, leaf, requires_grad, value and, if it has one, grad.
 *     Elements are row-major; NaN and infinities are strings. */
bool tape_write_json(FILE *file);

/* Would backpropagation from y add to x's gradient: does x require a gradient, and does y depend on
 * x? False with an error if no recording tape is open. */
bool ag_reaches(Tensor *y, Tensor *x);

/* ---- more ops ------------------------------------------------------------------------------- */

/* min(max(x, low), high): high where low > high. The gradient at a bound is 0. */
Tensor *ag_clamp(Tensor *x, double low, double high);

/* Dimensions start to end, end included, as one: all of them for 0, -1. A scalar becomes (1). */
Tensor *ag_flatten(Tensor *x, int start, int end);
/* torch.split: x cut along dim into slices of this size; the last slice is smaller if size does not
 * divide the size of dim. list gets all slices, and n must be their number; on error the list holds
 * NULLs. */
bool ag_split(Tensor *x, int64_t size, int dim, Tensor **list, int n);

/* torch.flip: a copy of x in which the order of the elements along these dimensions is reversed. */
Tensor *ag_flip(Tensor *x, Axes dims);

/* torch's F.pad along one dimension: x, with the value before times before it and after times after
 * it. before and after are at least 0; x itself when both are. */
Tensor *ag_pad(Tensor *x, int dim, int64_t before, int64_t after, double value);
/* torch's pad_sequence with batch_first: n sequences (L_i, ...) as one tensor (n, L, ...), where L
 * is the longest L_i. Shorter sequences are followed by the value. */
Tensor *ag_pad_sequence(Tensor **list, int n, double value);

/* In the last two dimensions: x, but 0 above (tril) or below (triu) the diagonal. */
Tensor *ag_tril(Tensor *x, int diagonal), *ag_triu(Tensor *x, int diagonal);

/* ag_eq and so on with a number, in x's type; x float or I64. */
Tensor *ag_eq_scalar(Tensor *x, double s), *ag_ne_scalar(Tensor *x, double s);
Tensor *ag_lt_scalar(Tensor *x, double s), *ag_le_scalar(Tensor *x, double s);
Tensor *ag_gt_scalar(Tensor *x, double s), *ag_ge_scalar(Tensor *x, double s);
Tensor *ag_isnan(Tensor *x); /* BOOL; false for every I64 and BOOL */

/* torch.var and torch.std: divided by n - 1. The gradient of a deviation of 0 is 0, for any dy. */
Tensor *ag_var_dim(Tensor *x, int dim, bool keepdim), *ag_std_dim(Tensor *x, int dim, bool keepdim);
/* Maxima and minima take any type. torch.amax and amin of one dimension, but only the first extreme
 * gets the gradient, as in torch.max(x, d) and min(x, d). A NaN counts as the maximum and as the
 * minimum. */
Tensor *ag_max_dim(Tensor *x, int dim, bool keepdim), *ag_min_dim(Tensor *x, int dim, bool keepdim);
Tensor *ag_max(Tensor *x); /* torch.max(x), a scalar: equal maxima share the gradient */
Tensor *ag_log_softmax(Tensor *x, int dim); /* x - log sum exp(x) */
/* log sum exp(x), dim dropped, or kept with size 1 */
Tensor *ag_logsumexp(Tensor *x, int dim), *ag_logsumexp_dim(Tensor *x, int dim, bool keepdim);
/* As ag_argmax; of all elements, row-major. */
Tensor *ag_argmax_dim(Tensor *x, int dim, bool keepdim), *ag_argmax_all(Tensor *x);
/* I64: the position of the first minimum; NaN counts as the smallest. */
Tensor *ag_argmin(Tensor *x, int dim);
/* torch.topk: the k largest elements along dim, the largest first. NaN counts as the largest, and
 * of equal elements the first comes first. *indices, unless indices is NULL, gets their positions,
 * I64, a loan too; on error NULL. */
Tensor *ag_topk(Tensor *x, int64_t k, int dim, Tensor **indices);
Tensor *ag_cumsum(Tensor *x, int dim); /* y[i] = x[0] + ... + x[i] along dim */

/* x / sqrt(mean(x^2) + eps) w over the last dimensions of x, as many as w has; w NULL: the last
 * one. AG_EPS_OF_TYPE, as PyTorch's eps=None, is the distance from 1 to the next number of x's
 * type; any other eps must not be negative. Zhang & Sennrich 2019. */
#define AG_EPS_OF_TYPE (-1)
Tensor *ag_rms_norm(Tensor *x, Tensor *w, double eps);

/* Rotary positions, Su et al. 2021. x (..., N, D), D even, mostly (B, H, N, D): the D numbers of a
 * row are D / 2 pairs, and pair i turns by the angle position base^(-2 i / D). positions: I64 (N),
 * or (B, N) for x (B, ..., N, D). PyTorch has no such function; models differ in their pairs, and
 * weights trained with one kind give nonsense with the other. Hugging Face's Llama has
 * ROPE_HALVES, Meta's own files ROPE_ADJACENT. Llama's base is 10000 (1 and 2) or 500000 (3); from
 * 3.1 on it scales the angles of slow pairs as well: ag_rope_speeds. */
typedef enum {
    ROPE_ADJACENT, /* (0, 1), (2, 3), ...: GPT-J */
    ROPE_HALVES    /* (0, D / 2), (1, D / 2 + 1), ...: GPT-NeoX */
} RopePairs;
Tensor *ag_rope(Tensor *x, Tensor *positions, double base, RopePairs pairs);
/* The same, but pair i turns by position speeds[i]; speeds: float (D / 2), a constant. For models
 * whose angles are scaled: tensor_rope_linear, tensor_rope_llama3. */
Tensor *ag_rope_speeds(Tensor *x, Tensor *positions, Tensor *speeds, RopePairs pairs);

/* ag_cross_entropy with label smoothing: (1 - smoothing) -log softmax(logits)[target] + smoothing
 * times the mean of -log softmax(logits) over the classes, smoothing from 0 to 1. Szegedy et al.
 * 2016. An ignored target has no loss and no gradient. */
Tensor *ag_cross_entropy_smoothed(Tensor *logits, Tensor *targets, int64_t ignore_index,
                                  Reduction reduction, double smoothing);

/* ag_attention with another scale than 1 / sqrt(D). */
Tensor *ag_attention_scaled(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout,
                            double scale);

#endif

#ifdef __cplusplus
}
#endif
#endif
