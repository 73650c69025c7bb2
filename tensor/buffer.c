/* buffer.c - an array of bytes that grows: the header of a file, before its length is known.
 *
 * libc's open_memstream does the same, but glibc's has a bug: when memory runs out in fclose,
 * fclose returns 0 and there is no text. */
#include "file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Makes the capacity at least size + n. It grows by half or more, so that appending stays cheap. */
static bool reserve(Buffer *buffer, size_t n) {
    if (buffer->failed) return false;
    if (n <= buffer->capacity - buffer->size) return true;
    const size_t needed = buffer->size + n, capacity = needed + needed / 2;
    char *longer =
        capacity > needed / 2 ? realloc(buffer->bytes, capacity) : NULL; /* no overflow */
    buffer->failed = !longer;
    if (!longer) return false;
    buffer->bytes = longer;
    buffer->capacity = capacity;
    return true;
}

void tensor_buffer_append(Buffer *buffer, const void *bytes, size_t n) {
    if (!reserve(buffer, n)) return;
    memcpy(buffer->bytes + buffer->size, bytes, n);
    buffer->size += n;
}

void tensor_buffer_print(Buffer *buffer, const char *format, ...) {
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n < 0 || n >= (int)sizeof text) buffer->failed = true;
    else tensor_buffer_append(buffer, text, (size_t)n);
}
