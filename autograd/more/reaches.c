/* reaches.c - would backpropagation from y add to x's gradient? */
#include "../open_tapes.h"

/* While ag_reaches runs, a tensor that would get a gradient is its own grad_buffer. */
static bool is_marked(const Tensor *x) { return x->grad_buffer == x; }

static void unmark(Tensor *x) {
    if (is_marked(x)) x->grad_buffer = NULL;
}

/* The walk of ag_backward_from without arithmetic: an op marks the inputs of a marked result. */
static void mark_inputs(const Node *n) {
    if (!is_marked(n->out) || !n->out->grad_fn || !n->op->backward) return;
    for (int k = 0; k < n->n_in; k++)
        if (ag_needs(n, k)) n->in[k]->grad_buffer = n->in[k];
}

bool ag_reaches(Tensor *y, Tensor *x) {
    if (!ag_check_present("reaches", y) || !ag_check_present("reaches", x)) return false;
    if (ag_recording_tape() < 0)
        return tensor_fail("reaches: no recording tape is open: call tape_begin first");
    int lines = 0;
    while (ag_node(lines)) lines++;
    y->grad_buffer = y;
    for (int i = lines - 1; i >= 0; i--) mark_inputs(ag_node(i));
    const bool reached = x->requires_grad && is_marked(x);
    for (int i = 0; i < lines; i++) {
        const Node *n = ag_node(i);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k]) unmark(n->in[k]);
        unmark(n->out);
    }
    unmark(y);
    return reached;
}
