/* test_reverse.c - does build/reverse attend to the anti-diagonal, and measure this correctly?
 * test_programs.c tests what all training programs have in common. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "../common_program.h"

/* A fiftieth of a second, enough for six places and five tokens. */
#define SMALL "--threads 1 --steps 300 --batch 16 --length 6 --tokens 5 --hidden 16 "

static double right(void) { return number_after("expect  every token right  "); }
static double anti_diagonal(void) {
    return number_after("expect  largest weight on the anti-diagonal  ");
}

/* The darkest of the six cells of a row, "3|  ..    ##  |". */
static int darkest(const char *cells) {
    const char *shades = " .:-=+*#%@";
    int best = 0;
    for (int j = 1; j < 6; j++)
        if (strchr(shades, cells[2 * j]) > strchr(shades, cells[2 * best])) best = j;
    return best;
}

/* Row i has its token on the left, and below the token of key 5 - i the darkest cell. Both heads
 * stand side by side, under one line of tokens each. */
static void check_maps(void) {
    const char *titles = strstr(out, "\n\n") + 2; /* behind the caption */
    const char *tokens = strchr(titles, '\n') + 1;
    const char *row = strchr(tokens, '\n') + 1;
    for (int i = 0; i < 6; i++, row = strchr(row, '\n') + 1) {
        const char *second = strchr(strchr(row, '|') + 1, '|') + 3;
        ck_assert_int_eq(row[0], tokens[2 + 2 * i]);
        ck_assert_int_eq(darkest(row + 2), 5 - i);
        ck_assert_int_eq(second[0], row[0]);
        ck_assert_int_eq(darkest(second + 2), 5 - i);
    }
}

PROGRAM_CASE("program")
TEST(learns) {
    ck_assert_int_eq(run(SMALL "--steps 0"), 1);
    ck_assert_double_lt(right(), 0.1);
    ck_assert_double_lt(anti_diagonal(), 0.5);
    ck_assert_int_eq(run(SMALL), 0);
    ck_assert_double_ge(right(), 0.99);
    ck_assert_double_ge(anti_diagonal(), 0.99);
    check_maps();
}

/* If dropout removes the right weight of all heads, the answer is a guess among five. So the loss
 * falls to about p^H log 5, and not to 0. */
TEST(dropout_leaves_a_loss) {
    static const char *const flags[] = {"--dropout 0.3 --heads 1", "--dropout 0.3 --heads 2"};
    static const double left[] = {0.3, 0.09};
    for (int i = 0; i < 2; i++) {
        run(format(SMALL "--every 100 --log $D/log.csv %s", flags[i]));
        ck_assert_double_ge(right(), 0.99);
        double leaves = number_after("dropout^heads log(tokens): ");
        ck_assert_double_eq_tol(leaves, left[i] * log(5), 1e-4);
        slurp(path("log.csv"), out, sizeof out);
        ck_assert_double_eq_tol(number_after("\n300,"), leaves, leaves / 4);
    }
}

/* The fused path keeps no weights, so the program computes them for the measurement. */
TEST(fused_is_the_same) {
    run(SMALL "--steps 60");
    const char *composed = copy_of_output();
    ck_assert_double_gt(number_after("mean weight there "), 0.1);
    run(SMALL "--steps 60 --fused");
    ck_assert_str_eq(out, composed);
}

/* The model has learned to attend to 5 - i, not to n - 1 - i. */
TEST(another_length_is_another_task) {
    ck_assert_int_eq(run(SMALL "--quiet --save $D/six"), 0);
    ck_assert_int_eq(run(SMALL "--quiet --load $D/six --length 5"), 1);
    ck_assert_double_lt(anti_diagonal(), 0.3); /* row 0 has no key 5 to look at */
    ck_assert_double_lt(right(), 0.1);
}

int main(void) {
    program = "reverse";
    return run_tests("reverse");
}
