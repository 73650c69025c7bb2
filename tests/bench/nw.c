/* nw.c - one training step of the notebook's parametric pooling, as its cell 16 does it: zero_grad,
 * forward, loss, backward, SGD; 50 queries, 49 keys each, one thread.
 *
 * Prints microseconds per step, the median over rounds of 200 steps and the best round, and how
 * often a step asked the system for memory (linked with --wrap, see the Makefile): after the third
 * step the caching allocator has everything, and the number must be 0. */
#include "../../nn/nn.h"

#include <stdlib.h>
#include <time.h>

enum { N = 50, KEYS = N - 1, WARM_UP = 3, ROUNDS = 101, STEPS = 200 };

static long long allocations; /* calls that reached the system's allocator */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size) { return allocations++, __real_malloc(size); }
void *__wrap_calloc(size_t n, size_t size) { return allocations++, __real_calloc(n, size); }
void *__wrap_realloc(void *block, size_t size) {
    return allocations++, __real_realloc(block, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return allocations++, __real_aligned_alloc(alignment, size);
}

typedef struct {
    Module module;
    Tensor *w, *attention_weights;
} NWKernelRegression;
static const ModuleClass nw_class = {"NWKernelRegression", sizeof(NWKernelRegression), NULL, NULL};

/* softmax(-((queries - keys) w)^2 / 2) values */
static Tensor *forward(NWKernelRegression *net, Tensor *queries, Tensor *keys, Tensor *values) {
    queries = ag_reshape(ag_repeat_interleave(queries, KEYS, 0), SHAPE(-1, KEYS));
    Tensor *scores = ag_scale(ag_square(ag_mul(ag_sub(queries, keys), net->w)), -0.5);
    Tensor *weights = ag_softmax(scores, 1);
    nn_keep_result(net, &net->attention_weights, weights);
    return ag_reshape(ag_bmm(ag_unsqueeze(weights, 1), ag_unsqueeze(values, -1)), SHAPE(-1));
}

static void step(NWKernelRegression *net, Optimizer *sgd, Tensor *x, Tensor *keys, Tensor *values,
                 Tensor *y) {
    tape_begin();
    Tensor *loss = ag_sum(ag_mse_loss(forward(net, x, keys, values), y, REDUCE_NONE));
    nn_optimizer_zero_grad(sgd);
    ag_backward(loss);
    nn_optimizer_step(sgd);
    tape_end();
}

static double now(void) { /* in microseconds */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

int main(void) {
    tensor_manual_seed(517109245);
    NWKernelRegression *net = nn_module_new(&nw_class);
    nn_add_parameter(net, "w", &net->w, tensor_rand(SHAPE(1)));
    nn_add_result(net, &net->attention_weights);
    Optimizer *sgd = nn_sgd_new(net, (SGDConfig){.lr = 1e-4});
    Tensor *x = tensor_rand(SHAPE(N)), *y = tensor_rand(SHAPE(N));
    Tensor *keys = tensor_rand(SHAPE(N, KEYS)), *values = tensor_rand(SHAPE(N, KEYS));

    for (int i = 0; i < WARM_UP; i++) step(net, sgd, x, keys, values, y);
    long long before = allocations;
    double round[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = now();
        for (int i = 0; i < STEPS; i++) step(net, sgd, x, keys, values, y);
        round[r] = (now() - start) / STEPS;
    }
    long long asked = allocations - before;
    qsort(round, ROUNDS, sizeof *round, ascending);
    printf("nw  %6.2f us per training step, median (best %.2f); allocations from the system after "
           "step %d: %lld\n",
           round[ROUNDS / 2], round[0], WARM_UP, asked);
    if (tensor_error()) fprintf(stderr, "nw: %s\n", tensor_error());
    bool failed = tensor_error() != NULL;

    tensor_release(x);
    tensor_release(y);
    tensor_release(keys);
    tensor_release(values);
    nn_free(sgd);
    nn_free(net);
    return failed;
}
