/* test_again.c - questions about earlier lessons (examples/explain/lessons/again.h): each can be
 * answered, its answer is what the rule gives, and no known mistake gives it. */
#include "../common.h"
#include "common_live.h"

#include "../../../examples/explain/lessons/again.h"
#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/page/live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 1000 };

static Again draw(int kind, uint64_t seed) {
    Again q;
    ck_assert_msg(again_draw_kind((AgainKind)kind, seed, &q), "%s", tensor_error());
    return q;
}

/* ---- the answers, by hand -------------------------------------------------------------------- */

static double mean_of(const Again *q) {
    double mean = 0;
    for (int i = 0; i < 3; i++) mean += q->tables[0].numbers[i] * q->tables[1].numbers[i];
    return mean;
}

static double slope_of_weight(const Again *q) {
    const double *row = q->tables[1].numbers + 2 * q->at;
    return q->tables[0].numbers[0] * row[0] + q->tables[0].numbers[1] * row[1];
}

static double slope_of_score(const Again *q) {
    return q->tables[0].numbers[q->at] * (q->tables[1].numbers[q->at] - mean_of(q));
}

/* Bit i: number i is 0. Of a row with one key the gradient is 0, too; of a row without a key each
 * weight is a third. */
static int zeros(const Again *q, bool of_weights) {
    int found = 0;
    for (int row = 0; row < 3; row++) {
        int seen = 0;
        const double *keep = q->tables[0].numbers + 3 * row;
        for (int k = 0; k < 3; k++) seen += keep[k] != 0;
        for (int k = 0; k < 3; k++)
            if (of_weights ? keep[k] == 0 && seen > 0 : keep[k] == 0 || seen == 1)
                found |= 1 << (3 * row + k);
    }
    return found;
}

static double after_step(const Again *q) {
    double w, dw;
    ck_assert_int_eq(sscanf(q->ask, "`w` is %lf, and its gradient `dw` is %lf", &w, &dw), 2);
    ck_assert_ptr_nonnull(strstr(q->ask, "the learning rate 0.1?"));
    return w - 0.1 * dw;
}

static double sum_of_uses(const Again *q) {
    double k, v, dK, dV;
    const int read = sscanf(q->ask,
                            "Two lines read the number `x`: `K` = %lf `x` and `V` = %lf `x`. `dK` "
                            "= %lf and `dV` = %lf",
                            &k, &v, &dK, &dV);
    ck_assert_int_eq(read, 4);
    return k * dK + v * dV;
}

static double count_of_heads(const Again *q) {
    int words, numbers, heads;
    const int read = sscanf(q->ask, "%d words have %d numbers each, and %d heads share them.",
                            &words, &numbers, &heads);
    ck_assert_int_eq(read, 3);
    const int d = numbers / heads, counts[] = {heads * words * words, d, words * d};
    return counts[q->at];
}

static double right_answer(int kind, const Again *q) {
    switch ((AgainKind)kind) {
    case AGAIN_STEP: return after_step(q);
    case AGAIN_PRODUCT: return slope_of_weight(q);
    case AGAIN_PRODUCT_SIGN: return slope_of_weight(q) > 0;
    case AGAIN_SOFTMAX: return slope_of_score(q);
    case AGAIN_SOFTMAX_SIGN: return slope_of_score(q) > 0;
    case AGAIN_MASK: return zeros(q, false);
    case AGAIN_FILL: return zeros(q, true);
    case AGAIN_USES: return sum_of_uses(q);
    case AGAIN_HEADS: return count_of_heads(q);
    case AGAIN_KINDS: break;
    }
    return (double)NAN;
}

/* ---- each kind ------------------------------------------------------------------------------- */

static void expect_fair(int kind, uint64_t seed, const Again *q) {
    const double right = right_answer(kind, q);
    ck_assert_msg(fabs(q->answer - right) < 1e-9, "kind %d, seed %d: %g, not %g: %s", kind,
                  (int)seed, q->answer, right, q->ask);
    ck_assert(q->form == AGAIN_CHOICE || q->answer != 0);
    ck_assert_double_eq(q->answer, round(q->answer * 100) / 100);
    ck_assert_int_gt(q->num_mistakes, 0);
    for (int i = 0; i < q->num_mistakes; i++) {
        ck_assert_msg(fabs(q->mistakes[i].value - q->answer) >= 0.02, "kind %d, seed %d: %s", kind,
                      (int)seed, q->mistakes[i].says);
        ck_assert_int_gt(strlen(q->mistakes[i].says), 10);
    }
    ck_assert(strlen(q->hint) > 10 && strlen(q->hint) < sizeof q->hint - 1);
    ck_assert(strlen(q->why) > 5 && strlen(q->why) < sizeof q->why - 1);
    ck_assert_int_lt(strlen(q->ask), sizeof q->ask - 1);
}

/* The same question with the same numbers? */
static bool is_same(const Again *a, const Again *b) {
    bool same = a->at == b->at && strcmp(a->ask, b->ask) == 0;
    for (int t = 0; t < a->num_tables; t++)
        for (int i = 0; i < AGAIN_CELLS; i++)
            same = same && a->tables[t].numbers[i] == b->tables[t].numbers[i];
    return same;
}

CASE("again")
LOOP_TEST(fair_questions, AGAIN_KINDS) {
    static Again drawn[SEEDS];
    int different = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        drawn[seed] = draw(_i, (uint64_t)seed);
        expect_fair(_i, (uint64_t)seed, &drawn[seed]);
        int before = 0;
        while (!is_same(&drawn[before], &drawn[seed])) before++;
        different += before == seed;
    }
    ck_assert_msg(different > 80, "kind %d: %d different questions", _i, different);
}

