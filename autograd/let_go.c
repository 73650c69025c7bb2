/* let_go.c - results whose elements the program will not read again. */
#include "open_tapes.h"

/* A tape that keeps gradients also keeps values. */
static bool keeps_all(void) {
    const int t = ag_recording_tape();
    return t >= 0 && ag_tapes.tape[t].keep_grads;
}

Tensor *ag_let_go(Tensor *x) {
    if (!ag_check_present("let_go", x)) return NULL;
    if (!keeps_all()) tensor_let_go(x);
    return x;
}

int tape_mark(void) { return ag_tapes.count; }

/* For each reference that the nodes from first to the end hold, adds `change` to the reference
 * count of the tensor. */
static void count_references(int first, int change) {
    for (int i = first; i < ag_tapes.count; i++) {
        const Node *n = &ag_tapes.nodes[i];
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
    for (int i = mark; i < ag_tapes.count; i++) {
        Tensor *x = ag_tapes.nodes[i].out;
        if (x != y && x->refs == 0) tensor_let_go(x);
    }
    count_references(mark, +1);
    return y;
}
