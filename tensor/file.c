/* file.c - files that appear whole or not at all, and tensors as their bytes.
 *
 * What is written goes to a temporary file in the directory of the target, is flushed to the disk,
 * and takes the target's place by rename, which is atomic: a crash leaves the old file or the new
 * one, never half of either. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sentences ------------------------------------------------------------------------------- */

void *file_fail(const File *file, const char *format, ...) {
    char text[256], entry[72] = "";
    if (tensor_pending()) return NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (file->entry) snprintf(entry, sizeof entry, "\"%s\": ", tensor_name_text(file->entry));
    size_t length = strlen(file->path), most = 120; /* of a long path the end tells more */
    size_t skipped = length > most ? length - most : 0;
    return tensor_fail("%s: %s%s: %s%s", file->function, skipped ? "..." : "", file->path + skipped,
                       entry, text);
}

static const char *reason(void) { return errno == ENOMEM ? "out of memory" : strerror(errno); }

static bool check(const File *file, const char *what, bool ok) {
    if (!ok) file_fail(file, "it cannot be %s: %s", what, reason());
    return ok;
}

static bool start(File *file, const char *function, const char *path) {
    *file = (File){.function = function, .path = path};
    return given(function, "path", path) && !tensor_pending();
}

/* ---- reading --------------------------------------------------------------------------------- */

bool file_open(File *file, const char *function, const char *path) {
    if (!start(file, function, path)) return false;
    /* Without O_NONBLOCK a pipe would keep us waiting for a writer; regular files ignore it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    const bool opened = check(file, "opened", fd >= 0 && fstat(fd, &status) == 0);
    if (opened && !S_ISREG(status.st_mode)) file_fail(file, "it is not a regular file");
    else if (opened) check(file, "opened", (file->stream = fdopen(fd, "rb")) != NULL);
    if (fd >= 0 && !file->stream) close(fd);
    if (opened) file->size = status.st_size;
    return file->stream != NULL;
}

void file_close(File *file) {
    if (file->stream) fclose(file->stream);
}

bool file_read(const File *file, int64_t at, void *to, int64_t size) {
    errno = 0; /* stays 0 if the file has become shorter */
    bool ok = fseeko(file->stream, at, SEEK_SET) == 0 &&
              fread(to, 1, (size_t)size, file->stream) == (size_t)size;
    return ok || file_fail(file, "it cannot be read: %s", errno ? reason() : "it ends too early");
}

Tensor *file_read_tensor(const File *file, int64_t at, int64_t bytes, Shape shape, DType dtype) {
    const int64_t size = dtype_size(dtype);
    if (!shape_fits(shape, size) || shape_numel(shape) * size != bytes)
        return file_fail(file, "shape %s of %s does not take its %lld bytes of data",
                         tensor_shape_text(shape), tensor_dtype_name(dtype), (long long)bytes);
    Tensor *x = tensor_make(shape, dtype);
    bool ok = x && file_read(file, at, x->data, bytes);
    if (ok && dtype == BOOL) bytes_to_bools(x);
    if (!ok) tensor_release(x);
    return ok ? x : NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* What is no regular file is written to directly, and so is an open file under one of its names. */
static bool is_device(const char *path, bool exists, mode_t mode) {
    return (exists && !S_ISREG(mode)) || !strncmp(path, "/dev/std", 8) ||
           !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6);
}

/* Opens a new file beside the target, with the rights that the target has or would get. */
static FILE *open_temporary(File *file, bool exists, mode_t mode) {
    const char *slash = strrchr(file->target, '/');
    int directory = slash ? (int)(slash - file->target) + 1 : 0, fd = -1;
    size_t size = (size_t)directory + 48;
    char *name = malloc(size);
    for (int i = 0; name && fd < 0 && (i == 0 || errno == EEXIST); i++) {
        snprintf(name, size, "%.*s.tapehead-%ld-%d", directory, file->target, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (fd >= 0) file->temporary = name; /* something to remove */
    else free(name);
    FILE *stream = fd >= 0 && (!exists || fchmod(fd, mode & 0777) == 0) ? fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !stream) close(fd);
    return stream;
}

/* rename would not ask whether it may replace this file. */
static bool may_write(const char *path) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && close(fd) == 0;
}

bool file_create(File *file, const char *function, const char *path) {
    if (!start(file, function, path)) return false;
    struct stat status = {0};
    const bool exists = stat(path, &status) == 0;
    if (is_device(path, exists, status.st_mode)) file->stream = fopen(path, "ab");
    else if (!exists || may_write(path)) {
        file->target = exists ? realpath(path, NULL) : strdup(path); /* the end of a link */
        if (file->target) file->stream = open_temporary(file, exists, status.st_mode);
    }
    return check(file, "written", file->stream != NULL);
}

bool file_write(const File *file, const void *bytes, size_t size) {
    return check(file, "written", fwrite(bytes, 1, size, file->stream) == size);
}

bool file_write_tensor(const File *file, const Tensor *x) {
    Tensor *y = readable(file->function, x) ? tensor_contiguous(x) : NULL;
    bool ok = y && file_write(file, y->data, (size_t)(tensor_numel(y) * dtype_size(y->dtype)));
    tensor_release(y);
    return ok;
}

bool file_finish(File *file, bool ok) {
    FILE *stream = file->stream;
    ok = ok && check(file, "written", fflush(stream) == 0);
    ok = ok && (!file->temporary || check(file, "written", fsync(fileno(stream)) == 0));
    ok = (!stream || check(file, "written", fclose(stream) == 0)) && ok;
    if (ok && file->temporary)
        ok = check(file, "written", rename(file->temporary, file->target) == 0);
    if (!ok && file->temporary) unlink(file->temporary);
    free(file->temporary);
    free(file->target);
    return ok;
}
