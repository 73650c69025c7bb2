/* print_module.c - a model as text, as Python's print(module) writes it. */
#include "module.h"

#include <stdlib.h>
#include <string.h>

/* As PyTorch's Module.__repr__. A module without children is one line, Kind(settings). Otherwise
 * the settings and each child are lines, indented by two columns. */
static void print_tree(const Module *module, FILE *file, int indent) {
    bool is_leaf = !module->children;
    fprintf(file, "%s(", module->kind->name);
    if (module->kind->print_settings) {
        if (!is_leaf) fprintf(file, "\n%*s", indent + 2, "");
        module->kind->print_settings(module, file);
    }
    for (const Module *child = module->children; child; child = child->next) {
        fprintf(file, "\n%*s(%s): ", indent + 2, "", child->name);
        print_tree(child, file, indent + 2);
    }
    if (!is_leaf) fprintf(file, "\n%*s", indent, "");
    fputc(')', file);
}

bool nn_print(void *module, FILE *file) {
    const Module *m = nn_check_given(module, "print");
    if (!file) tensor_fail("print: the file is NULL");
    if (!m || !file) return false;
    print_tree(m, file, 0);
    fputc('\n', file);
    return !ferror(file) || tensor_fail("print: the file could not be written");
}

/* Prints the fewest digits that are read back as x; with an exponent below 1e-4 and from 1e16
 * on. */
void nn_print_float(double x, FILE *file) {
    char text[32];
    const int digits = tensor_fewest_digits(x, F64) - 1; /* after the point */
    snprintf(text, sizeof text, "%.*e", digits, x);
    const char *e = strchr(text, 'e');
    const int exponent = e ? atoi(e + 1) : 16; /* no e: inf, nan */
    const bool short_exponent = exponent >= -4 && exponent < 16;
    const int decimals = digits > exponent ? digits - exponent : 1;
    if (short_exponent) tensor_snprintf(text, sizeof text, "%.*f", decimals, x);
    else tensor_snprintf(text, sizeof text, "%.*e", digits, x);
    fputs(text, file);
}
