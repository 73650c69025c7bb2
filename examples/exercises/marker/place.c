/* place.c - the folder of temporary files and the compiler: see place.h. */
#include "place.h"

#include "../../../tensor/tensor.h"
#include "process.h"
#include "scratch.h"
#include "submission.h"
#include "texts.h"

#include <ctype.h>
#include <dirent.h>
#if __has_include(<link.h>)
#include <link.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_WORDS = 64 }; /* for the compiler, those of $CC with them */
/* A student's text is compiled where it can see source and kit alone: objects have the answers. */
static const char kit[] = "kit", source[] = "source", objects[] = "objects", whole[] = "whole";

/* ---- files ----------------------------------------------------------------------------------- */

void place_path(const Place *place, const char *folder, const char *name, const char *suffix,
                char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "%.1023s/%.255s/%.255s%.63s", place->folder, folder, name, suffix);
}

/* The same for a program that runs in one of the place's folders: its user may not see the folders
 * above the place. */
static void near_path(const char *folder, const char *name, const char *suffix,
                      char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "../%.255s/%.255s%.63s", folder, name, suffix);
}

static bool write_bytes(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    const bool written = fwrite(bytes, 1, n, file) == n;
    return fclose(file) == 0 && written;
}

bool place_write(const Place *place, const char *folder, const char *name, const char *text) {
    char path[PATH_SIZE];
    place_path(place, folder, name, "", path);
    return write_bytes(path, text, strlen(text));
}

static bool write_text(const Place *place, const char *name, const char *text) {
    return place_write(place, kit, name, text);
}

/* Removes a folder of files and of folders of files. */
static void remove_folder(const char *path, int depth) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
        char name[PATH_SIZE];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s/%s", path, item->d_name);
        if (unlink(name) != 0 && depth > 0) remove_folder(name, depth - 1);
    }
    closedir(folder);
    rmdir(path);
}

bool place_has_room(const Place *place, int64_t bytes) {
    static const char zeros[1 << 16];
    char path[PATH_SIZE];
    place_path(place, kit, "room", "", path);
    FILE *file = fopen(path, "wb");
    bool ok = file;
    for (; bytes > 0 && ok; bytes -= (int64_t)sizeof zeros)
        ok = fwrite(zeros, 1, sizeof zeros, file) == sizeof zeros;
    if (file && fclose(file) != 0) ok = false;
    remove(path);
    return ok;
}

/* ---- the compiler ---------------------------------------------------------------------------- */

/* Splits $CC, or "cc", at its spaces. It does not run in this folder, so a relative path becomes an
 * absolute one. */
static bool find_compiler(Place *place) {
    static char words[1024];
    const char *cc = getenv("CC");
    int n = 0;
    snprintf(words, sizeof words, "%s", cc && *cc ? cc : "cc");
    for (char *word = strtok(words, " "); word && n < 15; word = strtok(NULL, " "))
        place->compiler[n++] = word;
    if (n == 0) return false;
    if (strpbrk(place->compiler[0], "/\\")) {
        char *path = realpath(place->compiler[0], NULL);
        if (path && strlen(path) < sizeof place->compiler_path)
            place->compiler[0] = strcpy(place->compiler_path, path);
        free(path);
    }
    return true;
}

static bool runs(const Place *place, char *compiler) {
    char version[] = "--version", folder[PATH_SIZE], messages[PATH_SIZE];
    char *const argv[] = {compiler, version, NULL};
    place_path(place, kit, "", "", folder);
    place_path(place, kit, "messages", "", messages);
    const Program program = {argv, folder, messages, COMPILER_SECONDS, .own = false};
    return process_run(&program).end == PROCESS_ENDED;
}

