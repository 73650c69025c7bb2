/* random.c - tensors of random numbers, the same as PyTorch's on a CPU.
 *
 * One generator makes 32-bit words. kernels/twister.c uses as many words as PyTorch, in the same
 * order, so that a program with the seed of a notebook gets the notebook's numbers. Uniforms,
 * integers and masks have the same bits. Normals differ by at most 0.5e-6, because the log, cos and
 * sin of the C library compute them.
 *
 * Every function checks its arguments and allocates its memory before the first draw, so a call
 * that fails does not change the generator. */
#include <float.h>
#include <math.h>

#include "operations.h"

static TENSOR_THREAD_LOCAL Generator thread_generator;

Generator *tensor_generator_current(void) {
    if (!thread_generator.seeded) tensor_generator_seed(&thread_generator, 0);
    return &thread_generator;
}

void tensor_manual_seed(uint64_t seed) { tensor_generator_seed(&thread_generator, (uint32_t)seed); }

Tensor *tensor_generator_state(void) {
    Tensor *state = tensor_make(SHAPE(GENERATOR_NUMBERS), I64);
    if (state) tensor_generator_to_numbers(tensor_generator_current(), state->data);
    return state;
}

bool tensor_set_generator_state(const Tensor *state) {
    const Shape shape = SHAPE(GENERATOR_NUMBERS);
    if (!tensor_check_readable("set_generator_state", state)) return false;
    if (state->dtype != I64 || !shape_equal(state->shape, shape))
        return tensor_fail("set_generator_state: the state is %s %s: it must be int64 %s",
                           tensor_dtype_name(state->dtype), tensor_shape_text(state->shape),
                           tensor_shape_text(shape));
    Tensor *copy = tensor_clone(state); /* NULL while an error is pending */
    bool good = copy && tensor_generator_from_numbers(tensor_generator_current(), copy->data);
    tensor_release(copy);
    return good || tensor_fail("set_generator_state: the state is not the state of a generator");
}

/* An uninitialised tensor. Names op in the error if a size is negative. */
static Tensor *make(const char *op, Shape shape, DType dtype) {
    for (int d = 0; d < shape.ndim && d < TENSOR_MAX_DIMS; d++)
        if (shape.dim[d] < 0)
            return tensor_fail("%s: shape is %s: a size must not be negative", op,
                               tensor_shape_text(shape));
    return tensor_make(shape, dtype);
}

typedef void Draw(Generator *g, DType dtype, int64_t n, void *x, double a, double b);

static Tensor *draw_new(const char *op, Shape shape, Draw *draw, double a, double b) {
    Tensor *x = make(op, shape, tensor_default_dtype());
    if (x) draw(tensor_generator_current(), x->dtype, tensor_numel(x), x->data, a, b);
    return x;
}

Tensor *tensor_rand(Shape shape) {
    Tensor *x = make("rand", shape, tensor_default_dtype());
    if (x) tensor_draw_units(tensor_generator_current(), x->dtype, tensor_numel(x), x->data);
    return x;
}

Tensor *tensor_randn(Shape shape) { return draw_new("randn", shape, tensor_draw_normals, 0, 1); }

static bool check_bounds(const char *op, double low, double high, DType dtype) {
    double largest = dtype == F32 ? (double)FLT_MAX : DBL_MAX;
    if (isnan(low) || isnan(high))
        return tensor_fail("%s: %s is nan: it must be a number", op, isnan(low) ? "low" : "high");
    if (low > high)
        return tensor_fail("%s: low is %.15g and high is %.15g: low must not be above high", op,
                           low, high);
    if (low >= -largest && high <= largest && high - low <= largest) return true;
    return tensor_fail(
        "%s: low is %.15g and high is %.15g: both, and high - low, must be finite in %s", op, low,
        high, tensor_dtype_name(dtype));
}

Tensor *tensor_uniform(double low, double high, Shape shape) {
    bool good = check_bounds("uniform", low, high, tensor_default_dtype());
    return good ? draw_new("uniform", shape, tensor_draw_uniforms, low, high) : NULL;
}

/* If the mean is not finite, neither are the elements, as in PyTorch. */
Tensor *tensor_normal(double mean, double std, Shape shape) {
    if (!tensor_check_not_negative("normal", "std", std)) return NULL;
    return draw_new("normal", shape, tensor_draw_normals, mean, std);
}

/* ---- in place ------------------------------------------------------------------------------ */

/* A view of x whose last dimension has the smallest stride: torch's order of writing to x. */
static Tensor *in_order_of_memory(const Tensor *x) {
    int axes[TENSOR_MAX_DIMS];
    tensor_sort_by_stride(x, axes);
    return tensor_view_permute(x, axes);
}

/* If x is not contiguous, the elements are drawn one by one, as in PyTorch. For 16 normals or more,
 * these are other numbers than if all are drawn at once. */
static bool redraw(const char *op, Tensor *x, Draw *draw, double a, double b) {
    const int64_t numel = tensor_numel(x), size = dtype_size(x->dtype);
    const int64_t at_once = tensor_is_contiguous(x) ? numel : 1;
    Tensor *view = in_order_of_memory(x);
    Tensor *drawn = view ? tensor_make(view->shape, x->dtype) : NULL;
    if (drawn) {
        for (int64_t i = 0; i < numel; i += at_once)
            draw(tensor_generator_current(), x->dtype, at_once, (char *)drawn->data + i * size, a,
                 b);
        tensor_copy_elements(view, drawn);
        tensor_written(x, op);
    }
    tensor_release(view);
    tensor_release(drawn);
    return drawn != NULL;
}

bool tensor_uniform_(Tensor *x, double low, double high) {
    return tensor_check_writable_floats("uniform_", x) &&
           check_bounds("uniform_", low, high, x->dtype) &&
           redraw("uniform_", x, tensor_draw_uniforms, low, high);
}

bool tensor_normal_(Tensor *x, double mean, double std) {
    return tensor_check_writable_floats("normal_", x) &&
           tensor_check_not_negative("normal_", "std", std) &&
           redraw("normal_", x, tensor_draw_normals, mean, std);
}

/* ---- masks, integers, permutations --------------------------------------------------------- */

Tensor *tensor_bernoulli(double p, Shape shape) {
    if (isnan(p)) return tensor_fail("bernoulli: p is nan: it must be in [0, 1]");
    if (p < 0 || p > 1) return tensor_fail("bernoulli: p is %.15g: it must be in [0, 1]", p);
    Tensor *x = make("bernoulli", shape, BOOL);
    if (x) tensor_draw_bools(tensor_generator_current(), tensor_numel(x), x->data, p);
    return x;
}

Tensor *tensor_randint(int64_t low, int64_t high, Shape shape) {
    if (low >= high)
        return tensor_fail("randint: low is %lld and high is %lld: low must be below high",
                           (long long)low, (long long)high);
    Tensor *x = make("randint", shape, I64);
    if (x) tensor_draw_integers(tensor_generator_current(), tensor_numel(x), x->data, low, high);
    return x;
}

Tensor *tensor_randperm(int64_t n) {
    if (n < 0) return tensor_fail("randperm: n is %lld: it must not be negative", (long long)n);
    Tensor *x = make("randperm", SHAPE(n), I64);
    if (x) tensor_draw_permutation(tensor_generator_current(), n, x->data);
    return x;
}
