/* tape.c - opening and closing tapes, and what a tape owns.
 *
 * All tapes of a thread share one array of nodes, in the order in which the ops ran. The nodes of
 * an inner tape come after those of the outer one; tape_end removes the last ones. */
#include "open_tapes.h"

#include <string.h>

TENSOR_THREAD_LOCAL Tapes ag_tapes;

/* ---- opening a tape -------------------------------------------------------------------------- */

int ag_recording_tape(void) {
    for (int t = ag_tapes.open - 1; t >= 0; t--)
        if (ag_tapes.tape[t].records) return t;
    return -1;
}

/* One past the index of the last node of tape t. */
static int nodes_end(int t) {
    return t + 1 < ag_tapes.open ? ag_tapes.tape[t + 1].first : ag_tapes.count;
}

/* Tells tensor/ whether writes in place would have to be recorded. */
static void tell_recording(void) {
    tensor_set_recording(ag_tapes.open > 0 ? ag_tapes.tape[ag_tapes.open - 1].number : 0);
}

/* Opens a tape even while an error is pending: the next tape_end must close this tape, not the
 * outer tape. */
static bool open_tape(const char *function, bool records) {
    if (ag_tapes.open == TAPES_MAX)
        return tensor_fail("%s: %d tapes are open already: is a tape_end missing?", function,
                           TAPES_MAX);
    if (records && ag_recording_tape() >= 0)
        return tensor_fail("%s: a recording tape is open already: tape_end it first", function);
    if (records && ag_tapes.apart)
        return tensor_fail("%s: a function of ag_call is running, and what it does is not recorded",
                           function);
    struct Tape tape = {.first = ag_tapes.count, .records = records};
    /* The numbers of two threads differ: a tensor may go to another thread with its mark of a write
     * that no tape recorded (Storage.unrecorded). */
    if (ag_tapes.last_number == 0) ag_tapes.last_number = (uint32_t)(uintptr_t)&ag_tapes;
    while (records && tape.number == 0) tape.number = ++ag_tapes.last_number;
    ag_tapes.tape[ag_tapes.open++] = tape;
    tell_recording();
    return true;
}

bool tape_begin(void) { return open_tape("tape_begin", true); }

bool tape_begin_no_grad(void) { return open_tape("tape_begin_no_grad", false); }

void tape_keep_grads(bool keep) {
    int t = ag_recording_tape();
    if (t >= 0) ag_tapes.tape[t].keep_grads = keep;
    else tensor_fail("tape_keep_grads: no recording tape is open: call tape_begin first");
}

/* ---- the nodes of the open tapes ------------------------------------------------------------- */

/* Makes the array large enough for one more node. If n->in points to n->few, it is updated, and so
 * is n->needs, because the node moves. */
bool ag_reserve_node(void) {
    if (ag_tapes.count < ag_tapes.capacity) return true;
    int capacity = ag_tapes.capacity ? 2 * ag_tapes.capacity : 64;
    Node *nodes = tensor_cache_alloc(capacity * (int64_t)sizeof(Node));
    if (!nodes) return false;
    if (ag_tapes.count) memcpy(nodes, ag_tapes.nodes, (size_t)ag_tapes.count * sizeof(Node));
    for (int i = 0; i < ag_tapes.count; i++)
        if (ag_tapes.nodes[i].in == ag_tapes.nodes[i].few) {
            nodes[i].in = nodes[i].few;
            nodes[i].needs = nodes[i].few_needs;
        }
    tensor_cache_free(ag_tapes.nodes, ag_tapes.capacity * (int64_t)sizeof(Node));
    ag_tapes.nodes = nodes;
    ag_tapes.capacity = capacity;
    return true;
}

const Node *ag_node(int i) {
    const int t = ag_recording_tape();
    const bool there = t >= 0 && i >= 0 && i < nodes_end(t) - ag_tapes.tape[t].first;
    return there ? &ag_tapes.nodes[ag_tapes.tape[t].first + i] : NULL;
}

