/* tape.c - the tape: recording ops, and walking them backwards.
 *
 * The tape is a flat array of nodes in the order of creation. The inputs of an op exist before its
 * result, so this order is topological, and a walk from the end to the start is backpropagation:
 * when the walk comes to a node, every op that used the node's result has already added its part to
 * the gradient of that result. The walk begins at the node of the loss and ends at the first node
 * that the loss depends on.
 *
 * All tapes of a thread share one array. The nodes of an inner tape come after the nodes of the
 * outer tape; tape_end removes the last nodes. */
#include "op.h"

#include <limits.h>
#include <string.h>

enum { TAPES_MAX = 64 };

static TENSOR_THREAD_LOCAL struct Stack {
    Node *nodes;
    int count, capacity;
    struct Tape {
        int first; /* the index of its first node; its nodes end where the next tape begins */
        bool records, keep_grads;
        uint32_t number; /* of a recording tape; else 0 */
    } tape[TAPES_MAX];
    int open;       /* how many tapes are open */
    uint32_t tapes; /* the number of the last recording tape */
    bool apart;     /* of ag_run_apart: no tape records */
} stack;

/* ---- opening and closing ------------------------------------------------------------------- */

/* The innermost recording tape, or -1. */
static int recording_tape(void) {
    for (int t = stack.open - 1; t >= 0; t--)
        if (stack.tape[t].records) return t;
    return -1;
}

/* One past the index of the last node of tape t. */
static int nodes_end(int t) { return t + 1 < stack.open ? stack.tape[t + 1].first : stack.count; }

/* Tells tensor/ whether writes in place would have to be recorded. */
static void tell_recording(void) {
    tensor_set_recording(stack.open > 0 ? stack.tape[stack.open - 1].number : 0);
}

/* Opens a tape even while an error is pending: the next tape_end must close this tape, not the
 * outer tape. */
static bool open_tape(const char *function, bool records) {
    if (stack.open == TAPES_MAX)
        return tensor_fail("%s: %d tapes are open already: is a tape_end missing?", function,
                           TAPES_MAX);
    if (records && recording_tape() >= 0)
        return tensor_fail("%s: a recording tape is open already: tape_end it first", function);
    if (records && stack.apart)
        return tensor_fail("%s: a function of ag_call is running, and what it does is not recorded",
                           function);
    struct Tape tape = {.first = stack.count, .records = records};
    /* The numbers of two threads differ: a tensor may go to another thread with its mark of a write
     * that no tape recorded (Storage.unrecorded). */
    if (stack.tapes == 0) stack.tapes = (uint32_t)(uintptr_t)&stack;
    while (records && tape.number == 0) tape.number = ++stack.tapes;
    stack.tape[stack.open++] = tape;
    tell_recording();
    return true;
}

bool tape_begin(void) { return open_tape("tape_begin", true); }

bool tape_begin_no_grad(void) { return open_tape("tape_begin_no_grad", false); }

/* The op of a node that owns a tensor and did not compute it. */
static const Op ag_op_kept = {.name = "kept"};

/* Which tensors n's backward reads: bit i for in[i], bit OP_INPUTS for the result. */
static unsigned reads_of(const Node *n) {
    const unsigned inputs = n->op->reads & READS_INPUTS;
    unsigned reads = n->op->reads & (READS_INPUTS | READS_OUT);
    for (int i = 0; inputs >> i; i++)
        if (i >= n->n_in || !n->in[i] ||
            (n->op->reads & READS_OTHER && i < 2 && !ag_needs(n, 1 - i)))
            reads &= ~(1u << i);
    return reads;
}

static Tensor *tensor_of(const Node *n, int i) { return i == OP_INPUTS ? n->out : n->in[i]; }

/* After hold_bytes(n, +1) the bytes that backward reads are not freed, until hold_bytes(n, -1). */
static void hold_bytes(const Node *n, int readers) {
    for (int i = 0; n->reads >> i; i++)
        if (n->reads >> i & 1) tensor_storage_read(tensor_of(n, i)->storage, readers);
}

static void release_saved(Node *n) {
    for (int i = 0; i < SAVED; i++) tensor_release(n->saved[i]);
    memset(n->saved, 0, sizeof n->saved);
}

