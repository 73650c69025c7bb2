/* common.h - what the benchmarks share: options, a clock, samples beside bursts of the machine's
 * peak, memory, and a line per result.
 *
 * A sample is a group of calls that fills 100 microseconds. The clock of a core drifts. So between
 * the samples, every ten milliseconds, a burst of multiplications and additions in registers
 * measures the peak of the core at that moment. A share of the peak is a share of this number. */
#ifndef TESTS_BENCH_COMMON_H
#define TESTS_BENCH_COMMON_H

#include "../../nn/nn.h"

typedef struct {
    int threads;         /* of the library; 1 by default */
    double seconds;      /* for the samples of one result */
    bool cpu_time;       /* measure CPU time: for a machine that other programs use */
    bool json;           /* a JSON object per line instead of a table */
    char **names;        /* which cases to run; none: all cases */
    const char *path;    /* "composed", "fused" or "" for both */
    const char *lengths; /* "256,512" */
} Options;

/* Reads the command line and sets the number of threads of the library. Exits with an error message
 * if an option does not exist. Call this before the library is used. */
Options options_read(int argc, char **argv, const char *usage);
bool chosen(const Options *options, const char *name); /* is name among options->names? */

typedef struct {
    double median, p10, min; /* microseconds per call */
    int64_t calls;
    double possible;     /* floating point operations of one core at its peak in the time of one
                          * call */
    int64_t allocations; /* calls that reached the system's allocator while samples were taken */
} Timing;

/* Warms up, then takes samples. dtype: the type whose peak is measured */
Timing measure(const Options *options, DType dtype, void (*work)(void *), void *context);

/* A module whose parameters are given tensors, for nn_zero_grad and nn_free. No optimizer moves
 * them. leaves_new takes over the tensors. */
typedef struct {
    Module module;
    Tensor *x[4];
} Leaves;
Leaves *leaves_new(int n, Tensor *const *x);

const char *isa(void); /* the instruction set that the library has chosen */
double clock_us(bool cpu_time);
double peak_memory(void);                    /* of this process until now, in MB */
int ascending(const void *a, const void *b); /* doubles, for qsort */

/* A field of the line under way: a column of the table and a key of the JSON object. */
void print_text(const Options *options, const char *key, int width, const char *text);
void print_number(const Options *options, const char *key, int width, int digits, double x);
void print_end(const Options *options); /* of the line */
void print_header(bool wanted);         /* print the names of the columns above the next line?
                                         * true at first */

/* In common_peak.c, compiled once per instruction set. Returns how many operations the rounds have.
 */
typedef double (*PeakBurst)(int64_t rounds);
#define DECLARE_PEAK(isa) double peak_f32_##isa(int64_t rounds), peak_f64_##isa(int64_t rounds)
DECLARE_PEAK(baseline);
DECLARE_PEAK(neon);
DECLARE_PEAK(avx2);
DECLARE_PEAK(avx512);

#endif
