/* check.h - for WebAssembly: the functions and macros of Check that the suites use. Check itself
 * runs each test in a process of its own, and leaves a failed test by longjmp; WebAssembly has
 * neither. So all tests run in one process, and the first failure ends the process. */
#ifndef TESTS_LIVE_CHECK_H
#define TESTS_LIVE_CHECK_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct Suite Suite;
typedef struct TCase TCase;
typedef struct SRunner SRunner;
typedef struct {
    const char *name;
    void (*run)(int _i);
    const char *file;
    int line;
} TTest;

enum print_output { CK_ENV };

/* There is one suite, which is never freed. It is the runner, too. */
Suite *suite_create(const char *name);
void suite_add_tcase(Suite *suite, TCase *tcase);
TCase *tcase_create(const char *name);
void tcase_add_checked_fixture(TCase *tcase, void (*setup)(void), void (*teardown)(void));
void tcase_set_tags(TCase *tcase, const char *tags);
void tcase_set_timeout(TCase *tcase, double seconds);
/* Runs the test with _i from start to end - 1 when the suite runs. */
void tcase_add_loop_test(TCase *tcase, const TTest *test, int start, int end);
#define tcase_add_test(tcase, test) tcase_add_loop_test(tcase, test, 0, 1)
SRunner *srunner_create(Suite *suite);
void srunner_run_all(SRunner *runner, enum print_output mode);
int srunner_ntests_failed(SRunner *runner);
void srunner_free(SRunner *runner);

#define START_TEST(test)                                                                           \
    static void test##_run(int _i);                                                                \
    static const TTest test##_named = {#test, test##_run, __FILE__, __LINE__};                     \
    static const TTest *const test = &test##_named;                                                \
    static void test##_run(int _i __attribute__((unused)))
#define END_TEST

/* Prints the message and ends the program. */
__attribute__((noreturn, format(printf, 3, 4))) void ck_fail(const char *file, int line,
                                                             const char *format, ...);

#define ck_abort_msg(...) ck_fail(__FILE__, __LINE__, __VA_ARGS__)
#define ck_assert_msg(condition, ...)                                                              \
    ((condition) ? (void)0 : ck_fail(__FILE__, __LINE__, __VA_ARGS__))
#define ck_assert(condition) ck_assert_msg(condition, "failed: %s", #condition)

#define CK_COMPARE(type, format, x, op, y)                                                         \
    do {                                                                                           \
        const type ck_x = (x);                                                                     \
        const type ck_y = (y);                                                                     \
        ck_assert_msg(ck_x op ck_y, "failed: %s: " format ", " format, #x " " #op " " #y, ck_x,    \
                      ck_y);                                                                       \
    } while (0)
#define ck_assert_int_eq(x, y)    CK_COMPARE(intmax_t, "%jd", x, ==, y)
#define ck_assert_int_ne(x, y)    CK_COMPARE(intmax_t, "%jd", x, !=, y)
#define ck_assert_int_lt(x, y)    CK_COMPARE(intmax_t, "%jd", x, <, y)
#define ck_assert_int_le(x, y)    CK_COMPARE(intmax_t, "%jd", x, <=, y)
#define ck_assert_int_gt(x, y)    CK_COMPARE(intmax_t, "%jd", x, >, y)
#define ck_assert_int_ge(x, y)    CK_COMPARE(intmax_t, "%jd", x, >=, y)
#define ck_assert_uint_eq(x, y)   CK_COMPARE(uintmax_t, "%ju", x, ==, y)
#define ck_assert_uint_lt(x, y)   CK_COMPARE(uintmax_t, "%ju", x, <, y)
#define ck_assert_uint_le(x, y)   CK_COMPARE(uintmax_t, "%ju", x, <=, y)
#define ck_assert_uint_gt(x, y)   CK_COMPARE(uintmax_t, "%ju", x, >, y)
#define ck_assert_uint_ge(x, y)   CK_COMPARE(uintmax_t, "%ju", x, >=, y)
#define ck_assert_double_eq(x, y) CK_COMPARE(double, "%.17g", x, ==, y)
#define ck_assert_double_ne(x, y) CK_COMPARE(double, "%.17g", x, !=, y)
#define ck_assert_double_lt(x, y) CK_COMPARE(double, "%.17g", x, <, y)
#define ck_assert_double_le(x, y) CK_COMPARE(double, "%.17g", x, <=, y)
#define ck_assert_double_gt(x, y) CK_COMPARE(double, "%.17g", x, >, y)
#define ck_assert_double_ge(x, y) CK_COMPARE(double, "%.17g", x, >=, y)
#define ck_assert_double_eq_tol(x, y, tolerance)                                                   \
    CK_COMPARE(double, "%.17g", fabs((double)(x) - (double)(y)), <, tolerance)
#define ck_assert_double_nan(x) ck_assert(isnan(x))
#define ck_assert_ptr_eq(x, y)                                                                     \
    CK_COMPARE(void *, "%p", (void *)(uintptr_t)(x), ==, (void *)(uintptr_t)(y))
#define ck_assert_ptr_ne(x, y)                                                                     \
    CK_COMPARE(void *, "%p", (void *)(uintptr_t)(x), !=, (void *)(uintptr_t)(y))
#define ck_assert_ptr_null(x)     ck_assert_ptr_eq(x, NULL)
#define ck_assert_ptr_nonnull(x)  ck_assert_ptr_ne(x, NULL)
#define ck_assert_mem_eq(x, y, n) ck_assert(memcmp(x, y, n) == 0)

/* Are two strings the same? Each may be NULL. */
int ck_same(const char *x, const char *y);
#define CK_STRINGS(same, x, y)                                                                     \
    do {                                                                                           \
        const char *ck_x = (x);                                                                    \
        const char *ck_y = (y);                                                                    \
        ck_assert_msg(ck_same(ck_x, ck_y) == (same), "failed: %s and %s: \"%s\", \"%s\"", #x, #y,  \
                      ck_x ? ck_x : "(null)", ck_y ? ck_y : "(null)");                             \
    } while (0)
#define ck_assert_str_eq(x, y)  CK_STRINGS(1, x, y)
#define ck_assert_str_ne(x, y)  CK_STRINGS(0, x, y)
#define ck_assert_pstr_eq(x, y) CK_STRINGS(1, x, y)

#endif
