/* test_nudge.c - a number that is moved in a lesson (examples/explain/steps/nudge.h): what moves
 * with it is what the derivatives of its step predict, and so does the loss. */
#include "../common.h"
#include "common_line.h"
#include "common_live.h"

#include "../../../examples/explain/page/live.h"
#include "../../../examples/explain/steps/nudge.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const lessons[] = {
    "1", "2", "2\nno-scale 1\nkeys 5", "3", "3b", "4", "4\ndropout 0.5", "5", "6"};

static char *text;
static Json *tree;
static const Json *tape;
static const Json *steps;
static const Json *units;

static void open_lesson(const char *lesson) {
    text = strdup(answer_to(format("lesson %s", lesson)));
    tree = json_read(text);
    const Json *first = json_at(json_get(tree, "lessons"), 0);
    ck_assert_msg(first != NULL, "%s: %s", lesson, json_text(tree, "error", ""));
    tape = json_get(first, "tape");
    steps = json_get(json_get(first, "plan"), "steps");
    units = json_get(json_get(first, "plan"), "units");
}

static void close_lesson(void) {
    free(tree);
    free(text);
    ask_no_more();
}

/* A step of backward with a nudge, and one of its elements. */
typedef struct {
    const char *lesson, *at, *kind;
    const Json *step, *nudge, *part, *x, *y;
    int64_t i;
} Nudged;

static void expect_near(const char *what, double a, double b, double tolerance) {
    ck_assert_msg(fabs(a - b) <= tolerance * fmax(1, fabs(b)), "%s: %.17g and %.17g", what, a, b);
}

static double element(const Json *tensor, const char *key, int64_t i) {
    return json_number(json_at(json_get(tensor, key), i));
}

static bool read_step(Nudged *n, const Json *step) {
    const Json *tensors = json_get(tape, "tensors");
    n->step = step;
    n->at = json_text(step, "at", "");
    n->nudge = json_get(step, "nudge");
    if (!n->nudge) return false;
    n->kind = json_text(n->nudge, "kind", "");
    const Json *unit = json_at(units, json_integer(step, "unit", -1));
    const Json *line =
        json_at(json_get(tape, "lines"), (int64_t)json_at(json_get(unit, "lines"), 0)->number);
    n->part = json_at(json_get(unit, "parts"), json_integer(step, "part", -1));
    n->x = json_at(tensors, json_integer(step, "tensor", -1));
    n->y = json_at(tensors, json_integer(line, "out", -1));
    return true;
}

/* How fast element j of the result follows the element, by the derivatives of the step. */
static double rate_of(const Nudged *n, int64_t j) {
    const Json *jacobian = json_get(n->part, "jacobian");
    if (jacobian) {
        const Json *pair = json_at(jacobian, n->i)->first;
        for (; pair; pair = pair->next->next)
            if (pair->number == (double)j) return json_number(pair->next);
        return 0;
    }
    int a, b; /* the items of a product's terms */
    ck_assert_int_eq(sscanf(json_text(n->step, "form", ""), "[@%d x @%d]", &a, &b), 2);
    const Json *items = json_get(n->step, "items");
    const bool a_is_dy = *json_text(json_at(items, a), "of", "") == 'g';
    const Json *factor = json_at(json_get(tape, "tensors"),
                                 json_integer(json_at(items, a_is_dy ? b : a), "tensor", -1));
    const Json *pair = json_at(json_get(n->step, "cells"), n->i)->first;
    for (; pair && pair->next; pair = pair->next->next) {
        const Json *dy = a_is_dy ? pair : pair->next;
        if (dy->number == (double)j)
            return element(factor, "value", (int64_t)(a_is_dy ? pair->next : pair)->number);
    }
    return 0;
}

/* ---- what the lesson computes ---------------------------------------------------------------- */

enum { FAR_LESS, NEAR_LESS, STILL, NEAR_MORE, FAR_MORE, POINTS }; /* -0.1, -0.01, 0, 0.01, 0.1 */
static const double nudges[POINTS] = {-0.1, -0.01, 0, 0.01, 0.1};

