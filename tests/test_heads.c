/* test_heads.c - do the heads look where they must, and is the importance of one what it says?
 *
 * What all training programs promise is in test_programs.c. Run from the root of the repository. */
#include "../examples/common/rank.h"
#include "common.h"
#include "common_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Four heads for two offsets, trained in a tenth of a second until the loss rests. */
#define SMALL                                                                                      \
    "--heads 4 --hidden 32 --length 8 --offsets 2 --tokens 4 --batch 16 --lr 0.2 --steps 1000 "

enum { HEADS = 4 };
static struct {
    int offset;
    double importance, decay, without, weight;
} head[HEADS];
static struct {
    double loss, accuracy;
    int weakest;
} left[HEADS + 1]; /* with so many heads */

/* Both tables, from out. */
static void read_tables(void) {
    const char *line = out;
    for (int i = 0, number; i < HEADS; i++, line = strchr(line, '\n') + 1) {
        ck_assert_msg(sscanf(line,
                             "head %d: i-%d importance %lf decay |W|^2 %lf loss without %lf"
                             " weight %lf",
                             &number, &head[i].offset, &head[i].importance, &head[i].decay,
                             &head[i].without, &head[i].weight) == 6,
                      "%.80s", line);
        ck_assert_int_eq(number, i + 1);
    }
    line = strstr(out, "\n 4 heads") + 1;
    for (int n = HEADS, number; n > 0; n--, line = strchr(line, '\n') + 1) {
        ck_assert_msg(sscanf(line, "%d heads loss %lf accuracy %lf weakest %d", &number,
                             &left[n].loss, &left[n].accuracy, &left[n].weakest) == 4,
                      "%.80s", line);
        ck_assert_int_eq(number, n);
    }
}

/* The two that are kept longest. */
static int needed(int i) { return left[2 - i].weakest - 1; }

START_TEST(two_of_four_heads_learn_the_two_offsets) {
    ck_assert_int_eq(run(SMALL "--steps 0"), 1);
    read_tables();
    ck_assert_double_lt(left[HEADS].accuracy, 0.5);
    ck_assert_int_eq(run(SMALL), 0);
    read_tables();
    ck_assert_double_ge(left[2].accuracy, 0.99);
    ck_assert_int_eq(head[needed(0)].offset + head[needed(1)].offset, 1 + 4);
    for (int i = 0; i < 2; i++) ck_assert_double_gt(head[needed(i)].weight, 0.5);
    ck_assert_ptr_nonnull(strstr(out, "\nexpect  rank correlation  1.0000 >= 0.8  PASS\n"));
}
END_TEST

/* Without a head its offset is guessed, one of four tokens: i - 1 at 7 places, i - 4 at 4, which
 * makes the head at i - 4 the weaker one. */
START_TEST(a_head_is_worth_what_it_is_asked) {
    ck_assert_int_eq(run(SMALL "--quiet"), 0);
    read_tables();
    ck_assert_int_eq(head[needed(0)].offset, 4);
    ck_assert_int_eq(head[needed(1)].offset, 1);
    ck_assert_double_eq_tol(left[1].accuracy, 7 / 11. + 4 / 11. / 4, 0.02);
    ck_assert_double_eq_tol(head[needed(0)].without, 4 / 11. * log(4), 0.05);
    ck_assert_double_eq_tol(head[needed(1)].without, 7 / 11. * log(4), 0.05);
}
END_TEST

/* Where weight decay has come to rest, the gradient of a gate is known from the weights: a scale
 * that was wrong, or gates that were not one for each sequence, would show. */
START_TEST(importance_is_what_the_decay_says) {
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(run(i ? SMALL "--decay 0.002 --lr 0.1" : SMALL), 0);
        read_tables();
        for (int j = 0; j < 2; j++) {
            double ratio = head[needed(j)].importance / head[needed(j)].decay;
            ck_assert_msg(ratio > 0.85 && ratio < 1.15, "%g", ratio);
        }
    }
}
END_TEST

START_TEST(the_weakest_goes_first) {
    for (int seed = 1; seed <= 3; seed++) {
        char line[256];
        snprintf(line, sizeof line, SMALL "--quiet --steps 100 --seed %d", seed);
        run(line);
        read_tables();
        int first = left[HEADS].weakest - 1;
        for (int h = 0; h < HEADS; h++)
            ck_assert_double_ge(head[h].importance, head[first].importance);
        ck_assert_double_eq(left[HEADS - 1].loss, head[first].without);
        for (int n = 1; n <= HEADS; n++)
            for (int m = 1; m < n; m++) ck_assert_int_ne(left[n].weakest, left[m].weakest);
    }
}
END_TEST

