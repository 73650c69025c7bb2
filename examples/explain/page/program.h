/* program.h - the C beside a step: which lines of the sources computed it.
 *
 * When make builds the page, cut.awk cuts these pieces out of the sources, and writes the tables
 * below as a file of C. A piece is a plain kernel, a row of elementwise.def, a function of
 * autograd/, or a statement of a lesson's model. The kernels of an instruction set, which run on
 * most machines, compute the same as the plain ones. */
#ifndef TAPEHEAD_EXAMPLES_PROGRAM_H
#define TAPEHEAD_EXAMPLES_PROGRAM_H

#include "../rules/rules.h"

enum { OP_PIECES = 6 };

typedef struct {
    const char *file;
    int line; /* of the first line of the text */
    const char *title;
    const char *const *text; /* lines, then NULL */
} SourceText;

/* The pieces of an op: indices of program_sources, then -1. */
typedef struct {
    const char *op;
    bool is_row; /* of elementwise.def */
    int forward[OP_PIECES], backward[OP_PIECES];
} OpSources;

/* A statement that names a result: ag_name(call(...), "name"). */
typedef struct {
    const char *lesson; /* of the file: "2" for lesson2.c, "" for lesson.c */
    int function;       /* the statements of a function have the same number */
    const char *name;   /* "%s split" for each name that ends with " split"; "" for a statement that
                         * calls a module, which names its results itself */
    const char *call;   /* "" if the statement does not begin with a call */
    int source;
} ModelSource;

extern const SourceText program_sources[]; /* program_num_sources of them */
extern const int program_num_sources;
extern const OpSources program_ops[];      /* the last has no op */
extern const ModelSource program_models[]; /* the last has no lesson */
extern bool program_shown[]; /* for each source: does a page of this program need it? */
/* What sums a gradient over the places to which an input was broadcast, and what adds the gradients
 * of several uses. */
extern const int program_unbroadcast, program_accumulate;

/* Writes ,"program":[{"line":3,"forward":[0,4],"backward":[1],"model":2}, ...] for the lines of a
 * tape: indices of "sources". lesson: "3b"; "" for a tape that is no lesson's and has no model. */
void program_write(FILE *file, const RuledTape *tape, const char *lesson);
/* Writes ,"addition":9,"sources":[{"file","line","title","text"}, ...]: null for a source that no
 * lesson and no tape written so far needs. A page that computes may need what a lesson needs
 * with other settings, and what the playground needs. */
void program_write_sources(FILE *file);

#endif
