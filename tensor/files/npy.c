/* npy.c - NumPy's format for one array: magic bytes, a version, the length of the header, the
 * header, the elements.
 *
 * The header is a Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), },
 * padded so that the elements begin at a multiple of 64. The length has two bytes in version 1 and
 * four in versions 2 and 3. Source: numpy.lib.format. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

/* By DType, and then FILE_F16. */
static const char *const npy_types[] = {"<f4", "<f8", "<i8", "|b1", "<f2"};

bool tensor_save_npy(const Tensor *x, const char *path) {
    File file;
    tensor_check_readable("save_npy", x);
    if (!tensor_file_create(&file, "save_npy", path)) return tensor_file_finish(&file, false);
    char text[384], header[sizeof text + 128];
    int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                 npy_types[x->dtype], tensor_shape_text(x->shape));
    /* NumPy pads the first size to 21 digits, so that a file can be appended to. */
    if (x->shape.ndim > 0) length += 21 - snprintf(NULL, 0, "%lld", (long long)x->shape.dim[0]);
    const int size = (10 + length + 1 + 63) / 64 * 64, rest = size - 10;
    snprintf(header, sizeof header, "\x93NUMPY%c%c%c%c%-*s\n", 1, 0, rest & 0xff, rest >> 8,
             rest - 1, text);
    bool ok = tensor_file_write(&file, header, (size_t)size) && tensor_file_write_tensor(&file, x);
    return tensor_file_finish(&file, ok);
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct {
    const char *type;
    int order;   /* 1: Fortran's; -1: not known yet */
    Shape shape; /* ndim -1: not known yet */
} Header;

static bool take_order(Text *text, int *order) {
    *order = tensor_text_take(text, "True");
    return *order || tensor_text_take(text, "False") || tensor_text_fail(text, "True or False");
}

/* False for an unknown key and for a second key of the same name; the caller makes the error. */
static bool take_field(Text *text, const char *key, void *context) {
    Header *header = context;
    if (!strcmp(key, "descr") && !header->type) return tensor_text_string(text, &header->type);
    if (!strcmp(key, "fortran_order") && header->order < 0) return take_order(text, &header->order);
    if (!strcmp(key, "shape") && header->shape.ndim < 0)
        return tensor_text_list(text, &header->shape);
    return false;
}

/* Advice for a user of NumPy whose file has a type that we do not read. */
static const char *conversion(const char *type) {
    if (!*type) return "";
    const char kind = type[1];
    if (kind == 'f') return "; in NumPy, save x.astype('float32')";
    return kind == 'i' || kind == 'u' ? "; in NumPy, save x.astype('int64')" : "";
}

/* The type of a name such as '<f4'. The first character is the byte order. '=' is the byte order
 * of the machine that wrote the file; we read it as '<'. */
static bool find_type(const File *file, const char *name, int *type) {
    if (*name && strchr("<>=|", *name))
        for (*type = 0; *type <= FILE_F16; ++*type)
            if (!strcmp(name + 1, npy_types[*type] + 1)) return true;
    return tensor_file_fail(file, "its type is '%s': only f2, f4, f8, i8 and b1 are read%s",
                            tensor_name_text(name), conversion(name));
}

/* A safetensors file begins with a length of 8 bytes, of which the high ones are 0, and '{'. */
static void fail_at_start(const File *file, const unsigned char start[12]) {
    const char *kind = tensor_file_kind(file);
    if (!memcmp(start + 4, "\0\0\0\0{", 5))
        tensor_file_fail(file, "it is a safetensors file: tensor_load_safetensors reads it");
    else if (kind) tensor_file_fail(file, "it is %s", kind);
    else tensor_file_fail(file, "it does not begin as a .npy file");
}

/* Reads the header into text. Returns the byte where the elements begin, or 0 and an error. */
static int64_t read_header(Text *text, const File *file) {
    unsigned char p[12] = {0};
    if (!tensor_file_read(file, 0, p, file->size < 12 ? file->size : 12)) return 0;
    if (memcmp(p, "\x93NUMPY", 6) != 0) fail_at_start(file, p);
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        tensor_file_fail(file, "its version is %d.%d: 1.0, 2.0 and 3.0 are read", p[6], p[7]);
    if (tensor_pending()) return 0;
    const int64_t high = p[6] == 1 ? 0 : (int64_t)p[10] << 16 | (int64_t)p[11] << 24;
    const int64_t at = p[6] == 1 ? 10 : 12, length = p[8] | p[9] << 8 | high;
    return tensor_text_read(text, file, at, length) ? at + length : 0;
}

/* In Fortran order the first index varies fastest, so the first stride is 1. */
static Tensor *read_elements(const File *file, int64_t at, const Header *header) {
    int type = 0;
    if (!find_type(file, header->type, &type)) return NULL;
    Tensor *x = tensor_file_read_tensor(file, at, file->size - at, header->shape, type,
                                        *header->type == '>');
    int64_t step = 1;
    if (!x || header->order != 1) return x;
    for (int d = 0; d < x->shape.ndim; d++) {
        x->stride[d] = step;
        step *= x->shape.dim[d] > 1 ? x->shape.dim[d] : 1;
    }
    return x;
}

Tensor *tensor_load_npy(const char *path) {
    File file;
    Text text = {.python = true};
    Header header = {.order = -1, .shape = {.ndim = -1}};
    const int64_t data = tensor_file_open(&file, "load_npy", path) ? read_header(&text, &file) : 0;
    bool ok = data && tensor_text_object(&text, take_field, &header) && header.type &&
              header.order >= 0 && header.shape.ndim >= 0;
    if (!ok)
        tensor_file_fail(&file, "its header must have descr, fortran_order and shape, each once");
    Tensor *x = ok && tensor_text_end(&text) ? read_elements(&file, data, &header) : NULL;
    free(text.start);
    tensor_file_close(&file);
    return x;
}
