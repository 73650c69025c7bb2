/* play.h - recall in a page that computes: trains the model (../recall/model.h) some steps at a
 * time.
 *
 *     play_answer("begin\nattention additive\nseed 3")
 *     play_answer("train 20")
 *     play_answer("record")
 *     play_answer("end")
 *
 * begin frees the run before it, unless a setting is refused, and draws the parameters. Its
 * settings, a line each, are attention (dot or additive), pairs, seed, lr, no-scale and no-mask;
 * everything else has the defaults of build/recall. train makes so many steps. The answer of begin
 * and of train is
 *
 *     {"step": 20, "losses": [of these steps], "accuracy": 0.4, "found": 0.5,
 *      "map": {"queries": ["f?"], "keys": ["c:37", "f:81"], "right": [1], "weights": [0.2, 0.8]}}
 *
 * found is the share of questions whose largest weight is on the right pair. accuracy and found are
 * measured on 64 new sequences; the map shows the first of these. right has the column of each
 * row's pair. Weights stand row by row; where a mask forbids, there is null.
 *
 * record answers {"lessons": [the example of the map at the weights as they are now]}, and changes
 * nothing. end frees the run; its answer is {"step": 0}. */
#ifndef TAPEHEAD_EXAMPLES_PLAY_H
#define TAPEHEAD_EXAMPLES_PLAY_H

/* Runs a request, which it overwrites. The caller frees the answer; NULL and an error on failure.
 * A loss that is not finite is an error, and ends the run. */
char *play_answer(char *request);

#endif
