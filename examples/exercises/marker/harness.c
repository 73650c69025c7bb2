/* harness.c - the program around one student's function. The marker compiles it, and links it with
 * the student's file and with tapehead_call, which it writes (trial.c), so this file is no part of
 * the marker.
 *
 *     program FIRST END
 *
 * reads the calls (protocol.h) from file 3, makes those from FIRST to END - 1, and writes a result
 * to file 4 after each call: so the results before a crash are there. The function's arrays lie
 * between guard zones, so a write outside is found, and a read outside gives NaN.
 *
 * Nothing here decides about a mark: the student's code is in the same process.
 * Everything is static or has a name that no student would choose. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "protocol.h"

/* Calls the student's function. */
void tapehead_call(const int *size, const double *number, void *const *array);

enum { SHALLOW = 1 << 14, DEEP = 1 << 20, FAR = 1 << 15 };

static CallHeader header;
static CallResult result;
static unsigned char *zones; /* FAR bytes, all zones, FAR bytes */
static size_t zones_size;
static unsigned char *zone[CALL_ARRAYS];   /* guard, array, guard */
static unsigned char *before[CALL_ARRAYS]; /* what the array had before the call */

/* ---- the student's heap ------------------------------------------------------------------------
 */

static int64_t used, most; /* bytes */

/* The linker sends the student's calls of malloc to __wrap_malloc, and so on; macOS's linker
 * cannot, and heap is not measured there. Blocks are filled with the bytes of a NaN, so that a sum
 * that was never set to 0 is no number. */
#ifdef NO_WRAP
#define __real_malloc  malloc
#define __real_realloc realloc
#define __real_free    free
#else
void *__real_malloc(size_t n);
void *__real_realloc(void *block, size_t n);
void __real_free(void *block);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_memalign(size_t alignment, size_t n);
int __wrap_posix_memalign(void **block, size_t alignment, size_t n);
void *__wrap_reallocarray(void *block, size_t n, size_t size);
void *__real_mmap(void *at, size_t n, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int file, off_t offset);
void __wrap_free(void *block);

static struct {
    unsigned char *block;
    size_t n;
} * live;
static size_t blocks, room;

/* Behind each block lie so many bytes of NaN's, more than 1031 numbers have, as around the
 * function's arrays: signalling ones, so += is noticed, too. */
enum { BEHIND = 9216 };
static unsigned char *behind;
static bool spoiled; /* something was written there, in this call */

