/* flags.c - command-line flags: see flags.h.
 *
 * Each kind of flag has one function that reads its text. The function accepts the whole text or
 * makes an error; it guesses nothing and ignores nothing.
 */
#include "flags.h"

#include "../../tensor/tensor.h"
#include "output.h"
#include "repository.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void flags_misuse(const char *program, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "; see %s --help\n", program);
    va_end(arguments);
    exit(2);
}

static void print_default(const Flag *flag) {
    bool is_text =
        flag->kind == FLAG_TEXT || flag->kind == FLAG_OUTPUT || flag->kind == FLAG_CHOICE;
    const char *text = is_text ? *(const char **)flag->value : NULL;
    if (flag->otherwise) printf(" Default: %s.", flag->otherwise);
    else if (flag->kind == FLAG_INTEGER) printf(" Default: %" PRId64 ".", *(int64_t *)flag->value);
    else if (flag->kind == FLAG_SEED) printf(" Default: %" PRIu64 ".", *(uint64_t *)flag->value);
    else if (flag->kind == FLAG_NUMBER && *(double *)flag->value >= flag->low)
        printf(" Default: %g.", *(double *)flag->value);
    else if (text) printf(" Default: %s.", text);
}

static void print_sentence(const char *sentence) {
    printf("        ");
    for (; *sentence; sentence++) {
        putchar(*sentence);
        if (*sentence == '\n') printf("        ");
    }
}

/* The exit status of a program that has printed all it was asked for. */
static int printed(const char *program) {
    if (output_stdout_ok()) return 0;
    if (output_reader_is_gone()) return OUTPUT_READER_GONE;
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    return 1;
}

static int print_version(const char *program) {
    printf("%s (Tapehead) " TAPEHEAD_VERSION "\n", program);
    return printed(program);
}

static int print_help(const char *program, const char *summary, const Flag *flags, int num_flags) {
    printf("%s - %s\n\nUsage: %s [flags]\n\n", program, summary, program);
    for (const Flag *flag = flags; flag < flags + num_flags; flag++) {
        printf("  %s%s%s\n", flag->name, flag->argument ? " " : "",
               flag->argument ? flag->argument : "");
        print_sentence(flag->sentence);
        print_default(flag);
        putchar('\n');
    }
    printf("  --version\n        Prints the version of Tapehead and exits.\n");
    printf("  --help\n        Prints this help and exits, as -h does.\n");
    return printed(program);
}

/* The next three functions return true if all of text is a number that the flag allows. strtoll,
 * strtoull and strtod skip white space, which these functions refuse; strtoull accepts a minus
 * sign, which read_seed refuses. */
static bool read_integer(const Flag *flag, const char *text) {
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || strchr(" \t\n\v\f\r", *text)) return false;
    if ((double)number < flag->low || (double)number > flag->high) return false;
    *(int64_t *)flag->value = number;
    return true;
}

static bool read_seed(const Flag *flag, const char *text) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*end || errno) return false;
    *(uint64_t *)flag->value = number;
    return true;
}

static bool read_number(const Flag *flag, const char *text) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || strchr(" \t\n\v\f\r", *text) || !isfinite(number)) return false;
    if (number < flag->low || number > flag->high) return false;
    *(double *)flag->value = number;
    return true;
}

/* Is text one of the words "dot|additive"? */
static bool read_choice(const Flag *flag, const char *text) {
    for (const char *word = flag->argument; *word;) {
        size_t length = strcspn(word, "|");
        bool same = strlen(text) == length && memcmp(word, text, length) == 0;
        if (same) *(const char **)flag->value = text;
        if (same) return true;
        word += length + (word[length] == '|');
    }
    return false;
}

static void add_text(const char *program, const Flag *flag, const char *text) {
    FlagTexts *list = flag->value;
    if (!*text) flags_misuse(program, "%s wants %s, not nothing", flag->name, flag->argument);
    if (list->n == FLAG_TEXTS_MOST)
        flags_misuse(program, "%s can be given %d times", flag->name, FLAG_TEXTS_MOST);
    list->text[list->n++] = text;
}

