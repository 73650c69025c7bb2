/* test_rule_card.c - the lines of a card: every right spelling is right, every known mistake is
 * named, also where its sizes do not fit, and nothing is right by chance. */
#include "../common.h"
#include "common_live.h"

#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/rules/rule_card.h"
#include "../../../examples/explain/rules/rule_planted.h"

#include <string.h>

/* The answer to one line. */
static const Json *judge(const char *lesson, const char *line) {
    const Json *card = json_get(ask(format("lesson %s\ncard 1\nrule %s", lesson, line)), "card");
    ck_assert_msg(card && card->count == 1, "%s: %s", lesson, line);
    return card->first;
}

/* Lines of one gradient are other ways to write the same. */
static const struct {
    const char *lesson, *line;
} right[] = {
    {"1", "dA: dY @ V'"},
    {"1", "dA: (V @ dY')'"},
    {"1", "dA: dY @ values'"},
    {"1", "dS: A * (dA - sum(A * dA))"},
    {"1", "dS: A * dA - A * sum(dA * A)"},
    {"1", "dU^2: -0.5 * dS"},
    {"1", "d(U^2): -dS / 2"},
    {"1", "dU: 2 * U * d(U^2)"},
    {"1", "dU: 2 * U * dU2"},
    {"1", "dU: -U * dS"},
    {"1", "dw: sum0(sum(dU * D))"},
    {"1", "dw: sum(sum0(D * dU))"},
    {"1", "dw: sum(sum(D * dU)')"},
    {"1", "dY: 2 * (Y - T)"},
    {"2", "dY: 2*(Y-T)"},
    {"2", "dY: 2 * E"},
    {"2", "dV: A' @ dY"},
    {"2", "dV: (dY' @ A)'"},
    {"2", "dV: AT @ dY"},
    {"2", "dV: A^T @ (2 * E)"},
    {"2", "dA: dY @ V'"},
    {"2", "dA: (V @ dY')'"},
    {"2", "dA: 2 * (Y - T) @ V'"},
    {"2", "dZ: A * (dA - sum(A * dA))"},
    {"2", "d(S / sqrt(d)): A * (dA - sum(A * dA))"},
    {"2", "dZ: A * dA - A * sum(A * dA)"},
    {"2", "dZ: (dA - sum(dA * A)) * A"},
    {"2", "dZ: y * (dy - sum(y * dy))"},
    {"2", "dZ: A * (dY @ V' - sum(A * (dY @ V')))"},
    {"2", "dZ: A * (dA - sum(dY * Y))"}, /* the sum over the keys is one over the values */
    {"2", "dZ: exp(Z) / sum(exp(Z)) * (dA - sum(A * dA))"},
    {"2", "dS: dZ / sqrt(d)"},
    {"2", "dS: dZ * scale"},
    {"2", "dS: 0.5 * dZ"},
    {"2", "dS: 0.5 dZ"},
    {"2", "dS: dZ .5"},
    {"2", "dS: dZ √d / d"},
    {"2", "dS: √d dZ / d"},
    {"2", "dA: dY V'"},
    {"2", "dA: dY V^T"},
    {"2", "dV: A' (2 E)"},
    {"2", "dV: 2 A' E"},
    {"2", "dV: -2 A' (T - Y)"},
    {"2", "dS: dZ / sqrt(4)"},
    {"2", "dS: dZ / √d"},
    {"2", "dS: dZ / √ (d)"},
    {"2", "dS: dZ / √4 * √√1"},
    {"2", "dS: d(S / √d) / √d"},
    {"2", "dQ: dS @ K"},
    {"2", "dQ: dS @ K''"},
    {"2", "dQ: (K' @ dS')'"},
    {"2", "dQ: dZ @ K / sqrt(d)"},
    {"2", "dK: dS' @ Q"},
    {"2", "dK: (Q' @ dS)'"},
    {"2", "dK: dK''"},
    {"2", "dK: dZ' @ Q / sqrt(d)"},
    {"2\nno-scale 1", "dS: A * (dA - sum(A * dA))"},
    {"2\nset 0 1e300 Q", "dK: dS' @ Q"}, /* the lesson's own numbers are too large */
    {"3", "dV: A' @ dY"},
    {"3", "dA: dY @ V'"},
    {"3", "dZ: A * (dA - sum(A * dA))"},
    {"3", "dS: dZ / sqrt(d)"},
    {"3", "dQ: dS @ K"},
    {"3", "dK: dS' @ Q"},
    {"3b", "dA: dY @ V'"},
    {"3b", "dA: dY_A @ V'"},
    {"3b", "dB: dY @ V'"},
    {"3b", "dV: A' @ dY + B' @ dY"},
    {"3b", "dV: (A + B)' @ dY"},
    {"3b", "dF: B * (dB - sum(B * dB))"},
    {"3b", "dZ: A * (dA - sum(A * dA)) + (1 - ignored) * dF"},
    {"3b", "dZ: A * (dA - sum(A * dA)) + dF - ignored * dF"},
    {"4", "dV: A_p' @ dY"},
    {"4", "dA_p: dY @ V'"},
    {"4", "dA: dA_p * kept / (1 - p)"},
    {"4", "dA: kept * dA_p / 0.75"},
    {"4", "dZ: A * (dA - sum(A * dA))"},
    {"4", "dZ: A * dA - A * sum(A_p * dA_p)"},
    {"4", "dK: dS' @ Q"},
    {"4", "dW_q: dQ' @ x"},
    {"4", "dW_k: (x' @ dK)'"},
    {"4", "dx: dV @ W_v + dK @ W_k + dQ @ W_q"},
    {"4", "dx: dQ @ W_q + dS' @ Q @ W_k + dV @ W_v"},
    {"4\ndropout 0", "dA: dY @ V'"},
    {"5", "dC: dY @ W_o"},
    {"5", "dC: dY @ Wo"},
    {"5", "dW_o: dY' @ C"},
    {"5", "dY_h: gate * dG"},
    {"5", "dgate: sum(sum(dG * Y_h)')"},
    {"5", "dA: dY_h @ V_h'"},
    {"5", "dV_h: A' @ dY_h"},
    {"5", "dZ: A * (dA - sum(A * dA))"},
    {"5", "dQ_h: dS @ K_h"},
    {"5", "dK_h: dS' @ Q_h"},
    {"6", "dH: dY @ W_2"},
    {"6", "dW_2: dY' @ H"},
    {"6", "db_2: sum0(dY)"},
    {"6", "dP: dH * H / P"},
    {"6", "dP: H / P * dH"},
    {"6", "dO: dP @ W_1"},
    {"6", "dA: dO @ x'"},
    {"6", "dS: scale * A * (dA - sum(A * dA))"},
    {"6", "dQ: dS @ x"},
    {"6", "dW_q: dQ' @ x"},
    {"6\nadditive 1", "dA: dO @ x'"},
};