/* The named mistakes are what their formulas give. */
TEST(mistakes_have_their_values) {
    for (uint64_t seed = 0; seed < 10; seed++) {
        const Again q = draw(AGAIN_SOFTMAX, seed);
        const double p = q.tables[0].numbers[q.at], dA = q.tables[1].numbers[q.at];
        const double wanted[] = {p * dA, p * (1 - p) * dA, dA - mean_of(&q), -q.answer};
        for (int i = 0; i < 4; i++) ck_assert(fabs(q.mistakes[i].value - wanted[i]) < 1e-9);
        const Again step = draw(AGAIN_STEP, seed);
        ck_assert(fabs(step.mistakes[0].value - step.answer) > 0.1);
        const Again keep = draw(AGAIN_MASK, seed);
        ck_assert_int_eq((int)keep.mistakes[0].value & ~(int)keep.answer, 0); /* some are missing */
    }
}

/* ---- the library's own backward -------------------------------------------------------------- */

/* Softmax composed of exp, sum and division; a product's gradient by a loss. */
TEST(answers_by_other_ops) {
    for (uint64_t seed = 0; seed < 10; seed++) {
        const Again q = draw(AGAIN_SOFTMAX, seed), p = draw(AGAIN_PRODUCT, seed);
        tape_begin();
        Tensor *z = tape_own(ag_requires_grad(tensor_zeros(SHAPE(1, 3))));
        Tensor *e = ag_mul(
            ag_exp(z),
            tape_own(leaf(SHAPE(1, 3), q.tables[0].numbers))); /* at 0 the weights are the table */
        Tensor *a = ag_div(e, ag_sum(e));
        ck_assert(ag_backward(ag_sum(ag_mul(a, tape_own(leaf(SHAPE(1, 3), q.tables[1].numbers))))));
        ck_assert(fabs(tensor_get(z->grad, (int64_t)0, (int64_t)q.at) - q.answer) < 1e-12);
        Tensor *weights = tape_own(ag_requires_grad(tensor_ones(SHAPE(1, 2))));
        Tensor *y = ag_mul(ag_matmul(weights, tape_own(leaf(SHAPE(2, 2), p.tables[1].numbers))),
                           tape_own(leaf(SHAPE(1, 2), p.tables[0].numbers)));
        ck_assert(ag_backward(ag_sum(y)));
        ck_assert(fabs(tensor_get(weights->grad, (int64_t)0, (int64_t)p.at) - p.answer) < 1e-12);
        tape_end();
    }
}

/* ---- the lessons ----------------------------------------------------------------------------- */

static const char *const lessons[] = {"2", "3", "3b", "4", "5", "6"};
static const char *const about[] = {"1", "2", "3", "3b", "4", "5"};

/* The first question is about the lesson before, the second about that or an earlier one. */
TEST(questions_of_lessons) {
    Again q[AGAIN_MOST];
    ck_assert_int_eq(again_draw(1, 'a', 0, q), 0);
    ck_assert_int_eq(again_draw(7, 'a', 0, q), 0);
    for (int i = 0; i < COUNT(lessons); i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            ck_assert_int_eq(again_draw(*lessons[i] - '0', lessons[i][1], seed, q), 2);
            ck_assert_str_eq(q[0].about, about[i]);
            ck_assert_int_le(strcmp(q[1].about, about[i]), 0);
            ck_assert(!is_same(&q[0], &q[1]));
        }
}

/* No two questions that a page with all lessons has recorded are the same. */
TEST(recorded_questions) {
    char asked[2 * COUNT(lessons)][600] = {{0}};
    int n = 0;
    char *text = lessons_as_json(1, LESSONS, (LessonOptions){.dropout = -1, .seed = LESSON_SEED});
    Json *read = json_read(text);
    ck_assert_msg(read != NULL, "%s", tensor_error());
    for (const Json *lesson = json_first(read, "lessons"); lesson; lesson = lesson->next)
        for (const Json *q = json_first(lesson, "again"); q; q = q->next, n++) {
            snprintf(asked[n], sizeof asked[n], "%s %s %g", json_text(q, "ask", ""),
                     json_text(q, "why", ""), json_number(json_get(q, "answer")));
            for (int i = 0; i < n; i++) ck_assert_str_ne(asked[i], asked[n]);
        }
    ck_assert_int_eq(n, 2 * COUNT(lessons));
    free(read);
    free(text);
}

TEST(requests) {
    for (int i = 0; i < COUNT(lessons); i++) {
        const Json *again = json_get(ask(format("lesson %s\nagain 17", lessons[i])), "again");
        ck_assert_int_eq(again->count, 2);
        ck_assert_str_eq(json_text(again->first, "about", ""), about[i]);
        char first[400];
        snprintf(first, sizeof first, "%s", json_text(again->first, "why", ""));
        again = json_get(ask(format("lesson %s\nagain 18", lessons[i])), "again");
        ck_assert(i == 2 || i == 3 || strcmp(json_text(again->first, "why", ""), first) != 0);
    }
    ck_assert_int_eq(json_get(ask("lesson 1\nagain 0"), "again")->count, 0);
    ck_assert_str_eq(json_text(ask("lesson 2\nagain x"), "error", ""),
                     "again is \"x\": it must be a seed, an integer that is not negative");
    ck_assert_str_eq(json_text(ask("lesson 2\nagain -1"), "error", ""),
                     "again is \"-1\": it must be a seed, an integer that is not negative");
    ask_no_more();
}

int main(void) { return run_tests("again"); }
