/* lesson3.c - masks and the kinds of zero: lengths, a boolean mask and a window together. The first
 * output selects keys by the mask, the second output sets masked scores to -1e6. */
#include "lesson.h"

#include <math.h>

enum { MOST = 64 * 64, VALUES = 2 }; /* cells of a mask; the size of a value */

/* The parts of the mask. The last query has no key, the query before it has one key. If there are 3
 * queries or more, the first may not look at key 1. If there are 4 queries or more, and 3 keys or
 * more, the second may not look at the last two keys. */
static int64_t length_of(const Lesson *l, int64_t q) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    if (q == Q - 1) return 0;
    return q == Q - 2 ? 1 : K;
}

static bool kept(const Lesson *l, int64_t q, int64_t k) {
    return l->options.queries < 3 || q != 0 || k != 1;
}

static double window_at(const Lesson *l, int64_t q, int64_t k) {
    const int64_t K = l->options.keys;
    return l->options.queries >= 4 && K > 2 && q == 1 && k >= K - 2 ? -(double)INFINITY : 0;
}

static bool ignored(const Lesson *l, int64_t q, int64_t k) {
    return k >= length_of(l, q) || !kept(l, q, k) || window_at(l, q, k) < 0 ||
           (l->options.causal && k > q);
}

/* lengths (1, Q), keep (1, 1, Q, K), window (1, Q, K) */
static AttentionMask make_mask(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    static int64_t lengths[MOST];
    static bool keep[MOST];
    static double window[MOST];
    for (int64_t q = 0; q < Q; q++) {
        lengths[q] = length_of(l, q);
        for (int64_t k = 0; k < K; k++) {
            keep[q * K + k] = kept(l, q, k);
            window[q * K + k] = window_at(l, q, k);
        }
    }
    AttentionMask mask = {.causal = l->options.causal};
    mask.valid_lens = lesson_own(l, "lengths", tensor_from_int64s(SHAPE(1, Q), lengths));
    mask.keep = lesson_own(l, "keep", tensor_from_bools(SHAPE(1, 1, Q, K), keep));
    mask.window = lesson_own(l, "window", tensor_from_doubles(SHAPE(1, Q, K), window));
    return mask;
}

/* (1, Q, K): true where one of the parts ignores the key. */
static Tensor *make_ignored(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys;
    static bool cells[MOST];
    for (int64_t q = 0; q < Q; q++)
        for (int64_t k = 0; k < K; k++) cells[q * K + k] = ignored(l, q, k);
    return lesson_own(l, "ignored", tensor_from_bools(SHAPE(1, Q, K), cells));
}

/* A: the weights if the mask selects, B: the weights if the scores are filled, both (1, Q, K). */
static Tensor *build(Lesson *l) {
    const int64_t Q = l->options.queries, K = l->options.keys, d = l->options.size;
    Tensor *q = lesson_draw(l, "Q", 1, SHAPE(1, Q, d));
    Tensor *k = lesson_draw(l, "K", 1, SHAPE(1, K, d));
    Tensor *v = lesson_draw(l, "V", 1, SHAPE(1, K, VALUES));
    Tensor *t = lesson_data(l, "T", 1, SHAPE(1, Q, VALUES));
    Tensor *s = ag_name(ag_bmm(q, ag_name(ag_transpose(k, 1, 2), "K'")), "S");
    if (!l->options.no_scale) s = ag_name(ag_scale(s, lesson_scale(l)), "S / sqrt(d)");
    if (l->options.no_mask)
        return lesson_loss(ag_name(ag_bmm(ag_name(ag_softmax(s, -1), "A"), v), "Y"), t);
    Tensor *a = ag_name(ag_attention_weights(s, 1, make_mask(l), 1), "A");
    Tensor *y = ag_name(ag_bmm(a, v), "Y");
    Tensor *f = ag_name(ag_masked_fill(s, make_ignored(l), -1e6), "F");
    Tensor *b = ag_name(ag_softmax(f, -1), "B");
    Tensor *z = ag_name(ag_bmm(b, v), "Z");
    return lesson_loss(ag_name(ag_add(y, z), "Y + Z"), t);
}

/* A sentence about the row with one key, "" if there is no such row. */
static const char *one_key(const Lesson *l, int row) {
    static char text[256];
    snprintf(text, sizeof text,
             "Row %d may look at one key. The weight of this key is exactly 1 for every score, "
             "so the gradient of the score is 0: another reason for a zero.",
             row);
    return l->options.queries > 1 ? text : "";
}

static void tell(Lesson *l) {
    const int last = (int)l->options.queries - 1;
    if (l->options.no_mask) {
        say(l, "Here nothing is masked: every query looks at every key, no weight is 0, and so no "
               "gradient is 0. For programmers: compare this example with `build/explain --lesson "
               "3`.");
        return;
    }
    say(l,
        "A mask says which keys (columns) a query (a row) may look at. Here three masks work "
        "together: `lengths` holds one number for each row, how many keys it may look at; "
        "`keep` has a 0 where a key is forbidden; `window` is added to the scores, so -infinity "
        "forbids. `ignored` shows all masked keys in one table: there a 1 forbids. All shapes "
        "begin with a 1, a batch of one example, and `bmm` is the product for a batch.%s",
        l->options.causal ? " A fourth mask, causal, forbids every key after the row's own." : "");
    say(l,
        "`A` selects: softmax sees only the keys that are allowed, so the weight of a masked key "
        "is exactly 0, and so is the gradient of its score. `B` fills, as many programs do: "
        "masked scores become -1e6, and exp(-1e6) is 0 on a computer, so these weights are 0 "
        "too, by rounding.");
    say(l,
        "Row %d shows the difference: it may look at no key, and all its weights in `A` are 0. In "
        "`F` all scores of this row are -1e6, and so, through `B`, `V` gets a gradient from a "
        "query that should see nothing. %s",
        last, one_key(l, last - 1));
}

static void ask(Lesson *l) {
    const int64_t last = l->options.queries - 1;
    const char *scores = l->options.no_scale ? "S" : "S / sqrt(d)";
    const int K = (int)l->options.keys;
    char each[32], each_of_more[32];
    snprintf(each, sizeof each, "each 1/%d", K);
    snprintf(each_of_more, sizeof each_of_more, "each 1/%d", K + 1);
    const char *const options[] = {"all 0", each, each_of_more, "NaN", NULL};
    ask_zeros(l, scores, "Which cells of the gradient of `%s` must be 0?", scores);
    if (lesson_tensor("B"))
        ask_choice(l, options, 2,
                   "All scores of the row are -1e6, and softmax gives equal scores equal weights.",
                   "Row %d may look at no key. Which weights would it get in `B` if there were %d "
                   "keys in place of %d?",
                   (int)last, K + 1, K);
    ask_count(l, "Y", "V", 0,
              "`Y` = `A` `V`. How many terms does `Y` give to the gradient of the first number of "
              "`V`, from the queries that look at key 0?");
}

const LessonKind lesson_3 = {
    .title = "Masks and the kinds of zero",
    .idea = "A gradient is 0 for a reason, and there are several.",
    .source = "d2l.ai: Masked Softmax Operation; window_mask: Liu et al. 2021",
    .columns = "",
    .formula = {"S = Q K'", "A = softmax(S / sqrt(d), allowed keys)", "Y = A V",
                "F = S / sqrt(d), -1e6 where ignored", "B = softmax(F),  Z = B V",
                "loss = sum((Y + Z - T)^2)"},
    .own = {.queries = 4, .keys = 4, .size = 2, .seed = 3},
    .rate = 0.02,
    .build = build,
    .tell = tell,
    .ask = ask,
};
