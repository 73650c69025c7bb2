/* settings.c - what a reader can choose in a lesson: see settings.h. */
#include "settings.h"

#include "../page/json.h"
#include "../rules/wrong.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    INTEGER, /* int64_t */
    SEED,    /* uint64_t */
    NUMBER,  /* double */
    SWITCH,  /* bool */
    CHOICE,  /* signed char: 1, -1, or 0 for the lesson's own */
    REQUEST, /* bool; it changes no tape, and the page has no control for it */
    RULE,    /* const char * */
    WORDS,   /* const char *; the page has another field for them */
    FORMULAS /* const char *[], of which there are num_formulas */
} Kind;

typedef struct {
    const char *key, *flag;
    const char *lessons; /* the numbers of the lessons that take it; "3a": not lesson 3b */
    Kind kind;
    signed char sizes[4]; /* the largest in each of these lessons; 0: `most`, in all */
    size_t offset;        /* in LessonOptions */
    double least, most;
} Setting;

#define FIELD(name) offsetof(LessonOptions, name)
#define SIZE(key, lessons, name, ...)                                                              \
    { key, "--" key, lessons, INTEGER, {__VA_ARGS__}, FIELD(name), 1, 64 }
#define ON_OFF(key, lessons, name)                                                                 \
    { key, "--" key, lessons, SWITCH, {0}, FIELD(name), 0, 1 }

