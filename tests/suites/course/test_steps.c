/* test_steps.c - the steps of a tape as build/explain shows them: their names, the kinds of their
 * rules, their formulas, and the numbers that are worked out.
 *
 * The plan knows no op; this test does, and says which kind each op of the lessons must have. Every
 * number of every step is worked out, and its terms are added up; then the printed line is read and
 * evaluated as it is printed. */
#include "../common.h"

#include "../../../examples/explain/check.h"
#include "../../../examples/explain/lesson.h"
#include "../../../examples/explain/text.h"
#include "../../../examples/explain/worked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TERMS = 4096 };

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
    {2, {.dropout = -1, .seed = LESSON_SEED, .float32 = true}},
    {4, {.dropout = -1, .seed = LESSON_SEED, .float32 = true}},
    {5, {.dropout = -1, .seed = LESSON_SEED, .float32 = true}},
    {6, {.dropout = -1, .seed = LESSON_SEED, .float32 = true, .step = 199}},
};
enum { CASES = sizeof cases / sizeof *cases };

static char *json;
static Json *tree;
static Plan plan;

/* The plan of a lesson, or of {"tape": ...}, as text, which close_plan frees. */
static void open_json(char *text, bool open) {
    json = text;
    tree = json_read(json);
    ck_assert_msg(tree != NULL, "%s", tensor_error());
    const Json *lessons = json_get(tree, "lessons");
    const Json *lesson = lessons ? json_at(lessons, 0) : tree;
    ck_assert_msg(check_tape(json_get(lesson, "tape")), "%s", tensor_error());
    ck_assert_msg(plan_make(&plan, lesson, open), "%s", tensor_error());
}

static char *json_of_case(int i) {
    char *text = lessons_as_json(cases[i].number, cases[i].number, cases[i].options);
    ck_assert_msg(text != NULL, "%s", tensor_error());
    return text;
}

/* A case as the page gets it, one of its parts. False, and nothing is open, if it has fewer. */
static bool open_part(int i, int part, bool open) {
    json = json_of_case(i);
    tree = json_read(json);
    ck_assert_msg(tree != NULL, "%s", tensor_error());
    const Json *lesson = json_at(json_get(tree, "lessons"), part);
    if (lesson) {
        ck_assert_msg(check_tape(json_get(lesson, "tape")), "%s", tensor_error());
        ck_assert_msg(plan_make(&plan, lesson, open), "%s", tensor_error());
        return true;
    }
    free(tree);
    free(json);
    return false;
}

/* A case with other members, ",\"fold\":...": the first of a name counts, so the lesson's own texts
 * and folds are not used. */
