/* name_text.c - names of files and of their entries, for error messages. */
#include "file.h"

#include <string.h>

const char *tensor_name_text(const char *name) {
    enum { LENGTH = 60 };
    static TENSOR_THREAD_LOCAL char ring[4][LENGTH + 4];
    static TENSOR_THREAD_LOCAL unsigned next;
    char *out = ring[next++ % 4];
    size_t kept = 0;
    while (name[kept]) {
        const size_t bytes = tensor_utf8_bytes(name + kept, 4), n = bytes ? bytes : 1;
        if (kept + n > LENGTH) break;
        memcpy(out + kept, name + kept, n);
        const unsigned char first = (unsigned char)name[kept];
        if (bytes == 0 || first < ' ' || first == 0x7f) out[kept] = '?';
        kept += n;
    }
    strcpy(out + kept, name[kept] ? "..." : "");
    return out;
}
