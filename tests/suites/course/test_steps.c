/* test_steps.c - the steps of a tape as build/explain shows them: their names, the kinds of their
 * rules, their formulas, the numbers that are worked out, and what is said of them. The page draws
 * the same steps: tests/page looks only at how.
 *
 * The plan knows no op; this test does, and says which kind each op of the lessons must have. Every
 * number of every step is worked out, and its terms are added up; then the printed line is read and
 * evaluated as it is printed. */
#include "../common.h"
#include "common_line.h"

#include "../../../examples/explain/rules/card.h"
#include "../../../examples/explain/page/check.h"
#include "../../../examples/explain/page/recording.h"
#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/steps/known.h"
#include "../../../examples/explain/steps/reasons.h"
#include "../../../examples/explain/steps/sentences.h"
#include "../../../examples/explain/steps/text.h"
#include "../../../examples/explain/steps/worked.h"
#include "../../../examples/common/mistakes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lessons, with other seeds, sizes and flags. */
static const struct {
    int number;
    LessonOptions options;
} cases[] = {
    {1, {.dropout = -1, .seed = LESSON_SEED}},
    {2, {.dropout = -1, .seed = LESSON_SEED}},
    {3, {.dropout = -1, .seed = LESSON_SEED}},
    {4, {.dropout = -1, .seed = LESSON_SEED}},
    {5, {.dropout = -1, .seed = LESSON_SEED}},
    {6, {.dropout = -1, .seed = LESSON_SEED}},
    {1, {.dropout = -1, .seed = 7, .queries = 2, .keys = 6}},
    {1, {.dropout = -1, .seed = 11, .queries = 4, .keys = 4}},
    {2, {.dropout = -1, .seed = 1, .no_scale = true}},
    {2, {.dropout = -1, .seed = 3, .queries = 5, .keys = 2, .size = 3}},
    {2, {.dropout = -1, .seed = 4, .queries = 3, .keys = 3, .size = 3}},
    {3, {.dropout = -1, .seed = 5, .causal = -1, .no_scale = true}},
    {3, {.dropout = -1, .seed = 5, .lengths = true, .window = true}},
    {3, {.dropout = -1, .seed = 6, .no_mask = true}},
    {3, {.dropout = -1, .seed = 9, .queries = 2, .keys = 3}},
    {4, {.dropout = -1, .seed = 3, .tokens = 4, .size = 3, .causal = true}},
    {4, {.dropout = 0, .seed = 12}},
    {4, {.dropout = 0.5, .seed = 13, .tokens = 2, .size = 2}},
    {5, {.dropout = 0.5, .seed = 8, .heads = 2, .tokens = 3, .size = 3, .causal = true}},
    {5, {.dropout = -1, .seed = 2, .heads = 1, .no_scale = true}},
    {6, {.dropout = -1, .seed = 1, .tokens = 2}},
    {6, {.dropout = -1, .seed = 4, .step = 150}},
    {6, {.dropout = -1, .seed = LESSON_SEED, .additive = true}},
    {6, {.dropout = -1, .seed = 3, .additive = true, .step = 20}},
};
enum { CASES = sizeof cases / sizeof *cases };

static char *json;
static Json *tree;
static Plan plan;
static bool opened; /* all groups of lines are */

/* The plan of a lesson, as text, which close_plan frees. */
static void open_json(char *text, bool open) {
    json = text;
    opened = open;
    tree = json_read(json);
    ck_assert_msg(tree != NULL, "%s", tensor_error());
    ck_assert_msg(check_tape(json_get(tree, "tape")), "%s", tensor_error());
    ck_assert_msg(plan_make(&plan, tree) && known_mark(&plan), "%s", tensor_error());
}

/* One of the parts of a lesson. */
typedef struct {
    int wanted;
    char *text;
} CasePart;

static bool keep_part(void *context, char *lesson) {
    CasePart *part = context;
    if (part->wanted-- == 0) part->text = strdup(lesson);
    return true;
}

static char *json_of_case(int i, int part) {
    CasePart found = {part, NULL};
    const bool done =
        lessons_use(cases[i].number, cases[i].number, cases[i].options, keep_part, &found);
    ck_assert_msg(done, "%s", tensor_error());
    return found.text;
}

/* A case, one of its parts. False, and nothing is open, if it has fewer. */
static bool open_part(int i, int part, bool open) {
    char *text = json_of_case(i, part);
    if (text) open_json(text, open);
    return text != NULL;
}

/* A case with other members, ",\"fold\":...": the first of a name counts, so the lesson's own texts
 * and folds are not used. */
static void open_with(int i, const char *members) {
    static const char none[] =
        ",\"fold\":[],\"steps\":[],\"labels\":[],\"short\":[],"
        "\"transposed\":[],\"bet\":null,\"again\":[],\"questions\":[],\"part\":\"\",";
    char *text = json_of_case(i, 0);
    const size_t size = strlen(text) + strlen(members) + sizeof none;
    char *with = malloc(size);
    const char *place = strstr(text, "\"number\":");
    ck_assert(with && place);
    snprintf(with, size, "%.*s%s%s%s", (int)(place - text), text, members + (*members == ','),
             *members ? none : none + 1, place);
    free(text);
    open_json(with, false);
}

static void open_case(int i) { open_with(i, ""); }

static void close_plan(void) {
    plan_free(&plan);
    free(tree);
    free(json);
}

/* The arrow that is shown after this one; NULL: it is the last. */
static const Step *next_of(const Step *step) {
    while (++step < plan.steps + plan.num_steps)
        if (step->unit >= 0 && plan_shows(&plan, step, opened)) return step;
    return NULL;
}

static const Step *find_step(const char *name) {
    const int s = plan_find(&plan, name, opened);
    ck_assert_msg(s > 0, "there is no step %s", name);
    return &plan.steps[s];
}

static const RuledLine *line_of(const Step *step) {
    return &plan.tape.lines[plan.units[step->unit].last];
}

static const char *op_of(const Step *step) { return json_text(line_of(step)->json, "op", ""); }

static const TapeTensor *result_of(const Step *step) { return &plan.tape.tensors[step->tensor]; }

/* ---- rules ----------------------------------------------------------------------------------- */

static bool is_one_of(const char *op, const char *const *list) {
    while (*list && strcmp(*list, op) != 0) list++;
    return *list != NULL;
}

static const char *const products[] = {"matmul", "bmm", "linear", NULL};
static const char *const softmaxes[] = {"softmax", "masked_softmax", NULL};
static const char *const moves[] = {"transpose", "reshape", "squeeze", "unsqueeze", NULL};
static const char *const elementwise[] = {
    "sub", "add", "mul", "scale", "square", "relu", "tanh", "dropout", "masked_fill", "sum", NULL};

static const char *const selecting[] = {"relu", "dropout", "masked_fill", NULL};

/* A relu of positive numbers copies them. Of a line without a gradient nothing is known. */
static bool must_move(const Step *step) {
    const char *op = op_of(step);
    const bool is_known = step->phase == STEP_BACKWARD || line_of(step)->num_parts > 0;
    if (is_one_of(op, selecting)) return line_of(step)->moves != NULL;
    return is_one_of(op, moves) && is_known;
}

