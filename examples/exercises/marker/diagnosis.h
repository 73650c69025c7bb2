/* diagnosis.h - compares what the student's function has computed with the right results, and finds
 * the mistake that computes the same. */
#ifndef TAPEHEAD_EXERCISES_DIAGNOSIS_H
#define TAPEHEAD_EXERCISES_DIAGNOSIS_H

#include "trial.h"

typedef enum {
    MARK_RIGHT,
    MARK_WRONG,
    MARK_EMPTY,
    MARK_CRASH, /* and exit */
    MARK_TIMEOUT,
    MARK_OUTSIDE,
    MARK_INPUTS,
    MARK_NO_COMPILE, /* and a file that is refused */
    MARK_NOT_MARKED  /* the machine has failed */
} MarkKind;

enum { MOST_OUTPUTS = 5, TEXT_SIZE = 4096 };

typedef struct {
    const Exercise *exercise;
    MarkKind kind;
    const KnownMistake *mistakes[MOST_OUTPUTS]; /* one, or those of several outputs; NULL after the
                                                 * last one */
    char stage[32];                             /* the first that is wrong; "" if none is known */
    char text[TEXT_SIZE];                       /* sentences, each ends with a \n */
    int worst, worst_array; /* the call and the output with the worst number; -1 if none */
    int64_t worst_element;
} Mark;

extern const char *const mark_names[]; /* "right", "wrong", "empty", ... */

/* given: the trial's calls, as the function got them; right: with the right outputs. */
/* Then no mark has a right number in it, nor one of the student's. */
extern bool diagnosis_hides_numbers;

Mark diagnose(const Exercise *e, const Trial *trial, const Calls *given, const Calls *right);

typedef struct {
    char says[320], asks[320];
    bool of_softmax; /* they are about the step of a softmax, in its names */
} MistakeWords;
void mistake_words(const Exercise *e, const KnownMistake *mistake, MistakeWords *words);

/* Are the numbers of this output equal, within 1e-9 of the largest? NaN equals NaN. */
bool same_output(const Exercise *e, const Call *a, const Call *b, int array);

/* The element that differs most from b's, relative to the largest of b; -1 if none does. */
int64_t worst_element(const Exercise *e, const Call *a, const Call *b, int array, double *error);

#endif
