/* plural.h - the s of a noun after a number. */
#ifndef TAPEHEAD_EXAMPLES_PLURAL_H
#define TAPEHEAD_EXAMPLES_PLURAL_H

#include <stdint.h>

const char *plural(int64_t n); /* "" for 1, else "s" */

#endif