CASE("the card")
TEST(all_mistakes_have_room) { ck_assert_int_le(num_mistake_rows, JUDGE_ROWS); }

/* It is right, and a right way to write it is shown, which is right, too. */
LOOP_TEST(a_right_line, COUNT(right)) {
    char shown[JUDGE_TEXT], name[RULE_NAME];
    const Json *line = judge(right[_i].lesson, right[_i].line);
    ck_assert_msg(strcmp(json_text(line, "verdict", ""), "right") == 0, "%s: %s: %s",
                  right[_i].lesson, right[_i].line, json_text(line, "why", ""));
    ck_assert_str_eq(json_text(line, "why", "-"), "");
    ck_assert_str_eq(json_text(line, "question", "-"), "");
    snprintf(name, sizeof name, "%s", json_text(line, "name", ""));
    snprintf(shown, sizeof shown, "%s", json_text(line, "shown", ""));
    if (*shown) line = judge(right[_i].lesson, format("%s: %s", name, shown));
    ck_assert_str_eq(json_text(line, "verdict", ""), "right");
    ck_assert(*shown || strcmp(name, "dY") == 0);
    ask_no_more();
}

/* Twice a right line is wrong. */
LOOP_TEST(twice_a_right_line, COUNT(right)) {
    const char *formula = strchr(right[_i].line, ':') + 2;
    const Json *line =
        judge(right[_i].lesson,
              format("%.*s2 * (%s)", (int)(formula - right[_i].line), right[_i].line, formula));
    ck_assert_msg(strcmp(json_text(line, "verdict", ""), "wrong") == 0, "%s", formula);
    ck_assert(*json_text(line, "why", ""));
    ck_assert_msg(strchr(json_text(line, "question", ""), '?'), "%s", formula);
    ck_assert_str_eq(json_text(line, "shown", "-"), "");
    ask_no_more();
}

