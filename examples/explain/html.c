/* html.c - writes the page: see html.h. */
#include "html.h"

#include <stdbool.h>
#include <string.h>

extern const unsigned char page_html[], page_css[], page_js[];
extern const size_t page_html_size, page_css_size, page_js_size;

/* In a script "</" could end it; in a string of JSON "<\/" means the same. */
static void write_json(FILE *file, const char *json) {
    fputs("<script id=\"data\" type=\"application/json\">\n", file);
    for (const char *c = json; *c; c++) {
        putc(*c, file);
        if (c[0] == '<' && c[1] == '/') putc('\\', file);
    }
    fputs("</script>\n", file);
}

static bool is_mark(const char *line, size_t size, const char *mark) {
    return size == strlen(mark) + 1 && memcmp(line, mark, strlen(mark)) == 0;
}

/* A mark is a line of its own in page.html. */
void html_write(FILE *file, const void *context) {
    const char *line = (const char *)page_html;
    const char *end = line + page_html_size;
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t size = newline ? (size_t)(newline - line) + 1 : (size_t)(end - line);
        if (is_mark(line, size, "<!-- style -->")) {
            fputs("<style>\n", file);
            fwrite(page_css, 1, page_css_size, file);
            fputs("</style>\n", file);
        } else if (is_mark(line, size, "<!-- data -->")) {
            write_json(file, context);
        } else if (is_mark(line, size, "<!-- script -->")) {
            fputs("<script>\n", file);
            fwrite(page_js, 1, page_js_size, file);
            fputs("</script>\n", file);
        } else {
            fwrite(line, 1, size, file);
        }
        line += size;
    }
}
