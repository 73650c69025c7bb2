/* again.c - questions about earlier lessons: see again.h. The sections: numbers, gradients, kinds,
 * the whole. */
#include "again.h"

#include "../page/json.h"
#include "lesson.h"
#include "../page/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const places[] = {"first", "second", "third"};
static const char *const grow_or_shrink[] = {"grow", "shrink"};
#define SAY(text, ...) snprintf(text, sizeof(text), __VA_ARGS__)
enum { NEITHER = -1, MOST_TRIES = 1000 };

/* ---- numbers --------------------------------------------------------------------------------- */

/* 0 to n - 1 */
static int roll(int n) {
    Tensor *x = tensor_randint(0, n, SCALAR);
    const int i = x ? (int)tensor_item(x) : 0;
    tensor_release(x);
    return i;
}

/* A whole number from -most to most, but not 0. */
static double whole(int most) {
    const int i = roll(2 * most);
    return i < most ? i - most : i - most + 1;
}

/* Three weights in tenths, with the sum 1. */
static void fill_weights(AgainTable *t) {
    const int first = 1 + roll(7), second = 1 + roll(9 - first);
    t->numbers[0] = first / 10.0;
    t->numbers[1] = second / 10.0;
    t->numbers[2] = (10 - first - second) / 10.0;
}

static void fill_whole(AgainTable *t, int most) {
    for (int i = 0; i < t->rows * t->columns; i++) t->numbers[i] = whole(most);
}

static AgainTable *add_table(Again *q, const char *name, const char *note, int rows, int columns) {
    AgainTable *t = &q->tables[q->num_tables++];
    *t = (AgainTable){.name = name, .note = note, .rows = rows, .columns = columns};
    return t;
}

static void add_mistake(Again *q, double value, const char *says) {
    q->mistakes[q->num_mistakes++] = (AgainMistake){value, says};
}

/* A negative factor has brackets: "2 x (-3)". The string is valid for the next 7 calls. */
static const char *factor(double x) {
    static char texts[8][32];
    static int next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], x < 0 ? "(%g)" : "%g", x);
    return text;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static Tensor *leaf(const AgainTable *t) {
    return tape_own(ag_requires_grad(tensor_from_doubles(SHAPE(t->rows, t->columns), t->numbers)));
}

static Tensor *scalar(double x) { return tape_own(ag_requires_grad(tensor_full(SCALAR, x))); }

/* The gradient of element i of x, when dy arrives at y. */
static double gradient(Tensor *y, const Tensor *dy, const Tensor *x, int i) {
    ag_backward_from(y, dy);
    return lesson_element(x ? x->grad : NULL, i);
}

/* Y = A V, with A of one row; dY and V are the question's tables. */
static double gradient_of_weight(Again *q) {
    AgainTable a = {.rows = 1, .columns = 2, .numbers = {0.5, 0.5}};
    AgainTable *dy = add_table(q, "dY", "arrives", 1, 2);
    AgainTable *v = add_table(q, "V", "", 2, 2);
    fill_whole(dy, 3);
    fill_whole(v, 3);
    q->at = roll(2);
    tape_begin();
    Tensor *A = leaf(&a);
    const double dA = gradient(ag_matmul(A, leaf(v)), leaf(dy), A, q->at);
    tape_end();
    return dA;
}

/* A = softmax(Z); A and dA are the question's tables. */
static double gradient_of_score(Again *q) {
    AgainTable z = {.rows = 1, .columns = 3};
    AgainTable *a = add_table(q, "A", "weights of one row", 1, 3);
    AgainTable *da = add_table(q, "dA", "arrives", 1, 3);
    fill_weights(a);
    fill_whole(da, 4);
    for (int i = 0; i < 3; i++) z.numbers[i] = log(a->numbers[i]);
    q->at = roll(3);
    tape_begin();
    Tensor *Z = leaf(&z);
    const double dZ = gradient(ag_softmax(Z, 1), leaf(da), Z, q->at);
    tape_end();
    return dZ;
}

