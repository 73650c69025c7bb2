/* words.h - the words of the tokens: "the cat sat" names the rows of a table whose rows are tokens.
 */
#ifndef TAPEHEAD_EXAMPLES_WORDS_H
#define TAPEHEAD_EXAMPLES_WORDS_H

#include <stdbool.h>

enum { MOST_WORDS = 64, WORD_SIZE = 24 };
typedef struct {
    int count; /* that were given; 0: the words are the usual ones */
    char word[MOST_WORDS][WORD_SIZE];
} Words;

/* Reads the words of a text, between blanks; NULL stands for the usual words. Places without a word
 * get other ones. False and an error if the text has no word, too many, or one that is too long. */
bool words_read(Words *words, const char *text);

#endif
