/* plan_json.c - the steps of a lesson for the page: see plan_json.h.
 *
 * The sections: numbers, reasons, tensors and units, items, lines, steps, the whole. */
#include "plan_json.h"

#include "../rules/card.h"
#include "../steps/known.h"
#include "../steps/reasons.h"
#include "../steps/sentences.h"
#include "../steps/worked.h"
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static void write_numbers(FILE *file, const char *key, const double *numbers, int64_t size) {
    fprintf(file, ",\"%s\":", key);
    json_write_numbers(file, numbers, size, JSON_DIGITS);
}

static void write_text(FILE *file, const char *key, const char *text) {
    if (!*text) return;
    fprintf(file, ",\"%s\":", key);
    json_write_string(file, text);
}

/* ---- reasons --------------------------------------------------------------------------------- */

/* Reasons that occur, each once. */
enum { MOST_REASONS = 64 };
typedef struct {
    Plan *plan;
    FILE *file;
    int num_reasons;
    char *reasons[MOST_REASONS];
} Writer;

/* The number of a reason; -1: none, or there are too many. */
static int keep_reason(Writer *w, const char *text) {
    int r = 0;
    while (r < w->num_reasons && strcmp(w->reasons[r], text) != 0) r++;
    if (!*text || r < w->num_reasons || r == MOST_REASONS)
        return *text && r < MOST_REASONS ? r : -1;
    w->reasons[r] = memory_take(&w->plan->tape.memory, (int64_t)strlen(text) + 1, 1);
    if (!w->reasons[r]) return -1;
    strcpy(w->reasons[r], text);
    return w->num_reasons++;
}

/* What numbers are: values, derivatives, a part of a gradient, or the sum of its first parts. */
typedef struct {
    ItemKind of;
    int tensor;
    const Part *part;
    int parts;
    bool complete; /* these are all parts */
} Numbers;

/* Writes the elements that are 0, and their reasons; nothing if there are none. */
static void write_zeros(Writer *w, const char *key, const double *numbers, int64_t size,
                        Numbers are) {
    char text[REASON_TEXT];
    bool any = false;
    for (int64_t i = 0; i < size; i++) {
        if (numbers[i] != 0) continue;
        if (are.of == ITEM_VALUE) reason_of_value(w->plan, are.tensor, i, text);
        else if (are.of == ITEM_DERIVATIVE) reason_of_derivative(w->plan, are.part, i, text);
        else if (are.part) reason_of_part(w->plan, are.part, i, text);
        else reason_of_sum(w->plan, are.tensor, are.parts, are.complete, i, text);
        const int r = keep_reason(w, text);
        if (r < 0) continue;
        if (!any) fprintf(w->file, ",\"%s\":[", key);
        fprintf(w->file, "%s%lld,%d", any ? "," : "", (long long)i, r);
        any = true;
    }
    if (any) putc(']', w->file);
}

/* ---- tensors and units ----------------------------------------------------------------------- */

static void write_tensor(Writer *w, int t) {
    char name[NAME_TEXT], symbol[NAME_TEXT], gradient[NAME_TEXT];
    const TapeTensor *x = &w->plan->tape.tensors[t];
    full_name(w->plan, t, name);
    name_of_tensor(w->plan, t, false, symbol);
    name_of_gradient(w->plan, t, false, gradient);
    fprintf(w->file, "%s\n{\"name\":", t ? "," : "");
    json_write_string(w->file, name);
    if (strcmp(symbol, name) != 0) write_text(w->file, "symbol", symbol);
    if (*gradient != 'd' || strcmp(gradient + 1, symbol) != 0)
        write_text(w->file, "gradient", gradient);
    write_zeros(w, "value", x->value, x->size, (Numbers){ITEM_VALUE, .tensor = t});
    if (x->grad)
        write_zeros(w, "grad", x->grad, x->size,
                    (Numbers){ITEM_GRADIENT, .tensor = t, .parts = x->parts, .complete = true});
    putc('}', w->file);
}

/* A nudge is predicted by derivatives, if they stand in no table; and a question can ask for their
 * number. */
static bool wants_derivatives(const Plan *plan, const Part *part, bool in_fold) {
    const Json *question = json_first(plan->lesson, "questions");
    for (; question; question = question->next)
        if (json_integer(question, "line", -1) == plan->tape.lines[part->own->line].number &&
            json_integer(question, "input", -1) == part->k)
            return true;
    const TapeTensor *x = &plan->tape.tensors[part->x];
    return !in_fold && (part->factor != 0 || (goes_by_numbers(part) && x->parts == 1));
}

