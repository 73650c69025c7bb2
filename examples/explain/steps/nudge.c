/* nudge.c - what moves with a number: see nudge.h. */
#include "nudge.h"

#include "../../common/mistakes.h"
#include "../page/recording.h"
#include "../rules/rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which steps ----------------------------------------------------------------------------- */

/* All tables of a product beside each other: y, x, its other factor, dy. What is wider does not fit
 * above its lines. */
enum { MOST_COLUMNS = 15 };

NudgeKind nudge_of(const Plan *plan, const Step *step) {
    const Part *part = step->part;
    if (step->phase != STEP_BACKWARD || plan->units[step->unit].name || part->is_odd)
        return NUDGE_NONE;
    const TapeTensor *x = &plan->tape.tensors[part->x];
    if (x->parts > 1) return NUDGE_NONE; /* the loss would move by other lines, too */
    if (part->factor != 0) return x->columns > 1 ? NUDGE_SOFTMAX : NUDGE_NONE;
    if (part->planted) return NUDGE_NONE;
    if (is_factor(&plan->tape.lines[part->line], part->k))
        return 2 * plan->tape.tensors[part->y].columns + x->columns > MOST_COLUMNS ? NUDGE_NONE
                                                                                   : NUDGE_PRODUCT;
    return goes_by_numbers(part) && x->size == plan->tape.tensors[part->y].size ? NUDGE_EACH
                                                                                : NUDGE_NONE;
}

/* Number i is moved by `factor` times each of `count` nudges, from the first to the last.
 *     softmax    the numbers are the weights of a row: one before softmax is moved
 *     linear     the numbers are derivatives: what each result gains per nudge
 *     tanh, ...  an elementwise op of one number, which is moved */
typedef struct {
    const char *op;
    double factor, first, last;
    int64_t i, count, size;
    const double *numbers;
} Nudge;

/* ---- the library computes -------------------------------------------------------------------- */

/* An op of one number, by what mistakes.def says it computes; false if it is none. */
static bool find_forward(const char *op, RuleFormula *f) {
    static RuleScope scope = {.n = 1, .own = 1, .names = {{.name = "x", .meaning = NAMES_INPUT}}};
    const MistakeRow *row = mistake_find(op, NULL);
    return row && row->forward && rule_parse(f, row->forward, &scope) &&
           !strchr(row->forward, '@') && strcmp(op, "softmax") != 0;
}

static bool is_op_of_one(const char *op) {
    static RuleFormula f;
    return find_forward(op, &f);
}

static bool nudge_knows(const char *op) {
    return strcmp(op, "softmax") == 0 || strcmp(op, "linear") == 0 || is_op_of_one(op);
}

static double nudge_at(const Nudge *n, int64_t k) {
    return n->count < 2 ? n->first
                        : n->first + (double)k * (n->last - n->first) / (double)(n->count - 1);
}

/* Softmax of log(w) is w, whatever the scores were: a row per nudge, and one without any. */
static void fill_scores(const Nudge *n, double *rows) {
    for (int64_t k = 0; k <= n->count; k++)
        for (int64_t j = 0; j < n->size; j++) rows[k * n->size + j] = log(n->numbers[j]);
    for (int64_t k = 0; k < n->count; k++) rows[k * n->size + n->i] += n->factor * nudge_at(n, k);
}

static void fill_numbers(const Nudge *n, double *rows) {
    for (int64_t k = 0; k <= n->count; k++)
        rows[k] = n->numbers[0] + (k < n->count ? n->factor * nudge_at(n, k) : 0);
}

/* The op of rows of numbers, in float64. */
static bool run_op(const Nudge *n, double *rows) {
    static RuleFormula f;
    const DType before = tensor_default_dtype();
    tensor_set_default_dtype(F64);
    tape_begin_no_grad();
    Tensor *x = tape_own(tensor_from_doubles(SHAPE(n->count + 1, n->size), rows));
    const RuleValues values = {.dy = x, .out = x, .in = &x};
    const bool is_rule = x && find_forward(n->op, &f);
    const Tensor *y = is_rule ? rule_evaluate(&f, &values) : ag_softmax(x, 1);
    const bool done = y && tensor_to_doubles(y, rows);
    tape_end();
    tensor_set_default_dtype(before);
    return done;
}

