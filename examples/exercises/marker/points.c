/* points.c - reads points.txt: see points.h. A line is an exercise and its points, and may give a
 * part of them to each output: "matmul_backward 10 da 5 db 5". */
#include "points.h"

#include "texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The line of this title, behind it: "10 da 5 db 5"; "" if there is none. */
static const char *line_of(const char *title) {
    const size_t n = strlen(title);
    for (const char *at = text_named("points.txt"); *at; at += *at == '\n') {
        if (strncmp(at, title, n) == 0 && at[n] == ' ') return at + n;
        at += strcspn(at, "\n");
    }
    return "";
}

int points_of(const Exercise *e) {
    const char *line = line_of(exercise_title(e));
    return *line ? atoi(line) : 1;
}

/* The points of an output; -1 if the line names it not. */
static int points_of_output(const Exercise *e, const char *output) {
    char line[256], *next;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(line_of(exercise_title(e)), "\n"),
             line_of(exercise_title(e)));
    strtok_r(line, " ", &next);
    for (char *word = strtok_r(NULL, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        const char *points = strtok_r(NULL, " ", &next);
        if (strcmp(word, output) == 0 && points) return atoi(points);
    }
    return -1;
}

/* The outputs of a line and their points: all are there, and the sum is right. */
static bool is_whole_line(const Exercise *e) {
    const char *line = line_of(exercise_title(e));
    int named = 0, sum = 0, words = 0;
    for (const char *at = line + strspn(line, " "); *at && *at != '\n'; at += strspn(at, " ")) {
        at += strcspn(at, " \n");
        words++;
    }
    for (int i = 0; exercise_array(e, i); i++) {
        const int points = points_of_output(e, exercise_array(e, i)->name);
        if (points < 0 || !is_output(exercise_array(e, i))) continue;
        named++;
        sum += points;
    }
    return words == 1 + 2 * named && (named == 0 || sum == points_of(e)) && points_of(e) >= 0;
}

bool points_are_read(char *sentence, size_t size) {
    for (const char *at = text_named("points.txt"); *at; at += *at == '\n') {
        const int length = (int)strcspn(at, "\n"), word = (int)strcspn(at, " \n");
        const Exercise *e = NULL;
        for (int i = 0; exercise_at(i) && !e; i++) {
            const char *title = exercise_title(exercise_at(i));
            if ((int)strlen(title) == word && memcmp(title, at, (size_t)word) == 0)
                e = exercise_at(i);
        }
        if (length && (!e || !is_whole_line(e))) {
            snprintf(sentence, size,
                     "points.txt: \"%.*s\": a line is an exercise, its points, and perhaps outputs "
                     "with theirs, whose sum these are: matmul_backward 10 da 5 db 5",
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
    int points = 0;
    bool all = true;
    if (marking->mark.kind == MARK_RIGHT) return points_of(e);
    if (marking->mark.kind != MARK_WRONG) return 0;
    for (int i = 0; exercise_array(e, i); i++) {
        if (!is_output(exercise_array(e, i))) continue;
        const int its = points_of_output(e, exercise_array(e, i)->name);
        const bool right = is_right_everywhere(marking, i);
        if (its > 0 && right) points += its;
        all = all && right;
    }
    return all ? 0 : points; /* something else is wrong: the memory of 14 */
}
