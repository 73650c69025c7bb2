/* tensor.h - n-d arrays: bytes, shapes, views, numbers, text. No gradients here.
 *
 * A Tensor is a window onto bytes: a shape, a stride for each dimension, and a pointer to
 * the first element. Several tensors may look at the same bytes (views); the bytes are
 * counted and live as long as somebody looks at them.
 *
 * Ownership. Every function here that returns a Tensor * gives you a reference that is
 * yours: hand it back with tensor_release. Arguments are only borrowed.
 *
 * Errors. A mistake or a failed allocation makes a function return NULL (false, or NaN)
 * and leaves one sentence behind; tensor_error() reads it. The first error stays, and
 * while it is pending every function that makes a tensor returns NULL, so a long chain of
 * calls needs one check at its end. Nothing here prints, aborts or exits on what you did.
 *
 * Threads. Each thread has its own error, generator and allocator cache. A tensor belongs
 * to one thread at a time.
 */
#ifndef TAPEHEAD_TENSOR_H
#define TAPEHEAD_TENSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TENSOR_MAX_DIMS 8

/* Element types: float, double, int64_t, bool. Only the first two can carry a gradient. */
typedef enum { F32, F64, I64, BOOL } DType;

/* Sizes of the dimensions, the last one varying fastest. ndim 0 is a scalar: one element. */
typedef struct {
    int ndim;
    int64_t dim[TENSOR_MAX_DIMS];
} Shape;

typedef struct Tensor {
    /* Read these as you like. */
    Shape shape;
    int64_t stride[TENSOR_MAX_DIMS]; /* in elements; 0 where a dimension is expanded */
    DType dtype;
    bool requires_grad;
    struct Tensor *grad; /* NULL until a backward pass has computed it; owned by this tensor */

    /* Read these when you write an op; nobody writes them outside tensor/ and autograd/. */
    void *data;                 /* the first element */
    struct Storage *storage;    /* the bytes, shared by views */
    int refs;                   /* references to this tensor */
    bool is_parameter;          /* printed as "Parameter containing:" */
    bool retains_grad;          /* autograd: keep this intermediate result's gradient */
    bool tape_ended;            /* autograd: the tape that computed this result is gone */
    bool let_go;                /* autograd: nobody will look at its elements again */
    const char *grad_fn;        /* autograd: what made it, as PyTorch names it; NULL for a leaf */
    struct Tensor *grad_buffer; /* autograd: the gradient that this backward pass has accumulated */
    char name[32];              /* autograd: "scores"; "" when it has none */
} Tensor;

