/* results.c - prints marks, and writes them as JSON: see results.h. */
#include "results.h"

#include "../../common/put_text.h"
#include "../../explain/page/json.h"
#include "points.h"
#include "submission.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

enum { INDENT = 22, WIDTH = 100, MESSAGE = 31 };

/* Prints a sentence from this column on; lines after the first begin at INDENT. */
static void print_wrapped(const char *sentence, size_t length, int column) {
    const char *end = sentence + length;
    const char *between = "";
    while (sentence < end) {
        int word = 0;
        while (sentence + word < end && sentence[word] != ' ') word++;
        if (*between && column + 1 + word > WIDTH) {
            printf("\n%*s", INDENT, "");
            column = INDENT;
            between = "";
        }
        printf("%s%.*s", between, word, sentence);
        column += (int)strlen(between) + word;
        between = " ";
        sentence += word + (sentence + word < end);
    }
    putchar('\n');
}

static void print_text(const char *text, int column) {
    while (*text) {
        const size_t length = strcspn(text, "\n");
        if (column == INDENT) printf("%*s", INDENT, "");
        print_wrapped(text, length, column);
        column = INDENT;
        text += length;
        if (*text) text++;
    }
}

void results_print(const Marking *marking, const char *again) {
    const Mark *mark = &marking->mark;
    const Exercise *e = marking->exercise;
    char label[LABEL_SIZE];
    exercise_label(e, label);
    if (e->file) printf("%4s %-23s%s", label, e->name, mark_names[mark->kind]);
    else
        printf("%2s %-*s%s", label, 21 - (int)strlen(label) - (label[1] == '\0'), e->name,
               mark_names[mark->kind]);
    if (mark->kind == MARK_RIGHT && e->where) printf("    the library's loop: %s", e->where);
    if (!*mark->text) {
        putchar('\n');
        return;
    }
    if (mark->kind == MARK_RIGHT) {
        putchar('\n');
        print_text(mark->text, INDENT);
        return;
    }
    if (e->file) putchar('\n');
    else printf("%*s", MESSAGE - INDENT - (int)strlen(mark_names[mark->kind]), "");
    if (!e->file && strlen(mark_names[mark->kind]) >= MESSAGE - INDENT) putchar(' ');
    print_text(mark->text, e->file ? INDENT : MESSAGE);
    if (mark->worst >= 0 && again)
        printf("%*s(build/exercises %s%s shows the arrays)\n", INDENT, "", label, again);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

enum { MOST_SHOWN = 12 };

static void print_array(const Exercise *e, const Call *call, int array, const char *label) {
    const Parameter *p = exercise_array(e, array);
    const int64_t n = call_length(e, call, array), columns = call_columns(e, call, array);
    printf("  %s%s\n", p->name, label);
    for (int64_t i = 0; i < n && i / columns < MOST_SHOWN; i += columns) {
        printf("   ");
        for (int64_t j = i; j < i + columns && j - i < MOST_SHOWN; j++)
            if (p->kind == MASK) printf(" %9s", ((bool *)call->array[array])[j] ? "true" : "false");
            else printf(" %9.5g", ((double *)call->array[array])[j] + 0); /* + 0: no -0 */
        printf("%s\n", columns > MOST_SHOWN ? " ..." : "");
    }
    if (n / columns > MOST_SHOWN) printf("    ...\n");
}

static void print_numbers(const Exercise *e, const Call *call) {
    char sizes[128];
    int next = 0;
    sizes_text(e, call, sizes, sizeof sizes);
    printf("  %s", sizes);
    for (const Parameter *p = e->parameter; p->kind != NO_PARAMETER; p++)
        if (p->kind == DOUBLE) printf(", %s = %.6g", p->name, call->number[next++]);
    printf("\n");
}

/* The first lines that the function printed: on the input that is shown, on the one where it
 * stopped, or on all inputs if every number is right. */
static void print_output_of(const Marking *marking) {
    enum { LINES = 20, BYTES = 4000 };
    const int worst = marking->mark.worst, stopped = marking->trial.stopped;
    if (worst >= 0 || stopped >= 0)
        trial_print_again(&marking->trial, marking->exercise, &marking->given,
                          worst >= 0 ? worst : stopped);
    char *text = submission_read(marking->trial.printed, BYTES);
    char *stop = text ? strstr(text, "\n" BOUNDS) : NULL;
    if (stop) *stop = '\0'; /* the mark says it */
    if (text && *text) {
        if (worst >= 0) printf("\n  On this input the function printed:\n");
        else if (stopped >= 0) printf("\n  On the input where it stopped the function printed:\n");
        else printf("\n  The function printed, on all inputs:\n");
        int lines = 0;
        for (const char *at = text; *at && lines < LINES; lines++) {
            const size_t length = strcspn(at, "\n");
            printf("    ");
            for (size_t i = 0; i < length; i++)
                putchar((unsigned char)at[i] < ' ' || (unsigned char)at[i] > '~' ? '?' : at[i]);
            putchar('\n');
            at += length + (at[length] == '\n');
        }
    }
    free(text);
}

/* theta and velocity of 13 as the step got them: of the student's step before, where there is one.
 */
static void print_states(const Marking *marking, int worst) {
    const Exercise *e = marking->exercise;
    const bool carries = marking->given.call[worst].carries;
    const Call *before =
        carries ? &marking->trial.calls.call[worst - 1] : &marking->given.call[worst];
    for (int k = 0; exercise_array(e, k); k++)
        if (exercise_array(e, k)->kind == STATE) print_array(e, before, k, ", before the step");
}

void results_print_arrays(const Marking *marking) {
    const Exercise *e = marking->exercise;
    const int worst = marking->mark.worst;
    if (worst >= 0) {
        printf("\n");
        print_numbers(e, &marking->right.call[worst]);
        for (int k = 0; exercise_array(e, k); k++)
            if (!is_output(exercise_array(e, k)))
                print_array(e, &marking->right.call[worst], k, "");
        print_states(marking, worst);
        for (int k = 0; exercise_array(e, k); k++) {
            if (!is_output(exercise_array(e, k))) continue;
            print_array(e, &marking->trial.calls.call[worst], k, ", yours");
            print_array(e, &marking->right.call[worst], k, ", right");
        }
    }
    if (marking->trial.end != TRIAL_EMPTY) print_output_of(marking);
}

/* ---- results.json ---------------------------------------------------------------------------- */

static void write_output(FILE *file, const Marking *marking) {
    char text[TEXT_SIZE + SENTENCE_SIZE];
    const Mark *mark = &marking->mark;
    const char *where = marking->exercise->where;
    snprintf(text, sizeof text, "right%s%s", where ? ": the library's loop is " : "",
             where ? where : "");
    if (mark->kind == MARK_RIGHT && *mark->text)
        snprintf(text + strlen(text), sizeof text - strlen(text), "\n%s", mark->text);
    if (mark->kind == MARK_RIGHT) json_write_string(file, text);
    else json_write_string(file, *mark->text ? mark->text : mark_names[mark->kind]);
}

/* Is there a mark for each exercise? */
static bool is_whole(const Results *results) {
    for (int i = 0; i < results->n; i++)
        if (results->list[i].mark.kind == MARK_NOT_MARKED) return false;
    return true;
}

static void write_head(FILE *file, const Exercise *e) {
    char label[LABEL_SIZE];
    exercise_label(e, label);
    fprintf(file, "  {\"number\": \"%s\", \"name\": \"%s\", \"max_score\": %d, ", label,
            exercise_title(e), points_of(e));
}

static void write_test(FILE *file, const Marking *marking, bool scores) {
    const Mark *mark = &marking->mark;
    const bool right = mark->kind == MARK_RIGHT;
    write_head(file, marking->exercise);
    if (scores) fprintf(file, "\"score\": %d, ", points_for(marking));
    fprintf(file, "\"status\": \"%s\", \"output\": ", right ? "passed" : "failed");
    write_output(file, marking);
    fprintf(file, ", \"extra_data\": {\"result\": \"%s\"", mark_names[mark->kind]);
    if (*mark->stage) fprintf(file, ", \"stage\": \"%s\"", mark->stage);
    if (mark->mistakes[0]) fprintf(file, ", \"mistake\": \"%s\"", mark->mistakes[0]->id);
    if (mark->mistakes[0] && mark->mistakes[1]) {
        fprintf(file, ", \"mistakes\": [");
        for (int i = 0; i < MOST_OUTPUTS && mark->mistakes[i]; i++)
            fprintf(file, "%s\"%s\"", i ? ", " : "", mark->mistakes[i]->id);
        fprintf(file, "]");
    }
    fprintf(file, "}}");
}

int results_points(const Marking *list, int n) {
    int points = 0;
    for (int i = 0; i < n; i++) points += points_for(&list[i]);
    return points;
}

int results_most_points(const Marking *list, int n) {
    int points = 0;
    for (int i = 0; i < n; i++) points += points_of(list[i].exercise);
    return points;
}

/* What is said of a missing or refused file, once. */
static void put_files(const Results *results, char *text, size_t size) {
    const char *last = "";
    for (int i = 0; i < results->n; i++) {
        const Trial *trial = &results->list[i].trial;
        if (!trial->of_file || strcmp(last, trial->sentence) == 0) continue;
        last = trial->sentence;
        put_text(text, size, "%s. ", last);
    }
}

void results_write_json(FILE *file, const void *data) {
    const Results *results = data;
    static char text[MOST_EXERCISES * SENTENCE_SIZE];
    const bool whole = is_whole(results);
    int right = 0;
    *text = '\0';
    for (int i = 0; i < results->n; i++) right += results->list[i].mark.kind == MARK_RIGHT;
    put_text(text, sizeof text, whole ? "" : "failed: not marked, see below. ");
    put_files(results, text, sizeof text);
    put_text(text, sizeof text, "%d of %d %s right (seed %llu).", right, results->n,
             right == 1 ? "is" : "are", (unsigned long long)results->seed);
    fputc('{', file);
    if (whole) fprintf(file, "\"score\": %d, ", results_points(results->list, results->n));
    fprintf(file, "\"output\": ");
    json_write_string(file, text);
    fprintf(file, ", \"tests\": [\n");
    for (int i = 0; i < results->n; i++) {
        write_test(file, &results->list[i], whole);
        fprintf(file, i + 1 < results->n ? ",\n" : "\n");
    }
    fprintf(file, "]}\n");
}

void results_write_unmarked(FILE *file, const void *data) {
    const Results *results = data;
    fprintf(file, "{\"output\": \"failed: not marked. The marker has not come to its end.\", "
                  "\"tests\": [\n");
    for (int i = 0; i < results->n; i++) {
        write_head(file, results->list[i].exercise);
        fprintf(file,
                "\"status\": \"failed\", \"output\": \"not marked\", "
                "\"extra_data\": {\"result\": \"%s\"}}%s\n",
                mark_names[MARK_NOT_MARKED], i + 1 < results->n ? "," : "");
    }
    fprintf(file, "]}\n");
}

/* A cell of a table, without a character that Markdown or HTML would obey. */
static void print_cell(const char *text) {
    for (; *text; text++)
        if (*text == '\n') fputs(text[1] ? "<br>" : "", stdout);
        else if (strchr("|<>`*_[]\\&#!@~", *text)) printf("&#%d;", *text);
        else putchar((unsigned char)*text < ' ' || *text == 127 ? '?' : *text);
}

void results_print_github(const Marking *list, int n) {
    int right = 0;
    for (int i = 0; i < n; i++) right += list[i].mark.kind == MARK_RIGHT;
    printf("### %d of %d right, %d of %d points\n\n| | mark | stage | what to look at |\n"
           "|---|---|---|---|\n",
           right, n, results_points(list, n), results_most_points(list, n));
    for (int i = 0; i < n; i++) {
        const Mark *mark = &list[i].mark;
        char label[LABEL_SIZE];
        exercise_label(list[i].exercise, label);
        printf("| %s ", label);
        print_cell(list[i].exercise->name);
        printf(" | %s | ", mark_names[mark->kind]);
        print_cell(mark->stage);
        fputs(" | ", stdout);
        print_cell(mark->text);
        puts(" |");
    }
}
