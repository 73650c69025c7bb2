/* submission.c - reads a student's file: see submission.h. */
#include "submission.h"

#include <ctype.h>
#include <dirent.h>
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

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

/* "double xhat[n], mean = 0, sums[2] = {0, 0};": where it ends; text if a name or an operator
 * stands behind a =. */
static const char *skip_declaration(const char *text) {
    const char *end = text + strcspn(text, ";");
    const char *at = text;
    while (at < end) {
        if (*at == '[') {
            at = closing(at, '[', ']');
            if (!at || at > end) return text;
        } else if (*at == '=') {
            at = skip_space(at + 1);
            if (!strchr("0123456789{", *at)) return text;
            at += strspn(at, *at == '{' ? "{}0123456789., \n" : "0123456789.");
        } else if (is_letter(*at) || strchr(", \t\r\n", *at)) {
            at++;
        } else {
            return text;
        }
    }
    return *end ? end + 1 : text;
}

/* What a form has around the student's code: a declaration, the head of a loop, SHOW, (void)x and
 * a return of nothing. Where it ends; text if it is none of them. */
static const char *skip_frame(const char *text) {
    if (strchr(";{}", *text)) return text + 1;
    if (begins(text, "double ") || begins(text, "int ")) return skip_declaration(text);
    const char *end = strchr(text, ';');
    if (begins(text, "return NULL;") || begins(text, "return 0;")) return end + 1;
    if (begins(text, "const int ") && end) return end + 1; /* E = heads * d */
    const char *open = text;
    while (is_letter(*open)) open++;
    open = skip_space(open);
    const char *close = *open == '(' ? closing(open, '(', ')') : NULL;
    if (!close) return text;
    if (begins(text, "SHOW")) return close;
    if (begins(text, "for")) { /* int i = 0; i < n; i++ */
        const char *set = memchr(open, '=', (size_t)(close - open));
        const bool once = set && !memchr(set + 1, '=', (size_t)(close - set - 1));
        return once ? close : text;
    }
    if (open > text || !begins(skip_space(open + 1), "void")) return text;
    close = skip_space(close);
    while (is_letter(*close)) close++;
    close = skip_space(close);
    return *close == ';' ? close + 1 : text;
}

/* From its first bracket to just after its last one. */
static bool body_is_empty(const char *body, const char *end) {
    const char *at = skip_space(body + 1);
    while (at < end - 1) {
        const char *after = skip_frame(at);
        if (after == at) return false;
        at = skip_space(after);
    }
    return true;
}

/* The next definition of the function in a text without comments, from `at` on; false if there is
 * none. One without a last bracket ends with the text. */
static bool next_definition(const char *blanked, size_t at, const char *function,
                            Definition *found) {
    const size_t length = strlen(function);
    for (const char *name = strstr(blanked + at, function); name;
         name = strstr(name + 1, function)) {
        if ((name > blanked && is_letter(name[-1])) || is_letter(name[length])) continue;
        const char *open = skip_space(name + length);
        const char *close = *open == '(' ? closing(open, '(', ')') : NULL;
        const char *body = close ? skip_space(close) : "";
        if (*body != '{') continue;
        const char *end = closing(body, '{', '}');
        while (end && *skip_space(end) == '}') end = skip_space(end) + 1; /* one too many */
        const char *begin = name;
        while (begin > blanked && begin[-1] != '\n') begin--;
        *found = (Definition){(size_t)(begin - blanked), (size_t)(body - blanked),
                              end ? (size_t)(end - blanked) : strlen(blanked), end};
        return true;
    }
    return false;
}

static char *without_comments(const char *text) {
    char *copy = strdup(text);
    if (copy) blank(copy);
    return copy;
}

bool submission_definition(const char *text, size_t at, const char *function, Definition *found) {
    char *blanked = without_comments(text);
    const bool is_there = blanked && next_definition(blanked, at, function, found);
    free(blanked);
    return is_there;
}

bool submission_is_empty(const char *text, const char *function) {
    Definition d = {.end = 0};
    int bodies = 0;
    bool empty = true;
    char *blanked = without_comments(text);
    while (blanked && next_definition(blanked, d.end, function, &d)) {
        if (!d.whole) continue;
        bodies++;
        if (!body_is_empty(blanked + d.open, blanked + d.end)) empty = false;
    }
    free(blanked);
    return bodies > 0 && empty;
}

bool submission_is_written(const char *path, const char *function) {
    char *text = submission_read(path, SUBMISSION_MOST);
    const bool written = text && !submission_is_empty(text, function);
    free(text);
    return written;
}

