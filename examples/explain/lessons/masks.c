/* masks.c - the masks of lesson 3: see masks.h. */
#include "masks.h"

#include "tell.h"

#include <math.h>

enum { MOST = 64 * 64 }; /* cells of a mask */

static bool is_padding(const Lesson *l, int64_t k) { return k == l->pad; }

static bool is_far(int64_t q, int64_t k) { return k < q - 1 || k > q + 1; }

bool masks_hide(const Lesson *l, int64_t q, int64_t k) {
    const LessonOptions *o = &l->options;
    return !o->no_mask && (is_padding(l, k) || (o->causal && k > q) || (o->window && is_far(q, k)));
}

bool masks_hide_on_tape(const Lesson *l, int64_t q, int64_t k) {
    const LessonOptions *o = &l->options;
    if (o->no_mask) return false;
    return (o->causal && k > q) || lesson_value("keep", k) == 0 ||
           (double)k >= lesson_value("lengths", 0) ||
           lesson_value("window", q * o->keys + k) == -(double)INFINITY;
}

static Tensor *make_keep(Lesson *l) {
    bool keep[MOST_WORDS];
    for (int64_t k = 0; k < l->options.keys; k++) keep[k] = !is_padding(l, k);
    return lesson_own(l, "keep", tensor_from_bools(SHAPE(1, 1, 1, l->options.keys), keep));
}

static Tensor *make_lengths(Lesson *l) {
    const int64_t length = l->options.keys - (l->pad >= 0);
    return lesson_own(l, "lengths", tensor_from_int64s(SHAPE(1), &length));
}

static Tensor *make_window(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    static double window[MOST];
    for (int64_t i = 0; i < Q * K; i++) window[i] = is_far(i / K, i % K) ? -(double)INFINITY : 0;
    return lesson_own(l, "window", tensor_from_doubles(SHAPE(1, Q, K), window));
}

AttentionMask masks_make(Lesson *l) {
    const LessonOptions *o = &l->options;
    if (o->no_mask) return (AttentionMask){0};
    AttentionMask mask = {.causal = o->causal};
    if (o->lengths) mask.valid_lens = make_lengths(l);
    else mask.keep = make_keep(l);
    if (o->window) mask.window = make_window(l);
    return mask;
}

const char *masks_say(const Lesson *l) {
    const LessonOptions *o = &l->options;
    return text_of(
        "%s%s%s",
        o->lengths ? "`lengths` says how many keys are no padding, and the rest is hidden"
                   : "`keep` has a 0 where a key is padding, and hides it",
        o->causal ? "; the causal mask hides from each word the words after it" : "",
        o->window ? "; `window` is added to the scores, and -infinity hides a key that is not "
                    "next to the word"
                  : "");
}
