/* test_programs.c - what all programs that train or fit have in common. A short run of each trains,
 * writes the files that its flags name and no others, draws the committed picture, continues after
 * an interrupt with the same bytes, and reports every mistake in one error message.
 *
 * A program is a row of the table. The test reads the flags from --help, so it forgets none. If you
 * change a picture on purpose, run build/NAME FLAGS --plot tests/golden/NAME.svg with the flags of
 * the row. */
#include <check.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common.h"
#include "../common_page.h"
#include "../common_program.h"

#include "../../../examples/explain/page/json.h"

static const struct {
    const char *name;
    const char *flags; /* a run of a fifth of a second or less, in which the loss falls */
    const char *other; /* these flags make a model of other shapes */
    const char *large; /* these flags make a model that is too large for the page of --explain */
    const char *input; /* the flag of another input file than --load, or NULL */
} programs[] = {
    {"recall", "--steps 50 --every 10 --batch 16 --pairs 4 --hidden 8 --lr 0.5", "--hidden 9",
     "--hidden 512", NULL},
    {"reverse", "--steps 50 --every 10 --batch 8 --length 4 --hidden 16 --lr 0.2", "--hidden 32",
     "--hidden 352 --length 6", NULL},
    {"charlm",
     "--text LICENSE --steps 50 --every 10 --batch 4 --lr 0.01 --layers 1 --heads 2 --width 16"
     " --context 8",
     "--width 32", "--width 352", "--text"},
    {"heads",
     "--steps 50 --every 10 --batch 8 --lr 0.1 --heads 2 --hidden 8 --length 6 --offsets 2"
     " --tokens 4",
     "--hidden 12", "--hidden 352", NULL},
    {"pronounce",
     "--words tests/golden/words.txt --show baxi,dakih,lite --steps 50 --every 10 --batch 8"
     " --hidden 8 --lr 0.02",
     "--hidden 10", "--batch 1 --hidden 256 --show abcdefghijklmnopqrstuvwxyzabcd", "--words"},
    /* These two compute at once, and save no model. */
    {"kernel_regression", "", NULL, NULL, NULL},
    {"notebook", "", NULL, NULL, NULL},
};

enum { NUM_PROGRAMS = COUNT(programs), TRAINERS = NUM_PROGRAMS - 2 };

static const char *flags;
static bool is_trainer;

static void choose(int i) {
    program = programs[i].name;
    flags = programs[i].flags;
    is_trainer = i < TRAINERS;
}

static void choose_named(const char *name) {
    int i = 0;
    while (strcmp(programs[i].name, name) != 0) i++;
    choose(i);
}

/* The flags of the row, and more. */
static const char *with(const char *more) { return format("%s %s", flags, more); }
static const char *quietly(const char *more) {
    return format("%s %s %s", flags, is_trainer ? "--quiet" : "", more);
}

/* The last line ends with PASS or FAIL, and the exit status says whether all expectations passed. A
 * run as short as this may fail, but it must say so. */
static void expect_verdicts(int status) {
    const char *last = out + strlen(out);
    while (last > out && (last == out + strlen(out) || last[-1] != '\n')) last--;
    ck_assert_msg(!strncmp(last, "expect  ", 8), "%s ends with %s", program, last);
    ck_assert_msg(strstr(last, "  PASS\n") || strstr(last, "  FAIL\n"), "%s: %s", program, last);
    ck_assert_msg(status == (strstr(out, "  FAIL\n") ? 1 : 0),
                  "%s exits with %d, having printed %s", program, status, out);
}

static void expect_trained(const char *more) {
    int status = run(with(more));
    ck_assert_msg(!strstr(complaints, program), "%s %s: %s", program, more, complaints);
    expect_verdicts(status);
}

/* ---- training ------------------------------------------------------------------------------ */

#define FILES "--log $D/log.csv --save $D/model.safetensors --plot $D/plot.svg"

/* Checks the rows of the log: steps 10, 20, ..., finite losses, and a lower loss at the end. */
static void expect_falling_loss(const char *name) {
    char text[4096];
    double step, loss, first = 0, last = 0;
    int rows = 0, n = 0;
    slurp(path(name), text, sizeof text);
    ck_assert_msg(!strncmp(text, "step,loss\n", 10), "%s: the log begins with %s", program, text);
    for (const char *row = text + 10; sscanf(row, "%lf,%lf\n%n", &step, &loss, &n) == 2; row += n) {
        ck_assert_msg((int)step == ++rows * 10, "%s: row %d is of step %g", program, rows, step);
        if (rows == 1) first = loss;
        last = loss;
    }
    ck_assert_int_eq(rows, 5);
    ck_assert_msg(last < first, "%s: the loss is %g, then %g", program, first, last);
}

PROGRAM_CASE("trainers")
/* A run on one thread, and a run on two threads that is interrupted and continued, give the same
 * bytes. */
