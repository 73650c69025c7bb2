/* rule_card.h - the lines of a card: whole gradients of a lesson, written in the language of rules
 * and judged one by one.
 *
 *     Card card;
 *     card_begin(&card, (const char *const[]){"dA: dY @ V'", "dK: dS' @ Q"}, 2);
 *     for (int look = 0; look < CARD_LOOKS; look++)
 *         card_look(&card, &planting);             on a tape with gradients, each time another one
 *     card_write(&card, file);
 *
 * A line of a card says what a gradient is, not what one line of the tape adds to it: dK' and dK
 * are one line, dK = dS' @ Q, and where x is used three times dx has three terms. In the formula
 * stand the names of rule_plant.h, and the gradients that backward knows before this one. */
#ifndef TAPEHEAD_EXAMPLES_RULE_CARD_H
#define TAPEHEAD_EXAMPLES_RULE_CARD_H

#include "rule_judge.h"

enum { CARD_LOOKS = 3, CARD_LINES = 12 };

typedef struct {
    const char *formula;
    char name[RULE_NAME];
    Judged judged;
} CardLine;

typedef struct {
    int n, looks;
    CardLine lines[CARD_LINES];
} Card;

/* The texts, "dA: dY @ V'", stay the caller's. False and an error if there are too many, or if one
 * names no gradient. */
bool card_begin(Card *card, const char *const *rules, int n);
/* Judges all lines on the open tape; the last look says what they are. False and an error if memory
 * is out. */
bool card_look(Card *card, const Planting *planting);
/* Writes [{"name":"dA","formula":"dY @ V","verdict":"wrong","mistake":"da_untransposed",
 * "column":4,"why":"This is ...","question":"Which numbers of ...?"}, ...]. verdict: right, wrong,
 * or refused, and then why has no full stop, and column says where, from 1, or 0. A right line has
 * "shown", a right formula in the lesson's names. */
void card_write(const Card *card, FILE *file);

#endif