/* A row that sees nothing has no weights, and none of them moves. */
static bool has_weights(const Nudge *n) {
    double sum = 0;
    for (int64_t j = 0; j < n->size; j++) sum += n->numbers[j];
    return sum != 0;
}

/* changes: room for count times size; of an op of one number, size is 1. False and an error if this
 * cannot be computed. */
static bool nudge_changes(const Nudge *n, double *changes) {
    const int64_t size = n->size, last = n->count * size;
    memset(changes, 0, (size_t)last * sizeof *changes);
    if (strcmp(n->op, "softmax") == 0 && !has_weights(n)) return true;
    if (strcmp(n->op, "linear") == 0) {
        for (int64_t m = 0; m < last; m++)
            changes[m] = n->factor * nudge_at(n, m / size) * n->numbers[m % size];
        return true;
    }
    double *rows = malloc((size_t)(last + size) * sizeof *rows);
    if (!rows) return tensor_fail("out of memory for a nudge");
    if (is_op_of_one(n->op)) fill_numbers(n, rows);
    else fill_scores(n, rows);
    const bool done = run_op(n, rows);
    for (int64_t m = 0; done && m < last; m++) changes[m] = rows[m] - rows[last + m % size];
    free(rows);
    return done;
}

/* ---- of a step ------------------------------------------------------------------------------- */

/* In some lines a derivative does not depend on the number that is moved: their rule reads neither
 * it nor the result. */
static bool is_linear(const RuledTape *tape, const Part *part) {
    const char *op = json_text(tape->lines[part->line].json, "op", "");
    bool reads = !part->tree || !mistake_find(op, NULL);
    for (int t = 0; !reads && t < part->tree->num_tables; t++) {
        const TreeTable *table = &part->tree->tables[t];
        reads = !table->is_gradient && (table->tensor == part->x || table->tensor == part->y);
    }
    return !reads;
}

/* Of one number: its op, or a line whose derivative stays. */
static bool nudge_of_each(const RuledTape *tape, const Part *part, Nudge *n) {
    const bool linear = is_linear(tape, part);
    n->size = 1;
    n->op = linear ? "linear" : json_text(tape->lines[part->line].json, "op", "");
    n->numbers = &tape->tensors[part->x].value[n->i];
    if (linear && part->by.begin[n->i] < part->by.begin[n->i + 1])
        n->numbers = &part->by.of[part->by.begin[n->i]].J;
    return nudge_knows(n->op);
}

