/* test_play.c - recall in a page that computes: does it train what build/recall trains? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../examples/explain/page/json.h"
#include "../../../examples/explain/page/live.h"
#include "../../../nn/nn.h"
#include "../common.h"
#include "../common_page.h"
#include "../common_program.h"
#include "common_live.h"

static const char *const mechanisms[] = {"dot", "additive"};
enum { PAIRS = 10 };

/* ---- asking ---------------------------------------------------------------------------------- */

static const Json *tree; /* of the last answer */

static void get(const char *request) {
    tree = ask(request);
    ck_assert_msg(!json_get(tree, "error"), "%s: %s", request, json_text(tree, "error", ""));
}

static void begin(const char *mechanism, const char *settings) {
    const char *request = format("play begin\nattention %s\n%s", mechanism, settings);
    get(request);
    ck_assert_int_eq(json_integer(tree, "step", -1), 0);
}

static double number(const char *key) { return json_number(json_get(tree, key)); }

static void end(void) {
    ck_assert_str_eq(answer_to("play end"), "{\"step\":0}");
    ask_no_more();
}

/* ---- the numbers of build/recall ------------------------------------------------------------- */

static const char *row; /* of the program's log */

static void expect_losses_of_log(void) {
    for (const Json *loss = json_get(tree, "losses")->first; loss; loss = loss->next) {
        row = strchr(row, '\n') + 1;
        ck_assert_double_eq(loss->number, atof(strchr(row, ',') + 1));
    }
}

PROGRAM_CASE("training", .is_long = true)
/* Lessons in between, which seed the generator and compute in float64, and recordings change
 * nothing. */
LOOP_TEST(trains_as_the_program, 2) {
    static const char *const steps[] = {"play train 7", "play train 1", "play train 32"};
    program = "recall";
    run(format("--attention %s --seed 5 --lr 0.3 --steps 40 --every 1 --quiet --log $D/log.csv",
               mechanisms[_i]));
    ck_assert_str_eq(complaints, "");
    slurp(path("log.csv"), out, sizeof out);
    row = out;
    begin(mechanisms[_i], "seed 5\nlr 0.3\n");
    for (int i = 0; i < 3; i++) {
        get("lesson 6");
        get("play record");
        get(steps[i]);
        expect_losses_of_log();
    }
    ck_assert_int_eq(json_integer(tree, "step", 0), 40);
    ck_assert_str_eq(strchr(row, '\n'), "\n");
    end();
}

/* The command is taken out, and the sources, which only a page has. */
static void strip(char *data) {
    char *command = strstr(data, "\"command\":");
    char *rest = strstr(command, ",\n\"source\"");
    ck_assert_ptr_nonnull(rest);
    memmove(command, rest, strlen(rest) + 1);
    char *sources = strstr(data, ",\n\"addition\":");
    if (sources) memcpy(sources, "}\n", sizeof "}\n");
}

LOOP_TEST(records_the_page_of_the_program, 2) {
    program = "recall";
    run(format("--steps 20 --pairs 6 --no-mask --quiet --attention %s"
               " --explain $D/page.html",
               mechanisms[_i]));
    char *expected = page_data("page.html");
    begin(mechanisms[_i], "pairs 6\nno-mask 1\nno-scale 0\n");
    get("play train 20");
    char *recorded = strdup(answer_to("play record"));
    ck_assert_ptr_nonnull(recorded);
    ck_assert_ptr_nonnull(
        strstr(recorded, format("\"command\":\"build/recall --attention %s --pairs 6"
                                " --lr 0.2 --seed 1 --steps 20 --no-mask"
                                " --explain FILE.html\"",
                                mechanisms[_i])));
    strip(recorded);
    strip(expected);
    ck_assert(strcmp(recorded, expected) == 0);
    free(recorded);
    end();
}

/* ---- the map --------------------------------------------------------------------------------- */

/* The weights of a row sum to 1; null stands where there is no pair. Returns whether the largest is
 * on the right pair, which has the key of the question. */
static bool check_row(const Json *map, int i, int n) {
    const Json *keys = json_get(map, "keys");
    const Json *weights = json_get(map, "weights");
    const int right = (int)json_at(json_get(map, "right"), i)->number;
    const char *asked = json_at(json_get(map, "queries"), i)->text;
    double sum = 0, largest = 0;
    ck_assert(right >= 0 && right < n && asked[0] == json_at(keys, right)->text[0]);
    for (int j = 0; j < keys->count; j++) {
        const Json *weight = json_at(weights, i * keys->count + j);
        ck_assert_int_eq(weight->kind, j < n ? JSON_NUMBER : JSON_NULL);
        if (j >= n) continue;
        sum += weight->number;
        largest = fmax(largest, weight->number);
    }
    ck_assert_double_eq_tol(sum, 1, 1e-6);
    return json_at(weights, i * keys->count + right)->number == largest;
}

/* How many rows have their largest weight on the right pair; *n: of so many. */
static int rows_found(int *n) {
    const Json *map = json_get(tree, "map");
    int found = 0;
    *n = (int)json_get(map, "queries")->count;
    ck_assert(*n >= PAIRS / 2 && *n <= PAIRS);
    ck_assert_int_eq(json_get(map, "keys")->count, PAIRS);
    ck_assert_int_eq(json_get(map, "weights")->count, (int64_t)*n * PAIRS);
    for (int i = 0; i < *n; i++) found += check_row(map, i, *n);
    return found;
}

