/* exercises.c - write the backward yourself: marks the functions in examples/exercises/students/.
 *
 * Each NN_name.c there has a forward and an empty backward. The program compiles each file, runs
 * the backward on several inputs with one-hot dy's, which gives its Jacobian, and compares it with
 * the library's. Where a number is wrong, it looks for the mistake that computes the same numbers.
 *
 * exercises/README.md is for students and for teachers. */
#include "common/flags.h"
#include "common/output.h"
#include "common/repository.h"
#include "exercises/marker/class.h"
#include "exercises/marker/marking.h"
#include "exercises/marker/process.h"
#include "exercises/marker/results.h"
#include "exercises/marker/scratch.h"

#include "../tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usual[] = "examples/exercises/students";
static const char *submission = usual;
static const char *json;
static const char *only;
static uint64_t seed = 7;
static const char *user;
static const char *class;
static const char *csv;
static const char *scratch;
static bool arrays; /* exercises were named without --only: show the arrays */

static const Flag flags[] = {
    TEXT_FLAG("--submission", submission, "DIR", "examples/exercises/students",
              "Marks the files NN_name.c in this folder. A file that is not there is empty."),
    OUTPUT_FLAG("--json", json, "FILE.json", "Writes the marks as Gradescope's results.json."),
    TEXT_FLAG(
        "--only", only, "3,7b", "all",
        "Marks only these exercises. The numbers alone, as in `exercises 7b`, do the same, and\n"
        "show the arrays of a wrong number, and what the function printed."),
    SEED_FLAG("--seed", seed, "Draws other inputs."),
    TEXT_FLAG("--class", class, "DIR", "none",
              "Marks every folder in this folder, a student's each: a table, and the commonest\n"
              "mistakes. The seed is drawn anew unless --seed names one."),
    TEXT_FLAG("--scratch", scratch, "FILE.c", "none",
              "Marks this attention.c, of exercises/students/: eighteen functions, 100 points."),
    OUTPUT_FLAG("--csv", csv, "FILE.csv", "Writes the table of --class there."),
    TEXT_FLAG("--user", user, "NAME", "nobody, for root",
              "Where root marks, the compiler and the students' programs run as this user."),
};

/* ---- the command line --------------------------------------------------------------------------
 */

static bool is_list(const char *text) {
    return *text >= '0' && *text <= '9' && text[strspn(text, "0123456789b,")] == '\0';
}

/* Does this flag take the next argument as its value? */
static bool takes_next(const char *text) {
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].kind != FLAG_SWITCH && strcmp(text, flags[i].name) == 0) return true;
    return false;
}

/* Takes numbers without a flag out of the arguments, and adds them to `numbers`. */
static int take_numbers(int argc, char **argv, char *numbers, size_t size) {
    int left = 0;
    for (int i = 0; i < argc; i++) {
        const bool is_value = i > 1 && takes_next(argv[i - 1]);
        if (i > 0 && !is_value && strncmp(argv[i], "--solution", 10) == 0)
            flags_misuse("exercises",
                         "there is no --solution: a right answer names the same loop in "
                         "the library, and a wrong one gets a question");
        if (i == 0 || is_value || !is_list(argv[i])) {
            argv[left++] = argv[i];
            continue;
        }
        const size_t at = strlen(numbers);
        snprintf(numbers + at, size - at, "%s%s", at ? "," : "", argv[i]);
    }
    argv[left] = NULL;
    return left;
}

/* Which exercises of exercise_list does "3,7b" name? */
static void choose(const char *list, bool *chosen) {
    const int last = exercise_list[num_exercises - 1]->number;
    for (const char *at = list; *at;) {
        const char *end;
        const int i = exercise_named(at, &end);
        if (!only && is_list(at) && i < 0)
            flags_misuse("exercises", "there is no exercise %.*s: they are 1 to %d, 7b and 10b",
                         (int)strcspn(at, ","), at, last);
        if (!is_list(at) || i < 0)
            flags_misuse("exercises",
                         "--only wants numbers from 1 to %d, 7b or 10b, as 3,7b, not \"%s\"", last,
                         list);
        chosen[i] = true;
        at = *end == ',' ? end + 1 : end;
    }
}