static void read_value(const char *program, const Flag *flag, const char *text) {
    switch (flag->kind) {
    case FLAG_TEXT:
    case FLAG_OUTPUT:
        if (!*text) flags_misuse(program, "%s wants %s, not nothing", flag->name, flag->argument);
        *(const char **)flag->value = text;
        break;
    case FLAG_TEXTS: add_text(program, flag, text); break;
    case FLAG_CHOICE:
        if (!read_choice(flag, text))
            flags_misuse(program, "%s wants %s, not \"%s\"", flag->name, flag->argument, text);
        break;
    case FLAG_INTEGER:
        if (!read_integer(flag, text))
            flags_misuse(program, "%s wants a whole number %s, not \"%s\"", flag->name, flag->range,
                         text);
        break;
    case FLAG_SEED:
        if (!read_seed(flag, text))
            flags_misuse(program, "%s wants a whole number from 0 to 2^64 - 1, not \"%s\"",
                         flag->name, text);
        break;
    case FLAG_NUMBER:
        if (!read_number(flag, text))
            flags_misuse(program, "%s wants a number %s, not \"%s\"", flag->name, flag->range,
                         text);
        break;
    case FLAG_SWITCH: flags_misuse(program, "%s takes no value", flag->name);
    }
}

static const Flag *find(const Flag *flags, int num_flags, const char *text, size_t length) {
    for (const Flag *flag = flags; flag < flags + num_flags; flag++)
        if (strlen(flag->name) == length && memcmp(flag->name, text, length) == 0) return flag;
    return NULL;
}

/* Do two paths name the same file? Devices and pipes may be named twice. A file that does not exist
 * is compared by name. */
static bool same_file(const char *a, const char *b) {
#ifdef _WIN32 /* its files have no numbers */
    struct stat x;
    return (stat(a, &x) || S_ISREG(x.st_mode)) && win32_same_file(a, b);
#else
    struct stat x, y;
    if (stat(a, &x) || stat(b, &y)) return strcmp(a, b) == 0;
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
#endif
}

/* --save may replace the file of --load, so that a run continues in one file. */
static bool goes_on(const Flag *a, const Flag *b) {
    return strcmp(a->name, "--save") == 0 && strcmp(b->name, "--load") == 0;
}

/* It is an error if two flags write one file, or if one writes a file that another reads. */
static void check_outputs(const char *program, const Flag *flags, int num_flags) {
    for (const Flag *a = flags; a < flags + num_flags; a++) {
        if (a->kind != FLAG_OUTPUT || !*(const char **)a->value) continue;
        for (const Flag *b = flags; b < flags + num_flags; b++) {
            bool file =
                b->argument && strncmp(b->argument, "FILE", 4) == 0; /* not a prompt or a name */
            if (b == a || !file || goes_on(a, b)) continue;
            const char *path = *(const char **)a->value;
            const char *other = *(const char **)b->value;
            if (other && same_file(path, other))
                flags_misuse(program, "%s and %s are the same file, %s", a->name, b->name, path);
        }
    }
}

/* If a standard stream is closed, the next file that is opened gets the stream's number, and the
 * output meant for the stream. This function opens /dev/null first, for reading. */
static void fill_standard_files(void) {
    int file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= 2) file = open("/dev/null", O_RDONLY);
    if (file > 2) close(file);
}

void flags_parse(int argc, char **argv, const char *program, const char *summary, const Flag *flags,
                 int num_flags) {
    fill_standard_files();
    repository_program(argc > 0 ? argv[0] : NULL);
    signal(SIGPIPE, SIG_IGN); /* a write to a pipe without a reader then fails, */
    signal(SIGXFSZ, SIG_IGN); /* and a write to a file that is too large */
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)
            exit(print_help(program, summary, flags, num_flags));
        if (strcmp(text, "--version") == 0) exit(print_version(program));
        size_t length = strcspn(text, "=");
        const Flag *flag = find(flags, num_flags, text, length);
        if (!flag && text[0] != '-') flags_misuse(program, "\"%s\" is not a flag", text);
        if (!flag) flags_misuse(program, "there is no flag %.*s", (int)length, text);
        if (flag->kind == FLAG_SWITCH && !text[length]) *(bool *)flag->value = true;
        else if (text[length]) read_value(program, flag, text + length + 1);
        else if (i + 1 < argc) read_value(program, flag, argv[++i]);
        else flags_misuse(program, "%s wants %s", flag->name, flag->argument);
    }
    check_outputs(program, flags, num_flags);
}
