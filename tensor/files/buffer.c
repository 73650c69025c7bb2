/* buffer.c - an array of bytes that grows: a text, such as the header of a file, before its length
 * is known.
 *
 * libc's open_memstream does the same, but glibc's has a bug: when memory runs out in fclose,
 * fclose returns 0 and there is no text. */
#include "file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Makes the capacity at least size + n. The buffer grows by half or more, so that appending stays
 * cheap. */
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
    const int n = tensor_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (n < 0 || n >= (int)sizeof text) buffer->failed = true;
    else tensor_buffer_append(buffer, text, (size_t)n);
}

/* The bytes of the characters before the next one that needs an escape. */
static size_t plain_bytes(const char *text) {
    size_t n = 0, bytes = 1;
    while (bytes > 0 && (unsigned char)text[n] >= ' ' && text[n] != '"' && text[n] != '\\') {
        bytes = tensor_utf8_bytes(text + n, 4);
        n += bytes;
    }
    return n;
}

/* A byte that is no UTF-8 becomes U+FFFD, the replacement character: JSON holds nothing else. */
void tensor_buffer_print_string(Buffer *out, const char *before, const char *text) {
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    tensor_buffer_print(out, "%s\"", before);
    while (text && *text) {
        const size_t n = plain_bytes(text);
        tensor_buffer_append(out, text, n);
        text += n;
        if (!*text) break;
        const unsigned code = (unsigned char)*text < ' ' ? (unsigned)*text : 0xfffd;
        const char *escape = strchr(plain, *text);
        if (escape) tensor_buffer_print(out, "\\%c", letter[escape - plain]);
        else tensor_buffer_print(out, "\\u%04x", code);
        text++;
    }
    tensor_buffer_print(out, "\"");
}

void tensor_buffer_print_number(Buffer *out, const char *before, double x, DType dtype) {
    if (isnan(x)) tensor_buffer_print(out, "%s\"NaN\"", before);
    else if (isinf(x)) tensor_buffer_print(out, "%s\"%sInfinity\"", before, x < 0 ? "-" : "");
    else tensor_buffer_print(out, "%s%.*g", before, tensor_fewest_digits(x, dtype), x);
}

void tensor_buffer_print_shape(Buffer *out, Shape shape) {
    tensor_buffer_append(out, "[", 1);
    for (int d = 0; d < shape.ndim; d++)
        tensor_buffer_print(out, d ? ",%lld" : "%lld", (long long)shape.dim[d]);
    tensor_buffer_append(out, "]", 1);
}
