/* put_text.c - a text that is put together: see put_text.h. */
#include "put_text.h"

#include <stdarg.h>
#include <string.h>

void put_text(char *text, size_t size, const char *format, ...) {
    const size_t n = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + n, size - n, format, arguments);
    va_end(arguments);
}