/* Releases the tensors of a node. If the program retained the result, it outlives the tape that
 * computed it, and tape_ended is set. (Not for a "kept" node, which did not compute its tensor.) */
static void node_release(Node *n) {
    hold_bytes(n, -1);
    for (int i = 0; i < n->n_in; i++) tensor_release(n->in[i]);
    if (n->many) tensor_cache_free(n->many, n->n_in * (int64_t)sizeof *n->many);
    if (n->hook) tensor_cache_free(n->hook, sizeof *n->hook);
    release_saved(n);
    if (n->out->refs > 1 && n->out->grad_fn && n->op != &ag_op_kept) n->out->tape_ended = true;
    tensor_release(n->out);
}

void tape_end(void) {
    if (stack.open == 0) return;
    int first = stack.tape[--stack.open].first;
    tell_recording();
    while (stack.count > first) node_release(&stack.nodes[--stack.count]);
    if (stack.open > 0) return;
    tensor_cache_free(stack.nodes, stack.capacity * (int64_t)sizeof(Node));
    stack.nodes = NULL;
    stack.capacity = 0;
    if (!stack.apart) tensor_cache_end_step();
}

void ag_run_apart(void (*run)(void *), void *argument) {
    const struct Stack outside = stack;
    stack = (struct Stack){.apart = true};
    tape_begin_no_grad();
    run(argument);
    while (stack.open > 0) tape_end(); /* also those that the function has left open */
    stack = outside;
    tell_recording();
}

bool ag_is_lent(const Tensor *x) {
    for (int i = 0; i < stack.count && x && x->refs == 1; i++)
        if (stack.nodes[i].out == x) return true;
    return false;
}

void tape_keep_grads(bool keep) {
    int t = recording_tape();
    if (t >= 0) stack.tape[t].keep_grads = keep;
    else tensor_fail("tape_keep_grads: no recording tape is open: call tape_begin first");
}

/* ---- recording ----------------------------------------------------------------------------- */

/* Makes the array large enough for one more node. If n->in points to n->few, it is updated, because
 * the node moves. */
static bool reserve_node(void) {
    if (stack.count < stack.capacity) return true;
    int capacity = stack.capacity ? 2 * stack.capacity : 64;
    Node *nodes = tensor_cache_alloc(capacity * (int64_t)sizeof(Node));
    if (!nodes) return false;
    if (stack.count) memcpy(nodes, stack.nodes, (size_t)stack.count * sizeof(Node));
    for (int i = 0; i < stack.count; i++)
        if (stack.nodes[i].in == stack.nodes[i].few) nodes[i].in = nodes[i].few;
    tensor_cache_free(stack.nodes, stack.capacity * (int64_t)sizeof(Node));
    stack.nodes = nodes;
    stack.capacity = capacity;
    return true;
}

bool ag_check_present(const char *op, const Tensor *x) {
    return tensor_check_given(op, "tensor", x) && !tensor_pending();
}

static bool check_open(const char *op) {
    return stack.open > 0 ||
           tensor_fail("%s: no tape is open: call tape_begin or tape_begin_no_grad first", op);
}

bool ag_check_ready(const char *op, const Tensor *x) {
    return ag_check_present(op, x) && tensor_check_readable(op, x) && check_open(op);
}

/* The types of an input, for an error message. */
static const char *types_text(InputType type) {
    if (type == FLOAT) return "float32 or float64";
    if (type == NUMBER) return "float32, float64 or int64";
    return tensor_dtype_name(type == INT64 ? I64 : BOOL);
}

/* Checks that the op takes the type of input i, and that the earlier inputs with the same set of
 * types have this type, too. */
static bool check_type(const Op *op, int i, Tensor *const *in) {
    const InputType type = input_of(op, i)->type & ANY;
    const DType is = in[i]->dtype;
    if (!(type >> is & 1))
        return tensor_fail("%s: %s is %s: it must be %s; convert it with ag_to", op->name,
                           input_of(op, i)->name, tensor_dtype_name(is), types_text(type));
    for (int j = 0; j < i; j++) /* what takes ANY is not compared */
        if ((input_of(op, j)->type & SAME) == type && in[j] && in[j]->dtype != is)
            return tensor_fail("%s: %s is %s and %s is %s: the types must be equal", op->name,
                               input_of(op, j)->name, tensor_dtype_name(in[j]->dtype),
                               input_of(op, i)->name, tensor_dtype_name(is));
    return true;
}