/* Column by column: [j,J,j,J,...] */
static void write_derivatives(Writer *w, const Part *part) {
    fprintf(w->file, ",\"jacobian\":[");
    for (int64_t i = 0; i < w->plan->tape.tensors[part->x].size; i++) {
        fputs(i ? ",[" : "[", w->file);
        for (int64_t e = part->by.begin[i]; e < part->by.begin[i + 1]; e++) {
            fprintf(w->file, "%s%d,", e > part->by.begin[i] ? "," : "", (int)part->by.of[e].j);
            json_write_number(w->file, part->by.of[e].J, JSON_DIGITS);
        }
        putc(']', w->file);
    }
    putc(']', w->file);
}

static void write_part(Writer *w, const Part *part, bool is_first, bool in_fold) {
    fprintf(w->file, "%s{\"input\":%d", is_first ? "" : ",\n ", part->k);
    write_zeros(w, "zeros", part->dx, w->plan->tape.tensors[part->x].size,
                (Numbers){ITEM_PART, .part = part});
    if (wants_derivatives(w->plan, part, in_fold)) write_derivatives(w, part);
    putc('}', w->file);
}

static void write_unit(Writer *w, int u) {
    const Unit *unit = &w->plan->units[u];
    fprintf(w->file, "%s\n{\"lines\":[%d,%d]", u ? "," : "", unit->first, unit->last);
    if (unit->group >= 0) fprintf(w->file, ",\"group\":%d", unit->group);
    if (unit->name) fprintf(w->file, ",\"name\":");
    if (unit->name) json_write_string(w->file, unit->name);
    if (unit->name ? unit->moves : w->plan->tape.lines[unit->first].right_moves)
        fprintf(w->file, ",\"moves\":true");
    fprintf(w->file, ",\"parts\":[");
    for (int n = 0; n < unit->num_parts; n++)
        write_part(w, &unit->parts[n], n == 0, unit->name != NULL);
    fprintf(w->file, "]}");
}

/* ---- items ----------------------------------------------------------------------------------- */

static void write_sign(FILE *file, const Item *item) {
    if (!*item->note) {
        json_write_string(file, item->text);
        return;
    }
    putc('[', file);
    json_write_string(file, item->text);
    putc(',', file);
    json_write_string(file, item->note);
    putc(']', file);
}

/* Numbers that the page finds nowhere else. */
static void write_own_numbers(Writer *w, const Item *item) {
    const int tensor = (int)(item->like - w->plan->tape.tensors);
    const bool has_zeros = (item->of == ITEM_DERIVATIVE && item->part) || item->parts > 0;
    if (item->of == ITEM_SUM || item->of == ITEM_DERIVATIVE || item->parts > 0)
        write_numbers(w->file, "numbers", item->numbers, item->size);
    if (has_zeros)
        write_zeros(w, "zeros", item->numbers, item->size,
                    (Numbers){item->of, tensor, item->part, item->parts, false});
}

/* The name that the page knows: that of the tensor, or of its gradient. */
static bool has_usual_name(const Plan *plan, const Item *item) {
    char name[NAME_TEXT] = "";
    const int tensor = (int)(item->like - plan->tape.tensors);
    if (item->of == ITEM_VALUE) name_of_tensor(plan, tensor, false, name);
    if (item->of == ITEM_GRADIENT) name_of_gradient(plan, tensor, false, name);
    if (item->of == ITEM_PART) name_of_tensor(plan, item->part->y, false, name);
    return strcmp(name, item->text) == 0;
}

static bool has_usual_format(const Item *item) {
    if (item->of == ITEM_SUM) return false;
    const Format usual = format_of(item->numbers, item->like->size);
    return usual.decimals == item->format.decimals && usual.exponent == item->format.exponent;
}

