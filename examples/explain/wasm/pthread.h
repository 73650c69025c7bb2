/* pthread.h - for WebAssembly, where wasi-libc has no threads: the functions that tensor/ needs, in
 * a program that has one thread. */
#ifndef TAPEHEAD_EXAMPLES_WASM_PTHREAD_H
#define TAPEHEAD_EXAMPLES_WASM_PTHREAD_H

#include <stddef.h>

typedef int pthread_once_t;
#define PTHREAD_ONCE_INIT 0

static inline int pthread_once(pthread_once_t *once, void (*initialize)(void)) {
    if (!*once) initialize();
    *once = 1;
    return 0;
}

/* There is no fork. */
static inline int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
    (void)before;
    (void)parent;
    (void)child;
    return 0;
}

/* When a thread ends, `leave` gets its value of a key. This thread never ends, so no value is
 * kept. */
typedef int pthread_key_t;

static inline int pthread_key_create(pthread_key_t *key, void (*leave)(void *)) {
    (void)leave;
    *key = 0;
    return 0;
}

static inline void *pthread_getspecific(pthread_key_t key) {
    (void)key;
    return NULL;
}

static inline int pthread_setspecific(pthread_key_t key, const void *value) {
    (void)key;
    (void)value;
    return 0;
}

#endif
