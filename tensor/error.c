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

const char *tensor_name_text(const char *name) {
    enum { LENGTH = 60 };
    static TENSOR_THREAD_LOCAL char ring[4][LENGTH + 4];
    static TENSOR_THREAD_LOCAL unsigned next;
    char *out = ring[next++ % 4];
    size_t n = strlen(name), kept = n > LENGTH ? LENGTH : n;
    /* Cut between characters: a byte 10xxxxxx continues a character. */
    while (kept < n && kept > 0 && ((unsigned char)name[kept] & 0xc0) == 0x80) kept--;
    memcpy(out, name, kept);
    for (size_t i = 0; i < kept; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 0x7f) out[i] = '?';
    strcpy(out + kept, n > kept ? "..." : "");
    return out;
}
