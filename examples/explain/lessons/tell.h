/* tell.h - what a lesson says: its cover, a text for each step, a bet, questions.
 *
 * A step is one arrow: a line forward, the start of backward, a part of a gradient (of one input of
 * a line), or the addition of a part to the parts before it. A lesson names a step by the tensors
 * at the ends of the arrow, so the text stays with its step when an option adds a line:
 *
 *     say(l, step_forward("A"), 0, "The first weight is %s.", show_value("A", 0));
 *     say(l, step_backward("A", "S"), 0, "Its score gets %s.", show_part("A", "S", 0));
 *
 * What is said about a step that is not on the tape is left out. Every number of a text comes from
 * the tensors: see shown.h. `A` in backquotes is a name; all else is plain ASCII, but for the
 * reader's words. */
#ifndef TAPEHEAD_EXAMPLES_TELL_H
#define TAPEHEAD_EXAMPLES_TELL_H

#include "../../common/plural.h"
#include "lesson.h"
#include "shown.h"

/* ---- steps ----------------------------------------------------------------------------------- */

/* The data call it f3, s, b3.0, a3.0, twice, sgd: forward of line 3, the start, backward of line 3
 * to its input 0, the addition after that, the loop (loop.h), and the step of SGD. */
typedef struct {
    char kind; /* 'f', 's', 'b', 'a', 't' or 'g'; '\0' if there is no such step */
    int line, input;
} Step;

/* made: the result of a line; input: an input of this line. There is an addition if a later line
 * has given the input a part before. */
Step step_forward(const char *made);
Step step_backward(const char *made, const char *input);
Step step_addition(const char *made, const char *input);
Step step_twice(void), step_sgd(void);
/* "b3.0" */
enum { STEP_NAME = 28 };
void step_name(Step at, char name[STEP_NAME]);

/* ---- numbers --------------------------------------------------------------------------------- */

/* Element i, row-major, of the part of input's gradient that comes from the line that made `made`;
 * NaN if there is none. */
double lesson_part(const char *made, const char *input, int64_t i);
/* The part of a gradient that a step of backward makes, a new reference; NULL if there is none. */
Tensor *step_part(Step at);

/* The element of a tensor, or of its gradient, that is the farthest from 0. */
int64_t largest_value(const char *name), largest_grad(const char *name);
/* The same of the gradients of numbers that are not 0: a weight that is hidden is not moved. */
int64_t largest_visible_grad(const char *name);
/* The largest element of row r of a tensor, whose rows are its last dimension. */
int64_t largest_in_row(const char *name, int64_t r);
/* The sizes of a tensor's matrices; 1 where a tensor has fewer dimensions. */
int64_t rows_of(const char *name), columns_of(const char *name);
int64_t size_of(const char *name);
/* The word of token i. */
const char *word_of(const Lesson *l, int64_t i);

/* ---- texts ----------------------------------------------------------------------------------- */

/* The cover: a tensor and a row of it as its picture, NULL: none; then, in a lesson that shows its
 * losses, their curve is the picture. */
void cover(Lesson *l, const char *tensor, int64_t row, const char *lead);
/* On the cover the points that a lesson of one weight is about: its tensors queries, keys, values,
 * Y and T. */
void cover_points(Lesson *l);
/* A reader can pull the scores in the row of the cover's weights: softmax makes these of them; the
 * same row of Y is the answer, and that of T what it should be.
 * cell: the one to begin with, row-major. Left out if there is nothing to see: for a single score,
 * and for more than fit side by side. */
void pull(Lesson *l, const char *scores, int64_t cell);
/* A bet, which its step settles. The options end with NULL; answer: the index of the right one. */
void bet(Lesson *l, Step at, const char *const *options, int answer, const char *ask);
/* The text of a step. look: the element of its result that is worked out at first; LARGEST: the
 * one farthest from 0. Call it in the order of the steps. In the text stands
 *
 *     {}                        the number that is looked at: of a result, or of a gradient
 *     {part}                    what the line adds to this gradient
 *     {row}, {column}, {head}   where it stands: two words, and a number from 1 on
 *     {becomes}                 "1.5 becomes 3", of a line that squares or scales
 *     {slope}                   show_slope, of a softmax */
enum { LARGEST = -1 };
TELLS(4, 5) void say(Lesson *l, Step at, int64_t look, const char *text, ...);
/* Three steps forward and four back that all lessons share, told shortly. target: what T is; y:
 * what E is made of. */
void say_loss(Lesson *l, const char *target), say_loss_backward(Lesson *l, const char *y);
/* The four back, for a reader who sees them for the first time. */
void say_first_backward(Lesson *l);
/* Back from S / sqrt(d) to S. */
void say_scale_backward(Lesson *l);

/* ": 0.6 becomes 0.8": a weight that dropout keeps, or its gradient. "" if it keeps none, or if the
 * gradient is 0. */
const char *show_kept(const Lesson *l), *show_kept_grad(const Lesson *l);

/* For a question whose answer the text at the same step does not name: 0, or 1 if the text looks at
 * element 0; and the word for it, "first" or "second". */
int64_t other_than(int64_t look);
const char *place_of(int64_t i);

/* Questions, asked at a step. hint: a method. A question about a name or a step that is not on the
 * tape is left out. part: "value" or "grad"; index: of the element, row-major. */
void ask_number(Lesson *l, Step at, const char *tensor, const char *part, int64_t index,
                const char *hint, const char *ask);
/* Which cells of the gradient are 0? Left out if none is. */
void ask_zeros(Lesson *l, Step at, const char *tensor, const char *hint, const char *ask);
/* How many terms does the gradient of element `index` of an input have, at a step of backward? */
void ask_count(Lesson *l, Step at, int64_t index, const char *hint, const char *ask);
/* The options end with NULL; answer is the index of the right one. */
void ask_choice(Lesson *l, Step at, const char *const *options, int answer, const char *why,
                const char *hint, const char *ask);

/* ---- for lesson.c ---------------------------------------------------------------------------- */

/* Write members of the lesson's JSON: "cover" and "bet"; "steps"; "questions"; "words",
 * "labels", "fold", "transposed", "short", "letters" and "card". */
void tell_write_cover(Lesson *l), tell_write_steps(Lesson *l), tell_write_questions(Lesson *l);
void tell_write_names(Lesson *l);

#endif
