/* experiments.c - experiments of the lessons, as JSON: see experiments.h. */
#include "experiments.h"

#include "../page/json.h"
#include "../page/recording.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_INTO(text, format)                                                                  \
    do {                                                                                           \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        vsnprintf(text, sizeof(text), format, arguments);                                          \
        va_end(arguments);                                                                         \
    } while (0)

/* ---- the table ------------------------------------------------------------------------------- */

void experiment_lead(Experiment *x, int start, const char *knob, const char *lead, ...) {
    x->start = start;
    snprintf(x->knob, sizeof x->knob, "%s", knob);
    FORMAT_INTO(x->lead, lead);
}

void experiment_row(Experiment *x, const char *name) {
    snprintf(x->row[x->rows++], sizeof *x->row, "%s", name);
}

void experiment_column(Experiment *x, char kind, const char *name) {
    x->kinds[x->columns] = kind;
    snprintf(x->column[x->columns++], sizeof *x->column, "%s", name);
}

void experiment_line(Experiment *x, const char *line, const char *why) {
    algebra_add(&x->algebra, line, why);
}

static void write_head(const Experiment *x, bool is_first) {
    fprintf(x->file, "%s\n{\"at\":\"%s\"", is_first ? "" : ",", x->at);
    json_write_member(x->file, "title", x->kind->title);
    json_write_member(x->file, "lead", x->lead);
    json_write_member(x->file, "knob", x->knob);
    fprintf(x->file, ",\"start\":%d,\"rows\":", x->start);
    json_write_texts(x->file, *x->row, sizeof *x->row, x->rows);
    fprintf(x->file, ",\"columns\":");
    json_write_texts(x->file, *x->column, sizeof *x->column, x->columns);
    json_write_member(x->file, "kinds", x->kinds);
    algebra_write(x->file, &x->algebra);
    fprintf(x->file, ",\"positions\":[");
}

void experiment_position(Experiment *x, const char *label, ...) {
    char text[64];
    FORMAT_INTO(text, label);
    if (x->positions == 0) write_head(x, ftell(x->file) == 0);
    fprintf(x->file, "%s\n{\"label\":", x->positions++ ? "," : "");
    json_write_string(x->file, text);
    fprintf(x->file, ",\"cells\":[");
    x->cells = 0;
}

void experiment_cell(Experiment *x, const char *text, ...) {
    char cell[64];
    FORMAT_INTO(cell, text);
    if (x->cells++ > 0) putc(',', x->file);
    json_write_string(x->file, cell);
}

/* "0" is exactly 0, and "0.00" is small; neither has a sign. */
void experiment_number(Experiment *x, double number, int decimals) {
    char text[64];
    snprintf(text, sizeof text, "%.*f", decimals, number);
    if (isnan(number)) experiment_cell(x, "NaN");
    else if (number == 0) experiment_cell(x, "0");
    else experiment_cell(x, "%s", *text == '-' && strtod(text, NULL) == 0 ? text + 1 : text);
}

void experiment_says(Experiment *x, const char *format, ...) {
    char text[sizeof x->said];
    FORMAT_INTO(text, format);
    putc(']', x->file);
    if (strcmp(text, x->said) != 0) json_write_member(x->file, "says", text);
    strcpy(x->said, text);
    putc('}', x->file);
}

/* ---- the experiments of a lesson ------------------------------------------------------------- */

static Step step_of(const ExperimentKind *kind) {
    if (kind->phase == 'f') return step_forward(kind->made);
    return kind->phase == 'b' ? step_backward(kind->made, kind->input)
                              : step_addition(kind->made, kind->input);
}

/* Copies what an experiment takes from the open tape. */
static void take(Experiment *x) {
    const Step at = step_of(x->kind);
    if (at.kind) step_name(at, x->at);
    for (int i = 0; i < EXPERIMENT_TAKES && x->kind->takes[i] && at.kind; i++) {
        const Tensor *found = tensor_on_tape(x->kind->takes[i]);
        if (found) x->taken[i] = tensor_to(found, F64);
        else *x->at = '\0';
    }
}

static void run(Experiment *x) {
    for (int i = 0; i < EXPERIMENT_ROWS && x->kind->rows[i]; i++)
        experiment_row(x, x->kind->rows[i]);
    for (int i = 0; i < EXPERIMENT_COLUMNS && x->kind->columns[i]; i++)
        experiment_column(x, x->kind->kinds[i], x->kind->columns[i]);
    if (*x->at && !tensor_error()) x->kind->run(x);
    if (x->positions > 0) fprintf(x->file, "]}");
    for (int i = 0; i < EXPERIMENT_TAKES; i++) tensor_release(x->taken[i]);
}

static const ExperimentKind *const kinds[] = {
    &experiment_check,   &experiment_root,     &experiment_key_bias, &experiment_mask,
    &experiment_padding, &experiment_residual, &experiment_reshape};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The lesson is open only while its tensors are copied. */
static int take_all(Experiment all[KINDS], Lesson *lesson, int number, LessonOptions options) {
    int n = 0;
    const bool opened = lesson_open(lesson, number, options);
    for (int i = 0; i < KINDS && opened; i++) {
        if (kinds[i]->lesson != number) continue;
        all[n] = (Experiment){.kind = kinds[i], .lesson = lesson};
        take(&all[n++]);
    }
    lesson_close(lesson);
    return n;
}

char *experiments_as_json(int number, char part, LessonOptions options) {
    Experiment all[KINDS];
    Lesson lesson;
    char *json;
    options.rule = NULL;
    options.num_formulas = 0;
    options.train = false;
    options.step = 0;
    options.part = part;
    if (part == 'b') return NULL;
    FILE *file = data_open(&json);
    const int n = take_all(all, &lesson, number, options);
    for (int i = 0; i < n; i++) {
        all[i].file = file;
        run(&all[i]);
    }
    const bool any = file && ftell(file) > 0;
    json = data_close(file, json);
    if (any) return json;
    free(json);
    return NULL;
}
