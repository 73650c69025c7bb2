/* live.h - lessons for a page that computes: what the WebAssembly module exports.
 *
 *     strcpy(live_request(23), "lesson 5\nheads 2\nseed 3");
 *     puts(live_answer());
 *
 * A request is text with a setting on each line, "key value": the lesson (3b is the second half of
 * lesson 3), what lesson_set takes,
 * and edits, "set 3 0.5 W_q" (lesson_read_edit). The page (live.js) writes the request into the
 * module's memory, and reads the answer there.
 *
 * A backward that a reader has written is a line "rule NAME: FORMULA" (rule_plant.h has the names):
 *
 *     lesson 2
 *     train 1
 *     rule A: y * dy
 *     rule Y.dV: A' @ dY
 *
 * "rule" without a colon plants a known mistake (../common/mistakes.h), by the key of the menu,
 * "rule softmax", or by its id: its formulas, as such rules, in all lines that it makes wrong;
 * "assign" is none. The two can be combined; a formula takes the mistake's place on its line. For
 * line i of the JSON's tape and its input k the name may always be OUT.dIN: the names of the result
 * and of the input, or of the input in "call".
 *
 * The answer's lesson then has "planted" (rule_plant.h), and the tape's "backward" the numbers of
 * the formula and its check, "worst"; a formula that is not linear in dy can pass that check, and
 * is wrong here. With "train 1" training has "wrong", the losses with the planted rules. A formula
 * that does not fit makes the whole answer an error, {"error":"rule of A, column 5: there is no dz
 * here:
 * ..."}; the column counts in the formula, from 1. An error of the name has no column.
 *
 * With "box 1" the answer has no lesson, but what a box for a rule needs, in a tenth of the time:
 * {"box":{"help":[{"text":"a @ b","says":"the product of matrices"}, ...], "planted":[...],
 * "places":[...]}}, for each gradient what can be written there (rule_plant.h). So it is also the
 * way to check a formula while it is typed.
 *
 * With "probe INDEX FROM TO POINTS NAME" the answer has no lesson, but what its forward computes if
 * another number is added to one element of a leaf or result: FROM, TO, and what lies between, at
 * equal distances. NAME is a name on the tape, or a short one, as Z. Several such lines change
 * elements of one tensor at once. "show NAME" asks for the numbers of a tensor, too, and may be
 * given several times:
 *
 *     lesson 2
 *     probe 3 -3 3 61 Z
 *     probe 4 0.5 0.5 61 Z
 *     show A
 *
 *     {"probe":{"losses":[61 numbers],"slopes":[61 numbers],
 *     "shown":[{"name":"A","moved":[3,4,5],"values":[[61 numbers],[61],[61]]}]}}
 *
 * slopes: how fast the loss changes with the element of the first line, from two losses near the
 * point; moved: the elements, row-major, that are another number than on the tape at some point;
 * values: for each of them its numbers. All other elements stay as they are. The other settings and
 * edits hold.
 *
 * With "again SEED" the answer is {"again":[...]}, the questions about earlier lessons that the
 * lesson opens with (again.h), drawn from this seed.
 *
 * With "card 1" the rules are lines of a card, whole gradients that are judged one by one:
 * {"card":[{"name":"dK","formula":"dS' @ Q","verdict":"right","shown":"dS' @ Q",...}, ...]}
 * (rule_card.h). What does not fit is refused alone, and the answer is no error.
 *
 * With "loop bbs" the answer is the training loop after these presses of its lines (loop.h).
 *
 * A request that begins with "nudge " asks for one line alone, of any tape: nudge_answer (nudge.h).
 * A request that begins with "play " trains recall: the rest is for play_answer (play.h). */
#ifndef TAPEHEAD_EXAMPLES_LIVE_H
#define TAPEHEAD_EXAMPLES_LIVE_H

/* Memory for a request of so many bytes and the end of the string, until the next call; NULL if
 * there is none. */
char *live_request(int size);

/* Runs the request. The answer is JSON: {"lessons":[the lesson]}, or {"error":"a sentence"}. The
 * answer stays until the next call. Only an answer of play.h depends on earlier requests. */
const char *live_answer(void);

/* How many tensors exist: 0 between two answers, unless recall is being trained. */
int live_tensors(void);

#endif
