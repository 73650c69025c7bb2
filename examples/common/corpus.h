/* corpus.h - a text as numbers: its characters, which are its bytes, by their place among those
 * that occur. Nothing needs to know the language; a letter of several bytes is several characters.
 */
#ifndef TAPEHEAD_EXAMPLES_CORPUS_H
#define TAPEHEAD_EXAMPLES_CORPUS_H

#include "attention_map.h"

#define CORPUS_MAX_BYTES ((int64_t)64 << 20)

typedef struct {
    int64_t size;
    int64_t held_out;   /* where the last tenth begins, which is not learned, but predicted */
    uint8_t *symbol;    /* (size), each below num_symbols */
    int num_symbols;    /* how many different bytes occur */
    uint8_t byte[256];  /* of a symbol, ascending */
    int symbol_of[256]; /* of a byte; -1 if it does not occur */
} Corpus;

/* Reads a file or, if path is NULL, all sources of Tapehead, whose folder must be the current one,
 * in a fixed order. False with an error pending if there is nothing to read, more than
 * CORPUS_MAX_BYTES, or too little for the last tenth to hold least characters. The text is the
 * caller's to corpus_free, also after a failure. */
bool corpus_read(Corpus *text, const char *path, int64_t least);
void corpus_free(Corpus *text);

/* The bytes that occur: I64 (num_symbols), yours. */
Tensor *corpus_vocabulary(const Corpus *text);

/* I64 (B, length), yours: symbols start[b] to start[b] + length - 1 for each b. */
Tensor *corpus_windows(const uint8_t *symbol, const int64_t *start, int64_t B, int64_t length);
/* The same, from B random places in the part of the text that is learned. */
Tensor *corpus_draw(const Corpus *text, int64_t B, int64_t length);

typedef struct {
    uint8_t *symbol; /* (size), and room for more */
    int64_t size;
} Passage;

/* The characters of a string or, if it is NULL, most of them from the held-out tenth, where a line
 * begins if one does; with room for so many more. An error is pending if the string is empty or has
 * a character that does not occur in the text. The symbols are the caller's to free. */
Passage corpus_passage(const Corpus *text, const char *string, int64_t most, int64_t spare);

/* I64 (1, n), yours: the last n characters of a passage, n its size but most at most. */
Tensor *corpus_last(const Passage *passage, int64_t most);

/* Labels a map of attention from each of the characters x (1, n) to each with these, and masks
 * those that come later. */
void corpus_label(const Corpus *text, const Tensor *x, AttentionMap *map);

/* Writes its bytes as they are or, to a terminal, with question marks for those that would control
 * it; newlines and tabs do no harm. */
void corpus_print(const Corpus *text, const Passage *passage, FILE *file);

#endif
