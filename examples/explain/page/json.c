/* json.c - reads JSON into a tree, and writes its strings: see json.h.
 *
 * Each value but the outermost follows a comma or an opening bracket (in an object its key stands
 * between), so the number of commas and opening brackets bounds the number of values, and the whole
 * tree is one allocation. */
#include "json.h"

#include "../../../tensor/tensor.h"
#include "../../common/utf8.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32 };

typedef struct {
    char *at;   /* the next character */
    Json *free; /* the next node of the block */
    int line, depth;
} Reader;

static bool fail(const Reader *r, const char *what) {
    tensor_fail("line %d: %s", r->line, what);
    return false;
}

/* A line ends only between values: a string has no line end in it. */
static void skip_blanks(Reader *r) {
    for (; *r->at && strchr(" \t\r\n", *r->at); r->at++) r->line += *r->at == '\n';
}

static bool take(Reader *r, char wanted) {
    skip_blanks(r);
    const bool found = *r->at == wanted;
    r->at += found;
    return found;
}

/* \uXXXX as UTF-8; a surrogate becomes a question mark. NULL if these are not four hex digits. */
static char *read_unicode(const char *digits, char *out) {
    unsigned code = 0;
    if (strspn(digits, "0123456789abcdefABCDEF") < 4) return NULL;
    char four[5] = {digits[0], digits[1], digits[2], digits[3], '\0'};
    code = (unsigned)strtoul(four, NULL, 16);
    if (code == 0 || (code >= 0xD800 && code < 0xE000)) code = '?';
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
    } else {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    }
    *out++ = (char)(0x80 | (code & 0x3F));
    return out;
}

/* The string after its first quote: decoded in place, since no escape is shorter than its bytes in
 * UTF-8. NULL on error. */
