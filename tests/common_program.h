/* common_program.h - a program run as a person runs it: by the shell, in a temporary folder. What
 * it printed and its exit status are what a suite looks at.
 *
 *     program = "kernel_regression";
 *     ck_assert_int_eq(run("--data examples/data/cars.csv --plot $D/cars.svg"), 0);
 *     ck_assert_double_gt(printed("w"), 0);
 *     ck_assert_int_eq(files_in_folder(), 1);
 *
 * Suites run from the root of the repository. BUILD names the folder of the programs, RUNNER may
 * hold a command to run them with, as valgrind. */
#ifndef TESTS_COMMON_PROGRAM_H
#define TESTS_COMMON_PROGRAM_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

enum { PRINTED_SIZE = 1 << 16 };

extern const char *program;           /* whose turn it is: the name of a file in BUILD */
extern char folder[];                 /* of this test; $D in every line for the shell */
extern char out[PRINTED_SIZE];        /* what the last run printed */
extern char complaints[PRINTED_SIZE]; /* on stderr */

/* A case whose tests have a new folder each. */
TCase *add_program_case(Suite *suite, const char *name);

/* ---- running it ---------------------------------------------------------------------------- */

/* The exit status of the program. The arguments are the shell's to read: they may redirect. */
int run(const char *arguments);
/* The same for a whole line: before, the program, after. */
int run_line(const char *before, const char *after);
/* The exit status of any line. */
int shell(const char *line);

/* Do the programs run on fast kernels? Last digits of what they train are compared only then. */
bool has_fast_kernels(void);

/* Is there a /dev/full, which takes nothing that is written? On macOS there is not. */
bool has_full_disk(void);

/* As run, with a pipe whose reader has gone as its standard output: `| head -1`. */
int run_without_reader(const char *arguments);

/* Runs the program with a pseudo-terminal as its standard output, and with "2>&1" among the
 * arguments as its stderr, too; all that came is in out. The environment is as for env(1):
 * "TERM=xterm LANG=C.UTF-8". */
int run_on_terminal(const char *environment, const char *arguments);

/* Interrupts the program, as Ctrl-C would, when it has printed its first line on stderr, where it
 * finds room for 120 letters until it has seen the signal: so it can be neither too early nor too
 * late, however slow the machine. */
int run_interrupted(const char *arguments);

/* The program must not understand this: exit status 2, one sentence that names --help. */
void expect_misuse(const char *arguments);
/* The program must fail like this: exit status 1, and one sentence, with this in it. */
void expect_failure(const char *arguments, const char *part);

/* ---- what it printed and wrote ------------------------------------------------------------- */

/* The number after a label of at most 20 letters at the beginning of a line of out; NaN without. */
double printed(const char *label);

const char *path(const char *name); /* of a file in the folder; lasts for three more calls */
int files_in_folder(void);
void slurp(const char *file, char *text, size_t size); /* "" if there is no such file */
void put(const char *file, const char *text);

#endif
