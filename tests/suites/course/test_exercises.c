/* test_exercises.c - does build/exercises mark what students write rightly?
 *
 * tests/submissions/ has a file for each exercise with many answers to it, each under a line that
 * says what the mark must be:
 *
 *     ==== right the sum first
 *     ==== wrong no_sum           wrong by the mistake with this id, or ids with a + between
 *     ==== wrong - half of it     wrong by no mistake that has an id
 *     ==== wrong - a factor @ds   and the first wrong stage is ds
 *     ==== crash, timeout, outside, inputs, no-compile, empty
 *
 * Round r takes answer r of each file, makes a submission of these, and compares all marks. */
#include <stdlib.h>
#include <string.h>

#include "../../../examples/explain/json.h"
#include "../common.h"
#include "../common_program.h"

enum { EXERCISES = 16, ROUNDS = 40, TEXT = 1 << 16 };

#define ALL "1,2,3,4,5,6,7,7b,8,9,10,10b,11,12,13,14"

/* By their numbers, from 1; then those with a letter. */
static const char *const name[EXERCISES] = {
    "01_scale",         "02_bias",           "03_product",
    "04_softmax",       "05_masked_softmax", "06_dropout",
    "07_linear",        "08_layer_norm",     "09_cross_entropy",
    "10_additive",      "11_attention",      "12_self_attention",
    "13_sgd",           "14_flash",          "07b_mean_variance",
    "10b_weighted_mean"};

/* "3", "7b" */
static const char *label(int exercise) {
    static char text[8];
    const char *at = name[exercise] + (*name[exercise] == '0');
    snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "_"), at);
    return text;
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static char text[TEXT];

/* Reads answer number r of an exercise: its first line goes to `mark`, the rest is the result, in
 * `text`. NULL if there are fewer answers. */
static char *answer(int exercise, int r, char mark[128]) {
    char file[128];
    snprintf(file, sizeof file, "tests/submissions/%s.txt", name[exercise]);
    slurp(file, text, sizeof text);
    ck_assert_msg(*text && strlen(text) < sizeof text - 1, "%s is missing, or too long", file);
    char *at = strncmp(text, "==== ", 5) == 0 ? text : strstr(text, "\n==== ") + 1;
    for (; r > 0; r--) {
        at = strstr(at, "\n==== ");
        if (!at) return NULL;
        at++;
    }
    char *body = strchr(at, '\n') + 1;
    snprintf(mark, 128, "%.*s", (int)(body - at - 6), at + 5);
    char *end = strstr(body, "\n==== ");
    if (end) end[1] = '\0';
    return body;
}

/* Writes one answer into the folder of the round. */
static void submit(int exercise, const char *body) {
    char file[128];
    snprintf(file, sizeof file, "%s/%s.c", folder, name[exercise]);
    put(file, body);
}

/* The member of a test's extra_data; "" if there is none. */
static const char *extra(const Json *test, const char *key) {
    return json_text(json_get(test, "extra_data"), key, "");
}

/* "no_scale", or "da_untransposed+db_untransposed" */
static void ids_of(const Json *test, char ids[128]) {
    const Json *list = json_get(json_get(test, "extra_data"), "mistakes");
    snprintf(ids, 128, "%s", extra(test, "mistake"));
    for (int64_t i = 1; list && i < list->count; i++) {
        const size_t at = strlen(ids);
        snprintf(ids + at, 128 - at, "+%s", json_at(list, i)->text);
    }
}

/* "wrong - half of it" has the result "wrong" and no id. */
static void check_mark(const char *mark, const Json *test) {
    char result[32], wanted[64], ids[128];
    *wanted = '\0';
    ids_of(test, ids);
    sscanf(mark, "%31s %63s", result, wanted);
    if (strcmp(result, "wrong") != 0 || strcmp(wanted, "-") == 0) *wanted = '\0';
    const char *output = json_text(test, "output", "");
    ck_assert_msg(strcmp(extra(test, "result"), result) == 0, "%s, %s: it is %s\n%s",
                  json_text(test, "name", ""), mark, extra(test, "result"), output);
    ck_assert_msg(strcmp(ids, wanted) == 0, "%s, %s: its id is \"%s\"\n%s",
                  json_text(test, "name", ""), mark, ids, output);
    const char *said = strstr(output, " this: ");
    ck_assert_msg(!*ids || (said && strchr(said, '?') && !strpbrk(said, "{}")), "%s", output);
    const char *stage = strchr(mark, '@');
    if (stage)
        ck_assert_msg(strcmp(extra(test, "stage"), stage + 1) == 0,
                      "%s, %s: its stage is \"%s\"\n%s", json_text(test, "name", ""), mark,
                      extra(test, "stage"), output);
    ck_assert_str_eq(json_text(test, "status", ""),
                     strcmp(result, "right") == 0 ? "passed" : "failed");
}

/* ---- results.json ------------------------------------------------------------------------------
 */

static char json[TEXT];
static Json *tree;

/* Marks the folder, with more arguments, and reads results.json. Returns the exit status. */
static int mark_folder(const char *arguments) {
    char line[512];
    snprintf(line, sizeof line, "--submission $D --json $D/results.json %s", arguments);
    const int status = run(line);
    ck_assert_msg(status == 0 || status == 1, "status %d: %s", status, complaints);
    slurp(path("results.json"), json, sizeof json);
    tree = json_read(json);
    ck_assert_ptr_nonnull(tree);
    return status;
}

static const Json *test_named(const char *file) {
    const Json *tests = json_get(tree, "tests");
    for (int64_t i = 0; i < tests->count; i++)
        if (strcmp(json_text(json_at(tests, i), "name", ""), file) == 0) return json_at(tests, i);
    ck_abort_msg("there is no mark for %s", file);
}

START_TEST(answers_are_marked_rightly) {
    char only[64] = "--only 0", mark[EXERCISES][128];
    int chosen[EXERCISES], n = 0;
    for (int i = 0; i < EXERCISES; i++) {
        const char *body = answer(i, _i, mark[n]);
        if (!body) continue;
        submit(i, body);
        snprintf(n ? only + strlen(only) : only, 16, n ? ",%s" : "--only %s", label(i));
        chosen[n++] = i;
    }
    if (n == 0) return;
    mark_folder(only);
    const Json *tests = json_get(tree, "tests");
    ck_assert_int_eq(tests->count, n);
    for (int i = 0; i < n; i++) {
        const Json *test = test_named(name[chosen[i]]);
        ck_assert_str_eq(json_text(test, "number", ""), label(chosen[i]));
        check_mark(mark[i], test);
    }
    free(tree);
}
END_TEST

START_TEST(there_are_enough_answers) {
    char mark[128];
    int right_ones, nameless = 0;
    for (int i = 0; i < EXERCISES; i++) {
        right_ones = 0;
        for (int r = 0; answer(i, r, mark); r++) {
            if (strncmp(mark, "right", 5) == 0) right_ones++;
            if (strncmp(mark, "wrong -", 7) == 0) nameless++;
        }
        ck_assert_int_ge(right_ones, 3);
        ck_assert_ptr_null(answer(i, ROUNDS, mark)); /* every answer is in a round */
    }
    ck_assert_int_ge(nameless, 12);
}
END_TEST

/* The first answer of each exercise is right. */
static void submit_right_answers(void) {
    char mark[128];
    for (int i = 0; i < EXERCISES; i++) submit(i, answer(i, 0, mark));
}