static bool make_behind(void) {
    const uint64_t word = 0x7ff4a5a500000005;
    if (!behind) behind = __real_malloc(BEHIND + 8);
    for (size_t i = 0; behind && i < BEHIND / 8 + 1; i++) memcpy(behind + 8 * i, &word, 8);
    return behind;
}
static void *keep(unsigned char *block, size_t n) {
    if (!block || (!behind && !make_behind())) return NULL;
    if (blocks == room) {
        room = 2 * room + 64;
        live = __real_realloc(live, room * sizeof *live);
    }
    memset(block, 0xff, n);
    memcpy(block + n, behind + n % 8, BEHIND);
    live[blocks].block = block;
    live[blocks++].n = n;
    used += (int64_t)n;
    if (used > most) most = used;
    return block;
}
static void look_behind(size_t i) {
    if (memcmp(live[i].block + live[i].n, behind + live[i].n % 8, BEHIND) != 0) spoiled = true;
}
/* Forgets a block; false for one that the C library made. */
static bool forget(const void *block, size_t *n) {
    for (size_t i = blocks; i-- > 0;)
        if (live[i].block == block) {
            *n = live[i].n;
            look_behind(i);
            live[i] = live[--blocks];
            used -= (int64_t)*n;
            return true;
        }
    return false;
}
void *__wrap_malloc(size_t n) {
    return n > SIZE_MAX - BEHIND ? NULL : keep(__real_malloc(n + BEHIND), n);
}
void *__wrap_calloc(size_t n, size_t size) {
    if (size && n > SIZE_MAX / size) return NULL;
    void *block = __wrap_malloc(n * size);
    if (block) memset(block, 0, n * size);
    return block;
}
void *__wrap_realloc(void *block, size_t n) {
    size_t had = 0;
    if (block && !forget(block, &had)) return __real_realloc(block, n); /* the C library's */
    void *other = __wrap_malloc(n);
    if (!block || !other) return other;
    memcpy(other, block, had < n ? had : n);
    __real_free(block);
    return other;
}
void *__wrap_aligned_alloc(size_t alignment, size_t n) {
    if (n > SIZE_MAX - BEHIND) return NULL;
    return keep(__real_aligned_alloc(alignment, n + BEHIND), n);
}
void *__wrap_memalign(size_t alignment, size_t n) { return __wrap_aligned_alloc(alignment, n); }
int __wrap_posix_memalign(void **block, size_t alignment, size_t n) {
    *block = __wrap_aligned_alloc(alignment, n);
    return *block ? 0 : ENOMEM;
}
void *__wrap_reallocarray(void *block, size_t n, size_t size) {
    return size && n > SIZE_MAX / size ? NULL : __wrap_realloc(block, n * size);
}
/* Counts as used until the end of the call. */
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int file, off_t offset) {
    used += (int64_t)n;
    if (used > most) most = used;
    return __real_mmap(at, n, protection, flags, file, offset);
}
void __wrap_free(void *block) {
    size_t n = 0;
    if (block) forget(block, &n);
    __real_free(block);
}
#endif

/* ---- the student's own arrays ------------------------------------------------------------------
 */

/* The student's file is compiled with -fsanitize=bounds: gcc and clang call this where an index is
 * outside of an array whose size they know. The arrays of a fixed size, double p[64], are the
 * student's own. Those whose size is a variable may be the function's, and whoever goes through a
 * whole matrix by its first row is right. */
typedef struct {
    const char *file;
    uint32_t line, column;
    const struct {
        uint16_t kind, more;
        char name[]; /* "'double [64][64]'", "'double [*]'" or "'double[n]'" */
    } * array, *index;
} Bounds;

void __ubsan_handle_out_of_bounds(const Bounds *where, uintptr_t index);
void __ubsan_handle_out_of_bounds(const Bounds *where, uintptr_t index) {
    const char *size = strchr(where->array->name, '[');
    if (!size || size[1 + strspn(size + 1, "0123456789")] != ']') return;
    fprintf(stderr, "\n" BOUNDS "%s:%u: %lld %lld\n", where->file, (unsigned)where->line,
            (long long)(intptr_t)index, atoll(size + 1));
    __builtin_trap();
}

/* ---- the student's stack -----------------------------------------------------------------------
 */

/* These functions run one after the other, from the same depth: what one leaves on the stack, the
 * next one finds. The student's function runs between paint and depth. */
#define APART static __attribute__((noinline))
static unsigned char *painted; /* the deepest byte */

APART void fill(unsigned char *area, size_t n) {
    painted = area;
    memset(area, 0xff, n);
}
APART void paint_shallow(void) {
    unsigned char area[SHALLOW];
    fill(area, sizeof area);
}
APART void paint_deep(void) {
    unsigned char area[DEEP];
    fill(area, sizeof area);
}
/* How many of the painted bytes the function has used. The bytes lie below the stack now, so they
 * are read through a pointer that the compiler does not follow. */
APART int64_t depth(void) {
    const volatile uint64_t *deepest =
        (const volatile uint64_t *)((uintptr_t)painted & ~(uintptr_t)7);
    size_t i = 1;
    while (i < DEEP / 8 - 1 && deepest[i] == UINT64_MAX) i++;
    return (int64_t)(DEEP - 8 * i);
}

/* ---- what the function shows --------------------------------------------------------------------
 */

/* On the heap: static memory counts as the function's. */
static Shown *shown;

