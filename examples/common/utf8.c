/* utf8.c - reads the characters of any bytes: see utf8.h. */
#include "utf8.h"

#include <stdbool.h>

/* A first byte with n leading ones begins a character of n bytes, with six bits in each byte that
 * follows. 0 for a byte that begins no character. */
static int length_of(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xC0) return 0;
    return 2 + (first >= 0xE0) + (first >= 0xF0);
}

/* The Unicode number of the first character, and its bytes; 0 bytes if there is no character. Not
 * allowed are a character with more bytes than it needs, and a surrogate. */
static uint32_t read_character(const char *text, int *bytes) {
    static const uint32_t least[] = {UINT32_MAX, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    int length = length_of(s[0]);
    uint32_t c = length > 1 ? s[0] & (0x7Fu >> length) : s[0];
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) length = 0;
        else c = c << 6 | (s[i] & 0x3F);
    }
    const bool none =
        c < least[length] || s[0] > 0xF4 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000);
    *bytes = none ? 0 : length;
    return c;
}

int utf8_bytes(const char *text) {
    int bytes;
    read_character(text, &bytes);
    return bytes;
}

/* U+FFFE and U+FFFF are no characters of a text. */
uint32_t utf8_next(const char **text) {
    int bytes;
    if (!**text) return 0;
    const uint32_t c = read_character(*text, &bytes);
    const bool shown = c >= 0x20 && (c < 0x7F || c > 0x9F) && c != 0xFFFE && c != 0xFFFF;
    *text += bytes ? bytes : 1;
    return bytes && shown ? c : '?';
}

int utf8_length(const char *text) {
    int n = 0;
    while (utf8_next(&text)) n++;
    return n;
}

int utf8_columns(uint32_t c) {
    bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xD7A4) ||
                (c >= 0xF900 && c < 0xFB00) || (c >= 0xFE30 && c < 0xFF61) || c >= 0x1F300;
    return wide ? 2 : 1;
}

int utf8_text_columns(const char *text) {
    int columns = 0;
    for (uint32_t c = utf8_next(&text); c != 0; c = utf8_next(&text)) columns += utf8_columns(c);
    return columns;
}
