/* program.c - the C beside a step: see program.h. */
#include "program.h"

#include "../../../autograd/autograd.h"

#include <string.h>

/* The ops of the lessons and of the playground, whatever their settings are. */
static const char lesson_ops[][16] = {"add",           "sub",
                                      "mul",           "square",
                                      "tanh",          "relu",
                                      "scale",         "sum",
                                      "matmul",        "bmm",
                                      "linear",        "reshape",
                                      "squeeze",       "unsqueeze",
                                      "softmax",       "masked_fill",
                                      "dropout",       "masked_softmax",
                                      "cross_entropy", "additive_scores",
                                      "transpose"};

/* ---- the pieces of an op --------------------------------------------------------------------- */

static const OpSources *find_op(const char *name) {
    const OpSources *op = program_ops;
    while (op->op && strcmp(op->op, name) != 0) op++;
    return op->op ? op : NULL;
}

static void show(const int *pieces) {
    for (; *pieces >= 0; pieces++) program_shown[*pieces] = true;
}

/* Writes ,"key":[pieces]; `more` is one more piece, or -1. */
static void write_pieces(FILE *file, const char *key, const int *pieces, int more) {
    const char *comma = "";
    fprintf(file, ",\"%s\":[", key);
    for (const int *piece = pieces; piece && *piece >= 0; piece++) {
        fprintf(file, "%s%d", comma, *piece);
        comma = ",";
    }
    if (more >= 0) fprintf(file, "%s%d", comma, more);
    putc(']', file);
    if (pieces) show(pieces);
    if (more >= 0) program_shown[more] = true;
}

/* summed: is a gradient summed over places to which an input was broadcast? */
static void write_line(FILE *file, int line, const char *name, bool summed, int model) {
    const OpSources *op = find_op(name);
    const bool differentiable = op && op->backward[0] >= 0;
    fprintf(file, "{\"line\":%d", line);
    write_pieces(file, "forward", op ? op->forward : NULL, -1);
    write_pieces(file, "backward", op ? op->backward : NULL,
                 differentiable && summed ? program_unbroadcast : -1);
    if (model >= 0) fprintf(file, ",\"model\":%d", model);
    putc('}', file);
}

/* ---- the statement of the model -------------------------------------------------------------- */

/* Is this statement in the file of the lesson, lesson3b.c for "3b", or in lesson.c? */
static bool in_lesson(const ModelSource *m, const char *lesson) {
    return !*m->lesson || strcmp(m->lesson, lesson) == 0;
}

static bool fits_name(const char *pattern, const char *name) {
    const char *any = strstr(pattern, "%s");
    if (!any) return strcmp(pattern, name) == 0;
    const size_t before = (size_t)(any - pattern), after = strlen(any + 2), size = strlen(name);
    return size > before + after && strncmp(name, pattern, before) == 0 &&
           strcmp(name + size - after, any + 2) == 0;
}

/* Could this call apply the op? A call of anything but an op could apply any. */
static bool fits_op(const char *call, const char *op) {
    if (strncmp(call, "ag_", 3) != 0 || !find_op(call + 3)) return true;
    return strcmp(call + 3, op) == 0;
}

static bool names(const ModelSource *m, const TapeLine *line) {
    return fits_name(m->name, line->out->name) && fits_op(m->call, line->op);
}

static bool is_on_tape(const ModelSource *m) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        if (line.n_in > 0 && names(m, &line)) return true;
    return *m->name == '\0';
}

/* Did this statement run? Then the tape has every result that it names, and most results of its
 * function: another branch, or a function that was not called, can use the same names. */
static bool did_run(const ModelSource *m) {
    int of_function = 0, there = 0;
    for (const ModelSource *other = program_models; other->lesson; other++) {
        const bool is_there = other->function == m->function && is_on_tape(other);
        if (other->source == m->source && !is_there) return false;
        of_function += other->function == m->function;
        there += is_there;
    }
    return 2 * there >= of_function;
}

/* The piece with the statement that made the result; -1 if there is none. */
static int statement_of(const char *lesson, const TapeLine *line) {
    for (const ModelSource *m = program_models; m->lesson; m++)
        if (in_lesson(m, lesson) && names(m, line) && did_run(m)) return m->source;
    return -1;
}

/* The piece with the statement that calls a module. */
static int module_of(const char *lesson) {
    for (const ModelSource *m = program_models; m->lesson; m++)
        if (in_lesson(m, lesson) && !*m->name && did_run(m)) return m->source;
    return -1;
}

