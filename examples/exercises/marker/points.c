/* points.c - reads points.txt: see points.h. A line is an exercise and its points, and may give a
 * part of them to each output: "matmul_backward 10 da 5 db 5". */
#include "points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *all_lines = ""; /* points.txt */

/* The line of this title, behind it: " 10 da 5 db 5"; "" if there is none. */
static const char *line_of(const char *title) {
    const size_t n = strlen(title);
    for (const char *at = all_lines; *at; at += *at == '\n') {
        if (strncmp(at, title, n) == 0 && at[n] == ' ') return at + n;
        at += strcspn(at, "\n");
    }
    return "";
}

typedef struct {
    int all, output[MOST_ARRAYS]; /* -1: the line names it not */
    bool can_be_read;
} Worth;

/* "10"; -1 if it is no number. */
static int number(const char *word) {
    if (!word || strspn(word, "0123456789") != strlen(word) || strlen(word) > 6) return -1;
    return atoi(word);
}

static Worth worth_of(const Exercise *e) {
    Worth worth = {.all = 1, .can_be_read = true};
    const char *at = line_of(exercise_title(e));
    char line[256], *next;
    int sum = 0, named = 0;
    for (int k = 0; k < MOST_ARRAYS; k++) worth.output[k] = -1;
    if (!*at) return worth;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    worth.all = number(strtok_r(line, " ", &next));
    for (char *word = strtok_r(NULL, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        const int points = number(strtok_r(NULL, " ", &next));
        int k = 0;
        while (exercise_array(e, k) && strcmp(exercise_array(e, k)->name, word) != 0) k++;
        const bool names = exercise_array(e, k) && is_output(exercise_array(e, k));
        if (!names || points < 0 || worth.output[k] >= 0) worth.can_be_read = false;
        if (names) worth.output[k] = points;
        named++;
        sum += points;
    }
    if (worth.all < 0 || (named && sum != worth.all)) worth.can_be_read = false;
    return worth;
}

int points_of(const Exercise *e) { return worth_of(e).all; }

bool points_are_read(const char *text, char *sentence, size_t size) {
    all_lines = text;
    for (const char *at = text; *at; at += *at == '\n') {
        const int length = (int)strcspn(at, "\n"), word = (int)strcspn(at, " \n");
        const Exercise *e = NULL;
        for (int i = 0; exercise_at(i) && !e; i++) {
            const char *title = exercise_title(exercise_at(i));
            if ((int)strlen(title) == word && memcmp(title, at, (size_t)word) == 0)
                e = exercise_at(i);
        }
        const bool once = e && line_of(exercise_title(e)) == at + word;
        if (length && !(once && worth_of(e).can_be_read)) {
            snprintf(sentence, size,
                     "points.txt: \"%.*s\": a line is an exercise, once, its points, and perhaps "
                     "outputs with theirs, whose sum these are: matmul_backward 10 da 5 db 5",
                     length, at);
            return false;
        }
        at += length;
    }
    return true;
}

static bool is_right_everywhere(const Marking *marking, int output) {
    const Trial *trial = &marking->trial;
    for (int i = 0; i < marking->right.n; i++)
        if (trial->result[i].call < 0 ||
            !same_output(marking->exercise, &trial->calls.call[i], &marking->right.call[i], output))
            return false;
    return marking->right.n > 0 && !(trial->unsteady >> output & 1);
}

int points_for(const Marking *marking) {
    const Exercise *e = marking->exercise;
    const Worth worth = worth_of(e);
    int points = 0;
    bool all = true;
    if (marking->mark.kind == MARK_RIGHT) return worth.all;
    if (marking->mark.kind != MARK_WRONG) return 0;
    for (int i = 0; exercise_array(e, i); i++) {
        if (!is_output(exercise_array(e, i))) continue;
        const bool right = is_right_everywhere(marking, i);
        if (worth.output[i] > 0 && right) points += worth.output[i];
        all = all && right;
    }
    return all ? 0 : points; /* something else is wrong: the memory of 14 */
}
