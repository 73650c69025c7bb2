/* scratch_exercises.c - the functions of students/attention.c as exercises: their arrays, inputs,
 * right results and mistakes. The right functions are micro.c's; a mistake is one of them with an
 * edit of mistakes/attention.txt, from which edits.awk makes C. */
#include "calls.h"
#include "scratch.h"

#include <string.h>

/* micro.c's own main is none here. */
#define main micro_main
int micro_main(void);
#include "../../micro.c"
#undef main
#include "scratch_calls.inc"

/* A mistake may ask for an element that is not there, where a student's program says so. */
#undef V
#undef G
#define V(x, i, j) (*at((x)->value, x, i, j))
#define G(x, i, j) (*at((x)->grad, x, i, j))
static bool went_outside;
static double *at(double *array, const Matrix *x, int i, int j) {
    static double outside;
    if (i >= 0 && i < x->rows && j >= 0 && j < x->columns) return array + i * x->columns + j;
    outside = (double)NAN;
    went_outside = true;
    return &outside;
}
static bool stays_inside(const char *name, Function *mistake, const Call *call) {
    Call copy;
    int i = 0;
    while (strcmp(scratch_exercise(i)->function, name) != 0) i++;
    if (!call_copy(scratch_exercise(i), &copy, call)) return false;
    went_outside = false;
    scratch_exercise(i)->call(mistake, &copy);
    call_free(&copy);
    return !went_outside;
}
static void forget(Matrix *y) {
    for (int i = 0; i < y->a->rows * y->a->columns; i++) y->a->grad[i] = 0;
    for (int i = 0; y->b && i < y->b->rows * y->b->columns; i++) y->b->grad[i] = 0;
}
/* A mistake may leave a variable unused. */
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wmisleading-indentation"
#include "attention.inc" /* made by exercises.mk */

/* ---- inputs ---------------------------------------------------------------------------------- */

static const Sizes products[] = {{{1, 1, 1}, 2, 0}, {{2, 2, 2}, 2, 0}, {{3, 3, 3}, 2, 0},
                                 {{2, 3, 2}, 2, 0}, {{3, 2, 4}, 2, 0}, {{4, 3, 1}, 2, 0},
                                 {{1, 4, 3}, 0, 0}, {{0}, 0, 0}};
/* Q, K, heads, D; variant 1: scores far apart, 2: far below 0 */
static const Sizes heads[] = {{{1, 1, 1, 1}, 2, 0}, {{2, 2, 2, 2}, 2, 0}, {{3, 3, 1, 2}, 2, 0},
                              {{1, 3, 2, 1}, 2, 0}, {{2, 3, 1, 3}, 2, 0}, {{2, 4, 2, 2}, 2, 0},
                              {{3, 4, 3, 2}, 2, 0}, {{2, 3, 2, 4}, 9, 1}, {{2, 3, 2, 1}, 5, 2},
                              {{0}, 0, 0}};
/* rows, those of the table, columns */
static const Sizes lists[] = {{{1, 1, 1}, 2, 0}, {{3, 3, 2}, 2, 0}, {{4, 2, 3}, 2, 0},
                              {{2, 4, 3}, 2, 0}, {{6, 3, 2}, 2, 0}, {{0}, 0, 0}};
/* rows, columns; variant 1: the logit that is asked is large, 2: another one */
static const Sizes logits[] = {{{1, 2}, 2, 0}, {{2, 2}, 2, 0}, {{3, 3}, 2, 0},
                               {{3, 2}, 2, 0}, {{4, 5}, 2, 0}, {{5, 3}, 9, 0},
                               {{2, 3}, 2, 1}, {{2, 3}, 2, 2}, {{0}, 0, 0}};
/* The sizes of the program itself: an array of its own that is shorter would do above. */
static const Sizes products_large[] = {{{18, 32, 32}, 2, 0}, {{18, 32, 27}, 2, 0}, {{0}, 0, 0}};
static const Sizes heads_large[] = {{{18, 18, 2, 16}, 1, 0}, {{1, 18, 2, 16}, 1, 0}, {{0}, 0, 0}};
static const Sizes lists_large[] = {{{18, 27, 32}, 2, 0}, {{0}, 0, 0}};
static const Sizes logits_large[] = {{{18, 27}, 2, 0}, {{0}, 0, 0}};
/* 4 results on the tape, 6 weights */
static const Sizes chains[] = {{{4}, 3, 0}, {{4}, 3, 0}, {{0}, 0, 0}};
static const Sizes six[] = {{{6}, 3, 0}, {{0}, 0, 0}};
/* n letters; variant 1: of two texts */
#define TEXTS(v)                                                                                   \
    {{2}, 0.6, v}, {{1}, 0.6, v}, {{3}, 0.6, v}, {{7}, 0.6, v}, {{18}, 0.6, v}, { {0}, 0, 0 }
