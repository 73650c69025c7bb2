/* corrupt.c - corrupted inputs for a target of libFuzzer, by any compiler, so under gcc's
 * sanitizers, too.
 *
 *     build/sanitize-gcc/fuzz/corrupt_readers [INPUTS [SEED]]    corrupts so many, 10000 by default
 *     build/sanitize-gcc/fuzz/corrupt_readers PATH...            gives it these, to see a fault
 * again
 *
 * This program damages the inputs in tests/fuzz/corpus/readers, or whatever the name of the program
 * ends with (it flips bits; cuts, inserts and repeats bytes; changes numbers and brackets), and
 * gives them to the target, which says at its top what must hold. `make fuzz` runs it for every
 * target under the sanitizers, which check the rest. After a crash the input that caused it is
 * still there. */
#include "common.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_MAX = 8192, SEEDS_MAX = 64 };

/* ---- corrupting it --------------------------------------------------------------------------- */

typedef struct {
    unsigned char byte[BYTES_MAX];
    size_t size;
} Bytes;

static uint64_t generator;

/* splitmix64, Steele, Lea and Flood 2014 */
static uint64_t draw(void) {
    generator += 0x9e3779b97f4a7c15u;
    uint64_t z = generator;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static size_t below(size_t n) { return n > 0 ? draw() % n : 0; }

/* Replaces the `cut` bytes at `at` by n bytes. */
static void splice(Bytes *input, size_t at, size_t cut, const void *bytes, size_t n) {
    if (cut > input->size - at) cut = input->size - at;
    if (input->size - cut + n > BYTES_MAX) return;
    unsigned char kept[128];
    if (n > sizeof kept) n = sizeof kept;
    memcpy(kept, bytes, n); /* bytes may point into the input */
    memmove(input->byte + at + n, input->byte + at + cut, input->size - at - cut);
    memcpy(input->byte + at, kept, n);
    input->size += n - cut;
}

static const char *const tokens[] = {
    "9223372036854775807",
    "18446744073709551616",
    "-1",
    "1e999",
    "0",
    "4",
    "00",
    "1.0",
    "NaN",
    "[",
    "[[[[[[[[[[[[[[[[",
    "]",
    "{",
    "{\"a\":{\"a\":{\"a\":",
    "}",
    "(",
    ")",
    ",",
    ":",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud83d",
    "\\ud83d\\ude00",
    "\xff",
    "\xed\xa0\x80",
    "\xc3\xa9",
    "__metadata__",
    "\"__metadata__\":{\"a\":\"b\"},",
    "\"__metadata__\":null,",
    "\"F16\"",
    "\"BF16\"",
    "\"F8\"",
    "\"BOOL\"",
    "\"dtype\":\"F32\",",
    "\"shape\":[0],",
    "\"data_offsets\":[0,0]",
    "\"u\":null,",
    "\"u\":[{\"v\":-1.5e3},[]],",
    "2L",
    "\"e\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[0,0]},",
    "True",
    "'descr':'>f8',",
    "'descr':'<f2',",
    "'shape':(1,),",
    "\x93NUMPY\x02",
    "\n",
    " ",
};

/* Replaces the next number after `at` by a number of any magnitude. */
static void renumber(Bytes *input, size_t at) {
    char number[32];
    size_t digits = 0;
    while (at < input->size && (input->byte[at] < '0' || input->byte[at] > '9')) at++;
    while (at + digits < input->size && input->byte[at + digits] >= '0' &&
           input->byte[at + digits] <= '9')
        digits++;
    int n = snprintf(number, sizeof number, "%llu", (unsigned long long)(draw() >> below(64)));
    splice(input, at, digits, number, (size_t)n);
}

static void damage(Bytes *input) {
    const size_t at = below(input->size + 1), from = below(input->size + 1), n = 1 + below(16);
    const char *token = tokens[below(sizeof tokens / sizeof *tokens)];
    const uint64_t mask = below(2) ? 0x7f7f7f7f7f7f7f7fu : UINT64_MAX; /* the readers accept more
                                                                        * of an input if its bytes
                                                                        * are ASCII */
    const uint64_t noise[2] = {draw() & mask, draw() & mask};
    switch (below(8)) {
    case 0:
        if (at < input->size) input->byte[at] ^= (unsigned char)(1 << below(8));
        break;
    case 1: splice(input, at, n, noise, 0); break; /* cut */
    case 2: splice(input, at, 0, noise, n); break; /* insert */
    case 3: splice(input, at, n, noise, n); break; /* write over */
    case 4:
        splice(input, at, 0, input->byte + from, below(input->size - from + 1));
        break; /* repeat */
    case 5: splice(input, at, below(2) * strlen(token), token, strlen(token)); break;
    case 6: renumber(input, at); break;
    default:
        if (below(4) == 0) input->size = at; /* truncated */
    }
}

/* ---- the valid ones -------------------------------------------------------------------------- */

static Bytes seeds[SEEDS_MAX];
static int num_seeds;

static Bytes slurp(const char *path) {
    Bytes all = {.size = 0};
    FILE *file = fopen(path, "rb");
    if (!file) fault(path);
    all.size = fread(all.byte, 1, sizeof all.byte, file);
    fclose(file);
    return all;
}

static void spit(const char *path, const Bytes *all) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(all->byte, 1, all->size, file) != all->size) fault(path);
    fclose(file);
}

static void find_seeds(const char *folder) {
    DIR *dir = opendir(folder);
    if (!dir) fault("there is no corpus: run this in the root of the repository");
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.') continue;
        if (num_seeds == SEEDS_MAX) abort();
        seeds[num_seeds++] = slurp(path);
    }
    closedir(dir);
}

static int compare_seeds(const void *a, const void *b) {
    const Bytes *p = a;
    const Bytes *q = b;
    if (p->size != q->size) return p->size < q->size ? -1 : 1;
    return memcmp(p->byte, q->byte, p->size);
}

static void give(const Bytes *input) { LLVMFuzzerTestOneInput(input->byte, input->size); }

/* The input at hand is kept in memory if there is a /dev/shm. */
static void corrupt(const char *target, int64_t inputs) {
    char shm[] = "/dev/shm/tapehead-fuzz-XXXXXX", tmp[] = "/tmp/tapehead-fuzz-XXXXXX", corpus[256];
    int fd = mkstemp(shm);
    const char *path = fd >= 0 ? shm : tmp;
    if (fd < 0) fd = mkstemp(tmp);
    if (fd < 0) fault("there is no place for files");
    close(fd);
    snprintf(corpus, sizeof corpus, "tests/fuzz/corpus/%s", target);
    printf("%s: corrupting %lld inputs in %s\n", target, (long long)inputs, path);
    find_seeds(corpus);
    qsort(seeds, (size_t)num_seeds, sizeof *seeds, compare_seeds); /* readdir has no fixed order */
    for (int64_t i = 0; i < inputs; i++) {
        Bytes input = seeds[below((size_t)num_seeds)];
        for (size_t k = 1 + below(3); k > 0; k--) damage(&input);
        spit(path, &input);
        give(&input);
    }
    unlink(path);
}

int main(int argc, char **argv) {
    const int64_t inputs = argc > 1 ? atoll(argv[1]) : 10000;
    generator = argc > 2 && inputs > 0 ? (uint64_t)atoll(argv[2]) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0); /* all output before a crash must be visible */
    if (inputs > 0) corrupt(strrchr(argv[0], '_') + 1, inputs);
    for (int i = 1; i < argc && inputs == 0; i++) {
        const Bytes input = slurp(argv[i]);
        give(&input);
    }
    return 0;
}
