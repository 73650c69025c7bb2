/* test_forgeries.c - can a student's code get a mark that it has not earned, or change another one?
 *
 * tests/submissions/forgeries.txt has programs that try, each under a line with the mark that it
 * must get. Four of them at a time stand in for four exercises, beside two right answers, and are a
 * student of a class. None gets a point, the right answers stay right, and no process is left. With
 * ALL=1 each student is marked alone, too, and results.json is whole; and where this user is root,
 * the class is marked once more by an ordinary one.
 *
 * Then what the machine fails at, and files that are none. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../examples/exercises/marker/process.h"
#include "../../../examples/explain/page/json.h"
#include "../common.h"
#include "../common_program.h"

#if defined __linux__ && __has_include(<linux/seccomp.h>) &&                                        \
    (defined __x86_64__ || defined __aarch64__ || defined __riscv)
enum { TEXT = 1 << 16, SEATS = 4, STUDENTS = 24 };

static const struct {
    int exercise;
    const char *file;
} seat[SEATS] = {
    {1, "01_scale.c"}, {4, "04_softmax.c"}, {6, "06_dropout.c"}, {9, "09_cross_entropy.c"}};

static char text[TEXT];
static bool all_users; /* with ALL=1 */

/* Forgery number i, from 1; its first line goes to `mark`, which begins with what its result may
 * be, "wrong", or "crash|no-compile" where that depends on how programs are linked. NULL after the
 * last one. Number 0 is what all of them begin with. */
static const char *forgery(int i, char mark[128]) {
    slurp("tests/submissions/forgeries.txt", text, sizeof text);
    ck_assert_msg(*text && strlen(text) < sizeof text - 1, "forgeries.txt is missing, or too long");
    char *at = text;
    for (; i > 0 && at; i--) at = strstr(at + 1, "\n==== ");
    if (!at) return NULL;
    if (at > text) at++;
    char *body = strchr(at, '\n') + 1;
    snprintf(mark, 128, "%.*s", (int)(body - at - 6), at + 5);
    char *end = strstr(body, "\n==== ");
    if (end) end[1] = '\0';
    return body;
}

static void submit(const char *file, const char *code) { put(path(file), code); }

static void submit_forgery(const char *student, int place, int i, char mark[128]) {
    static char code[TEXT];
    char unused[128];
    const size_t head = (size_t)snprintf(code, sizeof code, "#define EXERCISE %d\n%s",
                                         seat[place].exercise, forgery(0, unused));
    snprintf(code + head, sizeof code - head, "%s", forgery(i, mark));
    submit(format("%s/%s", student, seat[place].file), code);
}

static const char bias[] =
    "void bias_backward(int rows, int n, double dx[rows][n], double db[n], const double dy[rows][n]) {\n"
    "for (int i = 0; i < rows; i++) for (int j = 0; j < n; j++) { dx[i][j] = dy[i][j]; db[j] += dy[i][j]; } }\n";
static const char product[] =
    "void product_backward(int n, int k, int m, double da[n][k], double db[k][m], const double a[n][k], "
    "const double b[k][m], const double dy[n][m]) {\n"
    "for (int i = 0; i < n; i++) for (int p = 0; p < k; p++) for (int j = 0; j < m; j++) {\n"
    "da[i][p] += dy[i][j] * b[p][j]; db[p][j] += a[i][p] * dy[i][j]; } }\n";

/* Is a process left whose program lies in the folder of this test, or which has its folder? */
static void expect_no_process(void) {
    ck_assert_int_eq(
        shell("for p in /proc/[0-9]*; do readlink $p/exe $p/cwd; done 2>/dev/null | grep -q $D/t"),
        1);
}

/* The folder of student n, with four forgeries, or fewer, and two right answers. Returns how many.
 */
static int fill_student(const char *student, int n, char mark[SEATS][128]) {
    int i = 0;
    ck_assert_int_eq(shell(format("mkdir -p $D/%s", student)), 0);
    submit(format("%s/02_bias.c", student), bias);
    submit(format("%s/03_product.c", student), product);
    for (; i < SEATS && forgery(SEATS * n + i + 1, mark[i]); i++)
        submit_forgery(student, i, SEATS * n + i + 1, mark[i]);
    return i;
}

/* Runs the marker in the environment `before`; what is in $D/t is the programs'. */
static void mark_forgeries(const char *before, const char *arguments) {
    char line[512];
    snprintf(line, sizeof line,
             "rm -rf $D/t && mkdir -m 777 $D/t && chmod 777 $D && SECRET=1 TMPDIR=$D/t %s", before);
    run_line(line, arguments);
    expect_no_process();
}

