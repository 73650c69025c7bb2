/* common_locale.h - a locale with another decimal point, on every machine. */
#ifndef TESTS_COMMON_LOCALE_H
#define TESTS_COMMON_LOCALE_H

#include <stdbool.h>

/* From here on printf writes 0.5 with this point, "0,5", and strtod reads it so. False if no locale
 * of the C library does that, as in musl. */
bool set_decimal_point(const char *point);

#endif