/* An op inside of a module, or one whose result has no name: then the statement is that of the
 * line that reads the result. */
static int model_of(const char *lesson, int i) {
    TapeLine line, reader;
    if (!*lesson || !tape_line(i, &line)) return -1;
    int model = statement_of(lesson, &line);
    if (model < 0) model = module_of(lesson);
    for (int j = i + 1; model < 0 && tape_line(j, &reader); j++)
        for (int k = 0; k < reader.n_in; k++)
            if (reader.in[k] == line.out) return model_of(lesson, j);
    return model;
}

/* ---- a tape ---------------------------------------------------------------------------------- */

static bool same_shape(Shape a, Shape b) {
    return a.ndim == b.ndim && memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof *a.dim) == 0;
}

static bool is_summed(const TapeLine *line) {
    const OpSources *op = find_op(line->op);
    if (strcmp(line->op, "linear") == 0) return line->in[2] != NULL; /* the bias */
    for (int k = 0; op && op->is_row && k < line->n_in; k++)
        if (!same_shape(line->in[k]->shape, line->out->shape)) return true;
    return false;
}

/* A page that computes can show a lesson with other settings, and the playground. */
static void show_lesson(const char *lesson) {
    for (size_t i = 0; i < sizeof lesson_ops / sizeof *lesson_ops; i++) {
        const OpSources *op = find_op(lesson_ops[i]);
        if (!op) continue;
        show(op->forward);
        show(op->backward);
    }
    program_shown[program_unbroadcast] = true;
    for (const ModelSource *m = program_models; m->lesson; m++)
        if (in_lesson(m, lesson)) program_shown[m->source] = true;
}

void program_write(FILE *file, int lesson, char part) {
    TapeLine line;
    int lines = 0;
    char key[16] = "";
    if (lesson > 0) snprintf(key, sizeof key, "%d%c", lesson, part);
    fprintf(file, ",\n\"program\":[");
    for (int i = 0; tape_line(i, &line); i++) {
        if (line.n_in == 0) continue; /* no op: a tensor that the tape owns */
        fprintf(file, "%s\n", lines++ ? "," : "");
        write_line(file, i, line.op, is_summed(&line), model_of(key, i));
    }
    putc(']', file);
    if (*key) show_lesson(key);
}

static bool same_list(const Json *a, const Json *b) {
    const Json *x = a ? a->first : NULL;
    const Json *y = b ? b->first : NULL;
    for (; x && y && x->number == y->number; x = x->next) y = y->next;
    return !x && !y;
}

static bool is_summed_read(const Json *line, const Json *tensors) {
    const char *name = json_text(line, "op", "");
    const OpSources *op = find_op(name);
    const Json *in = json_get(line, "in");
    const Json *out = json_at(tensors, json_integer(line, "out", -1));
    if (strcmp(name, "linear") == 0) return json_at(in, 2) && json_at(in, 2)->number >= 0;
    for (const Json *k = op && op->is_row && in ? in->first : NULL; k; k = k->next)
        if (!same_list(json_get(json_at(tensors, (int64_t)k->number), "shape"),
                       json_get(out, "shape")))
            return true;
    return false;
}

void program_write_read(FILE *file, const Json *tape) {
    const char *before = "";
    const Json *tensors = json_get(tape, "tensors");
    fprintf(file, ",\n\"program\":[");
    for (const Json *line = json_first(tape, "lines"); line; line = line->next) {
        fprintf(file, "%s\n", before);
        before = ",";
        write_line(file, (int)json_integer(line, "line", -1), json_text(line, "op", ""),
                   is_summed_read(line, tensors), -1);
    }
    putc(']', file);
}

/* ---- the sources ----------------------------------------------------------------------------- */

static void write_source(FILE *file, const Source *source) {
    fprintf(file, "{\"file\":\"%s\",\"line\":%d,\"title\":\"%s\",\"text\":", source->file,
            source->line, source->title);
    json_write_lines(file, source->text);
    putc('}', file);
}

void program_write_sources(FILE *file) {
    program_shown[program_accumulate] = true;
    fprintf(file, ",\n\"addition\":%d,\n\"sources\":[", program_accumulate);
    for (int i = 0; i < program_num_sources; i++) {
        if (i) putc(',', file);
        if (program_shown[i]) putc('\n', file);
        if (program_shown[i]) write_source(file, &program_sources[i]);
        else fputs("null", file);
    }
    putc(']', file);
}