LOOP_TEST(learns_and_shows_it, 2) {
    int n;
    begin(mechanisms[_i], "");
    ck_assert_int_eq(json_get(tree, "losses")->count, 0);
    ck_assert_double_lt(number("accuracy"), 0.1);
    ck_assert_double_lt(number("found"), 0.5);
    ck_assert_int_lt(rows_found(&n), n);
    get("play train 250");
    ck_assert_int_eq(json_get(tree, "losses")->count, 250);
    ck_assert_double_gt(json_at(json_get(tree, "losses"), 0)->number, 4);
    ck_assert_double_lt(json_at(json_get(tree, "losses"), 249)->number, 0.1);
    ck_assert_double_gt(number("accuracy"), 0.99);
    ck_assert_double_gt(number("found"), 0.99);
    ck_assert_int_eq(rows_found(&n), n);
    end();
}

PROGRAM_CASE("recall in a page")
/* The map has the labels of the program's first map. */
TEST(shows_the_example_of_the_program) {
    program = "recall";
    ck_assert_int_eq(run("--steps 2 --plot $D/plot.svg"), 1);
    slurp(path("plot.svg"), out, sizeof out);
    begin("dot", "");
    const Json *map = json_get(tree, "map");
    const char *at = strstr(out, " pairs<");
    for (const Json *key = json_get(map, "keys")->first; key; key = key->next) {
        at = strstr(at, format(">%s<", key->text));
        ck_assert_msg(at != NULL, "%s is not in the picture", key->text);
    }
    end();
}

/* Without a mask old pairs have weights, too. */
TEST(without_a_mask) {
    begin("dot", "no-mask 1");
    for (const Json *x = json_get(json_get(tree, "map"), "weights")->first; x; x = x->next)
        ck_assert_int_eq(x->kind, JSON_NUMBER);
    end();
}

/* ---- requests and mistakes ------------------------------------------------------------------- */

TEST(nothing_piles_up) {
    begin("dot", "");
    get("play train 2");
    const int tensors = live_tensors();
    for (int i = 0; i < 5; i++) {
        get("play record");
        get("play train 1");
        ck_assert_int_eq(live_tensors(), tensors);
    }
    ck_assert_int_eq(json_integer(tree, "step", 0), 7);
    begin("additive", ""); /* in place of the run before */
    get("play train 1");
    ck_assert_int_eq(json_integer(tree, "step", 0), 1);
    end();
}

static void expect_refusal(const char *request, const char *sentence) {
    ck_assert_str_eq(answer_to(request), format("{\"error\":\"%s\"}", sentence));
    ck_assert_ptr_null(tensor_error());
}

TEST(what_cannot_be) {
    static const char *const wrong[][2] = {
        {"play train 1", "there is no run: begin one first"},
        {"play record", "there is no run: begin one first"},
        {"play begin\nattention cosine", "attention is \\\"cosine\\\": it must be dot or additive"},
        {"play begin\npairs 27", "pairs is \\\"27\\\": it must be an integer from 1 to 26"},
        {"play begin\npairs 2.5", "pairs is \\\"2.5\\\": it must be an integer from 1 to 26"},
        {"play begin\nlr 0", "lr is \\\"0\\\": it must be a number from 1e-06 to 1000000"},
        {"play begin\nlr fast", "lr is \\\"fast\\\": it must be a number from 1e-06 to 1000000"},
        {"play begin\nseed -1",
         "seed is \\\"-1\\\": it must be an integer from 0 to 9007199254740991"},
        {"play begin\nno-mask 2", "no-mask is \\\"2\\\": it must be an integer from 0 to 1"},
        {"play begin\nheads 2", "there is no setting \\\"heads\\\""},
        {"play begin\nseed", "\\\"seed\\\" has no value"},
        {"play begin\nno-scale 1\nattention additive", "additive attention has no scale"},
    };
    for (int i = 0; i < COUNT(wrong); i++) {
        expect_refusal(wrong[i][0], wrong[i][1]);
        ck_assert_int_eq(live_tensors(), 0);
    }
}

/* A mistake in a request leaves the run as it is. */
TEST(mistakes_between_steps) {
    begin("dot", "");
    expect_refusal("play train 0", "train is \\\"0\\\": it must be an integer from 1 to 1000");
    expect_refusal("play train 1001",
                   "train is \\\"1001\\\": it must be an integer from 1 to 1000");
    expect_refusal("play pause",
                   "\\\"pause\\\" is no request: it must be begin, train, record or end");
    expect_refusal("play ", "\\\"\\\" is no request: it must be begin, train, record or end");
    expect_refusal("play begin\npairs 27",
                   "pairs is \\\"27\\\": it must be an integer from 1 to 26");
    get("play train 1");
    ck_assert_int_eq(json_integer(tree, "step", 0), 1);
    end();
}

TEST(a_rate_that_is_too_large) {
    begin("dot", "lr 1000000");
    const char *answer = answer_to("play train 100");
    ck_assert_msg(strstr(answer, "the loss is not a finite number: choose a smaller learning rate"),
                  "%.200s", answer);
    ck_assert_int_eq(live_tensors(), 0);
    expect_refusal("play train 1", "there is no run: begin one first");
}

int main(void) { return run_tests("play"); }
