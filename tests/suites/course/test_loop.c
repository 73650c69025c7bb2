/* test_loop.c - the lines of the training loop of lesson 6, pressed one by one
 * (examples/explain/lessons/loop.h): backward adds, zero_grad lets go, a step subtracts what stands
 * there. */
#include "../common.h"
#include "common_live.h"

#include "../../../examples/explain/page/live.h"

#include <math.h>
#include <string.h>

enum { LEAVES = 8, NUMBERS = 32 };
typedef struct {
    int leaves;
    int64_t size[LEAVES];
    double value[LEAVES][NUMBERS], grad[LEAVES][NUMBERS];
    int backwards;
    char says[400];
} State;

static const char *const lessons[] = {"6", "6\nadditive 1", "6\nstep 7", "6\nseed 3\nrate 0.5"};

static void read_list(const Json *list, double *numbers) {
    int64_t i = 0;
    for (const Json *x = list->first; x; x = x->next) numbers[i++] = json_number(x);
}

/* The state after all presses. */
static State after(const char *lesson, const char *presses) {
    State state = {0};
    const Json *read = ask(format("lesson %s\nloop %s", lesson, presses));
    const Json *last = json_first(read, "states");
    ck_assert_msg(last != NULL, "%s: %s", presses, json_text(read, "error", ""));
    while (last->next) last = last->next;
    for (const Json *x = json_first(last, "leaves"); x; x = x->next) {
        ck_assert_int_lt(state.leaves, LEAVES);
        state.size[state.leaves] = json_get(x, "value")->count;
        ck_assert_int_le(state.size[state.leaves], NUMBERS);
        read_list(json_get(x, "value"), state.value[state.leaves]);
        read_list(json_get(x, "grad"), state.grad[state.leaves]);
        state.leaves++;
    }
    ck_assert_int_ge(state.leaves, 5);
    state.backwards = (int)json_integer(last, "backwards", -1);
    snprintf(state.says, sizeof state.says, "%s", json_text(last, "says", ""));
    ask_no_more();
    return state;
}

/* Are all gradients `times` those of `one`, to `far`, and all weights its weights? */
static void expect_times(const State *state, const State *one, double times, double far) {
    for (int x = 0; x < one->leaves; x++)
        for (int64_t i = 0; i < one->size[x]; i++) {
            const double wanted = times * one->grad[x][i];
            ck_assert_double_le(fabs(state->grad[x][i] - wanted), far * fabs(wanted));
            ck_assert_double_eq(state->value[x][i], one->value[x][i]);
        }
}

CASE("loop")

LOOP_TEST(backward_adds, COUNT(lessons)) {
    const char *const presses[] = {"b", "bb", "bbb", "bbbbbbb"};
    const State one = after(lessons[_i], "");
    ck_assert_int_eq(one.backwards, 1);
    for (size_t n = 0; n < COUNT(presses); n++) {
        const int times = 1 + (int)strlen(presses[n]);
        const State state = after(lessons[_i], presses[n]);
        expect_times(&state, &one, times, times == 2 ? 0 : 1e-14);
        ck_assert_int_eq(state.backwards, times);
        ck_assert_msg(strstr(state.says, format("%d times", times)) != NULL, "%s", state.says);
    }
}

/* After zero_grad every gradient is exactly 0, and the next backward gives that of one run. */
LOOP_TEST(zeroing_begins_anew, COUNT(lessons)) {
    const State one = after(lessons[_i], "");
    const State zero = after(lessons[_i], "bz"), again = after(lessons[_i], "bzb");
    expect_times(&zero, &one, 0, 0);
    expect_times(&again, &one, 1, 0);
    ck_assert_int_eq(zero.backwards, 0);
    const State still = after(lessons[_i], "zs"); /* a step without a gradient */
    expect_times(&still, &zero, 1, 0);
}

LOOP_TEST(a_step_subtracts_what_stands_there, COUNT(lessons)) {
    const double rate = strstr(lessons[_i], "rate") ? 0.5 : 0.02;
    const State one = after(lessons[_i], "");
    for (int times = 1; times < 3; times++) {
        const State state = after(lessons[_i], times == 1 ? "s" : "bs");
        for (int x = 0; x < one.leaves; x++)
            for (int64_t i = 0; i < one.size[x]; i++)
                ck_assert_double_le(
                    fabs(state.value[x][i] - (one.value[x][i] - times * rate * one.grad[x][i])),
                    1e-15 * (1 + fabs(one.value[x][i])));
        ck_assert(times == 1 || strstr(state.says, "2 times as far"));
    }
}

/* A step and a zero are those of the lesson's own training: its next tape is the same. */
TEST(the_loop_in_its_order_is_training) {
    const State here = after("6", "szfb"), there = after("6\nstep 1", "");
    expect_times(&here, &there, 1, 0);
    const State mixed = after("6", "sfb");
    ck_assert(strstr(mixed.says, "a sum of 2 runs"));
    ck_assert(strstr(after("6", "s").says, " from before the step: press forward."));
}

/* The losses without zero_grad: those of the loop, pressed so. */
TEST(unzeroed_losses_are_those_of_the_loop) {
    const Json *read = ask("lesson 6");
    const Json *loss =
        json_first(json_get(json_at(json_get(read, "lessons"), 0), "loop"), "unzeroed");
    double losses[5];
    for (int i = 0; i < 5; i++, loss = loss->next) losses[i] = json_number(loss);
    read = ask("lesson 6\nloop sfbsfbsfbsfb");
    const Json *state = json_first(read, "states");
    for (int i = 0; state; state = state->next)
        if (strchr("b", *json_text(state, "press", "")))
            ck_assert_double_le(fabs(json_number(json_first(state, "loss")) - losses[i++]), 1e-4);
    ask_no_more();
}

TEST(what_cannot_be_pressed) {
    const char *const asked[][2] = {
        {"lesson 6\nloop sb",
         "backward: linear needs its input w (3, 4) as it was, but add_ has written over it since. "
         "Here sgd_step has written over W_2 and the other weights: press forward first, loss = "
         "model(x); it makes a new tape"},
        {"lesson 6\nloop bszb", "press forward first"},
        {"lesson 6\nloop q", "loop: 'q' is no press: it must be f, b, s or z"},
        {"lesson 6\nloop bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
         "at most 40 lines can be pressed"},
        {"lesson 2\nloop b", "lesson 2 has no loop"},
    };
    for (size_t i = 0; i < COUNT(asked); i++) {
        const char *error = json_text(ask(asked[i][0]), "error", "");
        ck_assert_msg(strstr(error, asked[i][1]) != NULL, "%s: %s", asked[i][0], error);
        ask_no_more();
    }
}

int main(void) { return run_tests("loop"); }
