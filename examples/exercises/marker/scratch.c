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

/* A text of which all functions give way to others of their name. */
static char *weak(const char *text) {
    enum { PRAGMAS = 4096 };
    const size_t size = strlen(text) + PRAGMAS;
    char *whole = malloc(size);
    size_t at = 0;
    for (int i = 0; i < SCRATCH + COMPLETE && whole; i++)
        at += (size_t)snprintf(whole + at, size - at, "#pragma weak %s\n", function_name(i));
    if (whole) snprintf(whole + at, size - at, "%s", text);
    return whole;
}

/* ---- the right program around a function ----------------------------------------------------- */

static const char headers[] = "#include <math.h>\n#include <stdbool.h>\n#include <stdio.h>\n"
                              "#include <stdlib.h>\n";

/* Compiles a text to an object of the kit. No student's file can include it: it has answers. */
static bool compile_part(const Place *place, const char *name, const char *text) {
    char file[80], path[PATH_SIZE];
    snprintf(file, sizeof file, "%s.c", name);
    const bool ok =
        place_write(place, around, file, text) && place_compile_kit(place, around, name);
    place_path(place, around, file, "", path);
    remove(path);
    return ok;
}

/* One function of micro.c, with what stands before it declared: right_matmul_forward.o. */
static bool compile_function(const Place *place, const char *function) {
    char name[80], *micro = strdup(text_named("micro.c"));
    const size_t size = micro ? strlen(micro) + 512 : 0;
    char *text = malloc(size + 1);
    Definition d;
    bool ok = micro && text && find(micro, 0, function, &d);
    if (ok) {
        micro[d.end] = '\0';
        cut(micro, function);
        snprintf(text, size, "%s#define static extern\n#pragma weak places\n%s\n", headers, micro);
        snprintf(name, sizeof name, "right_%s", function);
        ok = compile_part(place, name, text);
    }
    free(text);
    free(micro);
    return ok;
}

/* All other lines of micro.c, and the calls: right.o. */
static bool compile_calls(const Place *place) {
    enum { CALLS = 8192 };
    char *micro = strdup(text_named("micro.c"));
    const char *calls = text_named("scratch_calls.inc");
    const size_t size = micro ? strlen(micro) + strlen(calls) + CALLS : 0;
    char *text = malloc(size + 1);
    bool ok = micro && text;
    if (ok) {
        Definition d;
        char *training = strstr(micro, "/* ---- training");
        if (training) *training = '\0';
        for (int i = 0; i < SCRATCH; i++)
            if (find(micro, 0, function_name(i), &d)) declare(micro, &d);
        int at = snprintf(text, size, "%s#define static\n%s\n#undef static\n%s\n", headers, micro,
                          calls);
        for (int i = 0; i < SCRATCH; i++)
            at += snprintf(text + at, size - (size_t)at,
                           "void tapehead_%s(CALL);\nvoid tapehead_%s(CALL) {\n"
                           "    call_%s(%s, s, number, x);\n}\n",
                           function_name(i), function_name(i), function_name(i), function_name(i));
        ok = compile_part(place, "right", text);
    }
    free(text);
    free(micro);
    return ok;
}

/* "static void clear(void) {}" of micro.c's clear */
static void put_empty(const char *micro, const Definition *d, char *text, size_t size) {
    const char *begin = micro + d->begin;
    const bool is_void = strncmp(begin, "void ", 5) == 0 || strncmp(begin, "static void ", 12) == 0;
    put_text(text, size, "%.*s%s\n", (int)(d->open - d->begin), begin,
             is_void ? "{}" : "{ return 0; }");
}

/* All functions with empty bodies, and weak: empty.o. The texts are micro.c's, since attention.c
 * may be what somebody has written. */
static bool compile_empty(const Place *place) {
    enum { BODIES = 8192 };
    char *micro = strdup(text_named("micro.c"));
    const size_t size = micro ? strlen(micro) + BODIES : 0;
    char *text = calloc(size + 1, 1), bodies[BODIES] = "";
    size_t end = 0;
    bool ok = micro && text;
    for (int i = 0; i < SCRATCH && ok; i++) {
        Definition d;
        ok = find(micro, 0, function_name(i), &d);
        if (ok) put_empty(micro, &d, bodies, sizeof bodies);
        if (ok && d.end > end) end = d.end;
    }
    if (ok) {
        micro[end] = '\0';
        cut(micro, "");
        snprintf(text, size, "%s#define static extern\n%s\n%s", headers, micro, bodies);
    }
    char *whole = ok ? weak(text) : NULL;
    ok = whole && compile_part(place, "empty", whole);
    free(whole);
    free(text);
    free(micro);
    return ok;
}

/* The right program in parts. */
static bool compile_right(const Place *place) {
    char path[PATH_SIZE];
    bool ok = process_make_folder_in(place->folder, around, false, path, sizeof path) &&
              compile_calls(place) && compile_empty(place);
    for (int i = 0; i < SCRATCH && ok; i++) ok = compile_function(place, function_name(i));
    return ok;
}

bool scratch_prepare(const Place *place, const Exercise *e) {
    static const char arguments[] = "(const int *s, const double *number, void *const *x)";
    char text[1024];
    snprintf(text, sizeof text,
             "void tapehead_%s%s;\nvoid tapehead_call%s;\nvoid tapehead_call%s {\n"
             "    tapehead_%s(s, number, x);\n}\n",
             e->function, arguments, arguments, arguments, e->function);
    return compile_part(place, exercise_file(e), text);
}

/* ---- the student's file ---------------------------------------------------------------------- */

/* The text as it is compiled for a function. */
static bool write_source(const Place *place, const Exercise *e, const char *text) {
    const size_t size = strlen(text) + 512;
    char *checked = malloc(size), file[80];
    if (checked)
        snprintf(checked, size,
                 "#line 1 \"attention.c\"\n%s\n"
                 "_Static_assert(__builtin_offsetof(Matrix, backward) == 2 * sizeof(int) + 5 * "
                 "sizeof(void *) && __builtin_offsetof(Matrix, index) + sizeof(int *) == "
                 "sizeof(Matrix), \"struct Matrix is changed\");\n",
                 text);
    char *whole = checked ? weak(checked) : NULL;
    snprintf(file, sizeof file, "%s.c", exercise_file(e));
    const bool written = whole && place_write(place, source, file, whole);
    free(whole);
    free(checked);
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

bool scratch_has(const Place *place, const Exercise *e) {
    Definition d;
    char *text = students_text(place);
    const bool is_there = text && find(text, 0, e->function, &d);
    free(text);
    return is_there;
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
