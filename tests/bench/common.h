/* common.h - what the benchmarks share: options, a clock, samples beside bursts of the machine's
 * peak, memory, and a line per result.
 *
 * A sample is a group of calls, enough of them to fill 100 microseconds. Beside the samples, every
 * ten milliseconds, a burst of multiplications and additions in registers tells what a core can do
 * at that moment, since its clock drifts; a share of the peak is one of that. */
#ifndef TESTS_BENCH_COMMON_H
#define TESTS_BENCH_COMMON_H

#include "../../nn/nn.h"

typedef struct {
    int threads;         /* of the library, 1 unless told otherwise */
    double seconds;      /* to take samples for, per result */
    bool cpu_time;       /* of the process instead of the time on the wall: for a machine at work */
    bool json;           /* a JSON object per line instead of a table */
    char **names;        /* what to run, all of it if there are none */
    const char *path;    /* "composed", "fused" or "" for both */
    const char *lengths; /* "256,512" */
} Options;

/* Reads the command line, tells the library the number of threads; exits with a sentence about an
 * option that is not there. Before the library is first used. */
Options options_read(int argc, char **argv, const char *usage);
bool chosen(const Options *options, const char *name); /* is it among the names? */

typedef struct {
    double median, p10, min; /* microseconds per call */
    int64_t calls;
    double possible;     /* floating point operations of one core, at its peak, in such a call */
    int64_t allocations; /* calls that reached the system's allocator while samples were taken */
} Timing;

/* Calls work until it runs smoothly, then takes samples. dtype: whose peak */
Timing measure(const Options *options, DType dtype, void (*work)(void *), void *context);

/* Tensors that get a gradient, taken over: parameters that nobody moves. nn_zero_grad and nn_free
 * are for them, too. */
typedef struct {
    Module module;
    Tensor *x[4];
} Leaves;
Leaves *leaves_new(int n, Tensor *const *x);

const char *isa(void); /* the instruction set that the library has chosen */
double clock_us(bool cpu_time);
double peak_memory(void); /* of this process until now, in MB */

/* A field of the line under way: a column of the table and a key of the JSON object. */
void print_text(const Options *options, const char *key, int width, const char *text);
void print_number(const Options *options, const char *key, int width, int digits, double x);
void print_end(const Options *options); /* of the line */
void print_header(bool wanted);         /* the columns' names above the next line; at first, true */

/* common_peak.c, once per instruction set. Returns how many operations its rounds took. */
typedef double (*PeakBurst)(int64_t rounds);
#define DECLARE_PEAK(isa) double peak_f32_##isa(int64_t rounds), peak_f64_##isa(int64_t rounds)
DECLARE_PEAK(baseline);
DECLARE_PEAK(neon);
DECLARE_PEAK(avx2);
DECLARE_PEAK(avx512);

#endif
