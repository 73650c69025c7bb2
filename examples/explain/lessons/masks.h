/* masks.h - the masks of lesson 3, in both of its halves.
 *
 * The tokens are the words of a short sentence and one place of padding, "[pad]", which makes it as
 * long as others of its batch. The causal mask hides from each query the keys after it, and another
 * mask hides the padding from all queries:
 *
 *     keep      bool (1, 1, 1, K), 0 at the padding, which stands first
 *     lengths   int64 (1), with --lengths: how many keys are no padding, which stands last
 *     window    float (1, Q, K), with --window: -infinity where a key is not next to its query
 *
 * Where padding stands first, its own row may see nothing: what comes later is hidden, and so is
 * padding itself. */
#ifndef TAPEHEAD_EXAMPLES_MASKS_H
#define TAPEHEAD_EXAMPLES_MASKS_H

#include "lesson.h"

/* The mask of the lesson; its tensors are the lesson's own. */
AttentionMask masks_make(Lesson *lesson);
/* Is key k hidden from query q, by the options alone? */
bool masks_hide(const Lesson *lesson, int64_t q, int64_t k);
/* The same by the numbers on the tape, which a reader can change. */
bool masks_hide_on_tape(const Lesson *lesson, int64_t q, int64_t k);
/* What the masks on the tape do, in words: "`keep` has a 0 at ..., and ...". */
const char *masks_say(const Lesson *lesson);

#endif
