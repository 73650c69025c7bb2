/* test_probe.c - a forward alone for another number of a lesson (examples/explain/lessons/probe.h):
 * its losses and results are those of the lesson with this number, and their slope is the gradient.
 */
#include "../common.h"
#include "common_live.h"

#include "../../../examples/explain/page/live.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const lessons[] = {"1",
                                      "2",
                                      "2\nno-scale 1\nkeys 5\nqueries 4",
                                      "2\nset 1 -2.5 V",
                                      "3",
                                      "3\nlengths 1\nwindow 1",
                                      "3b",
                                      "4",
                                      "4\ndropout 0.5\nwords one two three four",
                                      "5",
                                      "5\nheads 2\nseed 3\nrule softmax",
                                      "6",
                                      "6\nadditive 1",
                                      "6\nstep 7"};

/* The tensors of a lesson, by the numbers of its tape. */
enum { MOST = 96, NUMBERS = 512 };
typedef struct {
    char name[40];
    bool is_float, is_leaf, has_grad;
    int64_t size;
    double value[NUMBERS], grad[NUMBERS];
} Known;
static Known known[MOST], changed[MOST];
static int count;

static void read_numbers(const Json *list, double *numbers) {
    int64_t i = 0;
    for (const Json *x = list ? list->first : NULL; x; x = x->next) numbers[i++] = json_number(x);
}

/* A leaf is the result of no line. */
static bool is_result(const Json *tape, int tensor) {
    const Json *line = json_first(tape, "lines");
    while (line && json_integer(line, "out", -1) != tensor) line = line->next;
    return line != NULL;
}

static void get_lesson(Known *to, const char *lesson, const char *edit) {
    const Json *read = ask(format("lesson %s%s", lesson, edit));
    const Json *tape = json_get(json_at(json_get(read, "lessons"), 0), "tape");
    count = 0;
    for (const Json *x = json_first(tape, "tensors"); x; x = x->next, to++, count++) {
        snprintf(to->name, sizeof to->name, "%s", json_text(x, "name", ""));
        to->is_float = strncmp(json_text(x, "type", ""), "float", 5) == 0;
        to->is_leaf = !is_result(tape, count);
        to->has_grad = json_get(x, "grad") != NULL;
        to->size = json_get(x, "value")->count;
        ck_assert_int_le(to->size, NUMBERS);
        read_numbers(json_get(x, "value"), to->value);
        read_numbers(json_get(x, "grad"), to->grad);
    }
    ck_assert_msg(count > 8, "%s: %s", edit, json_text(read, "error", ""));
}

static const Json *probe(const char *lesson, const char *request) {
    const Json *read = ask(format("lesson %s\n%s", lesson, request));
    const Json *answer = json_get(read, "probe");
    ck_assert_msg(answer != NULL, "%s: %s", request, json_text(read, "error", ""));
    ck_assert_int_eq(live_tensors(), 0);
    return answer;
}

CASE("probe")
static int third = 1; /* 3: every third element or tensor */

/* The slope of the loss between two near points is the gradient of the backward pass: at each
 * element of each tensor that has one. */
LOOP_TEST(slopes_are_gradients, COUNT(lessons)) {
    const char *lesson = lessons[_i];
    int checked = 0;
    get_lesson(known, lesson, "");
    if (strstr(lesson, "rule")) return; /* that gradient is wrong */
    for (const Known *x = known; x < known + count; x++)
        for (int64_t i = 0; i < x->size && x->has_grad; i += third, checked++) {
            double losses[2];
            const Json *answer =
                probe(lesson, format("probe %" PRId64 " -1e-5 1e-5 2 %s", i, x->name));
            read_numbers(json_get(answer, "losses"), losses);
            const double slope = (losses[1] - losses[0]) / 2e-5;
            ck_assert_msg(same_number(slope, x->grad[i], 1e-4),
                          "lesson %s, %s, %" PRId64 ": %g, %g", lesson, x->name, i, slope,
                          x->grad[i]);
        }
    ck_assert_int_gt(checked, 30 / third);
    ask_no_more();
}

/* Where nothing is added, the loss is the tape's, and nothing moves. */
LOOP_TEST(nothing_added, COUNT(lessons)) {
    const char *lesson = lessons[_i];
    get_lesson(known, lesson, "");
    for (const Known *x = known; x < known + count; x++) {
        if (!x->is_float || strcmp(x->name, "keys'") == 0) continue; /* lesson 6: a view of x */
        const Json *answer = probe(
            lesson, format("probe 0 0 0 1 %s\nshow %s\nshow loss", x->name, known[count - 2].name));
        ck_assert(same_number(json_number(json_at(json_get(answer, "losses"), 0)),
                              known[count - 1].value[0], 1e-9));
        for (const Json *shown = json_first(answer, "shown"); shown; shown = shown->next)
            ck_assert_int_eq(json_get(shown, "moved")->count, 0);
    }
    ask_no_more();
}

