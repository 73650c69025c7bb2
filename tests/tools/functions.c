/* functions.c - nn/functions.html: every public function on one page, from the headers.
 *
 * The page has the headers' order, titles and comments. A comment and the declarations after it are
 * an entry, which ends with a blank line or with the next comment. Below the declarations of ops
 * stand their formulas. A header is read from the top to the bottom, twice: the first time only to
 * know the names that a comment may lead to. */
#include "docs.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const headers[] = {"tensor/tensor.h", "autograd/autograd.h", "nn/nn.h"};
enum { HEADERS = sizeof headers / sizeof *headers };

/* ---- names ----------------------------------------------------------------------------------- */

enum { MOST_NAMES = 1024, NAME_SIZE = 64 };
static struct {
    char name[NAME_SIZE];
    bool has_place; /* in this reading of the headers */
} names[MOST_NAMES];
static int num_names;

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t name_length(const char *at) {
    size_t n = 0;
    while (in_name(at[n])) n++;
    return n;
}

static bool has_prefix(const char *at) {
    static const char *const prefixes[] = {"tensor_", "tape_", "ag_", "nn_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(at, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

/* The number of the name of these n characters; -1 if it is none. */
static int find_name(const char *at, size_t n) {
    for (int i = 0; i < num_names; i++)
        if (strlen(names[i].name) == n && strncmp(names[i].name, at, n) == 0) return i;
    return -1;
}

static int add_name(const char *at, size_t n) {
    const int found = find_name(at, n);
    if (found >= 0) return found;
    if (num_names == MOST_NAMES || n >= NAME_SIZE) docs_die("there are too many functions");
    memcpy(names[num_names].name, at, n);
    return num_names++;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* ---- text as HTML ---------------------------------------------------------------------------- */

static void write_characters(FILE *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (text[i] == '&') fputs("&amp;", out);
        else if (text[i] == '<') fputs("&lt;", out);
        else if (text[i] == '>') fputs("&gt;", out);
        else putc(text[i], out);
}

/* A name leads to its place; the place itself is where it is declared first. */
static void write_name(FILE *out, const char *at, size_t n, bool declared) {
    const int i = declared ? add_name(at, n) : find_name(at, n);
    const bool is_place = declared && !names[i].has_place;
    if (i < 0) {
        write_characters(out, at, n);
        return;
    }
    if (is_place) names[i].has_place = true;
    fprintf(out, "<a %s%s%shref=\"#%s\">%s</a>", is_place ? "id=\"" : "",
            is_place ? names[i].name : "", is_place ? "\" " : "", names[i].name, names[i].name);
}

/* n characters. In a declaration, outside its comments, a name before a bracket is declared. */
static void write_text(FILE *out, const char *text, size_t n, bool is_declaration) {
    static const char checked[] = "TENSOR_PRINTF("; /* for the compiler */
    bool in_comment = !is_declaration;
    for (size_t i = 0; i < n;) {
        if (is_declaration && strncmp(text + i, checked, strlen(checked)) == 0)
            i += strcspn(text + i, ")") + 2;
        const size_t length = name_length(text + i);
        if (is_declaration && strncmp(text + i, "/*", 2) == 0) in_comment = true;
        if (is_declaration && i > 0 && strncmp(text + i - 1, "*/", 2) == 0) in_comment = false;
        if (length > 0 && has_prefix(text + i))
            write_name(out, text + i, length, !in_comment && text[i + length] == '(');
        else write_characters(out, text + i, length ? length : 1);
        i += length ? length : 1;
    }
}

/* ---- comments -------------------------------------------------------------------------------- */

/* The next line of a comment, without what stands in front of it; NULL after the last. */
static const char *comment_line(const char **at, const char *end, size_t *length) {
    const char *line = *at;
    if (line >= end) return NULL;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (!stop) stop = end;
    *at = stop + 1;
    if (strncmp(line, "/* ", 3) == 0 || strncmp(line, " * ", 3) == 0) line += 3;
    else if (strncmp(line, " *", 2) == 0) line += 2;
    while (stop > line && stop[-1] == ' ') stop--;
    *length = stop > line ? (size_t)(stop - line) : 0;
    return line;
}

/* Prose becomes paragraphs; indented lines are code or formulas, and stay as they are. */
static void write_comment(FILE *out, const char *comment, const char *end) {
    const char *open = NULL; /* the tag that is open */
    size_t n;
    for (const char *line = comment_line(&comment, end, &n); line;
         line = comment_line(&comment, end, &n)) {
        const char *tag = n >= 4 && strncmp(line, "    ", 4) == 0 ? "pre" : "p";
        if (open && (n == 0 || strcmp(open, tag) != 0)) {
            fprintf(out, "</%s>\n", open);
            open = NULL;
        }
        if (n == 0) continue;
        if (open) putc(*open == 'p' && open[1] ? '\n' : ' ', out);
        else fprintf(out, "<%s>", tag);
        open = tag;
        write_text(out, line, n, false);
    }
    if (open) fprintf(out, "</%s>\n", open);
}

/* ---- a header -------------------------------------------------------------------------------- */

enum { MOST_NESTED = 8 };

typedef struct {
    FILE *out;
    const char *at;
    const char *begin, *end; /* the declarations of the entry that is open, or NULL */
    int nested;
    bool hidden[MOST_NESTED]; /* by #if: what a reader of the page does not need */
    bool is_cpp[MOST_NESTED]; /* #ifdef __cplusplus: what is for C stands behind #else */
} Reader;

static const char *end_of_line(const char *at) { return at + strcspn(at, "\n"); }

/* The formulas of the ops in these declarations. */
static void write_formulas(FILE *out, const char *at, const char *end) {
    char name[NAME_SIZE];
    bool some = false;
    for (; at < end; at += name_length(at) + 1) {
        if (strncmp(at, "/*", 2) == 0) at = strstr(at, "*/");
        const size_t n = name_length(at);
        if (n == 0 || n >= NAME_SIZE || !has_prefix(at) || at[n] != '(') continue;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const OpText *text = docs_text(name);
        if (!text) continue;
        fputs(some ? "" : "<table><tr><th>op</th><th>value</th><th>gradient</th></tr>\n", out);
        some = true;
        const char *const cells[] = {text->call, text->value, text->gradient};
        fputs("<tr>", out);
        for (int i = 0; i < 3; i++) {
            fputs("<td>", out);
            write_text(out, cells[i], strlen(cells[i]), false);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    if (some) fputs("</table>\n", out);
}

static void end_entry(Reader *r) {
    if (!r->begin) return;
    fputs("<pre class=\"declared\">", r->out);
    write_text(r->out, r->begin, (size_t)(r->end - r->begin), true);
    fputs("</pre>\n", r->out);
    write_formulas(r->out, r->begin, r->end);
    r->begin = NULL;
}

/* The text between the dashes of a title. */
static void read_title(Reader *r) {
    const char *begin = r->at + strcspn(r->at, "-=");
    begin += strspn(begin, "-= ");
    const char *end = strstr(begin, "*/");
    while (strchr("-= ", end[-1])) end--;
    fprintf(r->out, "<h3>");
    write_text(r->out, begin, (size_t)(end - begin), false);
    fprintf(r->out, "</h3>\n");
}

static void read_comment(Reader *r) {
    const char *end = strstr(r->at, "*/");
    if (!end) docs_die("a comment does not end");
    end_entry(r);
    if (strncmp(r->at, "/* --", 5) == 0 || strncmp(r->at, "/* ==", 5) == 0) read_title(r);
    else write_comment(r->out, r->at, end);
    r->at = end_of_line(end);
}

static bool is_hidden(const Reader *r) {
    for (int i = 0; i < r->nested; i++)
        if (r->hidden[i]) return true;
    return false;
}

static bool begins(const char *at, const char *with) {
    return strncmp(at, with, strlen(with)) == 0;
}

static void declare(Reader *r, const char *end) {
    if (!r->begin) r->begin = r->at;
    r->end = end;
    r->at = end;
}

/* Of the conditions, only the guard of a header and TAPEHEAD_CORE are shown, and C instead of C++.
 * A macro is shown as a declaration, but for a guard, which has no value. */
static void read_directive(Reader *r) {
    const char *end = end_of_line(r->at);
    while (end[-1] == '\\') end = end_of_line(end + 1);
    if (begins(r->at, "#if")) {
        if (r->nested == MOST_NESTED) docs_die("too many #if inside each other");
        end_entry(r);
        r->hidden[r->nested] = !begins(r->at, "#ifndef TAPEHEAD_");
        r->is_cpp[r->nested++] = begins(r->at, "#ifdef __cplusplus");
    } else if (begins(r->at, "#else")) {
        if (r->is_cpp[r->nested - 1]) r->hidden[r->nested - 1] = false;
    } else if (begins(r->at, "#endif")) {
        r->nested--;
    } else if (begins(r->at, "#define") && !is_hidden(r) && end[-1] != 'H') {
        declare(r, end);
        return;
    }
    r->at = end;
}

/* Up to the semicolon outside of brackets { }, and a comment behind it. */
static void read_declaration(Reader *r) {
    const char *at = r->at;
    int depth = 0;
    while (*at && !(*at == ';' && depth == 0)) {
        depth += (*at == '{') - (*at == '}');
        at = begins(at, "/*") ? strstr(at, "*/") + 2 : at + 1;
    }
    const char *end = end_of_line(at);
    const char *comment = strstr(at, "/*"); /* behind it */
    if (comment && comment < end) end = end_of_line(strstr(comment, "*/"));
    declare(r, end);
}

/* Hidden lines are read as lines alone. */
static void read_header(FILE *out, const char *path) {
    char *text = docs_read(path);
    Reader r = {.out = out, .at = text};
    fprintf(out, "<h2 id=\"%s\">%s</h2>\n", path, path);
    while (*r.at) {
        if (*r.at == '\n') {
            if (r.at[1] == '\n') end_entry(&r);
            r.at++;
        } else if (*r.at == '#') read_directive(&r);
        else if (is_hidden(&r)) r.at = end_of_line(r.at);
        else if (begins(r.at, "/*")) read_comment(&r);
        else read_declaration(&r);
    }
    end_entry(&r);
    free(text);
}

/* ---- the page -------------------------------------------------------------------------------- */

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>Tapehead: every function</title>\n<style>\n"
    "body { max-width: 56em; margin: 1em auto; padding: 0 1em; font: 16px/1.45 sans-serif; }\n"
    "pre, code, td { font: 13.5px/1.4 monospace; } pre { overflow-x: auto; }\n"
    "pre.declared { background: #eef2f7; padding: .5em .8em; border-radius: 4px; }\n"
    "table { border-collapse: collapse; margin: -.5em 0 1em; }\n"
    "th, td { text-align: left; vertical-align: top; padding: .1em .8em; }\n"
    "h2 { border-top: 2px solid; padding-top: .6em; } h3 { margin-top: 2em; }\n"
    "a { color: inherit; text-decoration-color: #8aa; } :target { background: #fd8; }\n"
    ".index { columns: 18em; font: 13.5px/1.5 monospace; } .index a { display: block; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "body { background: #181b20; color: #dde; } pre.declared { background: #252b35; }\n"
    ":target { background: #764; } }\n</style>\n</head>\n<body>\n"
    "<!-- made by make docs, from the headers -->\n<h1>Tapehead: every function</h1>\n"
    "<p>The three public headers on one page; the search of the browser finds the rest. "
    "<code>y</code> is the result of an op, <code>dy</code> its gradient.</p>\n";

static void print_index(FILE *out) {
    qsort(names, (size_t)num_names, sizeof *names, by_name);
    fputs("<p>", out);
    for (int i = 0; i < HEADERS; i++)
        fprintf(out, "%s<a href=\"#%s\">%s</a>", i ? ", " : "", headers[i], headers[i]);
    fputs("</p>\n<div class=\"index\">\n", out);
    for (int i = 0; i < num_names; i++)
        fprintf(out, "<a href=\"#%s\">%s</a>\n", names[i].name, names[i].name);
    fputs("</div>\n", out);
}

void functions_print(FILE *out) {
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) docs_die("there is no /dev/null");
    for (int i = 0; i < HEADERS; i++) read_header(nowhere, headers[i]);
    fclose(nowhere);
    for (int i = 0; i < num_names; i++) names[i].has_place = false;
    fputs(head, out);
    print_index(out);
    for (int i = 0; i < HEADERS; i++) read_header(out, headers[i]);
    fputs("</body>\n</html>\n", out);
}