static void check_rule(const Step *step) {
    Formula f;
    const char *op = op_of(step);
    const Part *part = step->part;
    formula_of(&plan, step, &f);
    ck_assert_msg(!strstr(f.title, "derivative"), "%s: %s", step->name, f.title);
    if (!plan.units[step->unit].name) ck_assert_int_eq(step->moves, must_move(step));
    if (step->phase != STEP_BACKWARD || step->moves || plan.units[step->unit].name) return;
    ck_assert_msg(part->tree != NULL, "%s: %s has no rule", step->name, op);
    ck_assert_int_eq(is_factor(line_of(step), part->k), is_one_of(op, products) && part->k < 2);
    ck_assert_int_eq(part->factor != 0, is_one_of(op, softmaxes));
    ck_assert_int_eq(tree_goes_by_rows(part->tree), is_one_of(op, softmaxes));
    ck_assert(is_one_of(op, products) || is_one_of(op, softmaxes) || is_one_of(op, elementwise));
}

/* Each step of backward has its rule, or moves numbers, as its op must. */
CASE("steps")
LOOP_TEST(rules, CASES) {
    for (int open = 0; open < 2; open++)
        for (int part = 0; open_part(_i, part, open); part++) {
            for (const Step *step = next_of(plan.steps); step; step = next_of(step))
                if (step->phase == STEP_FORWARD || step->phase == STEP_BACKWARD) check_rule(step);
            close_plan();
        }
}

/* ---- terms ----------------------------------------------------------------------------------- */

enum { MAIN = -1 }; /* not a table of sums: what the step makes */

/* With all digits the terms give the number. False if the line is no arithmetic, or too long. */
static bool check_terms_of(const Recipe *r, int sum, int64_t i) {
    char text[LINE_TEXT];
    const double wanted = worked_item(r, sum)->numbers[i];
    const TapeTensor *x = &plan.tape.tensors[r->step->tensor];
    const char *rest = text;
    double value;
    worked_line(r, sum, i, 14, text);
    if (!read_sum(&rest, &value, NULL) || *rest) return false;
    const double most = (is_float32(x) ? 2e-5 : 1e-11) * fmax(1, fabs(wanted));
    ck_assert_msg(fabs(value - wanted) <= most, "%s: %s, %s[%d]: %s is %.17g, not %.17g",
                  json_text(plan.lesson, "command", ""), r->step->name, x->name, (int)i, text,
                  value, wanted);
    return true;
}

/* Forward, a number of any other op can be no sum of products: a softmax, a - b. */
static bool must_have_terms(const Step *step) {
    static const char *const linear[] = {"matmul", "bmm", "linear", "sum", "dropout", NULL};
    const bool is_vector = result_of(step)->rank < 2 && strcmp(op_of(step), "linear") == 0;
    return step->phase != STEP_FORWARD || (is_one_of(op_of(step), linear) && !is_vector);
}

static void check_all_terms(void) {
    char text[LINE_TEXT];
    for (const Step *step = next_of(plan.steps); step; step = next_of(step)) {
        Formula f;
        Recipe r;
        recipe_of(&plan, step, &f, &r);
        if (step->phase == STEP_START) continue;
        for (int64_t i = 0; i < result_of(step)->size; i++) {
            const bool summed = check_terms_of(&r, MAIN, i);
            worked_line(&r, MAIN, i, 0, text);
            ck_assert_msg(summed || strstr(text, " + ... (") || !must_have_terms(step) ||
                              step->numbers[i] == 0,
                          "%s: %s has no terms: %s", json_text(plan.lesson, "command", ""),
                          step->name, text);
        }
        for (int sum = 0; sum < r.num_sums; sum++)
            for (int64_t i = 0; i < worked_item(&r, sum)->size; i++)
                ck_assert(check_terms_of(&r, sum, i));
    }
}

LOOP_TEST(terms, CASES) {
    for (int open = 0; open < 2; open++)
        for (int part = 0; open_part(_i, part, open); part++) {
            check_all_terms();
            close_plan();
        }
}

/* ---- the printed line ------------------------------------------------------------------------ */

/* Evaluates a line as it is printed: it must give the number as it is printed. Returns false if the
 * line is no arithmetic. */
static bool check_line(const Recipe *r, int sum, int64_t i) {
    char text[LINE_TEXT], result[NUMBER_TEXT];
    const Item *made = worked_item(r, sum);
    const char *rest = text;
    double value;
    worked_line(r, sum, i, worked_more(r, sum, i), text);
    ck_assert_int_lt(strlen(text), LINE_TEXT - 1);
    if (!read_sum(&rest, &value, NULL) || *rest) return false;
    format_number(made->numbers[i], made->format, result);
    const double wanted = strtod(result, NULL);
    ck_assert_msg(fabs(value - wanted) <= 0.5 * last_place(result) + 1e-9, "%s, %s = %s: it is %g",
                  r->step->name, text, result, value);
    return true;
}

/* Evaluates the lines of all numbers of the plan. Returns how many are arithmetic. */
static int check_lines(void) {
    int lines = 0;
    for (const Step *step = next_of(plan.steps); step; step = next_of(step)) {
        Formula f;
        Recipe r;
        recipe_of(&plan, step, &f, &r);
        for (int64_t i = 0; i < result_of(step)->size; i++) lines += check_line(&r, MAIN, i);
        for (int sum = 0; sum < r.num_sums; sum++)
            for (int64_t i = 0; i < worked_item(&r, sum)->size; i++)
                ck_assert(check_line(&r, sum, i));
    }
    return lines;
}

LOOP_TEST(printed_lines, CASES) {
    for (int part = 0; open_part(_i, part, false); part++) {
        ck_assert_int_gt(check_lines(), 30);
        close_plan();
    }
}

/* What is printed for the number that a step shows first. */
static void expect_line(const char *name, const char *line) {
    char text[LINE_TEXT];
    Formula f;
    Recipe r;
    const Step *step = find_step(name);
    recipe_of(&plan, step, &f, &r);
    worked_line(&r, MAIN, step->look, worked_more(&r, MAIN, step->look), text);
    ck_assert_str_eq(text, line);
}

TEST(lines_of_lesson_2) {
    open_case(1);
    expect_line("f0", "-1.3");
    expect_line("f1", "1.0 x (-0.4) + (-0.6) x (-1.0) + 0.6 x 1.3 + 0.5 x 0.7");
    expect_line("f2", "0.5 x 1.33");
    expect_line("f3", "exp(0.665) / (exp(0.665) + exp(-0.545) + exp(0.265))");
    expect_line("f5", "-0.972 - 1.0");
    expect_line("f6", "(-1.972)^2");
    expect_line("f7", "0.07 + 0.35 + 0.31 + 3.89");
    expect_line("s", "");
    expect_line("b7.0", "1");
    expect_line("b6.0", "2 x (-1.97) x 1");
    expect_line("b4.0", "-1.12 x (-0.1) + (-3.94) x (-1.6)");
    expect_line("b3.0", "0.3405 x (-0.228 - 4.013)");
    expect_line("b0.0", "-0.2013 x 0.4 + (-0.7221) x 1.0");
    close_plan();
}

/* What a move turns over, product and all: its numbers, and the two lines that say why. */
LOOP_TEST(turned_products, CASES) {
    Algebra a;
    int found = 0;
    open_case(_i);
    for (int s = 0; s < plan.num_steps; s++) {
        const Step *step = &plan.steps[s];
        if (!step->product) continue;
        found++;
        for (int64_t i = 0; i < plan.tape.tensors[step->tensor].size; i++)
            ck_assert_double_eq_tol(tree_number(step->product, step->product->n - 1, i),
                                    step->numbers[i], 1e-6);
        algebra_of(&plan, step, 0, &a);
        ck_assert_int_eq(a.count, 2);
        ck_assert(strstr(a.at[0].line, "'` = `Q") && strstr(a.at[1].line, ")' = `d"));
    }
    const int lesson = cases[_i].number;
    ck_assert_int_eq(found, lesson >= 2 && lesson <= 5);
    close_plan();
}

