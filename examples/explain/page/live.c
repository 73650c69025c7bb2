/* live.c - lessons for a page that computes: see live.h. */
#include "live.h"

#include "json.h"
#include "../lessons/lesson.h"
#include "../lessons/loop.h"
#include "../steps/nudge.h"
#include "play.h"
#include "../lessons/probe.h"
#include "recording.h"

#include <stdlib.h>
#include <string.h>

static char *request;
static char *answer;

char *live_request(int size) {
    free(request);
    request = size < 0 ? NULL : calloc((size_t)size + 1, 1);
    return request;
}

/* A request. */
typedef struct {
    int lesson;
    LessonOptions options;
    LessonEdit *edits; /* memory for one edit per line of the request */
    bool box;          /* only what a box for a rule needs */
    bool card;         /* the rules are lines of a card */
    Probe probe;       /* only a forward for other numbers */
    const char *loop;  /* only the loop after these presses */
    bool again;        /* only the questions that it opens with, drawn from this seed */
    uint64_t seed;
} Asked;

/* "3" or, for its second half, "3b". */
static bool read_lesson_name(const char *value, Asked *asked) {
    const int number = *value > '0' && *value <= '0' + LESSONS ? *value - '0' : 0;
    const bool is_b = number > 0 && strcmp(value + 1, "b") == 0;
    if (number == 0 || (value[1] && !is_b) || !lesson_has_part(number, is_b ? 'b' : 'a'))
        return tensor_fail("lesson is \"%s\": it must be an integer from 1 to %d, or 3b", value,
                           LESSONS);
    asked->lesson = number;
    asked->options.part = is_b ? 'b' : 'a';
    return true;
}

static bool read_seed(const char *value, Asked *asked) {
    char *end;
    asked->again = true;
    asked->seed = strtoull(value, &end, 10);
    if (end > value && !*end && *value != '-') return true;
    return tensor_fail("again is \"%s\": it must be a seed, an integer that is not negative",
                       value);
}

static bool take_setting(void *context, const char *key, const char *value) {
    Asked *asked = context;
    if (strcmp(key, "lesson") == 0) return read_lesson_name(value, asked);
    if (strcmp(key, "again") == 0) return read_seed(value, asked);
    if (strcmp(key, "probe") == 0) return probe_read(&asked->probe, value);
    if (strcmp(key, "show") == 0) return probe_show(&asked->probe, value);
    if (strcmp(key, "set") == 0)
        return lesson_read_edit(&asked->edits[asked->options.num_edits++], value);
    if (strcmp(key, "box") == 0) asked->box = strcmp(value, "0") != 0;
    else if (strcmp(key, "card") == 0) asked->card = strcmp(value, "0") != 0;
    else if (strcmp(key, "loop") == 0) asked->loop = value;
    else return lesson_set(&asked->options, key, value);
    return true;
}

/* Names of leaves stay in the text. */
static bool read_request(char *text, Asked *asked) {
    if (!settings_read(text, take_setting, asked)) return false;
    if (asked->lesson == 0) return tensor_fail("the request names no lesson");
    if (asked->probe.num_shown > 0 && !asked->probe.tensor)
        return tensor_fail("show %s: the request has no probe", asked->probe.shown[0]);
    const char *refused = lesson_refuses(asked->lesson, &asked->options);
    if (refused) tensor_fail("lesson %d takes no %s", asked->lesson, refused + strlen("--"));
    return !refused;
}

static char *answer_asked(const Asked *asked) {
    if (asked->again) return again_as_json(asked->lesson, asked->options.part, asked->seed);
    if (asked->probe.tensor) return probe_as_json(asked->lesson, asked->options, &asked->probe);
    if (asked->loop) return loop_as_json(asked->lesson, asked->options, asked->loop);
    if (asked->card) return lesson_card_as_json(asked->lesson, asked->options);
    if (asked->box) return lesson_box_as_json(asked->lesson, asked->options);
    return lessons_as_json(asked->lesson, asked->lesson, asked->options);
}

static char *answer_as_json(char *text) {
    size_t lines = 1;
    char *json = NULL;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    Asked asked = {.options = LESSON_OPTIONS, .edits = calloc(lines, sizeof *asked.edits)};
    asked.options.edits = asked.edits;
    if (!asked.edits) tensor_fail("out of memory for a request of %zu lines", lines);
    else if (read_request(text, &asked)) json = answer_asked(&asked);
    free(asked.edits);
    return json;
}

/* The pending error as JSON; clears it. */
static char *error_as_json(void) {
    char sentence[1024];
    char *json;
    snprintf(sentence, sizeof sentence, "%s", tensor_error());
    tensor_clear_error();
    FILE *file = data_open(&json);
    if (file) {
        fprintf(file, "{\"error\":");
        json_write_string(file, sentence);
        putc('}', file);
    }
    json = data_close(file, json);
    tensor_clear_error();
    return json;
}

const char *live_answer(void) {
    char *text = request ? request : "";
    free(answer);
    tensor_clear_error();
    tensor_set_default_dtype(F32);
    if (strncmp(text, "play ", 5) == 0) answer = play_answer(text + 5);
    else if (strncmp(text, "nudge ", 6) == 0) answer = nudge_answer(text + 6);
    else answer = answer_as_json(text);
    if (tensor_error()) {
        free(answer);
        answer = error_as_json();
    }
    return answer ? answer : "{\"error\":\"out of memory\"}";
}

int live_tensors(void) { return (int)tensor_live(); }
