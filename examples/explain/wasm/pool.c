/* pool.c - for WebAssembly, which has one thread here, in place of tensor/fast/pool.c: what
 * tensor/simple/one_thread.c leaves open. */
#include "../../../tensor/tensor.h"

/* Tests set these variables, so that threads share small tensors, too; here the variables change
 * nothing. */
double worth_a_thread;
bool threads_take_turns;

void tensor_set_num_threads(int n) {
    if (n < 1) tensor_fail("set_num_threads: %d: there must be at least 1 thread", n);
}

int tensor_num_threads(void) { return 1; }
