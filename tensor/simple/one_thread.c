/* one_thread.c - the core by itself: all parts of a work on the calling thread. With tensor/fast/:
 * fast/pool.c. */
#include "../parts.h"

int tensor_workers_for(double operations) {
    (void)operations;
    return 1;
}

void tensor_work_in_parts(int workers, int64_t n, PartOfWork work, void *context) {
    (void)workers;
    if (n > 0) work(0, 0, n, context);
}