LOOP_TEST(trains, TRAINERS) {
    int step;
    char last;
    choose(_i);
    expect_trained("--quiet --threads 1 " FILES);
    ck_assert_str_eq(complaints, "");
    ck_assert_int_eq(files_in_folder(), 3);
    expect_falling_loss("log.csv");
    const char *compare = format("cmp $D/plot.svg tests/golden/%s.svg", program);
    ck_assert_msg(!has_fast_kernels() || shell(compare) == 0, "%s %s: another picture", program,
                  flags);
    const char *printed_before = copy_of_output();
    ck_assert_int_eq(shell("mkdir $D/straight && mv $D/*.* $D/straight"), 0);

    ck_assert_int_eq(run_interrupted(with("--threads 2 " FILES)), 130);
    ck_assert_int_eq(files_in_folder(), 4); /* --plot is written, too, after an interrupt */
    const char *sentence = strstr(complaints, program);
    ck_assert(sentence != NULL);
    const char *stopped = format("%s: stopped after step %%d; to continue, --load %s%%c", program,
                                 path("model.safetensors"));
    ck_assert_msg(sscanf(sentence, stopped, &step, &last) == 2 && last == '\n', "%s", complaints);
    ck_assert_msg(step >= 10 && step < 50, "%s: stopped after step %d", program, step);
    ck_assert_msg(strstr(out, "weight 0 |") && !strstr(out, "expect"), "%s", out);
    ck_assert_int_eq(shell("grep -q '</svg>' $D/plot.svg"), 0);

    expect_trained("--quiet --threads 2 --load $D/model.safetensors " FILES);
    ck_assert_str_eq(out, printed_before);
    ck_assert_int_eq(files_in_folder(), 4);
    ck_assert_msg(shell("cd $D && for file in *.*; do cmp $file straight/$file || exit 1; done") ==
                      0,
                  "%s: a run that was interrupted ends differently", program);
}

PROGRAM_CASE("long", .is_long = true)
/* A run that has taken all its steps can be loaded: it is evaluated again, or continues with more
 * steps. */
LOOP_TEST(goes_on_from_the_end, TRAINERS) {
    choose(_i);
    expect_trained("--save $D/model.safetensors");
    const char *printed_before = copy_of_output();
    expect_trained("--load $D/model.safetensors");
    ck_assert_str_eq(out, printed_before);
    ck_assert_str_eq(complaints, "");
    expect_trained("--load $D/model.safetensors --steps 60");
    ck_assert_int_eq(strncmp(complaints, "step 60 of 60  loss ", 20), 0);
}

PROGRAM_CASE("trainers")
LOOP_TEST(interrupted_without_a_file, TRAINERS) {
    choose(_i);
    ck_assert_int_eq(run_interrupted(flags), 130);
    ck_assert_ptr_nonnull(strstr(complaints, "; nothing was saved\n"));
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(files_in_folder(), 0);
}

LOOP_TEST(a_rate_that_is_too_large, TRAINERS) {
    choose(_i);
    expect_failure(with("--quiet --lr 1e300 --save $D/model.safetensors"),
                   ": the loss is not a finite number: try a smaller --lr\n");
    ck_assert_str_eq(out, "");
    expect_failure(with("--quiet --lr 1e300 --log $D/log.csv --plot $D/plot.svg"), ": the loss is");
    ck_assert_int_ne(shell("test -e $D/plot.svg"), 0);
}

/* ---- what it shows ------------------------------------------------------------------------- */

static bool is_ascii(const char *text) {
    while (*text == '\n' || (*text >= ' ' && *text <= '~')) text++;
    return *text == '\0';
}

/* On a terminal the maps are blocks of colour and the progress is one line. */
LOOP_TEST(shows_on_a_terminal, TRAINERS) {
    if (!has_terminal("shows_on_a_terminal")) return;
    choose(_i);
    int status = run_on_terminal("TERM=xterm LANG=C.UTF-8", with("2>&1"));
    ck_assert_msg(strstr(out, "\rstep ") && strstr(out, "\033[48;5;"), "%s: exit status %d, %s",
                  program, status, out);
    status = run_on_terminal("TERM=xterm LANG=C.UTF-8 NO_COLOR=1", with("2>$D/err"));
    slurp(path("err"), complaints, sizeof complaints);
    ck_assert_msg(strstr(out, "weight 0 |") && !strchr(out, '\033'), "%s: exit status %d, %s%s",
                  program, status, out, complaints);
}

/* Elsewhere the maps are characters and the progress is a line per report. --quiet prints neither.
 */
