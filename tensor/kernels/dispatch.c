/* dispatch.c - chooses the kernels when the program first needs them: the plain ones, overridden by
 * those of the best instruction set that the CPU can run, or of the one that TAPEHEAD_ISA names, if
 * the CPU can run that: plain, baseline, neon, avx2 or avx512. */
#include "kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static Kernels chosen;
static bool is_chosen;

/* The kernels that a table has take the place of the chosen ones. */
#define TAKE(field, count)                                                                         \
    for (int type = 0; type < (count); type++)                                                     \
        if (from->field[type]) chosen.field[type] = from->field[type];

static void override_with(const Kernels *from) {
    chosen.name = from->name;
    for (int row = 0; row < ELEMENTWISE_COUNT; row++) {
        TAKE(value[row], 4)
        TAKE(vjp[row][0], OF_FLOAT)
        TAKE(vjp[row][1], OF_FLOAT)
    }
#define KERNEL(name, types) TAKE(name, OF_##types)
#include "kernels.def"
    TAKE(sum_rows, OF_FLOAT)
    TAKE(layer_norm_dw, OF_FLOAT)
    TAKE(additive_dx, OF_FLOAT)
    TAKE(matmul, OF_NUMBER)
    TAKE(matmul_workspace, OF_NUMBER)
    TAKE(attention, OF_FLOAT)
    TAKE(attention_dx, OF_FLOAT)
    TAKE(attention_workspace, OF_FLOAT)
}

static const Kernels *best_for(const char *wanted) {
    const Kernels *best = &tensor_kernels_baseline;
    if (strcmp(wanted, "plain") == 0) return &tensor_kernels_plain;
#ifdef HAVE_AVX
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (!avx2 || strcmp(wanted, "baseline") == 0) return best;
    best = &tensor_kernels_avx2;
    if (avx512 && strcmp(wanted, "avx2") != 0) best = &tensor_kernels_avx512;
#endif
    return best;
}

static void choose(void) {
    const char *isa = getenv("TAPEHEAD_ISA");
    chosen = tensor_kernels_plain;
    override_with(best_for(isa ? isa : ""));
    __atomic_store_n(&is_chosen, true, __ATOMIC_RELEASE);
}

const Kernels *tensor_kernels(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!__atomic_load_n(&is_chosen, __ATOMIC_ACQUIRE)) pthread_once(&once, choose);
    return &chosen;
}
