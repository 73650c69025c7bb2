/* settings.h - what a reader can choose in a lesson: sizes, a seed, switches.
 *
 * Each setting is a row of one table. The table gives the flags that a lesson refuses, the command
 * of a lesson, the controls of the page, and the reading of "heads 3". */
#ifndef TAPEHEAD_EXAMPLES_SETTINGS_H
#define TAPEHEAD_EXAMPLES_SETTINGS_H

#include "../../../nn/nn.h"

enum { LESSONS = 6, LESSON_STEPS = 200, LESSON_FORMULAS = 12 };

/* Element index, row-major, of the leaf with this name becomes value. */
typedef struct {
    const char *name;
    int64_t index;
    double value;
} LessonEdit;

/* The flags that choose another example. A 0 means the lesson's own number; a dropout below 0 and
 * LESSON_SEED mean the same. */
#define LESSON_SEED UINT64_MAX
typedef struct LessonOptions {
    int64_t heads, queries, keys, tokens, size;
    int64_t step; /* of SGD, taken before the tape that is shown */
    double dropout;
    double rate; /* of SGD; 0: the lesson's own */
    uint64_t seed;
    signed char causal; /* 1: yes, -1: no, 0: the lesson's own; in use, 1 or 0 */
    bool no_scale, no_mask, lengths, window, pad_in_loss, additive;
    bool train;        /* the JSON has the losses of LESSON_STEPS steps of SGD, too */
    bool only_tape;    /* a lesson that shows the losses of training leaves them out */
    const char *rule;  /* a known mistake (wrong.h), or NULL */
    const char *words; /* of the tokens, between blanks (words.h); NULL: the lesson's own */
    char part;         /* 'b': the second half of lesson 3, and 'a' the first; 0: both */
    const char *formulas[LESSON_FORMULAS]; /* rules, "A: y * dy" (rule_plant.h), the caller's */
    int num_formulas;
    bool any_lesson; /* formulas that do not fit are left out: another lesson may take them */
    int card; /* one more than the look of rule_card.h for which the lesson is opened; 0: none */
    const LessonEdit *edits; /* num_edits, the caller's; lesson_open alone reads them */
    int num_edits;
    /* experiments_as_json, or NULL: the lesson has no experiments. The module of the page has none
     * of their code, which would be 8 KB of each page. */
    char *(*experiments)(int number, char part, struct LessonOptions options);
} LessonOptions;
#define LESSON_OPTIONS ((LessonOptions){.dropout = -1, .seed = LESSON_SEED})

/* Sets the option with this key, "heads" or "no-scale", to a number that is written as text,
 * "train" too; "rule" to a known mistake, "" for none; "words" to this text, which stays
 * the caller's. "rule" with a value that has a colon, and "formula", add a formula, which stays the
 * caller's. False and an error if there is no such setting, or if the value is not allowed. */
bool lesson_set(LessonOptions *options, const char *key, const char *value);

/* Reads the value of this key: a number from least to most, and an integer if whole is true. False
 * and an error if the value is not such a number. */
#define MOST_SEED 9007199254740991.0 /* JavaScript's largest integer */
bool setting_number(const char *key, const char *value, bool whole, double least, double most,
                    double *number);

/* Calls take for each line of text, "key value". Stops and returns false if take returns false, or,
 * with an error, if a line has no value. Empty lines are skipped. The text is overwritten; the
 * strings that take gets are parts of the text. */
typedef bool TakeSetting(void *context, const char *key, const char *value);
bool settings_read(char *text, TakeSetting *take, void *context);

/* Reads "12 -0.5 W_q": index, value, name. The name stays in the text. False and an error if the
 * text has another form. */
bool lesson_read_edit(LessonEdit *edit, const char *text);

/* The flag among the given ones that this lesson does not take: "--heads"; NULL if there is none.
 * Lesson 0 stands for all lessons, and takes every flag; LESSONS + 1 stands for no lesson, and
 * takes no flag. */
const char *lesson_refuses(int number, const LessonOptions *options);

/* The options, and the lesson's own where none is given. */
LessonOptions lesson_or_own(LessonOptions options, LessonOptions own);

/* Writes ,"command":"build/explain --lesson 5 --heads 2": given are the options of the caller. */
void settings_write_command(FILE *file, int number, const LessonOptions *given);
/* Writes ,"settings":[{"key":"heads","kind":"integer","value":3,"least":1,"most":9}, ...]: the
 * settings that this lesson takes, but not the words, with the values in use and their limits. */
void settings_write(FILE *file, int number, const LessonOptions *used);

/* An error, "lesson 4: 64 tokens are too many here: at most 12", if a size is above its limit. */
bool settings_check_sizes(int number, const LessonOptions *used);

#endif
