/* plan_json.h - the steps of a lesson for the page, which draws them and plans nothing.
 *
 * The lesson gets one more member:
 *
 *     "plan":{"reasons":["masked: the mask forbids this key",...],
 *      "tensors":[{"name":"S / sqrt(d)","symbol":"Z","gradient":"dZ","value":[4,0]},...],
 *      "units":[{"lines":[5,7],"group":0,"name":"loss","moves":false,"parts":[part,...]},...],
 *      "steps":[{"at":"b3.0","kind":"backward",...},...], "long":false}
 *
 * What the plan is made of, "jacobian", the "right" one, "fold" and so on, is left out: the plan
 * says what follows; and in a lesson "dx" is, if it is the whole "grad" of the input. tensors: what
 * each is called, and where it is 0: an element, and the number of its reason, and so on. units:
 * lines that are one arrow, from the first to the last index of "lines"; a group stands there
 * folded, with a name, and line by line. part: {"input":0,"zeros":[...],"jacobian":[...]}, of the
 * first line's "backward", and the last where it is of use.
 *
 * long: a reader begins with the key steps alone.
 *
 * A step has, where they say something:
 *
 *     at, kind, unit, tensor     the name (plan.h); cover, forward, start, backward, add, twice,
 *                                sgd or card
 *     key                        it is a key step
 *     lines                      of the card: the name of a gradient, "forward" what it comes back
 *                                through, and why its formula is as it is
 *     part, moves                the number of its part in the unit; it only moves numbers
 *     look, most                 the element that the lesson's text is about; else the largest
 *     title, text, sentence      names between backquotes; text, if it is not what the lesson says
 *                                at this name; sentence holds no number, and
 *                                is left out where the last look at a nudge says it
 *     items, main                tables, and signs: "=" or ["x","number by number"]
 *     form, mean, after          the lines of terms: worked.h
 *     cells, means, more         the elements of each line (none: each is its own); more decimals
 *     rows                       each row is made from the same rows of the other tables
 *     check, checked, passes     right, wrong or unchecked, and in words
 *     right                      the right numbers, where a wrong rule is planted
 *     algebra                    the rule in lines, of the element that the step looks at
 *                                (algebra.h)
 *     nudge                      what a reader can nudge (nudge.h): kind, op and factor for a
 *                                request, the changes of NUDGE_RECORDED, what each look says
 *
 * An element of "cells" is a list; a negative number at its end says how many terms the sum has, if
 * not all are there. {"of":[1,0,1,2]} is a call of "op" with pairs of an item and an element, -1
 * for "...". A text is said instead of terms. A table is {"of":"v","tensor":4,"note":"weights"}
 * (ItemKind), and part, sum, turned, word, small, hidden; with a name that is not the tensor's, and
 * a "format":[decimals,exponent] that is not that of its numbers. */
#ifndef TAPEHEAD_EXAMPLES_PLAN_JSON_H
#define TAPEHEAD_EXAMPLES_PLAN_JSON_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a lesson, an object of JSON, which it overwrites, with its plan. False and an error
 * without memory. */
bool plan_write_lesson(FILE *file, char *lesson);

#endif