START_TEST(all_right) {
    submit_right_answers();
    ck_assert_int_eq(mark_folder("--seed 3 --only " ALL), 0);
    ck_assert_ptr_nonnull(strstr(out, "\n16 of 16 are right.\n16 passed, 0 failed\n"));
    ck_assert_ptr_nonnull(strstr(
        out,
        " 4 softmax            right    the library's loop: tensor/kernels/plain.inc, softmax_dx\n"));
    ck_assert_int_eq(json_integer(tree, "score", 0), 16);
    free(tree);
}
END_TEST

/* The fields and types that Gradescope's documentation names. */
START_TEST(results_are_as_gradescope_reads_them) {
    submit(2, "@");
    mark_folder("--only 3,4");
    ck_assert_str_eq(json_text(tree, "output", ""), "0 of 2 are right (seed 7).");
    ck_assert_int_eq(json_get(tree, "score")->kind, JSON_NUMBER);
    const Json *test = json_at(json_get(tree, "tests"), 0);
    ck_assert_int_eq(json_get(test, "score")->kind, JSON_NUMBER);
    ck_assert_int_eq(json_integer(test, "max_score", 0), 1);
    ck_assert_str_eq(json_text(test, "number", ""), "3");
    ck_assert_str_eq(json_text(test, "name", ""), "03_product");
    ck_assert_str_eq(json_text(test, "status", ""), "failed");
    ck_assert_ptr_nonnull(
        strstr(json_text(test, "output", ""), "it does not compile: 03_product.c:1:1: error: "));
    ck_assert_str_eq(extra(test, "result"), "no-compile");
    ck_assert_str_eq(extra(json_at(json_get(tree, "tests"), 1), "result"), "empty");
    free(tree);
}
END_TEST

/* A file that is not there counts as empty, and so does one as it is given to the students. */
START_TEST(nothing_is_there) {
    ck_assert_int_eq(run("--submission $D --only " ALL), 1);
    ck_assert_ptr_nonnull(strstr(out, "\n 9 cross_entropy      empty\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n0 of 16 are right. Next: 1, "));
    ck_assert_ptr_nonnull(strstr(out, "\n0 passed, 16 failed\n"));
}
END_TEST

/* A file that has the number and the letter of an exercise is meant for that one alone. */
START_TEST(files_with_another_name) {
    put(path("07B-solution.c"), "");
    ck_assert_int_eq(run("--submission $D --only 7,7b"), 1);
    ck_assert_ptr_nonnull(strstr(out, " 7 linear             empty\n7b mean_variance      empty    "
                                      "07B-solution.c is there; 07b_mean_variance.c is not\n"));
    ck_assert_int_eq(rename(path("07B-solution.c"), path("7 (1).c")), 0);
    ck_assert_int_eq(run("--submission $D --only 7,7b"), 1);
    ck_assert_ptr_nonnull(strstr(out, " empty    7 (1).c is there; 07_linear.c is not\n"
                                      "7b mean_variance      empty\n"));
    put(path("attention.c"), "");
    ck_assert_int_eq(run("--submission $D --only 11"), 1);
    ck_assert_ptr_nonnull(
        strstr(out, " attention.c is there; 11_attention.c is not (from scratch? --scratch\n"));
}
END_TEST

/* The students' files compile without a warning: with a body in place of "your code". */
START_TEST(the_files_of_the_students_compile) {
    for (int i = 0; i < EXERCISES; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "sed 's,/. your code ./,if (0) return;,' examples/exercises/%s.c >$D/%s.c",
                 name[i], name[i]);
        ck_assert_int_eq(shell(line), 0);
    }
    mark_folder("");
    for (int i = 0; i < EXERCISES; i++) {
        const Json *test = test_named(name[i]);
        ck_assert_msg(strcmp(extra(test, "result"), "no-compile") != 0 &&
                          !strstr(json_text(test, "output", ""), "warns"),
                      "%s: %s", name[i], json_text(test, "output", ""));
    }
    free(tree);
}
END_TEST

/* What is said about a result that no known mistake computes. The body is that of softmax_backward,
 * or of product_backward. */
static void expect_words(int exercise, const char *body, const char *words) {
    static const char *const function[] = {
        "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) {"
        "double s = 0; for (int i = 0; i < n; i++) s += y[i] * dy[i];",
        "void product_backward(int n, int k, int m, double da[n][k], double db[k][m], const double a[n][k], "
        "const double b[k][m], const double dy[n][m]) {"
        "for (int i = 0; i < n; i++) for (int p = 0; p < k; p++) for (int j = 0; j < m; j++) {"};
    char code[2048], only[32];
    snprintf(code, sizeof code, "%s %s }\n", function[exercise == 3], body);
    snprintf(only, sizeof only, "--only %d", exercise);
    submit(exercise - 1, code);
    mark_folder(only);
    const char *output = json_text(json_at(json_get(tree, "tests"), 0), "output", "");
    ck_assert_msg(strstr(output, words), "%s: %s", words, output);
    ck_assert_str_eq(extra(json_at(json_get(tree, "tests"), 0), "mistake"), "");
    free(tree);
}

/* The two numbers of the mark's first line differ in what is printed. */
START_TEST(the_worst_numbers_differ_in_print) {
    submit(
        3,
        "#include \"04_softmax.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { double s = 0; for (int i = 0; i < n; i++) s += y[i] * dy[i];"
        "for (int i = 0; i < n; i++) dx[i] = (float)(y[i] * (dy[i] - s)); }\n");
    mark_folder("--only 4");
    char yours[64], right[64];
    const char *output = json_text(json_at(json_get(tree, "tests"), 0), "output", "");
    ck_assert_int_eq(sscanf(output, "dx[%*d] is %63[^,], should be %63s", yours, right), 2);
    ck_assert_str_ne(yours, right);
    free(tree);
}
END_TEST

START_TEST(words_about_a_result_without_a_name) {
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = y[i] * (s - dy[i]);",
                 "dx is right but for its sign, on every input.\n");
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = 3 * y[i] * (dy[i] - s);",
                 "dx is 3 times what it should be, on every input.\n");
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = n * y[i] * (dy[i] - s);",
                 "Here dx is 2 times what it should be; on other inputs the factor differs.");
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = n == 3 ? 0 : y[i] * (dy[i] - s);",
                 "dx[0] should be the sum of these terms");
    expect_words(4,
                 "int rand(void); for (int i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - s) * rand();",
                 "dx has two results for one input: does the function draw numbers");
    expect_words(4,
                 "static double t; t += 1; for (int i = 0; i < n; i++) dx[i] = y[i] * dy[i] * t;",
                 "dx has two results for one input");
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = (float)(y[i] * (dy[i] - s));",
                 "dx is right to 7 digits on every input. Is a float used somewhere");
    expect_words(4, "for (int i = 1; i < n; i++) dx[i] = y[i - 1] * (dy[i - 1] - s);",
                 "The elements of dx are right, but shifted by one place.\n");
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - s) * dy[i];",
                 "dx does not double when dy doubles: is dy squared, or not used?\n");
    expect_words(4, "y = dx; dx = 0; if (s > 1e9) s = y[0];",
                 "dx: the function never writes to it.\n");
    expect_words(3, "da[i][p] = dy[i][j] * b[p][j]; db[p][j] += a[i][p] * dy[i][j]; }",
                 "] should be the sum of these terms: dy[");
    expect_words(
        3,
        "da[i][p] += dy[i][j] * b[p][j]; db[p][j] += a[i][p] * dy[i][j]; } if (n == k)"
        "for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) { double t = da[i][j]; da[i][j] = da[j][i]; da[j][i] = t; }",
        "da is the transpose of what it should be, where it is square.\n");
    expect_words(
        3, "da[i][p] += dy[i][j] * b[j][p]; db[p][j] -= a[i][p] * dy[i][j]; }",
        "da: your code computes this: dy times b, where b is not transposed.\nWhich numbers of b "
        "does a number of a meet");
}
END_TEST