/* The numbers of one tensor: those that moved, and the lesson's own elsewhere. */
static void expect_shown(const Json *shown, const char *of, const Known *before,
                         const Known *after) {
    const Json *at = json_first(shown, "moved");
    const Json *values = json_first(shown, "values");
    ck_assert_str_eq(json_text(shown, "name", ""), before->name);
    for (int64_t i = 0; i < before->size; i++) {
        const bool moved = at && (int64_t)at->number == i;
        const double number = moved ? json_number(values->first) : before->value[i];
        ck_assert_msg(same_number(number, after->value[i], 1e-9),
                      "%s moves %s, %" PRId64 ": %g and not %g", of, before->name, i, number,
                      after->value[i]);
        ck_assert_msg(!moved || number != before->value[i], "%s has not moved", before->name);
        at = moved ? at->next : at;
        values = moved ? values->next : values;
    }
    ck_assert(!at && !values);
}

/* D and keys' have no gradient, but are results; lesson 6 makes T, too, from an edited x. */
static bool can_be_edited(const Known *x, const char *lesson) {
    if (!x->is_leaf || !x->is_float || strcmp(x->name, "D") == 0) return false;
    return *lesson != '6' || strstr(x->name, "W_");
}

/* A leaf with another number is the lesson with this edit: every number of the tape is the same. */
static void expect_same_as_edit(const char *lesson, const Known *x) {
    const int64_t i = x->size / 2;
    const char *edit = format("\nset %" PRId64 " %.17g %s", i, x->value[i] + 0.375, x->name);
    get_lesson(changed, lesson, edit);
    for (int t = (int)(x - known) % third; t < count; t += third) {
        if (!known[t].is_float) continue;
        const Json *answer = probe(lesson, format("probe %" PRId64 " 0.375 0.375 1 %s\nshow %s", i,
                                                  x->name, known[t].name));
        ck_assert(same_number(json_number(json_at(json_get(answer, "losses"), 0)),
                              changed[count - 1].value[0], 1e-9));
        expect_shown(json_at(json_get(answer, "shown"), 0), x->name, &known[t], &changed[t]);
    }
}

LOOP_TEST(leaves_are_edited, COUNT(lessons)) {
    const char *lesson = lessons[_i];
    if (strstr(lesson, "step")) return; /* an edit is made before training */
    get_lesson(known, lesson, "");
    for (const Known *x = known; x < known + count; x++)
        if (can_be_edited(x, lesson)) expect_same_as_edit(lesson, x);
    ask_no_more();
}

/* Many points are as many requests, and a number of A moves one row of Y. */
TEST(points) {
    double losses[61], alone;
    const Json *answer = probe("2", "probe 3 -3 3 61 Z\nshow A\nshow Y\nshow Q");
    ck_assert_int_eq(json_get(answer, "losses")->count, 61);
    read_numbers(json_get(answer, "losses"), losses);
    const Json *A = json_first(answer, "shown");
    const int moved[] = {3, 4, 5};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq((int)json_at(json_get(A, "moved"), i)->number, moved[i]);
        ck_assert_int_eq(json_at(json_get(A, "values"), i)->count, 61);
    }
    for (int i = 0; i < 61; i++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += json_at(json_at(json_get(A, "values"), k), i)->number;
        ck_assert(same_number(sum, 1, 1e-10));
    }
    ck_assert_int_eq(json_get(A->next->next, "moved")->count, 0);
    for (int i = 0; i < 61; i += 7) {
        const double added = -3 + 0.1 * i;
        answer = probe("2", format("probe 3 %.17g 0 1 S / sqrt(d)", added));
        read_numbers(json_get(answer, "losses"), &alone);
        ck_assert(same_number(alone, losses[i], 1e-9));
    }
    answer = probe("2", "probe 1 0.5 0.5 1 A\nshow Y");
    const Json *Y = json_first(json_at(json_get(answer, "shown"), 0), "moved");
    ck_assert(Y->number == 0 && Y->next->number == 1 && !Y->next->next);
    answer = probe("2", "probe 0 1e308 1e308 1 A");
    ck_assert_str_eq(json_at(json_get(answer, "losses"), 0)->text, "Infinity");
    ask_no_more();
}

/* The slope at a point is the gradient that the lesson has there, and several elements change at
 * once: here w, and two of V's. */