static void choose_all(bool *chosen) {
    for (int i = 0; i < num_exercises; i++) chosen[i] = true;
}

/* ---- marking -----------------------------------------------------------------------------------
 */

/* Where the rule is explained; not before an attempt, if the lesson has the answer, and not when
 * the machine has failed. */
static void print_lesson(const Marking *marking) {
    const Exercise *e = marking->exercise;
    const MarkKind kind = marking->mark.kind;
    const char *with = e->lesson_switch;
    const char *note = e->lesson_note;
    if (kind == MARK_RIGHT || kind == MARK_NOT_MARKED) return;
    if (!e->step || (e->lesson_has_answer && kind == MARK_EMPTY)) return;
    printf("%*sThe lesson: run build/explain and open explain.html#%d/%s%s%s%s in a browser,\n", 22,
           "", e->lesson, e->step, with ? "&" : "", with ? with : "", with ? "=1" : "");
    printf("%*sor build/explain --text --lesson %d%s%s: step %s", 22, "", e->lesson,
           with ? " --" : "", with ? with : "", e->step);
    if (note) printf(" (%s)", note);
    putchar('\n');
}

static void print_mark(const Marking *marking, void *data) {
    (void)data;
    results_print(marking, arrays || scratch ? NULL : &seed);
    if (arrays) print_lesson(marking);
    if (arrays && marking->mark.kind != MARK_NOT_MARKED) results_print_arrays(marking);
    fflush(stdout);
}

static int count(const Marking *list, int n, MarkKind kind) {
    int marks = 0;
    for (int i = 0; i < n; i++) marks += list[i].mark.kind == kind;
    return marks;
}

static void print_summary(const Marking *list, int n) {
    const int right = count(list, n, MARK_RIGHT), unmarked = count(list, n, MARK_NOT_MARKED);
    const Marking *next = NULL;
    char label[LABEL_SIZE];
    for (int i = n; i-- > 0;)
        if (list[i].mark.kind != MARK_RIGHT && list[i].mark.kind != MARK_NOT_MARKED)
            next = &list[i];
    printf("\n%d of %d %s right", right, n, right == 1 ? "is" : "are");
    if (scratch) printf(", %d points of 100", results_points(list, n));
    putchar('.');
    if (next && scratch) {
        exercise_label(next->exercise, label);
        printf(" Next: %s, %s", label, next->exercise->function);
    } else if (next) {
        exercise_label(next->exercise, label);
        printf(" Next: %s, %s/%s.c", label, submission, exercise_file(next->exercise));
    }
    printf("\n%d passed, %d failed", right, n - right - unmarked);
    if (unmarked) printf(", %d not marked", unmarked);
    putchar('\n');
}

/* "sub/" -> "sub": a slash comes before a file's name. */
static void cut_slashes(void) {
    static char folder[4096];
    size_t n = strlen(submission);
    while (n > 1 && submission[n - 1] == '/') n--;
    if (n >= sizeof folder) return;
    memcpy(folder, submission, n);
    submission = folder;
}

/* The exit status. */
static int mark(const Place *place, Marking *list, int n) {
    const Results results = {list, n, seed};
    marking_run(list, n, place, seed, print_mark, NULL);
    int status = 130;
    if (!process_interrupted()) {
        print_summary(list, n);
        if (json) output_write(json, results_write_json, &results);
        status = count(list, n, MARK_RIGHT) == n ? 0 : 1;
        if (count(list, n, MARK_NOT_MARKED)) status = RESULTS_NOT_MARKED;
    }
    marking_free(list, n);
    return status;
}

