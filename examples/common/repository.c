/* repository.c - where the files of Tapehead are: see repository.h. */
#include "repository.h"

#include "../../tensor/tensor.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, LEVELS = 4 };
static const char *program = "";

void repository_program(const char *path) { program = path ? path : ""; }

static bool is_there(const char *folder, const char *file) {
    char path[2 * PATH_SIZE];
    const int length = snprintf(path, sizeof path, "%s%s", folder, file);
    return length >= 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* The path of the program without links; "" if it is not known. A shell that has found the program
 * in PATH gives its name alone; Linux then knows its file. */
static void find_program(char path[PATH_SIZE]) {
    char *real = realpath(strpbrk(program, "/\\") ? program : "/proc/self/exe", NULL);
    *path = '\0';
    if (real && strlen(real) < PATH_SIZE) strcpy(path, real);
    free(real);
}

/* "/home/me/build/recall" and "/home/me/build/" -> "/home/me/build/", "/home/me/". */
static void go_up(char *path, bool is_folder) {
    size_t n = strlen(path);
    if (is_folder && n > 0) n--;
    while (n > 0 && path[n - 1] != '/' && path[n - 1] != '\\') n--;
    path[n] = '\0';
}

const char *repository_folder(const char *file, const char *advice) {
    static char folder[PATH_SIZE];
    if (tensor_error()) return NULL;
    if (is_there("", file)) return "";
    find_program(folder);
    for (int i = 0; i < LEVELS && *folder; i++) {
        go_up(folder, i > 0);
        if (*folder && is_there(folder, file)) return folder;
    }
    return tensor_fail("there is no %s here, and none in the folders above the program %s: %s",
                       file, program, advice);
}

const char *repository_find(const char *file, const char *advice) {
    static char path[2 * PATH_SIZE];
    const char *folder = repository_folder(file, advice);
    if (folder) snprintf(path, sizeof path, "%s%s", folder, file);
    return folder ? path : NULL;
}
