/* test_notebook.c - does build/notebook still print what the notebook printed?
 *
 * golden/notebook.txt is its whole output, which was held against the seed's printed cells and
 * against generate_notebook.py, the same cells run by PyTorch. Here it must come out again, to the
 * byte. Beside that: --help, a flag that there is not, an output that cannot be written.
 *
 * Run from the root of the repository; BUILD names the folder that holds the program. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "common.h"

/* The program's command line, with what the shell is to add. */
static const char *command(const char *more) {
    static char line[512];
    const char *build = getenv("BUILD");
    snprintf(line, sizeof line, "'%s/notebook' %s", build ? build : "build", more);
    return line;
}

static int exit_status(int status) {
    ck_assert_msg(WIFEXITED(status), "the program did not exit by itself");
    return WEXITSTATUS(status);
}

START_TEST(the_whole_output) {
    FILE *printed = popen(command(""), "r"), *expected = fopen("tests/golden/notebook.txt", "r");
    ck_assert_msg(printed && expected, "run me from the root of the repository");
    char line[256], expected_line[256];
    int number = 0;
    while (fgets(expected_line, sizeof expected_line, expected)) {
        number++;
        ck_assert_msg(fgets(line, sizeof line, printed) != NULL, "it ends before line %d", number);
        ck_assert_msg(!strcmp(line, expected_line), "line %d is\n%sand should be\n%s", number, line,
                      expected_line);
    }
    ck_assert_msg(!fgets(line, sizeof line, printed), "it goes on after line %d: %s", number, line);
    ck_assert_int_gt(number, 500);
    fclose(expected);
    ck_assert_int_eq(exit_status(pclose(printed)), 0);
}
END_TEST

START_TEST(flags) {
    ck_assert_int_eq(exit_status(system(command("--help >/dev/null"))), 0);
    ck_assert_int_eq(exit_status(system(command("--epochs 9 >/dev/null 2>&1"))), 2);
    ck_assert_int_eq(exit_status(system(command("again >/dev/null 2>&1"))), 2);
}
END_TEST

START_TEST(an_output_that_cannot_be_written) {
    FILE *full = fopen("/dev/full", "w");
    if (!full) return;
    fclose(full);
    ck_assert_int_eq(exit_status(system(command(">/dev/full 2>/dev/null"))), 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("notebook");
    TCase *tcase = tcase_create("notebook");
    tcase_add_test(tcase, the_whole_output);
    tcase_add_test(tcase, flags);
    tcase_add_test(tcase, an_output_that_cannot_be_written);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
