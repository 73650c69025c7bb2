/* common_locale.c - a locale with another decimal point. Few machines have one installed, and glibc
 * loads one from any folder, so a file with the few facts about numbers is written here, in glibc's
 * format: a magic number, the number of the facts, where each begins, and the facts. */
#include "common_locale.h"

#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_point(const char *point) {
    char half[16], wanted[16];
    snprintf(half, sizeof half, "%.1f", 0.5);
    snprintf(wanted, sizeof wanted, "0%s5", point);
    return strcmp(half, wanted) == 0;
}

#ifdef __GLIBC__
typedef struct {
    uint32_t magic, count, at[6];
    char point[4], separator[4], grouping[4];
    uint32_t wide_point, wide_separator;
    char codeset[8];
} Numeric;

bool set_decimal_point(const char *point) {
    Numeric numeric = {.magic = 0x20031115 ^ LC_NUMERIC,
                       .count = 6,
                       .at = {offsetof(Numeric, point), offsetof(Numeric, separator),
                              offsetof(Numeric, grouping), offsetof(Numeric, wide_point),
                              offsetof(Numeric, wide_separator), offsetof(Numeric, codeset)},
                       .grouping = "\x7f", /* CHAR_MAX: no groups of digits */
                       .wide_point = ',',
                       .codeset = "UTF-8"};
    snprintf(numeric.point, sizeof numeric.point, "%s", point);
    char variable[] = "LOCPATH=/tmp/tapehead.XXXXXX", name[64], file[80];
    char *folder = strchr(variable, '/');
    if (!mkdtemp(folder)) return false;
    snprintf(name, sizeof name, "%s/numeric", folder);
    snprintf(file, sizeof file, "%s/LC_NUMERIC", name);
    FILE *out = mkdir(name, 0700) == 0 ? fopen(file, "wb") : NULL;
    if (out) fwrite(&numeric, sizeof numeric, 1, out);
    if (out) fclose(out);
    putenv(variable); /* unlike setenv it allocates nothing that stays */
    setlocale(LC_NUMERIC, "numeric");
    unsetenv("LOCPATH");
    remove(file);
    remove(name);
    remove(folder);
    return has_point(point);
}
#else
bool set_decimal_point(const char *point) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i]) && has_point(point)) return true;
    return false;
}
#endif
