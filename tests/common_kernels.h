/* common_kernels.h - what the suites of kernels and loops share: elements of any type, draws, and
 * the tables that this CPU can run. */
#ifndef TESTS_COMMON_KERNELS_H
#define TESTS_COMMON_KERNELS_H

#include "../tensor/math/operations.h"

#include <check.h>

/* Check notes every assertion that it passes, with a system call; these are for the millions. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                               \
    } while (0)
#define CHECK(condition) EXPECT(condition, "%s", #condition)
#define COUNT(array)     ((int)(sizeof(array) / sizeof *(array)))

/* Knuth's 64-bit linear congruence, its upper bits. draws_begin: the same draws in every test. */
void draws_begin(void);
uint32_t draw(uint32_t range);
double draw_in(double low, double high);

double element_load(DType dtype, const void *data, int64_t i);
void element_store(DType dtype, void *data, int64_t i, double value);
/* The same bytes, or NaN and NaN: the sign of a NaN depends on the order of commuting operands. */
bool same_bits(DType dtype, const void *a, int64_t i, const void *b, int64_t j);

/* The plain table first, then those of the instruction sets, the narrowest first. */
enum { TABLES = 4 };
extern const Kernels *tables[TABLES];
extern int table_count;
void find_tables(void);
/* Does the table fuse a b + c? All that do give the same bits. */
bool table_fuses(int table);

#endif
