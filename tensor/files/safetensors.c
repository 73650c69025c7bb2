/* safetensors.c - named tensors in a file: 8 bytes with the length of the header, the header, the
 * elements of all tensors one after the other. The header is JSON:
 *
 *     {"__metadata__": {"format": "pt"},
 *      "W_q.weight": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}, ...}
 *
 * Offsets count from the end of the header, which is padded with spaces to a multiple of 8. Wider
 * types come first, so that all elements are aligned; tensors of one type are sorted by name. Our
 * files are equal to the files of Python's safetensors, byte for byte (with at most one pair of
 * metadata, because Python's order of several pairs is random).
 *
 * The reader accepts what the format's own reader in Rust accepts, so the metadata may be null, and
 * an entry may have more keys, of any value, which are ignored.
 *
 * An entry whose type no tensor has stops only who wants it: its name and its type go to the dict's
 * list of what was not read.
 *
 * The reader trusts nothing. A header has at most 100 MB. The entries must cover the data without a
 * gap or an overlap. Memory for an entry is allocated only after the check that the file has its
 * bytes. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 100000000, METADATA_MAX = 4096 };

/* By DType, and then FILE_F16 and FILE_BF16. */
static const char *const type_names[] = {"F32", "F64", "I64", "BOOL", "F16", "BF16"};

/* The 8 bytes of a number, low byte first. */
static void number_to_bytes(uint64_t number, unsigned char byte[8]) {
    for (int i = 0; i < 8; i++) byte[i] = (unsigned char)(number >> 8 * i & 0xff);
}
static uint64_t number_of_bytes(const unsigned char byte[8]) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number |= (uint64_t)byte[i] << 8 * i;
    return number;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int by_type_and_name(const void *a, const void *b) {
    static const int rank[] = {2, 1, 0, 3}; /* by DType; the order: int64, float64, float32, bool */
    const NamedTensor *p = a;
    const NamedTensor *q = b;
    int order = rank[p->tensor->dtype] - rank[q->tensor->dtype];
    return order ? order : strcmp(p->name, q->name);
}

