/* test_explain.c - the lessons of build/explain: their numbers are computed once more here, from
 * the tensors on the tape. And the program, its page, its text and its sentences.
 *
 * build/explain --text --lesson 2 >tests/golden/explain_lesson2.txt makes the golden text.
 */
#include "../common.h"
#include "../common_page.h"
#include "../common_program.h"
#include "common_line.h"

#include "../../../examples/explain/page/check.h"
#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/page/live.h"
#include "../../../examples/explain/rules/wrong.h"
#include "../../../examples/explain/steps/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KB = 1000, PAGE_SIZE = 1 << 21 };

/* The lessons and the second half of lesson 3 as they are, and with other flags. */
static const struct {
    int number;
    LessonOptions options;
} cases[] = {
    {1, {.dropout = -1, .seed = LESSON_SEED}},
    {2, {.dropout = -1, .seed = LESSON_SEED}},
    {3, {.dropout = -1, .seed = LESSON_SEED}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .part = 'b'}},
    {4, {.dropout = -1, .seed = LESSON_SEED}},
    {5, {.dropout = -1, .seed = LESSON_SEED}},
    {6, {.dropout = -1, .seed = LESSON_SEED}},
    {6, {.dropout = -1, .seed = LESSON_SEED, .additive = true}},
    {1, {.dropout = -1, .seed = 7, .queries = 2, .keys = 6}},
    {1, {.dropout = -1, .seed = LESSON_SEED, .queries = 1, .keys = 1}},
    {2, {.dropout = -1, .seed = LESSON_SEED, .no_scale = true}},
    {2, {.dropout = -1, .seed = 1, .queries = 1, .keys = 1, .size = 1}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .causal = -1, .no_scale = true}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .lengths = true, .window = true, .queries = 6}},
    {3, {.dropout = -1, .seed = 4, .window = true, .keys = 6, .words = "a b c"}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .no_mask = true}},
    {3, {.dropout = -1, .seed = 9, .queries = 2, .keys = 3}},
    {3, {.dropout = -1, .seed = 9, .queries = 1, .keys = 1}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .causal = -1, .no_scale = true, .part = 'b'}},
    {3, {.dropout = -1, .seed = 2, .lengths = true, .window = true, .part = 'b'}},
    {3, {.dropout = -1, .seed = LESSON_SEED, .no_mask = true, .part = 'b'}},
    {3, {.dropout = -1, .seed = 10, .queries = 5, .keys = 2, .part = 'b'}},
    {3, {.dropout = -1, .seed = 9, .queries = 1, .keys = 1, .part = 'b'}},
    {4, {.dropout = -1, .seed = 3, .tokens = 4, .size = 3, .causal = true}},
    {4, {.dropout = 0, .seed = LESSON_SEED}},
    {4, {.dropout = 0.9, .seed = 2, .tokens = 1, .size = 1}},
    {4, {.dropout = -1, .seed = LESSON_SEED, .words = "one two three four five"}},
    {5, {.dropout = 0.5, .seed = 8, .heads = 2, .tokens = 3, .size = 3, .causal = true}},
    {5, {.dropout = -1, .seed = LESSON_SEED, .heads = 1, .no_scale = true}},
    {5, {.dropout = 0.5, .seed = 4, .heads = 1, .tokens = 1, .size = 1}},
    {6, {.dropout = -1, .seed = 1, .tokens = 2}},
    {6, {.dropout = -1, .seed = 5, .tokens = 1, .additive = true}},
    {6, {.dropout = -1, .seed = LESSON_SEED, .step = 150}},
};
enum { CASES = sizeof cases / sizeof *cases };
enum { PARTS = LESSONS + 1 }; /* the first cases */
enum { LESSON_1, LESSON_2, LESSON_3, LESSON_3B, LESSON_4, LESSON_5, LESSON_6 };

/* The options of a lesson as it is. */
static LessonOptions own_options(int part) {
    LessonOptions options = LESSON_OPTIONS;
    options.part = cases[part].options.part;
    return options;
}

/* ---- the lesson as data ---------------------------------------------------------------------- */

static Lesson lesson;
static char *written; /* as lesson_write_json wrote it */
static char *json;    /* the same, which the tree has overwritten */
static size_t json_size;
static Json *tree;
static const Json *lines;
static const Json *tensors;
static const Json *questions;

static void open_lesson(int number, LessonOptions options) {
    FILE *file = open_memstream(&written, &json_size);
    ck_assert_ptr_nonnull(file);
    ck_assert_msg(lesson_open(&lesson, number, options), "%s", tensor_error());
    ck_assert_msg(lesson_write_json(&lesson, file), "%s", tensor_error());
    ck_assert_int_eq(fclose(file), 0);
    json = strdup(written);
    tree = json_read(json);
    ck_assert_msg(tree != NULL, "%s", tensor_error());
    ck_assert_msg(check_tape(json_get(tree, "tape")), "%s", tensor_error());
    lines = json_get(json_get(tree, "tape"), "lines");
    tensors = json_get(json_get(tree, "tape"), "tensors");
    questions = json_get(tree, "questions");
}

static void open_case(int i) { open_lesson(cases[i].number, cases[i].options); }

static void close_case(void) {
    lesson_close(&lesson);
    free(tree);
    free(json);
    free(written);
}

static const Json *tensor_at(const Json *number) {
    return number && number->number >= 0 ? json_at(tensors, (int64_t)number->number) : NULL;
}

static const char *name_of(const Json *tensor) { return json_text(tensor, "name", ""); }

static double value(const Json *tensor, int64_t i) {
    return json_number(json_at(json_get(tensor, "value"), i));
}

static double grad(const Json *tensor, int64_t i) {
    return json_number(json_at(json_get(tensor, "grad"), i));
}

static const Json *find(const char *name) {
    const Json *tensor = tensors->first;
    while (tensor && strcmp(name_of(tensor), name) != 0) tensor = tensor->next;
    return tensor;
}

/* J[j, i]: a column of the JSON holds pairs of j and a number, or is a reason. */
static double jacobian(const Json *derivative, int64_t j, int64_t i) {
    const Json *pair = json_at(json_get(derivative, "jacobian"), i)->first;
    for (; pair; pair = pair->next->next)
        if ((int64_t)pair->number == j) return json_number(pair->next);
    return 0;
}

/* The line of the tape that a line of the JSON shows. */
static TapeLine line_of(const Json *line) {
    TapeLine found;
    ck_assert(tape_line((int)json_integer(line, "line", -1), &found));
    return found;
}

static void expect_near(const char *what, double a, double b, double tolerance) {
    ck_assert_msg(fabs(a - b) <= tolerance * fmax(1, fabs(b)), "lesson %d, %s: %.17g and %.17g",
                  lesson.number, what, a, b);
}

/* What is told at a step; NULL: it is no step. */
static const Json *told_at(const char *at) {
    const Json *told = json_get(tree, "steps")->first;
    while (told && strcmp(json_text(told, "at", ""), at) != 0) told = told->next;
    return told;
}

/* The text of a step. */
static const char *text_of(const char *at) {
    ck_assert_msg(told_at(at) != NULL, "lesson %d says nothing at %s", lesson.number, at);
    return json_text(told_at(at), "text", "");
}

static void expect_told(const char *at, const char *words) {
    ck_assert_msg(strstr(text_of(at), words) != NULL, "lesson %d, %s: \"%s\" does not say: %s",
                  lesson.number, at, text_of(at), words);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The JSON has as many digits as the type needs. */
static double rounded(double number, DType dtype) {
    return dtype == F32 ? (double)(float)number : number;
}

/* The numbers in the JSON must equal the numbers on the tape. */
static void expect_same(const Json *tensor, const Tensor *x, const char *key) {
    const Json *list = json_get(tensor, key);
    double *numbers = malloc((size_t)tensor_numel(x) * sizeof *numbers);
    ck_assert(tensor_to_doubles(x, numbers));
    ck_assert_int_eq(list->count, tensor_numel(x));
    for (int64_t i = 0; i < list->count; i++)
        ck_assert_msg(same_number(rounded(json_number(json_at(list, i)), x->dtype), numbers[i], 0),
                      "%s, %s[%d]", name_of(tensor), key, (int)i);
    free(numbers);
}

CASE("lessons")
LOOP_TEST(numbers_are_those_of_the_tape, CASES) {
    open_case(_i);
    for (const Json *line = lines->first; line; line = line->next) {
        const TapeLine made = line_of(line);
        const Json *x = json_get(line, "in")->first;
        expect_same(tensor_at(json_get(line, "out")), made.out, "value");
        ck_assert_str_eq(json_text(line, "op", ""), made.op);
        ck_assert_int_eq(json_get(line, "in")->count, made.n_in);
        for (int k = 0; k < made.n_in; k++) {
            if (made.in[k]) expect_same(tensor_at(x), made.in[k], "value");
            if (made.in[k] && made.in[k]->grad) expect_same(tensor_at(x), made.in[k]->grad, "grad");
            x = x->next;
        }
    }
    close_case();
}

/* Sum over the lines that read the tensor, and over j, of dy[j] J[j, i]. */
static double summed_terms(const Json *tensor, int64_t i) {
    double sum = 0;
    for (const Json *line = lines->first; line; line = line->next) {
        const Json *made = tensor_at(json_get(line, "out"));
        const Json *x = json_get(line, "in")->first;
        for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
            if (d->kind == JSON_OBJECT && tensor_at(x) == tensor)
                for (int64_t j = 0; j < size_of_tensor(made); j++)
                    sum += grad(made, j) * jacobian(d, j, i);
            x = x->next;
        }
    }
    return sum;
}

LOOP_TEST(terms_sum_to_the_gradients, CASES) {
    int with_gradient = 0;
    open_case(_i);
    for (const Json *tensor = tensors->first; tensor; tensor = tensor->next) {
        if (!json_get(tensor, "grad")) continue;
        with_gradient++;
        const bool is_loss = strcmp(name_of(tensor), "loss") == 0;
        for (int64_t i = 0; i < size_of_tensor(tensor); i++)
            expect_near(name_of(tensor), is_loss ? 1 : summed_terms(tensor, i), grad(tensor, i),
                        1e-12);
    }
    ck_assert_int_gt(with_gradient, 6);
    close_case();
}

/* The largest error of a line's check; NaN if one is NaN. */
static double worst_of(const Json *line) {
    double worst = 0;
    for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
        const double error = d->kind == JSON_OBJECT ? json_number(json_get(d, "worst")) : 0;
        if (error > worst || isnan(error)) worst = error;
    }
    return worst;
}

static bool is_green(const Json *line) { return worst_of(line) < 1e-6; }

LOOP_TEST(checks_agree, CASES) {
    int checked = 0;
    open_case(_i);
    for (const Json *line = lines->first; line; line = line->next) {
        ck_assert_msg(is_green(line), "lesson %d, %s: %g", lesson.number, json_text(line, "op", ""),
                      worst_of(line));
        for (const Json *d = json_get(line, "backward")->first; d; d = d->next)
            checked += d->kind == JSON_OBJECT;
    }
    ck_assert_int_gt(checked, 6);
    close_case();
}

LOOP_TEST(every_tensor_has_a_name, CASES) {
    open_case(_i);
    for (const Json *tensor = tensors->first; tensor; tensor = tensor->next) {
        ck_assert_msg(*name_of(tensor), "lesson %d: a tensor of %d without a name", lesson.number,
                      (int)size_of_tensor(tensor));
        ck_assert_msg(find(name_of(tensor)) == tensor, "lesson %d: two tensors are called %s",
                      lesson.number, name_of(tensor));
    }
    close_case();
}

TEST(sizes) {
    size_t all = 0;
    for (int i = 0; i < PARTS; i++) {
        open_case(i);
        ck_assert_msg(json_size < 250 * KB, "lesson %d has %zu bytes", lesson.number, json_size);
        all += json_size;
        close_case();
    }
    ck_assert_msg(all < 900 * KB, "the lessons have %zu bytes", all);
}

/* ---- reasons for zeros ----------------------------------------------------------------------- */

enum { MASKED, WEIGHT_0, WEIGHT_1, DROPPED, FLAT, TIMES_0, UNUSED, NOTHING_ARRIVES, REASONS };
static const char *const reasons[] = {"masked", "weight is 0", "weight is 1", "dropped",
                                      "flat",   "times 0",     "unused",      "nothing arrives"};

/* Does the mask of a masked_softmax (1, Q, K) ignore key k of query q? Inputs: the scores, the
 * lengths (1), keep (1, 1, 1, K), the window (1, Q, K), any of them absent. */
static bool is_ignored(const Json *line, int64_t i) {
    const Json *in = json_get(line, "in");
    const Json *lengths = tensor_at(json_at(in, 1));
    const Json *keep = tensor_at(json_at(in, 2));
    const Json *window = tensor_at(json_at(in, 3));
    const Json *shape = json_get(tensor_at(json_at(in, 0)), "shape");
    const int64_t Q = (int64_t)json_at(shape, 1)->number, K = (int64_t)json_at(shape, 2)->number;
    const int64_t q = i / K % Q, k = i % K;
    return (lengths && (double)k >= value(lengths, 0)) || (keep && value(keep, k) == 0) ||
           (window && value(window, i) == -(double)INFINITY) || (lesson.options.causal && k > q);
}

/* Column i of x (rows, columns) is all 0. */
static bool zero_column(const Json *x, int64_t columns, int64_t i) {
    for (int64_t r = 0; r < size_of_tensor(x) / columns; r++)
        if (value(x, r * columns + i) != 0) return false;
    return true;
}

