/* backward.c - walking the tape backwards.
 *
 * The nodes stand in the order in which the ops ran. The inputs of an op exist before its result,
 * so this order is topological, and a walk from the end to the start is backpropagation: when the
 * walk comes to a node, every op that used the node's result has already added its part to the
 * gradient of that result. The walk begins at the node of the loss and ends at the first node that
 * the loss depends on. */
#include "open_tapes.h"

#include <limits.h>
#include <string.h>

/* ---- gradient buffers ------------------------------------------------------------------------ */

/* True if x can be overwritten: there is one reference to x and one to its storage, and no two
 * elements share memory. */
static bool is_private(const Tensor *x) {
    return x->refs == 1 && x->storage->refs == 1 && !tensor_has_repeats(x);
}

Tensor *ag_buffer_like(Tensor *dy) {
    if (is_private(dy) && tensor_is_contiguous(dy)) return tensor_retain(dy);
    return tensor_make(dy->shape, dy->dtype);
}

Tensor *ag_gradient_buffer(const Node *n, int i) {
    Tensor *x = n->in[i];
    Tensor *g = x->grad_buffer;
    if (!g || !is_private(g) || n->hook) return tensor_make_zeros(x->shape, x->dtype);
    x->grad_buffer = NULL; /* accumulate stores g there again */
    return g;
}

/* Adds g to x's gradient buffer. Takes over g. */
static bool accumulate(Tensor *x, Tensor *g) {
    if (!g) return false;
    if (x->grad_buffer && is_private(x->grad_buffer)) tensor_add_elements(x->grad_buffer, g);
    else if (x->grad_buffer) {
        Tensor *sum =
            tensor_map_elements(tensor_kernels()->value[ELEMENTWISE_add][x->dtype], x->shape,
                                x->dtype, 2, (const Tensor *[]){x->grad_buffer, g}, 0);
        tensor_release(x->grad_buffer);
        x->grad_buffer = sum;
    } else x->grad_buffer = tensor_retain(g);
    tensor_release(g); /* its elements were added, or the buffer now holds the reference */
    return x->grad_buffer != NULL;
}

/* Sums g, the gradient of a tensor that was broadcast to g's shape, over the repeated dimensions.
 * Only this function undoes a broadcast. Takes over g. */
static Tensor *unbroadcast(Tensor *g, Shape shape) {
    if (!g || shape_equal(g->shape, shape)) return g;
    Tensor *summed = tensor_sum_to(g, shape);
    tensor_release(g);
    return summed;
}

/* ---- one node -------------------------------------------------------------------------------- */

/* Checks that no tensor that n's backward reads was overwritten after n was recorded. */
static bool check_unchanged(const Node *n) {
    for (int i = 0; n->reads >> i; i++) {
        if (!(n->reads >> i & 1)) continue;
        const Tensor *x = ag_tensor_of(n, i);
        const bool is_out = i == OP_INPUTS;
        if (x->storage->version != n->version[i])
            return tensor_fail("backward: %s needs its %s%s %s as it was, but %s has written over "
                               "it since",
                               node_name(n), is_out ? "result" : "input ",
                               is_out ? "" : input_of(n->op, i)->name, tensor_shape_text(x->shape),
                               x->storage->written_by);
    }
    return true;
}

/* The gradients of n's inputs if its result has no elements: zeros. An op's backward never gets an
 * empty dy: for some ops this would cost time or memory. */
static void fill_zeros(const Node *n, Tensor **dx) {
    for (int i = 0; i < n->n_in; i++)
        if (ag_needs(n, i)) dx[i] = tensor_make_zeros(n->in[i]->shape, n->in[i]->dtype);
}

/* Backward may write over a dy that nobody else holds, so dy is held for the hook. */
static void backward_and_hook(const Node *n, Tensor *dy, Tensor **dx) {
    tensor_retain(dy);
    n->op->backward(n, dy, dx);
    if (!tensor_pending()) n->hook->after(n, dy, dx);
    tensor_release(dy);
}