void ag_hold_bytes(const Node *n, int readers) {
    for (int i = 0; n->reads >> i; i++)
        if (n->reads >> i & 1) tensor_storage_read(ag_tensor_of(n, i)->storage, readers);
}

/* ---- closing a tape -------------------------------------------------------------------------- */

/* The op of a node that owns a tensor and did not compute it. */
static const Op ag_op_kept = {.name = "kept"};

void ag_release_saved(Node *n) {
    for (int i = 0; i < SAVED; i++) tensor_release(n->saved[i]);
    memset(n->saved, 0, sizeof n->saved);
}

/* Releases the tensors of a node. If the program retained the result, it outlives the tape that
 * computed it, and tape_ended is set. (Not for a "kept" node, which did not compute its tensor.) */
static void node_release(Node *n) {
    ag_hold_bytes(n, -1);
    for (int i = 0; i < n->n_in; i++) tensor_release(n->in[i]);
    if (n->many) tensor_cache_free(n->many, n->n_in * AG_MANY_SIZE);
    if (n->hook) tensor_cache_free(n->hook, sizeof *n->hook);
    ag_release_saved(n);
    if (n->out->refs > 1 && n->out->grad_fn && n->op != &ag_op_kept) n->out->tape_ended = true;
    tensor_release(n->out);
}

void tape_end(void) {
    if (ag_tapes.open == 0) return;
    int first = ag_tapes.tape[--ag_tapes.open].first;
    tell_recording();
    while (ag_tapes.count > first) node_release(&ag_tapes.nodes[--ag_tapes.count]);
    if (ag_tapes.open > 0) return;
    tensor_cache_free(ag_tapes.nodes, ag_tapes.capacity * (int64_t)sizeof(Node));
    ag_tapes.nodes = NULL;
    ag_tapes.capacity = 0;
    if (!ag_tapes.apart) tensor_cache_end_step();
}

/* The innermost tape takes over a reference to y. Call ag_reserve_node first. */
static void own(Tensor *y) {
    ag_tapes.nodes[ag_tapes.count++] = (Node){.op = &ag_op_kept, .out = y};
}

Tensor *tape_end_keeping(Tensor *y) {
    bool inner = ag_tapes.open > 1;
    bool kept = y && !tensor_pending() && (!inner || ag_reserve_node()) && tensor_retain(y);
    tape_end();
    if (kept && inner) own(y);
    return kept ? y : NULL;
}

Tensor *tape_own(Tensor *x) {
    const bool owned = ag_check_ready("tape_own", x) && ag_reserve_node();
    if (owned) own(x);
    else tensor_release(x);
    return owned ? x : NULL;
}

/* ---- apart from the open tapes --------------------------------------------------------------- */

void ag_run_apart(void (*run)(void *), void *argument) {
    const Tapes outside = ag_tapes;
    ag_tapes = (Tapes){.apart = true};
    tape_begin_no_grad();
    run(argument);
    while (ag_tapes.open > 0) tape_end(); /* also those that the function has left open */
    ag_tapes = outside;
    tell_recording();
}

bool ag_is_lent(const Tensor *x) {
    for (int i = 0; i < ag_tapes.count && x && x->refs == 1; i++)
        if (ag_tapes.nodes[i].out == x) return true;
    return false;
}

/* ---- checks ---------------------------------------------------------------------------------- */

bool ag_check_present(const char *op, const Tensor *x) {
    if (x && x->refs == 0) return tensor_check_readable(op, x);
    return tensor_check_given(op, "tensor", x) && !tensor_pending();
}

bool ag_check_open(const char *op) {
    return ag_tapes.open > 0 ||
           tensor_fail("%s: no tape is open: call tape_begin or tape_begin_no_grad first", op);
}

bool ag_check_named(const char *op, const char *what, const Tensor *x) {
    return tensor_check_argument(op, what, x) && !tensor_pending() && ag_check_open(op);
}

bool ag_check_ready(const char *op, const Tensor *x) { return ag_check_named(op, "the tensor", x); }
