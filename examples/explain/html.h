/* html.h - the page, one HTML file that needs no network: page.html with page.css, page.js and the
 * data in it. The three sources are arrays of this program (see the Makefile). */
#ifndef TAPEHEAD_EXAMPLES_HTML_H
#define TAPEHEAD_EXAMPLES_HTML_H

#include <stdio.h>

/* For output_write; context is the data: JSON, a string. */
void html_write(FILE *file, const void *context);

#endif
