/* function.c - ag_call: an op that a program defines by its own forward and backward.
 *
 * The engine calls both while it records a node or walks the tape, and both may apply ops. Each
 * of them runs apart (engine.h). What a program returns is checked here; everything else about the
 * op is the same as for the ops of the library. */
#include "op.h"

/* One call of a program's function. */
typedef struct {
    AgCall call;
    const char *name;
    Tensor *y;                                             /* what forward returned */
    void (*backward)(const AgCall *, Tensor *, Tensor **); /* and its arguments: */
    Tensor *dy, **dx;
} FunctionRun;

static void run_forward(void *argument) {
    FunctionRun *run = argument;
    run->y = run->call.function->forward(&run->call);
    if (!ag_is_lent(run->y)) return;
    run->y = tensor_fail("%s: forward returned a loan of its own tape: tensor_retain it",
                         run->call.function->name);
}

/* The result gets a line and a history, so it must be a tensor that nobody else has. */
static Tensor *call_forward(Node *n) {
    FunctionRun run = {.call = {n->at.function, n->n_in, n->in, NULL, n->at.data}};
    ag_run_apart(run_forward, &run);
    Tensor *y = run.y;
    if (!y && !tensor_pending())
        tensor_fail("%s: forward returned NULL without an error", node_name(n));
    if (tensor_pending() || !tensor_check_readable(node_name(n), y) || y->refs == 1) return y;
    Tensor *view = tensor_view_make(y, y->shape, y->stride, y->data);
    tensor_release(y);
    return view;
}

static void run_backward(void *argument) {
    FunctionRun *run = argument;
    run->backward(&run->call, run->dy, run->dx);
    for (int i = 0; i < run->call.n; i++)
        if (ag_is_lent(run->dx[i]))
            run->dx[i] = tensor_fail("%s: backward set dx[%d] to a loan of its own tape: "
                                     "tensor_retain it",
                                     run->name, i);
}

/* Checks dx[i], the gradient of x = in[i]. */
static void check_gradient(const char *name, int i, const Tensor *x, const Tensor *dx) {
    Shape both;
    if (!dx) tensor_fail("%s: backward set no dx[%d], but in[%d] requires a gradient", name, i, i);
    else if (dx->dtype != x->dtype || !tensor_shape_broadcast(x->shape, dx->shape, &both) ||
             !shape_equal(both, dx->shape))
        tensor_fail("%s: backward set dx[%d] to %s %s, but in[%d] is %s %s: the types must be "
                    "equal, and in[%d] must broadcast to dx[%d]",
                    name, i, tensor_dtype_name(dx->dtype), tensor_shape_text(dx->shape), i,
                    tensor_dtype_name(x->dtype), tensor_shape_text(x->shape), i, i);
    else tensor_check_readable(name, dx);
}

/* What was let go has its elements still, since backward reads them, but no op takes it: a view. */
static Tensor *readable(Tensor *x) {
    return x->let_go ? tensor_view_make(x, x->shape, x->stride, x->data) : tensor_retain(x);
}

static void run_and_check(FunctionRun *run, const Node *n) {
    if (!tensor_pending()) ag_run_apart(run_backward, run);
    for (int i = 0; i < n->n_in && !tensor_pending(); i++)
        if (ag_needs(n, i)) check_gradient(run->name, i, n->in[i], run->dx[i]);
}

static void call_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const AgFunction *const function = n->at.function;
    Tensor *in[OP_INPUTS];
    Tensor *out = readable(n->out);
    for (int i = 0; i < n->n_in; i++) in[i] = readable(n->in[i]);
    const AgCall call = {function, n->n_in, in, out, n->at.data};
    run_and_check(&(FunctionRun){call, function->name, NULL, function->backward, dy, dx}, n);
    for (int i = 0; i < n->n_in; i++) tensor_release(in[i]);
    tensor_release(out);
}

void ag_run_hook(const Node *n, Tensor *dy, Tensor **dx) {
    const AgCall call = {NULL, n->n_in, n->in, n->out, n->hook->data};
    run_and_check(&(FunctionRun){call, node_name(n), NULL, n->hook->run, dy, dx}, n);
}

#define INPUTS_OF_CALL                                                                             \
    {                                                                                              \
        {"in[0]", ANY}, {"in[1]", ANY}, {"in[2]", ANY}, {"in[3]", ANY}, {"in[4]", ANY},            \
            {"in[5]", ANY}, {                                                                      \
            "in[6]", ANY                                                                           \
        }                                                                                          \
    }

static const Op op_call = {.name = "call",
                           .calls = true,
                           .in = INPUTS_OF_CALL,
                           .reads = READS_INPUTS | READS_OUT,
                           .forward = call_forward,
                           .backward = call_backward};
static const Op op_call_constant = {
    .name = "call", .calls = true, .in = INPUTS_OF_CALL, .forward = call_forward};

Tensor *ag_call(const AgFunction *function, int n, Tensor *const *in, void *data) {
    if (tensor_pending()) return NULL;
    if (!function || !function->name || !function->forward)
        return tensor_fail("ag_call: it needs a function with a name and a forward");
    if (n < 0 || n > OP_INPUTS)
        return tensor_fail("%s: n is %d: it must be from 0 to %d", function->name, n, OP_INPUTS);
    if (n > 0 && !in) return tensor_fail("%s: in is NULL", function->name);
    const Attributes at = {
        .function = function,
        .data = data,
        .text = {function->name, "", function->formula, function->gradient, ""},
    };
    return ag_apply(function->backward ? &op_call : &op_call_constant, n, in, &at);
}
