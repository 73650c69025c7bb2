/* class.h - marks a folder that has a folder for each student, or all of their files. */
#ifndef TAPEHEAD_EXERCISES_CLASS_H
#define TAPEHEAD_EXERCISES_CLASS_H

#include "place.h"

typedef struct {
    const char *folder; /* of the students' folders */
    const char *csv;    /* the file for the table; NULL: it is printed */
    const bool *chosen; /* is exercise_at(i) marked? NULL: what somebody has a file for */
    uint64_t seed;
} Class;

/* Marks all students. The table has a line for each: the marks, points, mistakes and stages; then
 * come files that are missing or have another name, and the commonest mistakes with their
 * questions. The exit status: 3 if the machine has failed at something, 1 after an error. */
int class_mark(Place *place, const Class *class);

#endif