TEST(turned_product_of_lesson_2) {
    Algebra a;
    open_case(1);
    algebra_of(&plan, find_step("b0.0"), 0, &a);
    ck_assert_str_eq(a.at[0].line, "`dK'` = `Q'` `dS`");
    ck_assert_str_eq(a.at[1].line, "`dK` = (`Q'` `dS`)' = `dS'` `Q`");
    close_plan();
}

/* ---- formulas -------------------------------------------------------------------------------- */

static void expect_formula(const char *name, const char *formula) {
    char text[FORMULA_TEXT];
    Formula f;
    size_t n = 0;
    formula_of(&plan, find_step(name), &f);
    for (const char *c = f.title; *c; c++)
        if (*c != '`') text[n++] = *c;
    text[n] = '\0';
    ck_assert_str_eq(text, formula);
}

TEST(formulas) {
    open_case(1);
    expect_formula("f0", "K -> K'");
    expect_formula("f1", "S = Q K'");
    expect_formula("f2", "S / sqrt(d) = 0.5 S");
    expect_formula("f3", "A = softmax(S / sqrt(d))");
    expect_formula("f5", "E = Y - T");
    expect_formula("f6", "E^2 = E x E, number by number");
    expect_formula("s", "dloss = 1");
    expect_formula("b7.0", "d(E^2) = dloss, for each number");
    expect_formula("b6.0", "dE = 2 E x d(E^2)");
    expect_formula("b5.0", "dY = dE");
    expect_formula("b4.0", "dA = dY V'");
    expect_formula("b4.1", "dV = A' dY");
    expect_formula("b3.0", "d(S / sqrt(d)) = A x (dA - sum(A x dA))");
    expect_formula("b2.0", "dS = 0.5 d(S / sqrt(d))");
    expect_formula("b1.0", "dQ = dS K");
    expect_formula("b1.1", "dK' = Q' dS");
    expect_formula("b0.0", "dK = dS' Q");
    close_plan();
    open_case(0);
    expect_formula("b1.1", "dw = sum of dU x D");
    close_plan();
    open_case(3);
    expect_formula("f0", "Q = x W_q'");
    expect_formula("b0.0", "dx = dQ W_q");
    expect_formula("b0.1", "dW_q = dQ' x");
    expect_formula("a1.0", "dx so far = from V + from K");
    expect_formula("a0.0", "dx = from V + from K + from Q");
    close_plan();
    open_case(5);
    expect_formula("f6", "relu(P) = max(P, 0)");
    expect_formula("b5.2", "dW_1.bias = sum of dP");
    close_plan();
}

/* A lesson can say what a tensor is the transpose of. */
TEST(transposes) {
    int keys = 0, queries = 0;
    open_case(1);
    while (strcmp(plan.tape.tensors[keys].name, "K'") != 0) keys++;
    while (strcmp(plan.tape.tensors[queries].name, "Q") != 0) queries++;
    close_plan();
    open_with(1, format(",\"transposed\":[{\"tensor\":%d,\"of\":%d}]", keys, queries));
    expect_formula("b1.0", "dQ = dS Q");
    expect_formula("b1.1", "dK' = K' dS");
    close_plan();
}

