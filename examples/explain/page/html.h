/* html.h - the page, one HTML file that needs no network: page/page.html with the style sheets and
 * the scripts as they are, the data as JSON, and the library in base64. These sources are arrays of
 * this program (see explain.mk). */
#ifndef TAPEHEAD_EXAMPLES_HTML_H
#define TAPEHEAD_EXAMPLES_HTML_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *json;          /* the data, an object */
    const unsigned char *wasm; /* the library as a WebAssembly module, packed by gzip */
    size_t wasm_size;          /* 0 for the page of a tape: its numbers are recorded ones */
} Page;

/* Adds the sources to the data, and writes the page. False and an error on failure. */
bool html_write(const char *path, const Page *page);

#endif
