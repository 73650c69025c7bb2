/* algebra.c - a rule in lines: see algebra.h. */
#include "algebra.h"

void algebra_add(Algebra *a, const char *line, const char *why) {
    if (a->count == ALGEBRA_LINES) return;
    snprintf(a->at[a->count].line, ALGEBRA_TEXT, "%s", line);
    snprintf(a->at[a->count].why, ALGEBRA_TEXT, "%s", why);
    a->count++;
}

void algebra_write(FILE *file, const Algebra *a) {
    for (int n = 0; n < a->count; n++) {
        fprintf(file, n == 0 ? ",\"algebra\":[{\"line\":" : ",\n{\"line\":");
        json_write_string(file, a->at[n].line);
        fprintf(file, ",\"why\":");
        json_write_string(file, a->at[n].why);
        putc('}', file);
    }
    if (a->count > 0) putc(']', file);
}
