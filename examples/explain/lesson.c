/* lesson.c - what all lessons share: options, their tensors, the text and the questions as JSON.
 * See lesson.h. */
#include "lesson.h"

#include "json.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const LessonKind *const kinds[LESSONS] = {&lesson_1, &lesson_2, &lesson_3,
                                                 &lesson_4, &lesson_5, &lesson_6};

/* ---- options --------------------------------------------------------------------------------- */

enum { FLAGS = 11 };

typedef struct {
    const char *name;
    unsigned lessons; /* bit 1 << number for each lesson that takes the flag */
    bool given;
    char value[32]; /* " 3", or "" for a switch */
} LessonFlag;

static unsigned bits(const char *numbers) {
    unsigned set = 0;
    for (; *numbers; numbers++) set |= 1u << (*numbers - '0');
    return set;
}

static LessonFlag integer_flag(const char *name, const char *lessons, int64_t value) {
    LessonFlag flag = {name, bits(lessons), value != 0, ""};
    snprintf(flag.value, sizeof flag.value, " %" PRId64, value);
    return flag;
}

static LessonFlag switch_flag(const char *name, const char *lessons, bool given) {
    return (LessonFlag){name, bits(lessons), given, ""};
}

static void list_flags(const LessonOptions *o, LessonFlag list[FLAGS]) {
    LessonFlag dropout = switch_flag("--dropout", "45", o->dropout >= 0);
    LessonFlag seed = switch_flag("--seed", "123456", o->seed != LESSON_SEED);
    snprintf(dropout.value, sizeof dropout.value, " %g", o->dropout);
    snprintf(seed.value, sizeof seed.value, " %" PRIu64, o->seed);
    const LessonFlag all[FLAGS] = {integer_flag("--heads", "5", o->heads),
                                   integer_flag("--queries", "123", o->queries),
                                   integer_flag("--keys", "123", o->keys),
                                   integer_flag("--tokens", "456", o->tokens),
                                   integer_flag("--size", "2345", o->size),
                                   dropout,
                                   seed,
                                   switch_flag("--causal", "345", o->causal),
                                   switch_flag("--no-scale", "2345", o->no_scale),
                                   switch_flag("--no-mask", "3", o->no_mask),
                                   switch_flag("--additive", "6", o->additive)};
    memcpy(list, all, sizeof all);
}

const char *lesson_refuses(int number, const LessonOptions *options) {
    LessonFlag list[FLAGS];
    list_flags(options, list);
    for (int i = 0; i < FLAGS && number > 0; i++)
        if (list[i].given && !(list[i].lessons >> number & 1)) return list[i].name;
    return NULL;
}

static LessonOptions or_own(LessonOptions o, LessonOptions own) {
    if (o.heads == 0) o.heads = own.heads;
    if (o.queries == 0) o.queries = own.queries;
    if (o.keys == 0) o.keys = own.keys;
    if (o.tokens == 0) o.tokens = own.tokens;
    if (o.size == 0) o.size = own.size;
    if (o.dropout < 0) o.dropout = own.dropout;
    if (o.seed == LESSON_SEED) o.seed = own.seed;
    return o;
}

double lesson_scale(const Lesson *l) {
    return l->options.no_scale ? 1 : 1 / sqrt((double)l->options.size);
}

/* ---- tensors --------------------------------------------------------------------------------- */

Tensor *lesson_own(Lesson *l, const char *name, Tensor *x) {
    if (!x) return NULL;
    if (l->num_owned == LESSON_TENSORS) {
        tensor_release(x);
        return tensor_fail("lesson %d: raise LESSON_TENSORS", l->number);
    }
    l->owned[l->num_owned++] = x;
    return ag_name(x, name);
}

Tensor *lesson_leaf(Lesson *l, const char *name, Tensor *x) {
    return ag_requires_grad(lesson_own(l, name, x));
}

Tensor *lesson_data(Lesson *l, const char *name, double std, Shape shape) {
    double numbers[4096];
    Tensor *x = tensor_normal(0, std, shape);
    const int64_t n = x ? tensor_numel(x) : 0;
    if (n > 4096)
        tensor_fail("lesson %d: %s is %s: choose smaller sizes", l->number, name,
                    tensor_shape_text(shape));
    if (tensor_error()) {
        tensor_release(x);
        return NULL;
    }
    tensor_to_doubles(x, numbers);
    tensor_release(x);
    for (int64_t i = 0; i < n; i++) {
        const double tenths = round(numbers[i] * 10);
        numbers[i] = (tenths == 0 ? 1 : tenths) / 10;
    }
    return lesson_own(l, name, tensor_from_doubles(shape, numbers));
}

