/* letter_table.c - pronunciation without a network: see letter_table.h. */
#include "letter_table.h"

#include <stdlib.h>

enum { LEFT = 3, RIGHT = 3, LETTER_BITS = 5, SOUND_BITS = 6 };

/* Neighbours to the left and to the right, the largest window first. What comes after a letter says
 * more about it than what comes before. */
static const struct {
    int left, right;
} sizes[WINDOWS] = {{3, 3}, {2, 3}, {2, 2}, {1, 2}, {1, 1}, {0, 1}, {0, 0}};

/* The window around letter l. 0 stands beyond the ends of the word, a letter that does not count is
 * 31. */
static uint64_t window_at(const Word *w, int l, int size) {
    uint64_t window = 0;
    for (int i = l - LEFT; i <= l + RIGHT; i++) {
        const bool inside = i >= 0 && i < w->num_letters;
        const bool counts = i >= l - sizes[size].left && i <= l + sizes[size].right;
        uint64_t letter = inside ? w->letter[i] : 0;
        if (!counts) letter = 31;
        window = window << LETTER_BITS | letter;
    }
    return window;
}

static int compare(const void *a, const void *b) {
    const Entry *x = a;
    const Entry *y = b;
    if (x->window != y->window) return x->window < y->window ? -1 : 1;
    return (x->sounds > y->sounds) - (x->sounds < y->sounds);
}

/* Sorts the entries, and keeps for each window the sounds that it has most often. Returns how many
 * windows there are. */
static int keep_most_frequent(Entry *entry, int n) {
    int windows = 0, most = 0;
    qsort(entry, (size_t)n, sizeof *entry, compare);
    for (int i = 0, end; i < n; i = end) {
        end = i;
        while (end < n && compare(&entry[end], &entry[i]) == 0) end++;
        const bool is_new = windows == 0 || entry[windows - 1].window != entry[i].window;
        if (!is_new && end - i <= most) continue;
        if (is_new) windows++;
        entry[windows - 1] = entry[i];
        most = end - i;
    }
    return windows;
}

/* Adds the letters of a word, with the sounds that the alignment gives them. */
static void add_word(LetterTable *table, const Word *w, const int *letter) {
    for (int l = 0, i = 0; l < w->num_letters; l++) {
        uint64_t sounds = 0;
        for (; i < w->num_sounds && letter[i] == l; i++)
            sounds = sounds << SOUND_BITS | w->sound[i];
        for (int size = 0; size < WINDOWS; size++)
            table->entry[size][table->num_entries[size]++] = (Entry){window_at(w, l, size), sounds};
    }
}

bool letter_table_learn(LetterTable *table, const Dictionary *d, const Alignment *alignment) {
    size_t letters = 1; /* malloc of 0 bytes may be NULL */
    int letter[WORD_MAX];
    *table = (LetterTable){{NULL}, {0}};
    for (int i = 0; i < d->num_words; i++) letters += (size_t)d->word[i].num_letters;
    for (int size = 0; size < WINDOWS; size++) {
        table->entry[size] = malloc(letters * sizeof(Entry));
        if (!table->entry[size]) return tensor_fail("out of memory for %zu letters", letters);
    }
    for (const Word *w = d->word; w < d->word + d->num_words; w++) {
        if (w->part != TRAINED) continue;
        alignment_of(alignment, w, letter);
        add_word(table, w, letter);
    }
    for (int size = 0; size < WINDOWS; size++)
        table->num_entries[size] = keep_most_frequent(table->entry[size], table->num_entries[size]);
    return true;
}

void letter_table_free(LetterTable *table) {
    for (int size = 0; size < WINDOWS; size++) free(table->entry[size]);
}

static int compare_windows(const void *a, const void *b) {
    const Entry *x = a;
    const Entry *y = b;
    return (x->window > y->window) - (x->window < y->window);
}

/* 0, silence, for a letter that the table does not know at all. */
static uint64_t look_up(const LetterTable *table, const Word *w, int l) {
    for (int size = 0; size < WINDOWS; size++) {
        const Entry key = {.window = window_at(w, l, size)};
        const Entry *found = bsearch(&key, table->entry[size], (size_t)table->num_entries[size],
                                     sizeof key, compare_windows);
        if (found) return found->sounds;
    }
    return 0;
}

int letter_table_say(const LetterTable *table, const Word *w, uint8_t sound[MOST_SAID]) {
    int n = 0;
    for (int l = 0; l < w->num_letters; l++) {
        const uint64_t sounds = look_up(table, w, l);
        for (int shift = SOUND_BITS * (SOUNDS_A_LETTER - 1); shift >= 0; shift -= SOUND_BITS) {
            const uint8_t one = sounds >> shift & ((1 << SOUND_BITS) - 1);
            if (one) sound[n++] = one;
        }
    }
    return n;
}
