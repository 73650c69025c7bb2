/* class.c - marks a class: see class.h. */
#include "class.h"

#include "../../../tensor/tensor.h"
#include "../../common/output.h"
#include "../../common/put_text.h"
#include "points.h"
#include "results.h"
#include "submission.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what is kept of a student ----------------------------------------------------------------
 */

typedef struct {
    MarkKind kind;
    const KnownMistake *mistake[MOST_OUTPUTS]; /* NULL after the last one */
    char stage[32];
    int points;
} Cell;

typedef struct {
    char name[256];            /* of the folder */
    char shown[256];           /* the same, without characters that a terminal would obey */
    char prefix[256];          /* of all files' names, where all students' lie in one folder */
    Cell cell[MOST_EXERCISES]; /* of the exercises that are marked, in their order */
} Student;

typedef struct {
    const Class *class;
    Student *student; /* by name */
    int students;
    const Exercise *exercise[MOST_EXERCISES];
    int n; /* exercises that are marked */
} Table;

static int by_name(const void *a, const void *b) {
    return strcmp(((const Student *)a)->name, ((const Student *)b)->name);
}

static bool is_link(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static void name_student(Student *student, const char *name) {
    memset(student, 0, sizeof *student);
    snprintf(student->name, sizeof student->name, "%s", name);
    snprintf(student->shown, sizeof student->shown, "%s", name);
    submission_make_plain(student->shown);
}

static void say_link(const char *name) {
    Student none;
    name_student(&none, name);
    fprintf(stderr, "exercises: %s is a link, and no student's folder\n", none.shown);
}

static bool add_student(Table *table, const char *name, const char *prefix) {
    for (int i = 0; i < table->students && *prefix; i++)
        if (strcmp(table->student[i].prefix, prefix) == 0) return true;
    Student *longer =
        realloc(table->student, ((size_t)table->students + 1) * sizeof *table->student);
    if (!longer) return tensor_fail("out of memory");
    table->student = longer;
    Student *student = &longer[table->students++];
    name_student(student, name);
    snprintf(student->prefix, sizeof student->prefix, "%s", prefix);
    return true;
}

/* "ada_17_07b_mean_variance.c" is a file of the student ada_17. */
static bool add_owner(Table *table, const char *file) {
    char prefix[256], name[256];
    size_t length = 0;
    for (int i = 0; exercise_at(i) && !length; i++)
        length = submission_prefix(file, exercise_source(exercise_at(i)));
    snprintf(prefix, sizeof prefix, "%.*s", (int)length, file);
    snprintf(name, sizeof name, "%.*s", length ? (int)length - 1 : 0, file);
    return !length || add_student(table, name, prefix);
}

/* Every folder is a student's; where there are none, every beginning of a file's name. False with
 * an error. */
static bool find_students(Table *table) {
    const char *where = table->class->folder;
    for (int files = 0; files < 2 && !table->students; files++) {
        DIR *folder = opendir(where);
        if (!folder) return tensor_fail("%s: there is no such folder; --class names one", where);
        bool ok = true;
        for (struct dirent *item = readdir(folder); item && ok; item = readdir(folder)) {
            char path[PATH_SIZE];
            snprintf(path, sizeof path, "%s/%s", where, item->d_name);
            if (*item->d_name == '.') continue;
            if (!files && is_link(path)) say_link(item->d_name);
            if (submission_is_folder(path) == files) continue;
            ok = files ? add_owner(table, item->d_name) : add_student(table, item->d_name, "");
        }
        closedir(folder);
        if (!ok) return false;
    }
    if (!table->students)
        return tensor_fail("%s: it has no folders of students, and no ada_04_softmax.c", where);
    qsort(table->student, (size_t)table->students, sizeof *table->student, by_name);
    return true;
}

static void locate(const Table *table, const Student *student, char folder[PATH_SIZE / 2],
                   Submission *from) {
    const char *name = *student->prefix ? "" : student->name;
    snprintf(folder, PATH_SIZE / 2, "%s%s%s", table->class->folder, *name ? "/" : "", name);
    *from = (Submission){.folder = folder, .prefix = student->prefix};
}

/* Which exercises are marked: those that are named, or all for which somebody has a file. */
static void choose(Table *table) {
    char folder[PATH_SIZE / 2], sentence[SENTENCE_SIZE];
    bool some[2] = {false}; /* of the sixteen, and attention.c */
    for (int i = 0; exercise_at(i) && !table->class->chosen; i++)
        for (int s = 0; s < table->students && !some[exercise_at(i)->file != NULL]; s++) {
            Submission from;
            locate(table, &table->student[s], folder, &from);
            some[exercise_at(i)->file != NULL] =
                !place_is_missing(&from, exercise_at(i), sentence, sizeof sentence);
        }
    if (!some[1]) some[0] = true;
    for (int i = 0; exercise_at(i); i++)
        if (table->class->chosen ? table->class->chosen[i] : some[exercise_at(i)->file != NULL])
            table->exercise[table->n++] = exercise_at(i);
}

static void keep(const Marking *marking, void *data) {
    Cell *cell = *(Cell **)data;
    const Mark *mark = &marking->mark;
    *cell = (Cell){.kind = mark->kind, .points = points_for(marking)};
    memcpy(cell->stage, mark->stage, sizeof cell->stage);
    memcpy(cell->mistake, mark->mistakes, sizeof cell->mistake);
    ++*(Cell **)data;
}

/* ---- the table --------------------------------------------------------------------------------
 */

/* A spreadsheet takes a cell that begins with = + - or @ for a formula, between quotes, too. */
static void write_cell(FILE *file, const char *text) {
    putc('"', file);
    if (*text && strchr("=+-@", *text)) putc('\'', file);
    for (; *text; text++) fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', file);
}

static void write_names(FILE *file, const Table *table) {
    fputs("student", file);
    for (int i = 0; i < table->n; i++) fprintf(file, ",%s", exercise_title(table->exercise[i]));
    fputs(",points,of,mistake,stage\n", file);
}

static int count(const Table *table, const Student *student, MarkKind kind) {
    int marks = 0;
    for (int i = 0; i < table->n; i++) marks += student->cell[i].kind == kind;
    return marks;
}

static int points(const Table *table, const Student *student) {
    int sum = 0;
    for (int i = 0; i < table->n; i++) sum += student->cell[i].points;
    return sum;
}

static int most_points(const Table *table) {
    int sum = 0;
    for (int i = 0; i < table->n; i++) sum += points_of(table->exercise[i]);
    return sum;
}

/* "03_product: da_untransposed+db_untransposed; 04_softmax: no_sum" */
static void write_mistakes(FILE *file, const Table *table, const Student *student) {
    const char *between = "";
    for (int i = 0; i < table->n; i++) {
        const Cell *cell = &student->cell[i];
        if (!cell->mistake[0]) continue;
        fprintf(file, "%s%s: %s", between, exercise_title(table->exercise[i]),
                cell->mistake[0]->id);
        for (int k = 1; k < MOST_OUTPUTS && cell->mistake[k]; k++)
            fprintf(file, "+%s", cell->mistake[k]->id);
        between = "; ";
    }
}

static void write_stages(FILE *file, const Table *table, const Student *student) {
    const char *between = "";
    for (int i = 0; i < table->n; i++) {
        if (!*student->cell[i].stage) continue;
        fprintf(file, "%s%s: %s", between, exercise_title(table->exercise[i]),
                student->cell[i].stage);
        between = "; ";
    }
}

/* No points if the machine has failed at an exercise. */
static void write_student(FILE *file, const Table *table, const Student *student) {
    write_cell(file, student->shown);
    for (int i = 0; i < table->n; i++) fprintf(file, ",%s", mark_names[student->cell[i].kind]);
    putc(',', file);
    if (!count(table, student, MARK_NOT_MARKED)) fprintf(file, "%d", points(table, student));
    fprintf(file, ",%d,", most_points(table));
    write_mistakes(file, table, student);
    putc(',', file);
    write_stages(file, table, student);
    putc('\n', file);
}

static void write_table(FILE *file, const void *data) {
    const Table *table = data;
    write_names(file, table);
    for (int i = 0; i < table->students; i++) write_student(file, table, &table->student[i]);
}

/* ---- files ------------------------------------------------------------------------------------
 */

/* Says which of a student's files have another name, and which are not there. */
static void print_files(const Table *table, const Student *student) {
    char folder[PATH_SIZE / 2], sentence[SENTENCE_SIZE], label[LABEL_SIZE], list[512] = "";
    int files = 0, missing = 0;
    Submission from;
    locate(table, student, folder, &from);
    for (int i = 0; i < table->n; i++) {
        const Exercise *e = table->exercise[i];
        if (i > 0 && e->file && table->exercise[i - 1]->file) continue;
        files++;
        exercise_label(e, label);
        const PlaceState state = place_is_missing(&from, e, sentence, sizeof sentence);
        if (state == PLACE_OTHER_NAME) printf("%s: %s\n", student->shown, sentence);
        if (state == PLACE_MISSING)
            put_text(list, sizeof list, "%s%s", missing++ ? ", " : "", e->file ? e->file : label);
    }
    if (missing)
        printf("%s: %d of %d %s missing: %s\n", student->shown, missing, files,
               missing == 1 ? "is" : "are", list);
}

/* In a folder of all files: those whose name is no exercise's, of one student or of none. */
static void print_strangers(const Table *table) {
    DIR *folder = *table->student->prefix ? opendir(table->class->folder) : NULL;
    for (struct dirent *item = folder ? readdir(folder) : NULL; item; item = readdir(folder)) {
        const size_t n = strlen(item->d_name);
        bool known = n < 3 || *item->d_name == '.' || strcmp(item->d_name + n - 2, ".c") != 0;
        for (int i = 0; exercise_at(i) && !known; i++)
            known = submission_prefix(item->d_name, exercise_source(exercise_at(i)));
        if (known) continue;
        Student none;
        name_student(&none, item->d_name);
        printf("%s: which exercise is it? Files are called ada_04_softmax.c\n", none.shown);
    }
    if (folder) closedir(folder);
}

/* ---- mistakes ---------------------------------------------------------------------------------
 */

typedef struct {
    const Exercise *exercise;
    const KnownMistake *mistake;
    int students, order;
} Tally;

static bool has(const Cell *cell, const KnownMistake *mistake) {
    for (int k = 0; k < MOST_OUTPUTS && cell->mistake[k]; k++)
        if (cell->mistake[k] == mistake) return true;
    return false;
}

static int commonest_first(const void *a, const void *b) {
    const Tally *x = a;
    const Tally *y = b;
    if (x->students != y->students) return y->students - x->students;
    return x->order - y->order;
}

static void print_commonest(const Table *table) {
    enum { MOST_TALLIES = 1000, SHOWN = 10 };
    static Tally tally[MOST_TALLIES];
    int n = 0;
    for (int i = 0; i < table->n; i++)
        for (int k = 0; exercise_mistake(table->exercise[i], k); k++) {
            const KnownMistake *m = exercise_mistake(table->exercise[i], k);
            Tally t = {table->exercise[i], m, 0, n};
            for (int s = 0; s < table->students; s++)
                t.students += has(&table->student[s].cell[i], m);
            if (t.students && n < MOST_TALLIES) tally[n++] = t;
        }
    if (n == 0) return;
    qsort(tally, (size_t)n, sizeof *tally, commonest_first);
    printf("\nThe commonest mistakes:\n");
    for (int i = 0; i < n && i < SHOWN; i++) {
        MistakeWords words;
        mistake_words(tally[i].exercise, tally[i].mistake, &words);
        const char *name = exercise_title(tally[i].exercise);
        printf("%3d %s, %s: %s\n    The code computes this: %s\n    %s\n", tally[i].students,
               tally[i].students == 1 ? "student" : "students", name, tally[i].mistake->id,
               words.says, words.asks);
    }
}

/* ---- the class --------------------------------------------------------------------------------
 */

/* All of this student's exercises are not marked. */
static void keep_none(const Table *table, Student *student) {
    for (int i = 0; i < table->n; i++) student->cell[i].kind = MARK_NOT_MARKED;
}

static void mark_student(Place *place, const Table *table, Student *student) {
    static Marking list[MOST_EXERCISES];
    char folder[PATH_SIZE / 2], sentence[SENTENCE_SIZE];
    Cell *next = student->cell;
    Submission from;
    locate(table, student, folder, &from);
    from.attention = table->exercise[table->n - 1]->file;
    memset(list, 0, sizeof list);
    for (int i = 0; i < table->n; i++) list[i].exercise = table->exercise[i];
    if (place_take(place, &from, sentence, sizeof sentence)) {
        marking_run(list, table->n, place, table->class->seed, keep, &next);
    } else {
        submission_make_plain(sentence);
        fprintf(stderr, "exercises: %s: %s\n", student->shown, sentence);
        keep_none(table, student);
    }
    marking_free(list, table->n);
}

static void print_student(const Table *table, const Student *student) {
    if (table->class->csv)
        printf("%s: %d points of %d\n", student->shown, points(table, student), most_points(table));
    else write_student(stdout, table, student);
    fflush(stdout);
}

static void mark_all(Place *place, Table *table) {
    if (!table->class->csv) write_names(stdout, table);
    for (int i = 0; i < table->students && !process_interrupted(); i++) {
        mark_student(place, table, &table->student[i]);
        if (!process_interrupted()) print_student(table, &table->student[i]);
    }
}

static int report(const Table *table) {
    int unmarked = 0;
    for (int i = 0; i < table->students; i++)
        unmarked += count(table, &table->student[i], MARK_NOT_MARKED);
    if (table->class->csv && !output_write(table->class->csv, write_table, table)) return 1;
    putchar('\n');
    for (int i = 0; i < table->students; i++) print_files(table, &table->student[i]);
    print_strangers(table);
    print_commonest(table);
    printf("\n%d %s, seed %llu.", table->students, table->students == 1 ? "student" : "students",
           (unsigned long long)table->class->seed);
    if (unmarked) printf(" The machine has failed at %d marks: they have no points.", unmarked);
    putchar('\n');
    return unmarked ? RESULTS_NOT_MARKED : 0;
}

int class_mark(Place *place, const Class *class) {
    Table table = {.class = class};
    int status = 1;
    if (find_students(&table)) {
        choose(&table);
        mark_all(place, &table);
        status = process_interrupted() ? 130 : report(&table);
    }
    free(table.student);
    return status;
}