/* Checks that no error is pending, no required input is NULL, the types are right and a tape is
 * open. */
static bool check_inputs(const Op *op, int n_in, Tensor *const *in, const Attributes *at) {
    if (tensor_pending()) return false;
    for (int i = 0; i < n_in; i++)
        if (!in[i] && !(input_of(op, i)->type & OPTIONAL))
            return tensor_fail("%s: %s is NULL", op_name(op, at), input_of(op, i)->name);
    for (int i = 0; i < n_in; i++)
        if (in[i] && !check_type(op, i, in)) return false;
        else if (in[i] && in[i]->let_go)
            return tensor_fail("%s: %s was let go, and its elements with it", op_name(op, at),
                               input_of(op, i)->name);
    return check_open(op_name(op, at));
}

/* The line that made x; INT_MAX for a leaf, which has no grad_fn. */
static int line_of(const Tensor *x) { return x->grad_fn ? x->line : INT_MAX; }

/* Was x, a result of the tape, written over? A view of a leaf shows what the leaf is now, so such a
 * write is one to the leaf. */
static bool was_written_over(const Tensor *x) {
    while (x->grad_fn) {
        const Node *n = &stack.nodes[x->line];
        const Tensor *from = n->n_in > 0 ? n->in[0] : NULL;
        if (!from || from->storage != x->storage)
            return x->storage->version != n->version[OP_INPUTS];
        x = from;
    }
    return false;
}

/* Sets an error if the tape would not carry the gradient of this input to what its elements were
 * computed from. */
static void check_history(const char *op, const char *name, const Tensor *x) {
    const uint32_t tape = stack.tape[stack.open - 1].number;
    if (x->requires_grad && x->tape_ended)
        tensor_fail(
            "%s: %s was computed on a tape that has ended: ag_detach it to use it as a constant",
            op, name);
    else if (x->storage->unrecorded == tape)
        tensor_fail("%s: %s was written in place from a tensor that requires a gradient, which the "
                    "tape does not record: use ops, such as ag_cat or ag_where, or write from "
                    "ag_detach of that tensor",
                    op, name);
    else if (was_written_over(x))
        tensor_fail("%s: %s is a result of the tape, and %s has written over it, which the tape "
                    "does not record: use ops, or ag_detach it to use it as a constant",
                    op, name, x->storage->written_by);
}

/* Does the result require a gradient? An error if the history of an input is not on the tape. */
static bool result_requires_grad(const Node *n) {
    bool required = false;
    if (!n->op->backward || !stack.tape[stack.open - 1].records) return false;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        required = required || n->in[i]->requires_grad;
        check_history(node_name(n), input_of(n->op, i)->name, n->in[i]);
    }
    return required;
}

/* Retains the inputs and records their versions, for the backward pass and for tape_print. */
static bool retain_inputs(Node *n, Tensor *const *in) {
    const bool many = n->n_in > OP_INPUTS;
    n->many = many ? tensor_cache_alloc(n->n_in * (int64_t)sizeof *n->many) : NULL;
    Tensor **own = many ? n->many : n->few;
    if (!own) return false;
    n->in = own;
    for (int i = 0; i < n->n_in; i++) {
        own[i] = tensor_retain(in[i]);
        if (in[i] && i < OP_INPUTS) n->version[i] = in[i]->storage->version;
    }
    return true;
}

