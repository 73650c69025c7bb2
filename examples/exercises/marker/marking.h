/* marking.h - marks several exercises, some at the same time. */
#ifndef TAPEHEAD_EXERCISES_MARKING_H
#define TAPEHEAD_EXERCISES_MARKING_H

#include "diagnosis.h"

typedef struct {
    const Exercise *exercise;
    Calls given; /* the calls, as the function gets them */
    Calls right; /* with the right outputs */
    Trial trial;
    Mark mark;
    bool tried; /* the trial is over */
} Marking;

/* Compiles and runs the files of n exercises, and calls done for each, in their order, as soon as
 * its mark is there. Stops after Ctrl-C. The exercise of each marking is set. */
void marking_run(Marking *list, int n, const Place *place, uint64_t seed,
                 void (*done)(const Marking *marking, void *data), void *data);
/* Makes the mark of a trial that is over. */
void marking_finish(Marking *marking);
void marking_free(Marking *list, int n);

#endif