/* make's cc, or else the names that compilers have where there is no cc. */
static bool compiler_runs(Place *place) {
    static char gcc[] = "gcc", clang[] = "clang";
    if (runs(place, place->compiler[0])) return true;
    if (getenv("CC") && *getenv("CC")) return false;
    char *const other[] = {gcc, clang};
    char *const cc = place->compiler[0];
    for (int i = 0; i < 2; i++) {
        place->compiler[0] = other[i];
        if (runs(place, other[i])) return true;
    }
    place->compiler[0] = cc;
    return false;
}

#define COMPILES "-std=gnu11", "-Wall"

/* The compiler's words, and its program's. */
static void put_words(const Place *place, const char *const *words, const char *argv[MOST_WORDS]) {
    int n = 0;
    for (int i = 0; place->compiler[i]; i++) argv[n++] = place->compiler[i];
    for (int i = 0; words[i]; i++) argv[n++] = words[i];
    argv[n] = NULL;
}

/* Runs it in the kit on what has no word of a student's, as the marker's own user. */
static bool run_own(const Place *place, const char *const *words, const char *name) {
    char folder[PATH_SIZE], messages[PATH_SIZE];
    const char *argv[MOST_WORDS];
    put_words(place, words, argv);
    place_path(place, kit, "", "", folder);
    place_path(place, kit, name, ".messages", messages);
    const Program program = {(char *const *)argv, folder, messages, KIT_SECONDS, .own = true};
    return process_succeeded(process_run(&program));
}

/* -O0: what is made here computes for less time than the compiler's optimization takes. */
bool place_compile_kit(const Place *place, const char *from, const char *name) {
    char file[PATH_SIZE], object[PATH_SIZE];
    const char *const words[] = {COMPILES,    "-O0",
#ifdef __APPLE__
                                 "-DNO_WRAP",
#endif
                                 "-c",        file,  "-o", object, NULL};
    near_path(from, name, ".c", file);
    near_path(objects, name, ".o", object);
    return run_own(place, words, name);
}

/* Runs the compiler with these words, as the programs' user, in a folder of the place, where it can
 * open this folder and those of `others`, which are named from here. */
static ProcessResult run_compiler(const Place *place, const char *folder, const char *const *words,
                                  const char *const *others) {
    char there[PATH_SIZE], messages[PATH_SIZE];
    const char *argv[MOST_WORDS];
    put_words(place, words, argv);
    place_path(place, folder, "", "", there);
    place_path(place, folder, "messages", "", messages);
    const Program program = {
        (char *const *)argv, there,        messages,
        COMPILER_SECONDS,    .own = false, .confined = place->confines ? others : NULL};
    return process_run(&program);
}

static const char *const with_texts[] = {".", "../source", "../kit", NULL};
static const char *const with_objects[] = {".", "../objects", "../whole", NULL};
static const char *const with_kit[] = {".", "../objects", "../kit", NULL};

/* Compiles the student's file alone, with one more flag. -O0: what is written is what happens, also
 * where it is undefined. The student may have a main. `e`: the exercise whose prototype counts, or
 * NULL. */
static ProcessResult compile_with(const Place *place, const Exercise *e, const char *file,
                                  const char *folder, const char *flag) {
    char prototype[PATH_SIZE];
    const char *const words[] = {COMPILES,
                                 "-O0",
                                 flag,
                                 "-Dmain=students_main",
                                 "-DTAPEHEAD_SHOW",
                                 "-I../kit",
                                 "-c",
                                 file,
                                 "-o",
                                 "student.o",
                                 "-include",
                                 prototype,
                                 NULL};
    near_path(kit, e && !e->file ? exercise_file(e) : "exercises", ".h", prototype);
    return run_compiler(place, folder, words, with_texts);
}

/* Does the student's file ask for the prototypes? Without them flat pointers are right, too. */
static bool includes_prototype(const Place *place, const Exercise *e) {
    char path[PATH_SIZE];
    place_path(place, source, exercise_file(e), ".c", path);
    char *text = submission_read(path, SUBMISSION_MOST);
    const bool includes = text && strstr(text, "exercises.h");
    free(text);
    return includes;
}

