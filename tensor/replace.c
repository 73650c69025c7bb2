/* replace.c - a file that takes another's place in one step.
 *
 * What is written goes to a temporary file in the directory of the target, is flushed to the disk,
 * and takes the target's place by rename, which is atomic: a crash leaves the old file or the new
 * one, never half of either. Then the directory, which holds the name, is flushed too.
 *
 * A process that is killed leaves its temporary file behind, .NAME.tapehead-PID-N in the directory
 * of NAME. While its writer lives the file is locked, so the next writer of NAME removes every such
 * file that it can lock itself. A lock of fcntl keeps out other processes, not other threads of the
 * same one: a list says which files are theirs. */
#include "file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names ----------------------------------------------------------------------------------- */

static const char mark[] = ".tapehead-";
enum { NAME_PART = 200, LINKS_MAX = 40, LINK_SIZE = 4096 };

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* How many bytes of a name stand in the names of its temporary files: whole characters, and so few
 * that the rest fits. */
static int part_of(const char *base) {
    size_t n = strlen(base);
    if (n <= NAME_PART) return (int)n;
    for (n = NAME_PART; n > 0 && ((unsigned char)base[n] & 0xc0) == 0x80;) n--;
    return (int)n;
}

/* DIRECTORY/.NAME.tapehead-PID-N */
static void name_temporary(Replacement *r) {
    const char *base = base_of(r->target);
    sprintf(r->temporary, "%.*s.%.*s%s%ld-%ld", (int)(base - r->target), r->target, part_of(base),
            base, mark, (long)getpid(), r->number);
}

static bool take_number(const char **text, long *number) {
    char *end;
    if (!isdigit((unsigned char)**text)) return false;
    *number = strtol(*text, &end, 10);
    *text = end;
    return true;
}

/* Is this the name of a temporary file of base, and whose? */
static bool is_temporary(const char *name, const char *base, long *pid, long *number) {
    const size_t part = (size_t)part_of(base), length = strlen(mark);
    if (*name != '.' || strncmp(name + 1, base, part) != 0) return false;
    if (strncmp(name + 1 + part, mark, length) != 0) return false;
    const char *rest = name + 1 + part + length;
    if (!take_number(&rest, pid) || *rest++ != '-') return false;
    return take_number(&rest, number) && !*rest;
}

/* The directory of a path, as a path that ends with "." */
static char *directory_of(const char *path) {
    const int length = (int)(base_of(path) - path);
    char *directory = malloc((size_t)length + 2);
    if (directory) sprintf(directory, "%.*s.", length, path);
    return directory;
}

/* Where the link at path, whose text is this, leads. */
static char *next_of(const char *path, const char *link) {
    const int length = *link == '/' ? 0 : (int)(base_of(path) - path);
    char *next = malloc((size_t)length + strlen(link) + 1);
    if (next) sprintf(next, "%.*s%s", length, path, link);
    return next;
}

/* The end of the links that begin at path, which need not exist. stat has seen that it is no loop.
 */
static char *follow_links(const char *path) {
    char link[LINK_SIZE], *target = strdup(path);
    for (int i = 0; target && i < LINKS_MAX; i++) {
        const ssize_t length = readlink(target, link, sizeof link - 1);
        if (length < 0) break;
        link[length] = '\0';
        char *next = next_of(target, link);
        free(target);
        target = next;
    }
    return target;
}

/* ---- what is there -------------------------------------------------------------------------- */

/* What is no regular file is written to directly, and so is an open file under one of its names. */
static bool is_device(const char *path, bool exists, mode_t mode) {
    return (exists && !S_ISREG(mode)) || !strncmp(path, "/dev/std", 8) ||
           !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6);
}

/* rename would not ask whether it may replace this file. */
static bool may_write(const char *path) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && close(fd) == 0;
}

/* What is at a path. False, and errno, if that cannot be told or may not be written. */
static bool look(const char *path, bool *exists, bool *device, struct stat *status) {
    *status = (struct stat){0};
    *exists = stat(path, status) == 0;
    if (!*exists && (errno != ENOENT || !*base_of(path))) return false;
    *device = is_device(path, *exists, status->st_mode);
    return *device || !*exists || may_write(path);
}

bool tensor_can_replace(const char *path) {
    bool exists, device;
    struct stat status;
    if (!look(path, &exists, &device, &status)) return false;
    if (S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (device) return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
    char *target = follow_links(path);
    char *directory = target ? directory_of(target) : NULL;
    const bool can = directory && faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0;
    const int error = errno;
    free(target);
    free(directory);
    errno = error;
    return can;
}

/* ---- locks --------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Replacement *under_way; /* of this process, linked by next */
static long numbers;           /* that were given so far */

static bool is_ours(long pid, long number) {
    bool found = false;
    if (pid != getpid()) return false;
    pthread_mutex_lock(&mutex);
    for (const Replacement *r = under_way; r && !found; r = r->next) found = r->number == number;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void give_number(Replacement *r) {
    pthread_mutex_lock(&mutex);
    if (!r->number) {
        r->next = under_way;
        under_way = r;
    }
    r->number = ++numbers;
    pthread_mutex_unlock(&mutex);
}

static void take_off_the_list(const Replacement *r) {
    pthread_mutex_lock(&mutex);
    Replacement **at = &under_way;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
    pthread_mutex_unlock(&mutex);
}

static bool lock(int fd) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &all) == 0;
}

