/* common_kernels.c - see common_kernels.h. */
#include "common_kernels.h"

#include <math.h>
#include <string.h>

static uint64_t draw_state;

void draws_begin(void) { draw_state = 1; }

uint32_t draw(uint32_t range) {
    draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(draw_state >> 33) % range;
}

double draw_in(double low, double high) { return low + (high - low) * draw(1 << 24) * 0x1p-24; }

double element_load(DType dtype, const void *data, int64_t i) {
    switch (dtype) {
    case F32: return (double)((const float *)data)[i];
    case F64: return ((const double *)data)[i];
    case I64: return (double)((const int64_t *)data)[i];
    default: return ((const unsigned char *)data)[i];
    }
}

void element_store(DType dtype, void *data, int64_t i, double value) {
    switch (dtype) {
    case F32: ((float *)data)[i] = (float)value; return;
    case F64: ((double *)data)[i] = value; return;
    case I64: ((int64_t *)data)[i] = (int64_t)value; return;
    default: ((bool *)data)[i] = value != 0; return;
    }
}

bool same_bits(DType dtype, const void *a, int64_t i, const void *b, int64_t j) {
    const size_t size = (size_t)dtype_size(dtype);
    if (memcmp((const char *)a + (size_t)i * size, (const char *)b + (size_t)j * size, size) == 0)
        return true;
    return dtype_is_float(dtype) && isnan(element_load(dtype, a, i)) &&
           isnan(element_load(dtype, b, j));
}

const Kernels *tables[TABLES];
const MoreKernels *more_tables[TABLES];
int table_count;

static void add_tables(const Kernels *kernels, const MoreKernels *more) {
    tables[table_count] = kernels;
    more_tables[table_count++] = more;
}

void find_tables(void) {
    table_count = 0;
    add_tables(&tensor_kernels_plain, &tensor_more_kernels_plain);
#ifdef __aarch64__
    add_tables(&tensor_kernels_neon, &tensor_more_kernels_neon);
#else
    add_tables(&tensor_kernels_baseline, &tensor_more_kernels_baseline);
#endif
#ifdef __x86_64__
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2) add_tables(&tensor_kernels_avx2, &tensor_more_kernels_avx2);
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        add_tables(&tensor_kernels_avx512, &tensor_more_kernels_avx512);
#endif
}

Kernel *kernel_at(int table, size_t field, DType type) {
    Kernel *kernel;
    const bool more = field >= sizeof(Kernels);
    const char *first = more ? (const char *)more_tables[table] : (const char *)tables[table];
    const size_t at = (more ? field - sizeof(Kernels) : field) + (size_t)type * sizeof kernel;
    memcpy(&kernel, first + at, sizeof kernel);
    return kernel;
}

bool table_fuses(int table) { return table > 0 && strcmp(tables[table]->name, "baseline") != 0; }
