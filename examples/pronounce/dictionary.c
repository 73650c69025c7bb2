/* dictionary.c - words and their sounds: see dictionary.h. The sections: reading, the split, words
 * to show, batches. */
#include "dictionary.h"

#include "../common/plural.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------- */

static bool is_small(char c) { return c >= 'a' && c <= 'z'; } /* in every locale */

/* True if the first n characters of text are a word; then *word has its letters. */
static bool spell(Word *word, const char *text, size_t n) {
    *word = (Word){.num_letters = (int)n};
    if (n < 1 || n > WORD_MAX) return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (!is_small(c)) return false;
        word->text[i] = c;
        word->letter[i] = (uint8_t)(c - 'a' + 1);
    }
    return true;
}

/* The number of a sound; a new sound gets the next number. -1 if there is no room for it. */
static int sound_number(Dictionary *d, const char *name, size_t n) {
    for (int s = 1; s < d->num_sounds; s++)
        if (strlen(d->sound[s]) == n && memcmp(d->sound[s], name, n) == 0) return s;
    if (d->num_sounds == MAX_SOUNDS || n >= sizeof *d->sound) return -1;
    memcpy(d->sound[d->num_sounds], name, n);
    return d->num_sounds++;
}

static const char blanks[] = " \t\r\n";

/* "knight N AY T" */
static bool read_line(Dictionary *d, const char *line, Word *word) {
    size_t n = strcspn(line, blanks);
    if (!spell(word, line, n))
        return tensor_fail("it does not begin with a word of 1 to %d letters a to z", WORD_MAX);
    line += n + strspn(line + n, blanks);
    for (; *line; line += n + strspn(line + n, blanks)) {
        n = strcspn(line, blanks);
        int sound = sound_number(d, line, n);
        if (sound < 0)
            return tensor_fail(
                "a sound has more than %zu bytes, or there are more than %d different "
                "sounds",
                sizeof *d->sound - 1, MAX_SOUNDS - 1);
        if (word->num_sounds == WORD_MAX)
            return tensor_fail("the word has more than %d sounds", WORD_MAX);
        word->sound[word->num_sounds++] = (uint8_t)sound;
    }
    if (word->num_sounds == 0) return tensor_fail("the word has no sound");
    return word->num_sounds <= SOUNDS_A_LETTER * word->num_letters ||
           tensor_fail("the word has more than %d sounds for each letter", SOUNDS_A_LETTER);
}

static bool append(Dictionary *d, const Word *word) {
    if ((d->num_words & (d->num_words - 1)) == 0) { /* full: 0, 1, 2, 4 ... words */
        size_t room = d->num_words ? 2 * (size_t)d->num_words : 1;
        Word *more = realloc(d->word, room * sizeof *more);
        if (!more) return tensor_fail("out of memory for %zu words", room);
        d->word = more;
    }
    d->word[d->num_words++] = *word;
    return true;
}

/* Puts a line before the pending error. */
static bool name_the_line(const char *path, int64_t number, char *line) {
    const char *reason = tensor_error();
    tensor_clear_error();
    return tensor_fail("%s:%lld: \"%s\": %s", path, (long long)number,
                       tensor_name_text(strtok(line, "\r\n")), reason);
}

static bool read_lines(Dictionary *d, FILE *file, const char *path) {
    char line[512];
    Word word;
    for (int64_t number = 1; fgets(line, sizeof line, file); number++) {
        if (!strchr(line, '\n') && !feof(file))
            return tensor_fail("%s:%lld: the line has more than %zu bytes, or a byte 0", path,
                               (long long)number, sizeof line - 2);
        if (*line == '#' || !line[strspn(line, blanks)]) continue;
        if (!read_line(d, line, &word)) return name_the_line(path, number, line);
        if (!append(d, &word)) return false;
    }
    return !ferror(file) || tensor_fail("cannot read %s: %s", path, strerror(errno));
}

/* ---- the split ------------------------------------------------------------------------------- */

enum { BEGINNINGS = LETTERS * LETTERS * LETTERS * LETTERS };

