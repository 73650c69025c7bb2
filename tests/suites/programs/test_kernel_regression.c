/* test_kernel_regression.c - does build/kernel_regression find the widths that a dense scan finds,
 * and does it report errors in its input? test_programs.c tests its flags and what it writes.
 *
 * The shell runs the program, see common_program.h. The numbers are in
 * golden/kernel_regression.txt; golden/generate_kernel_regression.py computed them without
 * gradients.
 */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../examples/common/colours.h"
#include "../../../examples/common/output.c"
#include "../common.h"
#include "../common_program.h"

static void assert_near(double value, double expected, double relative) {
    ck_assert_msg(fabs(value - expected) <= relative * fabs(expected), "%.9g is not %.9g", value,
                  expected);
}

/* ---- the numbers ------------------------------------------------------------------------- */

/* Compares the six digits that the program prints, and points 0, 50, ... 200 of the 201 points of
 * the curve. */
static void check_golden(const char *name, double w0, double w, double rmse, const double *curve) {
    char csv[1 << 14], *line = csv;
    const bool is_default = strcmp(name, "notebook") == 0;
    const char *data = is_default ? "" : format("--data examples/data/%s.csv", name);
    const char *start = w0 > 0 ? format("--w0 %g", w0) : "";
    ck_assert_int_eq(run(format("--predict $D/curve.csv %s %s", data, start)), 0);
    ck_assert_str_eq(complaints, "");
    assert_near(printed("w"), w, 5e-6);
    assert_near(printed("bandwidth"), 1 / w, 5e-6);
    assert_near(printed("leave-one-out rmse"), rmse, 5e-6);
    slurp(path("curve.csv"), csv, sizeof csv);
    for (int i = -1; i <= 200; i++, line = strchr(line, '\n') + 1) {
        if (i >= 0 && i % 50 == 0) assert_near(atof(strchr(line, ',') + 1), curve[i / 50], 1e-5);
    }
    ck_assert_str_eq(line, "");
}

PROGRAM_CASE("long", .is_long = true)
TEST(finds_the_global_minimum) {
    static const char *golden = "tests/golden/kernel_regression.txt";
    char name[32];
    double w0, w, rmse, curve[5];
    int lines = 0;
    FILE *file = fopen(golden, "r");
    ck_assert_ptr_nonnull(file);
    while (fscanf(file, "%31s %lf %lf %lf %lf %lf %lf %lf %lf", name, &w0, &w, &rmse, &curve[0],
                  &curve[1], &curve[2], &curve[3], &curve[4]) == 9) {
        check_golden(name, w0, w, rmse, curve);
        lines++;
    }
    fclose(file);
    ck_assert_int_eq(lines, 5);
}

PROGRAM_CASE("program")
/* The loss falls from epoch to epoch, and the last epoch has a slope of 0. */
TEST(prints_the_loss_as_it_goes) {
    ck_assert_int_eq(run("--data examples/data/cars.csv --epochs 5 --lr 0.5 --w0 0.2"), 0);
    double first = atof(strstr(out, "loss") + 4);
    ck_assert_ptr_nonnull(strstr(out, "epoch    1  loss "));
    ck_assert_ptr_nonnull(strstr(out, "epoch    5  loss "));
    ck_assert_ptr_null(strstr(out, "the slope is 0"));
    ck_assert_double_lt(atof(strstr(strstr(out, "epoch    5"), "loss") + 4), first);
    ck_assert_int_eq(run("--data examples/data/cars.csv"), 0);
    ck_assert_ptr_nonnull(strstr(out, "the slope is 0\nw        "));
    ck_assert_int_eq(run("--data examples/data/cars.csv --epochs 0 --w0 0.5"), 0);
    assert_near(printed("w"), 0.5, 1e-6);
}

static bool promised(const char *line) {
    const char *end = format("\n%s\n", line);
    return strlen(out) > strlen(end) && strcmp(out + strlen(out) - strlen(end), end) == 0;
}

/* The last lines say whether the slope is 0 (unless --epochs ended the descent) and whether the
 * loss fell, if it changed. The exit status says the same. */
