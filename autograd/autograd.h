/* autograd.h - the tape and the differentiable ops.
 *
 * Ownership, in one sentence: an op lends you its result; the open tape owns it. Between
 * tape_begin() and tape_end() expressions compose without a release call:
 *
 *     ag_bmm(ag_softmax(ag_scale(ag_bmm(q, ag_transpose(k, 1, 2)), s), -1), v)
 *
 * and tape_end() lets everything go. What must outlive the tape: tensor_retain it.
 * Inputs are borrowed; the tape keeps its own reference to those that it needs.
 *
 * C does not say which argument of a call is computed first: give ops that draw random numbers, two
 * dropouts say, statements of their own.
 *
 * Errors are those of tensor.h: NULL or false, one sentence, the first one stays. An op whose
 * input is NULL returns NULL, so a chain needs one check at its end.
 *
 * Types: the tensors of one op, and its result, have one type, unless said otherwise below; nothing
 * is promoted silently. Every op of numbers takes F32 and F64. Where PyTorch would answer integers
 * or bools, I64 (modulo 2^64, with numbers that are whole) and BOOL are taken as is said below;
 * where it would make floats of them, use ag_to. Only floats can have a gradient. Broadcasting
 * is NumPy's. Negative dimensions count from the end.
 */
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
template <class... N> inline Axes AXES(N... n) { return {(int)sizeof...(n), {(int)n...}}; }
extern "C" {
#else
#define AXES(...) ((Axes){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})
#endif

/* ---- the tape ---------------------------------------------------------------------------- */

/* Opens a tape that records. At most one recording tape is open in a thread. */
bool tape_begin(void);
/* Opens a tape that owns results in the same way and records nothing: for inference. */
bool tape_begin_no_grad(void);
/* Closes the innermost tape and lets its results go. A result that you retained lives on, but its
 * history is gone: a recorded op refuses it until you ag_detach it. Closing nothing does nothing.
 */
void tape_end(void);
/* Closes the innermost tape but keeps y, one of its results: the tape outside owns it then, or you
 * do (tensor_release it) when there is none. Always closes the tape; y NULL returns NULL. */
Tensor *tape_end_keeping(Tensor *y);
/* Gives a tensor of your own to the open tape, which takes over your reference, also when this
 * fails: tape_own(tensor_randn(SHAPE(2, 3))) is a loan like the result of an op. Hands x back. */
Tensor *tape_own(Tensor *x);
/* Keep the gradients of intermediate results too, on the open recording tape: for teaching. */
void tape_keep_grads(bool keep);
/* A line per node of the open tape: number, op, shapes, inputs, names. */
bool tape_print(FILE *file);

/* Backpropagation. loss has one element; y may have any shape, and dy is the gradient of whatever
 * comes after y, of y's shape and type. Adds to ->grad of every leaf that requires a gradient; all
 * or nothing, if it fails no gradient has changed. May be called again on the same tape. */
bool ag_backward(Tensor *loss);
bool ag_backward_from(Tensor *y, const Tensor *dy);

/* x->grad becomes NULL. Backward adds to it: call this before the next step. */
bool ag_zero_grad(Tensor *x);

/* Does the open recording tape lead from x, which requires a gradient, to y: would the gradient of
 * y arrive at x? False, with an error, without such a tape. */
bool ag_reaches(Tensor *y, Tensor *x);

/* These hand x back (NULL on error). */
/* x, a float leaf, gets a gradient from the ops that use it from here on. */
Tensor *ag_requires_grad(Tensor *x);
Tensor *ag_retain_grad(Tensor *x);            /* keep the gradient of this intermediate result */
Tensor *ag_name(Tensor *x, const char *name); /* copied, at most 31 characters; for tape_print */
/* You will not look at x's elements again, be it with a function of tensor.h or as the input of an
 * op: their memory goes as soon as no backward pass on the tape reads them, which is at once where
 * none does, and where nothing is recorded. Views keep the elements until they are let go too.
 * Shape and type stay, and backpropagation goes through x as before. */
Tensor *ag_let_go(Tensor *x);
/* The same for everything that the open tape has got since a mark, but for y and what you have
 * retained. So a function of several ops keeps only its result:
 *
 *     const int mark = tape_mark();
 *     Tensor *scores = ag_bmm(q, ag_transpose(k, 1, 2));
 *     return ag_let_go_since(mark, ag_softmax(scores, -1));
 *
 * A mark is the number of nodes on the tape. Hands y back. */
int tape_mark(void);
Tensor *ag_let_go_since(int mark, Tensor *y);

/* A loan that shares x's bytes and requires no gradient. */
Tensor *ag_detach(Tensor *x);

/* ---- elementwise ---------------------------------------------------------------------------- */
/* The formula and the gradient of each are one row of tensor/kernels/elementwise.def. add, mul,
 * maximum and minimum take any type (of bools, + is "or" and * is "and"); sub, neg, abs, square,
 * relu, scale, add_scalar and clamp take I64 too; the others, pow among them, floats alone. */

Tensor *ag_add(Tensor *a, Tensor *b), *ag_sub(Tensor *a, Tensor *b), *ag_mul(Tensor *a, Tensor *b);
Tensor *ag_div(Tensor *a, Tensor *b), *ag_pow(Tensor *a, Tensor *b);
/* Equal elements share the gradient, half each. */
Tensor *ag_maximum(Tensor *a, Tensor *b), *ag_minimum(Tensor *a, Tensor *b);

Tensor *ag_neg(Tensor *x), *ag_square(Tensor *x), *ag_sqrt(Tensor *x), *ag_exp(Tensor *x);
Tensor *ag_log(Tensor *x), *ag_sin(Tensor *x), *ag_cos(Tensor *x), *ag_tanh(Tensor *x);
Tensor *ag_sigmoid(Tensor *x), *ag_silu(Tensor *x);
Tensor *ag_abs(Tensor *x), *ag_relu(Tensor *x); /* gradient 0 at 0 */
Tensor *ag_gelu(Tensor *x);                     /* x Phi(x), the exact form */
Tensor *ag_gelu_tanh(Tensor *x);                /* GPT-2's: torch's with approximate="tanh" */

Tensor *ag_scale(Tensor *x, double factor), *ag_add_scalar(Tensor *x, double number);
Tensor *ag_pow_scalar(Tensor *x, double exponent);
/* max(x, low), min(x, high), and both: high where low is larger. The gradient at a bound is 0. */
Tensor *ag_clamp_min(Tensor *x, double low), *ag_clamp_max(Tensor *x, double high);
Tensor *ag_clamp(Tensor *x, double low, double high);

/* x in another type, converted as a C cast does (!= 0 for BOOL), and x itself if it has the type. A
 * gradient passes from float to float, in x's type. */
Tensor *ag_to(Tensor *x, DType dtype);

/* Results are BOOL, without a gradient. Inputs: one common type, any of the four; to the logical
 * ones everything but 0 is true. */
Tensor *ag_eq(Tensor *a, Tensor *b), *ag_lt(Tensor *a, Tensor *b), *ag_gt(Tensor *a, Tensor *b);
Tensor *ag_ne(Tensor *a, Tensor *b), *ag_le(Tensor *a, Tensor *b), *ag_ge(Tensor *a, Tensor *b);
Tensor *ag_logical_and(Tensor *a, Tensor *b), *ag_logical_or(Tensor *a, Tensor *b);
Tensor *ag_logical_not(Tensor *x);

/* The same with a number, in x's type; x float or I64. */
Tensor *ag_eq_scalar(Tensor *x, double s), *ag_ne_scalar(Tensor *x, double s);
Tensor *ag_lt_scalar(Tensor *x, double s), *ag_le_scalar(Tensor *x, double s);
Tensor *ag_gt_scalar(Tensor *x, double s), *ag_ge_scalar(Tensor *x, double s);

/* condition and mask are BOOL; all operands broadcast together. A value that is not chosen gets a
 * gradient of exactly 0. */
Tensor *ag_where(Tensor *condition, Tensor *a, Tensor *b);     /* a where true, b where false */
Tensor *ag_masked_fill(Tensor *x, Tensor *mask, double value); /* value where true */

/* ---- shape. Any type; views wherever PyTorch's are ----------------------------------------- */

Tensor *ag_reshape(Tensor *x, Shape shape); /* one size may be -1; a copy where no view will do */
Tensor *ag_view(Tensor *x, Shape shape);    /* the same, but an error where no view will do */
/* Dimensions start to end, which counts too, made one: a whole row for 0, -1. A scalar becomes (1).
 */
Tensor *ag_flatten(Tensor *x, int start, int end);
Tensor *ag_contiguous(Tensor *x);         /* x itself when it is contiguous already */
Tensor *ag_permute(Tensor *x, Axes axes); /* dimension i of the result is axes[i] of x */
Tensor *ag_transpose(Tensor *x, int dim0, int dim1);
Tensor *ag_unsqueeze(Tensor *x, int dim);  /* a new dimension of size 1 that will be dim */
Tensor *ag_squeeze(Tensor *x, int dim);    /* unchanged when the size is not 1 */
Tensor *ag_expand(Tensor *x, Shape shape); /* sizes of 1 repeat, by stride 0; -1 keeps a size */
Tensor *ag_slice(Tensor *x, int dim, int64_t start, int64_t end); /* Python's x[start:end] */
Tensor *ag_select(Tensor *x, int dim, int64_t index);             /* drops dim */
/* torch.split: x cut along dim into slices of that size, the last one smaller where size does not
 * divide. list receives all of them, n must be their number; on error it holds NULLs. */
bool ag_split(Tensor *x, int64_t size, int dim, Tensor **list, int n);
Tensor *ag_cat(Tensor **list, int n, int dim); /* a (0,) among the tensors counts for nothing */
Tensor *ag_stack(Tensor **list, int n, int dim);
Tensor *ag_repeat(Tensor *x, Shape repeats); /* tiles, as torch's x.repeat; repeats.ndim >= x's */
Tensor *ag_repeat_interleave(Tensor *x, int64_t repeats, int dim); /* each slice, repeats times */
Tensor *ag_masked_select(Tensor *x, Tensor *mask); /* (count of true); x and mask broadcast */
/* index: I64, from 0 to the size of dim, exclusive; an element picked twice gets both gradients.
 * For dim 0: index_select, of an index (n) or (), is x[index[i], j], gather x[index[i, j], j]. */
Tensor *ag_index_select(Tensor *x, int dim, Tensor *index);
Tensor *ag_gather(Tensor *x, int dim, Tensor *index);
Tensor *ag_embedding(Tensor *w, Tensor *index); /* w (N, D), index (...) -> (..., D) */
/* The last two dimensions; 0 above (below) the diagonal. */
Tensor *ag_tril(Tensor *x, int diagonal), *ag_triu(Tensor *x, int diagonal);

/* ---- reductions ---------------------------------------------------------------------------- */

/* Sums take any type, and are I64 of I64 and BOOL; maxima and minima take any type, argmax I64 too.
 */
Tensor *ag_sum(Tensor *x);                               /* a scalar */
Tensor *ag_mean(Tensor *x);                              /* a scalar; NaN of no elements */
Tensor *ag_sum_dims(Tensor *x, Axes dims, bool keepdim); /* no dims: all of them */
Tensor *ag_mean_dims(Tensor *x, Axes dims, bool keepdim);
/* torch.var and torch.std: divided by n - 1. A deviation of 0 has a gradient of 0. */
Tensor *ag_var_dim(Tensor *x, int dim, bool keepdim), *ag_std_dim(Tensor *x, int dim, bool keepdim);
/* torch.amax and amin of one dimension, but the first extreme alone gets the gradient, as in
 * torch.max(x, d) and min(x, d). A NaN is both. */
Tensor *ag_max_dim(Tensor *x, int dim, bool keepdim), *ag_min_dim(Tensor *x, int dim, bool keepdim);
Tensor *ag_max(Tensor *x); /* torch.max(x), a scalar: equal maxima share the gradient */
/* log sum exp(x), dim dropped, or kept with size 1 */
Tensor *ag_logsumexp(Tensor *x, int dim), *ag_logsumexp_dim(Tensor *x, int dim, bool keepdim);
/* I64, the first maximum, NaN counts as the largest; of all elements, row-major, for argmax_all */
Tensor *ag_argmax(Tensor *x, int dim), *ag_argmax_dim(Tensor *x, int dim, bool keepdim);
Tensor *ag_argmax_all(Tensor *x);
Tensor *ag_cumsum(Tensor *x, int dim); /* y[i] = x[0] + ... + x[i] along dim */

/* ---- products. Floats or I64 ---------------------------------------------------------------- */

Tensor *ag_matmul(Tensor *a, Tensor *b); /* torch.matmul: 1-d, 2-d and batched, batches broadcast */
Tensor *ag_bmm(Tensor *a, Tensor *b);    /* (B, N, K), (B, K, M) -> (B, N, M) */
/* x (..., in) w (out, in) b (out) or NULL: x w' + b */
Tensor *ag_linear(Tensor *x, Tensor *w, Tensor *b);

/* ---- softmax ------------------------------------------------------------------------------- */

Tensor *ag_softmax(Tensor *x, int dim), *ag_log_softmax(Tensor *x, int dim);
/* Which keys a query may attend to: B batch, H heads, Q queries, K keys. All parts combine, and a
 * key that one of them ignores is ignored. (AttentionMask){0} is no mask. */
typedef struct {
    const Tensor *valid_lens; /* I64 (B) or (B, Q), not negative: keys at or past it are ignored */
    const Tensor *keep;       /* BOOL, broadcasts to (B, H, Q, K): false is ignored */
    const Tensor *window; /* float (windows, Q, K), added to the scaled scores, which are seen as
                             (B / windows, windows, H, Q, K): Swin, Liu et al. 2021. A constant;
                             -inf ignores the key */
    bool causal;          /* query i ignores the keys behind key i */
} AttentionMask;
/* Does the mask suit scores (B, H, Q, K) of this type? If not, false and a sentence that begins
 * with who and names the part. For those who must know before they draw weights. */
bool ag_mask_fits(const char *who, AttentionMask mask, Shape scores, DType dtype);

/* The weights of attention, softmax(scale scores + window) over the keys that the mask leaves.
 * scores: (B, H, Q, K), or (B H, Q, K) with the num_heads of a batch one behind the other. Ignored
 * keys get weight exactly 0 and gradient exactly 0, whatever their scores are, NaN too; so does a
 * whole row with nothing to attend to. */
Tensor *ag_attention_weights(Tensor *scores, double scale, AttentionMask mask, int64_t num_heads);
/* The same of scores (N, Q, K) or (B, H, Q, K) with scale 1 and lengths alone. A length beyond K
 * means K. valid_lens may be NULL. */
Tensor *ag_masked_softmax(Tensor *scores, const Tensor *valid_lens);

/* The scores of additive attention, Bahdanau et al. 2015: w tanh(q + k) for every query with every
 * key. q (B, Q, H), k (B, K, H), w (1, H), the weight of a linear layer -> (B, Q, K): the same as
 * ag_linear of ag_tanh of the sum (B, Q, K, H), but without ever holding that. A key at or past
 * valid_lens, as ag_masked_softmax takes them, is not scored: its score is 0, whatever q and k are,
 * and the gradient that arrives there counts as 0; what it hands back is 0, or NaN where, as in
 * PyTorch, 0 meets a NaN or an infinity. valid_lens may be NULL. */
Tensor *ag_additive_scores(Tensor *q, Tensor *k, Tensor *w, const Tensor *valid_lens);

/* dropout(softmax(q k' / sqrt(D) + window)) v, over the keys that the mask leaves: the same
 * numbers, random ones too, as a product, ag_attention_weights, ag_dropout and a product, but
 * without ever holding Q x K weights, forward or backward. q (B, H, Q, D), k (B, H, K, D), v (B, H,
 * K, Dv) -> (B, H, Q, Dv), or all without H. dropout: the probability of losing a weight; it always
 * drops. In float32 a weight below 2^-100 of its query's largest may be 0; then neither its key nor
 * its value hears of that query. */
Tensor *ag_attention(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout);
/* The same with a scale of your own for 1 / sqrt(D). */
Tensor *ag_attention_scaled(Tensor *q, Tensor *k, Tensor *v, AttentionMask mask, double dropout,
                            double scale);

/* ---- others -------------------------------------------------------------------------------- */

/* (x - mean) / sqrt(variance + eps) w + b over the last dimensions of x, whose sizes are those of w
 * and b. w or b may be NULL; without both it is over the last dimension. The variance is divided by
 * the count. Ba, Kiros & Hinton 2016. */
Tensor *ag_layer_norm(Tensor *x, Tensor *w, Tensor *b, double eps);

/* Zeroes elements with probability p and divides the rest by 1 - p. p = 0 hands x back. Always
 * drops: whether a model trains or not is the business of nn. The draws go through x in the order
 * in which it lies in memory, as PyTorch's do. */
Tensor *ag_dropout(Tensor *x, double p);

typedef enum { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } Reduction;
Tensor *ag_mse_loss(Tensor *y, Tensor *t, Reduction reduction); /* (y - t)^2; equal shapes */
/* -log softmax(logits)[target], logits (C), (N, C) or (N, C, ...), targets I64 of that shape
 * without C. A target equal to ignore_index has no loss and no gradient, and a mean is over the
 * others: of none, NaN. ignore_index may be any number, a class too: 0 ignores the targets 0. With
 * AG_IGNORE_NONE nothing is ignored. (In PyTorch it is -100 unless you say otherwise.) Any other
 * target that is no class is an error. */
#define AG_IGNORE_NONE INT64_MIN
Tensor *ag_cross_entropy(Tensor *logits, Tensor *targets, int64_t ignore_index,
                         Reduction reduction);

/* ---- gradient checking --------------------------------------------------------------------- */

/* Computes something differentiable from the inputs, on the open tape; a loan. */
typedef Tensor *(*ScalarOrTensorFn)(Tensor **inputs, void *ctx);

typedef struct {
    double eps;     /* half the step of the central difference; 0 means 1e-6 */
    double rtol;    /* 0 means 1e-6 */
    double atol;    /* 0 means 1e-7 */
    uint64_t seed;  /* of the random cotangent */
} GradcheckOptions; /* (GradcheckOptions){0} is good */

/* Compares backpropagation of <c, fn(inputs)>, c a fixed random tensor, with central differences,
 * for every element of every input that requires a gradient (F64, no two elements in one place). fn
 * is called many times; the generator is put back before each call and at the end, so dropout draws
 * the same mask every time. False with a sentence that names the input and the element. Leaves the
 * inputs, their gradients and the generator as they were. No recording tape may be open. */
bool ag_gradcheck(ScalarOrTensorFn fn, Tensor **inputs, int n, void *ctx, GradcheckOptions options);

#ifdef __cplusplus
}
#endif
#endif
