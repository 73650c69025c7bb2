/* win32.c - for Windows, in place of replace.c: a file that replaces another file in one step.
 *
 * The bytes go to a temporary file, .NAME.tapehead-PID-N, in the directory of NAME. The temporary
 * file is flushed to the disk and then renamed, by its handle, while it is open. No other process
 * can delete it as long as it is open. If its writer is killed, the next writer of NAME deletes it.
 */
#include "file.h"

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

/* ---- a file that replaces another file ------------------------------------------------------ */

/* Sets errno for the last error of Windows, and returns false. */
static bool failed(void) {
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH: errno = ENOENT; break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_WRITE_PROTECT: errno = EACCES; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; break;
    default: errno = EIO;
    }
    return false;
}

/* The last part of a path: C:\a\b -> b, C:b -> b. */
static const char *base_of(const char *path) {
    const char *base = path;
    for (; *path; path++)
        if (strchr("/\\:", *path)) base = path + 1;
    return base;
}

/* Is path a device, such as NUL, or a pipe? Those are written to directly. False, with errno set,
 * if path is a directory or may not be written. */
static bool inspect(const char *path, bool *device) {
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    const HANDLE file = CreateFileA(path, GENERIC_WRITE, share, NULL, OPEN_EXISTING, 0, NULL);
    *device = file != INVALID_HANDLE_VALUE && GetFileType(file) != FILE_TYPE_DISK;
    if (file != INVALID_HANDLE_VALUE) return CloseHandle(file);
    if (GetLastError() == ERROR_FILE_NOT_FOUND && *base_of(path)) return true;
    failed();
    const DWORD attributes = GetFileAttributesA(path);
    if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
        errno = EISDIR;
    return false;
}

/* The handle of a new file .NAME.tapehead-PID-N; INVALID_HANDLE_VALUE on failure. */
static HANDLE make_temporary(const char *target) {
    static volatile LONG numbers;
    const char *base = base_of(target);
    char name[MAX_PATH + 64];
    HANDLE file = INVALID_HANDLE_VALUE;
    do {
        const int length =
            snprintf(name, sizeof name, "%.*s.%.200s.tapehead-%lu-%ld", (int)(base - target),
                     target, base, GetCurrentProcessId(), InterlockedIncrement(&numbers));
        if (length < 0 || (size_t)length >= sizeof name) SetLastError(ERROR_INVALID_NAME);
        else
            file = CreateFileA(name, GENERIC_WRITE | DELETE, FILE_SHARE_READ, NULL, CREATE_NEW,
                               FILE_ATTRIBUTE_NORMAL, NULL);
    } while (file == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_EXISTS);
    return file;
}

/* Deletes the temporary files of this target, except those that a writer has open. */
static void remove_stale(const char *target) {
    const char *base = base_of(target);
    char name[2 * MAX_PATH];
    WIN32_FIND_DATAA entry;
    snprintf(name, sizeof name, "%.*s.%.200s.tapehead-*", (int)(base - target), target, base);
    const HANDLE entries = FindFirstFileA(name, &entry);
    if (entries == INVALID_HANDLE_VALUE) return;
    do {
        snprintf(name, sizeof name, "%.*s%s", (int)(base - target), target, entry.cFileName);
        DeleteFileA(name);
    } while (FindNextFileA(entries, &entry));
    FindClose(entries);
}

static HANDLE handle_of(FILE *stream) { return (HANDLE)_get_osfhandle(_fileno(stream)); }

static bool delete_when_closed(HANDLE file) {
    FILE_DISPOSITION_INFO delete = {.DeleteFile = TRUE};
    return SetFileInformationByHandle(file, FileDispositionInfo, &delete, sizeof delete);
}

bool tensor_can_replace(const char *path) {
    bool device;
    if (!inspect(path, &device)) return false;
    if (device) return true;
    const HANDLE file = make_temporary(path);
    if (file == INVALID_HANDLE_VALUE) return failed();
    delete_when_closed(file);
    CloseHandle(file);
    return true;
}

FILE *tensor_replacement_begin(Replacement *r, const char *path) {
    bool device;
    *r = (Replacement){0};
    if (!inspect(path, &device)) return NULL;
    if (device) return fopen(path, "ab");
    snprintf(r->target, sizeof r->target, "%s", path);
    remove_stale(path);
    const HANDLE file = make_temporary(path);
    if (file == INVALID_HANDLE_VALUE) failed();
    const int fd = file != INVALID_HANDLE_VALUE ? _open_osfhandle((intptr_t)file, 0) : -1;
    return fd >= 0 ? fdopen(fd, "wb") : NULL;
}

static bool rename_to(HANDLE file, const char *target) {
    const size_t size = MAX_PATH * sizeof(WCHAR);
    FILE_RENAME_INFO *info = calloc(1, sizeof *info + size);
    if (!info) return false;
    info->ReplaceIfExists = TRUE;
    const int length = MultiByteToWideChar(CP_ACP, 0, target, -1, info->FileName, MAX_PATH);
    info->FileNameLength = (DWORD)(length - 1) * sizeof(WCHAR);
    const bool ok = length > 0 && SetFileInformationByHandle(file, FileRenameInfo, info,
                                                             (DWORD)(sizeof *info + size));
    free(info);
    return ok || failed();
}

static bool move_into_place(const Replacement *r, FILE *stream) {
    if (fflush(stream) != 0) return false;
    if (ferror(stream)) errno = EIO;
    if (ferror(stream)) return false;
    return !*r->target ||
           (_commit(_fileno(stream)) == 0 && rename_to(handle_of(stream), r->target));
}

const char *tensor_replacement_finish(Replacement *r, FILE *stream, bool ok) {
    const bool moved = ok && move_into_place(r, stream);
    int error = errno;
    if (!moved && *r->target && stream) delete_when_closed(handle_of(stream));
    const bool closed = !stream || fclose(stream) == 0;
    if (moved && !closed) error = errno;
    errno = error;
    return ok && !(moved && closed) ? "it cannot be written" : NULL;
}

/* ---- numbers -------------------------------------------------------------------------------- */

#if defined __x86_64__ || defined __i386__
#define WITH_FMA __attribute__((target("fma")))
static bool cpu_fuses(void) { return __builtin_cpu_supports("fma"); }
#else
#define WITH_FMA
static bool cpu_fuses(void) { return true; }
#endif

/* A CPU fuses since 2013. An older one gets MinGW-w64's functions. */
WITH_FMA static double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
WITH_FMA static float fusedf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

double tensor_fma(double a, double b, double c) {
    return cpu_fuses() ? fused(a, b, c) : (fma)(a, b, c);
}

float tensor_fmaf(float a, float b, float c) {
    return cpu_fuses() ? fusedf(a, b, c) : (fmaf)(a, b, c);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* FreeLibrary would take the code away from the library's threads, so the DLL stays. */
__attribute__((constructor)) static void stay(void) {
    static const char here;
    HMODULE library;
    GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                       &here, &library);
}