Tensor *ag_apply(const Op *op, int n_in, Tensor *const *in, const Attributes *at) {
    if (!check_inputs(op, n_in, in, at) || !reserve_node()) return NULL;
    const bool records = stack.tape[stack.open - 1].records;
    Node *n = &stack.nodes[stack.count]; /* it stays here if forward applies ops: ag_run_apart */
    n->op = op;
    n->n_in = n_in;
    n->in = in;
    n->hook = NULL;
    memset(n->saved, 0, sizeof n->saved);
    n->at = *at;
    const bool requires_grad = result_requires_grad(n);
    if (tensor_pending()) return NULL;
    n->out = op->forward(n);
    n->n_in = records ? n_in : 0; /* a tape that does not record keeps results alone */
    if (tensor_pending() || !retain_inputs(n, in)) {
        release_saved(n);
        tensor_release(n->out);
        return NULL;
    }
    const bool grad = requires_grad && dtype_is_float(n->out->dtype);
    n->out->requires_grad = grad;
    /* forward has set grad_fn if PyTorch's name depends on the inputs */
    if (grad && !n->out->grad_fn) n->out->grad_fn = op->grad_fn ? op->grad_fn : node_name(n);
    if (!grad) {
        n->out->grad_fn = NULL;
        release_saved(n);
    }
    n->version[OP_INPUTS] = n->out->storage->version;
    n->out->line = stack.count;
    n->reads = grad ? reads_of(n) : 0;
    hold_bytes(n, +1);
    stack.count++;
    return n->out;
}

/* The innermost tape takes over a reference to y. Call reserve_node first. */
static void own(Tensor *y) { stack.nodes[stack.count++] = (Node){.op = &ag_op_kept, .out = y}; }

Tensor *tape_end_keeping(Tensor *y) {
    bool inner = stack.open > 1;
    bool kept = y && !tensor_pending() && (!inner || reserve_node());
    if (kept) tensor_retain(y);
    tape_end();
    if (kept && inner) own(y);
    return kept ? y : NULL;
}

Tensor *tape_own(Tensor *x) {
    const bool owned = ag_check_ready("tape_own", x) && reserve_node();
    if (owned) own(x);
    else tensor_release(x);
    return owned ? x : NULL;
}

/* ---- backpropagation ----------------------------------------------------------------------- */

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

/* Checks that no tensor that n's backward reads was overwritten or freed after n was recorded. */
static bool check_unchanged(const Node *n) {
    const unsigned reads = reads_of(n);
    for (int i = 0; reads >> i; i++) {
        if (!(reads >> i & 1)) continue;
        const Tensor *x = tensor_of(n, i);
        const bool is_out = i == OP_INPUTS;
        const bool gone = !x->storage->bytes;
        if (gone || x->storage->version != n->version[i])
            return tensor_fail("backward: %s needs its %s%s %s as it was, but %s%s since",
                               node_name(n), is_out ? "result" : "input ",
                               is_out ? "" : input_of(n->op, i)->name, tensor_shape_text(x->shape),
                               gone ? "it was let go" : x->storage->written_by,
                               gone ? "" : " has written over it");
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
    for (int i = 0; i < n->n_in && tensor_pending(); i++) tensor_release(dx[i]);
    return !tensor_pending();
}

/* Computes the gradients of n's inputs from the gradient of its result, and accumulates them. */
static bool node_backward(const Node *n, Tensor *dy, Tensor **dx) {
    const bool computed = ag_node_vjp(n, dy, dx);
    bool done = computed;
    for (int i = 0; i < n->n_in && computed; i++)
        if (done && ag_needs(n, i)) done = accumulate(n->in[i], dx[i]);
        else tensor_release(dx[i]);
    return done;
}

/* Does n's result have a gradient that must be propagated to the inputs? */
static bool propagates(const Node *n) {
    return n->out->grad_buffer && n->out->grad_fn && n->op->backward;
}

static void lower_to_inputs(const Node *n, int *first) {
    for (int i = 0; i < n->n_in; i++)
        if (ag_needs(n, i) && line_of(n->in[i]) < *first) *first = line_of(n->in[i]);
}

/* Lowers *first, the last line that the walk comes to, to the lines that made n's inputs. */
static bool node_walk(const Node *n, bool keep_grads, int *first) {
    Tensor *few[OP_INPUTS];
    Tensor **dx = few;
    Tensor *dy = n->out->grad_buffer;
    if (!propagates(n)) return true; /* no gradient, detached, or the op is ag_op_kept */
    if (n->n_in > OP_INPUTS) dx = tensor_cache_alloc(n->n_in * (int64_t)sizeof *dx);
    if (!dx) return false;
    lower_to_inputs(n, first);
    keep_grads = keep_grads || n->out->retains_grad;
    if (keep_grads) tensor_retain(dy); /* no longer private, so no backward overwrites it */
    bool done = node_backward(n, dy, dx);
    if (dx != few) tensor_cache_free(dx, n->n_in * (int64_t)sizeof *dx);
    if (!keep_grads) n->out->grad_buffer = NULL;
    tensor_release(dy);
    return done;
}

/* Prepares the gradient buffer of x to become x->grad, which must be private, contiguous and as
 * large as its storage. Any other buffer is replaced by a copy. */
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

/* x->grad += the gradient buffer. Cannot fail. */
static bool add_to_grad(Tensor *x) {
    if (!x->grad) x->grad = tensor_retain(x->grad_buffer);
    else {
        tensor_add_elements(x->grad, x->grad_buffer);
        tensor_written(x->grad, "backward");
    }
    return discard(x);
}

/* Calls act for y and for every tensor that has a gradient buffer, on the lines from first to y's.
 */
static bool for_each_buffer(Tensor *y, int first, bool (*act)(Tensor *)) {
    bool done = !y->grad_buffer || act(y);
    for (int i = first; i <= y->line && y->grad_fn; i++) {
        const Node *n = &stack.nodes[i];
        if (n->out->grad_buffer) done = done && act(n->out);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] && n->in[k]->grad_buffer) done = done && act(n->in[k]);
    }
    return done;
}