bool ag_node_vjp(const Node *n, Tensor *dy, Tensor **dx) {
    if (!check_unchanged(n)) return false;
    memset(dx, 0, (size_t)n->n_in * sizeof *dx);
    if (tensor_numel(dy) == 0) fill_zeros(n, dx);
    else if (n->hook) backward_and_hook(n, dy, dx);
    else n->op->backward(n, dy, dx);
    for (int i = 0; i < n->n_in && !tensor_pending(); i++)
        if (ag_needs(n, i)) {
            dx[i] = unbroadcast(dx[i], n->in[i]->shape);
        } else {
            tensor_release(dx[i]);
            dx[i] = NULL;
        }
    for (int i = 0; i < n->n_in && tensor_pending(); i++) {
        tensor_release(dx[i]);
        dx[i] = NULL;
    }
    return !tensor_pending();
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Does n's result have a gradient that must be propagated to the inputs? */
static bool propagates(const Node *n) {
    return n->out->grad_buffer && n->out->grad_fn && n->op->backward;
}

/* The line that made x; INT_MAX for a leaf, which has no grad_fn. */
static int line_of(const Tensor *x) { return x->grad_fn ? x->line : INT_MAX; }

/* The walk's step at one node: computes the gradients of n's inputs from the gradient of its
 * result, and accumulates them. */
static bool node_walk(const Node *n, bool keep_grads, int *first) {
    Tensor *few[OP_INPUTS];
    Tensor **dx = few;
    Tensor *dy = n->out->grad_buffer;
    if (!propagates(n)) return true; /* no gradient, detached, or the op is ag_op_kept */
    if (n->n_in > OP_INPUTS) dx = tensor_cache_alloc(n->n_in * (int64_t)sizeof *dx);
    if (!dx) return false;
    for (int i = 0; i < n->n_in; i++)
        if (ag_needs(n, i) && line_of(n->in[i]) < *first) *first = line_of(n->in[i]);
    keep_grads = keep_grads || n->out->retains_grad;
    if (keep_grads) tensor_retain(dy); /* no longer private, so no backward overwrites it */
    const bool computed = ag_node_vjp(n, dy, dx);
    bool done = computed;
    for (int i = 0; i < n->n_in && computed; i++)
        if (done && ag_needs(n, i)) done = accumulate(n->in[i], dx[i]);
        else tensor_release(dx[i]);
    if (dx != few) tensor_cache_free(dx, n->n_in * (int64_t)sizeof *dx);
    if (!keep_grads) n->out->grad_buffer = NULL;
    tensor_release(dy);
    return done;
}

/* Makes x's gradient buffer fit to become x->grad, which must be private, contiguous and as large
 * as its storage: any other buffer is replaced by a copy. */
static bool make_own(Tensor *x) {
    Tensor *g = x->grad_buffer;
    if (is_private(g) && tensor_is_contiguous(g) &&
        g->storage->size == tensor_numel(g) * dtype_size(g->dtype))
        return true;
    x->grad_buffer = tensor_clone(g);
    tensor_release(g);
    return x->grad_buffer != NULL;
}

static bool discard(Tensor *x) {
    tensor_release(x->grad_buffer);
    x->grad_buffer = NULL;
    return true;
}

/* x->grad += the gradient buffer, unless x has been frozen since an op used it. Cannot fail. */
static bool add_to_grad(Tensor *x) {
    if (!x->requires_grad) return discard(x);
    if (!x->grad) x->grad = tensor_retain(x->grad_buffer);
    else {
        tensor_add_elements(x->grad, x->grad_buffer);
        tensor_written(x->grad, "backward");
    }
    return discard(x);
}

/* Calls act for each tensor with a gradient buffer on the lines from first to y's, and for y. */
static bool for_each_buffer(Tensor *y, int first, bool (*act)(Tensor *)) {
    bool done = !y->grad_buffer || act(y);
    for (int i = first; i <= y->line && y->grad_fn; i++) {
        const Node *n = &ag_tapes.nodes[i];
        if (n->out->grad_buffer) done = done && act(n->out);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] && n->in[k]->grad_buffer) done = done && act(n->in[k]);
    }
    return done;
}

bool ag_check_cotangent(const char *function, const Tensor *y, const Tensor *dy) {
    if (!tensor_check_argument(function, "dy", dy)) return false;
    if (y->dtype == dy->dtype && shape_equal(y->shape, dy->shape)) return true;
    return tensor_fail("%s: y is %s %s and dy is %s %s: shapes and types must be equal%s", function,
                       tensor_dtype_name(y->dtype), tensor_shape_text(y->shape),
                       tensor_dtype_name(dy->dtype), tensor_shape_text(dy->shape),
                       y->dtype == dy->dtype ? "" : "; convert dy with ag_to");
}

/* Checks the arguments of ag_backward_from. */
static bool check_backward(const Tensor *y, const Tensor *dy) {
    if (!ag_check_present("backward", y)) return false;
    const char *rule = NULL;
    if (ag_recording_tape() < 0) rule = "no recording tape is open: call tape_begin first";
    else if (!y->requires_grad) rule = "y does not require a gradient";
    else if (y->tape_ended) rule = "y was computed on a tape that has ended";
    if (rule) return tensor_fail("backward: %s", rule);
    return ag_check_cotangent("backward", y, dy);
}

bool ag_backward_from(Tensor *y, const Tensor *dy) {
    if (!check_backward(y, dy)) return false;
    const int t = ag_recording_tape();
    int first = line_of(y);
    y->grad_buffer = tensor_view_make(dy, dy->shape, dy->stride, dy->data);
    bool done = y->grad_buffer != NULL;
    for (int i = y->line; i >= first && done; i--)
        done = node_walk(&ag_tapes.nodes[i], ag_tapes.tape[t].keep_grads, &first);
    done = done && for_each_buffer(y, first, make_own);
    for_each_buffer(y, first, done ? add_to_grad : discard);
    return done;
}

bool ag_backward(Tensor *loss) {
    if (!ag_check_present("backward", loss)) return false;
    if (tensor_numel(loss) != 1)
        return tensor_fail(
            "backward: the loss is %s: it must have one element, or use ag_backward_from",
            tensor_shape_text(loss->shape));
    Tensor *one = tensor_make(loss->shape, loss->dtype);
    bool done = tensor_fill(one, 1) && ag_backward_from(loss, one);
    tensor_release(one);
    return done;
}