/* The first answer of an exercise, with a part of it replaced; with a value it is a
 * format. */
static void submit_edited(int exercise, const char *from, const char *to, const char *value) {
    char code[TEXT], part[512], mark[128];
    const char *body = answer(exercise - 1, 0, mark);
    const char *at = strstr(body, from);
    ck_assert_msg(at, "%d: %s", exercise, from);
    snprintf(part, sizeof part, value ? to : "%s", value ? value : to);
    snprintf(code, sizeof code, "%.*s%s%s", (int)(at - body), body, part, at + strlen(from));
    submit(exercise - 1, code);
}

/* No part of an edited answer is right. */
static void expect_refused(const char *only, int n, const char *why) {
    mark_folder(only);
    const Json *tests = json_get(tree, "tests");
    ck_assert_int_eq(tests->count, n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(strcmp(extra(json_at(tests, i), "result"), "right") != 0 &&
                          strcmp(extra(json_at(tests, i), "result"), "timeout") != 0 &&
                          strcmp(extra(json_at(tests, i), "result"), "no-compile") != 0,
                      "%s, %s: %s", why, json_text(json_at(tests, i), "name", ""),
                      json_text(json_at(tests, i), "output", ""));
    free(tree);
}

/* Arrays of a fixed size, however large they usually are, and some on the heap. */
START_TEST(arrays_of_a_fixed_size) {
    static const char *const size[] = {"4", "20", "64", "128", "256"};
    const char *n = size[_i];
    submit_edited(1, "dx[i] = s * dy[i];", "{ static double t[%s]; dx[i] = t[i] = s * dy[i]; }", n);
    submit_edited(2, "db[j] += ", "double t[%s]; db[j] += t[j] = ", n);
    submit_edited(3, "da[i][p] += dy[i][j]", "double t[%s]; da[i][p] += t[i] = dy[i][j]", n);
    submit_edited(4, "double sum = 0;", "double sum = 0, J[%1$s][%1$s]; J[n - 1][0] = 0;", n);
    submit_edited(5, "double sum = 0;", "double sum = 0, *t = malloc(8 * %s); t[n - 1] = 0;", n);
    submit_edited(6, "for",
                  "double *t = calloc(%s, 8); for (int i = 0; i < n; i++) t[i] = 1; free(t); for",
                  n);
    submit_edited(7, "db[o] += ", "double t[%s]; db[o] += t[o] = ", n);
    submit_edited(8, "double mean = 0,", "double xh[%s]; xh[n - 1] = 0; double mean = 0,", n);
    submit_edited(9, "sum = 0;", "sum = 0, p[%s]; p[n - 1] = 0;", n);
    submit_edited(10, "double t = ", "double T[%1$s][%1$s]; double t = T[i][j] = ", n);
    submit_edited(11, "double p[Q][K]", "double p[%1$s][%1$s]", n);
    submit_edited(12, "double p[n]", "double p[%s]", n);
    submit_edited(13, "theta[i] -= ", "double t[%s]; theta[i] -= t[i] = ", n);
    submit_edited(14, "{\n", "{ double most[%1$s]; most[K - 1] = most[Q > %1$s ? 0 : Q - 1] = 0;\n",
                  n);
    expect_refused("--only 1,2,3,4,5,6,7,8,9,10,11,12,13,14", 14, n);
}
END_TEST

/* A small number is no 0: of an operand, a weight, a slope, a deviation, a dy. */
START_TEST(small_numbers_taken_as_zero) {
    static const char *const least[] = {"1e-2", "1e-3", "1e-6"};
    const char *t = least[_i];
    submit_edited(1, "s * dy", "(fabs(s) < %s ? 0 : s) * dy", t);
    submit_edited(2, "db[j] += ", "if (fabs(dy[i][j]) > %s) db[j] += ", t);
    submit_edited(3, "db[p][j] += ", "if (fabs(a[i][p]) > %s) db[p][j] += ", t);
    submit_edited(4, "dx[i] = ", "if (y[i] > %s) dx[i] = ", t);
    submit_edited(5, "sum += ", "if (y[i] > %s) sum += ", t);
    submit_edited(6, "kept[i] ?", "kept[i] && fabs(dy[i]) > %s ?", t);
    submit_edited(7, "dx[r][i] += ", "if (fabs(w[o][i]) > %s) dx[r][i] += ", t);
    submit_edited(8, "1 / sqrt(var + eps)", "1 / fmax(%s, sqrt(var + eps))", t);
    submit_edited(9, "dx[i] = ", "if (exp(x[i] - max) / sum > %s) dx[i] = ", t);
    submit_edited(10, "(1 - t * t)", "(1 - t * t < %s ? 0 : 1 - t * t)", t);
    submit_edited(11, "p[i][j] /= sum;", "p[i][j] /= sum; if (p[i][j] < %s) p[i][j] = 0;", t);
    submit_edited(12, "p[j] /= sum;", "p[j] /= sum; if (p[j] < %s) p[j] = 0;", t);
    submit_edited(13, "theta[i] -= ", "if (fabs(velocity[i]) > %s) theta[i] -= ", t);
    expect_refused("--only 1,2,3,4,5,6,7,8,9,10,11,12,13", 13, t);
}
END_TEST

static char said[4096];

/* Marks one exercise whose file is there. Are the words in the text of its mark? */
static bool is_said(int exercise, const char *words) {
    char only[32];
    snprintf(only, sizeof only, "--only %d", exercise);
    mark_folder(only);
    const char *output = json_text(json_at(json_get(tree, "tests"), 0), "output", "");
    const bool found = strstr(output, words) != NULL;
    snprintf(said, sizeof said, "%s", output);
    free(tree);
    return found;
}

static void expect_edited(int exercise, const char *from, const char *to, const char *words) {
    submit_edited(exercise, from, to, NULL);
    ck_assert_msg(is_said(exercise, words), "%d, %s, no: %s\n%s", exercise, to, words, said);
}
static void expect_not(int exercise, const char *from, const char *to, const char *words) {
    submit_edited(exercise, from, to, NULL);
    ck_assert_msg(!is_said(exercise, words), "%d, %s: %s", exercise, to, words);
}

/* Each sentence about a result is said where it is true, and not where it is nearly true. */
START_TEST(words_that_are_true) {
    const char *const line = "dx[i] = y[i] * (dy[i] - sum);";
    const char *const never = "the function never writes to it";
    expect_edited(4, line, "if (n > 99999) dx[i] = 1;", never);
    expect_not(4, line, "if (n == 4) dx[i] = 1;", never);
    const char *const two = "has two results for one input";
    expect_edited(4, line, "dx[i] = y[i] * (dy[i] - sum) * (n == 4 ? rand() : 1);", two);
    expect_not(4, line, "dx[i] = y[i] * (dy[i] - sum) * (n == 4 ? 17 : 1);", two);
    const char *const doubled = "does not double when dy doubles";
    expect_edited(4, line, "dx[i] = y[i] * (dy[i] * dy[i] - sum);", doubled);
    expect_not(4, line, "dx[i] = y[i] * (dy[i] - sum) * rand();", doubled);
    expect_not(4, line, "dx[i] = y[i] * (dy[i] - sum) + (n == 4) * dy[0] * dy[0];", doubled);
    const char *const sign = "right but for its sign, on every input";
    expect_edited(4, line, "dx[i] = y[i] * (sum - dy[i]);", sign);
    expect_not(4, line, "dx[i] = (n == 4 ? -1 : 1) * y[i] * (sum - dy[i]);", sign);
    expect_edited(4, line, "dx[i] = 3 * y[i] * (dy[i] - sum);",
                  "dx is 3 times what it should be, on every input.");
    expect_not(4, line, "dx[i] = n == 6 ? 1 : 3 * y[i] * (dy[i] - sum);",
               " times what it should be");
    const char *const shifted = "right, but shifted by one place";
    expect_edited(4, line, "dx[(i + 1) % n] = y[i] * (dy[i] - sum);", shifted);
    expect_not(4, line, "dx[n == 2 ? i : (i + 1) % n] = n == 2 ? 1 : y[i] * (dy[i] - sum);",
               shifted);
    const char *const last = "is the last of its terms alone";
    expect_edited(2, "db[j] += ", "db[j] = ", last);
    expect_not(2, "db[j] += dy[i][j]", "db[j] = dy[i][j] + (rows == 4 ? dy[0][j] : 0)", last);
    const char *const digits = " digits on every input";
    expect_edited(4, line, "dx[i] = (float)(y[i] * (dy[i] - sum));",
                  "dx is right to 7 digits on every input");
    expect_not(4, line, "dx[i] = n == 4 ? 1 : (float)(y[i] * (dy[i] - sum));", digits);
    const char *const tiny = "right on every input but those in which a number is tiny";
    expect_edited(4, line, "if (y[i] > 1e-6) dx[i] = y[i] * (dy[i] - sum);", tiny);
    expect_not(4, line, "if (n != 4) dx[i] = y[i] * (dy[i] - sum);", tiny);
    const char *const large = "right on every input but the large ones";
    expect_edited(4, line, "if (i < 100) dx[i] = y[i] * (dy[i] - sum);", large);
    expect_not(4, line, "if (i < 6) dx[i] = y[i] * (dy[i] - sum);", large);
    const char *const zero = "right where keep is true, and small, but not 0";
    expect_edited(5, "if (keep[i]) dx[i] =", "dx[i] = !keep[i] ? 1e-12 :", zero);
    expect_not(5, "if (keep[i]) dx[i] =", "dx[i] = !keep[i] ? 1 :", zero);
    const char *const transposed = "is the transpose of what it should be, where it is square";
    expect_not(3, "da[i][p] += dy[i][j]", "if (n != k) da[i][p] += 2 * dy[i][j]", transposed);
}
END_TEST

/* Where a NaN comes from, and that it is said beside what is wrong on the other inputs. */
START_TEST(words_about_nan) {
    const char *const line = "dx[i] = y[i] * (dy[i] - sum);";
    const char *const unset = "It is made of a number that nobody has set";
    const char *const behind = "It is made of a number that was read behind the end of y";
    const char *const made = "Your code makes this NaN";
    expect_edited(4, line, "{ double t[n]; dx[i] = t[i] += y[i] * (dy[i] - sum); }", unset);
    expect_edited(4, line, "{ double *t = malloc(8 * n); dx[i] = t[i] += y[i] * (dy[i] - sum); }",
                  unset);
    expect_edited(4, line, "dx[i] = y[i + 1] * (dy[i] - sum);", behind);
    expect_edited(4, line, "dx[i] = y[i - 1] * (dy[i] - sum);", "read before the beginning of y");
    expect_edited(4, line,
                  "{ double *t = calloc(n, 8); dx[i] = t[i + 1] + y[i] * (dy[i] - sum); free(t); }",
                  "read behind memory of malloc");
    expect_edited(4, line, "dx[i] = sqrt(-y[i]);", made);
    expect_edited(5, "if (keep[i]) sum += y[i] * dy[i]", "sum += y[i] * dy[i] * 2",
                  "It is made of a masked dy, which is NaN here");
    expect_not(4, line, "dx[i] = sqrt(-y[i]);", unset);
    expect_not(4, line, "{ double t[n]; dx[i] = t[i] += y[i] * (dy[i] - sum); }", made);
    expect_edited(
        4, line, "dx[i] = 3 * y[i] * (dy[i] - sum) + (n == 1 ? 0. / (n - 1) : 0);",
        "dx is 3 times what it should be, on every input where it is no NaN.\ndx[0] is NaN (n = 1). Your code makes this NaN");
}
END_TEST

/* A write beside an array: on which side, and which array. */
START_TEST(writes_beside_an_array) {
    const char *const line = "dx[i] = s * dy[i];";
    expect_edited(1, line, "dx[i] = s * dy[i]; dx[-1] = 0;",
                  "writes before the beginning of dx (n = 4)\nWhich is the smallest index");
    expect_edited(1, line, "dx[i] = s * dy[i]; dx[n] = 0;",
                  "writes behind the end of dx (n = 4)\nWhich is the largest index");
    expect_edited(1, line, "{ double *t = malloc(8 * n); t[n] = 0; dx[i] = s * dy[i]; }",
                  "writes behind memory that it got from malloc");
    expect_edited(1, line, "{ double t[3]; dx[i] = t[i] = s * dy[i]; }",
                  "of 01_scale.c uses element 3 of an array that has 3");
    expect_edited(2, "db[j] +=",
                  "if (!j && !i) for (int a = 0; a < rows * n; a++) dx[0][a] = dy[0][a]; db[j] +=",
                  "right: the library's loop");
}
END_TEST

/* Differences in place of a formula: right, and it is said. */
START_TEST(numeric_differentiation) {
    expect_edited(
        9, "dx[i] = dloss * (exp(x[i] - max) / sum - (i == target));",
        "{ double loss[2]; for (int k = 0; k < 2; k++) { double h = k ? 1e-5 : -1e-5, all = 0;"
        "for (int j = 0; j < n; j++) all += exp(x[j] - max + (j == i) * h);"
        "loss[k] = log(all) - (target == i) * h; } dx[i] = dloss * (loss[1] - loss[0]) / 2e-5; }",
        "right: the library's loop is tensor/kernels/plain.inc, cross_entropy_dx\nIt is right to 1");
    ck_assert_int_eq(run("--submission $D --only 9"), 0);
    ck_assert_ptr_nonnull(strstr(out, "cross_entropy_dx\n  "));
    expect_not(9, "dx[i] = ", "dx[i] = ", "digits");
}
END_TEST

/* Marks the answer with this title in tests/submissions, and looks for the words. */
static void expect_words_about(int exercise, const char *title, const char *words) {
    char mark[128];
    const char *body = answer(exercise - 1, 0, mark);
    for (int r = 1; body && !strstr(mark, title); r++) body = answer(exercise - 1, r, mark);
    ck_assert_msg(body, "%d: there is no answer %s", exercise, title);
    submit(exercise - 1, body);
    ck_assert_msg(is_said(exercise, words), "%s: %s", words, said);
}

START_TEST(an_assignment_where_terms_are_added) {
    const char *const question =
        " is the last of its terms alone. What does = do to the terms before?\n";
    char words[128];
    snprintf(words, sizeof words, "Each element of db%s", question);
    expect_words_about(2, "the last row", words);
    expect_words_about(3, "= for +=", question);
    expect_words_about(7, "dx of the last output", question);
    expect_words_about(8, "dw and db of the last row",
                       "db: your code computes this: db[j] is dy[i][j] of the last row alone.");
    expect_words_about(10, "= for += in dq",
                       "dq: your code computes this: dq[i] has the term of the");
    expect_words_about(11, "dv overwritten",
                       "dv: your code computes this: dv[j] is p[i][j] dy[i] of the last query i");
    expect_words_about(11, "dq overwritten", "What does = do to the terms of the keys before?\n");
    expect_words_about(11, "= in all three",
                       "dk: your code computes this: dk[j] is ds[i][j] q[i] / sqrt(D) of the last");
    expect_words_about(11, "= in all three",
                       "dq: your code computes this: dq[i] is ds[i][j] k[j] / sqrt(D) of the last");
    expect_words_about(14, "= in dk", "What does = do to the terms of the queries before?\n");
    expect_words(
        4,
        "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) dx[i] = dy[j] * y[j] * ((i == j) - y[i]);",
        question);
}
END_TEST

/* The first wrong stage: which are right, the right numbers and the student's, and a question. */
START_TEST(words_about_a_stage) {
    expect_words_about(14, "s_no_scale", "The first that is wrong seems to be s. s[0] should be {");
    expect_words_about(11, "@ds", "Right: s and p. The first that is wrong seems to be ds. ds[");
    expect_words_about(11, "g[i][j] += dy[i][e] * dv[j][e] @dp",
                       "SHOW(\"dp\", dp[i][j], i, j); behind the line that computes it");
    expect_words_about(11, "/ norm / norm;", ", as dv has them, have the sum 0.");
    expect_words_about(8, "mu /= rows;", "Row 0 of the xhat in your dw is (x - m) / s with m = ");
    expect_words_about(10, "@t", "The first that is wrong seems to be t. t[0][0] should be {");
    expect_words_about(12, "wo_untransposed",
                       "Right: q, k, v, s, p and o. The first that is wrong seems to be dO.");
    expect_words_about(5, "dot += dy[i] @sum", "sum should be {");
    expect_words(
        3,
        "da[i][p] += (i + 1 < n || n == 1) * dy[i][j] * b[p][j]; db[p][j] += a[i][p] * dy[i][j]; }",
        "Of da only the last row is wrong, on every input with two or more.");
    expect_words_about(6, "1.0 - p @scale",
                       "Right: mask. The first that is wrong seems to be scale.");
}
END_TEST

static const char *const attention_code =
    "#include \"11_attention.h\"\nvoid attention_backward(int Q, int K, int D, double dq[Q][D], double "
    "dk[K][D], double dv[K][D], const double q[Q][D], const double k[K][D], const double v[K][D], const "
    "double dy[Q][D]) { for (int i = 0; i < Q; i++) { double p[K], dp[K], ds[K], z = 0, sum = 0;"
    "for (int j = 0; j < K; j++) { double s = 0; for (int c = 0; c < D; c++) s += q[i][c] * k[j][c];"
    "z += p[j] = exp(s / sqrt(D)); } for (int j = 0; j < K; j++) { p[j] /= z; dp[j] = 0;"
    "for (int c = 0; c < D; c++) dp[j] += dy[i][c] * v[j][c]; SHOW(\"dp\", dp[j], i, j); }"
    "for (int j = 0; j < K; j++) sum %s p[j] * dp[j];"
    "for (int j = 0; j < K; j++) { ds[j] = p[j] * (dp[j] - sum) %s; SHOW(\"ds\", ds[j], i, j);"
    "for (int c = 0; c < D; c++) { dq[i][c] += ds[j] * k[j][c] %s; dk[j][c] += ds[j] * q[i][c] %s;"
    "dv[j][c] %s p[j] * dy[i][c]; } } SHOW(\"%s\", sum, i); } }\n";

/* The mark of attention with these parts. */
static void expect_attention(const char *const part[6], const char *result, const char *stage,
                             const char *words) {
    char code[2048];
    snprintf(code, sizeof code, attention_code, part[0], part[1], part[2], part[3], part[4],
             part[5]);
    submit(10, code);
    mark_folder("--only 11");
    const Json *test = json_at(json_get(tree, "tests"), 0);
    const char *output = json_text(test, "output", "");
    ck_assert_msg(strcmp(extra(test, "result"), result) == 0, "%s", output);
    ck_assert_msg(strcmp(extra(test, "stage"), stage) == 0, "%s: %s", extra(test, "stage"), output);
    ck_assert_msg(strstr(output, words), "%s: %s", words, output);
    free(tree);
}

/* The factor 1 / sqrt(D) may be in the ds that is shown; a name that is not there is said. */
START_TEST(what_show_gives) {
    const char *const right[] = {"+=", "/ sqrt(D)", "", "", "+=", "dp"};
    const char *const sum[] = {"=", "", "/ sqrt(D)", "/ sqrt(D)", "+=", "dp"};
    const char *const other[] = {"=", "/ sqrt(D)", "", "", "+=", "the sum"};
    const char *const unknown[] = {"+=", "/ sqrt(D)", "", "", "=", "the sum"};
    const char *const two[] = {"=", "", "/ sqrt(D)", "/ sqrt(D)", "=", "dp"};
    expect_attention(right, "right", "", "the library's loop is");
    expect_attention(sum, "wrong", "ds", "The number that you show as ds[0][0] is ");
    expect_attention(other, "wrong", "ds", "The number that you show as ds[0][0] is ");
    expect_attention(unknown, "wrong", "dv",
                     "You show the sum; the names are s, p, dp, ds, dq, dk, dv.");
    expect_attention(two, "wrong", "ds", "dv: your code computes this: dv[j] is p[i][j] dy[i] of");
    expect_attention(two, "wrong", "ds", "dq and dk: your code computes this: ds = p (dp - S)");
}
END_TEST

/* 9, whose loss is one number, and 13, which is no backward: the numbers of the formula. */
START_TEST(the_numbers_of_a_formula) {
    expect_words_about(9, "only one negative target is ignored",
                       " times 0, since a target below 0 is ignored.\n");
    expect_words_about(9, "minus x at the target", "] should be dloss = ");
    expect_words_about(13, "theta before the step is not used", "] should be its theta before (");
    expect_words_about(13, "velocity is added to itself",
                       "] should be momentum (0.9) times its velocity before (");
}
END_TEST

/* A masked dx must be exactly 0, and a right one is printed as 0, not as +0 or -0. */
START_TEST(almost_zero) {
    expect_words_about(5, "almost 0 where masked",
                       "dx is right where keep is true, and small, but not 0, where it is false.");
    expect_words_about(5, "almost 0 where masked", "dx[2] is +1e-12, should be exactly 0 (n = 3)");
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = n == 1 ? 1 : y[i] * (dy[i] - s);",
                 "dx[0] is +1, should be 0 (n = 1)");
    submit(0, "#include \"01_scale.h\"\nvoid scale_backward(int n, double s, double dx[n], const "
              "double dy[n]) { for (int i = 0; i < n; i++) dx[i] = -0. * s * dy[i]; }\n");
    ck_assert_int_eq(run("--submission $D 1"), 1);
    ck_assert_ptr_null(strstr(out, " -0\n"));
    ck_assert_ptr_null(strstr(out, " -0 "));
    ck_assert_ptr_null(strstr(out, "+0,"));
}
END_TEST

