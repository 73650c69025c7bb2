/* scratch.h - marks attention from scratch: the eighteen functions of one file, attention.c, each
 * as an exercise of its own, in a program in which all the others are right. */
#ifndef TAPEHEAD_EXERCISES_SCRATCH_H
#define TAPEHEAD_EXERCISES_SCRATCH_H

#include "place.h"

/* Prepares the copy of the student's attention.c, where there is one; false with a sentence. */
bool scratch_take(Place *place, char *sentence, size_t size);
/* The student's file does not compile: writes less of it for this function, attempt 1, 2, ... False
 * if there is nothing more to try. */
bool scratch_write_less(const Place *place, const Exercise *e, int attempt);

#endif
