/* dispatch.c - chooses the kernels when the program first needs them: the best that the CPU can
 * run, or what TAPEHEAD_ISA=baseline|avx2|avx512 asks for, if the CPU can run that. */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_AVX
static const Kernels *best(const char *wanted) {
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (strcmp(wanted, "baseline") == 0) return &kernels_baseline;
    if (strcmp(wanted, "avx2") == 0) avx512 = false;
    return avx512 ? &kernels_avx512 : avx2 ? &kernels_avx2 : &kernels_baseline;
}
#else
static const Kernels *best(const char *wanted) {
    (void)wanted;
    return &kernels_baseline;
}
#endif

const Kernels *kernels(void) {
    /* Threads that race here all store the same pointer. */
    static const Kernels *chosen;
    const Kernels *table = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (!table) {
        const char *wanted = getenv("TAPEHEAD_ISA");
        table = best(wanted ? wanted : "");
        __atomic_store_n(&chosen, table, __ATOMIC_RELAXED);
    }
    return table;
}