LOOP_TEST(shows, TRAINERS) {
    choose(_i);
    expect_trained("");
    ck_assert_msg(is_ascii(out), "%s printed %s", program, out);
    ck_assert_ptr_nonnull(strstr(out, "weight 0 |"));
    int lines = 0;
    for (const char *s = complaints; *s; s = strchr(s, '\n') + 1, lines++)
        ck_assert_msg(!strncmp(s, "step ", 5) && strstr(s, "0 of 50  loss "), "%s: %s", program, s);
    ck_assert_int_eq(lines, 5);
    expect_trained("--quiet");
    ck_assert_ptr_null(strstr(out, "weight 0 |"));
    ck_assert_str_eq(complaints, "");
}

/* ---- the page of --explain ----------------------------------------------------------------- */

/* The lesson of the page. *tree is freed by the caller. */
static const Json *lesson_of_page(const char *name, Json **tree) {
    *tree = json_read(page_data(name));
    ck_assert_msg(*tree != NULL, "%s: %s", program, tensor_error());
    const Json *lesson = json_at(json_get(*tree, "lessons"), 0);
    ck_assert_int_eq(json_integer(lesson, "number", -1), 0);
    ck_assert(strncmp(json_text(lesson, "title", ""), program, strlen(program)) == 0);
    return lesson;
}

static double number_at(const Json *list, int64_t i) { return json_number(json_at(list, i)); }

/* Every check is right: of each rule, and of each leaf that it is the sum of its terms. */
static void expect_checks(const Json *lesson) {
    int checks = 0, leaves = 0;
    const Json *step = json_get(json_get(lesson, "plan"), "steps")->first;
    for (; step; step = step->next) {
        const char *check = json_text(step, "check", NULL);
        ck_assert_msg(!check || strcmp(check, "right") == 0, "%s, %s: %s", program,
                      json_text(step, "at", ""), json_text(step, "checked", ""));
        checks += check != NULL;
        leaves += strstr(json_text(step, "sentence", ""), "its gradient is complete") != NULL;
    }
    ck_assert_int_gt(leaves, 0);
    ck_assert_int_gt(checks, leaves);
}

static bool has_tensor(const Json *tape, const char *name) {
    const Json *x = json_get(tape, "tensors")->first;
    while (x && strcmp(json_text(x, "name", ""), name) != 0) x = x->next;
    return x && json_get(x, "grad");
}

/* A list of words, if there is one, has a word for each row or column. */
static void expect_words(const Json *words, const Json *shape, int64_t from_the_end) {
    if (words)
        ck_assert_int_eq(words->count, (int64_t)number_at(shape, shape->count - from_the_end));
}

/* The rows of queries and keys have words in three programs; in all, the keys stand as columns. */
static void expect_labels(const Json *lesson, const Json *tape) {
    const Json *labels = json_get(lesson, "labels");
    const bool has_words = strcmp(program, "reverse") != 0 && strcmp(program, "heads") != 0;
    ck_assert_int_eq(labels->count > 3, has_words);
    for (const Json *x = labels->first; x; x = x->next) {
        const Json *tensor = json_at(json_get(tape, "tensors"), json_integer(x, "tensor", -1));
        expect_words(json_get(x, "rows"), json_get(tensor, "shape"), 2);
        expect_words(json_get(x, "columns"), json_get(tensor, "shape"), 1);
    }
    for (const Json *x = json_get(lesson, "transposed")->first; x; x = x->next) {
        const Json *of = json_at(json_get(tape, "tensors"), json_integer(x, "of", -1));
        ck_assert_str_eq(json_text(of, "name", ""), "keys");
    }
}

static void expect_page(const char *name) {
    Json *tree;
    const Json *lesson = lesson_of_page(name, &tree);
    const Json *tape = json_get(lesson, "tape");
    expect_labels(lesson, tape);
    expect_checks(lesson);
    ck_assert(has_tensor(tape, "queries") && has_tensor(tape, "keys"));
    ck_assert(has_tensor(tape, "values") && has_tensor(tape, "attention_weights"));
    free(tree);
}

PROGRAM_CASE("long", .is_long = true)
/* --explain does not change the other outputs of the program. */
LOOP_TEST(explains, TRAINERS) {
    choose(_i);
    expect_trained("--save $D/straight.safetensors --plot $D/straight.svg");
    const char *printed_before = copy_of_output();
    expect_trained("--save $D/a.safetensors --plot $D/a.svg --explain $D/page.html");
    ck_assert_str_eq(out, printed_before);
    ck_assert_int_eq(shell("cmp $D/straight.safetensors $D/a.safetensors &&"
                           " cmp $D/straight.svg $D/a.svg"),
                     0);
    ck_assert_int_eq(files_in_folder(), 5);
    expect_page("page.html");
    expect_trained("--quiet --load $D/a.safetensors --explain $D/again.html");
    ck_assert_int_eq(shell("cmp $D/page.html $D/again.html"), 0);
}

PROGRAM_CASE("trainers")
LOOP_TEST(explains_what_it_had_learned, TRAINERS) {
    choose(_i);
    ck_assert_int_eq(run_interrupted(with("--explain $D/page.html")), 130);
    ck_assert_str_eq(out, "");
    expect_page("page.html");
}