/* Without 1 / sqrt(d), or with heads of another size, it is another model of the same shapes. */
START_TEST(models_of_the_same_shapes) {
    run(SMALL "--quiet --steps 10 --save $D/trained");
    run(SMALL "--quiet --steps 10 --no-scale --save $D/unscaled");
    ck_assert_int_eq(shell("! cmp -s $D/trained $D/unscaled"), 0);
    expect_failure(SMALL "--no-scale --load $D/trained", "its no_scale is 0, and in this");
    expect_failure(SMALL "--heads 2 --load $D/trained", "its heads is 4, and in this");
}
END_TEST

/* Dropout draws in every step, and the evaluation drops nothing. */
START_TEST(dropout) {
    run(SMALL "--quiet --dropout 0.3 --steps 7 --save $D/half");
    run(SMALL "--quiet --dropout 0.3 --steps 20 --load $D/half --save $D/half");
    run(SMALL "--quiet --dropout 0.3 --steps 20 --save $D/whole");
    ck_assert_int_eq(shell("cmp $D/half $D/whole"), 0);
    run(SMALL "--quiet --dropout 0.3 --log $D/log.csv");
    read_tables();
    double step, loss, last = 0;
    slurp(path("log.csv"), out, sizeof out);
    for (char *row = out; (row = strchr(row, '\n')); row++)
        if (sscanf(row, "%lf,%lf", &step, &loss) == 2) last = loss;
    ck_assert_double_gt(last, 3 * left[HEADS].loss);
}
END_TEST

START_TEST(flags_that_contradict_each_other) {
    expect_misuse("--hidden 24");
    expect_misuse("--hidden 8");
    expect_misuse("--offsets 6");
    expect_misuse("--length 10");
    ck_assert_int_eq(run("--help --length 11"), 0);
}
END_TEST

/* ---- ranks --------------------------------------------------------------------------------- */

START_TEST(ranks) {
    double x[] = {1, 2, 3, 4, 5}, y[] = {5, 6, 7, 8, 7}, down[] = {9, 4, 1, 0, -7};
    ck_assert_double_eq(rank_correlation(x, x, 5, 1e-4), 1);
    ck_assert_double_eq(rank_correlation(x, down, 5, 1e-4), -1);
    /* y: 1, 2, 3.5, 5, 3.5: 8 / sqrt(10 * 9.5) */
    ck_assert_double_eq_tol(rank_correlation(x, y, 5, 1e-4), 8 / sqrt(95), 1e-15);
    /* 1, 2.5, 2.5, 4 and 2.5, 2.5, 4, 1: -2.25 / sqrt(4.5 * 4.5) */
    double a[] = {1, 2, 2, 4}, b[] = {10, 10, 20, 5};
    ck_assert_double_eq_tol(rank_correlation(a, b, 4, 1e-4), -0.5, 1e-15);
}
END_TEST

START_TEST(ranks_of_noise) {
    double x[] = {0.20001, 0.20004, 0.4, 0.5}, y[] = {0.70003, 0.69996, 0.8, 0.9};
    ck_assert_double_eq(rank_correlation(x, y, 4, 1e-4), 1);
    ck_assert_double_lt(rank_correlation(x, y, 4, 1e-6), 1);
    double same[] = {3, 3, 3, 3}, unknown[] = {1, 2, nan(""), 4};
    ck_assert(isnan(rank_correlation(x, same, 4, 1e-4)));
    ck_assert(isnan(rank_correlation(x, unknown, 4, 1e-4)));
    ck_assert(isnan(rank_correlation(unknown, x, 4, 1e-4)));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("heads");
    TCase *tcase = add_program_case(suite, "program");
    program = "heads";
    tcase_add_test(tcase, two_of_four_heads_learn_the_two_offsets);
    tcase_add_test(tcase, a_head_is_worth_what_it_is_asked);
    tcase_add_test(tcase, importance_is_what_the_decay_says);
    tcase_add_test(tcase, the_weakest_goes_first);
    tcase_add_test(tcase, models_of_the_same_shapes);
    tcase_add_test(tcase, dropout);
    tcase_add_test(tcase, flags_that_contradict_each_other);
    tcase = tcase_create("ranks");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, ranks);
    tcase_add_test(tcase, ranks_of_noise);
    return run_suite(suite);
}
