/* number.c - texts that are printed, and the numbers in them. printf writes "0,5" if the program's
 * locale says so; the library writes "0.5" in every locale. setlocale would change the locale of
 * all threads, so the point is put into the text that vsnprintf has printed. vsnprintf also cuts a
 * text that is too long inside a character; here it ends before that character. */
#include "internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The first byte of a character of UTF-8 says how many bytes it has, two to four; 10xxxxxx is a
 * byte after the first. */
size_t tensor_whole_characters(const char *text, size_t n) {
    for (size_t bytes = 1; bytes <= 3 && bytes <= n; bytes++) {
        const unsigned char c = (unsigned char)text[n - bytes];
        const size_t length = c < 0xc0 ? 0 : 2 + (c >= 0xe0) + (c >= 0xf0);
        if (length > bytes) return n - bytes;
        if (c < 0x80 || c >= 0xc0) return n;
    }
    return n;
}

/* The first conversion of a double in a format, or NULL; *end becomes the character after it. */
static const char *find_double(const char *format, const char **end) {
    for (const char *at = strchr(format, '%'); at; at = strchr(*end, '%')) {
        const size_t flags = strspn(at + 1, "-+ #0123456789.*hlLjzt"); /* and width, precision */
        *end = at + 1 + flags + (at[1 + flags] != '\0');
        if (strchr("aAeEfFgG", at[1 + flags]) && at[1 + flags]) return at;
    }
    return NULL;
}

/* How many bytes the format prints up to `end`. */
static int printed_until(const char *format, const char *end, va_list arguments) {
    char start[1024];
    va_list copy;
    if ((size_t)(end - format) >= sizeof start) return -1;
    memcpy(start, format, (size_t)(end - format));
    start[end - format] = '\0';
    va_copy(copy, arguments);
    const int n = vsnprintf(NULL, 0, start, copy);
    va_end(copy);
    return n;
}

/* vsnprintf has printed each double somewhere. This place is found by printing the format up to the
 * conversion, without and with it. A comma anywhere else, as in "(2, 3)", stays. */
int tensor_vsnprintf(char *text, size_t size, const char *format, va_list arguments) {
    char half[16]; /* "0.5", or with another point, which may have several bytes */
    const char *end;
    const char *at = find_double(format, &end);
    va_list copy;
    va_copy(copy, arguments);
    int length = vsnprintf(text, size, format, copy);
    va_end(copy);
    if (length >= 0 && size > 0 && (size_t)length >= size)
        text[tensor_whole_characters(text, size - 1)] = '\0';
    if (!at || snprintf(half, sizeof half, "%.1f", 0.5) < 3 || half[1] == '.') return length;
    const int width = (int)strlen(half) - 2;
    half[1 + width] = '\0';
    for (int removed = 0; at; at = find_double(end, &end)) {
        const int first = printed_until(format, at, arguments) - removed;
        const int last = printed_until(format, end, arguments) - removed;
        if (first < 0 || last < first || (size_t)last >= size) break;
        char *point = strstr(text + first, half + 1);
        if (!point || point >= text + last) continue; /* 1e+06, inf */
        *point = '.';
        memmove(point + 1, point + width, strlen(point + width) + 1);
        removed += width - 1;
        length -= width - 1;
    }
    return length;
}

int tensor_snprintf(char *text, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = tensor_vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return length;
}

/* If n digits are enough, so are n + 1, which are at least as close to x: a binary search. */
int tensor_fewest_digits(double x, DType dtype) {
    char text[32]; /* with the point of the locale, which strtod expects */
    int least = 1, most = dtype == F32 ? 9 : 17;
    while (least < most) {
        const int n = (least + most) / 2;
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        if (dtype == F32 ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x) most = n;
        else least = n + 1;
    }
    return least;
}