/* "after 1 step", never "1 steps". Returns how many sentences count one. */
static int count_ones(const Json *sentences) {
    static const char *const nouns[] = {"step", "token", "head", "place"};
    int ones = 0;
    for (const Json *s = sentences->first; s; s = s->next)
        for (int i = 0; i < COUNT(nouns); i++) {
            const char *one = format(" 1 %s", nouns[i]);
            const char *at = strstr(s->text, one);
            ck_assert_msg(!at || at[strlen(one)] != 's', "%s: %s", program, s->text);
            ones += at != NULL;
        }
    return ones;
}

PROGRAM_CASE("programs")
/* The programs with flags that select other models, after one step. */
LOOP_TEST(explains_other_models, 11) {
    static const char *const lines[][2] = {{"recall", "--attention additive --dropout 0.3"},
                                           {"recall", "--no-scale --no-mask --pairs 1"},
                                           {"reverse", "--fused --no-scale --length 1 --dropout 0"},
                                           {"reverse", "--dropout 0 --heads 1 --length 5"},
                                           {"heads", "--no-scale --offsets 1 --length 2"},
                                           {"charlm", "--context 1"},
                                           {"charlm", "--composed --layers 2 --layer 2"},
                                           {"charlm", "--heads 1 --layers 3 --dropout 0.2"},
                                           {"charlm", "--block llama --layers 1"},
                                           {"pronounce", "--attention dot"},
                                           {"pronounce", "--show z"}};
    choose_named(lines[_i][0]);
    run(with(format("--quiet --steps 1 %s --explain $D/page.html", lines[_i][1])));
    ck_assert_str_eq(complaints, "");
    expect_page("page.html");
    Json *tree;
    const Json *lesson = lesson_of_page("page.html", &tree);
    ck_assert_int_gt(count_ones(json_get(lesson, "text")), 0);
    free(tree);
}

PROGRAM_CASE("long", .is_long = true)
LOOP_TEST(too_large_for_a_page, TRAINERS) {
    choose(_i);
    expect_failure(with(format("--quiet --steps 1 --explain $D/page.html %s", programs[_i].large)),
                   ": choose a smaller example\n");
    ck_assert_int_eq(files_in_folder(), 0);
}

/* ---- flags --------------------------------------------------------------------------------- */

/* The next flag of a --help, "  --name ARGUMENT" in a line of its own, and the sentence below it.
 * False after the last. argument is "" for a switch. */
static bool next_flag(const char **help, char name[64], char argument[64]) {
    const char *found = strstr(*help, "\n  --");
    if (!found) return false;
    int n = (int)strcspn(found + 1, "\n");
    *argument = '\0'; /* a switch has none */
    ck_assert_int_ge(sscanf(found, " %63[^ \n]%*[ ]%63[^\n]", name, argument), 1);
    const char *sentence = found + 1 + n;
    *help = sentence;
    ck_assert_msg(sentence && !strncmp(sentence, "\n        ", 9) && sentence[9] > ' ',
                  "%s %s has no sentence", program, name);
    return true;
}

PROGRAM_CASE("programs")
LOOP_TEST(help_names_every_flag, NUM_PROGRAMS) {
    static const char *const common[] = {"--seed N",
                                         "--steps N",
                                         "--lr NUMBER",
                                         "--batch N",
                                         "--threads N",
                                         "--every N",
                                         "--log FILE.csv",
                                         "--plot FILE.svg",
                                         "--explain FILE.html",
                                         "--quiet",
                                         "--version",
                                         "--help",
                                         "--save FILE.safetensors",
                                         "--load FILE.safetensors"};
    char name[64], argument[64];
    choose(_i);
    ck_assert_int_eq(run("--help"), 0);
    ck_assert_str_eq(complaints, "");
    ck_assert_int_eq(strncmp(out, program, strlen(program)), 0);
    for (int i = 0; is_trainer && i < COUNT(common); i++)
        ck_assert_msg(strstr(out, format("\n  %s\n", common[i])) != NULL, "%s --help has no %s",
                      program, common[i]);
    for (const char *help = out; next_flag(&help, name, argument);) {
        const char *next = strstr(help, "\n  --");
        const char *otherwise = strstr(help, " Default: ");
        const char *without = strstr(help, format("without %s", name));
        ck_assert_msg(!*argument || (otherwise && otherwise < next) || (without && without < next),
                      "%s %s has no default", program, name);
    }
    const char *help_text = copy_of_output();
    ck_assert_int_eq(run("-h"), 0);
    ck_assert_str_eq(out, help_text);
    if (!has_full_disk()) return;
    ck_assert_int_eq(run("--help >/dev/full"), 1);
    ck_assert_ptr_nonnull(strstr(complaints, ": cannot write to standard output\n"));
}

