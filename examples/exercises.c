/* exercises.c - write the backward yourself: marks the functions in examples/exercises/students/.
 *
 * Each NN_name.c there has a forward and an empty backward. The program compiles each file, runs
 * the backward on several inputs with one-hot dy's, which gives its Jacobian, and compares it with
 * the right one. Where a number is wrong, it looks for the mistake that computes the same numbers.
 *
 * exercises/README.md is for students and for teachers. */
#include "common/flags.h"
#include "common/output.h"
#include "common/put_text.h"
#include "common/repository.h"
#include "exercises/marker/class.h"
#include "exercises/marker/points.h"
#include "exercises/marker/process.h"
#include "exercises/marker/results.h"
#include "exercises/marker/submission.h"
#include "exercises/marker/texts.h"

#include "../tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
static const char *file; /* that is named alone */
static bool github, no_numbers, watch, is_usual;
static bool arrays; /* exercises were named without --only: show the arrays */

static const Flag flags[] = {
    TEXT_FLAG("--submission", submission, "DIR", "examples/exercises/students",
              "Marks the files NN_name.c in this folder. A file that is not there is empty."),
    OUTPUT_FLAG("--json", json, "FILE.json", "Writes the marks as Gradescope's results.json."),
    TEXT_FLAG(
        "--only", only, "3,7b", "all",
        "Marks only these exercises: 3,attention,6.1. The numbers alone, as in `exercises 7b`, do\n"
        "the same, and show the arrays of a wrong number, and what the function printed. A file\n"
        "alone, `exercises attention.c`, is marked."),
    SEED_FLAG("--seed", seed, "Draws other inputs."),
    TEXT_FLAG("--class", class, "DIR", "none",
              "Marks every folder in this folder, a student's each: a table, and the commonest\n"
              "mistakes. The seed is drawn anew unless --seed names one."),
    OUTPUT_FLAG("--csv", csv, "FILE.csv", "Writes the table of --class there."),
    SWITCH_FLAG("--watch", watch, "Marks a file whenever it is saved."),
    SWITCH_FLAG("--github", github, "Prints a table in Markdown, for the summary of a workflow."),
    SWITCH_FLAG("--no-numbers", no_numbers, "Names a mistake and a stage, and no number."),
    TEXT_FLAG("--scratch", scratch, "FILE.c", "none", "Marks this file as attention.c."),
    TEXT_FLAG("--user", user, "NAME", "nobody, for root",
              "Where root marks, the compiler and the students' programs run as this user."),
};

/* ---- the command line --------------------------------------------------------------------------
 */

/* "3,7b", "6.1", "attention" */
static bool is_list(const char *text) {
    const char *rest = strncmp(text, "attention", 9) == 0 ? text + 9 : text;
    return (rest > text && (!*rest || *rest == ',')) || (*text >= '0' && *text <= '9');
}

static bool is_file(const char *text) {
    const size_t n = strlen(text);
    return *text != '-' && n > 2 && strcmp(text + n - 2, ".c") == 0;
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
        if (i > 0 && !is_value && !file && is_file(argv[i])) {
            file = argv[i];
            continue;
        }
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

/* Which exercises does "3,7b,attention" name? */
static void choose(const char *list, bool *chosen) {
    const int last = exercise_list[num_exercises - 1]->number;
    for (const char *at = list; *at;) {
        const char *comma = at + strcspn(at, ",");
        const char *end = comma;
        const bool all = comma - at == 9 && strncmp(at, "attention", 9) == 0;
        const int i = all ? 0 : exercise_named(at, &end);
        if (i < 0 || end != comma || (*comma && !comma[1]))
            flags_misuse("exercises",
                         "there is no exercise %.*s: they are 1 to %d, 7b and 10b, and attention "
                         "or one of its functions, as 6.1",
                         (int)(comma - at), at, last);
        for (int k = 0; exercise_at(k) && all; k++)
            if (exercise_at(k)->file) chosen[k] = true;
        if (!all) chosen[i] = true;
        at = *comma ? comma + 1 : comma;
    }
}

/* Where the files are, and which is taken as another one. */
static Submission from = {.prefix = ""};

/* The file that is named: chooses its exercises. */
static void choose_file(const char *path, bool *chosen) {
    static char folder[4096], as[80];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const Exercise *its = NULL;
    for (int i = 0; exercise_at(i); i++) {
        const char *right = exercise_source(exercise_at(i));
        const bool same = strncmp(name, right, strlen(right)) == 0;
        if (scratch ? exercise_at(i)->file != NULL
                    : same || (!its && submission_means(name, right)))
            its = exercise_at(i);
    }
    if (!its) flags_misuse("exercises", "%s: files are called 04_softmax.c or attention.c", path);
    for (int i = 0; exercise_at(i); i++)
        chosen[i] = its->file ? exercise_at(i)->file != NULL : exercise_at(i) == its;
    snprintf(as, sizeof as, "%s.c", exercise_source(its));
    from.given = name;
    from.as = as;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + (slash == path) : 1,
             slash ? path : ".");
    if (slash || access(name, F_OK) == 0 || scratch) submission = folder;
}

