/* alignment.c - which letter of a word makes which sound: see alignment.h. */
#include "alignment.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 12 };
#define EQUAL 1e-9 /* of two scores: one sum, added in another order */

/* log p of one letter that says sounds from .. to - 1 of a word */
static double says(const Alignment *a, const Word *w, int letter, int from, int to) {
    const double *log_p = a->log_p[w->letter[letter]];
    double sum = from == to ? log_p[0] : 0;
    for (int i = from; i < to; i++) sum += log_p[w->sound[i]];
    return sum;
}

/* best[l][i]: log score of the best alignment of the first l letters and the first i sounds;
 * best[l + 1][i] = max over k of best[l][i - k] + log p(letter l says sounds i - k .. i - 1)
 * Of equal alignments the one with the fewest sounds at the last letters counts: the first l of all
 * says L. */
void alignment_of(const Alignment *a, const Word *w, int letter[WORD_MAX]) {
    double best[WORD_MAX + 1][WORD_MAX + 1];
    int sounds[WORD_MAX + 1][WORD_MAX + 1]; /* of the letter before, in the best alignment */
    for (int i = 0; i <= w->num_sounds; i++) best[0][i] = i == 0 ? 0 : -(double)INFINITY;
    for (int l = 0; l < w->num_letters; l++)
        for (int i = 0; i <= w->num_sounds; i++) {
            best[l + 1][i] = -(double)INFINITY;
            sounds[l + 1][i] = 0;
            for (int k = 0; k <= SOUNDS_A_LETTER && k <= i; k++) {
                double p = best[l][i - k] + says(a, w, l, i - k, i);
                if (p <= best[l + 1][i] + EQUAL) continue;
                best[l + 1][i] = p;
                sounds[l + 1][i] = k;
            }
        }
    for (int l = w->num_letters, i = w->num_sounds; l > 0; l--)
        for (int k = sounds[l][i]; k > 0; k--) letter[--i] = l - 1;
}

/* Adds the sounds and silences of a word that is aligned. */
static void count(double counts[LETTERS][MAX_SOUNDS], const Word *w, const int *letter) {
    for (int l = 0, i = 0; l < w->num_letters; l++) {
        if (i == w->num_sounds || letter[i] != l) counts[w->letter[l]][0]++;
        for (; i < w->num_sounds && letter[i] == l; i++) counts[w->letter[l]][w->sound[i]]++;
    }
}

/* A sound that a letter never said keeps a small probability, so every word has an alignment. */
static void divide(Alignment *a, double counts[LETTERS][MAX_SOUNDS]) {
    for (int l = 0; l < LETTERS; l++) {
        double sum = 0;
        for (int s = 0; s < a->num_sounds; s++) sum += counts[l][s] + 0.01;
        for (int s = 0; s < a->num_sounds; s++) a->log_p[l][s] = log((counts[l][s] + 0.01) / sum);
    }
}

int diagonal_letter(const Word *w, int i) { return i * w->num_letters / w->num_sounds; }

/* The first round has no probabilities: the sounds are spread over the letters, beginning at the
 * first. (Words with more sounds than letters wait for the second round.) This start also decides
 * what the probabilities cannot: if two letters always stand together for one sound, as ng does,
 * the first letter says it. */
static bool align(const Alignment *a, const Word *w, int round, int letter[WORD_MAX]) {
    if (round > 0) alignment_of(a, w, letter);
    else
        for (int i = 0; i < w->num_sounds; i++) letter[i] = diagonal_letter(w, i);
    return round > 0 || w->num_sounds <= w->num_letters;
}

void alignment_learn(Alignment *a, const Dictionary *d) {
    *a = (Alignment){.num_sounds = d->num_sounds};
    for (int round = 0; round <= ROUNDS; round++) {
        double counts[LETTERS][MAX_SOUNDS] = {{0}};
        int letter[WORD_MAX] = {0};
        for (const Word *w = d->word; w < d->word + d->num_words; w++)
            if (w->part == TRAINED && align(a, w, round, letter)) count(counts, w, letter);
        divide(a, counts);
    }
}
