/* mistakes.c - the list of known mistakes: see mistakes.h. */
#include "mistakes.h"

#include <string.h>

#define RIGHT(of, forward, ...) {of, NULL, __VA_ARGS__, NULL, NULL, NULL, forward},
#define MISTAKE(of, id, ...)    {of, id, __VA_ARGS__, NULL, NULL},
#define BREAK(of, id, ...)      {of, id, __VA_ARGS__, NULL},
const MistakeRow mistake_rows[] = {
#include "mistakes.def"
};
const int num_mistake_rows = sizeof mistake_rows / sizeof *mistake_rows;

bool mistake_is_of(const MistakeRow *m, const char *word) {
    const size_t n = strlen(word);
    if (n == 0) return false; /* it is found everywhere, and behind the end */
    for (const char *at = strstr(m->of, word); at; at = strstr(at + 1, word))
        if ((at == m->of || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) return true;
    return false;
}

const MistakeRow *mistake_find(const char *of, const char *id) {
    for (int i = 0; i < num_mistake_rows; i++) {
        const MistakeRow *m = &mistake_rows[i];
        const bool has_id = id && m->id ? strcmp(m->id, id) == 0 : id == m->id;
        if (has_id && mistake_is_of(m, of)) return m;
    }
    return NULL;
}

void mistake_plain(const char *text, char *plain, size_t size) {
    for (; *text && size > 1; text++) {
        if (*text == '{' || *text == '}') continue;
        *plain++ = *text;
        size--;
    }
    *plain = '\0';
}