#define ROW_ASKS "If one number of Z grows, what happens to the other numbers of A in its row?"
static const struct {
    const char *lesson, *line, *verdict, *mistake, *why;
} wrong[] = {
    {"2", "dV: A @ dY", "refused", "db_untransposed",
     "A is 2 x 3 and dY is 2 x 2: @ needs equal inner sizes. This is A times dY, where A is not "
     "transposed"},
    {"2", "dA: dY @ V", "refused", "da_untransposed",
     "dY is 2 x 2 and V is 3 x 2: @ needs equal inner sizes. This is dY times V, where V is not "
     "transposed"},
    {"2", "dA: dY * V", "refused", "da_elementwise",
     "dY is 2 x 2 and V is 3 x 2: * needs equal sizes, or 1. This is dY * V, a product number by "
     "number, without a sum"},
    {"2", "dA: V @ dY'", "refused", "",
     "the formula is 3 x 2 and the gradient must be 2 x 3. This is V times dY', the transpose of the "
     "gradient of A"},
    {"2", "dV: dY' @ A", "refused", "",
     "the formula is 2 x 3 and the gradient must be 3 x 2. This is dY' times A, the transpose of the "
     "gradient of V"},
    {"2\nkeys 2\nsize 2", "dV: dY' @ A", "wrong", "",
     "This is dY' times A, the transpose of the gradient of V."},
    {"2\nkeys 2\nsize 2", "dA: dY @ V", "wrong", "da_untransposed",
     "This is dY times V, where V is not transposed."},
    {"2", "dZ: A * dA", "wrong", "no_sum", "This is A * dA, without the sum over the row."},
    {"2", "dZ: A * dA - sum(A * dA)", "wrong", "",
     "This is A * dA - sum(A * dA), where A multiplies only dA: the difference needs a bracket."},
    {"2", "dZ: A * (dA - sum(dA))", "wrong", "plain_sum",
     "This is A * (dA - sum(dA)), where the sum adds dA, and not A * dA."},
    {"2", "dZ: A * (dA - mean(dA))", "wrong", "mean_of_dy",
     "This is A * (dA - mean(dA)), with the plain mean of dA."},
    {"2", "dZ: A * (1 - A) * dA", "wrong", "y_squared",
     "This is A * (1 - A) * dA, only what a number of Z does to its own number of A."},
    {"2", "dZ: dA - sum(A * dA)", "wrong", "sum_not_weighted_by_y_outside",
     "This is dA - sum(A * dA), without the factor A in front."},
    {"2", "dZ: A * (dA + sum(A * dA))", "wrong", "sign",
     "This is A * (dA + sum(A * dA)), where the sum is added."},
    {"2", "dZ: dA", "wrong", "", "This is dA, as if softmax changed nothing."},
    {"2", "dZ: A * A * dA", "wrong", "", "This is A * A * dA, with A in place of 1 - A."},
    {"2", "dZ: exp(Z) * dA", "wrong", "",
     "This is exp(Z) * dA, the derivative of exp, without the division that makes weights of it."},
    {"2", "dZ: sum(Z * dA)", "refused", "",
     "the formula is 2 x 1 and the gradient must be 2 x 3. This is sum(Z * dA), one number for a "
     "whole row"},
    {"2", "dZ: dZ", "refused", "", "dZ is what this line is to say"},
    {"2", "dZ: dS * sqrt(d)", "refused", "",
     "dS is not known here: backward has not reached it yet"},
    {"2", "dV: dA", "refused", "", "dA is not known here: backward has not reached it yet"},
    {"2", "dZ: A * (dA - sum(A * dA)", "refused", "", "this bracket is not closed"},
    {"2", "dZ: softmax(Z) * dA", "refused", "",
     "there is no function softmax: write the name of its result; the functions are sum, mean, "
     "max, sum0, exp, log, tanh, sqrt and sign"},
    {"2", "dS: dZ", "wrong", "no_scale", "This is dZ, without the factor 0.5."},
    {"2", "dS: dZ * sqrt(d)", "wrong", "divided",
     "This is dZ times 2, but forward multiplies by 0.5."},
    {"2", "dS: dZ / d", "wrong", "squared", "This is dZ with the factor 0.5 twice."},
    {"2", "dZ: A (dA - sum(A * dA))", "refused", "",
     "A is 2 x 3 and dA - sum(A * dA) is 2 x 3: @ needs equal inner sizes, and * goes number by number"},
    {"2", "dS: dZ / root", "refused", "",
     "there is no root here: the names are dZ, Z, S, K, K', Q, A, V, Y, T, E, E^2, loss, s, scale, d; the "
     "functions are sum, mean, max, sum0, exp, log, tanh, sqrt and sign"},
    {"2", "dS: dZ / √d d", "wrong", "divided",
     "This is dZ times 2, but forward multiplies by 0.5."},
    {"2", "dQ: dS @ Q", "refused", "swapped",
     "dS is 2 x 3 and Q is 2 x 4: @ needs equal inner sizes. This is dS times Q itself"},
    {"2", "dQ: dS @ K'", "refused", "da_untransposed",
     "dS is 2 x 3 and K' is 4 x 3: @ needs equal inner sizes. This is dS times K', where K is "
     "transposed: the other factor of S = Q K' is K', and its transpose is K"},
    {"2", "dK: dS @ Q", "refused", "",
     "dS is 2 x 3 and Q is 2 x 4: @ needs equal inner sizes. This is dS times Q, where dS is not "
     "transposed"},
    {"2", "dK: Q' @ dS", "refused", "dw_transposed_indices",
     "the formula is 4 x 3 and the gradient must be 3 x 4. This is Q' times dS, the transpose of the "
     "gradient of K"},
    {"2\nkeys 2\nsize 2", "dK: dS @ Q", "wrong", "",
     "This is dS times Q, where dS is not transposed."},
    {"2", "dK: -dS' @ Q", "wrong", "", "This is the right gradient with the other sign."},
    {"2", "dK: 3 * dS' @ Q", "wrong", "", "This is the right gradient times 3."},
    {"2", "dK: 0 * dS' @ Q", "wrong", "", "This is 0 everywhere."},
    {"2\nqueries 3\nkeys 3", "dZ: (A * (dA - sum(A * dA)))'", "wrong", "",
     "This is the right gradient, transposed."},
    {"3", "dS: 0.7071 * dZ", "wrong", "",
     "This is right but for a rounded number: write sqrt(d), or the fraction."},
    {"2", "dK: dS' @ Q * Q", "refused", "", NULL},
    {"2", "dT: dY", "refused", "",
     "no gradient of this lesson has this name; one is dY, for example"},
    {"2", "A: dA", "refused", "",
     "no gradient of this lesson has this name; one is dY, for example"},
    {"2", "dloss: 1", "refused", "", "backward begins with this gradient"},
    {"1", "dw: dU * D", "refused", "",
     "the formula is 3 x 4 and the gradient must be one number: each use of a number adds a term "
     "to its gradient"},
    {"3", "dZ: A * dA", "wrong", "no_sum", "This is A * dA, without the sum over the row."},
    {"3", "dZ: A * dA - sum(A * dA)", "wrong", "", NULL},
    {"3b", "dV: A' @ dY", "wrong", "", "This is what comes from Y_A; but V goes into Y_B, too."},
    {"3b", "dZ: A * (dA - sum(A * dA))", "wrong", "",
     "This is what comes from A; but Z goes into F, too."},
    {"4", "dx: dQ @ W_q", "wrong", "", "This is what comes from Q; but x goes into K and V, too."},
    {"4", "dx: dV @ W_v + dQ @ W_q", "wrong", "",
     "This is what comes from Q and V; but x goes into K, too."},
    {"4", "dA: dA_p", "wrong", "", NULL},
    {"4", "dA: dA_p * kept", "wrong", "no_rescale",
     "This is dA_p where kept, else 0, without the factor 1 / (1 - p)."},
    {"4", "dW_q: x' @ dQ", "wrong", "dw_transposed_indices",
     "This is x' times dQ, the transpose of the gradient of W_q."},
    {"5", "dC: dY @ W_o'", "wrong", "dx_w_transposed",
     "This is dY times W_o', where W_o must not be transposed."},
    /* gate is 1 in the lesson */
    {"5", "dY_h: dG", "wrong", "",
     "This is right for these numbers, but not for all. This is dG, without the factor that Y_h was "
     "multiplied by."},
    {"5", "dY_h: dG * gate * gate", "wrong", "",
     "This is right for these numbers, but not for all. "},
    {"6", "dP: dH", "wrong", "", "This is dH, also where P is negative."},
    {"6", "dS: A * (dA - sum(A * dA))", "wrong", "no_scale",
     "This is A * (dA - sum(A * dA)), without the factor 0.5774."},
    {"6", "db_2: dY", "refused", "", NULL},
};

