/* parse.c - a parser for headers, from left to right: the part of JSON and of Python's literals
 * that headers use. Nothing here recurses: the callers decide what may be nested in what. */
#include "file.h"

#include <stdlib.h>
#include <string.h>

bool tensor_text_read(Text *text, const File *file, int64_t at, int64_t size) {
    if (size > file->size - at)
        return tensor_file_fail(file, "its header of %lld byte%s goes beyond its end",
                                (long long)size, size == 1 ? "" : "s");
    char *start =
        malloc((size_t)size +
               (size == 0)); /* the exact size, so that sanitizers see a read beyond the end */
    if (!start) return tensor_file_fail(file, "out of memory for its header");
    *text = (Text){file, start, start, start + size, text->python};
    return tensor_file_read(file, at, start, size);
}

bool tensor_text_fail(const Text *text, const char *what) {
    return tensor_file_fail(text->file, "byte %lld of the header should be %s",
                            (long long)(text->at - text->start), what);
}

static void skip_space(Text *text) {
    while (text->at < text->end && *text->at && strchr(" \t\n\r", *text->at)) text->at++;
}

bool tensor_text_take(Text *text, const char *token) {
    const size_t length = strlen(token);
    skip_space(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, token, length) != 0)
        return false;
    text->at += length;
    return true;
}

static bool expect(Text *text, const char *token) {
    char what[16];
    snprintf(what, sizeof what, "'%s'", token);
    return tensor_text_take(text, token) || tensor_text_fail(text, what);
}

bool tensor_text_end(Text *text) {
    skip_space(text);
    return text->at == text->end || tensor_text_fail(text, "its end");
}

static bool take_whole(Text *text, int64_t *number) {
    skip_space(text);
    char *first = text->at;
    bool fits = true;
    for (*number = 0; fits && text->at < text->end && *text->at >= '0' && *text->at <= '9';)
        fits = !__builtin_mul_overflow(*number, 10, number) &&
               !__builtin_add_overflow(*number, *text->at++ - '0', number);
    const int64_t digits = text->at - first;
    if (fits && digits > 0 && (*first != '0' || digits == 1)) return true;
    text->at = first;
    return tensor_text_fail(text, "a whole number from 0 to 2^63 - 1");
}

/* ---- strings --------------------------------------------------------------------------------- */

size_t tensor_utf8_bytes(const char *text, size_t size) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800,
                                     0x10000}; /* the smallest code of a length */
    const unsigned char *s = (const unsigned char *)text;
    if (size == 0) return 0;
    const int ones = __builtin_clz(~((uint32_t)*s << 24)); /* leading ones: 0, or the length */
    const size_t length = ones ? (size_t)ones : 1;
    if (ones == 1 || ones > 4 || length > size) return 0;
    uint32_t code = *s & 0xffu >> (ones + 1);
    for (size_t k = 1; k < length; k++) {
        if (s[k] >> 6 != 2) return 0;
        code = code << 6 | (s[k] & 0x3f);
    }
    const bool surrogate = code >> 11 == 0x1b;
    return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

bool tensor_is_utf8(const char *text, size_t size) {
    size_t at = 0, bytes = 1;
    for (; at < size && bytes > 0; at += bytes) bytes = tensor_utf8_bytes(text + at, size - at);
    return bytes > 0;
}

/* uXXXX */
static bool take_code(Text *text, uint32_t *code) {
    char digits[5] = "";
    if (text->end - text->at >= 5 && *text->at == 'u') memcpy(digits, text->at + 1, 4);
    const bool ok = strspn(digits, "0123456789abcdefABCDEF") == 4;
    *code = (uint32_t)strtoul(digits, NULL, 16);
    text->at += ok ? 5 : 0;
    return ok;
}

