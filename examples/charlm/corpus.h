/* corpus.h - a text as numbers. A character is a byte, and its symbol is its index among the bytes
 * that occur in the text. Any language works; a letter of several bytes is several characters.
 */
#ifndef TAPEHEAD_EXAMPLES_CORPUS_H
#define TAPEHEAD_EXAMPLES_CORPUS_H

#include "../common/attention_map.h"

#define CORPUS_MAX_BYTES ((int64_t)64 << 20)

typedef struct {
    int64_t size;
    int64_t held_out;   /* the first character of the last tenth, which is predicted, not learned */
    uint8_t *symbol;    /* (size), each below num_symbols */
    int num_symbols;    /* how many different bytes occur */
    uint8_t byte[256];  /* of a symbol, ascending */
    int symbol_of[256]; /* of a byte; -1 if it does not occur */
} Corpus;

/* Reads a file. If path is NULL, reads the .c and .h files of examples/, tensor/, tensor/kernels/,
 * autograd/, autograd/ops/ and nn/ of Tapehead, in this order (repository.h finds them). False and
 * an error if there is no text, if the text has more than CORPUS_MAX_BYTES, or if its last tenth
 * has fewer than `least` characters. The caller calls corpus_free, also after a failure. */
bool corpus_read(Corpus *text, const char *path, int64_t least);
void corpus_free(Corpus *text);

/* The bytes that occur: I64 (num_symbols), a new reference. */
Tensor *corpus_vocabulary(const Corpus *text);

/* I64 (B, length), a new reference: symbols start[b] to start[b] + length - 1 for each b. */
Tensor *corpus_windows(const uint8_t *symbol, const int64_t *start, int64_t B, int64_t length);
/* The same, from B random places in the first nine tenths. */
Tensor *corpus_draw(const Corpus *text, int64_t B, int64_t length);

typedef struct {
    uint8_t *symbol; /* (size), with memory for more */
    int64_t size;
} Passage;

/* The characters of a string. If string is NULL: `most` characters of the held-out tenth, from the
 * beginning of a line if there is one. There is memory for `spare` more. An error if the string is
 * empty or has a character that does not occur in the text. The caller frees symbol. */
Passage corpus_passage(const Corpus *text, const char *string, int64_t most, int64_t spare);

/* I64 (1, n), a new reference: the last n characters of a passage, n = min(size, most). */
Tensor *corpus_last(const Passage *passage, int64_t most);

/* Labels a map of attention among the characters x (1, n), and masks later characters. */
void corpus_label(const Corpus *text, const Tensor *x, AttentionMap *map);

/* Writes the bytes of a passage. On a terminal, control characters except newline and tab become
 * question marks. */
void corpus_print(const Corpus *text, const Passage *passage, FILE *file);

#endif
