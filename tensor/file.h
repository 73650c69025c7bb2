/* file.h - what the readers and writers of files share: a file that appears whole or not at all,
 * tensors as their bytes (file.c), headers (text.c), text that grows (buffer.c), named tensors
 * (dict.c). */
#ifndef TAPEHEAD_TENSOR_FILE_H
#define TAPEHEAD_TENSOR_FILE_H

#include "math/operations.h"

/* Files have the low byte of a number first, so a machine that does not must turn them round. */
enum { LOW_BYTE_FIRST = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* ---- a file that takes another's place ------------------------------------------------------ */

typedef struct Replacement {
    char *target, *temporary; /* what temporary will be renamed to; NULL for a device or a pipe */
    int directory;            /* the target's, to be flushed; -1 */
    long number;              /* in the name of temporary; 0 before there is one */
    bool in_place;
    struct Replacement *next; /* another one of this process; stays where it is meanwhile */
} Replacement;

/* Could path be replaced, or written if it is a device? False, and errno, if not. */
bool tensor_can_replace(const char *path);
/* A stream to fill; NULL, and errno. */
FILE *tensor_replacement_begin(Replacement *r, const char *path);
/* Ends what tensor_replacement_begin began, also when that failed, and closes the stream. ok: has
 * all been written? If not, or if this fails, path is left as it was. What went wrong here, and
 * errno; or NULL. */
const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok);

/* ---- files ---------------------------------------------------------------------------------- */

/* A file that is read, or one that is being written. */
typedef struct {
    const char *function, *path, *entry; /* for sentences; entry: the tensor at hand, or NULL */
    FILE *stream;
    int64_t size;            /* reading: the bytes of the file */
    Replacement replacement; /* writing */
} File;

/* Leaves an error, "save_npy: x.npy: ...", for an entry "load_safetensors: x: \"W_q.weight\": ...",
 * and returns NULL. */
__attribute__((format(printf, 2, 3))) void *tensor_file_fail(const File *file, const char *format,
                                                             ...);
bool tensor_file_open(File *file, const char *function, const char *path);
bool tensor_file_read(const File *file, int64_t at, void *to, int64_t size);
/* The elements in so many bytes, which must be theirs, from byte `at` on, the low byte of each
 * first; contiguous. */
Tensor *tensor_file_read_tensor(const File *file, int64_t at, int64_t bytes, Shape shape,
                                DType dtype);
void tensor_file_close(File *file); /* one that was read; tensor_file_open may have failed */

/* What is written takes path's place when all of it is there. */
bool tensor_file_create(File *file, const char *function, const char *path);
bool tensor_file_write(const File *file, const void *bytes, size_t size);
bool tensor_file_write_tensor(const File *file, const Tensor *x); /* row-major, low byte first */
/* Ends what tensor_file_create began, also when that failed. ok: has all been written? If not, or
 * if this fails, path is left as it was. */
bool tensor_file_finish(File *file, bool ok);

/* ---- headers: text that is taken apart from left to right ----------------------------------- */

typedef struct {
    const File *file;
    char *start, *at, *end;
    bool python; /* else JSON: no '' around strings, no (), no comma before a closing bracket */
} Text;

/* Free text->start, also when this failed; python is set before. */
bool tensor_text_read(Text *text, const File *file, int64_t at, int64_t size);
/* "byte 12 of the header should be ..."; returns false. Each function below does this when it
 * returns false, tensor_text_take apart, and skips white space first. */
bool tensor_text_fail(const Text *text, const char *what);
bool tensor_text_take(Text *text, const char *token); /* if it comes next */
bool tensor_text_expect(Text *text, const char *token);
bool tensor_text_end(Text *text);
bool tensor_text_string(Text *text, const char **string); /* it lies in the text */
bool tensor_text_list(Text *text, Shape *list); /* [2, 3] or (2, 3): whole numbers below 2^63 */
/* {key: value, ...}: each value is taken by take, which may find it, or the key, wrong; what is
 * wrong with a key it leaves to the caller to say. */
typedef bool TakeValue(Text *text, const char *key, void *context);
bool tensor_text_object(Text *text, TakeValue *take, void *context);
bool tensor_is_utf8(const char *text, size_t size);

/* ---- text that grows, to be written --------------------------------------------------------- */

/* {0} is an empty one. A failure stays: what is appended afterwards is dropped, and whoever writes
 * asks once, at the end. The bytes are the owner's to free. */
typedef struct {
    char *bytes;
    size_t size, room;
    bool failed; /* there was no memory */
} Buffer;
void tensor_buffer_append(Buffer *buffer, const void *bytes, size_t n);
/* At most 127 bytes at a time. */
__attribute__((format(printf, 2, 3))) void tensor_buffer_print(Buffer *buffer, const char *format,
                                                               ...);

/* ---- dicts ---------------------------------------------------------------------------------- */

/* list, a realloc'ed array of n, with room for one more; NULL and an error when there is none. */
void *tensor_room_for_one(void *list, int n, size_t size);
/* These look for no earlier one of the name. */
bool tensor_dict_append(TensorDict *dict, const char *name, Tensor *x);
bool tensor_dict_append_metadata(TensorDict *dict, const char *key, const char *value);

#endif