/* The losses and the changes of each number of the result. */
typedef struct {
    double loss[POINTS], change[512][POINTS];
    bool moved[512];
} Answer;

static void probe_points(const Nudged *n, Answer *answer, const double *sizes, int first,
                         int last) {
    const Json *read =
        ask(format("lesson %s\nprobe %" PRId64 " -%g %g 3 %s\nshow %s", n->lesson, n->i, *sizes,
                   *sizes, json_text(n->x, "name", ""), json_text(n->y, "name", "")));
    const Json *probe = json_get(read, "probe");
    ck_assert_msg(probe != NULL, "%s: %s", n->at, json_text(read, "error", ""));
    const int at[] = {first, STILL, last};
    const Json *losses = json_get(probe, "losses");
    const Json *shown = json_at(json_get(probe, "shown"), 0);
    const Json *moved = json_get(shown, "moved");
    for (int p = 0; p < 3; p++) {
        answer->loss[at[p]] = json_number(json_at(losses, p));
        for (int64_t m = 0; m < moved->count; m++) {
            const Json *values = json_at(json_get(shown, "values"), m);
            const int64_t j = (int64_t)json_at(moved, m)->number;
            answer->moved[j] = true;
            answer->change[j][at[p]] =
                json_number(json_at(values, p)) - json_number(json_at(values, 1));
        }
    }
}

static void probe_step(const Nudged *n, Answer *answer) {
    static const double near = 0.01, far = 0.1;
    memset(answer, 0, sizeof *answer);
    probe_points(n, answer, &near, NEAR_LESS, NEAR_MORE);
    probe_points(n, answer, &far, FAR_LESS, FAR_MORE);
}

/* |real - predicted| < C h^2, whatever C is: a nudge of a tenth has a hundredth of the error. Both
 * sides are added, so that a square and a cube do not cancel. */
static void expect_predicted(const Nudged *n, const char *what, const double *real, double rate) {
    double near = 0, far = 0;
    for (int p = 0; p < POINTS; p++) {
        const double error = fabs(real[p] - nudges[p] * rate);
        if (fabs(nudges[p]) > 0.05) far += error;
        else near += error;
    }
    ck_assert_msg(near <= 0.02 * far + 1e-9,
                  "lesson %s, %s, element %" PRId64 ", %s: the errors are %g and %g", n->lesson,
                  n->at, n->i, what, near, far);
}

/* The request for one line alone, which a tape makes, gives the same. */
static void expect_alone(const Nudged *n, const Answer *answer) {
    static char numbers[4096];
    const char *op = json_text(n->nudge, "op", "");
    const Json *shape = json_get(n->y, "shape");
    const int64_t C = (int64_t)json_at(shape, shape->count - 1)->number;
    const bool is_row = strcmp(op, "softmax") == 0;
    const int64_t first = is_row ? n->i - n->i % C : n->i, size = is_row ? C : 1;
    const Json *factor = json_get(n->nudge, "factor");
    *numbers = '\0';
    for (int64_t j = first; j < first + size; j++) {
        double number = element(is_row ? n->y : n->x, "value", j);
        if (strcmp(op, "linear") == 0) number = rate_of(n, j);
        snprintf(numbers + strlen(numbers), sizeof numbers - strlen(numbers), " %.17g", number);
    }
    const Json *read = ask(format("nudge %s %.17g %" PRId64 " -0.1 0.1 3%s", op,
                                  factor ? factor->number : 1, is_row ? n->i % C : 0, numbers));
    const Json *list = json_get(read, "nudge");
    ck_assert_msg(list != NULL, "%s: %s", n->at, json_text(read, "error", ""));
    ck_assert_int_eq(live_tensors(), 0);
    for (int64_t j = 0; j < size; j++) {
        const double less = json_number(json_at(json_at(list, 0), j));
        const double more = json_number(json_at(json_at(list, 2), j));
        ck_assert(json_number(json_at(json_at(list, 1), j)) == 0);
        expect_near(n->at, less, answer->change[first + j][FAR_LESS], 1e-9);
        expect_near(n->at, more, answer->change[first + j][FAR_MORE], 1e-9);
    }
}

