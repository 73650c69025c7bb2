/* common.c - options, clock, samples, bursts, memory, lines. */
#include "common.h"
#include "../../tensor/kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

/* ---- the system's allocator, counted (linked with --wrap, see the Makefile) ------------------ */

static int64_t allocations;
#define COUNTED(type, name, parameters, arguments)                                                 \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters { return allocations++, __real_##name arguments; }
COUNTED(void *, malloc, (size_t size), (size))
COUNTED(void *, calloc, (size_t n, size_t size), (n, size))
COUNTED(void *, realloc, (void *block, size_t size), (block, size))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
COUNTED(int, posix_memalign, (void **block, size_t alignment, size_t size),
        (block, alignment, size))
COUNTED(void *, mmap, (void *at, size_t size, int protection, int flags, int file, off_t offset),
        (at, size, protection, flags, file, offset))

/* ---- options --------------------------------------------------------------------------------- */

static void refuse(const char *usage, const char *what) {
    fprintf(stderr, "%s: not an option, or not complete\nusage: %s\n", what, usage);
    exit(2);
}

Options options_read(int argc, char **argv, const char *usage) {
    Options o = {.threads = 1, .seconds = 1, .path = "", .lengths = "256,512,1024,2048"};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--json") == 0) o.json = true;
        else if (strcmp(option, "--cpu-time") == 0) o.cpu_time = true;
        else if (++i == argc) refuse(usage, option);
        else if (strcmp(option, "--threads") == 0) o.threads = atoi(argv[i]);
        else if (strcmp(option, "--seconds") == 0) o.seconds = atof(argv[i]);
        else if (strcmp(option, "--path") == 0) o.path = argv[i];
        else if (strcmp(option, "--lengths") == 0) o.lengths = argv[i];
        else refuse(usage, option);
    }
    o.names = argv + i;
    char threads[16];
    snprintf(threads, sizeof threads, "%d", o.threads);
    setenv("TAPEHEAD_NUM_THREADS", threads, 1);
    return o;
}

bool chosen(const Options *options, const char *name) {
    for (char **names = options->names; *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return !options->names[0];
}

/* ---- clock and peak -------------------------------------------------------------------------- */

double clock_us(bool cpu_time) {
    struct timespec t;
    clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

const char *isa(void) { return tensor_kernels()->name; }

static PeakBurst peak_burst(DType dtype) {
#ifdef __aarch64__
    return dtype == F64 ? peak_f64_neon : peak_f32_neon;
#else
#ifdef __x86_64__
    if (strcmp(isa(), "avx512") == 0) return dtype == F64 ? peak_f64_avx512 : peak_f32_avx512;
    if (strcmp(isa(), "avx2") == 0) return dtype == F64 ? peak_f64_avx2 : peak_f32_avx2;
#endif
    return dtype == F64 ? peak_f64_baseline : peak_f32_baseline;
#endif
}

/* Operations per microsecond of one core: the largest rate of a few bursts of about 20
 * microseconds. One burst is not enough: the clock may be low at first, or another process may have
 * the core. */
static double peak_now(PeakBurst burst, bool cpu_time) {
    double best = 0;
    for (int i = 0; i < 5; i++) {
        double start = clock_us(cpu_time), operations = burst(4000);
        double rate = operations / (clock_us(cpu_time) - start);
        if (rate > best) best = rate;
    }
    return best;
}

/* ---- samples --------------------------------------------------------------------------------- */

enum { MAX_WARM_UP = 2000, MAX_SAMPLES = 4096 };

int ascending(const void *a, const void *b) {
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* Must a loop go on that has made n calls in `passed` seconds? It makes at least `least` calls,
 * unless they take more than `very_long` seconds, and it runs for at least `fill` seconds. */
static bool goes_on(int n, double passed, int least, double very_long, double fill) {
    return n == 0 || (n < least && passed < very_long) || passed < fill;
}

/* Calls work until it has allocated all that it keeps and the clock has reached its full rate.
 * Returns how many calls make a sample: they fill 100 microseconds, or more if there would be too
 * many samples. */
static int warm_up(const Options *options, void (*work)(void *), void *context) {
    const double start = clock_us(options->cpu_time);
    const double fill = options->seconds < 1 ? options->seconds : 1;
    double passed = 0;
    int n = 0;
    while (n < MAX_WARM_UP && goes_on(n, passed, 3, 10, fill)) {
        work(context);
        n++;
        passed = 1e-6 * (clock_us(options->cpu_time) - start);
    }
    double group = fmax(100e-6, options->seconds / MAX_SAMPLES) / (passed / n);
    return group < 1 ? 1 : (int)group;
}

Timing measure(const Options *options, DType dtype, void (*work)(void *), void *context) {
    static double us[MAX_SAMPLES], possible[MAX_SAMPLES];
    const bool cpu = options->cpu_time;
    const PeakBurst burst = peak_burst(dtype);
    const int group = warm_up(options, work, context);
    const int64_t before = allocations;
    double start = clock_us(cpu), now = start, last_burst = 0, peak = 0;
    int n = 0;
    while (n < MAX_SAMPLES && goes_on(n, 1e-6 * (now - start), 5, 30, options->seconds)) {
        double from = clock_us(cpu);
        for (int i = 0; i < group; i++) work(context);
        now = clock_us(cpu);
        us[n] = (now - from) / group;
        if (now - last_burst > 1e4) {
            peak = peak_now(burst, cpu);
            last_burst = clock_us(cpu);
        }
        possible[n] = us[n] * peak;
        n++;
    }
    qsort(us, n, sizeof *us, ascending);
    qsort(possible, n, sizeof *possible, ascending);
    Timing t = {.median = us[n / 2], .p10 = us[n / 10], .min = us[0], .possible = possible[n / 2]};
    t.calls = (int64_t)n * group;
    t.allocations = allocations - before;
    return t;
}

/* ---- leaves, memory, lines ------------------------------------------------------------------- */

Leaves *leaves_new(int n, Tensor *const *x) {
    static const ModuleClass kind = {"Leaves", sizeof(Leaves), NULL, NULL};
    Leaves *leaves = nn_module_new(&kind);
    for (int i = 0; i < n; i++)
        nn_add_parameter(leaves, (char[]){'x', (char)('0' + i), '\0'}, &leaves->x[i], x[i]);
    return nn_module_done(leaves);
}

double peak_memory(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

/* The names of the columns are printed above the first line, so this line is kept until it is
 * complete. */
static char header[512], line[1024];
static bool header_wanted = true;

static void add(char *text, size_t size, int width, const char *what) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%*s ", width, what);
}

static void field(const Options *options, const char *key, int width, const char *text,
                  const char *quote) {
    if (options->json) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s\"%s\": %s%s%s", used ? ", " : "{", key, quote,
                 text, quote);
        return;
    }
    add(header, sizeof header, width, key);
    add(line, sizeof line, width, text);
}

void print_text(const Options *options, const char *key, int width, const char *text) {
    field(options, key, -width, text, "\"");
}

void print_number(const Options *options, const char *key, int width, int digits, double x) {
    char text[64];
    snprintf(text, sizeof text, "%.*f", digits, x);
    field(options, key, width, text, "");
}

void print_header(bool wanted) { header_wanted = wanted; }

void print_end(const Options *options) {
    if (!options->json && header_wanted) printf("%s\n", header);
    header_wanted = false;
    printf("%s%s\n", line, options->json ? "}" : "");
    fflush(stdout);
    header[0] = '\0';
    line[0] = '\0';
}