LOOP_TEST(a_wrong_line, COUNT(wrong)) {
    const Json *line = judge(wrong[_i].lesson, wrong[_i].line);
    const char *why = json_text(line, "why", "");
    ck_assert_msg(strcmp(json_text(line, "verdict", ""), wrong[_i].verdict) == 0, "%s: %s",
                  wrong[_i].line, why);
    ck_assert_str_eq(json_text(line, "mistake", "-"), wrong[_i].mistake);
    if (wrong[_i].why) ck_assert_str_eq(why, wrong[_i].why);
    ck_assert(*why && !strpbrk(why, "{}"));
    ck_assert_str_eq(json_text(line, "shown", "-"), "");
    const bool is_judged = strncmp(why, "This", 4) == 0 || strncmp(why, "The size", 8) == 0 ||
                           strstr(why, "must be") || strstr(why, "@ n") || strstr(why, "* n");
    ck_assert_msg(!is_judged == !*json_text(line, "question", ""), "%s: %s", wrong[_i].line, why);
    ask_no_more();
}

/* Mistakes of a lesson's ops, as lines of its card in the lesson's names. */
enum { MOST_LINES = 200 };
static struct {
    char line[JUDGE_TEXT + RULE_NAME + 4];
    const MistakeRow *mistake;
} known[MOST_LINES];