/* The reason, from the numbers on the tape alone, why element i of input k has no influence. */
static int expected_reason(const Json *line, int k, int64_t i) {
    const char *op = json_text(line, "op", "");
    const Json *in = json_get(line, "in");
    const Json *x = tensor_at(json_at(in, 0));
    const double y = value(tensor_at(json_get(line, "out")), i);
    if (strcmp(op, "masked_softmax") == 0) {
        if (y == 1) return WEIGHT_1;
        return is_ignored(line, i) ? MASKED : WEIGHT_0;
    }
    if (strcmp(op, "softmax") == 0) {
        if (y == 1) return WEIGHT_1;
        return y == 0 ? WEIGHT_0 : REASONS;
    }
    if (strcmp(op, "masked_fill") == 0)
        return value(tensor_at(json_at(in, 1)), i) != 0 ? MASKED : REASONS;
    if (strcmp(op, "dropout") == 0) return y == 0 ? DROPPED : REASONS;
    if (strcmp(op, "relu") == 0) return value(x, i) <= 0 ? FLAT : REASONS;
    if (strcmp(op, "tanh") == 0) return fabs(y) == 1 ? FLAT : REASONS;
    if (strcmp(op, "linear") == 0 && k == 1) {
        const int64_t columns =
            (int64_t)json_at(json_get(tensor_at(json_at(in, 1)), "shape"), 1)->number;
        return zero_column(x, columns, i % columns) ? TIMES_0 : REASONS;
    }
    if (strcmp(op, "mul") == 0) /* by counts: 0 for padding */
        return value(tensor_at(json_at(in, 1)),
                     i / (int64_t)json_at(json_get(x, "shape"), 2)->number) == 0
                   ? TIMES_0
                   : REASONS;
    if (strcmp(op, "bmm") == 0 || strcmp(op, "matmul") == 0) return TIMES_0;
    ck_abort_msg("lesson %d: %s has a zero that this test does not know", lesson.number, op);
    return REASONS;
}

static int listed_reason(const Json *derivative, int64_t i) {
    const Json *column = json_at(json_get(derivative, "jacobian"), i);
    for (int r = 0; r < NOTHING_ARRIVES; r++)
        if (column->kind == JSON_STRING && strcmp(column->text, reasons[r]) == 0) return r;
    return REASONS;
}

/* An element that changes no element of the result has a reason in the list. If another element has
 * the gradient 0, all its terms are 0. Adds to seen[reason]. */
static void check_element(const Json *line, const Json *d, int k, int64_t i, int seen[REASONS]) {
    const Json *made = tensor_at(json_get(line, "out"));
    const double dx = json_number(json_at(json_get(d, "dx"), i));
    bool known = false, arrives = false;
    for (int64_t j = 0; j < size_of_tensor(made); j++) {
        const bool term = jacobian(d, j, i) != 0;
        known = known || term;
        arrives = arrives || (term && grad(made, j) != 0);
    }
    const int listed = listed_reason(d, i);
    ck_assert_msg(known == (listed == REASONS), "lesson %d, %s, element %d: %s", lesson.number,
                  json_text(line, "op", ""), (int)i, listed < REASONS ? reasons[listed] : "none");
    if (!known) {
        const int expected = expected_reason(line, k, i);
        ck_assert_msg(listed == expected, "lesson %d, %s, element %d: %s", lesson.number,
                      json_text(line, "op", ""), (int)i, reasons[listed]);
        ck_assert(dx == 0);
        seen[listed]++;
    } else if (dx == 0) {
        ck_assert_msg(!arrives, "lesson %d, %s: terms cancel", lesson.number,
                      json_text(line, "op", ""));
        seen[NOTHING_ARRIVES]++;
    }
}

static void check_reasons(int seen[REASONS]) {
    for (const Json *line = lines->first; line; line = line->next) {
        int k = 0;
        for (const Json *d = json_get(line, "backward")->first; d; d = d->next) {
            const int64_t n = d->kind == JSON_OBJECT ? json_get(d, "dx")->count : 0;
            for (int64_t i = 0; i < n; i++) check_element(line, d, k, i, seen);
            k++;
        }
    }
}

LOOP_TEST(reasons_are_right, CASES) {
    int seen[REASONS] = {0};
    open_case(_i);
    check_reasons(seen);
    close_case();
}

TEST(every_reason_occurs) {
    int seen[REASONS] = {0};
    for (int i = 0; i < PARTS; i++) {
        open_case(i);
        check_reasons(seen);
        close_case();
    }
    for (int r = 0; r < REASONS; r++)
        ck_assert_msg(r == UNUSED || seen[r] > 0, "no lesson has a zero for the reason: %s",
                      reasons[r]);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* Another value of a setting. */
static void choose_other(const Json *setting, LessonOptions *options) {
    const char *kind = json_text(setting, "kind", "");
    const double value = json_get(setting, "value")->number;
    double number = value + 1;
    if (strcmp(kind, "number") == 0) number = 0.5;
    if (strcmp(kind, "switch") == 0) number = value == 0;
    if (strcmp(json_text(setting, "key", ""), "rate") == 0) options->step = 1;
    ck_assert_msg(lesson_set(options, json_text(setting, "key", ""), format("%g", number)), "%s",
                  tensor_error());
}

/* Every setting of a lesson changes its tape, and leaves the checks as they are. */
LOOP_TEST(every_setting_changes_the_tape, PARTS) {
    open_case(_i);
    char *own = strdup(strstr(written, "\"tape\":"));
    const int64_t n = json_get(tree, "settings")->count;
    close_case();
    for (int64_t i = 0; i < n; i++) {
        LessonOptions options = own_options(_i);
        open_case(_i);
        choose_other(json_at(json_get(tree, "settings"), i), &options);
        close_case();
        ck_assert_ptr_null(lesson_refuses(cases[_i].number, &options));
        open_lesson(cases[_i].number, options);
        ck_assert_msg(strcmp(strstr(written, "\"tape\":"), own) != 0, "lesson %d, setting %d",
                      lesson.number, (int)i);
        for (const Json *line = lines->first; line; line = line->next) ck_assert(is_green(line));
        close_case();
    }
    free(own);
}

/* The JSON has exactly the settings that the lesson takes. */
LOOP_TEST(settings_of_the_lesson, PARTS) {
    static const char *const keys[] = {
        "heads", "queries", "keys",     "tokens",  "size",    "step",   "rate",     "dropout",
        "seed",  "causal",  "no-scale", "no-mask", "lengths", "window", "additive", "pad-in-loss"};
    open_case(_i);
    int64_t taken = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        LessonOptions options = LESSON_OPTIONS;
        ck_assert(lesson_set(&options, keys[i], strcmp(keys[i], "dropout") ? "1" : "0.5"));
        options.part = lesson.kind->part;
        taken += lesson_refuses(lesson.number, &options) == NULL;
    }
    ck_assert_int_eq(json_get(tree, "settings")->count, taken);
    close_case();
}

/* Lesson 3 has a causal mask of its own; the other lessons have none. */
TEST(a_mask_of_its_own) {
    static const char *const said[] = {"", " --causal", " --no-causal"};
    char command[64];
    for (int i = 0; i < 9; i++) {
        const int number = 3 + i % 3;
        LessonOptions options = LESSON_OPTIONS;
        if (i >= 3) ck_assert(lesson_set(&options, "causal", i < 6 ? "1" : "0"));
        open_lesson(number, options);
        snprintf(command, sizeof command, "build/explain --lesson %d%s", number, said[i / 3]);
        ck_assert_str_eq(json_text(tree, "command", ""), command);
        ck_assert_int_eq(lesson.options.causal, i < 3 ? number == 3 : i < 6);
        close_case();
    }
}

TEST(settings_that_cannot_be) {
    LessonOptions options = LESSON_OPTIONS;
    FAILS(lesson_set(&options, "head", "1"), "there is no setting \"head\"");
    FAILS(lesson_set(&options, "heads", "0"), "heads is \"0\": it must be an integer from 1 to 64");
    FAILS(lesson_set(&options, "heads", "2.5"),
          "heads is \"2.5\": it must be an integer from 1 to 64");
    FAILS(lesson_set(&options, "heads", "3 4"),
          "heads is \"3 4\": it must be an integer from 1 to 64");
    FAILS(lesson_set(&options, "dropout", "nan"),
          "dropout is \"nan\": it must be a number from 0 to 0.9");
    FAILS(lesson_set(&options, "seed", "1e300"),
          "seed is \"1e300\": it must be an integer from 0 to 9007199254740991");
    FAILS(lesson_set(&options, "causal", ""), "causal is \"\": it must be an integer from 0 to 1");
    ck_assert(memcmp(&options, &(LessonOptions){.dropout = -1, .seed = LESSON_SEED},
                     offsetof(LessonOptions, causal)) == 0);
}

/* Lesson 6 shows step N of the training whose losses it lists. */
TEST(steps_of_lesson_6) {
    static const int64_t steps[] = {0, 1, 37, 199};
    for (int i = 0; i < 4; i++) {
        LessonOptions options = LESSON_OPTIONS;
        options.step = steps[i];
        open_lesson(6, options);
        const Json *losses = json_get(tree, "losses");
        ck_assert_int_eq(losses->count, LESSON_STEPS);
        expect_near("the loss", json_number(json_at(losses, steps[i])), value(find("loss"), 0),
                    1e-5);
        ck_assert_ptr_nonnull(strstr(json_text(json_get(tree, "cover"), "lead", ""),
                                     format("Here is step %d of them", (int)steps[i] + 1)));
        close_case();
    }
}

/* ---- the step of SGD --------------------------------------------------------------------------
 */

/* Is it the result of a line? */
static bool is_made(const Json *tensor) {
    const Json *line = lines->first;
    while (line && tensor_at(json_get(line, "out")) != tensor) line = line->next;
    return line != NULL;
}

/* The numbers that learn of the lesson that is open, after one more step by the library: the update
 * of nn/sgd.c. */
typedef struct {
    char name[32];
    Tensor *x;
} Learning;
enum { MOST_LEARNING = 16 };

static Tensor *typed_numbers(const Json *tensor, const char *key) {
    const Json *list = json_get(tensor, key);
    double numbers[256];
    ck_assert(list && list->count <= 256);
    for (int64_t i = 0; i < list->count; i++) numbers[i] = json_number(json_at(list, i));
    tensor_set_default_dtype(F64);
    return tensor_from_doubles(SHAPE(list->count), numbers);
}

static int take_step(double rate, Learning *learning) {
    int n = 0;
    for (const Json *x = tensors->first; x; x = x->next) {
        if (!json_get(x, "grad") || is_made(x)) continue;
        ck_assert_int_lt(n, MOST_LEARNING);
        snprintf(learning[n].name, sizeof learning->name, "%s", name_of(x));
        learning[n].x = typed_numbers(x, "value");
        Tensor *dx = typed_numbers(x, "grad");
        tensor_add_(learning[n++].x, dx, -rate);
        tensor_release(dx);
    }
    return n;
}

/* To the last digit, and with another rate: step after step is the library's SGD. */
LOOP_TEST(a_step_is_sgd, PARTS) {
    Learning learning[MOST_LEARNING];
    LessonOptions options = own_options(_i);
    for (options.step = 0; options.step < 3; options.step++) {
        open_lesson(cases[_i].number, options);
        const int n = take_step(lesson.options.rate, learning);
        ck_assert_int_gt(n, 0);
        close_case();
        options.step++;
        open_lesson(cases[_i].number, options);
        for (int i = 0; i < n; i++) {
            expect_same(find(learning[i].name), learning[i].x, "value");
            tensor_release(learning[i].x);
        }
        close_case();
        options.step--;
        options.rate = 0.03;
    }
}

static double sgd_loss(int64_t i) {
    return json_number(json_at(json_get(json_get(tree, "sgd"), "losses"), i));
}

/* Ten steps have passed through the tapes of each step before them. */
LOOP_TEST(losses_are_those_of_the_tapes, PARTS) {
    double losses[4];
    LessonOptions options = own_options(_i);
    for (options.step = 0; options.step < 4; options.step++) {
        open_lesson(cases[_i].number, options);
        losses[options.step] = value(find("loss"), 0);
        const Json *next = json_get(json_get(tree, "sgd"), "next");
        ck_assert_int_eq(next != NULL, options.step == 0);
        close_case();
    }
    options.step = 10;
    open_lesson(cases[_i].number, options);
    ck_assert_int_eq(json_get(json_get(tree, "sgd"), "losses")->count, 11);
    for (int64_t i = 0; i < 4; i++) expect_near("a loss", sgd_loss(i), losses[i], 1e-5);
    expect_near("the last loss", sgd_loss(10), value(find("loss"), 0), 1e-5);
    ck_assert(sgd_loss(10) < sgd_loss(0));
    close_case();
    options.step = 0;
    open_lesson(cases[_i].number, options);
    expect_near("the next loss", json_number(json_get(json_get(tree, "sgd"), "next")->first),
                losses[1], 1e-5);
    close_case();
}

/* Of the rates that a lesson offers the second one learns, with the third one the loss grows, which
 * the words read from the losses, and steps that are far too large end in NaN and in no error. */
LOOP_TEST(rates_of_a_lesson, PARTS) {
    LessonOptions options = own_options(_i);
    open_lesson(cases[_i].number, options);
    const double *rates = lesson.kind->rates;
    close_case();
    options.step = 100;
    options.rate = rates[1];
    open_lesson(cases[_i].number, options);
    ck_assert(sgd_loss(100) < 0.35 * sgd_loss(0) && sgd_loss(100) <= sgd_loss(10));
    close_case();
    options.step = 1;
    options.rate = rates[2];
    open_lesson(cases[_i].number, options);
    ck_assert(sgd_loss(1) > sgd_loss(0));
    expect_told("sgd", "It grew: the step was too large");
    close_case();
    options.step = LESSON_STEPS;
    options.rate = 10;
    open_lesson(cases[_i].number, options);
    if (isnan(value(find("loss"), 0)))
        expect_told("sgd", "the numbers are too large to compute with: NaN means not a number");
    else ck_assert_int_eq(cases[_i].number, 1);
    close_case();
}

