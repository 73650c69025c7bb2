/* points.h - what an exercise is worth: mistakes/points.txt. */
#ifndef TAPEHEAD_EXERCISES_POINTS_H
#define TAPEHEAD_EXERCISES_POINTS_H

#include "marking.h"

/* Takes the lines of points.txt: is each that of an exercise and of its outputs? False with a
 * sentence. */
bool points_are_read(const char *text, char *sentence, size_t size);
/* The most; 1 if points.txt does not name the exercise. */
int points_of(const Exercise *e);
/* Of a mark: all if it is right; if it is wrong, those of the outputs that are right. */
int points_for(const Marking *marking);

#endif
