/* test_rule_box.c - what a box for a rule needs: the help of the language, and for each gradient of
 * a lesson the name of its rule, a right formula, and the names that a formula can use. */
#include "../common.h"
#include "common_live.h"

#include "../../../examples/explain/page/check.h"
#include "../../../examples/explain/lessons/lesson.h"
#include "../../../examples/explain/page/live.h"
#include "../../../examples/explain/rules/rule_judge.h"

#include <stdlib.h>
#include <string.h>

static const Json *tree; /* of the last answer */
static const Json *box;  /* in it, or NULL */

static void get(const char *request) {
    tree = ask(request);
    box = json_get(tree, "box");
    ck_assert_int_eq(live_tensors(), 0);
}

CASE("the box")
/* Each sign and each function of the language is in the help. */
TEST(the_help_is_whole) {
    char all[1000] = "";
    for (int i = 0; i < rule_num_help; i++) strcat(strcat(all, rule_help[i].text), " ");
    for (int i = 0; rule_function(i); i++)
        ck_assert_msg(strstr(all, format("%s(x) ", rule_function(i))), "%s", rule_function(i));
    for (const char *sign = "+-*/@'"; *sign; sign++) ck_assert_msg(strchr(all, *sign), "%c", *sign);
    get("lesson 1\nbox 1");
    ck_assert_int_eq(json_get(box, "help")->count, rule_num_help);
    ck_assert_str_eq(json_text(json_get(box, "help")->first, "says", ""), rule_help[0].says);
    ask_no_more();
}

/* Every mistake asks; a right formula does not. */
TEST(mistakes_ask) {
    for (int i = 0; i < num_mistake_rows; i++) {
        const char *question = mistake_rows[i].asks;
        ck_assert(!mistake_rows[i].id == !question);
        ck_assert_msg(!question || strchr(question, '?') > question, "%s", question);
    }
    get("lesson 2\nbox 1\nrule A: y * dy");
    ck_assert_str_eq(
        json_text(json_at(json_get(box, "planted"), 0), "question", ""),
        "If one number of Z grows, what happens to the other numbers of A in its row?");
    get("lesson 2\nbox 1\nrule A: 2 * y");
    ck_assert_str_eq(json_text(json_at(json_get(box, "planted"), 0), "question", "-"), "");
    ask_no_more();
}

/* Lines of several dimensions, which the language cannot swap. */
static bool cannot_be_said(const char *name) {
    static const char *const moves[] = {"Q transposed", "K transposed", "V transposed",
                                        "transposed"};
    for (int i = 0; i < COUNT(moves); i++)
        if (strcmp(name, moves[i]) == 0) return true;
    return false;
}

static void exercise_exists(const char *name) {
    FILE *file = *name ? fopen(format("examples/exercises/students/%s.c", name), "r") : NULL;
    ck_assert_msg(!*name || file, "%s", name);
    if (file) fclose(file);
}

static const char *const lessons[] = {"1",
                                      "2",
                                      "3",
                                      "3b",
                                      "4",
                                      "5",
                                      "6",
                                      "6\nadditive 1",
                                      "2\nrule A: y * dy\nrule Q: dS @ K",
                                      "5\nrule softmax"};

/* One rule, planted in a lesson without its own rules. */
static const Json *judge(const char *lesson, const char *name, const char *formula) {
    get(format("lesson %.*s\nbox 1\nrule %s: %s",
               (int)strcspn(lesson, "\n") + (strstr(lesson, "additive") ? 11 : 0), lesson, name,
               formula));
    ck_assert_msg(box != NULL, "%s: %s: %s", name, formula, json_text(tree, "error", ""));
    return json_at(json_get(box, "planted"), 0);
}

/* Each name leads to its gradient, its exercise is there, and the right formula is right there,
 * also where another rule is planted. */
LOOP_TEST(places_of_a_lesson, COUNT(lessons)) {
    static char names[100][3 * RULE_NAME], formulas[100][100], shown[100][JUDGE_TEXT];
    int lines[100], inputs[100], n = 0;
    const char *lesson = lessons[_i];
    get(format("lesson %s\nbox 1", lesson));
    for (const Json *place = json_get(box, "places")->first; place; place = place->next, n++) {
        lines[n] = (int)json_integer(place, "line", -1);
        inputs[n] = (int)json_integer(place, "input", -1);
        snprintf(names[n], sizeof names[n], "%s", json_text(place, "name", ""));
        snprintf(formulas[n], sizeof formulas[n], "%s", json_text(place, "formula", ""));
        snprintf(shown[n], sizeof shown[n], "%s", json_text(place, "shown", ""));
        ck_assert_int_gt(json_get(place, "names")->count, 3);
        exercise_exists(json_text(place, "exercise", "-"));
    }
    ck_assert_int_gt(n, 7);
    for (int i = 0; i < n; i++) {
        ck_assert_msg(!*formulas[i] == cannot_be_said(names[i]), "%s has no formula", names[i]);
        const Json *rule = judge(lesson, names[i], *formulas[i] ? formulas[i] : "dy");
        ck_assert_int_eq(json_integer(rule, "line", -1), lines[i]);
        ck_assert_int_eq(json_integer(rule, "input", -1), inputs[i]);
        if (!*formulas[i]) continue;
        ck_assert_msg(strcmp(json_text(rule, "verdict", ""), "right") == 0, "%s", names[i]);
        rule = judge(lesson, names[i], shown[i]);
        ck_assert_msg(strcmp(json_text(rule, "verdict", ""), "right") == 0, "%s", shown[i]);
    }
    ask_no_more();
}

