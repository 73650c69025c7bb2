/* dropout.c - zeroes elements while a model trains, and does nothing while it is used. */
#include "nn.h"

#include <stdlib.h>
#include <string.h>

/* p as Python writes a float: the fewest digits that read back as p. */
static void print_dropout(const void *module, FILE *file) {
    double p = ((const Dropout *)module)->p;
    char text[32];
    int digits = 1;
    do snprintf(text, sizeof text, "%.*g", digits, p);
    while (strtod(text, NULL) != p && digits++ < 17);
    fprintf(file, "p=%s%s, inplace=False", text, strpbrk(text, ".e") ? "" : ".0");
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
    if (!dropout || !x) return tensor_fail("dropout: %s is NULL", dropout ? "x" : "the module");
    if (tensor_error()) return NULL;
    return dropout->module.training && dropout->p > 0 ? ag_dropout(x, dropout->p) : x;
}
