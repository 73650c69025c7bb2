/* trigram.c - predicts a text by counting: see trigram.h. */
#include "trigram.h"

#include "../../tensor/tensor.h"

#include <math.h>
#include <stdlib.h>

/* The indices of the counts for the symbol text[i] and the symbols before it. */
typedef struct {
    int64_t abc, bc, c, ab, b;
} Places;

static Places places(const Trigram *model, const uint8_t *text, int64_t i) {
    int64_t V = model->num_symbols, a = text[i - 2], b = text[i - 1], c = text[i];
    return (Places){(a * V + b) * V + c, b * V + c, c, a * V + b, b};
}

/* All counts of a symbol change together, so that the frequencies add up to exactly 1. */
static void count(Trigram *model, const uint8_t *text, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        Places at = places(model, text, i);
        model->abc[at.abc]++;
        model->bc[at.bc]++;
        model->c[at.c]++;
        model->ab[at.ab]++;
        model->b[at.b]++;
        model->all[0]++;
    }
}

/* p: 1 / V, p1, p2, p3 */
static void probabilities(const Trigram *model, const uint8_t *text, int64_t i, double p[4]) {
    Places at = places(model, text, i);
    p[0] = 1.0 / model->num_symbols;
    p[1] = model->all[0] ? (double)model->c[at.c] / model->all[0] : p[0];
    p[2] = model->b[at.b] ? (double)model->bc[at.bc] / model->b[at.b] : p[1];
    p[3] = model->ab[at.ab] ? (double)model->abc[at.abc] / model->ab[at.ab] : p[2];
}

/* w' p */
static double mix(const double w[4], const double p[4]) {
    return w[0] * p[0] + w[1] * p[1] + w[2] * p[2] + w[3] * p[3];
}

/* A step of expectation-maximisation. Suppose that each symbol was drawn from one of the four
 * models, which was chosen with probabilities w. E: the probability that it was model j is r_j =
 * w_j p_j / sum_k w_k p_k. M: w_j = the mean of r_j. Each step makes the text more probable, and
 * there is only one maximum. Returns how far w moved. */
static double improve(Trigram *model, const uint8_t *text, int64_t begin, int64_t end) {
    double r[4] = {0}, moved = 0;
    for (int64_t i = begin; i < end; i++) {
        double p[4];
        probabilities(model, text, i, p);
        double sum = mix(model->w, p);
        for (int j = 0; j < 4; j++) r[j] += model->w[j] * p[j] / sum;
    }
    for (int j = 0; j < 4; j++) {
        double w = r[j] / (double)(end - begin);
        moved = fmax(moved, fabs(w - model->w[j]));
        model->w[j] = w;
    }
    return moved;
}

static bool allocate(Trigram *model) {
    size_t V = (size_t)model->num_symbols;
    model->abc = calloc(V * V * V, sizeof *model->abc);
    model->bc = calloc(2 * V * V + 2 * V + 1, sizeof *model->bc);
    if (!model->abc || !model->bc) return tensor_fail("out of memory: the counts of trigrams");
    model->ab = model->bc + V * V;
    model->c = model->ab + V * V;
    model->b = model->c + V;
    model->all = model->b + V;
    return true;
}

bool trigram_fit(Trigram *model, const uint8_t *text, int64_t n, int num_symbols) {
    *model = (Trigram){.num_symbols = num_symbols, .w = {0.25, 0.25, 0.25, 0.25}};
    if (!allocate(model)) return false;
    int64_t counted = n - (n + 9) / 10 > 2 ? n - (n + 9) / 10 : 2;
    count(model, text, 2, counted);
    for (int i = 0; i < 100 && improve(model, text, counted, n) > 1e-6;) i++;
    count(model, text, counted, n);
    return true;
}

void trigram_free(Trigram *model) {
    free(model->abc);
    free(model->bc);
    *model = (Trigram){0};
}

double trigram_probability(const Trigram *model, const uint8_t *text, int64_t i) {
    double p[4];
    probabilities(model, text, i, p);
    return mix(model->w, p);
}

double trigram_loss(const uint8_t *text, int64_t n, int64_t end, int num_symbols) {
    Trigram model;
    double sum = trigram_fit(&model, text, n, num_symbols) ? 0 : (double)NAN;
    for (int64_t i = n + 1; sum >= 0 && i < end; i++)
        sum -= log(trigram_probability(&model, text, i));
    trigram_free(&model);
    return sum / (double)(end - n - 1);
}