static char *append_utf8(char *to, uint32_t code) {
    const int more = (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
    static const uint32_t first[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(first[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *to++ = (char)(0x80 | (code >> 6 * i & 0x3f));
    return to;
}

/* Reads the rest of an escape after the backslash. A character c above 0xffff is written as two
 * escapes, a pair of surrogates: 0xd800 + the high ten bits of c - 0x10000, and 0xdc00 + the low
 * ten bits. */
static bool take_escape(Text *text, char **to) {
    static const char letter[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    const bool some = text->at < text->end && *text->at;
    const char *simple = some ? strchr(letter, *text->at) : NULL;
    uint32_t code = simple ? (uint32_t)plain[simple - letter] : 0, low = 0;
    if (simple) text->at++;
    bool ok = simple || (take_code(text, &code) && code != 0 && code >> 10 != 0x37);
    if (ok && code >> 10 == 0x36) {
        ok = text->at < text->end && *text->at++ == '\\' && take_code(text, &low) &&
             low >> 10 == 0x37;
        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
    }
    if (ok) *to = append_utf8(*to, code);
    return ok || tensor_text_fail(text, "an escape that means a character");
}

bool tensor_text_string(Text *text, const char **string) {
    const char quote = text->python && tensor_text_take(text, "'") ? '\'' : '"';
    if (quote == '"' && !tensor_text_take(text, "\"")) return tensor_text_fail(text, "a string");
    char *to = text->at; /* the string is unescaped in place, which makes it shorter */
    *string = to;
    while (text->at < text->end && *text->at != quote) {
        if ((unsigned char)*text->at < ' ') return tensor_text_fail(text, "escaped");
        const char c = *text->at++;
        if (c != '\\') *to++ = c;
        else if (!take_escape(text, &to)) return false;
    }
    if (text->at == text->end) return tensor_text_fail(text, "the end of a string");
    text->at++;
    *to = '\0';
    return true;
}

/* ---- lists and objects ----------------------------------------------------------------------- */

/* Is there an item after the first n items? Takes the bracket or the comma before this item. */
static bool text_item(Text *text, const char *open, const char *close, int n) {
    if (tensor_pending()) return false;
    const bool more = n ? tensor_text_take(text, ",") : expect(text, open);
    if (more) return !((n == 0 || text->python) && tensor_text_take(text, close));
    if (n == 1 && *close == ')') return expect(text, ","); /* (3) is no tuple */
    if (n > 0) expect(text, close);
    return false;
}

bool tensor_text_list(Text *text, Shape *list) {
    const char *open = text->python ? "(" : "[";
    const char *close = text->python ? ")" : "]";
    for (*list = SCALAR; text_item(text, open, close, list->ndim);) {
        if (list->ndim == TENSOR_MAX_DIMS)
            return tensor_file_fail(text->file, "there may be 0 to %d dimensions", TENSOR_MAX_DIMS);
        take_whole(text, &list->dim[list->ndim++]);
        if (text->python) tensor_text_take(text, "L"); /* a long of Python 2 */
    }
    return !tensor_pending();
}

static bool take_key(Text *text, const char **key) {
    return tensor_text_string(text, key) && expect(text, ":");
}

bool tensor_text_object(Text *text, TakeValue *take, void *context) {
    for (int n = 0; text_item(text, "{", "}", n); n++) {
        const char *key = NULL;
        if (!take_key(text, &key) || !take(text, key, context)) return false;
    }
    return !tensor_pending();
}

/* ---- values that nobody needs ---------------------------------------------------------------- */

/* Takes one of these characters, if it comes next, without white space before it. */
static bool take_one(Text *text, const char *of) {
    const bool next = text->at < text->end && *text->at && strchr(of, *text->at);
    text->at += next;
    return next;
}

static bool take_digits(Text *text) {
    const char *first = text->at;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') text->at++;
    return text->at > first;
}

/* -1.5e+3 */
static bool skip_number(Text *text) {
    skip_space(text);
    take_one(text, "-");
    bool ok = take_one(text, "0") || take_digits(text);
    if (ok && take_one(text, ".")) ok = take_digits(text);
    if (ok && take_one(text, "eE")) {
        take_one(text, "+-");
        ok = take_digits(text);
    }
    return ok;
}

static bool skip_scalar(Text *text) {
    const char *string;
    skip_space(text);
    if (text->at < text->end && *text->at == '"') return tensor_text_string(text, &string);
    return tensor_text_take(text, "null") || tensor_text_take(text, "true") ||
           tensor_text_take(text, "false") || skip_number(text) ||
           tensor_text_fail(text, "a value of JSON");
}

/* A value may contain values, so `close` holds the bracket that ends each list and each object
 * around the next value. */
bool tensor_text_skip(Text *text) {
    enum { DEPTH_MAX = 125 }; /* serde_json has 128 in all, and the value is in an entry */
    char close[DEPTH_MAX][2] = {""};
    int depth = 0;
    for (;;) {
        const char *key;
        if (depth > 0 && *close[depth - 1] == '}' && !take_key(text, &key)) return false;
        const bool list = tensor_text_take(text, "["),
                   object = !list && tensor_text_take(text, "{");
        if ((list || object) && depth == DEPTH_MAX)
            return tensor_text_fail(text, "in at most 125 brackets");
        if (list || object) *close[depth++] = list ? ']' : '}';
        else if (!skip_scalar(text)) return false;
        skip_space(text);
        const bool empty = depth > 0 && text->at < text->end && *text->at == *close[depth - 1];
        if ((list || object) && !empty) continue;
        while (depth > 0 && tensor_text_take(text, close[depth - 1])) depth--;
        if (depth == 0) return true;
        if (!expect(text, ",")) return false;
    }
}
