/* scratch.c - the programs around one function of attention.c: see scratch.h.
 *
 * The right program is compiled in parts, a function each. The student's whole file is compiled,
 * and all of its functions are weak: where the right ones are linked they take their place. So of
 * the parts before a function and the student's object comes a program in which the function is the
 * student's, those before it are right, and the right ones from there on are not there: two that
 * call each other have no answer. What the student's object lacks is empty. If the file does not
 * compile, the other functions are cut out of its text; then the function is put alone into the
 * empty attention.c. So a mistake of syntax costs its own function. */
#include "scratch.h"

#include "../../common/put_text.h"
#include "submission.h"
#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char source[] = "source", around[] = "around";

/* What is complete in attention.c; the right program has it, too. */
static const char *const complete[] = {
    "matrix", "release", "add_forward", "add_backward", "embed_forward", "add",
    "matmul", "softmax", "scores",      "mix",          "embed",         "cross_entropy",
    "alive",  "tape",    "length",      "weight",       "places"};
enum { COMPLETE = sizeof complete / sizeof *complete };

/* All functions, and behind them what else has a name that the right program has, too. */
static const char *function_name(int i) {
    return i < SCRATCH ? scratch_exercise(i)->function : complete[i - SCRATCH];
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Where a definition without its last bracket ends: where the next function begins. */
static bool find(const char *text, size_t at, const char *function, Definition *found) {
    Definition next;
    if (!submission_definition(text, at, function, found)) return false;
    for (int i = 0; i < SCRATCH + COMPLETE && !found->whole; i++)
        if (submission_definition(text, found->open, function_name(i), &next) &&
            next.begin > found->open && next.begin < found->end)
            found->end = next.begin;
    return true;
}

/* In place of the definition comes a declaration, and the lines keep their numbers. */
static void declare(char *text, const Definition *d) {
    size_t begin = d->begin;
    if (strncmp(text + begin, "static ", 7) == 0) memset(text + begin, ' ', 7);
    for (size_t i = d->open; i < d->end; i++)
        if (text[i] != '\n' && text[i] != '\r') text[i] = ' ';
    text[d->open] = ';';
}

/* Cuts out all functions, but for one. */
static void cut(char *text, const char *all_but) {
    for (int i = 0; i < SCRATCH + COMPLETE; i++) {
        Definition d = {.open = 0};
        if (strcmp(function_name(i), all_but) == 0) continue;
        while (find(text, d.open, function_name(i), &d)) declare(text, &d);
    }
}

/* All functions of the text behind these lines give way to others of their name. */
static void put_weak(char *text, size_t size) {
    for (int i = 0; i < SCRATCH + COMPLETE; i++)
        put_text(text, size, "#pragma weak %s\n", function_name(i));
}

/* ---- the right program around a function ----------------------------------------------------- */

static const char headers[] = "#include <math.h>\n#include <stdbool.h>\n#include <stdio.h>\n"
                              "#include <stdlib.h>\n";

/* Compiles a text to an object of the kit. No student's file can include it: it has answers. */
static bool compile_part(const Place *place, const char *name, const char *text) {
    char file[96], path[PATH_SIZE];
    snprintf(file, sizeof file, "%s.c", name);
    const bool ok =
        place_write(place, around, file, text) && place_compile_kit(place, around, name);
    place_path(place, around, file, "", path);
    remove(path);
    return ok;
}

/* micro.c, to be cut, and what is made of it. Students are taken one after the other. */
static char micro[1 << 16], part[1 << 17];

static void begin_part(void) {
    snprintf(micro, sizeof micro, "%s", text_named("micro.c"));
    *part = '\0';
}

/* One function of micro.c, with what stands before it declared: right_matmul_forward.o. */
static bool compile_function(const Place *place, const char *function) {
    char name[80];
    Definition d;
    begin_part();
    if (!find(micro, 0, function, &d)) return false;
    micro[d.end] = '\0';
    cut(micro, function);
    put_text(part, sizeof part, "%s#define static extern\n#pragma weak places\n%s\n", headers,
             micro);
    snprintf(name, sizeof name, "right_%s", function);
    return compile_part(place, name, part);
}

/* All other lines of micro.c, and the calls: right.o. */
static bool compile_calls(const Place *place) {
    Definition d;
    begin_part();
    char *training = strstr(micro, "/* ---- training");
    if (training) *training = '\0';
    for (int i = 0; i < SCRATCH; i++)
        if (find(micro, 0, function_name(i), &d)) declare(micro, &d);
    put_text(part, sizeof part, "%s#define static\n%s\n#undef static\n%s\n", headers, micro,
             text_named("scratch_calls.inc"));
    for (int i = 0; i < SCRATCH; i++) {
        const char *f = function_name(i);
        put_text(part, sizeof part,
                 "void tapehead_%s(CALL);\nvoid tapehead_%s(CALL) {\n"
                 "    call_%s(%s, s, number, x);\n}\n",
                 f, f, f, f);
    }
    return compile_part(place, "right", part);
}

/* "static void clear(void) {}" of micro.c's clear */
static void put_empty(const Definition *d, char *bodies, size_t size) {
    const char *begin = micro + d->begin;
    const bool is_void = strncmp(begin, "void ", 5) == 0 || strncmp(begin, "static void ", 12) == 0;
    put_text(bodies, size, "%.*s%s\n", (int)(d->open - d->begin), begin,
             is_void ? "{}" : "{ return 0; }");
}

/* All functions with empty bodies, and weak: empty.o. The texts are micro.c's, since attention.c
 * may be what somebody has written. */
static bool compile_empty(const Place *place) {
    char bodies[8192] = "";
    size_t end = 0;
    Definition d;
    begin_part();
    for (int i = 0; i < SCRATCH; i++) {
        if (!find(micro, 0, function_name(i), &d)) return false;
        put_empty(&d, bodies, sizeof bodies);
        if (d.end > end) end = d.end;
    }
    micro[end] = '\0';
    cut(micro, "");
    put_weak(part, sizeof part);
    put_text(part, sizeof part, "%s#define static extern\n%s\n%s", headers, micro, bodies);
    return compile_part(place, "empty", part);
}

/* The right program in parts. */
static bool compile_right(const Place *place) {
    char path[PATH_SIZE];
    bool ok = process_make_folder_in(place->folder, around, false, path, sizeof path) &&
              compile_calls(place) && compile_empty(place);
    for (int i = 0; i < SCRATCH && ok; i++) ok = compile_function(place, function_name(i));
    return ok;
}

/* ---- the student's file ---------------------------------------------------------------------- */

/* The text as it is compiled for a function. */
static bool write_source(const Place *place, const Exercise *e, const char *student) {
    enum { AROUND = 4096 };
    const size_t size = strlen(student) + AROUND;
    char *whole = calloc(size, 1), file[80];
    if (!whole) return false;
    put_weak(whole, size);
    put_text(whole, size,
             "#line 1 \"attention.c\"\n%s\n"
             "_Static_assert(__builtin_offsetof(Matrix, backward) == 2 * sizeof(int) + 5 * "
             "sizeof(void *) && __builtin_offsetof(Matrix, index) + sizeof(int *) == "
             "sizeof(Matrix), \"struct Matrix is changed\");\n",
             student);
    snprintf(file, sizeof file, "%s.c", exercise_file(e));
    const bool written = place_write(place, source, file, whole);
    free(whole);
    return written;
}

static char *students_text(const Place *place) {
    char path[PATH_SIZE];
    place_path(place, source, "attention.c", "", path);
    return submission_read(path, SUBMISSION_MOST);
}

static int line_of(const char *text, size_t at) {
    int line = 1;
    for (size_t i = 0; i < at; i++) line += text[i] == '\n';
    return line;
}

/* The student's function in the empty attention.c, in which the others are declared. */
static char *alone(const char *student, const char *function) {
    Definition from, to;
    char *form = strdup(text_named("attention.c"));
    if (form) cut(form, function);
    char *text = NULL;
    if (form && find(student, 0, function, &from) && find(form, 0, function, &to)) {
        const size_t size = strlen(form) + (from.end - from.begin) + 128;
        text = malloc(size);
        if (text)
            snprintf(text, size, "%.*s#line %d \"attention.c\"\n%.*s%s", (int)to.begin, form,
                     line_of(student, from.begin), (int)(from.end - from.begin),
                     student + from.begin, form + to.end);
    }
    free(form);
    return text;
}

bool scratch_write_less(const Place *place, const Exercise *e, int attempt) {
    enum { CUT = 1, ALONE };
    char *text = students_text(place);
    char *own = text && attempt == ALONE ? alone(text, e->function) : NULL;
    const char *less = attempt == CUT ? text : own;
    if (text && attempt == CUT) cut(text, e->function);
    const bool written = less && write_source(place, e, less);
    free(own);
    free(text);
    return written;
}

bool scratch_take(Place *place, char *sentence, size_t size) {
    char path[PATH_SIZE];
    struct stat status;
    char *text = students_text(place);
    if (!text) return true;
    bool ok = place_write(place, source, "check.h", "");
    for (int i = 0; i < SCRATCH && ok; i++) ok = write_source(place, scratch_exercise(i), text);
    if (ok) place_compile_whole(place, exercise_file(scratch_exercise(0)));
    free(text);
    if (!ok) snprintf(sentence, size, "%s: nothing can be written there", place->folder);
    place_path(place, "objects", "right.o", "", path); /* from a student before */
    if (ok && stat(path, &status) != 0 && !compile_right(place)) {
        snprintf(sentence, size, "the compiler %s cannot compile micro.c", place->compiler[0]);
        ok = false;
    }
    return ok;
}