START_TEST(an_input_where_all_is_zero) {
    expect_words(4, "for (int i = 0; i < n; i++) dx[i] = y[i] + dy[i];", "(n = 2)\n");
    expect_words(
        4, "for (int i = 0; i < n; i++) dx[i] = n == 1 ? 1 : y[i] * (dy[i] - s);",
        "dx[0] should be 0, since every dy has the factor 0 here: with n = 1, y is 1 whatever x is.\n");
}
END_TEST

START_TEST(what_is_missing) {
    expect_words(4, "double dot(int n); dx[0] = dot(n);",
                 "it does not compile: undefined reference to `dot'");
    submit(
        0,
        "void scale_backward(int n, double s, double dx[n], const double dy[n]) { dx[0] = s * x[0]; }\n");
    mark_folder("--only 1");
    const char *output = json_text(json_at(json_get(tree, "tests"), 0), "output", "");
    ck_assert_msg(
        strstr(output, "\nA backward gets only what is in its parentheses; does it need x?\n"),
        "%s", output);
    free(tree);
}
END_TEST

/* 14: a free that was forgotten in a loop. */
START_TEST(memory_that_is_not_freed) {
    char code[TEXT], mark[128], *at;
    const char *body = answer(13, 0, mark);
    at = strchr(strstr(body, "flash_backward("), '{') + 1;
    snprintf(code, sizeof code,
             "#include <stdlib.h>\n%.*s for (int z = 0; z < Q; z++) (void)!malloc(K * 80); %s",
             (int)(at - body), body, at);
    submit(13, code);
    mark_folder("--only 14");
    const char *output = json_text(json_at(json_get(tree, "tests"), 0), "output", "");
    ck_assert_msg(strstr(output, "and may use 8 (Q + K + D) = 14576, and 2048 more"), "%s", output);
    ck_assert_ptr_nonnull(strstr(output, "or is memory not freed?"));
    free(tree);
}
END_TEST