/* Numbers the families in the order in which they begin. */
static bool number_families(Dictionary *d) {
    int *family = calloc(BEGINNINGS, sizeof *family); /* of four letters: its number + 1 */
    int families = 0;
    if (!family) return tensor_fail("out of memory");
    for (Word *w = d->word; w < d->word + d->num_words; w++) {
        int beginning = 0;
        for (int i = 0; i < 4; i++)
            beginning = beginning * LETTERS + (i < w->num_letters ? w->letter[i] : 0);
        if (!family[beginning]) family[beginning] = ++families;
        w->family = family[beginning] - 1;
    }
    free(family);
    return true;
}

/* FINAL is 4 and 19, so that no word that pronounce shows by default is trained on: knight and taxi
 * are in these families. */
static Part part_of_family(int family) {
    switch (family % 20) {
    case 0:
    case 10: return HELD_OUT;
    case 4:
    case 19: return FINAL;
    default: return TRAINED;
    }
}

/* Each part must have a word. */
static bool check_parts(const Dictionary *d, const char *path) {
    int words[SHOWN + 1] = {0};
    for (int i = 0; i < d->num_words; i++) words[d->word[i].part]++;
    if (words[TRAINED] && words[HELD_OUT] && words[FINAL]) return true;
    return tensor_fail("%s: a dictionary of %d word%s is too short for three parts", path,
                       d->num_in_file, plural(d->num_in_file));
}

/* ---- words to show --------------------------------------------------------------------------- */

/* The number of a word in the file; a word that is not there is appended. -1 on error. */
static int find(Dictionary *d, const Word *word) {
    for (int i = 0; i < d->num_words; i++)
        if (strcmp(d->word[i].text, word->text) == 0) return i;
    return append(d, word) ? d->num_words - 1 : -1;
}

static bool read_shown(Dictionary *d, const char *list) {
    static const char between[] = ", \t\r\n";
    Word word;
    size_t n;
    for (const char *at = list + strspn(list, between); *at; at += n + strspn(at + n, between)) {
        n = strcspn(at, between);
        if (!spell(&word, at, n))
            return tensor_fail(
                "--show: \"%s\" does not begin with a word of 1 to %d letters a to z",
                tensor_name_text(at), WORD_MAX);
        if (d->num_shown == SHOWN_MAX)
            return tensor_fail("--show: there are more than %d words", SHOWN_MAX);
        int found = find(d, &word);
        if (found < 0) return false;
        d->shown[d->num_shown++] = found;
    }
    return d->num_shown > 0 ||
           tensor_fail("--show: there is no word in \"%s\"", tensor_name_text(list));
}

