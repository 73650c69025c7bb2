/* exercise.h - what an exercise is: the function that the student writes, the inputs on which it is
 * called, the right results and the mistakes that have a name.
 *
 * A call is one call of that function: its sizes, its numbers, its arrays. The marker makes a list
 * of calls (calls.h), and the student's function (trial.h), the right one and every mistake compute
 * the same calls, so marking is comparing arrays.
 *
 * mistakes/NN_name.txt has the inputs of an exercise, a right backward, which shows its stages, and
 * the mistakes; edits.awk makes C of it. */
#ifndef TAPEHEAD_EXERCISES_EXERCISE_H
#define TAPEHEAD_EXERCISES_EXERCISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parameters of an exercise have their sizes, double dy[rows][n], and a wrong backward may
 * leave a parameter out. */
#pragma GCC diagnostic ignored "-Wvla"
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* A row of a table leaves out what is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { MOST_PARAMETERS = 16, MOST_SIZES = 4, MOST_NUMBERS = 2, MOST_ARRAYS = 12 };
enum { MOST_EXERCISES = 64, MOST_MISTAKES = 64 /* of an exercise */, LABEL_SIZE = 16 };

typedef enum {
    NO_PARAMETER, /* after the last one */
    SIZE,         /* int: a size, or a target */
    DOUBLE,       /* double */
    OUTPUT,       /* an array that arrives filled with zeros */
    STATE,        /* an array that is read and written, and carried to the next call */
    INPUT,        /* an array of doubles that is only read */
    MASK          /* the same, of bools */
} ParameterKind;

typedef struct {
    const char *name;
    ParameterKind kind;
    const char *rows, *columns; /* "n", "heads * d", "27"; a vector has rows NULL, as dx[n] */
} Parameter;

/* Which dy does a call have? */
typedef enum {
    ONE_HOT, /* 1 in one place, 0 elsewhere: the result is a row of the Jacobian */
    DENSE,
    DOUBLED /* twice the dy of the call before */
} DyKind;

typedef struct {
    int size[MOST_SIZES];        /* the parameters of kind SIZE, in their order */
    double number[MOST_NUMBERS]; /* those of kind DOUBLE */
    void *array[MOST_ARRAYS];    /* the others: of doubles, or of bools for MASK */
    int input;                   /* calls with the same input differ in dy alone */
    DyKind dy;
    bool carries;  /* STATE begins as the call before left it */
    bool measured; /* its memory is measured */
    bool lone;     /* the only one of its input: nothing has the Jacobian */
    bool tiny;     /* some of its numbers are tiny, and count */
} Call;

typedef void Function(void); /* a backward, behind its exercise's call() */

typedef struct {
    const char *id;
    Function *backward; /* complete and wrong */
    const char *says;   /* what the student's code computes; NULL: both texts stand */
    const char *asks;   /* in ../common/mistakes.def; a question, answered by the mend */
    bool (*counts)(const Call *call); /* is the id decided on this input? NULL: on all */
} KnownMistake;

/* The sizes of an input and how large its numbers are: between -scale and scale; with scale 0 they
 * have sizes from 1e-3 to 30. */
typedef struct {
    int size[MOST_SIZES];
    double scale;
    int variant;                 /* for prepare */
    double number[MOST_NUMBERS]; /* the same, of a text that names them */
} Sizes;

typedef struct Random Random;