/* A lesson can give a tensor a short name. */
TEST(short_names) {
    int scores = 0;
    char name[NAME_TEXT];
    open_case(1);
    while (strcmp(plan.tape.tensors[scores].name, "S / sqrt(d)") != 0) scores++;
    close_plan();
    open_with(1, format(",\"short\":[{\"tensor\":%d,\"name\":\"Z\"}]", scores));
    expect_formula("f2", "Z = 0.5 S");
    expect_formula("b3.0", "dZ = A x (dA - sum(A x dA))");
    full_name(&plan, scores, name);
    ck_assert_str_eq(name, "S / sqrt(d)");
    close_plan();
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void expect_names(const char *expected) {
    char names[1024] = "0";
    size_t n = 1;
    for (const Step *step = next_of(plan.steps); step; step = next_of(step))
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", step->name);
    ck_assert_str_eq(names, expected);
}

/* The number of the step that a name leads to, of those that are shown; -1: none. */
static int find(const char *name) { return plan_find(&plan, name, opened); }

static int count_shown(void) {
    int n = 1;
    for (const Step *step = next_of(plan.steps); step; step = next_of(step)) n++;
    return n;
}

TEST(names) {
    open_case(1);
    expect_names("0 f0 f1 f2 f3 f4 f5 f6 f7 s b7.0 b6.0 b5.0 b4.0 b4.1 b3.0 b2.0 b1.0 b1.1 b0.0");
    ck_assert_int_eq(find("0"), 0);
    ck_assert_int_eq(find("b7.0"), 10);
    ck_assert_str_eq(plan.steps[find("b7.1")].name, "b7.0"); /* the nearest */
    ck_assert_str_eq(plan.steps[find("a4.1")].name, "b4.0");
    static const char *const others[] = {"", "b", "f8", "x3", "3", "s3", "f-1", " f7"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(find(others[i]), -1);
    close_plan();
    open_case(3);
    expect_names("0 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 s b11.0 b10.0 b9.0 b8.0 b8.1 b7.0 b6.0 "
                 "b5.0 b4.0 b4.1 b3.0 b2.0 b2.1 b1.0 a1.0 b1.1 b0.0 a0.0 b0.1");
    close_plan();
}

/* Four chains of three moves; the step of a line inside is the step of its chain. */
TEST(chains) {
    open_case(4);
    ck_assert_int_eq(count_shown(), 45);
    ck_assert_int_eq(plan.num_groups, 4);
    ck_assert_int_eq(find("f1"), find("f3"));
    ck_assert_int_eq(find("b2.0"), find("b1.0"));
    ck_assert_int_eq(find("a3.0"), find("b1.0"));
    ck_assert_int_gt(find("b1.0"), find("s"));
    expect_formula("f3", "Q -> Q_h");
    expect_formula("b18.0", "dgated <- d(Concat(heads))");
    close_plan();
    ck_assert(open_part(4, 0, true));
    ck_assert_int_eq(count_shown(), 45 + 4 * 2 * 2);
    ck_assert_int_lt(find("f1"), find("f3"));
    close_plan();
}

/* The lines of the loss are one step, with the product of their derivatives. */
TEST(folds) {
    open_with(1, ",\"fold\":[{\"lines\":[5,6,7],\"name\":\"loss\"}]");
    expect_names("0 f0 f1 f2 f3 f4 f7 s b5.0 b4.0 b4.1 b3.0 b2.0 b1.0 b1.1 b0.0");
    const Step *step = find_step("b6.0");
    ck_assert_str_eq(step->name, "b5.0");
    ck_assert(goes_by_numbers(step->part));
    ck_assert_str_eq(plan.units[step->unit].name, "loss");
    expect_formula("f7", "loss = sum((Y - T)^2)");
    expect_formula("b5.0", "dY = 2 E x dloss");
    expect_line("b5.0", "2 x (-1.97) x 1");
    expect_line("f7", "0.07 + 0.35 + 0.31 + 3.89");
    opened = true;
    expect_names("0 f0 f1 f2 f3 f4 f5 f6 f7 s b7.0 b6.0 b5.0 b4.0 b4.1 b3.0 b2.0 b1.0 b1.1 b0.0");
    check_all_terms();
    opened = false;
    check_all_terms();
    close_plan();
}

/* The names of the steps that are shown where only the key steps are. */
static void expect_keys(const char *expected) {
    char found[512] = "0";
    size_t n = 1;
    ck_assert(plan.steps[0].is_key);
    for (const Step *step = next_of(plan.steps); step; step = next_of(step))
        if (step->is_key) n += (size_t)snprintf(found + n, sizeof found - n, " %s", step->name);
    ck_assert_str_eq(found, expected);
}

/* A lesson found its key steps; a long one begins with them. */
TEST(key_steps) {
    open_part(1, 0, false);
    expect_keys("0 f1 f4 b4.0 b4.1 b3.0 b1.0 b1.1 b0.0");
    ck_assert(!plan.is_long);
    close_plan();
    open_part(4, 0, false);
    expect_keys("0 f3 f13 f16 b17.1 b16.0 b16.1 b13.0 b13.1 b0.1");
    ck_assert(plan.is_long);
    opened = true; /* a name inside a chain of moves is then its own step */
    expect_keys("0 f3 f13 f16 b17.1 b16.0 b16.1 b13.0 b13.1 b0.1");
    close_plan();
}

/* The steps of the lessons as they are: the rule of each, its address, and the lesson in the order
 * in which they are read. */
static struct {
    char rule[KNOWN_TEXT], where[40];
    int part;
} taught[400];
static int num_taught;

static void show_rules(int part) {
    Formula f;
    for (Step *step = plan.steps; step < plan.steps + plan.num_steps; step++) {
        if (step->unit < 0) continue;
        ck_assert_int_lt(num_taught, 400);
        formula_of(&plan, step, &f);
        known_rule(&plan, step, f.title, taught[num_taught].rule);
        snprintf(taught[num_taught].where, sizeof taught->where, "%d%s/%s",
                 (int)json_integer(plan.lesson, "number", 0), json_text(plan.lesson, "part", ""),
                 step->name);
        taught[num_taught++].part = part;
    }
}

/* A step has a link to an earlier lesson if, and only if, one has its rule; and it leads to such a
 * step. */
static void expect_known(int n, const char *as) {
    bool is_known = false, leads = false;
    for (int i = 0; i < num_taught; i++)
        if (taught[i].part < taught[n].part && strcmp(taught[i].rule, taught[n].rule) == 0) {
            is_known = true;
            leads = leads || (as && strcmp(taught[i].where, as) == 0);
        }
    ck_assert_msg(is_known ? leads : !as, "%s, %s: known from %s", taught[n].where, taught[n].rule,
                  as ? as : "nowhere");
}

TEST(known_steps_lead_to_earlier_lessons) {
    int parts = 0;
    num_taught = 0;
    for (int number = 1; number <= 6; number++)
        for (int part = 0; part < 2; part++) {
            LessonOptions options = LESSON_OPTIONS;
            CasePart found = {part, NULL};
            ck_assert(lessons_use(number, number, options, keep_part, &found));
            if (!found.text) continue;
            open_json(found.text, false);
            const int first = num_taught;
            show_rules(parts++);
            for (int n = first, s = 0; s < plan.num_steps; s++)
                if (plan.steps[s].unit >= 0) expect_known(n++, plan.steps[s].as);
            close_plan();
        }
    ck_assert_int_eq(parts, 7);
}

/* How many steps of a reader's way stand before the next question, at most; the steps are those
 * that are shown at first. */
static int longest_way(void) {
    int way = 0, longest = 0;
    for (const Step *step = next_of(plan.steps); step; step = next_of(step)) {
        const Json *question = json_first(plan.lesson, "questions");
        if (plan.is_long && !step->is_key) continue;
        while (question && find(json_text(question, "at", "")) != step - plan.steps)
            question = question->next;
        way = question ? 0 : way + 1;
        longest = way > longest ? way : longest;
    }
    return longest;
}

/* Of eight steps in a row at least one has a question; and each question is at a key step. */
LOOP_TEST(questions_on_the_way, 6) {
    for (int part = 0; open_part(_i, part, false); part++) {
        ck_assert_msg(longest_way() < 8, "%s: %d steps without a question",
                      json_text(plan.lesson, "title", ""), longest_way());
        const Json *question = json_first(plan.lesson, "questions");
        for (; question; question = question->next)
            ck_assert(find_step(json_text(question, "at", ""))->is_key);
        close_plan();
    }
}

/* A folded step has the texts of its lines. */
TEST(texts_of_folds) {
    open_with(
        1,
        ",\"fold\":[{\"lines\":[5,6,7],\"name\":\"loss\"}],\"steps\":["
        "{\"at\":\"f5\",\"text\":\"One.\"},{\"at\":\"f7\",\"text\":\"Three.\"},"
        "{\"at\":\"b7.0\",\"text\":\"First.\"},{\"at\":\"b5.0\",\"text\":\"Last.\",\"look\":1}]");
    ck_assert_str_eq(find_step("f7")->text, "One. Three.");
    const Step *step = find_step("b5.0");
    ck_assert_str_eq(step->text, "First. Last.");
    ck_assert_int_eq(step->look, 1);
    close_plan();
}

TEST(texts) {
    open_with(1,
              ",\"steps\":[{\"at\":\"b3.0\",\"text\":\"A text.\",\"look\":3},{\"at\":\"f9\"},{},7,"
              "{\"at\":\"f1\",\"text\":\"Another.\",\"look\":99}]");
    const Step *step = find_step("b3.0");
    ck_assert_str_eq(step->text, "A text.");
    ck_assert_int_eq(step->look, 3);
    expect_line("b3.0", "0.508 x (6.42 - 4.01)");
    step = find_step("f1");
    ck_assert_str_eq(step->text, "Another.");
    ck_assert_int_eq(step->look, 3); /* the largest: there is no element 99 */
    ck_assert_ptr_null(plan.steps[0].text);
    close_plan();
}

/* ---- what the lesson says -------------------------------------------------------------------- */

enum { PRINTED = 1 << 16 };

/* What text_show prints of the plan's lesson into a file. */
static const char *shown(void) {
    static char text[PRINTED];
    FILE *file = tmpfile();
    fflush(stdout);
    const int stdout_of_test = dup(1);
    ck_assert(file && stdout_of_test >= 0 && dup2(fileno(file), 1) >= 0);
    const bool on = text_show(plan.lesson);
    fflush(stdout);
    ck_assert(dup2(stdout_of_test, 1) >= 0);
    close(stdout_of_test);
    ck_assert_msg(on, "%s", tensor_error());
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The parts must occur in this order; NULL ends them. */
static void expect_in_order(const char *text, const char *const *parts) {
    for (; *parts; parts++) {
        const char *found = strstr(text, *parts);
        ck_assert_msg(found != NULL, "no \"%s\" in %.500s", *parts, text);
        text = found + strlen(*parts);
    }
}

TEST(cover_texts_and_questions) {
    static const char *const parts[] = {
        "Lesson 2b: Scores to output\nWhose fault?\n\nA lead.\n\n    Y = softmax(Q K' / sqrt(d)) V\n",
        "    Your bet: More or less?\n      - more\n      - less\n\nK -> K' ",
        "S / sqrt(d) = 0.5 S ",
        " forward 3 of 8, f2\n\n    Question: How large is it?\n"
        "    Hint: Halve it.\n\n    S / sqrt(d) ",
        " = 0.665\n\n    Answer: -1.19\n\n",
        "dA = dY V' ",
        " b4.0, check ok\n\n    Question: Which?\n      - this\n      - that\n\n"
        "    Question: How many?\n\n    dA ",
        " = 6.42\n\n    A text with S in it.\n\n    Answer: this. Because.\n\n    Answer: 2 terms\n\n",
        " b3.0, check ok\n",
        " = 4.01\n\n    dx_2 = p (1 - p) dA_2 - p r dA_0 - p s dA_1\n        each change times its dA, added up\n",
        ") = -1.44\n\n    Your bet was: More or less?\n    Answer: less\n\n",
        "dK' = Q' dS ",
        " b1.1, check ok\n\n    Question: Where?\n",
        NULL};
    open_with(
        1,
        ",\"part\":\"b\",\"cover\":{\"title\":\"Whose fault?\",\"lead\":\"A lead.\"},"
        "\"bet\":{\"at\":\"b3.0\",\"ask\":\"More or less?\",\"options\":[\"more\",\"less\"],"
        "\"answer\":1},\"steps\":[{\"at\":\"b4.0\",\"text\":\"A text with `S` in it.\"}],"
        "\"questions\":[{\"kind\":\"choice\",\"at\":\"b4.0\",\"ask\":\"Which?\",\"options\":"
        "[\"this\",\"that\"],\"answer\":0,\"why\":\"Because.\"},{\"kind\":\"number\",\"at\":\"f2\","
        "\"ask\":\"How large is it?\",\"hint\":\"Halve it.\",\"tensor\":3,\"part\":\"value\","
        "\"index\":0},{\"kind\":\"count\",\"at\":\"b4.0\",\"ask\":\"How many?\",\"line\":4,\"input\":0,"
        "\"index\":0},{\"kind\":\"zeros\",\"at\":\"b1.1\",\"ask\":\"Where?\",\"tensor\":1},"
        "{\"ask\":\"nowhere\"}]");
    const char *text = shown();
    expect_in_order(text, parts);
    ck_assert_ptr_null(strstr(text, "nowhere"));
    ck_assert_ptr_null(strstr(text, "Attention looks up values")); /* that was today's paragraph */
    close_plan();
}

/* The plan of the open tape, after backward. */
static void open_tape(Tensor *loss) {
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    ck_assert_msg(ag_backward(loss), "%s", tensor_error());
    fprintf(file, "{\"tape\":");
    ck_assert_msg(tape_write_json(file), "%s", tensor_error());
    fprintf(file, "}");
    ck_assert_int_eq(fclose(file), 0);
    tape_end();
    open_json(text, false);
}

static void begin_tape(void) {
    tape_begin();
    tape_keep_grads(true);
}

/* The words of rows and columns stand at the tables of the tensor, also where it is transposed. */
TEST(labels) {
    static const char *const parts[] = {" f3\n",
                                        "    A                             = softmax ",
                                        "            the    cat    sat\n",
                                        "    the [ 0.153  0.421  0.425 ]  ",
                                        "    cat [ 0.508  0.151  0.341 ]  ",
                                        " b4.1, check ok\n",
                                        "A'                     dY\n",
                                        "       the    cat\n",
                                        "   the [ 0.153  0.508 ]  ",
                                        "   cat [ 0.421  0.151 ]  ",
                                        "   sat [ 0.425  0.341 ]",
                                        NULL};
    int a = 0;
    open_case(1);
    while (strcmp(plan.tape.tensors[a].name, "A") != 0) a++;
    close_plan();
    open_with(
        1,
        format(
            ",\"labels\":[{\"tensor\":%d,\"rows\":[\"the\",\"cat\"],\"columns\":[\"the\",\"cat\","
            "\"sat\"]},{\"tensor\":0,\"rows\":[\"one\"]},{}]",
            a));
    expect_in_order(shown(), parts);
    ck_assert_ptr_null(strstr(shown(), "one ["));
    close_plan();
}

/* A table of small numbers says so above; a small number has three digits. */
TEST(small_numbers) {
    static const char *const parts[] = {"\n    dx, in 1e-4 ", "[  1.00  -4.00   0.05 ]",
                                        "\n    dx[1] = 2 x (-40.0) x 5e-6 = -4.00e-4\n", NULL};
    begin_tape();
    Tensor *x = tensor_from_doubles(SHAPE(3), (double[]){10, -40, 0.5});
    tape_own(ag_requires_grad(ag_name(x, "x")));
    open_tape(ag_sum(ag_scale(ag_square(x), 5e-6)));
    expect_in_order(shown(), parts);
    close_plan();
}

/* ---- checks, reasons, sentences ---------------------------------------------------------------
 */

/* An error, and so many derivatives that differences cannot check; large: a number is. */
static const struct {
    double worst;
    int64_t unchecked;
    bool large;
    Check check;
    const char *words;
} checks_of_parts[] = {
    {2e-10, 0, false, CHECK_RIGHT, "checked by difference quotients, largest error 2e-10"},
    {0, 0, false, CHECK_RIGHT, "checked by difference quotients, largest error 0"},
    {0, 1, false, CHECK_RIGHT,
     "checked by difference quotients, largest error 0; 1 of the derivatives cannot be checked"},
    {0, 12, false, CHECK_UNCHECKED,
     "cannot be checked: the numbers are too large, or the point is a kink"},
    {1e-3, 0, false, CHECK_WRONG, "differences disagree: this rule is wrong (largest error 1e-3)"},
    {(double)NAN, 0, false, CHECK_WRONG,
     "differences disagree: this rule is wrong (largest error NaN)"},
    {(double)NAN, 0, true, CHECK_UNCHECKED,
     "cannot be checked: the numbers are too large, or the point is a kink"},
};

static Check check_of(const char *name, char words[160]) {
    bool passes_on;
    return check_of_step(&plan, find_step(name), words, &passes_on);
}

TEST(checks) {
    char words[160];
    open_case(1);
    Part *part = find_step("b4.0")->part;
    ck_assert_int_eq(part->by.begin[plan.tape.tensors[part->x].size], 12);
    for (size_t i = 0; i < sizeof checks_of_parts / sizeof *checks_of_parts; i++) {
        part->worst = checks_of_parts[i].worst;
        part->unchecked = checks_of_parts[i].unchecked;
        if (checks_of_parts[i].large) plan.tape.tensors[part->x].value[0] = 1e6;
        ck_assert_int_eq(check_of("b4.0", words), checks_of_parts[i].check);
        ck_assert_str_eq(words, checks_of_parts[i].words);
    }
    plan.tape.tensors[find_step("b1.0")->tensor].grad[0] += 0.1;
    ck_assert_int_eq(check_of("b1.0", words), CHECK_WRONG);
    ck_assert_str_eq(words, "the sum of all terms is not the gradient that the program stored");
    close_plan();
}

/* Steps of SGD that are far too large end in NaN; the rules are right all the same. */
RANGE_TEST(checks_of_numbers_that_are_too_large, 1, LESSONS + 1) {
    const LessonOptions options = {.dropout = -1, .seed = LESSON_SEED, .step = 200, .rate = 10};
    char words[160];
    bool passes_on;
    for (int part = 0; part < 1 + (_i == 3); part++) {
        CasePart found = {part, NULL};
        ck_assert_msg(lessons_use(_i, _i, options, keep_part, &found), "%s", tensor_error());
        open_json(found.text, false);
        for (const Step *step = next_of(plan.steps); step; step = next_of(step))
            ck_assert_msg(check_of_step(&plan, step, words, &passes_on) <= CHECK_UNCHECKED,
                          "lesson %d, %s: %s", _i, step->name, words);
        close_plan();
    }
}

/* Without a wrong rule no check is red, and each 0 of a gradient has a reason. */
LOOP_TEST(checks_and_reasons_of_lessons, CASES) {
    for (int part = 0; open_part(_i, part, false); part++) {
        for (const Step *step = next_of(plan.steps); step; step = next_of(step)) {
            char text[SENTENCE_TEXT];
            bool passes_on;
            ck_assert_msg(check_of_step(&plan, step, text, &passes_on) <= CHECK_UNCHECKED, "%s: %s",
                          step->name, text);
            sentence_of(&plan, step, text);
            ck_assert_msg(strlen(text) > 20 && text[strlen(text) - 1] == '.', "%s: %s", step->name,
                          text);
            for (int64_t i = 0; step->phase == STEP_BACKWARD && i < result_of(step)->size; i++) {
                reason_of_part(&plan, step->part, i, text);
                ck_assert(step->numbers[i] != 0 || strlen(text) > 10);
            }
        }
        close_plan();
    }
}

static void expect_sentence(const char *name, const char *expected) {
    char text[SENTENCE_TEXT];
    sentence_of(&plan, find_step(name), text);
    ck_assert_str_eq(text, expected);
}

TEST(sentences) {
    open_with(1, ",\"fold\":[{\"lines\":[5,6,7],\"name\":\"loss\"}]");
    expect_sentence("f0", "Nothing is computed. Each number of `K` moves to its place in `K'`.");
    expect_sentence("f1", "Each number of `S` is a row of `Q` times a column of `K'`: products, "
                          "added up.");
    expect_sentence("f2", "`S / sqrt(d)` is made from `S`.");
    expect_sentence("f3", "Each row of `A` becomes weights: positive, with the sum 1.");
    expect_sentence("f7", "`loss` is made from `Y`, `T` in 3 lines.");
    expect_sentence(
        "b5.0",
        "One number of `dloss` arrives for many of `Y`: the rule gives it to each of them.");
    expect_sentence(
        "b4.1",
        "A number of `V` meets one column of `A`, and moves one column of `Y`. Its gradient is "
        "that column of `A` times that column of `dY`, number by number, added up. A product "
        "takes rows with columns; to take columns with columns, `A` is turned over. `V` was "
        "given, not computed: here its gradient is complete.");
    close_plan();
    open_case(3);
    expect_sentence("a1.0", "`x` was used 3 times, so its gradient is a sum. More is to come.");
    expect_sentence("a0.0", "`x` was used 3 times, so its gradient is a sum. Now all parts are "
                            "there: it is complete.");
    close_plan();
}

/* A wrong rule has the derivatives of the formula backward, and those of the line forward. */
TEST(wrong_rules) {
    LessonOptions options = {.dropout = -1, .seed = LESSON_SEED, .rule = "softmax"};
    CasePart found = {0, NULL};
    char words[160];
    ck_assert_msg(lessons_use(2, 2, options, keep_part, &found), "%s", tensor_error());
    open_json(found.text, false);
    const Step *step = find_step("b3.0");
    ck_assert(step->part->planted && goes_by_numbers(step->part));
    expect_formula("f3", "A = softmax(Z)");
    expect_formula("b3.0", "dZ = A x dA");
    ck_assert_int_eq(check_of("b3.0", words), CHECK_WRONG);
    ck_assert_int_eq(check_of("b4.0", words), CHECK_RIGHT);
    ck_assert_int_eq(check_of("b2.0", words), CHECK_RIGHT);
    ck_assert_str_eq(words, "this rule is right; its numbers come from a wrong rule above");
    check_all_terms();
    close_plan();
}

/* Forward is as it was: a weight that the mask hides is 0 for the same reason. */
TEST(reasons_beside_wrong_rules) {
    LessonOptions options = {.dropout = -1, .seed = LESSON_SEED, .rule = "mask"};
    CasePart found = {0, NULL};
    char text[REASON_TEXT];
    ck_assert_msg(lessons_use(3, 3, options, keep_part, &found), "%s", tensor_error());
    open_json(found.text, false);
    const Step *step = find_step("f3");
    ck_assert_ptr_nonnull(line_of(step)->parts[0].planted);
    int zeros = 0;
    for (int64_t i = 0; i < result_of(step)->size; i++) {
        if (step->numbers[i] != 0) continue;
        reason_of_value(&plan, step->tensor, i, text);
        ck_assert_msg(strncmp(text, "masked: ", 8) == 0, "0 because %s", text);
        zeros++;
    }
    ck_assert_int_gt(zeros, 0);
    close_plan();
}

/* ---- the data of the page -------------------------------------------------------------------- */

/* A step of the page is a step of the plan. */
static void expect_step(const Json *data, const Step *step) {
    Formula f;
    const Json *cells = json_get(data, "cells");
    ck_assert_str_eq(json_text(data, "at", ""), step->name);
    if (step->unit < 0) return;
    formula_of(&plan, step, &f);
    ck_assert_str_eq(json_text(data, "title", ""), f.title);
    if (step->unit < 0) return;
    ck_assert_int_eq(json_integer(data, "main", 0), f.main);
    ck_assert_int_eq(json_integer(data, step->is_said ? "look" : "most", -1), step->look);
    if (cells) ck_assert_int_eq(cells->count, result_of(step)->size);
    ck_assert(!step->part || json_integer(data, "part", -1) >= 0);
}

LOOP_TEST(data_of_the_page, CASES) {
    char *text = lessons_as_json(cases[_i].number, cases[_i].number, cases[_i].options);
    Json *page = json_read(text);
    ck_assert_msg(page != NULL, "%s", tensor_error());
    for (int part = 0; open_part(_i, part, false); part++) {
        const Json *lesson = json_at(json_get(page, "lessons"), part);
        const Json *data = json_get(lesson, "plan");
        const Json *step = json_get(data, "steps")->first;
        ck_assert_int_eq(json_get(data, "steps")->count, plan.num_steps);
        ck_assert_int_eq(json_get(data, "units")->count, plan.num_units);
        ck_assert_int_eq(json_get(data, "tensors")->count, plan.tape.num_tensors);
        for (int i = 0; i < plan.num_steps; i++, step = step->next)
            expect_step(step, &plan.steps[i]);
        const Json *line = json_at(json_get(json_get(lesson, "tape"), "lines"), 1);
        ck_assert_ptr_null(json_get(json_at(json_get(line, "backward"), 0), "jacobian"));
        close_plan();
    }
    free(page);
    free(text);
}

/* ---- the card -------------------------------------------------------------------------------- */

/* It is the last step of each lesson, has four to seven lines, and tells no rule: what it says is
 * the forward line, and why. */
LOOP_TEST(cards, CASES) {
    CardTask task;
    for (int part = 0; open_part(_i, part, false); part++) {
        int n = 0;
        ck_assert_int_eq(plan_find(&plan, "card", false), plan.num_steps - 1);
        for (; card_task(&plan, n, &task); n++) {
            ck_assert(*task.name == 'd' && strstr(task.forward, " = ") && *task.why);
            ck_assert_ptr_null(strstr(task.forward, task.name));
            ck_assert_ptr_null(strpbrk(task.why, "@="));
            ck_assert_ptr_nonnull(plan.tape.tensors[task.tensor].grad);
        }
        ck_assert_msg(n >= 4 && n <= 7, "lesson %d: %d lines", cases[_i].number, n);
        close_plan();
    }
}

TEST(card_of_lesson_2) {
    static const char *const lines[][3] = {
        {"dV", "`Y` = `A` `V`", "each number of `V` met a column of `A`"},
        {"dA", "`Y` = `A` `V`", "each number of `A` met a row of `V`"},
        {"dZ", "`A` = softmax(`Z`)", "where one number of `A` rises, the others of its row sink"},
        {"dS", "`Z` = 0.5 `S`", "times 0.5 forward, times 0.5 back"},
        {"dQ", "`S` = `Q` `K'`", "each number of `Q` met a row of `K'`"},
        {"dK", "`S` = `Q` `K'`", "each number of `K` met a column of `Q`"},
    };
    CardTask task;
    ck_assert(open_part(1, 0, false));
    for (int n = 0; n < COUNT(lines); n++) {
        ck_assert(card_task(&plan, n, &task));
        ck_assert_str_eq(task.name, lines[n][0]);
        ck_assert_str_eq(task.forward, lines[n][1]);
        ck_assert_str_eq(task.why, lines[n][2]);
    }
    ck_assert(!card_task(&plan, COUNT(lines), &task));
    close_plan();
}

/* ---- other tapes ----------------------------------------------------------------------------- */

static Tensor *draw(const char *name, Shape shape) {
    Tensor *x = tensor_randn(shape);
    tape_own(ag_requires_grad(ag_name(x, name)));
    return x;
}

/* The tables that have lines of their own, with their notes. */
static void expect_parts(const char *name, const char *parts) {
    char text[FORMULA_TEXT] = "";
    Formula f;
    Recipe r;
    const Step *step = find_step(name);
    recipe_of(&plan, step, &f, &r);
    for (int sum = 0; sum < r.num_sums; sum++) {
        const Item *item = worked_item(&r, sum);
        const bool is_word = *item->text == '`';
        const int length = (int)strlen(item->text) - 2 * is_word;
        put_text(text, sizeof text, "%.*s = %s, ", length, item->text + is_word, item->note);
    }
    ck_assert_str_eq(text, parts);
}

TEST(rules_of_other_ops) {
    begin_tape();
    Tensor *a = draw("a", SHAPE(2, 3, 4));
    Tensor *b = draw("b", SHAPE(4, 5));
    Tensor *c = draw("c", SHAPE(1, 5));
    Tensor *w = draw("w", SHAPE(5));
    Tensor *v = draw("v", SHAPE(5));
    Tensor *y = ag_add(ag_matmul(a, b), c);                     /* lines 5, 6, after the leaves */
    Tensor *both[] = {ag_layer_norm(y, w, v, 1e-5), ag_exp(y)}; /* 7, 8 */
    open_tape(ag_mean(ag_cat(both, 2, 1)));                     /* 9, 10 */
    expect_formula("b10.0", "d(cat 9) = d(mean 10) / 60, for each number");
    expect_formula("b7.0",
                   "d(add 6) = (dz - mean(dz) - z x mean(dz x z)) / sqrt(variance + 0.00001)");
    expect_formula("b9.0", "d(layer norm 7) <- d(cat 9)");
    expect_formula("b9.1", "d(exp 8) <- d(cat 9)");
    expect_formula("b8.0", "d(add 6) = exp 8 x d(exp 8)");
    expect_formula("b6.0", "d(matmul 5) = d(add 6)");
    expect_formula("b6.1", "dc = sum of d(add 6)");
    expect_formula("b5.0", "da = d(matmul 5) b'");
    expect_formula("b5.1", "db = sum of a' d(matmul 5)");
    check_all_terms();
    close_plan();
}

/* The rules of these have parts with names, each with its table and its line. */
TEST(rules_with_parts) {
    static const int64_t positions[] = {1, 2}, targets[] = {2, 0};
    begin_tape();
    Tensor *x = draw("x", SHAPE(2, 4));
    Tensor *w = draw("w", SHAPE(4));
    Tensor *b = draw("b", SHAPE(4));
    Tensor *place = tape_own(tensor_from_int64s(SHAPE(2), positions));
    Tensor *right = tape_own(ag_name(tensor_from_int64s(SHAPE(2), targets), "right"));
    Tensor *y = ag_name(ag_layer_norm(x, w, b, 0.5), "Y");                   /* line 5 */
    Tensor *z = ag_name(ag_rms_norm(y, w, 0.25), "Z");                       /* 6 */
    Tensor *r = ag_name(ag_rope(z, place, 10, ROPE_HALVES), "R");            /* 7 */
    open_tape(ag_name(ag_cross_entropy(r, right, -1, REDUCE_MEAN), "loss")); /* 8 */
    expect_formula("f5", "Y = z x w + b");
    expect_formula("f6", "Z = z x w");
    expect_formula("f7", "R = Z x cos + turned x sin");
    expect_formula("f8", "loss = -sum of log_p / 2");
    expect_formula("b8.0", "dR = dloss x (softmax - target) / 2");
    expect_formula("b7.0", "dZ = dR x cos - turned x sin");
    expect_formula("b6.0", "dY = (dz - z x mean(dz x z)) / sqrt(mean_square + 0.25)");
    expect_formula("b6.1", "dw = sum of dZ x z");
    expect_formula("b5.0", "dx = (dz - mean(dz) - z x mean(dz x z)) / sqrt(variance + 0.5)");
    expect_formula("b5.1", "dw = sum of dY x z");
    expect_formula("b5.2", "db = sum of dY");
    expect_parts(
        "b5.0", "dz = `dY` x `w`, mean(`dz`) = , z = (`x` - `average`) / sqrt(`variance` + 0.5), "
                "mean(`dz` x `z`) = , variance = mean((`x` - `average`)^2), average = mean(`x`), ");
    ck_assert(nudge_of(&plan, find_step("b5.0")) == NUDGE_NONE); /* its row moves, too */
    expect_parts("b7.0", "turned = `dR` `pairs`, ");
    expect_parts("b8.0", "softmax = exp(`R`) / `total`, total = sum(exp(`R`)), ");
    check_all_terms();
    check_lines();
    close_plan();
}

/* Position 0 turns nothing: its sines are 0, and no derivative is the reason. */
TEST(zeros_that_have_no_reason) {
    static const int64_t positions[] = {0, 1};
    const Recording recording = {.title = "t", .idea = "", .command = "", .columns = ""};
    begin_tape();
    Tensor *x = draw("x", SHAPE(2, 4));
    Tensor *place = tape_own(tensor_from_int64s(SHAPE(2), positions));
    ck_assert(ag_backward(ag_sum(ag_rope(x, place, 10, ROPE_ADJACENT))));
    char *page = recording_as_json(&recording);
    ck_assert_msg(page != NULL, "%s", tensor_error());
    ck_assert_ptr_nonnull(strstr(page, "\"name\":\"sin\""));
    free(page);
    tape_end();
}

/* A name that is a sum has brackets where it is an operand. */
TEST(names_that_are_sums) {
    begin_tape();
    Tensor *a = draw("a", SHAPE(2, 2));
    Tensor *b = draw("b", SHAPE(2, 2));
    Tensor *sum = ag_name(ag_add(a, b), "a + b");
    Tensor *both = ag_name(ag_matmul(ag_name(ag_sub(sum, b), "D"), sum), "P");
    open_tape(ag_name(ag_sum(both), "loss"));
    expect_formula("f2", "a + b = a + b");
    expect_formula("f3", "D = (a + b) - b");
    expect_formula("f4", "P = D (a + b)");
    expect_formula("b4.0", "dD = dP (a + b)'");
    expect_formula("a3.0", "d(a + b) = from P + from D");
    check_all_terms();
    close_plan();
}

/* Of any tape the key steps are those that show something new. */
TEST(key_steps_of_other_tapes) {
    begin_tape();
    Tensor *x = draw("x", SHAPE(2, 2));
    Tensor *w = draw("w", SHAPE(2, 2));
    Tensor *y = x;
    for (int i = 0; i < 3; i++) y = ag_transpose(ag_tanh(ag_matmul(y, w)), 0, 1); /* 2 to 10 */
    open_tape(ag_sum(ag_mul(y, x)));
    expect_keys("0 f2 f3 f11 f12 b12.0 b11.0 b9.0 b8.0 b8.1 b7.0 a5.1 a2.0 a2.1");
    ck_assert(plan.is_long); /* 11 forward, the start, 17 backward */
    close_plan();
    begin_tape();
    x = draw("x", SHAPE(2, 2));
    open_tape(ag_sum(ag_exp(ag_matmul(x, x))));
    ck_assert(!plan.is_long);
    close_plan();
}

/* A tape without names, in which x is read twice by one line; a loss of several numbers. */
TEST(tapes_without_names) {
    begin_tape();
    Tensor *x = draw("", SHAPE(2, 2));
    Tensor *y = ag_mul(x, x);
    Tensor *t = tensor_arange_of(0, 2, 1, I64);
    tape_own(t);
    open_tape(ag_cross_entropy(y, t, -100, REDUCE_MEAN));
    expect_names("0 f1 f3 s b3.0 b1.0 b1.1 a1.1");
    expect_formula("b3.0", "d(mul 1) = d(cross entropy 3) x (softmax - target) / 2");
    expect_formula("b1.0", "dx0 = d(mul 1) x x0");
    expect_formula("a1.1", "dx0 = from mul 1 + from mul 1");
    check_all_terms();
    close_plan();
}

/* ---- the rows of mistakes.def ---------------------------------------------------------------- */

/* Is there a right row for the gradient of input k of this op; for -1: for what it computes? */
static bool has_row(const char *op, int k) {
    bool found = false;
    for (int i = 0; i < num_mistake_rows && !found; i++) {
        const MistakeRow *row = &mistake_rows[i];
        if (row->id || k > 2 || !mistake_is_of(row, op)) continue;
        found = k < 0 ? row->forward != NULL : row->formula[k] != NULL;
    }
    return found;
}

/* The tape of a sample's op, with another dy for each number. False if it has no gradient. */
static bool open_sample(const Sample *sample) {
    Tensor *in[SAMPLE_INPUTS] = {NULL};
    begin_tape();
    for (int i = 0; i < sample->n; i++) {
        in[i] = tape_own(ag_name(sample_input(sample, i, F64), format("L%d", i)));
        if (sample->in[i].kind == 'r') ag_requires_grad(in[i]);
    }
    Tensor *y = call_op(sample->op, in, sample->n, sample->number);
    ck_assert_msg(y != NULL, "%s: %s", sample->op, tensor_error());
    const bool has_gradient = y->requires_grad && tensor_numel(y) > 0;
    if (has_gradient) open_tape(ag_sum(ag_mul(y, tape_own(tensor_randn(y->shape)))));
    else tape_end();
    return has_gradient;
}

/* What a row does not say: sums over several dimensions of three, a softmax of one number or of
 * another dimension than the last, a loss of such classes, a product with a vector, scores that a
 * mask adds to, dropout of all. A move is found in the Jacobian. */
static bool is_elsewhere(const Sample *sample, const RuledLine *line, int k, bool is_move) {
    const TapeTensor *x = &plan.tape.tensors[line->in[0]];
    const double *number = sample->number;
    const char *op = sample->op;
    if (is_move || x->size == 0) return true;
    if (strstr(op, "_dims")) return number[1] > 1;
    if (strcmp(op, "linear") == 0) return x->rank < 2;
    if (strcmp(op, "dropout") == 0) return number[0] == 1;
    if (strcmp(op, "cross_entropy") == 0) return x->rank > 2;
    if (strcmp(op, "softmax") == 0) return x->rank == 0 || number[0] == (double)(x->rank - 2);
    return k < 0 && strcmp(op, "masked_softmax") == 0 && (line->in[3] >= 0 || line->in[4] >= 0);
}

/* Is it only the derivatives of an op that has no row? */
static bool is_made_of_derivatives(const Tree *rule) {
    for (int t = 0; t < rule->num_tables; t++)
        if (strcmp(rule->tables[t].name, "derivative") == 0) return true;
    return false;
}

/* In a row of scores without an allowed key the forward row is 0 / 0. */
static void expect_tree(const Sample *sample, const Tree *rule, const TapeTensor *x,
                        const double *numbers, bool forward) {
    const double most = strcmp(sample->op, "to") == 0 ? 1e-6 : 1e-9;
    ck_assert_msg(rule && !is_made_of_derivatives(rule), "%s: its row is not its rule", sample->op);
    for (int64_t i = 0; i < x->size; i++) {
        const double found = tree_number(rule, rule->n - 1, i);
        if (forward && isnan(found) && numbers[i] == 0) continue;
        ck_assert_msg(fabs(found - numbers[i]) <= most * fmax(1, fabs(numbers[i])),
                      "%s: %.17g, not %.17g", sample->op, found, numbers[i]);
    }
}

static void expect_row(const Sample *sample, const RuledLine *line) {
    const TapeTensor *y = &plan.tape.tensors[line->out];
    if (has_row(sample->op, -1) && !is_elsewhere(sample, line, -1, false))
        expect_tree(sample, line->tree, y, y->value, true);
    for (int n = 0; n < line->num_parts; n++) {
        const Part *p = &line->parts[n];
        if (has_row(sample->op, p->k) && !is_elsewhere(sample, line, p->k, p->moves))
            expect_tree(sample, p->tree, &plan.tape.tensors[p->x], p->dx, false);
    }
}

static int num_samples(void) {
    int n = 0;
    while (samples()[n].op) n++;
    return n;
}

/* With any shapes a row computes what the library computes, forward and backward; and of any op no
 * number is shown that its line does not give. */
LOOP_TEST(rows_are_the_library, num_samples()) {
    int lines = !has_row(samples()[_i].op, 0);
    const Sample *sample = &samples()[_i];
    tensor_set_default_dtype(F64);
    if (!open_sample(sample)) return;
    if (strcmp(sample->op, "to") != 0) check_all_terms(); /* the others do not round */
    for (int l = 0; l < plan.tape.num_lines; l++)
        if (strcmp(json_text(plan.tape.lines[l].json, "op", ""), sample->op) == 0) {
            expect_row(sample, &plan.tape.lines[l]);
            lines++;
        }
    ck_assert_int_gt(lines, 0);
    close_plan();
}

int main(void) { return run_tests("steps"); }