TEST(slopes_and_several_elements) {
    double slopes[3], losses[3];
    const Json *answer =
        probe("2", "probe 1 -1 1 3 V\nprobe 4 0.5 0.5 3 V\nprobe 5 0 2 3 V\nshow V");
    read_numbers(json_get(answer, "slopes"), slopes);
    read_numbers(json_get(answer, "losses"), losses);
    const Json *V = json_at(json_get(answer, "shown"), 0);
    ck_assert_int_eq(json_get(V, "moved")->count, 3);
    double v[3][3];
    for (int i = 0; i < 3; i++) read_numbers(json_at(json_get(V, "values"), i), v[i]);
    for (int i = 0; i < 3; i++) {
        get_lesson(
            changed, "2",
            format("\nset 1 %.17g V\nset 4 %.17g V\nset 5 %.17g V", v[0][i], v[1][i], v[2][i]));
        for (const Known *x = changed; x < changed + count; x++)
            if (strcmp(x->name, "V") == 0)
                ck_assert_msg(same_number(slopes[i], x->grad[1], 1e-7), "%g and not %g", slopes[i],
                              x->grad[1]);
        ck_assert(same_number(losses[i], changed[count - 1].value[0], 1e-7));
    }
    ask_no_more();
}

TEST(probes_that_cannot_be) {
    static const char form[] =
        " is no probe: it must be an index, two numbers, how many points, and a name";
    static const struct {
        const char *request, *error;
    } wrong[] = {
        {"lesson 2\nprobe 3 -3 3 61 W", "lesson 2 has no tensor with the name W"},
        {"lesson 2\nprobe 3 -3 3 61 Z\nshow B", "lesson 2 has no tensor with the name B"},
        {"lesson 2\nprobe 6 -3 3 61 Z", "lesson 2: Z is (2, 3): it has no element 6"},
        {"lesson 2\nprobe -1 -3 3 61 Z", "lesson 2: Z is (2, 3): it has no element -1"},
        {"lesson 3\nprobe 0 -1 1 3 keep", "probe of keep: only a float can change by a little"},
        {"lesson 2\nprobe 3 -3 3 202 Z",
         "probe of Z: 202 points: it must be an integer from 1 to 201"},
        {"lesson 2\nprobe 3 -3 3 0 Z", "probe of Z: 0 points: it must be an integer from 1 to 201"},
        {"lesson 2\nprobe Z 3 -3 3 61", "\"Z 3 -3 3 61\""},
        {"lesson 2\nprobe 3 -3 3 Z", "\"3 -3 3 Z\""},
        {"lesson 2\nprobe 3 -3 3 61 Z\nprobe 3 -3 3 61 A",
         "probe of A, 61 points: the request has one of Z, 61 points"},
        {"lesson 2\nprobe 3 -3 3 61 Z\nprobe 4 -3 3 60 Z",
         "probe of Z, 60 points: the request has one of Z, 61 points"},
        {"lesson 2\nprobe 3 -3 3 61 Z\nprobe 6 -3 3 61 Z",
         "lesson 2: Z is (2, 3): it has no element 6"},
        {"lesson 2\nprobe 3 nan 3 61 Z", "\"3 nan 3 61 Z\""},
        {"lesson 2\nprobe 3 0 1 61", "\"3 0 1 61\""},
        {"lesson 6\nprobe 0 0 1 2 keys'", "probe of keys': x shares its numbers with keys'"},
        {"lesson 2\nshow A", "show A: the request has no probe"},
        {"probe 3 -3 3 61 Z", "the request names no lesson"},
        {"lesson 2\nprobe 3 -3 3 61 Z\nheads 2", "lesson 2 takes no heads"},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        const char *after = *wrong[i].error == '"' ? form : "";
        ck_assert_str_eq(json_text(ask(wrong[i].request), "error", "none"),
                         format("%s%s", wrong[i].error, after));
        ck_assert_int_eq(live_tensors(), 0);
    }
    char many[300] = "lesson 2\nprobe 3 -3 3 61 Z";
    for (int i = 0; i < 9; i++) strcat(many, "\nshow A");
    ck_assert_str_eq(json_text(ask(many), "error", "none"),
                     "show A: at most 8 tensors can be shown");
    strcpy(many, "lesson 2");
    for (int i = 0; i < 9; i++) strcat(many, "\nprobe 3 -3 3 61 Z");
    ck_assert_str_eq(json_text(ask(many), "error", "none"),
                     "probe of Z: at most 8 elements can change at once");
    ask_no_more();
}

int main(void) {
    third = sample_step(3);
    return run_tests("probe");
}
