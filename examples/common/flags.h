/* flags.h - command-line flags from one table per program.
 *
 * A program keeps its options in ordinary variables, which hold the defaults, and describes each in
 * one row; parsing, the checks and --help all come from the rows.
 */
#ifndef TAPEHEAD_EXAMPLES_FLAGS_H
#define TAPEHEAD_EXAMPLES_FLAGS_H

typedef enum {
    FLAG_TEXT,    /* const char **: a file, a name */
    FLAG_OUTPUT,  /* const char **: a file to write, which no other flag may name; --load may
                     name that of --save */
    FLAG_CHOICE,  /* const char **: one of the words of argument, "dot|additive" */
    FLAG_INTEGER, /* int64_t * */
    FLAG_SEED,    /* uint64_t * */
    FLAG_NUMBER,  /* double *, always finite */
    FLAG_SWITCH   /* bool *: true when the flag is there; it takes no value */
} FlagKind;

typedef struct {
    const char *name; /* "--lr" */
    FlagKind kind;
    void *value;           /* where it goes; what is there before is the default */
    const char *argument;  /* "FILE.csv", as --help shows it */
    const char *sentence;  /* what it does; lines after the first begin after a newline */
    double low, high;      /* FLAG_INTEGER, FLAG_NUMBER: the values allowed, both ends included */
    const char *range;     /* the same in words, "above 0" */
    const char *otherwise; /* the default in words, where the value says too little; or NULL */
} Flag;

/* The rows. The default is what the variable holds, or otherwise, in words, unless that is NULL. */
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

/* Reads "--name value" and "--name=value"; a switch is "--name" alone. After --help, prints it and
 * exits 0. What it does not understand it answers in one sentence on stderr and exit status 2. */
void flags_parse(int argc, char **argv, const char *program, const char *summary, const Flag *flags,
                 int num_flags);

/* One sentence on stderr, "PROGRAM: ...; see PROGRAM --help", and exit status 2: for what no single
 * flag can know. */
__attribute__((format(printf, 2, 3), noreturn)) void flags_misuse(const char *program,
                                                                  const char *format, ...);

#endif
