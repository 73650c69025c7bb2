/* html.h - the page, one HTML file that needs no network: page/page.html with the style sheets, the
 * scripts and the data in it. These sources are arrays of this program (see explain.mk). */
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