/* Of every program, and not only of those that train. */
TEST(version) {
    static char name[64];
    glob_t sources;
    ck_assert_int_eq(glob("examples/*.c", 0, NULL, &sources), 0);
    ck_assert_int_gt((int)sources.gl_pathc, NUM_PROGRAMS);
    program = name;
    for (size_t i = 0; i < sources.gl_pathc; i++) {
        ck_assert_int_eq(sscanf(sources.gl_pathv[i], "examples/%63[^.]", name), 1);
        if (strcmp(name, "micro") == 0) continue; /* is without the library, and has no flags */
        ck_assert_msg(run("--version") == 0, "%s --version: %s", program, complaints);
        ck_assert_str_eq(out, format("%s (Tapehead) %s\n", program, TAPEHEAD_VERSION));
        ck_assert_str_eq(complaints, "");
        ck_assert_int_eq(run("--help"), 0);
        ck_assert_msg(strstr(out, "\n  --version\n        ") != NULL, "%s --help", program);
        if (!has_full_disk()) continue;
        ck_assert_int_eq(run("--version >/dev/full"), 1);
        ck_assert_ptr_nonnull(strstr(complaints, ": cannot write to standard output\n"));
    }
    globfree(&sources);
}

/* A value that no flag with this argument accepts. */
static const char *nonsense(const char *argument) {
    bool number = strcmp(argument, "N") == 0 || strcmp(argument, "NUMBER") == 0;
    return number || strchr(argument, '|') ? "nonsense" : "''";
}

PROGRAM_CASE("long", .is_long = true)
LOOP_TEST(misuse, NUM_PROGRAMS) {
    char name[64], argument[64];
    int num_flags = 0;
    choose(_i);
    ck_assert_int_eq(run("--help"), 0);
    for (const char *rest = copy_of_output(); next_flag(&rest, name, argument); num_flags++) {
        expect_misuse(format("%s=%s", name, *argument ? nonsense(argument) : "1"));
        ck_assert_msg(strstr(complaints, name) != NULL, "%s %s: %s", program, name, complaints);
    }
    ck_assert_int_ge(num_flags, 7);
    expect_misuses("--nonsense", "--nonsense=1", "nonsense", "-x", "--help=1", "--log",
                   "--log=", "--plot ''", "--lr 0", "--lr nan", "--lr inf", "--lr ' 1'",
                   "--lr=", "--seed -1", "--seed 18446744073709551616", "--log $D/a --plot $D/a");
    if (is_trainer)
        expect_misuses("--steps", "--steps 1e3", "--steps -1", "--steps 5x", "--batch 0",
                       "--threads 0", "--every 0", "--log $D/a --save $D/a",
                       "--load $D/a --plot $D/a", "--load $D/a --explain $D/a",
                       "--plot $D/a --explain $D/a", "--save $D/a --plot $D/a");
    ck_assert_int_eq(files_in_folder(), 0);
}

/* ---- files that cannot be read ------------------------------------------------------------- */

/* There must be one error message that contains the name of the file and `part`, before the first
 * step. An old log stays.
 */
static void expect_refused(const char *flag, const char *name, const char *part) {
    put(path("log.csv"), "old\n");
    expect_failure(with(format("%s $D/%s --log $D/log.csv", flag, name)), part);
    ck_assert_msg(strstr(complaints, path(name)) != NULL, "%s: %s", program, complaints);
    ck_assert_str_eq(out, "");
    expect_file("log.csv", "old\n");
}

PROGRAM_CASE("trainers")
LOOP_TEST(files_that_cannot_be_read, TRAINERS) {
    choose(_i);
    expect_trained("--quiet --save $D/model.safetensors");
    ck_assert_int_eq(
        shell("cd $D && mkdir folder && : >empty && echo garbled >garbage &&"
              " head -c 200 model.safetensors >begun &&"
              " head -c -9 model.safetensors >half &&"
              " cp model.safetensors longer && echo >>longer &&"
              " LC_ALL=C sed 's/\"program\":\"./\"program\":\"_/' model.safetensors >other &&"
              " cp model.safetensors hidden && chmod 000 hidden"),
        0);
    ck_assert_int_eq(shell("cp tests/golden/files/all.safetensors $D/tensors"), 0);
    expect_refused("--load", "nowhere", ": No such file or directory\n");
    expect_refused("--load", "folder", ": it is not a regular file\n");
    expect_refused("--load", "empty", ": it is shorter than the 8 bytes");
    expect_refused("--load", "garbage", ": it does not begin as a safetensors file");
    expect_refused("--load", "begun", ": its header of ");
    expect_refused("--load", "half", " are no range in the ");
    expect_refused("--load", "longer", " bytes of data\n");
    expect_refused("--load", "other", ": not a file that ");
    expect_refused("--load", "tensors", ": not a file that ");
    if (access(path("hidden"), R_OK) != 0)
        expect_refused("--load", "hidden", ": Permission denied\n");
    expect_refused(format("%s --load", programs[_i].other), "model.safetensors", " does not fit ");
    if (!programs[_i].input) return;
    expect_refused(programs[_i].input, "nowhere", ": No such file or directory\n");
    expect_refused(programs[_i].input, "folder", ": Is a directory\n");
    expect_refused(programs[_i].input, "empty", " too short");
    if (access(path("hidden"), R_OK) != 0)
        expect_refused(programs[_i].input, "hidden", ": Permission denied\n");
}

