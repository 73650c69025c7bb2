/* score.h - how good is a pronunciation, and where does the model look? */
#ifndef TAPEHEAD_EXAMPLES_SCORE_H
#define TAPEHEAD_EXAMPLES_SCORE_H

#include "encoder_decoder.h"
#include "letter_table.h"

/* Sums over words. wrong: edits, the distance of what was said from what is right. */
typedef struct {
    double words, right, table_right;
    double sounds, wrong, table_wrong;
} Tally;

typedef struct {
    Tally by_length[WORD_MAX + 1]; /* by the number of letters */
    Tally all;

    /* A look is the letter with the largest weight, for each sound of the dictionary, given the
     * right sounds before it. All are 0 for a model without weights, "last". */
    double steps, left;            /* from a sound to the next one; looks that go to the left */
    double agree;                  /* looks at the letter of the alignment */
    double diagonal;               /* sounds whose diagonal_letter is that letter */
    double silent, sounding;       /* letters that say nothing, letters that say something */
    double on_silent, on_sounding; /* the weight on them, a sum over the sounds of the word */
} Score;

/* How many insertions, deletions and changes of a sound make b of a. Levenshtein 1966 */
int edit_distance(const uint8_t *a, int n, const uint8_t *b, int m);

/* Lets the model and the table say each word of the part. */
Score score_of(EncoderDecoder *net, const Dictionary *d, const Alignment *alignment,
               const LetterTable *table, Part part);

#endif
