/* rule_judge.h - is a formula the gradient that it is said to be, and if not, what is it? One judge
 * for the box of a step, the rule of one line, and for the card, a whole gradient.
 *
 * A look compares the formula's numbers with the right ones, and with those of the known mistakes:
 * what agrees in every look is said. In the box the looks draw the gradient that arrives: a
 * backward is linear in it, and two linear functions that agree on random numbers agree on all, but
 * for a probability of 0. Where the formula reads gradients that come before this one, those are
 * drawn, and led back to the line as backward does. The card's looks are at tapes of their own, the
 * first with the lesson's numbers, the others with other numbers in every leaf. */
#ifndef TAPEHEAD_EXAMPLES_RULE_JUDGE_H
#define TAPEHEAD_EXAMPLES_RULE_JUDGE_H

#include "rule_planted.h"

enum { JUDGE_ROWS = 200, JUDGE_TEXT = 320 };

/* What is found out about a formula, look by look. It begins as {0}. */
typedef struct {
    int wrong_looks;
    bool is_wrong_here, is_wrong; /* with the lesson's numbers; with some */
    bool is_refused; /* its names or its sizes do not fit: why says it, without a full stop */
    int column;      /* of what is refused; 0: it has none */
    bool is_no_mistake[JUDGE_ROWS]; /* the rows of mistakes.def that computed something else */
    unsigned no_parts;              /* bit s: it is not the sum of the uses in s, a set of bits */
    double factor;                  /* times the right gradient; NaN: it is not */
    bool is_turned;                 /* it is the right gradient, transposed */
    bool is_not_linear, ignores_dy; /* it does not double when dy doubles; it stays as it is */
    const MistakeRow *mistake;      /* NULL: none that is known */
    char computes[JUDGE_TEXT];      /* what the mistake computes, in the lesson's names */
    char why[JUDGE_TEXT + 80], question[JUDGE_TEXT], shown[JUDGE_TEXT]; /* or "" */
} Judged;

/* A line of a card: is the formula the gradient `name`, "dA"? here: the tape has the lesson's
 * numbers. last: what is found out is said, for a right one how it can be written in the lesson's
 * names. Without memory an error. */
void judge_whole(Judged *judged, const Planting *planting, const char *name, const char *formula,
                 bool here, bool last);

/* What is known of the gradient of input k of line i, which may have a hook. turns: where the
 * line only transposes, as K', and a product reads its result, in the names of the product. False
 * with an error without memory. */
typedef struct {
    PlantedUse use;
    const char *formula;       /* a right one, in the names of mistakes.def; NULL: none is known */
    char shown[JUDGE_TEXT];    /* the same in the lesson's names, or "" */
    bool is_wrong[JUDGE_ROWS]; /* rows of mistakes.def that fit there, and are wrong */
    bool is_written[JUDGE_ROWS]; /* of these: a reader could have written their formulas */
} JudgePlace;
bool judge_place(const Planting *planting, int i, int k, bool turns, JudgePlace *place);
/* Where input k of line i is only transposed, K', and read in a product: that line. */
bool judge_turned_use(int i, int k, PlantedUse *use);

/* rule_squares.c: the mistake that a formula is whose sizes do not fit: the one that computes the
 * same where all tables are square, and random. scope: its names. NULL if there is none. */
const MistakeRow *judge_squares(const PlantedUse *use, const char *formula, const RuleScope *scope);
/* Adds to a complaint about sizes which mistake it is: ". This is dY times V, where ..." */
void judge_name_mistake(const Planting *planting, const PlantedUse *use, const MistakeRow *mistake,
                        char *complaint, size_t size);

#endif
