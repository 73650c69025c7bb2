/* letter_table.h - pronunciation without a network: what a letter says is looked up in a table of
 * the letters around it. The bar for the network.
 *
 * From aligned words the table knows what each letter said between its three neighbours to the left
 * and its three to the right. For a new word the most frequent answer of that window counts; if the
 * window is not in the table, that of a smaller window, and at the end that of the letter alone. */
#ifndef TAPEHEAD_EXAMPLES_LETTER_TABLE_H
#define TAPEHEAD_EXAMPLES_LETTER_TABLE_H

#include "alignment.h"

enum { WINDOWS = 7 }; /* how many sizes a window may have */

typedef struct {
    uint64_t window; /* 3 + 1 + 3 letters of 5 bits */
    uint64_t sounds; /* what the letter in the middle says: 6 bits for each sound */
} Entry;

typedef struct {
    Entry *entry[WINDOWS]; /* sorted by window */
    int num_entries[WINDOWS];
} LetterTable;

/* Learns from the words that are trained on. False and an error without memory. The caller calls
 * letter_table_free, also after a failure. */
bool letter_table_learn(LetterTable *table, const Dictionary *d, const Alignment *alignment);
void letter_table_free(LetterTable *table);

/* Writes the sounds of a word, and returns their number. */
int letter_table_say(const LetterTable *table, const Word *word, uint8_t sound[MOST_SAID]);

#endif
