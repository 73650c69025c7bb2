/* loop.h - the lines of a training loop, pressed one by one: what backward adds to, and who zeroes.
 *
 *     puts(loop_as_json(6, LESSON_OPTIONS, "bs"));
 *
 *     {"leaf":9,"lines":[{"press":"f","code":"loss = model(x)","does":"makes the tape"}, ...],
 *      "states":[{"press":"b","backwards":2,"loss":[12.64],"says":"...",
 *                 "leaves":[{"tensor":9,"value":[...],"grad":[...]}, ...]}, ...]}
 *
 * It begins where the lesson's own backward has run: that is the first state, of press "". A press
 * is f, a forward on a new tape; b, ag_backward; s, a step of SGD that zeroes nothing; z,
 * zero_grad. backwards: how many there were since then, or since the last z. After s the tape is
 * that of old numbers, and b is the library's error. leaf: the tensor that the page shows. */
#ifndef TAPEHEAD_EXAMPLES_LOOP_H
#define TAPEHEAD_EXAMPLES_LOOP_H

#include "lesson.h"

#define LOOP_SHOWN "bsz" /* in the data of a lesson, for the terminal */

/* A string that the caller frees; NULL and an error if the lesson has no loop, or if a press is
 * none of the four. It is also the answer to the page's "loop bs". */
char *loop_as_json(int number, LessonOptions options, const char *presses);
/* Writes ,"loop":{...} with "course", a sentence about "unzeroed":[losses] of steps without z. */
void loop_write(const Lesson *lesson, FILE *file);

#endif