/* ---- of one element -------------------------------------------------------------------------- */

static void expect_sums(const Nudged *n, double rates, double products) {
    const char *which = format("lesson %s, %s", n->lesson, n->at);
    const Json *line = json_at(json_get(tape, "lines"), atoi(n->at + 1));
    const Json *part = json_at(json_get(line, "backward"), json_integer(n->part, "input", -1));
    const Json *dx = json_get(part, "dx");
    if (strcmp(n->kind, "softmax") == 0) expect_near(which, rates, 0, 1e-12);
    expect_near(which, products, dx ? json_number(json_at(dx, n->i)) : element(n->x, "grad", n->i),
                1e-9);
}

static void check_element(const Nudged *n) {
    static Answer answer;
    double rates = 0, products = 0, loss[POINTS];
    probe_step(n, &answer);
    for (int64_t j = 0; j < json_get(n->y, "value")->count; j++) {
        const double rate = rate_of(n, j);
        ck_assert_msg(answer.moved[j] == (rate != 0), "lesson %s, %s: %" PRId64 " moves, %" PRId64,
                      n->lesson, n->at, n->i, j);
        expect_predicted(n, "a result", answer.change[j], rate);
        rates += rate;
        products += rate * element(n->y, "grad", j);
    }
    expect_sums(n, rates, products);
    for (int p = 0; p < POINTS; p++) loss[p] = answer.loss[p] - answer.loss[STILL];
    expect_predicted(n, "the loss", loss, products);
    if (json_get(n->nudge, "op")) expect_alone(n, &answer);
}

/* A number that is 0, or near it, may be at a kink. */
static bool is_smooth(const Nudged *n) {
    return strcmp(json_text(n->nudge, "op", ""), "relu") != 0 ||
           fabs(element(n->x, "value", n->i)) > 0.1;
}

static bool has_all_terms(const Nudged *n) {
    const Json *cell = json_at(json_get(n->step, "cells"), n->i);
    const Json *last = cell ? json_at(cell, cell->count - 1) : NULL;
    return !last || last->number >= 0;
}

CASE("nudge")
LOOP_TEST(predictions_come_true, COUNT(lessons)) {
    Nudged n = {.lesson = lessons[_i]};
    int softmaxes = 0, products = 0;
    open_lesson(n.lesson);
    for (const Json *step = steps->first; step; step = step->next) {
        if (!read_step(&n, step)) continue;
        softmaxes += strcmp(n.kind, "softmax") == 0;
        products += strcmp(n.kind, "product") == 0;
        const int64_t size = json_get(n.x, "value")->count;
        for (n.i = 0; n.i<size; n.i += size> 12 ? 5 : 1)
            if (is_smooth(&n) && has_all_terms(&n)) check_element(&n);
    }
    ck_assert_int_gt(products, 0);
    ck_assert(softmaxes > 0 || lessons[_i][0] == '6');
    close_lesson();
}