/* SHAPE(2, 4, 100), SCALAR */
#ifdef __cplusplus
template <class... N> inline Shape SHAPE(N... n) { return {(int)sizeof...(n), {(int64_t)n...}}; }
#define SCALAR (Shape{})
extern "C" {
#else
#define SHAPE(...) ((Shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), {__VA_ARGS__}})
#define SCALAR     ((Shape){0})
#endif

/* ---- errors ------------------------------------------------------------------------------ */

/* The pending error's sentence, or NULL. It stays valid until the next error of this thread. */
const char *tensor_error(void);
void tensor_clear_error(void);

/* Leaves a printf-formatted sentence as the pending error, unless one is pending already, and
 * returns NULL. Every error of the library is born here: put your breakpoint on it. */
__attribute__((format(printf, 1, 2))) void *tensor_fail(const char *format, ...);

/* "(2, 4, 6)", "(3,)" and "()", as Python writes a tuple, for error sentences. The text stays valid
 * until this thread's eighth call from here. */
const char *tensor_shape_text(Shape shape);
/* A name from outside for error sentences: printable, at most 60 bytes and "...". It stays valid
 * until this thread's fourth call from here. */
const char *tensor_name_text(const char *name);
const char *tensor_dtype_name(DType dtype); /* "float32", "float64", "int64", "bool" */

/* ---- threads ------------------------------------------------------------------------------- */

/* How many threads share the work on a large tensor, the calling one among them: 1 to 64. It
 * changes no digit, and holds for the whole process. Until it is set, it is what the environment's
 * TAPEHEAD_NUM_THREADS says, or, without a whole number there, the number of cores that the process
 * may use. May be called at any time, from any thread; more than 64 are 64, and less than 1 is an
 * error that changes nothing. The others are started when they are first needed, and end with the
 * program; while there is nothing to do they sleep, and they take no signals. A thread of your own
 * may have as little as 64 KB of stack. */
void tensor_set_num_threads(int n);
int tensor_num_threads(void);

/* ---- creation ---------------------------------------------------------------------------- */

/* Floats are made in the default type, F32 unless this thread changed it to F64. */
bool tensor_set_default_dtype(DType dtype);
DType tensor_default_dtype(void);

/* A size must not be negative, and the bytes, a size of 0 counted as 1, must fit an int64_t. The
 * elements of tensor_empty are not initialised. */
Tensor *tensor_empty(Shape shape), *tensor_zeros(Shape shape), *tensor_ones(Shape shape);
Tensor *tensor_full(Shape shape, double value);

/* start, start + step, ... while below end (above it for a negative step). Shape (n). A float has
 * the bits that PyTorch's has on x86-64; beyond 32768 elements those depend on the number of
 * threads there, and are here those of one thread. */
Tensor *tensor_arange(double start, double end, double step);

/* The same of any type: torch's dtype=. full converts its value as a C cast does (!= 0 for BOOL);
 * arange takes no BOOL, and for I64 a whole start and step. */
Tensor *tensor_empty_of(Shape shape, DType dtype), *tensor_zeros_of(Shape shape, DType dtype);
Tensor *tensor_ones_of(Shape shape, DType dtype);
Tensor *tensor_full_of(Shape shape, double value, DType dtype);
Tensor *tensor_arange_of(double start, double end, double step, DType dtype);
/* The same of x's shape and type; contiguous, whatever x's strides are. */
Tensor *tensor_zeros_like(const Tensor *x), *tensor_ones_like(const Tensor *x);

Tensor *tensor_eye(int64_t n); /* (n, n), ones on the diagonal */

/* Copies tensor_numel(shape) elements, row-major. */
Tensor *tensor_from_doubles(Shape, const double *), *tensor_from_floats(Shape, const float *);
Tensor *tensor_from_int64s(Shape, const int64_t *), *tensor_from_bools(Shape, const bool *);

/* ---- random numbers: PyTorch's CPU generator, number for number ----------------------------- */

/* torch.manual_seed. A thread that never seeds starts from seed 0. */
void tensor_manual_seed(uint64_t seed);
/* This thread's generator as an int64 tensor, to go on later, or after a restart, with the same
 * numbers: torch.get_rng_state and set_rng_state. */
Tensor *tensor_generator_state(void);
bool tensor_set_generator_state(const Tensor *state);

Tensor *tensor_rand(Shape shape), *tensor_randn(Shape shape); /* uniform in [0, 1); normal(0, 1) */
Tensor *tensor_uniform(double low, double high, Shape shape); /* low <= high */
Tensor *tensor_normal(double mean, double std, Shape shape);  /* torch.normal; std >= 0 */
Tensor *tensor_bernoulli(double p, Shape shape);              /* BOOL: true with probability p */
Tensor *tensor_randint(int64_t low, int64_t high, Shape shape); /* I64 in [low, high) */
Tensor *tensor_randperm(int64_t n);                             /* I64: 0 .. n-1, shuffled */

/* ---- lifetime ------------------------------------------------------------------------------ */

Tensor *tensor_retain(Tensor *x); /* one more reference; hands x back. NULL is fine. */
void tensor_release(Tensor *x);   /* one reference less; the last one frees. NULL is fine. */
int64_t tensor_live(void);        /* tensors alive now, in all threads: for leak checks */
/* A thread keeps freed memory for its next tensors, about half again what its last tapes needed at
 * most. The environment's TAPEHEAD_CACHE sets a lower limit for each thread: 512M, say, or 0. This
 * function gives what this thread keeps back to the system. */
void tensor_empty_cache(void);

/* ---- copies, conversion, views ------------------------------------------------------------- */

Tensor *tensor_clone(const Tensor *x); /* the same elements, contiguous, a leaf */
/* A copy, converted as a C cast does; != 0 for BOOL. */
Tensor *tensor_to(const Tensor *x, DType dtype);

/* A view of x's bytes: element (i, j, ...) is x's bytes at offset + i stride[0] + j stride[1] + ...
 * elements from the start of the storage. torch.as_strided. Out of bounds is an error. */
Tensor *tensor_as_strided(const Tensor *x, Shape shape, const int64_t *stride, int64_t offset);

/* A sorted copy, along the last dimension, ascending, stable, NaN last: out of place, so x keeps
 * its version. indices, unless NULL, receives the I64 positions that the elements came from (yours
 * too). */
Tensor *tensor_sort(const Tensor *x, Tensor **indices);

/* ---- access -------------------------------------------------------------------------------- */

int64_t tensor_numel(const Tensor *x); /* number of elements; 1 for a scalar */
bool tensor_is_contiguous(const Tensor *x);
double tensor_item(const Tensor *x); /* the element of a one-element tensor; NaN on error */

double tensor_sum_of_squares(const Tensor *x); /* of floats, in float64; NaN on error */

/* x[i, j, ...]: one index per dimension; negative ones count from the end. NaN on error. */
double tensor_get_at(const Tensor *x, Shape index);
#define tensor_get(x, ...) tensor_get_at((x), SHAPE(__VA_ARGS__)) /* tensor_get(x, i, j) */

/* A row-major copy of all elements, any strides, any type. */
bool tensor_to_doubles(const Tensor *x, double *out);

/* Equal shapes and types and |a - b| <= atol + rtol |b| everywhere (NaN equals nothing). False
 * is also the answer to NULL; different types or shapes are simply not close. */
bool tensor_allclose(const Tensor *a, const Tensor *b, double rtol, double atol);

/* ---- writes in place. Each bumps the storage's version ------------------------------------- */

/* src is broadcast to dst's shape; the types must be equal. Overlapping bytes are handled. */
bool tensor_copy_from(Tensor *dst, const Tensor *src);
bool tensor_fill(Tensor *x, double value);
/* x[i, j, ...] = value: one index per dimension, as tensor_get has them. Converts as fill does: as
 * a C cast, != 0 for BOOL. */
bool tensor_set_at(Tensor *x, double value, Shape index);
#define tensor_set(x, value, ...) tensor_set_at((x), (value), SHAPE(__VA_ARGS__))

/* One step of parameters x along gradients g, in one pass over memory; m and v are what the step
 * remembers, all of x's shape and type, floats. torch.optim.AdamW:
 *     m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2,
 *     x = keep x - rate m / (sqrt(v) / unbias + eps) */
typedef struct {
    double beta1, beta2, eps, keep, rate, unbias;
} AdamWStep;
bool tensor_adamw_(Tensor *x, Tensor *m, Tensor *v, const Tensor *g, AdamWStep step);
/* x float or I64; the number must be whole for I64, whose arithmetic is modulo 2^64. */
bool tensor_add_(Tensor *x, const Tensor *y, double alpha); /* x += alpha y, y broadcast to x */
bool tensor_mul_(Tensor *x, double factor);                 /* x *= factor */
/* Drawn anew, as torch's, number for number; x is F32 or F64. */
bool tensor_uniform_(Tensor *x, double low, double high);
bool tensor_normal_(Tensor *x, double mean, double std);

/* ---- files ----------------------------------------------------------------------------------- */

/* What is saved is written to a new file in the same directory, .NAME.tapehead-PID-N, which then
 * takes path's place: a failure or a crash leaves what was there before, and what is saved is on
 * the disk when the function returns. (When the disk fails in the last moment, the file is new and
 * the error says so.) Rights are kept, and the owner if the process may give files away. What a
 * killed process left behind the next one to save at the same path removes. A link is followed,
 * also where nothing is yet; a device or a pipe is written to directly. What is loaded is trusted
 * in nothing: a file that is not in order is an error. */

/* A file of your own is written in the same way: write(file, context) fills it. False with an
 * error, and path as it was, if that cannot be written, or if write leaves an error (tensor_fail).
 */
bool tensor_write_file(const char *path, void (*write)(FILE *file, const void *context),
                       const void *context);
/* Could path be written, as far as can be told without writing? To ask before long work: false with
 * the error that tensor_write_file would leave. */
bool tensor_can_write_file(const char *path);

/* NumPy's format for one array. Loads versions 1 to 3, and either order of bytes; an array in
 * Fortran order becomes a transposed view. */
bool tensor_save_npy(const Tensor *x, const char *path);
Tensor *tensor_load_npy(const char *path);

/* Named tensors, and text about them: what a safetensors file holds. Read the fields as you like.
 */
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
} TensorDict;

TensorDict *tensor_dict_new(void);       /* empty, yours */
void tensor_dict_free(TensorDict *dict); /* and its references. NULL is fine. */
/* Retains x; an entry of the same name lets its tensor go. Names, keys and values are UTF-8 and are
 * copied; "__metadata__" is no name. */
bool tensor_dict_set(TensorDict *dict, const char *name, Tensor *x);
Tensor *tensor_dict_get(const TensorDict *dict, const char *name); /* borrowed; NULL is an error */
bool tensor_dict_set_metadata(TensorDict *dict, const char *key, const char *value);
/* The value, until it is set anew; NULL, which is no error, when there is none. */
const char *tensor_dict_metadata(const TensorDict *dict, const char *key);

/* The format of Hugging Face's safetensors, for all four types. Loading gives the entries in the
 * order of the file, which need not be the one in which they were set. */
bool tensor_save_safetensors(const TensorDict *dict, const char *path);
TensorDict *tensor_load_safetensors(const char *path); /* yours: tensor_dict_free it */

/* ---- text ------------------------------------------------------------------------------------ */

/* Exactly what Python's print(x) writes, and a newline. False if the file took it badly. */
bool tensor_print(const Tensor *x, FILE *file);

#ifdef __cplusplus
}
#endif
#endif
