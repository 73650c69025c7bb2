/* rule_plant.h - a formula as the backward of a line: planted on the open tape, and judged.
 *
 *     Planting planting = {0};
 *     Tensor *loss = ...;                            the forward pass on an open tape
 *     rule_plant(&planting, "A: y * dy");            the line that makes A now has this backward
 *     rule_judge(&planting);                         wrong, and it is the mistake no_sum
 *     ag_backward(loss);
 *     rule_write(&planting, file);
 *     tape_end();
 *     rule_free(&planting);
 *
 * A rule is NAME: FORMULA. The name says which gradient the formula computes:
 *
 *     A: y * dy          A, the result of a line with one gradient: the gradient of its input
 *     dA: dY @ V'        the gradient of A, in the one line that reads A
 *     V: A' @ dY         the same, of a tensor that no line makes
 *     Q.dx: dQ @ W_q     the gradient of x in the line that makes Q, where several lines read x;
 *                        Q.x is the same, and so is the name in the op's call, Y.db
 *
 * In the formula stand, the first one that fits:
 *
 *     the lesson's names of the line's tensors, A and S, and dA or d(S / sqrt(d)) for the gradient
 *         that arrives; short names, Z and dZ, too
 *     the names in the op's call: a and b of ag_matmul(a, b)
 *     y, dy; x, the first input
 *     s or scale, p: the number that the op got; count: how many numbers a mean is over; kept: 1
 *         where dropout kept the number, else 0; what an alias adds
 *     other tensors of the tape, by their names, and the gradients that backward knows before it
 *         comes to this line: dK can be written as dS' @ Q where K' is made
 *
 * On a line that only moves numbers, such as reshape and transpose, the numbers of the formula are
 * taken row by row. */
#ifndef TAPEHEAD_EXAMPLES_RULE_PLANT_H
#define TAPEHEAD_EXAMPLES_RULE_PLANT_H

#include "rule.h"

#include <stdio.h>

/* Another name of a tensor; if tensor is NULL, a name of a number. */
typedef struct {
    const char *alias, *tensor;
    double number;
} RuleAlias;

/* A tensor on the open tape by its name; NULL if there is none. */
Tensor *tensor_on_tape(const char *name);

typedef struct PlantedLine PlantedLine;
typedef struct {
    const RuleAlias *aliases; /* the caller's */
    int num_aliases;
    PlantedLine *first;
} Planting;

/* Plants a rule, whose text must stay until rule_free, until the tape ends. False with an error,
 * "rule of A, column 5: there is no dz here: ...", if it does not fit; the column is the formula's.
 * A second rule of a gradient takes the place of the first. */
bool rule_plant(Planting *planting, const char *rule);
/* The same for the gradient of input k of a line. name: for errors and rule_write. */
bool rule_plant_at(Planting *planting, int line, int k, const char *name, const char *formula);
/* "=" in place of "+=": the gradients that lines have added before to these inputs of the line, bit
 * k for in[k], are lost. */
bool rule_plant_assign(Planting *planting, int line, unsigned inputs);

/* Puts random numbers into x, if it has a float type. False and an error if memory is out. */
bool rule_draw(Tensor *x, uint64_t *state);

/* Compares each rule with the backward of its line, for two random dy, and looks for its mistake.
 * False with an error if memory is out. */
bool rule_judge(Planting *planting);
/* Writes ,"planted":[{"line":5,"input":0,"typed":true,"rule":"A: y * dy","name":"A",
 * "formula":"y * dy","verdict":"wrong","mistake":"no_sum","why":"...","question":"..."}, ...].
 * formula: of a known mistake in the lesson's names; typed: planted by rule_plant; verdict: "right"
 * or "wrong"; mistake: its id, or ""; why: what the formula computes, or ""; of a right rule, that
 * it is right for these numbers only; question: of the mistake, or "". */
void rule_write(const Planting *planting, FILE *file);
/* Writes ,"right": and the tape, if there is a planted line, each line with its own backward. False
 * and an error without memory. */
bool rule_write_right(Planting *planting, FILE *file);
/* Writes ,"places":[{"line":5,"input":0,"name":"A","formula":"y * (dy - sum(y * dy))",
 * "shown":"A * (dA - sum(A * dA))","exercise":"04_softmax","names":[{"name":"dA","is":"dy"}, ...],
 * "mistakes":[{"id":"no_sum","formula":"A * dA"}, ...]}, ...], one for each gradient that a rule
 * can compute. name: for rule_plant; formula: a right one in the names of the op's call, "" if none
 * is known; shown: the same in the lesson's names, where K' is made dS' @ Q; exercise:
 * "04_softmax", where the same backward is written in C, or ""; is: "dy", "y", "input", with
 * "input":k, "number", with its value, or "table"; mistakes: those that fit the line, in the
 * lesson's names, with their id, or "". */
bool rule_write_places(const Planting *planting, FILE *file);
/* Are all planted rules right, as far as they are judged? */
bool rule_all_right(const Planting *planting);
/* The tape must have ended, or have no planted line. */
void rule_free(Planting *planting);

#endif
