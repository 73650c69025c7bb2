/* buffer.c - bytes in memory that grow: the header of a file, before its length is known.
 *
 * libc's open_memstream does the same but cannot be trusted: when fclose finds no memory for the
 * last growth, glibc's returns 0 and leaves no text. */
#include "file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Room for n bytes more, and for half as many again as there are, so that appending stays cheap. */
static bool make_room(Buffer *buffer, size_t n) {
    if (buffer->failed) return false;
    if (n <= buffer->room - buffer->size) return true;
    const size_t needed = buffer->size + n, room = needed + needed / 2;
    char *longer = room > needed / 2 ? realloc(buffer->bytes, room) : NULL; /* no overflow */
    buffer->failed = !longer;
    if (!longer) return false;
    buffer->bytes = longer;
    buffer->room = room;
    return true;
}

void tensor_buffer_append(Buffer *buffer, const void *bytes, size_t n) {
    if (!make_room(buffer, n)) return;
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