static void print_entry(Buffer *out, const NamedTensor *entry, int64_t begin, int64_t end) {
    const Tensor *x = entry->tensor;
    tensor_buffer_print_string(out, "", entry->name);
    tensor_buffer_print(out, ":{\"dtype\":\"%s\",\"shape\":", type_names[x->dtype]);
    tensor_buffer_print_shape(out, x->shape);
    tensor_buffer_print(out, ",\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
}

static void print_header(Buffer *out, const TensorDict *dict, const NamedTensor *sorted) {
    tensor_buffer_print(out, dict->n_metadata ? "{\"__metadata__\":{" : "{");
    for (int i = 0; i < dict->n_metadata; i++) {
        tensor_buffer_print_string(out, i ? "," : "", dict->metadata[i].key);
        tensor_buffer_print_string(out, ":", dict->metadata[i].value);
    }
    if (dict->n_metadata) tensor_buffer_print(out, "}");
    int64_t at = 0;
    for (int i = 0; i < dict->n; i++) {
        const Tensor *x = sorted[i].tensor;
        const int64_t end = at + tensor_numel(x) * dtype_size(x->dtype);
        if (i > 0 || dict->n_metadata) tensor_buffer_print(out, ",");
        print_entry(out, &sorted[i], at, end);
        at = end;
    }
    tensor_buffer_print(out, "}");
    tensor_buffer_append(out, "       ", -out->size % 8); /* with spaces to a multiple of 8 */
}

static bool write_all(const File *file, const TensorDict *dict, const NamedTensor *sorted) {
    Buffer header = {0};
    print_header(&header, dict, sorted);
    bool ok = !header.failed;
    if (!ok) tensor_file_fail(file, "out of memory for its header");
    else if (header.size > HEADER_MAX)
        ok = tensor_file_fail(file, "its header of %zu bytes is longer than %d", header.size,
                              HEADER_MAX);
    unsigned char length[8];
    number_to_bytes(header.size, length);
    ok = ok && tensor_file_write(file, length, sizeof length) &&
         tensor_file_write(file, header.bytes, header.size);
    for (int i = 0; ok && i < dict->n; i++) ok = tensor_file_write_tensor(file, sorted[i].tensor);
    free(header.bytes);
    return ok;
}

bool tensor_save_safetensors(const TensorDict *dict, const char *path) {
    if (!tensor_check_given("save_safetensors", "dict", dict)) return false;
    if (dict->n_metadata > METADATA_MAX) /* load_safetensors would refuse the file */
        return tensor_fail("save_safetensors: there are more than %d metadata", METADATA_MAX);
    if (dict->n_unread) return tensor_fail_unread("save_safetensors", dict->unread);
    NamedTensor *sorted = malloc(((size_t)dict->n + 1) * sizeof *sorted);
    if (!sorted) return tensor_fail("save_safetensors: out of memory for a list of names");
    for (int i = 0; i < dict->n; i++) sorted[i] = dict->entry[i];
    qsort(sorted, (size_t)dict->n, sizeof *sorted, by_type_and_name);
    File file;
    bool ok = tensor_file_create(&file, "save_safetensors", path);
    ok = tensor_file_finish(&file, ok && write_all(&file, dict, sorted));
    free(sorted);
    return ok;
}

/* ---- reading: entries ------------------------------------------------------------------------ */

typedef struct {
    const char *name; /* points into the text of the header */
    int64_t begin, end;
} Place; /* of the elements of an entry, in the data */

typedef struct {
    File file;
    Text text;
    int64_t data, data_size; /* where the elements begin in the file; how many bytes they have */
    int64_t taken;           /* the bytes of the entries so far */
    bool has_metadata;       /* the header has "__metadata__", which may be empty */
    TensorDict *dict;
    Place *place; /* of each entry, read or not */
    int places;
} Reader;

typedef struct {
    const char *type;
    int number;           /* of the type with this name */
    Shape shape, offsets; /* ndim is -1 until they are known */
} Description;

/* False for a second key of the same name; the caller makes the error. */
static bool take_field(Text *text, const char *key, void *context) {
    Description *it = context;
    if (!strcmp(key, "dtype")) return !it->type && tensor_text_string(text, &it->type);
    if (!strcmp(key, "shape")) return it->shape.ndim < 0 && tensor_text_list(text, &it->shape);
    if (!strcmp(key, "data_offsets"))
        return it->offsets.ndim < 0 && tensor_text_list(text, &it->offsets);
    return tensor_text_skip(text);
}

static bool check_description(const Reader *r, Description *it) {
    while (it->number < FILE_TYPES && strcmp(it->type, type_names[it->number]) != 0) it->number++;
    const int64_t begin = it->offsets.dim[0], end = it->offsets.dim[1];
    if (it->offsets.ndim == 2 && begin <= end && end <= r->data_size) return true;
    return tensor_file_fail(&r->file, "its data_offsets %s are no range in the %lld byte%s of data",
                            tensor_shape_text(it->offsets), (long long)r->data_size,
                            r->data_size == 1 ? "" : "s");
}

/* Its elements, or, if no tensor has its type, its name and its type. */
static bool keep_entry(Reader *r, const Place *place, const Description *it) {
    TensorDict *dict = r->dict;
    if (it->number == FILE_TYPES)
        return tensor_pair_append(&dict->unread, &dict->n_unread, place->name, it->type);
    Tensor *x = tensor_file_read_tensor(&r->file, r->data + place->begin, place->end - place->begin,
                                        it->shape, it->number, false);
    const bool ok = x && tensor_dict_append(dict, place->name, x);
    tensor_release(x);
    return ok;
}

static bool take_entry(Reader *r, const char *name) {
    Description it = {.shape = {.ndim = -1}, .offsets = {.ndim = -1}};
    r->file.entry = name;
    bool known = tensor_text_object(&r->text, take_field, &it) && it.type && it.shape.ndim >= 0;
    if (!known || it.offsets.ndim < 0) /* an earlier error stays */
        return tensor_file_fail(&r->file, "it must have dtype, shape and data_offsets, each once");
    if (!check_description(r, &it)) return false;
    const Place place = {name, it.offsets.dim[0], it.offsets.dim[1]};
    r->taken += place.end - place.begin;
    if (r->taken > r->data_size)
        return tensor_file_fail(&r->file, "its data overlap the data of another tensor");
    Place *longer = tensor_list_reserve(r->place, r->places, sizeof *longer);
    if (!longer) return false;
    r->place = longer;
    r->place[r->places++] = place;
    const bool ok = keep_entry(r, &place, &it);
    r->file.entry = NULL;
    return ok;
}

static bool take_metadata(Text *text, const char *key, void *context) {
    TensorDict *dict = context;
    const char *value;
    if (dict->n_metadata == METADATA_MAX)
        return tensor_file_fail(text->file, "there are more than %d metadata", METADATA_MAX);
    return tensor_text_string(text, &value) &&
           tensor_pair_append(&dict->metadata, &dict->n_metadata, key, value);
}

static bool take_member(Text *text, const char *key, void *context) {
    Reader *r = context;
    if (strcmp(key, "__metadata__") != 0) return take_entry(r, key);
    if (r->has_metadata)
        return tensor_file_fail(&r->file, "the name \"__metadata__\" is there twice");
    r->has_metadata = true;
    return tensor_text_take(text, "null") || tensor_text_object(text, take_metadata, r->dict);
}

/* ---- reading: the file as a whole ------------------------------------------------------------ */

static int by_place(const void *a, const void *b) {
    const Place *p = a;
    const Place *q = b;
    if (p->begin != q->begin) return p->begin > q->begin ? 1 : -1;
    return (p->end > q->end) - (p->end < q->end); /* an empty entry first */
}

static bool check_tiling(Reader *r) {
    int64_t at = 0;
    const int n = r->places;
    if (n > 0) qsort(r->place, (size_t)n, sizeof *r->place, by_place);
    for (int i = 0; i < n; at = r->place[i++].end) {
        if (r->place[i].begin == at) continue;
        r->file.entry = r->place[i].name;
        return tensor_file_fail(&r->file,
                                "its data begin at byte %lld, and the data before them end at %lld",
                                (long long)r->place[i].begin, (long long)at);
    }
    if (at == r->data_size) return true;
    return tensor_file_fail(&r->file, "its tensors take %lld of %lld byte%s of data", (long long)at,
                            (long long)r->data_size, r->data_size == 1 ? "" : "s");
}

/* Compares two structs that begin with a name. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_names(const Reader *r, void *list, int n, size_t size) {
    if (n > 0) qsort(list, (size_t)n, size, by_name);
    for (int i = 1; i < n; i++) {
        const char *const *name = (const void *)((const char *)list + (size_t)i * size);
        if (!by_name(name, (const char *)name - size))
            return tensor_file_fail(&r->file, "the name \"%s\" is there twice",
                                    tensor_name_text(*name));
    }
    return true;
}

/* Reads the length of the header and the header. */
static bool read_header(Reader *r) {
    unsigned char start[9] = {0};
    const int64_t size = r->file.size < 9 ? r->file.size : 9;
    if (!tensor_file_read(&r->file, 0, start, size)) return false;
    const uint64_t length = number_of_bytes(start);
    const bool begins = length <= HEADER_MAX && start[8] && strchr("{ \t\r\n", start[8]);
    const char *kind = begins ? NULL : tensor_file_kind(&r->file);
    if (kind) return tensor_file_fail(&r->file, "it is %s", kind);
    if (size < 8)
        return tensor_file_fail(&r->file, "it is shorter than the 8 bytes before the header");
    if (length > HEADER_MAX)
        return tensor_file_fail(&r->file,
                                "it does not begin as a safetensors file: a header of %llu bytes "
                                "is longer than %d",
                                (unsigned long long)length, HEADER_MAX);
    r->data = 8 + (int64_t)length;
    r->data_size = r->file.size - r->data;
    if (!tensor_text_read(&r->text, &r->file, 8, (int64_t)length)) return false;
    return tensor_is_utf8(r->text.start, length) ||
           tensor_file_fail(&r->file, "its header is not UTF-8");
}

TensorDict *tensor_load_safetensors(const char *path) {
    Reader r = {.dict = tensor_dict_new()};
    bool ok = r.dict && tensor_file_open(&r.file, "load_safetensors", path) && read_header(&r) &&
              tensor_text_object(&r.text, take_member, &r) && tensor_text_end(&r.text) &&
              check_tiling(&r) && check_names(&r, r.place, r.places, sizeof *r.place) &&
              check_names(&r, r.dict->metadata, r.dict->n_metadata, sizeof *r.dict->metadata);
    free(r.text.start);
    free(r.place);
    tensor_file_close(&r.file);
    if (!ok) tensor_dict_free(r.dict);
    return ok ? r.dict : NULL;
}