bool ag_check_cotangent(const char *function, const Tensor *y, const Tensor *dy) {
    if (!tensor_check_readable(function, dy)) return false;
    if (y->dtype == dy->dtype && shape_equal(y->shape, dy->shape)) return true;
    return tensor_fail("%s: y is %s %s and dy is %s %s: shapes and types must be equal", function,
                       tensor_dtype_name(y->dtype), tensor_shape_text(y->shape),
                       tensor_dtype_name(dy->dtype), tensor_shape_text(dy->shape));
}

/* Checks the arguments of ag_backward_from. */
static bool check_backward(const Tensor *y, const Tensor *dy) {
    if (!ag_check_present("backward", y)) return false;
    const char *rule = dy ? NULL : "dy is NULL";
    if (recording_tape() < 0) rule = "no recording tape is open: call tape_begin first";
    else if (!y->requires_grad) rule = "y does not require a gradient";
    else if (y->tape_ended) rule = "y was computed on a tape that has ended";
    if (rule) return tensor_fail("backward: %s", rule);
    return ag_check_cotangent("backward", y, dy);
}

bool ag_backward_from(Tensor *y, const Tensor *dy) {
    if (!check_backward(y, dy)) return false;
    const int t = recording_tape();
    int first = line_of(y);
    y->grad_buffer = tensor_view_make(dy, dy->shape, dy->stride, dy->data);
    bool done = y->grad_buffer != NULL;
    for (int i = y->line; i >= first && done; i--)
        done = node_walk(&stack.nodes[i], stack.tape[t].keep_grads, &first);
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

/* The loop of ag_backward_from without arithmetic: grad_buffer only marks the tensors that would
 * get a gradient.
 */
bool ag_reaches(Tensor *y, Tensor *x) {
    if (!ag_check_present("reaches", y) || !ag_check_present("reaches", x)) return false;
    const int t = recording_tape();
    if (t < 0) return tensor_fail("reaches: no recording tape is open: call tape_begin first");
    int first = line_of(y);
    y->grad_buffer = tensor_retain(y);
    for (int i = y->line; i >= first; i--) {
        const Node *n = &stack.nodes[i];
        if (!propagates(n)) continue;
        lower_to_inputs(n, &first);
        for (int k = 0; k < n->n_in; k++)
            if (ag_needs(n, k) && !n->in[k]->grad_buffer)
                n->in[k]->grad_buffer = tensor_retain(n->in[k]);
    }
    const bool reached = x->requires_grad && x->grad_buffer;
    for_each_buffer(y, first, discard);
    return reached;
}

/* ---- marks on tensors ---------------------------------------------------------------------- */

Tensor *ag_requires_grad(Tensor *x) {
    if (!ag_check_present("requires_grad", x)) return NULL;
    if (!dtype_is_float(x->dtype))
        return tensor_fail("requires_grad: x is %s: only floats can have a gradient",
                           tensor_dtype_name(x->dtype));
    x->requires_grad = true;
    return x;
}

bool ag_zero_grad(Tensor *x) {
    if (!tensor_check_given("zero_grad", "tensor", x)) return false;
    tensor_release(x->grad);
    x->grad = NULL;
    return true;
}

Tensor *ag_retain_grad(Tensor *x) {
    if (!ag_check_present("retain_grad", x)) return NULL;
    if (!x->requires_grad) return tensor_fail("retain_grad: x does not require a gradient");
    x->retains_grad = true;
    return x;
}

/* A tape that keeps gradients keeps values, too. */
static bool keeps_all(void) {
    const int t = recording_tape();
    return t >= 0 && stack.tape[t].keep_grads;
}

Tensor *ag_let_go(Tensor *x) {
    if (!ag_check_present("let_go", x)) return NULL;
    if (!keeps_all()) tensor_let_go(x);
    return x;
}

int tape_mark(void) { return stack.count; }

const Node *ag_node(int i) {
    const int t = recording_tape();
    const bool there = t >= 0 && i >= 0 && i < nodes_end(t) - stack.tape[t].first;
    return there ? &stack.nodes[stack.tape[t].first + i] : NULL;
}

/* For each reference that the nodes from first to the end hold, adds `change` to the reference
 * count of the tensor. */
static void count_references(int first, int change) {
    for (int i = first; i < stack.count; i++) {
        const Node *n = &stack.nodes[i];
        n->out->refs += change;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k]) n->in[k]->refs += change;
        for (int k = 0; k < SAVED; k++)
            if (n->saved[k]) n->saved[k]->refs += change;
    }
}

