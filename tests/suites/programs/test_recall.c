/* test_recall.c - does build/recall attend to the pair of the key that is asked for, for the reason
 * that it gives, and does it show this? test_programs.c tests what all training programs have in
 * common. */
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "../common_program.h"

/* A few thousandths of a second suffice for six keys and five values. */
#define SMALL "--threads 1 --steps 60 --batch 8 --pairs 4 --keys 6 --values 5 --hidden 8 "

static const char *const mechanisms[] = {"dot", "additive"};

static int run_with(const char *mechanism, const char *arguments) {
    return run(format(SMALL "--attention %s %s", mechanism, arguments));
}

static double accuracy(void) { return number_after("expect  accuracy  "); }

PROGRAM_CASE("program")
TEST(learns_with_both_mechanisms) {
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(run_with(mechanisms[i], "--steps 0"), 1);
        ck_assert_double_lt(accuracy(), 0.5);
        ck_assert_int_eq(run_with(mechanisms[i], "--log $D/log.csv"), 0);
        ck_assert_double_ge(accuracy(), 0.99);
        ck_assert_ptr_nonnull(strstr(out, "\nexpect  largest weight on the right pair  1.0000"));
        slurp(path("log.csv"), out, sizeof out);
        ck_assert_double_gt(number_after("\n3,"), 1); /* a guess among five: log 5 = 1.6 */
        ck_assert_double_lt(number_after("\n60,"), 0.01);
    }
}

/* A mean that does not depend on the question knows one value in n. All weights of a sequence are
 * equal, so the first is the largest. */
TEST(the_mean_is_no_memory) {
    ck_assert_int_eq(run_with("mean", "--steps 300"), 1);
    ck_assert_double_lt(accuracy(), 0.6);
    run_with("mean", "--quiet --steps 7 --explain $D/page.html");
    ck_assert_str_eq(complaints, "");
}

/* The darkest cell of a row "f?|  @@  |" is below the f of "f:3" in the first line of labels:
 * values of one digit leave the letters there. */
static void check_row(const char *letters, const char *line, const char *question) {
    const char *shades = " .:-=+*#%@/";
    const char *darkest = question + 3;
    for (const char *cell = darkest; *cell != '|' && *cell != '/'; cell += 2)
        if (strchr(shades, *cell) > strchr(shades, *darkest)) darkest = cell;
    ck_assert_msg(letters[darkest - line] == *question, "%.80s", question);
}

/* For every question of every map; the maps stand side by side. */
static int check_maps(void) {
    int rows = 0;
    ck_assert_ptr_nonnull(strstr(out, "\nweight 0 "));
    char *letters = strchr(strstr(out, "\n\n") + 2, '\n') + 1; /* behind caption, titles */
    for (char *line = strchr(letters, '\n') + 1; *line != 'w'; line = strchr(line, '\n') + 1)
        for (const char *at = strstr(line, "?|"); at && at < strchr(line, '\n');
             at = strstr(at + 1, "?|")) {
            check_row(letters, line, at - 1);
            rows++;
        }
    return rows;
}

TEST(maps_show_the_asked_keys) {
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(run_with(mechanisms[i], ""), 0);
        ck_assert_ptr_nonnull(strstr(out, " pairs  "));
        ck_assert_int_ge(check_maps(), 4 * 2);
    }
}

/* A third of the questions is about keys that stand again behind the end, with other values. */
TEST(without_valid_lens_old_pairs_are_believed) {
    ck_assert_int_eq(run_with("dot", "--save $D/trained"), 0);
    ck_assert_ptr_nonnull(strstr(out, "//"));
    ck_assert_int_eq(run_with("dot", "--load $D/trained --no-mask"), 1);
    ck_assert(accuracy() > 2 / 3. && accuracy() < 0.95);
    ck_assert_ptr_null(strstr(out, "//"));
    ck_assert_int_eq(run_with("dot", "--no-mask"), 1);
    ck_assert(accuracy() > 2 / 3. && accuracy() < 0.95);
}

TEST(finds_keys_in_longer_sequences) {
    ck_assert_int_eq(run_with("dot", "--pairs 2 --save $D/trained"), 0);
    ck_assert_int_eq(run_with("dot", "--pairs 6 --load $D/trained"), 0);
    ck_assert_int_ge(check_maps(), 4 * 3);
}

/* In training the weight that matters is lost half of the time, and the answer is a guess then. */
TEST(nothing_is_dropped_in_the_evaluation) {
    ck_assert_int_eq(run_with("dot", "--dropout 0.5 --log $D/log.csv"), 0);
    slurp(path("log.csv"), out, sizeof out);
    ck_assert_double_gt(number_after("\n60,"), 0.3);
}

/* Dropout draws in every step, and additive attention drew its matrices before the first. */
TEST(goes_on_where_it_was) {
    for (int i = 0; i < 2; i++) {
        run_with(mechanisms[i], "--quiet --dropout 0.2 --steps 0 --save $D/half");
        run_with(mechanisms[i], "--quiet --dropout 0.2 --steps 7 --load $D/half --save $D/half");
        run_with(mechanisms[i], "--quiet --dropout 0.2 --load $D/half --save $D/half");
        ck_assert_str_eq(complaints, "");
        run_with(mechanisms[i], "--quiet --dropout 0.2 --save $D/whole");
        ck_assert_int_eq(shell("cmp $D/half $D/whole"), 0);
    }
}

int main(void) {
    program = "recall";
    return run_tests("recall");
}
