/* adamw_step.c - a step of AdamW: one kernel writes three tensors in one pass over memory. */
#include "more_kernels.h"

#include "../operations/operations.h"
#include "../parts.h"

/* Checks that x has the shape and type of first. Unless x is the gradient, also checks that x can
 * be written. */
static bool check_step_operand(const char *op, const Tensor *first, const Tensor *x,
                               bool is_gradient) {
    if (!(is_gradient ? tensor_check_readable(op, x) : tensor_check_writable_floats(op, x)))
        return false;
    if (x->dtype == first->dtype && shape_equal(x->shape, first->shape)) return true;
    return tensor_fail("%s: %s %s and %s %s: shapes and types must be equal", op,
                       tensor_dtype_name(first->dtype), tensor_shape_text(first->shape),
                       tensor_dtype_name(x->dtype), tensor_shape_text(x->shape));
}

/* The operands of the kernel: x, m, v, g and the AdamWStep. */
typedef struct {
    Kernel *kernel;
    void *data[5];
    int64_t numel, size; /* size: bytes of an element */
} Step;

/* Threads share contiguous elements in pieces of 64. */
static void step_part(int worker, int64_t from, int64_t to, void *context) {
    const Step *step = context;
    const int64_t first = 64 * from, n = MIN(64 * to, step->numel) - first;
    void *data[5] = {[4] = step->data[4]};
    (void)worker;
    for (int i = 0; i < 4; i++) data[i] = (char *)step->data[i] + first * step->size;
    step->kernel(n, data, 0);
}

/* Tensors of other strides are rare here: element by element. */
static void step_strided(Kernel *kernel, const Tensor *const *operand, AdamWStep *s) {
    Walk walk;
    int64_t index[TENSOR_MAX_DIMS] = {0};
    tensor_walk_start(&walk, 4, operand, 0);
    walk.data[4] = s;
    do kernel(1, walk.data, 0);
    while (tensor_walk_next(&walk, walk.ndim, index));
}

bool tensor_adamw_(Tensor *x, Tensor *m, Tensor *v, const Tensor *g, AdamWStep s) {
    const Tensor *const operand[] = {x, m, v, g};
    bool dense = true;
    for (int i = 0; i < 4; i++) {
        if (!check_step_operand("adamw_", x, operand[i], i == 3)) return false;
        dense = dense && tensor_is_contiguous(operand[i]);
    }
    Step step = {tensor_more_kernels()->adamw[x->dtype],
                 {x->data, m->data, v->data, g->data, &s},
                 tensor_numel(x),
                 dtype_size(x->dtype)};
    const int workers = tensor_workers_for((double)step.numel);
    if (dense) tensor_work_in_parts(workers, (step.numel + 63) / 64, step_part, &step);
    else if (step.numel > 0) step_strided(step.kernel, operand, &s);
    tensor_written(x, "adamw_");
    tensor_written(m, "adamw_");
    tensor_written(v, "adamw_");
    return true;
}