/* ---- may a file be read? --------------------------------------------------------------------- */

static const char *kind_of(const struct stat *status) {
    if (S_ISDIR(status->st_mode)) return "a folder";
    if (S_ISFIFO(status->st_mode)) return "a pipe";
    return S_ISREG(status->st_mode) ? NULL : "a device";
}

/* Is the file, or what it is a link to, in the folder? */
static bool lies_in(const char *folder, const char *path) {
    char *here = realpath(folder, NULL);
    char *there = realpath(path, NULL);
    const size_t n = here ? strlen(here) : 0;
    const bool inside = here && there && strncmp(here, there, n) == 0 &&
                        (strchr("/\\", there[n]) || (n && strchr("/\\", here[n - 1])));
    free(here);
    free(there);
    return inside;
}

static bool can_be_read(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file;
}

bool submission_refusal(const char *folder, const char *name, char *sentence, size_t size) {
    char path[4096];
    struct stat status;
    *sentence = '\0';
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (stat(path, &status) != 0) {
        if (lstat(path, &status) != 0) return false; /* it is missing */
        snprintf(sentence, size, "%s is a link to nothing", name);
    } else if (kind_of(&status)) {
        snprintf(sentence, size, "%s is %s, and not a file", name, kind_of(&status));
    } else if (!lies_in(folder, path)) {
        snprintf(sentence, size, "%s is a link to a file outside of its folder", name);
    } else if (status.st_size > SUBMISSION_MOST) {
        snprintf(sentence, size, "%s has more than %d bytes", name, SUBMISSION_MOST);
    } else if (!can_be_read(path)) {
        snprintf(sentence, size, "%s cannot be read", name);
    }
    return *sentence;
}

/* ---- may it be compiled? --------------------------------------------------------------------- */

static bool is_word(const char *at, size_t length, const char *word) {
    return length == strlen(word) && memcmp(at, word, length) == 0;
}

static bool has_assembler(const char *blanked) {
    static const char *const words[] = {"asm", "__asm", "__asm__"};
    for (const char *at = blanked; *at; at++) {
        size_t length = 0;
        while (is_letter(at[length])) length++;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (is_word(at, length, words[i])) return true;
        if (length) at += length - 1;
    }
    return false;
}

static bool is_of_system(const char *path) {
    static const char *const folders[] = {"/usr", "/lib",     "/lib64",       "/opt",
                                          "/nix", "/Library", "/Applications"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (lies_in(folders[i], path)) return true;
    return false;
}

/* The first of the files that a rule of cc -M names that is of no folder of these and of the
 * system. A name with a blank is none. */
static bool foreign_file(const char *rule, const char *here, const char *const *folders, char *name,
                         size_t size) {
    static const char blanks[] = " \\\r\n";
    const char *at = strchr(rule, ':');
    char path[4096], folder[4096];
    for (at = at ? at + 1 : ""; at[strspn(at, blanks)];) {
        at += strspn(at, blanks);
        const size_t length = strcspn(at, " \r\n");
        snprintf(name, size, "%.*s", (int)length, at);
        snprintf(path, sizeof path, "%s%s%.*s", *at == '/' ? "" : here, *at == '/' ? "" : "/",
                 (int)length, at);
        bool known = is_of_system(path);
        for (int i = 0; folders[i] && !known; i++) {
            snprintf(folder, sizeof folder, "%s/%s", here, folders[i]);
            known = lies_in(folder, path);
        }
        if (!known) return true;
        at += length;
    }
    return false;
}

bool submission_reaches_out(const char *path, const char *rule, const char *here,
                            const char *const *folders, char *sentence, size_t size) {
    char name[256];
    char *text = submission_read(path, SUBMISSION_MOST);
    char *blanked = text ? without_comments(text) : NULL;
    *sentence = '\0';
    if (foreign_file(rule, here, folders, name, sizeof name))
        snprintf(sentence, size,
                 "#include %s: a file of this folder or of the C library can be included, and no "
                 "other",
                 name);
    else if (blanked && has_assembler(blanked))
        snprintf(sentence, size, "it has asm in it: write it in C");
    free(text);
    free(blanked);
    return *sentence;
}

/* ---- what is shown --------------------------------------------------------------------------- */

/* In UTF-8 the control characters are below a blank, 127, and C2 80 to C2 9F. */
void submission_make_plain(char *text) {
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        const bool second = *at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        if (second) at[1] = '?';
        if (second || *at < ' ' || *at == 127) *at = '?';
    }
}

