/* without_fast.c - what the suites and the notebook call of tensor/fast/, for make CORE=1, where it
 * is not there: one thread, no cache, and the plain kernels. */
#include "../../tensor/more/more_kernels.h"

double worth_a_thread;
bool threads_take_turns;

void tensor_set_num_threads(int n) {
    if (n < 1) tensor_fail("set_num_threads: %d: there must be at least 1 thread", n);
}

int tensor_num_threads(void) { return 1; }

void tensor_empty_cache(void) {}

const MoreKernels *tensor_more_kernels(void) { return &tensor_more_kernels_plain; }