static int add_mistakes(const Planting *planting, int i, int k, int n) {
    const PlantedUse use = {.line = i, .k = k};
    char formula[320], name[RULE_NAME];
    TapeLine line;
    JudgePlace place;
    ck_assert(judge_place(planting, i, k, false, &place));
    for (int m = 0; m < num_mistake_rows; m++) {
        const MistakeRow *row = &mistake_rows[m];
        tape_line(i, &line);
        if (!row->id || !row->formula[k] || !mistake_is_of(row, line.op)) continue;
        snprintf(name, sizeof name, "d(%.36s)", line.in[k]->name);
        planted_say_formula(planting, &use, NULL, row->formula[k], formula);
        if (place.is_wrong[m] || strchr(row->formula[k], '@')) {
            ck_assert_int_lt(n, MOST_LINES);
            known[n].mistake = row;
            snprintf(known[n++].line, sizeof known->line, "%s: %s", name, formula);
        }
    }
    return n;
}

static int readers_of(const Tensor *x) {
    TapeLine line;
    int readers = 0;
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < line.n_in; k++) readers += line.in[k] == x;
    return readers;
}

static int mistakes_in(int number) {
    Lesson lesson;
    TapeLine line;
    RuleAlias aliases[LESSON_SHORTS];
    Planting planting = {.aliases = aliases};
    int n = 0;
    ck_assert(lesson_open(&lesson, number, LESSON_OPTIONS));
    for (const NamePair *s = lesson.kind->shorts; s->name; s++)
        aliases[planting.num_aliases++] = (RuleAlias){.alias = s->other, .tensor = s->name};
    for (int i = 0; tape_line(i, &line); i++)
        for (int k = 0; k < 3; k++) {
            tape_line(i, &line);
            if (k < line.n_in && planted_has_gradient(&line, k) && readers_of(line.in[k]) == 1 &&
                !planted_moves(line.op) && line.in[k]->shape.ndim > 1)
                n = add_mistakes(&planting, i, k, n);
        }
    lesson_close(&lesson);
    return n;
}