/* ---- the command line --------------------------------------------------------------------------
 */

START_TEST(command_lines) {
    expect_misuse("--solution");
    ck_assert_ptr_nonnull(strstr(complaints, "there is no --solution"));
    expect_misuse("--only 99");
    expect_misuse("3,99");
    ck_assert_ptr_nonnull(strstr(complaints, "there is no exercise 99: they are 1 to 1"));
    expect_misuse("--only 3,x");
    expect_misuse("--only 8b");
    ck_assert_int_eq(run("--submission $D --only 8,7b"), 1);
    ck_assert_ptr_nonnull(
        strstr(out, "7b mean_variance      empty\n 8 layer_norm         empty\n"));
    ck_assert_ptr_nonnull(strstr(out, "Next: 7b, "));
    ck_assert_int_eq(run("--submission $D 10b"), 1);
    ck_assert_ptr_nonnull(strstr(out, "10b weighted_mean     empty\n"));
    expect_misuse("--only 3 4");
    expect_misuse("0");
    expect_misuse("--seed");
    expect_misuse("--train --find");
    expect_failure("--json $D/nowhere/results.json", "it cannot be written");
    expect_failure("--submission $D/nowhere", "there is no such folder");
    ck_assert_int_eq(run("--submission $D// --only 4"), 1);
    ck_assert(strstr(out, "Next: 4, ") && !strstr(out, "//"));
    submit(
        3,
        "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) { dx[0] = dy[0]; }\n");
    run("--submission $D --only 4 --seed 9");
    ck_assert_ptr_nonnull(strstr(out, "(build/exercises 4 --seed 9 shows the arrays)"));
}
END_TEST

