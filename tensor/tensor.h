/* tensor.h - n-d arrays: bytes, shapes, views, numbers, text. No gradients here.
 *
 * A Tensor has a shape, a stride for each dimension, and a pointer to its first element. Several
 * tensors may share the same bytes (views). The bytes are freed with the last of these tensors.
 *
 * Ownership. Every function here that returns a Tensor * returns a new reference: you own it, and
 * tensor_release gives it back. Arguments are only borrowed.
 *
 * Errors. A mistake or a failed allocation makes a function return NULL (false, or NaN) and sets
 * one error message; tensor_error() returns it. The first error stays. While an error is pending,
 * every function that makes a tensor returns NULL, so a long chain needs one check at its end.
 * Your mistakes never make the library print, abort or exit.
 *
 * Threads. Each thread has its own error, generator and allocator cache. A tensor belongs to one
 * thread at a time. */
#ifndef TAPEHEAD_TENSOR_H
#define TAPEHEAD_TENSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TAPEHEAD_VERSION "0.2.0" /* the Makefile reads it here */

#define TENSOR_MAX_DIMS 8

/* What compilers can do and C11 does not demand: a variable for each thread, and a check of
 * printf's arguments. */
#ifdef __TINYC__
#define TENSOR_THREAD_LOCAL
#else
#define TENSOR_THREAD_LOCAL _Thread_local
#endif
#ifdef __MINGW_PRINTF_FORMAT /* on Windows: where <stdio.h> has a printf that knows %zu */
#define TENSOR_PRINTF(text, first) __attribute__((format(__MINGW_PRINTF_FORMAT, text, first)))
#elif defined __GNUC__
#define TENSOR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TENSOR_PRINTF(text, first)
#endif

/* Element types: float, double, int64_t, bool. Only the first two can carry a gradient. */
typedef enum { F32, F64, I64, TENSOR_BOOL } DType;

/* BOOL is TENSOR_BOOL, except where BOOL is a type: after windows.h, X11's Xmd.h, in Objective-C.
 * To include another header with a type BOOL after this one, write #undef BOOL between them, or
 * compile with -DTAPEHEAD_NO_BOOL. TENSOR_BOOL always works. */
#if !defined BOOL && !defined TAPEHEAD_NO_BOOL && !defined _MINWINDEF_ && !defined _WINDEF_ &&     \
    !defined XMD_H && !defined __OBJC__
#define BOOL TENSOR_BOOL
#endif

/* The sizes of the dimensions; the last index varies fastest. ndim 0 is a scalar: one element. */
typedef struct {
    int ndim;
    int64_t dim[TENSOR_MAX_DIMS];
} Shape;

typedef struct Tensor {
    /* Read these fields as you like. */
    Shape shape;
    int64_t stride[TENSOR_MAX_DIMS]; /* in elements; 0 where a dimension is expanded */
    DType dtype;
    bool requires_grad;
    struct Tensor *grad; /* NULL until backward has computed it; owned by this tensor */

    /* For authors of ops. Only tensor/, autograd/ and nn/ write these fields. */
    void *data;              /* the first element */
    struct Storage *storage; /* the bytes, shared by views */
    int refs;                /* references to this tensor */
    bool is_parameter;       /* printed as "Parameter containing:" */
    bool retains_grad;       /* autograd: keep this intermediate result's gradient */
    bool tape_ended;         /* autograd: the tape that recorded this result has ended */
    bool let_go;             /* autograd: nobody will read its elements again */
    int line;                /* autograd: its node, counted over all open tapes, if one made it */
    const char *grad_fn;     /* autograd: PyTorch's name of the op that made it; NULL for a leaf */
    struct Tensor *grad_buffer; /* autograd: the gradient that this backward pass has accumulated */
    char name[32];              /* autograd: "scores"; "" when it has none */
} Tensor;

