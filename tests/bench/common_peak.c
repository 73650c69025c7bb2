/* common_peak.c - measures the peak of a core: multiplications and additions, fused if the
 * instruction set can do that. They form independent chains in registers, so a chain waits only for
 * its own last result. */
#include "common.h"

#ifdef __AVX512F__
enum { BYTES = 64, CHAINS = 24 }; /* of 32 registers */
#elif defined __AVX2__
enum { BYTES = 32, CHAINS = 12 }; /* of 16 */
#elif defined __aarch64__
enum { BYTES = 16, CHAINS = 24 }; /* of 32 */
#else
enum { BYTES = 16, CHAINS = 10 };
#endif
#ifndef ISA
#define ISA baseline
#endif

#define JOIN2(a, b) a##_##b
#define JOIN(a, b)  JOIN2(a, b)
#define UNROLL      _Pragma("GCC unroll 24")
#define PEAK(real, name)                                                                           \
    typedef real Vector_##name __attribute__((vector_size(BYTES)));                                \
    double JOIN(peak_##name, ISA)(int64_t rounds) {                                                \
        static volatile real factor = (real)0.999, summand = (real)1e-7;                           \
        const Vector_##name a = (Vector_##name){0} + factor, b = (Vector_##name){0} + summand;     \
        Vector_##name chain[CHAINS], sum = {0};                                                    \
        UNROLL for (int i = 0; i < CHAINS; i++) chain[i] = b * (real)i;                            \
        for (int64_t round = 0; round < rounds; round++)                                           \
            UNROLL for (int i = 0; i < CHAINS; i++) chain[i] = chain[i] * a + b;                   \
        UNROLL for (int i = 0; i < CHAINS; i++) sum += chain[i];                                   \
        return (double)(rounds * 2 * CHAINS * (int)(BYTES / sizeof(real)) +                        \
                        ((double)sum[0] > 1e30));                                                  \
    }
PEAK(float, f32)
PEAK(double, f64)
