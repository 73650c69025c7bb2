/* test_exercises.c - what does build/exercises do around the marks? test_answers.c has the marks.
 *
 * Here are what is read and written, the command line, a class, and the answers
 * of tests/submissions that are marked alone, by the program: those that do not compile, have a
 * main or names of the marker's own, or whose memory is measured; and one of each end. */
#include <stdlib.h>
#include <string.h>

#include "../../../examples/explain/page/json.h"
#include "../common.h"
#include "../common_program.h"

enum { EXERCISES = 16, ALONE = 11, TEXT = 1 << 18 };

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

/* All answers to an exercise, as students write them. */
static const char *read_answers(int exercise) {
    static char text[TEXT];
    static int of = -1;
    if (of == exercise) return text;
    FILE *answers =
        popen(format("awk -v show=texts -f tests/tools/answers.awk tests/submissions/%s.txt",
                     name[exercise]),
              "r");
    ck_assert_ptr_nonnull(answers);
    text[fread(text, 1, sizeof text - 1, answers)] = '\0';
    ck_assert_msg(pclose(answers) == 0 && *text && strlen(text) < sizeof text - 1,
                  "%s is missing, or too long", name[exercise]);
    of = exercise;
    return text;
}

/* Reads answer number r of an exercise: its mark goes to `mark`, the rest is the result. NULL if
 * there are fewer answers. */
static const char *answer(int exercise, int r, char mark[128]) {
    static char text[TEXT];
    const char *at = read_answers(exercise);
    for (; r > 0; r--) {
        at = strstr(at, "\n==== ");
        if (!at) return NULL;
        at++;
    }
    const char *body = strchr(at, '\n') + 1;
    const char *end = strstr(body, "\n==== ");
    snprintf(mark, 128, "%.*s", (int)(body - at - 6), at + 5);
    snprintf(text, sizeof text, "%.*s", end ? (int)(end + 1 - body) : (int)strlen(body), body);
    return text;
}

/* Answer number r of those that are marked alone; its mark without this word. */
static const char *answer_alone(int exercise, int r, char mark[128]) {
    const char *body = answer(exercise, 0, mark);
    for (int i = 0; body; body = answer(exercise, ++i, mark)) {
        const bool alone = strncmp(mark, "alone ", 6) == 0;
        if (!alone && strncmp(mark, "no-compile", 10) != 0 && strncmp(mark, "empty", 5) != 0)
            continue;
        if (r-- > 0) continue;
        if (alone) memmove(mark, mark + 6, strlen(mark + 6) + 1);
        return body;
    }
    return NULL;
}