/* With all of its numbers at their largest a lesson is below 1 MB of JSON. */
static const Setting settings[] = {
    SIZE("heads", "5", heads, 4),
    SIZE("queries", "123", queries, 24, 16, 16),
    SIZE("keys", "123", keys, 24, 16, 16),
    SIZE("tokens", "456", tokens, 12, 12, 20),
    SIZE("size", "2345", size, 16, 16, 6, 4),
    {"step", "--step", "123456", INTEGER, {0}, FIELD(step), 0, LESSON_STEPS},
    {"rate", "--rate", "123456", NUMBER, {0}, FIELD(rate), 1e-4, 10},
    {"dropout", "--dropout", "45", NUMBER, {0}, FIELD(dropout), 0, 0.9},
    {"seed", "--seed", "123456", SEED, {0}, FIELD(seed), 0, MOST_SEED},
    {"causal", "--causal", "345", CHOICE, {0}, FIELD(causal), 0, 1},
    ON_OFF("no-scale", "2345", no_scale),
    ON_OFF("no-mask", "3", no_mask),
    ON_OFF("lengths", "3", lengths),
    ON_OFF("window", "3", window),
    ON_OFF("pad-in-loss", "3a", pad_in_loss),
    ON_OFF("additive", "6", additive),
    {"train", "--train", "123456", REQUEST, {0}, FIELD(train), 0, 1},
    {"words", "--words", "23456", WORDS, {0}, FIELD(words), 0, 0},
    {"rule", "--break", "123456", RULE, {0}, FIELD(rule), 0, 0},
    {"formula", "--rule", "123456", FORMULAS, {0}, FIELD(formulas), 0, 0},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static bool takes(int number, char part, const Setting *s) {
    return strchr(s->lessons, '0' + number) && !(part == 'b' && strchr(s->lessons, 'a'));
}

static double most_of(const Setting *s, int number) {
    return *s->sizes ? s->sizes[strchr(s->lessons, '0' + number) - s->lessons] : s->most;
}

/* The field of the options. */
static void *field(const Setting *s, const LessonOptions *o) {
    return (void *)((uintptr_t)o + s->offset);
}

/* Is another value than the lesson's own given? */
static bool is_given(const Setting *s, const LessonOptions *o) {
    if (s->kind == INTEGER) return *(int64_t *)field(s, o) != 0;
    if (s->kind == SEED) return *(uint64_t *)field(s, o) != LESSON_SEED;
    if (s->kind == NUMBER) return *(double *)field(s, o) >= s->least;
    if (s->kind == CHOICE) return *(signed char *)field(s, o) != 0;
    if (s->kind == RULE || s->kind == WORDS) return *(const char **)field(s, o) != NULL;
    if (s->kind == FORMULAS) return o->num_formulas > 0;
    return *(bool *)field(s, o);
}

/* The flag that gives this value. */
static const char *flag_of(const Setting *s, const LessonOptions *o) {
    return s->kind == CHOICE && *(signed char *)field(s, o) < 0 ? "--no-causal" : s->flag;
}

const char *lesson_refuses(int number, const LessonOptions *options) {
    for (int i = 0; i < SETTINGS && number > 0; i++)
        if (is_given(&settings[i], options) && !takes(number, options->part, &settings[i]))
            return flag_of(&settings[i], options);
    return NULL;
}

LessonOptions lesson_or_own(LessonOptions o, LessonOptions own) {
    for (int i = 0; i < SETTINGS; i++) {
        const Setting *s = &settings[i];
        if (s->kind == CHOICE) {
            const int choice =
                is_given(s, &o) ? *(signed char *)field(s, &o) : *(signed char *)field(s, &own);
            *(signed char *)field(s, &o) = (signed char)(choice > 0);
        }
        if (is_given(s, &o)) continue;
        if (s->kind == INTEGER) *(int64_t *)field(s, &o) = *(int64_t *)field(s, &own);
        if (s->kind == SEED) *(uint64_t *)field(s, &o) = *(uint64_t *)field(s, &own);
        if (s->kind == NUMBER) *(double *)field(s, &o) = *(double *)field(s, &own);
    }
    return o;
}

static bool add_formula(LessonOptions *options, const char *formula) {
    if (options->num_formulas == LESSON_FORMULAS)
        return tensor_fail("at most %d rules can be planted", LESSON_FORMULAS);
    options->formulas[options->num_formulas++] = formula;
    return true;
}

static bool set_rule(LessonOptions *options, const char *key) {
    if (strchr(key, ':')) return add_formula(options, key);
    const MistakeRow *rule = wrong_find(key);
    if (!rule && *key) return tensor_fail("there is no rule \"%s\"", key);
    options->rule = rule ? wrong_key(rule) : NULL;
    return true;
}

bool setting_number(const char *key, const char *value, bool whole, double least, double most,
                    double *number) {
    char *rest;
    const double read = strtod(value, &rest);
    const bool is_number = rest != value && *rest == '\0';
    const bool fits = is_number && read >= least && read <= most;
    const char *kind = whole ? "an integer" : "a number";
    if (fits && !(whole && read != floor(read))) *number = read;
    else
        return tensor_fail("%s is \"%s\": it must be %s from %.16g to %.16g", key, value, kind,
                           least, most);
    return true;
}

bool lesson_set(LessonOptions *options, const char *key, const char *value) {
    const Setting *s = settings;
    const Setting *const end = settings + SETTINGS;
    double number = 0;
    while (s < end && strcmp(s->key, key) != 0) s++;
    if (s == end) return tensor_fail("there is no setting \"%s\"", key);
    if (s->kind == RULE) return set_rule(options, value);
    if (s->kind == FORMULAS) return add_formula(options, value);
    if (s->kind == WORDS) *(const char **)field(s, options) = value;
    if (s->kind == WORDS) return true;
    if (!setting_number(key, value, s->kind != NUMBER, s->least, s->most, &number)) return false;
    if (s->kind == INTEGER) *(int64_t *)field(s, options) = (int64_t)number;
    if (s->kind == SEED) *(uint64_t *)field(s, options) = (uint64_t)number;
    if (s->kind == NUMBER) *(double *)field(s, options) = number;
    if (s->kind == CHOICE) *(signed char *)field(s, options) = number != 0 ? 1 : -1;
    if (s->kind == SWITCH || s->kind == REQUEST) *(bool *)field(s, options) = number != 0;
    return true;
}

bool settings_read(char *text, TakeSetting *take, void *context) {
    while (*text) {
        char *next = text + strcspn(text, "\n");
        if (*next) *next++ = '\0';
        char *space = strchr(text, ' ');
        if (*text && !space) return tensor_fail("\"%s\" has no value", text);
        if (space) *space = '\0';
        if (space && !take(context, text, space + 1)) return false;
        text = next;
    }
    return true;
}

bool lesson_read_edit(LessonEdit *edit, const char *text) {
    char *end;
    char *name;
    errno = 0;
    edit->index = strtoll(text, &end, 10);
    const bool is_index = end != text && *end == ' ' && errno == 0;
    edit->value = strtod(end, &name);
    if (!is_index || name == end || *name != ' ' || !name[1])
        return tensor_fail("\"%s\" is no edit: it must be an index, a number and a name", text);
    edit->name = name + 1;
    return true;
}

/* The value as JSON, and as the argument of a flag; "" for a flag without an argument. */
static void print_value(char *text, size_t size, const Setting *s, const LessonOptions *o) {
    *text = '\0';
    if (s->kind == INTEGER) snprintf(text, size, "%" PRId64, *(int64_t *)field(s, o));
    if (s->kind == SEED) snprintf(text, size, "%" PRIu64, *(uint64_t *)field(s, o));
    if (s->kind == NUMBER) snprintf(text, size, "%g", *(double *)field(s, o));
    if (s->kind == RULE) snprintf(text, size, "%s", *(const char **)field(s, o));
}

/* " --words "the cat"", quoted for a shell. */
static char *add_quoted(char *to, const char *end, const char *flag, const char *text) {
    to += snprintf(to, (size_t)(end - to), " %s \"", flag);
    for (; *text && to + 4 < end; text++) {
        if (strchr("\"\\$`", *text)) *to++ = '\\';
        *to++ = *text;
    }
    return to + snprintf(to, (size_t)(end - to), "\"");
}

void settings_write_command(FILE *file, int number, const LessonOptions *given) {
    enum { COMMAND = 4096 };
    char text[COMMAND], value[32];
    const char *const end = text + COMMAND;
    char *to = text + snprintf(text, COMMAND, "build/explain --lesson %d", number);
    for (int i = 0; i < SETTINGS && end - to > 64; i++) {
        const Setting *s = &settings[i];
        if (!is_given(s, given) || !takes(number, given->part, s)) continue;
        if (s->kind == WORDS) to = add_quoted(to, end - 256, s->flag, given->words);
        for (int f = 0; s->kind == FORMULAS && f < given->num_formulas && end - to > 512; f++)
            to = add_quoted(to, end - 256, s->flag, given->formulas[f]);
        if (s->kind >= WORDS) continue;
        print_value(value, sizeof value, s, given);
        to += snprintf(to, (size_t)(end - to), " %s%s%s", flag_of(s, given), *value ? " " : "",
                       value);
    }
    json_write_member(file, "command", text);
}

void settings_write(FILE *file, int number, const LessonOptions *used) {
    static const char *const kinds[] = {"integer", "integer", "number", "switch", "switch"};
    const char *before = ",\n\"settings\":[";
    char value[32];
    for (int i = 0; i < SETTINGS; i++) {
        const Setting *s = &settings[i];
        if (!takes(number, used->part, s) || s->kind > CHOICE) continue;
        print_value(value, sizeof value, s, used);
        if (s->kind == SWITCH) strcpy(value, *(bool *)field(s, used) ? "true" : "false");
        if (s->kind == CHOICE) strcpy(value, *(signed char *)field(s, used) > 0 ? "true" : "false");
        fprintf(file, "%s{\"key\":\"%s\",\"kind\":\"%s\",\"value\":%s", before, s->key,
                kinds[s->kind], value);
        if (s->kind < SWITCH)
            fprintf(file, ",\"least\":%.16g,\"most\":%.16g", s->least, most_of(s, number));
        putc('}', file);
        before = ",\n ";
    }
    putc(']', file);
}

bool settings_check_sizes(int number, const LessonOptions *used) {
    for (int i = 0; i < SETTINGS; i++) {
        const Setting *s = &settings[i];
        if (!takes(number, used->part, s) || !*s->sizes) continue;
        const int value = (int)*(int64_t *)field(s, used), most = (int)most_of(s, number);
        if (value <= most) continue;
        if (strcmp(s->key, "size") == 0)
            return tensor_fail("lesson %d: size %d is too large here: at most %d", number, value,
                               most);
        return tensor_fail("lesson %d: %d %s are too many here: at most %d", number, value, s->key,
                           most);
    }
    return true;
}