static const char *read_string(Reader *r) {
    static const char escapes[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    char *const start = r->at;
    char *out = r->at;
    while (*r->at != '"') {
        const char *escape = NULL;
        if ((unsigned char)*r->at < ' ') {
            fail(r, "a string does not end");
            return NULL;
        }
        if (*r->at != '\\') {
            *out++ = *r->at++;
            continue;
        }
        if (r->at[1]) escape = strchr(escapes, r->at[1]);
        if (escape) *out++ = meant[escape - escapes];
        char *after = !escape && r->at[1] == 'u' ? read_unicode(r->at + 2, out) : NULL;
        if (!escape && !after) {
            fail(r, "a string has an unknown escape");
            return NULL;
        }
        out = escape ? out : after;
        r->at += escape ? 2 : 6;
    }
    *out = '\0';
    r->at++;
    return start;
}

static bool read_number(Reader *r, Json *value) {
    char *end = r->at;
    if (strchr("-0123456789", *r->at)) value->number = strtod(r->at, &end);
    if (end == r->at || end[-1] == '.' || !isfinite(value->number))
        return fail(r, "a value was expected here");
    value->kind = JSON_NUMBER;
    value->text = r->at;
    r->at = end;
    return true;
}

static bool read_word(Reader *r, Json *value, const char *word, JsonKind kind, double number) {
    if (strncmp(r->at, word, strlen(word)) != 0) return false;
    r->at += strlen(word);
    value->kind = kind;
    value->number = number;
    return true;
}

static bool read_value(Reader *r, Json *value);

/* The items after the opening bracket. */
static bool read_items(Reader *r, Json *parent, char end) {
    Json **place = &parent->first;
    if (take(r, end)) return true;
    if (++r->depth > MAX_DEPTH) return fail(r, "too many brackets inside each other");
    do {
        Json *item = r->free++;
        *item = (Json){.kind = JSON_NULL};
        if (end == '}') {
            if (!take(r, '"')) return fail(r, "a name in quotes was expected here");
            item->key = read_string(r);
            if (!item->key) return false;
            if (!take(r, ':')) return fail(r, "a colon was expected here");
        }
        if (!read_value(r, item)) return false;
        *place = item;
        place = &item->next;
        parent->count++;
    } while (take(r, ','));
    r->depth--;
    if (take(r, end)) return true;
    return fail(r,
                end == '}' ? "a comma or } was expected here" : "a comma or ] was expected here");
}

static bool read_value(Reader *r, Json *value) {
    skip_blanks(r);
    if (take(r, '{')) {
        value->kind = JSON_OBJECT;
        return read_items(r, value, '}');
    }
    if (take(r, '[')) {
        value->kind = JSON_ARRAY;
        return read_items(r, value, ']');
    }
    if (take(r, '"')) {
        value->kind = JSON_STRING;
        value->text = read_string(r);
        return value->text != NULL;
    }
    if (read_word(r, value, "null", JSON_NULL, 0)) return true;
    if (read_word(r, value, "true", JSON_BOOL, 1)) return true;
    if (read_word(r, value, "false", JSON_BOOL, 0)) return true;
    return read_number(r, value);
}

Json *json_read(char *text) {
    size_t values = 2; /* the outermost one, and a spare one */
    if (tensor_error()) return NULL;
    int bytes;
    for (const char *c = text; *c; c += bytes) {
        bytes = utf8_bytes(c);
        if (bytes == 0) return tensor_fail("the text is not UTF-8");
        values += *c == ',' || *c == '[' || *c == '{';
    }
    Json *tree = malloc(values * sizeof *tree);
    if (!tree) return tensor_fail("out of memory for %zu values of JSON", values);
    Reader r = {.at = text, .free = tree + 1, .line = 1};
    *tree = (Json){.kind = JSON_NULL};
    if (read_value(&r, tree)) {
        skip_blanks(&r);
        if (*r.at) fail(&r, "the text goes on after its end");
    }
    if (!tensor_error()) return tree;
    free(tree);
    return NULL;
}

const Json *json_get(const Json *object, const char *key) {
    const Json *item = object && object->kind == JSON_OBJECT ? object->first : NULL;
    while (item && strcmp(item->key, key) != 0) item = item->next;
    return item;
}

const Json *json_at(const Json *array, int64_t i) {
    const Json *item = array && array->kind == JSON_ARRAY ? array->first : NULL;
    while (item && i-- > 0) item = item->next;
    return item;
}

const Json *json_first(const Json *object, const char *key) {
    return json_at(json_get(object, key), 0);
}

const char *json_text(const Json *object, const char *key, const char *otherwise) {
    const Json *item = json_get(object, key);
    return item && item->kind == JSON_STRING ? item->text : otherwise;
}

int64_t json_integer(const Json *object, const char *key, int64_t otherwise) {
    const Json *item = json_get(object, key);
    const bool fits = item && item->kind == JSON_NUMBER && fabs(item->number) <= INT_MAX;
    return fits ? (int64_t)item->number : otherwise;
}

double json_number(const Json *value) {
    if (!value || value->kind == JSON_NULL) return (double)NAN;
    if (value->kind != JSON_STRING) return value->number;
    if (strcmp(value->text, "Infinity") == 0) return (double)INFINITY;
    return strcmp(value->text, "-Infinity") == 0 ? -(double)INFINITY : (double)NAN;
}

static void write_characters(FILE *file, const char *text) {
    while (*text) {
        const unsigned char c = (unsigned char)*text;
        const int bytes = utf8_bytes(text);
        if (bytes == 0) fputs("\\ufffd", file);
        else if (c < ' ') fprintf(file, "\\u%04x", c);
        else if (c == '"' || c == '\\') fprintf(file, "\\%c", c);
        else fwrite(text, 1, (size_t)bytes, file);
        text += bytes ? bytes : 1;
    }
}

void json_write_string(FILE *file, const char *text) {
    putc('"', file);
    write_characters(file, text);
    putc('"', file);
}

void json_write_lines(FILE *file, const char *const *lines) {
    putc('"', file);
    for (int i = 0; lines[i]; i++) {
        if (i) fputs("\\n", file);
        write_characters(file, lines[i]);
    }
    putc('"', file);
}

void json_write_member(FILE *file, const char *key, const char *text) {
    fprintf(file, ",\n\"%s\":", key);
    json_write_string(file, text);
}

void json_write_strings(FILE *file, const char *const *strings, int most) {
    putc('[', file);
    for (int i = 0; i < most && strings[i]; i++) {
        if (i) putc(',', file);
        json_write_string(file, strings[i]);
    }
    putc(']', file);
}

void json_write_texts(FILE *file, const char *texts, size_t size, int n) {
    putc('[', file);
    for (int i = 0; i < n; i++) {
        if (i) putc(',', file);
        json_write_string(file, texts + (size_t)i * size);
    }
    putc(']', file);
}

void json_write_number(FILE *file, double x, int digits) {
    if (isnan(x)) fputs("\"NaN\"", file);
    else if (isinf(x)) fputs(x < 0 ? "\"-Infinity\"" : "\"Infinity\"", file);
    else fprintf(file, "%.*g", digits, x);
}

void json_write_numbers(FILE *file, const double *numbers, int64_t n, int digits) {
    putc('[', file);
    for (int64_t i = 0; i < n; i++) {
        if (i) putc(',', file);
        json_write_number(file, numbers[i], digits);
    }
    putc(']', file);
}

static void write_as_read(FILE *file, const Json *value) {
    const int length = (int)strcspn(value->text, ",]} \t\r\n");
    if (memchr(value->text, '.', (size_t)length))
        json_write_number(file, value->number, JSON_DIGITS);
    else fprintf(file, "%.*s", length, value->text);
}

void json_write(FILE *file, const Json *value, JsonLeavesOut *out, const void *context) {
    const bool is_object = value->kind == JSON_OBJECT;
    const char *before = "";
    switch (value->kind) {
    case JSON_NULL: fputs("null", file); return;
    case JSON_BOOL: fputs(value->number != 0 ? "true" : "false", file); return;
    case JSON_NUMBER: write_as_read(file, value); return;
    case JSON_STRING: json_write_string(file, value->text); return;
    default: break;
    }
    putc(is_object ? '{' : '[', file);
    for (const Json *item = value->first; item; item = item->next) {
        if (is_object && out(value, item, context)) continue;
        fputs(before, file);
        before = ",";
        if (is_object) json_write_string(file, item->key);
        if (is_object) putc(':', file);
        json_write(file, item, out, context);
    }
    putc(is_object ? '}' : ']', file);
}
