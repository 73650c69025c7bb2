/* docs.h - shared by the parts of `make docs`: docs.c makes the tables, functions.c the page. */
#ifndef TESTS_TOOLS_DOCS_H
#define TESTS_TOOLS_DOCS_H

#include "../../autograd/op.h"

#include <stdio.h>

__attribute__((format(printf, 1, 2), noreturn)) void docs_die(const char *format, ...);
char *docs_read(const char *path); /* a whole file */
/* The texts of an op or of a function of ops, "ag_softmax"; NULL for another function. */
const OpText *docs_text(const char *function);

/* Writes the page of all public functions. */
void functions_print(FILE *out);

#endif
