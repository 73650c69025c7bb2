/* check.c - Check for WebAssembly: see check.h. The environment variable SKIP has the names of
 * tests that do not run, between spaces; name[3] is a loop test with _i = 3. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASES = 32, TESTS = 512, FIXTURES = 2 };

/* As in Check, the teardown of the fixture that was added last runs first. */
struct TCase {
    const char *name;
    void (*setup[FIXTURES])(void);
    void (*teardown[FIXTURES])(void);
    int fixtures;
};

struct Suite {
    const char *name;
};

static TCase cases[CASES];
static int num_cases;
static struct {
    const TCase *tcase;
    const TTest *test;
    int start, end;
} added[TESTS];
static int num_added;
static const char *running = "no test yet";
static int running_i;

void ck_fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    printf("%s:%d: %s[%d]: ", file, line, running, running_i);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    exit(1);
}

int ck_same(const char *x, const char *y) { return x && y ? strcmp(x, y) == 0 : x == y; }

Suite *suite_create(const char *name) {
    static Suite suite;
    suite.name = name;
    return &suite;
}

void suite_add_tcase(Suite *suite, TCase *tcase) {
    (void)suite;
    (void)tcase;
}

TCase *tcase_create(const char *name) {
    ck_assert(num_cases < CASES);
    cases[num_cases].name = name;
    return &cases[num_cases++];
}

void tcase_add_checked_fixture(TCase *tcase, void (*setup)(void), void (*teardown)(void)) {
    ck_assert_msg(tcase->fixtures < FIXTURES, "%s has too many fixtures", tcase->name);
    tcase->setup[tcase->fixtures] = setup;
    tcase->teardown[tcase->fixtures++] = teardown;
}

void tcase_set_tags(TCase *tcase, const char *tags) {
    (void)tcase;
    (void)tags;
}

void tcase_set_timeout(TCase *tcase, double seconds) {
    (void)tcase;
    (void)seconds;
}

/* Is the test, or its run with this _i, in SKIP? */
static int is_skipped(const char *name, int i) {
    const char *list = getenv("SKIP");
    char all[128], one[128];
    snprintf(all, sizeof all, " %s ", name);
    snprintf(one, sizeof one, " %s[%d] ", name, i);
    return list && (strstr(list, all) || strstr(list, one));
}

void tcase_add_loop_test(TCase *tcase, const TTest *test, int start, int end) {
    ck_assert(num_added < TESTS);
    added[num_added].tcase = tcase;
    added[num_added].test = test;
    added[num_added].start = start;
    added[num_added++].end = end;
}

SRunner *srunner_create(Suite *suite) { return (SRunner *)suite; }

static int run_once(const TCase *tcase, const TTest *test, int i) {
    if (is_skipped(test->name, i)) return 0;
    running = test->name;
    running_i = i;
    for (int f = 0; f < tcase->fixtures; f++)
        if (tcase->setup[f]) tcase->setup[f]();
    test->run(i);
    for (int f = tcase->fixtures - 1; f >= 0; f--)
        if (tcase->teardown[f]) tcase->teardown[f]();
    return 1;
}

void srunner_run_all(SRunner *runner, enum print_output mode) {
    int checks = 0;
    (void)mode;
    printf("Running suite(s): %s\n", ((Suite *)runner)->name);
    for (int n = 0; n < num_added; n++)
        for (int i = added[n].start; i < added[n].end; i++)
            checks += run_once(added[n].tcase, added[n].test, i);
    printf("100%%: Checks: %d, Failures: 0, Errors: 0\n", checks);
}

int srunner_ntests_failed(SRunner *runner) {
    (void)runner;
    return 0; /* ck_fail does not return */
}

/* Ends the program, whose tests have all passed: see run. */
void srunner_free(SRunner *runner) {
    (void)runner;
    exit(0);
}
