/* apply.c - ag_apply: every op goes through it. It checks the inputs, runs the op's forward and
 * records a node. */
#include "open_tapes.h"

#include <string.h>

/* The types of an input, for an error message. */
static const char *types_text(InputType type) {
    if (type == FLOAT) return "float32 or float64";
    if (type == NUMBER) return "float32, float64 or int64";
    return tensor_dtype_name(type == INT64 ? I64 : BOOL);
}

/* Checks that the op takes the type of input i, and that the first input with the same set of types
 * has this type. */
static bool check_type(const Op *op, int i, Tensor *const *in) {
    const InputType type = input_of(op, i)->type & ANY;
    const DType is = in[i]->dtype;
    if (!(type >> is & 1))
        return tensor_fail("%s: %s is %s: it must be %s; convert it with ag_to", op->name,
                           input_of(op, i)->name, tensor_dtype_name(is), types_text(type));
    int j = 0; /* the first input with this set; what takes ANY is not compared */
    while (j < i && ((input_of(op, j)->type & SAME) != type || !in[j])) j++;
    if (in[j]->dtype == is) return true;
    return tensor_fail("%s: %s is %s and %s is %s: the types must be equal; convert one with ag_to",
                       op->name, input_of(op, j)->name, tensor_dtype_name(in[j]->dtype),
                       input_of(op, i)->name, tensor_dtype_name(is));
}

/* Checks that no error is pending, no required input is NULL, the types are right and a tape is
 * open. */
static bool check_inputs(const Op *op, int n_in, Tensor *const *in, const Attributes *at) {
    if (tensor_pending()) return false;
    for (int i = 0; i < n_in; i++)
        if (!in[i] && !(input_of(op, i)->type & OPTIONAL))
            return tensor_fail("%s: %s is NULL", op_name(op, at), input_of(op, i)->name);
    for (int i = 0; i < n_in; i++)
        if (in[i] && (!check_type(op, i, in) ||
                      !tensor_check_argument(op_name(op, at), input_of(op, i)->name, in[i])))
            return false;
    return ag_check_open(op_name(op, at));
}

/* Was x, a result of the tape, written over? A view of a leaf shows what the leaf is now, so such a
 * write is one to the leaf. */
static bool was_written_over(const Tensor *x) {
    while (x->grad_fn) {
        const Node *n = &ag_tapes.nodes[x->line];
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
    const uint32_t tape = ag_tapes.tape[ag_tapes.open - 1].number;
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
    if (!n->op->backward || !ag_tapes.tape[ag_tapes.open - 1].records) return false;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        required = required || n->in[i]->requires_grad;
        check_history(node_name(n), input_of(n->op, i)->name, n->in[i]);
    }
    return required;
}

/* Retains the inputs and records what they are now, for the backward pass and for tape_print. */
static bool retain_inputs(Node *n, Tensor *const *in) {
    const bool many = n->n_in > OP_INPUTS;
    n->many = many ? tensor_cache_alloc(n->n_in * AG_MANY_SIZE) : NULL;
    Tensor **own = many ? n->many : n->few;
    if (!own) return false;
    bool *needs = many ? (bool *)(own + n->n_in) : n->few_needs;
    n->in = own;
    n->needs = needs;
    for (int i = 0; i < n->n_in; i++) {
        own[i] = tensor_retain(in[i]);
        needs[i] = in[i] && in[i]->requires_grad;
        if (in[i] && i < OP_INPUTS) n->version[i] = in[i]->storage->version;
    }
    return true;
}

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

Tensor *ag_apply(const Op *op, int n_in, Tensor *const *in, const Attributes *at) {
    if (!check_inputs(op, n_in, in, at) || !ag_reserve_node()) return NULL;
    const bool records = ag_tapes.tape[ag_tapes.open - 1].records;
    Node *n = &ag_tapes.nodes[ag_tapes.count]; /* it does not move during forward: ag_run_apart */
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
        ag_release_saved(n);
        tensor_release(n->out);
        return NULL;
    }
    const bool grad = requires_grad && dtype_is_float(n->out->dtype);
    n->out->requires_grad = grad;
    /* forward has set grad_fn if PyTorch's name depends on the inputs */
    if (grad && !n->out->grad_fn) n->out->grad_fn = op->grad_fn ? op->grad_fn : node_name(n);
    if (!grad) {
        n->out->grad_fn = NULL;
        ag_release_saved(n);
    }
    n->version[OP_INPUTS] = n->out->storage->version;
    n->out->line = ag_tapes.count;
    n->reads = grad ? reads_of(n) : 0;
    ag_hold_bytes(n, +1);
    ag_tapes.count++;
    return n->out;
}
