/* test_heads.c - do the heads attend to the right places, and is the importance of a head right?
 *
 * test_programs.c tests what all training programs have in common. Run from the root of the
 * repository. */
#include "../../../examples/heads/rank.h"
#include "../common.h"
#include "../common_program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Flags of a training of less than a tenth of a second, until the loss does not fall any more. */
#define TRAINED                                                                                    \
    "--quiet --heads 4 --hidden 32 --length 8 --offsets 2 --tokens 4 --batch 8 --lr 0.15"          \
    " --decay 0.002 --steps 600 "
/* Flags of a very short training, which is not complete. */
#define BEGUN "--quiet --heads 4 --hidden 8 --length 6 --offsets 2 --tokens 4 --batch 4 --steps 9 "

enum { HEADS = 4 };
static struct {
    int offset;
    double importance, decay, without, weight;
} head[HEADS];
static struct {
    double loss, accuracy;
    int weakest;
} left[HEADS + 1]; /* by the number of heads that are left */

/* Reads both tables from out. */
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
        ck_assert_msg(sscanf(line,
                             n > 1 ? "%d heads loss %lf accuracy %lf weakest %d"
                                   : "%d head loss %lf accuracy %lf weakest %d",
                             &number, &left[n].loss, &left[n].accuracy, &left[n].weakest) == 4,
                      "%.80s", line);
        ck_assert_int_eq(number, n);
    }
}

/* The index of one of the two heads that are pruned last. */
static int needed(int i) { return left[2 - i].weakest - 1; }

PROGRAM_CASE("training", .is_long = true)
/* Two heads are needed, at i - 1 and i - 4. Without one of them its token is a guess among four,
 * for 7 or for 4 of the 11 questions. At the end of training, loss and weight decay are in balance,
 * so the weights give the gradient of a gate. A wrong scale, or gates that are shared by several
 * sequences, would change it. */
TEST(two_of_four_heads_learn_the_two_offsets) {
    ck_assert_int_eq(run(TRAINED), 0);
    read_tables();
    ck_assert_double_ge(left[2].accuracy, 0.99);
    ck_assert_int_eq(head[needed(0)].offset + head[needed(1)].offset, 1 + 4);
    for (int i = 0; i < 2; i++) {
        int h = needed(i), places = 8 - head[h].offset;
        ck_assert_double_gt(head[h].weight, 0.5);
        ck_assert_double_eq_tol(head[h].without, places / 11. * log(4), 0.05);
        ck_assert_double_eq_tol(head[h].importance / head[h].decay, 1, 0.15);
    }
    int kept = 8 - head[needed(1)].offset; /* if it is the last head */
    ck_assert_double_eq_tol(left[1].accuracy, kept / 11. + (11 - kept) / 11. / 4, 0.02);
}

PROGRAM_CASE("program")
/* The rank correlation of the printed numbers. */
TEST(the_rank_correlation) {
    double importance[HEADS], without[HEADS];
    run(BEGUN);
    read_tables();
    for (int h = 0; h < HEADS; h++) {
        importance[h] = head[h].importance;
        without[h] = head[h].without;
    }
    ck_assert_double_eq_tol(number_after("\nexpect  rank correlation  "),
                            rank_correlation(importance, without, HEADS, 1e-4), 5e-5);
}

TEST(the_weakest_goes_first) {
    run(BEGUN);
    read_tables();
    int first = left[HEADS].weakest - 1;
    for (int h = 0; h < HEADS; h++) ck_assert_double_ge(head[h].importance, head[first].importance);
    ck_assert_double_eq(left[HEADS - 1].loss, head[first].without);
    for (int n = 1; n <= HEADS; n++)
        for (int m = 1; m < n; m++) ck_assert_int_ne(left[n].weakest, left[m].weakest);
}

/* Dropout draws in every step, but not in the evaluation. */
TEST(dropout) {
    run(BEGUN "--dropout 0.3 --steps 5 --save $D/half");
    run(BEGUN "--dropout 0.3 --load $D/half --save $D/half");
    run(BEGUN "--dropout 0.3 --save $D/whole");
    ck_assert_int_eq(shell("cmp $D/half $D/whole"), 0);
    const char *whole = copy_of_output();
    run(BEGUN "--load $D/whole");
    ck_assert_str_eq(out, whole);
    run(BEGUN "--save $D/other");
    ck_assert_int_eq(shell("! cmp -s $D/other $D/whole"), 0);
}

/* ---- ranks --------------------------------------------------------------------------------- */

CASE("ranks")
TEST(ranks) {
    double x[] = {1, 2, 3, 4, 5}, y[] = {5, 6, 7, 8, 7}, down[] = {9, 4, 1, 0, -7};
    ck_assert_double_eq(rank_correlation(x, x, 5, 1e-4), 1);
    ck_assert_double_eq(rank_correlation(x, down, 5, 1e-4), -1);
    /* y: 1, 2, 3.5, 5, 3.5: 8 / sqrt(10 * 9.5) */
    ck_assert_double_eq_tol(rank_correlation(x, y, 5, 1e-4), 8 / sqrt(95), 1e-15);
    /* 1, 2.5, 2.5, 4 and 2.5, 2.5, 4, 1: -2.25 / sqrt(4.5 * 4.5) */
    double a[] = {1, 2, 2, 4}, b[] = {10, 10, 20, 5};
    ck_assert_double_eq_tol(rank_correlation(a, b, 4, 1e-4), -0.5, 1e-15);
}

TEST(ranks_of_noise) {
    double x[] = {0.20001, 0.20004, 0.4, 0.5}, y[] = {0.70003, 0.69996, 0.8, 0.9};
    ck_assert_double_eq(rank_correlation(x, y, 4, 1e-4), 1);
    ck_assert_double_lt(rank_correlation(x, y, 4, 1e-6), 1);
    double same[] = {3, 3, 3, 3}, unknown[] = {1, 2, nan(""), 4};
    ck_assert(isnan(rank_correlation(x, same, 4, 1e-4)));
    ck_assert(isnan(rank_correlation(x, unknown, 4, 1e-4)));
    ck_assert(isnan(rank_correlation(unknown, x, 4, 1e-4)));
}

int main(void) {
    program = "heads";
    return run_tests("heads");
}
