/* lesson.c - what all lessons share: options, their tensors, the text and the questions as JSON.
 * See lesson.h. */
#include "lesson.h"

#include "json.h"
#include "recording.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const LessonKind *const kinds[LESSONS] = {&lesson_1, &lesson_2, &lesson_3,
                                                 &lesson_4, &lesson_5, &lesson_6};

double lesson_scale(const Lesson *l) {
    return l->options.no_scale ? 1 : 1 / sqrt((double)l->options.size);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* x in the type of the lesson; takes over the reference. Numbers are drawn in float64, so that a
 * lesson shows the same numbers in both types. */
static Tensor *typed(const Lesson *l, Tensor *x) {
    if (!l->options.float32 || x->dtype != F64) return x;
    Tensor *y = tensor_to(x, F32);
    tensor_release(x);
    return y;
}

/* The index of element i, row-major. */
static Shape place(Shape shape, int64_t i) {
    Shape index = {.ndim = shape.ndim};
    for (int d = shape.ndim - 1; d >= 0; d--) {
        index.dim[d] = i % shape.dim[d];
        i /= shape.dim[d];
    }
    return index;
}

/* Makes the edits of a leaf. */
static void edit(const Lesson *l, Tensor *x) {
    for (int i = 0; i < l->options.num_edits && !tensor_error(); i++) {
        const LessonEdit *e = &l->options.edits[i];
        if (strcmp(e->name, x->name) != 0) continue;
        if (e->index < 0 || e->index >= tensor_numel(x))
            tensor_fail("lesson %d: %s is %s: it has no element %" PRId64, l->number, e->name,
                        tensor_shape_text(x->shape), e->index);
        else tensor_set_at(x, e->value, place(x->shape, e->index));
    }
}

Tensor *lesson_own(Lesson *l, const char *name, Tensor *x) {
    if (!x) return NULL;
    if (l->num_made < l->num_owned) {
        tensor_release(x);
        return l->owned[l->num_made++];
    }
    if (l->num_owned == LESSON_TENSORS) {
        tensor_release(x);
        return tensor_fail("lesson %d: raise LESSON_TENSORS", l->number);
    }
    x = typed(l, x);
    if (!x) return NULL;
    l->owned[l->num_owned++] = x;
    l->num_made = l->num_owned;
    ag_name(x, name);
    edit(l, x);
    return x;
}

void lesson_own_model(Lesson *l, void *model) {
    l->model = model;
    for (ModuleSlot *p = NULL; model && !tensor_error() && nn_next_parameter(model, "", &p);) {
        char name[sizeof((*p->slot)->name)];
        memcpy(name, (*p->slot)->name, sizeof name);
        *p->slot = typed(l, *p->slot);
        if (!*p->slot) return;
        ag_requires_grad(ag_name(*p->slot, name));
        edit(l, *p->slot);
    }
}

static bool is_leaf(const Lesson *l, const char *name) {
    for (int i = 0; i < l->num_owned; i++)
        if (strcmp(l->owned[i]->name, name) == 0) return true;
    for (ModuleSlot *p = NULL; l->model && nn_next_parameter(l->model, "", &p);)
        if (strcmp((*p->slot)->name, name) == 0) return true;
    return false;
}

/* Does each edit name a leaf? */
static bool check_edits(const Lesson *l) {
    for (int i = 0; i < l->options.num_edits && !tensor_error(); i++)
        if (!is_leaf(l, l->options.edits[i].name))
            tensor_fail("lesson %d has no leaf with the name %s", l->number,
                        l->options.edits[i].name);
    return !tensor_error();
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
    if (!x || i >= tensor_numel(x)) return (double)NAN;
    return tensor_get_at(x, place(x->shape, i));
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
 * the result. -1 if the tensor is on no line. */
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

/* Runs the lesson forward and backward on the open tape, with the wrong rule if there is one;
 * returns the loss. The seed is set each time, so dropout drops the same weights in every step of
 * training.
 */
static Tensor *run(Lesson *l) {
    tensor_manual_seed(l->options.seed);
    l->num_made = 0;
    Tensor *loss = ag_name(l->kind->build(l), "loss");
    if (l->rule && wrong_apply(l->rule) == 0) l->rule = NULL;
    ag_backward(loss);
    return loss;
}

/* x -= rate dx for each leaf x of the open tape. */
static void step_of_sgd(double rate) {
    TapeLine line;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in; k++) {
            Tensor *x = line.in[k];
            if (!x || x->grad_fn || !x->grad) continue;
            tensor_add_(x, x->grad, -rate);
            ag_zero_grad(x); /* so another line that reads x does not change x again */
        }
}

/* Takes so many steps. losses: gets the loss of each step, or is NULL. */
static void train(Lesson *l, int64_t steps, double *losses) {
    for (int64_t i = 0; i < steps && !tensor_error(); i++) {
        tape_begin();
        const Tensor *loss = run(l);
        if (losses && !tensor_error()) losses[i] = tensor_item(loss);
        step_of_sgd(l->kind->rate);
        tape_end();
    }
}

/* The next run draws all leaves anew. */
static void let_go(Lesson *l) {
    while (l->num_owned > 0) tensor_release(l->owned[--l->num_owned]);
    nn_free(l->model);
    l->model = NULL;
}

/* Both trainings begin with the same numbers. */
static void train_for_losses(Lesson *l) {
    const WrongRule *const rule = l->rule;
    l->rule = NULL;
    train(l, LESSON_STEPS, l->right);
    let_go(l);
    l->rule = rule;
    if (rule) train(l, LESSON_STEPS, l->wrong);
    let_go(l);
}

const double *lesson_losses(const Lesson *l) { return l->rule ? l->wrong : l->right; }

bool lesson_open(Lesson *l, int number, LessonOptions options) {
    const LessonKind *kind = kinds[number - 1];
    *l = (Lesson){.number = number, .kind = kind, .given = options};
    l->options = lesson_or_own(options, kind->own);
    tensor_set_default_dtype(F64);
    if (options.rule && *options.rule) {
        l->rule = wrong_find(options.rule);
        if (!l->rule) return tensor_fail("there is no rule \"%s\"", options.rule);
    }
    if (options.train || kind->shows_losses) train_for_losses(l);
    train(l, l->options.step, NULL);
    tape_begin();
    tape_keep_grads(true);
    run(l);
    if (!check_edits(l)) return false;
    l->given.rule = l->rule ? wrong_key(l->rule) : NULL; /* for the command */
    return true;
}

void lesson_close(Lesson *l) {
    tape_end();
    let_go(l);
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

/* Writes ,"key":[losses] */
static void write_losses(FILE *file, const char *key, const double *losses) {
    fprintf(file, ",\n\"%s\":[", key);
    for (int i = 0; i < LESSON_STEPS; i++) {
        const char *comma = i ? "," : "";
        if (isfinite(losses[i])) fprintf(file, "%s%.6g", comma, losses[i]);
        else fprintf(file, "%s\"NaN\"", comma);
    }
    putc(']', file);
}

static void write_training(const Lesson *l, FILE *file) {
    fprintf(file, ",\n\"training\":{\"rate\":%g", l->kind->rate);
    write_losses(file, "right", l->right);
    if (l->rule) write_losses(file, "wrong", l->wrong);
    putc('}', file);
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
    if (l->kind->shows_losses) write_losses(file, "losses", lesson_losses(l));
    if (l->options.train) write_training(l, file);
    settings_write_command(file, l->number, &l->given);
    settings_write(file, l->number, &l->options);
    wrong_write(file);
    json_write_member(file, "rule", l->rule ? wrong_key(l->rule) : "");
    fprintf(file, ",\n\"tape\":");
    if (!tape_write_json(file)) return false;
    putc('}', file);
    if (ferror(file)) tensor_fail("the lesson could not be written");
    return !tensor_error();
}

static void write_lesson(FILE *file, int number, LessonOptions options, bool alone) {
    Lesson lesson;
    const bool opened = lesson_open(&lesson, number, options);
    if (opened && options.rule && !lesson.rule && alone)
        tensor_fail("lesson %d has no line that the wrong rule %s changes", number, options.rule);
    if (opened) lesson_write_json(&lesson, file);
    lesson_close(&lesson);
}

char *lessons_as_json(int first, int last, LessonOptions options) {
    char *json;
    FILE *file = data_open(&json);
    if (file) fprintf(file, "{\"lessons\":[");
    for (int number = first; number <= last && !tensor_error(); number++) {
        if (number > first) fprintf(file, ",\n");
        write_lesson(file, number, options, first == last);
    }
    if (file) fprintf(file, "]}\n");
    data_close(file, json);
    if (!tensor_error()) return json;
    free(json);
    return NULL;
}
