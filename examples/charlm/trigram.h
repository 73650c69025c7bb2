/* trigram.h - predicts a text by counting. A network must predict better than counting.
 *
 *     p(c | a b) = w3 p3(c | a b) + w2 p2(c | b) + w1 p1(c) + w0 / V
 *
 * p3, p2 and p1 are relative frequencies, n(a b c) / n(a b ?) and so on; V is the number of
 * symbols. If a b never occurred, p3 is p2; if b never did, p2 is p1. Longer contexts predict
 * better but occur less often, and the weights balance the two. Jelinek & Mercer 1980.
 */
#ifndef TAPEHEAD_EXAMPLES_TRIGRAM_H
#define TAPEHEAD_EXAMPLES_TRIGRAM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int num_symbols; /* V, at most 256 */
    double w[4];     /* of 1 / V, p1, p2, p3; their sum is 1 */
    /* counts: c after a b, c after b, c; any symbol after a b, any symbol after b */
    uint32_t *abc, *bc, *c, *ab, *b; /* (V, V, V), (V, V), (V), (V, V), (V) */
    uint32_t *all;                   /* (1) */
} Trigram;

/* Counts in the first nine tenths of text (n), finds the weights on the last tenth by
 * expectation-maximisation, then also counts the last tenth. n >= 4; each symbol below V. False and
 * an error on failure. The caller calls trigram_free, also after a failure. */
bool trigram_fit(Trigram *model, const uint8_t *text, int64_t n, int num_symbols);
void trigram_free(Trigram *model);

/* p(text[i] | text[i - 2] text[i - 1]), i >= 2 */
double trigram_probability(const Trigram *model, const uint8_t *text, int64_t i);

/* Fits a model to the first n symbols. Returns the mean of -log p of symbols n + 1 to end - 1, in
 * nats; NaN and an error on failure. */
double trigram_loss(const uint8_t *text, int64_t n, int64_t end, int num_symbols);

#endif
