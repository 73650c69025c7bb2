/* files.c - corrupted files never crash a reader.
 *
 *     build/sanitize-gcc/fuzz/files [FILES [SEED]]    corrupts so many files, 10000 by default
 *     build/sanitize-gcc/fuzz/files PATH...           reads these, to see a failure again
 *
 * This program damages files of NumPy, of Python's safetensors and of our own (it flips bits; cuts,
 * inserts and repeats bytes; changes numbers and brackets) and gives them to tensor_load_npy,
 * tensor_load_safetensors and nn_load. Each must read the file or set one printable error message.
 * It must leak nothing, allocate no block larger than twice the file (a float of 16 bits becomes
 * one of 32) plus SLACK bytes, and allocate at most TIMES the size of the file in all. `make fuzz`
 * runs this program under the sanitizers, which check the rest. After a crash the file that caused
 * it is still there. */
#include "../../nn/nn.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLACK = 64 << 10, TIMES = 16, BYTES_MAX = 8192, SEEDS_MAX = 64 };

static const char *at_hand; /* the path of the current file */

static void die(const char *what) {
    fprintf(stderr, "%s: %s (%s)\n", at_hand, what, tensor_error() ? tensor_error() : "no error");
    abort();
}

/* ---- between the library and malloc ---------------------------------------------------------- */

static size_t largest, total; /* the largest block, and the sum of all blocks, since both were
                               * set to 0 */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static size_t asked(size_t size) {
    if (size > largest) largest = size;
    total += size;
    return size;
}
void *__wrap_malloc(size_t size) { return __real_malloc(asked(size)); }
void *__wrap_calloc(size_t count, size_t size) {
    asked(count * size);
    return __real_calloc(count, size);
}
void *__wrap_realloc(void *block, size_t size) { return __real_realloc(block, asked(size)); }
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return __real_aligned_alloc(alignment, asked(size));
}

/* ---- one file -------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    bool (*read)(const char *path);
    int64_t read_well, refused;
} Reader;

static volatile unsigned sum; /* so that the compiler does not remove the reads */

/* Reads every byte of the elements. A loaded tensor has no gaps in memory. */
static void read_elements(const Tensor *x) {
    static const int64_t size[] = {4, 8, 8, 1}; /* by DType */
    const unsigned char *byte = x->data;
    for (int64_t i = 0; i < tensor_numel(x) * size[x->dtype]; i++) {
        if (x->dtype == BOOL && byte[i] > 1) die("a bool is neither 0 nor 1");
        sum += byte[i];
    }
}

static bool read_npy(const char *path) {
    Tensor *x = tensor_load_npy(path);
    if (x) read_elements(x);
    tensor_release(x);
    return x != NULL;
}

static bool read_safetensors(const char *path) {
    TensorDict *dict = tensor_load_safetensors(path);
    for (int i = 0; dict && i < dict->n; i++) read_elements(dict->entry[i].tensor);
    for (int i = 0; dict && i < dict->n_unread; i++)
        sum += (unsigned char)(*dict->unread[i].key + *dict->unread[i].value);
    tensor_dict_free(dict);
    return dict != NULL;
}

static MultiHeadAttention *attention_new(int64_t size) {
    MultiHeadAttentionConfig config = {.num_hiddens = 4, .num_heads = 2, .bias = true};
    config.query_size = size;
    config.key_size = size;
    config.value_size = size;
    return nn_multi_head_attention_new(config);
}

static bool load_into(int64_t size, const char *path) {
    MultiHeadAttention *attention = attention_new(size);
    bool ok = nn_load(attention, path);
    nn_free(attention);
    return ok;
}
static bool load_model(const char *path) { return load_into(3, path); }
static bool load_lazy_model(const char *path) { return load_into(0, path); }

static bool load_part(const char *path) {
    MultiHeadAttention *attention = attention_new(3);
    IncompatibleKeys *keys = nn_load_not_strict(attention, path);
    const bool ok = keys != NULL;
    nn_incompatible_keys_free(keys);
    nn_free(attention);
    return ok;
}

static Reader readers[] = {{"tensor_load_npy", read_npy, 0, 0},
                           {"tensor_load_safetensors", read_safetensors, 0, 0},
                           {"nn_load", load_model, 0, 0},
                           {"nn_load, lazy", load_lazy_model, 0, 0},
                           {"nn_load_not_strict", load_part, 0, 0}};
enum { READERS = sizeof readers / sizeof *readers };

