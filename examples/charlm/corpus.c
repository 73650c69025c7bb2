/* corpus.c - a text as numbers: see corpus.h. */
#include "corpus.h"

#include "../common/plural.h"
#include "../common/repository.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- reading ----------------------------------------------------------------------------- */

/* An array of bytes that grows. The bytes become symbols in place. */
typedef struct {
    uint8_t *data;
    int64_t size, capacity;
} Bytes;

static bool grow(Bytes *bytes) {
    int64_t capacity = bytes->capacity ? 2 * bytes->capacity : 1 << 16;
    uint8_t *data = realloc(bytes->data, (size_t)capacity);
    if (!data) return tensor_fail("out of memory: a text of %lld bytes", (long long)capacity);
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

/* Reads to the end of the file, which may be a pipe. */
static bool append(Bytes *bytes, FILE *file, const char *path) {
    size_t got;
    do {
        if (bytes->size == bytes->capacity && !grow(bytes)) return false;
        got = fread(bytes->data + bytes->size, 1, (size_t)(bytes->capacity - bytes->size), file);
        bytes->size += (int64_t)got;
        if (bytes->size > CORPUS_MAX_BYTES)
            return tensor_fail("%s: a text of more than %lld MB is too large", path,
                               (long long)(CORPUS_MAX_BYTES >> 20));
    } while (got > 0);
    if (ferror(file)) return tensor_fail("cannot read %s: %s", path, strerror(errno));
    return true;
}

static bool append_file(Bytes *bytes, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return tensor_fail("cannot read %s: %s", path, strerror(errno));
    bool ok = append(bytes, file, path);
    fclose(file);
    return ok;
}

enum { NAME_SIZE = 256, PATH_SIZE = 4096 + 32 };

static bool is_source(const char *name) {
    const char *end = strrchr(name, '.');
    return end && end != name && (strcmp(end, ".c") == 0 || strcmp(end, ".h") == 0);
}

/* name becomes the name of the source in folder that comes next; false if there is none. */
static bool next_source(const char *folder, char name[NAME_SIZE]) {
    char best[NAME_SIZE] = "";
    DIR *entries = opendir(folder);
    if (!entries && errno != ENOENT) tensor_fail("cannot read %s: %s", folder, strerror(errno));
    const struct dirent *entry = entries ? readdir(entries) : NULL;
    for (; entry; entry = readdir(entries))
        if (is_source(entry->d_name) && strcmp(entry->d_name, name) > 0 &&
            (!*best || strcmp(entry->d_name, best) < 0))
            snprintf(best, sizeof best, "%s", entry->d_name);
    if (entries) closedir(entries);
    memcpy(name, best, sizeof best);
    return *best;
}

static bool append_folder(Bytes *bytes, const char *folder) {
    char name[NAME_SIZE] = "", path[PATH_SIZE + NAME_SIZE] = "";
    while (next_source(folder, name)) {
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (!append_file(bytes, path)) return false;
    }
    if (!*path) tensor_fail("there are no sources in %s: name a --text", folder);
    return !tensor_error();
}

/* The programs, then the library from the lowest folder up: the held-out part is in nn/, which
 * uses the names of the lower folders. */
static bool append_sources(Bytes *bytes) {
    static const char *const folders[] = {"examples", "tensor",       "tensor/kernels",
                                          "autograd", "autograd/ops", "nn"};
    char path[PATH_SIZE];
    const char *root = repository_folder("tensor/tensor.h", "name a --text");
    bool ok = root != NULL;
    for (size_t i = 0; ok && i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        ok = append_folder(bytes, path);
    }
    return ok;
}

/* Numbers the bytes that occur, in ascending order. */
static void number(Corpus *text) {
    bool occurs[256] = {false};
    for (int64_t i = 0; i < text->size; i++) occurs[text->symbol[i]] = true;
    for (int byte = 0; byte < 256; byte++) {
        text->symbol_of[byte] = occurs[byte] ? text->num_symbols : -1;
        if (occurs[byte]) text->byte[text->num_symbols++] = (uint8_t)byte;
    }
    for (int64_t i = 0; i < text->size; i++)
        text->symbol[i] = (uint8_t)text->symbol_of[text->symbol[i]];
}

static bool long_enough(const Corpus *text, const char *path, int64_t least) {
    int64_t last_tenth = text->size - text->held_out;
    if (last_tenth >= least) return true;
    return tensor_fail("%s: a text of %lld byte%s is too short: its last tenth must have %lld",
                       path ? path : "the sources", (long long)text->size, plural(text->size),
                       (long long)least);
}

bool corpus_read(Corpus *text, const char *path, int64_t least) {
    Bytes bytes = {0};
    bool ok = path ? append_file(&bytes, path) : append_sources(&bytes);
    *text = (Corpus){
        .size = bytes.size, .held_out = bytes.size - bytes.size / 10, .symbol = bytes.data};
    if (!ok || !long_enough(text, path, least)) return false;
    number(text);
    return true;
}

void corpus_free(Corpus *text) {
    free(text->symbol);
    *text = (Corpus){0};
}

/* ---- parts ------------------------------------------------------------------------------- */

Tensor *corpus_vocabulary(const Corpus *text) {
    int64_t bytes[256];
    for (int i = 0; i < text->num_symbols; i++) bytes[i] = text->byte[i];
    return tensor_from_int64s(SHAPE(text->num_symbols), bytes);
}

Tensor *corpus_windows(const uint8_t *symbol, const int64_t *start, int64_t B, int64_t length) {
    Tensor *windows = tensor_empty_of(SHAPE(B, length), I64);
    for (int64_t i = 0; windows && i < B * length; i++)
        ((int64_t *)windows->data)[i] = symbol[start[i / length] + i % length];
    return windows;
}

Tensor *corpus_draw(const Corpus *text, int64_t B, int64_t length) {
    Tensor *start = tensor_randint(0, text->held_out - length + 1, SHAPE(B));
    Tensor *windows = start ? corpus_windows(text->symbol, start->data, B, length) : NULL;
    tensor_release(start);
    return windows;
}

/* The beginning of the first line in the held-out tenth, after its blanks. The beginning of the
 * tenth if no such place has `most` characters after it. */
static int64_t find_line(const Corpus *text, int64_t most) {
    const int newline = text->symbol_of['\n'], blank = text->symbol_of[' '];
    bool begun = false;
    for (int64_t i = text->held_out; i + most <= text->size; i++) {
        if (begun && text->symbol[i] != newline && text->symbol[i] != blank) return i;
        begun = begun || text->symbol[i] == newline;
    }
    return text->held_out;
}

static void encode(const Corpus *text, const char *string, uint8_t *symbol) {
    if (!*string) tensor_fail("the prompt is empty: it must have a character");
    for (; *string; string++) {
        int found = text->symbol_of[(uint8_t)*string];
        if (found < 0)
            tensor_fail("the prompt's \"%s\" begins with a character that is not in the text",
                        tensor_name_text(string));
        *symbol++ = (uint8_t)found;
    }
}

Passage corpus_passage(const Corpus *text, const char *string, int64_t most, int64_t spare) {
    if (tensor_error()) return (Passage){0};
    if (most > text->size - text->held_out) most = text->size - text->held_out;
    Passage passage = {.size = string ? (int64_t)strlen(string) : most};
    passage.symbol = malloc((size_t)(passage.size + spare + 1));
    if (!passage.symbol) tensor_fail("out of memory for %lld characters", (long long)spare);
    else if (string) encode(text, string, passage.symbol);
    else memcpy(passage.symbol, text->symbol + find_line(text, most), (size_t)most);
    return passage;
}

Tensor *corpus_last(const Passage *passage, int64_t most) {
    const int64_t n = passage->size < most ? passage->size : most, start = passage->size - n;
    return corpus_windows(passage->symbol, &start, 1, n);
}

/* ---- showing ----------------------------------------------------------------------------- */

void corpus_label(const Corpus *text, const Tensor *x, AttentionMap *map) {
    for (int64_t i = 0; !tensor_error() && i < map->keys; i++) {
        const char label[2] = {(char)text->byte[(int)tensor_get(x, 0, i)], '\0'};
        map_label(map->query[i], label);
        map_label(map->key[i], label);
        for (int64_t j = i + 1; j < map->keys; j++) map->weights[i * map->keys + j] = (double)NAN;
    }
}

/* U+0080 to U+009F are also control characters; in UTF-8 they are 0xC2 and then their number. */
static bool controls(uint8_t byte, uint8_t before) {
    if (byte == '\n' || byte == '\t') return false;
    return byte < 32 || byte == 127 || (before == 0xC2 && byte >= 0x80 && byte < 0xA0);
}

void corpus_print(const Corpus *text, const Passage *passage, FILE *file) {
    bool terminal = isatty(fileno(file)) == 1;
    uint8_t before = 0;
    for (int64_t i = 0; i < passage->size; i++) {
        uint8_t byte = text->byte[passage->symbol[i]];
        putc(terminal && controls(byte, before) ? '?' : byte, file);
        before = byte;
    }
    putc('\n', file);
}