/* Each is wrong, and is said to be this mistake, or one of this op that computes the same. */
RANGE_TEST(known_mistakes_are_named, 1, LESSONS + 1) {
    const int number = _i, n = mistakes_in(number);
    ck_assert_int_gt(n, 10);
    for (int i = 0; i < n; i++) {
        const Json *line = judge(format("%d", number), known[i].line);
        const char *why = json_text(line, "why", "");
        const char *id = json_text(line, "mistake", "");
        ck_assert_msg(strcmp(json_text(line, "verdict", ""), "right") != 0, "%s", known[i].line);
        ck_assert_msg(strstr(why, "This is ") != NULL, "%s: %s", known[i].line, why);
        ck_assert_msg(!*known[i].mistake->id || *id, "%s: %s", known[i].line, why);
    }
    ask_no_more();
}

/* Each line is judged alone: what is refused changes no other. */
TEST(lines_are_judged_one_by_one) {
    const Json *card = json_get(ask("lesson 2\ncard 1\nrule dZ: A * (\nrule dA: dY @ V\n"
                                    "rule dV: A' @ dY\nrule dQ: dA"),
                                "card");
    static const char *const verdicts[] = {"refused", "refused", "right", "refused"};
    static const int columns[] = {6, 4, 0, 1}; /* the size of a whole line has no place */
    ck_assert_int_eq(card->count, COUNT(verdicts));
    for (int i = 0; i < COUNT(verdicts); i++) {
        const Json *line = json_at(card, i);
        ck_assert_str_eq(json_text(line, "verdict", ""), verdicts[i]);
        if (i < 3) ck_assert_int_eq(json_integer(line, "column", -1), columns[i]);
    }
    ask_no_more();
}

/* What a card cannot be. */
TEST(requests_that_are_no_card) {
    static const struct {
        const char *request, *error;
    } bad[] = {
        {"lesson 2\ncard 1\nrule : dY",
         "rule \": dY\": it begins with a name and a colon, as in A: y * dy"},
        {"lesson 2\ncard 1\nrule aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: dY",
         "rule of aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: dY: no tensor has so long a name"},
        {"lesson 2\ncard 1\nheads 2\nrule dA: dY", "lesson 2 takes no heads"},
    };
    for (int i = 0; i < COUNT(bad); i++)
        ck_assert_str_eq(json_text(ask(bad[i].request), "error", ""), bad[i].error);
    ck_assert_ptr_nonnull(json_get(ask("lesson 2\ncard 0"), "lessons"));
    ck_assert_int_eq(json_get(ask("lesson 2\ncard 1"), "card")->count, 0);
    ask_no_more();
}

int main(void) { return run_tests("rule_card"); }
