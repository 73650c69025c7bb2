/* target_tape.c - for libFuzzer: the tape that build/explain --tape reads.
 *
 * An input is a file. If it is not JSON or not a tape, there must be one printable error message.
 * If it is a tape, all of it must be shown without a fault. */
#include "common.h"

#include "../../examples/explain/page/check.h"
#include "../../examples/explain/steps/text.h"

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
