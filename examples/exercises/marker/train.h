/* train.h - trains recall's model with the student's functions as its backward. */
#ifndef TAPEHEAD_EXERCISES_TRAIN_H
#define TAPEHEAD_EXERCISES_TRAIN_H

#include "trial.h"

/* Prints the losses of the library and the student's, side by side. The exit status: 0 if they
 * agree to the last printed digit. */
int train_beside(const Place *place);

#endif