int64_t nudge_recorded(const Plan *plan, const Step *step, const char **op, double *changes) {
    const RuledTape *tape = &plan->tape;
    const Part *part = step->part;
    const NudgeKind kind = nudge_of(plan, step);
    const int64_t C = tape->tensors[part->x].columns;
    Nudge n = {.op = "softmax", .factor = 1, .first = NUDGE_RECORDED, .i = step->look, .count = 1};
    *op = NULL;
    if (kind == NUDGE_SOFTMAX) {
        n.factor = part->factor;
        n.i = step->look % C;
        n.size = C;
        n.numbers = tape->tensors[part->y].value + step->look - n.i;
    } else if (kind != NUDGE_EACH || !nudge_of_each(tape, part, &n)) return 0;
    *op = n.op;
    return n.size <= NUDGE_NUMBERS && nudge_changes(&n, changes) ? n.size : 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Other weights for a row, where it has any: all scores are equal, or one is larger by 4. */
typedef enum { AS_IT_IS, EQUAL_SCORES, ONE_TAKES_ALL } Preset;
static const char *const presets[] = {"softmax", "equal_scores", "one_takes_all"};

/* Numbers of a line; returns where it ends. */
static char *read_numbers(char *at, double *numbers, int64_t *count) {
    char *end;
    for (*count = 0; *count < NUDGE_NUMBERS; ++*count, at = end) {
        if (*at == '\n') break; /* which strtod would pass over */
        numbers[*count] = strtod(at, &end);
        if (end == at) break;
    }
    return at + strspn(at, " ");
}

/* The numbers after the op: five settings, then those of the row. */
static char *read_nudge(char *text, Nudge *n, Preset *preset, double *numbers) {
    int64_t count;
    char *at = text + strcspn(text, " ");
    if (*at) *at++ = '\0';
    n->op = text;
    for (Preset each = EQUAL_SCORES; each <= ONE_TAKES_ALL; each++) {
        if (strcmp(text, presets[each]) != 0) continue;
        *preset = each;
        n->op = presets[AS_IT_IS];
    }
    at = read_numbers(at, numbers, &count);
    n->size = count - 5;
    if (!nudge_knows(n->op) || n->size <= 0) return NULL;
    const double i = numbers[1], times = numbers[4];
    if (!(i >= 0 && i < (double)n->size && times >= 1)) return NULL;
    if (times * (double)n->size > NUDGE_NUMBERS || (is_op_of_one(n->op) && n->size > 1))
        return NULL;
    n->factor = numbers[0];
    n->first = numbers[2];
    n->last = numbers[3];
    n->i = (int64_t)i;
    n->count = (int64_t)times;
    n->numbers = numbers + 5;
    return at;
}

/* Three more lines, the names of dx and dy, and the numbers of dy. */
static bool read_row(char *text, const Nudge *n, SoftmaxRow *row, double *numbers) {
    int64_t count = 0;
    char *dy_name = strchr(text, '\n');
    if (!dy_name) return false;
    *dy_name++ = '\0';
    char *dy = strchr(dy_name, '\n');
    if (!dy) return false;
    *dy++ = '\0';
    const char *end = read_numbers(dy, numbers, &count);
    *row = (SoftmaxRow){text, dy_name, n->factor, n->i, n->size, n->numbers, numbers};
    return count == n->size && strcmp(n->op, "softmax") == 0 && *end == '\0';
}

static void set_weights(Preset preset, int64_t i, int64_t size, double *p) {
    double sum = 0;
    for (int64_t j = 0; j < size; j++) {
        if (p[j] != 0) p[j] = preset == ONE_TAKES_ALL && j == i ? exp(4) : 1;
        sum += p[j];
    }
    for (int64_t j = 0; j < size && sum > 0; j++) p[j] /= sum;
}

static void say_preset(FILE *file, Preset preset, double p) {
    char text[200] = "";
    if (preset == AS_IT_IS || p == 0) return;
    if (preset == EQUAL_SCORES)
        snprintf(text, sizeof text,
                 "All scores are equal: each weight is 1 / %.0f, and the framed mean is the plain "
                 "one. Any key can still win.",
                 1 / p);
    else
        snprintf(
            text, sizeof text,
            "This score is larger by 4, and its key takes %.3f of the weight. Hardly any weight "
            "moves, so almost no gradient comes through: softmax is saturated.",
            p);
    json_write_member(file, "says", text);
}

/* The row's weights, how fast each follows the number, and the rule from there. */
static void write_row(FILE *file, Preset preset, const SoftmaxRow *row) {
    static double rates[NUDGE_NUMBERS];
    Algebra algebra;
    const double p = row->p[row->i];
    for (int64_t j = 0; j < row->size; j++)
        rates[j] = row->factor * p * ((j == row->i) - row->p[j]);
    fprintf(file, ",\"weights\":");
    json_write_numbers(file, row->p, row->size, 17);
    fprintf(file, ",\"rates\":");
    json_write_numbers(file, rates, row->size, 17);
    say_preset(file, preset, p);
    algebra_of_softmax(row, &algebra);
    algebra_write(file, &algebra);
}

char *nudge_answer(char *request) {
    static double numbers[NUDGE_NUMBERS + 5], dy[NUDGE_NUMBERS], changes[NUDGE_NUMBERS];
    Nudge n = {.op = NULL};
    Preset preset = AS_IT_IS;
    SoftmaxRow row = {.p = NULL};
    char *json;
    char *end = read_nudge(request, &n, &preset, numbers);
    const bool has_row = end && *end == '\n' && read_row(end + 1, &n, &row, dy);
    if (!end || (*end && !has_row) || (preset && !has_row))
        return tensor_fail("a nudge is an op, its factor, a place, the first nudge and the last, "
                           "how many, and numbers");
    if (preset) set_weights(preset, n.i, n.size, numbers + 5);
    if (!nudge_changes(&n, changes)) return NULL;
    FILE *file = data_open(&json);
    if (!file) return NULL;
    fprintf(file, "{\"nudge\":[");
    for (int64_t k = 0; k < n.count; k++) {
        if (k > 0) putc(',', file);
        json_write_numbers(file, changes + k * n.size, n.size, 17);
    }
    putc(']', file);
    if (has_row) write_row(file, preset, &row);
    putc('}', file);
    return data_close(file, json);
}
