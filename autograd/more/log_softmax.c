/* log_softmax.c - the logarithm of softmax, x - log sum exp(x), and log sum exp(x) itself. */
#include "../../tensor/more/more_kernels.h"
#include "../reductions.h"

OP_TEXT(log_softmax) = {
    .call = "ag_log_softmax(x, dim)",
    .shapes = "(..., N, ...) -> same",
    .value = "x - log sum exp(x)",
    .gradient = "dy - exp(y) sum(dy)",
};

static Tensor *log_softmax_forward(Node *n) {
    const Tensor *x = n->in[0];
    Tensor *y = tensor_make(x->shape, x->dtype);
    Kernel *const kernel = tensor_more_kernels()->log_softmax[x->dtype];
    if (y) tensor_loop_rows(kernel, n->at.dim, 2, (const Tensor *[]){y, x}, 0);
    return y;
}

static void log_softmax_backward(const Node *n, Tensor *dy, Tensor **dx) {
    Kernel *const kernel = tensor_more_kernels()->log_softmax_dx[dy->dtype];
    dx[0] = ag_buffer_like(dy);
    if (dx[0]) tensor_loop_rows(kernel, n->at.dim, 3, (const Tensor *[]){dx[0], n->out, dy}, 0);
}

DEFINE_OP(log_softmax, .in = {{"x", FLOAT}}, .forward = log_softmax_forward,
          .backward = log_softmax_backward, .reads = READS_OUT, .grad_fn = "LogSoftmaxBackward0");

Tensor *ag_log_softmax(Tensor *x, int dim) {
    if (!ag_check_present("log_softmax", x)) return NULL;
    const int d = tensor_shape_dim_or_scalar("log_softmax", x->shape, dim);
    return d < 0 ? NULL : apply1(&ag_op_log_softmax, x, (Attributes){.dim = d});
}

OP_TEXT(logsumexp) = {
    .call = "ag_logsumexp(x, dim)",
    .shapes = "(..., N, ...) -> (..., ...)",
    .value = "log sum exp(x)",
    .gradient = "exp(x - y) dy",
};

static Tensor *logsumexp_forward(Node *n) {
    const Tensor *x = n->in[0];
    Kernel *const kernel = tensor_more_kernels()->logsumexp[x->dtype];
    return ag_drop_dims(n, tensor_reduce(x, kernel, n->at.dim, x->dtype));
}

/* dx = exp(x - y) dy, where y and dy have one number for each reduced row. */
static void logsumexp_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const DType type = dy->dtype;
    Kernel *const exp = tensor_kernels()->value[ELEMENTWISE_exp][type];
    Kernel *const sub = tensor_kernels()->value[ELEMENTWISE_sub][type];
    Kernel *const mul = tensor_kernels()->value[ELEMENTWISE_mul][type];
    Tensor *y = ag_expand_to_x(n, n->out);
    Tensor *wide = y ? ag_expand_to_x(n, dy) : NULL;
    Tensor *d = NULL;
    if (wide) d = tensor_map_elements(sub, y->shape, type, 2, (const Tensor *[]){n->in[0], y}, 0);
    if (d) tensor_loop_elements(exp, 2, (const Tensor *[]){d, d}, 0);
    if (d) tensor_loop_elements(mul, 3, (const Tensor *[]){d, d, wide}, 0);
    tensor_release(y);
    tensor_release(wide);
    dx[0] = d;
}

DEFINE_OP(logsumexp, .in = {{"x", FLOAT}}, .forward = logsumexp_forward,
          .backward = logsumexp_backward, .reads = READS_IN0 | READS_OUT,
          .grad_fn = "LogsumexpBackward0");

Tensor *ag_logsumexp(Tensor *x, int dim) { return ag_reduce_dim(&ag_op_logsumexp, x, dim, false); }

OP_TEXT(logsumexp_dim) = {
    .call = "ag_logsumexp_dim(x, dim, keepdim)",
    .shapes = "(..., N, ...) -> (..., ...), or (..., 1, ...) with keepdim",
    .value = "log sum exp(x); applies the op logsumexp",
    .gradient = "exp(x - y) dy",
};

Tensor *ag_logsumexp_dim(Tensor *x, int dim, bool keepdim) {
    return ag_reduce_dim(&ag_op_logsumexp, x, dim, keepdim);
}
