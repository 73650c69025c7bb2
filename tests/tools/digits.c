/* digits.c - a line for each op and type: a sum over the bits of its results and of its gradients.
 * tests/checks/build compares the lines of libraries that were built by other compilers, at other
 * -O levels: no digit depends on these. (The sign of a NaN may: all NaN are one here.) */
#include "../suites/common.h"

#include "../../nn/nn.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t sum; /* FNV-1a */

static void add(const Tensor *x) {
    if (!x) return;
    const int64_t n = tensor_numel(x);
    double *elements = calloc((size_t)n + 1, sizeof *elements);
    if (!elements || !tensor_to_doubles(x, elements)) abort();
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        if (!isnan(elements[i])) memcpy(&bits, &elements[i], sizeof bits);
        sum = (sum ^ bits) * UINT64_C(1099511628211);
    }
    free(elements);
}

static void print_sum(const char *name, DType dtype) {
    printf("%s %s %016" PRIx64 "\n", name, dtype == F32 ? "float32" : "float64", sum);
    sum = UINT64_C(14695981039346656037);
}

/* The op's result and gradients. Takes over the inputs. */
static void run(const Sample *s, Tensor **x, DType dtype) {
    for (int i = 0; i < s->n; i++)
        if (x[i] && s->in[i].kind == 'r') ag_requires_grad(x[i]);
    tape_begin();
    Tensor *y = call_op(s->op, x, s->n, s->number);
    Tensor *dy = y && y->requires_grad ? tensor_rand(y->shape) : NULL;
    Tensor *given = dy ? tensor_to(dy, y->dtype) : NULL;
    add(y);
    if (given) ag_backward_from(y, given);
    for (int i = 0; i < s->n; i++) add(x[i] ? x[i]->grad : NULL);
    tape_end();
    RELEASE(dy, given);
    for (int i = 0; i < s->n; i++) tensor_release(x[i]);
    print_sum(s->op, dtype);
}

static void run_all(const Sample *list, DType dtype) {
    for (const Sample *s = list; s->op; s++) {
        Tensor *x[SAMPLE_INPUTS] = {NULL};
        for (int i = 0; i < s->n; i++) x[i] = sample_input(s, i, dtype);
        run(s, x, dtype);
    }
}

/* Numbers from the whole range of the functions, also where they have no value. */
static void run_elementwise(DType dtype) {
    for (const OpRow *row = op_rows; row->name; row++) {
        if (!is_elementwise(row)) continue;
        Sample s = {.op = row->name, .n = inputs_of(row->op), .number = {0.5}};
        Tensor *x[SAMPLE_INPUTS] = {NULL};
        for (int i = 0; i < s.n; i++) {
            s.in[i].kind = 'r';
            x[i] = tensor_uniform(-20, 20, SHAPE(5, 1001));
        }
        run(&s, x, dtype);
    }
}

static void train(DType dtype) {
    MultiHeadAttention *model = nn_multi_head_attention_new((MultiHeadAttentionConfig){
        .num_hiddens = 48, .num_heads = 3, .dropout = 0.1, .bias = true, .fused = true});
    Tensor *x = tensor_randn(SHAPE(3, 70, 48));
    tape_begin_no_grad();
    nn_multi_head_attention_forward(model, x, x, x, (AttentionMask){0}); /* makes the weights */
    tape_end();
    Optimizer *adamw = nn_adamw_new(model, (AdamWConfig){.lr = 0.01});
    for (int i = 0; i < 5; i++) {
        tape_begin();
        Tensor *y =
            nn_multi_head_attention_forward(model, x, x, x, (AttentionMask){.causal = true});
        nn_optimizer_zero_grad(adamw);
        ag_backward(ag_mse_loss(y, x, REDUCE_MEAN));
        nn_clip_grad_norm(model, 0.1);
        nn_optimizer_step(adamw);
        tape_end();
    }
    Tensor **slots[16] = {NULL};
    const int n = parameter_slots(model, slots, COUNT(slots));
    for (int i = 0; i < n; i++) add(*slots[i]);
    nn_free(adamw);
    nn_free(model);
    tensor_release(x);
    print_sum("training", dtype);
}

int main(void) {
    sum = UINT64_C(14695981039346656037);
    for (int i = 0; i < 2; i++) {
        const DType dtype = i ? F64 : F32;
        tensor_set_default_dtype(dtype);
        tensor_manual_seed(0);
        run_all(samples(), dtype);
        run_all(samples_of_composites(), dtype);
        run_all(large_samples(), dtype);
        run_elementwise(dtype);
        train(dtype);
    }
    if (tensor_error()) fprintf(stderr, "digits: %s\n", tensor_error());
    return tensor_error() || tensor_live() ? 1 : 0;
}