START_TEST(a_number_alone_shows_the_arrays) {
    submit(
        3,
        "#include \"04_softmax.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) {\n"
        "printf(\"here \\033 I am\\n\"); for (int i = 0; i < n; i++) dx[i] = dy[i]; }\n");
    ck_assert_int_eq(run("--submission $D 4 --seed 9"), 1);
    ck_assert_ptr_null(strstr(out, "shows the arrays)")); /* they are there */
    ck_assert_ptr_nonnull(strstr(out, "\n  dx, yours\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n  dx, right\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n    here ? I am\n"));
    ck_assert_ptr_nonnull(strstr(out, "explain.html#2/b3.0"));
    ck_assert_ptr_nonnull(strstr(out, "\n0 passed, 1 failed\n"));
}
END_TEST

/* What is printed belongs to the arrays that are shown: n, the steps of 13, and a crash. */
START_TEST(what_the_function_prints) {
    submit(
        3,
        "#include \"04_softmax.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { printf(\"%d %.5g.\\n\", n, dy[0]); dx[0] = n == 2; }\n");
    run("--submission $D 4");
    char shown[64], *dy = strstr(out, "\n  dy\n");
    ck_assert_ptr_nonnull(dy);
    snprintf(shown, sizeof shown, "On this input the function printed:\n    2 %.5g.\n",
             strtod(dy + 6, NULL));
    ck_assert_msg(strstr(out, shown), "%s: %s", shown, out);
    submit(
        12,
        "#include \"13_sgd.h\"\nvoid sgd_step(int n, double lr, double momentum, double theta[n], "
        "double velocity[n], const double g[n]) { printf(\"%g.\\n\", velocity[0] != 0 ? 1. : 0);"
        "for (int i = 0; i < n; i++) { theta[i] += velocity[i] != 0 ? 1 : -lr * g[i];"
        "velocity[i] = momentum * velocity[i] + g[i]; } }\n");
    run("--submission $D 13");
    ck_assert_msg(strstr(out, "function printed:\n    1.\n"), "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "\n  theta, before the step\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n  velocity, before the step\n"));
    submit(
        3,
        "#include \"04_softmax.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { printf(\"here\\n\"); *(volatile int *)0 = 1; }\n");
    run("--submission $D 4");
    ck_assert_ptr_nonnull(
        strstr(out, "On the input where it stopped the function printed:\n    here\n"));
}
END_TEST

/* Where the rule is explained. The lesson of 4 shows the result, so it is named after an attempt.
 */
START_TEST(the_lessons) {
    char mark[128];
    ck_assert_int_eq(run("--submission $D 2,4,10,13"), 1);
    ck_assert_ptr_nonnull(strstr(out, "open explain.html#6/b7.2 in a browser,\n"));
    ck_assert_ptr_nonnull(strstr(out, "explain.html#6/b5.0&additive=1 in"));
    ck_assert_ptr_nonnull(
        strstr(out, "or build/explain --text --lesson 6 --additive: step b5.0\n"));
    ck_assert_ptr_nonnull(strstr(out, "--lesson 6: step b0.1 (its steps have no momentum)\n"));
    ck_assert_ptr_null(strstr(out, "--lesson 2"));
    submit(3, answer(3, 5, mark));
    run("--submission $D 4");
    ck_assert_ptr_nonnull(strstr(out, "--lesson 2: step b3.0 (it shows the result)\n"));
}
END_TEST

/* Each exercise names a step that is there, and the index of make demo has the same address. */
START_TEST(each_lesson_is_there) {
    static char index[1 << 16];
    char numbers[32], line[192], address[64], escaped[96], program_line[128], step[16], mark[128];
    FILE *file = fopen("examples/index.html", "rb");
    ck_assert_ptr_nonnull(file);
    index[fread(index, 1, sizeof index - 1, file)] = '\0';
    fclose(file);
    if (_i == 3) submit(_i, answer(_i, 5, mark)); /* an attempt */
    snprintf(numbers, sizeof numbers, "--submission $D %s", label(_i));
    ck_assert_int_eq(run(numbers), 1);
    const char *at = strstr(out, "explain.html#");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "explain.html#%63s", address), 1);
    const char *others = strchr(address, '&');
    snprintf(escaped, sizeof escaped, "\"explain.html#%.*s%s%s\"", (int)strcspn(address, "&"),
             address, others ? "&amp;" : "", others ? others + 1 : "");
    snprintf(line, sizeof line, "<li><b>%s</b> ", label(_i));
    const char *item = strstr(index, line);
    ck_assert_ptr_nonnull(item);
    const char *link = strstr(item, escaped);
    ck_assert_msg(link && link < strstr(item, "</li>"), "the index has no %s", escaped);
    at = strstr(out, "or build/explain ");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "or build/explain %127[^:]: step %15s", program_line, step), 2);
    ck_assert_ptr_nonnull(strstr(address, step));
    program = "explain";
    snprintf(line, sizeof line, "%s | grep -qE ', %s(,|$)'", program_line, step);
    ck_assert_int_eq(run(line), 0);
    program = "exercises";
}
END_TEST