static const struct {
    const char *program, *saved, *other, *sentence;
} alike[] = {
    {"recall", "--attention mean", "", "it was saved with mean = 1, and this run has mean = 0"},
    {"recall", "", "--no-scale", "it was saved with no_scale = 0, and this run has no_scale = "},
    {"recall", "", "--attention additive", "model.attention.W_k.weight"},
    {"reverse", "", "--no-scale", "it was saved with no_scale = 0, and this run has no_scale = "},
    {"reverse", "", "--heads 4", "it was saved with heads = 2, and this run has heads = "},
    {"heads", "", "--no-scale", "it was saved with no_scale = 0, and this run has no_scale = "},
    {"heads", "--heads 4 --hidden 16", "--hidden 16",
     "it was saved with heads = 4, and this run has heads = "},
    {"charlm", "", "--heads 4", "it was saved with heads = 2, and this run has heads = "},
    {"charlm", "", "--text $D/text", "vocabulary"},
    {"pronounce", "--attention dot", "--attention mean",
     "it was saved with attention = 1, and this run has"},
    {"pronounce", "", "--show baki",
     "its choice of training words (--show) is different in this run"},
    {"pronounce", "", "--words $D/words", "its dictionary (--words) is different in this run"},
};

PROGRAM_CASE("programs")
/* A model of the same shapes is another one if a flag says so: it learns otherwise, and it cannot
 * go on with the numbers of the first. */
LOOP_TEST(models_of_the_same_shapes, COUNT(alike)) {
    choose_named(alike[_i].program);
    ck_assert_int_eq(shell("tr A-Z a-z <LICENSE >$D/text"
                           " && sed 's/ UW/ UH/' tests/golden/words.txt >$D/words"),
                     0);
    run(quietly(format("%s --save $D/model --log $D/log.csv", alike[_i].saved)));
    expect_failure(quietly(format("%s --load $D/model", alike[_i].other)), alike[_i].sentence);
    run(quietly(format("%s --log $D/other.csv", alike[_i].other)));
    ck_assert_msg(shell("! cmp -s $D/log.csv $D/other.csv") == 0, "%s %s learns as before", program,
                  alike[_i].other);
}

/* The losses in the loaded file are drawn, so they must be valid. */
TEST(losses_that_are_none) {
    choose(0);
    expect_trained("--quiet --save $D/model.safetensors");
    TensorDict *dict = tensor_load_safetensors(path("model.safetensors"));
    ck_assert_ptr_nonnull(dict);
    ck_assert(tensor_fill(tensor_dict_get(dict, "losses"), (double)NAN));
    ck_assert(tensor_save_safetensors(dict, path("nan")));
    Tensor *table = tensor_ones(SHAPE(2, 2));
    ck_assert(tensor_dict_set(dict, "losses", table));
    ck_assert(tensor_save_safetensors(dict, path("table")));
    tensor_release(table);
    tensor_dict_free(dict);
    expect_refused("--load", "nan", "/nan: its losses are not all finite numbers\n");
    expect_refused("--load", "table", "/table: its losses are no list\n");
}

/* The error begins with the name of the file, even if the name is a letter that occurs in the
 * message. */
TEST(a_file_of_one_letter) {
    choose(0);
    expect_trained("--quiet --save $D/m");
    ck_assert_int_eq(shell("ln -s \"$PWD\"/* $D/"), 0); /* the program and its files, for the
                                                         * current folder */
    ck_assert_int_eq(run_line("cd $D &&", with("--hidden 9 --load m")), 1);
    ck_assert_msg(strstr(complaints, "recall: m: load_state_dict: "), "%s", complaints);
}

/* ---- files that cannot be written ---------------------------------------------------------- */

static const char *const outputs[] = {"--log", "--save", "--plot", "--explain", "--predict"};

/* The error comes before the first step; before the work, but for a log without a model. */
static void expect_unwritable(const char *flag, const char *file, const char *part) {
    expect_failure(with(format("%s %s", flag, file)), part);
    ck_assert(!*out || (!is_trainer && strcmp(flag, "--log") == 0));
}

