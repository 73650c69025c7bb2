/* dispatch.c - chooses the kernels when the first kernel is needed. The fast kernels of one
 * instruction set override plain ones: the set that TAPEHEAD_ISA names (plain, baseline, neon, avx2
 * or avx512), if the CPU can run this set, else the best set that the CPU can run. The Makefile
 * defines HAVE_name for each instruction set that it compiles the kernels for. */
#include "../more/more_kernels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static Kernels chosen;
static MoreKernels more_chosen;
static bool is_chosen;

/* The two tables of an instruction set: the core's kernels, and those of tensor/more/. */
typedef struct {
    const Kernels *kernels;
    const MoreKernels *more;
} Tables;

/* Where a table has a kernel, this kernel replaces the chosen one. */
#define TAKE(to, from, field, count)                                                               \
    for (int type = 0; type < (count); type++)                                                     \
        if ((from)->field[type]) (to).field[type] = (from)->field[type];

static void override_with(Tables from) {
    chosen.name = from.kernels->name;
    for (int row = 0; row < ELEMENTWISE_COUNT; row++) {
        TAKE(chosen, from.kernels, value[row], 4)
        TAKE(chosen, from.kernels, vjp[row][0], OF_FLOAT)
        TAKE(chosen, from.kernels, vjp[row][1], OF_FLOAT)
    }
#define KERNEL(form, name, types) TAKE(chosen, from.kernels, name, OF_##types)
#include "../kernels/kernels.def"
#define KERNEL(form, name, types) TAKE(more_chosen, from.more, name, OF_##types)
#include "../more/more_kernels.def"
}

#define TABLES_OF(isa) ((Tables){&tensor_kernels_##isa, &tensor_more_kernels_##isa})

/* The tables that this CPU can run, the best ones last. Returns how many. */
static int list_tables(Tables *table) {
    int n = 0;
    table[n++] = TABLES_OF(plain);
#ifdef HAVE_baseline
    table[n++] = TABLES_OF(baseline);
#endif
#ifdef HAVE_neon
    table[n++] = TABLES_OF(neon);
#endif
#ifdef HAVE_avx2
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (avx2) table[n++] = TABLES_OF(avx2);
    if (avx2 && avx512) table[n++] = TABLES_OF(avx512);
#endif
    return n;
}

static void choose(void) {
    Tables table[8];
    const int n = list_tables(table);
    const char *wanted = getenv("TAPEHEAD_ISA");
    int best = n - 1;
    for (int i = 0; i < n; i++)
        if (wanted && strcmp(wanted, table[i].kernels->name) == 0) best = i;
    chosen = tensor_kernels_plain;
    more_chosen = tensor_more_kernels_plain;
    override_with(table[best]);
    __atomic_store_n(&is_chosen, true, __ATOMIC_RELEASE);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* In a child of fork nobody else chooses: the other thread that did is not there. glibc knows that,
 * other C libraries wait for it. */
static void renew_after_fork(void) { once = (pthread_once_t)PTHREAD_ONCE_INIT; }

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, renew_after_fork);
}

static void choose_once(void) {
    if (!__atomic_load_n(&is_chosen, __ATOMIC_ACQUIRE)) pthread_once(&once, choose);
}

const Kernels *tensor_kernels(void) {
    choose_once();
    return &chosen;
}

const MoreKernels *tensor_more_kernels(void) {
    choose_once();
    return &more_chosen;
}
