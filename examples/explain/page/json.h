/* json.h - reads JSON into a tree, and writes its strings. */
#ifndef TAPEHEAD_EXAMPLES_JSON_H
#define TAPEHEAD_EXAMPLES_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } JsonKind;

typedef struct Json {
    JsonKind kind;
    const char *key;           /* inside an object; NULL elsewhere */
    const char *text;          /* JSON_STRING: without the quotes and escapes; JSON_NUMBER: from its
                                * first digit on */
    double number;             /* JSON_NUMBER; JSON_BOOL: 0 or 1 */
    int64_t count;             /* JSON_ARRAY, JSON_OBJECT: of the items */
    struct Json *first, *next; /* the first item; the next item of the same parent */
} Json;

/* Reads the text, which it overwrites: the strings of the tree stay there. The tree is one block:
 * free(tree). NULL and an error, "line 3: ...", if the text is not JSON in UTF-8. */
Json *json_read(char *text);

/* The item of an object with this key, item i of an array; NULL if there is none, or if the value
 * is NULL or of another kind. */
const Json *json_get(const Json *object, const char *key);
const Json *json_at(const Json *array, int64_t i);
/* The first item of the array with this key; the others are its next, and so on. */
const Json *json_first(const Json *object, const char *key);
/* The text, or the number within an int, of the item with this key; otherwise if there is none. */
const char *json_text(const Json *object, const char *key, const char *otherwise);
int64_t json_integer(const Json *object, const char *key, int64_t otherwise);
/* A number, or "NaN", "Infinity", "-Infinity". */
double json_number(const Json *value);

/* Digits of a fraction in a page: they are right, and no noise: 0.3, not 0.30000000000000004. */
enum { JSON_DIGITS = 15 };
/* Writes a value as it was read, but fractions with these digits, and without the items of objects
 * that are left out. */
typedef bool JsonLeavesOut(const Json *object, const Json *item, const void *context);
void json_write(FILE *file, const Json *value, JsonLeavesOut *out, const void *context);
/* Writes "text" with its quotes and escapes. A byte that is no UTF-8 becomes U+FFFD. */
void json_write_string(FILE *file, const char *text);
/* Writes the lines, which end with a NULL, as one string. */
void json_write_lines(FILE *file, const char *const *lines);
/* Writes ,"key":"text" */
void json_write_member(FILE *file, const char *key, const char *text);
/* Writes ["a","b"]: at most so many strings, and none after a NULL. */
void json_write_strings(FILE *file, const char *const *strings, int most);
/* The same of n strings in arrays of `size` bytes. */
void json_write_texts(FILE *file, const char *texts, size_t size, int n);
/* Writes a number with so many digits; what is not finite as the strings that json_number reads. */
void json_write_number(FILE *file, double x, int digits);
/* Writes [1,0.5] */
void json_write_numbers(FILE *file, const double *numbers, int64_t n, int digits);

#endif
