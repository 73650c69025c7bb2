/* parts.h - work that is cut into parts, which threads may share. simple/one_thread.c does all
 * parts on the calling thread, fast/pool.c shares them. */
#ifndef TAPEHEAD_TENSOR_PARTS_H
#define TAPEHEAD_TENSOR_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* Does one part of the work: the elements, rows or matrices from .. to - 1. worker is the number of
 * the thread, from 0, the calling thread; a worker does one call at a time, so it can have a
 * workspace of its own, which the caller allocates. No digit may depend on where the whole is cut,
 * or on worker. The function makes no tensor, takes no memory of tensor_cache_alloc and sets no
 * error: tensors, memory and errors belong to the calling thread. */
typedef void (*PartOfWork)(int worker, int64_t from, int64_t to, void *context);

#ifdef TEST_HOOKS
/* The tests are linked with a pool.c of their own that has these variables; the library has none.
 * They make worth_a_thread small, so that small tensors are cut as large ones are, and set
 * threads_take_turns, so that each thread does some of the work, even if there is little. */
extern double worth_a_thread;
extern bool threads_take_turns;
#endif
int tensor_workers_for(double operations); /* how many threads are worth using, at least 1 */

/* Calls work for parts of 0 .. n - 1, on at most `workers` threads, in any order; returns when all
 * parts are done. With one worker, work is called once, on the calling thread. */
void tensor_work_in_parts(int workers, int64_t n, PartOfWork work, void *context);

#endif
