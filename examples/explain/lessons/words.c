/* words.c - the words of the tokens: see words.h. */
#include "words.h"

#include "../../../tensor/tensor.h"

#include <stdio.h>
#include <string.h>

static const char blanks[] = " \t\r\n";
static const char usual[] = "the cat sat on a mat while dogs ran by and birds sang in tall trees";

/* Adds the words of a text after the first `count`; returns how many there are then, or would be if
 * there were room. */
static int add(Words *words, int count, const char *text) {
    for (text += strspn(text, blanks); *text; text += strspn(text, blanks)) {
        const int size = (int)strcspn(text, blanks);
        if (size >= WORD_SIZE) tensor_fail("words: \"%.*s\" is too long for a word", size, text);
        else if (count < MOST_WORDS) snprintf(words->word[count], WORD_SIZE, "%.*s", size, text);
        text += size;
        count++;
    }
    return count;
}

bool words_read(Words *words, const char *text) {
    *words = (Words){0};
    words->count = text ? add(words, 0, text) : 0;
    if (text && words->count == 0) tensor_fail("words: \"%s\" has no word", text);
    if (words->count > MOST_WORDS)
        tensor_fail("words: %d words are too many: at most %d", words->count, MOST_WORDS);
    if (tensor_error()) return false;
    int filled = text ? words->count : add(words, 0, usual);
    for (; filled < MOST_WORDS; filled++)
        snprintf(words->word[filled], WORD_SIZE, "#%d", filled + 1);
    return true;
}
