/* experiments.h - an experiment: a slider of a few positions, and a table of numbers at each.
 *
 * It answers a question at the step where it arises: why divide by the root of d? Its numbers are
 * computed by the library, at all positions before the page is opened; the page only shows those of
 * one position, and the terminal lists all. A lesson file has its experiments:
 *
 *     static void run_root(Experiment *x) {
 *         experiment_lead(x, 2, "d", "Queries and keys are random.");
 *         experiment_row(x, "S");
 *         experiment_column(x, 'n', "usual size");
 *         for (int d = 1; d <= 256; d *= 2) {
 *             experiment_position(x, "%d", d);
 *             experiment_number(x, size_of_scores(d), 2);
 *             experiment_says(x, "It is near the root of %d.", d);
 *         }
 *     }
 *     const ExperimentKind experiment_root = {.lesson = 2, .title = "Why the root?", .phase = 'b',
 *                                             .made = "S / sqrt(d)", .input = "S",
 *                                             .run = run_root};
 *
 * The lesson is open no more when it runs, so it may open tapes of its own. One that begins no
 * position is left out. In the data of the page, texts with names between backquotes:
 *
 *     {"at":"b2.0","title":...,"lead":...,"knob":"d","start":2,"rows":[...],"columns":[...],
 *      "kinds":"n","algebra":[...],"positions":[{"label":"1","cells":["0.97"],"says":...}, ...]}
 *
 * cells: row by row. says is left out where it is that of the position before. */
#ifndef TAPEHEAD_EXAMPLES_EXPERIMENTS_H
#define TAPEHEAD_EXAMPLES_EXPERIMENTS_H

#include "../steps/algebra.h"
#include "tell.h"

enum { EXPERIMENT_TAKES = 6, EXPERIMENT_ROWS = 8, EXPERIMENT_COLUMNS = 9 };

typedef struct Experiment Experiment;
typedef struct {
    int lesson;
    const char *title;                   /* a question */
    char phase;                          /* of its step: 'f', 'b' or 'a', as tell.h has them, */
    const char *made, *input;            /* and the tensors at the ends of its arrow */
    const char *takes[EXPERIMENT_TAKES]; /* the tensors of the lesson that it computes with */
    const char *rows[EXPERIMENT_ROWS]; /* the names of the table, those that are always the same, */
    const char *columns[EXPERIMENT_COLUMNS], *kinds; /* and the kind of each column */
    void (*run)(Experiment *);
} ExperimentKind;
extern const ExperimentKind experiment_check, experiment_root, experiment_key_bias, experiment_mask,
    experiment_padding, experiment_residual, experiment_reshape;

struct Experiment {
    const ExperimentKind *kind;
    const Lesson *lesson;            /* closed; its options, words and padding are still there */
    Tensor *taken[EXPERIMENT_TAKES]; /* copies of what it takes, without a gradient */
    FILE *file;
    int start, rows, columns, positions, cells; /* written so far */
    Algebra algebra;
    char at[STEP_NAME]; /* its step, "b3.0"; "": there is no such step */
    char lead[400], knob[80], said[400];
    char row[EXPERIMENT_ROWS][32], column[EXPERIMENT_COLUMNS][32], kinds[EXPERIMENT_COLUMNS + 1];
};

/* What it is about, and what the slider moves; start: the position at the beginning. */
TELLS(4, 5)
void experiment_lead(Experiment *x, int start, const char *knob, const char *lead, ...);
/* Names of the table, before the first position. kind: 'n', numbers; 's', shares from 0 to 1; 'w',
 * places such as "cat 3", of which those with one word get one shade. */
void experiment_row(Experiment *x, const char *name);
void experiment_column(Experiment *x, char kind, const char *name);
/* Why the numbers are as they are, at all positions: lines under the table (algebra.h). */
void experiment_line(Experiment *x, const char *line, const char *why);
/* A position: its label, then all cells, row by row, then what is to be said. */
TELLS(2, 3) void experiment_position(Experiment *x, const char *label, ...);
void experiment_number(Experiment *x, double number, int decimals);
TELLS(2, 3) void experiment_cell(Experiment *x, const char *text, ...);
TELLS(2, 3) void experiment_says(Experiment *x, const char *text, ...); /* "": nothing */

#endif
