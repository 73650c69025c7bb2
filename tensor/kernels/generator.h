/* generator.h - PyTorch's CPU generator, and random numbers made from its words. See twister.c. */
#ifndef TAPEHEAD_TENSOR_GENERATOR_H
#define TAPEHEAD_TENSOR_GENERATOR_H

#include "../tensor.h"

enum { GENERATOR_WORDS = 624 };

typedef struct {
    uint32_t state[GENERATOR_WORDS];
    int next;        /* index of the next word to temper; GENERATOR_WORDS: twist state first */
    bool seeded;     /* false: behave as if seeded with 0 */
    bool has_cached; /* the second value of a Box-Muller pair is waiting */
    double cached;
} Generator;

void tensor_generator_seed(Generator *g, uint32_t seed);

/* A generator as whole numbers: the words, how many of them are used, whether a normal is cached,
 * and the bits of that normal. False, and g unchanged, if the numbers are not the state of a
 * generator. */
enum { GENERATOR_NUMBERS = GENERATOR_WORDS + 3 };
void tensor_generator_to_numbers(const Generator *g, int64_t *numbers);
bool tensor_generator_from_numbers(Generator *g, const int64_t *numbers);

/* Each function fills n places in PyTorch's order, with PyTorch's number of draws. dtype: F32 or
 * F64. Integers stay below high. */
void tensor_draw_units(Generator *g, DType dtype, int64_t n, void *x); /* in [0, 1) */
void tensor_draw_uniforms(Generator *g, DType dtype, int64_t n, void *x, double low, double high);
void tensor_draw_normals(Generator *g, DType dtype, int64_t n, void *x, double mean, double std);
void tensor_draw_bools(Generator *g, int64_t n, bool *x, double p); /* true with probability p */
void tensor_draw_integers(Generator *g, int64_t n, int64_t *x, int64_t low, int64_t high);
void tensor_draw_permutation(Generator *g, int64_t n, int64_t *x); /* of 0 .. n-1 */

#endif