/* In a terminal, somebody who waits is told for what. */
START_TEST(a_loop_without_an_end) {
    if (!has_terminal("a_loop_without_an_end")) return;
    submit(
        3,
        "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) { for (;;) dx[0] = n; }\n");
    ck_assert_int_eq(run_on_terminal("", "--submission $D --only 4 2>&1"), 1);
    ck_assert_ptr_nonnull(
        strstr(out, "4 softmax is still running; it is stopped after 10 seconds of computing ..."));
    ck_assert_ptr_nonnull(strstr(out, "did not return within 10 seconds (n = "));
}
END_TEST

START_TEST(the_compiler) {
    submit_right_answers();
    ck_assert_int_eq(run_line("CC='cc -O2'", "--submission $D 4"), 0);
    ck_assert_int_eq(run_line("CC=nothing-here", "--submission $D 4"), 1);
    ck_assert_ptr_nonnull(strstr(complaints, "there is no C compiler nothing-here"));
    const char *runner = getenv("RUNNER");
    if (runner && *runner) return; /* valgrind needs a TMPDIR, too */
    ck_assert_int_eq(run_line("TMPDIR=$D/nowhere", "--submission $D 4"), 1);
    ck_assert_ptr_nonnull(strstr(complaints, "TMPDIR"));
}
END_TEST

/* Folders with spaces and quotes, and one that looks like a flag; no file is left behind. */
START_TEST(odd_folders) {
    submit_right_answers();
    ck_assert_int_eq(
        shell("mkdir \"$D/a 'folder\" \"$D/tmp\" && cp $D/04_softmax.c \"$D/a 'folder/\""), 0);
    ck_assert_int_eq(run_line("TMPDIR=$D/tmp", "--submission \"$D/a 'folder\" 4"), 0);
    ck_assert_int_eq(shell("[ -z \"$(ls -A $D/tmp)\" ]"), 0);
}
END_TEST

/* ---- a class ------------------------------------------------------------------------------------
 */

static void submit_for(const char *student, int exercise, const char *body) {
    char line[128], file[160];
    snprintf(line, sizeof line, "mkdir -p \"$D/class/%s\"", student);
    ck_assert_int_eq(shell(line), 0);
    snprintf(file, sizeof file, "%s/class/%s/%s.c", folder, student, name[exercise]);
    put(file, body);
}

/* Two of three students have the same mistake; one has a file with another name and one without a
 * file. */
static void make_class(void) {
    char mark[128];
    submit_for("Ada, A", 3, answer(3, 0, mark));
    submit_for("Ada, A", 2, answer(2, 0, mark));
    submit_for("bob", 3, answer(3, 5, mark));
    ck_assert_str_eq(mark, "wrong no_sum");
    submit_for("eve", 3, answer(3, 5, mark));
    submit_for("eve", 2, answer(2, 0, mark));
    ck_assert_int_eq(
        shell(
            "mv $D/class/eve/03_product.c \"$D/class/eve/03_Product (1).C\"; touch $D/class/a-file"),
        0);
}

