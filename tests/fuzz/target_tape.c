/* target_tape.c - for libFuzzer: the tape that build/explain --tape reads.
 *
 * An input is a file. It is no JSON, or no tape, and there is one printable sentence; or it is a
 * tape, and then all of it can be shown. */
#include "common.h"

#include "../../examples/explain/check.h"
#include "../../examples/explain/text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    char *text = malloc(size + 16);
    if (!text) return 0;
    snprintf(text, size + 16, "{\"tape\":%.*s}", (int)size, (const char *)bytes);
    Json *lesson = json_read(text);
    const bool shown = lesson && check_tape(json_get(lesson, "tape"));
    if (shown) text_show(lesson);
    said(shown);
    free(lesson);
    free(text);
    return 0;
}