/* The sum of A x dA over the row. */
static double mean_of(const Again *q) {
    double mean = 0;
    for (int i = 0; i < 3; i++) mean += q->tables[0].numbers[i] * q->tables[1].numbers[i];
    return round(mean * 10) / 10;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void choose_direction(Again *q, double slope, const char *says) {
    q->form = AGAIN_CHOICE;
    memcpy(q->options, grow_or_shrink, sizeof grow_or_shrink);
    q->answer = fabs(slope) < 1e-9 ? NEITHER : slope > 0;
    add_mistake(q, slope <= 0, says);
    SAY(q->why, "Its gradient is %g: the loss %s when it grows.", slope,
        slope > 0 ? "grows" : "shrinks");
}

static void draw_step(Again *q) {
    const double w = (2 + roll(18)) / 10.0, dw = whole(5), rate = 0.1;
    tape_begin();
    Tensor *x = scalar(w);
    ag_backward(ag_scale(x, dw));
    if (x && x->grad) tensor_add_(x, x->grad, -rate);
    q->answer = lesson_element(x, 0);
    tape_end();
    add_mistake(q, w + rate * dw, "That goes up the slope: a step subtracts.");
    add_mistake(q, w - dw, "The gradient counts times the learning rate.");
    SAY(q->ask,
        "`w` is %g, and its gradient `dw` is %g. Where does a step of SGD lead `w`, with the "
        "learning rate %g?",
        w, dw, rate);
    SAY(q->hint, "A step subtracts the learning rate times the gradient.");
    SAY(q->why, "%g - %g x %s = %g", w, rate, factor(dw), w - rate * dw);
}

static void draw_product_sign(Again *q) {
    const double dA = gradient_of_weight(q);
    choose_direction(q, dA, "A step goes against the gradient: it subtracts.");
    SAY(q->ask,
        "`Y` = `A` `V`, where `A` is one row of two weights. `dY` arrives. For a smaller loss, "
        "should the %s weight grow or shrink?",
        places[q->at]);
    SAY(q->hint, "First its gradient: `dY` times the %s row of `V`.", places[q->at]);
}

static void draw_product(Again *q) {
    q->answer = gradient_of_weight(q);
    const double *dy = q->tables[0].numbers;
    const double *v = q->tables[1].numbers;
    const double *row = v + 2 * q->at;
    add_mistake(q, dy[0] * v[q->at] + dy[1] * v[2 + q->at],
                "That is `dY` times a column of `V`. The weight multiplied a row.");
    add_mistake(q, dy[0] * row[0], "That is the first product alone: `Y` has two numbers.");
    add_mistake(q, dy[1] * row[1], "That is the second product alone: `Y` has two numbers.");
    add_mistake(q, -q->answer, "The size is right, the sign is not.");
    SAY(q->ask,
        "`Y` = `A` `V`, where `A` is one row of two weights. `dY` arrives. What is the "
        "gradient of the %s weight?",
        places[q->at]);
    SAY(q->hint,
        "Which numbers of `V` did this weight multiply, and into which numbers of `Y` did they "
        "go?");
    SAY(q->why, "%g x %s + %s x %s = %g", dy[0], factor(row[0]), factor(dy[1]), factor(row[1]),
        q->answer);
}

static void draw_softmax_sign(Again *q) {
    const double dZ = gradient_of_score(q), dA = q->tables[1].numbers[q->at];
    choose_direction(q, dZ,
                     (dA > 0) != (dZ > 0) ? "`dA` alone does not decide it: what counts is how far "
                                            "it is above the weighted mean of the row."
                                          : "A step goes against the gradient: it subtracts.");
    SAY(q->ask,
        "`A` = softmax(`Z`), and `dA` arrives. For a smaller loss, should the %s score grow "
        "or shrink?",
        places[q->at]);
    SAY(q->hint, "Is its `dA` above or below the weighted mean of the row, the sum of `A` x `dA`?");
}

static void draw_softmax(Again *q) {
    q->answer = gradient_of_score(q);
    const double p = q->tables[0].numbers[q->at], dA = q->tables[1].numbers[q->at];
    const double mean = mean_of(q);
    add_mistake(q, p * dA, "That is `A` x `dA`: the weighted mean of the row is not subtracted.");
    add_mistake(q, p * (1 - p) * dA, "That counts its own weight only; the others change, too.");
    add_mistake(q, dA - mean, "That is how far `dA` is above the mean: now times the weight.");
    add_mistake(q, -q->answer, "The size is right, the sign is not.");
    SAY(q->ask, "`A` = softmax(`Z`), and `dA` arrives. What is the gradient of the %s score?",
        places[q->at]);
    SAY(q->hint,
        "First the weighted mean of the row, the sum of `A` x `dA`. How far above it is this "
        "`dA`?");
    SAY(q->why, "%g x (%g - %s) = %g", p, dA, factor(mean), p * (dA - mean));
}

/* Which of 3 x 3 keys may be seen: some of each row; none of row `blind`, or -1. */
static AgainTable *draw_keep(Again *q, const char *name, int blind) {
    AgainTable *keep = add_table(q, name, "hatched: hidden", 3, 3);
    for (int row = 0; row < 3; row++) {
        const int seen = row == blind ? 0 : 1 + roll(7); /* the bits of the keys */
        for (int k = 0; k < 3; k++) keep->numbers[3 * row + k] = seen >> k & 1;
    }
    return keep;
}

/* Bit i: element i of x is exactly 0. */
static int zeros_of(const Tensor *x) {
    int zeros = 0;
    for (int i = 0; i < 9; i++)
        if (lesson_element(x, i) == 0) zeros |= 1 << i;
    return zeros;
}

static int hidden_in(const AgainTable *keep) {
    int hidden = 0;
    for (int i = 0; i < 9; i++)
        if (keep->numbers[i] == 0) hidden |= 1 << i;
    return hidden;
}

static Tensor *any_scores(void) { return tape_own(ag_requires_grad(tensor_randn(SHAPE(1, 3, 3)))); }

static void draw_mask(Again *q) {
    const AgainTable *keep = draw_keep(q, "dZ", -1);
    bool cells[9];
    for (int i = 0; i < 9; i++) cells[i] = keep->numbers[i] != 0;
    tape_begin();
    Tensor *Z = any_scores();
    const AttentionMask mask = {.keep = tape_own(tensor_from_bools(SHAPE(1, 1, 3, 3), cells))};
    ag_backward_from(ag_attention_weights(Z, 1, mask, 1), any_scores());
    q->answer = zeros_of(Z ? Z->grad : NULL);
    tape_end();
    q->form = AGAIN_WHICH;
    add_mistake(q, hidden_in(keep),
                "Not all: a row with one key gives it the weight 1, whatever its score is.");
    add_mistake(q, 511 - q->answer, "It is the other way round.");
    SAY(q->ask,
        "`A` is softmax of the scores `Z`; the mask hides the hatched keys. Which numbers of "
        "`dZ` are exactly 0, whatever arrives?");
    SAY(q->hint, "Which scores can change no weight?");
    SAY(q->why,
        "A hidden score changes no weight; nor does the score of a key that is alone in its "
        "row.");
}

static void draw_fill(Again *q) {
    const AgainTable *keep = draw_keep(q, "B", roll(3));
    bool cells[9];
    for (int i = 0; i < 9; i++) cells[i] = keep->numbers[i] == 0;
    tape_begin();
    Tensor *mask = tape_own(tensor_from_bools(SHAPE(1, 3, 3), cells));
    q->answer = zeros_of(ag_softmax(ag_masked_fill(any_scores(), mask, -1e6), 2));
    tape_end();
    q->form = AGAIN_WHICH;
    add_mistake(q, hidden_in(keep),
                "In a row without a key all scores are -1e6: equal scores get equal weights.");
    add_mistake(q, 511 - q->answer, "It is the other way round.");
    SAY(q->ask,
        "The hatched scores are filled with -1e6; then softmax makes `B` of each row. Which "
        "numbers of `B` are exactly 0?");
    SAY(q->hint, "What are the weights where all scores of a row are equal?");
    SAY(q->why,
        "Beside another score e to -1e6 is 0; a row of equal scores has the weight 1/3 for each.");
}

static void draw_uses(Again *q) {
    const double k = whole(1) * (2 + roll(3)), v = whole(1) * (2 + roll(3));
    const double dK = whole(5), dV = whole(5);
    tape_begin();
    Tensor *x = scalar(1);
    Tensor *K = ag_mul(x, scalar(k));
    Tensor *V = ag_mul(x, scalar(v));
    ag_backward(ag_add(ag_scale(K, dK), ag_scale(V, dV)));
    q->answer = lesson_element(x ? x->grad : NULL, 0);
    tape_end();
    add_mistake(q, k * dK, "That is the part from `K` alone: the parts are added.");
    add_mistake(q, v * dV, "That is the part from `V` alone: the parts are added.");
    add_mistake(q, dK + dV, "What arrives counts times what `x` was multiplied by.");
    add_mistake(q, -q->answer, "The size is right, the sign is not.");
    SAY(q->ask,
        "Two lines read the number `x`: `K` = %g `x` and `V` = %g `x`. `dK` = %g and `dV` = %g "
        "arrive. What is `dx`?",
        k, v, dK, dV);
    SAY(q->hint, "A part from each line that reads `x`; then add them.");
    SAY(q->why, "%g x %s + %s x %s = %g", k, factor(dK), factor(v), factor(dV), q->answer);
}

/* The sizes of an attention with heads, by making it: (T, H d) -> A (H, T, T), Y_h (H, T, d). */
static void count_of_heads(int64_t T, int64_t H, int64_t d, double counts[3]) {
    tape_begin();
    Tensor *q = tape_own(tensor_ones(SHAPE(T, H * d)));
    Tensor *q_h = ag_permute(ag_reshape(q, SHAPE(T, H, d)), AXES(1, 0, 2));
    Tensor *a = ag_softmax(ag_bmm(q_h, ag_transpose(q_h, 1, 2)), -1);
    Tensor *gate = tape_own(ag_requires_grad(tensor_ones(SHAPE(H, 1, 1))));
    ag_backward(ag_sum(ag_mul(ag_bmm(a, q_h), gate))); /* of ones: a term is 1 */
    counts[0] = a ? (double)tensor_numel(a) : 0;
    counts[1] = q_h ? (double)q_h->shape.dim[2] : 0;
    counts[2] = lesson_element(gate ? gate->grad : NULL, 0);
    tape_end();
}

static void draw_heads(Again *q) {
    static const char *const asks[] = {
        "How many weights are there in `A`, in all heads together?",
        "How many numbers has a query in one head, the d in sqrt(d)?",
        "A gate multiplies the output of each head. How many terms has the gradient of one gate?"};
    const int T = 2 + roll(5), H = 2 + roll(3), d = 2 + roll(4);
    double counts[3];
    count_of_heads(T, H, d, counts);
    q->at = roll(3);
    q->answer = round(counts[q->at]);
    if (q->at == 0) {
        add_mistake(q, T * T, "That is one head. Each has weights of its own.");
        add_mistake(q, T * H, "Each word looks at each word, in each head.");
        SAY(q->why, "%d x %d x %d = %d: heads, queries, keys.", H, T, T, H * T * T);
    } else if (q->at == 1) {
        add_mistake(q, H * d, "These are shared among the heads.");
        SAY(q->why, "%d / %d = %d", H * d, H, d);
    } else {
        add_mistake(q, T * H * d, "That is the output of all heads: a gate has one of them.");
        add_mistake(q, T, "Each word has more than one number in a head.");
        SAY(q->why, "%d x %d = %d: words, and numbers in a head.", T, d, T * d);
    }
    SAY(q->ask, "%d words have %d numbers each, and %d heads share them. %s", T, H * d, H,
        asks[q->at]);
    SAY(q->hint, "A head has its own columns of `Q`, `K` and `V`, and sees every word.");
}

static const struct {
    const char *about;
    void (*draw)(Again *);
} kinds[AGAIN_KINDS] = {
    [AGAIN_STEP] = {"1", draw_step},       [AGAIN_PRODUCT_SIGN] = {"1", draw_product_sign},
    [AGAIN_PRODUCT] = {"1", draw_product}, [AGAIN_SOFTMAX_SIGN] = {"2", draw_softmax_sign},
    [AGAIN_SOFTMAX] = {"2", draw_softmax}, [AGAIN_MASK] = {"3", draw_mask},
    [AGAIN_FILL] = {"3b", draw_fill},      [AGAIN_USES] = {"4", draw_uses},
    [AGAIN_HEADS] = {"5", draw_heads},
};

/* ---- the whole ------------------------------------------------------------------------------- */

/* Is the answer worth asking for? A mistake must not lead to it. */
static bool is_fair(Again *q) {
    const double hundredths = round(q->answer * 100);
    if (fabs(hundredths - q->answer * 100) > 1e-7) return false;
    q->answer = hundredths / 100;
    if (q->form == AGAIN_CHOICE) return q->answer != NEITHER;
    if (q->answer == 0) return false;
    for (int i = 0; i < q->num_mistakes; i++)
        if (fabs(q->mistakes[i].value - q->answer) < 0.02) return false;
    return true;
}

static bool draw_fair(AgainKind kind, Again *q) {
    for (int tries = 0; tries < MOST_TRIES && !tensor_error(); tries++) {
        *q = (Again){.about = kinds[kind].about};
        kinds[kind].draw(q);
        if (!tensor_error() && is_fair(q)) return true;
    }
    return tensor_fail("again: no question of kind %d is fair", kind);
}

bool again_draw_kind(AgainKind kind, uint64_t seed, Again *q) {
    tensor_set_default_dtype(F64);
    tensor_manual_seed(seed);
    return draw_fair(kind, q);
}

int again_draw(int lesson, char part, uint64_t seed, Again q[AGAIN_MOST]) {
    enum { NEAR = 4 }; /* the second question is one of so many kinds before the first */
    static const AgainKind first[] = {0,          0,          AGAIN_PRODUCT, AGAIN_SOFTMAX,
                                      AGAIN_FILL, AGAIN_USES, AGAIN_HEADS};
    if (lesson < 2 || lesson >= (int)(sizeof first / sizeof *first)) return 0;
    const int kind = part == 'b' ? AGAIN_MASK : (int)first[lesson];
    const int near = kind < NEAR ? kind : NEAR;
    seed = 16 * seed + 2 * (uint64_t)lesson + (part == 'b'); /* two lessons draw other numbers */
    if (!again_draw_kind((AgainKind)kind, seed, &q[0])) return 0;
    return draw_fair((AgainKind)(kind - 1 - roll(near)), &q[1]) ? 2 : 0;
}

static void write_table(FILE *file, const AgainTable *t) {
    fprintf(file, "{\"name\":");
    json_write_string(file, t->name);
    json_write_member(file, "note", t->note);
    fprintf(file, ",\"columns\":%d,\"numbers\":[", t->columns);
    for (int i = 0; i < t->rows * t->columns; i++)
        fprintf(file, "%s%g", i ? "," : "", t->numbers[i]);
    fprintf(file, "]}");
}

static void write_question(FILE *file, const Again *q) {
    static const char *const forms[] = {"number", "which", "choice"};
    fprintf(file, "{\"about\":\"%s\",\"form\":\"%s\"", q->about, forms[q->form]);
    json_write_member(file, "ask", q->ask);
    json_write_member(file, "hint", q->hint);
    json_write_member(file, "why", q->why);
    fprintf(file, ",\"tables\":[");
    for (int i = 0; i < q->num_tables; i++) {
        if (i) putc(',', file);
        write_table(file, &q->tables[i]);
    }
    fprintf(file, "],\"answer\":%g,\"mistakes\":[", q->answer);
    for (int i = 0; i < q->num_mistakes; i++) {
        fprintf(file, "%s{\"value\":%g", i ? "," : "", q->mistakes[i].value);
        json_write_member(file, "says", q->mistakes[i].says);
        putc('}', file);
    }
    fprintf(file, "],\"options\":");
    json_write_strings(file, q->options, 2);
    putc('}', file);
}

void again_write(FILE *file, const Again *questions, int n) {
    putc('[', file);
    for (int i = 0; i < n; i++) {
        if (i) fprintf(file, ",\n");
        write_question(file, &questions[i]);
    }
    putc(']', file);
}

char *again_as_json(int lesson, char part, uint64_t seed) {
    Again questions[AGAIN_MOST] = {0};
    char *json;
    const int n = again_draw(lesson, part, seed, questions);
    FILE *file = data_open(&json);
    if (file) {
        fprintf(file, "{\"again\":");
        again_write(file, questions, n);
        fprintf(file, "}\n");
    }
    return data_close(file, json);
}