Tensor *lesson_draw(Lesson *l, const char *name, double std, Shape shape) {
    return ag_requires_grad(lesson_data(l, name, std, shape));
}

Tensor *lesson_loss(Tensor *y, Tensor *t) {
    Tensor *difference = ag_name(ag_sub(y, t), "E");
    Tensor *squares = ag_name(ag_square(difference), "E^2");
    return ag_name(ag_sum(squares), "loss");
}

Tensor *lesson_tensor(const char *name) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        if (strcmp(line.out->name, name) == 0) return line.out;
        for (int k = 0; k < line.n_in; k++)
            if (line.in[k] && strcmp(line.in[k]->name, name) == 0) return line.in[k];
    }
    return NULL;
}

/* Element i of x, row-major. */
static double element(const Tensor *x, int64_t i) {
    Shape index = {0};
    if (!x || i >= tensor_numel(x)) return (double)NAN;
    index.ndim = x->shape.ndim;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        index.dim[d] = i % x->shape.dim[d];
        i /= x->shape.dim[d];
    }
    return tensor_get_at(x, index);
}

double lesson_value(const char *name, int64_t i) { return element(lesson_tensor(name), i); }

double lesson_grad(const char *name, int64_t i) {
    const Tensor *x = lesson_tensor(name);
    return element(x ? x->grad : NULL, i);
}

/* ---- text and questions ---------------------------------------------------------------------- */

static void write_formatted(Lesson *l, const char *format, va_list arguments) {
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    json_write_string(l->json, text);
}

/* Writes the comma before an item, unless it is the first one. */
static void begin_item(Lesson *l) { fprintf(l->json, "%s\n", l->items++ ? "," : ""); }

void say(Lesson *l, const char *format, ...) {
    va_list arguments;
    begin_item(l);
    va_start(arguments, format);
    write_formatted(l, format, arguments);
    va_end(arguments);
}

/* The number that tape_write_json gives a tensor: it lists each once, line by line, inputs before
 * the result. -1 if it is on no line. */
static int number_of(const Tensor *x) {
    const Tensor *seen[4 * LESSON_TENSORS];
    int n = 0;
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        for (int k = 0; line.n_in > 0 && k <= line.n_in; k++) {
            const Tensor *next = k < line.n_in ? line.in[k] : line.out;
            int t = 0;
            while (t < n && seen[t] != next) t++;
            if (next && next == x) return t;
            if (next && t == n && n < 4 * LESSON_TENSORS) seen[n++] = next;
        }
    }
    return -1;
}

/* Finds the line that made this result, and which of the line's inputs has the name `input`; false
 * if there is none. */
static bool find_input(const char *result, const char *input, int *number, int *k) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++) {
        if (strcmp(line.out->name, result) != 0) continue;
        *number = i;
        for (*k = 0; *k < line.n_in; ++*k)
            if (line.in[*k] && strcmp(line.in[*k]->name, input) == 0) return true;
    }
    return false;
}

static bool any_zero_gradient(const Tensor *x) {
    for (int64_t i = 0; x && x->grad && i < tensor_numel(x); i++)
        if (element(x->grad, i) == 0) return true;
    return false;
}

static void begin_question(Lesson *l, const char *kind, const char *format, va_list arguments) {
    begin_item(l);
    fprintf(l->json, "{\"kind\":\"%s\",\"ask\":", kind);
    write_formatted(l, format, arguments);
}

void ask_number(Lesson *l, const char *tensor, const char *part, int64_t index, const char *format,
                ...) {
    const Tensor *x = lesson_tensor(tensor);
    const bool is_grad = strcmp(part, "grad") == 0;
    va_list arguments;
    if (!x || index >= tensor_numel(x) || (is_grad && !x->grad)) return;
    va_start(arguments, format);
    begin_question(l, "number", format, arguments);
    va_end(arguments);
    fprintf(l->json, ",\"tensor\":%d,\"part\":\"%s\",\"index\":%" PRId64 "}", number_of(x), part,
            index);
}

void ask_zeros(Lesson *l, const char *tensor, const char *format, ...) {
    const Tensor *x = lesson_tensor(tensor);
    va_list arguments;
    if (!any_zero_gradient(x)) return;
    va_start(arguments, format);
    begin_question(l, "zeros", format, arguments);
    va_end(arguments);
    fprintf(l->json, ",\"tensor\":%d}", number_of(x));
}