START_TEST(a_class) {
    static const char table[] = "student,03_product,04_softmax,points,mistake,stage\n"
                                "\"Ada, A\",right,right,2,,\n"
                                "bob,empty,wrong,0,04_softmax: no_sum,\n"
                                "eve,empty,wrong,0,04_softmax: no_sum,\n";
    static const char rest[] =
        "\nbob: 03_product.c is missing\n"
        "eve: 03_Product (1).C is there; 03_product.c is not\n"
        "\nThe commonest mistakes:\n  2 students, 04_softmax: no_sum\n"
        "    The code computes this: y * dy, without the sum over the row.\n";
    char csv[1024];
    make_class();
    ck_assert_int_eq(run("--class $D/class --only 3,4 --seed 5"), 0);
    ck_assert_msg(strncmp(out, table, strlen(table)) == 0, "%s", out);
    ck_assert_msg(strstr(out, rest), "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "\n3 students, seed 5.\n"));
    ck_assert_int_eq(run("--class $D/class --only 3,4 --csv $D/marks.csv"), 0);
    ck_assert_int_eq(strncmp(out, "Ada, A: 2 of 2\nbob: 0 of 2\n", 27), 0);
    slurp(path("marks.csv"), csv, sizeof csv);
    ck_assert_str_eq(csv, table);
    int seed = 7, again = 7;
    sscanf(strstr(out, ", seed "), ", seed %d", &seed);
    run("--class $D/class --only 3");
    sscanf(strstr(out, ", seed "), ", seed %d", &again);
    ck_assert_int_ne(seed, again);
    expect_failure("--class $D/class/eve", "it has no folders of students");
    expect_failure("--class $D/nowhere", "there is no such folder");
    expect_misuse("--class $D/class --json $D/results.json");
    expect_misuse("--csv $D/marks.csv");
}
END_TEST

/* An id can have two rows, which compute different things: each student's is counted as its own. */
START_TEST(a_class_with_two_mistakes_of_one_id) {
    static const char *const students[] = {"ada", "bob"};
    char mark[128];
    const char *body = answer(11, 0, mark);
    for (int r = 1, n = 0; body && n < COUNT(students); body = answer(11, r++, mark))
        if (strstr(mark, "dx_overwritten")) submit_for(students[n++], 11, body);
    ck_assert_int_eq(run("--class $D/class --only 12 --seed 5"), 0);
    ck_assert_int_eq(occurrences(out, "  1 student, 12_self_attention: dx_overwritten\n"), 2);
    ck_assert_int_eq(occurrences(out, "dx = dV wv"), 1);
}
END_TEST

/* ---- training, and finding an input
 * -------------------------------------------------------------- */

/* The functions of recall's model, right: the losses of the student and of the library are equal.
 */
START_TEST(right_functions_train_as_the_library_does) {
    submit_right_answers();
    ck_assert_int_eq(run("--submission $D --train"), 0);
    ck_assert_ptr_nonnull(
        strstr(out, "  yours: 3 product 5 masked_softmax 7 linear 9 cross_entropy 13 sgd\n"));
    ck_assert_ptr_nonnull(strstr(out, " 10 additive "));
    ck_assert_ptr_null(strstr(out, "differ"));
    const char *first = strstr(out, "The losses are equal to the last digit.");
    ck_assert(first && strstr(first + 1, "The losses are equal to the last digit."));
}
END_TEST

START_TEST(a_wrong_function_trains_otherwise) {
    char mark[128];
    submit(8, answer(8, 3, mark)); /* no_onehot: the loss does not fall */
    ck_assert_str_eq(mark, "wrong no_onehot");
    ck_assert_int_eq(run("--submission $D --train"), 1);
    ck_assert_ptr_nonnull(strstr(
        out,
        "  yours: 9 cross_entropy\n  the library's, since yours is not there or does not compile: 3 product"));
    ck_assert_ptr_nonnull(strstr(out, "   differs\n"));
    ck_assert_ptr_nonnull(strstr(out, "  The losses differ"));
    submit(
        8,
        "#include \"09_cross_entropy.h\"\nvoid cross_entropy_backward(int n, int target, double dloss, "
        "double dx[n], const double x[n]) { exit(0); }\n");
    expect_failure("--submission $D --train", "9 cross_entropy: the function did not return");
    ck_assert_int_eq(shell("rm $D/09_cross_entropy.c"), 0);
    ck_assert_int_eq(run("--submission $D --train"), 1);
    ck_assert_ptr_nonnull(strstr(out, "Write one of these functions first."));
}
END_TEST

/* Wrong answers get a hint, and what cannot be read is asked again. */
START_TEST(finding_inputs) {
    ck_assert_int_eq(
        run_line(
            "printf '%s\\n' '1 1 1' '1 2 3' 0 '1 2 x' '1, 2, 3' '1 0 0' 'dx[7]' 'dx[1]' '1 2 3' 3 -1 1 2 "
            "'1 2 3' 'true true false' '1 1 nan' 2 |",
            "--find"),
        0);
    ck_assert_ptr_nonnull(strstr(out, "dx[0] is -0.333333, and should be -0.333333.\nFor which y"));
    ck_assert_ptr_nonnull(strstr(out, "x, 3 numbers = It wants 3 numbers, with spaces between.\n"));
    ck_assert_ptr_nonnull(strstr(out, "keep, 3 times true or false, or 1 or 0 = "));
    ck_assert_ptr_nonnull(strstr(out, "dloss, 1 number = "));
    ck_assert_ptr_nonnull(strstr(out, "It has the form dx[1]."));
    ck_assert_ptr_nonnull(strstr(out, "target wants a class"));
    ck_assert_ptr_nonnull(
        strstr(out, "Right: dx[2] is NaN here, and should be 0.\n\n3 of 3 found.\n"));
    ck_assert_int_eq(run("--find </dev/null"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\n0 of 3 found.\n"));
}
END_TEST

/* Copies the code that --find shows, and marks it: it is the mistake that it should be. */
static void mark_shown(int exercise, const char *function, const char *id) {
    char code[4096] = "#include <math.h>\n#include <stdbool.h>\n";
    const char *at = strstr(out, function);
    ck_assert_ptr_nonnull(at);
    strncat(code, at, (size_t)(strstr(at, "\n    }\n") - at) + 7);
    submit(exercise - 1, code);
    char only[32];
    snprintf(only, sizeof only, "--only %d", exercise);
    mark_folder(only);
    ck_assert_str_eq(extra(json_at(json_get(tree, "tests"), 0), "mistake"), id);
    free(tree);
}

START_TEST(what_find_shows_is_what_it_computes) {
    static const struct {
        int exercise;
        const char *function, *id;
    } shown[] = {{4, "void softmax_backward", "mean_of_dy"},
                 {9, "void cross_entropy_backward", "ignored_not_zero"},
                 {5, "void masked_softmax_backward", "unmasked_gradient"}};
    for (int i = 0; i < 3; i++) {
        run_line(
            "{ for i in 1 2 3; do printf '1 1 1\\n1 1 1\\n0\\n'; done; for i in 1 2 3; do printf '1 1 1\\n1\\n1\\n0\\n'; done; } |",
            "--find");
        mark_shown(shown[i].exercise, shown[i].function, shown[i].id);
    }
}
END_TEST

/* exp(1000) is infinite: the code that is shown subtracts the maximum, and so does what is
 * computed.
 */
START_TEST(find_computes_what_it_shows_for_large_numbers) {
    run_line("printf '%s\\n' '1 2 3' '1 0 0' 0 '1000 0 0' 0 1 0 |", "--find");
    ck_assert_ptr_nonnull(strstr(out, "sum += exp(x[j] - max);"));
    ck_assert_ptr_nonnull(strstr(out, "dx[0] is 0, and should be 0.\n"));
    run_line("printf '%s\\n' '1 2 3' '1 0 0' 0 '1000 0 0' -1 1 0 |", "--find");
    ck_assert_ptr_nonnull(strstr(out, "Right: dx[0] is +1 here, and should be 0.\n"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("exercises");
    program = "exercises";
    /* A loop without an end computes for 10 seconds: minutes, on a busy machine. */
    enum { MINUTES = 600 };
    TCase *answers = add_program_case(suite, "answers");
    tcase_set_timeout(answers, MINUTES);
    mark_long(answers);
    tcase_add_loop_test(answers, answers_are_marked_rightly, 0, ROUNDS);
    tcase_add_test(answers, there_are_enough_answers);
    tcase_add_test(answers, all_right);
    TCase *results = add_program_case(suite, "results");
    tcase_add_test(results, results_are_as_gradescope_reads_them);
    tcase_add_test(results, nothing_is_there);
    tcase_add_test(results, files_with_another_name);
    tcase_add_test(results, the_files_of_the_students_compile);
    tcase_add_test(results, the_worst_numbers_differ_in_print);
    tcase_add_test(results, words_about_a_result_without_a_name);
    tcase_add_loop_test(results, arrays_of_a_fixed_size, 0, 5);
    tcase_add_loop_test(results, small_numbers_taken_as_zero, 0, 3);
    tcase_add_test(results, words_that_are_true);
    tcase_add_test(results, words_about_nan);
    tcase_add_test(results, writes_beside_an_array);
    tcase_add_test(results, numeric_differentiation);
    tcase_add_test(results, an_assignment_where_terms_are_added);
    tcase_add_test(results, words_about_a_stage);
    tcase_add_test(results, what_show_gives);
    tcase_add_test(results, almost_zero);
    tcase_add_test(results, an_input_where_all_is_zero);
    tcase_add_test(results, the_numbers_of_a_formula);
    tcase_add_test(results, what_is_missing);
    tcase_add_test(results, memory_that_is_not_freed);
    TCase *line = add_program_case(suite, "command line");
    tcase_set_timeout(line, MINUTES);
    tcase_add_test(line, command_lines);
    tcase_add_test(line, a_number_alone_shows_the_arrays);
    tcase_add_test(line, what_the_function_prints);
    tcase_add_test(line, the_lessons);
    tcase_add_loop_test(line, each_lesson_is_there, 0, EXERCISES);
    tcase_add_test(line, the_compiler);
    tcase_add_test(line, odd_folders);
    add_tests(line, a_class, a_class_with_two_mistakes_of_one_id);
    TCase *training = add_program_case(suite, "training");
    mark_long(training);
    tcase_add_test(training, right_functions_train_as_the_library_does);
    tcase_add_test(training, a_loop_without_an_end);
    tcase_add_test(training, a_wrong_function_trains_otherwise);
    TCase *find = add_program_case(suite, "find");
    tcase_add_test(find, finding_inputs);
    tcase_add_test(find, what_find_shows_is_what_it_computes);
    tcase_add_test(find, find_computes_what_it_shows_for_large_numbers);
    return run_suite(suite);
}