TEST(keeps_its_promises) {
    ck_assert_int_eq(run("--data examples/data/cars.csv"), 0);
    ck_assert(promised("expect  slope / loss  0.0000 < 1e-09  PASS\n"
                       "expect  loss fell by percent  0.0623 >= 0  PASS"));
    ck_assert_int_eq(run("--data examples/data/cars.csv --epochs 5"), 0);
    ck_assert(promised("expect  loss fell by percent  0.0616 >= 0  PASS"));
    ck_assert_ptr_null(strstr(out, "slope"));
    ck_assert_int_eq(run("--lr 1e-5 --w0 5"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\nexpect  slope / loss  0.1678 < 1e-09  FAIL\n"));
    ck_assert_int_eq(run("--lr 10 --momentum 0 --epochs 1"), 1);
    ck_assert(promised("expect  loss fell by percent  -2.7692 >= 0  FAIL"));
    ck_assert_str_eq(complaints, "");
    /* Neither no step nor one that is too small to be seen says anything. */
    ck_assert_int_eq(run("--epochs 0"), 0);
    ck_assert_ptr_null(strstr(out, "expect"));
    ck_assert_int_eq(run("--epochs 1 --lr 1e-9"), 0);
    ck_assert(strstr(out, "epoch    1  loss ") && !strstr(out, "expect"));
}

/* A row per epoch. */
TEST(logs_the_epochs) {
    ck_assert_int_eq(run("--data examples/data/cars.csv --log $D/log.csv --epochs 3"), 0);
    slurp(path("log.csv"), out, sizeof out);
    ck_assert_int_eq(strncmp(out, "step,loss\n1,0.382", 17), 0);
    ck_assert_int_eq(shell("test $(wc -l <$D/log.csv) = 4"), 0);
    ck_assert_int_eq(files_in_folder(), 1);
}

/* The Old Faithful data in another form: rows in reverse order, x in units of 1e-12, y in units of
 * 1e9 and shifted, columns exchanged with a third one between them, semicolons, quotes, a byte
 * order mark, Windows line ends.
 */
TEST(any_units_and_any_file) {
    ck_assert_int_eq(
        shell("{ printf '\\357\\273\\277\"waiting, in \"\"us\"\"\";note;x\\r\\n';"
              " tail -n +2 examples/data/faithful.csv | tac |"
              " awk -F, '{printf \"\\\"%.12g\\\"; abc ;%.12ge12\\r\\n\", $2*1e-9 + 5, $1}';"
              " printf '\\r\\n\\r\\n'; } >$D/data.csv"),
        0);
    ck_assert_int_eq(run("--data $D/data.csv --x x --y 1 --predict $D/curve.csv"), 0);
    assert_near(printed("w"), 3.8254527e-12, 5e-6);
    assert_near(printed("leave-one-out rmse"), 5.6829622e-9, 1e-5);
    slurp(path("curve.csv"), out, sizeof out);
    *(strchr(out, '\n') + 1) = '\0';
    ck_assert_str_eq(out, "x,\"waiting, in \"\"us\"\"\"\n");
}

/* Columns of spaces, as R and Fortran write them, with spaces before and behind. */
TEST(cells_between_spaces) {
    ck_assert_int_eq(run("--data examples/data/faithful.csv"), 0);
    const char *with_commas = copy_of_output();
    ck_assert_int_eq(
        shell("sed 's/,/    /; s/^/ /; s/$/  /' examples/data/faithful.csv >$D/data.csv"), 0);
    ck_assert_msg(run("--data $D/data.csv") == 0, "%s", complaints);
    ck_assert_str_eq(out, with_commas);
    put(path("data.csv"), "\"a b\" c\n1 2\n\n  \n\"3\"   4 \n5 6");
    ck_assert_msg(run("--data $D/data.csv --x 'a b' --y c") == 0, "%s", complaints);
    put(path("data.csv"), "1 2\n3 4 5\n");
    expect_failure("--data $D/data.csv", ":2: the line has 3 cells where the first has 2\n");
}

/* The program gives an answer for few points, equal points, outliers, a constant y, and data
 * without noise. */
TEST(odd_data) {
    static const char *const data[] = {
        "1,1\n2,5\n9,4\n",             /* three points */
        "1,1\n1,2\n1,3\n2,5\n2,6\n",   /* two places */
        "1,5\n2,5\n9,5\n",             /* a constant y */
        "1,1\n2,2\n3,3\n4,4\n1e9,5\n", /* one point far away */
        "-1e300,1\n0,2\n1e300,3\n",
        "1e-300,1\n2e-300,2\n3e-300,3\n",
        "1,1\n2,2\n3,3\n4,1e150\n",
        "0,1\n1e-15,2\n1,3\n2,4\n",
        "1,0\n2,0\n3,0\n4,1\n5,1\n6,1\n",
    };
    for (int i = 0; i < COUNT(data); i++) {
        put(path("data.csv"), data[i]);
        ck_assert_msg(run("--data $D/data.csv --plot $D/p.svg --predict $D/p.csv") == 0, "%s: %s",
                      data[i], complaints);
        ck_assert_msg(printed("w") > 0 && isfinite(printed("w")), "%s: %s", data[i], out);
        ck_assert(isfinite(printed("leave-one-out rmse")));
        slurp(path("p.svg"), out, sizeof out);
        ck_assert_ptr_nonnull(strstr(out, "</svg>\n"));
        ck_assert_msg(!strstr(out, "nan") && !strstr(out, "inf\""), "%s: a NaN is drawn", data[i]);
    }
}

/* Two limits, computed by hand: the nearest neighbours, and the mean of all other points. */
TEST(three_points_by_hand) {
    put(path("data.csv"), "0,0\n1,0\n1,6\n5,3\n");
    ck_assert_int_eq(run("--data $D/data.csv --epochs 0 --w0 1000"), 0);
    /* nearest neighbours: 0 sees (0 + 6) / 2, the two at 1 each other, 5 sees (0 + 6) / 2 */
    assert_near(printed("leave-one-out rmse"), sqrt((9 + 36 + 36 + 0) / 4.0), 1e-5);
    ck_assert_int_eq(run("--data $D/data.csv --epochs 0 --w0 1e-9"), 0);
    /* the mean of the others: 3, 3, 1, 2 */
    assert_near(printed("leave-one-out rmse"), sqrt((9 + 9 + 25 + 1) / 4.0), 1e-5);
}

/* ---- mistakes ---------------------------------------------------------------------------- */

static const struct {
    const char *text, *flags, *sentence; /* the sentence after "kernel_regression: FOLDER/" */
} bad_files[] = {
    {NULL, "", "data.csv: cannot read the file: No such file or directory\n"},
    {"", "", "data.csv: the file is empty\n"},
    {"x,y\n", "", "data.csv:1: the file ends after 0 points, and at least 3 are needed\n"},
    {"x,y\n1,2\n3,4\n", "",
     "data.csv:3: the file ends after 2 points, and at least 3 are needed\n"},
    {"x,y\n1,2\n3,abc\n", "", "data.csv:3: \"abc\" in column 2 is not a number\n"},
    {"x,y\n1,2\n\n3,0x10\n", "", "data.csv:4: \"0x10\" in column 2 is not a number\n"},
    {"1,2\n3,inf\n", "", "data.csv:2: \"inf\" in column 2 is not a finite number\n"},
    {"1,2\nnan,3\n", "", "data.csv:2: \"nan\" in column 1 is not a finite number\n"},
    {"1,2\n1e999,3\n", "", "data.csv:2: \"1e999\" in column 1 is not a finite number\n"},
    {"1,2\n,3\n", "", "data.csv:2: column 1 is empty\n"},
    {"x,y\r\n1,2,3\r\n", "", "data.csv:2: the line has 3 cells where the first has 2\n"},
    {"x,y\n1\n", "", "data.csv:2: the line has 1 cell where the first has 2\n"},
    {"x,y\n1,\"2\n3,4\n", "", "data.csv:2: a quoted cell has no closing quote\n"},
    {"x,y\n1,\"2\"3\n", "", "data.csv:2: text after a closing quote\n"},
    {"x,y\n1,\033[31m\n", "", "data.csv:2: \"?[31m\" in column 2 is not a number\n"},
    {"x,y\n1,2\n1,3\n1,5\n", "",
     "data.csv:4: the file ends after 3 points, and x is 1 in all of them\n"},
    {"x,y\n-1e308,2\n1e308,3\n1,5\n", "",
     "data.csv:4: the file ends after 3 points that are too far apart for float64\n"},
    {"x\n1\n2\n3\n", "", "data.csv:1: there is no column 2, the line has 1\n"},
    {"x,y\n1,2\n", "--y z", "data.csv:1: there is no column named \"z\" in the first line\n"},
    {"x,y\n1,2\n", "--x 0", "data.csv:1: there is no column 0, the line has 2\n"},
    {"x,y\n1,2\n", "--x 99999999999999999999",
     "data.csv:1: there is no column 99999999999999999999, the line has 2\n"},
};

LOOP_TEST(bad_file, COUNT(bad_files)) {
    const char *text = bad_files[_i].text;
    if (text) put(path("data.csv"), text);
    ck_assert_int_eq(run(format("--data $D/data.csv %s", bad_files[_i].flags)), 1);
    ck_assert_str_eq(complaints,
                     format("kernel_regression: %s/%s", folder, bad_files[_i].sentence));
    ck_assert_str_eq(out, "");
}

TEST(other_bad_files) {
    expect_failure("--data $D", ": cannot read the file: Is a directory\n");
    ck_assert_int_eq(run("--data /dev/zero"), 1);
    ck_assert_str_eq(complaints, "kernel_regression: /dev/zero: not a UTF-8 text file; "
                                 "a spreadsheet must be saved as .csv\n");
    ck_assert_int_eq(shell("seq 4001 | sed 's/$/,1/' >$D/data.csv"), 0);
    expect_failure(
        "--data $D/data.csv",
        "data.csv:4001: the file ends after 4001 points, and 4000 is the most that fit\n");
}

TEST(a_rate_that_is_too_large) {
    ck_assert_int_eq(run("--w0 5 --momentum 0 --lr 1e200"), 1);
    ck_assert_str_eq(complaints, "kernel_regression: epoch 2: the slope is not a number: "
                                 "try a smaller --lr or another --w0\n");
    expect_failure("--data examples/data/mcycle.csv --w0 1e300",
                   "epoch 1: the slope is not a number");
}

/* ---- what it writes ---------------------------------------------------------------------- */

PROGRAM_CASE("long", .is_long = true)
TEST(same_bytes_every_time) {
    static char again[1 << 16];
    ck_assert_int_eq(run("--plot $D/a.svg --predict $D/a.csv"), 0);
    ck_assert_int_eq(run("--plot $D/b.svg --predict $D/b.csv"), 0);
    ck_assert_int_eq(shell("cmp $D/a.svg $D/b.svg && cmp $D/a.csv $D/b.csv"), 0);
    ck_assert_int_eq(files_in_folder(), 4);
    ck_assert_int_eq(run("--data examples/data/faithful.csv --log $D/1.csv --threads 1"), 0);
    ck_assert_int_eq(run("--data examples/data/faithful.csv --log $D/2.csv --threads 2"), 0);
    ck_assert_int_eq(shell("cmp $D/1.csv $D/2.csv"), 0);
    slurp(path("a.svg"), again, sizeof again);
    ck_assert_ptr_nonnull(strstr(again, "viewBox=\"0 0 640 1080\""));
    ck_assert_ptr_nonnull(strstr(again, "fill=\"" PAPER "\"/>"));
    ck_assert_int_eq(occurrences(again, "<circle"), 50);
}

PROGRAM_CASE("program")
/* Names that would break the XML, the CSV and the UTF-8. */
TEST(hostile_names) {
    put(path("data.csv"), "<b>&\"\"\xff,a\x01\xc3\xa9\n1,2\n2,3\n4,3\n");
    ck_assert_int_eq(run("--data $D/data.csv --plot $D/p.svg"), 0);
    slurp(path("p.svg"), out, sizeof out);
    ck_assert_ptr_nonnull(strstr(out, ">&lt;b&gt;&amp;\"\"?</text>"));
    ck_assert_ptr_nonnull(strstr(out, ">a?\xc3\xa9</text>"));
}

TEST(prints_before_it_writes) {
    if (!has_full_disk()) return;
    expect_failure("--predict /dev/full",
                   "/dev/full: it cannot be written: No space left on device\n");
    ck_assert_double_gt(printed("w"), 0);
}

TEST(replaces_what_a_link_leads_to) {
    put(path("real.csv"), "old\n");
    ck_assert_int_eq(shell("chmod 640 $D/real.csv; ln -s real.csv $D/link.csv"), 0);
    ck_assert_int_eq(run("--predict $D/link.csv"), 0);
    ck_assert_int_eq(shell("test -L $D/link.csv && test $(stat -c %a $D/real.csv) = 640 &&"
                           " test $(wc -l <$D/real.csv) = 202"),
                     0);
}

static void write_and_interrupt(FILE *file, const void *context) {
    (void)context;
    fputs("half a file, ", file);
    fflush(file);
    raise(SIGINT);
    fputs("and the other half\n", file);
}

/* Ctrl-C while a file is written: the signal ends the process after the file is complete. */
TEST(interrupted) {
    int status;
    put(path("data.csv"), "old\n");
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        output_write(path("data.csv"), write_and_interrupt, NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    expect_file("data.csv", "half a file, and the other half\n");
    ck_assert_int_eq(files_in_folder(), 1);
}

/* ---- the terminal ------------------------------------------------------------------------ */

TEST(draws_in_a_terminal) {
    if (!has_terminal("draws_in_a_terminal")) return;
    ck_assert_int_eq(run_on_terminal("TERM=xterm LANG=C.UTF-8", ""), 0);
    ck_assert_ptr_nonnull(strstr(out, "\033[38;5;208m\xE2"));
    ck_assert_int_eq(run_on_terminal("TERM=xterm LANG=C.UTF-8 NO_COLOR=1", ""), 0);
    ck_assert_ptr_null(strchr(out, '\033'));
    ck_assert_ptr_nonnull(strstr(out, "**"));
    ck_assert_int_eq(run_on_terminal("TERM=xterm LANG=C", ""), 0);
    for (const char *s = out; *s; s++) ck_assert_int_gt(*s, 0);
    ck_assert_ptr_nonnull(strstr(out, "**"));
    ck_assert_int_eq(run(""), 0); /* into a file no curve is drawn */
    ck_assert_ptr_null(strstr(out, "**"));
}

int main(void) {
    program = "kernel_regression";
    return run_tests("kernel_regression");
}
