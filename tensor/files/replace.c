/* replace.c - writes a file that replaces another file in one step.
 *
 * The bytes go to a temporary file in the directory of the target. The temporary file is flushed to
 * the disk and then renamed to the target. A rename is atomic: a crash leaves the old file or the
 * new file, never a part of one. Last, the directory is flushed, because it holds the name.
 *
 * A killed process leaves its temporary file, .NAME.tapehead-PID-N. A writer locks its temporary
 * file with flock, and the lock ends with the writer. The next writer of NAME removes each
 * temporary file of NAME that it can lock. Such a lock belongs to the open file, so it excludes
 * even other threads. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_PART = 200, LINKS_MAX = 40 };

/* Where the last part of a path begins. */
static int base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* ---- the target ----------------------------------------------------------------------------- */

/* Devices, pipes and the names of open files are written to where they are. */
static bool is_direct(const char *path, mode_t mode) {
    return (mode && !S_ISREG(mode)) || !strncmp(path, "/dev/std", 8) ||
           !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/", 6);
}

/* Writes to target what path leads to, through links; "" if path is written to directly. old: the
 * file that is there, all 0 if there is none. False, with errno set, if path cannot be written,
 * which rename would not check. A loop of links ends at stat. */
static bool find_target(const char *path, char target[PATH_SIZE], struct stat *old) {
    char link[PATH_SIZE];
    *old = (struct stat){0};
    *target = '\0';
    if (stat(path, old) != 0 && (errno != ENOENT || !path[base_of(path)])) return false;
    errno = EISDIR;
    if (S_ISDIR(old->st_mode)) return false;
    if (old->st_mode && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) return false;
    if (is_direct(path, old->st_mode)) return true;
    int length = snprintf(target, PATH_SIZE, "%s", path);
    for (int i = 0; i < LINKS_MAX && length < PATH_SIZE; i++) {
        const ssize_t n = readlink(target, link, sizeof link);
        if (n < 0) return true;
        const int kept = *link == '/' ? 0 : base_of(target);
        length = kept + snprintf(target + kept, (size_t)(PATH_SIZE - kept), "%.*s", (int)n, link);
    }
    errno = ENAMETOOLONG;
    return false;
}

bool tensor_can_replace(const char *path) {
    char target[PATH_SIZE];
    struct stat old;
    if (!find_target(path, target, &old)) return false;
    if (!*target) return true;
    strcpy(target + base_of(target), "."); /* its directory */
    return faccessat(AT_FDCWD, target, W_OK | X_OK, AT_EACCESS) == 0;
}

/* ---- temporary files ------------------------------------------------------------------------- */

/* Locks a file and returns whether it still has a name: another writer may have locked it first, to
 * remove it. On a file system without locks nobody removes files. */
static bool lock(int fd, bool is_new) {
    struct stat status;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && (!is_new || errno == EWOULDBLOCK)) return false;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink > 0;
}

/* Removes the files that begin with `start`, two numbers follow, and whose writers have ended. */
static void remove_stale(DIR *directory, const char *start) {
    const size_t length = strlen(start);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        int n = 0;
        if (strncmp(entry->d_name, start, length) != 0) continue;
        (void)sscanf(entry->d_name + length, "%*[0-9]-%*[0-9]%n", &n);
        if (n == 0 || entry->d_name[length + (size_t)n]) continue;
        const int fd =
            openat(dirfd(directory), entry->d_name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && lock(fd, false)) unlinkat(dirfd(directory), entry->d_name, 0);
        if (fd >= 0) close(fd);
    }
}

/* Makes a temporary file and locks it; number: where the numbers of its name begin. No number is
 * used twice, so a name that another thread is about to remove is never the name of a new file. */
static int make_temporary(Replacement *r, char *number, mode_t mode) {
    static unsigned numbers;
    for (;;) {
        sprintf(number, "%ld-%u", (long)getpid(),
                __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED));
        const int fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 ? errno != EEXIST : lock(fd, true)) return fd;
        if (fd >= 0) close(fd);
    }
}

/* Gives the new file the owner, the group and the rights of the old one. Only root can change the
 * owner; other users can only set a group of their own. It is no error if they cannot. */
static bool copy_rights(int fd, const struct stat *old) {
    if (fchown(fd, old->st_uid, old->st_gid) != 0) (void)!fchown(fd, (uid_t)-1, old->st_gid);
    return fchmod(fd, old->st_mode & 0777) == 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

FILE *tensor_replacement_begin(Replacement *r, const char *path) {
    char directory[PATH_SIZE + 1];
    struct stat old;
    *r = (Replacement){0};
    if (!find_target(path, r->target, &old)) return NULL;
    if (!*r->target) return fopen(path, "ab");
    const int folder = base_of(r->target);
    const char *base = r->target + folder;
    int part = (int)strnlen(base, NAME_PART);
    if (base[part]) part = (int)tensor_whole_characters(base, (size_t)part);
    snprintf(directory, sizeof directory, "%.*s.", folder, r->target);
    r->directory = opendir(directory);
    if (!r->directory) return NULL;
    const int length = snprintf(r->temporary, sizeof r->temporary, "%.*s.%.*s.tapehead-", folder,
                                r->target, part, base);
    remove_stale(r->directory, r->temporary + folder);
    const int fd = make_temporary(r, r->temporary + length, old.st_mode ? 0600 : 0666);
    FILE *stream = fd >= 0 && (!old.st_mode || copy_rights(fd, &old)) ? fdopen(fd, "wb") : NULL;
    if (fd >= 0 && !stream) close(fd);
    return stream;
}

static const char not_written[] = "it cannot be written";

/* Returns NULL, or the problem as a text, with errno set: EIO if an earlier write failed. A file
 * system that cannot flush directories says EINVAL, which is no error. */
static const char *move_into_place(Replacement *r, FILE *stream) {
    errno = EIO;
    if (fflush(stream) != 0 || ferror(stream)) return not_written;
    if (!r->directory) return NULL;
    if (fsync(fileno(stream)) != 0 || rename(r->temporary, r->target) != 0) return not_written;
    *r->temporary = '\0';
    if (fsync(dirfd(r->directory)) == 0 || errno == EINVAL) return NULL;
    return "it is in place, but its directory cannot be flushed to the disk";
}

/* The stream is closed after rename or unlink, because closing ends the lock. */
const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok) {
    const char *problem = ok ? move_into_place(r, stream) : NULL;
    int error = errno;
    if (*r->temporary) unlink(r->temporary);
    if (stream && fclose(stream) != 0 && !problem) {
        problem = not_written;
        error = errno;
    }
    if (r->directory) closedir(r->directory);
    errno = error;
    return problem;
}
