/* dispatch.c - chooses the kernels when the program first needs them: the best that the CPU can
 * run, or what TAPEHEAD_ISA=baseline|avx2|avx512 asks for, if the CPU can run that. */
#include "kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_AVX
/* What a table leaves out, since vectors gain it nothing, is the baseline's. */
static void complete(Kernels *table) {
    typedef LoopKernel __attribute__((may_alias)) Slot;
    const Slot *from = &kernels_baseline.value[0][0];
    for (Slot *to = &table->value[0][0]; to < (Slot *)(table + 1); to++, from++)
        if (!*to) *to = *from;
}
#endif

static const Kernels *chosen;

static void choose(void) {
    const Kernels *best = &kernels_baseline;
#ifdef HAVE_AVX
    complete(&kernels_avx2), complete(&kernels_avx512);
    const char *isa = getenv("TAPEHEAD_ISA"), *wanted = isa ? isa : "";
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx2 && strcmp(wanted, "baseline") != 0)
        best = avx512 && strcmp(wanted, "avx2") != 0 ? &kernels_avx512 : &kernels_avx2;
#endif
    __atomic_store_n(&chosen, best, __ATOMIC_RELEASE);
}

const Kernels *kernels(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!__atomic_load_n(&chosen, __ATOMIC_ACQUIRE)) pthread_once(&once, choose);
    return chosen;
}