/* Locks a file that has just been made. False if another process was faster and removes it; a file
 * system without locks does no harm, since nobody removes anything there. */
static bool hold(int fd) {
    struct stat status;
    if (!lock(fd) && (errno == EACCES || errno == EAGAIN)) return false;
    return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

static void remove_if_stale(int directory, const char *name) {
    const int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int fd = openat(directory, name, flags);
    struct stat status;
    if (fd < 0) return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && lock(fd))
        unlinkat(directory, name, 0);
    close(fd);
}

/* Removes the temporary files of this target whose writers are gone. */
static void remove_stale(const char *directory, const char *base) {
    long pid, number;
    DIR *entries = opendir(directory);
    if (!entries) return;
    for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        if (is_temporary(entry->d_name, base, &pid, &number) && !is_ours(pid, number))
            remove_if_stale(dirfd(entries), entry->d_name);
    closedir(entries);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* The owner and the rights of the file that will be replaced. Nobody but root can give a file away;
 * the group may be one of ours. */
static bool take_rights(int fd, const struct stat *old) {
    const bool given = fchown(fd, old->st_uid, old->st_gid) == 0;
    const bool group = given || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    (void)group;
    return fchmod(fd, old->st_mode & 0777) == 0;
}

/* A new, locked file beside the target; old is what will be replaced, or NULL. */
static int make_temporary(Replacement *r, const struct stat *old) {
    for (;;) {
        give_number(r);
        name_temporary(r);
        const int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                            old ? old->st_mode & 0600 : 0666);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && hold(fd)) return fd;
        if (fd >= 0) close(fd);
    }
}

static FILE *open_temporary(Replacement *r, const struct stat *old) {
    const int fd = make_temporary(r, old);
    FILE *stream = fd >= 0 && (!old || take_rights(fd, old)) ? fdopen(fd, "wb") : NULL;
    const int error = errno;
    if (fd >= 0 && !stream) close(fd);
    errno = error;
    return stream;
}

/* Prepares the directory: false, and errno, if it cannot be done. One that may be written but not
 * read cannot be flushed, nor searched for files that are stale. */
static bool open_directory(Replacement *r) {
    char *directory = directory_of(r->target);
    if (!directory) return false;
    r->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int error = errno;
    if (r->directory >= 0) remove_stale(directory, base_of(r->target));
    free(directory);
    errno = error;
    return r->directory >= 0 || error == EACCES;
}

FILE *tensor_replacement_begin(Replacement *r, const char *path) {
    bool exists, device;
    struct stat status;
    *r = (Replacement){.directory = -1};
    if (!look(path, &exists, &device, &status)) return NULL;
    if (device) return fopen(path, "ab");
    r->target = follow_links(path);
    r->temporary = r->target ? malloc(strlen(r->target) + 64) : NULL;
    if (!r->temporary || !open_directory(r)) return NULL;
    return open_temporary(r, exists ? &status : NULL);
}

/* What went wrong, and errno; or NULL. Some systems can flush no directory and say EINVAL or EBADF.
 */
static const char *put_in_place(Replacement *r, FILE *stream) {
    static const char not_written[] = "it cannot be written";
    if (fflush(stream) != 0) return not_written;
    if (ferror(stream)) errno = EIO;
    if (ferror(stream)) return not_written;
    if (!r->target) return NULL;
    if (fsync(fileno(stream)) != 0 || rename(r->temporary, r->target) != 0) return not_written;
    r->in_place = true;
    if (r->directory < 0 || fsync(r->directory) == 0 || errno == EINVAL || errno == EBADF)
        return NULL;
    return "it is in place, but its directory cannot be flushed to the disk";
}

/* The stream is closed last, since its lock goes then. After fsync that cannot lose anything. */
const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok) {
    const char *problem = ok ? put_in_place(r, stream) : NULL;
    int error = errno;
    if (!r->in_place && r->number) unlink(r->temporary);
    if (stream && fclose(stream) != 0 && ok && !problem && !r->target) {
        problem = "it cannot be written";
        error = errno;
    }
    if (r->directory >= 0) close(r->directory);
    take_off_the_list(r);
    free(r->target);
    free(r->temporary);
    errno = error;
    return problem;
}