/* Without the library a page has the nudge of the element that its step looks at. */
LOOP_TEST(recorded_nudges, COUNT(lessons)) {
    Nudged n = {.lesson = lessons[_i]};
    open_lesson(n.lesson);
    for (const Json *step = steps->first; step; step = step->next) {
        if (!read_step(&n, step)) continue;
        const char *op = json_text(n.nudge, "op", "");
        const Json *changes = json_get(n.nudge, "changes");
        ck_assert_int_eq(changes != NULL, strcmp(n.kind, "product") != 0);
        const int64_t look = json_integer(step, "look", json_integer(step, "most", 0));
        /* A 0 of a mask is no number to nudge; a 0 of relu, in lesson 6, is. */
        ck_assert_msg(changes || *n.lesson == '6' || element(n.x, "value", look) != 0,
                      "lesson %s, %s: 0 is nudged", n.lesson, n.at);
        if (!changes) continue;
        n.i = look;
        const int64_t start = strcmp(op, "softmax") == 0 ? n.i - n.i % changes->count : n.i;
        const Json *shown = json_at(
            json_get(json_get(ask(format("lesson %s\nprobe %" PRId64 " 0 %g 2 %s\nshow %s",
                                         n.lesson, n.i, NUDGE_RECORDED, json_text(n.x, "name", ""),
                                         json_text(n.y, "name", ""))),
                              "probe"),
                     "shown"),
            0);
        const Json *moved = json_get(shown, "moved");
        for (int64_t m = 0; m < moved->count; m++) {
            const Json *values = json_at(json_get(shown, "values"), m);
            const int64_t j = (int64_t)json_at(moved, m)->number - start;
            expect_near(n.at, json_number(json_at(changes, j)),
                        json_number(json_at(values, 1)) - json_number(json_at(values, 0)), 1e-9);
        }
    }
    close_lesson();
}

/* ---- the algebra of softmax ------------------------------------------------------------------ */

/* A row as the library has it: its weights, what arrives, and the letters of its lines. */
enum { ROW = 64 };
typedef struct {
    int64_t i, size;
    double c, p[ROW], dy[ROW];
    int64_t of[4]; /* p, r, s, t: whose weights */
} Row;

static double exact(const Row *row) {
    double mean = 0;
    for (int64_t j = 0; j < row->size; j++) mean += row->p[j] * row->dy[j];
    return row->c * row->p[row->i] * (row->dy[row->i] - mean);
}

static const Row *letters; /* that stand in a line */

/* "p", or "dA_1" */
static bool read_letter(const char **at, double *value) {
    const char *letter = strchr("prst", **at);
    const bool alone = **at && !isalpha((unsigned char)(*at)[1]);
    if (**at == 'd') *value = letters->dy[strtol(strchr(*at, '_') + 1, (char **)at, 10)];
    else if (letter && alone) *value = letters->p[letters->of[letter - "prst"]];
    else if (**at == 'c' && alone) *value = letters->c;
    else return false;
    *at += alone;
    return true;
}

/* Each line is the number of the last one: the letters to 1e-12, what is printed as it is printed.
 */
static void expect_lines(const Row *row, const Json *algebra) {
    ck_assert(algebra != NULL);
    const double x = exact(row);
    const char *result = strrchr(json_text(json_at(algebra, algebra->count - 1), "line", ""), '=');
    const double shown = strtod(result + 1, NULL), unit = last_place(result + 1);
    ck_assert_int_eq(algebra->count, row->p[row->i] == 0 ? 1 : 6);
    expect_near(result, shown, x, unit);
    letters = row;
    for (int64_t n = 0; n < algebra->count && x != 0; n++) {
        const char *line = json_text(json_at(algebra, n), "line", "");
        if (strstr(line, "...")) continue;
        const char *rest = strchr(line, '=') + 1;
        double value;
        ck_assert_msg(read_sum(&rest, &value, read_letter), "no arithmetic: %s", line);
        if (n < 4) expect_near(line, value, x, 1e-12);
        else ck_assert_msg(fabs(value - shown) <= 0.5001 * unit, "%s: %.17g", line, value);
    }
}

static void name_letters(Row *row) {
    int n = 1;
    row->of[0] = row->i;
    for (int64_t j = 0; j < row->size && n < 4; j++)
        if (j != row->i && row->p[j] != 0) row->of[n++] = j;
}

static Row row_of(const Nudged *n) {
    const Json *shape = json_get(n->y, "shape");
    const Json *factor = json_get(n->nudge, "factor");
    const int64_t C = (int64_t)json_at(shape, shape->count - 1)->number;
    Row row = {.i = n->i % C, .size = C, .c = factor ? factor->number : 1};
    for (int64_t j = 0; j < C; j++) row.p[j] = element(n->y, "value", n->i - row.i + j);
    for (int64_t j = 0; j < C; j++) row.dy[j] = element(n->y, "grad", n->i - row.i + j);
    name_letters(&row);
    return row;
}

