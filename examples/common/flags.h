/* flags.h - command-line flags from one table per program.
 *
 * A program keeps its options in ordinary variables, which hold the defaults, and describes each
 * option in one row. Parsing, checks and --help use the rows.
 */
#ifndef TAPEHEAD_EXAMPLES_FLAGS_H
#define TAPEHEAD_EXAMPLES_FLAGS_H

typedef enum {
    FLAG_TEXT,    /* const char **: a file, a name */
    FLAG_TEXTS,   /* FlagTexts *: a text each time that the flag is given */
    FLAG_OUTPUT,  /* const char **: a file to write. No other flag may name the same file, except
                     --load and --save */
    FLAG_CHOICE,  /* const char **: one of the words of argument, "dot|additive" */
    FLAG_INTEGER, /* int64_t * */
    FLAG_SEED,    /* uint64_t * */
    FLAG_NUMBER,  /* double *, always finite */
    FLAG_SWITCH   /* bool *: true if the flag is given; it takes no value */
} FlagKind;

enum { FLAG_TEXTS_MOST = 12 };
typedef struct {
    int n;
    const char *text[FLAG_TEXTS_MOST];
} FlagTexts;

typedef struct {
    const char *name; /* "--lr" */
    FlagKind kind;
    void *value;          /* the variable, which holds the default */
    const char *argument; /* "FILE.csv", for --help */
    const char *sentence; /* the help text; it may have several lines */
    double low, high;  /* FLAG_INTEGER, FLAG_NUMBER: the smallest and the largest value allowed */
    const char *range; /* the same in words, "above 0" */
    const char *otherwise; /* the default in words, or NULL: --help shows the value */
} Flag;

/* The rows. */
#define TEXT_FLAG(name, variable, argument, otherwise, sentence)                                   \
    { name, FLAG_TEXT, &(variable), argument, sentence, 0, 0, NULL, otherwise }
#define OUTPUT_FLAG(name, variable, argument, sentence)                                            \
    { name, FLAG_OUTPUT, &(variable), argument, sentence, 0, 0, NULL, "none" }
#define CHOICE_FLAG(name, variable, words, sentence)                                               \
    { name, FLAG_CHOICE, &(variable), words, sentence, 0, 0, NULL, NULL }
#define INTEGER_FLAG(name, variable, low, high, range, sentence)                                   \
    { name, FLAG_INTEGER, &(variable), "N", sentence, low, high, range, NULL }
#define NUMBER_FLAG(name, variable, low, high, range, sentence)                                    \
    { name, FLAG_NUMBER, &(variable), "NUMBER", sentence, low, high, range, NULL }
#define SEED_FLAG(name, variable, sentence)                                                        \
    { name, FLAG_SEED, &(variable), "N", sentence, 0, 0, NULL, NULL }
#define SWITCH_FLAG(name, variable, sentence)                                                      \
    { name, FLAG_SWITCH, &(variable), NULL, sentence, 0, 0, NULL, NULL }

/* Reads "--name value" and "--name=value"; a switch is "--name" alone. --help prints the help,
 * --version the version of the library, and both exit with status 0. A mistake prints one error
 * message to stderr and exits with status 2. From then on a write to a pipe without a reader is an
 * error and not a signal. */
void flags_parse(int argc, char **argv, const char *program, const char *summary, const Flag *flags,
                 int num_flags);

/* Prints "PROGRAM: ...; see PROGRAM --help" to stderr and exits with status 2: for mistakes that
 * involve several flags. */
__attribute__((format(printf, 2, 3), noreturn)) void flags_misuse(const char *program,
                                                                  const char *format, ...);

#endif
