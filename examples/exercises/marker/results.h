/* results.h - prints marks, and writes them as Gradescope's results.json. */
#ifndef TAPEHEAD_EXERCISES_RESULTS_H
#define TAPEHEAD_EXERCISES_RESULTS_H

#include "marking.h"

#include <stdio.h>

enum { RESULTS_NOT_MARKED = 3 }; /* the exit status if the machine has failed at something */

/* " 4 softmax            right    ...": a line, and the sentences of its mark below it; the
 * last of them says which command shows the arrays, if `again` has its words behind the label. */
void results_print(const Marking *marking, const char *again);

int results_points(const Marking *list, int n);
int results_most_points(const Marking *list, int n);

/* The marks as a table in Markdown, for the summary of a workflow. */
void results_print_github(const Marking *list, int n);

/* The arrays of the call with the worst number, yours and right, and what the function printed. */
void results_print_arrays(const Marking *marking);

/* The file for https://gradescope-autograders.readthedocs.io: score, and for each exercise its
 * number, name, score, status, text, result and mistake. If the machine has failed at one, there is
 * no score at all, which is an error there and not a zero. */
typedef struct {
    const Marking *list;
    int n;
    uint64_t seed;
} Results;
void results_write_json(FILE *file, const void *results);
/* The same before there are marks. */
void results_write_unmarked(FILE *file, const void *results);

#endif
