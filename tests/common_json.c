/* common_json.c - a small reader of JSON. It knows no Unicode escapes but those below 0x80. */
#include "common_json.h"

#include <check.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void skip(const char **at) { *at += strspn(*at, " \t\r\n"); }

static bool take(const char **at, const char *token) {
    const size_t n = strlen(token);
    skip(at);
    if (strncmp(*at, token, n)) return false;
    *at += n;
    return true;
}

static char *read_string(const char **at) {
    char *text = calloc(1, strlen(*at) + 1);
    size_t n = 0;
    ck_assert(take(at, "\""));
    for (; **at != '"'; ++*at) {
        ck_assert_msg((unsigned char)**at >= ' ', "a string ends in the middle, or is not escaped");
        if (**at != '\\') {
            text[n++] = **at;
            continue;
        }
        ++*at;
        if (**at == 'u') {
            char digits[5] = {(*at)[1], (*at)[2], (*at)[3], (*at)[4]};
            text[n++] = (char)strtol(digits, NULL, 16);
            *at += 4;
        } else {
            static const char letter[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
            const char *escape = strchr(letter, **at);
            ck_assert(escape != NULL);
            text[n++] = plain[escape - letter];
        }
    }
    ++*at;
    return text;
}

static Json *read_value(const char **at);

static void read_items(const char **at, Json *value) {
    const char *close = value->type == '[' ? "]" : "}";
    Json **last = &value->child;
    if (take(at, close)) return;
    do {
        char *key = value->type == '{' ? read_string(at) : NULL;
        if (key) ck_assert(take(at, ":"));
        *last = read_value(at);
        (*last)->key = key;
        last = &(*last)->next;
        skip(at);
    } while (take(at, ","));
    ck_assert_msg(take(at, close), "no %s at %.20s", close, *at);
}

static Json *read_value(const char **at) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    Json *value = calloc(1, sizeof *value);
    skip(at);
    value->type = **at;
    if (take(at, "[") || take(at, "{")) read_items(at, value);
    else if (**at == '"') {
        value->type = 's';
        value->text = read_string(at);
        for (int i = 0; i < 3; i++)
            if (!strcmp(value->text, words[i])) value->number = strtod(value->text, NULL);
    } else if (take(at, "null")) value->type = '0';
    else if (take(at, "true") || take(at, "false")) {
        value->number = value->type == 't';
        value->type = 'b';
    } else {
        char *end;
        value->number = strtod(*at, &end);
        ck_assert_msg(end > *at && (isdigit((unsigned char)**at) || **at == '-'),
                      "no value at %.20s", *at);
        value->type = 'n';
        *at = end;
    }
    return value;
}

Json *json_read(const char *text) {
    Json *value = read_value(&text);
    skip(&text);
    ck_assert_msg(!*text, "more after the value: %.20s", text);
    return value;
}

void json_free(Json *value) {
    while (value) {
        Json *next = value->next;
        json_free(value->child);
        free(value->text);
        free(value->key);
        free(value);
        value = next;
    }
}

const Json *json_at(const Json *array, size_t i) {
    const Json *item = array->child;
    while (item && i-- > 0) item = item->next;
    ck_assert(item != NULL);
    return item;
}

const Json *json_find(const Json *object, const char *key) {
    const Json *item = object->child;
    while (item && strcmp(item->key, key)) item = item->next;
    return item;
}

const Json *json_get(const Json *object, const char *key) {
    const Json *item = json_find(object, key);
    ck_assert_msg(item != NULL, "there is no \"%s\"", key);
    return item;
}

size_t json_count(const Json *value) {
    size_t n = 0;
    for (const Json *item = value->child; item; item = item->next) n++;
    return n;
}
