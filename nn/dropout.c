/* dropout.c - zeroes elements in training mode, and returns x in evaluation mode. */
#include "module.h"

static void print_dropout(const void *module, FILE *file) {
    fprintf(file, "p=");
    nn_print_float(((const Dropout *)module)->p, file);
    fprintf(file, ", inplace=False");
}

static const ModuleClass dropout_class = {"Dropout", sizeof(Dropout), print_dropout, NULL};

Dropout *nn_dropout_new(double p) {
    if (!(p >= 0 && p <= 1)) /* NaN is refused too */
        return tensor_fail("dropout: p is %g: a probability lies in [0, 1]", p);
    Dropout *dropout = nn_module_new(&dropout_class);
    if (!dropout) return NULL;
    dropout->p = p;
    return nn_module_done(dropout);
}

Tensor *nn_dropout_forward(Dropout *dropout, Tensor *x) {
    if (!nn_forward_begins("dropout", dropout)) return NULL;
    if (!x) tensor_fail("dropout: x is NULL");
    const bool drops = dropout->module.training && dropout->p > 0;
    return nn_forward_done(dropout, drops ? ag_dropout(x, dropout->p) : x);
}