/* The answer about a row, with the weights of the tape or with others. */
static void expect_row(Row row, const char *op) {
    static char p[2048], dy[2048];
    *p = '\0';
    *dy = '\0';
    for (int64_t j = 0; j < row.size; j++) {
        snprintf(p + strlen(p), sizeof p - strlen(p), " %.17g", row.p[j]);
        snprintf(dy + strlen(dy), sizeof dy - strlen(dy), " %.17g", row.dy[j]);
    }
    const Json *answer =
        ask(format("nudge %s %.17g %" PRId64 " -0.1 0.1 3%s\ndZ\ndA\n%s", op, row.c, row.i, p, dy));
    ck_assert_msg(json_get(answer, "algebra"), "%s: %s", op, json_text(answer, "error", ""));
    const double own = row.p[row.i], others = own == 0 ? 0 : 1;
    double sum = 0;
    for (int64_t j = 0; j < row.size; j++) sum += row.p[j] != 0;
    for (int64_t j = 0; j < row.size && *op != 's'; j++)
        if (row.p[j] != 0 && *op == 'e') row.p[j] = 1 / sum;
        else if (row.p[j] != 0)
            row.p[j] = (j == row.i ? exp(4) : 1) / (sum - others + (others ? exp(4) : 0));
    const Json *less = json_at(json_get(answer, "nudge"), 0);
    const Json *more = json_at(json_get(answer, "nudge"), 2);
    for (int64_t j = 0; j < row.size; j++) {
        const double rate = json_number(json_at(json_get(answer, "rates"), j));
        const double slope = json_number(json_at(more, j)) - json_number(json_at(less, j));
        expect_near(op, json_number(json_at(json_get(answer, "weights"), j)), row.p[j], 1e-12);
        expect_near(op, rate, slope / 0.2, 0.003); /* of the third order */
    }
    ck_assert_int_eq(json_get(answer, "says") != NULL, *op != 's' && others > 0);
    expect_lines(&row, json_get(answer, "algebra"));
    ck_assert_int_eq(live_tensors(), 0);
}

LOOP_TEST(algebra_of_softmax, COUNT(lessons) * 10) {
    const char *lesson = lessons[_i / 10];
    Nudged n = {.lesson = format("%s\nseed %d", lesson, _i % 10 + 1)};
    n.lesson = strdup(n.lesson);
    open_lesson(n.lesson);
    for (const Json *step = steps->first; step; step = step->next) {
        if (!read_step(&n, step) || strcmp(n.kind, "softmax") != 0) continue;
        n.i = json_integer(step, "look", json_integer(step, "most", 0));
        const Row look = row_of(&n);
        expect_lines(&look, json_get(step, "algebra"));
        const int64_t size = json_get(n.x, "value")->count;
        for (n.i = 0; n.i < size; n.i += 3) {
            expect_row(row_of(&n), "softmax");
            expect_row(row_of(&n), "equal_scores");
            expect_row(row_of(&n), "one_takes_all");
        }
    }
    close_lesson();
    free((char *)n.lesson);
}

TEST(algebra_of_long_rows) {
    Row row = {.i = 2, .size = 12, .c = 1};
    for (int64_t j = 0; j < row.size; j++) row.p[j] = (double)(j + 1) / 78;
    for (int64_t j = 0; j < row.size; j++) row.dy[j] = (double)j - 5.3;
    name_letters(&row);
    expect_row(row, "softmax");
    const Json *answer = ask("nudge softmax 1 1 0 0 1 0.1 0.2 0.3 0.2 0.2\ndZ\ndA\n1 2 3 4 5");
    const Json *lines = json_get(answer, "algebra");
    ck_assert_str_eq(json_text(json_at(lines, 0), "line", ""),
                     "`dZ_1` = `p` (1 - `p`) `dA_1` - `p r dA_0` - ...");
    ck_assert_str_eq(json_text(json_at(lines, 3), "line", ""),
                     "= `p` (`dA_1` - [`p dA_1` + `r dA_0` + ...])");
    ck_assert_str_eq(json_text(json_at(lines, 5), "line", ""), "= 0.20 x (2.0 - [3.2]) = -0.24");
    ask_no_more();
}