/* Nobody knows it before. */
static uint64_t draw_seed(void) {
    uint32_t number = (uint32_t)time(NULL) * 2654435761U ^ (uint32_t)getpid();
    FILE *file = fopen("/dev/urandom", "rb");
    if (file) {
        (void)!fread(&number, sizeof number, 1, file);
        fclose(file);
    }
    return number;
}

static int mark_class(const bool *chosen, bool has_seed) {
    char sentence[SENTENCE_SIZE];
    Place place;
    const Class students = {class, csv, chosen, has_seed ? seed : draw_seed()};
    if (!place_make(&place, sentence, sizeof sentence)) {
        fprintf(stderr, "exercises: %s\n", sentence);
        return 1;
    }
    const int status = class_mark(&place, &students);
    place_remove(&place);
    return status;
}

static int mark_one(const bool *chosen) {
    static Marking list[MOST_EXERCISES];
    char sentence[SENTENCE_SIZE];
    Place place;
    if (submission == usual && !scratch)
        submission = repository_find(usual, "name your folder, --submission");
    if (!submission) return 1;
    cut_slashes();
    int status = 1, n = 0;
    for (int i = 0; i < num_exercises && !scratch; i++)
        if (chosen[i]) list[n++].exercise = exercise_list[i];
    for (int i = 0; i < SCRATCH && scratch; i++) list[n++].exercise = scratch_exercise(i);
    if (json && !output_write(json, results_write_unmarked, &(Results){list, n, seed})) return 1;
    if (!place_make(&place, sentence, sizeof sentence) ||
        !(scratch ? scratch_take(&place, scratch, sentence, sizeof sentence)
                  : place_take(&place, submission, sentence, sizeof sentence)))
        fprintf(stderr, "exercises: %s\n", sentence);
    else status = mark(&place, list, n);
    place_remove(&place);
    return status;
}

static bool has_flag(int argc, char **argv, const char *flag) {
    const size_t n = strlen(flag);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], flag, n) == 0 && (!argv[i][n] || argv[i][n] == '=')) return true;
    return false;
}

/* Flags of which only one can be obeyed. */
static void check_flags(const char *numbers) {
    if (only && *numbers)
        flags_misuse("exercises", "--only %s and %s: use one of them", only, numbers);
    if (scratch && (class || only || *numbers || submission != usual))
        flags_misuse("exercises", "--scratch goes with --json, --seed and --user alone");
    if (csv && !class) flags_misuse("exercises", "--csv is for --class");
    if (class && (json || *numbers || submission != usual))
        flags_misuse("exercises", "--class goes with --csv, --only, --seed and --user alone");
}

static bool can_write(const char *path) {
    if (!path || tensor_can_write_file(path)) return true;
    fprintf(stderr, "exercises: %s\n", tensor_error());
    return false;
}

int main(int argc, char **argv) {
    static char numbers[256];
    bool chosen[MOST_EXERCISES] = {false};
    const bool has_seed = has_flag(argc, argv, "--seed");
    argc = take_numbers(argc, argv, numbers, sizeof numbers);
    flags_parse(argc, argv, "exercises", "marks the backwards that you write", flags,
                sizeof flags / sizeof *flags);
    check_flags(numbers);
    arrays = *numbers;
    if (!*numbers && !only) choose_all(chosen);
    choose(only ? only : numbers, chosen);
    if (!can_write(json) || !can_write(csv)) return 1;
    char sentence[SENTENCE_SIZE];
    if (!process_prepare(user, sentence, sizeof sentence))
        flags_misuse("exercises", "%s", sentence);
    const int status = class ? mark_class(chosen, has_seed) : mark_one(chosen);
    if (output_reader_is_gone()) return OUTPUT_READER_GONE;
    if (!tensor_error() && output_stdout_ok()) return status;
    fprintf(stderr, "exercises: %s\n",
            tensor_error() ? tensor_error() : "cannot write to standard output");
    return 1;
}
