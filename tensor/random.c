/* random.c - tensors of random numbers, PyTorch's CPU generator number for number.
 *
 * One engine deals out 32-bit words; kernels/twister.c spends them exactly as PyTorch's CPU does,
 * in the same order and in the same number, so that a program that seeds as a notebook does goes on
 * to see the notebook's digits. Uniforms, integers and masks are equal to the last bit. Normals go
 * through the C library's log, cos and sin and agree to half of 1e-6.
 *
 * Every maker checks its arguments and gets its memory before the first draw: a call that
 * fails leaves the generator where it was.
 */
#include <float.h>
#include <math.h>

#include "internal.h"

static _Thread_local Generator thread_generator;

Generator *generator_current(void) {
    if (!thread_generator.seeded) generator_seed(&thread_generator, 0);
    return &thread_generator;
}

void tensor_manual_seed(uint64_t seed) { generator_seed(&thread_generator, (uint32_t)seed); }

/* An uninitialised tensor; op is named should a size be negative. */
static Tensor *make(const char *op, Shape shape, DType dtype) {
    for (int d = 0; d < shape.ndim && d < TENSOR_MAX_DIMS; d++) {
        if (shape.dim[d] < 0)
            return tensor_fail("%s: shape is %s: a size must not be negative", op,
                               tensor_shape_text(shape));
    }
    return tensor_make(shape, dtype);
}

static Tensor *uniform(const char *op, double low, double high, Shape shape) {
    Tensor *x = make(op, shape, tensor_default_dtype());
    if (x) draw_uniforms(generator_current(), x->dtype, tensor_numel(x), x->data, low, high);
    return x;
}

Tensor *tensor_rand(Shape shape) { return uniform("rand", 0, 1, shape); }

Tensor *tensor_uniform(double low, double high, Shape shape) {
    DType dtype = tensor_default_dtype();
    double largest = dtype == F32 ? (double)FLT_MAX : DBL_MAX;
    if (isnan(low) || isnan(high))
        return tensor_fail("uniform: %s is nan: it must be a number", isnan(low) ? "low" : "high");
    if (low > high)
        return tensor_fail("uniform: low is %.15g and high is %.15g: low must not be above high",
                           low, high);
    if (low < -largest || high > largest || high - low > largest)
        return tensor_fail("uniform: low is %.15g and high is %.15g: both, and high - low, must be "
                           "finite in %s",
                           low, high, tensor_dtype_name(dtype));
    return uniform("uniform", low, high, shape);
}

static Tensor *normal(const char *op, double mean, double std, Shape shape) {
    Tensor *x = make(op, shape, tensor_default_dtype());
    if (x) draw_normals(generator_current(), x->dtype, tensor_numel(x), x->data, mean, std);
    return x;
}

Tensor *tensor_randn(Shape shape) { return normal("randn", 0, 1, shape); }

/* A mean that is not finite goes through to the elements, as in PyTorch. */
Tensor *tensor_normal(double mean, double std, Shape shape) {
    if (isnan(std)) return tensor_fail("normal: std is nan: it must be a number");
    if (std < 0) return tensor_fail("normal: std is %.15g: it must not be negative", std);
    return normal("normal", mean, std, shape);
}

Tensor *tensor_bernoulli(double p, Shape shape) {
    if (isnan(p)) return tensor_fail("bernoulli: p is nan: it must be in [0, 1]");
    if (p < 0 || p > 1) return tensor_fail("bernoulli: p is %.15g: it must be in [0, 1]", p);
    Tensor *x = make("bernoulli", shape, BOOL);
    if (x) draw_bools(generator_current(), tensor_numel(x), x->data, p);
    return x;
}

Tensor *tensor_randint(int64_t low, int64_t high, Shape shape) {
    if (low >= high)
        return tensor_fail("randint: low is %lld and high is %lld: low must be below high",
                           (long long)low, (long long)high);
    Tensor *x = make("randint", shape, I64);
    if (x) draw_integers(generator_current(), tensor_numel(x), x->data, low, high);
    return x;
}

Tensor *tensor_randperm(int64_t n) {
    if (n < 0) return tensor_fail("randperm: n is %lld: it must not be negative", (long long)n);
    Tensor *x = make("randperm", SHAPE(n), I64);
    if (x) draw_permutation(generator_current(), n, x->data);
    return x;
}