/* ---- what is said, what is refused ----------------------------------------------------------- */

static const Json *said_at(const char *at) {
    const Json *step = steps->first;
    while (step && strcmp(json_text(step, "at", ""), at) != 0) step = step->next;
    return json_get(json_get(step, "nudge"), "says");
}

static void expect_said(const char *at, int64_t look, const char *words) {
    const Json *said = json_at(said_at(at), look);
    ck_assert_msg(said && strstr(said->text, words), "%s says %s", at, said ? said->text : "");
}

TEST(words_of_a_nudge) {
    open_lesson("2");
    expect_said("b4.0", 0, "A number of `A` meets one row of `V`, and moves one row of `Y`.");
    expect_said("b4.0", 0, "to take rows with rows, `V` is turned over.");
    expect_said("b4.1", 0, "to take columns with columns, `A` is turned over.");
    expect_said("b3.0", 0, "One number of `Z` grows, and its weight in `A` grows.");
    expect_said("b3.0", 0, "a row of the Jacobian of softmax");
    ck_assert(!strstr(json_at(said_at("b3.0"), 0)->text, "`p"));
    expect_said(
        "b3.0", 1,
        "by the share `h`, the sum of the row by `p h`; so `r` loses `p r h`, and `p` gains "
        "what all others lose.");
    expect_said("b3.0", 1, "as fast as its `dA` says");
    ck_assert_int_eq(said_at("b3.0")->count, 2);
    ck_assert(!strstr(json_at(said_at("b3.0"), 0)->text, "sees no key"));
    close_lesson();
    open_lesson("3"); /* [pad] sees none */
    expect_said("b3.0", 0, "In a row that sees no key all weights are 0.");
    close_lesson();
    open_lesson("6"); /* y = x W' */
    expect_said("b7.0", 0, "A product takes rows with columns: nothing is turned over.");
    expect_said("b7.1", 0, "so `dY` is turned over.");
    close_lesson();
}

TEST(requests_that_cannot_be) {
    static const char *const wrong[] = {"nudge nonsense 1 0 -1 1 3 0.5",
                                        "nudge softmax 1 0 -1 1 3",
                                        "nudge softmax 1 2 -1 1 3 0.5 0.5",
                                        "nudge softmax 1 0 -1 1 0 0.5 0.5",
                                        "nudge softmax 1 0 -1 1 4000 0.5 0.5",
                                        "nudge tanh 1 0 -1 1 3 0.5 0.5",
                                        "nudge softmax 1 0 -1 1 3 0.5 0.5 x",
                                        "nudge softmax",
                                        "nudge equal_scores 1 0 -1 1 3 0.5 0.5",
                                        "nudge softmax 1 0 -1 1 3 0.5 0.5\ndZ\ndA",
                                        "nudge softmax 1 0 -1 1 3 0.5 0.5\ndZ\ndA\n1",
                                        "nudge softmax 1 0 -1 1 3 0.5 0.5\ndZ\ndA\n1 2 3",
                                        "nudge tanh 1 0 -1 1 3 0.5\ndZ\ndA\n1",
                                        "nudge ",
                                        "nudge softmax 1 nan -1 1 3 0.5 0.5"};
    for (int i = 0; i < COUNT(wrong); i++)
        ck_assert_str_eq(json_text(ask(wrong[i]), "error", "none"),
                         "a nudge is an op, its factor, a place, the first nudge and the last, how "
                         "many, and numbers");
    const Json *read = ask("nudge log 1 0 -1 1 3 0.5"); /* log of -0.5 */
    ck_assert_str_eq(json_at(json_at(json_get(read, "nudge"), 0), 0)->text, "NaN");
    ask_no_more();
}

int main(void) { return run_tests("nudge"); }
