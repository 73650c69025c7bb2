/* npy.c - NumPy's format for one array: the magic bytes, a version, a header, the elements.
 *
 * The header is a Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), },
 * padded so that the elements begin at a multiple of 64. Its length takes two bytes in version 1,
 * four in versions 2 and 3. Source: numpy.lib.format. */
#include "file.h"

#include <string.h>

static const char *const npy_types[] = {"<f4", "<f8", "<i8", "|b1"}; /* by DType */

bool tensor_save_npy(const Tensor *x, const char *path) {
    if (!x) tensor_fail("save_npy: the tensor is NULL");
    File file;
    bool ok = file_create(&file, "save_npy", path);
    if (!ok) return file_finish(&file, false);
    char header[512];
    Shape shape = x->shape;
    int length = 10 + snprintf(header + 10, sizeof header - 10,
                               "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                               npy_types[x->dtype], tensor_shape_text(shape));
    /* NumPy leaves room for the first size to grow to 21 digits. */
    if (shape.ndim > 0) length += 21 - snprintf(NULL, 0, "%lld", (long long)shape.dim[0]);
    int padded = (length + 1 + 63) / 64 * 64;
    for (size_t i = 10 + strlen(header + 10); i < (size_t)padded; i++) header[i] = ' ';
    header[padded - 1] = '\n';
    const int rest = padded - 10;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(rest & 0xff);
    header[9] = (char)(rest >> 8);
    ok = file_write(&file, header, (size_t)padded) && file_write_tensor(&file, x);
    return file_finish(&file, ok);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct {
    DType dtype;
    bool big_endian, fortran_order;
    Shape shape;
} Header;

/* A Python string without escapes, ended in place with a '\0'. */
static bool take_string(Text *text, const char **string) {
    const char quote = text_take(text, '"') ? '"' : '\'';
    if (quote == '\'' && !text_take(text, quote)) return text_fail(text, "a string");
    *string = text->at;
    while (text->at < text->end && *text->at != quote && *text->at != '\\' && *text->at >= ' ')
        text->at++;
    if (text->at == text->end || *text->at != quote) return text_fail(text, "the end of a string");
    *text->at++ = '\0';
    return true;
}

/* '<f4': the order of the bytes, and the type. */
static bool take_type(Text *text, Header *header) {
    const char *type;
    if (!take_string(text, &type)) return false;
    bool known = *type && strchr("<>=|", *type);
    for (int i = 0; known && i <= BOOL; i++) {
        if (strcmp(type + 1, npy_types[i] + 1) != 0) continue;
        header->dtype = (DType)i;
        header->big_endian = *type == '>';
        return true;
    }
    return file_fail(text->file, "its type is '%s': only f4, f8, i8 and b1 are read",
                     tensor_name_text(type));
}

static bool take_bool(Text *text, bool *value) {
    *value = text_take(text, 'T');
    if (!*value && !text_take(text, 'F')) return text_fail(text, "True or False");
    const char *rest = *value ? "rue" : "alse";
    const size_t length = strlen(rest);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, rest, length) != 0)
        return text_fail(text, "True or False");
    text->at += length;
    return true;
}

static bool fields_fail(const Text *text) {
    return file_fail(text->file, "its header must have descr, fortran_order and shape, each once");
}

static bool take_value(Text *text, int field, Header *header) {
    switch (field) {
    case 0: return take_type(text, header);
    case 1: return take_bool(text, &header->fortran_order);
    case 2: return text_list(text, '(', ')', &header->shape);
    default: return true; /* that there must be three fields is said below */
    }
}

static bool take_header(Text *text, Header *header) {
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    bool closed = false;
    if (!text_expect(text, '{')) return false;
    do {
        const char *key = NULL;
        if ((closed = text_take(text, '}'))) break;
        if (!take_string(text, &key) || !text_expect(text, ':')) return false;
        int field = text_field(key, names, &seen);
        if (field < 0) return fields_fail(text);
        if (!take_value(text, field, header)) return false;
    } while (text_take(text, ','));
    if (!closed && !text_expect(text, '}')) return false;
    return seen == 7 ? text_end(text) : fields_fail(text);
}

/* The magic bytes and the version, then where the header begins and how long it is. */
static bool take_prefix(const File *file, int64_t *at, int64_t *length) {
    unsigned char p[12] = {0};
    if (!file_read(file, 0, p, file->size < 12 ? file->size : 12)) return false;
    if (memcmp(p, "\x93NUMPY", 6) != 0) return file_fail(file, "it does not begin as a .npy file");
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return file_fail(file, "its version is %d.%d: 1.0, 2.0 and 3.0 are read", p[6], p[7]);
    *at = p[6] == 1 ? 10 : 12;
    *length = p[8] | p[9] << 8 | (p[6] == 1 ? 0 : (int64_t)p[10] << 16 | (int64_t)p[11] << 24);
    if (*length <= file->size - *at) return true;
    return file_fail(file, "its header of %lld bytes goes beyond its end", (long long)*length);
}

static void swap_bytes(char *element, size_t size) {
    for (size_t i = 0; i < size / 2; i++) {
        char kept = element[i];
        element[i] = element[size - 1 - i];
        element[size - 1 - i] = kept;
    }
}

/* In Fortran order the first index varies fastest: a tensor of the sizes turned round, seen with
 * its dimensions turned round. */
static Tensor *read_elements(const File *file, int64_t at, const Header *header) {
    const size_t size = dtype_size(header->dtype);
    Shape shape = header->shape;
    int axes[TENSOR_MAX_DIMS];
    for (int d = 0; d < shape.ndim; d++) {
        axes[d] = shape.ndim - 1 - d;
        if (header->fortran_order) shape.dim[d] = header->shape.dim[axes[d]];
    }
    if (!shape_fits(shape, (int64_t)size) ||
        shape_numel(shape) * (int64_t)size != file->size - at) {
        file_fail(file, "shape %s of %s does not take its %lld bytes of data",
                  tensor_shape_text(header->shape), tensor_dtype_name(header->dtype),
                  (long long)(file->size - at));
        return NULL;
    }
    Tensor *x = file_read_tensor(file, at, shape, header->dtype);
    for (int64_t i = 0; x && header->big_endian && i < tensor_numel(x); i++)
        swap_bytes((char *)x->data + i * (int64_t)size, size);
    if (!x || !header->fortran_order) return x;
    Tensor *turned = view_permute(x, axes);
    tensor_release(x);
    return turned;
}

Tensor *tensor_load_npy(const char *path) {
    File file;
    Text text = {0};
    Header header = {0};
    int64_t at = 0, length = 0;
    Tensor *x = NULL;
    if (file_open(&file, "load_npy", path) && take_prefix(&file, &at, &length) &&
        text_read(&text, &file, at, length) && take_header(&text, &header))
        x = read_elements(&file, at + length, &header);
    text_free(&text);
    file_close(&file);
    return x;
}
