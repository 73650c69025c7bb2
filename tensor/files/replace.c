/* replace.c - writes a file that replaces another file in one step.
 *
 * The bytes go to a temporary file in the directory of the target. The temporary file is flushed to
 * the disk and then renamed to the target. A rename is atomic: a crash leaves the old file or the
 * new file, never a part of one. Last, the directory is flushed, because it holds the name.
 *
 * A killed process leaves its temporary file, .NAME.tapehead-PID-N, in the directory of NAME. A
 * temporary file is locked as long as its writer runs. So the next writer of NAME removes each
 * temporary file of NAME that it can lock. A lock of fcntl does not exclude other threads of the
 * same process, so a list holds the temporary files of this process. */
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

/* How many bytes of the target's name are in the name of its temporary file: at most NAME_PART, and
 * whole characters of UTF-8. */
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

/* Is name the name of a temporary file of base? *pid and *number become the numbers in name. */
static bool is_temporary(const char *name, const char *base, long *pid, long *number) {
    const size_t part = (size_t)part_of(base), length = strlen(mark);
    if (*name != '.' || strncmp(name + 1, base, part) != 0) return false;
    if (strncmp(name + 1 + part, mark, length) != 0) return false;
    const char *rest = name + 1 + part + length;
    if (!take_number(&rest, pid) || *rest++ != '-') return false;
    return take_number(&rest, number) && !*rest;
}

/* The directory of a path, with a "." at the end: "a/b" -> "a/.", "b" -> "." */
static char *directory_of(const char *path) {
    const int length = (int)(base_of(path) - path);
    char *directory = malloc((size_t)length + 2);
    if (directory) sprintf(directory, "%.*s.", length, path);
    return directory;
}

/* The path that a link at path leads to; link: the text of the link. */
static char *next_of(const char *path, const char *link) {
    const int length = *link == '/' ? 0 : (int)(base_of(path) - path);
    char *next = malloc((size_t)length + strlen(link) + 1);
    if (next) sprintf(next, "%.*s%s", length, path, link);
    return next;
}

/* The target of the last link of the chain that begins at path. The target need not exist. The
 * links form no loop, because stat, which follows them, too, would have failed. */
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

/* ---- the target ----------------------------------------------------------------------------- */

/* Is the path written to directly? Devices, pipes and the names of open files are. */
static bool is_device(const char *path, bool exists, mode_t mode) {
    return (exists && !S_ISREG(mode)) || !strncmp(path, "/dev/std", 8) ||
           !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6);
}

/* May the process write to the file? rename replaces a file without this check. */
static bool may_write(const char *path) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && close(fd) == 0;
}

/* Does path exist, and is it a device? False, with errno set, if the check fails or if path may not
 * be written. */
static bool inspect(const char *path, bool *exists, bool *device, struct stat *status) {
    *status = (struct stat){0};
    *exists = stat(path, status) == 0;
    if (!*exists && (errno != ENOENT || !*base_of(path))) return false;
    *device = is_device(path, *exists, status->st_mode);
    return *device || !*exists || may_write(path);
}

bool tensor_can_replace(const char *path) {
    bool exists, device;
    struct stat status;
    if (!inspect(path, &exists, &device, &status)) return false;
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
static Replacement *under_way; /* the replacements of this process, a list */
static long numbers;           /* the last number that was given */

/* A child of fork has only the thread that called fork: another thread may have held the lock, and
 * may have been writing files. */
static void renew_after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    under_way = NULL;
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, renew_after_fork);
}

static bool is_ours(long pid, long number) {
    bool found = false;
    if (pid != getpid()) return false;
    pthread_mutex_lock(&mutex);
    for (const Replacement *r = under_way; r && !found; r = r->next) found = r->number == number;
    pthread_mutex_unlock(&mutex);
    return found;
}

static void assign_number(Replacement *r) {
    pthread_mutex_lock(&mutex);
    if (!r->number) {
        r->next = under_way;
        under_way = r;
    }
    r->number = ++numbers;
    pthread_mutex_unlock(&mutex);
}

static void remove_from_list(const Replacement *r) {
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

/* Locks a new file. False if another process has locked it first, to remove it. On a file system
 * without locks nobody removes files, so a lock that fails there is no error. */
static bool lock_new(int fd) {
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

/* Removes the temporary files of this target whose writers have ended. */
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

/* Gives the new file the owner, the group and the rights of the old one. Only root can change the
 * owner; other users can only set a group of their own. It is no error if the owner or the group
 * cannot be set. */
static bool copy_rights(int fd, const struct stat *old) {
    const bool given = fchown(fd, old->st_uid, old->st_gid) == 0;
    const bool group = given || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    (void)group;
    return fchmod(fd, old->st_mode & 0777) == 0;
}

/* Makes a temporary file and locks it; old: the file that it will replace, or NULL. */
static int make_temporary(Replacement *r, const struct stat *old) {
    for (;;) {
        assign_number(r);
        name_temporary(r);
        const int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                            old ? old->st_mode & 0600 : 0666);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && lock_new(fd)) return fd;
        if (fd >= 0) close(fd);
    }
}

static FILE *open_temporary(Replacement *r, const struct stat *old) {
    const int fd = make_temporary(r, old);
    FILE *stream = fd >= 0 && (!old || copy_rights(fd, old)) ? fdopen(fd, "wb") : NULL;
    const int error = errno;
    if (fd >= 0 && !stream) close(fd);
    errno = error;
    return stream;
}

/* Opens the directory of the target and removes stale files. False, with errno set, if the
 * directory cannot be opened. A directory that may be written but not read stays closed, which is
 * no failure: such a directory can be neither listed nor flushed. */
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
    if (!inspect(path, &exists, &device, &status)) return NULL;
    if (device) return fopen(path, "ab");
    r->target = follow_links(path);
    r->temporary = r->target ? malloc(strlen(r->target) + 64) : NULL;
    if (!r->temporary || !open_directory(r)) return NULL;
    return open_temporary(r, exists ? &status : NULL);
}

/* Returns NULL, or the problem as a text, with errno set. EINVAL and EBADF come from systems that
 * cannot flush directories, and are no errors. */
static const char *move_into_place(Replacement *r, FILE *stream) {
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

/* The stream is closed after rename or unlink, because closing ends the lock. After fsync, closing
 * cannot lose bytes. */
const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok) {
    const char *problem = ok ? move_into_place(r, stream) : NULL;
    int error = errno;
    if (!r->in_place && r->number) unlink(r->temporary);
    if (stream && fclose(stream) != 0 && ok && !problem && !r->target) {
        problem = "it cannot be written";
        error = errno;
    }
    if (r->directory >= 0) close(r->directory);
    remove_from_list(r);
    free(r->target);
    free(r->temporary);
    errno = error;
    return problem;
}
