/* windows.c - for the programs on Windows: the functions that win32.h declares. */
#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <stdlib.h>

/* Every file and standard stream has the bytes that it has elsewhere: lines end with \n alone. */
__attribute__((constructor)) static void keep_bytes(void) {
    _fmode = _O_BINARY;
    for (int fd = 0; fd <= 2; fd++) _setmode(fd, _O_BINARY);
}

int win32_same_file(const char *a, const char *b) {
    char *x = _fullpath(NULL, a, 0);
    char *y = _fullpath(NULL, b, 0);
    const int same = x && y && _stricmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

/* Windows has no streams into memory, so this is a file that Windows deletes when it is closed. */
FILE *fmemopen(void *memory, size_t size, const char *mode) {
    char directory[MAX_PATH - 14], path[MAX_PATH];
    (void)memory;
    (void)size;
    (void)mode;
    if (!GetTempPathA(sizeof directory, directory)) return NULL;
    if (!GetTempFileNameA(directory, "tap", 0, path)) return NULL;
    const int flags = _O_RDWR | _O_BINARY | _O_TEMPORARY | _O_SHORT_LIVED | _O_NOINHERIT;
    const int fd = _open(path, flags);
    return fd >= 0 ? fdopen(fd, "w+b") : NULL;
}

void win32_read_back(FILE *file, void *memory, size_t size) {
    rewind(file);
    if (fread(memory, 1, size, file) < size) memset(memory, 0, size);
}

static void (*handlers[NSIG])(int);

/* Windows forgets the handler when the signal comes. */
static void handle(int number) {
    signal(number, handle);
    handlers[number](number);
}

int sigaction(int number, const struct sigaction *after, struct sigaction *before) {
    void (*const was)(int) = signal(number, SIG_DFL);
    if (was == SIG_ERR) return -1;
    if (before) *before = (struct sigaction){.sa_handler = was == handle ? handlers[number] : was};
    void (*next)(int) = was;
    if (after) {
        next = after->sa_handler;
        if (next != SIG_DFL && next != SIG_IGN) {
            handlers[number] = next;
            next = handle;
        }
    }
    return signal(number, next) == SIG_ERR ? -1 : 0;
}
