/* test_answers.c - is every answer of tests/submissions marked rightly?
 *
 * All answers to an exercise are one program: tools/answers.awk gives the functions of each the
 * number of the answer, and the name of the program says which one it is, so only the compiler and
 * the linker run once. Trials, diagnosis and words are those of build/exercises. What it does
 * around them, and the answers that are marked alone, are in test_exercises.
 *
 * submissions/scratch.txt has bodies of functions of attention from scratch, each under a line with
 * the name of the function and its mark. They are one file (tools/attention.awk), and the student's
 * own check must find every wrong one, too. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../examples/exercises/marker/marking.h"
#include "../../../examples/exercises/marker/points.h"
#include "../common.h"
#include "../common_program.h"

enum { EXERCISES = 16, ANSWERS = 128, TEXT = 1 << 19 };

static Place place;
static char there[PATH_SIZE / 2]; /* the folder of the program */

/* ---- the program ----------------------------------------------------------------------------- */

/* What a shell line prints, to the end. */
static void read_lines(const char *line, char *text) {
    FILE *lines = popen(line, "r");
    ck_assert_ptr_nonnull(lines);
    const size_t n = fread(text, 1, TEXT - 1, lines);
    text[n] = '\0';
    ck_assert_int_lt((int)n, TEXT - 1);
    ck_assert_msg(pclose(lines) == 0, "%s", line);
}

/* Answer n calls its function with the arrays of a call. */
static void write_case(FILE *file, const Exercise *e, int n) {
    fprintf(file, "case %d: %s_%d(%s); break;\n", n, e->function, n, e->arguments);
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}
static bool is_alone(const char *mark) {
    return begins(mark, "alone ") || begins(mark, "no-compile") || begins(mark, "empty");
}

/* Finds the mark of each answer; under it are the lines that say what must be said. */
static int find_marks(const char *file, const char *marks[ANSWERS]) {
    static char heads[TEXT];
    int n = 0;
    read_lines(
        format("awk -v show=heads -f tests/tools/answers.awk tests/submissions/%s.txt", file),
        heads);
    for (const char *at = heads; at; at = strstr(at, "\n==== ")) {
        at += strlen(n ? "\n==== " : "==== ");
        ck_assert_int_lt(n, ANSWERS);
        marks[n++] = at;
    }
    return n;
}

