/* pthread.h - for suites with tests that start threads. These suites can be compiled, but no thread
 * can be started. */
#ifndef TESTS_LIVE_PTHREAD_H
#define TESTS_LIVE_PTHREAD_H

#include "../../examples/explain/wasm/pthread.h"

#include <errno.h>

typedef int pthread_t;
typedef int pthread_attr_t;

static inline int pthread_attr_init(pthread_attr_t *attributes) {
    *attributes = 0;
    return 0;
}

static inline int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size) {
    (void)attributes;
    (void)size;
    return 0;
}

static inline int pthread_attr_destroy(pthread_attr_t *attributes) {
    (void)attributes;
    return 0;
}

static inline int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                 void *(*run)(void *), void *argument) {
    *thread = 0;
    (void)attributes;
    (void)run;
    (void)argument;
    return EAGAIN;
}

static inline int pthread_join(pthread_t thread, void **result) {
    (void)thread;
    (void)result;
    return ESRCH;
}

#endif