/* An old file stays until the new one is complete. After a failure no other file is left. */
static void expect_old_file_kept(const char *flag) {
    put(path("old"), "old\n");
    ck_assert_int_eq(run_line(SMALL_FILES, quietly(format("%s $D/old >/dev/null", flag))), 1);
    ck_assert_msg(strstr(complaints, ": File too large\n") != NULL, "%s %s: %s", program, flag,
                  complaints);
    expect_file("old", "old\n");
    ck_assert_int_eq(files_in_folder(), 2); /* the old file and the folder */
    ck_assert_int_eq(remove(path("old")), 0);
}

static void expect_to_need(const char *output) {
    expect_unwritable(output, "$D/nowhere/file",
                      "/nowhere/file: it cannot be written: No such file or directory\n");
    expect_unwritable(output, "$D", ": Is a directory\n");
    if (access(path("sealed"), W_OK) != 0)
        expect_unwritable(output, "$D/sealed/file",
                          "/sealed/file: it cannot be written: Permission denied\n");
    if (strcmp(output, "--log") != 0) expect_old_file_kept(output);
    if (!has_full_disk()) return;
    expect_failure(quietly(format("%s /dev/full", output)), ": No space left on device\n");
    ck_assert_ptr_nonnull(strstr(complaints, "/dev/full: "));
}

LOOP_TEST(files_that_cannot_be_written, NUM_PROGRAMS) {
    int found = 0;
    choose(_i);
    ck_assert_int_eq(shell("mkdir $D/sealed && chmod 500 $D/sealed"), 0);
    run("--help");
    const char *help = copy_of_output();
    for (int i = 0; i < COUNT(outputs); i++) {
        if (!strstr(help, format("\n  %s FILE", outputs[i]))) continue;
        expect_to_need(outputs[i]);
        found++;
    }
    ck_assert_int_ge(found, is_trainer ? 4 : 2);
    if (has_full_disk()) ck_assert_int_eq(shell("test -c /dev/full"), 0);
    ck_assert_int_eq(files_in_folder(), 1);
}

PROGRAM_CASE("trainers")
/* Opening a pipe without a reader would wait for ever. */
LOOP_TEST(a_pipe_is_no_place_to_save, TRAINERS) {
    choose(_i);
    ck_assert_int_eq(shell("mkfifo $D/pipe"), 0);
    expect_unwritable("--save", "$D/pipe", "/pipe: it is a pipe, and --save needs a file\n");
}

static const char *const contradictions[][2] = {
    {"recall", "--pairs 27"},
    {"recall", "--keys 9"},
    {"recall", "--attention additive --no-scale"},
    {"recall", "--attention mean --no-scale"},
    {"recall", "--attention mean --dropout 0.1"},
    {"reverse", "--heads 3"},
    {"reverse", "--hidden 7 --heads 1"},
    {"heads", "--hidden 24"},
    {"heads", "--hidden 8"},
    {"heads", "--offsets 6"},
    {"heads", "--length 10"},
    {"charlm", "--heads 3"},
    {"charlm", "--layer 3 --layers 2"},
    {"charlm", "--block llama --width 20 --heads 4"},
    {"pronounce", "--hidden 7"},
    {"pronounce", "--attention mean --explain $D/page.html"},
    {"pronounce", "--attention last --explain $D/page.html"},
    {"kernel_regression", "--momentum 1"},
    {"kernel_regression", "--momentum -0.1"},
    {"kernel_regression", "--w0 0"},
    {"kernel_regression", "--w0 -3"},
    {"kernel_regression", "--epochs -1"},
    {"kernel_regression",
     "--data examples/data/cars.csv --plot=examples/../examples/data/cars.csv"},
    {"notebook", "--steps 0"},
};

PROGRAM_CASE("programs")
/* What each program refuses for a reason of its own. */
LOOP_TEST(flags_that_contradict_each_other, COUNT(contradictions)) {
    program = contradictions[_i][0];
    expect_misuse(contradictions[_i][1]);
}

/* A device may be named twice, and the name of a column is no name of a file. */
TEST(what_is_no_file_twice) {
    program = "kernel_regression";
    ck_assert_int_eq(run("--predict /dev/null --plot /dev/null"), 0);
    ck_assert_int_eq(files_in_folder(), 0);
    expect_failure("--data examples/data/cars.csv --y $D/b --plot $D/b",
                   "there is no column named");
}

TEST(a_text_is_not_saved_over) {
    program = "charlm";
    ck_assert_int_eq(shell("cp LICENSE $D/text"), 0);
    expect_misuse("--text $D/text --save $D/text");
    ck_assert_str_eq(complaints, format("charlm: --save and --text are the same file, %s/text;"
                                        " see charlm --help\n",
                                        folder));
    ck_assert_int_eq(shell("cmp LICENSE $D/text"), 0);
}