/* ---- files with other names ------------------------------------------------------------------ */

/* Are the two the same, but for capital letters? */
static bool is_same_name(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i])) return false;
    return true;
}

/* attention.c is no 11_attention.c */
static bool ends_with_number(const char *text, size_t n) {
    size_t digits = 0;
    while (digits < n && isdigit((unsigned char)text[n - 1 - digits])) digits++;
    return digits == 2 && (n == 2 || text[n - 3] == '_');
}

size_t submission_prefix(const char *file, const char *right) {
    const size_t length = strlen(file), n = strlen(right);
    const size_t before = length > n + 3 ? length - n - 2 : 0;
    if (!before || file[before - 1] != '_' || !is_same_name(file + before, right, n) ||
        !is_same_name(file + before + n, ".c", 2))
        return 0;
    const bool other = !isdigit((unsigned char)*right) && ends_with_number(file, before - 1);
    return other ? 0 : before;
}

bool submission_means(const char *file, const char *right) {
    const size_t digits = strspn(file, "0123456789"), lettered = strcspn(right, "_");
    const bool numbered = isdigit((unsigned char)*right);
    const char *name = numbered ? right + lettered + 1 : right;
    const int letter =
        !numbered || isdigit((unsigned char)right[lettered - 1]) ? '_' : right[lettered - 1];
    const char *rest = file + digits;
    const bool has_letter = isalpha((unsigned char)*rest) && !isalpha((unsigned char)rest[1]);
    const int its = has_letter ? tolower((unsigned char)*rest) : '_';
    char suffix[4] = "";
    const char *dot = strrchr(file, '.');
    if (dot) snprintf(suffix, sizeof suffix, "%s", dot + 1);
    if (!strchr("cCt", *suffix)) return false; /* and no header, and no picture */
    if (submission_prefix(file, right)) return true;
    if (!numbered && digits) return false;
    rest += has_letter;
    rest += strspn(rest, "_- ");
    for (; *name; name++, rest++)
        if (tolower((unsigned char)*rest) != *name)
            return numbered && digits && atoi(file) == atoi(right) && its == letter;
    return !is_letter(*rest) || *rest == '_';
}

bool submission_is_folder(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The first file that is meant, "src/attention.c" one folder deeper; false if there is none. */
static bool find_other(const char *folder, const char *right, bool deeper, char found[512]) {
    char path[4096];
    bool is_found = false;
    DIR *list = opendir(folder);
    for (struct dirent *item = list ? readdir(list) : NULL; item && !is_found;
         item = readdir(list)) {
        snprintf(path, sizeof path, "%.3700s/%s", folder, item->d_name);
        if (*item->d_name == '.') continue;
        if (!submission_is_folder(path)) {
            is_found = submission_means(item->d_name, right);
            if (is_found) snprintf(found, 512, "%s", item->d_name);
        } else if (deeper) {
            char inside[512];
            is_found = find_other(path, right, false, inside);
            if (is_found) snprintf(found, 512, "%.200s/%.255s", item->d_name, inside);
        }
    }
    if (list) closedir(list);
    return is_found;
}

bool submission_other_name(const char *folder, const char *name, const char *right, char *sentence,
                           size_t size) {
    char found[512];
    const bool is_there = find_other(folder, right, true, found);
    if (!is_there) snprintf(sentence, size, "%s is missing", name);
    else
        snprintf(sentence, size, "%.300s is there; %s is not%s", found, name,
                 strcmp(found, "attention.c") ? ""
                                              : " (the assignment? build/exercises attention.c)");
    submission_make_plain(sentence);
    return is_there;
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
        else if (from[i] != '\r') line[n++] = '?'; /* of a file whose lines end with \r\n */
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
    const char *error = line_with(messages, "rror: ", &length); /* the assembler writes Error */
    const char *linker = line_with(messages, "undefined reference", &length);
    const char *missing = linker ? find(linker, length, "undefined reference") : NULL;
    if (missing && find(missing, length - (size_t)(missing - linker), function)) {
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

/* gcc writes "In function 'f':" above its first message about f. */
void submission_warning(const char *messages, const char *function, char *line, size_t size) {
    size_t length = 0;
    char head[128];
    snprintf(head, sizeof head, "In function '%s'", function);
    const char *inside = line_with(messages, head, &length);
    const char *warning = inside ? line_with(inside, "warning: ", &length) : NULL;
    if (!warning) warning = line_with(messages, "warning: ", &length);
    *line = '\0';
    if (warning) copy_line(line, size, warning, length);
}
