/* live.c - lessons for a page that computes: see live.h. */
#include "live.h"

#include "json.h"
#include "lesson.h"
#include "play.h"
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

/* What a request asks for. */
typedef struct {
    int lesson;
    LessonOptions options;
    LessonEdit *edits; /* room for one for each line */
} Asked;

static bool read_lesson_number(const char *value, int *number) {
    const bool is_digit = *value > '0' && *value <= '0' + LESSONS && !value[1];
    if (is_digit) *number = *value - '0';
    else tensor_fail("lesson is \"%s\": it must be an integer from 1 to %d", value, LESSONS);
    return is_digit;
}

static bool read_line(char *line, Asked *asked) {
    char *space = strchr(line, ' ');
    if (!space) return tensor_fail("\"%s\" has no value", line);
    *space = '\0';
    const char *value = space + 1;
    if (strcmp(line, "lesson") == 0) return read_lesson_number(value, &asked->lesson);
    if (strcmp(line, "set") != 0) return lesson_set(&asked->options, line, value);
    return lesson_read_edit(&asked->edits[asked->options.num_edits++], value);
}

/* The text is overwritten, and names of leaves stay in it. */
static bool read_request(char *line, Asked *asked) {
    while (*line) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        if (*line && !read_line(line, asked)) return false;
        line = next;
    }
    if (asked->lesson == 0) return tensor_fail("the request names no lesson");
    const char *refused = lesson_refuses(asked->lesson, &asked->options);
    if (refused) tensor_fail("lesson %d takes no %s", asked->lesson, refused + strlen("--"));
    return !refused;
}

static char *answer_as_json(char *text) {
    size_t lines = 1;
    char *json = NULL;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    Asked asked = {.options = LESSON_OPTIONS, .edits = calloc(lines, sizeof *asked.edits)};
    asked.options.edits = asked.edits;
    if (!asked.edits) tensor_fail("out of memory for a request of %zu lines", lines);
    else if (read_request(text, &asked))
        json = lessons_as_json(asked.lesson, asked.lesson, asked.options);
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
    data_close(file, json);
    if (!tensor_error()) return json;
    tensor_clear_error();
    free(json);
    return NULL;
}

const char *live_answer(void) {
    char *text = request ? request : "";
    free(answer);
    tensor_clear_error();
    tensor_set_default_dtype(F32);
    answer = strncmp(text, "play ", 5) == 0 ? play_answer(text + 5) : answer_as_json(text);
    if (tensor_error()) {
        free(answer);
        answer = error_as_json();
    }
    return answer ? answer : "{\"error\":\"out of memory\"}";
}

int live_tensors(void) { return (int)tensor_live(); }
