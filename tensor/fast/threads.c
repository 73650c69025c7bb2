/* threads.c - how many threads share the work: what the program sets, or the environment, or as
 * many as the process has cores, or a container's quota of their time. */
#ifdef __linux__
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): sched_getaffinity wants it */
#endif
#include "threads.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int threads; /* the number of threads to use; 0: not set yet */

/* The cores on which the system lets this process run. */
static int cores(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

#ifdef __linux__
enum { PATH_SIZE = 4096 };

/* Reads one or two numbers. Returns how many; 0 if there is no such file, or no number. */
static int read_numbers(const char *folder, const char *name, long long *number,
                        long long *second) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    const int n = file ? fscanf(file, "%lld %lld", number, second) : 0;
    if (file) fclose(file);
    return n;
}

/* The quota of a control group: the time that its processes may take of all cores in a period.
 * cpu.max has both, "max" for no quota; the older version has two files, and -1. */
static int quota_of(const char *folder) {
    long long time, period, none;
    const bool found = read_numbers(folder, "cpu.max", &time, &period) == 2 ||
                       (read_numbers(folder, "cpu.cfs_quota_us", &time, &none) == 1 &&
                        read_numbers(folder, "cpu.cfs_period_us", &period, &none) == 1);
    if (!found || time <= 0 || period <= 0) return THREADS_MAX;
    return at_most(THREADS_MAX, (time - 1) / period + 1);
}

/* /proc/self/cgroup has a line for each hierarchy of control groups: "0::/a/b", or
 * "4:cpu,cpuacct:/a/b" of the older version. The smallest quota of /a/b, /a and / counts. In a
 * container /a/b may be a path of the host, and the container's group is at /. */
static int quota(const char *root) {
    char line[PATH_SIZE / 2], folder[PATH_SIZE - 32];
    int least = THREADS_MAX;
    snprintf(folder, sizeof folder, "%s/proc/self/cgroup", root);
    FILE *file = fopen(folder, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *hierarchy = strchr(line, ':');
        char *path = hierarchy ? strchr(hierarchy + 1, ':') : NULL;
        if (!path) continue;
        *path = '/';
        char *slash;
        do {
            snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%s", root, hierarchy + 1);
            least = at_most(least, quota_of(folder));
            slash = strrchr(path + 1, '/');
            if (slash) *slash = '\0';
        } while (slash);
    }
    if (file) fclose(file);
    return least;
}
#else
static int quota(const char *root) {
    (void)root;
    return THREADS_MAX;
}
#endif

int tensor_cores(const char *root) { return at_most(cores(), quota(root)); }

/* TAPEHEAD_NUM_THREADS, if that is a whole number from 1, else the number of cores. */
static int initial_threads(void) {
    const char *text = getenv("TAPEHEAD_NUM_THREADS");
    char *end = NULL;
    const long wanted = text ? strtol(text, &end, 10) : 0;
    return at_most(THREADS_MAX, wanted > 0 && *end == '\0' ? wanted : tensor_cores(""));
}

void tensor_set_num_threads(int n) {
    if (n < 1) tensor_fail("set_num_threads: %d: there must be at least 1 thread", n);
    else __atomic_store_n(&threads, at_most(THREADS_MAX, n), __ATOMIC_RELAXED);
}

int tensor_num_threads(void) {
    int unset = 0;
    if (__atomic_load_n(&threads, __ATOMIC_RELAXED) == unset) /* if no other thread was faster */
        __atomic_compare_exchange_n(&threads, &unset, initial_threads(), false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    return __atomic_load_n(&threads, __ATOMIC_RELAXED);
}