/* A larger loss on the way is said, too, but not one that only rounding makes larger. */
TEST(words_of_the_losses) {
    LessonOptions options = {.dropout = -1, .seed = LESSON_SEED, .rate = 1, .step = 5};
    open_lesson(2, options);
    expect_told("sgd", "But 1 of them made it larger: the step was too large");
    close_case();
    options.rate = 0.02;
    open_lesson(2, options);
    expect_told("sgd", "The loss was 4.62, and after 5 steps it is 3.38. Each step needs");
    close_case();
    options.rate = 0.2;
    options.step = LESSON_STEPS;
    open_lesson(2, options);
    expect_told("sgd", "That is training");
    close_case();
}

/* ---- edits ----------------------------------------------------------------------------------- */

PROGRAM_CASE("long", .is_long = true)
/* Every leaf can be edited: the tape shows the number, and all checks are green. */
LOOP_TEST(edits_change_the_leaves, CASES) {
    static char names[64][32];
    int leaves = 0;
    open_case(_i);
    for (const Json *x = tensors->first; x; x = x->next)
        if (!is_made(x)) snprintf(names[leaves++], sizeof *names, "%s", name_of(x));
    close_case();
    ck_assert_int_ge(leaves, 4);
    for (int i = 0; i < leaves; i++) {
        const LessonEdit edits[] = {{names[i], 0, 1}, {names[i], 0, 0}};
        LessonOptions options = cases[_i].options;
        options.edits = edits;
        options.num_edits = 2; /* the last one counts */
        open_lesson(cases[_i].number, options);
        ck_assert_msg(options.step > 0 || value(find(names[i]), 0) == 0, "lesson %d, %s",
                      lesson.number, names[i]);
        for (const Json *line = lines->first; line; line = line->next)
            ck_assert_msg(is_green(line), "lesson %d, %s = 0: %s", lesson.number, names[i],
                          json_text(line, "op", ""));
        close_case();
    }
}

CASE("lessons")
/* An edit changes one number, the last of W_q, and what is computed from it; the others are drawn
 * as without it. */
TEST(an_edit_changes_one_number) {
    const LessonEdit edit = {"W_q", 11, -0.25};
    LessonOptions options = LESSON_OPTIONS;
    open_case(LESSON_5);
    Json *const before = tree;
    char *const text = json;
    lesson_close(&lesson);
    free(written);
    options.edits = &edit;
    options.num_edits = 1;
    open_lesson(5, options);
    const Json *x = json_get(json_get(before, "tape"), "tensors")->first;
    for (const Json *y = tensors->first; y; y = y->next, x = x->next)
        for (int64_t i = 0; !is_made(y) && i < size_of_tensor(y); i++)
            if (strcmp(name_of(y), "W_q") == 0 && i == 11) ck_assert(value(y, i) == -0.25);
            else ck_assert(value(y, i) == value(x, i));
    ck_assert(value(find("loss"), 0) != value(x, 0));
    close_case();
    free(before);
    free(text);
}

/* Training begins with the edited numbers, and each step continues from the step before. */
TEST(training_begins_with_the_edits) {
    const LessonEdit edit = {"W_1.weight", 0, 3};
    LessonOptions options = LESSON_OPTIONS;
    double first = 0;
    options.edits = &edit;
    options.num_edits = 1;
    for (int step = 0; step < 2; step++) {
        options.step = step;
        open_lesson(6, options);
        const Json *W = find("W_1.weight");
        if (step == 0) ck_assert(value(W, 0) == 3);
        else ck_assert(value(W, 0) == first);
        expect_near("the loss", json_number(json_at(json_get(tree, "losses"), step)),
                    value(find("loss"), 0), 1e-5);
        first = value(W, 0) - 0.02 * grad(W, 0);
        close_case();
    }
}

static void expect_no_edit(int number, LessonEdit edit, const char *sentence) {
    LessonOptions options = LESSON_OPTIONS;
    options.edits = &edit;
    options.num_edits = 1;
    options.lengths = isnan(edit.value);
    FAILS(lesson_open(&lesson, number, options), sentence);
    lesson_close(&lesson);
}

TEST(edits_that_cannot_be) {
    LessonEdit edit;
    expect_no_edit(5, (LessonEdit){"W_z", 0, 1}, "lesson 5 has no leaf with the name W_z");
    expect_no_edit(5, (LessonEdit){"S", 0, 1}, "lesson 5 has no leaf with the name S");
    expect_no_edit(6, (LessonEdit){"loss", 0, 1}, "lesson 6 has no leaf with the name loss");
    expect_no_edit(5, (LessonEdit){"W_q", 12, 1}, "lesson 5: W_q is (6, 2): it has no element 12");
    expect_no_edit(6, (LessonEdit){"W_q.weight", -1, 1},
                   "lesson 6: W_q.weight is (3, 3): it has no element -1");
    expect_no_edit(3, (LessonEdit){"lengths", 0, (double)NAN}, "set: int64 cannot hold nan");
    expect_no_edit(3, (LessonEdit){"lengths", 0, 1}, "lesson 3 has no leaf with the name lengths");
    ck_assert(lesson_read_edit(&edit, "12 -0.5 S / sqrt(d)"));
    ck_assert(edit.index == 12 && edit.value == -0.5);
    ck_assert_str_eq(edit.name, "S / sqrt(d)");
    static const char *const wrong[] = {
        "",         "12", "12 x W_q", "x 1 W_q", "12 1", "12 1 ", "99999999999999999999 1 W_q",
        "1.5 2 W_q"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(!lesson_read_edit(&edit, wrong[i]), "%s", wrong[i]);
        expect_error_like("\"", "\" is no edit: it must be an index, a number and a name");
    }
}

/* ---- wrong rules ----------------------------------------------------------------------------- */

static const struct {
    const char *key;
    const char *ops;     /* whose checks fail; "": none, but a sum of terms */
    const char *lessons; /* that offer it; b: the second half of lesson 3 */
} rules[] = {
    {"softmax", "softmax masked_softmax", "123b456"},
    {"transpose", "transpose", "23b45"},
    {"assign", "", "b45"},
    {"dropout", "dropout", "4"},
    {"mask", "masked_softmax", "3b"},
};
enum { RULES = sizeof rules / sizeof *rules };

static bool is_in(const char *list, const char *word) {
    const char *at = strstr(list, word);
    const char end = at ? at[strlen(word)] : '\0';
    return at && (at == list || at[-1] == ' ') && (end == ' ' || end == '\0');
}

/* Is the gradient of a tensor the sum of its terms? */
static bool sums_up(const Json *tensor) {
    for (int64_t i = 0; json_get(tensor, "grad") && i < size_of_tensor(tensor); i++)
        if (fabs(summed_terms(tensor, i) - grad(tensor, i)) > 1e-3)
            return false; /* NaN is no difference */
    return true;
}

/* Exactly the lines of these ops that have a gradient fail their check, and by a large error. */
static int count_failures(const char *ops) {
    int failures = 0;
    for (const Json *line = lines->first; line; line = line->next) {
        const double worst = worst_of(line);
        const char *op = json_text(line, "op", "");
        const bool failed = !(worst <= 1e-3);
        ck_assert_msg(failed || worst < 1e-6, "lesson %d, %s: %g", lesson.number, op, worst);
        ck_assert_msg(!failed || is_in(ops, op), "lesson %d: %s fails", lesson.number, op);
        failures += failed;
    }
    return failures;
}

/* How many gradients differ from the sum of their terms? */
static int count_wrong_sums(void) {
    int wrong_sums = 0;
    for (const Json *tensor = tensors->first; tensor; tensor = tensor->next)
        wrong_sums += strcmp(name_of(tensor), "loss") != 0 && !sums_up(tensor);
    return wrong_sums;
}

LOOP_TEST(a_rule_fails_its_own_check, PARTS *RULES) {
    const int part = _i / RULES, r = _i % RULES, number = cases[part].number;
    LessonOptions options = own_options(part);
    const bool offers = strchr(rules[r].lessons, options.part ? 'b' : '0' + number) != NULL;
    ck_assert(lesson_set(&options, "rule", rules[r].key));
    open_lesson(number, options);
    const int failures = count_failures(offers ? rules[r].ops : "");
    const int wrong_sums = count_wrong_sums();
    ck_assert_msg((failures > 0) == (offers && *rules[r].ops), "lesson %d, %s: %d failures", number,
                  rules[r].key, failures);
    ck_assert_msg((wrong_sums > 0) == (offers && !*rules[r].ops), "lesson %d, %s: %d wrong sums",
                  number, rules[r].key, wrong_sums);
    ck_assert_str_eq(json_text(tree, "rule", "-"), offers ? rules[r].key : "");
    ck_assert_int_eq(strstr(json_text(tree, "command", ""), " --break ") != NULL, offers);
    close_case();
}

/* A causal mask makes another op of softmax. */
TEST(rules_with_other_settings) {
    LessonOptions options = LESSON_OPTIONS;
    options.causal = true;
    options.dropout = 0.5;
    for (int r = 0; r < RULES; r++) {
        const bool is_mask = r == RULES - 1; /* only lesson 3 has a row without a key */
        ck_assert(lesson_set(&options, "rule", rules[r].key));
        open_lesson(is_mask ? 3 : 4, options);
        ck_assert_int_eq(count_failures(rules[r].ops), *rules[r].ops ? 1 : 0);
        ck_assert_str_eq(json_text(tree, "rule", "-"), rules[r].key);
        close_case();
    }
}

/* A gradient that is NaN in its first row only fails the check. */
TEST(a_nan_fails_the_check) {
    const int64_t lengths[] = {0, 2};
    FILE *file = open_memstream(&written, &json_size);
    Tensor *scores = ag_requires_grad(tensor_randn(SHAPE(1, 2, 2)));
    Tensor *keys = tensor_from_int64s(SHAPE(1, 2), lengths);
    tape_begin();
    tape_keep_grads(true);
    Tensor *loss = ag_sum(ag_square(ag_masked_softmax(scores, keys)));
    Planting planting = {0};
    ck_assert_int_eq(wrong_apply(wrong_find("mask"), &planting), 1);
    ck_assert(ag_backward(loss) && tape_write_json(file));
    tape_end();
    rule_free(&planting);
    ck_assert_int_eq(fclose(file), 0);
    tree = json_read(written);
    ck_assert(isnan(worst_of(json_get(tree, "lines")->first)));
    ck_assert(isnan(tensor_get(scores->grad, 0, 0, 0)));
    ck_assert(isfinite(tensor_get(scores->grad, 0, 1, 0)));
    free(tree);
    free(written);
    tensor_release(scores);
    tensor_release(keys);
}

/* ---- training -------------------------------------------------------------------------------- */

enum { MOST_EDITS = 256 };

/* The loss with each leaf at x - rate dx, of the lesson that is open, which this closes. */
static double loss_after_a_step(LessonOptions options, double rate) {
    static LessonEdit edits[MOST_EDITS];
    static char names[MOST_EDITS][32];
    options.edits = edits;
    for (const Json *x = tensors->first; x; x = x->next)
        for (int64_t i = 0; json_get(x, "grad") && !is_made(x) && i < size_of_tensor(x); i++) {
            const int n = options.num_edits++;
            ck_assert_int_lt(n, MOST_EDITS);
            snprintf(names[n], sizeof *names, "%s", name_of(x));
            edits[n] = (LessonEdit){names[n], i, value(x, i) - rate * grad(x, i)};
        }
    const int number = lesson.number;
    close_case();
    open_lesson(number, options);
    const double loss = value(find("loss"), 0);
    close_case();
    return loss;
}

static void expect_loss(const Json *losses, int64_t i, double loss) {
    const double listed = json_number(json_at(losses, i));
    ck_assert_int_eq(losses->count, LESSON_STEPS);
    ck_assert_msg(same_number(listed, loss, 1e-5 * fabs(loss)), "lesson %d, loss %d: %g and %g",
                  lesson.number, (int)i, listed, loss);
}

PROGRAM_CASE("long", .is_long = true)
/* Training begins with the lesson's numbers, its first step is SGD on all leaves, and it learns;
 * with a wrong rule too, but what it learns is another thing. */
LOOP_TEST(training_is_sgd, PARTS *(RULES + 1)) {
    const int part = _i / (RULES + 1), r = _i % (RULES + 1);
    LessonOptions options = own_options(part);
    ck_assert(lesson_set(&options, "train", "1"));
    ck_assert(lesson_set(&options, "rule", r < RULES ? rules[r].key : ""));
    open_lesson(cases[part].number, options);
    const Json *training = json_get(tree, "training");
    const Json *right = json_get(training, "right");
    const Json *wrong = json_get(training, "wrong");
    const bool has_rule = *json_text(tree, "rule", "") != '\0';
    const int half = options.part ? 'b' : '0' + cases[part].number;
    ck_assert_int_eq(has_rule, r < RULES && strchr(rules[r].lessons, half));
    const double rate = json_get(training, "rate")->number, loss = value(find("loss"), 0);
    ck_assert_int_eq(wrong != NULL, has_rule);
    ck_assert(json_number(json_at(right, LESSON_STEPS - 1)) < 0.4 * loss);
    expect_loss(right, 0, loss);
    if (wrong) {
        expect_loss(wrong, 0, loss);
        ck_assert(json_number(json_at(wrong, 1)) != json_number(json_at(right, 1)));
    }
    Json *const kept = tree;
    char *const text = json;
    tree = NULL;
    json = NULL;
    options.train = false;
    expect_loss(wrong ? wrong : right, 1, loss_after_a_step(options, rate));
    free(kept);
    free(text);
}