/* What a line sums by itself, since x was broadcast, the formula of the box sums, too; a softmax
 * that follows a division has no factor. */
TEST(a_shown_formula_is_the_whole_rule) {
    static const char *const shown_at[][3] = {
        {"1", "U", "sum0(sum(dU * D))"},
        {"5", "gated.dgate", "sum(sum(dG * Y_h)')"},
        {"3", "A", "A * (dA - sum(A * dA))"},
        {"6", "attention_weights", "scale * A * (dA - sum(A * dA))"}};
    for (int i = 0; i < COUNT(shown_at); i++) {
        get(format("lesson %s\nbox 1", shown_at[i][0]));
        const Json *place = json_first(box, "places");
        while (place && strcmp(json_text(place, "name", ""), shown_at[i][1]) != 0)
            place = place->next;
        ck_assert_str_eq(json_text(place, "shown", ""), shown_at[i][2]);
    }
    ask_no_more();
}

/* Each known mistake of a place can be planted there as it stands, and is said to be that one. */
LOOP_TEST(mistakes_of_a_lesson, COUNT(lessons)) {
    static char rules[300][3 * RULE_NAME + 100], ids[300][RULE_NAME];
    int n = 0;
    get(format("lesson %s\nbox 1", lessons[_i]));
    for (const Json *place = json_get(box, "places")->first; place; place = place->next)
        for (const Json *m = json_get(place, "mistakes")->first; m; m = m->next, n++) {
            ck_assert_int_lt(n, COUNT(rules));
            const char *formula = json_text(m, "formula", "");
            ck_assert_msg(!strstr(formula, "* 0 + 1") && !strstr(format("%s ", formula), "/ s "),
                          "%s", formula);
            snprintf(rules[n], sizeof rules[n], "%s: %s", json_text(place, "name", ""),
                     json_text(m, "formula", ""));
            snprintf(ids[n], sizeof ids[n], "%s", json_text(m, "id", "-"));
            for (int i = 0; i < n; i++) ck_assert_str_ne(rules[i], rules[n]);
        }
    ck_assert_int_gt(n, 15);
    for (int i = 0; i < n; i++) {
        get(format("lesson %s\nbox 1\nrule %s", lessons[_i], rules[i]));
        ck_assert_msg(box != NULL, "%s: %s", rules[i], json_text(tree, "error", ""));
        const Json *rule = json_get(box, "planted")->first;
        while (strcmp(json_text(rule, "rule", ""), rules[i]) != 0) rule = rule->next;
        ck_assert_msg(strcmp(json_text(rule, "verdict", ""), "wrong") == 0, "%s", rules[i]);
        ck_assert_msg(strcmp(json_text(rule, "mistake", "-"), ids[i]) == 0, "%s: %s, %s", rules[i],
                      ids[i], json_text(rule, "mistake", "-"));
        ck_assert(*json_text(rule, "why", "") && *json_text(rule, "question", ""));
    }
    ask_no_more();
}

/* One that is planted by its key is said in the names of the lesson. */
TEST(mistakes_by_key) {
    get("lesson 4\nbox 1\nrule dropout");
    ck_assert_str_eq(json_text(json_get(box, "planted")->first, "formula", ""), "dA_p * kept");
    get("lesson 6\nbox 1\nrule softmax");
    ck_assert_str_eq(json_text(json_get(box, "planted")->first, "formula", ""), "scale * A * dA");
    ask_no_more();
}

/* The names of a line are names of a formula. */
TEST(names_of_a_place) {
    char names[40][RULE_NAME];
    int n = 0;
    get("lesson 4\nbox 1");
    const Json *place = json_get(box, "places")->first;
    while (strcmp(json_text(place, "name", ""), "dropout(A)") != 0) place = place->next;
    for (const Json *name = json_get(place, "names")->first; name; name = name->next)
        snprintf(names[n++], RULE_NAME, "%s", json_text(name, "name", ""));
    ck_assert_int_gt(n, 8);
    for (int i = 0; i < n; i++) {
        get(format("lesson 4\nbox 1\nrule dropout(A): 0 * x + %s", names[i]));
        ck_assert_msg(box != NULL, "%s: %s", names[i], json_text(tree, "error", ""));
    }
    ask_no_more();
}

/* What does not fit has its place, and "box 0" is a lesson. */
TEST(errors_of_a_box) {
    get("lesson 2\nbox 1\nrule A: y * ");
    ck_assert_str_eq(json_text(tree, "error", ""),
                     "rule of A, column 5: the formula ends, and a value is missing");
    get("lesson 2\nbox 1\nheads 2");
    ck_assert_str_eq(json_text(tree, "error", ""), "lesson 2 takes no heads");
    get("lesson 2\nbox 0");
    ck_assert(box == NULL && json_get(tree, "lessons") != NULL);
    ask_no_more();
}

int main(void) { return run_tests("rule_box"); }