void tapehead_show(const char *name, double value, const int *at, int n);
void tapehead_show(const char *name, double value, const int *at, int n) {
    Shown this = {.value = value, .indices = n};
    if (!header.shows || n > SHOWN_INDICES) return;
    if (!shown) shown = __real_malloc(MOST_SHOWN_NUMBERS * sizeof *shown);
    if (!shown) return;
    snprintf(this.name, sizeof this.name, "%s", name);
    for (int i = 0; i < n; i++) this.at[i] = at[i];
    int place = 0;
    while (place < result.shown && (memcmp(shown[place].name, this.name, sizeof this.name) != 0 ||
                                    memcmp(shown[place].at, this.at, sizeof this.at) != 0))
        place++;
    if (place == MOST_SHOWN_NUMBERS) return;
    shown[place] = this;
    if (place == result.shown) result.shown++;
}

/* ---- one call -----------------------------------------------------------------------------------
 */

/* A NaN that is another one in every place of every guard, so that a NaN which was read beside one
 * array and written beside another is noticed. It is a signalling one: arithmetic makes it quiet,
 * so += is noticed, too. A comparison with NaN is false, and leaves no trace: for those that look
 * beside an array there are guards of large numbers. */
static uint64_t guard_word(int array, size_t place) {
    const double large = header.guards * 1e300;
    uint64_t word = 0;
    memcpy(&word, &large, sizeof word);
    if (header.guards) return word ^ (uint64_t)(array + 1) << 8 ^ (uint64_t)place << 16;
    return 0x7ff4000000000000 | (uint64_t)(array + 1) << 32 | (uint64_t)place << 4 | 5;
}
static size_t padded(int array) { return ((size_t)header.bytes[array] + 7) / 8 * 8; }
static unsigned char *array_of(int array) { return zone[array] + 8 * GUARD; }

/* The zones lie one behind the other, so that what is written far from an array is found, too. The
 * same sizes give the same places. */
static void place_zones(void) {
    size_t at = FAR;
    zones_size = 2 * FAR;
    for (int i = 0; i < header.arrays; i++) zones_size += padded(i) + 16 * GUARD;
    zones = __real_realloc(zones, zones_size);
    memset(zones, 0xff, FAR);
    memset(zones + zones_size - FAR, 0xff, FAR);
    for (int i = 0; i < header.arrays; i++) {
        zone[i] = zones + at;
        at += padded(i) + 16 * GUARD;
    }
}
static bool is_spoiled(const unsigned char *far) {
    return *far != 0xff || memcmp(far, far + 1, FAR - 1) != 0;
}

static void make_zone(int array) {
    const size_t bytes = padded(array) + 16 * GUARD;
    before[array] = __real_realloc(before[array], padded(array) + 8);
    for (size_t i = 0; i < bytes / 8; i++) {
        if (i == GUARD) i += (size_t)header.bytes[array] / 8;
        const uint64_t word = guard_word(array, i);
        memcpy(zone[array] + 8 * i, &word, 8);
    }
}
/* Where was something written: behind the array 1, before it -1, nowhere 0? An array of bools may
 * end within a word. */
static int zone_is_spoiled(int array) {
    const size_t whole = (size_t)header.bytes[array] / 8, rest = (size_t)header.bytes[array] % 8;
    for (size_t i = 0; i < padded(array) / 8 + 2 * GUARD; i++) {
        if (i == GUARD) i += whole;
        const uint64_t word = guard_word(array, i);
        const size_t from = i == GUARD + whole ? rest : 0;
        if (memcmp(zone[array] + 8 * i + from, (const unsigned char *)&word + from, 8 - from) != 0)
            return i < GUARD ? -1 : 1;
    }
    return 0;
}