/* The student's arrays are watched (harness.c), by a compiler that can. */
static ProcessResult compile(const Place *place, const Exercise *e, const char *file,
                             const char *folder) {
    char path[PATH_SIZE];
    if (e && !includes_prototype(place, e)) e = NULL;
    const ProcessResult result = compile_with(place, e, file, folder, "-fsanitize=bounds");
    if (process_succeeded(result)) return result;
    place_path(place, folder, "messages", "", path);
    char *text = submission_read(path, 1 << 20);
    const bool unknown = text && strstr(text, "fsanitize");
    free(text);
    return unknown ? compile_with(place, e, file, folder, "-g0") : result;
}

/* Of attention from scratch: the right functions before it, and behind the student's what has none.
 */
static int add_parts(const Place *place, const Exercise *e, char part[][PATH_SIZE],
                     const char **words) {
    char file[80];
    int n = 0;
    for (; scratch_exercise(n) != e; n++) {
        snprintf(file, sizeof file, "right_%s", scratch_exercise(n)->function);
        near_path(objects, file, ".o", part[n]);
    }
    near_path(objects, "right", ".o", part[n++]);
    near_path(objects, "empty", ".o", part[n++]);
    for (int i = 0; i < n; i++) words[i] = part[i];
    return n;
}

/* How harness.o is linked; and how started.o is, which is harness.o with what starts a program and
 * what it needs of the static C library, put together once: then the linker has little to do. How
 * calls are unwound is in a table of the program (--eh-frame-hdr); crtbegin, which is a part of
 * started.o, may not register its list of that, whose end ld drops: gcc 13 reads it at the start.
 */
#ifdef __APPLE__
#define WRAPS
#else
#define WRAPS                                                                                      \
    "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free",                                  \
        "-Wl,--wrap=aligned_alloc,--wrap=memalign,--wrap=posix_memalign,--wrap=reallocarray",      \
        "-Wl,--wrap=mmap",
#endif
#define STARTED WRAPS "-static", "-nostartfiles", "-Wl,--eh-frame-hdr", "-s", "../objects/started.o"

/* With the student's object of one folder, the program of another. */
static ProcessResult link_with(const Place *place, const Exercise *e, const char *from,
                               const char *folder, bool started) {
    char student[PATH_SIZE], call[PATH_SIZE], part[SCRATCH + 1][PATH_SIZE];
    const char *slow[] = {WRAPS place->links_statically ? "-static" : "-g0", "../objects/harness.o",
                          NULL};
    static const char *const fast[] = {STARTED, NULL};
    const char *const *with = started ? fast : slow;
    const char *words[MOST_WORDS] = {student, call, "-o", "program.exe"};
    const char *name = exercise_file(e);
    int n = 4;
    near_path(from, "student.o", "", student);
    near_path(objects, name, ".o", call);
    for (int i = 0; with[i]; i++) words[n++] = with[i];
    if (e->file) n += add_parts(place, e, part, words + n);
    words[n] = "-lm";
    return run_compiler(place, folder, words, with_objects);
}

/* A student's function may have the name of one that started.o has of the C library. */
static ProcessResult link_program(const Place *place, const Exercise *e, const char *from,
                                  const char *folder) {
    const ProcessResult result = link_with(place, e, from, folder, place->has_started);
    if (!place->has_started || process_succeeded(result)) return result;
    return link_with(place, e, from, folder, false);
}

static void read_messages(const char *path, char *messages, size_t size) {
    char *text = submission_read(path, size - 1);
    snprintf(messages, size, "%s", text ? text : "");
    free(text);
}

