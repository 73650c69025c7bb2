/* alignment.h - which letter of a word makes which sound? Learned from words alone, by hard
 * expectation-maximisation: align all words with the probabilities of now, count, and divide.
 *
 * Letters say sounds from left to right. A letter says nothing, or one sound, or two (the x of box
 * says K S). The score of an alignment is the product of p(sound | letter) over all sounds, and
 * of p(silence | letter) over all silent letters. Viterbi's algorithm finds the alignment of a word
 * with the largest score. */
#ifndef TAPEHEAD_EXAMPLES_ALIGNMENT_H
#define TAPEHEAD_EXAMPLES_ALIGNMENT_H

#include "dictionary.h"

typedef struct {
    double log_p[LETTERS][MAX_SOUNDS]; /* log p(sound | letter); sound 0 is silence */
    int num_sounds;
} Alignment;

/* Learns from the words that are trained on. */
void alignment_learn(Alignment *a, const Dictionary *d);

/* The letter of sound i if the sounds are spread evenly over the letters: what needs no learning,
 * where the learning begins, and the bar for it. */
int diagonal_letter(const Word *word, int i);

/* letter[i] becomes the index of the letter that says sound i. */
void alignment_of(const Alignment *a, const Word *word, int letter[WORD_MAX]);

#endif
