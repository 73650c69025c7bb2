/* limits.h - how large a lesson can be: its tape, as JSON, has at most 1 MB. */
#ifndef TAPEHEAD_EXAMPLES_LIMITS_H
#define TAPEHEAD_EXAMPLES_LIMITS_H

#include "lesson.h"

/* Sets l->most: the limit of each size if all others stay as they are. */
void limits_find(Lesson *l);

#endif
