/* utf8.h - reads the characters of any bytes. */
#ifndef TAPEHEAD_EXAMPLES_UTF8_H
#define TAPEHEAD_EXAMPLES_UTF8_H

#include <stdint.h>

/* Returns the Unicode number of the first character of *text and moves *text past it. '?' for a
 * control character and for a byte that begins no character (RFC 3629). 0 at the end. */
uint32_t utf8_next(const char **text);

/* The bytes of the first character; 0 if the text does not begin with a character. */
int utf8_bytes(const char *text);

int utf8_length(const char *text); /* in characters */

/* The width on a terminal: 2 columns for East Asian characters and emoji, else 1. */
int utf8_columns(uint32_t character);
int utf8_text_columns(const char *text);

#endif
