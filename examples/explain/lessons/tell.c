/* tell.c - what a lesson says, as JSON: see tell.h. The sections: steps, numbers, texts, questions,
 * names. shown.c prints the numbers. */
#include "tell.h"

#include "../page/json.h"
#include "../page/recording.h"
#include "foreseen.h"
#include "sgd.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { TEXT = 1024 };

/* ---- steps ----------------------------------------------------------------------------------- */

/* The line that made this result; -1 if there is none. */
static int line_that_made(const char *made, TapeLine *line) {
    for (int i = 0; tape_line(i, line); i++)
        if (line->n_in > 0 && strcmp(line->out->name, made) == 0) return i;
    return -1;
}

Step step_forward(const char *made) {
    TapeLine line;
    const int i = line_that_made(made, &line);
    return i < 0 ? (Step){0} : (Step){'f', i, 0};
}

static Step step_start(void) { return (Step){.kind = 's'}; }
Step step_twice(void) { return (Step){.kind = 't'}; }
Step step_sgd(void) { return (Step){.kind = 'g'}; }

static bool gets_part(const TapeLine *line, int k) {
    return line->out->grad && line->in[k] && line->in[k]->requires_grad;
}

Step step_backward(const char *made, const char *input) {
    TapeLine line;
    const int i = line_that_made(made, &line);
    for (int k = 0; i >= 0 && k < line.n_in; k++)
        if (gets_part(&line, k) && strcmp(line.in[k]->name, input) == 0) return (Step){'b', i, k};
    return (Step){0};
}

Step step_addition(const char *made, const char *input) {
    const Step part = step_backward(made, input);
    TapeLine line;
    if (!part.kind) return part;
    for (int i = part.line + 1; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in; k++)
            if (gets_part(&line, k) && strcmp(line.in[k]->name, input) == 0)
                return (Step){'a', part.line, part.input};
    return (Step){0};
}

void step_name(Step at, char name[STEP_NAME]) {
    const bool has_input = at.kind == 'b' || at.kind == 'a';
    if (at.kind == 's') strcpy(name, "s");
    else if (at.kind == 't') strcpy(name, "twice");
    else if (at.kind == 'g') strcpy(name, "sgd");
    else if (!has_input) snprintf(name, STEP_NAME, "%c%d", at.kind, at.line);
    else snprintf(name, STEP_NAME, "%c%d.%d", at.kind, at.line, at.input);
}

static void write_name(const Lesson *l, Step at) {
    char name[STEP_NAME];
    step_name(at, name);
    fprintf(l->json, "\"%s\"", name);
}

/* Writes "at":"b3.0" after a comma. */
static void write_at(const Lesson *l, Step at) {
    fprintf(l->json, "\"at\":");
    write_name(l, at);
}

/* ---- numbers --------------------------------------------------------------------------------- */

int64_t size_of(const char *name) {
    const Tensor *x = tensor_on_tape(name);
    return x ? tensor_numel(x) : 0;
}

static int64_t dimension(const char *name, int from_the_end) {
    const Tensor *x = tensor_on_tape(name);
    const int d = x ? x->shape.ndim - from_the_end : -1;
    return d < 0 ? 1 : x->shape.dim[d];
}

int64_t rows_of(const char *name) { return dimension(name, 2); }
int64_t columns_of(const char *name) { return dimension(name, 1); }

Tensor *step_part(Step at) {
    TapeLine line;
    Tensor *dx[8] = {NULL};
    if (!at.kind || !tape_line(at.line, &line) || line.n_in > 8) return NULL;
    if (!tape_vjp(at.line, line.out->grad, dx)) return NULL;
    for (int k = 0; k < line.n_in; k++)
        if (k != at.input) tensor_release(dx[k]);
    return dx[at.input];
}

double lesson_part(const char *made, const char *input, int64_t i) {
    Tensor *dx = step_part(step_backward(made, input));
    const double number = lesson_element(dx, i);
    tensor_release(dx);
    return number;
}

/* Clearly larger: of equal numbers, which rounding makes different, the first is chosen. */
static bool is_larger(double a, double b) { return a > b + 1e-6 * fabs(b); }

static int64_t largest_of(const Tensor *x) {
    int64_t most = 0;
    for (int64_t i = 1; x && i < tensor_numel(x); i++)
        if (is_larger(fabs(lesson_element(x, i)), fabs(lesson_element(x, most)))) most = i;
    return most;
}