/* Is there an attention.c in which somebody has written, or one that is refused? */
static bool has_attention(void) {
    char path[4096], sentence[SENTENCE_SIZE];
    bool written = submission_refusal(submission, "attention.c", sentence, sizeof sentence);
    snprintf(path, sizeof path, "%.4000s/attention.c", submission);
    for (int i = 0; exercise_at(i) && !written; i++)
        if (exercise_at(i)->file) written = submission_is_written(path, exercise_at(i)->function);
    return written;
}

/* All that there is: the sixteen, and attention.c where somebody has written in it. */
static void choose_all(bool *chosen) {
    char path[4096];
    bool some = false;
    const bool attention = has_attention();
    for (int i = 0; exercise_list[i] && attention; i++) {
        snprintf(path, sizeof path, "%.4000s/%s.c", submission, exercise_file(exercise_list[i]));
        some = some || access(path, F_OK) == 0;
    }
    for (int i = 0; exercise_at(i); i++)
        chosen[i] = exercise_at(i)->file ? attention : some || !attention;
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

/* " --submission 'DIR' --seed 7": with a label, what shows the arrays. */
static const char *words_again(void) {
    static char words[8192];
    *words = '\0';
    if (!is_usual) put_text(words, sizeof words, " --submission '");
    for (const char *c = submission; *c && !is_usual; c++)
        put_text(words, sizeof words, "%s%c", *c == '\'' ? "'\\'" : "", *c);
    put_text(words, sizeof words, "%s --seed %" PRIu64, is_usual ? "" : "'", seed);
    return words;
}

static void print_mark(const Marking *marking, void *data) {
    (void)data;
    const bool renamed = from.given && strcmp(from.given, from.as) != 0;
    if (github) return;
    results_print(marking, arrays || no_numbers || renamed ? NULL : words_again());
    if (arrays) print_lesson(marking);
    if (arrays && !no_numbers && marking->mark.kind != MARK_NOT_MARKED)
        results_print_arrays(marking);
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
    if (list[n - 1].exercise->file)
        printf(", %d points of %d", results_points(list, n), results_most_points(list, n));
    putchar('.');
    if (next) {
        exercise_label(next->exercise, label);
        printf(" Next: %s, %s/%s.c", label, submission, exercise_source(next->exercise));
        if (next->exercise->file) printf(", %s", next->exercise->function);
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
        if (github) results_print_github(list, n);
        else print_summary(list, n);
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
    FILE *random = fopen("/dev/urandom", "rb");
    if (random) {
        (void)!fread(&number, sizeof number, 1, random);
        fclose(random);
    }
    return number;
}

static int mark_class(const bool *chosen, bool has_seed) {
    char sentence[SENTENCE_SIZE];
    Place place;
    const Class students = {class, csv, only ? chosen : NULL, has_seed ? seed : draw_seed()};
    if (!place_make(&place, sentence, sizeof sentence)) {
        fprintf(stderr, "exercises: %s\n", sentence);
        return 1;
    }
    const int status = class_mark(&place, &students);
    place_remove(&place);
    return status;
}

static int mark_chosen(Place *place, const bool *chosen) {
    static Marking list[MOST_EXERCISES];
    char sentence[SENTENCE_SIZE];
    int n = 0;
    memset(list, 0, sizeof list);
    for (int i = 0; exercise_at(i); i++)
        if (chosen[i]) list[n++].exercise = exercise_at(i);
    from.folder = submission;
    from.attention = list[n - 1].exercise->file;
    if (json && !output_write(json, results_write_unmarked, &(Results){list, n, seed})) return 1;
    if (!*place->folder && !place_make(place, sentence, sizeof sentence)) n = 0;
    if (n && place_take(place, &from, sentence, sizeof sentence)) return mark(place, list, n);
    fprintf(stderr, "exercises: %s\n", sentence);
    return 1;
}

/* ---- whenever a file is saved ------------------------------------------------------------------
 */

/* A file's time and size: editors that write a new file change both. */
static int64_t stamp_of(const Exercise *e) {
    char path[4096], name[NAME_SIZE];
    struct stat status;
    place_file(&from, e, name);
    snprintf(path, sizeof path, "%.3700s/%s", submission, name);
    if (stat(path, &status) != 0) return 0;
#ifdef __APPLE__
    const struct timespec saved = status.st_mtimespec;
#else
    const struct timespec saved = status.st_mtim;
#endif
    return (int64_t)saved.tv_sec * 1000000007 + saved.tv_nsec + status.st_size;
}

/* Marks what was chosen and has changed. */
static int watch_files(Place *place, const bool *chosen) {
    static const struct timespec moment = {0, 200000000};
    int64_t stamp[MOST_EXERCISES] = {0};
    for (int i = 0; exercise_at(i); i++) stamp[i] = stamp_of(exercise_at(i));
    printf("%s is watched; Ctrl-C ends it.\n", submission);
    fflush(stdout);
    while (!process_interrupted() && !output_reader_is_gone()) {
        bool changed[MOST_EXERCISES] = {false}, any = false;
        for (int i = 0; exercise_at(i); i++) {
            const int64_t now = stamp_of(exercise_at(i));
            changed[i] = chosen[i] && now && now != stamp[i];
            any = any || changed[i];
            stamp[i] = now;
        }
        if (any) mark_chosen(place, changed);
        nanosleep(&moment, NULL);
    }
    return 0;
}

static int mark_here(const bool *chosen) {
    Place place = {.folder = ""};
    const int status = watch ? watch_files(&place, chosen) : mark_chosen(&place, chosen);
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
    if (file && (only || *numbers || submission != usual))
        flags_misuse("exercises", "%s is marked alone: without other exercises or --submission",
                     file);
    if (csv && !class) flags_misuse("exercises", "--csv is for --class");
    if (watch && json) flags_misuse("exercises", "--watch marks again and again: without --json");
    if (class && (file || json || github || watch || *numbers || submission != usual))
        flags_misuse("exercises", "--class goes with --csv, --only, --seed and --user alone");
}

static bool can_write(const char *path) {
    if (!path || tensor_can_write_file(path)) return true;
    fprintf(stderr, "exercises: %s\n", tensor_error());
    return false;
}

/* The folder of the files, and what is marked. */
static bool find_submission(const char *numbers, bool *chosen) {
    const bool here = submission == usual;
    if (file) choose_file(file, chosen);
    choose(only ? only : numbers, chosen);
    is_usual = !class && here && submission == usual;
    if (is_usual) submission = repository_find(usual, "name your folder, --submission");
    if (class || !submission) return class != NULL;
    cut_slashes();
    if (!file && !only && !*numbers) choose_all(chosen);
    int n = 0;
    for (int i = 0; exercise_at(i); i++) n += chosen[i];
    arrays = (*numbers || file) && !strstr(numbers, "attention") && (!file || n == 1);
    return true;
}

int main(int argc, char **argv) {
    static char numbers[256];
    char sentence[SENTENCE_SIZE];
    bool chosen[MOST_EXERCISES] = {false};
    const bool has_seed = has_flag(argc, argv, "--seed");
    argc = take_numbers(argc, argv, numbers, sizeof numbers);
    flags_parse(argc, argv, "exercises", "marks the backwards that you write", flags,
                sizeof flags / sizeof *flags);
    if (scratch) file = scratch;
    check_flags(numbers);
    diagnosis_hides_numbers = no_numbers;
    if (!points_are_read(text_named("points.txt"), sentence, sizeof sentence)) {
        fprintf(stderr, "exercises: %s\n", sentence);
        return 1;
    }
    if (!can_write(json) || !can_write(csv)) return 1;
    if (!process_prepare(user, sentence, sizeof sentence))
        flags_misuse("exercises", "%s", sentence);
    int status = 1;
    if (find_submission(numbers, chosen))
        status = class ? mark_class(chosen, has_seed) : mark_here(chosen);
    if (output_reader_is_gone()) return OUTPUT_READER_GONE;
    if (!tensor_error() && output_stdout_ok()) return status;
    fprintf(stderr, "exercises: %s\n",
            tensor_error() ? tensor_error() : "cannot write to standard output");
    return 1;
}
