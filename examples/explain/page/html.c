/* html.c - writes the page: see html.h. */
#include "html.h"

#include "../../common/output.h"
#include "program.h"
#include "recording.h"

#include <string.h>

extern const unsigned char page_html[], page_css[], page_js[];
extern const size_t page_html_size, page_css_size, page_js_size;

static void write_element(FILE *file, const char *name, const unsigned char *text, size_t size) {
    fprintf(file, "<%s>\n", name);
    fwrite(text, 1, size, file);
    fprintf(file, "</%s>\n", name);
}

/* In a script "</script>" is its end, and "<!--" the begin of a comment, also in a string. The
 * sources, which have neither (cut.awk), become the last member of the data, an object. */
static void write_data(FILE *file, const char *json) {
    const char *const end = strrchr(json, '}');
    fputs("<script id=\"data\" type=\"application/json\">\n", file);
    for (const char *c = json; c < end; c++) {
        if (*c == '<' && (c[1] == '/' || c[1] == '!')) fputs("\\u003c", file);
        else putc(*c, file);
    }
    program_write_sources(file);
    fputs("}\n</script>\n", file);
}

/* Four digits of base64 for three bytes, "=" in the place of those that are missing at the end. */
static void write_base64(FILE *file, const unsigned char *bytes, size_t size) {
    enum { LINE = 768 }; /* bytes */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        unsigned held = 0;
        for (size_t k = 0; k < 3; k++) held = held << 8 | (i + k < size ? bytes[i + k] : 0);
        if (i % LINE == 0) putc('\n', file);
        for (size_t k = 0; k < 4; k++)
            putc(i + k <= size ? digits[held >> (18 - 6 * k) & 63] : '=', file);
    }
}

static void write_wasm(FILE *file, const Page *page) {
    if (page->wasm_size == 0) return;
    fputs("<script id=\"wasm\" type=\"text/plain\">", file);
    write_base64(file, page->wasm, page->wasm_size);
    fputs("\n</script>\n", file);
}

static bool is_mark(const char *line, size_t size, const char *mark) {
    return size == strlen(mark) + 1 && memcmp(line, mark, strlen(mark)) == 0;
}

/* A mark is a line of its own in page.html. */
static void write_page(FILE *file, const void *context) {
    const Page *page = context;
    const char *line = (const char *)page_html;
    const char *end = line + page_html_size;
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t size = newline ? (size_t)(newline - line) + 1 : (size_t)(end - line);
        if (is_mark(line, size, "<!-- style -->")) {
            write_element(file, "style", page_css, page_css_size);
        } else if (is_mark(line, size, "<!-- data -->")) {
            write_data(file, page->json);
        } else if (is_mark(line, size, "<!-- version -->")) {
            fputs("  <p>This page was made by Tapehead " TAPEHEAD_VERSION ".</p>\n", file);
        } else if (is_mark(line, size, "<!-- wasm -->")) {
            write_wasm(file, page);
        } else if (is_mark(line, size, "<!-- script -->")) {
            write_element(file, "script", page_js, page_js_size);
        } else {
            fwrite(line, 1, size, file);
        }
        line += size;
    }
}

bool html_write(const char *path, const Page *page) {
    return !tensor_error() && output_write(path, write_page, page);
}
