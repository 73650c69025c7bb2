/* utf8.h - characters out of any bytes. */
#ifndef TAPEHEAD_EXAMPLES_UTF8_H
#define TAPEHEAD_EXAMPLES_UTF8_H

#include <stdint.h>

/* The first character of *text, by its number in Unicode, and *text moves behind it. '?' for what
 * cannot be shown: a control character, or a byte that begins no character (RFC 3629). At the end
 * 0, and *text stays. */
uint32_t utf8_next(const char **text);

int utf8_length(const char *text); /* in characters */

/* How many columns of a terminal it takes: 2 for those of East Asia and emoji, else 1. */
int utf8_columns(uint32_t character);
int utf8_text_columns(const char *text);

#endif