/* The program is compiled with the marker's own flags, and around it is the marker's harness. */
static void make_program(const Exercise *e, const char *const marks[ANSWERS], int n) {
    static char text[TEXT];
    const char *name = exercise_file(e);
    ck_assert(process_make_folder_in(place.folder, name, true, there, sizeof there));
    read_lines(format("awk -f tests/tools/answers.awk tests/submissions/%s.txt", name), text);
    FILE *file = fopen(format("%s/all.c", there), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fprintf(file,
            "void tapehead_call(const int *size, const double *number, void *const *array) {\n"
            "switch (atoi(strrchr(program_invocation_name, '-') + 1)) {\n");
    for (int i = 0; i < n; i++)
        if (!is_alone(marks[i])) write_case(file, e, i);
    fprintf(file, "}}\n");
    ck_assert_int_eq(fclose(file), 0);
    const char *line = format(
        "cd %s && ${CC:-cc} -std=gnu11 -O0 -w -fsanitize=bounds -I../kit -c all.c && "
        "${CC:-cc} all.o ../objects/harness.o "
        "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=aligned_alloc "
        "-Wl,--wrap=memalign,--wrap=posix_memalign,--wrap=reallocarray,--wrap=mmap %s -lm -o program.exe",
        there, place.links_statically ? "-static" : "");
    ck_assert_int_eq(system(line), 0);
}

/* ---- the marks ------------------------------------------------------------------------------- */

static char complaint[1 << 12]; /* about the answers to an exercise; Check has no room for more */

__attribute__((format(printf, 1, 2))) static void complain(const char *text, ...) {
    const size_t at = strlen(complaint);
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(complaint + at, sizeof complaint - at, text, arguments);
    va_end(arguments);
}

/* "no_scale", or "da_untransposed+db_untransposed" */
static void ids_of(const Mark *mark, char ids[128]) {
    *ids = '\0';
    for (int i = 0; i < MOST_OUTPUTS && mark->mistakes[i]; i++)
        snprintf(ids + strlen(ids), 128 - strlen(ids), "%s%s", i ? "+" : "", mark->mistakes[i]->id);
}

/* "wrong - half of it @dp" has the result "wrong", no id, and the first wrong stage dp; "not right"
 * is any end but a right one, an endless loop and a file that does not compile. */
static bool is_the_mark(const char *wanted, const Mark *mark) {
    char result[32], id[64] = "", ids[128];
    const char *is = mark_names[mark->kind];
    ids_of(mark, ids);
    sscanf(wanted, "%31s %63s", result, id);
    if (strcmp(result, "not") == 0)
        return mark->kind != MARK_RIGHT && mark->kind != MARK_TIMEOUT &&
               mark->kind != MARK_NO_COMPILE && mark->kind != MARK_NOT_MARKED;
    if ((strcmp(result, "wrong") != 0 && !strchr(id, '_')) || strcmp(id, "-") == 0) *id = '\0';
    const char *stage = strchr(wanted, '@');
    return strcmp(is, result) == 0 && strcmp(ids, id) == 0 &&
           (!stage || strcmp(mark->stage, stage + 1) == 0);
}

/* The lines under the mark: "says: " what must be in its text, "says once: ", and "says not: ". */
static void check_words(const char *title, const char *line, const Mark *mark) {
    char words[1024];
    for (; begins(line, "says"); line += strcspn(line, "\n") + 1) {
        const bool wanted = !begins(line, "says not: ");
        const char *from = strchr(line, ':') + 2;
        snprintf(words, sizeof words, "%.*s", (int)strcspn(from, "\n"), from);
        const char *at = strstr(mark->text, words);
        if (begins(line, "says once: ") && at && strstr(at + 1, words))
            complain("\n%s: it says twice: %s\n%s", title, words, mark->text);
        if ((at != NULL) != wanted)
            complain("\n%s: it %s: %s\n%s", title, wanted ? "does not say" : "says", words,
                     mark->text);
    }
}

static void check_mark(const Exercise *e, int n, const char *at, const Mark *mark) {
    char title[256], wanted[128], ids[128];
    snprintf(wanted, sizeof wanted, "%.*s", (int)strcspn(at, "\n"), at);
    snprintf(title, sizeof title, "%s, answer %d, %s", exercise_title(e), n, wanted);
    ids_of(mark, ids);
    if (!is_the_mark(wanted, mark))
        complain("\n%s: it is %s %s%s%s\n%s", title, mark_names[mark->kind], *ids ? ids : "-",
                 *mark->stage ? " @" : "", mark->stage, mark->text);
    const char *said = strstr(mark->text, " this: ");
    if (*ids && !(said && strchr(said, '?') && !strpbrk(said, "{}")))
        complain("\n%s: no words\n%s", title, mark->text);
    check_words(title, at + strcspn(at, "\n") + 1, mark);
}

/* Tries answer n, which is the program with this number in its name. */
static void mark_answer(Marking *marking, int n, const char *mark) {
    Trial *trial = &marking->trial;
    *trial = (Trial){.stopped = -1, .place = &place};
    snprintf(trial->program, sizeof trial->program, "%s/%s-%d", there, marking->exercise->name, n);
    snprintf(trial->printed, sizeof trial->printed, "%s/printed", there);
    ck_assert_int_eq(link(format("%s/program.exe", there), trial->program), 0);
    trial_compute(trial, marking->exercise, &marking->given, 0);
    marking_finish(marking);
    check_mark(marking->exercise, n, mark, &marking->mark);
    trial_free(trial);
}

static bool all_of_them; /* with ALL=1 */
/* Of an edit with several values the first and the last are enough. */
static bool is_left_out(const char *const *marks, int i, int n) {
    const size_t length = strcspn(marks[i], "\n") + 1;
    const bool between = i > 0 && i + 1 < n && strncmp(marks[i - 1], marks[i], length) == 0 &&
                         strncmp(marks[i], marks[i + 1], length) == 0;
    return is_alone(marks[i]) || (between && !all_of_them);
}

static void begin_place(void) {
    char sentence[SENTENCE_SIZE];
    signal(SIGXFSZ, SIG_IGN); /* as the marker does */
    ck_assert(process_prepare(NULL, sentence, sizeof sentence));
    ck_assert_msg(place_make(&place, sentence, sizeof sentence), "%s", sentence);
}
static void end_place(void) {
    place_remove(&place);
    ck_assert_msg(!*complaint, "%s", complaint);
}
static Marking begin_marking(const Exercise *e) {
    Marking marking = {.exercise = e, .given = calls_draw(e, 7)};
    marking.right = calls_copy(e, &marking.given);
    calls_right(e, &marking.right);
    return marking;
}
static void end_marking(Marking *marking) {
    calls_free(&marking->given);
    calls_free(&marking->right);
}

CASE("answers", .seconds = 300, .is_long = true)
LOOP_TEST(answers_are_marked_rightly, EXERCISES) {
    const char *marks[ANSWERS];
    const Exercise *e = exercise_list[_i];
    begin_place();
    const int n = find_marks(exercise_file(e), marks);
    make_program(e, marks, n);
    Marking marking = begin_marking(e);
    for (int i = 0; i < n; i++)
        if (!is_left_out(marks, i, n)) mark_answer(&marking, i, marks[i]);
    end_marking(&marking);
    end_place();
}

TEST(there_are_enough_answers) {
    const char *marks[ANSWERS];
    int nameless = 0;
    for (int i = 0; i < EXERCISES; i++) {
        int right_ones = 0;
        for (int n = find_marks(exercise_file(exercise_list[i]), marks); n > 0; n--) {
            if (begins(marks[n - 1], "right") || begins(marks[n - 1], "alone right")) right_ones++;
            if (begins(marks[n - 1], "wrong -")) nameless++;
        }
        ck_assert_int_ge(right_ones, 3);
    }
    ck_assert_int_ge(nameless, 12);
}

static void expect_points(const char *lines, bool are_read) {
    char sentence[SENTENCE_SIZE] = "";
    ck_assert_msg(points_are_read(lines, sentence, sizeof sentence) == are_read, "%s: %s", lines,
                  sentence);
    ck_assert(are_read || strncmp(sentence, "points.txt: \"", 13) == 0);
}

/* A line that cannot be read is refused, and not taken as 0 points. */
TEST(points) {
    static const char *const refused[] = {"03_product",
                                          "03_product ten",
                                          "03_product 1.5",
                                          "03_product -1",
                                          "product 4",
                                          "3_product 4",
                                          "03_product 4 da",
                                          "03_product 4 da 4 da 0",
                                          "03_product 4 da 1",
                                          "03_product 4 a 4",
                                          "03_product 4 dc 4",
                                          "03_product 4 4",
                                          "03_product 4\n03_product 4"};
    for (size_t i = 0; i < COUNT(refused); i++) expect_points(refused[i], false);
    expect_points("01_scale 0\n\n03_product 4 da 1 db 3\nmodel 7", true);
    ck_assert_int_eq(points_of(exercise_at(0)), 0);
    ck_assert_int_eq(points_of(exercise_at(1)), 1);
    ck_assert_int_eq(points_of(exercise_at(2)), 4);
}

/* ---- attention from scratch ------------------------------------------------------------------ */

/* The mark of answer k to a function, "wrong last_term"; NULL if there are fewer. */
static const char *mark_of(const char *function, int k) {
    static const char *marks[ANSWERS];
    static int n = 0;
    const size_t length = strlen(function);
    if (n == 0) n = find_marks("scratch", marks);
    for (int i = 0; i < n; i++)
        if (begins(marks[i], function) && marks[i][length] == ' ' && k-- == 0)
            return marks[i] + length + 1;
    return NULL;
}

/* The file with all answers, $D/attention.c. */
static void write_functions(void) {
    ck_assert_int_eq(
        shell("awk -f tests/tools/attention.awk examples/micro.c tests/submissions/scratch.txt "
              "examples/exercises/students/attention.c >$D/attention.c"),
        0);
}

/* The student's file is compiled once, and linked for each function. */
static void mark_function(const Exercise *e) {
    char messages[1024];
    const char *name = exercise_file(e);
    ck_assert(place_prepare(&place, e));
    ck_assert(process_make_folder_in(place.folder, name, true, there, sizeof there));
    ck_assert_msg(process_succeeded(place_link_whole(&place, e, messages, sizeof messages)), "%s",
                  messages);
    Marking marking = begin_marking(e);
    for (int k = 0; mark_of(e->name, k); k++)
        if (all_of_them || !begins(mark_of(e->name, k), "timeout"))
            mark_answer(&marking, k, mark_of(e->name, k));
    end_marking(&marking);
}

PROGRAM_CASE("attention from scratch", .is_long = true)
TEST(functions_are_marked_rightly) {
    char sentence[SENTENCE_SIZE];
    write_functions();
    begin_place();
    ck_assert_msg(
        place_take(&place, &(Submission){folder, "", NULL, NULL, true}, sentence, sizeof sentence),
        "%s", sentence);
    ck_assert(place.whole);
    /* Else all of it is compiled once more for each mistake without a name, for a warning. */
    ck_assert_int_eq(shell(format("rm %s/source/*", place.folder)), 0);
    for (int i = 0; i < SCRATCH; i++) mark_function(scratch_exercise(i));
    end_place();
}

/* Is this answer right for the student's own check, in the stage of its function? */
static bool the_check_says_right(const Exercise *e, int k) {
    const char *name = format("$D/%s-%d", e->name, k);
    return shell(format("exec 2>/dev/null; ulimit -c 0; ln $D/attention %s && %s %d >$D/out", name,
                        name, e->number / 10)) == 0;
}

TEST(the_check_finds_every_mistake) {
    write_functions();
    ck_assert_int_eq(shell("sed 's/SECONDS = 10/SECONDS = 1/' examples/exercises/students/check.h "
                           ">$D/check.h && ${CC:-cc} -O0 -w $D/attention.c -o $D/attention -lm"),
                     0);
    for (int i = 0; i < SCRATCH; i++) {
        const Exercise *e = scratch_exercise(i);
        for (int k = 0; mark_of(e->name, k); k++) {
            const char *mark = mark_of(e->name, k);
            const bool right = the_check_says_right(e, k);
            /* Arrays of a fixed size are large enough for its numbers. */
            if (right && begins(mark, "crash")) continue;
            ck_assert_msg(right == begins(mark, "right"), "%s, %.40s: the check says %s", e->name,
                          mark, right ? "right" : "wrong");
        }
    }
}

int main(void) {
    all_of_them = sampled(2, 2) == 2;
    setenv("CK_FORK", "yes", 1); /* each test has a program and a folder of its own */
    return run_tests("answers");
}
