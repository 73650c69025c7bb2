/* target_submissions.c - for libFuzzer: what the marker of the exercises reads.
 *
 * An input is a name, a NUL and a text: a C file, whose backward may be empty, or what a compiler
 * says. */
#include "common.h"

#include "../../examples/exercises/marker/submission.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 40 };

/* A line for the terminal: short enough, and of printable characters. */
static void check_line(const char *line) {
    if (strlen(line) >= LINE) fault("a line is too long");
    for (; *line; line++)
        if (*line < ' ' || *line > '~') fault("a terminal would obey a line");
}

/* Is a comment, a string or a body open at the end, so that what follows is a part of it? */
static bool can_be_open(const char *text) {
    int braces = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '{') braces++;
        if (*at == '}' && braces > 0) braces--;
    }
    return braces > 0 || strpbrk(text, "/\"'");
}

/* A second body with a statement makes it not empty. */
static void try_submission(const char *text, const char *function) {
    static char longer[1 << 16];
    const bool empty = *function && submission_is_empty(text, function);
    if (!empty || can_be_open(text) || can_be_open(function)) return;
    snprintf(longer, sizeof longer, "%s\nvoid %s(void) { x = 1; }", text, function);
    if (submission_is_empty(longer, function)) fault("a backward with a statement is empty");
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    static char copy[1 << 15];
    char line[LINE];
    if (size + 2 > sizeof copy) return 0;
    memcpy(copy, bytes, size);
    memset(copy + size, 0, 2);
    const char *name = copy;
    const char *text = copy + strlen(copy) + 1;
    if (text > copy + size) text = "";
    try_submission(text, name);
    submission_error(text, "f", line, sizeof line);
    check_line(line);
    submission_warning(text, "f", line, sizeof line);
    check_line(line);
    return 0;
}
