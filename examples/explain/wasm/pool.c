/* pool.c - for WebAssembly, which has one thread here, in place of tensor/fast/pool.c: the
 * caller does all the work. */
#include "../../../tensor/parts.h"

#include "../../../tensor/tensor.h"

/* Tests set these variables, so that threads share small tensors, too; here the variables change
 * nothing. */
double worth_a_thread;
bool threads_take_turns;

void tensor_set_num_threads(int n) {
    if (n < 1) tensor_fail("set_num_threads: %d: there must be at least 1 thread", n);
}

int tensor_num_threads(void) { return 1; }

int tensor_workers_for(double operations) {
    (void)operations;
    return 1;
}

void tensor_work_in_parts(int workers, int64_t n, PartOfWork work, void *context) {
    (void)workers;
    if (n > 0) work(0, 0, n, context);
}
