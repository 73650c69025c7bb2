/* texts.h - files that the marker needs in its temporary folder, as arrays of the program:
 * harness.c, protocol.h and the headers of the exercises.
 * exercises.mk makes texts.c. */
#ifndef TAPEHEAD_EXERCISES_TEXTS_H
#define TAPEHEAD_EXERCISES_TEXTS_H

typedef struct {
    const char *name;
    const unsigned char *text; /* ends with a 0 */
} Text;

extern const Text texts[];
extern const int num_texts;
/* "" if there is none. */
const char *text_named(const char *name);

#endif