/* Writes one answer into the folder of the round. */
static void submit(int exercise, const char *body) {
    put(format("%s/%s.c", folder, name[exercise]), body);
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
    const int status = run(format("--submission $D --json $D/results.json %s", arguments));
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

/* A loop without an end computes for 10 seconds: minutes, on a busy machine. */
PROGRAM_CASE("answers", .seconds = 600, .is_long = true)
/* Round r takes answer r of each exercise, makes a submission of these, and compares all marks. */
LOOP_TEST(answers_alone_are_marked_rightly, ALONE) {
    char only[64] = "", mark[EXERCISES][128];
    int chosen[EXERCISES], n = 0;
    for (int i = 0; i < EXERCISES; i++) {
        const char *body = answer_alone(i, _i, mark[n]);
        if (!body) continue;
        submit(i, body);
        snprintf(only + strlen(only), 16, n ? ",%s" : "--only %s", label(i));
        chosen[n++] = i;
    }
    ck_assert_int_gt(n, 0);
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

TEST(every_answer_is_in_a_round) {
    char mark[128];
    for (int i = 0; i < EXERCISES; i++) ck_assert_ptr_null(answer_alone(i, ALONE, mark));
}

/* The first answer of each exercise is right. */
static void submit_right_answers(void) {
    char mark[128];
    for (int i = 0; i < EXERCISES; i++) submit(i, answer(i, 0, mark));
}

TEST(all_right) {
    submit_right_answers();
    ck_assert_int_eq(mark_folder("--seed 3 --only " ALL), 0);
    ck_assert_ptr_nonnull(strstr(out, "\n16 of 16 are right.\n16 passed, 0 failed\n"));
    ck_assert_ptr_nonnull(strstr(
        out,
        " 4 softmax            right    the library's loop: tensor/kernels/plain.inc, softmax_dx\n"));
    ck_assert_int_eq(json_integer(tree, "score", 0), 16);
    free(tree);
}

PROGRAM_CASE("results")
/* The fields and types that Gradescope's documentation names. */
TEST(results_are_as_gradescope_reads_them) {
    submit(2, "@");
    mark_folder("--only 3,4");
    ck_assert_str_eq(json_text(tree, "output", ""),
                     "04_softmax.c is missing. 0 of 2 are right (seed 7).");
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

TEST(a_static_function_is_called_that) {
    submit(0, "static void scale_backward(int n, double s, double dx[n], const double dy[n]) "
              "{ dx[0] = s; }\n");
    ck_assert_int_eq(run("--submission $D --only 1"), 1);
    ck_assert_ptr_nonnull(strstr(out, "scale_backward is static"));
}

/* A file that is not there counts as empty, and so does one as it is given to the students. */
TEST(nothing_is_there) {
    ck_assert_int_eq(run("--submission $D --only " ALL), 1);
    ck_assert_ptr_nonnull(
        strstr(out, "\n 9 cross_entropy      empty    09_cross_entropy.c is missing\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n0 of 16 are right. Next: 1, "));
    ck_assert_ptr_nonnull(strstr(out, "\n0 passed, 16 failed\n"));
}

/* A file that has the number and the letter of an exercise is meant for that one alone. */
TEST(files_with_another_name) {
    put(path("07B-solution.c"), "");
    ck_assert_int_eq(run("--submission $D --only 7,7b"), 1);
    ck_assert_ptr_nonnull(strstr(
        out,
        " 7 linear             empty    07_linear.c is missing\n7b mean_variance      empty    "
        "07B-solution.c is there; 07b_mean_variance.c is not\n"));
    ck_assert_int_eq(rename(path("07B-solution.c"), path("7 (1).c")), 0);
    ck_assert_int_eq(run("--submission $D --only 7,7b"), 1);
    ck_assert_ptr_nonnull(
        strstr(out, " empty    7 (1).c is there; 07_linear.c is not\n"
                    "7b mean_variance      empty    07b_mean_variance.c is missing\n"));
    put(path("attention.c"), "");
    ck_assert_int_eq(run("--submission $D --only 11"), 1);
    ck_assert_ptr_nonnull(
        strstr(out, " attention.c is there; 11_attention.c is not (the assignment?\n"));
}

/* The students' files compile without a warning: with a body in place of "your code". */
TEST(the_files_of_the_students_compile) {
    for (int i = 0; i < EXERCISES; i++) {
        char line[256];
        snprintf(
            line, sizeof line,
            "sed 's,/. your code ./,if (0) return;,' examples/exercises/students/%s.c >$D/%s.c",
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

/* The two numbers of the mark's first line differ in what is printed. */
TEST(the_worst_numbers_differ_in_print) {
    submit(
        3,
        "#include \"exercises.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { double s = 0; for (int i = 0; i < n; i++) s += y[i] * dy[i];"
        "for (int i = 0; i < n; i++) dx[i] = (float)(y[i] * (dy[i] - s)); }\n");
    mark_folder("--only 4");
    char yours[64], right[64];
    const char *output = json_text(json_at(json_get(tree, "tests"), 0), "output", "");
    ck_assert_int_eq(sscanf(output, "dx[%*d] is %63[^,], should be %63s", yours, right), 2);
    ck_assert_str_ne(yours, right);
    free(tree);
}

/* What is said of a right answer, too; and no 0 is printed with a sign. */
TEST(a_right_answer_is_printed) {
    char mark[128];
    const char *body = answer(9 - 1, 0, mark);
    for (int r = 1; !strstr(mark, "differences of the loss"); r++) body = answer(9 - 1, r, mark);
    submit(9 - 1, body);
    ck_assert_int_eq(run("--submission $D --only 9"), 0);
    ck_assert_ptr_nonnull(strstr(out, "cross_entropy_dx\n  "));
    mark_folder("--only 9");
    ck_assert_ptr_nonnull(strstr(
        json_text(json_at(json_get(tree, "tests"), 0), "output", ""),
        "right: the library's loop is tensor/kernels/plain.inc, cross_entropy_dx\nIt is right to 1"));
    free(tree);
    submit(0, "#include \"exercises.h\"\nvoid scale_backward(int n, double s, double dx[n], const "
              "double dy[n]) { for (int i = 0; i < n; i++) dx[i] = -0. * s * dy[i]; }\n");
    ck_assert_int_eq(run("--submission $D 1"), 1);
    ck_assert_ptr_null(strstr(out, " -0\n"));
    ck_assert_ptr_null(strstr(out, " -0 "));
    ck_assert_ptr_null(strstr(out, "+0,"));
}

/* The output of the only test in results.json. */
static const char *output_of(const char *arguments) {
    mark_folder(arguments);
    return json_text(json_at(json_get(tree, "tests"), 0), "output", "");
}

TEST(what_is_missing) {
    submit(3, "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) {"
              "double dot(int n); dx[0] = dot(n); }\n");
    ck_assert_ptr_nonnull(
        strstr(output_of("--only 4"), "it does not compile: undefined reference to `dot'"));
    free(tree);
    submit(
        0,
        "void scale_backward(int n, double s, double dx[n], const double dy[n]) { dx[0] = s * x[0]; }\n");
    ck_assert_ptr_nonnull(
        strstr(output_of("--only 1"),
               "\nA backward gets only what is in its parentheses; does it need x?\n"));
    free(tree);
}

/* -O0, with which a program is made, does not follow a loop. */
TEST(a_variable_without_a_value) {
    submit(3,
           "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) {\n"
           "double s;\nfor (int i = 0; i < n; i++) s += y[i] * dy[i];\n"
           "for (int i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - s) + 1; }\n");
    const char *output = output_of("--only 4");
    ck_assert_msg(strstr(output, "\nThe compiler warns: 04_softmax.c:"), "%s", output);
    free(tree);
}

/* An error in SHOW is one of the student's line. */
TEST(what_is_shown_wrongly) {
    submit(
        3,
        "#include \"exercises.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { dx[0] = 1;\nSHOW_TABLE(y, n, n); }\n");
    const char *output = output_of("--only 4");
    ck_assert_msg(strncmp(output, "it does not compile: 04_softmax.c:3:", 36) == 0, "%s", output);
    ck_assert_ptr_nonnull(
        strstr(output, "SHOW_TABLE needs a table, double x[n][m], and y is none"));
    free(tree);
}

/* ---- the command line --------------------------------------------------------------------------
 */

PROGRAM_CASE("command line", .seconds = 600)
TEST(command_lines) {
    expect_misuse("--solution");
    ck_assert_ptr_nonnull(strstr(complaints, "there is no --solution"));
    expect_misuse("--only 99");
    expect_misuse("3,99");
    ck_assert_ptr_nonnull(strstr(complaints, "there is no exercise 99: they are 1 to 1"));
    expect_misuse("--only 3,x");
    ck_assert_ptr_nonnull(strstr(complaints, "there is no exercise x: they are 1 to 1"));
    expect_misuse("--only 3,");
    expect_misuse("--only 8b");
    ck_assert_int_eq(run("--submission $D --only 8,7b"), 1);
    ck_assert_ptr_nonnull(strstr(
        out,
        "7b mean_variance      empty    07b_mean_variance.c is missing\n 8 layer_norm         empty"));
    ck_assert_ptr_nonnull(strstr(out, "Next: 7b, "));
    ck_assert_int_eq(run("--submission $D 10b"), 1);
    ck_assert_ptr_nonnull(
        strstr(out, "10b weighted_mean     empty    10b_weighted_mean.c is missing\n"));
    expect_misuse("--only 3 4");
    expect_misuse("0");
    expect_misuse("--seed");
    expect_misuse("--train");
    expect_misuse("--find");
    expect_failure("--json $D/nowhere/results.json", "it cannot be written");
    expect_failure("--submission $D/nowhere", "there is no such folder");
    ck_assert_int_eq(run("--submission $D// --only 4"), 1);
    ck_assert(strstr(out, "Next: 4, ") && !strstr(out, "//"));
}

/* The command that shows the arrays works where it is pasted. */
TEST(the_arrays_can_be_shown) {
    submit(
        3,
        "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) { dx[0] = dy[0]; }\n");
    ck_assert_int_eq(shell("mkdir \"$D/it's a\" && mv $D/04* \"$D/it's a\""), 0);
    run("--submission \"$D/it's a\" --only 4 --seed 9");
    const char *command = strstr(out, "(build/exercises 4 ");
    ck_assert_ptr_nonnull(command);
    char again[512];
    snprintf(again, sizeof again, "%.*s",
             (int)(strstr(command, " shows the arrays)") - command - 17), command + 17);
    ck_assert_int_eq(run(again), 1);
    ck_assert_msg(strstr(out, "\n  dx, yours\n"), "%s: %s", again, out);
}

TEST(a_number_alone_shows_the_arrays) {
    submit(
        3,
        "#include \"exercises.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) {\n"
        "printf(\"here \\033 I am\\n\"); for (int i = 0; i < n; i++) dx[i] = dy[i]; }\n");
    ck_assert_int_eq(run("--submission $D 4 --seed 9"), 1);
    ck_assert_ptr_null(strstr(out, "shows the arrays)")); /* they are there */
    ck_assert_ptr_nonnull(strstr(out, "\n  dx, yours\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n  dx, right\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n    here ? I am\n"));
    ck_assert_ptr_nonnull(strstr(out, "explain.html#2/b3.0"));
    ck_assert_ptr_nonnull(strstr(out, "\n0 passed, 1 failed\n"));
}

/* What is printed belongs to the arrays that are shown: n, the steps of 13, and a crash. */
TEST(what_the_function_prints) {
    submit(
        3,
        "#include \"exercises.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { printf(\"%d %.5g.\\n\", n, dy[0]); dx[0] = n == 2; }\n");
    run("--submission $D 4");
    char shown[64], *dy = strstr(out, "\n  dy\n");
    ck_assert_ptr_nonnull(dy);
    snprintf(shown, sizeof shown, "On this input the function printed:\n    2 %.5g.\n",
             strtod(dy + 6, NULL));
    ck_assert_msg(strstr(out, shown), "%s: %s", shown, out);
    submit(
        12,
        "#include \"exercises.h\"\nvoid sgd_step(int n, double lr, double momentum, double theta[n], "
        "double velocity[n], const double g[n]) { printf(\"%g.\\n\", velocity[0] != 0 ? 1. : 0);"
        "for (int i = 0; i < n; i++) { theta[i] += velocity[i] != 0 ? 1 : -lr * g[i];"
        "velocity[i] = momentum * velocity[i] + g[i]; } }\n");
    run("--submission $D 13");
    ck_assert_msg(strstr(out, "function printed:\n    1.\n"), "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "\n  theta, before the step\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n  velocity, before the step\n"));
    submit(
        3,
        "#include \"exercises.h\"\nvoid softmax_backward(int n, double dx[n], const double y[n], const "
        "double dy[n]) { printf(\"here\\n\"); *(volatile int *)0 = 1; }\n");
    run("--submission $D 4");
    ck_assert_ptr_nonnull(
        strstr(out, "On the input where it stopped the function printed:\n    here\n"));
}

/* Where the rule is explained. The lesson of 4 shows the result, so it is named after an attempt.
 */
TEST(the_lessons) {
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

/* Each exercise names a step that is there, and the index of make demo has the same address. */
LOOP_TEST(each_lesson_is_there, EXERCISES) {
    static char index[1 << 16];
    char line[192], address[64], escaped[96], program_line[128], step[16], mark[128];
    FILE *file = fopen("examples/index.html", "rb");
    ck_assert_ptr_nonnull(file);
    index[fread(index, 1, sizeof index - 1, file)] = '\0';
    fclose(file);
    if (_i == 3) submit(_i, answer(_i, 5, mark)); /* an attempt */
    ck_assert_int_eq(run(format("--submission $D %s", label(_i))), 1);
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

/* A program may compute for a tenth of the time that it is told, and the marker waits for a tenth.
 */
static const char tenth[] =
    "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n"
    "int setrlimit(int what, const unsigned long long *limit) {\n"
    "    enum { CPU };\n"
    "    const int part = what == CPU && *limit >= 10 ? 10 : 1;\n"
    "    const unsigned long long own[] = {*limit / part, limit[1]};\n"
    "    return syscall(SYS_prlimit64, 0, what, own, 0); }\n"
    "int setrlimit64(int what, const unsigned long long *limit) { return setrlimit(what, limit); }\n"
    "time_t time(time_t *at) {\n"
    "    struct timespec t;\n"
    "    (void)at; clock_gettime(CLOCK_REALTIME, &t);\n"
    "    return 10 * t.tv_sec + t.tv_nsec / 100000000; }\n";

PROGRAM_CASE("training", .is_long = true)
/* The one answer that is waited for; in a terminal somebody who waits is told for what. */
TEST(a_loop_without_an_end) {
    const char *before = with_replaced(tenth);
    submit(
        3,
        "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) { for (;;) dx[0] = n; }\n");
    if (has_terminal("what a_loop_without_an_end says in a terminal")) {
        ck_assert_int_eq(run_on_terminal(before, "--submission $D --only 4 --json $D/r 2>&1"), 1);
        ck_assert_ptr_nonnull(strstr(
            out, "4 softmax is still running; it is stopped after 10 seconds of computing ..."));
        ck_assert_ptr_nonnull(strstr(out, "did not return within 10 seconds (n = "));
    } else ck_assert_int_eq(run_line(before, "--submission $D --only 4 --json $D/r"), 1);
    slurp(path("r"), json, sizeof json);
    tree = json_read(json);
    ck_assert_ptr_nonnull(tree);
    check_mark("timeout", json_at(json_get(tree, "tests"), 0));
    free(tree);
}

PROGRAM_CASE("command line", .seconds = 600)
TEST(the_compiler) {
    submit_right_answers();
    ck_assert_int_eq(run_line("CC='cc -O2'", "--submission $D 4"), 0);
    ck_assert_int_eq(run_line("CC=nothing-here", "--submission $D 4"), 1);
    ck_assert_ptr_nonnull(strstr(complaints, "there is no C compiler nothing-here"));
    const char *runner = getenv("RUNNER");
    if (runner && *runner) return; /* valgrind needs a TMPDIR, too */
    ck_assert_int_eq(run_line("TMPDIR=$D/nowhere", "--submission $D 4"), 1);
    ck_assert_ptr_nonnull(strstr(complaints, "TMPDIR"));
}

/* Where there is a static C library a program is linked with started.o: harness.o alone has little
 * in it, and all that it needs is looked for each time. */
TEST(the_linker_has_little_to_do) {
    submit_right_answers();
    if (shell("echo 'int main(void) { return 0; }' | cc -static -xc - -o $D/empty") != 0) return;
    put(path("slow"), "#!/bin/sh\ncase \"$*\" in *program.exe*/harness.o*) exit 1; esac\n"
                      "exec cc \"$@\"\n");
    ck_assert_int_eq(shell("chmod 755 $D $D/slow"), 0);
    ck_assert_int_eq(run_line("CC=$D/slow", "--submission $D 4"), 0);
}

/* Folders with spaces and quotes, and one that looks like a flag; no file is left behind. (clang 23
 * writes nothing in a folder that its user, nobody, cannot reach by its whole name.) */
TEST(odd_folders) {
    submit_right_answers();
    ck_assert_int_eq(
        shell(
            "chmod 755 $D && mkdir \"$D/a 'folder\" \"$D/tmp\" && cp $D/04_softmax.c \"$D/a 'folder/\""),
        0);
    ck_assert_int_eq(run_line("TMPDIR=$D/tmp", "--submission \"$D/a 'folder\" 4"), 0);
    ck_assert_int_eq(shell("[ -z \"$(ls -A $D/tmp)\" ]"), 0);
}

/* ---- a class ------------------------------------------------------------------------------------
 */

static void submit_for(const char *student, int exercise, const char *body) {
    ck_assert_int_eq(shell(format("mkdir -p \"$D/class/%s\"", student)), 0);
    put(format("%s/class/%s/%s.c", folder, student, name[exercise]), body);
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

TEST(a_class) {
    static const char table[] = "student,03_product,04_softmax,points,of,mistake,stage\n"
                                "\"Ada, A\",right,right,2,2,,\n"
                                "\"bob\",empty,wrong,0,2,04_softmax: no_sum,\n"
                                "\"eve\",empty,wrong,0,2,04_softmax: no_sum,\n";
    static const char rest[] =
        "\nbob: 1 of 2 is missing: 3\n"
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
    ck_assert_int_eq(strncmp(out, "Ada, A: 2 points of 2\nbob: 0 points of 2\n", 41), 0);
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

/* A name is no formula of a spreadsheet and no command for a terminal; a link is no student, and
 * somebody else's file is nobody's answer. */
TEST(a_class_of_strange_names) {
    char mark[128], csv[1024];
    submit_for("=1+1", 3, answer(3, 0, mark));
    submit_for("b\033[2Jo\302\233b\t\303\251", 3, answer(3, 5, mark));
    ck_assert_int_eq(
        shell(
            "cd $D/class && ln -s =1+1 zoe && mkdir -- -x @y && printf x >\"@y/04_softmax\033.c\" "
            "&& ln -s ../=1+1/04_softmax.c ./-x"),
        0);
    ck_assert_int_eq(run("--class $D/class --only 4 --csv $D/marks.csv"), 0);
    slurp(path("marks.csv"), csv, sizeof csv);
    ck_assert_str_eq(csv, "student,04_softmax,points,of,mistake,stage\n"
                          "\"'-x\",no-compile,0,1,,\n"
                          "\"'=1+1\",right,1,1,,\n"
                          "\"'@y\",empty,0,1,,\n"
                          "\"b?[2Jo??b?\303\251\",wrong,0,1,04_softmax: no_sum,\n");
    ck_assert_ptr_nonnull(strstr(out, "b?[2Jo??b?\303\251: 0 points of 1\n"));
    ck_assert_ptr_nonnull(strstr(out, "@y: 04_softmax?.c is there; 04_softmax.c is not\n"));
    ck_assert_ptr_null(strchr(out, '\033'));
    ck_assert_str_eq(complaints, "exercises: zoe is a link, and no student's folder\n");
}

/* All files in one folder, with the student's name before theirs. attention.c is no 11_attention.c.
 */
TEST(a_class_in_one_folder) {
    char mark[128];
    submit_for("x", 3, answer(3, 0, mark));
    submit_for("x", 2, answer(2, 0, mark));
    ck_assert_int_eq(shell("cd $D/class && mv x/04_softmax.c ada_17_04_softmax.c && cp "
                           "ada_17_04_softmax.c bob_11_attention.c && mv x/03_product.c "
                           "ada_17_03_product.c && rmdir x && echo >notes.txt"),
                     0);
    ck_assert_int_eq(run("--class $D/class --only 3,4,11"), 0);
    ck_assert_msg(
        strstr(out, "\n\"ada_17\",right,right,empty,2,3,,\n\"bob\",empty,empty,no-compile,0,3,,\n"),
        "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "\nada_17: 1 of 3 is missing: 11\n"
                                      "bob: 2 of 3 are missing: 3, 4\n"));
    run("--class $D/class --only attention");
    ck_assert_msg(strstr(out, "bob: 1 of 1 is missing: attention\n"), "%s", out);
    ck_assert_int_eq(shell("cd $D/class && mv ada_17_03_product.c ada_17_product.c"), 0);
    run("--class $D/class --only 3,4");
    ck_assert_msg(
        strstr(out, "ada_17_product.c: which exercise is it? Files are called ada_04_softmax.c\n"),
        "%s", out);
}

/* A file of a folder in the folder is named, and of a name with a student's before it. */
TEST(files_that_are_elsewhere) {
    ck_assert_int_eq(shell("mkdir $D/work && touch $D/work/04_softmax.c $D/ada_03_product.c"), 0);
    ck_assert_int_eq(run("--submission $D --only 3,4"), 1);
    ck_assert_ptr_nonnull(strstr(out, "ada_03_product.c is there; 03_product.c is not\n"));
    ck_assert_ptr_nonnull(strstr(out, "work/04_softmax.c is there; 04_softmax.c is not\n"));
}

/* A file alone is marked, by its name or one that means it; of its folder nothing else is. */
TEST(a_file_alone) {
    char mark[128];
    submit(3, answer(3, 0, mark));
    ck_assert_int_eq(run("$D/04_softmax.c"), 0);
    ck_assert_ptr_nonnull(strstr(out, "\n1 of 1 is right.\n"));
    ck_assert_int_eq(rename(path("04_softmax.c"), path("Softmax (2).c")), 0);
    ck_assert_int_eq(run("\"$D/Softmax (2).c\""), 0);
    ck_assert_int_eq(run("$D/03_product.c"), 1);
    ck_assert_ptr_nonnull(strstr(out, "empty    03_product.c is missing\n"));
    expect_misuses("$D/unknown.c", "$D/04_softmax.c 3", "$D/04_softmax.c --only 3");
}

/* An attention.c beside the others has no part in their programs. */
TEST(both_in_one_folder) {
    char mark[128];
    submit(3, answer(3, 0, mark));
    ck_assert_int_eq(shell("sed 's,^void clear(void) {,& int i = 1; i++;,' "
                           "examples/exercises/students/attention.c >$D/attention.c"),
                     0);
    ck_assert_int_eq(run("--submission $D --only 4,6.1"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\n1 of 2 is right"));
    ck_assert_int_eq(shell("rm $D/attention.c && mkfifo $D/attention.c"), 0);
    ck_assert_int_eq(run("--submission $D"), 1);
    ck_assert_ptr_nonnull(strstr(out, "attention.c is a pipe, and not a file"));
}

TEST(marks_as_a_table_and_without_numbers) {
    submit(3, "void softmax_backward(int n, double dx[n], const double y[n], const double dy[n]) "
              "{ for (int i = 0; i < n; i++) dx[i] = y[i] * dy[i]; }\n");
    ck_assert_int_eq(run("--submission $D --only 3,4 --github"), 1);
    ck_assert_msg(strncmp(out, "### 0 of 2 right, 0 of 2 points\n\n| | mark |", 43) == 0, "%s",
                  out);
    ck_assert_ptr_nonnull(
        strstr(out, "\n| 3 product | empty |  | 03&#95;product.c is missing |\n"));
    ck_assert_ptr_nonnull(strstr(out, "\n| 4 softmax | wrong |  | dx&#91;"));
    ck_assert_int_eq(run("--submission $D 4 --no-numbers"), 1);
    ck_assert_ptr_null(strstr(out, "should be"));
    ck_assert_ptr_null(strstr(out, "dx, right"));
    ck_assert_ptr_nonnull(strstr(out, "your code computes this: y * dy"));
}

/* What is saved is marked again, and a file that is not changed is not. */
TEST(watching) {
    char mark[128];
    submit(2, answer(2, 0, mark));
    submit(3, "");
    put(path("right.c"), answer(3, 0, mark));
    ck_assert_int_eq(
        shell("(\"${BUILD:-build}/exercises\" --submission $D --only 3,4 --watch >$D/out & "
              "watcher=$!; until grep -q watched $D/out; do sleep .1; done; sleep .5; "
              "cp $D/right.c $D/04_softmax.c; n=0; until grep -q passed $D/out || "
              "[ $n -gt 300 ]; do sleep .1; n=$((n + 1)); done; kill -INT $watcher; "
              "wait $watcher || true)"),
        0);
    slurp(path("out"), json, sizeof json);
    ck_assert_ptr_nonnull(strstr(json, "\n1 of 1 is right.\n"));
    ck_assert_ptr_nonnull(strstr(json, " 4 softmax            right "));
    expect_misuse("--watch --json $D/r.json");
}

/* An id can have two rows, which compute different things: each student's is counted as its own. */
TEST(a_class_with_two_mistakes_of_one_id) {
    static const char *const students[] = {"ada", "bob"};
    char mark[128];
    const char *body = answer(11, 0, mark);
    for (int r = 1, n = 0; body && n < COUNT(students); body = answer(11, r++, mark))
        if (strstr(mark, "dx_overwritten")) submit_for(students[n++], 11, body);
    ck_assert_int_eq(run("--class $D/class --only 12 --seed 5"), 0);
    ck_assert_int_eq(occurrences(out, "  1 student, 12_self_attention: dx_overwritten\n"), 2);
    ck_assert_int_eq(occurrences(out, "dx = dV wv"), 1);
}

int main(void) {
    program = "exercises";
    return run_tests("exercises");
}
