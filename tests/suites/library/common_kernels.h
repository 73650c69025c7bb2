/* common_kernels.h - what the suites of kernels and loops share: elements of any type, draws, and
 * the tables that this CPU can run. */
#ifndef TESTS_COMMON_KERNELS_H
#define TESTS_COMMON_KERNELS_H

#include "../../../tensor/operations/operations.h"
#include "../../../tensor/more/more_kernels.h"

#include <check.h>

/* Check makes a system call for every assertion. EXPECT makes none, for tests with millions of
 * assertions. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                               \
    } while (0)
#define CHECK(condition) EXPECT(condition, "%s", #condition)
#define COUNT(array)     ((int)(sizeof(array) / sizeof *(array)))

/* Knuth's 64-bit linear congruential generator; only its upper bits are used. draws_begin seeds it,
 * so that every test draws the same numbers. */
void draws_begin(void);
uint32_t draw(uint32_t range);
double draw_in(double low, double high);

double element_load(DType dtype, const void *data, int64_t i);
void element_store(DType dtype, void *data, int64_t i, double value);
/* The same bytes, or NaN and NaN: the sign of a NaN depends on the order of commuting operands. */
bool same_bits(DType dtype, const void *a, int64_t i, const void *b, int64_t j);

/* First the plain table, then the tables of the instruction sets; narrow vectors come before wide
 * ones. */
enum { TABLES = 4 };
extern const Kernels *tables[TABLES];
extern const MoreKernels *more_tables[TABLES]; /* of the same instruction sets */
extern int table_count;
void find_tables(void);
/* A field of Kernels or of MoreKernels, and what it holds in both tables of an instruction set. */
#define CORE_FIELD(name) offsetof(Kernels, name)
#define MORE_FIELD(name) (sizeof(Kernels) + offsetof(MoreKernels, name))
Kernel *kernel_at(int table, size_t field, DType type);
/* Does the table fuse a b + c? All tables that fuse give the same bits. */
bool table_fuses(int table);

#endif
