/* docs.c - `make docs`: rewrites the tables of ops in autograd/README.md, between two marks, from
 * the texts in the library, in the order of tests/suites/library/ops.def. It also rewrites the line
 * numbers in README.md, and nn/functions.html, the page of all public functions (functions.c).
 *
 *     docs [--check] SOURCE...   --check: changes nothing, and fails when a page is stale
 *
 * docs finds in the SOURCEs the file of each op. It fails if an op of autograd.h is not on the
 * page. */
#include "docs.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN "<!-- made by make docs, from "
#define END   "<!-- the end of what make docs makes -->\n"

static char **sources; /* NULL at the end */

void docs_die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("docs: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

char *docs_read(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) docs_die("%s cannot be read: run me from the root of the repository", path);
    const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    rewind(file);
    char *text = size > 0 ? calloc((size_t)size + 1, 1) : NULL;
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) docs_die("%s is empty", path);
    fclose(file);
    return text;
}

/* Does the page name the function? */
static bool mentions(const char *page, const char *function) {
    const size_t length = strlen(function);
    for (const char *at = page;; at += length) {
        at = strstr(at, function);
        if (!at) return false;
        if (at[length] == '(' || at[length] == '`') return true;
    }
}

/* ---- one row of a page ----------------------------------------------------------------------- */

/* Does a line of text begin a declaration or definition of the function: "Tensor *ag_sum("? */
static bool declares(const char *text, const char *function) {
    const size_t length = strlen(function);
    for (const char *at = strstr(text, function); at; at = strstr(at + length, function)) {
        const char *line = at;
        while (line > text && line[-1] != '\n') line--;
        if (line < at && isalpha(*line) && strchr(" *", at[-1]) && at[length] == '(') return true;
    }
    return false;
}

/* The source that defines the function, as seen from the page's folder. */
static const char *file_of(const char *function, const char *folder) {
    for (char **path = sources; *path; path++) {
        char *text = docs_read(*path);
        bool here = declares(text, function);
        free(text);
        if (here) return *path + strlen(folder) + 1;
    }
    docs_die("%s is in a table, but in no source", function);
    return NULL;
}

/* Writes the text of a cell. A bar is escaped, because it would end the cell. */
static void cell(FILE *out, const char *text) {
    fputs(" ", out);
    for (; *text; text++) fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
    fputs(" |", out);
}

/* Writes the head of a table. */
static void section(FILE *out, const char *title, const char *head) {
    fprintf(out, "\n### %s\n\n|", title);
    for (const char *name = head; *name; name += strcspn(name, "|") + 1)
        fprintf(out, " %.*s |", (int)strcspn(name, "|"), name);
    fputs("\n|", out);
    for (; *head; head++)
        if (*head == '|') fputs("---|", out);
    fputs("\n", out);
}

/* Writes the row of an op or of a function of ops. Its call is a link to its source. */
static void op_row(FILE *out, const char *function, const OpText *text, const char *file) {
    char call[256], value[512];
    snprintf(call, sizeof call, "[`%s`](%s)", text->call,
             file ? file : file_of(function, "autograd"));
    snprintf(value, sizeof value, text->source ? "%s (%s)" : "%s", text->value, text->source);
    fputs("|", out);
    cell(out, call);
    cell(out, text->shapes);
    cell(out, value);
    cell(out, text->gradient);
    fputs("\n", out);
}

/* ---- the pages ------------------------------------------------------------------------------- */

#define ELEMENTWISE(name, ...) extern const OpText ag_text_##name;
#define OP(name, ...)          extern const OpText ag_text_##name;
#define COMPOSITE(name, ...)   extern const OpText ag_text_##name;
#include "../suites/library/ops.def"