LOOP_TEST(standard_output_that_cannot_be_written, NUM_PROGRAMS) {
    choose(_i);
    const char *sentence = format("%s: cannot write to standard output\n", program);
    if (has_full_disk()) {
        ck_assert_int_eq(run(quietly(">/dev/full")), 1);
        ck_assert_str_eq(complaints, sentence);
    }
    /* 141 without a message, as after SIGPIPE */
    ck_assert_int_eq(run_without_reader(quietly("")), 141);
    ck_assert_str_eq(complaints, "");
    ck_assert_int_eq(run_without_reader("-h"), 141);
    ck_assert_str_eq(complaints, "");
    ck_assert_int_eq(run(quietly("--log $D/log.csv --plot $D/plot.svg >&-")), 1);
    ck_assert_str_eq(complaints, sentence);
    ck_assert_int_eq(shell("! grep -qs expect $D/*"), 0);
    if (!is_trainer) return;
    expect_falling_loss("log.csv");
    ck_assert_int_eq(shell("tail -n 1 $D/log.csv | grep -q ^50,"), 0);
}

/* If standard output is closed, the log must not get its number: then the maps would be written to
 * the log. */
TEST(a_log_in_the_place_of_the_output) {
    char text[256];
    program = "charlm";
    ck_assert_int_eq(run("--text LICENSE --steps 1 --layers 1 --heads 8 --width 32 --context 32"
                         " --log $D/log.csv >&-"),
                     1);
    slurp(path("log.csv"), text, sizeof text);
    ck_assert_msg(!strncmp(text, "step,loss\n1,", 12) && strlen(text) < 32, "the log: %s", text);
}

/* charlm writes the same letters with and without the cache of keys and values, also beyond the
 * characters that it sees, drawn and always the most probable: with each of the two models. */
LOOP_TEST(a_cache_changes_no_letter, 4) {
    static char first[PRINTED_SIZE];
    program = "charlm";
    flags = "--quiet --text LICENSE --steps 40 --batch 4 --lr 0.01 --layers 2 --heads 4 --width 16"
            " --context 40 --sample 70 --prompt This --block";
    const char *choice = format("%s --top-k %d", _i % 2 ? "llama" : "gpt", _i / 2);
    run(with(choice));
    ck_assert_str_eq(complaints, "");
    ck_assert(strlen(strcpy(first, out)) > 70);
    run(with(format("%s --no-cache", choice)));
    ck_assert_str_eq(out, first);
    if (_i % 2) return;
    run(with(format("llama --top-k %d", _i / 2)));
    ck_assert_str_ne(out, first);
}

/* ---- files of Tapehead ------------------------------------------------------------------------
 */

static const struct {
    const char *name, *flags, *file, *advice;
} readers[] = {
    {"pronounce", "--quiet --steps 0 --hidden 2 --show light", "examples/data/pronounce.txt",
     "name a dictionary, --words"},
    {"charlm", "--quiet --steps 0 --layers 1 --heads 1 --width 8 --context 8", "tensor/tensor.h",
     "name a --text"},
    {"exercises", "--only 1", "examples/exercises/students", "name your folder, --submission"},
};
enum { NUM_READERS = COUNT(readers) };

/* Runs the program of this row in $D/here as a shell finds it. An untrained model meets no
 * expectation, and an exercise that nobody did is not right. */
static void expect_found(int row, const char *started) {
    ck_assert_int_eq(
        shell(format("cd $D/here && PATH=$D/tapehead/build:$PATH && %s %s >../out 2>../err",
                     started, readers[row].flags)),
        1);
    slurp(path("out"), out, sizeof out);
    slurp(path("err"), complaints, sizeof complaints);
    ck_assert_str_eq(complaints, "");
    ck_assert_msg(*out, "%s printed nothing", started);
}

/* In another folder a program reads the files above its own. Without them it says where it has
 * looked. */
LOOP_TEST(finds_its_files_from_another_folder, NUM_READERS) {
    /* A shell starts them by their names. */
    if (left_out_under_emulator("finds_its_files_from_another_folder")) return;
    program = readers[_i].name;
    ck_assert_int_eq(shell("mkdir -p $D/tapehead/build $D/alone $D/here; for i in examples tensor"
                           " autograd nn; do ln -s \"$PWD/$i\" $D/tapehead/$i; done"),
                     0);
    ck_assert_int_eq(run_line(format("cp \"$B\"/%s $D/tapehead/build && cp \"$B\"/%s $D/alone &&"
                                     " ln -s ../tapehead/build/%s $D/here/link; exit;",
                                     program, program, program),
                              ""),
                     0);
    expect_found(_i, format("../tapehead/build/%s", program));
    expect_found(_i, format("$D/tapehead/build/%s", program));
    expect_found(_i, "./link");
#ifdef __linux__
    expect_found(_i, program);
#endif
    ck_assert_int_eq(run_line("B=../alone; cd $D/here &&", readers[_i].flags), 1);
    ck_assert_str_eq(complaints, format("%s: there is no %s here, and none in the folders above the"
                                        " program ../alone/%s: %s\n",
                                        program, readers[_i].file, program, readers[_i].advice));
}

int main(void) { return run_tests("programs"); }