/* SHAPE(2, 4, 100), SCALAR */
#ifdef __cplusplus
extern "C++" { /* also where a program includes this header in extern "C" */
template <class... N> inline Shape SHAPE(N... n) {
    return {static_cast<int>(sizeof...(n)), {static_cast<int64_t>(n)...}};
}
}
#define SCALAR (Shape{})
extern "C" {
#else
#define SHAPE(...) ((Shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), {__VA_ARGS__}})
#define SCALAR     ((Shape){0})
#endif

/* ---- errors ------------------------------------------------------------------------------ */

/* The message of the pending error, or NULL. The text is valid until this thread's next error. */
const char *tensor_error(void);
void tensor_clear_error(void);

/* Sets the pending error to a printf-formatted message, unless one is pending already, and returns
 * NULL. Every error of the library is made here, so one breakpoint finds all of them. */
TENSOR_PRINTF(1, 2) void *tensor_fail(const char *format, ...);

/* "(2, 4, 6)", "(3,)" and "()", as Python writes a tuple, for error messages. The text is valid
 * until the thread's eighth call after this one. */
const char *tensor_shape_text(Shape shape);
const char *tensor_dtype_name(DType dtype); /* "float32", "float64", "int64", "bool" */

/* ---- creation ---------------------------------------------------------------------------- */

/* The type of new float tensors in this thread: F32, or F64 if you set it. */
bool tensor_set_default_dtype(DType dtype);
DType tensor_default_dtype(void);

/* A size must not be negative. The number of bytes, with a size of 0 counted as 1, must fit an
 * int64_t. The elements of tensor_empty are not initialised. */
Tensor *tensor_empty(Shape shape), *tensor_zeros(Shape shape), *tensor_ones(Shape shape);
Tensor *tensor_full(Shape shape, double value);

/* start, start + step, ... below end (above end for a negative step). Shape (n), where
 * n = ceil((end - start) / step). Floats have the same bits as PyTorch's on x86-64. Beyond 32768
 * elements PyTorch's bits depend on its number of threads; ours are those of one thread. */
Tensor *tensor_arange(double start, double end, double step);

/* The same in any type, torch's dtype=. full converts its value like a C cast (!= 0 for BOOL).
 * arange takes no BOOL; for I64, start and step must be whole. */
Tensor *tensor_empty_of(Shape shape, DType dtype), *tensor_zeros_of(Shape shape, DType dtype);
Tensor *tensor_ones_of(Shape shape, DType dtype);
Tensor *tensor_full_of(Shape shape, double value, DType dtype);
Tensor *tensor_arange_of(double start, double end, double step, DType dtype);
/* The same in x's shape and type; contiguous. */
Tensor *tensor_zeros_like(const Tensor *x), *tensor_ones_like(const Tensor *x);

Tensor *tensor_eye(int64_t n); /* (n, n), ones on the diagonal */

/* Copies the elements of an array, row-major: as many elements as the shape has. Doubles and floats
 * become the default type, int64s and bools keep their type. */
Tensor *tensor_from_doubles(Shape, const double *), *tensor_from_floats(Shape, const float *);
Tensor *tensor_from_int64s(Shape, const int64_t *), *tensor_from_bools(Shape, const bool *);

/* ---- random numbers: PyTorch's CPU generator, number for number ----------------------------- */

/* torch.manual_seed. A thread that never seeds starts from seed 0. */
void tensor_manual_seed(uint64_t seed);
/* The state of this thread's generator, an int64 tensor. A generator with the same state draws the
 * same numbers: torch.get_rng_state and set_rng_state. */
Tensor *tensor_generator_state(void);
bool tensor_set_generator_state(const Tensor *state);

Tensor *tensor_rand(Shape shape), *tensor_randn(Shape shape); /* uniform in [0, 1); normal(0, 1) */
Tensor *tensor_uniform(double low, double high, Shape shape); /* low <= high */
Tensor *tensor_normal(double mean, double std, Shape shape);  /* torch.normal; std >= 0 */
Tensor *tensor_bernoulli(double p, Shape shape);              /* BOOL: true with probability p */
Tensor *tensor_randint(int64_t low, int64_t high, Shape shape); /* I64 in [low, high) */
Tensor *tensor_randperm(int64_t n);                             /* I64: 0 .. n-1, shuffled */

/* ---- lifetime ------------------------------------------------------------------------------ */

Tensor *tensor_retain(Tensor *x); /* adds a reference and returns x; NULL is fine */
void tensor_release(Tensor *x);   /* removes a reference; the last one frees. NULL is fine */
int64_t tensor_live(void);        /* tensors alive now, in all threads: for leak checks */

/* A tensor that was freed is known until a new tensor takes its struct; the last that was freed is
 * taken first. So tensor_item(loss) behind tape_end() is an error ("item: the tensor was let go"),
 * as it is in every function that reads elements, and so is a tensor_retain or tensor_release too
 * many. Not noticed, and so a use of freed memory: what a program does when as many new tensors
 * exist as the tape had, or after tensor_empty_cache, or with TAPEHEAD_CACHE=0; the results of a
 * tape of more than 1024 tensors, but the last 1024; a tensor that another thread has freed; fields
 * that the program reads itself, loss->data. make debug finds all of these. */

/* ---- copies, conversion, views ------------------------------------------------------------- */

Tensor *tensor_clone(const Tensor *x); /* the same elements, contiguous, a leaf */
/* A copy in another type, converted like a C cast; != 0 for BOOL. */
Tensor *tensor_to(const Tensor *x, DType dtype);

/* A sorted copy: along the last dimension, ascending, stable, NaN last. Unless indices is NULL,
 * *indices becomes the I64 positions of the elements in x, which you own. */
Tensor *tensor_sort(const Tensor *x, Tensor **indices);

/* ---- access -------------------------------------------------------------------------------- */

int64_t tensor_numel(const Tensor *x); /* number of elements; 1 for a scalar */
/* x's size along dim; a negative dim counts from the end. 0 on error, so a loop over the sizes of a
 * NULL, which an earlier error left, does not begin. */
int64_t tensor_size(const Tensor *x, int dim);
bool tensor_is_contiguous(const Tensor *x);
double tensor_item(const Tensor *x); /* the element of a one-element tensor; NaN on error */

double tensor_sum_of_squares(const Tensor *x); /* of floats, in float64; NaN on error */

/* x[i, j, ...]: one index per dimension; negative ones count from the end. NaN on error. */
double tensor_get_at(const Tensor *x, Shape index);
#define tensor_get(x, ...) tensor_get_at((x), SHAPE(__VA_ARGS__)) /* tensor_get(x, i, j) */

/* Copies all elements in row-major order; x may have any strides and any type. */
bool tensor_to_doubles(const Tensor *x, double *out);
bool tensor_to_int64s(const Tensor *x, int64_t *out); /* floats are converted as in tensor_to */

/* True if shapes and types are equal and |a - b| <= atol + rtol |b| for all elements (an infinity
 * is close only to itself, NaN to nothing). NULL, and different shapes or types, are no error: the
 * answer is false. */
bool tensor_allclose(const Tensor *a, const Tensor *b, double rtol, double atol);

/* ---- writes in place. Each increases the storage's version ---------------------------------- */

/* A tape does not record a write. If the innermost tape records, and x (dst), which requires no
 * gradient, is written from a tensor that does, an op of this tape refuses x, since x's gradient
 * would not reach that tensor. Use ops instead (ag_cat, ag_where), write from ag_detach of the
 * tensor, or write on a no-grad tape. You may still read x, and use it on a later tape. */

/* src is broadcast to dst's shape; the types must be equal; src and dst may overlap. */
bool tensor_copy_from(Tensor *dst, const Tensor *src);
bool tensor_fill(Tensor *x, double value);
/* x[i, j, ...] = value: one index per dimension, as in tensor_get. The value is converted as in
 * tensor_fill: like a C cast, != 0 for BOOL. */
bool tensor_set_at(Tensor *x, double value, Shape index);
#define tensor_set(x, value, ...) tensor_set_at((x), (value), SHAPE(__VA_ARGS__))

/* x float or I64. For I64 the number must be whole, and the arithmetic is modulo 2^64. */
bool tensor_add_(Tensor *x, const Tensor *y, double alpha); /* x += alpha y, y broadcast to x */
bool tensor_mul_(Tensor *x, double factor);                 /* x *= factor */
/* New random elements, the same numbers as torch's; x is F32 or F64. */
bool tensor_uniform_(Tensor *x, double low, double high);
bool tensor_normal_(Tensor *x, double mean, double std);

/* ---- text ------------------------------------------------------------------------------------ */

/* Writes the text of Python's print(x), and a newline. False and an error if a write fails. */
bool tensor_print(const Tensor *x, FILE *file);

/* snprintf, but with a decimal point in every locale, as all numbers that the library writes, and a
 * text that is too long is cut between characters of UTF-8. */
TENSOR_PRINTF(3, 4) int tensor_snprintf(char *text, size_t size, const char *format, ...);
/* How many significant digits a text needs at least to be read back as x, a finite number of this
 * type: at most 9 for F32, 17 for F64. */
int tensor_fewest_digits(double x, DType dtype);

/* ==== the rest of the library: not there in a build of the core alone ========================= */
#ifndef TAPEHEAD_CORE

/* ---- for optimizers -------------------------------------------------------------------------- */

/* The square root of tensor_sum_of_squares, right also where the squares are too large or too small
 * for float64. */
double tensor_norm(const Tensor *x);

/* A step of torch.optim.AdamW in one pass over memory. x: parameters, g: gradients, m and v: the
 * moments. All four are floats of one type and shape.
 *     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
 *     x = keep x - rate m / (sqrt(v) / unbias + eps) */
typedef struct {
    double beta1, beta2, eps, keep, rate, unbias;
} AdamWStep;
bool tensor_adamw_(Tensor *x, Tensor *m, Tensor *v, const Tensor *g, AdamWStep step);

/* ---- for language models --------------------------------------------------------------------- */

/* torch.multinomial, the same draws: n indices, I64, each drawn with the probability weights[i] /
 * sum(weights). weights (V) -> (n), or (B, V) -> (B, n). Weights are finite, not negative, and not
 * all 0. Without replacement no index is drawn twice: then n weights at least must not be 0. */
Tensor *tensor_multinomial(const Tensor *weights, int64_t n, bool replacement);

/* The speeds of rotary positions for ag_rope_speeds, F64 (D / 2).
 * Linear, Chen et al. 2023: s_i = base^(-2 i / D) / factor. With a factor of 1: Su et al. 2021. */
Tensor *tensor_rope_linear(int64_t D, double base, double factor);
/* Llama 3.1's, Grattafiori et al. 2024. With s_i = base^(-2 i / D), pair i turns context s_i / (2
 * pi) times in the longest text of the training. The speed is m s_i + (1 - m) s_i / factor, where m
 * grows from 0 at `low` turns or fewer to 1 at `high` turns or more. In config.json they are
 * factor, low_freq_factor, high_freq_factor and original_max_position_embeddings: 8, 1, 4, 8192. */
Tensor *tensor_rope_llama3(int64_t D, double base, double factor, double low, double high,
                           double context);

/* ---- threads ------------------------------------------------------------------------------- */

/* How many threads share the work on a large tensor, the calling thread included: 1 to 64, for the
 * whole process. The number changes no digit of a result. The default is the environment variable
 * TAPEHEAD_NUM_THREADS or, if that is no whole number from 1 on, the number of cores that the
 * process may use: in a container with a quota of time, as many as the quota is worth, rounded up.
 * You may call tensor_set_num_threads at any time, from any thread. More than 64 means 64; less
 * than 1 is an error that changes nothing. The library starts threads when it first needs them;
 * they sleep while there is no work, take no signals, and end with the program or with the last
 * thread that has used them. A thread of your own needs 64 KB of stack. A child of fork may use the
 * library, whatever other threads were doing at the fork. */
void tensor_set_num_threads(int n);
int tensor_num_threads(void);

/* ---- the cache of memory -------------------------------------------------------------------- */

/* A thread keeps freed memory for its next tensors: it holds at most about 1.5 times the memory
 * that its last tapes needed. The environment variable TAPEHEAD_CACHE also limits it, for each
 * thread: to 512M or 1.5G for example, or to 0. This function returns this thread's freed memory to
 * the system. */
void tensor_empty_cache(void);

/* ---- files ----------------------------------------------------------------------------------- */

/* A copy of a name for error messages: printable, at most 60 bytes and "...". The text is valid
 * until the thread's fourth call after this one. */
const char *tensor_name_text(const char *name);

/* Saving writes a temporary file in the same directory, .NAME.tapehead-PID-N, and renames it to
 * path. A failure or a crash leaves the old file, and after success the new file is on the disk.
 * (If only the last flush fails, the file is new, and the error says so.) The new file gets the
 * rights of the old one, and its owner if the process may change owners. If a killed process leaves
 * a temporary file, the next save at the same path removes it. Links are followed, also a link to a
 * file that does not exist yet. A device or a pipe is written to directly.
 *
 * Loading trusts nothing in a file: a file that breaks its format is an error. */

/* Writes a file of your own in the same way: write(file, context) writes the bytes. False and an
 * error if the file cannot be written, or if write sets an error (tensor_fail): the old file at
 * path then stays. */
bool tensor_write_file(const char *path, void (*write)(FILE *file, const void *context),
                       const void *context);
/* For a check before long work: false, with the error of tensor_write_file, if path cannot be
 * written. The check writes nothing, so it does not find every reason. */
bool tensor_can_write_file(const char *path);

/* NumPy's format for one array. Loads versions 1 to 3 and both byte orders. An array in Fortran
 * order gets the strides of that order. float16 is read as float32, which has the same numbers;
 * arrays of other types that a DType is not are an error that says how to convert them. */
bool tensor_save_npy(const Tensor *x, const char *path);
Tensor *tensor_load_npy(const char *path);

/* Named tensors and metadata: the contents of a safetensors file. Read the fields as you like. */
typedef struct {
    char *name;
    Tensor *tensor;
} NamedTensor;
typedef struct {
    char *key, *value;
} Metadata;
typedef struct {
    int n;
    NamedTensor *entry;
    int n_metadata;
    Metadata *metadata;
    int n_unread;
    Metadata *unread; /* entries of a type that no tensor has: name and type, {"mask", "U8"} */
} TensorDict;

TensorDict *tensor_dict_new(void);       /* empty, yours */
void tensor_dict_free(TensorDict *dict); /* releases its tensors. NULL is fine. */
/* Retains x. An older entry of the same name is replaced, and its tensor released. Names, keys and
 * values are UTF-8; they are copied. "__metadata__" is not allowed as a name. */
bool tensor_dict_set(TensorDict *dict, const char *name, Tensor *x);
Tensor *tensor_dict_get(const TensorDict *dict, const char *name); /* borrowed; NULL is an error */
/* Every name that begins with `from` begins with `to` instead: so the names in another library's
 * file become those of your model. False, an error and no change, if no name begins with `from`, or
 * if two names would become equal. */
bool tensor_dict_rename(TensorDict *dict, const char *from, const char *to);
bool tensor_dict_set_metadata(TensorDict *dict, const char *key, const char *value);
/* The value, valid until the key is set again. NULL, without an error, if there is no such key. */
const char *tensor_dict_metadata(const TensorDict *dict, const char *key);

/* The format of Hugging Face's safetensors, for all four types. The entries of a loaded dict have
 * the order of the file, which may differ from the order in which they were set. F16 and BF16 are
 * read as float32, which has the same numbers. An entry of another type (I32, U8, F8_E4M3, ...) is
 * not read, but listed in `unread`. It is an error, which names the type, for who wants it:
 * tensor_dict_get, nn_load, and tensor_save_safetensors, which would lose it. Convert it in Python,
 * or set another tensor of its name. */
bool tensor_save_safetensors(const TensorDict *dict, const char *path);
TensorDict *tensor_load_safetensors(const char *path); /* yours: tensor_dict_free it */

#endif

#ifdef __cplusplus
}
#endif
#endif