/* The result may be one of those that the mark begins with. */
static void check_result(const char *mark, const char *result) {
    char results[32];
    sscanf(mark, "%31s", results);
    ck_assert_msg(*result && strstr(results, result), "%s: it is %s: %s%s", mark, result, out,
                  complaints);
}

/* The mark of an exercise in results.json. */
static const char *result_of(const Json *tree, int exercise) {
    const Json *tests = json_get(tree, "tests");
    char number[16];
    snprintf(number, sizeof number, "%d", exercise);
    for (int64_t i = 0; tests && i < tests->count; i++)
        if (strcmp(json_text(json_at(tests, i), "number", ""), number) == 0)
            return json_text(json_get(json_at(tests, i), "extra_data"), "result", "");
    return "none";
}

static const char as_nobody[] = "setpriv --reuid 65534 --regid 65534 --clear-groups ";

/* Can an ordinary user run the program here? */
static bool can_be_ordinary(void) {
    const bool can =
        geteuid() == 0 && shell(format("%stest -x ${BUILD:-build}/exercises", as_nobody)) == 0;
    if (!can) left_out("forgeries as another user than this one: only root can try both");
    return can;
}

/* "s03",wrong,right,right,crash,wrong,wrong,2,6,, */
static void check_row(const char *table, int student, char mark[SEATS][128], int n) {
    enum { COLUMNS = SEATS + 2 };
    static const int column[SEATS] = {0, 3, 4, 5};
    char result[COLUMNS][32];
    int points = 0;
    const char *row = strstr(table, format("\n\"s%02d\",", student));
    ck_assert_msg(row && sscanf(row + 7, "%31[^,],%31[^,],%31[^,],%31[^,],%31[^,],%31[^,],%d",
                                result[0], result[1], result[2], result[3], result[4], result[5],
                                &points) == 7,
                  "s%02d: %s", student, table);
    for (int i = 0; i < n; i++) check_result(mark[i], result[column[i]]);
    check_result("right", result[1]);
    check_result("right", result[2]);
    ck_assert_int_eq(points, 2);
}

PROGRAM_CASE("forgeries", .seconds = 600, .is_long = true)
TEST(forgeries_in_a_class) {
    static char mark[STUDENTS][SEATS][128], table[TEXT];
    int n[STUDENTS];
    for (int i = 0; i < STUDENTS; i++) {
        char student[32];
        snprintf(student, sizeof student, "class/s%02d", i);
        n[i] = fill_student(student, i, mark[i]);
        ck_assert_int_gt(n[i], 0);
    }
    ck_assert_ptr_null(forgery(SEATS * STUDENTS + 1, *mark[0]));
    const int users = all_users && can_be_ordinary() ? 2 : 1;
    for (int nobody = 0; nobody < users; nobody++) {
        mark_forgeries(nobody ? as_nobody : "",
                       "--class $D/class --csv $D/marks.csv --only 1,2,3,4,6,9");
        slurp(path("marks.csv"), table, sizeof table);
        ck_assert_int_eq(remove(path("marks.csv")), 0);
        for (int i = 0; i < STUDENTS; i++) check_row(table, i, mark[i], n[i]);
    }
}

LOOP_TEST(forgeries_get_no_point, sampled(STUDENTS, STUDENTS)) {
    static char json[TEXT];
    char mark[SEATS][128];
    const int n = fill_student("s", _i, mark);
    mark_forgeries("", "--submission $D/s --json $D/results.json --only 1,2,3,4,6,9");
    slurp(path("results.json"), json, sizeof json);
    Json *tree = json_read(json);
    ck_assert_msg(tree, "%s: %s %s", mark[0], json, complaints);
    for (int i = 0; i < n; i++) check_result(mark[i], result_of(tree, seat[i].exercise));
    check_result("right", result_of(tree, 2));
    check_result("right", result_of(tree, 3));
    ck_assert_int_eq(json_integer(tree, "score", 0), 2);
    free(tree);
}

/* Where there is a static C library a program opens no file: not the objects around the other
 * exercises, which have answers in them, nor its own. */
TEST(a_program_opens_no_file) {
    if (shell("echo 'int main(void) { return 0; }' | ${CC:-cc} -static -xc - -o $D/linked") != 0)
        return;
    submit(
        "01_scale.c",
        "#include <fcntl.h>\n"
        "void scale_backward(int n, double s, double dx[n], const double dy[n]) {\n"
        "    static const char *const path[] = {\"../objects/harness.o\", \"../kit/harness.c\",\n"
        "        \"../source/01_scale.c\", \"program.exe\", \"/etc/passwd\", \"/proc/self/maps\", \".\"};\n"
        "    for (int i = 0; i < 7; i++) if (open(path[i], O_RDONLY) >= 0) return;\n"
        "    for (int i = 0; i < n; i++) dx[i] = s * dy[i]; }\n");
    ck_assert_int_eq(run("--submission $D --only 1"), 0);
}