/* A word that is not in the file is not trained on anyway, so its family may be. */
static void hold_out_shown(Dictionary *d) {
    for (int i = 0; i < d->num_shown; i++) {
        if (d->shown[i] >= d->num_in_file) continue;
        const int family = d->word[d->shown[i]].family;
        for (Word *w = d->word; w < d->word + d->num_words; w++)
            if (w->family == family && w->part == TRAINED) w->part = SHOWN;
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

/* x after `before` (if it is not negative), with `after` at its end. */
static Tensor *list_of(const uint8_t *x, int n, int64_t before, int64_t after) {
    int64_t list[WORD_MAX + 1];
    int length = 0;
    if (before >= 0) list[length++] = before;
    for (int i = 0; i < n; i++) list[length++] = x[i];
    if (after >= 0) list[length++] = after;
    return tape_own(tensor_from_int64s(SHAPE(length), list));
}

static Tensor *padded(Tensor **list, int n, double value) {
    return tensor_retain(ag_pad_sequence(list, n, value));
}

/* All words as one batch, and the list of those that are trained on. */
static bool make_tensors(Dictionary *d) {
    const int N = d->num_words;
    Tensor **list = malloc(3 * (size_t)N * sizeof *list);
    int64_t *number = malloc(2 * (size_t)N * sizeof *number), trained = 0;
    if (!list || !number) tensor_fail("out of memory for %d words", N);
    tape_begin_no_grad();
    for (int i = 0; i < N && !tensor_error(); i++) {
        const Word *w = &d->word[i];
        list[i] = list_of(w->letter, w->num_letters, -1, -1);
        list[N + i] = list_of(w->sound, w->num_sounds, 0, -1);
        list[2 * N + i] = list_of(w->sound, w->num_sounds, -1, 0);
        number[N + i] = w->num_letters;
        if (w->part == TRAINED) number[trained++] = i;
    }
    if (!tensor_error()) {
        d->all = (Batch){padded(list, N, 0), tensor_from_int64s(SHAPE(N), number + N),
                         padded(list + N, N, 0), padded(list + 2 * N, N, NO_SOUND)};
        d->trained = tensor_from_int64s(SHAPE(trained), number);
    }
    tape_end();
    free(list);
    free(number);
    return !tensor_error();
}

bool dictionary_read(Dictionary *d, const char *path, const char *shown) {
    *d = (Dictionary){.num_sounds = 1, .sound = {"."}};
    FILE *file = fopen(path, "rb");
    if (!file) return tensor_fail("cannot read %s: %s", path, strerror(errno));
    bool ok = read_lines(d, file, path);
    fclose(file);
    d->num_in_file = d->num_words;
    if (!ok || !read_shown(d, shown) || !number_families(d)) return false;
    for (int i = 0; i < d->num_words; i++)
        d->word[i].part = i < d->num_in_file ? part_of_family(d->word[i].family) : SHOWN;
    hold_out_shown(d);
    return check_parts(d, path) && make_tensors(d);
}

void dictionary_free(Dictionary *d) {
    Tensor *const all[] = {d->all.letters, d->all.lengths, d->all.before, d->all.answers};
    for (int i = 0; i < 4; i++) tensor_release(all[i]);
    tensor_release(d->trained);
    free(d->word);
    *d = (Dictionary){0};
}

/* FNV-1a, of 53 bits: a number that a float64 holds. Fowler, Noll & Vo 1991 */
static uint64_t hash_text(uint64_t hash, const char *text) {
    do hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return hash;
}

Tensor *dictionary_fingerprint(const Dictionary *d) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int n = 0; n < d->num_in_file; n++) {
        const Word *w = &d->word[n];
        hash = hash_text(hash, w->text);
        for (int i = 0; i < w->num_sounds; i++) hash = hash_text(hash, d->sound[w->sound[i]]);
    }
    const int64_t both[] = {d->num_in_file, (int64_t)(hash >> 11)};
    return tensor_from_int64s(SHAPE(2), both);
}

Tensor *dictionary_is_trained(const Dictionary *d) {
    Tensor *trained = tensor_zeros_of(SHAPE(d->num_in_file), BOOL);
    for (int i = 0; trained && i < d->num_in_file; i++)
        tensor_set(trained, d->word[i].part == TRAINED, i);
    return trained;
}

Batch dictionary_batch(const Dictionary *d, Tensor *numbers) {
    const int64_t B = tensor_size(numbers, 0);
    int64_t letters = 1, sounds = 0;
    for (int64_t b = 0; b < B; b++) {
        const Word *w = &d->word[(int)tensor_get(numbers, b)];
        if (w->num_letters > letters) letters = w->num_letters;
        if (w->num_sounds > sounds) sounds = w->num_sounds;
    }
    const Batch *all = &d->all;
    return (Batch){ag_slice(ag_index_select(all->letters, 0, numbers), 1, 0, letters),
                   ag_index_select(all->lengths, 0, numbers),
                   ag_slice(ag_index_select(all->before, 0, numbers), 1, 0, sounds + 1),
                   ag_slice(ag_index_select(all->answers, 0, numbers), 1, 0, sounds + 1)};
}

Batch dictionary_draw(const Dictionary *d, int64_t B) {
    Tensor *drawn = tape_own(tensor_randint(0, tensor_size(d->trained, 0), SHAPE(B)));
    return dictionary_batch(d, ag_index_select(d->trained, 0, drawn));
}

Tensor *dictionary_part(const Dictionary *d, Part part, int *next, int B) {
    Tensor *numbers = tensor_empty_of(SHAPE(B), I64);
    int n = 0;
    for (; numbers && *next < d->num_words && n < B; ++*next)
        if (d->word[*next].part == part) tensor_set(numbers, *next, n++);
    tape_own(numbers);
    return n > 0 ? ag_slice(numbers, 0, 0, n) : NULL;
}