/* `file` is the student's, `folder` is where the program is made. */
static ProcessResult make_program(const Place *place, const Exercise *e, const char *file,
                                  const char *folder, char *messages, size_t size) {
    char path[PATH_SIZE];
    ProcessResult result = compile(place, e, file, folder);
    place_path(place, folder, "messages", "", path);
    read_messages(path, messages, size);
    if (!process_succeeded(result)) return result;
    result = link_program(place, e, folder, folder);
    if (!process_succeeded(result))
        read_messages(path, messages, size); /* else the warnings stay */
    return result;
}

bool place_reaches_out(const Place *place, const Exercise *e, char *sentence, size_t size) {
    char file[PATH_SIZE], here[PATH_SIZE], path[PATH_SIZE];
    const char *const words[] = {"-M", "-MG", "-MF", "opened", "-I../kit", file, NULL};
    const char *name = exercise_file(e);
    if (place->confines) return false;
    near_path(source, name, ".c", file);
    run_compiler(place, name, words, with_texts);
    place_path(place, name, "", "", here);
    place_path(place, name, "opened", "", path);
    char *rule = submission_read(path, SUBMISSION_MOST);
    place_path(place, source, name, ".c", path);
    const bool out =
        submission_reaches_out(path, rule ? rule : "", here, with_texts, sentence, size);
    free(rule);
    return out;
}

ProcessResult place_compile(const Place *place, const Exercise *e, char *messages, size_t size) {
    char file[PATH_SIZE];
    const char *name = exercise_file(e);
    near_path(source, name, ".c", file);
    return make_program(place, e, file, name, messages, size);
}

void place_warning(const Place *place, const Exercise *e, char *line, size_t size) {
    static const char folder[] = "warned"; /* the exercise's own is no longer the compiler's */
    char file[PATH_SIZE], path[PATH_SIZE], messages[1 << 14];
    if (!process_make_folder_in(place->folder, folder, true, path, sizeof path)) return;
    near_path(source, exercise_file(e), ".c", file);
    compile_with(place, includes_prototype(place, e) ? e : NULL, file, folder, "-Og");
    place_path(place, folder, "messages", "", path);
    read_messages(path, messages, sizeof messages);
    submission_warning(messages, e->function, line, size);
}

void place_compile_whole(Place *place, const char *name) {
    char file[PATH_SIZE], folder[PATH_SIZE], object[PATH_SIZE];
    if (!process_make_folder_in(place->folder, whole, true, folder, sizeof folder)) return;
    near_path(source, name, ".c", file);
    place_path(place, whole, "student.o", "", object);
    const ProcessResult result = compile(place, NULL, file, whole);
    place->whole = process_succeeded(result);
    place->endless = result.end == PROCESS_TIMED_OUT;
    process_keep(folder, object);
}

ProcessResult place_link_whole(const Place *place, const Exercise *e, char *messages, size_t size) {
    char path[PATH_SIZE];
    const ProcessResult result = link_program(place, e, whole, exercise_file(e));
    place_path(place, exercise_file(e), "messages", "", path);
    read_messages(path, messages, size);
    return result;
}

#if __has_include(<link.h>)
int64_t place_static_bytes(const Place *place, const Exercise *e) {
    char path[PATH_SIZE];
    ElfW(Ehdr) head;
    ElfW(Shdr) section;
    int64_t bytes = 0;
    const char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    place_path(place, exercise_file(e), "student.o", "", path);
    FILE *file = fopen(path, "rb");
    if (!file) return 0;
    const bool is_elf = fread(&head, sizeof head, 1, file) == 1 &&
                        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
                        head.e_ident[EI_CLASS] == class;
    if (is_elf && fseek(file, (long)head.e_shoff, SEEK_SET) == 0)
        for (int i = 0; i < head.e_shnum && fread(&section, sizeof section, 1, file) == 1; i++)
            if (section.sh_flags & SHF_WRITE) bytes += (int64_t)section.sh_size;
    fclose(file);
    return bytes;
}
#else
int64_t place_static_bytes(const Place *place, const Exercise *e) {
    (void)place;
    (void)e;
    return 0;
}
#endif

