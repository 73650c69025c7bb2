/* file.h - for the readers and writers of files: a file that replaces another file in one step
 * (replace.c, or win32.c on Windows), reading and writing (file.c), parsing a header (parse.c), an
 * array of bytes that grows (buffer.c), named tensors (dict.c). */
#ifndef TAPEHEAD_TENSOR_FILE_H
#define TAPEHEAD_TENSOR_FILE_H

#include "../operations/operations.h"

#include <dirent.h>

/* In files the low byte of a number comes first. A machine with another order swaps the bytes. */
enum { LOW_BYTE_FIRST = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* ---- a file that replaces another file ------------------------------------------------------ */

enum { PATH_SIZE = 4096 }; /* bytes of the longest path */

typedef struct {
    char target[PATH_SIZE];         /* "" if path is a device or a pipe */
    char temporary[PATH_SIZE + 32]; /* the file that is renamed to target; "" after that */
    DIR *directory;                 /* of the target, open to be flushed; NULL if target is "" */
} Replacement;

/* Can path be replaced, or written to if it is a device? If not, false, with errno set. */
bool tensor_can_replace(const char *path);
/* A stream to write to; NULL, with errno set, on failure. */
FILE *tensor_replacement_begin(Replacement *r, const char *path);
/* Must follow tensor_replacement_begin, also when that failed. Closes the stream. ok: the caller
 * has written everything. If ok is false, or if this function fails before the rename, the old file
 * at path stays. Returns NULL, or the problem as a text, with errno set. */
const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok);

/* ---- files ---------------------------------------------------------------------------------- */

/* A file that is read or written. */
typedef struct {
    const char *function; /* for errors: "save_npy" */
    const char *path;
    const char *entry; /* for errors: the name of the current tensor, or NULL */
    FILE *stream;
    int64_t size;            /* when reading: the bytes of the file */
    Replacement replacement; /* when writing */
} File;

/* Makes an error, "save_npy: x.npy: ..." or "load_safetensors: x: \"W_q.weight\": ...", and returns
 * NULL. */
TENSOR_PRINTF(2, 3) void *tensor_file_fail(const File *file, const char *format, ...);
bool tensor_file_open(File *file, const char *function, const char *path);
bool tensor_file_read(const File *file, int64_t at, void *to, int64_t size);
/* The types of the elements in a file: a DType, or a float of 16 bits. F16 (IEEE's binary16) and
 * BF16 (the upper half of a float32) are read as float32, which has every number of both. */
enum { FILE_F16 = BOOL + 1, FILE_BF16, FILE_TYPES };
/* A contiguous tensor of the elements in the file from byte `at` on. An error if shape and type
 * need more or fewer bytes than `bytes`. high_first: the high byte of a number comes first. */
Tensor *tensor_file_read_tensor(const File *file, int64_t at, int64_t bytes, Shape shape, int type,
                                bool high_first);
/* What the file is, by its first bytes, and what to do: a sentence after "it is"; NULL if they are
 * not known. For a reader of another format. */
const char *tensor_file_kind(const File *file);
void tensor_file_close(File *file); /* after tensor_file_open, also when that failed */

/* The new file replaces the file at path in tensor_file_finish. */
bool tensor_file_create(File *file, const char *function, const char *path);
bool tensor_file_write(const File *file, const void *bytes, size_t size);
bool tensor_file_write_tensor(const File *file, const Tensor *x); /* row-major, low byte first */
/* Must follow tensor_file_create, also when that failed. ok: the caller has written everything. If
 * ok is false, or if this function fails before the rename, the old file at path stays. */
bool tensor_file_finish(File *file, bool ok);

/* ---- headers: a parser, from left to right --------------------------------------------------- */

typedef struct {
    const File *file;
    char *start;
    char *at; /* the next character */
    char *end;
    bool python; /* Python: strings in '', tuples in (), a comma before a closing bracket; else JSON
                  */
} Text;

/* Reads the text of a header. text->python must be set before; the caller frees text->start, also
 * on failure. */
bool tensor_text_read(Text *text, const File *file, int64_t at, int64_t size);
/* Makes the error "byte 12 of the header should be ..." and returns false. The tensor_text
 * functions below skip white space first, and make an error when they return false. But
 * tensor_text_take makes no error, and tensor_text_object makes no error for a key that `take`
 * refuses. */
bool tensor_text_fail(const Text *text, const char *what);
bool tensor_text_take(Text *text, const char *token); /* takes the token if it comes next */
bool tensor_text_end(Text *text);
bool tensor_text_string(Text *text, const char **string); /* *string points into the text */
/* [2, 3] or (2, 3): whole numbers below 2^63. Python 2 may write (2L, 3L). */
bool tensor_text_list(Text *text, Shape *list);
bool tensor_text_skip(Text *text); /* takes a value of JSON, whatever it is */
/* {key: value, ...}: calls `take` for each value. `take` returns false for a key that must not be
 * in the object; the caller then makes the error. */
typedef bool TakeValue(Text *text, const char *key, void *context);
bool tensor_text_object(Text *text, TakeValue *take, void *context);
/* The bytes of the character of UTF-8 that begins a text of `size` bytes; 0 if none does. A text
 * that ends with a 0 may have fewer: size 4 is enough for each of its characters. */
size_t tensor_utf8_bytes(const char *text, size_t size);
bool tensor_is_utf8(const char *text, size_t size);

/* ---- an array of bytes that grows ------------------------------------------------------------ */

/* {0} is an empty buffer. After a failure nothing more is appended, so the caller checks `failed`
 * once, at the end. The caller frees bytes. */
typedef struct {
    char *bytes;
    size_t size, capacity;
    bool failed; /* memory ran out, or a text was too long */
} Buffer;
void tensor_buffer_append(Buffer *buffer, const void *bytes, size_t n);
/* At most 127 bytes at a time. */
TENSOR_PRINTF(2, 3) void tensor_buffer_print(Buffer *buffer, const char *format, ...);
/* Each appends a JSON value, the first two after the text `before`. The string NULL counts as "";
 * bytes in it that are no UTF-8 become U+FFFD. A number is written with the fewest digits that read
 * back as the same number of the type, F32 or F64. JSON has no NaN and no infinity, so these become
 * strings. A shape is a list, [2,3]. */
void tensor_buffer_print_string(Buffer *buffer, const char *before, const char *text);
void tensor_buffer_print_number(Buffer *buffer, const char *before, double x, DType dtype);
void tensor_buffer_print_shape(Buffer *buffer, Shape shape);

/* ---- dicts ---------------------------------------------------------------------------------- */

/* Reallocates list, an array of n structs, so that one more fits; NULL and an error on failure. */
void *tensor_list_reserve(void *list, int n, size_t size);
/* These two functions do not look for an older entry of the same name. A list of pairs is one of
 * metadata, or of entries that were not read. */
bool tensor_dict_append(TensorDict *dict, const char *name, Tensor *x);
bool tensor_pair_append(Metadata **list, int *n, const char *key, const char *value);
/* Makes the error about an entry of dict->unread. */
void *tensor_fail_unread(const char *function, const Metadata *entry);

#endif
