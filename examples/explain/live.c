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

static bool read_lesson_number(const char *value, int *number) {
    const bool is_digit = *value > '0' && *value <= '0' + LESSONS && !value[1];
    if (is_digit) *number = *value - '0';
    else tensor_fail("lesson is \"%s\": it must be an integer from 1 to %d", value, LESSONS);
    return is_digit;
}

static bool read_line(char *line, int *number, LessonOptions *options) {
    char *space = strchr(line, ' ');
    if (!space) return tensor_fail("\"%s\" has no value", line);
    *space = '\0';
    if (strcmp(line, "lesson") == 0) return read_lesson_number(space + 1, number);
    return lesson_set(options, line, space + 1);
}

static bool read_request(char *line, int *number, LessonOptions *options) {
    while (*line) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        if (*line && !read_line(line, number, options)) return false;
        line = next;
    }
    if (*number == 0) return tensor_fail("the request names no lesson");
    const char *refused = lesson_refuses(*number, options);
    if (refused) tensor_fail("lesson %d takes no %s", *number, refused + strlen("--"));
    return !refused;
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
    LessonOptions options = LESSON_OPTIONS;
    int number = 0;
    free(answer);
    tensor_clear_error();
    tensor_set_default_dtype(F32);
    answer = NULL;
    if (request && strncmp(request, "play ", 5) == 0) answer = play_answer(request + 5);
    else if (read_request(request ? request : "", &number, &options))
        answer = lessons_as_json(number, number, options);
    if (tensor_error()) {
        free(answer);
        answer = error_as_json();
    }
    return answer ? answer : "{\"error\":\"out of memory\"}";
}

int live_tensors(void) { return (int)tensor_live(); }