/* ---- the kit --------------------------------------------------------------------------------- */

static bool is_there(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

/* Makes NAME.h with the prototype, which a student's file is compiled with, and NAME.c. Of
 * attention.c the function in NAME.h is one of right.o, which calls the student's. */
bool place_prepare(const Place *place, const Exercise *e) {
    static const char call[] = "(const int *size, const double *number, void *const *array)";
    const char *name = exercise_file(e);
    const char *right = e->file ? "tapehead_" : "";
    char file[80], path[PATH_SIZE], text[2048];
    place_path(place, objects, name, ".o", path);
    if (is_there(path)) return true;
    snprintf(file, sizeof file, "%s.h", name);
    snprintf(text, sizeof text, "#pragma once\n%svoid %s%s%s;\n",
             e->file ? "" : "#include \"exercises.h\"\n", right, e->function, e->prototype);
    if (!write_text(place, file, text)) return false;
    snprintf(file, sizeof file, "%s.c", name);
    snprintf(text, sizeof text,
             "#include \"%s.h\"\nvoid tapehead_call%s;\nvoid tapehead_call%s {\n"
             "    (void)number;\n    %s%s(%s);\n}\n",
             name, call, call, right, e->function, e->arguments);
    return write_text(place, file, text) && place_compile_kit(place, kit, name);
}

bool place_can_compile(const Place *place, const Exercise *e) {
    char name[64], file[80], text[2048], path[PATH_SIZE], messages[1024], label[LABEL_SIZE];
    exercise_label(e, label);
    snprintf(name, sizeof name, "control_%s", label); /* other threads have other ones */
    snprintf(file, sizeof file, "%s.c", name);
    snprintf(text, sizeof text, "#include <stdbool.h>\nvoid %s%s {}\n", e->function,
             e->file ? "(void)" : e->prototype);
    if (!process_make_folder_in(place->folder, name, true, path, sizeof path)) return false;
    if (!write_text(place, file, text)) return false;
    near_path(kit, file, "", path);
    return process_succeeded(make_program(place, e, path, name, messages, sizeof messages));
}

const char *text_named(const char *name) {
    for (int i = 0; i < num_texts; i++)
        if (strcmp(texts[i].name, name) == 0) return (const char *)texts[i].text;
    return "";
}

/* The other texts have answers in them, and no student's file may include them. */
static bool is_of_kit(const char *name) {
    return strcmp(name, "harness.c") == 0 || strcmp(strrchr(name, '.'), ".h") == 0;
}

static bool fill_kit(const Place *place, char *sentence, size_t size) {
    char path[PATH_SIZE];
    bool ok = process_make_folder_in(place->folder, kit, false, path, sizeof path) &&
              process_make_folder_in(place->folder, objects, false, path, sizeof path);
    for (int i = 0; i < num_texts && ok; i++)
        if (is_of_kit(texts[i].name))
            ok = write_text(place, texts[i].name, (const char *)texts[i].text);
    if (!ok) tensor_snprintf(sentence, size, "%s: nothing can be written there", place->folder);
    return ok;
}

/* From some disks no program starts (noexec). */
static bool starts_programs(const Place *place, char *sentence, size_t size) {
    char script[] = "./start", path[PATH_SIZE], folder[PATH_SIZE], messages[PATH_SIZE];
    char *const argv[] = {script, NULL};
    place_path(place, kit, "", "", folder);
    place_path(place, kit, "messages", "", messages);
    place_path(place, kit, "start", "", path);
    const Program program = {argv, folder, messages, COMPILER_SECONDS, .own = false};
    const bool written = write_text(place, "start", "#!/bin/sh\n") && chmod(path, 0755) == 0;
    if (!written || process_run(&program).end == PROCESS_NOT_STARTED) {
        tensor_snprintf(sentence, size, "no program starts in %s: TMPDIR may name another folder",
                        place->folder);
        return false;
    }
    return true;
}

/* Does the compiler make a program of an empty file, with these words? */
static bool makes_program(const Place *place, const char *const *words) {
    return process_succeeded(run_compiler(place, "empty", words, with_kit));
}

/* started.o, with which a program must start, too. */
static bool make_started(const Place *place) {
    static const char *const all[] = {
        WRAPS "-Wl,--wrap=__register_frame_info,--wrap=__deregister_frame_info",
        "-static",
        "-Wl,-r",
        "../objects/harness.o",
        "-o",
        "../objects/started.o",
        NULL};
    static const char *const program[] = {
        STARTED, "-xc", "../kit/empty.c", "-Dmain=tapehead_call", "-o", "program.exe", "-lm", NULL};
    char path[] = "../empty/program.exe";
    return run_own(place, all, "started") && makes_program(place, program) && runs(place, path);
}

/* Can the compiler work where it can open little, and is there a static C library (macOS has none)?
 */
static void try_locks(Place *place) {
    static const char *const usual[] = {"../kit/empty.c", "-o", "program.exe", NULL};
    static const char *const statically[] = {
        "-static", "../kit/empty.c", "-o", "program.exe", "-lm", NULL};
    char folder[PATH_SIZE];
    if (!write_text(place, "empty.c", "int main(void) { return 0; }\n") ||
        !process_make_folder_in(place->folder, "empty", true, folder, sizeof folder))
        return;
    /* What needs most is tried first: where it works, the others do, too. */
    place->confines = true;
    place->has_started = make_started(place);
    place->links_statically = place->has_started || makes_program(place, statically);
    if (place->links_statically) return;
    place->confines = makes_program(place, usual);
    if (place->confines) return;
    place->links_statically = makes_program(place, statically);
    place->has_started = place->links_statically && make_started(place);
}

bool place_make(Place *place, char *sentence, size_t size) {
    *place = (Place){.submission = {"", "", NULL, NULL, false}};
    if (!process_make_folder(place->folder, sizeof place->folder)) {
        snprintf(sentence, size, "there is no place for temporary files; TMPDIR may name one");
        return false;
    }
    bool ok = fill_kit(place, sentence, size) && starts_programs(place, sentence, size);
    if (ok && (!find_compiler(place) || !compiler_runs(place))) {
        const char *user = process_user();
        tensor_snprintf(
            sentence, size,
            "there is no C compiler %s%s%s: install gcc or clang, or name yours, CC=gcc-12",
            place->compiler[0] ? place->compiler[0] : "",
            user ? " that can be started as the user " : "", user ? user : "");
        ok = false;
    }
    if (ok && !place_compile_kit(place, kit, "harness")) {
        tensor_snprintf(sentence, size, "the compiler %s cannot compile harness.c",
                        place->compiler[0]);
        ok = false;
    }
    if (ok) try_locks(place);
    if (!ok) place_remove(place);
    return ok;
}

void place_remove(Place *place) {
    if (*place->folder) remove_folder(place->folder, 1);
    *place->folder = '\0';
}

/* ---- a student's files ----------------------------------------------------------------------- */

static bool is_text_of_kit(const char *name) { return is_of_kit(name) && *text_named(name); }

static bool is_c(const char *name) {
    const size_t n = strlen(name);
    return n > 2 && name[n - 2] == '.' && (name[n - 1] == 'c' || name[n - 1] == 'h');
}

void place_file(const Submission *from, const Exercise *e, char name[NAME_SIZE]) {
    char right[80];
    snprintf(right, sizeof right, "%s.c", exercise_source(e));
    if (from->as && strcmp(from->as, right) == 0) snprintf(name, NAME_SIZE, "%s", from->given);
    else snprintf(name, NAME_SIZE, "%.239s%s", from->prefix, right);
}

PlaceState place_is_missing(const Submission *from, const Exercise *e, char *sentence,
                            size_t size) {
    char name[NAME_SIZE], path[PATH_SIZE];
    struct stat status;
    place_file(from, e, name);
    snprintf(path, sizeof path, "%.3700s/%s", from->folder, name);
    if (lstat(path, &status) == 0) return PLACE_THERE;
    if (*from->prefix) snprintf(sentence, size, "%s is missing", name); /* others are others' */
    else if (submission_other_name(from->folder, name, exercise_source(e), sentence, size))
        return PLACE_OTHER_NAME;
    return PLACE_MISSING;
}

/* What a file is called here: without the prefix, or as what it is taken. NULL: it is not copied.
 */
static const char *name_here(const Submission *from, const char *name) {
    const size_t n = strlen(from->prefix);
    if (from->given && strcmp(name, from->given) == 0) return from->as;
    if (strncmp(name, from->prefix, n) != 0) return NULL;
    return from->as && strcmp(name, from->as) == 0 ? NULL : name + n;
}

/* A file that cannot be read, or that is refused, is not copied. */
static bool copy_file(const Place *place, const char *name, const char *here) {
    const char *folder = place->submission.folder;
    char from[PATH_SIZE], to[PATH_SIZE], sentence[SENTENCE_SIZE];
    snprintf(from, sizeof from, "%s/%s", folder, name);
    if (submission_refusal(folder, name, sentence, sizeof sentence)) return true;
    char *text = submission_read(from, SUBMISSION_MOST);
    if (!text) return true;
    place_path(place, source, here, "", to);
    const bool written = write_bytes(to, text, strlen(text));
    free(text);
    return written;
}

/* The folders of the student before go. */
static void empty(const Place *place) {
    DIR *folder = opendir(place->folder);
    if (!folder) return;
    for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
        char path[PATH_SIZE];
        if (*item->d_name == '.' || strcmp(item->d_name, kit) == 0 ||
            strcmp(item->d_name, objects) == 0)
            continue;
        snprintf(path, sizeof path, "%.1023s/%s", place->folder, item->d_name);
        remove_folder(path, 1);
    }
    closedir(folder);
}

