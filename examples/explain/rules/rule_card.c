/* rule_card.c - the lines of a card: see rule_card.h. */
#include "rule_card.h"

#include "../page/json.h"

#include <string.h>

bool card_look(Card *card, const Planting *planting) {
    for (int i = 0; i < card->n && !tensor_error(); i++)
        judge_whole(&card->lines[i].judged, planting, card->lines[i].name, card->lines[i].formula,
                    card->looks == 0, card->looks == CARD_LOOKS - 1);
    card->looks++;
    return !tensor_error();
}

bool card_begin(Card *card, const char *const *rules, int n) {
    *card = (Card){.n = n};
    if (n > CARD_LINES) {
        card->n = 0;
        return tensor_fail("a card has at most %d lines", CARD_LINES);
    }
    for (int i = 0; i < n; i++) {
        card->lines[i].formula = planted_split(rules[i], card->lines[i].name);
        if (!card->lines[i].formula) return false;
    }
    return true;
}

void card_write(const Card *card, FILE *file) {
    putc('[', file);
    for (int i = 0; i < card->n; i++) {
        const CardLine *line = &card->lines[i];
        const Judged *j = &line->judged;
        const char *verdict = j->is_wrong ? "wrong" : "right";
        fprintf(file, "%s{\"column\":%d", i ? ",\n" : "", j->column);
        json_write_member(file, "name", line->name);
        json_write_member(file, "formula", line->formula);
        json_write_member(file, "verdict", j->is_refused ? "refused" : verdict);
        json_write_member(file, "mistake", j->mistake ? j->mistake->id : "");
        json_write_member(file, "why", j->why);
        json_write_member(file, "question", j->question);
        json_write_member(file, "shown", j->shown);
        putc('}', file);
    }
    putc(']', file);
}