#define ANSWER(name)                                                                               \
    if (!strcmp(function, "ag_" #name)) return &ag_text_##name;

const OpText *docs_text(const char *function) {
#define ELEMENTWISE(name, ...) ANSWER(name)
#define OP(name, ...)          ANSWER(name)
#define COMPOSITE(name, ...)   ANSWER(name)
#include "../suites/library/ops.def"
    return NULL;
}

static void print_ops(FILE *out) {
    const char *const row_of_table = "../tensor/kernels/elementwise.def";
#define SECTION(title)         section(out, title, "op|shapes|value|gradient|");
#define ELEMENTWISE(name, ...) op_row(out, "ag_" #name, &ag_text_##name, row_of_table);
#define OP(name, ...)          op_row(out, "ag_" #name, &ag_text_##name, NULL);
#define COMPOSITE(name, ...)   op_row(out, "ag_" #name, &ag_text_##name, NULL);
#include "../suites/library/ops.def"
}

/* The page with a new text between the marks. */
static char *made_anew(const char *path, const char *page, void (*print)(FILE *)) {
    char *text = NULL;
    size_t size;
    const char *begin = strstr(page, BEGIN);
    const char *end = begin ? strstr(begin, END) : NULL;
    if (!end) docs_die("%s has no marks: %s... -->, and %s", path, BEGIN, END);
    FILE *out = open_memstream(&text, &size);
    if (!out) docs_die("no memory");
    begin += strcspn(begin, "\n") + 1;
    fwrite(page, 1, (size_t)(begin - page), out);
    print(out);
    fprintf(out, "\n%s", end);
    fclose(out);
    return text;
}

/* ---- line numbers ----------------------------------------------------------------------------
 *
 * A link such as [autograd/tape.c:211](autograd/tape.c#L211 "Tensor *ag_apply(") leads to the first
 * line of the file that contains the text. */

typedef struct {
    char path[128], text[128];
    int length; /* of the link itself */
} LineLink;

/* Does a link to a line begin here? */
static bool read_link(const char *at, LineLink *link) {
    char path[128];
    link->length = 0;
    sscanf(at, "[%127[^]:[]:%*d](%127[^)#]#L%*d \"%127[^\"]\")%n", link->path, path, link->text,
           &link->length);
    return link->length > 0 && !strcmp(link->path, path);
}

/* The number of the first line of the file that contains the text, counted from 1. */
static int line_of(const LineLink *link) {
    char *source = docs_read(link->path);
    const char *found = strstr(source, link->text);
    if (!found) docs_die("README.md: %s has no line with \"%s\"", link->path, link->text);
    int line = 1;
    for (const char *at = source; at < found; at++) line += *at == '\n';
    free(source);
    return line;
}

static char *with_line_numbers(const char *page) {
    char *text = NULL;
    size_t size;
    LineLink link;
    FILE *out = open_memstream(&text, &size);
    if (!out) docs_die("no memory");
    while (*page) {
        if (*page != '[' || !read_link(page, &link)) {
            fputc(*page++, out);
            continue;
        }
        const int line = line_of(&link);
        fprintf(out, "[%s:%d](%s#L%d \"%s\")", link.path, line, link.path, line, link.text);
        page += link.length;
    }
    fclose(out);
    return text;
}

/* ---- a page, written or compared ------------------------------------------------------------ */

/* Writes the page if it has changed; with only_check, returns false instead. */
static bool write_page(const char *path, const char *before, const char *after, bool only_check) {
    if (!strcmp(before, after)) return true;
    if (only_check) {
        fprintf(stderr, "docs: %s is stale: run make docs\n", path);
        return false;
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(after, file) < 0 || fclose(file)) docs_die("%s cannot be written", path);
    printf("%s\n", path);
    return true;
}

/* Is every function of the header, prefix_something(, on the page? */
static bool has_all(const char *path, const char *page, const char *header, const char *prefix) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    char *text = docs_read(header), name[64];
    bool all = true;
    for (const char *at = strstr(text, prefix); at; at = strstr(at + strlen(prefix), prefix)) {
        snprintf(name, sizeof name, "%.*s", (int)strspn(at, letters), at);
        if (!declares(text, name) || mentions(page, name)) continue;
        fprintf(stderr, "docs: %s says nothing about %s of %s\n", path, name, header);
        all = false;
    }
    free(text);
    return all;
}

static bool make_page(const char *path, const char *header, const char *prefix,
                      void (*print)(FILE *), bool only_check) {
    char *before = docs_read(path);
    char *after = made_anew(path, before, print);
    const bool current = write_page(path, before, after, only_check);
    const bool fine = has_all(path, after, header, prefix) && current;
    free(before);
    free(after);
    return fine;
}

static bool make_readme(bool only_check) {
    char *before = docs_read("README.md");
    char *after = with_line_numbers(before);
    const bool fine = write_page("README.md", before, after, only_check);
    free(before);
    free(after);
    return fine;
}

static bool make_functions(bool only_check) {
    static const char path[] = "nn/functions.html";
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) docs_die("no memory");
    functions_print(out);
    fclose(out);
    char *before = docs_read(path);
    const bool fine = write_page(path, before, text, only_check);
    free(before);
    free(text);
    return fine;
}

int main(int argc, char **argv) {
    bool only_check = argc > 1 && !strcmp(argv[1], "--check");
    sources = argv + 1 + only_check;
    bool ops = make_page("autograd/README.md", "autograd/autograd.h", "ag_", print_ops, only_check);
    bool lines = make_readme(only_check);
    bool functions = make_functions(only_check);
    return ops && lines && functions ? 0 : 1;
}
