/* html.h - the page, one HTML file that needs no network: page.html with page.css, live.js,
 * controls.js, page.js, play.js and the data in it. These sources are arrays of this program (see
 * the Makefile). */
#ifndef TAPEHEAD_EXAMPLES_HTML_H
#define TAPEHEAD_EXAMPLES_HTML_H

#include <stdio.h>

typedef struct {
    const char *json;          /* the data */
    const unsigned char *wasm; /* the library as a WebAssembly module, packed by gzip */
    size_t wasm_size;          /* 0 for the page of a tape: its numbers are recorded ones */
} Page;

/* For output_write; context is a Page. */
void html_write(FILE *file, const void *context);

#endif
