/* mistakes.h - the list of known mistakes, mistakes.def. explain's --rule, the box in its page and
 * the marker of the exercises recognize them; --break and the list beside the box plant them.
 *
 * The texts are about the gradient: "This is ...", "your code computes this: ...". {x}, {y}, {dy}
 * and so on are names of the op's call, {s} and {1/s} the number that the op got. The marker writes
 * them as they are; a lesson has names of its own for them, and for {own}, the input that gets the
 * gradient. */
#ifndef TAPEHEAD_EXAMPLES_MISTAKES_H
#define TAPEHEAD_EXAMPLES_MISTAKES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *of; /* ops of the tape and names of exercises, between blanks; "+=" is the engine */
    const char *id; /* of the exercises; "" if none has it; NULL: a right backward */
    const char *formula[3]; /* of each input, in the language of rules; NULL: is right */
    const char *computes;   /* "{y} * {dy}, without the sum over the row." */
    const char *asks;       /* a question whose answer is the mend */
    const char *key;        /* of --break; NULL: the id alone */
    const char *forward;    /* of a right backward: what the op computes; or NULL */
} MistakeRow;

extern const MistakeRow mistake_rows[];
extern const int num_mistake_rows;

bool mistake_is_of(const MistakeRow *mistake, const char *op_or_exercise);
/* The first row with this id, or, for id NULL, of what is right; NULL if there is none. */
const MistakeRow *mistake_find(const char *op_or_exercise, const char *id);
/* A text with the names of the op's call: without { and }. */
void mistake_plain(const char *text, char *plain, size_t size);

#endif
