/* html.c - writes the page: see html.h. */
#include "html.h"

#include "program.h"

#include <stdbool.h>
#include <string.h>

/* page.css and page.js are packed by gzip; unpack.js unpacks them in the page. */
extern const unsigned char page_html[], unpack_js[], page_css_gz[], page_js_gz[];
extern const size_t page_html_size, unpack_js_size, page_css_gz_size, page_js_gz_size;

/* The data, an object, with the sources as its last member. "</" could end the script; in a string
 * of JSON "<\/" means the same. cut.awk sees to it that the sources have no "</". */
static void write_json(FILE *file, const char *json) {
    const char *const end = strrchr(json, '}');
    fputs("<script id=\"data\" type=\"application/json\">\n", file);
    for (const char *c = json; c < end; c++) {
        putc(*c, file);
        if (c[0] == '<' && c[1] == '/') putc('\\', file);
    }
    program_write_sources(file);
    fputs("}\n</script>\n", file);
}

/* A digit from 0 to 90 as one character, but never "<". */
static void write_digit(FILE *file, unsigned digit) {
    const unsigned c = '#' + digit;
    putc(c == '<' ? '!' : (int)c, file);
}

/* The size, and the bytes as text: each two digits of base 91 hold 13 bits. Base64, 12 bits in two
 * characters, would be 15 KB longer. */
static void write_bytes(FILE *file, const unsigned char *bytes, size_t size) {
    unsigned held = 0, bits = 0; /* the last bits of `held` are not written yet */
    fprintf(file, "%zu ", size);
    for (size_t i = 0; i < size + 2; i++) { /* two more bytes, to write the last bits */
        held = held << 8 | (i < size ? bytes[i] : 0);
        bits += 8;
        if (bits < 13) continue;
        bits -= 13;
        const unsigned number = held >> bits & 0x1fff;
        write_digit(file, number / 91);
        write_digit(file, number % 91);
    }
}

static void write_wasm(FILE *file, const Page *page) {
    if (page->wasm_size == 0) return;
    fputs("<script id=\"wasm\" type=\"text/plain\">", file);
    write_bytes(file, page->wasm, page->wasm_size);
    fputs("</script>\n", file);
}

/* The style sheets or the scripts: the text is an element that the script behind it replaces. */
static void write_packed(FILE *file, const char *name, const unsigned char *bytes, size_t size) {
    fprintf(file, "<script id=\"packed-%s\" type=\"text/plain\">", name);
    write_bytes(file, bytes, size);
    fprintf(file, "</script>\n<script>Packed.open(\"%s\");</script>\n", name);
}

static void write_unpack(FILE *file) {
    fputs("<script>\n", file);
    fwrite(unpack_js, 1, unpack_js_size, file);
    fputs("</script>\n", file);
}

static bool is_mark(const char *line, size_t size, const char *mark) {
    return size == strlen(mark) + 1 && memcmp(line, mark, strlen(mark)) == 0;
}

/* A mark is a line of its own in page.html. */
void html_write(FILE *file, const void *context) {
    const Page *page = context;
    const char *line = (const char *)page_html;
    const char *end = line + page_html_size;
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const size_t size = newline ? (size_t)(newline - line) + 1 : (size_t)(end - line);
        if (is_mark(line, size, "<!-- unpack -->")) {
            write_unpack(file);
        } else if (is_mark(line, size, "<!-- style -->")) {
            write_packed(file, "style", page_css_gz, page_css_gz_size);
        } else if (is_mark(line, size, "<!-- data -->")) {
            write_json(file, page->json);
        } else if (is_mark(line, size, "<!-- wasm -->")) {
            write_wasm(file, page);
        } else if (is_mark(line, size, "<!-- script -->")) {
            write_packed(file, "script", page_js_gz, page_js_gz_size);
        } else {
            fwrite(line, 1, size, file);
        }
        line += size;
    }
}