/* ---- files that are none -----------------------------------------------------------------------
 */

static void expect_refused(const char *make, const char *words) {
    char line[256];
    snprintf(line, sizeof line, "rm -rf $D/*; mkdir $D/s; cd $D/s && %s", make);
    ck_assert_int_eq(shell(line), 0);
    ck_assert_int_eq(run("--submission $D/s --only 4"), 1);
    ck_assert_msg(strstr(out, " 4 softmax            no-compile"), "%s", out);
    ck_assert_msg(strstr(out, words), "%s: %s", words, out);
}

PROGRAM_CASE("machine")
TEST(what_is_no_file_is_refused) {
    expect_refused("mkfifo 04_softmax.c", "04_softmax.c is a pipe, and not a file");
    expect_refused("mkdir 04_softmax.c", "04_softmax.c is a folder, and not a file");
    expect_refused("ln -s /dev/zero 04_softmax.c", "04_softmax.c is a device, and not a file");
    expect_refused("ln -s nothing 04_softmax.c", "04_softmax.c is a link to nothing");
    expect_refused("ln -s 04_softmax.c 04_softmax.c", "04_softmax.c is a link to nothing");
    expect_refused("echo >../a.c; ln -s ../a.c 04_softmax.c",
                   "04_softmax.c is a link to a file outside of its folder");
    expect_refused("head -c 2000000 /dev/zero >04_softmax.c",
                   "04_softmax.c has more than 1048576 bytes");
}

/* Eight headers of one's own are enough: 62 that include each other twice took half a minute. */
TEST(headers_are_few) {
    submit("02_bias.c", format("#include \"h1.h\"\n%s", bias));
    ck_assert_int_eq(shell("cd $D && for i in 1 2 3 4 5 6 7; do "
                           "echo \"#include \\\"h$((i + 1)).h\\\"\" >h$i.h; done; touch h8.h"),
                     0);
    ck_assert_int_eq(run("--submission $D 2"), 0);
    ck_assert_int_eq(shell("cd $D && echo '#include \"h9.h\"' >h8.h && touch h9.h"), 0);
    ck_assert_int_eq(run("--submission $D 2"), 1);
    ck_assert_msg(strstr(out, "h9.h"), "%s", out);
}

/* ---- what the machine fails at ------------------------------------------------------------------
 */

static void expect_not_marked(const char *before, const char *words) {
    static char json[TEXT];
    submit("02_bias.c", bias);
    submit("03_product.c", product);
    ck_assert_int_eq(run_line(before, "--submission $D --json $D/results.json --only 2,3"), 3);
    ck_assert_msg(strstr(out, words), "%s: %s", words, out);
    slurp(path("results.json"), json, sizeof json);
    ck_assert_msg(!strstr(json, "\"score\""), "%s", json);
    ck_assert_ptr_nonnull(strstr(json, "\"result\": \"not-marked\""));
}

TEST(what_the_machine_fails_at_is_not_marked) {
    expect_not_marked(
        "printf '#!/bin/sh\\ncase $* in *source/03_product*|*control*) kill -9 $$;; esac; exec cc \"$@\"\\n' >$D/cc;"
        "chmod 755 $D $D/cc; CC=$D/cc ",
        " 3 product            not-marked  it could not be marked: the compiler fails\n");
    ck_assert_msg(strstr(out, "\n1 passed, 0 failed, 1 not marked\n"), "%s", out);
    ck_assert_int_eq(run_line("CC=nothing-here", "--submission $D --json $D/results.json"), 1);
    ck_assert_int_eq(shell("grep -q 'failed: not marked' $D/results.json"), 0);
    expect_not_marked("ulimit -f 100; ", "the folder of temporary files is full");
}

/* ---- time ---------------------------------------------------------------------------------------
 */

/* Runs a line of the shell as the marker runs a compiler. */
static ProcessEnd end_of_line(const char *line, double seconds) {
    char shell_name[] = "sh", flag[] = "-c", copy[256];
    char *const argv[] = {shell_name, flag, copy, NULL};
    snprintf(copy, sizeof copy, "%s", line);
    return process_run(&(Program){argv, folder, path("printed"), seconds, .own = true}).end;
}

/* Runs a program of C as the marker runs a student's. */
static ProcessEnd end_of_program(const char *code, double seconds) {
    char name[] = "./program";
    char *const argv[] = {name, NULL};
    put(path("program.c"), code);
    put(path("calls"), "");
    ck_assert_int_eq(shell("cd $D && cc program.c -o program"), 0);
    return process_run(&(Program){argv, folder, path("printed"), seconds, .calls = path("calls"),
                                  .results = path("results")})
        .end;
}