static const Sizes one_text[] = {TEXTS(0)};
static const Sizes two_texts[] = {TEXTS(1)};
static const Sizes steps[] = {{{1, 1}, 0.6, 0}, {{3, 1}, 0.6, 0}, {{2, 3}, 0.6, 0}, {{0}, 0, 0}};

static void draw_index(double *index, int n, int low, int high, Random *random) {
    for (int i = 0; i < n; i++) index[i] = floor(random_uniform(random, low, high));
}

/* Masked scores are the largest ones. */
static void prepare_softmax(Call *c, const Sizes *sizes, Random *random) {
    const int columns = c->size[1], rows = c->size[0] * c->size[2];
    double *a = c->array[1];
    (void)random;
    for (int i = 0; i < rows * columns; i++) {
        if (sizes->variant == 1) a[i] *= 80;
        if (sizes->variant == 2) a[i] -= 2000;
        if (sizes->variant && i % columns == columns - 1) a[i] = 3000;
    }
}
static void prepare_embed(Call *c, const Sizes *sizes, Random *random) {
    (void)sizes;
    draw_index(c->array[2], c->size[0], 0, c->size[1], random);
}
/* Some rows are not asked; the first one is. */
static void prepare_logits(Call *c, const Sizes *sizes, Random *random) {
    double *index = c->array[2];
    draw_index(index, c->size[0], -1, c->size[1], random);
    index[0] = fabs(index[0]);
    if (c->size[0] > 1) index[c->size[0] - 1] = -1;
    const int large = (int)index[0] + sizes->variant - 1;
    if (sizes->variant) put(c->array[1], large % c->size[1], 3000);
}
static void prepare_letters(Call *c, const Sizes *sizes, Random *random) {
    draw_index(c->array[9], c->size[0] * (sizes->variant + 1), 0, TOKENS, random);
}
static void prepare_words(Call *c, const Sizes *sizes, Random *random) {
    (void)sizes;
    c->number[0] = 0.4;
    draw_index(c->array[WEIGHTS + 2], c->size[0] * WORD, 0, ARROW, random);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* clang-format off */
#define ADDS "Which terms does it get, with which indices?"
#define N(name)          {name, SIZE, NULL, NULL}
#define IN(name, r, c)   {name, INPUT, r, c}
#define OUT_(name, r, c) {name, OUTPUT, r, c}
#define SIX(d, kind)                                                                               \
    {d "TOKEN", kind, "27", "32"}, {d "PLACE", kind, "18", "32"}, {d "QUERY", kind, "32", "32"},   \
    {d "KEY", kind, "32", "32"}, {d "VALUE", kind, "32", "32"}, {d "OUT", kind, "32", "27"}
/* clang-format on */
#define UPDATED "Each number of each weight must become w - rate times its gradient."
#define STEP                                                                                        \
    "Does the step use the gradients of all n examples, once each, and the rate divided by n? Are " \
    "they 0 at the start, also in the second call?"
#define SIX_TIMES(text) text, text, text, text, text, text
#define HEADS_AND_D     N("Q"), N("K"), N("heads"), N("D")
#define WIDE            "heads * D"
#define ROWS            "heads * Q"

/* How the function is called. */
#define CALLS(f, type)                                                                             \
    static void try_##f(Function *function, const Call *c) {                                       \
        call_##f((type)function, c->size, c->number, c->array);                                    \
    }                                                                                              \
    _Static_assert(sizeof mistakes_##f / sizeof *mistakes_##f <= MOST_MISTAKES, #f);
#define RULE(f) CALLS(f, Rule *)
RULE(matmul_forward)
RULE(softmax_forward)
RULE(scores_forward)
RULE(mix_forward)
RULE(matmul_backward)
RULE(softmax_backward)
RULE(scores_backward)
RULE(mix_backward)
RULE(embed_backward)
RULE(cross_entropy_forward)
RULE(cross_entropy_backward)
CALLS(record, Matrix *(*)(Matrix))
CALLS(backward, void (*)(Matrix *))
CALLS(clear, void (*)(void))
CALLS(model, Matrix *(*)(int, const int *, Matrix **))
CALLS(update, void (*)(double))
CALLS(train, double (*)(int, const Example *, double))
CALLS(model_next, Matrix *(*)(Cache *, int))

#define FUNCTION(n, f, sizes, prepare_)                                                            \
    .number = n, .name = #f, .function = #f, .file = "attention",                                  \
    .prototype = "(const int *size, const double *number, void *const *array)",                    \
    .arguments = "size, number, array", .inputs = sizes, .prepare = prepare_, .call = try_##f,     \
    .source = (Function *)f, .mistakes = mistakes_##f

#define OP_FUNCTION(n, f, sizes, prepare_) FUNCTION(n, f, sizes, prepare_), .large = sizes##_large

static const Exercise exercises[SCRATCH] = {
    {OP_FUNCTION(11, matmul_forward, products, NULL), .steps = 1,
     .parameter = {N("N"), N("K"), N("M"), OUT_("y", "N", "M"), IN("a", "N", "K"),
                   IN("b", "K", "M")},
     .asks = {"Over which index is the sum, and how far does it go?"}},
    {OP_FUNCTION(21, softmax_forward, heads, prepare_softmax), .steps = 1,
     .parameter = {N("Q"), N("K"), N("heads"), OUT_("y", ROWS, "K"), IN("a", ROWS, "K")},
     .asks = {"Which keys does the query of this row see, and over which are max and the sum?"}},
    {OP_FUNCTION(31, scores_forward, heads, NULL), .steps = 1,
     .parameter = {HEADS_AND_D, OUT_("y", ROWS, "K"), IN("q", "Q", WIDE), IN("k", "K", WIDE)},
     .asks =
         {"Which row has query i of head h, which columns has the head, and by what is the sum divided?"}},
    {OP_FUNCTION(32, mix_forward, heads, NULL), .steps = 1,
     .parameter = {HEADS_AND_D, OUT_("y", "Q", WIDE), IN("p", ROWS, "K"), IN("v", "K", WIDE)},
     .asks = {"Which row of p has the weights of query i in the head of this column?"}},
    {FUNCTION(41, record, chains, NULL), .steps = 1,
     .parameter = {N("results"), OUT_("value", NULL, "4"), OUT_("tape", NULL, "4"),
                   OUT_("length", NULL, "1"), OUT_("made", NULL, "1"), OUT_("runs", NULL, "1"),
                   IN("x", NULL, "1")},
     .asks = {"Does forward run once, on the matrix that is returned?",
              "Is each result put at the end of the tape?",
              "How many results are on the tape after four records?",
              "Is the result made by matrix(m)? m ends with record.",
              "How often does forward run, of four results?"}},
    {FUNCTION(42, backward, chains, NULL), .steps = 1,
     .parameter = {N("results"), OUT_("order", NULL, "4"), OUT_("runs", NULL, "1"),
                   OUT_("dloss", NULL, "1"), OUT_("dx", NULL, "1"), OUT_("twice", NULL, "1"),
                   IN("x", NULL, "1")},
     .asks =
         {"In which order do the backwards of four results run?",
          "How often does each result's backward run? Once.",
          "What is the derivative of the loss by the loss?",
          "The gradient does not arrive, or arrives changed.",
          "A leaf's gradient adds up, and a result that is used twice gets both parts before its own backward. Is it so?"}},
    {FUNCTION(43, clear, chains, NULL), .steps = 1,
     .parameter = {N("results"), OUT_("length", NULL, "1"), OUT_("left", NULL, "1"),
                   OUT_("again", NULL, "1"), IN("x", NULL, "1")},
     .asks = {"The tape must be empty after clear.",
              "Is each result on the tape released, and nothing else?",
              "After clear the tape must work as before."}},
    {OP_FUNCTION(51, matmul_backward, products, NULL), .dy = "dy", .before = 1,
     .parameter = {N("N"), N("K"), N("M"), OUT_("da", "N", "K"), OUT_("db", "K", "M"),
                   IN("a", "N", "K"), IN("b", "K", "M"), IN("dy", "N", "M")},
     .asks = {ADDS, ADDS}},
    {OP_FUNCTION(61, softmax_backward, heads, prepare_softmax), .dy = "dy", .before = 1,
     .parameter = {N("Q"), N("K"), N("heads"), OUT_("da", ROWS, "K"), IN("a", ROWS, "K"),
                   IN("dy", ROWS, "K")},
     .asks = {ADDS}},
    {OP_FUNCTION(71, scores_backward, heads, NULL), .dy = "dy", .before = 1,
     .parameter = {HEADS_AND_D, OUT_("dq", "Q", WIDE), OUT_("dk", "K", WIDE), IN("q", "Q", WIDE),
                   IN("k", "K", WIDE), IN("dy", ROWS, "K")},
     .asks = {ADDS, ADDS}},
    {OP_FUNCTION(72, mix_backward, heads, NULL), .dy = "dy", .before = 1,
     .parameter = {HEADS_AND_D, OUT_("dp", ROWS, "K"), OUT_("dv", "K", WIDE), IN("p", ROWS, "K"),
                   IN("v", "K", WIDE), IN("dy", "Q", WIDE)},
     .asks = {ADDS, ADDS}},
    {OP_FUNCTION(81, embed_backward, lists, prepare_embed), .dy = "dy", .before = 1,
     .parameter = {N("N"), N("R"), N("M"), OUT_("da", "R", "M"), IN("a", "R", "M"),
                   IN("index", NULL, "N"), IN("dy", "N", "M")},
     .asks = {ADDS}},
    {OP_FUNCTION(82, cross_entropy_forward, logits, prepare_logits), .steps = 1,
     .parameter = {N("N"), N("M"), OUT_("y", NULL, "1"), IN("a", "N", "M"), IN("index", NULL, "N")},
     .asks = {"Which rows are asked, and by how many is the sum divided? Is max subtracted?"}},
    {OP_FUNCTION(83, cross_entropy_backward, logits, prepare_logits), .dy = "dy", .before = 1,
     .parameter = {N("N"), N("M"), OUT_("da", "N", "M"), IN("a", "N", "M"), IN("index", NULL, "N"),
                   IN("dy", NULL, "1")},
     .asks = {ADDS}},
    {FUNCTION(91, model, one_text, prepare_letters), .steps = 1,
     .parameter = {N("n"), OUT_("sizes", NULL, "4"), OUT_("weights", "2 * n", "n"),
                   OUT_("logits", "n", "27"), SIX("", INPUT), IN("token", NULL, "n")},
     .asks =
         {"These are rows and columns of *weights, the softmax of all heads, and of the logits, the result.",
          "Are the places added, are queries and keys x times QUERY and KEY, in this order, and have scores and softmax HEADS heads?",
          "They are the mix of the weights with x times VALUE, times OUT."}},
    {FUNCTION(92, update, six, NULL), .steps = 1,
     .parameter = {N("weights"), SIX("", STATE), SIX("d", INPUT), {"rate", DOUBLE, NULL, NULL}},
     .asks = {SIX_TIMES(UPDATED)}},
    {FUNCTION(93, train, steps, prepare_words), .steps = 1,
     .parameter = {N("n"),
                   N("calls"),
                   SIX("", STATE),
                   OUT_("loss", NULL, "calls"),
                   OUT_("length", NULL, "calls"),
                   IN("letter", "n", "9"),
                   {"rate", DOUBLE, NULL, NULL}},
     .asks = {SIX_TIMES(STEP), "The mean of the losses of n examples, before the step.",
              "The tape must be empty when train returns."}},
    {FUNCTION(101, model_next, two_texts, prepare_letters), .steps = 1,
     .parameter = {N("n"), OUT_("logits", "2 * n", "27"), OUT_("rows", "2 * n", "2"),
                   OUT_("made", NULL, "2 * n"), SIX("", INPUT), IN("token", NULL, "2 * n")},
     .asks =
         {"Right for the first letter of both texts? Then the cache is not; which place has the letter?",
          "After a letter, key and value each have a row more.",
          "It is 1 where more numbers are made than one letter needs."}},
};

const Exercise *scratch_exercise(int i) { return i < SCRATCH ? &exercises[i] : NULL; }