/* Subtracts the references of the nodes after the mark. A result whose count is then 0 is not used
 * elsewhere, so let it go. */
Tensor *ag_let_go_since(int mark, Tensor *y) {
    if (mark < 0) return tensor_fail("let_go_since: mark is %d: it must not be negative", mark);
    if (!ag_check_present("let_go_since", y)) return NULL;
    if (keeps_all()) return y;
    count_references(mark, -1);
    for (int i = mark; i < stack.count; i++) {
        Tensor *x = stack.nodes[i].out;
        if (x != y && x->refs == 0) tensor_let_go(x);
    }
    count_references(mark, +1);
    return y;
}

Tensor *ag_name(Tensor *x, const char *name) {
    if (!ag_check_present("name", x)) return NULL;
    size_t length = 0;
    while (name && name[length] && length < sizeof x->name - 1) length++;
    memmove(x->name, name ? name : "", length);
    x->name[length] = '\0';
    return x;
}

/* ---- printing ------------------------------------------------------------------------------ */

/* Prints the comma, then "%2 scores" for a result on the tape, else "weight (3, 2)". */
static void print_input(const Tensor *x, const char *comma, int before, FILE *file) {
    int i = before - 1;
    while (i >= 0 && stack.nodes[i].out != x) i--;
    fputs(comma, file);
    if (i >= 0) fprintf(file, "%%%d%s%s", i, x->name[0] ? " " : "", x->name);
    else fprintf(file, "%s%s%s", x->name, x->name[0] ? " " : "", tensor_shape_text(x->shape));
}

bool tape_print(FILE *file) {
    if (tensor_pending() || !tensor_check_given("tape_print", "file", file)) return false;
    if (stack.open == 0) return tensor_fail("tape_print: no tape is open");
    for (int i = stack.tape[stack.open - 1].first; i < stack.count; i++) {
        const Node *n = &stack.nodes[i];
        fprintf(file, "%%%d%s%s = %s(", i, n->out->name[0] ? " " : "", n->out->name, node_name(n));
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k]) print_input(n->in[k], k ? ", " : "", i, file);
        fprintf(file, ") %s%s\n", tensor_shape_text(n->out->shape),
                n->out->requires_grad ? " grad" : "");
    }
    if (fflush(file) == 0 && !ferror(file)) return true;
    return tensor_fail("tape_print: the file could not be written");
}