static void open_with(int i, const char *members) {
    static const char none[] = ",\"fold\":[],\"steps\":[],\"labels\":[],\"short\":[],"
                               "\"transposed\":[],\"bet\":null,\"questions\":[],\"part\":\"\",";
    char *text = json_of_case(i);
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

static const RuledLine *line_of(const Step *step) {
    return &plan.tape.lines[plan.units[step->unit].last];
}

static const char *op_of(const Step *step) { return json_text(line_of(step)->json, "op", ""); }

static const TapeTensor *result_of(const Step *step) { return &plan.tape.tensors[step->tensor]; }

/* ---- kinds ----------------------------------------------------------------------------------- */

static bool is_one_of(const char *op, const char *const *list) {
    while (*list && strcmp(*list, op) != 0) list++;
    return *list != NULL;
}

static const char *const products[] = {"matmul", "bmm", "linear", NULL};
static const char *const softmaxes[] = {"softmax", "masked_softmax", NULL};
static const char *const moves[] = {"transpose", "reshape", "squeeze", "unsqueeze", NULL};
static const char *const elementwise[] = {"sub",  "add",  "mul",     "scale",       "square",
                                          "relu", "tanh", "dropout", "masked_fill", NULL};

static const char *const selecting[] = {"relu", "dropout", "masked_fill", NULL};

static bool has_derivatives(const Step *step) {
    const Part *part = &line_of(step)->parts[0];
    return part->begin[plan.tape.tensors[part->x].size] > 0;
}

/* The kind that the page must draw. Weights of exactly 0 and 1 have no derivative at all, and a
 * relu of positive numbers copies them. */
static RuleKind expected_kind(const Step *step) {
    const char *op = op_of(step);
    if (!has_derivatives(step)) return RULE_EACH;
    if (is_one_of(op, selecting) && line_of(step)->moves) return RULE_MOVE;
    if (is_one_of(op, moves)) return RULE_MOVE;
    if (is_one_of(op, products)) return step->part->k < 2 ? RULE_PRODUCT : RULE_EACH;
    if (is_one_of(op, softmaxes)) return RULE_SOFTMAX;
    if (is_one_of(op, elementwise)) return RULE_EACH;
    ck_assert_msg(strcmp(op, "sum") == 0, "the test does not know %s", op);
    return RULE_SPREAD;
}

static RuleKind expected_forward(const Step *step) {
    const char *op = op_of(step);
    const bool has_gradient = line_of(step)->num_parts > 0; /* without one nothing is known */
    if (is_one_of(op, products)) return RULE_PRODUCT;
    if (is_one_of(op, moves) && has_gradient) return RULE_MOVE;
    if (is_one_of(op, selecting) && line_of(step)->moves) return RULE_MOVE;
    return is_one_of(op, softmaxes) && has_derivatives(step) ? RULE_SOFTMAX : RULE_GENERAL;
}

static void check_kinds(void) {
    int found[RULE_SPREAD + 1] = {0};
    for (int i = 1; i < plan.num_steps; i++) {
        const Step *step = &plan.steps[i];
        RuleKind expected = RULE_GENERAL;
        if (step->phase == STEP_BACKWARD) expected = expected_kind(step);
        if (step->phase == STEP_FORWARD) expected = expected_forward(step);
        ck_assert_msg(step->kind == expected, "case %s: %s, %s, is of kind %d, not %d",
                      json_text(plan.lesson, "command", ""), step->name, op_of(step), step->kind,
                      expected);
        found[step->kind]++;
    }
    ck_assert_int_gt(found[RULE_PRODUCT], 1);
}

START_TEST(kinds) {
    for (int open = 0; open < 2; open++)
        for (int part = 0; open_part(_i, part, open); part++) {
            check_kinds();
            close_plan();
        }
}
END_TEST

/* ---- terms ----------------------------------------------------------------------------------- */

static double product_of(const Term *term) {
    double product = 1;
    for (int n = 0; n < term->count; n++)
        product *= term->factors[n].number - term->factors[n].less;
    return product;
}

static double size_of(const Term *term) {
    double size = 1;
    for (int n = 0; n < term->count; n++)
        size *= fabs(term->factors[n].number) + fabs(term->factors[n].less);
    return size;
}

static bool is_float32(const TapeTensor *x) {
    return strcmp(json_text(x->json, "type", ""), "float32") == 0;
}

/* The terms of element i must sum to it. Returns how many there are. */
static int64_t check_terms(const Step *step, int64_t i) {
    static Term terms[MOST_TERMS];
    const int64_t count = worked_terms(&plan, step, i, terms, MOST_TERMS);
    double sum = 0, size = 0;
    ck_assert_int_le(count, MOST_TERMS);
    for (int64_t n = 0; n < count; n++) {
        sum += product_of(&terms[n]);
        size += size_of(&terms[n]);
    }
    const double most = (is_float32(result_of(step)) ? 1e-5 : 1e-12) * fmax(1, size);
    ck_assert_msg(count < 0 || fabs(sum - step->numbers[i]) <= most,
                  "%s: %s, %s[%d]: %.17g, not %g", json_text(plan.lesson, "command", ""),
                  step->name, result_of(step)->name, (int)i, sum, step->numbers[i]);
    return count;
}

/* Forward, a number of any other op can be no sum of products: a softmax, a - b. */
static bool must_have_terms(const Step *step) {
    static const char *const linear[] = {"matmul", "bmm", "linear", "sum", "dropout", NULL};
    return step->phase != STEP_FORWARD || is_one_of(op_of(step), linear);
}

static void check_all_terms(void) {
    for (int s = 1; s < plan.num_steps; s++) {
        const Step *step = &plan.steps[s];
        for (int64_t i = 0; i < result_of(step)->size; i++) {
            const int64_t count = check_terms(step, i);
            ck_assert_msg(count > 0 || !must_have_terms(step) || step->numbers[i] == 0,
                          "%s has no terms", step->name);
        }
    }
}

START_TEST(terms) {
    for (int open = 0; open < 2; open++)
        for (int part = 0; open_part(_i, part, open); part++) {
            check_all_terms();
            close_plan();
        }
}
END_TEST

/* ---- the printed line ------------------------------------------------------------------------ */

static const char *at; /* what is left of the line */
static bool known;     /* the line is arithmetic so far */

static bool take(const char *word) {
    at += strspn(at, " ");
    const size_t n = strlen(word);
    if (strncmp(at, word, n) != 0) return false;
    at += n;
    return true;
}

static double read_sum(void);

static double read_number(void) {
    char *end;
    const double x = strtod(at, &end);
    known = known && end > at;
    at = end;
    return x;
}

static double read_factor(void) {
    at += strspn(at, " ");
    const bool is_max = take("max("), is_exp = !is_max && take("exp(");
    const bool brackets = is_max || is_exp || take("(");
    double x = brackets ? read_sum() : read_number();
    if (is_max && take(",")) x = fmax(x, read_sum());
    known = known && (!brackets || take(")"));
    if (is_exp) x = exp(x);
    return take("^2") ? x * x : x;
}

static double read_product(void) {
    double x = read_factor();
    for (;;) {
        const bool times = take("x ");
        if (!times && !take("/ ")) return x;
        const double factor = read_factor();
        x = times ? x * factor : x / factor;
    }
}

static double read_sum(void) {
    double x = read_product();
    for (;;) {
        const bool plus = take("+ ");
        if (!plus && !take("- ")) return x;
        x += plus ? read_product() : -read_product();
    }
}

/* The unit of the last digit of a number that ends the line. */
static double unit_of(const char *number) {
    const char *point = strchr(number, '.');
    const char *exponent = strchr(number, 'e');
    const char *end = exponent ? exponent : number + strlen(number);
    const int decimals = point ? (int)(end - point) - 1 : 0;
    return pow(10, -decimals + (exponent ? atoi(exponent + 1) : 0));
}

/* Evaluates a printed line: what stands before the last "=" must be what stands after it. Returns
 * false if the line is no arithmetic. */
static bool check_line(const char *text) {
    at = strstr(text, " = ");
    known = at != NULL;
    if (!known) return false;
    at += 3;
    const double left = read_sum();
    if (!known || !take("=")) return false;
    at += strspn(at, " ");
    const double unit = unit_of(at), right = read_number();
    ck_assert_msg(known && !*at, "%s", text);
    ck_assert_msg(fabs(left - right) <= 0.5 * unit + 1e-6 * fabs(right) + 1e-9, "%s: %g", text,
                  left);
    return true;
}

/* Evaluates the lines of all numbers of the plan. Returns how many are arithmetic. */
static int check_lines(void) {
    char text[FORMULA_TEXT];
    int lines = 0;
    for (int s = 1; s < plan.num_steps; s++) {
        const Step *step = &plan.steps[s];
        const bool has_mean = step->phase == STEP_BACKWARD && step->kind == RULE_SOFTMAX;
        for (int64_t i = 0; i < result_of(step)->size; i++) {
            worked_text(&plan, step, i, text);
            ck_assert_int_lt(strlen(text), FORMULA_TEXT - 1);
            lines += check_line(text);
            worked_mean(&plan, step, i, text);
            ck_assert_int_eq(*text != '\0', has_mean);
            lines += check_line(text);
        }
    }
    return lines;
}

START_TEST(printed_lines) {
    for (int part = 0; open_part(_i, part, false); part++) {
        ck_assert_int_gt(check_lines(), 30);
        close_plan();
    }
}
END_TEST

/* What is printed for the number that a step shows first. */
static void expect_line(const char *name, const char *line) {
    char text[FORMULA_TEXT];
    const int s = plan_find(&plan, name);
    ck_assert_msg(s > 0, "there is no step %s", name);
    worked_text(&plan, &plan.steps[s], plan.steps[s].look, text);
    ck_assert_str_eq(text, line);
}

START_TEST(lines_of_lesson_2) {
    open_case(1);
    expect_line("f0", "K'[0, 1] = K[1, 0] = -1.3");
    expect_line("f1", "S[1, 0] = 1.0 x -0.4 + -0.6 x -1.0 + 0.6 x 1.3 + 0.5 x 0.7 = 1.33");
    expect_line("f2", "(S / sqrt(d))[1, 0] = 0.5 x 1.33 = 0.665");
    expect_line("f3", "A[1, 0] = exp(0.665) / (exp(0.665) + exp(-0.545) + exp(0.265)) = 0.508");
    expect_line("f5", "E[1, 1] = -0.972 - 1.0 = -1.972");
    expect_line("f6", "E^2[1, 1] = (-1.9719)^2 = 3.888");
    expect_line("f7", "loss = 0.067379 + 0.35062 + 0.31412 + 3.88845 = 4.621");
    expect_line("s", "");
    expect_line("b7.0", "d(E^2)[0, 0] = dloss = 1");
    expect_line("b6.0", "dE[1, 1] = 1 x 2 x -1.972 = -3.944");
    expect_line("b4.0", "dA[1, 0] = -1.121 x -0.1 + -3.944 x -1.6 = 6.422");
    expect_line("b3.0", "d(S / sqrt(d))[1, 2] = 0.3405 x (-0.2283 - 4.0129) = -1.444");
    expect_line("b0.0", "dK[2, 0] = d(K')[0, 2] = -0.803");
    close_plan();
}
END_TEST

/* ---- formulas -------------------------------------------------------------------------------- */

static void expect_formula(const char *name, const char *formula) {
    char text[FORMULA_TEXT];
    Formula f;
    const int s = plan_find(&plan, name);
    ck_assert_msg(s > 0, "there is no step %s", name);
    formula_of(&plan, &plan.steps[s], &f);
    formula_text(&f, text);
    ck_assert_str_eq(text, formula);
}

START_TEST(formulas) {
    open_case(1);
    expect_formula("f0", "K' = K, moved: two dimensions swapped");
    expect_formula("f1", "S = Q K'");
    expect_formula("f2", "S / sqrt(d) = 0.5 x S");
    expect_formula("f3", "A = softmax(S / sqrt(d)): exp(x - max x) / sum exp(x - max x)");
    expect_formula("f5", "E = Y - T");
    expect_formula("s", "dloss = 1");
    expect_formula("b7.0", "d(E^2) = dloss, for each number");
    expect_formula("b6.0", "dE = d(E^2) x 2 x E");
    expect_formula("b5.0", "dY = dE");
    expect_formula("b4.0", "dA = dY V'");
    expect_formula("b4.1", "dV = A' dY");
    expect_formula(
        "b3.0",
        "d(S / sqrt(d)) = A x (dA - weighted mean), weighted mean: the sum of A x dA in the row");
    expect_formula("b2.0", "dS = 0.5 x d(S / sqrt(d))");
    expect_formula("b1.0", "dQ = dS K");
    expect_formula("b1.1", "d(K') = Q' dS");
    expect_formula("b0.0", "dK = d(K'), moved back");
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
END_TEST

/* A lesson can say what a tensor is the transpose of. */
START_TEST(transposes) {
    int keys = 0, queries = 0;
    char members[80];
    open_case(1);
    while (strcmp(plan.tape.tensors[keys].name, "K'") != 0) keys++;
    while (strcmp(plan.tape.tensors[queries].name, "Q") != 0) queries++;
    close_plan();
    snprintf(members, sizeof members, ",\"transposed\":[{\"tensor\":%d,\"of\":%d}]", keys, queries);
    open_with(1, members);
    expect_formula("b1.0", "dQ = dS Q");
    expect_formula("b1.1", "d(K') = K' dS");
    close_plan();
}
END_TEST

/* A short name stands in formulas, the long one in headings. */
START_TEST(short_names) {
    int scores = 0;
    char members[80];
    Formula f;
    char text[FORMULA_TEXT];
    open_case(1);
    while (strcmp(plan.tape.tensors[scores].name, "S / sqrt(d)") != 0) scores++;
    close_plan();
    snprintf(members, sizeof members, ",\"short\":[{\"tensor\":%d,\"name\":\"Z\"}]", scores);
    open_with(1, members);
    expect_formula("f2", "Z = 0.5 x S");
    expect_formula("b3.0",
                   "dZ = A x (dA - weighted mean), weighted mean: the sum of A x dA in the row");
    expect_line("b2.0", "dS[1, 2] = 0.5 x -1.444 = -0.722");
    call_of_line(&plan, &plan.tape.lines[2], &f);
    formula_text(&f, text);
    ck_assert_str_eq(text, "S / sqrt(d) = scale(S, 0.5)");
    close_plan();
}
END_TEST

/* ---- steps ----------------------------------------------------------------------------------- */

static void expect_names(const char *expected) {
    char names[1024];
    size_t n = 0;
    for (int i = 0; i < plan.num_steps; i++)
        n +=
            (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? " " : "", plan.steps[i].name);
    ck_assert_str_eq(names, expected);
}

START_TEST(names) {
    open_case(1);
    expect_names("0 f0 f1 f2 f3 f4 f5 f6 f7 s b7.0 b6.0 b5.0 b4.0 b4.1 b3.0 b2.0 b1.0 b1.1 b0.0");
    ck_assert_int_eq(plan.num_forward, 8);
    ck_assert_int_eq(plan_find(&plan, "0"), 0);
    ck_assert_int_eq(plan_find(&plan, "b7.0"), 10);
    ck_assert_str_eq(plan.steps[plan_find(&plan, "b7.1")].name, "b7.0"); /* the nearest */
    ck_assert_str_eq(plan.steps[plan_find(&plan, "a4.1")].name, "b4.0");
    static const char *const others[] = {"", "b", "f8", "x3", "3", "s3", "f-1", " f7"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(plan_find(&plan, others[i]), -1);
    close_plan();
    open_case(3);
    expect_names("0 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 s b11.0 b10.0 b9.0 b8.0 b8.1 b7.0 b6.0 "
                 "b5.0 b4.0 b4.1 b3.0 b2.0 b2.1 b1.0 a1.0 b1.1 b0.0 a0.0 b0.1");
    close_plan();
}
END_TEST

/* Four chains of three moves; the step of a line inside is the step of its chain. */
START_TEST(chains) {
    open_case(4);
    ck_assert_int_eq(plan.num_steps, 45);
    ck_assert_int_eq(plan_find(&plan, "f1"), plan_find(&plan, "f3"));
    ck_assert_int_eq(plan_find(&plan, "b2.0"), plan_find(&plan, "b1.0"));
    ck_assert_int_eq(plan_find(&plan, "a3.0"), plan_find(&plan, "b1.0"));
    ck_assert_int_gt(plan_find(&plan, "b1.0"), plan_find(&plan, "s"));
    expect_formula("f3", "Q_h = Q, moved: reshape, transpose, reshape");
    expect_formula("b18.0", "dgated = d(Concat(heads)), moved back");
    close_plan();
    ck_assert(open_part(4, 0, true));
    ck_assert_int_eq(plan.num_steps, 45 + 4 * 2 * 2);
    ck_assert_int_lt(plan_find(&plan, "f1"), plan_find(&plan, "f3"));
    close_plan();
}
END_TEST

/* The lines of the loss are one step, with the product of their derivatives. */
START_TEST(folds) {
    open_with(1, ",\"fold\":[{\"lines\":[5,6,7],\"name\":\"loss\"}]");
    expect_names("0 f0 f1 f2 f3 f4 f7 s b5.0 b4.0 b4.1 b3.0 b2.0 b1.0 b1.1 b0.0");
    const Step *step = &plan.steps[plan_find(&plan, "b6.0")];
    ck_assert_str_eq(step->name, "b5.0");
    ck_assert_int_eq(step->kind, RULE_SPREAD);
    ck_assert_str_eq(plan.units[step->unit].name, "loss");
    expect_formula("f7", "E = Y - T, E^2 = square(E), loss = sum(E^2)");
    expect_formula("b5.0", "dY = dloss x 2 x E, for each number");
    expect_line("b5.0", "dY[1, 1] = 1 x 2 x -1.972 = -3.944");
    expect_line("f7", "loss = 0.067379 + 0.35062 + 0.31412 + 3.88845 = 4.621");
    check_all_terms();
    close_plan();
}
END_TEST

/* A folded step has the texts of its lines. */
START_TEST(texts_of_folds) {
    open_with(
        1,
        ",\"fold\":[{\"lines\":[5,6,7],\"name\":\"loss\"}],\"steps\":["
        "{\"at\":\"f5\",\"text\":\"One.\"},{\"at\":\"f7\",\"text\":\"Three.\"},"
        "{\"at\":\"b7.0\",\"text\":\"First.\"},{\"at\":\"b5.0\",\"text\":\"Last.\",\"look\":1}]");
    ck_assert_str_eq(plan.steps[plan_find(&plan, "f7")].text, "One. Three.");
    const Step *step = &plan.steps[plan_find(&plan, "b5.0")];
    ck_assert_str_eq(step->text, "First. Last.");
    ck_assert_int_eq(step->look, 1);
    close_plan();
}
END_TEST

/* Lines that cannot be one step stay what they are. */
START_TEST(folds_that_cannot_be) {
    static const char *const wrong[] = {
        "[]",
        "[{}]",
        "[{\"lines\":[]}]",
        "[{\"lines\":[7]}]",
        "[{\"lines\":[6,7,8]}]",
        "[{\"lines\":[5,7]}]",
        "[{\"lines\":[7,6]}]",
        "[{\"lines\":[\"5\",\"6\"]}]",
        "[{\"lines\":[0,1]}]", /* line 1 has two gradients */
        "[{\"lines\":[3,4]}]",
        "5",
    };
    char members[80];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(members, sizeof members, ",\"fold\":%s", wrong[i]);
        open_with(1, members);
        ck_assert_int_eq(plan.num_steps, 20);
        close_plan();
    }
}
END_TEST

START_TEST(texts) {
    open_with(1,
              ",\"steps\":[{\"at\":\"b3.0\",\"text\":\"A text.\",\"look\":3},{\"at\":\"f9\"},{},7,"
              "{\"at\":\"f1\",\"text\":\"Another.\",\"look\":99}]");
    const Step *step = &plan.steps[plan_find(&plan, "b3.0")];
    ck_assert_str_eq(step->text, "A text.");
    ck_assert_int_eq(step->look, 3);
    expect_line("b3.0", "d(S / sqrt(d))[1, 0] = 0.508 x (6.422 - 4.013) = 1.224");
    step = &plan.steps[plan_find(&plan, "f1")];
    ck_assert_str_eq(step->text, "Another.");
    ck_assert_int_eq(step->look, 3); /* the largest: there is no element 99 */
    ck_assert_ptr_null(plan.steps[0].text);
    close_plan();
}
END_TEST

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

START_TEST(cover_texts_and_questions) {
    static const char *const parts[] = {
        "Lesson 2b: Scores to output\nWhose fault?\n\nA lead.\n\n    Y = softmax(Q K' / sqrt(d)) V\n",
        "    Your bet: More or less?\n      - more\n      - less\n\nK' = transpose(K) ",
        " forward 3 of 8, f2\n    S / sqrt(d) = 0.5 x S\n\n    Question: How large is it?\n"
        "    Hint: Halve it.\n\n    S / sqrt(d) ",
        " = 0.665\n\n    Answer: -1.19\n\n",
        " b4.0, check ok\n    dA = dY V'\n\n    Question: Which?\n      - this\n      - that\n\n"
        "    Question: How many?\n\n    dA ",
        " = 6.422\n\n    A text with S in it.\n\n    Answer: this. Because.\n\n    Answer: 2 terms\n\n",
        " b3.0, check ok\n",
        " = 4.013\n\n    Your bet was: More or less?\n    Answer: less\n\n",
        " b1.1, check ok\n    d(K') = Q' dS\n\n    Question: Where?\n",
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
END_TEST

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
START_TEST(labels) {
    static const char *const parts[] = {" f3\n",
                                        "    A                             = softmax(",
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
    char members[160];
    int a = 0;
    open_case(1);
    while (strcmp(plan.tape.tensors[a].name, "A") != 0) a++;
    close_plan();
    snprintf(members, sizeof members,
             ",\"labels\":[{\"tensor\":%d,\"rows\":[\"the\",\"cat\"],\"columns\":[\"the\",\"cat\","
             "\"sat\"]},{\"tensor\":0,\"rows\":[\"one\"]},{}]",
             a);
    open_with(1, members);
    expect_in_order(shown(), parts);
    ck_assert_ptr_null(strstr(shown(), "one ["));
    close_plan();
}
END_TEST

/* A table of small numbers says so above; a small number has three digits. */
START_TEST(small_numbers) {
    static const char *const parts[] = {"\n    dx, in 1e-4 ", "[  1.00  -4.00   0.05 ]",
                                        "\n    dx[1] = 5e-06 x 2 x -40.0 = -0.0004\n", NULL};
    begin_tape();
    Tensor *x = tensor_from_doubles(SHAPE(3), (double[]){10, -40, 0.5});
    tape_own(ag_requires_grad(ag_name(x, "x")));
    open_tape(ag_sum(ag_scale(ag_square(x), 5e-6)));
    expect_in_order(shown(), parts);
    close_plan();
}
END_TEST

/* ---- other tapes ----------------------------------------------------------------------------- */

static Tensor *draw(const char *name, Shape shape) {
    Tensor *x = tensor_randn(shape);
    tape_own(ag_requires_grad(ag_name(x, name)));
    return x;
}

static void expect_kind(const char *name, RuleKind kind) {
    const int s = plan_find(&plan, name);
    ck_assert_msg(s > 0, "there is no step %s", name);
    ck_assert_msg(plan.steps[s].kind == kind, "%s is of kind %d, not %d", name, plan.steps[s].kind,
                  kind);
}

START_TEST(kinds_of_other_ops) {
    begin_tape();
    Tensor *a = draw("a", SHAPE(2, 3, 4));
    Tensor *b = draw("b", SHAPE(4, 5));
    Tensor *c = draw("c", SHAPE(1, 5));
    Tensor *w = draw("w", SHAPE(5));
    Tensor *v = draw("v", SHAPE(5));
    Tensor *y = ag_add(ag_matmul(a, b), c);                     /* lines 5, 6, after the leaves */
    Tensor *both[] = {ag_layer_norm(y, w, v, 1e-5), ag_exp(y)}; /* 7, 8 */
    open_tape(ag_mean(ag_cat(both, 2, 1)));                     /* 9, 10 */
    expect_kind("b10.0", RULE_SPREAD);
    expect_kind("b9.0", RULE_MOVE);
    expect_kind("b9.1", RULE_MOVE);
    expect_kind("b8.0", RULE_EACH);
    expect_kind("b7.0", RULE_GENERAL);
    expect_kind("b7.1", RULE_EACH);
    expect_kind("b6.0", RULE_EACH);
    expect_kind("b6.1", RULE_EACH);
    expect_kind("b5.0", RULE_PRODUCT);
    expect_kind("b5.1", RULE_PRODUCT);
    expect_formula("b9.1", "dt8 = dt9, moved back");
    check_all_terms();
    close_plan();
}
END_TEST

/* A name that is a sum has brackets where it is an operand. */
START_TEST(names_that_are_sums) {
    begin_tape();
    Tensor *a = draw("a", SHAPE(2, 2));
    Tensor *b = draw("b", SHAPE(2, 2));
    Tensor *sum = ag_name(ag_add(a, b), "a + b");
    Tensor *both = ag_name(ag_matmul(ag_name(ag_sub(sum, b), "D"), sum), "P");
    open_tape(ag_name(ag_sum(both), "loss"));
    expect_formula("f2", "a + b = add(a, b): a + b");
    expect_formula("f3", "D = (a + b) - b");
    expect_formula("f4", "P = D (a + b)");
    expect_formula("b4.0", "dD = dP (a + b)'");
    expect_formula("a3.0", "d(a + b) = from P + from D");
    check_all_terms();
    close_plan();
}
END_TEST

/* A tape without names, in which x is read twice by one line; a loss of several numbers. */
START_TEST(tapes_without_names) {
    begin_tape();
    Tensor *x = draw("", SHAPE(2, 2));
    Tensor *y = ag_mul(x, x);
    Tensor *t = tensor_arange_of(0, 2, 1, I64);
    tape_own(t);
    open_tape(ag_cross_entropy(y, t, -100, REDUCE_MEAN));
    expect_names("0 f1 f3 s b3.0 b1.0 b1.1 a1.1");
    expect_kind("b3.0", RULE_SPREAD);
    expect_formula("b1.0", "dt0 = dt1 x t0");
    expect_formula("a1.1", "dt0 = from t1 + from t1");
    check_all_terms();
    close_plan();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("steps");
    TCase *tcase = add_framed_case(suite, "steps");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, kinds, 0, CASES);
    tcase_add_loop_test(tcase, terms, 0, CASES);
    tcase_add_loop_test(tcase, printed_lines, 0, CASES);
    tcase_add_test(tcase, lines_of_lesson_2);
    tcase_add_test(tcase, formulas);
    tcase_add_test(tcase, transposes);
    tcase_add_test(tcase, short_names);
    tcase_add_test(tcase, names);
    tcase_add_test(tcase, chains);
    tcase_add_test(tcase, folds);
    tcase_add_test(tcase, folds_that_cannot_be);
    tcase_add_test(tcase, texts_of_folds);
    tcase_add_test(tcase, texts);
    tcase_add_test(tcase, cover_texts_and_questions);
    tcase_add_test(tcase, labels);
    tcase_add_test(tcase, small_numbers);
    tcase_add_test(tcase, kinds_of_other_ops);
    tcase_add_test(tcase, names_that_are_sums);
    tcase_add_test(tcase, tapes_without_names);
    return run_suite(suite);
}
