/* threads.h - how many threads share the work: threads.c finds the number, pool.c uses it. */
#ifndef TAPEHEAD_TENSOR_THREADS_H
#define TAPEHEAD_TENSOR_THREADS_H

#include "../tensor.h"

enum { THREADS_MAX = 64 };

static inline int at_most(int most, int64_t n) { return n < most ? (int)n : most; }

/* The cores that this process may use, or as many as its quota of time is worth. root: "", or a
 * folder in which a test has /proc and /sys. */
int tensor_cores(const char *root);

#endif