int64_t largest_value(const char *name) { return largest_of(tensor_on_tape(name)); }

int64_t largest_grad(const char *name) {
    const Tensor *x = tensor_on_tape(name);
    return largest_of(x ? x->grad : NULL);
}

int64_t largest_visible_grad(const char *name) {
    int64_t most = -1;
    for (int64_t i = 0; i < size_of(name); i++) {
        if (lesson_value(name, i) == 0) continue;
        if (most < 0 || is_larger(fabs(lesson_grad(name, i)), fabs(lesson_grad(name, most))))
            most = i;
    }
    return most < 0 ? 0 : most;
}

int64_t largest_in_row(const char *name, int64_t r) {
    const int64_t first = r * columns_of(name);
    int64_t most = first;
    for (int64_t i = first; i < first + columns_of(name); i++)
        if (is_larger(lesson_value(name, i), lesson_value(name, most))) most = i;
    return most;
}

const char *word_of(const Lesson *l, int64_t i) {
    if (i == l->pad && i >= 0) return "[pad]";
    const int64_t word = i - (l->pad >= 0 && i > l->pad);
    return word >= 0 && word < MOST_WORDS ? l->words.word[word] : "";
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void write_formatted(const Lesson *l, const char *format, va_list arguments) {
    char text[TEXT];
    vsnprintf(text, sizeof text, format, arguments);
    json_write_string(l->json, text);
}

/* Writes the comma before an item, unless it is the first one. */
static void begin_item(Lesson *l) { fprintf(l->json, "%s\n", l->items++ ? "," : ""); }

/* The hook; its %s is the word of the row. */
static void write_hook(const Lesson *l, int64_t row) {
    const char *hook = l->kind->hook;
    const char *at = strstr(hook, "%s");
    json_write_string(
        l->json, at ? text_of("%.*s%s%s", (int)(at - hook), hook, word_of(l, row), at + 2) : hook);
}

void cover(Lesson *l, const char *tensor, int64_t row, const char *lead) {
    fprintf(l->json, ",\n\"cover\":{\"title\":");
    write_hook(l, row);
    json_write_member(l->json, "lead", lead);
    fprintf(l->json, ",\"tensor\":%d,\"row\":%" PRId64 ",\"losses\":%s}",
            tensor ? data_number(tensor_on_tape(tensor)) : -1, row,
            !tensor && l->kind->shows_losses ? "true" : "false");
}

void cover_points(Lesson *l) {
    static const char *const names[] = {"queries", "keys", "values", "Y", "T"};
    fprintf(l->json, ",\n\"points\":{");
    for (int i = 0; i < 5; i++)
        fprintf(l->json, "%s\"%s\":%d", i ? "," : "", names[i],
                data_number(tensor_on_tape(names[i])));
    putc('}', l->json);
}

void pull(Lesson *l, const char *scores, int64_t cell) {
    enum { MOST_ARCS = 6 };
    const int64_t n = columns_of(scores);
    if (n < 2 || n > MOST_ARCS) return;
    fprintf(l->json, ",\n\"pull\":{\"tensor\":%d,\"cell\":%" PRId64 ",\"answer\":%d,\"wanted\":%d,",
            data_number(tensor_on_tape(scores)), cell, data_number(tensor_on_tape("Y")),
            data_number(tensor_on_tape("T")));
    write_at(l, step_backward("A", scores));
    putc('}', l->json);
}

void bet(Lesson *l, Step at, const char *const *options, int answer, const char *ask) {
    if (!at.kind) return;
    fprintf(l->json, ",\n\"bet\":{");
    write_at(l, at);
    json_write_member(l->json, "ask", ask);
    fprintf(l->json, ",\"options\":");
    json_write_strings(l->json, options, INT_MAX);
    fprintf(l->json, ",\"answer\":%d}", answer);
}

/* Of a step whose gradients are not added, on purpose. */
static const char *wrong_text(const Lesson *l) {
    return text_of("Here backward is wrong on purpose: = in place of +=. It computes %s",
                   l->rule->computes);
}

/* What a mark of a text stands for: see tell.h. x: what the step makes, or gives a gradient. */
static const char *shown_for(const Lesson *l, Step at, const Tensor *x, int64_t look,
                             const char *mark) {
    TapeLine line = {.op = ""};
    tape_line(at.line, &line);
    const bool forward = at.kind == 'f';
    const char *name = x->name;
    const char *made = line.out->name;
    const int64_t rows = rows_of(name), columns = columns_of(name), panel = look / columns / rows;
    if (strncmp(mark, "row}", 4) == 0) return word_of(l, look / columns % rows);
    if (strncmp(mark, "column}", 7) == 0) return word_of(l, look % columns);
    if (strncmp(mark, "head}", 5) == 0) return show((double)panel + 1);
    if (strncmp(mark, "part}", 5) == 0) return show_part(made, name, look);
    if (strncmp(mark, "slope}", 6) == 0) return show_slope(made, name, look);
    if (*mark == '}') return forward ? show_value(name, look) : show_grad(name, look);
    const char *read = line.in[0]->name; /* becomes */
    const Number from = forward ? value_of(read, look) : grad_of(made, look);
    const Number to = forward ? value_of(name, look) : grad_of(name, look);
    if (strcmp(line.op, "square") == 0) return show_square(from, to);
    return show_scaled(line.number, from, to);
}

/* The format in which the marks are what they stand for. */
static void put_marks(const Lesson *l, Step at, const Tensor *x, int64_t look, const char *text,
                      char format[TEXT]) {
    char *to = format;
    for (; *text && to < format + TEXT - 2; text++) {
        const bool is_mark = *text == '{';
        const char *shown = is_mark ? shown_for(l, at, x, look, text + 1) : text;
        for (; is_mark && *shown && to < format + TEXT - 2; shown++) {
            if (*shown == '%') *to++ = '%';
            *to++ = *shown;
        }
        if (is_mark) text = strchr(text, '}');
        else *to++ = *text;
    }
    *to = '\0';
}

void say(Lesson *l, Step at, int64_t look, const char *text, ...) {
    char format[TEXT];
    va_list arguments;
    TapeLine line;
    if (!at.kind) return;
    if (strchr("fba", at.kind) && tape_line(at.line, &line)) {
        const Tensor *x = at.kind == 'f' ? line.out : line.in[at.input];
        if (look == LARGEST) look = largest_of(at.kind == 'f' ? x : x->grad);
        put_marks(l, at, x, look, text, format);
        text = format;
    }
    begin_item(l);
    putc('{', l->json);
    write_at(l, at);
    fprintf(l->json, ",\"look\":%" PRId64 ",\"text\":", look);
    va_start(arguments, text);
    if (at.kind == 'a' && wrong_assigns(&l->planting, at.line))
        json_write_string(l->json, wrong_text(l));
    else write_formatted(l, text, arguments);
    va_end(arguments);
    putc('}', l->json);
}

void say_loss(Lesson *l, const char *target) {
    const int64_t most = largest_value("E");
    say(l, step_forward("E"), LARGEST,
        "`T` is %s, and `E` is how far the output is off. The largest error is {}.", target);
    say(l, step_forward("E^2"), most,
        "Squared, so that too much and too little both count, and a large error counts most: "
        "{becomes}.");
    say(l, step_forward("loss"), 0, "The sum of all squares is the loss: {}.");
}

void say_loss_backward(Lesson *l, const char *y) {
    const int64_t most = largest_grad("E");
    const char *example = tensor_on_tape("Y") ? "Y" : "V";
    say(l, step_start(), 0,
        "The loss changes exactly as fast as itself: 1. Backward begins here; `d%s` stands for "
        "the gradient of the loss by `%s`, how fast the loss changes with each of its numbers.",
        example, example);
    say(l, step_backward("loss", "E^2"), most, "A sum gives each of its terms the same: 1.");
    say(l, step_backward("loss", "counted"), most, "A sum gives each of its terms the same: 1.");
    say(l, step_backward("counted", "E^2"), most,
        "Where a row counts, its gradient passes, {part}; the row of [pad] gets 0.");
    say(l, step_backward("E^2", "E"), LARGEST,
        "The derivative of a square is twice what was squared: %s.",
        show_product(number(2), value_of("E", most), grad_of("E", most)));
    say(l, step_backward("E", y), most,
        "`E` is `%s` minus `T`, so the gradient passes unchanged: %s stays {part}. `T` is data "
        "and gets none.",
        y, show_grad("E", most));
}

void say_first_backward(Lesson *l) {
    const int64_t most = largest_grad("E");
    say(l, step_start(), 0,
        "A gradient says how fast the loss changes when a number changes; `dY` stands for the "
        "gradient of the loss by `Y`. The loss changes exactly as fast as itself: 1. With this 1 "
        "everything begins.");
    say(l, step_backward("loss", "E^2"), most,
        "The loss is a plain sum. If one of the squares grows by a little, the loss grows by as "
        "much, so each of them gets 1.");
    say(l, step_backward("E^2", "E"), LARGEST,
        "The derivative of a square is twice what was squared. Times the 1 that arrives this is "
        "%s: the largest error gets the largest gradient.",
        show_product(number(2), value_of("E", most), grad_of("E", most)));
    say(l, step_backward("E", "Y"), most,
        "`E` is `Y` minus `T`. If `Y` grows, `E` grows by as much, so the gradient passes "
        "unchanged: {}. Nothing goes to `T`: it is the goal, and the goal stays.");
}

void say_scale_backward(Lesson *l) {
    say(l, step_backward("S / sqrt(d)", "S"), LARGEST,
        "Divided by sqrt(d) on the way, divided by it on the way back: {becomes}.");
}

const char *show_kept(const Lesson *l) {
    const int64_t i = largest_value("dropout(A)");
    const Number before = value_of("A", i), after = value_of("dropout(A)", i);
    const double factor = 1 / (1 - l->options.dropout);
    return after.number == 0 ? "" : text_of(": %s", show_scaled(factor, before, after));
}

const char *show_kept_grad(const Lesson *l) {
    const int64_t i = largest_grad("A");
    const Number before = grad_of("dropout(A)", i), after = grad_of("A", i);
    const double factor = 1 / (1 - l->options.dropout);
    return after.number == 0 ? "" : text_of(": %s", show_scaled(factor, before, after));
}

/* ---- questions ------------------------------------------------------------------------------- */

int64_t other_than(int64_t look) { return look == 0; }
const char *place_of(int64_t i) { return i == 0 ? "first" : "second"; }

static void begin_question(Lesson *l, Step at, const char *kind, const char *hint,
                           const char *ask) {
    begin_item(l);
    fprintf(l->json, "{\"kind\":\"%s\",", kind);
    write_at(l, at);
    json_write_member(l->json, "ask", ask);
    json_write_member(l->json, "hint", hint);
}

void ask_number(Lesson *l, Step at, const char *tensor, const char *part, int64_t index,
                const char *hint, const char *ask) {
    const Tensor *x = tensor_on_tape(tensor);
    const bool is_grad = strcmp(part, "grad") == 0;
    if (!at.kind || !x || index >= tensor_numel(x) || (is_grad && !x->grad)) return;
    begin_question(l, at, "number", hint, ask);
    fprintf(l->json, ",\"tensor\":%d,\"part\":\"%s\",\"index\":%" PRId64, data_number(x), part,
            index);
    foreseen_write_number(l, at, x, is_grad, index);
    putc('}', l->json);
}

static bool any_zero_gradient(const Tensor *x) {
    for (int64_t i = 0; x && x->grad && i < tensor_numel(x); i++)
        if (lesson_element(x->grad, i) == 0) return true;
    return false;
}

void ask_zeros(Lesson *l, Step at, const char *tensor, const char *hint, const char *ask) {
    const Tensor *x = tensor_on_tape(tensor);
    if (!at.kind || !any_zero_gradient(x)) return;
    begin_question(l, at, "zeros", hint, ask);
    fprintf(l->json, ",\"tensor\":%d}", data_number(x));
}

void ask_count(Lesson *l, Step at, int64_t index, const char *hint, const char *ask) {
    if (at.kind != 'b') return;
    begin_question(l, at, "count", hint, ask);
    fprintf(l->json, ",\"line\":%d,\"input\":%d,\"index\":%" PRId64, at.line, at.input, index);
    foreseen_write_count(l, at, index);
    putc('}', l->json);
}

void ask_choice(Lesson *l, Step at, const char *const *options, int answer, const char *why,
                const char *hint, const char *ask) {
    if (!at.kind) return;
    begin_question(l, at, "choice", hint, ask);
    fprintf(l->json, ",\"options\":");
    json_write_strings(l->json, options, INT_MAX);
    fprintf(l->json, ",\"answer\":%d", answer);
    json_write_member(l->json, "why", why);
    putc('}', l->json);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_in(const char *const *names, const char *name) {
    for (; *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}

/* Writes the words of the first n tokens after `before`. */
static void write_words(const Lesson *l, const char *before, int64_t n) {
    fprintf(l->json, "%s[", before);
    for (int64_t i = 0; i < n; i++) {
        if (i) putc(',', l->json);
        json_write_string(l->json, word_of(l, i));
    }
    putc(']', l->json);
}

/* The reader's own words, without padding. */
static void write_own_words(Lesson *l, int64_t n) {
    const int64_t pad = l->pad;
    l->pad = -1;
    write_words(l, ",\n\"words\":", n - (pad >= 0));
    l->pad = pad;
}

static void write_label(Lesson *l, const char *name) {
    const bool rows = is_in(l->kind->word_rows, name), columns = is_in(l->kind->word_columns, name);
    if (!rows && !columns) return;
    begin_item(l);
    fprintf(l->json, "{\"tensor\":%d", data_number(tensor_on_tape(name)));
    if (rows) write_words(l, ",\"rows\":", rows_of(name));
    if (columns) write_words(l, ",\"columns\":", columns_of(name));
    putc('}', l->json);
}

/* Begins a list of items. */
static void begin_list(Lesson *l, const char *key) {
    fprintf(l->json, ",\n\"%s\":[", key);
    l->items = 0;
}

static void write_labels(Lesson *l) {
    Tensor *tensor[MOST_TENSORS];
    const int n = data_tensors(tensor);
    begin_list(l, "labels");
    for (int t = 0; t < n; t++) write_label(l, tensor[t]->name);
    putc(']', l->json);
}

/* The lines of the loss, which the page shows as one. */
static void write_fold(Lesson *l) {
    const int last = step_forward("loss").line;
    begin_list(l, "fold");
    begin_item(l);
    fprintf(l->json, "{\"lines\":[");
    for (int line = step_forward("E").line; line < last; line++) fprintf(l->json, "%d,", line);
    fprintf(l->json, "%d],\"name\":\"loss\"}]", last);
}

static void write_short(Lesson *l) {
    begin_list(l, "short");
    for (const NamePair *pair = l->kind->shorts; pair->name; pair++) {
        const int t = data_number(tensor_on_tape(pair->name));
        if (t < 0) continue;
        begin_item(l);
        fprintf(l->json, "{\"tensor\":%d,\"name\":\"%s\"}", t, pair->other);
    }
    putc(']', l->json);
}

/* "card":[2,5]: tensors, of those that are on the tape and get a gradient. */
static void write_card(Lesson *l) {
    begin_list(l, "card");
    for (const char *const *name = l->kind->card; *name; name++) {
        const Tensor *x = tensor_on_tape(*name);
        if (!x || !x->grad) continue;
        begin_item(l);
        fprintf(l->json, "%d", data_number(x));
    }
    putc(']', l->json);
}

/* "letters": what papers call the weights, the scores and the output, unless the lesson does. */
static void write_letters(const Lesson *l) {
    char text[TEXT], scores[64] = "";
    TapeLine line = {0};
    const char *weights = lesson_weights(l);
    int i = 0;
    while (tape_line(i, &line) && !(line.n_in == 2 && strcmp(line.in[0]->name, weights) == 0)) i++;
    if (!tape_line(i, &line) || tensor_on_tape("P")) return;
    if (tensor_on_tape(lesson_scores(l)) && strcmp(lesson_scores(l), "S") != 0)
        snprintf(scores, sizeof scores, ", `S` for `%s`", lesson_short_name(l, lesson_scores(l)));
    snprintf(text, sizeof text, "In papers: `P` for `A`%s, `dO` for `d%s`.", scores,
             lesson_short_name(l, line.out->name));
    json_write_member(l->json, "letters", text);
}

void tell_write_names(Lesson *l) {
    const LessonOptions *o = &l->options;
    int64_t most = o->tokens > o->keys ? o->tokens : o->keys;
    if (o->queries > most) most = o->queries;
    write_own_words(l, *l->kind->word_rows ? most : 0);
    write_labels(l);
    write_fold(l);
    data_write_transposed(l->json);
    write_short(l);
    write_letters(l);
    write_card(l);
}

/* ---- the members of the lesson --------------------------------------------------------------- */

void tell_write_cover(Lesson *l) { l->kind->begin(l); }

void tell_write_steps(Lesson *l) {
    begin_list(l, "steps");
    l->kind->tell(l);
    sgd_say(l);
    putc(']', l->json);
}

void tell_write_questions(Lesson *l) {
    begin_list(l, "questions");
    l->kind->ask(l);
    putc(']', l->json);
}
