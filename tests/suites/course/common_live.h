/* common_live.h - asks what a page asks (examples/explain/page/live.h), and reads the answers. */
#ifndef TESTS_COMMON_LIVE_H
#define TESTS_COMMON_LIVE_H

#include "../../../examples/explain/page/json.h"

/* The text of the answer, until the next request. */
const char *answer_to(const char *request);
/* The answer as a tree, until the next ask or ask_no_more. */
const Json *ask(const char *request);
/* Frees the last answer; no tensor may be left. */
void ask_no_more(void);

#endif
