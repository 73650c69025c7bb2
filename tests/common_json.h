/* common_json.h - reads JSON into a tree, for the suites that look at what the library writes. */
#ifndef TESTS_COMMON_JSON_H
#define TESTS_COMMON_JSON_H

#include <stddef.h>

typedef struct Json {
    char type;     /* 'n' number, 's' string, 'b' true or false, '0' null, '[' or '{' */
    double number; /* also of "NaN", "Infinity" and "-Infinity", and 1 for true */
    char *text, *key;
    struct Json *child, *next;
} Json;

/* Fails the test if the text is not one JSON value. Free it with json_free. */
Json *json_read(const char *text);
void json_free(Json *value);
/* The test fails if it is not there. */
const Json *json_at(const Json *array, size_t i);
const Json *json_get(const Json *object, const char *key);
const Json *json_find(const Json *object, const char *key); /* NULL if it is not there */
size_t json_count(const Json *value);

#endif
