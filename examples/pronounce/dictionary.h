/* dictionary.h - words as letters and as sounds, their split into parts, and batches of them.
 *
 * A line of the file is a word and its sounds, "knight N AY T". A line that begins with # is a
 * comment. Letters are a to z; the sounds are all that the file has. Each line is a word of its
 * own, also if a word stands there twice, with other sounds. */
#ifndef TAPEHEAD_EXAMPLES_DICTIONARY_H
#define TAPEHEAD_EXAMPLES_DICTIONARY_H

#include "../../nn/nn.h"

enum {
    WORD_MAX = 30,       /* letters or sounds of a word */
    LETTERS = 27,        /* a is 1, z is 26; 0 stands after the end of a word */
    MAX_SOUNDS = 64,     /* different sounds; 0 is the end of a word, and its beginning */
    SOUNDS_A_LETTER = 2, /* a word has at most so many sounds for each of its letters: x, K S */
    MOST_SAID = SOUNDS_A_LETTER * WORD_MAX, /* sounds that a model or a table may say */
    SHOWN_MAX = 16
};

/* Words with the same first four letters are a family: light, lights, lighter. A family is in one
 * part as a whole. Otherwise most held-out words would have an inflection among the trained ones,
 * and a model that only copies would look good. Of twenty families sixteen are trained on; choices
 * (of a design, of a rate) are made by HELD_OUT, and FINAL is for the numbers that are reported.
 * SHOWN: what --show names, and the family of a word of the file, unless they are HELD_OUT or FINAL
 * anyway. */
typedef enum { TRAINED, HELD_OUT, FINAL, SHOWN } Part;

typedef struct {
    char text[WORD_MAX + 1];
    int num_letters, num_sounds; /* num_sounds is 0 for a shown word that is not in the file */
    uint8_t letter[WORD_MAX], sound[WORD_MAX];
    int family;
    Part part;
} Word;

/* N words, T letters of the longest, S - 1 sounds of the longest. */
typedef struct {
    Tensor *letters; /* (N, T) */
    Tensor *lengths; /* (N): letters of each */
    Tensor *before;  /* (N, S): the sounds of a word, after a 0 */
    Tensor *answers; /* (N, S): the sounds, then a 0, then NO_SOUND */
} Batch;
enum { NO_SOUND = -100 };

typedef struct {
    Word *word;
    int num_words, num_in_file;      /* shown words that are not in the file come last */
    char sound[MAX_SOUNDS][8];       /* the name of each sound */
    int num_sounds;                  /* the end of a word included */
    int shown[SHOWN_MAX], num_shown; /* words to show */
    Tensor *trained;                 /* the numbers of the words that are trained on, a list */
    Batch all;
} Dictionary;

/* Reads a file. `shown` lists words to show, "knight,light": any spelling of letters, and capitals
 * count as small letters. False and an error if the file is no dictionary, if one of its parts has
 * no word, or if the list has no word, too many, or something that is no word. The caller calls
 * dictionary_free, also after a failure. */
bool dictionary_read(Dictionary *d, const char *path, const char *shown);
void dictionary_free(Dictionary *d);

/* I64 (2), a new reference: how many words the file has, and a hash of all words and sounds. */
Tensor *dictionary_fingerprint(const Dictionary *d);
/* BOOL (num_in_file), a new reference: which words are trained on. */
Tensor *dictionary_is_trained(const Dictionary *d);

/* The words with these numbers, I64 (B), as long as the longest of them; the open tape owns it. */
Batch dictionary_batch(const Dictionary *d, Tensor *numbers);
/* B random words that are trained on. */
Batch dictionary_draw(const Dictionary *d, int64_t B);
/* Collects numbers of words of this part, from word *next on, at most B, and moves *next past them.
 * NULL at the end. The open tape owns it. */
Tensor *dictionary_part(const Dictionary *d, Part part, int *next, int B);

#endif