typedef struct {
    int number;
    int steps;             /* calls in a row for each input, if there is no dy */
    const char *letter;    /* "b": exercise 7b comes after 7; NULL: there is none */
    const char *name;      /* "softmax": the file is 04_softmax.c */
    const char *function;  /* "softmax_backward" */
    const char *prototype; /* "(int n, double dx[n], ...)", */
    const char *arguments; /* and of a call: "size[0], array[0], ..." */
    const char *file;      /* "attention", if the function is one of several in a file; else NULL */
    const char *asks[MOST_ARRAYS]; /* of an output that nothing explains, by its number; or NULL */
    Parameter parameter[MOST_PARAMETERS];
    const char *dy;      /* the parameter that is the gradient of the result; NULL: no vjp */
    const Sizes *inputs; /* after the last one, size[0] is 0 */
    const Sizes *large;  /* the same, for a lone call each; NULL: there are none */
    double before;       /* is in each output before the call, and not part of what is compared */
    /* Makes an input out of random numbers: a y that is a softmax, a target. May be NULL. */
    void (*prepare)(Call *call, const Sizes *sizes, Random *random);
    /* Calls a function that has the exercise's parameters. */
    void (*call)(Function *function, const Call *call);
    /* Is element i of an output compared? NULL: yes */
    bool (*compares)(const Call *call, int array);
    /* Must element i be exactly 0? NULL: no */
    bool (*is_zero)(const Call *call, int64_t i);
    const KnownMistake *mistakes; /* after the last one, id is NULL */
    Function *source;             /* the right function, which shows its stages */
    const char *where;            /* the same loop in the library: file and name */
    int lesson;                   /* of build/explain, where the rule is explained, */
    const char *step;             /* and its step: "b3.0" */
    const char *lesson_switch;    /* that the lesson needs: "additive"; NULL: none */
    const char *lesson_note;      /* how the lesson differs; NULL: it does not */
    bool lesson_has_answer;       /* so it is named only after an attempt */
    bool limited;                 /* at most 8 (sum of all sizes) numbers of memory */
} Exercise;

/* All exercises, by their numbers and letters: exercises.mk makes the list of the texts. */
extern const Exercise *const exercise_list[];
extern const int num_exercises;
/* Of attention.c, each function: from 0; 4.2 has the number 42. NULL after the last one. */
enum { SCRATCH = 18 };
const Exercise *scratch_exercise(int i);
/* The list and, behind it, the functions of attention.c; NULL after the last one. */
const Exercise *exercise_at(int i);
/* exercise_at(i) has the label at text, "7", "7b" or "6.1"; *end is behind it. -1: none has. */
int exercise_named(const char *text, const char **end);

/* "4", "7b"; of a file with several functions "4.2", for number 42 */
void exercise_label(const Exercise *e, char label[LABEL_SIZE]);
/* The mistakes are numbered from 0; NULL after the last one. */
const KnownMistake *exercise_mistake(const Exercise *e, int i);

/* "04_softmax", until the next call */
const char *exercise_file(const Exercise *e);
/* The name of the student's file without .c, "04_softmax" or "attention"; and what it is called in
 * a table, "04_softmax" or "softmax_backward"; until the next call of exercise_file. */
const char *exercise_source(const Exercise *e);
const char *exercise_title(const Exercise *e);

/* The array parameters are numbered from 0; NULL after the last one. */
const Parameter *exercise_array(const Exercise *e, int array);
/* How many elements array has in this call, and how many are in a row: 1 for a vector. */
int64_t call_length(const Exercise *e, const Call *call, int array);
int64_t call_columns(const Exercise *e, const Call *call, int array);
/* "heads * d" -> 6, "2" -> 2; NULL or "" is 1. */
int64_t call_size(const Exercise *e, const Call *call, const char *sizes);
bool is_output(const Parameter *p); /* OUTPUT or STATE */
size_t element_size(const Parameter *p);

/* A call with arrays of zeros, and a copy of a call. False if there is no memory. */
bool call_make(const Exercise *e, Call *call);
bool call_copy(const Exercise *e, Call *copy, const Call *call);
void call_free(Call *call);

/* "dx[1][2]" */
void element_name(const Exercise *e, const Call *call, int array, int64_t i, char *text,
                  size_t size);
/* "n = 2, k = 3, m = 2" */
void sizes_text(const Exercise *e, const Call *call, char *text, size_t size);

#endif
