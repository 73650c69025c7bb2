/* trigram.h - how well a text can be guessed by counting: what a network must do better than.
 *
 *     p(c | a b) = w3 p3(c | a b) + w2 p2(c | b) + w1 p1(c) + w0 / V
 *
 * p3, p2 and p1 are relative frequencies, n(a b c) / n(a b ?) and so on, V the number of symbols;
 * where a b was never seen p3 is p2, and so on down. The weights say how far counting goes before
 * there is too little to count. Jelinek & Mercer 1980.
 */
#ifndef TAPEHEAD_EXAMPLES_TRIGRAM_H
#define TAPEHEAD_EXAMPLES_TRIGRAM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int num_symbols; /* V, at most 256 */
    double w[4];     /* of 1 / V, p1, p2, p3; their sum is 1 */
    /* How often c followed a b, followed b, occurred; a b and b were followed by anything. */
    uint32_t *abc, *bc, *c, *ab, *b; /* (V, V, V), (V, V), (V), (V, V), (V) */
    uint32_t *all;                   /* (1) */
} Trigram;

/* Counts in the first nine tenths of text (n), finds the weights by expectation-maximisation on the
 * last tenth of it, which then is counted too. n at least 4; each symbol below V. False with an
 * error pending. The model is the caller's to trigram_free, also after a failure. */
bool trigram_fit(Trigram *model, const uint8_t *text, int64_t n, int num_symbols);
void trigram_free(Trigram *model);

/* p(text[i] | text[i - 2] text[i - 1]) for an i of at least 2. */
double trigram_probability(const Trigram *model, const uint8_t *text, int64_t i);

/* Of a model of the first n symbols: the mean of -log p for those from n + 1 to end - 1, in nats.
 * NaN with an error pending. */
double trigram_loss(const uint8_t *text, int64_t n, int64_t end, int num_symbols);

#endif
