/* program.c - the C beside a step: see program.h. */
#include "program.h"

#include <string.h>

/* The ops of the lessons and of the playground, whatever their settings are. */
static const char lesson_ops[] =
    " add sub mul square tanh relu scale sum matmul bmm linear reshape squeeze unsqueeze softmax "
    "masked_fill dropout masked_softmax cross_entropy additive_scores transpose ";

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

static const char *op_of(const RuledLine *line) { return json_text(line->json, "op", ""); }

static bool names(const ModelSource *m, const RuledTape *tape, const RuledLine *line) {
    return fits_name(m->name, tape->tensors[line->out].name) && fits_op(m->call, op_of(line));
}

static bool is_on_tape(const ModelSource *m, const RuledTape *tape) {
    for (int l = 0; l < tape->num_lines; l++)
        if (names(m, tape, &tape->lines[l])) return true;
    return *m->name == '\0';
}

/* Did this statement run? Then the tape has every result that it names, and most results of its
 * function: another branch, or a function that was not called, can use the same names. */
static bool did_run(const ModelSource *m, const RuledTape *tape) {
    int of_function = 0, there = 0;
    for (const ModelSource *other = program_models; other->lesson; other++) {
        const bool is_there = other->function == m->function && is_on_tape(other, tape);
        if (other->source == m->source && !is_there) return false;
        of_function += other->function == m->function;
        there += is_there;
    }
    return 2 * there >= of_function;
}

/* The piece with the statement that made the result, or, if there is none, with one that calls a
 * module; -1 if there is none either. */
static int statement_of(const char *lesson, const RuledTape *tape, const RuledLine *line) {
    int module = -1;
    for (const ModelSource *m = program_models; m->lesson; m++) {
        const bool is_module = *m->name == '\0';
        if (!in_lesson(m, lesson) || (is_module && module >= 0)) continue;
        if ((!is_module && !names(m, tape, line)) || !did_run(m, tape)) continue;
        if (!is_module) return m->source;
        module = m->source;
    }
    return module;
}

/* An op inside of a module, or one whose result has no name: then the statement is that of the
 * line that reads the result. */
static int model_of(const char *lesson, const RuledTape *tape, int l) {
    const int out = tape->lines[l].out;
    int model = *lesson ? statement_of(lesson, tape, &tape->lines[l]) : -1;
    for (int reader = l + 1; *lesson && model < 0 && reader < tape->num_lines; reader++)
        for (int k = 0; k < tape->lines[reader].num_in; k++)
            if (tape->lines[reader].in[k] == out) return model_of(lesson, tape, reader);
    return model;
}

/* ---- a tape ---------------------------------------------------------------------------------- */

static bool same_shape(const TapeTensor *a, const TapeTensor *b) {
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

static bool is_summed(const RuledTape *tape, const RuledLine *line) {
    const OpSources *op = find_op(op_of(line));
    if (strcmp(op_of(line), "linear") == 0) return line->num_in > 2 && line->in[2] >= 0; /* bias */
    for (int k = 0; op && op->is_row && k < line->num_in; k++)
        if (line->in[k] >= 0 && !same_shape(&tape->tensors[line->in[k]], &tape->tensors[line->out]))
            return true;
    return false;
}

/* A page that computes can show a lesson with other settings, and the playground. */
static void show_lesson(const char *lesson) {
    char word[64];
    for (const OpSources *op = program_ops; op->op; op++) {
        snprintf(word, sizeof word, " %s ", op->op);
        if (!strstr(lesson_ops, word)) continue;
        show(op->forward);
        show(op->backward);
    }
    program_shown[program_unbroadcast] = true;
    for (const ModelSource *m = program_models; m->lesson; m++)
        if (in_lesson(m, lesson)) program_shown[m->source] = true;
}

void program_write(FILE *file, const RuledTape *tape, const char *lesson) {
    fprintf(file, ",\n\"program\":[");
    for (int l = 0; l < tape->num_lines; l++) {
        const RuledLine *line = &tape->lines[l];
        fprintf(file, "%s\n", l ? "," : "");
        write_line(file, line->number, op_of(line), is_summed(tape, line),
                   model_of(lesson, tape, l));
    }
    putc(']', file);
    if (*lesson) show_lesson(lesson);
}

/* ---- the sources ----------------------------------------------------------------------------- */

static void write_source(FILE *file, const SourceText *source) {
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
