/* submission.c - reads a student's file: see submission.h. */
#include "submission.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *submission_read(const char *path, size_t most) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = malloc(most + 1);
    const size_t n = text ? fread(text, 1, most, file) : 0;
    const bool failed = !text || ferror(file);
    fclose(file);
    if (failed) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

/* ---- is a backward empty? -------------------------------------------------------------------- */

/* The end of the comment, string or character that begins at `at`; `at` if nothing does. */
static size_t skip(const char *text, size_t at) {
    const char quote = text[at];
    if (quote == '/' && text[at + 1] == '/') return at + strcspn(text + at, "\n");
    if (quote == '/' && text[at + 1] == '*') {
        const char *end = strstr(text + at + 2, "*/");
        return end ? (size_t)(end - text) + 2 : at + strlen(text + at);
    }
    if (quote != '"' && quote != '\'') return at;
    for (at++; text[at] && text[at] != quote && text[at] != '\n'; at++)
        if (text[at] == '\\' && text[at + 1]) at++;
    return text[at] ? at + 1 : at;
}

/* Overwrites comments, strings and characters with spaces. */
static void blank(char *text) {
    for (size_t at = 0; text[at];) {
        const char first = text[at];
        const size_t end = skip(text, at);
        if (end > at) memset(text + at, ' ', end - at);
        if (end > at && first != '/') text[at] = '0'; /* a string is something in a body */
        at = end > at ? end : at + 1;
    }
}

static bool is_letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *skip_space(const char *text) { return text + strspn(text, " \t\r\n\v\f"); }

/* Just after the bracket that closes the one at text; NULL if there is none. */
static const char *closing(const char *text, char open, char close) {
    int depth = 0;
    for (; *text; text++) {
        if (*text == open) depth++;
        if (*text == close && --depth == 0) return text + 1;
    }
    return NULL;
}

/* "(void)x;" or ";": where it ends; text if there is neither. */
static const char *skip_nothing(const char *text) {
    if (*text == ';') return text + 1;
    const char *at = text;
    if (*at != '(') return text;
    at = skip_space(at + 1);
    if (strncmp(at, "void", 4) != 0) return text;
    at = skip_space(at + 4);
    if (*at != ')') return text;
    at = skip_space(at + 1);
    while (is_letter(*at)) at++;
    at = skip_space(at);
    return *at == ';' ? at + 1 : text;
}

/* The body begins at its bracket. */
static bool body_is_empty(const char *body, const char *end) {
    const char *at = skip_space(body + 1);
    while (at < end - 1) {
        const char *after = skip_nothing(at);
        if (after == at) return false;
        at = skip_space(after);
    }
    return true;
}

bool submission_is_empty(const char *text, const char *function) {
    const size_t length = strlen(function);
    int bodies = 0;
    bool empty = true;
    char *copy = malloc(strlen(text) + 1);
    if (!copy) return false;
    strcpy(copy, text);
    blank(copy);
    for (const char *at = strstr(copy, function); at; at = strstr(at + 1, function)) {
        if ((at > copy && is_letter(at[-1])) || is_letter(at[length])) continue;
        const char *open = skip_space(at + length);
        const char *close = *open == '(' ? closing(open, '(', ')') : NULL;
        const char *body = close ? skip_space(close) : "";
        const char *end = *body == '{' ? closing(body, '{', '}') : NULL;
        if (!end) continue;
        bodies++;
        if (!body_is_empty(body, end)) empty = false;
    }
    free(copy);
    return bodies > 0 && empty;
}

enum { MOST_TEXT = 1 << 20 };

SubmissionState submission_look(const char *path, const char *function) {
    struct stat status;
    if (stat(path, &status) != 0) return SUBMISSION_MISSING;
    if (!S_ISREG(status.st_mode)) return SUBMISSION_WRITTEN; /* a pipe: reading may not end */
    char *text = submission_read(path, MOST_TEXT);
    const bool empty = text && submission_is_empty(text, function);
    free(text);
    return empty ? SUBMISSION_EMPTY : SUBMISSION_WRITTEN;
}

/* ---- what the compiler says ------------------------------------------------------------------ */

static bool is_plain(char c) { return c >= ' ' && c <= '~'; }

/* A copy of `length` bytes without the folder of the first path, and without characters that are
 * not ASCII. */
static void copy_line(char *line, size_t size, const char *from, size_t length) {
    size_t start = 0, n = 0;
    for (size_t i = 0; i < length && from[i] != ' '; i++)
        if (from[i] == '/' || from[i] == '\\') start = i + 1;
    for (size_t i = start; i < length && n + 1 < size; i++)
        if (is_plain(from[i])) line[n++] = from[i];
        else if (from[i] != '\r') line[n++] = '?'; /* lines end with \r\n on Windows */
    line[n] = '\0';
}

/* Does text, of this length, contain part? */
static const char *find(const char *text, size_t length, const char *part) {
    const size_t n = strlen(part);
    for (size_t i = 0; i + n <= length; i++)
        if (memcmp(text + i, part, n) == 0) return text + i;
    return NULL;
}

/* The first line with part in it; NULL if there is none. */
static const char *line_with(const char *messages, const char *part, size_t *length) {
    while (*messages) {
        *length = strcspn(messages, "\n");
        if (find(messages, *length, part)) return messages;
        messages += *length;
        if (*messages) messages++;
    }
    return NULL;
}

void submission_error(const char *messages, const char *function, char *line, size_t size) {
    size_t length = 0;
    const char *error = line_with(messages, "error: ", &length);
    const char *linker = line_with(messages, "undefined reference", &length);
    if (linker && find(linker, length, function)) {
        snprintf(line, size, "there is no function %s in it", function);
        return;
    }
    if (!linker) linker = line_with(messages, "multiple definition", &length);
    if (linker) error = linker; /* gcc's own line says only "error: ld returned 1" */
    if (!error) error = line_with(messages, "ndefined", &length); /* macOS: Undefined symbols */
    if (error) error = line_with(error, "", &length);
    const char *part = error ? find(error, length, "undefined reference") : NULL;
    if (part) copy_line(line, size, part, length - (size_t)(part - error));
    else if (error) copy_line(line, size, error, length);
    else snprintf(line, size, "the compiler gives no reason");
}

void submission_warning(const char *messages, char *line, size_t size) {
    size_t length = 0;
    const char *warning = line_with(messages, "warning: ", &length);
    *line = '\0';
    if (warning) copy_line(line, size, warning, length);
}
