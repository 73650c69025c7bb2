/* plural.c - the s of a noun after a number: see plural.h. */
#include "plural.h"

const char *plural(int64_t n) { return n == 1 ? "" : "s"; }
