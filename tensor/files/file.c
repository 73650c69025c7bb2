/* file.c - reads and writes bytes and tensors in files, and makes the errors about files. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- error messages -------------------------------------------------------------------------- */

void *tensor_file_fail(const File *file, const char *format, ...) {
    char text[256], entry[72] = "";
    if (tensor_pending()) return NULL;
    va_list arguments;
    va_start(arguments, format);
    tensor_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (file->entry) snprintf(entry, sizeof entry, "\"%s\": ", tensor_name_text(file->entry));
    size_t length = strlen(file->path), most = 120; /* the end of a path is more useful */
    size_t skipped = length > most ? length - most : 0;
    while (skipped && ((unsigned char)file->path[skipped] & 0xc0) == 0x80) skipped++;
    return tensor_fail("%s: %s%s: %s%s", file->function, skipped ? "..." : "", file->path + skipped,
                       entry, text);
}

static const char *reason(void) { return errno == ENOMEM ? "out of memory" : strerror(errno); }

static bool check_done(const File *file, const char *what, bool ok) {
    if (!ok) tensor_file_fail(file, "it cannot be %s: %s", what, reason());
    return ok;
}

static bool start(File *file, const char *function, const char *path) {
    *file = (File){.function = function, .path = path};
    return tensor_check_given(function, "path", path) && !tensor_pending();
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Reverses the bytes of each element. x is contiguous, here and below. */
static void swap_bytes(Tensor *x) {
    const int64_t size = dtype_size(x->dtype);
    char *element = x->data;
    for (int64_t n = tensor_numel(x); n > 0; n--, element += size)
        for (int64_t i = 0; i < size / 2; i++) {
            const char moved = element[i];
            element[i] = element[size - 1 - i];
            element[size - 1 - i] = moved;
        }
}

/* Makes bools of bytes: a bool that is neither 0 nor 1 must not be read. */
static void bytes_to_bools(Tensor *x) {
    unsigned char *byte = x->data;
    for (int64_t i = 0; i < tensor_numel(x); i++) byte[i] = byte[i] != 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static FILE *open_stream(const File *file, int fd) {
    FILE *stream = fdopen(fd, "rb");
    check_done(file, "opened", stream != NULL);
    return stream;
}

bool tensor_file_open(File *file, const char *function, const char *path) {
    if (!start(file, function, path)) return false;
    /* O_NONBLOCK: open of a pipe must not wait for a writer. Regular files ignore the flag. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    const bool opened = check_done(file, "opened", fd >= 0 && fstat(fd, &status) == 0);
    if (opened && !S_ISREG(status.st_mode)) tensor_file_fail(file, "it is not a regular file");
    else if (opened) file->stream = open_stream(file, fd);
    if (fd >= 0 && !file->stream) close(fd);
    if (opened) file->size = status.st_size;
    return file->stream != NULL;
}

void tensor_file_close(File *file) {
    if (file->stream) fclose(file->stream);
}

bool tensor_file_read(const File *file, int64_t at, void *to, int64_t size) {
    errno = 0; /* errno stays 0 if the file has become shorter */
    bool ok = fseeko(file->stream, at, SEEK_SET) == 0 &&
              fread(to, 1, (size_t)size, file->stream) == (size_t)size;
    return ok ||
           tensor_file_fail(file, "it cannot be read: %s", errno ? reason() : "it ends too early");
}

/* ---- files of other kinds ---------------------------------------------------------------------
 */

#define A_PICKLE ": in Python, load it and save its tensors with safetensors.torch.save_file"
#define A_PAGE   "a web page, not the file itself: download it again"

/* A file that begins with `first`, and has the text `near` near its beginning, is this. The first
 * line that fits is right. */
static const struct {
    const char *first, *near, *what;
} kinds[] = {
    {"PK\3\4", "data.pkl", "a file of torch.save" A_PICKLE},
    {"PK\3\4", ".npy", "a .npz file: in NumPy, save each of its arrays with np.save"},
    {"PK\3\4", "", "a zip archive: unpack it"},
    {"\x80\2\x8a\nl\xfc\x9c", "", "a file of an old torch.save" A_PICKLE},
    {"\x80\2", "", "a pickle" A_PICKLE},
    {"\x80\3", "", "a pickle" A_PICKLE},
    {"\x80\4", "", "a pickle" A_PICKLE},
    {"\x80\5", "", "a pickle" A_PICKLE},
    {"GGUF", "", "a GGUF file, most of whose types no tensor has: take the model's .safetensors"},
    {"\x93NUMPY", "", "a .npy file: tensor_load_npy reads it"},
    {"\x89HDF\r\n", "", "an HDF5 file: in Python, read it with h5py and save its arrays"},
    {"\x1f\x8b", "", "compressed, by gzip: unpack it"},
    {"version ", "git-lfs", "a pointer of Git LFS, not the file itself: git lfs pull"},
    {"<!", "", A_PAGE},
    {"<html", "", A_PAGE},
    {"{", "\"", "a text, JSON: the tensors are in .safetensors files, which it may name"},
};

static bool has_near(const char *bytes, size_t size, const char *text) {
    const size_t n = strlen(text);
    for (size_t at = 0; at + n <= size; at++)
        if (!memcmp(bytes + at, text, n)) return true;
    return false;
}

const char *tensor_file_kind(const File *file) {
    char bytes[128];
    const int64_t most = sizeof bytes, size = file->size < most ? file->size : most;
    if (!tensor_file_read(file, 0, bytes, size)) return NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n = strlen(kinds[i].first);
        if (n <= (size_t)size && !memcmp(bytes, kinds[i].first, n) &&
            has_near(bytes, (size_t)size, kinds[i].near))
            return kinds[i].what;
    }
    return NULL;
}

/* ---- elements ---------------------------------------------------------------------------------
 */

/* The bits of a float32 equal to the F16 with these bits: a sign, 5 bits of exponent e, 10 bits of
 * fraction f. The number is (1 + f / 2^10) 2^(e - 15), or f 2^-24 if e is 0. If e is 31 it is
 * infinity (f = 0) or NaN. A float32 adds 127 to its exponent, not 15, and has 23 bits of fraction.
 */
static uint32_t bits_of_f16(uint32_t half) {
    const uint32_t sign = half >> 15 << 31, e = half >> 10 & 31, f = half & 0x3ff;
    const float small = (float)f * 0x1p-24f;
    uint32_t bits = (e + 127 - 15) << 23 | f << 13;
    if (e == 31) bits = 0x7f800000 | f << 13;
    if (e == 0) memcpy(&bits, &small, sizeof bits);
    return sign | bits;
}

/* x has read its elements, of 16 bits each, into the second half of its bytes. Writes them as
 * float32: element i ends where element i + 1 begins to be read, or before. */
static void widen(Tensor *x, int type, bool high_first) {
    const int64_t n = tensor_numel(x);
    unsigned char *to = x->data;
    const unsigned char *from = to + 2 * n;
    for (int64_t i = 0; i < n; i++, to += 4, from += 2) {
        const uint32_t half = (uint32_t)from[!high_first] << 8 | from[high_first];
        const uint32_t bits = type == FILE_F16 ? bits_of_f16(half) : half << 16;
        memcpy(to, &bits, sizeof bits);
    }
}

Tensor *tensor_file_read_tensor(const File *file, int64_t at, int64_t bytes, Shape shape, int type,
                                bool high_first) {
    static const char *const names[] = {"float16", "bfloat16"};
    const bool wider = type > BOOL;
    const DType dtype = wider ? F32 : (DType)type;
    const int64_t size = dtype_size(dtype), in_file = wider ? 2 : size;
    if (!tensor_shape_fits(shape, size) || tensor_shape_numel(shape) * in_file != bytes)
        return tensor_file_fail(file, "shape %s of %s does not take its %lld byte%s of data",
                                tensor_shape_text(shape),
                                wider ? names[type - FILE_F16] : tensor_dtype_name(dtype),
                                (long long)bytes, bytes == 1 ? "" : "s");
    Tensor *x = tensor_make(shape, dtype);
    bool ok = x && tensor_file_read(file, at, (char *)x->data + (wider ? bytes : 0), bytes);
    if (ok && wider) widen(x, type, high_first);
    if (ok && dtype == BOOL) bytes_to_bools(x);
    if (ok && !wider && high_first == LOW_BYTE_FIRST) swap_bytes(x);
    if (!ok) tensor_release(x);
    return ok ? x : NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool tensor_file_create(File *file, const char *function, const char *path) {
    if (!start(file, function, path)) return false;
    file->stream = tensor_replacement_begin(&file->replacement, path);
    return check_done(file, "written", file->stream != NULL);
}

bool tensor_file_write(const File *file, const void *bytes, size_t size) {
    return check_done(file, "written", fwrite(bytes, 1, size, file->stream) == size);
}

/* x's elements in the order of a file: row-major, low byte first. */
static Tensor *in_order_of_files(const Tensor *x) {
    if (LOW_BYTE_FIRST) return tensor_contiguous(x);
    Tensor *y = tensor_clone(x);
    if (y) swap_bytes(y);
    return y;
}

bool tensor_file_write_tensor(const File *file, const Tensor *x) {
    Tensor *y = tensor_check_readable(file->function, x) ? in_order_of_files(x) : NULL;
    bool ok =
        y && tensor_file_write(file, y->data, (size_t)(tensor_numel(y) * dtype_size(y->dtype)));
    tensor_release(y);
    return ok;
}

bool tensor_file_finish(File *file, bool ok) {
    const char *problem = tensor_replacement_finish(&file->replacement, file->stream, ok);
    if (problem) tensor_file_fail(file, "%s: %s", problem, reason());
    return ok && !problem;
}

bool tensor_write_file(const char *path, void (*write)(FILE *file, const void *context),
                       const void *context) {
    File file;
    bool ok = tensor_file_create(&file, "write_file", path);
    if (!write) tensor_fail("write_file: the function is NULL");
    else if (ok) write(file.stream, context);
    return tensor_file_finish(&file, ok && !tensor_pending());
}

bool tensor_can_write_file(const char *path) {
    File file;
    return start(&file, "write_file", path) &&
           check_done(&file, "written", tensor_can_replace(path));
}