static void write_table(Writer *w, const Item *item) {
    FILE *file = w->file;
    fprintf(file, "{\"of\":\"%c\",\"tensor\":%d", item->of,
            (int)(item->like - w->plan->tape.tensors));
    if (!has_usual_name(w->plan, item)) write_text(file, "name", item->text);
    write_text(file, "note", item->note);
    if (!has_usual_format(item))
        fprintf(file, ",\"format\":[%d,%d]", item->format.decimals, item->format.exponent);
    if (item->part && item->of != ITEM_DERIVATIVE)
        fprintf(file, ",\"part\":[%d,%d]", item->part->own->line, item->part->k);
    if (item->parts > 0) fprintf(file, ",\"sum\":%d", item->parts);
    write_own_numbers(w, item);
    if (item->transposed) fprintf(file, ",\"turned\":true");
    if (item->is_word) fprintf(file, ",\"word\":true");
    if (item->is_small) fprintf(file, ",\"small\":true");
    if (item->is_hidden) fprintf(file, ",\"hidden\":true");
    putc('}', file);
}

static void write_items(Writer *w, const Formula *f) {
    fprintf(w->file, ",\n \"items\":[");
    for (int i = 0; i < f->count; i++) {
        const Item *item = &f->items[i];
        if (i) putc(',', w->file);
        if (item->of == ITEM_SIGN) write_sign(w->file, item);
        else if (item->of != ITEM_CONSTANT) write_table(w, item);
        else {
            fprintf(w->file, "{\"of\":\"c\",\"hidden\":true");
            write_numbers(w->file, "numbers", item->numbers, item->size);
            putc('}', w->file);
        }
    }
    putc(']', w->file);
    if (f->main > 0) fprintf(w->file, ",\"main\":%d", f->main);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void write_worked(FILE *file, const Worked *worked, bool is_sum) {
    if (*worked->note) {
        json_write_string(file, worked->note);
        return;
    }
    fputs(worked->op ? "{\"of\":[" : "[", file);
    for (int n = 0; n < worked->count; n++)
        fprintf(file, "%s%lld", n ? "," : "", (long long)worked->elements[n]);
    if (is_sum && worked->terms > MOST_TERMS + 2) fprintf(file, ",-%lld", (long long)worked->terms);
    fputs(worked->op ? "]}" : "]", file);
}

/* Is each number made from the elements at its own place? */
static bool is_own_place(const Worked *worked, int64_t i) {
    if (*worked->note || worked->op || worked->count == 0) return false;
    for (int n = 0; n < worked->count; n++)
        if (worked->elements[n] != i) return false;
    return true;
}

/* Of all numbers, or of a table of sums. */
static void write_cells(Writer *w, const Recipe *r, int sum) {
    Worked worked;
    char form[FORM_TEXT];
    const int64_t size = worked_item(r, sum)->size;
    worked_form(r, sum, form);
    write_text(w->file, "form", form);
    const bool is_sum = strchr(form, '[') != NULL;
    bool all_own = !*r->after;
    for (int64_t i = 0; i < size && all_own; i++) {
        worked_of(r, sum, i, &worked);
        all_own = is_own_place(&worked, i) && worked.terms == 1;
    }
    if (all_own) return;
    fprintf(w->file, ",\"cells\":[");
    for (int64_t i = 0; i < size; i++) {
        worked_of(r, sum, i, &worked);
        if (i) putc(',', w->file);
        write_worked(w->file, &worked, is_sum);
    }
    putc(']', w->file);
}

/* A digit for each line; nothing if all are 0. */
static void write_more(Writer *w, const Recipe *r, int sum) {
    bool any = false;
    const int64_t size = worked_item(r, sum)->size;
    char *digits = memory_take(&w->plan->tape.memory, size + 1, 1);
    for (int64_t i = 0; digits && i < size; i++) {
        const int more = worked_more(r, sum, i);
        digits[i] = (char)('0' + more);
        any = any || more > 0;
    }
    if (any) write_text(w->file, "more", digits);
}

static void write_lines(Writer *w, const Recipe *r) {
    if (!r->tree && r->step->phase != STEP_FORWARD) return;
    write_cells(w, r, -1);
    write_text(w->file, "op", *r->after ? "" : r->op);
    write_text(w->file, "after", r->after);
    write_more(w, r, -1);
    if (r->num_sums > 0) fprintf(w->file, ",\"sums\":[");
    for (int sum = 0; sum < r->num_sums; sum++) {
        fprintf(w->file, "%s{\"item\":%d", sum ? "," : "", r->sums[sum]);
        write_cells(w, r, sum);
        write_more(w, r, sum);
        putc('}', w->file);
    }
    if (r->num_sums > 0) putc(']', w->file);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The right gradient for the dy that arrives: its sum of dy J, with the right J. */
static void write_right(Writer *w, const Step *step) {
    const Part *part = step->part;
    const TapeTensor *x = &w->plan->tape.tensors[part->x];
    const double *dy = w->plan->tape.tensors[part->y].grad;
    double *right = memory_take(&w->plan->tape.memory, x->size, sizeof *right), size;
    for (int64_t i = 0; right && i < x->size; i++)
        right[i] = sum_of_terms(dy, &part->right, i, &size);
    if (right) write_numbers(w->file, "right", right, x->size);
}

/* Is this what the last look at a nudge says? */
static bool is_said_by_a_look(Plan *plan, const Step *step, const char *sentence) {
    char text[SENTENCE_TEXT] = "", last[SENTENCE_TEXT] = "";
    for (int look = 1; look <= MOST_LOOKS && nudge_of(plan, step) != NUDGE_NONE; look++) {
        sentence_of_look(plan, step, look, text);
        if (*text) strcpy(last, text);
    }
    return *last && strcmp(last, sentence) == 0;
}

static void write_words(Writer *w, const Step *step) {
    static const char *const checks[] = {"", "right", "unchecked", "wrong"};
    char text[SENTENCE_TEXT], checked[160];
    bool passes_on;
    if (!step->has_own_text) write_text(w->file, "text", step->text ? step->text : "");
    sentence_of(w->plan, step, text);
    if (!is_said_by_a_look(w->plan, step, text)) write_text(w->file, "sentence", text);
    const Check check = check_of_step(w->plan, step, checked, &passes_on);
    write_text(w->file, "check", checks[check]);
    write_text(w->file, "checked", checked);
    if (passes_on) fprintf(w->file, ",\"passes\":true");
}

static int number_of_part(const Plan *plan, const Step *step) {
    return (int)(step->part - plan->units[step->unit].parts);
}

/* What a reader can nudge here, and a nudge for a page without the library. */
static void write_nudge(Writer *w, const Step *step) {
    static const char *const kinds[] = {"", "softmax", "product", "each"};
    double changes[NUDGE_NUMBERS];
    char text[SENTENCE_TEXT];
    const char *op;
    const NudgeKind kind = nudge_of(w->plan, step);
    if (kind == NUDGE_NONE) return;
    const int64_t count = nudge_recorded(w->plan, step, &op, changes);
    fprintf(w->file, ",\n \"nudge\":{\"kind\":\"%s\"", kinds[kind]);
    if (op) write_text(w->file, "op", op);
    if (kind == NUDGE_SOFTMAX && step->part->factor != 1)
        fprintf(w->file, ",\"factor\":%.17g", step->part->factor);
    if (count > 0) write_numbers(w->file, "changes", changes, count);
    fprintf(w->file, ",\"says\":[");
    for (int look = 1; look <= MOST_LOOKS; look++) {
        sentence_of_look(w->plan, step, look, text);
        if (!*text) continue;
        if (look > 1) putc(',', w->file);
        json_write_string(w->file, text);
    }
    fprintf(w->file, "]}");
}

/* The request names a gradient as the page does. */
static void write_card(Writer *w) {
    CardTask task;
    const char *before = ",\n \"lines\":[";
    for (int n = 0; card_task(w->plan, n, &task); n++) {
        fprintf(w->file, "%s{\"tensor\":%d", before, task.tensor);
        write_text(w->file, "name", task.name);
        write_text(w->file, "forward", task.forward);
        write_text(w->file, "why", task.why);
        putc('}', w->file);
        before = ",\n ";
    }
    fprintf(w->file, "]}");
}

static void write_step(Writer *w, int s) {
    static const char *const kinds[] = {"cover", "forward", "start", "backward",
                                        "add",   "twice",   "sgd",   "card"};
    Plan *plan = w->plan;
    const Step *step = &plan->steps[s];
    Algebra algebra;
    Formula f;
    Recipe r;
    fprintf(w->file, "%s\n{\"at\":\"%s\",\"kind\":\"%s\"", s ? "," : "", step->name,
            kinds[step->phase]);
    if (step->is_key) fprintf(w->file, ",\"key\":true");
    if (step->as) write_text(w->file, "as", step->as);
    if (step->phase == STEP_COVER) {
        putc('}', w->file);
        return;
    }
    if (step->phase == STEP_CARD) {
        write_card(w);
        return;
    }
    if (step->unit >= 0) fprintf(w->file, ",\"unit\":%d,\"tensor\":%d", step->unit, step->tensor);
    if (step->part) fprintf(w->file, ",\"part\":%d", number_of_part(plan, step));
    if (step->moves && !step->product) fprintf(w->file, ",\"moves\":true");
    if (step->unit >= 0)
        fprintf(w->file, ",\"%s\":%lld", step->is_said ? "look" : "most", (long long)step->look);
    recipe_of(plan, step, &f, &r);
    write_text(w->file, "title", f.title);
    if (f.by_rows) fprintf(w->file, ",\"rows\":true");
    if (!tensor_error()) write_lines(w, &r);
    write_items(w, &f);
    if (step->phase == STEP_BACKWARD && step->part->planted) write_right(w, step);
    write_nudge(w, step);
    algebra_of(plan, step, step->look, &algebra);
    algebra_write(w->file, &algebra);
    fprintf(w->file, "\n ");
    write_words(w, step);
    putc('}', w->file);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void write_plan(FILE *file, Plan *plan) {
    Writer w = {.plan = plan, .file = file};
    fprintf(file, ",\n\"plan\":{\"tensors\":[");
    for (int t = 0; t < plan->tape.num_tensors; t++) write_tensor(&w, t);
    fprintf(file, "],\n\"units\":[");
    for (int u = 0; u < plan->num_units; u++) write_unit(&w, u);
    fprintf(file, "],\n\"steps\":[");
    for (int s = 0; s < plan->num_steps && !tensor_error(); s++) write_step(&w, s);
    fprintf(file, "],\n\"reasons\":[");
    for (int r = 0; r < w.num_reasons; r++) {
        if (r) putc(',', file);
        json_write_string(file, w.reasons[r]);
    }
    fprintf(file, "],\"long\":%s}", plan->is_long ? "true" : "false");
}

/* Is this "dx" of the tape, an item of `backward`, the whole gradient of its input? */
static bool is_whole_gradient(const Plan *plan, const Json *backward) {
    for (int l = 0; l < plan->tape.num_lines; l++)
        for (int n = 0; n < plan->tape.lines[l].num_parts; n++) {
            const Part *part = &plan->tape.lines[l].parts[n];
            const TapeTensor *x = &plan->tape.tensors[part->x];
            if (json_at(json_get(plan->tape.lines[l].json, "backward"), part->k) == backward)
                return x->parts == 1 &&
                       memcmp(part->dx, x->grad, (size_t)x->size * sizeof *x->grad) == 0;
        }
    return false;
}

/* What the page does not need: the Jacobians and what else the plan is made of, since it says all
 * that follows, and each dx that is the whole gradient. */
static bool is_unread(const Json *object, const Json *item, const void *context) {
    static const char *const of_the_lesson = " right fold short ";
    static const char *const inside = " jacobian unchecked requires_grad look ";
    static const char *const inside_if_none = " view source ";
    const Plan *plan = context;
    const bool is_ours = json_integer(plan->lesson, "number", 0) > 0; /* not a file of a reader's */
    char word[64];
    if (is_ours && strcmp(item->key, "dx") == 0) return is_whole_gradient(plan, object);
    snprintf(word, sizeof word, " %s ", item->key);
    if (object == plan->lesson) return strstr(of_the_lesson, word) != NULL;
    if (strcmp(item->key, "leaf") == 0) return item->kind == JSON_BOOL; /* not the loop's */
    const bool is_none = item->kind == JSON_BOOL ? item->number == 0 : item->text && !*item->text;
    return strstr(inside, word) || (is_none && strstr(inside_if_none, word));
}

static void write_program(FILE *file, const Plan *plan) {
    char lesson[16] = "";
    const int number = (int)json_integer(plan->lesson, "number", 0);
    if (number > 0)
        snprintf(lesson, sizeof lesson, "%d%s", number, json_text(plan->lesson, "part", ""));
    program_write(file, &plan->tape, lesson);
}

bool plan_write_lesson(FILE *file, char *lesson) {
    Plan plan = {.lesson = NULL};
    Json *tree = json_read(lesson);
    if (tree && plan_make(&plan, tree) && known_mark(&plan)) {
        const char *before = "{";
        for (const Json *item = tree->first; item; item = item->next) {
            if (is_unread(tree, item, &plan)) continue;
            fprintf(file, "%s\"%s\":", before, item->key);
            json_write(file, item, is_unread, &plan);
            before = ",\n";
        }
        write_program(file, &plan);
        write_plan(file, &plan);
        putc('}', file);
    }
    plan_free(&plan);
    free(tree);
    return !tensor_error();
}
