/* exercise.c - the arrays of the calls of an exercise: see exercise.h. */
#include "exercise.h"

#include "../../../tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Exercise *exercise_at(int i) {
    return i < num_exercises ? exercise_list[i] : scratch_exercise(i - num_exercises);
}

int exercise_named(const char *text, const char **end) {
    const size_t length = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz.");
    char label[LABEL_SIZE];
    *end = text + length;
    for (int i = 0; exercise_at(i); i++) {
        exercise_label(exercise_at(i), label);
        if (strlen(label) == length && memcmp(label, text, length) == 0) return i;
    }
    return -1;
}

void exercise_label(const Exercise *e, char label[LABEL_SIZE]) {
    if (e->file) snprintf(label, LABEL_SIZE, "%d.%d", e->number / 10, e->number % 10);
    else snprintf(label, LABEL_SIZE, "%d%s", e->number, e->letter ? e->letter : "");
}

const KnownMistake *exercise_mistake(const Exercise *e, int i) {
    const KnownMistake *m = e->mistakes;
    while (m->id && i > 0) {
        m++;
        i--;
    }
    return m->id ? m : NULL;
}

const char *exercise_file(const Exercise *e) {
    static TENSOR_THREAD_LOCAL char name[64];
    snprintf(name, sizeof name, "%02d%s_%s", e->number, e->letter ? e->letter : "", e->name);
    return name;
}

const char *exercise_source(const Exercise *e) { return e->file ? e->file : exercise_file(e); }

const char *exercise_title(const Exercise *e) { return e->file ? e->name : exercise_file(e); }

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool is_array(const Parameter *p) {
    return p->kind == OUTPUT || p->kind == STATE || p->kind == INPUT || p->kind == MASK;
}

bool is_output(const Parameter *p) { return p->kind == OUTPUT || p->kind == STATE; }

size_t element_size(const Parameter *p) { return p->kind == MASK ? sizeof(bool) : sizeof(double); }

const Parameter *exercise_array(const Exercise *e, int array) {
    for (const Parameter *p = e->parameter; p->kind != NO_PARAMETER; p++)
        if (is_array(p) && array-- == 0) return p;
    return NULL;
}

/* The value of the size with this name, which has `length` letters, or of a number. */
static int64_t size_named(const Exercise *e, const Call *call, const char *name, size_t length) {
    int at = 0;
    if (*name >= '0' && *name <= '9') return atoi(name);
    for (const Parameter *p = e->parameter; p->kind != NO_PARAMETER; p++) {
        if (p->kind != SIZE) continue;
        if (strlen(p->name) == length && memcmp(p->name, name, length) == 0) return call->size[at];
        at++;
    }
    return 0;
}

int64_t call_size(const Exercise *e, const Call *call, const char *sizes) {
    int64_t product = 1;
    while (sizes && *sizes) {
        const size_t length = strcspn(sizes, " ");
        product *= size_named(e, call, sizes, length);
        sizes += length;
        sizes += strspn(sizes, " *");
    }
    return product;
}

int64_t call_columns(const Exercise *e, const Call *call, int array) {
    return call_size(e, call, exercise_array(e, array)->columns);
}

int64_t call_length(const Exercise *e, const Call *call, int array) {
    return call_size(e, call, exercise_array(e, array)->rows) * call_columns(e, call, array);
}

bool call_make(const Exercise *e, Call *call) {
    for (int i = 0; exercise_array(e, i); i++) {
        call->array[i] = calloc((size_t)call_length(e, call, i) + 1, sizeof(double));
        if (call->array[i]) continue;
        call_free(call);
        return false;
    }
    return true;
}

bool call_copy(const Exercise *e, Call *copy, const Call *call) {
    *copy = *call;
    memset(copy->array, 0, sizeof copy->array);
    if (!call_make(e, copy)) return false;
    for (int i = 0; exercise_array(e, i); i++)
        memcpy(copy->array[i], call->array[i],
               (size_t)call_length(e, call, i) * element_size(exercise_array(e, i)));
    return true;
}

void call_free(Call *call) {
    for (int i = 0; i < MOST_ARRAYS; i++) free(call->array[i]);
    memset(call->array, 0, sizeof call->array);
}

/* ---- names ----------------------------------------------------------------------------------- */

void element_name(const Exercise *e, const Call *call, int array, int64_t i, char *text,
                  size_t size) {
    const Parameter *p = exercise_array(e, array);
    const int64_t columns = call_columns(e, call, array);
    if (p->rows)
        snprintf(text, size, "%s[%" PRId64 "][%" PRId64 "]", p->name, i / columns, i % columns);
    else snprintf(text, size, "%s[%" PRId64 "]", p->name, i);
}

void sizes_text(const Exercise *e, const Call *call, char *text, size_t size) {
    size_t at = 0;
    int next = 0;
    *text = '\0';
    for (const Parameter *p = e->parameter; p->kind != NO_PARAMETER && at < size; p++)
        if (p->kind == SIZE)
            at += (size_t)snprintf(text + at, size - at, "%s%s = %d", at ? ", " : "", p->name,
                                   call->size[next++]);
}
