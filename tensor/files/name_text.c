/* name_text.c - names of files and of their entries, for error messages. */
#include "../tensor.h"

#include <string.h>

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
