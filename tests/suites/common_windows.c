/* common_windows.c - what common_windows.h declares, and what inspect wants of common_program.c. */
#include "common_program.h"

#include <string.h>

bool runs_on_windows(const char *test) {
    static const char *const left_out[] = {"memory_grows_with_the_length_alone",
                                           "scores_are_let_go", "dropped_weights_are_let_go",
                                           "the_environment_chooses_the_table"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strcmp(test, left_out[i]) == 0) return false;
    return true;
}

void *aligned_alloc(size_t alignment, size_t size) { return _aligned_malloc(size, alignment); }

#undef fclose
static struct {
    FILE *file;
    char **text;
    size_t *size;
} stream; /* one at a time */

FILE *open_memstream(char **text, size_t *size) {
    stream.file = tmpfile();
    stream.text = text;
    stream.size = size;
    return stream.file;
}

int close_stream(FILE *file) {
    if (file && file == stream.file) {
        const size_t size = (size_t)ftell(file);
        char *text = calloc(size + 1, 1);
        rewind(file);
        *stream.size = fread(text, 1, size, file);
        *stream.text = text;
        stream.file = NULL;
    }
    return fclose(file);
}

bool has_full_disk(void) { return false; }