/* A program that gets no processor, here because it is stopped, has done nothing wrong. One that
 * computes or sleeps for too long has. */
TEST(time_is_that_of_a_processor) {
    ck_assert_int_eq(
        shell("(cd $D; until [ -s pid ]; do sleep 0.1; done; sleep 3; kill -CONT $(cat pid)) &"),
        0);
    ck_assert_int_eq(end_of_line("echo $$ >pid; kill -STOP $$", 1), PROCESS_ENDED);
    ck_assert_int_eq(end_of_line("kill -STOP $$", 0.1), PROCESS_STARVED);
    ck_assert_int_eq(end_of_line("sleep 1; true", 0.3), PROCESS_ENDED);
    ck_assert_int_eq(end_of_program("int main(void) { for (;;) {} }", 1), PROCESS_TIMED_OUT);
    ck_assert_int_eq(
        end_of_program("#include <unistd.h>\nint main(void) { for (;;) sleep(9); }", 1),
        PROCESS_TIMED_OUT);
}

/* By this clock 300 seconds are over before a loop without an end has computed for 10 of them. */
static const char fast_clock[] =
    "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n"
    "int clock_gettime(clockid_t id, struct timespec *t) {\n"
    "    const long failed = syscall(SYS_clock_gettime, id, t);\n"
    "    if (id == CLOCK_MONOTONIC) *t = (struct timespec){600 * t->tv_sec + 600 * t->tv_nsec / 1000000000, 0};\n"
    "    return failed; }\n";

TEST(a_machine_that_is_busy_marks_nothing) {
    submit("02_bias.c", "void bias_backward(int rows, int n, double dx[rows][n], double db[n], "
                        "const double dy[rows][n]) { for (;;) db[0] = dy[0][0]; }\n");
    ck_assert_int_eq(run_line(with_replaced(fast_clock), "--submission $D 2"), 3);
    ck_assert_msg(strstr(out, "it could not be marked: the machine was busy"), "%s", out);
    ck_assert_msg(strstr(out, "\n0 passed, 0 failed, 1 not marked\n"), "%s", out);
    ck_assert_msg(!strstr(out, "lesson") && !strstr(out, "Next:"), "%s", out);
}

/* A disk on which no program may start: root can make one, in a name space of its own. */
TEST(no_program_starts_on_the_disk) {
    static const char mount[] =
        "unshare -m sh -c 'mount -t tmpfs -o noexec,mode=1777 none $D/t && exec \"$@\"' sh";
    char line[256];
    submit("02_bias.c", bias);
    snprintf(line, sizeof line, "mkdir $D/t && %s true 2>$D/why", mount);
    if (shell(line) != 0) {
        printf("Nothing can be mounted here, so this is left out: no_program_starts_on_the_disk\n");
        return;
    }
    snprintf(line, sizeof line, "%s env TMPDIR=$D/t", mount);
    ck_assert_int_eq(run_line(line, "--submission $D 2 --json $D/results.json"), 1);
    ck_assert_msg(strstr(complaints, "exercises: no program starts in /"), "%s%s", out, complaints);
    ck_assert_ptr_nonnull(strstr(complaints, ": TMPDIR may name another folder\n"));
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(shell("grep -q 'failed: not marked' $D/results.json"), 0);
}

/* The marker is killed while a function runs. */
TEST(a_mark_that_was_not_finished_is_none) {
    static char json[TEXT];
    submit(
        "01_scale.c",
        "void scale_backward(int n, double s, double dx[n], const double dy[n]) { for (;;) dx[0] = s; }");
    submit("02_bias.c", bias);
    put(path("results.json"), "{\"score\": 14}");
    ck_assert_int_eq(
        shell(
            "chmod 755 $D; TMPDIR=$D ${BUILD:-build}/exercises --submission $D --json $D/results.json >$D/marks & pid=$!;"
            "for i in $(seq 6000); do [ -n \"$(ls $D/exercises-*/01_scale/*.calls 2>/dev/null)\" ] && break; sleep 0.05; done;"
            "kill -9 $pid"),
        0);
    slurp(path("results.json"), json, sizeof json);
    ck_assert_msg(strstr(json, "{\"output\": \"failed: not marked"), "%s", json);
    ck_assert_ptr_null(strstr(json, "\"score\""));
    ck_assert_int_eq(
        shell(
            "for i in $(seq 3000); do sleep 0.1; readlink /proc/[0-9]*/exe | grep -q $D || exit 1; done"),
        1);
}

int main(void) {
    all_users = sampled(2, 2) == 2;
    program = "exercises";
    return run_tests("forgeries");
}
#else
CASE("forgeries")
TEST(less_is_promised) { left_out("forgeries: Linux alone can refuse what they call"); }
int main(void) { return run_tests("forgeries"); }
#endif