/* Copies the texts of a folder. Of files that no exercise has, some are enough; and of headers a
 * few, since n of them that include each other twice are 2^n. */
static bool copy_files(const Place *place, DIR *folder) {
    enum { MOST_OTHERS = 100, MOST_HEADERS = 8 };
    int others = 0, headers = 0;
    for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
        const char *name = name_here(&place->submission, item->d_name);
        if (!name || !is_c(name) || is_text_of_kit(name)) continue;
        const bool is_ours = isdigit((unsigned char)*name) || strcmp(name, "attention.c") == 0;
        if (!is_ours && ++others > MOST_OTHERS) continue;
        if (name[strlen(name) - 1] == 'h' && ++headers > MOST_HEADERS) continue;
        if (!copy_file(place, item->d_name, name)) return false;
    }
    return true;
}

bool place_take(Place *place, const Submission *submission, char *sentence, size_t size) {
    char path[PATH_SIZE];
    struct stat status;
    const char *from = submission->folder;
    place->submission = *submission;
    place->whole = false;
    place->endless = false;
    if (stat(from, &status) != 0 || !S_ISDIR(status.st_mode)) {
        tensor_snprintf(sentence, size, "%s: there is no such folder; --submission names one",
                        from);
        return false;
    }
    empty(place);
    DIR *folder = opendir(from);
    if (!folder) {
        tensor_snprintf(sentence, size, "%s: the folder cannot be read", from);
        return false;
    }
    const bool ok = process_make_folder_in(place->folder, source, false, path, sizeof path) &&
                    copy_files(place, folder);
    if (!ok) tensor_snprintf(sentence, size, "%s: nothing can be written there", place->folder);
    closedir(folder);
    return ok && (!submission->attention || scratch_take(place, sentence, size));
}
