/* common_program.h - runs a program as a person does: in the shell, in a temporary folder. The
 * suites check its output and its exit status.
 *
 *     program = "kernel_regression";
 *     ck_assert_int_eq(run("--data examples/data/cars.csv --plot $D/cars.svg"), 0);
 *     ck_assert_double_gt(printed("w"), 0);
 *     ck_assert_int_eq(files_in_folder(), 1);
 *
 * Suites run from the root of the repository. BUILD names the folder of the programs, RUNNER may
 * hold a command that runs them, valgrind for example. */
#ifndef TESTS_COMMON_PROGRAM_H
#define TESTS_COMMON_PROGRAM_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

enum { PRINTED_SIZE = 1 << 16 };

extern const char *program;           /* the program to run: the name of a file in BUILD */
extern char folder[];                 /* the folder of this test; $D in every shell line */
extern char out[PRINTED_SIZE];        /* what the last run printed */
extern char complaints[PRINTED_SIZE]; /* what the last run printed on stderr */

/* Adds a case. Each of its tests gets a new folder. */
TCase *add_program_case(Suite *suite, const char *name);
#define PROGRAM_CASE(...) CASE(__VA_ARGS__, .make = add_program_case)

/* ---- running it ---------------------------------------------------------------------------- */

/* Runs the program and returns its exit status. The shell reads the arguments, so they may
 * redirect. */
int run(const char *arguments);
/* The same for the shell line "before program after"; $B is the folder of the program. */
int run_line(const char *before, const char *after);
/* For run_line: no file grows beyond 1 KB. A program that counts its lines for gcov would leave
 * half a file of counts, so it counts nowhere. */
#define SMALL_FILES "ulimit -f 2; export GCOV_PREFIX=/dev/null;"
/* Compiles code whose functions replace those of the C library, and returns the `before` that
 * run_line and run_on_terminal need for that; "" where it is not Linux. */
const char *with_replaced(const char *code);
/* Runs any shell line and returns its exit status. */
int shell(const char *line);

/* Do the programs run on fast kernels? The tests compare the last digits of a training only then.
 */
bool has_fast_kernels(void);

/* Is there a /dev/full, to which every write fails? macOS has none. */
bool has_full_disk(void);

/* As run, but standard output is a pipe whose reader has ended, as with `| head -1`. */
int run_without_reader(const char *arguments);

/* Is there a pseudo-terminal? A container may have none, and Linux without a /dev/pts: then the
 * line that this prints names the test, which is left out. */
bool has_terminal(const char *test);
/* Opens a pseudo-terminal: both its ends, or -1. */
int open_terminal(int *slave);

/* Runs the program with a pseudo-terminal as standard output; with "2>&1" among the arguments also
 * as stderr. All output is in out. environment: variables as for env(1), "TERM=xterm LANG=C.UTF-8".
 */
int run_on_terminal(const char *environment, const char *arguments);

/* Interrupts the program, as Ctrl-C does, after its first line on stderr. Until it has seen the
 * signal, stderr takes only 120 letters, so the program cannot end before the signal comes,
 * however slow the machine is. */
int run_interrupted(const char *arguments);

/* The program must reject these arguments: exit status 2, and one error message that names --help.
 */
void expect_misuse(const char *arguments);
#define expect_misuses(...) expect_each_misuse((const char *const[]){__VA_ARGS__, NULL})
void expect_each_misuse(const char *const *arguments);
/* The program must fail: exit status 1, and one error message that contains part. */
void expect_failure(const char *arguments, const char *part);

/* ---- what it printed and wrote ------------------------------------------------------------- */

/* The number after a label of at most 20 letters at the beginning of a line of out; NaN if there is
 * no such label. */
double printed(const char *label);
/* The number behind a text, which stands anywhere in out. */
double number_after(const char *text);
/* A copy of out, until the next call. */
const char *copy_of_output(void);

const char *path(const char *name); /* of a file in the folder; valid for three more calls */
int files_in_folder(void);
void slurp(const char *file, char *text, size_t size); /* "" if there is no such file */
void put(const char *file, const char *text);
void expect_file(const char *name, const char *text); /* of the folder: it must have this text */

#endif