CASE("lessons")
/* Without being asked for it is not there. */
LOOP_TEST(training_only_if_asked, PARTS) {
    open_case(_i);
    ck_assert_ptr_null(json_get(tree, "training"));
    ck_assert_int_eq(json_get(tree, "losses") != NULL, lesson.number == 6);
    close_case();
}

TEST(no_such_rule) {
    LessonOptions options = LESSON_OPTIONS;
    ck_assert_ptr_null(wrong_find("exp"));
    FAILS(lesson_set(&options, "rule", "exp"), "there is no rule \"exp\"");
    ck_assert(lesson_set(&options, "rule", ""));
    ck_assert_ptr_null(options.rule);
    options.rule = "exp";
    FAILS(lesson_open(&lesson, 1, options), "there is no rule \"exp\"");
    lesson_close(&lesson);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void expect_names(const char *text);

/* The right answer to a question about a number or a count; NaN for others. */
static double answer_of(const Json *question) {
    const char *kind = json_text(question, "kind", "");
    const int64_t i = json_integer(question, "index", -1);
    const Json *tensor = tensor_at(json_get(question, "tensor"));
    if (strcmp(kind, "number") == 0)
        return json_number(json_at(json_get(tensor, json_text(question, "part", "")), i));
    if (strcmp(kind, "count") != 0) return (double)NAN;
    const Json *line = lines->first;
    while (line && json_integer(line, "line", -1) != json_integer(question, "line", -2))
        line = line->next;
    const Json *d = json_at(json_get(line, "backward"), json_integer(question, "input", -1));
    ck_assert(d && d->kind == JSON_OBJECT);
    const Json *column = json_at(json_get(d, "jacobian"), i);
    return column->kind == JSON_ARRAY ? (double)(column->count / 2) : 0;
}

static int zeros_in(const Json *tensor) {
    int zeros = 0;
    for (const Json *x = json_get(tensor, "grad")->first; x; x = x->next)
        zeros += json_number(x) == 0;
    return zeros;
}

/* The step of a question about a number looks at another number. */
static void expect_not_told(const Json *question) {
    const Json *told = told_at(json_text(question, "at", ""));
    ck_assert_msg(json_integer(told, "look", -1) != json_integer(question, "index", -2),
                  "lesson %d: the text tells %s", lesson.number, json_text(question, "ask", ""));
}

/* What a question asks for can be computed from what it says: it has the number that is to move. */
TEST(the_question_about_a_step_of_sgd_has_its_number) {
    open_case(0);
    const Json *question = questions->first;
    while (question && !strstr(json_text(question, "ask", ""), "learning rate"))
        question = question->next;
    ck_assert_ptr_nonnull(question);
    const char *ask = json_text(question, "ask", "");
    ck_assert_msg(strstr(ask, format("%.3f", value(find("w"), 0))) != NULL, "%s", ask);
    close_case();
}

LOOP_TEST(questions_have_answers, CASES) {
    open_case(_i);
    ck_assert_msg(_i >= PARTS || questions->count >= 3, "lesson %d has %d questions", lesson.number,
                  (int)questions->count);
    ck_assert_int_ge(questions->count, 1);
    for (const Json *question = questions->first; question; question = question->next) {
        const char *kind = json_text(question, "kind", "");
        expect_names(json_text(question, "ask", ""));
        expect_names(json_text(question, "hint", ""));
        ck_assert(*json_text(question, "hint", "") && told_at(json_text(question, "at", "")));
        if (strcmp(kind, "choice") == 0) {
            const int64_t answer = json_integer(question, "answer", -1);
            ck_assert(answer >= 0 && answer < json_get(question, "options")->count);
            ck_assert_ptr_nonnull(json_text(question, "why", NULL));
        } else if (strcmp(kind, "zeros") == 0) {
            ck_assert_int_gt(zeros_in(tensor_at(json_get(question, "tensor"))), 0);
        } else {
            if (strcmp(kind, "number") == 0) expect_not_told(question);
            ck_assert_msg(isfinite(answer_of(question)), "lesson %d: %s", lesson.number,
                          json_text(question, "ask", ""));
        }
    }
    close_case();
}

/* What comes from the line that made `made`, of the gradient that a question asks for. */
static double part_of_answer(const Json *question, const char *made) {
    const int64_t t = json_integer(question, "tensor", -1);
    for (const Json *line = lines->first; line; line = line->next) {
        if (strcmp(name_of(tensor_at(json_get(line, "out"))), made) != 0) continue;
        const Json *in = json_get(line, "in")->first;
        const Json *part = json_get(line, "backward")->first;
        for (; in; in = in->next, part = part->next)
            if (in->number == (double)t)
                return json_number(
                    json_at(json_get(part, "dx"), json_integer(question, "index", -1)));
    }
    return (double)NAN;
}

/* The terms of the number that a question asks for, without zeros: dy times J of the part that its
 * step makes, or, forward, weights times a column of values. Returns how many there are. */
static int terms_of_answer(const Json *question, double terms[32]) {
    const char *at = json_text(question, "at", "");
    const int64_t i = json_integer(question, "index", -1);
    int line = 0, input = 0, count = 0;
    if (sscanf(at, "b%d.%d", &line, &input) == 2) {
        const Json *made = json_at(lines, line);
        const Json *dy = json_get(tensor_at(json_get(made, "out")), "grad");
        const Json *part = json_at(json_get(made, "backward"), input);
        for (int64_t j = 0; j < dy->count; j++) {
            const double term = json_number(json_at(dy, j)) * jacobian(part, j, i);
            if (term != 0) terms[count++] = term;
        }
    } else if (sscanf(at, "f%d", &line) == 1) {
        const Json *A = find("A");
        const Json *V = find("V");
        const int64_t K =
            V ? json_get(A, "value")->count / json_at(json_get(A, "shape"), 0)->number : 0;
        const int64_t C = V ? json_get(V, "value")->count / K : 1;
        for (int64_t k = 0; k < K; k++)
            terms[count++] = value(A, i / C * K + k) * value(V, k * C + i % C);
    }
    return count;
}

static const char *const sayings[] = {
    "The last of %d terms",    "The first of %d terms", "Some of the %d terms",
    "The part from `%31[^`]`", "That is what comes",    "That is what arrives",
    "of another head.",        "of another row.",       "of another column.",
    "numbers: which of them",  "rows: a term",          "columns: a term"};
enum { SAYINGS = sizeof sayings / sizeof *sayings };

/* Which of them this is. */
static int saying_of(const char *why) {
    for (int s = 0; s < SAYINGS; s++) {
        char start[64];
        snprintf(start, sizeof start, "%.*s", (int)strcspn(sayings[s], "%"), sayings[s]);
        if (strstr(why, start)) return s;
    }
    ck_abort_msg("%s", why);
    return -1;
}

static double number_beside(const Json *question, int panels, int rows, int columns) {
    const Json *t = tensor_at(json_get(question, "tensor"));
    const Json *shape = json_get(t, "shape");
    const int64_t d = shape->count, C = (int64_t)json_at(shape, d - 1)->number;
    const int64_t R = d > 1 ? (int64_t)json_at(shape, d - 2)->number : 1;
    const Json *numbers = json_get(t, json_text(question, "part", ""));
    const int64_t i = json_integer(question, "index", -1), P = numbers->count / R / C;
    const int64_t p = (i / (R * C) + panels) % P, r = (i / C + rows) % R, c = (i + columns) % C;
    return json_number(json_at(numbers, (p * R + r) * C + c));
}

/* What a wrong number has to be, by what is said of it. */
static double foreseen(const Json *question, const char *why) {
    double terms[32], all = 0;
    char made[32] = "";
    int line = 0;
    const int count = terms_of_answer(question, terms);
    for (int i = 0; i < count; i++) all += fabs(terms[i]);
    sscanf(strchr(why, '`') ? strchr(why, '`') : "", "`%31[^`]`", made);
    sscanf(json_text(question, "at", ""), "b%d", &line);
    const Json *y = tensor_at(json_get(json_at(lines, line), "out"));
    const Json *shape = json_get(y, "shape");
    switch (saying_of(why)) {
    case 0: return answer_of(question) - terms[count - 1];
    case 1: return answer_of(question) - terms[0];
    case 2: return all;
    case 3: return answer_of(question) - part_of_answer(question, made);
    case 4: return part_of_answer(question, made);
    case 5: return grad(y, json_integer(question, "index", -1));
    case 6: return number_beside(question, 1, 0, 0);
    case 7: return number_beside(question, 0, 1, 0);
    case 8: return number_beside(question, 0, 0, 1);
    case 9: return (double)json_get(y, "value")->count;
    case 10: return json_at(shape, shape->count - 2)->number;
    default: return json_at(shape, shape->count - 1)->number;
    }
}

/* Numbers that a reader may take for the answer, at ten seeds: each is what its reason says, and
 * none is the answer. Every reason occurs. */
TEST(wrong_numbers_have_reasons) {
    bool seen[SAYINGS] = {false};
    for (int run = 0; run < 10 * (PARTS + 1); run++) {
        const int part = run % (PARTS + 1) < PARTS ? run % (PARTS + 1) : LESSON_2;
        LessonOptions options = own_options(part);
        options.seed = 1 + run / (PARTS + 1);
        if (run % (PARTS + 1) == PARTS) options.keys = 2; /* dY is as large as A */
        open_lesson(cases[part].number, options);
        for (const Json *q = questions->first; q; q = q->next) {
            const Json *wrong = json_first(q, "wrong");
            ck_assert_int_le(wrong ? json_get(q, "wrong")->count : 0, 3);
            for (; wrong; wrong = wrong->next) {
                const double x = json_number(json_get(wrong, "value"));
                const char *why = json_text(wrong, "why", "");
                ck_assert_msg(fabs(x - answer_of(q)) > 0.006, "lesson %d, seed %d: %s is right",
                              lesson.number, (int)options.seed, why);
                expect_near(why, x, foreseen(q, why), 1e-5 * fmax(1, fabs(x)));
                expect_names(why);
                seen[saying_of(why)] = true;
            }
        }
        close_case();
    }
    for (int s = 0; s < SAYINGS; s++) ck_assert_msg(seen[s], "never said: %s", sayings[s]);
}

/* Flash attention's letters: S are the scores that softmax reads, P its weights, O their means. */
LOOP_TEST(letters_of_papers, PARTS) {
    static const char *const letters[PARTS] = {
        "In papers: `P` for `A`, `dO` for `dY`.",
        "In papers: `P` for `A`, `S` for `Z`, `dO` for `dY`.",
        "In papers: `P` for `A`, `S` for `Z`, `dO` for `dY`.",
        "In papers: `P` for `A`, `S` for `Z`, `dO` for `dY_A`.",
        "In papers: `P` for `A`, `S` for `Z`, `dO` for `dY`.",
        "In papers: `P` for `A`, `S` for `Z`, `dO` for `dY_h`.",
        "", /* its P is what relu reads */
    };
    open_case(_i);
    ck_assert_str_eq(json_text(tree, "letters", ""), letters[_i]);
    close_case();
}

static int64_t choice(int q) { return json_integer(json_at(questions, q), "answer", -1); }

/* The right option of question q. */
static void expect_option(int q, const char *text, double number) {
    const Json *options = json_get(json_at(questions, q), "options");
    ck_assert_str_eq(json_at(options, choice(q))->text, format(text, number));
}

TEST(answers_of_lesson_1) {
    open_case(LESSON_1);
    const Json *Y = find("Y");
    expect_near("dY", grad(Y, 0), 2 * (value(Y, 0) - value(find("T"), 0)), 1e-12);
    expect_option(0, "%.2f", 2 * (value(Y, 0) - (value(find("T"), 0) + 1)));
    ck_assert(answer_of(json_at(questions, 1)) == 12);
    expect_option(2, "%.3f", value(find("w"), 0) - 0.1 * 2); /* the gradient is negative */
    const Json *S = find("S"); /* 1 more for each score of the first row: the same weights */
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += exp(value(S, i) + 1);
    for (int i = 0; i < 4; i++)
        expect_near("A", value(find("A"), i), exp(value(S, i) + 1) / sum, 1e-12);
    expect_option(3, "they stay as they are", 0);
    const Json *bet = json_get(tree, "bet");
    ck_assert_int_eq(json_integer(bet, "answer", -1), grad(find("w"), 0) > 0);
    ck_assert_ptr_nonnull(strstr(json_text(json_get(tree, "cover"), "lead", ""),
                                 "A key is a place, and its value is the number"));
    expect_told("b1.1", "It is negative, so a larger `w` makes the loss smaller.");
    expect_told("sgd", "`w` goes from 0.8 to 0.8 - 0.1 x -1.74 = 0.974.");
    expect_told("sgd", "Then the loss is not 1.07, but 0.784.");
    close_case();
}

TEST(answers_of_lesson_2) {
    open_case(LESSON_2);
    const Json *V = find("V");
    const Json *Y = find("Y");
    const Json *S = find("S / sqrt(d)");
    const double dA = grad(Y, 0) * value(V, 0) + grad(Y, 1) * value(V, 1);
    expect_near("dA", answer_of(json_at(questions, 0)), dA, 1e-12);
    for (int q = 0; q < 2; q++)
        expect_near("the sum of a row", grad(S, 3 * q) + grad(S, 3 * q + 1) + grad(S, 3 * q + 2), 0,
                    1e-12);
    ck_assert_int_eq(choice(1), 0);
    ck_assert(answer_of(json_at(questions, 2)) == 3);
    const Json *A = find("A");
    double y = 0;
    for (int k = 0; k < 3; k++) y += value(A, k) * value(V, 2 * k);
    expect_near("Y", answer_of(json_at(questions, 3)), y, 1e-12);
    const double mean =
        value(A, 3) * grad(A, 3) + value(A, 4) * grad(A, 4) + value(A, 5) * grad(A, 5);
    expect_told("b3.0", format("%.3f x (%.2f - %.2f) = %.2f. For a smaller loss \"cat\"",
                               value(A, 3), grad(A, 3), mean, value(A, 3) * (grad(A, 3) - mean)));
    expect_told("b4.0", "The weight of \"cat\" for \"the\" met the row \"the\" of `V`");
    ck_assert_int_eq(json_integer(json_get(tree, "bet"), "answer", -1), grad(S, 3) > 0);
    close_case();
}

TEST(answers_of_lesson_3) {
    open_case(LESSON_3);
    const Json *scores = find("S / sqrt(d)");
    const Json *A = find("A");
    expect_option(0, "%g", value(A, 5)); /* "the" has one key */
    double looking = 0;
    for (int q = 0; q < 4; q++) looking += value(A, 4 * q + 1) != 0;
    ck_assert(answer_of(json_at(questions, 1)) == looking);
    ck_assert_ptr_eq(tensor_at(json_get(json_at(questions, 2), "tensor")), scores);
    ck_assert_int_eq(zeros_in(scores), 11); /* 10 are masked, and one weight is 1 */
    expect_told("f3", "a hidden score becomes -infinity, and e to that is 0");
    expect_told("b3.0", "10 of 16 scores are hidden");
    expect_told("f4", "\"[pad]\" may see none (what comes after it is hidden, and so is padding");
    close_case();
}

TEST(answers_of_lesson_3b) {
    open_case(LESSON_3B);
    const Json *B = find("B");
    const Json *bet = json_get(tree, "bet");
    char each[32];
    snprintf(each, sizeof each, "each 1/%g", 1 / value(B, 0));
    for (int k = 0; k < 4; k++) ck_assert(value(find("A"), k) == 0 && value(B, k) == 0.25);
    ck_assert_str_eq(json_at(json_get(bet, "options"), json_integer(bet, "answer", -1))->text,
                     each);
    expect_option(0, "each 1/%g", 1 / value(B, 0) + 1);
    ck_assert_int_eq(zeros_in(find("F")),
                     6); /* "the": one weight is 1; "cat": two keys are hidden */
    ck_assert(answer_of(json_at(questions, 2)) == grad(find("V"), 1));
    expect_told("f6", "in the row of \"[pad]\" all scores are -1e6");
    close_case();
}

/* The sum of the sizes of the part of the gradient of x that this line gives. */
static double size_of_part(const char *made) {
    double sum = 0;
    for (const Json *line = lines->first; line; line = line->next)
        if (strcmp(name_of(tensor_at(json_get(line, "out"))), made) == 0)
            for (const Json *x = json_get(json_get(line, "backward")->first, "dx")->first; x;
                 x = x->next)
                sum += fabs(json_number(x));
    return sum;
}

TEST(answers_of_lesson_4) {
    int lines_to_x = 0;
    open_case(LESSON_4);
    for (const Json *line = lines->first; line; line = line->next)
        for (const Json *x = json_get(line, "in")->first; x; x = x->next)
            lines_to_x += tensor_at(x) == find("x");
    ck_assert_int_eq(lines_to_x, 3);
    expect_option(2, "four", 4); /* these and one more */
    expect_option(3, "%g", 0.3 / 0.75);
    double sum = 0;
    for (const Json *line = lines->first; line; line = line->next)
        if (tensor_at(json_at(json_get(line, "in"), 0)) == find("x"))
            sum += json_number(json_at(json_get(json_get(line, "backward")->first, "dx"), 0));
    expect_near("dx", answer_of(json_at(questions, 1)), sum, 1e-12);
    const Json *A = find("A");
    const Json *dropped = find("dropout(A)");
    for (int i = 0; i < 9; i++)
        expect_near("dA", grad(A, i), value(dropped, i) == 0 ? 0 : grad(dropped, i) / 0.75, 1e-12);
    ck_assert_int_eq(json_integer(json_get(tree, "bet"), "answer", -1), 0);
    ck_assert(size_of_part("V") > size_of_part("K") && size_of_part("V") > size_of_part("Q"));
    expect_told("a0.0", "most of it came through `V`.");
    close_case();
}

TEST(answers_of_lesson_5) {
    open_case(LESSON_5);
    const Json *gate = find("gate");
    ck_assert(answer_of(json_at(questions, 0)) == value(find("Q"), 21)); /* row 3, column 3 */
    ck_assert_ptr_nonnull(
        strstr(json_text(json_at(questions, 0), "ask", ""), "In `Q_h` each head"));
    for (int h = 0; h < 3; h++) {
        double sum = 0;
        for (int i = 8 * h; i < 8 * h + 8; i++)
            sum += value(find("Y_h"), i) * grad(find("gated"), i);
        expect_near("the gate", grad(gate, h), sum, 1e-12);
        ck_assert(fabs(grad(gate, h)) <= fabs(grad(gate, choice(2))));
    }
    ck_assert(answer_of(json_at(questions, 1)) == 8);
    close_case();
}

TEST(answers_of_lesson_6) {
    open_case(LESSON_6);
    const Json *w = find("W_q.weight");
    double sum = 0;
    for (int t = 0; t < 4; t++) sum += grad(find("Y"), 3 * t + 1);
    expect_near("the bias", answer_of(json_at(questions, 0)), sum, 1e-12);
    expect_option(2, "%.4f", value(w, 0) - 0.02 * grad(w, 0));
    int64_t most = 0;
    for (int64_t i = 1; i < 9; i++)
        if (fabs(grad(w, i)) > fabs(grad(w, most))) most = i;
    expect_told("sgd",
                format("from %.3f to %.3f - 0.02 x %.3f = %.3f.", value(w, most), value(w, most),
                       grad(w, most), value(w, most) - 0.02 * grad(w, most)));
    const Json *losses = json_get(tree, "losses");
    ck_assert_int_eq(losses->count, 200);
    expect_near("the first loss", json_number(losses->first), value(find("loss"), 0), 1e-5);
    ck_assert(json_number(json_at(losses, 199)) < 0.2 * json_number(losses->first));
    ck_assert_int_eq((int)json_get(json_get(tree, "cover"), "losses")->number, 1);
    close_case();
}

/* ---- what a lesson says ---------------------------------------------------------------------- */

enum { SEEDS = 10 };

/* The next number without its sign after *text; false at the end. unit: 1 in its last place. */
static bool next_number(const char **text, double *number, double *unit) {
    for (const char *at = *text; *at; at++) {
        if (*at < '0' || *at > '9') continue;
        if (at > *text && (at[-1] == '_' || at[-1] == '#')) continue;
        *number = strtod(at, (char **)text);
        *unit = last_place(at);
        return true;
    }
    return false;
}

/* Is this number among the numbers of a text, which are rounded? */
static bool holds(const char *text, double looked) {
    double number, unit;
    while (next_number(&text, &number, &unit))
        if (fabs(number - fabs(looked)) <= 0.51 * unit) return true;
    return false;
}

static int sentences_in(const char *text) {
    int n = 0;
    for (; *text; text++) n += strchr(".?", *text) && (text[1] == ' ' || text[1] == '\0');
    return n;
}

static bool is_short_name(const char *name) {
    const Json *pair = json_get(tree, "short")->first;
    while (pair && strcmp(json_text(pair, "name", ""), name) != 0) pair = pair->next;
    return pair != NULL;
}

/* What stands between backquotes is a name, also a short one, or of a gradient or a transpose. */
static void expect_names(const char *text) {
    char name[64];
    for (const char *at = strchr(text, '`'); at; at = strchr(at, '`')) {
        const int n = (int)strcspn(at + 1, "`");
        snprintf(name, sizeof name, "%.*s", n, at + 1);
        const bool is_gradient = *name == 'd' && find(name + 1);
        ck_assert_msg(find(name) || is_gradient || is_short_name(name),
                      "lesson %d: \"%s\" has the name %s, of nothing", lesson.number, text, name);
        at += n + 2;
    }
}

static void check_words(const char *at, const Json *told) {
    const char *text = json_text(told, "text", "");
    ck_assert_str_eq(json_text(told, "at", ""), at);
    ck_assert_msg(sentences_in(text) >= 1 && sentences_in(text) <= 3 && strlen(text) < 400,
                  "lesson %d, %s: %d sentences: %s", lesson.number, at, sentences_in(text), text);
    ck_assert_ptr_null(strstr(text, "  "));
    expect_names(text);
}

static void check_text(const Plan *plan, const Step *step, const Json *told) {
    const char *text = json_text(told, "text", "");
    const int64_t look = json_integer(told, "look", -1);
    double number, unit;
    check_words(step->name, told);
    ck_assert(look >= 0 && look < plan->tape.tensors[step->tensor].size);
    const double looked = step->numbers[look];
    const char *after = text;
    if (next_number(&after, &number, &unit) && isfinite(looked))
        ck_assert_msg(holds(text, looked), "lesson %d, %s: %.17g is not in: %s", lesson.number,
                      step->name, looked, text);
}

/* Every step of the plan has a text, in their order; if the text has a number, it has the number
 * that the step looks at. */
static void check_texts(void) {
    Plan plan;
    const Json *told = json_get(tree, "steps")->first;
    ck_assert_msg(plan_make(&plan, tree), "%s", tensor_error());
    for (const Step *step = plan.steps; step < plan.steps + plan.num_steps; step++) {
        if (step->unit < 0 || !plan_shows(&plan, step, true)) continue;
        ck_assert_msg(told != NULL, "lesson %d says nothing at %s", lesson.number, step->name);
        check_text(&plan, step, told);
        told = told->next;
    }
    plan_free(&plan);
    if (lesson.kind->loop) {
        check_words("twice", told);
        told = told->next;
    }
    check_words("sgd", told);
    ck_assert_msg(told->next == NULL, "lesson %d says too much", lesson.number);
    const char *y = find("Y") ? "Y" : "V"; /* not E, which is the error, too */
    expect_told("s", format("`d%s` stands for the gradient of the loss by `%s`", y, y));
}

LOOP_TEST(every_step_has_a_text, CASES) {
    open_case(_i);
    check_texts();
    close_case();
}

LOOP_TEST(texts_hold_the_numbers_at_other_seeds, PARTS *SEEDS) {
    LessonOptions options = own_options(_i / SEEDS);
    options.seed = (uint64_t)(_i % SEEDS) + 100;
    open_lesson(cases[_i / SEEDS].number, options);
    check_texts();
    close_case();
}

/* After 1000000 in a leaf the texts may have NaN, but all of them are there. */
LOOP_TEST(texts_of_large_numbers, PARTS) {
    static const char *const leaves[PARTS] = {"w", "V", "V", "V", "W_v", "W_v", "W_q.weight"};
    const LessonEdit edit = {leaves[_i], 0, 1e6};
    LessonOptions options = own_options(_i);
    options.edits = &edit;
    options.num_edits = 1;
    open_lesson(cases[_i].number, options);
    ck_assert_int_gt(json_get(tree, "steps")->count, 10);
    check_texts();
    close_case();
}

/* What is pulled are the scores of the cover's weights, in its row; lesson 2 alone has them, where
 * they fit side by side and say something. */
static void expect_pull(const Json *pull, int64_t weights, int64_t row) {
    const Json *shape = json_get(json_at(tensors, weights), "shape");
    const int64_t columns = weights < 0 ? 0 : (int64_t)json_at(shape, shape->count - 1)->number;
    if (lesson.number != 2 || lesson.is_wrong || columns < 2 || columns > 6) {
        ck_assert_ptr_null(pull);
        return;
    }
    ck_assert_int_eq(json_integer(pull, "cell", -1) / columns, row);
    ck_assert(told_at(json_text(pull, "at", "")));
    for (const Json *l = lines->first; l; l = l->next)
        if (json_integer(l, "out", -1) == weights)
            ck_assert_int_eq(json_integer(pull, "tensor", -1),
                             (int64_t)json_at(json_get(l, "in"), 0)->number);
}

LOOP_TEST(covers_and_bets, CASES) {
    open_case(_i);
    const Json *shown = json_get(tree, "cover");
    const Json *bet = json_get(tree, "bet");
    const int64_t t = json_integer(shown, "tensor", -2), row = json_integer(shown, "row", -1);
    const char *lead = json_text(shown, "lead", "");
    ck_assert(*json_text(shown, "title", ""));
    ck_assert(sentences_in(lead) >= 2 && sentences_in(lead) <= 4);
    expect_names(lead);
    if (t >= 0) {
        const Json *shape = json_get(json_at(tensors, t), "shape");
        ck_assert(row >= 0 && row < json_at(shape, shape->count - 2)->number);
    } else if (lesson.number == 1) {
        const Json *points = json_get(tree, "points");
        ck_assert_int_eq(points->count, 5);
        for (const Json *p = points->first; p; p = p->next)
            ck_assert_str_eq(json_text(json_at(tensors, (int64_t)p->number), "name", ""), p->key);
    } else ck_assert(json_get(shown, "losses")->number == 1);
    ck_assert(_i >= PARTS || bet);
    expect_pull(json_get(tree, "pull"), t, row);
    if (bet) {
        const int64_t answer = json_integer(bet, "answer", -1);
        ck_assert(told_at(json_text(bet, "at", "")));
        ck_assert(answer >= 0 && answer < json_get(bet, "options")->count);
        expect_names(json_text(bet, "ask", ""));
        const Json *option = json_get(bet, "options")->first;
        while (option && strcmp(option->text, "NaN") != 0) option = option->next;
        ck_assert(!option || strstr(json_text(bet, "ask", ""), "NaN means not a number"));
    }
    close_case();
}

/* ---- equations of the texts ------------------------------------------------------------------ */

static const char *rest; /* what is left of a text */

static bool take(const char *words) {
    const size_t n = strlen(words);
    if (strncmp(rest, words, n) != 0) return false;
    rest += n;
    return true;
}

/* A printed number; unit: 1 in its last place. */
static bool take_number(double *number, double *unit) {
    const char *digits = rest + (*rest == '-');
    if (*digits < '0' || *digits > '9') return false;
    const bool negative = digits > rest;
    rest = digits;
    next_number(&rest, number, unit);
    if (negative) *number = -*number;
    return true;
}

/* "1 and 2", "1, 2 and 3", "1 from `V`, 2 from `K` and 3 from `Q`" */
static bool take_list(double *sum) {
    double term = 0, unit = 0;
    int n = 0;
    *sum = 0;
    do {
        if (!take_number(&term, &unit)) return false;
        if (take(" from `")) rest += 2;
        *sum += term;
        n++;
    } while (take(", ") || take(" and "));
    return n > 1;
}

/* What the rule that the text names makes of x; NaN if it names none. */
static double made_of(const char *text, double x) {
    double factor, unit;
    const char *colon = rest;
    while (colon > text && *colon != ':' && *colon != '.') colon--;
    const char *before = colon;
    while (before > text && before[-1] != ' ') before--;
    const char *saved = rest;
    rest = before;
    const bool has_factor = colon > text && take_number(&factor, &unit) && rest == colon;
    rest = saved;
    if (strstr(text, "Squared") || strstr(text, "on which side")) return x * x;
    if (strstr(text, "-1/2")) return -x / 2;
    if (strstr(text, "tanh")) return tanh(x);
    if (has_factor && strstr(text, "ivided")) return x / factor;
    if (has_factor) return x * factor;
    if (strstr(text, "sqrt(d)") || strstr(text, "Divided on the way"))
        return x / sqrt((double)lesson.options.size);
    if (strstr(text, "ivided by")) return x / (1 - lesson.options.dropout);
    return (double)NAN;
}

/* Takes an equation that begins here: what it must make, what it makes, 1 in its last place. */
static bool take_equation(const char *text, double *must, double *makes, double *unit) {
    const char *begin = rest;
    if (read_sum(&rest, must, NULL) && take(" = ") && take_number(makes, unit)) return true;
    rest = begin;
    if (take_list(must) && take(" make ") && take_number(makes, unit)) return true;
    rest = begin;
    if (!take_number(must, unit)) return false;
    const char *end = rest;
    if (take(" becomes ") && take_number(makes, unit)) {
        const char *after = rest;
        rest = begin;
        *must = made_of(text, *must);
        rest = after;
        return isfinite(*must);
    }
    rest = end;
    return false;
}

/* Every equation of a text is right to the last digit that is printed. Returns how many there are.
 */
static int check_equations(const char *text) {
    int n = 0;
    for (rest = text; *rest;) {
        double must, makes, unit;
        const char *begin = rest;
        const bool may_begin = rest == text || strchr(" :", rest[-1]);
        if (may_begin && take_equation(text, &must, &makes, &unit)) {
            ck_assert_msg(fabs(must - makes) <= 0.5 * unit + 1e-8 * fabs(must),
                          "%s: %.12g, not %.12g: %s", json_text(tree, "command", ""), must, makes,
                          text);
            n++;
        } else rest = begin + 1;
    }
    return n;
}

static int check_all_equations(void) {
    int n = 0;
    for (const Json *told = json_get(tree, "steps")->first; told; told = told->next)
        n += check_equations(json_text(told, "text", ""));
    for (const Json *question = questions->first; question; question = question->next) {
        n += check_equations(json_text(question, "ask", ""));
        n += check_equations(json_text(question, "why", ""));
    }
    return n;
}

LOOP_TEST(equations_hold_as_printed, CASES) {
    open_case(_i);
    ck_assert_int_ge(check_all_equations(), 2);
    close_case();
}

LOOP_TEST(equations_hold_at_other_seeds, PARTS *SEEDS) {
    LessonOptions options = own_options(_i / SEEDS);
    options.seed = (uint64_t)(_i % SEEDS) + 200;
    open_lesson(cases[_i / SEEDS].number, options);
    ck_assert_int_ge(check_all_equations(), 3);
    close_case();
}

/* The test itself sees an equation that rounding has made wrong. */
TEST(equations_are_found) {
    open_case(LESSON_2);
    ck_assert_int_eq(check_equations("It is 2 x -1.5 = -3, and 0.5 x (-1 + 3) = 1."), 2);
    ck_assert_int_eq(check_equations("Here 1, 2 and -0.5 make 2.5. Squared: 3 becomes 9."), 2);
    ck_assert_int_eq(check_equations("A row of 3 numbers: 4 stays."), 0);
    double must, makes, unit;
    rest = "2 x 1.48 = 2.95";
    ck_assert(take_equation(rest, &must, &makes, &unit) && fabs(must - makes) > 0.5 * unit);
    close_case();
}

/* ---- names of tensors --------------------------------------------------------------------------
 */

static const char *name_at(const Json *number) { return name_of(tensor_at(number)); }

/* The folded lines are those of the loss; a transposed tensor has the numbers of the other one, and
 * a short name is the name of no other tensor. */
LOOP_TEST(names_of_tensors, CASES) {
    static const char *const folded[] = {"E", "E^2", "counted", "loss"};
    open_case(_i);
    const Json *fold = json_get(tree, "fold");
    ck_assert_int_eq(fold->count, 1);
    const Json *number = json_get(fold->first, "lines")->first;
    const bool counts = json_get(fold->first, "lines")->count == 4;
    ck_assert(counts == (lesson.number == 3 && !lesson.kind->part && lesson.pad >= 0));
    for (int i = 0; number; i += i == 1 && !counts ? 2 : 1, number = number->next) {
        const Json *line = json_at(lines, (int64_t)number->number); /* all lines have an input */
        ck_assert_int_eq(json_integer(line, "line", -1), (int64_t)number->number);
        ck_assert_str_eq(name_at(json_get(line, "out")), folded[i]);
    }
    const bool has_keys = lesson.number > 1 && !lesson.options.additive;
    const bool is_trivial = _i >= PARTS; /* a number alone is its own transpose */
    ck_assert(is_trivial || json_get(tree, "transposed")->count == has_keys);
    for (const Json *pair = json_get(tree, "transposed")->first; pair; pair = pair->next) {
        const Json *x = tensor_at(json_get(pair, "tensor"));
        const Json *of = tensor_at(json_get(pair, "of"));
        const Json *shape = json_get(x, "shape");
        const int64_t rows = (int64_t)json_at(shape, shape->count - 2)->number;
        const int64_t columns = (int64_t)json_at(shape, shape->count - 1)->number;
        for (int64_t i = 0; i < size_of_tensor(x); i++) {
            const int64_t m = i / (rows * columns), r = i / columns % rows, c = i % columns;
            ck_assert(value(x, i) == value(of, m * rows * columns + c * rows + r));
        }
    }
    const Json *shorts = json_get(tree, "short");
    for (const Json *a = shorts->first; a; a = a->next) {
        const Json *same = find(json_text(a, "name", ""));
        ck_assert(!same || same == tensor_at(json_get(a, "tensor")));
        for (const Json *b = a->next; b; b = b->next)
            ck_assert_str_ne(json_text(a, "name", ""), json_text(b, "name", ""));
    }
    close_case();
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The words of a list are the first of the lesson's words, one for each row or column. */
static void check_label(const Json *label, const char *key, int64_t from_the_end) {
    const Json *list = json_get(label, key);
    const Json *shape = json_get(tensor_at(json_get(label, "tensor")), "shape");
    if (!list) return;
    ck_assert_int_eq(list->count, (int64_t)json_at(shape, shape->count - from_the_end)->number);
    const Json *word = json_get(tree, "words")->first;
    for (const Json *x = list->first; x; x = x->next) {
        if (strcmp(x->text, "[pad]") == 0) continue; /* no word of the reader's */
        ck_assert_str_eq(x->text, word->text);
        word = word->next;
    }
}

LOOP_TEST(rows_have_words, CASES) {
    open_case(_i);
    const Json *labels = json_get(tree, "labels");
    ck_assert_int_eq(labels->count > 0, lesson.number > 1);
    for (const Json *label = labels->first; label; label = label->next) {
        check_label(label, "rows", 2);
        check_label(label, "columns", 1);
        if (lesson.number == 1) continue;
        const Json *shape = json_get(tensor_at(json_get(label, "tensor")), "shape");
        ck_assert_int_ge(shape->count, 2);
    }
    close_case();
}

TEST(words_that_are_given) {
    LessonOptions options = LESSON_OPTIONS;
    ck_assert(lesson_set(&options, "words", "  a \"b\"\tc$ d  e"));
    open_lesson(4, options);
    const Json *words = json_get(tree, "words");
    ck_assert_int_eq(words->count, 5);
    ck_assert_str_eq(json_at(words, 1)->text, "\"b\"");
    ck_assert_int_eq((int)json_at(json_get(find("x"), "shape"), 1)->number, 5);
    ck_assert_str_eq(json_text(tree, "command", ""),
                     "build/explain --lesson 4 --words \"  a \\\"b\\\"\tc\\$ d  e\"");
    close_case();
    options.words = "uno due tre";
    open_lesson(2, options); /* the words are the keys, and the first ones the queries */
    ck_assert_int_eq((int)json_at(json_get(find("Q"), "shape"), 0)->number, 2);
    expect_told("f3", "\"due\" gives ");
    close_case();
    options.tokens = 5; /* a size that is given counts more */
    open_lesson(4, options);
    ck_assert_int_eq(json_get(tree, "words")->count, 5);
    ck_assert_str_eq(json_at(json_get(tree, "words"), 4)->text, "#5");
    close_case();
}

/* A word in Latin-1 becomes UTF-8 in the data. */
TEST(words_that_are_not_utf8) {
    LessonOptions options = LESSON_OPTIONS;
    options.words = "caf\xe9 \x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80 \xc3\xa9t\xc3\xa9";
    open_lesson(2, options);
    const Json *words = json_get(tree, "words");
    ck_assert_str_eq(json_at(words, 0)->text, "caf\xef\xbf\xbd");
    ck_assert_uint_eq(strlen(json_at(words, 1)->text), 36);
    ck_assert_str_eq(json_at(words, 2)->text, "\xc3\xa9t\xc3\xa9");
    close_case();
}

static void expect_no_words(const char *words, const char *sentence) {
    LessonOptions options = LESSON_OPTIONS;
    options.words = words;
    FAILS(lesson_open(&lesson, 4, options), sentence);
    lesson_close(&lesson);
}

TEST(words_that_cannot_be) {
    char many[256] = "";
    for (int i = 0; i < 65; i++) strcat(many, "a ");
    expect_no_words(many, "words: 65 words are too many: at most 64");
    many[2 * 40] = '\0';
    expect_no_words(many, "lesson 4: 40 tokens are too many here: at most 12");
    expect_no_words(" \t", "words: \" \t\" has no word");
    expect_no_words("a bcdefghijklmnopqrstuvwxyz",
                    "words: \"bcdefghijklmnopqrstuvwxyz\" is too long for a word");
}

/* ---- limits ---------------------------------------------------------------------------------- */

PROGRAM_CASE("long", .is_long = true)
/* A lesson can be as large as it says, with all numbers at their largest together; a larger one is
 * refused in a sentence. */
LOOP_TEST(limits_are_true, PARTS) {
    static const char *const nouns[] = {"heads", "queries", "keys", "tokens", "size"};
    const int number = cases[_i].number;
    char most[COUNT(nouns)][16] = {""};
    LessonOptions options = own_options(_i);
    open_case(_i);
    for (int n = 0; n < COUNT(nouns); n++)
        for (const Json *s = json_get(tree, "settings")->first; s; s = s->next)
            if (strcmp(json_text(s, "key", ""), nouns[n]) == 0)
                snprintf(most[n], sizeof most[n], "%d", (int)json_integer(s, "most", -1));
    close_case();
    options.no_mask = number == 3; /* a mask leaves derivatives out */
    options.step = LESSON_STEPS;   /* numbers with all their digits */
    for (int n = 0; n < COUNT(nouns); n++)
        if (*most[n]) ck_assert(lesson_set(&options, nouns[n], most[n]));
    char *data = lessons_as_json(number, number, options);
    ck_assert_msg(data != NULL, "lesson %d: %s", number, tensor_error());
    ck_assert_uint_lt(strlen(data), 1 << 20);
    free(data);
    for (int n = 0; n < COUNT(nouns); n++) {
        const char *more = format("%d", atoi(most[n]) + 1);
        if (!*most[n]) continue;
        options = own_options(_i);
        ck_assert(lesson_set(&options, nouns[n], more));
        ck_assert(!lesson_open(&lesson, number, options));
        if (strcmp(nouns[n], "size") == 0)
            expect_error(
                format("lesson %d: size %s is too large here: at most %s", number, more, most[n]));
        else
            expect_error(format("lesson %d: %s %s are too many here: at most %s", number, more,
                                nouns[n], most[n]));
        lesson_close(&lesson);
    }
}

/* ---- texts of a wrong rule ------------------------------------------------------------------- */

CASE("lessons")
/* Where gradients are not added on purpose, and only there, the step says so. */
LOOP_TEST(a_wrong_sum_says_so, PARTS *RULES) {
    const int part = _i / RULES, r = _i % RULES;
    LessonOptions options = own_options(part);
    ck_assert(lesson_set(&options, "rule", rules[r].key));
    open_lesson(cases[part].number, options);
    const bool assigns = strcmp(json_text(tree, "rule", ""), "assign") == 0;
    int said = 0;
    for (const Json *told = json_get(tree, "steps")->first; told; told = told->next) {
        if (!strstr(json_text(told, "text", ""), "Here backward is wrong on purpose")) continue;
        said++;
        ck_assert_int_eq(*json_text(told, "at", ""), 'a');
    }
    ck_assert_int_eq(said > 0, assigns);
    close_case();
}

/* ---- the JSON reader ------------------------------------------------------------------------- */

static void expect_broken(const char *text, const char *sentence) {
    char *copy = strdup(text);
    Json *read = json_read(copy);
    if (read) check_tape(read);
    expect_error(sentence);
    free(read);
    free(copy);
}

TEST(broken_json) {
    expect_broken("", "line 1: a value was expected here");
    expect_broken("{\"a\":1,\n\"b\" 2}", "line 2: a colon was expected here");
    expect_broken("[1,2", "line 1: a comma or ] was expected here");
    expect_broken("{\"a\":1", "line 1: a comma or } was expected here");
    expect_broken("{a:1}", "line 1: a name in quotes was expected here");
    expect_broken("[1,]", "line 1: a value was expected here");
    expect_broken("[nan]", "line 1: a value was expected here");
    expect_broken("[1.]", "line 1: a value was expected here");
    expect_broken("\"abc", "line 1: a string does not end");
    expect_broken("\"a\\q\"", "line 1: a string has an unknown escape");
    expect_broken("\"\\u12g4\"", "line 1: a string has an unknown escape");
    expect_broken("\"\\", "line 1: a string has an unknown escape");
    expect_broken("[] []", "line 1: the text goes on after its end");
    expect_broken("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                  "line 1: too many brackets inside each other");
    expect_broken("[\"caf\xe9\"]", "the text is not UTF-8");
    expect_broken("[\"\xed\xa0\x80\"]", "the text is not UTF-8");
}

#define TENSOR     "{\"shape\":[1],\"value\":[1],\"grad\":[1]}"
#define TAPE(line) "{\"lines\":[" line "],\"tensors\":[" TENSOR "," TENSOR "]}"
#define LINE(in, out, backward)                                                                    \
    "{\"line\":0,\"op\":\"exp\",\"in\":" in ",\"out\":" out ",\"backward\":" backward "}"

TEST(broken_tapes) {
    expect_broken("[]", "not a tape: it has no \"lines\" or no \"tensors\"");
    expect_broken("{\"lines\":[],\"tensors\":[]}", "not a tape: it has no line");
    expect_broken("{\"lines\":[1],\"tensors\":[{}]}", "not a tape: tensor 0 has no shape");
    expect_broken("{\"lines\":[1],\"tensors\":[{\"shape\":[-1]}]}",
                  "not a tape: tensor 0 has no shape");
    expect_broken("{\"lines\":[1],\"tensors\":[{\"shape\":[2],\"value\":[1]}]}",
                  "not a tape: tensor 0 does not have as many values as its shape says");
    expect_broken("{\"lines\":[1],\"tensors\":[{\"shape\":[],\"value\":[1],\"grad\":[]}]}",
                  "not a tape: tensor 0 does not have as many gradients as its shape says");
    expect_broken(TAPE("{}"), "not a tape: a line has no \"line\" or no \"op\"");
    expect_broken(TAPE("{\"line\":2147483648,\"op\":\"exp\"}"),
                  "not a tape: a line has no \"line\" or no \"op\"");
    expect_broken(TAPE(LINE("[0]", "2", "[]")), "not a tape: line 0 has no \"in\" or no \"out\"");
    expect_broken(TAPE(LINE("[2]", "1", "[]")),
                  "not a tape: line 0 has an input that is no tensor");
    expect_broken(TAPE(LINE("[0]", "1", "[null,null]")),
                  "not a tape: line 0 has a \"backward\" that does not fit its inputs");
    expect_broken(TAPE(LINE("[0]", "1", "[{\"dx\":[]}]")),
                  "not a tape: line 0 has a \"dx\" that does not fit its input");
    expect_broken(TAPE(LINE("[0]", "1", "[{\"dx\":[1],\"jacobian\":[]}]")),
                  "not a tape: line 0 has a \"jacobian\" that does not fit its input");
    expect_broken(TAPE(LINE("[0]", "1", "[{\"dx\":[1],\"jacobian\":[[1,2]]}]")),
                  "not a tape: line 0 has a broken \"jacobian\"");
    expect_broken(TAPE(LINE("[0]", "1", "[{\"dx\":[1],\"jacobian\":[{}]}]")),
                  "not a tape: line 0 has a broken \"jacobian\"");
    expect_broken("{\"lines\":[" LINE(
                      "[0]", "1", "[{\"dx\":[1]}]") "],\"tensors\":["
                                                    "{\"shape\":[1],\"value\":[1]}," TENSOR "]}",
                  "not a tape: line 0 has a \"dx\" for an input without gradients");
    char whole[] = TAPE(LINE("[0]", "1", "[{\"dx\":[1],\"jacobian\":[\"flat\"]}]"));
    Json *read = json_read(whole);
    ck_assert(check_tape(read));
    free(read);
}

TEST(strings_of_json) {
    char text[] = "[\"a\\n\\\"\\\\\\/\\u0041\\u00e9\\u20ac\\ud83d\", -1.5e2, true, null]";
    Json *read = json_read(text);
    ck_assert_str_eq(json_at(read, 0)->text, "a\n\"\\/A\xC3\xA9\xE2\x82\xAC?");
    ck_assert(json_number(json_at(read, 1)) == -150);
    ck_assert(json_number(json_at(read, 2)) == 1);
    ck_assert(isnan(json_number(json_at(read, 3))));
    ck_assert_ptr_null(json_at(read, 4));
    free(read);
}

/* The last step leads to an exercise, which is there. */
LOOP_TEST(lesson_leads_to_an_exercise, PARTS) {
    char file[96];
    open_case(_i);
    snprintf(file, sizeof file, "examples/exercises/students/%s.c",
             json_text(tree, "exercise", "none"));
    ck_assert_msg(access(file, R_OK) == 0, "%s is not there", file);
    close_case();
}

/* ---- requests of the page -------------------------------------------------------------------- */

static const char *ask(const char *request) {
    char *buffer = live_request((int)strlen(request));
    ck_assert_ptr_nonnull(buffer);
    memcpy(buffer, request, strlen(request));
    return live_answer();
}

static void expect_answer(const char *request, int number, LessonOptions options) {
    char *expected = lessons_as_json(number, number, options);
    ck_assert_msg(expected != NULL, "%s", tensor_error());
    ck_assert_str_eq(ask(request), expected);
    ck_assert_int_eq(live_tensors(), 0);
    free(expected);
}

TEST(requests) {
    LessonOptions o = LESSON_OPTIONS;
    for (int number = 1; number <= LESSONS; number++) {
        char request[16];
        snprintf(request, sizeof request, "lesson %d", number);
        o.part = 'a';
        expect_answer(request, number, o);
    }
    o.part = 'b';
    expect_answer("lesson 3b\nseed 4", 3, (LessonOptions){.dropout = -1, .seed = 4, .part = 'b'});
    o = LESSON_OPTIONS;
    o.words = "one \"two\" three";
    expect_answer("lesson 4\nwords one \"two\" three", 4, o);
    o = LESSON_OPTIONS;
    o.heads = 2;
    o.no_scale = true;
    o.dropout = 0.25;
    o.seed = 3;
    expect_answer("heads 2\nno-scale 1\nlesson 5\n\ndropout 0.25\nseed 3\n", 5, o);
    expect_answer("lesson 5", 5, LESSON_OPTIONS); /* of the request before nothing is left */
    o = LESSON_OPTIONS;
    o.rule = "dropout";
    expect_answer("lesson 4\nrule dropout", 4, o);
    expect_answer("lesson 4\nrule ", 4, LESSON_OPTIONS);
    const LessonEdit edits[] = {{"V", 1, -2.5}, {"Q", 0, 0.125}, {"V", 0, 3}};
    o = LESSON_OPTIONS;
    o.edits = edits;
    o.num_edits = 3;
    o.train = true;
    expect_answer("set 1 -2.5 V\nlesson 2\nset 0 0.125 Q\ntrain 1\nset 0 3 V", 2, o);
}

TEST(requests_that_cannot_be) {
    static const struct {
        const char *request, *answer;
    } wrong[] = {
        {"", "the request names no lesson"},
        {"heads 2", "the request names no lesson"},
        {"lesson 0", "lesson is \\\"0\\\": it must be an integer from 1 to 6, or 3b"},
        {"lesson 7", "lesson is \\\"7\\\": it must be an integer from 1 to 6, or 3b"},
        {"lesson 12", "lesson is \\\"12\\\": it must be an integer from 1 to 6, or 3b"},
        {"lesson 2b", "lesson is \\\"2b\\\": it must be an integer from 1 to 6, or 3b"},
        {"lesson 2\nheads 3", "lesson 2 takes no heads"},
        {"lesson", "\\\"lesson\\\" has no value"},
        {"lesson 2\ncolour 3", "there is no setting \\\"colour\\\""},
        {"lesson 2\nset 1 V", "\\\"1 V\\\" is no edit: it must be an index, a number and a name"},
        {"lesson 2\nrule dropout", "lesson 2 has no line that the wrong rule dropout changes"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_str_eq(ask(wrong[i].request), format("{\"error\":\"%s\"}", wrong[i].answer));
        ck_assert_ptr_null(tensor_error());
        ck_assert_int_eq(live_tensors(), 0);
    }
    tensor_fail("an error from before");
    ck_assert(!strncmp(ask("lesson 1"), "{\"lessons\":[", 12));
    ck_assert_ptr_null(tensor_error());
}

/* ---- the program ----------------------------------------------------------------------------- */

static char page[PAGE_SIZE];

/* The bytes of the library in a page; 0 if there is none, as in the page of a tape. */
static size_t module_in(const char *text) {
    const char *module = strstr(text, "<script id=\"wasm\" type=\"text/plain\">");
    return module ? strcspn(module + 1, "<") : 0;
}

/* The JSON of the page; overwritten by the tree, which the caller frees. */
static Json *data_of_page(const char *name) {
    slurp(path(name), page, sizeof page);
    ck_assert_ptr_null(strstr(page, "<!-- data -->"));
    ck_assert_ptr_null(strstr(page, "<!-- style -->"));
    ck_assert_ptr_null(strstr(page, "<!-- script -->"));
    ck_assert_ptr_null(strstr(page, "<!-- wasm -->"));
    Json *read = json_read(data_in_page(page));
    ck_assert_msg(read != NULL, "%s", tensor_error());
    return read;
}

PROGRAM_CASE("the program")
TEST(page_of_the_lessons) {
    program = "explain";
    ck_assert_int_eq(run("--page $D/page.html"), 0);
    ck_assert_str_eq(complaints, "");
    ck_assert_msg(!strncmp(out, path("page.html"), strlen(path("page.html"))), "%s", out);
    ck_assert_ptr_nonnull(strstr(out, ": lessons 1 to 6\n"));
    ck_assert_int_eq(files_in_folder(), 1);
    Json *read = data_of_page("page.html");
    const Json *list = json_get(read, "lessons");
    ck_assert_int_eq(list->count, PARTS);
    for (int i = 0; i < PARTS; i++) {
        ck_assert_int_eq(json_integer(json_at(list, i), "number", 0), cases[i].number);
        ck_assert_str_eq(json_text(json_at(list, i), "part", ""), i == LESSON_3B ? "b" : "");
    }
    free(read);
    slurp(path("page.html"), page, sizeof page);
    ck_assert_msg(strlen(page) < 1050 * KB, "the page has %zu bytes", strlen(page));
    ck_assert_uint_gt(module_in(page), 100 * KB);
    ck_assert_ptr_nonnull(strstr(page, "by Tapehead " TAPEHEAD_VERSION "."));
}

TEST(page_of_one_lesson) {
    program = "explain";
    ck_assert_int_eq(run("--lesson 5 --page $D/page.html --heads 2 --seed 3 --no-scale --train"),
                     0);
    Json *read = data_of_page("page.html");
    const Json *only = json_at(json_get(read, "lessons"), 0);
    ck_assert_int_eq(json_get(read, "lessons")->count, 1);
    ck_assert_str_eq(json_text(only, "command", ""),
                     "build/explain --lesson 5 --heads 2 --seed 3 --no-scale --train");
    ck_assert_str_eq(json_at(json_get(only, "formula"), 1)->text, "A = softmax(Q_h K_h')");
    free(read);
    for (int number = 1; number <= LESSONS; number++) {
        ck_assert_int_eq(run(format("--lesson %d --page $D/lesson.html", number)), 0);
        slurp(path("lesson.html"), page, sizeof page);
        ck_assert_msg(strlen(page) < 800 * KB, "the page of lesson %d has %zu bytes", number,
                      strlen(page));
    }
    char here[512]; /* the default is a file in the current folder */
    ck_assert_ptr_nonnull(realpath(getenv("BUILD") ? getenv("BUILD") : "build", here));
    snprintf(page, sizeof page,
             "cd $D && $RUNNER %s/explain >out && test -s explain.html && rm out", here);
    ck_assert_int_eq(shell(page), 0);
}

/* The printed numbers are rounded, so every machine prints the same text. */
static const char *const sets[] = {"",
                                   "TAPEHEAD_ISA=plain",
                                   "TAPEHEAD_ISA=baseline",
                                   "TAPEHEAD_ISA=avx2",
                                   "TAPEHEAD_ISA=avx512",
                                   "TAPEHEAD_NUM_THREADS=2"};
enum { SETS = sizeof sets / sizeof *sets };

static bool has_set(const char *set) {
    const char *isa = strstr(set, "avx");
    return !isa || shell(format("grep -q %s /proc/cpuinfo 2>/dev/null", isa ? isa : "")) == 0;
}

LOOP_TEST(text_is_golden, SETS) {
    static char golden[PRINTED_SIZE];
    slurp("tests/golden/explain_lesson2.txt", golden, sizeof golden);
    program = "explain";
    if (!has_set(sets[_i])) return;
    ck_assert_int_eq(run_line(sets[_i], "--text --lesson 2"), 0);
    ck_assert_msg(strcmp(out, golden) == 0, "%s: another text", sets[_i]);
}

/* At most 80 columns, without blanks at the end, plain ASCII. */
static void expect_neat(void) {
    ck_assert_int_lt(strlen(out), PRINTED_SIZE - 1);
    ck_assert_ptr_null(strstr(out, " \n"));
    ck_assert_ptr_null(strstr(out, "check FAILS"));
    for (const char *at = out; *at; at += strcspn(at, "\n") + 1)
        ck_assert_msg(strcspn(at, "\n") <= 80, "a long line: %.100s", at);
    for (const char *c = out; *c; c++) ck_assert(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

LOOP_TEST(text_is_neat, LESSONS) {
    static const char *const parts[LESSONS][3] = {
        {"Lesson 1: One weight\n", "\ndw = sum of dU x D ..."},
        {"Lesson 2: Scores to output\n", "check ok", "\ndA = dY V' ..."},
        {"// masked", "w0 weight is 0, w1 weight is 1", "0 nothing arrives"},
        {":: dropped", "\ndx so far = from V + from K ...", "\ndx = from V + from K + from Q ..."},
        {"A head 3", "dgate head 1", "\nQ -> Q_h ..."},
        {"Lesson 6: A training step\n", "__ flat"}};
    program = "explain";
    ck_assert_int_eq(run(format("--text --lesson %d", _i + 1)), 0);
    ck_assert_int_eq(files_in_folder(), 0);
    expect_neat();
    for (int i = 0; i < 3 && parts[_i][i]; i++)
        ck_assert_msg(strstr(out, parts[_i][i]) != NULL, "the text has no %s", parts[_i][i]);
}

/* A part alone: the lesson before it is left out, and so is its page. */
TEST(half_a_lesson) {
    program = "explain";
    ck_assert_int_eq(run("--text --lesson 3b --seed 4"), 0);
    ck_assert_int_eq(strncmp(out, "Lesson 3b: ", 11), 0);
    ck_assert_ptr_null(strstr(out, "Lesson 3: "));
    ck_assert_int_eq(run("--lesson 3b --page $D/b.html"), 0);
    ck_assert_ptr_nonnull(strstr(out, "b.html: lesson 3b\n"));
    Json *read = data_of_page("b.html");
    ck_assert_int_eq(json_get(read, "lessons")->count, 1);
    ck_assert_str_eq(json_text(json_at(json_get(read, "lessons"), 0), "part", ""), "b");
    free(read);
    ck_assert_int_eq(run("--lesson 3b --heads 2"), 2);
    ck_assert_ptr_nonnull(strstr(complaints, "explain: lesson 3b takes no --heads"));
}

TEST(text_of_wide_matrices) {
    program = "explain";
    ck_assert_int_eq(run("--text --lesson 2 --size 16"), 0);
    expect_neat();
    ck_assert_ptr_nonnull(strstr(out, "Q, columns 0 to "));
    ck_assert_ptr_nonnull(strstr(out, " to 15\n"));
}

TEST(text_of_all_lessons) {
    program = "explain";
    ck_assert_int_eq(run("--text | grep -c '^Lesson [1-6]b*: '"), 0);
    ck_assert_str_eq(out, "7\n"); /* lesson 3 has two halves */
}

static int count_in(const char *text, const char *words) {
    int n = 0;
    for (const char *at = strstr(text, words); at; at = strstr(at + 1, words)) n++;
    return n;
}

/* One check fails in each part of the lesson. */
TEST(text_of_a_wrong_rule) {
    program = "explain";
    ck_assert_int_eq(run("--text --lesson 3 --break mask"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nThe rule of A is wrong: scale * "));
    const int parts = count_in(out, "\nThe rule of A is wrong: ");
    ck_assert_int_eq(count_in(out, ", b3.0, check FAILS\n"), parts);
    ck_assert_int_eq(count_in(out, "check FAILS"), parts);
    ck_assert_int_eq(run("--text --lesson 4 --break assign"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\nBackward is wrong here: = in place of +=.\n"));
    ck_assert_ptr_nonnull(strstr(out, ", a0.0, check FAILS\n"));
    ck_assert_ptr_nonnull(strstr(out, ", but the gradient is -0.09"));
    expect_failure("--text --lesson 2 --break dropout",
                   ": lesson 2 has no line that the wrong rule dropout changes\n");
    ck_assert_int_eq(run("--break dropout --page $D/page.html"), 0); /* in the lessons that can */
    Json *read = data_of_page("page.html");
    for (int i = 0; i < PARTS; i++)
        ck_assert_str_eq(json_text(json_at(json_get(read, "lessons"), i), "rule", "-"),
                         i == LESSON_4 ? "dropout" : "");
    free(read);
}

/* A terminal has colours, and gets all steps at once. */
TEST(text_on_a_terminal) {
    if (!has_terminal("text_on_a_terminal")) return;
    program = "explain";
    ck_assert_int_eq(run_on_terminal("TERM=xterm LANG=C.UTF-8", "--text --lesson 2 </dev/null"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\033[1mLesson 2"));
    ck_assert_ptr_nonnull(strstr(out, ", b0.0, check ok\r\n"));
    ck_assert_int_eq(run_on_terminal("TERM=xterm LANG=C.UTF-8 NO_COLOR=1", "--text --lesson 2"), 0);
    ck_assert_ptr_null(strchr(out, '\033'));
    ck_assert_ptr_nonnull(strstr(out, ", b0.0, check ok\r\n"));
}

TEST(help) {
    program = "explain";
    ck_assert_int_eq(run("--help"), 0);
    ck_assert_str_eq(complaints, "");
    static const char *const flags[] = {"--lesson 1|2|3|3b|4|5|6",
                                        "--page FILE.html",
                                        "--text",
                                        "--tape FILE.json",
                                        "--heads N",
                                        "--queries N",
                                        "--keys N",
                                        "--tokens N",
                                        "--size N",
                                        "--step N",
                                        "--rate NUMBER",
                                        "--dropout NUMBER",
                                        "--seed N",
                                        "--causal",
                                        "--no-scale",
                                        "--no-mask",
                                        "--no-causal",
                                        "--lengths",
                                        "--window",
                                        "--additive",
                                        "--pad-in-loss",
                                        "--help"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        ck_assert_msg(strstr(out, format("\n  %s\n        ", flags[i])) != NULL, "--help has no %s",
                      flags[i]);
    }
}

TEST(misuse) {
    program = "explain";
    expect_misuses("--nonsense", "nonsense", "--lesson 0", "--lesson 7", "--lesson 2b",
                   "--lesson 33", "--lesson", "--heads 0", "--heads 65", "--size x", "--dropout 1",
                   "--seed -1", "--text=1", "--page ''", "--lesson 1 --heads 2",
                   "--lesson 1 --tokens 2", "--lesson 1 --no-scale", "--lesson 1 --words a",
                   "--lesson 2 --causal", "--lesson 2 --no-causal", "--lesson 4 --window",
                   "--lesson 5 --lengths", "--lesson 2 --dropout 0", "--lesson 3 --tokens 3",
                   "--lesson 4 --no-mask", "--lesson 5 --additive", "--lesson 6 --queries 2",
                   "--lesson 6 --size 2", "--step 201", "--rate 0", "--rate 11", "--step -1",
                   "--tape $D/tape.json --break mask", "--tape $D/tape.json --train", "--break ''",
                   "--break exp", "--text --page $D/page.html", "--text --tape $D/tape.json",
                   "--tape $D/tape.json --lesson 2", "--tape $D/tape.json --seed 2",
                   "--tape $D/a --page $D/a");
    ck_assert_int_eq(files_in_folder(), 0);
}

PROGRAM_CASE("long", .is_long = true)
TEST(too_large) {
    program = "explain";
    expect_failure("--lesson 5 --tokens 24 --size 4 --page $D/page.html",
                   ": lesson 5: 24 tokens are too many here: at most 12\n");
    expect_failure("--lesson 3 --queries 64 --keys 64 --size 64 --page $D/page.html",
                   ": lesson 3: 64 queries are too many here: at most 16\n");
    ck_assert_int_eq(files_in_folder(), 0);
}

/* ---- a tape from a file ---------------------------------------------------------------------- */

/* softmax((x, 2) w), with a name that must not end the script. */
static void write_tape_file(const char *name) {
    FILE *file = fopen(path(name), "w");
    Tensor *x = tensor_randn(SHAPE(2, 3));
    ag_requires_grad(ag_name(x, "</script><!--"));
    tape_begin();
    tape_keep_grads(true);
    ck_assert(ag_backward(ag_sum(ag_square(ag_softmax(x, 1)))));
    ck_assert(tape_write_json(file));
    tape_end();
    ck_assert_int_eq(fclose(file), 0);
    tensor_release(x);
}

PROGRAM_CASE("the program")
TEST(page_of_a_tape) {
    program = "explain";
    write_tape_file("tape.json");
    ck_assert_int_eq(run("--tape $D/tape.json --page $D/page.html"), 0);
    ck_assert_str_eq(complaints, "");
    slurp(path("page.html"), page, sizeof page);
    ck_assert_ptr_null(strstr(data_in_page(page), "<!--"));
    Json *read = data_of_page("page.html");
    const Json *only = json_at(json_get(read, "lessons"), 0);
    ck_assert_int_eq(json_integer(only, "number", -1), 0);
    ck_assert_str_eq(json_text(only, "title", ""), "tape.json");
    ck_assert_int_eq(json_get(only, "questions")->count, 0);
    const Json *tape = json_get(only, "tape");
    ck_assert_int_eq(json_get(tape, "lines")->count, 3);
    ck_assert_int_eq(json_get(json_get(only, "plan"), "steps")->count, 8);
    ck_assert_str_eq(json_text(json_get(tape, "tensors")->first, "name", ""), "</script><!--");
    free(read);
}

TEST(tapes_that_cannot_be_read) {
    program = "explain";
    write_tape_file("tape.json");
    ck_assert_int_eq(
        shell("cd $D && mkdir folder && : >empty && echo garbled >garbage && echo '{}' >other &&"
              " head -c 300 tape.json >half && (cat tape.json && echo 1) >longer &&"
              " printf '{\\0}' >zero && head -c 1100000 /dev/zero | tr '\\0' ' ' >large &&"
              " cp tape.json hidden && chmod 000 hidden && echo old >page.html"),
        0);
#define PAGE " --page $D/page.html"
    expect_failure("--tape $D/nowhere" PAGE, "/nowhere: No such file or directory\n");
    expect_failure("--tape $D/folder" PAGE, "/folder: Is a directory\n");
    expect_failure("--tape $D/empty" PAGE, "/empty: line 1: a value was expected here\n");
    expect_failure("--tape $D/garbage" PAGE, "/garbage: line 1: a value was expected here\n");
    expect_failure("--tape $D/other" PAGE, "/other: not a tape: it has no \"lines\"");
    expect_failure("--tape $D/half" PAGE, "/half: line ");
    expect_failure("--tape $D/longer" PAGE, ": the text goes on after its end\n");
    expect_failure("--tape $D/zero" PAGE, "/zero: it is no text\n");
    expect_failure("--tape $D/large" PAGE, "/large: it has more than 1 MB: ");
    if (access(path("hidden"), R_OK) != 0)
        expect_failure("--tape $D/hidden" PAGE, "/hidden: Permission denied\n");
    ck_assert_int_eq(shell("test \"$(cat $D/page.html)\" = old"), 0);
}

TEST(pages_that_cannot_be_written) {
    program = "explain";
    ck_assert_int_eq(shell("mkdir $D/sealed && chmod 500 $D/sealed && echo old >$D/old"), 0);
    expect_failure("--page $D/nowhere/page.html",
                   ": it cannot be written: No such file or directory\n");
    expect_failure("--page $D", ": Is a directory\n");
    if (access(path("sealed"), W_OK) != 0)
        expect_failure("--page $D/sealed/page.html", ": it cannot be written: Permission denied\n");
    ck_assert_int_eq(run_line(SMALL_FILES, "--page $D/old"), 1);
    ck_assert_msg(strstr(complaints, ": File too large\n") != NULL, "%s", complaints);
    ck_assert_int_eq(shell("test \"$(cat $D/old)\" = old"), 0);
    ck_assert_int_eq(files_in_folder(), 2);
    if (!has_full_disk()) return;
    expect_failure("--page /dev/full", ": No space left on device\n");
    ck_assert_int_eq(run("--text >/dev/full"), 1);
    ck_assert_str_eq(complaints, "explain: cannot write to standard output\n");
}

TEST(standard_output_that_cannot_be_written) {
    program = "explain";
    ck_assert_int_eq(run_without_reader("--text"), 141);
    ck_assert_str_eq(complaints, "");
    ck_assert_int_eq(run("--page $D/page.html >&-"), 1);
    ck_assert_str_eq(complaints, "explain: cannot write to standard output\n");
    Json *read = data_of_page("page.html");
    ck_assert_int_eq(json_get(read, "lessons")->count, PARTS);
    free(read);
}

int main(void) { return run_tests("explain"); }
