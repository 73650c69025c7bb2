/* common_live.c - the requests of a page: see common_live.h. */
#include "common_live.h"
#include "../common.h"

#include "../../../examples/explain/page/live.h"

#include <stdlib.h>
#include <string.h>

static char *text; /* of the last answer; its tree overwrites it */
static Json *tree;

static void forget(void) {
    free(tree);
    free(text);
    tree = NULL;
    text = NULL;
}

const char *answer_to(const char *request) {
    char *buffer = live_request((int)strlen(request));
    ck_assert_ptr_nonnull(buffer);
    memcpy(buffer, request, strlen(request));
    return live_answer();
}

const Json *ask(const char *request) {
    forget();
    text = strdup(answer_to(request));
    tree = json_read(text);
    ck_assert_msg(tree != NULL, "%s: %s", request, tensor_error());
    return tree;
}

void ask_no_more(void) {
    forget();
    live_request(-1);
    ck_assert_int_eq(live_tensors(), 0);
}
