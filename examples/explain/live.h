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
