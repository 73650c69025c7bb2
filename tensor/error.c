/* error.c - one error message per thread. Only tensor_fail sets an error. */
#include "internal.h"

#include <string.h>

/* A fixed buffer: reporting that memory has run out must not need memory. */
static TENSOR_THREAD_LOCAL char message[1024];
static TENSOR_THREAD_LOCAL bool pending;

const char *tensor_error(void) { return pending ? message : NULL; }

void tensor_clear_error(void) { pending = false; }

bool tensor_pending(void) { return pending; }

void *tensor_vfail(const char *format, va_list arguments) {
    if (pending) return NULL; /* the first error is the cause; later errors are only its effects */
    pending = true;
    char text[sizeof message]; /* an argument may be the previous message, which was cleared */
    tensor_vsnprintf(text, sizeof text, format, arguments);
    strcpy(message, text);
    return NULL;
}

void *tensor_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tensor_vfail(format, arguments);
    va_end(arguments);
    return NULL;
}

bool tensor_check_given(const char *function, const char *what, const void *argument) {
    return argument || tensor_fail("%s: the %s is NULL", function, what);
}
