/* terminal.c - what the output is: see terminal.h. */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_is(FILE *file) { return isatty(fileno(file)) == 1; }

bool terminal_is_plain(FILE *file) {
    const char *locale = getenv("LC_ALL");
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (!locale || !*locale) locale = getenv("LC_CTYPE");
    if (!locale || !*locale) locale = getenv("LANG");
    bool utf8 = locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8"));
    bool allowed = utf8 && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    return !allowed || !terminal_is(file);
}
