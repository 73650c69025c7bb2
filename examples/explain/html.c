/* html.c - writes the page: see html.h. */
#include "html.h"

#include "../common/output.h"
#include "deflate.h"
#include "program.h"
#include "recording.h"

#include <string.h>

/* page.css and page.js are packed by gzip. */
extern const unsigned char page_html[], unpack_js[], page_css_gz[], page_js_gz[];
extern const size_t page_html_size, unpack_js_size, page_css_gz_size, page_js_gz_size;

/* ---- base 91 --------------------------------------------------------------------------------- */

/* Bytes on their way into the page: each two digits of base 91 hold 13 bits. Base64, 12 bits in two
 * characters, would be 15 KB longer. */
typedef struct {
    FILE *file;          /* NULL: they are only counted */
    size_t size;         /* how many bytes */
    unsigned held, bits; /* the last bits of `held` are not written yet */
} Text;

/* A digit from 0 to 90 as one character, but never "<". */
static void write_digit(FILE *file, unsigned digit) {
    const unsigned c = '#' + digit;
    putc(c == '<' ? '!' : (int)c, file);
}

static void put_byte(void *to, unsigned byte) {
    Text *text = to;
    text->size++;
    text->held = text->held << 8 | byte;
    text->bits += 8;
    if (text->bits < 13) return;
    text->bits -= 13;
    const unsigned number = text->held >> text->bits & 0x1fff;
    if (!text->file) return;
    write_digit(text->file, number / 91);
    write_digit(text->file, number % 91);
}

/* Two more bytes, to write the last bits. */
static void put_end(Text *text) {
    put_byte(text, 0);
    put_byte(text, 0);
}

/* The size, then the bytes. */
static void write_bytes(FILE *file, const unsigned char *bytes, size_t size) {
    Text text = {.file = file};
    fprintf(file, "%zu ", size);
    for (size_t i = 0; i < size; i++) put_byte(&text, bytes[i]);
    put_end(&text);
}

static void write_deflated(FILE *file, const char *json) {
    const size_t size = strlen(json);
    Text counted = {0}, text = {.file = file};
    deflate_gzip(json, size, put_byte, &counted);
    fprintf(file, "%zu ", counted.size);
    deflate_gzip(json, size, put_byte, &text);
    put_end(&text);
}

/* ---- the elements of the page ---------------------------------------------------------------- */

/* What is packed is an element that the script behind it replaces: see unpack.js. */
static void begin_packed(FILE *file, const char *name) {
    fprintf(file, "<script id=\"packed-%s\" type=\"text/plain\">", name);
}

static void end_packed(FILE *file, const char *name) {
    fprintf(file, "</script>\n<script>Packed.open(\"%s\");</script>\n", name);
}

/* The style sheets or the scripts. */
static void write_packed(FILE *file, const char *name, const unsigned char *bytes, size_t size) {
    begin_packed(file, name);
    write_bytes(file, bytes, size);
    end_packed(file, name);
}

static void write_data(FILE *file, const char *json) {
    begin_packed(file, "data");
    write_deflated(file, json);
    end_packed(file, "data");
}

static void write_wasm(FILE *file, const Page *page) {
    if (page->wasm_size == 0) return;
    fputs("<script id=\"wasm\" type=\"text/plain\">", file);
    write_bytes(file, page->wasm, page->wasm_size);
    fputs("</script>\n", file);
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
static void write_page(FILE *file, const void *context) {
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
            write_data(file, page->json);
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

/* The sources become the last member of the data, which are an object. */
static void add_sources(char *json) {
    char *end = strrchr(json, '}');
    FILE *file = data_reopen(json, end);
    if (!file) return;
    program_write_sources(file);
    fputs("}\n", file);
    data_close(file, end);
}

bool html_write(const char *path, const Page *page) {
    add_sources(page->json);
    return !tensor_error() && output_write(path, write_page, page);
}