static void read_file(const char *path, size_t size) {
    const int64_t live = tensor_live();
    at_hand = path;
    for (int i = 0; i < READERS; i++) {
        largest = 0;
        total = 0;
        const bool read = readers[i].read(path);
        const char *error = tensor_error();
        if (read == (error != NULL)) die("neither read nor refused");
        for (const char *c = error ? error : ""; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f) die("the sentence is not printable");
        if (largest > 2 * size + SLACK) die("a block larger than twice the file");
        if (total > TIMES * size + SLACK) die("many times the file in blocks");
        tensor_clear_error();
        if (tensor_live() != live) die("tensors are left over");
        if (read) readers[i].read_well++;
        else readers[i].refused++;
    }
}

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
static void splice(Bytes *file, size_t at, size_t cut, const void *bytes, size_t n) {
    if (cut > file->size - at) cut = file->size - at;
    if (file->size - cut + n > BYTES_MAX) return;
    unsigned char kept[128];
    if (n > sizeof kept) n = sizeof kept;
    memcpy(kept, bytes, n); /* bytes may point into the file */
    memmove(file->byte + at + n, file->byte + at + cut, file->size - at - cut);
    memcpy(file->byte + at, kept, n);
    file->size += n - cut;
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
static void renumber(Bytes *file, size_t at) {
    char number[32];
    size_t digits = 0;
    while (at < file->size && (file->byte[at] < '0' || file->byte[at] > '9')) at++;
    while (at + digits < file->size && file->byte[at + digits] >= '0' &&
           file->byte[at + digits] <= '9')
        digits++;
    int n = snprintf(number, sizeof number, "%llu", (unsigned long long)(draw() >> below(64)));
    splice(file, at, digits, number, (size_t)n);
}

static void damage(Bytes *file) {
    const size_t at = below(file->size + 1), from = below(file->size + 1), n = 1 + below(16);
    const char *token = tokens[below(sizeof tokens / sizeof *tokens)];
    const uint64_t mask = below(2) ? 0x7f7f7f7f7f7f7f7fu : UINT64_MAX; /* the readers accept more
                                                                        * of a file if its bytes
                                                                        * are ASCII */
    const uint64_t noise[2] = {draw() & mask, draw() & mask};
    switch (below(8)) {
    case 0:
        if (at < file->size) file->byte[at] ^= (unsigned char)(1 << below(8));
        break;
    case 1: splice(file, at, n, noise, 0); break; /* cut */
    case 2: splice(file, at, 0, noise, n); break; /* insert */
    case 3: splice(file, at, n, noise, n); break; /* write over */
    case 4:
        splice(file, at, 0, file->byte + from, below(file->size - from + 1));
        break; /* repeat */
    case 5: splice(file, at, below(2) * strlen(token), token, strlen(token)); break;
    case 6: renumber(file, at); break;
    default:
        if (below(4) == 0) file->size = at; /* truncated */
    }
}

/* If damage changes the length of a header, the readers mostly stop there. So in half of these
 * cases the length before the header is corrected. */
static void correct_length(Bytes *file, size_t before, bool npy) {
    const size_t at = npy ? 8 : 0, width = npy ? 2 : 8;
    uint64_t length = 0;
    if (file->size < at + width) return;
    memcpy(&length, file->byte + at, width);
    length += file->size - before;
    memcpy(file->byte + at, &length, width);
}

/* ---- the valid ones -------------------------------------------------------------------------- */

static Bytes seeds[SEEDS_MAX];
static int num_seeds;

static Bytes slurp(const char *path) {
    Bytes all = {.size = 0};
    FILE *file = fopen(path, "rb");
    at_hand = path;
    if (!file) die("it cannot be opened");
    all.size = fread(all.byte, 1, sizeof all.byte, file);
    fclose(file);
    return all;
}

static void spit(const char *path, const Bytes *all) {
    FILE *file = fopen(path, "wb");
    at_hand = path;
    if (!file || fwrite(all->byte, 1, all->size, file) != all->size) die("it cannot be written");
    fclose(file);
}

static void add_seed(const char *path) {
    if (num_seeds == SEEDS_MAX) abort();
    seeds[num_seeds++] = slurp(path);
}

/* The valid files: a model, eight times, so that nn_load gets enough of them; and the files that
 * NumPy and Python wrote. */
static void find_seeds(const char *folder, const char *scratch) {
    MultiHeadAttention *attention = attention_new(3);
    if (!nn_save(attention, scratch)) die("the model cannot be saved");
    nn_free(attention);
    for (int i = 0; i < 8; i++) add_seed(scratch);
    DIR *dir = opendir(folder);
    at_hand = folder;
    if (!dir) die("it cannot be opened: run this in the root of the repository");
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') add_seed(path);
    }
    closedir(dir);
}

static int compare_seeds(const void *a, const void *b) {
    const Bytes *p = a;
    const Bytes *q = b;
    if (p->size != q->size) return p->size < q->size ? -1 : 1;
    return memcmp(p->byte, q->byte, p->size);
}

/* Damages files, in memory if there is a /dev/shm. */
static void corrupt(int64_t files) {
    char shm[] = "/dev/shm/tapehead-fuzz-XXXXXX", tmp[] = "/tmp/tapehead-fuzz-XXXXXX";
    int fd = mkstemp(shm);
    const char *path = fd >= 0 ? shm : tmp;
    if (fd < 0) fd = mkstemp(tmp);
    if (fd < 0) die("there is no place for files");
    close(fd);
    printf("corrupting %lld files in %s\n", (long long)files, path);
    find_seeds("tests/golden/files", path);
    qsort(seeds, (size_t)num_seeds, sizeof *seeds, compare_seeds); /* readdir has no fixed order */
    for (int64_t i = 0; i < files; i++) {
        Bytes file = seeds[below((size_t)num_seeds)];
        const size_t before = file.size;
        const bool npy = before > 0 && file.byte[0] == 0x93;
        for (size_t k = 1 + below(3); k > 0; k--) damage(&file);
        if (below(2)) correct_length(&file, before, npy);
        spit(path, &file);
        read_file(path, file.size);
    }
    unlink(path);
}

int main(int argc, char **argv) {
    const int64_t files = argc > 1 ? atoll(argv[1]) : 10000;
    generator = argc > 2 && files > 0 ? (uint64_t)atoll(argv[2]) : 1;
    setvbuf(stdout, NULL, _IOLBF, 0); /* all output before a crash must be visible */
    if (files > 0) corrupt(files);
    else
        for (int i = 1; i < argc; i++) read_file(argv[i], slurp(argv[i]).size);
    for (int i = 0; i < READERS; i++)
        printf("%-24s read %lld files, refused %lld\n", readers[i].name,
               (long long)readers[i].read_well, (long long)readers[i].refused);
    return 0;
}
