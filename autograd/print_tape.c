/* print_tape.c - the tape as text, a line for each node. */
#include "open_tapes.h"

/* Prints the comma, then "%2 scores" for a result on the tape, else "weight (3, 2)". */
static void print_input(const Tensor *x, const char *comma, int before, FILE *file) {
    int i = before - 1;
    while (i >= 0 && ag_tapes.nodes[i].out != x) i--;
    fputs(comma, file);
    if (i >= 0) fprintf(file, "%%%d%s%s", i, x->name[0] ? " " : "", x->name);
    else fprintf(file, "%s%s%s", x->name, x->name[0] ? " " : "", tensor_shape_text(x->shape));
}

bool tape_print(FILE *file) {
    if (tensor_pending() || !tensor_check_given("tape_print", "file", file)) return false;
    if (ag_tapes.open == 0) return tensor_fail("tape_print: no tape is open");
    for (int i = ag_tapes.tape[ag_tapes.open - 1].first; i < ag_tapes.count; i++) {
        const Node *n = &ag_tapes.nodes[i];
        fprintf(file, "%%%d%s%s = %s(", i, n->out->name[0] ? " " : "", n->out->name, node_name(n));
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k]) print_input(n->in[k], k ? ", " : "", i, file);
        fprintf(file, ") %s%s\n", tensor_shape_text(n->out->shape),
                n->out->requires_grad ? " grad" : "");
    }
    if (fflush(file) == 0 && !ferror(file)) return true;
    return tensor_fail("tape_print: the file could not be written");
}