void ask_count(Lesson *l, const char *result, const char *input, int64_t index, const char *format,
               ...) {
    int line, k;
    va_list arguments;
    if (!find_input(result, input, &line, &k)) return;
    va_start(arguments, format);
    begin_question(l, "count", format, arguments);
    va_end(arguments);
    fprintf(l->json, ",\"line\":%d,\"input\":%d,\"index\":%" PRId64 "}", line, k, index);
}

void ask_choice(Lesson *l, const char *const *options, int answer, const char *why,
                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    begin_question(l, "choice", format, arguments);
    va_end(arguments);
    fprintf(l->json, ",\"options\":");
    json_write_strings(l->json, options, INT_MAX);
    fprintf(l->json, ",\"answer\":%d,\"why\":", answer);
    json_write_string(l->json, why);
    putc('}', l->json);
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool lesson_open(Lesson *l, int number, LessonOptions options) {
    const LessonKind *kind = kinds[number - 1];
    *l = (Lesson){.number = number, .kind = kind, .given = options};
    l->options = or_own(options, kind->own);
    tensor_set_default_dtype(F64);
    tensor_manual_seed(l->options.seed);
    if (kind->prepare) kind->prepare(l);
    tape_begin();
    tape_keep_grads(true);
    Tensor *loss = ag_name(kind->build(l), "loss");
    return ag_backward(loss);
}

void lesson_close(Lesson *l) {
    tape_end();
    for (int i = 0; i < l->num_owned; i++) tensor_release(l->owned[i]);
    nn_free(l->model);
    l->num_owned = 0;
    l->model = NULL;
}

/* The command that makes this lesson. */
static void write_command(const Lesson *l, FILE *file) {
    char command[256];
    LessonFlag list[FLAGS];
    int n = snprintf(command, sizeof command, "build/explain --lesson %d", l->number);
    list_flags(&l->given, list);
    for (int i = 0; i < FLAGS; i++)
        if (list[i].given && list[i].lessons >> l->number & 1)
            n += snprintf(command + n, sizeof command - (size_t)n, " %s%s", list[i].name,
                          list[i].value);
    json_write_member(file, "command", command);
}

/* A line of the formula: with --no-scale it has no scale. */
static void write_formula_line(const Lesson *l, const char *line, FILE *file) {
    static const char scale[] = " / sqrt(d)";
    char text[128];
    const char *at = l->options.no_scale ? strstr(line, scale) : NULL;
    snprintf(text, sizeof text, "%.*s%s", at ? (int)(at - line) : 0, line,
             at ? at + strlen(scale) : line);
    json_write_string(file, text);
}

static void write_formula(const Lesson *l, FILE *file) {
    const char *const *formula = l->options.additive ? l->kind->additive : l->kind->formula;
    fprintf(file, ",\n\"formula\":[");
    for (int i = 0; i < 6 && formula[i]; i++) {
        if (i) putc(',', file);
        write_formula_line(l, formula[i], file);
    }
    putc(']', file);
}

static void write_losses(const Lesson *l, FILE *file) {
    if (l->num_losses == 0) return;
    fprintf(file, ",\n\"losses\":[");
    for (int i = 0; i < l->num_losses; i++) {
        const char *comma = i ? "," : "";
        if (isfinite(l->losses[i])) fprintf(file, "%s%.6g", comma, l->losses[i]);
        else fprintf(file, "%s\"NaN\"", comma);
    }
    putc(']', file);
}

bool lesson_write_json(Lesson *l, FILE *file) {
    if (tensor_error()) return false;
    l->json = file;
    fprintf(file, "{\"number\":%d", l->number);
    json_write_member(file, "title", l->kind->title);
    json_write_member(file, "idea", l->kind->idea);
    fprintf(file, ",\n\"text\":[");
    l->items = 0;
    l->kind->tell(l);
    putc(']', file);
    write_formula(l, file);
    json_write_member(file, "source", l->kind->source);
    json_write_member(file, "columns", l->kind->columns);
    fprintf(file, ",\n\"questions\":[");
    l->items = 0;
    l->kind->ask(l);
    putc(']', file);
    write_losses(l, file);
    write_command(l, file);
    fprintf(file, ",\n\"tape\":");
    if (!tape_write_json(file)) return false;
    putc('}', file);
    if (ferror(file)) tensor_fail("the lesson could not be written");
    return !tensor_error();
}