static void run(void) {
    void *array[CALL_ARRAYS];
    double number[CALL_NUMBERS];
    int size[CALL_SIZES];
    for (int i = 0; i < CALL_ARRAYS; i++) array[i] = i < header.arrays ? array_of(i) : NULL;
    for (int i = 0; i < CALL_SIZES; i++) size[i] = header.size[i];
    for (int i = 0; i < CALL_NUMBERS; i++) number[i] = header.number[i];
    used = 0;
    most = 0;
    spoiled = false;
    if (header.measured) paint_deep();
    else paint_shallow();
    tapehead_call(size, number, array);
    if (header.measured) result.memory = depth() + most;
}

static void check(void) {
    for (int i = 0; i < header.arrays; i++) {
        const bool same = memcmp(array_of(i), before[i], (size_t)header.bytes[i]) == 0;
        const int side = result.outside ? 0 : zone_is_spoiled(i);
        if (side) result.outside = header.access[i] ? side * (i + 1) : FAR_OUTSIDE;
        if (!header.access[i] && !same && !result.changed) result.changed = i + 1;
        if (header.access[i] && header.filled && same) result.unwritten |= 1 << i;
    }
    for (size_t i = 0; i < blocks; i++) look_behind(i);
    if (spoiled && !result.outside) result.outside = CALL_ARRAYS + 1;
    if (!result.outside && (is_spoiled(zones) || is_spoiled(zones + zones_size - FAR)))
        result.outside = FAR_OUTSIDE;
}

static void read_exactly(void *bytes, size_t n, FILE *file) {
    if (n && fread(bytes, 1, n, file) != n) _Exit(3);
}

/* With the words of a guard: both = and += change them. */
static void fill_array(int array) {
    for (size_t i = 0; i < (size_t)header.bytes[array] / 8; i++) {
        const uint64_t word = guard_word(array, i);
        memcpy(array_of(array) + 8 * i, &word, 8);
    }
}

/* Reads the arrays of a call. An array that is carried stays. */
static void read_arrays(FILE *calls) {
    place_zones();
    for (int i = 0; i < header.arrays; i++) {
        const size_t n = (size_t)header.bytes[i];
        unsigned char *carried = NULL;
        if (header.carries && header.access[i] == CARRIED) {
            carried = __real_malloc(n + 1);
            memcpy(carried, array_of(i), n);
        }
        make_zone(i);
        read_exactly(array_of(i), n, calls);
        if (carried) memcpy(array_of(i), carried, n);
        if (header.access[i] && header.filled) fill_array(i);
        memcpy(before[i], array_of(i), n);
        __real_free(carried);
    }
}

static void skip_arrays(FILE *calls) {
    long bytes = 0;
    for (int i = 0; i < header.arrays; i++) bytes += header.bytes[i];
    if (fseek(calls, bytes, SEEK_CUR) != 0) _Exit(3);
}

static void write_result(FILE *results, int number) {
    result.call = number;
    fwrite(&result, sizeof result, 1, results);
    for (int i = 0; i < header.arrays; i++)
        if (header.access[i]) fwrite(array_of(i), 1, (size_t)header.bytes[i], results);
    if (result.shown) fwrite(shown, sizeof *shown, (size_t)result.shown, results);
    fflush(results);
}

int main(int argc, char **argv) {
    if (argc < 3) return 3;
    FILE *calls = fdopen(3, "rb");
    FILE *results = fdopen(4, "wb");
    if (!calls || !results) return 3;
    const int first = atoi(argv[1]), end = atoi(argv[2]);
    srand((unsigned)first + 1); /* an input alone gets other numbers than after others */
    if (end - first == 1)
        setvbuf(stdout, NULL, _IOLBF, 1 << 12); /* lines before a crash are there */
    for (int number = 0; number < end && fread(&header, sizeof header, 1, calls) == 1; number++) {
        if (number < first) {
            skip_arrays(calls);
            continue;
        }
        read_arrays(calls);
        memset(&result, 0, sizeof result);
        run();
        check();
        write_result(results, number);
    }
    return fclose(results) ? 3 : 0;
}
